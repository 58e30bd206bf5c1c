"""Supervised search of lambdas: comparison with published accuracies, and time relative to the published code."""

from __future__ import annotations

import functools
import time
from typing import Any

import numpy as np
import scipy.special
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import MinMaxScaler, PowerTransformer, StandardScaler
from sklearn.svm import SVC

from powerkern.sklearn import PowerTransformedClassifier, SupervisedPowerTransformer

from ._measure import InTurns

CLASSIFIERS = {
    "naive Bayes": GaussianNB(),
    "nearest neighbors": KNeighborsClassifier(),
    "LDA": LinearDiscriminantAnalysis(),
    "SVC": SVC(),
}
SEARCHES = ["mle", "spherical", "diagonal", "iterative"]
#: Table 7 of Blum, Elgendi and Menon (2022), breast-cancer data: percentage points gained over standardised columns.
PUBLISHED = {
    "naive Bayes": {"mle": 1.477, "spherical": 1.443, "diagonal": 1.232, "iterative": 1.371},
    "nearest neighbors": {"mle": 0.279, "spherical": 0.0, "diagonal": -0.14, "iterative": 0.245},
}
_GRID = np.linspace(-5.0, 5.0, 11)


def _cancer() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    return X.astype(np.float32), y


def _tuned(search: str, estimator: Any, X: np.ndarray, y: np.ndarray) -> SupervisedPowerTransformer:
    """Return a transformer tuned by training accuracy as in the published code, including its faults.

    Parameters
    ----------
    search : {"spherical", "diagonal", "mle", "iterative"}
        The search.
    estimator : classifier
        The classifier.
    X : (n, p) ndarray
        Training data.
    y : (n,) ndarray
        Classes.
    """

    def fitted(**options: Any) -> SupervisedPowerTransformer:
        return SupervisedPowerTransformer(estimator, cv="train", **options).fit(X, y)

    if search == "spherical":  # one lambda for all columns, none of them left untransformed
        history = fitted(search=search).history_
        common = history.column == -1
        return fitted(starts=[np.full(X.shape[1], history.lmbda[common][history.score[common].argmax()])], max_epochs=0)
    if search == "diagonal":
        return fitted(starts=_diagonal_as_published(fitted(search=search).history_, X.shape[1]), max_epochs=0)
    likely = fitted(starts="mle", max_epochs=0)
    if search == "mle":
        return likely
    # the start is not scored, so the first column takes the best of the grid even if it is worse than the start
    starts = [np.append(value, likely.lambdas_[1:]) for value in _GRID]
    return fitted(starts=starts)


def _diagonal_as_published(history: Any, p: int) -> np.ndarray:
    """Return the lambdas of p columns as the published code would choose them from the `history_` of a finished search.

    Its fault: the best score is not reset between columns. Columns whose best score is not above the best of all
    columns before them get lambda = 0.
    """
    lambdas, best = np.zeros(p), -np.inf
    for j in range(p):
        line = history.column == j
        # lambda = 1 was scored before all columns
        candidates, scores = np.append(history.lmbda[line], 1.0), np.append(history.score[line], history.score[0])
        k = np.lexsort((candidates, -scores))[0]
        if scores[k] > best:
            lambdas[j], best = candidates[k], scores[k]
    return lambdas


def _accuracies(search: str, estimator: Any, n_repeats: int) -> np.ndarray:
    """Return the accuracies in each fold, (10 `n_repeats`, 2): on transformed and on standardised columns."""
    X, y = _cancer()
    rows = []
    for train, test in RepeatedStratifiedKFold(n_splits=10, n_repeats=n_repeats, random_state=42).split(X, y):
        row = []
        for scaler in (_tuned(search, estimator, X[train], y[train]), StandardScaler().fit(X[train])):
            fitted = estimator.fit(scaler.transform(X[train]), y[train])
            row.append(fitted.score(scaler.transform(X[test]), y[test]))
        rows.append(row)
    return np.array(rows)


