"""Kolmogorov-Smirnov distance of sorted columns from a normal distribution, which may be given or fitted."""

from __future__ import annotations

import math

from powerkern._jit import COLUMN, ROWS, bits_of, entry, float_of, inlined, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.erf import SQRT_HALF, erf
from powerkern.kernels.location.order_statistics import n_present
from powerkern.kernels.moments import two_pass_moments
from powerkern.kernels.normality.moments import scale_to_one

#: The bits of 2**52. To convert an integer below 2**52 to float64, put it into this mantissa and subtract 2**52.
_BITS_OF_2_52 = 0x4330000000000000


@inlined
def _plus_half(i: int) -> float:
    """Return i + 1/2 for i >= 0 by bit operations, since AVX2 cannot convert int64 to float64."""
    return float_of(i | _BITS_OF_2_52) - 4503599627370495.5


@kernel
def sorted_ks_distance(x: FloatArray, loc: float, scale: float) -> float:
    """Return the Kolmogorov-Smirnov distance of ascending values from N(loc, scale**2).

    With F_i = Phi((x_i - loc)/scale), i = 0..n-1, the distance is ``max_i abs(F_i - (i + 1/2)/n) + 1/(2n)``, because
    the empirical distribution function steps from i/n to (i + 1)/n at x_i.
    """
    up = 2.0**100 if scale < 2.0**-1000 else 1.0  # the inverse of a subnormal scale would overflow
    per_scale, fraction = SQRT_HALF / (scale * up), 1.0 / float(x.size)
    largest = 0  # bit patterns of non-negative floats have the same order, and the maximum of integers vectorises
    for i in range(x.size):
        departure = 0.5 + 0.5 * erf((x[i] - loc) * up * per_scale) - _plus_half(i) * fraction
        largest = max(largest, bits_of(abs(departure)))
    return float_of(largest) + 0.5 * fraction


@entry((ROWS, COLUMN, COLUMN, COLUMN))
def ks_distance_columns(block: FloatArray, loc: FloatArray, scale: FloatArray, out: FloatArray) -> None:
    """Write the Kolmogorov-Smirnov distance of each row from a normal distribution.

    Parameters
    ----------
    block : (p, n)
        Columns as rows, sorted, NaN last; overwritten.
    loc, scale : (p,)
        Mean and standard deviation of the normal distribution for each row. NaN stands for the mean and the standard
        deviation (with divisor n - 1) of the row itself.
    out : (p,)
        Receives the distances: NaN if the row has no values, or if the scale must be fitted and all values are equal;
        inf if a value is infinite.
    """
    for j in range(block.shape[0]):
        x = block[j, : n_present(block[j])]
        n = x.size
        fitted = math.isnan(scale[j])
        out[j] = math.nan
        if n > 0 and not (x[n - 1] < math.inf and x[0] > -math.inf):
            out[j] = math.inf
        elif n > 0 and not (fitted and x[0] == x[n - 1]):
            exponent = scale_to_one(x, x) if fitted else 0
            sample = two_pass_moments(x)
            center = sample.mean if math.isnan(loc[j]) else math.ldexp(loc[j], -exponent)
            sd = math.sqrt(sample.m2 / (n - 1.0)) if fitted else scale[j]
            out[j] = sorted_ks_distance(x, center, sd)
