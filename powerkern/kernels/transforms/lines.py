"""Lines of a matrix, its rows or its columns: where they are in memory, and how they are taken block by block."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powerkern._jit import LANES, borrowed, inlined, pack_eight, prefetch, widest_vectors
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.transforms.branch import BLOCK

#: Columns of which constants are held at once: they stay in the second-level cache.
BAND = 1024
#: Shorter rows, and shorter columns, are joined where no memory is between them: the last block of each would be too
#: short, and of columns constants would be copied as many times as there are values.
SHORTEST_ROW, SHORTEST_COLUMN = 512, 64
_LINE_BYTES = 64


class Lines(NamedTuple):
    """Where values are, and where their images go: see `powerkern.kernels.transforms.matrix`."""

    x: FloatArray
    begin: int
    stride: int
    within: int
    height: int
    out: FloatArray
    out_stride: int
    column_major: bool


@inlined
def lines_at(x: FloatArray, where: IntArray, out: FloatArray, column_major: bool, left: int) -> Lines:
    """Lines as the arguments of an entry describe them, from column number `left` on."""
    begin, stride, within, to, out_stride = where[0], where[1], where[2], where[4], where[5]
    begin += left * (stride if column_major else within)
    to += left * (out_stride if column_major else 1)
    return Lines(borrowed(x), begin, stride, within, where[3], borrowed(out)[to:], out_stride, column_major)


class Traversal(NamedTuple):
    """How values are taken: `n_lines` of `width`, each of which is `times` lines of `length` of the matrix, joined."""

    joined: bool
    n_lines: int
    width: int
    length: int
    times: int
    #: how many are transformed together
    block: int
    #: whether they are looked at where they are; else they are packed
    dense: bool
    #: from values to those to be fetched beforehand, and how many of them are in a cache line
    ahead: int
    step: int


@inlined
def rows_joined(p: int) -> int:
    """As many as fill whole vectors, unless that is more than a band: values beyond would be computed one by one.

    About two blocks of values, if that can be: constants of more would leave the first-level cache.
    """
    step = LANES
    while step > 1 and p * step // 2 % LANES == 0:
        step //= 2
    return max(1, 2 * BLOCK // (p * step)) * step if p * step <= BAND else max(1, SHORTEST_ROW // p)


@inlined
def traversal_of(lines: Lines, p: int) -> Traversal:
    """Short lines are joined where their images are."""
    column_major = lines.column_major
    length, count = (lines.height, p) if column_major else (p, lines.height)
    joined = length < (SHORTEST_COLUMN if column_major else SHORTEST_ROW)
    joined = joined and lines.out_stride == length
    times = (count if column_major else rows_joined(length)) if joined else 1
    dense = lines.within == 1 and (lines.stride == length or not joined)
    if dense:
        ahead = BLOCK if column_major else (length * times if joined else lines.stride)
    elif column_major:
        ahead = max(1, BLOCK // length) * lines.stride if joined else BLOCK * lines.within
    else:
        ahead = times * lines.stride
    step = max(1, _LINE_BYTES // (lines.x.itemsize * max(1, abs(lines.within))))
    # a column by itself is divided evenly: its constants are spread over no more values than necessary
    blocks = max(1, -(-length // BLOCK))
    block = -(-length // (blocks * LANES)) * LANES if column_major and not joined else BLOCK
    return Traversal(joined, -(-count // times), length * times, length, times, max(1, block), dense, ahead, step)


@inlined
def block_in_place(lines: Lines, traversal: Traversal, line: int, place: int, n: int) -> FloatArray:
    """A block of values that are side by side; those to come are fetched."""
    x = borrowed(lines.x)
    first = lines.begin + line * (traversal.width if traversal.joined else lines.stride) + place
    for j in range(0, n, _LINE_BYTES // x.itemsize):
        prefetch(x, (first + traversal.ahead + j,))
    return x[first : first + n]


@inlined
def pack(lines: Lines, traversal: Traversal, number: int, begin: int, packed: FloatArray) -> tuple[int, int]:
    """Pack values one after the other, from one of a line of the matrix on; returns line and place of the next."""
    widest_vectors()
    x, packed, within, place = borrowed(lines.x), borrowed(packed), lines.within, 0
    while place < packed.size:
        n = min(traversal.length - begin, packed.size - place)
        first, j = lines.begin + number * lines.stride + begin * within, 0
        while j < n:  # a range would divide, for the number of steps
            prefetch(x, (first + traversal.ahead + j * within,))
            j += traversal.step
        _pack_part(x, first, within, packed[place : place + n])
        place, begin = place + n, begin + n
        if begin == traversal.length:
            number, begin = number + 1, 0
    return number, begin


@inlined
def _pack_part(x: FloatArray, first: int, within: int, packed: FloatArray) -> None:
    widest_vectors()
    whole = packed.size - packed.size % LANES
    for j in range(0, whole, LANES):
        pack_eight(x, first + j * within, within, packed, j)
    for j in range(whole, packed.size):
        packed[j] = x[np.uint64(first + j * within)]  # an index without a sign is not checked for one
