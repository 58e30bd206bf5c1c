"""exp and expm1 that LLVM vectorises, with variants of extra precision and variants without range checks.

Every function here is branch-free: conditions select between computed values, so that LLVM vectorises a loop that calls
the function. numba without Intel's SVML calls libm for each value instead.

The method is classical (Tang 1989; Muller et al., Handbook of Floating-Point Arithmetic, ch. 10). k = round(x log2 e)
is computed by adding and subtracting 1.5 * 2**52, and r = x - k ln 2, |r| <= ln(2)/2, with ln 2 in two parts. Then
e^r = 1 + r + r**2 q(r), and 2**k is assembled from the bits that the addition left behind.

The polynomials are minimax fits (Remez exchange, mpmath). None of these functions may be re-associated:
the rounding trick and the error-free sums would be optimised away. Contraction to fused multiply-add is safe.
Subnormal numbers, both zeros, infinities and NaN are handled correctly unless a docstring says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from powerkern._jit import Lanes, any_lane, bits32_of, bits_of, by_dtype, float32_of, float_of, inlined, select

#: A number; all functions here also accept vectors.
N = TypeVar("N", float, np.float32)

#: log2(e), which converts exponents of e to exponents of 2.
LOG2_E = 1.4426950408889634
#: The first part of ln 2. It ends in 21 zero bits, so its product with any exponent is exact.
LN2_HI = 6.93147180369123816490e-01
#: The rest of ln 2.
LN2_LO = 1.90821492927058770002e-10
#: 1.5 * 2**52. Adding it rounds to an integer k, which is then in the low bits of the sum; a shift by 52 moves it to
#: the exponent field. To get k plus an offset, add the offset to this constant.
_ROUND = 6755399441055744.0
#: The exponent field of 1.0 (the bias of exponents).
EXPONENT_BIAS = 1023.0

#: (e^r - 1 - r)/r**2 on |r| <= ln(2)/2, to 2.8e-18.
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

#: 2**-54: below it ln(1 + x) and e^x - 1 round to x.
TINY = 5.551115123125783e-17
#: exp overflows above _EXP_MAX and is 0 below _EXP_MIN. The largest float64 is e**709.78, and half of the smallest
#: positive float64 is e**-745.13.
_EXP_MAX, _EXP_MIN = 710.0, -746.0
#: Larger than 1454, the log of the ratio of the largest to the smallest positive float64.
_RATIO_MAX = 1460.0
#: Arguments are clipped to this; expm1 rounds to -1 below about -37.5.
_EXPM1_MIN = -50.0


@inlined
def polynomial(c: tuple[N, ...], x: N) -> N:
    """Return c[0] + c[1] x + c[2] x**2 + ..., by Horner's scheme; x is a number or a vector."""
    value = x * c[len(c) - 1] + c[len(c) - 2]
    for k in range(len(c) - 3, -1, -1):
        value = value * x + c[k]
    return value


@inlined
def _reduced(x: float, rounder: float) -> tuple[float, float]:
    """Return (k + rounder, r) such that x = k ln 2 + r with |r| <= ln(2)/2.

    `rounder` is the rounding constant _ROUND plus an integer. The low 12 bits of the first result hold k plus that
    integer.
    """
    shifted = x * LOG2_E + rounder
    k = shifted - rounder
    return shifted, (x - k * LN2_HI) - k * LN2_LO


@inlined
def _reduced_parts(x: float, x_lo: float, rounder: float) -> tuple[int, float, float]:
    """Return (bits, r, r_lo) such that x + x_lo = k ln 2 + r + r_lo with |r| <= ln(2)/2.

    Requires |x| < 1420 and |x_lo| < 1. `rounder` is the rounding constant _ROUND plus an integer. The low 12 bits of
    `bits` hold k plus that integer.
    """
    shifted = (x + x_lo) * LOG2_E + rounder
    k = shifted - rounder
    head = x - k * LN2_HI
    tail = x_lo - k * LN2_LO
    r = head + tail
    return bits_of(shifted), r, (head - r) + tail


@inlined
def _exp_tail(r: float) -> float:
    """Return (e^r - 1 - r)/r**2 for |r| <= ln(2)/2."""
    return polynomial(_Q, r)


