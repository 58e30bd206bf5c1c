"""Quantiles, moments and units of columns compared with NumPy and SciPy; weights are repetition counts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import powerkern as pk
from powerkern._estimators.standard_units import (
    center_and_scale,
    replace_unusable_scales,
    row_moments,
    row_quantiles,
)
from powerkern._estimators.ties import sort_with_weights

AT = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)


def columns_with_holes() -> tuple[np.ndarray, np.ndarray]:
    """Return columns, (7, 12), with ties, missing values, one value or none, and weights 0 to 3 of the rows."""
    rng = np.random.default_rng(3)
    x = np.round(rng.normal(scale=3.0, size=(7, 12)), 1)
    x[1, ::2], x[2, 1:], x[3], x[4, :10] = np.nan, np.nan, np.nan, np.nan
    x[5] = 2.5
    weight = rng.integers(0, 4, 12).astype(float)
    weight[[0, 10, 11]] = 2.0, 1.0, 3.0
    return x, weight


def observed(x: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return the observed values of a column, each repeated as often as its weight."""
    every = x if weight is None else np.repeat(x, weight.astype(int))
    return every[~np.isnan(every)]


@pytest.mark.parametrize("is_weighted", [False, True])
def test_quantiles_are_numpys_of_repeated_values(is_weighted: bool) -> None:
    x, weight = columns_with_holes()
    found = row_quantiles(*sort_with_weights(x.copy(), weight if is_weighted else None), AT)
    for j, column in enumerate(x):
        values = observed(column, weight if is_weighted else None)
        expected = np.quantile(values, AT) if values.size else np.full(len(AT), np.nan)
        np.testing.assert_allclose(found[:, j], expected, rtol=0, atol=1e-13)


def test_quantiles_of_weights_below_one_in_all_are_the_least_value() -> None:
    found = row_quantiles(np.array([[1.0, 4.0]]), np.array([[0.3, 0.2]]), (0.0, 0.5, 1.0))
    np.testing.assert_array_equal(found, [[1.0], [1.0], [1.0]])


@pytest.mark.parametrize("scale", [1.0, 1e-305, 1e300])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_moments_are_numpys_of_repeated_values(is_weighted: bool, scale: float) -> None:
    x, weight = columns_with_holes()
    weights = np.where(np.isnan(x), np.nan, weight) if is_weighted else None
    mean, sd = row_moments(x * scale, weights)
    for j, column in enumerate(x):
        values = observed(column, weight if is_weighted else None)
        if not values.size or np.isnan(column[0]):
            continue  # columns are sorted, so that a missing first value means none
        assert mean[j] == pytest.approx(values.mean() * scale, rel=1e-13)
        assert sd[j] == pytest.approx(values.std() * scale, rel=1e-13)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("kind", ["mad", "std"])
def test_center_and_scale_are_median_and_mad_or_mean_and_sd(kind: str, is_weighted: bool) -> None:
    x, weight = columns_with_holes()
    x = np.vstack([x, [7.0] * 9 + [1.0, 2.0, 3.0], [np.inf, *x[0, 1:]]])  # MAD 0; infinite
    center, divisor = center_and_scale(kind, x.T.copy(), weight if is_weighted else None, 1)
    for j, column in enumerate(x):
        values = observed(column, weight if is_weighted else None)
        expected = 0.0, 1.0
        if values.size and np.isfinite(values).all():
            mad = stats.median_abs_deviation(values) * 1.4826
            if kind == "std":
                expected = values.mean(), values.std()
            else:
                expected = np.median(values), mad if mad > 0.0 else values.std()
        if not expected[1] > 0.0:
            expected = 0.0, 1.0
        if np.isinf(values).any() and kind == "mad":
            assert np.isfinite([center[j], divisor[j]]).all()
            continue
        np.testing.assert_allclose([center[j], divisor[j]], expected, rtol=1e-4 if kind == "mad" else 1e-13, atol=1e-13)


def test_infinite_values_are_refused_without_a_warning_of_numpy() -> None:
    for kind in ("mad", "std"):
        with pytest.raises(ValueError, match="column 0, row 2: the value is inf"):
            pk.fit([[1.0], [2.0], [np.inf]], estimator=pk.ML(prestandardize=kind))


def test_unusable_scales_are_replaced_with_their_centers() -> None:
    center = np.array([1.0, np.nan, 2.0, 3.0, np.inf, 4.0, 5.0])
    divisor = np.array([2.0, 1.0, np.inf, 0.0, 1.0, -1.0, np.nan])
    for others in ((0.0, 1.0), (np.arange(7.0) - 9.0, np.arange(7.0) + 9.0)):
        found = replace_unusable_scales(center, divisor, others)
        for end, other, kept in zip(found, others, (1.0, 2.0), strict=True):
            expected = np.broadcast_to(other, 7).copy()
            expected[0] = kept
            np.testing.assert_array_equal(end, expected)
    np.testing.assert_array_equal(replace_unusable_scales(center, divisor)[1], [2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
