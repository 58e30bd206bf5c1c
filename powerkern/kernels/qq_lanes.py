"""The robust QQ objective of a short sorted column, at eight lambdas at once, or at sixteen in float32.

What `powerkern.kernels.robust_search` minimises, for the plain transform and the one rectified at the quartiles:
transform, one step of Huber's estimators from median and MAD (`powerkern.kernels.huber.one_step_of`), bisquare
distance (`powerkern.kernels.qq`). Each of `Lanes` is one lambda, each turn of a loop one value of the column: the
sums stay in registers, and nothing depends on the length. The same figures as one lambda at a time, but for rounding.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from powerkern._jit import (
    Lanes,
    any_lane,
    for_none,
    in_lanes_of,
    inlined,
    kernel,
    load,
    select,
    square_root,
    store,
    width_of,
)
from powerkern._typing import Float32Array, FloatArray, IntArray
from powerkern.kernels.counts import Counts, Nodes, inside_of, middle_positions, total_of
from powerkern.kernels.elementary import exp_lanes, expm1_lanes, greater, lesser
from powerkern.kernels.huber import CELLWISE_BETA
from powerkern.kernels.loc_scale import MAD_FACTOR
from powerkern.kernels.rectified import NOT_RECTIFIED, SortedColumn, is_low_tail_in_logs

#: All arrays may be of either precision: their type says how many lambdas go side by side.
Floats: TypeAlias = FloatArray | Float32Array

#: An exponent closer to 0 counts as this: it can be divided by, and in float32 squares are not yet subnormal.
_FLAT = 1e-16


@inlined
def values_at(y: Floats, i: int) -> Lanes:
    """Order statistic number i, from 0."""
    return load(y, (width_of(y) * i,))


@kernel
def qq_objectives(
    column: SortedColumn,
    rises: tuple[float, float],
    counts: Counts | None,
    scores: Floats | Nodes,
    rule: int,
    k: float,
    c: float,
    lmbdas: Floats,
    y: Floats,
    out: Floats,
) -> None:
    """out = the objective at `lmbdas`, a vector of them at a time; NaN where it is not defined.

    `k` is Huber's constant, `c` that of the bisquare; `y` has room for a vector for each value. Without counts it
    holds what rho is taken of afterwards, in units of c, at the last of the lambdas. `rises` are added to the logs of
    the slopes of both tangents: 0, unless the values beyond the change points are in other units.
    """
    for i in range(0, lmbdas.size, width_of(lmbdas)):
        _transform(column, load(lmbdas, (i,)), y)
        store(out, (i,), _objective(column, rises, counts, scores, rule, k, c, load(lmbdas, (i,)), y))


@kernel
def _transform(column: SortedColumn, lmbda: Lanes, y: Floats) -> None:
    for side in range(2):
        m = off_0(lmbda if side else lmbda - column.below)
        inverse = 1.0 / m
        for i in range(column.n_negative if side else 0, column.n if side else column.n_negative):
            store(y, (width_of(y) * i,), expm1_lanes(m * column.logs[i]) * inverse)


@inlined
def off_0(m: Lanes) -> Lanes:
    """An exponent that can be divided by."""
    return select(abs(m) < _FLAT, _FLAT, m)


@kernel
def _rectify(column: SortedColumn, rises: tuple[float, float], rule: int, lmbda: Lanes, y: Floats) -> None:
    """Tangents beyond the change points on the sides that lambda flattens."""
    n, in_logs = column.n, is_low_tail_in_logs(column, rule)
    if in_logs:
        _rectify_low_tail(column, lmbda, y)
    for side in range(1 if in_logs else 0, 2):
        k, first, last = (column.upper, column.upper + 1, n) if side else (column.lower, 0, column.lower)
        at = values_at(y, k)
        root = exp_lanes(((lmbda - 1.0) * column.logs[k] + rises[side]) * 0.5)  # of the slope: in range
        flattened = lmbda < 1.0 if side else lmbda > 1.0
        for i in range(first, last):
            tangent = at + root * (column.x[i] - column.x[k]) * root
            store(y, (width_of(y) * i,), select(flattened, tangent, values_at(y, i)))


@kernel
def _rectify_low_tail(column: SortedColumn, lmbda: Lanes, y: Floats) -> None:
    """Tangents in the logs below the lower change point, for lambda > 0."""
    k = column.lower
    at, slope = values_at(y, k), exp_lanes(lmbda * column.logs[k])
    flattened = lmbda > 0.0
    for i in range(k):
        store(y, (width_of(y) * i,), select(flattened, at + slope * (column.logs[i] - column.logs[k]), values_at(y, i)))


@kernel
def _objective(
    column: SortedColumn,
    rises: tuple[float, float],
    counts: Counts | None,
    scores: Floats | Nodes,
    rule: int,
    k: float,
    c: float,
    lmbda: Lanes,
    y: Floats,
) -> Lanes:
    if rule != NOT_RECTIFIED:
        _rectify(column, rises, rule, lmbda, y)
    n = column.n
    lower, upper = middle_positions(counts, n)
    center = values_at(y, lower)
    median = center + 0.5 * (values_at(y, upper) - center)
    reach = (k * MAD_FACTOR) * _mad(y, counts, n, median)
    loc = median + _pull(y, counts, n, median, reach)
    reach = (k * MAD_FACTOR) * _mad(y, counts, n, loc)
    squares, others = in_lanes_of(lmbda, 0.0), in_lanes_of(lmbda, 0.0)
    for i in range(1, n, 2):  # two sums, neither of which waits for the other
        squares += _square(y, counts, i - 1, loc, reach)
        others += _square(y, counts, i, loc, reach)
    if n & 1:
        squares += _square(y, counts, n - 1, loc, reach)
    squares += others
    total = total_of(counts, n)
    scale = square_root(squares * (1.0 / (total * CELLWISE_BETA)))
    near = _nearness(counts, y, scores, c, loc, 1.0 / (c * scale))
    return select((scale > 0.0) & (scale < math.inf), 1.0 - near * (1.0 / total), math.nan)


@inlined
def _square(y: Floats, counts: Counts | None, i: int, loc: Lanes, reach: Lanes) -> Lanes:
    """The square of the distance of value number i from `loc`, or of `reach` if that is smaller."""
    d = lesser(abs(values_at(y, i) - loc), reach)
    return _times(counts, i, d * d)


@kernel
def _pull(y: Floats, counts: Counts | None, n: int, median: Lanes, reach: Lanes) -> Lanes:
    """How far one step of Huber's location goes from the median."""
    total, weight, first, last = in_lanes_of(median, 0.0), in_lanes_of(median, 0.0), 0, n
    while first < last and any_lane(median - values_at(y, first) > reach):
        pull, w = _clipped(values_at(y, first) - median, reach)
        total, weight, first = total + _times(counts, first, pull), weight + _times(counts, first, w), first + 1
    while first < last and any_lane(values_at(y, last - 1) - median > reach):
        last -= 1
        pull, w = _clipped(values_at(y, last) - median, reach)
        total, weight = total + _times(counts, last, pull), weight + _times(counts, last, w)
    others = in_lanes_of(median, 0.0)
    for i in range(first + 1, last, 2):
        total += _times(counts, i - 1, values_at(y, i - 1) - median)
        others += _times(counts, i, values_at(y, i) - median)
    if (last - first) & 1:
        total += _times(counts, last - 1, values_at(y, last - 1) - median)
    return (total + others) / (weight + inside_of(counts, first, last))


