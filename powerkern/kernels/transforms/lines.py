"""Describe how the lines (rows or columns) of a matrix lie in memory, and how they are processed block by block."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powerkern._jit import LANES, inlined, pack_eight, prefetch
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.transforms.branch import BLOCK

#: Number of columns whose constants are computed at a time, few enough for the second-level cache.
BAND = 1024
#: Rows, and columns, with fewer values than these are joined if they are adjacent in memory. Otherwise the last block
#: of each line would be too short, and the constants of each column would be copied for every value.
SHORTEST_ROW, SHORTEST_COLUMN = 512, 64
#: Bytes of a cache line.
_LINE_BYTES = 64


class Placement(NamedTuple):
    """Memory layout of a part of a matrix and of its images.

    Positions and strides are counted in array elements. Entries receive a `Placement` as an array of integers.
    """

    begin: int  #: index of the first value in x
    stride: int  #: distance from a line of x to the next
    within: int  #: distance from a value of a line to the next
    height: int  #: number of rows
    to: int  #: index of the first image in out
    out_stride: int  #: distance from a line of out to the next
    first: int  #: column of the array of fields that belongs to the first column of the matrix
    times: int  #: number of rows of out to join if they are adjacent in memory; 0: none


@inlined
def read_placement(where: IntArray) -> Placement:
    """Convert an array of integers to a `Placement`."""
    return Placement(where[0], where[1], where[2], where[3], where[4], where[5], where[6], where[7])


class Lines(NamedTuple):
    """The lines of a part of a matrix, to be transformed one by one, and the place of their images.

    Input line i begins at ``x[begin + i stride]``, and its `length` values are `within` elements apart. It is a row, a
    column or, where they are adjacent in memory, several of them. Line k joins the `times` input lines from
    ``k times`` on, and its images begin at ``out[k out_step]``.
    """

    x: FloatArray
    begin: int
    stride: int
    within: int
    length: int
    times: int
    out: FloatArray
    out_step: int
    joined: bool  #: whether lines join several rows or columns
    n_lines: int
    width: int  #: number of values of a line, over all rows or columns joined
    #: number of values that are transformed together
    block: int
    #: whether values are contiguous and read in place; otherwise they are packed first
    dense: bool
    #: distance from a value to the value to prefetch, and number of values per prefetch
    ahead: int
    step: int


def rows_joined(p: int) -> int:
    """Return the number of rows of p values to join to one line, so that lines fill whole vectors; 0 for long rows.

    A line has at most `BAND` values, the number of columns whose constants are computed at a time. If possible it has
    about two blocks; the constants of more blocks would not fit in the first-level cache.
    """
    if p >= SHORTEST_ROW:
        return 0
    least = LANES // math.gcd(p, LANES)
    return max(1, 2 * BLOCK // (p * least)) * least if p * least <= BAND else SHORTEST_ROW // p


@inlined
def column_lines(x: FloatArray, placement: Placement, out: FloatArray, column_major: bool, left: int, p: int) -> Lines:
    """Return the lines of `p` adjacent columns of a matrix.

    Parameters
    ----------
    x : (n,)
        The memory of the matrix.
    placement : Placement
        Memory layout of values and images.
    out : (n,)
        The memory of the images.
    column_major : bool
        Whether lines are columns.
    left : int
        Index of the first column.
    p : int
        Number of columns.
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
        # divide a single column evenly, so that its constants are repeated no more often than necessary
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
    """Prefetch the values that will be needed after the n values from ``lines.x[first]`` on."""
    j = 0
    while j < n:  # range() would need a division to get the number of steps
        prefetch(lines.x, (first + lines.ahead + j * lines.within,))
        j += lines.step


@inlined
def pack(lines: Lines, number: int, begin: int, packed: FloatArray) -> tuple[int, int]:
    """Copy strided values into a contiguous block; return the input line and the index in it of the next value.

    Parameters
    ----------
    lines : Lines
        The lines.
    number : int
        Index of the input line of the first value.
    begin : int
        Index of the first value within its input line.
    packed : (n,)
        Receives n values, from as many lines as necessary.
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
            to[j] = x[np.uint64(first + j * within)]  # numba does not test unsigned indices for being negative
        place, begin = place + n, begin + n
        if begin == lines.length:
            number, begin = number + 1, 0
    return number, begin