@inlined
def _expm1_less(r: float, r_lo: float) -> float:
    """Return e^(r + r_lo) - 1 - r for |r| <= ln(2)/2 and |r_lo| <= ulp(r)."""
    return r * (r * _exp_tail(r) + r_lo) + r_lo


@inlined
def _scaled(mantissa: float, bits: int) -> float:
    """Return mantissa * 2**k, where k + 2046 is given by the low 12 bits of `bits`.

    2**k is split into two factors, since it may overflow or be subnormal even if the product is neither.
    """
    biased = bits & 0xFFF
    half = biased >> 1
    return mantissa * float_of(half << 52) * float_of((biased - half) << 52)


@inlined
def exp(x: float) -> float:
    """Return e**x for any float64."""
    bounded = _EXP_MAX if x > _EXP_MAX else x
    bounded = _EXP_MIN if bounded < _EXP_MIN else bounded
    shifted, r = _reduced(bounded, _ROUND + 2.0 * EXPONENT_BIAS)
    return _scaled(1.0 + (r + r * r * _exp_tail(r)), bits_of(shifted))


@inlined
def exp_scaled(x: float, scale_k: float, scale_m: float) -> float:
    """Return e**x * 2**scale_k * scale_m, without intermediate overflow.

    2**scale_k * scale_m is a number that `kernels.elementary.log.split` has divided into these two factors.
    """
    bounded = _RATIO_MAX if x > _RATIO_MAX else x
    bounded = -_RATIO_MAX if bounded < -_RATIO_MAX else bounded
    shifted, r = _reduced(bounded, _ROUND)
    total = (shifted - _ROUND) + scale_k
    total = 1100.0 if total > 1100.0 else total
    total = -1200.0 if total < -1200.0 else total
    mantissa = (1.0 + (r + r * r * _exp_tail(r))) * scale_m
    return _scaled(mantissa, bits_of(total + (_ROUND + 2.0 * EXPONENT_BIAS)))


@inlined
def exp_parts(hi: float, lo: float) -> float:
    """Return e**(hi + lo) for a double-double exponent; `lo` is ignored if e**hi underflows to 0 or overflows."""
    bounded = _EXP_MAX if hi > _EXP_MAX else hi
    bounded = _EXP_MIN if bounded < _EXP_MIN else bounded
    bits, r, r_lo = _reduced_parts(bounded, lo if bounded == hi else 0.0, _ROUND + 2.0 * EXPONENT_BIAS)
    return _scaled(1.0 + (r + _expm1_less(r, r_lo)), bits)


@inlined
def exp_parts_unchecked(hi: float, lo: float) -> float:
    """Return `exp_parts` for |hi| <= 700; for NaN the result is arbitrary."""
    bits, r, r_lo = _reduced_parts(hi, lo, _ROUND + EXPONENT_BIAS)
    return (1.0 + (r + _expm1_less(r, r_lo))) * float_of(bits << 52)


@inlined
def scaled_expm1_dd(hi: float, lo: float, rounder: float, subtrahend: float) -> tuple[float, float]:
    """Return s e**(hi + lo) - subtrahend as a sum (head, tail), with the scale s = 2**j.

    Requires -50 <= hi and hi/ln 2 + j <= 1023.5, which is not checked. The subtrahend must be s, or at most
    s e**(hi - 1). If it is s, the result is s * expm1(hi + lo), relatively accurate near 0. If s < 1, the result may be
    finite although e**hi overflows; the caller can then divide it before undoing the scale.

    Parameters
    ----------
    hi : float
        The leading part of the exponent.
    lo : float
        The trailing part of the exponent.
    rounder : float
        ``make_rounder(j)``, which sets s = 2**j.
    subtrahend : float
        The number to subtract.
    """
    bits, r, r_lo = _reduced_parts(hi, lo, rounder)
    power = float_of(bits << 52)
    constant = power - subtrahend
    # Multiplying by a power of two is exact, and the constant is 0 or larger than the linear term: the next two lines
    # are an exact sum.
    head = power * r + constant
    tail = power * r + (constant - head)
    return head, power * _expm1_less(r, r_lo) + tail


