"""Totals that survive the loss of sites: the right total whoever is lost when, and never two of them."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import powerkern as pk
from powerkern.federated import Client, Policy, ProtocolError, Server, pairwise_secrets, recovery, secure, shamir
from powerkern.federated.messages import SERVER, Kind, Message, as_body, pack, unpack
from powerkern.federated.recovery import Member, RecoveryError, threshold

NAMES = ["basel", "graz", "jena", "kiel", "ulm"]
OPENING, REQUEST = b"session and nonces", b"request with all sharings"


class Sites:
    """Sites with some numbers each, and what they send in the three rounds."""

    def __init__(self, names: list[str] = NAMES) -> None:
        secrets = pairwise_secrets(names)
        self.numbers = {name: [100 * k + 7, -(2**k), 2**256 + k] for k, name in enumerate(names)}
        self.members = {
            name: Member(name, secrets[name], random.Random(k).randbytes(32), OPENING) for k, name in enumerate(names)
        }

    def sharings(self, names: list[str] = NAMES) -> dict[str, bytes]:
        return {name: self.members[name].sharing() for name in names}

    def answers(self, names: list[str], sharings: dict[str, bytes]) -> dict[str, secure.Digits]:
        encoded = {name: secure.encode(self.numbers[name]) for name in names}
        return {name: self.members[name].masked(encoded[name], sharings, REQUEST) for name in names}

    def unmaskings(self, names: list[str], sharings: dict[str, bytes], answered: list[str]) -> dict[str, bytes]:
        return {name: self.members[name].unmasking(sharings, answered) for name in names}

    def sum_of(self, names: list[str]) -> list[int]:
        return [sum(column) for column in zip(*(self.numbers[name] for name in names), strict=True)]


def conversation(sites: Sites, shared: list[str], answered: list[str], helping: list[str]) -> list[int]:
    sharings = sites.sharings(shared)
    answers = sites.answers(answered, sharings)
    unmaskings = sites.unmaskings(helping, sharings, answered)
    return secure.decode(recovery.total(NAMES, sharings, answers, unmaskings, REQUEST))


# --- shares of a secret -------------------------------------------------------------------------------


@given(st.binary(min_size=32, max_size=32), st.integers(1, 9), st.integers(0, 4), st.randoms())
def test_so_many_points_tell_the_secret_and_fewer_do_not(
    secret: bytes, needed: int, more: int, chance: random.Random
) -> None:
    points = shamir.split(secret, needed, needed + more, b"seed")
    some = dict(chance.sample(list(enumerate(points, 1)), needed))
    assert shamir.join(some) == secret
    if needed > 1:
        some.popitem()
        assert shamir.join(some) != secret


def test_fewer_points_go_with_every_secret() -> None:
    """Two of three points: for any secret there is a third point, so that they tell nothing."""
    points = shamir.split(b"\1" * 32, 3, 3, b"seed")
    for wanted in (bytes(32), b"\7" * 32, b"\xff" * 32):
        # the value at 3 of the parabola through (0, wanted) and the two points, by Lagrange's formula
        known = {0: int.from_bytes(wanted, "little"), 1: _number(points[0]), 2: _number(points[1])}
        third = (known[0] - 3 * known[1] + 3 * known[2]) % shamir.PRIME
        assert shamir.join({1: points[0], 2: points[1], 3: third.to_bytes(33, "little")}) == wanted


def _number(point: bytes) -> int:
    return int.from_bytes(point, "little")


def test_the_modulus_is_prime_and_the_smallest_above_all_secrets() -> None:
    def is_prime(n: int) -> bool:
        odd, twos = n - 1, 0
        while odd % 2 == 0:
            odd, twos = odd // 2, twos + 1
        for base in range(2, 60):  # Miller and Rabin
            powers = [pow(base, odd << k, n) for k in range(twos)]
            if powers[0] != 1 and n - 1 not in powers:
                return False
        return True

    assert is_prime(shamir.PRIME)
    assert not any(is_prime(2**256 + k) for k in range(1, 297, 2))


# --- sites are lost -----------------------------------------------------------------------------------


def test_nobody_is_lost() -> None:
    sites = Sites()
    assert conversation(sites, NAMES, NAMES, NAMES) == sites.sum_of(NAMES)


@pytest.mark.parametrize("lost", NAMES)
@pytest.mark.parametrize("phase", ["before the sharing", "before the answer", "after the answer"])
def test_one_of_five_is_lost_in_any_phase(lost: str, phase: str) -> None:
    sites, left = Sites(), [name for name in NAMES if name != lost]
    shared = left if phase == "before the sharing" else NAMES
    answered = NAMES if phase == "after the answer" else left
    assert conversation(sites, shared, answered, left) == sites.sum_of(answered)


def test_three_of_ten_are_lost_one_in_each_phase() -> None:
    names = [f"site {k}" for k in range(10)]
    sites = Sites(names)
    assert threshold(10) == 7
    sharings = sites.sharings(names[1:])
    answers = sites.answers(names[2:], sharings)
    unmaskings = sites.unmaskings(names[3:], sharings, names[2:])
    got = secure.decode(recovery.total(names, sharings, answers, unmaskings, REQUEST))
    assert got == sites.sum_of(names[2:])


def test_words_of_sketches_are_recovered_too() -> None:
    sites = Sites()
    sharings = sites.sharings()
    words = {name: np.arange(-k, 8 - k) for k, name in enumerate(NAMES)}
    answers = {
        name: sites.members[name].masked(secure.encode_words(words[name]), sharings, REQUEST) for name in NAMES[1:]
    }
    total = recovery.total(NAMES, sharings, answers, sites.unmaskings(NAMES[1:], sharings, NAMES[1:]), REQUEST)
    assert_array_equal(secure.decode_words(total), sum(words[name] for name in NAMES[1:]))


@pytest.mark.parametrize("n", range(1, 200))
def test_the_threshold_is_more_than_two_thirds(n: int) -> None:
    assert 2 * n < 3 * threshold(n) <= 2 * n + 3
    assert threshold(n) <= n


def test_too_few_are_left() -> None:
    sites = Sites()
    sharings = sites.sharings()
    answers = sites.answers(NAMES, sharings)
    helping = sites.unmaskings(NAMES[:3], sharings, NAMES)
    with pytest.raises(RecoveryError, match="3 of 5 sites are left; 4 are needed"):
        recovery.total(NAMES, sharings, answers, helping, REQUEST)
    with pytest.raises(RecoveryError, match="3 of 5 sites are said to have answered; a total is told for 4 or more"):
        sites.members["basel"].unmasking(sharings, NAMES[:3])


# --- what the server can learn ------------------------------------------------------------------------


def points_of(text: bytes) -> list[bytes]:
    return [text[i : i + shamir.POINT_BYTES] for i in range(0, len(text), shamir.POINT_BYTES)]


def test_an_answer_that_comes_late_stays_covered() -> None:
    """The server says that ulm is lost, gets the total of the others, and has ulm's answer after all.

    With it the total of all would tell ulm's numbers by difference. Ulm's own mask is in the way: no site told a point
    of it, and what the masks of pairs leave of the answer is not the numbers.
    """
    sites, others = Sites(), NAMES[:-1]
    sharings = sites.sharings()
    answers = sites.answers(NAMES, sharings)
    helping = sites.unmaskings(others, sharings, others)
    kept = {name: answers[name] for name in others}
    assert secure.decode(recovery.total(NAMES, sharings, kept, helping, REQUEST)) == sites.sum_of(others)
    with pytest.raises(RecoveryError, match="false point of 'ulm'"):  # points of the key are none of the mask
        recovery.total(NAMES, sharings, answers, helping, REQUEST)
    told = {name: dict(zip(sorted(sharings), points_of(text), strict=True)) for name, text in helping.items()}
    key = shamir.join({NAMES.index(name) + 1: told[name]["ulm"] for name in others})
    assert key == sites.members["ulm"]._key
    parsed = recovery._parsed("ulm", sharings["ulm"], NAMES)
    masks = recovery._masks_of_lost("ulm", parsed, key, others, REQUEST, answers["ulm"].shape)
    bare = secure.add([answers["ulm"], *(-mask for mask in masks)])
    bits = np.unpackbits(np.ascontiguousarray(bare - secure.encode(sites.numbers["ulm"])).view(np.uint8))
    assert abs(bits.mean() - 0.5) < 5 * 0.5 / np.sqrt(bits.size)


@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_no_two_sets_of_sites_can_be_totalled(n: int) -> None:
    """Two totals need both secrets of a site that is in one set and not in the other.

    Whatever the server tells each site, a site tells one point only, so that one of both secrets stays unknown.
    """
    names = [str(k) for k in range(n)]
    sites = Sites(names)
    sharings = sites.sharings(names)
    sets = [list(s) for size in range(threshold(n), n + 1) for s in itertools.combinations(names, size)]
    for one, other in itertools.combinations(sets, 2):
        victim = min(set(one) ^ set(other))
        for told in itertools.product([one, other], repeat=n):  # what the server says to each
            found: tuple[set[bytes], set[bytes]] = set(), set()
            for name, answered in zip(names, told, strict=True):
                if name in answered:
                    point = points_of(sites.members[name].unmasking(sharings, answered))[names.index(victim)]
                    found[victim not in answered].add(point)
            assert min(map(len, found)) < threshold(n)


def test_what_a_site_sends_tells_nothing_without_its_own_mask() -> None:
    """All seeds of pairs known to the server: the answer still looks random."""
    sites = Sites()
    sharings = sites.sharings()
    zeros = secure.encode([0] * 400)
    member = sites.members["jena"]
    answer = member.masked(zeros, sharings, REQUEST)
    masks = [
        recovery._stream(member._mask_seed(other), REQUEST, zeros.shape) * (1 if other > "jena" else -1)
        for other in NAMES
        if other != "jena"
    ]
    bare = secure.add([answer, *(-mask for mask in masks)])
    bits = np.unpackbits(np.ascontiguousarray(bare).view(np.uint8))
    assert abs(bits.mean() - 0.5) < 5 * 0.5 / np.sqrt(bits.size)


def test_another_context_or_secret_gives_other_masks() -> None:
    seeds = {"b": b"s" * 32}
    digits = secure.encode([0])
    sent = []
    for own, opening, request in [(b"o", b"1", b"r"), (b"p", b"1", b"r"), (b"o", b"2", b"r"), (b"o", b"1", b"q")]:
        a, b = Member("a", seeds, own * 32, opening), Member("b", {"a": b"s" * 32}, b"x" * 32, opening)
        sent.append(a.masked(digits, {"a": a.sharing(), "b": b.sharing()}, request).tobytes())
    assert len(set(sent)) == 4


# --- sites that lie -----------------------------------------------------------------------------------


def changed(text: bytes, at: int) -> bytes:
    return text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :]


def test_a_false_point_names_its_sender() -> None:
    sites = Sites()
    sharings = sites.sharings()
    answers = sites.answers(NAMES, sharings)
    helping = sites.unmaskings(NAMES, sharings, NAMES)
    helping["kiel"] = changed(helping["kiel"], 40)
    with pytest.raises(RecoveryError, match="'kiel' sent a false point of 'graz'"):
        recovery.total(NAMES, sharings, answers, helping, REQUEST)
    helping["kiel"] = b""
    with pytest.raises(RecoveryError, match="'kiel' sent 0 bytes instead of a point for each of 5 sites"):
        recovery.total(NAMES, sharings, answers, helping, REQUEST)


@pytest.mark.parametrize("at", range(0, recovery._HEAD + 4 * recovery._ENTRY, 7))
@pytest.mark.parametrize("lost", ["graz", "ulm"])
def test_a_false_sharing_names_its_sender(at: int, lost: str) -> None:
    """A bit of it is changed: someone notices and says of whom, or nothing depends on it."""
    names = NAMES[1:]
    sites = Sites(names)
    honest, left = sites.sharings(names), [name for name in names if name != lost]
    sharings = {**honest, "graz": changed(honest["graz"], at)}

    def told() -> list[int]:
        answers = sites.answers(left, sharings)
        helping = sites.unmaskings(left, sharings, left)
        return secure.decode(recovery.total(names, sharings, answers, helping, REQUEST))

    try:
        assert told() == sites.sum_of(left)
    except RecoveryError:
        with pytest.raises(RecoveryError, match="graz"):
            told()


def test_a_sharing_of_another_length_is_refused() -> None:
    sites = Sites()
    sharings = sites.sharings() | {"graz": b"1234"}
    with pytest.raises(RecoveryError, match="the sharing of 'graz' has 4 bytes instead of"):
        sites.answers(["ulm"], sharings)


def test_sites_that_took_no_part_are_not_said_to_have_answered() -> None:
    sites = Sites()
    sharings = sites.sharings()
    for answered in ([*NAMES, "stranger"], NAMES[1:]):
        with pytest.raises(RecoveryError, match="did not take part, or this one did not"):
            sites.members["basel"].unmasking(sharings, answered)


def test_different_secrets_are_noticed() -> None:
    sites, others = Sites(), Sites()
    sharings = sites.sharings() | {"graz": others.members["graz"].sharing()}
    with pytest.raises(RecoveryError, match="'ulm' and 'graz' have different secrets"):
        sites.answers(["ulm"], sharings)


# --- whole fits ---------------------------------------------------------------------------------------

ROWS = np.random.default_rng(0).lognormal(size=(500, 2))
PARTS = dict(zip(NAMES, np.split(ROWS, [50, 150, 260, 400]), strict=True))
WILLING = Policy(kinds=("code", "moments", "sketch"), bins=4096, rows_per_bin=1, rounding=0.0)
PHASES = ["OPENING", "CODE", "sums", "UNMASK"]


def clients_of(names: list[str] = NAMES, **options: Any) -> dict[str, Client]:
    secrets = pairwise_secrets(names)
    return {name: Client(PARTS[name], name=name, secrets=secrets[name], policy=WILLING, **options) for name in names}


def server_of(names: list[str] = NAMES, **options: Any) -> Server:
    return Server(names, family="box-cox", secure=True, recover=True, **options)


def phase(server: Server) -> str:
    kind = server._asked.kind.name
    return kind if kind in PHASES else "sums" if server._recovery is not None else "later"


def serve(server: Server, clients: dict[str, Client], killed: str, when: str, lose: bool = True) -> None:
    """The whole conversation; one client is dead from a phase on."""
    dead = False
    while not server.done:
        dead = dead or phase(server) == when
        for name in server.missing:
            if not (dead and name == killed):
                server.receive(clients[name].answer(server.request), sender=name)
        for name in server.missing if lose else []:
            server.lose(name)
        server.close_round()


def lambdas(names: list[str]) -> np.ndarray:
    return pk.fit(np.concatenate([PARTS[name] for name in names]), "box-cox").lmbda


@pytest.mark.parametrize("protocol", ["sketch", "rounds"])
@pytest.mark.parametrize("killed", ["basel", "jena"])
@pytest.mark.parametrize("when", PHASES)
def test_a_fit_goes_on_without_a_client_that_dies(protocol: str, killed: str, when: str) -> None:
    server, others = server_of(protocol=protocol), [name for name in NAMES if name != killed]
    if protocol == "rounds" and when == "UNMASK":  # it is in the total: every later question is of it too
        with pytest.raises(ProtocolError, match=f"cannot go on without client '{killed}': its masks, or a total"):
            serve(server, clients_of(), killed, when)
        return
    serve(server, clients_of(), killed, when)
    assert np.abs(server.fit.lmbda - lambdas(NAMES if when == "UNMASK" else others)).max() < 1e-10


def test_a_client_that_dies_after_the_first_total_ends_the_fit() -> None:
    server = server_of(protocol="rounds")
    with pytest.raises(ProtocolError, match="cannot go on without client 'jena': its masks, or a total that it is in"):
        serve(server, clients_of(), "jena", "later")


@pytest.mark.parametrize("when", PHASES)
def test_a_client_that_comes_back_is_in_the_fit(when: str) -> None:
    """Nobody says that it is lost: the round stays open, and the client answers when it is back."""
    server, clients = server_of(), clients_of()
    with pytest.raises(ProtocolError, match="cannot be closed: no answer from client 'jena'"):
        serve(server, clients, "jena", when, lose=False)
    serve(server, clients, "jena", "never")
    assert np.abs(server.fit.lmbda - lambdas(NAMES)).max() < 1e-10


def test_nobody_is_lost_without_need() -> None:
    server, clients = server_of(), clients_of()
    server.receive(clients["ulm"].answer(server.request), sender="ulm")
    with pytest.raises(ProtocolError, match="client 'ulm' is not missing in round 1"):
        server.lose("ulm")
    server.lose("jena")
    with pytest.raises(ProtocolError, match="client 'jena' is not missing"):
        server.lose("jena")
    with pytest.raises(ProtocolError, match="without client 'graz' fewer than 4 of 5 clients are left"):
        server.lose("graz")
    with pytest.raises(ProtocolError, match="client 'jena' takes no part in this fit"):
        server.receive(clients["jena"].answer(server.request), sender="jena")


def test_servers_that_cannot_recover_say_so() -> None:
    with pytest.raises(ValueError, match="it needs secure=True"):
        Server(NAMES, recover=True)
    with pytest.raises(ProtocolError, match="cannot go on without client 'ulm': its masks"):
        Server(NAMES, secure=True).lose("ulm")
    with pytest.raises(ProtocolError, match="cannot go on without client 'ulm': recover=True is for that"):
        Server(NAMES).lose("ulm")


# --- servers that deviate -----------------------------------------------------------------------------


def until(server: Server, clients: dict[str, Client], when: str) -> dict[str, dict[str, bytes]]:
    """Go on until a phase is open; the answers, by phase."""
    heard: dict[str, dict[str, bytes]] = {}
    while phase(server) != when:
        told = heard[phase(server)] = {name: clients[name].answer(server.request) for name in server.missing}
        for name, answer in told.items():
            server.receive(answer, sender=name)
        server.close_round()
    return heard


def altered(request: bytes, change: Callable[[Message], Message]) -> bytes:
    return pack(change(unpack(request, SERVER)))


def names_as_body(names: list[str]) -> np.ndarray:
    return as_body(json.dumps(names).encode())


def test_a_server_that_says_that_a_client_is_lost_learns_nothing_of_it() -> None:
    """It has jena's answer, says that it has not, and asks again for the masks of all: nobody tells."""
    server, clients = server_of(), clients_of()
    heard = until(server, clients, "UNMASK")
    assert "jena" in heard["sums"]
    others = [name for name in NAMES if name != "jena"]
    lying = altered(server.request, lambda m: m._replace(body=names_as_body(others)))
    for name in others:
        clients[name].answer(lying)
        with pytest.raises(ProtocolError, match="another request was answered in round 4 already"):
            clients[name].answer(server.request)
        later = altered(server.request, lambda m: m._replace(round=5))
        with pytest.raises(ProtocolError, match="took part in a fit with other sites"):
            clients[name].answer(later)
        same = altered(lying, lambda m: m._replace(round=6))
        with pytest.raises(ProtocolError, match="masks of this fit were told of already, for one set of sites"):
            clients[name].answer(same)


