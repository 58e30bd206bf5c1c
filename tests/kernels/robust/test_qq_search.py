"""The search for the lambda that minimises the robust QQ objective, and the lower bound that guides it."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerkern._jit import COLUMN, COLUMN32, INTEGER, LANES32, REAL, ROWS, ROWS32, entry
from powerkern.kernels.robust import qq_search
from powerkern.kernels.robust.qq_search import FLOOR, LMBDA, MOST_POINTS, VALUE
from powerkern.kernels.transforms.rectified import NOT_RECTIFIED, QUARTILES, SortedColumn, tail_rank

RULES = {"paper": QUARTILES, "none": NOT_RECTIFIED}
residuals = st.lists(st.tuples(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0)), min_size=1, max_size=30)


@entry((COLUMN, COLUMN, INTEGER, REAL, COLUMN, INTEGER, REAL, REAL, qq_search.CELL_WORK, ROWS, COLUMN))
def _search(x, logs, n_negative, below, scores, rule, low, high, work, points, out):
    n = scores.size
    rank = tail_rank(n, 0.25)
    column = SortedColumn(x, logs, n, n_negative, below, rank, n - 1 - rank)
    qq = qq_search.qq_objective(column, scores, rule, 1.5, 0.5, work)
    out[0] = qq_search.search_cells(qq, low, high, points, work)


@entry((COLUMN32, INTEGER, ROWS32))
def _floors(y, n, lanes):
    qq_search._write_floors(y, n, lanes, 0)


def floor_of(a: np.ndarray, b: np.ndarray, values: tuple[float, float] = (0.5, 0.5)) -> float:
    y, lanes = np.zeros((a.size + 1, LANES32), dtype=np.float32), np.zeros((3, LANES32 + 1), dtype=np.float32)
    y[:-1, 4], y[:-1, 5] = np.clip(a, -1.0, 1.0), np.clip(b, -1.0, 1.0)
    lanes[VALUE, 4:6] = values
    _floors(y.ravel(), a.size, lanes)
    return float(lanes[FLOOR, 4])


def searched(family: str, x: np.ndarray, rule: int, low: float = -4.0, high: float = 6.0) -> np.ndarray:
    """Search from `low` to `high`; return ascending points as rows of lambda, objective and lower bound."""
    x = np.sort(x)
    mirrored = family == "yeo-johnson"
    logs = np.copysign(np.log1p(abs(x)), x) if mirrored else np.log(x)
    work, out = qq_search.new_cell_work(x.size), np.empty(1)
    n_negative = int((x < 0.0).sum()) if mirrored else 0
    scores = oracles.normal_scores(x.size)
    padded = [np.append(a, np.ones(8)) for a in (x, logs)]
    points = np.empty((3, MOST_POINTS))
    _search(*padded, n_negative, 2.0 * mirrored, scores, rule, low, high, work, points, out)
    return points[:, : int(out[0])]


def contaminated_column(family: str, n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = np.append(rng.normal(size=n - n // 8), rng.normal(6.0, 0.5, n // 8))
    return np.exp(x) if family == "box-cox" else x


@pytest.mark.parametrize("family", ["yeo-johnson", "box-cox"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n", [5, 8, 31])
def test_every_point_has_its_objective_and_every_cell_its_reason(family, rule, n):
    x = contaminated_column(family, n)
    points = searched(family, x, RULES[rule])
    lmbdas, values, floors = points[LMBDA], points[VALUE], points[FLOOR, :-1]
    assert (lmbdas[0], lmbdas[-1]) == (-4.0, 6.0)
    assert (np.diff(lmbdas) > 0.0).all()
    scores = oracles.normal_scores(n)
    expected = [float(oracles.qq_objective(family, np.sort(x), v, rule, scores)) for v in lmbdas]
    np.testing.assert_allclose(values, expected, atol=2e-6)
    assert (floors <= np.minimum(values[:-1], values[1:]) + 2e-6).all()
    width = np.diff(lmbdas)
    hidden = np.where(width <= qq_search._NARROW, np.maximum(qq_search._HIDDEN, qq_search._STEEP * width) + 1e-6, 0.0)
    assert ((width <= qq_search._NARROWEST + 1e-6) | (floors >= values.min() - hidden)).all()


@pytest.mark.parametrize("seed", range(3))
def test_it_comes_near_the_lowest_of_a_fine_grid(seed):
    x = np.sort(contaminated_column("yeo-johnson", 12, seed))
    points, scores = searched("yeo-johnson", x, QUARTILES), oracles.normal_scores(12)
    grid = np.arange(-4.0, 6.0, 0.02)
    lowest = min(grid, key=lambda v: oracles.qq_objective("yeo-johnson", x, v, "paper", scores))
    best = points[LMBDA, np.argmin(points[VALUE])]
    assert abs(best - lowest) <= 2.0 * qq_search._NARROW


@pytest.mark.parametrize("low, high", [(-4.0, 6.0), (-300.0, 300.0), (0.0, 0.1)])
def test_the_search_reaches_both_ends_of_any_range(low, high):
    points = searched("yeo-johnson", contaminated_column("yeo-johnson", 9), QUARTILES, low, high)
    assert (points[LMBDA, 0], points[LMBDA, -1]) == (low, high)
    assert math.isfinite(points[VALUE].min())


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
@pytest.mark.parametrize("high", [1e19, 1e38, 1e308])
def test_ranges_wider_than_integers(high):
    points = searched("yeo-johnson", contaminated_column("yeo-johnson", 9), QUARTILES, -high, high)
    assert (points[LMBDA, 0], points[LMBDA, -1]) == (-high, high)
    assert points.shape[1] > LANES32


@pytest.mark.parametrize(
    "x",
    [
        np.exp([-0.4, -0.3, -0.1, 0.1, 0.2, 50.0, 120.0, 121.0, 122.0]),
        np.exp([-122.0, -120.0, -50.0, -0.2, -0.1, 0.1, 0.3, 0.4, 0.5]),
        np.array([-1e60, -1e50, -0.3, -0.2, -0.1, 0.1, 0.3, 1e40, 1e55]),
        np.array([-1.0, -0.9, -0.8, 0.1, 0.2, 0.2, 1.6, 1e41, 8e60, 7e75]),  # a quartile is far, the slope there 1e-80
        np.array([-1e60, -2e22, -0.7, 0.6, 0.65, 0.7]),
        np.array([-0.8, -0.2, -0.1, 0.0, 0.7, 1e22, 1e71]),
        np.append(np.exp([-743.0, -742.0, -741.0]), np.exp([-0.02, 0.02, 0.36, 0.57, 0.77])),
    ],
)
def test_float32_suffices_for_far_values(x):
    family = "box-cox" if x[0] > 0.0 else "yeo-johnson"
    points, scores = searched(family, x, QUARTILES), oracles.normal_scores(x.size)
    with np.errstate(over="ignore"):
        expected = [float(oracles.qq_objective(family, x, v, "paper", scores)) for v in points[LMBDA]]
    np.testing.assert_allclose(points[VALUE], expected, atol=1e-5)


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson", "mirrored"])
def test_float32_suffices_for_close_values(family):
    """The objective of values 1 + 1e-5 z agrees with the oracle to 1e-5, for Box-Cox and, shifted, for Yeo-Johnson."""
    near_1 = np.sort(1.0 + 1e-5 * contaminated_column("yeo-johnson", 25))
    x = 1e4 * near_1 - (family != "box-cox")
    points = searched(family.replace("mirrored", "yeo-johnson"), -x if family == "mirrored" else x, QUARTILES)
    lmbdas, scores = 2.0 - points[LMBDA] if family == "mirrored" else points[LMBDA], oracles.normal_scores(25)
    expected = [float(oracles.qq_objective("box-cox", near_1, v, "paper", scores)) for v in lmbdas]
    np.testing.assert_allclose(points[VALUE], expected, atol=1e-5)


@given(residuals)
def test_floor_is_below_the_objective_of_all_residuals_between(pairs):
    a, b = np.array(pairs).T.copy()
    t = np.linspace(0.0, 1.0, 9)[:, None]
    between = np.minimum(((1.0 - t) * a + t * b) ** 2, 1.0)
    objectives = (1.0 - (1.0 - between) ** 3).mean(axis=1)
    assert floor_of(a, b) <= objectives.min() + 2e-6
    assert floor_of(a, a) == pytest.approx(objectives[0], abs=2e-6)
    if (
        (a * b > 0.0).all()
        and ((a <= b).all() if a[0] > 0.0 else (a >= b).all())
        and (np.sign(a) == np.sign(a[0])).all()
    ):
        assert floor_of(a, b) == pytest.approx(objectives[0], abs=2e-6)


def test_floor_where_the_objective_is_not_defined():
    a = np.array([math.inf, 0.9])
    assert floor_of(a, a) > 0.9
    assert floor_of(a, a, (math.inf, 0.5)) == 0.0
    assert floor_of(a, a, (0.5, math.inf)) == 0.0
