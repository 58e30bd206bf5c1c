"""Build the results of each column of a robust fit from chunks, with the same fields as fits in memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powerkern._estimators.base import Run
from powerkern._estimators.robust_bounds import huber_of_standardized, restandardize
from powerkern._estimators.ties import count_ties
from powerkern._status import Route, Status
from powerkern._typing import FloatArray, Weights
from powerkern.kernels.results import (
    CENTER,
    DIVISOR,
    KEPT_HIGH,
    KEPT_LOW,
    LMBDA0,
    N_EVAL,
    N_KEPT,
    N_OBS,
    NLL,
    OBJECTIVE,
    ROUTE,
    STATUS,
    is_identity,
    write_identity,
    write_range,
)
from powerkern.kernels.robust.fit import KEEPS_FAR_TAIL
from powerkern.kernels.robust.options import ADAPTIVE_QQ, CARROLL
from powerkern.kernels.robust.reweighting import MAX_STEPS, max_fits
from powerkern.kernels.transforms.rectified import BOTH, NOT_RECTIFIED
from powerkern.sketch.robust_column import CutRule, RobustChunkColumn
from powerkern.sketch.robust_steps import KeptFit, Reweighting, standard_error

#: Largest error of lambda, in standard errors, that does not change the status; larger errors are multiplied by
#: _MARGIN.
_NEGLIGIBLE, _MARGIN = 0.01, 4.0


class ChunkFit(NamedTuple):
    """The results of a column, `row`, (N_RESULTS,), and a bound on the error of lambda."""

    row: FloatArray
    bound: float


def build_result(column: RobustChunkColumn, state: Reweighting | None) -> ChunkFit:
    """Return the results of a column.

    If all rows are known they are fitted in memory; otherwise the results come from `state`, the final state of
    reweighting. `state` is None if there was no reweighting.
    """
    if column.is_whole:
        values, weight = _known_rows(column)
        result = ChunkFit(column.estimator.fit_values(values[:, None], column.family, weight, Run(1))[0], 0.0)
    elif state is None or state.fit is None or is_identity(state.fit.row):
        result = ChunkFit(_identity(column), _error_bound(column, state))
    else:
        row = state.fit.row.copy()
        row[STATUS] = _status(column, state, state.fit)
        result = ChunkFit(_complete_results(column, state, state.fit, row), _error_bound(column, state))
    if column.cells.rows.sum() < column.n_rows:  # weights that are negligible beside others were rounded to 0
        result.row[STATUS] = Status.UNRESOLVED
        return ChunkFit(result.row, np.inf)
    return result


def move_lambda(column: RobustChunkColumn, state: Reweighting | None, row: FloatArray, lmbda: float) -> FloatArray:
    """Return the results of a column with lambda replaced; the kept values remain the same.

    Parameters
    ----------
    column : RobustChunkColumn
        The column.
    state : Reweighting or None
        The final state of reweighting, as in `build_result`.
    row : (N_RESULTS,) ndarray
        The results to replace.
    lmbda : float
        The new lambda: the bound on lambda that the fit violates.
    """
    given = np.array([lmbda])
    if column.is_whole:
        values, weight = _known_rows(column)
        moved: FloatArray = column.estimator.recompute_at(given, values[:, None], column.family, row[None], weight, 1)[
            0
        ]
        return moved
    assert state is not None
    assert state.fit is not None
    return _complete_results(column, state, state.fit, state.fit.sums.fit(given, 1)[0][0])


def _known_rows(column: RobustChunkColumn) -> tuple[FloatArray, Weights]:
    """Return the values and weights of a column whose rows are all known; weights are None if rows have none."""
    x, w = column.cells.mean, column.cells.weight
    if not x.size:
        return np.array([np.nan]), None
    return (x, w) if column.weighted else (np.repeat(x, w.astype(np.int64)), None)


def _identity(column: RobustChunkColumn) -> FloatArray:
    """Return the results of a column that cannot be fitted: lambda = 1, and a status that gives the reason."""
    row = column.found_start.points.row.copy()
    status = Status.UNREPRESENTABLE if column.is_started else int(row[STATUS])
    write_range(row, column.weight, *column.ends)
    write_identity(row, int(status))
    return row


def _is_uncertain(column: RobustChunkColumn, state: Reweighting) -> bool:
    """Return whether the bound on the error of lambda exceeds `_NEGLIGIBLE` standard errors."""
    return state.fit is not None and state.error > _NEGLIGIBLE * standard_error(column, state.fit)


def _error_bound(column: RobustChunkColumn, state: Reweighting | None) -> float:
    """Return the bound on the error of lambda in the result.

    A bound that is not negligible is multiplied by `_MARGIN`, because the effects of several rows add up.
    """
    if state is None:
        return 0.0
    return _MARGIN * state.error if _is_uncertain(column, state) else state.error


def _status(column: RobustChunkColumn, state: Reweighting, fit: KeptFit) -> int:
    """Return the status of the fit; if several apply, the one to which `kernels.robust` gives precedence."""
    start = column.found_start
    row, is_settled = start.points.row, state.is_settled or max_fits(start.points.options) < MAX_STEPS
    if fit.row[STATUS] == Status.UNRESOLVED or state.status not in (Status.OK, Status.FIXED):
        return int(fit.row[STATUS])
    if row[STATUS] == Status.NOT_CERTIFIED:
        return int(Status.NOT_CERTIFIED)
    rule = CutRule(NOT_RECTIFIED, state.last_step.rule.adaptive)
    if column.estimator.criterion == ADAPTIVE_QQ and column.cut(start.points, state.lmbda, rule)[0][KEEPS_FAR_TAIL]:
        return int(Status.TAIL_KEPT)
    if not is_settled:
        return int(Status.NOT_SETTLED)
    if row[STATUS] == Status.MULTIMODAL:
        return int(Status.MULTIMODAL)
    return int(Status.BRACKETED if _is_uncertain(column, state) else Status.SCANNED)


def _complete_results(column: RobustChunkColumn, state: Reweighting, fit: KeptFit, row: FloatArray) -> FloatArray:
    """Add the results that describe the whole column to the results of a fit of the kept values.

    The fields are set as in fits in memory; see `kernels.robust`.

    Parameters
    ----------
    column : RobustChunkColumn
        The column.
    state : Reweighting
        The final state of reweighting.
    fit : KeptFit
        The fit of the kept values.
    row : (N_RESULTS,) ndarray
        The results of the fit; modified in place and returned.
    """
    start, step, n_kept = column.found_start, state.last_step, row[N_OBS]
    x, w, of_start, options = start.points
    center, divisor = step.interval[2:4]
    write_range(row, column.weight - start.tied_weight, *column.ends)
    row[[LMBDA0, CENTER, DIVISOR, OBJECTIVE]] = of_start[LMBDA0], center, divisor, of_start[OBJECTIVE]
    row[NLL] += np.log(divisor)
    row[N_EVAL] = of_start[N_EVAL] + state.n_eval
    if column.estimator.criterion == CARROLL:
        restandardize(row[None], *huber_of_standardized(x[None], column.family, row[None], w))
    else:
        row[ROUTE] = Route.REFIT_BOTH_SIDES if options.rule == BOTH else Route.REFIT
        row[N_KEPT], row[[KEPT_LOW, KEPT_HIGH]] = n_kept, fit.ends
        fraction = n_kept / row[N_OBS]  # for the consistency factor of a truncated normal standard deviation
        correction = column.estimator.entries.scale_factor(n_kept / column.unit, fraction, step.cutoff)
        restandardize(row[None], 0.0, np.array([correction]))
        if column.has_cut_off and step.rule.rule == NOT_RECTIFIED:
            row[[KEPT_LOW, KEPT_HIGH]] = step.limits
    row[N_OBS] = column.weight
    if not np.isnan(start.tie):
        count_ties(row[None], np.array([start.tie]), np.array([start.tied_weight]))
    return row
