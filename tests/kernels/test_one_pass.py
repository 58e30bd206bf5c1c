"""One pass against two passes, which hold for any data, and the test that says when one pass will do."""

from __future__ import annotations

import numba
import numpy as np
import oracles
import pytest

from powerkern import Status
from powerkern._jit import JIT_DISABLED
from powerkern.kernels import likelihood as lk
from powerkern.kernels import mle
from powerkern.kernels import one_pass as ps
from powerkern.kernels.family import BOX_COX, YEO_JOHNSON
from powerkern.kernels.one_pass import ONE_PASS_MIN, SAMPLE_STRIDE
from powerkern.kernels.results import CURVATURE, LMBDA, LOC, N_EVAL, N_RESULTS, NLL, SCALE, STATUS
from powerkern.kernels.scratch import SAMPLE, new_work

EPS = np.finfo(float).eps
BOX_COX, YEO_JOHNSON = BOX_COX, YEO_JOHNSON

# sizes around those at which the fit changes: in two passes, from a sample, in chunks
SIZES = [ONE_PASS_MIN - 1, ONE_PASS_MIN, ONE_PASS_MIN + 1, ps.CHUNK - 1, ps.CHUNK + 1]
LARGE = [SAMPLE - 1, SAMPLE, SAMPLE + 1, SAMPLE * SAMPLE_STRIDE, 70_001]
if JIT_DISABLED:
    SIZES, LARGE = SIZES[:2], []

#: Columns that one pass is made for, and some that it must leave to two passes.
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


def fitted(x, family, weight=()):
    """The row of results of one column."""
    out = np.empty((1, N_RESULTS))
    mle.fit_columns(x[None], np.array(weight, dtype=float), family, np.array([np.nan]), new_work(x.size), out)
    return out[0]


def assert_same_fit(x, family):
    """With weights of one a column is fitted in two passes: both must agree."""
    one_pass, two_pass = fitted(x, family), fitted(x, family, np.ones(x.size))
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
def test_sample_that_misleads():
    """One value in `SAMPLE_STRIDE` is looked at first: what it says about the others may be wrong in every way."""
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
def test_any_spread(shape):
    """From tight clusters to logs that reach across float64."""
    n = ONE_PASS_MIN + 50
    z = np.clip(np.random.default_rng(3).normal(size=n), -1.3, 1.3)
    assert_same_fit(np.exp(shape * z) if shape > 1e-3 else 1.0 + shape * z, BOX_COX)
    assert_same_fit(shape * z, YEO_JOHNSON)


@pytest.mark.parametrize("lmbda", [0.0, 1e-9, 1e-4, 1.0, 2.0 - 1e-6, 2.0])
def test_optima_where_an_exponent_vanishes(lmbda):
    """Sums of Y_j carry powers of m, or of 2 - m: the walk keeps off 0 and comes back by a Taylor step."""
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
        assert fitted(x, family)[N_EVAL] <= 4  # no second fit in two passes


# --- the sums themselves ------------------------------------------------------------------------------


@numba.njit
def score_from_sums(x, base, per_ref, both_signs, exponent, moments):
    """Logs, sums and score of a column: in float64, and from float32 logs into the second row."""
    d, d32 = np.empty(x.size), np.empty(x.size, np.float32)
    if both_signs:
        total, squares, _, _ = ps.signed_logs(x, None, d, d32)
    else:
        total, squares, _, _ = ps.logs_of_one_sign(x, None, 0, -1, base, per_ref, d, d32)
    moments[:] = 0.0
    for start in range(0, x.size, ps.CHUNK):
        ps.add_sums(d[start : start + ps.CHUNK], None, exponent, both_signs, moments[0])
        ps.add_sums(d32[start : start + ps.CHUNK], None, exponent, both_signs, moments[1])
    good, good32 = ps.center(moments[0]), ps.center(moments[1])
    mean = total / x.size
    score, score32 = lk.score_from_moments(moments[0], mean), lk.score_from_moments(moments[1], mean)
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
    return score_from_sums(x, base, 1.0 / (base + np.median(x)), both_signs, exponent, np.empty((3, lk.N_MOMENTS)))


@pytest.mark.parametrize("exponent", [-3.0, -0.4, 0.1, 1.0, 1.3, 2.6])
@pytest.mark.parametrize("name", SMALL)
def test_score_from_sums(name, exponent):
    exact = [float(v) for v in oracles.likelihood(SMALL[name][0], exponent, SMALL[name][1])[1:]]
    _, _, _, _, good, good32, score, score32 = score_of(name, exponent)
    assert good
    assert good32
    np.testing.assert_allclose(score, exact, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(score32, exact, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", SMALL)
def test_logs(name):
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
    return ps.center(sums)


def sums_of(y):
    """Raw sums for rows y, y', y'', y'''."""
    pairs = [(0, 0), (0, 1), (1, 1), (0, 2), (0, 3), (1, 2)]
    return np.array([y.shape[1], *y.sum(axis=1), *((y[i] * y[j]).sum() for i, j in pairs)])


def test_center_turns_sums_into_moments():
    y = np.random.default_rng(8).normal(size=(4, 100)) + np.array([[1.0], [-2.0], [0.5], [3.0]])
    sums = sums_of(y)
    assert centered(sums)
    np.testing.assert_allclose(sums[1:5], y.mean(axis=1), rtol=1e-13)
    c = np.cov(y, bias=True) * 100
    np.testing.assert_allclose(sums[5:], [c[0, 0], c[0, 1], c[1, 1], c[0, 2], c[0, 3], c[1, 2]], rtol=1e-10)


@pytest.mark.parametrize("offset, trusted", [(0.0, True), (5.0, True), (30.0, False), (1e9, False)])
def test_center_refuses_a_mean_that_dwarfs_the_spread(offset, trusted):
    assert centered(sums_of(np.random.default_rng(9).normal(size=(4, 400)) + offset)) is trusted


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200])
def test_center_refuses_what_is_not_finite(value):
    y = np.random.default_rng(10).normal(size=(4, 100))
    y[:, 7] = value
    with np.errstate(all="ignore"):
        assert not centered(sums_of(y))


def test_center_refuses_a_constant():
    assert not centered(sums_of(np.full((4, 10), 3.0)))
