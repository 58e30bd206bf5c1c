"""The start of a robust fit by its rule, or by the better of two."""

from __future__ import annotations

from powerkern._jit import LANES, kernel
from powerkern._status import Status
from powerkern.kernels.results import LMBDA, N_EVAL
from powerkern.kernels.robust.column_results import is_unfitted
from powerkern.kernels.robust.options import SAMPLE, Options, Prestandardized, RobustWork, Start, with_rule
from powerkern.kernels.robust.prestandardization import Prescaling
from powerkern.kernels.robust.qq import near_quantiles
from powerkern.kernels.robust.reweighting import refitted
from powerkern.kernels.robust.scan import sampled
from powerkern.kernels.robust.search import find_start, is_lower_below
from powerkern.kernels.robust.weights import inside_of, total_of
from powerkern.kernels.transforms.family import is_mirrored
from powerkern.kernels.transforms.rectified import BOTH, NOT_RECTIFIED, QUARTILES, transform_sorted

_OK = int(Status.OK)
#: By how much the share of values at their quantiles is to be larger for the start that rectifies both sides; and what
#: a value left out counts.
_BETTER, _LEFT_OUT = 0.02, 0.5


@kernel
def started(
    every: Prestandardized, low: float, high: float, family: int, options: Options, work: RobustWork
) -> tuple[Start, Options]:
    """Where a fit begins, and by which rule: BOTH only where its start, if lower, is the better one."""
    chosen = with_rule(options, QUARTILES) if options.rule == BOTH else options
    found = find_start(every, low, high, chosen, work)
    if options.rule != BOTH or is_mirrored(family) or not found.lmbda > 0.0:
        return found, chosen
    better, n_eval = _is_better(every, found.lmbda, family, chosen, options, work)
    n_eval += found.n_eval
    if better:
        found, chosen = find_start(every, low, high, options, work), options
        n_eval += found.n_eval
    return Start(found.lmbda, int(n_eval), found.n_rivals, found.inside, found.value), chosen


@kernel
def _is_better(
    every: Prestandardized, lmbda0: float, family: int, options: Options, rival: Options, work: RobustWork
) -> tuple[bool, float]:
    """Whether the start by another rule, if below `lmbda0`, leaves more values at their quantiles; and evaluations.

    Of long columns a few order statistics are looked at.
    """
    at = sampled(every, options, work) if every.column.n > SAMPLE else every
    if not is_lower_below(at, lmbda0, rival, work):
        return False, float(LANES)
    found = find_start(at, rival.low, rival.high, rival, work)
    if not found.lmbda < lmbda0:
        return False, float(LANES + found.n_eval)
    share, n_eval = _share_at_quantiles(at, lmbda0, family, options, work)
    other, n_more = _share_at_quantiles(at, found.lmbda, family, rival, work)
    return other > share + _BETTER, LANES + found.n_eval + n_eval + n_more


@kernel
def _share_at_quantiles(
    at: Prestandardized, lmbda0: float, family: int, options: Options, work: RobustWork
) -> tuple[float, float]:
    """Share of the values that the fit from `lmbda0` brings to the quantiles of the normal distribution it cuts off.

    A value kept counts 1 - rho of its distance from the quantile of its rank among those kept, another one a half. And
    the evaluations for it.
    """
    n, row = at.column.n, work.trial
    values, none = at.column.x[:n], Prescaling(0.0, 1.0, 1.0, _OK)
    kept = refitted(at, values, family, none, lmbda0, False, options, work, row)
    if is_unfitted(row, kept):
        return 0.0, 0.0
    transform_sorted(at.column, row[LMBDA], NOT_RECTIFIED, at.y)
    left_out = 1.0 - inside_of(at.counts, kept.start, kept.stop) / inside_of(at.counts, 0, n)
    near = near_quantiles(at.y[:n], at.counts, kept.start, kept.stop, kept.cutoff, options.c)
    return near / total_of(at.counts, n) + _LEFT_OUT * left_out, float(row[N_EVAL])