class Published:
    """Gain in accuracy by transforms over standardising, in percentage points, in repeated tenfold cross-validation."""

    params = (["naive Bayes"], SEARCHES, [1])
    param_names = ("classifier", "search", "repeats")

    def track_gain(self, classifier: str, search: str, repeats: int) -> float:
        tuned, standardised = _accuracies(search, CLASSIFIERS[classifier], repeats).mean(axis=0)
        return float(100.0 * (tuned - standardised))

    def track_difference(self, classifier: str, search: str, repeats: int) -> float:
        """Difference from the published gain, which is rounded to three decimals and based on five repeats."""
        return abs(self.track_gain(classifier, search, repeats) - PUBLISHED[classifier][search])

    track_gain.unit = track_difference.unit = "points"  # type: ignore[attr-defined]


def _search_anew(estimator: Any, X: np.ndarray, y: np.ndarray, n_epochs: int) -> np.ndarray:
    """Search like the published code, which transforms, standardises and fits all columns again in every trial.

    Parameters
    ----------
    estimator : classifier
        The classifier.
    X : (n, p) ndarray
        Training data.
    y : (n,) ndarray
        Classes.
    n_epochs : int
        Number of rounds.
    """
    scaled = MinMaxScaler((1, 2)).fit_transform(X.astype(np.float64))
    lambdas, best = PowerTransformer(method="box-cox").fit(scaled).lambdas_, -np.inf
    for _ in range(n_epochs):
        for j in range(lambdas.size):
            for value in _GRID:
                trial = lambdas.copy()
                trial[j] = value
                Z = StandardScaler().fit_transform(scipy.special.boxcox(scaled, trial))
                score = estimator.fit(Z, y).score(Z, y)
                if score > best:
                    lambdas, best = trial, score
    return lambdas


class Fold(InTurns):
    """Seconds of the iterative search by training accuracy, on the training set of the first of ten folds."""

    params = (["naive Bayes"], [4])  # nearest neighbors take a hundred times as long: see CrossValidated
    param_names = ("classifier", "max_epochs")

    def setup(self, classifier: str, n_epochs: int) -> None:
        X, y = _cancer()
        train, _ = next(RepeatedStratifiedKFold(n_splits=10, n_repeats=1, random_state=42).split(X, y))
        self.X, self.y = X[train], y[train]
        self.model = SupervisedPowerTransformer(
            CLASSIFIERS[classifier], starts="mle", cv="train", max_epochs=n_epochs, n_threads=1
        )
        self.model.fit(self.X[:, :2], self.y)  # compiles

    def track_seconds(self, classifier: str, n_epochs: int) -> float:
        return self.compare({"powerkern": lambda: self.model.fit(self.X, self.y)})["powerkern"].wall

    track_seconds.unit = "s"  # type: ignore[attr-defined]


class BesidePublished(Fold):
    """Speed of the iterative search relative to the published code, on the same training set."""

    params = (["naive Bayes"], [1])

    def track_speedup(self, classifier: str, n_epochs: int) -> float:
        self.compare({"powerkern": lambda: self.model.fit(self.X, self.y)})
        ours = self.laps
        calls = {"as published": lambda: _search_anew(CLASSIFIERS[classifier], self.X, self.y, n_epochs)}
        self.laps = ours | self.compare(calls)
        return self.ratio("as published", "powerkern")

    track_speedup.unit = "times faster"  # type: ignore[attr-defined]


class CrossValidated:
    """Seconds of the default search, which compares lambdas by cross-validated accuracy, for five columns."""

    params = (list(PUBLISHED),)
    param_names = ("classifier",)

    def setup(self, classifier: str) -> None:
        self.X, self.y = _cancer()
        self.model = SupervisedPowerTransformer(CLASSIFIERS[classifier], max_epochs=1)
        self.model.fit(self.X[:, :2], self.y)  # compiles

    def time_fit(self, classifier: str) -> None:
        self.model.fit(self.X[:, :5], self.y)


