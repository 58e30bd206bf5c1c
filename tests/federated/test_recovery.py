"""Totals that survive the loss of sites: the right total whoever is lost when, and never two of them."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from powerkern.federated import pairwise_secrets, recovery, secure, shamir
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
