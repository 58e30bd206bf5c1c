"""Maximum likelihood of a response given covariates: the power that makes its residuals normal.

Per observation, with P the projection off the design and J the log-Jacobian term (docs/numerics: Given covariates)::

    g(lambda) = 1/2 ln(|P psi|^2 / n) - (lambda - 1) mean(J)

The design is an orthonormal basis, one row per basis vector. A column is its logs relative to a reference in it, in the
order of the rows, divided by a power of two that makes them of order one (`powerkern.kernels.likelihood`). The
log of the reference is 0, and so are psi and its derivatives there: a missing value is given that log, and drops out
of all sums. What it takes out of the basis is made good by the Cholesky factor of the Gram matrix of the rows left.

g is not convex, and where the fit is close it is nearly a logarithm: |P psi|^2 times e^(-2 lambda J), which has the
same minima, is nearly a parabola. Its derivative is what is scanned for sign changes, and brought to 0 by Halley's
steps.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powerkern._jit import (
    COLUMN,
    INTEGER,
    REAL,
    ROWS,
    borrowed,
    entry,
    float_of,
    kernel,
    named_tuple,
    reduction,
    widest_vectors,
)
from powerkern._status import Route, Status
from powerkern._typing import FloatArray
from powerkern.kernels.elementary import exp, expm1_excess, log, log1p, log_normal
from powerkern.kernels.family import is_mirrored, log_offset
from powerkern.kernels.floats import EPS, SMALLEST_NORMAL
from powerkern.kernels.likelihood import BLOCK, b, has_root_near
from powerkern.kernels.logs import INF_BITS, Bounds, Scan, centered_log, offset_log, scan, squeeze, unit_of
from powerkern.kernels.minimize import CONVERGED, RUNNING, NewtonState, newton_step
from powerkern.kernels.results import (
    BAD_INFINITE,
    BAD_NOT_POSITIVE,
    LMBDA,
    LMBDA0,
    Optimum,
    is_identity,
    write_fit,
    write_identity,
    write_range,
)
from powerkern.kernels.two_pass import typical, typical_by_weight

#: STATUS of a column whose missing values may leave a design of lower rank: it wants a basis of its own.
BAD_RANK = -3

_OK, _FIXED, _CONSTANT, _EMPTY = int(Status.OK), int(Status.FIXED), int(Status.CONSTANT), int(Status.EMPTY)
_NOT_CERTIFIED, _MULTIMODAL = int(Status.NOT_CERTIFIED), int(Status.MULTIMODAL)
_UNREPRESENTABLE = int(Status.UNREPRESENTABLE)
_SCANNED, _AT_END, _EXACT = int(Status.SCANNED), int(Status.AT_END), int(Status.EXACT)
_TWO_PASS = int(Route.TWO_PASS)

# products of the residuals of psi, psi', psi'', psi'''
R00, R01, R11, R02, R03, R12 = range(6)
N_PRODUCTS = 6

#: Below this part of the sum of squares, residual products are formed from residuals, not by subtraction.
_BY_SUBTRACTION = 1e-4
#: Below this part it is rounding.
_ROUNDING = (256.0 * EPS) ** 2
#: The least pivot of the Gram matrix of the rows that missing values leave.
_LEAST_PIVOT = 1e-3
#: Up to this |t|, derivatives come from their power series.
_SERIES_REACH = 0.5
#: Up to this |t|, squares of e^t are ordinary numbers; exponents are kept so far from 0.
_REACH, _FLOOR = 300.0, 1e-5
_PHI3 = tuple(1.0 / (math.factorial(k) * (k + 4)) for k in range(13))

#: The scan: this many steps, each of this fraction of 1/sd of the logs, to either side; beyond, steps grow by this
#: factor, and end after so many.
_STEPS, _STEP, _GROWTH, _MORE = 8, 0.5, 1.5, 40
N_GRID = 2 * (_STEPS + _MORE) + 1
#: After a step below this, times the square root of the unexplained part, Taylor's series is within rounding.
_SHORT = 2e-4
_MAX_EVAL = 60
#: Logs that span this need no better absolute error than 1e-16, if they are no larger than the other.
_WIDE, _ORDINARY = 0.5, 600.0
#: Powers that span less than e to this, and their squares, neither overflow nor underflow.
_MODERATE = 300.0


class Design(NamedTuple):
    """The basis of a design, (q, n), root weights (or none), and both for evenly spaced rows.

    `constant` is 1 if the constant is a linear combination of the covariates, else 0.
    """

    basis: FloatArray
    root: FloatArray
    sample_basis: FloatArray
    sample_root: FloatArray
    constant: float


class RegressionWork(NamedTuple):
    """Scratch for one column: its logs and which are not missing, for all rows and for a sample of them."""

    logs: FloatArray
    kept: FloatArray
    packed: FloatArray
    weight: FloatArray
    sample_logs: FloatArray
    sample_kept: FloatArray
    y: FloatArray
    dots: FloatArray
    coef: FloatArray
    gram: FloatArray
    sample_gram: FloatArray
    products: FloatArray
    grid: FloatArray


DESIGN = named_tuple(Design, ROWS, COLUMN, ROWS, COLUMN, REAL)
WORK = named_tuple(RegressionWork, *(COLUMN,) * 6, *(ROWS,) * 5, COLUMN, ROWS)


def new_regression_work(design: Design) -> RegressionWork:
    """The arrays of `RegressionWork` for columns as long as the design."""
    q, n = design.basis.shape
    m = design.sample_basis.shape[1]
    logs, kept, packed, weight = (np.empty(n) for _ in range(4))
    sample_logs, sample_kept = np.empty(m), np.empty(m)
    y, dots, coef = np.empty((4, BLOCK)), np.empty((4, q)), np.empty((4, q))
    gram, sample_gram, products, grid = np.empty((q, q)), np.empty((q, q)), np.empty(N_PRODUCTS), np.empty((3, N_GRID))
    return RegressionWork(
        logs, kept, packed, weight, sample_logs, sample_kept, y, dots, coef, gram, sample_gram, products, grid
    )  # fmt: skip


class _Rows(NamedTuple):
    """A column as the likelihood sees it; `kept` and `gram` are empty where nothing is missing, `root` without weights.

    With both signs, logs are signed and select the branch. `low` and `high` bound the logs, `sigma` is their unit.
    """

    logs: FloatArray
    root: FloatArray
    kept: FloatArray
    basis: FloatArray
    gram: FloatArray
    low: float
    high: float
    jacobian: float
    weight: float
    sigma: float
    both_signs: bool


class _Column(NamedTuple):
    """A column's rows, a sample of them, and what its logs are relative to; `sign` is 0 for both signs."""

    rows: _Rows
    sample: _Rows
    spread: float
    sign: float
    offset: float
    reference: float
    smallest: float
    largest: float
    constant: bool


