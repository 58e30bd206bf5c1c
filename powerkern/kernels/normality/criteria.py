"""How far sorted columns are from normal: Kolmogorov-Smirnov distance, straightness of the QQ plot, moments."""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import (
    BLOCKS,
    COLUMN,
    ROWS,
    bits_of,
    entry,
    float_of,
    inlined,
    kernel,
    reduction,
)
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.erf import SQRT_HALF, erf
from powerkern.kernels.moments import moments_of, sum_of
from powerkern.kernels.robust.order_statistics import n_present
from powerkern.kernels.robust.qq import FILLIBEN, filliben_end, first_score, normal_nodes
from powerkern.kernels.robust.weights import COUNTS_WORK, Counts, CountsWork, counts_of

_BITS_OF_2_52 = 0x4330000000000000

#: Largest distance of normal quantiles that share a node of `powerkern.kernels.robust.qq.normal_nodes`.
_CLOSE = 1.0 / 48.0

#: Positions of the figures in a row that `normality_columns` writes.
SKEWNESS, KURTOSIS, PPCC, COUNT = range(4)
N_NORMALITY = 4


class Weighing(NamedTuple):
    """Weights of a sorted column, and the normal quantiles and probabilities of its values, see `weigh_columns`."""

    equal: float  #: the share of each value where all are equal: `share` and `middle` are not read then; otherwise 0
    quantile: FloatArray  #: mean normal quantile of the copies of each value, in units of their root mean square
    share: FloatArray  #: of the weight; they sum to one
    middle: FloatArray  #: the empirical distribution, half way up the step at each value
    n: float  #: how many values the weights are worth
    spread: float  #: half the variance of quantiles within values


@inlined
def share_at(weighing: Weighing, i: int) -> float:
    """The share of a value."""
    return weighing.equal if weighing.equal > 0.0 else weighing.share[i]


@inlined
def half_past(i: int) -> float:
    """i + 1/2, i >= 0, from bits: AVX2 has no instruction that makes floats of integers."""
    return float_of(i | _BITS_OF_2_52) - 4503599627370495.5


@kernel
def ks_of(weighing: Weighing, y: FloatArray, loc: float, scale: float) -> float:
    """Largest distance between the empirical distribution of ascending values and N(loc, scale**2).

    With F_i = Phi((y_i - loc)/scale), p_i the share of a value and m_i the middle of its step, max_i
    abs(F_i - m_i) + p_i/2. The departures F_i - m_i are left in place of the values.
    """
    up = 2.0**100 if scale < 2.0**-1000 else 1.0  # the inverse of a subnormal scale would overflow
    per_scale, equal = SQRT_HALF / (scale * up), weighing.equal
    largest = 0  # bit patterns of positive floats are ordered as they are; integers have a maximum that vectorises
    if equal > 0.0:
        for i in range(y.size):
            y[i] = 0.5 + 0.5 * erf((y[i] - loc) * up * per_scale) - half_past(i) * equal
            largest = max(largest, bits_of(abs(y[i])))
        return float_of(largest) + 0.5 * equal
    for i in range(y.size):
        y[i] = 0.5 + 0.5 * erf((y[i] - loc) * up * per_scale) - weighing.middle[i]
        largest = max(largest, bits_of(abs(y[i]) + 0.5 * weighing.share[i]))
    return float_of(largest)


@reduction
def mean_and_variance(weighing: Weighing, y: FloatArray) -> tuple[float, float]:
    """Mean and variance (1/n) of values with their weights, in two passes."""
    mean, first, second = 0.0, 0.0, 0.0
    for i in range(y.size):
        mean += share_at(weighing, i) * y[i]
    for i in range(y.size):
        deviation = y[i] - mean
        first += share_at(weighing, i) * deviation
        second += share_at(weighing, i) * (deviation * deviation)
    return mean + first, second - first * first  # the mean was rounded


@reduction
def decorrelation_of(weighing: Weighing, y: FloatArray, mean: float, per_sd: float) -> float:
    """1 - r, without cancellation, for the correlation r of values of this mean and 1/sd with their quantiles."""
    total = 0.0
    for i in range(y.size):
        difference = (y[i] - mean) * per_sd - weighing.quantile[i]
        total += share_at(weighing, i) * (difference * difference)
    return 0.5 * total + weighing.spread


@entry((ROWS, ROWS, COUNTS_WORK, BLOCKS, ROWS))
def weigh_columns(
    columns: FloatArray, weights: FloatArray, work: CountsWork, out: FloatArray, figures: FloatArray
) -> None:
    """The fields of `Weighing` of sorted rows, NaN last, with positive weights.

    Parameters
    ----------
    columns, weights : (p, n)
    work : CountsWork
        Scratch.
    out : (3, p, n)
        Receives quantile, share and middle of each value.
    figures : (p, 2)
        Receives the number and the spread of each row.
    """
    for j in range(columns.shape[0]):
        n = n_present(columns[j])
        if n > 0:
            _weigh(counts_of(weights[j, :n], work), out[0, j, :n], out[1, j, :n], out[2, j, :n], figures[j])


