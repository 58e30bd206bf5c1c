"""Transform matrices in place along lines (rows or columns), by the entries of `kernels.transforms.matrix`."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from powerkern._typing import FloatArray
from powerkern.kernels.transforms import matrix as rowwise
from powerkern.kernels.transforms.branch import BLOCK
from powerkern.kernels.transforms.lines import SHORTEST_COLUMN, SHORTEST_ROW, Placement, rows_joined

#: Parts of rows with fewer values are copied rather than processed in place.
SHORTEST_PART = 64


class LineOrder(Enum):
    """The direction of lines along which values are transformed in place; COPY means that they must be copied first."""

    ROWS, COLUMNS, COPY = range(3)


def choose_line_order(source: NDArray[Any], target: NDArray[Any]) -> LineOrder:
    """Choose the direction of lines along which a matrix can be transformed into `target` without copies."""
    n, p = source.shape
    if not _is_float(target):
        return LineOrder.COPY
    if (target.flags.f_contiguous or (n >= SHORTEST_COLUMN and _has_lines(target.T))) and _has_steps(source.T):
        return LineOrder.COLUMNS
    if (target.flags.c_contiguous or (p >= SHORTEST_ROW and _has_lines(target))) and _has_steps(source):
        return LineOrder.ROWS
    return LineOrder.COPY


def _has_steps(x: NDArray[Any]) -> bool:
    """Return whether the rows of x can be read in place, value by value.

    This requires native floats, strides that are multiples of the item size, and a stride within a row that is not
    larger than the stride between rows. The last condition is waived if there is only one row or column.
    """
    between, within = x.strides
    along = 1 in x.shape or abs(within) <= abs(between)
    return along and between % x.itemsize == 0 and within % x.itemsize == 0 and _is_float(x)


def _is_float(x: NDArray[Any]) -> bool:
    return x.dtype in (np.float64, np.float32) and x.dtype.isnative and x.flags.aligned


def _has_lines(x: NDArray[Any]) -> bool:
    """Return whether x has native floats in contiguous rows that do not overlap."""
    between, within = x.strides
    apart = len(x) == 1 or (between >= x.shape[1] * x.itemsize and between % x.itemsize == 0)
    contiguous = x.shape[1] == 1 or within == x.itemsize
    return apart and contiguous and _is_float(x)


def join_rows(x: NDArray[Any]) -> tuple[NDArray[Any], int, int] | None:
    """Return the memory of a matrix, its row stride, and the number of rows per line; None if rows must be copied."""
    n, p = x.shape
    if not _has_lines(x):
        return None
    if x.flags.c_contiguous:
        return x.reshape(-1), p, max(1, min(n, SHORTEST_ROW // p))
    if p < SHORTEST_PART:
        return None
    memory, _, stride, _ = flatten_memory(x)
    return memory, stride, 1


class MatrixLines:
    """A matrix and its images, each as one piece of memory, transformed part by part."""

    def __init__(self, source: NDArray[Any], target: NDArray[Any], layout: LineOrder) -> None:
        self._column_major = layout == LineOrder.COLUMNS
        x, out = (source.T, target.T) if self._column_major else (source, target)
        self._memory, self._begin, self._stride, self._within = flatten_memory(x)
        self._target, _, self._target_stride, _ = flatten_memory(out)

    def transform(
        self,
        entry: Callable[..., None],
        fields: FloatArray,
        rows: slice,
        columns: slice,
        watched: FloatArray | None = None,
    ) -> FloatArray:
        """Transform a part of the matrix without range checks; report which columns have values that need them.

        Parameters
        ----------
        entry : Entry
            An entry of `kernels.transforms.matrix`.
        fields : (N_FIELDS, p) ndarray
            Fields of the results of all columns (`select_fields`).
        rows, columns : slice
            The rows and columns of the part.
        watched : (N_WATCHED, p) ndarray, optional
            Rows INNER_LOW to WATCHED_MAX of the `bounds` array of `kernels.transforms.matrix`, for all columns; None
            if images are not inspected.

        Returns
        -------
        ndarray
            The `bounds` array of `kernels.transforms.matrix`: for each column of the part, the bounds between which
            values need no range checks, and a mark if there are values outside; with `watched`, also the rows from
            BEYOND on.
        """
        bounds = np.zeros(
            (rowwise.N_BOUNDS if watched is None else rowwise.WATCHED_MAX + 1, columns.stop - columns.start)
        )
        if watched is not None:
            bounds[rowwise.INNER_LOW :] = watched[:, columns]
        line, place = (columns, rows) if self._column_major else (rows, columns)
        placement = Placement(
            begin=self._begin + line.start * self._stride + place.start * self._within,
            stride=self._stride,
            within=self._within,
            height=rows.stop - rows.start,
            to=line.start * self._target_stride + place.start,
            out_stride=self._target_stride,
            first=columns.start,
            times=0 if self._column_major else rows_joined(columns.stop - columns.start),
        )
        packed = np.empty(BLOCK, self._memory.dtype)
        entry(self._memory, np.array(placement), fields, bounds, self._target, self._column_major, packed)
        return bounds


def flatten_memory(x: NDArray[Any]) -> tuple[NDArray[Any], int, int, int]:
    """Return the memory of a matrix as a vector, the index of its first value, and its row and column strides.

    The strides are counted in array elements.
    """
    n, p = x.shape
    if x.flags.c_contiguous:
        return x.reshape(-1), 0, p, 1
    stride, within = (x.strides[k] // x.itemsize if x.shape[k] > 1 else natural for k, natural in enumerate((p, 1)))
    first = x[:: -1 if stride < 0 else 1, :: -1 if within < 0 else 1]
    size = (n - 1) * abs(stride) + (p - 1) * abs(within) + 1 if x.size else 0
    begin = (n - 1) * max(-stride, 0) + (p - 1) * max(-within, 0)
    return as_strided(first, (size,), (x.itemsize,)), begin, stride, within
