"""Lines of a matrix, its rows or its columns: where they are in memory, and how they are taken block by block."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powerkern._jit import LANES, inlined, pack_eight, prefetch
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.transforms.branch import BLOCK

#: Number of columns whose constants are held at once: they stay in the second-level cache.
BAND = 1024
#: Shorter rows, and shorter columns, are joined where no memory is between them: the last block of each would be too
#: short, and of columns constants would be copied as many times as there are values.
SHORTEST_ROW, SHORTEST_COLUMN = 512, 64
#: Bytes of a cache line.
_LINE_BYTES = 64


class Placement(NamedTuple):
    """Memory layout of a part of a matrix and of its images; positions and strides are counted in values.

    Entries take it as an array of integers.
    """

    begin: int  #: position of the first value in x
    stride: int  #: from a line of x to the next
    within: int  #: from a value of a line to the next
    height: int  #: rows
    to: int  #: position of the first image in out
    out_stride: int  #: from a line of out to the next
    first: int  #: number of the first column among the fields
    times: int  #: how many rows of out are joined if no memory is between them; 0: none


@inlined
def read_placement(where: IntArray) -> Placement:
    """Return an array of integers as a `Placement`."""
    return Placement(where[0], where[1], where[2], where[3], where[4], where[5], where[6], where[7])


class Lines(NamedTuple):
    """Lines of values, some of them `joined`, with their places and the places of their images.

    Line k has the values of lines ``k times, k times + 1, ...`` of x, `times` of them. Line i of x begins at
    ``begin + i stride``, and its `length` values are `within` apart; rows without memory between them are one line of
    x. The images of line k begin at ``out[k out_step]``.
    """

    x: FloatArray
    begin: int
    stride: int
    within: int
    length: int
    times: int
    out: FloatArray
    out_step: int
    joined: bool
    n_lines: int
    width: int
    #: how many values are transformed together
    block: int
    #: whether they are read where they are; else they are packed
    dense: bool
    #: from values to those that are fetched beforehand, and how many of them are fetched at once
    ahead: int
    step: int


def rows_joined(p: int) -> int:
    """Return the number of rows of p >= 1 values that are joined: 0 for long ones, else as many as fill whole vectors.

    They are never more than a band: values beyond it would be computed one by one. If possible they are about two
    blocks: the constants of more would not fit the first-level cache.
    """
    if p >= SHORTEST_ROW:
        return 0
    least = LANES // math.gcd(p, LANES)
    return max(1, 2 * BLOCK // (p * least)) * least if p * least <= BAND else SHORTEST_ROW // p


@inlined
def column_lines(x: FloatArray, placement: Placement, out: FloatArray, column_major: bool, left: int, p: int) -> Lines:
    """Return the lines of `p` columns, starting at column `left`.

    Parameters
    ----------
    x : (n,)
        The memory of the matrix.
    placement : Placement
        Where the values are, and where their images go.
    out : (n,)
        The memory of the images.
    column_major : bool
        Whether lines are columns.
    left : int
        The first column.
    p : int
        The number of columns.
    """
    stride, within, height, out_stride = placement.stride, placement.within, placement.height, placement.out_stride
    begin = placement.begin + left * (stride if column_major else within)
    out = out[placement.to + left * (out_stride if column_major else 1) :]
    length, count = (height, p) if column_major else (p, height)
    joined = out_stride == length and (length < SHORTEST_COLUMN if column_major else placement.times > 0)
    times = (count if column_major else placement.times) if joined else 1
    width, n_lines, out_step = length * times, -(-count // times), length * times if joined else out_stride
    ahead, block = times * stride, BLOCK
    if column_major:
        ahead = BLOCK // length * stride if joined else BLOCK * within
    if column_major and not joined:
        # a column by itself is divided evenly: its constants are spread over no more values than necessary
        block = -(-length // (-(-length // BLOCK) * LANES)) * LANES
    if within == 1 and stride == length:
        stride, length, times = width, width, 1
    dense = within == 1 and times == 1
    step = _LINE_BYTES // x.itemsize if within == 1 else 1
    return Lines(
        x, begin, stride, within, length, times, out, out_step, joined, n_lines, width, block, dense, ahead, step
    )


@inlined
def fetch_ahead(lines: Lines, first: int, n: int) -> None:
    """Prefetch the values that follow the n values starting at x[first]."""
    j = 0
    while j < n:  # a range would divide, for the number of steps
        prefetch(lines.x, (first + lines.ahead + j * lines.within,))
        j += lines.step


@inlined
def pack(lines: Lines, number: int, begin: int, packed: FloatArray) -> tuple[int, int]:
    """Copy strided values into `packed`, starting at (number, begin); return the position after the last one.

    Parameters
    ----------
    lines : Lines
        The lines.
    number : int
        The line of x to begin with.
    begin : int
        The position in that line.
    packed : (n,)
        Receives the values.
    """
    x, within, place = lines.x, lines.within, 0
    while place < packed.size:
        n = min(lines.length - begin, packed.size - place)
        first, to = lines.begin + number * lines.stride + begin * within, packed[place : place + n]
        fetch_ahead(lines, first, n)
        whole = n - n % LANES
        for j in range(0, whole, LANES):
            pack_eight(x, first + j * within, within, to, j)
        for j in range(whole, n):
            to[j] = x[np.uint64(first + j * within)]  # an index without a sign is not checked for one
        place, begin = place + n, begin + n
        if begin == lines.length:
            number, begin = number + 1, 0
    return number, begin
