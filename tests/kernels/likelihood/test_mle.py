"""The fit of one column, from raw values to lambda: summary, certificate, constants, and every status."""

from __future__ import annotations

import math
import os
from pathlib import Path

import mpmath
import numba
import numpy as np
import oracles
import processes
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from powerkern import Status
from powerkern._engine.one_column import interval_vector, nll_vector
from powerkern._estimators.routes import fit_in_memory, fit_vector
from powerkern._jit import JIT_DISABLED
from powerkern.kernels.likelihood import logs, mle
from powerkern.kernels.likelihood.one_pass import ONE_PASS_MIN
from powerkern.kernels.likelihood.score_formulas import has_root_near
from powerkern.kernels.likelihood.scratch import new_work
from powerkern.kernels.results import (
    BAD_INFINITE,
    BAD_NOT_POSITIVE,
    CURVATURE,
    INTERCEPT,
    LMBDA,
    LOC,
    LOG_FACTOR,
    N_EVAL,
    N_OBS,
    N_RESULTS,
    NLL,
    SCALE,
    SLOPE,
    STATUS,
    X_MAX,
    X_MIN,
    is_identity,
)
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON

BOX_COX, YEO_JOHNSON = BOX_COX, YEO_JOHNSON
NAMES = {BOX_COX: "box-cox", YEO_JOHNSON: "yeo-johnson"}
NAN = math.nan
NEGATIVE_NAN = np.copysign(NAN, -1.0)

any_column = hnp.arrays(np.float64, st.integers(1, 40), elements=st.floats(allow_nan=True, allow_infinity=True))
finite_column = hnp.arrays(np.float64, st.integers(1, 12), elements=st.floats(allow_nan=False, allow_infinity=False))


def row_of_vector(x, family, weight=(), lmbda=NAN):
    """Fit one column, or evaluate it at a given lambda; return its row of results."""
    return np.array(fit_vector(np.asarray(x, dtype=float), family, float(lmbda), np.asarray(weight, dtype=float)))


# --- summary of the data ------------------------------------------------------------------------------


@numba.njit
def scan(x):
    return logs.summarize_values(x, None)


@given(any_column)
@example(np.array([NAN, NEGATIVE_NAN]))
@example(np.array([-0.0, 0.0]))
@example(np.array([-0.0, NEGATIVE_NAN, -np.inf]))
@example(np.array([5e-324, -5e-324, np.inf]))
@example(np.array([-2.2250738585072014e-308, 1.7976931348623157e308]))
def test_summary_ignores_nan(x):
    """Compare counts and extremes of the values that are not NaN with plain Python; no extreme is -0.0."""
    found = scan(x)
    seen = x[~np.isnan(x)]
    assert found.n == found.weight == found.squares == seen.size
    assert found.low == min(seen, default=np.inf)
    assert found.high == max(seen, default=-np.inf)
    assert not np.signbit(found.low if found.low == 0.0 else 1.0)
    assert not np.signbit(found.high if found.high == 0.0 else 1.0)


@numba.njit
def drop_missing(x, weight):
    out, weight_out = np.empty(x.size), np.empty(x.size)
    return logs.drop_missing(x, weight, out, weight_out), out, weight_out


@given(any_column)
def test_drop_missing_keeps_present_values_of_positive_weight(x):
    n, out, _ = drop_missing(x, None)
    np.testing.assert_array_equal(out[:n], x[~np.isnan(x)])
    weight = np.arange(x.size) % 3.0
    n, out, weight_out = drop_missing(x, weight)
    kept = ~np.isnan(x) & (weight > 0.0)
    np.testing.assert_array_equal(out[:n], x[kept])
    np.testing.assert_array_equal(weight_out[:n], weight[kept])


@numba.njit
def split_signs(x, values):
    out = np.empty(x.size)
    return logs.split_signs(x, values, out), out


