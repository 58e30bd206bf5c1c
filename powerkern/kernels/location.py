"""Location and scale of one sorted column: order statistics, Huber's and Tukey's M-estimators.

Sorting pays for everything else. In a sorted column a median is a lookup, the median absolute deviation a binary
search, and the values that an M-estimator clips are those outside two positions. Sums of blocks, cumulated from the
middle of the column outwards, then give the sum over any stretch at the cost of two partial blocks: an iteration
of Huber's estimators takes a search and no pass over the data. Outliers never enter those sums, because stretches
reach only as far as the clip positions do.

Values are taken relative to `Sorted.center`, a value of the column: differences from it are exact where values lie
within a factor of two, so a large common offset costs no digits.

References
----------
.. [1] P. J. Huber, "Robust estimation of a location parameter", Ann. Math. Statist. 35, 1964, 73-101.
.. [2] P. J. Huber, "Robust Statistics", Wiley, 1981, chapters 5 (scale) and 6 (location and scale).
.. [3] J. Raymaekers, P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning, 2021.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powerkern._jit import kernel, reduction, widest_vectors

#: The equations hold to rounding.
CONVERGED = 0
#: The scale is 0, because too many values are equal: the location is the median.
ZERO_SCALE = 1
#: The cap of iterations was reached.
MAX_ITER = 2
#: No values: location and scale are NaN.
EMPTY = 3

#: 1/Phi^-1(3/4), which makes the median absolute deviation consistent for normal data.
MAD_FACTOR = 1.4826022185056018

#: beta(1.5) as R's cellWise rounds it.
CELLWISE_BETA = 1.556931 / 2.0

#: Values in a block of the table of sums.
BLOCK = 128

_MAX_ITER = 200
_EPS = 2.220446049250313e-16
#: Half of the sum of weights, up to its rounding.
_SLACK = 1e-12
#: P(Z < -1.5): where clip positions are looked for first.
_TAIL = 0.067
#: Values at this multiple of a distance are inside it.
_BEYOND = 1.0 + 1e-9


class LocScale(NamedTuple):
    """Location, scale, iterations and a status."""

    loc: float
    scale: float
    n_iter: int
    status: int


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
    """Weight, sum and sum of squares of the differences from the center over a stretch of a column."""

    weight: float
    first: float
    second: float


def table_width(n: int) -> int:
    """Columns of the table, 6 rows high, that `sorted_column` needs for n values."""
    return n // BLOCK + 2


# --- sums ---------------------------------------------------------------------------------------------


@reduction
def _block_sums(part: np.ndarray, center: float) -> tuple[float, float]:
    widest_vectors()
    first, second = 0.0, 0.0
    for i in range(part.size):
        d = part[i] - center
        first += d
        second += d * d
    return first, second


@reduction
def _weighted_block_sums(part: np.ndarray, w: np.ndarray, center: float) -> tuple[float, float, float]:
    widest_vectors()
    weight, first, second = 0.0, 0.0, 0.0
    for i in range(part.size):
        d = part[i] - center
        weight += w[i]
        first += w[i] * d
        second += w[i] * d * d
    return weight, first, second


@kernel
def _stretch(y: np.ndarray, w: np.ndarray, start: int, stop: int, center: float) -> Inside:
    """Sums over y[start:stop], value by value."""
    if w.size == 0:
        first, second = _block_sums(y[start:stop], center)
        return Inside(float(stop - start), first, second)
    weight, first, second = _weighted_block_sums(y[start:stop], w[start:stop], center)
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
            block = _stretch(y, w, start, stop, center)
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
        rest = _stretch(col.y, col.w, col.middle + near, col.middle + count, col.center)
        rows = col.table[3:6]
    else:
        rest = _stretch(col.y, col.w, col.middle - count, col.middle - near, col.center)
        rows = col.table[0:3]
    return Inside(rows[0, b] + rest.weight, rows[1, b] + rest.first, rows[2, b] + rest.second)


@kernel
def inside(col: Sorted, lo: int, hi: int) -> Inside:
    """Sums over y[lo:hi]; exact cancellation apart, only values between the middle and lo, hi take part."""
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


# --- order statistics ---------------------------------------------------------------------------------


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
    total = 0.0
    for i in range(n):
        total += w[i]
    return _rank(w, 0.5 * total)


@kernel
def _rank(w: np.ndarray, weight: float) -> tuple[int, int]:
    """First positions where the running sum of weights reaches, and where it exceeds, `weight`."""
    n = w.size
    total = 0.0
    lower = -1
    for i in range(n):
        total += w[i]
        if lower < 0 and total >= weight * (1.0 - _SLACK):
            lower = i
        if total > weight * (1.0 + _SLACK):
            return lower, i
    return (lower if lower >= 0 else n - 1), n - 1


@kernel
def median_of(y: np.ndarray) -> float:
    """Median of a sorted column; NaN of none."""
    n = y.size
    if n == 0:
        return math.nan
    a = float(y[(n - 1) // 2])
    return a + 0.5 * (y[n // 2] - a)


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
    """Look at a sorted column, of at least one value, from its median.

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
def column_about(y: np.ndarray, w: np.ndarray, table: np.ndarray, center: float) -> Sorted:
    """`sorted_column` seen from any center; its `median` is then 0."""
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
    left = position_of(y, center, point, col.middle)
    if col.w.size == 0:
        lower = _distance_of_rank(y, center, point, left, math.ceil(weight))
        if weight != math.floor(weight) or weight >= y.size:
            return lower
        return 0.5 * (lower + _distance_of_rank(y, center, point, left, math.floor(weight) + 1))
    return _weighted_distance(col, point, left, weight)


