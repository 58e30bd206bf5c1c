"""Fits of short columns in lockstep, compared with mpmath's optima, two-pass fits, and fits of single columns."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import oracles
import pytest

import powerkern as pk
from powerkern import Status
from powerkern._estimators.routes import LOCKSTEP_MAX, fit_in_memory, fit_vector
from powerkern._jit import JIT_DISABLED, LANES, in_all_lanes
from powerkern._status import Route
from powerkern.kernels.likelihood import lockstep, mle
from powerkern.kernels.likelihood.lockstep import BAND
from powerkern.kernels.likelihood.score_formulas import exponents_off_zero, score_from_moments
from powerkern.kernels.likelihood.scratch import new_work
from powerkern.kernels.optimize.newton import halley_step
from powerkern.kernels.results import (
    CURVATURE,
    DEFERRED,
    INTERCEPT,
    LMBDA,
    LOC,
    LOG_FACTOR,
    N_EVAL,
    N_OBS,
    N_RESULTS,
    NLL,
    REF,
    ROUTE,
    SCALE,
    STATUS,
    X_MAX,
    X_MIN,
)
from powerkern.kernels.transforms.family import BOX_COX, FAMILIES, YEO_JOHNSON

NAMES = {code: name for name, code in FAMILIES.items()}
NAN, INF = math.nan, math.inf
NOTHING = np.empty(0)

#: Draws of columns that are always fitted in lockstep if they have at least ten values.
ORDINARY = {
    "normal": lambda rng, n: rng.normal(size=n),
    "shifted normal": lambda rng, n: rng.normal(size=n) + 3.0,
    "positive": lambda rng, n: rng.gamma(4.0, size=n),
    "negative": lambda rng, n: -rng.gamma(4.0, size=n) - 0.1,
    "lognormal": lambda rng, n: rng.lognormal(size=n),
    "left skewed": lambda rng, n: 100.0 * rng.beta(8.0, 2.0, size=n),
    "counts": lambda rng, n: rng.poisson(4.0, size=n) + 1.0,
    "wide": lambda rng, n: 1e150 * rng.lognormal(sigma=8.0, size=n),
    "far": lambda rng, n: 1000.0 + 100.0 * rng.normal(size=n),
    "fractions": lambda rng, n: rng.uniform(size=n) / 10.0,
}

#: Columns that lockstep defers to other routes.
LEFT_ALONE = {
    "two values": [1.0, 2.0, NAN, NAN],
    "no value": [NAN] * 4,
    "equal": [3.0] * 4,
    "infinite": [1.0, 2.0, INF, 4.0],
    "minus infinity": [1.0, 2.0, -INF, 4.0],
    "tight": [1000.0, 1000.1, 1000.2, 1000.5],
    "enormous": [1.0, 2.0, 1e305, 4.0],
    "subnormal": [5e-324, 1e-310, 2.0, 4.0],
    "one unlike all others": [1.0] * 300 + [1.5],
    "range": [1e-200, 1e200, 1.0, 2.0],
}


def one_column_of_each_kind(n, seed=0, ordinary=ORDINARY, positive=False):
    """Return a matrix with one random column of `n` values for each entry of `ordinary`.

    The values of the dict `ordinary` are functions that take a random generator and `n` and return a column. With
    `positive`, columns that have values <= 0 are left out.
    """
    rng = np.random.default_rng(seed)
    columns = [make(rng, n) for make in ordinary.values()]
    return np.column_stack([x for x in columns if not positive or x.min() > 0.0])


def rows_in_lockstep(x, family, weight=None, lmbda=NAN):
    """Fit a matrix (n, p) in lockstep; return the rows of results, (p, N_RESULTS).

    In the row of a DEFERRED column, only the status is set.
    """
    n, p = x.shape
    out = np.full((p, N_RESULTS), NAN)
    given = np.full(p, float(lmbda))
    weight = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    lockstep.fit_in_lockstep(x, weight, family, given, lockstep.new_lockstep_work(n), out)
    return out


def in_two_passes(x, family, weight=NOTHING, lmbda=NAN):
    """Fit every column of a matrix (n, p) in two passes; return the rows of results, (p, N_RESULTS)."""
    n, p = x.shape
    out = np.full((p, N_RESULTS), NAN)
    out[:, STATUS], out[:, N_EVAL] = DEFERRED, 0.0
    columns, given = np.ascontiguousarray(x.T), np.full(p, float(lmbda))
    mle.two_pass_columns(columns, np.asarray(weight, dtype=float), family, given, new_work(n), out)
    return out


def assert_same_fits(rows, expected):
    """Check that two arrays of rows of results agree up to rounding."""
    np.testing.assert_array_equal(rows[:, [STATUS, X_MIN, X_MAX]], expected[:, [STATUS, X_MIN, X_MAX]])
    np.testing.assert_allclose(rows[:, N_OBS], expected[:, N_OBS], rtol=4e-15)  # sums in parts, one for each lane
    size = np.maximum(1.0, abs(expected[:, LMBDA]))
    assert (abs(rows[:, LMBDA] - expected[:, LMBDA]) <= 1e-12 * size).all()
    logs = size * np.log1p(abs(expected[:, [X_MIN, X_MAX]])).max(axis=1)
    assert (abs(rows[:, NLL] - expected[:, NLL]) <= 1e-13 * (1.0 + logs)).all()
    np.testing.assert_allclose(rows[:, CURVATURE], expected[:, CURVATURE], rtol=1e-7)
    for k in (LOC, SCALE):
        tolerance = 1e-12 * (1.0 + logs) * np.maximum(abs(expected[:, LOC]), expected[:, SCALE])
        assert (abs(rows[:, k] - expected[:, k]) <= tolerance).all()


# --- accuracy -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 61])
@pytest.mark.parametrize("family", [BOX_COX, YEO_JOHNSON])
def test_optima_agree_with_mpmath(family, n):
    x = one_column_of_each_kind(n, n, positive=family == BOX_COX)
    for row, column in zip(rows_in_lockstep(x, family), x.T, strict=True):
        assert (row[STATUS], row[ROUTE]) == (Status.OK, Route.LOCKSTEP)
        best = oracles.most_likely_lambda(NAMES[family], column, row[LMBDA])
        assert abs(row[LMBDA] - best) <= 1e-12 * max(1.0, abs(best))
        g, _, curvature = (float(v) for v in oracles.likelihood(NAMES[family], best, column)[:3])
        assert row[NLL] == pytest.approx(g, rel=1e-13, abs=1e-13 * (1.0 + np.log1p(abs(column)).max()))
        assert row[CURVATURE] == pytest.approx(curvature, rel=1e-7)


@pytest.mark.parametrize("family", NAMES.values())
def test_output_agrees_with_mpmath(family):
    x = one_column_of_each_kind(24, 1, positive=family == "box-cox")
    fit = pk.fit(x, family)
    assert set(fit.route) == {"lockstep"}
    z = fit.transform(x)
    for j, lmbda in enumerate(fit.lmbda):
        exact = np.array([float(v) for v in oracles.standardized(family, lmbda, x[:, j])])
        np.testing.assert_allclose(z[:, j], exact, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("n", [10, 100] if JIT_DISABLED else [10, 50, 255, LOCKSTEP_MAX])
@pytest.mark.parametrize("family", [BOX_COX, YEO_JOHNSON])
def test_fits_agree_with_two_passes(family, n):
    for seed in range(1 if JIT_DISABLED else 20):
        x = one_column_of_each_kind(n, seed, positive=family == BOX_COX)
        rows = rows_in_lockstep(x, family)
        assert (rows[:, ROUTE] == Route.LOCKSTEP).all()
        assert_same_fits(rows, in_two_passes(x, family))
        weight = np.random.default_rng(seed).uniform(0.5, 2.0, n)
        assert_same_fits(rows_in_lockstep(x, family, weight), in_two_passes(x, family, weight))


@pytest.mark.skipif(JIT_DISABLED, reason="many columns")
@pytest.mark.parametrize("n", [3, 4, 5, 7, 20])
@pytest.mark.parametrize("family", [BOX_COX, YEO_JOHNSON])
def test_very_short_columns_are_fitted_in_lockstep_and_agree_with_two_passes(family, n):
    """Lockstep fits at least 90 % of the columns, and their results agree with two-pass fits."""
    x = np.random.default_rng(n).lognormal(sigma=0.5, size=(n, 2000))
    if family == YEO_JOHNSON:
        x -= np.random.default_rng(0).uniform(0.0, 2.0, 2000)
    rows, expected = rows_in_lockstep(x, family), in_two_passes(x, family)
    done = rows[:, STATUS] != DEFERRED
    assert done.mean() > 0.9
    steep = abs(expected[done, LMBDA]) < 20.0  # steeper ones are ill-conditioned
    assert_same_fits(rows[done][steep], expected[done][steep])


def test_fits_at_a_given_lambda_agree_with_two_passes():
    for family, sign in ((BOX_COX, 1.0), (YEO_JOHNSON, 1.0), (YEO_JOHNSON, -1.0)):
        x = sign * one_column_of_each_kind(20, positive=True)
        for lmbda in (-1.0, 0.0, 1e-300, 0.3, 1.0, 2.0):
            rows = rows_in_lockstep(x, family, lmbda=lmbda)
            expected = in_two_passes(x, family, lmbda=lmbda)
            done = rows[:, STATUS] == Status.FIXED
            assert done.sum() >= 4
            assert (rows[done, LMBDA] == lmbda).all()
            np.testing.assert_allclose(rows[done, NLL], expected[done, NLL], rtol=1e-11, atol=1e-13)
            done &= (rows[:, LOG_FACTOR] == 0.0) & (expected[:, LOG_FACTOR] == 0.0)
            for k in (LOC, SCALE):
                np.testing.assert_allclose(rows[done, k], expected[done, k], rtol=1e-11, atol=1e-13)


def test_given_lambda_of_values_whose_ratios_underflow():
    """At lambda = 0, location and scale are mean and sd of ln x, even if the ratios of the values underflow."""
    x = 10.0 ** np.random.default_rng(1).uniform(-300.0, 300.0, (50, 8))
    assert (rows_in_lockstep(x, BOX_COX, lmbda=0.0)[:, STATUS] == DEFERRED).all()
    fit = pk.fit(x, "box-cox", lmbda=0.0)
    np.testing.assert_allclose(fit.loc, np.log(x).mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(fit.scale, np.log(x).std(axis=0), rtol=1e-13)


@pytest.mark.parametrize("n", [9, 600])
def test_given_lambda_near_0_where_outliers_dominate(n):
    """Compare likelihood and curvature with mpmath at lambda = 1e-17.

    The kernel evaluates them at a nonzero lambda nearby, and reaches 1e-17 by a Taylor step that must be short.
    """
    x = np.where(np.arange(n) % 9 < 5, 1e-5, 1e5) * np.random.default_rng(2).uniform(0.99, 1.01, n)
    weight = np.where(x > 1.0, 1e-6, 1.0)
    fit = pk.fit(x, lmbda=1e-17, sample_weight=weight)
    g, _, curvature = (float(v) for v in oracles.likelihood("yeo-johnson", 1e-17, x, weight)[:3])
    assert fit.nll[0] / fit.n_obs[0] == pytest.approx(g, rel=1e-13)
    assert fit.information[0] / fit.n_obs[0] == pytest.approx(curvature, rel=1e-7)


def test_powers_near_the_ends_of_float64_are_deferred():
    x = 1e250 * np.random.default_rng(4).gamma(4.0, size=(20, 3))
    for lmbda, status in ((-2.0, DEFERRED), (-1.0, Status.FIXED), (1.0, Status.FIXED), (2.0, DEFERRED)):
        assert (rows_in_lockstep(x, BOX_COX, lmbda=lmbda)[:, STATUS] == status).all()
    fit = pk.fit(x, "box-cox", lmbda=2.0)
    np.testing.assert_allclose(fit.transform(x).std(axis=0), 1.0, rtol=1e-12)
    assert (fit.log_factor > 600.0).all()


@pytest.mark.parametrize("n", [20, 600])
@pytest.mark.parametrize("lmbda", [5e-324, -5e-324, 1e-310])
def test_a_subnormal_lambda_gives_the_moments_of_the_logs(n, lmbda):
    """Location and scale are mean and sd of ln x, although lambda ln x is subnormal and has few digits."""
    x = np.random.default_rng(3).gamma(4.0, size=n)
    fit = pk.fit(x, "box-cox", lmbda=lmbda)
    assert fit.loc[0] == pytest.approx(np.log(x).mean(), rel=1e-13)
    assert fit.scale[0] == pytest.approx(np.log(x).std(), rel=1e-13)


def test_sums_of_powers_of_logs_give_the_derivatives_of_the_likelihood_at_0():
    """Compare the derivatives at lambda = 0, which the first Halley step uses, with numerical derivatives by mpmath."""
    rng = np.random.default_rng(12)
    a, weight = rng.gamma(2.0, size=9), rng.uniform(0.5, 2.0, 9)
    a -= (weight @ a) / weight.sum()
    t = lockstep._sums_at_zero(*(in_all_lanes(weight @ a**k) for k in (0, 2, 3, 4, 5)))
    slopes = score_from_moments(t, in_all_lanes(0.0))

    def g(lmbda):
        y = [mpmath.expm1(lmbda * v) / lmbda if lmbda else mpmath.mpf(v) for v in a]
        mean = mpmath.fdot(y, weight) / mpmath.fsum(weight)
        return mpmath.log(mpmath.fdot([(v - mean) ** 2 for v in y], weight)) / 2

    with mpmath.workdps(60):
        exact = [float(mpmath.diff(g, 0, k)) for k in (1, 2, 3)]
    np.testing.assert_allclose(np.array(slopes)[:, 0], exact, rtol=1e-11)


# --- missing values and weights ------------------------------------------------------------------------


@pytest.mark.parametrize("family", [BOX_COX, YEO_JOHNSON])
def test_missing_values_are_ignored(family):
    x = one_column_of_each_kind(40, positive=family == BOX_COX)
    absent = np.random.default_rng(3).uniform(size=x.shape) < 0.2
    rows = rows_in_lockstep(np.where(absent, NAN, x), family)
    assert (rows[:, ROUTE] == Route.LOCKSTEP).all()
    for j, row in enumerate(rows):
        np.testing.assert_array_equal(row, rows_in_lockstep(x[~absent[:, j], j : j + 1], family)[0])


@pytest.mark.parametrize("family", [BOX_COX, YEO_JOHNSON])
def test_weights_repeat_rows(family):
    x = one_column_of_each_kind(30, positive=family == BOX_COX)
    weight = np.random.default_rng(4).integers(0, 4, 30)
    x[weight == 0] = INF  # ignored
    rows, repeated = rows_in_lockstep(x, family, weight), rows_in_lockstep(np.repeat(x, weight, axis=0), family)
    assert (rows[:, ROUTE] == Route.LOCKSTEP).all()
    assert_same_fits(rows, repeated)
    kept = weight > 0
    np.testing.assert_array_equal(rows, rows_in_lockstep(x[kept], family, weight[kept]))
    np.testing.assert_array_equal(
        rows_in_lockstep(x[kept], family), rows_in_lockstep(x[kept], family, np.ones(kept.sum()))
    )


def test_lockstep_with_nearly_all_weight_on_one_value():
    """Lambdas of columns that are not deferred agree with those of two-pass fits."""
    x = one_column_of_each_kind(30)
    for tiny in (1e-2, 1e-6, 1e-12, 1e-24):
        weight = np.full(30, tiny)
        weight[7] = 1.0
        rows, expected = rows_in_lockstep(x, YEO_JOHNSON, weight), in_two_passes(x, YEO_JOHNSON, weight)
        done = rows[:, STATUS] != DEFERRED
        assert (abs(rows - expected)[done, LMBDA] <= 1e-11 * np.maximum(1.0, abs(expected[done, LMBDA]))).all()


# --- each column by itself ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed():
    """Return a matrix whose columns fill more than two bands.

    It has ordinary columns, the columns of LEFT_ALONE, and 2 % missing values.
    """
    rng = np.random.default_rng(5)
    n, p = 12, BAND * LANES * 2 + 5
    x = rng.normal(size=(n, p)) * rng.lognormal(size=p) + rng.normal(size=p)
    for j, column in enumerate(LEFT_ALONE.values()):
        x[:, 3 + 7 * j] = np.resize(column, n)
    x[rng.uniform(size=x.shape) < 0.02] = NAN
    return x


def test_neighboring_columns_change_no_bit(mixed):
    rows = rows_in_lockstep(mixed, YEO_JOHNSON)
    left = rows[:, STATUS] == DEFERRED
    assert 0 < left.sum() < 0.3 * left.size
    for j in range(0, left.size, 9 if JIT_DISABLED else 1):
        np.testing.assert_array_equal(rows_in_lockstep(mixed[:, j : j + 1], YEO_JOHNSON)[0], rows[j])
    order = np.random.default_rng(6).permutation(left.size)
    np.testing.assert_array_equal(rows_in_lockstep(mixed[:, order], YEO_JOHNSON), rows[order])


@pytest.mark.parametrize("p", [1, 7, 8, 9, 15, 63, 64, 65, 72])
def test_the_number_of_columns_changes_no_bit(mixed, p):
    p = min(p, 17) if JIT_DISABLED else p
    np.testing.assert_array_equal(rows_in_lockstep(mixed[:, :p], YEO_JOHNSON), rows_in_lockstep(mixed, YEO_JOHNSON)[:p])


def test_results_do_not_depend_on_memory_layout(mixed):
    """Compare results for all memory orders, strides and dtypes, and for read-only memory."""
    x = np.clip(mixed, -1e38, 1e38).astype(np.float32).astype(np.float64)
    lmbda = np.full(x.shape[1], NAN)
    expected = fit_in_memory(x, YEO_JOHNSON, lmbda, None, 1)
    assert {Route.LOCKSTEP, Route.TWO_PASS, Route.NONE} <= set(expected[:, ROUTE])
    spaced = np.zeros((3 * x.shape[0], 2 * x.shape[1]))
    spaced[::3, ::2] = x
    for other in (x.copy("F"), spaced[::3, ::2], x[::-1, ::-1][::-1, ::-1], x.astype(np.float32), x.astype(">f8")):
        other.setflags(write=False)
        for n_threads in (1, 2):
            np.testing.assert_array_equal(fit_in_memory(other, YEO_JOHNSON, lmbda, None, n_threads), expected)


@pytest.mark.skipif(JIT_DISABLED, reason="many columns")
def test_threads_change_no_bit():
    x = np.random.default_rng(8).lognormal(size=(20, 5000))
    fits = [pk.fit(x, "box-cox", n_threads=k) for k in (1, 2, 5)]
    assert all((fit.lmbda == fits[0].lmbda).all() and (fit.nll == fits[0].nll).all() for fit in fits)


def test_nothing_is_written_to_the_matrix(mixed):
    before, weight = mixed.tobytes(), np.ones(mixed.shape[0])
    rows_in_lockstep(mixed, YEO_JOHNSON, weight)
    assert mixed.tobytes() == before
    assert (weight == 1.0).all()


# --- deferred columns ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_columns_that_lockstep_defers_are_fitted_in_two_passes(name):
    x = np.array(LEFT_ALONE[name])[:, np.newaxis]
    for family in (BOX_COX, YEO_JOHNSON):
        if family == YEO_JOHNSON and name == "subnormal":
            continue  # 1 + x is ordinary
        assert rows_in_lockstep(x, family)[0, STATUS] == DEFERRED
        row, expected = fit_in_memory(x, family, np.array([NAN]), None, 1)[0], in_two_passes(x, family)[0]
        row[N_EVAL] = expected[N_EVAL] = 0.0
        np.testing.assert_array_equal(row, expected)


@pytest.mark.parametrize("odd", [0.0, -0.0, -1.0, INF])
def test_values_outside_the_domain(odd):
    x = one_column_of_each_kind(20, positive=True)
    x[11, 2] = odd
    rows = rows_in_lockstep(x, BOX_COX)
    assert (np.flatnonzero(rows[:, STATUS] == DEFERRED) == 2).all()
    with pytest.raises(ValueError, match="row 11"):
        pk.fit(x, "box-cox")


@pytest.mark.parametrize("lowest", [0.0, -0.0])
def test_zero_is_not_negative(lowest):
    x = np.random.default_rng(9).gamma(2.0, size=(20, 2))
    x[4] = lowest
    rows = rows_in_lockstep(np.column_stack([x, -x]), YEO_JOHNSON)
    assert_same_fits(rows, in_two_passes(np.column_stack([x, -x]), YEO_JOHNSON))
    assert not np.signbit(rows[:2, X_MIN]).any()
    assert not np.signbit(rows[2:, X_MAX]).any()
    assert (rows[:, REF] >= 0.0).all() or (rows[:2, REF] >= 0.0).all()


def test_only_the_route_changes_at_the_longest_lockstep_column():
    """Columns of LOCKSTEP_MAX and LOCKSTEP_MAX + 1 values take different routes; both fits agree with two passes."""
    rng = np.random.default_rng(10)
    x = rng.gamma(4.0, size=LOCKSTEP_MAX + 1)
    for n, route in ((LOCKSTEP_MAX, Route.LOCKSTEP), (LOCKSTEP_MAX + 1, Route.ONE_PASS)):
        if JIT_DISABLED and route == Route.LOCKSTEP:
            continue
        fit = fit_vector(x[:n], YEO_JOHNSON)
        assert fit.route == route
        assert_same_fits(np.array([fit], dtype=float), in_two_passes(x[:n, np.newaxis], YEO_JOHNSON))


def test_standardized_reference_is_the_intercept():
    """The fit is standardised relative to a reference value, so the transform of that value is the intercept."""
    x = one_column_of_each_kind(30)
    fit = pk.fit(x)
    rows = rows_in_lockstep(x, YEO_JOHNSON)
    np.testing.assert_allclose(fit.transform(rows[:, REF][np.newaxis])[0], rows[:, INTERCEPT], rtol=1e-12, atol=1e-13)


# --- parts of the procedure ---------------------------------------------------------------------------


def test_columns_take_few_evaluations():
    for family, most in ((BOX_COX, 22), (YEO_JOHNSON, 32)):
        x = one_column_of_each_kind(40, 5, positive=family == BOX_COX)
        rows = rows_in_lockstep(x, family)
        assert (rows[:, STATUS] == Status.OK).all()
        assert rows[:, N_EVAL].sum() <= most + (not JIT_DISABLED)  # compiled code rounds differently
        given = rows_in_lockstep(x, family, lmbda=0.5)
        assert (given[given[:, STATUS] == Status.FIXED, N_EVAL] == 2.0).all()


LANE_VALUES = np.array([-3.0, -1.0, -0.2, 0.0, 0.3, 0.9, 2.0, 5.0])


def test_halley_steps_of_lanes_are_those_of_single_numbers():
    """Compare with steps of single numbers, also where the Halley correction is so large that Newton's step is used."""
    f, df = np.full(LANES, 0.6), np.full(LANES, 1.5)
    for d2f in (LANE_VALUES, 3.0 * LANE_VALUES):
        expected = [halley_step(0.6, 1.5, float(v)) for v in d2f]
        np.testing.assert_allclose(lockstep._halley_lanes(f, df, d2f), expected, rtol=1e-15)
        np.testing.assert_allclose(
            lockstep._halley_lanes(-f, df, d2f), [halley_step(-0.6, 1.5, float(v)) for v in d2f], rtol=1e-15
        )


