"""The adapter to Flower, tested with a stand-in and, if Flower is installed, with Flower itself."""

from __future__ import annotations

import copy
import importlib.util
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import powerkern as pk
from powerkern.federated import Client, ProtocolError, flower

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "flower" / "run.py"
NAMES = ["basel", "graz", "jena", "kiel", "ulm"]
ROWS = np.random.default_rng(0).lognormal(size=(500, 1))
PARTS = dict(zip(NAMES, np.split(ROWS, [50, 150, 260, 400]), strict=True))


def app(name: str, fail: Exception | None = None) -> Any:
    def make(context: Any) -> Client:
        if fail:
            raise fail
        return Client(PARTS[name], name=name)

    return flower.client_app(make)


# --- SecAgg+ itself, with a grid in this process ------------------------------------------------------


class Grid:
    """A grid for real apps of Flower; the state of an app persists between messages.

    The nodes are 100, 101, .... Those in `lost` receive only messages of type "query".
    """

    def __init__(self, apps: list[Any]) -> None:
        from flwr.app import Context, RecordDict

        self.apps = {100 + k: app for k, app in enumerate(apps)}
        self.contexts = {
            node: Context(run_id=1, node_id=node, node_config={}, state=RecordDict(), run_config={})
            for node in [0, *self.apps]
        }
        self.lost: set[int] = set()

    def get_node_ids(self) -> list[int]:
        return list(self.apps)

    def send_and_receive(self, messages: list[Any], timeout: float | None = None) -> list[Any]:
        nodes = [(message, message.metadata.dst_node_id) for message in messages]
        return [
            self.apps[node](copy.deepcopy(message), self.contexts[node])
            for message, node in nodes
            if node not in self.lost or message.metadata.message_type == "query"
        ]


@pytest.fixture
def secagg_grid(monkeypatch: pytest.MonkeyPatch) -> Grid:
    pytest.importorskip("flwr")
    from flwr.supercore.task_identity import TaskIdentity

    for name in ("run_id", "node_id", "task_id"):  # Flower sets these variables in the processes that it starts
        monkeypatch.setattr(TaskIdentity, f"_{name}", 1)
    return Grid([app(name) for name in NAMES])


def test_secagg_adds_the_integers_without_loss(secagg_grid: Grid) -> None:
    from powerkern.federated import fit_federated

    fit = flower.fit(secagg_grid, n_clients=5, context=secagg_grid.contexts[0], family="box-cox", quantum=2.0**-80)
    plain = fit_federated([Client(PARTS[name], name=name) for name in NAMES], "box-cox", quantum=2.0**-80)
    assert fit.to_json() == plain.to_json()  # bit for bit the plain sum
    assert np.abs(fit.lmbda - pk.fit(ROWS, "box-cox").lmbda).max() < 1e-12


def test_a_site_lost_within_secagg_is_an_error(secagg_grid: Grid) -> None:
    secagg_grid.lost = {102}
    with pytest.raises(ProtocolError, match="SecAgg\\+ gave no total: a site failed or was lost"):
        flower.fit(secagg_grid, n_clients=5, context=secagg_grid.contexts[0], family="box-cox", quantum=2.0**-80)


def test_the_example_runs_on_loopback() -> None:
    pytest.importorskip("flwr")
    command = [sys.executable, str(EXAMPLE), "--timeout", "1500"]  # takes minutes if other processes use the CPUs
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.rpartition("largest difference:")[2]) < 1e-10


# --- a stand-in for Flower: one process, and nodes that fail on demand ---------------------------------


def test_without_flower_the_error_says_what_to_install() -> None:
    if importlib.util.find_spec("flwr") is not None:
        pytest.skip("flwr is installed")
    with pytest.raises(ImportError, match="needs flwr: pip install flwr"):
        flower.client_app(lambda context: None)  # type: ignore[arg-type, return-value]


class FakeMessage:
    """The part of flwr.app.Message that the adapter uses."""

    def __init__(self, content: Any, reply_to: Any = None, dst_node_id: int = 0, message_type: str = "") -> None:
        assert reply_to is not None or message_type == "query"
        self.content, self.dst_node_id = content, dst_node_id
        self.metadata = SimpleNamespace(src_node_id=0 if reply_to is None else reply_to.dst_node_id)
        self.error: Any = None

    def has_error(self) -> bool:
        return self.error is not None


