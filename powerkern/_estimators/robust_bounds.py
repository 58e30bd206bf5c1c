"""Results of columns whose lambda was clipped to a bound, for estimators other than maximum likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from powerkern._engine.by_column import measure_columns
from powerkern._engine.gather import Columns
from powerkern._estimators.routes import fit_in_memory
from powerkern._estimators.ties import sort_with_weights
from powerkern._typing import FloatArray, Weights
from powerkern.kernels.location.huber import likelihood_columns, weighted_likelihood_columns
from powerkern.kernels.location.weights import new_frequency_work
from powerkern.kernels.results import (
    CENTER,
    CURVATURE,
    DIVISOR,
    INTERCEPT,
    KEPT_HIGH,
    KEPT_LOW,
    LMBDA,
    LOC,
    LOG_FACTOR,
    N_EVAL,
    N_KEPT,
    N_OBS,
    N_RESULTS,
    NLL,
    REF,
    SCALE,
    SLOPE,
    STATUS,
)
from powerkern.kernels.transforms.family import FORWARD_STANDARDIZED, log_offset
from powerkern.kernels.transforms.gather import APPLY

#: Fields that depend on lambda; all other fields describe the data and the kept interval.
_AT_LAMBDA = [LMBDA, LOC, SCALE, LOG_FACTOR, REF, SLOPE, INTERCEPT, NLL, CURVATURE, STATUS, N_EVAL]


#: Function that corrects location and scale of fits at other lambdas in place. Arguments: the fits, their rescaled
#: columns, the results of the original fit, family, weight.
Rescale: TypeAlias = Callable[[FloatArray, FloatArray, FloatArray, int, Weights], None]


def move_lambda(
    lmbda: FloatArray,
    columns: Columns,
    family: int,
    results: FloatArray,
    weight: Weights,
    n_threads: int,
    *,
    leaves_out_ties: bool = False,
    rescale: Rescale | None = None,
) -> FloatArray:
    """Recompute the results at given lambdas from the values that the fit of each column kept.

    Parameters
    ----------
    lmbda : (p,) ndarray
        The lambdas.
    columns : (n, p) ndarray or AffineView
        The columns that were fitted.
    family : int
        Code of the transform, see `kernels.transforms.family`.
    results : (p, N_RESULTS) ndarray
        The results at the fitted lambdas.
    weight : (n,) ndarray
        Weight of each row; None: all 1.
    n_threads : int
        Maximum number of threads.
    leaves_out_ties : bool
        Leave out a value that has more than half of the weight of its column.
    rescale : callable, optional
        Replaces location and scale by the estimates of the estimator, see `Rescale`. Default: mean and standard
        deviation of the values kept.
    """

    def measure(block: FloatArray, group: slice) -> FloatArray:
        before, lmbdas = results[group].copy(), lmbda[group]
        low, high, center, divisor = before[:, [KEPT_LOW, KEPT_HIGH, CENTER, DIVISOR]].T[:, :, np.newaxis]
        tied = [j for j in range(len(block)) if leaves_out_ties and _leave_out_ties(block[j], weight)]
        block[(block < low) | (block > high)] = np.nan
        kept = (block - center) / divisor
        again = _fit_rows(kept, family, lmbdas, weight)
        if rescale is not None:
            rescale(again, kept, before, family, weight)
        again[:, NLL] += np.log(divisor[:, 0])
        again[np.ix_(tied, [NLL, CURVATURE])] *= (again[tied, N_OBS] / before[tied, N_KEPT])[:, np.newaxis]
        before[:, _AT_LAMBDA] = again[:, _AT_LAMBDA]
        return before

    return measure_columns(measure, columns, N_RESULTS, n_threads)


def rescale_by_ratio(again: FloatArray, kept: FloatArray, before: FloatArray, family: int, weight: Weights) -> None:
    """Multiply the standard deviations in `again` by the original fit's ratio of scale to standard deviation.

    Parameters
    ----------
    again : (p, N_RESULTS) ndarray
        Results at other lambdas, by maximum likelihood of the kept values; changed in place.
    kept : (p, n) ndarray
        The kept values of each column as a row; NaN elsewhere.
    before : (p, N_RESULTS) ndarray
        The results of the original fit.
    family : int
        Code of the transform, see `kernels.transforms.family`.
    weight : (n,) ndarray
        Weight of each row of the data; None: all 1.
    """
    at_lambda_before = _fit_rows(kept, family, before[:, LMBDA], weight)
    restandardize(again, 0.0, _ratio_of_scales(before, at_lambda_before, family))


def rescale_by_huber(again: FloatArray, kept: FloatArray, before: FloatArray, family: int, weight: Weights) -> None:
    """Replace location and scale by the estimates under Huber's least favourable density; see `rescale_by_ratio`."""
    restandardize(again, *huber_of_standardized(kept, family, again, weight))


