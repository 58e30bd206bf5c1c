"""Rows of groups, copied to the rows of a block and back."""

from __future__ import annotations

import numpy as np
import pytest

from powerkern.kernels.transforms import ragged

RNG = np.random.default_rng(0)
CODES = np.array([1, 0, -1, 2, 0])  #: of runs of rows
LENGTHS = np.array([2, 3, 1, 4, 1])
STARTS = np.cumsum(LENGTHS) - LENGTHS
X = RNG.normal(size=(LENGTHS.sum(), 2))
ROWS = np.repeat(CODES, LENGTHS)  #: the group of each row


def ordered():
    """Return the row numbers sorted by group, and the start and length of each group."""
    sizes = np.bincount(ROWS[ROWS >= 0])
    starts, order = np.cumsum(sizes) - sizes, np.full(sizes.sum(), -1)
    ragged.order_rows(CODES, STARTS, LENGTHS, starts.copy(), order)
    return order, starts, sizes


def test_rows_of_groups_in_order():
    order, starts, sizes = ordered()
    for group, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        np.testing.assert_array_equal(order[start : start + size], np.flatnonzero(group == ROWS))


@pytest.mark.parametrize("in_order", [False, True])
def test_a_block_of_groups_and_back(in_order):
    order, starts, sizes = ordered()
    x = X[order] if in_order else X
    block = np.empty((3 * 2, sizes.max() + 1))
    places = np.empty(0, dtype=np.int64) if in_order else order
    ragged.pad(x, places, starts, sizes, block)
    for group in range(3):
        for j in range(2):
            own = X[group == ROWS, j]
            np.testing.assert_array_equal(block[2 * group + j, : own.size], own)
            assert np.isnan(block[2 * group + j, own.size :]).all()
    back = np.full_like(x, -1.0)
    ragged.unpad(block, places, starts, sizes, back)
    np.testing.assert_array_equal(back, np.where((ROWS < 0)[:, np.newaxis], -1.0, X) if not in_order else x)
