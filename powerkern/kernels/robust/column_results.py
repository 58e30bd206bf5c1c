"""Write the results of a robust fit of one column: status, statistics, and the range of values kept."""

from __future__ import annotations

import math

from powerkern._jit import kernel
from powerkern._status import Route, Status
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.log import log
from powerkern.kernels.location.weights import FrequencyWeights, unscale_weight, weight_inside, weight_unit
from powerkern.kernels.results import (
    BAD_INFINITE,
    BAD_NOT_POSITIVE,
    CENTER,
    DEFERRED,
    DIVISOR,
    INTERCEPT,
    KEPT_HIGH,
    KEPT_LOW,
    LMBDA0,
    N_KEPT,
    N_OBS,
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
from powerkern.kernels.robust.column import Prescaling, SearchResult
from powerkern.kernels.robust.options import Options
from powerkern.kernels.robust.prestandardization import value_divisor, value_from_log
from powerkern.kernels.robust.reweighting import KeptRange
from powerkern.kernels.transforms.family import domain_lower_bound
from powerkern.kernels.transforms.rectified import BOTH, NOT_RECTIFIED, log_at

_OK, _CONSTANT, _EMPTY = int(Status.OK), int(Status.CONSTANT), int(Status.EMPTY)
_UNREPRESENTABLE, _NOT_CERTIFIED = int(Status.UNREPRESENTABLE), int(Status.NOT_CERTIFIED)
_MULTIMODAL, _SCANNED = int(Status.MULTIMODAL), int(Status.SCANNED)
_FEW_VALUES, _TAIL_KEPT = int(Status.FEW_VALUES), int(Status.TAIL_KEPT)
_REFIT, _REFIT_BOTH_SIDES = int(Route.REFIT), int(Route.REFIT_BOTH_SIDES)
#: With at most this many values no outlier can be recognised; the excess over 3 allows for the rounding of weights.
_FEW = 3.0 + 1e-9


@kernel
def is_unfitted(row: FloatArray, kept: KeptRange) -> bool:
    """Return whether a fit has no finite results, or kept fewer than two values."""
    return is_identity(row) or row[STATUS] < 0.0 or kept.stop - kept.start < 2


@kernel
def refusal(x: FloatArray, family: int) -> int:
    """Return OK if a sorted column can be fitted, and otherwise the status that says why it cannot."""
    n = x.size
    if n == 0:
        return _EMPTY
    if x[0] == -math.inf or x[n - 1] == math.inf:
        return BAD_INFINITE
    if x[0] <= domain_lower_bound(family):
        return BAD_NOT_POSITIVE
    return _CONSTANT if x[0] == x[n - 1] else _OK


@kernel
def write_unfitted(x: FloatArray, n_obs: float, status: int, row: FloatArray) -> None:
    """Write the results of a column that cannot be fitted: the identity transform, and the reason as status.

    Parameters
    ----------
    x : (n,)
        The column in the units of the data, ascending, without NaN.
    n_obs : float
        The weight of all values.
    status : int
        The status to record.
    row : (N_RESULTS,)
        Receives the results.
    """
    n = x.size
    write_range(row, n_obs, x[0] if n > 0 else math.nan, x[n - 1] if n > 0 else math.nan)
    write_identity(row, status)


@kernel
def is_finished(x: FloatArray, counts: FrequencyWeights | None, kept: KeptRange, row: FloatArray) -> bool:
    """Return whether a fit was deferred or failed, so that its results need no completion; record a failure in `row`.

    Parameters
    ----------
    x : (n,)
        The column in the units of the data, ascending, without NaN.
    counts : FrequencyWeights or None
        Weights of the values; None: all one.
    kept : KeptRange
        The values kept.
    row : (N_RESULTS,)
        The results of the column.
    """
    if row[STATUS] == DEFERRED:
        return True
    if is_unfitted(row, kept):
        write_unfitted(x, weight_of_all(counts, x.size), _UNREPRESENTABLE, row)
        return True
    return False


@kernel
def write_column(
    x: FloatArray,
    counts: FrequencyWeights | None,
    negative_shift: float,
    prescaling: Prescaling,
    start: SearchResult,
    row: FloatArray,
) -> None:
    """Complete the results of a fit with the statistics of the whole column, and the status.

    Parameters
    ----------
    x : (n,)
        The column in the units of the data, ascending, without NaN.
    counts : FrequencyWeights or None
        Weights of the values; None: all one.
    negative_shift : float
        2 for Yeo-Johnson, whose exponent for negative values is 2 - lambda, and 0 for Box-Cox.
    prescaling : Prescaling
        The constants with which the column was prestandardised.
    start : SearchResult
        The result of the search for the initial lambda.
    row : (N_RESULTS,)
        The results of the column; completed in place.
    """
    nll = row[NLL] + log(prescaling.divisor) if negative_shift > 0.0 else row[NLL]
    write_range(row, weight_of_all(counts, x.size), x[0], x[-1])
    row[NLL], row[LMBDA0], row[CENTER] = nll, start.lmbda / prescaling.power, prescaling.center
    row[OBJECTIVE] = start.value
    row[DIVISOR] = value_divisor(negative_shift, prescaling)
    if row[STATUS] == _OK and not start.inside:
        row[STATUS] = _NOT_CERTIFIED
    if row[STATUS] == _OK:
        row[STATUS] = _MULTIMODAL if start.n_rivals > 0 else _SCANNED
    if row[N_OBS] <= _FEW * value_weight(counts) and row[STATUS] != _NOT_CERTIFIED:
        row[STATUS] = _FEW_VALUES


@kernel
def write_kept(
    x: FloatArray,
    counts: FrequencyWeights | None,
    negative_shift: float,
    prescaling: Prescaling,
    kept: KeptRange,
    correction: float,
    options: Options,
    row: FloatArray,
) -> None:
    """Write the range of values kept, and make the scale consistent, for a fit that excludes values.

    If the values were selected by the plain transform, the range extends to the cut-off, converted to the units of the
    data. If they were selected by a rectified transform, the range ends at the outermost values kept.

    Parameters
    ----------
    x : (n,)
        The column in the units of the data, ascending, without NaN.
    counts : FrequencyWeights or None
        Weights of the values; None: all one.
    negative_shift : float
        2 for Yeo-Johnson, whose exponent for negative values is 2 - lambda, and 0 for Box-Cox.
    prescaling : Prescaling
        The constants with which the column was prestandardised.
    kept : KeptRange
        The values kept.
    correction : float
        The consistency factor of the scale.
    options : Options
        The options of the fit.
    row : (N_RESULTS,)
        The results of the column; completed in place.
    """
    row[ROUTE] = _REFIT_BOTH_SIDES if options.rule == BOTH else _REFIT
    row[N_KEPT] = weight_kept(counts, kept)
    row[KEPT_LOW], row[KEPT_HIGH] = x[kept.start], x[kept.stop - 1]
    row[SCALE] *= correction
    row[INTERCEPT] /= correction
    row[SLOPE] /= correction
    if kept.rule == NOT_RECTIFIED:
        distance = kept.cutoff * kept.scale
        low = value_from_log(log_at(kept.loc - distance, kept.lmbda, negative_shift), negative_shift, prescaling)
        high = value_from_log(log_at(kept.loc + distance, kept.lmbda, negative_shift), negative_shift, prescaling)
        row[KEPT_LOW], row[KEPT_HIGH] = _limit(x, kept.start, low, -1.0), _limit(x, kept.stop - 1, high, 1.0)


@kernel
def write_tail(tail_kept: bool, row: FloatArray) -> None:
    """Set the status TAIL_KEPT if an outlying tail was kept, unless a more severe status is set."""
    if tail_kept and row[STATUS] != _NOT_CERTIFIED and row[STATUS] != _FEW_VALUES:
        row[STATUS] = _TAIL_KEPT


@kernel
def weight_of_all(counts: FrequencyWeights | None, n: int) -> float:
    """Return the weight of all n values.

    The weights are summed in the order of `weight_kept`, so that the result is never smaller than the weight kept.
    """
    return unscale_weight(counts, weight_inside(counts, 0, n))


@kernel
def weight_kept(counts: FrequencyWeights | None, kept: KeptRange) -> float:
    """Return the weight of the values kept, without the excluded parts of the first and last weight."""
    return unscale_weight(counts, weight_inside(counts, kept.start, kept.stop) - kept.excluded_low - kept.excluded_high)


@kernel
def value_weight(counts: FrequencyWeights | None) -> float:
    """Return the weight that counts as one value, in the units of the caller's weights."""
    return unscale_weight(counts, weight_unit(counts))


@kernel
def _limit(x: FloatArray, last: int, bound: float, side: float) -> float:
    """Return the cut-off `bound` if it separates the last value kept, x[last], from the next value; otherwise x[last].

    `side` is 1 at the upper end of the values kept and -1 at the lower end, where the next value is smaller.
    """
    if not (bound - x[last]) * side >= 0.0:
        return float(x[last])
    beyond = last + int(side)
    if 0 <= beyond < x.size and not (x[beyond] - bound) * side > 0.0:
        return float(x[last])
    return bound
