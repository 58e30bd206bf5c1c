"""Search for the lambdas that maximize a score."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._typing import FloatArray
from powerkern.sklearn.supervised.objective import Objective

#: Maximum number of trials of a full grid, which is for two or three columns.
_MOST_EVALUATIONS = 100_000
#: Scores that differ by less than this fraction count as equal, so that results do not depend on rounding, which varies
#: with the CPU.
_ROUNDING = 1e-13
#: Without bounds, blocks move columns to this lambda or its negative. All values except those near one end of the range
#: then become nearly equal.
_REACH = 20.0
#: Number of columns divided by the size of the first block, and the factors by which blocks grow and shrink.
_FIRST_BLOCK = 5
_GROWTH, _DECAY = 1.5, 0.75


class Trial(NamedTuple):
    """A trial, with the fields of `SearchHistory`, except that `column` is a position among the columns that vary."""

    epoch: int
    column: int
    lmbda: float
    score: float
    accepted: bool


class SearchHistory(NamedTuple):
    """All trials of a search in order, in arrays with an entry for each trial."""

    #: Epoch, from 0; -1 before the first.
    epoch: NDArray[np.int64]
    #: Column of X that was varied; -1 if several were.
    column: NDArray[np.int64]
    #: Lambda of this column, or of all columns; NaN if they had different ones.
    lmbda: FloatArray
    #: The score.
    score: FloatArray
    #: Whether the search continued from this trial.
    accepted: NDArray[np.bool_]


class BestLambdas(NamedTuple):
    """The best lambdas and their score."""

    lmbdas: FloatArray
    score: float


class Space(NamedTuple):
    """Grid and bounds of the lambdas to search."""

    grid: FloatArray
    #: The smallest and the largest lambda of each column, (2, p).
    bounds: FloatArray

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.bounds.shape[1])

    @property
    def ends(self) -> FloatArray:
        """The bounds, (2, p), clipped to the interval from -_REACH to _REACH."""
        return np.clip(self.bounds, -_REACH, _REACH)

    def clip(self, lmbdas: FloatArray) -> FloatArray:
        """Clip a vector of lambdas to the bounds."""
        return np.clip(lmbdas, *self.bounds)

    def candidates(self, j: int, candidates: FloatArray) -> FloatArray:
        """Return the distinct values of the candidates for column `j`, clipped to the bounds of the column."""
        return np.unique(np.clip(candidates, *self.bounds[:, j]))


class Schedule(NamedTuple):
    """Options of an iterative search. Periods are in epochs; None stands for never."""

    max_epochs: int
    restart_every: int | None
    shuffle_every: int | None
    refine_every: int | None
    patience: int | None
    tol: float


def _is_due(epoch: int, period: int | None) -> bool:
    """Return whether an epoch is a positive multiple of the period; False if the period is None."""
    return period is not None and epoch > 0 and epoch % period == 0


def search_iteratively(
    objective: Objective, space: Space, start: BestLambdas, schedule: Schedule, trials: list[Trial], random: Any
) -> BestLambdas:
    """Search by coordinate ascent: set each column in turn to its best lambda with all others fixed.

    Parameters
    ----------
    objective : Objective
        The function to maximize.
    space : Space
        Grid and bounds.
    start : BestLambdas
        Point to start from.
    schedule : Schedule
        Options of the search.
    trials : list of Trial
        List to which trials are appended.
    random : RandomState
        Generator that draws restarts and shuffles.
    """
    best = current = start
    grid = space.grid
    order = np.arange(space.n_columns)
    offsets = grid - 0.5 * (grid[0] + grid[-1])
    begin, halvings, settled, unimproved = 0, 0, False, 0
    for epoch in range(schedule.max_epochs):
        if _is_due(epoch, schedule.restart_every):
            lmbdas = space.clip(random.choice(grid, space.n_columns))
            current = BestLambdas(lmbdas, objective.score(lmbdas))
            trials.append(Trial(epoch, -1, np.nan, current.score, True))
            begin, halvings, settled = epoch, 0, False
        if _is_due(epoch, schedule.shuffle_every):
            order = random.permutation(order)
        if _is_due(epoch - begin, schedule.refine_every):
            halvings, settled = halvings + 1, False
        if not settled:
            before = current.score
            for j in map(int, order):
                around = np.append(current.lmbdas[j] + 0.5**halvings * offsets, 1.0) if halvings else grid
                current = _improve_column(objective, current, j, space.candidates(j, around), epoch, trials)
            # a point that no single change improves is final until there is a new point or grid
            settled = current.score - before <= schedule.tol
        unimproved = 0 if current.score > best.score + schedule.tol else unimproved + 1
        best = max(best, current, key=lambda found: found.score)
        if schedule.patience is not None and unimproved >= schedule.patience:
            break
    return best


def _is_better(score: float, than: float) -> bool:
    """Return whether `score` exceeds the score `than` by more than rounding errors."""
    return bool(score > than + _ROUNDING * abs(than))


def argmax_up_to_rounding(scores: FloatArray) -> int:
    """Return the index of the first score that equals the largest one up to rounding, or of the first NaN."""
    most = scores.max()
    return int(np.argmax(scores >= most - _ROUNDING * abs(most))) if np.isfinite(most) else int(np.argmax(scores))


def _improve_column(
    objective: Objective, current: BestLambdas, j: int, candidates: FloatArray, epoch: int, trials: list[Trial]
) -> BestLambdas:
    """Set the lambda of column `j` to the best candidate, if its score is better than the current one.

    Parameters
    ----------
    objective : Objective
        The function to maximize.
    current : BestLambdas
        The current point.
    j : int
        Position of the column.
    candidates : (k,) ndarray
        Lambdas to try.
    epoch : int
        Epoch to record.
    trials : list of Trial
        List to which trials are appended.
    """
    candidates = candidates[candidates != current.lmbdas[j]]
    if candidates.size == 0:
        return current
    scores = objective.score_candidates(current.lmbdas, j, candidates)
    k = argmax_up_to_rounding(scores)
    better = _is_better(scores[k], current.score)
    accepted = np.arange(candidates.size) == (k if better else -1)
    trials.extend(Trial(epoch, j, *one) for one in zip(candidates, scores, accepted, strict=True))
    if not better:
        return current
    lmbdas = current.lmbdas.copy()
    lmbdas[j] = candidates[k]
    return BestLambdas(lmbdas, float(scores[k]))


def search_blocks(
    objective: Objective,
    space: Space,
    start: BestLambdas,
    max_trials: int,
    patience: int | None,
    trials: list[Trial],
    random: Any,
) -> BestLambdas:
    """Set the lambdas of random blocks of columns to one of their bounds, and keep changes that improve the score.

    The lower or the upper bound is drawn at random for each column of a block. If these lambdas do not improve the
    score, the opposite bounds are tried. Bounds are clipped as in `Space.ends`. Columns are drawn without replacement
    until fewer are left than a block needs. Blocks become larger after an improvement, and smaller otherwise.
    Finally, the lambda of each column in turn is set to 1 if this improves the score.

    Parameters
    ----------
    objective : Objective
        The function to maximize.
    space : Space
        Grid and bounds.
    start : BestLambdas
        Point to start from.
    max_trials : int
        Largest number of trials with blocks.
    patience : int or None
        Stop after this many blocks in succession without an improvement; None: use all trials.
    trials : list of Trial
        List to which trials are appended.
    random : RandomState
        Generator that draws blocks and bounds.
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
            tried = BestLambdas(lmbdas, objective.score(lmbdas))
            better, left = _is_better(tried.score, current.score), left - 1
            one = (int(block[0]), float(lmbdas[block[0]])) if block.size == 1 else (-1, np.nan)
            trials.append(Trial(0, *one, tried.score, better))
            if better:
                current = tried
                break
        size = min(p / 2.0, size * _GROWTH) if better else max(1.0, size * _DECAY)
        stale = 0 if better else stale + 1
    return _try_untransformed(objective, space, current, trials)


