"""Robust power transforms of one column: RewML, Carroll's estimator and maximum trimmed likelihood.

How a column, sorted and without missing values, is fitted (`fit_sorted`):

1. `_prestandardized` divides out its scale and takes signed logs; each transform is then one exponential per value, and
   leaves the column sorted, so that medians are lookups and the values kept are consecutive.
2. `powerkern.kernels.robust.search` minimises the estimator's objective over lambda.
3. `_refitted` fits the values within the cut-off by maximum likelihood (`kernels.likelihood.mle`), as often as asked.

Short columns go this way until they have a start, and then on with seven others as long (`kernels.robust.reweighting`).

References
----------
.. [1] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning, 2021.
.. [2] R. J. Carroll, "A robust method for testing transformations to achieve approximate normality", JRSS B 42, 1980.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import (
    COLUMN,
    COUNTS,
    INTEGER,
    LANES,
    REAL,
    ROWS,
    entry,
    for_none,
    kernel,
    named_tuple,
    numbers_of,
    widest_vectors,
)
from powerkern._status import Route, Status
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import EPS, copy
from powerkern.kernels.elementary.exp_log import exp, log, log1p
from powerkern.kernels.likelihood.logs import centered_log
from powerkern.kernels.likelihood.mle import fit_column, fit_weighted_column
from powerkern.kernels.likelihood.one_pass import ONE_PASS_MIN, LogUnits, optimum_in, optimum_of_logs
from powerkern.kernels.likelihood.optimum import write_fit
from powerkern.kernels.likelihood.scratch import WORK
from powerkern.kernels.results import (
    BAD_INFINITE,
    BAD_NOT_POSITIVE,
    CENTER,
    CURVATURE,
    DIVISOR,
    INTERCEPT,
    KEPT_HIGH,
    KEPT_LOW,
    LEFT,
    LMBDA,
    LMBDA0,
    LOC,
    N_EVAL,
    N_KEPT,
    N_OBS,
    N_RESULTS,
    NLL,
    OBJECTIVE,
    ROUTE,
    SCALE,
    SLOPE,
    STATUS,
    is_identity,
    write_identity,
    write_range,
)
from powerkern.kernels.robust import reweighting as refits
from powerkern.kernels.robust.huber import sd_within
from powerkern.kernels.robust.loc_scale import LocScale
from powerkern.kernels.robust.order_statistics import position_of
from powerkern.kernels.robust.qq import (
    CLOSE,
    PAPER,
    near_copies,
    near_quantiles,
    normal_nodes,
    normal_quantile,
    normal_scores,
)
from powerkern.kernels.robust.qq_search import CELL_WORK
from powerkern.kernels.robust.search import (
    ALL,
    CARROLL,
    HUBER_K,
    MAD,
    QQ,
    RAW,
    SAMPLE,
    TRIMMED,
    UNTIL_SETTLED,
    Options,
    RobustWork,
    Sorted,
    Start,
    best_window,
    by_lanes,
    change_ranks,
    find_start,
    huber_of,
    is_lower_below,
    mean_of,
    objective,
    sampled,
    with_rule,
)
from powerkern.kernels.robust.weights import (
    COUNTS_WORK,
    Counts,
    CountsWork,
    Nodes,
    counts_of,
    inside_of,
    median_and_mad,
    outside_of,
    part_of,
    total_of,
    unit_of,
)
from powerkern.kernels.transforms.family import is_mirrored, lowest
from powerkern.kernels.transforms.rectified import (
    BOTH,
    NOT_RECTIFIED,
    QUARTILES,
    ROOM,
    SortedColumn,
    log_at,
    rectified_log_at,
    transform_sorted,
    value_at,
)

_OK, _FIXED, _CONSTANT, _EMPTY = int(Status.OK), int(Status.FIXED), int(Status.CONSTANT), int(Status.EMPTY)
_UNREPRESENTABLE, _NOT_CERTIFIED = int(Status.UNREPRESENTABLE), int(Status.NOT_CERTIFIED)
_MULTIMODAL, _NO_SPREAD, _SCANNED = int(Status.MULTIMODAL), int(Status.NO_SPREAD), int(Status.SCANNED)
_NOT_SETTLED, _TAIL_KEPT, _FEW_VALUES = int(Status.NOT_SETTLED), int(Status.TAIL_KEPT), int(Status.FEW_VALUES)

_ONE_PASS, _REFIT, _REFIT_BOTH_SIDES = int(Route.ONE_PASS), int(Route.REFIT), int(Route.REFIT_BOTH_SIDES)

#: The constant of R's mad(), which prestandardises.
_MAD_FACTOR = 1.4826
#: Among so many values none can be told to be an outlier (with allowance for the rounding of weights).
_FEW = 3.0 + 1e-9
#: Fits in ever wider intervals (convention "cellwise"), and reweighting steps until the values kept settle.
_MAX_FITS, _MAX_TURNS = 20, 50
#: By how much the share of values at their quantiles is to be larger for the start that rectifies both sides; and what
#: a value left out counts.
_BETTER, _LEFT_OUT = 0.02, 0.5
#: R widens the interval where lambda is that near to an end, as a fraction of its length.
_END = 0.05


class _Prescaling(NamedTuple):
    """Prestandardisation: ``(x - center)/divisor`` (Yeo-Johnson), ``(x/divisor)**(1/power)`` (Box-Cox)."""

    center: float
    divisor: float
    power: float
    status: int


class Kept(NamedTuple):
    """The consecutive values within the cut-off, the location and scale that set it, and of which transform.

    Of the first and of the last value a weight may be left out: `below` and `above`.
    """

    start: int
    stop: int
    loc: float
    scale: float
    lmbda: float
    rule: int
    cutoff: float
    below: float
    above: float


# --- prestandardisation -------------------------------------------------------------------------------


@kernel
def _prestandardized(
    x: FloatArray, counts: Counts | None, family: int, options: Options, work: RobustWork
) -> tuple[_Prescaling, SortedColumn]:
    """The column that transforms act on, in `work.values`, and its signed logs in `work.logs`."""
    n, how = x.size, options.prestandardize
    lower, upper = change_ranks(counts, n, options)
    values, logs = work.values[: n + ROOM], work.logs[: n + ROOM]
    values[n:] = 1.0
    logs[n:] = 0.0
    median, mad = median_and_mad(x, counts)
    mad *= _MAD_FACTOR
    status = _OK if mad > 0.0 else _NO_SPREAD
    if not is_mirrored(family):
        divisor, power = median if how != RAW else 1.0, 1.0
        _logs_about(x, divisor, logs)
        if how == MAD:  # exp((ln x - median)/MAD)
            middle, power = median_and_mad(logs[:n], counts)
            power *= _MAD_FACTOR
            _standardize(logs[:n], middle, power, logs)
            divisor *= exp(middle)
        _exponentials(logs[:n], values)
        return _Prescaling(0.0, divisor, power, status), SortedColumn(values, logs, n, 0, 0.0, lower, upper)
    center, divisor = (0.0, 1.0) if how == RAW else (median, mad)
    _standardize(x, center, divisor, values)
    _signed_logs(values[:n], logs)
    n_negative = position_of(logs[:n], 0.0, 0.0, n >> 1)
    return _Prescaling(center, divisor, 1.0, status), SortedColumn(values, logs, n, n_negative, 2.0, lower, upper)


@kernel
def _standardize(x: FloatArray, center: float, divisor: float, out: FloatArray) -> None:
    widest_vectors()
    for i in range(x.size):
        out[i] = (x[i] - center) / divisor


@kernel
def _logs_about(x: FloatArray, divisor: float, logs: FloatArray) -> None:
    """logs = ln(x/divisor)."""
    widest_vectors()
    log_divisor = log(divisor)
    for i in range(x.size):
        logs[i] = centered_log(x[i], 0.0, divisor, log_divisor)


@kernel
def _exponentials(logs: FloatArray, values: FloatArray) -> None:
    widest_vectors()
    for i in range(logs.size):
        values[i] = exp(logs[i])


@kernel
def _signed_logs(values: FloatArray, logs: FloatArray) -> None:
    widest_vectors()
    for i in range(values.size):
        logs[i] = math.copysign(log1p(abs(values[i])), values[i])


# --- reweighting --------------------------------------------------------------------------------------


@kernel
def _kept(at: Sorted, lmbda: float, rule: int, adaptive: bool, options: Options) -> Kept:
    """The best window, or the values with ``|psi - loc| <= cutoff scale``; psi of all values stays in `at.y`."""
    transform_sorted(at.column, lmbda, rule, at.y)
    y = at.y[: at.column.n]
    if options.criterion == TRIMMED:
        best = best_window(at.counts, at, lmbda, options.fraction)
        return Kept(best.start, best.stop, math.nan, math.nan, lmbda, rule, math.nan, best.below, best.above)
    estimate = huber_of(y, at.counts, options.criterion)
    cutoff = _adapted_cutoff(y, at.counts, estimate, options.cutoff) if adaptive else options.cutoff
    reach, start, stop = cutoff * estimate.scale, 0, 0
    if 0.0 < reach < math.inf:
        start, stop = _within(y, estimate.loc, reach)
    return Kept(start, stop, estimate.loc, estimate.scale, lmbda, rule, cutoff, 0.0, 0.0)


@kernel
def _within(y: FloatArray, loc: float, reach: float) -> tuple[int, int]:
    """Where the sorted values with ``|y - loc| <= reach`` begin and end."""
    # the smallest number above reach: those at the cut-off itself are kept
    return position_of(y, loc, -reach, 0), position_of(y, loc, reach * (1.0 + EPS), y.size)


@kernel
def _adapted_cutoff(y: FloatArray, counts: Counts | None, estimate: LocScale, cutoff: float) -> float:
    """The cut-off, from `cutoff` up, beyond which there are most clearly more values than of a normal sample.

    The widest, `refits.N_WIDER` steps of `refits.WIDER` further out, where there are not clearly more beyond any.
    """
    n = total_of(counts, y.size) / unit_of(counts)
    chosen, most = cutoff + refits.N_WIDER * refits.WIDER, refits.EXCESS
    for k in range(refits.N_WIDER):
        trial = cutoff + k * refits.WIDER
        start, stop = _within(y, estimate.loc, trial * estimate.scale)
        below, above = outside_of(counts, start, stop, y.size)
        excess = refits.excess_beyond(trial, (below + above) / unit_of(counts), n)
        if excess > most:
            chosen, most = trial, excess
    return chosen


@kernel
def _refitted(
    at: Sorted,
    values: FloatArray,
    family: int,
    prescaling: _Prescaling,
    lmbda0: float,
    adaptive: bool,
    options: Options,
    work: RobustWork,
    row: FloatArray,
) -> Kept:
    """Maximum likelihood on the values kept, alternating with the choice of what is kept; ends with their moments.

    `values` are what is fitted: their exponent times `power` is lambda of the column. The first cut is made by
    `options.first_rule`: on the rectified transform outliers stand out. The values kept are those of the last fit;
    where there is none, and in R's conventions, those within the cut-off at the last lambda. Every round raises the
    trimmed likelihood.
    """
    trimmed, power = options.criterion == TRIMMED, prescaling.power
    to_the_end = trimmed or options.n_reweight == UNTIL_SETTLED
    n_fits = _MAX_TURNS if to_the_end else options.n_reweight
    n_turns = n_fits + 1 if options.cellwise or n_fits == 0 else n_fits
    last, settled = _nothing_kept(), False
    lmbda, status, n_eval = lmbda0, float(_OK), 0.0
    row[LMBDA], row[STATUS] = lmbda0 / power, status
    kept = last
    for turn in range(n_turns):
        rule = options.first_rule if turn == 0 and n_fits > 0 else NOT_RECTIFIED
        kept = _kept(at, lmbda, rule, adaptive and turn > 0, options)
        settled = _same_values(kept, last)
        if kept.stop - kept.start < 2 or settled:
            break
        given = row[LMBDA] if turn == n_fits else math.nan
        ends = _trimmed(at.counts, kept)
        weight = part_of(at.counts, kept.start, kept.stop)
        if not _fit_logs(at.column, weight, kept, prescaling, lmbda, given, work.mle.scratch.moments[0], row):
            _fit(weight, values[kept.start : kept.stop], family, given, work, row)
        _restore(at.counts, kept, ends)
        n_eval += row[N_EVAL]
        if is_identity(row) or row[STATUS] < 0.0:
            break
        row[STATUS] = status = status if given == given else row[STATUS]
        lmbda, last = row[LMBDA] * power, kept
    row[N_EVAL] = n_eval
    if row[STATUS] == _OK and to_the_end and not settled:
        row[STATUS] = _NOT_SETTLED
    return kept


@kernel
def _same_values(kept: Kept, last: Kept) -> bool:
    return kept.start == last.start and kept.stop == last.stop and kept.below == last.below and kept.above == last.above


@kernel
def _trimmed(counts: Counts | None, kept: Kept) -> tuple[float, float]:
    """Take from the weights of the first and the last value kept what is left out; returns them as they were."""
    if counts is None:
        return 0.0, 0.0
    first, last = counts.w[kept.start], counts.w[kept.stop - 1]
    counts.w[kept.start] -= kept.below
    counts.w[kept.stop - 1] -= kept.above
    return first, last


@kernel
def _restore(counts: Counts | None, kept: Kept, ends: tuple[float, float]) -> None:
    if counts is not None:
        counts.w[kept.start], counts.w[kept.stop - 1] = ends


@kernel
def _plain_fit(weight: None, part: FloatArray, family: int, given: float, work: RobustWork, row: FloatArray) -> None:
    fit_column(part, part[:0], family, given, work.mle, row)


@for_none(_plain_fit)
def _fit(weight: FloatArray, part: FloatArray, family: int, given: float, work: RobustWork, row: FloatArray) -> None:
    """Fit some values by maximum likelihood."""
    fit_weighted_column(part, weight, family, given, work.mle, row)


@kernel
def _nothing_kept() -> Kept:
    return Kept(0, 0, math.nan, math.nan, math.nan, NOT_RECTIFIED, math.nan, 0.0, 0.0)


@kernel
def _fit_logs(
    column: SortedColumn,
    weight: FloatArray | None,
    kept: Kept,
    prescaling: _Prescaling,
    start: float,
    given: float,
    moments: FloatArray,
    row: FloatArray,
) -> bool:
    """Fit values of a short column by the logs there are, from `start` (of the prestandardised column), or at `given`.

    False where their sums would lose digits, or were not meant for so many values: they are to be fitted otherwise.
    """
    mirrored, first, last, units = column.below > 0.0, kept.start, kept.stop, _units(column.below, prescaling)
    if last - first >= ONE_PASS_MIN or (mirrored and not first < column.n_negative < last):
        return False
    best = optimum_of_logs(column.logs[first:last], weight, mirrored, units, start / units.unit, given, moments)
    if best.status == _NOT_CERTIFIED:
        return False
    write_range(row, float(last - first), column.x[first], column.x[last - 1])
    write_fit(row, best, 0.0 if mirrored else 1.0, _ONE_PASS)
    return True


@kernel
def _units(below: float, prescaling: _Prescaling) -> LogUnits:
    """What the logs of a prestandardised column stand for."""
    if below > 0.0:
        return LogUnits(1.0, 0.0, 0.0)
    return LogUnits(prescaling.power, prescaling.divisor, log(prescaling.divisor))


@kernel
def _likelihood_of_all(
    values: FloatArray, weight: FloatArray | None, family: int, work: RobustWork, row: FloatArray
) -> None:
    """The likelihood of all values, of an estimator that leaves none out, in a row from those within the cut-off."""
    whole = work.sample[0, :N_RESULTS]
    _fit(weight, values, family, row[LMBDA], work, whole)
    row[NLL], row[CURVATURE] = whole[NLL], whole[CURVATURE]
    row[N_EVAL] += whole[N_EVAL]


@kernel
def _restandardize(row: FloatArray, y: FloatArray, weight: FloatArray | None, loc: float, scale: float) -> None:
    """Standardise by `loc` and `scale` of the transformed values instead of the mean and standard deviation of `y`."""
    mean, sd, total = mean_of(y, weight), 0.0, 0.0
    for i in range(y.size):
        each = 1.0 if weight is None else weight[i]
        sd += each * ((y[i] - mean) * (y[i] - mean))
        total += each
    sd = math.sqrt(sd / total)
    shift, factor = (loc - mean) / sd, scale / sd
    row[LOC] += shift * row[SCALE]
    row[SCALE] *= factor
    row[INTERCEPT] = (row[INTERCEPT] - shift) / factor
    row[SLOPE] /= factor


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
    n, aside = x.size, lane >= 0 and _suits_lanes(x.size, options)
    status = _refusal(x, family)
    if status != _OK:
        _write_unfitted(x, _total_weight(weight, n), status, row)
        return False
    prescaling, every = _prepared(x, weight, family, options, work)
    if prescaling.status != _OK:
        _write_unfitted(x, _total_weight(weight, n), prescaling.status, row)
        return False
    values = every.column.x[:n] if is_mirrored(family) else x
    found, chosen, kept = _fitted(every, values, family, prescaling, options, work, row, aside)
    if aside:
        _put_aside(every.column, prescaling, found, chosen, lane, work.eight)
        return True
    if _is_unfitted(row, kept):  # overflowed when prestandardised
        _write_unfitted(x, _total_weight(weight, n), _UNREPRESENTABLE, row)
        return False
    looked_at = options.criterion == QQ and not options.cellwise
    tail_kept = looked_at and _keeps_far_tail(every, row[LMBDA] * prescaling.power, kept, options)
    if options.criterion == CARROLL:
        _likelihood_of_all(values, part_of(every.counts, 0, n), family, work, row)
    n_kept = _weight_kept(every.counts, kept)
    share = n_kept / _total_weight(weight, n)
    correction = scale_correction(n_kept / _value_weight(every.counts), share, kept.cutoff, options)
    _finish(x, weight, every.counts, every.column.below, prescaling, found, kept, tail_kept, correction, chosen, row)
    if options.criterion == CARROLL:
        part = part_of(every.counts, kept.start, kept.stop)
        _restandardize(row, every.y[kept.start : kept.stop], part, kept.loc, kept.scale)
    return False


@kernel
def _fitted(
    every: Sorted,
    values: FloatArray,
    family: int,
    prescaling: _Prescaling,
    options: Options,
    work: RobustWork,
    row: FloatArray,
    aside: bool,
) -> tuple[Start, Options, Kept]:
    """A start, its rule, and unless it is put aside the fit from it; again in a wider interval, as R does."""
    low, high, n_eval = options.low, options.high, 0.0
    found, chosen, kept, widened = Start(math.nan, 0, 0, False, math.nan), options, _nothing_kept(), True
    for _ in range(_MAX_FITS):
        found, chosen = _started(every, low, high, family, options, work)
        if aside:
            return found, chosen, kept
        kept = _refitted(every, values, family, prescaling, found.lmbda, options.adaptive, chosen, work, row)
        n_eval += found.n_eval + row[N_EVAL]
        low, high, widened = _widened(low, high, row[LMBDA] * prescaling.power)
        if _is_unfitted(row, kept) or not (options.cellwise and widened):
            break
    row[N_EVAL] = n_eval
    if by_lanes(every, chosen):  # what the search says is that of a cubic, or of a parabola
        value = objective(every, found.lmbda, chosen)
        found = Start(found.lmbda, found.n_eval, found.n_rivals, found.inside, value)
    if row[STATUS] == _OK and (not found.inside or (options.cellwise and widened)):
        row[STATUS] = _NOT_CERTIFIED
    return found, chosen, kept


@kernel
def _started(
    every: Sorted, low: float, high: float, family: int, options: Options, work: RobustWork
) -> tuple[Start, Options]:
    """Where a fit begins, and by which rule: BOTH only where its start, if lower, is the better one."""
    chosen = with_rule(options, QUARTILES) if options.rule == BOTH else options
    found = find_start(every, low, high, chosen, work)
    if options.rule != BOTH or is_mirrored(family) or not found.lmbda > 0.0:
        return found, chosen
    better, n_eval = _is_better(every, found.lmbda, family, chosen, options, work)
    n_eval += found.n_eval
    if better:
        found, chosen = find_start(every, low, high, options, work), options
        n_eval += found.n_eval
    return Start(found.lmbda, int(n_eval), found.n_rivals, found.inside, found.value), chosen


@kernel
def _is_unfitted(row: FloatArray, kept: Kept) -> bool:
    return is_identity(row) or row[STATUS] < 0.0 or kept.stop - kept.start < 2


@kernel
def _is_better(
    every: Sorted, lmbda0: float, family: int, options: Options, rival: Options, work: RobustWork
) -> tuple[bool, float]:
    """Whether the start by another rule, if below `lmbda0`, leaves more values at their quantiles; and evaluations.

    Of long columns a few order statistics are looked at.
    """
    at = sampled(every, options, work) if every.column.n > SAMPLE else every
    if not is_lower_below(at, lmbda0, rival, work):
        return False, float(LANES)
    found = find_start(at, rival.low, rival.high, rival, work)
    if not found.lmbda < lmbda0:
        return False, float(LANES + found.n_eval)
    share, n_eval = _share_at_quantiles(at, lmbda0, family, options, work)
    other, n_more = _share_at_quantiles(at, found.lmbda, family, rival, work)
    return other > share + _BETTER, LANES + found.n_eval + n_eval + n_more


@kernel
def _share_at_quantiles(
    at: Sorted, lmbda0: float, family: int, options: Options, work: RobustWork
) -> tuple[float, float]:
    """Share of the values that the fit from `lmbda0` brings to the quantiles of the normal distribution it cuts off.

    A value kept counts 1 - rho of its distance from the quantile of its rank among those kept, another one a half. And
    the evaluations for it.
    """
    n, row = at.column.n, work.trial
    values, none = at.column.x[:n], _Prescaling(0.0, 1.0, 1.0, _OK)
    kept = _refitted(at, values, family, none, lmbda0, False, options, work, row)
    if _is_unfitted(row, kept):
        return 0.0, 0.0
    transform_sorted(at.column, row[LMBDA], NOT_RECTIFIED, at.y)
    left_out = 1.0 - inside_of(at.counts, kept.start, kept.stop) / inside_of(at.counts, 0, n)
    return _share_near(at.counts, at.y[:n], kept, options) + _LEFT_OUT * left_out, float(row[N_EVAL])


@kernel
def _plain_share_near(counts: None, y: FloatArray, kept: Kept, options: Options) -> float:
    return near_quantiles(y[kept.start : kept.stop], options.cutoff, options.c) / y.size


@for_none(_plain_share_near)
def _share_near(counts: Counts, y: FloatArray, kept: Kept, options: Options) -> float:
    """Share of the values that are at their quantiles."""
    return near_copies(y, counts, kept.start, kept.stop, options.cutoff, options.c) / counts.total


@kernel
def _no_counts(weight: None, n: int, work: CountsWork) -> None:
    return None


@for_none(_no_counts)
def _counts(weight: FloatArray, n: int, work: CountsWork) -> Counts | None:
    return counts_of(weight[:n], work)


@kernel
def _plain_scores(counts: None, n: int, options: Options, work: RobustWork) -> FloatArray:
    """One table serves all columns of a length."""
    scores = work.scores[:n]
    if work.scores_of[0] != n:
        normal_scores(scores)
        work.scores_of[0] = n
    return scores


@for_none(_plain_scores)
def _scores(counts: Counts, n: int, options: Options, work: RobustWork) -> FloatArray | Nodes:
    """The normal scores of a column, where its objective has any."""
    if options.criterion == QQ:
        return normal_nodes(counts, PAPER, CLOSE * options.c)
    nodes = counts.nodes
    return Nodes(nodes.row, nodes.score, nodes.spread, nodes.weight)


@kernel
def _total_weight(weight: FloatArray | None, n: int) -> float:
    """The weight of the first n values."""
    if weight is None:
        return float(n)
    total = 0.0
    for i in range(n):
        total += weight[i]
    return total


@kernel
def _prepared(
    x: FloatArray, weight: FloatArray | None, family: int, options: Options, work: RobustWork
) -> tuple[_Prescaling, Sorted]:
    """How a sorted column without NaN is prestandardised, and what its objective is evaluated on."""
    n = x.size
    counts = _counts(weight, n, work.counts)
    prescaling, column = _prestandardized(x, counts, family, options, work)
    scores, jacobian = _scores(counts, n, options, work), math.nan
    if options.criterion == CARROLL:
        jacobian = mean_of(column.logs[:n], part_of(counts, 0, n))
    outward = (work.mle.spare, work.mle.split, work.mle.weight)
    return prescaling, Sorted(column, counts, scores, jacobian, work.y[: n + ROOM], work.lanes, outward)


@kernel
def _widened(low: float, high: float, lmbda: float) -> tuple[float, float, bool]:
    """A wider interval where lambda ended close to an end, as in R, and whether it did."""
    margin = _END * (high - low)
    if lmbda - low < margin:
        return 1.0 + 2.0 * (low - 1.0), high, True
    if high - lmbda < margin:
        return low, 1.0 + 2.0 * (high - 1.0), True
    return low, high, False


@kernel
def _count(x: FloatArray) -> int:
    """How many values come before the NaN that end a sorted column."""
    low, high = 0, x.size
    while low < high:
        middle = (low + high) >> 1
        if x[middle] == x[middle]:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _refusal(x: FloatArray, family: int) -> int:
    """Why a sorted column cannot be fitted, or OK."""
    n = x.size
    if n == 0:
        return _EMPTY
    if x[0] == -math.inf or x[n - 1] == math.inf:
        return BAD_INFINITE
    if x[0] <= lowest(family):
        return BAD_NOT_POSITIVE
    return _CONSTANT if x[0] == x[n - 1] else _OK


@kernel
def _write_unfitted(x: FloatArray, n_obs: float, status: int, row: FloatArray) -> None:
    n = x.size
    write_range(row, n_obs, x[0] if n > 0 else math.nan, x[n - 1] if n > 0 else math.nan)
    write_identity(row, status)


@kernel
def _finish(
    x: FloatArray,
    weight: FloatArray | None,
    counts: Counts | None,
    below: float,
    prescaling: _Prescaling,
    found: Start,
    kept: Kept,
    tail_kept: bool,
    correction: float,
    options: Options,
    row: FloatArray,
) -> None:
    """Complete a row: what concerns the column as a whole, and its location and scale by the estimator's rule."""
    nll = row[NLL] + log(prescaling.divisor) if below > 0.0 else row[NLL]
    write_range(row, _total_weight(weight, x.size), x[0], x[-1])
    row[NLL], row[LMBDA0], row[CENTER] = nll, found.lmbda / prescaling.power, prescaling.center
    row[OBJECTIVE] = found.value
    row[DIVISOR] = _divisor(below, prescaling)
    if row[STATUS] == _OK:
        row[STATUS] = _MULTIMODAL if found.n_rivals > 0 else _SCANNED
    is_short = row[N_OBS] <= _FEW * _value_weight(counts)
    if is_short and row[STATUS] != _NOT_CERTIFIED:
        row[STATUS] = _FEW_VALUES
    if options.criterion == CARROLL:
        return
    row[ROUTE] = _REFIT_BOTH_SIDES if options.rule == BOTH else _REFIT
    row[N_KEPT] = _weight_kept(counts, kept)
    row[KEPT_LOW], row[KEPT_HIGH] = x[kept.start], x[kept.stop - 1]
    if tail_kept and not is_short and row[STATUS] != _NOT_CERTIFIED:
        row[STATUS] = _TAIL_KEPT
    row[SCALE] *= correction
    row[INTERCEPT] /= correction
    row[SLOPE] /= correction
    if options.criterion == QQ and kept.rule == NOT_RECTIFIED:
        reach = kept.cutoff * kept.scale
        low = _original(kept.loc - reach, kept.lmbda, below, prescaling)
        high = _original(kept.loc + reach, kept.lmbda, below, prescaling)
        row[KEPT_LOW], row[KEPT_HIGH] = _limit(x, kept.start, low, -1.0), _limit(x, kept.stop - 1, high, 1.0)


