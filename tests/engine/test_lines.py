"""The memory of strided matrices: as vectors with strides, and the choice of matrices that are transformed in place."""

from __future__ import annotations

import numpy as np
import pytest

from powerkern._engine.lines import LineOrder, choose_line_order, flatten_memory, join_rows

ROWS, COLUMNS, COPY = LineOrder.ROWS, LineOrder.COLUMNS, LineOrder.COPY


def views():
    """Return views of small matrices, by name."""
    x = np.arange(120.0).reshape(10, 12)
    return {
        "rows": x,
        "columns": x.T,
        "part": x[2:7, 3:9],
        "steps": x[1::3, ::2],
        "upside down": x[::-1],
        "backwards": x[::-1, ::-1],
        "backwards steps": x[::-2, 10:2:-3],
        "one row": x[3:4, 2:8],
        "one column": x[2:9:2, 4:5],
        "one row, backwards": x[3:4, ::-1],
        "one column, upside down": x[::-1, 4:5],
        "one value": x[4:5, 4:5],
        "repeated row": np.broadcast_to(x[0], (4, 12)),
        "no rows": x[:0],
        "no columns": x[:, :0],
        "no part": x[2:2, 1:4],
    }


@pytest.mark.parametrize("name", views())
def test_flattened_memory_holds_every_value_at_its_strides(name):
    x = views()[name]
    memory, begin, stride, within = flatten_memory(x)
    n, p = x.shape
    assert (memory.ndim, memory.strides) == (1, (8,))
    places = begin + stride * np.arange(n)[:, np.newaxis] + within * np.arange(p)
    np.testing.assert_array_equal(memory[places], x)
    if x.size and "repeated" not in name:
        assert (places.min(), places.max()) == (0, memory.size - 1)
        assert np.shares_memory(memory, x)


@pytest.mark.parametrize("name", views())
@pytest.mark.parametrize("factor", [1, 8])
def test_joined_rows_are_contiguous_in_the_returned_memory(name, factor):
    """Rows of 64 and more values are read in place even if there are values between them."""
    x = views()[name]
    if factor > 1:
        if not x.size or "backwards" in name or "steps" in name or "columns" in name or x.shape[1] < 6:
            return
        wide = np.arange(960.0).reshape(10, 96)
        x = {"part": wide[2:7, 3:70], "one row": wide[3:4, 2:80]}.get(name, wide)
    if not x.size:
        return
    lines = join_rows(x)
    n, p = x.shape
    if lines is None:
        in_place = (x.strides[1] == 8 or p == 1) and (n == 1 or x.strides[0] >= 8 * p)
        assert not x.flags.c_contiguous
        assert not in_place or p < 64
        return
    memory, stride, joined = lines
    np.testing.assert_array_equal(memory[stride * np.arange(n)[:, np.newaxis] + np.arange(p)], x)
    assert joined == (max(1, min(n, 512 // p)) if x.flags.c_contiguous else 1)


@pytest.mark.parametrize("p, in_place", [(63, False), (64, True)])
def test_parts_of_rows_are_read_in_place_from_64_values_on(p, in_place):
    x = np.arange(700.0).reshape(7, 100)[:, 20 : 20 + p]
    lines = join_rows(x)
    assert (lines is not None) == in_place
    if lines is not None:
        memory, stride, joined = lines
        assert (stride, joined) == (100, 1)
        np.testing.assert_array_equal(memory[100 * np.arange(7)[:, np.newaxis] + np.arange(p)], x)


def test_rows_of_other_types_and_overlapping_rows_are_copied():
    x = np.arange(1000.0).reshape(10, 100)
    overlapping = np.lib.stride_tricks.as_strided(x, (10, 100), (792, 8))
    unaligned = np.zeros(8001, np.uint8)[1:].view(np.float64).reshape(10, 100)
    for other in (x.astype(int), x.astype(">f8"), overlapping, unaligned, x[:, ::-1], x[::-1]):
        assert join_rows(other) is None
    assert join_rows(np.lib.stride_tricks.as_strided(x, (10, 100), (800, 8))) is not None


def strided(n, p, order):
    """Return an uninitialised matrix in C or F order whose lines are separated by gaps in memory."""
    return np.empty((n, p + 3))[:, :p] if order == "C" else np.empty((n + 3, p), order="F")[:n]


@pytest.mark.parametrize(
    "source, target, expected",
    [
        (np.empty((5, 4)), np.empty((5, 4)), ROWS),
        (np.empty((5, 4), order="F"), np.empty((5, 4), order="F"), COLUMNS),
        (np.empty((5, 4)), np.empty((5, 4), order="F"), COPY),
        (np.empty((5, 4), order="F"), np.empty((5, 4)), COPY),
        (np.empty((5, 1)), np.empty((5, 1)), COLUMNS),
        (np.empty((1, 4)), np.empty((1, 4)), COLUMNS),
        (np.empty((5, 4), int), np.empty((5, 4)), COPY),
        (np.empty((5, 4)), np.empty((5, 4), ">f8"), COPY),
        (np.empty((5, 4), ">f8"), np.empty((5, 4)), COPY),
        (np.empty((10, 4))[::2], np.empty((5, 4)), ROWS),
        (np.empty((5, 8))[:, ::2], np.empty((5, 4)), ROWS),
        (np.empty((5, 4)), np.empty((10, 4))[::2], COPY),
        (np.empty((3, 512)), strided(3, 512, "C"), ROWS),  # long rows may be apart in the target
        (np.empty((3, 511)), strided(3, 511, "C"), COPY),
        (np.empty((64, 3), order="F"), strided(64, 3, "F"), COLUMNS),
        (np.empty((63, 3), order="F"), strided(63, 3, "F"), COPY),
        (np.empty((64, 3)), strided(64, 3, "F"), COPY),
        (np.empty((5, 4), np.float32), np.empty((5, 4), np.float32), ROWS),
    ],
)
def test_matrices_are_transformed_in_place_along_lines_of_source_and_target(source, target, expected):
    assert choose_line_order(source, target) == expected


def test_fields_of_records_are_copied():
    records = np.zeros((6, 2), dtype=[("a", "<f8"), ("b", "<i4")])["a"]  # strides of 12 bytes
    assert choose_line_order(records, np.empty((6, 2))) == COPY