class _At(NamedTuple):
    """g, the derivatives of ``e^(-2 mu J) |P psi|^2``, halved, over its value, and g''; the log of psi's factor.

    `unexplained` is the part of the sum of squares that is in the residuals.
    """

    g: float
    d1: float
    d2: float
    d3: float
    curvature: float
    log_factor: float
    unexplained: float


# --- one evaluation ---------------------------------------------------------------------------------


@kernel
def _branch_exponent(rows: _Rows, mu: float) -> float:
    """The exponent of negative logs: that of positive ones but for both signs."""
    return mu - 2.0 * rows.sigma if rows.both_signs else mu


@kernel
def _are_ordinary(rows: _Rows, mu: float) -> bool:
    """Whether psi and its square are ordinary numbers for all rows."""
    return max(abs(mu), abs(_branch_exponent(rows, mu))) * max(rows.high, -rows.low) <= _REACH


@kernel
def _log_factor(rows: _Rows, mu: float) -> float:
    """The log of what psi is divided by: 0 where no power is extreme, else the largest exponent of e."""
    lower = _branch_exponent(rows, mu)
    if _are_ordinary(rows, mu):
        return 0.0
    top = max(mu * rows.high, lower * rows.low)
    return max(0.0, top) if rows.both_signs else top


@kernel
def _ordinary_derivatives(d: FloatArray, mu: float, lower: float, y: FloatArray) -> None:
    """Y_0 = e^t - 1, Y_j = t^j e^t - j Y_(j-1), t = m d; y^(j) = Y_j/m^(j+1). For |t| up to `_REACH`.

    Y_2 and Y_3 lose one and two powers of a small t: m is kept off 0.
    """
    widest_vectors()
    y0, y1, y2, y3 = y[0], y[1], y[2], y[3]
    inverse, lower_inverse = 1.0 / mu, 1.0 / lower
    for i in range(d.size):
        below = d[i] < 0.0
        t = (lower if below else mu) * d[i]
        r = lower_inverse if below else inverse
        excess = expm1_excess(t)
        f0 = t + excess
        f1 = t * f0 - excess
        square = t * t + t * t * f0
        f2 = square - 2.0 * f1
        r2 = r * r
        y0[i] = f0 * r
        y1[i] = f1 * r2
        y2[i] = f2 * (r2 * r)
        y3[i] = (t * square - 3.0 * f2) * (r2 * r2)


@kernel
def _derivatives(d: FloatArray, mu: float, lower: float, log_factor: float, y: FloatArray) -> None:
    """y^(j) = d^(j+1) phi_j(t), phi_j = sum_k t^k/(k! (k+j+1)), t = m d, all times e^-log_factor.

    For small t phi_3 is summed and j phi_(j-1) = e^t - t phi_j gives the others; else Y_0 = e^t - 1,
    Y_j = t^j e^t - j Y_(j-1) and y^(j) = Y_j/m^(j+1).
    """
    widest_vectors()
    y0, y1, y2, y3 = y[0], y[1], y[2], y[3]
    one = exp(-log_factor)
    inverse = 1.0 / mu if mu != 0.0 else 0.0
    lower_inverse = 1.0 / lower if lower != 0.0 else 0.0
    for i in range(d.size):
        u = d[i]
        below = u < 0.0
        t = (lower if below else mu) * u
        r = lower_inverse if below else inverse
        e = exp(t - log_factor)
        small = abs(t) < _SERIES_REACH
        s = t if small else 0.0
        p = _PHI3[12]
        p = p * s + _PHI3[11]
        p = p * s + _PHI3[10]
        p = p * s + _PHI3[9]
        p = p * s + _PHI3[8]
        p = p * s + _PHI3[7]
        p = p * s + _PHI3[6]
        p = p * s + _PHI3[5]
        p = p * s + _PHI3[4]
        p = p * s + _PHI3[3]
        p = p * s + _PHI3[2]
        p = p * s + _PHI3[1]
        p = (p * s + _PHI3[0]) * one
        p2 = (e - s * p) * (1.0 / 3.0)
        p1 = (e - s * p2) * 0.5
        f0 = e - one
        f1 = t * e - f0
        f2 = t * t * e - 2.0 * f1
        f3 = t * t * t * e - 3.0 * f2
        y0[i] = (e - s * p1) * u if small else f0 * r
        y1[i] = p1 * (u * u) if small else f1 * (r * r)
        y2[i] = p2 * (u * u * u) if small else f2 * (r * r * r)
        y3[i] = p * (u * u * (u * u)) if small else f3 * (r * r * (r * r))


