"""Lines of a matrix: how rows and columns are joined, and how strided values are packed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powerkern.kernels.transforms.branch import BLOCK
from powerkern.kernels.transforms.lines import BAND, Placement, column_lines, pack, read_placement, rows_joined


@pytest.mark.parametrize("p", [1, 2, 3, 5, 8, 12, 100, 127, 128, 129, 250, 255, 256, 300, 504, 511])
def test_joined_rows_fill_vectors_and_about_two_blocks(p):
    times = rows_joined(p)
    assert 1 <= times * p <= BAND
    vectors = 8 // math.gcd(p, 8)  # rows that fill whole vectors
    if p * vectors > BAND:
        assert times == 512 // p
        return
    assert times % vectors == 0
    assert times == vectors or times * p <= 2 * BLOCK < (times + vectors) * p


@pytest.mark.parametrize("p", [512, 513, 4000])
def test_long_rows_are_not_joined(p):
    assert rows_joined(p) == 0


def test_placements_are_read_in_order():
    placement = read_placement(np.arange(1, 9))
    assert placement == Placement(begin=1, stride=2, within=3, height=4, to=5, out_stride=6, first=7, times=8)


def images(lines, n_values):
    """Return, for every element of `out`, the index of the element of x that belongs there, or -1 if there is none.

    `n_values` is the number of values; `lines` describes how they are read line by line.
    """
    places = np.full(lines.out.size, -1)
    for k in range(lines.n_lines):
        stop, number, begin = min(lines.width, n_values - k * lines.width), k * lines.times, 0
        for start in range(0, stop, lines.block):
            n = min(lines.block, stop - start)
            at = k * lines.out_step + start
            if lines.dense:
                first = lines.begin + k * lines.stride + start
                places[at : at + n] = np.arange(first, first + n)
            else:
                packed = np.empty(n)
                number, begin = pack(lines, number, begin, packed)
                places[at : at + n] = packed
    return places


@pytest.mark.parametrize("column_major", [False, True])
@pytest.mark.parametrize("gap", [0, 2])
@pytest.mark.parametrize(("within", "extra"), [(1, 0), (1, 3), (2, 0), (2, 5), (-1, 0), (-3, 1)])
@pytest.mark.parametrize(
    ("height", "p"), [(1, 1), (20, 3), (3, 20), (9, 63), (63, 9), (64, 4), (65, 5), (300, 2), (7, 130)]
)
def test_every_value_has_its_place(column_major, gap, within, extra, height, p):
    """Read and write parts of a matrix with any strides; compare with NumPy's indexing."""
    count, length = (p, height) if column_major else (height, p)
    left, part = (1, p - 2) if p > 3 else (0, p)
    stride = abs(within) * length + extra
    begin = (length - 1) * max(-within, 0)
    memory = np.arange(begin + (count - 1) * stride + (length - 1) * max(within, 0) + 1.0)
    index = begin + stride * np.arange(count)[:, np.newaxis] + within * np.arange(length)
    out_stride, to = length + gap, 3
    out = np.zeros(to + (count - 1) * out_stride + length)
    times = rows_joined(out_stride) if left == 0 else 0
    placement = Placement(begin, stride, within, height, to, out_stride, 0, times)
    lines = column_lines(memory, placement, out, column_major, left, part)
    expected = np.full(to + count * out_stride, -1)
    places = to + out_stride * np.arange(count)[:, np.newaxis] + np.arange(length)
    chosen = np.s_[left : left + part] if column_major else np.s_[:, left : left + part]
    expected[places[chosen]] = index[chosen]
    first = to + left * (out_stride if column_major else 1)
    assert images(lines, height * part).tolist() == expected[first : out.size].tolist()
    assert lines.joined is (gap == 0 and (length < 64 if column_major else times > 0 and part == p))
    assert lines.block <= BLOCK
    if column_major and not lines.joined:  # blocks of one column have nearly the same size
        n_blocks = -(-length // lines.block)
        assert n_blocks == -(-length // BLOCK)
        assert lines.block * n_blocks - length < 8 * n_blocks
    assert lines.dense is (within == 1 and (lines.times == 1))
