"""Means over the nearest neighbors, compared with sorting the distances to all donors."""

from __future__ import annotations

import numpy as np
import pytest

from powerkern.kernels.multivariate.neighbors import neighbor_means

nan = np.nan
REACH = 40


def problem(n=40, m=200, p=7, seed=0, missing=0.3):
    rng = np.random.default_rng(seed)

    def rows(size):
        values = np.round(4.0 * rng.normal(size=(size, p))) / 4.0  # squared distances are exact, many are equal
        return np.where(rng.uniform(size=values.shape) < missing, nan, values)

    donors = rows(m)
    residuals = np.where(np.isnan(donors), nan, rng.normal(size=donors.shape))
    return rows(n), np.where(np.isnan(donors), 0.25, donors), donors, residuals


def sorted_means(values, completed, donors, residuals, k):
    """Compute means and corrections over the nearest donors of each missing cell by sorting all distances.

    Only the REACH nearest donors are considered. Rows without an observed value, and cells without a donor, get NaN.

    Parameters
    ----------
    values : (m, p) ndarray
        Rows with missing cells.
    completed : (n, p) ndarray
        Donor rows without gaps, from which distances are computed.
    donors, residuals : (n, p) ndarray
        Observed values of the donors (NaN where missing), and their residuals; means are of the values, corrections of
        the residuals.
    k : int
        Number of donors of a cell.
    """
    means, corrections = np.full_like(values, nan), np.full_like(values, nan)
    for i, row in enumerate(values):
        seen = ~np.isnan(row)
        distance = np.sum((completed[:, seen] - row[seen]) ** 2, axis=1)
        order = np.argsort(distance, kind="stable")[:REACH]
        for j in np.flatnonzero(~seen) if seen.any() else []:
            near = order[~np.isnan(donors[order, j])][:k]
            if near.size:
                h = distance[near[-1]]
                weight = (h / (distance[near] + 0.01 * h)) ** 2 if h else np.ones(near.size)
                means[i, j] = np.average(donors[near, j], weights=weight)
                corrections[i, j] = np.average(residuals[near, j], weights=weight)
    return means, corrections


def found_means(values, completed, donors, residuals, k):
    means, corrections = np.full_like(values, nan), np.full_like(values, nan)
    neighbor_means(values, np.ascontiguousarray(completed.T), donors, residuals, k, REACH, means, corrections)
    return means, corrections


@pytest.mark.parametrize("size", [{}, {"m": 3}, {"m": 1, "n": 4}, {"p": 1}, {"missing": 0.9}, {"missing": 0.0}])
@pytest.mark.parametrize("k", [1, 10])
def test_means_equal_those_by_sorting(size, k):
    given = problem(**size)
    for found, expected in zip(found_means(*given, k), sorted_means(*given, k), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_only_requested_cells_are_written():
    values, completed, donors, residuals = problem()
    expected = sorted_means(values, completed, donors, residuals, 10)
    asked = np.random.default_rng(1).uniform(size=values.shape) < 0.5
    means, corrections = np.where(asked, nan, 7.0), np.full_like(values, 7.0)
    neighbor_means(values, np.ascontiguousarray(completed.T), donors, residuals, 10, REACH, means, corrections)
    written = asked & ~np.isnan(expected[0])
    for found, all_of_them in zip((means, corrections), expected, strict=True):
        np.testing.assert_allclose(found[written], all_of_them[written], rtol=1e-10, atol=1e-12)
        assert (found[~asked] == 7.0).all()


def test_donors_of_equal_distance_count_equally():
    values = np.array([[1.0, nan]])
    donors = np.array([[1.0, 3.0], [1.0, 5.0], [1.0, nan], [2.0, 9.0]])
    means, _ = found_means(values, np.nan_to_num(donors), donors, donors, 2)
    assert means[0, 1] == 4.0


def test_rows_whose_distances_overflow_have_no_neighbors():
    """The means and corrections of such rows stay NaN."""
    donors = np.ones((5, 2))
    means, corrections = found_means(np.array([[1e200, nan]]), donors, donors, donors, 2)
    assert np.isnan(means).all()
    assert np.isnan(corrections).all()


def test_donors_at_an_infinite_distance_are_left_out():
    values = np.array([[1.0, nan]])
    donors = np.array([[1e200, 5.0], [2.0, 7.0], [4.0, 9.0], [-1e200, 3.0]])
    means, corrections = found_means(values, donors, donors, 10.0 * donors, 3)
    expected, _ = found_means(values, donors[1:3], donors[1:3], donors[1:3], 3)
    assert means[0, 1] == expected[0, 1]
    assert corrections[0, 1] == pytest.approx(10.0 * expected[0, 1], rel=1e-14)
