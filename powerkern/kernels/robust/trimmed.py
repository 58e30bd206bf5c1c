"""Maximum trimmed likelihood ([1]_): the likelihood of the best window of consecutive sorted values.

A window contains a given fraction of all values. The fit alternates between the best window for a lambda and the best
lambda for a window (`kernels.robust.reweighting`). Every step increases the trimmed likelihood.

References
----------
.. [1] A. S. Hadi and A. Luceño, "Maximum trimmed likelihood estimators: a unified approach, examples, and algorithms",
   Computational Statistics & Data Analysis 25, 1997, 251-272.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powerkern._jit import kernel, specialize_on_none
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.log import log
from powerkern.kernels.location.huber import sd_within
from powerkern.kernels.location.order_statistics import SLACK
from powerkern.kernels.location.weights import FrequencyWeights, position_at, weighted_mean
from powerkern.kernels.results import N_EVAL
from powerkern.kernels.robust.column import Column, Prestandardized
from powerkern.kernels.robust.column_results import (
    is_finished,
    weight_kept,
    weight_of_all,
    write_column,
    write_kept,
)
from powerkern.kernels.robust.fit import Criterion, make_entries, no_tail
from powerkern.kernels.robust.options import Options
from powerkern.kernels.robust.qq import normal_quantile
from powerkern.kernels.robust.reweighting import Fit, KeptRange, max_fits, reweight
from powerkern.kernels.robust.scratch import SAMPLE, RobustWork
from powerkern.kernels.robust.search import (
    GridScan,
    Search,
    brents_minimum,
    closer_minima,
    even_points,
    find_start,
    minima_and_beyond,
    one_by_one,
)
from powerkern.kernels.transforms.rectified import SortedColumn, transform_sorted

#: Cumulative sums of values, of squares and of logs, outwards from the middle of the column.
_Sums = tuple[FloatArray, FloatArray, FloatArray]


class _Window(NamedTuple):
    """A window of consecutive sorted values, and its trimmed negative log-likelihood."""

    start: int  #: index of the first value
    stop: int  #: one past the last value
    excluded_low: float  #: the part of the first value's weight outside the window
    excluded_high: float  #: the part of the last value's weight outside the window
    value: float  #: the trimmed negative log-likelihood


@kernel
def window_size(n: float, fraction: float) -> float:
    """Return the number of values in a window: a fraction of n values, but more than half.

    A fractional n stands for a total weight; the result is then interpolated.
    """
    whole = float(np.floor(n))
    size = _whole_window(whole, fraction)
    return size if whole == n else size + (n - whole) * (_whole_window(whole + 1.0, fraction) - size)


@kernel
def _whole_window(n: float, fraction: float) -> float:
    return min(max(float(np.ceil(fraction * n)), float(np.floor(0.5 * n)) + 1.0), n)


@kernel
def _best_plain_window(
    counts: None, standardized: Prestandardized, lmbda: float, fraction: float, outward: _Sums
) -> _Window:
    """Return the window of consecutive values with the largest likelihood, for a column without weights.

    All windows contain the values in the middle of the column. Sums about the mean of the middle values are accumulated
    outwards. Hence nothing is subtracted, and infinite values affect only the windows that contain them.

    Parameters
    ----------
    counts : None
        Always None: all weights are one.
    standardized : Prestandardized
        The prestandardised column, with its transform at `lmbda`.
    lmbda : float
        Lambda of the prestandardised column.
    fraction : float
        Fraction of the values in the window.
    outward : tuple of three (n,) arrays
        Scratch for sums of values, squares and logs.
    """
    n, y, logs = standardized.column.n, standardized.y, standardized.column.logs
    size = int(window_size(float(n), fraction))
    first, last = n - size, size
    center = weighted_mean(y[first:last], None)
    unit = 1.0 / (y[last - 1] - y[first]) if y[last - 1] > y[first] else 1.0
    total, squares, jacobian = 0.0, 0.0, 0.0
    for i in range(first, last):
        d = (y[i] - center) * unit
        total += d
        squares += d * d
        jacobian += logs[i]
    left, left_squares, left_jacobian = outward
    left[0] = left_squares[0] = left_jacobian[0] = 0.0
    for k in range(first):
        d = (y[first - 1 - k] - center) * unit
        left[k + 1] = left[k] + d
        left_squares[k + 1] = left_squares[k] + d * d
        left_jacobian[k + 1] = left_jacobian[k] + logs[first - 1 - k]
    best, best_start = math.inf, first
    for start in range(first + 1):
        if start > 0:
            d = (y[last + start - 1] - center) * unit
            total += d
            squares += d * d
            jacobian += logs[last + start - 1]
        k = first - start
        mean = (total + left[k]) / size
        variance = (squares + left_squares[k]) / size - mean * mean
        if variance > 0.0:
            value = 0.5 * log(variance) - (lmbda - 1.0) * (jacobian + left_jacobian[k]) / size
            if value < best:
                best, best_start = value, start
    return _Window(best_start, best_start + size, 0.0, 0.0, best - log(unit))


@specialize_on_none(_best_plain_window)
def _best_window(
    counts: FrequencyWeights, standardized: Prestandardized, lmbda: float, fraction: float, outward: _Sums
) -> _Window:
    """Return the window with the largest likelihood, for a column with weights.

    Only windows that begin or end between two values need be compared. Between two such windows, mean and mean square
    are linear functions of the position, and the log of the variance is concave, so the likelihood is lower.

    Parameters
    ----------
    counts : FrequencyWeights
        Weights of the values.
    standardized : Prestandardized
        The prestandardised column, with its transform at `lmbda`.
    lmbda : float
        Lambda of the prestandardised column.
    fraction : float
        Fraction of the total weight in the window.
    outward : tuple of three (n,) arrays
        Scratch for sums of values, squares and logs.
    """
    n, y, before = standardized.column.n, standardized.y, counts.before
    size = counts.unit * window_size(counts.total / counts.unit, fraction)
    tolerance, end = SLACK * counts.total, 0.0
    middle = counts.lower
    first, last = y[position_at(counts, 1.0 - size / counts.total)], y[position_at(counts, size / counts.total)]
    unit = 1.0 / (last - first) if last > first else 1.0
    _cumulate_outwards(standardized, counts, middle, unit, outward)
    best, right = _Window(0, n, 0.0, 0.0, math.inf), (0.0, 0.0, 0.0)
    i, j, start = 0, 0, 0.0
    for _ in range(2 * n + 2):  # in each iteration the first or the last value of the window changes
        while i < middle and before[i + 1] <= start + tolerance:
            i += 1
        end = start + size
        while j < n - 1 and before[j + 1] < end - tolerance:
            if j > middle:
                right = _add_value(right, standardized, counts.w[j], j, middle, unit)
            j += 1
        total = right if j <= middle else _add_value(right, standardized, end - before[j], j, middle, unit)
        if i < middle:
            left = (outward[0][i + 1], outward[1][i + 1], outward[2][i + 1])
            left = _add_value(left, standardized, before[i + 1] - start, i, middle, unit)
            total = (total[0] + left[0], total[1] + left[1], total[2] + left[2])
        mean = total[0] / size
        variance = total[1] / size - mean * mean
        if variance > 0.0:
            value = (
                0.5 * log(variance) - (lmbda - 1.0) * (standardized.column.logs[middle] + total[2] / size) - log(unit)
            )
            if value < best.value:
                below, above = start - before[i], before[j + 1] - end
                below, above = below if below > tolerance else 0.0, above if above > tolerance else 0.0
                best = _Window(i, j + 1, below, above, value)
        following = j
        while following < n and before[following + 1] <= end + tolerance:  # weights may be smaller than the tolerance
            following += 1
        if following == n:
            break
        start = min(before[i + 1], before[following + 1] - size)
    return best


@kernel
def _cumulate_outwards(
    standardized: Prestandardized, counts: FrequencyWeights, middle: int, unit: float, outward: _Sums
) -> None:
    """Write, for each index i up to `middle`, the sums over the values i, ..., middle.

    Parameters
    ----------
    standardized : Prestandardized
        The prestandardised column, with its transform.
    counts : FrequencyWeights
        Weights of the values.
    middle : int
        Index of the middle value, which is subtracted.
    unit : float
        Factor that multiplies the differences.
    outward : tuple of three (n,) arrays
        Receives the sums of values, squares and logs.
    """
    left, left_squares, left_jacobian = outward
    left[middle] = left_squares[middle] = left_jacobian[middle] = 0.0
    for i in range(middle - 1, -1, -1):
        inner = (left[i + 1], left_squares[i + 1], left_jacobian[i + 1])
        left[i], left_squares[i], left_jacobian[i] = _add_value(inner, standardized, counts.w[i], i, middle, unit)


@kernel
def _add_value(
    sums: tuple[float, float, float], standardized: Prestandardized, weight: float, i: int, middle: int, unit: float
) -> tuple[float, float, float]:
    """Add value i to the sums of values, squares and logs, all relative to the middle value; return the sums.

    Parameters
    ----------
    sums : (float, float, float)
        The sums of values, squares and logs.
    standardized : Prestandardized
        The prestandardised column, with its transform.
    weight : float
        Weight of value i.
    i : int
        Index of the value.
    middle : int
        Index of the middle value, which is subtracted.
    unit : float
        Factor that multiplies the differences.
    """
    d = (standardized.y[i] - standardized.y[middle]) * unit
    step = weight * d
    return (
        sums[0] + step,
        sums[1] + step * d,
        sums[2] + weight * (standardized.column.logs[i] - standardized.column.logs[middle]),
    )


# --- the estimator --------------------------------------------------------------------------------------


@kernel
def _no_target(counts: FrequencyWeights | None, column: SortedColumn, options: Options, work: RobustWork) -> float:
    return 0.0


@kernel
def _no_sample_target(
    full_column: Prestandardized, column: SortedColumn, counts: FrequencyWeights | None, work: RobustWork
) -> float:
    return 0.0


@kernel
def _window_at(standardized: Prestandardized, lmbda: float, rule: int, options: Options, work: RobustWork) -> _Window:
    transform_sorted(standardized.column, lmbda, rule, standardized.y)
    outward = work.mle.spare, work.mle.split, work.mle.weight
    return _best_window(standardized.counts, standardized, lmbda, options.fraction, outward)


@kernel
def _objective(standardized: Prestandardized, lmbda: float, options: Options, work: RobustWork) -> float:
    return _window_at(standardized, lmbda, options.rule, options, work).value


@kernel
def _keep(
    standardized: Prestandardized, lmbda: float, rule: int, adaptive: bool, options: Options, work: RobustWork
) -> KeptRange:
    """Return the range of values in the best window at a lambda.

    The arguments are those of `qq_column.keep_within`.
    """
    best = _window_at(standardized, lmbda, rule, options, work)
    return KeptRange(
        best.start, best.stop, math.nan, math.nan, lmbda, rule, math.nan, best.excluded_low, best.excluded_high
    )


@kernel
def _scan(standardized: Prestandardized, low: float, high: float, options: Options, work: RobustWork) -> GridScan:
    """Find cells with local minima on two grids.

    If the lowest point of the first grid is an end of the range, the second grid continues beyond the end. Otherwise it
    is a finer grid around the lowest point. The arguments are those of `qq_column.scan_qq`.
    """
    n_points = even_points(_evaluate, standardized, low, high, options, work)
    scan = minima_and_beyond(_evaluate, standardized, n_points, low, high, options, work)
    if scan.n_eval == n_points:
        return closer_minima(_evaluate, standardized, n_points, scan.n_cells, options, work)
    return GridScan(scan.n_cells, scan.n_eval, scan.inside, 0)


_evaluate = one_by_one(_objective)
_SEARCH = Search(_objective, _no_sample_target, _scan, brents_minimum)


@kernel
def _fit(fit: Fit, column: Column, options: Options, work: RobustWork, row: FloatArray) -> None:
    """Fit a prestandardised column, or set the status DEFERRED if `fit` cannot fit the values.

    The arguments are those of `rewml._fit`.
    """
    x, prescaling, standardized = column.x, column.prescaling, column.standardized
    start = find_start(_SEARCH, standardized, options.low, options.high, SAMPLE, options, work)
    kept = reweight(_keep, fit, column, start.lmbda, max_fits(options), options, work, row)
    if is_finished(x, standardized.counts, kept, row):
        return
    row[N_EVAL] += start.n_eval
    write_column(x, standardized.counts, standardized.column.negative_shift, prescaling, start, row)
    correction = scale_factor(
        math.nan, weight_kept(standardized.counts, kept) / weight_of_all(standardized.counts, x.size), math.nan
    )
    write_kept(x, standardized.counts, standardized.column.negative_shift, prescaling, kept, correction, options, row)


@kernel
def scale_factor(n_kept: float, fraction_kept: float, cutoff: float) -> float:
    """Return the factor that makes the standard deviation of a central fraction of normal values consistent.

    Only the fraction is used (see `EstimatorEntries.scale_factor`).
    """
    return 1.0 / sd_within(-normal_quantile(0.5 - 0.5 * fraction_kept)) if fraction_kept < 1.0 else 1.0


ENTRIES = make_entries(__name__, Criterion(_no_target, _objective, _keep, _fit, no_tail), scale_factor)
