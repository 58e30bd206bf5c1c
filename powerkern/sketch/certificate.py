"""Bounds on the difference in lambda between a robust fit of chunks and the fit of the same rows in memory.

The bins do not record where their values lie. The fit represents the values by one set of points; sets drawn at random,
with the same counts, extremes and means, differ from it as the rows do. Fits of these sets show how far the start and
the ends of the kept interval may be off. The pass that sums the kept values also weighs the rows that close to an end.
Usually there are none; then both fits keep the same rows and find the same lambda. Where there are some, their
influence bounds the error of lambda, which moves the ends in the next step.
"""

from __future__ import annotations

import numpy as np

from powerkern._engine.by_column import fit_matrix
from powerkern._typing import FloatArray
from powerkern.kernels.optimize.brent import brent_start, brent_step
from powerkern.kernels.optimize.status import RUNNING
from powerkern.kernels.results import LMBDA, LMBDA0, STATUS
from powerkern.kernels.robust.fit import CUT_CENTER, CUT_DIVISOR, CUT_HIGH, CUT_LOW
from powerkern.kernels.transforms.family import BOX_COX
from powerkern.sketch.robust_column import Column

#: Safety factor for differences between sets of points; relative difference of two fits of the same values.
SAFETY, EXACT = 2.0, 1e-11
#: Largest ratio of the effect of a row to its influence, which is its effect to first order.
_CURVED = 1.25
#: Searches like the last stage of the search in memory: intervals about the start, tolerance, most evaluations.
_INTERVALS = [(off - reach, off + reach) for reach in (0.03, 0.05) for off in np.linspace(-0.004, 0.004, 6)]
_XTOL, _MAX_EVAL = 1e-5, 100
#: How far from the minimum the search in memory may end, in units of the prestandardised column; and the same if rows
#: of different weights are tied, whose order is arbitrary.
_SEARCHED, _TIED = 2e-5, 2e-4


def start_error(column: Column) -> float:
    """Bound on the error of the start, which is also the result where no reweighting follows.

    Estimators without a cut-off keep values by their order, and each row moves the ends of what they keep: for these
    the bound is on lambda itself.
    """
    which = LMBDA0 if column.has_cut_off else LMBDA
    others = np.array([other.row[which] for other in column.others])
    return SAFETY * float(np.abs(others - column.begun[which]).max(initial=0.0)) + column.searched


def search_error(column: Column) -> float:
    """How far from the minimum the search in memory may end: near it, the objective of order statistics is rough.

    This is measured by searches for the minimum of the points' objective that begin a little to the left or right.
    Without it, lambda was off by more than its bound in columns with many rows near the cut-offs.
    """
    tied = column.weighted and column.has_cut_off and (column.cells.is_one_value & (column.cells.rows > 1.0)).any()
    tolerance, power = _TIED if tied else _SEARCHED, column.power
    if not column.has_cut_off:
        return tolerance / power
    start = float(column.begun[LMBDA0]) * power
    runs = [brent_start(start + low, start + high, _XTOL, _MAX_EVAL) for low, high in _INTERVALS]
    while any(run.status == RUNNING for run in runs):
        values = column.objective(np.array([run.x for run in runs]) / power)
        runs = [
            brent_step(run, value) if run.status == RUNNING else run for run, value in zip(runs, values, strict=True)
        ]
    ends = np.array([run.x for run in runs])
    return float(np.abs(ends - start).max() + tolerance) / power


def open_zones(column: Column, turn: int) -> FloatArray:
    """The lower and the upper end of the kept interval, each between the bounds of its uncertainty; (2, 3)."""
    here = _ends(column, column.cut(column.lmbda, column.rule)[0])
    starts = [float(other.row[LMBDA0]) if turn == 0 else column.lmbda for other in column.others]
    moved = [column.cut(at, column.rule, other)[0] for at, other in zip(starts, column.others, strict=True)]
    reach = SAFETY * _farthest(column, here, moved)
    error = column.searched if turn == 0 else column.error
    moved = [column.cut(column.lmbda + side * error, column.rule)[0] for side in (-1.0, 1.0)]
    reach += _farthest(column, here, moved)
    return np.stack([here - reach, here, np.nextafter(here + reach, np.inf)], axis=1)


