"""exp, expm1, log and log1p that LLVM vectorises, and their extra-precise and unguarded forms.

Every function here is branch-free: a condition selects between computed values, so a loop that calls one
of them becomes packed vector code. numba's stock wheels call libm for one value at a time instead.

The methods are classical (Tang 1989, 1990; Muller et al., Handbook of Floating-Point Arithmetic, ch. 10-11):

- exponential: k = round(x log2 e) by adding and subtracting 1.5 * 2**52, r = x - k ln 2, |r| <= ln(2)/2, with ln 2
  in two parts; e^r = 1 + r + r**2 q(r); 2**k is assembled from the bits that the addition left behind;
- logarithm: x = 2**k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), by integer arithmetic on the bits; then a
  polynomial in f, or for extra precision the odd series in s = f/(2 + f) in double-double arithmetic.

The polynomials are minimax fits (Remez exchange, mpmath). None of these functions may be re-associated:
the rounding trick and the error-free sums would be optimised away. Contraction to fused multiply-add is safe.
Subnormal numbers, both zeros, infinities and NaN are right unless a docstring says otherwise.
"""

from __future__ import annotations

import math

import numpy as np

from powerkern._jit import (
    bits32_of,
    bits_of,
    by_dtype,
    entry,
    float32_of,
    float_of,
    fma,
    inlined,
    widest_vectors,
)

_LOG2_E = 1.4426950408889634
# ln 2 in two parts; the first ends in 21 zero bits, so its product with any exponent is exact
_LN2_HI = 6.93147180369123816490e-01
_LN2_LO = 1.90821492927058770002e-10

# Adding this rounds to an integer k and leaves k + 2046 in the low bits: twice the exponent bias
_ROUND = 6755399441055744.0 + 2046.0
_LOW_BITS = 0xFFF

# (e^r - 1 - r)/r**2 on |r| <= ln(2)/2, to 2.8e-18
_Q = (
    0.5,
    0.1666666666666667,
    0.041666666666666664,
    0.008333333333326006,
    0.001388888888888746,
    0.0001984126987527073,
    2.4801587312626238e-05,
    2.7557254832114405e-06,
    2.7557289959226233e-07,
    2.5105452296880774e-08,
    2.0907926776858066e-09,
)

# (ln(1 + f) - f + f**2/2)/f**3 on sqrt(1/2) <= 1 + f <= sqrt(2), to 9e-18/f**2
_P = (
    0.33333333333333254,
    -0.24999999999987735,
    0.20000000000026094,
    -0.1666666666986783,
    0.1428571428505089,
    -0.1249999969084272,
    0.1111111085844301,
    -0.10000015021176464,
    0.0909093317831528,
    -0.08332925620283185,
    0.07691359869845914,
    -0.07149111135405893,
    0.06686332585451188,
    -0.06201260450025826,
    0.05659956490019865,
    -0.05645454778230076,
    0.06507518508673617,
    -0.06073241701311865,
    0.02692190054713022,
)

# (2 atanh(s) - 2 s - 2/3 s**3)/s**5 as a polynomial in s**2, |s| <= 3 - sqrt(8), to 2**-73/s**4
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
_TWO_THIRDS_HI = 2.0 / 3.0
_TWO_THIRDS_LO = 3.700743415417188e-17

_ONE_BITS = 0x3FF0000000000000
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_EXPONENT_MASK = 0x7FF0000000000000
# 2**52 as bits: an integer below 2**52 put into its mantissa converts to float64 by one subtraction
_TWO52_BITS = 0x4330000000000000
_TWO52 = 4503599627370496.0

_TWO54 = 18014398509481984.0
_TINY = 5.551115123125783e-17  # 2**-54: below it ln(1 + x) and e^x - 1 round to x
_SMALLEST_NORMAL = 2.2250738585072014e-308

# beyond these exp is inf, or 0
_EXP_MAX = 710.0
_EXP_MIN = -746.0
_EXPM1_MIN = -50.0  # below about -37.5 expm1 rounds to -1


# --- exponentials -----------------------------------------------------------------------------------


