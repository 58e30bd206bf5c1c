"""Copy rows of many groups, of different lengths, to a block padded with NaN, and back."""

from __future__ import annotations

import math

from powerkern._jit import COUNTS, READ_MATRIX, ROWS, WRITE_MATRIX, entry
from powerkern._typing import FloatArray, IntArray


@entry((COUNTS, COUNTS, COUNTS, COUNTS, COUNTS))
def order_rows(codes: IntArray, starts: IntArray, lengths: IntArray, free: IntArray, order: IntArray) -> None:
    """Append the row indices of each group to its part of `order`.

    Rows are given as runs of consecutive rows of one group.

    Parameters
    ----------
    codes : (r,) int
        The group of each run of rows; negative: none.
    starts : (r,) int
        The first row of each run.
    lengths : (r,) int
        The number of rows of each run.
    free : (g,) int
        The position in `order` for the next row of each group; advanced.
    order : (n,) int
        Receives the row indices, one group after the other.
    """
    for run in range(codes.size):
        code = codes[run]
        if code >= 0:
            at = free[code]
            for i in range(lengths[run]):
                order[at + i] = starts[run] + i
            free[code] = at + lengths[run]


@entry((READ_MATRIX, COUNTS, COUNTS, COUNTS, ROWS))
def pad(x: FloatArray, order: IntArray, starts: IntArray, lengths: IntArray, block: FloatArray) -> None:
    """Copy column j of group k to row k p + j of the block, padded with NaN.

    The rows of a group are ``order[start:start + length]``, or ``start:start + length`` if `order` is empty.

    Parameters
    ----------
    x : (n, p)
        The matrix.
    order : (n,) int
        Row indices, one group after the other; empty if the rows of every group are consecutive.
    starts : (g,) int
        Position in `order` of the first row of each group.
    lengths : (g,) int
        The number of rows of each group.
    block : (g p, longest)
        Receives the values.
    """
    p = x.shape[1]
    for k in range(starts.size):
        start, n = starts[k], lengths[k]
        for j in range(p):
            row = block[k * p + j]
            for i in range(n):
                row[i] = x[order[start + i] if order.size else start + i, j]
            for i in range(n, row.size):
                row[i] = math.nan


@entry((ROWS, COUNTS, COUNTS, COUNTS, WRITE_MATRIX))
def unpad(block: FloatArray, order: IntArray, starts: IntArray, lengths: IntArray, out: FloatArray) -> None:
    """Copy a block filled by `pad` back to the rows of a matrix.

    Parameters
    ----------
    block : (g p, longest)
        The values.
    order : (n,) int
        Row indices, one group after the other; empty if the rows of every group are consecutive.
    starts : (g,) int
        Position in `order` of the first row of each group.
    lengths : (g,) int
        The number of rows of each group.
    out : (n, p)
        Receives the values.
    """
    p = out.shape[1]
    for k in range(starts.size):
        start, n = starts[k], lengths[k]
        for j in range(p):
            row = block[k * p + j]
            for i in range(n):
                out[order[start + i] if order.size else start + i, j] = row[i]
