"""Searches of cells, on objectives whose minimum is known."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from powerkern._jit import LANES
from powerkern.kernels.robust import qq_start, search
from powerkern.kernels.robust.scratch import ALL
from powerkern.kernels.robust.search import HIGH, LOW, VALUE, LocalMinimum, Stop


def minimum_in_cell(low, high, at, widest=100.0, xtol=1e-6):
    """Minimize ``(x - at)**2`` in a cell from `low` to `high`; return the search result and the points evaluated."""
    points, cell = [], np.zeros(8)
    cell[LOW], cell[HIGH] = low, high

    def objective(standardized, x, options, work):
        points.append(x)
        return (x - at) ** 2

    return search.brents_minimum(objective, None, cell, Stop(xtol, math.inf, widest), None, None), points


def test_a_minimum_inside_a_cell_is_found_without_widening_it():
    found, points = minimum_in_cell(-1.0, 1.0, 0.2)
    assert found.lmbda == pytest.approx(0.2, abs=1e-6)
    assert found.value == (found.lmbda - 0.2) ** 2
    assert found.n_eval == len(points) <= 12
    assert max(map(abs, points)) < 1.0


@pytest.mark.parametrize("at", [-1.9, 1.9, 3.5])
def test_a_cell_is_widened_threefold_while_its_minimum_is_at_an_end(at):
    found, points = minimum_in_cell(-1.0, 1.0, at)
    assert found.lmbda == pytest.approx(at, abs=1e-6)
    assert found.n_eval == len(points)
    assert max(map(abs, points)) < 3.0 if abs(at) < 3.0 else 3.0 < max(map(abs, points)) < 9.0


def test_a_cell_of_the_largest_width_is_not_widened():
    found, points = minimum_in_cell(-1.0, 1.0, 1.9, widest=2.0)
    assert found.lmbda == pytest.approx(1.0, abs=1e-5)
    assert max(map(abs, points)) < 1.0
    assert max(map(abs, minimum_in_cell(-1.0, 1.0, 9.0, widest=2.1)[1])) < 3.0


def test_searches_without_a_minimum_stop_after_500_evaluations():
    """The objective falls without end, is random, or is NaN or minus infinity everywhere."""
    rng, calls = np.random.default_rng(0), []
    for objective in (lambda x: -x, lambda x: rng.normal(), lambda x: math.nan, lambda x: -math.inf):
        calls.clear()

        def counted(standardized, x, options, work, objective=objective):
            calls.append(x)
            return objective(x)

        cell = np.array([-1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
        found = search.brents_minimum(counted, None, cell, Stop(0.0, math.inf, math.inf), None, None)
        assert found.n_eval == len(calls) <= 5 * 100


@pytest.mark.parametrize(
    "cell, expected",
    [
        ((0.0, 1.0, 5.0), True),  # the minimum of the first cell, 0.5, is inside and as low
        ((0.0, 1.0, 4.0), False),  # this cell has a lower value
        ((0.5, 1.0, 6.0), True),
        ((0.0, 0.5, 6.0), True),
        ((0.6, 1.0, 6.0), False),
        ((0.0, 0.4, 6.0), False),
    ],
)
def test_a_cell_is_known_if_an_earlier_search_ended_inside_it(cell, expected):
    cells = np.zeros((3, 8))
    cells[:, search._MINIMISER], cells[:, VALUE] = math.nan, math.inf
    cells[0, search._MINIMISER], cells[0, VALUE] = 0.5, 5.0
    cells[2, [LOW, HIGH, VALUE]] = cell
    assert search._is_known(cells, 2) == expected
    assert not search._is_known(cells, 0)


@pytest.mark.parametrize(
    "n, value, room, calls",
    [
        (ALL, 0.3, 0, ["bracket"]),
        (ALL, -math.inf, 0, ["brent"]),  # no point of the cell was evaluated
        (ALL + 1, 0.3, LANES * (ALL + 1), ["shrink", "brent"]),
        (ALL + 1, 0.3, LANES * (ALL + 1) - 1, ["brent"]),  # no room for lanes
        (ALL + 1, -math.inf, LANES * (ALL + 1), ["brent"]),
    ],
)
def test_lanes_narrow_cells_with_a_known_point(n, value, room, calls, monkeypatch):
    made, n_eval = [], {"bracket": 3, "shrink": 16, "brent": 5}

    def stand_in(name):
        def function(*_):
            made.append(name)
            return n_eval[name] if name == "shrink" else LocalMinimum(0.5, 0.1, n_eval[name])

        return function

    for name, target in (("bracket", "minimize_in_bracket"), ("shrink", "shrink_cell"), ("brent", "brents_minimum")):
        monkeypatch.setattr(qq_start, target, stand_in(name))
    cell = np.zeros(8)
    cell[VALUE] = value
    standardized, work = SimpleNamespace(column=SimpleNamespace(n=n)), SimpleNamespace(lanes=np.empty(room))
    found = qq_start._minimum(None, standardized, cell, Stop(1e-5, math.inf, 4.0), None, work)
    assert made == calls
    assert found == LocalMinimum(0.5, 0.1, sum(n_eval[name] for name in calls))