@inlined
def scaled_expm1(t: float, rounder: float, subtrahend: float) -> float:
    """Return s e**t - subtrahend as one float64 to 2 ulp, in two thirds of the time of `scaled_expm1_dd`.

    The scale s, `rounder` and `subtrahend` are as described there; t is the exponent.
    """
    shifted, r = _reduced(t, rounder)
    power = float_of(bits_of(shifted) << 52)
    return power * (r * r * _exp_tail(r)) + (power * r + (power - subtrahend))


@inlined
def make_rounder(j: float) -> float:
    """Return the argument `rounder` of `scaled_expm1_dd` for the scale 2**j."""
    return _ROUND + (EXPONENT_BIAS + j)


@inlined
def expm1(x: float) -> float:
    """Return e**x - 1, relatively accurate near 0."""
    bounded = _EXP_MAX if x > _EXP_MAX else x
    bounded = _EXPM1_MIN if bounded < _EXPM1_MIN else bounded
    head, tail = scaled_expm1_dd(bounded, 0.0, make_rounder(-1.0), 0.5)
    return x if abs(x) < TINY else 2.0 * (head + tail)


# (e^r - 1 - r)/r**2 on |r| <= ln(2)/2, to 3e-9
_Q32 = tuple(np.float32(1.0 / math.factorial(k)) for k in range(2, 8))
_ROUND32 = np.float32(12582912.0 + 127.0)
_LOG2_E32 = np.float32(LOG2_E)
_LN2_HI32 = np.float32(0.693145751953125)
_LN2_LO32 = np.float32(1.42860682030941723212e-6)
_ONE32, _BOUND32 = np.float32(1.0), np.float32(80.0)


@inlined
def _reduced32(x: np.float32) -> tuple[np.float32, np.float32]:
    """Return (2**k, r) such that x = k ln 2 + r with |r| <= ln(2)/2, in float32."""
    shifted = x * _LOG2_E32 + _ROUND32
    k = shifted - _ROUND32
    return float32_of(bits32_of(shifted) << 23), (x - k * _LN2_HI32) - k * _LN2_LO32


@inlined
def _expm1_excess32(t: np.float32) -> np.float32:
    s, r = _reduced32(t)
    return s * (r * r * polynomial(_Q32, r)) + (s * r + ((s - _ONE32) - t))


@inlined
def _expm1_minus_x(tail: Callable[[float], float], t: float) -> float:
    """Return e**t - 1 - t, where the function `tail` evaluates (e^r - 1 - r)/r**2."""
    shifted, r = _reduced(t, _ROUND + EXPONENT_BIAS)
    s = float_of(bits_of(shifted) << 52)
    return s * (r * r * tail(r)) + (s * r + ((s - 1.0) - t))


@by_dtype(_expm1_excess32)
def expm1_minus_x(t: float) -> float:
    """Return e**t - 1 - t, relatively accurate near 0, for |t| <= 700 (float32: |t| <= 80), which is not checked.

    If h is the result, e**t - 1 is t + h. The derivatives of (e**(m a) - 1)/m in m can be computed from h without
    cancellation. The relative error is about 1e-15, in float32 about 5e-7.
    """
    return _expm1_minus_x(_exp_tail, t)


@inlined
def _exp_tail_lanes(r: Lanes) -> Lanes:
    """Return `_exp_tail` of every lane by Estrin's scheme, which halves the chain of dependent operations."""
    square = r * r
    fourth = square * square
    low = (_Q[3] * r + _Q[2]) * square + (_Q[1] * r + _Q[0])
    middle = (_Q[7] * r + _Q[6]) * square + (_Q[5] * r + _Q[4])
    high = _Q[10] * square + (_Q[9] * r + _Q[8])
    return (high * fourth + middle) * fourth + low


@inlined
def minimum(x: Lanes, y: Lanes) -> Lanes:
    """Return the smaller of x and y in every lane; y if either is NaN."""
    return select(x < y, x, y)


@inlined
def maximum(x: Lanes, y: Lanes) -> Lanes:
    """Return the larger of x and y in every lane; y if either is NaN."""
    return select(x > y, x, y)