def search_common_lambda(objective: Objective, space: Space, trials: list[Trial]) -> BestLambdas:
    """Find the best common lambda of all columns, then set single columns to lambda = 1 if this improves the score.

    All trials are added to `trials`.
    """
    points = [(np.full(space.n_columns, lmbda), float(lmbda)) for lmbda in space.grid]
    return _try_untransformed(objective, space, score_points(objective, points, space, 0, trials), trials)


def _try_untransformed(objective: Objective, space: Space, current: BestLambdas, trials: list[Trial]) -> BestLambdas:
    """Set the lambda of each column in turn to 1 (no transform), and keep the change if the score improves.

    Parameters
    ----------
    objective : Objective
        The function to maximize.
    space : Space
        Grid and bounds.
    current : BestLambdas
        The current point.
    trials : list of Trial
        List to which trials are appended.
    """
    for j in range(space.n_columns):
        current = _improve_column(objective, current, j, space.candidates(j, np.ones(1)), 0, trials)
    return current


def score_points(
    objective: Objective, points: list[tuple[FloatArray, float]], space: Space, epoch: int, trials: list[Trial]
) -> BestLambdas:
    """Score several points; return the best one, or the first of several equally good ones.

    Parameters
    ----------
    objective : Objective
        The function to maximize.
    points : list of (ndarray, float)
        Vectors of lambdas. The number is the lambda that all columns have, or NaN.
    space : Space
        Grid and bounds.
    epoch : int
        Epoch to record.
    trials : list of Trial
        List to which trials are appended.
    """
    best = None
    for lmbdas, lmbda in points:
        tried = BestLambdas(space.clip(lmbdas), objective.score(space.clip(lmbdas)))
        better = best is None or _is_better(tried.score, best.score)
        trials.append(Trial(epoch, -1, lmbda, tried.score, better))
        best = tried if best is None or better else best
    assert best is not None  # there are points
    return best


def search_columns_separately(objective: Objective, space: Space, trials: list[Trial]) -> BestLambdas:
    """Find the best lambda of each column with all other lambdas at 1, and score these lambdas together.

    All trials are added to `trials`.
    """
    ones = space.clip(np.ones(space.n_columns))
    untransformed = BestLambdas(ones, objective.score(ones))
    trials.append(Trial(-1, -1, 1.0, untransformed.score, True))
    lines = [space.candidates(j, space.grid) for j in range(space.n_columns)]
    each = [_improve_column(objective, untransformed, j, line, 0, trials).lmbdas[j] for j, line in enumerate(lines)]
    together = np.array(each)
    score = objective.score(together)
    trials.append(Trial(0, -1, np.nan, score, True))
    return BestLambdas(together, score)


def search_full_grid(
    objective: Objective, space: Space, trials: list[Trial]
) -> tuple[BestLambdas, FloatArray, list[FloatArray]]:
    """Score every combination of lambdas, and add all trials to `trials`.

    Return the best lambdas, all scores (an array with one axis per column), and the lambdas along each axis.
    """
    axes = [space.candidates(j, space.grid) for j in range(space.n_columns)]
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
        scores[index] = objective.score_candidates(lmbdas, last, axes[last])
        trials.extend(Trial(0, last, *one, False) for one in zip(axes[last], scores[index], strict=True))
    at = np.unravel_index(argmax_up_to_rounding(scores.ravel()), shape)
    return BestLambdas(np.array([axis[i] for axis, i in zip(axes, at, strict=True)]), float(scores[at])), scores, axes
