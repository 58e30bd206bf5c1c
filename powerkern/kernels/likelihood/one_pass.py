"""Find the optimum of a well-conditioned column from raw sums, formed in one pass per evaluation.

`kernels.likelihood.score` takes two passes over every block and handles any data, but most columns need only one pass.
If the mean of ``Y_0 = e^t - 1`` (t = m d, with logs d centered near their mean) is not much larger than its standard
deviation, the raw sums of Y_0, ..., Y_3 and of their products give the derivatives g', g'', g''' of the negative
log-likelihood to nearly full precision. Here Y_1, Y_2 and Y_3 are scaled derivatives of the transform in m, as defined
in `kernels.likelihood.score`.

All steps to the optimum except the last use sums in float32 (see `powerkern.kernels.likelihood.one_pass_sums`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from powerkern._jit import kernel, reduction, specialize_on_none
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import SMALLEST_NORMAL
from powerkern.kernels.elementary.log import log
from powerkern.kernels.likelihood.logs import (
    NOTHING,
    PreparedColumn,
    ValueSummary,
    describe_column,
    drop_missing,
    magnitude_range,
    merge_summaries,
    power_of_two_above,
    summarize_values,
)
from powerkern.kernels.likelihood.one_pass_sums import AnyFloats, LogKind, add_sums, round_weights, take_logs
from powerkern.kernels.likelihood.optimum import LogUnits, Optimum, exponent_of, optimum_in
from powerkern.kernels.likelihood.score_formulas import (
    Moments,
    central_moments,
    exponents_off_zero,
    has_root_near,
    moment_rate_squared,
    score_from_moments,
    shifted_score,
    taylor_moments,
    zero_sums,
)
from powerkern.kernels.likelihood.scratch import CHUNK, SAMPLE, Work
from powerkern.kernels.likelihood.two_pass import subsample_median
from powerkern.kernels.moments import slice_weights
from powerkern.kernels.optimize.newton import newton_start, newton_step
from powerkern.kernels.optimize.status import RUNNING
from powerkern.kernels.status_codes import FIXED, NOT_CERTIFIED, OK

#: Shortest column that is fitted from raw sums. A shorter one would be its own sample.
ONE_PASS_MIN = 256
#: The sample has one value in SAMPLE_STRIDE, but at least ONE_PASS_MIN and at most SAMPLE values.
SAMPLE_STRIDE = 16
#: Logs have an absolute error of 2e-16. Their standard deviation must be at least ONE_PASS_SPREAD, so that the relative
#: error of deviations is at most 2e-14, and |d| at most ONE_PASS_REACH, so that e^d does not overflow (e^709).
ONE_PASS_SPREAD, ONE_PASS_REACH = 1e-2, 600.0
#: Smallest standard deviation of the transformed values, by which errors are divided; relative errors are then at most
#: 2e-13.
ONE_PASS_SD = 1e-3
#: Smallest effective number of values, (sum w)^2/sum w^2 (Kish). If a few values carry nearly all the weight, the
#: reference must be one of them, as it is in `two_pass`.
MIN_EFFECTIVE = 32.0
#: Largest fraction of absent values that stay in the sums, to which they add nothing. If there are more, removing them
#: first is cheaper.
_MOST_ABSENT = 0.25
#: If removing absent values would leave fewer than ONE_PASS_MIN, keep them in place as long as at least this fraction
#: is present, since two passes would cost more.
_LEAST_PRESENT = 1.0 / 16.0
#: Number of values whose median is the reference, which only has to be typical of the column.
_FEW = 11
#: Largest Taylor step for the moments, in units of 1/sqrt(`moment_rate_squared`). Beyond it the truncated terms matter,
#: e.g. near exponent 0 with outliers (`tests/kernels/likelihood` has the columns). With a tenth, 17 of 234 simulated
#: columns leave lockstep and are no better; ten times as much changes none of them (report_constants lockstep).
TAYLOR_REACH = 1e-4
#: Largest number of evaluations; a column that has not converged by then is deferred.
_MAX_EVAL = 20


class _SampleLogs(NamedTuple):
    """Logs of a column or of its sample, in float32 or float64, with their weights and a summary."""

    d: AnyFloats
    weight: Any  #: in the dtype of `d`, or None
    both_signs: bool
    total: float  #: sum of the weights of the values that are present
    largest_log: float  #: the largest magnitude of a log
    jacobian: float  #: the weighted mean of the logs
    sd: float  #: weighted standard deviation of the logs; root mean square if there are both signs


class _HalleyResult(NamedTuple):
    """Result of Halley's iteration for one column."""

    x: float  #: the exponent
    evaluated_at: float  #: the exponent at which `moments` were evaluated
    n_eval: int
    good: bool  #: whether the iteration converged to a root without losing too many digits
    moments: Moments


