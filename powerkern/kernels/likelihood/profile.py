"""The profile likelihood and its derivatives from moments: the formulas that all fits share.

With y = psi(lambda) and primes for derivatives in lambda, per observation ([1]_, eq. (8); docs/numerics: Derivatives)::

    g    = 1/2 ln Var(y) - (lambda - 1) mean(J)
    g'   = Cov(y, y')/Var(y) - mean(J)
    g''  = (Var(y') + Cov(y, y''))/Var(y) - 2 (Cov(y, y')/Var(y))^2

and g''' in the same way. Moments are an array, or a tuple of numbers or of vectors, in the order below; a common factor
of y and its derivatives cancels. Every function here takes all of them.

References
----------
.. [1] G. E. P. Box and D. R. Cox, "An analysis of transformations", JRSS B 26, 1964, 211-252.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from powerkern._jit import kernel
from powerkern._typing import FloatArray

#: Total weight, means of y, y', y'', y''', sums of products about the means; or the sums of these before `centered`.
WEIGHT, Y, Y1, Y2, Y3, YY, YY1, Y1Y1, YY2, YY3, Y1Y2 = range(11)
N_MOMENTS = 11
#: An array of moments, or a tuple of them.
Moments: TypeAlias = Any

#: Raw sums are trusted while the mean square is at most this times the variance: they lose at most two digits.
MAX_SQUARE_TO_VARIANCE = 100.0


# --- from values to moments ---------------------------------------------------------------------------


@kernel
def derivatives(t: float, excess: float, one: float) -> tuple[float, float, float, float]:
    """Y_0 = e^t - 1, Y_1 = t e^t - Y_0, Y_2 = t^2 e^t - 2 Y_1, Y_3 = t^3 e^t - 3 Y_2, given e^t - 1 - t.

    In the type of t and of `one`; with t = m a, y^(j) = Y_j/m^(j+1).
    """
    two = one + one
    y0 = t + excess
    y1 = t * y0 - excess
    t2e = t * t + t * t * y0
    y2 = t2e - two * y1
    return y0, y1, y2, t * t2e - (two + one) * y2


@kernel
def centered(t: Moments, weight: float) -> tuple[Moments, bool]:
    """Moments from raw sums, of this total weight; and whether that costs few digits: False for NaN and infinite sums.

    Numbers, or a vector of them and its mask.
    """
    s0, s1, s2, s3 = t[Y] / weight, t[Y1] / weight, t[Y2] / weight, t[Y3] / weight
    n0, n1 = weight * s0, weight * s1
    yy, yy1, y1y1 = t[YY] - n0 * s0, t[YY1] - n0 * s1, t[Y1Y1] - n1 * s1
    yy2, yy3, y1y2 = t[YY2] - n0 * s2, t[YY3] - n0 * s3, t[Y1Y2] - n1 * s2
    kept = (t[YY] <= MAX_SQUARE_TO_VARIANCE * yy) & (abs(yy3) < math.inf)
    return (weight, s0, s1, s2, s3, yy, yy1, y1y1, yy2, yy3, y1y2), kept


@kernel
def merge_moments(total: FloatArray, part: FloatArray) -> None:
    """total += part, pairwise (docs/numerics: Merging moments): C_xy += delta_x delta_y w_A w_B / w."""
    w = total[WEIGHT] + part[WEIGHT]
    fraction = part[WEIGHT] / w
    lever = total[WEIGHT] * fraction
    d0, d1, d2, d3 = part[Y] - total[Y], part[Y1] - total[Y1], part[Y2] - total[Y2], part[Y3] - total[Y3]
    total[YY] += part[YY] + d0 * d0 * lever
    total[YY1] += part[YY1] + d0 * d1 * lever
    total[Y1Y1] += part[Y1Y1] + d1 * d1 * lever
    total[YY2] += part[YY2] + d0 * d2 * lever
    total[YY3] += part[YY3] + d0 * d3 * lever
    total[Y1Y2] += part[Y1Y2] + d1 * d2 * lever
    total[Y] += d0 * fraction
    total[Y1] += d1 * fraction
    total[Y2] += d2 * fraction
    total[Y3] += d3 * fraction
    total[WEIGHT] = w


# --- the likelihood -----------------------------------------------------------------------------------


@kernel
def profile_nll(log_variance: float, log_base: float, m: float, jacobian: float) -> float:
    """g at the exponent m: the variance of y and mean(J) are those of logs relative to `log_base`."""
    return 0.5 * log_variance + log_base - (m - 1.0) * jacobian


@kernel
def _halves(t: Moments) -> tuple[float, float, float]:
    """Half of the first three derivatives in lambda of the sum of squares about the mean."""
    return t[YY1], t[Y1Y1] + t[YY2], 3.0 * t[Y1Y2] + t[YY3]


@kernel
def ratios(t: Moments) -> tuple[float, float, float]:
    """Cov(y, y')/Var(y), (Var(y') + Cov(y, y''))/Var(y) and (3 Cov(y', y'') + Cov(y, y'''))/Var(y)."""
    h1, h2, h3 = _halves(t)
    return h1 / t[YY], h2 / t[YY], h3 / t[YY]


@kernel
def score_from_moments(t: Moments, jacobian: float) -> tuple[float, float, float]:
    """g', g'' and g''' (docs/numerics: Derivatives); `jacobian` is mean(J)."""
    slope, bend, third = ratios(t)
    d2 = bend - 2.0 * slope * slope
    return slope - jacobian, d2, third - 2.0 * slope * bend - 4.0 * slope * d2


@kernel
def has_root_near(d1: float, d2: float, d3: float) -> bool:
    """Newton-Kantorovich, to third order: with ``|g' g'''| <= g''^2 / 2`` g' has a root within twice the Newton step.

    g is strictly convex, so it is the only one.
    """
    return (d2 > 0.0) & (abs(d1 * d3) <= 0.5 * d2 * d2)


# --- near the point where moments were taken ------------------------------------------------------------


@kernel
def shifted_score(t: Moments, jacobian: float, shift: float) -> tuple[float, float, float]:
    """g', g'', g''' a tiny `shift` away from where the moments were taken."""
    d1, d2, d3 = score_from_moments(t, jacobian)
    return d1 + shift * (d2 + 0.5 * shift * d3), d2 + shift * d3, d3


@kernel
def growth(t: Moments) -> float:
    """The square of how fast moments grow with lambda, as a log: its power k/2 is the order of the k-th derivative."""
    return abs(ratios(t)[1])


@kernel
def squares_at(t: Moments, step: float) -> float:
    """The sum of squares about the mean a short step from where moments were taken (Taylor)."""
    h1, h2, h3 = _halves(t)
    return t[YY] + step * (2.0 * h1 + step * (h2 + step * h3 / 3.0))  # type: ignore[no-any-return]


@kernel
def moments_at(t: Moments, step: float) -> tuple[float, float, float]:
    """Mean and variance of the transformed values, and g'', a short step from where moments were taken (Taylor)."""
    mean = t[Y] + step * (t[Y1] + step * (t[Y2] / 2.0 + step * t[Y3] / 6.0))
    _, d2, d3 = score_from_moments(t, 0.0)
    return mean, squares_at(t, step) / t[WEIGHT], d2 + step * d3
