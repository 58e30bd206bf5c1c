"""Entries that estimate the location and scale of each column of a matrix, for all methods."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from powerkern._jit import COLUMN, ROWS, entry, kernel, widest_vectors
from powerkern.kernels.location.biweight import sorted_bisquare, sorted_bisquare_proposal2, sorted_biweight
from powerkern.kernels.location.huber import (
    huber,
    huber_beta,
    sorted_huber_location,
    sorted_huber_scale,
    sorted_one_step,
)
from powerkern.kernels.location.loc_scale import (
    BAD_INFINITE,
    EMPTY,
    IQR_DIVISOR,
    MAD_FACTOR,
    MAX_ITER,
    OVERFLOW,
    QN_FACTOR,
    LocScale,
    make_loc_scale,
)
from powerkern.kernels.location.order_statistics import (
    mad_about,
    n_present,
    rank_of_weight,
    sorted_column,
    sorted_iqr,
    sorted_qn,
    sum_weights,
    trimmed_mean,
    weight_of_all,
)
from powerkern.kernels.location.proposal2 import sorted_huber_proposal2
from powerkern.kernels.moments import two_pass_moments

#: Values larger than this are multiplied by _SHRINK before they are squared, and values smaller than the inverse of
#: this are divided by _SHRINK. The squares of all other values are at most 1e280 and can be summed.
_LARGE = 1e140
#: A power of two. It scales the largest float64 to 2**424 and its inverse scales the smallest to 2**-474, whose squares
#: are in range.
_SHRINK = 2.0**-600
#: An eighth of the largest power of two. Weighted sums of values below it, divided by the total weight, do not
#: overflow.
_SUMMABLE = 2.0**1020


class SortedSample(NamedTuple):
    """A sorted column without its missing values, possibly scaled to avoid overflow."""

    y: np.ndarray  #: the values times `unit`
    w: np.ndarray
    unit: float
    infinite: bool  #: whether there are infinite values


@kernel
def without_missing(column: np.ndarray, weights: np.ndarray) -> SortedSample:
    """Return the part of a sorted column before the NaN at its end, and its weights, as views."""
    n = n_present(column)
    y, w = column[:n], weights[:n]
    return SortedSample(y, w, 1.0, n > 0 and (math.isinf(y[0]) or math.isinf(y[n - 1])))


@kernel
def _in_units(column: SortedSample, unit: float) -> SortedSample:
    _multiply(column.y, unit)
    return SortedSample(column.y, column.w, unit, column.infinite)


@kernel
def _for_differences(column: SortedSample) -> SortedSample:
    """Scale a column so that neither differences of its values nor their weighted sums overflow."""
    y, total = column.y, weight_of_all(column.y, column.w)
    if y.size == 0 or column.infinite:
        return column
    if max(abs(y[0]), abs(y[-1])) < _SUMMABLE / max(total, 1.0):
        return column
    return _in_units(column, math.ldexp(0.125, -math.frexp(max(total, 1.0))[1]))


@kernel
def for_squares(column: SortedSample) -> SortedSample:
    """Scale a column so that squares of differences in its central half stay in range."""
    y, n = column.y, column.y.size
    if n == 0 or column.infinite:
        return column
    inner = _inner_half(y, column.w)
    return _in_units(column, _safe_unit(inner if inner > 0.0 else y[n - 1] - y[0]))


@kernel
def _inner_half(y: np.ndarray, w: np.ndarray) -> float:
    """Return the length of the interval that contains the central half of the values, by number or by weight."""
    first, last = y.size // 4, (3 * y.size) // 4
    if w.size > 0:
        total = sum_weights(w)
        first, last = rank_of_weight(w, 0.25 * total)[1], rank_of_weight(w, 0.75 * total)[0]
    return float(y[last] - y[first])


@kernel
def _safe_unit(size: float) -> float:
    """Return a power of two that scales numbers of magnitude `size` so that their squares stay in range; usually 1."""
    if size > _LARGE:
        return _SHRINK
    if 0.0 < size < 1.0 / _LARGE:
        return 1.0 / _SHRINK
    return 1.0


@kernel
def _multiply(y: np.ndarray, factor: float) -> None:
    widest_vectors()
    if factor != 1.0:
        for i in range(y.size):
            y[i] *= factor


#: An estimator of location and scale, called with a sorted column and its options.
Estimate = Callable[[SortedSample, Any], LocScale]


@kernel
def apply_estimator(estimate: Estimate, column: SortedSample, options: Any) -> LocScale:
    """Apply an estimator to a column, with its options, and convert the result to the units of the data."""
    if column.y.size == 0:
        return LocScale(math.nan, math.nan, 0, EMPTY)
    loc, scale, n_iter, status = estimate(column, options)
    loc, scale, settled = loc / column.unit, scale / column.unit, status != MAX_ITER
    is_lost = math.isinf(loc) or math.isinf(scale) or (settled and (math.isnan(loc) or math.isnan(scale)))
    return LocScale(loc, scale, n_iter, OVERFLOW if is_lost else status)


def _by_column(name: str, scaled: Callable[[SortedSample], SortedSample], estimate: Estimate) -> Callable[..., None]:
    """Make an entry called `name` that applies `estimate` to each column, after scaling the column by `scaled`.

    The entry takes four arrays: sorted columns as rows, NaN last, which are overwritten; the weights of their values as
    rows, or an array of shape (k, 0); the options of the estimator; and `out`, (k, 4), which receives loc, scale,
    n_iter and status.
    """

    def columns_by(columns: np.ndarray, weights: np.ndarray, options: np.ndarray, out: np.ndarray) -> None:
        for j in range(columns.shape[0]):
            column = scaled(without_missing(columns[j], weights[j]))
            out[j, 0], out[j, 1], out[j, 2], out[j, 3] = apply_estimator(estimate, column, options)
            if column.infinite:
                out[j, 3] = BAD_INFINITE

    columns_by.__name__ = columns_by.__qualname__ = name  # the cache identifies code by this name
    return entry((ROWS, ROWS, COLUMN, ROWS))(columns_by)


@kernel
def location_by(column: SortedSample, options: Any) -> LocScale:
    """Apply `sorted_huber_location` to a column; the options are k and the scale."""
    return sorted_huber_location(column.y, column.w, options[1] * column.unit, options[0])


@kernel
def scale_by(column: SortedSample, options: Any) -> LocScale:
    """Apply an estimator of scale to a column: `sorted_huber_scale` (0), `huber` (1) or `sorted_one_step` (2).

    The options are the code of the estimator, k, ddof and the center.
    """
    k = options[1]
    if options[0] == 0.0:
        return sorted_huber_scale(column.y, column.w, options[3] * column.unit, k, options[2])
    if options[0] == 1.0:
        return huber(column.y, column.w, k)
    return sorted_one_step(column.y, column.w, k, huber_beta(k))


@kernel
def proposal2_by(column: SortedSample, options: Any) -> LocScale:
    """Apply `sorted_huber_proposal2` to a column.

    `options` has two constants: k of the equation of scale, and k of the equation of location.
    """
    return sorted_huber_proposal2(column.y, column.w, options[0], options[1])


@kernel
def _bisquare_by(column: SortedSample, options: Any) -> LocScale:
    """Apply `sorted_bisquare` (if k = 0) or `sorted_bisquare_proposal2` to a column; the options are k and c."""
    if options[0] == 0.0:
        return sorted_bisquare(column.y, column.w, options[1])
    return sorted_bisquare_proposal2(column.y, column.w, options[0], options[1])


@kernel
def _biweight_by(column: SortedSample, options: Any) -> LocScale:
    """Apply `sorted_biweight` to a column; the options are its two rejection distances."""
    return sorted_biweight(column.y, column.w, options[0], options[1])


@kernel
def _measure_order_statistics(column: SortedSample, options: Any) -> LocScale:
    """Return a location (mean, median or trimmed mean) and a scale (standard deviation, MAD, IQR or Qn) of a column.

    The first option is the code of the location: mean (0), median (1) or trimmed mean (2). The second is the code of
    the scale: standard deviation (0), normalised MAD (1), normalised IQR (2) or Qn (3). The other two options are the
    fractions to trim from the smallest and from the largest values.
    """
    y, w = column.y, column.w
    col = sorted_column(y, w)
    total = col.total
    loc, scale = col.center + col.median, 0.0
    if options[0] == 2.0:
        loc = trimmed_mean(y, w, _whole(options[2] * total), _whole(options[3] * total))
    if options[1] == 1.0:
        scale = MAD_FACTOR * mad_about(col, col.median)
    elif options[1] == 2.0:
        scale = sorted_iqr(y, w) / IQR_DIVISOR
    elif options[1] == 3.0:
        scale = QN_FACTOR * sorted_qn(y, w)
    if options[0] == 0.0 or options[1] == 0.0:  # last: overwrites y
        mean, sd = _mean_and_sd(y, w)
        loc = mean if options[0] == 0.0 else loc
        scale = sd if options[1] == 0.0 else scale
    return make_loc_scale(loc, scale, 0, True)


@kernel
def _whole(x: float) -> float:
    """Return the floor of x, or the next integer if x is below that integer only because of rounding."""
    return float(np.floor(x * (1.0 + 1e-12) + 1e-12))  # math.floor of numba is an int64, which overflows


@kernel
def _mean_and_sd(y: np.ndarray, w: np.ndarray) -> tuple[float, float]:
    """Return the mean and the standard deviation of a sorted column, divided by n or the sum of weights.

    The function overwrites y. `w` holds the weights; it is empty if all are one.
    """
    factor = _safe_unit(max(abs(y[0]), abs(y[-1])))
    _multiply(y, factor)
    moments = two_pass_moments(y) if w.size == 0 else two_pass_moments(y, w)
    return moments.mean / factor, math.sqrt(moments.m2 / moments.weight) / factor


order_columns = _by_column("order_columns", _for_differences, _measure_order_statistics)

huber_columns = _by_column("huber_columns", for_squares, location_by)

huber_scale_columns = _by_column("huber_scale_columns", for_squares, scale_by)

proposal2_columns = _by_column("proposal2_columns", for_squares, proposal2_by)

bisquare_columns = _by_column("bisquare_columns", for_squares, _bisquare_by)

biweight_columns = _by_column("biweight_columns", for_squares, _biweight_by)