@given(hnp.arrays(np.float64, st.integers(1, 40), elements=st.floats(allow_nan=False)))
@example(np.array([-0.0, 0.0, -0.0]))
@example(np.array([-1.0]))
def test_split_signs_separates_magnitudes_by_sign(x):
    """Values >= 0 (and -0.0) come first, in row order. Magnitudes of negative values follow in reversed row order."""
    with np.errstate(over="ignore"):  # an index that is not used any more may wrap around
        border, out = split_signs(x, x)
        order = split_signs(x, np.arange(float(x.size)))[1]
    np.testing.assert_array_equal(out[:border], abs(x[x >= 0.0]))
    np.testing.assert_array_equal(out[border:][::-1], -x[x < 0.0])
    np.testing.assert_array_equal(order[:border], np.flatnonzero(x >= 0.0))
    np.testing.assert_array_equal(order[border:][::-1], np.flatnonzero(x < 0.0))


# --- the certificate ----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [BOX_COX, YEO_JOHNSON])
def test_lambdas_near_the_optimum_are_certified(family):
    """A certified lambda is within twice the Newton step of the optimum.

    Lambdas near the optimum are certified, far ones are not.
    """
    x = np.random.default_rng(0).lognormal(size=20)
    best = oracles.most_likely_lambda(NAMES[family], x, fit_vector(x, family).lmbda)
    certified = []
    for offset in [0.0, 1e-12, -1e-6, 1e-3, -0.01, 0.1, -0.2, 0.4, -1.0, 2.0, -5.0, 30.0]:
        d1, d2, d3 = (float(v) for v in oracles.likelihood(NAMES[family], best + offset, x)[1:])
        certified.append(has_root_near(d1, d2, d3))
        assert not certified[-1] or abs(offset) <= 2.0 * abs(d1 / d2) + 1e-15
    assert all(certified[:5])
    assert not any(certified[-2:])


@pytest.mark.parametrize(
    "d1, d2, d3, certified",
    [
        (0.0, 1.0, 0.0, True),
        (0.5, 1.0, 1.0, True),
        (-0.5, 1.0, 1.0, True),
        (0.51, 1.0, -1.0, False),
        (0.0, 0.0, 0.0, False),
        (0.0, -1.0, 0.0, False),
        (NAN, 1.0, 1.0, False),
        (1.0, NAN, 1.0, False),
        (1.0, 1.0, NAN, False),
        (math.inf, 1.0, 0.1, False),
    ],
)
def test_certificate_needs_a_convex_function_and_a_short_step(d1, d2, d3, certified):
    assert has_root_near(d1, d2, d3) is certified


@pytest.mark.slow
@settings(max_examples=30 if JIT_DISABLED else 300)
@given(finite_column)
@example(np.array([0.0, 1e-320]))
@example(np.array([-1.7976931348623157e308, 1.7976931348623157e308]))
@example(np.array([-1.7976931348623157e308, 5e-324]))
@example(np.array([1.0, 1.0 + 2.0**-52]))
@example(np.array([1.0, 1.0, 1.0, -5e-324]))
@example(np.array([0.0, -0.0]))
def test_every_finite_column_is_certified_or_has_no_optimum(x):
    for family, data in ((YEO_JOHNSON, x), (BOX_COX, abs(x))):
        if family == BOX_COX and (data == 0.0).any():
            continue
        row = row_of_vector(data, family)
        distinct = np.unique(data).size
        if row[STATUS] == Status.OK:
            assert distinct > 1
            assert np.isfinite(row).all()
        else:
            assert row[STATUS] == (Status.CONSTANT if distinct == 1 else Status.UNREPRESENTABLE)


@settings(max_examples=10 if JIT_DISABLED else 100)
@given(finite_column, st.integers(0, 2**32 - 1))
def test_every_long_column_is_certified(x, seed):
    """One pass defers to two passes where it would lose digits; lambdas that it certifies agree with two passes."""
    long = np.random.default_rng(seed).choice(np.append(x, [1.0, 2.0]), size=ONE_PASS_MIN + 1)
    one_pass, two_pass = row_of_vector(long, YEO_JOHNSON), row_of_vector(long, YEO_JOHNSON, np.ones(long.size))
    assert one_pass[STATUS] == two_pass[STATUS] in (Status.OK, Status.CONSTANT)
    assert abs(one_pass[LMBDA] - two_pass[LMBDA]) <= 1e-11 * max(1.0, abs(two_pass[LMBDA]))


