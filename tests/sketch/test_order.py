"""Order statistics of chunks: samples, bins, cells and points, compared with plain versions of their definitions."""

from __future__ import annotations

import itertools
import math
import struct

import numpy as np
import pytest
import scipy.stats

from powerkern.sketch import merge, order, range_of
from powerkern.sketch.order import (
    CellMoments,
    check_unchanged,
    choose_parts,
    count_in_bins,
    draw_sample,
    equal_points,
    even_parts,
    first_edges,
    moment_points,
    narrower_edges,
    replace_divided_cells,
    rows_as_cells,
    weighted_median,
)

RNG = np.random.default_rng(5)
X = np.round(RNG.lognormal(size=(40, 2)), 1)
X[3, 0], X[7:9, 1] = np.nan, np.nan
WEIGHT = RNG.integers(0, 4, 40) * 0.75


def sample_of(X, weight=None):
    return draw_sample(X, weight, range_of(X, sample_weight=weight))


def next_up(x: float) -> float:
    return math.nextafter(x, math.inf)


# --- samples -----------------------------------------------------------------------------------------


def key(x: float, place: int) -> float:
    """Return the exponentially distributed key of value x in row `place`, by SplitMix64 with Python integers."""
    bits = struct.unpack("<Q", struct.pack("<d", x))[0] ^ (place * 0x9E3779B97F4A7C15 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> shift)) * factor % 2**64
    return -math.log((((bits ^ (bits >> 31)) >> 11) + 0.5) / 2**53)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [4, 18, 19, 2048])
def test_a_sample_has_the_smallest_keys(weighted, size, monkeypatch):
    monkeypatch.setattr(order, "SAMPLE", size)
    weight = WEIGHT if weighted else None
    sample = sample_of(X, weight)
    assert sample.weighted == weighted
    for j in range(2):
        w = np.ones(40) if weight is None else weight
        seen = ~np.isnan(X[:, j]) & (w > 0.0)
        x, w = X[seen, j], w[seen]
        step = max(1, math.ceil(x.size / size))
        rows = sorted((key(x[i], i) / (w[i] * step), x[i], w[i]) for i in range(0, x.size, step))
        np.testing.assert_allclose(sample.drawn[j], rows[:size], rtol=1e-13)
        np.testing.assert_allclose(sample.weights[j], [w.max(), w.sum() / w.max(), (w**2).sum() / w.max() ** 2])
    assert key(0.0, 3) == order._hash_to_exponentials(np.array([-0.0]), np.array([3]))[0]


def test_a_sample_of_no_rows_is_empty():
    sample = sample_of(np.full((3, 1), np.nan))
    assert sample.drawn[0].shape == (0, 3)
    assert sample.weights.tolist() == [[0.0, 0.0, 0.0]]
    assert (sample.unit.tolist(), sample.total.tolist()) == ([1.0], [0.0])


def test_merged_samples_have_the_smallest_keys_and_all_the_weight(monkeypatch):
    monkeypatch.setattr(order, "SAMPLE", 9)
    parts = [sample_of(X[:25], WEIGHT[:25]), sample_of(X[25:], 3.0 * WEIGHT[25:])]
    both = merge(*parts)
    weight = np.append(WEIGHT[:25], 3.0 * WEIGHT[25:])
    for j in range(2):
        rows = sorted(map(tuple, np.concatenate([part.drawn[j] for part in parts])))
        assert both.drawn[j].tolist() == [list(row) for row in rows[:9]]
        w = weight[~np.isnan(X[:, j])]
        np.testing.assert_allclose(both.total[j], w.sum())
        np.testing.assert_allclose(both.unit[j], min(1.0, (w**2).sum() / w.sum()), rtol=1e-7)
        assert both.unit[j] == np.float32(both.unit[j])
        n = np.count_nonzero(w)
        quanta = w.max() * n / 2.0 ** both.quantum[j]
        assert 2.0**58 <= quanta < 2.0**60
        assert both.slack[j] == n * 2.0 ** both.quantum[j]
        assert both.ends[j].tolist() == [np.nanmin(X[w_positive(weight), j]), np.nanmax(X[w_positive(weight), j])]
    light = merge(sample_of(X[:25], 0.01 * WEIGHT[:25]), sample_of(X[25:], 0.01 * WEIGHT[25:]))
    w = 0.01 * WEIGHT[~np.isnan(X[:, 0])]
    np.testing.assert_allclose(light.unit[0], (w**2).sum() / w.sum(), rtol=1e-7)
    assert merge(sample_of(X[:25]), sample_of(X[25:], WEIGHT[25:])).weighted
    assert not merge(sample_of(X[:25]), sample_of(X[25:])).weighted
    assert merge(sample_of(X[:3] * np.nan), sample_of(X[:3])).total.tolist() == [3.0, 3.0]