@functools.cache
def many_columns(n: int, p: int = 50) -> tuple[np.ndarray, np.ndarray]:
    """Return three classes, and skewed columns of which two fifths are informative."""
    X, y = make_classification(n, p, n_informative=p // 4, n_redundant=p // 6, n_classes=3, flip_y=0.05, random_state=0)
    return np.exp(np.random.default_rng(0).uniform(0.2, 1.2, p) * X / X.std(axis=0)), y


@functools.cache
def searched(search: str, n: int, p: int, seed: int = 0) -> tuple[float, int, float]:
    """Search lambdas for a nearest-neighbor classifier; return the best score, the number of trials, and CPU seconds.

    Parameters
    ----------
    search : str
        The search.
    n, p : int
        Shape of the data.
    seed : int
        Seed of the search.
    """
    model = SupervisedPowerTransformer(KNeighborsClassifier(), search=search, random_state=seed)
    begin = time.process_time()
    model.fit(*many_columns(n, p))
    return model.best_score_, model.history_.score.size, time.process_time() - begin


class Blocks:
    """The search by blocks compared with the iterative search over a grid: accuracy, number of trials, and CPU time."""

    params = ([100], [12])
    param_names = ("rows", "columns")
    timeout = 300

    def track_gain(self, n: int, p: int) -> float:
        """Gain in accuracy over the iterative search, in percentage points, as the mean of three searches."""
        scores = [searched("blocks", n, p, seed)[0] for seed in range(3)]
        return 100.0 * float(np.mean(scores) - searched("iterative", n, p)[0])

    def track_trials(self, n: int, p: int) -> float:
        return searched("blocks", n, p)[1] / searched("iterative", n, p)[1]

    def track_speedup(self, n: int, p: int) -> float:
        return searched("iterative", n, p)[2] / searched("blocks", n, p)[2]

    def track_seconds(self, n: int, p: int) -> float:
        return searched("blocks", n, p)[2]

    track_gain.unit = "points"  # type: ignore[attr-defined]
    track_trials.unit = "of the grid's"  # type: ignore[attr-defined]
    track_speedup.unit = "x"  # type: ignore[attr-defined]
    track_seconds.unit = "s of CPU time"  # type: ignore[attr-defined]


class Unseen:
    """Cross-validated accuracy of pipelines with and without transforms; fraction of columns with lambda = 1."""

    params = (["iris"], ["naive Bayes"], ["none", "mle", "iterative"])
    param_names = ("data", "classifier", "transform")
    timeout = 600

    def track_accuracy(self, data: str, classifier: str, transform: str) -> float:
        return unseen(data, classifier, transform)[0]

    def track_columns_left_alone(self, data: str, classifier: str, transform: str) -> float:
        return unseen(data, classifier, transform)[1]


@functools.cache
def unseen(data: str, classifier: str, transform: str) -> tuple[float, float]:
    """Return a classifier's accuracy on a data set in per cent, and the fraction of columns with lambda = 1.

    `transform` is "none", "mle", or the name of a search.
    """
    X, y = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}[data](return_X_y=True)
    fixed = {"none": {"starts": "ones", "max_epochs": 0}, "mle": {"starts": "mle", "max_epochs": 0}}
    options = fixed.get(transform, {"search": transform, "random_state": 0})
    accuracies, alone = [], []
    n_splits = 5 if classifier == "SVC" else 10  # slow
    for train, test in StratifiedKFold(n_splits, shuffle=True, random_state=0).split(X, y):
        model = PowerTransformedClassifier(CLASSIFIERS[classifier], **options).fit(X[train], y[train])
        accuracies.append(model.score(X[test], y[test]))
        alone.append(np.mean(model.lambdas_ == 1.0))
    return 100.0 * float(np.mean(accuracies)), float(np.mean(alone))
