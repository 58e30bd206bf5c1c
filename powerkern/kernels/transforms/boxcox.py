"""Box-Cox transform ([1]_), its inverse and its derivative, raw and standardised.

psi(lambda, x) = b_lambda(ln x) = (x**lambda - 1)/lambda, and ln x for lambda = 0 ([1]_, eq. (1)); see
`kernels.transforms.branch`.

There are two versions of every transform. The scalar function takes any value and can be called in any jitted loop. The
block function takes a block of values from one column or from many, and arrays with the constants of each value's
column. All values of the block must be ordinary, that is, need no range checks. The two versions give the same bits for
standardised values. For raw values with moderate exponents the block function uses a cheaper logarithm.

Block functions run in two phases, since one long chain of dependent operations would fill the CPU's schedulers while
its arithmetic units idle (2.8 instead of 2.1 ns per value).

References
----------
.. [1] G. E. P. Box and D. R. Cox, "An analysis of transformations", JRSS B 26, 1964, 211-252.
"""

from __future__ import annotations

import math

from powerkern._jit import inlined
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp import exp_parts, exp_parts_unchecked, exp_scaled, make_rounder, scaled_expm1
from powerkern.kernels.elementary.log import (
    extended_log,
    log,
    log1p_finite,
    log_sum,
    short_log,
    split,
    split_normal,
)
from powerkern.kernels.transforms.branch import (
    LARGE,
    LINEAR,
    LOG_END,
    NOISELESS,
    Exponent,
    Fit,
    Transform,
    branch_of_product,
    branch_unchecked,
    by_lambda,
    dd_mul,
    dd_mul_dd,
    exponent,
    inverse_branch,
    inverse_branch_unchecked,
    invertible_interval,
    lambda_minus_one_dd,
    largest_ratio,
    moderate_forwards,
    moderate_log,
    psi_limit,
    write_bounds,
)

#: For magnitudes between this and LARGE no later operation overflows or gives subnormal numbers.
_SMALL = 1e-290
_LOG_SMALL, _LOG_LARGE = math.log(_SMALL), math.log(LARGE)

# --- one value at a time ----------------------------------------------------------------------------


@inlined
def _extended_log(x: float) -> tuple[float, float]:
    """Return ln x as a double-double number, for positive finite x."""
    k, m = split(x)
    return extended_log(k, m - 1.0, 0.0)


@inlined
def _with_edges(y: float, x: float, at_zero: float, at_infinity: float) -> float:
    """Return y for 0 < x < inf, `at_zero` for x = 0, `at_infinity` for x = inf, and NaN for negative or NaN x."""
    edge = at_zero if x == 0.0 else math.nan
    y = y if x > 0.0 else edge
    return at_infinity if x == math.inf else y


@inlined
def boxcox(x: float, lmbda: float) -> float:
    """Return (x**lmbda - 1)/lmbda, or ln x for lmbda = 0, within 2 ulp, for |lmbda| <= 1e290.

    At x = 0 the result is -1/lmbda for lmbda > 0, otherwise -inf. It is NaN for x < 0 or if an argument is NaN.
    """
    e = exponent(lmbda)
    a, a_lo = _extended_log(x)
    t, t_lo = dd_mul(a, a_lo, e.m)
    # the last term gives NaN if lambda is NaN, for which psi_limit does not check
    return _with_edges(branch_of_product(t, t_lo, e), x, -psi_limit(-lmbda), psi_limit(lmbda)) + 0.0 * lmbda


@inlined
def inv_boxcox(y: float, lmbda: float) -> float:
    """Return (1 + lmbda*y)**(1/lmbda), or e**y for lmbda = 0, within 2 ulp, for |lmbda| <= 1e290.

    Outside the range of the transform, that is for lmbda*y < -1, the result is NaN. If lmbda*y is -1, even by rounding,
    the result is 0 for lmbda > 0 and inf for lmbda < 0. It is NaN if an argument is NaN.
    """
    a, a_lo = inverse_branch(y, lmbda, 0.0, exponent(lmbda))
    return exp_parts(a, a_lo)


@inlined
def boxcox_dx(x: float, lmbda: float) -> float:
    """Return the derivative of the Box-Cox transform in x, x**(lmbda - 1), within 2 ulp, for |lmbda| <= 1e290.

    At x = 0 and at infinity the result is the limit. It is NaN for x < 0 or if an argument is NaN.
    """
    a, a_lo = _extended_log(x)
    power, power_lo = lambda_minus_one_dd(lmbda)
    y = exp_parts(*dd_mul_dd(a, a_lo, power, power_lo))
    at_zero = 1.0 if power == 0.0 else (0.0 if power > 0.0 else math.inf)
    at_infinity = 1.0 if power == 0.0 else (0.0 if power < 0.0 else math.inf)
    return _with_edges(y, x, at_zero, at_infinity) + 0.0 * power