@inlined
def _exp_lanes_parts32(t: Lanes) -> tuple[Lanes, Lanes]:
    t = select(t < _BOUND32, select(t > -_BOUND32, t, -_BOUND32), _BOUND32)
    s, r = _reduced32(t)
    square = r * r
    tail = (_Q32[4] * square + (_Q32[3] * r + _Q32[2])) * square + (_Q32[1] * r + _Q32[0])
    return s, r + square * tail


@by_dtype(_exp_lanes_parts32)
def _exp_lanes_parts(t: Lanes) -> tuple[Lanes, Lanes]:
    """Return (s, p) such that e**t = s + s p, where s is a power of two; t is clipped to |t| <= 700 (float32: 80).

    s is exact, and p is accurate to a few ulp.
    """
    t = select(t < 700.0, select(t > -700.0, t, -700.0), 700.0)
    shifted, r = _reduced(t, _ROUND + EXPONENT_BIAS)
    return float_of(bits_of(shifted) << 52), r + r * r * _exp_tail_lanes(r)


@inlined
def expm1_lanes(t: Lanes) -> Lanes:
    """Return e**t - 1 of every lane within a few ulp, with t clipped to |t| <= 700 (float32: 80).

    NaN is treated as the upper bound.
    """
    s, p = _exp_lanes_parts(t)
    return s * p + (s - _ONE32)


@inlined
def exp_lanes(t: Lanes) -> Lanes:
    """Return e**t of every lane within a few ulp; t is clipped as in `expm1_lanes`."""
    s, p = _exp_lanes_parts(t)
    return s * p + s


#: (2**f - 1)/f on |f| <= 1/2, to 1.3e-15; _POWER2_32 to 5e-7.
_POWER2 = (
    0.6931471805599462,
    0.24022650695909856,
    0.05550410866465328,
    0.009618129107735967,
    0.0013333558200472211,
    0.00015403530255606783,
    1.5252673131351466e-05,
    1.321554195449859e-06,
    1.020586408962929e-07,
    7.054907749595819e-09,
)

_POWER2_32 = tuple(
    np.float32(c)
    for c in (0.6931471435061587, 0.24022351343132514, 0.05550500213429321, 0.009666245425790861, 0.0013333538732232045)
)


@inlined
def _exp2m1_lanes32(t: Lanes) -> Lanes:
    c = _POWER2_32
    shifted = t + _ROUND32
    f = t - (shifted - _ROUND32)
    square = f * f
    ratio = (c[4] * square + (c[3] * f + c[2])) * square + (c[1] * f + c[0])
    s = float32_of(bits32_of(shifted) << 23)
    return (s * f) * ratio + (s - _ONE32)


@by_dtype(_exp2m1_lanes32)
def exp2m1_lanes(t: Lanes) -> Lanes:
    """Return 2**t - 1 within 10 ulp (float32: 7), for |t| <= 1022 (float32: 126), which is not checked.

    Splitting t into an integer and a fraction is exact, so this takes three quarters of the time of `expm1_lanes`.
    """
    c = _POWER2
    shifted = t + (_ROUND + EXPONENT_BIAS)
    f = t - (shifted - (_ROUND + EXPONENT_BIAS))
    square = f * f
    fourth = square * square
    low = (c[3] * f + c[2]) * square + (c[1] * f + c[0])
    middle = (c[7] * f + c[6]) * square + (c[5] * f + c[4])
    ratio = ((c[9] * f + c[8]) * fourth + middle) * fourth + low
    s = float_of(bits_of(shifted) << 52)
    return (s * f) * ratio + (s - 1.0)


@inlined
def _are_moderate32(t: Lanes) -> bool:
    return not any_lane(~(abs(t) <= _BOUND32))


@by_dtype(_are_moderate32)
def are_moderate(t: Lanes) -> bool:
    """Return whether |t| <= 700 (float32: 80) in every lane, so that `expm1_lanes` clips none of them."""
    return not any_lane(~(abs(t) <= 700.0))


@inlined
def expm1_minus_x_lanes(t: Lanes) -> Lanes:
    """Return `expm1_minus_x` of every lane, with shorter chains of dependent operations."""
    return _expm1_minus_x(_exp_tail_lanes, t)
