"""Differential privacy: the account against independent arithmetic, the noise against its distribution, the fit."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import powerkern as pk
from powerkern._status import Status
from powerkern.federated import (
    Client,
    Policy,
    Privacy,
    ProtocolError,
    Server,
    account,
    fit_private,
    pairwise_secrets,
    privacy,
    run,
)
from powerkern.federated.account import Account, discrete_gaussian, gaussian_delta, noise_multiplier, random_below
from powerkern.federated.messages import SERVER, pack, unpack
from powerkern.kernels.results import LMBDA, N_OBS

EPSILONS = [1e-3, 0.1, 1.0, 3.0, 20.0]
DELTAS = [1e-12, 1e-6, 1e-3, 0.4]


# --- the account --------------------------------------------------------------------------------------


def divergence(epsilon: float, mu: float) -> mpmath.mpf:
    """Integral of (p - exp(epsilon) q)+ for the densities of N(mu, 1) and N(0, 1), by quadrature: no closed form."""
    with mpmath.workdps(30):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        start = e / m + m / 2  # where the densities' ratio is exp(epsilon)
        scale, unit = mpmath.npdf(start - m), 1 / (1 + start)  # height and decay: quad's tolerance is absolute

        def excess(t: mpmath.mpf) -> mpmath.mpf:
            x = start + t
            return (mpmath.npdf(x - m) - mpmath.exp(e) * mpmath.npdf(x)) / scale

        return scale * mpmath.quad(excess, [k * unit for k in (0, 1, 2, 4, 8, 16, 32, 64, 128)])


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("mu", [0.01, 0.2, 1.0, 5.0])
def test_delta_is_the_integral_that_defines_it(epsilon: float, mu: float) -> None:
    expected = divergence(epsilon, mu)
    assert_allclose(gaussian_delta(epsilon, mu), float(expected), rtol=1e-11, atol=1e-290)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_the_noise_is_enough_and_no_more(epsilon: float, delta: float) -> None:
    sigma = noise_multiplier(epsilon, delta)
    assert float(divergence(epsilon, 1.0 / sigma)) <= delta * (1 + 1e-10)
    assert float(divergence(epsilon, 1.0 / (sigma * (1 - 1e-6)))) > delta


@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_and_delta_go_together(delta: float) -> None:
    spent = Account()
    for sensitivity, sigma in [(1.0, 4.0), (2.0, 7.0), (0.5, 0.9)]:
        spent.spend(sensitivity, sigma)
    assert_allclose(spent.mu**2, 1 / 16 + 4 / 49 + 25 / 81, rtol=1e-14)
    assert_allclose(spent.rho, spent.mu**2 / 2, rtol=1e-15)
    epsilon = spent.epsilon(delta)
    assert spent.delta(epsilon) <= delta * (1 + 1e-12)
    assert epsilon == 0.0 or spent.delta(epsilon * (1 - 1e-9)) > delta


def test_nothing_spent_costs_nothing() -> None:
    assert Account().delta(0.0) == Account().epsilon(1e-9) == 0.0


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_the_noise_is_that_of_dp_accounting(epsilon: float, delta: float) -> None:
    theirs = pytest.importorskip("dp_accounting")
    assert_allclose(noise_multiplier(epsilon, delta), theirs.get_sigma_gaussian(epsilon, delta), rtol=1e-6)


@pytest.mark.parametrize("sigmas", [[3.0], [5.0, 8.0], [20.0] * 5])
def test_several_releases_cost_what_dp_accounting_says(sigmas: list[float]) -> None:
    """Its privacy loss distributions are numeric, on a grid, and bound epsilon from above."""
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution as pld

    spent, theirs = Account(), None
    for sigma in sigmas:
        spent.spend(1.0, sigma)
        one = pld.from_gaussian_mechanism(sigma, value_discretization_interval=1e-4)
        theirs = one if theirs is None else theirs.compose(one)
    assert theirs is not None
    epsilon = theirs.get_epsilon_for_delta(1e-6)
    assert spent.epsilon(1e-6) <= epsilon * (1 + 1e-9)
    assert_allclose(spent.epsilon(1e-6), epsilon, rtol=2e-3)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_epsilon_out_of_range(epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon must be a positive number"):
        Privacy(epsilon, 1e-6)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-9, math.nan])
def test_delta_out_of_range(delta: float) -> None:
    with pytest.raises(ValueError, match="delta must be between 0 and 1"):
        Privacy(1.0, delta)


@pytest.mark.parametrize("n_bins", [1, 65537, True, 3.0])
def test_bins_out_of_range(n_bins: object) -> None:
    with pytest.raises(ValueError, match="n_bins must be a whole number from 2 to 65536"):
        Privacy(1.0, 1e-6, n_bins)  # type: ignore[arg-type]


# --- the noise ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("variance", [1, 2, 7, 30])
def test_noise_has_the_distribution_that_is_claimed(variance: int) -> None:
    draws = 20_000
    below = random_below(b"test")
    drawn = np.array([discrete_gaussian(variance, below) for _ in range(draws)])
    reach = math.ceil(3 * math.sqrt(variance))
    ks = np.arange(-reach, reach + 1)
    weight = np.exp(-(np.arange(-60, 61) ** 2) / (2 * variance)).sum()
    p = np.exp(-(ks**2) / (2 * variance)) / weight
    observed = np.array([(drawn == k).sum() for k in ks])
    observed, p = np.append(observed, draws - observed.sum()), np.append(p, 1 - p.sum())
    assert stats.chisquare(observed, p * draws).pvalue > 1e-4


@given(st.integers(0, 50), st.integers(1, 20))
def test_exponential_coins_are_exact(numerator: int, denominator: int) -> None:
    """The probability that a run of the series is even, summed over all that a fair source may draw."""
    numerator %= denominator + 1
    x, term, even = Fraction(numerator, denominator), Fraction(1), Fraction(0)
    for k in range(1, 40):  # the run ends at k: P(k - 1 successes) - P(k successes)
        following = term * x / k
        even += (term - following) if k % 2 == 1 else 0
        term = following
    assert abs(float(even) - math.exp(-x)) < 1e-15
    source = random.Random(numerator * 31 + denominator)
    hits = sum(account._bernoulli_exp_below_1(numerator, denominator, source.randrange) for _ in range(2000))
    assert abs(hits / 2000 - math.exp(-x)) < 5 * 0.5 / math.sqrt(2000)


@given(st.integers(1, 2**70), st.binary(max_size=8))
def test_random_integers_are_below_their_bound(n: int, seed: bytes) -> None:
    below = random_below(seed)
    drawn = [below(n) for _ in range(20)]
    assert all(0 <= k < n for k in drawn)
    again = random_below(seed)
    assert drawn == [again(n) for _ in range(20)]


def test_random_integers_are_uniform() -> None:
    below = random_below(b"")
    counts = np.bincount([below(11) for _ in range(22_000)], minlength=11)
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("n_honest", [1, 7])
def test_noise_of_several_sites_adds_up(n_honest: int) -> None:
    sigma, shape = 5.0, (4, 50, 2)
    parts = [privacy.noise(sigma, n_honest, shape, random_below(bytes([k]))) for k in range(n_honest)]
    total = sum(parts) / privacy.UNIT
    assert total.shape == shape
    assert stats.kstest(total.ravel() / sigma, "norm").pvalue > 1e-3


def test_without_a_source_noise_is_never_the_same() -> None:
    assert (privacy.noise(5.0, 1, (1, 4, 2)) != privacy.noise(5.0, 1, (1, 4, 2))).any()


# --- the sums -----------------------------------------------------------------------------------------


def bins_of(family: str, n_columns: int = 2) -> privacy.Bins:
    low = {"box-cox": 0.5, "yeo-johnson": -3.0}[family]
    return privacy.Bins.within([low] * n_columns, [9.0] * n_columns, family, 8)


@given(
    hnp.arrays(float, (5, 2), elements=st.floats(0.01, 1e300) | st.just(math.nan)),
    st.sampled_from(["box-cox", "yeo-johnson"]),
)
def test_one_row_moves_the_sums_by_no_more_than_the_sensitivity(rows: np.ndarray, family: str) -> None:
    bins = bins_of(family)
    moved = (bins.sums(rows) - bins.sums(rows[1:])) / privacy.UNIT
    assert np.linalg.norm(moved) <= privacy.sensitivity(2)


def test_the_sensitivity_is_reached() -> None:
    """At the bounds, where a position is 1: the account is of the worst row, and this is one."""
    bins = bins_of("box-cox", 3)
    moved = bins.sums(np.full((1, 3), 1e9)) / privacy.UNIT
    assert np.linalg.norm(moved) == privacy.sensitivity(3)


def test_missing_values_count_nowhere_and_others_once() -> None:
    bins = bins_of("yeo-johnson")
    rows = np.array([[math.nan, -math.inf], [0.0, 1e9], [2.0, -4.0], [9.0, 9.0]])
    assert_array_equal(bins.sums(rows)[..., privacy.COUNT].sum(axis=1) / privacy.UNIT, [3, 4])
    assert_array_equal(bins.sums(rows)[1, [0, -1], privacy.COUNT] / privacy.UNIT, [2, 2])


@pytest.mark.parametrize(
    "family, low, high", [("box-cox", 0.01, 100.0), ("yeo-johnson", -1e7, 3e6), ("yeo-johnson", -50.0, -2.0)]
)
def test_points_have_the_counts_and_means_of_their_bins(family: str, low: float, high: float) -> None:
    bins = privacy.Bins.within(low, high, family, 16)
    sums = np.stack([np.arange(16.0), np.linspace(-1, 1, 16)], axis=-1)
    points, weights = bins.points(0, sums)
    again = bins.sums(points[:, None])[0]
    assert points.min() >= low
    assert points.max() <= high
    assert (again[1:, privacy.COUNT] == 4 * privacy.UNIT).all()
    start, width, w = bins._start(0), bins._width(0), weights.reshape(-1, 4)
    middles = start + (np.arange(1, 16) + 0.5) * width
    means = ((bins._scaled(0, points).reshape(-1, 4) - middles[:, None]) * w).sum(axis=1) / w.sum(axis=1)
    assert (w > 0).all()
    assert_allclose(w.sum(axis=1), sums[1:, 0], rtol=1e-12)
    assert_allclose(means / (width / 2), sums[1:, 1], atol=1e-9)


# --- fits ---------------------------------------------------------------------------------------------


def errors(n: int, times: int) -> np.ndarray:
    """Errors that privacy adds to lambda, epsilon 1 and delta 1e-6, on lognormal rows; seeded."""
    found = []
    for k in range(times):
        rows = np.random.default_rng(k).lognormal(sigma=0.8, size=n)
        told = fit_private(
            rows, "box-cox", privacy=Privacy(1.0, 1e-6), bounds=(0.01, 100.0), below=random_below(bytes([k]))
        )
        found.append(told.lmbda[0] - pk.fit(rows, "box-cox").lmbda[0])
    return np.array(found)


@pytest.mark.parametrize("n, published, standard_error", [(100_000, 7.9e-3, 3.3e-3), (1_000_000, 8.7e-4, 1.03e-3)])
def test_privacy_adds_less_than_the_standard_error(n: int, published: float, standard_error: float) -> None:
    """And less than the issue's prototype."""
    rms = math.sqrt((errors(n, 12) ** 2).mean())
    assert rms < min(published, standard_error)
    assert rms > 0.02 * standard_error  # there is noise


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_without_noise_bins_cost_next_to_nothing(family: str) -> None:
    rows = np.random.default_rng(0).gamma(3.0, size=(50_000, 2))
    bins = privacy.Bins.within([0.001, 0.001], [40.0, 25.0], family, 64)
    told = privacy.fit_sums(bins, bins.sums(rows), 0.0)
    assert_allclose(told[:, LMBDA], pk.fit(rows, family).lmbda, atol=1e-3)
    assert_allclose(told[:, N_OBS], 50_000, rtol=1e-12)


