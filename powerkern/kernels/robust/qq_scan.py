"""Scans of the QQ objective of a short column, or of a sample: the cells of its local minima, by vectors of lambdas."""

from __future__ import annotations

from powerkern._jit import LANES, for_none, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.robust.huber import HUBER_K
from powerkern.kernels.robust.options import Options, Prestandardized, RobustWork
from powerkern.kernels.robust.qq_lanes import qq_objectives
from powerkern.kernels.robust.qq_search import qq_objective, search_cells
from powerkern.kernels.robust.search import GridScan, add_minima, complete_points, lowest_of, n_steps
from powerkern.kernels.robust.weights import Counts, Nodes

#: Into how many parts the steps of a scan are divided with weights.
_WEIGHTED_PARTS = 4
#: Points outwards from an end.
_OUTWARD = 16
#: Where another start is looked for at first: how far above and below a lambda.
_ABOUT = (0.125, 0.0, -0.125, -0.25, -0.375, -0.5, -0.75, -1.0)


@kernel
def scan_qq(at: Prestandardized, low: float, high: float, options: Options, work: RobustWork) -> GridScan:
    """Local minima of the objective, as cells after the first.

    Where the lowest point is an end of the interval, points go on outwards from there in doubling steps.
    """
    n_points = _scan_points(at.counts, at.target, at, low, high, options, work)
    best = lowest_of(work.grid[1, :n_points])
    n_cells = add_minima(n_points, False, 1, work)
    if 0 < best < n_points - 1:
        return GridScan(n_cells, n_points, True, int(n_cells > 1))
    lowest, origin = work.grid[1, best], work.grid[0, best]
    step = (high - low) / n_steps(low, high) * (1.0 if best > 0 else -1.0)
    work.grid[0, 0], reach = origin - step, 0.5  # from inside on: the lowest may be between
    for k in range(1, _OUTWARD):
        work.grid[0, k] = origin + step * (reach - 1.0)
        reach *= 2.0
    best = evaluate(at, _OUTWARD, options, work)
    n_cells = add_minima(_OUTWARD, False, n_cells, work)
    inside = 0 < best < _OUTWARD - 1 or work.grid[1, best] > lowest
    return GridScan(n_cells, n_points + _OUTWARD, inside, int(n_cells > 1))


@kernel
def _in_cells(
    counts: None, scores: FloatArray, at: Prestandardized, low: float, high: float, options: Options, work: RobustWork
) -> int:
    qq = qq_objective(at.column, scores, options.rule, HUBER_K, options.c, work.search)
    return search_cells(qq, low, high, work.grid, work.search)


@for_none(_in_cells)
def _scan_points(
    counts: Counts, scores: Nodes, at: Prestandardized, low: float, high: float, options: Options, work: RobustWork
) -> int:
    """Points, in `work.grid`, and how many: wherever the objective may be lowest; of even steps if there are counts."""
    last = n_steps(low, high) * _WEIGHTED_PARTS
    n_points = (last // LANES + 1) * LANES
    for k in range(n_points):
        work.grid[0, k] = low + (high - low) / last * min(k, last)
    evaluate(at, n_points, options, work)
    return last + 1


@kernel
def evaluate(at: Prestandardized, n: int, options: Options, work: RobustWork) -> int:
    """The objective at the first n points of `work.grid`, whole vectors of them; returns the lowest."""
    points, values = work.grid[0, :n], work.grid[1, :n]
    rises = 0.0, 0.0
    qq_objectives(at.column, rises, at.counts, at.target, options.rule, HUBER_K, options.c, points, work.lanes, values)
    return complete_points(values, work.grid[2, :n])


@kernel
def is_lower_below(at: Prestandardized, lmbda: float, options: Options, work: RobustWork) -> bool:
    """Whether the objective is lower at one of a few points below lmbda than there and a little above."""
    for k in range(LANES):
        work.grid[0, k] = lmbda + _ABOUT[k]
    return evaluate(at, LANES, options, work) > 1
