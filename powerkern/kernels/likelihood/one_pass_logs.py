"""The optimum of a well-conditioned column whose ascending logs are there, from the sums of one pass."""

from __future__ import annotations

import math

from powerkern._jit import kernel, reduction, widest_vectors
from powerkern._typing import FloatArray
from powerkern.kernels.likelihood.one_pass import (
    MIN_EFFECTIVE,
    ONE_PASS_REACH,
    ONE_PASS_SPREAD,
    Logs,
    no_optimum,
    optimum_from,
    spread_of,
)
from powerkern.kernels.likelihood.optimum import LogUnits, Optimum


@kernel
def optimum_of_logs(
    d: FloatArray, weight: FloatArray | None, both_signs: bool, units: LogUnits, start: float, given: float
) -> Optimum:
    """Optimum of ascending logs, of one sign or signed, searched for from `start`; or moments at a `given` exponent.

    NOT_CERTIFIED where the sums lose too many digits: nothing else holds then.
    """
    n, effective, total, squares = _sum_and_squares(d, weight)
    farthest, spread = max(-d[0], d[-1]), spread_of(both_signs, n, total, squares)
    even = effective >= min(MIN_EFFECTIVE, 0.25 * d.size)
    if not (even and spread >= ONE_PASS_SPREAD and farthest <= ONE_PASS_REACH):
        return no_optimum(0)
    return optimum_from(Logs(d, weight, both_signs, n, farthest, total / n, spread), units, start, given, 0)


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
