"""Outlier probabilities from detectors of scikit-learn and PyOD."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import SGDOneClassSVM
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from powerkern.outliers import combine_probabilities, outlier_probability
from powerkern.sklearn import OutlierProbability
from powerkern.sklearn.outliers import _name_detectors, _upper_quantile

rng = np.random.default_rng(20240601)
X = np.vstack([rng.normal(size=(190, 2)), rng.normal(8.0, 1.0, size=(10, 2))])
NEW = np.array([[0.0, 0.0], [20.0, -20.0]])

DETECTORS = [
    IsolationForest(n_estimators=20, random_state=0),
    LocalOutlierFactor(novelty=True),
    OneClassSVM(),
    EllipticEnvelope(random_state=0),
]


class PyODLike(BaseEstimator):
    """A detector with the part of PyOD's interface that is used here: rows with high scores are outliers."""

    def __init__(self, center=0.0):
        self.center = center

    def fit(self, X, y=None):
        self.decision_scores_ = self.decision_function(X)
        return self

    def decision_function(self, X):
        return np.linalg.norm(np.asarray(X) - self.center, axis=1)


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: type(detector).__name__)
def test_detectors_of_scikit_learn_have_probabilities(detector):
    model = OutlierProbability(detector).fit(X)
    assert model.predict(NEW).tolist() == [1, -1]
    p = model.predict_proba(NEW)
    assert p.sum(axis=1) == pytest.approx([1.0, 1.0])
    assert p[1, 1] > 0.9
    assert model.probability_[190:].mean() > 2.0 * model.probability_[:190].mean()
    if not isinstance(detector, LocalOutlierFactor):
        expected = outlier_probability(-clone(detector).fit(X).score_samples(X))
        assert model.probability_ == pytest.approx(expected, rel=1e-12)
        assert model.predict_proba(X)[:, 1] == pytest.approx(expected, rel=1e-12)


def test_training_scores_that_a_detector_keeps():
    model = OutlierProbability(LocalOutlierFactor(), method="huber", threshold=0.5)
    labels = model.fit_predict(X)
    expected = outlier_probability(-model.detector_.negative_outlier_factor_, method="huber")
    assert np.array_equal(model.probability_, expected)
    assert np.array_equal(labels, np.where(expected > 0.5, -1, 1))


def test_high_scores_are_outliers_in_pyod():
    model = OutlierProbability(PyODLike()).fit(X)
    assert np.array_equal(model.probability_, outlier_probability(np.linalg.norm(X, axis=1)))
    assert model.predict(NEW).tolist() == [1, -1]


@pytest.mark.parametrize(
    "name", ["knn.KNN", "lof.LOF", "iforest.IForest", "ecod.ECOD", pytest.param("hbos.HBOS", marks=pytest.mark.slow)]
)
def test_detectors_of_pyod_have_probabilities(name):
    module, kind = name.split(".")
    models = pytest.importorskip(f"pyod.models.{module}", reason="PyOD is not installed")
    model = OutlierProbability(getattr(models, kind)(), center="median").fit(X)
    scores = model.detector_.decision_scores_
    assert np.array_equal(model.probability_, outlier_probability(scores, center="median"))
    expected = model.scaling_.probability(model.detector_.decision_function(NEW))
    assert np.array_equal(model.predict_proba(NEW)[:, 1], expected)
    assert model.predict(NEW).tolist() == [1, -1]


@pytest.mark.parametrize("options, method", [({"scale": "sd"}, "unify"), ({"method": "linear"}, "linear")])
def test_rules_agree_with_those_of_pyod(options, method):
    models = pytest.importorskip("pyod.models.knn", reason="PyOD is not installed")
    expected = models.KNN().fit(X).predict_proba(NEW, method=method)
    found = OutlierProbability(models.KNN(), **options).fit(X).predict_proba(NEW)
    assert found == pytest.approx(expected, abs=1e-12)


PIPELINES = {
    "pipeline": lambda detector: make_pipeline(StandardScaler(), detector),
    "nested": lambda detector: make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), detector)),
}


