"""Robust power transforms of one column: what all estimators have in common, and their entries.

How a column, sorted and without missing values, is fitted (`_fit_sorted`):

1. `kernels.robust.prestandardization` divides out its scale and takes signed logs; each transform is then one
   exponential per value, and leaves the column sorted, so that medians are lookups and the values kept are consecutive.
2. The functions in the `Criterion` of an estimator do the rest: `rewml`, `cellwise` (the same by R's conventions),
   `carroll` and `trimmed` have one each, and entries that are compiled for it alone.
3. `kernels.robust.column_results` completes the row of results.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from powerkern._jit import COLUMN, INTEGER, REAL, ROWS, entry, kernel, numbers_of
from powerkern._status import Route, Status
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import copy
from powerkern.kernels.results import LEFT, STATUS
from powerkern.kernels.robust.column_results import refusal, value_weight, write_unfitted
from powerkern.kernels.robust.options import (
    ROBUST_WORK,
    Options,
    Prestandardized,
    RobustWork,
    with_rule,
)
from powerkern.kernels.robust.order_statistics import n_present
from powerkern.kernels.robust.prestandardization import Prescaling, counted, divisor_of, prestandardized, value_of
from powerkern.kernels.robust.refit import Fit, Kept, fit_by_logs, fit_in_two_passes
from powerkern.kernels.robust.reweighting import Keep
from powerkern.kernels.robust.search import Objective
from powerkern.kernels.robust.weights import Counts, outside_of, unit_of
from powerkern.kernels.transforms.rectified import BOTH, QUARTILES, SortedColumn, rectified_log_at

_OK, _REFIT_BOTH_SIDES = int(Status.OK), int(Route.REFIT_BOTH_SIDES)


class Criterion(NamedTuple):
    """The functions that make an estimator."""

    #: what the objective compares a column with: (counts, column, options, work)
    target: Callable[[Counts | None, SortedColumn, Options, RobustWork], Any]
    objective: Objective
    keep: Keep
    #: fits a prestandardised column, or leaves it: (how values kept are fitted, values, weights, column, its
    #: prestandardisation, family, options, work, row)
    fit: Callable[
        [Fit, FloatArray, FloatArray | None, Prestandardized, Prescaling, int, Options, RobustWork, FloatArray], None
    ]
    #: whether a tail that is far out is kept at a lambda: (column, lambda, values kept)
    keeps_far_tail: Callable[[Prestandardized, float, Kept], bool]


@kernel
def no_tail(at: Prestandardized, lmbda: float, kept: Kept) -> bool:
    """Without a cut-off, there is no tail that should have been beyond it."""
    return False


# --- one column ---------------------------------------------------------------------------------------


@kernel
def _prepared(
    criterion: Criterion,
    x: FloatArray,
    weight: FloatArray | None,
    family: int,
    options: Options,
    work: RobustWork,
) -> tuple[Prescaling, Prestandardized]:
    """Prestandardise a sorted column without NaN: center, divisor and power, and the column in these units."""
    counts = counted(weight, x.size, work.counts)
    prescaling, column = prestandardized(x, counts, family, options, work)
    target = criterion.target(counts, column, options, work)
    return prescaling, Prestandardized(column, counts, target, work.y[: column.x.size])


@kernel
def _fit_sorted(
    criterion: Criterion,
    fit: Fit,
    x: FloatArray,
    weight: FloatArray | None,
    family: int,
    options: Options,
    work: RobustWork,
    row: FloatArray,
) -> None:
    """Fit one sorted column without NaN into a row of results; None, or positive weights of its values."""
    status = refusal(x, family)
    if status != _OK:
        write_unfitted(x, weight, status, row)
        return
    prescaling, every = _prepared(criterion, x, weight, family, options, work)
    if prescaling.status != _OK:
        write_unfitted(x, weight, prescaling.status, row)
        return
    criterion.fit(fit, x, weight, every, prescaling, family, options, work, row)


@kernel
def _objectives(
    criterion: Criterion,
    x: FloatArray,
    weight: FloatArray | None,
    family: int,
    options: Options,
    route: float,
    lmbdas: FloatArray,
    work: RobustWork,
    out: FloatArray,
) -> None:
    """The objective of one sorted column at `lmbdas` of the data; NaN where there is none."""
    if options.rule == BOTH and route != _REFIT_BOTH_SIDES:
        options = with_rule(options, QUARTILES)
    out[:] = math.nan
    if refusal(x, family) != _OK:
        return
    prescaling, every = _prepared(criterion, x, weight, family, options, work)
    if prescaling.status != _OK:
        return
    for k in range(lmbdas.size):
        out[k] = criterion.objective(every, lmbdas[k] * prescaling.power, options, work)


# --- the values kept at a lambda --------------------------------------------------------------------


#: Fields that `Entries.cut` writes: the interval of values kept, weights before and after it, location and scale of the
#: transform, the cut-off, prestandardisation, and whether a tail that is far out was kept.
N_CUT = 10
CUT_LOW, CUT_HIGH, CUT_BEFORE, CUT_AFTER, CUT_LOC, CUT_SCALE, CUT_OFF, CUT_CENTER, CUT_DIVISOR, CUT_TAIL = range(N_CUT)


@kernel
def _cut(
    criterion: Criterion,
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
    prescaling, every = _prepared(criterion, x, weight, family, options, work)
    at, column = lmbda * prescaling.power, every.column
    kept = criterion.keep(every, at, rule, adaptive > 0, options, work)
    copy(every.y[: x.size], y)
    reach = kept.cutoff * kept.scale
    out[CUT_LOW] = value_of(rectified_log_at(kept.loc - reach, column, at, rule), column.below, prescaling)
    out[CUT_HIGH] = value_of(rectified_log_at(kept.loc + reach, column, at, rule), column.below, prescaling)
    before, after = outside_of(every.counts, kept.start, kept.stop, x.size)
    factor = unit_of(every.counts) / value_weight(every.counts)
    out[CUT_BEFORE], out[CUT_AFTER] = (before + kept.below) / factor, (after + kept.above) / factor
    out[CUT_LOC], out[CUT_SCALE], out[CUT_OFF] = kept.loc, kept.scale, kept.cutoff
    out[CUT_CENTER], out[CUT_DIVISOR] = prescaling.center, divisor_of(column.below, prescaling)
    out[CUT_TAIL] = criterion.keeps_far_tail(every, at, kept)


# --- entries ------------------------------------------------------------------------------------------


@kernel
def _no_weight(weights: FloatArray, j: int) -> None:
    return None


@kernel
def _weight_of(weights: FloatArray, j: int) -> FloatArray:
    weight: FloatArray = weights[j]
    return weight


class Entries(NamedTuple):
    """The entries of an estimator. `columns` are rows: sorted columns of the user's matrix, NaN last.

    Weights are those of the values, in the same order; those of NaN are not read. Pairs are without weights, and with.
    """

    #: fit all columns whose status is LEFT: (columns, weights, family, options, work, out); return how many are left
    complete: tuple[Callable[..., int], Callable[..., int]]
    #: the objective, by the routes of fits: (columns, weights, family, options, routes, lmbdas, work, out)
    objective: tuple[Callable[..., None], Callable[..., None]]
    #: the values of a column with weights that are kept at a lambda of the data, as `N_CUT` figures, and the transform
    #: by a rule: (x, weight, family, options, lmbda, rule, adaptive, work, y, out); adaptive: 1 for a cut-off that is
    cut: Callable[..., None]
    #: the consistency factor of the scale: (number of values kept, their share, cut-off)
    scale_factor: Callable[[float, float, float], float]
    #: functions that fit most columns without weights, and leave others: with less code, or faster
    first: tuple[Callable[..., int], ...]

    def fit(
        self,
        columns: FloatArray,
        weights: FloatArray | None,
        family: int,
        options: Options,
        work: RobustWork,
        out: FloatArray,
    ) -> None:
        """Fit all columns, by the entries that they need: the others are not compiled."""
        weighted, given = weights is not None, columns if weights is None else weights  # an array in any case
        out[:, STATUS] = LEFT
        for each in *(() if weighted else self.first), self.complete[weighted]:
            if each(columns, given, family, options, work, out) == 0:
                break

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
        """The objective of all columns at each lambda; routes of their fits tell from which of two starts they came."""
        given = columns if weights is None else weights
        self.objective[weights is not None](columns, given, family, options, routes, lmbdas, work, out)


def entries_of(
    module: str,
    criterion: Criterion,
    scale_factor: Callable[[float, float, float], float],
    short: Callable[..., int] | None = None,
) -> Entries:
    """The entries of an estimator, in the name of its module; `short` fits short columns first, or leaves them."""

    def named(signature: tuple[Any, ...], function: Callable[..., Any], name: str) -> Callable[..., Any]:
        function.__name__ = function.__qualname__ = name  # of its file
        function.__module__ = module
        return entry(signature)(function)

    def fit_entry(fit: Fit, weight_of: Callable[[FloatArray, int], Any], name: str) -> Callable[..., int]:
        def fit_columns(
            columns: FloatArray, weights: FloatArray, family: int, options: Options, work: RobustWork, out: FloatArray
        ) -> int:
            n_left = 0
            for j in range(columns.shape[0]):
                if out[j, STATUS] == LEFT:
                    x = columns[j, : n_present(columns[j])]
                    _fit_sorted(criterion, fit, x, weight_of(weights, j), family, options, work, out[j])
                    n_left += out[j, STATUS] == LEFT
            return n_left

        return named((ROWS, ROWS, INTEGER, numbers_of(Options), ROBUST_WORK, ROWS), fit_columns, name)

    def objective_entry(weight_of: Callable[[FloatArray, int], Any], name: str) -> Callable[..., None]:
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
            for j in range(columns.shape[0]):
                x, weight = columns[j, : n_present(columns[j])], weight_of(weights, j)
                _objectives(criterion, x, weight, family, options, routes[j], lmbdas, work, out[j])

        signature = (ROWS, ROWS, INTEGER, numbers_of(Options), COLUMN, COLUMN, ROBUST_WORK, ROWS)
        return named(signature, objective_columns, name)

    def cut_column(
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
        _cut(criterion, x, weight, family, options, lmbda, rule, adaptive, work, y, out)

    of_cut = (COLUMN, COLUMN, INTEGER, numbers_of(Options), REAL, INTEGER, INTEGER, ROBUST_WORK, COLUMN, COLUMN)
    return Entries(
        (
            fit_entry(fit_in_two_passes, _no_weight, "fit_columns"),
            fit_entry(fit_in_two_passes, _weight_of, "fit_weighted_columns"),
        ),
        (objective_entry(_no_weight, "objective_columns"), objective_entry(_weight_of, "weighted_objective_columns")),
        named(of_cut, cut_column, "cut_column"),
        scale_factor,
        () if short is None else (short, fit_entry(fit_by_logs, _no_weight, "fit_columns_by_logs")),
    )