class _HalleyTolerances(NamedTuple):
    """Tolerances of Halley's iteration on sums in float32 or float64."""

    #: the first step shorter than this, in units of 1/sqrt(`moment_rate_squared`), is the last; its error is of the
    #: order of its cube
    step: float
    floor: float  #: smallest |m| * sd at which sums are evaluated; below it Y_2 and Y_3 lose digits
    largest_t: float  #: largest |t|, so that squares of e^t do not overflow


_FLOAT32 = _HalleyTolerances(5e-2, 1e-2, 40.0)
FLOAT64 = _HalleyTolerances(2e-5, 1e-5, 340.0)
#: Evaluate moments at the start, without a step.
_EVALUATE_ONLY = _HalleyTolerances(math.inf, 1e-5, 340.0)


# --- from logs to the optimum -------------------------------------------------------------------------


@kernel
def _is_in_range(exponent: float, both_signs: bool, largest_log: float, largest_t: float) -> bool:
    """Return whether |exponent*log| <= `largest_t` for all logs, given the largest magnitude of a log.

    If there are both signs, this must also hold for 2 - exponent, the exponent of negative values.
    """
    return max(abs(exponent), abs(2.0 - exponent) if both_signs else 0.0) * largest_log <= largest_t


@kernel
def _weighted_sd(both_signs: bool, weight: float, total: float, squares: float) -> float:
    """Return the standard deviation of logs, given their total weight and the weighted sums of logs and squared logs.

    If there are both signs, return the root mean square instead.
    """
    mean = 0.0 if both_signs else total / weight
    return math.sqrt(max(squares / weight - mean * mean, 0.0))


@kernel
def _halley_iterations(logs: _SampleLogs, start: float, stage: _HalleyTolerances) -> _HalleyResult:
    """Take Halley steps on raw sums, beginning at the exponent `start`, until a step is below the tolerance.

    The result is not `good` if sums lose too many digits, or if convergence to a root is not certain.
    """
    x = at = start
    moments = zero_sums(0.0)
    state = newton_start(start, 2.0 / logs.sd, 0.0, _MAX_EVAL)
    while state.status == RUNNING:
        x = state.x
        at = exponents_off_zero(x, logs.both_signs, 2.0, stage.floor / logs.sd)
        if not _is_in_range(at, logs.both_signs, logs.largest_log, stage.largest_t):
            break
        moments = zero_sums(0.0)
        for i in range(0, logs.d.size, CHUNK):
            end = i + CHUNK
            moments = add_sums(moments, logs.d[i:end], slice_weights(logs.weight, i, end), at, logs.both_signs)
        moments, kept = central_moments(moments, logs.total)
        if not kept:
            break
        d1, d2, d3 = shifted_score(moments, logs.jacobian, x - at)
        state = newton_step(state, d1, d2, d3)
        if abs(state.x - x) * math.sqrt(moment_rate_squared(moments)) <= stage.step:
            given = stage.step == math.inf
            return _HalleyResult(x if given else state.x, at, state.n_eval, given or has_root_near(d1, d2, d3), moments)
    return _HalleyResult(x, at, state.n_eval, False, moments)


