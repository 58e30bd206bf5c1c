"""Covariates: what is refused, what is left out, and least squares on what is kept."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from powerkern._covariates import as_covariates, design_of

NONE = np.empty(0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("intercept", [False, True])
def test_coefficients_are_those_of_least_squares(intercept: bool, scale: float, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 3)) + 0.5, rng.normal(size=(40, 2))
    weight = rng.exponential(size=40) if weighted else NONE
    root = np.sqrt(weight) if weighted else np.ones(40)
    design = design_of(X * scale, weight, intercept=intercept)
    np.testing.assert_allclose(design.basis @ design.basis.T, np.eye(design.rank), atol=1e-15)
    full = np.column_stack([np.ones(40), X]) if intercept else X
    expected = np.linalg.lstsq(full * root[:, None], Y * root[:, None], rcond=None)[0]
    coefficients = design.coefficients(design.basis @ (Y * root[:, None]))
    coefficients[int(intercept) :] *= scale
    np.testing.assert_allclose(coefficients, expected, atol=1e-13)


@pytest.mark.parametrize(
    "x", [1990.0 + np.arange(30.0), 1e9 + np.arange(30.0) % 2, 1e300 * np.arange(1.0, 31.0), np.eye(30)[0]]
)
def test_covariates_far_from_0_are_kept(x: np.ndarray) -> None:
    design = design_of(x[:, None], NONE)
    assert design.rank == 2
    assert abs(design.basis @ design.basis.T - np.eye(2)).max() < 1e-15


def test_collinear_columns_are_left_out_in_order() -> None:
    a, b = np.random.default_rng(0).normal(size=(2, 30))
    X = np.column_stack([a, np.full(30, 7.0), b, 1e5 * a - b + 1.0, np.zeros(30), a * b])
    with pytest.warns(
        UserWarning, match=r"covariates: column 1, column 3, column 4: linearly .* and the intercept; left"
    ):
        design = design_of(X, NONE)
    assert design.kept.tolist() == [0, 2, 5]
    with (
        warnings.catch_warnings(),
        pytest.warns(UserWarning, match=r"column 4 \('e'\): linearly dependent on the columns"),
    ):
        design = design_of(X, NONE, list("abcdef"), intercept=False)
    assert design.kept.tolist() == [0, 1, 2, 5]


def test_bad_values_are_named() -> None:
    frame = pd.DataFrame({"age": [30.0, 40.0, np.nan], "sex": [0, 1, 0]})
    with pytest.raises(ValueError, match=r"^covariates, column 0 \('age'\), row 2: the value is missing; impute it"):
        as_covariates(frame, 3)
    with pytest.raises(ValueError, match=r"^covariates, column 0, row 1: the value is infinite"):
        as_covariates([1.0, -np.inf], 2)
    with pytest.raises(ValueError, match=r"^covariates has 2 rows, X has 3; pass one row"):
        as_covariates([1.0, 2.0], 3)
    with pytest.raises(TypeError, match="covariates, row 0"):
        as_covariates(["a", "b"], 2)
