"""PowerTransformedClassifier: scikit-learn's checks, and equality with a pipeline of transformer and classifier."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from powerkern.sklearn import PowerTransformedClassifier, SupervisedPowerTransformer


@parametrize_with_checks([PowerTransformedClassifier(GaussianNB(), cv=2, max_epochs=1, lmbdas=[0, 1])])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [GaussianNB(), KNeighborsClassifier(3)])
def test_results_equal_those_of_the_pipeline(estimator):
    X, y = load_wine(return_X_y=True)
    X, names = X[:, :4], np.array(["a", "b", "c"])[y]
    options = {"max_epochs": 1, "lmbdas": [-1.0, 0.0, 1.0], "starts": "ones"}
    one = PowerTransformedClassifier(estimator, **options).fit(X[::2], names[::2])
    steps = make_pipeline(SupervisedPowerTransformer(estimator, **options), estimator).fit(X[::2], names[::2])
    assert one.lambdas_.tolist() == steps[0].lambdas_.tolist()
    assert one.predict(X[1::2]).tolist() == steps.predict(X[1::2]).tolist()
    np.testing.assert_array_equal(one.predict_proba(X[1::2]), steps.predict_proba(X[1::2]))
    assert one.score(X[1::2], names[1::2]) == steps.score(X[1::2], names[1::2])
    np.testing.assert_array_equal(one.transform(X), steps[0].transform(X))
    assert one.classes_.tolist() == ["a", "b", "c"]


@pytest.mark.slow
def test_methods_are_those_of_the_estimator():
    X, y = load_wine(return_X_y=True)
    deciding = PowerTransformedClassifier(LinearSVC(random_state=0), search="spherical", lmbdas=[0.0, 1.0], cv=2)
    assert not hasattr(deciding, "predict_proba")
    assert deciding.fit(X, y).decision_function(X).shape == (178, 3)
    assert not hasattr(PowerTransformedClassifier(GaussianNB()), "decision_function")


def test_regressors_are_for_the_transformer():
    with pytest.raises(ValueError, match=r"estimator must be a classifier, got .*; use SupervisedPowerTransformer"):
        PowerTransformedClassifier(LinearRegression()).fit(np.eye(4), [0, 1, 0, 1])