@inlined
def _reduce(x: float, x_lo: float) -> tuple[int, float, float]:
    """(k + 2046, r, r_lo) with x + x_lo = k ln 2 + r + r_lo, |r| <= ln(2)/2; for |x| < 1400."""
    shifted = x * _LOG2_E + _ROUND
    k = shifted - _ROUND
    head = x - k * _LN2_HI
    tail = x_lo - k * _LN2_LO
    r = head + tail
    return bits_of(shifted) & _LOW_BITS, r, (head - r) + tail


@inlined
def _exp_tail(r: float) -> float:
    """(e^r - 1 - r)/r**2 for |r| <= ln(2)/2."""
    q = _Q[10]
    q = q * r + _Q[9]
    q = q * r + _Q[8]
    q = q * r + _Q[7]
    q = q * r + _Q[6]
    q = q * r + _Q[5]
    q = q * r + _Q[4]
    q = q * r + _Q[3]
    q = q * r + _Q[2]
    q = q * r + _Q[1]
    return q * r + _Q[0]


@inlined
def _half_powers(k_biased: int) -> tuple[float, float]:
    """Two powers of two whose product is 2**k, k = k_biased - 2046: 2**k itself may be subnormal or overflow."""
    half = k_biased >> 1
    return float_of(half << 52), float_of((k_biased - half) << 52)


@inlined
def exp(x: float) -> float:
    """e**x."""
    bounded = _EXP_MAX if x > _EXP_MAX else (_EXP_MIN if x < _EXP_MIN else x)
    k, r, _ = _reduce(bounded, 0.0)
    s1, s2 = _half_powers(k)
    return (1.0 + (r + r * r * _exp_tail(r))) * s1 * s2


@inlined
def exp_parts(hi: float, lo: float) -> float:
    """e**(hi + lo) for a double-double exponent; `lo` is ignored where |hi| is beyond 1400 or not finite."""
    x = 1400.0 if hi > 1400.0 else (-1400.0 if hi < -1400.0 else hi)
    k, r, r_lo = _reduce(x, lo if abs(hi) <= 1400.0 else 0.0)
    s1, s2 = _half_powers(k)
    return (1.0 + (r + (r * r * _exp_tail(r) + (r_lo + r * r_lo)))) * s1 * s2


@inlined
def expm1_scaled(hi: float, lo: float) -> tuple[float, float]:
    """(E, s) with E * s = e**(hi + lo) - 1, s a power of two; neither overflows for hi <= 1400.

    A caller that divides E by a large number before multiplying with s gets results that a plain
    expm1 loses to overflow. Relative accuracy is kept for small arguments; NaN stays NaN.
    """
    x = 1400.0 if hi > 1400.0 else (_EXPM1_MIN if hi < _EXPM1_MIN else hi)
    k, r, r_lo = _reduce(x, lo if x == hi else 0.0)
    s1, s2 = _half_powers(k)
    # 1/s2 is exact: the exponent field mirrored about the bias
    minus_one = s1 - float_of((2 * _ONE_BITS) - bits_of(s2))
    linear = s1 * r
    head = minus_one + linear
    # s1 - 1/s2 is 0 or at least as large as s1*r
    tail = (minus_one - head) + linear
    return head + (s1 * (r * r * _exp_tail(r) + (r_lo + r * r_lo)) + tail), s2


@inlined
def expm1(x: float) -> float:
    """e**x - 1, relatively accurate near 0."""
    scaled, s2 = expm1_scaled(_EXP_MAX if x > _EXP_MAX else x, 0.0)
    return x if abs(x) < _TINY else scaled * s2


# (e^r - 1 - r)/r**2 on |r| <= ln(2)/2, to 3e-9
_Q32 = tuple(np.float32(1.0 / math.factorial(k)) for k in range(2, 8))
_ROUND32 = np.float32(12582912.0 + 127.0)
_LOG2_E32 = np.float32(_LOG2_E)
_LN2_HI32 = np.float32(0.693145751953125)
_LN2_LO32 = np.float32(1.42860682030941723212e-6)
_ONE32 = np.float32(1.0)


