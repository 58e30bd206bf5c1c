"""Prepare a column for its likelihood: summarise it, drop missing values, split it by sign, compute centered logs.

Centered logs are d = ln((offset + x)/(offset + ref)), with a magnitude x, a reference ref near the data and an offset
of 0 (Box-Cox) or 1 (Yeo-Johnson). They are computed without cancellation. A value is called present if it is not NaN
and its weight is not 0, and absent otherwise.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from powerkern._jit import (
    LANES,
    allocated,
    bits_of,
    float_of,
    in_all_lanes,
    inlined,
    kernel,
    load,
    release,
    select,
    store,
)
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.log import log, log1p
from powerkern.kernels.likelihood.score import Logs
from powerkern.kernels.likelihood.scratch import Work
from powerkern.kernels.moments import sum_of, weight_at
from powerkern.kernels.results import BAD_INFINITE, BAD_NOT_POSITIVE
from powerkern.kernels.status_codes import CONSTANT, EMPTY, OK
from powerkern.kernels.transforms.family import domain_lower_bound, log_offset


class ValueSummary(NamedTuple):
    """Summary of the values of a column that are present, that is, neither NaN nor of weight 0."""

    #: number of values
    n: float
    #: smallest and largest value; inf and -inf if there are none
    low: float
    high: float
    #: sums of the weights and of their squares
    weight: float
    squares: float


class Magnitudes(NamedTuple):
    """Magnitudes of a column's non-negative values and of its negative values, with the weights of both groups."""

    pos: FloatArray
    neg: FloatArray
    pos_weight: FloatArray
    neg_weight: FloatArray


class Bounds(NamedTuple):
    """Bounds of a column's centered logs: `low` and `high` for non-negative values, `neg_high` for negative values."""

    low: float
    high: float
    neg_high: float


NOTHING = ValueSummary(0.0, math.inf, -math.inf, 0.0, 0.0)


@kernel
def summarize_values(x: FloatArray, weight: FloatArray | None) -> ValueSummary:
    """Summarise the present values of a column, eight at a time; a `weight` of None stands for weights of one."""
    summary, ends = NOTHING, allocated((5, LANES))
    n = total = squares = in_all_lanes(0.0)
    low, high = in_all_lanes(math.inf), in_all_lanes(-math.inf)
    border = x.size - x.size % LANES
    for i in range(0, border, LANES):
        v = load(x, (i,))
        present = v == v
        if weight is not None:
            w = load(weight, (i,))
            present = present & (w > 0.0)
            w, v = select(present, w, 0.0), select(present, v, math.nan)
            total, squares = total + w, squares + w * w
        n = n + select(present, 1.0, 0.0)
        low, high = select(v < low, v, low), select(v > high, v, high)
    store(ends, (0, 0), n)
    store(ends, (1, 0), low)
    store(ends, (2, 0), high)
    store(ends, (3, 0), total)
    store(ends, (4, 0), squares)
    for k in range(LANES):
        summary = merge_summaries(summary, ValueSummary(ends[0, k], ends[1, k], ends[2, k], ends[3, k], ends[4, k]))
    release(ends)
    for i in range(border, x.size):
        w = weight_at(weight, i)
        if x[i] == x[i] and w > 0.0:
            summary = merge_summaries(summary, ValueSummary(1.0, x[i], x[i], w, w * w))
    if weight is None:
        return ValueSummary(
            summary.n, summary.low + 0.0, summary.high + 0.0, summary.n, summary.n
        )  # adding 0 turns -0 into 0
    return ValueSummary(summary.n, summary.low + 0.0, summary.high + 0.0, summary.weight, summary.squares)


@kernel
def merge_summaries(a: ValueSummary, b: ValueSummary) -> ValueSummary:
    """Return the summary of a column, given the summaries of two parts of it."""
    return ValueSummary(a.n + b.n, min(a.low, b.low), max(a.high, b.high), a.weight + b.weight, a.squares + b.squares)


@kernel
def drop_missing(x: FloatArray, weight: FloatArray | None, out: FloatArray, weight_out: FloatArray) -> int:
    """Copy the values that are present, and their weights, to the front of the outputs; return their number.

    To avoid mispredicted branches, every value is written, and a missing value is then overwritten by the next value.

    Parameters
    ----------
    x : (n,)
        The values; NaN if missing.
    weight : (n,)
        Weights of the values; empty or None if all are one.
    out : (n,)
        Receives the values that are present.
    weight_out : (n,)
        Receives the weights of these values.
    """
    n = np.uint64(0)
    for i in range(x.size):
        present = x[i] == x[i]
        out[n] = x[i]
        if weight is not None:
            weight_out[n] = weight[i]
            present = present & (weight[i] > 0.0)
        n += np.uint64(present)
    return int(n)


