"""The robust QQ objective of a short sorted column, at eight lambdas at once, or at sixteen in float32.

The objective of RewML's search is computed in three steps: the transform, plain or rectified; one step of Huber's
estimators from median and MAD (`powerkern.kernels.location.huber.nonempty_one_step`); and the bisquare distance
(`kernels.robust.qq`).
Each lane of a vector is one lambda, and each iteration of a loop one value of the column, so that sums stay in
registers. `qq_column.qq_value` gives the same results for one lambda, up to rounding.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from powerkern._jit import (
    Lanes,
    Mask,
    any_lane,
    broadcast_like,
    inlined,
    kernel,
    lane_width,
    load,
    select,
    specialize_on_none,
    square_root,
    store,
)
from powerkern._typing import Float32Array, FloatArray, IntArray
from powerkern.kernels.elementary.exp import (
    LOG2_E,
    are_moderate,
    exp2m1_lanes,
    exp_lanes,
    expm1_lanes,
    maximum,
    minimum,
)
from powerkern.kernels.location.huber import CELLWISE_BETA
from powerkern.kernels.location.loc_scale import MAD_FACTOR
from powerkern.kernels.location.weights import FrequencyWeights, ScoreNodes, middle_positions, weight_at, weight_sum
from powerkern.kernels.robust.qq import nearness
from powerkern.kernels.transforms.rectified import NOT_RECTIFIED, SortedColumn, is_low_tail_in_logs

#: Arrays of either precision; the dtype determines the number of lambdas per vector.
Floats: TypeAlias = FloatArray | Float32Array

#: Smallest |exponent| used: one can divide by it, and its square is not subnormal in float32.
_FLAT = 1e-16
#: Largest distance from the median, in units of the clipping distance of Huber's psi, for which a weight is computed.
_FARTHEST = 1e15


@inlined
def values_at(y: Floats, i: int) -> Lanes:
    """Load order statistic i (counted from 0) of the transformed values, as a vector over lambdas."""
    return load(y, (lane_width(y) * i,))


@kernel
def qq_objectives(
    column: SortedColumn,
    log_units: tuple[float, float],
    counts: FrequencyWeights | None,
    scores: Floats | ScoreNodes,
    rule: int,
    k: float,
    c: float,
    lmbdas: Floats,
    y: Floats,
    out: Floats,
) -> None:
    """Write the QQ objective of a column at each of `lmbdas`, one vector at a time; NaN where it is undefined.

    Parameters
    ----------
    column : SortedColumn
        The prestandardised column.
    log_units : (float, float)
        For the lower and the upper tangent, the log of the unit in which distances from the change point are stored
        (see `qq_search.qq_objective`); 0 for a column in float64.
    counts : FrequencyWeights or None
        Weights of the values; None: all one.
    scores : (n,) or ScoreNodes
        The normal scores or, with weights, their nodes.
    rule : int
        The rectification rule of the transform (`kernels.transforms.rectified`).
    k : float
        The constant of Huber's psi: the distance at which it is clipped, in units of the scale.
    c : float
        The constant of the bisquare.
    lmbdas : (m,)
        The lambdas; m is a multiple of the number of lanes of a vector.
    y : (lanes n,)
        Scratch for the transformed values. Without weights it finally holds the residuals in units of c, clipped to
        [-1, 1], at the last vector of lambdas.
    out : (m,)
        Receives the objective.
    """
    for i in range(0, lmbdas.size, lane_width(lmbdas)):
        _transform(column, log_units, rule, load(lmbdas, (i,)), y)
        store(out, (i,), _objective(counts, column.n, scores, k, c, load(lmbdas, (i,)), y))


# --- transforms -----------------------------------------------------------------------------------------


@kernel
def _transform(column: SortedColumn, log_units: tuple[float, float], rule: int, lmbda: Lanes, y: Floats) -> None:
    """Write the transform of all values to `y`, as a vector over lambdas for each value.

    Beyond a change point the rectified transform is linear for some lambdas only (`kernels.transforms.rectified`). In
    the lanes of these lambdas the tangent replaces the power.

    Parameters
    ----------
    column : SortedColumn
        The prestandardised column.
    log_units : (float, float)
        As in `qq_objectives`.
    rule : int
        The rectification rule.
    lmbda : vector
        A lambda for each lane.
    y : (lanes n,)
        Receives the transform.
    """
    in_logs, lower, upper, n = is_low_tail_in_logs(column, rule), column.lower, column.upper, column.n
    below, above, first, last = lmbda > (0.0 if in_logs else 1.0), lmbda < 1.0, 0, n
    if rule != NOT_RECTIFIED:
        first = 0 if any_lane(~below) else lower
        last = n if any_lane(~above) else upper + 1
    border = min(max(column.n_negative, first), last)
    _powers(column.logs, lmbda - column.negative_shift, first, border, y)
    _powers(column.logs, lmbda, border, last, y)
    if rule != NOT_RECTIFIED and any_lane(below):
        log_slope = (lmbda - (0.0 if in_logs else 1.0)) * column.logs[lower] + (0.0 if in_logs else log_units[0])
        _tangents(column.logs if in_logs else column.x, lower, 0, lower, log_slope, below, y)
    if rule != NOT_RECTIFIED and any_lane(above):
        _tangents(column.x, upper, upper + 1, n, (lmbda - 1.0) * column.logs[upper] + log_units[1], above, y)


@kernel
def _powers(logs: Floats, m: Lanes, first: int, last: int, y: Floats) -> None:
    """Write ``(exp(m log) - 1)/m`` for a range of the logs, as a vector over exponents m for each log.

    Parameters
    ----------
    logs : (n,)
        Signed logs, ascending.
    m : vector
        An exponent for each lane.
    first : int
        Index of the first log.
    last : int
        One more than the index of the last log.
    y : (lanes n,)
        Receives the powers.
    """
    if first >= last:
        return
    m = bounded_away_from_zero(m)
    inverse = 1.0 / m
    if are_moderate(m * max(abs(logs[first]), abs(logs[last - 1]))):
        of_2 = m * LOG2_E
        for i in range(first, last):
            store(y, (lane_width(y) * i,), exp2m1_lanes(of_2 * logs[i]) * inverse)
    else:
        for i in range(first, last):
            store(y, (lane_width(y) * i,), expm1_lanes(m * logs[i]) * inverse)


@inlined
def bounded_away_from_zero(m: Lanes) -> Lanes:
    """Replace exponents that are too close to 0 to divide by with the smallest positive exponent allowed."""
    return select(abs(m) < _FLAT, _FLAT, m)


@kernel
def _tangents(x: Floats, k: int, first: int, last: int, log_slope: Lanes, where: Mask, y: Floats) -> None:
    """Replace values of the transform by its tangent at value k, in some of the lanes.

    Parameters
    ----------
    x : (n,)
        The values in which the tangent is linear, ascending: the column or its logs.
    k : int
        Index of the value at which the tangent touches.
    first : int
        Index of the first value to be replaced.
    last : int
        One more than the index of the last value to be replaced.
    log_slope : vector
        The log of the slope of the transform at value k, in each lane.
    where : mask
        The lanes in which values are replaced.
    y : (lanes n,)
        The transform, a vector over lambdas for each value; updated in place.
    """
    at, root = values_at(y, k), exp_lanes(0.5 * log_slope)  # square root of the slope, which is in range
    for i in range(first, last):
        tangent = at + root * (x[i] - x[k]) * root
        store(y, (lane_width(y) * i,), select(where, tangent, values_at(y, i)))


# --- location, scale and distance -----------------------------------------------------------------------


@kernel
def _objective(
    counts: FrequencyWeights | None, n: int, scores: Floats | ScoreNodes, k: float, c: float, lmbda: Lanes, y: Floats
) -> Lanes:
    lower, upper = middle_positions(counts, n)
    center = values_at(y, lower)
    median = center + 0.5 * (values_at(y, upper) - center)
    clip_distance = (k * MAD_FACTOR) * _mad(y, counts, n, median)
    loc = median + huber_step(y, counts, n, median, clip_distance)
    clip_distance = (k * MAD_FACTOR) * _mad(y, counts, n, loc)
    squares, others = broadcast_like(lmbda, 0.0), broadcast_like(lmbda, 0.0)
    for i in range(1, n, 2):  # two independent sums
        squares += _square(y, counts, i - 1, loc, clip_distance)
        others += _square(y, counts, i, loc, clip_distance)
    if n & 1:
        squares += _square(y, counts, n - 1, loc, clip_distance)
    squares += others
    total = weight_sum(counts, n)
    scale = square_root(squares * (1.0 / (total * CELLWISE_BETA)))
    near = _nearness(counts, y, scores, c, loc, 1.0 / (c * scale))
    return select((scale > 0.0) & (scale < math.inf), 1.0 - near * (1.0 / total), math.nan)


@inlined
def _square(y: Floats, counts: FrequencyWeights | None, i: int, loc: Lanes, clip_distance: Lanes) -> Lanes:
    """Return the weighted square of the distance of value i from `loc`, with the distance clipped.

    Parameters
    ----------
    y : (lanes n,)
        The transformed values, each a vector over lambdas.
    counts : FrequencyWeights or None
        Weights of the values; None: all one.
    i : int
        Index of the value.
    loc : vector
        Location at each lambda.
    clip_distance : vector
        Largest distance at each lambda.
    """
    d = minimum(abs(values_at(y, i) - loc), clip_distance)
    return _times(counts, i, d * d)


@kernel
def huber_step(y: Floats, counts: FrequencyWeights | None, n: int, median: Lanes, clip_distance: Lanes) -> Lanes:
    """Return location minus median after one step of Huber's estimator of location.

    Values are processed in pairs from both ends; only the outer pairs may be farther than `clip_distance`. All values
    are clipped, even where none can exceed `clip_distance`. Otherwise products could be fused with sums in some lanes
    only, and lanes would round differently.

    Parameters
    ----------
    y : (lanes n,)
        The transformed values in ascending order, each a vector over lambdas.
    counts : FrequencyWeights or None
        Weights of the values; None: all one.
    n : int
        Number of values.
    median : vector
        Median at each lambda.
    clip_distance : vector
        Distance at which Huber's psi is clipped, at each lambda.
    """
    below, above, weight = broadcast_like(median, 0.0), broadcast_like(median, 0.0), broadcast_like(median, 0.0)
    low, high, per_distance = 0, n - 1, 1.0 / clip_distance
    while low < high:
        a, b = (median - values_at(y, low)) * per_distance, (values_at(y, high) - median) * per_distance
        if not any_lane(maximum(a, b) > 1.0):
            break
        below += _times(counts, low, _clipped(counts, a))
        above += _times(counts, high, _clipped(counts, b))
        a, b = _inverse_weight(a), _inverse_weight(b)
        weight += (_times(counts, low, b) + _times(counts, high, a)) / (a * b)
        low, high = low + 1, high - 1
    while low < high:
        below += _times(counts, low, _clipped(counts, (median - values_at(y, low)) * per_distance))
        above += _times(counts, high, _clipped(counts, (values_at(y, high) - median) * per_distance))
        weight += weight_at(counts, low) + weight_at(counts, high)
        low, high = low + 1, high - 1
    if low == high:
        a = (values_at(y, low) - median) * per_distance
        above += _times(counts, low, _clipped(counts, a))
        weight += _times(counts, low, 1.0 / _inverse_weight(a))
    return clip_distance * ((above - below) / weight)


@inlined
def _times(counts: FrequencyWeights | None, i: int, x: Lanes) -> Lanes:
    """Return x times the weight of value i; x itself if there are no weights."""
    if counts is None:
        return x
    return counts.w[i] * x


@inlined
def _clipped(counts: FrequencyWeights | None, d: Lanes) -> Lanes:
    """Return Huber's psi of a distance d, in units of the distance at which psi is clipped.

    NaN stays NaN, so that the location is undefined wherever a transform is undefined. Without weights d is never less
    than -1, and is clipped at 1 only.
    """
    d = select(d > 1.0, 1.0, d)
    return d if counts is None else select(d < -1.0, -1.0, d)


@inlined
def _inverse_weight(d: Lanes) -> Lanes:
    """Return the inverse of Huber's weight at a distance d, at most `_FARTHEST` so that its square is in range."""
    return minimum(maximum(abs(d), 1.0), _FARTHEST)


