"""The adapter to Flower; the whole example, with a superlink and three supernodes, where flwr is installed."""

from __future__ import annotations

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
from powerkern.federated import Client, Policy, ProtocolError, flower, pairwise_secrets

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "flower" / "run.py"


def test_without_flower_the_error_says_what_to_install() -> None:
    if importlib.util.find_spec("flwr") is not None:
        pytest.skip("flwr is installed")
    with pytest.raises(ImportError, match=r"needs flwr: pip install 'powerkern\[flower\]'"):
        flower.client_app(lambda context: None)  # type: ignore[arg-type, return-value]


def test_the_example_runs_on_loopback() -> None:
    pytest.importorskip("flwr")
    command = [sys.executable, str(EXAMPLE), "--timeout", "900"]  # minutes, where others use the CPUs
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    difference = float(done.stdout.rpartition("largest difference:")[2])
    assert difference < 1e-4  # what sites round their sums to


# --- a stand-in for Flower: one process, and nodes that fail on demand ---------------------------------

NAMES = ["basel", "graz", "jena", "kiel", "ulm"]
ROWS = np.random.default_rng(0).lognormal(size=(500, 1))
PARTS = dict(zip(NAMES, np.split(ROWS, [50, 150, 260, 400]), strict=True))


class FakeMessage:
    """What flwr.app.Message has of use here."""

    def __init__(self, content: Any, reply_to: Any = None, dst_node_id: int = 0, message_type: str = "") -> None:
        assert reply_to is not None or message_type == "query"
        self.content, self.dst_node_id = content, dst_node_id
        self.metadata = SimpleNamespace(src_node_id=0 if reply_to is None else reply_to.dst_node_id)
        self.error: Any = None

    def has_error(self) -> bool:
        return self.error is not None


class FakeApp:
    """What flwr.clientapp.ClientApp has of use here."""

    answer: Callable[[Any, Any], Any]

    def query(self) -> Callable[[Any], Any]:
        return lambda function: setattr(self, "answer", function)


class FakeGrid:
    """Nodes 100, 101, ...; exceptions become what Flower makes of them: their type and text."""

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
    fake = SimpleNamespace(Message=FakeMessage, RecordDict=dict, ConfigRecord=dict, ClientApp=FakeApp)
    monkeypatch.setattr(flower, "_flwr", lambda module: fake)


def grid_of(names: list[str], fail: dict[str, Exception] | None = None) -> FakeGrid:
    """A client for each name, made anew for every message."""
    secrets = pairwise_secrets(names)
    memory: dict[str, dict[str, bytes]] = {name: {} for name in names}

    def app(name: str) -> Any:
        def make(context: Any) -> Client:
            if fail and name in fail and memory[name]:  # once the fit is open
                raise fail[name]
            policy = Policy(rows_per_bin=1)
            return Client(PARTS[name], name=name, secrets=secrets[name], memory=memory[name], policy=policy)

        return flower.client_app(make)

    return FakeGrid([app(name) for name in names])


@pytest.mark.usefixtures("no_flower")
def test_clients_made_anew_for_every_message_fit_under_masks() -> None:
    fit = flower.fit(grid_of(NAMES), n_clients=5, family="box-cox", secure=True)
    assert np.abs(fit.lmbda - pk.fit(ROWS, "box-cox").lmbda).max() < 1e-4


@pytest.mark.usefixtures("no_flower")
@pytest.mark.parametrize("recover", [False, True])
def test_a_client_that_fails_is_lost_if_it_can_be(recover: bool) -> None:
    grid = grid_of(NAMES, {"jena": RuntimeError("no disk")})
    if not recover:
        with pytest.raises(ProtocolError, match=r"client 'jena' failed: .*its client failed with RuntimeError"):
            flower.fit(grid, n_clients=5, family="box-cox", secure=True)
        return
    fit = flower.fit(grid, n_clients=5, family="box-cox", secure=True, recover=True)
    others = np.concatenate([PARTS[name] for name in NAMES if name != "jena"])
    assert np.abs(fit.lmbda - pk.fit(others, "box-cox").lmbda).max() < 1e-4


@pytest.mark.usefixtures("no_flower")
def test_what_goes_wrong_at_a_site_tells_the_server_no_value(caplog: pytest.LogCaptureFixture) -> None:
    """An error in reading the rows; and one of the protocol, which has a detail for the site's log."""
    grid = grid_of(NAMES, {"jena": ValueError("row 1000: the value is -7.123456")})
    with caplog.at_level(logging.WARNING), pytest.raises(ProtocolError, match="failed with ValueError") as raised:
        flower.fit(grid, n_clients=5, family="box-cox", secure=True)
    assert "7.123456" not in str(raised.value)
    assert "7.123456" in caplog.text
    PARTS["bern"] = np.append(PARTS["ulm"], [[-7.123456]], axis=0)
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(ProtocolError, match="outside the domain of box-cox") as raised,
    ):
        flower.fit(grid_of(["bern", *NAMES[:3]]), n_clients=4, family="box-cox", secure=True)
    assert "7.123456" not in str(raised.value)


@pytest.mark.usefixtures("no_flower")
def test_nodes_that_say_nothing_or_the_same_are_named() -> None:
    grid = grid_of(NAMES)
    grid.silent = {102}
    with pytest.raises(ProtocolError, match="node 102 does not say what its client is called: no answer"):
        flower.fit(grid, n_clients=5)
    twice = [*grid_of(NAMES).apps.values(), *grid_of(NAMES[-3:]).apps.values()]
    with pytest.raises(ProtocolError, match=r"two nodes have clients of one name: .*'ulm', 'ulm'"):
        flower.fit(FakeGrid(twice), n_clients=8)
