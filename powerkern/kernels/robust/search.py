"""Find the initial lambda of a robust fit, which minimises an estimator's objective over a range.

By default the objective is evaluated on a grid, and the intervals that contain local minima become cells
(`find_start`). Each cell is then searched; in a long column it is searched first on a sample of order statistics and
then on all values. The alternative, as in R, is one run of Brent's method over the full interval. `Search` has the
functions in which estimators differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from powerkern._jit import kernel, specialize_on_none
from powerkern._typing import FloatArray
from powerkern.kernels.location.weights import FrequencyWeights, frequency_weights, position_at
from powerkern.kernels.optimize.brent import brent_start, brent_step
from powerkern.kernels.optimize.status import RUNNING
from powerkern.kernels.robust.column import Prestandardized, SearchResult
from powerkern.kernels.robust.options import GLOBAL, Options, change_ranks
from powerkern.kernels.robust.scratch import ALL, SAMPLE, RobustWork
from powerkern.kernels.transforms.rectified import SortedColumn

#: Default tolerance of R's optimize(), the fourth root of the machine epsilon.
CELLWISE_XTOL = 0.0001220703125
#: Tolerance in lambda on the sample, which only locates the interval for the search on all values, and tolerance on all
#: values. With half of _FINE_XTOL, 160 difficult columns take 64.8 evaluations instead of 64.5, and end at most 6e-8
#: above the lowest minimum instead of 7e-8; with double, they take 63.8 and end at most 4e-7 above it (report_constants
#: starts). _REACH is half the width of the interval that is searched on all values (at n = 1e6 the lambda0 of a sample
#: of 512 is off by 1e-4), and _WIDEST is the largest width to which that interval is widened.
_COARSE_XTOL, _FINE_XTOL, _REACH, _WIDEST = 2e-3, 1e-5, 0.1, 4.0
#: Largest number of times that this interval is widened, threefold: from 2 * _REACH to 0.6, 1.8 and beyond _WIDEST.
_MOST_WIDENINGS = 4
#: A column is called multimodal if a second minimum is at most _MARGIN higher than the lowest and at least _APART away
#: in lambda. Minima of the sample within _MARGIN of the lowest are refined on all values.
_MARGIN, _APART = 0.02, 0.25
#: Largest number of evaluations in a cell, a safeguard.
MAX_EVAL = 100
#: Distance of grid points, and their largest number, for ranges of up to 32. For the QQ objective of short and tied
#: columns such a grid misses the lowest minimum in 1.7 % of the cases. It is used for smoother objectives, and followed
#: by a finer grid.
_STEP, _MAX_SCAN = 0.5, 64
#: Number of points of the second grid around the lowest point, factor by which it is finer, and number of points beyond
#: an end of the range, a multiple of LANES. With steps of 1/8 instead of 1/16, 3 of 300 columns missed a minimum of the
#: trimmed likelihood that was lower by more than 1e-4 (`tests.fuzz.starts`).
_N_FINER, _FINER, _N_OUTWARD = 17, 8.0, 16
#: Between two grid points the objective is assumed to be less than this much below its values at the points. Half and
#: double this value give the same minima of Carroll's objective for 60 difficult columns, with as many evaluations
#: (report_constants carroll).
_RIVAL = 0.1

# fields of a cell: its ends and the objective at the ends (inf: unknown), its lowest known point and the objective at
# this point, the minimiser that was found in it (NaN: not searched), and a lower bound on the minimum
LOW, HIGH, AT_LOW, AT_HIGH, LOWEST, VALUE, _MINIMISER, _FLOOR = range(8)


class GridScan(NamedTuple):
    """Result of evaluating the objective on a grid of lambda: the cells to search, and the number of evaluations."""

    n_cells: int  #: number of cells in `RobustWork.cells`
    n_eval: int  #: number of evaluations
    inside: bool  #: whether the lowest point is inside the range
    first: int  #: index of the first cell to search


class Stop(NamedTuple):
    """Stopping rule of the search in a cell."""

    xtol: float  #: tolerance in lambda
    bound: float  #: the highest minimum of interest
    widest: float  #: largest width to which an interval is widened if its minimum is at an end


class LocalMinimum(NamedTuple):
    """A local minimum of the objective: lambda, the value at this lambda, and the number of evaluations made."""

    lmbda: float
    value: float
    n_eval: int


#: Evaluates the objective of a column at a lambda; NaN if it is not defined.
Objective = Callable[[Prestandardized, float, Options, RobustWork], float]
#: Writes the objective at the first n points of `RobustWork.grid`, and lower bounds near them; returns the index of the
#: lowest: (column, n, options, work).
Evaluate = Callable[[Prestandardized, int, Options, RobustWork], int]


class Search(NamedTuple):
    """The functions that define the search for an estimator's initial lambda."""

    objective: Objective
    #: computes the target for a sample: (column, sample, weights of the sample, work)
    sample_target: Callable[[Prestandardized, SortedColumn, Any, RobustWork], Any]
    #: appends cells with local minima to the first cell, the full range: (column, low, high, options, work)
    scan: Callable[[Prestandardized, float, float, Options, RobustWork], GridScan]
    #: finds the minimum in a cell: (objective, column, cell, stop, options, work)
    minimum: Callable[[Objective, Prestandardized, FloatArray, Stop, Options, RobustWork], LocalMinimum]


