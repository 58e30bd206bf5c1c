"""The robust objective at eight lambdas at once, compared with the oracles."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from jitted import jitted

from powerkern._jit import COLUMN, LANES, entry, load, store
from powerkern.kernels.location.huber import CELLWISE_BETA, nonempty_one_step
from powerkern.kernels.location.weights import frequency_weights, new_frequency_work, position_at, position_from_above
from powerkern.kernels.robust.qq import CLOSE, PAPER, C, bisquare_distance, normal_nodes
from powerkern.kernels.robust.qq_lanes import plain_mad, qq_objectives
from powerkern.kernels.transforms.rectified import (
    BOTH,
    NOT_RECTIFIED,
    QUARTILES,
    ROOM,
    SortedColumn,
    tail_rank,
    transform_sorted,
)

LMBDAS = np.array([-4.0, -1.3, 0.0, 0.4, 1.0, 1.7, 2.0, 6.0])


@jitted
def _objectives(
    x: np.ndarray,
    logs: np.ndarray,
    n_negative: int,
    below: float,
    scores: np.ndarray,
    rule: int,
    lower: int,
    upper: int,
    c: float,
    lmbdas: np.ndarray,
    out: np.ndarray,
) -> None:
    column = SortedColumn(x, logs, x.size, n_negative, below, lower, upper)
    qq_objectives(column, (0.0, 0.0), None, scores, rule, 1.5, c, lmbdas, np.empty(8 * x.size), out)


def objectives(
    family: str,
    x: np.ndarray,
    rule: int,
    lmbdas: np.ndarray = LMBDAS,
    c: float = C,
    points: tuple[float, float] = (0.25, 0.75),
) -> np.ndarray:
    x = np.sort(x)
    mirrored = family == "yeo-johnson"
    logs = np.copysign(np.log1p(np.abs(x)), x) if mirrored else np.log(x)
    out = np.empty_like(lmbdas)
    n_negative = int((x < 0.0).sum()) if mirrored else 0
    lower, upper = tail_rank(x.size, points[0]), x.size - 1 - tail_rank(x.size, 1.0 - points[1])
    scores = oracles.normal_scores(x.size)
    _objectives(x, logs, n_negative, 2.0 * mirrored, scores, rule, lower, upper, c, lmbdas, out)
    return out


@pytest.mark.parametrize("family", ["yeo-johnson", "box-cox"])
@pytest.mark.parametrize(("rule", "name"), [(QUARTILES, "paper"), (NOT_RECTIFIED, "none"), (BOTH, "both")])
@pytest.mark.parametrize("n", [3, 4, 7, 20, 51, pytest.param(128, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("c", "points"), [(0.5, (0.25, 0.75)), (0.8, (0.1, 0.6))])
def test_objective_is_that_of_the_oracle(family, rule, name, n, c, points):
    rng = np.random.default_rng(n)
    x = rng.normal(size=n)
    x[: n // 8] = 6.0
    if family == "box-cox":
        x = np.exp(x)
    expected = [oracles.qq_objective(family, np.sort(x), v, name, oracles.normal_scores(n), c, points) for v in LMBDAS]
    found = objectives(family, x, rule, c=c, points=points)
    np.testing.assert_allclose(found, np.asarray(expected, dtype=float), atol=1e-12)


@jitted
def _weighted_objectives(x, logs, weight, n_negative, rule, work, lmbdas, out, one_by_one):
    n = x.size - ROOM
    counts = frequency_weights(weight, work)
    nodes = normal_nodes(counts, PAPER, CLOSE * C)
    column = SortedColumn(x, logs, n, n_negative, 2.0, position_at(counts, 0.25), position_from_above(counts, 0.25))
    qq_objectives(column, (0.0, 0.0), counts, nodes, rule, 1.5, C, lmbdas, np.empty(8 * n), out)
    y = np.empty(x.size)
    for k in range(lmbdas.size):
        transform_sorted(column, lmbdas[k], rule, y)
        huber = nonempty_one_step(y[:n], counts, 1.5, CELLWISE_BETA)
        one_by_one[k] = bisquare_distance(counts, y[:n], nodes, huber.loc, huber.scale, C)


@pytest.mark.parametrize("n", [4, 5, 11, 40])
@pytest.mark.parametrize("heavy", [None, "first", "second", "last", "last but one"])
def test_the_weighted_objective_agrees_with_one_lambda_at_a_time(n, heavy):
    """Compare lanes with one lambda at a time. One heavy value puts the weighted median at either end of the column."""
    rng = np.random.default_rng(n)
    x, weight = np.sort(rng.standard_t(2, size=n)), rng.uniform(0.5, 2.0, n)
    if heavy is not None:
        at = {"first": 0, "second": 1, "last": n - 1, "last but one": n - 2}[heavy]
        weight[at] = 0.8 * weight.sum()
    padded = np.append(x, np.ones(ROOM))
    out, one_by_one = np.empty(8), np.empty(8)
    logs = np.copysign(np.log1p(abs(padded)), padded)
    n_negative = int((x < 0.0).sum())
    _weighted_objectives(padded, logs, weight, n_negative, QUARTILES, new_frequency_work(n), LMBDAS, out, one_by_one)
    np.testing.assert_allclose(out, one_by_one, atol=1e-12)


@entry((COLUMN, COLUMN, COLUMN))
def _median_distances(y, points, out):
    store(out, (0,), plain_mad(y, y.size // LANES, load(points, (0,))))


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 9, 10, 12, 20, 31, 64])
@pytest.mark.parametrize("skewness", [0.0, 2.0, 15.0])
def test_median_distance_agrees_with_numpy(n, skewness):
    """Compare with NumPy. The values nearest to the point are at an end of the column in some lanes only."""
    rng, out = np.random.default_rng(n), np.empty(LANES)
    for _ in range(40):
        z = np.sort(rng.normal(size=(LANES, n)))
        y = np.exp(rng.uniform(-skewness, skewness, LANES)[:, None] * z)
        y = np.sort(y * rng.choice([-1.0, 1.0], LANES)[:, None])
        points = y[np.arange(LANES), rng.integers(0, n, LANES)] * rng.choice([1.0, 1.1], LANES)
        _median_distances(np.ascontiguousarray(y.T).ravel(), points, out)
        np.testing.assert_allclose(out, np.median(abs(y - points[:, None]), axis=1), rtol=1e-15)


def test_objective_of_values_far_beyond_a_change_point():
    """Compare with the oracle. The transform is linear there with a small slope, so rounding has little effect."""
    x = np.exp([-0.4, -0.3, -0.1, 0.1, 50.0, 120.0, 121.0, 122.0])
    expected = [float(oracles.qq_objective("box-cox", x, v, "paper", oracles.normal_scores(8))) for v in LMBDAS]
    np.testing.assert_allclose(objectives("box-cox", x, QUARTILES), expected, atol=1e-12)


def test_a_lambda_depends_on_its_neighbors_by_rounding_only():
    x = np.random.default_rng(1).normal(size=30)
    together = objectives("yeo-johnson", x, QUARTILES)
    for k, lmbda in enumerate(LMBDAS):
        alone = objectives("yeo-johnson", x, QUARTILES, np.full(8, lmbda))
        np.testing.assert_allclose(alone, together[k], rtol=0.0, atol=1e-15)


def test_not_defined_without_scale():
    assert np.isnan(objectives("yeo-johnson", np.array([0.0, 1.0, 1.0, 1.0, 1.0, 2.0]), QUARTILES)).all()


def test_objective_is_nan_if_a_transform_overflows():
    """An overflowed value is unknown; it must not count as a distant one, which adds 1."""
    logs = np.array([-1.2, -0.2, -0.1, 0.1, 900.0, 901.0])
    with np.errstate(over="ignore"):
        x, out = np.exp(logs), np.empty(LMBDAS.size)
    _objectives(x, logs, 0, 0.0, oracles.normal_scores(6), QUARTILES, 1, 4, C, LMBDAS, out)
    np.testing.assert_array_equal(np.isnan(out), LMBDAS < 1.0)


def test_far_values_count_1():
    x = np.append(np.random.default_rng(2).normal(size=40), [1e150, -1e200])
    found = objectives("yeo-johnson", x, QUARTILES)
    assert (found[np.isfinite(found)] <= 1.0).all()
    assert math.isfinite(found[4])
