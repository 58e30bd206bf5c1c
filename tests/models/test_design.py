"""Covariates: those rejected, those dropped, and least squares on the rest."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from powerkern._models.design import Covariates, compute_basis, make_intercept, read_covariates


@pytest.mark.parametrize(
    "scale, weights", [(1e-300, 0), (1, 0), (1e300, 0), (1e-300, 1), (1, 1), (1e300, 1), (1, 1e-300), (1, 1e300)]
)
@pytest.mark.parametrize("intercept", [False, True])
def test_coefficients_are_those_of_least_squares(intercept: bool, scale: float, weights: float) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 3)) + 0.5, rng.normal(size=(40, 2))
    weight = weights * rng.exponential(size=40) if weights else None
    root = np.sqrt(weight) if weights else np.ones(40)
    full = np.column_stack([np.ones(40), X]) if intercept else X
    unit = np.where(np.arange(full.shape[1]) < int(intercept), 1.0, scale)
    basis = compute_basis(full * unit, intercept, weight)
    assert basis.used.all()
    vectors = basis.design.basis
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(basis.rank), atol=1e-15)
    one = root / root.max()
    expected = np.linalg.lstsq(full * one[:, None], Y * one[:, None], rcond=None)[0]
    coefficients = basis.coefficients(vectors @ (Y * root[:, None])) * unit[:, None]
    np.testing.assert_allclose(coefficients, expected, atol=1e-13)


@pytest.mark.parametrize(
    "x", [1990.0 + np.arange(30.0), 1e9 + np.arange(30.0) % 2, 1e300 * np.arange(1.0, 31.0), np.eye(30)[0]]
)
def test_covariates_far_from_0_are_kept(x: np.ndarray) -> None:
    basis = compute_basis(np.column_stack([np.ones(30), x]), True, None)
    assert basis.rank == 2
    assert abs(basis.design.basis @ basis.design.basis.T - np.eye(2)).max() < 1e-15


def test_collinear_columns_are_left_out_in_order() -> None:
    a, b = np.random.default_rng(0).normal(size=(2, 30))
    X = np.column_stack([a, np.full(30, 7.0), b, 1e5 * a - b + 1.0, np.zeros(30), a * b])
    covariates, values = read_covariates(X, None, True, 30, np.zeros((30, 1)))
    used = compute_basis(values, True, None).used
    assert np.flatnonzero(used).tolist() == [0, 1, 3, 6]
    with pytest.warns(UserWarning, match="^covariates: 'x1', 'x3', 'x4' left out: constant, or linear combinations"):
        covariates.warn_dropped(used)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    covariates, values = read_covariates(frame, None, False, 30, np.zeros((30, 1)))
    used = compute_basis(values, False, None).used
    assert np.flatnonzero(used).tolist() == [0, 1, 2, 5]
    with pytest.warns(UserWarning, match="^covariates: 'd', 'e' left out: constant, or linear combinations"):
        covariates.warn_dropped(used)


def test_bad_values_are_named() -> None:
    frame = pd.DataFrame({"age": [30.0, 40.0, np.nan], "sex": [0, 1, 0]})
    with pytest.raises(ValueError, match=r"^covariates, 'age', row 2: the value is missing; drop the row, or impute"):
        read_covariates(frame, None, True, 3, np.zeros((3, 1)))
    with pytest.raises(ValueError, match=r"^covariates, 'x0', row 1: the value is infinite"):
        read_covariates([1.0, -np.inf], None, True, 2, np.zeros((2, 1)))
    with pytest.raises(ValueError, match=r"^covariates has 2 rows, the data have 3; pass the same rows"):
        read_covariates([1.0, 2.0], None, True, 3, np.zeros((3, 1)))
    with pytest.raises(TypeError, match="covariates, row 0"):
        read_covariates(["a", "b"], None, True, 2, np.zeros((2, 1)))


def test_covariates_with_other_rows_or_columns_are_refused() -> None:
    covariates, _ = read_covariates(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 5.0]}), None, True, 2, np.zeros((2, 1)))
    other = pd.DataFrame({"b": [4.0], "c": [0.0], "a": [9.0]})
    assert covariates.matrix(other).tolist() == [[1.0, 9.0, 4.0]]
    with pytest.raises(ValueError, match=r"^covariates has 1 columns, the fit has 2; pass the covariates of the fit"):
        covariates.matrix([1.0])
    with pytest.raises(ValueError, match=r"^covariates has 1 rows, the data have 7"):
        covariates.matrix(other, 7)
    alone, values = make_intercept(3)
    assert values.tolist() == alone.matrix(None, 3).tolist() == [[1.0]] * 3


@pytest.mark.parametrize("key", ["names", "columns", "intercept", "formula"])
def test_damaged_records_of_covariates_are_refused(key: str) -> None:
    covariates, _ = read_covariates(pd.DataFrame({"a": [1.0, 2.0]}), None, True, 2, np.zeros((2, 1)))
    record = json.loads(json.dumps(covariates.to_record()))
    assert Covariates.from_record(record) == covariates
    for damage in ([5], 7):
        with pytest.raises(ValueError, match="damaged"):
            Covariates.from_record({**record, key: damage})
    del record[key]
    with pytest.raises(ValueError, match="damaged"):
        Covariates.from_record(record)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("n, m", [(1151, 0), (1152, 288), (5000, 288), (20_000, 625)])
def test_scans_use_a_sample_of_evenly_spaced_rows(n: int, m: int, is_weighted: bool) -> None:
    rng = np.random.default_rng(0)
    weight = rng.exponential(size=n) if is_weighted else None
    basis = compute_basis(np.column_stack([np.ones(n), rng.normal(size=n)]), True, weight)
    design = basis.design
    assert design.sample_basis.shape == (2, m)
    if not m:
        return
    rows = np.arange(m) * (n // m)
    np.testing.assert_allclose(design.sample_basis @ design.sample_basis.T, np.eye(2), rtol=0, atol=1e-14)
    part = design.basis[:, rows]  # spans the same space
    projected = part @ design.sample_basis.T @ design.sample_basis
    np.testing.assert_allclose(projected, part, rtol=0, atol=1e-14)
    if weight is not None:
        np.testing.assert_array_equal(design.sample_root, np.sqrt(weight[rows]))
    else:
        assert design.sample_root.size == 0


@pytest.mark.parametrize("at, has_sample", [(slice(None, None, 17), True), (slice(1, 17), False)])
def test_samples_that_miss_the_rows_of_a_covariate_are_not_used(at: slice, has_sample: bool) -> None:
    x = np.zeros(4896)  # every 17th row is in the sample
    x[at] = np.random.default_rng(0).normal(size=x[at].size)
    design = compute_basis(np.column_stack([np.ones(x.size), x]), True, None).design
    assert (design.sample_basis.shape[1] == 288) == has_sample


def test_the_constant_is_a_combination_of_the_columns_of_a_factor() -> None:
    groups = np.arange(30) % 3
    dummies = (groups[:, np.newaxis] == np.arange(3)).astype(float)
    basis = compute_basis(dummies, False, None)
    assert basis.design.constant
    np.testing.assert_allclose(basis.one, [1.0, 1.0, 1.0], rtol=0, atol=1e-14)
    assert not compute_basis(dummies[:, :2], False, None).design.constant
    np.testing.assert_array_equal(compute_basis(dummies[:, :2], False, None).one, [0.0, 0.0])
    with_intercept = compute_basis(np.column_stack([np.ones(30), dummies]), True, None)
    np.testing.assert_array_equal(with_intercept.one, [1.0, 0.0, 0.0, 0.0])
    assert with_intercept.used.tolist() == [True, True, True, False]


def test_rows_that_are_not_counted_do_not_change_the_basis() -> None:
    rng = np.random.default_rng(0)
    values, weight = np.column_stack([np.ones(25), rng.normal(size=(25, 2))]), rng.exponential(size=25)
    counted = np.arange(25) % 4 > 0
    whole = compute_basis(values, True, weight, counted)
    part = compute_basis(values[counted], True, weight[counted])
    assert not whole.design.basis[:, ~counted].any()
    np.testing.assert_allclose(whole.design.basis[:, counted], part.design.basis, rtol=0, atol=1e-15)
    np.testing.assert_allclose(whole.to_coef, part.to_coef, rtol=1e-13)
    np.testing.assert_allclose(whole.center, part.center, rtol=1e-13)


@pytest.mark.slow
def test_products_do_not_depend_on_the_threads_of_the_blas() -> None:
    program = """
import hashlib, numpy as np
from powerkern._models.design import compute_basis
rng = np.random.default_rng(0)
values = np.column_stack([np.ones(100_000), rng.normal(size=(100_000, 4))])
basis = compute_basis(values, True, rng.exponential(size=100_000))
arrays = (basis.design.basis, basis.design.sample_basis, basis.to_coef, basis.one)
print(hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest())
"""
    digests = set()
    for threads in "14":
        run = [sys.executable, "-c", f"import os; os.environ['OPENBLAS_NUM_THREADS'] = '{threads}'\n{program}"]
        digests.add(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
    assert len(digests) == 1
