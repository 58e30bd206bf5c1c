"""The search for the lambda that minimises the robust QQ objective, and the lower bound that guides it."""

from __future__ import annotations

import math
from itertools import pairwise

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
    """Search a column from `low` to `high`; return the points evaluated, ascending, as (3, n_points).

    The rows are lambda, the objective, and the lower bound of the cell; `rule` is the code of the rectification rule.
    """
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


# --- parts of the search ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["box-cox", "positive", "negative", "both signs", "far"])
def test_distances_from_change_points_are_in_units_that_float32_holds(kind):
    """Compare the units with x (Box-Cox) or 1 + |x| at the change points, unless distances exceed float32's range."""
    z = np.sort(np.random.default_rng(3).normal(size=12))
    x = {"box-cox": np.exp(z), "positive": np.exp(z), "negative": -np.exp(-z), "both signs": z}.get(
        kind, np.append(z[:9], [1e40, 1e50, 1e55])
    )
    mirrored = kind != "box-cox"
    logs = np.sign(x) * np.log1p(abs(x)) if mirrored else np.log(x)
    n_negative = int((x < 0.0).sum()) if mirrored else 0
    column = SortedColumn(x, logs, 12, n_negative, 2.0 * mirrored, 2, 8)
    work, scores = qq_search.new_cell_work(12), np.linspace(-1.5, 1.5, 12)
    with np.errstate(all="ignore"):
        qq = qq_search.qq_objective(column, scores, QUARTILES, 1.5, 0.5, work)
    middle = 0.0 if 0 < n_negative < 12 else logs[6]
    np.testing.assert_allclose(qq.column.logs, logs - middle, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(qq.scores, scores, rtol=1e-6)
    assert (qq.rule, qq.huber_k, qq.c, qq.column.lower, qq.column.upper) == (QUARTILES, 1.5, 0.5, 2, 8)
    assert (qq.column.n, qq.column.n_negative, qq.column.negative_shift) == (12, n_negative, 2.0 * mirrored)
    for k, part, log_unit in ((2, slice(0, 3), qq.log_units[0]), (8, slice(8, 12), qq.log_units[1])):
        side = -1.0 if k < n_negative else 1.0
        unit = log_unit + side * middle
        if kind != "far":
            assert unit == pytest.approx(side * logs[k], abs=1e-12)
        elif k == 8:
            assert unit == pytest.approx(np.log(1e55) - 80.0, abs=1e-9)
        found = qq.column.x[part].astype(float)
        np.testing.assert_allclose(found * np.exp(unit), x[part] - x[k], rtol=1e-6, atol=1e-30)


@pytest.mark.parametrize("cells", [[3], [3, 4], [2, 5], [1, 2, 3, 7, 9], [0, 1, 2, 3, 4], [1, 3, 5, 7, 9], [4, 2, 3]])
def test_cells_are_divided_into_equal_parts_in_all_lanes(cells):
    work, start = qq_search.new_cell_work(4), 32
    lmbdas = work.lanes[LMBDA]
    lmbdas[:] = np.nan
    lmbdas[:12] = np.cumsum([1.0, 2.0, 0.5, 4.0, 1.0, 1.0, 8.0, 2.0, 1.0, 0.25, 3.0, 1.0])
    qq_search._divide(np.array(cells), start, work)
    n_runs = 1 + sum(b != a + 1 for a, b in pairwise(cells))
    sizes = [(LANES32 - n_runs) // len(cells)] * len(cells)
    for i in range(LANES32 - n_runs - sum(sizes)):
        sizes[i] += 1
    expected = []
    for i, (cell, size) in enumerate(zip(cells, sizes, strict=True)):
        ends = np.linspace(lmbdas[cell], lmbdas[cell + 1], size + 1)
        is_new = i == 0 or cell != cells[i - 1] + 1
        assert work.begin[cell] == start + len(expected) - (not is_new)
        assert work.end[cell] == work.begin[cell] + size
        expected += list(ends if is_new else ends[1:])
    assert len(expected) == LANES32
    np.testing.assert_allclose(lmbdas[start : start + LANES32], expected, rtol=1e-6)
    assert np.isnan(lmbdas[start + LANES32 :]).all()


@pytest.mark.parametrize("width", [0.009, 0.02, 0.08, 0.09, 0.12, 0.14, 0.9])
@pytest.mark.parametrize("is_level", [False, True])
def test_cells_are_open_by_their_width_and_lower_bound(is_level, width):
    work, lowest = qq_search.new_cell_work(4), 0.25
    work.lanes[LMBDA, 5:7] = 1.0, 1.0 + width
    work.lanes[VALUE, 5:7] = lowest, lowest + (1e-4 if is_level else 0.05)
    if width <= 0.01:
        margin = -math.inf
    elif width <= 0.085:
        margin = -0.003 if is_level else -max(0.003, 0.2 * width)
    else:
        margin = 0.0 if width <= 0.13 else 0.02
    for step in (-1e-4, 1e-4):
        work.lanes[FLOOR, 5] = lowest + (margin if margin > -math.inf else -0.2) + step
        assert qq_search._is_open(5, lowest, work) == (step < 0.0 and margin > -math.inf)
    work.lanes[FLOOR, 5] = -1.0
    work.lanes[LMBDA, 7:9], work.lanes[FLOOR, 6:8] = 2.0 + width, 1.0
    work.lanes[VALUE, 7:9] = 1.0
    work.queue[:3] = 77
    last = qq_search._queue_open(5, 8, lowest, 2, work)
    assert work.queue[2:last].tolist() == ([5] if margin > -math.inf else [])
