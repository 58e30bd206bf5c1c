"""Divisions of a matrix into groups of columns and blocks of rows: sizes, order, and every value in one block."""

from __future__ import annotations

import numpy as np
import pytest

from powerkern._engine import by_row_block
from powerkern._engine.blocks import (
    cache_blocks,
    cache_shape,
    column_groups,
    is_one_group,
    line_blocks,
    slices,
)


def count_visits(blocks, shape):
    """Return, for each value of a matrix of this shape, the number of blocks that contain it."""
    visits = np.zeros(shape, dtype=int)
    for rows, columns in blocks:
        assert 0 <= rows.start < rows.stop <= shape[0]
        assert 0 <= columns.start < columns.stop <= shape[1]
        visits[rows, columns] += 1
    return visits


@pytest.mark.parametrize("start, stop, step", [(0, 10, 5), (0, 10, 3), (4, 10, 3), (4, 5, 9), (4, 4, 2)])
def test_slices_are_consecutive_and_as_long_as_the_step_except_for_the_last(start, stop, step):
    parts = slices(slice(start, stop), step)
    assert [i for part in parts for i in range(part.start, part.stop)] == list(range(start, stop))
    assert all(part.stop - part.start == step for part in parts[:-1])


@pytest.mark.parametrize(
    "shape, n_threads, width",
    [
        ((1000, 4000), 1, 64),  # eight cache lines of eight values
        ((10, 1000), 1, 248),  # wider for short columns, but 4 groups per thread
        ((10, 1000), 4, 248),  # few values: one thread
        ((511, 64), 4, 16),
        ((512, 64), 4, 8),  # 32,768 values are shared by the threads
        ((100_000, 1000), 2, 8),  # a million values
        ((50_000, 1000), 2, 16),
        ((200_000, 1000), 2, 8),  # a cache line
        ((4_000_000, 100), 1, 2),  # long columns: Ctrl-C takes effect after 8 million values
        ((100_000_000, 100), 1, 1),
        ((100_000, 4), 4, 1),  # a group for each thread
        ((100_000, 7), 2, 4),
    ],
)
def test_groups_are_as_wide_as_cache_threads_and_interruption_allow(shape, n_threads, width):
    groups = column_groups(shape, n_threads)
    assert max(group.stop - group.start for group in groups) == width
    assert [j for group in groups for j in range(group.start, group.stop)] == list(range(shape[1]))


def test_eight_columns_with_few_values_are_one_group():
    cases = [((4095, 8), True), ((4096, 8), False), ((10, 9), False), ((10, 1), True)]
    assert [is_one_group(shape) for shape, _ in cases] == [expected for _, expected in cases]


@pytest.mark.parametrize(
    "shape, order, expected",
    [
        ((100_000, 100), "F", (8192, 12)),
        ((10, 100_000), "F", (10, 9830)),
        ((5000, 3), "F", (5000, 3)),
        ((5000, 1000), "C", (512, 192)),
        ((100_000, 10), "C", (9830, 10)),
        ((5, 10), "C", (5, 10)),
    ],
)
def test_cache_blocks_have_98_304_values_and_are_longest_along_memory(shape, order, expected):
    assert cache_shape(np.empty(shape, order=order)) == expected


def test_a_matrix_without_rows_has_blocks_of_one_row():
    values = np.lib.stride_tricks.as_strided(np.empty(1), (0, 5), (8, 16))
    assert cache_shape(values) == (1, 5)


