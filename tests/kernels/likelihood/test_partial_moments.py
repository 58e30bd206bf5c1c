"""Partial moments of any partition of a column, merged, compared with the moments of the whole column."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from powerkern._engine.by_column import partial_moments_matrix
from powerkern.kernels.likelihood import partial_moments, score_formulas
from powerkern.kernels.likelihood import score as lk
from powerkern.kernels.transforms.family import FAMILIES, YEO_JOHNSON

RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=48)
NONE = np.empty(0)

COLUMNS = {
    "lognormal": ("box-cox", np.exp(NORMAL)),
    "both signs": ("yeo-johnson", NORMAL),
    "negative": ("yeo-johnson", -np.exp(NORMAL)),
    "tight": ("box-cox", 1e4 + 1e-3 * NORMAL),
    "huge": ("yeo-johnson", 1e150 * NORMAL),
}


def scaling_of(x: np.ndarray, family: str) -> np.ndarray:
    """Return a column's scaling: a flag for both signs, the reference, bounds of the scaled logs, and their unit."""
    base = 1.0 if family == "yeo-johnson" else 0.0
    both = x.min() < 0.0 <= x.max()
    reference = 0.0 if both else float(np.median(np.abs(x)))
    if both:
        low, high, neg_high = 0.0, np.log1p(x.max()), np.log1p(-x.min())
    else:
        centered = (np.abs(x) - reference) / (base + reference)
        low, high, neg_high = np.log1p(centered.min()), np.log1p(centered.max()), 0.0
    sigma = 2.0 ** np.ceil(np.log2(max(-low, high, neg_high)))
    return np.array([both, reference, low / sigma, high / sigma, neg_high / sigma, sigma])


def partial(x: np.ndarray, family: str, scaling: np.ndarray, mu: float, weight: np.ndarray = NONE) -> np.ndarray:
    x = x if x.size else np.array([np.nan])
    found = partial_moments_matrix(
        x.reshape(-1, 1), FAMILIES[family], scaling[None], np.array([[mu]]), weight, n_threads=1
    )
    return found[0, 0]


def merged(parts: list[np.ndarray]) -> np.ndarray:
    total = np.zeros(partial_moments.N_PARTIAL)
    for part in parts:
        if part[score_formulas.WEIGHT] > 0.0:
            total[partial_moments.JACOBIAN] += (part[partial_moments.JACOBIAN] - total[partial_moments.JACOBIAN]) * (
                part[score_formulas.WEIGHT] / (total[score_formulas.WEIGHT] + part[score_formulas.WEIGHT])
            )
            score_formulas.merge_moments(total, part)
    return total


def splits(x: np.ndarray) -> dict[str, list[np.ndarray]]:
    order = np.argsort(x)
    middle = np.median(x)
    return {
        "whole": [np.arange(x.size)],
        "sorted, with an empty one": [order[:5], order[5:5], order[5:30], order[30:]],
        "one value each": [order[i : i + 1] for i in range(x.size)],
        "by sign": [np.flatnonzero(x >= 0), np.flatnonzero(x < 0)],
        "halves": [np.flatnonzero(x > middle), np.flatnonzero(x <= middle)],
    }


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("lmbda", [-1.5, 0.3])
def test_merged_partial_moments_have_the_score_of_the_whole(name: str, lmbda: float) -> None:
    family, x = COLUMNS[name]
    scaling = scaling_of(x, family)
    both, _, low, high, neg_high, sigma = scaling
    mu = (lmbda if x.max() >= 0.0 else 2.0 - lmbda) * sigma
    sign = 1.0 if x.max() >= 0.0 else -1.0
    exact = [float(v) for v in oracles.likelihood(family, lmbda, x.tolist())]
    for parts in splits(x).values():
        total = merged([partial(x[part], family, scaling, mu) for part in parts])
        shift = lk.scaling_at(low, high, neg_high, sigma, bool(both), mu)[0]
        d1, d2, _ = score_formulas.score_from_moments(total, total[partial_moments.JACOBIAN] - shift)
        # g' is a difference of terms of the size of the logs, g'' one of their squares
        assert_allclose(sign * d1, exact[1] / sigma, rtol=0, atol=1e-14)
        assert_allclose(d2, exact[2] / sigma**2, rtol=1e-13, atol=1e-14)
        assert total[score_formulas.WEIGHT] == x.size


def test_weights_are_repetitions_and_nan_is_missing() -> None:
    family, x = COLUMNS["both signs"]
    scaling = scaling_of(x, family)
    weight = RNG.integers(0, 4, x.size).astype(np.float64)
    repeated = partial(np.repeat(x, weight.astype(int)), family, scaling, 0.7)
    with_nan = np.append(x, np.nan)
    assert_allclose(partial(with_nan, family, scaling, 0.7, np.append(weight, 1.0)), repeated, rtol=1e-12, atol=1e-15)
    assert_array_equal(partial(with_nan, family, scaling, 0.7), partial(x, family, scaling, 0.7))


def test_moments_without_values_or_at_nan_exponents_are_zero() -> None:
    family, x = COLUMNS["both signs"]
    scaling = scaling_of(x, family)
    assert_array_equal(partial(np.full(3, np.nan), family, scaling, 0.7), np.zeros(partial_moments.N_PARTIAL))
    at = np.array([[0.7, np.nan, 0.2]])
    found = partial_moments_matrix(x.reshape(-1, 1), YEO_JOHNSON, scaling[None], at, NONE, 1)[0]
    assert_array_equal(found[1], np.zeros(partial_moments.N_PARTIAL))
    assert_array_equal(found[2], partial(x, family, scaling, 0.2))