@reduction
def _scale_rows(y: FloatArray, factor: FloatArray) -> None:
    """Multiply the four rows of y."""
    widest_vectors()
    y0, y1, y2, y3 = y[0], y[1], y[2], y[3]
    for i in range(factor.size):
        y0[i] *= factor[i]
        y1[i] *= factor[i]
        y2[i] *= factor[i]
        y3[i] *= factor[i]


@reduction
def _add_products(y: FloatArray, n: int, out: FloatArray) -> None:
    """Sums of products of the rows of y, over the first `n` entries."""
    widest_vectors()
    y0, y1, y2, y3 = y[0, :n], y[1, :n], y[2, :n], y[3, :n]
    s00 = s01 = s11 = s02 = s03 = s12 = 0.0
    for i in range(n):
        s00 += y0[i] * y0[i]
        s01 += y0[i] * y1[i]
        s11 += y1[i] * y1[i]
        s02 += y0[i] * y2[i]
        s03 += y0[i] * y3[i]
        s12 += y1[i] * y2[i]
    out[R00] += s00
    out[R01] += s01
    out[R11] += s11
    out[R02] += s02
    out[R03] += s03
    out[R12] += s12


@reduction
def _add_dots(y: FloatArray, first: FloatArray, second: FloatArray, k: int, out: FloatArray) -> None:
    """Products of the rows of y with two basis vectors, numbers k and k + 1."""
    widest_vectors()
    y0, y1, y2, y3 = y[0], y[1], y[2], y[3]
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
    for i in range(first.size):
        a0 += y0[i] * first[i]
        a1 += y1[i] * first[i]
        a2 += y2[i] * first[i]
        a3 += y3[i] * first[i]
        b0 += y0[i] * second[i]
        b1 += y1[i] * second[i]
        b2 += y2[i] * second[i]
        b3 += y3[i] * second[i]
    out[0, k] += a0
    out[1, k] += a1
    out[2, k] += a2
    out[3, k] += a3
    if k + 1 < out.shape[1]:
        out[0, k + 1] += b0
        out[1, k + 1] += b1
        out[2, k + 1] += b2
        out[3, k + 1] += b3


@kernel
def _block(rows: _Rows, start: int, mu: float, log_factor: float, y: FloatArray) -> int:
    """psi and its derivatives of one block of rows, with root weights; returns how many rows."""
    d, lower = rows.logs[start : start + BLOCK], _branch_exponent(rows, mu)
    if _are_ordinary(rows, mu):
        _ordinary_derivatives(d, mu, lower, y)
    else:
        _derivatives(d, mu, lower, log_factor, y)
    if rows.root.size > 0:
        _scale_rows(y, rows.root[start : start + BLOCK])
    return d.size


@kernel
def _residual_products(rows: _Rows, mu: float, log_factor: float, work: RegressionWork) -> float:
    """Products of the residuals to `work.products`, coefficients on the basis to `work.coef`; returns psi'psi."""
    products, dots, coef = work.products, work.dots, work.coef
    q = rows.basis.shape[0]
    products[:] = 0.0
    dots[:] = 0.0
    for start in range(0, rows.logs.size, BLOCK):
        n = _block(rows, start, mu, log_factor, work.y)
        _add_products(work.y, n, products)
        for k in range(0, q, 2):
            one, other = rows.basis[k], rows.basis[min(k + 1, q - 1)]
            _add_dots(work.y, one[start : start + n], other[start : start + n], k, dots)
    for j in range(4):
        for k in range(q):
            coef[j, k] = dots[j, k]
        if rows.gram.size > 0:
            _solve(rows.gram, coef[j])
    total = products[R00]
    for k in range(q):
        products[R00] -= dots[0, k] * coef[0, k]
        products[R01] -= dots[1, k] * coef[0, k]
        products[R11] -= dots[1, k] * coef[1, k]
        products[R02] -= dots[2, k] * coef[0, k]
        products[R03] -= dots[3, k] * coef[0, k]
        products[R12] -= dots[2, k] * coef[1, k]
    if not products[R00] > _BY_SUBTRACTION * total:
        products[:] = 0.0
        for start in range(0, rows.logs.size, BLOCK):
            n = _block(rows, start, mu, log_factor, work.y)
            _subtract_fitted(rows, start, n, work)
            _add_products(work.y, n, products)
    return float(total)


@kernel
def _subtract_fitted(rows: _Rows, start: int, n: int, work: RegressionWork) -> None:
    """Residuals of one block of rows."""
    for j in range(4):
        y = work.y[j, :n]
        for k in range(rows.basis.shape[0]):
            _subtract(y, work.coef[j, k], rows.basis[k, start : start + n])
    if rows.kept.size > 0:
        _scale_rows(work.y, rows.kept[start : start + n])


@kernel
def _subtract(y: FloatArray, factor: float, x: FloatArray) -> None:
    widest_vectors()
    for i in range(y.size):
        y[i] -= factor * x[i]


@kernel
def _evaluate(rows: _Rows, mu: float, work: RegressionWork) -> _At:
    """g and its derivatives at `mu`; next to a vanishing exponent by Taylor's series from a point beside it."""
    beside = _off_the_floor(rows, mu)
    log_factor = _log_factor(rows, beside)
    total = _residual_products(rows, beside, log_factor, work)
    if beside != mu:
        _move(mu - beside, work.products, work.coef)
    return _at(rows, mu, log_factor, total, work.products)


