"""The inner loops of `one_pass`: logs of values, and raw sums over logs.

A column of one sign is stored as logs ``d = ln((offset + |x|)/(offset + ref))``. A Yeo-Johnson column of both signs is
stored as *signed* logs ``sign(x) log1p|x|``, whose sign selects the branch of the transform, so that loops need neither
a partition nor a conditional jump. Sums are available in float64 and, at more than twice the speed, in float32.

A value that is missing or has weight 0 gets a log of 0, which adds nothing to any sum.

`weight` is None if all weights are one. numba specialises on the type of None, so unweighted fits pay nothing for
weights.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from powerkern._jit import bits_of, float_of, kernel, reduction, specialize_on_none
from powerkern._typing import Float32Array, FloatArray
from powerkern.kernels.elementary.exp import expm1_minus_x
from powerkern.kernels.elementary.log import log_normal
from powerkern.kernels.likelihood.score_formulas import (
    Y1,
    Y1Y1,
    Y1Y2,
    Y2,
    Y3,
    YY,
    YY1,
    YY2,
    YY3,
    Moments,
    Y,
    derivatives,
)
from powerkern.kernels.moments import weight_at

AnyFloats = npt.NDArray[np.floating]


@specialize_on_none()
def round_weights(weight: FloatArray, scale: float, out: Float32Array) -> Float32Array:
    """Write the weights in float32, multiplied by `scale` to stay in range."""
    for i in range(out.size):
        out[i] = scale * weight[i]
    return out


class LogKind(NamedTuple):
    """The formula for a column's logs: ``ln((offset + |x|)*per_ref)``, with the sign of x if there are both signs."""

    both_signs: bool
    offset: float
    per_ref: float  #: 1/(offset + reference)


@reduction
def take_logs(
    x: FloatArray, weight: FloatArray | None, kind: LogKind, d: FloatArray, d32: Float32Array
) -> tuple[float, float]:
    """Write the logs of x in float64 and float32; return the weighted sums of the logs and of their squares.

    Parameters
    ----------
    x : (n,)
        The values; NaN if missing.
    weight : (n,)
        Weights of the values; empty or None if all are one.
    kind : LogKind
        The formula for the logs.
    d : (n,)
        Receives the logs.
    d32 : (n,)
        Receives the logs in float32.
    """
    total = squares = 0.0
    offset, per_ref, sign_bit = kind.offset, kind.per_ref, bits_of(-0.0) if kind.both_signs else 0
    for i in range(d.size):
        own = weight_at(weight, i)
        value = log_normal((offset + abs(x[i])) * per_ref)
        value = float_of(bits_of(value) ^ (bits_of(x[i]) & sign_bit))
        value = value if (x[i] == x[i]) & (own > 0.0) else 0.0
        d[i] = value
        d32[i] = value
        total += own * value
        squares += own * value * value
    return total, squares


@reduction
def _sums(d: AnyFloats, weight: AnyFloats | None, m: float, negative_exponent: float | None) -> Moments:
    """Return raw sums of the transform y and its three derivatives over the logs `d`, at the exponent `m`.

    `negative_exponent` is the exponent of negative values, or None if all values have one sign. With both signs the
    j-th derivative is Y_j r^(j+1) (`score_formulas.derivatives`), where r is 1/m for positive logs, and
    -1/`negative_exponent` for negative ones. With one sign the constant factors r^(j+1) are left out, so the sums are
    those of Y_j.
    """
    zero, one = m - m, m / m
    r, r_below = one / m, one if negative_exponent is None else -one / negative_exponent
    s0, s1, s2, s3 = zero, zero, zero, zero
    q00, q01, q11, q02, q03, q12 = zero, zero, zero, zero, zero, zero
    for i in range(d.size):
        if negative_exponent is None:
            t = m * d[i]
        else:
            negative = d[i] < zero
            t = (negative_exponent if negative else m) * abs(d[i])
        y0, y1, y2, y3 = derivatives(t, expm1_minus_x(t), one)
        if negative_exponent is not None:
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
    return zero, s0, s1, s2, s3, q00, q01, q11, q02, q03, q12


@kernel
def add_sums(sums: Moments, d: AnyFloats, weight: AnyFloats | None, exponent: float, both_signs: bool) -> Moments:
    """Add raw sums of the transform y and its three derivatives over the logs `d`, but not the total weight.

    Parameters
    ----------
    sums : Moments
        The sums so far.
    d : (n,)
        The logs; signed if there are both signs.
    weight : (n,)
        Weights of the values; empty or None if all are one.
    exponent : float
        The exponent m at which y = (e^(m d) - 1)/m and its derivatives in m are evaluated.
    both_signs : bool
        Whether there are values of both signs.
    """
    real: Any = d.dtype.type
    if both_signs:
        t, r = _sums(d, weight, real(exponent), real(2.0 - exponent)), 1.0
    else:
        t, r = _sums(d, weight, real(exponent), None), 1.0 / exponent
    r2 = r * r
    r3, r4 = r2 * r, r2 * r2
    return (
        sums[0],
        sums[Y] + t[Y] * r,
        sums[Y1] + t[Y1] * r2,
        sums[Y2] + t[Y2] * r3,
        sums[Y3] + t[Y3] * r4,
        sums[YY] + t[YY] * r2,
        sums[YY1] + t[YY1] * r3,
        sums[Y1Y1] + t[Y1Y1] * r4,
        sums[YY2] + t[YY2] * r4,
        sums[YY3] + t[YY3] * (r4 * r),
        sums[Y1Y2] + t[Y1Y2] * (r4 * r),
    )
