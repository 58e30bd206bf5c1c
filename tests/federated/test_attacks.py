"""Attacks on federated fits: each works where the policy lets it, and is refused or bounded where it is strict.

`Attacker` plays a server that asks what it likes. It knows all that a server sees, and is helped where a real one would
have to guess.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import least_squares

import powerkern as pk
from powerkern.federated import Client, Policy, ProtocolError, Server, fit_federated, pairwise_secrets, run, secure
from powerkern.federated.messages import Kind, Message, as_body, pack, unpack
from powerkern.federated.policy import codes_above, codes_below
from powerkern.federated.pool import frame_between
from powerkern.kernels.likelihood import partial_moments
from powerkern.kernels.likelihood import score as lk
from powerkern.kernels.power_sums import fit as kernels
from powerkern.sketch import Grid, Range, Sketch

SITES = ["a", "b", "c", "d", "e"]
#: Everything that a fit can ask for, under masks: what there was before there were policies.
PERMISSIVE = Policy.open(masks=True, bins=65536)


def sites(x: np.ndarray, policy: Policy | None = None, names: Sequence[str] = SITES) -> list[Client]:
    """Clients with the rows of x, as evenly as can be."""
    dealt = pairwise_secrets(names)
    parts = [x[i :: len(names)] for i in range(len(names))]
    return [
        Client(part, name=name, secrets=dealt[name], policy=policy, n_threads=1)
        for name, part in zip(names, parts, strict=True)
    ]


class Attacker:
    """A server that asks what it likes."""

    def __init__(self, clients: Sequence[Client], family: str = "box-cox", session: str = "s") -> None:
        self.clients, self.session, self.round = clients, session, 1
        self.details: dict[str, Any] = {"family": family, "clients": [c.name for c in clients], "secure": True}
        bodies = self.ask(Kind.OPENING, np.empty(0))
        self.details["openings"] = {
            client.name: body.tobytes().hex() for client, body in zip(clients, bodies, strict=True)
        }

    def ask(self, kind: Kind, body: np.ndarray) -> list[np.ndarray]:
        request = pack(Message(kind, self.session, self.round, "server", self.details, body))
        self.round += 1
        return [unpack(client.answer(request), client.name).body for client in self.clients]

    def power_sums(self, grid: Grid) -> Sketch:
        bodies = self.ask(Kind.SKETCH, as_body(grid.to_bytes()))
        return Sketch.of_words(grid, secure.decode_words(secure.add(bodies)))

    def moments(self, low: float, high: float, lmbda: Sequence[float]) -> np.ndarray:
        """Totals of all sums at some lambdas: (lambdas, N_SHARE), in rows."""
        body = moments_request(low, high, lmbda)
        numbers = secure.decode(secure.add(self.ask(Kind.MOMENTS, body)))
        return np.array([n / 2**secure.FRACTION for n in numbers]).reshape(len(lmbda), -1)


def moments_request(low: float, high: float, lmbda: Sequence[float]) -> np.ndarray:
    frame = frame_between(0.0, low, high, math.sqrt(low * high))
    return np.array([[0.0, low, high, *map(float, frame), *(np.asarray(lmbda) * frame.sigma)]])


def n_recovered(found: np.ndarray, x: np.ndarray) -> int:
    """Rows that are known to a relative 1e-6."""
    found = np.sort(found[np.isfinite(found)])
    if found.size == 0:
        return 0
    at = np.clip(np.searchsorted(found, x), 1, max(1, found.size - 1))
    near = np.minimum(abs(found[at - 1] - x), abs(found[np.minimum(at, found.size - 1)] - x))
    return int((near <= 1e-6 * abs(x)).sum())


# --- rows from power sums -----------------------------------------------------------------------------


def rows_in_bins(total: Sketch) -> np.ndarray:
    """The rows of all bins with at most four: the roots of the polynomial that Newton's identities give."""
    cell, found = total.grid._table[0], []
    quantum = np.repeat(total.grid.quantum, total.grid.n_bins)
    for b, sums in enumerate(np.ldexp(total.sums.astype(np.float64), quantum[:, None])):
        n = round(sums[0])
        if not 1 <= n <= 4:
            continue
        e = [1.0]
        for k in range(1, n + 1):
            e.append(sum((-1) ** (i - 1) * e[k - i] * sums[i] for i in range(1, k + 1)) / k)
        t = np.roots([(-1) ** k * c for k, c in enumerate(e)]).real
        log = (cell[kernels.G_FIRST] + b + 0.5 * (t + 1.0)) * 2.0 ** cell[kernels.G_EXPONENT]
        found += list(cell[kernels.G_REF] * np.exp(log))
    return np.array(found)