@kernel
def _off_the_floor(rows: _Rows, mu: float) -> float:
    """The nearest point at which no exponent is too small for `_ordinary_derivatives`."""
    lower = _branch_exponent(rows, mu)
    if abs(mu) < _FLOOR:
        return math.copysign(_FLOOR, mu)
    if abs(lower) < _FLOOR:
        return mu - lower + math.copysign(_FLOOR, lower)
    return mu


@kernel
def _at(rows: _Rows, mu: float, log_factor: float, total: float, t: FloatArray) -> _At:
    """g and its derivatives from the products of residuals."""
    unexplained = t[R00] / total if total > 0.0 else 0.0
    if not unexplained > _ROUNDING:
        if unexplained == unexplained:
            return _At(-math.inf, 0.0, 1.0, 0.0, math.inf, log_factor, 0.0)
        return _At(math.nan, math.nan, math.nan, math.nan, math.nan, log_factor, unexplained)
    jacobian, sigma = rows.jacobian, rows.sigma
    slope = t[R01] / t[R00]
    bend = (t[R11] + t[R02]) / t[R00]
    third = (3.0 * t[R12] + t[R03]) / t[R00]
    d1 = slope - jacobian
    d2 = bend - 4.0 * jacobian * slope + 2.0 * jacobian * jacobian
    d3 = third - 6.0 * jacobian * bend + 12.0 * jacobian * jacobian * slope - 4.0 * jacobian * jacobian * jacobian
    g = 0.5 * log(t[R00] / rows.weight) + log_factor + log(sigma) - (mu - sigma) * jacobian
    return _At(g, d1, d2, d3, bend - 2.0 * slope * slope, log_factor, unexplained)


@kernel
def _move(step: float, t: FloatArray, coef: FloatArray) -> None:
    """Products and coefficients a short step further on, by Taylor's series."""
    bend, third = t[R11] + t[R02], 3.0 * t[R12] + t[R03]
    t[R00] += step * (2.0 * t[R01] + step * (bend + step * third / 3.0))
    t[R01] += step * (bend + 0.5 * step * third)
    t[R11] += step * third
    for k in range(coef.shape[1]):
        coef[0, k] += step * (coef[1, k] + step * (coef[2, k] / 2.0 + step * coef[3, k] / 6.0))


# --- missing values ---------------------------------------------------------------------------------


@reduction
def _masked_dot(a: FloatArray, c: FloatArray, kept: FloatArray) -> float:
    widest_vectors()
    total = 0.0
    for i in range(kept.size):
        total += a[i] * c[i] * kept[i]
    return total


@kernel
def _factor_gram(basis: FloatArray, kept: FloatArray, out: FloatArray) -> bool:
    """The lower Cholesky factor of the Gram matrix of the rows kept; False if a pivot is small."""
    q = basis.shape[0]
    for k in range(q):
        for j in range(k + 1):
            total = _masked_dot(basis[k], basis[j], kept)
            for i in range(j):
                total -= out[k, i] * out[j, i]
            if j < k:
                out[k, j] = total / out[j, j]
                out[j, k] = 0.0
            else:
                if not total > _LEAST_PIVOT:
                    return False
                out[k, k] = math.sqrt(total)
    return True


@kernel
def _solve(factor: FloatArray, v: FloatArray) -> None:
    """v = (L L')^-1 v."""
    q = v.size
    for k in range(q):
        total = v[k]
        for i in range(k):
            total -= factor[k, i] * v[i]
        v[k] = total / factor[k, k]
    for k in range(q - 1, -1, -1):
        total = v[k]
        for i in range(k + 1, q):
            total -= factor[i, k] * v[i]
        v[k] = total / factor[k, k]


# --- a column and its logs --------------------------------------------------------------------------


@reduction
def _scaled_logs(
    x: FloatArray, both_signs: bool, offset: float, reference: float, unit: float, d: FloatArray
) -> tuple[float, float]:
    """Logs relative to the reference, over `unit`, signed for both signs, 0 where a value is missing; returns sums."""
    widest_vectors()
    log_reference = offset_log(offset, reference)
    total = squares = 0.0
    for i in range(d.size):
        size = abs(x[i])
        present = size == size
        size = size if present else reference
        value = centered_log(size, offset, reference, log_reference) * unit
        value = -value if both_signs and x[i] < 0.0 else value
        value = value if present else 0.0
        d[i] = value
        total += value
        squares += value * value
    return total, squares


@reduction
def _wide_logs(
    x: FloatArray, both_signs: bool, offset: float, reference: float, unit: float, d: FloatArray
) -> tuple[float, float]:
    """`_scaled_logs` of a column whose logs differ by so much that an error of 1e-16 in them does not matter."""
    widest_vectors()
    inverse = 1.0 / (offset + reference)
    total = squares = 0.0
    for i in range(d.size):
        size = abs(x[i])
        present = size == size
        value = log_normal((offset + (size if present else reference)) * inverse) * unit
        value = -value if both_signs and x[i] < 0.0 else value
        value = value if present else 0.0
        d[i] = value
        total += value
        squares += value * value
    return total, squares


@kernel
def _are_wide(bounds: Bounds, smallest: float, offset: float, reference: float) -> bool:
    """Whether `_wide_logs` will do."""
    far = bounds.high - bounds.low >= _WIDE and max(bounds.high, -bounds.low) <= _ORDINARY
    return far and min(offset + smallest, offset + reference) >= SMALLEST_NORMAL


@kernel
def _mark_kept(x: FloatArray, kept: FloatArray) -> None:
    for i in range(x.size):
        kept[i] = 1.0 if x[i] == x[i] else 0.0


