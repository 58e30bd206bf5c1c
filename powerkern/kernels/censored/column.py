"""A column with censored cells, prepared for its likelihood: logs of the values, and a term for each distinct interval.

A cell is a number x and the other end e of its interval: NaN if the cell is the value x, -inf if it is only known to be
below x, inf if it is above x, and a number if it is between x and e. Equal intervals become one term with a count.

Everything is standardised by the mean and the standard deviation of transformed values (`CensoredColumn.centered`):
the observed values or, if fewer than two of them are distinct, the ends of the intervals.
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
from powerkern.kernels.likelihood.score import Logs, WeighedLogs
from powerkern.kernels.likelihood.scratch import Work
from powerkern.kernels.likelihood.two_pass import MOST_TYPICAL, Centered, centered_column, subsample_median
from powerkern.kernels.moments import sum_of
from powerkern.kernels.status_codes import EMPTY, FEW_OBSERVED, OK
from powerkern.kernels.transforms.family import domain_lower_bound, log_offset

#: Sides of a limit on which its cells lie.
BELOW, ABOVE, EQUAL = 1.0, -1.0, 0.0
#: A new interval is compared with the others while there are at most this many: a column with more limits mostly has
#: one for each cell. Not critical: it changes results by rounding only.
_SEARCHED = 8
#: Up to this many terms all enter a sample, with counts divided by `stride`; of more terms, every `stride`-th does.
_FEW_TERMS = 64


class Counts(NamedTuple):
    """Numbers, or total weights, of the cells of each kind."""

    observed: float
    below: float
    above: float
    between: float


class Terms(NamedTuple):
    """The distinct intervals of a column, whose ends are given by logs, `points`.

    Cells below or above a limit: the first `n_pos` of ``points.pos`` and the last `n_neg` of ``points.neg`` are their
    limits, `side` and `weight` have an entry for each point. Cells between two ends: the first `n_intervals` columns of
    `intervals` hold counts and the positions of the ends among the points, which are ``points.pos``, then
    ``points.neg``. `value_index`: the position of the value if all values are equal (without a weight), else -1.
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

    `sign` is 1, -1, or 0 if there are values or limits of both signs; with -1 all fields describe the magnitudes.
    `total` is the weight of all cells. `values` has the weight of the cells whose likelihood is a density, and the
    standard deviation of their logs if their moments may come from raw sums. `mean_log_shift` is the mean log of the centered
    values minus the mean log of the observed values, in the units of the logs. `are_standard`: the observed values give
    the mean and the standard deviation (`mean_log_shift` is then 0).
    """

    centered: Centered
    sign: float
    terms: Terms
    total: float
    values: WeighedLogs
    mean_log_shift: float
    are_standard: bool


class Split(NamedTuple):
    """Result of `split_cells`: numbers of limits and intervals, and scans of the values and of all ends."""

    n: int
    n_limits: int
    n_intervals: int
    values: ValueSummary
    ends: ValueSummary
    counts: Counts


# --- values and intervals -------------------------------------------------------------------------------


@kernel
def split_cells(
    x: FloatArray, other: FloatArray, weight: FloatArray, family: int, work: Work, censoring: CensoredWork
) -> Split:
    """Separate observed from censored cells: copy the values to `work`, and count the distinct intervals in `censoring`.

    Parameters
    ----------
    x : (n,)
        The values, or one end of the interval of each cell; NaN missing.
    other : (n,)
        The other end, NaN for values.
    weight : (n,)
        Weights of the cells; empty: all one.
    family : int
        BOX_COX or YEO_JOHNSON.
    work : Work
        Receives the values and their weights.
    censoring : CensoredWork
        Receives the distinct limits in ``censoring.cells``, and the distinct intervals in ``censoring.terms.intervals``.
    """
    if weight.size > 0:
        n, n_censored = _separate(x, other, weight, work, censoring)
        values = summarize_values(work.packed[:n], work.weight[:n])
    else:
        n, n_censored = _separate(x, other, None, work, censoring)
        values = summarize_values(work.packed[:n], None)
    n_limits, n_intervals = _merge_equal(n_censored, weight.size > 0, domain_lower_bound(family), censoring)
    below = above = 0.0
    for k in range(n_limits):
        below += censoring.cells[COUNT, k] if censoring.cells[SIDE, k] == BELOW else 0.0
        above += censoring.cells[COUNT, k] if censoring.cells[SIDE, k] == ABOVE else 0.0
    intervals = censoring.terms.intervals
    ends = summarize_values(censoring.cells[LIMIT, :n_limits], None)
    for row in range(LOW, HIGH + 1):
        ends = merge_summaries(ends, summarize_values(intervals[row, :n_intervals], None))
    counts = Counts(values.weight, below, above, sum_of(intervals[CELLS, :n_intervals]))
    return Split(n, n_limits, n_intervals, values, ends, counts)


@kernel
def _separate(
    x: FloatArray, other: FloatArray, weight: FloatArray | None, work: Work, censoring: CensoredWork
) -> tuple[int, int]:
    """Copy values and their weights to `work`, censored cells to ``censoring.cells``; return the numbers of both.

    Every cell is written to both places, and overwritten by the next cell in the place where it does not belong. This
    needs no branch, which the CPU would mispredict.
    """
    end, end_other, end_weight = censoring.cells[END], censoring.cells[OTHER], censoring.cells[WEIGHT]
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
def _merge_equal(n_censored: int, is_weighted: bool, lowest: float, censoring: CensoredWork) -> tuple[int, int]:
    """Replace the censored cells by distinct limits and, separately, distinct intervals; return the number of each.

    Parameters
    ----------
    n_censored : int
        The number of censored cells.
    is_weighted : bool
        Whether the cells have weights.
    lowest : float
        Lower bound of the domain: an interval that begins there or lower has its upper end only.
    censoring : CensoredWork
        Has the cells; receives limits and intervals.
    """
    limit, side, count = censoring.cells[LIMIT], censoring.cells[SIDE], censoring.cells[COUNT]
    intervals = censoring.terms.intervals
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
    """Return whether all numbers, one at least, are equal."""
    summary = summarize_values(x, None)
    return summary.low == summary.high


@kernel
def _position_of_pair(a: float, b: float, first: FloatArray, second: FloatArray, n: int) -> int:
    """Return the position of a pair of numbers among the first `n`; `n` if it is new, or n too large to search."""
    if n <= _SEARCHED:
        for k in range(n):
            if first[k] == a and second[k] == b:
                return k
    return n


@kernel
def status_of(split: Split, family: int, censoring: CensoredWork) -> int:
    """Return the status that says why a column cannot be fitted, or OK.

    Lambda can be fitted to two distinct values, or to three distinct points among the values and the ends of
    intervals.
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
        if union.low < censoring.cells[LIMIT, k] < union.high:
            return OK
    for k in range(split.n_intervals):
        for end in (LOW, HIGH):
            if union.low < censoring.terms.intervals[end, k] < union.high:
                return OK
    inside = union.low < split.values.low < union.high
    return OK if inside and split.values.n > 0.0 else FEW_OBSERVED


