"""Lambdas that make a column most nearly normal: Kolmogorov-Smirnov distance, or correlation of the QQ plot."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powerkern._jit import BLOCKS, COLUMN, INTEGER, LANES, ROWS, entry, in_all_lanes, inlined, kernel, select, store
from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import copy
from powerkern.kernels.normality.criteria import Weighing, share_at, weighing_of
from powerkern.kernels.normality.criterion import KS, ScaledLogs, criterion, farthest, logs_of
from powerkern.kernels.normality.criterion_lanes import WIDTH, LaneWork, evaluate_lanes, floors_lanes
from powerkern.kernels.optimize.brent import brent_start, brent_step
from powerkern.kernels.optimize.status import CONVERGED, RUNNING
from powerkern.kernels.robust.order_statistics import n_present
from powerkern.kernels.robust.search import lowest_of

# fields of a row that `criterion_columns` writes
FOUND_LMBDA, FOUND_VALUE, FOUND_N_EVAL, FOUND_STATUS = range(4)
N_FOUND = 4
_SCANNED, _NOT_CERTIFIED, _MULTIMODAL = int(Status.SCANNED), int(Status.NOT_CERTIFIED), int(Status.MULTIMODAL)
#: Points of a scan, how far from its start the first and the last are, in units of 1/scale, and the most steps of their
#: size up or down if it goes on.
_POINTS, _REACH, _FARTHEST = 4 * LANES, 4.0, 400
_STEP = 2.0 * _REACH / (_POINTS - 1)
#: The KS distance has kinks: points, from end to end, at which it is evaluated in a step where it may be lowest.
_FINEST = 2 * LANES
_PART = _STEP / (_FINEST - 1)
#: By how much departures from normal may be smaller inside a step than at both of its ends (0.009 in 1,400 columns),
#: unless none changes as much from one to the other.
_MARGIN = 0.0125
#: A criterion that changes by less over the scan does not distinguish lambdas: two distinct values.
_FLAT = 1e-9
#: Other minima count if they are less than this many times as high as the lowest.
_RIVAL = 2.0
_MAX_EVAL, _MAX_KINK = 100, 24
#: Of lambda, in units of 1/scale.
_XTOL = 2.5e-10
#: Longer columns are transformed at one exponent at a time; and most whole steps that are looked at.
_MOST_LANES, _MOST_STEPS = 512, 2 * _FARTHEST + LANES
#: Length of the scratch that does not depend on the length of the column.
_ROOM = 2 * LANES + _FINEST + 2 * _MOST_STEPS


class _Task(NamedTuple):
    """A column, its weights and a criterion; `y`, `left` and `right` are scratch."""

    weighing: Weighing
    logs: ScaledLogs
    which: int
    y: FloatArray
    left: FloatArray
    right: FloatArray
    work: LaneWork


class _Point(NamedTuple):
    """An exponent, the criterion there, evaluations that led there, and whether these ended at a minimum."""

    x: float
    value: float
    n_eval: int
    converged: bool


class _Scan(NamedTuple):
    """The criterion at whole steps: the first, how many, the lowest and its value, the largest, the second minimum."""

    first: int
    n_steps: int
    best: int
    lowest: float
    highest: float
    second: float


@kernel
def _block(task: _Task, first: float, step: float) -> None:
    """The criterion at LANES exponents from `first` on."""
    for i in range(LANES):
        task.work.exponents[i] = first + i * step
    if task.logs.d.size <= _MOST_LANES:
        evaluate_lanes(task.weighing, task.logs, task.which, task.work)
        return
    for i in range(LANES):
        task.work.values[i] = criterion(task.weighing, task.logs, task.work.exponents[i], task.which, task.y)


@kernel
def _has_floors(task: _Task) -> bool:
    """Whether steps between which the criterion may be lower are looked at more closely."""
    return task.which == KS and task.logs.d.size <= _MOST_LANES


@kernel
def _scan(task: _Task, origin: float) -> _Scan:
    """The criterion at steps from `origin`, and on up and down as long as it descends, to `work.steps`."""
    steps, floors = task.work.steps, task.work.floors
    first = _lower_end(task, origin)
    for i in range(LANES - 1, WIDTH * task.logs.d.size if _has_floors(task) else 0, WIDTH):
        task.work.y[i] = 0.0
    best, count, lowest, highest = 0, 0, math.inf, 0.0
    while first + count < _POINTS or (first + count < _FARTHEST and steps[count - 1] < steps[count - 2] - _FLAT):
        if count:
            _block(task, origin + (first + count) * _STEP, _STEP)
        if _has_floors(task):
            floor, change = floors_lanes(task.weighing, task.work.y, task.logs.d.size)
            store(floors, (count,), floor - select(change < _MARGIN, change, in_all_lanes(_MARGIN)))
        for i in range(LANES):
            value = task.work.values[i]
            steps[count + i] = value
            if value < lowest:
                best, lowest = count + i, value
            highest = max(highest, value)
        count += LANES
    return _Scan(first, count, best, lowest, highest, _second_minimum(steps, count))


@kernel
def _lower_end(task: _Task, origin: float) -> int:
    """The step from which the scan goes up, evaluated with those after it."""
    first, falls = LANES, True
    while falls:
        first -= LANES
        _block(task, origin + first * _STEP, _STEP)
        falls = first > -_FARTHEST and task.work.values[0] < task.work.values[1] - _FLAT
    return first


@kernel
def _second_minimum(values: FloatArray, count: int) -> float:
    """The second lowest of the local minima, infinite where there is one only."""
    first, second = math.inf, math.inf
    for k in range(count - 1):
        before = values[k - 1] if k else math.inf
        if before > values[k] < values[k + 1]:
            first, second = min(first, values[k]), max(first, min(second, values[k]))
    return second


@kernel
def _lowest_kink(task: _Task, origin: float, scan: _Scan) -> _Point:
    """The lowest kink of the KS distance, or a point that is lower.

    Steps between whose ends it may fall below what has been found are divided, the most promising first, and kinks are
    found in those parts in which it may be lower; of a long column about the lowest point of the scan.
    """
    floors, parts, lowest = task.work.floors, task.work.parts, scan.first + scan.best
    best = _Point(origin + lowest * _STEP, scan.lowest, 0, False)
    low, size = origin + (lowest - 1) * _STEP, 2.0 * _STEP
    _clear(parts)
    if not _has_floors(task):
        _clear(floors)
        parts[1] = 0.0
    while True:
        k = 1 + lowest_of(parts[1:_FINEST])
        if parts[k] < best.value - _FLAT:
            parts[k] = math.inf
            best = _lower(best, _kink(task, low + (k - 1) * size, low + k * size))
            continue
        k = 1 + lowest_of(floors[1 : scan.n_steps])
        if floors[k] >= best.value:
            return best
        floors[k] = math.inf
        low, size = origin + (scan.first + k - 1) * _STEP, _PART
        best = _lower(best, _divide(task, low))


@kernel
def _lower(best: _Point, other: _Point) -> _Point:
    """The lower of two points, with the evaluations of both."""
    lowest = other if other.value < best.value else best
    return _Point(lowest.x, lowest.value, best.n_eval + other.n_eval, lowest.converged)


@kernel
def _divide(task: _Task, low: float) -> _Point:
    """The lowest of _FINEST points from `low` on; the floors between them, to `work.parts`."""
    x, lowest = low, math.inf
    for k in range(0, _FINEST, LANES):
        _block(task, low + k * _PART, _PART)
        floor, _ = floors_lanes(task.weighing, task.work.y, task.logs.d.size)
        store(task.work.parts, (k,), floor)
        for i in range(LANES):
            if task.work.values[i] < lowest:
                x, lowest = low + (k + i) * _PART, task.work.values[i]
    return _Point(x, lowest, _FINEST, False)


@kernel
def _clear(floors: FloatArray) -> None:
    for i in range(floors.size):
        floors[i] = math.inf


@kernel
def _kink(task: _Task, low: float, high: float) -> _Point:
    """Where a departure that falls from `low` on meets one that rises to `high`, and none is larger.

    They meet near where their chords do. Of the departures, that which is largest there takes the place of the one or
    the other. Not converged where none falls, or none rises.
    """
    y, left, right = task.y, task.left, task.right
    x, value, nearest, i, j, side = low, math.inf, math.inf, 0, 0, 0
    for n_eval in range(1, _MAX_KINK):
        value = criterion(task.weighing, task.logs, x, KS, y)
        if nearest <= _XTOL:
            return _Point(x, value, n_eval, True)
        k = farthest(task.weighing, y, value)
        if n_eval == 2 or (n_eval > 2 and _rises(y[k], left[k], right[k], x - low, high - x)):
            high, j, side = x, k, min(side, 0) - 1
            copy(y, right)
        else:
            low, i, side = x, k, max(side, 0) + 1
            copy(y, left)
        x = high
        if n_eval > 1:
            step = 0.5 * (share_at(task.weighing, i) - share_at(task.weighing, j))
            gap = abs(left[i]) - math.copysign(1.0, right[j]) * left[j] + step
            rest = abs(right[j]) - math.copysign(1.0, left[i]) * right[i] - step
            if not (gap >= 0.0 and rest >= 0.0 and gap + rest > 0.0):
                break
            x = low + gap / (gap + rest) * (high - low)
            nearest = min(x - low, high - x)
            if abs(side) > 1 and _XTOL < nearest < 0.25 * (high - low):  # from one end only: now beyond the minimum
                x += math.copysign(nearest, side)
    return _Point(x, value, n_eval, False)


@inlined
def _rises(here: float, before: float, after: float, width_before: float, width_after: float) -> bool:
    """Whether the size of a departure rises where it is `here`, by the parabola through three points."""
    sign = math.copysign(1.0, here)
    falls = sign * (here - after) * (width_before * width_before)
    return sign * (here - before) * (width_after * width_after) > falls


@kernel
def _brent(task: _Task, center: float, reach: float) -> _Point:
    """A minimum about an exponent."""
    state = brent_start(-reach, reach, _XTOL, _MAX_EVAL)
    while state.status == RUNNING:
        state = brent_step(state, criterion(task.weighing, task.logs, center + state.x, task.which, task.y))
    return _Point(center + state.best, state.fun, state.n_eval, state.status == CONVERGED)


@kernel
def _search(task: _Task, start: float, out: FloatArray) -> None:
    """`out` = the best lambda, its criterion, evaluations and the status.

    A scan that goes on as long as it descends; kinks; Brent's method where the lowest point is none.
    """
    scale = task.logs.scale
    origin = start * scale - _REACH
    scan = _scan(task, origin)
    out[FOUND_LMBDA], out[FOUND_VALUE] = start, scan.lowest
    out[FOUND_N_EVAL], out[FOUND_STATUS] = scan.n_steps, _SCANNED
    if scan.highest - scan.lowest < _FLAT:
        return
    best = _Point(origin + (scan.first + scan.best) * _STEP, scan.lowest, 0, False)
    if task.which == KS:
        best = _lowest_kink(task, origin, scan)
    certified = best.converged
    if not certified:
        smooth = _brent(task, best.x, _PART if _has_floors(task) else _STEP)
        best, certified = _lower(best, smooth), smooth.converged
    out[FOUND_LMBDA], out[FOUND_VALUE] = best.x / scale, best.value
    out[FOUND_N_EVAL] += best.n_eval
    if scan.second < _RIVAL * best.value:
        out[FOUND_STATUS] = _MULTIMODAL
    if not certified or scan.best == scan.n_steps - 1 or scan.first + scan.best == -_FARTHEST:
        out[FOUND_STATUS] = _NOT_CERTIFIED


@entry((ROWS, BLOCKS, ROWS, INTEGER, INTEGER, COLUMN, ROWS, ROWS))
def criterion_at(
    block: FloatArray,
    weighed: FloatArray,
    figures: FloatArray,
    family: int,
    which: int,
    lmbdas: FloatArray,
    work: FloatArray,
    out: FloatArray,
) -> None:
    """The criterion of each row at each lambda, NaN without two distinct values; arguments of `criterion_columns`."""
    for j in range(block.shape[0]):
        n = n_present(block[j])
        out[j] = math.nan
        if n > 1 and block[j, 0] < block[j, n - 1]:
            weighing, y = weighing_of(weighed, figures, j, block[j, :n]), work[1, :n]
            logs = logs_of(weighing, block[j, :n], family, work[0, :n], y)
            for k in range(lmbdas.size):
                out[j, k] = criterion(weighing, logs, lmbdas[k] * logs.scale, which, y)


def new_search_work(n: int) -> FloatArray:
    """Scratch of `criterion_columns` for columns of up to `n` values."""
    return np.empty(_ROOM + 4 * n + WIDTH * min(n, _MOST_LANES))


@entry((ROWS, BLOCKS, ROWS, INTEGER, INTEGER, COLUMN, COLUMN, ROWS))
def criterion_columns(
    block: FloatArray,
    weighed: FloatArray,
    figures: FloatArray,
    family: int,
    which: int,
    start: FloatArray,
    work: FloatArray,
    out: FloatArray,
) -> None:
    """The lambda of each row, sorted with NaN last, that minimises a criterion.

    Parameters
    ----------
    block : (p, n)
        Columns as rows, each in the domain of the family, with two distinct values at least.
    weighed, figures
        Their weights, see `weighing_of`.
    family, which : int
        BOX_COX or YEO_JOHNSON; KS or PPCC.
    start : (p,)
        Where the scans start; rows without one (NaN) are skipped.
    work
        Scratch, from `new_search_work`.
    out : (p, N_FOUND)
        Receives lambda, the criterion there, the number of evaluations, and a `powerkern.Status`. Where all lambdas
        are equally good, as for two distinct values, lambda is the start.
    """
    for j in range(block.shape[0]):
        if math.isnan(start[j]):
            out[j] = math.nan
        else:
            n = n_present(block[j])
            weighing = weighing_of(weighed, figures, j, block[j, :n])
            d, y, left, right = work[:n], work[n : 2 * n], work[2 * n : 3 * n], work[3 * n : 4 * n]
            logs = logs_of(weighing, block[j, :n], family, d, y)
            _search(_Task(weighing, logs, which, y, left, right, _lanes_in(work[4 * n :])), start[j], out[j])


@kernel
def _lanes_in(work: FloatArray) -> LaneWork:
    parts, steps, y = work[2 * LANES : 2 * LANES + _FINEST], work[2 * LANES + _FINEST : _ROOM], work[_ROOM:]
    return LaneWork(y, work[:LANES], work[LANES : 2 * LANES], steps[:_MOST_STEPS], steps[_MOST_STEPS:], parts)
