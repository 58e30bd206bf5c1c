"""Bounds on the difference in lambda between a robust fit of chunks and the fit of the same rows in memory.

A bin does not record the positions of its values, so the fit of chunks represents the values by points. Other sets of
points with the same counts, extremes and means, most of them random, are fitted, too. The differences between these
fits show the uncertainty of lambda before reweighting and of the ends of the kept interval.

The pass that sums the kept values also sums the weights of the values near the ends, where "near" means within this
uncertainty. Usually there are no such values. Fits from chunks and in memory then keep the same rows and give the same
lambda. Otherwise, the influence of these values bounds the error of lambda. This error increases the uncertainty of the
ends in the next step.
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

#: Safety factor for differences between sets of points, and relative difference between two fits of the same values.
SAFETY, EXACT = 2.0, 1e-11
#: Assumed largest ratio of the effect of a row on lambda to the influence of the row, which is the first-order effect.
_CURVED = 1.25
#: Settings of searches like the last stage of the search in memory: intervals about the start, tolerance, and largest
#: number of evaluations.
_INTERVALS = [(off - reach, off + reach) for reach in (0.03, 0.05) for off in np.linspace(-0.004, 0.004, 6)]
_XTOL, _MAX_EVAL = 1e-5, 100
#: Largest distance from the minimum at which the search in memory may stop, in units of lambda of the prestandardised
#: column. _TIED is the distance if rows of different weights are tied, since the order of such rows is arbitrary.
_SEARCHED, _TIED = 2e-5, 2e-4


def start_error(column: RobustChunkColumn, alternatives: list[Points], search_error: float) -> float:
    """Return a bound on the error of lambda before reweighting, from the spread of the alternative fits.

    Estimators without a cut-off keep values by rank, so the ends of the kept interval depend on the positions of all
    rows. For these estimators, the bound is on lambda after reweighting.

    Parameters
    ----------
    column : RobustChunkColumn
        The column.
    alternatives : list of Points
        The alternative fits, which are the result of `RobustChunkColumn.draw_alternatives`.
    search_error : float
        The result of the function `search_error`.
    """
    which = LMBDA0 if column.has_cut_off else LMBDA
    others = np.array([points.row[which] for points in alternatives])
    here = column.found_start.points.row[which]
    return SAFETY * float(np.abs(others - here).max(initial=0.0)) + search_error


def search_error(column: RobustChunkColumn) -> float:
    """Return a bound on the error of lambda due to a search in memory that stops beside the minimum.

    An objective that depends on order statistics is rough near its minimum. For estimators with a cut-off, the searches
    are therefore repeated from intervals a little to the left or right of the initial lambda, with the objective of the
    points that represent the column. The bound is the largest change of the result plus a tolerance. For other
    estimators, it is the tolerance. Without this term, the error of lambda exceeded its bound in columns with many rows
    near the cut-offs.
    """
    tied = column.weighted and column.has_cut_off and (column.cells.is_one_value & (column.cells.rows > 1.0)).any()
    start = column.found_start
    tolerance, power = _TIED if tied else _SEARCHED, column.prestandardizing_factor(start.points)
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


def uncertain_ends(column: RobustChunkColumn, state: Reweighting, step_index: int) -> FloatArray:
    """Return the ends of the kept interval with their uncertainty.

    Parameters
    ----------
    column : RobustChunkColumn
        The column.
    state : Reweighting
        The reweighting, after `choose_step`.
    step_index : int
        Index of the step, from 0.

    Returns
    -------
    (2, 3) ndarray
        One row for the lower and one for the upper end: the smallest possible value, the value, and the largest
        possible value of the end.
    """
    rule, points = state.last_step.rule, column.found_start.points
    here = _ends(column, column.cut(points, state.lmbda, rule)[0])
    starts = [float(other.row[LMBDA0]) if step_index == 0 else state.lmbda for other in state.alternatives]
    moved = [column.cut(other, lmbda, rule)[0] for lmbda, other in zip(starts, state.alternatives, strict=True)]
    distance = SAFETY * _farthest(column, here, moved)
    error = state.search_error if step_index == 0 else state.error
    moved = [column.cut(points, state.lmbda + sign * error, rule)[0] for sign in (-1.0, 1.0)]
    distance += _farthest(column, here, moved)
    return np.stack([here - distance, here, np.nextafter(here + distance, np.inf)], axis=1)


def _farthest(column: RobustChunkColumn, here: FloatArray, moved: list[FloatArray]) -> FloatArray:
    """Return the largest distance by which each end of the kept interval moves, (2,).

    Parameters
    ----------
    column : RobustChunkColumn
        The column.
    here : (2,) ndarray
        The ends before the move.
    moved : list of (N_CUTOFF_FIELDS,) ndarray
        Results of `RobustChunkColumn.cut` with other points or another lambda.
    """
    farthest: FloatArray = np.max([np.abs(_ends(column, cut) - here) for cut in moved], axis=0, initial=0.0)
    return farthest


def _ends(column: RobustChunkColumn, cut: FloatArray) -> FloatArray:
    """Return the ends, (2,), of the kept interval in `cut`, the result of `RobustChunkColumn.cut`.

    Without a cut-off, the ends are the float64 numbers just below the smallest and just above the largest value.
    """
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
        The reweighting, after the step.
    near : (4,) ndarray
        The weight of the rows within the uncertainty of the ends of the kept interval: just below the lower end, just
        above it, just below the upper end, just above it.
    """
    step = state.last_step
    if column.has_cut_off and not (state.fit is not None and state.fit.is_given):
        return _error_of_cut_off(column, state, near)
    if step.uncertain.any():
        error = start_error(column, state.alternatives, state.search_error)
        return error + _CURVED * float(np.abs(_influences(column, step.interval)) @ step.uncertain) / column.unit
    return state.error


