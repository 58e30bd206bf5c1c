"""Plotting positions of weighted columns, and the statistics based on them, compared with those of repeated values."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from scipy import stats

from powerkern._estimators.plotting_positions import normal_quantiles, sort_and_weigh
from powerkern.kernels.location.weights import new_frequency_work
from powerkern.kernels.normality import moments, ppcc
from powerkern.kernels.normality.plotting_positions import positions_in_row, weigh_columns
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON

nan = np.nan
#: Sorted rows with ties, and whole weights.
COLUMNS = np.array([[-1.0, -1.0, 0.5, 2.0, 2.0, 2.0, 7.0], [1.0, 3.0, 3.0, 4.0, nan, nan, nan], [nan] * 7])
WEIGHTS = np.array([[2.0, 3.0, 1.0, 1.0, 4.0, 2.0, 5.0], [3.0, 1.0, 2.0, 2.0, 9.0, 9.0, 9.0], [1.0] * 7])
#: One weight for each row of data, and columns that share it.
SHARED = np.array([1.0, 3.0, 2.0, 1.0, 4.0, 2.0, 1.0, 2.0, 1.0, 3.0])
DATA = np.array(
    [
        [0.2, 0.2, 0.5, 0.9, 1.4, 1.4, 2.2, 3.1, 3.1, 9.0],
        [nan, 2.0, 7.0, 1.0, 1.0, nan, 3.0, 2.5, 2.0, 0.3],
        [5.0, nan, 5.0, nan, 5.0, nan, nan, nan, nan, 5.0],
        [nan, nan, 4.0, nan, nan, nan, nan, nan, nan, nan],
        [nan] * 10,
    ]
)


def weigh(columns, weights):
    columns, weights = columns.copy(), weights.copy()
    positions, totals = np.zeros((2, *columns.shape)), np.zeros((len(columns), 2))
    weigh_columns(columns, weights, new_frequency_work(columns.shape[1]), positions, totals)
    return columns, positions, totals


def expected_positions(repeated):
    """Return the distinct values, the mean quantile of each, cumulative fractions, and a variance.

    The variance is half the mean squared deviation of the quantiles from the mean quantile of their value.
    """
    n = repeated.size
    quantiles = np.sqrt(n) * oracles.filliben_quantiles(n)
    values, index, counts = np.unique(repeated, return_inverse=True, return_counts=True)
    means = np.bincount(index, quantiles) / counts
    return values, means, counts / n, 0.5 * np.mean((quantiles - means[index]) ** 2)


@pytest.mark.parametrize("factor", [1.0, 1e-200])
def test_ties_share_the_quantiles_of_their_copies(factor):
    """Whole weights are treated as repetition counts.

    Weights of 1e-200 are equal, and count as 1 each.
    """
    weights = WEIGHTS if factor == 1.0 else np.full_like(WEIGHTS, factor)
    columns, positions, totals = weigh(COLUMNS, weights)
    for j in range(2):
        n = np.count_nonzero(~np.isnan(COLUMNS[j]))
        repeated = np.repeat(COLUMNS[j, :n], WEIGHTS[j, :n].astype(int) if factor == 1.0 else 1)
        values, means, fractions, within = expected_positions(repeated)
        k = values.size
        np.testing.assert_array_equal(columns[j], np.append(values, [nan] * (7 - k)))
        np.testing.assert_allclose(positions[0, j, :k], means, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(positions[1, j, :k], fractions, rtol=1e-13)
        np.testing.assert_allclose(totals[j], [repeated.size, within], rtol=1e-8, atol=1e-9)
        row = positions_in_row(positions, totals, j, columns[j, :k])
        assert (row.equal, row.n, row.half_variance_within) == (0.0, *totals[j])
        np.testing.assert_array_equal(row.fraction, positions[1, j, :k])
        np.testing.assert_array_equal(row.quantile, positions[0, j, :k])
    assert np.isnan(columns[2]).all()
    assert (totals[2] == 0.0).all()


def repeat(x):
    seen = ~np.isnan(x)
    return np.repeat(x[seen], SHARED[seen].astype(int))


def test_moments_and_correlations_are_those_of_repeated_values():
    columns, positions, totals = sort_and_weigh(DATA.copy(), SHARED, normal_quantiles)
    out = np.empty((len(DATA), moments.N_NORMALITY))
    moments.normality_columns(columns, positions, totals, np.empty((2, columns.shape[1])), out)
    for x, found in zip(DATA, out, strict=True):
        y = repeat(x)
        assert found[moments.COUNT] == pytest.approx(y.size, rel=1e-14)
        expected = [nan] * 3
        if np.unique(y).size > 1:
            expected = [stats.skew(y), stats.kurtosis(y), stats.probplot(y)[1][2]]
        np.testing.assert_allclose(found[: moments.COUNT], expected, rtol=1e-8)


@pytest.mark.parametrize("weight", [None, SHARED], ids=["equal", "weighted"])
@pytest.mark.parametrize(
    "family, transform, shift", [(BOX_COX, stats.boxcox, 0.0), (YEO_JOHNSON, stats.yeojohnson, 2.0)]
)
def test_objective_of_each_row_at_each_lambda(family, transform, shift, weight):
    data, lmbdas = DATA - shift, np.array([-1.5, 0.0, 0.4, 1.0, 2.0, 3.0])
    columns, positions, totals = sort_and_weigh(data.copy(), weight, normal_quantiles)
    found = np.empty((len(data), lmbdas.size))
    ppcc.ppcc_objective_columns(columns, positions, totals, family, lmbdas, np.empty((2, data.shape[1])), found)
    for x, values in zip(data, found, strict=True):
        y = repeat(x) if weight is not None else x[~np.isnan(x)]
        if np.unique(y).size > 1:
            expected = [1.0 - stats.probplot(transform(y, lmbda))[1][2] for lmbda in lmbdas]
            np.testing.assert_allclose(values, expected, rtol=1e-7)
        else:
            assert np.isnan(values).all()


def test_optimum_of_weighted_values_is_that_of_repeated_values():
    start = np.array([0.0, 1.0])
    columns, positions, totals = sort_and_weigh(DATA[:2].copy(), SHARED, normal_quantiles)
    out = np.empty((2, ppcc.N_OPTIMUM))
    ppcc.maximize_ppcc_columns(columns, positions, totals, BOX_COX, start, ppcc.new_search_work(10), out)
    for j in range(2):
        y = np.sort(repeat(DATA[j]))[np.newaxis]
        columns, positions, totals = sort_and_weigh(y, None, normal_quantiles)
        expected = np.empty((1, ppcc.N_OPTIMUM))
        work = ppcc.new_search_work(y.size)
        ppcc.maximize_ppcc_columns(columns, positions, totals, BOX_COX, start[j : j + 1], work, expected)
        assert out[j, ppcc.OPTIMUM_LMBDA] == pytest.approx(expected[0, ppcc.OPTIMUM_LMBDA], abs=1e-5)
        assert out[j, ppcc.OPTIMUM_VALUE] == pytest.approx(expected[0, ppcc.OPTIMUM_VALUE], rel=1e-7)
        assert out[j, ppcc.OPTIMUM_STATUS] == expected[0, ppcc.OPTIMUM_STATUS]
