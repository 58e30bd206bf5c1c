"""Order statistics of one sorted column, and sums over any range of its values.

In a sorted column the median is a lookup and the median absolute deviation a binary search. The values that an
M-estimator does not clip are a contiguous range, so sums over them need only the ends of the range.

Values are measured from `Sorted.center`, a value of the column. The differences are exact for values within a factor of
two of it, so a large common offset costs no digits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powerkern._jit import bits_of, float_of, kernel, reduction, widest_vectors

#: Relative tolerance for comparisons of sums of weights, which have rounding errors.
SLACK = 1e-12


class Sorted(NamedTuple):
    """A sorted column with its median and total weight."""

    y: np.ndarray  #: values, ascending
    w: np.ndarray  #: weights of the values, positive; empty: all one
    center: float  #: the lower median
    median: float  #: the median minus `center`
    total: float  #: sum of the weights


class RangeSums(NamedTuple):
    """Total weight, sum, and sum of squares of the differences y - center over a range of a column."""

    weight: float
    first: float
    second: float


# --- sums ---------------------------------------------------------------------------------------------


@reduction
def _sums(part: np.ndarray, w: np.ndarray | None, center: float) -> tuple[float, float, float]:
    widest_vectors()
    weight, first, second = 0.0, 0.0, 0.0
    for i in range(part.size):
        each, d = 1.0 if w is None else w[i], part[i] - center
        weight += each
        first += each * d
        second += each * d * d
    return weight, first, second


@kernel
def _range_sums(y: np.ndarray, w: np.ndarray, start: int, stop: int, center: float) -> RangeSums:
    """Return the total weight of ``y[start:stop]``, and the weighted sum and sum of squares of ``y - center`` over it.

    Parameters
    ----------
    y : ndarray of float64, shape (n,)
        The values, ascending.
    w : ndarray of float64, shape (n,) or (0,)
        Weights of the values; empty if all are one.
    start, stop : int
        The half-open range of positions.
    center : float
        The value from which differences are measured.
    """
    if w.size == 0:
        weight, first, second = _sums(y[start:stop], None, center)
    else:
        weight, first, second = _sums(y[start:stop], w[start:stop], center)
    return RangeSums(weight, first, second)


@kernel
def sum_range(col: Sorted, lo: int, hi: int) -> RangeSums:
    """Return the total weight of ``y[lo:hi]``, and the weighted sum and sum of squares of ``y - center`` over it."""
    widest_vectors()
    return _range_sums(col.y, col.w, lo, hi, col.center)


@kernel
def weight_between(col: Sorted, lo: int, hi: int) -> float:
    """Return the total weight of ``y[lo:hi]``."""
    return sum_range(col, lo, hi).weight if col.w.size > 0 else float(hi - lo)


@kernel
def sum_weights(w: np.ndarray) -> float:
    """Return the sum of the weights, added one after the other."""
    total = 0.0
    for i in range(w.size):
        total += w[i]
    return total


@kernel
def weight_of_all(y: np.ndarray, w: np.ndarray) -> float:
    """Return the total weight of a column, which is the number of its values if `w` is empty."""
    return sum_weights(w) if w.size > 0 else float(y.size)


# --- order statistics ---------------------------------------------------------------------------------


@kernel
def n_present(y: np.ndarray) -> int:
    """Return the number of values of a sorted column before the NaN at its end."""
    low, high = 0, y.size
    while low < high:
        middle = (low + high) >> 1
        if y[middle] == y[middle]:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def find_position(y: np.ndarray, center: float, t: float, guess: int) -> int:
    """Return the number of values with y - center < t, by a search that is fast if `guess` is near the result.

    Parameters
    ----------
    y : ndarray of float64, shape (n,)
        The values, ascending.
    center : float
        A value of the column. It is subtracted from y first, so that no digits are lost.
    t : float
        The threshold, relative to `center`.
    guess : int
        A position near the result.
    """
    n = y.size
    low, high = 0, n
    step = 1
    at = min(max(guess, 0), n - 1)
    if y[at] - center < t:
        low = at + 1
        while low + step <= n and y[low + step - 1] - center < t:
            low += step
            step *= 2
        high = min(low + step - 1, n)
    else:
        high = at
        while high - step >= 0 and not y[high - step] - center < t:
            high -= step
            step *= 2
        low = max(high - step + 1, 0)
    while low < high:
        mid = (low + high) // 2
        if y[mid] - center < t:
            low = mid + 1
        else:
            high = mid
    return low


@kernel
def rank_of_weight(w: np.ndarray, weight: float) -> tuple[int, int]:
    """Return the positions at which the running sum of `w` first reaches `weight`, and first exceeds `weight`."""
    n = w.size
    total = 0.0
    lower = -1
    for i in range(n):
        total += w[i]
        if lower < 0 and total >= weight * (1.0 - SLACK):
            lower = i
        if total > weight * (1.0 + SLACK):
            return lower, i
    return (lower if lower >= 0 else n - 1), n - 1


@kernel
def sorted_quantile(y: np.ndarray, probability: float) -> float:
    """Return a quantile of a sorted column, interpolated as NumPy does (type 7 of Hyndman and Fan)."""
    n = y.size
    if n == 0:
        return math.nan
    at = probability * (n - 1)
    i = min(int(at), n - 1)
    low, high = float(y[i]), float(y[min(i + 1, n - 1)])
    return low + (at - i) * (high - low)


@kernel
def sorted_column(y: np.ndarray, w: np.ndarray) -> Sorted:
    """Compute the median and the total weight of a sorted column that is not empty; return them with the column.

    Parameters
    ----------
    y : ndarray, shape (n,)
        Values, ascending; no NaN.
    w : ndarray, shape (n,) or (0,)
        Weights of the values, all positive; empty if all are one.
    """
    lower, upper, total = (y.size - 1) // 2, y.size // 2, weight_of_all(y, w)
    if w.size > 0:
        lower, upper = rank_of_weight(w, 0.5 * total)
    return Sorted(y, w, y[lower], 0.5 * (y[upper] - y[lower]), total)


@kernel
def distance_at(col: Sorted, point: float, weight: float) -> float:
    """Return the radius of the interval about ``center + point`` that contains values of total weight `weight`.

    Sort the values by ``|y - center - point|``. The result is the mean of two distances: the first at which the running
    weight reaches `weight`, and the first at which the running weight exceeds `weight`. For half of the total weight
    this is the median distance. The time is O(log n) without weights and O(n) with weights. `weights.middle_distance`
    takes O(log n) with weights, once their tables have been made.
    """
    y, center = col.y, col.center
    if col.w.size == 0:
        lower, upper = distances_of_rank(y, center, point, math.ceil(weight))
        return lower if weight != math.floor(weight) or weight >= y.size else 0.5 * (lower + upper)
    return _weighted_distance(col, point, weight)


@kernel
def distances_of_rank(y: np.ndarray, center: float, point: float, rank: int) -> tuple[float, float]:
    """Return the rank-th smallest of the distances ``|y - center - point|``, and the next larger one.

    The `rank` values nearest to the point are consecutive; bisection finds the first of them.

    Parameters
    ----------
    y : ndarray of float64, shape (n,)
        The values, ascending.
    center : float
        A value of the column. It is subtracted from y first, so that no digits are lost.
    point : float
        The point from which distances are measured, relative to `center`.
    rank : int
        The rank of the distance, from 1.
    """
    n = y.size
    rank = min(max(rank, 1), n)
    low, high = 0, n - rank
    while low < high:
        i = (low + high) >> 1
        if point - (y[i] - center) > (y[i + rank] - center) - point:
            low = i + 1
        else:
            high = i
    distance = max(point - (y[low] - center), (y[low + rank - 1] - center) - point)
    following = math.inf
    if low > 0:
        following = point - (y[low - 1] - center)
    if low + rank < n:
        following = min(following, (y[low + rank] - center) - point)
    return distance, following


@kernel
def _weighted_distance(col: Sorted, point: float, weight: float) -> float:
    y, w, center = col.y, col.w, col.center
    j = find_position(y, center, point, y.size // 2)
    i = j - 1
    total, lower, distance = 0.0, -1.0, 0.0
    while i >= 0 or j < y.size:
        from_left = i >= 0 and (j >= y.size or point - (y[i] - center) <= (y[j] - center) - point)
        if from_left:
            distance = point - (y[i] - center)
            total += w[i]
            i -= 1
        else:
            distance = (y[j] - center) - point
            total += w[j]
            j += 1
        if lower < 0.0 and total >= weight * (1.0 - SLACK):
            lower = distance
        if total > weight * (1.0 + SLACK):
            break
    return 0.5 * (lower + distance) if lower >= 0.0 else distance


@kernel
def mad_about(col: Sorted, point: float) -> float:
    """Return the median of ``|y - center - point|``, without a consistency factor."""
    return distance_at(col, point, 0.5 * col.total)


@kernel
def sorted_iqr(y: np.ndarray, w: np.ndarray) -> float:
    """Return the interquartile range of a sorted column (`sorted_quantile`); weights count repetitions."""
    if w.size == 0:
        return sorted_quantile(y, 0.75) - sorted_quantile(y, 0.25)
    return _weighted_quantile(y, w, 0.75) - _weighted_quantile(y, w, 0.25)


@kernel
def _weighted_quantile(y: np.ndarray, w: np.ndarray, probability: float) -> float:
    at = max(probability * (sum_weights(w) - 1.0), 0.0)
    rank = float(np.floor(at))  # math.floor of numba is an int64, which overflows
    low, high = float(y[rank_of_weight(w, rank)[1]]), float(y[rank_of_weight(w, rank + 1.0)[1]])
    return low + (at - rank) * (high - low)


@kernel
def sorted_qn(y: np.ndarray, w: np.ndarray) -> float:
    """Return Qn without its factor: the distance of rank h (h - 1)/2 among all pairs, h = floor(n/2) + 1.

    See P. J. Rousseeuw and C. Croux, "Alternatives to the median absolute deviation", JASA 88, 1993, section 3. The
    method is bisection over the bit patterns of float64; each step is one pass with two pointers. Weights are numbers
    of repetitions.
    """
    total = weight_of_all(y, w)
    if total < 2.0:
        return 0.0
    half = float(np.floor(0.5 * total)) + 1.0
    fraction = (1.0 - 1e-12) * (half / total) * ((half - 1.0) / total)
    least, most = 0, bits_of(y[y.size - 1] - y[0])
    while least < most:  # at most 63 times, since the range of integers is halved
        middle = least + (most - least) // 2
        if _fraction_within(y, w, total, float_of(middle)) >= fraction:
            most = middle
        else:
            least = middle + 1
    return float_of(most)


@kernel
def _fraction_within(y: np.ndarray, w: np.ndarray, total: float, distance: float) -> float:
    """Return the weighted fraction of pairs that are at most `distance` apart; `total` is the sum of the weights."""
    first, fraction, weight_within = 0, 0.0, 0.0
    for j in range(y.size):
        weight = w[j] if w.size > 0 else 1.0
        while first < j and y[j] - y[first] > distance:
            weight_within -= w[first] if w.size > 0 else 1.0
            first += 1
        fraction += weight / total * ((2.0 * weight_within + weight - 1.0) / total)
        weight_within += weight
    return fraction


# --- trimmed means ------------------------------------------------------------------------------------


@kernel
def trimmed_mean(y: np.ndarray, w: np.ndarray, weight_low: float, weight_high: float) -> float:
    """Return the trimmed mean of a sorted column, given the weight to trim at either end.

    Parameters
    ----------
    y : ndarray of float64, shape (n,)
        The values, ascending.
    w : ndarray of float64, shape (n,) or (0,)
        Weights of the values; empty if all are one.
    weight_low, weight_high : float
        The weight to trim from the smallest and from the largest values. A value may be trimmed in part.
    """
    lo, hi = 0, y.size
    if w.size == 0:
        lo, hi, weight_low, weight_high = int(weight_low), y.size - int(weight_high), 0.0, 0.0
    else:
        while lo < y.size - 1 and weight_low >= w[lo]:
            weight_low -= w[lo]
            lo += 1
        while hi > 1 and weight_high >= w[hi - 1]:
            weight_high -= w[hi - 1]
            hi -= 1
    center = y[min(max(y.size // 2, lo), hi - 1)]  # a value that is kept, so that sums about it lose no digits
    kept = _range_sums(y, w, lo, hi, center)
    first = kept.first - (weight_low * (y[lo] - center) + weight_high * (y[hi - 1] - center))
    return float(center + first / (kept.weight - weight_low - weight_high))
