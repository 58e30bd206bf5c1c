"""The function b_m(a) = (e**(m a) - 1)/m, with b_0(a) = a, of which Box-Cox and Yeo-Johnson consist, and its inverse.

Box-Cox is psi(lambda, x) = b_lambda(ln x). Yeo-Johnson is b_lambda(ln(1 + x)) for x >= 0 and
-b_(2-lambda)(ln(1 - x)) for x < 0. All values of one sign in a column have the same exponent, so everything that
depends only on the exponent is computed once (`Exponent`), and the elementwise functions are branch-free.

Accuracy: a relative error eps in t = m a becomes eps*|t| in the result. Therefore the logarithms and their products
with m are double-double numbers (two float64; Dekker 1971), and the result is within 2 ulp even for t = 700. e**t is
scaled so that the division by m precedes any overflow.

A value is called ordinary if the block functions can transform it without range checks. Each column has its own bounds
of ordinary values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from powerkern._jit import bits_of, float_of, fma, inlined
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import EPS
from powerkern.kernels.elementary.exp import exp, expm1, make_rounder, scaled_expm1_dd
from powerkern.kernels.elementary.log import extended_log, short_log1p, split_one_plus_parts

_LN2 = math.log(2.0)

#: For |m| below this, and |a| < 1500, b_m(a) rounds to a, so this exponent can replace all smaller ones.
_FLAT = 2.0**-100

#: For |t| below this, (e**t - 1)/t and ln(1 + t)/t are 1 to within 2**-65.
LINEAR = 2.0**-64

#: Largest |m b/a| for which the rounding of z = a y + b does not affect the digits of 1 + m y that
#: `invertible_interval` needs.
NOISELESS = 2.0**10

#: The value used for ln(1 + m y) if 1 + m y is lost to rounding. It is the last value in the range of the log that can
#: be distinguished.
LOG_END = -54.0 * _LN2

#: The cheaper logarithm has an error of 2**-57, which the transform multiplies by m and the inverse divides by m. For
#: |m| between these bounds the resulting error is less than half an ulp.
_MODERATE_MAX, _MODERATE_MIN = 4.0, 0.125
#: Near 1 the error of the cheaper logarithm is only 2**-54.5 times its cube. If |m a| <= _NEAR_ONE and |a| <=
#: _MODERATE_LOG, dividing it by any m therefore gives e**a to half an ulp.
_NEAR_ONE, _MODERATE_LOG = 0.34, 12.0

#: Largest log2 of the scale of an exponent; exponents m are at most 1e290 < 2**964.
_LARGEST_SCALE = 965.0

#: Largest |t| for which e**t is in range with a margin of a factor e**28.
_LARGEST_EXPONENT = 680.0

#: 1 + m y has digits left if it is at least e**-DEEP.
DEEP = 27.0

#: Number of values that are transformed together: sixteen cache lines, as many loads as a core can have in flight.
BLOCK = 128

#: Number of scratch blocks that the transform of a block needs.
N_SPARE = 3

#: Largest |x| that can be ordinary; no later operation overflows.
LARGE = 1e300

#: The first two rows of all arrays of constants: the bounds of ordinary values. If low > high, no value is ordinary.
LOW, HIGH = range(2)

#: Indices of the rows of an array of fields: the parameters of fits, from which constants are computed.
F_LMBDA, F_REF, F_SLOPE, F_INTERCEPT, F_LOG_FACTOR, N_FIELDS = range(6)


class Fit(NamedTuple):
    """The parameters of a fit that are needed to transform and standardise a column."""

    lmbda: float
    ref: float  #: the value whose log is subtracted from all logs; 0 for Yeo-Johnson columns of both signs
    slope: float  #: standardised values are slope times the scaled transform, plus the intercept
    intercept: float
    log_factor: float  #: the log of the factor that psi is divided by, if `ref` is 0


#: Writes the constants of one column to c[:, j]: (fit, c, j).
Prepare = Callable[[Fit, FloatArray, int], None]
#: Writes the constants of n columns to c, given an array of fields: (fields, c, n).
PrepareAll = Callable[[FloatArray, FloatArray, int], None]


class Transform(NamedTuple):
    """A transform of one family in one direction: one function for any value, one for blocks of ordinary values."""

    name: str
    #: transforms any value with the parameters of a fit
    image: Callable[[float, Fit], float]
    #: computes the constants of a column from its fit
    prepare: Prepare
    #: transforms ordinary values x, without range checks, and writes the images to out: (x, c, out, spare). c[:, i] has
    #: the constants of the column of value i; spare is scratch of N_SPARE blocks
    block: Callable[[FloatArray, FloatArray, FloatArray, FloatArray], None]
    #: number of constants per column
    n_constants: int


def by_lambda(transform: Callable[[float, float], float]) -> Callable[[float, Fit], float]:
    """Return a function of a value and a fit that applies `transform` with the lambda of the fit."""

    def image(x: float, fit: Fit) -> float:
        return transform(x, fit.lmbda)

    return inlined(image)


@inlined
def read_fields(fields: FloatArray, j: int) -> Fit:
    """Return column j of an array of fields as a `Fit`."""
    return Fit(
        fields[F_LMBDA, j], fields[F_REF, j], fields[F_SLOPE, j], fields[F_INTERCEPT, j], fields[F_LOG_FACTOR, j]
    )


def in_turn(prepare: Prepare) -> PrepareAll:
    """Return a kernel that computes the constants of n columns by calling `prepare` for each of them (`PrepareAll`)."""

    def prepare_all(fields: FloatArray, c: FloatArray, n: int) -> None:
        for j in range(n):
            prepare(read_fields(fields, j), c, j)

    return inlined(prepare_all)


class Exponent(NamedTuple):
    """An exponent m and constants derived from it, made by `exponent` or `exponent_pair`."""

    #: m as a double-double number, since 2 - lambda may be rounded
    m: float
    m_lo: float
    #: 1/(m unit) as a double-double number
    inverse: float
    inverse_lo: float
    #: a power of two below 1/|m|, and the argument with which `scaled_expm1_dd` scales by it
    unit: float
    rounder: float
    #: bounds of m a, beyond which b_m(a) no longer changes (infinity, or -1/m)
    t_min: float
    t_max: float


@inlined
def _scale_exponent(m: float) -> float:
    """Return the smallest j >= 0 with |m| < 2**j, but at most 965."""
    j = float((bits_of(abs(m)) >> 52) - 1022)
    j = 0.0 if j < 0.0 else j
    return _LARGEST_SCALE if j > _LARGEST_SCALE else j


@inlined
def _make_exponent(m: float, m_lo: float, j: float) -> Exponent:
    """Compute the constants of `Exponent` for the exponent m + m_lo and the unit 2**-(1 + j)."""
    flat = abs(m) < _FLAT
    divisor = _FLAT if flat else m
    divisor_lo = 0.0 if flat else m_lo
    reciprocal = 1.0 / divisor
    reciprocal_lo = (fma(-divisor, reciprocal, 1.0) - divisor_lo * reciprocal) * reciprocal
    power = float_of((1024 + int(j)) << 52)
    return Exponent(
        m=divisor,
        m_lo=divisor_lo,
        inverse=reciprocal * power,
        inverse_lo=reciprocal_lo * power,
        unit=float_of((1022 - int(j)) << 52),
        rounder=make_rounder(-1.0 - j),
        t_min=(j - 1020.0) * _LN2,
        t_max=(j + 1024.4) * _LN2,
    )


@inlined
def exponent(m: float) -> Exponent:
    """Return the constants of the exponent m, for |m| <= 1e290.

    For |m| < 2**-100 the constants of the exponent 2**-100 are returned, since b_m(a) is then the same for |a| < 1500.
    """
    return _make_exponent(m, 0.0, _scale_exponent(m))


@inlined
def exponent_pair(lmbda: float) -> tuple[Exponent, Exponent]:
    """Return the constants of the exponents lambda and 2 - lambda, with a common scale; 2 - lambda is not rounded."""
    other = 2.0 - lmbda
    rounded = 2.0 - other
    other_lo = (2.0 - (other + rounded)) + (rounded - lmbda)
    j = _scale_exponent(lmbda)
    j_other = _scale_exponent(other)
    j = j if j > j_other else j_other
    return _make_exponent(lmbda, 0.0, j), _make_exponent(other, other_lo, j)


@inlined
def largest_ratio(e: Exponent, steepest: float) -> float:
    """Return the largest exp(|d|) for which `scaled_expm1` needs no range checks of m d, for all |m| <= `steepest`.

    Here d is a difference of logs. The result is reduced by a few rounding errors, which matter for large m.
    """
    t = -1.0 - e.t_min
    d = (_LARGEST_EXPONENT if t > _LARGEST_EXPONENT else t) / (steepest if steepest > 1.0 else 1.0)
    return exp(d) * (1.0 - 8.0 * EPS)


@inlined
def lambda_minus_one_dd(lmbda: float) -> tuple[float, float]:
    """Return lambda - 1, the exponent of the derivatives in x, as a double-double number."""
    power = lmbda - 1.0
    bulk = power - lmbda
    return power, (lmbda - (power - bulk)) + (-1.0 - bulk)


@inlined
def moderate_forwards(m: float) -> bool:
    """Return whether the cheaper logarithm (`short_log`, `short_log1p`) is accurate enough for b_m."""
    return abs(m) <= _MODERATE_MAX


@inlined
def moderate_log(m: float) -> float:
    """Return the largest |a| at which the cheaper logarithm, `short_log1p`, suffices for the inverse of b_m."""
    near = _NEAR_ONE / abs(m) if m != 0.0 else math.inf
    near = near if near < _MODERATE_LOG else _MODERATE_LOG
    return near if abs(m) < _MODERATE_MIN else math.inf


@inlined
def dd_mul(a: float, a_lo: float, m: float) -> tuple[float, float]:
    """Return (a + a_lo) m as a double-double number."""
    t = m * a
    return t, m * a_lo + fma(m, a, -t)


@inlined
def dd_mul_dd(a: float, a_lo: float, m: float, m_lo: float) -> tuple[float, float]:
    """Return (a + a_lo)(m + m_lo) as a double-double number.

    Parameters
    ----------
    a : float
        Leading part of the first factor.
    a_lo : float
        Trailing part of the first factor.
    m : float
        Leading part of the second factor.
    m_lo : float
        Trailing part of the second factor.
    """
    t = m * a
    return t, m_lo * a + (m * a_lo + fma(m, a, -t))


@inlined
def branch_unchecked(t: float, t_lo: float, e: Exponent) -> float:
    """Return b_m(a) for t + t_lo = m a, like `branch_of_product`, but without range checks.

    exp(|a|) must be at most ``largest_ratio(e, |m|)``.
    """
    head, tail = scaled_expm1_dd(t, t_lo, e.rounder, e.unit)
    return head * e.inverse + (tail * e.inverse + head * e.inverse_lo)


@inlined
def branch_of_product(t: float, t_lo: float, e: Exponent) -> float:
    """Return b_m(a) for t + t_lo = m a, to about 1 ulp if the error of t + t_lo is at most 2**-63 |t|.

    Requires |a| < 1500, and |t| > 1e-270 or t = 0.
    """
    bounded = e.t_max if t > e.t_max else t
    bounded = e.t_min if bounded < e.t_min else bounded
    return branch_unchecked(bounded, t_lo if bounded == t else 0.0, e)


@inlined
def psi_limit(m: float) -> float:
    """Return the limit of b_m(a) as a tends to infinity."""
    return -1.0 / m if m < 0.0 else math.inf


@inlined
def invertible_interval(m: float, low: float, high: float) -> tuple[float, float]:
    """Return the range of b_m(a) for low <= a <= high, narrowed to the a with e**-DEEP <= e**(m a) <= e**680."""
    divisor = m if m != 0.0 else 1.0
    lowest = -(DEEP if m > 0.0 else _LARGEST_EXPONENT) / abs(divisor)
    highest = (_LARGEST_EXPONENT if m > 0.0 else DEEP) / abs(divisor)
    low = lowest if low < lowest and m != 0.0 else low
    high = highest if high > highest and m != 0.0 else high
    first, last = expm1(m * low) / divisor, expm1(m * high) / divisor
    return first if m != 0.0 else low, last if m != 0.0 else high


@inlined
def write_bounds(low: float, high: float, has_ordinary: bool, c: FloatArray, j: int) -> None:
    """Write bounds between which values of column j need no range checks (ordinary values).

    Parameters
    ----------
    low : float
        Smallest ordinary value.
    high : float
        Largest ordinary value.
    has_ordinary : bool
        Whether any value is ordinary. If not, bounds that no value satisfies are written.
    c : (n_constants, WIDTH)
        The constants of a block of columns.
    j : int
        Index of the column in the block.
    """
    has_ordinary &= low <= high
    c[LOW, j] = (low if low > -LARGE else -LARGE) if has_ordinary else math.inf
    c[HIGH, j] = (high if high < LARGE else LARGE) if has_ordinary else -math.inf


@inlined
def write_pair(k: int, upper: float, lower: float, c: FloatArray, j: int) -> None:
    """Write a constant of column j that depends on the sign of x.

    Parameters
    ----------
    k : int
        The row of the constant for x >= 0; the next row is for x < 0.
    upper : float
        The constant for x >= 0.
    lower : float
        The constant for x < 0.
    c : (n_constants, WIDTH)
        The constants of a block of columns.
    j : int
        Index of the column in the block.
    """
    c[k, j], c[k + 1, j] = upper, lower


@inlined
def select_by_sign(c: FloatArray, k: int, j: int, negative: bool) -> float:
    """Return a constant of column j that depends on the sign of x (see `write_pair`).

    The constants for both signs are loaded, since a conditional load would not vectorise.

    Parameters
    ----------
    c : (n_constants, WIDTH)
        The constants of a block of columns.
    k : int
        The row of the constant for x >= 0; the next row is for x < 0.
    j : int
        Index of the column in the block.
    negative : bool
        Whether x < 0.
    """
    upper, lower = float(c[k, j]), float(c[k + 1, j])
    return lower if negative else upper


@inlined
def inverse_branch_unchecked(y: float, m: float, m_lo: float, e: Exponent) -> tuple[float, float]:
    """Return the inverse of b_m as a double-double number, like `inverse_branch`, but without range checks.

    The exponent must be moderate (see `moderate_log`), and y NaN or inside `invertible_interval`.

    Parameters
    ----------
    y : float
        The image.
    m : float
        Leading part of the exponent.
    m_lo : float
        Trailing part of the exponent.
    e : Exponent
        Constants of the exponent.
    """
    product = 0.0 if m == 0.0 else m * y
    k, f, f_lo = split_one_plus_parts(product, fma(m, y, -product) + m_lo * y)
    log_u, log_u_lo = short_log1p(k, f, f_lo)
    a, a_lo = _divide_by_exponent(log_u, log_u_lo, e)
    linear = _is_linear(product, m)
    return y if linear else a, 0.0 if linear else a_lo


@inlined
def inverse_branch(y: float, m: float, m_lo: float, e: Exponent) -> tuple[float, float]:
    """Return the inverse of b_m as a double-double number: (a, a_lo) with b_(m + m_lo)(a + a_lo) = y.

    The result is NaN if m y < -1. If m y = -1, even by rounding, it is the limit: -inf for m > 0, inf for m < 0.

    Parameters
    ----------
    y : float
        The image.
    m : float
        Leading part of the exponent.
    m_lo : float
        Trailing part of the exponent.
    e : Exponent
        Constants of the exponent.
    """
    product = 0.0 if m == 0.0 else m * y
    # m*y may overflow although its logarithm does not; divide by 2**960, and the 1 is then too small to matter
    huge = abs(product) == math.inf
    part = 2.0**-480 if huge else 1.0
    scaled = y * part
    v = (m * part) * scaled
    v_lo = fma(m * part, scaled, -v) + (m_lo * part) * scaled
    inside = 1.0 + v + v_lo > 0.0
    k, f, f_lo = split_one_plus_parts(v if inside else 0.0, v_lo if inside else 0.0)
    log_u, log_u_lo = extended_log(k + 960.0 if huge else k, f, f_lo)
    a, a_lo = _divide_by_exponent(log_u, log_u_lo, e)
    limit = math.inf if m < 0.0 else -math.inf
    a = a if inside else limit
    a = a if abs(y) < math.inf else -limit
    # for such a small exponent, y is far from 0, or m*y is far from -1
    linear = _is_linear(product, m)
    a = y if linear else a
    a = a if product >= -1.0 else math.nan
    return a, 0.0 if linear else a_lo


@inlined
def _divide_by_exponent(log_u: float, log_u_lo: float, e: Exponent) -> tuple[float, float]:
    """Divide a double-double logarithm by the exponent; return the quotient as a double-double number."""
    inverse = e.inverse * e.unit
    a = log_u * inverse
    return a, fma(log_u, inverse, -a) + (log_u * (e.inverse_lo * e.unit) + log_u_lo * inverse)


@inlined
def _is_linear(product: float, m: float) -> bool:
    """Return whether b_m(a) rounds to a, given ``product = m a``."""
    return abs(product) < LINEAR or abs(m) < _FLAT
