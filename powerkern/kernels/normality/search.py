"""Lambdas that make a column most nearly normal: Kolmogorov-Smirnov distance, or correlation of the QQ plot.

Neither criterion changes with location and scale of the transformed values, so these are chosen for accuracy: of one
sign, relative to the end from which every exponent is negative; of both signs, less a common factor where large.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powerkern._input import special
from powerkern._jit import (
    BLOCKS,
    COLUMN,
    INTEGER,
    LANES,
    ROWS,
    Lanes,
    bits_of,
    entry,
    float_of,
    in_all_lanes,
    inlined,
    kernel,
    load,
    select,
    square_root,
    store,
    widest_vectors,
)
from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import copy
from powerkern.kernels.elementary.erf import erf, erf_lanes
from powerkern.kernels.elementary.exp_log import exp, expm1, expm1_lanes, greater
from powerkern.kernels.likelihood.logs import centered_log, offset_log
from powerkern.kernels.normality.criteria import (
    Weighing,
    ddof_of,
    decorrelation_by,
    moments_by,
    weighing_of,
)
from powerkern.kernels.optimize.minimize import CONVERGED, RUNNING, brent_start, brent_step
from powerkern.kernels.robust.order_statistics import n_present
from powerkern.kernels.transforms.family import log_offset

#: Criteria.
KS, PPCC = 0, 1

# what `criterion_columns` finds for a column
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
#: Exponents of values of both signs need no common factor up to here.
_MODERATE = 300.0
_WORST = 2.0
#: An exponent closer to 0 counts as this: it can be divided by.
_TINY = 1e-290
#: Longer columns are transformed at one exponent at a time; and most whole steps that are looked at.
_MOST_LANES, _MOST_STEPS = 512, 2 * _FARTHEST + LANES
#: Room for a value at those exponents, and at the one before.
_WIDTH = 2 * LANES
_SQRT_HALF = 0.7071067811865476


# --- the transform ------------------------------------------------------------------------------------


class ScaledLogs(NamedTuple):
    """Logs of the magnitudes (plus 1 under Yeo-Johnson) of ascending values, in units of their standard deviation.

    Of one sign they are relative to that of the median, without cancellation. Exponents are in units of 1/scale.
    """

    d: FloatArray
    n_negative: int
    scale: float


@kernel
def _logs_of(weighing: Weighing | None, x: FloatArray, family: int, d: FloatArray, y: FloatArray) -> ScaledLogs:
    """The logs, in `d`; `y` is scratch."""
    widest_vectors()
    base = log_offset(family)
    border = 0
    while border < x.size and x[border] < 0.0:
        border += 1
    reference = abs(x[x.size // 2]) if border in (0, x.size) else 0.0
    log_reference = offset_log(base, reference)
    largest = 0.0
    for i in range(x.size):
        d[i] = centered_log(abs(x[i]), base, reference, log_reference)
        largest = max(largest, abs(d[i]))
    for i in range(x.size):  # twice, because the square of a tiny scale would be 0
        d[i] /= largest
        y[i] = -d[i] if i < border else d[i]
    moments = moments_by(weighing, y)
    sd = math.sqrt(moments.m2 / moments.weight)
    for i in range(x.size):
        d[i] /= sd
    return ScaledLogs(d, border, largest * sd)


@kernel
def _branch(d: FloatArray, m: float, top: float, excess: float, sign: float, y: FloatArray) -> None:
    """y = sign e**-excess (e**(m (d - top)) - 1)/m."""
    widest_vectors()
    if m == 0.0:
        factor = sign * exp(-excess)
        for i in range(d.size):
            y[i] = factor * (d[i] - top)
    elif excess == 0.0:
        for i in range(d.size):
            y[i] = sign * expm1(m * (d[i] - top)) / m
    else:
        one = exp(-excess)
        for i in range(d.size):
            y[i] = sign * (exp(m * (d[i] - top) - excess) - one) / m


@kernel
def _transform(logs: ScaledLogs, exponent: float, y: FloatArray) -> None:
    """Transformed values, up to a shift and a positive factor."""
    d, border = logs.d, logs.n_negative
    n = d.size
    mirrored = 2.0 * logs.scale - exponent
    if border == 0:
        _branch(d, exponent, d[n - 1] if exponent > 0.0 else d[0], 0.0, 1.0, y)
    elif border == n:
        _branch(d, mirrored, d[0] if mirrored > 0.0 else d[n - 1], 0.0, -1.0, y)
    else:
        excess = max(exponent * d[n - 1], mirrored * d[0])
        excess = excess if excess > _MODERATE else 0.0
        _branch(d[border:], exponent, 0.0, excess, 1.0, y[border:])
        _branch(d[:border], mirrored, 0.0, excess, -1.0, y[:border])


# --- the criteria -------------------------------------------------------------------------------------


@inlined
def _middle(weighing: Weighing | None, i: int, per_n: float) -> float:
    """The empirical distribution half way up its step at order statistic i."""
    if weighing is None:
        return (i + 0.5) * per_n
    middle: float = weighing.middle[i]
    return middle


@inlined
def _half_step(weighing: Weighing | None, i: int, per_n: float) -> float:
    """Half of that step."""
    if weighing is None:
        return 0.5 * per_n
    share: float = weighing.share[i]
    return 0.5 * share


@kernel
def _depart(weighing: Weighing | None, y: FloatArray, loc: float, scale: float) -> float:
    """KS distance of ascending values from N(loc, scale**2); departures, with their signs, are left in their place."""
    widest_vectors()
    per_n = 1.0 / y.size
    largest = 0  # bit patterns of positive floats are ordered as they are; integers have a maximum that vectorises
    for i in range(y.size):
        y[i] = 0.5 + 0.5 * erf((y[i] - loc) / scale * _SQRT_HALF) - _middle(weighing, i, per_n)
        largest = max(largest, bits_of(abs(y[i]) + _half_step(weighing, i, per_n)))
    return float_of(largest)


@kernel
def _farthest(weighing: Weighing | None, departures: FloatArray, distance: float) -> int:
    """Where the departure is that the KS distance is made of."""
    widest_vectors()
    per_n, found = 1.0 / departures.size, departures.size - 1
    for i in range(departures.size):
        here = abs(departures[i]) + _half_step(weighing, i, per_n) >= distance
        found = min(found, i) if here else found
    return found


@kernel
def _criterion(
    weighing: Weighing | None, logs: ScaledLogs, exponent: float, which: int, q: FloatArray, y: FloatArray
) -> float:
    """KS distance from the fitted normal, or 1 - r, r the correlation with normal quantiles of unit length `q`.

    `y` is scratch; for the KS distance the departures from normal, with their signs, are left there.
    """
    _transform(logs, exponent, y)
    sample = moments_by(weighing, y)
    if not 0.0 < sample.m2 < math.inf:
        return _WORST
    if which == KS:
        return _depart(weighing, y, sample.mean, math.sqrt(sample.m2 / ddof_of(weighing, y.size)))
    return decorrelation_by(weighing, y, q, sample.mean, 1.0 / math.sqrt(sample.m2))


class _Lanes(NamedTuple):
    """Scratch for columns at LANES exponents at once, and what a scan of whole steps finds.

    `y` has rows of _WIDTH: the transforms, or departures from normal, of a value in the last LANES of them. Before
    these are the departures at the step before. `floors` and `parts` are bounds of the KS distance from below between
    a step, or part of one, and that before it.
    """

    y: FloatArray
    exponents: FloatArray
    values: FloatArray
    steps: FloatArray
    floors: FloatArray
    parts: FloatArray


@kernel
def _transform_lanes(
    weighing: Weighing | None, logs: ScaledLogs, exponent: Lanes, y: FloatArray
) -> tuple[Lanes, Lanes]:
    """`_transform` at LANES exponents; returns mean and sum of squares about it."""
    d, border, n = logs.d, logs.n_negative, logs.d.size
    mirrored, nothing = 2.0 * logs.scale - exponent, in_all_lanes(0.0)
    one_sign = border in (0, n)
    excess = nothing
    if not one_sign:
        excess = greater(exponent * d[n - 1], mirrored * d[0])
        excess = select(excess > _MODERATE, excess, nothing)
    one, total = select(excess > 0.0, in_all_lanes(1.0), nothing), in_all_lanes(0.0)
    for side in range(2):
        m = exponent if side else mirrored
        m = select(abs(m) < _TINY, in_all_lanes(_TINY), m)
        sign = 1.0 if side else -1.0
        top = nothing
        if one_sign:
            ends = in_all_lanes(d[n - 1]), in_all_lanes(d[0])
            top = select(m > 0.0, ends[0], ends[1]) if side else select(m > 0.0, ends[1], ends[0])
        factor = sign / m
        for i in range(border if side else 0, n if side else border):
            value = (expm1_lanes(m * (d[i] - top) - excess) + one) * factor
            store(y, (_WIDTH * i + LANES,), value)
            total += _times(weighing, i, value)
    mean, squares = total * (1.0 / _sum_of_weights(weighing, n)), in_all_lanes(0.0)
    for i in range(n):
        difference = load(y, (_WIDTH * i + LANES,)) - mean
        squares += _times(weighing, i, difference * difference)
    return mean, squares


@inlined
def _times(weighing: Weighing | None, i: int, x: Lanes) -> Lanes:
    """What value number i adds to a sum."""
    if weighing is None:
        return x
    return weighing.share[i] * x


@kernel
def _sum_of_weights(weighing: Weighing | None, n: int) -> float:
    if weighing is None:
        return float(n)
    return 1.0


@kernel
def _distance_lanes(weighing: Weighing | None, mean: Lanes, squares: Lanes, y: FloatArray, n: int) -> Lanes:
    """KS distances of the transforms `y`, in place of which are left the departures from normal, with their signs."""
    per_n, per_scale = 1.0 / n, _SQRT_HALF / square_root(squares * (1.0 / ddof_of(weighing, n)))
    worst = in_all_lanes(0.0)
    for i in range(n):
        z = (load(y, (_WIDTH * i + LANES,)) - mean) * per_scale
        departure = 0.5 + 0.5 * erf_lanes(z) - _middle(weighing, i, per_n)
        store(y, (_WIDTH * i + LANES,), departure)
        worst = greater(worst, abs(departure) + _half_step(weighing, i, per_n))
    return worst


@kernel
def _decorrelation_lanes(weighing: Weighing | None, mean: Lanes, squares: Lanes, q: FloatArray, y: FloatArray) -> Lanes:
    """`decorrelation_by` of the transforms `y`."""
    per_scale, total = 1.0 / square_root(squares), in_all_lanes(0.0)
    for i in range(q.size):
        difference = (load(y, (_WIDTH * i + LANES,)) - mean) * per_scale - q[i]
        total += _times(weighing, i, difference * difference)
    return 0.5 * total + _spread_of(weighing)


@kernel
def _spread_of(weighing: Weighing | None) -> float:
    if weighing is None:
        return 0.0
    return weighing.spread


@kernel
def _evaluate_lanes(weighing: Weighing | None, logs: ScaledLogs, which: int, q: FloatArray, work: _Lanes) -> None:
    """`_criterion` at all `work.exponents`."""
    mean, squares = _transform_lanes(weighing, logs, load(work.exponents, (0,)), work.y)
    if which == KS:
        found = _distance_lanes(weighing, mean, squares, work.y, logs.d.size)
    else:
        found = _decorrelation_lanes(weighing, mean, squares, q, work.y)
    usable = select(squares < math.inf, squares, in_all_lanes(0.0))
    store(work.values, (0,), select(usable > 0.0, found, in_all_lanes(_WORST)))


@kernel
def _floors_lanes(weighing: Weighing | None, y: FloatArray, n: int) -> tuple[Lanes, Lanes]:
    """KS distances if every departure were the smaller of those at the last exponent and this; this is then the last.

    And by how much a departure changes at most.
    """
    per_n, floor, change = 1.0 / n, in_all_lanes(0.0), in_all_lanes(0.0)
    for i in range(n):
        last, this = load(y, (_WIDTH * i + LANES - 1,)), load(y, (_WIDTH * i + LANES,))
        least = select(abs(last) < abs(this), abs(last), abs(this)) + _half_step(weighing, i, per_n)
        floor = greater(floor, select(last * this > 0.0, least, in_all_lanes(0.0)))
        change = greater(change, abs(this - last))
    for i in range(n):
        y[_WIDTH * i + LANES - 1] = y[_WIDTH * i + _WIDTH - 1]
    return floor, change


# --- the search ---------------------------------------------------------------------------------------


class _Task(NamedTuple):
    """What the criterion of a column needs; `y`, `left` and `right` are scratch."""

    logs: ScaledLogs
    which: int
    q: FloatArray
    y: FloatArray
    left: FloatArray
    right: FloatArray
    work: _Lanes


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
def _block(weighing: Weighing | None, task: _Task, first: float, step: float) -> None:
    """The criterion at LANES exponents from `first` on."""
    for i in range(LANES):
        task.work.exponents[i] = first + i * step
    if task.logs.d.size <= _MOST_LANES:
        _evaluate_lanes(weighing, task.logs, task.which, task.q, task.work)
        return
    for i in range(LANES):
        task.work.values[i] = _criterion(weighing, task.logs, task.work.exponents[i], task.which, task.q, task.y)


@kernel
def _has_floors(task: _Task) -> bool:
    """Whether steps between which the criterion may be lower are looked at more closely."""
    return task.which == KS and task.logs.d.size <= _MOST_LANES


@kernel
def _scan(weighing: Weighing | None, task: _Task, origin: float) -> _Scan:
    """The criterion at steps from `origin`, and on up and down as long as it descends, to `work.steps`."""
    steps, floors = task.work.steps, task.work.floors
    first = _lower_end(weighing, task, origin)
    for i in range(LANES - 1, _WIDTH * task.logs.d.size if _has_floors(task) else 0, _WIDTH):
        task.work.y[i] = 0.0
    best, count, lowest, highest = 0, 0, math.inf, 0.0
    while first + count < _POINTS or (first + count < _FARTHEST and steps[count - 1] < steps[count - 2] - _FLAT):
        if count:
            _block(weighing, task, origin + (first + count) * _STEP, _STEP)
        if _has_floors(task):
            floor, change = _floors_lanes(weighing, task.work.y, task.logs.d.size)
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
def _lower_end(weighing: Weighing | None, task: _Task, origin: float) -> int:
    """The step from which the scan goes up, evaluated with those after it."""
    first, falls = LANES, True
    while falls:
        first -= LANES
        _block(weighing, task, origin + first * _STEP, _STEP)
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
def _lowest_of(values: FloatArray, n: int) -> int:
    """Where the lowest of the values from number 1 on is."""
    k = 1
    for i in range(2, n):
        k = i if values[i] < values[k] else k
    return k


@kernel
def _lowest_kink(weighing: Weighing | None, task: _Task, origin: float, scan: _Scan) -> _Point:
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
        k = _lowest_of(parts, _FINEST)
        if parts[k] < best.value - _FLAT:
            parts[k] = math.inf
            best = _lower(best, _kink(weighing, task, low + (k - 1) * size, low + k * size))
            continue
        k = _lowest_of(floors, scan.n_steps)
        if floors[k] >= best.value:
            return best
        floors[k] = math.inf
        low, size = origin + (scan.first + k - 1) * _STEP, _PART
        best = _lower(best, _divide(weighing, task, low))


@kernel
def _lower(best: _Point, other: _Point) -> _Point:
    """The lower of two points, with the evaluations of both."""
    lowest = other if other.value < best.value else best
    return _Point(lowest.x, lowest.value, best.n_eval + other.n_eval, lowest.converged)


@kernel
def _divide(weighing: Weighing | None, task: _Task, low: float) -> _Point:
    """The lowest of _FINEST points from `low` on; the floors between them, to `work.parts`."""
    x, lowest = low, math.inf
    for k in range(0, _FINEST, LANES):
        _block(weighing, task, low + k * _PART, _PART)
        floor, _ = _floors_lanes(weighing, task.work.y, task.logs.d.size)
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
def _kink(weighing: Weighing | None, task: _Task, low: float, high: float) -> _Point:
    """Where a departure that falls from `low` on meets one that rises to `high`, and none is larger.

    They meet near where their chords do. Of the departures, that which is largest there takes the place of the one or
    the other. Not converged where none falls, or none rises.
    """
    y, left, right, per_n = task.y, task.left, task.right, 1.0 / task.y.size
    x, value, nearest, i, j, side = low, math.inf, math.inf, 0, 0, 0
    for n_eval in range(1, _MAX_KINK):
        value = _criterion(weighing, task.logs, x, KS, task.q, y)
        if nearest <= _XTOL:
            return _Point(x, value, n_eval, True)
        k = _farthest(weighing, y, value)
        if n_eval == 2 or (n_eval > 2 and _rises(y[k], left[k], right[k], x - low, high - x)):
            high, j, side = x, k, min(side, 0) - 1
            copy(y, right)
        else:
            low, i, side = x, k, max(side, 0) + 1
            copy(y, left)
        x = high
        if n_eval > 1:
            step = _half_step(weighing, i, per_n) - _half_step(weighing, j, per_n)
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
def _brent(weighing: Weighing | None, task: _Task, center: float, reach: float) -> _Point:
    """A minimum about an exponent."""
    state = brent_start(-reach, reach, _XTOL, _MAX_EVAL)
    while state.status == RUNNING:
        state = brent_step(state, _criterion(weighing, task.logs, center + state.x, task.which, task.q, task.y))
    return _Point(center + state.best, state.fun, state.n_eval, state.status == CONVERGED)


@kernel
def _search(weighing: Weighing | None, task: _Task, start: float, out: FloatArray) -> None:
    """`out` = the best lambda, its criterion, evaluations and the status.

    A scan that goes on as long as it descends; kinks; Brent's method where the lowest point is none.
    """
    scale = task.logs.scale
    origin = start * scale - _REACH
    scan = _scan(weighing, task, origin)
    out[FOUND_LMBDA], out[FOUND_VALUE] = start, scan.lowest
    out[FOUND_N_EVAL], out[FOUND_STATUS] = scan.n_steps, _SCANNED
    if scan.highest - scan.lowest < _FLAT:
        return
    best = _Point(origin + (scan.first + scan.best) * _STEP, scan.lowest, 0, False)
    if task.which == KS:
        best = _lowest_kink(weighing, task, origin, scan)
    certified = best.converged
    if not certified:
        smooth = _brent(weighing, task, best.x, _PART if _has_floors(task) else _STEP)
        best, certified = _lower(best, smooth), smooth.converged
    out[FOUND_LMBDA], out[FOUND_VALUE] = best.x / scale, best.value
    out[FOUND_N_EVAL] += best.n_eval
    if scan.second < _RIVAL * best.value:
        out[FOUND_STATUS] = _MULTIMODAL
    if not certified or scan.best == scan.n_steps - 1 or scan.first + scan.best == -_FARTHEST:
        out[FOUND_STATUS] = _NOT_CERTIFIED


def normal_quantiles(n: int) -> FloatArray:
    """Normal quantiles at Filliben's (1975) medians of n uniform order statistics, as a vector of length 1."""
    medians = (np.arange(1, n + 1) - 0.3175) / (n + 0.365)
    medians[-1] = 0.5 ** (1.0 / n)
    medians[0] = 1.0 - medians[-1]
    q = special.ndtri(medians)
    return np.asarray(q / np.sqrt(q @ q))


