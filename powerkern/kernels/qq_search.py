"""Every lambda of a range at which the robust QQ objective may be lowest: cells are divided until others are higher.

Between two lambdas the residual of every value, its standardised transform less its quantile, is taken to lie between
those at both. What the objective then is at least (`_write_floors`) says whether the cell between them is worth a
closer look. Residuals go from one to the other steadily where location and scale do. These need not, where other values
come to be the middle ones: what is found is the lowest that was seen, which is no proof.

All of it is in float32, sixteen lambdas at once: it only says where to look in float64.
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
    ROWS,
    ROWS32,
    borrowed,
    in_lanes_of,
    inlined,
    kernel,
    load,
    named_tuple,
    select,
    store,
)
from powerkern._typing import Float32Array, FloatArray
from powerkern.kernels.elementary import exp, log
from powerkern.kernels.floats import LARGEST
from powerkern.kernels.qq_lanes import qq_objectives
from powerkern.kernels.rectified import SortedColumn

#: Mean width of the cells at first, and the width of those that are not divided any more.
_WIDEST, _NARROWEST = 0.75, 0.045
#: The first points as parts of a usual range: close where lambda of prestandardised columns mostly is.
_FIRST = (0.0, 0.15, 0.24, 0.3, 0.34, 0.37, 0.4, 0.425, 0.45, 0.475, 0.505, 0.54, 0.59, 0.66, 0.8, 1.0)
#: Wider cells count as possibly lowest if they are as close to it as this: minima nearly as low are to be seen, too.
_RESOLVED, _CLOSE = 0.13, 0.02
#: Cells that are divided at once, and points at most.
_AT_ONCE, MOST_POINTS = 4, 256
#: Larger values count as this; logs of values beyond a change point, in the unit that they get: not above the first if
#: the unit need not be larger by more than the second, lest values close to the change point lose digits.
_LARGEST, _LOG_RANGE, _LOG_NEAR = 1e38, 80.0, 60.0
#: The log of the largest float64.
_LOG_LARGEST = 709.7

# rows of `CellWork.points`: lambda, the objective, and what that is at least between it and the following point
LMBDA, VALUE, FLOOR = range(3)
# rows of `CellWork.column`
_X, _LOGS, _SCORES = range(3)


class CellWork(NamedTuple):
    """Scratch: points, which point follows on which, and cells by the point below them."""

    points: FloatArray  #: (3, MOST_POINTS)
    following: npt.NDArray[np.int64]  #: (MOST_POINTS,)
    queue: npt.NDArray[np.int64]  #: (2 MOST_POINTS,)
    column: Float32Array  #: (3, n): the column and its scores in float32
    y: Float32Array  #: LANES32 (n + 1): transforms, then residuals in units of the constant of the bisquare
    lanes: Float32Array  #: (3, LANES32): like `points`, those that are evaluated


CELL_WORK = named_tuple(CellWork, ROWS, COUNTS, COUNTS, ROWS32, COLUMN32, ROWS32)


class QQObjective(NamedTuple):
    """The objective of a short column, in float32, see `qq_objectives`."""

    column: SortedColumn
    rises: tuple[float, float]
    scores: Float32Array
    rule: int
    huber_k: float
    c: float


def new_cell_work(n: int) -> CellWork:
    """The arrays of `CellWork` for columns of up to `n` values."""
    following, queue = np.empty(MOST_POINTS, dtype=np.int64), np.empty(2 * MOST_POINTS, dtype=np.int64)
    column, y = np.empty((3, n), dtype=np.float32), np.ones(LANES32 * (n + 1), dtype=np.float32)
    return CellWork(np.empty((3, MOST_POINTS)), following, queue, column, y, np.empty((3, LANES32), dtype=np.float32))


@kernel
def borrowed_cells(work: CellWork) -> CellWork:
    """The same, for passing on."""
    points, following, queue, column, y, lanes = work
    return CellWork(
        borrowed(points), borrowed(following), borrowed(queue), borrowed(column), borrowed(y), borrowed(lanes)
    )


@kernel
def qq_objective(
    column: SortedColumn, scores: FloatArray, rule: int, huber_k: float, c: float, work: CellWork
) -> QQObjective:
    """The objective in float32.

    Logs of one sign are taken relative to the middle one: the transform then differs only by its location and scale,
    and does not lose the digits in which close values differ. Values beyond the change points may be out of the range
    of float32: they are taken relative to these, in units of what the slope there is divided by, or larger ones.
    """
    n = column.n
    arrays: Any = work.column
    x, logs, scores32 = arrays[_X, :n], arrays[_LOGS, :n], arrays[_SCORES, :n]
    middle = column.logs[n >> 1] if column.n_negative in (0, n) else 0.0
    for i in range(n):
        logs[i] = column.logs[i] - middle
        scores32[i] = scores[i]
    rises = (
        _relative(column, column.lower, middle, x[: column.lower + 1], 0),
        _relative(column, column.upper, middle, x[column.upper :], column.upper),
    )
    own = SortedColumn(x, logs, n, column.n_negative, column.below, column.lower, column.upper)
    return QQObjective(own, rises, scores32, rule, huber_k, c)


@kernel
def _relative(column: SortedColumn, k: int, middle: float, x: Float32Array, first: int) -> float:
    """Values from number `first` on relative to number k; returns the log of what the slope there is to be times."""
    side, farthest = -1.0 if k < column.n_negative else 1.0, column.x[0 if first == 0 else column.n - 1]
    log_unit, log_gap = side * column.logs[k], min(log(abs(farthest - column.x[k])), _LOG_LARGEST)
    log_unit += min(max(log_gap - _LOG_RANGE - log_unit, 0.0), _LOG_NEAR)
    per_unit = min(exp(-log_unit), LARGEST)  # of values that are 0, too
    for i in range(x.size):
        x[i] = min(max((column.x[first + i] - column.x[k]) * per_unit, -_LARGEST), _LARGEST)
    return float(log_unit - side * middle)


@kernel
def search_cells(qq: QQObjective, low: float, high: float, work: CellWork) -> int:
    """Evaluate the objective wherever it may be lowest from `low` to `high`; returns the number of points.

    They are in `work.points`, in the order of `work.following`, from point 0 to the one that -1 follows on.
    """
    queue = work.queue
    n_points, lowest = _first_points(qq, low, high, work)
    first, last = 0, n_points - 1  # of the queue
    while n_points + LANES32 <= MOST_POINTS:
        n_open = 0
        while first < last and n_open < _AT_ONCE:
            cell = queue[first]
            first += 1
            if _is_open(work, cell, lowest):
                queue[n_open] = cell  # where cells were taken from there is room
                n_open += 1
        if n_open == 0:
            break
        size = LANES32 // n_open
        for k in range(LANES32):
            _place(work, queue[min(k // size, n_open - 1)], k, (k % size) / (size - 1.0))
        _evaluate(qq, work)
        for k in range(n_open):
            lowest = min(lowest, _link(queue[k], n_points, k * size, size - 2, last, work))
            n_points += size - 2
            last += size - 1
    return n_points


@inlined
def _place(work: CellWork, cell: int, k: int, part: float) -> None:
    """Let lane k be that part of the way through a cell."""
    low, high = work.points[LMBDA, cell], work.points[LMBDA, work.following[cell]]
    work.lanes[LMBDA, k] = low + part * (high - low)


@kernel
def _first_points(qq: QQObjective, low: float, high: float, work: CellWork) -> tuple[int, float]:
    """The points at first, cells between them in the queue; returns how many points, and the lowest value."""
    cells, points = LANES32 - 1, work.points
    n_blocks = min(int((high - low) / _WIDEST) // cells + 1, MOST_POINTS // (2 * LANES32))
    lowest = math.inf
    for block in range(n_blocks):
        for k in range(LANES32):
            part = (block * cells + k) / (n_blocks * cells) if n_blocks > 1 else _FIRST[k]
            work.lanes[LMBDA, k] = low + (high - low) * part
        _evaluate(qq, work)
        for k in range(LANES32):
            p = block * cells + k
            for row in range(3):
                points[row, p] = work.lanes[row, k]
            work.following[p], work.queue[p] = p + 1, p
            lowest = min(lowest, points[VALUE, p])
    n_points = n_blocks * cells + 1
    points[LMBDA, 0], points[LMBDA, n_points - 1], work.following[n_points - 1] = low, high, -1
    return n_points, lowest


@inlined
def _is_open(work: CellWork, cell: int, lowest: float) -> bool:
    """Whether the objective may be lowest inside a cell, and that is not narrow."""
    width = work.points[LMBDA, work.following[cell]] - work.points[LMBDA, cell]
    margin = _CLOSE if width > _RESOLVED else 0.0
    return bool(width > _NARROWEST and work.points[FLOOR, cell] < lowest + margin)


@inlined
def _link(cell: int, new: int, lane: int, count: int, last: int, work: CellWork) -> float:
    """Put `count` new points, after that lane, into a cell, and the cells between them at the end of the queue.

    Returns the lowest of their values.
    """
    end, before, lowest = work.following[cell], cell, math.inf
    for part in range(count + 1):
        work.points[FLOOR, before] = work.lanes[FLOOR, lane + part]
        work.queue[last + part] = before
        after = new + part if part < count else end
        work.following[before] = after
        if part < count:
            work.points[LMBDA, after] = work.lanes[LMBDA, lane + part + 1]
            work.points[VALUE, after] = work.lanes[VALUE, lane + part + 1]
            lowest = min(lowest, work.points[VALUE, after])
        before = after
    return lowest


@kernel
def _evaluate(qq: QQObjective, work: CellWork) -> None:
    """The objective at all lanes, infinite where it is not defined, and what it is at least between them."""
    lanes, y = work.lanes, work.y
    qq_objectives(qq.column, qq.rises, None, qq.scores, qq.rule, qq.huber_k, qq.c, lanes[LMBDA], y, lanes[VALUE])
    values = load(lanes, (VALUE, 0))
    store(lanes, (VALUE, 0), select(values < math.inf, values, math.inf))
    _write_floors(y, qq.column.n, lanes)


@kernel
def _write_floors(y: Float32Array, n: int, lanes: Float32Array) -> None:
    """The objective if every residual is the one closest to 0 of those in two neighboring lanes; of a NaN, 0."""
    near = in_lanes_of(load(lanes, (VALUE, 0)), 0.0)
    for i in range(n):
        a, b = load(y, (LANES32 * i,)), load(y, (LANES32 * i + 1,))
        x, z = a * a, b * b
        u = 1.0 - select(a * b > 0.0, select(x < z, x, z), 0.0)
        near += select(u > 0.0, u * u * u, 0.0)
    store(lanes, (FLOOR, 0), 1.0 - near * (1.0 / n))
