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
    kernel,
    reduction,
    widest_vectors,
)
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.erf import erf
from powerkern.kernels.moments import moments_of, sum_of
from powerkern.kernels.robust.order_statistics import n_present
from powerkern.kernels.robust.qq import FILLIBEN, filliben_end, first_score, normal_nodes
from powerkern.kernels.robust.weights import COUNTS_WORK, Counts, CountsWork, counts_of

_SQRT_HALF = 0.7071067811865476
#: Sums of squares neither over- nor underflow where the binary exponents of the largest values are below this.
_MODERATE = 400

#: Largest distance of normal quantiles that share a node of `powerkern.kernels.robust.qq.normal_nodes`.
_CLOSE = 1.0 / 48.0

#: Positions of the figures in a row that `normality_columns` writes.
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


class Weighing(NamedTuple):
    """Weights of a sorted column, and the normal quantiles and probabilities of its values, see `weigh_columns`."""

    share: FloatArray  #: of the weight; they sum to one
    quantile: FloatArray  #: mean normal quantile of the copies of each value, in units of their root mean square
    middle: FloatArray  #: the empirical distribution, half way up the step at each value
    n: float  #: how many values the weights are worth
    spread: float  #: half the variance of quantiles within values


@reduction
def decorrelation_of(weighing: Weighing, y: FloatArray, mean: float, scale: float) -> float:
    """1 - r, without cancellation, for the correlation r of y with its quantiles; (y - mean) scale has variance 1."""
    widest_vectors()
    total = 0.0
    for i in range(y.size):
        difference = (y[i] - mean) * scale - weighing.quantile[i]
        total += weighing.share[i] * (difference * difference)
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
        Receives share, quantile and middle of each value.
    figures : (p, 2)
        Receives the number and the spread of each row.
    """
    for j in range(columns.shape[0]):
        n = n_present(columns[j])
        if n > 0:
            _weigh(counts_of(weights[j, :n], work), out[0, j, :n], out[1, j, :n], out[2, j, :n], figures[j])


@kernel
def _weigh(counts: Counts, share: FloatArray, quantile: FloatArray, middle: FloatArray, figures: FloatArray) -> None:
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
def _deviations(y: FloatArray, share: FloatArray, mean: float, squares: FloatArray) -> None:
    """y less its mean, and the squares of that, each times its share."""
    widest_vectors()
    for i in range(y.size):
        y[i] -= mean
        squares[i] = share[i] * (y[i] * y[i])


@kernel
def _square(y: FloatArray) -> None:
    widest_vectors()
    for i in range(y.size):
        y[i] *= y[i]


@kernel
def _normality_of(weighing: Weighing, x: FloatArray, y: FloatArray, squares: FloatArray, out: FloatArray) -> None:
    """Figures of ascending finite values, two of them distinct."""
    _largest_one(x, y)
    sample = moments_of(y, weighing.share)
    n = sample.weight
    variance = sample.m2 / n
    _deviations(y, weighing.share, sample.mean, squares)
    shift = sum_of(y, weighing.share) / n  # the mean is rounded, which is felt where values are adjacent numbers
    out[PPCC] = 1.0 - decorrelation_of(weighing, y, shift, 1.0 / math.sqrt(sample.m2))
    square = shift * shift
    third = sum_of(y, squares) / n
    _square(y)
    fourth = sum_of(y, squares) / n - shift * (4.0 * third - 6.0 * shift * variance - 3.0 * shift * square)
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
    weighed, figures : (3, p, n), (p, 2), or (3, 1, n), (1, 2)
        Their weights, see `weigh_columns` and `weighing_of`.
    work : (2, n)
        Scratch.
    out : (p, N_NORMALITY)
        Receives the figures, moments with 1/n; NaN where no two values are distinct or one is infinite.
    """
    for j in range(block.shape[0]):
        n = n_present(block[j])
        weighing = weighing_of(weighed, figures, j, n)
        out[j] = math.nan
        out[j, COUNT] = weighing.n if n > 0 else 0.0
        if _is_spread(block[j, :n]):
            _normality_of(weighing, block[j, :n], work[0, :n], work[1, :n], out[j])


@kernel
def _is_spread(x: FloatArray) -> bool:
    """Whether ascending values are finite, and two of them distinct."""
    return x.size > 1 and -math.inf < x[0] < x[-1] < math.inf


@kernel
def weighing_of(weighed: FloatArray, figures: FloatArray, j: int, n: int) -> Weighing:
    """The weights of row j, of n values; where there is one row of them, it stands for all."""
    k = min(j, weighed.shape[1] - 1)
    return Weighing(weighed[0, k, :n], weighed[1, k, :n], weighed[2, k, :n], figures[k, 0], figures[k, 1])
