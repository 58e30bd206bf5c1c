"""How far a robust fit from chunks may be from that of the rows: what the order within bins can do, step by step.

Medians, median distances and the ends of what is kept are known up to the bin that they are in. So are location and
scale of the transform, the cut-off, and the rows on either side of it. Each step adds these to what the step before
left open; the values of the rows inside the interval are exact.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from powerkern._engine.by_column import fit_matrix
from powerkern._typing import BoolArray, FloatArray
from powerkern.kernels.results import LMBDA, LMBDA0, ROUTE, STATUS
from powerkern.kernels.robust.fit import CUT_AFTER, CUT_BEFORE, CUT_HIGH, CUT_LOC, CUT_LOW, CUT_OFF, CUT_SCALE
from powerkern.kernels.robust.reweighting import EXCESS, excess_beyond
from powerkern.kernels.robust.search import CARROLL, QQ, TRIMMED
from powerkern.kernels.transforms.family import BOX_COX
from powerkern.kernels.transforms.rectified import BOTH
from powerkern.sketch.order import moment_points, weighted_median
from powerkern.sketch.robust_column import Column

#: 1/Phi^-1(3/4); by how much bounds of first order are widened, and the sum of what single rows do.
_MAD, _SAFETY, _CURVED = 1.4826, 2.0, 1.25
#: Half widths of the scans of the objective about the start, and their points.
_REACHES, _POINTS = (0.01, 0.04, 0.16, 0.64), 41
#: How far above its minimum the search in memory may leave these objectives, whose sums change value by value.
_ABOVE = {TRIMMED: 1e-4, CARROLL: 1e-5}
#: Constants of the bisquare, over its own, with which the choice between two starts should be the same.
_NEAR = (0.9, 0.95, 1.05, 1.1)
#: What is taken for the search's own tolerance, and for that of a fit of the same values.
TOLERANCE, _EXACT = 2e-5, 1e-11


def start_error(column: Column) -> float:
    """How far the start may be from that of the rows: where the objective is as low, to what is known of it."""
    with np.errstate(all="ignore"):  # far off, objectives and transforms overflow
        if column.options.criterion != QQ:
            return _near_minimum(column)
        x, w = _points_of_moments(column)
        again = column.fitted_points(column.estimator.options, x, w)
        if again[ROUTE] != column.begun[ROUTE] or _hangs_by_a_hair(column):
            return np.inf
        return max(_near_minimum(column), _SAFETY * abs(float(again[LMBDA0] - column.begun[LMBDA0])))


def _hangs_by_a_hair(column: Column) -> bool:
    """Whether the other of the two starts of Box-Cox is taken for a bisquare a little narrower or wider."""
    options = column.estimator.options
    if options.rule != BOTH or column.family != BOX_COX:
        return False
    near = [column.fitted_points(options._replace(c=factor * options.c), column.x, column.w) for factor in _NEAR]
    return any(fit[ROUTE] != column.begun[ROUTE] for fit in near)


def _near_minimum(column: Column) -> float:
    lmbda, bisquare = float(column.begun[LMBDA0]), column.options.criterion == QQ
    for reach in _REACHES:
        at = lmbda + np.linspace(-reach, reach, _POINTS)
        q = _objective(column, column.x, column.w, at)
        if np.isnan(q).any():
            return np.inf
        rough = _SAFETY * float(np.abs(np.diff(q, 2) - np.median(np.diff(q, 2))).max())
        moved, doubt = _moves(column, at, q) if bisquare else (0.0, _doubt(column, at, q))
        low = np.flatnonzero(q <= q.min() + rough + (0.0 if bisquare else doubt))
        if low[0] > 0 and low[-1] < _POINTS - 1 and moved < reach:
            error = float(np.abs(at[[low[0] - 1, low[-1] + 1]] - lmbda).max())
            if not bisquare:
                return error + TOLERANCE
            return max(_SAFETY * (error + moved) + TOLERANCE, _other_minimum(column, lmbda, q.min() + rough + doubt))
    return np.inf


def _doubt(column: Column, lmbdas: FloatArray, q: FloatArray) -> float:
    """What the order in bins may do to an objective of sums, or the search in memory may leave above its minimum."""
    return _SAFETY * max(float(np.ptp(_of_moments(column, lmbdas) - q)), _ABOVE[column.options.criterion])


def _other_minimum(column: Column, lmbda: float, height: float) -> float:
    """How far off another minimum is, that is no higher than this; 0 if there is none."""
    at = lmbda + np.linspace(-_REACHES[-1], _REACHES[-1], _POINTS)
    q = _objective(column, column.x, column.w, at)
    inner = q[1:-1]
    low = np.flatnonzero((inner <= q[:-2]) & (inner <= q[2:]) & (inner <= height)) + 1
    return float(np.abs(at[low] - lmbda).max(initial=-np.inf)) + at[1] - at[0] if low.size > 1 else 0.0


def _objective(column: Column, x: FloatArray, w: FloatArray, lmbdas: FloatArray) -> FloatArray:
    """What the estimator minimises, of points."""
    routes = np.array([column.begun[ROUTE]])
    found: FloatArray = column.estimator.objective(x[:, None], column.family, lmbdas, w, 1, routes)[0]
    return found


def _moves(column: Column, lmbdas: FloatArray, q: FloatArray) -> tuple[float, float]:
    """How far the bisquare's minimum moves with what is open of location, scale and bins, and how much it changes.

    What moves a minimum is how a change of the objective differs from lambda to lambda, not the change itself.
    """
    from scipy.special import ndtri  # costs a third of the time to import powerkern

    below = np.cumsum(column.w) - 0.5 * column.w
    scores = ndtri((below + 1.0 / 6.0) / (column.w.sum() + 1.0 / 3.0))
    some = lmbdas[:: (_POINTS - 1) // 4]
    changes = np.empty((4, some.size))
    for k, lmbda in enumerate(some):
        figures, y = column.cut(float(lmbda), column.options.rule)
        loc, scale = _doubts(column, y, figures)
        distance = _distance_of(column, y, scores, *figures[[CUT_LOC, CUT_SCALE]].tolist())
        here, wider = distance(0.0, 1.0), min(scale / figures[CUT_SCALE], 0.5)
        changes[:, k] = [
            distance(-loc, 1.0),
            distance(loc, 1.0),
            distance(0.0, 1.0 - wider),
            distance(0.0, 1.0 + wider),
        ]
        changes[:, k] -= here
    curves = [q + np.interp(lmbdas, some, change) for change in changes]
    curves.append(_of_moments(column, lmbdas))
    moved = np.abs([_lowest(lmbdas, curve) - _lowest(lmbdas, q) for curve in curves])
    doubt = _SAFETY * float(np.ptp(changes) + np.ptp(curves[-1] - q))
    return float(moved[:2].max() + moved[2:4].max() + moved[4]), doubt


def _distance_of(
    column: Column, y: FloatArray, scores: FloatArray, center: float, spread: float
) -> Callable[[float, float], float]:
    """The bisquare's objective as a function of what is added to location and of what multiplies scale."""

    def distance(move: float, factor: float) -> float:
        t = ((y - center - move) / (spread * factor) - scores) / column.options.c
        return float(np.average(1.0 - np.maximum(1.0 - t * t, 0.0) ** 3, weights=column.w))

    return distance


