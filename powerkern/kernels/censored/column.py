"""Prepare a column with censored cells for its likelihood: logs of its values, one term per distinct interval.

A cell is given by a number x and the other end e of its interval. If e is NaN, the cell is an observed value x. If e is
-inf, the value is below x; if e is inf, it is above x. Otherwise it is between x and e. Equal intervals become one term
with a count.

Values and limits are standardised by the mean and the standard deviation of the transformed observed values
(`CensoredColumn.centered`). If fewer than two of the observed values are distinct, the transformed limits and
upper ends of the intervals are used, too.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powerkern._jit import kernel, reduction
from powerkern._typing import FloatArray
from powerkern.kernels.censored.scratch import (
    CELLS,
    COUNT,
    END,
    HIGH,
    LIMIT,
    LOW,
    OTHER,
    SIDE,
    WEIGHT,
    CensoredWork,
    TermWork,
)
from powerkern.kernels.elementary.constants import SMALLEST_NORMAL
from powerkern.kernels.elementary.log import log_normal
from powerkern.kernels.likelihood.logs import (
    Magnitudes,
    PreparedColumn,
    ValueSummary,
    centered_log,
    magnitude_range,
    magnitudes_by_sign,
    merge_summaries,
    offset_log,
    refusal,
    sign_of,
    summarize_values,
)
from powerkern.kernels.likelihood.one_pass import MIN_EFFECTIVE, ONE_PASS_REACH, ONE_PASS_SPREAD
from powerkern.kernels.likelihood.score import Logs, LogStatistics
from powerkern.kernels.likelihood.scratch import Work
from powerkern.kernels.likelihood.two_pass import MOST_TYPICAL, Centered, centered_column, subsample_median
from powerkern.kernels.moments import sum_of
from powerkern.kernels.status_codes import EMPTY, FEW_OBSERVED, OK
from powerkern.kernels.transforms.family import domain_lower_bound, log_offset

#: Position of the cells of a limit: below it, above it, or at it.
BELOW, ABOVE, EQUAL = 1.0, -1.0, 0.0
#: Largest number of distinct intervals with which a new one is compared. A column with more distinct intervals usually
#: has a different one in each cell. The choice changes results by rounding only.
_SEARCHED = 8
#: Up to this many terms, all of them enter a sample, with counts divided by `stride`. Of more terms, only every
#: `stride`-th one does.
_FEW_TERMS = 64


class Counts(NamedTuple):
    """Number, or total weight, of the observed cells and of the cells censored below, above and between limits."""

    observed: float
    below: float
    above: float
    between: float


class Terms(NamedTuple):
    """The distinct intervals of a column, each one term of the log-likelihood, with the logs of their ends.

    `points` holds the logs of the ends: those of non-negative ends in ``points.pos``, then those of negative ends in
    ``points.neg``. An interval with one end is a limit. The first `n_pos` entries of ``points.pos`` and the last
    `n_neg` of ``points.neg`` are limits; `side` and `weight` give, for each point, the side on which the cells lie and
    their total weight. The first `n_intervals` columns of `intervals` describe intervals with two ends: the total
    weight of the cells, and the positions of both ends among the points. If all observed values are equal,
    `value_index` is the position of that value among the points; otherwise it is -1.
    """

    points: Logs
    side: FloatArray
    weight: FloatArray
    n_pos: int
    n_neg: int
    intervals: FloatArray
    n_intervals: int
    value_index: int


class CensoredColumn(NamedTuple):
    """A column with censored cells, prepared for its likelihood.

    `sign` is 1, -1, or 0 if there are values or limits of both signs. If it is -1, all fields describe the magnitudes.
    `total` is the weight of all cells. `values` holds the weight of the observed cells and, if their moments may be
    computed from raw sums, the standard deviation of their logs. `are_standard` tells whether the observed values
    provide the mean and the standard deviation for standardising; if not, the ends of the intervals do. In the second
    case `mean_log_shift` is the mean log of the ends minus the mean log of the observed values, in the units of the
    logs; otherwise it is 0.
    """

    centered: Centered
    sign: float
    terms: Terms
    total: float
    values: LogStatistics
    mean_log_shift: float
    are_standard: bool


class Split(NamedTuple):
    """Result of `split_cells`: the numbers of observed values and distinct intervals, with summaries and counts.

    `n` is the number of observed values, `n_limits` the number of distinct intervals with one end, and `n_intervals`
    the number of those with two ends. `values` summarises the observed values, and `ends` the ends of all intervals.
    `counts` holds the number of cells of each kind, or their total weight.
    """

    n: int
    n_limits: int
    n_intervals: int
    values: ValueSummary
    ends: ValueSummary
    counts: Counts


# --- values and intervals -------------------------------------------------------------------------------


@kernel
def split_cells(
    x: FloatArray, other: FloatArray, weight: FloatArray, family: int, work: Work, censored_work: CensoredWork
) -> Split:
    """Separate observed cells from censored ones, and merge censored cells that have the same interval.

    Parameters
    ----------
    x : (n,)
        The values, or one end of the interval of each cell; NaN if missing.
    other : (n,)
        The other end of the interval; NaN for observed values.
    weight : (n,)
        Weights of the cells; empty if all are one.
    family : int
        BOX_COX or YEO_JOHNSON.
    work : Work
        Receives the observed values and their weights.
    censored_work : CensoredWork
        Receives the distinct limits in ``censored_work.cells``, and the distinct intervals with two ends in
        ``censored_work.terms.intervals``.
    """
    if weight.size > 0:
        n, n_censored = _separate(x, other, weight, work, censored_work)
        values = summarize_values(work.packed[:n], work.weight[:n])
    else:
        n, n_censored = _separate(x, other, None, work, censored_work)
        values = summarize_values(work.packed[:n], None)
    n_limits, n_intervals = _merge_equal(n_censored, weight.size > 0, domain_lower_bound(family), censored_work)
    below = above = 0.0
    for k in range(n_limits):
        below += censored_work.cells[COUNT, k] if censored_work.cells[SIDE, k] == BELOW else 0.0
        above += censored_work.cells[COUNT, k] if censored_work.cells[SIDE, k] == ABOVE else 0.0
    intervals = censored_work.terms.intervals
    ends = summarize_values(censored_work.cells[LIMIT, :n_limits], None)
    for row in range(LOW, HIGH + 1):
        ends = merge_summaries(ends, summarize_values(intervals[row, :n_intervals], None))
    counts = Counts(values.weight, below, above, sum_of(intervals[CELLS, :n_intervals]))
    return Split(n, n_limits, n_intervals, values, ends, counts)


@kernel
def _separate(
    x: FloatArray, other: FloatArray, weight: FloatArray | None, work: Work, censored_work: CensoredWork
) -> tuple[int, int]:
    """Copy observed values and censored cells to separate arrays; return the number of each.

    Every cell is written to both arrays, and the next cell overwrites it in the array where it does not belong. This
    needs no branch, which the CPU would mispredict.

    Parameters
    ----------
    x : (n,)
        The values, or one end of the interval of each cell; NaN if missing.
    other : (n,)
        The other end of the interval; NaN for observed values.
    weight : (n,) or None
        Weights of the cells; None if all are one.
    work : Work
        Receives the observed values and their weights.
    censored_work : CensoredWork
        Receives the censored cells in ``censored_work.cells``.
    """
    end, end_other, end_weight = censored_work.cells[END], censored_work.cells[OTHER], censored_work.cells[WEIGHT]
    packed, packed_weight = work.packed, work.weight
    n = k = np.uint64(0)
    for i in range(x.size):
        packed[n] = end[k] = x[i]
        end_other[k] = other[i]
        is_present = x[i] == x[i]
        if weight is not None:
            packed_weight[n] = end_weight[k] = weight[i]
            is_present = is_present & (weight[i] > 0.0)
        is_censored = (other[i] == other[i]) & (other[i] != x[i])
        n += np.uint64(is_present & (not is_censored))
        k += np.uint64(is_present & is_censored)
    return int(n), int(k)


@kernel
def _merge_equal(n_censored: int, is_weighted: bool, lowest: float, censored_work: CensoredWork) -> tuple[int, int]:
    """Replace the censored cells by distinct limits and distinct intervals; return the number of each.

    Parameters
    ----------
    n_censored : int
        The number of censored cells.
    is_weighted : bool
        Whether the cells have weights.
    lowest : float
        Lower bound of the domain. An interval that begins at or below this bound becomes a limit at its upper end.
    censored_work : CensoredWork
        Holds the censored cells; receives the limits and the intervals.
    """
    limit, side, count = censored_work.cells[LIMIT], censored_work.cells[SIDE], censored_work.cells[COUNT]
    intervals = censored_work.terms.intervals
    n_limits = n_intervals = 0
    if not is_weighted:
        count[:n_censored] = 1.0
    if _are_equal(limit[:n_censored]) and _are_equal(side[:n_censored]):  # usually there is one limit
        count[0] = sum_of(count[:n_censored])
        n_censored = 1
    for i in range(n_censored):
        low, high, w = min(limit[i], side[i]), max(limit[i], side[i]), count[i]
        if low <= lowest < high:
            low = -math.inf
        if low > -math.inf and high < math.inf:
            k = _position_of_pair(low, high, intervals[LOW], intervals[HIGH], n_intervals)
            if k < n_intervals:
                intervals[CELLS, k] += w
            else:
                intervals[CELLS, k], intervals[LOW, k], intervals[HIGH, k] = w, low, high
                n_intervals += 1
            continue
        end, of_end = (high, BELOW) if low == -math.inf else (low, ABOVE)
        last = _position_of_pair(end, of_end, limit, side, n_limits)
        if last < n_limits:
            count[last] += w
        else:  # the first entries belong to cells that have been read
            limit[last], side[last], count[last] = end, of_end, w
            n_limits += 1
    return n_limits, n_intervals


@kernel
def _are_equal(x: FloatArray) -> bool:
    """Return whether all numbers of a non-empty array are equal."""
    summary = summarize_values(x, None)
    return summary.low == summary.high


@kernel
def _position_of_pair(a: float, b: float, first: FloatArray, second: FloatArray, n: int) -> int:
    """Return the index of a pair of numbers in a list of pairs, or `n` if it is not in the list.

    Lists of more than _SEARCHED pairs are not searched.

    Parameters
    ----------
    a, b : float
        The pair to look for.
    first, second : (k,)
        The first and the second number of each pair in the list.
    n : int
        The number of pairs in the list.
    """
    if n <= _SEARCHED:
        for k in range(n):
            if first[k] == a and second[k] == b:
                return k
    return n


@kernel
def status_of(split: Split, family: int, censored_work: CensoredWork) -> int:
    """Return OK if the column can be fitted, and otherwise the status that gives the reason.

    Lambda can be fitted to two distinct values, or to three distinct points among the values and the ends of intervals.
    """
    if split.values.n + split.ends.n == 0.0:
        return EMPTY
    union = merge_summaries(split.values, split.ends)
    refused = refusal(union, family)
    if refused < 0:
        return refused
    if split.values.low < split.values.high:
        return OK
    for k in range(split.n_limits):
        if union.low < censored_work.cells[LIMIT, k] < union.high:
            return OK
    for k in range(split.n_intervals):
        for end in (LOW, HIGH):
            if union.low < censored_work.terms.intervals[end, k] < union.high:
                return OK
    inside = union.low < split.values.low < union.high
    return OK if inside and split.values.n > 0.0 else FEW_OBSERVED


# --- logs -----------------------------------------------------------------------------------------------


@kernel
def prepare_column(
    split: Split, is_weighted: bool, family: int, work: Work, censored_work: CensoredWork
) -> CensoredColumn:
    """Prepare a column for its likelihood: compute the logs of its values and of the ends of its intervals.

    Parameters
    ----------
    split : Split
        The separated cells.
    is_weighted : bool
        Whether the cells have weights.
    family : int
        BOX_COX or YEO_JOHNSON.
    work : Work
        Holds the values; receives their logs.
    censored_work : CensoredWork
        Holds the limits and the intervals; receives the logs of their ends.
    """
    union = merge_summaries(split.values, split.ends)
    column = PreparedColumn(
        work.packed[: split.n], work.weight[: split.n] if is_weighted else work.weight[:0],
        union, log_offset(family), sign_of(union), OK,
    )  # fmt: skip
    are_standard = split.values.low < split.values.high
    n_limits = split.n_limits
    if not are_standard:
        if split.values.n > 0.0:  # all values are equal: their density is a term
            censored_work.cells[LIMIT, n_limits], censored_work.cells[SIDE, n_limits] = split.values.low, EQUAL
            censored_work.cells[COUNT, n_limits] = 0.0
            n_limits += 1
        n = _copy_ends(n_limits, split.n_intervals, work.packed, censored_work)
        column = PreparedColumn(work.packed[:n], work.weight[:0], union, column.offset, column.sign, OK)
    centered, sd = _plain_logs(column, split.values, work)
    is_plain = are_standard and sd >= ONE_PASS_SPREAD
    if not is_plain:
        centered, sd = centered_column(column, work), 0.0
    terms = write_term_logs(n_limits, split.n_intervals, centered, column.sign, is_plain, censored_work)
    logs = _with_bounds_of(union, centered, column.sign)
    centered = Centered(
        logs, centered.log_reference, centered.offset, centered.smallest, centered.largest, centered.heavy,
        centered.reference,
    )  # fmt: skip
    counts, mean_log_shift = split.counts, 0.0
    if terms.value_index >= 0:
        mean_log_shift = logs.jacobian - _signed_log(terms.value_index, terms.points, logs.center)
    total = counts.observed + counts.below + counts.above + counts.between
    values = LogStatistics(counts.observed, sd)
    return CensoredColumn(centered, column.sign, terms, total, values, mean_log_shift, are_standard)


@kernel
def _copy_ends(n_limits: int, n_intervals: int, out: FloatArray, censored_work: CensoredWork) -> int:
    """Copy the limits and the upper ends of the intervals to `out`; return their number."""
    for k in range(n_limits):
        out[k] = censored_work.cells[LIMIT, k]
    for k in range(n_intervals):
        out[n_limits + k] = censored_work.terms.intervals[HIGH, k]
    return n_limits + n_intervals


@kernel
def _plain_logs(column: PreparedColumn, values: ValueSummary, work: Work) -> tuple[Centered, float]:
    """Return the logs of all values, computed as in `kernels.likelihood.one_pass`, and the logs' standard deviation.

    The absolute error of a log is a few rounding errors of 1. If such errors are too large for raw sums, or if a few
    values carry nearly all of the weight, a standard deviation of 0 is returned.

    Parameters
    ----------
    column : PreparedColumn
        The column.
    values : ValueSummary
        Summary of the observed values.
    work : Work
        Receives the logs.
    """
    both_signs, offset = column.sign == 0.0, column.offset
    magnitudes = magnitudes_by_sign(column.x, column.weight, column.sign, work)
    reference = 0.0 if both_signs else subsample_median(magnitudes.pos, MOST_TYPICAL, work.spare)
    smallest, largest = magnitude_range(column.summary)
    low, high = 0.0, 0.0
    log_reference = offset_log(offset, reference)
    is_normal = offset + min(smallest, reference) >= SMALLEST_NORMAL
    if is_normal:
        low, high = offset_log(offset, smallest) - log_reference, offset_log(offset, largest) - log_reference
    suits = is_normal and max(-low, high) <= ONE_PASS_REACH
    suits = suits and values.weight * values.weight >= MIN_EFFECTIVE * values.squares
    border, n = magnitudes.pos.size, magnitudes.pos.size + magnitudes.neg.size
    pos, neg = work.spare[:border], work.spare[border:n]
    jacobian = sd = 0.0
    if suits:
        jacobian, sd = _write_logs(magnitudes, both_signs, offset, 1.0 / (offset + reference), pos, neg)
    logs = Logs(pos, magnitudes.pos_weight, neg, magnitudes.neg_weight, 0.0, 0.0, 0.0, jacobian, 1.0, 0.0)
    return Centered(logs, log_reference, offset, smallest, largest, math.nan, reference), sd


@kernel
def _write_logs(
    magnitudes: Magnitudes, both_signs: bool, offset: float, per_ref: float, pos: FloatArray, neg: FloatArray
) -> tuple[float, float]:
    """Write the logs of the magnitudes; return the weighted mean and standard deviation of the signed logs.

    Parameters
    ----------
    magnitudes : Magnitudes
        Magnitudes and weights of the non-negative and of the negative values.
    both_signs : bool
        Whether the column has both signs. The root mean square then replaces the standard deviation.
    offset : float
        0 (Box-Cox) or 1 (Yeo-Johnson), added to magnitudes.
    per_ref : float
        1/(offset + reference), which multiplies each value before its log is computed.
    pos, neg : (k,)
        Receive the logs of non-negative and of negative values.
    """
    above = _sums_of_logs(magnitudes.pos, magnitudes.pos_weight, offset, per_ref, pos)
    below = _sums_of_logs(magnitudes.neg, magnitudes.neg_weight, offset, per_ref, neg)
    weight = above[0] + below[0]
    mean = (above[1] - below[1]) / weight
    center = 0.0 if both_signs else mean
    return mean, math.sqrt(max((above[2] + below[2]) / weight - center * center, 0.0))


@reduction
def _sums_of_logs(
    x: FloatArray, weight: FloatArray, offset: float, per_ref: float, d: FloatArray
) -> tuple[float, float, float]:
    """Write the logs of magnitudes; return the sums of the weights, the weighted logs and the weighted squares.

    Parameters
    ----------
    x : (n,)
        The magnitudes.
    weight : (n,)
        Weights of the values.
    offset : float
        0 (Box-Cox) or 1 (Yeo-Johnson), added to magnitudes.
    per_ref : float
        1/(offset + reference), which multiplies each value before its log is computed.
    d : (n,)
        Receives the logs.
    """
    count = total = squares = 0.0
    for i in range(d.size):
        value = log_normal((offset + x[i]) * per_ref)
        d[i] = value
        count += weight[i]
        total += weight[i] * value
        squares += weight[i] * value * value
    return count, total, squares


@kernel
def write_term_logs(
    n_limits: int, n_intervals: int, centered: Centered, sign: float, is_plain: bool, censored_work: CensoredWork
) -> Terms:
    """Write the logs of the ends of all intervals, with the reference and the unit of the column's logs.

    Logs of non-negative ends come first; intervals then refer to the logs by their position. For a negative column the
    magnitudes are transformed, so "below" and "above" are exchanged.

    Parameters
    ----------
    n_limits, n_intervals : int
        The numbers of limits and of intervals with two ends.
    centered : Centered
        The logs of the values, with their reference and unit.
    sign : float
        The sign of the column: 1, -1, or 0 for both signs.
    is_plain : bool
        Whether the logs of the values were computed by `_plain_logs`.
    censored_work : CensoredWork
        Holds the limits and the intervals; receives the logs.
    """
    out, n_points = censored_work.terms, n_limits + 2 * n_intervals
    front, back, value_index = 0, n_points, -1
    mirror = -1.0 if sign < 0.0 else 1.0
    for k in range(n_limits):
        end, at = censored_work.cells[LIMIT, k], front
        if sign != 0.0 or end >= 0.0:
            front += 1
        else:
            back -= 1
            at = back
        out.logs[at], out.side[at] = abs(end), mirror * censored_work.cells[SIDE, k]
        out.weight[at] = censored_work.cells[COUNT, k]
        value_index = at if censored_work.cells[SIDE, k] == EQUAL else value_index
    n_pos, n_neg = front, n_points - back
    for k in range(n_intervals):
        for row in range(LOW, HIGH + 1):
            end, at = out.intervals[row, k], front
            if sign != 0.0 or end >= 0.0:
                front += 1
            else:
                back -= 1
                at = back
            out.logs[at], out.intervals[row, k] = abs(end), at
        if sign < 0.0:
            out.intervals[LOW, k], out.intervals[HIGH, k] = out.intervals[HIGH, k], out.intervals[LOW, k]
    reference = _references(centered, sign)
    unit = 1.0 / centered.logs.sigma
    pos, neg = out.logs[:front], out.logs[front:n_points]
    _take_logs(pos, centered.offset, reference[0], unit, is_plain)
    _take_logs(neg, centered.offset, reference[1], unit, is_plain)
    points = Logs(pos, pos, neg, neg, 0.0, 0.0, 0.0, 0.0, centered.logs.sigma, centered.logs.center)
    return Terms(points, out.side, out.weight, n_pos, n_neg, out.intervals, n_intervals, value_index)


@kernel
def _take_logs(x: FloatArray, offset: float, reference: tuple[float, float], unit: float, is_plain: bool) -> None:
    """Replace magnitudes by their logs, relative to the log of a reference.

    Parameters
    ----------
    x : (n,)
        The magnitudes; overwritten.
    offset : float
        0 (Box-Cox) or 1 (Yeo-Johnson), added to magnitudes.
    reference : (float, float)
        The reference, and the log of offset + reference.
    unit : float
        Factor by which the logs are multiplied; not used if `is_plain`.
    is_plain : bool
        Whether to compute the logs of ratios, as `_plain_logs` does. They lose digits where a magnitude is close to the
        reference.
    """
    if x.size == 0:
        return
    if is_plain:
        per_ref = 1.0 / (offset + reference[0])
        for i in range(x.size):
            x[i] = log_normal((offset + x[i]) * per_ref)
    else:
        for i in range(x.size):
            x[i] = unit * centered_log(x[i], offset, reference[0], reference[1])


@kernel
def _references(centered: Centered, sign: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return two pairs (r, ln(offset + r)) of a reference magnitude r: for non-negative and for negative values.

    `sign` is the sign of the column: 1, -1, or 0 for both signs. For a column of one sign the first pair applies to all
    magnitudes, also if they are those of negative values, and the second pair is not used. For a column of both signs,
    r is 0 for values whose sign differs from that of the reference.
    """
    if sign != 0.0:
        return (centered.reference, centered.log_reference), (0.0, 0.0)
    above, below = max(centered.reference, 0.0), max(-centered.reference, 0.0)
    return (above, offset_log(centered.offset, above)), (below, offset_log(centered.offset, below))


