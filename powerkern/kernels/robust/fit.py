"""Robust power transforms of one column: RewML, Carroll's estimator and maximum trimmed likelihood.

How a column, sorted and without missing values, is fitted (`fit_sorted`):

1. `kernels.robust.prestandardization` divides out its scale and takes signed logs; each transform is then one
   exponential per value, and leaves the column sorted, so that medians are lookups and the values kept are consecutive.
2. `kernels.robust.search` minimises the estimator's objective ([1]_, [2]_) over lambda.
3. `kernels.robust.reweighting` fits the values within the cut-off by maximum likelihood, as often as asked;
   the first cut-off is on the rectified transform, or on the plain one ([1]_, eq. (16)).
4. `kernels.robust.column_results` completes the row of results.

Short columns go this way until they have a start, and then on with seven others as long
(`kernels.robust.reweighting_lanes`).

References
----------
.. [1] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning 113, 2024,
   4953-4975.
.. [2] R. J. Carroll, "A robust method for testing transformations to achieve approximate normality", JRSS B 42, 1980.
"""

from __future__ import annotations

import math

from powerkern._jit import COLUMN, COUNTS, INTEGER, LANES, REAL, ROWS, entry, kernel, named_tuple, numbers_of
from powerkern._status import Route, Status
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import copy
from powerkern.kernels.likelihood.scratch import WORK
from powerkern.kernels.results import LEFT, LMBDA, N_EVAL, N_OBS, STATUS
from powerkern.kernels.robust import reweighting_lanes as lanes
from powerkern.kernels.robust.column_results import (
    finish,
    is_unfitted,
    keeps_far_tail,
    refusal,
    scale_correction,
    value_weight,
    weight_kept,
    write_unfitted,
)
from powerkern.kernels.robust.objective import objective
from powerkern.kernels.robust.options import CARROLL, QQ, Options, Prestandardized, RobustWork, Start, with_rule
from powerkern.kernels.robust.order_statistics import n_present
from powerkern.kernels.robust.prestandardization import Prescaling, divisor_of, prepared, total_weight, value_of
from powerkern.kernels.robust.qq_search import CELL_WORK
from powerkern.kernels.robust.reweighting import (
    Kept,
    kept_at,
    likelihood_of_all,
    nothing_kept,
    refitted,
    restandardize,
)
from powerkern.kernels.robust.scan import by_lanes
from powerkern.kernels.robust.short_columns import fit_aside, put_aside, suits_lanes
from powerkern.kernels.robust.start import started
from powerkern.kernels.robust.weights import COUNTS_WORK, outside_of, part_of, unit_of
from powerkern.kernels.transforms.family import is_mirrored
from powerkern.kernels.transforms.rectified import BOTH, QUARTILES, rectified_log_at

_OK = int(Status.OK)
_UNREPRESENTABLE, _NOT_CERTIFIED = int(Status.UNREPRESENTABLE), int(Status.NOT_CERTIFIED)
_REFIT_BOTH_SIDES = int(Route.REFIT_BOTH_SIDES)
#: Fits in ever wider intervals (convention "cellwise").
_MAX_FITS = 20
#: R widens the interval where lambda is that near to an end, as a fraction of its length.
_END = 0.05


# --- one column ---------------------------------------------------------------------------------------


@kernel
def fit_sorted(
    x: FloatArray,
    weight: FloatArray | None,
    family: int,
    options: Options,
    work: RobustWork,
    row: FloatArray,
    lane: int,
) -> bool:
    """Fit one sorted column without NaN into a row of results; None, or positive weights of its values.

    Or put it aside in that lane of `work.eight`, if it can be fitted there, and return True; -1 for no lane.
    """
    n, aside = x.size, lane >= 0 and suits_lanes(x.size, options)
    status = refusal(x, family)
    if status != _OK:
        write_unfitted(x, total_weight(weight, n), status, row)
        return False
    prescaling, every = prepared(x, weight, family, options, work)
    if prescaling.status != _OK:
        write_unfitted(x, total_weight(weight, n), prescaling.status, row)
        return False
    values = every.column.x[:n] if is_mirrored(family) else x
    found, chosen, kept = _fitted(every, values, family, prescaling, options, work, row, aside)
    if aside:
        put_aside(every.column, prescaling, found, chosen, lane, work.batch)
        return True
    if is_unfitted(row, kept):  # overflowed when prestandardised
        write_unfitted(x, total_weight(weight, n), _UNREPRESENTABLE, row)
        return False
    looked_at = options.criterion == QQ and not options.cellwise
    tail_kept = looked_at and keeps_far_tail(every, row[LMBDA] * prescaling.power, kept, options)
    if options.criterion == CARROLL:
        likelihood_of_all(values, part_of(every.counts, 0, n), family, work, row)
    n_kept = weight_kept(every.counts, kept)
    share = n_kept / total_weight(weight, n)
    correction = scale_correction(n_kept / value_weight(every.counts), share, kept.cutoff, options)
    finish(x, weight, every.counts, every.column.below, prescaling, found, kept, tail_kept, correction, chosen, row)
    if options.criterion == CARROLL:
        part = part_of(every.counts, kept.start, kept.stop)
        restandardize(row, every.y[kept.start : kept.stop], part, kept.loc, kept.scale)
    return False


