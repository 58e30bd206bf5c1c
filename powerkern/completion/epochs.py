"""Run half epochs of a decomposition on several threads: improve one factor with the other held fixed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from powerkern._engine.by_column import for_each_group
from powerkern._typing import FloatArray
from powerkern.kernels.multivariate.completion import ObservedCells, pack_rows

_MAX_EPOCHS = 100


def half_epoch(
    kernel: Any,
    cells: ObservedCells,
    fixed: FloatArray,
    factor: FloatArray,
    ridge: float,
    damping: float,
    n_threads: int,
) -> FloatArray:
    """Improve all rows of one factor in place; return the (weighted) sum of squared residuals of each row, (n,).

    Parameters
    ----------
    kernel : compiled function
        Updates a group of rows: `coordinate_rows` or `least_squares_rows`.
    cells : ObservedCells
        Observed entries, packed by the rows of `factor`.
    fixed : (p, rank) ndarray
        The factor held fixed.
    factor : (n, rank) ndarray
        The factor to improve.
    ridge : float
        Penalty on squared elements.
    damping : float
        Fraction of the full step that an update takes, from 0 to 1; 1 moves a row to its optimum.
    n_threads : int
        Maximum number of threads.
    """
    n_rows = factor.shape[0]
    squares = np.empty(n_rows)

    def job(group: slice) -> None:
        part = (cells.start[group.start : group.stop + 1], *cells[1:])
        kernel(part, fixed, factor[group], ridge, damping, squares[group])

    for_each_group(job, (max(1, -(-cells.value.size // n_rows)), n_rows), n_threads)
    return squares


def run_until_converged(epoch: Callable[[], FloatArray], tol: float) -> None:
    """Run up to _MAX_EPOCHS epochs, until the relative change of the RMSE is at most `tol`.

    `epoch` returns the sum of squared residuals of each row.
    """
    before = math.inf
    for _ in range(_MAX_EPOCHS):
        error = math.sqrt(float(epoch().sum()))
        if abs(before - error) <= tol * error:
            return
        before = error


def pack_observed(values: FloatArray, n_threads: int) -> ObservedCells:
    """Return the observed entries of a matrix, (n, p), packed row by row."""
    n_rows, n_columns = values.shape
    start = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(n_columns - np.count_nonzero(np.isnan(values), axis=1), out=start[1:])
    cells = ObservedCells(start, np.empty(start[-1], dtype=np.int32), np.empty(start[-1]))

    def job(group: slice) -> None:
        pack_rows(values[group], start[group.start : group.stop], cells.column, cells.value)

    for_each_group(job, (n_columns, n_rows), n_threads)
    return cells