@inlined
def _times(counts: Counts | None, i: int, x: Lanes) -> Lanes:
    """What value number i adds to a sum."""
    if counts is None:
        return x
    return counts.w[i] * x


@inlined
def _clipped(d: Lanes, reach: Lanes) -> tuple[Lanes, Lanes]:
    """d within +-reach, and Huber's weight of it."""
    far = abs(d) > reach
    return select(far, select(d < 0.0, 0.0 - reach, reach), d), select(far, reach / abs(d), 1.0)


@kernel
def plain_nearness(counts: None, y: Floats, scores: Floats, c: float, loc: Lanes, per_scale_and_c: Lanes) -> Lanes:
    """The sum of ``1 - rho`` over all values, in whose places their residuals are put, in units of c."""
    near, others, n = in_lanes_of(loc, 0.0), in_lanes_of(loc, 0.0), scores.size
    per_c = in_lanes_of(loc, 1.0 / c)
    for i in range(1, n, 2):
        near += _near(y, scores, i - 1, per_c, loc, per_scale_and_c)
        others += _near(y, scores, i, per_c, loc, per_scale_and_c)
    if n & 1:
        near += _near(y, scores, n - 1, per_c, loc, per_scale_and_c)
    return near + others


@inlined
def _near(y: Floats, scores: Floats, i: int, per_c: Lanes, loc: Lanes, per_scale_and_c: Lanes) -> Lanes:
    """1 - rho of value number i, in whose place its residual is put."""
    t = (values_at(y, i) - loc) * per_scale_and_c - scores[i] * per_c
    store(y, (width_of(y) * i,), t)
    u = 1.0 - lesser(t * t, 1.0)  # a NaN counts as infinitely far
    return u * u * u


@for_none(plain_nearness)
def _nearness(counts: Counts, y: Floats, nodes: Nodes, c: float, loc: Lanes, per_scale_and_c: Lanes) -> Lanes:
    """The sum of ``1 - rho`` over all values, see `powerkern.kernels.qq`."""
    near = in_lanes_of(loc, 0.0)
    row, score, spread, weight = nodes
    for k in range(row.size):
        t = (values_at(y, row[k]) - loc) * per_scale_and_c - score[k] * (1.0 / c)
        u = 1.0 - lesser(t * t, 1.0)
        near += weight[k] * (u * (u * u + (3.0 / (c * c)) * spread[k] * (4.0 - 5.0 * u)))
    return near


@kernel
def _mad(y: Floats, counts: Counts | None, n: int, point: Lanes) -> Lanes:
    """Median distance from a point.

    The values nearest to it are consecutive: the distance to the farthest of as many is least for them.
    """
    if counts is None:
        return plain_mad(y, n, point)
    return 0.5 * (_reach(y, counts.reach, point) + _reach(y, counts.beyond, point))


@kernel
def _reach(y: Floats, partner: IntArray, point: Lanes) -> Lanes:
    """The least distance from the point within which there is a share of the weight, given by its partners."""
    nearest, low = in_lanes_of(point, math.inf), 0
    while low < partner.size and partner[low] < partner.size:
        nearest = lesser(greater(point - values_at(y, low), values_at(y, partner[low]) - point), nearest)
        low += 1
    return nearest


@kernel
def plain_mad(y: Floats, n: int, point: Lanes) -> Lanes:
    """Median distance of n values, ascending in each lane, from a point."""
    rank = (n + 1) >> 1
    nearest, following = in_lanes_of(point, math.inf), in_lanes_of(point, math.inf)
    last = values_at(y, rank - 1)
    for low in range(n - rank):
        below = point - values_at(y, low)
        nearest = lesser(greater(below, last - point), nearest)
        last = values_at(y, low + rank)
        following = lesser(greater(below, last - point), following)
    nearest = lesser(greater(point - values_at(y, n - rank), last - point), nearest)
    return nearest if n & 1 else 0.5 * (nearest + following)
