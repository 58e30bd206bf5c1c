"""Yeo-Johnson transform standardised by location and scale, and its inverse."""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import allocated, inlined, kernel, release, widest_vectors
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp import exp, exp_less, expm1, rounder_of
from powerkern.kernels.elementary.log import log, log1p, log1p_finite, log1p_ratio, split
from powerkern.kernels.results import INTERCEPT, LMBDA, LOG_FACTOR, REF, SLOPE
from powerkern.kernels.transforms.branch import (
    BLOCK,
    LARGE,
    LINEAR,
    LOG_END,
    Exponent,
    all_within,
    exponent_pair,
    reach,
)
from powerkern.kernels.transforms.yeojohnson import inv_yeojohnson_loop, limit_of, ordinary_size, yeojohnson_loop

# As for Box-Cox, the logarithm is taken relative to a reference where the data are one-signed:
#     psi(lambda, x) - psi(lambda, ref) = +-e^S b_m(d),  d = ln((1 + |x|)/(1 + |ref|)),  S = m ln(1 + |ref|)
# for an x of the sign of ref, m = lambda or 2 - lambda by that sign. In mixed columns ref = 0, and S is given.
# The standardised variable is
#     Psi(x) = e^-S (psi(lambda, x) - psi(lambda, ref)),
# where each e^t that would overflow is combined with e^-S.

# e^-S as a factor of its own is kept below e^700
_SMALLEST_SHIFT = -700.0
# the smallest positive number
_SMALLEST = 5e-324
# e^S is kept below e^700
_LARGEST_GROWTH = 700.0


class Side(NamedTuple):
    """Constants of the standardised transform that depend on the sign of x."""

    m: float
    #: 1/(m unit)
    inverse: float
    #: |ref| or 0, its ln(1 + .), and 1 + . as a power of two and a mantissa
    center: float
    log_base: float
    base_k: float
    base_m: float
    #: S, and e^-S
    shift: float
    factor: float
    #: z = slope*|...| + offset
    slope: float
    offset: float


@inlined
def _side(m: float, inverse: float, center: float, shift: float, slope: float, offset: float) -> Side:
    base_k, base_m = split(1.0 + center)
    return Side(
        m=m,
        inverse=inverse,
        center=center,
        log_base=log1p(center),
        base_k=base_k,
        base_m=base_m,
        shift=shift,
        factor=exp(-shift),
        slope=slope,
        offset=offset,
    )


@inlined
def shift_of(lmbda: float, ref: float, log_factor: float) -> float:
    """S."""
    m = 2.0 - lmbda if ref < 0.0 else lmbda
    shift = log_factor if ref == 0.0 else m * log1p(abs(ref))
    return shift if shift > _SMALLEST_SHIFT else _SMALLEST_SHIFT


@inlined
def at_zero(lmbda: float, ref: float, shift: float) -> float:
    """|Psi(0)| with a minus sign: -e^-S |psi(ref)|."""
    m = 2.0 - lmbda if ref < 0.0 else lmbda
    value = expm1(-shift) / (m if m != 0.0 else 1.0)
    value = -log1p(abs(ref)) if abs(shift) < LINEAR else value
    return 0.0 if ref == 0.0 else value


@inlined
def sides(
    lmbda: float, ref: float, a: float, b: float, log_factor: float, upper: Exponent, lower: Exponent
) -> tuple[Side, Side]:
    """The sides x >= 0 and x < 0."""
    shift = shift_of(lmbda, ref, log_factor)
    zero = at_zero(lmbda, ref, shift)
    return (
        _side(
            upper.m,
            upper.inverse,
            ref if ref > 0.0 else 0.0,
            0.0 if ref > 0.0 else shift,
            a,
            b - a * zero if ref < 0.0 else b,
        ),
        _side(
            lower.m,
            lower.inverse,
            -ref if ref < 0.0 else 0.0,
            0.0 if ref < 0.0 else shift,
            -a,
            b + a * zero if ref > 0.0 else b,
        ),
    )


@inlined
def _selected_side(negative: bool, upper: Side, lower: Side, mixed: bool) -> Side:
    """The side for the sign of x; in a `mixed` column (a compile-time constant) the sides differ in m only."""
    m = lower.m if negative else upper.m
    inverse = lower.inverse if negative else upper.inverse
    slope = lower.slope if negative else upper.slope
    if mixed:
        return Side(
            m,
            inverse,
            0.0,
            0.0,
            0.0,
            1.0,
            upper.shift,
            upper.factor,
            slope,
            upper.offset,
        )
    return Side(
        m,
        inverse,
        lower.center if negative else upper.center,
        lower.log_base if negative else upper.log_base,
        lower.base_k if negative else upper.base_k,
        lower.base_m if negative else upper.base_m,
        lower.shift if negative else upper.shift,
        lower.factor if negative else upper.factor,
        slope,
        lower.offset if negative else upper.offset,
    )