class FakeApp:
    """The part of flwr.clientapp.ClientApp that the adapter uses."""

    answer: Callable[[Any, Any], Any]

    def query(self) -> Callable[[Any], Any]:
        return lambda function: setattr(self, "answer", function)

    def train(self, mods: Any) -> Callable[[Any], Any]:
        return lambda function: None


class FakeGrid:
    """A grid for stand-ins of apps. An exception in an app becomes an error of Flower with its type and text.

    The nodes are 100, 101, .... Those in `silent` do not reply.
    """

    def __init__(self, apps: list[Any]) -> None:
        self.apps = {100 + k: app for k, app in enumerate(apps)}
        self.silent: set[int] = set()

    def get_node_ids(self) -> list[int]:
        return list(self.apps)

    def send_and_receive(self, messages: list[Any], timeout: float) -> list[Any]:
        return [self.reply(m) for m in messages if m.dst_node_id not in self.silent]

    def reply(self, message: Any) -> Any:
        try:
            return self.apps[message.dst_node_id].answer(message, SimpleNamespace(node_id=message.dst_node_id))
        except Exception as error:
            reply = FakeMessage(None, reply_to=message)
            reply.error = SimpleNamespace(reason=f"{type(error)}:<{error}>")
            return reply


@pytest.fixture
def no_flower(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = SimpleNamespace(
        Message=FakeMessage, RecordDict=dict, ConfigRecord=dict, ClientApp=FakeApp, secaggplus_mod=None
    )
    monkeypatch.setattr(flower, "_import_flwr", lambda module: fake)


@pytest.mark.usefixtures("no_flower")
def test_clients_made_anew_for_every_message() -> None:
    fit = flower.fit(FakeGrid([app(name) for name in NAMES]), n_clients=5, family="box-cox")  # type: ignore[arg-type]
    assert np.abs(fit.lmbda - pk.fit(ROWS, "box-cox").lmbda).max() < 1e-12


@pytest.mark.usefixtures("no_flower")
def test_errors_at_a_site_send_no_values_to_the_server(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site logs a value that causes an error, but the server's error does not contain the value.

    The two cases are an error while the site reads its rows, and a value outside the domain of the family.
    """
    apps = [app(name) for name in NAMES[:-1]]
    grid = FakeGrid([*apps, app("ulm", ValueError("row 1000: the value is -7.123456"))])
    with caplog.at_level(logging.WARNING), pytest.raises(ProtocolError, match="failed with ValueError") as raised:
        flower.fit(grid, n_clients=5, family="box-cox")  # type: ignore[arg-type]
    assert "7.123456" not in str(raised.value)
    assert "7.123456" in caplog.text
    caplog.clear()
    monkeypatch.setitem(PARTS, "bern", np.append(PARTS["ulm"], [[-7.123456]], axis=0))
    grid = FakeGrid([*apps, app("bern")])
    domain = "client 'bern' failed: .*outside the domain of box-cox"
    with caplog.at_level(logging.WARNING), pytest.raises(ProtocolError, match=domain) as raised:
        flower.fit(grid, n_clients=5, family="box-cox")  # type: ignore[arg-type]
    assert "7.123456" not in str(raised.value)
    assert "7.123456" in caplog.text


@pytest.mark.usefixtures("no_flower")
def test_nodes_that_are_silent_lost_or_have_the_same_name_are_named() -> None:
    grid = FakeGrid([app(name) for name in NAMES])
    grid.silent = {102}
    with pytest.raises(ProtocolError, match="node 102 does not give the name of its client: no answer"):
        flower.fit(grid, n_clients=5)  # type: ignore[arg-type]
    twice = FakeGrid([app(name) for name in [*NAMES, "ulm"]])
    with pytest.raises(ProtocolError, match=r"two nodes have clients of the same name: .*'ulm', 'ulm'"):
        flower.fit(twice, n_clients=6)  # type: ignore[arg-type]
    with pytest.raises(ProtocolError, match="6 nodes are connected instead of 7"):
        flower.fit(twice, n_clients=7, wait=0.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="quantum= needs context="):
        flower.fit(twice, n_clients=6, quantum=2.0**-80)  # type: ignore[arg-type]
