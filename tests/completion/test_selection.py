"""Building blocks of rank="auto": the normal distribution, low-rank decompositions, neighbors, and their weights."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from powerkern.completion import uv_decompose
from powerkern.completion.gaussian import Gaussian, GaussianPath
from powerkern.completion.low_rank import LowRankPath
from powerkern.completion.selection import choose, simplex_weights

nan = np.nan


def low_rank_with_holes(n=120, p=12, rank=3, noise=0.3, missing=0.2, seed=0):
    rng = np.random.default_rng(seed)
    full = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, p)) / np.sqrt(rank) + noise * rng.normal(size=(n, p))
    full = (full - full.mean(axis=0)) / full.std(axis=0)
    mask = rng.uniform(size=full.shape) < missing
    return np.where(mask, nan, full), full, mask


def chosen(values, seed=0, n_threads=1, budget=1e9, n_neighbors=10):
    return choose(values, n_neighbors, budget, np.random.default_rng(seed), n_threads)


def error(found, full, mask, n_threads=1):
    estimates = found.complete_rows(np.where(mask, nan, full), n_threads)
    return np.sqrt(np.mean((estimates - full)[mask] ** 2))


# --- the normal distribution ----------------------------------------------------------------------------


def epoch(values, mean, covariance, shrinkage):
    """Run one epoch of expectation-maximisation for a normal distribution, row by row.

    Parameters
    ----------
    values : (n, p) ndarray
        Data; missing entries are NaN.
    mean : (p,) ndarray
        Mean before the epoch.
    covariance : (p, p) ndarray
        Covariance matrix before the epoch.
    shrinkage : float
        Number added to the diagonal of the new covariance matrix.

    Returns
    -------
    mean : (p,) ndarray
        Mean after the epoch.
    covariance : (p, p) ndarray
        Covariance matrix after the epoch.
    """
    rows, spread = values.copy(), np.zeros_like(covariance)
    for row in rows:
        m = np.isnan(row)
        A = np.linalg.solve(covariance[np.ix_(~m, ~m)], covariance[np.ix_(~m, m)])
        row[m] = mean[m] + (row[~m] - mean[~m]) @ A
        spread[np.ix_(m, m)] += covariance[np.ix_(m, m)] - covariance[np.ix_(m, ~m)] @ A
    deviations = rows - rows.mean(axis=0)
    return rows.mean(axis=0), (deviations.T @ deviations + spread) / len(rows) + shrinkage * np.eye(len(mean))


@pytest.mark.parametrize("missing", [0.0, 0.2, 0.8])
def test_two_epochs_agree_with_a_plain_implementation(missing):
    values, _, _ = low_rank_with_holes(missing=missing)
    mean, covariance = np.zeros(12), np.eye(12)
    for _ in range(2):
        step = epoch(values, mean, covariance, 0.1)
        farther = 1.0 + min(2.5 * np.isnan(values).mean(), 0.7)
        mean, covariance = mean + farther * (step[0] - mean), covariance + farther * (step[1] - covariance)
    found = GaussianPath(values, 1).refine(None, 0.1).model
    np.testing.assert_allclose(found.mean, mean, atol=1e-11)
    np.testing.assert_allclose(found.covariance, covariance, atol=1e-11)


def test_a_step_that_would_go_too_far_is_one_of_expectation_maximisation():
    values, _, _ = low_rank_with_holes(rank=2, noise=0.0, missing=0.3)
    path = GaussianPath(values, 1)
    start = path.refine(path.refine(None, 1.0), 0.1)
    path._farther = 0.0
    exact = path.refine(start, 1e-6).model
    path._farther = 1e6
    np.testing.assert_array_equal(path.refine(start, 1e-6).model.covariance, exact.covariance)
    assert np.linalg.eigvalsh(exact.covariance)[0] > 0.0


def test_without_gaps_it_is_the_sample():
    _, full, _ = low_rank_with_holes()
    found = GaussianPath(full, 1).refine(None, 0.05).model
    np.testing.assert_allclose(found.covariance, np.cov(full.T, bias=True) + 0.05 * np.eye(12), atol=1e-12)


def test_estimates_of_single_entries_are_those_of_rows():
    values, _, mask = low_rank_with_holes()
    row, column = np.nonzero(mask)
    path = LowRankPath(values, 1, tol=1e-12)
    low = path.refine(path.add_components(None, 2, np.random.default_rng(0)), 0.1)
    for fitted, tolerance in ((GaussianPath(values, 1).refine(None, 0.1), 1e-12), (low, 1e-3)):
        rows, residuals = fitted.model.complete_rows(values, 1)
        np.testing.assert_allclose(fitted.estimates_at(row, column), rows[row, column], atol=tolerance)
        assert (np.isnan(residuals) == mask).all()
        np.testing.assert_array_equal(rows[~mask], values[~mask])


# --- what is chosen -------------------------------------------------------------------------------------


def test_a_normal_distribution_where_entries_suffice():
    values, full, mask = low_rank_with_holes()
    found = chosen(values)
    assert isinstance(found.model, Gaussian)
    assert found.model.rank == 12
    told, _ = Gaussian(np.zeros(12), np.cov(full.T), 0.0).complete_rows(values, 1)
    assert error(found, full, mask) < 1.1 * np.sqrt(np.mean((told - full)[mask] ** 2))


def test_a_low_rank_where_entries_do_not_suffice():
    values, full, mask = low_rank_with_holes(n=150, p=200, missing=0.7)
    found = chosen(values)
    assert found.model.rank in (3, 4)
    told = [uv_decompose(values, 3, "als", ridge=ridge, rng=0).reconstruct() for ridge in (0.3, 1.0, 2.0, 4.0)]
    assert error(found, full, mask) < 1.05 * min(np.sqrt(np.mean((one - full)[mask] ** 2)) for one in told)


def test_rows_have_biases():
    rng = np.random.default_rng(0)
    full = rng.normal(size=(100, 1)) + 0.2 * rng.normal(size=(100, 200))
    mask = rng.uniform(size=full.shape) < 0.8
    found = chosen(np.where(mask, nan, full))
    assert error(found, full, mask) < 0.22


def test_neighbors_count_where_rows_form_clusters():
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(30, 4))
    full = centers[rng.integers(30, size=600)] + 0.05 * rng.normal(size=(600, 4))
    mask = rng.uniform(size=full.shape) < 0.15
    found, alone = (chosen(np.where(mask, nan, full), n_neighbors=k) for k in (10, 0))
    assert found.weights[0] < 0.2
    assert alone.weights.tolist() == [1.0, 0.0, 0.0]
    assert alone.donors is None
    assert error(found, full, mask) < 0.5 * error(alone, full, mask)


def test_neighbors_do_not_count_where_rows_are_on_a_plane():
    values, _, _ = low_rank_with_holes(n=400, noise=0.05)
    found = chosen(values)
    assert found.weights[0] > 0.9


def test_held_out_entries_estimate_the_error():
    values, full, mask = low_rank_with_holes(n=500)
    found = chosen(values)
    assert found.validation_rmse == pytest.approx(error(found, full, mask), rel=0.15)


def test_a_small_budget_takes_fewer_rows_or_none():
    values, full, mask = low_rank_with_holes(n=2000)
    assert isinstance(chosen(values, budget=2e6).model, Gaussian)
    low = chosen(values, budget=0.0)
    assert low.model.rank == 1
    assert error(low, full, mask) < 1.0


# --- the same results -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("size", [{"n": 1500}, {"n": 150, "p": 250, "missing": 0.7}])
def test_threads_do_not_and_seeds_hardly_change_results(size):
    values, full, mask = low_rank_with_holes(**size)
    one = chosen(values)
    filled = one.complete_rows(values, 1)
    for n_threads in (2, 5):
        np.testing.assert_array_equal(chosen(values, n_threads=n_threads).complete_rows(values, n_threads), filled)
    errors = [error(chosen(values, seed=seed), full, mask) for seed in range(3)]
    assert max(errors) < 1.02 * min(errors)


@pytest.mark.parametrize(
    "values", [[[1.0]], [[nan, 1.0]], [[1.0, -1.0]], [[0.0, 0.0], [nan, 0.0]], [[1.0, nan], [nan, nan], [-1.0, nan]]]
)
def test_tiny_matrices_are_completed_with_finite_values(values):
    values = np.array(values)
    filled = chosen(values).complete_rows(values, 1)
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(filled[~np.isnan(values)], values[~np.isnan(values)])


# --- weights --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_weights_are_the_best_of_the_simplex(seed):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=50)
    estimates = truth[:, None] * rng.uniform(0.5, 1.5, 3) + rng.normal(size=(50, 3)) * rng.uniform(0.1, 1.0, 3)

    def squares(w):
        return np.sum((estimates @ w - truth) ** 2)

    found = simplex_weights(estimates, truth)
    sums = {"type": "eq", "fun": lambda w: w.sum() - 1.0}
    best = minimize(squares, np.full(3, 1 / 3), bounds=[(0, 1)] * 3, constraints=sums, tol=1e-12)
    assert found.sum() == pytest.approx(1.0)
    assert found.min() >= 0.0
    assert squares(found) <= best.fun * (1.0 + 0.003)


def test_of_equal_estimates_the_first_counts():
    truth = np.arange(5.0)
    assert simplex_weights(np.column_stack([truth + 1.0] * 3), truth).tolist() == [1.0, 0.0, 0.0]
    assert simplex_weights(np.column_stack([truth] * 3), truth).tolist() == [1.0, 0.0, 0.0]