@kernel
def plain_nearness(counts: None, y: Floats, scores: Floats, c: float, loc: Lanes, per_scale_and_c: Lanes) -> Lanes:
    """Return the sum of ``1 - rho`` over all values, and replace the values by their residuals in units of c.

    Parameters
    ----------
    counts : None
        Always None: all weights are one.
    y : (lanes n,)
        The transformed values, each a vector over lambdas; replaced in place.
    scores : (n,)
        The normal scores.
    c : float
        The constant of the bisquare.
    loc : vector
        Location at each lambda.
    per_scale_and_c : vector
        ``1/(c scale)`` at each lambda.
    """
    near, others, n = broadcast_like(loc, 0.0), broadcast_like(loc, 0.0), scores.size
    per_c, center = broadcast_like(loc, 1.0 / c), loc * per_scale_and_c
    for i in range(1, n, 2):
        near += _near(y, scores, i - 1, per_c, center, per_scale_and_c)
        others += _near(y, scores, i, per_c, center, per_scale_and_c)
    if n & 1:
        near += _near(y, scores, n - 1, per_c, center, per_scale_and_c)
    return near + others


@inlined
def _near(y: Floats, scores: Floats, i: int, per_c: Lanes, center: Lanes, per_scale_and_c: Lanes) -> Lanes:
    """Return 1 - rho of value i at each lambda, and replace the value by its residual, clipped to [-1, 1].

    rho is Tukey's bisquare. The residual is ``y per_scale_and_c - (score per_c + center)``: the distance of the
    standardised value from its normal score, in units of c.

    Parameters
    ----------
    y : (lanes n,)
        The transformed values, each a vector over lambdas.
    scores : (n,)
        The normal scores.
    i : int
        Index of the value.
    per_c : vector
        ``1/c`` in all lanes.
    center : vector
        ``loc/(c scale)`` at each lambda.
    per_scale_and_c : vector
        ``1/(c scale)`` at each lambda.
    """
    t = values_at(y, i) * per_scale_and_c - (scores[i] * per_c + center)
    t = maximum(minimum(t, 1.0), -1.0)  # NaN is treated as infinite
    store(y, (lane_width(y) * i,), t)
    return nearness(t * t)


