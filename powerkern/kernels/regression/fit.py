"""Fit lambda of a response by maximum likelihood, under a linear model of the transformed response in covariates.

The entries compute fits, likelihood profiles and likelihood intervals; each processes one column after the other.
"""

from __future__ import annotations

import math

from powerkern._jit import COLUMN, INTEGER, ROWS, entry, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import EPS
from powerkern.kernels.elementary.exp import exp
from powerkern.kernels.likelihood.logs import offset_log, refusal, summarize_values
from powerkern.kernels.likelihood.optimum import Optimum, exponent_of, write_fit
from powerkern.kernels.likelihood.score import b
from powerkern.kernels.likelihood.score_formulas import YY
from powerkern.kernels.regression.likelihood import DESIGN, MORE, WORK, Design, RegressionWork, evaluate
from powerkern.kernels.regression.response import ResponseColumn, prepare
from powerkern.kernels.regression.search import GROWTH, MAX_EVAL, LambdaOptimum, ResponseOptimum, search_minimum
from powerkern.kernels.results import BAD_RANK, write_identity, write_range
from powerkern.kernels.status_codes import EXACT, FIXED, OK, ROUTE_TWO_PASS

#: Largest |log| of powers whose squares neither overflow nor underflow.
_MODERATE = 300.0


@kernel
def _write(
    column: ResponseColumn,
    search: ResponseOptimum,
    given: float,
    work: RegressionWork,
    row: FloatArray,
    coef: FloatArray,
) -> None:
    """Write the results of a fit, and the coefficients of the regression on the basis vectors of the design.

    The response of this regression is the transformed column minus the transform of the reference. The coefficients are
    in units of the residual scale.

    Parameters
    ----------
    column : ResponseColumn
        The column.
    search : ResponseOptimum
        The result of the search for lambda.
    given : float
        The given lambda; NaN if lambda was fitted.
    work : RegressionWork
        Holds the products of residuals and the coefficients at the optimum.
    row : (N_RESULTS,)
        Receives the results.
    coef : (q,)
        Receives the coefficients of the q basis vectors.
    """
    rows, at, mu = column.rows, search.optimum.at, search.optimum.mu
    sigma, log_factor = rows.sigma, at.log_factor
    origin, mean, factor = 0.0, 0.0, log_factor
    scale = math.sqrt(max(work.products[YY], 0.0) / rows.weight)
    if search.status == EXACT:
        squares = 0.0
        for k in range(work.coef.shape[1]):
            squares += work.coef[0, k] * work.coef[0, k]
        scale = max(scale, 16.0 * EPS * math.sqrt(squares))
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
        search.optimum.n_eval, search.status,
    )  # fmt: skip
    write_fit(row, best, column.sign, ROUTE_TWO_PASS, given)
    direction = -1.0 if column.sign < 0.0 else 1.0
    for k in range(rows.basis.shape[0]):
        coef[k] = direction * work.coef[0, k] / scale


@kernel
def _is_moderate(column: ResponseColumn, mu: float) -> bool:
    """Return whether powers with exponent `mu` can be squared in float64.

    The log of the reference's power must be greater than -300. The log of any other power may exceed it by at most 300.
    """
    rows = column.rows
    growth = mu * (rows.high if mu > 0.0 else rows.low)
    t = mu / rows.sigma * offset_log(column.offset, column.reference)
    return growth < _MODERATE and t > -_MODERATE


@kernel
def _exponent(column: ResponseColumn, lmbda: float) -> float:
    """Convert lambda to the exponent of the transform, in units of the logs of a column."""
    return exponent_of(lmbda, column.sign) * column.rows.sigma


