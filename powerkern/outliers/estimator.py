"""A detector of scikit-learn or PyOD that gives probabilities: the one module here that needs scikit-learn."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from powerkern._typing import FloatArray
from powerkern.outliers.scaling import fit_scaling


class OutlierProbability(OutlierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Outlier probabilities from a detector of scikit-learn or PyOD.

    Fits the detector, and then the map of `powerkern.outliers.outlier_probability` to its scores of the training data.

    Parameters
    ----------
    detector : estimator, optional
        Detector of scikit-learn (with ``score_samples`` or ``decision_function``) or PyOD (with ``decision_function``),
        or a pipeline that ends in one; it is cloned. Default: `sklearn.ensemble.IsolationForest`.
    center, scale, method, estimator
        As in `powerkern.outliers.outlier_probability`.
    threshold : float, default 0.5
        Probability above which `predict` says outlier.
    greater_is_outlier : bool, optional
        Whether high scores are outliers. By default as is the custom of the detector's library: low ones in
        scikit-learn, high ones in PyOD (known by ``decision_scores_``). Of a pipeline, its last step decides.
    n_threads : int, optional
        Threads for the map; default: all CPUs of this process.

    Attributes
    ----------
    detector_ : estimator
        The fitted detector.
    scaling_ : ScoreScaling
        The map from its scores to probabilities.
    probability_ : (n,) ndarray
        Probabilities of the training data.
    n_features_in_ : int
        Number of features, where the detector knows it.

    Notes
    -----
    A detector that keeps the scores of its training data (PyOD's ``decision_scores_``, the
    ``negative_outlier_factor_`` of `sklearn.neighbors.LocalOutlierFactor`), in a pipeline too, is taken at its word:
    scored anew, a row would be a neighbor of itself.

    A row whose score is NaN has no probability: `predict_proba`, `score_samples` and `decision_function` give NaN for
    it, and what has to decide, `predict` and `fit_predict`, raises a ValueError that names the row.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import LocalOutlierFactor
    >>> from powerkern.outliers import OutlierProbability
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = OutlierProbability(LocalOutlierFactor(novelty=True)).fit(X)
    >>> model.predict_proba([[0.0, 0.0], [5.0, 5.0]])[:, 1].round(3)
    array([0., 1.])
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        detector: Any = None,
        *,
        center: str = "mean",
        scale: str = "nmad",
        method: str = "gaussian",
        estimator: str = "rewml",
        threshold: float = 0.5,
        greater_is_outlier: bool | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.detector = detector
        self.center = center
        self.scale = scale
        self.method = method
        self.estimator = estimator
        self.threshold = threshold
        self.greater_is_outlier = greater_is_outlier
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the detector to X, and the map from its scores to probabilities.

        Parameters
        ----------
        X : (n, n_features) array-like
            Training data, as the detector takes them.
        y : object
            Passed to the detector where it is not None.

        Returns
        -------
        self
        """
        threshold: object = self.threshold
        if not (isinstance(threshold, Real) and 0.0 <= float(threshold) <= 1.0):
            raise ValueError(f"threshold must be a probability, from 0 to 1, got {threshold!r}")
        detector = self._unfitted()
        self.detector_ = detector.fit(X) if y is None else detector.fit(X, y)
        scores = self._training_scores(X)
        self.scaling_ = fit_scaling(
            scores, self.center, self.scale, self.method, estimator=self.estimator, n_threads=self.n_threads
        )
        self.probability_ = self.scaling_.probability(scores, n_threads=self.n_threads)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of being an inlier and of being an outlier.

        Parameters
        ----------
        X : (n, n_features) array-like
            Data.

        Returns
        -------
        (n, 2) ndarray
            The second column is that of `powerkern.outliers.outlier_probability`.
        """
        scores = self._scores(X)
        p = self.scaling_.probability(scores, n_threads=self.n_threads)
        return np.column_stack([1.0 - p, p])

    def score_samples(self, X: Any) -> FloatArray:
        """Minus the probability of being an outlier: in scikit-learn, low scores are outliers."""
        return -self.predict_proba(X)[:, 1]

    def decision_function(self, X: Any) -> FloatArray:
        """Threshold minus the probability of being an outlier: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """-1 for outliers (probability above the threshold), 1 for inliers; ValueError for a row without a score."""
        return self._labels(self.predict_proba(X)[:, 1])

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.int64]:
        """Fit, and judge the training data by `probability_`; ValueError for a row without a score."""
        return self._labels(self.fit(X, y).probability_)

    def _labels(self, probability: FloatArray) -> NDArray[np.int64]:
        unknown = np.isnan(probability)
        if unknown.any():
            raise ValueError(
                f"row {int(np.argmax(unknown))}: the probability is NaN (as are {np.count_nonzero(unknown)} of"
                f" {unknown.size}), so the row is neither an inlier nor an outlier; fill in or drop missing values"
                " first, or use predict_proba, which gives NaN"
            )
        return np.where(probability > self.threshold, -1, 1)

    # --- scores of detectors: here, the higher the more outlying -----------------------------------------

    def _training_scores(self, X: Any) -> FloatArray:
        """What the detector keeps, if it does: a neighbour of itself would be judged too kindly."""
        for name in ("decision_scores_", "negative_outlier_factor_"):
            kept = getattr(self._last_step, name, None)
            if kept is not None:
                return self._ascending(kept)
        return self._scores(X)

    def _scores(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        score = getattr(self.detector_, "score_samples", None) or getattr(self.detector_, "decision_function", None)
        if score is None:
            raise TypeError(
                f"{self.detector_!r} has no scores for new data: neither score_samples nor decision_function"
                " (LocalOutlierFactor needs novelty=True)"
            )
        return self._ascending(score(X))

    def _ascending(self, scores: Any) -> FloatArray:
        greater = self.greater_is_outlier
        if greater is None:
            greater = hasattr(self._last_step, "decision_scores_")
        values = np.asarray(scores, dtype=np.float64)
        return values if greater else -values

    @property
    def _last_step(self) -> Any:
        """The detector itself, at the end of pipelines."""
        step = self.detector_
        while isinstance(step, Pipeline):
            step = step.steps[-1][1]
        return step

    # --- conventions of scikit-learn ---------------------------------------------------------------------

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        detector = self._unfitted()
        if hasattr(detector, "__sklearn_tags__"):
            tags.input_tags = get_tags(detector).input_tags
        return tags

    def _unfitted(self) -> Any:
        return IsolationForest() if self.detector is None else clone(self.detector)

    @property
    def offset_(self) -> float:
        """What `decision_function` subtracts from `score_samples`."""
        return -self.threshold

    @property
    def n_features_in_(self) -> int:
        """Number of features that the detector was fitted to."""
        check_is_fitted(self)
        return int(self.detector_.n_features_in_)
