"""Fits in one pass, compared with fits in two passes, which are accurate for any data; the choice between them."""

from __future__ import annotations

import mpmath
import numba
import numpy as np
import oracles
import pytest

from powerkern import Status
from powerkern._jit import JIT_DISABLED
from powerkern._status import Route
from powerkern.kernels.likelihood import mle, one_pass
from powerkern.kernels.likelihood import one_pass_sums as ps
from powerkern.kernels.likelihood import score_formulas as lk
from powerkern.kernels.likelihood.one_pass import MIN_EFFECTIVE, ONE_PASS_MIN, SAMPLE_STRIDE
from powerkern.kernels.likelihood.optimum import LogUnits
from powerkern.kernels.likelihood.scratch import CHUNK, SAMPLE, new_work
from powerkern.kernels.results import (
    CURVATURE,
    DEFERRED,
    LMBDA,
    LOC,
    N_EVAL,
    N_KEPT,
    N_OBS,
    N_RESULTS,
    NLL,
    ROUTE,
    SCALE,
    STATUS,
    X_MAX,
    X_MIN,
)
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON

EPS = np.finfo(float).eps

# sizes around those at which the procedure changes: two passes, one pass with a sample, several chunks
SIZES = [ONE_PASS_MIN - 1, ONE_PASS_MIN, ONE_PASS_MIN + 1, CHUNK - 1, CHUNK + 1]
LARGE = [SAMPLE - 1, SAMPLE, SAMPLE + 1, SAMPLE * SAMPLE_STRIDE, 70_001]
if JIT_DISABLED:
    SIZES, LARGE = SIZES[:2], []

