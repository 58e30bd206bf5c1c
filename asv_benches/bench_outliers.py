"""Outlier probabilities, measures and distances, compared with NumPy, statsmodels, SciPy, scikit-learn and PyOD."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special
import scipy.stats
from sklearn.covariance import EmpiricalCovariance

from powerkern.outliers import (
    brier_score,
    calibration_error,
    fit_scaling,
    ks_distance,
    mahalanobis,
    outlier_probability,
    refinement_error,
    sharpness_error,
    zscore,
)

from ._measure import PEER_COLUMNS, InTurns

try:
    import statsmodels.api as statsmodels
except ImportError:
    statsmodels = None

_REFERENCE = Path(__file__).resolve().parents[2] / "shared/refs/scaling_reference.json"

#: The rules of the reference, and how they are called here.
RULES: dict[str, dict[str, str]] = {
    "linear": {"method": "linear"},
    "huberT": {"method": "huber"},
    "tukey": {"method": "tukey"},
    **{
        f"{'tmean10' if center == 'trimmed' else center}+{scale}": {"center": center, "scale": scale}
        for center in ("mean", "median", "trimmed")
        for scale in ("sd", "nmad", "niqr")
    },
}


#: The measures of the reference.
MEASURES = {"brier": brier_score, "sharp": sharpness_error, "refine": refinement_error, "calib": calibration_error}
STRATA = {"": "all", "_out": "outliers", "_in": "inliers"}
#: Where rounding put a score of the reference into the wrong bin (tests/outliers/test_measures.py decides exactly).
_ROUNDED = {("Iris|KNN", "linear"), ("Iris|KNN", "mean+sd"), ("Glass|IForest", "tmean10+sd")}


def skewed(n: int, p: int, order: str = "C") -> np.ndarray:
    """Return scores like those of detectors: positive and skewed."""
    return np.asarray(np.random.default_rng(20240601).lognormal(size=(n, p)), order=order)


class Probabilities(InTurns):
    """Time to convert a matrix of scores to probabilities, relative to np.median of its columns."""

    params = (["mean+nmad", "mean+sd", "huberT", "linear"], ["C", "F"], [10_000], [200])
    param_names = ("rule", "order", "n", "p")

    def setup(self, rule: str, order: str, n: int, p: int) -> None:
        self.scores = skewed(n, p, order)
        outlier_probability(self.scores, **RULES[rule])  # compiles

    def track_medians(self, rule: str, order: str, n: int, p: int) -> float:
        calls = {
            "powerkern": lambda: outlier_probability(self.scores, **RULES[rule]),
            "np.median": lambda: np.median(self.scores, axis=0),
        }
        self.compare(calls)
        return self.ratio("powerkern", "np.median")


class Proposal2(InTurns):
    """Speed of Huber's proposal 2 relative to statsmodels, whose time is extrapolated from PEER_COLUMNS columns."""

    params = ([10_000], [200])
    param_names = ("n", "p")

    def setup(self, n: int, p: int) -> None:
        if statsmodels is None:
            raise NotImplementedError
        self.scores = skewed(n, p)
        self.few = np.ascontiguousarray(self.scores[:, :PEER_COLUMNS])
        fit_scaling(self.scores, method="huber")  # compiles

    def track_speedup(self, n: int, p: int) -> float:
        robust = statsmodels.robust
        peer = robust.scale.Huber(c=1.5, norm=robust.norms.HuberT(1.345), maxiter=200)
        calls = {
            "powerkern": lambda: fit_scaling(self.scores, method="huber", n_threads=1),
            "statsmodels": lambda: [peer(column) for column in self.few.T],
        }
        self.compare(calls)
        return p / PEER_COLUMNS * self.ratio("statsmodels", "powerkern")