@settings(max_examples=15)
@given(
    x=st.lists(st.integers(-20, 20), min_size=3, max_size=8).filter(lambda v: len(set(v)) > 2),
    scale=st.sampled_from([1e-6, 1.0, 1e4]),
)
def test_lambda_of_any_small_column(x, scale):
    x = scale * np.array(x, dtype=float)
    row = row_of_vector(x, YEO_JOHNSON)
    exact = oracles.most_likely_lambda("yeo-johnson", x, row[LMBDA])
    # half an ulp of the values moves lambda by about eps over the width of the logs
    width = np.ptp(np.sign(x) * np.log1p(np.abs(x)))
    tolerance = 1e-12 * max(1.0, abs(row[LMBDA])) + 10 * np.finfo(float).eps / width
    assert abs(float(exact - mpmath.mpf(row[LMBDA]))) <= tolerance


# --- the constants ------------------------------------------------------------------------------------

NORMAL = np.random.default_rng(1).normal(size=ONE_PASS_MIN + 44)
CONSTANTS = {
    "short": (BOX_COX, np.exp(NORMAL[:30])),
    "long": (BOX_COX, np.exp(NORMAL)),
    "positive": (YEO_JOHNSON, np.exp(NORMAL[:30])),
    "long negative": (YEO_JOHNSON, -np.exp(NORMAL)),
    "negative": (YEO_JOHNSON, -np.exp(NORMAL[:30])),
    "both signs": (YEO_JOHNSON, NORMAL[:30]),
    "long of both signs": (YEO_JOHNSON, NORMAL),
    "years": (BOX_COX, np.round(1980.0 + 12.0 * NORMAL[:30])),
    "steep": (BOX_COX, np.array([10.0, 10.0, 10.0, 9.9])),
    "overflowing": (BOX_COX, np.array([0.1, 0.1, 0.1, 0.101])),
    "overflowing with both signs": (
        YEO_JOHNSON,
        10.0 ** np.linspace(200.0, 250.0, 20) * np.where(NORMAL[:20] > 1, -1, 1),
    ),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("name", CONSTANTS)
def test_moments_of_transformed_values(name, weighted):
    """LOC e^LOG_FACTOR and SCALE e^LOG_FACTOR are mean and standard deviation of psi, even if psi overflows."""
    family, x = CONSTANTS[name]
    weight = np.random.default_rng(2).exponential(size=x.size) if weighted else np.ones(x.size)
    row = row_of_vector(x, family, weight if weighted else ())
    assert row[STATUS] == Status.OK
    with mpmath.workdps(60):
        psi = [oracles.power_derivatives(NAMES[family], row[LMBDA], v)[0] for v in x]
        w = [mpmath.mpf(v) for v in weight]
        mean = mpmath.fdot(w, psi) / mpmath.fsum(w)
        sd = mpmath.sqrt(mpmath.fdot(w, [(v - mean) ** 2 for v in psi]) / mpmath.fsum(w))
        factor = mpmath.exp(row[LOG_FACTOR])
        # rounding of lambda times the largest log, here up to 1e3
        assert abs(row[LOC] * factor - mean) <= 1e-12 * (abs(mean) + sd)
        assert abs(row[SCALE] * factor - sd) <= 1e-12 * sd
    assert np.isfinite(row).all()
    assert (row[X_MIN], row[X_MAX]) == (x.min(), x.max())
    assert row[N_OBS] == pytest.approx(weight.sum(), rel=1e-14)
    curvature = float(oracles.likelihood(NAMES[family], row[LMBDA], x, weight)[2])
    assert row[CURVATURE] == pytest.approx(curvature, rel=1e-9)


# --- every status -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "x, family, status",
    [
        ([1.0, 2.0, 3.0], BOX_COX, Status.OK),
        ([2.0, 2.0], BOX_COX, Status.CONSTANT),
        ([2.0], YEO_JOHNSON, Status.CONSTANT),
        ([0.0, -0.0], YEO_JOHNSON, Status.CONSTANT),
        ([-3.0, NAN, -3.0], YEO_JOHNSON, Status.CONSTANT),
        ([NAN, NEGATIVE_NAN], YEO_JOHNSON, Status.EMPTY),
        ([0.0, 5e-324, 1e-323], YEO_JOHNSON, Status.UNREPRESENTABLE),
        ([1.0, np.inf], YEO_JOHNSON, BAD_INFINITE),
        ([1.0, -np.inf, NAN], YEO_JOHNSON, BAD_INFINITE),
        ([1.0, np.inf], BOX_COX, BAD_INFINITE),
        ([1.0, 0.0], BOX_COX, BAD_NOT_POSITIVE),
        ([1.0, -0.0], BOX_COX, BAD_NOT_POSITIVE),
        ([1.0, -5e-324], BOX_COX, BAD_NOT_POSITIVE),
        ([-1.0, -1.0], BOX_COX, BAD_NOT_POSITIVE),
    ],
)
@pytest.mark.parametrize("repeat", [1, ONE_PASS_MIN])
def test_status_of_degenerate_and_invalid_columns(x, family, status, repeat):
    row = row_of_vector(np.tile(x, repeat), family)
    assert row[STATUS] == status
    if status in (Status.CONSTANT, Status.EMPTY, Status.UNREPRESENTABLE):
        assert is_identity(row)
        expected = {LMBDA: 1.0, LOC: 0.0, SCALE: 1.0, SLOPE: 1.0, INTERCEPT: 0.0}
        assert {k: row[k] for k in expected} == expected


