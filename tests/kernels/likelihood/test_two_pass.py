"""The fit of any column in two passes: its reference, its start, and the number of evaluations."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from counting import count_calls

from powerkern import Status
from powerkern.kernels.likelihood import two_pass
from powerkern.kernels.likelihood.logs import Magnitudes, prepare
from powerkern.kernels.likelihood.scratch import new_work
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON

RNG = np.random.default_rng(11)
NOTHING = np.empty(0)


@pytest.mark.parametrize("n", [1, 2, 5, 6, 13, 40])
@pytest.mark.parametrize("most", [1, 5, 6])
def test_the_median_is_that_of_evenly_spaced_values_that_are_present(n, most):
    x, few = RNG.normal(size=n), min(n, most)
    places = [(2 * k + 1) * n // (2 * few) for k in range(few)]
    scratch = np.full(n + 1, math.nan)
    assert two_pass.subsample_median(x, most, scratch) == sorted(x[places])[few // 2]
    x[places[0]] = math.nan
    expected = sorted(x[places[1:]])[(few - 1) // 2] if few > 1 else math.nan
    np.testing.assert_equal(two_pass.subsample_median(x, most, scratch), expected)


@pytest.mark.parametrize("n", [1, 2, 7, 62, 63, 64, 150])
@pytest.mark.parametrize("kind", ["one", "random", "heavy", "zeros"])
def test_the_weighted_median_is_that_of_values_evenly_spaced_in_weight(n, kind):
    x, weight = RNG.normal(size=n), np.ones(n)
    if kind != "one":
        weight = RNG.integers(1, 5, n).astype(float)
    if kind == "heavy":
        weight[n // 3] = 1e3
    if kind == "zeros":
        weight[1::2] = 0.0
    few = min(n, 63)
    targets = (np.arange(few) + 0.5) * (weight.sum() / few)
    chosen = np.sort(x[np.searchsorted(np.cumsum(weight), targets, side="right")])
    assert two_pass.weighted_subsample_median(x, weight, np.empty(64)) == chosen[few // 2]


def test_the_reference_is_a_median_of_the_sign_with_more_weight():
    pos, neg = np.array([1.0, 5.0, 2.0]), np.array([7.0, 3.0, 4.0, 9.0])
    ones = Magnitudes(pos, neg, np.ones(3), np.ones(4))
    scratch = np.empty(64)
    assert two_pass._reference(ones, False, False, scratch) == 2.0
    assert two_pass._reference(ones, True, False, scratch) == 0.0
    assert two_pass._reference(ones, False, True, scratch) == 2.0
    assert two_pass._reference(ones, True, True, scratch) == -7.0
    for weight, expected in ((4.0, 5.0), (2.0, 2.0), (1.0, -7.0)):  # 2 for one value: both signs weigh 4
        weights = Magnitudes(pos, neg, np.array([1.0, weight, 1.0]), np.ones(4))
        assert two_pass._reference(weights, True, True, scratch) == expected


COLUMNS = {
    "lognormal": (BOX_COX, RNG.lognormal(size=20)),
    "tight": (BOX_COX, 1e4 + 1e-3 * RNG.normal(size=20)),
    "positive": (YEO_JOHNSON, RNG.gamma(0.7, size=20)),
    "negative": (YEO_JOHNSON, -RNG.gamma(0.7, size=20)),
    "both signs": (YEO_JOHNSON, RNG.normal(size=20) ** 3),
    "outlier": (YEO_JOHNSON, np.append(RNG.normal(size=19), 1e10)),
    "all magnitudes": (BOX_COX, 10.0 ** np.linspace(-200.0, 200.0, 20)),
}
WEIGHTS = RNG.integers(1, 5, 20).astype(float)


@pytest.fixture
def n_evaluations(monkeypatch):
    """Count the evaluations of the score by kernels that run as plain Python; return a list with one number."""
    return count_calls(monkeypatch, two_pass, "score")


def centered(name, weight=NOTHING):
    family, x = COLUMNS[name]
    work = new_work(x.size)
    with np.errstate(all="ignore"):
        column = prepare(x, weight, family, work)
        return two_pass.centered_column(column, work), column, work


@pytest.mark.parametrize("is_weighted", [False, True])
def test_optima_take_few_evaluations(n_evaluations, is_weighted):
    most = {
        "lognormal": 5,
        "tight": 4,
        "positive": 5,
        "negative": 6,
        "both signs": 6,
        "outlier": 9,
        "all magnitudes": 8,
    }
    for name, limit in most.items():
        logs, column, work = centered(name, WEIGHTS if is_weighted else NOTHING)
        n_evaluations[0] = 0
        with np.errstate(all="ignore"):
            best = two_pass.two_pass_optimum(logs, math.nan, 3, work.scratch)
        assert best.status == Status.OK
        assert best.n_eval == 3 + n_evaluations[0]
        assert n_evaluations[0] <= limit + is_weighted
        if name in ("lognormal", "negative", "both signs"):
            lmbda = best.exponent if column.sign >= 0.0 else 2.0 - best.exponent
            family, x = ("box-cox", "yeo-johnson")[COLUMNS[name][0]], COLUMNS[name][1]
            g, d1, d2, _ = oracles.likelihood(family, lmbda, x, WEIGHTS if is_weighted else None, 30)
            assert abs(d1) <= 1e-11 * d2
            np.testing.assert_allclose([best.nll, best.curvature], [float(g), float(d2)], rtol=1e-11)


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("lmbda", [-0.02, 0.0, 1.0, 2.03])
def test_a_given_exponent_is_evaluated_once_and_standardises(n_evaluations, name, is_weighted, lmbda):
    weight = WEIGHTS if is_weighted else NOTHING
    logs, column, work = centered(name, weight)
    m = 2.0 - lmbda if column.sign < 0.0 else lmbda
    with np.errstate(all="ignore"):
        best = two_pass.two_pass_optimum(logs, m, 0, work.scratch)
    assert (n_evaluations[0], best.n_eval, best.status, best.exponent) == (1, 1, Status.FIXED, m)
    x = COLUMNS[name][1]
    if column.sign == 0.0:  # mean and sd are those of psi e^-log_factor
        a = np.sign(x) * (np.expm1(np.where(x < 0.0, 2.0 - m, m) * np.log1p(np.abs(x))))
        exponents = np.where(x < 0.0, 2.0 - m, m)
        y = np.where(exponents == 0.0, np.sign(x) * np.log1p(np.abs(x)), a / np.where(exponents == 0.0, 1.0, exponents))
        y = y * math.exp(-best.log_factor)
        assert best.ref == 0.0
    else:
        d = np.log(column.offset + np.abs(x)) - best.log_ref
        y = np.expm1(m * d) / m if m else d
        assert best.log_factor == 0.0
        assert best.log_ref == pytest.approx(math.log(column.offset + abs(best.ref)), abs=1e-12)
    weights = WEIGHTS if is_weighted else np.ones(x.size)
    mean = np.average(y, weights=weights)
    sd = math.sqrt(np.average((y - mean) ** 2, weights=weights))
    if name == "tight":  # SciPy's logs have three digits of their differences
        return
    np.testing.assert_allclose([best.mean, best.sd], [mean, sd], rtol=1e-8, atol=1e-8 * sd)


def test_without_weights_the_mean_is_relative_to_an_extreme_value():
    """Standardised values are then at most (psi - psi(extreme))/sd, which cannot overflow."""
    x = COLUMNS["lognormal"][1]
    for lmbda, extreme in ((1.5, x.max()), (-1.5, x.min()), (0.0, x.min())):
        logs, _, work = centered("lognormal")
        assert two_pass.two_pass_optimum(logs, lmbda, 0, work.scratch).ref == extreme


def test_with_weights_the_mean_is_relative_to_the_reference_if_powers_are_moderate():
    logs, column, work = centered("lognormal", WEIGHTS)
    expected = two_pass.weighted_subsample_median(column.x, WEIGHTS, np.empty(64))
    assert two_pass.two_pass_optimum(logs, 1.5, 0, work.scratch).ref == expected == logs.heavy
    assert logs.reference == expected
    far, column, work = centered("all magnitudes", WEIGHTS)
    largest = 10.0**200
    with np.errstate(all="ignore"):
        assert two_pass.two_pass_optimum(far, 1.5, 0, work.scratch).ref == largest
        assert two_pass.two_pass_optimum(far, -1.5, 0, work.scratch).ref == 1e-200
    unweighted, _, _ = centered("lognormal")
    assert math.isnan(unweighted.heavy)
    assert math.isnan(centered("both signs", WEIGHTS)[0].heavy)


def test_the_search_starts_at_lambda_1_or_0_for_a_tight_cluster():
    start = {name: two_pass._start(centered(name)[0].logs) for name in COLUMNS}
    sigma = {name: centered(name)[0].logs.sigma for name in COLUMNS}
    assert start["tight"] == 0.0
    assert sigma["tight"] < 2.0**-20
    for name in set(COLUMNS) - {"tight"}:
        assert start[name] == min(sigma[name], 1.0) > 0.0
    tight = centered("tight")[0].logs
    assert two_pass._start(tight._replace(sigma=2.0**-20)) == 2.0**-20
    assert two_pass._start(tight._replace(neg=np.ones(1))) == tight.sigma


def test_a_profile_is_the_likelihood_at_every_lambda():
    lmbdas = np.array([-1.0, 2.5])
    for name in ("lognormal", "negative", "both signs"):
        logs, column, work = centered(name, WEIGHTS)
        out = np.empty(2)
        two_pass.write_profile(logs, column.sign, lmbdas, work.scratch, out)
        family, x = ("box-cox", "yeo-johnson")[COLUMNS[name][0]], COLUMNS[name][1]
        expected = [float(oracles.likelihood(family, lmbda, x, WEIGHTS, 30)[0]) for lmbda in lmbdas]
        np.testing.assert_allclose(out, expected, rtol=1e-12)
