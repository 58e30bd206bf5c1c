"""Maps of the scores of pairs of lambdas, checked by the data that are drawn."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from powerkern.plot import lambda_map


def marks_of(ax):
    """Return ``{label: (x, y, score)}`` of the marks of a map; their texts end with the score."""
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
    assert np.array_equal(np.ravel(ax.collections[0].get_array()), scores.T.ravel())  # x: the first lambda


def test_lambda_map_of_lambdas_that_are_never_equal_and_of_missing_scores():
    ax = lambda_map([[np.nan, 0.5], [0.25, np.nan]], [[0.0, 1.0], [2.0, 3.0]])
    assert marks_of(ax) == {"full": (0.0, 3.0, 0.5), "diagonal": (1.0, 2.0, 0.25)}


@pytest.mark.parametrize(
    ("scores", "lmbdas", "message"),
    [
        ([[0.1, 0.2]], [[0.0], [0.0]], r"a matrix with one entry per pair of lambdas, got shape \(1, 2\)"),
        ([0.1, 0.2], [[0.0, 1.0], [0.0]], "a matrix with one entry per pair of lambdas"),
        ([[0.1]], [[[0.0]], [0.0]], "a matrix with one entry per pair of lambdas"),
        ([[np.nan]], [[0.0], [0.0]], "no pair of lambdas has a score"),
    ],
)
def test_lambda_map_rejects_invalid_tables(scores, lmbdas, message):
    with pytest.raises(ValueError, match=message):
        lambda_map(scores, lmbdas)


@pytest.mark.parametrize(
    ("scores", "marked"),
    [
        ([[np.nan, 0.5], [0.25, np.nan]], {"full": (0.0, 1.0, 0.5), "diagonal": (0.0, 0.0, np.nan)}),
        ([[0.1, np.nan], [0.2, np.nan]], {"full": (1.0, 0.0, 0.2), "spherical": (0.0, 0.0, 0.1)}),
        ([[0.1, 0.2], [np.nan, np.nan]], {"full": (0.0, 1.0, 0.2), "spherical": (0.0, 0.0, 0.1)}),
    ],
)
def test_a_restricted_search_without_a_score_has_no_mark(scores, marked):
    """Without scores of equal lambdas there is no spherical mark; without scores of lambda = 1, no diagonal one."""
    found = marks_of(lambda_map(scores, [[0.0, 1.0], [0.0, 1.0]]))
    assert found.keys() == marked.keys()
    for name, values in marked.items():
        np.testing.assert_array_equal(found[name], values)


@pytest.mark.parametrize(
    ("marks", "error", "message"),
    [
        ([(0.0, 1.0)], TypeError, "marks must be a dict from names to pairs of lambdas, got list"),
        ({"one": (0.0,)}, ValueError, "each mark must be two lambdas"),
        ({"good": (0.0, 1.0), "three": (0.0, 1.0, 2.0)}, ValueError, "each mark must be two lambdas"),
    ],
)
def test_lambda_map_rejects_invalid_marks(marks, error, message):
    with pytest.raises(error, match=message):
        lambda_map([[0.1, 0.2], [0.3, 0.4]], [[0.0, 1.0], [0.0, 1.0]], marks=marks)


def test_marks_are_distinct_and_drawn_beside_the_map_without_a_line():
    ax = lambda_map([[0.1, 0.2], [0.3, 0.4]], [[0.0, 1.0], [0.0, 1.0]], marks={f"m{k}": (0.0, 0.0) for k in range(6)})
    assert [line.get_marker() for line in ax.lines] == list("*oDsX^v*o")
    assert {line.get_linestyle() for line in ax.lines} == {"None"}
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("lambda of the first column", "lambda of the second column")
    assert ax.get_legend().get_window_extent().y0 >= ax.get_window_extent().y1 - 0.5
