"""Scaled and transformed columns of the supervised search, and their cache."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import powerkern as pk
from powerkern.sklearn.supervised import columns
from powerkern.sklearn.supervised.columns import Cache, TransformedColumns, compute_scaling


@pytest.fixture
def table():
    X = np.random.default_rng(0).lognormal(size=(12, 4))
    X[:, 2] = 7.0
    X[4, 1] = np.nan
    return X


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_columns_are_scaled_by_their_range_or_by_their_weighted_moments(table, family, weighted):
    weight = np.array([0.0, 2.0, 1.0, 3.0, 1.0, 0.0, 1.0, 0.5, 1.0, 1.0, 1.0, 4.0]) if weighted else None
    scaling = compute_scaling(table, family, weight)
    used = table if weight is None else table[weight > 0.0]
    low, high = np.nanmin(used, axis=0), np.nanmax(used, axis=0)
    assert scaling.varies.tolist() == [True, True, False, True]
    scaled = scaling.scale(table)
    for j in (0, 1, 3):
        x = table[:, j]
        reach = 0.99 * (high[j] - low[j])
        clipped = np.clip(x, low[j] - reach, high[j] + reach)
        if family == "box-cox":
            expected = (clipped - low[j]) / (high[j] - low[j]) + 1.0
        else:
            seen = ~np.isnan(x)
            w = np.ones(12) if weight is None else weight
            mean = np.average(x[seen], weights=w[seen])
            sd = np.sqrt(np.average((x[seen] - mean) ** 2, weights=w[seen]))
            expected = (clipped - mean) / sd
        np.testing.assert_allclose(scaled[:, j], expected, rtol=1e-12, atol=1e-14)
        inside = ~np.isnan(x) & (x == clipped)
        np.testing.assert_allclose(scaling.unscale(scaled)[inside, j], x[inside], rtol=1e-12)
    ends = scaling.scale(np.array([[-1e308] * 4, [1e308] * 4]))
    np.testing.assert_allclose(
        scaling.unscale(ends)[:, 0], [low[0] - 0.99 * (high - low)[0], high[0] + 0.99 * (high - low)[0]]
    )


def test_columns_that_cannot_be_scaled_are_refused(table):
    with pytest.raises(ValueError, match="every column of X is constant or missing; there is nothing to transform"):
        compute_scaling(np.column_stack([np.ones(5), np.full(5, np.nan)]), "box-cox", None)
    with pytest.raises(ValueError, match="the range of a column of X overflows float64"):
        compute_scaling(np.array([[-1e308, 1.0], [1e308, 2.0]]), "box-cox", None)
    constant_but_for_a_row_without_weight = np.array([[1.0], [1.0], [2.0]])
    with pytest.raises(ValueError, match="every column of X is constant"):
        compute_scaling(constant_but_for_a_row_without_weight, "box-cox", np.array([1.0, 1.0, 0.0]))
    empty = compute_scaling(np.column_stack([np.arange(5.0), np.full(5, np.nan)]), "box-cox", None)
    assert (empty.offset[1], empty.size[1], empty.varies.tolist()) == (0.0, 1.0, [True, False])


def test_each_pair_of_a_column_and_a_lambda_is_transformed_once(table, monkeypatch):
    scaled = compute_scaling(table, "box-cox", None).scale(table)[:, [0, 1, 3]]
    calls, fit = [], columns.fitting.fit
    monkeypatch.setattr(columns.fitting, "fit", lambda X, *a, **o: calls.append(X.shape[1]) or fit(X, *a, **o))
    transformed = TransformedColumns(scaled, "box-cox", None)
    which, lmbdas = np.array([0, 2, 0, 1]), np.array([0.5, 0.5, -1.0, 2.0])
    found = transformed.get(which, lmbdas)
    for row, j, lmbda in zip(found, which, lmbdas, strict=True):
        z = scipy.special.boxcox(scaled[:, j], lmbda)
        np.testing.assert_allclose(row, (z - np.nanmean(z)) / np.nanstd(z), atol=1e-12)
    again = transformed.get(np.array([1, 0, 0]), np.array([2.0, 3.0, 0.5]))
    np.testing.assert_array_equal(again[[0, 2]], found[[3, 0]])
    assert calls == [4, 1]
    weight = np.arange(12.0)
    weighted = TransformedColumns(scaled, "box-cox", weight).get(np.array([1]), np.array([0.25]))[0]
    expected = pk.fit(scaled[:, [1]], "box-cox", lmbda=0.25, sample_weight=weight).transform(scaled[:, [1]])[:, 0]
    np.testing.assert_array_equal(weighted, expected)


def test_the_cache_holds_arrays_up_to_its_size(monkeypatch):
    monkeypatch.setattr(columns, "_CACHE", 5 * 24 + 8)  # five arrays of three numbers
    cache, computed = Cache(), []

    def compute(which, lmbdas):
        computed.append([*zip(which.tolist(), lmbdas.tolist(), strict=True)])
        return np.add.outer(10.0 * which + lmbdas, [0.0, 0.25, 0.5])

    which, lmbdas = np.arange(7), np.linspace(0.0, 1.0, 7)
    expected = np.add.outer(10.0 * which + lmbdas, [0.0, 0.25, 0.5])
    for _ in range(2):
        np.testing.assert_array_equal(cache.get("values", which, lmbdas, compute), expected)
    assert [len(call) for call in computed] == [7, 2]
    assert computed[1] == [(5, lmbdas[5]), (6, lmbdas[6])]
    cache.get("moments", which[:1], lmbdas[:1], compute)  # another kind
    assert computed[2] == [(0, 0.0)]
