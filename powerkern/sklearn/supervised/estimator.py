"""`SupervisedPowerTransformer`: choose lambdas by the score of an estimator on the transformed columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from inspect import signature
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.naive_bayes import GaussianNB
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from powerkern._engine.threads import progress_bar
from powerkern._fit import fit as fitting
from powerkern._input.arguments import given_bounds
from powerkern._input.arrays import as_choice, as_reals, as_weights
from powerkern._input.messages import shown, suggest_in_constructor
from powerkern._typing import Bounds, FloatArray
from powerkern.sklearn._compat import HasMethods, Interval, StrOptions, fit_context, routing_enabled
from powerkern.sklearn.reading import N_THREADS, feature_names, read, refuse_values
from powerkern.sklearn.supervised import searches
from powerkern.sklearn.supervised.columns import TransformedColumns, compute_scaling
from powerkern.sklearn.supervised.naive_bayes import NaiveBayes
from powerkern.sklearn.supervised.objective import Objective, OutOfTime, Refitted, ScoringTask, Split, Watched
from powerkern.sklearn.supervised.searches import BestLambdas, Schedule, SearchHistory, Space, Trial
from powerkern.sklearn.tables import PartTransformer, SelectedColumns, is_frame

#: The published grid.
_GRID = np.linspace(-5.0, 5.0, 11)
#: Smallest default number of trials of a search by blocks; otherwise it has two for each column.
_LEAST_TRIALS = 20


@suggest_in_constructor
@dataclass(eq=False, repr=False)
class SupervisedPowerTransformer(PartTransformer):
    """Power transforms that maximize the score of a classifier or regressor.

    Every column is scaled (for Box-Cox to [1, 2], for Yeo-Johnson to mean 0 and standard deviation 1), transformed with
    a separate lambda, and standardized. The lambdas maximize the score of `estimator` on the transformed columns. In a
    pipeline, put the same estimator after the transformer.

    Parameters
    ----------
    estimator : classifier or regressor
        The estimator whose score is maximized; only clones of it are fitted.
    family : {"box-cox", "yeo-johnson"}, default "box-cox"
        The transform.
    search : {"iterative", "blocks", "spherical", "diagonal", "grid"}, default "iterative"
        "iterative" starts from the best of `starts`. In each of `max_epochs` rounds, it sets the columns in turn to the
        best of `lmbdas`, with all other columns fixed. "blocks" moves random blocks of columns to either end of their
        `bounds`; it suits many columns and needs a small fraction of the trials of a grid. "spherical" tries one lambda
        for all columns. "diagonal" searches each column with all others untransformed, then combines the results.
        "grid" tries every combination, for two or three columns. Every search may leave any column untransformed
        (lambda = 1); "spherical" and "blocks" try this for one column after another at the end.
    scoring : str or callable, optional
        A scikit-learn scorer; default: the score method of the estimator (accuracy or R^2).
    cv : int, splitter, iterable or "train", default 5
        The score is the mean over these splits. Groups passed to `fit` are passed to splitters that need them. "train"
        fits and scores the estimator on all of the training data, as published [1]_; this favors lambdas that fit the
        noise.
    lmbdas : array-like of float, optional
        Increasing lambdas to try, besides 1; default: -5, -4, ..., 5.
    bounds : (low, high), optional
        Smallest and largest lambda: numbers, or arrays with one for each column of X; None for no bound. Starts and
        candidates outside the bounds are moved to them. "blocks" uses -20 and 20 by default.
    variables : list of str or int, or (p,) array-like of bool, optional
        The columns to transform, by name or position; all other columns reach the estimator unchanged. A data frame
        then gives a data frame. Default: all.
    max_trials : int, optional
        With "blocks", number of trials; default: two for each column, and at least 20.
    max_epochs : int, default 4
        Number of rounds of the iterative search. Rounds that cannot change anything are skipped.
    starts : "mle", "ones", a (p,) array, or a sequence of these, default ("mle", "ones")
        Starts of the search "iterative" or "blocks": the maximum likelihood lambdas, no transform (lambda = 1), or
        given lambdas. All of them are scored, and the search begins at the best one.
    restart_every, shuffle_every, refine_every : int, optional
        Periods, in rounds. After each period, the search restarts at a random point of the grid, shuffles the order of
        the columns, or halves the spacing of the grid and centers it on the current lambdas. After a restart, the
        whole grid is used again.
    patience : int, optional
        Stop after this number of rounds, or blocks, without a better score.
    tol : float, default 0
        Smallest improvement of the score that counts: a round that gains at most `tol` is treated as one that changed
        nothing.
    max_time : float, optional
        Seconds after which the search ends with the best lambdas so far. Trials in progress are finished first.
    progress : bool, default False
        Show a progress bar over the trials (needs tqdm); a search that converges ends before it is full.
    n_jobs : int, optional
        Number of splits scored at a time (joblib). If it is not 1, each split runs on one thread.
    random_state : int, RandomState or None
        Seed of restarts, shuffles and blocks. The seed of the splits belongs to `cv`.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. Only transforms use several; see `n_jobs`.

    Attributes
    ----------
    lambdas_ : (p,) ndarray
        The best lambdas; 1 for constant columns, which become 0; NaN for columns not in `variables`.
    best_score_ : float
        Score of the best lambdas.
    start_scores_ : list of float
        Scores of `starts` ("iterative" and "blocks").
    history_ : SearchHistory
        A named tuple of arrays with one entry per trial, in order: ``epoch``, from 0, or -1 before the first;
        ``column``, the column of X that was varied, or -1 if several were; ``lmbda`` of this column, or of all columns
        (NaN if they differ); ``score``; and ``accepted``, whether the search continued from this trial.
    timed_out_ : bool
        Whether `max_time` ended the search.
    grid_scores_ : (len(lmbdas), ...) ndarray
        Scores of all combinations, one axis for each column that varies ("grid").
    grid_lambdas_ : list of ndarray
        The lambdas along these axes.
    power_fit_ : PowerFit
        The transforms of the scaled columns.
    n_features_in_, feature_names_in_
        Number and names of the columns, as in scikit-learn.

    Notes
    -----
    The search scales and standardizes the training data of all splits together. Scores of estimators that are not
    invariant to scale, such as nearest neighbors, are therefore slightly too good. Cross-validate the whole pipeline to
    measure the benefit of a transform.

    New values that lie farther than 0.99 times the range beyond the ends of the training data are clipped there.

    Missing values are left out of the scaling and stay missing, except in a constant column, where they become 0. `fit`
    raises an error if there are missing values and the estimator does not accept them. An estimator that contains
    others, such as a pipeline with an imputer, gets missing values in any case. If X is a data frame, estimators in the
    search get data frames, too, so that steps can select columns by name.

    This implementation differs from the published algorithms [1]_ and their code. Starts are scored. A restart does not
    lose the best point, and the returned score is that of the returned lambdas. "diagonal" compares every column with
    lambda = 1. (The published algorithm compares it with the best of the columns before it, and sets lambda = 0 if the
    column is not better.)

    For Gaussian naive Bayes and accuracy, a trial costs only a sum over the classes, and its predictions are those of
    the fitted classifier. The classifier is fitted only if rounding could decide between two classes. Transformed
    columns and their moments by class are cached (up to 256 MB in all).

    References
    ----------
    .. [1] L. Blum, M. Elgendi, C. Menon, "Impact of Box-Cox transformation on machine-learning algorithms", Frontiers
       in Artificial Intelligence 5, 2022, 877569, Algorithms 2 to 6.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from powerkern.sklearn import SupervisedPowerTransformer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> transformer = SupervisedPowerTransformer(GaussianNB(), random_state=0)
    >>> classifier = make_pipeline(transformer, GaussianNB()).fit(X[::2], y[::2])
    >>> round(classifier.score(X[1::2], y[1::2]), 2), round(GaussianNB().fit(X[::2], y[::2]).score(X[1::2], y[1::2]), 2)
    (0.95, 0.94)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit"])],
        "family": [StrOptions({"box-cox", "yeo-johnson"})],
        "search": [StrOptions({"iterative", "blocks", "spherical", "diagonal", "grid"})],
        "scoring": [str, callable, None],
        "cv": ["cv_object", StrOptions({"train"})],
        "lmbdas": ["array-like", None],
        "bounds": ["array-like", None],
        "variables": ["array-like", None],
        "max_trials": [None, Interval(Integral, 1, None, closed="left")],
        "max_epochs": [Interval(Integral, 0, None, closed="left")],
        "starts": [StrOptions({"mle", "ones"}), "array-like"],
        "restart_every": [None, Interval(Integral, 1, None, closed="left")],
        "shuffle_every": [None, Interval(Integral, 1, None, closed="left")],
        "refine_every": [None, Interval(Integral, 1, None, closed="left")],
        "patience": [None, Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "max_time": [None, Interval(Real, 0.0, None, closed="left")],
        "progress": ["boolean"],
        "n_jobs": [None, Integral],
        "random_state": ["random_state"],
        "n_threads": N_THREADS,
    }

    estimator: Any
    _: KW_ONLY
    family: str = "box-cox"
    search: str = "iterative"
    scoring: Any = None
    cv: Any = 5
    lmbdas: ArrayLike | None = None
    bounds: Bounds | None = None
    variables: Any = None
    max_trials: int | None = None
    max_epochs: int = 4
    starts: Any = ("mle", "ones")
    restart_every: int | None = None
    shuffle_every: int | None = None
    refine_every: int | None = None
    patience: int | None = None
    tol: float = 0.0
    max_time: float | None = None
    progress: bool = False
    n_jobs: int | None = None
    random_state: Any = None
    n_threads: int | None = None

    @fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, **params: Any) -> Self:
        """Search for the lambdas that maximize the score of `estimator`.

        Parameters
        ----------
        X : (n, p) array-like
            Training data.
        y : (n,) array-like
            Targets.
        sample_weight : (n,) array-like, optional
            Non-negative weights. An integer weight k has the effect of k equal rows in the scaling, the maximum
            likelihood lambdas, the fits of `estimator`, and the scores.
        **params
            ``groups`` is passed to the splitter, and all other arguments to ``fit`` of the estimator. With
            scikit-learn's metadata routing, each object gets the arguments that it requests.
        """
        self._tune(X, y, sample_weight, params)
        return self

    def transform(self, X: Any) -> Any:
        """Scale, transform and standardise the columns of `X` as in the training data."""
        check_is_fitted(self)
        table, values = self._read(X, reset=False)
        Z = self._transformed(values)
        return Z if self.variables is None else table.with_values(Z)

    def inverse_transform(self, X: Any) -> Any:
        """Undo `transform`; values without an inverse become NaN, with one warning."""
        check_is_fitted(self)
        table, given = self._read_output(X)
        varied = self._scaling.varies
        scaled = np.full(given.shape, self._scaling.base)
        scaled[:, varied] = self.power_fit_.inverse_transform(
            np.asarray(given[:, varied], dtype=np.float64), n_threads=self.n_threads
        )
        back = self._scaling.unscale(scaled).astype(given.dtype, copy=False)
        return back if self.variables is None else table.with_values(back)

    def get_metadata_routing(self) -> Any:
        """Return the metadata that estimator, scorer and splitter request; see scikit-learn's user guide."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
            .add(scorer=self._scorer(), method_mapping=MethodMapping().add(caller="fit", callee="score"))
            .add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        )

    def _tune(self, X: Any, y: Any, sample_weight: ArrayLike | None, params: dict[str, Any]) -> ScoringTask:
        """Run the search, set the fitted attributes, and return the task.

        Parameters
        ----------
        X : (n, p) array-like
            Training data.
        y : (n,) array-like
            Targets.
        sample_weight : (n,) array-like or None
            Weights of the rows.
        params : dict
            Further arguments of `fit`.
        """
        table, (values, y) = self._read(X, y=y, ensure_min_samples=2)
        self._chosen = table.chosen
        weight = None if sample_weight is None else as_weights(sample_weight, len(y))
        routed = self._route_arguments(weight, params)
        grid = self._candidates()
        self._scaling = compute_scaling(np.asarray(values, dtype=np.float64), self.family, weight)
        varied = np.flatnonzero(self._scaling.varies)
        scaled = self._scaling.scale(np.asarray(values, dtype=np.float64))[:, varied]
        bounds = given_bounds(self.bounds, self.n_features_in_, feature_names(self))[:, self._chosen[varied]]
        weighs = np.full(len(y), True) if weight is None else weight > 0.0
        splits = [(train[weighs[train]], test) for train, test in self._splits(table.whole, y, routed.split)]
        kept = np.flatnonzero(weighs)
        task = ScoringTask(self.estimator, self._scorer(), table, y, splits, kept, routed.fit, routed.score)
        objective = self._objective(task, values, varied, TransformedColumns(scaled, self.family, weight))
        found = self._search_with_limit(objective, scaled, Space(grid, bounds), weight)
        self.lambdas_ = np.full(self.n_features_in_, np.nan)
        self.lambdas_[self._chosen] = 1.0
        self.lambdas_[self._chosen[varied]] = found.lmbdas
        self.best_score_ = found.score
        names = feature_names(self)
        self.power_fit_ = fitting.fit(
            scaled,
            self.family,
            lmbda=found.lmbdas,
            sample_weight=weight,
            column_names=None if names is None else [names[j] for j in self._chosen[varied]],
            n_threads=self.n_threads,
        )
        return task

    def _read(self, X: Any, reset: bool = True, **options: Any) -> tuple[SelectedColumns, Any]:
        """Read `X`: return the table, and the checked values of the columns to transform, with y if it is passed.

        `reset` and `options` are as in `read`.
        """
        if self.variables is None:
            got = read(self, X, reset=reset, **options)
            values = got[0] if isinstance(got, tuple) else got
            table = SelectedColumns(X if is_frame(X) else values, np.arange(self.n_features_in_))
        else:
            table, got = self._read_part(X, reset, **options)
            values = np.zeros((len(table.whole), self.n_features_in_))
            values[:, table.chosen] = got[0] if isinstance(got, tuple) else got
        refuse_values(self, values, None if takes_missing(self.estimator) else self.estimator)
        return table, got

    def _transformed(self, values: NDArray[Any]) -> NDArray[np.floating]:
        """Scale and transform the columns of `values`, (n, p); constant columns become 0."""
        varied = self._scaling.varies
        scaled = self._scaling.scale(np.asarray(values, dtype=np.float64))[:, varied]
        out = np.zeros(values.shape, dtype=values.dtype)
        out[:, varied] = self.power_fit_.transform(scaled, n_threads=self.n_threads)
        return out

    def _route_arguments(self, weight: FloatArray | None, params: dict[str, Any]) -> _Routed:
        """Distribute the weights and the further arguments of `fit` to the estimator, the splitter and the scorer."""
        weights = {} if weight is None else {"sample_weight": weight}
        if routing_enabled():
            to = process_routing(self, "fit", **params, **weights)
            return _Routed(to.estimator.fit, to.splitter.split, to.scorer.score)
        if weights and not has_fit_parameter(self.estimator, "sample_weight"):
            raise ValueError(
                f"{type(self.estimator).__name__}.fit takes no sample_weight; choose another estimator, or request "
                "sample_weight for a part of it by scikit-learn's metadata routing"
            )
        fit_params = {name: value for name, value in params.items() if name != "groups"}
        own = self.scoring is None or isinstance(self.scoring, str)
        scored = weights if own or "sample_weight" in signature(self.scoring).parameters else {}
        return _Routed(fit_params | weights, {"groups": params.get("groups")}, scored)

    def _scorer(self) -> Any:
        """Return the scorer for `scoring`."""
        return check_scoring(self.estimator, self.scoring)

    def _candidates(self) -> FloatArray:
        """Return the grid of lambdas, which includes 1; raise ValueError if `lmbdas` is not increasing."""
        grid = _GRID if self.lmbdas is None else as_reals("lmbdas", self.lmbdas)
        if grid.ndim != 1 or grid.size < 2 or not np.isfinite(grid).all() or (np.diff(grid) <= 0.0).any():
            raise ValueError(f"lmbdas must be two or more increasing numbers, got {shown(self.lmbdas)}")
        return np.union1d(grid, 1.0)  # no transform is always a candidate

    def _splits(self, X: Any, y: Any, split_params: dict[str, Any]) -> list[Split]:
        """Return the positions of the training rows and of the test rows of each split."""
        if isinstance(self.cv, str):
            every = np.arange(len(y))
            return [(every, every)]
        splitter = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        return list(splitter.split(X, y, **split_params))

    def _objective(
        self, task: ScoringTask, values: Any, varied: NDArray[np.intp], columns: TransformedColumns
    ) -> Objective:
        """Return the function to maximize: `NaiveBayes`, which is faster, if it can be used, otherwise `Refitted`.

        Parameters
        ----------
        task : ScoringTask
            The estimator, its data and its scoring.
        values : (n, p) array-like
            The columns to transform.
        varied : (k,) ndarray of int
            Positions of the columns that are not constant.
        columns : TransformedColumns
            The transformed columns.
        """
        if type(self.estimator) is GaussianNB and self._by_accuracy(task, values, varied):
            return NaiveBayes(task, columns)
        return Refitted(task, columns, varied, self.n_jobs)

    def _by_accuracy(self, task: ScoringTask, values: Any, varied: NDArray[np.intp]) -> bool:
        """Return whether the objective `NaiveBayes` can be used.

        The score must be accuracy, all columns must be transformed, and two or more must vary. Arguments are as in
        `_objective`.
        """
        if self.scoring not in (None, "accuracy") or task.fit_params or not task.table.takes_all:
            return False
        classes = clone(self.estimator).fit(values, task.y).classes_  # refuses parameters and targets it cannot take
        if self.estimator.priors is not None:  # GaussianNB refuses priors of classes that a split has not seen
            return all(np.unique(task.y[train]).size == classes.size for train, _ in task.splits) and varied.size > 1
        return bool(classes.size > 1 and varied.size > 1)

    def _search_with_limit(
        self, objective: Objective, scaled: FloatArray, space: Space, weight: FloatArray | None
    ) -> BestLambdas:
        """Run the search until it ends or `max_time` has passed; set `history_` and `timed_out_`.

        Parameters
        ----------
        objective : Objective
            The function to maximize.
        scaled : (n, p) ndarray
            Scaled columns.
        space : Space
            Grid and bounds.
        weight : (n,) ndarray or None
            Weights of the rows.
        """
        for earlier in ("start_scores_", "grid_scores_", "grid_lambdas_"):  # left by an earlier search
            self.__dict__.pop(earlier, None)
        trials: list[Trial] = []
        with progress_bar(self._bound_trials(space), " trials", self.progress) as bar:
            watched = Watched(objective, self.max_time, bar)
            try:
                found = self._run_search(watched, scaled, space, weight, trials)
                self.timed_out_ = False
            except OutOfTime:
                found = BestLambdas(*watched.best)
                self.timed_out_ = True
        if not np.isfinite(found.score):
            raise ValueError(
                f"no lambdas have a finite score (the best is {found.score}); choose another scoring or cv"
            )
        epoch, column, *others = map(np.array, zip(*trials, strict=True))
        varied = self._chosen[self._scaling.varies]
        self.history_ = SearchHistory(epoch, np.append(varied, -1)[column], *others)
        return found

    def _max_trials(self, space: Space) -> int:
        """Return the largest number of trials of the search "blocks"."""
        return max(_LEAST_TRIALS, 2 * space.n_columns) if self.max_trials is None else self.max_trials

    def _bound_trials(self, space: Space) -> int:
        """Return an upper bound on the number of trials, for the progress bar."""
        p, m = space.n_columns, space.grid.size
        n_starts = len(self._list_starts())
        most = {
            "spherical": m + p,
            "diagonal": 2 + p * m,
            "grid": m**p,
            "blocks": n_starts + self._max_trials(space) + p,
        }
        return int(most.get(self.search, n_starts + self.max_epochs * p * m))

    def _run_search(
        self, objective: Objective, scaled: FloatArray, space: Space, weight: FloatArray | None, trials: list[Trial]
    ) -> BestLambdas:
        """Run the search that the parameter `search` names.

        Parameters
        ----------
        objective : Objective
            The function to maximize.
        scaled : (n, p) ndarray
            Scaled columns.
        space : Space
            Grid and bounds.
        weight : (n,) ndarray or None
            Weights of the rows.
        trials : list of Trial
            List to which trials are appended.
        """
        if self.search == "spherical":
            return searches.search_common_lambda(objective, space, trials)
        if self.search == "diagonal":
            return searches.search_columns_separately(objective, space, trials)
        if self.search == "grid":
            found, self.grid_scores_, self.grid_lambdas_ = searches.search_full_grid(objective, space, trials)
            return found
        starts = [(start, np.nan) for start in self._make_starts(scaled, space, weight)]
        if not starts:
            raise ValueError("starts is empty; pass at least one")
        begin = searches.score_points(objective, starts, space, -1, trials)
        self.start_scores_ = [trial.score for trial in trials]
        random = check_random_state(self.random_state)
        if self.search == "blocks":
            return searches.search_blocks(
                objective, space, begin, self._max_trials(space), self.patience, trials, random
            )
        schedule = Schedule(
            self.max_epochs, self.restart_every, self.shuffle_every, self.refine_every, self.patience, self.tol
        )
        return searches.search_iteratively(objective, space, begin, schedule, trials, random)

    def _list_starts(self) -> list[Any]:
        """Return the argument `starts` as a list."""
        each = list(self.starts)
        one = isinstance(self.starts, str) or (len(each) > 0 and isinstance(each[0], Real))
        return [self.starts] if one else each

    def _make_starts(self, scaled: FloatArray, space: Space, weight: FloatArray | None) -> Iterator[FloatArray]:
        """Yield the starting lambdas, (k,), for the k columns that vary; arguments are as in `_search_with_limit`."""
        varied = self._chosen[self._scaling.varies]
        for start in self._list_starts():
            if isinstance(start, str):
                if as_choice("a start", start, ("mle", "ones")) == "ones":
                    yield np.ones(varied.size)
                else:
                    yield fitting.fit(scaled, self.family, sample_weight=weight, n_threads=self.n_threads).lmbda
            else:
                lmbdas = as_reals("a start", start)
                if lmbdas.shape != (self.n_features_in_,) or not np.isfinite(lmbdas[varied]).all():
                    raise ValueError(
                        f"a start must be {self.n_features_in_} finite numbers, 'mle' or 'ones', got {shown(start)}"
                    )
                yield lmbdas[varied]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = takes_missing(self.estimator)
        return tags


class _Routed(NamedTuple):
    """Keyword arguments for `fit` of the estimator, for `split` of the splitter, and for the scorer."""

    fit: dict[str, Any]
    split: dict[str, Any]
    score: dict[str, Any]


def takes_missing(estimator: Any) -> bool:
    """Return whether to pass missing values to an estimator.

    Return True if the estimator accepts them, and for every estimator that contains other estimators, such as a
    pipeline, because one of these may fill in missing values.
    """
    has_parts = any(hasattr(part, "fit") for part in estimator.get_params().values())
    return has_parts or bool(get_tags(estimator).input_tags.allow_nan)
