"""The standardised Yeo-Johnson transform, which measures values from a reference, and its inverse."""

from __future__ import annotations

import math

from powerkern._jit import inlined
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp import exp, expm1, make_rounder, scaled_expm1
from powerkern.kernels.elementary.log import log, log1p, log1p_finite, log1p_ratio, split
from powerkern.kernels.transforms.branch import (
    DEEP,
    LARGE,
    LINEAR,
    LOG_END,
    NOISELESS,
    Exponent,
    Fit,
    Transform,
    exponent_pair,
    invertible_interval,
    largest_ratio,
    psi_limit,
    select_by_sign,
    write_bounds,
    write_pair,
)
from powerkern.kernels.transforms.yeojohnson import LOG_LARGE, ordinary_size, select_exponent

# As for Box-Cox, the logarithm is taken relative to a reference if all data have one sign:
#     psi(lambda, x) - psi(lambda, ref) = +-e^S b_m(d),  d = ln((1 + |x|)/(1 + |ref|)),  S = m ln(1 + |ref|)
# for x of the sign of ref, with m = lambda or m = 2 - lambda by that sign. For columns of both signs ref = 0, and S is
# the log factor of the fit. The scaled variable is
#     Psi(x) = e^-S (psi(lambda, x) - psi(lambda, ref)),
# in which any e^t that would overflow is combined with e^-S.

#: Smallest S, so that the factor e^-S is at most e^700; the largest float64 is 18,000 times as large.
_SMALLEST_SHIFT = -700.0
#: The smallest positive float64.
_SMALLEST = 5e-324
#: Largest log of a factor e^S; larger ones are divided in two.
_LARGEST_GROWTH = 700.0


@inlined
def _log_scale(fit: Fit) -> float:
    """Return the log-scale S of `yeojohnson_standardized`, which divides psi by e^S; -700 if S is less."""
    m = 2.0 - fit.lmbda if fit.ref < 0.0 else fit.lmbda
    shift = fit.log_factor if fit.ref == 0.0 else m * log1p(abs(fit.ref))
    return shift if shift > _SMALLEST_SHIFT else _SMALLEST_SHIFT


@inlined
def _at_zero(fit: Fit, shift: float) -> float:
    """Return -e^-S |psi(ref)| for the log-scale S = `shift`; 0 if ref = 0.

    This is Psi(0) of `yeojohnson_standardized` if ref > 0, and -Psi(0) if ref < 0.
    """
    m = 2.0 - fit.lmbda if fit.ref < 0.0 else fit.lmbda
    value = expm1(-shift) / (m if m != 0.0 else 1.0)
    value = -log1p(abs(fit.ref)) if abs(shift) < LINEAR else value
    return 0.0 if fit.ref == 0.0 else value


@inlined
def _is_beside(fit: Fit, negative: bool) -> bool:
    """Return whether the transform of values of this sign is computed relative to ref rather than to 0.

    This is so if ref has the same sign.
    """
    return (negative & (fit.ref < 0.0)) | ((not negative) & (fit.ref > 0.0))


