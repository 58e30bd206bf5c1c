"""Reweighted maximum likelihood ([1]_): repeated fits to the values within the cut-off.

In the paper, lambda is fitted twice by maximum likelihood with the weights of [1]_, eq. (16). Three things are not in
the paper: the cut-off rules of `adaptive_rewml` (`step_rule`), stopping once the values kept do not change, and the
method of fitting.

The logs of the values have already been computed, and raw sums over them nearly always suffice (`fit_by_logs`). If raw
sums lose digits, the values are fitted in two passes (`fit_in_two_passes`) by a separate entry, which most data do not
need.

References
----------
.. [1] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning 113, 2024,
   4953-4975.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from powerkern._jit import kernel, specialize_on_none
from powerkern._status import Route, Status
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import EPS
from powerkern.kernels.likelihood.mle import two_pass_column
from powerkern.kernels.likelihood.one_pass import optimum_of_logs
from powerkern.kernels.likelihood.optimum import write_fit
from powerkern.kernels.location.loc_scale import LocScale
from powerkern.kernels.location.order_statistics import find_position
from powerkern.kernels.location.weights import FrequencyWeights, weights_between
from powerkern.kernels.results import DEFERRED, LMBDA, N_EVAL, STATUS, is_identity, write_range
from powerkern.kernels.robust.column import Column, Prestandardized
from powerkern.kernels.robust.options import UNTIL_SETTLED, Options
from powerkern.kernels.robust.prestandardization import log_units
from powerkern.kernels.robust.scratch import RobustWork
from powerkern.kernels.transforms.family import is_mirrored
from powerkern.kernels.transforms.rectified import NOT_RECTIFIED

_OK, _NOT_CERTIFIED = int(Status.OK), int(Status.NOT_CERTIFIED)
_NOT_SETTLED = int(Status.NOT_SETTLED)
_ONE_PASS = int(Route.ONE_PASS)
#: Largest number of reweighting steps until the values kept no longer change; a safeguard.
MAX_STEPS = 50
#: Fits of at least _LONG values start from the optimum of every _STRIDE-th value, which takes a sixteenth of the time.
_LONG, _STRIDE = 2048, 16


class KeptRange(NamedTuple):
    """The half-open index range of the sorted values kept, with the location, scale and cut-off that determined it."""

    start: int  #: index of the first value kept
    stop: int  #: one past the last value kept
    loc: float  #: location of the transformed values
    scale: float  #: scale of the transformed values
    lmbda: float  #: lambda of the transform
    rule: int  #: rectification rule of the transform (`kernels.transforms.rectified`)
    cutoff: float  #: the largest distance from `loc` of a value that is kept, in scales
    excluded_low: float  #: the part of the first value's weight that is not kept
    excluded_high: float  #: the part of the last value's weight that is not kept


#: Selects the values to keep at a lambda, and leaves the transform in `column.y`: (column, lambda, rule, adaptive,
#: options, work).
Keep = Callable[[Prestandardized, float, int, bool, Options, RobustWork], KeptRange]
#: Fits the values kept into a row of results, or sets the status DEFERRED: (column, values kept, start, given, work,
#: row); for the arguments see `fit_by_logs`.
Fit = Callable[[Column, KeptRange, float, float, RobustWork, FloatArray], None]


# --- the values within the cut-off ----------------------------------------------------------------------


@kernel
def within_cutoff(y: FloatArray, estimate: LocScale, cutoff: float, lmbda: float, rule: int) -> KeptRange:
    """Return the range of sorted values with ``|y - loc| <= cutoff scale``, whose weight in [1]_, eq. (16), is 1.

    Parameters
    ----------
    y : (n,)
        The transformed values, ascending.
    estimate : LocScale
        Location and scale of the transformed values.
    cutoff : float
        The largest distance of a kept value from the location, in units of the scale.
    lmbda : float
        The lambda of the transform, recorded in the result.
    rule : int
        The rectification rule of the transform (`kernels.transforms.rectified`), recorded in the result.
    """
    distance, start, stop = cutoff * estimate.scale, 0, 0
    # [1]_, eq. (16): the values of weight 1 are consecutive, since values are sorted
    if 0.0 < distance < math.inf:
        start, stop = positions_within(y, estimate.loc, distance)
    return KeptRange(start, stop, estimate.loc, estimate.scale, lmbda, rule, cutoff, 0.0, 0.0)


@kernel
def positions_within(y: FloatArray, loc: float, distance: float) -> tuple[int, int]:
    """Return the first index, and one more than the last index, of the sorted values with ``|y - loc| <= distance``."""
    # search up to the smallest number above distance, so that values exactly at the cut-off are kept
    return find_position(y, loc, -distance, 0), find_position(y, loc, distance * (1.0 + EPS), y.size)


# --- the fit of the values kept -------------------------------------------------------------------------


@kernel
def kept_by_index(start: int, stop: int) -> KeptRange:
    """Return the `KeptRange` of the values start, ..., stop - 1, without a cut-off."""
    return KeptRange(start, stop, math.nan, math.nan, math.nan, NOT_RECTIFIED, math.nan, 0.0, 0.0)


@kernel
def fit_by_logs(column: Column, kept: KeptRange, start: float, given: float, work: RobustWork, row: FloatArray) -> None:
    """Fit the values kept, using raw sums over their logs; set the status DEFERRED if these would lose digits.

    Parameters
    ----------
    column : Column
        The column, in the units of the data and prestandardised.
    kept : KeptRange
        The values kept.
    start : float
        The lambda to start the search from, for the prestandardised column.
    given : float
        A given lambda, in units of the data; NaN if lambda is to be fitted.
    work : RobustWork
        Scratch.
    row : (N_RESULTS,)
        Receives the results.
    """
    sorted_column, counts, first, last = column.standardized.column, column.standardized.counts, kept.start, kept.stop
    mirrored, units = sorted_column.negative_shift > 0.0, log_units(sorted_column.negative_shift, column.prescaling)
    row[STATUS], row[N_EVAL], n_eval = DEFERRED, 0.0, 0
    if mirrored and not first < sorted_column.n_negative < last:
        return
    ends = _exclude_ends(counts, kept)
    logs, weight, exponent = sorted_column.logs[first:last], weights_between(counts, first, last), start / units.unit
    if logs.size >= _LONG and given != given:
        few, of_few = _thin(weight, logs, work.mle.spare, work.mle.split)
        rough = optimum_of_logs(few, of_few, mirrored, units, exponent, given)
        n_eval = rough.n_eval
        exponent = rough.exponent if rough.status != _NOT_CERTIFIED else exponent
    best = optimum_of_logs(logs, weight, mirrored, units, exponent, given)
    _restore(counts, kept, ends)
    if best.status != _NOT_CERTIFIED:
        write_range(row, float(last - first), sorted_column.x[first], sorted_column.x[last - 1])
        write_fit(row, best, 0.0 if mirrored else 1.0, _ONE_PASS, given)
    row[N_EVAL] = n_eval + best.n_eval


@kernel
def _plain_thin(
    weight: None, logs: FloatArray, out: FloatArray, weight_out: FloatArray
) -> tuple[FloatArray, FloatArray | None]:
    n = logs.size // _STRIDE
    for i in range(n):
        out[i] = logs[i * _STRIDE + _STRIDE // 2]
    return out[:n], None


@specialize_on_none(_plain_thin)
def _thin(
    weight: FloatArray, logs: FloatArray, out: FloatArray, weight_out: FloatArray
) -> tuple[FloatArray, FloatArray | None]:
    """Return every _STRIDE-th of the sorted logs and of their weights, copied to `out` and `weight_out`."""
    few, _ = _plain_thin(None, logs, out, weight_out)
    return few, _plain_thin(None, weight, weight_out, weight_out)[0]


@kernel
def fit_in_two_passes(
    column: Column, kept: KeptRange, start: float, given: float, work: RobustWork, row: FloatArray
) -> None:
    """Fit the values kept by `fit_by_logs` or, if that defers, in two passes (for Box-Cox, from the original values).

    Parameters
    ----------
    column : Column
        The column, in the units of the data and prestandardised.
    kept : KeptRange
        The values kept.
    start : float
        The lambda to start the search from, for the prestandardised column.
    given : float
        A given lambda, in units of the data; NaN if lambda is to be fitted.
    work : RobustWork
        Scratch.
    row : (N_RESULTS,)
        Receives the results.
    """
    fit_by_logs(column, kept, start, given, work, row)
    if row[STATUS] == DEFERRED:
        counts, values = (
            column.standardized.counts,
            column.standardized.column.x if is_mirrored(column.family) else column.x,
        )
        part = values[kept.start : kept.stop]
        ends = _exclude_ends(counts, kept)
        two_pass_column(
            part, _as_vector(weights_between(counts, kept.start, kept.stop), part), column.family, given, work.mle, row
        )
        _restore(counts, kept, ends)


@kernel
def _empty(weight: None, part: FloatArray) -> FloatArray:
    return part[:0]


@specialize_on_none(_empty)
def _as_vector(weight: FloatArray, part: FloatArray) -> FloatArray:
    """Return `weight` or, if it is None, an empty array (a slice of `part`), as `two_pass_column` expects."""
    return weight


@kernel
def _exclude_ends(counts: FrequencyWeights | None, kept: KeptRange) -> tuple[float, float]:
    """Subtract the excluded parts from the weights of the first and last value kept; return the original weights."""
    if counts is None:
        return 0.0, 0.0
    first, last = counts.w[kept.start], counts.w[kept.stop - 1]
    counts.w[kept.start] -= kept.excluded_low
    counts.w[kept.stop - 1] -= kept.excluded_high
    return first, last


@kernel
def _restore(counts: FrequencyWeights | None, kept: KeptRange, ends: tuple[float, float]) -> None:
    if counts is not None:
        counts.w[kept.start], counts.w[kept.stop - 1] = ends


# --- steps --------------------------------------------------------------------------------------------


@kernel
def max_fits(options: Options) -> int:
    """Return the largest number of reweighting steps that the options allow."""
    return MAX_STEPS if options.n_reweight == UNTIL_SETTLED else options.n_reweight


@kernel
def step_rule(step: int, options: Options) -> tuple[int, bool]:
    """Return the rectification rule of the transform in a reweighting step, and whether its cut-off is adaptive.

    Steps are numbered from 0. The first step uses `options.first_rule`, since the rectified transform reveals outliers.
    """
    rule = options.first_rule if step == 0 and options.n_reweight != 0 else NOT_RECTIFIED
    return rule, options.adaptive and step > 0


@kernel
def reweight(
    keep: Keep,
    fit: Fit,
    column: Column,
    lmbda0: float,
    max_steps: int,
    options: Options,
    work: RobustWork,
    row: FloatArray,
) -> KeptRange:
    """Alternate between choosing the values to keep and fitting them; return the values kept in the final step.

    If `max_steps` is one more than the number of fits requested, the final step does not fit lambda: it chooses values
    at the lambda of the previous step, and evaluates the likelihood at this lambda. The function returns at once if
    `fit` defers the column.

    Parameters
    ----------
    keep : kernel
        Selects the values to keep at a lambda (`Keep`).
    fit : kernel
        Fits a range of values by maximum likelihood (`Fit`).
    column : Column
        The column, in the units of the data and prestandardised.
    lmbda0 : float
        The initial lambda, for the prestandardised column.
    max_steps : int
        Largest number of steps.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch.
    row : (N_RESULTS,)
        Receives the results.
    """
    power, n_fits = column.prescaling.power, max_fits(options)
    lmbda, status, n_eval = lmbda0, float(_OK), 0.0
    row[LMBDA], row[STATUS] = lmbda0 / power, status
    last = kept = kept_by_index(0, 0)
    settled = False
    for step in range(max_steps):
        rule, adaptive = step_rule(step, options)
        kept = keep(column.standardized, lmbda, rule, adaptive, options, work)
        settled = kept.start == last.start and kept.stop == last.stop
        settled = settled and kept.excluded_low == last.excluded_low and kept.excluded_high == last.excluded_high
        if kept.stop - kept.start < 2 or settled:
            break
        given = row[LMBDA] if step == n_fits else math.nan
        fit(column, kept, lmbda, given, work, row)
        n_eval += row[N_EVAL]
        if is_identity(row) or row[STATUS] < 0.0:
            break
        row[STATUS] = status = status if given == given else row[STATUS]
        lmbda, last = row[LMBDA] * power, kept
    row[N_EVAL] = n_eval
    if row[STATUS] == _OK and options.n_reweight == UNTIL_SETTLED and not settled:
        row[STATUS] = _NOT_SETTLED
    return kept
