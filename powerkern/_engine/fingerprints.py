"""Compute fingerprints of the columns of a matrix, on several threads."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.blocks import slices
from powerkern._engine.by_row_block import Parts, for_each_row_block
from powerkern._engine.lines import flatten_memory
from powerkern._engine.threads import run_parallel
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.fingerprint import JIT_DISABLED, KEYS, add_fingerprints

#: Rows per task if the columns must be copied.
_ROWS = 131_072
#: Values per task if they are read in place.
_PART = 131_072
_ALL_EQUAL = np.empty(0, dtype=np.int64)


def fingerprint_columns(values: NDArray[np.generic], n_threads: int) -> IntArray:
    """Return the fingerprint of each column of a matrix of any real dtype; values are read as float64."""
    if values.dtype == np.float64 and values.dtype.isnative and values.flags.aligned and _has_whole_strides(values):
        return _fingerprint_in_place(values, n_threads)
    prints, lock = np.zeros(values.shape[1], dtype=np.int64), threading.Lock()

    def job(parts: Parts, rows: slice, group: slice) -> None:
        for columns, some in parts:
            part = np.zeros(len(columns), dtype=np.int64)
            add_prints(columns, some.start, part)
            with lock, np.errstate(over="ignore"):
                prints[group] += part

    for_each_row_block(job, values, _ROWS, n_threads)
    return prints


def _has_whole_strides(values: NDArray[np.generic]) -> bool:
    """Return whether all strides are multiples of the item size; fields of record arrays may violate this."""
    return all(stride % values.itemsize == 0 for stride in values.strides)


def _fingerprint_in_place(values: NDArray[Any], n_threads: int) -> IntArray:
    """Return the fingerprints of float64 columns, computed without a copy.

    This takes 0.3 ns per value, instead of 1 ns with a copy. Each task is a block of rows, or a group of columns if
    columns are contiguous. A fit could compute fingerprints while its columns are in the cache. But its kernels would
    then get fewer columns per call, which costs more than reading the matrix twice.
    """
    n, p = values.shape
    if values.size <= _PART:
        prints = np.zeros(p, dtype=np.int64)
        add_prints(values.T, 0, prints)
        return prints
    prints, lock = np.zeros(p, dtype=np.int64), threading.Lock()
    along_columns = abs(values.strides[0]) < abs(values.strides[1])

    def add(rows: slice, group: slice) -> None:
        part = np.zeros(group.stop - group.start, dtype=np.int64)
        add_prints(values[rows, group].T, rows.start, part)
        with lock, np.errstate(over="ignore"):
            prints[group] += part

    if along_columns:
        tasks = [(slice(0, n), group) for group in slices(slice(0, p), max(1, _PART // max(n, 1)))]
    else:
        tasks = [(rows, slice(0, p)) for rows in slices(slice(0, n), max(1, _PART // p))]
    run_parallel(add, tasks, values.shape, n_threads, use_calling_thread=True)
    return prints


def fingerprint_vector(x: FloatArray) -> int:
    """Return the fingerprint of a contiguous vector; a matrix column with the same values has the same fingerprint."""
    prints = np.zeros(1, dtype=np.int64)
    add_prints(x[np.newaxis], 0, prints)
    return int(prints[0])


def add_prints(columns: FloatArray, first_row: int, out: IntArray, lengths: IntArray = _ALL_EQUAL) -> None:
    """Add the contributions of some rows to the fingerprints of columns.

    Parameters
    ----------
    columns : (p, n) ndarray
        Columns as rows, native float64.
    first_row : int
        Index of the first of these rows in the whole matrix.
    out : (p,) ndarray of int64
        The fingerprints so far; updated in place.
    lengths : (p,) ndarray of int, optional
        The number of values to read of each column, by default all; `columns` must then be contiguous.
    """
    memory, begin, column_stride, row_stride = flatten_memory(columns)
    bits, n_rows = memory.view(np.int64), columns.shape[1]
    if JIT_DISABLED:
        with np.errstate(over="ignore"):  # NumPy's integers warn where machine code wraps around
            add_fingerprints(bits, begin, row_stride, column_stride, first_row, n_rows, lengths, KEYS, out)
    else:
        add_fingerprints(bits, begin, row_stride, column_stride, first_row, n_rows, lengths, KEYS, out)
