"""The profile likelihood and its first three derivatives, compared with mpmath for data of every kind."""

from __future__ import annotations

import math

import mpmath
import numba
import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from powerkern._jit import JIT_DISABLED
from powerkern.kernels.likelihood import score as lk
from powerkern.kernels.likelihood import score_formulas
from powerkern.kernels.likelihood.logs import Magnitudes, logs_about

RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=40)
WEIGHTS = RNG.exponential(size=2000)
BLOCKS = np.exp(RNG.normal(size=2 * lk.BLOCK + 76))

COLUMNS = {
    "lognormal": ("box-cox", np.exp(NORMAL)),
    "positive": ("yeo-johnson", np.exp(NORMAL)),
    "negative": ("yeo-johnson", -np.exp(NORMAL)),
    "both signs": ("yeo-johnson", NORMAL),
    "tight": ("box-cox", 1e4 + 1e-3 * NORMAL),
    "very tight": ("yeo-johnson", 1.0 + 1e-10 * NORMAL),
    "years": ("box-cox", np.round(1980.0 + 12.0 * NORMAL)),
    "huge": ("box-cox", 1e300 * np.exp(NORMAL)),
    "tiny": ("box-cox", 1e-300 * np.exp(NORMAL)),
    "subnormal": ("box-cox", 5e-324 * np.arange(1.0, 20.0)),
    "subnormal of both signs": ("yeo-johnson", np.array([5e-324, 5e-323, 5e-320, -5e-324, -1e-310, -2e-310])),
    "tiny of both signs": ("yeo-johnson", 1e-300 * NORMAL),
    "huge of both signs": ("yeo-johnson", 1e150 * NORMAL),
    "all magnitudes": ("box-cox", 10.0 ** np.linspace(-300.0, 300.0, 20)),
    "outlier": ("yeo-johnson", np.append(NORMAL, 1e10)),
    "binary": ("yeo-johnson", np.array([0.0] * 19 + [1.0])),
    "two values of both signs": ("yeo-johnson", np.array([-1.0] * 3 + [1.0] * 17)),
    "a block": ("box-cox", BLOCKS[: lk.BLOCK]),
    "more than a block": ("box-cox", BLOCKS[: lk.BLOCK + 1]),
    "blocks of both signs": ("yeo-johnson", np.log(BLOCKS)),
}


@numba.njit
def evaluate(sides, base, reference, log_reference, exponents, scratch, out):
    """Evaluate the profile likelihood of a column as the kernels do; return sigma, the spread of its logs.

    Parameters
    ----------
    sides : Magnitudes
        Magnitudes and weights of the positive and negative values.
    base : float
        0 for Box-Cox, 1 for Yeo-Johnson.
    reference : float
        The value to which logs are relative; 0 if both signs occur.
    log_reference : float
        ln(base + reference).
    exponents : (k,) ndarray
        Exponents, in the units of lambda.
    scratch : Scratch
        Scratch arrays.
    out : (k, 4) ndarray
        Receives g and its three derivatives in mu = exponent sigma.
    """
    spare = np.empty(sides.pos.size + sides.neg.size)
    logs = logs_about(sides, sides.neg.size > 0, base, reference, spare)
    for k in range(exponents.size):
        mu = exponents[k] * logs.sigma
        at = lk.score(logs, mu, scratch)
        out[k, 0] = lk.nll_at(logs, mu, at, log_reference)
        out[k, 1], out[k, 2], out[k, 3] = at.d1, at.d2, at.d3
    return logs.sigma


def new_scratch():
    return lk.Scratch(np.empty((4, lk.BLOCK)), np.empty((3, score_formulas.N_MOMENTS)))


