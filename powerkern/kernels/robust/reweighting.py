"""Reweighted maximum likelihood: fits to the values within the cut-off."""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import kernel
from powerkern._status import Route, Status
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import EPS
from powerkern.kernels.likelihood.mle import fit_column
from powerkern.kernels.likelihood.one_pass import ONE_PASS_MIN
from powerkern.kernels.likelihood.one_pass_logs import optimum_of_logs
from powerkern.kernels.likelihood.optimum import write_fit
from powerkern.kernels.results import (
    CURVATURE,
    INTERCEPT,
    LMBDA,
    LOC,
    N_EVAL,
    N_RESULTS,
    NLL,
    SCALE,
    SLOPE,
    STATUS,
    is_identity,
    write_range,
)
from powerkern.kernels.robust.loc_scale import LocScale
from powerkern.kernels.robust.objective import huber_of
from powerkern.kernels.robust.options import TRIMMED, UNTIL_SETTLED, Options, Prestandardized, RobustWork
from powerkern.kernels.robust.order_statistics import position_of
from powerkern.kernels.robust.prestandardization import Prescaling, units_of
from powerkern.kernels.robust.reweighting_lanes import EXCESS, N_WIDER, WIDER, excess_beyond
from powerkern.kernels.robust.trimmed import best_window, mean_of
from powerkern.kernels.robust.weights import Counts, outside_of, part_of, total_of, unit_of
from powerkern.kernels.transforms.rectified import NOT_RECTIFIED, SortedColumn, transform_sorted

_OK = int(Status.OK)
_NOT_CERTIFIED = int(Status.NOT_CERTIFIED)
_NOT_SETTLED = int(Status.NOT_SETTLED)
_ONE_PASS = int(Route.ONE_PASS)
#: Reweighting steps until the values kept settle.
MAX_TURNS = 50


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


@kernel
def kept_at(at: Prestandardized, lmbda: float, rule: int, adaptive: bool, options: Options) -> Kept:
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

    The widest, N_WIDER steps of WIDER further out, where there are not clearly more beyond any.
    """
    n = total_of(counts, y.size) / unit_of(counts)
    chosen, most = cutoff + N_WIDER * WIDER, EXCESS
    for k in range(N_WIDER):
        trial = cutoff + k * WIDER
        start, stop = _within(y, estimate.loc, trial * estimate.scale)
        below, above = outside_of(counts, start, stop, y.size)
        excess = excess_beyond(trial, (below + above) / unit_of(counts), n)
        if excess > most:
            chosen, most = trial, excess
    return chosen


@kernel
def refitted(
    at: Prestandardized,
    values: FloatArray,
    family: int,
    prescaling: Prescaling,
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
    n_fits = MAX_TURNS if to_the_end else options.n_reweight
    n_turns = n_fits + 1 if options.cellwise or n_fits == 0 else n_fits
    last, settled = nothing_kept(), False
    lmbda, status, n_eval = lmbda0, float(_OK), 0.0
    row[LMBDA], row[STATUS] = lmbda0 / power, status
    kept = last
    for turn in range(n_turns):
        rule = options.first_rule if turn == 0 and n_fits > 0 else NOT_RECTIFIED
        kept = kept_at(at, lmbda, rule, adaptive and turn > 0, options)
        settled = _same_values(kept, last)
        if kept.stop - kept.start < 2 or settled:
            break
        given = row[LMBDA] if turn == n_fits else math.nan
        ends = _trimmed(at.counts, kept)
        weight = part_of(at.counts, kept.start, kept.stop)
        if not _fit_logs(at.column, weight, kept, prescaling, lmbda, given, row):
            fit_column(values[kept.start : kept.stop], weight, family, given, work.mle, row)
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
    """Reduce the weights of the first and the last value kept by the parts left out; returns them as they were."""
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
def nothing_kept() -> Kept:
    """No values: before the first fit."""
    return Kept(0, 0, math.nan, math.nan, math.nan, NOT_RECTIFIED, math.nan, 0.0, 0.0)


@kernel
def _fit_logs(
    column: SortedColumn,
    weight: FloatArray | None,
    kept: Kept,
    prescaling: Prescaling,
    start: float,
    given: float,
    row: FloatArray,
) -> bool:
    """Fit values of a short column by the logs there are, from `start` (of the prestandardised column), or at `given`.

    False where their sums would lose digits, or were not meant for so many values: they are to be fitted otherwise.
    """
    mirrored, first, last, units = column.below > 0.0, kept.start, kept.stop, units_of(column.below, prescaling)
    if last - first >= ONE_PASS_MIN or (mirrored and not first < column.n_negative < last):
        return False
    best = optimum_of_logs(column.logs[first:last], weight, mirrored, units, start / units.unit, given)
    if best.status == _NOT_CERTIFIED:
        return False
    write_range(row, float(last - first), column.x[first], column.x[last - 1])
    write_fit(row, best, 0.0 if mirrored else 1.0, _ONE_PASS)
    return True


@kernel
def likelihood_of_all(
    values: FloatArray, weight: FloatArray | None, family: int, work: RobustWork, row: FloatArray
) -> None:
    """The likelihood of all values, of an estimator that leaves none out, in a row from those within the cut-off."""
    whole = work.sample[0, :N_RESULTS]
    fit_column(values, weight, family, row[LMBDA], work.mle, whole)
    row[NLL], row[CURVATURE] = whole[NLL], whole[CURVATURE]
    row[N_EVAL] += whole[N_EVAL]


@kernel
def restandardize(row: FloatArray, y: FloatArray, weight: FloatArray | None, loc: float, scale: float) -> None:
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
