"""Evaluate the likelihood of a power of a response given covariates, and its derivatives.

Let psi be the transformed response, P the projection onto the orthogonal complement of the design, and J the
log-Jacobian terms. Per observation, minus the log-likelihood is ([1]_, eq. (8), with the variance of the residuals of a
linear model)::

    g(lambda) = 1/2 ln(|P psi|^2 / n) - (lambda - 1) mean(J)

The design is given by an orthonormal basis, one row per basis vector. A column is given by logs relative to a
reference, in the order of the rows, divided by a power of two that makes them of order one (see
`powerkern.kernels.likelihood.score`). At the reference the log, psi and the derivatives of psi are 0. A missing value
is given the log 0 and therefore contributes nothing to the sums. If values are missing, the basis is not orthonormal
over the remaining rows. The Cholesky factor of its Gram matrix over these rows is then used.

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

#: Smallest unexplained fraction of the sum of squares for which residual products are computed by subtraction, which
#: then loses at most four digits; for smaller ones they are computed from residuals. With 1e-6, g differs by more than
#: 1e-12 in 4 of 60 simulated columns, with 1e-2 in none (report_constants regression).
_BY_SUBTRACTION = 1e-4
#: Unexplained fractions below this are rounding errors.
_ROUNDING = (256.0 * EPS) ** 2
#: Smallest pivot of the Gram matrix of the rows without missing values, for a basis that is orthonormal over all rows.
#: Solutions then lose at most three digits. Columns with a smaller pivot are fitted with a separate basis.
_LEAST_PIVOT = 1e-3
#: Largest |t| for which the square of e^t is a normal number, and smallest |exponent|, since derivatives are divided by
#: powers of the exponent. With 1e-4 and 1e-6 lambda changes by at most 1e-13 and 1e-14 (report_constants regression).
_REACH, _FLOOR = 300.0, 1e-5

#: Number of grid points on either side of the center. STEPS points are evenly spaced; they extend to 4/(standard
#: deviation of the logs) and enclose nearly all optima. Up to MORE points have growing distances, which cover 1e7
#: steps. With 4 and 16 STEPS, 60 simulated columns take 12 and 36 evaluations instead of 20 and have the same minima
#: (report_constants regression).
STEPS, MORE = 8, 40
N_GRID = 2 * (STEPS + MORE) + 1


class Design(NamedTuple):
    """Orthonormal bases of the column space of a design matrix: over all rows, and over a sample of the rows.

    The sampled rows are evenly spaced.
    """

    basis: FloatArray  #: (q, n): orthonormal rows
    root: FloatArray  #: (n,): square roots of the weights; empty: all one
    sample_basis: FloatArray  #: (q, m): basis for the m sampled rows
    sample_root: FloatArray  #: (m,): square roots of the weights of the sampled rows; empty: all one
    constant: float  #: 1 if the constant is a linear combination of the covariates, otherwise 0


class RegressionWork(NamedTuple):
    """Scratch for one column. Arrays named `sample_...` are for a sample of the rows."""

    logs: FloatArray
    kept: FloatArray  #: 1 for rows with a value, 0 for missing ones
    packed: FloatArray  #: the values that are not missing
    weight: FloatArray  #: the weights of these values
    sample_logs: FloatArray
    sample_kept: FloatArray
    y: FloatArray  #: psi and its derivatives in a block of rows
    dots: FloatArray  #: inner products of psi and its derivatives with the basis vectors
    coef: FloatArray  #: coefficients of psi and its derivatives on the basis
    gram: FloatArray  #: Cholesky factor of the Gram matrix of the rows with values
    sample_gram: FloatArray
    products: FloatArray  #: sums of products of residuals, at the indices of moments in `score_formulas`
    grid: FloatArray  #: exponents, g and its derivative at grid points


DESIGN = named_tuple(Design, ROWS, COLUMN, ROWS, COLUMN, REAL)
WORK = named_tuple(RegressionWork, *(COLUMN,) * 6, *(ROWS,) * 5, COLUMN, ROWS)


def new_regression_work(design: Design) -> RegressionWork:
    """Allocate a `RegressionWork` for columns as long as the design."""
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
    """A column, or a sample of its rows, in the form in which the likelihood is evaluated."""

    logs: FloatArray  #: scaled logs; in columns of both signs, the sign of a log selects the branch
    root: FloatArray  #: square roots of the weights; empty: all one
    kept: FloatArray  #: 1 for rows with a value, 0 for missing ones; empty if none is missing
    basis: FloatArray  #: basis of the design, for these rows
    gram: FloatArray  #: Cholesky factor of the Gram matrix of the rows with values; empty if none is missing
    low: float  #: bounds of the logs
    high: float
    jacobian: float  #: weighted mean of the logs
    weight: float  #: total weight
    sigma: float  #: the unit of the logs
    both_signs: bool


class Evaluation(NamedTuple):
    """The negative log-likelihood g and its derivatives at one exponent.

    The fields d1, d2 and d3 are S'/(2 S), S''/(2 S) and S'''/(2 S), where S = e^(-2 mu J) |P psi|^2. J is the mean of
    the log-Jacobian terms; P and psi are explained in the module docstring.
    """

    g: float
    d1: float  #: equals g'
    d2: float
    d3: float
    curvature: float  #: g''
    log_factor: float  #: log of the factor that psi was divided by
    unexplained: float  #: fraction of the sum of squares that is in the residuals


# --- one evaluation ---------------------------------------------------------------------------------


@kernel
def _branch_exponent(rows: Rows, mu: float) -> float:
    """Return the exponent for negative values, given the exponent `mu` for positive values.

    In columns of both signs it is mu minus 2, in units of the logs; in other columns it is mu.
    """
    return mu - 2.0 * rows.sigma if rows.both_signs else mu


@kernel
def _are_ordinary(rows: Rows, mu: float) -> bool:
    """Return whether psi and its square are in the normal range of float64 for all rows."""
    return max(abs(mu), abs(_branch_exponent(rows, mu))) * max(rows.high, -rows.low) <= _REACH


@kernel
def _log_factor(rows: Rows, mu: float) -> float:
    """Return the log of the factor that psi is divided by.

    It is 0 if no power is extreme, and otherwise the log of the largest power.
    """
    lower = _branch_exponent(rows, mu)
    if _are_ordinary(rows, mu):
        return 0.0
    top = max(mu * rows.high, lower * rows.low)
    return max(0.0, top) if rows.both_signs else top


@kernel
def _derivatives(d: FloatArray, mu: float, lower: float, log_factor: float | None, y: FloatArray) -> None:
    """Write psi and its first three derivatives in the exponent, divided by e^log_factor, to the rows of y.

    The j-th derivative is Y_j(t)/m^(j+1) with t = m d (`score_formulas`). For small t the terms of Y_2 and Y_3 cancel,
    so m must not be close to 0.

    Parameters
    ----------
    d : (n,)
        The scaled logs.
    mu : float
        The exponent m for positive logs.
    lower : float
        The exponent m for negative logs.
    log_factor : float or None
        The log of the factor to divide by. None if no |t| exceeds `_REACH`, so that no factor is needed.
    y : (4, n)
        Receives psi and its derivatives.
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
    """Multiply each of the four rows of y by `factor`, element by element."""
    y0, y1, y2, y3 = y[0], y[1], y[2], y[3]
    for i in range(factor.size):
        y0[i] *= factor[i]
        y1[i] *= factor[i]
        y2[i] *= factor[i]
        y3[i] *= factor[i]


