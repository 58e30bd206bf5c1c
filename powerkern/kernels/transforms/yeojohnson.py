"""Yeo-Johnson transform (Yeo & Johnson 2000), its inverse and its derivative, elementwise and as loops.

psi(lambda, x) = b_lambda(ln(1 + x)) for x >= 0 and -b_(2-lambda)(ln(1 - x)) for x < 0; see `kernels.transforms.branch`.

Both signs run through the same operations on |x|, with the exponent selected by the sign, so the loops vectorise
without partitioning the data. For the rest see `kernels.transforms.boxcox`: the scalar kernels may be called in any
jitted loop, the array loops are faster, `out` may be `x` but not otherwise overlap it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import COLUMN, REAL, allocated, entry, fma, inlined, kernel, release, widest_vectors
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp_log import (
    BLOCK,
    all_within,
    exp,
    exp_less,
    exp_minus,
    exp_parts,
    expm1,
    log,
    log1p,
    log1p_finite,
    log1p_ratio,
    log1p_series,
    own_block,
    rounder_of,
    split,
    split_one_plus,
)
from powerkern.kernels.transforms.branch import (
    DEEP,
    F_INTERCEPT,
    F_LMBDA,
    F_LOG_FACTOR,
    F_REF,
    F_SLOPE,
    LARGE,
    LINEAR,
    LOG_END,
    NOISELESS,
    Exponent,
    branch_of_product,
    exponent_pair,
    inverse_branch_parts,
    inverse_reach,
    less_one,
    moderate_backwards,
    moderate_forwards,
    reach,
    times_pair,
    write_bounds,
)

_LOG_LARGE = math.log(LARGE)

# --- one value at a time ----------------------------------------------------------------------------


@inlined
def _log1p(x: float, extended: bool) -> tuple[float, float]:
    """ln(1 + x) for finite x >= 0, head and tail."""
    k, f, f_lo = split_one_plus(x, 0.0, False)
    return log1p_series(k, f, f_lo, extended)


@inlined
def _selected(negative: bool, upper: Exponent, lower: Exponent) -> Exponent:
    """The exponent for the sign of x; the scales are common to both."""
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
def _limit(m: float) -> float:
    """b_m(inf)."""
    return -1.0 / m if m < 0.0 else math.inf


@inlined
def _yeojohnson(
    x: float, a: float, a_lo: float, lmbda: float, upper: Exponent, lower: Exponent, ordinary: bool
) -> float:
    """psi(lambda, x) from a + a_lo = ln(1 + |x|); `ordinary` as in `branch_of_product`, or x is NaN."""
    negative = x < 0.0
    e = _selected(negative, upper, lower)
    t, t_lo = times_pair(a, a_lo, e.m, e.m_lo)
    y = branch_of_product(t, t_lo, e, ordinary)
    size = abs(x)
    if not ordinary:
        limit = _limit(2.0 - lmbda) if negative else _limit(lmbda)
        y = y if size < math.inf else limit
    # where |x| is tiny, psi = x (1 + (lambda - 1) |x|/2) rounds to x; a NaN goes the same way
    tiny = x if ordinary else x * (1.0 + 0.0 * lmbda)
    return math.copysign(y, x) if size * (1.0 + abs(lmbda)) > 2.0**-55 else tiny


@inlined
def yeojohnson(x: float, lmbda: float) -> float:
    """((1 + x)**lmbda - 1)/lmbda for x >= 0, -((1 - x)**(2 - lmbda) - 1)/(2 - lmbda) for x < 0, within 2 ulp.

    ln(1 + x) for lmbda = 0, -ln(1 - x) for lmbda = 2; for |lmbda| <= 1e290. At infinity the limit; NaN where an
    argument is NaN.
    """
    upper, lower = exponent_pair(lmbda)
    a, a_lo = _log1p(abs(x), True)
    return _yeojohnson(x, a, a_lo, lmbda, upper, lower, False)


@inlined
def _inverse_log(
    y: float, lmbda: float, upper: Exponent, lower: Exponent, extended: bool, ordinary: bool
) -> tuple[float, float]:
    """ln(1 + |x|), head and tail, for psi(lambda, x) = y."""
    negative = y < 0.0
    other = 2.0 - lmbda
    m = other if negative else lmbda
    m_lo = lower.m_lo if negative else 0.0
    return inverse_branch_parts(abs(y), m, m_lo, _selected(negative, upper, lower), extended, ordinary)


@inlined
def _expm1_signed(a: float, a_lo: float, sign: float, ordinary: bool) -> float:
    """e**(a + a_lo) - 1 with the sign of `sign`, for a >= 0; `ordinary` (a compile-time constant): a <= 700."""
    if not ordinary:
        bounded = 710.0 if a > 710.0 else a
        a_lo = a_lo if bounded == a else 0.0
        a = bounded
    head, tail = exp_minus(a, a_lo, rounder_of(-1.0), 0.5)
    return math.copysign(2.0 * (head + tail), sign)


@inlined
def inv_yeojohnson(y: float, lmbda: float) -> float:
    """The x with yeojohnson(x, lmbda) = y, within 2 ulp; for |lmbda| <= 1e290.

    NaN outside the transform's range: lmbda*y < -1 for y >= 0, (2 - lmbda)*(-y) < -1 for y < 0; at its end, to
    rounding, inf or -inf. NaN where an argument is NaN.
    """
    upper, lower = exponent_pair(lmbda)
    a, a_lo = _inverse_log(y, lmbda, upper, lower, True, False)
    return _expm1_signed(a, a_lo, y, False)


@inlined
def _yeojohnson_dx(x: float, a: float, a_lo: float, power: float, power_lo: float) -> float:
    """(1 + |x|)**(+-(power + power_lo)) from a + a_lo = ln(1 + |x|)."""
    p = -power if x < 0.0 else power
    p_lo = -power_lo if x < 0.0 else power_lo
    t = p * a
    y = exp_parts(t, fma(p, a, -t) + (p * a_lo + p_lo * a), False)
    limit = 1.0 if p == 0.0 else (0.0 if p < 0.0 else math.inf)
    y = y if abs(x) < math.inf else limit
    return y if x == x else x


@inlined
def yeojohnson_dx(x: float, lmbda: float) -> float:
    """The derivative in x, (1 + |x|)**(lmbda - 1) for x >= 0 and (1 + |x|)**(1 - lmbda) for x < 0, within 2 ulp.

    For |lmbda| <= 1e290. At infinity the limit; NaN where an argument is NaN.
    """
    power, power_lo = less_one(lmbda)
    a, a_lo = _log1p(abs(x), True)
    return _yeojohnson_dx(x, a, a_lo, power, power_lo)


# --- columns ----------------------------------------------------------------------------------------


@inlined
def _yeojohnson_blocks(x: FloatArray, lmbda: float, out: FloatArray, extended: bool, ordinary: bool) -> None:
    widest_vectors()
    upper, lower = exponent_pair(lmbda)
    scratch = allocated((2 * BLOCK,))
    a, a_lo = scratch[:BLOCK], scratch[BLOCK:]
    for start in range(0, x.size, BLOCK):
        block = own_block(x, out, start)
        for i in range(block.size):
            a[i], a_lo[i] = _log1p(abs(block[i]), extended)
        for i in range(block.size):
            block[i] = _yeojohnson(block[i], a[i], a_lo[i], lmbda, upper, lower, ordinary)
    release(scratch)


@inlined
def _steepest(lmbda: float) -> float:
    """The larger of the two exponents."""
    upper, lower = abs(lmbda), abs(2.0 - lmbda)
    return upper if upper > lower else lower


@inlined
def _ordinary_size(lmbda: float, e: Exponent) -> float:
    """The |x| up to which no operation of `_yeojohnson` can overflow; e is either exponent."""
    return reach(e, _steepest(lmbda)) - 1.0


@kernel
def yeojohnson_loop(x: FloatArray, lmbda: float, out: FloatArray) -> None:
    """`out` = yeojohnson(x, lmbda)."""
    size = _ordinary_size(lmbda, exponent_pair(lmbda)[0])
    if not moderate_forwards(_steepest(lmbda)):
        _yeojohnson_blocks(x, lmbda, out, True, False)
    elif all_within(x, -size, size):
        _yeojohnson_blocks(x, lmbda, out, False, True)
    else:
        _yeojohnson_blocks(x, lmbda, out, False, False)


@inlined
def _inv_yeojohnson_blocks(y: FloatArray, lmbda: float, out: FloatArray, extended: bool, ordinary: bool) -> None:
    widest_vectors()
    upper, lower = exponent_pair(lmbda)
    scratch = allocated((2 * BLOCK,))
    a, a_lo = scratch[:BLOCK], scratch[BLOCK:]
    for start in range(0, y.size, BLOCK):
        block = own_block(y, out, start)
        for i in range(block.size):
            a[i], a_lo[i] = _inverse_log(block[i], lmbda, upper, lower, extended, ordinary)
        for i in range(block.size):
            x = _expm1_signed(a[i], a_lo[i], block[i], ordinary)
            block[i] = x if block[i] == block[i] else block[i]
    release(scratch)


@inlined
def _both_moderate(lmbda: float) -> bool:
    """Whether the cheaper logarithm will do for the inverses of both branches."""
    return moderate_backwards(lmbda) & moderate_backwards(2.0 - lmbda)


@inlined
def _ordinary_image(lmbda: float) -> float:
    """The |y| up to which both branches can be inverted without checks."""
    upper, lower = inverse_reach(lmbda, 0.0, _LOG_LARGE)[1], inverse_reach(2.0 - lmbda, 0.0, _LOG_LARGE)[1]
    return upper if upper < lower else lower


@kernel
def inv_yeojohnson_loop(y: FloatArray, lmbda: float, out: FloatArray) -> None:
    """`out` = inv_yeojohnson(y, lmbda)."""
    size = _ordinary_image(lmbda)
    if not _both_moderate(lmbda):
        _inv_yeojohnson_blocks(y, lmbda, out, True, False)
    elif all_within(y, -size, size):
        _inv_yeojohnson_blocks(y, lmbda, out, False, True)
    else:
        _inv_yeojohnson_blocks(y, lmbda, out, False, False)


# --- standardised columns ---------------------------------------------------------------------------
#
# As for Box-Cox, the logarithm is taken relative to a reference where the data are one-signed:
#     psi(lambda, x) - psi(lambda, ref) = +-e^S b_m(d),  d = ln((1 + |x|)/(1 + |ref|)),  S = m ln(1 + |ref|)
# for an x of the sign of ref, m = lambda or 2 - lambda by that sign. In mixed columns ref = 0, and S is given.
# What is standardised is
#     Psi(x) = e^-S (psi(lambda, x) - psi(lambda, ref)),
# where each e^t that would overflow is combined with e^-S.

# e^-S as a factor of its own is kept below e^700
_SMALLEST_SHIFT = -700.0
# the smallest positive number
_SMALLEST = 5e-324
# e^S is kept below e^700
_LARGEST_GROWTH = 700.0


class Side(NamedTuple):
    """What in the standardised value of x depends on the sign of x."""

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
def _shift(lmbda: float, ref: float, log_factor: float) -> float:
    """S."""
    m = 2.0 - lmbda if ref < 0.0 else lmbda
    shift = log_factor if ref == 0.0 else m * log1p(abs(ref))
    return shift if shift > _SMALLEST_SHIFT else _SMALLEST_SHIFT


@inlined
def _at_zero(lmbda: float, ref: float, shift: float) -> float:
    """|Psi(0)| with a minus sign: -e^-S |psi(ref)|."""
    m = 2.0 - lmbda if ref < 0.0 else lmbda
    value = expm1(-shift) / (m if m != 0.0 else 1.0)
    value = -log1p(abs(ref)) if abs(shift) < LINEAR else value
    return 0.0 if ref == 0.0 else value


@inlined
def _sides(
    lmbda: float, ref: float, a: float, b: float, log_factor: float, upper: Exponent, lower: Exponent
) -> tuple[Side, Side]:
    """The sides x >= 0 and x < 0."""
    shift = _shift(lmbda, ref, log_factor)
    zero = _at_zero(lmbda, ref, shift)
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
    x: FloatArray, lmbda: float, e: Exponent, upper: Side, lower: Side, out: FloatArray, mixed: bool, ordinary: bool
) -> None:
    """`ordinary` (a compile-time constant): S = 0, and x is NaN, or x and e**t are not near the limits of float64."""
    widest_vectors()
    upper_inverse = 1.0 / (1.0 + upper.center)
    lower_inverse = 1.0 / (1.0 + lower.center)
    # half the inverse: the product with 1 + |x| cannot overflow
    upper_m_inverse = 0.5 / upper.base_m
    lower_m_inverse = 0.5 / lower.base_m
    upper_limit = _limit(lmbda) * upper.factor if lmbda < 0.0 else math.inf
    lower_limit = _limit(2.0 - lmbda) * lower.factor if lmbda > 2.0 else math.inf
    one_sided = ordinary and not mixed
    below = lower.center > 0.0
    d = allocated((BLOCK,))
    for start in range(0, x.size, BLOCK):
        block = own_block(x, out, start)
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
def _ordinary_range(lmbda: float, ref: float, shift: float, e: Exponent) -> tuple[float, float]:
    """Bounds between which x is on the side of `ref` (if that is not 0) and so near to it that nothing overflows.

    None where 1/(1 + |ref|) might be subnormal.
    """
    size = _ordinary_size(lmbda, e) if shift == 0.0 else -math.inf
    span = reach(e, abs(2.0 - lmbda) if ref < 0.0 else abs(lmbda))
    nearest = _SMALLEST if ref < 0.0 else 0.0
    low, high = (1.0 + abs(ref)) / span - 1.0, (1.0 + abs(ref)) * span - 1.0
    low, high = low if low > nearest else nearest, high if high < LARGE else LARGE
    low = low if abs(ref) <= LARGE else math.inf
    first, last = (low, high) if ref > 0.0 else (-high, -low)
    return -size if ref == 0.0 else first, size if ref == 0.0 else last


@kernel
def yeojohnson_standardized(
    x: FloatArray, lmbda: float, ref: float, a: float, b: float, log_factor: float, out: FloatArray
) -> None:
    """`out` = a Psi(x) + b, Psi(x) = e^-S (psi(lmbda, x) - psi(lmbda, ref)).

    With ref = 0, S = `log_factor`: pass the largest t = m ln(1 + |x|) of the fitted data, or 0 if that is negative, and
    no fitted x overflows. Otherwise S = m_ref ln(1 + |ref|), `log_factor` is not used, and for the x of the sign of ref
    Psi(x) = +-b_m(ln((1 + |x|)/(1 + |ref|))), whose logarithm is log1p((|x| - |ref|)/(1 + |ref|)) where that is
    small: nothing cancels in a tight cluster. Take the largest |x| as ref for m > 0 and the smallest for m < 0.

    Error: eps (2 + |m| + |m d|) of max(|z|, |b|, a |Psi|), d the logarithm; with ref = 0, eps*|S| of it. An S below
    -700 counts as -700: for x of the sign other than that of ref, Psi then stays within the range of float64, at the
    price of its scale.
    """
    e, e_lower = exponent_pair(lmbda)
    upper, lower = _sides(lmbda, ref, a, b, log_factor, e, e_lower)
    low, high = _ordinary_range(lmbda, ref, upper.shift, e)
    ordinary = all_within(x, low, high)
    if ref == 0.0 and ordinary:
        _standardized_blocks(x, lmbda, e, upper, lower, out, True, True)
    elif ref == 0.0:
        _standardized_blocks(x, lmbda, e, upper, lower, out, True, False)
    elif ordinary:
        _standardized_blocks(x, lmbda, e, upper, lower, out, False, True)
    else:
        _standardized_blocks(x, lmbda, e, upper, lower, out, False, False)


class _Growth(NamedTuple):
    """e^S on a side of 0; for S > 700, with which Psi e^S overflows, e^700.

    Then the logarithm of (e^-rest + m Psi e^700) is raised by the rest.
    """

    rest: float
    growth: float
    #: e^-rest
    one: float
    #: the m Psi e^S below which there is no x
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
def _size_at(d: float, center: float, log_base: float) -> float:
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
def _unstandardized_blocks(
    z: FloatArray,
    lmbda: float,
    ref: float,
    a: float,
    b: float,
    log_factor: float,
    out: FloatArray,
    mixed: bool,
    deep: bool,
) -> None:
    widest_vectors()
    e, e_lower = exponent_pair(lmbda)
    upper, lower = _sides(lmbda, ref, a, b, log_factor, e, e_lower)
    zero = _at_zero(lmbda, ref, _shift(lmbda, ref, log_factor))
    other, a_inverse = 2.0 - lmbda, 1.0 / a
    # what the rounding of z may add to v
    noise = 2.0**-50 * abs(b * a_inverse)
    upper_growth, lower_growth = _growth(upper, lmbda, noise), _growth(lower, other, noise)
    d = allocated((BLOCK,))
    for start in range(0, z.size, BLOCK):
        block = own_block(z, out, start)
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
            block[i] = block[i] * _size_at(d[i], side.center, side.log_base)
    release(d)


@kernel
def yeojohnson_unstandardized(
    z: FloatArray, lmbda: float, ref: float, a: float, b: float, log_factor: float, out: FloatArray
) -> None:
    """`out` = the x with a Psi(x) + b = z, Psi as in `yeojohnson_standardized`.

    NaN where z is outside the range of Psi. Many x share the last value inside it, to the rounding of z: the one
    nearest to ref is returned, for a better round trip than inf or -inf.
    """
    if _shift(lmbda, ref, log_factor) > _LARGEST_GROWTH:
        _unstandardized_blocks(z, lmbda, ref, a, b, log_factor, out, False, True)
    elif ref == 0.0:
        _unstandardized_blocks(z, lmbda, ref, a, b, log_factor, out, True, False)
    else:
        _unstandardized_blocks(z, lmbda, ref, a, b, log_factor, out, False, False)


# --- rows of a matrix -------------------------------------------------------------------------------
#
# As in `powerkern.kernels.transforms.boxcox`.

# rows of an array of constants, after those of the bounds; of pairs, the first is for x >= 0
_LMBDA, _LOWER_M_LO = 2, 3
_M, _INVERSE, _INVERSE_LO = range(4, 10, 2)
_REF, _OFFSET, _SLOPE, _SIZE_INVERSE = 2, 3, 8, 9
_SLOPE_INVERSE, _ZERO = 4, 5
_GROWTH, _EXPONENT, _LOG_BASE = 8, 10, 11
CONSTANTS, STANDARDIZED_CONSTANTS, UNSTANDARDIZED_CONSTANTS = 10, 10, 12


@inlined
def _write_pair(k: int, upper: float, lower: float, c: FloatArray, j: int) -> None:
    c[k, j], c[k + 1, j] = upper, lower


@inlined
def yeojohnson_constants(f: FloatArray, c: FloatArray, j: int) -> None:
    """The constants of column j for psi."""
    lmbda = f[F_LMBDA, j]
    e, e_lower = exponent_pair(lmbda)
    size = _ordinary_size(lmbda, e)
    write_bounds(-size, size, moderate_forwards(_steepest(lmbda)), c, j)
    _write_exponents(lmbda, e, e_lower, c, j)


@inlined
def inv_yeojohnson_constants(f: FloatArray, c: FloatArray, j: int) -> None:
    """The constants of column j for the inverse of psi."""
    lmbda = f[F_LMBDA, j]
    e, e_lower = exponent_pair(lmbda)
    size = _ordinary_image(lmbda)
    write_bounds(-size, size, _both_moderate(lmbda), c, j)
    _write_exponents(lmbda, e, e_lower, c, j)


@inlined
def _write_exponents(lmbda: float, e: Exponent, e_lower: Exponent, c: FloatArray, j: int) -> None:
    c[_LMBDA, j], c[_LOWER_M_LO, j] = lmbda, e_lower.m_lo
    _write_pair(_M, e.m, e_lower.m, c, j)
    _write_pair(_INVERSE, e.inverse * e.unit, e_lower.inverse * e.unit, c, j)
    _write_pair(_INVERSE_LO, e.inverse_lo * e.unit, e_lower.inverse_lo * e.unit, c, j)


@inlined
def yeojohnson_standardized_constants(f: FloatArray, c: FloatArray, j: int) -> None:
    """The constants of column j for `yeojohnson_standardized`."""
    lmbda, ref, a, b, log_factor = f[F_LMBDA, j], f[F_REF, j], f[F_SLOPE, j], f[F_INTERCEPT, j], f[F_LOG_FACTOR, j]
    e, e_lower = exponent_pair(lmbda)
    low, high = _ordinary_range(lmbda, ref, _shift(lmbda, ref, log_factor), e)
    write_bounds(low, high, True, c, j)
    # ordinary values are on the side of ref, the only side on which z is measured from ref
    upwards, downwards = ref > 0.0, ref < 0.0
    _write_pair(_M, e_lower.m if downwards else e.m, e.m if upwards else e_lower.m, c, j)
    first, second = e_lower.inverse if downwards else e.inverse, e.inverse if upwards else e_lower.inverse
    _write_pair(_INVERSE, first * e.unit, second * e.unit, c, j)
    c[_REF, j], c[_SLOPE, j], c[_OFFSET, j], c[_SIZE_INVERSE, j] = ref, a, b, 1.0 / (1.0 + abs(ref))


@inlined
def yeojohnson_unstandardized_constants(f: FloatArray, c: FloatArray, j: int) -> None:
    """The constants of column j for `yeojohnson_unstandardized`."""
    lmbda, ref, a, b, log_factor = f[F_LMBDA, j], f[F_REF, j], f[F_SLOPE, j], f[F_INTERCEPT, j], f[F_LOG_FACTOR, j]
    e, e_lower = exponent_pair(lmbda)
    upper, lower = _sides(lmbda, ref, a, b, log_factor, e, e_lower)
    shift = _shift(lmbda, ref, log_factor)
    zero = _at_zero(lmbda, ref, shift)
    growth, lower_growth = exp(upper.shift), exp(lower.shift)
    low, high = _ordinary_image_about(lmbda, ref, zero, growth, lower_growth)
    steepness, other_steepness = abs(lmbda) * growth, abs(2.0 - lmbda) * lower_growth
    steepness = steepness if steepness > other_steepness else other_steepness
    write_bounds(a * low + b, a * high + b, (shift <= DEEP) & (steepness * abs(b) <= NOISELESS * a), c, j)
    c[_EXPONENT, j], c[_REF, j], c[_ZERO, j], c[_OFFSET, j], c[_SLOPE_INVERSE, j] = lmbda, ref, zero, b, 1.0 / a
    _write_pair(_INVERSE, upper.inverse * e.unit, lower.inverse * e.unit, c, j)
    _write_pair(_GROWTH, growth, lower_growth, c, j)
    c[_LOG_BASE, j] = log1p(abs(ref))


@inlined
def _ordinary_image_about(
    lmbda: float, ref: float, zero: float, growth: float, lower_growth: float
) -> tuple[float, float]:
    """Bounds on Psi between which both of its branches can be inverted without checks."""
    log_base = log1p(abs(ref))
    below = ref < 0.0
    near, far = 2.0 - lmbda if below else lmbda, lmbda if below else 2.0 - lmbda
    # measured from ref, towards 0 and then beyond it
    end = inverse_reach(near, -log_base, _LOG_LARGE - log_base)[1]
    beyond = zero - inverse_reach(far, 0.0, _LOG_LARGE)[1] / (growth if below else lower_growth)
    return -end if below else beyond, -beyond if below else end


@inlined
def _exponents_of(c: FloatArray, j: int) -> tuple[Exponent, Exponent]:
    """The exponents for x >= 0 and for x < 0."""
    rounder = rounder_of(0.0)
    upper = Exponent(c[_M, j], 0.0, c[_INVERSE, j], c[_INVERSE_LO, j], 1.0, rounder, -math.inf, math.inf)
    lower = Exponent(
        c[_M + 1, j], c[_LOWER_M_LO, j], c[_INVERSE + 1, j], c[_INVERSE_LO + 1, j], 1.0, rounder, -math.inf, math.inf
    )
    return upper, lower


@inlined
def _of_side(c: FloatArray, k: int, j: int, negative: bool) -> float:
    """One of a pair of constants; both are loaded, as a load that depends on a condition would not be vectorised."""
    upper, lower = float(c[k, j]), float(c[k + 1, j])
    return lower if negative else upper


@inlined
def yeojohnson_block(x: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """`yeojohnson` of a block."""
    widest_vectors()
    a, a_lo, kept = spare[0], spare[1], spare[2]
    for j in range(out.size):
        kept[j] = x[j]
        a[j], a_lo[j] = _log1p(abs(x[j]), False)
    for j in range(out.size):
        upper, lower = _exponents_of(c, j)
        out[j] = _yeojohnson(kept[j], a[j], a_lo[j], c[_LMBDA, j], upper, lower, True)


@inlined
def inv_yeojohnson_block(y: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """`inv_yeojohnson` of a block."""
    widest_vectors()
    a, a_lo, kept = spare[0], spare[1], spare[2]
    for j in range(out.size):
        kept[j] = y[j]
        upper, lower = _exponents_of(c, j)
        a[j], a_lo[j] = _inverse_log(y[j], c[_LMBDA, j], upper, lower, False, True)
    for j in range(out.size):
        out[j] = _expm1_signed(a[j], a_lo[j], kept[j], True)


@inlined
def yeojohnson_standardized_block(x: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """`yeojohnson_standardized` of a block."""
    widest_vectors()
    d, kept = spare[0], spare[1]
    for j in range(out.size):
        kept[j] = x[j]
        inverse = c[_SIZE_INVERSE, j]
        d[j] = log1p_ratio(abs(x[j]), abs(c[_REF, j]), inverse, 1.0, inverse)
    for j in range(out.size):
        negative = kept[j] < 0.0
        t = _of_side(c, _M, j, negative) * d[j]
        value = exp_less(t, rounder_of(0.0), 1.0) * _of_side(c, _INVERSE, j, negative)
        value = d[j] if abs(t) < LINEAR else value
        slope = c[_SLOPE, j]
        out[j] = (-slope if negative else slope) * value + c[_OFFSET, j]


@inlined
def yeojohnson_unstandardized_block(z: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """`yeojohnson_unstandardized` of a block."""
    widest_vectors()
    d, signs = spare[0], spare[1]
    for j in range(out.size):
        lmbda, zero = c[_EXPONENT, j], c[_ZERO, j]
        psi = (z[j] - c[_OFFSET, j]) * c[_SLOPE_INVERSE, j]
        below = c[_REF, j] < 0.0
        signed = -psi if below else psi
        beyond = signed < zero
        size = zero - signed if beyond else signed
        negative = beyond != below
        scaled = size * _of_side(c, _GROWTH, j, negative)
        v = (2.0 - lmbda if negative else lmbda) * scaled
        log_base = log1p_finite(v) * _of_side(c, _INVERSE, j, negative)
        d[j] = scaled if abs(v) < LINEAR else log_base
        signs[j] = -1.0 if negative else 1.0
    for j in range(out.size):
        ref, log_base = c[_REF, j], c[_LOG_BASE, j]
        beside = (signs[j] < 0.0) == (ref < 0.0)
        out[j] = signs[j] * _size_at(d[j], abs(ref) if beside else 0.0, log_base if beside else 0.0)


# --- for Python -------------------------------------------------------------------------------------


@entry((COLUMN, REAL, COLUMN))
def yeojohnson_array(x: FloatArray, lmbda: float, out: FloatArray) -> None:
    """`out` = yeojohnson(x, lmbda)."""
    yeojohnson_loop(x, lmbda, out)


@entry((COLUMN, REAL, COLUMN))
def inv_yeojohnson_array(y: FloatArray, lmbda: float, out: FloatArray) -> None:
    """`out` = inv_yeojohnson(y, lmbda)."""
    inv_yeojohnson_loop(y, lmbda, out)
