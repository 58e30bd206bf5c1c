"""Power transforms tuned for a classifier or regressor, as a scikit-learn transformer.

Each column is scaled, transformed with its own lambda and standardised; the lambdas are those with which an estimator
scores best, found by a search over grids [1]_.

References
----------
.. [1] L. Blum, M. Elgendi, C. Menon, "Impact of Box-Cox transformation on machine-learning algorithms", Frontiers in
   Artificial Intelligence 5, 2022, 877569.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern import fitting
from powerkern._typing import FloatArray
from powerkern._validate import as_choice, check_n_features

try:
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone, is_classifier
    from sklearn.metrics import check_scoring
    from sklearn.model_selection import check_cv
    from sklearn.naive_bayes import GaussianNB
    from sklearn.utils import check_random_state, get_tags
    from sklearn.utils.parallel import Parallel, delayed
    from sklearn.utils.validation import check_array, check_is_fitted

    from powerkern._sklearn_input import FLOATS, read, refuse_values
    from powerkern._sklearn_private import HasMethods, Interval, StrOptions, fit_context
except ModuleNotFoundError as error:
    raise ImportError("powerkern.supervised needs scikit-learn: pip install 'powerkern[sklearn]'") from error

__all__ = ["SearchHistory", "SupervisedPowerTransformer"]

Split = tuple[NDArray[np.intp], NDArray[np.intp]]

#: The published grid.
_GRID = np.linspace(-5.0, 5.0, 11)
#: Most evaluations of a full grid: it is for two or three columns.
_MOST_EVALUATIONS = 100_000
#: Bytes of transformed columns, and of their moments by class, that are kept for the next time.
_CACHE = 2**28
#: Scaled values of new data are raised to this (training data are in [1, 2]): Box-Cox needs positive ones.
_LOWEST = 0.01


class SearchHistory(NamedTuple):
    """All trials of a search in order, one entry each."""

    #: Epoch, from 0; -1 for what was scored before the first.
    epoch: NDArray[np.int64]
    #: Column that was varied; -1 where all were.
    column: NDArray[np.int64]
    #: Its lambda; NaN where columns had different ones.
    lmbda: FloatArray
    #: The score.
    score: FloatArray
    #: Whether the search went on from there.
    accepted: NDArray[np.bool_]


# --- transformed columns and what they score ------------------------------------------------------------


class _Cache:
    """Arrays of several kinds by column and lambda, kept as long as all of them take no more than `_CACHE` bytes."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int, float], FloatArray] = {}
        self._free = _CACHE

    def get(self, kind: str, j: int, lmbdas: FloatArray, compute: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """The arrays of column j, one for each lambda; `compute` makes those that are not here."""
        wanted = lmbdas.tolist()
        missing = [lmbda for lmbda in wanted if (kind, j, lmbda) not in self._kept]
        fresh = dict(zip(missing, compute(np.array(missing)), strict=True)) if missing else {}
        found = np.array([fresh[lmbda] if lmbda in fresh else self._kept[kind, j, lmbda] for lmbda in wanted])
        for lmbda, array in fresh.items():
            if array.nbytes <= self._free:
                self._kept[kind, j, lmbda] = array.copy()  # a view would keep all that was computed with it
                self._free -= array.nbytes
        return found


class _Columns:
    """Standardised transformed columns, kept once computed."""

    def __init__(self, scaled: FloatArray, family: str) -> None:
        self._scaled = scaled
        self._family = family
        self.cache = _Cache()

    def get(self, j: int, lmbdas: FloatArray) -> FloatArray:
        """Column j with each lambda, as rows."""
        return self.cache.get("values", j, lmbdas, lambda missing: self._transformed(j, missing))

    def each(self, lmbdas: FloatArray, which: Iterable[int]) -> list[FloatArray]:
        """These columns, each with its own lambda."""
        return [self.get(j, lmbdas[j : j + 1])[0] for j in which]

    def _transformed(self, j: int, lmbdas: FloatArray) -> FloatArray:
        same = np.tile(self._scaled[:, j], (lmbdas.size, 1)).T
        fitted = fitting.fit(same, self._family, lmbda=lmbdas, n_threads=1)
        return np.asarray(fitted.transform(same, n_threads=1).T)


class _Objective(Protocol):
    """What a vector of lambdas scores."""

    def score(self, lmbdas: FloatArray) -> float:
        """The score of one vector."""

    def along(self, lmbdas: FloatArray, j: int, candidates: FloatArray) -> FloatArray:
        """The scores with lambda j replaced by each candidate."""


class _Refitted:
    """The estimator is fitted anew for every trial."""

    def __init__(self, estimator: Any, scorer: Any, y: Any, splits: Sequence[Split], columns: _Columns, n_jobs: Any):
        self._estimator = estimator
        self._scorer = scorer
        self._y = y
        self._splits = splits
        self._columns = columns
        self._pool = Parallel(n_jobs=n_jobs)
        self._capped = n_jobs not in (None, 1)

    def score(self, lmbdas: FloatArray) -> float:
        return float(self.along(lmbdas, 0, lmbdas[:1])[0])

    def along(self, lmbdas: FloatArray, j: int, candidates: FloatArray) -> FloatArray:
        Z = np.column_stack(self._columns.each(lmbdas, range(lmbdas.size)))
        columns = self._columns.get(j, candidates)
        scores = self._pool(
            delayed(_scores_of_split)(self._estimator, self._scorer, Z, self._y, j, columns, split, self._capped)
            for split in self._splits
        )
        return np.asarray(np.mean(scores, axis=0))


def _scores_of_split(
    estimator: Any, scorer: Any, Z: FloatArray, y: Any, j: int, columns: FloatArray, split: Split, capped: bool
) -> list[float]:
    """Scores of one split, with column j replaced in turn; `capped`: on one thread."""
    train, test = split
    train_Z, test_Z = Z[train], Z[test]
    scores = []
    with _threads_capped(capped):
        for column in columns:
            train_Z[:, j], test_Z[:, j] = column[train], column[test]
            fitted = clone(estimator).fit(train_Z, y[train])
            scores.append(float(scorer(fitted, test_Z, y[test])))
    return scores


def _threads_capped(capped: bool) -> Any:
    """One thread for BLAS and OpenMP, where folds already run side by side."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1 if capped else None)


class _NaiveBayes:
    """Accuracy of Gaussian naive Bayes, with the predictions of `GaussianNB` and without fitting it.

    Its log-likelihood is a sum over columns, in which a trial replaces one term. What couples the columns is the
    smoothing, `var_smoothing` times the largest variance of all of them: the other terms are summed anew where a
    trial changes it. The order of summation is not that of `GaussianNB`, so where rounding could decide between two
    classes the classifier itself is fitted.
    """

    def __init__(self, estimator: GaussianNB, y: Any, splits: Sequence[Split], columns: _Columns):
        self._columns = columns
        self._estimator = estimator
        self._y = y
        self._parts = [_Part(estimator, y, split) for split in splits]

    def score(self, lmbdas: FloatArray) -> float:
        return float(self.along(lmbdas, 0, lmbdas[:1])[0])

    def along(self, lmbdas: FloatArray, j: int, candidates: FloatArray) -> FloatArray:
        others = [i for i in range(lmbdas.size) if i != j]
        fixed = np.array(self._columns.each(lmbdas, others))
        trials = self._columns.get(j, candidates)
        of_fixed = np.array([self._moments_of(i, lmbdas[i : i + 1])[0] for i in others])
        of_trials = self._moments_of(j, candidates)
        accuracies = []
        for k, part in enumerate(self._parts):
            right, unsure = part.predictions(fixed, of_fixed[:, k], trials, of_trials[:, k])
            accuracies.append(right.mean(axis=1))
            for trial in np.flatnonzero(unsure):
                accuracies[k][trial] = self._anew(part, np.insert(fixed, j, trials[trial], axis=0).T)
        return np.asarray(np.mean(accuracies, axis=0))

    def _moments_of(self, j: int, lmbdas: FloatArray) -> FloatArray:
        """See `_Part.moments`: (lambdas, splits, 1 + 2 classes)."""

        def compute(missing: FloatArray) -> FloatArray:
            columns = self._columns.get(j, missing)
            return np.stack([part.moments(columns) for part in self._parts], axis=1)

        return self._columns.cache.get("moments", j, lmbdas, compute)

    def _anew(self, part: _Part, Z: FloatArray) -> float:
        train, test = part.split
        Z = np.ascontiguousarray(Z)
        return float(clone(self._estimator).fit(Z[train], self._y[train]).score(Z[test], self._y[test]))


class _Part:
    """One split of `_NaiveBayes`."""

    def __init__(self, estimator: GaussianNB, y: Any, split: Split) -> None:
        classes, codes = np.unique(y, return_inverse=True)
        self.split = split
        train, test = split
        self._smoothing = estimator.var_smoothing
        self._members = [train[codes[train] == c] for c in range(classes.size)]
        self._truth = codes[test]
        counts = np.array([rows.size for rows in self._members])
        priors = counts / counts.sum() if estimator.priors is None else np.asarray(estimator.priors, dtype=np.float64)
        with np.errstate(divide="ignore"):
            self._log_priors = np.log(priors)

    def moments(self, columns: FloatArray) -> FloatArray:
        """Of each row: its variance over the training data, then its means and then its variances in each class."""
        whole = _variance(columns[:, self.split[0]])[:, np.newaxis]
        seen = [columns[:, rows] for rows in self._members]
        means = [_mean(part) if part.size else np.zeros(len(columns)) for part in seen]
        variances = [_variance(part) if part.size else np.ones(len(columns)) for part in seen]  # unseen: prior 0
        return np.hstack([whole, np.column_stack(means), np.column_stack(variances)])

    def predictions(
        self, fixed: FloatArray, of_fixed: FloatArray, trials: FloatArray, of_trials: FloatArray
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which of the tested rows each trial predicts rightly, and which trials leave that to rounding."""
        test = self.split[1]
        fixed, trials = fixed[:, test], trials[:, test]
        smoothing = self._smoothing * np.maximum(of_fixed[:, 0].max(), of_trials[:, 0])
        right = np.empty(trials.shape, dtype=np.bool_)
        unsure = np.empty(len(trials), dtype=np.bool_)
        for epsilon in np.unique(smoothing):
            at = smoothing == epsilon
            sums, sizes = self._sums(fixed, of_fixed, epsilon)
            terms, size = self._terms(trials[at], of_trials[at], epsilon)
            bound = 4.0 * (len(fixed) + 8) * np.finfo(np.float64).eps
            right[at], near = _beats_all(terms + sums, self._truth, sizes.sum() + size, bound)
            unsure[at] = near
        return right, unsure

    def _sums(self, columns: FloatArray, moments: FloatArray, epsilon: float) -> tuple[FloatArray, FloatArray]:
        """The terms of all columns and the prior, (classes, tested rows), and the sizes of the terms' constants."""
        total = np.empty((self._log_priors.size, columns.shape[1]))
        sizes = np.zeros(len(columns))
        for c, log_prior in enumerate(self._log_priors):
            terms, constant = self._of_class(c, columns, moments, epsilon)
            total[c] = terms.sum(axis=0) + log_prior
            sizes = np.maximum(sizes, abs(constant))
        return total, sizes

    def _terms(self, columns: FloatArray, moments: FloatArray, epsilon: float) -> tuple[FloatArray, FloatArray]:
        """The terms of each column, (columns, classes, tested rows), and the sizes of their constants."""
        each = [self._of_class(c, columns, moments, epsilon) for c in range(self._log_priors.size)]
        sizes = np.max([abs(constant) for _, constant in each], axis=0)
        return np.stack([terms for terms, _ in each], axis=1), sizes

    def _of_class(
        self, c: int, columns: FloatArray, moments: FloatArray, epsilon: float
    ) -> tuple[FloatArray, FloatArray]:
        """Log-densities of each column in a class, and the part of them that is the same for all rows."""
        n_classes = self._log_priors.size
        mean, variance = moments[:, 1 + c], moments[:, 1 + n_classes + c] + epsilon
        with np.errstate(divide="ignore", invalid="ignore"):  # no column varies here: NaN, as in GaussianNB
            constant = -0.5 * np.log(2.0 * np.pi * variance)
            terms = columns - mean[:, np.newaxis]
            terms *= terms
            terms /= -2.0 * variance[:, np.newaxis]
            terms += constant[:, np.newaxis]
        return terms, constant


def _beats_all(
    log_likelihoods: FloatArray, truth: NDArray[np.intp], sizes: FloatArray, bound: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Where the true class is the likeliest, (trials, rows); and trials with a row in which rounding may decide that.

    Overwrites the log-likelihoods, (trials, classes, rows). `bound` is their rounding error, relative to their size
    and that of the constants in them.
    """
    rows = np.arange(truth.size)
    own = log_likelihoods[:, truth, rows]
    log_likelihoods[:, truth, rows] = -np.inf
    rival = log_likelihoods.max(axis=1)
    with np.errstate(invalid="ignore"):
        apart = abs(own - rival) > bound * (abs(rival) + 2.0 * sizes[:, np.newaxis])
    return own > rival, ~apart.all(axis=1)


def _mean(rows: FloatArray) -> FloatArray:
    """Mean of each row, summed one value after the other as numpy sums the columns of a matrix: GaussianNB's bits."""
    return np.asarray(np.cumsum(rows, axis=1)[:, -1] / rows.shape[1])


def _variance(rows: FloatArray) -> FloatArray:
    return _mean((rows - _mean(rows)[:, np.newaxis]) ** 2)


# --- searches -------------------------------------------------------------------------------------------


class _Found(NamedTuple):
    lmbdas: FloatArray
    score: float


class _Record:
    """The record of a search."""

    def __init__(self) -> None:
        self._trials: list[tuple[int, int, float, float, bool]] = []

    def whole(self, epoch: int, score: float, accepted: bool, lmbda: float = np.nan) -> None:
        self._trials.append((epoch, -1, lmbda, score, accepted))

    def line(self, epoch: int, j: int, candidates: FloatArray, scores: FloatArray, accepted: int | None) -> None:
        for k, (lmbda, score) in enumerate(zip(candidates, scores, strict=True)):
            self._trials.append((epoch, j, lmbda, score, k == accepted))

    def history(self) -> SearchHistory:
        epoch, column, lmbda, score, accepted = (np.array(part) for part in zip(*self._trials, strict=True))
        return SearchHistory(epoch, column, lmbda, score, accepted)


class _Schedule(NamedTuple):
    """How an iterative search goes on; a period is in epochs, None for never."""

    n_epochs: int
    shift: int | None
    shuffle: int | None
    refine: int | None
    patience: int | None


def _due(epoch: int, period: int | None) -> bool:
    return period is not None and epoch > 0 and epoch % period == 0


def _iterative(
    objective: _Objective, grid: FloatArray, start: _Found, schedule: _Schedule, record: _Record, random: Any
) -> _Found:
    """Column after column, the best lambda with all others fixed: a coordinate ascent, from scored points only."""
    best = current = start
    order = np.arange(start.lmbdas.size)
    offsets = grid - 0.5 * (grid[0] + grid[-1])
    begin, halvings, settled, unimproved = 0, 0, False, 0
    for epoch in range(schedule.n_epochs):
        if _due(epoch, schedule.shift):
            lmbdas = random.choice(grid, order.size)
            current = _Found(lmbdas, objective.score(lmbdas))
            record.whole(epoch, current.score, True)
            begin, halvings, settled = epoch, 0, False
        if _due(epoch, schedule.shuffle):
            order = random.permutation(order)
        if _due(epoch - begin, schedule.refine):
            halvings, settled = halvings + 1, False
        if not settled:
            before = current.score
            for j in order:
                around = current.lmbdas[j] + 0.5**halvings * offsets if halvings else grid
                current = _step(objective, current, int(j), around, epoch, record)
            # what no single change improves stays until there is a new point or grid
            settled = current.score == before
        unimproved = 0 if current.score > best.score else unimproved + 1
        best = max(best, current, key=lambda found: found.score)
        if schedule.patience is not None and unimproved >= schedule.patience:
            break
    return best


def _step(
    objective: _Objective, current: _Found, j: int, candidates: FloatArray, epoch: int, record: _Record
) -> _Found:
    """The best of the candidates for column j, if it is better than what there is."""
    candidates = candidates[candidates != current.lmbdas[j]]
    scores = objective.along(current.lmbdas, j, candidates)
    k = int(np.argmax(scores))
    better = bool(scores[k] > current.score)
    record.line(epoch, j, candidates, scores, k if better else None)
    if not better:
        return current
    lmbdas = current.lmbdas.copy()
    lmbdas[j] = candidates[k]
    return _Found(lmbdas, float(scores[k]))


def _spherical(objective: _Objective, grid: FloatArray, p: int, record: _Record) -> _Found:
    """One lambda for all columns."""
    scores = np.array([objective.score(np.full(p, lmbda)) for lmbda in grid])
    k = int(np.argmax(scores))
    for i, (lmbda, score) in enumerate(zip(grid, scores, strict=True)):
        record.whole(0, score, i == k, lmbda)
    return _Found(np.full(p, grid[k]), float(scores[k]))


def _diagonal(objective: _Objective, grid: FloatArray, p: int, record: _Record) -> _Found:
    """Each column by itself, all others at 1; then all together."""
    ones = np.ones(p)
    untransformed = _Found(ones, objective.score(ones))
    record.whole(-1, untransformed.score, True, 1.0)
    each = [_step(objective, untransformed, j, grid, 0, record).lmbdas[j] for j in range(p)]
    together = np.array(each)
    score = objective.score(together)
    record.whole(0, score, True)
    return _Found(together, score)


def _full_grid(objective: _Objective, grid: FloatArray, p: int, record: _Record) -> tuple[_Found, FloatArray]:
    """Every combination; also all scores, one axis per column."""
    if grid.size**p > _MOST_EVALUATIONS:
        raise ValueError(
            f"{grid.size} values for each of {p} columns make {grid.size**p:.3g} combinations, more than "
            f"{_MOST_EVALUATIONS}; use search='iterative', or a smaller grid"
        )
    scores = np.empty((grid.size,) * p)
    for index in np.ndindex(*scores.shape[:-1]):
        lmbdas = np.append(grid[list(index)], 1.0)
        scores[index] = objective.along(lmbdas, p - 1, grid)
        record.line(0, p - 1, grid, scores[index], None)
    at = np.unravel_index(int(np.argmax(scores)), scores.shape)
    return _Found(grid[list(at)], float(scores[at])), scores


# --- the estimator --------------------------------------------------------------------------------------


class SupervisedPowerTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Power transforms with which a classifier or regressor scores best.

    Every column is scaled, transformed with its own lambda, and standardised: for Box-Cox it is scaled to [1, 2], for
    Yeo-Johnson to mean 0 and standard deviation 1. The lambdas maximise the score of `estimator` on the transformed
    columns. Put it in a pipeline before the same estimator.

    Parameters
    ----------
    estimator : classifier or regressor
        The estimator whose score is maximised. Cloned, never fitted itself.
    family : {"box-cox", "yeo-johnson"}, default "box-cox"
        The transform.
    search : {"iterative", "spherical", "diagonal", "grid"}, default "iterative"
        "iterative": column after column the best value of `grid` with all others fixed, for `n_epochs` rounds from the
        best of `starts`. "spherical": one lambda for all columns. "diagonal": each column with all others left
        at 1, then all together. "grid": every combination, for two or three columns.
    scoring : str or callable, optional
        A scikit-learn scorer; default: the estimator's own, accuracy or R^2.
    cv : int, splitter, iterable or "train", default 5
        The score is the mean over these splits (by splitters that need no groups: pass those of others as an
        iterable). "train" fits to, and scores on, all of the training data, as published
        [1]_: it favors lambdas that fit the noise.
    grid : array-like of float, optional
        Increasing lambdas to try; default: -5, -4, ..., 5.
    n_epochs : int, default 4
        Rounds of the iterative search. Rounds that can change nothing any more are not carried out.
    starts : "mle", "ones", a (p,) array, or a sequence of these, default ("mle", "ones")
        Where the iterative search may start: lambdas of maximum likelihood, no transform at all, or given ones. All are
        scored.
    shift, shuffle, refine : int, optional
        After every so many epochs: go on from a random point; visit the columns in a new random order; halve the
        spacing of the grid and center it on the present lambdas (after a shift, the whole grid comes first again).
    patience : int, optional
        Stop after so many epochs without a better score.
    n_jobs : int, optional
        Splits to score at a time (joblib). More than one: each on one thread.
    random_state : int, RandomState or None
        Seed of shifts and shuffles. The splits have their own, see `cv`.
    n_threads : int, optional
        Threads for transforming; default: all CPUs of this process.

    Attributes
    ----------
    lambdas_ : (p,) ndarray
        The best lambdas; 1 for constant columns, which become 0.
    best_score_ : float
        Their score, and of no other lambdas.
    start_scores_ : list of float
        Scores of `starts` (iterative search).
    history_ : SearchHistory
        All trials.
    grid_scores_ : (len(grid), ...) ndarray
        Scores of all combinations, one axis per column that is not constant (grid search).
    power_fit_ : PowerFit
        The transforms of the scaled columns.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Their names, where the training data had names.

    Notes
    -----
    The training data of all splits are scaled and standardised together, which does not affect scores of
    estimators that are invariant to scale, and affects others little. New values far below the training data, which
    Box-Cox could not transform, count as 0.99 of a range below their minimum.

    What differs from the algorithms as published [1]_ and their code: starts are scored; a shift does not lose the best
    point, and the score belongs to the lambdas that are returned; "diagonal" compares every column with lambda = 1
    (there, with the best of the columns before it, and what is not better is left with lambda = 0).

    For Gaussian naive Bayes and accuracy, the classifier is fitted only where rounding could decide between two
    classes; else a trial costs a sum over the classes, and predicts what the fitted classifier would. Transformed
    columns and their moments by class are kept (up to 256 MB of both).

    References
    ----------
    .. [1] L. Blum, M. Elgendi, C. Menon, "Impact of Box-Cox transformation on machine-learning algorithms", Frontiers
       in Artificial Intelligence 5, 2022, 877569, Algorithms 2 to 6.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from powerkern.supervised import SupervisedPowerTransformer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> transformer = SupervisedPowerTransformer(GaussianNB(), random_state=0)
    >>> classifier = make_pipeline(transformer, GaussianNB()).fit(X[::2], y[::2])
    >>> round(classifier.score(X[1::2], y[1::2]), 2), round(GaussianNB().fit(X[::2], y[::2]).score(X[1::2], y[1::2]), 2)
    (0.95, 0.94)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit"])],
        "family": [StrOptions({"box-cox", "yeo-johnson"})],
        "search": [StrOptions({"iterative", "spherical", "diagonal", "grid"})],
        "scoring": [str, callable, None],
        "cv": ["cv_object", StrOptions({"train"})],
        "grid": ["array-like", None],
        "n_epochs": [Interval(Integral, 0, None, closed="left")],
        "starts": [StrOptions({"mle", "ones"}), "array-like"],
        "shift": [None, Interval(Integral, 1, None, closed="left")],
        "shuffle": [None, Interval(Integral, 1, None, closed="left")],
        "refine": [None, Interval(Integral, 1, None, closed="left")],
        "patience": [None, Interval(Integral, 1, None, closed="left")],
        "n_jobs": [None, Integral],
        "random_state": ["random_state"],
        "n_threads": [None, Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        family: str = "box-cox",
        search: str = "iterative",
        scoring: Any = None,
        cv: Any = 5,
        grid: ArrayLike | None = None,
        n_epochs: int = 4,
        starts: Any = ("mle", "ones"),
        shift: int | None = None,
        shuffle: int | None = None,
        refine: int | None = None,
        patience: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.family = family
        self.search = search
        self.scoring = scoring
        self.cv = cv
        self.grid = grid
        self.n_epochs = n_epochs
        self.starts = starts
        self.shift = shift
        self.shuffle = shuffle
        self.refine = refine
        self.patience = patience
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.n_threads = n_threads

    @fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any) -> Self:
        """Search the lambdas for `X` (n, p), with which `estimator` predicts `y` (n,) best."""
        X, y = read(self, X, y=y, ensure_min_samples=2)
        refuse_values(self, X, self._needs_all)
        grid = self._checked_grid()
        values = np.asarray(X, dtype=np.float64)
        self._scaling = _scaling(values, self.family)
        scaled = self._scaling.forwards(values)
        varied = np.flatnonzero(self._scaling.varies)
        splits = self._splits(X, y)
        record = _Record()
        for earlier in ("start_scores_", "grid_scores_"):  # of another search
            if hasattr(self, earlier):
                delattr(self, earlier)
        objective = self._objective(X, y, splits, _Columns(scaled[:, varied], self.family))
        found = self._search(objective, scaled[:, varied], varied, grid, record)
        if not np.isfinite(found.score):
            raise ValueError(f"the score is {found.score} from the start; choose another scoring or cv")
        self.lambdas_ = np.ones(values.shape[1])
        self.lambdas_[varied] = found.lmbdas
        self.best_score_ = found.score
        self.history_ = record.history()
        self.power_fit_ = fitting.fit(scaled[:, varied], self.family, lmbda=found.lmbdas, n_threads=self.n_threads)
        return self

    def transform(self, X: Any) -> NDArray[np.floating]:
        """The columns of `X` scaled, transformed and standardised as those of the training data."""
        check_is_fitted(self)
        X = read(self, X, reset=False)
        refuse_values(self, X, self._needs_all)
        varied = self._scaling.varies
        scaled = self._scaling.forwards(np.asarray(X, dtype=np.float64))[:, varied]
        out = np.zeros(X.shape, dtype=X.dtype)
        out[:, varied] = self.power_fit_.transform(scaled, n_threads=self.n_threads)
        return out

    def inverse_transform(self, X: object) -> NDArray[np.floating]:
        """Undo `transform`; values without an inverse become NaN, with one warning."""
        check_is_fitted(self)
        Z = check_array(X, dtype=FLOATS, ensure_all_finite="allow-nan")
        check_n_features(Z, self.n_features_in_, None, None)
        varied = self._scaling.varies
        scaled = np.full(Z.shape, self._scaling.base)
        scaled[:, varied] = self.power_fit_.inverse_transform(
            np.asarray(Z[:, varied], dtype=np.float64), n_threads=self.n_threads
        )
        return self._scaling.backwards(scaled).astype(Z.dtype, copy=False)

    @property
    def _needs_all(self) -> Any:
        """The estimator, if it takes no missing values."""
        return None if get_tags(self.estimator).input_tags.allow_nan else self.estimator

    def _checked_grid(self) -> FloatArray:
        grid = _GRID if self.grid is None else np.asarray(self.grid, dtype=np.float64)
        if grid.ndim != 1 or grid.size < 2 or not np.isfinite(grid).all() or (np.diff(grid) <= 0.0).any():
            raise ValueError(f"grid must be two or more increasing numbers, got {self.grid!r}")
        return grid

    def _splits(self, X: Any, y: Any) -> list[Split]:
        if isinstance(self.cv, str):
            every = np.arange(X.shape[0])
            return [(every, every)]
        splitter = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        return list(splitter.split(X, y))

    def _objective(self, X: Any, y: Any, splits: list[Split], columns: _Columns) -> _Objective:
        if type(self.estimator) is GaussianNB and self._by_accuracy(X, y, splits):
            return _NaiveBayes(self.estimator, y, splits, columns)
        scorer = check_scoring(self.estimator, self.scoring)
        return _Refitted(self.estimator, scorer, y, splits, columns, self.n_jobs)

    def _by_accuracy(self, X: Any, y: Any, splits: list[Split]) -> bool:
        """Whether naive Bayes is scored by accuracy, and there is something that the shortcut saves."""
        if self.scoring not in (None, "accuracy"):
            return False
        classes = clone(self.estimator).fit(X, y).classes_  # refuses parameters and targets that it cannot take
        if self.estimator.priors is not None and any(np.unique(y[train]).size < classes.size for train, _ in splits):
            return False  # GaussianNB refuses them
        return bool(classes.size > 1 and self._scaling.varies.sum() > 1)

    def _search(
        self, objective: _Objective, scaled: FloatArray, varied: NDArray[np.intp], grid: FloatArray, record: _Record
    ) -> _Found:
        p = varied.size
        if self.search == "spherical":
            return _spherical(objective, grid, p, record)
        if self.search == "diagonal":
            return _diagonal(objective, grid, p, record)
        if self.search == "grid":
            found, self.grid_scores_ = _full_grid(objective, grid, p, record)
            return found
        starts = [start[varied] for start in self._starts(scaled, varied)]
        if not starts:
            raise ValueError("starts is empty; pass at least one")
        self.start_scores_ = [objective.score(start) for start in starts]
        best = int(np.argmax(self.start_scores_))
        for k, score in enumerate(self.start_scores_):
            record.whole(-1, score, k == best)
        schedule = _Schedule(self.n_epochs, self.shift, self.shuffle, self.refine, self.patience)
        begin = _Found(starts[best], self.start_scores_[best])
        return _iterative(objective, grid, begin, schedule, record, check_random_state(self.random_state))

    def _starts(self, scaled: FloatArray, varied: NDArray[np.intp]) -> Iterator[FloatArray]:
        """One lambda per column of X."""
        p = self.n_features_in_
        one = isinstance(self.starts, str) or (len(self.starts) > 0 and isinstance(self.starts[0], Real))
        for start in [self.starts] if one else self.starts:
            if isinstance(start, str):
                lmbdas = np.ones(p)
                if as_choice("a start", start, ("mle", "ones")) == "mle":
                    lmbdas[varied] = fitting.fit(scaled, self.family, n_threads=self.n_threads).lmbda
            else:
                lmbdas = np.asarray(start, dtype=np.float64)
                if lmbdas.shape != (p,) or not np.isfinite(lmbdas).all():
                    raise ValueError(f"a start must be {p} finite numbers, 'mle' or 'ones', got {start!r}")
            yield lmbdas

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = get_tags(self.estimator).input_tags.allow_nan
        return tags


class _Scaling(NamedTuple):
    """x -> (x - offset)/size + base, raised to at least `lowest`."""

    offset: FloatArray
    size: FloatArray
    base: float
    lowest: float
    varies: NDArray[np.bool_]

    def forwards(self, X: FloatArray) -> FloatArray:
        scaled = np.asfortranarray((X - self.offset) / self.size)
        scaled += self.base
        return np.maximum(scaled, self.lowest, out=scaled)

    def backwards(self, scaled: FloatArray) -> FloatArray:
        return (scaled - self.base) * self.size + self.offset


def _scaling(X: FloatArray, family: str) -> _Scaling:
    """To [1, 2] for Box-Cox, to mean 0 and standard deviation 1 for Yeo-Johnson."""
    low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    size = high - low
    varies = size > 0.0
    if not varies.any():
        raise ValueError("every column of X is constant or missing; there is nothing to transform")
    if not np.isfinite(size[varies]).all():
        raise ValueError("the range of a column of X overflows float64; divide X by its largest value")
    offset, size = np.where(np.isnan(low), 0.0, low), np.where(varies, size, 1.0)
    if family == "box-cox":
        return _Scaling(offset, size, 1.0, _LOWEST, varies)
    unit = (X[:, varies] - offset[varies]) / size[varies]
    mean, sd = np.nanmean(unit, axis=0), np.nanstd(unit, axis=0)
    offset[varies] += mean * size[varies]
    size[varies] *= sd
    return _Scaling(offset, size, 0.0, -np.inf, varies)