@reduction
def _add_products(y: FloatArray, n: int, out: FloatArray) -> None:
    """Add inner products of the rows of y, over their first `n` elements, to `out` (at the indices YY, YY1, ...)."""
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
    """Add the inner products of the four rows of y with two basis vectors to `out`.

    Parameters
    ----------
    y : (4, n)
        Psi and its derivatives.
    first : (n,)
        Basis vector k.
    second : (n,)
        Basis vector k + 1; ignored if k is the last one.
    k : int
        Column of `out` for the first vector.
    out : (4, q)
        The inner products; updated in place.
    """
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
    """Write psi and its derivatives, times the square roots of the weights, for a block; return its number of rows.

    Parameters
    ----------
    rows : Rows
        The column.
    start : int
        Index of the first row.
    mu : float
        The exponent, in units of the logs.
    log_factor : float
        The log of the factor that psi is divided by.
    y : (4, BLOCK)
        Receives psi and its derivatives.
    """
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
    """Regress psi and its derivatives on the basis; write coefficients and inner products of residuals to `work`.

    Return the sum of squares of psi.

    Parameters
    ----------
    rows : Rows
        The column.
    mu : float
        The exponent, in units of the logs.
    log_factor : float
        The log of the factor that psi is divided by.
    work : RegressionWork
        Receives `products` and `coef`.
    """
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
    """Replace psi and its derivatives by their residuals in `work.y`, for the block of n rows from `start` on."""
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
    """Evaluate the negative log-likelihood g and its derivatives at the exponent `mu`.

    If `mu`, or the exponent of the negative values, is close to 0, inner products of residuals are computed at a nearby
    exponent and extrapolated by a Taylor expansion.
    """
    beside = exponents_off_zero(mu, rows.both_signs, 2.0 * rows.sigma, _FLOOR)
    log_factor = _log_factor(rows, beside)
    total = _residual_products(rows, beside, log_factor, work)
    if beside != mu:
        taylor_step(mu - beside, work.products, work.coef)
    return evaluate_products(rows, mu, log_factor, total, work.products)


@kernel
def evaluate_products(rows: Rows, mu: float, log_factor: float, total: float, t: FloatArray) -> Evaluation:
    """Compute the negative log-likelihood g and its derivatives from the inner products of residuals.

    Parameters
    ----------
    rows : Rows
        The column.
    mu : float
        The exponent, in units of the logs.
    log_factor : float
        The log of the factor that psi was divided by.
    total : float
        The sum of squares of psi.
    t : (N_MOMENTS,)
        Inner products of residuals.
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
def taylor_step(step: float, t: FloatArray, coef: FloatArray) -> None:
    """Update the inner products of residuals `t` and the coefficients `coef` for a small change of the exponent.

    Both are expanded in Taylor series about the old exponent; `step` is the change.
    """
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
    """Write the Cholesky factor of the Gram matrix of the basis over the rows with values.

    Return False if a pivot is too small for accurate solutions (`_LEAST_PIVOT`). `kept` is 1 for rows with a value, 0
    for missing ones.
    """
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
