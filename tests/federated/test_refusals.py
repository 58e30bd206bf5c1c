"""Hostile, damaged, repeated and missing messages are rejected by name before anything is merged."""

from __future__ import annotations

import itertools
import json
import pickle
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fits import kernel_rows
from forged import forged
from numpy.testing import assert_array_equal

from powerkern.federated import Client, ProtocolError, Server, fit_federated
from powerkern.federated.messages import Kind, Message, pack, unpack
from powerkern.federated.pool import MOST_POINTS
from powerkern.federated.transport import run
from powerkern.kernels.likelihood import score_formulas as lk
from powerkern.sketch import range_of

ROWS = np.random.default_rng(0).lognormal(size=(90, 2))
NAMES = ["a", "b", "c"]


def site(name: str, rows: np.ndarray = ROWS, **options: Any) -> Client:
    return Client(rows[NAMES.index(name) :: 3], name=name, **options)


def conversation(rounds: int, **options: Any) -> tuple[Server, list[Client]]:
    """Return a server after `rounds` rounds, and its clients. The keyword arguments are options of `Server`."""
    server, clients = Server(NAMES, **options), [site(name) for name in NAMES]
    for _ in range(rounds):
        for client in clients:
            server.receive(client.answer(server.request), sender=client.name)
        server.close_round()
    return server, clients


def test_requests_after_the_first_name_the_number_of_columns() -> None:
    server, clients = conversation(1)
    assert unpack(server.request, "server").details["n_columns"] == ROWS.shape[1]
    narrow = Client(ROWS[:30, :1], name="a")
    with pytest.raises(ProtocolError, match="the data have 1 columns, the fit has 2"):
        narrow.answer(server.request)
    clients[0].answer(server.request)


def changed(data: bytes, sender: str, **changes: Any) -> bytes:
    return pack(unpack(data, sender)._replace(**changes))


def poked(answer: bytes, place: tuple[int, ...], value: float) -> bytes:
    body = unpack(answer, "a").body.copy()
    body[place] = value
    return changed(answer, "a", body=body)


# --- answers ------------------------------------------------------------------------------------------


BAD_ANSWERS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "cut": (lambda m: m[:-1], "not a message: the bytes were cut or joined"),
    "damaged": (
        lambda m: m[:-9] + bytes([m[-9] ^ 1]) + m[-8:],
        "not a message: .* damaged; .* send them again",
    ),
    "version": (
        lambda m: forged(m, lambda head, _: head.update(version=7)),
        "a message in version 7; ",
    ),
    "late": (lambda m: changed(m, "a", round=1), "the message is late: it answers round 1"),
    "early": (lambda m: changed(m, "a", round=3), "the message does not answer the question of round 2"),
    "kind": (lambda m: changed(m, "a", kind=Kind.RANGE), "the message does not answer the question of round 2"),
    "session": (lambda m: changed(m, "a", session="0" * 32), "the message belongs to another fit"),
    "shape": (lambda m: changed(m, "a", body=np.zeros((2, 1, 3))), r"the answer holds numbers of shape \(2, 1, 3\)"),
    "bytes": (lambda m: changed(m, "a", body=np.zeros((2, 1, 12), np.uint8)), "the answer holds numbers of shape"),
    "NaN": (lambda m: poked(m, (1, 0, lk.YY), np.nan), "column 1 has moments that are not finite, or that no data"),
    "infinite": (lambda m: poked(m, (1, 0, lk.YY3), np.inf), "column 1 has moments that are not finite"),
    "negative square": (lambda m: poked(m, (0, 0, lk.YY), -1.0), "column 0 has moments that are not finite, or that"),
    "negative weight": (lambda m: poked(m, (0, 0, lk.WEIGHT), -30.0), "column 0 has moments"),
    "far mean": (lambda m: poked(m, (0, 0, lk.Y), 9.0), "column 0 has moments"),
    "Cauchy-Schwarz": (lambda m: poked(m, (0, 0, lk.YY1), 90.0), "column 0 has moments"),
    "weight": (lambda m: poked(m, (1, 0, lk.WEIGHT), 31.0), r"column 1 has weight 31, not 30 as announced; did rows"),
}


