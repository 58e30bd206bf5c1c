"""log and log1p that LLVM vectorises, with variants of extra precision and variants without range checks.

The functions are branch-free, as in `powerkern.kernels.elementary.exp`. Integer arithmetic on the bits gives x = 2**k
(1 + f), sqrt(1/2) <= 1 + f < sqrt(2). ln(1 + f) is then computed as an odd series in s = f/(2 + f), arranged as in
fdlibm. For extra precision it is computed in double-double arithmetic (Tang 1990; Muller et al., Handbook of
Floating-Point Arithmetic, ch. 11).
"""

from __future__ import annotations

import math

from powerkern._jit import bits_of, float_of, fma, inlined
from powerkern.kernels.elementary.constants import SMALLEST_NORMAL
from powerkern.kernels.elementary.exp import EXPONENT_BIAS, LN2_HI, LN2_LO, TINY, polynomial

#: (2 atanh(s) - 2 s)/s**3 as a polynomial in s**2, |s| <= 3 - sqrt(8), to 2**-57.5/s**2
_P = (
    0.6666666666666734,
    0.39999999999414315,
    0.2857142874247558,
    0.22222198563424087,
    0.18183564869481744,
    0.15314035770607612,
    0.14796106032664633,
)

#: (2 atanh(s) - 2 s - 2/3 s**3)/s**5 as a polynomial in s**2, |s| <= 3 - sqrt(8), to 2**-73/s**4
_R = (
    0.3999999999999998,
    0.2857142857144477,
    0.22222222217606255,
    0.1818181886297607,
    0.1538455730965325,
    0.13336302380923185,
    0.11675094162364294,
    0.11986917739939147,
)

#: 2/3 in double-double.
_TWO_THIRDS_HI, _TWO_THIRDS_LO = 2.0 / 3.0, 3.700743415417188e-17
#: The bits of 1.0, and of sqrt(1/2), the lower end of the interval of mantissas.
_ONE_BITS, _SQRT_HALF_BITS = 0x3FF0000000000000, 0x3FE6A09E667F3BCD
#: Masks of the exponent and the mantissa of a float64.
_EXPONENT_MASK, _MANTISSA_MASK = 0x7FF0000000000000, 0x000FFFFFFFFFFFFF
#: The bits of 2**52. To convert an integer below 2**52 to float64, put it into this mantissa and subtract _TWO52.
_TWO52_BITS = 0x4330000000000000
#: 2**52.
_TWO52 = 4503599627370496.0
#: 2**54: times this, a subnormal number is normal.
_TWO54 = 18014398509481984.0


@inlined
def _unbiased(bits: int) -> float:
    """Return the unbiased exponent of a positive number, given its bit pattern."""
    return float_of((bits >> 52) | _TWO52_BITS) - (_TWO52 + EXPONENT_BIAS)


@inlined
def split_normal(x: float) -> tuple[float, float]:
    """Return (k, m) with x = 2**k m, sqrt(1/2) <= m < sqrt(2), for positive normal x."""
    shifted = bits_of(x) + (_ONE_BITS - _SQRT_HALF_BITS)
    return _unbiased(shifted), float_of((shifted & _MANTISSA_MASK) + _SQRT_HALF_BITS)


@inlined
def split(x: float) -> tuple[float, float]:
    """Return (k, m) with x = 2**k m, sqrt(1/2) <= m < sqrt(2), for positive finite x."""
    subnormal = x < SMALLEST_NORMAL
    k, m = split_normal(x * _TWO54 if subnormal else x)
    return k - 54.0 if subnormal else k, m


@inlined
def _atanh_tail(s: float) -> float:
    """Return (2 atanh(s) - 2 s)/s, for |s| <= 3 - sqrt(8)."""
    z = s * s
    return z * polynomial(_P, z)


@inlined
def _log_tail(f: float) -> float:
    """Return ln(1 + f) - f for sqrt(1/2) <= 1 + f <= sqrt(2), computed as in fdlibm.

    The formula is s (f**2/2 + R) - f**2/2 with s = f/(2 + f) and R = ``_atanh_tail(s)``.
    """
    s = f / (2.0 + f)
    square = 0.5 * f * f
    return s * (square + _atanh_tail(s)) - square