def test_after_a_total_without_it_a_client_is_in_no_other() -> None:
    """The same rows, another session, all five: the difference to the four would be jena."""
    memory: dict[str, dict[str, bytes]] = {name: {} for name in NAMES}
    secrets = pairwise_secrets(NAMES)

    def again() -> dict[str, Client]:
        return {
            name: Client(PARTS[name], name=name, secrets=secrets[name], policy=WILLING, memory=memory[name])
            for name in NAMES
        }

    serve(server_of(), again(), "jena", "sums")
    for recover in (True, False):
        server = Server(NAMES, family="box-cox", secure=True, recover=recover)
        with pytest.raises(ProtocolError, match="took part in a fit with other sites"):
            serve(server, again(), "nobody", "never")
    server = server_of()  # without jena again, it may
    serve(server, again(), "jena", "sums")
    assert server.done


def test_sums_in_a_session_with_recovery_are_covered_or_of_all() -> None:
    """The plain question after the opening is of all five; then no total without jena is told."""
    server, clients = server_of(), clients_of()
    until(server, clients, "sums")

    def plain(m: Message) -> Message:
        return m._replace(details={k: v for k, v in m.details.items() if k != "recovery"})

    others = [name for name in NAMES if name != "jena"]
    ask = altered(server.request, lambda m: m._replace(kind=Kind.UNMASK, round=m.round + 1, body=names_as_body(others)))
    for name in others:
        clients[name].answer(altered(server.request, plain))
        with pytest.raises(ProtocolError, match="took part in a fit with other sites"):
            clients[name].answer(ask)


