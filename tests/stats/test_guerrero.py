"""Guerrero's lambda, compared with R's forecast and brute force, and its invariances."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference_files import SHARED
from scipy import optimize

from powerkern.stats import boxcox_guerrero

REFERENCE = SHARED / "refs" / "regression_reference.json"


def variation(lmbda: float, x: np.ndarray, length: int) -> float:
    """Return the coefficient of variation of s/m**(1 - lambda) over blocks of `length` values.

    m and s are the mean and the standard deviation of a block. Values that do not fill a block are dropped at the
    start.
    """
    seasons = x[x.size % length :].reshape(-1, length)
    ratios = [np.nanstd(one, ddof=1) / np.nanmean(one) ** (1.0 - lmbda) for one in seasons]
    return float(np.std(ratios, ddof=1) / np.mean(ratios))


def series(n: int, seed: int, length: int = 12) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    power = rng.uniform(0.3, 1.5)
    level = np.exp(0.01 * t)
    return level + 0.2 * level**power * (np.sin(2 * np.pi * t / length) + 0.3 * rng.normal(size=n))


@pytest.mark.needs_shared_data
@pytest.mark.parametrize("name", ["AirPassengers", "lynx", "sunspots", "UKgas", "JohnsonJohnson"])
def test_lambdas_agree_with_forecast(name: str) -> None:
    records = {one["name"]: one for one in json.loads(REFERENCE.read_text())["forecast"]}
    record = records[name]
    x = np.array(record["x"], dtype=float)
    if name == "sunspots" and not (x > 0.0).all():
        with pytest.raises(ValueError, match="positive, finite"):
            boxcox_guerrero(x, 12)
        return
    found, length = boxcox_guerrero(x, max(2, record["period"])), max(2, record["period"])
    assert found == pytest.approx(record["guerrero"], abs=2e-4)  # R's search stops at eps**0.25
    assert variation(found, x, length) <= variation(record["guerrero"], x, length) + 1e-15


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_lambdas_agree_with_a_bounded_line_search(seed: int) -> None:
    x = series(147, seed)
    exact = optimize.minimize_scalar(
        variation, bounds=(-1.0, 2.0), args=(x, 12), method="bounded", options={"xatol": 1e-9}
    )
    found = boxcox_guerrero(x, 12)
    assert found == pytest.approx(exact.x, abs=1e-6)
    grid = min(variation(at, x, 12) for at in np.linspace(-1.0, 2.0, 500))
    assert variation(found, x, 12) <= grid + 1e-14


def test_columns_axis_and_units_do_not_matter() -> None:
    X = np.column_stack([series(147, seed) for seed in range(4)])
    each = [boxcox_guerrero(X[:, j], 12) for j in range(4)]
    assert_array_equal(boxcox_guerrero(X, 12), each)
    assert_array_equal(boxcox_guerrero(X.T, 12, axis=1), each)
    assert_allclose(boxcox_guerrero(X * 1e150, 12), each, atol=1e-10)
    assert_allclose(boxcox_guerrero(X * 1e-150, 12), each, atol=1e-10)
    assert isinstance(each[0], float)


@pytest.mark.slow
def test_missing_values_leave_their_season() -> None:
    x = series(120, 3)
    x[[5, 40, 41]] = np.nan
    found = boxcox_guerrero(x, 12)
    assert variation(found, x, 12) <= min(variation(at, x, 12) for at in np.linspace(-1.0, 2.0, 300)) + 1e-14
    x[24:35] = np.nan  # one season has a single value left, and no standard deviation
    assert boxcox_guerrero(x, 12) == pytest.approx(boxcox_guerrero(np.delete(x, np.arange(24, 36)), 12), abs=1e-12)


def test_the_ends_of_the_bounds() -> None:
    level = np.exp(np.linspace(0.0, 3.0, 10))
    for lmbda, bounds, end in ((-1.7, (-1.0, 2.0), -1.0), (0.8, (-1.0, 0.5), 0.5), (-0.5, (0.0, 1.0), 0.0)):
        wiggle = np.tile([-1.0, 1.0], 10) * np.repeat(level ** (1.0 - lmbda), 2) * 1e-3
        x = np.repeat(level, 2) + wiggle / np.repeat(level, 2).max() ** max(0.0, -lmbda)
        assert boxcox_guerrero(x, 2, bounds=bounds) == pytest.approx(end, abs=1e-12)


def test_seasons_of_one_level_give_an_end_of_the_bounds() -> None:
    assert boxcox_guerrero(np.tile([1.0, 2.0, 4.0], 10), 3) in (-1.0, 2.0)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (([1.0, 2.0, 3.0, -1.0],), "positive, finite"),
        (([1.0, np.inf, 3.0, 1.0],), "positive, finite"),
        (([1.0, 2.0, 3.0],), "fewer than two seasons of 2"),
        ((np.ones((2, 2, 2)),), "one series or a table"),
        (([],), "`x` has no values"),
        ((np.ones((8, 0)),), "`x` has no values"),
        (([1.0, 1.0, 2.0, 2.0],), "series 0 must have two seasons whose values are not all equal"),
        (([1.0, 2.0, 3.0, 4.0], 1), "`season_length` must be at least 2"),
    ],
)
def test_invalid_arguments_are_refused(arguments: tuple[object, ...], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        boxcox_guerrero(*arguments)  # type: ignore[arg-type]
    for bounds in ((2.0, 1.0), (0.0, np.inf), 3.0):
        with pytest.raises(ValueError, match="`bounds` must be a finite interval"):
            boxcox_guerrero([1.0, 2.0, 3.0, 5.0], bounds=bounds)  # type: ignore[arg-type]


def test_groups_agree_with_series_by_themselves() -> None:
    rng = np.random.default_rng(5)
    x, labels = rng.lognormal(3.0, 0.3, size=(150, 2)), rng.choice(["b", "a", "c"], 150)
    found = boxcox_guerrero(x, 5, groups=labels)
    assert list(found) == ["a", "b", "c"]
    for label, lmbda in found.items():
        np.testing.assert_array_equal(lmbda, boxcox_guerrero(x[labels == label], 5))
    np.testing.assert_array_equal(boxcox_guerrero(x.T, 5, axis=1, groups=labels)["b"], found["b"])
    assert isinstance(boxcox_guerrero(x[:, 0], groups=labels)["a"], float)
    labels[0] = "d"
    with pytest.raises(ValueError, match="group 'd': `x` has 1 values, fewer than two seasons"):
        boxcox_guerrero(x, groups=labels)
    with pytest.raises(ValueError, match="groups has 3 labels, and there are 150 rows"):
        boxcox_guerrero(x, groups=[1, 1, 1])