@kernel
def optimum_of_logs(
    d: FloatArray, weight: FloatArray | None, both_signs: bool, units: LogUnits, start: float, given: float
) -> Optimum:
    """Find the optimum of a column given by sorted logs, or evaluate the likelihood at a given exponent.

    If raw sums do not suit the column, or lose too many digits, the status is NOT_CERTIFIED and the other fields are
    meaningless.

    Parameters
    ----------
    d : (n,)
        Ascending logs; signed if there are both signs.
    weight : (n,)
        Weights of the values; empty or None if all are one.
    both_signs : bool
        Whether there are values of both signs.
    units : LogUnits
        The unit and reference of the logs.
    start : float
        The exponent at which the search starts.
    given : float
        The exponent at which to evaluate; NaN to search for the optimum.
    """
    n, effective, total, squares = _sum_and_squares(d, weight)
    largest_log, sd = max(-d[0], d[-1]), _weighted_sd(both_signs, n, total, squares)
    even = effective >= min(MIN_EFFECTIVE, 0.25 * d.size)
    if not (even and sd >= ONE_PASS_SPREAD and largest_log <= ONE_PASS_REACH):
        return _no_optimum(0)
    return _optimum_from(_SampleLogs(d, weight, both_signs, n, largest_log, total / n, sd), units, start, given, 0)


@reduction
def _sum_and_squares(d: FloatArray, weight: FloatArray | None) -> tuple[float, float, float, float]:
    """Return the total weight, the effective number of values, and the weighted sums of logs and squared logs.

    The effective number of values is (sum w)^2/sum w^2, or inf if there are no weights.
    """
    n = weight_squares = total = squares = 0.0
    for i in range(d.size):
        weighted = d[i]
        if weight is not None:
            weighted = weight[i] * d[i]
            n += weight[i]
            weight_squares += weight[i] * weight[i]
        total += weighted
        squares += weighted * d[i]
    if weight is None:
        return float(d.size), math.inf, total, squares
    return n, n * n / weight_squares, total, squares


@kernel
def _optimum_from(logs: _SampleLogs, units: LogUnits, start: float, given: float, n_eval: int) -> Optimum:
    """Find the optimum of float64 logs, or evaluate the likelihood at a given exponent.

    Parameters
    ----------
    logs : _SampleLogs
        The logs of all values.
    units : LogUnits
        The unit and reference of the logs.
    start : float
        The exponent at which the search starts.
    given : float
        The exponent at which to evaluate; NaN to search for the optimum.
    n_eval : int
        The number of evaluations made so far.
    """
    is_given = given == given
    result = _halley_iterations(
        logs, (given if is_given else start) * units.unit, _EVALUATE_ONLY if is_given else FLOAT64
    )
    n_eval += result.n_eval
    if not result.good:
        return _no_optimum(n_eval)
    moved = result.x - result.evaluated_at
    near = abs(moved) * math.sqrt(moment_rate_squared(result.moments)) <= TAYLOR_REACH
    mean, variance, curvature = taylor_moments(result.moments, moved)
    if not (near and variance >= ONE_PASS_SD * ONE_PASS_SD):
        return _no_optimum(n_eval)
    exponent, status = (given, FIXED) if is_given else (result.x / units.unit, OK)
    return optimum_in(units, exponent, mean, variance, curvature, logs.jacobian, n_eval, status)


@kernel
def _no_optimum(n_eval: int) -> Optimum:
    """Return an `Optimum` with the status NOT_CERTIFIED."""
    return Optimum(1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, n_eval, NOT_CERTIFIED)


# --- from values to the optimum -----------------------------------------------------------------------


