"""Likelihood of a power transform of (x - origin)/unit, maximised over lambda, the origin and the unit.

With u = (x - x0)/s and psi the transform of u, per observation and without ln(2 pi)/2 + 1/2 ([1]_, in our words):

    L = -ln(Var psi)/2 - ln s + (lambda - 1) mean(J),   J = ln u (Box-Cox), sign(u) ln(1 + |u|) (Yeo-Johnson).

Box-Cox's s cancels against the variance, and stays at 1. L has several maxima in x0. It is climbed by Newton's method
from the best points of a grid over x0, first on a sample of the order statistics, whose tails are complete. The values
are sorted, so that a branch of Yeo-Johnson is a stretch of them, and a block of values has one exponent m. With
v = 1 + |u| (Box-Cox: u), a = ln v and psi = +-b_m(a), all derivatives come from v^m, a and 1/v:

    psi_u = v^(m - 1),   psi_uu = (lambda - 1) v^(m - 2),   psi_u,lambda = +-a v^(m - 1).

References
----------
.. [1] A. Zwanenburg and S. Löck, "Location and scale-invariant power transformations", Machine Learning 115, 2026.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powerkern._jit import BLOCKS, BOOLEAN, ROWS, entry, kernel, named_tuple, reduction
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp_log import exp, log

#: The parameters, and their ranges: lambda, the origin, the log of the unit.
LMBDA, ORIGIN, LOG_UNIT, N_PARAMETERS = range(4)
#: What is found, beyond the parameters: L, the information of lambda with the others free, evaluations, certificate.
LIKELIHOOD, INFORMATION, N_EVAL, CERTIFIED, N_FOUND = range(3, 8)

_BLOCK = 256
# rows of a block: u, 1/v, a, b_m(a), its derivatives in m, and v^(m - 1)
_U, _R, _A, _Y, _Y1, _Y2, _P, _N_BLOCK = range(8)

# sums over values: weights; psi, its first derivatives (lambda, x0, ln s) and second ones (in the order of the upper
# triangle); psi times all of these; products of first derivatives; J, its first derivatives, and second ones in x0, s
_FIRST, _SECOND, _TIMES, _CROSS, _JACOBIAN, _N_SUMS = 1, 5, 11, 21, 27, 33

# L, its gradient and the upper triangle of its Hessian, x0 in units of s
_GRADIENT, _HESSIAN, _N_AT = 1, 4, 10

#: Values of a sample, and of them those at either end of the column, which all are in it.
SAMPLE, _ENDS = 320, 32
#: Points of the grid over x0: between order statistics, and evenly spaced; the maxima that are climbed on all values.
_AT_RANKS, _EVEN, _CLIMBED = 20, 12, 4
_N_GRID = _AT_RANKS + _EVEN + 2
#: Maxima on the sample that are this much lower than the highest are not climbed again; times its size, if it is one.
_HOPELESS, _LOWER = 2.0, 1e-5
#: Of maxima that differ by no more, the one of the least lambda counts: symmetric columns have two, at l and 2 - l.
_EQUAL = 5e-10
#: Longest steps, of lambda, x0 in units of s, and ln s.
_LONGEST = (1.0, 1.0, 0.5)
#: Where Newton's method has converged; on a sample; at one point of the grid.
_CONVERGED, _ON_SAMPLE, _ROUGHLY = 3e-7, 1e-3, 1e-2
_MOST_STEPS, _GRID_STEPS = 80, 8
#: L is not known better than this.
_NOISE = 1e-14
_SINGULAR = 1e-10
#: How the Hessian is damped: at first, after a step that fails, and after one that succeeds.
_DAMPED, _MORE, _LESS = 1e-2, 4.0, 0.1

# b_m'' = a^3 sum_k t^k/(k! (k + 3)), t = m a: for |t| <= _SMALL to rounding
_SERIES = tuple(1.0 / (math.factorial(k) * (k + 3)) for k in range(13))
_SMALL = 0.5


class OriginWork(NamedTuple):
    """Scratch for one column."""

    block: FloatArray
    sums: FloatArray  #: a row
    at: FloatArray  #: L and its derivatives, at the present point and at the next
    steps: FloatArray  #: present point, next, step
    matrix: FloatArray
    sample: FloatArray  #: values, and weights
    grid: FloatArray  #: parameters and L
    tops: FloatArray  #: the same of maxima
    ranges: FloatArray  #: as `ranges` of a column, for one point of the grid


ORIGIN_WORK = named_tuple(OriginWork, *(ROWS,) * 9)


def new_origin_work() -> OriginWork:
    """The arrays of `OriginWork`."""
    shapes = (
        *((_N_BLOCK, _BLOCK), (1, _N_SUMS), (2, _N_AT), (3, N_PARAMETERS), (N_PARAMETERS, N_PARAMETERS), (2, SAMPLE)),
        *((_N_GRID, N_PARAMETERS + 1), (_CLIMBED, N_PARAMETERS + 1), (N_PARAMETERS, 2)),
    )
    return OriginWork(*map(np.empty, shapes))


@entry((ROWS, ROWS, BOOLEAN, BLOCKS, ORIGIN_WORK, ROWS))
def origin_columns(
    columns: FloatArray, weights: FloatArray, box_cox: bool, ranges: FloatArray, work: OriginWork, out: FloatArray
) -> None:
    """The maximum of L of every column, sorted and with NaN last, within ranges: (p, N_PARAMETERS, 2).

    Columns are of a scale of 1. The range of x0 of Box-Cox ends below the smallest value.
    """
    for j in range(columns.shape[0]):
        n = columns.shape[1]
        while n > 0 and math.isnan(columns[j, n - 1]):
            n -= 1
        _search(columns[j, :n], weights[j, :n], box_cox, ranges[j], work, out[j])


@kernel
def _logs(x: FloatArray, x0: float, scaling: float, side: float, one: float, block: FloatArray) -> None:
    """u, 1/v and a of some values on one side."""
    for i in range(x.size):
        u = (x[i] - x0) * scaling
        v = one + side * u
        block[_U, i] = u
        block[_R, i] = 1.0 / v
        block[_A, i] = log(v)


@kernel
def _powers(n: int, m: float, block: FloatArray) -> None:
    """b_m(a), its derivatives in m, and v^(m - 1)."""
    inverse = 1.0 / m
    for i in range(n):
        a = block[_A, i]
        power = exp(m * a)
        b = (power - 1.0) * inverse
        b1 = (a * power - b) * inverse
        block[_Y, i], block[_Y1, i] = b, b1
        block[_Y2, i] = (a * a * power - 2.0 * b1) * inverse
        block[_P, i] = power * block[_R, i]


@kernel
def _powers_near_0(n: int, m: float, block: FloatArray) -> None:
    """The same where |m a| is small: b'' by its series, from which b' and b follow without a division by m."""
    for i in range(n):
        a = block[_A, i]
        t = m * a
        power = exp(t)
        series = _SERIES[12]
        for k in range(12):
            series = series * t + _SERIES[11 - k]
        b2 = a * a * a * series
        b1 = 0.5 * (a * a * power - m * b2)
        block[_Y, i] = a * power - m * b1
        block[_Y1, i], block[_Y2, i] = b1, b2
        block[_P, i] = power * block[_R, i]


