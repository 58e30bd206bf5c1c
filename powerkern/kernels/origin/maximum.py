"""Find the lambda, origin and unit that maximise the likelihood of a power transform of (x - origin)/unit.

The likelihood (`powerkern.kernels.origin.likelihood`) may have several maxima in the origin. Newton's method starts
from the best points of a grid over the origin. It first uses a sample of the order statistics that includes all values
in the tails.
"""

from __future__ import annotations

import math

import numpy as np

from powerkern._jit import BLOCKS, BOOLEAN, ROWS, entry, kernel, named_tuple
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.cholesky import factor_cholesky, solve_factored
from powerkern.kernels.elementary.constants import copy
from powerkern.kernels.origin.likelihood import (
    BLOCK,
    CERTIFIED,
    GRADIENT,
    HESSIAN,
    INFORMATION,
    LIKELIHOOD,
    LMBDA,
    LOG_UNIT,
    N_AT,
    N_BLOCK,
    N_EVAL,
    N_PARAMETERS,
    N_SUMS,
    ORIGIN,
    OriginWork,
    evaluate,
)

# The constants of this search were chosen by trial on 140 columns of 12 to 2,000 values (the shapes of
# `tests.fuzz.starts`), which take 110.7 evaluations on average. The figures below are from the same columns.
#: Size of the sample, and number of values at each end of the column that are all in the sample. With twice SAMPLE the
#: maximum is higher in one column and lower in another, by 3e-4 and 2e-5 of L; with half it is higher in one column.
#: With _ENDS = 16 or 64 it is higher in one column and lower in another, by 3e-4 and 3e-3.
SAMPLE, _ENDS = 320, 32
#: Number of grid points at evenly spaced ranks, number of evenly spaced grid points, and number of local maxima that
#: are refined on all values. Twice _AT_RANKS takes 151 evaluations and finds a higher maximum in one column; half takes
#: 87 and finds a lower maximum in two. Twice _EVEN takes 140 and finds a higher maximum in three (by up to 0.06 of L);
#: half takes 95 and finds a lower maximum in two (by up to 0.1). _CLIMBED = 2 or 8 changes nothing.
_AT_RANKS, _EVEN, _CLIMBED = 20, 12, 4
_N_GRID = _AT_RANKS + _EVEN + 2
#: Maxima that are lower than the highest by more than _HOPELESS/(size of the sample) are not refined on all values. If
#: the sample is the whole column, the limit is _LOWER. Half and double change no result.
_HOPELESS, _LOWER = 2.0, 1e-5
#: Maxima that differ by less than this are considered equal, and the one with the smaller lambda is chosen. Symmetric
#: columns have two equal maxima, at lambda and 2 - lambda; rounding and the tolerance _CONVERGED make them differ by
#: less than this.
_EQUAL = 5e-10
#: Longest steps in lambda, x0 in units of s, and ln s. Double and half take 110.1 and 113.2 evaluations.
_LONGEST = (1.0, 1.0, 0.5)
#: Length below which a Newton step is the last: on all values (by quadratic convergence the error is then 1e-13), on a
#: sample, and at a grid point. Half and double the last tolerance take 116 and 103 evaluations, with the same results;
#: a third and three times the first also give the same results.
_CONVERGED, _ON_SAMPLE, _ROUGHLY = 3e-7, 1e-3, 1e-2
#: Safeguards: largest number of steps of a climb, and of a climb at a grid point. Half and double change no result.
_MOST_STEPS, _GRID_STEPS = 80, 8
#: Relative uncertainty of L: 45 rounding errors. With 0 a column takes 113.4 evaluations, with ten times as much 110.6.
_NOISE = 1e-14
#: Pivots of the Hessian that are smaller than this, relative to the diagonal, are considered rounding errors. 1e-12 and
#: 1e-8 change nothing.
_SINGULAR = 1e-10
#: Damping of the Hessian by Levenberg's rule: first value, factor after a failed step, factor after a successful step.
#: Half and double of each take 110.5 to 112.4 evaluations.
_DAMPED, _MORE, _LESS = 1e-2, 4.0, 0.1
ORIGIN_WORK = named_tuple(OriginWork, *(ROWS,) * 9)


def new_origin_work() -> OriginWork:
    """Allocate an `OriginWork`."""
    shapes = (
        *((N_BLOCK, BLOCK), (1, N_SUMS), (2, N_AT), (3, N_PARAMETERS), (N_PARAMETERS, N_PARAMETERS), (2, SAMPLE)),
        *((_N_GRID, N_PARAMETERS + 1), (_CLIMBED, N_PARAMETERS + 1), (N_PARAMETERS, 2)),
    )
    return OriginWork(*map(np.empty, shapes))


