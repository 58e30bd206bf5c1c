"""Searches for lambdas that maximise a cheap function, compared with plain versions of the same rules."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from powerkern.sklearn.supervised.objective import Objective, OutOfTime, Watched
from powerkern.sklearn.supervised.searches import (
    BestLambdas,
    Schedule,
    Space,
    Trial,
    argmax_up_to_rounding,
    score_points,
    search_blocks,
    search_columns_separately,
    search_common_lambda,
    search_full_grid,
    search_iteratively,
)

GRID = np.array([-2.0, -1.0, 0.0, 1.0, 3.0])
FREE = Space(GRID, np.array([[-np.inf] * 3, [np.inf] * 3]))
BOUNDED = Space(GRID, np.array([[-1.5, -0.5, -np.inf], [0.5, np.inf, 2.0]]))


class Hills(Objective):
    """A function of several columns with several local maxima and interactions between columns. It counts its calls."""

    def __init__(self, seed: int, p: int = 3) -> None:
        rng = np.random.default_rng(seed)
        self.waves, self.phase = rng.normal(size=(4, p)), rng.random(4) * 6.0
        self.n_calls = 0

    def value(self, lmbdas) -> float:
        return round(float(np.cos(self.waves @ np.asarray(lmbdas) + self.phase).sum()), 2) - 1.0

    def score_candidates(self, lmbdas, j, candidates):
        self.n_calls += 1
        return np.array([self.value(replaced(lmbdas, j, one)) for one in candidates])


def replaced(lmbdas, j: int, lmbda: float):
    changed = np.array(lmbdas, dtype=float)
    changed[j] = lmbda
    return changed


def clip(space: Space, j: int, lmbda: float) -> float:
    return float(min(max(lmbda, space.bounds[0, j]), space.bounds[1, j]))


def improve(hills: Hills, space: Space, lmbdas, score: float, j: int, values, epoch: int, trials: list):
    """Try all other values of column `j`; move to the best one (the first of equals) if its score is higher.

    Parameters
    ----------
    hills, space : Hills, Space
        The objective and its domain.
    lmbdas : (p,) ndarray
        Current point.
    score : float
        Score of the current point.
    j : int
        The column.
    values : iterable of float
        Candidate lambdas, clipped to the domain.
    epoch : int
        Number of the round, for the record of trials.
    trials : list of tuple
        Receives (epoch, column, lambda, score, accepted) of each trial.

    Returns
    -------
    lmbdas : (p,) ndarray
        The new point.
    score : float
        Its score.
    """
    tried = [value for value in sorted({clip(space, j, value) for value in values}) if value != lmbdas[j]]
    scores = [hills.value(replaced(lmbdas, j, value)) for value in tried]
    best = scores.index(max(scores)) if scores and max(scores) > score else None
    trials.extend((epoch, j, *one, k == best) for k, one in enumerate(zip(tried, scores, strict=True)))
    return (lmbdas, score) if best is None else (replaced(lmbdas, j, tried[best]), scores[best])


def assert_same_trials(trials: list[Trial], expected: list) -> None:
    assert len(trials) == len(expected)
    for trial, other in zip(trials, expected, strict=True):
        assert (trial.epoch, trial.column, bool(trial.accepted)) == (other[0], other[1], bool(other[4]))
        np.testing.assert_array_equal([trial.lmbda, trial.score], other[2:4])


def plain_iterations(hills: Hills, space: Space, start, schedule: Schedule, random):
    """Run coordinate ascent with restarts, shuffles and refinements, as `schedule` says, in a plain loop.

    Parameters
    ----------
    hills, space : Hills, Space
        The objective and its domain of three columns.
    start : (3,) ndarray
        Lambdas at which the ascent starts.
    schedule : Schedule
        Periods of restarts, shuffles and refinements, tolerance and patience.
    random : numpy.random.Generator
        Draws restarts and shuffles.

    Returns
    -------
    best : tuple
        The best lambdas and their score.
    trials : list of tuple
        The trials, as in `improve`. Restarts have column -1 and lambda NaN.
    """
    trials: list = []
    now = best = (start, hills.value(start))
    order, begin, halvings, final, unimproved = np.arange(3), 0, 0, False, 0
    due = lambda epoch, period: bool(period) and epoch > 0 and epoch % period == 0  # noqa: E731
    for epoch in range(schedule.max_epochs):
        if due(epoch, schedule.restart_every):
            point = np.array([clip(space, j, value) for j, value in enumerate(random.choice(space.grid, 3))])
            now = (point, hills.value(point))
            trials.append((epoch, -1, np.nan, now[1], True))
            begin, halvings, final = epoch, 0, False
        if due(epoch, schedule.shuffle_every):
            order = random.permutation(order)
        if due(epoch - begin, schedule.refine_every):
            halvings, final = halvings + 1, False
        if not final:
            before = now[1]
            for j in order:
                values = list(space.grid)
                if halvings:
                    middle = (space.grid[0] + space.grid[-1]) / 2.0
                    values = [1.0, *(now[0][j] + (value - middle) / 2.0**halvings for value in space.grid)]
                now = improve(hills, space, *now, int(j), values, epoch, trials)
            final = now[1] - before <= schedule.tol
        unimproved = 0 if now[1] > best[1] + schedule.tol else unimproved + 1
        best = now if now[1] > best[1] else best
        if unimproved == schedule.patience:
            break
    return best, trials


@pytest.mark.parametrize("space", [FREE, BOUNDED], ids=["free", "bounded"])
@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(4, None, None, None, None, 0.0),
        Schedule(0, None, None, None, None, 0.0),
        Schedule(9, 2, None, None, None, 0.0),
        Schedule(9, 1, 1, None, None, 0.0),
        Schedule(9, 4, 3, 1, None, 0.0),
        Schedule(9, None, None, 2, None, 0.0),
        Schedule(9, 3, None, 2, 2, 0.0),
        Schedule(9, 1, None, None, 1, 0.3),
        Schedule(9, None, None, 1, 3, 0.05),
    ],
)
def test_iterations_are_those_of_plain_coordinate_ascent(space, schedule):
    for seed in range(4):
        hills, trials = Hills(seed), []
        start = np.array([0.5, 1.0, 1.0])
        begin = BestLambdas(start, hills.value(start))
        found = search_iteratively(hills, space, begin, schedule, trials, np.random.RandomState(seed))
        (lmbdas, score), expected = plain_iterations(hills, space, start, schedule, np.random.RandomState(seed))
        assert_same_trials(trials, expected)
        assert found.lmbdas.tolist() == lmbdas.tolist()
        assert found.score == score
        assert start.tolist() == [0.5, 1.0, 1.0]  # is not overwritten


@pytest.mark.parametrize("space", [FREE, BOUNDED], ids=["free", "bounded"])
def test_one_lambda_for_all_columns_and_then_each_column_untransformed(space):
    for seed in range(6):
        hills, trials = Hills(seed), []
        found = search_common_lambda(hills, space, trials)
        expected, best = [], None
        for value in GRID:
            point = np.array([clip(space, j, value) for j in range(3)])
            better = best is None or hills.value(point) > best[1]
            best = (point, hills.value(point)) if better else best
            expected.append((0, -1, value, hills.value(point), better))
        for j in range(3):
            best = improve(hills, space, *best, j, [1.0], 0, expected)
        assert_same_trials(trials, expected)
        assert (found.lmbdas.tolist(), found.score) == (best[0].tolist(), best[1])


@pytest.mark.parametrize("space", [FREE, BOUNDED], ids=["free", "bounded"])
def test_separate_columns_are_compared_with_no_transform_and_combined(space):
    for seed in range(6):
        hills, trials = Hills(seed), []
        found = search_columns_separately(hills, space, trials)
        ones = np.array([clip(space, j, 1.0) for j in range(3)])
        expected: list = [(-1, -1, 1.0, hills.value(ones), True)]
        each = [improve(hills, space, ones, hills.value(ones), j, GRID, 0, expected)[0][j] for j in range(3)]
        expected.append((0, -1, np.nan, hills.value(each), True))
        assert_same_trials(trials, expected)
        assert (found.lmbdas.tolist(), found.score) == (each, hills.value(each))


@pytest.mark.parametrize("space", [FREE, BOUNDED], ids=["free", "bounded"])
def test_the_full_grid_holds_every_combination(space):
    for seed in range(3):
        hills, trials = Hills(seed), []
        found, scores, axes = search_full_grid(hills, space, trials)
        lines = [sorted({clip(space, j, value) for value in GRID}) for j in range(3)]
        assert [axis.tolist() for axis in axes] == lines
        values = np.array([hills.value(point) for point in itertools.product(*lines)])
        np.testing.assert_array_equal(scores.ravel(), values)
        assert scores.shape == tuple(map(len, lines))
        best = list(itertools.product(*lines))[int(np.argmax(values))]
        assert (found.lmbdas.tolist(), found.score) == (list(best), values.max())
        points = zip(itertools.product(*lines), values, strict=True)
        assert_same_trials(trials, [(0, 2, point[2], value, False) for point, value in points])


def test_a_grid_of_too_many_combinations_is_refused(monkeypatch):
    monkeypatch.setattr("powerkern.sklearn.supervised.searches._MOST_EVALUATIONS", 125)
    assert search_full_grid(Hills(0), FREE, [])[1].size == 125
    monkeypatch.setattr("powerkern.sklearn.supervised.searches._MOST_EVALUATIONS", 124)
    with pytest.raises(ValueError, match="5 values for each of 3 columns make 125 combinations, more than 124"):
        search_full_grid(Hills(0), FREE, [])


@pytest.mark.parametrize(("p", "max_trials", "patience"), [(12, 40, None), (12, 41, 3), (3, 9, None), (1, 5, None)])
def test_blocks_are_dealt_grow_and_shrink(p, max_trials, patience):
    space = Space(GRID, np.vstack([np.full(p, -np.inf), np.append(np.full(p - 1, np.inf), 2.0)]))
    for seed in range(5):
        hills, trials = Hills(seed, p), []
        start = BestLambdas(np.ones(p), hills.value(np.ones(p)))
        random = np.random.RandomState(seed)
        found = search_blocks(hills, space, start, max_trials, patience, trials, random)
        random, expected, now = np.random.RandomState(seed), [], (np.ones(p), start.score)
        size, rest, stale, left = p / 5, [], 0, max_trials
        while left > 0 and (patience is None or stale < patience):
            n = max(1, round(size))
            rest = rest if len(rest) >= n else list(random.permutation(p))
            block, rest = rest[:n], rest[n:]
            high = random.randint(2, size=n).astype(bool)
            better = False
            for ends in (high, ~high):
                if better or left == 0:
                    break
                point = now[0].copy()
                for j, is_high in zip(block, ends, strict=True):
                    point[j] = (2.0 if j == p - 1 else 20.0) if is_high else -20.0
                left -= 1
                better = hills.value(point) > now[1]
                one = (block[0], point[block[0]]) if n == 1 else (-1, np.nan)
                expected.append((0, *one, hills.value(point), better))
                now = (point, hills.value(point)) if better else now
            size = min(p / 2, 1.5 * size) if better else max(1.0, 0.75 * size)
            stale = 0 if better else stale + 1
        for j in range(p):
            now = improve(hills, space, *now, j, [1.0], 0, expected)
        assert_same_trials(trials, expected)
        assert (found.lmbdas.tolist(), found.score) == (now[0].tolist(), now[1])


def test_the_first_of_equal_points_is_the_best():
    class Level(Objective):
        def score_candidates(self, lmbdas, j, candidates):
            return np.full(len(candidates), 0.5) * (1.0 + 1e-15 * np.arange(len(candidates)))

    trials: list[Trial] = []
    points = [(np.array([2.0, 5.0, 1.0]), np.nan), (np.array([0.0, 1.0, 1.0]), np.nan)]
    best = score_points(Level(), points, BOUNDED, -1, trials)
    assert best.lmbdas.tolist() == [0.5, 5.0, 1.0]  # within the bounds
    assert [(trial.epoch, trial.column, bool(trial.accepted)) for trial in trials] == [(-1, -1, True), (-1, -1, False)]


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ([0.1, 0.7, 0.7 * (1.0 + 4e-14), 0.2], 1),  # rounding
        ([0.1, 0.7, 0.7 * (1.0 + 4e-13), 0.2], 2),
        ([-3.0, -2.0 * (1.0 + 4e-14), -2.0], 1),
        ([-3.0, -2.0 * (1.0 + 4e-13), -2.0], 2),
        ([0.1, np.nan, 0.9], 1),
        ([0.1, 0.3, np.inf], 2),
        ([-np.inf, -np.inf], 0),
    ],
)
def test_scores_that_differ_by_rounding_are_equal(scores, best):
    assert argmax_up_to_rounding(np.array(scores)) == best


def test_infinite_bounds_end_at_20():
    assert BOUNDED.ends.tolist() == [[-1.5, -0.5, -20.0], [0.5, 20.0, 2.0]]
    assert BOUNDED.n_columns == 3
    assert BOUNDED.candidates(0, np.array([3.0, -7.0, 0.25, 4.0])).tolist() == [-1.5, 0.25, 0.5]
    assert BOUNDED.clip(np.array([-9.0, -9.0, 9.0])).tolist() == [-1.5, -0.5, 2.0]


# --- the record of a search --------------------------------------------------------------------------


class Bar:
    n = 0

    def update(self, n):
        self.n += n


def test_the_best_point_of_all_trials_is_recorded():
    hills, bar = Hills(3), Bar()
    watched = Watched(hills, None, bar)
    lmbdas = np.array([0.0, 1.0, 2.0])
    scores = watched.score_candidates(lmbdas, 1, GRID)
    k = int(np.argmax(scores))
    assert scores.tolist() == [hills.value(replaced(lmbdas, 1, value)) for value in GRID]
    assert watched.best[0].tolist() == replaced(lmbdas, 1, GRID[k]).tolist()
    assert watched.best[1] == scores[k]
    assert lmbdas.tolist() == [0.0, 1.0, 2.0]
    worse = [value for value in GRID if hills.value(replaced(lmbdas, 1, value)) < scores[k]]
    assert watched.score(replaced(lmbdas, 1, worse[0])) == hills.value(replaced(lmbdas, 1, worse[0]))
    assert watched.best[1] == scores[k]
    assert watched.n_trials == bar.n == 6


def test_the_time_of_a_search_ends_after_its_first_trial(monkeypatch):
    now = [10.0]
    monkeypatch.setattr("powerkern.sklearn.supervised.objective.monotonic", lambda: now[0])
    watched = Watched(Hills(0), 5.0, None)
    now[0] = 99.0
    watched.score(np.ones(3))  # the first trial always runs
    now[0] = 15.0
    watched.score(np.ones(3))
    now[0] = 15.1
    with pytest.raises(OutOfTime):
        watched.score(np.ones(3))
    assert watched.n_trials == 2
    unlimited = Watched(Hills(0), None, None)
    now[0] = 1e9
    assert [unlimited.score(np.ones(3)) for _ in range(2)] == [Hills(0).value(np.ones(3))] * 2


def test_a_score_that_is_nan_at_first_is_replaced_by_any_number():
    class Falling(Objective):
        n = 0

        def score_candidates(self, lmbdas, j, candidates):
            self.n += 1
            return np.full(len(candidates), np.nan if self.n == 1 else -5.0)

    watched = Watched(Falling(), None, None)
    watched.score(np.ones(2))
    assert np.isnan(watched.best[1])
    watched.score(np.zeros(2))
    assert watched.best[1] == -5.0
    assert watched.best[0].tolist() == [0.0, 0.0]
