"""One sorted column: its order statistics, and sums over any range of it.

In a sorted column a median is a lookup, the median absolute deviation a binary
search, and the values that an M-estimator clips are those outside two positions. Sums of blocks, cumulated from the
middle of the column outwards, then give the sum over any range at the cost of two partial blocks: an iteration
of Huber's estimators takes a search and no pass over the data. Outliers never enter those sums, because ranges
reach only as far as the clip positions do.

Values are taken relative to `Sorted.center`, a value of the column: differences from it are exact where values lie
within a factor of two, so a large common offset costs no digits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powerkern._jit import bits_of, float_of, kernel, reduction, widest_vectors

#: Values in a block of the table of sums.
BLOCK = 128

#: Half of the sum of weights, up to its rounding.
SLACK = 1e-12


class Sorted(NamedTuple):
    """A sorted column with running sums from its middle outwards (see `sorted_column`)."""

    y: np.ndarray  #: values, ascending
    w: np.ndarray  #: their weights, positive; empty: all one
    table: np.ndarray  #: sums over whole blocks; rows: weight, sum, sum of squares of the left side, of the right side
    center: float  #: a value of the column; the sums are of y - center
    middle: int  #: number of values on the left side
    median: float  #: relative to the center
    left_weight: float
    right_weight: float


class Inside(NamedTuple):
    """Weight, sum and sum of squares of the differences from the center over a range of a column."""

    weight: float
    first: float
    second: float


@kernel
def table_width(n: int) -> int:
    """Columns of the table, 6 rows high, that `sorted_column` needs for n values."""
    return n // BLOCK + 2


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
def _range_sums(y: np.ndarray, w: np.ndarray, start: int, stop: int, center: float) -> Inside:
    """Sums over y[start:stop], value by value."""
    if w.size == 0:
        weight, first, second = _sums(y[start:stop], None, center)
    else:
        weight, first, second = _sums(y[start:stop], w[start:stop], center)
    return Inside(weight, first, second)


@kernel
def _fill(table: np.ndarray, y: np.ndarray, w: np.ndarray, center: float, middle: int) -> tuple[float, float]:
    """Fill the table; returns the weights of the two sides."""
    totals = (0.0, 0.0)
    for side in range(2):
        length = y.size - middle if side else middle
        weight, first, second = 0.0, 0.0, 0.0
        n_blocks = (length + BLOCK - 1) // BLOCK
        rows = table[3 * side : 3 * side + 3]
        for b in range(n_blocks):
            rows[0, b], rows[1, b], rows[2, b] = weight, first, second
            near, far = b * BLOCK, min((b + 1) * BLOCK, length)
            start, stop = (middle + near, middle + far) if side else (middle - far, middle - near)
            block = _range_sums(y, w, start, stop, center)
            weight += block.weight
            first += block.first
            second += block.second
        rows[0, n_blocks], rows[1, n_blocks], rows[2, n_blocks] = weight, first, second
        totals = (totals[1], weight)
    return totals


@kernel
def _side(col: Sorted, right: bool, count: int) -> Inside:
    """Sums over the `count` values of a side that are nearest to the middle."""
    b = count // BLOCK
    near = b * BLOCK
    if right:
        rest = _range_sums(col.y, col.w, col.middle + near, col.middle + count, col.center)
        rows = col.table[3:6]
    else:
        rest = _range_sums(col.y, col.w, col.middle - count, col.middle - near, col.center)
        rows = col.table[0:3]
    return Inside(rows[0, b] + rest.weight, rows[1, b] + rest.first, rows[2, b] + rest.second)


@kernel
def inside(col: Sorted, lo: int, hi: int) -> Inside:
    """Sums over y[lo:hi]; apart from exact cancellation, only values between the middle and lo, hi take part."""
    if lo >= col.middle:
        far, near = _side(col, True, hi - col.middle), _side(col, True, lo - col.middle)
    elif hi <= col.middle:
        far, near = _side(col, False, col.middle - lo), _side(col, False, col.middle - hi)
    else:
        left, right = _side(col, False, col.middle - lo), _side(col, True, hi - col.middle)
        return Inside(left.weight + right.weight, left.first + right.first, left.second + right.second)
    return Inside(far.weight - near.weight, far.first - near.first, far.second - near.second)


@kernel
def weight_before(col: Sorted, position: int) -> float:
    """Weight of the values before a position."""
    if col.w.size == 0:
        return float(position)
    if position <= col.middle:
        return col.left_weight - _side(col, False, col.middle - position).weight
    return col.left_weight + _side(col, True, position - col.middle).weight


@kernel
def sum_of(w: np.ndarray) -> float:
    """The sum of the weights."""
    total = 0.0
    for i in range(w.size):
        total += w[i]
    return total


@kernel
def weight_of_all(y: np.ndarray, w: np.ndarray) -> float:
    """The weight of all values: without weights their number."""
    return sum_of(w) if w.size > 0 else float(y.size)


# --- order statistics ---------------------------------------------------------------------------------


@kernel
def n_present(y: np.ndarray) -> int:
    """How many values come before the NaN that end a sorted column."""
    low, high = 0, y.size
    while low < high:
        middle = (low + high) >> 1
        if y[middle] == y[middle]:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def position_of(y: np.ndarray, center: float, t: float, guess: int) -> int:
    """How many values have y - center < t; quick where `guess` is near."""
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
def _middle_of(y: np.ndarray, w: np.ndarray) -> tuple[int, int]:
    """Positions of the lower and the upper median."""
    n = y.size
    if w.size == 0:
        return (n - 1) // 2, n // 2
    return rank_of_weight(w, 0.5 * sum_of(w))


@kernel
def rank_of_weight(w: np.ndarray, weight: float) -> tuple[int, int]:
    """First positions where the running sum of weights reaches, and where it exceeds, `weight`."""
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
def quantile_of(y: np.ndarray, probability: float) -> float:
    """Quantile of a sorted column, interpolated between order statistics (type 7 of Hyndman and Fan; numpy's)."""
    n = y.size
    if n == 0:
        return math.nan
    at = probability * (n - 1)
    i = min(int(at), n - 1)
    low, high = float(y[i]), float(y[min(i + 1, n - 1)])
    return low + (at - i) * (high - low)


@kernel
def sorted_column(y: np.ndarray, w: np.ndarray, table: np.ndarray) -> Sorted:
    """A sorted column, of at least one value, with sums taken from its median.

    Parameters
    ----------
    y : ndarray, shape (n,)
        Values, ascending; no NaN.
    w : ndarray, shape (n,) or (0,)
        Their weights, all positive; none: all one.
    table : ndarray, shape (6, table_width(n)) or wider
        Scratch, kept by the result.
    """
    lower, upper = _middle_of(y, w)
    center = y[lower]
    left_weight, right_weight = _fill(table, y, w, center, upper)
    return Sorted(y, w, table, center, upper, 0.5 * (y[upper] - center), left_weight, right_weight)


@kernel
def without_sums(y: np.ndarray, w: np.ndarray, table: np.ndarray) -> Sorted:
    """`sorted_column` for order statistics only: its table is not filled."""
    lower, upper = _middle_of(y, w)
    left, right = float(upper), float(y.size - upper)
    if w.size > 0:
        left, right = _range_sums(y, w, 0, upper, 0.0).weight, _range_sums(y, w, upper, y.size, 0.0).weight
    return Sorted(y, w, table, y[lower], upper, 0.5 * (y[upper] - y[lower]), left, right)


@kernel
def column_about(y: np.ndarray, w: np.ndarray, table: np.ndarray, center: float) -> Sorted:
    """`sorted_column` about any center; its `median` is then 0."""
    middle = position_of(y, center, 0.0, y.size // 2)
    left_weight, right_weight = _fill(table, y, w, center, middle)
    return Sorted(y, w, table, center, middle, 0.0, left_weight, right_weight)


@kernel
def distance_at(col: Sorted, point: float, weight: float) -> float:
    """Quantile of ``|y - center - point|``: the distance up to which there is that much weight.

    The mean of the first distances where the running weight reaches, and where it exceeds, `weight`; with half of
    the total, the median. O(log n) without weights, O(n) with them.
    """
    y, center = col.y, col.center
    if col.w.size == 0:
        lower, upper = distances_of_rank(y, center, point, math.ceil(weight))
        return lower if weight != math.floor(weight) or weight >= y.size else 0.5 * (lower + upper)
    return _weighted_distance(col, point, position_of(y, center, point, col.middle), weight)


@kernel
def distances_of_rank(y: np.ndarray, center: float, point: float, rank: int) -> tuple[float, float]:
    """The rank-th smallest of the distances ``|y - center - point|``, and the next.

    The `rank` values nearest the point are consecutive; where they start is found by bisection.
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
def _weighted_distance(col: Sorted, point: float, left: int, weight: float) -> float:
    y, w, center = col.y, col.w, col.center
    i, j = left - 1, left
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
    """Median of ``|y - center - point|``, without consistency factor."""
    return distance_at(col, point, 0.5 * (col.left_weight + col.right_weight))


@kernel
def iqr_of(y: np.ndarray, w: np.ndarray) -> float:
    """Distance between the quartiles (`quantile_of`); weights count repetitions."""
    if w.size == 0:
        return quantile_of(y, 0.75) - quantile_of(y, 0.25)
    return _weighted_quantile(y, w, 0.75) - _weighted_quantile(y, w, 0.25)


@kernel
def _weighted_quantile(y: np.ndarray, w: np.ndarray, probability: float) -> float:
    at = max(probability * (sum_of(w) - 1.0), 0.0)
    rank = float(np.floor(at))  # math.floor of numba is an int64, which overflows
    low, high = float(y[rank_of_weight(w, rank)[1]]), float(y[rank_of_weight(w, rank + 1.0)[1]])
    return low + (at - rank) * (high - low)


@kernel
def qn_of(y: np.ndarray, w: np.ndarray) -> float:
    """The distance of rank h (h - 1)/2 of all pairs, h = floor(n/2) + 1: Qn without its factor.

    P. J. Rousseeuw and C. Croux, "Alternatives to the median absolute deviation", JASA 88, 1993, section 3. Found by
    bisection over all float64, each step a pass with two pointers; weights count repetitions.
    """
    total = weight_of_all(y, w)
    if total < 2.0:
        return 0.0
    half = float(np.floor(0.5 * total)) + 1.0
    share = (1.0 - 1e-12) * (half / total) * ((half - 1.0) / total)
    least, most = 0, bits_of(y[y.size - 1] - y[0])
    while least < most:
        middle = least + (most - least) // 2
        if _share_within(y, w, total, float_of(middle)) >= share:
            most = middle
        else:
            least = middle + 1
    return float_of(most)


@kernel
def _share_within(y: np.ndarray, w: np.ndarray, total: float, distance: float) -> float:
    """Twice the weight of the pairs at most so far apart, over the square of the total weight."""
    first, share, inside = 0, 0.0, 0.0
    for j in range(y.size):
        weight = w[j] if w.size > 0 else 1.0
        while y[j] - y[first] > distance:
            inside -= w[first] if w.size > 0 else 1.0
            first += 1
        share += weight / total * ((2.0 * inside + weight - 1.0) / total)
        inside += weight
    return share


# --- trimmed means ------------------------------------------------------------------------------------


@kernel
def trimmed_mean(y: np.ndarray, w: np.ndarray, below: float, above: float) -> float:
    """Mean of a sorted column without a weight `below` of its smallest and `above` of its largest values."""
    lo, hi = 0, y.size
    if w.size == 0:
        lo, hi, below, above = int(below), y.size - int(above), 0.0, 0.0
    else:
        while below >= w[lo]:
            below -= w[lo]
            lo += 1
        while above >= w[hi - 1]:
            above -= w[hi - 1]
            hi -= 1
    center = y[min(max(y.size // 2, lo), hi - 1)]  # of what is kept: far from it, the sums would lose their digits
    kept = _range_sums(y, w, lo, hi, center)
    first = kept.first - (below * (y[lo] - center) + above * (y[hi - 1] - center))
    return float(center + first / (kept.weight - below - above))