@kernel
def find_start(
    search: Search,
    full_column: Prestandardized,
    low: float,
    high: float,
    max_unsampled: int,
    options: Options,
    work: RobustWork,
) -> SearchResult:
    """Find the lambda that minimises the objective: the best of the local minima in the cells of a grid.

    The first cell is the full interval. It is searched only if no other cell contains a minimum or if the grid is
    coarse. With a coarse grid the result is therefore never worse than that of Brent's method alone.

    Two thresholds decide where a sample of SAMPLE order statistics is used. The grid is evaluated on the sample if the
    column has more than `max_unsampled` values. The cells are first searched on the sample if the column has more than
    512 values (the constant ALL), and minima that may be the lowest are then refined on all values. In shorter columns
    the cells are searched on all values at once.

    Parameters
    ----------
    search : Search
        The functions that define the search.
    full_column : Prestandardized
        The prestandardised column with all its values.
    low : float
        Lower end of the range of lambda.
    high : float
        Upper end of the range.
    max_unsampled : int
        Length of the longest column whose grid is evaluated on all values; SAMPLE or ALL.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch.
    """
    cells, n = work.cells, full_column.column.n
    _write_cell(cells[0], low, high, low, -math.inf)
    scan, stop = GridScan(1, 0, True, 0), Stop(CELLWISE_XTOL, math.inf, 0.0)
    if options.search == GLOBAL:
        limit = math.inf
        sample = full_column if n <= max_unsampled else draw_sample(search, full_column, options, work)
        scan = search.scan(sample, low, high, options, work)
        for k in range(1, scan.n_cells):
            limit = min(limit, cells[k, VALUE])
        if n > ALL:
            candidates = cells[scan.first : scan.n_cells]
            coarse = _descend(search, sample, candidates, Stop(_COARSE_XTOL, limit, 0.0), _MARGIN, options, work)
            n_cells = scan.first + _shrink_cells(candidates)
            scan = GridScan(n_cells, scan.n_eval + coarse.n_eval, scan.inside, scan.first)
            stop = Stop(_FINE_XTOL, coarse.value, _WIDEST)
        else:
            stop = Stop(_FINE_XTOL, limit, 0.0)
    cells = cells[scan.first : scan.n_cells]
    best = _descend(search, full_column, cells, stop, 0.0, options, work)
    n_rivals = 0
    for k in range(cells.shape[0]):
        where = cells[k, _MINIMISER] if cells[k, _MINIMISER] == cells[k, _MINIMISER] else cells[k, LOWEST]
        n_rivals += abs(where - best.lmbda) > _APART and cells[k, VALUE] <= best.value + _MARGIN
    return SearchResult(best.lmbda, scan.n_eval + best.n_eval, n_rivals, scan.inside, best.value)


# --- the sample ---------------------------------------------------------------------------------------


