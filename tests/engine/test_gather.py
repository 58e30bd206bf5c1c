"""Columns copied to scratch arrays as contiguous float64, and back."""

from __future__ import annotations

import numpy as np
import pytest

from powerkern._engine.gather import (
    BlockScratch,
    as_float64,
    contiguous_columns,
    copy_rows,
    gather_columns,
    has_contiguous_columns,
    scatter,
    shift_and_scale,
    write_rows,
)

MATRICES = {
    "row-major": lambda x: x,
    "column-major": np.asfortranarray,
    "strided": lambda x: np.repeat(np.repeat(x, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "big-endian": lambda x: x.astype(">f8"),
    "float32": lambda x: x.astype(np.float32),
    "integers": lambda x: x.astype(np.int16),
    "long double": lambda x: x.astype(np.longdouble),
}


@pytest.mark.parametrize("lies", MATRICES)
def test_columns_are_contiguous_float64(lies):
    values = MATRICES[lies](np.arange(-60.0, 60.0).reshape(12, 10))
    before, scratch, group = values.copy(), BlockScratch(), slice(3, 9)
    columns = contiguous_columns(values, group, scratch)
    np.testing.assert_array_equal(columns, before[:, group].T)
    assert (columns.dtype, columns.flags.c_contiguous, columns.flags.writeable) == (np.float64, True, True)
    assert np.shares_memory(columns, values) == (lies == "column-major")  # else copied
    block = gather_columns(values[:, group], scratch)
    np.testing.assert_array_equal(block, before[:, group].T)
    block += 1.0
    np.testing.assert_array_equal(values, before)
    if values.dtype.kind != "f":  # results are floats
        return
    scatter(block, values[:, group])
    np.testing.assert_array_equal(values[:, group], before[:, group] + 1)
    np.testing.assert_array_equal(values[:, :3], before[:, :3])


@pytest.mark.parametrize("lies", MATRICES)
@pytest.mark.parametrize("n, p", [(100, 101), (100, 100), (1, 10_001)])
def test_blocks_too_large_for_numpy_are_gathered_alike(lies, n, p):
    values = MATRICES[lies](np.random.default_rng(0).normal(scale=100.0, size=(n, p)))
    expected = np.asarray(values, dtype=np.float64).T
    np.testing.assert_array_equal(gather_columns(values, BlockScratch()), expected)
    np.testing.assert_array_equal(as_float64(values, BlockScratch()).T, expected)
    scratch = BlockScratch()
    rows = copy_rows(values, scratch)
    np.testing.assert_array_equal(
        rows, values if values.dtype.kind == "f" and values.dtype.itemsize <= 8 else expected.T
    )
    assert rows.flags.c_contiguous
    if values.dtype.kind == "f":
        out = np.full_like(values, np.nan)
        write_rows(rows, out)
        np.testing.assert_array_equal(out, rows.astype(values.dtype))


def test_views_of_native_values_are_not_copied():
    values = np.arange(12.0).reshape(3, 4)[:, ::-2]
    assert as_float64(values, BlockScratch()) is values
    assert not np.shares_memory(as_float64(values.astype(np.float32), BlockScratch()), values)
    assert not has_contiguous_columns(values)
    assert has_contiguous_columns(np.asfortranarray(values))


@pytest.mark.parametrize("divisor", [None, np.ones(10), np.r_[1.0, 2.0, np.ones(8)]], ids=["none", "ones", "some"])
@pytest.mark.parametrize("shift", [np.zeros(10), np.linspace(0.0, 1.0, 10)], ids=["0", "some"])
def test_shift_and_divisor_are_applied_where_they_change_a_value(shift, divisor):
    values = np.arange(30.0).reshape(3, 10)
    columns = shift_and_scale(values, shift, divisor)
    scale = np.ones(10) if divisor is None else divisor
    is_changed = shift.any() or (scale != 1.0).any()
    assert (columns is not values) == is_changed
    np.testing.assert_array_equal(gather_columns(columns, BlockScratch()), ((values + shift) / scale).T)
    np.testing.assert_array_equal(
        gather_columns(columns[1:, 1:3], BlockScratch()), ((values + shift) / scale)[1:, 1:3].T
    )
    np.testing.assert_array_equal(gather_columns(columns[2:], BlockScratch()), ((values + shift) / scale)[2:].T)


def test_long_doubles_beyond_float64_are_infinite():
    if np.finfo(np.longdouble).max == np.finfo(np.float64).max:
        pytest.skip("long double is float64 here")
    values = np.array([[np.longdouble(10) ** 400], [np.longdouble(2)]])
    np.testing.assert_array_equal(gather_columns(values, BlockScratch()), [[np.inf, 2.0]])


def test_scratch_is_used_again():
    scratch = BlockScratch()
    first = scratch.block(4, 100)
    assert np.shares_memory(scratch.block(7, 20), first)
    assert scratch.block(41, 10).shape == (41, 10)


@pytest.mark.parametrize("lies", MATRICES)
def test_shifted_columns_are_sums_in_scratch(lies):
    values = MATRICES[lies](np.arange(-60.0, 60.0).reshape(12, 10))
    before, shift = values.copy(), np.linspace(-2.0, 1.0, 10) / 3.0
    columns = shift_and_scale(values, shift)
    sums = np.asarray(values, dtype=np.float64) + shift
    assert (columns.shape, len(columns)) == (values.shape, len(values))
    assert not has_contiguous_columns(columns)
    for part, expected in (
        (columns, sums),
        (columns[::2], sums[::2]),
        (columns[2:9, 3:5], sums[2:9, 3:5]),
        (columns[:, np.array([7, 1])], sums[:, [7, 1]]),
        (columns[:, 2:][1:, 3:], sums[1:, 5:]),
    ):
        np.testing.assert_array_equal(gather_columns(part, BlockScratch()), expected.T)
        np.testing.assert_array_equal(contiguous_columns(part, slice(0, 2), BlockScratch()), expected.T[:2])
    np.testing.assert_array_equal(values, before)
    assert shift_and_scale(values, np.zeros(10)) is values
