"""The criteria at LANES exponents of a column at a time."""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import LANES, Lanes, in_all_lanes, kernel, load, select, square_root, store
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.erf import SQRT_HALF, erf_lanes
from powerkern.kernels.elementary.exp import expm1_lanes, greater
from powerkern.kernels.normality.criteria import Weighing, half_past, share_at
from powerkern.kernels.normality.criterion import KS, MODERATE, TINY, WORST, ScaledLogs

#: Room for a value at those exponents, and at the one before.
WIDTH = 2 * LANES


class LaneWork(NamedTuple):
    """Scratch for columns at LANES exponents at once, and the results of a scan of whole steps.

    `y` has rows of WIDTH: the transforms, or departures from normal, of a value in the last LANES of them. Before
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
def _transform_lanes(weighing: Weighing, logs: ScaledLogs, exponent: Lanes, y: FloatArray) -> tuple[Lanes, Lanes]:
    """`_transform` at LANES exponents; returns mean and sum of squares about it."""
    d, border, n = logs.d, logs.n_negative, logs.d.size
    mirrored, nothing = 2.0 * logs.scale - exponent, in_all_lanes(0.0)
    one_sign = border in (0, n)
    excess = nothing
    if not one_sign:
        excess = greater(exponent * d[n - 1], mirrored * d[0])
        excess = select(excess > MODERATE, excess, nothing)
    one, total = select(excess > 0.0, in_all_lanes(1.0), nothing), in_all_lanes(0.0)
    for side in range(2):
        m = exponent if side else mirrored
        m = select(abs(m) < TINY, in_all_lanes(TINY), m)
        sign = 1.0 if side else -1.0
        top = nothing
        if one_sign:
            ends = in_all_lanes(d[n - 1]), in_all_lanes(d[0])
            top = select(m > 0.0, ends[0], ends[1]) if side else select(m > 0.0, ends[1], ends[0])
        factor = sign / m
        for i in range(border if side else 0, n if side else border):
            value = (expm1_lanes(m * (d[i] - top) - excess) + one) * factor
            store(y, (WIDTH * i + LANES,), value)
            total += share_at(weighing, i) * value
    squares = in_all_lanes(0.0)
    for i in range(n):
        difference = load(y, (WIDTH * i + LANES,)) - total
        squares += share_at(weighing, i) * (difference * difference)
    return total, squares


@kernel
def _distance_lanes(weighing: Weighing, mean: Lanes, squares: Lanes, y: FloatArray, n: int) -> Lanes:
    """KS distances of the transforms `y`, in place of which are left the departures from normal, with their signs."""
    per_scale = SQRT_HALF / square_root(squares * (1.0 / (1.0 - 1.0 / weighing.n)))
    worst = in_all_lanes(0.0)
    for i in range(n):
        z = (load(y, (WIDTH * i + LANES,)) - mean) * per_scale
        middle = half_past(i) * weighing.equal if weighing.equal > 0.0 else weighing.middle[i]
        departure = 0.5 + 0.5 * erf_lanes(z) - middle
        store(y, (WIDTH * i + LANES,), departure)
        worst = greater(worst, abs(departure) + 0.5 * share_at(weighing, i))
    return worst


@kernel
def _decorrelation_lanes(weighing: Weighing, mean: Lanes, squares: Lanes, y: FloatArray, n: int) -> Lanes:
    """`decorrelation_of` the transforms `y`."""
    per_scale, total = 1.0 / square_root(squares), in_all_lanes(0.0)
    for i in range(n):
        difference = (load(y, (WIDTH * i + LANES,)) - mean) * per_scale - weighing.quantile[i]
        total += share_at(weighing, i) * (difference * difference)
    return 0.5 * total + weighing.spread


@kernel
def evaluate_lanes(weighing: Weighing, logs: ScaledLogs, which: int, work: LaneWork) -> None:
    """`criterion` at all `work.exponents`."""
    mean, squares = _transform_lanes(weighing, logs, load(work.exponents, (0,)), work.y)
    if which == KS:
        found = _distance_lanes(weighing, mean, squares, work.y, logs.d.size)
    else:
        found = _decorrelation_lanes(weighing, mean, squares, work.y, logs.d.size)
    usable = select(squares < math.inf, squares, in_all_lanes(0.0))
    store(work.values, (0,), select(usable > 0.0, found, in_all_lanes(WORST)))


@kernel
def floors_lanes(weighing: Weighing, y: FloatArray, n: int) -> tuple[Lanes, Lanes]:
    """KS distances if every departure were the smaller of those at the last exponent and this; this is then the last.

    And by how much a departure changes at most.
    """
    floor, change = in_all_lanes(0.0), in_all_lanes(0.0)
    for i in range(n):
        last, this = load(y, (WIDTH * i + LANES - 1,)), load(y, (WIDTH * i + LANES,))
        least = select(abs(last) < abs(this), abs(last), abs(this)) + 0.5 * share_at(weighing, i)
        floor = greater(floor, select(last * this > 0.0, least, in_all_lanes(0.0)))
        change = greater(change, abs(this - last))
    for i in range(n):
        y[WIDTH * i + LANES - 1] = y[WIDTH * i + WIDTH - 1]
    return floor, change
