"""Likelihood intervals: the two lambdas at which the negative log-likelihood g is a given amount above its minimum.

The likelihood is [1]_, eq. (8), and g is taken per observation. The amount, called the drop of the log-likelihood, is
half a quantile of chi-square, divided by n.

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

#: Tolerance of the drop at the ends of intervals: the relative error _END_ERROR, or _ROUNDINGS rounding errors of g. On
#: 108 intervals, a tenth and ten times _END_ERROR take 4.20 and 4.10 evaluations per end instead of 4.11; half and ten
#: times _ROUNDINGS make no difference. The ends are accurate to 1e-13 in all cases (report_constants interval).
_END_ERROR, _ROUNDINGS = 1e-12, 8.0
#: For drops below _FELT, as a fraction of g, the increase of g is integrated from g', since the rounding error of g,
#: 1e-16, would exceed 1e-10 of the drop. _PANEL_ERROR is the tolerance of the integral over a panel, and _FELT_ERROR
#: the tolerance of the drop at the ends of the interval, both relative to the drop. On 108 intervals with drops of 1e-7
#: to 1e-12 the ends are accurate to 4e-10. With half of _FELT_ERROR the search takes 3.00 evaluations instead of 2.99,
#: and the ends are accurate to 1e-10; half and ten times the other two change nothing (report_constants interval).
_FELT, _PANEL_ERROR, _FELT_ERROR = 1e-6, 1e-8, 1e-9
#: After a Halley step of this relative size the next one, by cubic convergence, is accurate to 1e-12. Half of it takes
#: 1 % more evaluations, double makes no difference (report_constants interval).
_NEARLY = 1e-4
#: Distances beyond this count as infinite, since their products with logs, which are below 1e4, might overflow.
_FAR = 1e290


class _Excess(NamedTuple):
    """The excess of the negative log-likelihood g over its minimum plus the drop, at one exponent.

    `distance` is the distance of the exponent from the minimum of g, `value` the excess, and `d1`, `d2` and `d3` are
    the derivatives of the excess in the distance.
    """

    distance: float
    value: float
    d1: float
    d2: float
    d3: float


@kernel
def write_interval(
    centered: Centered, sign: float, lmbda: float, drop: float, scratch: Scratch, out: FloatArray
) -> None:
    """Write the two lambdas at which the negative log-likelihood exceeds its minimum by `drop`.

    Parameters
    ----------
    centered : Centered
        The logs of the column.
    sign : float
        The sign of the values; 0 for both signs.
    lmbda : float
        The lambda at the minimum.
    drop : float
        The excess over the minimum at both ends, per observation.
    scratch : Scratch
        Scratch of `kernels.likelihood.score`.
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
    """Return the exponent on one side of `mu` at which the negative log-likelihood g exceeds its minimum by `drop`.

    The excess is a convex function of the distance from the minimum, so the zeros of a chord and of a tangent enclose
    the root of the excess and converge to it. The result is NaN if this takes more than MAX_EVAL evaluations, and
    infinite if the root is beyond _FAR.

    Parameters
    ----------
    centered : Centered
        The logs of the column.
    mu : float
        The exponent at the minimum of g, in units of the logs.
    drop : float
        The excess over the minimum, per observation.
    side : float
        1 to search above `mu`, -1 to search below it.
    scratch : Scratch
        Scratch of `kernels.likelihood.score`.
    """
    logs = centered.logs
    low = high = _Excess(math.inf, 0.0, 1.0, 0.0, 0.0)
    lowest = math.nan
    distance, panel = 0.0, math.inf
    for _ in range(MAX_EVAL):
        at = score(logs, mu + side * distance, scratch)
        nll = nll_at(logs, mu + side * distance, at, centered.log_reference)
        current = _Excess(distance, nll - lowest - drop, side * at.d1, at.d2, side * at.d3)
        if lowest != lowest:
            lowest = nll
            low = _Excess(0.0, -drop, current.d1, current.d2, current.d3)
            distance = math.sqrt(2.0 * drop / at.d2)
            if drop < _FELT * (1.0 + abs(nll)):
                panel = distance
            continue
        if panel < math.inf:
            growth, error = _integral(low, current)
            if not error <= _PANEL_ERROR * drop:
                panel = 0.25 * (distance - low.distance)
                distance = low.distance + panel
                continue
            current = _Excess(distance, low.value + growth, current.d1, current.d2, current.d3)
            panel *= 2.0
        if current.value < 0.0:
            low = current
        else:
            high = current
        error = _FELT_ERROR * drop
        if panel == math.inf:
            error = max(_END_ERROR * drop, _ROUNDINGS * EPS * (1.0 + abs(nll)))
        # use the slope at the upper end, where g is steepest; far below the root g may be flat
        steepest = high.d1 if high.distance < math.inf else current.d1
        tolerance = max(error / steepest, EPS * abs(mu))
        lower, upper = _zeros(low, high)
        if upper - lower <= tolerance:
            return mu + side * min(max(lower, low.distance), high.distance)
        distance = min(_next_distance(low, high, current, lower, upper, tolerance), low.distance + panel)
        if not distance < _FAR:
            return side * math.inf
    return math.nan


