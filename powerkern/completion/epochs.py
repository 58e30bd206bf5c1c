"""Epochs of a decomposition, by halves on several threads: one factor improved with the other held fixed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from powerkern._engine.by_column import for_each_group
from powerkern._typing import FloatArray
from powerkern.kernels.multivariate.completion import Cells, pack_rows

_MAX_EPOCHS = 100


def half_epoch(
    kernel: Any, cells: Cells, other: FloatArray, own: FloatArray, ridge: float, damping: float, n_threads: int
) -> FloatArray:
    """Improve all rows of `own`; returns the (weighted) sum of squared residuals of each."""
    n_rows = own.shape[0]
    squares = np.empty(n_rows)

    def job(group: slice) -> None:
        part = (cells.start[group.start : group.stop + 1], *cells[1:])
        kernel(part, other, own[group], ridge, damping, squares[group])

    for_each_group(job, (max(1, -(-cells.value.size // n_rows)), n_rows), n_threads)
    return squares


def run_until_converged(epoch: Callable[[], FloatArray], tol: float) -> None:
    """Call `epoch`, which returns sums of squared residuals, until the root of their total changes by at most `tol`."""
    before = math.inf
    for _ in range(_MAX_EPOCHS):
        error = math.sqrt(float(epoch().sum()))
        if abs(before - error) <= tol * error:
            return
        before = error


def pack_observed(values: FloatArray, n_threads: int) -> Cells:
    """The observed cells, row after row."""
    n_rows, n_columns = values.shape
    start = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(n_columns - np.count_nonzero(np.isnan(values), axis=1), out=start[1:])
    cells = Cells(start, np.empty(start[-1], dtype=np.int32), np.empty(start[-1]))

    def job(group: slice) -> None:
        pack_rows(values[group], start[group.start : group.stop], cells.column, cells.value)

    for_each_group(job, (n_columns, n_rows), n_threads)
    return cells
