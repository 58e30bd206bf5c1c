"""How far sorted columns are from normal: Kolmogorov-Smirnov distance, straightness of the QQ plot, moments."""

from __future__ import annotations

import math

from powerkern._jit import COLUMN, ROWS, bits_of, entry, float_of, kernel, reduction, widest_vectors
from powerkern._typing import FloatArray
from powerkern.kernels.erf import erf
from powerkern.kernels.moments import moments_of, sum_of, weighted_sum_of

_SQRT_HALF = 0.7071067811865476
#: Sums of squares neither over- nor underflow where the binary exponents of the largest values are below this.
_MODERATE = 400

#: Where `normality_columns` puts what it finds.
SKEWNESS, KURTOSIS, PPCC, COUNT = range(4)
N_NORMALITY = 4


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


@reduction
def decorrelation_of(y: FloatArray, q: FloatArray, mean: float, scale: float) -> float:
    """1 - r, without cancellation, for the correlation r of y with q, where (y - mean) scale and q have unit length."""
    widest_vectors()
    total = 0.0
    for i in range(y.size):
        difference = (y[i] - mean) * scale - q[i]
        total += difference * difference
    return 0.5 * total


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


@kernel
def _largest_one(x: FloatArray, y: FloatArray) -> None:
    """y = ascending x, divided by the power of 2 that brings the largest magnitude into [1/2, 1)."""
    exponent = math.frexp(max(abs(x[0]), abs(x[x.size - 1])))[1]
    half = exponent // 2
    first, second = math.ldexp(1.0, -half), math.ldexp(1.0, half - exponent)  # one factor might be subnormal
    for i in range(x.size):
        y[i] = x[i] * first * second


@kernel
def _deviations(y: FloatArray, mean: float, squares: FloatArray) -> None:
    """y less its mean, and the squares of that."""
    for i in range(y.size):
        y[i] -= mean
        squares[i] = y[i] * y[i]


@kernel
def _normality_of(x: FloatArray, q: FloatArray, y: FloatArray, squares: FloatArray, out: FloatArray) -> None:
    """Figures of ascending finite values, two of them distinct, given normal quantiles q of unit length."""
    n = float(x.size)
    _largest_one(x, y)
    sample = moments_of(y)
    _deviations(y, sample.mean, squares)
    variance = sample.m2 / n
    shift = sum_of(y) / n  # the mean is rounded, which is felt where the values are adjacent numbers
    square = shift * shift
    third = weighted_sum_of(y, squares) / n
    fourth = weighted_sum_of(squares, squares) / n - shift * (
        4.0 * third - 6.0 * shift * variance - 3.0 * shift * square
    )
    third -= shift * (3.0 * variance + square)
    out[SKEWNESS] = third / (variance * math.sqrt(variance))
    out[KURTOSIS] = fourth / (variance * variance) - 3.0
    out[PPCC] = 1.0 - decorrelation_of(y, q, shift, 1.0 / math.sqrt(sample.m2))


@entry((ROWS, ROWS, ROWS, ROWS))
def normality_columns(block: FloatArray, quantiles: FloatArray, work: FloatArray, out: FloatArray) -> None:
    """Skewness, excess kurtosis, correlation with normal quantiles, and number of values of each row.

    Parameters
    ----------
    block : (p, n)
        Columns as rows, sorted, NaN last.
    quantiles : (p, n)
        Normal quantiles of the positions of each row's values, as a vector of unit length.
    work : (2, n)
        Scratch.
    out : (p, N_NORMALITY)
        Receives the figures, moments with 1/n; NaN where no two values are distinct or one is infinite.
    """
    for j in range(block.shape[0]):
        n = n_present(block[j])
        x = block[j, :n]
        out[j] = math.nan
        out[j, COUNT] = n
        if n > 1 and x[0] < x[n - 1] and x[0] > -math.inf and x[n - 1] < math.inf:
            _normality_of(x, quantiles[j, :n], work[0, :n], work[1, :n], out[j])