def likelihood(family, x, weight, lmbdas):
    """Evaluate the profile likelihood g of a column by the kernels at the k values in `lmbdas`.

    Return g and its three derivatives in lambda sigma, (k, 4), and sigma, the spread of the logs.
    """
    base = 1.0 if family == "yeo-johnson" else 0.0
    below = x < 0.0
    mirrored = below.all()
    if mirrored:
        below = ~below
    sides = Magnitudes(
        *(np.ascontiguousarray(v) for v in (abs(x[~below]), abs(x[below]), weight[~below], weight[below]))
    )
    reference = 0.0 if sides.neg.size else float(np.sort(sides.pos)[sides.pos.size // 2])
    log_reference = float(mpmath.log(mpmath.mpf(base) + reference)) if base + reference != 1.0 else 0.0
    if base == 1.0 and sides.neg.size == 0:
        log_reference = math.log1p(reference)
    lmbdas = np.asarray(lmbdas)
    out = np.empty((lmbdas.size, 4))
    exponents = 2.0 - lmbdas if mirrored else lmbdas
    sigma = evaluate(sides, base, reference, log_reference, exponents, new_scratch(), out)
    if mirrored:
        out[:, [1, 3]] *= -1.0
    return out, sigma


def exponents_for(family, x):
    """Return exponents at which to compare the score, and the range of the column's logs.

    The exponents are 0, 0.3, 1, 2, neighbors of 0 and 2, and up to 40 divided by this range.
    """
    logs = [oracles.log_and_branch(family, 1, v)[0] for v in x]
    one_branch = family == "box-cox" or (x >= 0.0).all() or (x < 0.0).all()
    reach = float(max(logs) - min(logs)) if one_branch else float(max(logs))
    natural = [0.0, 1.0, 2.0, 1e-18, -1e-9, 2.0 - 1e-9, 0.3]
    scaled = [0.3 / reach, -0.4 / reach, 3.0 / reach, -8.0 / reach, 40.0 / reach]
    return [v for v in natural + scaled if abs(v) < 1e300], reach


def assert_right(result, exact, sigma, reach, largest_term):
    """Check g and g' up to rounding, and g'' and g''' up to the rounding of their largest terms.

    Parameters
    ----------
    result : (4,) ndarray
        g and its derivatives in lambda sigma.
    exact : sequence of mpf
        g and its derivatives in lambda.
    sigma : float
        Spread of the logs.
    reach : float
        Range of the logs.
    largest_term : float
        Largest magnitude of (lambda - 1) J, where (lambda - 1) J is ln dpsi/dx.
    """
    with mpmath.workdps(30):
        exact = [v / mpmath.mpf(sigma) ** k for k, v in enumerate(exact)]
        error = [float(abs(mpmath.mpf(v) - e)) for v, e in zip(result, exact, strict=True)]
        size = [float(abs(e)) for e in exact]
    reach = reach / sigma
    assert error[0] <= 1e-14 * (1.0 + size[0] + largest_term)
    assert error[1] <= 1e-13 * (size[1] + math.sqrt(size[2]))
    assert error[2] <= 1e-12 * size[2] + 1e-14 * reach**2
    assert error[3] <= 1e-12 * (size[3] + size[2] ** 1.5) + 1e-14 * reach**3


@pytest.mark.parametrize("weighted", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["", "weighted"])
@pytest.mark.parametrize("name", COLUMNS)
def test_likelihood_and_derivatives_agree_with_mpmath(name, weighted):
    family, x = COLUMNS[name]
    weight = WEIGHTS[: x.size] if weighted else np.ones(x.size)
    lmbdas, reach = exponents_for(family, x)
    if x.size > 100:
        lmbdas = lmbdas[2::12]
    elif weighted:
        lmbdas = lmbdas[::3]
    result, sigma = likelihood(family, x, weight, lmbdas)
    farthest = float(max(abs(oracles.log_and_branch(family, 1, v)[0]) for v in x))
    for row, lmbda in zip(result, lmbdas, strict=True):
        assert_right(row, oracles.likelihood(family, lmbda, x, weight), sigma, reach, abs(lmbda - 1.0) * farthest)


@given(
    # a grid: values that differ differ by more than rounding
    x=st.lists(st.integers(-30, 30), min_size=2, max_size=8, unique=True),
    lmbda=st.floats(-6.0, 8.0, allow_subnormal=False),
    scale=st.sampled_from([1e-3, 1.0, 1e5]),
)
def test_likelihood_of_any_small_column(x, lmbda, scale):
    x = scale * np.array(x, dtype=float)
    reach = np.log1p(abs(x).max())
    result, sigma = likelihood("yeo-johnson", x, np.ones(x.size), [lmbda])
    assert_right(result[0], oracles.likelihood("yeo-johnson", lmbda, x), sigma, reach, abs(lmbda - 1.0) * reach)


def test_series_and_closed_form_agree():
    """On both sides of the exponent at which the kernel changes from the series to the formula, g to g''' agree."""
    x = np.array([0.7, 1.0, 1.1, math.e * 0.7])
    edge = score_formulas.SERIES_REACH
    below, above = edge * (1.0 - 1e-13), edge * (1.0 + 1e-13)
    result, _ = likelihood("box-cox", x, np.ones(4), [below, above, -below, -above])
    np.testing.assert_allclose(result[0], result[1], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(result[2], result[3], rtol=1e-12, atol=1e-14)


def test_likelihood_is_convex():
    """g' increases strictly over thousands of units of lambda."""
    for family, x in (COLUMNS["both signs"], COLUMNS["lognormal"], COLUMNS["outlier"]):
        lmbdas = np.sort(np.concatenate([np.linspace(-3.0, 5.0, 41), [-300.0, -30.0, 30.0, 300.0]]))
        result, _ = likelihood(family, x, np.ones(x.size), lmbdas)
        assert (np.diff(result[:, 1]) > 0.0).all()
        assert (result[:, 2] > 0.0).all()


@numba.njit
def merged(parts, out):
    for k in range(parts.shape[0]):
        score_formulas.merge_moments(out, parts[k])
    return score_formulas.score_from_moments(out, 0.0)


def moments_of(y, weight):
    """Return the total weight, means and centered sums of products of the rows of `y`: psi and three derivatives."""
    mean = y @ weight / weight.sum()
    c = ((y - mean[:, None]) * weight) @ (y - mean[:, None]).T
    pairs = [(0, 0), (0, 1), (1, 1), (0, 2), (0, 3), (1, 2)]
    return np.array([weight.sum(), *mean, *(c[i, j] for i, j in pairs)])


def test_merged_moments_are_those_of_all_values():
    rng = np.random.default_rng(1)
    y, weight = rng.normal(size=(4, 60)) + 3.0, rng.exponential(size=60)
    total = np.zeros(score_formulas.N_MOMENTS)
    parts = np.array([moments_of(y[:, s], weight[s]) for s in (slice(0, 7), slice(7, 8), slice(8, 60))])
    d = merged(parts, total)
    np.testing.assert_allclose(total, moments_of(y, weight), rtol=1e-12)
    np.testing.assert_allclose(d, merged(total[None], np.zeros(score_formulas.N_MOMENTS)), rtol=1e-14)


@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")
def test_kernels_run_as_plain_python():
    """Compiled functions and their plain-Python versions return the same numbers."""
    family, x = COLUMNS["both signs"]
    compiled, sigma = likelihood(family, x, np.ones(x.size), [0.0, 0.5, 2.0])
    sides = Magnitudes(x[x >= 0.0], -x[x < 0.0], np.ones((x >= 0.0).sum()), np.ones((x < 0.0).sum()))
    plain = np.empty_like(compiled)
    assert evaluate.py_func(sides, 1.0, 0.0, 0.0, np.array([0.0, 0.5, 2.0]), new_scratch(), plain) == sigma
    np.testing.assert_allclose(plain, compiled, rtol=1e-11, atol=1e-13)


# --- points that are standardised by the moments of a column ------------------------------------------

SMALL = RNG.normal(size=9) * 2.0
POINTS = np.array([0.0, 0.3, 5.0, -0.2, -4.0])
SMALL_WEIGHTS = RNG.integers(1, 4, 9).astype(float)


def logs_and_points(kind, reference):
    """Return logs of a column of this kind and of further points, both relative to `reference` and in the same unit.

    Return also the values of the column, the points, and the weights of the values.
    """
    x, points = (abs(SMALL) + 0.1, abs(POINTS) + 0.05) if kind == "positive" else (SMALL, POINTS)
    both = kind == "both"
    order = np.argsort(x < 0.0, kind="stable")
    x, weight = x[order], SMALL_WEIGHTS[order]
    n_pos, k_pos = int(np.sum(x >= 0.0)), int(np.sum(points >= 0.0))
    everything = np.concatenate([x[:n_pos], points[:k_pos], -x[n_pos:], -points[k_pos:]])
    n_above = n_pos + k_pos
    sides = Magnitudes(everything[:n_above], everything[n_above:], np.ones(n_above), np.ones(everything.size - n_above))
    every = logs_about(sides, both, 1.0, reference, np.empty(everything.size))
    column = every._replace(
        pos=every.pos[:n_pos].copy(),
        pos_weight=weight[:n_pos],
        neg=every.neg[: x.size - n_pos].copy(),
        neg_weight=weight[n_pos:],
    )
    signed = np.concatenate([column.pos, -column.neg])
    center = every.center
    base = np.concatenate([np.full(n_pos, min(center, 0.0)), np.full(x.size - n_pos, max(center, 0.0))])
    jacobian = np.average(signed - base, weights=weight)
    some = every._replace(pos=every.pos[n_pos:].copy(), neg=every.neg[x.size - n_pos :].copy())
    return column._replace(jacobian=jacobian), some, x, points, weight


def relative_transforms(x, lmbda, reference, both):
    """Return (psi(x) - psi(reference)) e^(-m ln(1 + |reference|)) and two derivatives in lambda, (3, n).

    The exponent m belongs to the sign of the reference: lambda, or 2 - lambda if it is negative. `both` has no effect.
    """
    log_ref = mpmath.log1p(abs(mpmath.mpf(reference)))

    def relative(v, lam):
        m = 2 - lam if reference < 0 else lam
        psi, at_ref = (oracles.power_derivatives("yeo-johnson", lam, u)[0] for u in (v, reference))
        return (psi - at_ref) * mpmath.exp(-m * log_ref)

    return np.array([[float(mpmath.diff(lambda lam, v=v: relative(v, lam), lmbda, k)) for v in x] for k in range(3)])


@pytest.mark.parametrize("lmbda", [-0.8, 2.3])
@pytest.mark.parametrize(("kind", "reference"), [("positive", 1.3), ("both", 0.0), ("both", 2.0), ("both", -3.0)])
def test_points_are_standardised_by_the_moments_of_the_column(kind, reference, lmbda):
    """Compare standardised points and their derivatives with mpmath, for moments from raw sums and from two passes.

    Derivatives are in the unit of the logs.
    """
    both = kind == "both"
    column, some, x, points, weight = logs_and_points(kind, reference)
    sigma = column.sigma
    mu, out, scratch = lmbda * sigma, np.empty((3, points.size)), new_scratch()
    with mpmath.workdps(25):
        of_column = relative_transforms(x, lmbda, reference, both)
        of_points = relative_transforms(points, lmbda, reference, both)
        g, d1, d2, d3 = (float(v) for v in oracles.likelihood("yeo-johnson", lmbda, x, weight, 30))
    mean = of_column @ weight / weight.sum()
    sd = math.sqrt(np.average((of_column[0] - mean[0]) ** 2, weights=weight))
    expected = (of_points - mean[:, np.newaxis]) / sd / sigma ** np.arange(3)[:, np.newaxis]
    spread = float(np.sqrt(np.average(np.concatenate([column.pos, column.neg]) ** 2, weights=weight)))
    for statistics in (None, lk.LogStatistics(weight.sum(), spread), lk.LogStatistics(weight.sum(), 0.0)):
        out[:] = math.nan
        if statistics is None:
            at = lk.score_with_points(column, both, some, mu, scratch, *out)
        else:
            at = lk.score_by_sums_with_points(column, both, statistics, some, mu, scratch, *out)
        np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(
            (at.d1, at.d2, at.d3), (d1 / sigma, d2 / sigma**2, d3 / sigma**3), rtol=1e-9, atol=1e-11
        )
        log_power = lk.log_power_of_reference(column, mu) if both else 0.0
        psi = stats.yeojohnson(x, lmbda) if both else of_column[0]
        factor = math.exp(at.log_factor + log_power) * sigma
        assert at.mean * factor == pytest.approx(np.average(psi, weights=weight), rel=1e-11, abs=1e-12)
        assert at.variance * factor**2 == pytest.approx(
            np.average((psi - np.average(psi, weights=weight)) ** 2, weights=weight), rel=1e-11
        )
        assert lk.log_factor_at(column, both, mu) == at.log_factor
        assert at.shift == 0.0
        log_ref = 0.0 if both else math.log1p(reference)
        if column.center == 0.0:
            assert lk.nll_at(column, mu, at, log_ref) == pytest.approx(g, rel=1e-11)


@pytest.mark.parametrize("exponent", [0.3, -2.0])
@pytest.mark.parametrize(("kind", "reference"), [("positive", 1.3), ("both", 0.0)])
def test_derivatives_of_the_column_are_those_of_its_values_as_points(kind, reference, exponent):
    column, _, x, _, weight = logs_and_points(kind, reference)
    mu = exponent * column.sigma
    own, other = np.empty((3, x.size)), np.empty((3, x.size))
    one = lk.score_with_derivatives(column, mu, new_scratch(), *own)
    two = lk.score_with_points(column, kind == "both", column, mu, new_scratch(), *other)
    np.testing.assert_array_equal(own, other)
    assert one == two == lk.score(column, mu, new_scratch())
    assert np.average(own[0], weights=weight) == pytest.approx(0.0, abs=1e-13)
    assert np.average(own[0] ** 2, weights=weight) == pytest.approx(1.0)


def test_raw_sums_are_refused_near_exponent_0_and_for_large_powers():
    for lmbda, spread, expected in ((0.4, 1.0, True), (1e-5, 1.0, False), (2.0 - 1e-5, 1.0, False), (0.4, 1e-5, False)):
        column, *_ = logs_and_points("both", 0.0)
        pos, neg = lk._branches(column, True, lmbda * column.sigma)
        statistics = lk.LogStatistics(SMALL_WEIGHTS.sum(), spread)
        assert lk._add_branches_by_sums(pos, neg, statistics, new_scratch()) is expected
    column, *_ = logs_and_points("positive", 1.3)
    for t, expected in ((299.0, True), (301.0, False)):
        mu = t / max(column.high, -column.low)
        pos, neg = lk._branches(column, False, mu)
        assert pos.scale.largest_t == pytest.approx(t)
        with np.errstate(all="ignore"):
            found = lk._add_branches_by_sums(pos, neg, lk.LogStatistics(SMALL_WEIGHTS.sum(), 1.0), new_scratch())
        assert found is expected


@pytest.mark.parametrize("mu", [-3.0, 0.0, 0.5, 2.0, 7.0])
def test_the_scaling_keeps_powers_below_1(mu):
    low, high, neg_high, sigma = -2.0, 1.5, 0.8, 1.0
    assert lk.scaling_at(low, high, neg_high, sigma, False, mu) == (high if mu > 0.0 else low, 0.0, 0.0)
    shift, other, log_factor = lk.scaling_at(0.0, high, neg_high, sigma, True, mu)
    assert (shift, other) == (0.0, 2.0 - mu)
    assert log_factor == max(0.0, mu * high, (2.0 - mu) * neg_high)


@pytest.mark.parametrize("variance", [0.0, -1e-300, math.nan])
def test_exponents_without_a_variance_are_infinitely_unlikely(variance):
    column, *_ = logs_and_points("positive", 1.3)
    at = lk.score(column, column.sigma, new_scratch())._replace(variance=variance)
    assert lk.nll_at(column, column.sigma, at, math.log1p(1.3)) == math.inf