@reduction
def _add(w: FloatArray, slope: float, side: float, y0: float, block: FloatArray, sums: FloatArray) -> None:
    """Add a block of one side to the sums; psi is measured from y0."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = s9 = s10 = 0.0
    for i in range(w.size):  # three loops of about ten sums each: more do not fit into registers
        wi, u, a, p = w[i], block[_U, i], block[_A, i], block[_P, i]
        bend = slope * p * block[_R, i]  # psi_uu
        y1, moved = block[_Y1, i], u * p
        s0 += wi
        s1 += wi * (side * block[_Y, i] - y0)
        s2 += wi * y1
        s3 -= wi * p
        s4 -= wi * moved
        s5 += wi * block[_Y2, i]
        s6 -= wi * a * p
        s7 -= wi * a * moved
        s8 += wi * bend
        s9 += wi * (p + u * bend)
        s10 += wi * (moved + u * u * bend)
    sums[0] += s0
    sums[_FIRST] += s1
    sums[_FIRST + 1] += s2
    sums[_FIRST + 2] += s3
    sums[_FIRST + 3] += s4
    sums[_SECOND] += side * s5
    sums[_SECOND + 1] += side * s6
    sums[_SECOND + 2] += side * s7
    sums[_SECOND + 3] += s8
    sums[_SECOND + 4] += s9
    sums[_SECOND + 5] += s10
    s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = s9 = s10 = 0.0
    for i in range(w.size):
        u, a, p = block[_U, i], block[_A, i], block[_P, i]
        y = side * block[_Y, i] - y0
        wy, bend, moved = w[i] * y, slope * p * block[_R, i], u * p
        s1 += wy * y
        s2 += wy * block[_Y1, i]
        s3 -= wy * p
        s4 -= wy * moved
        s5 += wy * block[_Y2, i]
        s6 -= wy * a * p
        s7 -= wy * a * moved
        s8 += wy * bend
        s9 += wy * (p + u * bend)
        s10 += wy * (moved + u * u * bend)
    sums[_TIMES] += s1
    sums[_TIMES + 1] += s2
    sums[_TIMES + 2] += s3
    sums[_TIMES + 3] += s4
    sums[_TIMES + 4] += side * s5
    sums[_TIMES + 5] += side * s6
    sums[_TIMES + 6] += side * s7
    sums[_TIMES + 7] += s8
    sums[_TIMES + 8] += s9
    sums[_TIMES + 9] += s10
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = s9 = s10 = 0.0
    for i in range(w.size):
        wi, u, r, p, y1 = w[i], block[_U, i], block[_R, i], block[_P, i], block[_Y1, i]
        moved = u * p
        s0 += wi * y1 * y1
        s1 -= wi * y1 * p
        s2 -= wi * y1 * moved
        s3 += wi * p * p
        s4 += wi * p * moved
        s5 += wi * moved * moved
        s6 += wi * block[_A, i]
        s7 += wi * r
        s8 += wi * u * r
        s9 += wi * r * r
        s10 += wi * u * r * r
    sums[_CROSS] += s0
    sums[_CROSS + 1] += s1
    sums[_CROSS + 2] += s2
    sums[_CROSS + 3] += s3
    sums[_CROSS + 4] += s4
    sums[_CROSS + 5] += s5
    sums[_JACOBIAN] += side * s6
    sums[_JACOBIAN + 1] -= s7
    sums[_JACOBIAN + 2] -= s8
    sums[_JACOBIAN + 3] -= side * s9
    sums[_JACOBIAN + 4] += s9
    sums[_JACOBIAN + 5] += s10


@kernel
def _psi(u: float, lmbda: float, box_cox: bool) -> float:
    """About the transform of one value: what others are measured from."""
    below = u < 0.0 and not box_cox
    m = 2.0 - lmbda if below else lmbda
    a = math.log(u if box_cox else 1.0 + abs(u))
    b = math.expm1(m * a) / m if m != 0.0 else a
    return -b if below else b


@kernel
def _first_from(x: FloatArray, x0: float) -> int:
    """The rank of the smallest value that is at least x0."""
    low, high = 0, x.size
    while low < high:
        middle = (low + high) // 2
        if x[middle] < x0:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _evaluate(x: FloatArray, w: FloatArray, box_cox: bool, theta: FloatArray, work: OriginWork, at: FloatArray) -> None:
    """L and its derivatives; -inf where the variance is not a number."""
    lmbda, x0, scaling = theta[LMBDA], theta[ORIGIN], math.exp(-theta[LOG_UNIT])
    n, block, sums = x.size, work.block, work.sums[0]
    for k in range(_N_SUMS):
        sums[k] = 0.0
    y0 = _psi((x[n // 2] - x0) * scaling, lmbda, box_cox)
    border = 0 if box_cox else _first_from(x, x0)
    one = 0.0 if box_cox else 1.0
    for part in range(2):
        side = -1.0 if part == 0 else 1.0
        start, stop = (0, border) if part == 0 else (border, n)
        if start == stop:
            continue
        m = 2.0 - lmbda if part == 0 else lmbda
        first = math.log(one + side * (x[start] - x0) * scaling)
        last = math.log(one + side * (x[stop - 1] - x0) * scaling)
        near_0 = abs(m) * max(abs(first), abs(last)) <= _SMALL
        for i in range(start, stop, _BLOCK):
            k = min(i + _BLOCK, stop)
            _logs(x[i:k], x0, scaling, side, one, block)
            if near_0:
                _powers_near_0(k - i, m, block)
            else:
                _powers(k - i, m, block)
            _add(w[i:k], side * (m - 1.0), side, y0, block, sums)
    _likelihood_of(sums, lmbda, theta[LOG_UNIT], at)


@kernel
def _likelihood_of(sums: FloatArray, lmbda: float, log_unit: float, at: FloatArray) -> None:
    """L and its derivatives from sums: Cov(psi, psi_i) and its like over Var(psi)."""
    share, power = 1.0 / sums[0], lmbda - 1.0
    mean = sums[_FIRST] * share
    variance = sums[_TIMES] * share - mean * mean
    if not 0.0 < variance < math.inf:
        at[0] = -math.inf
        return
    per = 1.0 / variance
    at[0] = -0.5 * math.log(variance) - log_unit + power * sums[_JACOBIAN] * share
    for i in range(3):
        slope = (sums[_TIMES + 1 + i] - mean * sums[_FIRST + 1 + i]) * share * per
        own = sums[_JACOBIAN] * share if i == LMBDA else power * sums[_JACOBIAN + i] * share
        at[_GRADIENT + i] = own - slope
    k = 0
    for i in range(3):
        for j in range(i, 3):
            first, second = sums[_FIRST + 1 + i], sums[_FIRST + 1 + j]
            slopes = (sums[_TIMES + 1 + i] - mean * first) * (sums[_TIMES + 1 + j] - mean * second)
            cross = sums[_CROSS + k] - first * second * share
            bend = sums[_TIMES + 4 + k] - mean * sums[_SECOND + k]
            own = 0.0
            if i > 0:
                own = power * sums[_JACOBIAN + k] * share
            elif j > 0:
                own = sums[_JACOBIAN + j] * share
            at[_HESSIAN + k] = own - (cross + bend) * share * per + 2.0 * slopes * (share * per) ** 2
            k += 1
    at[_GRADIENT + LOG_UNIT] -= 1.0


@kernel
def _is_free(i: int, theta: FloatArray, ranges: FloatArray, at: FloatArray) -> bool:
    """Whether a parameter can move: L does not grow beyond the end of its range that it is at."""
    low, high = ranges[i, 0], ranges[i, 1]
    slope = at[_GRADIENT + i]
    return bool(low < high and (theta[i] > low or slope > 0.0) and (theta[i] < high or slope < 0.0))


@kernel
def _free(x: FloatArray, theta: FloatArray, ranges: FloatArray, at: FloatArray) -> tuple[bool, bool, bool]:
    """Which parameters can move: where all values are on one side of x0, of x0 and the unit only one."""
    origin = _is_free(ORIGIN, theta, ranges, at)
    one_sided = theta[ORIGIN] <= x[0] or theta[ORIGIN] >= x[x.size - 1]
    unit = _is_free(LOG_UNIT, theta, ranges, at) and not (origin and one_sided)
    return _is_free(LMBDA, theta, ranges, at), origin, unit


@kernel
def _factor(at: FloatArray, damping: float, free: tuple[bool, bool, bool], matrix: FloatArray) -> bool:
    """Cholesky's factor of minus the Hessian of the free parameters, its diagonal enlarged; whether there is one."""
    k = _HESSIAN
    for i in range(3):
        for j in range(i, 3):
            both = free[i] and free[j]
            matrix[j, i] = -at[k] if both else 0.0
            if i == j:
                matrix[i, i] = matrix[i, i] + damping * abs(at[k]) if both else 1.0
            k += 1
    for i in range(3):
        least = _SINGULAR * abs(matrix[i, i])
        for j in range(i + 1):
            rest = matrix[i, j]
            for k in range(j):
                rest -= matrix[i, k] * matrix[j, k]
            if i == j:
                if not rest > least:
                    return False
                matrix[i, i] = math.sqrt(rest)
            else:
                matrix[i, j] = rest / matrix[j, j]
    return True