# several chunks of logs; one value in 11 is in the sample, and one in 187 decides whether one pass is tried
SIZE = 600 if JIT_DISABLED else 3000
POSITIVE = np.random.default_rng(8).gamma(3.0, size=SIZE)
LONG = {
    "positive": POSITIVE,
    "negative": -POSITIVE,
    "both signs": POSITIVE - 2.0,
    "few negative": np.where(np.arange(SIZE) % 187 == 1, -POSITIVE, POSITIVE),
    "counts": np.floor(POSITIVE),
    "minus counts": -np.floor(POSITIVE),
    "masked": (POSITIVE - 2.0) * (POSITIVE > 2.0),
}
ODD = [NAN, NEGATIVE_NAN, 0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1e300, -1e300, np.inf, -np.inf]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("family", [BOX_COX, YEO_JOHNSON])
def test_an_odd_value_anywhere_in_a_long_column_is_found(family, name, odd):
    """Compare one pass with a weighted fit, which reads all values first, if one value is missing, extreme or invalid.

    One pass reads a sample first, and this value may not be in the sample.
    """
    for position in (12,) if JIT_DISABLED else (0, 11, 12, 187, 2500, SIZE - 1):
        x = LONG[name].copy()
        x[position] = odd
        row, two_pass = row_of_vector(x, family), row_of_vector(x, family, np.ones(SIZE))
        for k in (STATUS, N_OBS, X_MIN, X_MAX):
            assert row[k] == two_pass[k] or (np.isnan(row[k]) and np.isnan(two_pass[k]))
        lmbda = two_pass[LMBDA]
        assert abs(row[LMBDA] - lmbda) <= 1e-11 * (1.0 + abs(lmbda))


