"""Maximum likelihood for matrices with censored cells.

Columns without censored cells are fitted by `powerkern._estimators.routes`, so that their results do not change by a
bit when another column has censored cells.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.censored import fit_censored_matrix, interval_censored_matrix, profile_censored_matrix
from powerkern._engine.gather import Columns
from powerkern._estimators.power_sums import no_censored_results
from powerkern._estimators.routes import find_intervals, maximize_likelihood, profile_likelihood
from powerkern._typing import BoolArray, FloatArray, Weights
from powerkern.kernels.results import N_RESULTS


def has_censored(ends: FloatArray) -> BoolArray:
    """Return a mask of the columns that have at least one censored cell.

    `ends` holds the second ends of the intervals of censored cells, and NaN for observed cells; see `Matrix.ends`.
    """
    return np.asarray((ends == ends).any(axis=0))


def _split(is_censored: BoolArray) -> tuple[slice | NDArray[np.intp] | None, slice | NDArray[np.intp] | None]:
    """Return an index of the columns with censored cells, and an index of the columns without.

    An index that selects no column is None. An index that selects all columns is a slice, which avoids a copy.
    """
    at, rest = np.flatnonzero(is_censored), np.flatnonzero(~is_censored)
    everything = slice(None)
    return (
        None if not at.size else at if rest.size else everything,
        None if not rest.size else rest if at.size else everything,
    )


def maximize_censored_likelihood(
    values: Columns,
    ends: Columns,
    is_censored: BoolArray,
    family: int,
    lmbda: FloatArray,
    weight: Weights,
    n_threads: int,
    progress: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """Fit every column by maximum likelihood, or compute the results at given lambdas.

    Parameters
    ----------
    values, ends : (n, p) ndarray or AffineView
        The matrix, and the second ends of the intervals of censored cells; see `Matrix.ends`.
    is_censored : (p,) ndarray of bool
        Columns with censored cells. All other columns are fitted by `maximize_likelihood`.
    family, lmbda, weight, n_threads, progress
        As for `maximize_likelihood`.

    Returns
    -------
    (p, N_RESULTS) ndarray, (p, N_CENSORED_FIELDS) ndarray
        The fields of `kernels.results`, and the fields of `kernels.censored.fit`.
    """
    p = values.shape[1]
    results, censored = np.empty((p, N_RESULTS)), no_censored_results(p)
    at, rest = _split(is_censored)
    if at is not None:
        results[at], censored[at] = fit_censored_matrix(
            values[:, at], ends[:, at], family, lmbda[at], weight, n_threads, progress
        )
    if rest is not None:
        results[rest] = maximize_likelihood(values[:, rest], family, lmbda[rest], weight, n_threads, progress)
    return results, censored


def profile_censored_likelihood(
    values: Columns,
    ends: Columns,
    is_censored: BoolArray,
    family: int,
    lmbdas: FloatArray,
    weight: Weights,
    n_threads: int,
) -> FloatArray:
    """Return the negative profile log-likelihood of every column at every lambda, per unit of weight: (p, k).

    Parameters
    ----------
    values, ends, is_censored, family, weight, n_threads
        As for `maximize_censored_likelihood`.
    lmbdas : (k,) ndarray
        The lambdas.
    """
    out = np.empty((values.shape[1], lmbdas.size))
    at, rest = _split(is_censored)
    if at is not None:
        out[at] = profile_censored_matrix(values[:, at], ends[:, at], family, lmbdas, weight, n_threads)
    if rest is not None:
        out[rest] = profile_likelihood(values[:, rest], family, lmbdas, weight, n_threads)
    return out


def find_censored_intervals(
    values: Columns,
    ends: Columns,
    is_censored: BoolArray,
    family: int,
    lmbda: FloatArray,
    drop: FloatArray,
    weight: Weights,
    n_threads: int,
) -> FloatArray:
    """Return the likelihood intervals of lambda: (p, 2).

    At the two ends of the interval the negative profile log-likelihood per unit of weight exceeds its minimum by
    `drop`.

    Parameters
    ----------
    values, ends, is_censored, family, weight, n_threads
        As for `maximize_censored_likelihood`.
    lmbda : (p,) ndarray
        The maximum likelihood estimate of each column.
    drop : (p,) ndarray
        Difference between the maximum of the log-likelihood per unit of weight and its value at the ends.
    """
    out = np.empty((values.shape[1], 2))
    at, rest = _split(is_censored)
    if at is not None:
        out[at] = interval_censored_matrix(values[:, at], ends[:, at], family, lmbda[at], drop[at], weight, n_threads)
    if rest is not None:
        out[rest] = find_intervals(values[:, rest], family, lmbda[rest], drop[rest], weight, n_threads)
    return out
