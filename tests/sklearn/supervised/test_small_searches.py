"""Supervised searches on few rows, compared with scikit-learn's cross-validation of the transformed columns."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

import powerkern as pk
from powerkern.sklearn import PowerTransformedClassifier, SupervisedPowerTransformer
from powerkern.sklearn.supervised.estimator import takes_missing
from powerkern.sklearn.supervised.searches import Space

RNG = np.random.default_rng(0)
X = RNG.lognormal(size=(48, 3))
TARGET = np.log(X[:, 0]) - 0.5 * np.log(X[:, 2]) + 0.3 * RNG.normal(size=48)
LABEL = (TARGET > 0.0).astype(int)
GRID = [-1.0, 0.0, 2.0]
FEW = {"lmbdas": GRID, "max_epochs": 1, "cv": 3, "starts": "ones"}


class Plain(ClassifierMixin, BaseEstimator):
    """A classifier by the nearest of two weighted class means, for which the package has no fast method."""

    def fit(self, X, y, sample_weight=None):
        w = np.ones(len(y)) if sample_weight is None else sample_weight
        self.classes_ = np.unique(y)
        self.means_ = np.array([np.average(X[y == c], axis=0, weights=w[y == c]) for c in self.classes_])
        return self

    def predict(self, X):
        distance = ((X[:, None, :] - self.means_) ** 2).sum(axis=2)
        return self.classes_[distance.argmin(axis=1)]


def plain_transform(X, lmbdas, weight=None):
    w = np.ones(len(X)) if weight is None else weight
    seen = X[w > 0.0]
    low, high = seen.min(axis=0), seen.max(axis=0)
    reach = 0.99 * (high - low)
    Z = scipy.special.boxcox((np.clip(X, low - reach, high + reach) - low) / (high - low) + 1.0, lmbdas)
    mean = np.average(Z, axis=0, weights=w)
    return (Z - mean) / np.sqrt(np.average((Z - mean) ** 2, axis=0, weights=w))


def plain_search(score, p: int):
    """Maximise ``score(lmbdas)`` in one round of coordinate ascent over GRID and 1, starting at lambda = 1.

    Return the `p` lambdas, the best score, and all scores in order of evaluation.
    """
    lmbdas, best, history = np.ones(p), score(np.ones(p)), []
    history.append(best)
    for j in range(p):
        values = [value for value in sorted({*GRID, 1.0}) if value != lmbdas[j]]
        scores = [score(np.where(np.arange(p) == j, value, lmbdas)) for value in values]
        history += scores
        if max(scores) > best:
            best, lmbdas = max(scores), np.where(np.arange(p) == j, values[int(np.argmax(scores))], lmbdas)
    return lmbdas, best, history


@pytest.mark.parametrize("cv", [3, "train", KFold(2)])
@pytest.mark.parametrize("estimator", [GaussianNB(), Plain()])
def test_a_search_agrees_with_cross_validation(estimator, cv):
    model = SupervisedPowerTransformer(estimator, **FEW | {"cv": cv}).fit(X, LABEL)

    def score(lmbdas):
        Z = plain_transform(X, lmbdas)
        if cv == "train":
            return estimator.fit(Z, LABEL).score(Z, LABEL)
        return cross_val_score(estimator, Z, LABEL, cv=cv).mean()

    lmbdas, best, history = plain_search(score, 3)
    assert model.lambdas_.tolist() == lmbdas.tolist()
    assert model.best_score_ == pytest.approx(best, abs=1e-12)
    np.testing.assert_allclose(model.history_.score, history, atol=1e-12)
    np.testing.assert_allclose(model.transform(X), plain_transform(X, lmbdas), atol=1e-10)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, rtol=1e-9)
    assert not model.timed_out_


@pytest.mark.parametrize("scoring", ["neg_mean_absolute_error", None, "callable"])
def test_regressors_are_scored_as_requested(scoring):
    given = (lambda m, X, y: -float(np.max(np.abs(m.predict(X) - y)))) if scoring == "callable" else scoring
    model = SupervisedPowerTransformer(Ridge(), scoring=given, **FEW).fit(X, TARGET)
    lmbdas, best, _ = plain_search(
        lambda at: cross_val_score(Ridge(), plain_transform(X, at), TARGET, cv=3, scoring=given).mean(), 3
    )
    assert model.lambdas_.tolist() == lmbdas.tolist()
    assert model.best_score_ == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("own_scorer", [False, True])
def test_weights_count_in_scaling_fits_and_scores(own_scorer):
    """A scorer that does not accept weights is called without them."""
    weight = np.arange(48) % 3 * 0.5
    scoring = (lambda m, X, y: float(np.mean(m.predict(X) == y))) if own_scorer else None
    model = SupervisedPowerTransformer(Plain(), scoring=scoring, **FEW | {"cv": KFold(3)})
    model.fit(X, LABEL, sample_weight=weight)

    def score(lmbdas):
        Z, scores = plain_transform(X, lmbdas, weight), []
        for train, test in KFold(3).split(X):
            train = train[weight[train] > 0.0]
            fitted = Plain().fit(Z[train], LABEL[train], weight[train])
            right = fitted.predict(Z[test]) == LABEL[test]
            scores.append(right.mean() if own_scorer else np.average(right, weights=weight[test]))
        return np.mean(scores)

    lmbdas, best, history = plain_search(score, 3)
    np.testing.assert_allclose(model.history_.score, history, atol=1e-12)
    assert model.lambdas_.tolist() == lmbdas.tolist()
    assert model.best_score_ == pytest.approx(best)


def test_parallel_splits_give_the_same_scores():
    import joblib

    alone = SupervisedPowerTransformer(Plain(), **FEW).fit(X, LABEL)
    with joblib.parallel_config(backend="threading"):
        together = SupervisedPowerTransformer(Plain(), n_jobs=2, **FEW).fit(X, LABEL)
    assert together.history_.score.tolist() == alone.history_.score.tolist()


@pytest.mark.parametrize("variables", [[3, 0], [True, False, False, True], [-1, 0]])
def test_other_columns_pass_and_constant_ones_become_0(variables):
    padded = np.column_stack([X[:, 0], np.arange(48.0), np.full(48, 7.0), X[:, 2]])
    model = SupervisedPowerTransformer(Plain(), variables=variables, **FEW).fit(padded, LABEL)
    Z = model.transform(padded)
    np.testing.assert_array_equal(Z[:, 1:3], padded[:, 1:3])
    assert np.isnan(model.lambdas_).tolist() == [False, True, True, False]
    assert set(model.history_.column) == {-1, 0, 3}
    np.testing.assert_allclose(Z[:, [0, 3]], plain_transform(padded[:, [0, 3]], model.lambdas_[[0, 3]]), atol=1e-10)
    assert model.best_score_ == pytest.approx(cross_val_score(Plain(), Z, LABEL, cv=3).mean(), abs=1e-12)
    np.testing.assert_allclose(model.inverse_transform(Z), padded, rtol=1e-9)
    every = SupervisedPowerTransformer(Plain(), **FEW).fit(padded, LABEL)
    assert every.lambdas_[2] == 1.0
    assert (every.transform(padded)[:, 2] == 0.0).all()
    assert set(every.history_.column) == {-1, 0, 1, 3}
    np.testing.assert_allclose(every.inverse_transform(every.transform(padded)), padded, rtol=1e-9)


def test_starts_may_leave_out_constant_columns():
    padded = np.column_stack([X[:, 0], np.full(48, 7.0), X[:, 2]])
    model = SupervisedPowerTransformer(Plain(), **FEW | {"starts": [[0.5, np.nan, 0.25], "mle"], "max_epochs": 0})
    model.fit(padded, LABEL)
    fitted = pk.fit((padded - padded.min(axis=0))[:, [0, 2]] / np.ptp(padded, axis=0)[[0, 2]] + 1.0, "box-cox").lmbda
    scores = [
        cross_val_score(Plain(), plain_transform(padded[:, [0, 2]], lmbdas), LABEL, cv=3).mean()
        for lmbdas in ([0.5, 0.25], fitted)
    ]
    np.testing.assert_allclose(model.start_scores_, scores, atol=1e-12)
    best = [[0.5, 0.25], fitted.tolist()][int(np.argmax(scores))]
    np.testing.assert_allclose(model.lambdas_, [best[0], 1.0, best[1]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lmbdas": [1.0]}, "lmbdas must be two or more increasing numbers"),
        ({"lmbdas": [0.0, 0.0]}, "lmbdas must be two or more increasing numbers"),
        ({"lmbdas": [1.0, 0.0]}, "lmbdas must be two or more increasing numbers"),
        ({"lmbdas": [0.0, np.inf]}, "lmbdas must be two or more increasing numbers"),
        ({"lmbdas": [[0.0, 1.0]]}, "lmbdas must be two or more increasing numbers"),
        ({"starts": []}, "starts is empty; pass at least one"),
        ({"starts": [0.0, 1.0]}, "a start must be 3 finite numbers, 'mle' or 'ones'"),
        ({"starts": [[0.0, 1.0, np.nan]]}, "a start must be 3 finite numbers, 'mle' or 'ones'"),
        ({"starts": ["best"]}, "a start must be"),
        ({"scoring": lambda *_: np.nan}, "no lambdas have a finite score .the best is nan.; choose another"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SupervisedPowerTransformer(Plain(), **FEW | options).fit(X, LABEL)


def test_bounds_on_the_number_of_trials_are_met():
    space = Space(np.array([-1.0, 0.0, 1.0, 2.0]), np.array([[-np.inf] * 3, [np.inf] * 3]))
    exact = {"spherical": 4 + 3, "diagonal": 2 + 3 * 4, "grid": 4**3, "blocks": 1 + 20 + 3, "iterative": 1 + 1 * 3 * 4}
    for search, most in exact.items():
        model = SupervisedPowerTransformer(GaussianNB(), search=search, random_state=0, **FEW).fit(X, LABEL)
        assert model._bound_trials(space) == most
        assert model.history_.score.size <= most
        assert hasattr(model, "start_scores_") == (search in ("iterative", "blocks"))
        assert hasattr(model, "grid_scores_") == (search == "grid")
    wide = Space(np.array([0.0, 1.0]), np.zeros((2, 11)))
    assert SupervisedPowerTransformer(GaussianNB())._max_trials(wide) == 22
    assert SupervisedPowerTransformer(GaussianNB(), max_trials=3)._max_trials(wide) == 3
    assert SupervisedPowerTransformer(GaussianNB(), search="blocks")._bound_trials(wide) == 2 + 22 + 11


def test_results_of_an_earlier_search_are_removed():
    model = SupervisedPowerTransformer(GaussianNB(), search="grid", **FEW).fit(X, LABEL)
    assert model.grid_scores_.shape == (4, 4, 4)
    model.set_params(search="spherical").fit(X, LABEL)
    assert not hasattr(model, "grid_scores_")
    assert not hasattr(model, "grid_lambdas_")


def test_missing_values_are_for_estimators_that_take_them():
    assert takes_missing(HistGradientBoostingClassifier())
    assert takes_missing(make_pipeline(SimpleImputer(), GaussianNB()))
    assert not takes_missing(GaussianNB())
    for estimator in (GaussianNB(), HistGradientBoostingClassifier()):
        tags = get_tags(SupervisedPowerTransformer(estimator))
        assert tags.input_tags.allow_nan == takes_missing(estimator)
        assert tags.target_tags.required
    holes = X.copy()
    holes[3, 1] = np.nan
    with pytest.raises(ValueError, match="GaussianNB"):
        SupervisedPowerTransformer(GaussianNB(), **FEW).fit(holes, LABEL)


def test_the_shortcut_for_naive_bayes_needs_accuracy_and_two_columns(monkeypatch):
    from powerkern.sklearn.supervised import estimator as module

    made = []

    class Recorded(module.NaiveBayes):
        def __init__(self, *arguments):
            made.append(True)
            super().__init__(*arguments)

    monkeypatch.setattr(module, "NaiveBayes", Recorded)
    cases = [
        ({}, X, LABEL, True),
        ({"scoring": "accuracy"}, X, LABEL, True),
        ({"scoring": get_scorer("accuracy")}, X, LABEL, False),
        ({"scoring": "balanced_accuracy"}, X, LABEL, False),
        ({"variables": [0, 1]}, X, LABEL, False),
        ({}, X[:, :1], LABEL, False),
        ({}, np.column_stack([X[:, 0], np.ones(48)]), LABEL, False),
        ({}, X[:, :2], LABEL, True),
    ]
    for options, data, y, expected in cases:
        made.clear()
        SupervisedPowerTransformer(GaussianNB(), **FEW | options).fit(data, y)
        assert bool(made) == expected
    made.clear()
    SupervisedPowerTransformer(GaussianNB(priors=[0.5, 0.5]), **FEW).fit(X, LABEL)
    assert made
    made.clear()
    SupervisedPowerTransformer(GaussianNB(), **FEW).fit(X, LABEL, sample_weight=np.ones(48))
    assert not made


def test_a_classifier_is_fitted_to_the_transformed_rows_of_positive_weight():
    weight = np.arange(48) % 3 * 0.5
    model = PowerTransformedClassifier(Plain(), **FEW).fit(X, LABEL, sample_weight=weight)
    Z, some = model.transform(X), weight > 0.0
    expected = Plain().fit(Z[some], LABEL[some], weight[some])
    np.testing.assert_allclose(model.estimator_.means_, expected.means_)
    assert model.predict(X).tolist() == expected.predict(Z).tolist()
    assert model.classes_.tolist() == [0, 1]
    assert not hasattr(model, "predict_proba")
    with pytest.raises(ValueError, match="estimator must be a classifier, got LinearRegression"):
        PowerTransformedClassifier(LinearRegression()).fit(X, LABEL)
    bayes = PowerTransformedClassifier(GaussianNB(), **FEW).fit(X, LABEL)
    own = GaussianNB().fit(bayes.transform(X), LABEL)
    np.testing.assert_allclose(bayes.predict_proba(X), own.predict_proba(bayes.transform(X)))
    np.testing.assert_allclose(bayes.predict_log_proba(X), own.predict_log_proba(bayes.transform(X)))