@kernel
def _distance_of_rank(y: np.ndarray, center: float, point: float, left: int, rank: int) -> float:
    """The rank-th smallest of two ascending lists: distances to the left and to the right of the point."""
    rank = min(max(rank, 1), y.size)
    low, high = max(0, rank - (y.size - left)), min(rank, left)  # how many come from the left
    while low < high:
        i = (low + high) // 2
        if point - (y[left - 1 - i] - center) < (y[left + rank - i - 1] - center) - point:
            low = i + 1
        else:
            high = i
    distance = 0.0
    if low > 0:
        distance = point - (y[left - low] - center)
    if rank > low:
        distance = max(distance, (y[left + rank - low - 1] - center) - point)
    return distance


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
        if lower < 0.0 and total >= weight * (1.0 - _SLACK):
            lower = distance
        if total > weight * (1.0 + _SLACK):
            break
    return 0.5 * (lower + distance) if lower >= 0.0 else distance


@kernel
def mad_about(col: Sorted, point: float) -> float:
    """Median of ``|y - center - point|``, without consistency factor."""
    return distance_at(col, point, 0.5 * (col.left_weight + col.right_weight))


# --- Huber's M-estimators -----------------------------------------------------------------------------


@kernel
def beta_of(k: float) -> float:
    """E min(Z**2, k**2) of a standard normal Z: what makes Huber's scale consistent."""
    tail = math.erfc(k / math.sqrt(2.0))  # P(|Z| > k)
    density = math.exp(-0.5 * k * k) / math.sqrt(2.0 * math.pi)
    return (1.0 - tail) + k * k * tail - 2.0 * k * density


@kernel
def location_about(col: Sorted, scale: float, k: float) -> tuple[float, int, bool]:
    """Root mu of sum w psi_k((y - center - mu)/scale) = 0 ([1]_), its iterations, and whether they converged.

    Newton steps, which are exact as soon as no value changes sides, inside a bracket.
    """
    reach = k * scale
    mu, low, high = col.median, col.median - reach, col.median + reach
    total = col.left_weight + col.right_weight
    tail = int(_TAIL * col.y.size)
    lo, hi = tail, col.y.size - tail
    last_lo, last_hi = -1, -1
    for n_iter in range(1, _MAX_ITER + 1):
        lo = position_of(col.y, col.center, mu - reach, lo)
        hi = position_of(col.y, col.center, mu + reach, hi)
        if lo == last_lo and hi == last_hi:
            return mu, n_iter, True
        sums = inside(col, lo, hi)
        below = weight_before(col, lo)
        pull = reach * (total - sums.weight - 2.0 * below)
        excess = sums.first - sums.weight * mu + pull
        if excess == 0.0:
            return mu, n_iter, True
        if excess > 0.0:
            low = mu
        else:
            high = mu
        step = (sums.first + pull) / sums.weight if sums.weight > 0.0 else math.inf
        if low <= step <= high:
            last_lo, last_hi = lo, hi
            if abs(step - mu) <= _EPS * scale:
                return step, n_iter, True
        else:
            last_lo, last_hi = -1, -1
            step = 0.5 * (low + high)
            if not low < step < high:
                return mu, n_iter, True
        mu = step
    return mu, _MAX_ITER, False


@kernel
def scale_about(col: Sorted, point: float, guess: float, k: float, dof: float) -> tuple[float, int, bool]:
    """Root s of sum w min(((y - center - point)/s)**2, k**2) = dof beta(k) ([2]_), iterations, convergence.

    In s**2 the excess of the left side is concave, so Newton steps from above decrease to the root, and end at it as
    soon as no value changes sides. 0 where so many values equal the point that there is no positive root.
    """
    target = dof * beta_of(k)
    total = col.left_weight + col.right_weight
    variance = guess * guess
    tail = int(_TAIL * col.y.size)
    lo, hi = tail, col.y.size - tail
    last_lo, last_hi = -1, -1
    for n_iter in range(1, _MAX_ITER + 1):
        reach = k * math.sqrt(variance)
        lo = position_of(col.y, col.center, point - reach, lo)
        hi = position_of(col.y, col.center, point + reach, hi)
        if lo == last_lo and hi == last_hi:
            return math.sqrt(variance), n_iter, True
        sums = inside(col, lo, hi)
        slope = target - k * k * (total - sums.weight)
        squares = max(sums.second - point * (2.0 * sums.first - point * sums.weight), 0.0)
        if slope > 0.0 and variance > 0.0:
            last_lo, last_hi = lo, hi
            step = squares / slope
            if abs(step - variance) <= 2.0 * _EPS * variance:
                return math.sqrt(step), n_iter, True
            variance = step
            if variance == 0.0:
                return 0.0, n_iter, True
        else:  # far below the root: start above it
            reach = distance_at(col, point, total - 0.5 * target / (k * k))
            if reach == 0.0:
                return 0.0, n_iter, True
            variance = (_BEYOND * reach / k) ** 2
    return math.sqrt(variance), _MAX_ITER, False


