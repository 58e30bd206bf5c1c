"""Bins of equal area, compared with exact rational arithmetic."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powerkern.kernels.multivariate.equal_area_bins import equal_area_bins


def bins(values, counts, n_bins):
    """Divide distinct values that occur `counts` times into at most `n_bins` bins of equal area.

    Return the index of the first value of each bin followed by the number of values, and the edges of the bins.
    """
    first, edges = np.empty(n_bins + 1, dtype=np.int64), np.empty(n_bins + 1)
    found = equal_area_bins(np.array(values, dtype=float), np.cumsum(counts), n_bins, first, edges)
    return first[: found + 1].tolist(), edges[: found + 1].tolist()


def largest_area(counts, first, edges):
    through = np.concatenate([[0], np.cumsum(counts)])
    return max(np.diff(through[first]) * np.diff(edges))


def test_uniform_values_get_equal_bins():
    first, edges = bins((np.arange(100) + 0.5) / 100, np.ones(100, dtype=int), 4)
    assert edges == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0], abs=0.01)
    assert len(first) == 5


def test_one_bin_covers_the_unit_interval():
    assert bins([0.2, 1.0], [3, 1], 1) == ([0, 2], [0.0, 1.0])


def test_as_many_bins_as_values_and_gaps():
    first, edges = bins([0.0, 0.5, 1.0], [7, 1, 2], 5)
    assert first == [0, 1, 1, 2, 2, 3]
    assert list(edges) == [0.0, math.ulp(0.0), 0.5, math.nextafter(0.5, 1.0), 1.0, 1.0]  # bins hold their left edge


@given(
    st.lists(st.tuples(st.integers(0, 64), st.integers(1, 4)), min_size=1, max_size=12, unique_by=lambda pair: pair[0]),
    st.integers(1, 7),
)
@settings(max_examples=25)
def test_the_largest_area_is_the_smallest_possible(pairs, n_bins):
    values, counts = zip(*sorted((value / 64, count) for value, count in pairs), strict=True)
    first, edges = bins(values, counts, n_bins)
    area = oracles.equal_area_bins(values, counts, n_bins)[2]
    assert (edges[0], edges[-1], first[0], first[-1]) == (0.0, 1.0, 0, len(values))
    assert len(first) <= n_bins + 1
    assert largest_area(counts, first, edges) == pytest.approx(float(area), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("n_bins", [1, 2, 5, 9])
def test_bins_as_in_rational_arithmetic(n_bins):
    rng = np.random.default_rng(n_bins)
    for _ in range(5):
        values, counts = np.sort(np.append(rng.uniform(size=11), 1.0)), rng.integers(1, 4, 12)
        first, edges = bins(values, counts, n_bins)
        exact_first, exact_edges, _ = oracles.equal_area_bins(values, counts, n_bins)
        assert first == exact_first
        assert edges == pytest.approx(exact_edges, rel=1e-13)