@kernel
def split_signs(x: FloatArray, values: FloatArray, out: FloatArray) -> int:
    """Write the magnitudes of `values` to `out`: from the front for x >= 0, from the back for x < 0.

    Parameters
    ----------
    x : (n,)
        The values whose signs determine the order.
    values : (n,)
        The numbers to write: `x` itself, or its weights.
    out : (n,)
        Receives the magnitudes; those written from the back are in reverse order.

    Returns
    -------
    int
        The number of values with x >= 0.
    """
    front = np.uint64(0)
    back = np.uint64(x.size - 1)
    for i in range(x.size):
        # to avoid mispredicted branches, write to both ends and advance one of them
        magnitude = abs(values[i])
        out[front] = magnitude
        out[back] = magnitude
        front += np.uint64(x[i] >= 0.0)
        back -= np.uint64(x[i] < 0.0)
    return int(front)


@kernel
def offset_log(offset: float, x: float) -> float:
    """Return ln(offset + x), where the offset is 0 or 1."""
    return log1p(x) if offset == 1.0 else log(x)


@inlined
def centered_log(x: float, offset: float, reference: float, log_reference: float) -> float:
    """Return ln((offset + x)/(offset + reference)) without cancellation.

    If the ratio is near 1, the difference x - reference is exact.

    Parameters
    ----------
    x : float
        The magnitude.
    offset : float
        0 (Box-Cox) or 1 (Yeo-Johnson), added to magnitudes.
    reference : float
        The magnitude of the reference.
    log_reference : float
        ln(offset + reference).
    """
    ratio = (x - reference) / (offset + reference)
    near = abs(ratio) <= 0.5
    far_log = (log1p(x) if offset == 1.0 else log(x)) - log_reference
    return log1p(ratio if near else 0.0) if near else far_log


@kernel
def _logs_of_side(x: FloatArray, offset: float, reference: float, d: FloatArray) -> tuple[float, float]:
    """Write centered logs of the magnitudes `x` to `d`; return the smallest and largest log, or 0, 0 if x is empty."""
    log_reference = offset_log(offset, reference)
    for i in range(x.size):
        d[i] = centered_log(x[i], offset, reference, log_reference)
    if x.size == 0:
        return 0.0, 0.0
    summary = summarize_values(x, None)
    return (
        centered_log(summary.low, offset, reference, log_reference),
        centered_log(summary.high, offset, reference, log_reference),
    )


@kernel
def power_of_two_above(x: float) -> float:
    """Return the smallest power of two that exceeds x, for 0 <= x < 2**1000; 2**-1021 for subnormal x."""
    return max(float_of((bits_of(x) >> 52) + 1 << 52), 2.0**-1021)


@kernel
def centered_logs(magnitudes: Magnitudes, offset: float, reference: float, d: FloatArray) -> Bounds:
    """Write the centered logs of non-negative values, then those of negative values; return the bounds of each.

    Parameters
    ----------
    magnitudes : Magnitudes
        Magnitudes and weights of the non-negative and of the negative values.
    offset : float
        0 (Box-Cox) or 1 (Yeo-Johnson), added to magnitudes.
    reference : float
        The reference. Its log is subtracted only from the logs of values with the same sign as the reference.
    d : (n,)
        Receives the logs.
    """
    border, n = magnitudes.pos.size, magnitudes.pos.size + magnitudes.neg.size
    low, high = _logs_of_side(magnitudes.pos, offset, max(reference, 0.0), d[:border])
    return Bounds(low, high, _logs_of_side(magnitudes.neg, offset, max(-reference, 0.0), d[border:n])[1])


@kernel
def choose_log_unit(bounds: Bounds) -> float:
    """Return the unit of logs with these bounds: a power of two that makes them of order one."""
    return power_of_two_above(max(-bounds.low, max(bounds.high, bounds.neg_high)))


@kernel
def logs_in_units(magnitudes: Magnitudes, bounds: Bounds, sigma: float, center: float, d: FloatArray) -> Logs:
    """Divide the logs in `d` by `sigma`, and return them as `Logs`.

    Parameters
    ----------
    magnitudes : Magnitudes
        Magnitudes and weights of the non-negative and of the negative values.
    bounds : Bounds
        Bounds of the logs.
    sigma : float
        The unit, a power of two.
    center : float
        For a column of both signs, the signed log of the reference, which was subtracted from the logs of values with
        the same sign as the reference; otherwise 0.
    d : (n,)
        The logs of non-negative values, then those of negative values; divided in place.
    """
    border, n = magnitudes.pos.size, magnitudes.pos.size + magnitudes.neg.size
    unit = 1.0 / sigma
    for i in range(n):
        d[i] *= unit
    center *= unit
    pos, neg = d[:border], d[border:n]
    weight_above, weight_below = sum_of(magnitudes.pos_weight), sum_of(magnitudes.neg_weight)
    across = min(center, 0.0) * weight_above + max(center, 0.0) * weight_below
    total = sum_of(pos, magnitudes.pos_weight) - sum_of(neg, magnitudes.neg_weight)
    jacobian = (total - across) / (weight_above + weight_below)
    return Logs(
        pos,
        magnitudes.pos_weight,
        neg,
        magnitudes.neg_weight,
        bounds.low * unit,
        bounds.high * unit,
        bounds.neg_high * unit,
        jacobian,
        sigma,
        center,
    )


