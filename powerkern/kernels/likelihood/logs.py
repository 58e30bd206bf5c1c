"""A column prepared for its likelihood: scanned, without missing values, split by sign, as centered logs.

Logs are relative to a reference in the data, d = ln((offset + x)/(offset + ref)), and formed without cancellation.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from powerkern._jit import bits_of, float_of, inlined, kernel, reduction, widest_vectors
from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.log import log, log1p
from powerkern.kernels.likelihood.score import BLOCK, Logs
from powerkern.kernels.likelihood.scratch import Work
from powerkern.kernels.moments import weight_at
from powerkern.kernels.results import BAD_INFINITE, BAD_NOT_POSITIVE
from powerkern.kernels.transforms.family import is_mirrored, log_offset

#: The bits of a magnitude, the sign bit, and the bits of infinity.
MAGNITUDE = 0x7FFFFFFFFFFFFFFF
SIGN = ~MAGNITUDE
INF_BITS = 0x7FF0000000000000

_OK, _CONSTANT, _EMPTY = int(Status.OK), int(Status.CONSTANT), int(Status.EMPTY)


class Scan(NamedTuple):
    """Counts and extremes of a column, without its absent values (NaN, or no weight).

    `n`: the number of values; `low`: bits of the smallest magnitude; `high`, `negative_high`: bits of the largest
    magnitude of the values >= 0, and of the negative ones (SIGN if there are none); `weight`, `squares`: sums of the
    weights, and of their squares; `heaviest`: bits of the largest weight.
    """

    n: int
    low: int
    high: int
    negative_high: int
    weight: float
    squares: float
    heaviest: int


class Sides(NamedTuple):
    """Magnitudes of a column's non-negative and negative values, and their weights (empty: all one)."""

    pos: FloatArray
    neg: FloatArray
    pos_weight: FloatArray
    neg_weight: FloatArray


class Bounds(NamedTuple):
    """Bounds of a column's centered logs; `neg_high` is 0 without negative values."""

    low: float
    high: float
    neg_high: float


NOTHING = Scan(0, MAGNITUDE, SIGN, SIGN, 0.0, 0.0, 0)


@inlined
def extended(low: int, high: int, negative_high: int, x: float, present: bool) -> tuple[int, int, int]:
    """The bits in `Scan` with another value, in integers: magnitudes are ordered as their bit patterns are."""
    bits = bits_of(x + 0.0)  # 0 for -0
    low = min(low, bits & MAGNITUDE if present else MAGNITUDE)
    high = max(high, bits if present else SIGN)
    return low, high, max(negative_high, bits ^ SIGN if present else SIGN)


@reduction
def scan(x: FloatArray, weight: FloatArray | None) -> Scan:
    """One pass over all values."""
    widest_vectors()
    n = 0
    total = squares = 0.0
    low, high, negative_high, heaviest = MAGNITUDE, SIGN, SIGN, 0
    for i in range(x.size):
        own = weight_at(weight, i)
        present = (x[i] == x[i]) & (own > 0.0)
        low, high, negative_high = extended(low, high, negative_high, x[i], present)
        n += present
        if weight is not None:
            own = own if present else 0.0
            total += own
            squares += own * own
            heaviest = max(heaviest, bits_of(own))
    return scanned(weight, n, low, high, negative_high, total, squares, heaviest)


@kernel
def scanned(
    weight: FloatArray | None,
    n: int,
    low: int,
    high: int,
    negative_high: int,
    total: float,
    squares: float,
    heaviest: int,
) -> Scan:
    """The `Scan` at the end of a loop; without weights all of them are one."""
    high, negative_high = high if high >= 0 else SIGN, negative_high if negative_high >= 0 else SIGN
    if weight is None:
        return Scan(n, low, high, negative_high, float(n), float(n), bits_of(1.0))
    return Scan(n, low, high, negative_high, total, squares, heaviest)


@kernel
def joined(a: Scan, b: Scan) -> Scan:
    """The scan of two parts."""
    return Scan(
        a.n + b.n,
        min(a.low, b.low),
        max(a.high, b.high),
        max(a.negative_high, b.negative_high),
        a.weight + b.weight,
        a.squares + b.squares,
        max(a.heaviest, b.heaviest),
    )


