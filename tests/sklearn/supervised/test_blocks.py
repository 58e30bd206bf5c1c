"""The search by blocks of columns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_classification
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from powerkern.sklearn import SupervisedPowerTransformer


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.mark.parametrize("seed", range(3))
def test_the_best_trial_is_returned_with_its_score(wine, seed):
    X, y = wine
    model = SupervisedPowerTransformer(GaussianNB(), search="blocks", random_state=seed).fit(X, y)
    scores = cross_val_score(GaussianNB(), model.transform(X), y)
    assert model.best_score_ == pytest.approx(scores.mean(), abs=1e-12)
    assert model.best_score_ == pytest.approx(model.history_.score.max(), abs=1e-12)
    transformed = np.count_nonzero(model.lambdas_ != 1.0)
    assert (
        2 + 26 + transformed <= model.history_.score.size <= 2 + 26 + 13
    )  # starts, two a column, and without a transform
    accepted = model.history_.score[model.history_.accepted]
    assert (np.diff(accepted[1:] if model.history_.accepted[1] else accepted) > 0.0).all()
    again = SupervisedPowerTransformer(GaussianNB(), search="blocks", random_state=seed).fit(X, y)
    assert again.lambdas_.tolist() == model.lambdas_.tolist()


@pytest.mark.parametrize("n_trials", [1, 7])
def test_the_number_of_trials_is_kept(wine, n_trials):
    model = SupervisedPowerTransformer(
        GaussianNB(), search="blocks", max_trials=n_trials, starts="ones", random_state=0
    )
    assert model.fit(*wine).history_.score.size == 1 + n_trials


def test_lambdas_are_those_of_the_start_or_at_an_end(wine):
    X, y = wine
    bounds = (-3.0, np.linspace(1.0, 9.0, 13))
    model = SupervisedPowerTransformer(
        GaussianNB(), search="blocks", bounds=bounds, starts="ones", random_state=1, max_trials=60
    ).fit(X, y)
    at = np.vstack([np.full(13, -3.0), np.ones(13), bounds[1]])
    assert (model.lambdas_ == at).any(axis=0).all()
    assert (model.lambdas_ != 1.0).any()
    free = SupervisedPowerTransformer(GaussianNB(), search="blocks", starts="ones", random_state=1).fit(X, y)
    assert set(abs(free.lambdas_)) <= {1.0, 20.0}


@pytest.mark.slow
def test_single_columns_are_tried_at_both_ends(wine):
    """The scorer never improves, so a trial of a column at one end is followed by a trial at the other end."""
    X, y = wine[0][:, :5], wine[1]
    model = SupervisedPowerTransformer(
        GaussianNB(), search="blocks", scoring=lambda *_: 0.0, max_trials=40, starts="ones", random_state=0, cv=2
    ).fit(X, y)
    history = model.history_
    single = np.flatnonzero(history.column >= 0)
    assert (history.lmbda[single[::2]] == -history.lmbda[single[1::2]]).all()
    assert (history.column[single[::2]] == history.column[single[1::2]]).all()
    assert set(history.column[single]) == set(range(5))
    assert (model.lambdas_ == 1.0).all()


def test_blocks_do_not_shrink_below_one_column(wine):
    """Blocks shrink to single columns while no score is better; the first improvement doubles the next block."""
    X, y = wine
    calls = itertools.count()
    history = (
        SupervisedPowerTransformer(
            GaussianNB(), search="blocks", scoring=lambda *_: max(0.0, next(calls) - 60.0), max_trials=40,
            starts="ones", random_state=0, cv=2,
        )
        .fit(X, y)
        .history_
    )  # fmt: skip
    first = np.flatnonzero(history.score > 0.0)[0]
    assert first > 20
    assert (history.column[first - 8 : first + 1] >= 0).all()
    assert history.column[first + 1] == -1


@pytest.mark.slow
def test_patience_counts_blocks(wine):
    X, y = wine
    model = SupervisedPowerTransformer(
        GaussianNB(), search="blocks", scoring=lambda *_: 0.0, patience=4, starts="ones", random_state=0
    ).fit(X, y)
    assert model.history_.score.size == 1 + 8


@pytest.mark.slow
def test_blocks_need_a_fraction_of_the_trials_of_a_grid():
    """The estimator is nearest neighbors; the columns are skewed, and most are uninformative."""
    X, y = make_classification(100, 14, n_informative=4, n_redundant=0, shuffle=False, random_state=1)
    options = {"cv": 3, "random_state": 0}
    grid = SupervisedPowerTransformer(KNeighborsClassifier(), max_epochs=1, **options).fit(np.exp(X), y)
    blocks = SupervisedPowerTransformer(KNeighborsClassifier(), search="blocks", **options).fit(np.exp(X), y)
    assert blocks.history_.score.size <= grid.history_.score.size / 3
    assert blocks.best_score_ >= grid.best_score_


@pytest.mark.slow
def test_one_column(wine):
    X, y = wine
    model = SupervisedPowerTransformer(GaussianNB(), search="blocks", random_state=0).fit(X[:, [9]], y)
    assert model.history_.score.size == 2 + 20 + 1  # starts, trials, and without a transform
    assert model.history_.lmbda[-1] == 1.0


@pytest.mark.slow
def test_a_column_that_is_better_off_without_a_transform_has_none(wine):
    X, y = wine[0][:, [9]], wine[1]
    model = SupervisedPowerTransformer(GaussianNB(), search="blocks", starts=[[-20.0]], random_state=0).fit(X, y)
    assert model.lambdas_.tolist() == [1.0]
    assert model.best_score_ == model.history_.score[-1] > model.history_.score[:-1].max()
    assert model.best_score_ == pytest.approx(cross_val_score(GaussianNB(), X, y).mean(), abs=1e-12)
