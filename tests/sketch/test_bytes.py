"""Forged bytes of sketches, with a correct checksum but with numbers that no data have, are rejected."""

from __future__ import annotations

import contextlib
import struct

import numpy as np
import pytest
from forged import forged, parts_of

from powerkern.kernels.power_sums import grids, ranges
from powerkern.sketch import Range, Sketch, extend, finish, merge, range_of, summarize_chunk
from powerkern.sketch.grids import Grid
from powerkern.sketch.serial import RANGE, read_array

ROWS = np.random.default_rng(0).lognormal(size=(60, 2))
ONE_SIGN, BOTH_SIGNS = ROWS, ROWS - 1.0


def cell(data: bytes, column: int, entry: int, value: float) -> bytes:
    """Return forged bytes of a range, grid or sketch, whose table has `value` in one entry of one column."""
    width = ranges.N_RANGE if parts_of(data)[0]["format"] == "powerkern.sketch.Range" else grids.N_GRID
    return forged(data, lambda _, payload: struct.pack_into("<d", payload, 8 * (width * column + entry), value))


def test_forged_valid_bytes_are_accepted() -> None:
    data = range_of(ROWS).to_bytes()
    assert Range.from_bytes(forged(data, lambda *_: None)) == range_of(ROWS)
    assert Range.from_bytes(cell(data, 1, ranges.R_MAX, 1e9)).x_max[1] == 1e9


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
@pytest.mark.parametrize("entry", range(ranges.N_RANGE))
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1.0, 1e308])
def test_ranges_that_no_rows_have_are_refused(family: str, entry: int, value: float) -> None:
    data = cell(range_of(ROWS, family).to_bytes(), 1, entry, value)
    fits = (entry, value) in {(ranges.R_COUNT, 1e308), (ranges.R_MAX, 1e308)}
    fits |= entry in (ranges.R_LOGS, ranges.R_LEVEL) and value == -1.0
    fits |= entry == ranges.R_MIN and value == -1.0 and family == "yeo-johnson"
    if fits:
        assert Range.from_bytes(data).grid().n_bins.min() > 0
    else:
        with pytest.raises(
            ValueError, match="not a range: column 1 has a range that is not finite or that no data can have"
        ):
            Range.from_bytes(data)


@pytest.mark.parametrize("entry", range(ranges.N_RANGE))
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.0])
def test_a_column_without_values_has_one_range_only(entry: int, value: float) -> None:
    empty = np.full((3, 1), np.nan)
    data = range_of(empty).to_bytes()
    assert Range.from_bytes(data) == range_of(empty)
    if range_of(empty)._table[0, entry] != value:
        with pytest.raises(ValueError, match="not a range: column 0"):
            Range.from_bytes(cell(data, 0, entry, value))


@pytest.mark.parametrize("rows", [ONE_SIGN, -ONE_SIGN, BOTH_SIGNS])
@pytest.mark.parametrize("entry", range(grids.N_GRID))
@pytest.mark.parametrize("value", [np.nan, np.inf, -5.0, 2.0**63, 1e308, -1e308, 0.5, -70000.0])
def test_grids_that_no_rows_have_are_refused(rows: np.ndarray, entry: int, value: float) -> None:
    data = cell(range_of(rows).grid().to_bytes(), 0, entry, value)
    with contextlib.suppress(ValueError):
        assert Grid.from_bytes(data).refined().n_bins.max() <= grids.MAX_REFINED  # the refinement ends


def test_a_grid_of_one_sign_with_an_end_of_the_other() -> None:
    with pytest.raises(ValueError, match="not a grid"):
        Grid.from_bytes(cell(range_of(ROWS).grid().to_bytes(), 0, grids.G_MIN, -5.0))