@inlined
def yeojohnson_standardized(x: float, fit: Fit) -> float:
    """Return z = a Psi(x) + b with the parameters of a fit, where Psi(x) = e^-S (psi(lambda, x) - psi(lambda, ref)).

    a is the slope and b the intercept of the fit. m is the exponent for the sign of x: lambda for x >= 0, and
    2 - lambda for x < 0. S is a log-scale that prevents overflow:

    * If ref = 0, S is the log factor of the fit: the largest m ln(1 + |x|) of the fitted data, but at least 0.
    * Otherwise S = m_ref ln(1 + |ref|), where m_ref is the exponent for the sign of ref. |ref| is the largest |x| of
      the fitted data if m_ref > 0, and the smallest if m_ref < 0. For x of the sign of ref, Psi(x) is
      +-(e^(m d) - 1)/m with d = ln((1 + |x|)/(1 + |ref|)). Near ref, d is computed as
      log1p((|x| - |ref|)/(1 + |ref|)), so that nothing cancels in a tight cluster.

    With M = max(|z|, |b|, a |Psi|), the error is at most eps (2 + |m| + |m d|) M, and eps |S| M if ref = 0. For x of
    the sign opposite to ref, S is replaced by -700 if it is less. Psi(x) is then in the range of float64, but closer to
    0 than the definition says.
    """
    negative, total = x < 0.0, _log_scale(fit)
    upper, lower = exponent_pair(fit.lmbda)
    e, beside = select_exponent(negative, upper, lower), _is_beside(fit, negative)
    # the alternatives are constants of the column; only the choice depends on the sign of x
    size, shift, factor = abs(fit.ref), 0.0 if beside else total, 1.0 if beside else exp(-total)
    # multiply by half the inverse of the mantissa of 1 + |ref|; the product with 1 + |x| cannot overflow
    ref_k, ref_m = split(1.0 + size)
    base_k, base_inverse = ref_k if beside else 0.0, 0.5 / ref_m if beside else 0.5
    center, inverse = size if beside else 0.0, 1.0 / (1.0 + size) if beside else 1.0
    d = log1p_ratio(abs(x), center, inverse, base_k, base_inverse)
    t = e.m * d
    # e^-S (e^t - 1) is computed as e^(t - S) - e^-S, or by expm1 if t is small
    far = t > 1.0
    power = t - shift if far else t
    power = e.t_max if power > e.t_max else power
    power = e.t_min if power < e.t_min else power
    value = scaled_expm1(power, e.rounder, e.unit * (factor if far else 1.0))
    value = value * e.inverse * (1.0 if far else factor)
    value = d * factor if abs(t) < LINEAR else value
    value = value if abs(x) < math.inf else psi_limit(2.0 - fit.lmbda if negative else fit.lmbda) * factor
    slope = -fit.slope if negative else fit.slope
    offset = fit.intercept if beside else fit.intercept - slope * _at_zero(fit, total)
    return slope * value + offset if x == x else x


@inlined
def _size_at(d: float, center: float, log_base: float) -> float:
    """Return |x| for d = ln((1 + |x|)/(1 + center)).

    |x| is computed from e^d - 1 for small d, and from e^(log_base + d) - 1 otherwise, with log_base = ln(1 + center).
    """
    near = abs(d) < 0.35
    beside_zero = d + log_base
    exponent = d if near else beside_zero
    exponent = 710.0 if exponent > 710.0 else exponent
    exponent = -50.0 if exponent < -50.0 else exponent
    value = 2.0 * scaled_expm1(exponent, make_rounder(-1.0), 0.5)
    close = center + (1.0 + center) * value
    return close if near else value


@inlined
def yeojohnson_unstandardized(z: float, fit: Fit) -> float:
    """Return the x with ``yeojohnson_standardized(x, fit) = z``.

    The result is NaN if z is outside the range. At the end of the range many x have the same z after rounding. Of
    these, the x nearest to ref is returned, since transforming it again gives a better z than transforming inf or -inf.
    """
    total, a_inverse = _log_scale(fit), 1.0 / fit.slope
    zero = _at_zero(fit, total)
    psi = (z - fit.intercept) * a_inverse
    signed = -psi if fit.ref < 0.0 else psi
    # for x of the sign opposite to ref, Psi is measured from its value at 0
    beyond = signed < zero
    size, negative = zero - signed if beyond else signed, beyond != (fit.ref < 0.0)
    upper, lower = exponent_pair(fit.lmbda)
    e, beside = select_exponent(negative, upper, lower), _is_beside(fit, negative)
    m, inverse = 2.0 - fit.lmbda if negative else fit.lmbda, e.inverse * e.unit
    center, log_base = abs(fit.ref) if beside else 0.0, log1p(abs(fit.ref)) if beside else 0.0
    # Psi e^S would overflow for S > 700; use ln(e^-rest + m Psi e^700) + rest with rest = S - 700
    excess = total - _LARGEST_GROWTH if total > _LARGEST_GROWTH else 0.0
    rest, growth = 0.0 if beside else excess, 1.0 if beside else exp(total - excess)
    one = 1.0 if beside else exp(-excess)
    scaled = size * growth
    v = m * scaled
    d = (log(one + v) + rest if one < 1.0 else log1p_finite(v)) * inverse
    d = scaled if abs(v) < LINEAR and one == 1.0 else d
    # the last value of the range, and a tolerance for the rounding errors of z at its end
    last = LOG_END * inverse
    noise = 2.0**-50 * abs(fit.intercept * a_inverse)
    d = d if v > -one else (last if last > -log_base else -log_base)
    d = d if v < math.inf else v
    d = d if v >= -one - 2.0**-50 - noise * abs(m) * growth else math.nan
    size = _size_at(d, center, log_base)
    return -size if negative else size