@pytest.mark.parametrize(
    "shape, order, n_threads, copied, height, width",
    [
        ((1000, 2000), "C", 1, False, 1000, 500),  # all rows of at least 512 columns
        ((2000, 3000), "C", 1, False, 500, 1000),  # else 1024 columns
        ((2000, 3000), "C", 1, True, 250, 1000),
        ((1024, 600), "C", 1, False, 1024, 600),
        ((1000, 600), "C", 1, False, 1000, 600),
        ((1000, 600), "C", 2, False, 167, 600),  # three blocks per thread
        ((400, 300), "C", 4, False, 200, 300),  # of 65,536 values or more
        ((1000, 600), "F", 2, False, 1000, 100),
        ((1_000_000, 2), "F", 1, False, 500_000, 1),
        ((3, 600_000), "C", 1, False, 3, 200_000),
    ],
)
def test_blocks_of_lines_have_equal_sizes_that_suit_threads(shape, order, n_threads, copied, height, width):
    strides = (8 * shape[1], 8) if order == "C" else (8, 8 * shape[0])
    values = np.lib.stride_tricks.as_strided(np.empty(1), shape, strides)  # only shape and strides are read
    blocks = line_blocks(values, n_threads, copied)
    assert {(rows.stop - rows.start, columns.stop - columns.start) for rows, columns in blocks if rows.start == 0} == {
        (height, width)
    }
    if shape[0] * shape[1] <= 10**6:
        assert (count_visits(blocks, shape) == 1).all()
    else:
        assert sum((rows.stop - rows.start) * (cols.stop - cols.start) for rows, cols in blocks) == shape[0] * shape[1]


def test_consecutive_blocks_of_rows_are_far_apart_if_there_are_threads():
    values = np.lib.stride_tricks.as_strided(np.empty(1), (1000, 600), (4800, 8))
    assert [rows.start for rows, _ in line_blocks(values, 2, False)] == [0, 501, 167, 668, 334, 835]
    columns_first = np.lib.stride_tricks.as_strided(np.empty(1), (1000, 600), (8, 8000))
    assert [group.start for _, group in line_blocks(columns_first, 2, False)] == [0, 100, 200, 300, 400, 500]


def test_blocks_are_narrow_only_if_there_are_fewer_than_four_blocks_of_rows_per_thread():
    shape = (800, 50)
    wide, narrow = cache_blocks(shape, 100, 20, 2), cache_blocks(shape, 100, 20, 3)
    assert [(rows.start, group) for rows, group in wide] == [
        (start, slice(0, 50)) for start in (0, 400, 100, 500, 200, 600, 300, 700)
    ]
    assert [group for _, group in narrow] == [slice(0, 20), slice(20, 40), slice(40, 50)] * 8
    assert [rows.start for rows, _ in narrow[::3]] == [0, 300, 600, 100, 400, 700, 200, 500]
    for blocks in (wide, narrow):
        assert (count_visits(blocks, shape) == 1).all()


@pytest.mark.parametrize("n_threads, width", [(1, 192), (2, 192), (8, 75), (16, 66)])
def test_row_blocks_are_as_narrow_as_threads_need_but_not_too_small(n_threads, width):
    x = np.arange(300_000.0).reshape(1000, 300)
    seen, blocks = np.full(x.shape, np.nan), []

    def job(parts, rows, group):
        blocks.append((rows, group))
        for columns, some in parts:
            assert columns.flags.c_contiguous
            seen[some, group] = columns.T

    by_row_block.for_each_row_block(job, x, 500, n_threads)
    np.testing.assert_array_equal(seen, x)
    assert max(group.stop - group.start for _, group in blocks) == width
    assert (count_visits(blocks, x.shape) == 1).all()


def test_row_blocks_of_contiguous_columns_are_one_part_and_others_fit_the_cache():
    heights = {}
    for order in "CF":
        x = np.empty((3000, 200), order=order)
        heights[order] = []

        def job(parts, rows, group, order=order):
            heights[order].append([some.stop - some.start for _, some in parts])

        by_row_block.for_each_row_block(job, x, 2000, 1)
    assert heights == {"C": [[512, 512, 512, 464], [512, 512, 512, 464], [512, 488], [512, 488]], "F": heights["F"]}
    assert {tuple(parts) for parts in heights["F"]} == {(2000,), (1000,)}