def test_sums_are_not_told_once_masks_are() -> None:
    server, clients = server_of(protocol="rounds"), clients_of()
    until(server, clients, "sums")
    kept = server.request
    serve(server, clients, "nobody", "never")
    ask = altered(kept, lambda m: m._replace(round=40))
    with pytest.raises(ProtocolError, match="masks of this fit were told of already"):
        clients["ulm"].answer(ask)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[1]",
        b'["ulm", "ulm"]',
        b"[" * 100_000,
        b'["ulm"',
        b'["ulm"]',
        b'["graz"]',
        b'["ulm", "linz", "bern"]',
    ],
)
def test_nonsense_about_who_answered_is_refused(body: bytes) -> None:
    server, clients = server_of(), clients_of()
    until(server, clients, "UNMASK")
    with pytest.raises(ProtocolError, match=r"^client 'ulm': "):
        clients["ulm"].answer(altered(server.request, lambda m: m._replace(body=as_body(body))))


@pytest.mark.parametrize("sharing", [b"", b"1234", bytes(recovery._HEAD + 5 * recovery._ENTRY)])
def test_a_client_that_opens_with_nonsense_is_named(sharing: bytes) -> None:
    server, clients = server_of(), clients_of()
    for name in NAMES:
        answer = unpack(clients[name].answer(server.request), name)
        if name == "graz":
            answer = answer._replace(body=as_body(answer.body.tobytes()[:32] + sharing))
        server.receive(pack(answer), sender=name)
    server.close_round()
    with pytest.raises(ProtocolError, match="'graz'"):
        serve(server, clients, "nobody", "never")