# --- blocks of ordinary values ----------------------------------------------------------------------

#: Rows of an array of constants, after the bounds; the first row of a pair is for x >= 0.
_REF, _OFFSET, _M, _INVERSE, _SLOPE, _SIZE_INVERSE = 2, 3, 4, 6, 8, 9
#: Rows of the constants of inverse transforms.
_SLOPE_INVERSE, _ZERO, _GROWTH, _EXPONENT, _LOG_BASE = 4, 5, 8, 10, 11


@inlined
def _standardized_constants(fit: Fit, c: FloatArray, j: int) -> None:
    """Write the constants with which `_standardized_block` transforms column j."""
    ref = fit.ref
    upper, lower = exponent_pair(fit.lmbda)
    low, high = _ordinary_range(fit, _log_scale(fit), upper)
    write_bounds(low, high, True, c, j)
    # ordinary values have the sign of ref, the only sign for which z is measured from ref
    upwards, downwards = ref > 0.0, ref < 0.0
    write_pair(_M, lower.m if downwards else upper.m, upper.m if upwards else lower.m, c, j)
    first, second = lower.inverse if downwards else upper.inverse, upper.inverse if upwards else lower.inverse
    write_pair(_INVERSE, first * upper.unit, second * upper.unit, c, j)
    c[_REF, j], c[_SLOPE, j], c[_OFFSET, j], c[_SIZE_INVERSE, j] = ref, fit.slope, fit.intercept, 1.0 / (1.0 + abs(ref))


@inlined
def _ordinary_range(fit: Fit, shift: float, e: Exponent) -> tuple[float, float]:
    """Return bounds of x between which yeojohnson_standardized needs no range checks.

    Between them x has the sign of ref (either sign if ref is 0), and nothing overflows. `shift` is the log-scale S, `e`
    the exponent for x >= 0. If 1/(1 + |ref|) might be subnormal, no x is between the bounds.
    """
    lmbda, ref = fit.lmbda, fit.ref
    size = ordinary_size(lmbda, e) if shift == 0.0 else -math.inf
    span = largest_ratio(e, abs(2.0 - lmbda) if ref < 0.0 else abs(lmbda))
    nearest = _SMALLEST if ref < 0.0 else 0.0
    low, high = (1.0 + abs(ref)) / span - 1.0, (1.0 + abs(ref)) * span - 1.0
    low = (low if low > nearest else nearest) if abs(ref) <= LARGE else math.inf
    first, last = (low, high) if ref > 0.0 else (-high, -low)
    return -size if ref == 0.0 else first, size if ref == 0.0 else last