@pytest.mark.parametrize("bad", BAD_ANSWERS)
def test_a_bad_answer_is_refused_and_leaves_no_trace(bad: str) -> None:
    change, match = BAD_ANSWERS[bad]
    server, clients = conversation(1)
    answer = clients[0].answer(server.request)
    with pytest.raises(ProtocolError, match=f"client 'a': {match}"):
        server.receive(change(answer), sender="a")
    assert server.missing == NAMES
    run(server, clients)
    assert_array_equal(server.fit.lmbda, fit_federated(clients).lmbda)


def test_duplicates_strangers_and_false_names_are_refused() -> None:
    server, clients = conversation(1)
    answer = clients[0].answer(server.request)
    server.receive(answer, sender="a")
    with pytest.raises(ProtocolError, match="client 'a': it has answered round 2 already; the second answer is"):
        server.receive(answer, sender="a")
    with pytest.raises(ProtocolError, match="client 'z' is not one of"):
        server.receive(answer, sender="z")
    with pytest.raises(ProtocolError, match="client 'b': the message names 'a' as its sender"):
        server.receive(answer, sender="b")
    assert server.missing == ["b", "c"]


def test_a_lost_site_is_named_and_the_fit_waits_for_it() -> None:
    server, clients = conversation(1)
    for client in clients[:2]:
        server.receive(client.answer(server.request), sender=client.name)
    with pytest.raises(ProtocolError, match="round 2 cannot be closed: no answer from client 'c'; ask again, or start"):
        server.close_round()
    server.receive(clients[2].answer(server.request), sender="c")
    server.close_round()
    assert server.round == 3


def test_results_before_the_end_and_answers_after_it_are_refused() -> None:
    server, clients = conversation(1)
    answer = clients[0].answer(server.request)
    with pytest.raises(ProtocolError, match="there is no fit yet: round 2 is open"):
        _ = server.fit
    run(server, clients)
    with pytest.raises(ProtocolError, match="client 'a': the message is late"):
        server.receive(answer, sender="a")
    with pytest.raises(ProtocolError, match="there is no open request"):
        _ = server.request
    with pytest.raises(ProtocolError, match="does not ask for a total"):
        server.receive_total([1])


def test_ranges_of_other_columns_or_families_are_refused() -> None:
    server = Server(NAMES, family="box-cox")
    request = server.request
    server.receive(site("a", column_names=["x", "y"]).answer(request), sender="a")
    with pytest.raises(ProtocolError, match=r"client 'b': column 1 \('z'\) is 'y' in the fit; rename it"):
        server.receive(site("b", column_names=["x", "z"]).answer(request), sender="b")
    with pytest.raises(ProtocolError, match="client 'b': the data have 1 columns, the fit has 2"):
        server.receive(site("b", ROWS[:, :1]).answer(request), sender="b")
    good = site("b").answer(request)
    others = [{"family": "yeo-johnson"}, {"shift": 1.0}, {"limits": (0.5, None)}]
    for other in (range_of(ROWS, **{"family": "box-cox", **options}) for options in others):
        body = np.frombuffer(other.to_bytes(), np.uint8)
        with pytest.raises(ProtocolError, match="client 'b': the range must have family='box-cox', no shift"):
            server.receive(changed(good, "b", body=body), sender="b")
    with pytest.raises(ProtocolError, match="client 'b': not a range"):
        server.receive(changed(good, "b", body=np.zeros(9, np.uint8)), sender="b")
    for name in "bc":
        server.receive(site(name).answer(request), sender=name)
    server.close_round()
    renamed = site("c", column_names=["x", "z"])
    with pytest.raises(ProtocolError, match=r"client 'c': column 1 \('z'\) has another name in the fit"):
        renamed.answer(server.request)


