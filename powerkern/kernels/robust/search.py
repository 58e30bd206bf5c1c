"""The start of a robust fit: the lambda that minimises an estimator's objective over all of a range.

A scan on a few order statistics finds the cells of local minima (`find_start`); these are narrowed, on the sample of a
long column and then on all values. Or Brent's method searches the full interval, as in R. `Search` has the functions
in which estimators differ.
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

#: R's default tolerance of optimize(): the fourth root of the rounding unit.
CELLWISE_XTOL = 0.0001220703125
#: Tolerances on the sample, which is to find the interval of the following only, and on all values: of 160 nasty
#: columns half the latter takes 64.8 in place of 64.5 evaluations and ends at most 6e-8 above the lowest minimum in
#: place of 7e-8, double 63.8 and 4e-7 (report_constants starts). Half the interval that is searched on all values: at n
#: = 1e6 lambda0 of a sample of 512 is off by 1e-4. The widest it grows to.
_COARSE_XTOL, _FINE_XTOL, _REACH, _WIDEST = 2e-3, 1e-5, 0.1, 4.0
#: Times that it is widened, threefold: from 2 * _REACH to 0.6, 1.8 and beyond _WIDEST.
_MOST_WIDENINGS = 4
#: Local minima this close to the lowest make the objective multimodal if they are that far from it in lambda, which
#: defines the status. Those on the sample are refined on all values.
_MARGIN, _APART = 0.02, 0.25
#: A guard against endless searches: evaluations in a cell.
MAX_EVAL = 100
#: Spacing of a scan, and its points at most, of a range of up to 32. On short and tied columns a scan alone misses the
#: lowest minimum of the QQ objective in 1.7 % of them, so that this one is for objectives that are smoother, and is
#: followed by a finer grid.
_STEP, _MAX_SCAN = 0.5, 64
#: Points of a second grid, finer by this about the lowest point; and of those outwards, a multiple of LANES. With steps
#: of 1/8 in place of 1/16, 3 of 300 columns missed a minimum of the trimmed likelihood that was lower by more than 1e-4
#: (`tests.fuzz.starts`).
_N_FINER, _FINER, _N_OUTWARD = 17, 8.0, 16
#: Points of the scan this close to the lowest are followed up: the objective is taken to be lower by less between two
#: points of a scan than at them. Half and double find the same minima of Carroll's in 60 nasty columns, with as many
#: evaluations (report_constants carroll).
_RIVAL = 0.1

# fields of a cell: its ends and the objective there (inf: unknown), its lowest point known and the objective there,
# where its minimum was found (NaN: not searched), and a lower bound on the minimum
LOW, HIGH, AT_LOW, AT_HIGH, LOWEST, VALUE, _MINIMISER, _FLOOR = range(8)


class GridScan(NamedTuple):
    """Result of a scan: numbers of cells and evaluations, whether the lowest point is inside, first cell to search."""

    n_cells: int
    n_eval: int
    inside: bool
    first: int


class Stop(NamedTuple):
    """Stopping rule of the search in a cell: the tolerance, and the value below which a minimum matters.

    An interval with the minimum at its end is widened up to `widest`.
    """

    xtol: float
    bound: float
    widest: float


class LocalMinimum(NamedTuple):
    """A minimum of the objective."""

    lmbda: float
    value: float
    n_eval: int


#: The objective of a column at a lambda; NaN where it is not defined.
Objective = Callable[[Prestandardized, float, Options, RobustWork], float]
#: Writes the objective at the first n points of `RobustWork.grid`, and bounds near them; returns the lowest:
#: (column, n, options, work).
Evaluate = Callable[[Prestandardized, int, Options, RobustWork], int]


class Search(NamedTuple):
    """The functions that define the search for an estimator's initial lambda."""

    objective: Objective
    #: the target of a sample: (column, its sample, counts of this, work)
    sample_target: Callable[[Prestandardized, SortedColumn, Any, RobustWork], Any]
    #: writes cells of local minima after the first: (column, low, high, options, work)
    scan: Callable[[Prestandardized, float, float, Options, RobustWork], GridScan]
    #: the minimum in a cell: (objective, column, cell, stop, options, work)
    minimum: Callable[[Objective, Prestandardized, FloatArray, Stop, Options, RobustWork], LocalMinimum]


