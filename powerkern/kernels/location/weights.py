"""Weights of one sorted column: order statistics in which a row counts as often as its weight says.

Weights are counts: a row of weight 3 is that row three times. Where their mean, each weighted by itself,
``sum w**2/sum w``, is less than one, the weights are relative, and that mean counts as one value
(`FrequencyWeights.unit`). Equal weights below one thus give the same results as no weights, and weights that
sum to one count as their effective number of rows. Results are continuous in the weights: as a weight tends to 0, they
tend to the results without the row.

A quantile is the first value at which the running weight reaches the given fraction. The median is the mean of this
value and of the first value at which the running weight exceeds one half. Repeating rows would give the same. The
positions depend on the weights alone, not on the values, so the tables made here once serve all transforms of a column.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powerkern._jit import COLUMN, COUNTS, kernel, named_tuple, reduction, specialize_on_none
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.elementary.constants import count_below
from powerkern.kernels.location.order_statistics import SLACK, distances_of_rank, sum_weights

#: Nodes of the normal scores (`powerkern.kernels.robust.qq`) beyond one per row: of all ranks that float64 can count.
ROOM_FOR_NODES = 16_384
#: Binary exponent of the factor that brings tiny weights to a common scale, at most.
_MOST = 1000


class ScoreNodes(NamedTuple):
    """Normal scores that represent the copies of each row, with weights: see `powerkern.kernels.robust.qq`."""

    row: IntArray
    score: FloatArray  #: their mean
    spread: FloatArray  #: and variance
    weight: FloatArray


class FrequencyWork(NamedTuple):
    """Scratch of `FrequencyWeights`."""

    w: FloatArray
    before: FloatArray
    after: FloatArray
    reach: IntArray
    beyond: IntArray
    nodes: ScoreNodes


class FrequencyWeights(NamedTuple):
    """The weights of a sorted column, all positive, times a power of two that brings their sum to about one."""

    w: FloatArray
    before: FloatArray  #: weight of the values before each, and of all
    after: FloatArray  #: weight from each value on, and 0
    reach: IntArray  #: position up to which there is half of the weight from each value on, or n
    beyond: IntArray  #: as `reach`, for more than a half
    nodes: ScoreNodes
    lower: int  #: position of the lower median
    upper: int
    total: float
    unit: float  #: the weight that counts as one value
    factor: float  #: the power of two


FREQUENCY_WORK = named_tuple(
    FrequencyWork, COLUMN, COLUMN, COLUMN, COUNTS, COUNTS, named_tuple(ScoreNodes, COUNTS, COLUMN, COLUMN, COLUMN)
)


def new_frequency_work(n: int) -> FrequencyWork:
    """Allocate `FrequencyWork` for columns of up to `n` values."""
    size = n + ROOM_FOR_NODES if n else 0
    nodes = ScoreNodes(np.empty(size, np.int64), *(np.empty(size) for _ in range(3)))
    w, before, after = np.empty(n), np.empty(n + 1), np.empty(n + 1)
    return FrequencyWork(w, before, after, np.empty(n, np.int64), np.empty(n, np.int64), nodes)


# --- made once for a column ---------------------------------------------------------------------------


@kernel
def frequency_weights(weight: FloatArray, work: FrequencyWork) -> FrequencyWeights:
    """Make the tables for the weights of a sorted, non-empty column; its nodes are left empty."""
    n = weight.size
    w, before, after = work.w[:n], work.before[: n + 1], work.after[: n + 1]
    factor = math.ldexp(1.0, min(-math.frexp(sum_weights(weight))[1], _MOST))
    for i in range(n):
        w[i] = factor * weight[i]
    squares = _cumulate(w, before)
    _cumulate(w[::-1], after[::-1])
    total = before[n]
    reach, beyond = work.reach[:n], work.beyond[:n]
    lower = count_below(before[1:], 0.5 * total * (1.0 - SLACK))
    upper = count_below(before[1:], 0.5 * total * (1.0 + SLACK))
    _partners(before, 0.5 * total * (1.0 - SLACK), reach)
    _partners(before, 0.5 * total * (1.0 + SLACK), beyond)
    unit = min(factor, squares / total)
    return FrequencyWeights(w, before, after, reach, beyond, work.nodes, lower, upper, total, unit, factor)


@kernel
def _cumulate(w: FloatArray, out: FloatArray) -> float:
    """Write 0 and the running sums, corrected for rounding (Neumaier 1974); return the sum of squares."""
    total, lost, squares = 0.0, 0.0, 0.0
    out[0] = 0.0
    for i in range(w.size):
        new = total + w[i]
        lost += (total - new) + w[i] if total >= w[i] else (w[i] - new) + total
        total = new
        out[i + 1] = total + lost
        squares += w[i] * w[i]
    return squares


@kernel
def _partners(before: FloatArray, share: float, out: IntArray) -> None:
    """For each i, write the first position at which the weight counted from i exceeds `share`; n if it never does."""
    n, j = out.size, 0
    for i in range(n):
        while j < n and not before[j + 1] - before[i] > share:
            j += 1
        out[i] = j


# --- order statistics, of counts that may be None: every value counts once -------------------------------


@kernel
def weight_sum(counts: FrequencyWeights | None, n: int) -> float:
    """Return the weight of all `n` values."""
    if counts is None:
        return float(n)
    return counts.total


@kernel
def weight_unit(counts: FrequencyWeights | None) -> float:
    """Return the weight that counts as one value."""
    if counts is None:
        return 1.0
    return counts.unit


@kernel
def as_given(counts: FrequencyWeights | None, weight: float) -> float:
    """Convert a weight to the units of the weights that the caller gave."""
    if counts is None:
        return weight
    return weight / counts.factor


@kernel
def weight_at(counts: FrequencyWeights | None, i: int) -> float:
    """Return the weight of value i of the sorted column; 1 without weights."""
    if counts is None:
        return 1.0
    return float(counts.w[i])


@kernel
def weight_outside(counts: FrequencyWeights | None, lo: int, hi: int, n: int) -> tuple[float, float]:
    """Return the weight of the values before position `lo`, and the weight of the values at `hi` and after it.

    Parameters
    ----------
    counts : FrequencyWeights or None
        The tables of weights.
    lo : int
        The first position inside.
    hi : int
        The first position after it.
    n : int
        The number of values.
    """
    if counts is None:
        return float(lo), float(n - hi)
    return counts.before[lo], counts.after[hi]


@kernel
def weight_inside(counts: FrequencyWeights | None, lo: int, hi: int) -> float:
    """Return the weight of the values from `lo` to `hi`, summed: a difference of running sums would lose digits."""
    if counts is None:
        return float(hi - lo)
    return sum_weights(counts.w[lo:hi])


@specialize_on_none()
def weights_between(counts: FrequencyWeights | None, lo: int, hi: int) -> FloatArray | None:
    """Return the weights of the values from `lo` to `hi`, or None without weights."""
    return counts.w[lo:hi]  # type: ignore[union-attr]


@reduction
def weighted_mean(x: FloatArray, w: FloatArray | None) -> float:
    """Return the mean of values, weighted unless `w` is None."""
    total, weight = 0.0, 0.0
    for i in range(x.size):
        if w is None:
            total += x[i]
        else:
            total += w[i] * x[i]
            weight += w[i]
    return total / (x.size if w is None else weight)


@kernel
def position_at(counts: FrequencyWeights, share: float) -> int:
    """Return the first position such that this value and the earlier ones have that fraction of the weight."""
    return min(count_below(counts.before[1:], share * counts.total * (1.0 - SLACK)), counts.w.size - 1)


@kernel
def position_from_above(counts: FrequencyWeights, share: float) -> int:
    """Return the last position such that this value and the later ones have that fraction of the weight."""
    last = counts.w.size - 1
    return last - min(count_below(counts.after[last::-1], share * counts.total * (1.0 - SLACK)), last)


@kernel
def middle_positions(counts: FrequencyWeights | None, n: int) -> tuple[int, int]:
    """Return the positions of the lower and the upper median."""
    if counts is None:
        return (n - 1) >> 1, n >> 1
    return counts.lower, counts.upper


@kernel
def middle_distance(y: FloatArray, counts: FrequencyWeights | None, center: float, point: float) -> float:
    """Return the median of ``|y - center - point|``, without consistency factor.

    Parameters
    ----------
    y : ndarray of float64, shape (n,)
        The values, ascending.
    counts : FrequencyWeights or None
        The tables of weights.
    center : float
        A value from which differences are taken, so that they keep their digits.
    point : float
        A point relative to `center`.
    """
    if counts is None:
        lower, upper = distances_of_rank(y, center, point, (y.size + 1) >> 1)
        return lower if y.size & 1 else 0.5 * (lower + upper)
    return 0.5 * (
        _distance_holding_half(y, counts.reach, center, point) + _distance_holding_half(y, counts.beyond, center, point)
    )


@kernel
def _distance_holding_half(y: FloatArray, partner: IntArray, center: float, point: float) -> float:
    """Return the smallest radius about the point that encloses some value i and its partner.

    For value i the radius is the larger of two distances; one decreases with i, the other increases.
    """
    n = y.size
    low, high = 0, n
    while low < high:
        i = (low + high) >> 1
        if partner[i] < n and point - (y[i] - center) > (y[partner[i]] - center) - point:
            low = i + 1
        else:
            high = i
    reach = math.inf
    if low < n and partner[low] < n:
        reach = (y[partner[low]] - center) - point
    if low > 0:
        reach = min(reach, point - (y[low - 1] - center))
    return reach


@kernel
def median_and_mad(y: FloatArray, counts: FrequencyWeights | None) -> tuple[float, float]:
    """Return the median and the median distance from it, of at least one value, without consistency factor."""
    lower, upper = middle_positions(counts, y.size)
    half_gap = 0.5 * (y[upper] - y[lower])
    return y[lower] + half_gap, middle_distance(y, counts, y[lower], half_gap)
