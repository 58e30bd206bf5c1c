"""Yeo-Johnson transform ([1]_), its inverse and its derivative.

psi(lambda, x) = b_lambda(ln(1 + x)) for x >= 0 and -b_(2-lambda)(ln(1 - x)) for x < 0; see `kernels.transforms.branch`.

Values of both signs go through the same operations on |x|, with the exponent selected by the sign, so that loops
vectorise without partitioning the data. `kernels.transforms.boxcox` explains scalar and block functions;
`yeojohnson_standardized` has the transforms that standardise.

References
----------
.. [1] I.-K. Yeo and R. A. Johnson, "A new family of power transformations to improve normality or symmetry",
   Biometrika 87, 2000, 954-959.
"""

from __future__ import annotations

import math

from powerkern._jit import inlined
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp import exp_parts, make_rounder, scaled_expm1_dd
from powerkern.kernels.elementary.log import extended_log, short_log1p, split_one_plus
from powerkern.kernels.transforms.branch import (
    LARGE,
    Exponent,
    Fit,
    Transform,
    branch_of_product,
    branch_unchecked,
    by_lambda,
    dd_mul_dd,
    exponent_pair,
    inverse_branch,
    inverse_branch_unchecked,
    invertible_interval,
    lambda_minus_one_dd,
    largest_ratio,
    moderate_forwards,
    moderate_log,
    psi_limit,
    select_by_sign,
    write_bounds,
    write_pair,
)

LOG_LARGE = math.log(LARGE)
#: Largest a for which (e**a - 1)/2 is finite; ln(2 * 1.8e308) = 710.5.
_LARGEST_LOG = 710.0

# --- one value at a time ----------------------------------------------------------------------------


@inlined
def _extended_log1p(x: float) -> tuple[float, float]:
    """Return ln(1 + x) as a double-double number, for finite x >= 0."""
    k, f, f_lo = split_one_plus(x)
    return extended_log(k, f, f_lo)


@inlined
def select_exponent(negative: bool, upper: Exponent, lower: Exponent) -> Exponent:
    """Return `lower` if `negative`, otherwise `upper`; both must have the same scale."""
    return Exponent(
        m=lower.m if negative else upper.m,
        m_lo=lower.m_lo if negative else upper.m_lo,
        inverse=lower.inverse if negative else upper.inverse,
        inverse_lo=lower.inverse_lo if negative else upper.inverse_lo,
        unit=upper.unit,
        rounder=upper.rounder,
        t_min=upper.t_min,
        t_max=upper.t_max,
    )


@inlined
def _is_tiny(size: float, lmbda: float) -> bool:
    """Return whether psi(x) = x (1 + (lambda - 1) |x|/2 + ...) rounds to x, for |x| = `size`; True for NaN."""
    return not size * (1.0 + abs(lmbda)) > 2.0**-55


@inlined
def yeojohnson(x: float, lmbda: float) -> float:
    """Return the Yeo-Johnson transform within 2 ulp, for |lmbda| <= 1e290.

    For x >= 0 the transform is ((1 + x)**lmbda - 1)/lmbda, or ln(1 + x) if lmbda = 0.
    For x < 0 it is -((1 - x)**(2 - lmbda) - 1)/(2 - lmbda), or -ln(1 - x) if lmbda = 2.
    At infinity the result is the limit. It is NaN if an argument is NaN.
    """
    negative, size = x < 0.0, abs(x)
    upper, lower = exponent_pair(lmbda)
    e = select_exponent(negative, upper, lower)
    a, a_lo = _extended_log1p(size)
    t, t_lo = dd_mul_dd(a, a_lo, e.m, e.m_lo)
    y = branch_of_product(t, t_lo, e)
    y = y if size < math.inf else psi_limit(2.0 - lmbda if negative else lmbda)
    return x * (1.0 + 0.0 * lmbda) if _is_tiny(size, lmbda) else math.copysign(y, x)


@inlined
def inv_yeojohnson(y: float, lmbda: float) -> float:
    """Return the x with yeojohnson(x, lmbda) = y, within 2 ulp, for |lmbda| <= 1e290.

    Outside the range of the transform, that is for lmbda*y < -1 if y >= 0 and (2 - lmbda)*(-y) < -1 if y < 0, the
    result is NaN. If the left side of the inequality is -1, even by rounding, the result is infinite with the sign of
    y. It is NaN if an argument is NaN.
    """
    negative = y < 0.0
    upper, lower = exponent_pair(lmbda)
    m, m_lo = 2.0 - lmbda if negative else lmbda, lower.m_lo if negative else 0.0
    a, a_lo = inverse_branch(abs(y), m, m_lo, select_exponent(negative, upper, lower))
    bounded = _LARGEST_LOG if a > _LARGEST_LOG else a
    return _expm1_signed(bounded, a_lo if bounded == a else 0.0, y)


@inlined
def _expm1_signed(a: float, a_lo: float, sign: float) -> float:
    """Return e**(a + a_lo) - 1 with the sign of `sign`, for 0 <= a <= _LARGEST_LOG."""
    head, tail = scaled_expm1_dd(a, a_lo, make_rounder(-1.0), 0.5)
    return math.copysign(2.0 * (head + tail), sign)


