"""Sorting of columns with their weights, and fits of columns in which more than half of the values are equal.

Such columns are fitted without the tied value. It is transformed like any other value, and kept if it is within the
cut-off.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from powerkern._status import Route, Status, is_failed
from powerkern._typing import FloatArray, Weights
from powerkern.kernels.results import (
    CURVATURE,
    KEPT_HIGH,
    KEPT_LOW,
    N_KEPT,
    N_OBS,
    NLL,
    ROUTE,
    STATUS,
    X_MAX,
    X_MIN,
)

#: Function that fits sorted columns (rows, NaN last), with their weights or None.
Fit = Callable[[FloatArray, FloatArray | None], FloatArray]


def sort_with_weights(block: FloatArray, weight: Weights) -> tuple[FloatArray, FloatArray | None]:
    """Sort the rows of a block, NaN last; return the sorted rows, and the weights in the order of each row.

    Values of zero weight become NaN.

    Parameters
    ----------
    block : (p, n) ndarray
        Columns as rows; overwritten.
    weight : (n,) ndarray or None
        Weight of each value of a row; None: all 1, and None is returned for the weights.
    """
    if weight is None:
        block.sort(axis=1)  # numpy's is vectorised and releases the GIL
        return block, None
    block[:, weight == 0.0] = np.nan
    order = np.argsort(block, axis=1)
    return np.take_along_axis(block, order, axis=1), weight[order]


def fit_beyond_ties(fit: Fit, columns: FloatArray, weights: FloatArray | None, out: FloatArray) -> None:
    """Refit columns whose spread is zero because of a tied value, without this value, and replace their results.

    Parameters
    ----------
    fit : function
        Fits sorted columns with their weights; returns their results.
    columns : (k, n) ndarray
        Sorted columns as rows, NaN last.
    weights : (k, n) ndarray or None
        Weights of these values; None: all 1.
    out : (k, N_RESULTS) ndarray
        The results of the columns; changed in place.
    """
    rows = np.flatnonzero(out[:, STATUS] == Status.NO_SPREAD)
    if rows.size == 0:
        return
    others, weights_of_others, ties, tied = without_ties(columns, weights, rows)
    found = fit(others, weights_of_others)
    fitted = ~is_failed(found[:, STATUS]) & (found[:, STATUS] >= 0)
    found[:, [N_OBS, X_MIN, X_MAX]] = out[rows][:, [N_OBS, X_MIN, X_MAX]]
    all_kept = ~np.isin(found[:, ROUTE], (Route.REFIT, Route.REFIT_BOTH_SIDES))
    found[all_kept, KEPT_LOW], found[all_kept, KEPT_HIGH] = found[all_kept, X_MIN], found[all_kept, X_MAX]
    count_ties(found, ties, tied)
    out[rows[fitted]] = found[fitted]


def count_ties(results: FloatArray, ties: FloatArray, tied: FloatArray) -> None:
    """Add tied values to results of fits without them, in place; tied values within the cut-off count as kept.

    Parameters
    ----------
    results : (k, N_RESULTS) ndarray
        The results.
    ties : (k,) ndarray
        The tied value of each column.
    tied : (k,) ndarray
        Total weight of the tied value of each column.
    """
    inside = (results[:, KEPT_LOW] <= ties) & (ties <= results[:, KEPT_HIGH])
    n_fitted = results[:, N_KEPT].copy()
    all_kept = n_fitted + np.where(inside, tied, 0.0)
    results[:, N_KEPT] = np.minimum(all_kept, results[:, N_OBS])  # two sums of the same weights may be rounded apart
    results[:, [NLL, CURVATURE]] *= (n_fitted / results[:, N_KEPT])[:, np.newaxis]  # sums over the values fitted
    settled = np.isin(results[:, STATUS], (Status.OK, Status.SCANNED, Status.BRACKETED, Status.MULTIMODAL))
    results[settled, STATUS] = Status.TIED


def without_ties(
    columns: FloatArray, weights: FloatArray | None, rows: NDArray[np.intp]
) -> tuple[FloatArray, FloatArray | None, FloatArray, FloatArray]:
    """Remove the tied value, which is the median, from the columns at positions `rows`.

    Parameters
    ----------
    columns : (p, n) ndarray
        Sorted columns as rows, NaN last.
    weights : (p, n) ndarray or None
        Weights of the values; None: all 1.
    rows : (k,) ndarray
        Positions of the columns to take.

    Returns
    -------
    (k, n) ndarray, (k, n) ndarray or None, (k,) ndarray, (k,) ndarray
        The other values, NaN last; their weights (None if there are none); the tied value; its total weight.
    """
    x = columns[rows]
    w = np.ones(x.shape) if weights is None else weights[rows]
    w = np.where(np.isnan(x), 0.0, w)
    cumulated = np.cumsum(w / np.maximum(w.max(axis=1, keepdims=True), np.finfo(float).tiny), axis=1)
    middle = np.count_nonzero(cumulated < 0.5 * cumulated[:, -1:], axis=1)
    ties = np.take_along_axis(x, middle[:, np.newaxis], axis=1)
    equal = x == ties
    x[equal] = np.nan
    order = np.argsort(np.isnan(x), axis=1, kind="stable")
    tied = np.sum(w, axis=1, where=equal)
    others = np.take_along_axis(x, order, axis=1)
    return others, None if weights is None else np.take_along_axis(w, order, axis=1), ties[:, 0], tied
