"""Compute the ranges of columns: extremes, total weight, and mean and standard deviation of a sample of the logs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._jit import (
    COLUMN,
    INTEGER,
    READ_COLUMN,
    READ_COLUMN32,
    ROWS,
    entry,
    inlined,
    kernel,
)
from powerkern._typing import Float32Array, FloatArray
from powerkern.kernels.likelihood.logs import offset_log, summarize_values
from powerkern.kernels.results import BAD_INFINITE, BAD_NOT_POSITIVE
from powerkern.kernels.transforms.family import domain_lower_bound, log_offset

#: Indices of the fields of a range: number of values (or a negative status if some are outside the domain), their
#: weight, the extremes; size of a sample, sum of its logs in units of LOG_UNIT, and sum of the squared units, as a
#: number with two digits of base LIMB. The weight of merged ranges has digits of base LIMB, too: R_WEIGHT for
#: LIMB**R_LEVEL, and R_WEIGHT_1 and R_WEIGHT_2 for the next lower powers. All sums are of whole numbers below 2**53, so
#: they do not depend on the order of merging.
R_COUNT, R_WEIGHT, R_MIN, R_MAX, R_SAMPLE, R_LOGS, R_SQUARES, R_SQUARES_LOW, R_WEIGHT_1, R_WEIGHT_2, R_LEVEL = range(11)
#: Number of these fields.
N_RANGE = 11
# rows of the scratch array `line`
_LOW, _HIGH, _N = range(3)
#: Logs are below 2**10, so a sum of 2**26 of them is below 2**52 units, and the square of one has two digits.
LOG_UNIT, LIMB = 2.0**-16, 2.0**26
#: If only the extremes of the logs are known, or their distance is less than _CLOSE, the standard deviation is
#: estimated as that distance over _EXPECTED_RANGE. (10,000 normal values span 8 standard deviations.) Bins that are too
#: narrow only cost memory; bins that are too wide cost another pass.
_EXPECTED_RANGE, _CLOSE = 16.0, 2.0**-8
#: Largest ratio of range to standard deviation that is assumed. A grid with the expected bin width then has 5,000 bins,
#: about `grids.MAX_BINS`.
_LARGEST_RANGE = 400.0


@kernel
def _add_to_range(x: FloatArray, weight: FloatArray, family: int, first: int, stride: int, out: FloatArray) -> None:
    """Update the range of a column (count, weight, extremes and sampled logs) with more values.

    Parameters
    ----------
    x : (n,)
        The values, NaN missing.
    weight : (n,)
        Weights of the values; empty: all one.
    family : int
        BOX_COX or YEO_JOHNSON.
    first : int
        Index of the first value whose log is sampled.
    stride : int
        Index step from one sampled value to the next.
    out : (N_RANGE,)
        The range; updated in place.
    """
    summary = summarize_values(x, weight) if weight.size > 0 else summarize_values(x, None)
    _note(summary.n, summary.low, summary.high, family, out)
    out[R_WEIGHT] += summary.weight
    if out[R_COUNT] > 0.0:
        _sample(x, weight, log_offset(family), first, stride, out)


@kernel
def _note(n: float, x_min: float, x_max: float, family: int, out: FloatArray) -> None:
    """Update the count and the extremes in the range of a column.

    If a value is outside the domain, R_COUNT becomes a negative status and stays negative. The status for infinite
    values takes precedence.

    Parameters
    ----------
    n : float
        Number of values to add.
    x_min : float
        Smallest of them.
    x_max : float
        Largest of them.
    family : int
        BOX_COX or YEO_JOHNSON.
    out : (N_RANGE,)
        The range; updated in place.
    """
    if n == 0.0:
        return
    if max(-x_min, x_max) == math.inf or out[R_COUNT] == BAD_INFINITE:
        out[R_COUNT] = BAD_INFINITE
    elif x_min <= domain_lower_bound(family) or out[R_COUNT] < 0.0:
        out[R_COUNT] = BAD_NOT_POSITIVE
    else:
        out[R_COUNT] += n
        out[R_MIN] = min(out[R_MIN], x_min)
        out[R_MAX] = max(out[R_MAX], x_max)


@kernel
def _sample(x: NDArray[Any], weight: FloatArray, base: float, first: int, stride: int, out: FloatArray) -> None:
    """Add the signed logs of evenly spaced values, rounded to multiples of LOG_UNIT, to the sums of the sample.

    Parameters
    ----------
    x : (n,)
        The values, NaN missing.
    weight : (n,)
        Weights of the values; empty: all one. Values of weight 0 are left out.
    base : float
        0 (Box-Cox) or 1 (Yeo-Johnson), added to magnitudes before the logarithm.
    first : int
        Index of the first value of the sample.
    stride : int
        Index step to the next value of the sample.
    out : (N_RANGE,)
        The range; its sums are updated in place.
    """
    for i in range(first, x.size, max(stride, 1)):  # range() would raise for a step of 0
        value = np.float64(x[i])
        if value != value or (weight.size > 0 and not weight[i] > 0.0):
            continue
        a = math.copysign(offset_log(base, abs(value)), value) if base == 1.0 else offset_log(base, value)
        units = math.floor(a / LOG_UNIT + 0.5)
        upper = math.floor(units * units / LIMB)
        out[R_SAMPLE] += 1.0
        out[R_LOGS] += units
        out[R_SQUARES] += upper
        out[R_SQUARES_LOW] += units * units - upper * LIMB


@inlined
def _range_of_lines(
    x: NDArray[Any], length: int, family: int, first: int, step: int, line: FloatArray, out: FloatArray
) -> None:
    """Update the ranges of the columns of a row-major matrix with its rows.

    A line consists of one or several rows. Extremes are first computed for each position within a line, over all lines,
    and then merged by column.

    Parameters
    ----------
    x : (n,)
        The memory of the matrix.
    length : int
        Number of elements from the start of one line to the start of the next.
    family : int
        BOX_COX or YEO_JOHNSON.
    first : int
        Index in `x` of the first sampled row.
    step : int
        Number of elements from one sampled row to the next.
    line : (3, width)
        Scratch: extremes and numbers of values at each of the `width` positions within a line.
    out : (p, N_RANGE)
        The ranges of the columns, updated in place.
    """
    _look_along(x, length, line)
    p = out.shape[0]
    for j in range(p):
        n, x_min, x_max = 0.0, math.inf, -math.inf
        for k in range(j, line.shape[1], max(p, 1)):
            n += line[_N, k]
            x_min = min(x_min, line[_LOW, k])
            x_max = max(x_max, line[_HIGH, k])
        _note(n, x_min + 0.0, x_max + 0.0, family, out[j])  # avoid -0.0
        out[j, R_WEIGHT] = out[j, R_COUNT]
        if out[j, R_COUNT] > 0.0:
            _sample(x[j:], line[_N, :0], log_offset(family), first, step, out[j])


@inlined
def _look_along(x: NDArray[Any], length: int, line: FloatArray) -> None:
    """Write the smallest value, the largest value and the number of values at each position in a line, over all lines.

    `x` is the memory of the matrix, and `length` the number of elements from one line to the next. `line` receives the
    results in the rows _LOW, _HIGH and _N, with an element for each position.
    """
    low, high, n = line[_LOW], line[_HIGH], line[_N]
    low[:], high[:], n[:] = math.inf, -math.inf, 0.0
    for start in range(0, x.size, max(length, 1)):
        values = x[start : min(start + n.size, x.size)]
        for k in range(values.size):
            value = np.float64(values[k])
            low[k] = value if value < low[k] else low[k]
            high[k] = value if value > high[k] else high[k]
            n[k] += 1.0 if value == value else 0.0


@kernel
def mean_log(data_range: FloatArray) -> float:
    """Return the mean signed log of the values sampled for a range (an array with the fields R_COUNT, ...)."""
    return float(LOG_UNIT * data_range[R_LOGS] / max(data_range[R_SAMPLE], 1.0))


@kernel
def estimate_log_sd(data_range: FloatArray, distance: float) -> float:
    """Estimate the standard deviation of the logs of a column from its range.

    `distance` is the largest minus the smallest log of the column.
    """
    spread = distance / _EXPECTED_RANGE
    if data_range[R_SAMPLE] > 1.0 and distance > _CLOSE:
        squares = (
            (data_range[R_SQUARES] * LIMB + data_range[R_SQUARES_LOW]) / data_range[R_SAMPLE] * LOG_UNIT * LOG_UNIT
        )
        spread = math.sqrt(max(squares - mean_log(data_range) ** 2, 0.0))
    return min(max(spread, distance / _LARGEST_RANGE), 0.5 * distance)


# --- entries ------------------------------------------------------------------------------------------


@entry((ROWS, COLUMN, INTEGER, INTEGER, INTEGER, ROWS))
def range_columns(
    columns: FloatArray,
    weight: FloatArray,
    family: int,
    first: int,
    stride: int,
    out: FloatArray,
) -> None:
    """Update the ranges of columns (counts, weights, extremes and sampled logs) with more rows.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows, NaN missing.
    weight : (n,)
        Weights of the rows of data; empty: all one.
    family : int
        BOX_COX or YEO_JOHNSON.
    first : int
        Index of the first row of data whose logs are sampled.
    stride : int
        Number of rows from one sampled row to the next.
    out : (p, N_RANGE)
        The ranges, updated in place.
    """
    for j in range(columns.shape[0]):
        _add_to_range(columns[j], weight, family, first, stride, out[j])


@entry((READ_COLUMN, INTEGER, INTEGER, INTEGER, INTEGER, ROWS, ROWS))
def range_lines(
    x: FloatArray, length: int, family: int, first: int, step: int, line: FloatArray, out: FloatArray
) -> None:
    """Update the ranges of the columns of a row-major float64 matrix with its rows, which have no weights.

    Parameters
    ----------
    x : (n,)
        The memory of the matrix.
    length : int
        Number of elements from the start of one line to the start of the next. A line may join several rows.
    family : int
        BOX_COX or YEO_JOHNSON.
    first : int
        Index in `x` of the first row whose logs are sampled.
    step : int
        Number of elements from one sampled row to the next.
    line : (3, width)
        Scratch for lines of `width` elements.
    out : (p, N_RANGE)
        The ranges, updated in place.
    """
    _range_of_lines(x, length, family, first, step, line, out)


@entry((READ_COLUMN32, INTEGER, INTEGER, INTEGER, INTEGER, ROWS, ROWS))
def range_lines32(
    x: Float32Array, length: int, family: int, first: int, step: int, line: FloatArray, out: FloatArray
) -> None:
    """Update the ranges of the columns of a row-major float32 matrix with its rows, which have no weights.

    Parameters
    ----------
    x : (n,)
        The memory of the matrix.
    length : int
        Number of elements from the start of one line to the start of the next. A line may join several rows.
    family : int
        BOX_COX or YEO_JOHNSON.
    first : int
        Index in `x` of the first row whose logs are sampled.
    step : int
        Number of elements from one sampled row to the next.
    line : (3, width)
        Scratch for lines of `width` elements.
    out : (p, N_RANGE)
        The ranges, updated in place.
    """
    _range_of_lines(x, length, family, first, step, line, out)