@kernel
def _fitted(
    every: Prestandardized,
    values: FloatArray,
    family: int,
    prescaling: Prescaling,
    options: Options,
    work: RobustWork,
    row: FloatArray,
    aside: bool,
) -> tuple[Start, Options, Kept]:
    """A start, its rule, and unless it is put aside the fit from it; again in a wider interval, as R does."""
    low, high, n_eval = options.low, options.high, 0.0
    found, chosen, kept, widened = Start(math.nan, 0, 0, False, math.nan), options, nothing_kept(), True
    for _ in range(_MAX_FITS):
        found, chosen = started(every, low, high, family, options, work)
        if aside:
            return found, chosen, kept
        kept = refitted(every, values, family, prescaling, found.lmbda, options.adaptive, chosen, work, row)
        n_eval += found.n_eval + row[N_EVAL]
        low, high, widened = _widened(low, high, row[LMBDA] * prescaling.power)
        if is_unfitted(row, kept) or not (options.cellwise and widened):
            break
    row[N_EVAL] = n_eval
    if by_lanes(every, chosen):  # the search returns the minimum of a cubic or of a parabola
        value = objective(every, found.lmbda, chosen)
        found = Start(found.lmbda, found.n_eval, found.n_rivals, found.inside, value)
    if row[STATUS] == _OK and (not found.inside or (options.cellwise and widened)):
        row[STATUS] = _NOT_CERTIFIED
    return found, chosen, kept


@kernel
def _widened(low: float, high: float, lmbda: float) -> tuple[float, float, bool]:
    """A wider interval where lambda ended close to an end, as in R, and whether it did."""
    margin = _END * (high - low)
    if lmbda - low < margin:
        return 1.0 + 2.0 * (low - 1.0), high, True
    if high - lmbda < margin:
        return low, 1.0 + 2.0 * (high - 1.0), True
    return low, high, False


# --- short columns, side by side ------------------------------------------------------------------------


@kernel
def _fit_rows(columns: FloatArray, family: int, options: Options, work: RobustWork, out: FloatArray) -> None:
    """Fit short columns side by side, with others as long, and one by one those that need more care, and long ones."""
    for j in range(columns.shape[0]):
        out[j, STATUS], out[j, N_OBS] = LEFT, n_present(columns[j])
    for alone in range(2):
        n = _next_length(out, columns.shape[1] + 1)
        while n >= 0:
            _fit_equally_long(columns, n, alone > 0, family, options, work, out)
            n = _next_length(out, n)


@kernel
def _next_length(out: FloatArray, n: int) -> int:
    """The largest number of values, less than n, of columns that are left; -1 if there are none."""
    longest = -1.0
    for j in range(out.shape[0]):
        if out[j, STATUS] == LEFT and longest < out[j, N_OBS] < n:
            longest = out[j, N_OBS]
    return int(longest)


@kernel
def _fit_equally_long(
    columns: FloatArray, n: int, alone: bool, family: int, options: Options, work: RobustWork, out: FloatArray
) -> None:
    """Fit those columns that are left and have n values."""
    n_aside = 0
    for j in range(columns.shape[0]):
        if out[j, STATUS] == LEFT and out[j, N_OBS] == n:
            lane = -1 if alone else n_aside
            if fit_sorted(columns[j, :n], None, family, options, work, out[j], lane):
                work.batch.fields[lanes.ROW, lane] = j
                n_aside += 1
        if n_aside == LANES or (n_aside > 0 and j == columns.shape[0] - 1):
            fit_aside(columns, n, n_aside, family, options, work.scores, work.batch, out)
            n_aside = 0


# --- the objective on a grid --------------------------------------------------------------------------


@kernel
def _objectives(
    x: FloatArray,
    weight: FloatArray | None,
    family: int,
    options: Options,
    route: float,
    lmbdas: FloatArray,
    work: RobustWork,
    out: FloatArray,
) -> None:
    """The objective of one sorted column, NaN last, at `lmbdas` of the data; NaN where there is none."""
    if options.rule == BOTH and route != _REFIT_BOTH_SIDES:
        options = with_rule(options, QUARTILES)
    x = x[: n_present(x)]
    out[:] = math.nan
    if refusal(x, family) != _OK:
        return
    prescaling, every = prepared(x, weight, family, options, work)
    if prescaling.status != _OK:
        return
    for k in range(lmbdas.size):
        out[k] = objective(every, lmbdas[k] * prescaling.power, options)


