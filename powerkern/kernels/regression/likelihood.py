"""The likelihood of a power of a response given covariates, and its derivatives, from sums over the rows.

Per observation, with P the projection off the design and J the log-Jacobian term ([1]_, eq. (8), whose variance is that
of the residuals of a linear model)::

    g(lambda) = 1/2 ln(|P psi|^2 / n) - (lambda - 1) mean(J)

The design is an orthonormal basis, one row per basis vector. A column is its logs relative to a reference in it, in the
order of the rows, divided by a power of two that makes them of order one (`powerkern.kernels.likelihood.score`). The
log of the reference is 0, and so are psi and its derivatives there: a missing value is given that log, and drops out
of all sums. The basis is orthonormal again by the Cholesky factor of the Gram matrix of the rows left.

References
----------
.. [1] G. E. P. Box and D. R. Cox, "An analysis of transformations", JRSS B 26, 1964, 211-252.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powerkern._jit import COLUMN, REAL, ROWS, kernel, named_tuple, reduction
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.cholesky import factor_cholesky, solve_factored
from powerkern.kernels.elementary.constants import EPS
from powerkern.kernels.elementary.exp import exp, expm1_minus_x
from powerkern.kernels.elementary.log import log
from powerkern.kernels.likelihood.score import BLOCK
from powerkern.kernels.likelihood.score_formulas import (
    N_MOMENTS,
    Y1Y1,
    Y1Y2,
    YY,
    YY1,
    YY2,
    YY3,
    derivatives,
    exponents_off_zero,
    profile_nll,
    ratios,
    scaled_derivatives,
    taylor_sum_of_squares,
)

#: Below this part of the sum of squares, residual products are formed from residuals, not by subtraction, which loses
#: as many digits: four at most. With 1e-6 g differs by more than 1e-12 in 4 of 60 simulated columns, with 1e-2 in none
#: (report_constants regression).
_BY_SUBTRACTION = 1e-4
#: Below this part it is rounding.
_ROUNDING = (256.0 * EPS) ** 2
#: The least pivot of the Gram matrix of the rows that missing values leave, of a basis that is orthonormal over all
#: rows: solutions lose three digits at most. Columns below it are fitted with a basis of their own.
_LEAST_PIVOT = 1e-3
#: Up to this |t|, squares of e^t are ordinary numbers; exponents are kept so far from 0, where derivatives divide by
#: powers of them. With 1e-4 and 1e-6 lambda changes by 1e-13 and 1e-14 at most (report_constants regression).
_REACH, _FLOOR = 300.0, 1e-5

#: Points of a scan: equal steps to either side, and growing steps beyond them: 40 cover 1e7 steps. With 4 and
#: 16 steps 60 simulated columns take 12 and 36 evaluations in place of 20 and have the same minima (report_constants
#: regression); 8 reach 4/sd of the logs, within which nearly all optima lie.
STEPS, MORE = 8, 40
N_GRID = 2 * (STEPS + MORE) + 1


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
    products: FloatArray  #: of residuals of psi and its derivatives, placed as among moments (`score_formulas`)
    grid: FloatArray


DESIGN = named_tuple(Design, ROWS, COLUMN, ROWS, COLUMN, REAL)
WORK = named_tuple(RegressionWork, *(COLUMN,) * 6, *(ROWS,) * 5, COLUMN, ROWS)


def new_regression_work(design: Design) -> RegressionWork:
    """Return the arrays of `RegressionWork` for columns as long as the design."""
    q, n = design.basis.shape
    m = design.sample_basis.shape[1]
    logs, kept, packed, weight = (np.empty(n) for _ in range(4))
    sample_logs, sample_kept = np.empty(m), np.empty(m)
    y, dots, coef = np.empty((4, BLOCK)), np.empty((4, q)), np.empty((4, q))
    gram, sample_gram, products, grid = np.empty((q, q)), np.empty((q, q)), np.empty(N_MOMENTS), np.empty((3, N_GRID))
    return RegressionWork(
        logs, kept, packed, weight, sample_logs, sample_kept, y, dots, coef, gram, sample_gram, products, grid
    )  # fmt: skip


class Rows(NamedTuple):
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


class Evaluation(NamedTuple):
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
def _branch_exponent(rows: Rows, mu: float) -> float:
    """Return the exponent of negative logs; it differs from the exponent of positive logs in columns of both signs."""
    return mu - 2.0 * rows.sigma if rows.both_signs else mu


@kernel
def _are_ordinary(rows: Rows, mu: float) -> bool:
    """Return whether psi and its square are ordinary numbers for all rows."""
    return max(abs(mu), abs(_branch_exponent(rows, mu))) * max(rows.high, -rows.low) <= _REACH


@kernel
def _log_factor(rows: Rows, mu: float) -> float:
    """Return the log of the divisor of psi: 0 where no power is extreme, else the largest exponent of e."""
    lower = _branch_exponent(rows, mu)
    if _are_ordinary(rows, mu):
        return 0.0
    top = max(mu * rows.high, lower * rows.low)
    return max(0.0, top) if rows.both_signs else top


@kernel
def _derivatives(d: FloatArray, mu: float, lower: float, log_factor: float | None, y: FloatArray) -> None:
    """Write y^(j) = Y_j/m^(j+1) at t = m d, times e^-log_factor (None if no |t| exceeds `_REACH`).

    Y_2 and Y_3 lose one and two powers of a small t: m is kept off 0.
    """
    y0, y1, y2, y3 = y[0], y[1], y[2], y[3]
    inverse, lower_inverse = 1.0 / mu, 1.0 / lower
    for i in range(d.size):
        below = d[i] < 0.0
        t = (lower if below else mu) * d[i]
        r = lower_inverse if below else inverse
        if log_factor is None:
            f0, f1, f2, f3 = derivatives(t, expm1_minus_x(t), 1.0)
        else:
            f0, f1, f2, f3 = scaled_derivatives(t, exp(t - log_factor), exp(-log_factor))
        r2 = r * r
        y0[i] = f0 * r
        y1[i] = f1 * r2
        y2[i] = f2 * (r2 * r)
        y3[i] = f3 * (r2 * r2)


@reduction
def _scale_rows(y: FloatArray, factor: FloatArray) -> None:
    """Multiply the four rows of y."""
    y0, y1, y2, y3 = y[0], y[1], y[2], y[3]
    for i in range(factor.size):
        y0[i] *= factor[i]
        y1[i] *= factor[i]
        y2[i] *= factor[i]
        y3[i] *= factor[i]


@reduction
def _add_products(y: FloatArray, n: int, out: FloatArray) -> None:
    """Add sums of products of the rows of y, over the first `n` entries."""
    y0, y1, y2, y3 = y[0, :n], y[1, :n], y[2, :n], y[3, :n]
    s00 = s01 = s11 = s02 = s03 = s12 = 0.0
    for i in range(n):
        s00 += y0[i] * y0[i]
        s01 += y0[i] * y1[i]
        s11 += y1[i] * y1[i]
        s02 += y0[i] * y2[i]
        s03 += y0[i] * y3[i]
        s12 += y1[i] * y2[i]
    out[YY] += s00
    out[YY1] += s01
    out[Y1Y1] += s11
    out[YY2] += s02
    out[YY3] += s03
    out[Y1Y2] += s12


@reduction
def _add_dots(y: FloatArray, first: FloatArray, second: FloatArray, k: int, out: FloatArray) -> None:
    """Add products of the rows of y with basis vectors k and k + 1."""
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
def _block(rows: Rows, start: int, mu: float, log_factor: float, y: FloatArray) -> int:
    """Write psi and its derivatives of one block of rows, with root weights; return the number of rows."""
    d, lower = rows.logs[start : start + BLOCK], _branch_exponent(rows, mu)
    if _are_ordinary(rows, mu):
        _derivatives(d, mu, lower, None, y)
    else:
        _derivatives(d, mu, lower, log_factor, y)
    if rows.root.size > 0:
        _scale_rows(y, rows.root[start : start + BLOCK])
    return d.size


@kernel
def _residual_products(rows: Rows, mu: float, log_factor: float, work: RegressionWork) -> float:
    """Write the inner products of the residuals, and the coefficients on the basis, to `work`; return psi'psi."""
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
            solve_factored(rows.gram, coef[j])
    total = products[YY]
    for k in range(q):
        products[YY] -= dots[0, k] * coef[0, k]
        products[YY1] -= dots[1, k] * coef[0, k]
        products[Y1Y1] -= dots[1, k] * coef[1, k]
        products[YY2] -= dots[2, k] * coef[0, k]
        products[YY3] -= dots[3, k] * coef[0, k]
        products[Y1Y2] -= dots[2, k] * coef[1, k]
    if not products[YY] > _BY_SUBTRACTION * total:
        products[:] = 0.0
        for start in range(0, rows.logs.size, BLOCK):
            n = _block(rows, start, mu, log_factor, work.y)
            _subtract_fitted(rows, start, n, work)
            _add_products(work.y, n, products)
    return float(total)


