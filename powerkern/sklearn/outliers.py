"""A detector of scikit-learn or PyOD that gives probabilities: the one module here that needs scikit-learn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin, clone, is_outlier_detector
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import Pipeline
from sklearn.utils import ClassifierTags, Tags, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from powerkern._estimators.estimators import Estimator
from powerkern._input.arrays import as_choice, is_real
from powerkern._typing import FloatArray
from powerkern.outliers.combining import COMBINATIONS, combine_probabilities
from powerkern.outliers.scaling import fit_scaling

#: Probability above which rows are outliers where nothing says how many there are: some three standard deviations.
_CAUTIOUS = 0.997
#: Confidence beyond which a label does not change with the training data, for all practical purposes: 1 - exp(-32).
_STABLE = 1.0 - np.exp(-32.0)
#: Scores beyond this are as good as infinite; differences do not overflow.
_HUGE = np.finfo(np.float64).max / 2.0


class OutlierProbability(OutlierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Outlier probabilities from detectors of scikit-learn or PyOD.

    Fits the detector, and then the map of `powerkern.outliers.outlier_probability` to its scores of the training data.

    Parameters
    ----------
    detector : estimator or list of estimators, optional
        Detector of scikit-learn (with ``score_samples`` or ``decision_function``) or PyOD (with ``decision_function``),
        or a pipeline that ends in one; it is cloned. The probabilities of several, of either library, are combined.
        Default: `sklearn.ensemble.IsolationForest`.
    center, scale, method, trim, estimator
        As in `powerkern.outliers.outlier_probability`.
    combination : str, default "mean"
        How several detectors are combined, as in `powerkern.outliers.combine_probabilities`.
    contamination : "auto" or float, default "auto"
        Which rows `predict` calls outliers.

        "auto"
            Those that the detector itself does, by its own ``contamination`` or ``nu``. Where it has none, but a
            constant (``contamination="auto"`` in scikit-learn), those of these that have a probability above 0.997 too;
            where it has no decision of its own, all with such a probability. Several detectors: as many rows of the
            training data as they call outliers in this way on average, those with the highest probabilities.
        float
            This fraction of the training data, above 0 and at most 1/2, those with the highest scores; of new data,
            those with scores above these; fewer where scores are tied. ``1 - q`` for outliers above the quantile q.
    threshold : float, optional
        In place of `contamination`: outliers are rows with a probability above this one. Of normal scores without
        outliers, the Gaussian rule gives a quarter a probability above 0.5, 2.5 % above 0.95, 0.13 % above 0.997.
    greater_is_outlier : bool, optional
        Whether high scores are outliers. By default as is the custom of the detector's library: low ones in
        scikit-learn, high ones in PyOD (known by ``decision_scores_``). Of a pipeline, its last step decides.
    n_threads : int, optional
        Threads for the map; default: all CPUs of this process.

    Attributes
    ----------
    detector_ : estimator or list of estimators
        The fitted detector.
    scaling_ : ScoreScaling
        The map from its scores to probabilities.
    probability_ : (n,) ndarray
        Probabilities of the training data.
    contamination_ : float
        The fraction of the training data that is outlying: what was given, or what came out.
    offset_ : float
        ``decision_function(X) = score_samples(X) - offset_``.
    n_features_in_ : int
        Number of features, where X has columns.
    feature_names_in_ : ndarray of str
        Names of the features, where X has any.

    Notes
    -----
    A detector that keeps the scores of its training data (PyOD's ``decision_scores_``, the
    ``negative_outlier_factor_`` of `sklearn.neighbors.LocalOutlierFactor`), in a pipeline too, is taken at its word:
    scored anew, a row would be a neighbor of itself.

    Where probabilities reach 1, scores still tell one outlier from another. So `predict`, `score_samples` and
    `decision_function` go by scores; by probabilities for several detectors, which are then the combined ones, for a
    detector without a decision of its own, and with `threshold`. Of several detectors, all rows with a combined
    probability of 1 are outliers, even if they are more than `contamination` says.

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
    >>> model.set_params(contamination=0.05).fit_predict(X).tolist().count(-1)
    10
    """

    def __init__(
        self,
        detector: Any = None,
        *,
        center: str | ArrayLike = "mean",
        scale: str = "nmad",
        method: str = "gaussian",
        trim: float = 0.1,
        estimator: Estimator | str = "rewml",
        combination: str = "mean",
        contamination: float | str = "auto",
        threshold: float | None = None,
        greater_is_outlier: bool | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.detector = detector
        self.center = center
        self.scale = scale
        self.method = method
        self.trim = trim
        self.estimator = estimator
        self.combination = combination
        self.contamination = contamination
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
        self._check_decision()
        validate_data(self, X, skip_check_array=True)  # names and number of the features
        given = () if y is None else (y,)
        fitted = [detector.fit(X, *given) for detector in self._unfitted()]
        self.detector_ = fitted if self._is_several else fitted[0]
        scores = np.column_stack([self._training_scores(detector, X) for detector in fitted])
        self.scaling_ = fit_scaling(
            scores,
            self.center,
            self.scale,
            self.method,
            trim=self.trim,
            estimator=self.estimator,
            n_threads=self.n_threads,
        )
        self.probability_ = self._combined(scores)
        self._decide(scores)
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
        p = self._combined(self._scores(X))
        return np.column_stack([1.0 - p, p])

    def score_samples(self, X: Any) -> FloatArray:
        """Minus what `predict` goes by, score or probability: in scikit-learn, low is outlying."""
        return -self._outlyingness(self._scores(X))

    def decision_function(self, X: Any) -> FloatArray:
        """``score_samples(X) - offset_``: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any, return_confidence: bool = False) -> NDArray[np.int64] | tuple[Any, ...]:
        """-1 for outliers, 1 for inliers, as `contamination` or `threshold` says.

        Parameters
        ----------
        X : (n, n_features) array-like
            Data.
        return_confidence : bool, default False
            Whether to return `predict_confidence` too.

        Returns
        -------
        (n,) ndarray, or two of them

        Raises
        ------
        ValueError
            A row has no score.
        """
        score = self._outlyingness(self._scores(X))
        labels = self._labels(score)
        return (labels, self._confidence(score, labels)) if return_confidence else labels

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.int64]:
        """Fit, and judge the training data by the scores of `probability_`; ValueError for a row without a score."""
        return self._labels(self.fit(X, y)._training)

    def predict_confidence(self, X: Any) -> FloatArray:
        """How sure each label of `predict` is: the probability that another sample of training data would give it.

        With n training rows, of which m have a score of at most s and k are called outliers, a row with the score s
        would be an outlier with probability ``P(Bin(n, (1 + m)/(2 + n)) > n - k)`` [1]_.

        Parameters
        ----------
        X : (n, n_features) array-like
            Data.

        Returns
        -------
        (n,) ndarray
            Between 0 and 1; near 1/2 at the limit between outliers and inliers.

        Raises
        ------
        ValueError
            A row has no score.

        References
        ----------
        .. [1] L. Perini, V. Vercruyssen, J. Davis, "Quantifying the confidence of anomaly detectors in their
           example-wise predictions", ECML PKDD 2020, equation 4.
        """
        score = self._outlyingness(self._scores(X))
        return self._confidence(score, self._labels(score))

    def predict_with_rejection(self, X: Any, confidence: float | None = None) -> NDArray[np.int64]:
        """As `predict`, but 0, undecided, for rows whose label is not sure.

        Parameters
        ----------
        X : (n, n_features) array-like
            Data.
        confidence : float, optional
            Rows are decided where `predict_confidence` is above this, from 1/2 to below 1. By default ``1 - exp(-32)``,
            beyond which a label is stable for certain [1]_, as in PyOD.

        Returns
        -------
        (n,) ndarray
            -1, 0 or 1; PyOD has 1, -2 and 0.

        Raises
        ------
        ValueError
            A row has no score, or a confidence out of range.

        References
        ----------
        .. [1] L. Perini, J. Davis, "Unsupervised anomaly detection with rejection", NeurIPS 2023.
        """
        limit = _STABLE if confidence is None else confidence
        if not is_real(limit) or not 0.5 <= limit < 1.0:
            raise ValueError(f"confidence must be at least 0.5 and below 1, got {confidence!r}")
        labels, sure = self.predict(X, return_confidence=True)
        return np.where(sure > limit, labels, 0)

    # --- decisions --------------------------------------------------------------------------------------------

    def _check_decision(self) -> None:
        as_choice("combination", self.combination, COMBINATIONS)
        share: object = self.contamination
        if not (share == "auto" if isinstance(share, str) else is_real(share) and 0.0 < share <= 0.5):
            raise ValueError(f"contamination must be 'auto' or a fraction above 0, at most 0.5, got {share!r}")
        limit: object = self.threshold
        if limit is None:
            return
        if not (is_real(limit) and 0.0 <= float(limit) <= 1.0):
            raise ValueError(f"threshold must be a probability, from 0 to 1, got {limit!r}")
        if share != "auto":
            raise ValueError(f"threshold={limit!r} and contamination={share!r} both say what an outlier is; give one")

    def _decide(self, scores: FloatArray) -> None:
        """Where outliers begin, from the scores of the training data by each detector."""
        own = [self._own_limit(detector, j) for j, detector in enumerate(self._detectors)]
        given, named = self.contamination != "auto", self.threshold is not None
        self._by_probability = self._is_several or named or not (given or own[0] is not None)
        self._training = self._outlyingness(scores)
        if named:
            limit = float(self.threshold)  # type: ignore[arg-type]
        elif given:
            limit = self._upper_quantile(float(self.contamination))
        elif self._is_several:
            limit = self._upper_quantile(self._own_share(own, scores))
        else:
            limit = _CAUTIOUS if own[0] is None else own[0]
        self.offset_ = -limit
        known = self._training[~np.isnan(self._training)]
        self.contamination_ = float(self.contamination) if given else float((known > limit).sum() / max(known.size, 1))

    def _own_limit(self, detector: Any, j: int) -> float | None:
        """The score above which detector j says outlier, with caution; None where it has no say."""
        step = _last_step(detector)
        own = getattr(step, "threshold_" if hasattr(step, "decision_scores_") else "offset_", None)
        if own is None or np.size(own) != 1:  # some of scikit-learn have an array of one
            return 0.0 if is_outlier_detector(step) else None
        limit = float(self._ascending(step, own).item())
        constant = getattr(step, "contamination", None) == "auto"
        return max(limit, float(self.scaling_.score_at(_CAUTIOUS)[j])) if constant else limit

    def _own_share(self, own: list[float | None], scores: FloatArray) -> float:
        """The fraction of the training data that detectors call outliers, on average."""
        p = self.scaling_.probability(scores, n_threads=self.n_threads)
        flagged = [p[:, j] > _CAUTIOUS if limit is None else scores[:, j] > limit for j, limit in enumerate(own)]
        return float(np.mean(flagged))

    def _upper_quantile(self, share: float) -> float:
        """What this share of the training data is above, as scikit-learn and PyOD have it."""
        known = self._training[~np.isnan(self._training)]
        if not known.size:
            return np.nan
        limit = -float(np.percentile(-np.clip(known, -_HUGE, _HUGE), 100.0 * share))
        # probabilities of 1 are those of outliers, however many there are
        return min(limit, float(np.nextafter(1.0, 0.0))) if self._by_probability else limit

    def _labels(self, score: FloatArray) -> NDArray[np.int64]:
        unknown = np.isnan(score)
        if unknown.any():
            raise ValueError(
                f"row {int(np.argmax(unknown))}: the probability is NaN (as are {np.count_nonzero(unknown)} of"
                f" {unknown.size}), so the row is neither an inlier nor an outlier; fill in or drop missing values"
                " first, or use predict_proba, which gives NaN"
            )
        return np.where(score > -self.offset_, -1, 1)

    def _confidence(self, score: FloatArray, labels: NDArray[np.int64]) -> FloatArray:
        from scipy.special import betainc  # costs a third of the time to import powerkern

        known = np.sort(self._training[~np.isnan(self._training)])
        n = known.size
        k = int(n * self.contamination_ + 1e-9)  # rounding aside
        p = (1.0 + np.searchsorted(known, score, side="right")) / (2.0 + n)
        if k == 0:
            return np.where(labels < 0, 0.0, 1.0)
        sure: FloatArray = np.where(labels < 0, betainc(n - k + 1.0, k, p), betainc(k, n - k + 1.0, 1.0 - p))
        return sure

    # --- scores: here, the higher the more outlying ------------------------------------------------------------

    def _combined(self, scores: FloatArray) -> FloatArray:
        p: FloatArray = self.scaling_.probability(scores, n_threads=self.n_threads)
        if self._is_several:
            return combine_probabilities(p, self.combination)
        return p[:, 0]

    def _outlyingness(self, scores: FloatArray) -> FloatArray:
        """What decides."""
        return self._combined(scores) if self._by_probability else scores[:, 0]

    def _training_scores(self, detector: Any, X: Any) -> FloatArray:
        """What the detector keeps, if it does: a neighbor of itself would be judged too kindly."""
        step = _last_step(detector)
        for name in ("decision_scores_", "negative_outlier_factor_"):
            kept = getattr(step, name, None)
            if kept is not None:
                return self._ascending(step, kept)
        return self._new_scores(detector, X)

    def _scores(self, X: Any) -> FloatArray:
        """The scores of new data, a column for each detector."""
        check_is_fitted(self)
        scores = np.column_stack([self._new_scores(detector, X) for detector in self._detectors])
        if not all(hasattr(detector, "feature_names_in_") for detector in self._detectors):  # which have looked
            validate_data(self, X, reset=False, skip_check_array=True)
        return scores

    def _new_scores(self, detector: Any, X: Any) -> FloatArray:
        score = getattr(detector, "score_samples", None) or getattr(detector, "decision_function", None)
        if score is None:
            raise TypeError(
                f"{detector!r} has no scores for new data: neither score_samples nor decision_function"
                " (LocalOutlierFactor needs novelty=True)"
            )
        return self._ascending(_last_step(detector), score(X))

    def _ascending(self, step: Any, scores: Any) -> FloatArray:
        greater = self.greater_is_outlier
        if greater is None:
            greater = hasattr(step, "decision_scores_")
        values = np.asarray(scores, dtype=np.float64)
        return values if greater else -values

    # --- detectors ---------------------------------------------------------------------------------------------

    @property
    def _is_several(self) -> bool:
        return isinstance(self.detector, list | tuple)

    @property
    def _detectors(self) -> list[Any]:
        """The fitted ones."""
        return list(self.detector_) if self._is_several else [self.detector_]

    def _unfitted(self) -> list[Any]:
        if self.detector is None:
            return [IsolationForest()]
        if not self._is_several:
            return [clone(self.detector)]
        if not self.detector:
            raise ValueError("detector is an empty list; give at least one detector")
        return [clone(detector) for detector in self.detector]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags(multi_class=False)  # what `predict_proba` gives
        known = [get_tags(one).input_tags for one in self._unfitted() if hasattr(one, "__sklearn_tags__")]
        if known:
            tags.input_tags = known[0]
            tags.input_tags.sparse = all(one.sparse for one in known)
            tags.input_tags.allow_nan = all(one.allow_nan for one in known)
        return tags


def _last_step(detector: Any) -> Any:
    """The detector itself, at the end of pipelines."""
    while isinstance(detector, Pipeline):
        detector = detector.steps[-1][1]
    return detector
