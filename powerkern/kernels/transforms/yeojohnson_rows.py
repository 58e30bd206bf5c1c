"""Yeo-Johnson transform of the rows of a matrix: the constants of its columns, and blocks of values.

As in `powerkern.kernels.transforms.boxcox`.
"""

from __future__ import annotations

import math

from powerkern._jit import inlined, widest_vectors
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp import exp, exp_less, rounder_of
from powerkern.kernels.elementary.log import log1p, log1p_finite, log1p_ratio
from powerkern.kernels.transforms.branch import (
    DEEP,
    F_INTERCEPT,
    F_LMBDA,
    F_LOG_FACTOR,
    F_REF,
    F_SLOPE,
    LINEAR,
    NOISELESS,
    Exponent,
    exponent_pair,
    inverse_reach,
    moderate_forwards,
    of_side,
    write_bounds,
)
from powerkern.kernels.transforms.yeojohnson import (
    LOG_LARGE,
    both_moderate,
    expm1_signed,
    inverse_log,
    log1p_parts,
    ordinary_image,
    ordinary_size,
    steepest,
    yeojohnson_of_log,
)
from powerkern.kernels.transforms.yeojohnson_standardized import at_zero, ordinary_range, shift_of, sides, size_at

# rows of an array of constants, after those of the bounds; of pairs, the first is for x >= 0
_LMBDA, _LOWER_M_LO = 2, 3
_M, _INVERSE, _INVERSE_LO = range(4, 10, 2)
_REF, _OFFSET, _SLOPE, _SIZE_INVERSE = 2, 3, 8, 9
_SLOPE_INVERSE, _ZERO = 4, 5
_GROWTH, _EXPONENT, _LOG_BASE = 8, 10, 11


@inlined
def _write_pair(k: int, upper: float, lower: float, c: FloatArray, j: int) -> None:
    c[k, j], c[k + 1, j] = upper, lower


@inlined
def yeojohnson_constants(f: FloatArray, c: FloatArray, j: int) -> None:
    """The constants of column j for psi."""
    lmbda = f[F_LMBDA, j]
    e, e_lower = exponent_pair(lmbda)
    size = ordinary_size(lmbda, e)
    write_bounds(-size, size, moderate_forwards(steepest(lmbda)), c, j)
    _write_exponents(lmbda, e, e_lower, c, j)


@inlined
def inv_yeojohnson_constants(f: FloatArray, c: FloatArray, j: int) -> None:
    """The constants of column j for the inverse of psi."""
    lmbda = f[F_LMBDA, j]
    e, e_lower = exponent_pair(lmbda)
    size = ordinary_image(lmbda)
    write_bounds(-size, size, both_moderate(lmbda), c, j)
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
    low, high = ordinary_range(lmbda, ref, shift_of(lmbda, ref, log_factor), e)
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
    upper, lower = sides(lmbda, ref, a, b, log_factor, e, e_lower)
    shift = shift_of(lmbda, ref, log_factor)
    zero = at_zero(lmbda, ref, shift)
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
    end = inverse_reach(near, -log_base, LOG_LARGE - log_base)[1]
    beyond = zero - inverse_reach(far, 0.0, LOG_LARGE)[1] / (growth if below else lower_growth)
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
def yeojohnson_block(x: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """`yeojohnson` of a block."""
    widest_vectors()
    a, a_lo, kept = spare[0], spare[1], spare[2]
    for j in range(out.size):
        kept[j] = x[j]
        a[j], a_lo[j] = log1p_parts(abs(x[j]), False)
    for j in range(out.size):
        upper, lower = _exponents_of(c, j)
        out[j] = yeojohnson_of_log(kept[j], a[j], a_lo[j], c[_LMBDA, j], upper, lower, True)


@inlined
def inv_yeojohnson_block(y: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """`inv_yeojohnson` of a block."""
    widest_vectors()
    a, a_lo, kept = spare[0], spare[1], spare[2]
    for j in range(out.size):
        kept[j] = y[j]
        upper, lower = _exponents_of(c, j)
        a[j], a_lo[j] = inverse_log(y[j], c[_LMBDA, j], upper, lower, False, True)
    for j in range(out.size):
        out[j] = expm1_signed(a[j], a_lo[j], kept[j], True)


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
        t = of_side(c, _M, j, negative) * d[j]
        value = exp_less(t, rounder_of(0.0), 1.0) * of_side(c, _INVERSE, j, negative)
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
        scaled = size * of_side(c, _GROWTH, j, negative)
        v = (2.0 - lmbda if negative else lmbda) * scaled
        log_base = log1p_finite(v) * of_side(c, _INVERSE, j, negative)
        d[j] = scaled if abs(v) < LINEAR else log_base
        signs[j] = -1.0 if negative else 1.0
    for j in range(out.size):
        ref, log_base = c[_REF, j], c[_LOG_BASE, j]
        beside = (signs[j] < 0.0) == (ref < 0.0)
        out[j] = signs[j] * size_at(d[j], abs(ref) if beside else 0.0, log_base if beside else 0.0)


#: For each direction: the constants of a column, the transform of a block, and the number of constants.
ROWS = (
    (yeojohnson_constants, yeojohnson_block, 10),
    (inv_yeojohnson_constants, inv_yeojohnson_block, 10),
    (yeojohnson_standardized_constants, yeojohnson_standardized_block, 10),
    (yeojohnson_unstandardized_constants, yeojohnson_unstandardized_block, 12),
)
