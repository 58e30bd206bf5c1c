"""A column with censored cells, prepared for its likelihood: logs of the values, and a term for each distinct interval.

A cell is a number x and the other end e of its interval: NaN if the cell is the value x, -inf if it is only known to be
below x, inf if it is above x, and a number if it is between x and e. Equal intervals become one term with a count.

Everything is standardised by the mean and the standard deviation of transformed values (`CensoredColumn.centered`):
the observed values or, if fewer than two of them are distinct, the ends of the intervals.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import kernel
from powerkern._typing import FloatArray
from powerkern.kernels.censored.scratch import COUNT, HIGH, KIND, LOW, CensoredWork
from powerkern.kernels.likelihood.logs import (
    Prepared,
    Scan,
    centered_log,
    joined,
    offset_log,
    refusal,
    scan,
    sign_of,
)
from powerkern.kernels.likelihood.score import Logs
from powerkern.kernels.likelihood.scratch import Work
from powerkern.kernels.likelihood.two_pass import Centered, centered_column
from powerkern.kernels.moments import sum_of
from powerkern.kernels.status_codes import EMPTY, FEW_OBSERVED, OK
from powerkern.kernels.transforms.family import domain_lower_bound, log_offset

#: Kinds of terms: the cells are below or above the end, between the ends, or equal to the end.
BELOW, ABOVE, BETWEEN, EXACTLY = -1.0, 1.0, 0.0, 2.0
#: A new interval is compared with this many terms: a column with more limits mostly has one for each cell. Not
#: critical: it changes results by rounding only.
_SEARCHED = 8
#: Up to this many terms all enter a sample, with counts divided by `stride`; of more terms, every `stride`-th does.
_FEW_TERMS = 64


class Counts(NamedTuple):
    """Numbers, or total weights, of the cells of each kind."""

    observed: float
    below: float
    above: float
    between: float


class CensoredColumn(NamedTuple):
    """A column with censored cells, prepared for its likelihood.

    `sign` is 1, -1, or 0 if there are values or limits of both signs; with -1 all fields describe the magnitudes.
    `total` is the weight of all cells, and `values` the weight of the cells whose likelihood is a density. `lead` is
    the mean log of the centered values minus the mean log of the observed values, in the units of the logs.
    `are_standard`: the observed values give the mean and the standard deviation (`lead` is then 0).
    """

    centered: Centered
    sign: float
    points: Logs
    terms: FloatArray
    n_terms: int
    total: float
    values: float
    lead: float
    are_standard: bool


class _Split(NamedTuple):
    """Result of `split_cells`: numbers of values, terms and ends, and scans of the values and of the ends."""

    n: int
    n_terms: int
    n_points: int
    found: Scan
    ends: Scan
    counts: Counts


@kernel
def split_cells(
    x: FloatArray, other: FloatArray, weight: FloatArray, family: int, work: Work, own: CensoredWork
) -> _Split:
    """Separate observed from censored cells: copy the values to `work`, and count the distinct intervals in `own`.

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
    own : CensoredWork
        Receives the terms, one for each distinct interval, and the ends, to which the terms refer by position.
    """
    lowest = domain_lower_bound(family)
    n = n_terms = n_points = 0
    below = above = between = 0.0
    for i in range(x.size):
        w = weight[i] if weight.size > 0 else 1.0
        if not (x[i] == x[i] and w > 0.0):
            continue
        e = other[i]
        if e != e or e == x[i]:
            work.packed[n] = x[i]
            work.weight[n] = w
            n += 1
            continue
        low, high = min(x[i], e), max(x[i], e)
        if low <= lowest < high:
            low = -math.inf  # no value is lower, so only the upper end counts
        kind = BELOW if low == -math.inf else ABOVE if high == math.inf else BETWEEN
        below += w if kind == BELOW else 0.0
        above += w if kind == ABOVE else 0.0
        between += w if kind == BETWEEN else 0.0
        k = _position_of_equal(kind, low, high, n_terms, own)
        if k < n_terms:
            own.terms[COUNT, k] += w
            continue
        own.terms[KIND, k], own.terms[COUNT, k] = kind, w
        own.terms[LOW, k] = own.terms[HIGH, k] = n_points
        own.ends[n_points] = high if kind == BELOW else low
        n_points += 1
        if kind == BETWEEN:
            own.terms[HIGH, k] = n_points
            own.ends[n_points] = high
            n_points += 1
        n_terms += 1
    found = scan(work.packed[:n], work.weight[:n])
    ends = scan(own.ends[:n_points], None)
    return _Split(n, n_terms, n_points, found, ends, Counts(found.weight, below, above, between))


@kernel
def _position_of_equal(kind: float, low: float, high: float, n_terms: int, own: CensoredWork) -> int:
    """Return the position of the interval among the first few terms, or `n_terms` if it is new."""
    for k in range(min(n_terms, _SEARCHED)):
        if own.terms[KIND, k] == kind:
            from_low = kind == BELOW or own.ends[int(own.terms[LOW, k])] == low
            to_high = kind == ABOVE or own.ends[int(own.terms[HIGH, k])] == high
            if from_low and to_high:
                return k
    return n_terms


@kernel
def status_of(split: _Split, family: int, own: CensoredWork) -> int:
    """Return the status that says why a column cannot be fitted, or OK.

    Lambda can be fitted to two distinct values, or to three distinct points among the values and the ends of
    intervals.
    """
    if split.found.n + split.n_terms == 0.0:
        return EMPTY
    union = joined(split.found, split.ends)
    refused = refusal(union, family)
    if refused < 0:
        return refused
    if split.found.low < split.found.high:
        return OK
    for k in range(split.n_points):
        if union.low < own.ends[k] < union.high:
            return OK
    inside = union.low < split.found.low < union.high
    return OK if inside and split.found.n > 0.0 else FEW_OBSERVED


@kernel
def prepare_column(split: _Split, is_weighted: bool, family: int, work: Work, own: CensoredWork) -> CensoredColumn:
    """Prepare a column for its likelihood: take the logs of its values and of the ends of its intervals.

    Parameters
    ----------
    split : _Split
        The cells.
    is_weighted : bool
        Whether cells have weights.
    family : int
        BOX_COX or YEO_JOHNSON.
    work : Work
        Has the values; receives their logs.
    own : CensoredWork
        Has the ends; receives their logs.
    """
    union, offset = joined(split.found, split.ends), log_offset(family)
    sign, n, n_terms, n_points = sign_of(union), split.n, split.n_terms, split.n_points
    are_standard = split.found.low < split.found.high
    if not are_standard:
        if split.found.n > 0.0:  # all values are equal: their density is a term
            own.terms[KIND, n_terms], own.terms[COUNT, n_terms] = EXACTLY, split.found.weight
            own.terms[LOW, n_terms] = own.terms[HIGH, n_terms] = n_points
            own.ends[n_points] = split.found.low
            n_terms, n_points = n_terms + 1, n_points + 1
        n = n_terms
        for k in range(n_terms):  # there is room: each term stands for at least one cell
            work.packed[k], work.weight[k] = own.ends[int(own.terms[HIGH, k])], 1.0
        is_weighted = False
    x = work.packed[:n]
    weight = work.weight[:n] if is_weighted else work.weight[:0]
    around = centered_column(Prepared(x, weight, union, offset, sign, OK), work)
    points = _logs_of_points(n_points, n_terms, around, sign, own)
    logs = _with_bounds_of(points, around.logs)
    centered = Centered(
        logs, around.log_reference, offset, around.smallest, around.largest, around.heavy, around.reference
    )
    counts, lead = split.counts, 0.0
    if not are_standard and counts.observed > 0.0:
        lead = logs.jacobian - _signed_log(int(own.terms[LOW, n_terms - 1]), points, logs.center)
    total = counts.observed + counts.below + counts.above + counts.between
    return CensoredColumn(centered, sign, points, own.terms, n_terms, total, counts.observed, lead, are_standard)


@kernel
def _logs_of_points(n_points: int, n_terms: int, around: Centered, sign: float, own: CensoredWork) -> Logs:
    """Write the logs of all ends, non-negative ends first, relative to the column's reference and in its unit.

    The terms then refer to the logs by position. A negative column is transformed by its magnitudes, so its terms are
    mirrored.

    Parameters
    ----------
    n_points : int
        The number of ends.
    n_terms : int
        The number of terms.
    around : Centered
        The centered values.
    sign : float
        1, -1, or 0 for both signs.
    own : CensoredWork
        Has terms and ends; receives the logs.
    """
    logs, offset = around.logs, around.offset
    unit, front, back = 1.0 / logs.sigma, 0, n_points - 1
    reference = _references(around, sign)
    low = high = neg_high = 0.0
    for k in range(n_points):
        end = own.ends[k]
        if sign != 0.0 or end >= 0.0:
            own.logs[front] = unit * centered_log(abs(end), offset, reference[0], reference[1])
            low, high = min(low, own.logs[front]), max(high, own.logs[front])
            own.ends[k] = front
            front += 1
        else:
            own.logs[back] = unit * centered_log(-end, offset, reference[2], reference[3])
            neg_high = max(neg_high, own.logs[back])
            own.ends[k] = back
            back -= 1
    for k in range(n_terms):
        first, last = own.ends[int(own.terms[LOW, k])], own.ends[int(own.terms[HIGH, k])]
        if sign < 0.0:
            first, last = last, first
            if own.terms[KIND, k] != EXACTLY:
                own.terms[KIND, k] = -own.terms[KIND, k]
        own.terms[LOW, k], own.terms[HIGH, k] = first, last
    pos, neg = own.logs[:front], own.logs[front:n_points]
    return Logs(pos, pos, neg, neg, low, high, neg_high, 0.0, logs.sigma, logs.center)


@kernel
def _references(around: Centered, sign: float) -> tuple[float, float, float, float]:
    """Return the reference and its log, for the branch of non-negative values and for the other branch."""
    above, log_above, below, log_below = around.reference, around.log_reference, 0.0, 0.0
    if sign == 0.0:
        above, below = max(around.reference, 0.0), max(-around.reference, 0.0)
        log_above, log_below = offset_log(around.offset, above), offset_log(around.offset, below)
    return above, log_above, below, log_below


@kernel
def _with_bounds_of(points: Logs, logs: Logs) -> Logs:
    """Return `logs` with bounds widened to include `points`."""
    return Logs(
        logs.pos,
        logs.pos_weight,
        logs.neg,
        logs.neg_weight,
        min(logs.low, points.low),
        max(logs.high, points.high),
        max(logs.neg_high, points.neg_high),
        logs.jacobian,
        logs.sigma,
        logs.center,
    )


@kernel
def _signed_log(k: int, points: Logs, center: float) -> float:
    """Return the signed log of point k minus `center`; ``Logs.jacobian`` is the mean of this over the values."""
    n_pos = points.pos.size
    if k < n_pos:
        return float(points.pos[k] + max(center, 0.0) - center)
    return float(-(points.neg[k - n_pos] + max(-center, 0.0)) - center)


# --- a sample -------------------------------------------------------------------------------------------


@kernel
def sample_column(column: CensoredColumn, stride: int, own: CensoredWork) -> CensoredColumn:
    """Return a sample of the column, to find a start for the search: every `stride`-th value and term.

    If there are few terms, all of them enter the sample, with smaller counts.

    Parameters
    ----------
    column : CensoredColumn
        The column.
    stride : int
        The step from one sampled value to the next.
    own : CensoredWork
        Receives the sample.
    """
    logs = column.centered.logs
    n_pos = _every(logs.pos, logs.pos_weight, stride, 0, own)
    n = _every(logs.neg, logs.neg_weight, stride, n_pos, own)
    d, weight = own.sample_logs[0], own.sample_logs[1]
    pos, neg, pos_weight, neg_weight = d[:n_pos], d[n_pos:n], weight[:n_pos], weight[n_pos:n]
    above, below = sum_of(pos_weight), sum_of(neg_weight)
    across = min(logs.center, 0.0) * above + max(logs.center, 0.0) * below
    jacobian = (sum_of(pos, pos_weight) - sum_of(neg, neg_weight) - across) / (above + below)
    some = Logs(pos, pos_weight, neg, neg_weight, logs.low, logs.high, logs.neg_high, jacobian, logs.sigma, logs.center)
    chosen, n_terms, counted = _sample_terms(column, stride, own)
    total, c = above + below + counted, column.centered
    centered = Centered(some, c.log_reference, c.offset, c.smallest, c.largest, c.heavy, c.reference)
    return CensoredColumn(centered, column.sign, chosen, own.sample_terms, n_terms, total, above + below, 0.0, True)


@kernel
def _every(d: FloatArray, weight: FloatArray, stride: int, n: int, own: CensoredWork) -> int:
    """Append every `stride`-th log and its weight to a sample of size `n`; return the new size."""
    i = 0
    while i < d.size:  # a range with a step may raise
        own.sample_logs[0, n], own.sample_logs[1, n] = d[i], weight[i]
        n, i = n + 1, i + stride
    return n


@kernel
def _sample_terms(column: CensoredColumn, stride: int, own: CensoredWork) -> tuple[Logs, int, float]:
    """Write the terms of a sample; return the logs of their ends, the number of terms, and their total count."""
    terms, points, sample = column.terms, column.points, own.sample_terms
    n_pos, part = points.pos.size, 1.0
    if column.n_terms <= _FEW_TERMS:
        stride, part = 1, 1.0 / stride
    n_terms = front = 0
    back = own.sample_points.size
    counted, k = 0.0, 0
    while k < column.n_terms:
        sample[KIND, n_terms], sample[COUNT, n_terms] = terms[KIND, k], part * terms[COUNT, k]
        counted += part * terms[COUNT, k]
        for end in range(LOW, HIGH + 1):
            if end == HIGH and terms[KIND, k] != BETWEEN:
                sample[HIGH, n_terms] = sample[LOW, n_terms]
                continue
            at = int(terms[end, k])
            if at < n_pos:
                own.sample_points[front] = points.pos[at]
                sample[end, n_terms] = front
                front += 1
            else:
                back -= 1
                own.sample_points[back] = points.neg[at - n_pos]
                sample[end, n_terms] = back
        n_terms, k = n_terms + 1, k + stride
    size = own.sample_points.size
    for k in range(n_terms):  # turn positions in the array into positions among the points
        for end in range(LOW, HIGH + 1):
            if sample[end, k] >= back:
                sample[end, k] -= back - front
    pos, neg = own.sample_points[:front], own.sample_points[back:size]
    chosen = Logs(pos, pos, neg, neg, points.low, points.high, points.neg_high, 0.0, points.sigma, points.center)
    return chosen, n_terms, counted