@inlined
def log_sum(k: float, f: float) -> float:
    """Return k ln 2 + ln(1 + f), for sqrt(1/2) <= 1 + f <= sqrt(2)."""
    return k * LN2_HI + (f + (_log_tail(f) + k * LN2_LO))


@inlined
def log_normal(x: float) -> float:
    """Return the natural logarithm of a positive, finite, normal x; nothing is checked."""
    k, m = split_normal(x)
    return log_sum(k, m - 1.0)


@inlined
def log(x: float) -> float:
    """Return the natural logarithm of any float64: -inf at 0, NaN for negative x."""
    k, m = split(x)
    y = log_sum(k, m - 1.0)
    y = y if x < math.inf else x
    y = y if x > 0.0 else -math.inf
    return y if x >= 0.0 else math.nan


@inlined
def _one_plus_error(x: float, u: float) -> float:
    """Return the rounding error of u = 1 + x (Knuth's two-sum, with operands sorted by size)."""
    larger = x if x > 1.0 else 1.0
    smaller = 1.0 if x > 1.0 else x
    return smaller - (u - larger)


@inlined
def split_one_plus(x: float) -> tuple[float, float, float]:
    """Return (k, f, f_lo) with 1 + x = 2**k (1 + f + f_lo), for x >= -1; f_lo is NaN if x is."""
    u = 1.0 + x
    return _split_sum(u, _one_plus_error(x, u), x, 0.0)


@inlined
def split_one_plus_parts(x: float, x_lo: float) -> tuple[float, float, float]:
    """Return (k, f, f_lo) with 1 + x + x_lo = 2**k (1 + f + f_lo), for |x_lo| <= ulp(x)/2, even if 1 + x cancels."""
    u = 1.0 + x
    lost = _one_plus_error(x, u) + x_lo
    total = u + lost
    return _split_sum(total, lost - (total - u), x, x_lo)


@inlined
def _split_sum(u: float, lost: float, x: float, x_lo: float) -> tuple[float, float, float]:
    """Return (k, f, f_lo) with 1 + x + x_lo = 2**k (1 + f + f_lo), given 1 + x + x_lo as a sum u + lost."""
    shifted = bits_of(u) + (_ONE_BITS - _SQRT_HALF_BITS)
    exponent = shifted & ~_MANTISSA_MASK  # includes the sign: for x < -1, f is arbitrary but within its range
    # 2**(1-k) by mirroring the exponent; 2**-k would overflow the exponent field for k = 1024
    twice_inverse = float_of(_EXPONENT_MASK - exponent)
    near = exponent == _ONE_BITS
    # where k = 0 the argument itself is f
    f = x if near else float_of((shifted & _MANTISSA_MASK) + _SQRT_HALF_BITS) - 1.0
    return _unbiased(exponent), f, x_lo if near else 0.5 * lost * twice_inverse


@inlined
def log1p_ratio(x: float, center: float, inverse: float, base_k: float, base_m_inverse: float) -> float:
    """Return ln((1 + x)/(1 + center)) for finite x, center >= 0, relatively accurate near center.

    With center = 0 the result has the same bits as `log1p_finite`. A caller that knows (1 + x)/(1 + center) not to be
    subnormal may pass 1 for `base_k` and `inverse` for `base_m_inverse`; the result has the same bits.

    Parameters
    ----------
    x : float
        The value, x >= 0.
    center : float
        The reference.
    inverse : float
        1/(1 + center).
    base_k : float
        k of ``(k, m) = split(1 + center)``; or 1 (see above).
    base_m_inverse : float
        1/(2 m), whose product with 1 + x cannot overflow; or `inverse` (see above).
    """
    u = 1.0 + x
    bits = bits_of(u * base_m_inverse)
    exponent = (bits + (_ONE_BITS - _SQRT_HALF_BITS)) & _EXPONENT_MASK
    k = _unbiased(exponent) - (base_k - 1.0)
    f = (x - center) * inverse if k == 0.0 else float_of(bits - exponent + _ONE_BITS) - 1.0
    lost = 0.0 if k == 0.0 else _one_plus_error(x, u) * base_m_inverse
    f_lo = 0.5 * lost * float_of(_EXPONENT_MASK - exponent)
    correction = f_lo * (f * (f - 1.0) + 1.0)
    return k * LN2_HI + (f + (_log_tail(f) + (k * LN2_LO + correction)))