@pytest.mark.parametrize("text", ["zz", "0"])
def test_openings_that_are_not_hexadecimal_are_refused(text: str) -> None:
    server, clients = server_of(), clients_of()
    until(server, clients, "sums")

    def change(m: Message) -> Message:
        openings = dict(m.details["openings"])
        openings["graz"] += text
        return m._replace(details={**m.details, "openings": openings})

    with pytest.raises(ProtocolError, match="an opening that is not hexadecimal"):
        clients["ulm"].answer(altered(server.request, change))


def test_a_false_point_ends_the_fit_and_names_its_sender() -> None:
    server, clients = server_of(), clients_of()
    until(server, clients, "UNMASK")
    for name in NAMES:
        answer = unpack(clients[name].answer(server.request), name)
        if name == "kiel":
            answer = answer._replace(body=as_body(changed(answer.body.tobytes(), 0)))
        server.receive(pack(answer), sender=name)
    with pytest.raises(ProtocolError, match="cannot be merged: 'kiel' sent a false point of 'basel'"):
        server.close_round()


def test_a_fit_among_too_few_survivors_is_refused() -> None:
    """The policy counts those that are left."""
    names = NAMES[:4]
    secrets = pairwise_secrets(names)
    strict = Policy(kinds=("code", "moments"), min_sites=4)
    clients = {name: Client(PARTS[name], name=name, secrets=secrets[name], policy=strict) for name in names}
    with pytest.raises(ProtocolError, match="3 clients take part; its sums need at least 4 to hide among"):
        serve(server_of(names), clients, "jena", "sums")