@inlined
def yeojohnson_dx(x: float, lmbda: float) -> float:
    """Return the derivative of the Yeo-Johnson transform in x within 2 ulp, for |lmbda| <= 1e290.

    The derivative is (1 + |x|)**(lmbda - 1) for x >= 0, and (1 + |x|)**(1 - lmbda) for x < 0. At infinity the result is
    the limit. It is NaN if an argument is NaN.
    """
    power, power_lo = lambda_minus_one_dd(lmbda)
    p = -power if x < 0.0 else power
    p_lo = -power_lo if x < 0.0 else power_lo
    a, a_lo = _extended_log1p(abs(x))
    y = exp_parts(*dd_mul_dd(a, a_lo, p, p_lo))
    limit = 1.0 if p == 0.0 else (0.0 if p < 0.0 else math.inf)
    y = y if abs(x) < math.inf else limit
    return y if x == x else x


# --- blocks of ordinary values ----------------------------------------------------------------------

#: Rows of an array of constants, after the bounds; the first row of a pair is for x >= 0.
_LMBDA, _LOWER_M_LO = 2, 3
_M, _INVERSE, _INVERSE_LO = range(4, 10, 2)


@inlined
def _steepest(lmbda: float) -> float:
    """Return max(|lambda|, |2 - lambda|), the larger magnitude of the two exponents."""
    upper, lower = abs(lmbda), abs(2.0 - lmbda)
    return upper if upper > lower else lower


@inlined
def ordinary_size(lmbda: float, e: Exponent) -> float:
    """Return the largest |x| for which exp(m ln(1 + |x|)) cannot overflow, whatever the sign of x.

    m is the exponent for the sign of x. `e` may be the `Exponent` for either sign.
    """
    return largest_ratio(e, _steepest(lmbda)) - 1.0


@inlined
def _write_exponents(lmbda: float, upper: Exponent, lower: Exponent, c: FloatArray, j: int) -> None:
    """Write lambda and the constants of both `Exponent` tuples, for x >= 0 and for x < 0, to column j of `c`."""
    c[_LMBDA, j], c[_LOWER_M_LO, j] = lmbda, lower.m_lo
    write_pair(_M, upper.m, lower.m, c, j)
    write_pair(_INVERSE, upper.inverse * upper.unit, lower.inverse * upper.unit, c, j)
    write_pair(_INVERSE_LO, upper.inverse_lo * upper.unit, lower.inverse_lo * upper.unit, c, j)


@inlined
def _block_exponent(c: FloatArray, j: int, negative: bool) -> Exponent:
    """Return the `Exponent` for x < 0 if `negative`, otherwise for x >= 0, from the constants of column j."""
    m, m_lo = select_by_sign(c, _M, j, negative), c[_LOWER_M_LO, j] if negative else 0.0
    inverse, inverse_lo = select_by_sign(c, _INVERSE, j, negative), select_by_sign(c, _INVERSE_LO, j, negative)
    return Exponent(m, m_lo, inverse, inverse_lo, 1.0, make_rounder(0.0), -math.inf, math.inf)


@inlined
def _yeojohnson_constants(fit: Fit, c: FloatArray, j: int) -> None:
    """Write the constants with which `_yeojohnson_block` transforms column j."""
    lmbda = fit.lmbda
    upper, lower = exponent_pair(lmbda)
    size = ordinary_size(lmbda, upper)
    write_bounds(-size, size, moderate_forwards(_steepest(lmbda)), c, j)
    _write_exponents(lmbda, upper, lower, c, j)


@inlined
def _yeojohnson_block(x: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """Transform ordinary values by Yeo-Johnson; `Transform` describes the arguments."""
    a, a_lo, kept = spare[0], spare[1], spare[2]
    for j in range(out.size):
        kept[j] = x[j]
        k, f, f_lo = split_one_plus(abs(x[j]))
        a[j], a_lo[j] = short_log1p(k, f, f_lo)
    for j in range(out.size):
        value = kept[j]
        e = _block_exponent(c, j, value < 0.0)
        t, t_lo = dd_mul_dd(a[j], a_lo[j], e.m, e.m_lo)
        y = math.copysign(branch_unchecked(t, t_lo, e), value)
        out[j] = value if _is_tiny(abs(value), c[_LMBDA, j]) else y


@inlined
def _inv_yeojohnson_constants(fit: Fit, c: FloatArray, j: int) -> None:
    """Write the constants with which `_inv_yeojohnson_block` inverts the transform of column j."""
    lmbda = fit.lmbda
    upper, lower = exponent_pair(lmbda)
    write_bounds(-_ordinary_image(2.0 - lmbda), _ordinary_image(lmbda), True, c, j)
    _write_exponents(lmbda, upper, lower, c, j)


@inlined
def _ordinary_image(m: float) -> float:
    """Return the largest |psi| that can be inverted without range checks, for values of one sign with exponent m."""
    most = moderate_log(m)
    return invertible_interval(m, 0.0, most if most < LOG_LARGE else LOG_LARGE)[1]


@inlined
def _inv_yeojohnson_block(y: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """Invert the Yeo-Johnson transform of ordinary values; `Transform` describes the arguments."""
    a, a_lo, kept = spare[0], spare[1], spare[2]
    for j in range(out.size):
        kept[j] = y[j]
        negative, lmbda = y[j] < 0.0, c[_LMBDA, j]
        e = _block_exponent(c, j, negative)
        a[j], a_lo[j] = inverse_branch_unchecked(abs(y[j]), 2.0 - lmbda if negative else lmbda, e.m_lo, e)
    for j in range(out.size):
        out[j] = _expm1_signed(a[j], a_lo[j], kept[j])


#: The transforms without standardising, in the order of the directions.
TRANSFORMS = (
    Transform("yeojohnson", by_lambda(yeojohnson), _yeojohnson_constants, _yeojohnson_block, 10),
    Transform("inv_yeojohnson", by_lambda(inv_yeojohnson), _inv_yeojohnson_constants, _inv_yeojohnson_block, 10),
)
