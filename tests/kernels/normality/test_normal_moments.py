"""Moments of sorted columns and the correlations of their normal QQ plots, compared with SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from powerkern._estimators.plotting_positions import normal_quantiles, sort_and_weigh
from powerkern.kernels.normality import moments

rng = np.random.default_rng(20240601)


def statistics(x):
    block = np.sort(np.array([x], dtype=float), axis=1)
    out = np.empty((1, moments.N_NORMALITY))
    columns, positions, totals = sort_and_weigh(block, None, normal_quantiles)
    moments.normality_columns(columns, positions, totals, np.empty((2, block.shape[1])), out)
    return out[0]


@pytest.mark.parametrize("n", [3, 8, 50, 600])
@pytest.mark.parametrize("scale", [1.0, 1e-290, 1e290])
def test_moments_and_correlation_agree_with_scipy(n, scale):
    x = rng.gamma(2.0, size=n)
    expected = [stats.skew(x), stats.kurtosis(x), stats.probplot(x)[1][2], n]
    np.testing.assert_allclose(statistics(scale * x), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(statistics([*(scale * x), math.nan]), expected, rtol=1e-12, atol=1e-12)


def test_moments_of_adjacent_floats():
    """Compare statistics of a few adjacent floats, whose spread is comparable to the rounding error of their mean."""
    steps = rng.integers(0, 5, 40)
    steps[:2] = 0, 4
    x = 1.0 + steps * 2.0**-52
    expected = [stats.skew(steps), stats.kurtosis(steps), stats.probplot(steps)[1][2], 40]
    np.testing.assert_allclose(statistics(x), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("x", [[math.nan], [1.0], [2.0, 2.0, 2.0], [1.0, 2.0, math.inf], [-math.inf, 1.0, 2.0]])
def test_moments_without_spread_or_of_infinite_values_are_nan(x):
    assert np.isnan(statistics(x)[: moments.COUNT]).all()
    assert statistics(x)[moments.COUNT] == np.count_nonzero(~np.isnan(x))