@pytest.mark.parametrize("wrap", PIPELINES.values(), ids=PIPELINES.keys())
def test_the_last_step_of_a_pipeline_says_what_its_scores_mean(wrap):
    Z = StandardScaler().fit_transform(X)
    model = OutlierProbability(wrap(PyODLike())).fit(X)
    assert model.probability_ == pytest.approx(outlier_probability(np.linalg.norm(Z, axis=1)), abs=1e-12)
    assert model.predict(NEW).tolist() == [1, -1]
    forest = IsolationForest(n_estimators=20, random_state=0)
    model = OutlierProbability(wrap(forest)).fit(X)
    assert model.probability_ == pytest.approx(outlier_probability(-forest.fit(Z).score_samples(Z)), abs=1e-12)
    assert model.predict(NEW).tolist() == [1, -1]


@pytest.mark.parametrize("wrap", PIPELINES.values(), ids=PIPELINES.keys())
@pytest.mark.parametrize("novelty", [False, True])
def test_training_scores_that_the_last_step_of_a_pipeline_keeps(wrap, novelty):
    Z = StandardScaler().fit_transform(X)
    model = OutlierProbability(wrap(LocalOutlierFactor(novelty=novelty))).fit(X)
    expected = outlier_probability(-LocalOutlierFactor().fit(Z).negative_outlier_factor_)
    assert model.probability_ == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["knn.KNN", "iforest.IForest"])
def test_detectors_of_pyod_may_end_a_pipeline(name):
    module, kind = name.split(".")
    models = pytest.importorskip(f"pyod.models.{module}", reason="PyOD is not installed")
    model = OutlierProbability(make_pipeline(StandardScaler(), getattr(models, kind)())).fit(X)
    assert np.array_equal(model.probability_, outlier_probability(model.detector_[-1].decision_scores_))
    assert model.predict(NEW).tolist() == [1, -1]


def test_rows_without_a_score_are_not_inliers():
    model = OutlierProbability(PyODLike()).fit(X)
    missing = np.array([[0.0, 0.0], [np.nan, 1.0], [20.0, -20.0]])
    assert np.isnan(model.predict_proba(missing)).tolist() == [[False] * 2, [True] * 2, [False] * 2]
    assert np.isnan(model.decision_function(missing)).tolist() == [False, True, False]
    with pytest.raises(ValueError, match=r"row 1: the probability is NaN \(as are 1 of 3\)"):
        model.predict(missing)
    with pytest.raises(ValueError, match="row 1: the probability is NaN"):
        OutlierProbability(PyODLike()).fit_predict(np.insert(X, 1, np.nan, axis=0))


def test_sense_of_the_scores_can_be_said():
    class Distance(PyODLike):
        def fit(self, X, y=None):
            return self

    model = OutlierProbability(Distance(), greater_is_outlier=True).fit(X)
    assert model.predict(NEW).tolist() == [1, -1]
    assert np.array_equal(model.score_samples(NEW), -np.linalg.norm(NEW, axis=1))


def test_sense_holds_for_the_scores_that_a_detector_keeps():
    class Closeness(PyODLike):
        def decision_function(self, X):
            return -super().decision_function(X)

    model = OutlierProbability(Closeness(), greater_is_outlier=False).fit(X)
    assert np.array_equal(model.probability_, outlier_probability(np.linalg.norm(X, axis=1)))
    assert np.array_equal(model.predict_proba(X)[:, 1], model.probability_)


def test_decision_function_is_threshold_minus_probability():
    strict = OutlierProbability(DETECTORS[0], threshold=0.999).fit(X)
    loose = OutlierProbability(DETECTORS[0], threshold=0.1).fit(X)
    assert (strict.predict(X) == -1).sum() < (loose.predict(X) == -1).sum()
    assert strict.decision_function(X) == pytest.approx(0.999 - strict.predict_proba(X)[:, 1])


def test_threshold_may_be_any_kind_of_number():
    assert OutlierProbability(DETECTORS[1], threshold=np.float32(0.5)).fit(X).predict(NEW).tolist() == [1, -1]


@pytest.mark.parametrize("threshold", [-0.1, 1.5, math.nan, "high", True])
def test_threshold_is_a_probability(threshold):
    with pytest.raises(ValueError, match="threshold must be a probability"):
        OutlierProbability(threshold=threshold).fit(X)


