"""Skewness and kurtosis of sorted columns, and the straightness of their normal probability plots."""

from __future__ import annotations

import math

from powerkern._jit import BLOCKS, ROWS, entry, kernel, reduction
from powerkern._typing import FloatArray
from powerkern.kernels.location.order_statistics import n_present
from powerkern.kernels.moments import sum_of
from powerkern.kernels.normality.plotting_positions import PlottingPositions, fraction_at, positions_in_row

#: Indices of the statistics in a row written by `normality_columns`.
SKEWNESS, KURTOSIS, PPCC, COUNT = range(4)
#: Number of these statistics.
N_NORMALITY = 4


@reduction
def mean_and_variance(positions: PlottingPositions, y: FloatArray) -> tuple[float, float]:
    """Return the weighted mean and variance (with divisor n) of values, computed in two passes."""
    mean, first, second = 0.0, 0.0, 0.0
    for i in range(y.size):
        mean += fraction_at(positions, i) * y[i]
    for i in range(y.size):
        deviation = y[i] - mean
        first += fraction_at(positions, i) * deviation
        second += fraction_at(positions, i) * (deviation * deviation)
    return mean + first, second - first * first  # correct for the rounding of the mean


@reduction
def one_minus_correlation(positions: PlottingPositions, y: FloatArray, mean: float, per_sd: float) -> float:
    """Return 1 - r, where r is the correlation of values with their normal quantiles, without cancellation.

    If the values and the quantiles are standardised, 1 - r is half the mean square of their differences.

    Parameters
    ----------
    positions : PlottingPositions
        Weights and normal quantiles of the values.
    y : (n,)
        The values.
    mean : float
        Mean of the values.
    per_sd : float
        Inverse of the standard deviation of the values.
    """
    total = 0.0
    for i in range(y.size):
        difference = (y[i] - mean) * per_sd - positions.quantile[i]
        total += fraction_at(positions, i) * (difference * difference)
    return 0.5 * total + positions.half_variance_within


@kernel
def scale_to_one(x: FloatArray, y: FloatArray) -> int:
    """Set y = x/2**e for ascending x, so that the largest magnitude is in [1/2, 1); return e."""
    exponent = math.frexp(max(abs(x[0]), abs(x[x.size - 1])))[1]
    half = exponent // 2
    first, second = math.ldexp(1.0, -half), math.ldexp(1.0, half - exponent)  # one factor might be subnormal
    for i in range(x.size):
        y[i] = x[i] * first * second
    return exponent


@reduction
def _subtract_mean(positions: PlottingPositions, y: FloatArray, mean: float, squares: FloatArray) -> float:
    """Subtract `mean` from y in place, and write the weighted squares of the differences; return their mean.

    The mean of the differences would be 0 without rounding of `mean`. Callers correct their results for it.
    """
    total = 0.0
    for i in range(y.size):
        y[i] -= mean
        squares[i] = fraction_at(positions, i) * (y[i] * y[i])
        total += fraction_at(positions, i) * y[i]
    return total


@kernel
def _square(y: FloatArray) -> None:
    for i in range(y.size):
        y[i] *= y[i]


@kernel
def _write_statistics(
    positions: PlottingPositions, x: FloatArray, y: FloatArray, squares: FloatArray, out: FloatArray
) -> None:
    """Write skewness, excess kurtosis and correlation with normal quantiles of one column.

    Parameters
    ----------
    positions : PlottingPositions
        Weights and normal quantiles of the values.
    x : (n,)
        The values: ascending, finite, and at least two of them distinct.
    y, squares : (n,)
        Scratch.
    out : (N_NORMALITY,)
        Receives the statistics.
    """
    scale_to_one(x, y)
    mean, variance = mean_and_variance(positions, y)
    shift = _subtract_mean(positions, y, mean, squares)  # rounding of the mean matters if values are adjacent floats
    out[PPCC] = 1.0 - one_minus_correlation(positions, y, shift, 1.0 / math.sqrt(variance))
    square = shift * shift
    third = sum_of(y, squares)
    _square(y)
    fourth = sum_of(y, squares) - shift * (4.0 * third - 6.0 * shift * variance - 3.0 * shift * square)
    third -= shift * (3.0 * variance + square)
    out[SKEWNESS] = third / (variance * math.sqrt(variance))
    out[KURTOSIS] = fourth / (variance * variance) - 3.0


@entry((ROWS, BLOCKS, ROWS, ROWS, ROWS))
def normality_columns(
    block: FloatArray, positions: FloatArray, totals: FloatArray, work: FloatArray, out: FloatArray
) -> None:
    """Write skewness, excess kurtosis, correlation with normal quantiles, and number of values of each row.

    Parameters
    ----------
    block : (p, n)
        Columns as rows, sorted, NaN last.
    positions, totals
        Plotting positions of the rows, written by `weigh_columns` (see `positions_in_row`).
    work : (2, n)
        Scratch.
    out : (p, N_NORMALITY)
        Receives the statistics; moments have the divisor n. NaN if all values are equal or one of them is infinite.
    """
    for j in range(block.shape[0]):
        n = n_present(block[j])
        out[j] = math.nan
        out[j, COUNT] = 0.0
        if n > 0:
            row = positions_in_row(positions, totals, j, block[j, :n])
            out[j, COUNT] = row.n
            if _has_spread(block[j, :n]):
                _write_statistics(row, block[j, :n], work[0, :n], work[1, :n], out[j])


@kernel
def _has_spread(x: FloatArray) -> bool:
    """Return whether ascending values, at least one, are finite and not all equal."""
    return bool(-math.inf < x[0] < x[-1] < math.inf)
