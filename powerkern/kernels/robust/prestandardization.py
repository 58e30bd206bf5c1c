"""Prestandardise columns ([1]_): remove their scale, and take signed logs.

As in the paper, Yeo-Johnson is applied to ``(x - median)/MAD``, and Box-Cox to ``exp((ln x - median)/MAD)`` with median
and MAD of ln x. Two options are not in the paper: RAW, without prestandardisation, and MEDIAN, Box-Cox of ``x/median``
as in R.

References
----------
.. [1] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning 113, 2024,
   4953-4975.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from powerkern._jit import kernel, specialize_on_none
from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp import exp
from powerkern.kernels.elementary.log import log, log1p
from powerkern.kernels.likelihood.logs import centered_log
from powerkern.kernels.likelihood.optimum import LogUnits
from powerkern.kernels.location.loc_scale import R_MAD_FACTOR
from powerkern.kernels.location.order_statistics import find_position, sum_weights
from powerkern.kernels.location.weights import FrequencyWeights, FrequencyWork, frequency_weights, median_and_mad
from powerkern.kernels.robust.column import Column, Prescaling, Prestandardized
from powerkern.kernels.robust.options import MAD, RAW, Options, change_ranks
from powerkern.kernels.robust.scratch import RobustWork
from powerkern.kernels.transforms.family import is_mirrored
from powerkern.kernels.transforms.rectified import ROOM, SortedColumn, value_at

_OK = int(Status.OK)
_NO_SPREAD = int(Status.NO_SPREAD)


#: Computes the target with which an estimator's objective compares a column: (weights, column, options, work).
Target = Callable[[FrequencyWeights | None, SortedColumn, Options, RobustWork], Any]


@kernel
def prestandardize_column(
    target: Target, x: FloatArray, weight: FloatArray | None, family: int, options: Options, work: RobustWork
) -> Column:
    """Prestandardise a sorted column without NaN.

    Parameters
    ----------
    target : kernel
        Computes the target that the objective compares the column with (`Target`).
    x : (n,)
        The column in the units of the data, ascending, without NaN.
    weight : (n,) or None
        Weights of the values; None: all one.
    family : int
        BOX_COX or YEO_JOHNSON.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch; holds the prestandardised column.
    """
    counts = _tabulate_weights(weight, x.size, work.counts)
    prescaling, column = _write_prestandardized(x, counts, family, options, work)
    against = target(counts, column, options, work)
    return Column(x, family, prescaling, Prestandardized(column, counts, against, work.y[: column.x.size]))


@kernel
def _write_prestandardized(
    x: FloatArray, counts: FrequencyWeights | None, family: int, options: Options, work: RobustWork
) -> tuple[Prescaling, SortedColumn]:
    """Write the prestandardised column to `work.values` and its signed logs to `work.logs`.

    Return the constants with which the column was prestandardised, and the prestandardised column.

    Parameters
    ----------
    x : (n,)
        The column in the units of the data, ascending, without NaN.
    counts : FrequencyWeights or None
        Weights of the values; None: all one.
    family : int
        BOX_COX or YEO_JOHNSON.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch.
    """
    n, how = x.size, options.prestandardize
    lower, upper = change_ranks(counts, n, options)
    values, logs = work.values[: n + ROOM], work.logs[: n + ROOM]
    values[n:] = 1.0
    logs[n:] = 0.0
    median, mad = median_and_mad(x, counts)
    mad *= R_MAD_FACTOR
    status = _OK if mad > 0.0 else _NO_SPREAD
    if not is_mirrored(family):
        divisor, power = median if how != RAW else 1.0, 1.0
        _logs_about(x, divisor, logs)
        if how == MAD:  # exp((ln x - median)/MAD)
            middle, power = median_and_mad(logs[:n], counts)
            power *= R_MAD_FACTOR
            _standardize(logs[:n], middle, power, logs)
            divisor *= exp(middle)
        _exponentials(logs[:n], values)
        return Prescaling(0.0, divisor, power, status), SortedColumn(values, logs, n, 0, 0.0, lower, upper)
    center, divisor = (0.0, 1.0) if how == RAW else (median, mad)
    _standardize(x, center, divisor, values)
    _signed_logs(values[:n], logs)
    n_negative = find_position(logs[:n], 0.0, 0.0, n >> 1)
    return Prescaling(center, divisor, 1.0, status), SortedColumn(values, logs, n, n_negative, 2.0, lower, upper)


@kernel
def _standardize(x: FloatArray, center: float, divisor: float, out: FloatArray) -> None:
    for i in range(x.size):
        out[i] = (x[i] - center) / divisor


@kernel
def _logs_about(x: FloatArray, divisor: float, logs: FloatArray) -> None:
    """Write ln(x/divisor) to `logs`, without cancellation."""
    log_divisor = log(divisor)
    for i in range(x.size):
        logs[i] = centered_log(x[i], 0.0, divisor, log_divisor)


@kernel
def _exponentials(logs: FloatArray, values: FloatArray) -> None:
    for i in range(logs.size):
        values[i] = exp(logs[i])


@kernel
def _signed_logs(values: FloatArray, logs: FloatArray) -> None:
    for i in range(values.size):
        logs[i] = math.copysign(log1p(abs(values[i])), values[i])


@kernel
def log_units(negative_shift: float, prescaling: Prescaling) -> LogUnits:
    """Return the unit and the reference by which the logs of a prestandardised column become logs of the data.

    For Box-Cox the log of a value is the unit times its prestandardised log plus the log of the reference. For
    Yeo-Johnson the logs are not changed. `negative_shift` is 2 for Yeo-Johnson and 0 for Box-Cox.
    """
    if negative_shift > 0.0:
        return LogUnits(1.0, 0.0, 0.0)
    return LogUnits(prescaling.power, prescaling.divisor, log(prescaling.divisor))


@specialize_on_none()
def _tabulate_weights(weight: FloatArray, n: int, work: FrequencyWork) -> FrequencyWeights | None:
    """Make the tables for the weights of n values, or return None if there are no weights."""
    return frequency_weights(weight[:n], work)


@kernel
def total_weight(weight: FloatArray | None, n: int) -> float:
    """Return the total weight of the first n values; n if `weight` is None."""
    if weight is None:
        return float(n)
    return sum_weights(weight[:n])


@kernel
def value_divisor(negative_shift: float, prescaling: Prescaling) -> float:
    """Return the divisor to record in the results of a column.

    The result is the divisor of `prescaling` for Yeo-Johnson, and 1 for Box-Cox, whose lambda does not depend on the
    unit of the data.

    `negative_shift` is 2 for Yeo-Johnson and 0 for Box-Cox.
    """
    return prescaling.divisor if negative_shift > 0.0 else 1.0


@kernel
def value_from_log(at: float, negative_shift: float, prescaling: Prescaling) -> float:
    """Return the value, in the units of the data, whose signed log after prestandardisation is `at`.

    `negative_shift` is 2 for Yeo-Johnson and 0 for Box-Cox.
    """
    if negative_shift == 0.0:
        return prescaling.divisor * exp(prescaling.power * at)
    return prescaling.center + prescaling.divisor * value_at(at, negative_shift)