def test_a_combination_is_refused_where_there_is_nothing_to_combine_too():
    with pytest.raises(ValueError, match=r"combination must be one of 'mean', .*, got 'avg'"):
        OutlierProbability(combination="avg").fit(X)


# --- which rows are outliers ---------------------------------------------------------------------------

CLEAN = np.random.default_rng(5).normal(size=(500, 2))


@pytest.mark.parametrize(
    "detector",
    [
        IsolationForest(n_estimators=20, random_state=0, contamination=0.07),
        LocalOutlierFactor(novelty=True, contamination=0.05),
        OneClassSVM(nu=0.1),
        SGDOneClassSVM(nu=0.1, random_state=0),
        EllipticEnvelope(random_state=0),
        EllipticEnvelope(random_state=0, contamination=0.03),
    ],
    ids=repr,
)
def test_by_default_labels_are_those_of_the_detector(detector):
    own = clone(detector).fit(X)
    model = OutlierProbability(detector).fit(X)
    wide = 8.0 * CLEAN
    assert np.array_equal(model.predict(wide), own.predict(wide))
    assert np.array_equal(OutlierProbability(make_pipeline(detector)).fit(X).predict(wide), own.predict(wide))
    assert model.contamination_ <= 0.2


@pytest.mark.parametrize("detector", [IsolationForest(random_state=0), LocalOutlierFactor(novelty=True)], ids=repr)
@pytest.mark.parametrize("method", ["gaussian", "huber", "linear"])
def test_a_detector_that_goes_by_a_constant_needs_a_probability_too(detector, method):
    model = OutlierProbability(detector, method=method).fit(CLEAN)
    own = clone(detector).fit(CLEAN)
    wide = 2.0 * CLEAN
    expected = (own.predict(wide) == -1) & (model.predict_proba(wide)[:, 1] > 0.997)
    assert np.array_equal(model.predict(wide) == -1, expected)
    assert expected.sum() < 250
    assert expected.any() or method == "linear"


@pytest.mark.slow
def test_few_rows_are_outliers_where_there_are_none():
    for p in (2, 10):
        clean = np.random.default_rng(p).normal(size=(1000, p))
        for detector in (None, IsolationForest(random_state=0), LocalOutlierFactor(novelty=True)):
            assert (OutlierProbability(detector).fit_predict(clean) == -1).mean() < 0.08


def test_by_default_labels_of_the_training_data_are_those_of_the_detector():
    detector = LocalOutlierFactor(contamination=0.05)
    assert np.array_equal(OutlierProbability(detector).fit_predict(X), clone(detector).fit_predict(X))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["knn.KNN", "lof.LOF", "iforest.IForest", "ecod.ECOD", "hbos.HBOS"])
@pytest.mark.parametrize("options", [{}, {"contamination": 0.03}])
def test_by_default_labels_are_those_of_pyod(name, options):
    module, kind = name.split(".")
    models = pytest.importorskip(f"pyod.models.{module}", reason="PyOD is not installed")
    if kind == "IForest":
        options = options | {"random_state": 0}
    model = OutlierProbability(getattr(models, kind)(**options)).fit(X)
    wide = 8.0 * CLEAN
    assert np.array_equal(model.predict(wide) == -1, model.detector_.predict(wide) == 1)
    assert np.array_equal(model._classify_rows(model._training) == -1, model.detector_.labels_ == 1)


@pytest.mark.parametrize("detector", [*DETECTORS, LocalOutlierFactor(), PyODLike()], ids=lambda d: type(d).__name__)
@pytest.mark.parametrize("contamination", [0.02, 0.1, 0.25, 0.5])
def test_contamination_is_the_fraction_of_outliers(detector, contamination):
    labels = OutlierProbability(detector, contamination=contamination).fit_predict(CLEAN)
    assert np.count_nonzero(labels == -1) == pytest.approx(500 * contamination, abs=2)


