"""Normal scores and the bisquare QQ objective, compared with mpmath and R."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference_files import cellwise_steps
from scipy.special import ndtri

from powerkern._jit import COLUMN, entry
from powerkern.kernels import bisquare_objective
from powerkern.kernels.robust import qq


@entry((COLUMN,))
def write_scores(out):
    qq.normal_scores(out)


def scores_of(n):
    out = np.full(n, np.nan)
    write_scores(out)
    return out


# --- normal scores ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 20, 101])
def test_scores_are_normal_quantiles(n):
    assert_allclose(scores_of(n), oracles.normal_scores(n), rtol=4e-15, atol=1e-15)


@pytest.mark.parametrize("n", [1000, 100_000])
def test_scores_in_the_tails_agree_with_scipy(n):
    p = (np.arange(1, n // 2) - 1 / 3) / (n + 1 / 3)
    assert_allclose(scores_of(n)[: n // 2 - 1], ndtri(p), rtol=1e-13)


@pytest.mark.parametrize("n", [2, 5, 512])
def test_scores_are_antisymmetric_and_increase(n):
    z = scores_of(n)
    assert_array_equal(z, -z[::-1])
    assert np.all(np.diff(z) > 0.0)


@pytest.mark.parametrize("p", [0.5, 0.4, 0.08, 0.075, 1e-3, 1e-10, 1e-11, 1e-12, 1e-100, 1e-300])
def test_quantiles_are_accurate(p):
    """Compare normal quantiles with mpmath in each of the approximation's three intervals and at their boundaries."""
    with mpmath.workdps(340):
        exact = float(-mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(p)))
    assert qq.normal_quantile(p) == pytest.approx(exact, rel=1e-14, abs=1e-300)


# --- the objective ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 16, 17, 200])
@pytest.mark.parametrize("c", [0.5, 2.0])
def test_objective_is_its_sum(n, c):
    rng = np.random.default_rng(n)
    y = np.sort(rng.normal(size=n) * 1.3 + 0.4)
    y[-1] += 10.0
    scores = scores_of(n)
    found = bisquare_objective(y, scores, 0.3, 1.2, c)
    assert found == pytest.approx(oracles.bisquare_distance(y, scores, 0.3, 1.2, c), rel=1e-14, abs=1e-15)


def test_perfect_values_cost_nothing_and_lost_ones_one_each():
    z = scores_of(40)
    assert bisquare_objective(3.0 * z + 7.0, z, 7.0, 3.0) == pytest.approx(0.0, abs=1e-15)
    y = 3.0 * z + 7.0
    y[-4:] = [1e3, 1e10, 1e300, np.inf]
    assert bisquare_objective(y, z, 7.0, 3.0) == pytest.approx(0.1, abs=1e-15)
    y[0] = np.nan
    assert bisquare_objective(y, z, 7.0, 3.0) == pytest.approx(0.125, abs=1e-15)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.floats(-10.0, 10.0), st.floats(1e-6, 1e6))
def test_between_0_and_1(values, loc, scale):
    y = np.sort(values)
    assert -1e-15 <= bisquare_objective(y, scores_of(y.size), loc, scale) <= 1.0


def test_the_objective_is_nan_or_raises_for_unusable_input():
    z = scores_of(3)
    for scale in (0.0, -1.0, np.nan):
        assert math.isnan(bisquare_objective(z, z, 0.0, scale))
    assert math.isnan(bisquare_objective([], [], 0.0, 1.0))
    with pytest.raises(ValueError, match=r"must be of one length, got shapes \(3,\) and \(2,\)"):
        bisquare_objective(z, z[:2], 0.0, 1.0)
    with pytest.raises(ValueError, match=r"y must be one-dimensional, got shape \(2, 2\)"):
        bisquare_objective(np.ones((2, 2)), np.ones((2, 2)), 0.0, 1.0)
    for c in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="c must be positive"):
            bisquare_objective(z, z, 0.0, 1.0, c)


def test_read_only_and_strided_vectors():
    z = scores_of(9)
    y = np.repeat(z, 2)[::2]
    z.flags.writeable = False
    assert bisquare_objective(y, z, 0.0, 1.0) == pytest.approx(0.0, abs=1e-15)


def test_objective_is_twice_that_of_cellwise():
    """Compare with R's objective, in which rho has the maximum 1/2 instead of 1."""
    seen = 0
    for step in cellwise_steps():
        for rule, moments, expected in (
            ("none", step.huber_plain, step.objective_plain),
            ("cellwise", step.huber_rectified, step.objective_rectified),
        ):
            y = oracles.rectified_by_rule(step.family, step.u, step.lmbda, rule).astype(float)
            found = bisquare_objective(y, scores_of(y.size), *moments)
            assert found / 2 == pytest.approx(expected, rel=1e-10)
            seen += 1
    assert seen >= 100
