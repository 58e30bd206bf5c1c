"""Searches for the lambdas with the best score."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._typing import FloatArray
from powerkern.supervised.objective import Objective

#: Maximum number of trials of a full grid, which is for two or three columns.
_MOST_EVALUATIONS = 100_000
#: Scores that differ by less than this fraction are equal, so that rounding, which depends on the CPU, decides nothing.
_ROUNDING = 1e-13
#: Without bounds, blocks move columns to this lambda or its negative: all values but those near one end of the range
#: then become nearly equal.
_REACH = 20.0
#: The first block has one column in this number; factors by which blocks grow and shrink.
_FIRST_BLOCK = 5
_GROWTH, _DECAY = 1.5, 0.75


class SearchHistory(NamedTuple):
    """All trials of a search in order, one entry each."""

    #: Epoch, from 0; -1 before the first.
    epoch: NDArray[np.int64]
    #: Column of X that was varied; -1 if several were.
    column: NDArray[np.int64]
    #: Its lambda; NaN if columns had different ones.
    lmbda: FloatArray
    #: The score.
    score: FloatArray
    #: Whether the search went on from there.
    accepted: NDArray[np.bool_]


class Found(NamedTuple):
    """Lambdas and their score."""

    lmbdas: FloatArray
    score: float


class Record:
    """The record of a search."""

    def __init__(self) -> None:
        self._trials: list[tuple[int, int, float, float, bool]] = []

    def whole(self, epoch: int, score: float, accepted: bool, lmbda: float = np.nan) -> None:
        """A trial of all columns, with one lambda or with several."""
        self._trials.append((epoch, -1, lmbda, score, accepted))

    def block(self, columns: NDArray[np.intp], lmbdas: FloatArray, score: float, accepted: bool) -> None:
        """A trial of a block of columns."""
        if columns.size == 1:
            self._trials.append((0, int(columns[0]), float(lmbdas[0]), score, accepted))
        else:
            self.whole(0, score, accepted)

    def line(self, epoch: int, j: int, candidates: FloatArray, scores: FloatArray, accepted: int | None) -> None:
        """Trials of column j."""
        for k, (lmbda, score) in enumerate(zip(candidates, scores, strict=True)):
            self._trials.append((epoch, j, lmbda, score, k == accepted))

    def scores(self) -> list[float]:
        """The score of each trial."""
        return [score for *_, score, _ in self._trials]

    def history(self, varied: NDArray[np.intp]) -> SearchHistory:
        """The history, for columns at these positions in X."""
        epoch, column, lmbda, score, accepted = (np.array(part) for part in zip(*self._trials, strict=True))
        return SearchHistory(epoch, np.append(varied, -1)[column], lmbda, score, accepted)


class Space(NamedTuple):
    """The space of lambdas searched."""

    grid: FloatArray
    #: The smallest and the largest lambda of each column, (2, p).
    bounds: FloatArray

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.bounds.shape[1])

    @property
    def ends(self) -> FloatArray:
        """The bounds, infinite ones replaced, (2, p)."""
        return np.clip(self.bounds, -_REACH, _REACH)

    def within(self, lmbdas: FloatArray) -> FloatArray:
        """A vector of lambdas, brought within the bounds."""
        return np.clip(lmbdas, *self.bounds)

    def line(self, j: int, candidates: FloatArray) -> FloatArray:
        """Candidates for column j, brought within its bounds."""
        return np.unique(np.clip(candidates, *self.bounds[:, j]))


class Schedule(NamedTuple):
    """Options of an iterative search; periods are in epochs, None is never."""

    max_epochs: int
    restart_every: int | None
    shuffle_every: int | None
    refine_every: int | None
    patience: int | None
    tol: float


def _due(epoch: int, period: int | None) -> bool:
    return period is not None and epoch > 0 and epoch % period == 0


def iterative(
    objective: Objective, space: Space, start: Found, schedule: Schedule, record: Record, random: Any
) -> Found:
    """Coordinate ascent: column after column, the best lambda with all others fixed."""
    best = current = start
    grid = space.grid
    order = np.arange(space.n_columns)
    offsets = grid - 0.5 * (grid[0] + grid[-1])
    begin, halvings, settled, unimproved = 0, 0, False, 0
    for epoch in range(schedule.max_epochs):
        if _due(epoch, schedule.restart_every):
            lmbdas = space.within(random.choice(grid, space.n_columns))
            current = Found(lmbdas, objective.score(lmbdas))
            record.whole(epoch, current.score, True)
            begin, halvings, settled = epoch, 0, False
        if _due(epoch, schedule.shuffle_every):
            order = random.permutation(order)
        if _due(epoch - begin, schedule.refine_every):
            halvings, settled = halvings + 1, False
        if not settled:
            before = current.score
            for j in map(int, order):
                around = np.append(current.lmbdas[j] + 0.5**halvings * offsets, 1.0) if halvings else grid
                current = _step(objective, current, j, space.line(j, around), epoch, record)
            # a point that no single change improves is final until there is a new point or grid
            settled = current.score - before <= schedule.tol
        unimproved = 0 if current.score > best.score + schedule.tol else unimproved + 1
        best = max(best, current, key=lambda found: found.score)
        if schedule.patience is not None and unimproved >= schedule.patience:
            break
    return best


def _is_better(score: float, than: float) -> bool:
    return bool(score > than + _ROUNDING * abs(than))


def first_best(scores: FloatArray) -> int:
    """Index of the first of the greatest scores up to rounding, or of the first NaN."""
    most = scores.max()
    return int(np.argmax(scores >= most - _ROUNDING * abs(most))) if np.isfinite(most) else int(np.argmax(scores))


def _step(objective: Objective, current: Found, j: int, candidates: FloatArray, epoch: int, record: Record) -> Found:
    """The best of the candidates for column j, if it is better than the current lambda."""
    candidates = candidates[candidates != current.lmbdas[j]]
    if candidates.size == 0:
        return current
    scores = objective.along(current.lmbdas, j, candidates)
    k = first_best(scores)
    better = _is_better(scores[k], current.score)
    record.line(epoch, j, candidates, scores, k if better else None)
    if not better:
        return current
    lmbdas = current.lmbdas.copy()
    lmbdas[j] = candidates[k]
    return Found(lmbdas, float(scores[k]))


def blocks(
    objective: Objective, space: Space, start: Found, max_trials: int, patience: int | None, record: Record, random: Any
) -> Found:
    """Random blocks of columns, moved to the ends of their ranges and, if that is not better, to the opposite ends.

    Blocks are dealt until every column has been in one; they grow after a better move, and shrink after none.
    """
    current, p = start, space.n_columns
    size, dealt, stale = p / _FIRST_BLOCK, np.empty(0, dtype=np.intp), 0
    left = max_trials
    while left > 0 and (patience is None or stale < patience):
        n = max(1, round(size))
        if dealt.size < n:
            dealt = random.permutation(p)
        block, dealt = dealt[:n], dealt[n:]
        sides = random.randint(2, size=block.size)
        better = False
        for towards in (sides, 1 - sides)[:left]:
            lmbdas = current.lmbdas.copy()
            lmbdas[block] = space.ends[towards, block]
            tried = Found(lmbdas, objective.score(lmbdas))
            better, left = _is_better(tried.score, current.score), left - 1
            record.block(block, lmbdas[block], tried.score, better)
            if better:
                current = tried
                break
        size = min(p / 2.0, size * _GROWTH) if better else max(1.0, size * _DECAY)
        stale = 0 if better else stale + 1
    return _left_alone(objective, space, current, record)


def spherical(objective: Objective, space: Space, record: Record) -> Found:
    """One lambda for all columns except those that score better without a transform."""
    points = [(np.full(space.n_columns, lmbda), float(lmbda)) for lmbda in space.grid]
    return _left_alone(objective, space, best_of(objective, points, space, 0, record), record)


def _left_alone(objective: Objective, space: Space, current: Found, record: Record) -> Found:
    """Each column in turn without a transform, where that is better."""
    for j in range(space.n_columns):
        current = _step(objective, current, j, space.line(j, np.ones(1)), 0, record)
    return current


def best_of(
    objective: Objective, points: list[tuple[FloatArray, float]], space: Space, epoch: int, record: Record
) -> Found:
    """The first of the best of these points; each has one lambda for all columns, or NaN."""
    best = None
    for lmbdas, lmbda in points:
        tried = Found(space.within(lmbdas), objective.score(space.within(lmbdas)))
        better = best is None or _is_better(tried.score, best.score)
        record.whole(epoch, tried.score, better, lmbda)
        best = tried if best is None or better else best
    assert best is not None  # there are points
    return best


def diagonal(objective: Objective, space: Space, record: Record) -> Found:
    """Each column by itself, all others at 1; then all together."""
    ones = space.within(np.ones(space.n_columns))
    untransformed = Found(ones, objective.score(ones))
    record.whole(-1, untransformed.score, True, 1.0)
    lines = [space.line(j, space.grid) for j in range(space.n_columns)]
    each = [_step(objective, untransformed, j, line, 0, record).lmbdas[j] for j, line in enumerate(lines)]
    together = np.array(each)
    score = objective.score(together)
    record.whole(0, score, True)
    return Found(together, score)


def full_grid(objective: Objective, space: Space, record: Record) -> tuple[Found, FloatArray, list[FloatArray]]:
    """Every combination; also all scores, one axis a column, and the lambdas along the axes."""
    axes = [space.line(j, space.grid) for j in range(space.n_columns)]
    shape = tuple(axis.size for axis in axes)
    if np.prod(shape, dtype=np.float64) > _MOST_EVALUATIONS:
        raise ValueError(
            f"{space.grid.size} values for each of {len(axes)} columns make {np.prod(shape, dtype=np.float64):.3g} "
            f"combinations, more than {_MOST_EVALUATIONS}; use search='iterative', or a smaller grid"
        )
    scores = np.full(shape, np.nan)
    last = len(axes) - 1
    for index in np.ndindex(*shape[:-1]):
        lmbdas = np.append([axis[i] for axis, i in zip(axes, index, strict=False)], 1.0)
        scores[index] = objective.along(lmbdas, last, axes[last])
        record.line(0, last, axes[last], scores[index], None)
    at = np.unravel_index(first_best(scores.ravel()), shape)
    return Found(np.array([axis[i] for axis, i in zip(axes, at, strict=True)]), float(scores[at])), scores, axes