@kernel
def _solve(matrix: FloatArray, at: FloatArray, free: tuple[bool, bool, bool], step: FloatArray) -> None:
    """Newton's step, 0 for parameters that are not free."""
    for i in range(3):
        rest = at[_GRADIENT + i] if free[i] else 0.0
        for k in range(i):
            rest -= matrix[i, k] * step[k]
        step[i] = rest / matrix[i, i]
    for i in range(2, -1, -1):
        rest = step[i]
        for k in range(i + 1, 3):
            rest -= matrix[k, i] * step[k]
        step[i] = rest / matrix[i, i]


@kernel
def _climb(
    x: FloatArray, w: FloatArray, box_cox: bool, ranges: FloatArray, tolerance: float, most: int, work: OriginWork
) -> int:
    """Climb from ``work.steps[0]`` by damped Newton steps; number of evaluations, negative if not converged."""
    theta, trial, step = work.steps[0], work.steps[1], work.steps[2]
    at, new = work.at[0], work.at[1]
    _evaluate(x, w, box_cox, theta, work, at)
    if at[0] == -math.inf:
        return -1
    damping = 0.0
    for n_eval in range(2, most + 2):
        free = _free(x, theta, ranges, at)
        while not _factor(at, damping, free, work.matrix):
            damping = max(_MORE * damping, _DAMPED)
            if not damping < math.inf:
                return -n_eval
        _solve(work.matrix, at, free, step)
        unit, shrink, moved = math.exp(theta[LOG_UNIT]), 1.0, 0.0
        for i in range(3):
            if abs(step[i]) * shrink > _LONGEST[i]:
                shrink = _LONGEST[i] / abs(step[i])
        for i in range(3):
            change = shrink * step[i] * (unit if i == ORIGIN else 1.0)
            trial[i] = min(max(theta[i] + change, ranges[i, 0]), ranges[i, 1])
            moved = max(moved, abs(trial[i] - theta[i]))
        _evaluate(x, w, box_cox, trial, work, new)
        if new[0] >= at[0] - _NOISE * (1.0 + abs(at[0])):
            for i in range(3):
                theta[i] = trial[i]
            for i in range(_N_AT):
                at[i] = new[i]
            if moved < tolerance:
                return n_eval
            damping = damping * _LESS if damping > _DAMPED * _LESS else 0.0
        else:
            damping = max(_MORE * damping, _DAMPED)
    return -(most + 1)