def test_moments_without_spread_end_the_fit() -> None:
    server, clients = conversation(1)
    for client in clients:
        body = unpack(client.answer(server.request), client.name).body.copy()
        body[..., lk.Y : lk.N_MOMENTS] = 0.0
        server.receive(changed(client.answer(server.request), client.name, body=body), sender=client.name)
    for _ in range(2):  # the second attempt raises the same error
        with pytest.raises(
            ProtocolError, match=r"round 2 cannot be merged: column 0 has no spread, .*; start a new fit"
        ):
            server.close_round()


# --- totals -------------------------------------------------------------------------------------------


def test_bad_totals_are_refused_and_leave_no_trace() -> None:
    options = {"quantum": 2.0**-80, "data_bounds": ([0.01, 0.01], [30.0, 30.0])}
    server, clients = conversation(0, **options)
    vectors = [client.summands(server.request) for client in clients]
    again = Server(NAMES, **options).request  # the request of another fit
    bad = {
        "it is the sum of 2 sites, the fit has 3": vectors[0] + vectors[1],
        "it is the sum of 4 sites, the fit has 3": sum(vectors) + vectors[0],
        "a site answered another request": vectors[0] + vectors[1] + clients[2].summands(again),
        "it must be .* integers": 1.0 * sum(vectors),
        "column 0 has moments that are not finite, or that no data can have": sum(vectors) * 1,
    }
    bad["column 0 has moments that are not finite, or that no data can have"][-11 * 2 * 7 :] *= -3
    for match, total in bad.items():
        with pytest.raises(ProtocolError, match=f"the total of round 1 is refused: .*{match}"):
            server.receive_total(total)
        assert server.missing == NAMES
    with pytest.raises(
        ProtocolError, match="round 1 cannot be closed: it has no total; start a new fit without lost sites"
    ):
        server.close_round()
    server.receive_total(sum(vectors))
    with pytest.raises(ProtocolError, match="round 1 has its total already"):
        server.receive_total(sum(vectors))
    server.close_round()
    run(server, clients)
    assert_array_equal(server.fit.lmbda, fit_federated(clients, **options).lmbda)


def test_a_weight_that_changes_between_rounds_is_refused_in_totals() -> None:
    server, clients = conversation(1, quantum=2.0**-80)
    server.receive_total(sum(client.summands(server.request) for client in clients))
    server.close_round()
    clients[2] = Client(ROWS[2:-3:3], name="c")
    with pytest.raises(ProtocolError, match="the total of round 3 is refused: column 0 has weight 89, not 90"):
        server.receive_total(sum(client.summands(server.request) for client in clients))


def test_questions_in_the_open_and_for_sums_are_not_confused() -> None:
    server, clients = conversation(0)
    with pytest.raises(
        ProtocolError, match="client 'a': the request asks for range in the clear; answer it with answer"
    ):
        clients[0].summands(server.request)
    server, clients = conversation(1, quantum=2.0**-80)
    with pytest.raises(
        ProtocolError, match="client 'a': the request asks for integers for a secure sum; answer it with summands"
    ):
        clients[0].answer(server.request)
    open_answer = pack(Message(Kind.SUMS, server._session, 2, "a", {}, np.zeros(3)))
    with pytest.raises(ProtocolError, match="client 'a': the message does not answer the question of round 2"):
        server.receive(open_answer, sender="a")


def test_weights_too_large_to_add_up_are_refused() -> None:
    heavy = Client(ROWS, name="a", sample_weight=np.full(90, 1e20))
    with pytest.raises(ProtocolError, match="client 'a': the weights are too large for a secure sum; divide them"):
        fit_federated([heavy], quantum=2.0**-80)


# --- requests -----------------------------------------------------------------------------------------


def moments_request(place: tuple[int, ...], value: float) -> Callable[[Message], dict[str, Any]]:
    def change(message: Message) -> dict[str, Any]:
        body = message.body.copy()
        body[place] = value
        return {"body": body}

    return change