@reduction
def _weighted_sums(d: FloatArray, root: FloatArray) -> tuple[float, float]:
    """Weighted sums of logs and of their squares."""
    widest_vectors()
    total = squares = 0.0
    for i in range(root.size):
        w = root[i] * root[i]
        total += w * d[i]
        squares += w * d[i] * d[i]
    return total, squares


@reduction
def _sum(d: FloatArray) -> float:
    widest_vectors()
    total = 0.0
    for i in range(d.size):
        total += d[i]
    return total


@reduction
def _weight_of(root: FloatArray, kept: FloatArray, n: int) -> float:
    """The total weight of the rows kept."""
    widest_vectors()
    total = 0.0
    if root.size == 0:
        for i in range(kept.size):
            total += kept[i]
        return total if kept.size > 0 else float(n)
    for i in range(root.size):
        total += root[i] * root[i] * (kept[i] if kept.size > 0 else 1.0)
    return total


@kernel
def _status_of(x: FloatArray, found: Scan, family: int, q: int) -> int:
    """Why a column cannot be fitted, or OK."""
    n = x.size - found.n_nan
    if n == 0:
        return _EMPTY
    if max(found.high, found.negative_high) == INF_BITS:
        return BAD_INFINITE
    if not is_mirrored(family) and (found.n_negative > 0 or found.low == 0):
        return BAD_NOT_POSITIVE
    one_sided = found.n_negative == 0 or found.n_negative == n
    if one_sided and found.low == max(found.high, found.negative_high):
        return _CONSTANT
    return _OK if n > q else BAD_RANK


@kernel
def _ends_of_logs(found: Scan, both_signs: bool, offset: float, reference: float) -> Bounds:
    """Bounds of the logs of a column; those of negative values are negative."""
    largest = float_of(max(found.high, found.negative_high))
    if both_signs:
        return Bounds(-log1p(float_of(found.negative_high)), log1p(float_of(found.high)), 0.0)
    log_reference = offset_log(offset, reference)
    low = centered_log(float_of(found.low), offset, reference, log_reference)
    return Bounds(low, centered_log(largest, offset, reference, log_reference), 0.0)


@kernel
def _reference(x: FloatArray, found: Scan, design: Design, work: RegressionWork) -> float:
    """The magnitude that logs of a column of one sign are relative to: a typical one."""
    weighted = design.root.size > 0
    if found.n_nan == 0 and not weighted:
        return abs(typical(x, work.logs))
    n = squeeze(x, design.root, work.packed, work.weight)
    if not weighted:
        return abs(typical(work.packed[:n], work.logs))
    for i in range(n):
        work.weight[i] *= work.weight[i]
    return abs(typical_by_weight(work.packed[:n], work.weight[:n], work.logs))


@kernel
def _prepare(x: FloatArray, found: Scan, family: int, design: Design, work: RegressionWork) -> tuple[_Column, bool]:
    """A column's logs, and of a sample of its rows; False if missing values leave a design that may lack rank."""
    n, m, offset = x.size, design.sample_basis.shape[1], log_offset(family)
    both_signs = 0 < found.n_negative < n - found.n_nan
    sign = 0.0 if both_signs else -1.0 if found.n_negative > 0 else 1.0
    constant = design.constant > 0.0
    reference = _reference(x, found, design, work) if constant and not both_signs else 1.0 - offset
    bounds = _ends_of_logs(found, both_signs, offset, reference)
    sigma = unit_of(bounds)
    logs, missing = work.logs, found.n_nan > 0
    smallest, largest = float_of(found.low), float_of(max(found.high, found.negative_high))
    if _are_wide(bounds, smallest, offset, reference):
        total, squares = _wide_logs(x, both_signs, offset, reference, 1.0 / sigma, logs)
    else:
        total, squares = _scaled_logs(x, both_signs, offset, reference, 1.0 / sigma, logs)
    if design.root.size > 0:
        total, squares = _weighted_sums(logs, design.root)
    kept, sample_kept = work.kept[: n if missing else 0], work.sample_kept[: m if missing else 0]
    good = True
    if missing:
        _mark_kept(x, kept)
        good = _factor_gram(design.basis, kept, work.gram)
    weight = _weight_of(design.root, kept, n)
    mean = 0.0 if both_signs else total / weight
    spread = math.sqrt(max(squares / weight - mean * mean, 0.0))
    q = design.basis.shape[0] if missing else 0
    rows = _Rows(
        logs, design.root, kept, design.basis, work.gram[:q], bounds.low / sigma, bounds.high / sigma, total / weight,
        weight, sigma, both_signs,
    )  # fmt: skip
    sample = rows
    if m > 0 and good:
        sample = _sampled(rows, design, sample_kept, work)
    return _Column(rows, sample, spread, sign, offset, reference, smallest, largest, constant), good


@kernel
def _sampled(rows: _Rows, design: Design, kept: FloatArray, work: RegressionWork) -> _Rows:
    """A sample of the rows; all of them if it leaves a design that may lack rank."""
    logs, root = work.sample_logs, design.sample_root
    stride = rows.logs.size // logs.size
    for i in range(logs.size):
        logs[i] = rows.logs[i * stride]
    for i in range(kept.size):
        kept[i] = rows.kept[i * stride]
    q = 0
    if kept.size > 0:
        if not _factor_gram(design.sample_basis, kept, work.sample_gram):
            return rows
        q = design.basis.shape[0]
    weight = _weight_of(root, kept, logs.size)
    total = _weighted_sums(logs, root)[0] if root.size > 0 else _sum(logs)
    return _Rows(
        logs, root, kept, design.sample_basis, work.sample_gram[:q], rows.low, rows.high, total / weight, weight,
        rows.sigma, rows.both_signs,
    )  # fmt: skip