@kernel
def sign_of(found: Scan) -> float:
    """1 if no value is negative, -1 if all are, 0 for both signs."""
    return 1.0 if found.negative_high < 0 else -1.0 if found.high < 0 else 0.0


@kernel
def squeeze(x: FloatArray, weight: FloatArray | None, out: FloatArray, weight_out: FloatArray) -> int:
    """Copy the values that are not absent, and their weights; returns their number.

    No branch to mispredict: every value is written, and the next one over it where it does not count.
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
    """|values| where x >= 0 from the front of `out`, where x < 0 from its back; returns the border."""
    front = np.uint64(0)
    back = np.uint64(x.size - 1)
    for i in range(x.size):
        # no branch to mispredict: both ends are written, one of them advances
        magnitude = abs(values[i])
        out[front] = magnitude
        out[back] = magnitude
        front += np.uint64(x[i] >= 0.0)
        back -= np.uint64(x[i] < 0.0)
    return int(front)


@kernel
def offset_log(offset: float, x: float) -> float:
    """ln(offset + x), for an offset of 0 or 1."""
    return log1p(x) if offset == 1.0 else log(x)


@inlined
def centered_log(x: float, offset: float, reference: float, log_reference: float) -> float:
    """ln((offset + x)/(offset + reference)) without cancellation: x - reference is exact where the ratio is small."""
    ratio = (x - reference) / (offset + reference)
    near = abs(ratio) <= 0.5
    far_log = (log1p(x) if offset == 1.0 else log(x)) - log_reference
    return log1p(ratio if near else 0.0) if near else far_log


@kernel
def _logs_of_side(x: FloatArray, offset: float, reference: float, d: FloatArray) -> tuple[float, float]:
    """Centered logs of one side; returns the smallest and the largest (0 for an empty side)."""
    widest_vectors()
    log_reference = offset_log(offset, reference)
    for i in range(x.size):
        d[i] = centered_log(x[i], offset, reference, log_reference)
    if x.size == 0:
        return 0.0, 0.0
    found = scan(x, None)
    low, high = float_of(found.low), float_of(found.high)
    return (
        centered_log(low, offset, reference, log_reference),
        centered_log(high, offset, reference, log_reference),
    )


@kernel
def _power_of_two_above(x: float) -> float:
    """The power of two above x, for 0 <= x < 2**1000; 2**-1021 for subnormal x."""
    exponent = bits_of(x) >> 52
    return float_of(max(exponent + 1, 2) << 52)


@reduction
def _weighted_sum(d: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Sum of weight times value, and of the weights, over a block."""
    widest_vectors()
    total = weights = 0.0
    for i in range(d.size):
        total += weight[i] * d[i]
        weights += weight[i]
    return total, weights