def _lowest(lmbdas: FloatArray, q: FloatArray) -> float:
    """Where a parabola through the lowest point of a curve is lowest; far off, if that is at an end."""
    k = int(np.argmin(q))
    if not 0 < k < q.size - 1:
        return np.inf
    bend, slope = q[k + 1] - 2.0 * q[k] + q[k - 1], 0.5 * (q[k + 1] - q[k - 1])
    step = float(lmbdas[1] - lmbdas[0])
    return float(lmbdas[k]) - (step * float(slope / bend) if bend > 0.0 else 0.0)


def _of_moments(column: Column, lmbdas: FloatArray) -> FloatArray:
    """The objective of other points for the rows."""
    return _objective(column, *_points_of_moments(column), lmbdas)


def _points_of_moments(column: Column) -> tuple[FloatArray, FloatArray]:
    """Points with the moments of the cells, and their weights."""
    x, w, _ = moment_points(column.cells.part(column.cells.mean != column.tie))
    return x, w / column.unit


def _doubts(column: Column, y: FloatArray, figures: FloatArray) -> tuple[float, float]:
    """Within how much location and scale of the transform are known, from the bins of their order statistics."""
    median = weighted_median(y, column.w)
    of_loc = _width(column, y, median)
    of_scale = _MAD * (_widths_at_mad(column, y, median) + of_loc)
    of_loc += 0.3 * of_scale
    return of_loc, _MAD * (_widths_at_mad(column, y, float(figures[CUT_LOC])) + of_loc)