def test_rows_of_both_signs() -> None:
    rows = np.random.default_rng(0).normal(size=200_000) * 1e6
    told = fit_private(rows, privacy=Privacy(2.0, 1e-7), bounds=(-6e6, 6e6), below=random_below(b""))
    assert_allclose(told.lmbda, pk.fit(rows).lmbda, atol=5e-3)
    assert_allclose(told.transform(rows[:100]), pk.fit(rows).transform(rows[:100]), atol=0.02)


def test_too_few_rows_tell_nothing() -> None:
    told = fit_private([1.0, 2.0, 3.0, 5.0], privacy=Privacy(1.0, 1e-6), bounds=(0.5, 9.0), below=random_below(b""))
    assert told.status.tolist() == [Status.EMPTY]


def test_bounds_outside_the_domain() -> None:
    with pytest.raises(ValueError, match="bounds of family 'box-cox' must be positive"):
        fit_private([1.0, 2.0], "box-cox", privacy=Privacy(1.0, 1e-6), bounds=(0.0, 9.0))


# --- fits of several sites ----------------------------------------------------------------------------

NAMES = ["basel", "graz", "jena", "kiel", "ulm"]
ROWS = np.random.default_rng(0).lognormal(sigma=0.8, size=(100_000, 2))
PARTS = dict(zip(NAMES, np.split(ROWS, [3, 30_000, 50_000, 99_000]), strict=True))
SPENT = Privacy(1.0, 1e-6)
COUNTING = Policy(kinds=("counts",), privacy=SPENT)
BOUNDS = ([0.01] * 2, [100.0] * 2)