@kernel
def draw_sample(search: Search, full_column: Prestandardized, options: Options, work: RobustWork) -> Prestandardized:
    """Return a column of SAMPLE evenly spaced order statistics (with weights, evenly spaced in weight).

    Parameters
    ----------
    search : Search
        The functions that define the search.
    full_column : Prestandardized
        The prestandardised column with all its values.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch; receives the sample.
    """
    values, logs, n_negative = work.sample[0], work.sample[1], 0
    for k in range(SAMPLE):
        i = sample_position(full_column.counts, full_column.column.n, k)
        values[k], logs[k] = full_column.column.x[i], full_column.column.logs[i]
        n_negative += i < full_column.column.n_negative
    lower, upper = change_ranks(None, SAMPLE, options)
    column = SortedColumn(values, logs, SAMPLE, n_negative, full_column.column.negative_shift, lower, upper)
    counts = _weights_of_sample(full_column.counts, work)
    return Prestandardized(column, counts, search.sample_target(full_column, column, counts, work), work.sample[3])


@kernel
def sample_position(counts: FrequencyWeights | None, n: int, k: int) -> int:
    """Return the index of sample value k (k = 0, ..., SAMPLE - 1) in the full column of n values with weights `counts`.

    The sample is evenly spaced in rank or, with weights, in weight.
    """
    if counts is None:
        return ((2 * k + 1) * n) // (2 * SAMPLE)
    return position_at(counts, (k + 0.5) / SAMPLE)


@specialize_on_none()
def _weights_of_sample(counts: FrequencyWeights, work: RobustWork) -> FrequencyWeights | None:
    """Return the weight tables of a sample whose values all have weight 1, or None if the column has no weights."""
    return frequency_weights(work.sample[4, :SAMPLE], work.sample_counts)


# --- cells --------------------------------------------------------------------------------------------


@kernel
def _write_cell(cell: FloatArray, low: float, high: float, lowest: float, value: float) -> None:
    """Write a cell that has not been searched.

    Parameters
    ----------
    cell : (8,)
        Receives the fields of the cell.
    low : float
        Lower end.
    high : float
        Upper end.
    lowest : float
        The lowest known point in the cell.
    value : float
        The objective at that point, also used as the lower bound on the minimum.
    """
    cell[LOW], cell[HIGH], cell[AT_LOW], cell[AT_HIGH] = low, high, math.inf, math.inf
    cell[LOWEST], cell[VALUE], cell[_MINIMISER], cell[_FLOOR] = lowest, value, math.nan, value


@kernel
def _shrink_cells(cells: FloatArray) -> int:
    """Replace each searched cell by a smaller cell around its minimum; return the number of cells.

    Cells that were not searched are dropped, since they cannot contain the lowest minimum.
    """
    n_cells = 0
    for k in range(cells.shape[0]):
        x, value = cells[k, _MINIMISER], cells[k, VALUE]
        if x == x:
            _write_cell(cells[n_cells], x - _REACH, x + _REACH, x, value)
            cells[n_cells, _FLOOR] = value - _MARGIN
            n_cells += 1
    return n_cells


@kernel
def _descend(
    search: Search,
    standardized: Prestandardized,
    cells: FloatArray,
    stop: Stop,
    margin: float,
    options: Options,
    work: RobustWork,
) -> LocalMinimum:
    """Search each cell that may contain a lower minimum than the lowest so far; return the lowest minimum.

    Parameters
    ----------
    search : Search
        The functions that define the search.
    standardized : Prestandardized
        The prestandardised column, or a sample of it.
    cells : (n_cells, 8)
        The cells; receive the minima found.
    stop : Stop
        Tolerance in lambda, and the highest minimum of interest.
    margin : float
        A cell is searched if its lower bound exceeds the lowest minimum so far by at most this.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch.
    """
    best = LocalMinimum(math.nan, math.inf, 0)
    n_eval = 0
    for k in range(cells.shape[0]):
        bound = min(stop.bound, best.value) + margin
        if cells[k, _FLOOR] <= bound and not _is_known(cells, k):
            each = Stop(stop.xtol, bound, stop.widest)
            optimum = search.minimum(search.objective, standardized, cells[k], each, options, work)
            cells[k, VALUE], cells[k, _MINIMISER] = optimum.value, optimum.lmbda
            n_eval += optimum.n_eval
            if optimum.value < best.value or best.lmbda != best.lmbda:
                best = optimum
    return LocalMinimum(best.lmbda, best.value, n_eval)


