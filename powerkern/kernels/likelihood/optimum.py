"""The optimum of one column's likelihood, and its conversion to the results of a fit."""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import kernel
from powerkern._typing import FloatArray
from powerkern.kernels import results as field
from powerkern.kernels.elementary.exp import exp
from powerkern.kernels.elementary.log import log
from powerkern.kernels.likelihood.score import b
from powerkern.kernels.likelihood.score_formulas import profile_nll
from powerkern.kernels.results import write_identity
from powerkern.kernels.status_codes import UNREPRESENTABLE

#: Factors of loc and scale whose log exceeds this are stored separately, in LOG_FACTOR.
_LARGE_LOG = 600.0


class Optimum(NamedTuple):
    """The exponent m that maximises a column's likelihood, with the moments needed to standardise the transform."""

    exponent: float  #: m
    mean: float  #: mean of ``e^-log_factor b_m(d)`` over the logs d
    sd: float  #: standard deviation of ``e^-log_factor b_m(d)``
    log_factor: float  #: log of the factor that is divided out
    ref: float  #: the reference, a value of the data
    log_ref: float  #: ln(offset + |ref|), which is subtracted from all logs
    nll: float  #: negative log-likelihood g per observation at m
    curvature: float  #: g'' at m
    n_eval: int  #: number of evaluations of g
    status: int  #: a `powerkern.Status`


class LogUnits(NamedTuple):
    """The unit and the reference `ref` of logs d: the log of a value is ``unit d + log_ref``.

    ``log_ref`` is ln(offset + |ref|), where the offset is 0 for Box-Cox and 1 for Yeo-Johnson.
    """

    unit: float
    ref: float
    log_ref: float


@kernel
def optimum_in(
    units: LogUnits,
    exponent: float,
    mean: float,
    variance: float,
    curvature: float,
    jacobian: float,
    n_eval: int,
    status: int,
) -> Optimum:
    """Build the `Optimum` for an exponent, given moments of the transformed logs in the unit of the logs.

    Parameters
    ----------
    units : LogUnits
        The unit and reference of the logs.
    exponent : float
        The exponent, in units of the column.
    mean, variance : float
        Mean and variance of the transformed logs, in the unit of the logs.
    curvature : float
        The second derivative of the negative log-likelihood, in the unit of the logs.
    jacobian : float
        The mean of the logs, in the unit of the logs.
    n_eval : int
        The number of evaluations made so far.
    status : int
        The status to record.
    """
    unit = units.unit
    sd = math.sqrt(variance) * unit
    nll = profile_nll(2.0 * log(sd), units.log_ref, exponent, jacobian * unit)
    return Optimum(
        exponent, mean * unit, sd, 0.0, units.ref, units.log_ref, nll, curvature * unit * unit, n_eval, status
    )


@kernel
def exponent_of(lmbda: float, sign: float) -> float:
    """Convert lambda to the exponent m for values of the given sign, or m to lambda.

    The result is 2 - lmbda if sign < 0, and lmbda otherwise.
    """
    return 2.0 - lmbda if sign < 0.0 else lmbda


@kernel
def write_fit(row: FloatArray, best: Optimum, sign: float, route: int, given: float) -> None:
    """Write the results of a fit: lambda and the constants of the standardised transform, from an optimum.

    If these numbers are out of range for float64, the identity is written instead.

    Parameters
    ----------
    row : (N_RESULTS,)
        Receives the results.
    best : Optimum
        The optimum.
    sign : float
        The sign of the values; 0 for both signs.
    route : int
        The code of `powerkern.Route` to record.
    given : float
        The lambda requested by the caller, which is recorded without rounding; NaN if lambda was estimated.
    """
    m = best.exponent
    if sign == 0.0:
        log_factor = best.log_factor if best.log_factor > _LARGE_LOG else 0.0
        factor = exp(best.log_factor - log_factor)
        loc, sign = best.mean * factor, 1.0
        row[field.SLOPE] = 1.0 / (best.sd * factor)
    else:
        # psi(x) - psi(ref) = e^(m log_ref) b_m(d), so mean and sd need a power of ref, but the slope does not
        t = m * best.log_ref
        log_factor = t if t > _LARGE_LOG else 0.0
        factor = exp(t - log_factor)
        at_ref = (1.0 - exp(-t)) / m if log_factor > 0.0 else b(m, best.log_ref)
        loc = sign * (at_ref + factor * best.mean)
        row[field.SLOPE] = 1.0 / best.sd
    row[field.LMBDA] = row[field.LMBDA0] = given if given == given else exponent_of(m, sign)
    row[field.LOC] = loc
    row[field.SCALE] = best.sd * factor
    row[field.LOG_FACTOR] = log_factor
    row[field.REF] = sign * best.ref
    row[field.INTERCEPT] = -sign * best.mean / best.sd
    row[field.NLL] = row[field.OBJECTIVE] = best.nll
    row[field.CURVATURE] = best.curvature
    row[field.N_EVAL] = best.n_eval
    row[field.STATUS] = best.status
    row[field.ROUTE] = route
    if not (abs(m) < math.inf and abs(row[field.SLOPE]) < math.inf and abs(row[field.INTERCEPT]) < math.inf):
        write_identity(row, UNREPRESENTABLE)