@kernel
def scale_correction(n_kept: float, share: float, cutoff: float, options: Options) -> float:
    """What makes the standard deviation of the values kept that of all where they are normal; R divides by n - 1."""
    if options.cellwise:
        return math.sqrt(n_kept / (n_kept - 1.0))
    if options.criterion == QQ:
        return 1.0 / sd_within(cutoff)
    return 1.0 / sd_within(-normal_quantile(0.5 - 0.5 * share)) if share < 1.0 else 1.0


@kernel
def _keeps_far_tail(at: Sorted, lmbda: float, kept: Kept, options: Options) -> bool:
    """Whether all values on one side were kept, and many of them are far out on the transform rectified there."""
    n = at.column.n
    if kept.stop <= kept.start or (kept.start > 0 and kept.stop < n):
        return False
    transform_sorted(at.column, lmbda, BOTH, at.y)
    y = at.y[:n]
    estimate = huber_of(y, at.counts, options.criterion)
    reach = refits.FAR * estimate.scale
    if not 0.0 < reach < math.inf:
        return False
    low = inside_of(at.counts, 0, position_of(y, estimate.loc, -reach, 0)) if kept.start == 0 else 0.0
    high = inside_of(at.counts, position_of(y, estimate.loc, reach, n), n) if kept.stop == n else 0.0
    return max(low, high) >= max(refits.FAR_NUMBER * unit_of(at.counts), refits.FAR_SHARE * inside_of(at.counts, 0, n))


