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
from numbers import Real
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from powerkern._jit import COLUMN, INTEGER, REAL, ROWS, compiled_as, entry, kernel, reduction, widest_vectors
from powerkern._status import LocationStatus
from powerkern.kernels.elementary import log
from powerkern.kernels.moments import moments_of, weighted_moments_of

CONVERGED, ZERO_SCALE = int(LocationStatus.CONVERGED), int(LocationStatus.ZERO_SCALE)
MAX_ITER, EMPTY = int(LocationStatus.MAX_ITER), int(LocationStatus.EMPTY)
#: Status of a column with infinite values; the driver raises.
BAD_INFINITE = -1

#: 1/Phi^-1(3/4), which makes the median absolute deviation consistent for normal data.
MAD_FACTOR = 1.4826022185056018

#: beta(1.5) as R's cellWise rounds it.
CELLWISE_BETA = 1.556931 / 2.0

#: 2 Phi^-1(3/4), which does the same for the distance of the quartiles.
IQR_DIVISOR = 1.3489795003921634

#: Values in a block of the table of sums.
BLOCK = 128

_MAX_ITER = 500
#: Steps of proposal 2 without a bracket.
_MAX_SOLVED = 30
_EPS = 2.220446049250313e-16
#: Half of the sum of weights, up to its rounding.
_SLACK = 1e-12
#: P(Z < -1.5): where clip positions are looked for first.
_TAIL = 0.067
#: Steps of the bisquare location, in units of its scale, that end it; and where Newton's steps may replace reweighting:
#: for short steps, in units of the distance that has no more influence, and a slope that is not flat.
_TOLERANCE = 1e-13
_NEAR = 0.02
_STEEP = 0.2
#: Sizes beyond this, or below its inverse, are multiplied by _SHRINK, or divided by it, before they are squared.
_LARGE = 1e140
_SHRINK = 2.0**-600
#: A scale below this multiple of where it started has none but 0 as a root.
_VANISHED = 1e-60
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