# --- the search -------------------------------------------------------------------------------------

#: Rows of the grid of a scan.
_MU, _G, _D1 = range(3)


class _Scanned(NamedTuple):
    """Where a scan began and ended in the grid, its lowest minimum, how many there were, and how many exact fits."""

    first: int
    last: int
    n_minima: int
    n_exact: int
    n_eval: int


@kernel
def _probe(rows: _Rows, k: int, mu: float, work: RegressionWork) -> float:
    """Evaluate at a point of the grid."""
    at = _evaluate(rows, mu, work)
    work.grid[_MU, k], work.grid[_G, k], work.grid[_D1, k] = mu, at.g, at.d1
    return at.d1


@kernel
def _scan(rows: _Rows, center: float, spread: float, work: RegressionWork) -> _Scanned:
    """Evaluate at evenly spaced points, and on beyond their ends as long as g falls outwards."""
    grid, step = work.grid, _STEP / spread
    middle = _STEPS + _MORE
    first, last = middle - _STEPS, middle + _STEPS
    stage, k, mu = 0, first, center - _STEPS * step
    wide = step
    n_eval = 0
    while stage < 3:  # one call, not three, which would treble the compiled code
        d1 = _probe(rows, k, mu, work)
        n_eval += 1
        if stage == 0:
            if k < last:
                k += 1
                mu = center + (k - middle) * step
                continue
            stage, k, d1 = 1, first, grid[_D1, first]
        if stage == 1:
            first = k
            if d1 > 0.0 and k > 0:
                wide *= _GROWTH
                k -= 1
                mu = grid[_MU, first] - wide
                continue
            stage, k, d1, wide = 2, last, grid[_D1, last], step
        last = k
        if d1 < 0.0 and k < N_GRID - 1:
            wide *= _GROWTH
            k += 1
            mu = grid[_MU, last] + wide
            continue
        stage = 3
    n_minima = n_exact = 0
    for i in range(first, last + 1):
        n_exact += grid[_G, i] == -math.inf
        n_minima += i < last and _encloses(grid, i, last)
    return _Scanned(first, last, n_minima, n_exact, n_eval)


@kernel
def _encloses(grid: FloatArray, i: int, last: int) -> bool:
    """Whether the derivative changes from negative to positive after point i, perhaps over an exact fit.

    A fit that is exact on to the end is one that rounding has made so.
    """
    after = i + 2 if grid[_D1, i + 1] == 0.0 and i + 1 < last else i + 1
    return bool(grid[_D1, i] < 0.0 < grid[_D1, after])


class _Found(NamedTuple):
    """A minimum: where, the values there, and whether it is certified; coefficients and products are in the work."""

    mu: float
    at: _At
    n_eval: int
    certified: bool


@kernel
def _descend(
    rows: _Rows, start: float, low: float, high: float, max_step: float, rough: bool, work: RegressionWork
) -> _Found:
    """The root of the derivative near `start`, between `low` and `high`; `rough`: to a part of a step."""
    state = NewtonState(start, math.nan, low, high, math.inf, math.nan, max_step, 0.0, 0, _MAX_EVAL, RUNNING)
    mu = start
    while True:
        mu = state.x
        at = _evaluate(rows, mu, work)
        state = newton_step(state, at.d1, at.d2, at.d3)
        step = state.x - mu
        short = 1e-2 * max_step if rough else _SHORT * math.sqrt(min(at.unexplained, 1.0))
        if abs(step) <= short or state.status != RUNNING:
            break
    certified = has_root_near(at.d1, at.d2, at.d3) and state.status in (RUNNING, CONVERGED)
    if at.unexplained > 0.0 and not rough:
        total = work.products[R00] / at.unexplained
        _move(step, work.products, work.coef)
        at = _at(rows, mu + step, at.log_factor, total, work.products)
    return _Found(mu + step, at, state.n_eval, certified)


class _Search(NamedTuple):
    """The lowest minimum of a column, its status, and the ends of the scan."""

    found: _Found
    status: int
    low: float
    high: float


@kernel
def _search(column: _Column, work: RegressionWork) -> _Search:
    """Scan a sample of the rows, find its minimum and from there that of all; if in doubt, scan all rows."""
    rows, center = column.rows, column.rows.sigma if column.rows.both_signs else 0.0
    n_eval, max_step = 0, _STEP / column.spread
    sampled = column.sample.logs.size < rows.logs.size
    while True:
        part = column.sample if sampled else rows
        scanned = _scan(part, center, column.spread, work)
        n_eval += scanned.n_eval
        grid = work.grid
        low, high = grid[_MU, scanned.first], grid[_MU, scanned.last]
        if sampled and (scanned.n_minima != 1 or scanned.n_exact > 0):
            sampled = False
            continue
        if scanned.n_minima == 0 or scanned.n_exact == scanned.last - scanned.first + 1:
            return _without_minimum(rows, scanned, n_eval, work)
        best, status = _lowest(part, rows, scanned, sampled, max_step, work)
        n_eval += best.n_eval
        inside = low <= best.mu <= high
        if sampled and not (best.certified and inside):
            sampled = False
            continue
        found = _Found(best.mu, best.at, n_eval, best.certified)
        return _Search(found, status if best.certified else _NOT_CERTIFIED, low, high)


