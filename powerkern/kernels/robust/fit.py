"""The steps common to all robust estimators of lambda, and the entries of each estimator.

A column, sorted and without missing values, is fitted in three steps:

1. `kernels.robust.prestandardization` removes the scale and takes signed logs. A transform is then one exponential per
   value. It keeps the order, so that medians are lookups and the values kept are consecutive.
2. The functions in the `Criterion` of an estimator find lambda. Each of the modules `rewml`, `adaptive_rewml`,
   `cellwise` (RewML by R's conventions), `carroll` and `trimmed` has a criterion, with entries compiled for it alone.
3. `kernels.robust.column_results` completes the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from powerkern._jit import COLUMN, INTEGER, REAL, ROWS, entry, kernel, number_record_type
from powerkern._status import Route, Status
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import copy
from powerkern.kernels.location.order_statistics import n_present
from powerkern.kernels.location.weights import unscale_weight, weight_outside
from powerkern.kernels.results import DEFERRED, STATUS
from powerkern.kernels.robust.column import Column, Prestandardized
from powerkern.kernels.robust.column_results import refusal, write_unfitted
from powerkern.kernels.robust.options import Options, with_rule
from powerkern.kernels.robust.prestandardization import (
    Target,
    prestandardize_column,
    total_weight,
    value_divisor,
    value_from_log,
)
from powerkern.kernels.robust.reweighting import Fit, Keep, KeptRange, fit_by_logs, fit_in_two_passes
from powerkern.kernels.robust.scratch import ROBUST_WORK, RobustWork
from powerkern.kernels.robust.search import Objective
from powerkern.kernels.transforms.rectified import BOTH, QUARTILES, rectified_log_at

_OK, _REFIT_BOTH_SIDES = int(Status.OK), int(Route.REFIT_BOTH_SIDES)


class Criterion(NamedTuple):
    """The kernels that define an estimator: its objective, and how it selects and fits values."""

    #: computes what the objective compares values with, such as normal scores
    target: Target
    #: the objective that the initial lambda minimises
    objective: Objective
    #: selects the values to keep at a lambda
    keep: Keep
    #: fits a prestandardised column, or defers it: (fit of the values kept, column, options, work, row)
    fit: Callable[[Fit, Column, Options, RobustWork, FloatArray], None]
    #: whether a far tail is kept at a lambda: (column, lambda, values kept)
    keeps_far_tail: Callable[[Prestandardized, float, KeptRange], bool]


@kernel
def no_tail(at: Prestandardized, lmbda: float, kept: KeptRange) -> bool:
    """Return False, for estimators that do not check whether an outlying tail was kept."""
    return False


#: Fields that `EstimatorEntries.apply_cutoff` writes: the ends of the interval of values kept, in units of the data;
#: the weights of the values below and above it; location and scale of the transformed values, and the cut-off in
#: units of that scale; the prestandardisation; and whether a far tail was kept.
(
    CUTOFF_LOW, CUTOFF_HIGH, WEIGHT_BELOW, WEIGHT_ABOVE, TRANSFORM_LOC, TRANSFORM_SCALE, CUTOFF_IN_SCALES,
    PRESCALING_CENTER, PRESCALING_DIVISOR, KEEPS_FAR_TAIL, N_CUTOFF_FIELDS,
) = range(11)  # fmt: skip


class EstimatorEntries(NamedTuple):
    """The compiled entries of an estimator.

    Columns are passed as rows, sorted, NaN last. Weights have the shape of the columns, and are ignored for NaN. The
    first entry of each pair ignores weights; the second one uses them.
    """

    #: fit the columns whose status is DEFERRED; return how many remain: (columns, weights, family, options, work, out)
    complete: tuple[Callable[..., int], Callable[..., int]]
    #: evaluate the objective: (columns, weights, family, options, routes, lmbdas, work, out)
    objective: tuple[Callable[..., None], Callable[..., None]]
    #: find the values of a weighted column within the cut-off at a lambda of the data, and transform the column; write
    #: `N_CUTOFF_FIELDS` numbers: (x, weight, family, options, lmbda, rule, adaptive, work, y, out); adaptive: 1 for an
    #: adaptive cut-off
    apply_cutoff: Callable[..., None]
    #: the consistency factor of the scale: (number of values kept, fraction of values kept, cut-off)
    scale_factor: Callable[[float, float, float], float]
    #: a smaller entry that fits most columns without weights and defers the others to `complete`; or None
    by_logs: Callable[..., int] | None

    def fit(
        self,
        columns: FloatArray,
        weights: FloatArray | None,
        family: int,
        options: Options,
        work: RobustWork,
        out: FloatArray,
    ) -> None:
        """Fit all columns, calling (and therefore compiling) only the entries that are needed.

        Parameters
        ----------
        columns : (p, n)
            Sorted columns as rows, NaN last.
        weights : (p, n) or None
            Weights of the values; None: all one.
        family : int
            BOX_COX or YEO_JOHNSON.
        options : Options
            The options of the estimator.
        work : RobustWork
            Scratch for columns of n values.
        out : (p, N_RESULTS)
            Receives the results.
        """
        weighted, given = weights is not None, columns if weights is None else weights  # entries require an array
        out[:, STATUS] = DEFERRED
        if self.by_logs is not None and not weighted and self.by_logs(columns, given, family, options, work, out) == 0:
            return
        self.complete[weighted](columns, given, family, options, work, out)

    def at(
        self,
        lmbdas: FloatArray,
        columns: FloatArray,
        weights: FloatArray | None,
        family: int,
        options: Options,
        routes: FloatArray,
        work: RobustWork,
        out: FloatArray,
    ) -> None:
        """Evaluate the objective of all columns at each lambda, with the rectification rule of each column's fit.

        Parameters
        ----------
        lmbdas : (m,)
            The lambdas.
        columns, weights, family, options, work
            As in `fit`.
        routes : (p,)
            The field ROUTE of each column's results, from which the rule follows.
        out : (p, m)
            Receives the objective; NaN for a column that cannot be fitted.
        """
        given = columns if weights is None else weights
        self.objective[weights is not None](columns, given, family, options, routes, lmbdas, work, out)


# --- how entries are made -------------------------------------------------------------------------------


_OF_FIT = (ROWS, ROWS, INTEGER, number_record_type(Options), ROBUST_WORK, ROWS)
_OF_OBJECTIVE = (ROWS, ROWS, INTEGER, number_record_type(Options), COLUMN, COLUMN, ROBUST_WORK, ROWS)
_OF_CUTOFF = (COLUMN, COLUMN, INTEGER, number_record_type(Options), REAL, INTEGER, INTEGER, ROBUST_WORK, COLUMN, COLUMN)
#: The weights of row j, or None.
_WeightOf = Callable[[FloatArray, int], Any]


@kernel
def _no_weight(weights: FloatArray, j: int) -> None:
    return None


@kernel
def _row_weights(weights: FloatArray, j: int) -> FloatArray:
    weight: FloatArray = weights[j]
    return weight


def make_entries(
    module: str,
    criterion: Criterion,
    scale_factor: Callable[[float, float, float], float],
    by_logs: bool = False,
) -> EstimatorEntries:
    """Make the entries of an estimator.

    Parameters
    ----------
    module : str
        The name of the module that the entries belong to.
    criterion : Criterion
        The kernels that define the estimator.
    scale_factor : callable
        The consistency factor of the scale (see `EstimatorEntries.scale_factor`).
    by_logs : bool
        Whether to make a smaller entry, too, that fits by raw sums of logs (`EstimatorEntries.by_logs`).
    """

    def named(name: str, signature: tuple[Any, ...], function: Callable[..., Any]) -> Callable[..., Any]:
        function.__name__ = function.__qualname__ = name  # the cache identifies code by these names
        function.__module__ = module
        return entry(signature)(function)

    def fit_by(fit: Fit, weight_of: _WeightOf, name: str) -> Callable[..., int]:
        return named(name, _OF_FIT, _fit_entry(criterion, fit, weight_of))

    return EstimatorEntries(
        (
            fit_by(fit_in_two_passes, _no_weight, "fit_columns"),
            fit_by(fit_in_two_passes, _row_weights, "fit_weighted_columns"),
        ),
        (
            named("objective_columns", _OF_OBJECTIVE, _objective_entry(criterion, _no_weight)),
            named("weighted_objective_columns", _OF_OBJECTIVE, _objective_entry(criterion, _row_weights)),
        ),
        named("apply_cutoff", _OF_CUTOFF, _cutoff_entry(criterion)),
        scale_factor,
        fit_by(fit_by_logs, _no_weight, "fit_columns_by_logs") if by_logs else None,
    )


def _fit_entry(criterion: Criterion, fit: Fit, weight_of: _WeightOf) -> Callable[..., int]:
    def fit_columns(
        columns: FloatArray, weights: FloatArray, family: int, options: Options, work: RobustWork, out: FloatArray
    ) -> int:
        n_left = 0
        for j in range(columns.shape[0]):
            if out[j, STATUS] == DEFERRED:
                x, weight = columns[j, : n_present(columns[j])], weight_of(weights, j)
                status = refusal(x, family)
                if status == _OK:
                    column = prestandardize_column(criterion.target, x, weight, family, options, work)
                    status = column.prescaling.status
                    if status == _OK:
                        criterion.fit(fit, column, options, work, out[j])
                if status != _OK:
                    write_unfitted(x, total_weight(weight, x.size), status, out[j])
                n_left += out[j, STATUS] == DEFERRED
        return n_left

    return fit_columns


def _objective_entry(criterion: Criterion, weight_of: _WeightOf) -> Callable[..., None]:
    def objective_columns(
        columns: FloatArray,
        weights: FloatArray,
        family: int,
        options: Options,
        routes: FloatArray,
        lmbdas: FloatArray,
        work: RobustWork,
        out: FloatArray,
    ) -> None:
        out[:] = math.nan
        for j in range(columns.shape[0]):
            x, rule = columns[j, : n_present(columns[j])], options.rule
            if rule == BOTH and routes[j] != _REFIT_BOTH_SIDES:
                rule = QUARTILES
            if refusal(x, family) == _OK:
                column = prestandardize_column(criterion.target, x, weight_of(weights, j), family, options, work)
                if column.prescaling.status == _OK:
                    searched = with_rule(options, rule, False)
                    for k in range(lmbdas.size):
                        out[j, k] = criterion.objective(
                            column.standardized, lmbdas[k] * column.prescaling.power, searched, work
                        )

    return objective_columns


def _cutoff_entry(criterion: Criterion) -> Callable[..., None]:
    def apply_cutoff(
        x: FloatArray,
        weight: FloatArray,
        family: int,
        options: Options,
        lmbda: float,
        rule: int,
        adaptive: int,
        work: RobustWork,
        y: FloatArray,
        out: FloatArray,
    ) -> None:
        _, _, prescaling, full_column = prestandardize_column(criterion.target, x, weight, family, options, work)
        at, column, negative_shift = lmbda * prescaling.power, full_column.column, full_column.column.negative_shift
        kept = criterion.keep(full_column, at, rule, adaptive > 0, options, work)
        copy(full_column.y[: x.size], y)
        distance = kept.cutoff * kept.scale
        out[CUTOFF_LOW] = value_from_log(
            rectified_log_at(kept.loc - distance, column, at, rule), negative_shift, prescaling
        )
        out[CUTOFF_HIGH] = value_from_log(
            rectified_log_at(kept.loc + distance, column, at, rule), negative_shift, prescaling
        )
        before, after = weight_outside(full_column.counts, kept.start, kept.stop, x.size)
        out[WEIGHT_BELOW] = unscale_weight(full_column.counts, before + kept.excluded_low)
        out[WEIGHT_ABOVE] = unscale_weight(full_column.counts, after + kept.excluded_high)
        out[TRANSFORM_LOC], out[TRANSFORM_SCALE], out[CUTOFF_IN_SCALES] = kept.loc, kept.scale, kept.cutoff
        out[PRESCALING_CENTER], out[PRESCALING_DIVISOR] = prescaling.center, value_divisor(negative_shift, prescaling)
        out[KEEPS_FAR_TAIL] = criterion.keeps_far_tail(full_column, at, kept)

    return apply_cutoff