@specialize_on_none(plain_nearness)
def _nearness(
    counts: FrequencyWeights, y: Floats, nodes: ScoreNodes, c: float, loc: Lanes, per_scale_and_c: Lanes
) -> Lanes:
    """Return the sum of ``1 - rho`` at each lambda, for a column with weights.

    The copies that a weight stands for have different normal scores. A node represents copies with similar scores by
    their mean, variance and weight (`powerkern.kernels.robust.qq`).

    Parameters
    ----------
    counts : FrequencyWeights
        Weights of the values.
    y : (lanes n,)
        The transformed values, each a vector over lambdas.
    nodes : ScoreNodes
        The nodes of the normal scores.
    c : float
        The constant of the bisquare.
    loc : vector
        Location at each lambda.
    per_scale_and_c : vector
        ``1/(c scale)`` at each lambda.
    """
    near = broadcast_like(loc, 0.0)
    row, score, spread, weight = nodes
    for k in range(row.size):
        t = (values_at(y, row[k]) - loc) * per_scale_and_c - score[k] * (1.0 / c)
        u = 1.0 - minimum(t * t, 1.0)
        near += weight[k] * (u * (u * u + (3.0 / (c * c)) * spread[k] * (4.0 - 5.0 * u)))
    return near


@kernel
def _mad(y: Floats, counts: FrequencyWeights | None, n: int, point: Lanes) -> Lanes:
    """Return the median distance of n values from a point, in every lane.

    The half of the values nearest to the point is a window of consecutive values: the one with the smallest radius.
    """
    if counts is None:
        return plain_mad(y, n, point)
    return 0.5 * (_smallest_radius(y, counts.half_partner, point) + _smallest_radius(y, counts.majority_partner, point))