def w_positive(weight):
    return weight > 0.0


def test_parts_of_samples_are_joined_again():
    sample = sample_of(X, WEIGHT)
    again = type(sample)._join_columns([sample.part([0]), sample.part([1])])
    turned = sample.part([1, 0])
    for j in range(2):
        np.testing.assert_array_equal(again.drawn[j], sample.drawn[j])
        np.testing.assert_array_equal(turned.drawn[1 - j], sample.drawn[j])
    np.testing.assert_array_equal(again.weights, sample.weights)
    assert again.range == sample.range
    assert again.weighted
    assert not type(sample)._join_columns([sample_of(X).part([0])]).weighted


# --- edges -------------------------------------------------------------------------------------------


def plain_edges(sample, j: int, most: int, n_sample: int, n_tail: int) -> list[float]:
    low, high = sample.ends[j]
    drawn = sorted(sample.drawn[j][:, 1])
    distinct = sorted(set(drawn))
    repeated = [x for x in distinct if drawn.count(x) > 1]
    inner = distinct
    if len(distinct) > most // 2:
        repeated = [x for x in distinct if drawn.count(x) > max(1, n_sample // 256)]
        inner = drawn[:: max(1, math.ceil(len(drawn) / (most - 2 * n_tail - 2 * len(repeated))))]
    edges = {low, next_up(high), *inner, *repeated, *map(next_up, repeated)}
    for k in range(n_tail):
        edges |= {inner[0] + (low - inner[0]) * 0.5**k, inner[-1] + (high - inner[-1]) * 0.5**k}
    return sorted(edge for edge in edges if low <= edge <= next_up(high))


@pytest.mark.parametrize(("most", "n_sample"), [(64, 30), (64, 2048), (40, 600), (24, 30), (76, 2048)])
def test_first_edges_are_sampled_values_separate_ties_and_a_doubling_tail(most, n_sample, monkeypatch):
    for name, size in (("EDGES", most), ("SAMPLE", n_sample), ("_TAIL", 3)):
        monkeypatch.setattr(order, name, size)
    rng = np.random.default_rng(most)
    x = np.concatenate([rng.normal(size=36), [-20.0, 30.0], np.repeat([0.5, 0.75, 0.25], [3, 4, 2])])[:, None]
    sample = sample_of(x)
    assert first_edges(sample, 0).tolist() == plain_edges(sample, 0, most, n_sample, 3)


# --- bins and cells ----------------------------------------------------------------------------------


def random_cells(seed: int, n: int = 30, weighted: bool = False):
    """Return n values, their weights (or None), and the edges of cells; values and edges are multiples of 0.1."""
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(size=n), 1)
    w = rng.integers(0, 4, n) * 0.5 if weighted else None
    edges = np.unique(np.round(rng.normal(size=8), 1))
    return x, w, edges


@pytest.mark.parametrize("scale", [1.0, 1e308])
@pytest.mark.parametrize("weighted", [False, True])
def test_cells_have_the_moments_of_their_rows(weighted, scale):
    for seed in range(5):
        x, w, edges = random_cells(seed, 60, weighted)
        x, edges = x * (scale / 4.0), edges * (scale / 4.0)
        x[5] = np.nan
        every, weights = x[:, None], w
        sample = sample_of(every, w)
        halves = [
            count_in_bins(every[part], None if w is None else weights[part], [edges], sample.quantum)
            for part in (slice(0, 21), slice(21, 60))
        ]
        bins = merge(*halves)
        (cells,) = bins.cells()
        weight = np.ones(60) if w is None else w
        expected = []
        by_bin = []
        for left, right in itertools.pairwise(edges):
            own = (left <= x) & (x < right) & (weight > 0.0)
            by_bin.append(weight[own].sum())
            if own.any():
                y, v = x[own] / scale, weight[own]
                mean = np.average(y, weights=v)
                sd = math.sqrt(np.average((y - mean) ** 2, weights=v))
                place = (mean - y.min()) / np.ptp(y) if np.ptp(y) else 0.5
                expected.append((own.sum(), v.sum(), y.min(), y.max(), mean, sd, place))
        found = np.array([*cells[:2], *(part / scale for part in cells[2:6]), cells.place])
        np.testing.assert_allclose(found, np.transpose(expected), rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(bins.weights()[0], by_bin)
        assert cells.is_one_value.tolist() == [row[2] == row[3] for row in expected]


def test_bins_of_several_columns_are_joined_and_columns_may_have_no_edges():
    sample = sample_of(X, WEIGHT)
    edges = [np.array([0.0, 1.0, 2.0]), np.empty(0)]
    bins = count_in_bins(X, WEIGHT, edges, sample.quantum)
    first = count_in_bins(X[:, :1], WEIGHT, edges[:1], sample.quantum[:1])
    assert [cells.rows.size for cells in bins.cells()] == [2, 0]
    joined = type(bins)._join_columns([first, count_in_bins(X[:, 1:], WEIGHT, edges[1:], sample.quantum[1:])])
    for one, other in ((bins, joined), (bins, merge(bins, count_in_bins(X[:0], WEIGHT[:0], edges, sample.quantum)))):
        np.testing.assert_array_equal(one.sums, other.sums)
        np.testing.assert_array_equal(one.ends, other.ends)
    nothing = count_in_bins(X + 100.0, WEIGHT, edges, sample.quantum)
    assert not nothing.sums.any()
    assert nothing.ends.tolist() == [[np.inf] * 2, [-np.inf] * 2]


def test_sampled_rows_are_cells_in_the_order_of_values_and_weights():
    drawn = np.array([[0.1, 2.0, 5.0], [0.2, 1.0, 4.0], [0.3, 2.0, 3.0]])
    cells = rows_as_cells(drawn)
    expected = [[1, 1, 1], [4, 3, 5], [1, 2, 2], [1, 2, 2], [1, 2, 2], [0, 0, 0], [0.5] * 3]
    np.testing.assert_array_equal(np.array(cells), expected)


# --- divisions ---------------------------------------------------------------------------------------


def cells_of(rows, low, high, place=None, sd=None, weight=None) -> CellMoments:
    rows, low, high = (np.asarray(part, dtype=float) for part in (rows, low, high))
    place = np.full(rows.size, 0.5) if place is None else np.asarray(place, dtype=float)
    sd = 0.3 * (high - low) if sd is None else np.asarray(sd, dtype=float)
    weight = rows if weight is None else np.asarray(weight, dtype=float)
    return CellMoments(rows, weight, low, high, low + place * (high - low), sd, place)


CELLS = cells_of([1, 8, 4, 2, 9], [0.0, 1.0, 3.0, 5.0, 7.0], [0.0, 2.0, 4.5, 6.0, 7.0], place=[0.5, 0.3, 0.8, 0.5, 0.5])


def test_cells_are_divided_evenly_and_closed():
    edges = narrower_edges(CELLS, np.array([1, 4, 2, 1, 1]))
    expected = [1.0, 1.25, 1.5, 1.75, 2.0, next_up(2.0), 3.0, 3.75, 4.5, next_up(4.5)]
    np.testing.assert_allclose(edges, expected, rtol=1e-15)
    assert edges[[4, 5]].tolist() == [2.0, next_up(2.0)]
    assert narrower_edges(CELLS, np.ones(5, int)).size == 0
    huge = CellMoments(*(np.array([value]) for value in (5.0, 5.0, -1.7e308, 1.7e308, 0.0, 1.0, 0.5)))
    np.testing.assert_allclose(narrower_edges(huge, np.array([4]))[1:4], [-0.85e308, 0.0, 0.85e308], atol=1e293)


@pytest.mark.parametrize(("n_chosen", "parts"), [(0, 1), (1, 62), (3, 19), (40, 2)])
def test_chosen_cells_share_the_edges(n_chosen, parts, monkeypatch):
    monkeypatch.setattr(order, "EDGES", 64)
    chosen = np.arange(50) < n_chosen
    assert even_parts(chosen).tolist() == [parts] * n_chosen + [1] * (50 - n_chosen)


@pytest.mark.parametrize("critical", [[], [1], [1, 2], [0, 3, 4]])
def test_parts_of_cells_grow_with_their_effect(critical):
    is_critical = np.isin(np.arange(5), critical)
    weight = np.array([1.0, 5.0, 4.0, 2.0, 3.0])
    cells = CELLS._replace(weight=weight)
    n, total = 24.0, weight.sum()
    effects, expected = [], []
    for i in range(5):
        below, up = weight[:i].sum() / total, weight[: i + 1].sum() / total
        ends = [min(max(share, 1 / (3 * n)), 1 - 1 / (3 * n)) for share in (below, up)]
        d = np.diff(scipy.stats.norm.ppf(ends))[0]
        is_one = cells.low[i] == cells.high[i]
        effects.append(0.0 if is_one or is_critical[i] else (weight[i] * d * d) ** 0.4)
    for i in range(5):
        if cells.low[i] == cells.high[i] or cells.rows[i] <= 2:
            expected.append(1)
        elif is_critical[i]:
            expected.append(max(2, 2048 // (4 * max(1, len(critical)))))
        else:
            expected.append(int(min(round(3 * 2048 // 4 * effects[i] / sum(effects)), 4 * cells.rows[i])))
    assert choose_parts(cells, is_critical).tolist() == expected


def test_parts_are_few_where_edges_are(monkeypatch):
    monkeypatch.setattr(order, "EDGES", 8)
    cells = cells_of([50, 50, 50], [0.0, 1.0, 2.0], [0.5, 1.5, 2.5])
    assert choose_parts(cells, np.array([True, True, True])).tolist() == [2, 2, 2]
    assert choose_parts(cells, np.array([False] * 3)).sum() in (5, 6, 7)


def test_divided_cells_are_replaced_by_their_parts():
    finer = cells_of([3, 5, 1, 3, 7], [1.0, 1.5, 3.0, 3.5, 7.0], [1.25, 2.0, 3.0, 4.5, 8.0])
    chosen = np.array([False, True, True, False, False])
    found = replace_divided_cells(CELLS, chosen, finer, "column 0")
    assert found.rows.tolist() == [1.0, 3.0, 5.0, 1.0, 3.0, 2.0, 9.0]  # the last of `finer` lies in no divided cell
    assert found.low.tolist() == [0.0, 1.0, 1.5, 3.0, 3.5, 5.0, 7.0]
    assert replace_divided_cells(CELLS, np.zeros(5, bool), finer, "column 0") is CELLS
    with pytest.raises(ValueError, match="column 'u': the data changed between two passes, from 12 to 9 values"):
        replace_divided_cells(CELLS, chosen, finer.part(np.array([0, 1, 2, 4])), "column 'u'")


@pytest.mark.parametrize(
    ("before", "after", "slack", "is_same"),
    [
        (1.0, 1.0 + 0.9e-9, 0.0, True),
        (1.0, 1.0 - 1.1e-9, 0.0, False),
        (0.0, 0.9e-279, 0.0, True),
        (0.0, 1.1e-279, 0.0, False),
        (2.0, 2.5, 0.5, True),
        (2.0, 1.5, 0.4, False),
        (4.0, 4.0, 0.0, True),
        (0.0, 0.0, 0.0, True),
    ],
)
def test_total_weights_differ_by_rounding_only(before, after, slack, is_same):
    if is_same:
        check_unchanged("column 0", before, after, slack)
    else:
        with pytest.raises(ValueError, match="column 0: the data changed between two passes"):
            check_unchanged("column 0", before, after, slack)


# --- points ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fewest", [1024, 30, 1])
def test_points_of_a_cell_have_equal_weights_and_its_mean(fewest, monkeypatch):
    monkeypatch.setattr(order, "_FEWEST", fewest)
    cells = CELLS._replace(weight=np.array([1.0, 6.0, 4.0, 3.0, 9.0]))
    x, w, cell = equal_points(cells)
    at = 0
    for i in range(5):
        n = int(min(cells.rows[i], max(4, math.ceil(fewest / 5))))
        own = slice(at, at + n)
        at += n
        assert cell[own].tolist() == [i] * n
        low, high, place, rows = (getattr(cells, name)[i] for name in ("low", "high", "place", "rows"))
        weight = np.full(n, cells.weight[i] / n)
        if rows == 2 and high > low:
            weight = cells.weight[i] * np.array([1.0 - place, place])
        rank = [((k + 0.5) * rows / n - 0.5) / (rows - 1) if rows > 1 else 0.0 for k in range(n)]
        points = low + (high - low) * np.clip(rank, 0.0, 1.0) ** ((1.0 - place) / place)
        moved = points + cells.mean[i] - np.average(points, weights=weight)
        points = moved if moved.min() >= low and moved.max() <= high else points
        np.testing.assert_allclose(x[own], points, rtol=1e-13)
        np.testing.assert_allclose(w[own], weight, rtol=1e-13)
    assert at == x.size


def test_the_two_rows_of_a_cell_are_its_ends_with_their_weights():
    cells = cells_of([2, 1], [1.0, 4.0], [3.0, 4.0], place=[0.25, 0.5], weight=[8.0, 2.0])
    x, w, cell = equal_points(cells)
    np.testing.assert_allclose(x, [1.0, 3.0, 4.0])
    np.testing.assert_allclose(w, [6.0, 2.0, 2.0])
    assert cell.tolist() == [0, 0, 1]


def test_skewed_cells_have_points_inside_with_their_ends():
    cells = cells_of([100] * 4, [0.0, 2.0, 4.0, 6.0], [1.0, 3.0, 5.0, 7.0], place=[0.001, 0.999, 0.1, 0.6])
    x, w, cell = equal_points(cells)
    assert ((cells.low[cell] <= x) & (x <= cells.high[cell])).all()
    means = np.bincount(cell, x * w) / np.bincount(cell, w)
    np.testing.assert_allclose(means[2:], cells.mean[2:], atol=0.01)
    np.testing.assert_allclose(means[:2], cells.mean[:2], atol=0.03)


@pytest.mark.parametrize("fraction", [1.0, 0.3])
def test_perturbed_points_vary_as_order_statistics_of_uniform_numbers(fraction):
    """In a cell with 9 rows and ends 0 and 1, row k = 0, ..., 8 follows the distribution beta(c k, c (8 - k)).

    Here c is max(fraction, 1/8), and the mean of the cell is 1/2.
    """
    rows = 9
    cells = cells_of([rows, rows], [0.0, 2.0], [1.0, 3.0])
    rng = np.random.default_rng(0)
    ranks = np.array(
        [
            order._perturb_ranks(
                np.tile(np.arange(rows) / 8.0, 2),
                np.array([0, rows]),
                cells.rows,
                np.repeat([0, 1], rows),
                fraction,
                rng,
            )
            for _ in range(800)
        ]
    )
    n = max(fraction * 8.0, 1.0)
    for k in (1, 4, 7):
        expected = scipy.stats.beta(k / 8.0 * n, (1.0 - k / 8.0) * n)
        for first in (0, rows):
            assert ranks[:, first + k].mean() == pytest.approx(expected.mean(), abs=0.04)
            assert ranks[:, first + k].std() == pytest.approx(expected.std(), rel=0.12)
    assert (np.diff(ranks[:, :rows]) >= 0.0).all()
    np.testing.assert_array_equal(ranks[:, [0, rows]], 0.0)
    np.testing.assert_allclose(ranks[:, [rows - 1, 2 * rows - 1]], 1.0)


def test_perturbed_weights_keep_the_weight_of_each_cell():
    cells = cells_of([20, 30], [0.0, 2.0], [1.0, 3.0], weight=[10.0, 7.0])
    _, even, cell = equal_points(cells, np.random.default_rng(0))
    np.testing.assert_allclose(even, (cells.weight / cells.rows)[cell])
    x, w, cell = equal_points(cells, np.random.default_rng(0), 0.4)
    np.testing.assert_allclose(np.bincount(cell, w), [10.0, 7.0])
    assert w[cell == 0].std() / w[cell == 0].mean() == pytest.approx(1.0 / math.sqrt(0.4), rel=0.5)
    assert ((cells.low[cell] <= x) & (x <= cells.high[cell])).all()
    again = equal_points(cells, np.random.default_rng(0), 0.4)
    np.testing.assert_array_equal(again[0], x)


def test_pairs_of_points_have_mean_and_variance_of_their_cells():
    rng = np.random.default_rng(1)
    low, high = np.arange(60.0) * 2.0, np.arange(60.0) * 2.0 + rng.random(60)
    place = rng.random(60)
    mean = low + place * (high - low)
    sd = rng.random(60) * np.sqrt((mean - low) * (high - mean))
    sd[:5] = np.sqrt((mean - low) * (high - mean))[:5]
    low[5], high[5], place[5], sd[5] = 10.0, 10.0, 0.5, 0.0
    weight = rng.random(60) + 0.5
    cells = CellMoments(np.full(60, 9.0), weight, low, high, low + place * (high - low), sd, place)
    x, w, cell = moment_points(cells)
    assert ((low[cell] <= x) & (x <= high[cell])).all()
    assert (w > 0.0).all()
    assert np.bincount(cell).max() <= 2
    np.testing.assert_allclose(np.bincount(cell, w), weight)
    means = np.bincount(cell, w * x) / weight
    np.testing.assert_allclose(means, cells.mean, rtol=1e-12)
    np.testing.assert_allclose(np.bincount(cell, w * (x - means[cell]) ** 2) / weight, sd**2, rtol=1e-9, atol=1e-14)
    assert x[cell == 5].tolist() == [10.0]


@pytest.mark.parametrize(
    ("w", "median"),
    [([1, 1, 1], 2.0), ([1, 1, 1, 1], 2.0), ([3, 1, 1], 1.0), ([2, 1, 1], 1.0), ([1, 1, 3], 3.0), ([1], 1.0)],
)
def test_a_weighted_median_is_the_first_value_with_half_the_weight(w, median):
    assert weighted_median(np.arange(1.0, len(w) + 1.0), np.array(w, dtype=float)) == median