BAD_REQUESTS: dict[str, tuple[Callable[[Message], dict[str, Any]], str]] = {
    "family": (lambda m: {"details": {**m.details, "family": "log"}}, "malformed: unknown family 'log'"),
    "strangers": (
        lambda m: {"details": {**m.details, "clients": ["x"]}},
        r"this client is not one of the clients of the fit",
    ),
    "columns": (lambda m: {"details": {**m.details, "n_columns": 3}}, "the data have 2 columns, the fit has 3"),
    "infinite": (
        lambda m: {"details": {**m.details, "infinite": "drop"}},
        "malformed: unknown treatment of infinite values 'drop'",
    ),
    "shift": (lambda m: {"details": {**m.details, "shift": "x"}}, "malformed: shift must be"),
    "shift of Yeo-Johnson": (lambda m: {"details": {**m.details, "shift": 1.0}}, "malformed: shift works only with"),
    "no table": (lambda m: {"body": np.zeros(3)}, "malformed: not a table of exponents"),
    "points": (lambda m: {"body": np.ones((1, MOST_POINTS + 10))}, "malformed: not a table of exponents"),
    "NaN": (moments_request((0, 9), np.nan), "malformed: NaN or infinite values"),
    "column": (moments_request((0, 0), 2.0), "malformed: columns other than 0 to 1"),
    "twice": (moments_request((0, 0), 1.0), "malformed: columns other than 0 to 1"),
    "unit": (moments_request((0, 8), -1.0), "malformed: a unit that is not positive"),
    "ends": (moments_request((0, 1), 1e9), "malformed: bounds that no values can have"),
    "frame": (moments_request((0, 6), 7.0), "malformed: a scaling that does not follow from its bounds"),
}


@pytest.mark.parametrize("bad", BAD_REQUESTS)
def test_a_bad_request_is_refused(bad: str) -> None:
    change, match = BAD_REQUESTS[bad]
    server, (client, *_) = conversation(1)
    message = unpack(server.request, "server")
    with pytest.raises(ProtocolError, match=f"client 'a': .*{match}"):
        client.answer(pack(message._replace(**change(message))))


@pytest.mark.parametrize("quantum", [None, 0.3, -1.0, "x", True])
def test_a_request_with_an_invalid_quantum_is_refused(quantum: object) -> None:
    server, (client, *_) = conversation(1, quantum=2.0**-80)
    message = unpack(server.request, "server")
    bad = pack(message._replace(details={**message.details, "quantum": quantum}))
    with pytest.raises(ProtocolError, match="client 'a': the request is malformed: quantum must be a power of two"):
        client.summands(bad)


def test_errors_tell_the_server_no_values() -> None:
    rows = ROWS.copy()
    rows[3, 1] = -7.123456
    client = site("a", rows)
    with pytest.raises(
        ProtocolError, match="column 1 has values outside the domain of box-cox; the log of the site"
    ) as caught:
        client.answer(Server(NAMES, family="box-cox").request)
    assert not re.search(r"\d{2}|row", str(caught.value))
    assert "the value is -7.123456" in caught.value.detail
    assert pickle.loads(pickle.dumps(caught.value)).detail == str(caught.value)
    bounded = Server(NAMES, data_bounds=([0.5, 0.5], [2.0, 2.0]))
    with pytest.raises(ProtocolError, match=r"client 'a': column 0 has values outside 0\.5 to 2, the bounds of this"):
        site("a").answer(bounded.request)


# --- mutations by the thousand ------------------------------------------------------------------------

JUNK: list[Any] = [None, True, 0, -1, 10**30, 0.5, "", "a", "server", [], [1], ["a", "a"], {}, {"a": 1}, "ab" * 40]
NUMBERS = [0.0, -0.0, 1.0, -1.0, 1e18, 1e308, -1e308, 5e-324, 2.0**53, 0.5, np.nan, np.inf, -np.inf]
MODES: list[dict[str, Any]] = [
    {},
    {"family": "box-cox", "search": "brent"},
    {"quantum": 2.0**-40, "ymax": 1e6},
    {"quantum": 2.0**-16, "data_bounds": ([0.0, 0.0], [64.0, 64.0])},
]


