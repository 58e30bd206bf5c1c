"""Kolmogorov-Smirnov distances of sorted columns against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from powerkern._estimators.nearest_normal import normal_quantiles, weighed_with
from powerkern.kernels.normality import criteria

rng = np.random.default_rng(20240601)


def distance(x, loc=math.nan, scale=math.nan):
    out = np.empty(1)
    criteria.ks_columns(np.array([x], dtype=float), np.array([loc]), np.array([scale]), out)
    return out[0]


@pytest.mark.parametrize("n", [1, 2, 3, 50, 600])
def test_from_a_given_distribution(n):
    x = np.sort(rng.normal(1.0, 2.0, n))
    assert distance(x, 0.5, 2.5) == pytest.approx(stats.kstest(x, stats.norm(0.5, 2.5).cdf).statistic, rel=1e-13)


@pytest.mark.parametrize("n", [2, 3, 50, 600])
def test_from_the_fitted_distribution(n):
    x = np.sort(rng.lognormal(size=n))
    exact = stats.kstest(x, stats.norm(x.mean(), x.std(ddof=1)).cdf).statistic
    assert distance(x) == pytest.approx(exact, rel=1e-13)
    only_loc = stats.kstest(x, stats.norm(1.0, x.std(ddof=1)).cdf).statistic
    assert distance(x, loc=1.0) == pytest.approx(only_loc, rel=1e-13)


def test_ties():
    x = np.sort(rng.integers(0, 4, 30))
    assert distance(x) == pytest.approx(stats.kstest(x, stats.norm(x.mean(), x.std(ddof=1)).cdf).statistic, rel=1e-13)


def test_missing_values_are_last_and_ignored():
    x = np.sort(rng.normal(size=9))
    assert distance([*x, math.nan, math.nan]) == distance(x)
    assert math.isnan(distance([math.nan, math.nan]))


def test_nothing_to_fit():
    assert math.isnan(distance([2.0]))
    assert math.isnan(distance([2.0, 2.0, 2.0]))
    assert distance([2.0, 2.0], 2.0, 1.0) == pytest.approx(0.5)


@pytest.mark.parametrize("x", [[-math.inf, 0.0], [0.0, math.inf], [-math.inf, math.inf, math.nan]])
def test_infinite_values_are_reported(x):
    assert distance(x) == math.inf


@pytest.mark.parametrize("factor", [2.0**990, 2.0**-1020])
def test_units_whose_squares_are_out_of_range(factor):
    x = np.sort(rng.normal(size=30))
    assert distance(factor * x) == pytest.approx(distance(x), rel=1e-12)
    assert distance(factor * x, loc=0.5 * factor) == pytest.approx(distance(x, loc=0.5), rel=1e-12)


# --- moments and the QQ plot --------------------------------------------------------------------------


def figures(x):
    block = np.sort(np.array([x], dtype=float), axis=1)
    out = np.empty((1, criteria.N_NORMALITY))
    columns, weighed, figures = weighed_with(block, np.empty(0), normal_quantiles)
    criteria.normality_columns(columns, weighed, figures, np.empty((2, block.shape[1])), out)
    return out[0]


@pytest.mark.parametrize("n", [3, 8, 50, 600])
@pytest.mark.parametrize("scale", [1.0, 1e-290, 1e290])
def test_moments_and_correlation(n, scale):
    x = rng.gamma(2.0, size=n)
    expected = [stats.skew(x), stats.kurtosis(x), stats.probplot(x)[1][2], n]
    np.testing.assert_allclose(figures(scale * x), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(figures([*(scale * x), math.nan]), expected, rtol=1e-12, atol=1e-12)


def test_moments_about_a_mean_that_is_rounded():
    """Adjacent numbers: the mean is off by a part of their spread."""
    steps = rng.integers(0, 5, 40)
    steps[:2] = 0, 4
    x = 1.0 + steps * 2.0**-52
    expected = [stats.skew(steps), stats.kurtosis(steps), stats.probplot(steps)[1][2], 40]
    np.testing.assert_allclose(figures(x), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("x", [[math.nan], [1.0], [2.0, 2.0, 2.0], [1.0, 2.0, math.inf], [-math.inf, 1.0, 2.0]])
def test_no_moments(x):
    assert np.isnan(figures(x)[: criteria.COUNT]).all()
    assert figures(x)[criteria.COUNT] == np.count_nonzero(~np.isnan(x))
