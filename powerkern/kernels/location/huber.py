"""Huber's M-estimators of location or scale of a sorted column, and single steps towards them.

References
----------
.. [1] P. J. Huber, "Robust estimation of a location parameter", Ann. Math. Statist. 35, 1964, 73-101.
.. [2] P. J. Huber, "Robust Statistics", Wiley, 1981, chapters 5 (scale) and 6 (location and scale).
.. [3] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning 113, 2024,
   4953-4975.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from powerkern._jit import (
    COUNTS,
    ROWS,
    allocated,
    allocated_integers,
    entry,
    kernel,
    reduction,
    release,
    widest_vectors,
)
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.elementary.constants import EPS
from powerkern.kernels.elementary.log import log
from powerkern.kernels.location.loc_scale import (
    BEYOND,
    CONVERGED,
    MAD_FACTOR,
    MAX_ITER,
    MOST_ITERATIONS,
    TAIL,
    ZERO_SCALE,
    LocScale,
    make_loc_scale,
)
from powerkern.kernels.location.order_statistics import (
    Sorted,
    distance_at,
    find_position,
    mad_about,
    sorted_column,
    sum_range,
    weight_between,
)
from powerkern.kernels.location.weights import (
    FREQUENCY_WORK,
    FrequencyWeights,
    FrequencyWork,
    ScoreNodes,
    frequency_weights,
    middle_distance,
    middle_positions,
    weight_inside,
    weight_outside,
    weight_sum,
    weights_between,
)

#: Huber's k in robust fits, as in R's MASS.
HUBER_K = 1.5
#: `huber_beta(HUBER_K)` as R's cellWise rounds it.
CELLWISE_BETA = 1.556931 / 2.0

#: Solver of a pair of equations for location and scale. Arguments: the column, the scale at which to start, the
#: constants of the location and of the scale equation, degrees of freedom. Results: location, scale, number of
#: iterations, whether the iteration converged.
_Solver = Callable[[Sorted, float, float, float, float], tuple[float, float, int, bool]]


@kernel
def huber_beta(k: float) -> float:
    """Return E min(Z**2, k**2) for standard normal Z, which makes Huber's scale consistent ([2]_, chapter 5)."""
    tail = math.erfc(k / math.sqrt(2.0))  # P(|Z| > k)
    density = math.exp(-0.5 * k * k) / math.sqrt(2.0 * math.pi)
    return (1.0 - tail) + k * k * tail - 2.0 * k * density


@kernel
def sd_within(limit: float) -> float:
    """Return the standard deviation of a standard normal Z given |Z| <= limit.

    Its square is 1 - 2 limit phi(limit)/(2 Phi(limit) - 1).
    """
    if not limit < math.inf:
        return 1.0
    probability = math.erf(limit / math.sqrt(2.0))
    return math.sqrt(1.0 - 2.0 * limit * math.exp(-0.5 * limit * limit) / (math.sqrt(2.0 * math.pi) * probability))


@kernel
def location_about(col: Sorted, scale: float, k: float) -> tuple[float, int, bool]:
    """Solve sum w psi_k((y - center - mu)/scale) = 0 ([1]_) for mu.

    Returns mu, the number of iterations, and whether the iteration converged. The method is Newton's, with a bracket as
    a safeguard. A step is exact if the same values are clipped before and after it.
    """
    widest_vectors()
    limit = k * scale
    mu, low, high = col.median, col.median - limit, col.median + limit
    tail = int(TAIL * col.y.size)
    lo, hi = tail, col.y.size - tail
    last_lo, last_hi = -1, -1
    for n_iter in range(1, MOST_ITERATIONS + 1):
        lo = find_position(col.y, col.center, mu - limit, lo)
        hi = find_position(col.y, col.center, mu + limit, hi)
        if lo == last_lo and hi == last_hi:
            return mu, n_iter, True
        sums = sum_range(col, lo, hi)
        # sum both tails, since total minus middle would leave rounding errors
        pull = limit * (weight_between(col, hi, col.y.size) - weight_between(col, 0, lo))
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
            if abs(step - mu) <= EPS * scale:
                return step, n_iter, True
        else:
            last_lo, last_hi = -1, -1
            step = 0.5 * (low + high)
            if not low < step < high:
                return mu, n_iter, True
        mu = step
    return mu, MOST_ITERATIONS, False