@kernel
def _weight_kept(counts: Counts | None, kept: Kept) -> float:
    """The weight of the values kept."""
    if counts is None:
        return float(kept.stop - kept.start)
    return (inside_of(counts, kept.start, kept.stop) - kept.below - kept.above) / counts.factor


@kernel
def _value_weight(counts: Counts | None) -> float:
    """The weight of what counts as one value."""
    if counts is None:
        return 1.0
    return counts.unit / counts.factor


@kernel
def _divisor(below: float, prescaling: _Prescaling) -> float:
    """What values of the column are divided by; that of Box-Cox leaves lambda as it is."""
    return prescaling.divisor if below > 0.0 else 1.0


@kernel
def _original(y: float, lmbda: float, below: float, prescaling: _Prescaling) -> float:
    """The value of the column whose transform is y; the end of the range beyond it."""
    return _value_of(log_at(y, lmbda, below), below, prescaling)


@kernel
def _value_of(at: float, below: float, prescaling: _Prescaling) -> float:
    """The value of the column with this signed log."""
    if below == 0.0:
        return prescaling.divisor * exp(prescaling.power * at)
    return prescaling.center + prescaling.divisor * value_at(at, below)


@kernel
def _limit(x: FloatArray, last: int, bound: float, side: float) -> float:
    """A bound that keeps x[last] but, however it was rounded, not its neighbour on that side (-1 or 1)."""
    if not (bound - x[last]) * side >= 0.0:
        return float(x[last])
    beyond = last + int(side)
    if 0 <= beyond < x.size and not (x[beyond] - bound) * side > 0.0:
        return float(x[last])
    return bound


