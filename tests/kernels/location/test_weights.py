"""Weighted statistics of sorted columns equal those of repeated rows, and are continuous in the weights."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from powerkern._estimators.plotting_positions import normal_quantiles
from powerkern.kernels.location import weights as counts
from powerkern.kernels.normality import plotting_positions
from powerkern.kernels.robust import qq, trimmed

small = st.lists(st.tuples(st.integers(-4, 4), st.integers(1, 5)), min_size=1, max_size=12)


def frequency_weights(weight):
    weight = np.asarray(weight, dtype=float)
    return counts.frequency_weights(weight, counts.new_frequency_work(weight.size))


def sort_and_repeat(pairs):
    y, w = np.array(sorted(pairs), dtype=float).T
    return y, w, np.repeat(y, w.astype(int))


@given(pairs=small, point=st.integers(-5, 5), share=st.sampled_from([0.1, 0.25, 0.5]))
def test_order_statistics_are_those_of_repeated_values(pairs, point, share):
    y, w, repeated = sort_and_repeat(pairs)
    of = frequency_weights(w)
    assert counts.median_and_mad(y, of) == counts.median_and_mad(repeated, None)
    assert counts.middle_distance(y, of, 0.0, float(point)) == np.median(abs(repeated - point))
    rank = math.ceil(share * repeated.size - 1e-9) - 1
    assert y[counts.position_at(of, share)] == repeated[rank]
    assert y[counts.position_from_above(of, share)] == repeated[-1 - rank]


@given(pairs=small)
def test_sums_of_weights(pairs):
    _, w, _ = sort_and_repeat(pairs)
    of = frequency_weights(w)
    np.testing.assert_array_equal(of.before / of.factor, np.append(0.0, np.cumsum(w)))
    np.testing.assert_array_equal(of.after / of.factor, np.append(np.cumsum(w[::-1])[::-1], 0.0))
    assert of.unit == of.factor
    assert 0.25 < of.total <= 1.0


@given(pairs=small, data=st.data())
@settings(max_examples=25)
def test_sums_over_ranges_are_those_of_repeated_values(pairs, data):
    y, w, repeated = sort_and_repeat(pairs)
    of, n = frequency_weights(w), y.size
    hi = data.draw(st.integers(0, n))
    lo = data.draw(st.integers(0, hi))
    first, last = int(w[:lo].sum()), int(w[:hi].sum())
    unscaled = [counts.unscale_weight(of, each) for each in counts.weight_outside(of, lo, hi, n)]
    assert unscaled == [first, repeated.size - last] == list(counts.weight_outside(None, first, last, repeated.size))
    assert counts.unscale_weight(of, counts.weight_inside(of, lo, hi)) == last - first
    assert counts.weight_inside(None, lo, hi) == hi - lo
    assert counts.unscale_weight(of, counts.weight_sum(of, n)) == repeated.size
    assert (counts.weight_sum(None, n), counts.unscale_weight(None, 3.0)) == (n, 3.0)
    assert (counts.weight_unit(of), counts.weight_unit(None), counts.weight_at(None, 0)) == (of.factor, 1.0, 1.0)
    assert [counts.unscale_weight(of, counts.weight_at(of, i)) for i in range(n)] == w.tolist()
    part = counts.weights_between(of, lo, hi)
    assert (part / of.factor).tolist() == w[lo:hi].tolist()
    assert counts.weights_between(None, lo, hi) is None
    if lo < hi:
        mean = repeated[first:last].mean()
        assert counts.weighted_mean(y[lo:hi], part) == pytest.approx(mean, rel=1e-14, abs=1e-14)
        assert counts.weighted_mean(repeated[first:last], None) == pytest.approx(mean, rel=1e-14, abs=1e-14)


@pytest.mark.parametrize("factor", [1e-300, 0.1, 0.3, 1.0])
def test_equal_weights_below_one_count_once(factor):
    of = frequency_weights(np.full(10, factor))
    assert of.w[0] == pytest.approx(of.unit, rel=1e-15)
    y = np.arange(10.0) ** 2
    assert counts.median_and_mad(y, of) == counts.median_and_mad(y, None)
    nodes = qq.normal_nodes(of, qq.PAPER, 1.0 / 32.0)
    np.testing.assert_allclose(nodes.score, ndtri((np.arange(1, 11) - 1 / 3) / (10 + 1 / 3)), atol=1e-14)
    np.testing.assert_allclose(nodes.spread, 0.0, atol=1e-16)


@pytest.mark.parametrize("weight", [[1e300, 1.0, 1e-300], [5e-324, 5e-324], [8e307, 8e307], [1e-300, 1e-290, 1.0]])
def test_weights_of_any_size(weight):
    of = frequency_weights(weight)
    assert np.isfinite(of.before).all()
    assert 0.0 < of.total <= 1.0
    nodes = qq.normal_nodes(of, qq.PAPER, 1.0 / 32.0)
    assert nodes.row.size <= of.w.size + counts.ROOM_FOR_NODES
    assert np.isfinite(nodes.score).all()
    assert nodes.weight.sum() == pytest.approx(of.total)


def nearness(t, of, nodes):
    """Return 1 minus the mean bisquare distance of transformed values `t` from their normal scores.

    Parameters
    ----------
    t : (n,) ndarray
        Transformed values with location 0 and scale 1.
    of : FrequencyWeights
        Their weights.
    nodes
        The normal scores at which the distance is evaluated.
    """
    return 1.0 - qq.bisquare_distance(of, t, nodes, 0.0, 1.0, qq.C)


def repeated_nearness(t, w):
    n = int(w.sum())
    u = (np.repeat(t, w.astype(int)) - ndtri((np.arange(1, n + 1) - 1 / 3) / (n + 1 / 3))) / qq.C
    return float(np.mean(np.clip(1.0 - u * u, 0.0, None) ** 3))


@pytest.mark.parametrize("n, largest", [(1, 3), (2, 9), (10, 4), (40, 30), (200, 3), (200, 1000)])
def test_the_objective_is_that_of_repeated_values(n, largest):
    rng = np.random.default_rng(n + largest)
    for _ in range(5):
        w = rng.integers(1, largest, n).astype(float)
        w[rng.integers(n)] *= largest
        t, of = np.sort(rng.normal(size=n)) * rng.uniform(0.7, 1.4), frequency_weights(w)
        nodes = qq.normal_nodes(of, qq.PAPER, qq.CLOSE * qq.C)
        assert nearness(t, of, nodes) == pytest.approx(repeated_nearness(t, w), abs=1e-6)


def test_nodes_are_few_even_for_large_weights():
    """Compare the mean over fewer than 2,000 nodes with the mean over repeated values.

    The two agree to 1e-5 for weights up to 1e15.
    """
    w = np.array([2.0, 5.0, 1.0, 4.0])
    t = np.array([-1.0, -0.1, 0.3, 1.1])
    found = [
        nearness(t, of := frequency_weights(w * 10.0**k), qq.normal_nodes(of, qq.PAPER, qq.CLOSE * qq.C))
        for k in (4, 8, 15)
    ]
    assert found[1] == pytest.approx(repeated_nearness(t, 1e5 * w), abs=1e-5)
    np.testing.assert_allclose(found[1:], found[1], atol=1e-6)
    assert qq.normal_nodes(frequency_weights(w * 1e15), qq.PAPER, qq.CLOSE * qq.C).row.size < 2000


def test_nodes_fit_their_arrays_for_a_tiny_constant():
    rng = np.random.default_rng(0)
    of = frequency_weights(rng.exponential(1e6, 50))
    nodes = qq.normal_nodes(of, qq.PAPER, 1e-9)
    assert nodes.row.size <= of.nodes.row.size
    assert nodes.weight.sum() == pytest.approx(of.total)
    np.testing.assert_array_equal(np.unique(nodes.row), np.arange(50))


@given(
    w=st.lists(st.floats(0.2, 6.0), min_size=2, max_size=8),
    at=st.integers(0, 7),
    step=st.sampled_from([1e-9, -1e-9]),
)
def test_the_objective_is_continuous_in_the_weights(w, at, step):
    weight = np.array(w)
    moved = weight.copy()
    moved[at % weight.size] += step
    t = np.linspace(-1.2, 1.2, weight.size)
    first, second = (
        nearness(t, of := frequency_weights(each), qq.normal_nodes(of, qq.PAPER, qq.CLOSE * qq.C))
        for each in (weight, moved)
    )
    assert first == pytest.approx(second, abs=3e-6)  # nodes are divided elsewhere


def test_a_row_of_vanishing_weight_might_as_well_not_be_there():
    t, w = np.array([-1.0, -0.3, 0.2, 0.9]), np.array([1.0, 1e-12, 2.0, 1.5])
    there = frequency_weights(w)
    absent = frequency_weights(np.delete(w, 1))
    close = qq.CLOSE * qq.C
    assert nearness(t, there, qq.normal_nodes(there, qq.PAPER, close)) == pytest.approx(
        nearness(np.delete(t, 1), absent, qq.normal_nodes(absent, qq.PAPER, close)), abs=1e-9
    )


@pytest.mark.parametrize("largest", [2, 5, 400])
def test_quantiles_of_copies_are_fillibens(largest):
    rng = np.random.default_rng(largest)
    w = rng.integers(1, largest, 15).astype(float)
    out, totals = np.zeros((2, 1, 15)), np.zeros((1, 2))
    plotting_positions._weigh(frequency_weights(w), out[0, 0], out[1, 0], totals[0])
    n = int(w.sum())
    q = normal_quantiles(n)
    ends = np.append(0, np.cumsum(w)).astype(int)
    means = [q[a:b].mean() for a, b in pairwise(ends)]
    np.testing.assert_allclose(out[0, 0], means, atol=2e-9)
    np.testing.assert_allclose(out[1, 0], w / n, rtol=1e-14)
    within = sum(((q[a:b] - m) ** 2).sum() for a, b, m in zip(ends[:-1], ends[1:], means, strict=True)) / n
    np.testing.assert_allclose(totals[0], [n, 0.5 * within], atol=2e-9)


def test_a_fraction_of_the_values_is_continuous():
    for n in range(2, 40):
        size = min(max(math.ceil(0.9 * n), n // 2 + 1), n)
        assert trimmed.window_size(float(n), 0.9) == size
        assert trimmed.window_size(n - 1e-9, 0.9) == pytest.approx(size, abs=1e-8)
        assert trimmed.window_size(n + 1e-9, 0.9) == pytest.approx(size, abs=1e-8)


@pytest.mark.parametrize("shift", [qq.PAPER, qq.FILLIBEN])
@pytest.mark.parametrize("seed", range(5))
def test_fractional_weights_mix_two_numbers_of_copies(shift, seed):
    """A weight between k and k + 1 stands for k copies and, in part, for k + 1 copies; each copy has its score."""
    w = np.random.default_rng(seed).uniform(1.0, 4.0, 7)
    w[seed % 7], w[(seed + 2) % 7] = 3.0, 9.5
    of, n = frequency_weights(w), w.sum()
    expected, before = [], 0.0
    for i, each in enumerate(w):
        whole = math.floor(each)
        for parts, fraction in ((whole, whole + 1.0 - each), (whole + 1, each - whole)):
            ranks = before + (np.arange(parts if fraction > 0.0 else 0) + 0.5) * each / parts
            expected += [(i, ndtri((r + shift) / (n + 2.0 * shift)), fraction * each / parts) for r in ranks]
        before += each
    nodes = qq.normal_nodes(of, shift, 1e-9)
    found = sorted(zip(nodes.row.tolist(), nodes.score, nodes.weight / of.factor, strict=True))
    np.testing.assert_allclose(found, sorted(expected), atol=1e-12)
    np.testing.assert_allclose(nodes.spread, 0.0, atol=1e-15)
    few = qq.normal_nodes(of, shift, 0.2)
    assert few.row.size < len(expected)
    for i in range(7):  # the nodes of a value have the mean and the mean square of its scores
        own, share = few.row == i, [(z, v) for row, z, v in expected if row == i]
        z, v = np.array(share).T
        assert few.weight[own].sum() / of.factor == pytest.approx(w[i], rel=1e-12)
        assert few.weight[own] @ few.score[own] / of.factor == pytest.approx(v @ z, abs=1e-4)
        squares = few.weight[own] @ (few.score[own] ** 2 + few.spread[own]) / of.factor
        assert squares == pytest.approx(v @ z**2, abs=5e-4)


@pytest.mark.parametrize("fraction", [1e-3, 0.2, 0.5, 0.77, 0.999])
def test_scores_of_samples_are_those_of_their_ranks(fraction):
    w = np.array([2.0, 1.0, 4.0, 3.0])
    expected = ndtri((10.0 * fraction + 1.0 / 6.0) / (10.0 + 1.0 / 3.0))
    assert qq.sampled_score(frequency_weights(w), fraction) == pytest.approx(expected, abs=1e-13)


def test_weights_below_one_copy_have_a_single_node():
    w = np.array([0.3, 5.0, 0.6, 4.0, 0.1])
    of = frequency_weights(w)
    nodes = qq.normal_nodes(of, qq.PAPER, 1e-9)
    for i in (0, 2, 4):
        [k] = np.flatnonzero(nodes.row == i)
        rank = w[:i].sum() + 0.5 * w[i]
        assert nodes.score[k] == pytest.approx(ndtri((rank + 1.0 / 6.0) / (10.0 + 1.0 / 3.0)), abs=1e-12)
        assert (nodes.spread[k], nodes.weight[k] / of.factor) == (0.0, pytest.approx(w[i]))