@kernel
def find_start(
    search: Search,
    full_column: Prestandardized,
    low: float,
    high: float,
    n_alone: int,
    options: Options,
    work: RobustWork,
) -> SearchResult:
    """Return the minimiser of the objective: the best of the local minima that the scan saw.

    The first cell is the full interval. It is searched where the scan is coarse (and the answer never worse than
    Brent's method alone would find), or has seen no minimum. Columns of more than `n_alone` values are scanned on a
    sample. In long columns the minima are found on it, and those that may be the lowest are refined on all values.

    Parameters
    ----------
    search : Search
        The functions by which the estimator is searched for.
    full_column : Prestandardized
        The prestandardised column, all of it.
    low : float
        The lower end of the range of lambda.
    high : float
        Its upper end.
    n_alone : int
        Longer columns are scanned on a sample.
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
        sample = full_column if n <= n_alone else sampled(search, full_column, options, work)
        scan = search.scan(sample, low, high, options, work)
        for k in range(1, scan.n_cells):
            limit = min(limit, cells[k, VALUE])
        if n > ALL:
            found = cells[scan.first : scan.n_cells]
            coarse = _descend(search, sample, found, Stop(_COARSE_XTOL, limit, 0.0), _MARGIN, options, work)
            n_cells = scan.first + _close_in(found)
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
def sampled(search: Search, full_column: Prestandardized, options: Options, work: RobustWork) -> Prestandardized:
    """Return SAMPLE evenly spaced order statistics of a column as a column.

    Parameters
    ----------
    search : Search
        The functions by which the estimator is searched for.
    full_column : Prestandardized
        The prestandardised column, all of it.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch.
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
    """Return the index in the full column of value k of the sample."""
    if counts is None:
        return ((2 * k + 1) * n) // (2 * SAMPLE)
    return position_at(counts, (k + 0.5) / SAMPLE)


@specialize_on_none()
def _weights_of_sample(counts: FrequencyWeights, work: RobustWork) -> FrequencyWeights | None:
    """Make the tables for a sample, whose values count once each."""
    return frequency_weights(work.sample[4, :SAMPLE], work.sample_counts)


# --- cells --------------------------------------------------------------------------------------------


@kernel
def _write_cell(cell: FloatArray, low: float, high: float, lowest: float, value: float) -> None:
    """Write a new cell, whose minimum has not been searched."""
    cell[LOW], cell[HIGH], cell[AT_LOW], cell[AT_HIGH] = low, high, math.inf, math.inf
    cell[LOWEST], cell[VALUE], cell[_MINIMISER], cell[_FLOOR] = lowest, value, math.nan, value


@kernel
def _close_in(cells: FloatArray) -> int:
    """Replace the cells that were searched by cells around their minima; return their number.

    Cells that were not searched, because they cannot hold the lowest minimum, are dropped.
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
    """Search the cells that may hold a lower minimum than known so far; return the lowest."""
    best = LocalMinimum(math.nan, math.inf, 0)
    n_eval = 0
    for k in range(cells.shape[0]):
        bound = min(stop.bound, best.value) + margin
        if cells[k, _FLOOR] <= bound and not _is_known(cells, k):
            each = Stop(stop.xtol, bound, stop.widest)
            found = search.minimum(search.objective, standardized, cells[k], each, options, work)
            cells[k, VALUE], cells[k, _MINIMISER] = found.value, found.lmbda
            n_eval += found.n_eval
            if found.value < best.value or best.lmbda != best.lmbda:
                best = found
    return LocalMinimum(best.lmbda, best.value, n_eval)


@kernel
def _is_known(cells: FloatArray, k: int) -> bool:
    """Return whether an earlier search ended in this cell, no higher than the cell's own value."""
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
    """Run Brent's method in a cell, widened threefold up to _MOST_WIDENINGS times while the result is at an end.

    Parameters
    ----------
    objective : kernel
        The objective (`search.Objective`).
    standardized : Prestandardized
        The prestandardised column, with room for its transform.
    cell : ndarray of float64, shape (8,)
        The cell, see the constants of `search`.
    stop : Stop
        Where the search ends.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch.
    """
    low, high, n_eval, found = cell[LOW], cell[HIGH], 0, LocalMinimum(math.nan, math.inf, 0)
    for _ in range(1 + _MOST_WIDENINGS):
        state = brent_start(low, high, stop.xtol, MAX_EVAL)
        while state.status == RUNNING:  # at most MAX_EVAL steps
            state = brent_step(state, objective(standardized, state.x, options, work))
        n_eval, width = n_eval + state.n_eval, high - low
        found = LocalMinimum(state.x, state.fun, n_eval)
        if width >= stop.widest or min(state.x - low, high - state.x) >= 2.0 * stop.xtol:
            break
        low, high = low - width, high + width
    return found