def clients_of(policy: Policy = COUNTING, **options: Any) -> list[Client]:
    secrets = pairwise_secrets(NAMES)
    return [Client(PARTS[name], name=name, secrets=secrets[name], policy=policy, **options) for name in NAMES]


def server_of(asked: Privacy = SPENT, **options: Any) -> Server:
    return Server(NAMES, family="box-cox", **{"secure": True, "bounds": BOUNDS, "privacy": asked, **options})


def test_a_private_fit_of_several_sites() -> None:
    """Three rows at one of them, and values beyond the bounds, which are not told of."""
    clients = clients_of()
    server = server_of()
    told = run(server, clients)
    assert server.round == 2
    assert 0.0 < np.abs(told.lmbda - pk.fit(ROWS, "box-cox").lmbda).max() < 0.05
    narrow = server_of(bounds=([0.5] * 2, [2.0] * 2))
    assert run(narrow, clients_of()).status.tolist() == [Status.OK] * 2


def test_a_private_fit_goes_on_without_a_site() -> None:
    server, clients = server_of(recover=True), clients_of()
    while not server.done:
        for client in clients:
            if client.name != "jena" and client.name in server.missing:
                server.receive(client.answer(server.request), sender=client.name)
        if "jena" in server.missing:
            server.lose("jena")
        server.close_round()
    others = np.concatenate([PARTS[name] for name in NAMES if name != "jena"])
    assert np.abs(server.fit.lmbda - pk.fit(others, "box-cox").lmbda).max() < 0.05