def _farthest(column: Column, here: FloatArray, moved: list[FloatArray]) -> FloatArray:
    """The largest distances of the ends at any of these cuts from the ends `here`."""
    farthest: FloatArray = np.max([np.abs(_ends(column, figures) - here) for figures in moved], axis=0, initial=0.0)
    return farthest


def _ends(column: Column, figures: FloatArray) -> FloatArray:
    """The ends of the kept interval, or the numbers just beyond the extreme values."""
    beyond = np.nextafter(column.ends, [-np.inf, np.inf])
    ends = np.where(np.isnan(figures[[CUT_LOW, CUT_HIGH]]), beyond, figures[[CUT_LOW, CUT_HIGH]])
    return np.asarray(np.clip(ends, *beyond))


def step_error(column: Column, open_weight: FloatArray) -> float:
    """Bound on the error of lambda after a step, given the weights of the rows just below and above either end.

    An end that moves crosses the rows on one side only.
    """
    error = EXACT * max(1.0, abs(column.lmbda))
    with np.errstate(all="ignore"):
        if open_weight.any():
            passed = open_weight.reshape(2, 2).max(axis=1)
            error += _CURVED * float(np.abs(_influences(column)) @ passed) / column.unit
        error += _error_of_scaling(column)
    return error if np.isfinite(error) else np.inf


def end_error(column: Column) -> float:
    """Effect on lambda of the cells that straddle the ends of a window."""
    return _CURVED * float(np.abs(_influences(column)) @ column.open_ends) / column.unit


def _influences(column: Column) -> FloatArray:
    """Derivatives of lambda with respect to weight at either end of the kept interval."""
    x, w = _kept_points(column)
    some = 1e-3 * float(w.sum())
    here = _likeliest(column, x, w)
    changed = [_likeliest(column, np.append(x, end), np.append(w, some)) for end in x[[0, -1]]]
    return (np.array(changed) - here) / some


def _error_of_scaling(column: Column) -> float:
    """Effect on lambda of a center and a divisor known to within a bin; none under Box-Cox.

    It decides in long columns: without it, 5 of 16 columns of 300,000 and of a million rows exceeded their bounds.
    """
    if column.family == BOX_COX:
        return 0.0
    center, divisor = column.interval[2:4]
    others = np.array([column.cut(column.lmbda, column.rule, other)[0] for other in column.others])
    shift, factor = (others[:, CUT_CENTER] - center) / divisor, others[:, CUT_DIVISOR] / divisor
    if (shift == 0.0).all() and (factor == 1.0).all():
        return 0.0
    x, w = _kept_points(column)
    far, most = shift[np.argmax(np.abs(shift))], factor[np.argmax(np.abs(factor - 1.0))]
    here = _likeliest(column, x, w)
    return SAFETY * (abs(_likeliest(column, x, w, far) - here) + abs(_likeliest(column, x, w, 0.0, most) - here))


def _kept_points(column: Column) -> tuple[FloatArray, FloatArray]:
    low, high = column.interval[:2]
    inside = (column.x >= low) & (column.x <= high)
    return column.x[inside], column.w[inside]


def _likeliest(column: Column, x: FloatArray, w: FloatArray, shift: float = 0.0, factor: float = 1.0) -> float:
    center, divisor = column.interval[2:4]
    z = ((x - center) / divisor - shift) / factor
    row = fit_matrix(z[:, None], column.family, np.array([np.nan]), w, 1)[0]
    return float(row[LMBDA]) if row[STATUS] >= 0 else np.inf
