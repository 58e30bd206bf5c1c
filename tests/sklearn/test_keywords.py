"""Unknown keywords of estimators: the message suggests one, and scikit-learn still reads the signature."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression

import powerkern as pk
import powerkern.sklearn as estimators
from powerkern.sklearn import GroupedPowerTransformer, LocationScaler, PowerTransformer, UVImputer

CLASSES = [
    value
    for name in estimators.__all__
    if inspect.isclass(value := getattr(estimators, name)) and issubclass(value, BaseEstimator)
]


@pytest.mark.parametrize(
    ("kind", "keyword", "advice"),
    [
        (GroupedPowerTransformer, "lmbda", r"lambda is fitted: bounds=\(0.5, 0.5\) keeps it at 0.5"),
        (PowerTransformer, "robust", "did you mean estimator='robust'"),
        (pk.fit, "robust", "did you mean estimator='robust'"),
        (PowerTransformer, "standardise", "did you mean 'standardize'"),
        (PowerTransformer, "family", "did you mean 'method'"),
        (PowerTransformer, "n_jobs", "did you mean 'n_threads'"),
        (estimators.SupervisedPowerTransformer, "lmbda", "did you mean 'lmbdas'"),
        (LocationScaler, "robust", "its parameters are method, constants, copy, n_threads"),
        (UVImputer, "seed", "did you mean 'random_state'"),
    ],
)
def test_an_unknown_keyword_is_answered(kind, keyword, advice):
    with pytest.raises(TypeError, match=rf"unexpected keyword argument '{keyword}'; {advice}"):
        kind(**{keyword: True})


def test_the_advice_for_a_given_lambda_holds():
    X = np.random.default_rng(0).lognormal(size=(50, 2))
    assert PowerTransformer(bounds=(0.5, 0.5)).fit(X).lambdas_.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("kind", CLASSES)
def test_scikit_learn_reads_the_parameters_of_every_class(kind):
    given = {"estimator": LogisticRegression()} if kind in _CONTAINING else {}
    model = kind(**given)
    names = list(inspect.signature(kind).parameters)
    assert list(inspect.signature(kind.__init__).parameters) == ["self", *names]
    assert sorted(model.get_params(deep=False)) == sorted(names)
    assert clone(model).get_params(deep=False).keys() == model.get_params(deep=False).keys()
    with pytest.raises(TypeError, match=r"'no_such_parameter'; its parameters are "):
        kind(**given, no_such_parameter=1)


_CONTAINING = (estimators.SupervisedPowerTransformer, estimators.PowerTransformedClassifier)