@kernel
def scale_about(col: Sorted, point: float, guess: float, k: float, dof: float) -> tuple[float, int, bool]:
    """Solve sum w min(((y - center - point)/s)**2, k**2) = dof beta(k) for s ([2]_).

    The difference of both sides, multiplied by s**2, is a concave function of s**2. Newton steps from above therefore
    decrease to the root, and end exactly there once the same values are clipped before and after a step.

    Parameters
    ----------
    col : Sorted
        The column, relative to its lower median.
    point : float
        The point about which the scale is estimated, relative to ``col.center``.
    guess : float
        The scale at which the iteration starts.
    k : float
        Distance at which Huber's psi is clipped, in units of the scale.
    dof : float
        The degrees of freedom: the total weight, or the total weight minus one.

    Returns
    -------
    tuple of (float, int, bool)
        s, the number of iterations, and whether the iteration converged. s is 0 if there is no positive root, because
        too many values equal the point.
    """
    widest_vectors()
    target = dof * huber_beta(k)
    variance = guess * guess
    tail = int(TAIL * col.y.size)
    lo, hi = tail, col.y.size - tail
    last_lo, last_hi = -1, -1
    for n_iter in range(1, MOST_ITERATIONS + 1):
        limit = k * math.sqrt(variance)
        lo = find_position(col.y, col.center, point - limit, lo)
        hi = find_position(col.y, col.center, point + limit, hi)
        if lo == last_lo and hi == last_hi:
            return math.sqrt(variance), n_iter, True
        sums = sum_range(col, lo, hi)
        slope = target - k * k * (col.total - sums.weight)
        squares = max(sums.second - point * (2.0 * sums.first - point * sums.weight), 0.0)
        if slope > 0.0 and variance > 0.0:
            last_lo, last_hi = lo, hi
            step = squares / slope
            if abs(step - variance) <= 2.0 * EPS * variance:
                return math.sqrt(step), n_iter, True
            variance = step
            if variance == 0.0:
                return 0.0, n_iter, True
        else:  # far below the root: restart above it
            limit = distance_at(col, point, col.total - 0.5 * target / (k * k))
            if limit == 0.0:
                return 0.0, n_iter, True
            variance = (BEYOND * limit / k) ** 2
    return math.sqrt(variance), MOST_ITERATIONS, False


@kernel
def huber(y: np.ndarray, w: np.ndarray, k: float) -> LocScale:
    """Return Huber's location, with the normalised MAD as known scale, and Huber's scale about that location ([3]_).

    `y` and `w` are as for `sorted_column`, and psi is clipped at `k` scales. If the MAD is 0, the location is the
    median.
    """
    col = sorted_column(y, w)
    start = MAD_FACTOR * mad_about(col, col.median)
    mu, n_location, converged = col.median, 0, True
    if start > 0.0:
        mu, n_location, converged = location_about(col, start, k)
    scale, n_scale, found_scale = scale_about(col, mu, start, k, col.total)
    status = ZERO_SCALE if scale == 0.0 else (CONVERGED if converged and found_scale else MAX_ITER)
    return LocScale(col.center + mu, scale, n_location + n_scale, status)


@kernel
def sorted_one_step(y: np.ndarray, w: np.ndarray, k: float, beta: float) -> LocScale:
    """Take one reweighting step towards `huber`, starting from median and MAD, as R's cellWise does.

    With u = (y - m0)/s0, m0 the median and s0 the normalised MAD::

        mu    = sum w y min(1, k/|u|) / sum w min(1, k/|u|)
        scale = s1 sqrt(mean min(v**2, k**2) / beta),    v = (y - mu)/s1, s1 the normalised MAD about mu

    Parameters
    ----------
    y : ndarray of float64, shape (n,)
        The values, ascending.
    w : ndarray of float64, shape (n,) or (0,)
        Weights of the values; empty if all are one.
    k : float
        Distance at which Huber's psi is clipped, in units of the scale.
    beta : float
        The consistency constant of the scale, E min(Z**2, k**2).
    """
    if w.size == 0:
        return nonempty_one_step(y, None, k, beta)
    n = y.size
    weight, before, after = allocated((n,)), allocated((n + 1,)), allocated((n + 1,))
    half_partner, majority_partner = allocated_integers((n,)), allocated_integers((n,))
    no_nodes = ScoreNodes(half_partner, weight, weight, weight)
    result = nonempty_one_step(
        y, frequency_weights(w, FrequencyWork(weight, before, after, half_partner, majority_partner, no_nodes)), k, beta
    )
    release(weight)
    release(before)
    release(after)
    release(half_partner)
    release(majority_partner)
    return result