@inlined
def log1p_finite(x: float) -> float:
    """Return ln(1 + x) for finite x > -1, which is not checked."""
    k, f, f_lo = split_one_plus(x)
    # ln(1 + f + f_lo) = ln(1 + f) + f_lo/(1 + f); a few bits of the quotient suffice
    correction = f_lo * (f * (f - 1.0) + 1.0)
    return k * LN2_HI + (f + (_log_tail(f) + (k * LN2_LO + correction)))


@inlined
def log1p(x: float) -> float:
    """Return ln(1 + x) for any float64, relatively accurate near 0; -inf at -1, NaN for x < -1."""
    y = log1p_finite(x)
    y = y if x < math.inf else x
    y = y if x > -1.0 else -math.inf
    y = y if x >= -1.0 else math.nan
    return x if abs(x) < TINY else y


@inlined
def short_log(k: float, f: float) -> tuple[float, float]:
    """Return k ln 2 + ln(1 + f) as a sum hi + lo, |lo| < |hi|/16, for sqrt(1/2) <= 1 + f <= sqrt(2).

    The error is at most 2**-57 (1 + |result|). This takes half the time of `extended_log`.
    """
    return _add_exponent(k, *_short_log(f))


@inlined
def short_log1p(k: float, f: float, f_lo: float) -> tuple[float, float]:
    """Return k ln 2 + ln(1 + f + f_lo) as a sum hi + lo, with the accuracy of `short_log`."""
    log_f, log_f_lo = _short_log(f)
    return _add_exponent(k, log_f, f_lo * (f * (f - 1.0) + 1.0) + log_f_lo)


@inlined
def extended_log(k: float, f: float, f_lo: float) -> tuple[float, float]:
    """Return k ln 2 + ln(1 + f + f_lo) as a sum hi + lo, |lo| <= 1e-7 |hi|, with a relative error of 2**-64."""
    return _add_exponent(k, *_extended_log(f, f_lo))


@inlined
def _add_exponent(k: float, log_f: float, log_f_lo: float) -> tuple[float, float]:
    """Return the sum of k ln 2, `log_f` and `log_f_lo` as a double-double number."""
    head = k * LN2_HI + log_f
    return head, (k * LN2_HI - head + log_f) + (k * LN2_LO + log_f_lo)


@inlined
def _short_log(f: float) -> tuple[float, float]:
    """Return ln(1 + f) = f - f**2/2 + s (f**2/2 + R) as a sum hi + lo, with the first two terms exact.

    s and R are as in `_log_tail`.
    """
    s = f / (2.0 + f)
    half = 0.5 * f
    log_f = fma(-half, f, f)
    lost = fma(-half, f, f - log_f)
    return log_f, s * (half * f + _atanh_tail(s)) + lost


@inlined
def _extended_log(f: float, f_lo: float) -> tuple[float, float]:
    """Return ln(1 + f + f_lo) as a double-double number.

    The formula is 2 s + s**3 c with s = (f + f_lo)/(2 + f + f_lo) and c = 2/3 + 2/5 s**2 + ... .
    """
    u = 2.0 + f
    reciprocal = 1.0 / u
    s = f * reciprocal
    z = s * s
    u_lo = (f - (u - 2.0)) + f_lo
    s_lo = reciprocal * (fma(-s, u, f) + (f_lo - s * u_lo))
    # z + z_lo = s**2, c + c_lo = 2/3 + 2/5 s**2 + ...
    z_lo = fma(s, s, -z) + 2.0 * s * s_lo
    w = polynomial(_R, z) * z
    c = _TWO_THIRDS_HI + w
    c_lo = (_TWO_THIRDS_HI - c) + w + _TWO_THIRDS_LO
    # cube + cube_lo = s**3, product + product_lo = s**3 c
    cube = s * z
    cube_lo = fma(s, z, -cube) + (s * z_lo + s_lo * z)
    product = cube * c
    product_lo = fma(cube, c, -product) + (cube * c_lo + cube_lo * c)
    twice = 2.0 * s
    log_f = twice + product
    return log_f, ((twice - log_f) + product) + (product_lo + 2.0 * s_lo)