@kernel
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
    low, high = float(y[(n - 1) // 2]), float(y[n // 2])
    return low + 0.5 * (high - low)


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
def _without_sums(y: np.ndarray, w: np.ndarray, table: np.ndarray) -> Sorted:
    """`sorted_column` for order statistics only: its table is not filled."""
    lower, upper = _middle_of(y, w)
    left, right = float(upper), float(y.size - upper)
    if w.size > 0:
        left, right = _stretch(y, w, 0, upper, 0.0).weight, _stretch(y, w, upper, y.size, 0.0).weight
    return Sorted(y, w, table, y[lower], upper, 0.5 * (y[upper] - y[lower]), left, right)


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
    if col.w.size == 0:
        lower, upper = _distances_of_rank(y, center, point, math.ceil(weight))
        return lower if weight != math.floor(weight) or weight >= y.size else 0.5 * (lower + upper)
    return _weighted_distance(col, point, position_of(y, center, point, col.middle), weight)


@kernel
def _distances_of_rank(y: np.ndarray, center: float, point: float, rank: int) -> tuple[float, float]:
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
        if lower < 0.0 and total >= weight * (1.0 - _SLACK):
            lower = distance
        if total > weight * (1.0 + _SLACK):
            break
    return 0.5 * (lower + distance) if lower >= 0.0 else distance


@kernel
def mad_about(col: Sorted, point: float) -> float:
    """Median of ``|y - center - point|``, without consistency factor."""
    return distance_at(col, point, 0.5 * (col.left_weight + col.right_weight))


@kernel
def mad_of(y: np.ndarray) -> float:
    """Median distance from the median of a sorted column of at least one value, without consistency factor."""
    center = y[(y.size - 1) >> 1]
    return _middle_distance(y, center, 0.5 * (y[y.size >> 1] - center))


@kernel
def _middle_distance(y: np.ndarray, center: float, point: float) -> float:
    """`mad_about` without weights."""
    lower, upper = _distances_of_rank(y, center, point, (y.size + 1) >> 1)
    return lower if y.size & 1 else 0.5 * (lower + upper)


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
    if w.size == 0:
        return one_step_of(y, k, beta)
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
    below = _stretch(y, w, 0, lo, col.center).weight
    origin = col.center + col.median
    outer = _weighted_inverses(y[:lo], w[:lo], origin) + _weighted_inverses(y[hi:], w[hi:], origin)
    pull = sums.first - sums.weight * col.median + reach * (total - sums.weight - 2.0 * below)
    mu = col.median + pull / (sums.weight + reach * outer)
    s1 = MAD_FACTOR * mad_about(col, mu)
    reach = k * s1
    lo = position_of(y, col.center, mu - reach, lo)
    hi = position_of(y, col.center, mu + reach, hi)
    sums = _stretch(y, w, lo, hi, col.center)
    squares = sums.second - mu * (2.0 * sums.first - mu * sums.weight) + reach * reach * (total - sums.weight)
    scale = math.sqrt(max(squares, 0.0) / (total * beta))
    return LocScale(col.center + mu, scale, 1, CONVERGED if scale > 0.0 else ZERO_SCALE)


@kernel
def one_step_of(y: np.ndarray, k: float, beta: float) -> LocScale:
    """`huber_one_step` of values that have no weights, at least one: an objective of robust fits calls it often."""
    n = y.size
    center = y[(n - 1) >> 1]
    median = 0.5 * (y[n >> 1] - center)
    origin = center + median
    s0 = MAD_FACTOR * _middle_distance(y, center, median)
    if s0 == 0.0:
        return LocScale(origin, 0.0, 0, ZERO_SCALE)
    reach = k * s0
    lo = position_of(y, center, median - reach, int(_TAIL * n))
    hi = position_of(y, center, median + reach, n - lo)
    pull = _sum_about(y[lo:hi], center, median) + reach * (n - hi - lo)
    mu = median + pull / (hi - lo + reach * (_inverse_distances(y[:lo], origin) + _inverse_distances(y[hi:], origin)))
    s1 = MAD_FACTOR * _middle_distance(y, center, mu)
    scale = math.sqrt(_clipped_squares(y, center, mu, k * s1) / (n * beta))
    return LocScale(center + mu, scale, 1, CONVERGED if scale > 0.0 else ZERO_SCALE)


@kernel
def huber_likelihood_of(y: np.ndarray, k: float) -> LocScale:
    """Location and scale of greatest likelihood under Huber's least favourable density, of values without weights.

    They minimise ``ln s + sum rho(u)/(n c)``, u = (y - mu)/s, with c = P(|Z| < k) of a normal Z: ``sum psi(u) = 0`` and
    ``sum psi(u) u = n c``. For given clipped values, with the mean m and the squares SS of the others about it, and
    D = sum (y - m) of those above less that of those below, these are::

        n c s**2 - k D s - SS = 0,    mu = m + s k (number above - number below)/(number of the others)

    What is minimised is convex in mu/s and 1/s: such steps, halved where they overshoot, settle.
    """
    n = y.size
    center = y[(n - 1) >> 1]
    mu, s = 0.5 * (y[n >> 1] - center), MAD_FACTOR * mad_of(y)
    if not s > 0.0:
        return LocScale(center + mu, s, 0, ZERO_SCALE)
    dof = n * math.erf(k / math.sqrt(2.0))
    lo, hi = int(_TAIL * n), n - int(_TAIL * n)
    solved = (-1, -1)
    before_mu, before_s, before = mu, s, math.inf
    for n_iter in range(1, _MAX_ITER + 1):
        lo, hi = position_of(y, center, mu - k * s, lo), position_of(y, center, mu + k * s, hi)
        if (lo, hi) == solved:
            return LocScale(center + mu, s, n_iter, CONVERGED)
        near, excess = hi - lo, n - hi - lo
        m = _sum_about(y[lo:hi], center, 0.0) / near if near > 0 else mu
        squares = _clipped_squares(y[lo:hi], center, m, math.inf)
        apart = k * (_sum_about(y[hi:], center, m) - _sum_about(y[:lo], center, m))
        gap = (m - mu) / s
        rho = 0.5 * (squares / (s * s) + near * gap * gap - k * k * (n - near)) + apart / s + k * excess * gap
        value = log(s) + rho / dof
        if value > before + _EPS * (1.0 + abs(before)):  # halfway back in mu/s and 1/s
            a, b = 0.5 * (mu / s + before_mu / before_s), 0.5 * (1.0 / s + 1.0 / before_s)
            mu, s, solved = a / b, 1.0 / b, (-1, -1)
        else:
            before_mu, before_s, before = mu, s, value
            s = (apart + math.sqrt(apart * apart + 4.0 * dof * squares)) / (2.0 * dof)
            mu, solved = m + s * k * excess / near if near > 0 else m, (lo, hi)
        if not s < math.inf or (abs(s - before_s) <= 4.0 * _EPS * s and abs(mu - before_mu) <= 4.0 * _EPS * s):
            return LocScale(center + mu, s, n_iter, CONVERGED if s < math.inf else MAX_ITER)
    return LocScale(center + mu, s, _MAX_ITER, MAX_ITER)


@reduction
def _sum_about(part: np.ndarray, center: float, point: float) -> float:
    widest_vectors()
    total = 0.0
    for i in range(part.size):
        total += (part[i] - center) - point
    return total


@reduction
def _inverse_distances(part: np.ndarray, origin: float) -> float:
    widest_vectors()
    total = 0.0
    for i in range(part.size):
        total += 1.0 / abs(part[i] - origin)
    return total


@reduction
def _weighted_inverses(part: np.ndarray, w: np.ndarray, origin: float) -> float:
    widest_vectors()
    total = 0.0
    for i in range(part.size):
        total += w[i] / abs(part[i] - origin)
    return total


@reduction
def _clipped_squares(part: np.ndarray, center: float, point: float, reach: float) -> float:
    """Sum of ``min((y - center - point)**2, reach**2)``."""
    widest_vectors()
    total = 0.0
    for i in range(part.size):
        d = min(abs((part[i] - center) - point), reach)
        total += d * d
    return total


@kernel
def proposal2_about(
    col: Sorted, start: float, k_location: float, k_scale: float, dof: float
) -> tuple[float, float, int, bool]:
    """Roots (mu, s) of Huber's proposal 2 ([2]_, 6.4), with a constant for each equation; iterations, convergence.

    sum w psi((y - center - mu)/s; k_location) = 0 and sum w psi((y - center - mu)/s; k_scale)**2 = dof beta(k_scale)

    For given sets of clipped values both equations can be solved at once, mu = mean + s pull and a quadratic for s; a
    solution that clips the values it was computed for is the root. Where such steps do not settle, s is bracketed.
    """
    target = dof * beta_of(k_scale)
    mu, s = col.median, start
    last, solved = (-1, -1, -1, -1), False
    for n_iter in range(1, _MAX_SOLVED + 1):
        at = _clip(col, mu, s, k_location, k_scale)
        if solved and at.positions == last:
            return mu, s, n_iter, True
        last = at.positions
        new_mu, new_s = _solve_clipped(at, target, k_scale)
        solved = new_s >= 0.0
        if solved:
            if new_s == 0.0 or (abs(new_mu - mu) <= 4.0 * _EPS * s and abs(new_s - s) <= 4.0 * _EPS * s):
                return new_mu, new_s, n_iter, True
            mu, s = new_mu, new_s
        else:  # s is too small: a classical fixed-point step enlarges it
            mu, s = mu + _psi_sum(at, mu, s) / at.total, s * math.sqrt(_psi_squares(at, mu, s, k_scale) / target)
    return _bracketed_proposal2(col, s, k_location, k_scale, target)


@kernel
def _bracketed_proposal2(
    col: Sorted, start: float, k_location: float, k_scale: float, target: float
) -> tuple[float, float, int, bool]:
    """`proposal2_about` by a bracket for s, each s with its location: slower, and it cannot fail to settle."""
    low, high, s, mu = 0.0, math.inf, start, col.median
    for n_iter in range(_MAX_SOLVED + 1, _MAX_ITER + 1):
        mu, _, _ = location_about(col, s, k_location)
        at = _clip(col, mu, s, k_location, k_scale)
        if _psi_squares(at, mu, s, k_scale) > target:
            low = s
        else:
            high = s
        new_mu, new_s = _solve_clipped(at, target, k_scale)
        if low < new_s < high and _clip(col, new_mu, new_s, k_location, k_scale).positions == at.positions:
            return new_mu, new_s, n_iter, True
        if high < math.inf and high - low <= 4.0 * _EPS * high:
            return mu, s, n_iter, True
        if high < _VANISHED * start:
            return mu, 0.0, n_iter, True
        if math.isinf(high) or low == 0.0:
            s = 4.0 * low if low > 0.0 else 0.25 * high
        else:
            s = math.sqrt(low) * math.sqrt(high) if high > 4.0 * low else 0.5 * (low + high)
    return mu, s, _MAX_ITER, False


class Clipped(NamedTuple):
    """What the equations of proposal 2 see of a column: sums over unclipped values, and of the clipped ones."""

    positions: tuple[int, int, int, int]  #: clip positions of the location and of the scale
    near: Inside  #: values that the location leaves unclipped
    pull: float  #: sum of psi over the others
    within: Inside  #: values that the scale leaves unclipped
    total: float  #: weight of all values


@kernel
def _clip(col: Sorted, mu: float, s: float, k_location: float, k_scale: float) -> Clipped:
    total = col.left_weight + col.right_weight
    tail = int(_TAIL * col.y.size)
    lo = position_of(col.y, col.center, mu - k_location * s, tail)
    hi = position_of(col.y, col.center, mu + k_location * s, col.y.size - tail)
    near = inside(col, lo, hi)
    pull = k_location * (total - near.weight - 2.0 * weight_before(col, lo))
    if k_scale == k_location:
        return Clipped((lo, hi, lo, hi), near, pull, near, total)
    first = position_of(col.y, col.center, mu - k_scale * s, lo)
    last = position_of(col.y, col.center, mu + k_scale * s, hi)
    return Clipped((lo, hi, first, last), near, pull, inside(col, first, last), total)


@kernel
def _psi_sum(at: Clipped, mu: float, s: float) -> float:
    """Sum of s psi((y - center - mu)/s)."""
    return at.near.first - at.near.weight * mu + s * at.pull


@kernel
def _psi_squares(at: Clipped, mu: float, s: float, k_scale: float) -> float:
    """Sum of psi((y - center - mu)/s)**2."""
    squares = at.within.second - mu * (2.0 * at.within.first - mu * at.within.weight)
    return max(squares, 0.0) / (s * s) + k_scale * k_scale * (at.total - at.within.weight)


@kernel
def _solve_clipped(at: Clipped, target: float, k_scale: float) -> tuple[float, float]:
    """Location and scale that solve proposal 2 with given clipped values; scale -1 when there are none."""
    a, b = at.near, at.within
    if not (a.weight > 0.0 and b.weight > 0.0):
        return 0.0, -1.0
    mean, pull = a.first / a.weight, at.pull / a.weight
    center = b.first / b.weight
    gap = center - mean
    squares = max(b.second - b.first * center, 0.0) + b.weight * gap * gap
    # leading s**2 + 2 half s - squares = 0
    half = b.weight * gap * pull
    leading = target - k_scale * k_scale * (at.total - b.weight) - b.weight * pull * pull
    if not leading > 0.0:
        return mean, -1.0
    root = math.sqrt(half * half + leading * squares)
    s = squares / (half + root) if half > 0.0 else (root - half) / leading
    return mean + pull * s, s


# --- Tukey's biweight ---------------------------------------------------------------------------------


@reduction
def _biweight_sums(part: np.ndarray, center: float, mu: float, reach: float) -> tuple[float, float, float]:
    """Sums of u (1 - u**2)**2, of (1 - u**2)**2 and of (1 - u**2)(1 - 5 u**2), u = (y - center - mu)/reach."""
    widest_vectors()
    psi, weight, slope = 0.0, 0.0, 0.0
    for i in range(part.size):
        u = ((part[i] - center) - mu) / reach
        v = 1.0 - u * u
        psi += u * v * v
        weight += v * v
        slope += v * (1.0 - 5.0 * u * u)
    return psi, weight, slope


@reduction
def _weighted_biweight_sums(
    part: np.ndarray, w: np.ndarray, center: float, mu: float, reach: float
) -> tuple[float, float, float]:
    """`_biweight_sums` with weights."""
    widest_vectors()
    psi, weight, slope = 0.0, 0.0, 0.0
    for i in range(part.size):
        u = ((part[i] - center) - mu) / reach
        v = 1.0 - u * u
        psi += w[i] * u * v * v
        weight += w[i] * v * v
        slope += w[i] * v * (1.0 - 5.0 * u * u)
    return psi, weight, slope


@reduction
def _biweight_squares(part: np.ndarray, w: np.ndarray, center: float, mu: float, reach: float) -> float:
    """Sum of u**2 (1 - u**2)**4, in the notation of `_biweight_sums`."""
    widest_vectors()
    total = 0.0
    weighted = w.size > 0
    for i in range(part.size):
        u = ((part[i] - center) - mu) / reach
        v = 1.0 - u * u
        total += (w[i] if weighted else 1.0) * u * u * (v * v) * (v * v)
    return total


@kernel
def _biweight_at(col: Sorted, mu: float, reach: float) -> tuple[float, float, float]:
    """`_biweight_sums` over the values nearer than `reach`."""
    lo = position_of(col.y, col.center, mu - reach, 0)
    hi = position_of(col.y, col.center, mu + reach, col.y.size)
    if col.w.size == 0:
        return _biweight_sums(col.y[lo:hi], col.center, mu, reach)
    return _weighted_biweight_sums(col.y[lo:hi], col.w[lo:hi], col.center, mu, reach)


@kernel
def _bisquare_step(col: Sorted, mu: float, reach: float) -> float:
    """Step towards the root of the bisquare location: reweighting far from it, Newton's near it; NaN without values."""
    psi, weight, slope = _biweight_at(col, mu, reach)
    if weight == 0.0:
        return math.nan
    step = reach * psi / weight
    if abs(step) < _NEAR * reach and slope > _STEEP * weight:
        return reach * psi / slope
    return step


@kernel
def bisquare_about(col: Sorted, scale: float, c: float) -> tuple[float, int, bool]:
    """Tukey's bisquare location: the root of sum w u (1 - u**2)**2 = 0 over abs(u) < 1 that reweighting reaches.

    u = (y - center - mu)/(c scale); from the median. Returns mu, its iterations, and whether they converged.
    """
    mu = col.median
    reach = c * scale
    for n_iter in range(1, _MAX_ITER + 1):
        step = _bisquare_step(col, mu, reach)
        if math.isnan(step):
            return col.median, n_iter, False
        mu += step
        if abs(step) <= _TOLERANCE * scale:
            return mu, n_iter, True
    return mu, _MAX_ITER, False


@kernel
def bisquare_proposal2_about(
    col: Sorted, start: float, c: float, k_scale: float, dof: float
) -> tuple[float, float, int, bool]:
    """`proposal2_about` with Tukey's bisquare in the equation of the location, from median and `start`."""
    mu, s = col.median, start
    for n_iter in range(1, _MAX_ITER + 1):
        step = _bisquare_step(col, mu, c * s)
        if math.isnan(step):
            return mu, s, n_iter, False
        mu += step
        new_s, _, found = scale_about(col, mu, s, k_scale, dof)
        change = max(abs(step), abs(new_s - s))
        if new_s == 0.0 or not found:
            return mu, new_s, n_iter, found
        s = new_s
        if change <= _TOLERANCE * s:
            return mu, s, n_iter, True
    return mu, s, _MAX_ITER, False


# --- estimators of a column ---------------------------------------------------------------------------


@kernel
def _start_of(col: Sorted, k: float, dof: float) -> float:
    """Scale to start from: the normalised MAD; where that is 0, one that reaches beyond the values that are equal."""
    mad = MAD_FACTOR * mad_about(col, col.median)
    if mad > 0.0:
        return mad
    total = col.left_weight + col.right_weight
    return _BEYOND * distance_at(col, col.median, total - 0.5 * dof * beta_of(k) / (k * k)) / k


@kernel
def _outcome(loc: float, scale: float, n_iter: int, found: bool) -> LocScale:
    return LocScale(loc, scale, n_iter, ZERO_SCALE if scale == 0.0 else (CONVERGED if found else MAX_ITER))


@kernel
def huber_location_of(y: np.ndarray, w: np.ndarray, table: np.ndarray, scale: float, k: float) -> LocScale:
    """Huber's location of a sorted column for a known scale (NaN: the normalised MAD)."""
    if y.size == 0:
        return LocScale(math.nan, math.nan, 0, EMPTY)
    col = sorted_column(y, w, table)
    if math.isnan(scale):
        scale = MAD_FACTOR * mad_about(col, col.median)
    mu, n_iter, found = col.median, 0, True
    if scale > 0.0:
        mu, n_iter, found = location_about(col, scale, k)
    return _outcome(col.center + mu, scale, n_iter, found)


@kernel
def huber_scale_of(y: np.ndarray, w: np.ndarray, table: np.ndarray, center: float, k: float, ddof: float) -> LocScale:
    """Huber's scale of a sorted column about a center (NaN: the median)."""
    if y.size == 0:
        return LocScale(math.nan, math.nan, 0, EMPTY)
    col = sorted_column(y, w, table) if math.isnan(center) else column_about(y, w, table, center)
    dof = col.left_weight + col.right_weight - ddof
    if not dof > 0.0:
        return LocScale(col.center + col.median, 0.0, 0, ZERO_SCALE)
    start = MAD_FACTOR * mad_about(col, col.median)
    scale, n_iter, found = scale_about(col, col.median, start, k, dof)
    return _outcome(col.center + col.median, scale, n_iter, found)


@kernel
def huber_proposal2_of(y: np.ndarray, w: np.ndarray, table: np.ndarray, k: float, k_location: float) -> LocScale:
    """Huber's proposal 2 of a sorted column."""
    if y.size == 0:
        return LocScale(math.nan, math.nan, 0, EMPTY)
    col = sorted_column(y, w, table)
    dof = col.left_weight + col.right_weight - 1.0
    start = _start_of(col, k, dof) if dof > 0.0 else 0.0
    if start == 0.0:
        return LocScale(col.center + col.median, 0.0, 0, ZERO_SCALE)
    mu, scale, n_iter, found = proposal2_about(col, start, k_location, k, dof)
    return _outcome(col.center + mu, scale, n_iter, found)


@kernel
def bisquare_proposal2_of(y: np.ndarray, w: np.ndarray, table: np.ndarray, k: float, c: float) -> LocScale:
    """`huber_proposal2_of` with Tukey's bisquare in the equation of the location."""
    if y.size == 0:
        return LocScale(math.nan, math.nan, 0, EMPTY)
    col = sorted_column(y, w, table)
    dof = col.left_weight + col.right_weight - 1.0
    start = _start_of(col, k, dof) if dof > 0.0 else 0.0
    if start == 0.0:
        return LocScale(col.center + col.median, 0.0, 0, ZERO_SCALE)
    mu, scale, n_iter, found = bisquare_proposal2_about(col, start, c, k, dof)
    return _outcome(col.center + mu, scale, n_iter, found)


@kernel
def bisquare_of(y: np.ndarray, w: np.ndarray, table: np.ndarray, c: float) -> LocScale:
    """Tukey's bisquare location of a sorted column, with the normalised MAD as scale."""
    if y.size == 0:
        return LocScale(math.nan, math.nan, 0, EMPTY)
    col = _without_sums(y, w, table)
    scale = MAD_FACTOR * mad_about(col, col.median)
    mu, n_iter, found = col.median, 0, True
    if scale > 0.0:
        mu, n_iter, found = bisquare_about(col, scale, c)
    return _outcome(col.center + mu, scale, n_iter, found)


@kernel
def biweight_of(y: np.ndarray, w: np.ndarray, table: np.ndarray, c_location: float, c_scale: float) -> LocScale:
    """One-step biweight location and square root of the biweight midvariance, in units of the plain MAD."""
    if y.size == 0:
        return LocScale(math.nan, math.nan, 0, EMPTY)
    col = _without_sums(y, w, table)
    mad = mad_about(col, col.median)
    if mad == 0.0:
        return LocScale(col.center + col.median, 0.0, 0, ZERO_SCALE)
    reach = c_location * mad
    psi, weight, _ = _biweight_at(col, col.median, reach)
    mu = col.median + (reach * psi / weight if weight > 0.0 else 0.0)
    reach = c_scale * mad
    slope = abs(_biweight_at(col, col.median, reach)[2])
    lo = position_of(y, col.center, col.median - reach, 0)
    hi = position_of(y, col.center, col.median + reach, y.size)
    squares = _biweight_squares(y[lo:hi], w[lo:hi], col.center, col.median, reach)
    total = col.left_weight + col.right_weight
    scale = reach * math.sqrt(total * squares) / slope if slope > 0.0 else math.nan
    return _outcome(col.center + mu, scale, 1, slope > 0.0)


@kernel
def mean_and_sd(y: np.ndarray, w: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation (with 1/n) of a sorted column, which may be overwritten."""
    factor = _unit_of(max(abs(y[0]), abs(y[-1])))
    _multiply(y, factor)
    moments = moments_of(y) if w.size == 0 else weighted_moments_of(y, w)
    return moments.mean / factor, math.sqrt(moments.m2 / moments.weight) / factor


@kernel
def trimmed_mean(y: np.ndarray, w: np.ndarray, below: float, above: float) -> float:
    """Mean of a sorted column without that weight of its smallest, and of its largest, values."""
    center = y[y.size // 2]
    lo, hi = int(below), y.size - int(above)
    if w.size == 0:
        return float(center + _block_sums(y[lo:hi], center)[0] / (hi - lo))
    lo, hi = 0, y.size
    while below >= w[lo]:
        below -= w[lo]
        lo += 1
    while above >= w[hi - 1]:
        above -= w[hi - 1]
        hi -= 1
    weight, first, _ = _weighted_block_sums(y[lo:hi], w[lo:hi], center)
    first -= below * (y[lo] - center) + above * (y[hi - 1] - center)
    return float(center + first / (weight - below - above))


@kernel
def iqr_of(y: np.ndarray, w: np.ndarray) -> float:
    """Distance of the quartiles (`quantile_of`); weights count repetitions."""
    if w.size == 0:
        return quantile_of(y, 0.75) - quantile_of(y, 0.25)
    return _weighted_quantile(y, w, 0.75) - _weighted_quantile(y, w, 0.25)


@kernel
def _weighted_quantile(y: np.ndarray, w: np.ndarray, probability: float) -> float:
    total = 0.0
    for i in range(w.size):
        total += w[i]
    at = max(probability * (total - 1.0), 0.0)
    rank = math.floor(at)
    low, high = float(y[_rank(w, rank)[1]]), float(y[_rank(w, rank + 1.0)[1]])
    return low + (at - rank) * (high - low)


# --- columns of a matrix ------------------------------------------------------------------------------


class Opened(NamedTuple):
    """A sorted column without its missing values, in units that can be squared."""

    y: np.ndarray
    w: np.ndarray
    unit: float
    infinite: bool


@kernel
def _unit_of(size: float) -> float:
    """A power of two that takes numbers of this size to where their squares neither overflow nor vanish; mostly 1."""
    if size > _LARGE:
        return _SHRINK
    if 0.0 < size < 1.0 / _LARGE:
        return 1.0 / _SHRINK
    return 1.0


@kernel
def _multiply(y: np.ndarray, factor: float) -> None:
    widest_vectors()
    if factor != 1.0:
        for i in range(y.size):
            y[i] *= factor


@kernel
def _opened(column: np.ndarray, weights: np.ndarray, rescale: bool) -> Opened:
    """A sorted column without the NaN at its end; where asked, its inner half brought to a size that can be squared."""
    n = column.size
    while n > 0 and math.isnan(column[n - 1]):
        n -= 1
    y, w = column[:n], weights[:n]
    infinite = n > 0 and (math.isinf(y[0]) or math.isinf(y[n - 1]))
    unit = 1.0
    if rescale and n > 0 and not infinite:
        inner = y[(3 * n) // 4] - y[n // 4]
        unit = _unit_of(inner if inner > 0.0 else y[n - 1] - y[0])
        _multiply(y, unit)
    return Opened(y, w, unit, infinite)


@kernel
def _restored(column: Opened, result: LocScale) -> LocScale:
    """A result in the units of the data."""
    return LocScale(result.loc / column.unit, result.scale / column.unit, result.n_iter, result.status)


@kernel
def _write(row: np.ndarray, column: Opened, result: LocScale) -> None:
    """A row of results: loc, scale, n_iter, status."""
    row[0], row[1], row[2], row[3] = _restored(column, result)
    if column.infinite:
        row[3] = BAD_INFINITE


# what all of these take: sorted columns as rows, NaN last (they are overwritten); their weights as rows, or (k, 0);
# the estimator's constants; a table for `sorted_column`; one row of results a column
_COLUMNS = (ROWS, ROWS, COLUMN, ROWS, ROWS)


@entry(_COLUMNS)
def order_columns(
    columns: np.ndarray, weights: np.ndarray, options: np.ndarray, table: np.ndarray, out: np.ndarray
) -> None:
    """Mean (0), median (1) or trimmed mean (2); standard deviation (0), nMAD (1) or nIQR (2).

    options: the number of either, the shares trimmed below and above.
    """
    for j in range(columns.shape[0]):
        column = _opened(columns[j], weights[j], False)
        _write(out[j], column, _order_of(column.y, column.w, options, table))


@entry(_COLUMNS)
def huber_columns(
    columns: np.ndarray, weights: np.ndarray, options: np.ndarray, table: np.ndarray, out: np.ndarray
) -> None:
    """`huber_location_of`; options: k."""
    for j in range(columns.shape[0]):
        column = _opened(columns[j], weights[j], True)
        _write(out[j], column, huber_location_of(column.y, column.w, table, math.nan, options[0]))


@entry(_COLUMNS)
def huber_scale_columns(
    columns: np.ndarray, weights: np.ndarray, options: np.ndarray, table: np.ndarray, out: np.ndarray
) -> None:
    """`huber_scale_of` about the median (0), `huber` (1) or `huber_one_step` (2); options: that number, k, ddof."""
    for j in range(columns.shape[0]):
        column = _opened(columns[j], weights[j], True)
        y, w, k = column.y, column.w, options[1]
        if options[0] == 0.0:
            result = huber_scale_of(y, w, table, math.nan, k, options[2])
        elif options[0] == 1.0:
            result = huber(y, w, table, k)
        else:
            result = huber_one_step(y, w, table, k, beta_of(k))
        _write(out[j], column, result)


@entry(_COLUMNS)
def proposal2_columns(
    columns: np.ndarray, weights: np.ndarray, options: np.ndarray, table: np.ndarray, out: np.ndarray
) -> None:
    """`huber_proposal2_of`; options: k and that of the location."""
    for j in range(columns.shape[0]):
        column = _opened(columns[j], weights[j], True)
        _write(out[j], column, huber_proposal2_of(column.y, column.w, table, options[0], options[1]))


@entry(_COLUMNS)
def bisquare_columns(
    columns: np.ndarray, weights: np.ndarray, options: np.ndarray, table: np.ndarray, out: np.ndarray
) -> None:
    """`bisquare_of` (k = 0) or `bisquare_proposal2_of`; options: k, c."""
    for j in range(columns.shape[0]):
        column = _opened(columns[j], weights[j], True)
        if options[0] == 0.0:
            result = bisquare_of(column.y, column.w, table, options[1])
        else:
            result = bisquare_proposal2_of(column.y, column.w, table, options[0], options[1])
        _write(out[j], column, result)


@entry(_COLUMNS)
def biweight_columns(
    columns: np.ndarray, weights: np.ndarray, options: np.ndarray, table: np.ndarray, out: np.ndarray
) -> None:
    """`biweight_of`; options: c of the location and of the scale."""
    for j in range(columns.shape[0]):
        column = _opened(columns[j], weights[j], True)
        _write(out[j], column, biweight_of(column.y, column.w, table, options[0], options[1]))


@kernel
def _order_of(y: np.ndarray, w: np.ndarray, options: np.ndarray, table: np.ndarray) -> LocScale:
    """See `order_columns`."""
    if y.size == 0:
        return LocScale(math.nan, math.nan, 0, EMPTY)
    col = _without_sums(y, w, table)
    total = col.left_weight + col.right_weight
    loc, scale = col.center + col.median, 0.0
    if options[0] == 2.0:
        loc = trimmed_mean(y, w, _whole(options[2] * total), _whole(options[3] * total))
    if options[1] == 1.0:
        scale = MAD_FACTOR * mad_about(col, col.median)
    elif options[1] == 2.0:
        scale = iqr_of(y, w) / IQR_DIVISOR
    if options[0] == 0.0 or options[1] == 0.0:  # last: overwrites y
        mean, sd = mean_and_sd(y, w)
        loc = mean if options[0] == 0.0 else loc
        scale = sd if options[1] == 0.0 else scale
    return _outcome(loc, scale, 0, True)


@kernel
def _whole(x: float) -> float:
    """Largest integer up to x, forgiving the rounding of x."""
    return float(math.floor(x * (1.0 + 1e-12) + 1e-12))


# --- public -------------------------------------------------------------------------------------------


@kernel
def _scratch_of(n: int) -> np.ndarray:
    return np.empty((6, table_width(n)))


@kernel
def _huber_location(x: np.ndarray, scale: float | None = None, k: float = 1.5) -> LocScale:
    column = _opened(x.copy(), x[:0], True)
    known = math.nan if scale is None else scale * column.unit
    return _restored(column, huber_location_of(column.y, column.w, _scratch_of(x.size), known, k))


@kernel
def _huber_scale(x: np.ndarray, center: float | None = None, k: float = 1.5, ddof: int = 0) -> LocScale:
    column = _opened(x.copy(), x[:0], True)
    about = math.nan if center is None else center * column.unit
    return _restored(column, huber_scale_of(column.y, column.w, _scratch_of(x.size), about, k, float(ddof)))


@kernel
def _huber_proposal2(x: np.ndarray, k: float = 1.5, k_location: float | None = None) -> LocScale:
    column = _opened(x.copy(), x[:0], True)
    of_location = k if k_location is None else k_location
    return _restored(column, huber_proposal2_of(column.y, column.w, _scratch_of(x.size), k, of_location))


@entry((COLUMN, REAL, REAL))
def _huber_location_entry(x: np.ndarray, scale: float, k: float) -> LocScale:
    return _huber_location(x, scale, k)


@entry((COLUMN, REAL, REAL, INTEGER))
def _huber_scale_entry(x: np.ndarray, center: float, k: float, ddof: int) -> LocScale:
    return _huber_scale(x, center, k, ddof)


@entry((COLUMN, REAL, REAL))
def _huber_proposal2_entry(x: np.ndarray, k: float, k_location: float) -> LocScale:
    return _huber_proposal2(x, k, k_location)


def _sorted_values(x: npt.ArrayLike) -> np.ndarray:
    """Values of a vector, ascending, without NaN."""
    values = np.asarray(x)
    if values.dtype.kind not in "biuf" and values.size > 0:
        raise TypeError(f"x must be real numbers, got dtype {values.dtype}")
    if values.ndim != 1:
        raise ValueError(f"x must be one-dimensional, got shape {values.shape}")
    ascending = np.sort(values.astype(np.float64))
    ascending = ascending[: np.searchsorted(ascending, np.nan)]
    if ascending.size and np.isinf(ascending[[0, -1]]).any():
        raise ValueError("x has infinite values; replace them, or mark them missing with NaN")
    return ascending


def _checked(what: str, value: object, least: float) -> float:
    """A finite number above `least`."""
    if not isinstance(value, Real):
        raise TypeError(f"{what} must be a number, got {value!r}")
    number = float(value)
    if not least < number < math.inf:
        kind = "finite" if least == -math.inf else "positive and finite"
        raise ValueError(f"{what} must be {kind}, got {value!r}")
    return number


def _plain(result: LocScale) -> LocScale:
    return LocScale(float(result.loc), float(result.scale), int(result.n_iter), int(result.status))


@compiled_as(_huber_location)
def huber_location(x: npt.ArrayLike, scale: float | None = None, k: float = 1.5) -> LocScale:
    """Huber's M-estimate of location for a known scale.

    The root mu of [1]_::

        sum psi((x - mu)/s) = 0,    psi(u) = max(-k, min(k, u))

    Parameters
    ----------
    x : array_like, shape (n,)
        Values; NaN are left out.
    scale : float, optional
        The scale s > 0; by default the normalised median absolute deviation, 1.4826 MAD.
    k : float, default 1.5
        Where values begin to be clipped, in units of the scale. 1.345 has an efficiency of 95 % for normal data.

    Returns
    -------
    LocScale
        ``loc`` mu, ``scale`` s, ``n_iter`` iterations and ``status``, a `powerkern.location.LocationStatus`: CONVERGED;
        ZERO_SCALE where MAD = 0, loc is the median then; EMPTY without values, loc and scale are NaN then.

    Raises
    ------
    TypeError
        If the values are not real numbers.
    ValueError
        If x is not one-dimensional or has infinite values, or `scale` or `k` is not positive.

    See Also
    --------
    huber_proposal2 : estimates the scale as well.
    powerkern.location.location_scale : columns of a matrix, with weights.

    Notes
    -----
    Newton steps inside a bracket. psi is piecewise linear, so a step that changes no value's side of a clip position is
    exact: the result is the root to rounding, about 1e-15 of the scale.

    Inside jitted code it takes a contiguous float64 vector that is sorted in ascending order and has no NaN, and checks
    nothing.

    References
    ----------
    .. [1] P. J. Huber, "Robust estimation of a location parameter", Ann. Math. Statist. 35, 1964, 73-101.

    Examples
    --------
    >>> from powerkern.kernels import huber_location
    >>> huber_location([1.0, 2.0, 10.0])
    LocScale(loc=2.61195166387, scale=1.48260221850, n_iter=2, status=0)
    """
    known = math.nan if scale is None else _checked("scale", scale, 0.0)
    return _plain(_huber_location_entry(_sorted_values(x), known, _checked("k", k, 0.0)))


@compiled_as(_huber_scale)
def huber_scale(x: npt.ArrayLike, center: float | None = None, k: float = 1.5, ddof: int = 0) -> LocScale:
    """Huber's M-estimate of scale about a center.

    The root s of [1]_::

        sum min(((x - center)/s)**2, k**2) = (n - ddof) beta(k),    beta(k) = E min(Z**2, k**2), Z standard normal

    Parameters
    ----------
    x : array_like, shape (n,)
        Values; NaN are left out.
    center : float, optional
        By default the median.
    k : float, default 1.5
        Where distances begin to be clipped, in units of the scale.
    ddof : int, default 0
        1 where the center was estimated and the estimate is to agree with the unbiased variance for large k.

    Returns
    -------
    LocScale
        ``loc`` the center, ``scale`` s, ``n_iter`` and ``status`` as for `huber_location`. The scale is 0
        (ZERO_SCALE) where more than a share 1 - beta(k)/k**2 of the values, 65 % for k = 1.5, equals the center.

    Raises
    ------
    TypeError
        If the values are not real numbers.
    ValueError
        If x is not one-dimensional or has infinite values, `center` is not finite, `k` is not positive, or `ddof` is
        not a whole number, 0 or more.

    See Also
    --------
    huber_proposal2 : estimates the location as well.

    Notes
    -----
    In s**2 the equation is piecewise linear and concave: Newton steps from above decrease to the root and reach it to
    rounding.

    Inside jitted code it takes a contiguous float64 vector that is sorted in ascending order and has no NaN, and checks
    nothing.

    References
    ----------
    .. [1] P. J. Huber, "Robust Statistics", Wiley, 1981, section 5.2.

    Examples
    --------
    >>> from powerkern.kernels import huber_scale
    >>> huber_scale([1.0, 2.0, 10.0]).scale
    3.42201673808
    """
    about = math.nan if center is None else _checked("center", center, -math.inf)
    if isinstance(ddof, bool) or not isinstance(ddof, int | np.integer) or ddof < 0:
        raise ValueError(f"ddof must be a whole number, 0 or more, got {ddof!r}")
    return _plain(_huber_scale_entry(_sorted_values(x), about, _checked("k", k, 0.0), ddof))


@compiled_as(_huber_proposal2)
def huber_proposal2(x: npt.ArrayLike, k: float = 1.5, k_location: float | None = None) -> LocScale:
    """Huber's proposal 2: location and scale at once.

    The roots mu and s of [1]_::

        sum psi((x - mu)/s) = 0
        sum psi((x - mu)/s)**2 = (n - 1) beta(k),    psi(u) = max(-k, min(k, u)), beta(k) = E psi(Z)**2

    Parameters
    ----------
    x : array_like, shape (n,)
        Values; NaN are left out.
    k : float, default 1.5
        Where values begin to be clipped, in units of the scale.
    k_location : float, optional
        Another constant for the first equation only; statsmodels' ``Huber(norm=HuberT())`` has 1.345 there.

    Returns
    -------
    LocScale
        ``loc``, ``scale``, ``n_iter`` and ``status`` as for `huber_location`. Where so many values are equal that
        the only root has s = 0, loc is their value.

    Raises
    ------
    TypeError
        If the values are not real numbers.
    ValueError
        If x is not one-dimensional or has infinite values, or a constant is not positive.

    See Also
    --------
    huber_location : the scale known.
    huber_scale : the location known.
    powerkern.location.location_scale : columns of a matrix, with weights.

    Notes
    -----
    For given sets of clipped values both equations are solved at once, from median and nMAD on, until the sets stay
    as they are: mostly two to five steps, and the result is the root to rounding. MASS::hubers in R stops silently
    after 30 steps of a fixed-point iteration; statsmodels raises an error.

    Inside jitted code it takes a contiguous float64 vector that is sorted in ascending order and has no NaN, and checks
    nothing.

    References
    ----------
    .. [1] P. J. Huber, "Robust Statistics", Wiley, 1981, section 6.4.

    Examples
    --------
    >>> from powerkern.kernels import huber_proposal2
    >>> huber_proposal2([150.4, 28.8, 46.6, 40.2, 46.5])
    LocScale(loc=50.4285587761, scale=26.4094900696, n_iter=3, status=0)
    """
    of_location = k if k_location is None else k_location
    return _plain(
        _huber_proposal2_entry(_sorted_values(x), _checked("k", k, 0.0), _checked("k_location", of_location, 0.0))
    )