@kernel
def _subtract_fitted(rows: Rows, start: int, n: int, work: RegressionWork) -> None:
    """Replace one block of rows by its residuals."""
    for j in range(4):
        y = work.y[j, :n]
        for k in range(rows.basis.shape[0]):
            _subtract(y, work.coef[j, k], rows.basis[k, start : start + n])
    if rows.kept.size > 0:
        _scale_rows(work.y, rows.kept[start : start + n])


@kernel
def _subtract(y: FloatArray, factor: float, x: FloatArray) -> None:
    for i in range(y.size):
        y[i] -= factor * x[i]


@kernel
def evaluate(rows: Rows, mu: float, work: RegressionWork) -> Evaluation:
    """Return g and its derivatives at `mu`, by Taylor expansion about a nearby point if an exponent is close to 0."""
    beside = exponents_off_zero(mu, rows.both_signs, 2.0 * rows.sigma, _FLOOR)
    log_factor = _log_factor(rows, beside)
    total = _residual_products(rows, beside, log_factor, work)
    if beside != mu:
        move(mu - beside, work.products, work.coef)
    return at_products(rows, mu, log_factor, total, work.products)


@kernel
def at_products(rows: Rows, mu: float, log_factor: float, total: float, t: FloatArray) -> Evaluation:
    """Return g and its derivatives from the products of residuals.

    Parameters
    ----------
    rows : Rows
        The column.
    mu : float
        The exponent, in units of the logs.
    log_factor : float
        The log of the factor that psi was divided by.
    total : float
        psi'psi.
    t : (N_MOMENTS,)
        Products of residuals.
    """
    unexplained = t[YY] / total if total > 0.0 else 0.0
    if not unexplained > _ROUNDING:
        if unexplained == unexplained:
            return Evaluation(-math.inf, 0.0, 1.0, 0.0, math.inf, log_factor, 0.0)
        return Evaluation(math.nan, math.nan, math.nan, math.nan, math.nan, log_factor, unexplained)
    jacobian, sigma = rows.jacobian, rows.sigma
    slope, bend, third = ratios(t)
    d1 = slope - jacobian
    d2 = bend - 4.0 * jacobian * slope + 2.0 * jacobian * jacobian
    d3 = third - 6.0 * jacobian * bend + 12.0 * jacobian * jacobian * slope - 4.0 * jacobian * jacobian * jacobian
    g = profile_nll(log(t[YY] / rows.weight), log_factor + log(sigma), mu / sigma, sigma * jacobian)
    return Evaluation(g, d1, d2, d3, bend - 2.0 * slope * slope, log_factor, unexplained)


