"""Reweighting steps of a robust fit from chunks: each fits the values in an interval from their power sums."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powerkern._estimators.power_sums import MixedSums, PowerSums
from powerkern._typing import FloatArray
from powerkern.kernels.results import CURVATURE, LMBDA, N_EVAL, N_OBS, STATUS
from powerkern.kernels.robust.fit import (
    CUTOFF_HIGH,
    CUTOFF_IN_SCALES,
    CUTOFF_LOW,
    PRESCALING_CENTER,
    PRESCALING_DIVISOR,
    WEIGHT_ABOVE,
    WEIGHT_BELOW,
)
from powerkern.kernels.robust.options import CARROLL, CELLWISE_QQ, TRIMMED
from powerkern.kernels.robust.reweighting import max_fits, step_rule
from powerkern.sketch.order import check_unchanged
from powerkern.sketch.passes import Kept
from powerkern.sketch.robust_column import CutRule, Points, RobustChunkColumn
from powerkern.sketch.sketches import Sketch
from powerkern.sketch.steps import summarize_chunk


class ReweightingStep(NamedTuple):
    """The interval of values that a reweighting step keeps.

    Attributes
    ----------
    rule : CutRule
        Rule by which values far from the center are cut off.
    cutoff : float
        The cut-off, in units of the scale.
    interval : (5,) ndarray
        The interval, with the center and divisor of prescaling, as in `KeptPass`.
    limits : (float, float)
        The ends of the interval before they are clipped to the range of the data.
    excluded : (2,) ndarray
        Weight to exclude at the smallest and at the largest kept value. It is positive if a trimmed window ends
        between equal values.
    uncertain : (2,) ndarray
        Weight of the cell at the lower and at the upper end of a trimmed window, or 0 if all its values are equal.
    """

    rule: CutRule
    cutoff: float
    interval: FloatArray
    limits: tuple[float, float]
    excluded: FloatArray
    uncertain: FloatArray


class KeptFit(NamedTuple):
    """The maximum likelihood fit of the kept values.

    Attributes
    ----------
    sums : PowerSums or MixedSums
        Power sums of the kept values.
    row : (N_RESULTS,) ndarray
        Results, see `kernels.results`.
    ends : (2,) ndarray
        The smallest and the largest kept value.
    is_given : bool
        Whether lambda was fixed, because the final step estimates only location and scale.
    """

    sums: PowerSums | MixedSums
    row: FloatArray
    ends: FloatArray
    is_given: bool


class Reweighting(NamedTuple):
    """State of the reweighting of a column.

    Attributes
    ----------
    lmbda : float
        Lambda of the most recent step that estimated it; before the first step, the initial lambda.
    status : int
        The status of the fit that estimated `lmbda`.
    alternatives : list of Points
        The results of `RobustChunkColumn.draw_alternatives`.
    search_error : float
        The result of `certificate.search_error`.
    error : float
        Bound on the error of lambda.
    n_eval : float
        Number of evaluations of the likelihood in all steps.
    is_settled : bool
        Whether another step would keep the same values.
    step : ReweightingStep, optional
        The most recent step.
    fit : KeptFit, optional
        The most recent fit.
    """

    lmbda: float
    status: int
    alternatives: list[Points]
    search_error: float
    error: float
    n_eval: float = 0.0
    is_settled: bool = False
    step: ReweightingStep | None = None
    fit: KeptFit | None = None

    @property
    def last_step(self) -> ReweightingStep:
        """The most recent step; raises AssertionError if `choose_step` has not chosen one."""
        assert self.step is not None
        return self.step


def choose_step(column: RobustChunkColumn, state: Reweighting, step_index: int) -> tuple[Reweighting, bool]:
    """Choose the values that a reweighting step keeps.

    Parameters
    ----------
    column : RobustChunkColumn
        The column.
    state : Reweighting
        The state after the previous step; before the first step, the initial state.
    step_index : int
        Index of the step to choose, from 0.

    Returns
    -------
    state : Reweighting
        The state, with the new step.
    is_chosen : bool
        Whether the new step must be fitted. It is False if the state is settled or all steps are done; there is then no
        new step. It is also False if the new step has the same interval as the previous step, or if the two ends of the
        interval are equal.
    """
    start, criterion = column.found_start, column.estimator.criterion
    n_fits = max_fits(start.points.options)
    n_steps = n_fits + 1 if criterion == CELLWISE_QQ or n_fits == 0 else n_fits
    if state.is_settled or step_index >= n_steps:
        return state, False
    rule = CutRule(*step_rule(step_index, start.points.options))
    cut, _ = column.cut(start.points, state.lmbda, rule)
    low, high = cut[CUTOFF_LOW], cut[CUTOFF_HIGH]
    excluded, uncertain = np.zeros(2), np.zeros(2)
    if criterion == TRIMMED:
        low, excluded[0], uncertain[0] = _end_of_window(column, cut[WEIGHT_BELOW], 1)
        high, excluded[1], uncertain[1] = _end_of_window(column, cut[WEIGHT_ABOVE], -1)
    if criterion == CARROLL:
        low, high = column.ends
    within = np.clip([low, high], *column.ends)
    interval = np.array([*within, cut[PRESCALING_CENTER], cut[PRESCALING_DIVISOR], start.tie])
    is_settled = state.step is not None and np.array_equal(interval, state.step.interval, equal_nan=True)
    step = ReweightingStep(rule, float(cut[CUTOFF_IN_SCALES]), interval, (low, high), excluded, uncertain)
    return state._replace(step=step, is_settled=is_settled), bool(not is_settled and within[0] < within[1])


def _end_of_window(column: RobustChunkColumn, outside: float, direction: int) -> tuple[float, float, float]:
    """Return the lower or the upper end of a trimmed window.

    Parameters
    ----------
    column : RobustChunkColumn
        The column.
    outside : float
        Weight of the points beyond this end of the window.
    direction : int
        1 for the lower end, -1 for the upper one.

    Returns
    -------
    end : float
        The smallest or the largest value in the window.
    excluded : float
        Weight to exclude at this value, for the rows equal to it that are outside the window.
    uncertain : float
        The weight of the cell that contains the end, if the cell holds several values; otherwise 0.
    """
    cells = column.untied_cells
    weight = cells.weight[::direction] / column.unit
    before = np.append(0.0, np.cumsum(weight))
    c = int(np.clip(np.searchsorted(before, outside * (1.0 + 1e-12), side="right") - 1, 0, weight.size - 1))
    near, far = (cells.low[::direction], cells.high[::direction])[::direction]
    fraction = (outside - before[c]) / weight[c]
    if near[c] == far[c]:
        return float(near[c]), max(fraction, 0.0) * weight[c] * column.unit, 0.0
    return float(near[c] + fraction * (far[c] - near[c])), 0.0, weight[c] * column.unit


def fit_kept_values(column: RobustChunkColumn, state: Reweighting, kept: Kept, step_index: int) -> Reweighting:
    """Fit the values that the most recent step keeps; raise ValueError if the passes read different rows.

    Parameters
    ----------
    column : RobustChunkColumn
        The column.
    state : Reweighting
        The state after `choose_step`.
    kept : Kept
        The power sums of the kept values.
    step_index : int
        Index of the step, from 0. If all fits of lambda have been made, lambda stays fixed.
    """
    _check_unchanged(column, state.last_step, kept)
    ends, sums = kept.ends[:, 0], _without_excluded(state.last_step, kept.sketch)._power_sums()
    is_given = step_index == max_fits(column.found_start.points.options)
    row = sums.fit(np.array([state.lmbda if is_given else np.nan]), 1)[0][0]
    state = state._replace(n_eval=state.n_eval + row[N_EVAL])
    if state.fit is not None and row[N_OBS] == state.fit.row[N_OBS] and (ends == state.fit.ends).all():
        return state._replace(is_settled=True)
    state = state._replace(fit=KeptFit(sums, row, ends, is_given))
    return state if is_given else state._replace(status=int(row[STATUS]), lmbda=float(row[LMBDA]))


def _check_unchanged(column: RobustChunkColumn, step: ReweightingStep, kept: Kept) -> None:
    """Raise ValueError if the total weight has changed, or if the kept weight contradicts the counts in cells."""
    check_unchanged(column.label, column.first.total[column.j], float(kept.weight[0]))
    low, high = step.interval[:2]
    cells = column.untied_cells
    least = cells.weight[(low <= cells.low) & (cells.high <= high)].sum()
    most = cells.weight[(low <= cells.high) & (cells.low <= high)].sum()
    slack = 1e-9 * column.weight + float(column.first.slack[column.j])
    weight = float(kept.sketch.n_obs[0])
    check_unchanged(column.label, float(np.clip(weight, least, most)), weight, slack)


def _without_excluded(step: ReweightingStep, kept: Sketch) -> Sketch:
    """Subtract the values that a step excludes at the ends of a trimmed window from the power sums `kept`.

    `ReweightingStep.excluded` holds the weights of these values.
    """
    if not step.excluded.any():
        return kept
    low, high, center, divisor = step.interval[:4]
    ends = (np.array([[low], [high]]) - center) / divisor
    left_out = summarize_chunk(ends, kept.grid, sample_weight=step.excluded)
    return Sketch(kept.grid, kept.sums - left_out.sums, kept._roundings + left_out._roundings)


def standard_error(column: RobustChunkColumn, fit: KeptFit) -> float:
    """Return the standard error of lambda, from the curvature of the likelihood of the kept values."""
    information = fit.row[CURVATURE] * fit.row[N_OBS] / column.unit
    return float(1.0 / np.sqrt(information)) if information > 0.0 else np.inf