def test_steps_of_lanes_are_limited():
    np.testing.assert_array_equal(
        lockstep._limit_steps(LANE_VALUES, np.full(LANES, 0.9)), np.clip(LANE_VALUES, -0.9, 0.9)
    )


@pytest.mark.parametrize("center", [0.0, 2.0])
def test_exponents_of_lanes_stay_away_from_0_and_2(center):
    x, floor = center + 0.1 * LANE_VALUES, np.full(LANES, 0.1)
    both = np.arange(LANES) % 2 == 0
    expected = [exponents_off_zero(float(v), bool(flag), 2.0, 0.1) for v, flag in zip(x, both, strict=True)]
    expected = [0.1 if v == 0.0 else v for v in expected]
    np.testing.assert_allclose(lockstep._exponents_off_zero(x, both, floor), expected, rtol=1e-15)


TINY = np.finfo(float).tiny


@pytest.mark.parametrize(
    ("family", "low", "high", "count", "expected"),
    [
        (BOX_COX, 1.0, 2.0, 3.0, True),
        (BOX_COX, 1.0, 2.0, 2.0, False),
        (BOX_COX, 1.0, 1.0, 3.0, False),
        (BOX_COX, 0.0, 2.0, 3.0, False),
        (BOX_COX, -1.0, 2.0, 3.0, False),
        (BOX_COX, TINY, 0.5, 3.0, True),
        (BOX_COX, TINY / 2, 0.5, 3.0, False),
        (BOX_COX, 1e-10, 0.9e300, 3.0, False),  # the ratio is subnormal
        (BOX_COX, 1.0, 0.9e300, 3.0, True),
        (BOX_COX, 1.0, 1.1e300, 3.0, False),
        (YEO_JOHNSON, -1.0, 2.0, 3.0, True),
        (YEO_JOHNSON, 0.0, 2.0, 3.0, True),
        (YEO_JOHNSON, -1.0, 0.0, 3.0, True),
        (YEO_JOHNSON, -2.0, -1.0, 3.0, True),
        (YEO_JOHNSON, -0.9e300, -1.0, 3.0, True),
        (YEO_JOHNSON, -0.9e300, 5.0, 3.0, True),
        (YEO_JOHNSON, -1.1e300, 5.0, 3.0, False),
        (YEO_JOHNSON, -5.0, 1.1e300, 3.0, False),
        (YEO_JOHNSON, -5.0, INF, 3.0, False),
        (YEO_JOHNSON, INF, -INF, 0.0, False),
    ],
)
def test_columns_of_lanes_are_in_the_domain_and_of_moderate_size(family, low, high, count, expected):
    data = lockstep._Data(*(in_all_lanes(float(v)) for v in (count, count, low, high)))
    with np.errstate(all="ignore"):
        assert np.asarray(lockstep._in_domain(data, family)).tolist() == [expected] * LANES