def _leave_out_ties(column: FloatArray, weight: Weights) -> bool:
    """Replace a value that has more than half of the total weight by NaN, in place; return whether there is one."""
    present = ~np.isnan(column)
    values, which = np.unique(column[present], return_inverse=True)
    weights = np.bincount(which, weights=None if weight is None else weight[present])
    most = int(np.argmax(weights))
    if not weights[most] > 0.5 * weights.sum():
        return False
    column[column == values[most]] = np.nan
    return True


def _ratio_of_scales(results: FloatArray, others: FloatArray, family: int) -> FloatArray:
    """Return the standard deviations of `results` divided by the standard deviations of `others`, at the same lambdas.

    The standard deviations, e^S/slope, may overflow or underflow, so their ratio is computed without them. S is defined
    in `kernels.transforms.yeojohnson_standardized`.
    """
    ref, other_ref = results[:, REF], others[:, REF]
    size, other_size = abs(ref), abs(other_ref)
    lmbda = results[:, LMBDA]
    exponent = np.where((ref < 0.0) | (other_ref < 0.0), 2.0 - lmbda, lmbda)
    log_ratio = exponent * np.log1p((size - other_size) / (log_offset(family) + other_size))
    log_ratio += np.where(ref == 0.0, results[:, LOG_FACTOR], 0.0)
    log_ratio -= np.where(other_ref == 0.0, others[:, LOG_FACTOR], 0.0)
    return np.asarray(others[:, SLOPE] / results[:, SLOPE] * np.exp(log_ratio))


def _fit_rows(rows: FloatArray, family: int, lmbda: FloatArray, weight: Weights) -> FloatArray:
    """Return the results of columns, given as rows, at given lambdas."""
    return fit_in_memory(rows.T, family, np.ascontiguousarray(lmbda), weight, 1)


def huber_of_standardized(rows: FloatArray, family: int, results: FloatArray, weight: Weights) -> FloatArray:
    """Return location and scale of standardised columns under Huber's least favourable density: (2, p).

    Parameters
    ----------
    rows : (p, n) ndarray
        Columns of the data as rows, NaN missing.
    family : int
        Code of the transform, see `kernels.transforms.family`.
    results : (p, N_RESULTS) ndarray
        The results that standardise the rows.
    weight : (n,) ndarray
        Weight of each value of a row; None: all 1.
    """
    z = rows.copy()
    APPLY[family, FORWARD_STANDARDIZED](z, results, np.zeros(len(z), dtype=np.int64))
    present, out = np.count_nonzero(~np.isnan(z), axis=1), np.empty((len(z), 2))
    z, weights = sort_with_weights(z, weight)
    if weights is not None:
        weighted_likelihood_columns(z, weights, present, new_frequency_work(z.shape[1]), out)
    else:
        likelihood_columns(z, present, out)
    return out.T


def restandardize(results: FloatArray, loc: FloatArray | float, scale: FloatArray) -> None:
    """Add `loc` times the scale to the location of each fit, then multiply the scale by `scale`, in place."""
    results[:, LOC] += loc * results[:, SCALE]
    results[:, SCALE] *= scale
    results[:, INTERCEPT] = (results[:, INTERCEPT] - loc) / scale
    results[:, SLOPE] /= scale