@kernel
def huber(y: np.ndarray, w: np.ndarray, table: np.ndarray, k: float) -> LocScale:
    """Huber's M-estimate of location, with the normalised MAD as scale, and of scale about that location ([3]_).

    `y`, `w` and `table` are those of `sorted_column`. With MAD = 0 the location is the median.
    """
    if y.size == 0:
        return LocScale(math.nan, math.nan, 0, EMPTY)
    col = sorted_column(y, w, table)
    start = MAD_FACTOR * mad_about(col, col.median)
    mu, n_location, found = col.median, 0, True
    if start > 0.0:
        mu, n_location, found = location_about(col, start, k)
    scale, n_scale, found_scale = scale_about(col, mu, start, k, col.left_weight + col.right_weight)
    status = ZERO_SCALE if scale == 0.0 else (CONVERGED if found and found_scale else MAX_ITER)
    return LocScale(col.center + mu, scale, n_location + n_scale, status)


@kernel
def huber_one_step(y: np.ndarray, w: np.ndarray, table: np.ndarray, k: float, beta: float) -> LocScale:
    """One reweighting step of `huber` from median and MAD, as R's cellWise takes it (k = 1.5, beta = `CELLWISE_BETA`).

    With u = (y - m0)/s0, m0 the median and s0 the normalised MAD::

        mu    = sum w y min(1, k/|u|) / sum w min(1, k/|u|)
        scale = s1 sqrt(mean min(v**2, k**2) / beta),    v = (y - mu)/s1, s1 the normalised MAD about mu
    """
    if y.size == 0:
        return LocScale(math.nan, math.nan, 0, EMPTY)
    col = _without_sums(y, w, table)
    total = col.left_weight + col.right_weight
    s0 = MAD_FACTOR * mad_about(col, col.median)
    if s0 == 0.0:
        return LocScale(col.center + col.median, 0.0, 0, ZERO_SCALE)
    reach = k * s0
    tail = int(_TAIL * y.size)
    lo = position_of(y, col.center, col.median - reach, tail)
    hi = position_of(y, col.center, col.median + reach, y.size - tail)
    sums = _stretch(y, w, lo, hi, col.center)  # two stretches are cheaper than a table of sums
    below = float(lo) if w.size == 0 else _stretch(y, w, 0, lo, col.center).weight
    origin = col.center + col.median
    outer = _inverse_distances(y[:lo], w[:lo], origin) + _inverse_distances(y[hi:], w[hi:], origin)
    pull = sums.first - sums.weight * col.median + reach * (total - sums.weight - 2.0 * below)
    mu = col.median + pull / (sums.weight + reach * outer)
    s1 = MAD_FACTOR * mad_about(col, mu)
    reach = k * s1
    lo = position_of(y, col.center, mu - reach, lo)
    hi = position_of(y, col.center, mu + reach, hi)
    sums = _stretch(y, w, lo, hi, col.center + mu)
    squares = sums.second + reach * reach * (total - sums.weight)
    scale = math.sqrt(squares / (total * beta))
    return LocScale(col.center + mu, scale, 1, CONVERGED if scale > 0.0 else ZERO_SCALE)


@kernel
def _without_sums(y: np.ndarray, w: np.ndarray, table: np.ndarray) -> Sorted:
    """`sorted_column` for order statistics only: its table is not filled."""
    lower, upper = _middle_of(y, w)
    left, right = float(upper), float(y.size - upper)
    if w.size > 0:
        left, right = _stretch(y, w, 0, upper, 0.0).weight, _stretch(y, w, upper, y.size, 0.0).weight
    return Sorted(y, w, table, y[lower], upper, 0.5 * (y[upper] - y[lower]), left, right)


@reduction
def _inverse_distances(part: np.ndarray, w: np.ndarray, origin: float) -> float:
    widest_vectors()
    total = 0.0
    if w.size == 0:
        for i in range(part.size):
            total += 1.0 / abs(part[i] - origin)
    else:
        for i in range(part.size):
            total += w[i] / abs(part[i] - origin)
    return total
