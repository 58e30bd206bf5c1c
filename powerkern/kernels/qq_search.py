"""Every lambda of a range at which the robust QQ objective may be lowest: cells are divided until others are higher.

Between two lambdas the residual of every value, its standardised transform less its quantile, is taken to lie between
those at both. What the objective then is at least (`_floor_of`) says whether the cell between them is worth a closer
look. Residuals go from one to the other steadily where location and scale do. These need not, where other values come
to be the middle ones: what is found is the lowest that was seen, which is no proof.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from powerkern._jit import (
    COUNTS,
    LANES,
    ROWS,
    borrowed,
    in_all_lanes,
    inlined,
    kernel,
    load,
    named_tuple,
    select,
    store,
    sum_of_lanes,
    widest_vectors,
)
from powerkern._typing import FloatArray
from powerkern.kernels.qq_lanes import qq_objectives
from powerkern.kernels.rectified import SortedColumn

#: Mean width of the cells at first, and the width of those that are not divided any more.
_WIDEST, _NARROWEST = 1.5, 0.03
#: The first points as parts of a usual range: close where lambda of prestandardised columns mostly is.
_FIRST = (0.0, 0.2, 0.32, 0.4, 0.47, 0.55, 0.7, 1.0)
#: Wider cells count as possibly lowest if they are as close to it as this: minima nearly as low are to be seen, too.
_RESOLVED, _CLOSE = 0.08, 0.02
#: Points at most.
MOST_POINTS = 256
#: A residual that adds nothing: rho is 1 there.
_FAR = 2.0

# rows of `CellWork.points`: lambda, the objective, and what that is at least between it and the following point
LMBDA, VALUE, FLOOR = range(3)


class CellWork(NamedTuple):
    """Scratch: points, the residuals there, which point follows on which, and cells by the point below them."""

    points: FloatArray  #: (3, MOST_POINTS)
    residuals: FloatArray  #: (MOST_POINTS, n + LANES), in units of the constant of the bisquare; _FAR follows
    following: npt.NDArray[np.int64]  #: (MOST_POINTS,)
    queue: npt.NDArray[np.int64]  #: (2 MOST_POINTS,)


CELL_WORK = named_tuple(CellWork, ROWS, ROWS, COUNTS, COUNTS)


class QQObjective(NamedTuple):
    """The objective of a short column, see `qq_objectives`."""

    column: SortedColumn
    scores: FloatArray
    rule: int
    huber_k: float
    c: float
    y: FloatArray


def new_cell_work(n: int) -> CellWork:
    """The arrays of `CellWork` for columns of up to `n` values."""
    following, queue = np.empty(MOST_POINTS, dtype=np.int64), np.empty(2 * MOST_POINTS, dtype=np.int64)
    return CellWork(np.empty((3, MOST_POINTS)), np.empty((MOST_POINTS, n + LANES)), following, queue)


@kernel
def borrowed_cells(work: CellWork) -> CellWork:
    """The same, for passing on."""
    return CellWork(borrowed(work.points), borrowed(work.residuals), borrowed(work.following), borrowed(work.queue))


@kernel
def search_cells(qq: QQObjective, low: float, high: float, work: CellWork) -> int:
    """Evaluate the objective wherever it may be lowest from `low` to `high`; returns the number of points.

    They are in `work.points`, in the order of `work.following`, from point 0 to the one that -1 follows on.
    """
    lmbdas, following, queue = work.points[LMBDA], work.following, work.queue
    n_points, lowest = _first_points(qq, low, high, work)
    first, last = 0, n_points - 1  # of the queue
    while n_points + LANES <= MOST_POINTS:
        n_open = 0
        while first < last and n_open < LANES:
            cell = queue[first]
            first += 1
            if _is_open(work, cell, lowest):
                queue[n_open] = cell  # where cells were taken from there is room
                n_open += 1
        if n_open == 0:
            break
        new = n_points
        for k in range(n_open):
            new = _divide(lmbdas, queue[k], following[queue[k]], new, _share(n_open, k))
        lowest = min(lowest, _evaluate(qq, n_points, work))
        for k in range(n_open):
            last = _link(qq, queue[k], n_points, _share(n_open, k), last, work)
            n_points += _share(n_open, k)
    _look_at_minima(qq, work)
    return n_points


@inlined
def _share(n_open: int, k: int) -> int:
    """How many of LANES new points cell number k is given."""
    return LANES // n_open + int(k < LANES % n_open)


@inlined
def _divide(lmbdas: FloatArray, before: int, after: int, new: int, count: int) -> int:
    """Place `count` new points evenly between two; returns where the next ones are."""
    for k in range(count):
        part = (k + 1.0) / (count + 1.0)
        lmbdas[new + k] = lmbdas[before] + part * (lmbdas[after] - lmbdas[before])
    return new + count


@kernel
def _first_points(qq: QQObjective, low: float, high: float, work: CellWork) -> tuple[int, float]:
    """The points at first, cells between them in the queue; returns how many points, and the lowest value."""
    blocks = int((high - low) / _WIDEST) // LANES + 1
    n_points = min(blocks * LANES, MOST_POINTS // 2)
    for p in range(n_points):
        part = p / (n_points - 1.0) if n_points > LANES else _FIRST[p]
        work.points[LMBDA, p] = low + (high - low) * part
    lowest = math.inf
    for p in range(0, n_points, LANES):
        lowest = min(lowest, _evaluate(qq, p, work))
    for p in range(n_points - 1):
        _join(qq, p, p + 1, work)
        work.queue[p] = p
    work.following[n_points - 1] = -1
    return n_points, lowest


@inlined
def _is_open(work: CellWork, cell: int, lowest: float) -> bool:
    """Whether the objective may be lowest inside a cell, and that is not narrow."""
    width = work.points[LMBDA, work.following[cell]] - work.points[LMBDA, cell]
    margin = _CLOSE if width > _RESOLVED else 0.0
    return bool(width > _NARROWEST and work.points[FLOOR, cell] < lowest + margin)


@inlined
def _link(qq: QQObjective, cell: int, new: int, count: int, last: int, work: CellWork) -> int:
    """Put `count` new points into a cell, and the cells between them at the end of the queue; returns its end."""
    end, before = work.following[cell], cell
    for part in range(count + 1):
        after = new + part if part < count else end
        _join(qq, before, after, work)
        work.queue[last + part] = before
        before = after
    return last + count + 1


@inlined
def _join(qq: QQObjective, before: int, after: int, work: CellWork) -> None:
    """Make one point follow another."""
    work.following[before] = after
    is_wide = work.points[LMBDA, after] - work.points[LMBDA, before] > _NARROWEST
    work.points[FLOOR, before] = _floor_of(work.residuals, before, after, qq.column.n) if is_wide else -math.inf


@kernel
def _look_at_minima(qq: QQObjective, work: CellWork) -> None:
    """What the objective is at least in narrow cells, of those next to a local minimum."""
    values, following = work.points[VALUE], work.following
    before, at = 0, following[0]
    while following[at] >= 0:
        if values[before] >= values[at] and values[following[at]] > values[at]:
            for cell in (before, at):
                if work.points[FLOOR, cell] == -math.inf:
                    work.points[FLOOR, cell] = _floor_of(work.residuals, cell, following[cell], qq.column.n)
        before, at = at, following[at]


@kernel
def _evaluate(qq: QQObjective, first: int, work: CellWork) -> float:
    """The objective at LANES points, infinite where it is not defined; returns the lowest."""
    stop, n, lowest = first + LANES, qq.column.n, math.inf
    values = work.points[VALUE, first:stop]
    qq_objectives(qq.column, None, qq.scores, qq.rule, qq.huber_k, qq.c, work.points[LMBDA, first:stop], qq.y, values)
    residuals = work.residuals[first:stop]
    for i in range(n):
        for k in range(LANES):
            residuals[k, i] = qq.y[LANES * i + k]
    for k in range(LANES):
        store(residuals, (k, n), in_all_lanes(_FAR))
        if not values[k] < math.inf:
            values[k] = math.inf
        lowest = min(lowest, values[k])
    return lowest


@kernel
def _floor_of(residuals: FloatArray, before: int, after: int, n: int) -> float:
    """The objective if every residual is the one closest to 0 of those between two points; of a NaN, 0."""
    widest_vectors()
    near, none = in_all_lanes(0.0), in_all_lanes(0.0)
    for i in range(0, n, LANES):
        a, b = load(residuals, (before, i)), load(residuals, (after, i))
        x, y = a * a, b * b
        u = 1.0 - select(a * b > none, select(x < y, x, y), none)
        near += select(u > none, u * u * u, none)
    return 1.0 - sum_of_lanes(near) / n