# --- short columns, side by side ------------------------------------------------------------------------


@kernel
def _suits_lanes(n: int, options: Options) -> bool:
    """Whether columns of n values are fitted side by side."""
    suited = n <= ALL and options.criterion == QQ and not options.cellwise and options.n_reweight != 0
    return suited and (options.first_rule == NOT_RECTIFIED) == (options.rule == NOT_RECTIFIED)


@kernel
def _put_aside(
    column: SortedColumn, prescaling: _Prescaling, found: Start, options: Options, lane: int, eight: refits.Eight
) -> None:
    """What is needed to go on with a column later."""
    refits.copy_to_lane(column, lane, eight)
    fields = eight.fields
    fields[refits.START, lane], fields[refits.VALUE, lane] = found.lmbda, found.value
    fields[refits.INSIDE, lane] = int(found.inside)
    fields[refits.N_SEARCHED, lane], fields[refits.N_RIVALS, lane] = found.n_eval, found.n_rivals
    fields[refits.CENTER, lane], fields[refits.DIVISOR, lane] = prescaling.center, prescaling.divisor
    fields[refits.POWER, lane], fields[refits.BOTH_SIDES, lane] = prescaling.power, int(options.rule == BOTH)


@kernel
def _fit_rows(columns: FloatArray, family: int, options: Options, work: RobustWork, out: FloatArray) -> None:
    """Fit short columns side by side, with others as long, and one by one those that need more care, and long ones."""
    for j in range(columns.shape[0]):
        out[j, STATUS], out[j, N_OBS] = LEFT, _count(columns[j])
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
                work.eight.fields[refits.ROW, lane] = j
                n_aside += 1
        if n_aside == LANES or (n_aside > 0 and j == columns.shape[0] - 1):
            _fit_aside(columns, n, n_aside, family, options, work.scores, work.eight, out)
            n_aside = 0