@inlined
def _expm1_excess32(t: np.float32) -> np.float32:
    shifted = t * _LOG2_E32 + _ROUND32
    k = shifted - _ROUND32
    r = (t - k * _LN2_HI32) - k * _LN2_LO32
    q = _Q32[5]
    q = q * r + _Q32[4]
    q = q * r + _Q32[3]
    q = q * r + _Q32[2]
    q = q * r + _Q32[1]
    q = q * r + _Q32[0]
    s = float32_of(bits32_of(shifted) << 23)
    return s * (r * r * q) + (s * r + ((s - _ONE32) - t))


# leaves k + 1023 in the low bits, ready to be shifted into the exponent field
_ROUND_BIASED = 6755399441055744.0 + 1023.0


@by_dtype(_expm1_excess32)
def expm1_excess(t: float) -> float:
    """e**t - 1 - t, relatively accurate near 0, for finite |t| <= 700 (float32: |t| <= 80); nothing is checked.

    e**t - 1 is then t + h, and the derivatives of (e**(m a) - 1)/m in m follow from h without cancellation.
    Relative error about 1e-15, float32 about 5e-7.
    """
    shifted = t * _LOG2_E + _ROUND_BIASED
    k = shifted - _ROUND_BIASED
    r = (t - k * _LN2_HI) - k * _LN2_LO
    s = float_of(bits_of(shifted) << 52)
    return s * (r * r * _exp_tail(r)) + (s * r + ((s - 1.0) - t))


# --- logarithms -------------------------------------------------------------------------------------


@inlined
def _split(x: float) -> tuple[float, float]:
    """(k, m) with x = 2**k m, sqrt(1/2) <= m < sqrt(2), for positive normal x."""
    bits = bits_of(x)
    exponent = (bits + (_ONE_BITS - _SQRT_HALF_BITS)) & _EXPONENT_MASK
    k = float_of((exponent >> 52) | _TWO52_BITS) - (_TWO52 + 1023.0)
    return k, float_of(bits - exponent + _ONE_BITS)


@inlined
def _log_tail(f: float) -> float:
    """Return ln(1 + f) - f for sqrt(1/2) <= 1 + f <= sqrt(2): even and odd coefficients apart, for shorter chains."""
    g = f * f
    even = _P[18]
    odd = _P[17]
    even = even * g + _P[16]
    odd = odd * g + _P[15]
    even = even * g + _P[14]
    odd = odd * g + _P[13]
    even = even * g + _P[12]
    odd = odd * g + _P[11]
    even = even * g + _P[10]
    odd = odd * g + _P[9]
    even = even * g + _P[8]
    odd = odd * g + _P[7]
    even = even * g + _P[6]
    odd = odd * g + _P[5]
    even = even * g + _P[4]
    odd = odd * g + _P[3]
    even = even * g + _P[2]
    odd = odd * g + _P[1]
    even = even * g + _P[0]
    return g * (f * (odd * f + even) - 0.5)


@inlined
def log_normal(x: float) -> float:
    """Logarithm for positive, finite, normal x; nothing is checked."""
    k, m = _split(x)
    f = m - 1.0
    return k * _LN2_HI + (f + (_log_tail(f) + k * _LN2_LO))


@inlined
def log(x: float) -> float:
    """Logarithm: -inf at 0, NaN below."""
    subnormal = x < _SMALLEST_NORMAL
    k, m = _split(x * _TWO54 if subnormal else x)
    k = k - 54.0 if subnormal else k
    f = m - 1.0
    y = k * _LN2_HI + (f + (_log_tail(f) + k * _LN2_LO))
    y = y if x < math.inf else x
    y = y if x > 0.0 else -math.inf
    return y if x >= 0.0 else math.nan


@inlined
def log1p(x: float) -> float:
    """Return ln(1 + x), relatively accurate near 0; -inf at -1, NaN below."""
    u = 1.0 + x
    # what the sum lost, exactly (Knuth)
    v = u - x
    lost = (1.0 - v) + (x - (u - v))
    k, m = _split(u)
    f = x if k == 0.0 else m - 1.0
    # ln(u + lost) = ln u + lost/u; 1/u to a few bits will do, and where k = 0 nothing was lost in f
    correction = 0.0 if k == 0.0 else lost / u
    y = k * _LN2_HI + (f + (_log_tail(f) + (k * _LN2_LO + correction)))
    y = y if x < math.inf else x
    y = y if x > -1.0 else -math.inf
    y = y if x >= -1.0 else math.nan
    return x if abs(x) < _TINY else y


