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

#: Shorter parts of rows are not looked along where they lie.
SHORTEST_PART = 64


class Layout(Enum):
    """How values lie that are transformed where they are; APART: they have to be copied."""

    ROWS, COLUMNS, APART = range(3)


def layout_of(*matrices: NDArray[Any]) -> Layout:
    """The layout of matrices of one shape."""
    n, p = matrices[0].shape
    joined = all(x.flags.f_contiguous for x in matrices)
    if (joined or n >= rowwise.SHORTEST_COLUMN) and all(_has_lines(x.T) for x in matrices):
        return Layout.COLUMNS
    joined = all(x.flags.c_contiguous for x in matrices)
    if (joined or p >= rowwise.SHORTEST_ROW) and all(map(_has_lines, matrices)):
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
    if not _has_lines(x):
        return None
    if x.flags.c_contiguous:
        return x.reshape(-1), p, max(1, min(n, rowwise.SHORTEST_ROW // p))
    return (*_flat(x), 1) if p >= SHORTEST_PART else None


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
    found = np.zeros((rowwise.N_FOUND, len(results)))
    flat, stride = _flat(x)
    to, to_stride = (np.empty(0, x.dtype), 1) if out is None else _flat(out)
    entry(flat, stride, np.ascontiguousarray(results), found, to, to_stride, upright)
    return found


def _flat(x: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """All memory from the first value of a matrix with contiguous rows to the last, and the length from row to row."""
    n, p = x.shape
    stride = x.strides[0] // x.itemsize if n > 1 else p
    size = (n - 1) * stride + p if n else 0
    return as_strided(x, (size,), (x.itemsize,)), stride
