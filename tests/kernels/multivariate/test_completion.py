"""Kernels of the UV decomposition, compared with the textbook's sums and NumPy's least squares."""

from __future__ import annotations

import numpy as np
import oracles
import pytest

from powerkern.kernels.multivariate import completion as kc

SHAPES = [(1, 1, 1), (1, 4, 1), (5, 1, 1), (5, 4, 2), (7, 9, 3), (3, 40, 3)]


def problem(m, n, d, seed=0, missing=0.3):
    rng = np.random.default_rng(seed)
    M = rng.normal(size=(m, n))
    M[rng.uniform(size=M.shape) < missing] = np.nan
    return M, rng.normal(size=(m, d)), rng.normal(size=(d, n))


def packed(M):
    start = np.concatenate([[0], np.cumsum((~np.isnan(M)).sum(axis=1))])
    cells = kc.ObservedCells(start, np.empty(start[-1], dtype=np.int32), np.empty(start[-1]))
    kc.pack_rows(np.ascontiguousarray(M), start[:-1].copy(), cells.column, cells.value)
    return cells


def improved_rows(kernel, M, U, V, ridge=0.0, damping=1.0):
    U, squares = U.copy(), np.full(U.shape[0], np.nan)
    kernel(tuple(packed(M)), np.ascontiguousarray(V.T), U, ridge, damping, squares)
    return U, squares


def test_packed_rows_hold_the_observed_cells():
    nan = np.nan
    cells = packed(np.array([[nan, 1.0, 2.0], [nan, nan, nan], [3.0, nan, 4.0]]))
    assert cells.start.tolist() == [0, 2, 2, 4]
    assert cells.column.tolist() == [1, 2, 0, 2]
    assert cells.value.tolist() == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ridge, damping", [(0.0, 1.0), (0.7, 1.0), (0.3, 0.6)])
def test_coordinate_descent_agrees_with_the_textbook(shape, ridge, damping):
    M, U, V = problem(*shape)
    m, _, d = shape
    visits = [("U", r, s) for r in range(m) for s in range(d)]
    expected, _ = oracles.uv_visit(M, U, V, visits, ridge, damping)
    result, squares = improved_rows(kc.coordinate_rows, M, U, V, ridge, damping)
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(squares, np.nansum((M - result @ V) ** 2, axis=1), rtol=1e-11, atol=1e-25)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ridge, damping", [(0.0, 1.0), (0.7, 1.0), (0.3, 0.6)])
def test_least_squares_rows_agree_with_numpy(shape, ridge, damping):
    M, U, V = problem(*shape, missing=0.1)
    M[0, 0] = 1.0
    best = oracles.uv_least_squares(M, V, ridge)
    enough = (~np.isnan(M)).sum(axis=1) >= (shape[2] if ridge == 0.0 else 0)
    expected = U + damping * (best - U)
    result, squares = improved_rows(kc.least_squares_rows, M, U, V, ridge, damping)
    np.testing.assert_allclose(result[enough], expected[enough], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(squares, np.nansum((M - result @ V) ** 2, axis=1), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("damping", [1.0, 0.6])
def test_weights_of_cells_count_in_least_squares(shape, damping):
    M, U, V = problem(*shape, seed=2, missing=0.1)
    ridge, weights = 0.4, np.random.default_rng(3).uniform(0.2, 3.0, M.shape)
    expected, squares = U.copy(), np.full(U.shape[0], np.nan)
    for row, observed, w, target in zip(M, ~np.isnan(M), weights, expected, strict=True):
        root, fixed = np.sqrt(w[observed]), V[:, observed].T
        stacked = np.vstack([root[:, None] * fixed, np.sqrt(ridge) * np.eye(shape[2])])
        best = np.linalg.lstsq(stacked, np.append(root * row[observed], np.zeros(shape[2])), rcond=None)[0]
        target += damping * (best - target)
    cells = packed(M)._replace(root=np.sqrt(weights[~np.isnan(M)]))
    kc.least_squares_rows(tuple(cells), np.ascontiguousarray(V.T), U, ridge, damping, squares)
    np.testing.assert_allclose(U, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(squares, np.nansum(weights * (M - U @ V) ** 2, axis=1), rtol=1e-11, atol=1e-25)


def test_least_squares_repeated_reaches_the_solution():
    M, U, V = problem(6, 12, 3, missing=0.1)
    for _ in range(3):
        U, _ = improved_rows(kc.least_squares_rows, M, U, V)
    np.testing.assert_allclose(U, oracles.uv_least_squares(M, V), rtol=1e-12)


@pytest.mark.parametrize("unit", [2.0**-30, 2.0**30])
def test_least_squares_do_not_depend_on_the_unit_of_a_factor(unit):
    M, U, V = problem(6, 12, 3, missing=0.1)
    expected, _ = improved_rows(kc.least_squares_rows, M, U, V)
    found, _ = improved_rows(kc.least_squares_rows, M, U / unit, unit * V)
    np.testing.assert_allclose(unit * found, expected, rtol=1e-12)


def test_the_shortest_solution_from_zero_where_there_is_a_choice():
    M, U, V = problem(5, 3, 3, missing=0.0)
    M[:, 1:] = np.nan
    U, _ = improved_rows(kc.least_squares_rows, M, 0.0 * U, V)
    np.testing.assert_allclose(U, oracles.uv_least_squares(M, V), rtol=1e-6)


@pytest.mark.parametrize("kernel", [kc.coordinate_rows, kc.least_squares_rows])
def test_rows_without_entries_stay(kernel):
    M, U, V = problem(4, 5, 2)
    M[1] = np.nan
    result, squares = improved_rows(kernel, M, U, V)
    assert (result[1] == U[1]).all()
    assert squares[1] == 0.0
    assert np.isfinite(result).all()


@pytest.mark.parametrize("kernel", [kc.coordinate_rows, kc.least_squares_rows])
def test_a_factor_of_zeros_stays_finite(kernel):
    M, U, V = problem(4, 5, 2)
    result, squares = improved_rows(kernel, M, U, 0.0 * V)
    assert (result == U).all()
    np.testing.assert_allclose(squares, np.nansum(M**2, axis=1))


@pytest.mark.parametrize("ridge, damping", [(0.0, 1.0), (0.5, 0.8)])
def test_elements_are_updated_in_the_given_order(ridge, damping):
    M, U, V = problem(5, 4, 2, seed=3)
    visits = oracles.uv_all_elements(5, 4, 2)
    visits = [visits[k] for k in np.random.default_rng(1).permutation(len(visits))] * 2
    expected_U, expected_V = oracles.uv_visit(M, U, V, visits, ridge, damping)
    rows, cols = packed(M), packed(M.T)
    elements = np.array([(0, r, s) if factor == "U" else (1, s, r) for factor, r, s in visits])
    Vt, residual = np.ascontiguousarray(V.T), (M - U @ V)[~np.isnan(M)]
    place = np.argsort(rows.column, kind="stable")
    by_row = (rows.start, rows.column, np.arange(rows.value.size))
    kc.update_elements(by_row, (cols.start, cols.column, place), elements, U, Vt, ridge, damping, residual)
    np.testing.assert_allclose(U, expected_U, rtol=1e-11)
    np.testing.assert_allclose(Vt.T, expected_V, rtol=1e-11)
    np.testing.assert_allclose(residual, (M - U @ Vt.T)[~np.isnan(M)], rtol=1e-10, atol=1e-13)
