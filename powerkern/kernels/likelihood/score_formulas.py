"""The profile likelihood and its derivatives as functions of moments: formulas that all fits share.

With y = psi(lambda) and primes for derivatives in lambda, per observation ([1]_, eq. (8))::

    g    = 1/2 ln Var(y) - (lambda - 1) mean(J)
    g'   = Cov(y, y')/Var(y) - mean(J)
    g''  = (Var(y') + Cov(y, y''))/Var(y) - 2 (Cov(y, y')/Var(y))^2

and g''' similarly. A common factor of y and its derivatives cancels. Moments are an array, or a tuple of numbers or of
vectors, in the order of the indices below. Functions that write moments take arrays; the others accept all three.

References
----------
.. [1] G. E. P. Box and D. R. Cox, "An analysis of transformations", JRSS B 26, 1964, 211-252.
.. [2] T. F. Chan, G. H. Golub and R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing sample
   variances", COMPSTAT 1982, 30-41.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

from powerkern._jit import inlined, kernel, reduction
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp import expm1_minus_x, polynomial

#: Indices of moments: total weight, means of y, y', y'', y''', and sums of products about the means. In raw sums,
#: before `central_moments`, they are sums of y^(j) and of products of these.
WEIGHT, Y, Y1, Y2, Y3, YY, YY1, Y1Y1, YY2, YY3, Y1Y2 = range(11)
#: Number of moments.
N_MOMENTS = 11
#: An array of moments, or a tuple of them.
Moments: TypeAlias = Any

#: Largest ratio of mean square to variance for which raw sums are used; they then lose at most two digits.
_MAX_SQUARE_TO_VARIANCE = 100.0
#: Up to this |m| * max|a| the derivatives are computed from power series, which are also valid at m = 0.
SERIES_REACH = 0.5
_PHI3 = tuple(1.0 / (math.factorial(k) * (k + 4)) for k in range(13))


class Origin(NamedTuple):
    """The transform of the value 0 and its first three derivatives, relative to the reference."""

    y0: float
    y1: float
    y2: float
    y3: float


# --- from values to moments ---------------------------------------------------------------------------


@kernel
def derivatives(t: float, excess: float, one: float) -> tuple[float, float, float, float]:
    """Return Y_0 = e^t - 1 and Y_j = t^j e^t - j Y_(j-1) for j = 1, 2, 3, given `excess` = e^t - 1 - t.

    With t = m a, the j-th derivative in m of (e^(m a) - 1)/m is Y_j/m^(j+1). `one` is 1 in the type of t (float32,
    float64 or a vector).
    """
    y0 = t + excess
    return _with_higher(t, t * t + t * t * y0, y0, t * y0 - excess, one)


@inlined
def scaled_derivatives(t: float, e: float, one: float) -> tuple[float, float, float, float]:
    """Return the results of `derivatives` for any t, multiplied by a factor `one`; `e` is e^t times the same factor.

    A tiny factor keeps the results in range for large t.
    """
    near = abs(t) < 1.0
    small = t if near else 0.0
    excess = expm1_minus_x(small)
    y0 = one * (small + excess) if near else e - one
    y1 = one * (small * (small + excess) - excess) if near else t * e - y0
    return _with_higher(t, t * t * e, y0, y1, 1.0)


@inlined
def _with_higher(t: float, t2e: float, y0: float, y1: float, one: float) -> tuple[float, float, float, float]:
    """Return Y_0, Y_1, Y_2 and Y_3 (see `derivatives`), given the first two.

    Parameters
    ----------
    t : float
        The argument of the exponential.
    t2e : float
        t^2 e^t.
    y0, y1 : float
        Y_0 and Y_1.
    one : float
        1 in the type of t.
    """
    two = one + one
    y2 = t2e - two * y1
    return y0, y1, y2, t * t2e - (two + one) * y2


@inlined
def phis(t: float, e: float, one: float) -> tuple[float, float, float, float]:
    """Return phi_j(t) = sum_k t^k/(k! (k+j+1)) for j = 0..3, times `one`, given e = e^t times `one`.

    phi_3 is computed from its series; j phi_(j-1) = e^t - t phi_j gives the others, stably for small t.
    """
    phi3 = polynomial(_PHI3, t) * one
    phi2 = (e - t * phi3) * (1.0 / 3.0)
    phi1 = (e - t * phi2) * 0.5
    return e - t * phi1, phi1, phi2, phi3


@kernel
def zero_sums(zero: float) -> Moments:
    """Return raw sums (`Moments`) that are all 0, as numbers or vectors like `zero`."""
    return zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero


@kernel
def add_observation(t: Moments, y0: float, y1: float, y2: float, y3: float, weight: float) -> Moments:
    """Add one value, or one value per lane, to raw sums of the transform y and its derivatives.

    The total weight is left unchanged.

    Parameters
    ----------
    t : Moments
        The sums so far.
    y0, y1, y2, y3 : float
        y and its first three derivatives in the exponent.
    weight : float
        The weight of the value.
    """
    w0, w1 = y0 * weight, y1 * weight
    return (
        t[WEIGHT], t[Y] + w0, t[Y1] + w1, t[Y2] + y2 * weight, t[Y3] + y3 * weight, t[YY] + w0 * y0,
        t[YY1] + w0 * y1, t[Y1Y1] + w1 * y1, t[YY2] + w0 * y2, t[YY3] + w0 * y3, t[Y1Y2] + w1 * y2,
    )  # fmt: skip


@kernel
def add_signed_sums(t: Moments, part: Moments, sign: float) -> Moments:
    """Add the raw sums over the values of one sign to the sums of a column.

    For negative values (`sign` -1), `part` contains sums of b_m(a) = (e^(m a) - 1)/m and its derivatives in m, but the
    sums of y = -b_m(a) and its derivatives in lambda are added. The j-th derivative of y in lambda is ``(-1)^(j + 1)``
    times the j-th derivative of b_m(a) in m, since m = 2 - lambda.

    Parameters
    ----------
    t : Moments
        Sums of the column so far.
    part : Moments
        Sums over the values of one sign.
    sign : float
        1 for non-negative values, -1 for negative ones.
    """
    return (
        t[WEIGHT], t[Y] + sign * part[Y], t[Y1] + part[Y1], t[Y2] + sign * part[Y2], t[Y3] + part[Y3],
        t[YY] + part[YY], t[YY1] + sign * part[YY1], t[Y1Y1] + part[Y1Y1], t[YY2] + part[YY2],
        t[YY3] + sign * part[YY3], t[Y1Y2] + sign * part[Y1Y2],
    )  # fmt: skip


@kernel
def central_moments(t: Moments, weight: float) -> tuple[Moments, bool]:
    """Return central moments from raw sums, and whether they keep enough digits (False for NaN and infinite sums).

    Sums may be numbers or vectors; for vectors the second result is a mask.
    """
    s0, s1, s2, s3 = t[Y] / weight, t[Y1] / weight, t[Y2] / weight, t[Y3] / weight
    n0, n1 = weight * s0, weight * s1
    yy, yy1, y1y1 = t[YY] - n0 * s0, t[YY1] - n0 * s1, t[Y1Y1] - n1 * s1
    yy2, yy3, y1y2 = t[YY2] - n0 * s2, t[YY3] - n0 * s3, t[Y1Y2] - n1 * s2
    kept = (t[YY] <= _MAX_SQUARE_TO_VARIANCE * yy) & (abs(yy3) < math.inf)
    return (weight, s0, s1, s2, s3, yy, yy1, y1y1, yy2, yy3, y1y2), kept


@reduction
def moments_of_block(y: FloatArray, weight: FloatArray, out: FloatArray) -> None:
    """Write the moments of the transformed values of a block and of their first three derivatives, in two passes.

    The rows of `y` hold the values and their derivatives.
    """
    y0, y1, y2, y3 = y[0], y[1], y[2], y[3]
    w = s0 = s1 = s2 = s3 = 0.0
    for i in range(weight.size):
        w += weight[i]
        s0 += weight[i] * y0[i]
        s1 += weight[i] * y1[i]
        s2 += weight[i] * y2[i]
        s3 += weight[i] * y3[i]
    s0, s1, s2, s3 = s0 / w, s1 / w, s2 / w, s3 / w
    q00 = q01 = q11 = q02 = q03 = q12 = 0.0
    for i in range(weight.size):
        d0 = y0[i] - s0
        d1 = y1[i] - s1
        d2 = y2[i] - s2
        w0 = weight[i] * d0
        q00 += w0 * d0
        q01 += w0 * d1
        q02 += w0 * d2
        q03 += w0 * (y3[i] - s3)
        q11 += weight[i] * d1 * d1
        q12 += weight[i] * d1 * d2
    out[WEIGHT] = w
    out[Y], out[Y1], out[Y2], out[Y3] = s0, s1, s2, s3
    out[YY], out[YY1], out[Y1Y1], out[YY2], out[YY3], out[Y1Y2] = q00, q01, q11, q02, q03, q12


@kernel
def relative_to(origin: Origin, log_reference: float, t: FloatArray) -> None:
    """Convert moments of a transform psi and its derivatives to those of ``e^(-m log_reference) psi + y_0``, in place.

    y_0 is the transform of the value 0, given by `origin` with its derivatives. The derivatives of the factor enter by
    Leibniz' rule.
    """
    c = -log_reference
    t[Y3] += c * (3.0 * t[Y2] + c * (3.0 * t[Y1] + c * t[Y])) + origin.y3
    t[Y2] += c * (2.0 * t[Y1] + c * t[Y]) + origin.y2
    t[Y1] += c * t[Y] + origin.y1
    t[Y] += origin.y0
    t[Y1Y2] += c * (2.0 * t[Y1Y1] + t[YY2] + c * (3.0 * t[YY1] + c * t[YY]))
    t[Y1Y1] += c * (2.0 * t[YY1] + c * t[YY])
    t[YY3] += c * (3.0 * t[YY2] + c * (3.0 * t[YY1] + c * t[YY]))
    t[YY2] += c * (2.0 * t[YY1] + c * t[YY])
    t[YY1] += c * t[YY]


@kernel
def merge_moments(total: FloatArray, part: FloatArray) -> None:
    """Add the moments of a part to a total: C_xy += C_xy,part + delta_x delta_y w w_part/(w + w_part) [2]_.

    C_xy is a sum of products about the means, delta a difference of means, and w a weight.
    """
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


# --- exponents that are divided by ---------------------------------------------------------------------


@kernel
def exponents_off_zero(m: float, both_signs: bool, two: float, floor: float) -> float:
    """Return the exponent e nearest to m with |e| >= floor and, if there are both signs, |two - e| >= floor.

    Parameters
    ----------
    m : float
        The exponent.
    both_signs : bool
        Whether there are values of both signs; two - m is the exponent of the negative ones.
    two : float
        2 in the units of m.
    floor : float
        The smallest magnitude allowed for either exponent.
    """
    if abs(m) < floor:
        return math.copysign(floor, m)
    if both_signs and abs(two - m) < floor:
        return two - math.copysign(floor, two - m)
    return m


# --- the likelihood -----------------------------------------------------------------------------------


@kernel
def profile_nll(log_variance: float, log_base: float, m: float, jacobian: float) -> float:
    """Return the negative log-likelihood g per observation at the exponent m.

    All logs are relative to the log of a reference.

    Parameters
    ----------
    log_variance : float
        The log of the variance of b_m(d) = (e^(m d) - 1)/m over the relative logs d.
    log_base : float
        The log of the reference.
    m : float
        The exponent.
    jacobian : float
        The mean of the relative logs.
    """
    return 0.5 * log_variance + log_base - (m - 1.0) * jacobian


@kernel
def _halves(t: Moments) -> tuple[float, float, float]:
    """Return half of the first three derivatives, in lambda, of the sum of squares of the transform about its mean."""
    return t[YY1], t[Y1Y1] + t[YY2], 3.0 * t[Y1Y2] + t[YY3]


@kernel
def ratios(t: Moments) -> tuple[float, float, float]:
    """Return Cov(y, y')/Var(y), (Var(y') + Cov(y, y''))/Var(y) and (3 Cov(y', y'') + Cov(y, y'''))/Var(y).

    y is the transform, and primes denote derivatives in lambda.
    """
    h1, h2, h3 = _halves(t)
    return h1 / t[YY], h2 / t[YY], h3 / t[YY]


@kernel
def _log_sd_derivatives(t: Moments) -> tuple[float, float, float]:
    """Return the first three derivatives, in lambda, of the log of the transform's standard deviation.

    The second and the third are also derivatives of the negative log-likelihood.
    """
    slope, bend, third = ratios(t)
    d2 = bend - 2.0 * slope * slope
    return slope, d2, third - 2.0 * slope * bend - 4.0 * slope * d2


@kernel
def score_from_moments(t: Moments, jacobian: float) -> tuple[float, float, float]:
    """Return the first three derivatives of the negative log-likelihood ([1]_, eq. (8)) per observation, in lambda.

    `jacobian` is the mean log-Jacobian term.
    """
    slope, d2, d3 = _log_sd_derivatives(t)
    return slope - jacobian, d2, d3


@kernel
def has_root_near(d1: float, d2: float, d3: float) -> bool:
    """Return whether the negative log-likelihood certainly has a minimum within twice the Newton step.

    `d1`, `d2` and `d3` are its derivatives. The minimum is unique, because the function is strictly convex.
    """
    return (d2 > 0.0) & (abs(d1 * d3) <= 0.5 * d2 * d2)


# --- near the exponent of the moments ------------------------------------------------------------


@kernel
def shifted_score(t: Moments, jacobian: float, shift: float) -> tuple[float, float, float]:
    """Return the score at the exponent of the moments plus `shift`, by Taylor expansion.

    `jacobian` is the mean log-Jacobian term, as in `score_from_moments`.
    """
    d1, d2, d3 = score_from_moments(t, jacobian)
    return d1 + shift * (d2 + 0.5 * shift * d3), d2 + shift * d3, d3


@kernel
def moment_rate_squared(t: Moments) -> float:
    """Return the squared growth rate r^2 of the moments in lambda: their k-th derivatives have the size of r^k."""
    return abs(ratios(t)[1])


@kernel
def taylor_sum_of_squares(t: Moments, step: float) -> float:
    """Return the transform's sum of squares about its mean, at the exponent of the moments plus `step`.

    It is computed by Taylor expansion.
    """
    h1, h2, h3 = _halves(t)
    return t[YY] + step * (2.0 * h1 + step * (h2 + step * h3 / 3.0))  # type: ignore[no-any-return]


@kernel
def taylor_moments(t: Moments, step: float) -> tuple[float, float, float]:
    """Return mean and variance of the transform, and the curvature of the negative log-likelihood, after a step.

    They are computed by Taylor expansion, at the exponent of the moments plus `step`.
    """
    mean = t[Y] + step * (t[Y1] + step * (t[Y2] / 2.0 + step * t[Y3] / 6.0))
    _, d2, d3 = _log_sd_derivatives(t)
    return mean, taylor_sum_of_squares(t, step) / t[WEIGHT], d2 + step * d3