# --- entries ------------------------------------------------------------------------------------------


_ROBUST_WORK = named_tuple(
    RobustWork, WORK, COLUMN, COLUMN, COLUMN, COLUMN, COUNTS, ROWS, ROWS, ROWS, COLUMN, COLUMN,
    COUNTS_WORK, COUNTS_WORK, CELL_WORK, lanes.LANE_BATCH,
)  # fmt: skip


@entry((ROWS, INTEGER, numbers_of(Options), _ROBUST_WORK, ROWS))
def fit_sorted_columns(columns: FloatArray, family: int, options: Options, work: RobustWork, out: FloatArray) -> None:
    """Fit the rows of `columns`, each a sorted column of the user's matrix."""
    _fit_rows(columns, family, options, work, out)


@entry((ROWS, ROWS, INTEGER, numbers_of(Options), _ROBUST_WORK, ROWS))
def fit_weighted_columns(
    columns: FloatArray, weights: FloatArray, family: int, options: Options, work: RobustWork, out: FloatArray
) -> None:
    """`fit_sorted_columns` with the weights of the values, positive (those of NaN, which come last, are not read)."""
    for j in range(columns.shape[0]):
        fit_sorted(columns[j, : n_present(columns[j])], weights[j], family, options, work, out[j], -1)


@entry((ROWS, INTEGER, numbers_of(Options), COLUMN, COLUMN, _ROBUST_WORK, ROWS))
def objective_columns(
    columns: FloatArray,
    family: int,
    options: Options,
    routes: FloatArray,
    lmbdas: FloatArray,
    work: RobustWork,
    out: FloatArray,
) -> None:
    """The objective of each sorted row of `columns`, prestandardised, at each lambda.

    Routes of their fits tell from which of two starts these came.
    """
    for j in range(columns.shape[0]):
        _objectives(columns[j], None, family, options, routes[j], lmbdas, work, out[j])


@entry((ROWS, ROWS, INTEGER, numbers_of(Options), COLUMN, COLUMN, _ROBUST_WORK, ROWS))
def weighted_objective_columns(
    columns: FloatArray,
    weights: FloatArray,
    family: int,
    options: Options,
    routes: FloatArray,
    lmbdas: FloatArray,
    work: RobustWork,
    out: FloatArray,
) -> None:
    """`objective_columns` with the weights of the values, as for `fit_weighted_columns`."""
    for j in range(columns.shape[0]):
        _objectives(columns[j], weights[j], family, options, routes[j], lmbdas, work, out[j])


# --- the values kept at a lambda --------------------------------------------------------------------


#: Fields that `cut_column` writes: the interval of values kept, weights before and after it, location and scale of the
#: transform, the cut-off, prestandardisation, and whether a tail that is far out was kept.
N_CUT = 10
CUT_LOW, CUT_HIGH, CUT_BEFORE, CUT_AFTER, CUT_LOC, CUT_SCALE, CUT_OFF, CUT_CENTER, CUT_DIVISOR, CUT_TAIL = range(N_CUT)


@entry((COLUMN, COLUMN, INTEGER, numbers_of(Options), REAL, INTEGER, INTEGER, _ROBUST_WORK, COLUMN, COLUMN))
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
    """The values of a sorted column with weights that are kept at a lambda of the data, and its transform by `rule`.

    `adaptive`: 1 for a cut-off that is, 0 for that of the options.
    """
    prescaling, every = prepared(x, weight, family, options, work)
    at = lmbda * prescaling.power
    kept = kept_at(every, at, rule, adaptive > 0, options)
    copy(every.y[: x.size], y)
    reach = kept.cutoff * kept.scale
    column = every.column
    out[CUT_LOW] = value_of(rectified_log_at(kept.loc - reach, column, at, rule), column.below, prescaling)
    out[CUT_HIGH] = value_of(rectified_log_at(kept.loc + reach, column, at, rule), column.below, prescaling)
    before, after = outside_of(every.counts, kept.start, kept.stop, x.size)
    factor = unit_of(every.counts) / value_weight(every.counts)
    out[CUT_BEFORE], out[CUT_AFTER] = (before + kept.below) / factor, (after + kept.above) / factor
    out[CUT_LOC], out[CUT_SCALE], out[CUT_OFF] = kept.loc, kept.scale, kept.cutoff
    out[CUT_CENTER], out[CUT_DIVISOR] = prescaling.center, divisor_of(column.below, prescaling)
    out[CUT_TAIL] = keeps_far_tail(every, at, kept, options)
