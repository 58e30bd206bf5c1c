"""The score of a well-conditioned column from one pass of plain sums.

The two passes within a block of `powerkern.kernels.likelihood` hold for any data; most columns do not need them. Where
``Y_0 = e^t - 1`` (t = m d, with logs d centred near their mean) has a mean that does not dwarf its standard
deviation, plain sums of Y_0..Y_3 and of their products give g', g'', g''' to nearly full precision.

A column of one sign is held as logs ``d = ln((base + |x|)/(base + ref))``, a Yeo-Johnson column of both signs as
*signed* logs ``sign(x) log1p|x|``, whose sign selects the branch: no partition, no branch in the loops. The sums
exist in float64 and, at more than twice the speed, in float32: most of the way to the optimum is walked in
float32, the last step is taken in float64.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from powerkern._jit import bits_of, float_of, kernel, reduction, widest_vectors
from powerkern.kernels.elementary import expm1_excess, log_normal
from powerkern.kernels.likelihood import WEIGHT, Y1, Y1Y1, Y1Y2, Y2, Y3, YY, YY1, YY2, YY3, FloatArray, Y

AnyFloats = npt.NDArray[np.floating]
Float32Array = npt.NDArray[np.float32]
Sums = tuple[float, float, float, float, float, float, float, float, float, float]

#: The bits of a magnitude, all but the sign; those of infinity.
MAGNITUDE = 0x7FFFFFFFFFFFFFFF
SIGN = ~MAGNITUDE
INF_BITS = 0x7FF0000000000000

#: Values summed in their own precision before they enter float64 accumulators; two arrays of it fit the L1 cache.
CHUNK = 2048

#: The sums are trusted while the mean square is at most this times the variance: they lose at most two digits.
MAX_SQUARE_TO_VARIANCE = 100.0


class LogSums(NamedTuple):
    """Sums of logs and of their squares, and bits of the ends of the values that they were taken of."""

    total: float
    squares: float
    low: int
    high: int


@reduction
def logs_of_one_sign(
    x: FloatArray, flip: int, kept: int, base: float, per_ref: float, d: FloatArray, d32: Float32Array
) -> LogSums:
    """d = ln((base + |x|) per_ref), also rounded to float32, for x > 0 (`flip` = 0) or x < 0 (`flip` = SIGN).

    `low` and `high` are the bits of the smallest and largest |x|, and show whether there are other values: `high` is at
    least INF_BITS if not all is finite, `low` negative if there is another sign bit, unless `kept` is MAGNITUDE (and
    not -1), which makes -0 of 0.
    """
    widest_vectors()
    total = squares = 0.0
    low, high = MAGNITUDE, SIGN
    for i in range(d.size):
        bits = (bits_of(x[i]) ^ flip) & kept
        low = min(low, bits)
        high = max(high, bits)
        value = log_normal((base + float_of(bits)) * per_ref)
        d[i] = value
        d32[i] = value
        total += value
        squares += value * value
    return LogSums(total, squares, low, high)


@reduction
def signed_logs(x: FloatArray, d: FloatArray, d32: Float32Array) -> LogSums:
    """d = sign(x) ln(1 + |x|), also rounded to float32.

    `high` is the bits of the largest x, `low` those of the largest -x; each is negative if no value has that sign, and
    at least INF_BITS if not all is finite.
    """
    widest_vectors()
    total = squares = 0.0
    low = high = SIGN
    for i in range(d.size):
        bits = bits_of(x[i])
        low = max(low, bits ^ SIGN)
        high = max(high, bits)
        value = math.copysign(log_normal(1.0 + abs(x[i])), x[i])
        d[i] = value
        d32[i] = value
        total += value
        squares += value * value
    return LogSums(total, squares, low, high)


@kernel
def _terms(t: float, one: float) -> tuple[float, float, float, float]:
    """Y_0 = e^t - 1, Y_1 = t e^t - Y_0, Y_2 = t^2 e^t - 2 Y_1, Y_3 = t^3 e^t - 3 Y_2, in the type of t and of `one`."""
    two = one + one
    excess = expm1_excess(t)
    y0 = t + excess
    y1 = t * y0 - excess
    t2e = t * t + t * t * y0
    y2 = t2e - two * y1
    return y0, y1, y2, t * t2e - (two + one) * y2


@reduction
def _sums_of_one_sign(d: AnyFloats, m: float) -> Sums:
    """Sums of Y_j and of the six products that the score needs."""
    widest_vectors()
    zero, one = m - m, m / m
    s0, s1, s2, s3 = zero, zero, zero, zero
    q00, q01, q11, q02, q03, q12 = zero, zero, zero, zero, zero, zero
    for i in range(d.size):
        y0, y1, y2, y3 = _terms(m * d[i], one)
        s0 += y0
        s1 += y1
        s2 += y2
        s3 += y3
        q00 += y0 * y0
        q01 += y0 * y1
        q11 += y1 * y1
        q02 += y0 * y2
        q03 += y0 * y3
        q12 += y1 * y2
    return s0, s1, s2, s3, q00, q01, q11, q02, q03, q12


@reduction
def _sums_of_both_signs(d: AnyFloats, m_pos: float, m_neg: float, r_pos: float, r_neg: float) -> Sums:
    """Sums of y^(j) = Y_j r^(j+1) and of their products; r = 1/m, -1/m below zero."""
    widest_vectors()
    zero, one = m_pos - m_pos, m_pos / m_pos
    s0, s1, s2, s3 = zero, zero, zero, zero
    q00, q01, q11, q02, q03, q12 = zero, zero, zero, zero, zero, zero
    for i in range(d.size):
        negative = d[i] < zero
        r = r_neg if negative else r_pos
        y0, y1, y2, y3 = _terms((m_neg if negative else m_pos) * abs(d[i]), one)
        y0 = y0 * r
        y1 = y1 * (r * r)
        y2 = y2 * (r * r * r)
        y3 = y3 * (r * r * (r * r))
        s0 += y0
        s1 += y1
        s2 += y2
        s3 += y3
        q00 += y0 * y0
        q01 += y0 * y1
        q11 += y1 * y1
        q02 += y0 * y2
        q03 += y0 * y3
        q12 += y1 * y2
    return s0, s1, s2, s3, q00, q01, q11, q02, q03, q12


@kernel
def add_sums(d: AnyFloats, exponent: float, both_signs: bool, sums: FloatArray) -> None:
    """Add the sums of y, y', y'', y''' and of their products over the logs `d` to `sums`."""
    real: Any = d.dtype.type
    if both_signs:
        below = 2.0 - exponent
        part = _sums_of_both_signs(d, real(exponent), real(below), real(1.0 / exponent), real(-1.0 / below))
        r = 1.0
    else:
        part = _sums_of_one_sign(d, real(exponent))
        r = 1.0 / exponent
    r2 = r * r
    sums[WEIGHT] += d.size
    sums[Y] += part[0] * r
    sums[Y1] += part[1] * r2
    sums[Y2] += part[2] * (r2 * r)
    sums[Y3] += part[3] * (r2 * r2)
    sums[YY] += part[4] * r2
    sums[YY1] += part[5] * (r2 * r)
    sums[Y1Y1] += part[6] * (r2 * r2)
    sums[YY2] += part[7] * (r2 * r2)
    sums[YY3] += part[8] * (r2 * r2 * r)
    sums[Y1Y2] += part[9] * (r2 * r2 * r)


@kernel
def centre(sums: FloatArray) -> bool:
    """Turn sums into means and products about the means; False where that would cost too many digits."""
    n = sums[WEIGHT]
    sums[Y] /= n
    sums[Y1] /= n
    sums[Y2] /= n
    sums[Y3] /= n
    raw = sums[YY]
    sums[YY] -= n * sums[Y] * sums[Y]
    sums[YY1] -= n * sums[Y] * sums[Y1]
    sums[Y1Y1] -= n * sums[Y1] * sums[Y1]
    sums[YY2] -= n * sums[Y] * sums[Y2]
    sums[YY3] -= n * sums[Y] * sums[Y3]
    sums[Y1Y2] -= n * sums[Y1] * sums[Y2]
    # False for NaN and infinite sums too
    return bool(raw <= MAX_SQUARE_TO_VARIANCE * sums[YY] and abs(sums[YY3]) < math.inf)