@kernel
def logs_about(magnitudes: Magnitudes, both_signs: bool, offset: float, reference: float, spare: FloatArray) -> Logs:
    """Return the logs of a column relative to the log of a reference, divided by the power of two of `choose_log_unit`.

    Parameters
    ----------
    magnitudes : Magnitudes
        Magnitudes and weights of the non-negative and of the negative values.
    both_signs : bool
        Whether to return logs for a column of both signs, even if all values here have the same sign.
    offset : float
        0 (Box-Cox) or 1 (Yeo-Johnson), added to magnitudes.
    reference : float
        The reference. Its log is subtracted only from the logs of values with the same sign as the reference.
    spare : (n,)
        Receives the logs.
    """
    bounds = centered_logs(magnitudes, offset, reference, spare)
    center = math.copysign(offset_log(offset, abs(reference)), reference) if both_signs else 0.0
    sigma = max(choose_log_unit(bounds), power_of_two_above(abs(center)))
    return logs_in_units(magnitudes, bounds, sigma, center, spare)


# --- one column -------------------------------------------------------------------------------------


class PreparedColumn(NamedTuple):
    """A column as fits read it: its values and weights, with their summary, their sign and a status.

    `prepare` removes absent values, that is, NaN and values of weight 0. `describe_column` leaves them in place.
    """

    x: FloatArray
    weight: Any  #: an array, which may be empty (all one), or None
    summary: ValueSummary  #: summary of the values
    offset: float  #: 0 (Box-Cox) or 1 (Yeo-Johnson)
    sign: float  #: the sign of all values (1 includes 0), or 0 for both signs
    status: int  #: OK, or the reason why the column cannot be fitted


@kernel
def prepare(x: FloatArray, weight: FloatArray, family: int, work: Work) -> PreparedColumn:
    """Summarise a column and drop its absent values; if no value is absent, the arrays are not copied.

    Parameters
    ----------
    x : (n,)
        The values; NaN if missing.
    weight : (n,)
        Weights of the values; empty if all are one.
    family : int
        BOX_COX or YEO_JOHNSON.
    work : Work
        Scratch; receives the present values and their weights if some are absent.
    """
    if weight.size == 0:
        summary = summarize_values(x, None)
        if summary.n < x.size:
            n = drop_missing(x, None, work.packed, work.weight)
            x = work.packed[:n]
    else:
        summary = summarize_values(x, weight)
        if summary.n < x.size:
            n = drop_missing(x, weight, work.packed, work.weight)
            x, weight = work.packed[:n], work.weight[:n]
    return describe_column(x, weight, summary, family)


@kernel
def describe_column(x: FloatArray, weight: FloatArray | None, summary: ValueSummary, family: int) -> PreparedColumn:
    """Return the given values as a `PreparedColumn`, without removing or copying any of them.

    Parameters
    ----------
    x : (n,)
        The values.
    weight : (n,)
        Weights of the values; empty or None if all are one.
    summary : ValueSummary
        Summary of the column, or of a sample of it.
    family : int
        BOX_COX or YEO_JOHNSON.
    """
    return PreparedColumn(x, weight, summary, log_offset(family), sign_of(summary), refusal(summary, family))


@kernel
def sign_of(summary: ValueSummary) -> float:
    """Return 1 if no value is negative, -1 if all are negative, and 0 if there are both signs."""
    return 1.0 if summary.low >= 0.0 else -1.0 if summary.high < 0.0 else 0.0


@kernel
def refusal(summary: ValueSummary, family: int) -> int:
    """Return the status OK if the column can be fitted, and otherwise the status that says why it cannot."""
    if summary.n == 0.0:
        return EMPTY
    if max(-summary.low, summary.high) == math.inf:
        return BAD_INFINITE
    if not summary.low > domain_lower_bound(family):
        return BAD_NOT_POSITIVE
    return CONSTANT if summary.low == summary.high else OK


@kernel
def magnitude_range(summary: ValueSummary) -> tuple[float, float]:
    """Return the smallest and the largest magnitude; the smallest counts as 0 if there are both signs."""
    return max(summary.low, max(-summary.high, 0.0)), max(-summary.low, summary.high)


@kernel
def magnitudes_by_sign(x: FloatArray, weight: FloatArray, sign: float, work: Work) -> Magnitudes:
    """Split values and weights by sign.

    Values and weights are copied only if some values are negative. If `weight` is empty, ones are written to `work`.

    Parameters
    ----------
    x : (n,)
        The values, none of them NaN.
    weight : (n,)
        Weights of the values; empty if all are one.
    sign : float
        The sign of all values (`PreparedColumn.sign`), or 0 for both signs.
    work : Work
        Receives magnitudes and weights.
    """
    n = x.size
    if weight.size == 0:
        weight = work.weight[:n]
        weight[:] = 1.0
    if sign > 0.0:
        return Magnitudes(x, x[:0], weight, weight[:0])
    border = split_signs(x, x, work.split)
    weight_split = work.weight_split[:n]
    split_signs(x, weight, weight_split)
    if sign < 0.0:
        return Magnitudes(work.split[:n], x[:0], weight_split, weight[:0])
    return Magnitudes(work.split[:border], work.split[border:n], weight_split[:border], weight_split[border:])