@kernel
def _weigh(counts: Counts, quantile: FloatArray, share: FloatArray, middle: FloatArray, figures: FloatArray) -> None:
    n, total, unit = share.size, counts.total, counts.unit
    row, score, spread, weight = normal_nodes(counts, FILLIBEN, _CLOSE)
    quantile[:] = 0.0
    squares, between = 0.0, 0.0
    for k in range(row.size):
        quantile[row[k]] += weight[k] * score[k]
        squares += weight[k] * (score[k] * score[k] + spread[k])
    more, formula = filliben_end(counts), first_score(counts)
    for i in range(n):  # the first and the last copy have a rule of their own
        first = max(min(unit, counts.before[i + 1]) - counts.before[i], 0.0)
        last = max(min(unit, counts.after[i]) - counts.after[i + 1], 0.0)
        quantile[i] += (first - last) * more
        squares += (first + last) * more * (2.0 * formula + more)
    size = math.sqrt(squares / total)
    for i in range(n):
        share[i] = counts.w[i] / total
        quantile[i] /= counts.w[i] * size
        middle[i] = 0.5 * (counts.before[i] + counts.before[i + 1]) / total
        between += share[i] * (quantile[i] * quantile[i])
    figures[0], figures[1] = total / unit, max(0.5 - 0.5 * between, 0.0)


@kernel
def _largest_one(x: FloatArray, y: FloatArray) -> int:
    """y = ascending x over 2**e, with the largest magnitude in [1/2, 1), so that no square overflows; returns e."""
    exponent = math.frexp(max(abs(x[0]), abs(x[x.size - 1])))[1]
    half = exponent // 2
    first, second = math.ldexp(1.0, -half), math.ldexp(1.0, half - exponent)  # one factor might be subnormal
    for i in range(x.size):
        y[i] = x[i] * first * second
    return exponent


@entry((ROWS, COLUMN, COLUMN, COLUMN))
def ks_columns(block: FloatArray, loc: FloatArray, scale: FloatArray, out: FloatArray) -> None:
    """`ks_of` each row, sorted, NaN last, which is overwritten; loc and scale that are NaN are fitted.

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
            exponent = _largest_one(x, x) if fitted else 0
            sample = moments_of(x)
            center = sample.mean if math.isnan(loc[j]) else math.ldexp(loc[j], -exponent)
            sd = math.sqrt(sample.m2 / (n - 1.0)) if fitted else scale[j]
            out[j] = ks_of(Weighing(1.0 / n, x, x, x, float(n), 0.0), x, center, sd)


@reduction
def _deviations(weighing: Weighing, y: FloatArray, mean: float, squares: FloatArray) -> float:
    """Subtract the mean from values, and write the squares times their shares; returns the mean that is left."""
    total = 0.0
    for i in range(y.size):
        y[i] -= mean
        squares[i] = share_at(weighing, i) * (y[i] * y[i])
        total += share_at(weighing, i) * y[i]
    return total


@kernel
def _square(y: FloatArray) -> None:
    for i in range(y.size):
        y[i] *= y[i]


@kernel
def _normality_of(weighing: Weighing, x: FloatArray, y: FloatArray, squares: FloatArray, out: FloatArray) -> None:
    """Figures of ascending finite values, two of them distinct."""
    _largest_one(x, y)
    mean, variance = mean_and_variance(weighing, y)
    shift = _deviations(weighing, y, mean, squares)  # the mean is rounded, as is felt where values are adjacent numbers
    out[PPCC] = 1.0 - decorrelation_of(weighing, y, shift, 1.0 / math.sqrt(variance))
    square = shift * shift
    third = sum_of(y, squares)
    _square(y)
    fourth = sum_of(y, squares) - shift * (4.0 * third - 6.0 * shift * variance - 3.0 * shift * square)
    third -= shift * (3.0 * variance + square)
    out[SKEWNESS] = third / (variance * math.sqrt(variance))
    out[KURTOSIS] = fourth / (variance * variance) - 3.0


@entry((ROWS, BLOCKS, ROWS, ROWS, ROWS))
def normality_columns(
    block: FloatArray, weighed: FloatArray, figures: FloatArray, work: FloatArray, out: FloatArray
) -> None:
    """Skewness, excess kurtosis, correlation with normal quantiles, and number of values of each row.

    Parameters
    ----------
    block : (p, n)
        Columns as rows, sorted, NaN last.
    weighed, figures
        Their weights, see `weighing_of`.
    work : (2, n)
        Scratch.
    out : (p, N_NORMALITY)
        Receives the figures, moments with 1/n; NaN where no two values are distinct or one is infinite.
    """
    for j in range(block.shape[0]):
        n = n_present(block[j])
        out[j] = math.nan
        out[j, COUNT] = 0.0
        if n > 0:
            weighing = weighing_of(weighed, figures, j, block[j, :n])
            out[j, COUNT] = weighing.n
            if _is_spread(block[j, :n]):
                _normality_of(weighing, block[j, :n], work[0, :n], work[1, :n], out[j])


@kernel
def _is_spread(x: FloatArray) -> bool:
    """Whether ascending values are finite, and two of them distinct."""
    return x.size > 1 and -math.inf < x[0] < x[-1] < math.inf


@kernel
def weighing_of(weighed: FloatArray, figures: FloatArray, j: int, x: FloatArray) -> Weighing:
    """The weights of the values `x` of row j.

    Parameters
    ----------
    weighed : (3, p, n), or (1, p, n) or (1, 1, n)
        Quantiles, shares and middles by `weigh_columns`. Of equal weights the quantiles alone, where those are used;
        one row stands for all rows.
    figures : (p, 2)
        Numbers and spreads by `weigh_columns`; not read where weights are equal.
    """
    n, k = x.size, min(j, weighed.shape[1] - 1)
    quantile = weighed[0, k, :n]
    if weighed.shape[0] == 1:  # `x` in place of shares: masked loads that read nothing are slow beyond an array
        return Weighing(1.0 / n, quantile, x, x, float(n), 0.0)
    return Weighing(0.0, quantile, weighed[1, k, :n], weighed[2, k, :n], figures[k, 0], figures[k, 1])