# --- standardised -----------------------------------------------------------------------------------
#
# x**lambda may overflow, and differences of ln x may cancel in a tight cluster, although the standardised values are
# ordinary numbers. So the logarithm is taken relative to a reference in the data: with d = ln(x/ref),
#     psi(lambda, x) - psi(lambda, ref) = ref**lambda b_lambda(d),
# and standardising b_lambda(d) by its mean and scale gives the same values as standardising psi.


@inlined
def _log_ratio(x: float, ref: float) -> float:
    """Return ln(x/ref) for positive finite x, without overflow, and without cancellation near ref."""
    # divide by twice the mantissa of ref, which cannot overflow or (unless x is subnormal) underflow
    ref_k, ref_m = split(ref)
    small = x < _SMALL
    k, m = split((x * 2.0**54 if small else x) * (0.5 / ref_m))
    k = (k - 54.0 if small else k) - (ref_k - 1.0)
    up = 2.0**100 if ref < _SMALL else 1.0  # 1/ref itself may overflow
    w = (x - ref) * up * (1.0 / (ref * up))
    return log_sum(k, w if k == 0.0 else m - 1.0)


@inlined
def _log_ratio_unchecked(x: float, ref: float, inverse: float) -> float:
    """Return the same bits as `_log_ratio`, if neither `inverse` = 1/ref nor x/ref overflows or is subnormal."""
    k, m = split_normal(x * inverse)
    return log_sum(k, (x - ref) * inverse if k == 0.0 else m - 1.0)


@inlined
def boxcox_standardized(x: float, fit: Fit) -> float:
    """Return z = a b_lambda(ln(x/ref)) + b, with the reference, slope a and intercept b of a fit.

    The logarithm is log1p((x - ref)/ref) if x/ref is near 1 (x - ref is then exact). The result is finite if lambda
    ln(x/ref) < 709. This holds for all fitted data if ref is the largest value for lambda > 0, and the smallest value
    for lambda < 0. The error is a few eps of max(|z|, |b|, a |b_lambda(d)|), where d = ln(x/ref). Values outside x > 0
    are treated as in `boxcox`.
    """
    lmbda, a, b = fit.lmbda, fit.slope, fit.intercept
    e = exponent(lmbda)
    t = e.m * _log_ratio(x, fit.ref)
    t = e.t_max if t > e.t_max else t
    t = e.t_min if t < e.t_min else t
    z = a * (scaled_expm1(t, e.rounder, e.unit) * e.inverse) + b
    return _with_edges(z, x, a * -psi_limit(-lmbda) + b, a * psi_limit(lmbda) + b)


@inlined
def boxcox_unstandardized(z: float, fit: Fit) -> float:
    """Return the x with ``boxcox_standardized(x, fit) = z``: ref*(1 + lambda y)**(1/lambda) with y = (z - b)/a.

    The result is NaN outside the range of the transform, that is for lambda y < -1. If lambda y rounds to -1, many x
    have the same z. Of these, the x nearest to ref is returned, since transforming it again gives a better z than
    transforming 0 (lambda > 0) or inf (lambda < 0).
    """
    lmbda, b = fit.lmbda, fit.intercept
    e = exponent(lmbda)
    inverse, a_inverse = e.inverse * e.unit, 1.0 / fit.slope
    y = (z - b) * a_inverse
    v = 0.0 if lmbda == 0.0 else lmbda * y
    d = log1p_finite(v) * inverse
    d = y if abs(v) < LINEAR else d
    d = d if v > -1.0 else LOG_END * inverse
    d = d if v < math.inf else (math.inf if lmbda >= 0.0 else -math.inf)
    outside = -1.0 - 2.0**-50 * (1.0 + abs(lmbda * b * a_inverse))
    ref_k, ref_m = split(fit.ref)
    return exp_scaled(d if v >= outside else math.nan, ref_k, ref_m)


# --- blocks of ordinary values ----------------------------------------------------------------------

# rows of an array of constants, after the bounds
_LMBDA, _M, _INVERSE, _INVERSE_LO = range(2, 6)
_SLOPE, _OFFSET, _REF, _REF_INVERSE = 2, *range(5, 8)
#: Rows of the constants of inverses.
_SLOPE_INVERSE, _REF_K, _REF_M = 3, 6, 7


@inlined
def _write_exponent(lmbda: float, e: Exponent, c: FloatArray, j: int) -> None:
    """Write lambda and the constants of its `Exponent` to column j of the constants `c`."""
    c[_LMBDA, j], c[_M, j], c[_INVERSE, j], c[_INVERSE_LO, j] = lmbda, e.m, e.inverse * e.unit, e.inverse_lo * e.unit


@inlined
def _block_exponent(c: FloatArray, j: int) -> Exponent:
    """Rebuild the `Exponent` of column j from its constants, with the unit 1 and without bounds."""
    return Exponent(c[_M, j], 0.0, c[_INVERSE, j], c[_INVERSE_LO, j], 1.0, make_rounder(0.0), -math.inf, math.inf)


@inlined
def _boxcox_constants(fit: Fit, c: FloatArray, j: int) -> None:
    """Write the constants with which `_boxcox_block` transforms column j."""
    lmbda = fit.lmbda
    e = exponent(lmbda)
    span = largest_ratio(e, abs(lmbda))
    write_bounds(1.0 / span if 1.0 / span > _SMALL else _SMALL, span, moderate_forwards(lmbda), c, j)
    _write_exponent(lmbda, e, c, j)


