"""Reweighted maximum likelihood (RewML).

How a column is fitted, once it is prestandardised (`kernels.robust.fit`):

1. `kernels.robust.search` minimises the bisquare QQ distance of the rectified transform ([1]_, section 2.3) over
   lambda: of short columns and samples by vectors of lambdas (`qq_column`, `bracket`), of longer columns by Brent's
   method. Box-Cox starts by the better of two rules (`kernels.robust.start`).
2. `kernels.robust.reweighting` fits the values within the cut-off by maximum likelihood, as often as asked; the first
   cut-off is on the rectified transform, or on the plain one ([1]_, eq. (16)).

References
----------
.. [1] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning 113, 2024,
   4953-4975.
"""

from __future__ import annotations

import math

from powerkern._jit import kernel
from powerkern._typing import FloatArray
from powerkern.kernels.location.huber import sd_within
from powerkern.kernels.location.order_statistics import position_of
from powerkern.kernels.location.weights import inside_of, unit_of
from powerkern.kernels.results import DEFERRED, LMBDA, N_EVAL, STATUS
from powerkern.kernels.robust.column import Column, Prestandardized, SearchResult
from powerkern.kernels.robust.column_results import (
    FAR,
    FAR_NUMBER,
    FAR_SHARE,
    is_finished,
    write_column,
    write_kept,
    write_tail,
)
from powerkern.kernels.robust.fit import Criterion, entries_of
from powerkern.kernels.robust.options import GLOBAL, Options
from powerkern.kernels.robust.qq_column import keep_within, one_step, qq_value, scores_of
from powerkern.kernels.robust.reweighting import Fit, KeptRange, n_fits_of, reweighted
from powerkern.kernels.robust.scratch import ALL, RobustWork
from powerkern.kernels.robust.start import initial_lambda
from powerkern.kernels.transforms.rectified import BOTH, transform_sorted


@kernel
def _fit(fit: Fit, column: Column, options: Options, work: RobustWork, row: FloatArray) -> None:
    """Fit a prestandardised column into its row of results, or leave it."""
    x, prescaling, at = column.x, column.prescaling, column.standardized
    found, chosen = initial_lambda(fit, column, options, work)
    if work.trial[STATUS] == DEFERRED:
        row[STATUS] = DEFERRED
        return
    kept = reweighted(keep_within, fit, column, found.lmbda, max(n_fits_of(chosen), 1), chosen, work, row)
    if is_finished(x, at.counts, kept, row):
        return
    below, value = at.column.below, found.value
    if at.column.n <= ALL and options.search == GLOBAL:  # the search returns the minimum of a cubic or of a parabola
        value = qq_value(at, found.lmbda, chosen, work)
    row[N_EVAL] += found.n_eval
    found = SearchResult(found.lmbda, found.n_eval, found.n_rivals, found.inside, value)
    write_column(x, at.counts, below, prescaling, found, row)
    write_tail(_keeps_far_tail(at, row[LMBDA] * prescaling.power, kept), row)
    write_kept(x, at.counts, below, prescaling, kept, scale_factor(0.0, 0.0, kept.cutoff), chosen, row)


@kernel
def scale_factor(n_kept: float, share: float, cutoff: float) -> float:
    """Consistency factor of the standard deviation of the values kept, for normal data."""
    return 1.0 / sd_within(cutoff)


@kernel
def _keeps_far_tail(at: Prestandardized, lmbda: float, kept: KeptRange) -> bool:
    """Whether all values on one side were kept, and many of them are far out on the transform rectified there."""
    n = at.column.n
    if kept.stop <= kept.start or (kept.start > 0 and kept.stop < n):
        return False
    transform_sorted(at.column, lmbda, BOTH, at.y)
    y = at.y[:n]
    estimate = one_step(y, at.counts)
    reach = FAR * estimate.scale
    if not 0.0 < reach < math.inf:
        return False
    low = inside_of(at.counts, 0, position_of(y, estimate.loc, -reach, 0)) if kept.start == 0 else 0.0
    high = inside_of(at.counts, position_of(y, estimate.loc, reach, n), n) if kept.stop == n else 0.0
    return max(low, high) >= max(FAR_NUMBER * unit_of(at.counts), FAR_SHARE * inside_of(at.counts, 0, n))


ENTRIES = entries_of(__name__, Criterion(scores_of, qq_value, keep_within, _fit, _keeps_far_tail), scale_factor, True)