def mutated(rng: np.random.Generator, data: bytes, sender: str) -> bytes:
    """Change a message at random: replace a byte, truncate it, or replace a field, a detail or numbers of the body.

    The checksum is correct unless a byte was replaced or the message truncated. `sender` is the client that wrote
    `data`.
    """
    way = rng.integers(6)
    if way == 0:
        at = rng.integers(len(data))
        return data[:at] + bytes([rng.integers(256)]) + data[at + 1 :]
    if way == 1:
        return data[: rng.integers(len(data))]
    message = unpack(data, sender)
    if way == 2:
        field = str(rng.choice(["session", "round", "sender"]))
        return pack(message._replace(**{field: JUNK[rng.integers(len(JUNK))]}))
    if way == 3 and message.details:
        details = json.loads(json.dumps(message.details))
        details[str(rng.choice(list(details)))] = JUNK[rng.integers(len(JUNK))]
        return pack(message._replace(details=details))
    body = message.body.copy()
    flat = body.reshape(-1)
    for _ in range(rng.integers(1, 4) if flat.size else 0):
        flat[rng.integers(flat.size)] = rng.choice(NUMBERS) if body.dtype.kind == "f" else rng.integers(256)
    return pack(message._replace(body=body))


def outcome(action: Callable[[], object]) -> str:
    try:
        action()
    except ProtocolError:
        return "refused"
    return "taken"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_mutated_messages_are_refused_or_taken_and_fits_end() -> None:
    rng, told = np.random.default_rng(0), Counter[str]()
    for trial in range(60):
        server, clients = conversation(0, **MODES[trial % len(MODES)])
        try:
            while not server.done:
                told += one_round(rng, server, clients)
                server.close_round()
        except ProtocolError:
            told["ended"] += 1  # an accepted message contradicted the others
            continue
        server.fit.transform(np.ones((2, server.fit.n_features)))
        told["done"] += 1
    assert told["refused"] > 2000
    assert told["taken"] > 50
    assert told["done"] > 10


def one_round(rng: np.random.Generator, server: Server, clients: list[Client]) -> Counter[str]:
    told, request = Counter[str](), server.request
    for client in clients:
        ask = client.summands if server.wants_total else client.answer
        for _ in range(3):
            told[outcome(lambda ask=ask: ask(mutated(rng, request, "server")))] += 1
        if not server.wants_total:
            answer = client.answer(request)
            for _ in range(3):
                told[outcome(lambda a=answer, c=client: server.receive(mutated(rng, a, c.name), sender=c.name))] += 1
            if client.name in server.missing:
                server.receive(answer, sender=client.name)
    if server.wants_total:
        total = sum(client.summands(request) for client in clients)
        for _ in range(9):
            bad = total.copy()
            bad[rng.integers(total.size)] += rng.choice([1, -1, 2**20, -(2**40), 2**62])
            told[outcome(lambda bad=bad: server.receive_total(bad))] += 1
        if server.missing:
            server.receive_total(total)
    return told


def test_columns_in_another_order_are_aligned() -> None:
    wide = np.random.default_rng(1).lognormal(size=(90, 3)) * [1.0, 30.0, 0.01]
    names, orders = ["x", "y", "z"], {"a": [0, 1, 2], "b": [2, 0, 1], "c": [1, 0, 2]}
    for options in ({}, {"column_names": names}):
        expected = fit_federated([site(name, wide, column_names=names) for name in NAMES], **options)
        clients = [site(name, wide[:, at], column_names=[names[j] for j in at]) for name, at in orders.items()]
        found = fit_federated(clients[::-1], lmbda=None, **options)
        assert found.column_names == expected.column_names == names
        assert_array_equal(kernel_rows(found), kernel_rows(expected))


def test_labelled_columns_are_aligned_where_no_ranges_are_asked_for() -> None:
    pandas = pytest.importorskip("pandas")
    wide = pandas.DataFrame(np.random.default_rng(1).lognormal(size=(90, 2)) * [1.0, 30.0], columns=["x", "y"])
    options: dict[str, Any] = {"data_bounds": (1e-9, [1e6, 1e7]), "quantum": 2.0**-80}
    expected = fit_federated([wide[:40].to_numpy(), wide[40:].to_numpy()], "box-cox", **options)
    found = fit_federated([wide[:40], wide[40:][["y", "x"]]], "box-cox", **options)
    assert found.column_names == ["x", "y"]
    assert_array_equal(kernel_rows(found), kernel_rows(expected))
    server = Server(["a"], family="box-cox", **options)
    with pytest.raises(ProtocolError, match=r"the columns have labels, such as 'y', .* give the server column_names"):
        Client(wide[["y", "x"]], name="a").summands(server.request)
    Client(wide.set_axis([0, 1], axis=1), name="a").summands(server.request)  # default labels do not count as names


