"""The search for the lambda that minimises the QQ objective, used by `rewml` and `adaptive_rewml`."""

from __future__ import annotations

import math

from powerkern._jit import LANES, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.robust.bracket import minimize_in_bracket
from powerkern.kernels.robust.column import Prestandardized, SearchResult
from powerkern.kernels.robust.options import GLOBAL, Options
from powerkern.kernels.robust.qq_column import qq_value, sample_scores, scan_qq, shrink_cell
from powerkern.kernels.robust.scratch import ALL, RobustWork
from powerkern.kernels.robust.search import VALUE, LocalMinimum, Objective, Search, Stop, brents_minimum


@kernel
def _minimum(
    objective: Objective,
    standardized: Prestandardized,
    cell: FloatArray,
    stop: Stop,
    options: Options,
    work: RobustWork,
) -> LocalMinimum:
    """Find the minimum in a cell: for short columns by evaluating vectors of lambdas, otherwise by Brent's method.

    The arguments are those of `search.brents_minimum`.
    """
    if standardized.column.n <= ALL and cell[VALUE] > -math.inf:
        return minimize_in_bracket(standardized, cell, stop, options, work)
    n_eval = 0
    if LANES * standardized.column.n <= work.lanes.size and cell[VALUE] > -math.inf:
        n_eval = shrink_cell(standardized, cell, options, work)
    optimum = brents_minimum(objective, standardized, cell, stop, options, work)
    return LocalMinimum(optimum.lmbda, optimum.value, optimum.n_eval + n_eval)


QQ_SEARCH = Search(qq_value, sample_scores, scan_qq, _minimum)


@kernel
def evaluate_at_start(
    standardized: Prestandardized, start: SearchResult, options: Options, work: RobustWork
) -> SearchResult:
    """Return a copy of a search result in which `value` is the objective, evaluated at the result's lambda.

    In columns of up to ALL values, the search itself only interpolates the value.

    Parameters
    ----------
    standardized : Prestandardized
        The prestandardised column, with room for its transform.
    start : SearchResult
        The result of the search.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch.
    """
    if standardized.column.n > ALL or options.search != GLOBAL:
        return start
    value = qq_value(standardized, start.lmbda, options, work)
    return SearchResult(start.lmbda, start.n_eval, start.n_rivals, start.inside, value)