@kernel
def move(step: float, t: FloatArray, coef: FloatArray) -> None:
    """Move products and coefficients by a short step, by Taylor's series."""
    bend, third = t[Y1Y1] + t[YY2], 3.0 * t[Y1Y2] + t[YY3]
    t[YY] = taylor_sum_of_squares(t, step)
    t[YY1] += step * (bend + 0.5 * step * third)
    t[Y1Y1] += step * third
    for k in range(coef.shape[1]):
        coef[0, k] += step * (coef[1, k] + step * (coef[2, k] / 2.0 + step * coef[3, k] / 6.0))


# --- missing values ---------------------------------------------------------------------------------


@reduction
def _masked_dot(a: FloatArray, c: FloatArray, kept: FloatArray) -> float:
    total = 0.0
    for i in range(kept.size):
        total += a[i] * c[i] * kept[i]
    return total


@kernel
def factor_gram(basis: FloatArray, kept: FloatArray, out: FloatArray) -> bool:
    """Write the lower Cholesky factor of the Gram matrix of the rows kept; return whether no pivot is small."""
    q = basis.shape[0]
    for k in range(q):
        for j in range(k + 1):
            out[k, j] = _masked_dot(basis[k], basis[j], kept)
    if factor_cholesky(out, out, 0.0, 0.0) < q:
        return False
    least = math.inf
    for k in range(q):
        least = min(least, out[k, k] * out[k, k])
    return least > _LEAST_PIVOT