@pytest.mark.slow
def test_ordinary_columns_are_fitted_in_one_pass():
    """Count passes in a process without compilation: only a tight cluster needs a second pass.

    The other columns include ones with a misleading sample or with missing values.
    """
    code = (
        "import numpy as np, test_mle\n"
        "from powerkern.kernels.likelihood import mle, one_pass\n"
        "from powerkern.kernels.transforms.family import YEO_JOHNSON\n"
        "two_pass, samples = [], []\n"
        "def counted(calls, function):\n"
        "    return lambda *arguments: calls.append(None) or function(*arguments)\n"
        "mle.two_pass_optimum = counted(two_pass, mle.two_pass_optimum)\n"
        "one_pass._start_from_sample = counted(samples, one_pass._start_from_sample)\n"
        "few = np.abs(test_mle.LONG['both signs'][:600]); few[1] = -1.0\n"
        "columns = [*(x[:600] for x in test_mle.LONG.values()), few, -few]\n"
        "columns += [np.where(np.arange(600) % 7 == 3, np.nan, x) for x in columns]\n"
        "for x in columns: test_mle.row_of_vector(x, YEO_JOHNSON)\n"
        "print(len(two_pass), len(samples) <= 2 * len(columns))\n"
        "two_pass.clear(); samples.clear()\n"
        "test_mle.row_of_vector(1e6 + test_mle.POSITIVE[:600], YEO_JOHNSON)\n"  # a tight cluster is not tried twice
        "print(len(two_pass), len(samples))"
    )
    path = os.pathsep.join(map(str, [processes.SOURCES, Path(oracles.__file__).parent, Path(__file__).parent]))
    assert processes.run(code, NUMBA_DISABLE_JIT="1", PYTHONPATH=path).split() == ["0", "True", "1", "1"]


def test_given_lambda_is_taken_as_it_is():
    x = np.exp(NORMAL)
    for lmbda in (-2.0, 0.0, 1e-300, 0.3, 2.0):
        row = row_of_vector(x, BOX_COX, lmbda=lmbda)
        assert row[LMBDA] == lmbda
        assert row[STATUS] == Status.FIXED
        assert row[NLL] == pytest.approx(float(oracles.likelihood("box-cox", lmbda, x)[0]), rel=1e-13)


def test_zero_weights_leave_values_out():
    x = np.array([NAN, 1.0, 5.0, 2.0, np.inf, -7.0])
    weight = np.array([1.0, 2.0, 0.5, 1.0, 0.0, 0.0])
    np.testing.assert_array_equal(row_of_vector(x, BOX_COX, weight), row_of_vector(x[1:4], BOX_COX, weight[1:4]))
    assert row_of_vector(x, BOX_COX, np.zeros(6))[STATUS] == Status.EMPTY


def test_number_of_evaluations_is_small():
    """From lambda = 1, easy columns take at most 10 evaluations, and the hardest at most 30."""
    for x in (np.exp(NORMAL), np.exp(NORMAL[:30]), np.exp(50.0 * NORMAL)):
        assert row_of_vector(x, BOX_COX)[N_EVAL] <= 10
    for x in ([0.1, 0.1, 0.1, 0.101], [1.0, 1.0, 1.0 + 2.0**-51], [1e-300, 1e300, 1e300], [5e-324, 1e-323, 1.5e-323]):
        assert row_of_vector(x, BOX_COX)[N_EVAL] <= 30


# --- vectors, profiles, intervals ---------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in CONSTANTS if not name.startswith("long ")])
def test_vector_functions_agree_with_the_row_of_results(name):
    """Functions for one vector return the same numbers as the row of results of a matrix, as Python numbers."""
    family, x = CONSTANTS[name]
    fit = fit_vector(x, family)
    row = fit_in_memory(np.column_stack([x, x, x[::-1]]), family, np.full(3, NAN), None, 2)[1]
    np.testing.assert_array_equal(fit, row)
    assert all(type(v) in (float, int) for v in fit)
    offsets = np.array([0.0, -0.5, 2.0]) / math.sqrt(fit.curvature)
    g = nll_vector(x, family, fit.lmbda + offsets)
    exact = [float(oracles.likelihood(NAMES[family], fit.lmbda + d, x)[0]) for d in offsets]
    size = (1.0 + abs(fit.lmbda)) * abs(np.log1p(abs(x))).max()
    np.testing.assert_allclose(g, exact, rtol=1e-13, atol=1e-14 * (1.0 + size))
    for drop in (1e-3, 0.5, 20.0) if x.size < 100 else (0.5,):
        low, high = interval_vector(x, family, fit.lmbda, drop)
        assert low < fit.lmbda < high
        at_ends = [float(oracles.likelihood(NAMES[family], v, x)[0]) for v in (low, high)]
        np.testing.assert_allclose(at_ends, exact[0] + drop, rtol=1e-9, atol=1e-9 * drop + 1e-14 * size)


