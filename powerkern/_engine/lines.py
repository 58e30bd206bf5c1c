"""Matrices whose values lie in contiguous lines, rows or columns, handed to the entries of `kernels.rowwise`."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from powerkern._typing import FloatArray
from powerkern.kernels import rowwise

#: Shorter rows are joined: the last block of each would be too short.
SHORTEST_ROW = 512
#: Shorter parts of rows are not looked along where they lie.
SHORTEST_PART = 64
#: Of shorter columns, constants would be copied as many times as there are values.
SHORTEST_COLUMN = 1024


class Layout(Enum):
    """How values lie that are transformed where they are; APART: they have to be copied."""

    ROWS, COLUMNS, APART = range(3)


def layout_of(*matrices: NDArray[Any]) -> Layout:
    """The layout of matrices of one shape."""
    n, p = matrices[0].shape
    if (p == 1 or n >= SHORTEST_COLUMN) and all(_has_lines(x.T) for x in matrices):
        return Layout.COLUMNS
    joined = all(x.flags.c_contiguous for x in matrices)
    if (joined or p >= SHORTEST_ROW) and all(map(_has_lines, matrices)):
        return Layout.ROWS
    return Layout.APART


def _has_lines(x: NDArray[Any]) -> bool:
    """Whether rows are contiguous, of native floats, one after the other."""
    between, within = x.strides
    apart = len(x) == 1 or (between >= x.shape[1] * x.itemsize and between % x.itemsize == 0)
    contiguous = x.shape[1] == 1 or within == x.itemsize
    return apart and contiguous and x.dtype in (np.float64, np.float32) and x.dtype.isnative and x.flags.aligned


def joined_rows(x: NDArray[Any]) -> tuple[NDArray[Any], int, int] | None:
    """The memory of a matrix, from row to row how far, and how many rows are a line; None if rows must be copied."""
    n, p = x.shape
    if not (_has_lines(x) and (x.flags.c_contiguous or p >= SHORTEST_PART)):
        return None
    times = max(1, min(n, SHORTEST_ROW // p)) if x.flags.c_contiguous else 1
    return *_flat(x), times


def along_lines(
    entry: Callable[..., None],
    source: NDArray[Any],
    target: NDArray[Any] | None,
    layout: Layout,
    results: FloatArray,
) -> FloatArray:
    """Transform `source` into `target` where they lie, or only look at it; returns what the entry has `found`."""
    upright = layout == Layout.COLUMNS
    x, out = (source, target) if not upright else (source.T, None if target is None else target.T)
    n, p = x.shape
    times = 1 if upright or p >= SHORTEST_ROW else max(1, min(n, SHORTEST_ROW // p))
    found = np.zeros((rowwise.N_FOUND, times * len(results)))
    flat, stride = _flat(x)
    to, to_stride = (np.empty(0, x.dtype), 1) if out is None else _flat(out)
    fits = results if times == 1 else np.tile(results, (times, 1))
    entry(flat, times * stride, np.ascontiguousarray(fits), found, to, times * to_stride, upright)
    low_high, extreme = found[: rowwise.EXTREME, : len(results)], found[rowwise.EXTREME].reshape(times, -1)
    return np.vstack([low_high, extreme.max(axis=0)])


def _flat(x: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """All memory from the first value of a matrix with contiguous rows to the last, and the length from row to row."""
    n, p = x.shape
    stride = x.strides[0] // x.itemsize if n > 1 else p
    size = (n - 1) * stride + p if n else 0
    return as_strided(x, (size,), (x.itemsize,)), stride