@kernel
def _fit_aside(
    columns: FloatArray,
    n: int,
    n_aside: int,
    family: int,
    options: Options,
    scores: FloatArray,
    eight: refits.Eight,
    out: FloatArray,
) -> None:
    """Fit the columns put aside, of n values, or leave them."""
    below = 2.0 if is_mirrored(family) else 0.0
    lower, upper = change_ranks(None, n, options)
    n_turns = _MAX_TURNS if options.n_reweight == UNTIL_SETTLED else options.n_reweight
    rectified = options.first_rule != NOT_RECTIFIED
    refits.refit(
        eight,
        n_aside,
        refits.Shape(n, lower, upper, below),
        scores[:n],
        HUBER_K,
        options.c,
        options.cutoff,
        n_turns,
        rectified,
        options.adaptive,
    )
    for lane in range(n_aside):
        j = int(eight.fields[refits.ROW, lane])
        if eight.fields[refits.FITTED, lane] > 0.0:
            _write_lane(columns[j, :n], eight.fields[:, lane], below, options, out[j])


@kernel
def _write_lane(x: FloatArray, fields: FloatArray, below: float, options: Options, row: FloatArray) -> None:
    """The row of a column from the fields of its lane; its status is LEFT where these are beyond float64."""
    prescaling = _Prescaling(fields[refits.CENTER], fields[refits.DIVISOR], fields[refits.POWER], _OK)
    start = Start(
        fields[refits.START],
        int(fields[refits.N_SEARCHED]),
        int(fields[refits.N_RIVALS]),
        fields[refits.INSIDE] > 0.0,
        fields[refits.VALUE],
    )
    rule, units = QUARTILES if fields[refits.CUT_RECTIFIED] > 0.0 else NOT_RECTIFIED, _units(below, prescaling)
    first, last = int(fields[refits.FIRST]), int(fields[refits.LAST])
    loc, scale, lmbda, cutoff = refits.CUT_LOC, refits.CUT_SCALE, refits.CUT_AT, refits.CUT_OFF
    kept = Kept(first, last, fields[loc], fields[scale], fields[lmbda], rule, fields[cutoff], 0.0, 0.0)
    exponent, n_eval = fields[refits.EXPONENT] / units.unit, int(fields[refits.N_SEARCHED] + fields[refits.N_REFIT])
    mean, variance, curvature = fields[refits.MEAN], fields[refits.VARIANCE], fields[refits.CURVATURE]
    best = optimum_in(units, exponent, mean, variance, curvature, fields[refits.JACOBIAN], n_eval, _OK)
    write_fit(row, best, 0.0 if below > 0.0 else 1.0, _ONE_PASS)
    if is_identity(row):
        row[STATUS] = LEFT
        return
    if options.n_reweight == UNTIL_SETTLED and not fields[refits.SETTLED] > 0.0:
        row[STATUS] = _NOT_SETTLED
    elif not start.inside:
        row[STATUS] = _NOT_CERTIFIED
    chosen = options if fields[refits.BOTH_SIDES] > 0.0 or options.rule != BOTH else with_rule(options, QUARTILES)
    correction = 1.0 / sd_within(kept.cutoff)
    _finish(x, None, None, below, prescaling, start, kept, fields[refits.TAIL] > 0.0, correction, chosen, row)


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
    x = x[: _count(x)]
    out[:] = math.nan
    if _refusal(x, family) != _OK:
        return
    prescaling, every = _prepared(x, weight, family, options, work)
    if prescaling.status != _OK:
        return
    for k in range(lmbdas.size):
        out[k] = objective(every, lmbdas[k] * prescaling.power, options)


