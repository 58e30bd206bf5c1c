"""Maximum likelihood of a response given covariates: the power that makes its residuals normal.

Columns one at a time: fits, profiles of the likelihood, and intervals.
"""

from __future__ import annotations

import math

from powerkern._jit import COLUMN, INTEGER, ROWS, entry, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import EPS
from powerkern.kernels.elementary.exp import exp
from powerkern.kernels.likelihood.logs import offset_log, refusal, scan
from powerkern.kernels.likelihood.optimum import Optimum, exponent_of, write_fit
from powerkern.kernels.likelihood.score import b
from powerkern.kernels.likelihood.score_formulas import YY
from powerkern.kernels.regression.likelihood import DESIGN, MORE, WORK, Design, RegressionWork, evaluate
from powerkern.kernels.regression.response import ResponseColumn, prepare
from powerkern.kernels.regression.search import GROWTH, MAX_EVAL, LambdaOptimum, ResponseOptimum, search_minimum
from powerkern.kernels.results import BAD_RANK, write_identity, write_range
from powerkern.kernels.status_codes import EXACT, FIXED, OK, ROUTE_TWO_PASS

#: Powers that span less than e to this, and their squares, neither overflow nor underflow.
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
    """Write results, and coefficients on the basis in units of the residual scale, psi relative to the reference's."""
    rows, at, mu = column.rows, search.found.at, search.found.mu
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
        search.found.n_eval, search.status,
    )  # fmt: skip
    write_fit(row, best, column.sign, ROUTE_TWO_PASS, given)
    direction = -1.0 if column.sign < 0.0 else 1.0
    for k in range(rows.basis.shape[0]):
        coef[k] = direction * work.coef[0, k] / scale


@kernel
def _is_moderate(column: ResponseColumn, mu: float) -> bool:
    """Return whether every power is less than e^300 times the reference's, and the reference's is not tiny."""
    rows = column.rows
    growth = mu * (rows.high if mu > 0.0 else rows.low)
    t = mu / rows.sigma * offset_log(column.offset, column.reference)
    return growth < _MODERATE and t > -_MODERATE


@kernel
def _exponent(column: ResponseColumn, lmbda: float) -> float:
    """Return the exponent m = lambda or 2 - lambda of a column, times the unit of its logs."""
    return exponent_of(lmbda, column.sign) * column.rows.sigma


@kernel
def _regress_column(
    x: FloatArray, design: Design, family: int, lmbda: float, work: RegressionWork, row: FloatArray, extra: FloatArray
) -> None:
    """Fit one column into `row`; write the ends of the scan and the coefficients on the basis to `extra`."""
    found = scan(x, None)
    status = refusal(found, family)
    if status == OK and found.n <= design.basis.shape[0]:
        status = BAD_RANK
    extra[:] = math.nan
    write_range(row, found.weight, found.low, found.high)
    if status != OK:
        write_identity(row, status)
        return
    column, good = prepare(x, found, family, design, work)
    write_range(row, column.rows.weight, found.low, found.high)
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
    """Fit the rows of `columns`, each one column of the user's matrix made contiguous.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows, NaN missing.
    design : Design
        The covariates.
    family : int
        BOX_COX or YEO_JOHNSON.
    lmbda : (p,)
        Lambdas at which to regress; NaN: search.
    work : RegressionWork
        Scratch.
    out : (p, N_RESULTS)
        Receives the results.
    extra : (p, 2 + q)
        Receives the ends of the scan, and coefficients on the basis.
    """
    for j in range(columns.shape[0]):
        _regress_column(columns[j], design, family, lmbda[j], work, out[j], extra[j])


# --- profiles and intervals -------------------------------------------------------------------------

#: At the ends of intervals this is the relative error of the drop, or this many roundings of g.
_END_ERROR, _ROUNDINGS = 1e-12, 8.0


@kernel
def _drop_point(column: ResponseColumn, start: float, drop: float, side: float, work: RegressionWork) -> float:
    """Find the first point on one side at which g exceeds g(start) by `drop`, searching with growing steps."""
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
    """Evaluate g of the fitted rows of `columns`, each at its row of `lmbdas`.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows, NaN missing.
    design : Design
        The covariates.
    family : int
        BOX_COX or YEO_JOHNSON.
    lmbdas : (p, k)
        Where to evaluate.
    work : RegressionWork
        Scratch.
    out : (p, k)
        Receives g.
    """
    for j in range(columns.shape[0]):
        column, _ = prepare(columns[j], scan(columns[j], None), family, design, work)
        log_reference = offset_log(column.offset, column.reference) if column.sign != 0.0 else 0.0
        for k in range(lmbdas.shape[1]):
            at = evaluate(column.rows, _exponent(column, lmbdas[j, k]), work)
            out[j, k] = at.g + log_reference


@entry((ROWS, DESIGN, INTEGER, ROWS, WORK, ROWS))
def interval_columns(
    columns: FloatArray, design: Design, family: int, at: FloatArray, work: RegressionWork, out: FloatArray
) -> None:
    """For each fitted column, find the two lambdas at which g exceeds g(at[:, 0]) by at[:, 1].

    Parameters
    ----------
    columns : (p, n)
        Columns as rows, NaN missing.
    design : Design
        The covariates.
    family : int
        BOX_COX or YEO_JOHNSON.
    at : (p, 2)
        The best lambda of each column, and the drop.
    work : RegressionWork
        Scratch.
    out : (p, 2)
        Receives the lower and the upper end.
    """
    for j in range(columns.shape[0]):
        column, _ = prepare(columns[j], scan(columns[j], None), family, design, work)
        mu, sigma = _exponent(column, at[j, 0]), column.rows.sigma
        for k in range(2):
            end = _drop_point(column, mu, at[j, 1], 2.0 * k - 1.0, work) / sigma
            side = 1 - k if column.sign < 0.0 else k
            out[j, side] = exponent_of(end, column.sign)