@kernel
def _smallest_radius(y: Floats, partner: IntArray, point: Lanes) -> Lanes:
    """Return, in every lane, the smallest radius about `point` that covers one of the windows of a given weight.

    The windows are the values i, ..., ``partner[i]`` for all i (`FrequencyWeights.half_partner`).
    """
    nearest, low = broadcast_like(point, math.inf), 0
    while low < partner.size and partner[low] < partner.size:
        nearest = minimum(maximum(point - values_at(y, low), values_at(y, partner[low]) - point), nearest)
        low += 1
    return nearest


@kernel
def plain_mad(y: Floats, n: int, point: Lanes) -> Lanes:
    """Return the median distance of n values without weights from a point, in every lane; the values are ascending.

    The half of the values nearest to the point is a window of consecutive values: the one with the smallest radius. If
    n is even, the smallest window with one more value is needed as well. The first and the last quarter of all windows
    are skipped if, in every lane, neither of the two smallest windows can be among them.
    """
    rank = (n + 1) >> 1
    first, last = 0, n - rank
    low, high = last >> 2, last - (last >> 2)
    if not any_lane(~(point - values_at(y, low) >= values_at(y, low + rank) - point)):
        first = low
    if not any_lane(~(point - values_at(y, high - 1) <= values_at(y, high + rank - 1) - point)):
        last = high
    nearest, following = broadcast_like(point, math.inf), broadcast_like(point, math.inf)
    farthest = values_at(y, first + rank - 1) - point
    for low in range(first, last):
        below = point - values_at(y, low)
        nearest = minimum(maximum(below, farthest), nearest)
        farthest = values_at(y, low + rank) - point
        following = minimum(maximum(below, farthest), following)
    nearest = minimum(maximum(point - values_at(y, last), farthest), nearest)
    return nearest if n & 1 else 0.5 * (nearest + following)