@inlined
def _standardized_blocks(
    x: FloatArray, lmbda: float, e: Exponent, upper: Side, lower: Side, mixed: bool, ordinary: bool
) -> None:
    """`ordinary` (a compile-time constant): S = 0, and x is NaN, or x and e**t are not near the limits of float64."""
    widest_vectors()
    upper_inverse = 1.0 / (1.0 + upper.center)
    lower_inverse = 1.0 / (1.0 + lower.center)
    # half the inverse: the product with 1 + |x| cannot overflow
    upper_m_inverse = 0.5 / upper.base_m
    lower_m_inverse = 0.5 / lower.base_m
    upper_limit = limit_of(lmbda) * upper.factor if lmbda < 0.0 else math.inf
    lower_limit = limit_of(2.0 - lmbda) * lower.factor if lmbda > 2.0 else math.inf
    one_sided = ordinary and not mixed
    below = lower.center > 0.0
    d = allocated((BLOCK,))
    for start in range(0, x.size, BLOCK):
        block = x[start : start + BLOCK]
        for i in range(block.size):
            negative = below if one_sided else block[i] < 0.0
            size = abs(block[i])
            if mixed:
                d[i] = log1p_finite(size)
            else:
                side = _selected_side(negative, upper, lower, False)
                inverse = lower_inverse if negative else upper_inverse
                m_inverse = lower_m_inverse if negative else upper_m_inverse
                d[i] = log1p_ratio(size, side.center, inverse, side.base_k, m_inverse)
        for i in range(block.size):
            negative = below if one_sided else block[i] < 0.0
            side = _selected_side(negative, upper, lower, mixed)
            t = side.m * d[i]
            if ordinary:
                value = exp_less(t, e.rounder, e.unit) * side.inverse
                value = d[i] if abs(t) < LINEAR else value
            else:
                # e^-S (e^t - 1) as e^(t - S) - e^-S, or where t is small by expm1
                far = t > 1.0
                exponent = t - side.shift if far else t
                exponent = e.t_max if exponent > e.t_max else exponent
                exponent = e.t_min if exponent < e.t_min else exponent
                value = exp_less(exponent, e.rounder, e.unit * (side.factor if far else 1.0))
                value = value * side.inverse * (1.0 if far else side.factor)
                flat = d[i] * side.factor
                value = flat if abs(t) < LINEAR else value
                limit = lower_limit if negative else upper_limit
                value = value if abs(block[i]) < math.inf else limit
            z = side.slope * value + side.offset
            block[i] = z if block[i] == block[i] else block[i]
    release(d)


@inlined
def ordinary_range(lmbda: float, ref: float, shift: float, e: Exponent) -> tuple[float, float]:
    """Bounds between which x is on the side of `ref` (if that is not 0) and so near to it that nothing overflows.

    None where 1/(1 + |ref|) might be subnormal.
    """
    size = ordinary_size(lmbda, e) if shift == 0.0 else -math.inf
    span = reach(e, abs(2.0 - lmbda) if ref < 0.0 else abs(lmbda))
    nearest = _SMALLEST if ref < 0.0 else 0.0
    low, high = (1.0 + abs(ref)) / span - 1.0, (1.0 + abs(ref)) * span - 1.0
    low, high = low if low > nearest else nearest, high if high < LARGE else LARGE
    low = low if abs(ref) <= LARGE else math.inf
    first, last = (low, high) if ref > 0.0 else (-high, -low)
    return -size if ref == 0.0 else first, size if ref == 0.0 else last


@kernel
def yeojohnson_standardized(x: FloatArray, fit: FloatArray) -> None:
    """`x` = a Psi(x) + b, Psi(x) = e^-S (psi(lambda, x) - psi(lambda, ref)), with the numbers of a fit.

    With ref = 0, S is its log factor: the largest t = m ln(1 + |x|) of the fitted data, or 0 if that is negative, and
    no fitted x overflows. Otherwise S = m_ref ln(1 + |ref|), the log factor is not used, and for the x of the sign of
    ref Psi(x) = +-b_m(ln((1 + |x|)/(1 + |ref|))), whose logarithm is log1p((|x| - |ref|)/(1 + |ref|)) where that is
    small: nothing cancels in a tight cluster. ref is the largest |x| for m > 0 and the smallest for m < 0.

    Error: eps (2 + |m| + |m d|) of max(|z|, |b|, a |Psi|), d the logarithm; with ref = 0, eps*|S| of it. An S below
    -700 counts as -700: for x of the other sign than ref, Psi then stays within the range of float64, at the
    price of its scale.
    """
    lmbda, ref = fit[LMBDA], fit[REF]
    e, e_lower = exponent_pair(lmbda)
    upper, lower = sides(lmbda, ref, fit[SLOPE], fit[INTERCEPT], fit[LOG_FACTOR], e, e_lower)
    low, high = ordinary_range(lmbda, ref, upper.shift, e)
    ordinary = all_within(x, low, high)
    if ref == 0.0 and ordinary:
        _standardized_blocks(x, lmbda, e, upper, lower, True, True)
    elif ref == 0.0:
        _standardized_blocks(x, lmbda, e, upper, lower, True, False)
    elif ordinary:
        _standardized_blocks(x, lmbda, e, upper, lower, False, True)
    else:
        _standardized_blocks(x, lmbda, e, upper, lower, False, False)