#: Draws of columns that one pass can fit, and of some that need two passes.
DISTRIBUTIONS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "shifted normal": lambda rng, n: rng.normal(size=n) + 3.0,
    "far normal": lambda rng, n: rng.normal(size=n) + 1000.0,
    "lognormal": lambda rng, n: rng.lognormal(size=n),
    "wide lognormal": lambda rng, n: rng.lognormal(sigma=3.0, size=n),
    "negative": lambda rng, n: -rng.gamma(0.5, size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "left skewed": lambda rng, n: rng.beta(8.0, 1.0, size=n),
    "heavy tails": lambda rng, n: rng.standard_t(2.0, size=n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(size=n),
    "counts": lambda rng, n: rng.poisson(2.0, size=n).astype(float),
    "rare binary": lambda rng, n: (np.arange(n) % 97 == 5).astype(float),
    "years": lambda rng, n: np.round(rng.normal(1980.0, 15.0, size=n)),
    "large": lambda rng, n: 1e200 * rng.lognormal(size=n),
    "outlier": lambda rng, n: np.where(np.arange(n) == n // 2, 1e12, rng.normal(size=n)),
    "sorted": lambda rng, n: np.sort(rng.lognormal(size=n)),
    "small of both signs": lambda rng, n: 1e-3 * rng.normal(size=n),
    "nearly one-signed": lambda rng, n: np.where(np.arange(n) == 1, -0.1, rng.exponential(size=n)),
}


def row_in_one_pass(x, family, weight=(), lmbda=np.nan):
    """Fit a column in one pass if its sums are accurate enough, else in two; return its row of results."""
    out = np.empty((1, N_RESULTS))
    mle.fit_columns(x[None], np.array(weight, dtype=float), family, np.array([lmbda]), new_work(x.size), out)
    return out[0]


def row_in_two_passes(x, family, weight=(), lmbda=np.nan):
    """Fit a column in two passes; return its row of results."""
    out = np.full((1, N_RESULTS), float(DEFERRED))
    out[:, N_EVAL] = 0.0
    mle.two_pass_columns(x[None], np.array(weight, dtype=float), family, np.array([lmbda]), new_work(x.size), out)
    return out[0]


def assert_same_fit(x, family):
    """Check that one pass, with unit weights and without weights, agrees with two passes."""
    two_pass = row_in_two_passes(x, family)
    assert_equal_to_rounding(x, row_in_one_pass(x, family), two_pass)
    assert_equal_to_rounding(x, row_in_one_pass(x, family, np.ones(x.size)), two_pass)


def assert_equal_to_rounding(x, one_pass, two_pass):
    assert one_pass[STATUS] == two_pass[STATUS] == Status.OK
    assert abs(one_pass[LMBDA] - two_pass[LMBDA]) <= 1e-12 * max(1.0, abs(two_pass[LMBDA]))
    size = abs(np.log(abs(x[x != 0.0]))).max() * (1.0 + abs(two_pass[LMBDA]))
    assert abs(one_pass[NLL] - two_pass[NLL]) <= 1e-13 * (1.0 + size)
    assert one_pass[CURVATURE] == pytest.approx(two_pass[CURVATURE], rel=1e-7)
    for k in (LOC, SCALE):
        # psi is a power of the data: an error of lambda counts times the largest log
        tolerance = 1e-12 * (1.0 + size) * max(abs(two_pass[LOC]), two_pass[SCALE])
        assert abs(one_pass[k] - two_pass[k]) <= tolerance


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("n", SIZES)
def test_agrees_with_two_passes(name, n):
    x = DISTRIBUTIONS[name](np.random.default_rng(n), n)
    assert_same_fit(x, YEO_JOHNSON)
    if x.min() > 0.0:
        assert_same_fit(x, BOX_COX)


@pytest.mark.parametrize("name", ["normal", "lognormal", "negative", "heavy tails", "counts", "sorted"])
@pytest.mark.parametrize("n", LARGE)
def test_large_columns_agree_with_two_passes(name, n):
    test_agrees_with_two_passes(name, n)


@pytest.mark.skipif(JIT_DISABLED, reason="slow as plain Python")
def test_a_misleading_sample_does_not_change_the_fit():
    """Fit columns whose sample, every `SAMPLE_STRIDE`-th value, has another distribution than the other values."""
    n = 8 * SAMPLE
    rng = np.random.default_rng(2)
    for sampled, others in [
        (np.ones(n), rng.lognormal(size=n)),
        (rng.lognormal(size=n), np.exp(-30.0 - rng.normal(size=n))),
        (rng.normal(size=n), 1e6 * rng.normal(size=n) ** 2),
        (np.exp(50.0 * rng.normal(size=n)), rng.exponential(size=n)),
    ]:
        x = np.where(np.arange(n) % SAMPLE_STRIDE == 0, sampled, others)
        assert_same_fit(x, YEO_JOHNSON)
        if x.min() > 0.0:
            assert_same_fit(x, BOX_COX)


@pytest.mark.parametrize("shape", [1e-9, 1e-6, 1e-4, 1e-2, 1.0, 10.0, 100.0, 500.0])
def test_columns_of_any_spread_agree_with_two_passes(shape):
    """Fit columns that range from tight clusters to values whose logs span the range of float64."""
    n = ONE_PASS_MIN + 50
    z = np.clip(np.random.default_rng(3).normal(size=n), -1.3, 1.3)
    assert_same_fit(np.exp(shape * z) if shape > 1e-3 else 1.0 + shape * z, BOX_COX)
    assert_same_fit(shape * z, YEO_JOHNSON)


@pytest.mark.parametrize("lmbda", [0.0, 1e-9, 1e-4, 1.0, 2.0 - 1e-6, 2.0])
def test_optima_with_an_exponent_of_zero_need_no_second_pass(lmbda):
    """Near an optimum with exponent lambda or 2 - lambda = 0, iterations stop early and end with a Taylor step."""
    n = ONE_PASS_MIN + 45
    z = np.random.default_rng(4).normal(size=n)
    z -= z[::-1]  # symmetric: the optimum is the lambda that made the column, or near it
    near, positive = 0.1 * z, 1.0 + 0.1 * z
    columns = [
        (BOX_COX, np.exp(near) if lmbda == 0.0 else (1.0 + lmbda * near) ** (1.0 / lmbda)),
        (YEO_JOHNSON, np.expm1(positive) if lmbda == 0.0 else (1.0 + lmbda * positive) ** (1.0 / lmbda) - 1.0),
        (YEO_JOHNSON, -positive if lmbda < 2.0 else 1.0 - np.exp(positive)),
        (YEO_JOHNSON, z),
    ]
    for family, x in columns:
        assert_same_fit(x, family)
        assert row_in_one_pass(x, family)[N_EVAL] <= 4  # no second fit in two passes


# --- weights ------------------------------------------------------------------------------------------

WEIGHTS = {
    "exponential": lambda rng, n: rng.exponential(size=n),
    "counts": lambda rng, n: rng.integers(1, 6, n).astype(float),
    "counts and zeros": lambda rng, n: rng.integers(0, 3, n).astype(float),
    "two levels": lambda rng, n: np.where(rng.random(n) < 0.5, 1e-9, 1e3),
    "four decades": lambda rng, n: 10.0 ** rng.uniform(-4.0, 0.0, n),
    "rising": lambda rng, n: np.linspace(1e-3, 1.0, n),
    "large": lambda rng, n: 1e100 * rng.exponential(size=n),
    "tiny": lambda rng, n: 1e-200 * rng.exponential(size=n),
}
FAMILIES = {BOX_COX: "box-cox", YEO_JOHNSON: "yeo-johnson"}
WEIGHTED_SIZES = [300] if JIT_DISABLED else [300, 1000, CHUNK + 1, 9000]


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_weights_agree_with_two_passes(name, kind):
    for n in WEIGHTED_SIZES:
        rng = np.random.default_rng(n)
        x, weight = DISTRIBUTIONS[name](rng, n), WEIGHTS[kind](rng, n)
        for family in (YEO_JOHNSON, BOX_COX) if x.min() > 0.0 else (YEO_JOHNSON,):
            one_pass, two_pass = row_in_one_pass(x, family, weight), row_in_two_passes(x, family, weight)
            assert_equal_to_rounding(x, one_pass, two_pass)
            assert one_pass[N_OBS] == one_pass[N_KEPT] == pytest.approx(weight.sum(), rel=1e-13)


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("name", ["normal", "lognormal", "negative", "exponential", "shifted normal"])
def test_weighted_columns_are_fitted_in_one_pass(name, kind):
    rng = np.random.default_rng(3)
    x, weight = DISTRIBUTIONS[name](rng, 1000), WEIGHTS[kind](rng, 1000)
    missing = np.where(np.arange(1000) % 7 == 3, np.nan, x)
    for column in (x, missing):
        assert row_in_one_pass(column, YEO_JOHNSON, weight)[ROUTE] == Route.ONE_PASS


@pytest.mark.parametrize("n", [ONE_PASS_MIN, 1000])
def test_few_values_with_nearly_all_of_the_weight_take_two_passes(n):
    rng = np.random.default_rng(6)
    x, heavy = rng.lognormal(size=n), np.full(n, 1e-9)
    heavy[::40] = 1.0
    assert np.count_nonzero(heavy == 1.0) < MIN_EFFECTIVE
    for weight in (heavy, 10.0 ** rng.uniform(-60.0, 60.0, n)):
        one, two = row_in_one_pass(x, BOX_COX, weight), row_in_two_passes(x, BOX_COX, weight)
        assert one[ROUTE] == Route.TWO_PASS
        assert one[LMBDA] == two[LMBDA]
        assert one[NLL] == two[NLL]


@pytest.mark.parametrize("kind", ["four decades", "two levels"])
@pytest.mark.parametrize("name", ["lognormal", "normal"])
def test_weighted_optimum_is_accurate(name, kind):
    """The exact score changes sign within 1e-12 of lambda."""
    rng = np.random.default_rng(7)
    x, weight = DISTRIBUTIONS[name](rng, 300), WEIGHTS[kind](rng, 300)
    family = BOX_COX if x.min() > 0.0 else YEO_JOHNSON
    row = row_in_one_pass(x, family, weight)
    assert row[ROUTE] == Route.ONE_PASS
    with mpmath.workdps(40):
        below, above = (
            oracles.likelihood(FAMILIES[family], mpmath.mpf(float(row[LMBDA])) + step, x, weight, 40)[1]
            for step in (mpmath.mpf("-1e-12"), mpmath.mpf("1e-12"))
        )
    assert below < 0.0 < above


@pytest.mark.parametrize("family", [BOX_COX, YEO_JOHNSON])
def test_weights_are_repetitions(family):
    rng = np.random.default_rng(8)
    x, weight = rng.lognormal(size=700) - (0.0 if family == BOX_COX else 1.0), rng.integers(0, 5, 700)
    repeated = np.repeat(x, weight)
    one, other = row_in_one_pass(x, family, weight), row_in_one_pass(repeated, family)
    assert one[ROUTE] == other[ROUTE] == Route.ONE_PASS
    assert one[N_OBS] == repeated.size
    assert abs(one[LMBDA] - other[LMBDA]) <= 1e-12
    assert abs(one[NLL] - other[NLL]) <= 1e-13
    assert one[SCALE] == pytest.approx(other[SCALE], rel=1e-12)


@pytest.mark.parametrize("name", ["lognormal", "normal", "counts", "wide lognormal"])
def test_a_power_of_two_in_all_weights_changes_their_sum_only(name):
    rng = np.random.default_rng(9)
    x, weight = DISTRIBUTIONS[name](rng, 900), rng.exponential(size=900)
    expected = row_in_one_pass(x, YEO_JOHNSON, weight)
    for power in (-300, -1, 7, 60, 300):
        row = row_in_one_pass(x, YEO_JOHNSON, np.ldexp(weight, power))
        assert row[N_OBS] == np.ldexp(expected[N_OBS], power)
        row[[N_OBS, N_KEPT]] = expected[[N_OBS, N_KEPT]]
        np.testing.assert_array_equal(row, expected)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, -3.0, 0.0, 1e300])