@entry((COLUMN, INTEGER, INTEGER, COLUMN, COLUMN, ROWS, COLUMN))
def criterion_at(
    x: FloatArray, family: int, which: int, lmbdas: FloatArray, quantiles: FloatArray, work: FloatArray, out: FloatArray
) -> None:
    """The criterion of one ascending column at each of some lambdas; arguments as for `criterion_columns`."""
    logs = _logs_of(None, x, family, work[0, : x.size], work[1, : x.size])
    for k in range(lmbdas.size):
        out[k] = _criterion(None, logs, lmbdas[k] * logs.scale, which, quantiles, work[1, : x.size])


@entry((COLUMN, BLOCKS, ROWS, INTEGER, INTEGER, COLUMN, ROWS, COLUMN))
def weighted_criterion_at(
    x: FloatArray,
    weighed: FloatArray,
    figures: FloatArray,
    family: int,
    which: int,
    lmbdas: FloatArray,
    work: FloatArray,
    out: FloatArray,
) -> None:
    """`criterion_at` with weights; `weighed` and `figures` are those of one row by `weigh_columns`."""
    weighing = weighing_of(weighed, figures, 0, x.size)
    logs = _logs_of(weighing, x, family, work[0, : x.size], work[1, : x.size])
    for k in range(lmbdas.size):
        out[k] = _criterion(weighing, logs, lmbdas[k] * logs.scale, which, x, work[1, : x.size])


