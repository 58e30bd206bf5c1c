"""Passes over chunks: kept values, censored intervals and wide tables of groups, compared with plain versions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from powerkern._input.arrays import Matrix
from powerkern._input.censoring import Marks
from powerkern.sketch import Range, intervals, merge, range_of, summarize_chunk
from powerkern.sketch.intervals import CountedIntervals, count_intervals, end_range, standard_ends, values_of
from powerkern.sketch.passes import BinsPass, KeptPass, RangePass

RNG = np.random.default_rng(2)


# --- kept values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_kept_values_are_those_of_the_interval_and_near_its_ends_are_counted(weighted):
    x = np.round(RNG.normal(size=(60, 2)), 1)
    x[4, 0], shift = np.nan, np.array([0.0, 2.0])
    w = RNG.integers(0, 3, 60) * 0.5 if weighted else None
    interval = np.array([[-1.0, 1.2, 0.1, 2.0, 0.3], [0.5, 3.0, 1.5, 0.5, np.nan]])
    zones = np.array([[[-1.2, -1.0, -0.7], [1.0, 1.2, 1.3]], [[0.3, 0.5, 0.6], [2.9, 3.0, 3.4]]])
    low, high = ((interval[:, k] - interval[:, 2]) / interval[:, 3] for k in (0, 1))
    grid = Range.from_bounds(low, high, "yeo-johnson", 100.0).grid()
    step = KeptPass(grid=grid, interval=interval, zones=zones, quantum=np.array([-10, -8]), shift=shift)
    kept = step(x, w)
    halves = merge(step(x[:20], None if w is None else w[:20]), step(x[20:], None if w is None else w[20:]))
    weight = np.ones(60) if w is None else w
    for j in range(2):
        y, seen = x[:, j] + shift[j], ~np.isnan(x[:, j])
        inside = seen & (interval[j, 0] <= y) & (y <= interval[j, 1]) & (y != interval[j, 4])
        for found in (kept, halves):
            assert found.weight[j] == weight[seen].sum()
            assert found.sketch.n_obs[j] == pytest.approx(weight[inside].sum())
            some = inside & (weight > 0.0)
            assert found.ends[:, j].tolist() == [y[some].min(), y[some].max()]
            for k in range(4):
                start, stop = zones[j].ravel()[[0, 1, 3, 4][k]], zones[j].ravel()[[1, 2, 4, 5][k]]
                near = seen & (start <= y) & (y < stop) & (y != interval[j, 4])
                assert found.near[k, j] * 2.0 ** step.quantum[j] == weight[near].sum()
        part = kept.part(j)
        assert part.ends.tolist() == kept.ends[:, [j]].tolist()
        assert part.near.tolist() == kept.near[:, [j]].tolist()
        assert (part.weight.tolist(), part.sketch.n_obs.tolist()) == ([kept.weight[j]], [kept.sketch.n_obs[j]])
    joined = type(kept)._join_columns([kept.part(0), kept.part(1)])
    np.testing.assert_array_equal(joined.near, kept.near)
    np.testing.assert_array_equal(joined.ends, kept.ends)
    assert joined.weight.tolist() == kept.weight.tolist()


def test_passes_for_some_columns_take_their_entries():
    step = RangePass(family="box-cox", shift=np.array([1.0, 2.0, 3.0]), limits=(np.array([0.1, 0.2, 0.3]), 9.0),
                     column_names=("a", "b", "c"), labels=("x", "y", "z"))  # fmt: skip
    part = step.part([2, 0])
    assert part.shift.tolist() == [3.0, 1.0]
    assert (part.limits[0].tolist(), part.limits[1]) == ([0.3, 0.1], 9.0)
    assert (part.column_names, part.labels, part.chosen) == (("c", "a"), ("z", "x"), None)
    chosen = np.array([False, True, True])
    edges = [np.array([0.0, 1.0]), np.array([0.0, 2.0])]
    bins = BinsPass(edges=edges, quantum=np.array([-3, -4]), shift=np.array([5.0, 6.0]), chosen=chosen)
    part = bins.part([0, 2])
    assert part.chosen.tolist() == [False, True]
    assert (part.quantum.tolist(), part.shift.tolist(), part.edges[0].tolist()) == ([-4], [6.0], [0.0, 2.0])
    assert bins.part([0]) is None
    with pytest.raises(TypeError, match="columns of flags need chunks that have all columns"):
        RangePass(family="box-cox", flags=Marks({"a": "f"}, None, None)).part([0])


# --- intervals of censored cells ---------------------------------------------------------------------


def cells(seed: int, n: int = 40, p: int = 3, weighted: bool = False) -> Matrix:
    rng = np.random.default_rng(seed)
    values = rng.integers(1, 5, (n, p)).astype(float)
    values[rng.random((n, p)) < 0.1] = np.nan
    kind = rng.integers(0, 4, (n, p))
    ends = np.choose(kind, [np.full((n, p), np.nan), np.full((n, p), -np.inf), np.full((n, p), np.inf), values + 1.5])
    ends[:, 2] = np.nan
    return Matrix(values, ["a", "b", "c"], False, rng.integers(0, 3, n) * 0.5 if weighted else None, ends)


def plain_counts(matrix: Matrix, j: int) -> Counter:
    """Return the total weight of each interval of censored cells in column `j`, keyed by (lower end, upper end)."""
    found: Counter = Counter()
    weight = np.ones(len(matrix.values)) if matrix.weight is None else matrix.weight
    for x, end, w in zip(matrix.values[:, j], matrix.ends[:, j], weight, strict=True):
        if not np.isnan(x) and not np.isnan(end) and w > 0.0:
            found[min(x, end), max(x, end)] += w
    return found


def assert_counted(found: CountedIntervals, matrix: Matrix, quantum) -> None:
    weight = np.ones(len(matrix.values)) if matrix.weight is None else matrix.weight
    for j in range(matrix.values.shape[1]):
        part = slice(found.starts[j], found.starts[j + 1])
        counts = {
            tuple(end): count * 2.0 ** quantum[j]
            for end, count in zip(found.ends[part].tolist(), found.counts[part], strict=True)
        }
        assert counts == dict(plain_counts(matrix, j))
        assert list(counts) == sorted(counts)
        assert found.totals[j] == found.counts[part].sum()
        seen = matrix.values[np.isnan(matrix.ends[:, j]) & ~np.isnan(matrix.values[:, j]) & (weight > 0.0), j]
        assert found.observed[:, j].tolist() == [seen.min(), seen.max()]


QUANTUM = np.array([-4, -5, -6])


@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_are_counted_by_column_and_merged(weighted):
    for seed in range(3):
        matrix = cells(seed, weighted=weighted)
        whole = count_intervals(matrix, QUANTUM)
        assert_counted(whole, matrix, QUANTUM)
        halves = [
            matrix._replace(
                values=matrix.values[s], ends=matrix.ends[s], weight=None if matrix.weight is None else matrix.weight[s]
            )
            for s in (slice(0, 13), slice(13, 40))
        ]
        one, two = (count_intervals(half, QUANTUM) for half in halves)
        assert one.merge(two, None) == two.merge(one, None) == whole
        assert whole != one
        again = CountedIntervals.join_columns([whole.part(np.array([0])), whole.part(np.array([1, 2]))])
        assert again == whole
        turned = whole.part(np.array([2, 0]))
        assert turned.totals.tolist() == whole.totals[[2, 0]].tolist()
        coarse = whole.rescale(np.array([1, 0, 2]))
        first = whole.starts[1]
        assert coarse.counts[:first].tolist() == np.rint(whole.counts[:first] / 2.0).tolist()
        assert coarse.counts[first:].tolist() == whole.counts[first:].tolist()
        assert whole.rescale(np.zeros(3, int)) is whole
        table = whole.table(QUANTUM)
        np.testing.assert_allclose(table.rows[:, 2], whole.counts * 2.0 ** QUANTUM[whole._columns()])
        np.testing.assert_array_equal(table.rows[:, :2], whole.ends)
        np.testing.assert_array_equal(
            np.isnan(values_of(matrix).values), np.isnan(matrix.values) | ~np.isnan(matrix.ends)
        )
        assert whole.is_sound(np.full(3, 1.0), np.full(3, 5.5))


def test_columns_whose_cells_are_all_equal_are_counted_without_sorting():
    ends = np.full((4, 1), -np.inf)
    for weight, total in ((None, 4.0), (np.array([1.0, 0.0, 2.0, 0.5]), 3.5)):
        found = count_intervals(Matrix(np.full((4, 1), 2.0), None, False, weight, ends), np.array([-1]))
        assert found.ends.tolist() == [[-np.inf, 2.0]]
        assert found.counts.tolist() == [2.0 * total]
        assert found.observed.tolist() == [[np.inf], [-np.inf]]
    nothing = count_intervals(Matrix(np.full((4, 1), 2.0), None, False, None, np.full((4, 1), np.nan)), np.array([0]))
    assert (nothing.counts.size, nothing.observed.tolist()) == (0, [[2.0], [2.0]])
    assert nothing.merge(nothing, None) == nothing


def test_second_ends_widen_ranges_of_weighted_rows_only():
    matrix = Matrix(
        np.ones((3, 2)),
        None,
        False,
        np.array([1.0, 0.0, 1.0]),
        np.array([[5.0, np.inf], [9.0, 7.0], [np.nan, -np.inf]]),
    )
    assert end_range(matrix).tolist() == [[5.0, np.inf], [5.0, -np.inf]]
    assert end_range(matrix._replace(weight=None)).tolist() == [[5.0, 7.0], [9.0, 7.0]]


def test_intervals_that_begin_below_the_domain_are_open():
    values = np.array([[-1.0, 3.0], [0.0, 2.0], [0.5, -1.0]])
    ends = np.array([[2.0, -2.0], [4.0, np.inf], [1.0, -3.0]])
    found = standard_ends(Matrix(values, None, False, None, ends), 0, np.zeros(2))
    assert found.values.tolist() == [[2.0, 3.0], [4.0, 2.0], [0.5, -1.0]]
    assert found.ends.tolist() == [[-np.inf, -np.inf], [-np.inf, np.inf], [1.0, -3.0]]
    moved = standard_ends(Matrix(values, None, False, None, ends), 0, np.array([1.5, 0.0]))
    assert moved.values[:, 0].tolist() == [0.5, 1.5, 2.0]
    assert moved.ends[:, 0].tolist() == [3.5, 5.5, 2.5]


def test_columns_with_ends_beyond_the_grid_are_found():
    found = count_intervals(cells(0), QUANTUM)
    finite = [found.ends[found._columns() == j] for j in (0, 1)]
    low = np.array([min(part[np.isfinite(part)]) for part in finite] + [9.0])
    high = np.array([max(part[np.isfinite(part)]) for part in finite] + [9.0])
    assert found.are_within(low, high).tolist() == [True, True, True]
    for j in (0, 1):
        for by in (1e-9, -1e-9):
            moved = (low + (by > 0) * by * (np.arange(3) == j), high + (by < 0) * by * (np.arange(3) == j))
            assert found.are_within(*moved).tolist() == [j != 0, j != 1, True]


@pytest.mark.parametrize("forge", range(9))
def test_intervals_that_no_cells_have_are_unsound(forge):
    found = count_intervals(cells(0), QUANTUM)
    starts, ends, counts = found.starts.copy(), found.ends.copy(), found.counts.copy()
    low, high = np.full(3, 0.5), np.full(3, 6.0)
    assert CountedIntervals(starts, ends, counts, found.observed).is_sound(low, high)
    change = [
        lambda: starts.__setitem__(0, 1),
        lambda: starts.__setitem__(-1, starts[-1] - 1),
        lambda: starts.__setitem__(1, starts[2] + 1),
        lambda: ends.__setitem__(0, ends[0, ::-1].copy()),
        lambda: ends.__setitem__(0, [-np.inf, np.inf]),
        lambda: ends.__setitem__((slice(0, 2), slice(None)), ends[1::-1].copy()),
        lambda: counts.__setitem__(0, -1),
        lambda: high.__setitem__(0, 2.0),
        lambda: ends.__setitem__(1, ends[0]) or ends.__setitem__((1, 1), ends[1, 0]),
    ]  # fmt: skip
    change[forge]()
    assert not CountedIntervals(starts, ends, counts, found.observed).is_sound(low, high)


def test_a_column_has_at_most_so_many_intervals(monkeypatch):
    matrix = cells(1)
    found = count_intervals(matrix, QUANTUM)
    sizes = np.diff(found.starts)
    monkeypatch.setattr(intervals, "MOST_INTERVALS", int(sizes.max()))
    assert count_intervals(matrix, QUANTUM) == found
    monkeypatch.setattr(intervals, "MOST_INTERVALS", int(sizes.max()) - 1)
    name = "abc"[int(np.argmax(sizes == sizes.max()))]
    with pytest.raises(ValueError, match=rf"'{name}'.* more than {sizes.max() - 1} distinct limits"):
        count_intervals(matrix, QUANTUM)
    assert not found.is_sound(np.full(3, 0.5), np.full(3, 6.0))


def test_more_weight_than_the_grid_has_room_for_is_refused():
    matrix = Matrix(np.full((4, 1), 2.0), ["lead"], False, None, np.full((4, 1), -np.inf))
    with pytest.raises(
        ValueError, match=r"'lead'.* more censored cells, or more total weight, than the grid was made for"
    ):
        count_intervals(matrix, np.array([-300]))


def test_the_extremes_of_columns_in_one_bin_are_known():
    X = np.column_stack([np.full(6, 3.0), np.arange(1.0, 7.0), np.full(6, np.nan), [2.0, 2.0, 2.0, 2.0, 9.0, np.nan]])
    weight = np.array([1.0, 1.0, 1.0, 1.0, 0.0, 1.0])
    grid = merge(range_of(X, "box-cox", shift=2.0), range_of(X * 4.0, "box-cox", shift=2.0)).grid()
    observed = summarize_chunk(X, grid, sample_weight=weight)._intervals.observed
    assert observed.tolist() == [[5.0, -np.inf, np.inf, 4.0], [5.0, np.inf, -np.inf, 4.0]]
    every = summarize_chunk(X, grid)._intervals.observed
    assert every[:, 3].tolist() == [-np.inf, np.inf]
