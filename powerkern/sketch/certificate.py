"""How far a robust fit from chunks may be from that of the rows: what the order within bins can do, step by step.

Medians, median distances and the ends of what is kept are known up to the bin that they are in. So are location and
scale of the transform, the cut-off, and the rows on either side of it. Each step adds these to what the step before
left open; the values of the rows inside the interval are exact.
"""

from __future__ import annotations

import numpy as np

from powerkern._engine.by_column import fit_matrix
from powerkern._typing import FloatArray
from powerkern.kernels.family import BOX_COX
from powerkern.kernels.results import LMBDA, ROUTE, STATUS
from powerkern.kernels.robust import CUT_AFTER, CUT_BEFORE, CUT_HIGH, CUT_LOC, CUT_LOW, CUT_SCALE
from powerkern.kernels.robust_search import CARROLL, QQ, TRIMMED
from powerkern.sketch.order import moment_points, weighted_median
from powerkern.sketch.robust_column import Column

#: 1/Phi^-1(3/4); and by how much bounds of first order are widened.
_MAD, _SAFETY = 1.4826, 2.0
#: Half widths of the scans of the objective about the start, and their points.
_REACHES, _POINTS = (0.01, 0.04, 0.16, 0.64), 41
#: How far above its minimum the search in memory may leave these objectives, whose sums change value by value.
_ABOVE = {TRIMMED: 1e-4, CARROLL: 1e-5}
#: What is taken for the search's own tolerance.
TOLERANCE = 2e-5


def start_error(column: Column) -> float:
    """How far the start may be from that of the rows: where the objective is as low, to what is known of it."""
    lmbda = column.lmbda
    routes = np.array([column.begun[ROUTE]])
    for reach in _REACHES:
        at = lmbda + np.linspace(-reach, reach, _POINTS)
        q = column.estimator.objective(column.x[:, None], column.family, at, column.w, 1, routes)[0]
        if np.isnan(q).any():
            return np.inf
        rough = float(np.abs(np.diff(q, 2) - np.median(np.diff(q, 2))).max())
        low = np.flatnonzero(q <= q.min() + _SAFETY * (_doubt(column, at, q) + rough))
        if low[0] > 0 and low[-1] < _POINTS - 1:
            ends = at[[low[0] - 1, low[-1] + 1]]
            return float(np.abs(ends - lmbda).max()) + TOLERANCE
    return np.inf


def _doubt(column: Column, lmbdas: FloatArray, q: FloatArray) -> float:
    """What the order in the bins may do to the objective: by location and scale, or to sums between bins."""
    if column.options.criterion != QQ:
        x, w, _ = moment_points(column.cells.part(column.cells.mean != column.tie))
        routes = np.array([column.begun[ROUTE]])
        other = column.estimator.objective(x[:, None], column.family, lmbdas, w / column.unit, 1, routes)[0]
        return max(float(np.ptp(other - q)), _ABOVE[column.options.criterion])
    figures, y = column.cut(column.lmbda, column.options.rule)
    loc, scale = _doubts(column, y, figures)
    from scipy.special import ndtri  # costs a third of the time to import powerkern

    below = np.cumsum(column.w) - 0.5 * column.w
    scores = ndtri((below + 1.0 / 6.0) / (column.w.sum() + 1.0 / 3.0))

    def distance(center: float, spread: float) -> float:
        t = ((y - center) / spread - scores) / column.options.c
        return float(np.average(1.0 - np.maximum(1.0 - t * t, 0.0) ** 3, weights=column.w))

    center, spread = figures[[CUT_LOC, CUT_SCALE]]
    here = distance(center, spread)
    moved = [distance(center + side * loc, spread) for side in (-1.0, 1.0)]
    moved += [distance(center, spread + side * scale) for side in (-1.0, 1.0) if spread + side * scale > 0.0]
    return float(np.ptp([here, *moved]))


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
    """How wide the cell is that a value is in, with the gaps on both sides: from the last point before to the next."""
    low, high = _around(column, y, value)
    return float(y[high] - y[low]) if column.is_wide[column.cell[low + 1 : high]].any() else 0.0


def _around(column: Column, y: FloatArray, value: float) -> tuple[int, int]:
    """The last point before the cell that a value is in, and the first after it."""
    k = min(max(int(np.searchsorted(y, value)), 1), y.size - 1)
    first, last = column.cell[k - 1], column.cell[k]
    low = int(np.searchsorted(column.cell, first)) - 1
    high = int(np.searchsorted(column.cell, last, side="right"))
    return max(low, 0), min(high, y.size - 1)


def step_error(column: Column, rule: int, error: float) -> float:
    """How far lambda fitted to what is kept may be off, if the lambda before was off by `error`.

    Both ends move together with the lambda before; what bins leave open moves each by itself.
    """
    if column.options.criterion == CARROLL or not np.isfinite(error):
        return error
    here, y = column.cut(column.previous, rule)
    moved = [column.cut(column.previous + side * error, rule)[0] for side in (-1.0, 1.0)]
    outside = np.array([[cut[CUT_BEFORE], cut[CUT_AFTER]] for cut in (here, *moved)])
    if column.options.criterion == TRIMMED:
        ends = outside[0, 0], column.w.sum() - outside[0, 1]
        open_weight = [_weight_at(column, np.cumsum(column.w), end) for end in ends]
    else:
        before = np.cumsum(column.w) - 0.5 * column.w
        low, high = (np.interp([cut[end] for cut in (here, *moved)], column.x, before) for end in (CUT_LOW, CUT_HIGH))
        outside = np.column_stack([low, column.w.sum() - high])
        loc, scale = _doubts(column, y, here)
        spread, reach = loc + column.options.cutoff * scale, column.options.cutoff * here[CUT_SCALE]
        open_weight = [_weight_at(column, y, here[CUT_LOC] + end, spread) for end in (-reach, reach)]
    influence, of_scaling = _influence(column)
    together = np.abs((outside[1:] - outside[0]) @ influence).max()
    found = float(_SAFETY * (together + np.abs(influence) @ np.array(open_weight) + of_scaling))
    return max(found, error) if column.options.criterion == TRIMMED else found  # whose steps hardly move lambda


def _weight_at(column: Column, y: FloatArray, value: float, spread: float = 0.0) -> float:
    """The weight of the cells within a distance of a value."""
    ends = np.clip(np.searchsorted(y, [value - spread, value + spread]), 0, y.size - 1)
    return float(column.w[np.isin(column.cell, np.arange(column.cell[ends[0]], column.cell[ends[1]] + 1))].sum())


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
