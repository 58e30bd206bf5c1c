"""Box-Cox transform (Box & Cox 1964), its inverse and its derivative, elementwise and as loops.

psi(lambda, x) = b_lambda(ln x) = (x**lambda - 1)/lambda, and ln x for lambda = 0 (Box & Cox 1964, eq. (1)); see
`kernels.transforms.branch`.

The scalar kernels may be called in any jitted loop. The loops over columns prepare lambda once, pick a cheaper
logarithm where lambda allows it, and run in two phases over blocks: one long chain of dependent operations would leave
the CPU's schedulers full and its arithmetic units idle (measured: 2.8 against 2.1 ns per value). `out` may be `x`
itself, but must not overlap it otherwise; standardised columns are transformed in place.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import allocated, fma, inlined, kernel, release, widest_vectors
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp import exp_less, exp_parts, exp_scaled, rounder_of
from powerkern.kernels.elementary.log import log, log1p_finite, log_series, log_sum, split, split_normal
from powerkern.kernels.results import INTERCEPT, LMBDA, REF, SLOPE
from powerkern.kernels.transforms.branch import (
    BLOCK,
    F_INTERCEPT,
    F_LMBDA,
    F_REF,
    F_SLOPE,
    LARGE,
    LINEAR,
    LOG_END,
    NOISELESS,
    Exponent,
    all_within,
    branch_of_product,
    exponent,
    inverse_branch_parts,
    inverse_reach,
    less_one,
    moderate_backwards,
    moderate_forwards,
    own_block,
    reach,
    times,
    write_bounds,
)

# between these bounds nothing that follows overflows or is subnormal
_SMALL = 1e-290
_LOG_SMALL, _LOG_LARGE = math.log(_SMALL), math.log(LARGE)

# --- one value at a time ----------------------------------------------------------------------------


@inlined
def _log(x: float, extended: bool, ordinary: bool) -> tuple[float, float]:
    """ln x, head and tail, for positive finite x; `ordinary` (a compile-time constant): not subnormal."""
    k, m = split_normal(x) if ordinary else split(x)
    return log_series(k, m - 1.0, extended)


@inlined
def _with_edges(y: float, x: float, at_zero: float, at_infinity: float) -> float:
    """y where 0 < x < inf, else a limit, or NaN for negative or NaN x."""
    edge = at_zero if x == 0.0 else math.nan
    y = y if x > 0.0 else edge
    return at_infinity if x == math.inf else y


@inlined
def _at_zero(lmbda: float) -> float:
    return -1.0 / lmbda if lmbda > 0.0 else -math.inf


@inlined
def _at_infinity(lmbda: float) -> float:
    return -1.0 / lmbda if lmbda < 0.0 else math.inf


@inlined
def _boxcox(x: float, a: float, a_lo: float, lmbda: float, e: Exponent, ordinary: bool) -> float:
    """psi(lambda, x) from a + a_lo = ln x; `ordinary` as in `branch_of_product`, or x is NaN."""
    t, t_lo = times(a, a_lo, e.m)
    y = branch_of_product(t, t_lo, e, ordinary)
    if ordinary:
        return y if x == x else x
    # adds NaN where lambda is NaN, for which _at_zero and _at_infinity do not check
    return _with_edges(y, x, _at_zero(lmbda), _at_infinity(lmbda)) + 0.0 * lmbda


@inlined
def boxcox(x: float, lmbda: float) -> float:
    """(x**lmbda - 1)/lmbda, or ln x for lmbda = 0, within 2 ulp; for |lmbda| <= 1e290.

    At x = 0: -1/lmbda for lmbda > 0, else -inf. NaN for x < 0 and where an argument is NaN.
    """
    a, a_lo = _log(x, True, False)
    return _boxcox(x, a, a_lo, lmbda, exponent(lmbda), False)


@inlined
def inv_boxcox(y: float, lmbda: float) -> float:
    """(1 + lmbda*y)**(1/lmbda), or e**y for lmbda = 0, within 2 ulp; for |lmbda| <= 1e290.

    NaN outside the transform's range, lmbda*y < -1. At its end, lmbda*y = -1 to rounding, 0 for lmbda > 0 and inf for
    lmbda < 0. NaN where an argument is NaN.
    """
    a, a_lo = inverse_branch_parts(y, lmbda, 0.0, exponent(lmbda), True, False)
    return exp_parts(a, a_lo, False)


@inlined
def _boxcox_dx(x: float, a: float, a_lo: float, power: float, power_lo: float) -> float:
    """x**(power + power_lo) from a + a_lo = ln x."""
    t = power * a
    y = exp_parts(t, fma(power, a, -t) + (power * a_lo + power_lo * a), False)
    at_zero = 1.0 if power == 0.0 else (0.0 if power > 0.0 else math.inf)
    at_infinity = 1.0 if power == 0.0 else (0.0 if power < 0.0 else math.inf)
    return _with_edges(y, x, at_zero, at_infinity) + 0.0 * power


@inlined
def boxcox_dx(x: float, lmbda: float) -> float:
    """The derivative in x, x**(lmbda - 1), within 2 ulp; for |lmbda| <= 1e290.

    At x = 0 and at infinity the limit; NaN for x < 0 and where an argument is NaN.
    """
    a, a_lo = _log(x, True, False)
    power, power_lo = less_one(lmbda)
    return _boxcox_dx(x, a, a_lo, power, power_lo)


# --- columns ----------------------------------------------------------------------------------------


@inlined
def _boxcox_blocks(x: FloatArray, lmbda: float, e: Exponent, out: FloatArray, extended: bool, ordinary: bool) -> None:
    widest_vectors()
    scratch = allocated((2 * BLOCK,))
    a, a_lo = scratch[:BLOCK], scratch[BLOCK:]
    for start in range(0, x.size, BLOCK):
        block = own_block(x, out, start)
        for i in range(block.size):
            a[i], a_lo[i] = _log(block[i], extended, ordinary)
        for i in range(block.size):
            block[i] = _boxcox(block[i], a[i], a_lo[i], lmbda, e, ordinary)
    release(scratch)


@inlined
def _ordinary_range(lmbda: float, e: Exponent) -> tuple[float, float]:
    """Bounds on x between which no operation of `_boxcox` can overflow."""
    span = reach(e, abs(lmbda))
    return 1.0 / span if 1.0 / span > _SMALL else _SMALL, span if span < LARGE else LARGE


@kernel
def boxcox_loop(x: FloatArray, lmbda: float, out: FloatArray) -> None:
    """`out` = boxcox(x, lmbda)."""
    e = exponent(lmbda)
    low, high = _ordinary_range(lmbda, e)
    if not moderate_forwards(lmbda):
        _boxcox_blocks(x, lmbda, e, out, True, False)
    elif all_within(x, low, high):
        _boxcox_blocks(x, lmbda, e, out, False, True)
    else:
        _boxcox_blocks(x, lmbda, e, out, False, False)


@inlined
def _inv_boxcox_blocks(y: FloatArray, lmbda: float, out: FloatArray, extended: bool, ordinary: bool) -> None:
    widest_vectors()
    e = exponent(lmbda)
    scratch = allocated((BLOCK,))
    for start in range(0, y.size, BLOCK):
        block = own_block(y, out, start)
        for i in range(block.size):
            a, scratch[i] = inverse_branch_parts(block[i], lmbda, 0.0, e, extended, ordinary)
            block[i] = a if block[i] == block[i] else block[i]
        for i in range(block.size):
            x = exp_parts(block[i], scratch[i], ordinary)
            block[i] = x if block[i] == block[i] else block[i]
    release(scratch)


@kernel
def inv_boxcox_loop(y: FloatArray, lmbda: float, out: FloatArray) -> None:
    """`out` = inv_boxcox(y, lmbda)."""
    low, high = inverse_reach(lmbda, _LOG_SMALL, _LOG_LARGE)
    if not moderate_backwards(lmbda):
        _inv_boxcox_blocks(y, lmbda, out, True, False)
    elif all_within(y, low, high):
        _inv_boxcox_blocks(y, lmbda, out, False, True)
    else:
        _inv_boxcox_blocks(y, lmbda, out, False, False)


# --- standardised columns ---------------------------------------------------------------------------
#
# x**lambda may overflow, and ln x may cancel in a tight cluster, where the standardised value is an ordinary number.
# So the logarithm is taken relative to a reference in the data: with d = ln(x/ref),
#     psi(lambda, x) - psi(lambda, ref) = ref**lambda b_lambda(d),
# and a mean and a scale of b_lambda(d) standardise as well as a mean and a scale of psi.


class _Reference(NamedTuple):
    """A reference, prepared for `_log_ratio`."""

    value: float
    #: exponent, and half the inverse of the mantissa
    k: float
    m_inverse: float
    #: 1/value is inverse*up, as 1/value itself may overflow
    up: float
    inverse: float


@inlined
def _reference(ref: float) -> _Reference:
    k, m = split(ref)
    up = 2.0**100 if ref < _SMALL else 1.0
    return _Reference(ref, k - 1.0, 0.5 / m, up, 1.0 / (ref * up))


@inlined
def _log_ratio(x: float, ref: _Reference) -> float:
    """ln(x/ref) for positive finite x: from exponent and mantissa of x/ref, or near ref from (x - ref)/ref."""
    # relative to the mantissa of ref: no overflow and, unless x is subnormal, no underflow
    small = x < _SMALL
    k, m = split((x * 2.0**54 if small else x) * ref.m_inverse)
    k = (k - 54.0 if small else k) - ref.k
    w = (x - ref.value) * ref.up * ref.inverse
    return log_sum(k, w if k == 0.0 else m - 1.0)


@inlined
def _ordinary_log_ratio(x: float, ref: float, inverse: float) -> float:
    """The same, to the same bits, where neither `inverse` = 1/ref nor x/ref can overflow or be subnormal."""
    k, m = split_normal(x * inverse)
    return log_sum(k, (x - ref) * inverse if k == 0.0 else m - 1.0)


@inlined
def _standardized_blocks(
    x: FloatArray, lmbda: float, ref: _Reference, a: float, b: float, e: Exponent, ordinary: bool
) -> None:
    """`ordinary` (a compile-time constant): x is NaN, or neither x nor e**t is near the limits of float64."""
    widest_vectors()
    at_zero = a * _at_zero(lmbda) + b
    at_infinity = a * _at_infinity(lmbda) + b
    d = allocated((BLOCK,))
    for start in range(0, x.size, BLOCK):
        block = x[start : start + BLOCK]
        for i in range(block.size):
            d[i] = _ordinary_log_ratio(block[i], ref.value, ref.inverse) if ordinary else _log_ratio(block[i], ref)
        for i in range(block.size):
            t = e.m * d[i]
            if ordinary:
                z = a * (exp_less(t, e.rounder, e.unit) * e.inverse) + b
                block[i] = z if block[i] == block[i] else block[i]
            else:
                t = e.t_max if t > e.t_max else t
                t = e.t_min if t < e.t_min else t
                z = a * (exp_less(t, e.rounder, e.unit) * e.inverse) + b
                block[i] = _with_edges(z, block[i], at_zero, at_infinity)
    release(d)


@inlined
def _ordinary_range_about(ref: float, lmbda: float, e: Exponent) -> tuple[float, float]:
    """Bounds on x between which no operation of `boxcox_standardized` can overflow; none if 1/ref can."""
    span = reach(e, abs(lmbda))
    low, high = ref / span, ref * span
    low = low if low > _SMALL else _SMALL
    return low if _SMALL <= ref <= LARGE else math.inf, high if high < LARGE else LARGE


@kernel
def boxcox_standardized(x: FloatArray, fit: FloatArray) -> None:
    """`x` = a b_lambda(ln(x/ref)) + b, with the positive finite `ref`, slope a and intercept b of a fit.

    The logarithm is log1p((x - ref)/ref) where x/ref is near 1 (x - ref is exact there). Finite wherever
    lambda ln(x/ref) < 709: with the largest x as `ref` for lambda > 0, the smallest for lambda < 0, all fitted data
    are. Error: a few eps of max(|z|, |b|, a |b_lambda(d)|). Values outside x > 0 as in `boxcox`.
    """
    lmbda, a, b = fit[LMBDA], fit[SLOPE], fit[INTERCEPT]
    e, reference = exponent(lmbda), _reference(fit[REF])
    low, high = _ordinary_range_about(fit[REF], lmbda, e)
    if all_within(x, low, high):
        _standardized_blocks(x, lmbda, reference, a, b, e, True)
    else:
        _standardized_blocks(x, lmbda, reference, a, b, e, False)


@kernel
def boxcox_unstandardized(z: FloatArray, fit: FloatArray) -> None:
    """`z` = the x with a b_lambda(ln(x/ref)) + b = z: ref*(1 + lambda y)**(1/lambda), y = (z - b)/a.

    NaN outside the range, lambda y < -1. Many x share the last value inside it, lambda y = -1 to the rounding of z: the
    one nearest to ref is returned, for a better round trip than 0 (lambda > 0) or inf (lambda < 0).
    """
    widest_vectors()
    lmbda, b = fit[LMBDA], fit[INTERCEPT]
    e = exponent(lmbda)
    inverse = e.inverse * e.unit
    a_inverse = 1.0 / fit[SLOPE]
    ref_k, ref_m = split(fit[REF])
    end = LOG_END * inverse
    outside = -1.0 - 2.0**-50 * (1.0 + abs(lmbda * b * a_inverse))
    at_infinity = math.inf if lmbda >= 0.0 else -math.inf
    d = allocated((BLOCK,))
    for start in range(0, z.size, BLOCK):
        block = z[start : start + BLOCK]
        for i in range(block.size):
            y = (block[i] - b) * a_inverse
            v = 0.0 if lmbda == 0.0 else lmbda * y
            log_v = log1p_finite(v) * inverse
            log_v = y if abs(v) < LINEAR else log_v
            log_v = log_v if v > -1.0 else end
            log_v = log_v if v < math.inf else at_infinity
            d[i] = log_v if v >= outside else math.nan
        for i in range(block.size):
            block[i] = exp_scaled(d[i], ref_k, ref_m)
    release(d)


# --- rows of a matrix -------------------------------------------------------------------------------
#
# A row of a C-contiguous matrix is transformed where it lies, at most ROW_BLOCK values at a time: with the constants of
# their columns in arrays, the operations are the same as for a column, to the same bits. This holds for ordinary values
# and moderate exponents; others are left to the loops above. `out` may be `x`; `spare` holds three blocks.

# rows of an array of constants, after those of the bounds
_LMBDA, _M, _INVERSE, _INVERSE_LO = range(2, 6)
_SLOPE, _OFFSET, _REF, _REF_INVERSE = 2, *range(5, 8)
_SLOPE_INVERSE, _REF_K, _REF_M = 3, 6, 7


# The constants are computed without branches, as vectors, from fields[:, j] of the fits.


@inlined
def _write_exponent(lmbda: float, e: Exponent, c: FloatArray, j: int) -> None:
    c[_LMBDA, j], c[_M, j], c[_INVERSE, j], c[_INVERSE_LO, j] = lmbda, e.m, e.inverse * e.unit, e.inverse_lo * e.unit


@inlined
def boxcox_constants(f: FloatArray, c: FloatArray, j: int) -> None:
    """The constants of column j for psi."""
    lmbda = f[F_LMBDA, j]
    e = exponent(lmbda)
    low, high = _ordinary_range(lmbda, e)
    write_bounds(low, high, moderate_forwards(lmbda), c, j)
    _write_exponent(lmbda, e, c, j)


@inlined
def inv_boxcox_constants(f: FloatArray, c: FloatArray, j: int) -> None:
    """The constants of column j for the inverse of psi."""
    lmbda = f[F_LMBDA, j]
    low, high = inverse_reach(lmbda, _LOG_SMALL, _LOG_LARGE)
    write_bounds(low, high, moderate_backwards(lmbda), c, j)
    _write_exponent(lmbda, exponent(lmbda), c, j)


@inlined
def boxcox_standardized_constants(f: FloatArray, c: FloatArray, j: int) -> None:
    """The constants of column j for `boxcox_standardized`."""
    lmbda, ref = f[F_LMBDA, j], f[F_REF, j]
    e = exponent(lmbda)
    low, high = _ordinary_range_about(ref, lmbda, e)
    write_bounds(low, high, True, c, j)
    c[_M, j], c[_INVERSE, j], c[_SLOPE, j], c[_OFFSET, j] = e.m, e.inverse * e.unit, f[F_SLOPE, j], f[F_INTERCEPT, j]
    c[_REF, j], c[_REF_INVERSE, j] = ref, 1.0 / ref


@inlined
def boxcox_unstandardized_constants(f: FloatArray, c: FloatArray, j: int) -> None:
    """The constants of column j for `boxcox_unstandardized`."""
    lmbda, ref, a, b = f[F_LMBDA, j], f[F_REF, j], f[F_SLOPE, j], f[F_INTERCEPT, j]
    e, log_ref = exponent(lmbda), log(ref)
    low, high = inverse_reach(lmbda, _LOG_SMALL - log_ref, _LOG_LARGE - log_ref)
    write_bounds(a * low + b, a * high + b, abs(lmbda * b) <= NOISELESS * a, c, j)
    c[_LMBDA, j], c[_INVERSE, j], c[_SLOPE_INVERSE, j], c[_OFFSET, j] = lmbda, e.inverse * e.unit, 1.0 / a, b
    c[_REF_K, j], c[_REF_M, j] = split(ref)


@inlined
def _exponent_of(c: FloatArray, j: int) -> Exponent:
    return Exponent(c[_M, j], 0.0, c[_INVERSE, j], c[_INVERSE_LO, j], 1.0, rounder_of(0.0), -math.inf, math.inf)


@inlined
def boxcox_block(x: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """`boxcox` of a block."""
    widest_vectors()
    a, a_lo = spare[0], spare[1]
    for j in range(out.size):
        log_x, a_lo[j] = _log(x[j], False, True)
        a[j] = log_x + 0.0 * x[j]  # NaN for NaN
    for j in range(out.size):
        t, t_lo = times(a[j], a_lo[j], c[_M, j])
        out[j] = branch_of_product(t, t_lo, _exponent_of(c, j), True)


@inlined
def inv_boxcox_block(y: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """`inv_boxcox` of a block."""
    widest_vectors()
    a, a_lo = spare[0], spare[1]
    for j in range(out.size):
        a[j], a_lo[j] = inverse_branch_parts(y[j], c[_LMBDA, j], 0.0, _exponent_of(c, j), False, True)
    for j in range(out.size):
        out[j] = exp_parts(a[j], a_lo[j], True)


@inlined
def boxcox_standardized_block(x: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """`boxcox_standardized` of a block."""
    widest_vectors()
    d = spare[0]
    for j in range(out.size):
        d[j] = _ordinary_log_ratio(x[j], c[_REF, j], c[_REF_INVERSE, j]) + 0.0 * x[j]
    for j in range(out.size):
        value = exp_less(c[_M, j] * d[j], rounder_of(0.0), 1.0) * c[_INVERSE, j]
        out[j] = c[_SLOPE, j] * value + c[_OFFSET, j]


@inlined
def boxcox_unstandardized_block(z: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """`boxcox_unstandardized` of a block."""
    widest_vectors()
    d = spare[0]
    for j in range(out.size):
        y = (z[j] - c[_OFFSET, j]) * c[_SLOPE_INVERSE, j]
        v = c[_LMBDA, j] * y
        log_v = log1p_finite(v) * c[_INVERSE, j]
        d[j] = y if abs(v) < LINEAR else log_v
    for j in range(out.size):
        out[j] = exp_scaled(d[j], c[_REF_K, j], c[_REF_M, j])


#: The loops over columns, in the order of the directions of `gather`.
COLUMNS = boxcox_loop, inv_boxcox_loop, boxcox_standardized, boxcox_unstandardized
#: For each direction: the constants of a column, the transform of a block, and the number of constants.
ROWS = (
    (boxcox_constants, boxcox_block, 6),
    (inv_boxcox_constants, inv_boxcox_block, 6),
    (boxcox_standardized_constants, boxcox_standardized_block, 8),
    (boxcox_unstandardized_constants, boxcox_unstandardized_block, 8),
)
