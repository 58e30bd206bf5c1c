"""Transform float32 values, and invert the transforms, in float64 arithmetic just accurate enough for float32.

Logarithms and exponentials have relative errors of 2**-36.9, instead of 2**-53 in full float64 accuracy. For this to
suffice, values are measured from the point x0 whose image is zero, psi(lambda, x0) = mean. The standardised value is

    z = (psi(lambda, x) - psi(lambda, x0))/sd = slope b_m(ln(x/x0)),      slope = x0**m/sd

(for Yeo-Johnson with 1 + |x| in place of x), where b_m(a) = (e^(m a) - 1)/m. Nothing cancels in this expression. For
raw images x0 = 1 (Yeo-Johnson: 0) and sd = 1. The relative error is at most 2**-36.9 (1 + |t|), t = m ln(x/x0), and
rounding to float32 adds at most 2**-24. Since t <= 128, the result is within 0.52 units in the last place of float32.
Inverses, for which |ln(x/x0)| < 200, are within 0.53. As in float64, rounding errors of the fit's constants are not
included.

As in `kernels.transforms.boxcox`, a row is transformed in place, with the constants of its columns in arrays. Values
between two bounds are called ordinary: for these the accuracy holds. All others are left to the float64 loops over
columns.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import bits_of, float_of, inlined
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import SMALLEST_NORMAL
from powerkern.kernels.elementary.exp import LOG2_E, make_rounder, polynomial, scaled_expm1
from powerkern.kernels.elementary.log import log1p_finite, split_normal
from powerkern.kernels.transforms.branch import (
    Fit,
    Prepare,
    PrepareAll,
    in_turn,
    read_fields,
    select_by_sign,
    write_bounds,
)

#: ln 2.
_LN2 = 0.6931471805599453

#: (e^r - 1 - r)/r on |r| <= ln(2)/2, to 2**-37.5 of e^r - 1
_Q = (
    0.4999999999973758,
    0.16666666754300258,
    0.041666666954466004,
    0.008333289020799793,
    0.0013888809401363892,
    0.0001990492050745133,
    2.4882460521046112e-05,
)
#: (2 atanh(s) - 2 s)/s**3 as a polynomial in s**2, |s| <= 3 - sqrt(8), to 2**-37.4 of the logarithm
_P = (0.6666666583643224, 0.400003010978791, 0.2853913464152548, 0.23551794671303766)

#: The largest float32.
_LARGEST = 3.4028234663852886e38
#: Half of the smallest float32.
_TINY = 7.006492321624085e-46
_LOG_LARGEST, _LOG_TINY = math.log(_LARGEST) - 1e-9, math.log(_TINY)

#: Largest slope that, divided or multiplied by an exponent, neither overflows nor underflows.
_SLOPE_MAX = 1e290
#: Largest t for which errors of t are harmless (the logarithm's error of 2**-37.4 times 2**7 is 2**-30, while float32
#: rounds to 2**-24), and largest -t for which products with e^t are in range for float64.
_STEEP, _DEEP = 128.0, 600.0
#: Largest |t| for which e^t is in the normal range of float64.
_UNCHECKED = 690.0
#: The rounding error of 1 + m y = e^t is harmless if e^t is at least e^-_NEAR_END = 2**-18.
_NEAR_END = 12.5
#: Largest exponent. It multiplies errors of 2**-53 in logarithms to 2**-37, well below the rounding of float32, 2**-24.
_LARGEST_EXPONENT = 65536.0
#: Range of 1 + m y. At the lower end it has lost 20 of 53 bits, and has more than the 24 of float32; above the upper
#: end it might overflow.
_SMALLEST_RATIO, _LARGEST_RATIO = 2.0**-20, 1e250
#: The inverse of Yeo-Johnson is measured from 0 if ln (1 + |x0|)**m is in the interval from -_NEAR_ORIGIN to
#: _FAR_ORIGIN, and otherwise from x0. Below e^-8 more than 11 bits of 1 + m y would cancel; above e^40 = 2**58 the bits
#: of values near 0 would be lost.
_NEAR_ORIGIN, _FAR_ORIGIN = 8.0, 40.0


# --- elementary functions -----------------------------------------------------------------------------


@inlined
def log_about_one(u: float, f: float) -> float:
    """Return ln u for positive normal u, without range checks.

    Near 1 the result is computed from f = u - 1, which the caller may know more accurately than u.
    """
    k, m = split_normal(u)
    g = f if k == 0.0 else m - 1.0
    s = g / (2.0 + g)
    z = s * s
    return k * _LN2 + (2.0 * s + s * (z * polynomial(_P, z)))


@inlined
def _reduced(t: float) -> tuple[float, float, float]:
    """Return 2**k, r and (e^r - 1 - r)/r**2 for t = k ln 2 + r with |r| <= ln(2)/2; t must be NaN or |t| < 700."""
    rounder = make_rounder(0.0)
    shifted = t * LOG2_E + rounder
    r = t - (shifted - rounder) * _LN2
    return float_of(bits_of(shifted) << 52), r, polynomial(_Q, r)


@inlined
def expm1_short(t: float) -> float:
    """Return e**t - 1 for |t| < 700 to the accuracy of this module, without range checks.

    The relative accuracy also holds near t = 0.
    """
    power, r, q = _reduced(t)
    return power * (r * r * q) + (power * r + (power - 1.0))


@inlined
def exp_short(t: float) -> float:
    """Return e**t for |t| < 700 to the accuracy of this module, without range checks."""
    power, r, q = _reduced(t)
    return power * (1.0 + (r + r * r * q))


@inlined
def _exp_within(t: float) -> float:
    """Return e**t with a relative error of at most 2**-36.9, after clipping t to [-690, 690]."""
    return exp_short(_smaller(_larger(t, -690.0), 690.0))


# --- the constants of columns -------------------------------------------------------------------------
#
# Branch-free, so that computing the constants of many columns vectorises, which dominates the time for short columns.

# rows of an array of constants, after the bounds
_M, _REF, _REF_INVERSE, _SLOPE = range(2, 6)
_SCALE, _M_INVERSE, _CENTER = range(2, 5)


@inlined
def _divisor(m: float) -> float:
    """Return the exponent m, or 2**-100 if |m| is smaller, so that one can divide by the result."""
    return 2.0**-100 if abs(m) <= 2.0**-100 else m


@inlined
def _exp(t: float) -> float:
    """Return e**t to nearly full float64 precision, for |t| < _UNCHECKED."""
    return scaled_expm1(t, make_rounder(0.0), 0.0)


@inlined
def _expm1(t: float) -> float:
    """Return e**t - 1 to nearly full float64 precision, for |t| < _UNCHECKED."""
    return scaled_expm1(t, make_rounder(0.0), 1.0)


@inlined
def _smaller(x: float, y: float) -> float:
    return x if x < y else y


@inlined
def _larger(x: float, y: float) -> float:
    return x if x > y else y


@inlined
def _log_bounds(m_inverse: float, above: float, below: float) -> tuple[float, float]:
    """Return the interval of a in which ``-below <= m*a <= above``."""
    ascends, size = m_inverse > 0.0, abs(m_inverse)
    return -(below if ascends else above) * size, (above if ascends else below) * size


@inlined
def _is_sound(m: float, ratio: float) -> bool:
    """Return whether ``ratio = 1 + m y`` and the logarithm of the ratio have enough accurate digits."""
    return (abs(m) <= _LARGEST_EXPONENT) & (ratio >= _SMALLEST_RATIO) & (ratio <= _LARGEST_RATIO)


@inlined
def _log_at_most(u: float) -> float:
    """Return an upper bound of ln u that exceeds ln u by less than ln 2, for positive normal u."""
    return (split_normal(u)[0] + 0.5) * _LN2


@inlined
def _boxcox_origin(fit: Fit) -> tuple[float, float, float, float, bool]:
    """Return m, 1/m, x0, the slope, and whether these numbers are accurate enough.

    m is the exponent, and x0 the point with image 0. The fit's standardised value of x is slope b_m(ln(x/x0)).
    """
    m = _divisor(fit.lmbda)
    m_inverse, product = 1.0 / m, m * (-fit.intercept / fit.slope)
    distance = log1p_finite(product) * m_inverse
    center, slope = fit.ref * _exp(distance), fit.slope * (1.0 + product)
    sound = _is_sound(m, 1.0 + product) & (abs(distance) < _UNCHECKED) & (center > 2.0 * _TINY) & (center < _LARGEST)
    sound &= (slope > SMALLEST_NORMAL) & (slope < _SLOPE_MAX)
    return m, m_inverse, center, slope, sound


@inlined
def boxcox_constants(fit: Fit, c: FloatArray, j: int) -> None:
    """Write the constants with which `boxcox_block` transforms column j."""
    m, m_inverse, center, slope, sound = _boxcox_origin(fit)
    low, high = _log_bounds(m_inverse, _STEEP, _DEEP)
    low, high = center * _exp_within(low), center * _exp_within(high)
    write_bounds(_larger(low, _TINY), _smaller(high, _LARGEST), sound, c, j)
    c[_M, j], c[_REF, j], c[_REF_INVERSE, j], c[_SLOPE, j] = m, center, 1.0 / center, slope * m_inverse


@inlined
def inv_boxcox_constants(fit: Fit, c: FloatArray, j: int) -> None:
    """Write the constants with which `inv_boxcox_block` inverts the transform of column j."""
    m, m_inverse, center, slope, sound = _boxcox_origin(fit)
    low, high = _log_bounds(m_inverse, _DEEP, _NEAR_END)
    log_center = log_about_one(center, center - 1.0)
    low, high = _larger(low, _LOG_TINY - log_center), _smaller(high, _LOG_LARGEST - log_center)
    slope *= m_inverse
    write_bounds(slope * expm1_short(m * low), slope * expm1_short(m * high), sound & (low < high), c, j)
    c[_SCALE, j], c[_M_INVERSE, j], c[_CENTER, j] = 1.0 / slope, m_inverse, center


# Yeo-Johnson: constants that depend on the sign of x are in pairs, the first for x >= 0
_CENTERS, _INVERSES, _MS, _SLOPES, _OFFSETS = range(2, 12, 2)
_SCALES, _M_INVERSES, _STARTS, _BASES, _END = range(2, 11, 2)


class _InverseOrigin(NamedTuple):
    """Constants of the standardised Yeo-Johnson transform z of x, relative to the point x0 whose image is 0.

    With b_m(a) = (e^(m a) - 1)/m, the same function b_other of the exponent `other`, and the fields of this class,

        z = +-near b_m(ln((1 + |x|)/(1 + |x0|)))      if x has the sign of x0,
        z = zero -+ far b_other(ln(1 + |x|))          if x has the other sign.

    In +- and -+ the first sign holds for x0 >= 0, and the second for x0 < 0.
    """

    negative: bool  #: whether x0 < 0
    m: float  #: exponent for the sign of x0
    other: float  #: exponent for the other sign
    m_inverse: float
    other_inverse: float
    center: float  #: |x0|
    log_base: float  #: ln(1 + |x0|)
    near: float  #: slope for the sign of x0
    far: float  #: slope for the other sign
    zero: float  #: z at x = 0
    sound: bool  #: whether x0 and the slopes are accurate enough
    both: bool  #: whether values of the other sign can be computed, too


# rows that carry intermediate values from the first loop over columns to the second
_LOG_SIZE, _SHIFT, _FAR, _PRODUCT = range(2, 6)


@inlined
def _begin_yeojohnson(fields: FloatArray, c: FloatArray, n: int) -> None:
    """Write intermediate values of n columns, from which `_yeojohnson_origin` computes their constants.

    x0 is the point with image 0, m the exponent for the sign of x0, and a and b are the slope and the intercept of the
    fit. The intermediate values, one per row of `c`, are:

    * ln(1 + |ref|);
    * S, the log of the factor by which psi is divided: the fit's log factor if ref = 0, otherwise m ln(1 + |ref|);
    * far = a e^-S, the slope for the sign opposite to x0;
    * -m b/a, with far in place of a if ref = 0, and without the minus sign if x0 < 0.

    This is a separate loop, since one long chain of dependent operations takes longer than two short chains.
    """
    for j in range(n):
        fit = read_fields(fields, j)
        ref, a, b = fit.ref, fit.slope, fit.intercept
        negative = _is_negative(ref, b)
        m = _divisor(2.0 - fit.lmbda if negative else fit.lmbda)
        log_size = log1p_finite(abs(ref))
        shift = fit.log_factor if ref == 0.0 else m * log_size
        far = a * _exp(-shift)
        c[_LOG_SIZE, j], c[_SHIFT, j], c[_FAR, j] = log_size, shift, far
        c[_PRODUCT, j] = m * ((b if negative else -b) / (far if ref == 0.0 else a))


@inlined
def _is_negative(ref: float, intercept: float) -> bool:
    """Return whether x0, the point with image 0, is negative."""
    return (ref < 0.0) | ((ref == 0.0) & (intercept > 0.0))


@inlined
def _yeojohnson_origin(fit: Fit, c: FloatArray, j: int) -> _InverseOrigin:
    """Return the constants of the transform of column j relative to x0, the point with image 0.

    They are computed from the intermediate values that `_begin_yeojohnson` has written.
    """
    lmbda, ref = fit.lmbda, fit.ref
    log_size, shift, far, product = c[_LOG_SIZE, j], c[_SHIFT, j], c[_FAR, j], c[_PRODUCT, j]
    negative, size = _is_negative(ref, fit.intercept), abs(ref)
    upper, lower = _divisor(lmbda), _divisor(2.0 - lmbda)
    m, other = lower if negative else upper, upper if negative else lower
    m_inverse = 1.0 / m
    d = log1p_finite(product) * m_inverse  # ln((1 + |x0|)/(1 + |ref|))
    center, log_base = size + (1.0 + size) * _expm1(d), log_size + d
    near = (far if ref == 0.0 else fit.slope) * (1.0 + product)
    zero = near * _expm1(-m * log_base) * m_inverse
    sound = _is_sound(m, 1.0 + product) & (center >= 0.0) & (center < _LARGEST)
    sound &= (abs(d) < _UNCHECKED) & ((ref != 0.0) | (abs(shift) < _UNCHECKED))
    sound &= (near > SMALLEST_NORMAL) & (near < _SLOPE_MAX)
    both = (abs(shift) < _DEEP) & (abs(other) <= _LARGEST_EXPONENT)
    both &= (far > SMALLEST_NORMAL) & (far < _SLOPE_MAX)
    zero = -zero if negative else zero
    return _InverseOrigin(negative, m, other, m_inverse, 1.0 / other, center, log_base, near, far, zero, sound, both)


@inlined
def _write_pair(k: int, near: float, far: float, negative: bool, c: FloatArray, j: int) -> None:
    """Write a constant that depends on the sign of x to rows k and k + 1, for x >= 0 and for x < 0.

    Parameters
    ----------
    k : int
        First of the two rows.
    near : float
        The constant for x of the sign of x0.
    far : float
        The constant for the other sign.
    negative : bool
        Whether x0 < 0.
    c : (n_constants, n)
        Constants of the columns.
    j : int
        Index of the column.
    """
    c[k, j], c[k + 1, j] = far if negative else near, near if negative else far


@inlined
def _write_interval(
    nearest: float, end: float, beyond: float, negative: bool, sound: bool, c: FloatArray, j: int
) -> None:
    """Write bounds between which values of column j are accurate in this module's arithmetic (ordinary values).

    The first three arguments are bounds for x0 >= 0; for x0 < 0 they are mirrored.

    Parameters
    ----------
    nearest : float
        The lower bound, unless `beyond` is negative.
    end : float
        The upper bound.
    beyond : float
        The lower bound if negative; 0 if values of the other sign are not ordinary.
    negative : bool
        Whether x0 < 0.
    sound : bool
        Whether the column has ordinary values at all.
    c : (n_constants, n)
        Constants of the columns; receives the bounds.
    j : int
        Index of the column.
    """
    start = beyond if beyond < 0.0 else nearest
    write_bounds(-end if negative else start, -start if negative else end, sound, c, j)


@inlined
def _yeojohnson_constants(fit: Fit, c: FloatArray, j: int) -> None:
    """Write the constants with which `yeojohnson_block` transforms column j."""
    o = _yeojohnson_origin(fit, c, j)
    low, high = _log_bounds(o.m_inverse, _STEEP, _DEEP)
    base = 1.0 + o.center
    nearest = base * _exp_within(low) - 1.0
    end = _smaller(base * _exp_within(high) - 1.0, _LARGEST)
    beyond = _smaller(_exp_within(_log_bounds(o.other_inverse, _STEEP, _DEEP)[1]) - 1.0, _LARGEST)
    beyond = -beyond if o.both & (nearest <= 0.0) else 0.0
    _write_interval(_larger(nearest, _TINY if o.negative else 0.0), end, beyond, o.negative, o.sound, c, j)
    _write_pair(_CENTERS, o.center, 0.0, o.negative, c, j)
    _write_pair(_INVERSES, 1.0 / base, 1.0, o.negative, c, j)
    _write_pair(_MS, o.m, o.other, o.negative, c, j)
    near, far = o.near * o.m_inverse, -o.far * o.other_inverse
    _write_pair(_SLOPES, -near if o.negative else near, -far if o.negative else far, o.negative, c, j)
    _write_pair(_OFFSETS, 0.0, o.zero, o.negative, c, j)


@inlined
def _inv_yeojohnson_constants(fit: Fit, c: FloatArray, j: int) -> None:
    """Write the constants with which `inv_yeojohnson_block` inverts the transform of column j.

    The inverse is computed as a distance from 0. If x0, the point with image 0, is far from 0, it is computed as a
    distance from x0 instead.
    """
    o = _yeojohnson_origin(fit, c, j)
    shift = o.m * o.log_base
    apart = (shift < -_NEAR_ORIGIN) | (shift > _FAR_ORIGIN) | (not o.both)
    base = o.center if apart else 0.0
    log_base = o.log_base if apart else 0.0
    slope = o.near if apart else o.far
    start = 0.0 if apart else o.zero
    low, high = _log_bounds(o.m_inverse, _DEEP, _NEAR_END)
    low = _larger(low, (_log_at_most(1.0 + base * 2.0**-10) if apart else 0.0) - log_base)
    high = _smaller(high, _LOG_LARGEST - log_base)
    # for the other sign the rounding error of `start` matters if 1 + m y is small
    lost = abs(o.other) * expm1_short(_smaller(shift, _FAR_ORIGIN)) * o.m_inverse * 2.0**-22
    lost = _larger(lost, 1e-300)
    near_end = _smaller(_NEAR_END, -_log_at_most(lost))
    far_high = _smaller(_log_bounds(o.other_inverse, _DEEP, near_end)[1], _LOG_LARGEST)
    beyond = -o.far * expm1_short(o.other * far_high) * o.other_inverse
    beyond = 0.0 if apart | ((o.other < 0.0) & (near_end < 0.1)) else beyond
    slope *= o.m_inverse
    first, last = slope * expm1_short(o.m * low), slope * expm1_short(o.m * high)
    offset = -start if o.negative else start
    bottom = offset + (beyond if beyond < 0.0 else first)
    top = offset + last
    write_bounds(-top if o.negative else bottom, -bottom if o.negative else top, o.sound & (low <= high), c, j)
    scale, far_scale = 1.0 / slope, -o.other / o.far
    _write_pair(_SCALES, -scale if o.negative else scale, -far_scale if o.negative else far_scale, o.negative, c, j)
    _write_pair(_M_INVERSES, o.m_inverse, o.other_inverse, o.negative, c, j)
    _write_pair(_STARTS, start, o.zero, o.negative, c, j)
    _write_pair(_BASES, base, 0.0, o.negative, c, j)
    # if values are measured from x0, all ordinary ones have its sign
    far_away = math.inf if o.negative else -math.inf
    c[_END, j] = far_away if apart else o.zero


def _after(prepare: Prepare) -> PrepareAll:
    """Return a kernel that computes the constants of n columns.

    It calls `_begin_yeojohnson` once for all columns, and then `prepare` for each column.
    """

    def prepare_all(fields: FloatArray, c: FloatArray, n: int) -> None:
        _begin_yeojohnson(fields, c, n)
        for j in range(n):
            prepare(read_fields(fields, j), c, j)

    return inlined(prepare_all)


# --- rows of a matrix ---------------------------------------------------------------------------------


@inlined
def boxcox_block(x: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """Transform a block of float32 values by Box-Cox; the constants determine whether the images are standardised.

    Parameters
    ----------
    x : (n,)
        One value of each of n columns, within the bounds in the first two rows of `c`.
    c : (6, n)
        Constants of the columns, written by `boxcox_constants`.
    out : (n,)
        Receives the images.
    spare : (>= 1, n)
        Scratch.
    """
    t = spare[0]
    for j in range(out.size):
        v = float(x[j])
        inverse = c[_REF_INVERSE, j]
        t[j] = c[_M, j] * log_about_one(v * inverse, (v - c[_REF, j]) * inverse) + 0.0 * v  # NaN for NaN
    for j in range(out.size):
        out[j] = c[_SLOPE, j] * expm1_short(t[j])


@inlined
def inv_boxcox_block(z: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """Invert the Box-Cox transform for a block of float32 images, which may be standardised or not.

    Parameters
    ----------
    z : (n,)
        One image of each of n columns, within the bounds in the first two rows of `c`.
    c : (5, n)
        Constants of the columns, written by `inv_boxcox_constants`.
    out : (n,)
        Receives the values.
    spare : (>= 1, n)
        Scratch.
    """
    d = spare[0]
    for j in range(out.size):
        v = float(z[j]) * c[_SCALE, j]
        d[j] = log_about_one(1.0 + v, v) * c[_M_INVERSE, j] + 0.0 * v
    for j in range(out.size):
        out[j] = c[_CENTER, j] * exp_short(d[j])


@inlined
def yeojohnson_block(x: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """Transform a block of float32 values by Yeo-Johnson; the constants determine whether the images are standardised.

    Parameters
    ----------
    x : (n,)
        One value of each of n columns, within the bounds in the first two rows of `c`.
    c : (12, n)
        Constants of the columns, written by `_yeojohnson_constants`.
    out : (n,)
        Receives the images.
    spare : (>= 2, n)
        Scratch.
    """
    t, kept = spare[0], spare[1]
    for j in range(out.size):
        v = float(x[j])
        kept[j] = v
        negative, size = v < 0.0, abs(v)
        inverse = select_by_sign(c, _INVERSES, j, negative)
        log_ratio = log_about_one((1.0 + size) * inverse, (size - select_by_sign(c, _CENTERS, j, negative)) * inverse)
        t[j] = select_by_sign(c, _MS, j, negative) * log_ratio + 0.0 * v
    for j in range(out.size):
        negative = kept[j] < 0.0
        out[j] = select_by_sign(c, _SLOPES, j, negative) * expm1_short(t[j]) + select_by_sign(c, _OFFSETS, j, negative)


@inlined
def inv_yeojohnson_block(z: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """Invert the Yeo-Johnson transform for a block of float32 images, which may be standardised or not.

    Parameters
    ----------
    z : (n,)
        One image of each of n columns, within the bounds in the first two rows of `c`.
    c : (11, n)
        Constants of the columns, written by `_inv_yeojohnson_constants`.
    out : (n,)
        Receives the values.
    spare : (>= 2, n)
        Scratch.
    """
    d, kept = spare[0], spare[1]
    for j in range(out.size):
        y = float(z[j])
        negative = y < c[_END, j]
        kept[j] = -1.0 if negative else 1.0
        v = (y - select_by_sign(c, _STARTS, j, negative)) * select_by_sign(c, _SCALES, j, negative)
        d[j] = log_about_one(1.0 + v, v) * select_by_sign(c, _M_INVERSES, j, negative) + 0.0 * v
    for j in range(out.size):
        base = select_by_sign(c, _BASES, j, kept[j] < 0.0)
        out[j] = kept[j] * (base + (1.0 + base) * expm1_short(d[j]))


#: A transform and its inverse: name of the entry, writer of constants, transform of a block, number of constants.
BOXCOX_ROWS = (
    ("boxcox_lines32", in_turn(boxcox_constants), boxcox_block, 6),
    ("inv_boxcox_lines32", in_turn(inv_boxcox_constants), inv_boxcox_block, 5),
)
YEOJOHNSON_ROWS = (
    ("yeojohnson_lines32", _after(_yeojohnson_constants), yeojohnson_block, 12),
    ("inv_yeojohnson_lines32", _after(_inv_yeojohnson_constants), inv_yeojohnson_block, 11),
)