@kernel
def weighted_total(d: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """`_weighted_sum`, block by block."""
    total = weights = 0.0
    for i in range(0, d.size, BLOCK):
        part, part_weight = _weighted_sum(d[i : i + BLOCK], weight[i : i + BLOCK])
        total += part
        weights += part_weight
    return total, weights


@kernel
def total_weight(weight: FloatArray) -> float:
    """Sum of the weights."""
    return weighted_total(weight, weight)[1]


@kernel
def centered_logs(sides: Sides, offset: float, reference: float, d: FloatArray) -> Bounds:
    """Centered logs of both sides, one after the other; a negative `reference` is one of the negative values."""
    border, n = sides.pos.size, sides.pos.size + sides.neg.size
    low, high = _logs_of_side(sides.pos, offset, max(reference, 0.0), d[:border])
    return Bounds(low, high, _logs_of_side(sides.neg, offset, max(-reference, 0.0), d[border:n])[1])


@kernel
def unit_of(bounds: Bounds) -> float:
    """The power of two that logs are divided by."""
    return _power_of_two_above(max(-bounds.low, max(bounds.high, bounds.neg_high)))


@kernel
def logs_in_units(sides: Sides, bounds: Bounds, sigma: float, center: float, d: FloatArray) -> Logs:
    """Divide the logs in `d` by `sigma`; `center` is the signed log of a reference with both signs, else 0."""
    border, n = sides.pos.size, sides.pos.size + sides.neg.size
    unit = 1.0 / sigma
    for i in range(n):
        d[i] *= unit
    center *= unit
    pos, neg = d[:border], d[border:n]
    above, weight_above = weighted_total(pos, sides.pos_weight)
    below, weight_below = weighted_total(neg, sides.neg_weight)
    across = min(center, 0.0) * weight_above + max(center, 0.0) * weight_below
    jacobian = (above - below - across) / (weight_above + weight_below)
    return Logs(
        pos,
        sides.pos_weight,
        neg,
        sides.neg_weight,
        bounds.low * unit,
        bounds.high * unit,
        bounds.neg_high * unit,
        jacobian,
        sigma,
        center,
    )


@kernel
def logs_about(sides: Sides, offset: float, reference: float, spare: FloatArray) -> Logs:
    """Logs of a column in units of a power of two, written to `spare`; for `reference` see `centered_logs`."""
    bounds = centered_logs(sides, offset, reference, spare)
    center = math.copysign(offset_log(offset, abs(reference)), reference) if sides.neg.size > 0 else 0.0
    sigma = max(unit_of(bounds), _power_of_two_above(abs(center)))
    return logs_in_units(sides, bounds, sigma, center, spare)


# --- one column -------------------------------------------------------------------------------------


class Prepared(NamedTuple):
    """A column that was scanned; `sign` is 1, -1, or 0 for both signs; `status` is _OK or a refusal."""

    x: FloatArray
    weight: Any  #: an array, which may be empty (all one), or None
    found: Scan
    offset: float
    sign: float
    status: int


@kernel
def prepare(x: FloatArray, weight: FloatArray, family: int, work: Work) -> Prepared:
    """Squeeze out absent values; `weight` may be empty (all one)."""
    if weight.size == 0:
        found = scan(x, None)
        if found.n < x.size:
            squeeze(x, None, work.packed, work.weight)
            x = work.packed[: found.n]
    else:
        found = scan(x, weight)
        if found.n < x.size:
            squeeze(x, weight, work.packed, work.weight)
            x, weight = work.packed[: found.n], work.weight[: found.n]
    return prepared(x, weight, found, family)


@kernel
def prepared(x: FloatArray, weight: FloatArray | None, found: Scan, family: int) -> Prepared:
    """A column with the scan of it, or of a part of it."""
    return Prepared(x, weight, found, log_offset(family), sign_of(found), refusal(found, family))


@kernel
def refusal(found: Scan, family: int) -> int:
    """Why a column cannot be fitted, or OK."""
    if found.n == 0:
        return _EMPTY
    largest = max(found.high, found.negative_high)
    if largest == INF_BITS:
        return BAD_INFINITE
    if not is_mirrored(family) and (found.negative_high > 0 or found.low == 0):
        return BAD_NOT_POSITIVE
    return _CONSTANT if sign_of(found) != 0.0 and found.low == largest else _OK


@kernel
def extremes_of(found: Scan) -> tuple[float, float]:
    """The smallest and the largest value that is not absent; NaN if all are."""
    low, sign = float_of(found.low), sign_of(found)
    return low if sign > 0.0 else -float_of(found.negative_high), -low if sign < 0.0 else float_of(found.high)


@kernel
def sides_of(x: FloatArray, weight: FloatArray, sign: float, work: Work) -> Sides:
    """Magnitudes and weights by sign, copied only where there are negative values or no weights."""
    n = x.size
    if weight.size == 0:
        weight = work.weight[:n]
        weight[:] = 1.0
    if sign > 0.0:
        return Sides(x, x[:0], weight, weight[:0])
    border = split_signs(x, x, work.split)
    weight_split = work.weight_split[:n]
    split_signs(x, weight, weight_split)
    if border == 0:
        return Sides(work.split[:n], x[:0], weight_split, weight[:0])
    return Sides(work.split[:border], work.split[border:n], weight_split[:border], weight_split[border:])
