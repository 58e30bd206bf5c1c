"""Find the neighbors of each column (the columns correlated with it), and its slopes on the neighbors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtri

from powerkern._engine import products
from powerkern._engine.by_column import for_each_group
from powerkern._engine.threads import progress_bar, run_parallel
from powerkern._results.display import short_repr
from powerkern._typing import FloatArray, IntArray
from powerkern.cellwise.constants import wrap_constants
from powerkern.kernels.multivariate.cells import neighbor_slopes, pair_correlations
from powerkern.kernels.multivariate.wrapping import wrap_columns

#: Number of columns in a task.
_PART = 4
#: Number of columns in a task that multiplies them with all other columns.
_PANEL = 64


class Neighbors(NamedTuple):
    """Columns that predict a column, in order of decreasing absolute correlation."""

    #: Positions among the columns that were kept.
    columns: IntArray
    #: Robust correlations of these columns with the predicted column.
    correlations: FloatArray
    #: Slopes of the predicted column on each of these columns, after standardization.
    slopes: FloatArray

    def __repr__(self) -> str:
        return short_repr(self)


class Relations(NamedTuple):
    """Neighbors of all p columns in concatenated arrays; column j has the elements ``first[j]:first[j + 1]``.

    The other fields are as in `Neighbors`.
    """

    first: IntArray
    neighbors: IntArray
    correlations: FloatArray
    slopes: FloatArray


def run_in_parts(
    job: Callable[[slice], None], shape: tuple[int, int], n_threads: int, step: int = _PART, progress: bool = False
) -> None:
    """Run `job` on groups of columns in parallel, starting with the last columns.

    Parameters
    ----------
    job : callable
        Function that takes the slice of the columns of a group.
    shape : (int, int)
        Numbers of columns and rows, (p, n). The total cost is assumed to be proportional to ``n p**2``.
    n_threads : int
        Maximum number of threads.
    step : int
        Number of columns in a group.
    progress : bool
        Show a progress bar over the columns.
    """
    p, n = shape
    parts = [(slice(start, min(start + step, p)),) for start in range(0, p, step)][::-1]
    with progress_bar(p, " columns", progress) as bar:
        run_parallel(job, parts, (n, p * p), n_threads, bar)


def relate_by_pairs(
    u: FloatArray, quantile: float, least: float, include_self: bool, n_threads: int, progress: bool
) -> Relations:
    """Find the neighbors of each column, and its slopes on them, from every pair of columns.

    Parameters
    ----------
    u : (p, n) ndarray
        Standardized columns, as rows; outliers and missing values are NaN.
    quantile : float
        Probability that determines the ellipse for the correlation and the cut-off for the slope; see `ddc`.
    least : float
        Smallest absolute correlation of neighbors.
    include_self : bool
        Whether a column is also a neighbor of itself.
    n_threads : int
        Maximum number of threads.
    progress : bool
        Show a progress bar.
    """
    p, n = u.shape
    correlation = np.zeros((p, p))
    limit, cutoff = float(chdtri(2, 1.0 - quantile)), math.sqrt(chdtri(1, 1.0 - quantile))

    def correlate(part: slice) -> None:
        rows = np.zeros((part.stop - part.start, p))
        pair_correlations(u, part.start, part.stop, limit, np.empty((3, n)), rows)
        correlation[part] = rows

    run_in_parts(correlate, u.shape, n_threads, progress=progress)
    correlation += correlation.T
    chosen = [_select_correlated(row, least) for row in correlation]
    relations = _join_lists(
        chosen, [row[one] for row, one in zip(correlation, chosen, strict=True)], None, include_self
    )

    def regress(part: slice) -> None:
        first, others, _, slopes = relations
        neighbor_slopes(u, part.start, part.stop, first, others, cutoff, np.empty((2, n)), slopes)

    run_in_parts(regress, u.shape, n_threads)
    if include_self:
        relations.slopes[relations.first[:-1][np.diff(relations.first) > 0]] = 1.0
    return relations


def relate_by_wrapping(
    z: FloatArray, least: float, most: int, include_self: bool, n_threads: int, progress: bool
) -> Relations:
    """Find the neighbors of each column, and its slopes on them, from products of the wrapped columns.

    Parameters
    ----------
    z : (p, n) ndarray
        Standardized columns, as rows; missing values are NaN.
    least : float
        Smallest absolute correlation of neighbors.
    most : int
        Largest number of neighbors of a column.
    include_self : bool
        Whether a column is also a neighbor of itself.
    n_threads : int
        Maximum number of threads.
    progress : bool
        Show a progress bar.
    """
    p = z.shape[0]
    w, present = _wrap_rows(z, n_threads)
    squares = w * w
    totals = squares.sum(axis=1)
    chosen: list[Any] = [None] * p
    correlations, slopes = list(chosen), list(chosen)

    def correlate(part: slice) -> None:
        product = products.cross_rows(w, part, w)
        theirs = np.broadcast_to(totals, product.shape)
        ours = np.broadcast_to(totals[part, None], product.shape)
        if present is not None:  # sums over the rows in which both columns have a value
            theirs, ours = products.cross_rows(present, part, squares), products.cross_rows(squares, part, present)
        with np.errstate(invalid="ignore", divide="ignore"):
            correlation = np.nan_to_num(product / np.sqrt(theirs * ours))
            slope = product / theirs
        for row, j in enumerate(range(part.start, part.stop)):
            correlation[row, j] = 0.0
            chosen[j] = _select_correlated(correlation[row], least)[:most]
            correlations[j], slopes[j] = correlation[row, chosen[j]], slope[row, chosen[j]]

    run_in_parts(correlate, z.shape, n_threads, _PANEL, progress)
    return _join_lists(chosen, correlations, slopes, include_self)


def _wrap_rows(z: FloatArray, n_threads: int) -> tuple[FloatArray, FloatArray | None]:
    """Wrap and center standardized columns; also return an indicator of observed values, 1.0 or 0.0.

    The columns are the rows of `z`, (p, n). Missing values become 0. The indicator is None if no value is missing.
    """
    w = z.copy()
    constants = wrap_constants().array

    def job(group: slice) -> None:
        zeros, ones = np.zeros(w[group].shape[0]), np.ones(w[group].shape[0])
        wrap_columns(w[group], zeros, ones, zeros, ones, constants)

    for_each_group(job, (z.shape[1], z.shape[0]), n_threads)
    missing = np.isnan(z)
    w[missing] = 0.0
    w -= w.sum(axis=1, keepdims=True) / np.maximum((~missing).sum(axis=1, keepdims=True), 1)
    w[missing] = 0.0
    return w, (~missing).astype(np.float64) if missing.any() else None


def _select_correlated(correlation: FloatArray, least: float) -> IntArray:
    """Return the positions of the entries of `correlation`, (p,), whose absolute value is at least `least`.

    The positions are in order of decreasing absolute value.
    """
    size = np.abs(correlation)
    large = np.flatnonzero(size >= least)
    return large[np.argsort(-size[large], kind="stable")]


def _join_lists(chosen: list[Any], correlations: list[Any], slopes: list[Any] | None, include_self: bool) -> Relations:
    """Concatenate the neighbors of all columns.

    Parameters
    ----------
    chosen : list of (k_j,) ndarray
        Positions of the neighbors of each column.
    correlations, slopes : list of (k_j,) ndarray
        Correlations and slopes of these neighbors. If `slopes` is None, the slopes are left uninitialised.
    include_self : bool
        Put the column itself, with correlation and slope 1, first in each non-empty list.
    """
    p = len(chosen)
    if include_self:
        chosen = [np.append(j, one) if len(one) else one for j, one in enumerate(chosen)]
        correlations = [np.append(1.0, one) if len(one) else one for one in correlations]
        slopes = None if slopes is None else [np.append(1.0, one) if len(one) else one for one in slopes]
    first = np.zeros(p + 1, dtype=np.int64)
    np.cumsum([len(one) for one in chosen], out=first[1:])
    joined = np.concatenate(correlations)
    known = np.empty(joined.size) if slopes is None else np.concatenate(slopes)
    return Relations(first, np.concatenate(chosen).astype(np.int64), joined, known)
