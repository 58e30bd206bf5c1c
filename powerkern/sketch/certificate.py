"""Bounds on the difference in lambda between a robust fit of chunks and the fit of the same rows in memory.

The bins do not record where their values lie. The fit represents the values by one set of points. Random sets with the
same counts, extremes and means differ from this set as the rows do. Fits of these sets show how far the start and the
ends of the kept interval may be off. The pass that sums the kept values also sums the weights of the rows that are this
close to an end. Usually there are none; then both fits keep the same rows and find the same lambda. Where there are
some, their influence bounds the error of lambda, which moves the ends in the next step.
"""

from __future__ import annotations

import numpy as np

from powerkern._estimators.routes import fit_in_memory
from powerkern._typing import FloatArray
from powerkern.kernels.optimize.brent import brent_start, brent_step
from powerkern.kernels.optimize.status import RUNNING
from powerkern.kernels.results import LMBDA, LMBDA0, STATUS
from powerkern.kernels.robust.fit import CUTOFF_HIGH, CUTOFF_LOW, PRESCALING_CENTER, PRESCALING_DIVISOR
from powerkern.kernels.transforms.family import BOX_COX
from powerkern.sketch.robust_column import Points, RobustChunkColumn
from powerkern.sketch.robust_steps import Reweighting

#: Safety factor for differences between sets of points; relative difference of two fits of the same values.
SAFETY, EXACT = 2.0, 1e-11
#: Largest ratio of the effect of a row to its influence, which is its effect to first order.
_CURVED = 1.25
#: Searches like the last stage of the search in memory: intervals about the start, tolerance, most evaluations.
_INTERVALS = [(off - reach, off + reach) for reach in (0.03, 0.05) for off in np.linspace(-0.004, 0.004, 6)]
_XTOL, _MAX_EVAL = 1e-5, 100
#: Largest distance from the minimum at which the search in memory may end, in units of the prestandardised column; and
#: this distance if rows of different weights are tied, whose order is arbitrary.
_SEARCHED, _TIED = 2e-5, 2e-4


def start_error(column: RobustChunkColumn, alternatives: list[Points], search_error: float) -> float:
    """Return a bound on the error of the start, which is also the result if no reweighting follows.

    Estimators without a cut-off keep values by their order, so each row moves the ends of the kept interval. For them
    the bound is on lambda itself.
    """
    which = LMBDA0 if column.has_cut_off else LMBDA
    others = np.array([points.row[which] for points in alternatives])
    here = column.found_start.points.row[which]
    return SAFETY * float(np.abs(others - here).max(initial=0.0)) + search_error


def search_error(column: RobustChunkColumn) -> float:
    """Return a bound on the distance of the result of the search in memory from the minimum.

    Near the minimum, the objective of order statistics is rough. The distance is measured by searches for the minimum
    of the points' objective that begin a little to the left or right. Without it, lambda was off by more than its bound
    in columns with many rows near the cut-offs.
    """
    tied = column.weighted and column.has_cut_off and (column.cells.is_one_value & (column.cells.rows > 1.0)).any()
    start = column.found_start
    tolerance, power = _TIED if tied else _SEARCHED, column.power_of(start.points)
    if not column.has_cut_off:
        return tolerance / power
    begin = start.lmbda * power
    runs = [brent_start(begin + low, begin + high, _XTOL, _MAX_EVAL) for low, high in _INTERVALS]
    while any(run.status == RUNNING for run in runs):
        values = column.objective(np.array([run.x for run in runs]) / power)
        runs = [
            brent_step(run, value) if run.status == RUNNING else run for run, value in zip(runs, values, strict=True)
        ]
    ends = np.array([run.x for run in runs])
    return float(np.abs(ends - begin).max() + tolerance) / power


def uncertain_ends(column: RobustChunkColumn, state: Reweighting, turn: int) -> FloatArray:
    """Return the lower and the upper end of the kept interval, each between the bounds of its uncertainty; (2, 3)."""
    rule, points = state.last_step.rule, column.found_start.points
    here = _ends(column, column.cut(points, state.lmbda, rule)[0])
    starts = [float(other.row[LMBDA0]) if turn == 0 else state.lmbda for other in state.alternatives]
    moved = [column.cut(other, lmbda, rule)[0] for lmbda, other in zip(starts, state.alternatives, strict=True)]
    distance = SAFETY * _farthest(column, here, moved)
    error = state.search_error if turn == 0 else state.error
    moved = [column.cut(points, state.lmbda + sign * error, rule)[0] for sign in (-1.0, 1.0)]
    distance += _farthest(column, here, moved)
    return np.stack([here - distance, here, np.nextafter(here + distance, np.inf)], axis=1)