@pytest.mark.parametrize("drop", [6e-4, 1e-5, 1e-8, 1e-12])
@pytest.mark.parametrize("scale", [1.0, 1e-290, 1e290])
def test_intervals_of_small_drops_are_integrals_of_the_score(scale, drop):
    """At the ends, g exceeds its minimum by `drop`, although g is too large to compute `drop` as a difference."""
    x = scale * np.random.default_rng(2).gamma(2.0, size=12)
    best = fit_vector(x, BOX_COX).lmbda
    low, high = interval_vector(x, BOX_COX, best, drop)
    at_best, at_low, at_high = (oracles.likelihood("box-cox", v, x)[0] for v in (best, low, high))
    assert low < best < high
    np.testing.assert_allclose([float(at_low - at_best), float(at_high - at_best)], drop, rtol=1e-7)


def test_profile_and_interval_of_what_cannot_be_fitted():
    for x in ([2.0, 2.0], [NAN, NAN]):
        x = np.array(x)
        assert np.isnan(nll_vector(x, YEO_JOHNSON, np.array([0.0, 1.0]))).all()
        assert np.isnan(interval_vector(x, YEO_JOHNSON, 1.0, 0.5)).all()


def test_nothing_is_written_to_the_column():
    x = np.append(NORMAL, [NAN, 3.0])
    before = x.tobytes()
    weight = np.ones(x.size)
    row_of_vector(x, YEO_JOHNSON)
    row_of_vector(x, YEO_JOHNSON, weight)
    nll_vector(x, YEO_JOHNSON, np.array([0.5]))
    interval_vector(x, YEO_JOHNSON, 1.0, 0.1)
    assert x.tobytes() == before
    assert (weight == 1.0).all()


@pytest.mark.parametrize("is_weighted", [False, True])
def test_every_column_has_its_own_profile_and_interval(is_weighted):
    """Columns that cannot be fitted get NaN; the columns after them are not affected."""
    rng = np.random.default_rng(31)
    columns = rng.gamma(2.0, size=(4, 12))
    columns[1], columns[2, 3] = 5.0, NAN
    columns[3] *= -1.0
    weight = rng.integers(1, 4, 12).astype(float) if is_weighted else np.empty(0)
    lmbdas, drops, work = np.array([-0.5, 1.5, 2.0]), np.array([0.1, 0.1, 0.3, 2.0]), new_work(12)
    best = np.array([row_of_vector(x, YEO_JOHNSON, weight)[LMBDA] for x in columns])
    profile, ends = np.zeros((4, 3)), np.zeros((4, 2))
    mle.profile_columns(columns, weight, YEO_JOHNSON, lmbdas, work, profile)
    mle.interval_columns(columns, weight, YEO_JOHNSON, np.column_stack([best, drops]), work, ends)
    assert np.isnan(profile[1]).all()
    assert np.isnan(ends[1]).all()
    for j in (0, 2, 3):
        seen = ~np.isnan(columns[j])
        own = weight[seen] if is_weighted else None
        g = [
            float(oracles.likelihood("yeo-johnson", v, columns[j, seen], own, 30)[0])
            for v in (*lmbdas, best[j], *ends[j])
        ]
        np.testing.assert_allclose(profile[j], g[:3], rtol=1e-11)
        assert ends[j, 0] < best[j] < ends[j, 1]
        np.testing.assert_allclose(np.array(g[4:]) - g[3], drops[j], rtol=1e-9)


@pytest.mark.parametrize("n", [12, ONE_PASS_MIN])
def test_evaluations_are_counted_from_zero(n):
    """A tight column takes two passes at every lambda; at a given lambda it is evaluated once."""
    x = np.random.default_rng(3).normal(size=(1, n))
    for columns in (x, 1e5 + 1e-4 * x):
        out = np.full((1, N_RESULTS), 7.0)
        mle.fit_columns(columns, np.empty(0), YEO_JOHNSON, np.array([0.5]), new_work(n), out)
        assert (out[0, N_EVAL], out[0, STATUS]) == (1.0, Status.FIXED)
