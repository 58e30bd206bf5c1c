"""How far sorted columns are from normal: the Kolmogorov-Smirnov distance."""

from __future__ import annotations

import math

from powerkern._jit import COLUMN, ROWS, bits_of, entry, float_of, kernel, reduction, widest_vectors
from powerkern._typing import FloatArray
from powerkern.kernels.erf import erf
from powerkern.kernels.moments import moments_of

_SQRT_HALF = 0.7071067811865476
#: Sums of squares neither over- nor underflow where the binary exponents of the largest values are below this.
_MODERATE = 400


@reduction
def ks_of(x: FloatArray, loc: float, scale: float) -> float:
    """Largest distance between the empirical distribution of ascending values and N(loc, scale**2).

    With F_i = Phi((x_i - loc)/scale), max_i max(i/n - F_i, F_i - (i - 1)/n) = 1/(2n) + max_i abs(F_i - (i - 1/2)/n).
    """
    widest_vectors()
    n = float(x.size)
    largest = 0  # bit patterns of positive floats are ordered as they are; integers have a maximum that vectorises
    for i in range(x.size):
        below = 0.5 + 0.5 * erf((x[i] - loc) / scale * _SQRT_HALF)
        largest = max(largest, bits_of(abs(below - (i + 0.5) / n)))
    return float_of(largest) + 0.5 / n


@kernel
def n_present(x: FloatArray) -> int:
    """How many values of a sorted column are not NaN."""
    n = x.size
    while n > 0 and math.isnan(x[n - 1]):
        n -= 1
    return n


@kernel
def _scale_down(x: FloatArray) -> int:
    """Divide ascending values by the power of 2 that is returned, 0 where their squares are in range without."""
    exponent = math.frexp(max(abs(x[0]), abs(x[x.size - 1])))[1]
    if abs(exponent) < _MODERATE:
        return 0
    for i in range(x.size):
        x[i] = math.ldexp(x[i], -exponent)
    return exponent


@entry((ROWS, COLUMN, COLUMN, COLUMN))
def ks_columns(block: FloatArray, loc: FloatArray, scale: FloatArray, out: FloatArray) -> None:
    """`ks_of` each row, sorted, NaN last; loc and scale that are NaN are fitted.

    NaN where there are no values, or a scale to fit and no two distinct values; inf where a value is infinite.
    """
    for j in range(block.shape[0]):
        x = block[j, : n_present(block[j])]
        n = x.size
        fitted = math.isnan(scale[j])
        out[j] = math.nan
        if n > 0 and not (x[n - 1] < math.inf and x[0] > -math.inf):
            out[j] = math.inf
        elif n > 0 and not (fitted and x[0] == x[n - 1]):
            exponent = _scale_down(x) if fitted else 0
            sample = moments_of(x)
            center = sample.mean if math.isnan(loc[j]) else math.ldexp(loc[j], -exponent)
            out[j] = ks_of(x, center, math.sqrt(sample.m2 / (n - 1.0)) if fitted else scale[j])
