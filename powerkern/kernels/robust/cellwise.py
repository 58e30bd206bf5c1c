"""RewML as R's package cellWise computes it.

Lambda is searched by Brent's method, or on a grid. If lambda ends near an end of the interval, the interval is widened
and the search is repeated. The cut-off is the same in every step, variances are divided by n - 1, and the values kept
are those within the cut-off at the last lambda.
"""

from __future__ import annotations

import math

from powerkern._jit import kernel
from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.results import LMBDA, N_EVAL, STATUS
from powerkern.kernels.robust.column import Column, Prestandardized, SearchResult
from powerkern.kernels.robust.column_results import (
    is_finished,
    is_unfitted,
    value_weight,
    weight_kept,
    write_column,
    write_kept,
)
from powerkern.kernels.robust.fit import Criterion, make_entries, no_tail
from powerkern.kernels.robust.options import Options
from powerkern.kernels.robust.qq_column import keep_within, make_scores, qq_value, sample_scores
from powerkern.kernels.robust.reweighting import Fit, kept_by_index, max_fits, reweight
from powerkern.kernels.robust.scratch import SAMPLE, RobustWork
from powerkern.kernels.robust.search import (
    GridScan,
    Search,
    add_minima,
    brents_minimum,
    closer_minima,
    even_points,
    find_start,
    one_by_one,
)

_OK = int(Status.OK)
_NOT_CERTIFIED = int(Status.NOT_CERTIFIED)
#: Largest number of fits, a safeguard; each doubles the distance of one end of the interval from 1.
_MAX_FITS = 20
#: The interval is widened if lambda is closer to an end than this fraction of its length, as in R.
_END = 0.05


@kernel
def _scan(standardized: Prestandardized, low: float, high: float, options: Options, work: RobustWork) -> GridScan:
    """Find cells with local minima on a grid that includes the ends, and on a finer grid around the lowest point.

    The arguments are those of `qq_column.scan_qq`.
    """
    n_points = even_points(_evaluate, standardized, low, high, options, work)
    n_cells = add_minima(n_points, True, 1, work)
    return closer_minima(_evaluate, standardized, n_points, n_cells, options, work)


_evaluate = one_by_one(qq_value)
_SEARCH = Search(qq_value, sample_scores, _scan, brents_minimum)


@kernel
def _fit(fit: Fit, column: Column, options: Options, work: RobustWork, row: FloatArray) -> None:
    """Fit a prestandardised column, or set the status DEFERRED if `fit` cannot fit the values.

    The arguments are those of `rewml._fit`.
    """
    x, prescaling, standardized = column.x, column.prescaling, column.standardized
    low, high, n_eval, n_fits = options.low, options.high, 0.0, max_fits(options)
    start, kept, widened = SearchResult(math.nan, 0, 0, False, math.nan), kept_by_index(0, 0), True
    for _ in range(_MAX_FITS):
        start = find_start(_SEARCH, standardized, low, high, SAMPLE, options, work)
        kept = reweight(keep_within, fit, column, start.lmbda, n_fits + 1, options, work, row)
        n_eval += start.n_eval + row[N_EVAL]
        low, high, widened = _widen(low, high, row[LMBDA] * prescaling.power)
        if is_unfitted(row, kept) or not widened:
            break
    if is_finished(x, standardized.counts, kept, row):
        return
    row[N_EVAL] = n_eval
    if row[STATUS] == _OK and widened:
        row[STATUS] = _NOT_CERTIFIED
    write_column(x, standardized.counts, standardized.column.negative_shift, prescaling, start, row)
    correction = scale_factor(weight_kept(standardized.counts, kept) / value_weight(standardized.counts), 0.0, 0.0)
    write_kept(x, standardized.counts, standardized.column.negative_shift, prescaling, kept, correction, options, row)


@kernel
def _widen(low: float, high: float, lmbda: float) -> tuple[float, float, bool]:
    """Widen the interval if lambda is close to an end; return its ends, and whether it was widened."""
    margin = _END * (high - low)
    if lmbda - low < margin:
        return 1.0 + 2.0 * (low - 1.0), high, True
    if high - lmbda < margin:
        return low, 1.0 + 2.0 * (high - 1.0), True
    return low, high, False


@kernel
def scale_factor(n_kept: float, fraction_kept: float, cutoff: float) -> float:
    """Return the factor that changes a standard deviation with divisor n to one with divisor n - 1.

    Only the number of values kept is used (see `EstimatorEntries.scale_factor`).
    """
    return math.sqrt(n_kept / (n_kept - 1.0))


ENTRIES = make_entries(__name__, Criterion(make_scores, qq_value, keep_within, _fit, no_tail), scale_factor)
