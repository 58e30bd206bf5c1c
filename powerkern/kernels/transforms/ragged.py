"""Copy groups of rows, of different lengths, to a block padded with NaN, and back."""

from __future__ import annotations

import math

from powerkern._jit import COUNTS, READ_MATRIX, ROWS, WRITE_MATRIX, entry
from powerkern._typing import FloatArray, IntArray


@entry((COUNTS, COUNTS, COUNTS, COUNTS, COUNTS))
def order_rows(codes: IntArray, starts: IntArray, lengths: IntArray, free: IntArray, order: IntArray) -> None:
    """Append the row indices of each group to its part of `order`.

    The input is run-length encoded: each run consists of consecutive rows of one group.

    Parameters
    ----------
    codes : (r,) int
        The group of each run; negative: none.
    starts : (r,) int
        The first row of each run.
    lengths : (r,) int
        The number of rows of each run.
    free : (g,) int
        For each group, the position in `order` of its next row; advanced in place.
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
    """Copy each column of each group to a row of a block, padded with NaN.

    Column j of group k becomes row k p + j of the block, where p is the number of columns.

    Parameters
    ----------
    x : (n, p)
        The matrix.
    order : (n,) int
        Row indices, one group after the other; empty if the rows of every group are consecutive.
    starts : (g,) int
        Position in `order` of the first row of each group or, if `order` is empty, the index of that row.
    lengths : (g,) int
        The number of rows of each group.
    block : (g p, longest)
        Receives the values; `longest` is the length of the longest group or more.
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
        The values: row k p + j has column j of group k.
    order : (n,) int
        Row indices, one group after the other; empty if the rows of every group are consecutive.
    starts : (g,) int
        Position in `order` of the first row of each group or, if `order` is empty, the index of that row.
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
