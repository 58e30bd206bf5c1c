"""The loops of fits from one pass: logs of values, and sums of powers over logs.

A column of one sign is stored as logs ``d = ln((base + |x|)/(base + ref))``, a Yeo-Johnson column of both signs as
*signed* logs ``sign(x) log1p|x|``, whose sign selects the branch: no partition, no branch in the loops. The sums
exist in float64 and, at more than twice the speed, in float32.

`weight` is None where all weights are one. The type of None is known when the kernels are compiled, so that fits with
and without weights have machine code of their own, and neither pays for the other.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from powerkern._jit import bits_of, float_of, kernel, reduction, widest_vectors
from powerkern._typing import Float32Array, FloatArray
from powerkern.kernels.elementary.exp import expm1_excess
from powerkern.kernels.elementary.log import log_normal
from powerkern.kernels.likelihood.logs import MAGNITUDE, SIGN
from powerkern.kernels.likelihood.score import (
    N_MOMENTS,
    WEIGHT,
    Y1,
    Y1Y1,
    Y1Y2,
    Y2,
    Y3,
    YY,
    YY1,
    YY2,
    YY3,
    Y,
    score_from_moments,
)
from powerkern.kernels.moments import weight_at

AnyFloats = npt.NDArray[np.floating]
Sums = tuple[float, float, float, float, float, float, float, float, float, float]

#: The sums are trusted while the mean square is at most this times the variance: they lose at most two digits.
MAX_SQUARE_TO_VARIANCE = 100.0


class LogSums(NamedTuple):
    """Weighted sums of logs and of their squares, and bits of the ends of the values that they were taken of.

    `weight` and `weight_squares`: sums of the weights, and of their squares, of the values that are not missing, taken
    where some may be.
    """

    total: float
    squares: float
    low: int
    high: int
    weight: float
    weight_squares: float


@reduction
def logs_of_one_sign(
    x: FloatArray,
    weight: FloatArray | None,
    flip: int,
    kept: int,
    base: float,
    per_ref: float,
    d: FloatArray,
    d32: Float32Array,
    gaps: bool | None,
) -> LogSums:
    """d = ln((base + |x|) per_ref), also rounded to float32, for x > 0 (`flip` = 0) or x < 0 (`flip` = SIGN).

    With `gaps` (True, or None for none; known when this is compiled) values may be missing or have no weight: their d
    is 0, which adds nothing to the sums of powers.
    `low` and `high` are the bits of the smallest and largest |x|, and show whether there are other values: `high` is at
    least INF_BITS if not all is finite, `low` negative if there is another sign bit, unless `kept` is MAGNITUDE (and
    not -1), which makes -0 of 0.
    """
    widest_vectors()
    total = squares = n = n_squares = 0.0
    low, high = MAGNITUDE, SIGN
    for i in range(d.size):
        bits = (bits_of(x[i]) ^ flip) & kept
        value, own = log_normal((base + float_of(bits)) * per_ref), weight_at(weight, i)
        if gaps is None:
            low, high = min(low, bits), max(high, bits)
        else:
            present = (x[i] == x[i]) & (own > 0.0)
            low, high = min(low, bits if present else MAGNITUDE), max(high, bits if present else SIGN)
            value, own = value if present else 0.0, own if present else 0.0
        d[i] = value
        d32[i] = value
        if gaps is not None:
            n += own
            n_squares += own * own
        total += own * value
        squares += own * value * value
    return LogSums(total, squares, low, high, n, n_squares)


@reduction
def signed_logs(
    x: FloatArray, weight: FloatArray | None, d: FloatArray, d32: Float32Array, gaps: bool | None
) -> LogSums:
    """d = sign(x) ln(1 + |x|), also rounded to float32; with `gaps` as in `logs_of_one_sign`.

    `high` is the bits of the largest x, `low` those of the largest -x; each is negative if no value has that sign, and
    at least INF_BITS if not all is finite.
    """
    widest_vectors()
    total = squares = n = n_squares = 0.0
    low = high = SIGN
    for i in range(d.size):
        bits = bits_of(x[i])
        value, own = math.copysign(log_normal(1.0 + abs(x[i])), x[i]), weight_at(weight, i)
        if gaps is None:
            low, high = max(low, bits ^ SIGN), max(high, bits)
        else:
            present = (x[i] == x[i]) & (own > 0.0)
            low, high = max(low, bits ^ SIGN if present else SIGN), max(high, bits if present else SIGN)
            value, own = value if present else 0.0, own if present else 0.0
        d[i] = value
        d32[i] = value
        if gaps is not None:
            n += own
            n_squares += own * own
        total += own * value
        squares += own * value * value
    return LogSums(total, squares, low, high, n, n_squares)


# --- sums ---------------------------------------------------------------------------------------------


@kernel
def derivatives(t: float, excess: float, one: float) -> tuple[float, float, float, float]:
    """Y_0 = e^t - 1, Y_1 = t e^t - Y_0, Y_2 = t^2 e^t - 2 Y_1, Y_3 = t^3 e^t - 3 Y_2, given e^t - 1 - t.

    In the type of t and of `one`.
    """
    two = one + one
    y0 = t + excess
    y1 = t * y0 - excess
    t2e = t * t + t * t * y0
    y2 = t2e - two * y1
    return y0, y1, y2, t * t2e - (two + one) * y2


@kernel
def terms(t: float, one: float) -> tuple[float, float, float, float]:
    """The `derivatives` at t."""
    return derivatives(t, expm1_excess(t), one)


@reduction
def _sums(d: AnyFloats, weight: AnyFloats | None, m: float, r: float, below: float | None, r_below: Any) -> Sums:
    """Weighted sums of y^(j) and of the six products that the score needs.

    Of logs of one sign (`below` and `r_below` are None, and r is not used) y^(j) = Y_j. With both signs y^(j) =
    Y_j r^(j+1), with r = 1/m, and r = -1/`below` where the log is negative and the exponent is `below`.
    """
    widest_vectors()
    zero, one = m - m, m / m
    s0, s1, s2, s3 = zero, zero, zero, zero
    q00, q01, q11, q02, q03, q12 = zero, zero, zero, zero, zero, zero
    for i in range(d.size):
        if below is None:
            y0, y1, y2, y3 = terms(m * d[i], one)
        else:
            negative = d[i] < zero
            y0, y1, y2, y3 = terms((below if negative else m) * abs(d[i]), one)
            own = r_below if negative else r
            y0 = y0 * own
            y1 = y1 * (own * own)
            y2 = y2 * (own * own * own)
            y3 = y3 * (own * own * (own * own))
        w0, w1, w2, w3 = y0, y1, y2, y3
        if weight is not None:
            w0, w1, w2, w3 = weight[i] * y0, weight[i] * y1, weight[i] * y2, weight[i] * y3
        s0 += w0
        s1 += w1
        s2 += w2
        s3 += w3
        q00 += w0 * y0
        q01 += w0 * y1
        q11 += w1 * y1
        q02 += w0 * y2
        q03 += w0 * y3
        q12 += w1 * y2
    return s0, s1, s2, s3, q00, q01, q11, q02, q03, q12


@kernel
def add_sums(d: AnyFloats, weight: AnyFloats | None, exponent: float, both_signs: bool, sums: FloatArray) -> None:
    """Add the weighted sums of y, y', y'', y''' and of their products over the logs `d` to `sums`; not the weights."""
    real: Any = d.dtype.type
    if both_signs:
        below = 2.0 - exponent
        part = _sums(d, weight, real(exponent), real(1.0 / exponent), real(below), real(-1.0 / below))
        r = 1.0
    else:
        r = 1.0 / exponent
        part = _sums(d, weight, real(exponent), real(r), None, None)
    r2 = r * r
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
def add_chunk(
    d: AnyFloats,
    weight: AnyFloats | None,
    exponent: float,
    both_signs: bool,
    sums: FloatArray,
    part: FloatArray | None,
) -> None:
    """`add_sums`; with a row `part` the sums of the chunk are rounded before they are added, not fused with that."""
    if part is None:
        add_sums(d, weight, exponent, both_signs, sums)
        return
    part[:] = 0.0
    add_sums(d, weight, exponent, both_signs, part)
    for i in range(N_MOMENTS):
        sums[i] += part[i]


@kernel
def center(sums: FloatArray) -> bool:
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


# --- near the point where moments were taken ------------------------------------------------------------


@kernel
def shifted_score(moments: FloatArray, jacobian: float, shift: float) -> tuple[float, float, float]:
    """g', g'', g''' a tiny `shift` away from where the moments were taken."""
    d1, d2, d3 = score_from_moments(moments, jacobian)
    return d1 + shift * (d2 + 0.5 * shift * d3), d2 + shift * d3, d3


@kernel
def growth(t: FloatArray) -> float:
    """The square of how fast moments grow with lambda, as a log: its power k/2 is the order of the k-th derivative."""
    bend: float = (t[Y1Y1] + t[YY2]) / t[YY]
    return abs(bend)


@kernel
def moments_at(t: FloatArray, step: float) -> tuple[float, float, float]:
    """Mean and variance of the transformed values, and g'', a short step from where moments were taken (Taylor)."""
    mean = t[Y] + step * (t[Y1] + step * (t[Y2] / 2.0 + step * t[Y3] / 6.0))
    bend = t[Y1Y1] + t[YY2]
    square = t[YY] + step * (2.0 * t[YY1] + step * (bend + step * (t[Y1Y2] + t[YY3] / 3.0)))
    _, d2, d3 = score_from_moments(t, 0.0)
    return mean, square / t[WEIGHT], d2 + step * d3
