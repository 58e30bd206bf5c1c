"""Call a kernel for every column of a matrix, in groups of columns on several threads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from powerkern._engine.blocks import GROUP_VALUES, column_groups, is_one_group
from powerkern._engine.gather import (
    NO_WEIGHTS,
    BlockScratch,
    Columns,
    FitScratch,
    as_float64,
    contiguous_columns,
    gather_columns,
)
from powerkern._engine.threads import progress_bar, run_parallel
from powerkern._typing import FloatArray, Weights
from powerkern.kernels.likelihood import joint_derivatives, mle, partial_moments
from powerkern.kernels.likelihood.lockstep import fit_in_lockstep
from powerkern.kernels.likelihood.scratch import Work
from powerkern.kernels.results import DEFERRED, N_RESULTS, STATUS


def for_each_group(
    job: Callable[[slice], None],
    shape: tuple[int, int],
    n_threads: int,
    progress: bool = False,
    *,
    use_calling_thread: bool = False,
) -> None:
    """Call `job` for every group of columns of a matrix, on several threads.

    Parameters
    ----------
    job : callable
        Called with a slice of columns.
    shape : (int, int)
        Rows and columns of the matrix.
    n_threads : int
        Maximum number of threads.
    progress : bool
        Show a progress bar.
    use_calling_thread : bool
        Whether to process groups on the calling thread, too (see `run_parallel`).
    """
    if is_one_group(shape) and not progress:
        job(slice(0, shape[1]))
        return
    groups = [(group,) for group in column_groups(shape, n_threads)]
    with progress_bar(shape[1], " columns", progress) as bar:
        run_parallel(job, groups, shape, n_threads, bar, use_calling_thread=use_calling_thread)


def measure_columns(
    measure: Callable[[FloatArray, slice], FloatArray],
    values: Columns,
    width: int,
    n_threads: int,
    progress: bool = False,
) -> FloatArray:
    """Call a function for every group of columns; return its results as an array (p, width).

    Parameters
    ----------
    measure : callable
        Called as ``measure(columns, group)`` with columns as contiguous rows of a block, which it may overwrite, and
        the slice of their indices. Returns `width` numbers for each column.
    values : (n, p) ndarray or AffineView
        The matrix.
    width : int
        Number of results of a column.
    n_threads : int
        Maximum number of threads.
    progress : bool
        Show a progress bar.
    """
    out = np.empty((values.shape[1], width))
    scratch = BlockScratch()

    def job(group: slice) -> None:
        out[group] = measure(gather_columns(values[:, group], scratch), group)

    for_each_group(job, values.shape, n_threads, progress)
    return out


def _map_columns(
    function: Callable[[FloatArray, slice, Work, FloatArray], None],
    values: Columns,
    width: int,
    n_threads: int,
) -> FloatArray:
    """Call a function, with scratch for fits, for every group of columns; return its results as an array (p, width).

    Parameters
    ----------
    function : callable
        Called with contiguous columns, the slice of their indices, scratch space, and the rows of the result to fill.
    values : (n, p) ndarray or AffineView
        The matrix.
    width : int
        Number of results of a column.
    n_threads : int
        Maximum number of threads.
    """
    out = np.empty((values.shape[1], width))
    scratch = FitScratch(values.shape[0])

    def job(group: slice) -> None:
        function(contiguous_columns(values, group, scratch), group, scratch.work, out[group])

    for_each_group(job, values.shape, n_threads)
    return out


def fit_matrix(
    values: Columns,
    family: int,
    lmbda: FloatArray,
    weight: Weights,
    n_threads: int,
    progress: bool = False,
    *,
    lockstep: bool,
) -> FloatArray:
    """Fit every column of a matrix by maximum likelihood.

    Parameters
    ----------
    values : (n, p) ndarray or AffineView
        The matrix.
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
    lockstep : bool
        Fit several columns at once, one per SIMD lane; `powerkern._estimators.routes` chooses this for short columns.

    Returns
    -------
    (p, N_RESULTS) ndarray
        The fields of `kernels.results`. A negative STATUS marks values outside the domain.
    """
    n, p = values.shape
    out, scratch = np.empty((p, N_RESULTS)), FitScratch(n)
    if is_one_group((n, p)) and not progress:  # the overhead of `for_each_group` is noticeable in small fits
        fit_part(values, family, lmbda, weight, scratch, out, lockstep)
        return out

    def job(group: slice) -> None:
        fit_part(values[:, group], family, lmbda[group], weight, scratch, out[group], lockstep)

    for_each_group(job, (n, p), n_threads, progress, use_calling_thread=n * p <= GROUP_VALUES and not progress)
    return out


def fit_part(
    part: Columns,
    family: int,
    lmbda: FloatArray,
    weight: Weights,
    scratch: FitScratch,
    out: FloatArray,
    lockstep: bool,
) -> None:
    """Fit some columns one by one, or in lockstep; columns that lockstep defers are then fitted one by one.

    Parameters
    ----------
    part : (n, k) ndarray or AffineView
        The columns.
    family : int
        A code of `kernels.transforms.family`.
    lmbda : (k,) ndarray
        Given lambdas; NaN where lambda is to be fitted.
    weight : (n,) ndarray or None
        Weights of the rows; None: all one.
    scratch : FitScratch
        Scratch for columns of n values.
    out : (k, N_RESULTS) ndarray
        Receives the results.
    lockstep : bool
        Whether to fit several columns at once (see `fit_matrix`).
    """
    if not lockstep:
        columns = contiguous_columns(part, slice(None), scratch)
        mle.fit_columns(columns, NO_WEIGHTS if weight is None else weight, family, lmbda, scratch.work, out)
        return
    each = np.ones(part.shape[0]) if weight is None else weight
    fit_in_lockstep(as_float64(part, scratch), each, family, lmbda, scratch.lockstep, out)
    is_left = out[:, STATUS] == DEFERRED
    if is_left.any():
        left = np.flatnonzero(is_left)
        rest = out[left]
        columns, given = gather_columns(part[:, left], scratch), NO_WEIGHTS if weight is None else weight
        mle.two_pass_columns(columns, given, family, lmbda[left], scratch.work, rest)
        out[left] = rest


def profile_matrix(values: Columns, family: int, lmbdas: FloatArray, weight: Weights, n_threads: int) -> FloatArray:
    """Return the negative log-likelihood g of every column at every lambda, as an array (p, m).

    Parameters
    ----------
    values, family, weight, n_threads
        As in `fit_matrix`.
    lmbdas : (m,) ndarray
        The lambdas.
    """
    given = NO_WEIGHTS if weight is None else weight

    def profile(columns: FloatArray, group: slice, work: Work, out: FloatArray) -> None:
        mle.profile_columns(columns, given, family, lmbdas, work, out)

    return _map_columns(profile, values, lmbdas.size, n_threads)


def likelihoods(values: Columns, family: int, lmbda: FloatArray, weight: Weights, n_threads: int) -> FloatArray:
    """Return the negative log-likelihood g of every column, each at its own lambda.

    Parameters
    ----------
    values, family, weight, n_threads
        As in `fit_matrix`.
    lmbda : (p,) ndarray
        A lambda for each column.
    """
    given = NO_WEIGHTS if weight is None else weight

    def evaluate(columns: FloatArray, group: slice, work: Work, out: FloatArray) -> None:
        given_lmbda = lmbda[group]
        for j in range(given_lmbda.size):
            one = slice(j, j + 1)
            mle.profile_columns(columns[one], given, family, given_lmbda[one], work, out[one])

    return _map_columns(evaluate, values, 1, n_threads)[:, 0]


def interval_matrix(
    values: Columns, family: int, lmbda: FloatArray, drop: FloatArray, weight: Weights, n_threads: int
) -> FloatArray:
    """Return the ends of each column's likelihood interval, where g exceeds its minimum by `drop`, as an array (p, 2).

    Parameters
    ----------
    values, family, weight, n_threads
        As in `fit_matrix`.
    lmbda : (p,) ndarray
        For each column, the lambda that minimises g, the negative log-likelihood per unit of weight.
    drop : (p,) ndarray
        For each column, the excess of g over its minimum at the ends of the interval.
    """
    at, given = np.column_stack([lmbda, drop]), NO_WEIGHTS if weight is None else weight

    def interval(columns: FloatArray, group: slice, work: Work, out: FloatArray) -> None:
        mle.interval_columns(columns, given, family, at[group], work, out)

    return _map_columns(interval, values, 2, n_threads)


def partial_moments_matrix(
    values: Columns, family: int, scalings: FloatArray, at: FloatArray, weight: Weights, n_threads: int
) -> FloatArray:
    """Return moments of this site's rows at k exponents per column, as an array (p, k, partial_moments.N_PARTIAL).

    Parameters
    ----------
    values, family, weight, n_threads
        As in `fit_matrix`.
    scalings : (p, 6) ndarray
        The scaling of the logs of each column, common to all sites (`partial_moments.Scaling`).
    at : (p, k) ndarray
        The exponents of each column. The moments are 0 for NaN, and for a column whose first exponent is NaN.
    """
    given = NO_WEIGHTS if weight is None else weight

    def add(columns: FloatArray, group: slice, work: Work, out: FloatArray) -> None:
        partial_moments.partial_moment_columns(columns, given, family, scalings[group], at[group], work, out)

    moments = _map_columns(add, values, at.shape[1] * partial_moments.N_PARTIAL, n_threads)
    return moments.reshape(*at.shape, partial_moments.N_PARTIAL)


def derivative_matrix(
    values: Columns,
    family: int,
    lmbda: FloatArray,
    weight: Weights,
    root: FloatArray,
    out: tuple[FloatArray, FloatArray, FloatArray],
    n_threads: int,
) -> FloatArray:
    """Compute psi and its first two derivatives in lambda, scaled as in `joint_derivatives.derivative_columns`.

    Parameters
    ----------
    values, family, weight, n_threads
        As in `fit_matrix`.
    lmbda : (p,) ndarray
        A lambda for each column.
    root : (n,) ndarray
        Square roots of the weights; empty: all one.
    out : tuple of three (p, n) ndarrays
        Receive psi, psi' and psi''.

    Returns
    -------
    (p, joint_derivatives.N_STATISTICS) ndarray
        The statistics of each column that `joint_derivatives.derivative_columns` computes.
    """
    y, y1, y2 = out
    given = NO_WEIGHTS if weight is None else weight

    def derive(columns: FloatArray, group: slice, work: Work, figures: FloatArray) -> None:
        at = lmbda[group]
        joint_derivatives.derivative_columns(
            columns, given, root, family, at, work, y[group], y1[group], y2[group], figures
        )

    return _map_columns(derive, values, joint_derivatives.N_STATISTICS, n_threads)