@kernel
def nonempty_one_step(y: np.ndarray, counts: FrequencyWeights | None, k: float, beta: float) -> LocScale:
    """Take the step of `sorted_one_step` for a column that is not empty, given tables of its weights.

    This is the fast form of `powerkern.kernels.robust.paper.huber_one_step`.

    Parameters
    ----------
    y : ndarray of float64, shape (n,)
        The values, ascending.
    counts : FrequencyWeights or None
        Weights of the values (`weights.frequency_weights`); None if all are one.
    k : float
        Distance at which Huber's psi is clipped, in units of the scale.
    beta : float
        The consistency constant of the scale, E min(Z**2, k**2).
    """
    n = y.size
    lower, upper = middle_positions(counts, n)
    center = y[lower]
    median = 0.5 * (y[upper] - center)
    origin = center + median
    s0 = MAD_FACTOR * middle_distance(y, counts, center, median)
    if s0 == 0.0:
        return LocScale(origin, 0.0, 0, ZERO_SCALE)
    limit = k * s0
    lo = find_position(y, center, median - limit, int(TAIL * n))
    hi = find_position(y, center, median + limit, n - lo)
    total = weight_sum(counts, n)
    below, above = weight_outside(counts, lo, hi, n)
    pull = _sum_about(y[lo:hi], weights_between(counts, lo, hi), center, median) + limit * (above - below)
    outer = _inverse_distances(y[:lo], weights_between(counts, 0, lo), origin)
    outer += _inverse_distances(y[hi:], weights_between(counts, hi, n), origin)
    mu = median + pull / (total - below - above + limit * outer)
    s1 = MAD_FACTOR * middle_distance(y, counts, center, mu)
    scale = math.sqrt(_clipped_squares(y, weights_between(counts, 0, n), center, mu, k * s1) / (total * beta))
    return LocScale(center + mu, scale, 1, CONVERGED if scale > 0.0 else ZERO_SCALE)