class OverPyOD(InTurns):
    """Speed relative to PyOD's predict_proba, for the two rules that PyOD has, with one detector on one thread."""

    params = (["unify", "linear"], [10_000], [50])
    param_names = ("rule", "n", "p")

    def setup(self, rule: str, n: int, p: int) -> None:
        try:
            from pyod.models.base import BaseDetector
        except ImportError:
            raise NotImplementedError from None

        class Scores(BaseDetector):  # type: ignore[misc]  # PyOD has no types
            """A detector that returns its data as scores."""

            def __init__(self) -> None:
                super().__init__()

            def fit(self, X: np.ndarray, y: None = None) -> Any:
                self._set_n_classes(y)
                self.decision_scores_ = self.decision_function(X)
                self._process_decision_scores()
                return self

            def decision_function(self, X: np.ndarray) -> np.ndarray:
                return X.ravel()

        self.scores = skewed(n, p, "F")
        self.detector = Scores()
        self.options = {"scale": "sd"} if rule == "unify" else {"method": "linear"}
        outlier_probability(self.scores, **self.options)  # compiles

    def _pyod(self, rule: str) -> np.ndarray:
        columns = [self.detector.fit(c).predict_proba(c, method=rule)[:, 1] for c in self.scores.T[:, :, None]]
        return np.column_stack(columns)

    def track_speedup(self, rule: str, n: int, p: int) -> float:
        self.compare(
            {
                "powerkern": lambda: outlier_probability(self.scores, **self.options, n_threads=1),
                "PyOD": lambda: self._pyod(rule),
            }
        )
        return self.ratio("PyOD", "powerkern")

    def track_difference(self, rule: str, n: int, p: int) -> float:
        """Largest difference of any probability from PyOD's."""
        return float(abs(outlier_probability(self.scores, **self.options) - self._pyod(rule)).max())


class Accuracy:
    """Largest error of parameters (relative) or probabilities (absolute) over the vectors of the reference."""

    params = (list(RULES),)
    param_names = ("rule",)

    def setup(self, rule: str) -> None:
        if not _REFERENCE.exists():
            raise NotImplementedError
        self.vectors = json.loads(_REFERENCE.read_text())["vectors"].values()

    def track_worst(self, rule: str) -> float:
        return max(self._error(vector["scores"], vector["variants"][rule], rule) for vector in self.vectors)

    def _error(self, scores: list[float], expected: dict[str, Any], rule: str) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # vectors without scale
            scaling = fit_scaling(scores, **RULES[rule])
        sigma = scaling.sigma[0] + (scaling.mu[0] if rule == "linear" else 0.0)
        wanted = np.array(expected["params"])
        error = abs(np.array([scaling.mu[0], sigma]) - wanted) / np.maximum(abs(wanted), 1e-300)
        error[wanted == [scaling.mu[0], sigma]] = 0.0
        return float(max(error.max(), abs(scaling.probability(scores) - expected["p"]).max()))


class MeasureAccuracy:
    """Largest error of a measure over the vectors, rules and strata (all rows, outliers, inliers) of the reference."""

    params = (list(MEASURES),)
    param_names = ("measure",)

    def setup(self, measure: str) -> None:
        if not _REFERENCE.exists():
            raise NotImplementedError
        self.vectors = json.loads(_REFERENCE.read_text())["vectors"].items()

    def track_worst(self, measure: str) -> float:
        binned = measure in ("refine", "calib")
        return max(
            abs(MEASURES[measure](vector["labels"], rule["p"], stratum=stratum) - rule["measures"][measure + key])
            for name, vector in self.vectors
            for word, rule in vector["variants"].items()
            if not (binned and (name, word) in _ROUNDED)
            for key, stratum in STRATA.items()
        )


class Distances(InTurns):
    """Speed of distances relative to SciPy or scikit-learn, for all columns or rows of a matrix."""

    params = (["zscore", "ks_distance", "mahalanobis"],)
    param_names = ("distance",)

    def setup(self, distance: str) -> None:
        self.x = skewed(20_000, 20)
        peer, ours = self._pair(distance)
        peer(), ours()

    def _pair(self, distance: str) -> tuple[Any, Any]:
        x = self.x
        return {
            "zscore": (lambda: scipy.stats.zscore(x), lambda: zscore(x)),
            "ks_distance": (
                lambda: [scipy.stats.kstest(c, scipy.stats.norm(c.mean(), c.std(ddof=1)).cdf) for c in x.T],
                lambda: ks_distance(x),
            ),
            "mahalanobis": (lambda: EmpiricalCovariance().fit(x).mahalanobis(x), lambda: mahalanobis(x)),
        }[distance]

    def track_speedup(self, distance: str) -> float:
        peer, ours = self._pair(distance)
        self.compare({"peer": peer, "powerkern": ours})
        return self.ratio("peer", "powerkern")


class Measures:
    """Seconds to compute a calibration error, averaged over 16 numbers of bins."""

    params = ([1_000, 100_000],)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        rng = np.random.default_rng(20240601)
        self.p = rng.uniform(size=n) ** 3
        self.y = rng.uniform(size=n) < self.p
        calibration_error(self.y, self.p)  # compiles

    def time_calibration_error(self, n: int) -> None:
        calibration_error(self.y, self.p)