def test_contamination_picks_the_highest_scores_where_probabilities_are_all_1():
    assert np.count_nonzero(OutlierProbability(LocalOutlierFactor()).fit(X).probability_ == 1.0) > 4
    model = OutlierProbability(LocalOutlierFactor(), contamination=0.02).fit(X)
    scores = -model.detector_.negative_outlier_factor_
    assert np.array_equal(np.flatnonzero(model.fit_predict(X) == -1), np.sort(np.argsort(scores)[-4:]))


def test_decision_agrees_with_labels_whatever_decides():
    for options in ({}, {"contamination": 0.1}, {"threshold": 0.9}):
        for detector in (DETECTORS[0], PyODLike(), [DETECTORS[0], PyODLike()]):
            model = OutlierProbability(detector, **options).fit(X)
            decision = model.decision_function(CLEAN)
            assert np.array_equal(model.predict(CLEAN), np.where(decision < 0.0, -1, 1))
            assert decision == pytest.approx(model.score_samples(CLEAN) - model.offset_)


def test_a_detector_without_a_decision_is_judged_with_caution():
    model = OutlierProbability(PyODLike()).fit(X)
    assert np.array_equal(model.predict(CLEAN) == -1, model.predict_proba(CLEAN)[:, 1] > 0.997)


class Plain(OutlierMixin, BaseEstimator):
    """A detector with scikit-learn's convention: rows with a negative decision function are outliers."""

    def fit(self, X, y=None):
        return self

    def decision_function(self, X):
        return 3.0 - np.linalg.norm(X, axis=1)


def test_a_decision_function_alone_is_a_decision():
    model = OutlierProbability(Plain()).fit(X)
    assert np.array_equal(model.predict(CLEAN) == -1, np.linalg.norm(CLEAN, axis=1) > 3.0)


@pytest.mark.parametrize("contamination", [0.0, 0.6, -0.1, math.nan, "much", True, None])
def test_contamination_is_a_fraction(contamination):
    with pytest.raises(ValueError, match="contamination must be 'auto' or a fraction"):
        OutlierProbability(contamination=contamination).fit(X)


def test_threshold_and_contamination_exclude_each_other():
    with pytest.raises(ValueError, match="pass only one of them"):
        OutlierProbability(contamination=0.1, threshold=0.5).fit(X)


class Certain(PyODLike):
    """A detector that gives far rows infinite scores."""

    def decision_function(self, X):
        scores = super().decision_function(X)
        return np.where(scores > 5.0, np.inf, scores)


def test_infinite_scores_are_certain_outliers():
    for options in ({}, {"contamination": 0.02}, {"contamination": 0.05}, {"threshold": 0.5}):
        model = OutlierProbability(Certain(), **options).fit(X)
        assert (model.probability_[190:] == 1.0).all()
        assert (model.fit_predict(X)[190:] == -1).all()
        assert model.predict(NEW).tolist() == [1, -1]
        assert np.isfinite(model.scaling_.mu).all()


# --- several detectors ---------------------------------------------------------------------------------


@pytest.mark.parametrize("combination", ["mean", "median", "maximum", "minimum"])
def test_several_detectors_are_combined(combination):
    detectors = [*DETECTORS[:3], make_pipeline(StandardScaler(), PyODLike())]
    model = OutlierProbability(detectors, combination=combination, contamination=0.05).fit(X)
    alone = [OutlierProbability(detector, contamination=0.05).fit(X) for detector in detectors]
    together = combine_probabilities(np.column_stack([one.probability_ for one in alone]), combination)
    assert model.probability_ == pytest.approx(together, rel=1e-12)
    together = combine_probabilities(np.column_stack([one.predict_proba(NEW)[:, 1] for one in alone]), combination)
    assert model.predict_proba(NEW)[:, 1] == pytest.approx(together, rel=1e-12)
    assert model.predict(NEW).tolist() == [1, -1]
    assert (model.fit_predict(X)[190:] == -1).sum() >= 9
    assert len(model.detector_) == 4
    assert not hasattr(clone(model), "detector_")


