"""The start of reweighted maximum likelihood: by its rule, or by the better of two for Box-Cox."""

from __future__ import annotations

import math

from powerkern._jit import LANES, kernel
from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.location.weights import inside_of, total_of
from powerkern.kernels.results import DEFERRED, LMBDA, N_EVAL, STATUS
from powerkern.kernels.robust.bracket import minimize_in_bracket
from powerkern.kernels.robust.column import Column, Prescaling, Prestandardized, SearchResult
from powerkern.kernels.robust.column_results import is_unfitted
from powerkern.kernels.robust.options import Options, with_rule
from powerkern.kernels.robust.qq import near_quantiles
from powerkern.kernels.robust.qq_column import close_in, is_lower_below, keep_within, qq_value, sample_scores, scan_qq
from powerkern.kernels.robust.reweighting import Fit, n_fits_of, reweighted
from powerkern.kernels.robust.scratch import ALL, SAMPLE, RobustWork
from powerkern.kernels.robust.search import (
    VALUE,
    LocalMinimum,
    Objective,
    Search,
    Stop,
    brents_minimum,
    find_start,
    sampled,
)
from powerkern.kernels.transforms.family import is_mirrored
from powerkern.kernels.transforms.rectified import BOTH, NOT_RECTIFIED, QUARTILES, transform_sorted

_OK = int(Status.OK)
#: By how much the share of values at their quantiles is to be larger for the start that rectifies both sides; and what
#: a value left out counts.
_BETTER, _LEFT_OUT = 0.02, 0.5


@kernel
def _minimum(
    objective: Objective, at: Prestandardized, cell: FloatArray, stop: Stop, options: Options, work: RobustWork
) -> LocalMinimum:
    """Return the minimum in a cell: by vectors of lambdas in a short column, or else by Brent's method."""
    if at.column.n <= ALL and cell[VALUE] > -math.inf:
        return minimize_in_bracket(at, cell, stop, options, work)
    n_eval = 0
    if LANES * at.column.n <= work.lanes.size and cell[VALUE] > -math.inf:
        n_eval = close_in(at, cell, options, work)
    found = brents_minimum(objective, at, cell, stop, options, work)
    return LocalMinimum(found.lmbda, found.value, found.n_eval + n_eval)


_SEARCH = Search(qq_value, sample_scores, scan_qq, _minimum)


@kernel
def initial_lambda(fit: Fit, column: Column, options: Options, work: RobustWork) -> tuple[SearchResult, Options]:
    """Where a fit begins, and by which rule: BOTH only where its start, if lower, is the better one.

    `work.trial` has the status DEFERRED where a trial fit was left.
    """
    at, low, high = column.standardized, options.low, options.high
    work.trial[STATUS] = _OK
    chosen = with_rule(options, QUARTILES, options.adaptive) if options.rule == BOTH else options
    found = find_start(_SEARCH, at, low, high, ALL, chosen, work)
    if options.rule != BOTH or is_mirrored(column.family) or not found.lmbda > 0.0:
        return found, chosen
    better, n_eval = _is_better(fit, at, found.lmbda, column.family, options, work)
    n_eval += found.n_eval
    if better:
        found, chosen = find_start(_SEARCH, at, low, high, ALL, options, work), options
        n_eval += found.n_eval
    return SearchResult(found.lmbda, int(n_eval), found.n_rivals, found.inside, found.value), chosen


@kernel
def _is_better(
    fit: Fit, full_column: Prestandardized, lmbda0: float, family: int, options: Options, work: RobustWork
) -> tuple[bool, float]:
    """Whether the start by BOTH, if below `lmbda0`, leaves more values at their quantiles; and evaluations.

    Both are followed without adaptive cut-offs. Of long columns a few order statistics are looked at.
    """
    plain, rival = with_rule(options, QUARTILES, False), with_rule(options, BOTH, False)
    at = sampled(_SEARCH, full_column, options, work) if full_column.column.n > SAMPLE else full_column
    if not is_lower_below(at, lmbda0, rival, work):
        return False, float(LANES)
    found = find_start(_SEARCH, at, rival.low, rival.high, ALL, rival, work)
    if not found.lmbda < lmbda0:
        return False, float(LANES + found.n_eval)
    column = Column(at.column.x[: at.column.n], family, Prescaling(0.0, 1.0, 1.0, _OK), at)
    share, n_eval = _share_at_quantiles(fit, column, lmbda0, plain, work)
    if work.trial[STATUS] == DEFERRED:
        return False, n_eval
    other, n_more = _share_at_quantiles(fit, column, found.lmbda, rival, work)
    return other > share + _BETTER, LANES + found.n_eval + n_eval + n_more


@kernel
def _share_at_quantiles(
    fit: Fit, column: Column, lmbda0: float, options: Options, work: RobustWork
) -> tuple[float, float]:
    """Share of the values that the fit from `lmbda0` brings to the quantiles of the normal distribution it cuts off.

    A value kept counts 1 - rho of its distance from the quantile of its rank among those kept, another one a half. And
    the evaluations for it.
    """
    at, n, row = column.standardized, column.standardized.column.n, work.trial
    kept = reweighted(keep_within, fit, column, lmbda0, max(n_fits_of(options), 1), options, work, row)
    if is_unfitted(row, kept):
        return 0.0, 0.0
    transform_sorted(at.column, row[LMBDA], NOT_RECTIFIED, at.y)
    left_out = 1.0 - inside_of(at.counts, kept.start, kept.stop) / inside_of(at.counts, 0, n)
    near = near_quantiles(at.y[:n], at.counts, kept.start, kept.stop, kept.cutoff, options.c)
    return near / total_of(at.counts, n) + _LEFT_OUT * left_out, float(row[N_EVAL])
