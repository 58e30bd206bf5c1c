"""The estimators of powerkern.sklearn compared with scikit-learn's."""

from __future__ import annotations

import os
import warnings
from typing import Any

import joblib
import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer as Peer

import powerkern as pk
from powerkern.sklearn import PowerTransformer

from ._measure import FAMILIES, PEER_COLUMNS, InTurns, matrix

JOBS = ["fit", "transform", "inverse_transform", "fit_transform"]
LIBRARIES = {"powerkern": PowerTransformer, "scikit-learn": Peer}


class Time:
    """Seconds of one method of an estimator."""

    params = (JOBS, FAMILIES, list(LIBRARIES), [10_000], [PEER_COLUMNS])
    param_names = ("job", "method", "library", "n", "p")

    def setup(self, job: str, method: str, library: str, n: int, p: int) -> None:
        x = matrix(method, n, p)
        self.transformer = LIBRARIES[library](method).fit(x)
        self.input = self.transformer.transform(x) if job == "inverse_transform" else x

    def time_job(self, job: str, method: str, library: str, n: int, p: int) -> None:
        getattr(self.transformer, job)(self.input)


class Speedup(InTurns):
    """Speed of a method relative to scikit-learn's; powerkern uses all threads, scikit-learn its defaults."""

    params = (JOBS, FAMILIES, [10_000], [PEER_COLUMNS])
    param_names = ("job", "method", "n", "p")

    def setup(self, job: str, method: str, n: int, p: int) -> None:
        x = matrix(method, n, p)
        self.ours, self.peer = PowerTransformer(method).fit(x), Peer(method).fit(x)
        self.input = self.ours.transform(x) if job == "inverse_transform" else x

    def track_speedup(self, job: str, method: str, n: int, p: int) -> float:
        calls = {
            "powerkern": lambda: getattr(self.ours, job)(self.input),
            "scikit-learn": lambda: getattr(self.peer, job)(self.input),
        }
        self.compare(calls)
        return self.ratio("scikit-learn", "powerkern")


class Overhead(InTurns):
    """Time that the estimator takes beyond the function it calls, as a fraction of the function's time."""

    params = (["fit", "transform"], [10_000], [100])
    param_names = ("job", "n", "p")

    def setup(self, job: str, n: int, p: int) -> None:
        self.x = matrix("yeo-johnson", n, p)
        self.transformer, self.fit = PowerTransformer().fit(self.x), pk.fit(self.x)

    def track_share(self, job: str, n: int, p: int) -> float:
        function = {"fit": lambda: pk.fit(self.x), "transform": lambda: self.fit.transform(self.x)}[job]
        self.compare({"estimator": lambda: getattr(self.transformer, job)(self.x), "function": function})
        return self.ratio("estimator", "function") - 1.0


class Lambdas:
    """Largest difference of lambda from scikit-learn's, mostly scikit-learn's error (see bench_fit.Accuracy)."""

    params = (FAMILIES, [10_000], [PEER_COLUMNS])
    param_names = ("method", "n", "p")

    def setup(self, method: str, n: int, p: int) -> None:
        self.x = matrix(method, n, p)

    def track_difference(self, method: str, n: int, p: int) -> float:
        return float(np.abs(PowerTransformer(method).fit(self.x).lambdas_ - Peer(method).fit(self.x).lambdas_).max())


class GridSearch(InTurns):
    """A grid search over a pipeline in two worker processes: n_threads=None compared with n_threads=1."""

    params = ([5_000], [40])
    param_names = ("n", "p")

    def setup(self, n: int, p: int) -> None:
        self.x, self.y = matrix("yeo-johnson", n, p), np.arange(n) % 2
        self.search(None)  # starts the workers, compiles

    def search(self, n_threads: int | None) -> Any:
        columns = ColumnTransformer([("skewed", PowerTransformer(n_threads=n_threads), slice(0, self.x.shape[1]))])
        pipeline = make_pipeline(columns, LinearDiscriminantAnalysis())
        grid = {"columntransformer__skewed__standardize": [True, False]}
        return GridSearchCV(pipeline, grid, cv=2, n_jobs=2).fit(self.x, self.y)

    def track_ratio(self, n: int, p: int) -> float:
        """Time of n_threads=None over n_threads=1; above 1, the workers compete for the CPUs."""
        self.compare({"None": lambda: self.search(None), "1": lambda: self.search(1)})
        return self.ratio("None", "1")

    def track_threads(self, n: int, p: int) -> float:
        """Number of threads of all workers, relative to the number of CPUs."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            each = joblib.Parallel(n_jobs=2)(joblib.delayed(_threads)() for _ in range(2))
        return sum(each) / (os.cpu_count() or 1)


def _threads() -> int:
    from powerkern._engine.threads import default_threads

    return default_threads()
