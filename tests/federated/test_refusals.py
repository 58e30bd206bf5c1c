"""What clients and server refuse: by name, and without having merged anything."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import powerkern as pk
import powerkern.sketch
from powerkern.federated import Client, Policy, ProtocolError, Server, fit_federated, pairwise_secrets, run
from powerkern.federated.messages import Kind, Message, as_body, pack, unpack
from powerkern.kernels.power_sums import fit as kernels
from powerkern.sketch import Range, sketch

ROWS = np.random.default_rng(0).lognormal(size=(90, 2))
NAMES = ["a", "b", "c"]
OPEN = Policy.open()


def site(name: str, rows: np.ndarray = ROWS, policy: Policy = OPEN, **options: object) -> Client:
    own = rows[NAMES.index(name) :: 3] if name in NAMES else rows
    return Client(own, name=name, policy=policy, **options)  # type: ignore[arg-type]


def conversation(rounds: int, **options: object) -> tuple[Server, list[Client]]:
    """A server in the round after so many."""
    server, clients = Server(NAMES, **options), [site(name) for name in NAMES]  # type: ignore[arg-type]
    for _ in range(rounds):
        for client in clients:
            server.receive(client.answer(server.request), sender=client.name)
        server.close_round()
    return server, clients


def changed(answer: bytes, sender: str, change: Callable[[Message], Message]) -> bytes:
    return pack(change(unpack(answer, sender)))


def with_body(body: object) -> Callable[[Message], Message]:
    return lambda message: message._replace(body=body)


def poked(place: tuple[int, ...], value: float) -> Callable[[Message], Message]:
    def poke(message: Message) -> Message:
        body = message.body.copy()
        body[place] = value
        return message._replace(body=body)

    return poke


def refuse_and_go_on(server: Server, clients: list[Client], bad: bytes, sender: str, match: str) -> None:
    """A refused message leaves no trace: the fit is bit for bit that of an undisturbed conversation."""
    missing = server.missing
    with pytest.raises(ProtocolError, match=match):
        server.receive(bad, sender=sender)
    assert server.missing == missing
    waiting = [client for client in clients if client.name in missing]
    for client in waiting:
        server.receive(client.answer(server.request), sender=client.name)
    server.close_round()
    fit = server.fit if server.done else run(server, clients)
    assert_array_equal(fit.lmbda, fit_federated(clients, protocol=PROTOCOL[server]).lmbda)


PROTOCOL: dict[Server, str] = {}


@pytest.fixture(params=["sketch", "rounds"])
def second_round(request: pytest.FixtureRequest) -> tuple[Server, list[Client], bytes]:
    """Server and clients in round 2, and the answer of client a."""
    server, clients = conversation(1, protocol=request.param)
    PROTOCOL[server] = request.param
    return server, clients, clients[0].answer(server.request)


Second = tuple[Server, list[Client], bytes]


def test_truncated(second_round: Second) -> None:
    server, clients, answer = second_round
    refuse_and_go_on(server, clients, answer[:-1], "a", "client 'a': the message has .* it was cut or joined")


def test_damaged(second_round: Second) -> None:
    server, clients, answer = second_round
    bad = answer[:-9] + bytes([answer[-9] ^ 1]) + answer[-8:]
    refuse_and_go_on(server, clients, bad, "a", "client 'a': the message is damaged")


def test_another_version(second_round: Second) -> None:
    server, clients, answer = second_round
    bad = answer[:4] + b"\x07\x00" + answer[6:]
    refuse_and_go_on(server, clients, bad, "a", "client 'a': the message has version 7")


def test_duplicate(second_round: Second) -> None:
    server, clients, answer = second_round
    server.receive(answer, sender="a")
    refuse_and_go_on(server, clients, answer, "a", "client 'a': it has answered round 2 already")


def test_late(second_round: Second) -> None:
    server, clients, _ = second_round
    old = pack(Message(Kind.RANGE, server._session, 1, "a", {}, np.empty(0)))
    refuse_and_go_on(server, clients, old, "a", "client 'a': the message is late: it answers round 1")


def test_early_or_of_another_kind(second_round: Second) -> None:
    server, clients, answer = second_round
    early = changed(answer, "a", lambda message: message._replace(round=3))
    refuse_and_go_on(server, clients, early, "a", "client 'a': the message does not answer what round 2 asks")
    server, clients = conversation(1, protocol="rounds")
    PROTOCOL[server] = "rounds"
    other = changed(clients[0].answer(server.request), "a", lambda message: message._replace(kind=Kind.RANGE))
    refuse_and_go_on(server, clients, other, "a", "does not answer")


def test_another_fit(second_round: Second) -> None:
    server, clients, answer = second_round
    bad = changed(answer, "a", lambda message: message._replace(session="0" * 32))
    refuse_and_go_on(server, clients, bad, "a", "client 'a': the message belongs to another fit")


def test_strangers_and_false_names(second_round: Second) -> None:
    server, clients, answer = second_round
    with pytest.raises(ProtocolError, match="client 'z' takes no part"):
        server.receive(answer, sender="z")
    refuse_and_go_on(server, clients, answer, "b", "client 'b': the message says that it comes from 'a'")


def test_after_the_end(second_round: Second) -> None:
    server, clients, answer = second_round
    run(server, clients)
    with pytest.raises(ProtocolError, match="client 'a': the message is late"):
        server.receive(answer, sender="a")
    with pytest.raises(ProtocolError, match="nothing is asked any more"):
        _ = server.request


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0, 0), (1, 0, 5), (1, 0, 11)])
def test_moments_that_are_not_finite(place: tuple[int, ...], value: float) -> None:
    server, clients = conversation(1, protocol="rounds")
    PROTOCOL[server] = "rounds"
    bad = changed(clients[0].answer(server.request), "a", poked(place, value))
    refuse_and_go_on(server, clients, bad, "a", f"client 'a': column {place[0]} has moments that are not finite")


@pytest.mark.parametrize(
    "change, match",
    [
        (poked((0, 0, 0), -1.0), "column 0 has moments"),
        (poked((1, 0, 1), 1e300), "column 1 has moments"),
        (poked((1, 0, 6), 1e3), "column 1 has moments"),
        (poked((1, 0, 11), -9.0), "column 1 has moments"),
        (poked((1, 0, 0), 31.0), "column 1 has another weight than the client announced"),
        (poked((1, 0, 0), 0.0), "column 1 has moments"),
        (lambda m: m._replace(body=m.body * 0.0), "column 0 has another weight than the client announced"),
        (poked((0, 0, 5), -1.0), "column 0 has moments"),
        (with_body(np.zeros((1, 1, 12))), "numbers of shape"),
        (with_body(np.zeros((2, 1, 12), np.uint32)), "numbers of shape"),
    ],
)
def test_moments_that_cannot_be(change: Callable[[Message], Message], match: str) -> None:
    server, clients = conversation(1, protocol="rounds")
    PROTOCOL[server] = "rounds"
    bad = changed(clients[0].answer(server.request), "a", change)
    refuse_and_go_on(server, clients, bad, "a", f"client 'a': .*{match}")


def forged_range(**cells: float) -> bytes:
    table = pk.sketch.range_of(ROWS).table.copy()
    for name, value in cells.items():
        table[1, getattr(kernels, name)] = value
    return Range("yeo-johnson", table, None, False).to_bytes()


@pytest.mark.parametrize(
    "data, match",
    [
        (b"no range", "not a range"),
        (forged_range(R_MIN=np.nan), "column 1 has a range that is not finite"),
        (forged_range(R_MAX=np.inf), "column 1 has a range that is not finite"),
        (forged_range(R_MIN=9.0, R_MAX=8.0), "column 1 has a range"),
        (forged_range(R_WEIGHT=-1.0), "column 1 has a range"),
        (forged_range(R_COUNT=0.0), "column 1 has a range"),
        (forged_range(R_LOGS=np.nan), "column 1 has a range"),
        (forged_range(R_LOGS=1e308), "column 1 has a range"),
        (forged_range(R_SQUARES=-1.0), "column 1 has a range"),
        (forged_range(R_WEIGHT=1e12), "column 1 has a weight of more than 1e\\+09"),
        (pk.sketch.range_of(ROWS, "box-cox").to_bytes(), "of family 'box-cox'"),
        (pk.sketch.range_of(ROWS[:, :1]).to_bytes(), "its range has 1 columns, not 2"),
    ],
)
def test_ranges_that_cannot_be(data: bytes, match: str) -> None:
    server, clients = conversation(0)
    PROTOCOL[server] = "sketch"
    bad = changed(clients[0].answer(server.request), "a", with_body(as_body(data)))
    refuse_and_go_on(server, clients, bad, "a", f"client 'a': .*{match}")


def test_a_range_that_box_cox_cannot_have_is_refused_by_name() -> None:
    server, clients = conversation(0, family="box-cox")
    table = pk.sketch.range_of(ROWS, "box-cox").table.copy()
    table[1, kernels.R_MIN] = -1.0
    forged = with_body(as_body(Range("box-cox", table, None, False).to_bytes()))
    with pytest.raises(ProtocolError, match=r"client 'a': .*column 1 has a range that is not finite or cannot be"):
        server.receive(changed(clients[0].answer(server.request), "a", forged), sender="a")


@pytest.mark.parametrize("count", [2**61, 2**62, np.iinfo(np.int64).max, np.iinfo(np.int64).min])
def test_sketches_of_more_than_64_bits_hold(count: int) -> None:
    server, clients = conversation(1)
    PROTOCOL[server] = "sketch"
    answer = clients[0].answer(server.request)
    own = sketch(ROWS, pk.sketch.Grid.from_bytes(unpack(server.request, "server").body.tobytes()))
    own.sums[:] = 0
    own.sums[:, 0] = count
    bad = changed(answer, "a", with_body(as_body(own.to_bytes())))
    refuse_and_go_on(server, clients, bad, "a", "client 'a': not a sketch")


def test_sketches_that_cannot_be() -> None:
    server, clients = conversation(1)
    PROTOCOL[server] = "sketch"
    answer = clients[0].answer(server.request)
    other = sketch(ROWS, pk.sketch.range_of(ROWS).grid(50.0))
    bad = changed(answer, "a", with_body(as_body(other.to_bytes())))
    with pytest.raises(ProtocolError, match="client 'a': its sketch is on another grid"):
        server.receive(bad, sender="a")
    bad = changed(answer, "a", with_body(as_body(b"PKSK")))
    refuse_and_go_on(server, clients, bad, "a", "client 'a': not a sketch")


# --- drop-out, columns --------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [0, 1])
def test_a_client_that_does_not_answer_is_named(rounds: int) -> None:
    server, clients = conversation(rounds)
    for client in clients[:2]:
        server.receive(client.answer(server.request), sender=client.name)
    assert server.missing == ["c"]
    with pytest.raises(ProtocolError, match=f"round {rounds + 1} cannot be closed: no answer from client 'c'"):
        server.close_round()
    with pytest.raises(ProtocolError, match="there is no fit yet"):
        _ = server.fit
    server.receive(clients[2].answer(server.request), sender="c")  # it was only slow
    server.close_round()


def test_clients_with_other_columns() -> None:
    with pytest.raises(ProtocolError, match="client '1': it has 1 columns, the fit has 2"):
        fit_federated([ROWS, ROWS[:, 0]])
    both = (("a", ["x", "y"]), ("b", ["x", "z"]))
    named = [Client(ROWS, name=name, column_names=names, policy=OPEN) for name, names in both]
    with pytest.raises(ProtocolError, match=r"client 'b': column 1 \('z'\) is 'y' in the fit"):
        fit_federated(named)
    with pytest.raises(ProtocolError, match=r"client 'a': column 0 \('x'\) is 'v' in the fit"):
        fit_federated(named, column_names=["v", "y"])


@pytest.mark.parametrize("details", [{}, {"n_columns": True}, {"n_columns": 2, "column_names": ["x"]}])
def test_a_client_that_does_not_say_which_columns(details: dict[str, object]) -> None:
    server, clients = conversation(0)
    PROTOCOL[server] = "sketch"
    bad = changed(clients[0].answer(server.request), "a", lambda message: message._replace(details=details))
    refuse_and_go_on(server, clients, bad, "a", "client 'a': the message is malformed")


# --- what clients refuse ------------------------------------------------------------------------------


def test_data_outside_the_domain_name_client_column_and_row() -> None:
    rows = ROWS.copy()
    rows[7, 1] = -1.0
    with pytest.raises(ProtocolError, match=r"client '1': column 1, row 7: the value is -1\.0"):
        fit_federated([ROWS, rows], "box-cox")
    rows[7, 1] = np.inf
    with pytest.raises(ProtocolError, match="client '1': column 1, row 7: the value is inf"):
        fit_federated([ROWS, rows])


def test_few_values_are_not_told_of_and_none_are() -> None:
    rows = ROWS.copy()
    rows[4:, 1] = np.nan
    policy = Policy.open(min_rows=5)
    with pytest.raises(ProtocolError, match="client 'few': column 1 has fewer than 5 values"):
        fit_federated([site("many", policy=policy), site("few", rows, policy=policy)])
    rows = np.where(np.isnan(rows[4:5]), np.nan, ROWS)
    fit = fit_federated([site("many", policy=policy), site("few", rows, policy=policy)])
    assert_array_equal(fit.n_obs, [180.0, 90.0])


def test_the_same_request_is_answered_alike_and_another_in_its_round_not_at_all() -> None:
    server, clients = conversation(1, protocol="rounds")
    request = server.request
    assert clients[0].answer(request) == clients[0].answer(request)
    with pytest.raises(ProtocolError, match="client 'a': another request was answered in round 2 already"):
        clients[0].answer(changed(request, "server", poked((0, 9), 0.123)))


@pytest.mark.parametrize(
    "change, match",
    [
        (poked((0, 9), np.nan), "NaN or infinite"),
        (poked((0, 0), 5.0), "columns other than 0 to 1"),
        (poked((0, 0), 1.0), "columns other than"),
        (poked((0, 8), 0.0), "a unit that is not positive"),
        (poked((0, 8), 1e-300), "a frame that is not that of its bounds"),
        (poked((0, 3), 1.0), "a frame that is not that of its bounds"),
        (poked((0, 4), 1e300), "a frame that is not that of its bounds"),
        (poked((0, 5), 0.9), "a frame that is not that of its bounds"),
        (poked((0, 1), 1e9), "bounds that no values can have"),
        (poked((0, 2), 1e-9), "bounds that no values can have"),
        (with_body(np.zeros((1, 9))), "not a table of exponents"),
        (lambda m: m._replace(kind=Kind.FIT), "is no request"),
        (lambda m: m._replace(details={**m.details, "clients": ["b"]}), "not among the clients"),
        (lambda m: m._replace(details={**m.details, "clients": ["a", {}]}), "not among the clients"),
        (lambda m: m._replace(details={**m.details, "secure": True}), "no secrets"),
        (lambda m: m._replace(details={**m.details, "family": "log"}), "there is no family 'log'"),
    ],
)
def test_requests_that_make_no_sense(change: Callable[[Message], Message], match: str) -> None:
    server, clients = conversation(1, protocol="rounds")
    with pytest.raises(ProtocolError, match=f"client 'a': .*{match}"):
        clients[0].answer(changed(server.request, "server", change))


def test_announcements() -> None:
    server, clients = conversation(0)
    with pytest.raises(ProtocolError, match="client 'a': a RANGE request is no announcement"):
        clients[0].accept(server.request)
    run(server, clients)
    nonsense = changed(server.announcement, "server", lambda m: m._replace(details={"fit": "{}"}))
    with pytest.raises(ProtocolError, match="client 'a': the announcement is not a fit"):
        clients[0].accept(nonsense)
    with pytest.raises(ProtocolError, match="client 'z': the fit has 2 columns, the client has 1"):
        site("z", ROWS[:, :1]).accept(server.announcement)


# --- what clients with secrets refuse -----------------------------------------------------------------


def secret_clients(n: int = 3, **options: object) -> list[Client]:
    dealt = pairwise_secrets(NAMES)
    policy = Policy.open(**{"masks": True, "min_sites": 3, **options})
    return [site(name, secrets=dealt[name], policy=policy) for name in NAMES[:n]]


SECURE = {"bounds": ([0.0, 0.0], [60.0, 60.0]), "secure": True}


def test_clients_with_secrets_send_nothing_in_the_open() -> None:
    with pytest.raises(ProtocolError, match="client 'a': its policy allows masked sums only"):
        fit_federated(secret_clients())
    with pytest.raises(ProtocolError, match="client 'a': it has no secrets"):
        fit_federated([site(name) for name in NAMES], **SECURE)


def test_a_range_is_never_asked_under_masks() -> None:
    client = secret_clients()[0]
    request = Message(
        Kind.RANGE, "s", 1, "server", {"family": "box-cox", "clients": NAMES, "secure": True}, np.empty(0)
    )
    with pytest.raises(ProtocolError, match="client 'a': a range is no sum"):
        client.answer(pack(request))


def test_too_few_clients_to_hide_among() -> None:
    with pytest.raises(ProtocolError, match="client 'a': 2 clients take part; its sums need at least 3"):
        fit_federated(secret_clients(2), **SECURE)
    fit_federated(secret_clients(2, min_sites=2), **SECURE)


def test_strangers_share_no_secret() -> None:
    with pytest.raises(ProtocolError, match="client 'a': it shares no secret with 'd'"):
        fit_federated([*secret_clients(), site("d", secrets={"a": bytes(16)})], **SECURE)


@pytest.mark.parametrize("protocol", ["sketch", "rounds"])
def test_values_beyond_the_bounds(protocol: str) -> None:
    with pytest.raises(
        ProtocolError, match=r"^client '[abc]': column 1 has values outside 0 to 0\.5, the bounds of this fit"
    ):
        fit_federated(secret_clients(), bounds=([0.0, 0.0], [60.0, 0.5]), secure=True, protocol=protocol)


def test_more_rows_than_announced() -> None:
    with pytest.raises(ProtocolError, match="client 'a': a column has more values, or weight, than 16"):
        fit_federated(secret_clients(), **SECURE, max_weight=10, protocol="sketch")


def test_weights_that_cannot_be_masked() -> None:
    dealt = pairwise_secrets(NAMES)
    heavy = [site(name, secrets=dealt[name], sample_weight=np.full(30, 1e60)) for name in NAMES]
    with pytest.raises(ProtocolError, match="client 'a': sums are too large to be masked"):
        fit_federated(heavy, **SECURE, protocol="rounds")


# --- arguments ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, match",
    [
        ({"protocol": "round"}, "protocol must be one of 'sketch', 'rounds', got 'round'"),
        ({"family": "boxcox"}, "did you mean 'box-cox'"),
        ({"search": "halley"}, "search must be one of"),
        ({"grid": -1}, "grid is a number of points"),
        ({"grid": 1025}, "grid is a number of points, 0 to 1024"),
        ({"max_rounds": 2}, "max_rounds must be a whole number of at least 5"),
        ({"max_rounds": 9.5}, "max_rounds must be a whole number"),
        ({"max_weight": 0.0}, "max_weight must be a positive number"),
        ({"max_weight": np.nan}, "max_weight must be a positive number"),
        ({"column_names": ["x", "x"]}, "column_names has 'x' more than once"),
        ({"bounds": (1.0, 2.0, 3.0)}, "bounds must be"),
        ({"bounds": 3}, "bounds must be"),
        ({"bounds": (1.0, 0.0)}, "low < high"),
        ({"bounds": (0.0, np.inf)}, "finite"),
        ({"bounds": (0.0, 1.0), "family": "box-cox"}, "must be positive"),
        ({"bounds": (0.0, 1.0), "column_names": ["x", "y"]}, "bounds are of 1 columns"),
    ],
)
def test_arguments_of_the_server(options: dict[str, object], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Server(NAMES, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["min_rows", "min_sites", "bins", "rows_per_bin", "questions", "sessions"])
@pytest.mark.parametrize("value", [0, 1.5, "3", True])
def test_numbers_of_a_policy(option: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{option} is a whole number of at least 1"):
        Policy(**{option: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options, match",
    [
        ({"families": ["log"]}, "families is a sequence of 'box-cox', 'yeo-johnson'"),
        ({"kinds": "code"}, "kinds is a sequence of 'code', 'range', 'moments', 'sketch'"),
        ({"largest_exponent": 0.0}, "largest_exponent is a positive number"),
        ({"bounds": (1.0, 0.0)}, "low < high"),
    ],
)
def test_choices_of_a_policy(options: dict[str, object], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Policy(**options)  # type: ignore[arg-type]


def test_the_strict_policy_wants_secrets() -> None:
    with pytest.raises(ValueError, match=r"client 'a': its policy allows masked sums only, which need secrets"):
        Client(ROWS, name="a")
    with pytest.raises(TypeError, match="client 'a': policy must be a Policy, got str"):
        Client(ROWS, name="a", policy="open")  # type: ignore[arg-type]


def test_one_table_is_not_a_list_of_sites() -> None:
    with pytest.raises(TypeError, match="clients is one table"):
        fit_federated(ROWS)


def test_names_of_clients() -> None:
    with pytest.raises(TypeError, match="sequence of names"):
        Server("abc")
    with pytest.raises(ValueError, match="'a' more than once"):
        Server(["a", "a"])
    with pytest.raises(TypeError, match="name is what others call the client"):
        Client(ROWS, name="")
    with pytest.raises(TypeError, match="client 'a': secrets must be a dict"):
        Client(ROWS, name="a", secrets=[bytes(16)])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="column_names is one string"):
        Server(NAMES, column_names="xy")
    with pytest.raises(TypeError, match="secure must be True or False"):
        Server(NAMES, secure="no")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="client 'a': the secret shared with 'b' must be at least 16 bytes"):
        Client(ROWS, name="a", secrets={"b": b"short"})
