"""A column prepared for its likelihood: scanned, without missing values, split by sign, as centered logs.

Logs are relative to a reference in the data, d = ln((offset + x)/(offset + ref)), and formed without cancellation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powerkern._jit import bits_of, float_of, inlined, kernel, reduction, widest_vectors
from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.log import log, log1p
from powerkern.kernels.likelihood.score import BLOCK, Logs
from powerkern.kernels.likelihood.scratch import Work
from powerkern.kernels.results import BAD_INFINITE, BAD_NOT_POSITIVE
from powerkern.kernels.transforms.family import is_mirrored, log_offset

#: The bits of a magnitude, all but the sign, and those of infinity.
MAGNITUDE = 0x7FFFFFFFFFFFFFFF
SIGN = ~MAGNITUDE
INF_BITS = 0x7FF0000000000000


#: Number of values from which the sign and a reference are guessed.
FEW = 16

_OK, _CONSTANT, _EMPTY = int(Status.OK), int(Status.CONSTANT), int(Status.EMPTY)


class Scan(NamedTuple):
    """Counts over all values, and bit patterns of magnitudes over those that are not NaN."""

    n_nan: int
    n_negative: int
    low: int
    high: int
    negative_high: int


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


@reduction
def scan(x: FloatArray) -> Scan:
    """One pass in integers: magnitudes of float64 are ordered as their bit patterns are."""
    widest_vectors()
    n_nan = n_negative = 0
    low, high, negative_high = MAGNITUDE, 0, 0
    for i in range(x.size):
        bits = bits_of(x[i]) & MAGNITUDE
        negative = x[i] < 0.0
        n_nan += bits > INF_BITS
        n_negative += negative
        low = min(low, bits)
        high = max(high, 0 if bits > INF_BITS or negative else bits)
        negative_high = max(negative_high, bits if negative else 0)
    return Scan(n_nan, n_negative, low, high, negative_high)


@kernel
def squeeze(x: FloatArray, weight: FloatArray, out: FloatArray, weight_out: FloatArray) -> int:
    """Copy the values that are not NaN and have a weight, and their weights; returns their number.

    No branch to mispredict: every value is written, and the next one over it where it does not count.
    """
    n = np.uint64(0)
    if weight.size == 0:
        for i in range(x.size):
            out[n] = x[i]
            n += np.uint64(x[i] == x[i])
    else:
        for i in range(x.size):
            value, own = x[i], weight[i]
            out[n] = value
            weight_out[n] = own
            n += np.uint64((value == value) & (own > 0.0))
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
    found = scan(x)
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


@reduction
def all_positive(weight: FloatArray) -> bool:
    """Whether no weight is zero."""
    widest_vectors()
    n = 0
    for i in range(weight.size):
        n += weight[i] > 0.0
    return n == weight.size


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
    """A column without missing values; `sign` is 1, -1, or 0 for both signs; `status` is _OK or a refusal."""

    x: FloatArray
    weight: FloatArray
    found: Scan
    offset: float
    sign: float
    status: int


@kernel
def prepare(x: FloatArray, weight: FloatArray, family: int, work: Work) -> Prepared:
    """Squeeze out missing values and zero weights, and scan what is left."""
    has_zeros, found = not all_positive(weight), scan(x)
    if has_zeros or found.n_nan > 0:
        n = squeeze(x, weight, work.packed, work.weight)
        x, weight = work.packed[:n], work.weight[: min(n, weight.size)]
        if has_zeros:
            found = scan(x)
    offset = log_offset(family)
    sign = 0.0
    if found.n_negative == 0:
        sign = 1.0
    elif found.n_negative == x.size:
        sign = -1.0
    return Prepared(x, weight, found, offset, sign, refusal(x.size, found, family))


@kernel
def unscanned(x: FloatArray, weight: FloatArray, family: int) -> Prepared:
    """A column taken for ordinary: its sign is that of a few evenly spaced values."""
    n = min(x.size, FEW)
    n_negative = n_others = 0
    for i in range(n):
        value = x[i * (x.size // n)]
        n_negative += value < 0.0
        n_others += value >= 0.0
    sign = 1.0 if n_negative == 0 else -1.0 if n_others == 0 else 0.0
    status = _OK if sign > 0.0 or is_mirrored(family) else BAD_NOT_POSITIVE
    return Prepared(x, weight, Scan(0, 0, 0, 0, 0), log_offset(family), sign, status)


@kernel
def refusal(n: int, found: Scan, family: int) -> int:
    """Why a column of `n` values that are not missing cannot be fitted, or OK."""
    if n == 0:
        return _EMPTY
    if max(found.high, found.negative_high) == INF_BITS:
        return BAD_INFINITE
    if not is_mirrored(family) and (found.n_negative > 0 or found.low == 0):
        return BAD_NOT_POSITIVE
    one_sided = found.n_negative == 0 or found.n_negative == n
    return _CONSTANT if one_sided and found.low == max(found.high, found.negative_high) else _OK


@kernel
def extremes_of(found: Scan, n: int) -> tuple[float, float]:
    """The smallest and the largest of the `n` values that are not missing."""
    low, high = float_of(found.low), float_of(found.high)
    x_min = low if found.n_negative == 0 else -float_of(found.negative_high)
    return x_min, -low if found.n_negative == n else high


@kernel
def sides_of(x: FloatArray, weight: FloatArray, n_negative: int, work: Work) -> Sides:
    """Magnitudes and weights by sign, copied only where there are negative values or no weights."""
    n = x.size
    if weight.size == 0:
        weight = work.weight[:n]
        weight[:] = 1.0
    if n_negative == 0:
        return Sides(x, x[:0], weight, weight[:0])
    border = split_signs(x, x, work.split)
    weight_split = work.weight_split[:n]
    split_signs(x, weight, weight_split)
    if border == 0:
        return Sides(work.split[:n], x[:0], weight_split, weight[:0])
    return Sides(work.split[:border], work.split[border:n], weight_split[:border], weight_split[border:])