@pytest.mark.parametrize("combination", ["mean", "median", "maximum", "minimum"])
def test_combined_decisions_respect_unanimous_detectors(combination):
    """A row is an outlier if all detectors flag it, and not an outlier if none does.

    Otherwise one of the three detectors suffices for "maximum", two are needed for "median" and all for "minimum".
    """
    detectors = [LocalOutlierFactor(contamination=0.02, novelty=True), EllipticEnvelope(random_state=0), PyODLike()]
    model = OutlierProbability(detectors, combination=combination).fit(X)
    points = np.random.default_rng(3).normal(size=(400, 2)) * 3.0
    votes = np.sum([OutlierProbability(one).fit(X).predict(points) == -1 for one in detectors], axis=0)
    found = model.predict(points) == -1
    assert set(votes) == {0, 1, 2, 3}
    assert found[votes == 3].all()
    assert not found[votes == 0].any()
    if combination != "mean":
        assert np.array_equal(found, votes >= {"maximum": 1, "median": 2, "minimum": 3}[combination])


@pytest.mark.slow
def test_far_training_outliers_do_not_mask_nearer_new_ones():
    """Nearer new outliers are all flagged, by one detector and by two, after training with very distant outliers.

    An earlier version compared probabilities with the fraction in the training data and flagged none.
    """
    draws = np.random.default_rng(0)
    training = np.vstack([draws.normal(size=(980, 10)), draws.normal(0.0, 30.0, size=(20, 10))])
    near = draws.normal(4.0, 0.5, size=(100, 10))
    detectors = [IsolationForest(random_state=0), EllipticEnvelope(contamination=0.02, random_state=0)]
    for model in (*map(OutlierProbability, detectors), OutlierProbability(detectors)):
        model.fit(training)
        assert (model.predict(near) == -1).all()
        assert (model.predict(draws.normal(size=(500, 10))) == -1).mean() < 0.02


def test_contamination_calibrates_the_probabilities():
    for detector in (DETECTORS[0], [DETECTORS[0], PyODLike()]):
        model = OutlierProbability(detector, contamination=0.05).fit(X)
        assert model.probability_.mean() == pytest.approx(0.05, rel=1e-6)
        assert model.scaling_.contamination == 0.05


def test_certain_outliers_of_several_detectors_are_outliers_all():
    model = OutlierProbability([Certain(), Certain(0.5)], contamination=0.01).fit(X)
    assert (model.fit_predict(X)[190:] == -1).all()


def test_an_empty_list_of_detectors_is_refused():
    with pytest.raises(ValueError, match="empty list"):
        OutlierProbability([]).fit(X)


# --- names ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("detector", [PyODLike(), DETECTORS[0], [PyODLike(), DETECTORS[0]]], ids=["own", "sk", "both"])
def test_names_of_the_features(detector):
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = OutlierProbability(detector).fit(frame)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.n_features_in_ == 2
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a"]])
    assert not hasattr(OutlierProbability(detector).fit(X), "feature_names_in_")


def test_names_with_a_detector_of_pyod():
    models = pytest.importorskip("pyod.models.knn", reason="PyOD is not installed")
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = OutlierProbability(models.KNN()).fit(frame)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict_proba(frame[["b", "a"]])


def test_rows_need_no_columns():
    texts = ["plain words here"] * 30 + ["plain words there", "words"] * 10 + ["zebra"]
    model = OutlierProbability(make_pipeline(TfidfVectorizer(), IsolationForest(random_state=0)), scale="sd").fit(texts)
    assert model.predict_proba(["plain words here", "zebra"])[:, 1].argmax() == 1
    assert not hasattr(model, "n_features_in_")


def test_detectors_without_scores_for_new_data_are_refused():
    with pytest.raises(TypeError, match="neither score_samples nor decision_function"):
        OutlierProbability(StandardScaler()).fit(X)


def test_models_can_be_pickled_and_cloned():
    model = OutlierProbability(DETECTORS[1]).fit(X)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(NEW), model.predict_proba(NEW))
    assert not hasattr(clone(model), "scaling_")


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        OutlierProbability(IsolationForest(n_estimators=5, random_state=0)),
        OutlierProbability(OneClassSVM(), contamination=0.1, method="huber"),
        pytest.param(
            OutlierProbability(
                [IsolationForest(n_estimators=5, random_state=0), EllipticEnvelope(support_fraction=0.9)]
            ),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["one", "contamination", "several"],
)
def test_conventions_of_scikit_learn(model):
    check_estimator(model, on_skip=None)