@inlined
def _log_series(k: float, f: float, f_lo: float) -> tuple[float, float]:
    """Evaluate k ln 2 + ln(1 + f + f_lo) as a normalised double-double."""
    # s + s_lo = (f + f_lo)/(2 + f + f_lo)
    u = 2.0 + f
    u_lo = (f - (u - 2.0)) + f_lo
    reciprocal = 1.0 / u
    s = f * reciprocal
    s_lo = reciprocal * (fma(-s, u, f) + (f_lo - s * u_lo))
    # z + z_lo = s**2, c + c_lo = 2/3 + 2/5 s**2 + ...
    z = s * s
    z_lo = fma(s, s, -z) + 2.0 * s * s_lo
    p = _R[7]
    p = p * z + _R[6]
    p = p * z + _R[5]
    p = p * z + _R[4]
    p = p * z + _R[3]
    p = p * z + _R[2]
    p = p * z + _R[1]
    p = p * z + _R[0]
    w = p * z
    c = _TWO_THIRDS_HI + w
    c_lo = (_TWO_THIRDS_HI - c) + w + _TWO_THIRDS_LO
    # cube = s**3, product = s**3 c
    cube = s * z
    cube_lo = fma(s, z, -cube) + (s * z_lo + s_lo * z)
    product = cube * c
    product_lo = fma(cube, c, -product) + (cube * c_lo + cube_lo * c)
    # 2 s + product, then + k ln 2: each sum is led by its larger term
    twice = 2.0 * s
    log_f = twice + product
    log_f_lo = ((twice - log_f) + product) + (product_lo + 2.0 * s_lo)
    from_k = k * _LN2_HI
    head = from_k + log_f
    tail = ((from_k - head) + log_f) + (log_f_lo + k * _LN2_LO)
    hi = head + tail
    return hi, (head - hi) + tail


@inlined
def log_parts(x: float) -> tuple[float, float]:
    """Logarithm as an unevaluated sum hi + lo, to about 2**-64 relative, for positive finite x; nothing is checked."""
    subnormal = x < _SMALLEST_NORMAL
    k, m = _split(x * _TWO54 if subnormal else x)
    return _log_series(k - 54.0 if subnormal else k, m - 1.0, 0.0)


@inlined
def log1p_parts(x: float, x_lo: float = 0.0) -> tuple[float, float]:
    """Return ln(1 + x + x_lo) as a sum hi + lo, to about 2**-64 relative, for finite x > -1; nothing is checked.

    `x_lo` is the tail of a double-double argument.
    """
    u = 1.0 + x
    v = u - x
    lost = ((1.0 - v) + (x - (u - v))) + x_lo
    k, m = _split(u)
    # lost * 2**-k, in two steps for k = 1024
    inverse = m / u
    near = k == 0.0
    return _log_series(k, x if near else m - 1.0, x_lo if near else lost * inverse)


# --- loops, for Python ------------------------------------------------------------------------------


@entry("void(float64[::1], float64[::1])")
def exp_array(x: np.ndarray, out: np.ndarray) -> None:
    """`out` = e**x, elementwise; `out` may be `x`."""
    widest_vectors()
    for i in range(x.size):
        out[i] = exp(x[i])


@entry("void(float64[::1], float64[::1])")
def expm1_array(x: np.ndarray, out: np.ndarray) -> None:
    """`out` = e**x - 1, elementwise; `out` may be `x`."""
    widest_vectors()
    for i in range(x.size):
        out[i] = expm1(x[i])


@entry("void(float64[::1], float64[::1])")
def log_array(x: np.ndarray, out: np.ndarray) -> None:
    """`out` = ln x, elementwise; `out` may be `x`."""
    widest_vectors()
    for i in range(x.size):
        out[i] = log(x[i])


@entry("void(float64[::1], float64[::1])")
def log1p_array(x: np.ndarray, out: np.ndarray) -> None:
    """`out` = ln(1 + x), elementwise; `out` may be `x`."""
    widest_vectors()
    for i in range(x.size):
        out[i] = log1p(x[i])