@kernel
def _is_known(cells: FloatArray, k: int) -> bool:
    """Return whether cell k contains the minimum of an earlier cell, no higher than the lowest value known in it."""
    for j in range(k):
        if cells[k, LOW] <= cells[j, _MINIMISER] <= cells[k, HIGH] and cells[j, VALUE] <= cells[k, VALUE]:
            return True
    return False


@kernel
def brents_minimum(
    objective: Objective,
    standardized: Prestandardized,
    cell: FloatArray,
    stop: Stop,
    options: Options,
    work: RobustWork,
) -> LocalMinimum:
    """Minimise the objective in a cell by Brent's method; widen the cell threefold while the minimum is at an end.

    Parameters
    ----------
    objective : kernel
        The objective (`search.Objective`).
    standardized : Prestandardized
        The prestandardised column, with room for its transform.
    cell : (8,)
        The cell, with the fields LOW, HIGH, ... of this module.
    stop : Stop
        Tolerance, and largest width of the interval.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch.
    """
    low, high, n_eval, optimum = cell[LOW], cell[HIGH], 0, LocalMinimum(math.nan, math.inf, 0)
    for _ in range(1 + _MOST_WIDENINGS):
        state = brent_start(low, high, stop.xtol, MAX_EVAL)
        while state.status == RUNNING:  # at most MAX_EVAL steps
            state = brent_step(state, objective(standardized, state.x, options, work))
        n_eval, width = n_eval + state.n_eval, high - low
        optimum = LocalMinimum(state.x, state.fun, n_eval)
        if width >= stop.widest or min(state.x - low, high - state.x) >= 2.0 * stop.xtol:
            break
        low, high = low - width, high + width
    return optimum


# --- scans --------------------------------------------------------------------------------------------


@kernel
def n_steps(low: float, high: float) -> int:
    """Return the number of steps of the grid over the range [low, high]."""
    return min(max(math.ceil((high - low) / _STEP), 2), _MAX_SCAN - 1)


@kernel
def argmin(values: FloatArray) -> int:
    """Return the index of the smallest value; the first one if several are equal."""
    best = 0
    for k in range(values.size):
        if values[k] < values[best]:
            best = k
    return best


@kernel
def complete_points(values: FloatArray, floors: FloatArray) -> int:
    """Replace NaN by infinity, and write lower bounds to `floors`; return the index of the lowest value.

    The lower bound of each value is the value minus the constant _RIVAL.
    """
    for k in range(values.size):
        values[k] = values[k] if values[k] == values[k] else math.inf
        floors[k] = values[k] - _RIVAL
    return argmin(values)


def one_by_one(objective: Objective) -> Evaluate:
    """Make the kernel that evaluates an objective at grid points one by one (`Evaluate`)."""

    @kernel
    def evaluate(standardized: Prestandardized, n: int, options: Options, work: RobustWork) -> int:
        points, values = work.grid[0, :n], work.grid[1, :n]
        for k in range(n):
            values[k] = objective(standardized, points[k], options, work)
        return complete_points(values, work.grid[2, :n])

    return evaluate


@kernel
def even_points(
    evaluate: Evaluate, standardized: Prestandardized, low: float, high: float, options: Options, work: RobustWork
) -> int:
    """Evaluate the objective on an evenly spaced grid of lambda; return the number of points.

    Parameters
    ----------
    evaluate : kernel
        Evaluates the objective at points of `work.grid` (`Evaluate`).
    standardized : Prestandardized
        The prestandardised column, with room for its transform.
    low : float
        Lower end of the range of lambda.
    high : float
        Upper end of the range.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch; `work.grid` receives the points and values.
    """
    last = n_steps(low, high)
    for k in range(last + 1):
        work.grid[0, k] = low + (high - low) / last * k
    evaluate(standardized, last + 1, options, work)
    return last + 1