def test_exact_power_sums_give_rows_away() -> None:
    rng = np.random.default_rng(0)
    x = rng.lognormal(size=50)
    grid = Range.from_bounds(codes_below(x.min()), codes_above(x.max()), "box-cox", 5e6).grid()
    assert n_recovered(rows_in_bins(Attacker(sites(x, PERMISSIVE)).power_sums(grid)), x) >= 40
    x = rng.lognormal(size=5000)
    grid = Range.from_bounds(codes_below(x.min()), codes_above(x.max()), "box-cox", 5e6).grid()
    while grid.n_bins[0] < 10_000:
        grid = grid.refined()
    assert n_recovered(rows_in_bins(Attacker(sites(x, PERMISSIVE)).power_sums(grid)), x) >= 4900


@pytest.mark.parametrize("n", [50, 150, 50_000])
def test_no_power_sums_are_told_by_default_and_coarse_ones_give_no_row(n: int) -> None:
    x = np.random.default_rng(0).lognormal(size=n)
    ends = codes_below(x.min()), codes_above(x.max())
    fine = Range.from_bounds(*ends, "box-cox", 5e6).grid()
    with pytest.raises(ProtocolError, match="client 'a': its policy does not allow questions of kind 'sketch'"):
        Attacker(sites(x)).power_sums(fine)
    sketches = Policy(kinds=("code", "moments", "sketch"))
    for grid in (fine, fine.refined()):
        with pytest.raises(ProtocolError, match="client 'a': its policy allows 64 bins a column, the grid has"):
            Attacker(sites(x, sketches)).power_sums(grid)
    coarse = fine._relaid(np.array([-10.0]), 64)
    with pytest.raises(ProtocolError, match="client 'a': a bin has fewer than 10 rows"):
        Attacker(sites(x, sketches)).power_sums(coarse)
    if n > 1000:  # a grid as coarse as that leaves room, away from rare values
        x = x[(x > 0.5) & (x < 2.0)]
        few = Range.from_bounds(0.5, 2.0, "box-cox", 5e6).grid()._relaid(np.array([-3.0]), 64)
        assert n_recovered(rows_in_bins(Attacker(sites(x, sketches)).power_sums(few)), x) == 0


# --- rows from moments --------------------------------------------------------------------------------


def sums_at(a: np.ndarray, low: float, high: float, lmbda: np.ndarray, slopes: bool = False) -> np.ndarray:
    """The sums that clients tell, of logs a, written down anew; or their derivatives in each log."""
    frame = frame_between(0.0, low, high, math.sqrt(low * high))
    unit, at_reference = frame.sigma, math.log(frame.reference)
    d = (a - at_reference)[None, :] / unit - np.where(lmbda > 0.0, frame.high, frame.low)[:, None]
    mu = (lmbda * unit)[:, None]
    e = np.exp(mu * d)
    y = (e - 1.0) / mu
    y1 = (d * e - y) / mu
    y2 = (d * d * e - 2.0 * y1) / mu
    y3 = (d**3 * e - 3.0 * y2) / mu
    values = np.array([y, y1, y2, y3])
    rates = np.array([e, d * e, d * d * e, d**3 * e]) / unit
    pairs = [(0, 0), (0, 1), (1, 1), (0, 2), (0, 3), (1, 2)]
    if slopes:
        products = [values[i] * rates[j] + values[j] * rates[i] for i, j in pairs]
        return np.concatenate([*rates, *products])
    products = [values[i] * values[j] for i, j in pairs]
    return np.concatenate([part.sum(axis=1) for part in (*values, *products)])


