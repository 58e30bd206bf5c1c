"""Detectors of scikit-learn and PyOD with probabilities."""

from __future__ import annotations

import builtins
import math
import pickle
import sys

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM
from sklearn.utils.estimator_checks import check_estimator

import powerkern.outliers
from powerkern.outliers import OutlierProbability, outlier_probability

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
    """The part of PyOD's interface that counts: high scores are outliers."""

    def __init__(self, center=0.0):
        self.center = center

    def fit(self, X, y=None):
        self.decision_scores_ = self.decision_function(X)
        return self

    def decision_function(self, X):
        return np.linalg.norm(np.asarray(X) - self.center, axis=1)


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: type(detector).__name__)
def test_detectors_of_scikit_learn(detector):
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
    model = OutlierProbability(LocalOutlierFactor(), method="huber")
    labels = model.fit_predict(X)
    expected = outlier_probability(-model.detector_.negative_outlier_factor_, method="huber")
    assert np.array_equal(model.probability_, expected)
    assert np.array_equal(labels, np.where(expected > 0.5, -1, 1))


def test_high_scores_are_outliers_in_pyod():
    model = OutlierProbability(PyODLike()).fit(X)
    assert np.array_equal(model.probability_, outlier_probability(np.linalg.norm(X, axis=1)))
    assert model.predict(NEW).tolist() == [1, -1]


@pytest.mark.parametrize("name", ["knn.KNN", "lof.LOF", "iforest.IForest", "ecod.ECOD", "hbos.HBOS"])
def test_detectors_of_pyod(name):
    module, kind = name.split(".")
    models = pytest.importorskip(f"pyod.models.{module}", reason="PyOD is not installed")
    model = OutlierProbability(getattr(models, kind)(), center="median").fit(X)
    scores = model.detector_.decision_scores_
    assert np.array_equal(model.probability_, outlier_probability(scores, center="median"))
    expected = model.scaling_.probability(model.detector_.decision_function(NEW))
    assert np.array_equal(model.predict_proba(NEW)[:, 1], expected)
    assert model.predict(NEW).tolist() == [1, -1]


@pytest.mark.parametrize("options, method", [({"scale": "sd"}, "unify"), ({"method": "linear"}, "linear")])
def test_rules_of_pyod(options, method):
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
def test_detectors_of_pyod_in_a_pipeline(name):
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
    assert model.score_samples(NEW) == pytest.approx(-model.predict_proba(NEW)[:, 1])


def test_sense_holds_for_the_scores_that_a_detector_keeps():
    class Closeness(PyODLike):
        def decision_function(self, X):
            return -super().decision_function(X)

    model = OutlierProbability(Closeness(), greater_is_outlier=False).fit(X)
    assert np.array_equal(model.probability_, outlier_probability(np.linalg.norm(X, axis=1)))
    assert np.array_equal(model.predict_proba(X)[:, 1], model.probability_)


def test_decision_function_and_threshold():
    strict = OutlierProbability(DETECTORS[0], threshold=0.999).fit(X)
    loose = OutlierProbability(DETECTORS[0], threshold=0.1).fit(X)
    assert (strict.predict(X) == -1).sum() < (loose.predict(X) == -1).sum()
    assert strict.decision_function(X) == pytest.approx(0.999 - strict.predict_proba(X)[:, 1])


def test_threshold_of_any_kind_of_number():
    assert OutlierProbability(DETECTORS[1], threshold=np.float32(0.5)).fit(X).predict(NEW).tolist() == [1, -1]


@pytest.mark.parametrize("threshold", [-0.1, 1.5, math.nan, "high"])
def test_threshold_is_a_probability(threshold):
    with pytest.raises(ValueError, match="threshold must be a probability"):
        OutlierProbability(threshold=threshold).fit(X)


def test_detectors_without_scores_for_new_data():
    with pytest.raises(TypeError, match="neither score_samples nor decision_function"):
        OutlierProbability(StandardScaler()).fit(X)


def test_pickle_and_clone():
    model = OutlierProbability(DETECTORS[1]).fit(X)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(NEW), model.predict_proba(NEW))
    assert not hasattr(clone(model), "scaling_")


def test_conventions_of_scikit_learn():
    taken_for_a_classifier = dict.fromkeys(
        ["check_estimator_sparse_array", "check_estimator_sparse_matrix"], "predict_proba makes it look for classes"
    )
    check_estimator(
        OutlierProbability(IsolationForest(n_estimators=5, random_state=0)),
        expected_failed_checks=taken_for_a_classifier,
        on_skip=None,
    )


def test_without_scikit_learn(monkeypatch):
    monkeypatch.delitem(sys.modules, "powerkern.outliers.estimator", raising=False)
    original = builtins.__import__

    def importer(name, *args, **kwargs):
        if name.partition(".")[0] == "sklearn":
            raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn")
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", importer)
    with pytest.raises(ImportError, match=r"powerkern\[sklearn\]"):
        _ = powerkern.outliers.OutlierProbability
    with pytest.raises(AttributeError, match="no attribute 'Outlier'"):
        _ = powerkern.outliers.Outlier