@kernel
def _with_bounds_of(union: ValueSummary, centered: Centered, sign: float) -> Logs:
    """Return the logs of the values, with the bounds of the logs widened to include the ends of the intervals.

    `union` summarises the values and the ends. `centered` has the logs, and `sign` is the sign of the column, 0 for
    both signs.
    """
    logs, offset, unit = centered.logs, centered.offset, 1.0 / centered.logs.sigma
    pos, neg = _references(centered, sign)
    low, high, neg_high = logs.low, logs.high, logs.neg_high
    if sign != 0.0:
        smallest, largest = magnitude_range(union)
        low = min(low, unit * centered_log(smallest, offset, pos[0], pos[1]))
        high = max(high, unit * centered_log(largest, offset, pos[0], pos[1]))
    else:
        high = max(high, unit * centered_log(union.high, offset, pos[0], pos[1]))
        neg_high = max(neg_high, unit * centered_log(-union.low, offset, neg[0], neg[1]))
    return Logs(
        logs.pos, logs.pos_weight, logs.neg, logs.neg_weight, low, high, neg_high, logs.jacobian, logs.sigma,
        logs.center,
    )  # fmt: skip


@kernel
def _signed_log(k: int, points: Logs, center: float) -> float:
    """Return the signed log of point k minus `center`; `Logs.jacobian` is the mean of this quantity over the values."""
    n_pos = points.pos.size
    if k < n_pos:
        return float(points.pos[k] + max(center, 0.0) - center)
    return float(-(points.neg[k - n_pos] + max(-center, 0.0)) - center)