@pytest.mark.parametrize("n_sites", [3, 4, 5])
def test_half_of_the_sites_make_enough_noise(n_sites: int) -> None:
    question = privacy.Question(Privacy(1.0, 1e-6, 300), privacy.Bins.within(*BOUNDS, "box-cox", 300))
    sigma = question.privacy.sigma(2)
    assert_allclose(question.cost, 1.0 / (noise_multiplier(1.0, 1e-6) * (1 + 1e-6)), rtol=1e-12)
    rows = [PARTS[name][:100] for name in NAMES[:n_sites]]
    parts = [question.answer(r, n_sites, random_below(bytes([k]))) - question.bins.sums(r) for k, r in enumerate(rows)]
    honest = privacy.honest_sites(n_sites)
    assert honest == {3: 2, 4: 2, 5: 3}[n_sites]
    assert stats.kstest(sum(parts[:honest]).ravel() / privacy.UNIT / sigma, "norm").pvalue > 1e-3
    assert stats.kstest(sum(parts).ravel() / privacy.UNIT / question.total_sigma(n_sites), "norm").pvalue > 1e-3


def test_the_budget_holds_over_fits() -> None:
    """Two fits at mu / sqrt(2) each cost mu; a third one is refused, by a client made anew, too."""
    memory: dict[str, dict[str, bytes]] = {name: {} for name in NAMES}
    secrets = pairwise_secrets(NAMES)
    half = Privacy(account.Account(account.largest_mu(1.0, 1e-6) / math.sqrt(2)).epsilon(1e-6), 1e-6)

    def once() -> None:
        clients = [
            Client(PARTS[name], name=name, secrets=secrets[name], policy=COUNTING, memory=memory[name])
            for name in NAMES
        ]
        run(server_of(half), clients)

    once()
    once()
    with pytest.raises(ProtocolError, match="private counts for epsilon 1, delta 1e-06 in all; these and those told"):
        once()