@kernel
def _draw(x: FloatArray, w: FloatArray, work: OriginWork) -> int:
    """A sample of the order statistics, with the weights of those they stand for; its size."""
    n = x.size
    if n <= SAMPLE:
        for i in range(n):
            work.sample[0, i], work.sample[1, i] = x[i], w[i]
        return n
    strata, inner = SAMPLE - 2 * _ENDS, n - 2 * _ENDS
    for i in range(_ENDS):
        j, k = SAMPLE - _ENDS + i, n - _ENDS + i
        work.sample[0, i], work.sample[1, i] = x[i], w[i]
        work.sample[0, j], work.sample[1, j] = x[k], w[k]
    for i in range(strata):
        start, stop = _ENDS + i * inner // strata, _ENDS + (i + 1) * inner // strata
        total = 0.0
        for k in range(start, stop):
            total += w[k]
        work.sample[0, _ENDS + i], work.sample[1, _ENDS + i] = x[(start + stop) // 2], total
    return SAMPLE


@kernel
def _lay_grid(x: FloatArray, box_cox: bool, low: float, high: float, grid: FloatArray) -> None:
    """Ascending origins: for Box-Cox at distances from the smallest value that grow in proportion."""
    if box_cox:
        near, far = x[0] - high, x[0] - low
        for k in range(_N_GRID):
            grid[k, ORIGIN] = x[0] - far * (near / far) ** (k / (_N_GRID - 1.0))
        return
    n = x.size
    for k in range(_N_GRID):
        if k < _AT_RANKS:
            place = (k + 0.5) * (n - 1.0) / _AT_RANKS
            rank = int(place)
            x0 = x[rank] + (place - rank) * (x[rank + 1] - x[rank])
        else:
            x0 = low + (high - low) * (k - _AT_RANKS) / (_EVEN + 1.0)
        i = k
        while i > 0 and grid[i - 1, ORIGIN] > x0:
            grid[i, ORIGIN] = grid[i - 1, ORIGIN]
            i -= 1
        grid[i, ORIGIN] = x0


@kernel
def _scan(x: FloatArray, w: FloatArray, box_cox: bool, ranges: FloatArray, work: OriginWork) -> int:
    """The best lambda at every point of the grid, the unit at its lower end; number of evaluations."""
    theta, grid, fixed = work.steps[0], work.grid, work.ranges
    low, high, unit = ranges[ORIGIN, 0], ranges[ORIGIN, 1], ranges[LOG_UNIT, 0]
    _lay_grid(x, box_cox, low, high, grid)
    fixed[LMBDA, 0], fixed[LMBDA, 1] = ranges[LMBDA, 0], ranges[LMBDA, 1]
    fixed[LOG_UNIT, 0], fixed[LOG_UNIT, 1] = unit, unit
    lmbda, n_eval = min(max(1.0, ranges[LMBDA, 0]), ranges[LMBDA, 1]), 0
    for k in range(_N_GRID):
        x0 = min(max(grid[k, ORIGIN], low), high)
        if k > 0 and x0 == grid[k - 1, ORIGIN]:
            _copy_row(grid[k - 1], grid[k])
            continue
        fixed[ORIGIN, 0], fixed[ORIGIN, 1] = x0, x0
        theta[LMBDA], theta[ORIGIN], theta[LOG_UNIT] = lmbda, x0, unit
        n_eval += abs(_climb(x, w, box_cox, fixed, _ROUGHLY, _GRID_STEPS, work))
        _note(work, grid[k])
        if grid[k, LIKELIHOOD] > -math.inf:
            lmbda = theta[LMBDA]
    return n_eval


@kernel
def _copy_row(row: FloatArray, to: FloatArray) -> None:
    for i in range(row.size):
        to[i] = row[i]


@kernel
def _note(work: OriginWork, row: FloatArray) -> None:
    """The present point, and L there."""
    for i in range(N_PARAMETERS):
        row[i] = work.steps[0, i]
    row[LIKELIHOOD] = work.at[0, 0]


@kernel
def _search(x: FloatArray, w: FloatArray, box_cox: bool, ranges: FloatArray, work: OriginWork, out: FloatArray) -> None:
    """The highest of the maxima to which the points of the grid lead that are higher than their neighbours."""
    grid, tops, theta = work.grid, work.tops, work.steps[0]
    size = _draw(x, w, work)
    xs, ws = work.sample[0, :size], work.sample[1, :size]
    n_eval = _scan(xs, ws, box_cox, ranges, work)
    n_tops, highest = 0, -math.inf
    for k in range(_N_GRID):
        here = grid[k, LIKELIHOOD]
        before = grid[k - 1, LIKELIHOOD] if k > 0 else -math.inf
        after = grid[k + 1, LIKELIHOOD] if k < _N_GRID - 1 else -math.inf
        if not (here > before and here >= after):
            continue
        for i in range(N_PARAMETERS):
            theta[i] = grid[k, i]
        n_eval += abs(_climb(xs, ws, box_cox, ranges, _ON_SAMPLE, _MOST_STEPS, work))
        place = n_tops
        for j in range(n_tops):
            if abs(tops[j, ORIGIN] - theta[ORIGIN]) < _ROUGHLY and abs(tops[j, LMBDA] - theta[LMBDA]) < _ROUGHLY:
                place = -1
        if place == _CLIMBED:
            for j in range(_CLIMBED):
                if tops[j, LIKELIHOOD] < (work.at[0, 0] if place == _CLIMBED else tops[place, LIKELIHOOD]):
                    place = j
        if 0 <= place < _CLIMBED:
            _note(work, tops[place])
            n_tops = max(n_tops, place + 1)
            highest = max(highest, work.at[0, 0])
    out[LIKELIHOOD] = -math.inf
    for j in range(n_tops):
        if tops[j, LIKELIHOOD] < highest - (_HOPELESS / size if size < x.size else _LOWER):
            continue
        for i in range(N_PARAMETERS):
            theta[i] = tops[j, i]
        n_climb = _climb(x, w, box_cox, ranges, _CONVERGED, _MOST_STEPS, work)
        n_eval += abs(n_climb)
        gain, aside = work.at[0, 0] - out[LIKELIHOOD], theta[LMBDA] - out[LMBDA]
        if gain > (math.copysign(_EQUAL, aside) if abs(aside) > _ROUGHLY else 0.0):
            _note(work, out)
            out[CERTIFIED] = 1.0 if n_climb > 0 else 0.0
            out[INFORMATION] = _information(x, ranges, work)
    out[N_EVAL] = n_eval


@kernel
def _information(x: FloatArray, ranges: FloatArray, work: OriginWork) -> float:
    """Minus the second derivative of L in lambda where the other parameters, unless at an end, follow it."""
    _, origin, unit = _free(x, work.steps[0], ranges, work.at[0])
    if not _factor(work.at[0], 0.0, (True, origin, unit), work.matrix):
        return math.nan
    step, matrix = work.steps[2], work.matrix
    for i in range(3):  # the first element of the inverse
        rest = 1.0 if i == 0 else 0.0
        for k in range(i):
            rest -= matrix[i, k] * step[k]
        step[i] = rest / matrix[i, i]
    return float(1.0 / (step[0] ** 2 + step[1] ** 2 + step[2] ** 2))