@inlined
def _boxcox_block(x: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """Transform ordinary values by Box-Cox; `Transform` describes the arguments."""
    a, a_lo = spare[0], spare[1]
    for j in range(out.size):
        k, m = split_normal(x[j])
        log_x, a_lo[j] = short_log(k, m - 1.0)
        a[j] = log_x + 0.0 * x[j]  # NaN for NaN
    for j in range(out.size):
        t, t_lo = dd_mul(a[j], a_lo[j], c[_M, j])
        out[j] = branch_unchecked(t, t_lo, _block_exponent(c, j))


@inlined
def _inv_boxcox_constants(fit: Fit, c: FloatArray, j: int) -> None:
    """Write the constants with which `_inv_boxcox_block` inverts the transform of column j."""
    lmbda = fit.lmbda
    most = moderate_log(lmbda)
    low, high = invertible_interval(
        lmbda, -most if -most > _LOG_SMALL else _LOG_SMALL, most if most < _LOG_LARGE else _LOG_LARGE
    )
    write_bounds(low, high, True, c, j)
    _write_exponent(lmbda, exponent(lmbda), c, j)


@inlined
def _inv_boxcox_block(y: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """Invert the Box-Cox transform of ordinary values; `Transform` describes the arguments."""
    a, a_lo = spare[0], spare[1]
    for j in range(out.size):
        a[j], a_lo[j] = inverse_branch_unchecked(y[j], c[_LMBDA, j], 0.0, _block_exponent(c, j))
    for j in range(out.size):
        out[j] = exp_parts_unchecked(a[j], a_lo[j])


@inlined
def _standardized_constants(fit: Fit, c: FloatArray, j: int) -> None:
    """Write the constants with which `_standardized_block` transforms column j."""
    lmbda, ref = fit.lmbda, fit.ref
    e = exponent(lmbda)
    span = largest_ratio(e, abs(lmbda))
    low = ref / span if ref / span > _SMALL else _SMALL
    write_bounds(low, ref * span, _SMALL <= ref <= LARGE, c, j)  # no value is ordinary if 1/ref may overflow
    c[_M, j], c[_INVERSE, j], c[_SLOPE, j], c[_OFFSET, j] = e.m, e.inverse * e.unit, fit.slope, fit.intercept
    c[_REF, j], c[_REF_INVERSE, j] = ref, 1.0 / ref


@inlined
def _standardized_block(x: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """Apply `boxcox_standardized` to ordinary values; `Transform` describes the arguments."""
    d = spare[0]
    for j in range(out.size):
        d[j] = _log_ratio_unchecked(x[j], c[_REF, j], c[_REF_INVERSE, j]) + 0.0 * x[j]
    for j in range(out.size):
        value = scaled_expm1(c[_M, j] * d[j], make_rounder(0.0), 1.0) * c[_INVERSE, j]
        out[j] = c[_SLOPE, j] * value + c[_OFFSET, j]


@inlined
def _unstandardized_constants(fit: Fit, c: FloatArray, j: int) -> None:
    """Write the constants with which `_unstandardized_block` inverts the transform of column j."""
    lmbda, ref, a, b = fit.lmbda, fit.ref, fit.slope, fit.intercept
    e, log_ref = exponent(lmbda), log(ref)
    low, high = invertible_interval(lmbda, _LOG_SMALL - log_ref, _LOG_LARGE - log_ref)
    write_bounds(a * low + b, a * high + b, abs(lmbda * b) <= NOISELESS * a, c, j)
    c[_LMBDA, j], c[_INVERSE, j], c[_SLOPE_INVERSE, j], c[_OFFSET, j] = lmbda, e.inverse * e.unit, 1.0 / a, b
    c[_REF_K, j], c[_REF_M, j] = split(ref)


@inlined
def _unstandardized_block(z: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """Apply `boxcox_unstandardized` to ordinary values; `Transform` describes the arguments."""
    d = spare[0]
    for j in range(out.size):
        y = (z[j] - c[_OFFSET, j]) * c[_SLOPE_INVERSE, j]
        v = c[_LMBDA, j] * y
        log_v = log1p_finite(v) * c[_INVERSE, j]
        d[j] = y if abs(v) < LINEAR else log_v
    for j in range(out.size):
        out[j] = exp_scaled(d[j], c[_REF_K, j], c[_REF_M, j])


#: The transforms, in the order of the directions.
TRANSFORMS = (
    Transform("boxcox", by_lambda(boxcox), _boxcox_constants, _boxcox_block, 6),
    Transform("inv_boxcox", by_lambda(inv_boxcox), _inv_boxcox_constants, _inv_boxcox_block, 6),
    Transform("boxcox_standardized", boxcox_standardized, _standardized_constants, _standardized_block, 8),
    Transform("boxcox_unstandardized", boxcox_unstandardized, _unstandardized_constants, _unstandardized_block, 8),
)