def _widths_at_mad(column: Column, y: FloatArray, center: float) -> float:
    distance = np.abs(y - center)
    order = np.argsort(distance)
    reach = weighted_median(distance[order], column.w[order])
    return max(_width(column, y, center - reach), _width(column, y, center + reach))


def _width(column: Column, y: FloatArray, value: float) -> float:
    """How wide the cells are, at most, that a value or the two that it is the mean of may be in; 0 for known values."""
    around = column.cell[column.near(y, np.array([value]))]
    low, high = _extents(column, y)
    return float((high - low)[around].max())


def _extents(column: Column, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """From where to where the values of each cell may be: its points, and as far again as these are apart."""
    first = np.searchsorted(column.cell, np.arange(column.is_wide.size))
    last = np.append(first[1:], column.cell.size) - 1
    low, high = y[first], y[last]
    beyond = (high - low) / np.maximum(last - first, 1)
    return low - beyond, high + beyond


def step_error(column: Column, rule: int, error: float) -> float:
    """How far lambda fitted to what is kept may be off, if the lambda before was off by `error`.

    Both ends move together with the lambda before; what bins leave open moves each by itself. Rows change sides one by
    one: a move that no row is in the way of does nothing.
    """
    if column.options.criterion == CARROLL or not np.isfinite(error):
        return error
    with np.errstate(all="ignore"):
        found = _step(column, rule, error)
    return found if np.isfinite(found) else np.inf


def _step(column: Column, rule: int, error: float) -> float:
    here, y = column.cut(column.previous, rule, column.turn)
    if _is_cutoff_open(column, y, here):
        return np.inf
    moved = [column.cut(column.previous + side * error, rule, column.turn)[0] for side in (-1.0, 1.0)]
    outside = np.array([[cut[CUT_BEFORE], cut[CUT_AFTER]] for cut in (here, *moved)])
    if column.options.criterion == TRIMMED:
        left_out = outside[0, 0], column.w.sum() - outside[0, 1]
        open_weight = np.array([_weight_at(column, np.cumsum(column.w), end, end) for end in left_out])
    else:
        before = np.cumsum(column.w) - 0.5 * column.w
        ends = np.array([[cut[CUT_LOW], cut[CUT_HIGH]] for cut in (here, *moved)])
        low, high = np.interp(ends, column.x, before).T
        outside = np.column_stack([low, column.w.sum() - high])
        open_weight = np.zeros(2)
        for k, (nearest, farthest) in enumerate(_ends_left_open(column, y, here)):
            open_weight[k] = _weight_at(column, column.x, nearest, farthest)
            reach = np.array([nearest, farthest, *ends[:, k]])
            some = _row_at(column, reach.min(), reach.max())
            open_weight[k] += some
            outside[:, k] *= some > 0.0
    influence, of_scaling = _influence(column)
    together = np.abs((outside[1:] - outside[0]) @ influence).max()
    if column.options.criterion == TRIMMED:  # whose steps hardly move lambda
        return max(_SAFETY * float(together + np.abs(influence) @ open_weight + of_scaling), error)
    return float(_CURVED * together + np.abs(influence) @ open_weight + _SAFETY * of_scaling) + _EXACT


def _ends_left_open(column: Column, y: FloatArray, here: FloatArray) -> FloatArray:
    """From where to where either end of what is kept may be, as far as location and scale are left open."""
    loc, scale = _doubts(column, y, here)
    spread, reach = loc + here[CUT_OFF] * scale, here[CUT_OFF] * here[CUT_SCALE]
    ends = here[CUT_LOC] + np.array([-reach, reach])
    found: FloatArray = np.interp(ends[:, None] + [-spread, spread], y, column.x, -np.inf, np.inf)
    return found


def _is_cutoff_open(column: Column, y: FloatArray, here: FloatArray) -> bool:
    """Whether another cut-off would be chosen if all rows whose side of one is left open were outside, or none."""
    cutoffs, n = column.cutoffs(column.turn), float(column.w.sum())
    if cutoffs.size == 1:
        return False
    loc, scale = _doubts(column, y, here)
    excess = np.empty((2, cutoffs.size))
    for k, cutoff in enumerate(cutoffs):
        ends = here[CUT_LOC] + cutoff * here[CUT_SCALE] * np.array([-1.0, 1.0])
        spread = loc + cutoff * scale
        surely = float(column.w[(y < ends[0] - spread) | (y > ends[1] + spread)].sum())
        near = sum(_weight_at(column, y, end - spread, end + spread) for end in ends)
        excess[:, k] = [excess_beyond(cutoff, outside, n) for outside in (max(surely - near, 0.0), surely + near)]
    excess[:, -1] = EXCESS  # the widest is chosen unless another is above
    chosen = np.argmax(excess, axis=1)
    return bool(chosen[0] != chosen[1])


def _row_at(column: Column, low: float, high: float) -> float:
    """The largest weight of a row that may be between two values; 0 if none may be."""
    chosen = _cells_at(column, column.x, low, high)
    others = column.cells.part(column.cells.mean != column.tie)
    weight: FloatArray = others.weight[chosen] / others.rows[chosen] / column.unit
    return float(weight.max(initial=0.0))


def _weight_at(column: Column, y: FloatArray, low: float, high: float) -> float:
    """The weight of the cells that may have values between these."""
    weight = np.bincount(column.cell, column.w, column.is_wide.size)
    return float(weight[_cells_at(column, y, low, high)].sum())


def _cells_at(column: Column, y: FloatArray, low: float, high: float) -> BoolArray:
    """Cells that may have values between these."""
    first, last = _extents(column, y)
    return np.asarray((first <= high) & (low <= last))


def _influence(column: Column) -> tuple[FloatArray, float]:
    """What a weight at either end of the values kept does to their lambda, and what prestandardisation may do to it."""
    low, high, center, divisor = column.interval[:4]
    inside = (column.x >= low) & (column.x <= high)
    x, w = column.x[inside], column.w[inside]
    if x.size < 2:
        return np.full(2, np.inf), np.inf

    def likeliest(values: FloatArray, weight: FloatArray, shift: float = 0.0, factor: float = 1.0) -> float:
        z = ((values - center) / divisor - shift) * factor
        row = fit_matrix(z[:, None], column.family, np.array([np.nan]), weight, 1)[0]
        return float(row[LMBDA]) if row[STATUS] >= 0 else np.inf

    here, some = likeliest(x, w), 1e-3 * float(w.sum())
    influence = [(likeliest(np.append(x, end), np.append(w, some)) - here) / some for end in x[[0, -1]]]
    if column.family == BOX_COX:
        return np.array(influence), 0.0
    median = weighted_median(column.x, column.w)
    of_center = _width(column, column.x, median) / divisor
    of_divisor = _MAD * _widths_at_mad(column, column.x, median) / divisor + of_center
    moved = np.array([likeliest(x, w, shift=of_center), likeliest(x, w, factor=1.0 + of_divisor)])
    return np.array(influence), float(np.abs(moved - here).sum())