@inlined
def _standardized_block(x: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """Apply `yeojohnson_standardized` to ordinary values; `Transform` describes the arguments."""
    d, kept = spare[0], spare[1]
    for j in range(out.size):
        kept[j] = x[j]
        inverse = c[_SIZE_INVERSE, j]
        d[j] = log1p_ratio(abs(x[j]), abs(c[_REF, j]), inverse, 1.0, inverse)
    for j in range(out.size):
        negative = kept[j] < 0.0
        t = select_by_sign(c, _M, j, negative) * d[j]
        value = scaled_expm1(t, make_rounder(0.0), 1.0) * select_by_sign(c, _INVERSE, j, negative)
        value = d[j] if abs(t) < LINEAR else value
        slope = c[_SLOPE, j]
        out[j] = (-slope if negative else slope) * value + c[_OFFSET, j]


@inlined
def _unstandardized_constants(fit: Fit, c: FloatArray, j: int) -> None:
    """Write the constants with which `_unstandardized_block` inverts the transform of column j."""
    lmbda, a, b = fit.lmbda, fit.slope, fit.intercept
    upper, lower = exponent_pair(lmbda)
    shift = _log_scale(fit)
    zero = _at_zero(fit, shift)
    growth = exp(0.0 if fit.ref > 0.0 else shift)
    lower_growth = exp(0.0 if fit.ref < 0.0 else shift)
    low, high = _ordinary_image(fit, zero, growth, lower_growth)
    steepness, other_steepness = abs(lmbda) * growth, abs(2.0 - lmbda) * lower_growth
    steepness = steepness if steepness > other_steepness else other_steepness
    write_bounds(a * low + b, a * high + b, (shift <= DEEP) & (steepness * abs(b) <= NOISELESS * a), c, j)
    c[_EXPONENT, j], c[_REF, j], c[_ZERO, j], c[_OFFSET, j], c[_SLOPE_INVERSE, j] = lmbda, fit.ref, zero, b, 1.0 / a
    write_pair(_INVERSE, upper.inverse * upper.unit, lower.inverse * upper.unit, c, j)
    write_pair(_GROWTH, growth, lower_growth, c, j)
    c[_LOG_BASE, j] = log1p(abs(fit.ref))


@inlined
def _ordinary_image(fit: Fit, zero: float, growth: float, lower_growth: float) -> tuple[float, float]:
    """Return bounds of Psi (see `yeojohnson_standardized`) between which the inverse needs no range checks.

    Parameters
    ----------
    fit : Fit
        The parameters of the transform.
    zero : float
        Psi(0).
    growth : float
        The factor e^S that psi was divided by for x >= 0; 1 if these values are measured from ref.
    lower_growth : float
        The same factor for x < 0.
    """
    log_base = log1p(abs(fit.ref))
    below, other = fit.ref < 0.0, 2.0 - fit.lmbda
    # measured from ref for x of its sign, and from 0 for the other sign
    end = invertible_interval(other if below else fit.lmbda, -log_base, LOG_LARGE - log_base)[1]
    far = invertible_interval(fit.lmbda if below else other, 0.0, LOG_LARGE)[1]
    beyond = zero - far / (growth if below else lower_growth)
    return -end if below else beyond, -beyond if below else end


@inlined
def _unstandardized_block(z: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """Apply `yeojohnson_unstandardized` to ordinary values; `Transform` describes the arguments."""
    d, signs = spare[0], spare[1]
    for j in range(out.size):
        lmbda, zero = c[_EXPONENT, j], c[_ZERO, j]
        psi = (z[j] - c[_OFFSET, j]) * c[_SLOPE_INVERSE, j]
        below = c[_REF, j] < 0.0
        signed = -psi if below else psi
        beyond = signed < zero
        size = zero - signed if beyond else signed
        negative = beyond != below
        scaled = size * select_by_sign(c, _GROWTH, j, negative)
        v = (2.0 - lmbda if negative else lmbda) * scaled
        log_base = log1p_finite(v) * select_by_sign(c, _INVERSE, j, negative)
        d[j] = scaled if abs(v) < LINEAR else log_base
        signs[j] = -1.0 if negative else 1.0
    for j in range(out.size):
        ref, log_base = c[_REF, j], c[_LOG_BASE, j]
        beside = (signs[j] < 0.0) == (ref < 0.0)
        out[j] = signs[j] * _size_at(d[j], abs(ref) if beside else 0.0, log_base if beside else 0.0)


#: The standardised transforms, in the order of the directions.
TRANSFORMS = (
    Transform("yeojohnson_standardized", yeojohnson_standardized, _standardized_constants, _standardized_block, 10),
    Transform(
        "yeojohnson_unstandardized", yeojohnson_unstandardized, _unstandardized_constants, _unstandardized_block, 12
    ),
)
