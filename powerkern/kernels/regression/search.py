"""Find the lowest minimum of g for a response given covariates: evaluate a grid, then take Halley steps in brackets.

g is not convex. If the model fits closely, g behaves like a logarithm. S = |P psi|^2 e^(-2 lambda J) has the same
minima and is nearly a parabola (symbols as in `powerkern.kernels.regression.likelihood`). The derivative of S is
therefore evaluated on a grid; its sign changes bracket the minima, and Halley steps find its roots.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import kernel
from powerkern._typing import FloatArray
from powerkern.kernels.likelihood.score_formulas import YY, has_root_near
from powerkern.kernels.optimize.newton import NewtonState, newton_step
from powerkern.kernels.optimize.status import CONVERGED, RUNNING
from powerkern.kernels.regression.likelihood import (
    MORE,
    N_GRID,
    STEPS,
    Evaluation,
    RegressionWork,
    Rows,
    evaluate,
    evaluate_products,
    taylor_step,
)
from powerkern.kernels.regression.response import ResponseColumn
from powerkern.kernels.status_codes import AT_END, EXACT, MULTIMODAL, NOT_CERTIFIED, SCANNED

#: Step of the grid in units of 1/(standard deviation of the logs), and factor by which steps grow after the first
#: `STEPS`. Steps of 0.25 and 1, and factors of 1.25 and 3, find the same minima in 60 simulated columns
#: (report_constants regression).
_STEP, GROWTH = 0.5, 1.5
#: Longest last step, divided by the square root of the unexplained fraction; the truncation error of the Taylor
#: expansion is then as small as a rounding error. With half, double and ten times this, lambda changes by at most
#: 4e-13, 4e-13 and 1e-11 (same report).
_SHORT = 2e-4
#: Largest number of evaluations of a search, a safeguard. 15 gives the same results (same report).
MAX_EVAL = 60
#: Indices of the rows of the grid.
_MU, _G, _D1 = range(3)


class _Scanned(NamedTuple):
    """Result of evaluating g on a grid of exponents: the range of points, and the numbers of minima and exact fits."""

    first: int  #: index of the first point evaluated
    last: int  #: index of the last point evaluated
    n_minima: int  #: number of sign changes that enclose a minimum
    n_exact: int  #: number of points at which the fit is exact
    n_eval: int


@kernel
def _scan(rows: Rows, center: float, spread: float, work: RegressionWork) -> _Scanned:
    """Evaluate the negative log-likelihood g on a grid about `center`, and beyond either end while g decreases.

    The distance between grid points is _STEP/`spread`, where `spread` is the standard deviation of the logs. Beyond the
    ends of the grid the distances grow. Points and values are written to `work.grid`.
    """
    grid, step = work.grid, _STEP / spread
    middle = STEPS + MORE
    first, last = middle - STEPS, middle + STEPS
    for k in range(first, last + 1):
        _evaluate_point(rows, center + (k - middle) * step, k, work)
    wide = step
    while grid[_D1, first] > 0.0 and first > 0:
        wide *= GROWTH
        first -= 1
        _evaluate_point(rows, grid[_MU, first + 1] - wide, first, work)
    wide = step
    while grid[_D1, last] < 0.0 and last < N_GRID - 1:
        wide *= GROWTH
        last += 1
        _evaluate_point(rows, grid[_MU, last - 1] + wide, last, work)
    n_minima = n_exact = 0
    for i in range(first, last + 1):
        n_exact += grid[_G, i] == -math.inf
        n_minima += i < last and _encloses(grid, i, last)
    return _Scanned(first, last, n_minima, n_exact, last - first + 1)


@kernel
def _evaluate_point(rows: Rows, mu: float, k: int, work: RegressionWork) -> None:
    """Evaluate the negative log-likelihood g at `mu`; write mu, g and the derivative to column k of `work.grid`."""
    at = evaluate(rows, mu, work)
    work.grid[_MU, k], work.grid[_G, k], work.grid[_D1, k] = mu, at.g, at.d1


@kernel
def _encloses(grid: FloatArray, i: int, last: int) -> bool:
    """Return whether the derivative of g changes from negative to positive just after grid point i.

    The next point is skipped if the fit at that point is exact. If the fits at all later points are exact, this is an
    artefact of rounding, and the result is False. `last` is the index of the last point evaluated.
    """
    after = i + 2 if grid[_D1, i + 1] == 0.0 and i + 1 < last else i + 1
    return bool(grid[_D1, i] < 0.0 < grid[_D1, after])


class LambdaOptimum(NamedTuple):
    """A minimum of the negative log-likelihood g. The coefficients at the minimum are in `RegressionWork`."""

    mu: float  #: the exponent, in units of the logs
    at: Evaluation  #: g and derivatives at `mu`
    n_eval: int
    certified: bool


@kernel
def _descend(
    rows: Rows, start: float, low: float, high: float, max_step: float, rough: bool, work: RegressionWork
) -> LambdaOptimum:
    """Find a root of the derivative of the negative log-likelihood in [low, high] by Halley steps.

    Parameters
    ----------
    rows : Rows
        The column, or a sample of it.
    start : float
        The exponent to start from.
    low : float
        Lower end of the bracket.
    high : float
        Upper end of the bracket.
    max_step : float
        Longest step.
    rough : bool
        Whether a step below `max_step`/100 ends the search. This suffices if another search starts from the result.
    work : RegressionWork
        Scratch; holds coefficients and products of residuals at the root.
    """
    state = NewtonState(start, math.nan, low, high, math.inf, math.nan, max_step, 0.0, 0, MAX_EVAL, RUNNING)
    mu = start
    while True:
        mu = state.x
        at = evaluate(rows, mu, work)
        state = newton_step(state, at.d1, at.d2, at.d3)
        step = state.x - mu
        short = 1e-2 * max_step if rough else _SHORT * math.sqrt(min(at.unexplained, 1.0))
        if abs(step) <= short or state.status != RUNNING:
            break
    certified = has_root_near(at.d1, at.d2, at.d3) and state.status in (RUNNING, CONVERGED)
    if at.unexplained > 0.0 and not rough:
        total = work.products[YY] / at.unexplained
        taylor_step(step, work.products, work.coef)
        at = evaluate_products(rows, mu + step, at.log_factor, total, work.products)
    return LambdaOptimum(mu + step, at, state.n_eval, certified)


class ResponseOptimum(NamedTuple):
    """The lowest minimum of the negative log-likelihood, its status, and the exponents at the ends of the grid."""

    optimum: LambdaOptimum
    status: int
    low: float
    high: float


@kernel
def search_minimum(column: ResponseColumn, work: RegressionWork) -> ResponseOptimum:
    """Find the lowest minimum of the negative log-likelihood of a response.

    The grid is evaluated on a sample of the rows, and its minimum refined on all rows. If the sample has no minimum,
    several minima or an exact fit, or if refining fails, the grid is evaluated on all rows.
    """
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
        optimum = LambdaOptimum(best.mu, best.at, n_eval, best.certified)
        return ResponseOptimum(optimum, status if best.certified else NOT_CERTIFIED, low, high)


@kernel
def _without_minimum(rows: Rows, scanned: _Scanned, n_eval: int, work: RegressionWork) -> ResponseOptimum:
    """Return the lowest grid point of a scan that found no minimum, or lambda = 1 if all fits were exact.

    Parameters
    ----------
    rows : Rows
        The column.
    scanned : _Scanned
        The result of the scan.
    n_eval : int
        Number of evaluations so far.
    work : RegressionWork
        Holds the grid.
    """
    grid = work.grid
    low, high = grid[_MU, scanned.first], grid[_MU, scanned.last]
    exact = scanned.n_exact == scanned.last - scanned.first + 1
    mu, lowest = rows.sigma, math.inf
    for k in range(scanned.first, scanned.last + 1):
        if not exact and -math.inf < grid[_G, k] < lowest:
            mu, lowest = grid[_MU, k], grid[_G, k]
    optimum = LambdaOptimum(mu, evaluate(rows, mu, work), n_eval + 1, False)
    return ResponseOptimum(optimum, EXACT if exact else AT_END, low, high)


@kernel
def _lowest(
    part: Rows, rows: Rows, scanned: _Scanned, sampled: bool, max_step: float, work: RegressionWork
) -> tuple[LambdaOptimum, int]:
    """Find the lowest of the minima enclosed by grid points, and its status.

    Parameters
    ----------
    part : Rows
        The rows on which the grid was evaluated.
    rows : Rows
        All rows.
    scanned : _Scanned
        The result of the scan; the points are in `work.grid`.
    sampled : bool
        Whether `part` is a sample. Searches over all rows then start from its minima.
    max_step : float
        Longest step of a search.
    work : RegressionWork
        Receives coefficients and products of residuals at the minimum.
    """
    grid, n_eval, last_mu = work.grid, 0, math.nan
    best = LambdaOptimum(0.0, Evaluation(math.inf, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), 0, False)
    for k in range(scanned.first, scanned.last):
        if not _encloses(grid, k, scanned.last):
            continue
        low, high = grid[_MU, k], grid[_MU, k + 1 if grid[_D1, k + 1] > 0.0 else k + 2]
        optimum = _descend(part, _secant(grid, k), low, high, max_step, sampled, work)
        n_eval += optimum.n_eval
        if sampled:
            optimum = _descend(rows, optimum.mu, -math.inf, math.inf, max_step, False, work)
            n_eval += optimum.n_eval
        best = optimum if optimum.at.g < best.at.g else best
        last_mu = optimum.mu
    if best.mu != last_mu:  # `work` holds the coefficients of another minimum
        best = LambdaOptimum(best.mu, evaluate(rows, best.mu, work), best.n_eval, best.certified)
    exact = best.at.g == -math.inf
    status = EXACT if exact else MULTIMODAL if scanned.n_minima > 1 else SCANNED
    return LambdaOptimum(best.mu, best.at, n_eval, best.certified or exact), status


@kernel
def _secant(grid: FloatArray, k: int) -> float:
    """Return the zero of the linear interpolant of the derivative of g between grid points k and k + 1.

    The result is at least a tenth of the interval away from both points. If the fit at point k + 1 is exact, the result
    is point k + 1 instead.
    """
    a, c = grid[_MU, k], grid[_MU, k + 1]
    if grid[_D1, k + 1] == 0.0:
        return float(c)
    fraction = grid[_D1, k] / (grid[_D1, k] - grid[_D1, k + 1])
    return float(a + min(max(fraction, 0.1), 0.9) * (c - a))
