"""Fingerprints of the columns of a matrix, taken while a fit reads them, or in a pass of their own."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.by_row_block import Parts, for_each_row_block
from powerkern._engine.lines import memory_of
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.fingerprint import JIT_DISABLED, KEYS, add_fingerprints

#: Rows whose fingerprints are computed at once in a pass of their own.
_ROWS = 131_072
_ALL_EQUAL = np.empty(0, dtype=np.int64)


class Fingerprints:
    """Fingerprints of the columns of a matrix of `n_rows` rows, as float64.

    `record` adds parts of columns, in any order and on any thread; `complete` reads the columns that were not recorded
    as a whole.
    """

    def __init__(self, n_rows: int, n_columns: int) -> None:
        self._n_rows = n_rows
        self._prints = np.zeros(n_columns, dtype=np.int64)
        self._n_recorded = np.zeros(n_columns, dtype=np.int64)
        self._lock = threading.Lock()

    def record(self, columns: FloatArray, first_row: int, group: slice) -> None:
        """Add rows, from `first_row` on, of a group of columns; each row of the matrix `columns` is a column."""
        if columns.shape[1] == self._n_rows:
            add_prints(columns, first_row, self._prints[group])
            self._n_recorded[group] = self._n_rows
            return
        part = np.zeros(len(columns), dtype=np.int64)
        add_prints(columns, first_row, part)
        with self._lock, np.errstate(over="ignore"):
            self._prints[group] += part
            self._n_recorded[group] += columns.shape[1]

    def complete(self, values: NDArray[np.generic], n_threads: int) -> IntArray:
        """Return the fingerprints of all columns of `values`."""
        rest = np.flatnonzero(self._n_recorded != self._n_rows)
        if rest.size == self._prints.size:
            return fingerprint_columns(values, n_threads)
        if rest.size:
            self._prints[rest] = fingerprint_columns(values[:, rest], n_threads)
        return self._prints


def fingerprint_columns(values: NDArray[np.generic], n_threads: int) -> IntArray:
    """Return the fingerprint of each column of a matrix of any real type, read as float64."""
    prints, lock = np.zeros(values.shape[1], dtype=np.int64), threading.Lock()

    def job(parts: Parts, rows: slice, group: slice) -> None:
        for columns, some in parts:
            part = np.zeros(len(columns), dtype=np.int64)
            add_prints(columns, some.start, part)
            with lock, np.errstate(over="ignore"):
                prints[group] += part

    for_each_row_block(job, values, _ROWS, n_threads)
    return prints


def fingerprint_vector(x: FloatArray) -> int:
    """Return the fingerprint of a contiguous vector, as of a column."""
    prints = np.zeros(1, dtype=np.int64)
    add_prints(x[np.newaxis], 0, prints)
    return int(prints[0])


def add_prints(columns: FloatArray, first_row: int, out: IntArray, lengths: IntArray = _ALL_EQUAL) -> None:
    """Add the contributions of some rows to the fingerprints of columns.

    Parameters
    ----------
    columns : (p, n) ndarray
        Native float64; each row is a column.
    first_row : int
        The number of the first of these rows in the whole matrix.
    out : (p,) ndarray of int64
        Sums to add to.
    lengths : (p,) ndarray of int, optional
        The number of values of each column, if `columns` is contiguous; what follows them is left out.
    """
    memory, begin, column_stride, row_stride = memory_of(columns)
    bits, n_rows = memory.view(np.int64), columns.shape[1]
    if JIT_DISABLED:
        with np.errstate(over="ignore"):  # NumPy's integers warn where machine code wraps around
            add_fingerprints(bits, begin, row_stride, column_stride, first_row, n_rows, lengths, KEYS, out)
    else:
        add_fingerprints(bits, begin, row_stride, column_stride, first_row, n_rows, lengths, KEYS, out)
