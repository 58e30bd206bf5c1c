"""Call kernels for columns with censored cells, in groups of columns on several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from powerkern._engine.by_column import for_each_group
from powerkern._engine.gather import NO_WEIGHTS, BlockScratch, Columns, FitScratch, contiguous_columns
from powerkern._typing import FloatArray, Weights
from powerkern.kernels.censored.fit import (
    N_CENSORED_FIELDS,
    fit_censored_columns,
    interval_censored_columns,
    profile_censored_columns,
)
from powerkern.kernels.censored.scratch import CensoredWork, new_censored_work
from powerkern.kernels.likelihood.scratch import Work
from powerkern.kernels.results import N_RESULTS


class _CensoredScratch(threading.local):
    """Scratch for censored columns of `n` values, separate for each thread.

    It is reallocated only for a column with more censored cells, since using new memory pages takes as long as a fit.
    """

    def __init__(self, n: int) -> None:
        self._n, self._most = n, -1
        self._work: CensoredWork | None = None

    def work(self, most_censored: int) -> CensoredWork:
        """Return scratch for columns with at most `most_censored` censored cells."""
        if self._work is None or self._most < most_censored:
            self._most = min(self._n, most_censored + most_censored // 8 + 8)
            self._work = new_censored_work(self._n, self._most)
        return self._work


def _on_censored_columns(
    function: Callable[[FloatArray, FloatArray, slice, Work, CensoredWork], None],
    values: Columns,
    ends: Columns,
    n_threads: int,
    progress: bool = False,
) -> None:
    """Call a function for every group of columns with censored cells, on several threads.

    Parameters
    ----------
    function : callable
        Called with contiguous columns, the other ends of their intervals, the slice of their indices, and scratch space
        for likelihoods and for censored cells.
    values : (n, p) ndarray or AffineView
        The matrix.
    ends : (n, p) ndarray or AffineView
        The other end of the interval of each cell (see `fit_censored_matrix`).
    n_threads : int
        Maximum number of threads.
    progress : bool
        Show a progress bar.
    """
    n = values.shape[0]
    scratch, beside, censored_work = FitScratch(n), BlockScratch(), _CensoredScratch(n)

    def job(group: slice) -> None:
        columns = contiguous_columns(values, group, scratch)
        others = contiguous_columns(ends, group, beside)
        most = max((int(np.count_nonzero(each == each)) for each in others), default=0)  # axis=1 is three times slower
        function(columns, others, group, scratch.work, censored_work.work(most))

    for_each_group(job, values.shape, n_threads, progress)


def fit_censored_matrix(
    values: Columns,
    ends: Columns,
    family: int,
    lmbda: FloatArray,
    weight: Weights,
    n_threads: int,
    progress: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """Fit every column by maximum likelihood, or evaluate the likelihood at given lambdas.

    Parameters
    ----------
    values : (n, p) ndarray or AffineView
        The matrix.
    ends : (n, p) ndarray or AffineView
        The other end of the interval of each censored cell; -inf for cells below and inf for cells above the value in
        `values`, NaN for observed values.
    family : int
        A code of `kernels.transforms.family`.
    lmbda : (p,) ndarray
        Given lambdas; NaN where lambda is to be fitted.
    weight : (n,) ndarray or None
        Weights of the rows; None: all one.
    n_threads : int
        Maximum number of threads.
    progress : bool
        Show a progress bar.

    Returns
    -------
    (p, N_RESULTS) ndarray, (p, N_CENSORED_FIELDS) ndarray
        The fields of `kernels.results`, and those of `kernels.censored.fit`.
    """
    p = values.shape[1]
    out, censored = np.empty((p, N_RESULTS)), np.empty((p, N_CENSORED_FIELDS))
    given = NO_WEIGHTS if weight is None else weight

    def fit(columns: FloatArray, others: FloatArray, group: slice, work: Work, censored_work: CensoredWork) -> None:
        fit_censored_columns(
            columns, others, given, family, lmbda[group], work, censored_work, out[group], censored[group]
        )

    _on_censored_columns(fit, values, ends, n_threads, progress)
    return out, censored


def profile_censored_matrix(
    values: Columns, ends: Columns, family: int, lmbdas: FloatArray, weight: Weights, n_threads: int
) -> FloatArray:
    """Return minus the profile log-likelihood per unit of weight of every column at every lambda, as an array (p, k).

    Parameters
    ----------
    values, ends, family, weight, n_threads
        As in `fit_censored_matrix`.
    lmbdas : (k,) ndarray
        The lambdas.
    """
    out = np.empty((values.shape[1], lmbdas.size))
    given = NO_WEIGHTS if weight is None else weight

    def profile(columns: FloatArray, others: FloatArray, group: slice, work: Work, censored_work: CensoredWork) -> None:
        profile_censored_columns(columns, others, given, family, lmbdas, work, censored_work, out[group])

    _on_censored_columns(profile, values, ends, n_threads)
    return out


def interval_censored_matrix(
    values: Columns, ends: Columns, family: int, lmbda: FloatArray, drop: FloatArray, weight: Weights, n_threads: int
) -> FloatArray:
    """Return the likelihood interval of every column, as an array (p, 2).

    The ends are the lambdas at which the profile log-likelihood is below its maximum by `drop` per unit of weight.

    Parameters
    ----------
    values, ends, family, weight, n_threads
        As in `fit_censored_matrix`.
    lmbda : (p,) ndarray
        For each column, the lambda that maximises the likelihood.
    drop : (p,) ndarray
        For each column, the decrease at the ends of the interval.
    """
    out, at = np.empty((values.shape[1], 2)), np.column_stack([lmbda, drop])
    given = NO_WEIGHTS if weight is None else weight

    def interval(
        columns: FloatArray, others: FloatArray, group: slice, work: Work, censored_work: CensoredWork
    ) -> None:
        interval_censored_columns(columns, others, given, family, at[group], work, censored_work, out[group])

    _on_censored_columns(interval, values, ends, n_threads)
    return out