@pytest.mark.parametrize("policy", [Policy(), Policy.open(), Policy(kinds=("counts",))])
def test_without_a_budget_no_counts_are_told(policy: Policy) -> None:
    with pytest.raises(ProtocolError, match=r"no budget for private counts|does not allow questions of kind 'counts'"):
        run(server_of(), clients_of(policy))


def test_a_policy_of_private_counts_tells_nothing_else() -> None:
    for protocol in ("sketch", "rounds"):
        with pytest.raises(ProtocolError, match="its policy does not allow questions of kind"):
            run(Server(NAMES, family="box-cox", secure=True, protocol=protocol), clients_of())


def test_weights_and_privacy_do_not_go_together() -> None:
    secrets = pairwise_secrets(NAMES)
    clients = [
        Client(PARTS[name], name=name, secrets=secrets[name], policy=COUNTING, sample_weight=np.ones(len(PARTS[name])))
        for name in NAMES
    ]
    with pytest.raises(ProtocolError, match="its rows have weights, of which private counts know nothing"):
        run(server_of(), clients)


@pytest.mark.parametrize(
    "options", [{"secure": False}, {"bounds": None}, {"lmbda": [1.0, 1.0]}, {"ymax": 9.0, "standardize": False}]
)
def test_what_private_fits_need(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="privacy= needs secure=True and bounds"):
        server_of(**options)


def asked_of(clients: list[Client]) -> Server:
    server = server_of()
    for client in clients:
        server.receive(client.answer(server.request), sender=client.name)
    server.close_round()
    return server


@pytest.mark.parametrize(
    "row, values",
    [
        (0, [-1.0, 1e-6]),
        (0, [math.nan, 1e-6]),
        (0, [1.0, 0.0]),
        (1, [1.0, 0.0]),
        (1, [32.5, 0.0]),
        (1, [1e300, 0.0]),
        (2, [0.0, 1.0]),
        (3, [2.0, 1.0]),
        (3, [1.0, math.inf]),
    ],
)
def test_questions_that_make_no_sense_are_refused(row: int, values: list[float]) -> None:
    clients = clients_of()
    message = unpack(asked_of(clients).request, SERVER)
    body = message.body.copy()
    body[row] = values
    with pytest.raises(ProtocolError, match="client 'ulm': the request is malformed"):
        clients[-1].answer(pack(message._replace(body=body)))


def test_questions_about_other_columns_are_refused() -> None:
    clients = clients_of()
    message = unpack(asked_of(clients).request, SERVER)
    for body in (message.body[:-1], message.body.T, message.body.astype("<u4")):
        with pytest.raises(ProtocolError, match="not a question about bins of 2 columns"):
            clients[-1].answer(pack(message._replace(body=np.ascontiguousarray(body))))


def test_the_same_question_gets_the_same_noise() -> None:
    """Also from a client made anew with the same memory: averages over answers take no noise away."""
    secrets, memory = pairwise_secrets(NAMES), {name: {} for name in NAMES}

    def again() -> list[Client]:
        return [
            Client(PARTS[name], name=name, secrets=secrets[name], policy=COUNTING, memory=memory[name])
            for name in NAMES
        ]

    server = asked_of(again())
    assert again()[1].answer(server.request) == again()[1].answer(server.request)


def test_masks_that_do_not_cancel_are_noticed() -> None:
    clients = clients_of()
    server = asked_of(clients)
    for client in clients:
        answer = unpack(client.answer(server.request), client.name)
        if client.name == "ulm":
            answer = answer._replace(body=answer.body ^ np.uint32(0x55555555))
        server.receive(pack(answer), sender=client.name)
    with pytest.raises(ProtocolError, match="the masks do not cancel"):
        server.close_round()