@kernel
def _without_minimum(rows: _Rows, scanned: _Scanned, n_eval: int, work: RegressionWork) -> _Search:
    """The lowest point of a scan that saw no minimum; lambda = 1 where every fit was exact."""
    grid = work.grid
    low, high = grid[_MU, scanned.first], grid[_MU, scanned.last]
    exact = scanned.n_exact == scanned.last - scanned.first + 1
    mu, lowest = rows.sigma, math.inf
    for k in range(scanned.first, scanned.last + 1):
        if not exact and -math.inf < grid[_G, k] < lowest:
            mu, lowest = grid[_MU, k], grid[_G, k]
    found = _Found(mu, _evaluate(rows, mu, work), n_eval + 1, False)
    return _Search(found, _EXACT if exact else _AT_END, low, high)


@kernel
def _lowest(
    part: _Rows, rows: _Rows, scanned: _Scanned, sampled: bool, max_step: float, work: RegressionWork
) -> tuple[_Found, int]:
    """The lowest of the minima that a scan enclosed; a sample's only one is where the search in all rows starts."""
    grid = work.grid
    best = _Found(0.0, _At(math.inf, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), 0, False)
    start, low, high = 0.0, -math.inf, math.inf
    n_eval, k, last_of_all = 0, scanned.first, math.nan
    rough = sampled
    again = False
    while True:
        if not again:
            while k < scanned.last and not _encloses(grid, k, scanned.last):
                k += 1
            if k >= scanned.last:
                break
            low, high = grid[_MU, k], grid[_MU, k + 1 if grid[_D1, k + 1] > 0.0 else k + 2]
            start = _secant(grid, k)
            k += 1
        found = _descend(part if rough else rows, start, low, high, max_step, rough, work)
        n_eval += found.n_eval
        if rough:  # the minimum of the sample: go on in all rows, unbounded
            start, low, high, rough, again = found.mu, -math.inf, math.inf, False, True
            continue
        again = False
        if found.at.g < best.at.g:
            best = found
        last_of_all = found.mu
    if best.mu != last_of_all:  # coefficients are those of the last: evaluate the best one again
        at = _evaluate(rows, best.mu, work)
        best = _Found(best.mu, at, best.n_eval, best.certified)
    exact = best.at.g == -math.inf
    status = _EXACT if exact else _MULTIMODAL if scanned.n_minima > 1 else _SCANNED
    return _Found(best.mu, best.at, n_eval, best.certified or exact), status


@kernel
def _secant(grid: FloatArray, k: int) -> float:
    """The zero of the chord of the derivative between two points; the second if the fit is exact there."""
    a, c = grid[_MU, k], grid[_MU, k + 1]
    if grid[_D1, k + 1] == 0.0:
        return float(c)
    fraction = grid[_D1, k] / (grid[_D1, k] - grid[_D1, k + 1])
    return float(a + min(max(fraction, 0.1), 0.9) * (c - a))


# --- one column -------------------------------------------------------------------------------------


@kernel
def _write(column: _Column, search: _Search, work: RegressionWork, row: FloatArray, coef: FloatArray) -> None:
    """Results, and coefficients on the basis in units of the residual scale, psi relative to the reference's."""
    rows, at, mu = column.rows, search.found.at, search.found.mu
    sigma, log_factor = rows.sigma, at.log_factor
    origin, mean, factor = 0.0, 0.0, log_factor
    scale = math.sqrt(max(work.products[R00], 0.0) / rows.weight)
    if search.status == _EXACT:
        scale = max(scale, 16.0 * EPS * _size_of(work.coef))
    sd = scale
    if column.sign != 0.0:
        if column.constant and _is_moderate(column, mu):
            sd, origin, factor = sd * exp(log_factor), column.reference, 0.0
        else:
            shift = rows.high if mu > 0.0 else rows.low
            origin = column.largest if mu > 0.0 else column.smallest
            sd, mean, factor = sd * exp(log_factor - mu * shift), -b(-mu, shift), 0.0
    log_origin = offset_log(column.offset, origin)
    log_reference = offset_log(column.offset, column.reference) if column.sign != 0.0 else 0.0
    g = at.g + log_reference
    best = Optimum(
        mu / sigma, mean * sigma, sd * sigma, factor, origin, log_origin, g, at.curvature * sigma * sigma,
        search.found.n_eval, search.status,
    )  # fmt: skip
    write_fit(row, best, column.sign, _TWO_PASS)
    direction = -1.0 if column.sign < 0.0 else 1.0
    for k in range(rows.basis.shape[0]):
        coef[k] = direction * work.coef[0, k] / scale


@kernel
def _size_of(coef: FloatArray) -> float:
    total = 0.0
    for k in range(coef.shape[1]):
        total += coef[0, k] * coef[0, k]
    return math.sqrt(total)


@kernel
def _is_moderate(column: _Column, mu: float) -> bool:
    """Whether no power is e^300 times that of the reference, nor that of the reference tiny."""
    rows = column.rows
    growth = mu * (rows.high if mu > 0.0 else rows.low)
    t = mu / rows.sigma * offset_log(column.offset, column.reference)
    return growth < _MODERATE and t > -_MODERATE


@kernel
def regress_column(
    x: FloatArray, design: Design, family: int, lmbda: float, work: RegressionWork, row: FloatArray, extra: FloatArray
) -> None:
    """Fit one column into `row`; into `extra` the ends of the scan and the coefficients on the basis."""
    found = scan(x)
    status = _status_of(x, found, family, design.basis.shape[0])
    extra[:] = math.nan
    low, high, negative_high = float_of(found.low), float_of(found.high), float_of(found.negative_high)
    all_negative = found.n_negative == x.size - found.n_nan
    x_min, x_max = -negative_high if found.n_negative > 0 else low, -low if all_negative else high
    write_range(row, float(x.size - found.n_nan), x_min, x_max)
    if status != _OK:
        write_identity(row, status)
        return
    column, good = _prepare(x, found, family, design, work)
    write_range(row, column.rows.weight, x_min, x_max)
    if not good:
        write_identity(row, BAD_RANK)
        return
    given = lmbda == lmbda
    if given:
        mu = (2.0 - lmbda if column.sign < 0.0 else lmbda) * column.rows.sigma
        at = _evaluate(column.rows, mu, work)
        exact = at.g == -math.inf
        best = _Search(_Found(mu, at, 1, True), _EXACT if exact else _FIXED, math.nan, math.nan)
    else:
        best = _search(column, work)
    _write(column, best, work, row, extra[2:])
    if given and not is_identity(row):
        row[LMBDA] = row[LMBDA0] = lmbda
    ends_low, ends_high = best.low / column.rows.sigma, best.high / column.rows.sigma
    extra[0] = 2.0 - ends_high if column.sign < 0.0 else ends_low
    extra[1] = 2.0 - ends_low if column.sign < 0.0 else ends_high


