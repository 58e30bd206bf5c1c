"""Weights of values by their ranks, compared with numerical integration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, special

from powerkern._estimators.origin import central_weights
from powerkern._estimators.plotting_positions import cached_quantiles, normal_quantiles, sort_and_weigh
from powerkern._estimators.robust import small_sample_cutoff, weight_of_one, weights_of_one


def weight_at(q: float, box_cox: bool) -> float:
    """Return the weight of the central likelihood at rank `q` in [-1, 1]: 1 up to |q| = 0.54, then a cosine.

    With `box_cox`, it is 1 up to 0.8, then 0.
    """
    size = abs(q)
    if box_cox:
        return float(size <= 0.8)
    return 1.0 if size <= 0.54 else 0.5 * (1.0 + np.cos(np.pi * (size - 0.54) / 0.46))


@pytest.mark.parametrize("box_cox", [False, True])
@pytest.mark.parametrize("kind", ["plain", "missing", "weighted", "weighted, missing"])
def test_weights_by_rank_are_areas_under_the_weight_function(kind: str, box_cox: bool) -> None:
    rng = np.random.default_rng(0)
    columns = np.sort(rng.normal(size=(3, 11)), axis=1)
    if "missing" in kind:
        columns[1, 7:] = np.nan
    weights = rng.uniform(0.2, 3.0, columns.shape) if "weighted" in kind else None
    found = central_weights(columns, weights, box_cox)
    assert found.flags.c_contiguous
    for row, x in enumerate(columns):
        w = np.where(np.isnan(x), 0.0, 1.0 if weights is None else weights[row])
        total = w.sum()
        ends = 2.0 * (np.append(0.0, np.cumsum(w)) + 1.0 / 6.0) / (total + 1.0 / 3.0) - 1.0
        for k in range(x.size):
            breaks = [b for b in (-0.8, -0.54, 0.54, 0.8) if ends[k] < b < ends[k + 1]]
            area = integrate.quad(weight_at, ends[k], ends[k + 1], (box_cox,), points=breaks or None)[0]
            assert found[row, k] == pytest.approx(0.5 * (total + 1.0 / 3.0) * area, abs=1e-7)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 9, 10, 1000])
def test_normal_quantiles_are_at_fillibens_medians(n: int) -> None:
    q = normal_quantiles(n)
    assert q.size == n
    if n < 2:
        assert not q.any()
        return
    medians = (np.arange(1.0, n + 1.0) - 0.3175) / (n + 0.365)
    medians[0], medians[-1] = 1.0 - 0.5 ** (1.0 / n), 0.5 ** (1.0 / n)
    expected = special.ndtri(medians)
    np.testing.assert_allclose(q, expected / np.sqrt(np.mean(expected**2)), rtol=0, atol=1e-14)
    np.testing.assert_array_equal(q, -q[::-1])
    np.testing.assert_array_equal(cached_quantiles(n)(n), q)


def test_positions_of_columns_with_missing_values_are_those_of_their_lengths() -> None:
    x = np.array([[3.0, 1.0, 2.0, 5.0], [np.nan, 4.0, np.nan, 1.0], [np.nan] * 4])
    columns, positions, totals = sort_and_weigh(x.copy(), None, normal_quantiles)
    np.testing.assert_array_equal(columns, np.sort(x, axis=1))
    assert totals.shape == (0, 2)
    for j, n in enumerate((4, 2, 0)):
        np.testing.assert_array_equal(positions[0, j], np.append(normal_quantiles(n), np.zeros(4 - n)))
    whole = sort_and_weigh(x[:1].copy(), None, normal_quantiles)[1]
    np.testing.assert_array_equal(whole, normal_quantiles(4)[np.newaxis, np.newaxis])


def test_cutoffs_of_short_columns_are_quantiles_of_student() -> None:
    n = np.array([3.0, 10.0, 40.0, 1e6])
    np.testing.assert_allclose(small_sample_cutoff(0.995, n), special.stdtrit(n / 4.0, 0.995), rtol=1e-15)
    assert (np.diff(small_sample_cutoff(0.995, n)) < 0.0).all()


@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e300])
def test_the_weight_of_one_observation_is_the_mean_weight_of_an_observation(scale: float) -> None:
    w = np.array([1.0, 3.0, 0.5, 0.0])
    expected = min(scale * (w**2).sum() / w.sum(), 1.0)
    assert weight_of_one(w * scale) == pytest.approx(expected, rel=1e-14)
    assert weight_of_one(np.zeros(3)) == 1.0
    assert weight_of_one(np.empty(0)) == 1.0


def test_units_of_columns_are_given_only_if_one_is_below_1() -> None:
    values = np.array([[1.0, np.nan], [2.0, 3.0], [np.nan, 4.0]])
    assert weights_of_one(values, None) is None
    assert weights_of_one(values, np.array([1.0, 2.0, 3.0])) is None
    found = weights_of_one(values, np.array([0.5, 0.25, 2.0]))
    np.testing.assert_allclose(found, [0.3125 / 0.75, 1.0], rtol=1e-15)
