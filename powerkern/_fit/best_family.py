"""The better of the two families, column by column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.apply import transform_matrix
from powerkern._engine.by_column import fit_matrix
from powerkern._estimators.spec import CENTRAL, LIKELIHOOD
from powerkern._results.central_normality import central_matrix
from powerkern._results.normality import moments_matrix, pearson_normality
from powerkern._status import Status, is_failed
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.kernels.normality.moments import PPCC
from powerkern.kernels.results import CENTER, DIVISOR, KEPT_HIGH, KEPT_LOW, LMBDA, NLL, STATUS
from powerkern.kernels.transforms.family import BOX_COX, FORWARD_STANDARDIZED, YEO_JOHNSON

#: A p-value below this says that the central part is not normal.
_LEVEL = 0.05
#: Columns compared at a time when both families are fitted robustly.
_COMPARED = 64


def best_family(
    fitted_as: Callable[[int], FloatArray],
    values: NDArray[Any],
    weight: FloatArray,
    robust: bool,
    criterion: str,
    n_threads: int,
) -> tuple[FloatArray, IntArray]:
    """Results of the family that is better by the criterion, column by column, and its code."""
    results, other = fitted_as(YEO_JOHNSON), fitted_as(BOX_COX)

    def compared(at: BoolArray) -> BoolArray:
        distance = _DISTANCES[criterion]
        return _box_cox_is_nearer(values, weight, np.flatnonzero(at), other[at], results[at], distance, n_threads)

    better = box_cox_is_better(other, results, compared if robust or criterion != LIKELIHOOD else None)
    families = np.full(len(results), YEO_JOHNSON)
    families[better] = BOX_COX
    results[better] = other[better]
    return results, families


def box_cox_is_better(
    box_cox: FloatArray, yeo_johnson: FloatArray, compared: Callable[[BoolArray], BoolArray] | None
) -> BoolArray:
    """Whether Box-Cox is the better family, column by column: where it alone has a fit, or compares better.

    ``compared(at)`` decides the columns of a mask, which both families fit; None: the larger likelihood.
    """
    found = (box_cox[:, STATUS] >= 0) & ~is_failed(box_cox[:, STATUS])
    better: BoolArray = found & is_failed(yeo_johnson[:, STATUS])
    both = found & ~better
    if compared is None:
        return better | both & (box_cox[:, NLL] < yeo_johnson[:, NLL])
    if both.any():
        better[both] = compared(both)
    return better


def kept_by_both(box_cox: FloatArray, yeo_johnson: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest value that both fits keep, by which they are compared."""
    low, high = (
        pick(box_cox[:, end], yeo_johnson[:, end]) for pick, end in ((np.maximum, KEPT_LOW), (np.minimum, KEPT_HIGH))
    )
    return low, high


def _box_cox_is_nearer(
    values: NDArray[Any],
    weight: FloatArray,
    at: NDArray[np.intp],
    box_cox: FloatArray,
    yeo_johnson: FloatArray,
    distance: Callable[[NDArray[Any], int, FloatArray, FloatArray, int], FloatArray],
    n_threads: int,
) -> BoolArray:
    """Whether the values of columns that both fits keep are nearer to normal by Box-Cox."""
    better = np.zeros(at.size, dtype=np.bool_)
    low, high = kept_by_both(box_cox, yeo_johnson)
    for start in range(0, at.size, _COMPARED):
        part = slice(start, start + _COMPARED)
        x = values[:, at[part]].astype(np.float64)
        x[~((x >= low[part]) & (x <= high[part]))] = np.nan
        by_box_cox = distance(x, BOX_COX, box_cox[part], weight, n_threads)
        better[part] = by_box_cox < distance(x, YEO_JOHNSON, yeo_johnson[part], weight, n_threads)
    return better


def _nll(values: NDArray[Any], family: int, results: FloatArray, weight: FloatArray, n_threads: int) -> FloatArray:
    """Negative log-likelihood of the values, an observation, with the lambdas of their fits."""
    center, divisor, lmbda = results[:, CENTER], results[:, DIVISOR], np.ascontiguousarray(results[:, LMBDA])
    return fit_matrix((values - center) / divisor, family, lmbda, weight, n_threads)[:, NLL] + np.log(divisor)


def _bend(values: NDArray[Any], family: int, results: FloatArray, weight: FloatArray, n_threads: int) -> FloatArray:
    """Minus the correlation of transformed values with normal quantiles."""
    return -moments_matrix(values, family, results, weight, n_threads)[:, 1, PPCC]


def _pearson(values: NDArray[Any], family: int, results: FloatArray, weight: FloatArray, n_threads: int) -> FloatArray:
    """`pearson_normality` of transformed columns."""
    z = np.empty_like(values)
    transform_matrix(values, z, np.full(len(results), family), FORWARD_STANDARDIZED, results, n_threads)
    return np.array([pearson_normality(column, weight) for column in z.T])


def _off_center(
    values: NDArray[Any], family: int, results: FloatArray, weight: FloatArray, n_threads: int
) -> FloatArray:
    """The statistic of `central_matrix` of transformed columns."""
    return central_matrix(values, family, results, weight, n_threads).statistic


#: The measures of how far from normal columns are, once transformed, by the names of criteria.
_DISTANCES = {LIKELIHOOD: _nll, CENTRAL: _off_center, "ppcc": _bend, "pearson": _pearson}


def leave_alone(
    results: FloatArray, families: IntArray, values: NDArray[Any], weight: FloatArray, n_threads: int
) -> None:
    """Set lambda to 1 where the central part of a column is nearer to normal as it is, or not normal transformed."""
    fitted = ~is_failed(results[:, STATUS]) & (results[:, STATUS] >= 0)
    left = np.zeros(len(results), dtype=np.bool_)
    for code in (BOX_COX, YEO_JOHNSON):
        at = np.flatnonzero(fitted & (families == code))
        if at.size:
            before, after = (
                central_matrix(values[:, at], family, results[at], weight, n_threads) for family in (None, code)
            )
            left[at] = (after.pvalue < _LEVEL) | (before.statistic <= after.statistic)
    at = np.flatnonzero(left)
    if at.size:
        results[at] = fit_matrix(values[:, at], YEO_JOHNSON, np.ones(at.size), weight, n_threads)
        results[at, STATUS], families[at] = Status.LEFT_AS_IT_IS, YEO_JOHNSON
