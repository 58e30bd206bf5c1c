"""Likelihood intervals: the steps to their ends, and the number of evaluations that they take."""

from __future__ import annotations

import math

import numpy as np
import pytest
from counting import count_calls
from scipy import stats

from powerkern._estimators.routes import fit_vector
from powerkern.kernels.likelihood import interval, mle
from powerkern.kernels.likelihood.scratch import new_work
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON

RNG = np.random.default_rng(5)
NOTHING = np.empty(0)
COLUMNS = {
    "lognormal": (BOX_COX, RNG.lognormal(size=15)),
    "gamma": (YEO_JOHNSON, RNG.gamma(0.5, size=15)),
    "negative": (YEO_JOHNSON, -RNG.gamma(2.0, size=12)),
    "both signs": (YEO_JOHNSON, RNG.normal(size=20) ** 3),
    "outlier": (BOX_COX, np.append(RNG.lognormal(size=12), 1e5)),
    "huge": (BOX_COX, 1e290 * RNG.gamma(2.0, size=12)),
    "years": (BOX_COX, RNG.integers(1900, 2000, 12).astype(float)),
}


@pytest.fixture
def n_evaluations(monkeypatch):
    """Count the evaluations of the score by kernels that run as plain Python; return a list with one number."""
    return count_calls(monkeypatch, interval, "score")


def ends_and_minimum(name, drop):
    """Return the likelihood interval of the column called `name`, and the fitted lambda.

    `drop` is the drop of the log-likelihood at the ends. The interval is computed by plain Python.
    """
    family, x = COLUMNS[name]
    work, out = new_work(x.size), np.empty(2)
    best = fit_vector(x, family).lmbda
    with np.errstate(all="ignore"):
        column = mle.prepare(x, NOTHING, family, work)
        interval.write_interval(mle.centered_column(column, work), column.sign, best, drop, work.scratch, out)
    return out, best


def negative_log_likelihood(name, lmbda):
    """Return the negative log-likelihood per observation of the column called `name`, from SciPy's transforms."""
    family, x = COLUMNS[name]
    y = stats.boxcox(x, lmbda) if family == BOX_COX else stats.yeojohnson(x, lmbda)
    logs = np.log(x) if family == BOX_COX else np.sign(x) * np.log1p(np.abs(x))
    return 0.5 * math.log(np.var(y)) - (lmbda - 1.0) * logs.mean()


@pytest.mark.parametrize(
    ("drop", "most"), [(1e-8, 42), (3e-7, 43), (1e-4, 54), (0.02, 55), (0.3, 61), (2.0, 70), (30.0, 69)]
)
def test_ends_take_few_evaluations(n_evaluations, drop, most):
    """Find the 14 ends for seven columns; `most` is the largest total number of evaluations allowed for this drop."""
    for name in COLUMNS:
        found, best = ends_and_minimum(name, drop)
        assert found[0] < best < found[1]
        if drop >= 1e-4 and name in ("lognormal", "gamma", "both signs"):
            increases = [negative_log_likelihood(name, end) - negative_log_likelihood(name, best) for end in found]
            np.testing.assert_allclose(increases, drop, rtol=1e-8)
    assert n_evaluations[0] <= most


def test_an_interval_that_takes_too_many_evaluations_is_nan(monkeypatch):
    monkeypatch.setattr(interval, "MAX_EVAL", 3)
    assert np.isnan(ends_and_minimum("lognormal", 2.0)[0]).all()


def excess(polynomial, x):
    """Return an `_Excess` with the value and the first three derivatives of a polynomial at x."""
    return interval._Excess(x, *(float(polynomial.deriv(k)(x)) for k in range(4)))


def test_increases_are_integrated_exactly_up_to_the_sixth_power():
    """Compare increases of powers with exact ones, and the error estimate with the difference from Hermite's formula.

    Hermite's formula is exact up to the fourth power.
    """
    a, b = 0.3, 1.1
    for power in range(1, 7):
        g = np.polynomial.Polynomial([0.0] * power + [2.0])
        increase, error = interval._integral(excess(g, a), excess(g, b))
        assert increase == pytest.approx(g(b) - g(a), rel=1e-13)
        fourth = 0.5 * (b - a) * (g.deriv()(a) + g.deriv()(b)) + (b - a) ** 2 / 12.0 * (g.deriv(2)(a) - g.deriv(2)(b))
        assert error == pytest.approx(abs(increase - fourth), abs=1e-13)
        assert (error < 1e-13) is (power < 5)


CONVEX = np.polynomial.Polynomial([-1.0, 0.1, 0.7, 0.2, 0.1])