# --- a sample -------------------------------------------------------------------------------------------


@kernel
def sample_column(column: CensoredColumn, stride: int, censored_work: CensoredWork) -> CensoredColumn:
    """Return a sample of the column for a first search: every `stride`-th value and every `stride`-th term.

    If there are few terms, the sample contains all of them, with their counts divided by `stride`.

    Parameters
    ----------
    column : CensoredColumn
        The column.
    stride : int
        The step from one sampled value to the next.
    censored_work : CensoredWork
        Receives the sample.
    """
    logs, c = column.centered.logs, column.centered
    d, weight = censored_work.sample_logs[0], censored_work.sample_logs[1]
    n_pos = _copy_every(logs.pos, stride, d)
    n = n_pos + _copy_every(logs.neg, stride, d[n_pos:])
    _copy_every(logs.pos_weight, stride, weight)
    _copy_every(logs.neg_weight, stride, weight[n_pos:])
    pos, neg, pos_weight, neg_weight = d[:n_pos], d[n_pos:n], weight[:n_pos], weight[n_pos:n]
    above, below = sum_of(pos_weight), sum_of(neg_weight)
    across = min(logs.center, 0.0) * above + max(logs.center, 0.0) * below
    jacobian = (sum_of(pos, pos_weight) - sum_of(neg, neg_weight) - across) / (above + below)
    some = Logs(pos, pos_weight, neg, neg_weight, logs.low, logs.high, logs.neg_high, jacobian, logs.sigma, logs.center)
    centered = Centered(some, c.log_reference, c.offset, c.smallest, c.largest, c.heavy, c.reference)
    terms, counted = _sample_terms(column.terms, stride, censored_work.sample)
    values = LogStatistics(above + below, column.values.sd)
    return CensoredColumn(centered, column.sign, terms, above + below + counted, values, 0.0, True)


