"""Scans of an objective over all of a range, on a few order statistics: the cells of its local minima."""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import LANES, for_none, kernel, reduction, widest_vectors
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp import exp
from powerkern.kernels.robust.huber import HUBER_K
from powerkern.kernels.robust.objective import carroll_value, huber_of, objective
from powerkern.kernels.robust.options import (
    ALL,
    AT_HIGH,
    AT_LOW,
    CARROLL,
    FLOOR,
    GLOBAL,
    HIGH,
    LOW,
    LOWEST,
    MINIMISER,
    QQ,
    SAMPLE,
    VALUE,
    Options,
    Prestandardized,
    RobustWork,
    change_ranks,
)
from powerkern.kernels.robust.qq import sampled_score
from powerkern.kernels.robust.qq_lanes import qq_objectives
from powerkern.kernels.robust.qq_search import MOST_POINTS, qq_objective, search_cells
from powerkern.kernels.robust.trimmed import mean_of
from powerkern.kernels.robust.weights import Counts, Nodes, counts_of, part_of, position_at, total_of
from powerkern.kernels.transforms.rectified import CELLWISE, NOT_RECTIFIED, SortedColumn, transform_sorted

#: Spacing of the scan, and by how much the second grid is finer.
_STEP, _FINER = 0.5, 4.0
#: Points of the second grid there, outwards from an end.
_OUTWARD_LANES = 16
#: Cells of Carroll's search as narrow as this are not divided; and what is taken for the most that they may hide.
_NARROW, _HIDDEN = 0.03, 0.01
#: Maximum number of points of a scan, and into how many parts its steps are divided with weights, LANES at a time.
_MAX_SCAN, _WEIGHTED_PARTS = 64, 4
#: Points of the second grid: about the lowest point, or outwards in doubling steps.
_N_SECOND = 13
#: Points of the scan this close to it are followed up.
_RIVAL = 0.1


class GridScan(NamedTuple):
    """Number of cells found, evaluations, and whether the lowest value is not at an end."""

    n_cells: int
    n_eval: int
    inside: bool


@kernel
def sampled(every: Prestandardized, options: Options, work: RobustWork) -> Prestandardized:
    """SAMPLE evenly spaced order statistics of a column, with their scores."""
    values, logs, y = work.sample[0], work.sample[1], work.sample[3]
    counts, scores = _sample_scores(every.counts, every, work)
    n_negative = 0
    for k in range(SAMPLE):
        i = _sample_position(every.counts, every.column.n, k)
        values[k], logs[k] = every.column.x[i], every.column.logs[i]
        n_negative += i < every.column.n_negative
    lower, upper = change_ranks(None, SAMPLE, options)
    column = SortedColumn(values, logs, SAMPLE, n_negative, every.column.below, lower, upper)
    return Prestandardized(column, counts, scores, mean_of(logs[:SAMPLE], None), y, every.lanes, every.outward)


@kernel
def _sample_position(counts: Counts | None, n: int, k: int) -> int:
    """Which value of a column is number k of the sample."""
    if counts is None:
        return ((2 * k + 1) * n) // (2 * SAMPLE)
    return position_at(counts, (k + 0.5) / SAMPLE)


@kernel
def _plain_sample_scores(counts: None, every: Prestandardized, work: RobustWork) -> tuple[None, FloatArray]:
    scores = work.sample[2]
    for k in range(SAMPLE):
        scores[k] = every.scores[_sample_position(None, every.column.n, k)]
    return None, scores[:SAMPLE]


@for_none(_plain_sample_scores)
def _sample_scores(
    counts: Counts, every: Prestandardized, work: RobustWork
) -> tuple[Counts | None, FloatArray | Nodes]:
    """Counts and scores of the sample: each value counts once."""
    of_sample = counts_of(work.sample[4, :SAMPLE], work.sample_counts)
    nodes = work.sample_counts.nodes
    row, score, spread, weight = nodes.row, nodes.score, nodes.spread, nodes.weight
    for k in range(SAMPLE):
        row[k], spread[k], weight[k] = k, 0.0, of_sample.w[k]
        score[k] = sampled_score(counts, (k + 0.5) / SAMPLE)
    return of_sample, Nodes(row[:SAMPLE], score[:SAMPLE], spread[:SAMPLE], weight[:SAMPLE])


