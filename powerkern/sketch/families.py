"""Choose the better of the two families for each column of data in chunks.

Each family is fitted separately, Box-Cox only to columns of positive values. As in `_fit.best_family`, the families are
compared on the values that both fits keep. The likelihood is computed from power sums, which are exact, and other
criteria from counts between quantiles of the fitted normal distribution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from powerkern._fit.best_family import box_cox_is_better as better_of_two
from powerkern._fit.best_family import kept_by_both
from powerkern._input import lazy_scipy_special as special
from powerkern._input.choices import LIKELIHOOD
from powerkern._results.normality import ESTIMATED, moments_matrix
from powerkern._typing import BoolArray, FloatArray
from powerkern.kernels.normality.moments import PPCC
from powerkern.kernels.results import (
    CENTER,
    DIVISOR,
    LMBDA,
    N_OBS,
    NLL,
    X_MAX,
    X_MIN,
    is_identity,
)
from powerkern.kernels.transforms.family import FAMILIES, INVERSE_STANDARDIZED
from powerkern.kernels.transforms.gather import APPLY
from powerkern.sketch.engine import Passes
from powerkern.sketch.grids import Range
from powerkern.sketch.order import Bins, equal_points
from powerkern.sketch.passes import BinsPass, sum_kept_values

#: Standardised values between which values are counted for their correlation with normal quantiles.
_STEPS = np.linspace(-8.0, 8.0, 1025)
#: Sums of weights stay below 2**_BITS quanta.
_BITS = 60


# --- the values that both keep -------------------------------------------------------------------------------------


class _Compared(NamedTuple):
    """Fits of one family to the values that the fits of both families keep.

    Attributes
    ----------
    passes : Passes
        Reads the chunks.
    ranges : Range
        Ranges of all p columns.
    chosen : (p,) ndarray of bool
        The k columns to compare: those in which both fits keep some values.
    intervals : (k, 5) ndarray
        The intervals of these values, as in `KeptPass`.
    family : int
        Code of the family.
    rows : (k, N_RESULTS) ndarray
        Results for these values, at the lambda of the fit.
    """

    passes: Passes
    ranges: Range
    chosen: BoolArray
    intervals: FloatArray
    family: int
    rows: FloatArray


def box_cox_is_better(
    passes: Passes,
    ranges: Range,
    chosen: BoolArray,
    box_cox: FloatArray,
    yeo_johnson: FloatArray,
    criterion: str,
    keeps_all: bool,
    n_threads: int,
) -> BoolArray:
    """Return a mask, (k,), of the chosen columns for which Box-Cox is better by the criterion.

    Parameters
    ----------
    passes : Passes
        Reads the chunks.
    ranges : Range
        Ranges of all columns.
    chosen : (p,) ndarray of bool
        The k columns to compare.
    box_cox, yeo_johnson : (k, N_RESULTS) ndarray
        Results of both families for the chosen columns.
    criterion : str
        As in `powerkern.fit`.
    keeps_all : bool
        Whether both fits keep all values.
    n_threads : int
        Maximum number of threads.
    """
    low, high = kept_by_both(box_cox, yeo_johnson)
    low, high = np.maximum(low, box_cox[:, X_MIN]), np.minimum(high, box_cox[:, X_MAX])

    families = (("box-cox", box_cox), ("yeo-johnson", yeo_johnson))

    def compared(asked: BoolArray) -> BoolArray:
        better, both = np.zeros_like(asked), asked & (low < high)
        if both.any():
            own = np.zeros_like(chosen)
            own[np.flatnonzero(chosen)[both]] = True
            better[both] = np.less(*(distance(name, fit[both], both, own) for name, fit in families))
        return better[asked]

    def distance(family: str, fit: FloatArray, both: BoolArray, own: BoolArray) -> FloatArray:
        intervals = np.column_stack([low[both], high[both], fit[:, [CENTER, DIVISOR]], np.full(len(fit), np.nan)])
        zones, quantum = np.full((len(fit), 2, 3), np.nan), np.zeros(len(fit), np.int64)
        kept = sum_kept_values(passes, ranges, own, family, intervals, zones, quantum)
        rows = kept.sketch._power_sums().fit(fit[:, LMBDA].copy(), n_threads)[0]
        return _DISTANCES[criterion](_Compared(passes, ranges, own, intervals, FAMILIES[family], rows))

    return better_of_two(box_cox, yeo_johnson, None if criterion == LIKELIHOOD and keeps_all else compared)


def _mean_nll(of: _Compared) -> FloatArray:
    """Return the negative log-likelihood per value, for each column."""
    mean: FloatArray = of.rows[:, NLL] + np.log(of.intervals[:, 3])
    return mean


def _pearson(of: _Compared) -> FloatArray:
    """Return `_results.normality.pearson_normality` of each column, from the counts in the classes of the test."""
    n = of.rows[:, N_OBS]
    classes = np.ceil(2.0 * n**0.4).astype(np.int64)
    ends = [
        special.ndtri(np.arange(1, k) / k) * np.sqrt(each / max(each - 1.0, 1.0))
        for k, each in zip(classes, n, strict=True)
    ]
    found = np.full(n.size, np.nan)
    for j, counts in enumerate(_count_in_bins(of, ends).weights()):
        if classes[j] > ESTIMATED and not is_identity(of.rows[j]):
            expected = n[j] / classes[j]
            found[j] = ((counts**2).sum() / expected - n[j]) / (classes[j] - ESTIMATED)
    return found


def _minus_ppcc(of: _Compared) -> FloatArray:
    """Return minus the correlation of each transformed column with normal quantiles.

    It is computed from points that represent the values in bins.
    """
    found = np.full(len(of.rows), np.nan)
    for j, cells in enumerate(_count_in_bins(of, [_STEPS] * len(of.rows)).cells()):
        if cells.rows.size > 1 and not is_identity(of.rows[j]):
            x, w, _ = equal_points(cells)
            scaled = (x - of.intervals[j, 2]) / of.intervals[j, 3]
            found[j] = -moments_matrix(scaled[:, None], of.family, of.rows[j : j + 1], w, 1)[0, 1, PPCC]
    return found


def _count_in_bins(of: _Compared, ends: list[FloatArray]) -> Bins:
    """Count the values that both families keep, in bins given on the standardised scale.

    Parameters
    ----------
    of : _Compared
        The fits of one family.
    ends : list of ndarray
        For each column, ascending edges of the bins as standardised transformed values.
    """
    low, high, center, divisor = of.intervals[:, :4].T
    edges = []
    for j, z in enumerate(ends):
        x = z[None].copy()
        APPLY[of.family, INVERSE_STANDARDIZED](x, of.rows[j : j + 1].copy(), np.zeros(1, dtype=np.int64))
        inside = center[j] + divisor[j] * x[0]
        inside = inside[(low[j] < inside) & (inside <= high[j])]  # NaN is beyond the range of the transform
        edges.append(np.unique([low[j], *inside, np.nextafter(high[j], np.inf)]))
    own = of.chosen
    quantum = np.frexp(of.ranges.n_obs[own])[1].astype(np.int64) - _BITS
    return of.passes(BinsPass, edges=edges, quantum=quantum, shift=of.ranges.shift[own], chosen=own)


_DISTANCES: dict[str, Callable[[_Compared], FloatArray]] = {
    LIKELIHOOD: _mean_nll,
    "ppcc": _minus_ppcc,
    "pearson": _pearson,
}