def room_of_lanes(n: int) -> int:
    """Length of the scratch array of that name that columns of up to `n` values need."""
    return _WIDTH * min(n, _MOST_LANES) + 2 * (LANES + _MOST_STEPS) + _FINEST


@entry((ROWS, INTEGER, INTEGER, COLUMN, ROWS, ROWS, COLUMN, ROWS))
def criterion_columns(
    block: FloatArray,
    family: int,
    which: int,
    start: FloatArray,
    quantiles: FloatArray,
    work: FloatArray,
    lanes: FloatArray,
    out: FloatArray,
) -> None:
    """The lambda of each row, sorted with NaN last, that minimises a criterion.

    Parameters
    ----------
    block : (p, n)
        Columns as rows, each in the domain of the family, with two distinct values at least.
    family, which : int
        BOX_COX or YEO_JOHNSON; KS or PPCC.
    start : (p,)
        Where the scans start; rows without one (NaN) are skipped.
    quantiles : (p, n)
        For PPCC: normal quantiles of the positions of each row's values, as a vector of unit length.
    work : (4, n)
    lanes : (room_of_lanes(n),)
        Scratch.
    out : (p, N_FOUND)
        Receives lambda, the criterion there, the number of evaluations, and a `powerkern.Status`. Where all lambdas
        are equally good, as for two distinct values, lambda is the start.
    """
    each = _lanes_in(lanes)
    for j in range(block.shape[0]):
        if math.isnan(start[j]):
            out[j] = math.nan
        else:
            n = n_present(block[j])
            logs = _logs_of(None, block[j, :n], family, work[0, :n], work[1, :n])
            task = _Task(logs, which, quantiles[j, :n], work[1, :n], work[2, :n], work[3, :n], each)
            _search(None, task, start[j], out[j])


