"""Likelihood intervals: where the negative log-likelihood has grown by a given drop on either side of its minimum.

The likelihood is [1]_, eq. (8); the drop of an interval is half a quantile of chi-square, divided by n.

References
----------
.. [1] G. E. P. Box and D. R. Cox, "An analysis of transformations", JRSS B 26, 1964, 211-252.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import kernel
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import EPS
from powerkern.kernels.likelihood.optimum import exponent_of
from powerkern.kernels.likelihood.score import Scratch, nll_at, score
from powerkern.kernels.likelihood.two_pass import MAX_EVAL, Centered
from powerkern.kernels.optimize.newton import halley_step

#: At the ends of intervals this is the relative error of the drop, or this many roundings of g. Of 108 intervals a
#: tenth and ten times the first take 4.20 and 4.10 evaluations an end in place of 4.11, half and ten times the second
#: as many; the distances of the ends from the minimum are right to 1e-13 in all cases (report_constants interval).
_END_ERROR, _ROUNDINGS = 1e-12, 8.0
#: Drops below the first, as a fraction of g, are integrated from g': the rounding of g, 1e-16, would be more than 1e-10
#: of them. Panels have an error below the second, as a fraction of the drop; the ends are at the drop to the third. Of
#: 108 intervals with drops of 1e-7 to 1e-12 the ends are right to 4e-10; half of the third takes 3.00 evaluations in
#: place of 2.99 and is right to 1e-10, half and ten times the others change nothing (report_constants interval).
_FELT, _PANEL_ERROR, _FELT_ERROR = 1e-6, 1e-8, 1e-9
#: After a step of this relative size Halley's next one, cubic, is within 1e-12. Half takes 1 % more evaluations, double
#: as many (report_constants interval).
_NEARLY = 1e-4
#: Distances beyond this are infinite: products of greater ones with logs, which are below 1e4, might overflow.
_FAR = 1e290


class _Excess(NamedTuple):
    """Excess of g over its target at a distance from its minimum, and three derivatives in the distance."""

    distance: float
    value: float
    d1: float
    d2: float
    d3: float


@kernel
def interval_of(centered: Centered, sign: float, lmbda: float, drop: float, scratch: Scratch, out: FloatArray) -> None:
    """Write the two lambdas at which g exceeds g(lmbda) by `drop`; `sign` is 1, -1, or 0 for both signs.

    Parameters
    ----------
    centered : Centered
        The column.
    sign : float
        1, -1, or 0 for both signs.
    lmbda : float
        The lambda at which g is smallest.
    drop : float
        By how much g exceeds g(lmbda).
    scratch : Scratch
        Scratch of `score`.
    out : (2,)
        Receives the lower and the upper end.
    """
    sigma = centered.logs.sigma
    mu = exponent_of(lmbda, sign) * sigma
    lower = _drop_point(centered, mu, drop, -1.0, scratch) / sigma
    upper = _drop_point(centered, mu, drop, 1.0, scratch) / sigma
    out[0] = lower if sign >= 0.0 else 2.0 - upper
    out[1] = upper if sign >= 0.0 else 2.0 - lower


@kernel
def _drop_point(centered: Centered, mu: float, drop: float, side: float, scratch: Scratch) -> float:
    """Find where g has grown by `drop` on one side of its minimum: the root of a convex function of the distance.

    The zeros of a chord and of a tangent enclose it and converge to it. NaN if the cap of evaluations
    is reached before, an infinity if it is beyond float64.
    """
    logs = centered.logs
    low = high = _Excess(math.inf, 0.0, 1.0, 0.0, 0.0)
    lowest = math.nan
    distance, panel = 0.0, math.inf
    for _ in range(MAX_EVAL):
        at = score(logs, mu + side * distance, scratch)
        nll = nll_at(logs, mu + side * distance, at, centered.log_reference)
        here = _Excess(distance, nll - lowest - drop, side * at.d1, at.d2, side * at.d3)
        if lowest != lowest:
            lowest = nll
            low = _Excess(0.0, -drop, here.d1, here.d2, here.d3)
            distance = math.sqrt(2.0 * drop / at.d2)
            if drop < _FELT * (1.0 + abs(nll)):
                panel = distance
            continue
        if panel < math.inf:
            growth, error = _integral(low, here)
            if not error <= _PANEL_ERROR * drop:
                panel = 0.25 * (distance - low.distance)
                distance = low.distance + panel
                continue
            here = _Excess(distance, low.value + growth, here.d1, here.d2, here.d3)
            panel *= 2.0
        if here.value < 0.0:
            low = here
        else:
            high = here
        error = _FELT_ERROR * drop
        if panel == math.inf:
            error = max(_END_ERROR * drop, _ROUNDINGS * EPS * (1.0 + abs(nll)))
        # g is steepest at the upper end: at the lower one, perhaps far away, it may be flat
        steepest = high.d1 if high.distance < math.inf else here.d1
        tolerance = max(error / steepest, EPS * abs(mu))
        least, most = _zeros(low, high)
        if most - least <= tolerance:
            return mu + side * min(max(least, low.distance), high.distance)
        distance = min(_next_distance(low, high, here, least, most, tolerance), low.distance + panel)
        if not distance < _FAR:
            return side * math.inf
    return math.nan


@kernel
def _integral(a: _Excess, b: _Excess) -> tuple[float, float]:
    """Return the integral of g' from a to b, and a bound of its error, by Hermite's formulas of sixth and fourth order.

    g itself is known to its rounding only, in which a small drop is lost; g' is not.
    """
    h = b.distance - a.distance
    ends, bends = 0.5 * h * (a.d1 + b.d1), h * h * (a.d2 - b.d2)
    sixth = ends + bends / 10.0 + h * h * h * (a.d3 + b.d3) / 120.0
    return sixth, abs(sixth - ends - bends / 12.0)


@kernel
def _tangent_zero(at: _Excess) -> float:
    return at.distance - at.value / at.d1 if at.d1 > 0.0 else math.inf


@kernel
def _zeros(low: _Excess, high: _Excess) -> tuple[float, float]:
    """Return bounds of the root of a convex function: the zeros of the chord and of the tangents at its ends."""
    most = min(high.distance, min(_tangent_zero(low), _tangent_zero(high)))
    if not high.distance < math.inf:
        return low.distance, math.inf
    fraction = low.value / (low.value - high.value)
    return low.distance + fraction * (high.distance - low.distance), most


@kernel
def _next_distance(low: _Excess, high: _Excess, here: _Excess, least: float, most: float, tolerance: float) -> float:
    """Return Halley's next point; near the root, a point slightly beyond it, so that the root is enclosed."""
    step = halley_step(here.value, here.d1, here.d2)
    x = here.distance + step
    if abs(step) <= _NEARLY * here.distance:
        x += math.copysign(0.25 * tolerance, step)
    if not high.distance < math.inf:
        farthest = 4.0 * here.distance
        return x if low.distance < x < farthest else farthest
    if not least <= x <= most:
        x = most
    if x >= high.distance:  # whose tangent is 0 within rounding of it
        x = high.distance - max(tolerance, 2.0 * EPS * high.distance)
    return x if low.distance < x < high.distance else 0.5 * (low.distance + high.distance)