@entry((ROWS, ROWS, BOOLEAN, BLOCKS, ORIGIN_WORK, ROWS))
def origin_columns(
    columns: FloatArray, weights: FloatArray, box_cox: bool, ranges: FloatArray, work: OriginWork, out: FloatArray
) -> None:
    """Find the maximum of the log-likelihood L of every column, within given ranges of the parameters.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows, ascending, NaN last, scaled to a standard deviation of about 1.
    weights : (p, n)
        Weights of the values.
    box_cox : bool
        True: Box-Cox. False: Yeo-Johnson.
    ranges : (p, N_PARAMETERS, 2)
        Lower and upper bounds of the parameters. For Box-Cox the upper bound of x0 must be below the smallest value.
    work : OriginWork
        Scratch.
    out : (p, N_FOUND)
        For each column, receives the parameters, L, the information of lambda, the number of evaluations, and 1 if the
        maximum is certified.
    """
    for j in range(columns.shape[0]):
        n = columns.shape[1]
        while n > 0 and math.isnan(columns[j, n - 1]):
            n -= 1
        _search(columns[j, :n], weights[j, :n], box_cox, ranges[j], work, out[j])


@kernel
def _is_free(i: int, theta: FloatArray, ranges: FloatArray, at: FloatArray) -> bool:
    """Return whether parameter i is free: inside its range, or at an end of the range with L increasing inwards."""
    low, high = ranges[i, 0], ranges[i, 1]
    slope = at[GRADIENT + i]
    return bool(low < high and (theta[i] > low or slope > 0.0) and (theta[i] < high or slope < 0.0))


@kernel
def _free(x: FloatArray, theta: FloatArray, ranges: FloatArray, at: FloatArray) -> tuple[bool, bool, bool]:
    """Return whether each parameter (lambda, origin, unit) is free (see `_is_free`).

    If all values are on one side of the origin, origin and unit are confounded and at most one of them is free.
    """
    origin = _is_free(ORIGIN, theta, ranges, at)
    one_sided = theta[ORIGIN] <= x[0] or theta[ORIGIN] >= x[x.size - 1]
    unit = _is_free(LOG_UNIT, theta, ranges, at) and not (origin and one_sided)
    return _is_free(LMBDA, theta, ranges, at), origin, unit


@kernel
def _factor(at: FloatArray, damping: float, free: tuple[bool, bool, bool], matrix: FloatArray) -> bool:
    """Write the Cholesky factor of minus the Hessian of the free parameters, damped on the diagonal.

    Return False if the damped matrix is not positive definite.

    Parameters
    ----------
    at : (N_AT,)
        L, its gradient and the upper triangle of its Hessian.
    damping : float
        The fraction by which diagonal elements are increased.
    free : tuple of three bool
        Whether lambda, origin and unit are free.
    matrix : (3, 3)
        Receives the factor, with the rows of the identity for parameters that are not free.
    """
    k = HESSIAN
    for i in range(3):
        for j in range(i, 3):
            both = free[i] and free[j]
            matrix[j, i] = -at[k] if both else 0.0
            if i == j:
                matrix[i, i] = matrix[i, i] + damping * abs(at[k]) if both else 1.0
            k += 1
    return factor_cholesky(matrix, matrix, _SINGULAR, 0.0) == 3


@kernel
def _climb(
    x: FloatArray, w: FloatArray, box_cox: bool, ranges: FloatArray, tolerance: float, most: int, work: OriginWork
) -> int:
    """Maximise the log-likelihood L by damped Newton steps from ``work.steps[0]``, which receives the result.

    Return the number of evaluations, or minus that number if the steps did not become shorter than `tolerance`.

    Parameters
    ----------
    x : (n,)
        The column, ascending, without NaN.
    w : (n,)
        Weights of the values.
    box_cox : bool
        True: Box-Cox. False: Yeo-Johnson.
    ranges : (N_PARAMETERS, 2)
        Lower and upper bounds of the parameters.
    tolerance : float
        The climb ends after a step that changes every parameter by less than this.
    most : int
        Largest number of steps.
    work : OriginWork
        Scratch.
    """
    theta, trial, step = work.steps[0], work.steps[1], work.steps[2]
    at, new = work.at[0], work.at[1]
    evaluate(x, w, box_cox, theta, work, at)
    if at[0] == -math.inf:
        return -1
    damping = 0.0
    for n_eval in range(2, most + 2):
        free = _free(x, theta, ranges, at)
        while not _factor(at, damping, free, work.matrix):
            damping = max(_MORE * damping, _DAMPED)
            if not damping < math.inf:
                return 1 - n_eval
        for i in range(3):
            step[i] = at[GRADIENT + i] if free[i] else 0.0
        solve_factored(work.matrix, step)  # Newton's step
        unit, shrink, moved = math.exp(theta[LOG_UNIT]), 1.0, 0.0
        for i in range(3):
            if abs(step[i]) * shrink > _LONGEST[i]:
                shrink = _LONGEST[i] / abs(step[i])
        for i in range(3):
            change = shrink * step[i] * (unit if i == ORIGIN else 1.0)
            trial[i] = min(max(theta[i] + change, ranges[i, 0]), ranges[i, 1])
            moved = max(moved, abs(trial[i] - theta[i]))
        evaluate(x, w, box_cox, trial, work, new)
        if new[0] >= at[0] - _NOISE * (1.0 + abs(at[0])):
            copy(trial, theta)
            copy(new, at)
            if moved < tolerance:
                return n_eval
            damping = damping * _LESS if damping > _DAMPED * _LESS else 0.0
        else:
            damping = max(_MORE * damping, _DAMPED)
    return -(most + 1)