@kernel
def _regress_column(
    x: FloatArray, design: Design, family: int, lmbda: float, work: RegressionWork, row: FloatArray, extra: FloatArray
) -> None:
    """Fit one column, modelling its transform as a linear combination of the columns of a design.

    Parameters
    ----------
    x : (n,)
        The column, NaN missing.
    design : Design
        The covariates.
    family : int
        BOX_COX or YEO_JOHNSON.
    lmbda : float
        A given lambda; NaN if lambda is to be fitted.
    work : RegressionWork
        Scratch.
    row : (N_RESULTS,)
        Receives the results.
    extra : (2 + q,)
        Receives the smallest and largest lambda evaluated, and the coefficients of the q basis vectors of the design.
    """
    summary = summarize_values(x, None)
    status = refusal(summary, family)
    if status == OK and summary.n <= design.basis.shape[0]:
        status = BAD_RANK
    extra[:] = math.nan
    write_range(row, summary.weight, summary.low, summary.high)
    if status != OK:
        write_identity(row, status)
        return
    column, good = prepare(x, summary, family, design, work)
    write_range(row, column.rows.weight, summary.low, summary.high)
    if not good:
        write_identity(row, BAD_RANK)
        return
    if lmbda == lmbda:
        mu = _exponent(column, lmbda)
        at = evaluate(column.rows, mu, work)
        exact = at.g == -math.inf
        best = ResponseOptimum(LambdaOptimum(mu, at, 1, True), EXACT if exact else FIXED, math.nan, math.nan)
    else:
        best = search_minimum(column, work)
    _write(column, best, lmbda, work, row, extra[2:])
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
    """Fit columns, stored as rows, one by one.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows, NaN missing.
    design : Design
        The covariates.
    family : int
        BOX_COX or YEO_JOHNSON.
    lmbda : (p,)
        Given lambdas; NaN where lambda is to be fitted.
    work : RegressionWork
        Scratch.
    out : (p, N_RESULTS)
        Receives the results.
    extra : (p, 2 + q)
        Receives the smallest and largest lambda evaluated, and the coefficients of the q basis vectors of the design.
    """
    for j in range(columns.shape[0]):
        _regress_column(columns[j], design, family, lmbda[j], work, out[j], extra[j])


# --- profiles and intervals -------------------------------------------------------------------------

#: Tolerance of the increase of g at the ends of intervals: a relative error, or a number of rounding errors of g.
_END_ERROR, _ROUNDINGS = 1e-12, 8.0


@kernel
def _drop_point(column: ResponseColumn, start: float, drop: float, side: float, work: RegressionWork) -> float:
    """Return the nearest exponent on one side of `start` at which g exceeds g(start) by `drop`.

    The result is NaN if none is found in MAX_EVAL + MORE evaluations.

    Parameters
    ----------
    column : ResponseColumn
        The column.
    start : float
        The exponent of the optimum, in units of the logs.
    drop : float
        The increase of g.
    side : float
        1 to search above `start`, -1 below.
    work : RegressionWork
        Scratch.
    """
    rows = column.rows
    low = high = math.nan
    mu, step, lowest = start, math.nan, math.nan
    for _ in range(MAX_EVAL + MORE):
        at = evaluate(rows, mu, work)
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
            step *= GROWTH
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
    """Evaluate the negative log-likelihood g of each column at the lambdas in its row of `lmbdas`.

    The columns are not checked: `regress_columns` must have fitted each without an error.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows, NaN missing.
    design : Design
        The covariates.
    family : int
        BOX_COX or YEO_JOHNSON.
    lmbdas : (p, k)
        The lambdas of each column.
    work : RegressionWork
        Scratch.
    out : (p, k)
        Receives g, the negative log-likelihood per unit of weight.
    """
    for j in range(columns.shape[0]):
        column, _ = prepare(columns[j], summarize_values(columns[j], None), family, design, work)
        log_reference = offset_log(column.offset, column.reference) if column.sign != 0.0 else 0.0
        for k in range(lmbdas.shape[1]):
            at = evaluate(column.rows, _exponent(column, lmbdas[j, k]), work)
            out[j, k] = at.g + log_reference


@entry((ROWS, DESIGN, INTEGER, ROWS, WORK, ROWS))
def interval_columns(
    columns: FloatArray, design: Design, family: int, at: FloatArray, work: RegressionWork, out: FloatArray
) -> None:
    """Find the likelihood interval of lambda for each fitted column.

    The ends of an interval are the two lambdas at which the negative log-likelihood g exceeds its minimum by a given
    amount.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows, NaN missing.
    design : Design
        The covariates.
    family : int
        BOX_COX or YEO_JOHNSON.
    at : (p, 2)
        For each column, the lambda that minimises g, and the increase of g at the ends of the interval.
    work : RegressionWork
        Scratch.
    out : (p, 2)
        Receives the lower and the upper end; NaN for an end that is not found.
    """
    for j in range(columns.shape[0]):
        column, _ = prepare(columns[j], summarize_values(columns[j], None), family, design, work)
        mu, sigma = _exponent(column, at[j, 0]), column.rows.sigma
        for k in range(2):
            end = _drop_point(column, mu, at[j, 1], 2.0 * k - 1.0, work) / sigma
            side = 1 - k if column.sign < 0.0 else k
            out[j, side] = exponent_of(end, column.sign)
