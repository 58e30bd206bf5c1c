"""Outlier probabilities from detectors of scikit-learn or PyOD."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr
from sklearn.base import BaseEstimator, OutlierMixin, clone, is_outlier_detector
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import Pipeline
from sklearn.utils import ClassifierTags, Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from powerkern._estimators.base import Estimator
from powerkern._input.arrays import Matrix, as_choice, is_real
from powerkern._input.messages import shown, suggest_in_constructor
from powerkern._typing import FloatArray
from powerkern.location import location_scale
from powerkern.outliers.combining import COMBINATIONS, combine_probabilities
from powerkern.outliers.scaling import fit_scaling_to_matrix
from powerkern.sklearn.reading import note_features

#: Probability above which rows are outliers if the detector has no limit: beyond three standard deviations.
_CAUTIOUS = 0.997
#: Scores are clipped to this, so that differences do not overflow.
_HUGE = np.finfo(np.float64).max / 2.0


@suggest_in_constructor
@dataclass(eq=False, repr=False)
class OutlierProbability(OutlierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Outlier probabilities from detectors of scikit-learn or PyOD.

    `fit` fits the detector, then the map of `powerkern.outliers.outlier_probability` to its scores of the training
    data.

    Parameters
    ----------
    detector : estimator or list of estimators, optional
        Detector of scikit-learn (with ``score_samples`` or ``decision_function``) or PyOD (with ``decision_function``),
        or a pipeline that ends in a detector; clones are fitted. Several detectors, of either library, are combined.
        The default is `sklearn.ensemble.IsolationForest`.
    center, scale, method, trim, estimator
        As in `powerkern.outliers.outlier_probability`.
    combination : str, default "mean"
        Combination of several detectors, as in `powerkern.outliers.combine_probabilities`.
    contamination : "auto" or float, default "auto"
        The rows that `predict` declares outliers:

        "auto"
            The rows beyond the limit of the detector, which depends on its ``contamination`` or ``nu``. If the limit is
            a constant (``contamination="auto"`` in scikit-learn), the probability must also exceed 0.997. If there is
            no limit, rows with a probability above 0.997.
        float
            This fraction of the training rows, namely those with the highest scores, and new rows with scores as high.
            The fraction is above 0 and at most 1/2; fewer rows are outliers if scores are tied. Probabilities are
            calibrated to this fraction, as in `outlier_probability`.
    threshold : float, optional
        Alternative to `contamination`: rows whose probability exceeds `threshold` are outliers. By the Gaussian rule, a
        quarter of normal scores without outliers have a probability above 0.5, 2.5 % above 0.95, and 0.13 % above
        0.997.
    greater_is_outlier : bool, optional
        Whether high scores are outlying. The default follows the library of the detector: low scores are outlying in
        scikit-learn, high ones in PyOD (recognized by ``decision_scores_``). For a pipeline, the last step decides.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.

    Attributes
    ----------
    detector_ : estimator or list of estimators
        The fitted detector or detectors.
    scaling_ : ScoreScaling
        The map from scores to probabilities.
    probability_ : (n,) ndarray
        Probabilities of the training data.
    contamination_ : float
        Fraction of outliers in the training data: the given one, or the fraction of rows beyond the limit.
    offset_ : float
        ``decision_function(X) = score_samples(X) - offset_``.
    n_features_in_, feature_names_in_
        Number and names of the features, as in scikit-learn.

    Notes
    -----
    If a detector stores scores of the training data (PyOD's ``decision_scores_``, the ``negative_outlier_factor_`` of
    `sklearn.neighbors.LocalOutlierFactor`), these are used, in a pipeline too. If the training data were scored again,
    each row would be its own neighbor.

    `predict`, `score_samples` and `decision_function` use the scores of a detector, which rank even the rows whose
    probability is 1. With `threshold`, they use probabilities. For several detectors, they combine
    ``Phi((s - l)/sigma)`` over the detectors, where s is the score of a detector, l its limit (for a given
    `contamination`, the quantile of its training scores) and sigma the nMAD of its training scores. A row is an outlier
    if the combination exceeds 1/2. It always does if every detector calls the row an outlier, and never does if none
    does. For a given `contamination`, the quantile of the combination over the training data takes the place of 1/2.

    A row whose score is NaN has no probability: `predict_proba`, `score_samples` and `decision_function` return NaN,
    and `predict` and `fit_predict` raise a ValueError that names the row.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import LocalOutlierFactor
    >>> from powerkern.sklearn import OutlierProbability
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = OutlierProbability(LocalOutlierFactor(novelty=True)).fit(X)
    >>> model.predict_proba([[0.0, 0.0], [5.0, 5.0]])[:, 1].round(3)
    array([0., 1.])
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    >>> model.set_params(contamination=0.05).fit_predict(X).tolist().count(-1)
    10
    """

    detector: Any = None
    _: KW_ONLY
    center: str | ArrayLike = "mean"
    scale: str = "nmad"
    method: str = "gaussian"
    trim: float = 0.1
    estimator: Estimator | str = "robust"
    combination: str = "mean"
    contamination: float | str = "auto"
    threshold: float | None = None
    greater_is_outlier: bool | None = None
    n_threads: int | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the detector to `X`, and then the map from its scores to probabilities.

        `X` may have any form that the detector accepts. A `y` that is not None is passed to the detector.
        """
        self._check_decision()
        note_features(self, X)  # sets names and number of the features
        given = () if y is None else (y,)
        fitted = [detector.fit(X, *given) for detector in self._clone_detectors()]
        self.detector_ = fitted if self._is_several else fitted[0]
        scores = np.column_stack([self._training_scores(detector, X) for detector in fitted])
        self.scaling_ = fit_scaling_to_matrix(
            Matrix(scores, _name_detectors(fitted), False),
            self.center,
            self.scale,
            self.method,
            contamination=None if self.contamination == "auto" else float(self.contamination),
            trim=self.trim,
            estimator=self.estimator,
            n_threads=self.n_threads,
        )
        self.probability_ = self._combine_probabilities(scores)
        self._set_limits(scores)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of being an inlier (column 0) and of being an outlier (column 1), (n, 2)."""
        p = self._combine_probabilities(self._scores(X))
        return np.column_stack([1.0 - p, p])

    def score_samples(self, X: Any) -> FloatArray:
        """Return minus the score, probability or combination that `predict` uses: outliers have low values."""
        return -self._outlyingness(self._scores(X))

    def decision_function(self, X: Any) -> FloatArray:
        """Return ``score_samples(X) - offset_``; negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return -1 for outliers and 1 for inliers, by `contamination` or `threshold`; raise if a score is NaN."""
        return self._classify_rows(self._outlyingness(self._scores(X)))

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.int64]:
        """Call `fit`, and return -1 for outliers and 1 for inliers in the training data.

        This method uses the scores from which `probability_` was computed.
        """
        return self._classify_rows(self.fit(X, y)._training)

    # --- decisions --------------------------------------------------------------------------------------------

    def _check_decision(self) -> None:
        """Raise unless `combination`, `contamination` and `threshold` are valid."""
        as_choice("combination", self.combination, COMBINATIONS)
        share: object = self.contamination
        if not (share == "auto" if isinstance(share, str) else is_real(share) and 0.0 < share <= 0.5):
            raise ValueError(f"contamination must be 'auto' or a fraction above 0, at most 0.5, got {shown(share)}")
        limit: object = self.threshold
        if limit is None:
            return
        if not (is_real(limit) and 0.0 <= float(limit) <= 1.0):
            raise ValueError(f"threshold must be a probability, from 0 to 1, got {shown(limit)}")
        if share != "auto":
            raise ValueError(
                f"threshold={limit!r} and contamination={share!r} both define outliers; pass only one of them"
            )

    def _set_limits(self, scores: FloatArray) -> None:
        """Set the limits beyond which rows are outliers, given the training scores, (n, k), of k detectors."""
        given, self._by_probability = self.contamination != "auto", self.threshold is not None
        if given:
            self._limits = np.array([_upper_quantile(column, float(self.contamination)) for column in scores.T])
        else:
            self._limits = np.array([self._detector_limit(detector, j) for j, detector in enumerate(self._detectors)])
        self._column_units = np.maximum(_nmad(scores), np.finfo(np.float64).tiny)
        self._training = self._outlyingness(scores)
        if self._by_probability:
            limit = float(self.threshold)  # type: ignore[arg-type]
        elif not self._is_several:
            limit = float(self._limits[0])
        elif given:  # a value of 1 is always an outlier
            limit = min(_upper_quantile(self._training, float(self.contamination)), float(np.nextafter(1.0, 0.0)))
        else:
            limit = 0.5
        self.offset_ = -limit
        known = self._training[~np.isnan(self._training)]
        self.contamination_ = float(self.contamination) if given else float((known > limit).sum() / max(known.size, 1))

    def _detector_limit(self, detector: Any, j: int) -> float:
        """Return the score above which a row is an outlier by `detector`, at position `j`.

        A constant limit is increased to the score whose probability is 0.997, unless the limit is larger.
        """
        step = _last_step(detector)
        own = getattr(step, "threshold_" if hasattr(step, "decision_scores_") else "offset_", None)
        limit = -np.inf
        if own is not None and np.size(own) == 1:  # some detectors of scikit-learn store an array of one
            limit = float(self._orient_scores(step, own).item())
        elif is_outlier_detector(step):
            return 0.0
        if limit > -np.inf and getattr(step, "contamination", None) != "auto":
            return limit
        return max(limit, float(self.scaling_.score_at(_CAUTIOUS)[j]))

    def _classify_rows(self, score: FloatArray) -> NDArray[np.int64]:
        """Return -1 for scores, (n,), beyond the limit, and 1 for all others; raise ValueError if a score is NaN."""
        unknown = np.isnan(score)
        if unknown.any():
            raise ValueError(
                f"row {int(np.argmax(unknown))}: the probability is NaN (as are {np.count_nonzero(unknown)} of"
                f" {unknown.size}), so the row is neither an inlier nor an outlier; fill in or drop missing values"
                " first, or use predict_proba, which gives NaN"
            )
        return np.where(score > -self.offset_, -1, 1)

    # --- scores: in these methods high is outlying -------------------------------------------------------------

    def _combine_probabilities(self, scores: FloatArray) -> FloatArray:
        """Return the probabilities of rows, (n,), combined over the detectors; `scores` has shape (n, k)."""
        p: FloatArray = self.scaling_.probability(scores, n_threads=self.n_threads)
        if self._is_several:
            return np.asarray(combine_probabilities(p, self.combination))
        return p[:, 0]

    def _outlyingness(self, scores: FloatArray) -> FloatArray:
        """Return the outlyingness of rows, (n,), given their scores, (n, k), by k detectors; outliers have high values.

        It is the probability of an outlier if `threshold` is given, otherwise the score of a single detector or a
        combination of the scores of several detectors; see the Notes of the class.
        """
        if self._by_probability:
            return self._combine_probabilities(scores)
        if not self._is_several:
            return scores[:, 0]
        with np.errstate(over="ignore"):
            margins = (scores - self._limits) / self._column_units
        return np.asarray(combine_probabilities(ndtr(margins), self.combination))

    def _training_scores(self, detector: Any, X: Any) -> FloatArray:
        """Return the scores of the training data by one detector: the stored ones if there are any, else new ones.

        In new scores, a row may be its own neighbor and seem less outlying.
        """
        step = _last_step(detector)
        for name in ("decision_scores_", "negative_outlier_factor_"):
            kept = getattr(step, name, None)
            if kept is not None:
                return self._orient_scores(step, kept)
        return self._new_scores(detector, X)

    def _scores(self, X: Any) -> FloatArray:
        """Return the scores of new data, a column for each detector."""
        check_is_fitted(self)
        scores = np.column_stack([self._new_scores(detector, X) for detector in self._detectors])
        if not all(
            hasattr(detector, "feature_names_in_") for detector in self._detectors
        ):  # otherwise the detectors check names
            note_features(self, X, reset=False)
        return scores

    def _new_scores(self, detector: Any, X: Any) -> FloatArray:
        """Return the scores of `X` by one detector; raise TypeError if it cannot score new data."""
        score = getattr(detector, "score_samples", None) or getattr(detector, "decision_function", None)
        if score is None:
            raise TypeError(
                f"{detector!r} has no scores for new data: neither score_samples nor decision_function"
                " (LocalOutlierFactor needs novelty=True)"
            )
        return self._orient_scores(_last_step(detector), score(X))

    def _orient_scores(self, step: Any, scores: Any) -> FloatArray:
        """Return scores as float64, negated if low scores are outlying; `step` is the result of `_last_step`."""
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
        """The fitted detectors, as a list."""
        return list(self.detector_) if self._is_several else [self.detector_]

    def _clone_detectors(self) -> list[Any]:
        """Return unfitted clones of the detectors."""
        if self.detector is None:
            return [IsolationForest()]
        if not self._is_several:
            return [clone(self.detector)]
        if not self.detector:
            raise ValueError("detector is an empty list; give at least one detector")
        return [clone(detector) for detector in self.detector]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags(multi_class=False)  # as `predict_proba` returns
        known = [get_tags(one).input_tags for one in self._clone_detectors() if hasattr(one, "__sklearn_tags__")]
        if known:
            tags.input_tags = known[0]
            tags.input_tags.sparse = all(one.sparse for one in known)
            tags.input_tags.allow_nan = all(one.allow_nan for one in known)
        return tags


def _name_detectors(detectors: list[Any]) -> list[str]:
    """Return a name for each detector: its class, with a number if there are several of that class."""
    kinds = [type(_last_step(detector)).__name__ for detector in detectors]
    return [kind if kinds.count(kind) == 1 else f"{kind} {kinds[: j + 1].count(kind)}" for j, kind in enumerate(kinds)]


def _last_step(detector: Any) -> Any:
    """Return the last step of a pipeline, or the detector itself."""
    while isinstance(detector, Pipeline):
        detector = detector.steps[-1][1]
    return detector


def _upper_quantile(values: FloatArray, share: float) -> float:
    """Return the quantile at ``1 - share`` of the values that are not NaN, as scikit-learn and PyOD compute it."""
    known = values[~np.isnan(values)]
    return -float(np.percentile(-np.clip(known, -_HUGE, _HUGE), 100.0 * share)) if known.size else np.nan


def _nmad(scores: FloatArray) -> FloatArray:
    """Return the normalized MAD of the finite scores of each detector."""
    finite = np.where(np.isinf(scores), np.nan, scores)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit of the map has warned of detectors without scores
        return location_scale(finite, "median-mad").scale
