"""Scores of naive Bayes from moments, compared with fits of GaussianNB in every trial."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score
from sklearn.naive_bayes import GaussianNB

from powerkern.sklearn.supervised.columns import TransformedColumns
from powerkern.sklearn.supervised.naive_bayes import NaiveBayes, _is_likeliest, _Part
from powerkern.sklearn.supervised.objective import Refitted, ScoringTask
from powerkern.sklearn.tables import SelectedColumns

RNG = np.random.default_rng(0)
Y = np.array(["a", "b", "c"])[np.arange(45) % 3]
X = 1.0 + RNG.random((45, 3)) ** (1.0 + np.arange(45) % 3)[:, None] * [1.0, 0.8, 0.9]
SPLITS = [(np.flatnonzero(np.arange(45) % 4 != k), np.flatnonzero(np.arange(45) % 4 == k)) for k in range(4)]


def objectives(estimator, y=Y, splits=SPLITS, X=X):
    columns = TransformedColumns(X, "box-cox", None)
    scorer = lambda fitted, Z, y: accuracy_score(y, fitted.predict(Z))  # noqa: E731
    task = ScoringTask(estimator, scorer, SelectedColumns(X, np.arange(3)), y, splits, np.arange(len(y)), {}, {})
    return NaiveBayes(task, columns), Refitted(task, columns, np.arange(3), None)


@pytest.mark.parametrize("options", [{}, {"priors": [0.2, 0.3, 0.5]}, {"var_smoothing": 1e-2}, {"var_smoothing": 0.5}])
@pytest.mark.parametrize("j", range(3))
def test_scores_of_trials_are_those_of_fits(options, j):
    fast, slow = objectives(GaussianNB(**options))
    lmbdas, candidates = np.array([0.5, -2.0, 1.0]), np.array([-5.0, -1.0, 0.0, 2.0, 5.0])
    scores = slow.score_candidates(lmbdas, j, candidates)
    assert np.unique(scores).size > 1
    np.testing.assert_allclose(fast.score_candidates(lmbdas, j, candidates), scores, rtol=1e-15)
    assert fast.score(lmbdas) == pytest.approx(slow.score(lmbdas), abs=1e-15)


def test_a_class_or_a_value_that_a_split_lacks():
    train, test = np.arange(30), np.arange(30, 45)
    y = np.append(np.tile(["a", "b"], 15), np.tile(["a", "b", "c"], 5))  # no c for training
    flat = X.copy()
    flat[:, 1] = np.where(np.arange(45) == 40, 1.5, 1.0)  # constant for training
    for data in (X, flat):
        fast, slow = objectives(GaussianNB(), y, [(train, test), (np.arange(45), test)], data)
        candidates = np.array([-1.0, 0.5, 3.0])
        np.testing.assert_array_equal(
            fast.score_candidates(np.ones(3), 0, candidates), slow.score_candidates(np.ones(3), 0, candidates)
        )


@pytest.mark.parametrize("options", [{}, {"priors": [0.2, 0.3, 0.5]}, {"var_smoothing": 0.1}])
def test_log_posteriors_are_those_of_scikit_learn(options):
    train, test = SPLITS[1]
    part = _Part(GaussianNB(**options), Y, SPLITS[1])
    fitted = GaussianNB(**options).fit(X[train], Y[train])
    moments = part.moments(X.T)
    np.testing.assert_allclose(moments[:, 0], X[train].var(axis=0))
    np.testing.assert_allclose(moments[:, 1:4], fitted.theta_.T)
    np.testing.assert_allclose(moments[:, 4:] + fitted.epsilon_, fitted.var_.T)
    sums, sizes = part._sums(X[test].T, moments, fitted.epsilon_)
    np.testing.assert_allclose(sums.T, fitted.predict_joint_log_proba(X[test]), rtol=1e-12)
    constants = -0.5 * np.log(2.0 * np.pi * fitted.var_)
    np.testing.assert_allclose(sizes, abs(constants).max(axis=0))
    terms, size = part._terms(X[test].T, moments, fitted.epsilon_)
    np.testing.assert_allclose(size, sizes)
    each = constants[:, :, None] - (X[test].T - fitted.theta_[:, :, None]) ** 2 / (2.0 * fitted.var_[:, :, None])
    np.testing.assert_allclose(terms, each.transpose(1, 0, 2), rtol=1e-12)
    right, unsure = part.predict_trials(X.T[:2], moments[:2], X.T[2:], moments[2:])
    assert right[0].tolist() == (fitted.predict(X[test]) == Y[test]).tolist()
    assert not unsure.any()


def test_the_smoothing_is_a_fraction_of_the_largest_variance_of_all_columns():
    """The column of largest variance is a fixed column in some trials and the tried column in another one.

    The columns are not standardised, so their variances differ.
    """
    train, test = SPLITS[0]
    wide = X * [1.0, 30.0, 0.2]
    part = _Part(GaussianNB(var_smoothing=0.3), Y, SPLITS[0])
    trials = np.stack([wide[:, 2], 900.0 * wide[:, 2], wide[:, 0]])
    moments, of_trials = part.moments(wide.T), part.moments(trials)
    right, _ = part.predict_trials(wide.T[:2], moments[:2], trials, of_trials)
    for k, trial in enumerate(trials):
        Z = np.column_stack([wide[:, :2], trial])
        fitted = GaussianNB(var_smoothing=0.3).fit(Z[train], Y[train])
        assert right[k].tolist() == (fitted.predict(Z[test]) == Y[test]).tolist()


@pytest.mark.parametrize(("gap", "unsure"), [(0.9, True), (1.1, False)])
def test_differences_within_the_bound_of_rounding_are_unsure(gap, unsure):
    """The bound is 1e-3 (10 + 2*4) = 0.018.

    The largest log-likelihood of another class is -10, and the constants in the log-likelihoods are of size 4.
    """
    values = np.full((2, 3, 2), -50.0)
    values[:, 1, :] = -10.0
    values[:, 2, 0], values[:, 2, 1] = -10.0 + 0.018 * gap, -30.0
    right, near = _is_likeliest(values, np.array([2, 1]), np.array([4.0, 4.0]), 1e-3)
    assert right.tolist() == [[True, True]] * 2
    assert near.tolist() == [unsure] * 2


def test_trials_that_rounding_could_decide_are_refitted(monkeypatch):
    fast, slow = objectives(GaussianNB())
    refits = []
    refit = NaiveBayes._refit_score
    monkeypatch.setattr(NaiveBayes, "_refit_score", lambda self, part, Z: refits.append(Z) or refit(self, part, Z))
    candidates = np.array([-1.0, 0.0, 2.0])
    plain = fast.score_candidates(np.zeros(3), 1, candidates)
    assert not refits
    predict = _Part.predict_trials

    def doubtful(self, *arguments):
        right, unsure = predict(self, *arguments)
        right[1] = ~right[1]  # as if rounding had decided
        return right, np.arange(unsure.size) == 1

    monkeypatch.setattr(_Part, "predict_trials", doubtful)
    np.testing.assert_allclose(fast.score_candidates(np.zeros(3), 1, candidates), plain)
    assert len(refits) == 4  # one trial in each of four splits
    np.testing.assert_allclose(plain, slow.score_candidates(np.zeros(3), 1, candidates))