def test_the_default_detector_is_an_isolation_forest():
    model = OutlierProbability().fit(X)
    assert isinstance(model.detector_, IsolationForest)
    assert model.predict(NEW).tolist() == [1, -1]


# --- limits -------------------------------------------------------------------------------------------


class Limited(PyODLike):
    """A detector with PyOD's interface whose threshold is `limit`, whatever its contamination."""

    def __init__(self, center=0.0, limit=2.5, contamination=0.1):
        super().__init__(center)
        self.limit = limit
        self.contamination = contamination

    def fit(self, X, y=None):
        super().fit(X)
        self.threshold_ = np.array([self.limit])
        return self


def nmad(x):
    return 1.482602218505602 * np.median(abs(x - np.median(x)))


@pytest.mark.parametrize("combination", ["mean", "maximum"])
@pytest.mark.parametrize("contamination", ["auto", 0.05])
def test_several_detectors_are_compared_by_their_margins_in_normalized_mads(combination, contamination):
    detectors = [Limited(), Limited(3.0, 4.0)]
    model = OutlierProbability(detectors, combination=combination, contamination=contamination).fit(X)
    scores = np.column_stack([np.linalg.norm(X - center, axis=1) for center in (0.0, 3.0)])
    limits = np.array([2.5, 4.0]) if contamination == "auto" else np.quantile(scores, 0.95, axis=0)
    units = np.array([nmad(column) for column in scores.T])
    margins = np.vectorize(lambda z: 0.5 * math.erfc(-z / math.sqrt(2.0)))((scores - limits) / units)
    together = margins.mean(axis=1) if combination == "mean" else margins.max(axis=1)
    assert -model.score_samples(X) == pytest.approx(together, rel=1e-9)
    limit = 0.5 if contamination == "auto" else np.quantile(together, 0.95)
    assert model.offset_ == pytest.approx(-limit, rel=1e-9)
    assert np.array_equal(model.predict(X) == -1, together > -model.offset_)
    fraction = 0.05 if contamination == 0.05 else (together > 0.5).mean()
    assert model.contamination_ == pytest.approx(fraction)


@pytest.mark.parametrize(("limit", "contamination"), [(2.5, 0.1), (2.5, "auto"), (50.0, "auto")])
def test_a_constant_limit_is_raised_to_a_probability_of_0_997(limit, contamination):
    model = OutlierProbability(Limited(0.0, limit, contamination)).fit(X)
    cautious = model.scaling_.score_at(0.997)[0]
    expected = limit if contamination != "auto" else max(limit, cautious)
    assert model.offset_ == -expected
    assert cautious > 2.5
    scores = np.linalg.norm(X, axis=1)
    assert model.contamination_ == np.mean(scores > expected)
    assert np.array_equal(model.fit_predict(X) == -1, scores > expected)


def test_upper_quantiles_leave_out_missing_and_clip_infinite_scores():
    values = np.array([1.0, 4.0, np.nan, 2.0, 3.0, 5.0])
    assert _upper_quantile(values, 0.25) == 4.0
    assert _upper_quantile(values, 0.125) == 4.5
    assert np.isfinite(_upper_quantile(np.append(values, np.inf), 0.01))
    assert math.isnan(_upper_quantile(np.array([np.nan]), 0.1))


def test_detectors_of_one_class_are_numbered():
    both = [make_pipeline(StandardScaler(), OneClassSVM()), IsolationForest(), OneClassSVM()]
    assert _name_detectors(both) == ["OneClassSVM 1", "IsolationForest", "OneClassSVM 2"]


def test_tags_are_those_that_all_detectors_share():
    trees, lof = IsolationForest(), LocalOutlierFactor(novelty=True)
    for detectors in ([trees, lof], [trees], [lof, lof]):
        tags = get_tags(OutlierProbability(detectors)).input_tags
        each = [get_tags(one).input_tags for one in detectors]
        assert tags.sparse == all(one.sparse for one in each)
        assert tags.allow_nan == all(one.allow_nan for one in each)
    assert get_tags(OutlierProbability(trees)).classifier_tags.multi_class is False
