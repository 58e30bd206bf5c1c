"""Frequency weights of a sorted column, as tables that make weighted order statistics fast.

A row of weight 3 counts as three rows. If ``sum w**2/sum w`` is less than one, the weights are treated as relative, and
that quantity counts as one row (`FrequencyWeights.unit`). Equal weights below one thus give the same results as no
weights, and weights that sum to one count as their effective number of rows. Results are continuous in the weights: as
a weight tends to 0, they tend to the results without the row.

A quantile is the first value at which the running weight reaches the given fraction. The median is the mean of two
values: the first at which the running weight reaches one half, and the first at which the running weight exceeds one
half. Repeating rows would give the same results. Positions depend only on the weights, so the tables are made once and
serve all transforms of a column. The median distance from a point takes O(log n) with tables.
`order_statistics.mad_about` takes O(n) and needs no tables, which suits a single evaluation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powerkern._jit import COLUMN, COUNTS, kernel, named_tuple, reduction, specialize_on_none
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.elementary.constants import count_below
from powerkern.kernels.location.order_statistics import SLACK, distances_of_rank, sum_weights

#: Number of nodes for normal scores (`powerkern.kernels.robust.qq`) in addition to one per row; enough for as many
#: repetitions as float64 can count.
ROOM_FOR_NODES = 16_384
#: Largest binary exponent of the factor that scales weights, a limit for tiny weights.
_MOST = 1000


class ScoreNodes(NamedTuple):
    """Nodes that represent the normal scores of repeated rows; a node stands for several copies of one row.

    Robust objectives use the nodes (`powerkern.kernels.robust.qq`).
    """

    row: IntArray  #: index of the row
    score: FloatArray  #: mean of the scores
    spread: FloatArray  #: variance of the scores
    weight: FloatArray  #: number of repetitions


class FrequencyWork(NamedTuple):
    """Scratch for the arrays of `FrequencyWeights`."""

    w: FloatArray
    before: FloatArray
    after: FloatArray
    half_partner: IntArray
    majority_partner: IntArray
    nodes: ScoreNodes


class FrequencyWeights(NamedTuple):
    """The positive weights of a sorted column, scaled so that they sum to about one, and tables of running sums."""

    w: FloatArray
    before: FloatArray  #: weight of the values before position i, i = 0..n
    after: FloatArray  #: weight of the values at position i and later, i = 0..n
    #: for each i, the smallest j such that values i..j have half of the weight, and more than half; n if there is none
    half_partner: IntArray
    majority_partner: IntArray
    nodes: ScoreNodes
    lower: int  #: position of the lower median
    upper: int  #: position of the upper median
    total: float  #: sum of `w`
    unit: float  #: the weight that counts as one row
    factor: float  #: the power of two that scaled the weights


FREQUENCY_WORK = named_tuple(
    FrequencyWork, COLUMN, COLUMN, COLUMN, COUNTS, COUNTS, named_tuple(ScoreNodes, COUNTS, COLUMN, COLUMN, COLUMN)
)


def new_frequency_work(n: int) -> FrequencyWork:
    """Allocate a `FrequencyWork` for columns of up to `n` values."""
    size = n + ROOM_FOR_NODES if n else 0
    nodes = ScoreNodes(np.empty(size, np.int64), *(np.empty(size) for _ in range(3)))
    w, before, after = np.empty(n), np.empty(n + 1), np.empty(n + 1)
    return FrequencyWork(w, before, after, np.empty(n, np.int64), np.empty(n, np.int64), nodes)


# --- made once for a column ---------------------------------------------------------------------------


@kernel
def frequency_weights(weight: FloatArray, work: FrequencyWork) -> FrequencyWeights:
    """Return the tables for the weights of a non-empty sorted column; score nodes are allocated but not set."""
    n = weight.size
    w, before, after = work.w[:n], work.before[: n + 1], work.after[: n + 1]
    factor = math.ldexp(1.0, min(-math.frexp(sum_weights(weight))[1], _MOST))
    for i in range(n):
        w[i] = factor * weight[i]
    squares = _cumulate(w, before)
    _cumulate(w[::-1], after[::-1])
    total = before[n]
    half_partner, majority_partner = work.half_partner[:n], work.majority_partner[:n]
    lower = count_below(before[1:], 0.5 * total * (1.0 - SLACK))
    upper = count_below(before[1:], 0.5 * total * (1.0 + SLACK))
    _partners(before, 0.5 * total * (1.0 - SLACK), half_partner)
    _partners(before, 0.5 * total * (1.0 + SLACK), majority_partner)
    unit = min(factor, squares / total)
    return FrequencyWeights(
        w, before, after, half_partner, majority_partner, work.nodes, lower, upper, total, unit, factor
    )


@kernel
def _cumulate(w: FloatArray, out: FloatArray) -> float:
    """Write the running sums of `w`, beginning with 0; return the sum of squares of `w`.

    The running sums are compensated for rounding errors (Neumaier 1974).
    """
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
def _partners(before: FloatArray, weight: float, out: IntArray) -> None:
    """Write, for each i, the smallest j for which values i, ..., j weigh more than `weight`; n if there is none.

    ``before[i]`` is the total weight of the values before i.
    """
    n, j = out.size, 0
    for i in range(n):
        while j < n and not before[j + 1] - before[i] > weight:
            j += 1
        out[i] = j


# --- order statistics; if counts is None, every value counts once ----------------------------------


@kernel
def weight_sum(counts: FrequencyWeights | None, n: int) -> float:
    """Return the total weight of all `n` values."""
    if counts is None:
        return float(n)
    return counts.total


@kernel
def weight_unit(counts: FrequencyWeights | None) -> float:
    """Return the weight that counts as one row."""
    if counts is None:
        return 1.0
    return counts.unit


@kernel
def unscale_weight(counts: FrequencyWeights | None, weight: float) -> float:
    """Convert a scaled weight to the units of the weights that the caller provided."""
    if counts is None:
        return weight
    return weight / counts.factor


@kernel
def weight_at(counts: FrequencyWeights | None, i: int) -> float:
    """Return the scaled weight of value i of the sorted column; 1 if there are no weights."""
    if counts is None:
        return 1.0
    return float(counts.w[i])


@kernel
def weight_outside(counts: FrequencyWeights | None, lo: int, hi: int, n: int) -> tuple[float, float]:
    """Return the weight of the values before position `lo`, and the weight of the values from position `hi` on.

    Parameters
    ----------
    counts : FrequencyWeights or None
        Weights of the values; None if all are one.
    lo : int
        Number of values before the range ``y[lo:hi]``.
    hi : int
        End of the range.
    n : int
        The number of values.
    """
    if counts is None:
        return float(lo), float(n - hi)
    return counts.before[lo], counts.after[hi]


@kernel
def weight_inside(counts: FrequencyWeights | None, lo: int, hi: int) -> float:
    """Return the weight of ``y[lo:hi]``, summed directly, since a difference of running sums would lose digits."""
    if counts is None:
        return float(hi - lo)
    return sum_weights(counts.w[lo:hi])


@specialize_on_none()
def weights_between(counts: FrequencyWeights | None, lo: int, hi: int) -> FloatArray | None:
    """Return the weights of ``y[lo:hi]``, or None if there are no weights."""
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
def position_at(counts: FrequencyWeights, fraction: float) -> int:
    """Return the position at which the running weight, from the smallest value up, first reaches `fraction`.

    `fraction` is a fraction of the total weight.
    """
    return min(count_below(counts.before[1:], fraction * counts.total * (1.0 - SLACK)), counts.w.size - 1)


@kernel
def position_from_above(counts: FrequencyWeights, fraction: float) -> int:
    """Return the index of the largest value whose weight and those of all larger values reach `fraction` together.

    `fraction` is a fraction of the total weight. The index refers to the values in ascending order.
    """
    last = counts.w.size - 1
    return last - min(count_below(counts.after[last::-1], fraction * counts.total * (1.0 - SLACK)), last)


@kernel
def middle_positions(counts: FrequencyWeights | None, n: int) -> tuple[int, int]:
    """Return the positions of the lower and the upper median."""
    if counts is None:
        return (n - 1) >> 1, n >> 1
    return counts.lower, counts.upper


@kernel
def middle_distance(y: FloatArray, counts: FrequencyWeights | None, center: float, point: float) -> float:
    """Return the median of ``|y - center - point|``, without a consistency factor.

    Parameters
    ----------
    y : ndarray of float64, shape (n,)
        The values, ascending.
    counts : FrequencyWeights or None
        Weights of the values; None if all are one.
    center : float
        A value of the column. It is subtracted from y first, so that no digits are lost.
    point : float
        The point from which distances are measured, relative to `center`.
    """
    if counts is None:
        lower, upper = distances_of_rank(y, center, point, (y.size + 1) >> 1)
        return lower if y.size & 1 else 0.5 * (lower + upper)
    return 0.5 * (
        _distance_holding_half(y, counts.half_partner, center, point)
        + _distance_holding_half(y, counts.majority_partner, center, point)
    )


@kernel
def _distance_holding_half(y: FloatArray, partner: IntArray, center: float, point: float) -> float:
    """Return the smallest radius of an interval about a point that contains one of the windows of a given weight.

    The windows are the values i, ..., ``partner[i]`` for all i, and the point is ``center + point``. For window i the
    radius is the larger of two distances. One decreases and the other increases with i, so bisection finds the best i.
    """
    n = y.size
    low, high = 0, n
    while low < high:
        i = (low + high) >> 1
        if partner[i] < n and point - (y[i] - center) > (y[partner[i]] - center) - point:
            low = i + 1
        else:
            high = i
    radius = math.inf
    if low < n and partner[low] < n:
        radius = (y[partner[low]] - center) - point
    if low > 0:
        radius = min(radius, point - (y[low - 1] - center))
    return radius


@kernel
def median_and_mad(y: FloatArray, counts: FrequencyWeights | None) -> tuple[float, float]:
    """Return the median and the median absolute deviation (without a consistency factor) of ascending values y.

    There is at least one value. `counts` holds the weights of the values; None: all one.
    """
    lower, upper = middle_positions(counts, y.size)
    half_gap = 0.5 * (y[upper] - y[lower])
    return y[lower] + half_gap, middle_distance(y, counts, y[lower], half_gap)
