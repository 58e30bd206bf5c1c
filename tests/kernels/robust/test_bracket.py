"""Search for a minimum in a bracket, compared with known minima, and its interpolation, compared with polynomials."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powerkern._jit import LANES
from powerkern.kernels.robust import bracket
from powerkern.kernels.robust.search import AT_HIGH, AT_LOW, HIGH, LOW, LOWEST, VALUE, Stop


class Work:
    """Scratch that has only the grid of points and values."""

    def __init__(self):
        self.grid = np.full((3, 64), np.nan)


def minimum_of(f, cell, stop, monkeypatch, known=True):
    """Minimise a function in a cell; return the result, and the points evaluated in each round.

    Parameters
    ----------
    f : callable
        The function.
    cell : (float, float, float)
        Low end, lowest known point, high end.
    stop : Stop
        Rules for ending the search.
    monkeypatch : pytest.MonkeyPatch
        Replaces the objective by `f`.
    known : bool
        Whether the values at the ends are known.
    """
    rounds, work = [], Work()

    def evaluate(standardized, n, options, work):
        assert n == LANES
        points = work.grid[0, :n].copy()
        rounds.append(points)
        work.grid[1, :n] = f(points)
        return int(np.argmin(work.grid[1, :n]))

    monkeypatch.setattr(bracket, "evaluate", evaluate)
    row, (low, lowest, high) = np.zeros(8), cell
    row[LOW], row[LOWEST], row[HIGH] = cell
    row[AT_LOW], row[VALUE], row[AT_HIGH] = (f(low), f(lowest), f(high)) if known else (math.inf, f(lowest), math.inf)
    with np.errstate(all="ignore"):
        return bracket.minimize_in_bracket(None, row, stop, None, work), rounds


SMOOTH = {
    "parabola": (lambda x: 3.0 + (x - 0.31) ** 2, 0.31, 3.0),
    "cubic": (lambda x: (x - 0.3) ** 2 + 0.2 * (x - 0.3) ** 3, 0.3, 0.0),
    "cosine": (lambda x: -np.cos(2.0 * (x - 0.35)), 0.35, -1.0),
    "exponential": (lambda x: np.exp(3.0 * x) - 6.0 * x, math.log(2.0) / 3.0, 2.0 - 2.0 * math.log(2.0)),
}


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("cell", [(0.2, 0.3, 0.4), (0.27, 0.32, 0.39), (0.1, 0.2, 0.5), (-0.5, 0.4, 1.0)])
@pytest.mark.parametrize("known", [True, False])
def test_smooth_minima_take_few_rounds(name, cell, known, monkeypatch):
    f, at, value = SMOOTH[name]
    found, rounds = minimum_of(f, cell, Stop(1e-5, math.inf, 0.0), monkeypatch, known)
    assert found.n_eval == LANES * len(rounds)
    if cell[0] <= at <= cell[2]:
        assert found.lmbda == pytest.approx(at, abs=1e-5)
        assert found.value == pytest.approx(value, abs=1e-8)
        assert len(rounds) <= 4
        for points in rounds:
            assert cell[0] <= points.min() <= points.max() <= cell[2]
            assert (np.diff(points) > 0.0).all()
    assert cell[1] in rounds[0]  # the known point is evaluated again


@pytest.mark.parametrize("at", [0.2, 0.311, 0.37])
@pytest.mark.parametrize("xtol", [1e-3, 1e-5])
def test_kinks_are_found_within_the_tolerance(at, xtol, monkeypatch):
    found, rounds = minimum_of(lambda x: abs(x - at), (0.1, 0.3, 0.5), Stop(xtol, math.inf, 0.0), monkeypatch)
    assert found.lmbda == pytest.approx(at, abs=2.0 * xtol)
    assert found.value == abs(found.lmbda - at)
    assert found.n_eval == LANES * len(rounds) <= 100 + LANES


def test_the_search_ends_after_100_evaluations(monkeypatch):
    rng = np.random.default_rng(0)
    found, rounds = minimum_of(
        lambda x: rng.uniform(size=np.shape(x)), (0.0, 0.3, 1.0), Stop(0.0, math.inf, 0.0), monkeypatch
    )
    assert found.n_eval == LANES * len(rounds)
    assert 100 <= found.n_eval < 100 + LANES


@pytest.mark.parametrize("bound, n_rounds", [(1.0, 1), (5.0, None)])
def test_the_search_ends_if_the_minimum_cannot_be_low_enough(bound, n_rounds, monkeypatch):
    found, rounds = minimum_of(lambda x: 4.0 + abs(x - 0.31), (0.2, 0.3, 0.4), Stop(1e-6, bound, 0.0), monkeypatch)
    assert (len(rounds) == n_rounds) if n_rounds else (len(rounds) > 1)
    assert found.value >= 4.0


# --- interpolation --------------------------------------------------------------------------------------

POINTS = np.array([-1.1, -0.7, -0.45, -0.1, 0.2, 0.4, 0.8, 1.3])


def bracket_of(f, low, x, high):
    return bracket._Bracket(low, x, high, f(low), f(x), f(high))


@pytest.mark.parametrize("a, b, c", [(2.0, -0.3, 1.0), (0.4, 0.9, -2.0), (1e-3, 0.0, 0.0)])
def test_parabolas_are_recovered_exactly(a, b, c):
    around = bracket_of(lambda x: a * x * x + b * x + c, -0.7, 0.1, 0.9)
    assert bracket._second_difference(around) == pytest.approx(a, rel=1e-12)
    x, value = bracket._parabola_vertex(around)
    assert x == pytest.approx(-b / (2.0 * a), rel=1e-12, abs=1e-13)
    assert value == pytest.approx(c - b * b / (4.0 * a), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("a", [0.0, -1.0])
def test_without_curvature_the_vertex_is_the_middle_point(a):
    assert bracket._parabola_vertex(bracket_of(lambda x: a * x * x, -1.0, 0.25, 1.0)) == (0.25, a * 0.0625)


@pytest.mark.parametrize("k", range(1, 7))
@pytest.mark.parametrize("third", [1e-3, -1e-4, 0.0])
def test_minima_of_cubics_are_one_step_from_the_vertex_of_a_parabola(third, k):
    """Compare the result with a cubic's minimum, one Newton step from the vertex of the parabola through three points.

    The value returned is the cubic's at the vertex.
    """

    def f(x):
        return 2.0 + (x - 0.05) ** 2 + third * (x - 0.05) ** 3

    parabola = np.polyfit(POINTS[k - 1 : k + 2], f(POINTS[k - 1 : k + 2]), 2)
    vertex = -0.5 * parabola[1] / parabola[0]
    step = (2.0 * (vertex - 0.05) + 3.0 * third * (vertex - 0.05) ** 2) / (2.0 * parabola[0])
    x, value = bracket._minimum_among(POINTS, f(POINTS), k)
    assert x == pytest.approx(vertex - step, abs=1e-13)
    assert value == pytest.approx(f(vertex), abs=1e-13)
    assert x == pytest.approx(0.05, abs=1e-5)


@pytest.mark.parametrize("seed", range(12))
def test_differences_of_five_points(seed):
    """Compare second and third divided differences with polynomial fits to three points.

    The flag is set if the three second differences differ by at most 15 % of the second difference at point k.
    """
    rng = np.random.default_rng(seed)
    values = POINTS**2 * (1.0 + 0.04 * rng.normal()) + 0.04 * rng.normal() * POINTS**3 + 2e-4 * rng.normal(size=8)
    second = [np.nan] + [np.polyfit(POINTS[i - 1 : i + 2], values[i - 1 : i + 2], 2)[0] for i in range(1, 7)]
    for first in range(4):
        for k in (first + 1, first + 2, first + 3):
            left, right, at_k, is_steady = bracket._thirds_among(POINTS, values, first, k)
            own = second[first + 1 : first + 4]
            assert left == pytest.approx((own[1] - own[0]) / (POINTS[first + 3] - POINTS[first]), rel=1e-7, abs=1e-12)
            assert right == pytest.approx(
                (own[2] - own[1]) / (POINTS[first + 4] - POINTS[first + 1]), rel=1e-7, abs=1e-12
            )
            assert at_k == pytest.approx(second[k], rel=1e-9)
            assert is_steady == (max(own) - min(own) <= 0.15 * second[k])


@pytest.mark.parametrize("k", [0, 7])
def test_end_points_have_no_minimum_among_neighbors(k):
    assert np.isnan(bracket._minimum_among(POINTS, POINTS**2, k)).all()


@pytest.mark.parametrize(
    "f", [abs, lambda x: x**4 + 1e-3 * x**2, lambda x: x * x + 0.05 * np.sin(9.0 * x), lambda x: np.maximum(x * x, 0.1)]
)
def test_minima_are_not_trusted_beside_kinks_and_higher_orders(f):
    values = f(POINTS)
    assert np.isnan(bracket._minimum_among(POINTS, values, int(np.argmin(values)))).all()


@pytest.mark.parametrize("x, expected", [(-0.7, 1), (-0.58, 1), (-0.57, 2), (9.0, 7), (-9.0, 0), (0.3, 4)])
def test_the_nearest_point_is_replaced(x, expected):
    points = POINTS.copy()
    bracket._put_nearest(points, x)
    assert points[expected] == x
    assert (np.delete(points, expected) == np.delete(POINTS, expected)).all()


def test_points_are_placed_about_the_expected_minimum_or_evenly():
    around, points = bracket._Bracket(1.0, 2.5, 4.0, 0.0, 0.0, 0.0), np.empty(LANES)
    bracket._place_points(around, 3.0, bracket._PARTS, points)
    expected = [3.0 + part * (2.0 if part < 0.0 else 1.0) for part in bracket._PARTS]
    np.testing.assert_allclose(points, expected, rtol=1e-15)
    bracket._place_points(around, math.nan, bracket._PARTS, points)
    np.testing.assert_allclose(points, np.linspace(1.0, 4.0, LANES + 2)[1:-1], rtol=1e-15)


@pytest.mark.parametrize("seed", range(40))
def test_brackets_close_about_the_lowest_point(seed):
    """The new bracket has the nearest known points on either side of the lowest known point."""
    rng = np.random.default_rng(seed)
    points = np.sort(rng.choice(np.arange(1.0, 20.0), 8, replace=False))
    x = float(rng.integers(1, 20))
    at = dict(zip(points, np.round(3.0 * rng.uniform(size=8)), strict=True))
    value = at.get(x, [math.inf, 1.0, 5.0, -1.0][seed % 4])
    before = bracket._Bracket(0.0, x, 20.0, 50.0, value, 60.0)
    best = min(range(8), key=lambda k: at[points[k]])
    low, center, high, at_low, at_center, at_high = bracket._tighten(before, points, np.array([*at.values()]), best)
    known = {0.0: 50.0, 20.0: 60.0, **at}
    if value < math.inf:
        known[x] = value
    expected = points[best] if at[points[best]] <= value else x
    assert (center, at_center) == (expected, known[expected])
    assert low == max(point for point in known if point < center)
    assert high == min(point for point in known if point > center)
    assert (at_low, at_high) == (known[low], known[high])
