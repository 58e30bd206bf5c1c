"""Combine the outlier probabilities of several detectors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from powerkern._input import frames
from powerkern._input.arrays import as_choice, as_matrix, column_label
from powerkern._typing import FloatArray

COMBINATIONS = ("mean", "median", "maximum", "minimum")


def combine_probabilities(P: object, method: str = "mean") -> Any:
    """Combine the outlier probabilities of several detectors into one probability for each row.

    Parameters
    ----------
    P : (n, k) array-like
        Probabilities of being an outlier, one column for each detector, such as those from `outlier_probability`. NaN
        is missing and left out.
    method : {"mean", "median", "maximum", "minimum"}, default "mean"
        "mean" [1]_ is as well calibrated as the detectors are. "median" is robust to a minority of detectors that fail.
        With "maximum", a row is an outlier if one detector says so; with "minimum", only if all do.

    Returns
    -------
    (n,) ndarray, or a series with the index of a data frame
        Combined probabilities, between the smallest and the largest probability of the row; NaN if all are missing. The
        order of the detectors does not matter.

    Raises
    ------
    ValueError
        If a probability is outside [0, 1], or the method is unknown.

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
    p, _ = as_probabilities("P", P, missing=True)
    if method == "mean":
        total = np.nansum(np.sort(p, axis=1), axis=1)  # sorted, so that the sum does not depend on the order of columns
        with np.errstate(invalid="ignore"):
            mean = total / np.count_nonzero(~np.isnan(p), axis=1)
        combined = np.asarray(np.minimum(mean, np.fmax.reduce(p, axis=1)))
    elif method == "median":
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
            combined = np.asarray(np.nanmedian(p, axis=1))
    else:
        combined = np.asarray((np.fmax if method == "maximum" else np.fmin).reduce(p, axis=1))
    return frames.labelled(P, combined)


def as_probabilities(what: str, given: object, *, missing: bool) -> tuple[FloatArray, bool]:
    """Read probabilities, `given`, as a matrix, and return whether they were a vector.

    NaN is accepted only if `missing`. `what` is the name of the argument for messages.
    """
    matrix = as_matrix(given, what=what)
    p = np.ascontiguousarray(matrix.values, dtype=np.float64)
    outside = ~((p >= 0.0) & (p <= 1.0)) & ~(missing & np.isnan(p))
    if outside.any():
        i, j = (int(k) for k in np.argwhere(outside)[0])
        place = what if matrix.was_vector else f"{what}, {column_label(j, matrix.names)}"
        remedy = "" if missing else "; leave out scores without one"
        raise ValueError(f"{place}, row {i}: {p[i, j]} is not a probability{remedy}")
    return p, matrix.was_vector