@kernel
def _draw(x: FloatArray, w: FloatArray, work: OriginWork) -> int:
    """Write a sample of the order statistics to `work.sample`, and return its size.

    The _ENDS smallest and the _ENDS largest values are included. The values between them are divided into strata, and
    the middle value of each stratum is included with the total weight of the stratum.
    """
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
    """Write the grid of origins, in ascending order.

    For Box-Cox the distances of the origins from the smallest value form a geometric sequence. For Yeo-Johnson some
    origins are evenly spaced in rank and some evenly spaced from `low` to `high`.

    Parameters
    ----------
    x : (n,)
        The column, ascending.
    box_cox : bool
        True: Box-Cox. False: Yeo-Johnson.
    low : float
        Smallest origin.
    high : float
        Largest origin.
    grid : (_N_GRID, N_PARAMETERS + 1)
        Receives the origins in column ORIGIN.
    """
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
    """Maximise L over lambda for each origin of the grid, at the smallest unit; return the number of evaluations.

    Parameters
    ----------
    x : (n,)
        The sample, ascending.
    w : (n,)
        Weights of its values.
    box_cox : bool
        True: Box-Cox. False: Yeo-Johnson.
    ranges : (N_PARAMETERS, 2)
        Lower and upper bounds of the parameters.
    work : OriginWork
        Scratch; `work.grid` receives the parameters and L.
    """
    theta, grid, fixed = work.steps[0], work.grid, work.ranges
    low, high, unit = ranges[ORIGIN, 0], ranges[ORIGIN, 1], ranges[LOG_UNIT, 0]
    _lay_grid(x, box_cox, low, high, grid)
    fixed[LMBDA, 0], fixed[LMBDA, 1] = ranges[LMBDA, 0], ranges[LMBDA, 1]
    fixed[LOG_UNIT, 0], fixed[LOG_UNIT, 1] = unit, unit
    lmbda, n_eval = min(max(1.0, ranges[LMBDA, 0]), ranges[LMBDA, 1]), 0
    for k in range(_N_GRID):
        x0 = min(max(grid[k, ORIGIN], low), high)
        if k > 0 and x0 == grid[k - 1, ORIGIN]:
            copy(grid[k - 1], grid[k])
            continue
        fixed[ORIGIN, 0], fixed[ORIGIN, 1] = x0, x0
        theta[LMBDA], theta[ORIGIN], theta[LOG_UNIT] = lmbda, x0, unit
        n_eval += abs(_climb(x, w, box_cox, fixed, _ROUGHLY, _GRID_STEPS, work))
        _note(work, grid[k])
        if grid[k, LIKELIHOOD] > -math.inf:
            lmbda = theta[LMBDA]
    return n_eval


@kernel
def _note(work: OriginWork, row: FloatArray) -> None:
    """Copy the current parameters in `work`, and the log-likelihood L at these parameters, to `row`."""
    for i in range(N_PARAMETERS):
        row[i] = work.steps[0, i]
    row[LIKELIHOOD] = work.at[0, 0]


@kernel
def _search(x: FloatArray, w: FloatArray, box_cox: bool, ranges: FloatArray, work: OriginWork, out: FloatArray) -> None:
    """Climb from the local maxima of the grid, first on the sample and then on all values; write the highest maximum.

    The other arguments are those of `_climb`.

    Parameters
    ----------
    work : OriginWork
        Scratch.
    out : (N_FOUND,)
        Receives the result (see `origin_columns`).
    """
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
    """Return the information of lambda: minus the second derivative of L maximised over the other free parameters.

    The result is NaN if minus the Hessian is not positive definite.
    """
    _, origin, unit = _free(x, work.steps[0], ranges, work.at[0])
    if not _factor(work.at[0], 0.0, (True, origin, unit), work.matrix):
        return math.nan
    step, matrix = work.steps[2], work.matrix
    step[0], step[1], step[2] = 1.0, 0.0, 0.0
    solve_factored(matrix, step)  # the first column of the inverse
    return float(1.0 / step[0])