@kernel
def one_pass_optimum(
    x: FloatArray, weight: FloatArray | None, family: int, lmbda: float, work: Work
) -> tuple[Optimum, PreparedColumn]:
    """Find the optimum of a column from raw sums, or evaluate the likelihood at a given `lmbda`.

    Returns the optimum, and the column with its summary. The status of the optimum is NOT_CERTIFIED if the sums lose
    too many digits, or if the column cannot be fitted.

    Parameters
    ----------
    x : (n,)
        The values; NaN if missing.
    weight : (n,)
        Weights of the values; empty or None if all are one.
    family : int
        BOX_COX or YEO_JOHNSON.
    lmbda : float
        The lambda at which to evaluate; NaN to search for the optimum.
    work : Work
        Scratch; receives the logs.
    """
    sample = _draw_sample(x, weight, family, work)
    fraction = sample.summary.n / sample.x.size
    if fraction < 1.0 - _MOST_ABSENT and not _LEAST_PRESENT * x.size < fraction * x.size < ONE_PASS_MIN:
        n = drop_missing(x, weight, work.packed, work.weight)
        x, weight = work.packed[:n], _remaining_weights(weight, work.weight, n)
        sample = _draw_sample(x, weight, family, work)
    best, column = _no_optimum(0), describe_column(x, weight, sample.summary, family)
    for _ in range(2):  # repeat if all values of the sample have one sign, but not all of the column
        best, known = _find_optimum(column, sample, family, lmbda, best.n_eval, work)
        if known.sign == column.sign:
            break
        column = known
    return best, known