@kernel
def closer_minima(
    evaluate: Evaluate, standardized: Prestandardized, n_points: int, n_cells: int, options: Options, work: RobustWork
) -> GridScan:
    """Append cells with local minima on a finer grid around the lowest grid point.

    Parameters
    ----------
    evaluate : kernel
        Evaluates the objective at points of `work.grid` (`Evaluate`).
    standardized : Prestandardized
        The prestandardised column, with room for its transform.
    n_points : int
        Number of points of `work.grid` that have been evaluated.
    n_cells : int
        Number of cells so far.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch.
    """
    points = work.grid[0]
    best, low, high = argmin(work.grid[1, :n_points]), points[0], points[n_points - 1]
    origin, step = points[best], (high - low) / (n_points - 1) * (1.0 if best > 0 else -1.0)
    for k in range(_N_FINER):
        points[k] = min(max(origin + step * (k - _N_FINER // 2) / _FINER, low), high)
    evaluate(standardized, _N_FINER, options, work)
    return GridScan(add_minima(_N_FINER, False, n_cells, work), n_points + _N_FINER, True, 0)


@kernel
def minima_and_beyond(
    evaluate: Evaluate,
    standardized: Prestandardized,
    n_points: int,
    low: float,
    high: float,
    options: Options,
    work: RobustWork,
) -> GridScan:
    """Write cells around the local minima of a grid that has been evaluated; the first cell is left unchanged.

    If the lowest point is an end of the range, more points are evaluated beyond that end, with doubling steps.

    Parameters
    ----------
    evaluate : kernel
        Evaluates the objective at points of `work.grid` (`Evaluate`).
    standardized : Prestandardized
        The prestandardised column, with room for its transform.
    n_points : int
        Number of points of `work.grid` that have been evaluated.
    low : float
        Lower end of the range of lambda.
    high : float
        Upper end of the range.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch.
    """
    best = argmin(work.grid[1, :n_points])
    n_cells = add_minima(n_points, False, 1, work)
    if 0 < best < n_points - 1:
        return GridScan(n_cells, n_points, True, int(n_cells > 1))
    lowest, origin, distance = work.grid[1, best], work.grid[0, best], 0.0
    step = (high - low) / n_steps(low, high) * (1.0 if best > 0 else -1.0)
    for k in range(_N_OUTWARD):
        work.grid[0, k] = origin + step * (distance - 1.0)  # start one step inside, since the minimum may be there
        distance = max(2.0 * distance, 0.5)
    best = evaluate(standardized, _N_OUTWARD, options, work)
    n_cells = add_minima(_N_OUTWARD, False, n_cells, work)
    inside = 0 < best < _N_OUTWARD - 1 or work.grid[1, best] > lowest
    return GridScan(n_cells, n_points + _N_OUTWARD, inside, int(n_cells > 1))


@kernel
def add_minima(n: int, ends: bool, n_cells: int, work: RobustWork) -> int:
    """Append cells around the local minima of the first n points of `work.grid`; return the number of cells.

    If there is no room, new cells replace cells with higher values.

    Parameters
    ----------
    n : int
        Number of points of `work.grid`.
    ends : bool
        Whether the first and the last point can be minima.
    n_cells : int
        Number of cells so far.
    work : RobustWork
        Scratch.
    """
    points, values, floors, cells, last = work.grid[0], work.grid[1], work.grid[2], work.cells, n - 1
    for k in range(0 if ends else 1, n if ends else last):
        before, after = max(k - 1, 0), min(k + 1, last)
        if values[before] >= values[k] and (k == last or values[after] > values[k]):
            place = n_cells
            if n_cells < cells.shape[0]:
                n_cells += 1
            else:
                place = _highest(cells)
                if not values[k] < cells[place, VALUE]:
                    continue
            if points[before] > points[after]:
                before, after = after, before
            _write_cell(cells[place], points[before], points[after], points[k], values[k])
            cells[place, AT_LOW] = values[before] if before != k else math.inf
            cells[place, AT_HIGH] = values[after] if after != k else math.inf
            cells[place, _FLOOR] = min(floors[max(k - 1, 0)], floors[k])
    return n_cells


@kernel
def _highest(cells: FloatArray) -> int:
    """Return the index of the cell with the largest value, ignoring the first cell; NaN counts as the largest."""
    best = 1
    for k in range(2, cells.shape[0]):
        largest = cells[best, VALUE]
        if largest == largest and not cells[k, VALUE] <= largest:
            best = k
    return best
