"""Searches of cells, on objectives whose minimum is known."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from powerkern._jit import LANES
from powerkern.kernels.location.weights import frequency_weights, new_frequency_work
from powerkern.kernels.robust import qq_start, search
from powerkern.kernels.robust.options import BRENT, GLOBAL
from powerkern.kernels.robust.scratch import ALL, SAMPLE
from powerkern.kernels.robust.search import HIGH, LOW, VALUE, LocalMinimum, Stop


def minimum_in_cell(low, high, at, widest=100.0, xtol=1e-6):
    """Minimize ``(x - at)**2`` by Brent's method in a cell; return the search result and the points evaluated.

    Parameters
    ----------
    low, high : float
        Ends of the cell.
    at : float
        The minimum.
    widest : float
        Largest width to which the cell is widened if its minimum is at an end.
    xtol : float
        Tolerance of the minimum.
    """
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
    """Search objectives that fall without end, are random, or are NaN or minus infinity everywhere."""
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


# --- grids ------------------------------------------------------------------------------------------------


class Work:
    """Scratch that has only the grid and the cells."""

    def __init__(self, n_cells=16):
        self.grid, self.cells = np.full((3, 80), np.nan), np.full((n_cells, 8), np.nan)


def evaluator(f, calls):
    """Return a function that evaluates `f` at the first points of a grid, and adds these points to `calls`."""

    def evaluate(standardized, n, options, work):
        calls.append(work.grid[0, :n].copy())
        work.grid[1, :n] = f(work.grid[0, :n])
        return search.complete_points(work.grid[1, :n], work.grid[2, :n])

    return evaluate


@pytest.mark.parametrize(
    "width, steps", [(0.0, 2), (0.9, 2), (1.0, 2), (1.1, 3), (5.0, 10), (5.2, 11), (31.4, 63), (1e9, 63)]
)
def test_grids_have_steps_of_one_half_where_their_number_allows(width, steps):
    calls, work = [], Work()
    assert search.n_steps(-1.0, -1.0 + width) == steps
    assert search.even_points(evaluator(np.cos, calls), None, -1.0, -1.0 + width, None, work) == steps + 1
    np.testing.assert_allclose(calls[0], np.linspace(-1.0, -1.0 + width, steps + 1), rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(work.grid[1, : steps + 1], np.cos(calls[0]))


def test_undefined_points_are_infinite_and_the_first_of_equal_ones_is_lowest():
    values, floors = np.array([math.nan, 2.0, -1.0, 3.0, -1.0, math.nan]), np.empty(6)
    assert search.complete_points(values, floors) == 2
    assert values.tolist() == [math.inf, 2.0, -1.0, 3.0, -1.0, math.inf]
    np.testing.assert_allclose(floors, values - 0.1)
    assert search.argmin(np.array([3.0, 1.0, 0.5])) == 2
    assert search.argmin(np.array([2.0, 2.0, 2.0])) == 0


def plain_minima(points, values, floors, ends):
    """Return rows (low, high, at_low, at_high, lowest, value, floor) of cells around the local minima of a grid.

    Parameters
    ----------
    points, values : sequence of float
        The grid, ascending, and the objective on it.
    floors : sequence of float
        Lower bound of the objective between each point and the next.
    ends : bool
        Whether the first and the last point may be minima.
    """
    found, last = [], len(points) - 1
    for k in range(last + 1):
        if not ends and k in (0, last):
            continue
        if (k == 0 or values[k - 1] >= values[k]) and (k == last or values[k + 1] > values[k]):
            inner = [(points[j], values[j]) for j in (k - 1, k + 1) if 0 <= j <= last]
            (a, at_a), (b, at_b) = sorted(inner if len(inner) == 2 else [*inner, (points[k], math.inf)])
            found.append([a, b, at_a, at_b, points[k], values[k], min(floors[max(k - 1, 0)], floors[k])])
    return found


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_a_cell_surrounds_each_local_minimum(seed, falling, ends):
    rng = np.random.default_rng(seed)
    n, work = int(rng.integers(3, 15)), Work()
    points = np.sort(rng.uniform(size=n))[:: -1 if falling else 1]
    work.grid[:, :n] = points, rng.integers(0, 4, n), rng.uniform(-1.0, 0.0, n)
    work.grid[1, np.flatnonzero(rng.uniform(size=n) < 0.1)] = math.inf
    n_cells = search.add_minima(n, ends, 2, work)
    expected = plain_minima(*work.grid[:, :n], ends)
    assert n_cells == 2 + len(expected)
    order = [LOW, HIGH, search.AT_LOW, search.AT_HIGH, search.LOWEST, VALUE, search._FLOOR]
    np.testing.assert_array_equal(work.cells[2:n_cells][:, order], np.array(expected).reshape(-1, 7))
    assert np.isnan(work.cells[2:n_cells, search._MINIMISER]).all()


def test_lower_minima_replace_the_highest_if_there_is_no_room():
    work = Work(4)
    work.cells[0, VALUE] = -math.inf
    values = [9.0, 5.0, 9.0, 4.0, 9.0, 6.0, 9.0, 7.0, 9.0, 3.0, 9.0, 4.5, 9.0]
    work.grid[:, : len(values)] = np.arange(len(values)), values, np.array(values) - 1.0
    assert search.add_minima(len(values), False, 1, work) == 4
    assert sorted(work.cells[1:, VALUE]) == [3.0, 4.0, 4.5]
    assert work.cells[0, VALUE] == -math.inf


@pytest.mark.parametrize(
    "values, expected",
    [
        ((9.0, 1.0, 3.0, 2.0), 2),
        ((9.0, 1.0, math.nan, 5.0), 2),
        ((9.0, 4.0, 3.0, 4.0), 1),
        ((0.0, 1.0, 2.0, math.inf), 3),
    ],
)
def test_the_highest_cell_after_the_first(values, expected):
    cells = np.zeros((4, 8))
    cells[:, VALUE] = values
    assert search._highest(cells) == expected


@pytest.mark.parametrize("at", [-3.9, 0.2, 0.7, 5.9])
def test_finer_grids_surround_the_lowest_point(at):
    calls, work = [], Work()
    evaluate = evaluator(lambda x: abs(x - at), calls)
    n = search.even_points(evaluate, None, -4.0, 6.0, None, work)
    scan = search.closer_minima(evaluate, None, n, 3, None, work)
    assert (scan.n_eval, scan.inside, scan.first) == (n + 17, True, 0)
    best = calls[0][np.argmin(abs(calls[0] - at))]
    sign = 1.0 if best > -4.0 else -1.0
    np.testing.assert_allclose(calls[1], np.clip(best + sign * (np.arange(17) - 8.0) / 16.0, -4.0, 6.0), atol=1e-12)
    if -4.0 < best < 6.0:
        assert scan.n_cells == 4
        assert abs(work.cells[3, search.LOWEST] - at) <= 1.0 / 32.0
        assert work.cells[3, LOW] < at < work.cells[3, HIGH]


@pytest.mark.parametrize(
    "f, inside, n_cells",
    [
        (lambda x: (x - 0.3) ** 2, True, 2),
        (lambda x: (x - 7.3) ** 2, True, 2),  # the minimum is beyond the upper end
        (lambda x: (x + 5.2) ** 2, True, 2),
        (lambda x: x, False, 1),
        (lambda x: -x, False, 1),
        (lambda x: np.where(abs(x) < 6.5, -abs(x), 50.0), True, 2),
        (lambda x: np.cos(3.0 * x) - 0.2 * x, None, None),
        (lambda x: np.minimum((x - 6.1) ** 2, 0.5), True, 2),
    ],
)
def test_grids_extend_beyond_an_end_where_the_objective_is_lowest(f, inside, n_cells):
    calls, work = [], Work()
    work.cells[0] = 7.0
    evaluate = evaluator(f, calls)
    n = search.even_points(evaluate, None, -4.0, 6.0, None, work)
    best = int(np.argmin(f(calls[0])))
    scan = search.minima_and_beyond(evaluate, None, n, -4.0, 6.0, None, work)
    assert (work.cells[0] == 7.0).all()
    if 0 < best < n - 1:
        assert len(calls) == 1
        assert (scan.n_eval, scan.inside) == (n, True)
    else:
        distances = np.append([-1.0, -0.5], 2.0 ** np.arange(14) - 1.0)
        sign = 1.0 if best > 0 else -1.0
        np.testing.assert_allclose(calls[1], calls[0][best] + 0.5 * sign * distances, rtol=1e-14)
        assert scan.n_eval == n + 16
        lowest = int(np.argmin(f(calls[1])))
        assert scan.inside == (0 < lowest < 15 or f(calls[1])[lowest] > f(calls[0])[best])
    assert inside in (None, scan.inside)
    assert n_cells in (None, scan.n_cells)
    assert scan.first == int(scan.n_cells > 1)
    for cell in work.cells[1 : scan.n_cells]:
        assert cell[LOW] < cell[search.LOWEST] < cell[HIGH]
        assert cell[VALUE] == f(cell[search.LOWEST])


# --- cells that are searched --------------------------------------------------------------------------------


def cells_of(*rows):
    """Return cells that have not been searched, one row for each (low, high, lowest, value, floor) in `rows`.

    These are the two ends, the lowest known point, the objective there, and a lower bound of the objective in the cell.
    """
    cells = np.full((len(rows), 8), math.nan)
    for cell, (low, high, lowest, value, floor) in zip(cells, rows, strict=True):
        search._write_cell(cell, low, high, lowest, value)
        assert cell[search._FLOOR] == value
        assert cell[search.AT_LOW] == cell[search.AT_HIGH] == math.inf
        cell[search._FLOOR] = floor
    return cells


def searcher(minima, calls):
    """Return a `Search` that finds given minima in 3 evaluations each, and records its calls in the list `calls`.

    `minima` has a pair (lambda, objective) for the lowest known point of each cell.
    """

    def minimum(objective, standardized, cell, stop, options, work):
        calls.append((float(cell[search.LOWEST]), stop))
        return LocalMinimum(*minima[float(cell[search.LOWEST])], 3)

    return search.Search(None, None, None, minimum)


ROWS = ((0.0, 1.0, 0.5, 5.0, 2.0), (2.0, 3.0, 2.5, 4.0, 3.9), (4.0, 5.0, 4.5, 3.0, 1.0), (6.0, 7.0, 6.5, 2.0, 2.0))
MINIMA = {0.5: (0.6, 3.0), 2.5: (2.6, 3.95), 4.5: (4.4, 1.5), 6.5: (6.6, 1.9)}


@pytest.mark.parametrize("bound", [math.inf, 2.5])
@pytest.mark.parametrize("margin", [0.0, 0.5, 1.0])
def test_cells_are_searched_if_they_may_have_a_lower_minimum(bound, margin):
    cells, calls, lowest, expected = cells_of(*ROWS), [], math.inf, []
    for _, _, at, _, floor in ROWS:
        if floor <= min(bound, lowest) + margin:
            expected.append((at, Stop(1e-3, min(bound, lowest) + margin, 4.0)))
            lowest = min(lowest, MINIMA[at][1])
    best = search._descend(searcher(MINIMA, calls), None, cells, Stop(1e-3, bound, 4.0), margin, None, None)
    assert calls == expected
    assert best == LocalMinimum(4.4, 1.5, 3 * len(calls))
    for cell, row in zip(cells, ROWS, strict=True):
        is_searched = row[2] in [at for at, _ in calls]
        assert (cell[search._MINIMISER] == MINIMA[row[2]][0]) == is_searched
        assert cell[VALUE] == (MINIMA[row[2]][1] if is_searched else row[3])


def test_a_minimum_that_is_undefined_is_replaced_by_the_next():
    cells, calls = cells_of((0.0, 1.0, 0.5, 1.0, 0.0), (2.0, 3.0, 2.5, 4.0, 3.0)), []
    found = searcher({0.5: (math.nan, math.inf), 2.5: (2.6, math.inf)}, calls)
    best = search._descend(found, None, cells, Stop(1e-3, math.inf, 4.0), 0.0, None, None)
    assert best == LocalMinimum(2.6, math.inf, 6)


def test_searched_cells_shrink_around_their_minima_and_others_are_dropped():
    cells = cells_of(*ROWS)
    cells[[1, 3], search._MINIMISER], cells[[1, 3], VALUE] = (2.6, 6.6), (3.95, 1.9)
    assert search._shrink_cells(cells) == 2
    expected = cells_of((2.5, 2.7, 2.6, 3.95, 3.93), (6.5, 6.7, 6.6, 1.9, 1.88))
    np.testing.assert_allclose(cells[:2], expected, rtol=1e-14)


@pytest.mark.parametrize("n", [100, 513])
@pytest.mark.parametrize("is_global", [True, False])
def test_a_start_is_the_best_of_all_cells_with_its_rivals(is_global, n, monkeypatch):
    """Compare the start with the lowest of the given minima, and count the other minima that are nearly as low.

    Columns of more than 512 values are searched on a sample first, with a coarse tolerance.
    """
    calls, scanned, work = [], [], Work()
    column, sample = SimpleNamespace(column=SimpleNamespace(n=n)), SimpleNamespace(column=SimpleNamespace(n=256))
    minima = {0.5: (0.6, 1.51), 2.5: (2.6, 1.53), 4.5: (4.4, 1.5), 6.5: (4.6, 1.505), -4.0: (1.25, 1.7)}
    minima |= {at: (at + 0.01, value) for at, value in list(minima.values())}

    def scan(standardized, low, high, options, scratch):
        scanned.append((standardized, low, high))
        scratch.cells[1:5] = cells_of(*((*row[:4], 1.5) for row in ROWS))
        return search.GridScan(5, 40, True, 1)

    monkeypatch.setattr(search, "draw_sample", lambda *_: sample)
    found = searcher(minima, calls)._replace(scan=scan)
    options = SimpleNamespace(search=GLOBAL if is_global else BRENT)
    start = search.find_start(found, column, -4.0, 6.0, ALL, options, work)
    np.testing.assert_array_equal(work.cells[0, [LOW, HIGH, search.LOWEST]], [-4.0, 6.0, -4.0])
    if not is_global:
        assert scanned == []
        assert calls == [(-4.0, Stop(search.CELLWISE_XTOL, math.inf, 0.0))]
        assert (start.lmbda, start.n_eval, start.n_rivals, start.inside, start.value) == (1.25, 3, 0, True, 1.7)
        return
    assert scanned == [(column if n <= ALL else sample, -4.0, 6.0)]
    assert start.inside
    assert start.value == 1.5
    assert start.n_rivals == 1  # 0.6 is 0.01 higher and far away; 2.6 is 0.03 higher, 4.6 is near
    if n <= ALL:
        assert [at for at, _ in calls] == [0.5, 2.5, 4.5, 6.5]
        assert {(stop.xtol, stop.widest) for _, stop in calls} == {(1e-5, 0.0)}
        assert calls[0][1].bound == 2.0  # the lowest value on the grid
        assert (start.lmbda, start.n_eval) == (4.4, 40 + 3 * 4)
    else:
        assert [at for at, _ in calls[:4]] == [0.5, 2.5, 4.5, 6.5]
        assert {(stop.xtol, stop.widest) for _, stop in calls[:4]} == {(2e-3, 0.0)}
        assert {(stop.xtol, stop.widest) for _, stop in calls[4:]} == {(1e-5, 4.0)}
        assert calls[0][1].bound == 2.02
        assert start.lmbda == pytest.approx(4.41)
        assert start.n_eval == 40 + 3 * len(calls)


@pytest.mark.parametrize("n", [513, 700])
@pytest.mark.parametrize("weighted", [False, True])
def test_samples_have_evenly_spaced_ranks_or_weights(weighted, n):
    rng = np.random.default_rng(n)
    weight = rng.integers(1, 4, n).astype(float)
    counts = frequency_weights(weight, new_frequency_work(n)) if weighted else None
    found = [search.sample_position(counts, n, k) for k in range(SAMPLE)]
    repeated = np.repeat(np.arange(n), weight.astype(int)) if weighted else np.arange(n)
    at = [(k + 0.5) / SAMPLE * repeated.size for k in range(SAMPLE)]
    expected = [repeated[math.ceil(rank) - 1 if weighted else math.floor(rank)] for rank in at]
    assert found == expected
