"""The results of a fit: one row of numbers per column of the data. Declared here, and written here only."""

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
    """The fit of one column: the fields of a row, in order. `powerkern.PowerFit` has an array of each."""

    lmbda: float
    #: mean and standard deviation of the transformed values, both divided by e^log_factor
    loc: float
    scale: float
    log_factor: float
    #: standardised: slope (psi(x) - psi(ref)) e^-s + intercept
    ref: float
    slope: float
    intercept: float
    #: minus log-likelihood, and its second derivative in lambda, per observation
    nll: float
    curvature: float
    #: number of values, or their weight
    n_obs: float
    n_eval: int
    status: int
    #: the smallest and largest value
    x_min: float
    x_max: float
    #: robust fits: the start of reweighting; how many values were kept, and the interval they are in
    lmbda0: float
    n_kept: float
    kept_low: float
    kept_high: float
    #: the transform is of (x - center)/divisor
    center: float
    divisor: float
    #: how the optimum was found, see `powerkern.Route`
    route: int
    #: the estimator's objective at lmbda0
    objective: float


FIELDS = ColumnFit._fields
N_RESULTS = len(FIELDS)

# the position of each field; tests hold the names to those above
LMBDA, LOC, SCALE, LOG_FACTOR, REF, SLOPE, INTERCEPT = range(7)
NLL, CURVATURE, N_OBS, N_EVAL, STATUS, X_MIN, X_MAX = range(7, 14)
LMBDA0, N_KEPT, KEPT_LOW, KEPT_HIGH, CENTER, DIVISOR, ROUTE, OBJECTIVE = range(14, 22)

# STATUS of a column without results, which no user sees. Negative, so that none is a `powerkern.Status`.
#: Values outside the domain: the caller raises.
BAD_INFINITE, BAD_NOT_POSITIVE = -1, -2
#: Left to another kernel.
DEFERRED = -3
#: A regression whose missing values may leave a design of lower rank: the caller fits it with a basis of its own.
BAD_RANK = -4

#: Statuses of columns that could not be fitted, and pass through transforms unchanged.
UNFITTED = (CONSTANT, EMPTY, UNREPRESENTABLE, NO_SPREAD, FEW_OBSERVED, OUTSIDE_DOMAIN, FEW_DISTINCT)


@kernel
def write_range(row: FloatArray, n_obs: float, x_min: float, x_max: float) -> None:
    """Write the fields that describe the data; all values are kept, and none is rescaled.

    Parameters
    ----------
    row : (N_RESULTS,)
        Receives the fields.
    n_obs : float
        Number of values, or their weight.
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
    """Return whether the column could not be fitted and passes through unchanged."""
    found = False
    for status in UNFITTED:  # `in` takes numba longer to compile
        found |= row[STATUS] == status
    return bool(found)


@kernel
def is_rescaled(row: FloatArray) -> bool:
    """Return whether values are moved or scaled before they are transformed."""
    return bool(row[CENTER] != 0.0 or row[DIVISOR] != 1.0)


@kernel
def write_identity(row: FloatArray, status: int) -> None:
    """Write the identity transform of a column without a fit."""
    row[LMBDA], row[LMBDA0], row[LOC], row[SCALE], row[LOG_FACTOR] = 1.0, 1.0, 0.0, 1.0, 0.0
    row[REF], row[SLOPE], row[INTERCEPT] = 0.0, 1.0, 0.0
    row[NLL], row[CURVATURE], row[OBJECTIVE], row[N_EVAL] = math.nan, math.nan, math.nan, 0.0
    if status == EMPTY:
        row[X_MIN], row[X_MAX], row[KEPT_LOW], row[KEPT_HIGH] = math.nan, math.nan, math.nan, math.nan
    row[STATUS], row[ROUTE] = status, ROUTE_NONE
