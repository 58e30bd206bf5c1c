"""Searches over trials, lambdas and ranks, by the data of what is drawn."""

from __future__ import annotations

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest

from powerkern.completion import RankProfile, rank_profile
from powerkern.plot import elbow_plot, lambda_map, search_plot

# --- searches ----------------------------------------------------------------------------------------


def test_search_plot_shows_trials_and_the_best_so_far():
    scores = [np.nan, 0.4, 0.2, np.nan, 0.9, 0.5]
    trials, best = search_plot(scores).lines
    assert np.array_equal(trials.get_xdata(), [1, 2, 3, 4, 5, 6])
    assert np.array_equal(trials.get_ydata(), scores, equal_nan=True)
    assert np.array_equal(best.get_ydata(), [np.nan, 0.4, 0.4, 0.4, 0.9, 0.9], equal_nan=True)


@pytest.mark.parametrize("scores", [[], [[0.1, 0.2]]])
def test_search_plot_takes_one_score_a_trial(scores):
    with pytest.raises(ValueError, match="one-dimensional array of at least one score"):
        search_plot(scores)


def marks_of(ax):
    """Where the marks of a map are, and what their labels say they score."""
    return {
        line.get_label().split(":")[0]: (*np.ravel(line.get_data()), float(line.get_label().split(":")[1]))
        for line in ax.lines
    }


def test_lambda_map_marks_the_optima():
    first, second = np.array([-1.0, 0.0, 1.0, 2.0]), np.array([0.0, 1.0, 2.0])
    scores = np.random.default_rng(4).random((4, 3)).round(3)
    ax = lambda_map(scores, [first, second], marks={"likely": (0.2, 1.9)})
    best = max(itertools.product(range(4), range(3)), key=lambda at: scores[at])
    equal = max([0.0, 1.0, 2.0], key=lambda lmbda: scores[int(lmbda) + 1, int(lmbda)])
    apart = int(np.argmax(scores[:, 1])), int(np.argmax(scores[2]))
    assert marks_of(ax) == {
        "full": (first[best[0]], second[best[1]], scores[best]),
        "spherical": (equal, equal, scores[int(equal) + 1, int(equal)]),
        "diagonal": (first[apart[0]], second[apart[1]], scores[apart]),
        "likely": (0.2, 1.9, scores[1, 2]),
    }
    assert np.array_equal(np.ravel(ax.collections[0].get_array()), scores.T.ravel())  # across: the first lambda


def test_lambda_map_of_lambdas_that_are_never_equal_and_of_missing_scores():
    ax = lambda_map([[np.nan, 0.5], [0.25, np.nan]], [[0.0, 1.0], [2.0, 3.0]])
    assert marks_of(ax) == {"full": (0.0, 3.0, 0.5), "diagonal": (1.0, 2.0, 0.25)}


@pytest.mark.parametrize(
    ("scores", "lmbdas", "message"),
    [
        ([[0.1, 0.2]], [[0.0], [0.0]], r"a table of two lists of lambdas, got shape \(1, 2\)"),
        ([0.1, 0.2], [[0.0, 1.0], [0.0]], "a table of two lists of lambdas"),
        ([[0.1]], [[[0.0]], [0.0]], "a table of two lists of lambdas"),
        ([[np.nan]], [[0.0], [0.0]], "no pair of lambdas has a score"),
    ],
)
def test_lambda_map_refuses_what_is_no_map(scores, lmbdas, message):
    with pytest.raises(ValueError, match=message):
        lambda_map(scores, lmbdas)


# --- ranks -------------------------------------------------------------------------------------------


def test_elbow_plot_draws_both_errors_and_marks_two_ranks():
    ranks = np.array([1, 2, 4, 7])
    profile = RankProfile(ranks, np.array([4.0, 2.0, 1.0, 0.5]), np.array([5.0, 3.0, 2.5, 2.6]), 4, 2)
    ax = elbow_plot(profile)
    fitted, held, chord, best, elbow = ax.lines
    assert fitted.get_ydata().tolist() == [4.0, 2.0, 1.0, 0.5]
    assert held.get_ydata().tolist() == [5.0, 3.0, 2.5, 2.6]
    assert fitted.get_xdata().tolist() == held.get_xdata().tolist() == [1, 2, 4, 7]
    assert chord.get_xydata().tolist() == [[1.0, 5.0], [4.0, 2.5]]
    assert best.get_xydata().tolist() == [[4.0, 2.5]]
    assert elbow.get_xydata().tolist() == [[2.0, 3.0]]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "fitted to", "held out", "first to best", "best: 4", "elbow: 2",
    ]  # fmt: skip
    assert all(tick == round(tick) for tick in ax.get_xticks())


def test_elbow_plot_of_one_rank_and_on_given_axes():
    given = plt.subplots()[1]
    rng = np.random.default_rng(0)
    assert elbow_plot(rank_profile(rng.normal(size=(20, 5)), [2], random_state=0), ax=given) is given
    assert given.lines[-1].get_label() == "elbow: 2"


def test_elbow_plot_says_what_is_no_profile():
    with pytest.raises(TypeError, match="profile must be a RankProfile, got list"):
        elbow_plot([1.0, 2.0])
