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
    """Return g and its three derivatives in lambda sigma, (k, 4), at k lambdas, and the spread sigma of the logs."""
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
    """Return exponents (0, 1, 2, neighbors of these, and up to 40 over the range of the logs), and this range."""
    logs = [oracles.log_and_branch(family, 1, v)[0] for v in x]
    one_branch = family == "box-cox" or (x >= 0.0).all() or (x < 0.0).all()
    reach = float(max(logs) - min(logs)) if one_branch else float(max(logs))
    natural = [0.0, 1.0, 2.0, 1e-18, -1e-9, 2.0 - 1e-9, 0.3]
    scaled = [0.3 / reach, -0.4 / reach, 3.0 / reach, -8.0 / reach, 40.0 / reach]
    return [v for v in natural + scaled if abs(v) < 1e300], reach


def assert_right(result, exact, sigma, reach, largest_term):
    """Check g and g' up to rounding, and g'' and g''' up to the rounding of their largest terms.

    `reach` is the range of the logs, and `largest_term` the largest magnitude of (lambda - 1) J, where J is the log of
    dpsi/dx over (lambda - 1).
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
    """The same functions give the same numbers without compilation."""
    family, x = COLUMNS["both signs"]
    compiled, sigma = likelihood(family, x, np.ones(x.size), [0.0, 0.5, 2.0])
    sides = Magnitudes(x[x >= 0.0], -x[x < 0.0], np.ones((x >= 0.0).sum()), np.ones((x < 0.0).sum()))
    plain = np.empty_like(compiled)
    assert evaluate.py_func(sides, 1.0, 0.0, 0.0, np.array([0.0, 0.5, 2.0]), new_scratch(), plain) == sigma
    np.testing.assert_allclose(plain, compiled, rtol=1e-11, atol=1e-13)