def _farthest(column: RobustChunkColumn, here: FloatArray, moved: list[FloatArray]) -> FloatArray:
    """Return the largest distances between the ends `here` and the ends of the kept intervals at the cuts `moved`."""
    farthest: FloatArray = np.max([np.abs(_ends(column, cut) - here) for cut in moved], axis=0, initial=0.0)
    return farthest


def _ends(column: RobustChunkColumn, cut: FloatArray) -> FloatArray:
    """Return the ends of the kept interval, or the numbers just beyond the extreme values."""
    beyond = np.nextafter(column.ends, [-np.inf, np.inf])
    ends = np.where(np.isnan(cut[[CUTOFF_LOW, CUTOFF_HIGH]]), beyond, cut[[CUTOFF_LOW, CUTOFF_HIGH]])
    return np.asarray(np.clip(ends, *beyond))


def error_after_step(column: RobustChunkColumn, state: Reweighting, near: FloatArray) -> float:
    """Return a bound on the error of lambda after a step.

    Parameters
    ----------
    column : RobustChunkColumn
        The column.
    state : Reweighting
        Its reweighting, after the step.
    near : (4,) ndarray
        The weight of the rows just below and just above the lower end, and below and above the upper one, that may
        lie on the other side of it.
    """
    step = state.last_step
    if column.has_cut_off and not (state.fit is not None and state.fit.is_given):
        return _error_of_cut_off(column, state, near)
    if step.uncertain.any():
        error = start_error(column, state.alternatives, state.search_error)
        return error + _CURVED * float(np.abs(_influences(column, step.interval)) @ step.uncertain) / column.unit
    return state.error


def _error_of_cut_off(column: RobustChunkColumn, state: Reweighting, near: FloatArray) -> float:
    """Return the bound for a cut-off by distance: an end that moves crosses the rows on one side of it only."""
    interval = state.last_step.interval
    error = EXACT * max(1.0, abs(state.lmbda))
    with np.errstate(all="ignore"):
        if near.any():
            crossed = near.reshape(2, 2).max(axis=1)
            error += _CURVED * float(np.abs(_influences(column, interval)) @ crossed) / column.unit
        error += _error_of_scaling(column, state)
    return error if np.isfinite(error) else np.inf


def _influences(column: RobustChunkColumn, interval: FloatArray) -> FloatArray:
    """Return the derivatives of lambda with respect to weight at either end of the kept interval."""
    x, w = _kept_points(column, interval)
    some = 1e-3 * float(w.sum())
    here = _fit_lambda(column, interval, x, w)
    changed = [_fit_lambda(column, interval, np.append(x, end), np.append(w, some)) for end in x[[0, -1]]]
    return (np.array(changed) - here) / some


def _error_of_scaling(column: RobustChunkColumn, state: Reweighting) -> float:
    """Return the effect on lambda of a center and a divisor known to within a bin; none under Box-Cox.

    This effect dominates in long columns: without it, 5 of 16 columns of 300,000 and of a million rows exceeded their
    bounds.
    """
    if column.family == BOX_COX:
        return 0.0
    step = state.last_step
    center, divisor = step.interval[2:4]
    others = np.array([column.cut(points, state.lmbda, step.rule)[0] for points in state.alternatives])
    shift, factor = (others[:, PRESCALING_CENTER] - center) / divisor, others[:, PRESCALING_DIVISOR] / divisor
    if (shift == 0.0).all() and (factor == 1.0).all():
        return 0.0
    x, w = _kept_points(column, step.interval)
    far, most = shift[np.argmax(np.abs(shift))], factor[np.argmax(np.abs(factor - 1.0))]
    here, shifted, scaled = (
        _fit_lambda(column, step.interval, x, w, *change) for change in ((0.0, 1.0), (far, 1.0), (0.0, most))
    )
    return SAFETY * (abs(shifted - here) + abs(scaled - here))


def _kept_points(column: RobustChunkColumn, interval: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the points of the start inside an interval, and their weights."""
    low, high = interval[:2]
    x, w, _, _ = column.found_start.points
    inside = (x >= low) & (x <= high)
    return x[inside], w[inside]


def _fit_lambda(
    column: RobustChunkColumn,
    interval: FloatArray,
    x: FloatArray,
    w: FloatArray,
    shift: float = 0.0,
    factor: float = 1.0,
) -> float:
    """Fit lambda to weighted points after centering and scaling.

    Parameters
    ----------
    column : RobustChunkColumn
        The column.
    interval : (5,) ndarray
        The kept interval; see `KeptPass`.
    x, w : (n,) ndarray
        The points and their weights.
    shift, factor : float
        Changes of the center, in units of the divisor, and of the divisor.
    """
    center, divisor = interval[2:4]
    z = ((x - center) / divisor - shift) / factor
    row = fit_in_memory(z[:, None], column.family, np.array([np.nan]), w, 1)[0]
    return float(row[LMBDA]) if row[STATUS] >= 0 else np.inf
