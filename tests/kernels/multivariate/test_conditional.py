"""Conditional means of a normal distribution, compared with the textbook's equations solved by NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from powerkern.kernels.multivariate.conditional import conditional_rows

#: Columns, and gaps in a row: none, few (by the precision), many (by the covariance), all but one, all.
GAPS = {6: [0, 1, 2, 3, 4, 5, 6], 21: [0, 1, 7, 8, 9, 10, 11, 13, 20, 21]}


def problem(p=6, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(p, p))
    values = rng.normal(size=(len(GAPS[p]), p))
    for row, gaps in zip(values, GAPS[p], strict=True):
        row[rng.choice(p, gaps, replace=False)] = np.nan
    return A @ A.T + 0.1 * np.eye(p), values


def textbook(covariance, row):
    """Return `row` with conditional means in place of missing values, and the conditional covariance of these."""
    m = np.isnan(row)
    A = np.linalg.solve(covariance[np.ix_(~m, ~m)], covariance[np.ix_(~m, m)])
    filled, spread = row.copy(), np.zeros_like(covariance)
    filled[m] = row[~m] @ A
    spread[np.ix_(m, m)] = covariance[np.ix_(m, m)] - covariance[np.ix_(m, ~m)] @ A
    return filled, spread


def completed(covariance, values, with_residuals=True):
    rows, sums = np.full_like(values, np.inf), np.zeros((2, *covariance.shape))
    residuals = np.full_like(values, np.inf) if with_residuals else np.empty((0, values.shape[1]))
    count = conditional_rows(values, covariance, np.linalg.inv(covariance), rows, sums, residuals)
    return rows, sums, residuals, count


def symmetric(lower):
    return np.tril(lower) + np.tril(lower, -1).T


@pytest.mark.parametrize("p", GAPS)
@pytest.mark.parametrize("with_residuals", [False, True])
def test_conditional_means_agree_with_the_textbook(with_residuals, p):
    covariance, values = problem(p)
    rows, _, _, count = completed(covariance, values, with_residuals)
    np.testing.assert_allclose(rows, [textbook(covariance, row)[0] for row in values], rtol=1e-10)
    assert count == sum(gaps > p / 2 for gaps in GAPS[p])


@pytest.mark.parametrize("p", GAPS)
def test_conditional_covariances_agree_with_the_textbook(p):
    covariance, values = problem(p)
    _, (by_precision, by_covariance), _, count = completed(covariance, values)
    total = symmetric(by_precision) + count * covariance - covariance @ symmetric(by_covariance) @ covariance
    expected = sum(textbook(covariance, row)[1] for row in values)
    np.testing.assert_allclose(total, expected, atol=1e-11 * np.abs(covariance).max())


@pytest.mark.parametrize("p", GAPS)
def test_residuals_given_the_other_values_of_the_row(p):
    covariance, values = problem(p)
    _, _, residuals, _ = completed(covariance, values)
    for row, found in zip(values, residuals, strict=True):
        assert np.isnan(found[np.isnan(row)]).all()
        for j in np.flatnonzero(~np.isnan(row)):
            without = row.copy()
            without[j] = np.nan
            assert found[j] == pytest.approx(row[j] - textbook(covariance, without)[0][j], rel=1e-9, abs=1e-12)


def test_no_columns_in_common():
    covariance = np.diag([1.0, 2.0, 3.0])
    rows, _, residuals, _ = completed(covariance, np.array([[1.0, np.nan, np.nan]]))
    assert rows.tolist() == [[1.0, 0.0, 0.0]]
    assert residuals[0, 0] == 1.0
