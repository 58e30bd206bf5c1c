"""The start of a robust fit: the lambda that minimises an estimator's objective over all of a range.

A scan on a few order statistics finds the cells of local minima (`find_start`); these are narrowed, by Brent's method
or at LANES points at a time, and once more on all values. Or Brent's method searches the full interval, as in R.
"""

from __future__ import annotations

import math

from powerkern._jit import LANES, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.optimize.brent import brent_start, brent_step
from powerkern.kernels.optimize.status import RUNNING
from powerkern.kernels.robust.bracket import MAX_EVAL, LocalMinimum, is_known, narrowed
from powerkern.kernels.robust.objective import objective
from powerkern.kernels.robust.options import (
    ALL,
    CARROLL,
    CELLWISE_XTOL,
    FLOOR,
    GLOBAL,
    HIGH,
    LOW,
    LOWEST,
    MINIMISER,
    SAMPLE,
    VALUE,
    Options,
    Prestandardized,
    RobustWork,
    Start,
)
from powerkern.kernels.robust.scan import GridScan, by_lanes, evaluate, sampled, scan_grid, write_cell

#: Local minima this close to the lowest make the objective multimodal if they are that far from it in lambda; those on
#: the sample are refined on all values.
_MARGIN, _APART = 0.02, 0.25
#: Where a second start is looked for at first: how far above and below the first.
_ABOUT = (0.125, 0.0, -0.125, -0.25, -0.375, -0.5, -0.75, -1.0)
#: Tolerances on the sample and on all values, and half the interval that is searched on all values,
#: and the widest it grows to.
_COARSE_XTOL, _FINE_XTOL, _REACH, _WIDEST = 2e-3, 1e-5, 0.04, 4.0


@kernel
def find_start(every: Prestandardized, low: float, high: float, options: Options, work: RobustWork) -> Start:
    """The minimiser of the objective: the best of the local minima that the scan saw, or where Brent's method ends.

    The first cell is the full interval. It is searched where the scan is coarse (and the answer never worse than
    Brent's method alone would find), or has seen no minimum. In long columns the minima are found on the sample, and
    those that may be the lowest are refined on all values.
    """
    cells, n, first = work.cells, every.column.n, 0
    write_cell(cells[0], low, high, low, -math.inf)
    scan, xtol, limit, widest = GridScan(1, 0, True), CELLWISE_XTOL, math.inf, 0.0
    if options.search == GLOBAL:
        xtol = _FINE_XTOL
        divided = by_lanes(every, options) or (options.criterion == CARROLL and n <= ALL)
        sample = every if n <= SAMPLE or divided else sampled(every, options, work)
        scan = scan_grid(sample, low, high, options, work)
        first = int(scan.n_cells > 1 and (by_lanes(sample, options) or options.criterion == CARROLL))
        for k in range(1, scan.n_cells):
            limit = min(limit, cells[k, VALUE])
        if n > ALL:
            coarse = _descend(sample, cells[first : scan.n_cells], _COARSE_XTOL, limit, _MARGIN, widest, options, work)
            _close_in(cells[first : scan.n_cells])
            scan = GridScan(scan.n_cells, scan.n_eval + coarse.n_eval, scan.inside)
            limit, widest = coarse.value, _WIDEST
    cells = cells[first : scan.n_cells]
    best = _descend(every, cells, xtol, limit, 0.0, widest, options, work)
    n_rivals = 0
    for k in range(cells.shape[0]):
        where = cells[k, MINIMISER] if cells[k, MINIMISER] == cells[k, MINIMISER] else cells[k, LOWEST]
        n_rivals += abs(where - best.lmbda) > _APART and cells[k, VALUE] <= best.value + _MARGIN
    return Start(best.lmbda, scan.n_eval + best.n_eval, n_rivals, scan.inside, best.value)


@kernel
def is_lower_below(at: Prestandardized, lmbda: float, options: Options, work: RobustWork) -> bool:
    """Whether the objective is lower at one of a few points below lmbda than there and a little above."""
    points, values, floors = work.grid[0, :LANES], work.grid[1, :LANES], work.grid[2, :LANES]
    for k in range(LANES):
        points[k] = lmbda + _ABOUT[k]
    return evaluate(at, points, values, floors, options) > 1


@kernel
def _close_in(cells: FloatArray) -> None:
    """Cells around the minima found in them."""
    for k in range(cells.shape[0]):
        x = cells[k, MINIMISER]
        value = cells[k, VALUE] if x == x else math.inf
        write_cell(cells[k], x - _REACH, x + _REACH, x, value)
        cells[k, FLOOR] = value - _MARGIN


@kernel
def _descend(
    at: Prestandardized,
    cells: FloatArray,
    xtol: float,
    limit: float,
    margin: float,
    widest: float,
    options: Options,
    work: RobustWork,
) -> LocalMinimum:
    """The lowest of the minima in the cells that may be lower than `limit` and one found, give or take a margin."""
    best = LocalMinimum(math.nan, math.inf, 0)
    n_eval = 0
    for k in range(cells.shape[0]):
        bound = min(limit, best.value) + margin
        if cells[k, FLOOR] <= bound and not is_known(cells, k):
            if by_lanes(at, options) and cells[k, VALUE] > -math.inf:
                found = narrowed(at, cells[k], xtol, bound, options, work.grid)
            else:
                found = _minimum(at, cells[k, LOW], cells[k, HIGH], xtol, widest, options)
            cells[k, VALUE], cells[k, MINIMISER] = found.value, found.lmbda
            n_eval += found.n_eval
            if found.value < best.value or best.lmbda != best.lmbda:
                best = found
    return LocalMinimum(best.lmbda, best.value, n_eval)


@kernel
def _minimum(
    at: Prestandardized, low: float, high: float, xtol: float, widest: float, options: Options
) -> LocalMinimum:
    """Brent's method in an interval; again in one 3 times as wide, up to `widest`, while the result is at an end."""
    n_eval = 0
    while True:
        state = brent_start(low, high, xtol, MAX_EVAL)
        while state.status == RUNNING:
            state = brent_step(state, objective(at, state.x, options))
        n_eval += state.n_eval
        width = high - low
        if width >= widest or min(state.x - low, high - state.x) >= 2.0 * xtol:
            return LocalMinimum(state.x, state.fun, n_eval)
        low, high = low - width, high + width
