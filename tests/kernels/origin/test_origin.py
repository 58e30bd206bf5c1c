"""The likelihood of (x - origin)/unit: derivatives compared with mpmath, maxima with brute force."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from powerkern.kernels.origin import likelihood
from powerkern.kernels.origin import maximum as origin

RNG = np.random.default_rng(0)
X = np.sort(RNG.gamma(2.0, size=12))
WEIGHTS = RNG.integers(1, 4, size=12).astype(float)
#: Three orders of derivatives each, as the kernel has them: the gradient, and the upper triangle of the Hessian.
ORDERS = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (2, 0, 0), (1, 1, 0), (1, 0, 1), (0, 2, 0), (0, 1, 1), (0, 0, 2)]


def exact(box_cox, lmbda, x0, log_unit):
    """Return the profile log-likelihood of (x - x0)/unit per observation, without constants, as an mpmath number."""
    y, log_slopes = [], []
    for x in X:
        u = (mpmath.mpf(x) - x0) * mpmath.exp(-log_unit)
        side = -1 if u < 0 and not box_cox else 1
        m = lmbda if side > 0 else 2 - lmbda
        a = mpmath.log(u if box_cox else 1 + abs(u))
        y.append(side * (mpmath.expm1(m * a) / m if m else a))
        log_slopes.append(side * a)
    weights = [mpmath.mpf(w) for w in WEIGHTS]
    mean = mpmath.fdot(weights, y) / mpmath.fsum(weights)
    variance = mpmath.fdot(weights, [(each - mean) ** 2 for each in y]) / mpmath.fsum(weights)
    slope = mpmath.fdot(weights, log_slopes) / mpmath.fsum(weights)
    return -mpmath.log(variance) / 2 - log_unit + (lmbda - 1) * slope


@pytest.mark.parametrize("box_cox", [False, True])
@pytest.mark.parametrize("lmbda", [-0.7, 1e-3, 0.4, 2.0, 2.5])
def test_derivatives(lmbda, box_cox):
    theta = np.array([lmbda, X[0] - 0.3 if box_cox else 1.1, 0.0 if box_cox else 0.4])
    at = np.empty(likelihood.N_AT)
    likelihood.evaluate(X, WEIGHTS, box_cox, theta, origin.new_origin_work(), at)
    with mpmath.workdps(40):
        point = tuple(map(mpmath.mpf, theta))
        unit = mpmath.exp(point[2])
        assert at[0] == pytest.approx(float(exact(box_cox, *point)), abs=1e-13)
        for k, order in enumerate(ORDERS):
            if box_cox and order[2]:
                continue  # the unit stays at 1
            oracle = mpmath.diff(lambda *t: exact(box_cox, *t), point, order) * unit ** order[1]
            assert at[1 + k] == pytest.approx(float(oracle), rel=1e-9, abs=1e-9), order


def test_no_spread_is_minus_infinity():
    at = np.empty(likelihood.N_AT)
    likelihood.evaluate(np.ones(5), np.ones(5), False, np.array([1.0, 0.0, 0.0]), origin.new_origin_work(), at)
    assert at[0] == -math.inf


def found(x, box_cox, ranges):
    out = np.empty((1, likelihood.N_FOUND))
    origin.origin_columns(
        x[np.newaxis], np.ones((1, x.size)), box_cox, ranges[np.newaxis], origin.new_origin_work(), out
    )
    return out[0]


@pytest.mark.parametrize("box_cox", [False, True])
def test_maximum_by_brute_force(box_cox):
    x = np.append(np.sort(RNG.gamma(2.0, size=30)), [math.nan, math.nan])
    values = x[:30]
    if box_cox:
        ranges = np.array([[-2.0, 3.0], [values[0] - 1.0, values[0] - 1e-3], [0.0, 0.0]])
        origins, units = np.linspace(*ranges[1], 25), [0.0]
    else:
        ranges = np.array([[-2.0, 3.0], [values[0] - 1.0, values[-1] + 1.0], [-0.7, 0.7]])
        origins, units = np.linspace(*ranges[1], 12), [-0.7, 0.0, 0.7]
    row, at = found(x, box_cox, ranges), np.empty(likelihood.N_AT)
    work, ones, highest = origin.new_origin_work(), np.ones(30), -math.inf
    for lmbda in np.linspace(*ranges[0], 12):
        for x0 in origins:
            for log_unit in units:
                likelihood.evaluate(values, ones, box_cox, np.array([lmbda, x0, log_unit]), work, at)
                highest = max(highest, at[0])
    assert row[likelihood.LIKELIHOOD] >= highest
    assert row[likelihood.CERTIFIED] == 1.0
    likelihood.evaluate(values, ones, box_cox, row[: likelihood.N_PARAMETERS].copy(), work, at)
    assert at[0] == pytest.approx(row[likelihood.LIKELIHOOD], abs=1e-13)
    for k, (low, high) in enumerate(ranges):
        if low < row[k] < high:
            assert abs(at[likelihood.GRADIENT + k]) < 1e-5


def test_long_columns_are_searched_on_a_sample():
    x = np.sort(RNG.gamma(2.0, size=origin.SAMPLE + 80))
    ranges = np.array([[-2.0, 3.0], [x[0] - 1.0, x[0] - 0.05], [0.0, 0.0]])
    row, at = found(x, True, ranges), np.empty(likelihood.N_AT)
    likelihood.evaluate(x, np.ones(x.size), True, row[: likelihood.N_PARAMETERS].copy(), origin.new_origin_work(), at)
    assert at[0] == pytest.approx(row[likelihood.LIKELIHOOD], abs=1e-13)
    assert abs(at[likelihood.GRADIENT]) < 1e-5


@pytest.mark.parametrize("log_unit", [-3.0, 3.0])
def test_the_search_does_not_depend_on_the_unit_of_the_origin(log_unit):
    """A column in another unit has the same lambda, after about as many evaluations."""
    x = np.sort(np.random.default_rng(1).normal(size=15) ** 3)
    ranges = np.array([[-2.0, 4.0], [x[0], x[-1]], [0.0, 0.0]])
    unit = math.exp(log_unit)
    scaled = np.array([ranges[0], unit * ranges[1], [log_unit, log_unit]])
    one, other = found(x, False, ranges), found(unit * x, False, scaled)
    assert one[likelihood.CERTIFIED] == other[likelihood.CERTIFIED] == 1.0
    assert other[likelihood.LMBDA] == pytest.approx(one[likelihood.LMBDA], abs=1e-7)
    assert other[likelihood.ORIGIN] == pytest.approx(unit * one[likelihood.ORIGIN], abs=1e-6 * unit)
    assert other[likelihood.N_EVAL] == pytest.approx(one[likelihood.N_EVAL], rel=0.15)