@pytest.mark.parametrize(("low", "high"), [(0.0, 2.0), (0.5, 1.5), (0.9, 1.2), (0.9, math.inf)])
def test_zeros_of_the_chord_and_of_the_tangents_enclose_the_root(low, high):
    (root,) = (z.real for z in CONVEX.roots() if abs(z.imag) < 1e-12 and z.real > 0.0)
    above = excess(CONVEX, high) if high < math.inf else interval._Excess(math.inf, 0.0, 1.0, 0.0, 0.0)
    lower, upper = interval._zeros(excess(CONVEX, low), above)
    if high == math.inf:
        assert (lower, upper) == (low, math.inf)
        return
    chord = low + (high - low) * CONVEX(low) / (CONVEX(low) - CONVEX(high))
    tangents = [x - CONVEX(x) / CONVEX.deriv()(x) for x in (low, high)]
    assert lower == pytest.approx(chord, rel=1e-14)
    assert upper == pytest.approx(min(high, *tangents), rel=1e-14)
    assert lower <= root <= upper


def test_tangents_that_do_not_rise_have_no_zero():
    assert interval._tangent_zero(interval._Excess(1.0, -2.0, 0.5, 0.0, 0.0)) == 5.0
    assert interval._tangent_zero(interval._Excess(1.0, -2.0, 0.0, 0.0, 0.0)) == math.inf
    assert interval._tangent_zero(interval._Excess(1.0, -2.0, -1.0, 0.0, 0.0)) == math.inf


NOWHERE = interval._Excess(math.inf, 0.0, 1.0, 0.0, 0.0)


def at_distance(distance, value, slope):
    """Return an `_Excess` at a distance from the optimum, with this value and slope and zero higher derivatives.

    Its Halley step is Newton's step -value/slope.
    """
    return interval._Excess(distance, value, slope, 0.0, 0.0)


@pytest.mark.parametrize(
    ("low", "high", "current", "bounds", "expected"),
    [
        # no point beyond the root yet: Halley's, if it goes forwards and not farther than fourfold
        (at_distance(1.0, -1.0, 2.0), NOWHERE, at_distance(1.0, -1.0, 2.0), (1.0, math.inf), 1.5),
        (at_distance(1.0, -1.0, 0.2), NOWHERE, at_distance(1.0, -1.0, 0.2), (1.0, math.inf), 4.0),
        (at_distance(1.0, -1.0, -1.0), NOWHERE, at_distance(1.0, -1.0, -1.0), (1.0, math.inf), 4.0),
        # between two points: Halley's, if it is within the bounds, and otherwise the upper bound
        (at_distance(1.0, -1.0, 2.0), at_distance(2.0, 1.0, 2.0), at_distance(2.0, 1.0, 2.0), (1.2, 1.8), 1.5),
        (at_distance(1.0, -1.0, 2.0), at_distance(2.0, 1.0, 2.0), at_distance(2.0, 1.0, 2.0), (1.5, 1.8), 1.5),
        (at_distance(1.0, -1.0, 2.0), at_distance(2.0, 1.0, 2.0), at_distance(2.0, 1.0, 2.0), (1.6, 1.8), 1.8),
        (at_distance(1.0, -1.0, 2.0), at_distance(2.0, 1.0, 2.0), at_distance(2.0, 1.0, 2.0), (1.2, 1.4), 1.4),
        # never the upper point again, nor one that is not inside
        (at_distance(1.0, -1.0, 2.0), at_distance(2.0, 1.0, 2.0), at_distance(2.0, 1.0, 2.0), (1.6, 2.0), 2.0 - 1e-3),
        (at_distance(1.9995, -1.0, 2.0), at_distance(2.0, 1.0, 2.0), at_distance(2.0, 1.0, 2.0), (1.9, 2.0), 1.99975),
        (
            at_distance(2.0 - 1e-3, -1.0, 2.0),
            at_distance(2.0, 1.0, 2.0),
            at_distance(2.0, 1.0, 2.0),
            (1.6, 2.0),
            1.9995,
        ),
        # near the root, a quarter of the tolerance beyond it
        (at_distance(1.0, -1.0, 2.0), at_distance(2.0, 1e-4, 2.0), at_distance(2.0, 1e-4, 2.0), (1.2, 2.0), 1.9997),
        (at_distance(1.0, -1e-4, 2.0), at_distance(2.0, 1.0, 2.0), at_distance(1.0, -1e-4, 2.0), (1.0, 2.0), 1.0003),
    ],
)
def test_the_next_point_is_halleys_inside_the_bounds(low, high, current, bounds, expected):
    assert interval._next_distance(low, high, current, *bounds, 1e-3) == pytest.approx(expected, rel=1e-12)
