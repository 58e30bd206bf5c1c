"""The fields of a column's fit, their indices in a row of results, and kernels that write fields common to all fits."""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import kernel
from powerkern._typing import FloatArray
from powerkern.kernels.status_codes import (
    CONSTANT,
    EMPTY,
    FEW_DISTINCT,
    FEW_OBSERVED,
    NO_SPREAD,
    OUTSIDE_DOMAIN,
    ROUTE_NONE,
    UNREPRESENTABLE,
)


class ColumnFit(NamedTuple):
    """The fit of one column: the fields of a results row, in order. `powerkern.PowerFit` has one array per field."""

    lmbda: float
    #: mean and standard deviation of the transformed values, both divided by e^log_factor
    loc: float
    scale: float
    log_factor: float
    #: the standardised value of x is slope (psi(x) - psi(ref)) e^-log_factor + intercept
    ref: float
    slope: float
    intercept: float
    #: negative log-likelihood per observation, and its second derivative in lambda
    nll: float
    curvature: float
    #: number of values, or the sum of their weights
    n_obs: float
    n_eval: int
    status: int
    #: the smallest and largest value
    x_min: float
    x_max: float
    #: for robust fits: lambda before reweighting, the number of values kept, and the interval that contains them
    lmbda0: float
    n_kept: float
    kept_low: float
    kept_high: float
    #: the transform is applied to (x - center)/divisor
    center: float
    divisor: float
    #: the algorithm that found the optimum, a code of `powerkern.Route`
    route: int
    #: the estimator's objective at lmbda0
    objective: float


FIELDS = ColumnFit._fields
N_RESULTS = len(FIELDS)

# the index of each field; a test compares the names with the fields above
LMBDA, LOC, SCALE, LOG_FACTOR, REF, SLOPE, INTERCEPT = range(7)
NLL, CURVATURE, N_OBS, N_EVAL, STATUS, X_MIN, X_MAX = range(7, 14)
LMBDA0, N_KEPT, KEPT_LOW, KEPT_HIGH, CENTER, DIVISOR, ROUTE, OBJECTIVE = range(14, 22)

# Internal values of STATUS for columns without results. They are negative, unlike every `powerkern.Status`, and callers
# replace them, so that users never see them.
#: The column has values outside the domain; the caller raises.
BAD_INFINITE, BAD_NOT_POSITIVE = -1, -2
#: The column must be fitted by another kernel.
DEFERRED = -3
#: Rows with missing values may reduce the rank of a regression's design; the caller fits with a separate basis.
BAD_RANK = -4

#: Statuses of columns that could not be fitted, and pass through transforms unchanged.
UNFITTED = (CONSTANT, EMPTY, UNREPRESENTABLE, NO_SPREAD, FEW_OBSERVED, OUTSIDE_DOMAIN, FEW_DISTINCT)


@kernel
def write_range(row: FloatArray, n_obs: float, x_min: float, x_max: float) -> None:
    """Write the fields that describe the data of a fit that uses all values and does not rescale them.

    Parameters
    ----------
    row : (N_RESULTS,)
        Receives the fields.
    n_obs : float
        Number of values, or the sum of their weights.
    x_min : float
        The smallest value.
    x_max : float
        The largest value.
    """
    row[N_OBS], row[X_MIN], row[X_MAX] = n_obs, x_min, x_max
    row[N_KEPT], row[KEPT_LOW], row[KEPT_HIGH] = n_obs, x_min, x_max
    row[CENTER], row[DIVISOR] = 0.0, 1.0


@kernel
def is_identity(row: FloatArray) -> bool:
    """Return whether the column could not be fitted, so that its transform is the identity."""
    found = False
    for status in UNFITTED:  # numba compiles this faster than `in`
        found |= row[STATUS] == status
    return bool(found)


@kernel
def is_rescaled(row: FloatArray) -> bool:
    """Return whether values are shifted or scaled before they are transformed."""
    return bool(row[CENTER] != 0.0 or row[DIVISOR] != 1.0)


@kernel
def write_identity(row: FloatArray, status: int) -> None:
    """Write the results of a column that could not be fitted: the identity transform, and the status."""
    row[LMBDA], row[LMBDA0], row[LOC], row[SCALE], row[LOG_FACTOR] = 1.0, 1.0, 0.0, 1.0, 0.0
    row[REF], row[SLOPE], row[INTERCEPT] = 0.0, 1.0, 0.0
    row[NLL], row[CURVATURE], row[OBJECTIVE], row[N_EVAL] = math.nan, math.nan, math.nan, 0.0
    if status == EMPTY:
        row[X_MIN], row[X_MAX], row[KEPT_LOW], row[KEPT_HIGH] = math.nan, math.nan, math.nan, math.nan
    row[STATUS], row[ROUTE] = status, ROUTE_NONE
