"""The results of a fit: one row of numbers per column of the data. Declared here, and written here only."""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import kernel
from powerkern._status import Route, Status
from powerkern._typing import FloatArray
from powerkern.kernels.elementary import exp
from powerkern.kernels.likelihood import b


class ColumnFit(NamedTuple):
    """The fit of one column: the fields of a row, in order. `powerkern.PowerFit` has an array of each."""

    lmbda: float
    #: mean and standard deviation of the transformed values, both divided by e^log_factor
    loc: float
    scale: float
    log_factor: float
    #: standardised: slope (psi(x) - psi(ref)) e^-s + intercept, see docs/numerics
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
    #: what is transformed is (x - center)/divisor
    center: float
    divisor: float
    #: how the optimum was found, see `powerkern.Route`
    route: int
    #: what the estimator minimises, at lmbda0
    objective: float


FIELDS = ColumnFit._fields
N_RESULTS = len(FIELDS)

# the position of each field; tests hold the names to those above
LMBDA, LOC, SCALE, LOG_FACTOR, REF, SLOPE, INTERCEPT = range(7)
NLL, CURVATURE, N_OBS, N_EVAL, STATUS, X_MIN, X_MAX = range(7, 14)
LMBDA0, N_KEPT, KEPT_LOW, KEPT_HIGH, CENTER, DIVISOR, ROUTE, OBJECTIVE = range(14, 22)

# STATUS of a column whose values are outside the domain; the driver raises
BAD_INFINITE, BAD_NOT_POSITIVE = -1, -2
#: STATUS of a column that a kernel leaves to another one; no driver sees it
LEFT = -3

_OK, _CONSTANT, _EMPTY = int(Status.OK), int(Status.CONSTANT), int(Status.EMPTY)
_UNREPRESENTABLE, _NO_SPREAD = int(Status.UNREPRESENTABLE), int(Status.NO_SPREAD)
#: Statuses of columns that could not be fitted, and pass through transforms unchanged.
UNFITTED = (_CONSTANT, _EMPTY, _UNREPRESENTABLE, _NO_SPREAD)
_NO_ROUTE = int(Route.NONE)

#: Exponents above this are kept separately, in LOG_FACTOR.
_LARGE_LOG = 600.0


class Optimum(NamedTuple):
    """Exponent, and mean and standard deviation of ``e^-log_factor b_m(d)``, d relative to `ref`, `log_ref`."""

    exponent: float
    mean: float
    sd: float
    log_factor: float
    ref: float
    log_ref: float
    nll: float
    curvature: float
    n_eval: int
    status: int


@kernel
def write_range(row: FloatArray, n_obs: float, x_min: float, x_max: float) -> None:
    """The fields on the data: none left out, none rescaled."""
    row[N_OBS], row[X_MIN], row[X_MAX] = n_obs, x_min, x_max
    row[N_KEPT], row[KEPT_LOW], row[KEPT_HIGH] = n_obs, x_min, x_max
    row[CENTER], row[DIVISOR] = 0.0, 1.0


@kernel
def write_fit(row: FloatArray, best: Optimum, sign: float, route: int) -> None:
    """Translate the optimum of one branch (sign +-1) or of both (0) into lambda and the constants of the transform.

    The identity where they are beyond float64.
    """
    m = best.exponent
    if sign == 0.0:
        log_factor = best.log_factor if best.log_factor > _LARGE_LOG else 0.0
        factor = exp(best.log_factor - log_factor)
        loc, sign = best.mean * factor, 1.0
        row[SLOPE] = 1.0 / (best.sd * factor)
    else:
        # psi(x) - psi(ref) = e^(m log_ref) b_m(d): the slope needs no power of ref, mean and sd do
        t = m * best.log_ref
        log_factor = t if t > _LARGE_LOG else 0.0
        factor = exp(t - log_factor)
        at_ref = (1.0 - exp(-t)) / m if log_factor > 0.0 else b(m, best.log_ref)
        loc = sign * (at_ref + factor * best.mean)
        row[SLOPE] = 1.0 / best.sd
    row[LMBDA] = row[LMBDA0] = m if sign > 0.0 else 2.0 - m
    row[LOC] = loc
    row[SCALE] = best.sd * factor
    row[LOG_FACTOR] = log_factor
    row[REF] = sign * best.ref
    row[INTERCEPT] = -sign * best.mean / best.sd
    row[NLL] = row[OBJECTIVE] = best.nll
    row[CURVATURE] = best.curvature
    row[N_EVAL] = best.n_eval
    row[STATUS] = best.status
    row[ROUTE] = route
    if not (abs(row[LMBDA]) < math.inf and abs(row[SLOPE]) < math.inf and abs(row[INTERCEPT]) < math.inf):
        write_identity(row, _UNREPRESENTABLE)


@kernel
def is_identity(row: FloatArray) -> bool:
    """Whether the column could not be fitted and passes through unchanged."""
    return bool(row[STATUS] in UNFITTED)


@kernel
def is_rescaled(row: FloatArray) -> bool:
    """Whether values are moved or scaled before they are transformed."""
    return bool(row[CENTER] != 0.0 or row[DIVISOR] != 1.0)


@kernel
def write_identity(row: FloatArray, status: int) -> None:
    """The transform of a column without a fit."""
    row[LMBDA], row[LMBDA0], row[LOC], row[SCALE], row[LOG_FACTOR] = 1.0, 1.0, 0.0, 1.0, 0.0
    row[REF], row[SLOPE], row[INTERCEPT] = 0.0, 1.0, 0.0
    row[NLL], row[CURVATURE], row[OBJECTIVE], row[N_EVAL] = math.nan, math.nan, math.nan, 0.0
    if status == _EMPTY:
        row[X_MIN], row[X_MAX], row[KEPT_LOW], row[KEPT_HIGH] = math.nan, math.nan, math.nan, math.nan
    row[STATUS], row[ROUTE] = status, _NO_ROUTE
