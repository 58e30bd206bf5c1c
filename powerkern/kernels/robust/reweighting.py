"""Reweighted maximum likelihood: fits to the values within the cut-off, as often as asked."""

from __future__ import annotations

import math
from collections.abc import Callable

from powerkern._jit import kernel
from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import EPS
from powerkern.kernels.elementary.log import log
from powerkern.kernels.results import LMBDA, N_EVAL, STATUS, is_identity
from powerkern.kernels.robust.lane_batch import N_WIDER
from powerkern.kernels.robust.loc_scale import LocScale
from powerkern.kernels.robust.options import UNTIL_SETTLED, Options, Prestandardized, RobustWork
from powerkern.kernels.robust.order_statistics import position_of
from powerkern.kernels.robust.prestandardization import Prescaling
from powerkern.kernels.robust.refit import Fit, Kept, values_kept
from powerkern.kernels.robust.weights import Counts, outside_of, total_of, unit_of
from powerkern.kernels.transforms.rectified import NOT_RECTIFIED

_OK = int(Status.OK)
_NOT_SETTLED = int(Status.NOT_SETTLED)
#: Reweighting steps until the values kept settle.
MAX_TURNS = 50
#: Steps in which the cut-off is widened, N_WIDER times; and how clearly (`excess_beyond`) there are to be more values
#: beyond it for wider ones not to be taken.
WIDER, EXCESS = 0.5, 2.3

#: The values kept at a lambda of a column: (column, lambda, rule, adaptive, options, work). The transform of all of
#: them stays in `column.y`.
Keep = Callable[[Prestandardized, float, int, bool, Options, RobustWork], Kept]


# --- the values within the cut-off ----------------------------------------------------------------------


@kernel
def within_cutoff(y: FloatArray, estimate: LocScale, cutoff: float, lmbda: float, rule: int) -> Kept:
    """The sorted values with ``|y - loc| <= cutoff scale``."""
    reach, start, stop = cutoff * estimate.scale, 0, 0
    if 0.0 < reach < math.inf:
        start, stop = _within(y, estimate.loc, reach)
    return Kept(start, stop, estimate.loc, estimate.scale, lmbda, rule, cutoff, 0.0, 0.0)


@kernel
def _within(y: FloatArray, loc: float, reach: float) -> tuple[int, int]:
    """Where the sorted values with ``|y - loc| <= reach`` begin and end."""
    # the smallest number above reach: those at the cut-off itself are kept
    return position_of(y, loc, -reach, 0), position_of(y, loc, reach * (1.0 + EPS), y.size)


@kernel
def adapted_cutoff(y: FloatArray, counts: Counts | None, estimate: LocScale, cutoff: float) -> float:
    """The cut-off, from `cutoff` up, beyond which there are most clearly more values than of a normal sample.

    The widest, N_WIDER steps of WIDER further out, where there are not clearly more beyond any.
    """
    n = total_of(counts, y.size) / unit_of(counts)
    chosen, most = cutoff + N_WIDER * WIDER, EXCESS
    for k in range(N_WIDER):
        trial = cutoff + k * WIDER
        start, stop = _within(y, estimate.loc, trial * estimate.scale)
        below, above = outside_of(counts, start, stop, y.size)
        excess = excess_beyond(trial, (below + above) / unit_of(counts), n)
        if excess > most:
            chosen, most = trial, excess
    return chosen


@kernel
def excess_beyond(cutoff: float, outside: float, n: float) -> float:
    """How clearly more than a normal sample of n has are `outside` a cut-off: twice it is about chi-square, 0 if fewer.

    The log-likelihood ratio of a Poisson count.
    """
    expected = n * math.erfc(cutoff / math.sqrt(2.0))
    return outside * log(outside / expected) - (outside - expected) if outside > expected else 0.0


# --- steps --------------------------------------------------------------------------------------------


@kernel
def n_fits_of(options: Options) -> int:
    """The number of reweighting steps, at most."""
    return MAX_TURNS if options.n_reweight == UNTIL_SETTLED else options.n_reweight


@kernel
def reweighted(
    keep: Keep,
    fit: Fit,
    at: Prestandardized,
    x: FloatArray,
    family: int,
    prescaling: Prescaling,
    lmbda0: float,
    n_turns: int,
    n_plain: int,
    options: Options,
    work: RobustWork,
    row: FloatArray,
) -> Kept:
    """Maximum likelihood on the values kept, alternating with the choice of what is kept; ends with their moments.

    The first cut is made by `options.first_rule`: on the rectified transform outliers stand out. The values kept are
    those of the last fit; in a turn beyond the fits that were asked for, those within the cut-off at the last lambda.
    The cut-off is as given in `n_plain` turns, and adaptive after them. What `fit` leaves is left.
    """
    power, n_fits = prescaling.power, n_fits_of(options)
    lmbda, status, n_eval = lmbda0, float(_OK), 0.0
    row[LMBDA], row[STATUS] = lmbda0 / power, status
    last = kept = values_kept(0, 0)
    settled = False
    for turn in range(n_turns):
        rule = options.first_rule if turn == 0 and n_fits > 0 else NOT_RECTIFIED
        kept = keep(at, lmbda, rule, turn >= n_plain, options, work)
        settled = _same_values(kept, last)
        if kept.stop - kept.start < 2 or settled:
            break
        given = row[LMBDA] if turn == n_fits else math.nan
        fit(at, x, family, prescaling, kept, lmbda, given, work, row)
        n_eval += row[N_EVAL]
        if is_identity(row) or row[STATUS] < 0.0:
            break
        row[STATUS] = status = status if given == given else row[STATUS]
        lmbda, last = row[LMBDA] * power, kept
    row[N_EVAL] = n_eval
    if row[STATUS] == _OK and options.n_reweight == UNTIL_SETTLED and not settled:
        row[STATUS] = _NOT_SETTLED
    return kept


@kernel
def _same_values(kept: Kept, last: Kept) -> bool:
    return kept.start == last.start and kept.stop == last.stop and kept.below == last.below and kept.above == last.above