@pytest.mark.parametrize("x", [1e-300, 3.0, 0.0, -2.5, 1e308, 5e-324])
@pytest.mark.parametrize("other", [1e-300, 3.0, 0.0, -2.5, -1e308])
def test_grids_of_all_kinds_are_read_back(x: float, other: float) -> None:
    rows = np.array([[x], [other], [x / 3.0]])
    found = range_of(rows)
    for grid in (found.grid(), found.grid().refined(), found.grid(500.0), extend(None, rows).grid):
        assert Grid.from_bytes(grid.to_bytes()) == grid
    total = extend(extend(None, rows[:1]), rows[1:])
    assert Sketch.from_bytes(total.to_bytes()) == total


@pytest.mark.parametrize(
    "change",
    [
        {"columns": True},
        {"columns": 2.0},
        {"columns": 10**30},
        {"column_names": "ab"},
        {"column_names": {"a": 1, "b": 2}},
        {"family": ["box-cox"]},
        {"vector": 1},
    ],
    ids=str,
)
def test_invalid_descriptions_are_refused(change: dict[str, object]) -> None:
    data = summarize_chunk(ROWS, range_of(ROWS).grid()).to_bytes()
    with pytest.raises(ValueError, match="not a sketch: the bytes are damaged"):
        Sketch.from_bytes(forged(data, lambda record, _: record.update(change)))


def test_sketches_whose_first_bin_is_beyond_all_integers() -> None:
    data = summarize_chunk(ROWS, range_of(ROWS).grid()).to_bytes()
    for first in (2.0**63, -(2.0**63), 2.0**52, 1e300):
        with pytest.raises(ValueError, match="not a sketch"):
            merge(Sketch.from_bytes(data), Sketch.from_bytes(cell(data, 0, grids.G_FIRST, first)))


def fuzzed(rng: np.random.Generator, data: bytes) -> bytes:
    """Return the bytes `data` with one to three numbers of the payload replaced by extreme or slightly wrong ones."""
    nasty = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.0, 1e308, -1e308, 5e-324, 2.0**53, 2.0**63, 65536.0, 0.5]

    def change(_: dict, payload: bytearray) -> None:
        for _ in range(rng.integers(1, 4)):
            at = 8 * int(rng.integers(min(14, len(payload) // 8)))
            old = struct.unpack_from("<d", payload, at)[0]
            value = rng.choice([*nasty, old + 1.0, old - 1.0, -old, old * 2.0])
            struct.pack_into("<d", payload, at, value)

    with np.errstate(all="ignore"):
        return forged(data, change)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("family, rows", [("box-cox", ONE_SIGN), ("yeo-johnson", BOTH_SIGNS)])
def test_whatever_is_read_can_be_used_or_is_refused(family: str, rows: np.ndarray) -> None:
    rng = np.random.default_rng(1)
    found = range_of(rows, family)
    whole = summarize_chunk(rows, found.grid())

    def range_used() -> None:
        grid = Range.from_bytes(fuzzed(rng, found.to_bytes())).grid()
        assert Grid.from_bytes(grid.to_bytes()) == grid

    def grid_used() -> None:
        assert Grid.from_bytes(fuzzed(rng, found.grid().to_bytes())).refined().n_bins.max() <= grids.MAX_REFINED

    def sketch_used() -> None:
        finish(merge(whole, Sketch.from_bytes(fuzzed(rng, whole.to_bytes()))))

    for use in (range_used, grid_used, sketch_used):
        refused = 0
        for _ in range(500):
            try:
                use()
            except ValueError:
                refused += 1
        assert 0 < refused < 500


def test_a_table_of_another_size_than_announced_is_damaged() -> None:
    payload = np.arange(6.0).tobytes()
    np.testing.assert_array_equal(read_array(payload, (2, 3), "<f8", RANGE), np.arange(6.0).reshape(2, 3))
    for shape in ((2, 2), (3, 3), (0, 3)):
        with pytest.raises(ValueError, match="the bytes are damaged; write or send them again"):
            read_array(payload, shape, "<f8", RANGE)