def test_values_without_weight_are_absent(odd):
    rng = np.random.default_rng(10)
    x, weight = rng.lognormal(size=800), rng.exponential(size=800)
    seen = rng.random(800) < 0.9
    x[~seen], weight[~seen] = odd, 0.0
    row = row_in_one_pass(x, BOX_COX, weight)
    assert row[ROUTE] == Route.ONE_PASS
    assert_same_but_for_rounding(row, row_in_one_pass(x[seen], BOX_COX, weight[seen]))


def assert_same_but_for_rounding(row, expected):
    """Check that two rows of results agree except for the rounding of sums."""
    np.testing.assert_array_equal(row[[STATUS, X_MIN, X_MAX]], expected[[STATUS, X_MIN, X_MAX]])
    figures = [LMBDA, LOC, SCALE, NLL, N_OBS]
    np.testing.assert_allclose(row[figures], expected[figures], rtol=1e-11, atol=1e-12)
    assert row[CURVATURE] == pytest.approx(expected[CURVATURE], rel=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("first", [0, 500, 3000])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.3, 0.6, 0.8, 0.95])
@pytest.mark.parametrize("name", ["lognormal", "normal", "negative"])
def test_missing_values_do_not_affect_one_pass(name, share, first, weighted):
    """Compare a fit of a column with missing values with a fit of its other values.

    A fraction `share` of the rows from row `first` on is missing.
    """
    rng = np.random.default_rng(11)
    n = first + 900
    x, weight = DISTRIBUTIONS[name](rng, n), np.where(np.arange(n) % 7 == 3, 1e3, 1.0) * rng.uniform(0.5, 2.0, n)
    missing = (rng.random(n) < share) & (np.arange(n) >= first)
    gaps = np.where(missing, np.copysign(np.nan, rng.normal(size=n)), x)
    all_weights, weights = (weight, weight[~missing]) if weighted else ((), ())
    if JIT_DISABLED and first > 0:
        pytest.skip("slow as plain Python")
    assert_same_but_for_rounding(
        row_in_one_pass(gaps, YEO_JOHNSON, all_weights), row_in_one_pass(x[~missing], YEO_JOHNSON, weights)
    )


