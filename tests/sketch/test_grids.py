"""Grids and ranges of chunks, and sums that are moved to another grid, compared with plain versions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powerkern.kernels.power_sums import grids as g
from powerkern.kernels.power_sums import ranges as r
from powerkern.sketch import Range, extend, merge, range_of, sketches, summarize_chunk
from powerkern.sketch.grids import Grid, check_bounds

ROWS = np.random.default_rng(0).lognormal(size=(80, 2))


# --- which tables are possible ------------------------------------------------------------------------


def forged_range(family: str = "yeo-johnson", **entries: float) -> bool:
    """Return whether a range is accepted as possible after entries of its only column are replaced.

    A keyword argument ``NAME=value`` replaces entry ``R_NAME``.
    """
    found = range_of(ROWS[:, :1], family)
    table = found._table.copy()
    for name, value in entries.items():
        table[0, getattr(r, f"R_{name}")] = value
    return bool(Range(family, table, None, False)._possible()[0])


SAMPLE = float(range_of(ROWS[:, :1])._table[0, r.R_SAMPLE])
COUNT = float(range_of(ROWS[:, :1])._table[0, r.R_COUNT])
LARGEST = SAMPLE * 800.0 / r.LOG_UNIT


@pytest.mark.parametrize(
    ("entries", "is_possible"),
    [
        ({}, True),
        ({"COUNT": 0.0}, False),
        ({"WEIGHT": 0.0}, False),
        ({"WEIGHT": 2.0**53}, True),
        ({"WEIGHT": 2.0**54}, False),
        ({"WEIGHT": 80.5}, False),
        ({"MIN": 1.0, "MAX": 1.0}, True),
        ({"MIN": 1.0, "MAX": 0.5}, False),
        ({"SAMPLE": COUNT}, True),
        ({"SAMPLE": COUNT + 1.0}, False),
        ({"SAMPLE": 0.0, "LOGS": 0.0, "SQUARES": 0.0, "SQUARES_LOW": 0.0}, True),
        ({"LOGS": LARGEST}, True),
        ({"LOGS": -LARGEST}, True),
        ({"LOGS": 1.001 * LARGEST}, False),
        ({"LOGS": -1.001 * LARGEST}, False),
        ({"SQUARES": 0.0}, True),
        ({"SQUARES": math.floor(SAMPLE * (800.0 / r.LOG_UNIT) ** 2 / r.LIMB)}, True),
        ({"SQUARES": math.floor(1.001 * SAMPLE * (800.0 / r.LOG_UNIT) ** 2 / r.LIMB)}, False),
        ({"SQUARES": -1.0}, False),
        ({"SQUARES_LOW": 0.5}, False),
        ({"LEVEL": 42.0}, True),
        ({"LEVEL": -42.0}, True),
        ({"LEVEL": 43.0}, False),
        ({"LEVEL": 0.5}, False),
        ({"WEIGHT_1": 1.0}, True),
        ({"WEIGHT_2": -1.0}, False),
    ],
)
def test_ranges_are_possible_up_to_their_limits(entries, is_possible):
    assert forged_range(**entries) == is_possible


def test_ranges_of_box_cox_are_positive():
    assert forged_range("box-cox", MIN=1e-300)
    assert not forged_range("box-cox", MIN=0.0)
    assert forged_range("yeo-johnson", MIN=0.0)


def forged_grid(x, family: str = "yeo-johnson", **entries: float) -> bool:
    grid = range_of(np.asarray(x, dtype=float)[:, None], family).grid()
    table = grid._table.copy()
    for name, value in entries.items():
        table[0, getattr(g, f"G_{name}")] = value
    return Grid(family, table, None, False)._is_possible()


@pytest.mark.parametrize("x", [ROWS[:, 0], -ROWS[:, 0], ROWS[:, 0] - 1.0])
def test_grids_that_were_made_are_possible_and_small_changes_are_not(x):
    table = range_of(x[:, None]).grid()._table[0]
    assert forged_grid(x)
    sign, first, bins, exponent = (table[getattr(g, f"G_{name}")] for name in ("SIGN", "FIRST", "BINS", "EXPONENT"))
    assert forged_grid(x, QUANTUM=970.0)
    assert forged_grid(x, QUANTUM=-1030.0)
    for change in (
        {"QUANTUM": 971.0},
        {"QUANTUM": -1031.0},
        {"QUANTUM": 0.5},
        {"FIRST": first + 2.0, "BINS": bins - 2.0 - 2.0},
        {"FIRST": first - 3.0},
        {"FIRST": first + 0.5},
        {"BINS": bins + 3.0},
        {"BINS": 0.0},
        {"BINS": 65537.0},
        {"EXPONENT": exponent + 1.0},
        {"EXPONENT": -1001.0},
        {"EXPONENT": 12.0},
        {"SIGN": 0.5},
        {"SIGN": 2.0},
        {"SIGN": -sign} if sign else {"SIGN": 1.0},
        {"MIN": table[g.G_MAX] * 2.0 + 1.0},
        {"REF": 1e9},
        {"REF": -1e9},
    ):
        assert not forged_grid(x, **change), change


def test_grids_of_box_cox_have_positive_values():
    x = ROWS[:, 0]
    assert forged_grid(x, "box-cox")
    for change in ({"MIN": 0.0}, {"MIN": -1.0}, {"SIGN": -1.0}, {"SIGN": 0.0}, {"REF": 0.0}):
        assert not forged_grid(x, "box-cox", **change), change


@pytest.mark.parametrize(
    ("low", "high", "family", "message"),
    [
        ([0.0, 1.0], [1.0, 1.0], "yeo-johnson", "bounds must be finite, with low < high in every column"),
        (0.0, np.inf, "yeo-johnson", "bounds must be finite"),
        ([[0.0]], [[1.0]], "yeo-johnson", "bounds must be finite"),
        (0.0, 1.0, "box-cox", "bounds of family 'box-cox' must be positive"),
        ([0.0, 1.0], [1.0, 2.0, 3.0], "yeo-johnson", r"bounds must be \(low, high\): numbers, or one per column"),
        ("a", 1.0, "yeo-johnson", r"bounds must be \(low, high\)"),
    ],
)
def test_bounds_on_values_are_checked(low, high, family, message):
    with pytest.raises(ValueError, match=message):
        check_bounds(low, high, family)


def test_a_range_from_bounds_covers_them():
    assert check_bounds(0.0, [1.0, 2.0], "yeo-johnson").tolist() == [[0.0, 0.0], [1.0, 2.0]]
    found = Range.from_bounds([0.5, 2.0], [4.0, 3.0], "box-cox", 7.0, ["a", "b"])
    assert (found.x_min.tolist(), found.x_max.tolist()) == ([0.5, 2.0], [4.0, 3.0])
    assert found.n_obs.tolist() == [7.0, 7.0]
    assert (found.count.tolist(), found.column_names) == ([1.0, 1.0], ["a", "b"])
    assert found._possible().all()
    for j in (0, 1):
        middle = 0.5 * (math.log(found.x_min[j]) + math.log(found.x_max[j]))
        assert r.mean_log(found._table[j]) == pytest.approx(middle, abs=1e-4)
        units = round(middle / r.LOG_UNIT)
        assert found._table[j, r.R_SQUARES] * r.LIMB + found._table[j, r.R_SQUARES_LOW] == units**2
        assert 0.0 <= found._table[j, r.R_SQUARES_LOW] < r.LIMB
    assert Range.from_bytes(found.to_bytes()) == found
    for weight in (0.0, -1.0, np.inf):
        with pytest.raises(ValueError, match="weight must be"):
            Range.from_bounds(0.5, 4.0, "box-cox", weight)


def test_parts_of_ranges_and_grids_keep_their_columns():
    limits = ([0.01, 0.02], [9.0, np.inf])
    found = range_of(ROWS, "box-cox", shift=[1.0, 2.0], limits=limits, column_names=["a", "b"])
    grid = found.grid()
    for whole in (found, grid):
        part = whole.part([1])
        assert (part.column_names, part.shift.tolist(), part.n_features) == (["b"], [2.0], 1)
        assert part.limits.tolist() == [[0.02], [np.inf]]
        assert type(whole)._join_columns([whole.part([0]), whole.part([1])]) == whole
        assert whole.part([True, False]).column_names == ["a"]
        assert type(whole).from_bytes(whole.to_bytes()) == whole
        assert whole != whole.part([1, 0])
        np.testing.assert_allclose([whole.x_min, whole.x_max], [found.x_min, found.x_max])
    unnamed = type(found)._join_columns([found.part([0]), range_of(ROWS[:, 1], "box-cox", shift=2.0)])
    assert unnamed.column_names is None
    vector = range_of(ROWS[:, 0])
    assert type(vector)._join_columns([vector])._was_vector
    assert not type(vector)._join_columns([vector, vector])._was_vector


def test_refined_grids_have_bins_an_eighth_as_wide():
    grid = range_of(ROWS).grid()
    fine = grid.refined([1])
    assert (fine._table[:, g.G_EXPONENT] - grid._table[:, g.G_EXPONENT]).tolist() == [0.0, -3.0]
    assert abs(fine.n_bins[1] - 8 * grid.n_bins[1]) <= 8
    assert fine.n_bins[0] == grid.n_bins[0]
    every = grid.refined()
    assert (every._table[:, g.G_EXPONENT] - grid._table[:, g.G_EXPONENT]).tolist() == [-3.0, -3.0]
    assert every._starts.tolist() == [0, every.n_bins[0], every.n_bins.sum()]


def test_room_for_sums_depends_on_the_quantum():
    grid = range_of(ROWS).grid()
    room = 2.0 ** (grid.quantum + sketches.ROOM)
    assert grid._has_room_for(0.99 * room)
    assert not grid._has_room_for(room)
    assert not grid._has_room_for(np.array([0.0, room[1]]))
    empty = range_of(np.full((2, 1), np.nan)).grid()
    assert empty._has_room_for(np.array([1e300]))


# --- sums on other grids -----------------------------------------------------------------------------


def bin_sums(x, w, first: int, n: int, width: float):
    """Return the sums of w t**k, k = 0 to 7, in `n` bins from number `first`: (n, 8).

    Bin j contains the values from j width to (j + 1) width, where t runs from -1 to 1.
    """
    sums = np.zeros((n, 8))
    for value, weight in zip(x, w, strict=True):
        j = math.floor(value / width)
        t = 2.0 * (value / width - j) - 1.0
        sums[j - first] += weight * t ** np.arange(8)
    return sums


@pytest.mark.parametrize(("first", "n"), [(0, 6), (3, 5), (-3, 6), (-4, 7), (5, 1)])
def test_joined_bins_have_the_sums_of_their_values(first, n):
    rng = np.random.default_rng(n)
    x, w = first + n * rng.random(50), rng.random(50)
    found, begin = sketches._join_pairs(bin_sums(x, w, first, n, 1.0), first)
    assert begin == first // 2
    np.testing.assert_allclose(found, bin_sums(x, w, begin, len(found), 2.0), atol=1e-12)
    assert len(found) == (first + n - 1) // 2 - begin + 1


def test_values_on_the_border_move_to_the_next_bin():
    sums = np.zeros((3, 8))
    sums[0] = 2.5 * 1.0 ** np.arange(8)  # t = 1 in the first bin
    sums[1] = 0.5 * 0.25 ** np.arange(8)
    expected = 2.5 * (-1.0) ** np.arange(8) + 0.5 * 0.25 ** np.arange(8)
    found = sketches._merge_first_bin(sums)
    np.testing.assert_allclose(found, [expected, np.zeros(8)], atol=1e-12)
    assert sums[1, 0] == 0.5  # is not overwritten


@pytest.mark.parametrize("levels", [0, 1, 3])
@pytest.mark.parametrize("quanta", [0, 2])
@pytest.mark.parametrize("first", [-5, 0, 4])
def test_sums_are_converted_to_wider_bins_and_larger_units(levels, quanta, first):
    rng = np.random.default_rng(levels)
    x, w = first + 9 * rng.random(80), rng.integers(1, 5, 80).astype(float)
    sums = np.rint(bin_sums(x, w, first, 9, 1.0) * 2.0**30).astype(np.int64)
    cell, new = np.zeros(g.N_GRID), np.zeros(g.N_GRID)
    cell[[g.G_EXPONENT, g.G_FIRST, g.G_BINS, g.G_QUANTUM]] = -4.0, first, 9, -30.0
    begin, stop = first >> levels, (first + 8 >> levels) + 1
    new[[g.G_EXPONENT, g.G_FIRST, g.G_BINS, g.G_QUANTUM]] = -4.0 + levels, begin - 2, stop - begin + 5, -30.0 + quanta
    found, start = sketches._convert_sums(sums, first, cell, new)
    assert start == begin
    expected = bin_sums(x, w, begin, stop - begin, 2.0**levels)
    np.testing.assert_allclose(found * 2.0 ** (quanta - 30), expected, atol=1e-6)
    if levels == quanta == 0:
        assert found is sums


@pytest.mark.parametrize("at_end", [False, True])
def test_sums_of_a_value_on_the_border_of_the_grid_stay_inside(at_end):
    """Rounding of logs may move the largest or smallest value of a sketch one bin beyond the new grid."""
    x, w = np.array([0.25, 1.5, 2.75]), np.ones(3)
    sums = np.rint(bin_sums(x, w, 0, 3, 1.0) * 2.0**30).astype(np.int64)
    if at_end:
        sums[2] = 2**30 * np.array((-1.0) ** np.arange(8))  # at 2
    else:
        sums[0] = 2**30  # at 1
    cell, new = np.zeros(g.N_GRID), np.zeros(g.N_GRID)
    cell[[g.G_EXPONENT, g.G_FIRST, g.G_BINS, g.G_QUANTUM]] = 0.0, 0.0, 3, -30.0
    new[:] = cell
    new[[g.G_FIRST, g.G_BINS]] = (0.0, 2.0) if at_end else (1.0, 2.0)
    found, first = sketches._convert_sums(sums, 0, cell, new)
    assert (first, len(found)) == (0 if at_end else 1, 2)
    values = [0.25, 1.5] if at_end else [1.5, 2.75]
    expected = bin_sums(values, np.ones(2), first, 2, 1.0)
    expected[1 if at_end else 0] += (1.0 if at_end else -1.0) ** np.arange(8)
    np.testing.assert_allclose(found * 2.0**-30, expected, atol=1e-6)


def test_sketches_on_two_grids_merge_to_the_sums_of_all_rows():
    near, far = ROWS[:40], 50.0 * ROWS[40:]
    one, two = extend(None, near), extend(None, far)
    both = merge(one, two)
    assert both.n_obs.tolist() == [80.0, 80.0]
    direct = summarize_chunk(np.concatenate([near, far]), both.grid)
    np.testing.assert_allclose(
        both.sums * 2.0 ** both.grid.quantum[0], direct.sums * 2.0 ** direct.grid.quantum[0], atol=1e-9
    )
    assert (both._roundings[:, 0] >= one._roundings[:, 0] + two._roundings[:, 0]).all()
    assert both._roundings[:, 1].tolist() == [80, 80]
    assert merge(two, one).grid == both.grid
    assert merge(one, one).grid == one.grid
    with pytest.raises(
        ValueError, match="column 0: the grids of the sketches cannot be merged; sketch all chunks on one"
    ):
        merge(*(summarize_chunk(part, range_of(part).grid()) for part in (near, far)))


def test_sums_beyond_the_grid_or_of_wider_bins_do_not_move():
    total = extend(None, ROWS)
    with pytest.raises(ValueError, match="column 0: the grid has narrower bins than the sketch"):
        total._on_grid(total.grid.refined())
    with pytest.raises(ValueError, match="column 0: the bins of a sketch lie beyond its range"):
        total._on_grid(extend(None, ROWS[:2] / 1e3).grid._with_bins(total.grid._table[:, g.G_EXPONENT], 4096))