# --- scans --------------------------------------------------------------------------------------------


@kernel
def n_steps(low: float, high: float) -> int:
    """Return the number of steps of a scan."""
    return min(max(math.ceil((high - low) / _STEP), 2), _MAX_SCAN - 1)


@kernel
def argmin(values: FloatArray) -> int:
    """Return the position of the first of the smallest values."""
    best = 0
    for k in range(values.size):
        if values[k] < values[best]:
            best = k
    return best


@kernel
def complete_points(values: FloatArray, floors: FloatArray) -> int:
    """Replace undefined values by infinity, write likely lower bounds; return the position of the lowest."""
    for k in range(values.size):
        values[k] = values[k] if values[k] == values[k] else math.inf
        floors[k] = values[k] - _RIVAL
    return argmin(values)


def one_by_one(objective: Objective) -> Evaluate:
    """Make the kernel that evaluates an objective at one point after the other."""

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
    """Evaluate the objective at points in even steps, in `work.grid`; return their number.

    Parameters
    ----------
    evaluate : kernel
        Evaluates the objective at points of `work.grid` (`search.Evaluate`).
    standardized : Prestandardized
        The prestandardised column, with room for its transform.
    low : float
        The lower end of the range of lambda.
    high : float
        Its upper end.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch.
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
    """Add cells of a finer grid about the lowest of the points of even steps.

    Parameters
    ----------
    evaluate : kernel
        Evaluates the objective at points of `work.grid` (`search.Evaluate`).
    standardized : Prestandardized
        The prestandardised column, with room for its transform.
    n_points : int
        The number of points of `work.grid` that have been evaluated.
    n_cells : int
        The number of cells so far.
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
    """Write cells, after the first, of the local minima of points that have been evaluated.

    If the lowest point is an end of the interval, the scan continues outwards in doubling steps.

    Parameters
    ----------
    evaluate : kernel
        Evaluates the objective at points of `work.grid` (`search.Evaluate`).
    standardized : Prestandardized
        The prestandardised column, with room for its transform.
    n_points : int
        The number of points of `work.grid` that have been evaluated.
    low : float
        The lower end of the range of lambda.
    high : float
        Its upper end.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch.
    """
    best = argmin(work.grid[1, :n_points])
    n_cells = add_minima(n_points, False, 1, work)
    if 0 < best < n_points - 1:
        return GridScan(n_cells, n_points, True, int(n_cells > 1))
    lowest, origin, reach = work.grid[1, best], work.grid[0, best], 0.0
    step = (high - low) / n_steps(low, high) * (1.0 if best > 0 else -1.0)
    for k in range(_N_OUTWARD):
        work.grid[0, k] = origin + step * (reach - 1.0)  # from the step before: the lowest may be between
        reach = max(2.0 * reach, 0.5)
    best = evaluate(standardized, _N_OUTWARD, options, work)
    n_cells = add_minima(_N_OUTWARD, False, n_cells, work)
    inside = 0 < best < _N_OUTWARD - 1 or work.grid[1, best] > lowest
    return GridScan(n_cells, n_points + _N_OUTWARD, inside, int(n_cells > 1))


@kernel
def add_minima(n: int, ends: bool, n_cells: int, work: RobustWork) -> int:
    """Append cells around local minima of the first n points of `work.grid` (also at its ends if `ends`).

    They take the place of higher ones if room is short.

    Parameters
    ----------
    n : int
        The number of points of `work.grid`.
    ends : bool
        Whether the first and the last point may be minima.
    n_cells : int
        The number of cells so far.
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
    """Return the cell after the first with the largest value; NaN counts as the largest."""
    best = 1
    for k in range(2, cells.shape[0]):
        largest = cells[best, VALUE]
        if largest == largest and not cells[k, VALUE] <= largest:
            best = k
    return best