class _Growth(NamedTuple):
    """e^S on a side of 0; for S > 700, with which Psi e^S overflows, e^700.

    Then the logarithm of (e^-rest + m Psi e^700) is raised by the rest.
    """

    rest: float
    growth: float
    #: e^-rest
    one: float
    #: the end of the range, of m Psi e^S
    outside: float


@inlined
def _growth(side: Side, m: float, noise: float) -> _Growth:
    """For a side whose Psi may be off by `noise`."""
    rest = side.shift - _LARGEST_GROWTH if side.shift > _LARGEST_GROWTH else 0.0
    growth, one = exp(side.shift - rest), exp(-rest)
    return _Growth(rest, growth, one, -one - 2.0**-50 - noise * abs(m) * growth)


@inlined
def _selected_growth(negative: bool, upper: _Growth, lower: _Growth) -> _Growth:
    """The one for the sign of x."""
    return _Growth(
        lower.rest if negative else upper.rest,
        lower.growth if negative else upper.growth,
        lower.one if negative else upper.one,
        lower.outside if negative else upper.outside,
    )


@inlined
def _distance(size: float, m: float, side: Side, unit: float, g: _Growth, deep: bool) -> float:
    """ln((1 + |x|)/(1 + |ref|)) for |Psi| = `size`; `deep` (a compile-time constant): a side may have a rest."""
    scaled = size * g.growth
    v = m * scaled
    log_u = log1p_finite(v)
    if deep:
        shifted = log(g.one + v) + g.rest
        log_u = shifted if g.one < 1.0 else log_u
    d = log_u * (side.inverse * unit)
    d = scaled if abs(v) < LINEAR and not deep else d
    end = LOG_END * (side.inverse * unit)
    end = end if end > -side.log_base else -side.log_base
    d = d if v > -g.one else end
    d = d if v < math.inf else v
    return d if v >= g.outside else math.nan


@inlined
def size_at(d: float, center: float, log_base: float) -> float:
    """|x| for d = ln((1 + |x|)/(1 + |ref|)): |ref| + (1 + |ref|)(e^d - 1) near ref, else e^(ln(1 + |ref|) + d) - 1."""
    near = abs(d) < 0.35
    beside_zero = d + log_base
    exponent = d if near else beside_zero
    exponent = 710.0 if exponent > 710.0 else exponent
    exponent = -50.0 if exponent < -50.0 else exponent
    value = 2.0 * exp_less(exponent, rounder_of(-1.0), 0.5)
    close = center + (1.0 + center) * value
    return close if near else value


@inlined
def _unstandardized_blocks(z: FloatArray, fit: FloatArray, mixed: bool, deep: bool) -> None:
    widest_vectors()
    lmbda, ref, a, b, log_factor = fit[LMBDA], fit[REF], fit[SLOPE], fit[INTERCEPT], fit[LOG_FACTOR]
    e, e_lower = exponent_pair(lmbda)
    upper, lower = sides(lmbda, ref, a, b, log_factor, e, e_lower)
    zero = at_zero(lmbda, ref, shift_of(lmbda, ref, log_factor))
    other, a_inverse = 2.0 - lmbda, 1.0 / a
    # a bound on the rounding errors of z, in v
    noise = 2.0**-50 * abs(b * a_inverse)
    upper_growth, lower_growth = _growth(upper, lmbda, noise), _growth(lower, other, noise)
    d = allocated((BLOCK,))
    for start in range(0, z.size, BLOCK):
        block = z[start : start + BLOCK]
        for i in range(block.size):
            psi = (block[i] - b) * a_inverse
            signed = -psi if ref < 0.0 else psi
            # on the far side of 0, Psi is measured from its value there
            beyond = signed < zero
            size = zero - signed if beyond else signed
            negative = beyond if ref >= 0.0 else not beyond
            side = _selected_side(negative, upper, lower, mixed)
            growth = _selected_growth(negative, upper_growth, lower_growth)
            d[i] = _distance(size, other if negative else lmbda, side, e.unit, growth, deep)
            block[i] = -1.0 if negative else 1.0
        for i in range(block.size):
            side = _selected_side(block[i] < 0.0, upper, lower, mixed)
            block[i] = block[i] * size_at(d[i], side.center, side.log_base)
    release(d)


@kernel
def yeojohnson_unstandardized(z: FloatArray, fit: FloatArray) -> None:
    """`z` = the x with a Psi(x) + b = z, Psi as in `yeojohnson_standardized`.

    NaN where z is outside the range of Psi. Many x share the last value inside it, to the rounding of z: the one
    nearest to ref is returned, for a better round trip than inf or -inf.
    """
    if shift_of(fit[LMBDA], fit[REF], fit[LOG_FACTOR]) > _LARGEST_GROWTH:
        _unstandardized_blocks(z, fit, False, True)
    elif fit[REF] == 0.0:
        _unstandardized_blocks(z, fit, True, False)
    else:
        _unstandardized_blocks(z, fit, False, False)


#: The loops over columns, in the order of the directions of `gather`.
COLUMNS = yeojohnson_loop, inv_yeojohnson_loop, yeojohnson_standardized, yeojohnson_unstandardized
