"""Compute the scores of vectors of lambdas, by fits of an estimator in every trial."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from powerkern._typing import FloatArray
from powerkern.sklearn._compat import check_method_params
from powerkern.sklearn.supervised.columns import TransformedColumns
from powerkern.sklearn.tables import SelectedColumns

Split = tuple[NDArray[np.intp], NDArray[np.intp]]


class Objective:
    """Base class of objectives, which return the score of a vector of lambdas, (p,)."""

    def score(self, lmbdas: FloatArray) -> float:
        """Return the score of the lambdas, (p,)."""
        return float(self.score_candidates(lmbdas, 0, lmbdas[:1])[0])

    def score_candidates(self, lmbdas: FloatArray, j: int, candidates: FloatArray) -> FloatArray:
        """Return the scores, (k,), of the lambdas with entry `j` replaced by each of k candidates."""
        raise NotImplementedError


class ScoringTask(NamedTuple):
    """An estimator, its data, and its scoring.

    Attributes
    ----------
    estimator : estimator
        The estimator; clones are fitted.
    scorer : callable
        A scorer of scikit-learn.
    table : SelectedColumns
        The data, with the columns to transform.
    y : (n,) ndarray
        The targets.
    splits : sequence of pair of ndarray of int
        Training rows and test rows of each split.
    kept : ndarray of int
        Rows of positive weight, to which estimators are fitted.
    fit_params, score_params : dict
        Further arguments of `fit` of the estimator and of the scorer. Arguments with an entry for each row are split.
    """

    estimator: Any
    scorer: Any
    table: SelectedColumns
    y: Any
    splits: Sequence[Split]
    kept: NDArray[np.intp]
    fit_params: dict[str, Any]
    score_params: dict[str, Any]


class Refitted(Objective):
    """Objective that fits the estimator in every trial.

    Parameters
    ----------
    task : ScoringTask
        The estimator, its data and its scoring.
    columns : TransformedColumns
        The transformed columns.
    varied : (p,) ndarray of int
        Positions of the columns that are not constant.
    n_jobs : int or None
        Number of joblib workers.
    """

    def __init__(self, task: ScoringTask, columns: TransformedColumns, varied: NDArray[np.intp], n_jobs: Any):
        self._task = task
        self._columns = columns
        self._varied = varied
        self._pool = Parallel(n_jobs=n_jobs)
        self._capped = n_jobs not in (None, 1)

    def score_candidates(self, lmbdas: FloatArray, j: int, candidates: FloatArray) -> FloatArray:
        """Return the scores, (k,), of the lambdas with entry `j` replaced by each of k candidates."""
        every = np.arange(lmbdas.size)
        pairs = np.append(every, np.full(candidates.size, j)), np.append(lmbdas, candidates)
        fixed, columns = np.split(self._columns.get(*pairs), [every.size])
        Z = np.zeros((len(self._task.y), self._task.table.chosen.size))  # constant columns are 0
        Z[:, self._varied] = fixed.T
        at = int(self._varied[j])
        # also here: the first worker thread to finish would restore the number of BLAS threads while others still run
        with limit_threads(self._capped):
            scores = self._pool(
                delayed(_scores_of_split)(self._task, Z, at, columns, split, self._capped)
                for split in self._task.splits
            )
        return np.asarray(np.mean(scores, axis=0))


def _scores_of_split(
    task: ScoringTask, Z: FloatArray, j: int, columns: FloatArray, split: Split, capped: bool
) -> list[float]:
    """Return the scores in one split, one for each replacement of column `j`.

    Parameters
    ----------
    task : ScoringTask
        The estimator, its data and its scoring.
    Z : (n, p) ndarray
        The transformed columns.
    j : int
        Position of the column to replace.
    columns : (k, n) ndarray
        The replacements, as rows.
    split : pair of ndarray of int
        Training rows and test rows.
    capped : bool
        Whether to run on one thread.
    """
    (train, test), y = split, task.y
    seen, unseen = task.table.rows(train), task.table.rows(test)
    train_Z, test_Z = Z[train], Z[test]
    fit_params = check_method_params(y, task.fit_params, train)
    score_params = check_method_params(y, task.score_params, test)
    scores = []
    with limit_threads(capped):
        for column in columns:
            train_Z[:, j], test_Z[:, j] = column[train], column[test]
            fitted = clone(task.estimator).fit(seen.with_values(train_Z), y[train], **fit_params)
            scores.append(float(task.scorer(fitted, unseen.with_values(test_Z), y[test], **score_params)))
    return scores


def limit_threads(capped: bool) -> Any:
    """Return a context that, if `capped`, limits BLAS and OpenMP to one thread, for splits that run in parallel."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1 if capped else None)


class OutOfTime(Exception):
    """Raised when the time limit of a search has passed."""


class Watched(Objective):
    """Objective that records the best point, updates a progress bar, and raises `OutOfTime` after the time limit.

    Parameters
    ----------
    objective : Objective
        The objective to call.
    seconds : float or None
        The time limit; None: no limit.
    bar : object or None
        The progress bar.
    """

    def __init__(self, objective: Objective, seconds: float | None, bar: Any) -> None:
        self._objective = objective
        self._end = np.inf if seconds is None else monotonic() + seconds
        self._bar = bar
        self.n_trials = 0
        self.best = np.empty(0), -np.inf

    def score_candidates(self, lmbdas: FloatArray, j: int, candidates: FloatArray) -> FloatArray:
        """Return the scores, (k,), of the lambdas with entry `j` replaced by each of k candidates."""
        if self.n_trials and monotonic() > self._end:
            raise OutOfTime
        scores = self._objective.score_candidates(lmbdas, j, candidates)
        k = int(np.argmax(scores))
        if not scores[k] <= self.best[1]:
            best = lmbdas.copy()
            best[j] = candidates[k]
            self.best = best, float(scores[k])
        self.n_trials += candidates.size
        if self._bar is not None:
            self._bar.update(candidates.size)
        return scores
