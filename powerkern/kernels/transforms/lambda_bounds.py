"""Bounds of lambda for which |psi| does not exceed ``ymax`` on the data.

Restricting lambda in this way is one of Xu and Cormode's remedies against overflow [1]_. They solve ``|psi| = ymax`` by
Lambert's W. Here the equation is solved by Newton's iteration on its logarithm, which cannot overflow
(`largest_exponent`).

For either sign of psi, ``|psi| = b_m(a) = expm1(m a)/m``. Here a is ``|ln x|`` (Box-Cox) or ``ln(1 + |x|)``
(Yeo-Johnson). The exponent m is lambda if psi > 0; if psi < 0, it is -lambda (Box-Cox) or 2 - lambda (Yeo-Johnson).
``|psi|`` increases with m, so a limit on ``|psi|`` is a limit on m.

References
----------
.. [1] X. Xu and G. Cormode, "Power transform revisited: numerically stable, and federated", 2025, arXiv:2510.04995.
"""

from __future__ import annotations

import math

from powerkern._jit import COLUMN, INTEGER, REAL, entry, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp import expm1
from powerkern.kernels.elementary.log import log, log1p
from powerkern.kernels.transforms.family import is_mirrored


@kernel
def lambda_range(family: int, x_min: float, x_max: float, ymax: float) -> tuple[float, float]:
    """Return the smallest and largest lambda with ``|psi| <= ymax`` on [x_min, x_max].

    Parameters
    ----------
    family : int
        BOX_COX or YEO_JOHNSON.
    x_min : float
        The smallest value.
    x_max : float
        The largest value.
    ymax : float
        Upper limit on |psi|.
    """
    if not is_mirrored(family):
        return -largest_exponent(-log(min(x_min, 1.0)), ymax), largest_exponent(log(max(x_max, 1.0)), ymax)
    return 2.0 - largest_exponent(log1p(max(-x_min, 0.0)), ymax), largest_exponent(log1p(max(x_max, 0.0)), ymax)


@kernel
def largest_exponent(a: float, ymax: float) -> float:
    """Return the largest m with ``b_m(a) <= ymax``, for a >= 0, minus a margin for rounding; inf if there is no limit.

    With t = m a the equation ``b_m(a) = ymax`` becomes ``K(t) = ln(expm1(t)/t) = ln(ymax/a)``. K is the cumulant
    function of a uniform variable, which is increasing and convex, and K(t) >= t/2. So Newton's iteration from t = 2
    ln(ymax/a) decreases monotonically to the root. The closed form with Lambert's W overflows if ymax/a does, and loses
    half the digits near ymax = a.
    """
    if a <= 0.0 or ymax == math.inf:
        return math.inf
    log_ymax, log_a = log(ymax), log(a)
    growth = log_ymax - log_a - 1e-15 * (1.0 + abs(log_ymax) + abs(log_a))
    if growth < -700.0:
        return -math.inf
    t = 2.0 * growth
    lower = t - (_growth(t) - growth) / _growth_slope(t)
    while lower < t:
        t = lower
        lower = t - (_growth(t) - growth) / _growth_slope(t)
    return t / a


@kernel
def _growth(t: float) -> float:
    """Return K(t) = ln(expm1(t)/t), the log of the ratio of b_m(a) to a."""
    if abs(t) < 1e-5:
        return t * (0.5 + t / 24.0)
    return max(t, 0.0) + log(-expm1(-abs(t)) / abs(t))


@kernel
def _growth_slope(t: float) -> float:
    """Return K'(t) = 1/(1 - e^-t) - 1/t."""
    if abs(t) < 1e-3:
        return 0.5 + t / 12.0
    return math.copysign(math.exp(min(t, 0.0)) / -expm1(-abs(t)), t) - 1.0 / t


@entry((INTEGER, COLUMN, COLUMN, REAL, COLUMN, COLUMN))
def lambda_ranges(
    family: int, x_min: FloatArray, x_max: FloatArray, ymax: float, low: FloatArray, high: FloatArray
) -> None:
    """Write the bounds of lambda (`lambda_range`) for every column.

    Parameters
    ----------
    family : int
        BOX_COX or YEO_JOHNSON.
    x_min : (p,)
        The smallest value of each column.
    x_max : (p,)
        The largest value of each column.
    ymax : float
        Upper limit on |psi|.
    low : (p,)
        Receives the smallest lambdas.
    high : (p,)
        Receives the largest lambdas.
    """
    for j in range(x_min.size):
        low[j], high[j] = lambda_range(family, x_min[j], x_max[j], ymax)