@kernel
def sorted_huber_likelihood(y: np.ndarray, counts: FrequencyWeights | None, k: float) -> LocScale:
    """Return the maximum-likelihood location and scale under Huber's least favourable density.

    They minimise ``ln s + sum rho(u)/(n c)``, where rho' = psi, u = (y - mu)/s and c = P(|Z| < k) for standard normal
    Z. So ``sum psi(u) = 0`` and ``sum psi(u) u = n c``. Let m be the mean of the values that are not clipped, and SS
    their sum of squares about m. Let D be the sum of y - m over values clipped above, minus the sum over values clipped
    below. For a given set of clipped values the solution is::

        n c s**2 - k D s - SS = 0,    mu = m + s k (number above - number below)/(number not clipped)

    The objective is convex in mu/s and 1/s, so steps to this solution converge if a step that overshoots is halved.
    With `counts`, n and the other numbers of values are replaced by sums of weights, and all sums are weighted.

    Parameters
    ----------
    y : ndarray of float64, shape (n,)
        The values, ascending.
    counts : FrequencyWeights or None
        Weights of the values; None if all are one.
    k : float
        Distance at which psi is clipped, in units of the scale.
    """
    n = y.size
    lower, upper = middle_positions(counts, n)
    center = y[lower]
    mu = 0.5 * (y[upper] - center)
    s = MAD_FACTOR * middle_distance(y, counts, center, mu)
    if not s > 0.0:
        return LocScale(center + mu, s, 0, ZERO_SCALE)
    total = weight_sum(counts, n)
    dof = total * math.erf(k / math.sqrt(2.0))
    lo, hi = int(TAIL * n), n - int(TAIL * n)
    solved = (-1, -1)
    before_mu, before_s, before = mu, s, math.inf
    for n_iter in range(1, MOST_ITERATIONS + 1):
        lo, hi = find_position(y, center, mu - k * s, lo), find_position(y, center, mu + k * s, hi)
        if (lo, hi) == solved:
            return LocScale(center + mu, s, n_iter, CONVERGED)
        below, above = weight_outside(counts, lo, hi, n)
        part = weights_between(counts, lo, hi)
        near, excess = weight_inside(counts, lo, hi), above - below
        m = _sum_about(y[lo:hi], part, center, 0.0) / near if near > 0.0 else mu
        squares = _clipped_squares(y[lo:hi], part, center, m, math.inf)
        apart = _sum_about(y[hi:], weights_between(counts, hi, n), center, m)
        apart = k * (apart - _sum_about(y[:lo], weights_between(counts, 0, lo), center, m))
        gap = (m - mu) / s
        rho = 0.5 * (squares / (s * s) + near * gap * gap - k * k * (total - near)) + apart / s + k * excess * gap
        value = log(s) + rho / dof
        if value > before + EPS * (1.0 + abs(before)):  # step back halfway, in mu/s and 1/s
            a, b = 0.5 * (mu / s + before_mu / before_s), 0.5 * (1.0 / s + 1.0 / before_s)
            mu, s, solved = a / b, 1.0 / b, (-1, -1)
        else:
            before_mu, before_s, before = mu, s, value
            s = (apart + math.sqrt(apart * apart + 4.0 * dof * squares)) / (2.0 * dof)
            mu, solved = m + s * k * excess / near if near > 0.0 else m, (lo, hi)
        if not s < math.inf or (abs(s - before_s) <= 4.0 * EPS * s and abs(mu - before_mu) <= 4.0 * EPS * s):
            return LocScale(center + mu, s, n_iter, CONVERGED if s < math.inf else MAX_ITER)
    return LocScale(center + mu, s, MOST_ITERATIONS, MAX_ITER)


@reduction
def _sum_about(part: np.ndarray, w: FloatArray | None, center: float, point: float) -> float:
    widest_vectors()
    total = 0.0
    for i in range(part.size):
        total += (1.0 if w is None else w[i]) * ((part[i] - center) - point)
    return total


@reduction
def _inverse_distances(part: np.ndarray, w: FloatArray | None, origin: float) -> float:
    widest_vectors()
    total = 0.0
    for i in range(part.size):
        total += (1.0 if w is None else w[i]) / abs(part[i] - origin)
    return total


@reduction
def _clipped_squares(part: np.ndarray, w: FloatArray | None, center: float, point: float, limit: float) -> float:
    """Return the weighted sum of ``min((y - center - point)**2, limit**2)``.

    Parameters
    ----------
    part : ndarray of float64, shape (n,)
        The values y.
    w : ndarray of float64, shape (n,), or None
        Weights of the values; None if all are one.
    center : float
        A value of the column. It is subtracted from y first, so that no digits are lost.
    point : float
        The point from which distances are measured, relative to `center`.
    limit : float
        The distance at which differences are clipped, in units of the data.
    """
    widest_vectors()
    total = 0.0
    for i in range(part.size):
        d = min(abs((part[i] - center) - point), limit)
        total += (1.0 if w is None else w[i]) * (d * d)
    return total