def _error_of_cut_off(column: RobustChunkColumn, state: Reweighting, near: FloatArray) -> float:
    """Return the bound on the error of lambda for estimators with a cut-off; arguments are as in `error_after_step`.

    An end of the kept interval moves either outwards or inwards, so it crosses only the rows on one side.
    """
    interval = state.last_step.interval
    error = EXACT * max(1.0, abs(state.lmbda))
    with np.errstate(all="ignore"):
        if near.any():
            crossed = near.reshape(2, 2).max(axis=1)
            error += _CURVED * float(np.abs(_influences(column, interval)) @ crossed) / column.unit
        error += _error_of_scaling(column, state)
    return error if np.isfinite(error) else np.inf


def _influences(column: RobustChunkColumn, interval: FloatArray) -> FloatArray:
    """Return the derivative of lambda with respect to the weight of the smallest and of the largest kept value, (2,).

    The kept values are represented by points. `interval` is a row of the field of this name in `KeptPass`.
    """
    x, w = _kept_points(column, interval)
    some = 1e-3 * float(w.sum())
    here = _fit_lambda(column, interval, x, w)
    changed = [_fit_lambda(column, interval, np.append(x, end), np.append(w, some)) for end in x[[0, -1]]]
    return (np.array(changed) - here) / some


def _error_of_scaling(column: RobustChunkColumn, state: Reweighting) -> float:
    """Return a bound on the error of lambda due to the uncertain center and divisor of prescaling.

    Center and divisor depend on the unknown positions of rows in a bin. They do not affect lambda of Box-Cox, for which
    the result is 0. The effect dominates in long columns: without this term, lambda was farther off than the bound in 5
    of 16 columns with 300,000 or a million rows.
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
    """Return the points between ``interval[0]`` and ``interval[1]``, and their weights.

    The points represent the column; see `RobustStart.points`.
    """
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
    """Fit lambda to weighted points by maximum likelihood, after centering and scaling.

    Parameters
    ----------
    column : RobustChunkColumn
        The column.
    interval : (5,) ndarray
        The kept interval, with its center and divisor; see `KeptPass`.
    x, w : (n,) ndarray
        The points and their weights.
    shift : float
        Change of the center, in units of the divisor.
    factor : float
        Factor by which the divisor changes.
    """
    center, divisor = interval[2:4]
    z = ((x - center) / divisor - shift) / factor
    row = fit_in_memory(z[:, None], column.family, np.array([np.nan]), w, 1)[0]
    return float(row[LMBDA]) if row[STATUS] >= 0 else np.inf
