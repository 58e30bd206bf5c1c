"""Find the parts of a range of lambda in which the robust QQ objective may be lowest, by dividing cells.

A cell is the interval between two lambdas. In a cell, every residual (standardised transform minus normal quantile) is
assumed to lie between its values at the ends of the cell. This gives a lower bound on the objective in the cell
(`_write_floors`), and only cells whose bound is low enough are divided. The assumption holds where location and scale
change smoothly with lambda. It may fail where other values begin to determine the MAD, so the lowest value found is
not proved to be the minimum.

Everything is computed in float32 for sixteen lambdas at once, since the result only locates minima for a search in
float64.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from powerkern._jit import (
    COLUMN32,
    COUNTS,
    LANES32,
    ROWS32,
    Lanes,
    broadcast_like,
    inlined,
    kernel,
    load,
    named_tuple,
    select,
    store,
)
from powerkern._typing import Float32Array, FloatArray, IntArray
from powerkern.kernels.elementary.constants import LARGEST
from powerkern.kernels.elementary.exp import exp, maximum, minimum
from powerkern.kernels.elementary.log import log
from powerkern.kernels.robust.qq import nearness
from powerkern.kernels.robust.qq_lanes import qq_objectives
from powerkern.kernels.transforms.rectified import SortedColumn

#: Mean width of the first cells. This and the following constants were chosen by trial on difficult columns
#: (`tests.fuzz.starts`): 420 columns of 5 to 500 values, which take 61 evaluations on average, and 140 columns of 513
#: to 1,000 values, which take 82. In 1 and 3 columns, respectively, the minimum found is higher than the lowest minimum
#: by more than 1e-6, in none by more than 1e-4. With half the width they take 75 and 97 evaluations, with 0 and 3 such
#: columns; double the width gives the same results as the present width.
_WIDEST = 0.75
#: A cell of at most _NARROW is divided only if its lower bound is less than the lowest value found minus _HIDDEN, and
#: minus _STEEP times its width unless both ends are within _LEVEL of the lowest value. Cells of at most _NARROWEST are
#: never divided. If one of the five constants is halved, the 420 columns take 66, 63, 66, 61 and 62 evaluations,
#: respectively; if one is doubled, they take 59, 59, 57, 62 and 60. The number of columns that miss the lowest minimum
#: changes only for _NARROW = 0.17, to 2.
_NARROW, _HIDDEN, _STEEP, _LEVEL, _NARROWEST = 0.085, 0.003, 0.2, 1.5e-4, 0.01
#: The first points, as fractions of a range of usual width. They are dense where lambda of prestandardised columns
#: usually is.
_FIRST = (0.0, 0.15, 0.24, 0.3, 0.34, 0.37, 0.4, 0.425, 0.45, 0.475, 0.505, 0.54, 0.59, 0.66, 0.8, 1.0)
#: Cells wider than _RIVAL_WIDTH are divided if their lower bound is less than the lowest value plus _RIVAL_MARGIN, so
#: that minima that are nearly as low are found, too. With _RIVAL_WIDTH = 0.26 and 0.085, the 420 columns take 60 and 63
#: evaluations. With _RIVAL_MARGIN = 0.04 they take 64. With _RIVAL_MARGIN = 0 they take 59, but 39 columns are
#: recognised as multimodal instead of 42.
_RIVAL_WIDTH, _RIVAL_MARGIN = 0.13, 0.02
#: Number of cells divided at once, the largest for which halves fit LANES32 lanes even if no two cells are adjacent.
_AT_ONCE = 5
#: Largest number of points, 24 batches of lanes; a safeguard.
MOST_POINTS = 384
#: Sentinel in `CellWork.begin`: the cell has not been divided.
_WHOLE = -1
#: Values are clipped to _LARGEST, which float32 can represent. Distances from a change point are divided by a unit such
#: that their logs are below _LOG_RANGE. The unit is enlarged by at most e**_LOG_NEAR; otherwise values close to the
#: change point would lose digits.
_LARGEST, _LOG_RANGE, _LOG_NEAR = 1e38, 80.0, 60.0
#: The log of the largest float64, minus 0.08.
_LOG_LARGEST = 709.7

# rows of points: lambda, the objective, and a lower bound on the objective up to the next point
LMBDA, VALUE, FLOOR = range(3)
# rows of `CellWork.column`
_X, _LOGS, _SCORES = range(3)


class CellWork(NamedTuple):
    """Scratch of a search that divides cells.

    Objectives are evaluated in batches of LANES32 lanes: first at lambdas over the whole range, then at the points that
    divide cells. A cell extends from one lambda to the next, and is identified by the lane of its lower end.
    """

    lanes: Float32Array  #: (3, MOST_POINTS + LANES32): the rows LMBDA, VALUE and FLOOR of all lanes
    begin: npt.NDArray[np.int64]  #: (MOST_POINTS,): first lane of the parts of a divided cell
    end: npt.NDArray[np.int64]  #: (MOST_POINTS,): last lane of the parts
    queue: npt.NDArray[np.int64]  #: (MOST_POINTS,): cells that may be divided
    column: Float32Array  #: (3, n): the column and its scores in float32
    y: Float32Array  #: LANES32 (n + 1): transforms, then residuals in units of the constant of the bisquare


CELL_WORK = named_tuple(CellWork, ROWS32, COUNTS, COUNTS, COUNTS, ROWS32, COLUMN32)


class _QQObjective(NamedTuple):
    """The arguments of `qq_objectives` that define the objective of a short column, in float32."""

    column: SortedColumn
    log_units: tuple[float, float]
    scores: Float32Array
    rule: int
    huber_k: float
    c: float


def new_cell_work(n: int) -> CellWork:
    """Allocate a `CellWork` for columns of up to `n` values."""
    lanes, column = (np.empty((3, m), dtype=np.float32) for m in (MOST_POINTS + LANES32, n))
    begin, end, queue = (np.empty(MOST_POINTS, dtype=np.int64) for _ in range(3))
    return CellWork(lanes, begin, end, queue, column, np.ones(LANES32 * (n + 1), dtype=np.float32))


@kernel
def qq_objective(
    column: SortedColumn, scores: FloatArray, rule: int, huber_k: float, c: float, work: CellWork
) -> _QQObjective:
    """Convert the objective of a short column to float32.

    If all logs have one sign, the middle log is subtracted from them. This changes only location and scale of the
    transform, and keeps the digits in which close values differ. Values beyond a change point may be out of range for
    float32. They are stored as distances from the change point, in a unit that avoids overflow (see _LOG_RANGE); the
    slope at the change point is multiplied by the same unit.

    Parameters
    ----------
    column : SortedColumn
        The prestandardised column.
    scores : (n,)
        The normal scores.
    rule : int
        The rectification rule of the transform (`kernels.transforms.rectified`).
    huber_k : float
        The constant of Huber's psi: the distance at which it is clipped, in units of the scale.
    c : float
        The constant of the bisquare.
    work : CellWork
        Scratch; receives the column in float32.
    """
    n = column.n
    arrays: Any = work.column
    x, logs, scores32 = arrays[_X, :n], arrays[_LOGS, :n], arrays[_SCORES, :n]
    middle = 0.0 if 0 < column.n_negative < n else column.logs[n >> 1]
    for i in range(n):
        logs[i] = column.logs[i] - middle
        scores32[i] = scores[i]
    log_units = (
        _relative(column, column.lower, middle, x[: column.lower + 1], 0),
        _relative(column, column.upper, middle, x[column.upper :], column.upper),
    )
    column32 = SortedColumn(x, logs, n, column.n_negative, column.negative_shift, column.lower, column.upper)
    return _QQObjective(column32, log_units, scores32, rule, huber_k, c)


@kernel
def _relative(column: SortedColumn, k: int, middle: float, x: Float32Array, first: int) -> float:
    """Write the distances of values from value k in a unit that keeps them in the range of float32.

    Return the log of the factor by which the slope of the transform at value k must be multiplied. The factor accounts
    for the unit of the distances, and for the subtraction of `middle` from the logs.

    Parameters
    ----------
    column : SortedColumn
        The prestandardised column.
    k : int
        Index of the change point.
    middle : float
        The log that has been subtracted from all logs.
    x : (m,) float32
        Receives the distances of m consecutive values.
    first : int
        Index of the first of these values.
    """
    side, farthest = -1.0 if k < column.n_negative else 1.0, column.x[0 if first == 0 else column.n - 1]
    log_unit, log_gap = side * column.logs[k], min(log(abs(farthest - column.x[k])), _LOG_LARGEST)
    log_unit += min(max(log_gap - _LOG_RANGE - log_unit, 0.0), _LOG_NEAR)
    per_unit = min(exp(-log_unit), LARGEST)  # finite even if value k is 0
    for i in range(x.size):
        x[i] = min(max((column.x[first + i] - column.x[k]) * per_unit, -_LARGEST), _LARGEST)
    return float(log_unit - side * middle)


@kernel
def search_cells(qq: _QQObjective, low: float, high: float, points: FloatArray, work: CellWork) -> int:
    """Evaluate the objective on a grid of lambda, and refine the grid in cells that may contain the minimum.

    Return the number of grid points. A cell may contain the minimum if its lower bound is low enough (`_is_open`).

    Parameters
    ----------
    qq : _QQObjective
        The objective.
    low : float
        Lower end of the range of lambda.
    high : float
        Upper end of the range.
    points : (3, MOST_POINTS)
        Receives the grid in ascending order of lambda. The rows are lambda, the objective, and a lower bound on the
        objective between this point and the next.
    work : CellWork
        Scratch.
    """
    queue = work.queue
    n_first, lowest = _evaluate_first(qq, low, high, work)
    n_lanes, first, last = n_first, 0, _queue_open(0, n_first, lowest, 0, work)
    while n_lanes + LANES32 <= MOST_POINTS:
        n_open = 0
        while first < last and n_open < _AT_ONCE:
            queue[n_open] = queue[first]  # reuse the front of the queue, whose cells have been removed
            n_open += _is_open(queue[first], lowest, work)
            first += 1
        if n_open == 0:
            break
        _divide(queue[:n_open], n_lanes, work)
        lowest = min(lowest, _evaluate(qq, n_lanes, work))
        for i in range(n_open):
            if i == n_open - 1 or queue[i + 1] != queue[i] + 1:
                work.lanes[FLOOR, work.end[queue[i]]] = math.inf  # the next lane belongs to another cell
        last = _queue_open(n_lanes, n_lanes + LANES32, lowest, last, work)
        n_lanes += LANES32
    return _write_points(low, high, n_first, points, work)


@kernel
def _evaluate_first(qq: _QQObjective, low: float, high: float, work: CellWork) -> tuple[int, float]:
    """Evaluate the objective in the first lanes, which cover the whole range [low, high] of lambda.

    Return the number of these lanes, and the lowest value.
    """
    cells, lowest = LANES32 - 1, math.inf
    n_wide = int(min((high - low) / _WIDEST, float(MOST_POINTS)))  # a larger number may overflow an integer
    n_blocks = min(n_wide // cells + 1, MOST_POINTS // (2 * LANES32))
    for block in range(n_blocks):
        for k in range(LANES32):
            part = (block * cells + k) / (n_blocks * cells) if n_blocks > 1 else _FIRST[k]
            work.lanes[LMBDA, block * LANES32 + k] = low + (high - low) * part
        lowest = min(lowest, _evaluate(qq, block * LANES32, work))
        work.lanes[FLOOR, block * LANES32 + cells] = math.inf
    return n_blocks * LANES32, lowest


@inlined
def _is_open(cell: int, lowest: float, work: CellWork) -> bool:
    """Return whether to divide a cell: it is wide enough, and its lower bound on the objective is low enough.

    `lowest` is the lowest value of the objective so far. The lower bound may exceed it by _RIVAL_MARGIN in wide cells,
    and must be less in narrow cells (see _NARROW).
    """
    lanes = work.lanes
    width, rise = lanes[LMBDA, cell + 1] - lanes[LMBDA, cell], lanes[FLOOR, cell] - lowest
    is_level = max(lanes[VALUE, cell], lanes[VALUE, cell + 1]) < lowest + _LEVEL
    hidden = _HIDDEN if is_level else max(_HIDDEN, _STEEP * width)
    limit = -hidden if width <= _NARROW else 0.0 if width <= _RIVAL_WIDTH else _RIVAL_MARGIN
    return bool((rise < limit) & (width > _NARROWEST))


@kernel
def _queue_open(start: int, stop: int, lowest: float, last: int, work: CellWork) -> int:
    """Append the cells that `_is_open` selects for division to the queue; return the new end of the queue.

    Parameters
    ----------
    start : int
        First lane to consider.
    stop : int
        One more than the last lane to consider.
    lowest : float
        The lowest value of the objective so far.
    last : int
        The end of the queue.
    work : CellWork
        Holds the lanes and the queue.
    """
    for cell in range(start, stop - 1):
        work.queue[last] = cell
        last += _is_open(cell, lowest, work)
    return last


@kernel
def _divide(cells: IntArray, start: int, work: CellWork) -> None:
    """Split cells into equal parts, and write the end points of the parts to lanes from `start` on.

    Adjacent cells share an end point.
    """
    lmbdas, n_runs = work.lanes[LMBDA], 1
    for i in range(1, cells.size):
        n_runs += cells[i] != cells[i - 1] + 1
    each = (LANES32 - n_runs) // cells.size
    more = LANES32 - n_runs - each * cells.size
    lane = start - 1
    for i in range(cells.size):
        cell, n_parts = cells[i], each + (i < more)
        low, high = lmbdas[cell], lmbdas[cell + 1]
        if i == 0 or cell != cells[i - 1] + 1:
            lane += 1
            lmbdas[lane] = low
        work.begin[cell], work.end[cell] = lane, lane + n_parts
        for part in range(1, n_parts):
            lmbdas[lane + part] = low + (high - low) * (part / n_parts)
        lane += n_parts
        lmbdas[lane] = high


@kernel
def _write_points(low: float, high: float, n_first: int, points: FloatArray, work: CellWork) -> int:
    """Write the points of all lanes in ascending order of lambda; return the number of points.

    The lanes form a forest: a divided cell is a node whose children are its parts. This is an in-order traversal, with
    `pending` as the stack. Each iteration writes one of at most MOST_POINTS lanes.

    Parameters
    ----------
    low : float
        Lower end of the range of lambda. It replaces the first lambda, which has been rounded to float32.
    high : float
        Upper end of the range. It replaces the last lambda.
    n_first : int
        Number of lanes that were evaluated before any cell was divided.
    points : (3, MOST_POINTS)
        Receives the rows LMBDA, VALUE and FLOOR.
    work : CellWork
        Holds the lanes.
    """
    lanes, begin, pending = work.lanes, work.begin, work.queue
    n_points, n_pending, lane, stop = 0, 0, 0, LANES32 - 1
    for _ in range(MOST_POINTS):
        points[LMBDA, n_points], points[VALUE, n_points] = lanes[LMBDA, lane], lanes[VALUE, lane]
        while lane < stop and begin[lane] >= 0:
            pending[n_pending], pending[n_pending + 1] = lane + 1, stop
            n_pending += 2
            lane, stop = begin[lane], work.end[lane]
        points[FLOOR, n_points] = lanes[FLOOR, lane]
        n_points += 1
        if lane == stop:
            break
        lane += 1
        while lane == stop and n_pending > 0:
            n_pending -= 2
            lane, stop = pending[n_pending], pending[n_pending + 1]
        if lane == stop and stop + 1 < n_first:
            lane, stop = stop + 1, stop + LANES32
    points[LMBDA, 0], points[LMBDA, n_points - 1] = low, high
    return n_points


@kernel
def _evaluate(qq: _QQObjective, start: int, work: CellWork) -> float:
    """Evaluate the objective and lower bounds in the batch of lanes from `start` on; return the lowest value.

    The objective is set to infinity where it is undefined.
    """
    lanes, y, stop = work.lanes, work.y, start + LANES32
    lmbdas, values = lanes[LMBDA, start:stop], lanes[VALUE, start:stop]
    qq_objectives(qq.column, qq.log_units, None, qq.scores, qq.rule, qq.huber_k, qq.c, lmbdas, y, values)
    at = load(values, (0,))
    store(values, (0,), select(at < math.inf, at, math.inf))
    _write_floors(y, qq.column.n, lanes, start)
    lowest = math.inf
    for k in range(LANES32):
        work.begin[start + k] = _WHOLE
        lowest = min(lowest, values[k])
    return lowest


@kernel
def _write_floors(y: Float32Array, n: int, lanes: Float32Array, start: int) -> None:
    """Write lower bounds on the objective between adjacent lanes, assuming the smallest possible residuals.

    The bound is 0 if the objective is undefined in either lane. `y` has the residuals of n values in units of c,
    clipped to [-1, 1]; the batch begins at lane `start`.
    """
    value, following = load(lanes, (VALUE, start)), load(lanes, (VALUE, start + 1))
    near, others = broadcast_like(value, 0.0), broadcast_like(value, 0.0)
    for i in range(1, n, 2):
        near += _nearest_between(y, i - 1)
        others += _nearest_between(y, i)
    if n & 1:
        near += _nearest_between(y, n - 1)
    floor = 1.0 - (near + others) * (1.0 / n)
    store(lanes, (FLOOR, start), select((value < math.inf) & (following < math.inf), floor, 0.0))


@inlined
def _nearest_between(y: Float32Array, i: int) -> Lanes:
    """Return, for each lane, an upper bound on 1 - rho of value i between that lane and the next.

    `y` holds the residuals as in `_write_floors`, LANES32 for each value. The residual of the value is assumed to lie
    between the residuals in the two lanes. The bound is 1 - rho of the number in this interval that is nearest to 0.
    The bound of the last lane is meaningless.
    """
    a, b = load(y, (LANES32 * i,)), load(y, (LANES32 * i + 1,))
    nearest = maximum(minimum(a, b), minimum(maximum(a, b), 0.0))
    return nearness(nearest * nearest)