@entry((ROWS, DESIGN, INTEGER, COLUMN, WORK, ROWS, ROWS))
def regress_columns(
    columns: FloatArray,
    design: Design,
    family: int,
    lmbda: FloatArray,
    work: RegressionWork,
    out: FloatArray,
    extra: FloatArray,
) -> None:
    """Fit the rows of `columns`, each one column of the user's matrix made contiguous."""
    columns, out, extra = borrowed(columns), borrowed(out), borrowed(extra)
    design, work = _borrowed_design(design), _borrowed_work(work)
    for j in range(columns.shape[0]):
        regress_column(columns[j], design, family, lmbda[j], work, out[j], extra[j])


@kernel
def _borrowed_design(design: Design) -> Design:
    """The same arrays, parts of which cost no atomic operations."""
    return Design(
        borrowed(design.basis),
        borrowed(design.root),
        borrowed(design.sample_basis),
        borrowed(design.sample_root),
        design.constant,
    )


@kernel
def _borrowed_work(work: RegressionWork) -> RegressionWork:
    """The same arrays, parts of which cost no atomic operations."""
    return RegressionWork(
        borrowed(work.logs),
        borrowed(work.kept),
        borrowed(work.packed),
        borrowed(work.weight),
        borrowed(work.sample_logs),
        borrowed(work.sample_kept),
        borrowed(work.y),
        borrowed(work.dots),
        borrowed(work.coef),
        borrowed(work.gram),
        borrowed(work.sample_gram),
        borrowed(work.products),
        borrowed(work.grid),
    )


# --- profiles and intervals -------------------------------------------------------------------------

#: At the ends of intervals this is the relative error of the drop, or this many roundings of g.
_END_ERROR, _ROUNDINGS = 1e-12, 8.0


@kernel
def _exponent(column: _Column, lmbda: float) -> float:
    """lambda as the exponent of the branch, in units of the logs."""
    return (2.0 - lmbda if column.sign < 0.0 else lmbda) * column.rows.sigma


@kernel
def _drop_point(column: _Column, start: float, drop: float, side: float, work: RegressionWork) -> float:
    """Where g first reaches `drop` above its value at `start`, on one side, as far as growing steps see."""
    rows = column.rows
    low = high = math.nan
    mu, step, lowest = start, math.nan, math.nan
    for _ in range(_MAX_EVAL + _MORE):
        at = _evaluate(rows, mu, work)
        excess = at.g - lowest - drop
        if lowest != lowest:
            lowest, low, excess = at.g, mu, -drop
            step = math.sqrt(2.0 * drop / at.curvature)
            if not (step > 0.0 and step < math.inf):
                break
        elif abs(excess) <= max(_END_ERROR * drop, _ROUNDINGS * EPS * (1.0 + abs(at.g))):
            return mu
        elif excess < 0.0:
            low = mu
        else:
            high = mu
        if high != high:
            mu = low + side * step
            step *= _GROWTH
            continue
        newton = mu - excess / at.d1
        inside = min(low, high) < newton < max(low, high)
        mu = newton if inside else 0.5 * (low + high)
        if mu in (low, high):
            return mu
    return math.nan


@entry((ROWS, DESIGN, INTEGER, ROWS, WORK, ROWS))
def profile_columns(
    columns: FloatArray, design: Design, family: int, lmbdas: FloatArray, work: RegressionWork, out: FloatArray
) -> None:
    """g of the rows of `columns`, which have been fitted, each at its row of `lmbdas`."""
    design, work = _borrowed_design(design), _borrowed_work(work)
    for j in range(columns.shape[0]):
        column, _ = _prepare(columns[j], scan(columns[j]), family, design, work)
        log_reference = offset_log(column.offset, column.reference) if column.sign != 0.0 else 0.0
        for k in range(lmbdas.shape[1]):
            at = _evaluate(column.rows, _exponent(column, lmbdas[j, k]), work)
            out[j, k] = at.g + log_reference


@entry((ROWS, DESIGN, INTEGER, ROWS, WORK, ROWS))
def interval_columns(
    columns: FloatArray, design: Design, family: int, at: FloatArray, work: RegressionWork, out: FloatArray
) -> None:
    """Lambdas at which g of the rows of `columns`, which have been fitted, has grown; `at`: from which, by how much."""
    design, work = _borrowed_design(design), _borrowed_work(work)
    for j in range(columns.shape[0]):
        column, _ = _prepare(columns[j], scan(columns[j]), family, design, work)
        mu, sigma = _exponent(column, at[j, 0]), column.rows.sigma
        for k in range(2):
            end = _drop_point(column, mu, at[j, 1], 2.0 * k - 1.0, work) / sigma
            side = 1 - k if column.sign < 0.0 else k
            out[j, side] = 2.0 - end if column.sign < 0.0 else end