@pytest.mark.parametrize("weight", [(), np.linspace(0.5, 2.0, 900)], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("every, route", [(5, Route.ONE_PASS), (20, Route.TWO_PASS)])
def test_the_number_of_present_values_decides_the_route(every, route, weight):
    """With 180 of 900 values present, one pass reads the gaps, too; with 45, the gaps are removed for two passes."""
    x = np.where(np.arange(900) % every == 2, np.random.default_rng(17).lognormal(size=900), np.nan)
    assert row_in_one_pass(x, BOX_COX, weight)[ROUTE] == route


def test_weights_of_missing_values_have_no_effect():
    """The weights of missing values have no effect: the fit equals that of the values present."""
    rng = np.random.default_rng(13)
    x, weight = rng.lognormal(size=900), rng.exponential(size=900)
    missing = np.arange(900) % 20 == 7
    weight[missing] = 1e25
    row = row_in_one_pass(np.where(missing, np.nan, x), BOX_COX, weight)
    two = row_in_two_passes(x[~missing], BOX_COX, weight[~missing])
    assert abs(row[LMBDA] - two[LMBDA]) <= 1e-12
    assert row[N_OBS] == pytest.approx(two[N_OBS], rel=1e-14)


@pytest.mark.parametrize("weight", [(), np.ones(1000)], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("n_seen", [1, 2, 20])
def test_a_few_present_values_are_fitted_as_if_alone(n_seen, weight):
    x, at = np.full(1000, np.nan), np.linspace(0, 999, n_seen).astype(int)
    x[at] = np.arange(1.0, n_seen + 1.0)
    row = row_in_one_pass(x, YEO_JOHNSON, weight)
    expected = row_in_one_pass(x[at], YEO_JOHNSON, weight[:n_seen] if len(weight) else ())
    np.testing.assert_array_equal(row, expected)


@pytest.mark.parametrize("lmbda", [-1.5, 0.0, 1e-9, 0.3, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("name", ["normal", "lognormal", "negative", "exponential", "far normal"])
def test_moments_at_a_given_lambda(name, lmbda):
    n = 1000
    rng = np.random.default_rng(12)
    x, weight = DISTRIBUTIONS[name](rng, n), rng.exponential(size=n)
    for row, two_pass in (
        (row_in_one_pass(x, YEO_JOHNSON, lmbda=lmbda), row_in_two_passes(x, YEO_JOHNSON, lmbda=lmbda)),
        (row_in_one_pass(x, YEO_JOHNSON, weight, lmbda), row_in_two_passes(x, YEO_JOHNSON, weight, lmbda)),
    ):
        assert row[STATUS] == two_pass[STATUS] == Status.FIXED
        assert row[LMBDA] == lmbda
        for k in (LOC, SCALE):
            assert abs(row[k] - two_pass[k]) <= 1e-12 * max(abs(two_pass[LOC]), two_pass[SCALE])
        assert row[NLL] == pytest.approx(two_pass[NLL], rel=1e-12, abs=1e-12)
        assert row[CURVATURE] == pytest.approx(two_pass[CURVATURE], rel=1e-8)
        assert row[ROUTE] == (Route.TWO_PASS if name == "far normal" else Route.ONE_PASS)
        assert name == "far normal" or row[N_EVAL] == 1


# --- the sums themselves ------------------------------------------------------------------------------


@numba.njit
def score_from_sums(x, base, per_ref, both_signs, exponent):
    """Return logs of a column, their sums, and the score at `exponent` computed from sums over the logs.

    The logs, the flag for accurate sums of powers, and the score come twice: in float64 and in float32.

    Parameters
    ----------
    x : (n,) ndarray
        The column.
    base, per_ref, both_signs
        The fields of `LogKind`.
    exponent : float
        The exponent.

    Returns
    -------
    d, d32 : (n,) ndarray
        The logs.
    total, squares : float
        The sums of the logs and of their squares.
    good, good32 : bool
        Whether the sums of powers are accurate.
    score, score32
        The scores.
    """
    d, d32 = np.empty(x.size), np.empty(x.size, np.float32)
    total, squares = ps.take_logs(x, None, ps.LogKind(both_signs, base, per_ref), d, d32)
    sums = sums32 = lk.zero_sums(0.0)
    for start in range(0, x.size, CHUNK):
        sums = ps.add_sums(sums, d[start : start + CHUNK], None, exponent, both_signs)
        sums32 = ps.add_sums(sums32, d32[start : start + CHUNK], None, exponent, both_signs)
    moments, good = lk.central_moments(sums, float(x.size))
    moments32, good32 = lk.central_moments(sums32, float(x.size))
    mean = total / x.size
    score, score32 = lk.score_from_moments(moments, mean), lk.score_from_moments(moments32, mean)
    return d, d32, total, squares, good, good32, score, score32


SMALL = {
    "one sign, box-cox": ("box-cox", np.exp(np.random.default_rng(5).normal(size=50))),
    "one sign, yeo-johnson": ("yeo-johnson", np.random.default_rng(6).exponential(size=50)),
    "both signs": ("yeo-johnson", np.random.default_rng(7).normal(size=50)),
}


def score_of(name, exponent):
    family, x = SMALL[name]
    both_signs = bool((x < 0.0).any())
    base = 1.0 if family == "yeo-johnson" else 0.0
    return score_from_sums(x, base, 1.0 if both_signs else 1.0 / (base + np.median(x)), both_signs, exponent)


@pytest.mark.parametrize("exponent", [-3.0, -0.4, 0.1, 1.0, 1.3, 2.6])
@pytest.mark.parametrize("name", SMALL)
def test_score_from_sums_agrees_with_mpmath(name, exponent):
    exact = [float(v) for v in oracles.likelihood(SMALL[name][0], exponent, SMALL[name][1])[1:]]
    _, _, _, _, good, good32, score, score32 = score_of(name, exponent)
    assert good
    assert good32
    np.testing.assert_allclose(score, exact, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(score32, exact, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", SMALL)
def test_logs_are_relative_to_the_median_or_signed(name):
    family, x = SMALL[name]
    d, d32, total, squares, *_ = score_of(name, 0.7)
    exact = np.log(x / np.median(x)) if family == "box-cox" else np.log1p(abs(x)) - np.log1p(np.median(x))
    if "both" in name:
        exact = np.copysign(np.log1p(abs(x)), x)
    np.testing.assert_allclose(d, exact, rtol=0.0, atol=4.0 * EPS * (1.0 + abs(exact).max()))
    np.testing.assert_allclose(d32, d, rtol=2.0**-23, atol=2.0**-23)
    assert total == pytest.approx(d.sum(), rel=1e-13, abs=1e-13)
    assert squares == pytest.approx((d * d).sum(), rel=1e-13)


@numba.njit
def centered(sums):
    return lk.central_moments(sums, sums[lk.WEIGHT])


def sums_of(y):
    """Return the number of values, then sums and sums of products of the rows of `y`: psi and three derivatives."""
    pairs = [(0, 0), (0, 1), (1, 1), (0, 2), (0, 3), (1, 2)]
    return np.array([y.shape[1], *y.sum(axis=1), *((y[i] * y[j]).sum() for i, j in pairs)])


def test_center_turns_sums_into_moments():
    y = np.random.default_rng(8).normal(size=(4, 100)) + np.array([[1.0], [-2.0], [0.5], [3.0]])
    sums = sums_of(y)
    moments, kept = centered(sums)
    assert kept
    np.testing.assert_allclose(moments[1:5], y.mean(axis=1), rtol=1e-13)
    c = np.cov(y, bias=True) * 100
    np.testing.assert_allclose(moments[5:], [c[0, 0], c[0, 1], c[1, 1], c[0, 2], c[0, 3], c[1, 2]], rtol=1e-10)


@pytest.mark.parametrize("offset, trusted", [(0.0, True), (5.0, True), (30.0, False), (1e9, False)])
def test_center_refuses_a_mean_that_dwarfs_the_spread(offset, trusted):
    assert centered(sums_of(np.random.default_rng(9).normal(size=(4, 400)) + offset))[1] == trusted


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200])
def test_center_refuses_what_is_not_finite(value):
    y = np.random.default_rng(10).normal(size=(4, 100))
    y[:, 7] = value
    with np.errstate(all="ignore"):
        assert not centered(sums_of(y))[1]


def test_center_refuses_a_constant():
    assert not centered(sums_of(np.full((4, 10), 3.0)))[1]


# --- one column after another -----------------------------------------------------------------------

#: Changes of a column after which its fit stops, starts again, or finds missing values in some chunks only.
FLAWS = {
    "none": lambda x: None,
    "one gap": lambda x: x.__setitem__(x.size // 2 + 3, np.nan),
    "gaps in the last chunk": lambda x: x.__setitem__(slice(-30, None, 3), np.nan),
    "a third missing": lambda x: x.__setitem__(slice(None, None, 3), np.nan),
    "an infinite value": lambda x: x.__setitem__(x.size - 7, np.inf),
    "a value of the other sign": lambda x: x.__setitem__(x.size - 7, -1.0),
    "narrow": lambda x: x.__iadd__(1e9),
}


@pytest.mark.parametrize("flaw", FLAWS)
@pytest.mark.parametrize("family", [YEO_JOHNSON] if JIT_DISABLED else [BOX_COX, YEO_JOHNSON])
@pytest.mark.parametrize("kind", ["none", "some zero"] if JIT_DISABLED else ["none", "exponential", "some zero"])
def test_columns_that_share_scratch_space_are_fitted_independently(flaw, family, kind):
    """Results have the bits of separate fits, even if the previous column left bad values in the scratch space."""
    rng, n = np.random.default_rng(3), CHUNK + 300 if JIT_DISABLED else 9 * CHUNK + 5
    columns = rng.lognormal(size=(2 if JIT_DISABLED else 3, n))
    FLAWS[flaw](columns[-2])
    weights = {"none": np.empty(0), "exponential": rng.exponential(size=n), "some zero": rng.integers(0, 3, n) * 1.0}
    out = np.empty((len(columns), N_RESULTS))
    mle.fit_columns(columns, weights[kind], family, np.full(len(columns), np.nan), new_work(n), out)
    assert out[-1, STATUS] == Status.OK
    for column, row in zip(columns, out, strict=True):
        np.testing.assert_array_equal(row, row_in_one_pass(column, family, weights[kind]))


# --- rejected columns and numbers of evaluations --------------------------------------------------------


def optimum_of(d, weight):
    return one_pass.optimum_of_logs(d, weight, False, LogUnits(1.0, 1.0, 0.0), 0.0, np.nan)


def test_columns_rejected_by_one_pass():
    """Test the limits of three reasons: few effective values, a tight cluster, logs far from their reference."""
    d = np.sort(np.random.default_rng(4).normal(size=300))
    even = np.ones(300)
    assert optimum_of(d, even).status == Status.OK
    heavy = np.where(np.arange(300) == 150, 1e6, 1.0)
    assert optimum_of(d, heavy).status == Status.NOT_CERTIFIED
    for weight in (None, even):
        tight = d * (one_pass.ONE_PASS_SPREAD / d.std())
        assert optimum_of(0.99 * tight, weight).status == Status.NOT_CERTIFIED
        assert optimum_of(1.01 * tight, weight).status == Status.OK
        for far, status in ((0.99, Status.OK), (1.01, Status.NOT_CERTIFIED)):
            reaching = d * (far * one_pass.ONE_PASS_REACH / max(-d[0], d[-1]))
            assert optimum_of(reaching, weight).status == status


@pytest.mark.parametrize("weight", [None, np.arange(400.0) % 3 + 1.0])
def test_n_eval_counts_all_evaluations(monkeypatch, weight):
    """n_eval is the number of evaluations on the sample, plus one in float32 on all values, plus those in float64."""
    counts = []
    iterate = one_pass._halley_iterations

    def counted(*arguments):
        result = iterate(*arguments)
        counts.append(result.n_eval)
        return result

    monkeypatch.setattr(one_pass, "_halley_iterations", counted)
    x = np.random.default_rng(5).lognormal(size=400)
    best, _ = one_pass.one_pass_optimum(x, weight, BOX_COX, np.nan, new_work(400))
    assert len(counts) == 2
    assert best.n_eval == counts[0] + 1 + counts[1]
    given, _ = one_pass.one_pass_optimum(x, weight, BOX_COX, 0.5, new_work(400))
    assert given.n_eval == counts[2] == 1


# --- parts of the procedure ---------------------------------------------------------------------------

#: Evaluations of a column of 600 values: those of the sample, one of all values in float32, and those in float64 (for
#: the rare binary, in two passes). Compiled code rounds differently, and may take one more.
MOST_EVALUATIONS = {
    "normal": 4,
    "lognormal": 5,
    "wide lognormal": 6,
    "negative": 5,
    "exponential": 5,
    "left skewed": 4,
    "heavy tails": 5,
    "counts": 4,
    "rare binary": 19,
    "large": 5,
    "outlier": 8,
    "sorted": 5,
    "small of both signs": 6,
    "nearly one-signed": 9,
}


@pytest.mark.parametrize("name", MOST_EVALUATIONS)
def test_the_number_of_evaluations_is_small(name):
    x = DISTRIBUTIONS[name](np.random.default_rng(21), 600)
    found = [row_in_one_pass(x, YEO_JOHNSON, weight)[N_EVAL] for weight in ((), np.arange(600) % 3 + 1.0)]
    assert max(found) <= MOST_EVALUATIONS[name] + (not JIT_DISABLED)


@pytest.mark.parametrize("n", [1, 255, 256, 511, 512, 3000, 4096, 4097, SAMPLE * SAMPLE_STRIDE + 1])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_sample_is_evenly_spaced(n, is_weighted):
    """The sample has every 16th value, more to reach 256 values if there are as many, and fewer beyond 4,096 values."""
    x = np.arange(float(n)) + 1.0
    stride = max(min(n // 256, 16), -(-n // 4096), 1)
    expected = x[: n // stride * stride : stride]
    with np.errstate(all="ignore"):
        sample = one_pass._draw_sample(x, x + 0.5 if is_weighted else None, BOX_COX, new_work(n))
    assert sample.x.tolist() == expected.tolist()
    assert sample.summary.n == expected.size
    if is_weighted:
        assert sample.weight.tolist() == (expected + 0.5).tolist()
    else:
        assert sample.weight is None


@pytest.mark.parametrize(
    ("exponent", "both_signs", "largest_log", "expected"),
    [
        (2.0, False, 20.0, True),
        (-2.0, False, 20.0, True),
        (2.1, False, 20.0, False),
        (-2.1, False, 20.0, False),
        (0.0, True, 20.0, True),
        (-0.1, True, 20.0, False),
        (1.9, True, 20.0, True),
        (1.0, True, 41.0, False),
        (1.0, False, np.nan, False),
    ],
)
def test_powers_are_in_range_for_both_exponents(exponent, both_signs, largest_log, expected):
    assert bool(one_pass._is_in_range(exponent, both_signs, largest_log, 40.0)) is expected


def test_the_spread_of_logs_is_about_their_mean_or_about_0():
    d, weight = np.array([-1.0, 0.5, 2.0, 4.0]), np.array([1.0, 2.0, 1.0, 3.0])
    total, squares = weight @ d, weight @ d**2
    mean = np.average(d, weights=weight)
    sd = np.sqrt(np.average((d - mean) ** 2, weights=weight))
    assert one_pass._weighted_sd(False, 7.0, total, squares) == pytest.approx(sd)
    assert one_pass._weighted_sd(True, 7.0, total, squares) == pytest.approx(np.sqrt(squares / 7.0))
    assert one_pass._weighted_sd(False, 2.0, 2.0, 2.0 - 1e-15) == 0.0
    assert one_pass._sum_and_squares(d, weight) == pytest.approx((7.0, 49.0 / 15.0, total, squares))
    assert one_pass._sum_and_squares(d, None) == pytest.approx((4.0, np.inf, d.sum(), d @ d))


def summary_of(x, weight=None):
    weight = np.ones(len(x)) if weight is None else np.asarray(weight)
    return one_pass.ValueSummary(float(len(x)), min(x), max(x), weight.sum(), weight @ weight)


@pytest.mark.parametrize(
    ("n", "factor", "expected"), [(32, 1.0, True), (31, 1.0, False), (16, 2.0, True), (15, 2.0, False)]
)
def test_weights_are_even_if_32_values_count(n, factor, expected):
    assert bool(one_pass._has_even_weights(summary_of(np.ones(n), 0.3 * np.ones(n)), factor)) is expected
    heavy = np.append(np.full(100, 1e-9), np.full(n, 2.0))  # light values do not count
    assert bool(one_pass._has_even_weights(summary_of(np.ones(100 + n), heavy), factor)) is expected


@pytest.mark.parametrize(
    ("low", "high"), [(0.5, 3.0), (1e-3, 0.2), (20.0, 30.0), (-3.0, -0.5), (-4.0, 7.0), (-7.0, 4.0)]
)
@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_the_largest_log_is_that_of_an_end(low, high, offset):
    """Compare with the larger |log| of the column's two ends.

    If both signs occur, logs are relative to 1, and the smallest magnitude counts as 0.
    """
    if low < 0.0 < high and offset == 0.0:
        return
    ref = 0.0 if low < 0.0 < high else 1.7
    log_ref = np.log(offset + ref)
    magnitudes = [0.0, max(-low, high)] if low < 0.0 < high else np.abs([low, high])
    expected = np.abs(np.log(offset + np.array(magnitudes)) - log_ref).max()
    kind = one_pass.LogKind(low < 0.0 < high, offset, 1.0 / (offset + ref))
    assert one_pass._largest_log(summary_of([low, high]), kind, log_ref) == pytest.approx(expected, rel=1e-14)


def test_the_log_of_a_subnormal_number_is_not_needed():
    kind = one_pass.LogKind(False, 0.0, 1.0)
    tiny = np.finfo(float).tiny
    assert np.isnan(one_pass._largest_log(summary_of([tiny / 2, 1.0]), kind, 0.0))
    assert one_pass._largest_log(summary_of([tiny, 1.0]), kind, 0.0) == pytest.approx(-np.log(tiny))
    assert one_pass._largest_log(summary_of([0.0, 1.0]), kind._replace(offset=1.0), 0.0) == pytest.approx(np.log(2.0))


@pytest.mark.parametrize(("family", "offset"), [(BOX_COX, 0.0), (YEO_JOHNSON, 1.0)])
def test_the_reference_is_the_median_of_eleven_values_or_0(family, offset):
    work, x = new_work(33), np.random.default_rng(2).lognormal(size=33)
    median = np.sort(x[1::3])[5]
    for values in (x, -x) if family == YEO_JOHNSON else (x,):
        column = one_pass.describe_column(values, None, summary_of(values), family)
        reference = one_pass._choose_reference(column, work)
        assert reference.units == pytest.approx(LogUnits(1.0, median, np.log(offset + median)))
        assert reference.kind == pytest.approx((False, offset, 1.0 / (offset + median)))
        assert reference.is_normal
    if family == YEO_JOHNSON:
        both = np.append(x[:-1], -1.0)
        reference = one_pass._choose_reference(one_pass.describe_column(both, None, summary_of(both), family), work)
        assert reference == (LogUnits(1.0, 0.0, 0.0), one_pass.LogKind(True, 1.0, 1.0), True)
    else:
        small = np.full(33, 1e-310)
        assert not one_pass._choose_reference(
            one_pass.describe_column(small, None, summary_of(small), family), work
        ).is_normal


def test_weights_are_scaled_by_a_power_of_two_below_the_inverse_of_their_sum():
    for total in (1e-200, 0.3, 1.0, 5.0, 2.0**90):
        scale = one_pass._weight_scale(np.ones(1), total)
        assert np.frexp(scale)[0] == 0.5
        assert 0.5 <= scale * total < 1.0
    assert one_pass._weight_scale(None, 5.0) == 1.0


@pytest.mark.parametrize("both_signs", [False, True])
@pytest.mark.parametrize("scale", [1.0, 0.125])
def test_the_refined_start_is_one_halley_step_away(both_signs, scale):
    """Compare the refined start with a Halley step computed from exact sums.

    The start is unchanged if the sums have too few digits, or if logs exceed the range of float32.
    """
    d = np.random.default_rng(6).normal(size=40)
    weight, m = np.arange(40) % 3 + 1.0, 0.7
    a, sign = np.abs(d), np.sign(d) if both_signs else np.ones(40)
    exponents = np.where((d < 0.0) & both_signs, 2.0 - m, m)
    log = np.where(both_signs, a, d)
    with mpmath.workdps(30):
        b = np.array(
            [oracles._branch_derivatives(mpmath.mpf(e), mpmath.mpf(v)) for e, v in zip(exponents, log, strict=True)]
        )
    y = (b.astype(float) * sign[:, np.newaxis] ** np.arange(1, 5)).T
    pairs = [(0, 0), (0, 1), (1, 1), (0, 2), (0, 3), (1, 2)]
    sums = np.array([0.0, *(y @ weight), *((weight * y[i] * y[j]).sum() for i, j in pairs)]) * scale
    jacobian, total = np.average(d, weights=weight), weight.sum()
    logs = one_pass._SampleLogs(d, weight, both_signs, total, np.abs(d).max(), jacobian, 1.0)
    centered = y - (y @ weight / total)[:, np.newaxis]
    v, c1, v1, c2, c3, c12 = ((weight * centered[i] * centered[j]).sum() for i, j in pairs)
    slope = c1 / v
    d1, d2 = slope - jacobian, (v1 + c2) / v - 2.0 * slope**2
    d3 = (3.0 * c12 + c3) / v - 2.0 * slope * (v1 + c2) / v - 4.0 * slope * d2
    expected = m - d1 / (d2 - 0.5 * d1 * d3 / d2)
    assert one_pass._refined_start(m, logs, sums, scale) == pytest.approx(expected, rel=1e-9)
    assert one_pass._refined_start(m, logs._replace(largest_log=1e3), sums, scale) == m
    assert one_pass._refined_start(m, logs, sums * np.where(np.arange(11) == lk.Y, 1e3, 1.0), scale) == m


@pytest.mark.parametrize("both_signs", [False, True])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_absent_values_have_a_log_of_zero(both_signs, is_weighted):
    x, weight = np.random.default_rng(16).normal(size=12), np.arange(12) % 3 * 1.5
    x[4] = np.nan
    x = x if both_signs else abs(x)
    seen = ~np.isnan(x) & ((weight > 0.0) | (not is_weighted))
    d, d32 = np.full(12, 7.0), np.full(12, 7.0, np.float32)
    with np.errstate(all="ignore"):
        sums = ps.take_logs(x, weight if is_weighted else None, ps.LogKind(both_signs, 1.0, 0.4), d, d32)
    expected = np.where(seen, np.log((1.0 + abs(x)) * 0.4) * np.where((x < 0.0) & both_signs, -1.0, 1.0), 0.0)
    np.testing.assert_allclose(d, expected, rtol=1e-14, atol=1e-16)
    np.testing.assert_array_equal(d32, d.astype(np.float32))
    own = weight if is_weighted else np.ones(12)
    assert sums == pytest.approx((own @ expected, own @ expected**2), rel=1e-13)


@pytest.mark.parametrize("both_signs", [False, True])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-11), (np.float32, 2e-5)])
def test_sums_are_added_to_earlier_ones(both_signs, is_weighted, dtype, rtol):
    """Compare sums over ten logs with sums of exact derivatives, added to nonzero sums.

    The j-th derivative in lambda of a negative value's transform is (-1)^(j + 1) times that of b_m in m = 2 - lambda.
    """
    rng, m = np.random.default_rng(18), 0.7
    d, weight = rng.normal(size=10).astype(dtype), rng.integers(1, 4, 10).astype(dtype)
    below = (d < 0.0) & both_signs
    with mpmath.workdps(30):
        exponents, a = np.where(below, 2.0 - m, m), np.where(both_signs, abs(d), d)
        b = [
            oracles._branch_derivatives(mpmath.mpf(e), mpmath.mpf(float(v))) for e, v in zip(exponents, a, strict=True)
        ]
    y = np.array(b).astype(float).T * np.where(below, -1.0, 1.0) ** np.arange(1, 5)[:, np.newaxis]
    own = weight.astype(float) if is_weighted else np.ones(10)
    pairs = [(0, 0), (0, 1), (1, 1), (0, 2), (0, 3), (1, 2)]
    expected = np.array([0.0, *(y @ own), *((own * y[i] * y[j]).sum() for i, j in pairs)])
    before = tuple(np.arange(11.0))
    found = ps.add_sums(before, d, weight if is_weighted else None, m, both_signs)
    np.testing.assert_allclose(np.array(found) - before, expected, rtol=rtol, atol=rtol * 10.0)


def test_weights_are_rounded_to_float32_after_scaling():
    weight, out = np.array([1e300, 3e299, 0.0]), np.empty(3, np.float32)
    assert ps.round_weights(weight, 2.0**-1000, out) is out
    np.testing.assert_array_equal(out, (weight * 2.0**-1000).astype(np.float32))
    assert ps.round_weights(None, 1.0, out) is None
