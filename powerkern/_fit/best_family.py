"""Choice of the better family for each column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.apply import transform_matrix
from powerkern._estimators.base import ColumnSpec, Estimator, Run
from powerkern._estimators.routes import fit_in_memory
from powerkern._input.arrays import Matrix
from powerkern._input.choices import CENTRAL, LIKELIHOOD
from powerkern._results.central_normality import central_matrix
from powerkern._results.normality import moments_matrix, pearson_normality
from powerkern._status import Status, is_failed
from powerkern._typing import BoolArray, FloatArray, IntArray, Weights
from powerkern.kernels.normality.moments import PPCC
from powerkern.kernels.results import CENTER, DIVISOR, KEPT_HIGH, KEPT_LOW, LMBDA, NLL, STATUS
from powerkern.kernels.transforms.family import BOX_COX, FORWARD_STANDARDIZED, YEO_JOHNSON

#: Level of the test of central normality: with a p-value below it, the central part is not normal.
_LEVEL = 0.05
#: Number of columns compared at a time when both families are fitted robustly.
_COMPARED = 64


class BestOf(NamedTuple):
    """Fits every column with both families and keeps the better fit.

    It runs after the fits, whose results it compares, and is therefore not an `Estimator`.
    """

    estimator: Estimator
    criterion: str

    def fit_columns(self, matrix: Matrix, requested: ColumnSpec, run: Run) -> tuple[FloatArray, IntArray]:
        """Fit every column with both families; return the results and the code of the better family of each column."""
        results, other = (self.estimator.fit_columns(matrix, code, requested, run) for code in (YEO_JOHNSON, BOX_COX))
        values, weight = matrix.values, matrix.weight

        def compared(at: BoolArray) -> BoolArray:
            distance = _DISTANCES[self.criterion]
            return _box_cox_is_nearer(
                values, weight, np.flatnonzero(at), other[at], results[at], distance, run.n_threads
            )

        by_likelihood = self.criterion == LIKELIHOOD and not self.estimator.is_robust
        better = box_cox_is_better(other, results, None if by_likelihood else compared)
        families = np.full(len(results), YEO_JOHNSON)
        families[better] = BOX_COX
        results[better] = other[better]
        if self.criterion == CENTRAL:
            keep_untransformed(results, families, values, weight, run.n_threads)
        return results, families


def box_cox_is_better(
    box_cox: FloatArray, yeo_johnson: FloatArray, compared: Callable[[BoolArray], BoolArray] | None
) -> BoolArray:
    """Return a mask of the columns that only Box-Cox can fit, or that Box-Cox fits better.

    Parameters
    ----------
    box_cox, yeo_johnson : (p, N_RESULTS) ndarray
        The results of both families.
    compared : function or None
        Takes a mask of columns; returns, for each column in it, whether Box-Cox fits better. None: compare likelihoods.
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
    """Return two (p,) arrays: the ends of the interval of values that both fits keep, in which they are compared."""
    low, high = (
        pick(box_cox[:, end], yeo_johnson[:, end]) for pick, end in ((np.maximum, KEPT_LOW), (np.minimum, KEPT_HIGH))
    )
    return low, high


def _box_cox_is_nearer(
    values: NDArray[Any],
    weight: Weights,
    at: NDArray[np.intp],
    box_cox: FloatArray,
    yeo_johnson: FloatArray,
    distance: Callable[[NDArray[Any], int, FloatArray, Weights, int], FloatArray],
    n_threads: int,
) -> BoolArray:
    """Return a mask of the columns whose central values, which both fits keep, are closer to normal under Box-Cox.

    Parameters
    ----------
    values : (n, p) ndarray
        The data.
    weight : (n,) ndarray or None
        Weight of each row; None: all 1.
    at : (k,) ndarray
        Positions of the columns to compare.
    box_cox, yeo_johnson : (k, N_RESULTS) ndarray
        The results of both families for these columns.
    distance : function
        Measures how far from normal transformed columns are: an entry of `_DISTANCES`.
    n_threads : int
        Maximum number of threads.
    """
    better = np.zeros(at.size, dtype=np.bool_)
    low, high = kept_by_both(box_cox, yeo_johnson)
    for start in range(0, at.size, _COMPARED):
        part = slice(start, start + _COMPARED)
        x = values[:, at[part]].astype(np.float64)
        x[~((x >= low[part]) & (x <= high[part]))] = np.nan
        by_box_cox = distance(x, BOX_COX, box_cox[part], weight, n_threads)
        better[part] = by_box_cox < distance(x, YEO_JOHNSON, yeo_johnson[part], weight, n_threads)
    return better


def _nll(values: NDArray[Any], family: int, results: FloatArray, weight: Weights, n_threads: int) -> FloatArray:
    """Return the negative log-likelihood per observation of every column at the lambda of its fit: (p,).

    Parameters
    ----------
    values : (n, p) ndarray
        The columns.
    family : int
        Code of the transform, see `kernels.transforms.family`.
    results : (p, N_RESULTS) ndarray
        The results of their fits.
    weight : (n,) ndarray
        Weight of each row; None: all 1.
    n_threads : int
        Maximum number of threads.
    """
    center, divisor, lmbda = results[:, CENTER], results[:, DIVISOR], np.ascontiguousarray(results[:, LMBDA])
    return fit_in_memory((values - center) / divisor, family, lmbda, weight, n_threads)[:, NLL] + np.log(divisor)


def _minus_ppcc(values: NDArray[Any], family: int, results: FloatArray, weight: Weights, n_threads: int) -> FloatArray:
    """Return minus the correlation of transformed values with normal quantiles; arguments as in `_nll`."""
    return -moments_matrix(values, family, results, weight, n_threads)[:, 1, PPCC]


def _pearson(values: NDArray[Any], family: int, results: FloatArray, weight: Weights, n_threads: int) -> FloatArray:
    """Return `pearson_normality` of the transformed columns; arguments as in `_nll`."""
    z = np.empty_like(values)
    transform_matrix(values, z, np.full(len(results), family), FORWARD_STANDARDIZED, results, n_threads)
    return np.array([pearson_normality(column, weight) for column in z.T])


def _central_statistic(
    values: NDArray[Any], family: int, results: FloatArray, weight: Weights, n_threads: int
) -> FloatArray:
    """Return the statistic of `central_matrix` for the transformed columns; arguments as in `_nll`."""
    return central_matrix(values, family, results, weight, n_threads).statistic


#: Functions that measure how far from normal the transformed columns are, by the name of the criterion.
_DISTANCES = {LIKELIHOOD: _nll, CENTRAL: _central_statistic, "ppcc": _minus_ppcc, "pearson": _pearson}


def keep_untransformed(
    results: FloatArray, families: IntArray, values: NDArray[Any], weight: Weights, n_threads: int
) -> None:
    """Set lambda to 1 in columns whose center the transform does not make more normal.

    A column is left untransformed if the test of central normality rejects the transformed column, or if the statistic
    of the test is no larger for the untransformed column.

    Parameters
    ----------
    results : (p, N_RESULTS) ndarray
        The results of the fit; changed in place.
    families : (p,) ndarray of int
        The family of each column; set to Yeo-Johnson for untransformed columns.
    values : (n, p) ndarray
        The data.
    weight : (n,) ndarray
        Weight of each row; None: all 1.
    n_threads : int
        Maximum number of threads.
    """
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
        results[at] = fit_in_memory(values[:, at], YEO_JOHNSON, np.ones(at.size), weight, n_threads)
        results[at, STATUS], families[at] = Status.LEFT_AS_IT_IS, YEO_JOHNSON