@kernel
def _copy_every(x: FloatArray, stride: int, out: FloatArray) -> int:
    """Copy every `stride`-th number of `x` to `out`; return the number of copies."""
    n = i = 0
    while i < x.size:  # a range with a step may raise
        out[n] = x[i]
        n, i = n + 1, i + stride
    return n


@kernel
def _sample_terms(terms: Terms, stride: int, out: TermWork) -> tuple[Terms, float]:
    """Write the terms of a sample to `out`; return them as `Terms`, and the total weight of their cells."""
    pos, neg, part = terms.points.pos, terms.points.neg, 1.0
    if terms.n_pos + terms.n_neg + terms.n_intervals <= _FEW_TERMS:
        stride, part = 1, 1.0 / stride
    n_pos, n_neg, n = (
        _ceil_div(terms.n_pos, stride),
        _ceil_div(terms.n_neg, stride),
        _ceil_div(terms.n_intervals, stride),
    )
    n_points = n_pos + n_neg + 2 * n
    front, back, border = n_pos, n_points - n_neg, pos.size + neg.size - terms.n_neg
    _copy_every(pos[: terms.n_pos], stride, out.logs)
    _copy_every(neg[neg.size - terms.n_neg :], stride, out.logs[back:])
    for given, copy in ((terms.side, out.side), (terms.weight, out.weight)):
        _copy_every(given[: terms.n_pos], stride, copy)
        _copy_every(given[border : border + terms.n_neg], stride, copy[back:])
    counted = 0.0
    for count in (out.weight[:n_pos], out.weight[back:n_points]):
        for k in range(count.size):
            count[k] *= part
        counted += sum_of(count)
    for k in range(n):
        out.intervals[CELLS, k] = part * terms.intervals[CELLS, k * stride]
        counted += out.intervals[CELLS, k]
        for row in range(LOW, HIGH + 1):
            at = int(terms.intervals[row, k * stride])
            if at < pos.size:
                out.logs[front], out.intervals[row, k] = pos[at], front
                front += 1
            else:
                back -= 1
                out.logs[back], out.intervals[row, k] = neg[at - pos.size], back
    p = terms.points
    above, below = out.logs[:front], out.logs[front:n_points]
    points = Logs(above, above, below, below, p.low, p.high, p.neg_high, 0.0, p.sigma, p.center)
    return Terms(points, out.side, out.weight, n_pos, n_neg, out.intervals, n, -1), counted


@kernel
def _ceil_div(n: int, stride: int) -> int:
    """Return n/stride rounded up."""
    return (n + stride - 1) // stride
