"""Products and triangular factors of matrices, compared with sums of fractions and with NumPy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from powerkern._engine import products as engine
from powerkern._jit import JIT_DISABLED
from powerkern.kernels.multivariate import products


@pytest.mark.parametrize(("p", "q", "n"), [(1, 1, 1), (3, 2, 7), (4, 2, 40), (9, 5, products.BLOCK + 3), (21, 17, 30)])
def test_products_are_those_of_fractions(p: int, q: int, n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(p, n)), rng.normal(size=(q, n))
    out = np.empty((p, q))
    products.cross(a, b, out)
    i, j = p - 1, q - 1
    exact = float(sum(Fraction(u) * Fraction(v) for u, v in zip(a[i].tolist(), b[j].tolist(), strict=True)))
    assert abs(out[i, j] - exact) <= 1e-15 * abs(a[i] * b[j]).sum()
    np.testing.assert_allclose(out, a @ b.T, atol=1e-15 * n)
    combined = np.empty((q, n))
    products.combine(np.ascontiguousarray(out.T), a, combined)
    np.testing.assert_allclose(combined, out.T @ a, atol=1e-14 * p * abs(out).max())


@pytest.mark.parametrize("p", [1, 2, 5, 18])
def test_factor_times_its_transpose_and_inverse_are_exact_to_rounding(p: int) -> None:
    m = np.random.default_rng(p).normal(size=(p, 2 * p))
    a = m @ m.T
    factor, rank = engine.cholesky(a)
    assert rank == p
    assert (np.triu(factor, 1) == 0.0).all()
    np.testing.assert_allclose(factor @ factor.T, a, atol=1e-13 * abs(a).max())
    np.testing.assert_allclose(engine.invert_lower(factor) @ factor, np.eye(p), atol=1e-11)


def test_factor_stops_at_the_first_row_without_a_positive_pivot() -> None:
    a = np.array([[4.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    factor, rank = engine.cholesky(a)
    assert rank == 1
    assert factor[0, 0] == 2.0
    assert engine.cholesky(np.array([[np.nan]]))[1] == 0
    assert engine.cholesky(np.array([[-1.0]]))[1] == 0


def test_threads_change_no_bit() -> None:
    rng = np.random.default_rng(0)
    n = 300 if JIT_DISABLED else 5000
    a, b = rng.normal(size=(50, n)), rng.normal(size=(35, n))
    one, factors = engine.cross(a, b), rng.normal(size=(40, 50))
    for n_threads in (2, 3, 8):
        assert np.array_equal(engine.cross(a, b, n_threads), one)
        assert np.array_equal(engine.combine(factors, a, n_threads=n_threads), engine.combine(factors, a))


@pytest.mark.parametrize("p", [1, 5, 64, 67])
def test_inner_products_of_rows_in_any_order(p: int) -> None:
    a = np.random.default_rng(p).normal(size=(p, 30))
    found = engine.gram(a)
    np.testing.assert_allclose(found, a @ a.T, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    order = np.random.default_rng(0).permutation(p)
    np.testing.assert_array_equal(engine.gram(a[order], 3), found[np.ix_(order, order)])
    np.testing.assert_array_equal(engine.cross_rows(a, slice(p // 2, p), a), found[p // 2 :])