# --- logs -----------------------------------------------------------------------------------------------


@kernel
def prepare_column(split: Split, is_weighted: bool, family: int, work: Work, censoring: CensoredWork) -> CensoredColumn:
    """Prepare a column for its likelihood: take the logs of its values and of the ends of its intervals.

    Parameters
    ----------
    split : Split
        The cells.
    is_weighted : bool
        Whether cells have weights.
    family : int
        BOX_COX or YEO_JOHNSON.
    work : Work
        Has the values; receives their logs.
    censoring : CensoredWork
        Has the limits and the intervals; receives the logs of their ends.
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
            censoring.cells[LIMIT, n_limits], censoring.cells[SIDE, n_limits] = split.values.low, EQUAL
            censoring.cells[COUNT, n_limits] = 0.0
            n_limits += 1
        n = _copy_ends(n_limits, split.n_intervals, work.packed, censoring)
        column = PreparedColumn(work.packed[:n], work.weight[:0], union, column.offset, column.sign, OK)
    centered, sd = _plain_logs(column, split.values, work)
    is_plain = are_standard and sd >= ONE_PASS_SPREAD
    if not is_plain:
        centered, sd = centered_column(column, work), 0.0
    terms = write_term_logs(n_limits, split.n_intervals, centered, column.sign, is_plain, censoring)
    logs = _with_bounds_of(union, centered, column.sign)
    centered = Centered(
        logs, centered.log_reference, centered.offset, centered.smallest, centered.largest, centered.heavy,
        centered.reference,
    )  # fmt: skip
    counts, mean_log_shift = split.counts, 0.0
    if terms.value_index >= 0:
        mean_log_shift = logs.jacobian - _signed_log(terms.value_index, terms.points, logs.center)
    total = counts.observed + counts.below + counts.above + counts.between
    values = WeighedLogs(counts.observed, sd)
    return CensoredColumn(centered, column.sign, terms, total, values, mean_log_shift, are_standard)


@kernel
def _copy_ends(n_limits: int, n_intervals: int, out: FloatArray, censoring: CensoredWork) -> int:
    """Write limits and the upper ends of intervals to `out`; return their number."""
    for k in range(n_limits):
        out[k] = censoring.cells[LIMIT, k]
    for k in range(n_intervals):
        out[n_limits + k] = censoring.terms.intervals[HIGH, k]
    return n_limits + n_intervals


@kernel
def _plain_logs(column: PreparedColumn, values: ValueSummary, work: Work) -> tuple[Centered, float]:
    """Take the logs of all values as `kernels.likelihood.one_pass` does; return their standard deviation as well.

    They have an absolute error of a few roundings. The deviation is 0 if that is too much, or if a few values carry
    nearly all of the weight.

    Parameters
    ----------
    column : Prepared
        The column.
    values : Scan
        Scan of its values.
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
    """Write logs of both sides; return the weighted mean of the signed logs, and their standard deviation.

    Parameters
    ----------
    magnitudes : Sides
        Magnitudes and weights by sign.
    both_signs : bool
        Whether the deviation is about 0.
    offset : float
        0 (Box-Cox) or 1 (Yeo-Johnson), added to magnitudes.
    per_ref : float
        One over the reference plus `offset`.
    pos, neg : (k,)
        Receive the logs.
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
    """Write logs of magnitudes; return the sums of the weights, of the weighted logs, and of their squares."""
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
    n_limits: int, n_intervals: int, centered: Centered, sign: float, is_plain: bool, censoring: CensoredWork
) -> Terms:
    """Write the logs of all ends, non-negative ends first, relative to the column's reference and in its unit.

    Intervals then refer to the logs by position. A negative column is transformed by its magnitudes, so its terms are
    mirrored.

    Parameters
    ----------
    n_limits, n_intervals : int
        The numbers of limits and of intervals.
    centered : Centered
        The centered values.
    sign : float
        1, -1, or 0 for both signs.
    is_plain : bool
        Whether logs are taken as in `_plain_logs`.
    censoring : CensoredWork
        Has limits and intervals; receives the logs.
    """
    out, n_points = censoring.terms, n_limits + 2 * n_intervals
    front, back, value_index = 0, n_points, -1
    mirror = -1.0 if sign < 0.0 else 1.0
    for k in range(n_limits):
        end, at = censoring.cells[LIMIT, k], front
        if sign != 0.0 or end >= 0.0:
            front += 1
        else:
            back -= 1
            at = back
        out.logs[at], out.side[at] = abs(end), mirror * censoring.cells[SIDE, k]
        out.weight[at] = censoring.cells[COUNT, k]
        value_index = at if censoring.cells[SIDE, k] == EQUAL else value_index
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
        Added to magnitudes: 0 (Box-Cox) or 1 (Yeo-Johnson).
    reference : (float, float)
        The reference, and the log of offset + reference.
    unit : float
        Factor of the logs; not used if `is_plain`.
    is_plain : bool
        Whether to take logs of ratios as `_plain_logs` does, which lose digits of magnitudes close to the reference.
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
    """Return the reference and its log, for the branch of non-negative values and for the other branch."""
    if sign != 0.0:
        return (centered.reference, centered.log_reference), (0.0, 0.0)
    above, below = max(centered.reference, 0.0), max(-centered.reference, 0.0)
    return (above, offset_log(centered.offset, above)), (below, offset_log(centered.offset, below))


@kernel
def _with_bounds_of(union: ValueSummary, centered: Centered, sign: float) -> Logs:
    """Return the logs of the values with bounds widened to include the ends of intervals."""
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
    """Return the signed log of point k minus `center`; ``Logs.jacobian`` is the mean of this over the values."""
    n_pos = points.pos.size
    if k < n_pos:
        return float(points.pos[k] + max(center, 0.0) - center)
    return float(-(points.neg[k - n_pos] + max(-center, 0.0)) - center)


# --- a sample -------------------------------------------------------------------------------------------


@kernel
def sample_column(column: CensoredColumn, stride: int, censoring: CensoredWork) -> CensoredColumn:
    """Return a sample of the column, to find a start for the search: every `stride`-th value and term.

    If there are few terms, all of them enter the sample, with smaller counts.

    Parameters
    ----------
    column : CensoredColumn
        The column.
    stride : int
        The step from one sampled value to the next.
    censoring : CensoredWork
        Receives the sample.
    """
    logs, c = column.centered.logs, column.centered
    d, weight = censoring.sample_logs[0], censoring.sample_logs[1]
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
    terms, counted = _sample_terms(column.terms, stride, censoring.sample)
    values = WeighedLogs(above + below, column.values.sd)
    return CensoredColumn(centered, column.sign, terms, above + below + counted, values, 0.0, True)


@kernel
def _copy_every(x: FloatArray, stride: int, out: FloatArray) -> int:
    """Copy every `stride`-th number; return how many there are."""
    n = i = 0
    while i < x.size:  # a range with a step may raise
        out[n] = x[i]
        n, i = n + 1, i + stride
    return n


@kernel
def _sample_terms(terms: Terms, stride: int, out: TermWork) -> tuple[Terms, float]:
    """Write the terms of a sample, in the order of `Terms`; return them and their total count."""
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
    """Return the number of every `stride`-th of n things."""
    return (n + stride - 1) // stride
