"""Yeo-Johnson transform (Yeo & Johnson 2000), its inverse and its derivative, elementwise and as loops.

psi(lambda, x) = b_lambda(ln(1 + x)) for x >= 0 and -b_(2-lambda)(ln(1 - x)) for x < 0; see `kernels.transforms.branch`.

Both signs run through the same operations on |x|, with the exponent selected by the sign, so the loops vectorise
without partitioning the data. For the rest see `kernels.transforms.boxcox`: the scalar kernels may be called in any
jitted loop; the loops over columns are faster.
"""

from __future__ import annotations

import math

from powerkern._jit import allocated, fma, inlined, kernel, release, widest_vectors
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp import exp_minus, exp_parts, rounder_of
from powerkern.kernels.elementary.log import log1p_series, split_one_plus
from powerkern.kernels.transforms.branch import (
    BLOCK,
    LARGE,
    Exponent,
    all_within,
    branch_of_product,
    exponent_pair,
    inverse_branch_parts,
    inverse_reach,
    less_one,
    moderate_backwards,
    moderate_forwards,
    own_block,
    reach,
    times_pair,
)

LOG_LARGE = math.log(LARGE)


# --- one value at a time ----------------------------------------------------------------------------


@inlined
def log1p_parts(x: float, extended: bool) -> tuple[float, float]:
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
def limit_of(m: float) -> float:
    """b_m(inf)."""
    return -1.0 / m if m < 0.0 else math.inf


@inlined
def yeojohnson_of_log(
    x: float, a: float, a_lo: float, lmbda: float, upper: Exponent, lower: Exponent, ordinary: bool
) -> float:
    """psi(lambda, x) from a + a_lo = ln(1 + |x|); `ordinary` as in `branch_of_product`, or x is NaN."""
    negative = x < 0.0
    e = _selected(negative, upper, lower)
    t, t_lo = times_pair(a, a_lo, e.m, e.m_lo)
    y = branch_of_product(t, t_lo, e, ordinary)
    size = abs(x)
    if not ordinary:
        limit = limit_of(2.0 - lmbda) if negative else limit_of(lmbda)
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
    a, a_lo = log1p_parts(abs(x), True)
    return yeojohnson_of_log(x, a, a_lo, lmbda, upper, lower, False)


@inlined
def inverse_log(
    y: float, lmbda: float, upper: Exponent, lower: Exponent, extended: bool, ordinary: bool
) -> tuple[float, float]:
    """ln(1 + |x|), head and tail, for psi(lambda, x) = y."""
    negative = y < 0.0
    other = 2.0 - lmbda
    m = other if negative else lmbda
    m_lo = lower.m_lo if negative else 0.0
    return inverse_branch_parts(abs(y), m, m_lo, _selected(negative, upper, lower), extended, ordinary)


@inlined
def expm1_signed(a: float, a_lo: float, sign: float, ordinary: bool) -> float:
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
    a, a_lo = inverse_log(y, lmbda, upper, lower, True, False)
    return expm1_signed(a, a_lo, y, False)


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
    a, a_lo = log1p_parts(abs(x), True)
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
            a[i], a_lo[i] = log1p_parts(abs(block[i]), extended)
        for i in range(block.size):
            block[i] = yeojohnson_of_log(block[i], a[i], a_lo[i], lmbda, upper, lower, ordinary)
    release(scratch)


@inlined
def steepest(lmbda: float) -> float:
    """The larger of the two exponents."""
    upper, lower = abs(lmbda), abs(2.0 - lmbda)
    return upper if upper > lower else lower


@inlined
def ordinary_size(lmbda: float, e: Exponent) -> float:
    """The |x| up to which no operation of `yeojohnson_of_log` can overflow; e is either exponent."""
    return reach(e, steepest(lmbda)) - 1.0


@kernel
def yeojohnson_loop(x: FloatArray, lmbda: float, out: FloatArray) -> None:
    """`out` = yeojohnson(x, lmbda)."""
    size = ordinary_size(lmbda, exponent_pair(lmbda)[0])
    if not moderate_forwards(steepest(lmbda)):
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
            a[i], a_lo[i] = inverse_log(block[i], lmbda, upper, lower, extended, ordinary)
        for i in range(block.size):
            x = expm1_signed(a[i], a_lo[i], block[i], ordinary)
            block[i] = x if block[i] == block[i] else block[i]
    release(scratch)


@inlined
def both_moderate(lmbda: float) -> bool:
    """Whether the cheaper logarithm will do for the inverses of both branches."""
    return moderate_backwards(lmbda) & moderate_backwards(2.0 - lmbda)


@inlined
def ordinary_image(lmbda: float) -> float:
    """The |y| up to which both branches can be inverted without checks."""
    upper, lower = inverse_reach(lmbda, 0.0, LOG_LARGE)[1], inverse_reach(2.0 - lmbda, 0.0, LOG_LARGE)[1]
    return upper if upper < lower else lower


@kernel
def inv_yeojohnson_loop(y: FloatArray, lmbda: float, out: FloatArray) -> None:
    """`out` = inv_yeojohnson(y, lmbda)."""
    size = ordinary_image(lmbda)
    if not both_moderate(lmbda):
        _inv_yeojohnson_blocks(y, lmbda, out, True, False)
    elif all_within(y, -size, size):
        _inv_yeojohnson_blocks(y, lmbda, out, False, True)
    else:
        _inv_yeojohnson_blocks(y, lmbda, out, False, False)
