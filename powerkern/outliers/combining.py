"""Combined probabilities of several detectors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powerkern._input import frames
from powerkern._input.arrays import as_choice, as_matrix, as_reals, column_label
from powerkern._typing import FloatArray

COMBINATIONS = ("mean", "median", "maximum", "minimum")


def combine_probabilities(P: object, method: str = "mean", *, weights: ArrayLike | None = None) -> Any:
    """Probability of being an outlier for each row, combined over several detectors.

    Parameters
    ----------
    P : (n, k) array-like
        Probabilities of being an outlier, one column for each detector, as of `outlier_probability`. NaN is missing:
        the other detectors decide.
    method : {"mean", "median", "maximum", "minimum"}, default "mean"
        "mean" [1]_ is as calibrated as its parts; "median" ignores a detector that fails; with "maximum" one detector
        is enough for an outlier, with "minimum" all must agree.
    weights : (k,) array-like, optional
        Weights of the detectors in the mean; default: equal ones.

    Returns
    -------
    (n,) ndarray, or a series with the index of a data frame
        Between the smallest and the largest of the row; NaN if all detectors with positive weight are missing. The
        order of the detectors does not matter.

    Raises
    ------
    ValueError
        Probabilities outside [0, 1], an unknown method, weights that are negative, all 0, or for another method.

    References
    ----------
    .. [1] H.-P. Kriegel, P. Kröger, E. Schubert, A. Zimek, "Interpreting and unifying outlier scores", SDM 2011, 13-24.

    Examples
    --------
    >>> from powerkern.outliers import combine_probabilities
    >>> combine_probabilities([[0.0, 0.5, 1.0], [0.9, 1.0, 1.0]])
    array([0.5 , 0.96666667])
    >>> combine_probabilities([[0.0, 0.5, 1.0]], "maximum")
    array([1.])
    """
    as_choice("method", method, COMBINATIONS)
    matrix = as_matrix(P, what="P")
    p = np.ascontiguousarray(matrix.values, dtype=np.float64)
    outside = (p < 0.0) | (p > 1.0)
    if outside.any():
        i, j = (int(k) for k in np.argwhere(outside)[0])
        raise ValueError(f"P, {column_label(j, matrix.names)}, row {i}: {p[i, j]} is no probability")
    if weights is not None and method != "mean":
        raise ValueError(f"weights are for method='mean'; leave them out with method={method!r}")
    if method == "mean":
        combined = _mean(p, np.ones(p.shape[1]) if weights is None else _weights(weights, p.shape[1]))
    elif method == "median":
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
            combined = np.asarray(np.nanmedian(p, axis=1))
    else:
        combined = np.asarray((np.fmax if method == "maximum" else np.fmin).reduce(p, axis=1))
    return frames.labelled(P, combined)


def _weights(weights: ArrayLike, k: int) -> FloatArray:
    given = as_reals("weights", weights)
    if given.shape != (k,) or not np.isfinite(given).all() or (given < 0.0).any() or not given.any():
        raise ValueError(f"weights must be one number for each of {k} detectors, none negative and not all 0")
    return np.asarray(given / given.max())


def _mean(p: FloatArray, weights: FloatArray) -> FloatArray:
    """Weighted means of rows, summed in ascending order, so that the order of the columns does not matter."""
    share = np.sort(np.where(np.isnan(p), 0.0, weights), axis=1).sum(axis=1)
    total = np.nansum(np.sort(p * weights, axis=1), axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.minimum(total / share, np.fmax.reduce(p, axis=1)))