TOLD = [lk.Y, lk.Y1, lk.Y2, lk.Y3, lk.YY, lk.YY1, lk.Y1Y1, lk.YY2, lk.YY3, lk.Y1Y2]


def questions(limit: float, n: int) -> np.ndarray:
    return np.linspace(-limit, 0.98 * limit, n)  # none is 0


def solved(told: np.ndarray, guess: np.ndarray, low: float, high: float, lmbda: np.ndarray) -> np.ndarray:
    """Logs that give these sums (least squares from a guess, between the bounds)."""
    scale = 1e-15 + np.abs(told)

    def misfit(a: np.ndarray) -> np.ndarray:
        return (sums_at(a, low, high, lmbda) - told) / scale

    def slope(a: np.ndarray) -> np.ndarray:
        return sums_at(a, low, high, lmbda, slopes=True) / scale[:, None]

    ends = math.log(low) - 1e-9, math.log(high) + 1e-9
    inside = np.clip(guess, ends[0] + 1e-9, ends[1] - 1e-9)
    tight = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}
    return np.asarray(least_squares(misfit, inside, slope, bounds=ends, max_nfev=1600 // guess.size, **tight).x)


def asked(clients: list[Client], low: float, high: float, lmbda: np.ndarray) -> np.ndarray:
    totals = Attacker(clients).moments(low, high, lmbda)
    return np.concatenate([totals[:, k] for k in TOLD])


def test_the_sums_are_those_that_clients_tell() -> None:
    x = np.random.default_rng(3).lognormal(size=100)
    low, high = codes_below(x.min()), codes_above(x.max())
    lmbda = questions(5.0, 7)
    exact = asked(sites(x, Policy(rounding=0.0)), low, high, lmbda)
    assert_allclose(exact, sums_at(np.log(x), low, high, lmbda), rtol=1e-11)
    rounded = asked(sites(x), low, high, lmbda)
    assert np.abs(rounded - exact).max() <= 5 * 2.0**-17
    assert np.abs(rounded - exact).max() > 2.0**-20
    slopes = sums_at(np.log(x), low, high, lmbda, slopes=True)
    shift = np.zeros(100)
    shift[17] = 1e-6
    difference = sums_at(np.log(x) + shift, low, high, lmbda) - sums_at(np.log(x) - shift, low, high, lmbda)
    assert_allclose(difference / 2e-6, slopes[:, 17], rtol=1e-5, atol=1e-6)


def test_exact_moments_of_few_rows_give_them_away() -> None:
    x = np.random.default_rng(0).lognormal(size=8)
    low, high, lmbda = codes_below(x.min()), codes_above(x.max()), questions(5.0, 40)
    told = asked(sites(x, Policy(rounding=0.0, min_rows=1)), low, high, lmbda)
    guess = np.log(x) + 0.01 * np.random.default_rng(1).normal(size=8)
    assert n_recovered(np.exp(solved(told, guess, low, high, lmbda)), x) >= 6
    with pytest.raises(ProtocolError, match="client 'a': column 0 has fewer than 10 values"):
        asked(sites(x), low, high, lmbda)


@pytest.mark.parametrize("n", [50, 150])
def test_no_row_comes_out_of_rounded_moments(n: int) -> None:
    """Even an attacker who knows every row to 1 % beforehand."""
    x = np.random.default_rng(n).lognormal(size=n)
    low, high, lmbda = codes_below(x.min()), codes_above(x.max()), questions(5.0, 40)
    guess = np.log(x) + 0.01 * np.random.default_rng(1).normal(size=n)
    found = solved(asked(sites(x), low, high, lmbda), guess, low, high, lmbda)
    assert n_recovered(np.exp(found), x) == 0


def sharpness(x: np.ndarray, told_of: np.ndarray, policy: Policy) -> np.ndarray:
    """Standard errors of the logs of the rows `told_of`, for the best that can be done with all allowed questions.

    The rows are known beforehand to a factor e, and all others exactly; each sum has the error of its rounding by five
    sites (or of float64). This is Cramer and Rao's bound, whatever the attack.
    """
    low, high = codes_below(x.min()), codes_above(x.max())
    n = int(min(policy.questions * policy.sessions, 120))
    lmbda = questions(min(policy.largest_exponent, 5.0), n)
    slopes = sums_at(np.log(told_of), low, high, lmbda, slopes=True)
    sums = sum(sums_at(part, low, high, lmbda) for part in np.array_split(np.log(x), 1 + x.size // 1000))
    noise = policy.rounding * math.sqrt(5.0 / 12.0) + 1e-16 * np.abs(sums)
    _, singular, right = np.linalg.svd(slopes / noise[:, None], full_matrices=False)
    errors: np.ndarray = np.sqrt((right.T**2 / (singular**2 + 1.0)).sum(axis=1))
    return errors


@pytest.mark.parametrize("n", [50, 150, 50_000])
@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
def test_no_question_that_is_allowed_tells_a_row(n: int, sigma: float) -> None:
    x = np.sort(np.exp(sigma * np.random.default_rng(n).normal(size=n)))
    extreme = np.concatenate([x[:50], x[-50:]]) if n > 1000 else x
    assert sharpness(x, extreme, Policy()).min() > 1e-5
    assert sharpness(x, extreme, Policy(rounding=0.0)).min() < 3e-6  # the extremes: why there is rounding


def test_large_exponents_are_refused() -> None:
    """At lambda = 200 a sum is the power of its largest value."""
    x = np.random.default_rng(0).lognormal(size=100)
    low, high = codes_below(x.min()), codes_above(x.max())
    frame = frame_between(0.0, low, high, math.sqrt(low * high))
    totals = Attacker(sites(x, PERMISSIVE)).moments(low, high, [200.0])
    mu = 200.0 * frame.sigma
    top = math.log(totals[0, lk.Y] * mu + 100.0) / mu  # sum of e^(mu (a - high))
    assert high * math.exp(top * frame.sigma) == pytest.approx(x.max(), rel=1e-5)
    for limit in (5.1, 400.0, -5.1):
        with pytest.raises(ProtocolError, match=r"client 'a': its policy allows \|lambda\| up to 5"):
            Attacker(sites(x)).moments(low, high, [limit])


def test_questions_and_sessions_are_counted() -> None:
    clients = sites(np.random.default_rng(0).lognormal(size=100))
    for session in "stu":
        attacker = Attacker(clients, session=session)
        attacker.moments(2.0**-9, 2.0**9, questions(5.0, 39))
        attacker.moments(2.0**-9, 2.0**9, [1.0])
        with pytest.raises(ProtocolError, match="client 'a': its policy allows 40 questions in a fit"):
            attacker.moments(2.0**-9, 2.0**9, [1.0])
    with pytest.raises(ProtocolError, match="client 'a': its policy allows 3 fits of its rows"):
        Attacker(clients, session="v").moments(2.0**-9, 2.0**9, [1.0])


# --- bounds as an oracle ------------------------------------------------------------------------------


def outside(client: Client, low: float, high: float, session: str) -> str:
    """What the client says to moments between these bounds."""
    try:
        Attacker([client], session=session).moments(low, high, [1.0])
    except ProtocolError as error:
        return str(error)
    return "told"


def test_bounds_that_are_bisected_find_a_maximum() -> None:
    x = np.random.default_rng(0).lognormal(size=100)
    low, high = 1e-3, 1e3
    client = sites(x, PERMISSIVE, ["a", "b"])[0]
    client = Client(x, name="a", secrets={"b": bytes(16)}, policy=Policy.open(masks=True))
    for k in range(58):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if "outside" in outside(client, 1e-3, middle, f"s{k}") else (low, middle)
    assert high == pytest.approx(x.max(), rel=1e-12)


def test_bounds_tell_no_more_than_powers_of_two() -> None:
    """Two sites whose extremes have the same powers of two about them give word for word the same answers."""
    rng = np.random.default_rng(0)
    policy = Policy(min_sites=1, questions=10_000, sessions=10_000)
    rows = [np.append(rng.uniform(1.0, 4.0, 50), extremes) for extremes in ([0.51, 7.9], [0.9, 4.1])]
    both = [Client(x, name="a", secrets={"b": bytes(16)}, policy=policy) for x in rows]
    tried = [(low, high) for low in (2.0**-3, 0.5, 0.6, 1.0) for high in (2.0, 4.0, 4.2, 5.0, 7.95, 8.0, 16.0)]
    said = [[outside(client, *ends, f"s{ends}") for ends in tried] for client in both]
    assert said[0] == said[1]
    assert {text.rpartition(": ")[2].partition(",")[0] for text in said[0]} == {
        "told",
        "column 0 has values outside 0.5 to 2",
        "column 0 has values outside 0.5 to 4",
        "column 0 has values outside 0.125 to 2",
        "column 0 has values outside 0.125 to 4",
        "column 0 has values outside 1 to 2",
        "column 0 has values outside 1 to 4",
        "column 0 has values outside 1 to 8",
        "column 0 has values outside 1 to 16",
        "its policy allows bounds that are 0 or powers of two only",
    }


def test_with_public_bounds_refusals_do_not_depend_on_the_rows_at_all() -> None:
    policy = Policy(bounds=(0.1, 100.0), min_sites=1, questions=1000, sessions=1000)
    rows = [np.linspace(0.2, 90.0, 30), np.linspace(3.0, 3.1, 30)]
    both = [Client(x, name="a", secrets={"b": bytes(16)}, policy=policy) for x in rows]
    tried = [(low, high) for low in (2.0**-5, 2.0**-4, 0.1, 0.5) for high in (2.0, 4.0, 64.0, 100.0, 128.0, 256.0)]
    said = [[outside(client, *ends, f"s{ends}") for ends in tried] for client in both]
    assert said[0] == said[1]
    assert said[0].count("told") == 4
    with pytest.raises(ValueError, match="client 'a': column 0 has values beyond the bounds of its policy"):
        Client(np.append(rows[0], 101.0), name="a", secrets={"b": bytes(16)}, policy=policy)


# --- one mask twice -----------------------------------------------------------------------------------


def test_a_mask_is_not_used_again_after_the_rows_changed() -> None:
    x = np.random.default_rng(0).lognormal(size=(60, 1))
    dealt = pairwise_secrets("abc")
    memory: dict[str, bytes] = {}
    first = Client(x, name="a", secrets=dealt["a"], memory=memory)
    others = [Client(x, name=name, secrets=dealt[name]) for name in "bc"]
    attacker = Attacker([first, *others])
    body = moments_request(2.0**-9, 2.0**9, [1.0])
    request = pack(Message(Kind.MOMENTS, "s", 2, "server", attacker.details, body))
    answer = first.answer(request)
    assert first.answer(request) == answer  # asked again, the same

    x[0] += 1.0  # in place
    with pytest.raises(ProtocolError, match="client 'a': its rows changed since it told of them"):
        first.answer(request)
    with pytest.raises(ProtocolError, match="client 'a': its rows changed"):
        Client(x, name="a", secrets=dealt["a"], memory=memory).answer(request)
    with pytest.raises(ProtocolError, match="client 'a': it has not opened this fit"):
        Client(x, name="a", secrets=dealt["a"]).answer(request)
    forgetful = Client(x, name="a", secrets=dealt["a"])
    again = Attacker([forgetful, *others], session="s" * 2)  # the very same session would do as well
    assert again.details["openings"]["a"] != attacker.details["openings"]["a"]
    told = again.ask(Kind.MOMENTS, body)[0]
    difference = told.astype(np.int64) - unpack(answer, "a").body.astype(np.int64)
    assert (difference == 0).mean() < 0.01


def test_a_client_that_is_made_anew_remembers() -> None:
    x = np.random.default_rng(0).lognormal(size=60)
    dealt, memory = pairwise_secrets("abc"), {}
    options: dict[str, Any] = {"name": "a", "secrets": dealt["a"], "memory": memory}
    attacker = Attacker([Client(x, **options), *(Client(x, name=n, secrets=dealt[n]) for n in "bc")])
    body = moments_request(2.0**-9, 2.0**9, questions(5.0, 30))
    request = pack(Message(Kind.MOMENTS, "s", 2, "server", attacker.details, body))
    assert Client(x, **options).answer(request) == Client(x, **options).answer(request)
    other = pack(Message(Kind.MOMENTS, "s", 2, "server", attacker.details, body * 1.0 + 0.0 * body[:, ::-1]))
    assert other == request
    body[0, -1] *= 0.5
    with pytest.raises(ProtocolError, match="client 'a': another request was answered in round 2 already"):
        Client(x, **options).answer(pack(Message(Kind.MOMENTS, "s", 2, "server", attacker.details, body)))
    with pytest.raises(ProtocolError, match="client 'a': its policy allows 40 questions in a fit"):
        Client(x, **options).answer(pack(Message(Kind.MOMENTS, "s", 3, "server", attacker.details, body)))


@pytest.mark.parametrize(
    "change, match",
    [
        (lambda o: o | {"a": "00" * 32}, "its nonce is not the one that it opened this fit with"),
        (lambda o: o | {"b": o["c"]}, "two clients have one nonce"),
        (lambda o: {"a": o["a"]}, "it does not say what all clients opened the fit with"),
        (lambda o: o | {"b": "00"}, "it does not say what all clients opened the fit with"),
        (lambda o: None, "it does not say what all clients opened the fit with"),
    ],
)
def test_nonces_of_the_servers_own(change: Any, match: str) -> None:
    attacker = Attacker(sites(np.random.default_rng(0).lognormal(size=100)))
    attacker.details["openings"] = change(attacker.details["openings"])
    with pytest.raises(ProtocolError, match=f"client 'a': .*{match}"):
        attacker.moments(2.0**-9, 2.0**9, [1.0])


def test_equal_secrets_would_send_sums_in_the_clear() -> None:
    """Five sites, one key: what b adds and subtracts for its four pairs is nearly nothing, were names not in masks."""
    with pytest.raises(ValueError, match="client 'b': two others share one secret; one key for several pairs"):
        Client([1.0], name="b", secrets={"a": bytes(16), "c": bytes(16)})


def test_clients_under_other_names_have_other_masks() -> None:
    """The server tells b that a is called c: masks do not cancel, nor repeat."""
    seeds = pairwise_secrets("abc")
    x = np.random.default_rng(0).lognormal(size=60)
    attacker = Attacker([Client(x, name=n, secrets=seeds[n]) for n in "abc"])
    attacker.details["clients"] = ["a", "b", "z"]
    with pytest.raises(ProtocolError, match="client 'a': it shares no secret with 'z'"):
        attacker.moments(2.0**-9, 2.0**9, [1.0])


# --- other sites, other rows --------------------------------------------------------------------------


def test_two_fits_of_different_sites_give_the_difference_away() -> None:
    x = np.random.default_rng(0).lognormal(size=200)
    body = (2.0**-9, 2.0**9, [1.0, 2.0])
    for policy, refused in ((Policy(rounding=0.0, changing_sites=True), False), (None, True)):
        clients = sites(x, policy, "abcd")
        first = Attacker(clients, session="s").moments(*body)
        if refused:
            with pytest.raises(ProtocolError, match="client 'a': it took part in a fit with other sites"):
                Attacker(clients[:3], session="t").moments(*body)
            Attacker(clients, session="u").moments(*body)  # with the same ones it does again
            continue
        difference = first - Attacker(clients[:3], session="t").moments(*body)
        logs = difference[0, partial_moments.JACOBIAN] * frame_between(0.0, 2.0**-9, 2.0**9, 1.0).sigma
        assert logs == pytest.approx(np.log(x[3::4]).sum(), rel=1e-12)


def test_the_other_family_is_another_session_of_the_same_rows() -> None:
    clients = sites(np.random.default_rng(0).lognormal(size=200), Policy(families=("box-cox",), sessions=1))
    run(Server(SITES, family="box-cox", secure=True), clients)
    with pytest.raises(ProtocolError, match="its policy does not allow fits of family 'yeo-johnson'"):
        run(Server(SITES, secure=True), clients)
    with pytest.raises(ProtocolError, match="its policy allows 1 fits of its rows"):
        run(Server(SITES, family="box-cox", secure=True), clients)


# --- words ----------------------------------------------------------------------------------------------


def test_what_is_sent_holds_no_values() -> None:
    x = np.random.default_rng(0).lognormal(size=(2000, 1))
    x[1000] = -7.123456
    client = Client(x, name="a", policy=Policy.open())
    with pytest.raises(ProtocolError) as caught:
        client.answer(Server(["a"], family="box-cox").request)
    assert "column 0 has values outside the domain of box-cox" in str(caught.value)
    assert "7.12" not in str(caught.value)
    assert "1000" not in str(caught.value)
    assert "row 1000: the value is -7.123456" in caught.value.detail
    assert caught.value.__context__ is None  # a traceback has no more
    assert "7.12" not in pickle.loads(pickle.dumps(caught.value)).detail
    with pytest.raises(ProtocolError, match=r"row 1000: the value is -7\.123456"):  # in one process
        fit_federated([x, x], "box-cox")


# --- sums that are not those of rows ------------------------------------------------------------------


def liar(protocol: str, change: Any, rows: int = 300) -> tuple[Server, list[Client], bytes]:
    """A fit in its second round, and what the liar a sends in it."""
    x = np.random.default_rng(0).lognormal(size=(2 * rows, 1))
    clients = [Client(part, name=n, policy=Policy.open()) for n, part in zip("ab", np.split(x, 2), strict=True)]
    server = Server(["a", "b"], protocol=protocol)
    for client in clients:
        server.receive(client.answer(server.request), sender=client.name)
    server.close_round()
    message = unpack(clients[0].answer(server.request), "a")
    if protocol == "rounds":
        return server, clients, pack(message._replace(body=change(message.body.copy())))
    own = Sketch.from_bytes(message.body.tobytes())
    lie = Sketch(own.grid, change(own.sums.copy()), own.roundings)
    return server, clients, pack(message._replace(body=as_body(lie.to_bytes())))


def at(place: Any, value: Any) -> Any:
    def change(numbers: np.ndarray) -> np.ndarray:
        numbers[place] = value(numbers[place])
        return numbers

    return change


BUSIEST = slice(30, 120)


@pytest.mark.parametrize(
    "protocol, change, match",
    [
        ("sketch", at((BUSIEST, 2), lambda t: -t), "sums that no rows have"),
        ("sketch", at((BUSIEST, 2), lambda t: t // 8), "sums that no rows have"),
        ("sketch", at((BUSIEST, 7), lambda t: t + (1 << 50)), "sums that no rows have|damaged"),
        ("sketch", at((BUSIEST, slice(1, None)), lambda t: 0 * t + (1 << 48)), "sums that no rows have|damaged"),
        ("sketch", at(slice(None), lambda t: 0 * t), "column 0 has another weight than the client announced"),
        ("sketch", at(slice(None), lambda t: 2 * t), "column 0 has another weight than the client announced"),
        ("rounds", at(slice(None), lambda m: 0.0 * m), "column 0 has another weight than the client announced"),
        ("rounds", at((0, 0, lk.YY), lambda m: -m), "column 0 has moments that are not finite or cannot be"),
        (
            "rounds",
            at((0, 0, lk.YY1), lambda m: 1e3 * m + 1e3),
            "column 0 has moments that are not finite or cannot be",
        ),
        ("rounds", at((0, 0, lk.WEIGHT), lambda m: 1e18), "column 0 has moments|more than 1e"),
    ],
)
def test_sums_that_no_rows_have_are_refused_by_name(protocol: str, change: Any, match: str) -> None:
    server, clients, lie = liar(protocol, change)
    with pytest.raises(ProtocolError, match=f"client 'a': .*({match})"):
        server.receive(lie, sender="a")
    assert server.missing == ["a", "b"]
    honest = run(server, clients)
    expected = fit_federated([c._matrix.values for c in clients], protocol=protocol)
    assert_array_equal(honest.lmbda, expected.lmbda)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sums_of_rows_pass_however_few_or_tight_they_are() -> None:
    rng = np.random.default_rng(0)
    for x in (
        np.array([1.0, 2.0]),
        np.full(500, 3.0) + 1e-9 * rng.normal(size=500),
        rng.integers(0, 3, 900) + 0.0,
        rng.standard_t(1, 3000),
        np.append(rng.normal(size=100), 1e300),
    ):
        weights = 10.0 ** rng.uniform(-12, 4, x.size)
        for w in (None, weights):
            parts = np.array_split(np.arange(x.size), 2)
            clients = [
                Client(x[i], name=n, sample_weight=None if w is None else w[i], policy=Policy.open())
                for n, i in zip("ab", parts, strict=True)
            ]
            for protocol in ("sketch", "rounds"):
                server = Server(["a", "b"], protocol=protocol)
                assert np.isfinite(run(server, clients).lmbda).all()


def test_a_site_that_announces_a_great_weight_is_refused() -> None:
    x = np.random.default_rng(0).lognormal(size=(600, 1))
    heavy = Client(x[:300], name="a", sample_weight=np.full(300, 1e18), policy=Policy.open())
    server = Server(["a", "b"])
    with pytest.raises(ProtocolError, match=r"client 'a': column 0 has a weight of more than 1e\+09; if that is right"):
        server.receive(heavy.answer(server.request), sender="a")
    # as heavy as is taken, it does not spoil the sums of others: the fit is that of both, with these weights
    heavy = Client(x[:300], name="a", sample_weight=np.full(300, 3e6), policy=Policy.open())
    light = Client(x[300:], name="b", policy=Policy.open())
    fit = run(Server(["a", "b"]), [heavy, light])
    expected = pk.fit(x, sample_weight=np.repeat([3e6, 1.0], 300))
    assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-10, atol=1e-10)


def test_masked_totals_that_no_rows_have_end_the_fit() -> None:
    x = np.random.default_rng(0).lognormal(size=200)
    clients = sites(x, PERMISSIVE)
    for protocol, kind in (("rounds", Kind.MOMENTS), ("sketch", Kind.SKETCH)):
        server = Server(SITES, family="box-cox", secure=True, protocol=protocol, bounds=(2.0**-9, 2.0**9))
        for _ in range(2):
            for client in clients:
                answer = client.answer(server.request)
                message = unpack(answer, client.name)
                if client.name == "a" and message.kind == kind:
                    body = message.body.copy()
                    body[2, -1] += np.uint32(1 << 20)
                    answer = pack(message._replace(body=body))
                server.receive(answer, sender=client.name)
            if server.round == 1:
                server.close_round()
        with pytest.raises(ProtocolError, match=r"round 2 cannot be merged: the (totals are those of no rows|masks)"):
            server.close_round()