# --- counters -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("quantum", [None, 2.0**-80])
def test_rounds_and_bytes_are_counted(quantum: float | None) -> None:
    server, clients = conversation(0, quantum=quantum)
    sent = received = 0
    for number in itertools.count(1):
        assert (server.round, server.missing) == (number, NAMES)
        assert server.wants_total == (quantum is not None and number > 1)
        sent += 3 * len(server.request)
        assert (server.bytes_sent, server.bytes_received) == (sent, received)
        if server.wants_total:
            total = sum(client.summands(server.request) for client in clients)
            server.receive_total(total)
            received += 3 * total.nbytes
        else:
            for client in clients:
                answer = client.answer(server.request)
                server.receive(answer, sender=client.name)
                received += len(answer)
        assert server.missing == []
        server.close_round()
        if server.done:
            break
    assert (server.missing, server.wants_total) == ([], False)
    assert (server.bytes_sent, server.bytes_received) == (sent, received)
    assert number > 2


def test_details_of_a_fit_are_in_every_request() -> None:
    server = Server(NAMES, family="box-cox", shift=[1.0, 2.0], infinite="missing", column_names=["x", "y"])
    details = unpack(server.request, "server").details
    assert details == {
        "family": "box-cox", "clients": NAMES, "n_columns": 2, "column_names": ["x", "y"], "shift": [1.0, 2.0],
        "infinite": "missing",
    }  # fmt: skip
    plain = unpack(Server(["a"], data_bounds=(0.0, [1.0, 2.0]), quantum=0.5).request, "server").details
    assert (plain["n_columns"], plain["quantum"], "infinite" in plain) == (2, 0.5, False)
    assert unpack(Server(["a"], shift=[1.0, 2.0, 3.0], family="box-cox").request, "server").details["n_columns"] == 3
    assert unpack(Server(["a"]).request, "server").details["n_columns"] is None


@pytest.mark.parametrize(
    ("clients", "options", "error", "message"),
    [
        ("abc", {}, TypeError, "clients must be a sequence of names"),
        ([], {}, TypeError, "clients must be a sequence of names"),
        (["a", ""], {}, TypeError, "clients must be a sequence of names"),
        (["a", 1], {}, TypeError, "clients must be a sequence of names"),
        (["a", "b", "c", "b"], {}, ValueError, "clients has 'b' more than once"),
        (["a"], {"data_bounds": (0.0, [1.0, 2.0]), "column_names": ["x"]}, ValueError,
         "data_bounds has 2 columns, column_names has 1; give a name and bounds for each"),
        (["a"], {"data_bounds": 3.0}, ValueError, r"data_bounds must be \(low, high\)"),
        (["a"], {"data_bounds": (1.0, 1.0)}, ValueError, "low < high"),
        (["a"], {"data_bounds": (-0.5, 2.0), "shift": 0.5, "family": "box-cox"}, ValueError, "must be positive"),
        (["a"], {"column_names": ["x", "y"], "shift": [1.0, 2.0, 3.0], "family": "box-cox"}, ValueError, "shift"),
        (["a"], {"column_names": ["x", "y"], "lmbda": [1.0, 2.0, 3.0]}, ValueError, "lmbda"),
        (["a"], {"search": "secant"}, ValueError, "search must be"),
    ],
)  # fmt: skip
def test_options_that_contradict_each_other_are_refused(clients, options, error, message) -> None:
    with pytest.raises(error, match=message):
        Server(clients, **options)
    Server(["a"], data_bounds=(-0.4, 2.0), shift=0.5, family="box-cox")
