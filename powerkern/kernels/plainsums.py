"""The score of a well-conditioned column from one pass of plain sums.

The two passes within a block of `powerkern.kernels.likelihood` hold for any data; most columns do not need them. With logs centred
at their mean, ``Y_0 = e^t - 1`` (t = m d) has a mean that does not dwarf its standard deviation, and ten plain sums
of Y_0..Y_3 give g', g'', g''' to nearly full precision. The kernels below work in float64 and, at twice the speed, in
float32: most of the way to the optimum is walked in float32, the last step is taken in float64.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from powerkern._jit import kernel, reduction, widest_vectors
from powerkern.kernels.elementary import expm1_excess, log_normal
from powerkern.kernels.likelihood import N_MOMENTS, WEIGHT, YY, YY1, YY2, YY3, Y, Y1, Y1Y1, Y1Y2, Y2, Y3, FloatArray

AnyFloats = npt.NDArray[np.floating]

#: Values summed in the arrays' own precision before they enter float64 accumulators.
CHUNK = 4096

#: The sums are trusted while mean^2 <= this times the variance: they lose at most two digits.
MAX_MEAN_TO_SD = 100.0


@reduction
def log_pass(
    x: FloatArray, base: float, log_ref: float, d: FloatArray, d32: npt.NDArray[np.float32]
) -> tuple[float, float]:
    """d = ln(base + x) - log_ref, also rounded to float32; returns its sum and sum of squares."""
    widest_vectors()
    total = squares = 0.0
    for i in range(x.size):
        value = log_normal(base + x[i]) - log_ref
        d[i] = value
        d32[i] = value
        total += value
        squares += value * value
    return total, squares


@reduction
def _sums(d: AnyFloats, m: float) -> tuple[float, ...]:
    """Sums of Y_0 = e^t - 1, Y_1 = t Y_0 - (Y_0 - t), Y_2 = t^2 e^t - 2 Y_1, Y_3 = t^3 e^t - 3 Y_2 and products."""
    widest_vectors()
    zero = m - m
    s0 = s1 = s2 = s3 = zero
    q00 = q01 = q11 = q02 = q03 = q12 = zero
    for i in range(d.size):
        t = m * d[i]
        excess = expm1_excess(t)
        y0 = t + excess
        y1 = t * y0 - excess
        t2e = t * t + t * t * y0
        y2 = t2e - (y1 + y1)
        y3 = t * t2e - (y2 + y2 + y2)
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
def add_branch(d: AnyFloats, m: float, sign: float, sums: FloatArray) -> None:
    """Add one branch's sums of y^(j) = Y_j/m^(j+1), with m negated below zero."""
    part = np.zeros(N_MOMENTS)
    for start in range(0, d.size, CHUNK):
        s0, s1, s2, s3, q00, q01, q11, q02, q03, q12 = _sums(d[start : start + CHUNK], d.dtype.type(m))
        part[Y] += s0
        part[Y1] += s1
        part[Y2] += s2
        part[Y3] += s3
        part[YY] += q00
        part[YY1] += q01
        part[Y1Y1] += q11
        part[YY2] += q02
        part[YY3] += q03
        part[Y1Y2] += q12
    r = sign / m
    r2 = r * r
    sums[WEIGHT] += d.size
    sums[Y] += part[Y] * r
    sums[Y1] += part[Y1] * r2
    sums[Y2] += part[Y2] * r2 * r
    sums[Y3] += part[Y3] * r2 * r2
    sums[YY] += part[YY] * r2
    sums[YY1] += part[YY1] * r2 * r
    sums[Y1Y1] += part[Y1Y1] * r2 * r2
    sums[YY2] += part[YY2] * r2 * r2
    sums[YY3] += part[YY3] * r2 * r2 * r
    sums[Y1Y2] += part[Y1Y2] * r2 * r2 * r


@kernel
def centre(sums: FloatArray) -> bool:
    """Turn sums into means and products about the means; False where that would cost too many digits."""
    n = sums[WEIGHT]
    for k in (Y, Y1, Y2, Y3):
        sums[k] /= n
    raw = sums[YY]
    sums[YY] -= n * sums[Y] * sums[Y]
    sums[YY1] -= n * sums[Y] * sums[Y1]
    sums[Y1Y1] -= n * sums[Y1] * sums[Y1]
    sums[YY2] -= n * sums[Y] * sums[Y2]
    sums[YY3] -= n * sums[Y] * sums[Y3]
    sums[Y1Y2] -= n * sums[Y1] * sums[Y2]
    # the comparison is False for NaN and for infinite sums too
    return raw <= MAX_MEAN_TO_SD * sums[YY] and math.isfinite(sums[YY3])