@kernel
def scan_grid(at: Prestandardized, low: float, high: float, options: Options, work: RobustWork) -> GridScan:
    """Local minima of the objective on a grid, as cells after the first, and on a second one.

    That is finer, about the lowest point (where cells are divided there is no need of it); or it goes on outwards from
    the end of the interval where the lowest point is, in doubling steps: R's conventions take the interval as it is.
    """
    side_by_side, divided = by_lanes(at, options), options.criterion == CARROLL
    if side_by_side:
        n_points = _scan_points(at.counts, at.scores, at, low, high, options, work)
    elif divided:
        n_points = _divided_points(at, low, high, options, work)
    else:
        n_points = _on_grid(at, low, high, 1, options, work)
    points, values, floors = work.grid[0, :n_points], work.grid[1, :n_points], work.grid[2, :n_points]
    best = _lowest(values)
    n_cells = _add_minima(points, values, floors, options.cellwise, work.cells, 1)
    lowest, origin = values[best], points[best]
    outwards = not options.cellwise and best in (0, n_points - 1)
    if (side_by_side or divided) and not outwards:
        return GridScan(n_cells, n_points, True)
    step = (high - low) / _n_steps(low, high) * (1.0 if best > 0 else -1.0)
    n_second = _OUTWARD_LANES if side_by_side else _N_SECOND
    points, values, floors = work.grid[0, :n_second], work.grid[1, :n_second], work.grid[2, :n_second]
    for k in range(n_second):
        if side_by_side:  # from inside on: the lowest may be between
            points[k] = origin + step * (2.0**k * 0.25 - 1.0 if k > 0 else -1.0)
        elif outwards:
            points[k] = origin + step * (2.0**k * 0.5 - 1.0)
        else:
            points[k] = min(max(origin + step * (k - n_second // 2) / _FINER, low), high)
    best = evaluate(at, points, values, floors, options)
    n_cells = _add_minima(points, values, floors, False, work.cells, n_cells)
    inside = not outwards or 0 < best < n_second - 1 or values[best] > lowest
    return GridScan(n_cells, n_points + n_second, inside)


@kernel
def _lowest(values: FloatArray) -> int:
    best = 0
    for k in range(values.size):
        if values[k] < values[best]:
            best = k
    return best


@kernel
def _n_steps(low: float, high: float) -> int:
    return min(max(math.ceil((high - low) / _STEP), 2), _MAX_SCAN - 1)


@kernel
def _on_grid(at: Prestandardized, low: float, high: float, n_parts: int, options: Options, work: RobustWork) -> int:
    """Points of even steps, in `work.grid`, and how many."""
    last = _n_steps(low, high) * n_parts
    n_points = (last // LANES + 1) * LANES if by_lanes(at, options) else last + 1
    for k in range(n_points):
        work.grid[0, k] = low + (high - low) / last * min(k, last)
    evaluate(at, work.grid[0, :n_points], work.grid[1], work.grid[2], options)
    return last + 1


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
    return _on_grid(at, low, high, _WEIGHTED_PARTS, options, work)


@kernel
def _divided_points(at: Prestandardized, low: float, high: float, options: Options, work: RobustWork) -> int:
    """Points of even steps, and halfway between any two where Carroll's objective may be lowest; returns how many."""
    points, values, floors = work.grid[0], work.grid[1], work.grid[2]
    last, lowest = _n_steps(low, high), math.inf
    n = last + 1
    for k in range(n):
        points[k], floors[k] = low + (high - low) / last * k, -math.inf
        lowest = min(lowest, _write_carroll(at, k, options, work))
    n_before = 0
    while n_before < n:
        n_before, k = n, 0
        while k < n - 1 and n < MOST_POINTS:
            if floors[k] < math.inf and points[k + 1] - points[k] > _NARROW and _may_be_lower(at, k, lowest, work):
                for row in range(work.grid.shape[0]):
                    for i in range(n, k + 1, -1):
                        work.grid[row, i] = work.grid[row, i - 1]
                n += 1
                points[k + 1], floors[k + 1] = 0.5 * (points[k] + points[k + 2]), -math.inf
                lowest = min(lowest, _write_carroll(at, k + 1, options, work))
                k += 2
            else:
                floors[k] = math.inf  # it need not be looked at again
                k += 1
    for k in range(n):
        floors[k] = values[k] - _HIDDEN
    return n


@kernel
def _write_carroll(at: Prestandardized, k: int, options: Options, work: RobustWork) -> float:
    """Carroll's objective, location and scale at a point of `work.grid`; the objective is infinite if undefined."""
    grid = work.grid
    transform_sorted(at.column, grid[0, k], options.rule, at.y)
    estimate = huber_of(at.y[: at.column.n], at.counts, CARROLL)
    value = carroll_value(at, grid[0, k], estimate.scale)
    grid[1, k] = value if value == value else math.inf
    grid[3, k], grid[4, k] = estimate.loc, estimate.scale
    return float(grid[1, k])


@kernel
def _may_be_lower(at: Prestandardized, k: int, lowest: float, work: RobustWork) -> bool:
    """Whether Carroll's objective may be lower than that between point k of `work.grid` and the next.

    In units of exp((lambda - 1) mean J), in which log(scale) is the objective, the distance of a value from the
    location is taken to lie between its distances at both ends. The scale is then at least that of the shorter ones.
    """
    grid, n = work.grid, at.column.n
    if not (grid[1, k] < math.inf and grid[1, k + 1] < math.inf):
        return True
    y, z = at.y, at.lanes[: at.column.x.size]
    transform_sorted(at.column, grid[0, k], NOT_RECTIFIED, y)
    transform_sorted(at.column, grid[0, k + 1], NOT_RECTIFIED, z)
    unit_y, unit_z = exp(grid[1, k] - lowest) / grid[4, k], exp(grid[1, k + 1] - lowest) / grid[4, k + 1]
    total = _pull_of_nearest(y[:n], z[:n], part_of(at.counts, 0, n), grid[3, k], grid[3, k + 1], unit_y, unit_z)
    return total <= total_of(at.counts, n) * math.erf(HUBER_K / math.sqrt(2.0))


@reduction
def _pull_of_nearest(
    y: FloatArray, z: FloatArray, w: FloatArray | None, center_y: float, center_z: float, unit_y: float, unit_z: float
) -> float:
    """Sum of u psi(u), u the distance closest to 0 between those of y and of z from their centers, in their units."""
    widest_vectors()
    total = 0.0
    for i in range(y.size):
        u, v = (y[i] - center_y) * unit_y, (z[i] - center_z) * unit_z
        nearest = max(min(u, v), -max(u, v), 0.0)
        total += (1.0 if w is None else w[i]) * nearest * min(nearest, HUBER_K)
    return total


@kernel
def by_lanes(at: Prestandardized, options: Options) -> bool:
    """Whether the objective is evaluated at LANES lambdas at once."""
    return at.column.n <= ALL and options.search == GLOBAL and options.criterion == QQ and options.rule != CELLWISE


@kernel
def evaluate(at: Prestandardized, points: FloatArray, values: FloatArray, floors: FloatArray, options: Options) -> int:
    """The objective at all points, infinite where it is not defined, and what is likely near; returns the lowest."""
    best, side_by_side = 0, by_lanes(at, options)
    if side_by_side:
        rises = 0.0, 0.0
        qq_objectives(
            at.column, rises, at.counts, at.scores, options.rule, HUBER_K, options.c, points, at.lanes, values
        )
    for k in range(points.size):
        value = values[k] if side_by_side else objective(at, points[k], options)
        values[k] = value if value == value else math.inf
        floors[k] = values[k] - _RIVAL
        if values[k] < values[best]:
            best = k
    return best


@kernel
def _highest(cells: FloatArray) -> int:
    """The cell after the first with the largest value; NaN counts as the largest."""
    best = 1
    for k in range(2, cells.shape[0]):
        largest = cells[best, VALUE]
        if largest == largest and not cells[k, VALUE] <= largest:
            best = k
    return best


@kernel
def _add_minima(
    points: FloatArray, values: FloatArray, floors: FloatArray, ends: bool, cells: FloatArray, n_cells: int
) -> int:
    """Add cells around local minima (at `ends`, too) to the first n_cells, in place of higher ones if room is short."""
    last = points.size - 1
    for k in range(0 if ends else 1, points.size if ends else last):
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
            write_cell(cells[place], points[before], points[after], points[k], values[k])
            cells[place, AT_LOW] = values[before] if before != k else math.inf
            cells[place, AT_HIGH] = values[after] if after != k else math.inf
            cells[place, FLOOR] = min(floors[max(k - 1, 0)], floors[k])
    return n_cells


@kernel
def write_cell(cell: FloatArray, low: float, high: float, lowest: float, value: float) -> None:
    """Write a new cell: its minimum has not been searched."""
    cell[LOW], cell[HIGH], cell[AT_LOW], cell[AT_HIGH] = low, high, math.inf, math.inf
    cell[LOWEST], cell[VALUE], cell[MINIMISER], cell[FLOOR] = lowest, value, math.nan, value
