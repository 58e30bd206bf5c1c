"""The optimum of a short, well-conditioned column whose ascending logs are there, from the sums of one pass."""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import kernel, reduction, widest_vectors
from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.log import log
from powerkern.kernels.likelihood.one_pass import (
    FINE,
    GIVEN,
    MIN_EFFECTIVE,
    ONE_PASS_REACH,
    ONE_PASS_SD,
    ONE_PASS_SPREAD,
    Logs,
    no_optimum,
    spread_of,
    walk_from,
)
from powerkern.kernels.likelihood.one_pass_chunks import LogKind
from powerkern.kernels.likelihood.one_pass_sums import LogSums, moments_at
from powerkern.kernels.likelihood.optimum import Optimum

_OK, _FIXED = int(Status.OK), int(Status.FIXED)


class LogUnits(NamedTuple):
    """What logs stand for: ``unit`` times them are those of the column, relative to that of ``ref`` (signed: 0)."""

    unit: float
    ref: float
    log_ref: float


@kernel
def optimum_of_logs(
    d: FloatArray,
    weight: FloatArray | None,
    both_signs: bool,
    units: LogUnits,
    start: float,
    given: float,
    moments: FloatArray,
) -> Optimum:
    """Optimum of ascending logs, of one sign or signed, searched for from `start`; or moments at a `given` exponent.

    NOT_CERTIFIED where the sums lose too many digits: nothing else holds then.
    """
    n, effective, total, squares = _sum_and_squares(d, weight)
    farthest, unit = max(-d[0], d[-1]), units.unit
    column = LogKind(0.0 if both_signs else 1.0, True, 0.0, 0.0, 0.0)
    jacobian, spread = total / n, spread_of(column, LogSums(total, squares, 0, 0, n, 0.0))
    even = effective >= min(MIN_EFFECTIVE, 0.25 * d.size)
    if not (even and spread >= ONE_PASS_SPREAD and farthest <= ONE_PASS_REACH):
        return no_optimum(0)
    is_given, logs = given == given, Logs(d, weight, n, farthest, jacobian, spread)
    walk = walk_from(column, logs, (given if is_given else start) * unit, GIVEN if is_given else FINE, moments, None)
    mean, variance, curvature = moments_at(moments, walk.x - walk.evaluated_at)
    if not (walk.good and variance >= ONE_PASS_SD * ONE_PASS_SD):
        return no_optimum(walk.n_eval)
    exponent, status = (given, _FIXED) if is_given else (walk.x / unit, _OK)
    return optimum_in(units, exponent, mean, variance, curvature, jacobian, walk.n_eval, status)


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
    """The optimum at an exponent of the column, given what was found on logs in such units."""
    unit = units.unit
    sd = math.sqrt(variance) * unit
    nll = log(sd) + units.log_ref - (exponent - 1.0) * (jacobian * unit)
    return Optimum(
        exponent, mean * unit, sd, 0.0, units.ref, units.log_ref, nll, curvature * unit * unit, n_eval, status
    )


@reduction
def _sum_and_squares(d: FloatArray, weight: FloatArray | None) -> tuple[float, float, float, float]:
    """The sum of the weights, and that divided by their mean; the sum of values, and of their squares."""
    widest_vectors()
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
