"""Cholesky factors, and solutions of linear systems from these factors, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from powerkern.kernels.elementary.cholesky import factor_cholesky, solve_factored


def positive(n, seed=0):
    a = np.random.default_rng(seed).normal(size=(n, 2 * n))
    return a @ a.T


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_factor_and_solution_agree_with_numpy(n):
    a = positive(n)
    factor = np.zeros((n, n))
    assert factor_cholesky(a, factor, 0.0, 0.0) == n
    np.testing.assert_allclose(factor, np.linalg.cholesky(a), rtol=1e-12)
    v = np.arange(1.0, n + 1.0)
    expected = np.linalg.solve(a, v)
    solve_factored(factor, v)
    np.testing.assert_allclose(v, expected, rtol=1e-10)


def test_in_place_only_the_lower_triangle_is_read_and_written():
    a = positive(4)
    expected = np.tril(np.linalg.cholesky(a)) + np.triu(np.full((4, 4), 7.0), 1)
    a[np.triu_indices(4, 1)] = 7.0
    assert factor_cholesky(a, a, 0.0, 0.0) == 4
    np.testing.assert_allclose(a, expected, rtol=1e-12)


@pytest.mark.parametrize("row", [0, 1, 2])
def test_the_row_of_the_first_small_pivot_is_returned(row):
    factor = np.linalg.cholesky(positive(3))
    scaled = factor.copy()
    scaled[row, row] = 0.0
    a = scaled @ scaled.T
    a[row, row] += 1e-7 * a[row, row] + (1e-7 if row == 0 else 0.0)
    assert factor_cholesky(a, np.zeros((3, 3)), 1e-5 if row else 2.0, 0.0) == row
    assert factor_cholesky(a, np.zeros((3, 3)), 1e-9, 0.0) == 3
    a[row, row] -= 1.0
    assert factor_cholesky(a, np.zeros((3, 3)), 0.0, 0.0) == row
    assert factor_cholesky(np.full((1, 1), np.nan), np.zeros((1, 1)), 0.0, 0.0) == 0


def test_pivots_are_raised_to_the_floor():
    a, factor = np.array([[4.0, 2.0], [2.0, 1.0]]), np.zeros((2, 2))
    assert factor_cholesky(a, factor, 0.0, 0.25) == 2
    np.testing.assert_allclose(factor, [[2.0, 0.0], [1.0, 0.5]])