@kernel
def _draw_sample(x: FloatArray, weight: FloatArray | None, family: int, work: Work) -> PreparedColumn:
    """Return at most SAMPLE evenly spaced values of a column, as a `PreparedColumn`."""
    stride = max(min(x.size // ONE_PASS_MIN, SAMPLE_STRIDE), (x.size + SAMPLE - 1) // SAMPLE, 1)
    some, part_weight = _copy_every(x, stride, work.split), _copy_every(weight, stride, work.weight_split)
    return describe_column(some, part_weight, summarize_values(some, part_weight), family)


@specialize_on_none()
def _copy_every(x: FloatArray, stride: int, out: FloatArray) -> FloatArray:
    """Copy every `stride`-th value to `out`; return the part of `out` that is filled."""
    some = out[: x.size // stride]
    for i in range(some.size):
        some[i] = x[i * stride]
    return some


@specialize_on_none()
def _remaining_weights(weight: FloatArray, out: FloatArray, n: int) -> FloatArray:
    return out[:n]


class _Reference(NamedTuple):
    """The reference of a column, whose log is subtracted from all logs, in the forms that the search needs."""

    units: LogUnits
    kind: LogKind
    is_normal: bool  #: whether offset + reference is a normal number, so that one can divide by it


class _Start(NamedTuple):
    """The exponent at which the search over all values starts."""

    exponent: float  #: the optimum of a sample, or 1
    n_eval: int  #: evaluations made so far
    is_optimum: bool  #: whether the exponent is the optimum of a sample
    has_distinct_logs: bool  #: whether the logs of the sample differ


@kernel
def _find_optimum(
    column: PreparedColumn, sample: PreparedColumn, family: int, lmbda: float, n_eval: int, work: Work
) -> tuple[Optimum, PreparedColumn]:
    """Find the optimum of a column from raw sums, given its sample; the core of `one_pass_optimum`.

    Parameters
    ----------
    column : PreparedColumn
        The column. Its summary and sign may be those of the sample.
    sample : PreparedColumn
        The sample.
    family : int
        BOX_COX or YEO_JOHNSON.
    lmbda : float
        The lambda at which to evaluate; NaN to search for the optimum.
    n_eval : int
        The number of evaluations made so far.
    work : Work
        Scratch.

    Returns
    -------
    Optimum
        The optimum. Its status is NOT_CERTIFIED if the sample or the summary of all values shows that raw sums do not
        suit the column, or if they lose too many digits.
    PreparedColumn
        The column, with the summary and the sign of all values if the search got that far.
    """
    exponent = exponent_of(lmbda, column.sign)
    is_given = exponent == exponent
    reference = _choose_reference(column, work)
    scale = _weight_scale(column.weight, sample.summary.weight)
    start = _Start(1.0, n_eval, False, True)
    suits = _suits_one_pass(column, sample) and reference.is_normal
    if suits and not is_given:
        start = _start_from_sample(sample, reference, scale, n_eval, work)
    if not (suits and start.has_distinct_logs):
        return _no_optimum(n_eval), column
    total, squares, sums, summary = _write_all_logs(column.x, column.weight, reference.kind, start, scale, work)
    described = describe_column(column.x, column.weight, summary, family)
    if described.status != OK or described.sign != column.sign:
        return _no_optimum(start.n_eval), described
    logs = _describe_all_logs(described, reference, total, squares, work)
    if not (_has_even_weights(summary, 1.0) and logs.sd >= ONE_PASS_SPREAD and logs.largest_log <= ONE_PASS_REACH):
        return _no_optimum(start.n_eval), described
    first = start.exponent
    if start.is_optimum:
        first = _refined_start(start.exponent, logs, sums, scale)
    return _optimum_from(logs, reference.units, first, exponent, start.n_eval), described


@kernel
def _suits_one_pass(column: PreparedColumn, sample: PreparedColumn) -> bool:
    """Return whether raw sums suit the column, judging by its sample.

    The column must be valid and long, and its weight must not be concentrated in a few values.
    """
    factor = column.x.size / sample.x.size
    return column.status == OK and column.x.size >= ONE_PASS_MIN and _has_even_weights(sample.summary, factor)


@kernel
def _choose_reference(column: PreparedColumn, work: Work) -> _Reference:
    """Choose the reference of a column's logs: the median of a few values, or 0 if there are both signs."""
    both_signs = column.sign == 0.0
    ref = 0.0 if both_signs else abs(subsample_median(column.x, _FEW, work.spare))
    base = column.offset + ref  # NaN if the few values are all missing
    is_normal = base >= SMALLEST_NORMAL
    base = base if is_normal else 1.0
    return _Reference(LogUnits(1.0, ref, log(base)), LogKind(both_signs, column.offset, 1.0 / base), is_normal)


@kernel
def _weight_scale(weight: FloatArray | None, total: float) -> float:
    """Return a power of two that scales weights into the range of float32, given the total weight of a sample."""
    return 1.0 if weight is None else 1.0 / power_of_two_above(total)


@kernel
def _has_even_weights(summary: ValueSummary, factor: float) -> bool:
    """Return whether the effective number of values, (sum w)^2/sum w^2, is at least MIN_EFFECTIVE.

    If `summary` describes a sample, `factor` is the number of values of the column per sampled value; otherwise 1.
    """
    return factor * summary.weight * summary.weight >= MIN_EFFECTIVE * summary.squares


@kernel
def _largest_log(summary: ValueSummary, kind: LogKind, log_ref: float) -> float:
    """Return the largest magnitude of the logs; NaN if the logarithm of a subnormal number is needed."""
    smallest, largest = magnitude_range(summary)
    low, high = kind.offset + smallest, kind.offset + largest
    return max(abs(log(high) - log_ref), abs(log(low) - log_ref)) if low >= SMALLEST_NORMAL else math.nan


@kernel
def _start_from_sample(sample: PreparedColumn, reference: _Reference, scale: float, n_eval: int, work: Work) -> _Start:
    """Return the optimum of the sample, to nearly float32 precision, as the start of the search over all values.

    Parameters
    ----------
    sample : PreparedColumn
        The sample.
    reference : _Reference
        The reference of the logs.
    scale : float
        Power of two that scales the weights into the range of float32.
    n_eval : int
        The number of evaluations made so far.
    work : Work
        Scratch.
    """
    n, summary, kind = sample.x.size, sample.summary, reference.kind
    d32, weight32 = work.d32[:n], round_weights(sample.weight, scale, work.weight32[:n])
    total, squares = take_logs(sample.x, sample.weight, kind, work.spare[:n], d32)
    sd = _weighted_sd(kind.both_signs, summary.weight, total, squares)
    if not sd > 0.0:
        return _Start(1.0, n_eval, False, False)
    largest_log = _largest_log(summary, kind, reference.units.log_ref)
    logs = _SampleLogs(d32, weight32, kind.both_signs, scale * summary.weight, largest_log, total / summary.weight, sd)
    result = _halley_iterations(logs, 1.0, _FLOAT32)
    exponent = exponents_off_zero(result.x, kind.both_signs, 2.0, _FLOAT32.floor / sd) if result.good else 1.0
    return _Start(exponent, n_eval + result.n_eval + 1, result.good, True)


@kernel
def _write_all_logs(
    x: FloatArray, weight: FloatArray | None, kind: LogKind, start: _Start, scale: float, work: Work
) -> tuple[float, float, Moments, ValueSummary]:
    """Write the logs of all values to ``work.spare``; return sums over the logs, and a summary of the values.

    Parameters
    ----------
    x : (n,)
        The values; NaN if missing.
    weight : (n,) or None
        Weights of the values; None if all are one.
    kind : LogKind
        The formula for the logs.
    start : _Start
        The exponent at which the search over all values starts.
    scale : float
        Power of two that scales the weights into the range of float32.
    work : Work
        Scratch; receives the logs.

    Returns
    -------
    total, squares : float
        Weighted sums of the logs and of their squares.
    sums : Moments
        Raw sums for a Halley step from the optimum of the sample, formed in float32 while a chunk is in the first-level
        cache; all 0 if the sample has no optimum.
    summary : ValueSummary
        Number, extremes and weights of the values.
    """
    total, squares, sums, summary = 0.0, 0.0, zero_sums(0.0), NOTHING
    for begin in range(0, x.size, CHUNK):
        end = min(begin + CHUNK, x.size)
        part_weight, d32 = slice_weights(weight, begin, end), work.d32[: end - begin]
        summary = merge_summaries(summary, summarize_values(x[begin:end], part_weight))
        part, part_squares = take_logs(x[begin:end], part_weight, kind, work.spare[begin:end], d32)
        total, squares = total + part, squares + part_squares
        if start.is_optimum:
            weight32 = round_weights(part_weight, scale, work.weight32[: end - begin])
            sums = add_sums(sums, d32, weight32, start.exponent, kind.both_signs)
    return total, squares, sums, summary


@kernel
def _describe_all_logs(
    column: PreparedColumn, reference: _Reference, total: float, squares: float, work: Work
) -> _SampleLogs:
    """Describe the logs of all values, which are in ``work.spare``.

    Parameters
    ----------
    column : PreparedColumn
        The column, with the summary of all values.
    reference : _Reference
        The reference of the logs.
    total, squares : float
        Weighted sums of the logs and of their squares.
    work : Work
        Holds the logs.
    """
    n, kind = column.summary.weight, reference.kind
    largest_log = _largest_log(column.summary, kind, reference.units.log_ref)
    sd = _weighted_sd(kind.both_signs, n, total, squares)
    return _SampleLogs(work.spare[: column.x.size], column.weight, kind.both_signs, n, largest_log, total / n, sd)


@kernel
def _refined_start(exponent: float, logs: _SampleLogs, sums: Moments, scale: float) -> float:
    """Return the exponent after one Halley step, based on float32 sums over all values.

    The exponent is returned unchanged if the sums lose too many digits.

    Parameters
    ----------
    exponent : float
        The exponent at which the sums were formed.
    logs : _SampleLogs
        The logs of all values.
    sums : Moments
        Raw sums in float32.
    scale : float
        Power of two by which the weights in the sums were multiplied.
    """
    if not _is_in_range(exponent, logs.both_signs, logs.largest_log, _FLOAT32.largest_t):
        return exponent
    moments, kept = central_moments(sums, scale * logs.total)
    if not kept:
        return exponent
    d1, d2, d3 = score_from_moments(moments, logs.jacobian)
    return newton_step(newton_start(exponent, 2.0 / logs.sd, 0.0, 2), d1, d2, d3).x