def test_values_of_lanes_are_summarised():
    rng = np.random.default_rng(4)
    x, weight = rng.normal(size=(9, LANES)), np.array([1.0, 0.0, 2.0, 0.5, 1.0, 3.0, 0.0, 1.0, 1.0])
    x[rng.random((9, LANES)) < 0.3] = NAN
    x[1] = 1e9
    seen = ~np.isnan(x) & (weight > 0.0)[:, np.newaxis]
    found = lockstep._summarize_values(x, weight)
    np.testing.assert_array_equal(found.count, seen.sum(axis=0))
    np.testing.assert_allclose(found.weight, (seen * weight[:, np.newaxis]).sum(axis=0))
    np.testing.assert_array_equal(found.low, np.where(seen, x, INF).min(axis=0))
    np.testing.assert_array_equal(found.high, np.where(seen, x, -INF).max(axis=0))


@pytest.mark.parametrize("family", [BOX_COX, YEO_JOHNSON])
def test_the_start_is_a_halley_step_from_1_or_from_0_for_box_cox(family):
    """Compare the start with a Halley step from mpmath, limited to 2/sd.

    Here sd is the standard deviation of the logs. The logs are centered at their mean if all have one sign.
    """
    rng = np.random.default_rng(14)
    x, weight = rng.lognormal(size=(12, LANES)), np.append(rng.uniform(0.5, 2.0, 11), 0.0)
    if family == YEO_JOHNSON:
        x[:, :3] *= np.where(np.arange(12) % 3, 1.0, -1.0)[:, np.newaxis]
        x[:, 3:5] *= -1.0
    x[3, 2::2] = NAN
    work = x.copy()
    with np.errstate(all="ignore"):
        logs = lockstep._take_logs(work, weight, lockstep._summarize_values(x, weight), family)
    for k in range(LANES):
        seen = ~np.isnan(x[:, k]) & (weight > 0.0)
        values, own = x[seen, k], weight[seen]
        mirrored = values.max() < 0.0
        at = 0.0 if family == BOX_COX else 1.0
        _, d1, d2, d3 = map(float, oracles.likelihood(NAMES[family], at, abs(values) if mirrored else values, own, 30))
        a = np.log(values) if family == BOX_COX else np.sign(values) * np.log1p(abs(values))
        a = abs(a) if mirrored else a
        both = (values < 0.0).any() and not mirrored
        center = 0.0 if both else np.average(a, weights=own)
        sd = math.sqrt(np.average((a - center) ** 2, weights=own))
        step = float(np.clip(halley_step(d1, d2, d3), -2.0 / sd, 2.0 / sd)) if d2 > 0.0 else 0.0
        assert logs.start[k] == pytest.approx(at + step, rel=1e-9)
        assert logs.both_signs[k] == both
        assert logs.reference[k] == pytest.approx(1.0 if both else math.exp(center), rel=1e-13)
        assert (logs.weight[k], logs.sd[k]) == pytest.approx((own.sum(), sd), rel=1e-12)
        assert logs.jacobian[k] == pytest.approx(np.average(a, weights=own) - center, abs=1e-14)
        assert logs.largest_log[k] == pytest.approx(abs(a - center).max(), rel=1e-12)
        np.testing.assert_allclose(work[seen, k], a - center, rtol=1e-11, atol=1e-14)
        assert (work[~seen, k] == 0.0).all()