@kernel
def solve_jointly(solve: _Solver, y: np.ndarray, w: np.ndarray, k: float, k_location: float) -> LocScale:
    """Solve a pair of equations for location and scale jointly.

    The iteration starts from the median and the normalised MAD. If the MAD is 0, the initial scale is so large that
    some values different from the median are not clipped.

    Parameters
    ----------
    solve : kernel
        The solver (`_Solver`).
    y : ndarray of float64, shape (n,)
        The values, ascending.
    w : ndarray of float64, shape (n,) or (0,)
        Weights of the values; empty if all are one.
    k : float
        Constant k of Huber's psi in the scale equation, in units of the scale.
    k_location : float
        Constant of psi in the location equation, in units of the scale.
    """
    col = sorted_column(y, w)
    dof = col.total - 1.0
    start = MAD_FACTOR * mad_about(col, col.median)
    if not start > 0.0 and dof > 0.0:
        start = BEYOND * distance_at(col, col.median, col.total - 0.5 * dof * huber_beta(k) / (k * k)) / k
    if not (start > 0.0 and dof > 0.0):
        return LocScale(col.center + col.median, 0.0, 0, ZERO_SCALE)
    mu, scale, n_iter, converged = solve(col, start, k_location, k, dof)
    return make_loc_scale(col.center + mu, scale, n_iter, converged)


@kernel
def sorted_huber_location(y: np.ndarray, w: np.ndarray, scale: float, k: float) -> LocScale:
    """Return Huber's location of a sorted column for a known scale.

    Parameters
    ----------
    y : ndarray of float64, shape (n,)
        The values, ascending.
    w : ndarray of float64, shape (n,) or (0,)
        Weights of the values; empty if all are one.
    scale : float
        The known scale; NaN for the normalised MAD.
    k : float
        Distance at which Huber's psi is clipped, in units of the scale.
    """
    col = sorted_column(y, w)
    if math.isnan(scale):
        scale = MAD_FACTOR * mad_about(col, col.median)
    mu, n_iter, converged = col.median, 0, True
    if scale > 0.0:
        mu, n_iter, converged = location_about(col, scale, k)
    return make_loc_scale(col.center + mu, scale, n_iter, converged)


@kernel
def sorted_huber_scale(y: np.ndarray, w: np.ndarray, center: float, k: float, ddof: float) -> LocScale:
    """Return Huber's scale of a sorted column about a center.

    Parameters
    ----------
    y : ndarray of float64, shape (n,)
        The values, ascending.
    w : ndarray of float64, shape (n,) or (0,)
        Weights of the values; empty if all are one.
    center : float
        The center; NaN for the median.
    k : float
        Distance at which Huber's psi is clipped, in units of the scale.
    ddof : float
        Subtracted from the total weight to give the degrees of freedom.
    """
    col = sorted_column(y, w)
    if not math.isnan(center):
        col = Sorted(y, w, center, 0.0, col.total)
    loc, dof = col.center + col.median, col.total - ddof
    if not dof > 0.0:
        return LocScale(loc, 0.0, 0, ZERO_SCALE)
    scale, n_iter, converged = scale_about(col, col.median, MAD_FACTOR * mad_about(col, col.median), k, dof)
    return make_loc_scale(loc, scale, n_iter, converged)


@entry((ROWS, COUNTS, ROWS))
def likelihood_columns(columns: FloatArray, counts: IntArray, out: FloatArray) -> None:
    """Write location and scale of each row by `sorted_huber_likelihood`.

    Only the first ``counts[j]`` values of row j are used, which must be sorted. `out`, (p, 2), receives the results.
    """
    for j in range(columns.shape[0]):
        out[j, 0], out[j, 1], _, _ = sorted_huber_likelihood(columns[j, : counts[j]], None, HUBER_K)


@entry((ROWS, ROWS, COUNTS, FREQUENCY_WORK, ROWS))
def weighted_likelihood_columns(
    columns: FloatArray, weights: FloatArray, counts: IntArray, work: FrequencyWork, out: FloatArray
) -> None:
    """Write location and scale of each weighted row by `sorted_huber_likelihood`.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows; the first `counts` values of each are sorted, and only these are used.
    weights : (p, n)
        Weights of the values.
    counts : (p,) of int
        Number of sorted values of each column.
    work : FrequencyWork
        Scratch.
    out : (p, 2)
        Receives location and scale.
    """
    for j in range(columns.shape[0]):
        of_column = frequency_weights(weights[j, : counts[j]], work)
        out[j, 0], out[j, 1], _, _ = sorted_huber_likelihood(columns[j, : counts[j]], of_column, HUBER_K)