@kernel
def _lanes_in(lanes: FloatArray) -> _Lanes:
    small, steps = lanes[: 2 * LANES + _FINEST], lanes[2 * LANES + _FINEST :]
    floors, y = steps[_MOST_STEPS : 2 * _MOST_STEPS], steps[2 * _MOST_STEPS :]
    return _Lanes(y, small[:LANES], small[LANES : 2 * LANES], steps[:_MOST_STEPS], floors, small[2 * LANES :])


@entry((ROWS, BLOCKS, ROWS, INTEGER, INTEGER, COLUMN, ROWS, COLUMN, ROWS))
def weighted_criterion_columns(
    block: FloatArray,
    weighed: FloatArray,
    figures: FloatArray,
    family: int,
    which: int,
    start: FloatArray,
    work: FloatArray,
    lanes: FloatArray,
    out: FloatArray,
) -> None:
    """`criterion_columns` with weights; `weighed` and `figures` are those of `weigh_columns`."""
    each = _lanes_in(lanes)
    for j in range(block.shape[0]):
        if math.isnan(start[j]):
            out[j] = math.nan
        else:
            n = n_present(block[j])
            weighing = weighing_of(weighed, figures, j, n)
            logs = _logs_of(weighing, block[j, :n], family, work[0, :n], work[1, :n])
            task = _Task(logs, which, weighing.quantile, work[1, :n], work[2, :n], work[3, :n], each)
            _search(weighing, task, start[j], out[j])
