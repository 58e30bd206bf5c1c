"""Kolmogorov-Smirnov distances of sorted columns, compared with SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from powerkern.kernels.normality.ks_distance import ks_distance_columns

rng = np.random.default_rng(20240601)


def distance(x, loc=math.nan, scale=math.nan):
    out = np.empty(1)
    ks_distance_columns(np.array([x], dtype=float), np.array([loc]), np.array([scale]), out)
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


def test_distance_of_tied_values_agrees_with_scipy():
    x = np.sort(rng.integers(0, 4, 30))
    assert distance(x) == pytest.approx(stats.kstest(x, stats.norm(x.mean(), x.std(ddof=1)).cdf).statistic, rel=1e-13)


def test_missing_values_are_last_and_ignored():
    x = np.sort(rng.normal(size=9))
    assert distance([*x, math.nan, math.nan]) == distance(x)
    assert math.isnan(distance([math.nan, math.nan]))


def test_distance_without_spread_is_nan_unless_scale_is_given():
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