# --- entries ------------------------------------------------------------------------------------------


_ROBUST_WORK = named_tuple(
    RobustWork, WORK, COLUMN, COLUMN, COLUMN, COLUMN, COUNTS, ROWS, ROWS, ROWS, COLUMN, COLUMN,
    COUNTS_WORK, COUNTS_WORK, CELL_WORK, refits.EIGHT,
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
        fit_sorted(columns[j, : _count(columns[j])], weights[j], family, options, work, out[j], -1)


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
    """What the estimator minimises, of each sorted row of `columns` (as it is prestandardised) at each lambda.

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


# --- what is kept at a lambda -----------------------------------------------------------------------


#: What `cut_column` finds: the interval of values kept, weights before and after it, location and scale of the
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
    """What of a sorted column with weights is kept at a lambda of the data, and its transform, rectified by `rule`.

    `adaptive`: 1 for a cut-off that is, 0 for that of the options.
    """
    prescaling, every = _prepared(x, weight, family, options, work)
    at = lmbda * prescaling.power
    kept = _kept(every, at, rule, adaptive > 0, options)
    copy(every.y[: x.size], y)
    reach = kept.cutoff * kept.scale
    column = every.column
    out[CUT_LOW] = _value_of(rectified_log_at(kept.loc - reach, column, at, rule), column.below, prescaling)
    out[CUT_HIGH] = _value_of(rectified_log_at(kept.loc + reach, column, at, rule), column.below, prescaling)
    before, after = outside_of(every.counts, kept.start, kept.stop, x.size)
    factor = unit_of(every.counts) / _value_weight(every.counts)
    out[CUT_BEFORE], out[CUT_AFTER] = (before + kept.below) / factor, (after + kept.above) / factor
    out[CUT_LOC], out[CUT_SCALE], out[CUT_OFF] = kept.loc, kept.scale, kept.cutoff
    out[CUT_CENTER], out[CUT_DIVISOR] = prescaling.center, _divisor(column.below, prescaling)
    out[CUT_TAIL] = _keeps_far_tail(every, at, kept, options)