@kernel
def _integral(a: _Excess, b: _Excess) -> tuple[float, float]:
    """Return the increase of the negative log-likelihood g from a to b, as an integral of g', and an error estimate.

    The integral is given by the Hermite formula of sixth order, and its error by the difference from the formula of
    fourth order. A small drop would be lost in the rounding error of g, but not in the rounding error of g'.
    """
    h = b.distance - a.distance
    ends, bends = 0.5 * h * (a.d1 + b.d1), h * h * (a.d2 - b.d2)
    sixth = ends + bends / 10.0 + h * h * h * (a.d3 + b.d3) / 120.0
    return sixth, abs(sixth - ends - bends / 12.0)


@kernel
def _tangent_zero(at: _Excess) -> float:
    """Return the distance at which the tangent of the excess at a point is zero; inf unless the tangent increases."""
    return at.distance - at.value / at.d1 if at.d1 > 0.0 else math.inf


@kernel
def _zeros(low: _Excess, high: _Excess) -> tuple[float, float]:
    """Return a lower and an upper bound of the root, from the zeros of the chord and of the tangents at both ends."""
    upper = min(high.distance, min(_tangent_zero(low), _tangent_zero(high)))
    if not high.distance < math.inf:
        return low.distance, math.inf
    fraction = low.value / (low.value - high.value)
    return low.distance + fraction * (high.distance - low.distance), upper


@kernel
def _next_distance(
    low: _Excess, high: _Excess, current: _Excess, lower: float, upper: float, tolerance: float
) -> float:
    """Return the distance at which to evaluate next: the point of Halley's method, limited by the bounds of the root.

    Once Halley's step is short, the point is moved slightly beyond the root, so that the root is soon enclosed.

    Parameters
    ----------
    low : _Excess
        The farthest point evaluated so far that lies before the root.
    high : _Excess
        The nearest point evaluated so far that lies beyond the root; its distance is inf if there is none.
    current : _Excess
        The point evaluated last.
    lower : float
        Lower bound of the root.
    upper : float
        Upper bound of the root; it replaces a point outside the bounds.
    tolerance : float
        Tolerance of the distance.
    """
    step = halley_step(current.value, current.d1, current.d2)
    x = current.distance + step
    if abs(step) <= _NEARLY * current.distance:
        x += math.copysign(0.25 * tolerance, step)
    if not high.distance < math.inf:
        farthest = 4.0 * current.distance
        return x if low.distance < x < farthest else farthest
    if not lower <= x <= upper:
        x = upper
    if x >= high.distance:  # its tangent's zero coincides with it to rounding
        x = high.distance - max(tolerance, 2.0 * EPS * high.distance)
    return x if low.distance < x < high.distance else 0.5 * (low.distance + high.distance)
