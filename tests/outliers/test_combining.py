"""Combining the probabilities of several detectors."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from powerkern.outliers import combine_probabilities

rng = np.random.default_rng(11)
P = rng.uniform(size=(200, 9))


def test_combinations_agree_with_numpy():
    assert combine_probabilities(P) == pytest.approx(P.mean(axis=1), rel=1e-14)
    assert np.array_equal(combine_probabilities(P, "median"), np.median(P, axis=1))
    assert np.array_equal(combine_probabilities(P, "maximum"), P.max(axis=1))
    assert np.array_equal(combine_probabilities(P, "minimum"), P.min(axis=1))
    assert combine_probabilities(pd.DataFrame(P[:, :2])).to_numpy() == pytest.approx(P[:, :2].mean(axis=1))
    assert combine_probabilities(P[:, 0]) == pytest.approx(P[:, 0])


@pytest.mark.parametrize("method", ["mean", "median", "maximum", "minimum"])
def test_missing_probabilities_are_left_to_the_others(method):
    holes = P.copy()
    holes[0, 3] = math.nan
    holes[1] = math.nan
    found = combine_probabilities(holes, method)
    assert found[0] == pytest.approx(combine_probabilities(np.delete(P, 3, axis=1), method)[0], rel=1e-14)
    assert np.flatnonzero(np.isnan(found)).tolist() == [1]


@pytest.mark.parametrize("method", ["mean", "median", "maximum", "minimum"])
def test_order_and_layout_do_not_matter(method):
    expected = combine_probabilities(P, method)
    assert np.array_equal(combine_probabilities(P[:, ::-1], method), expected)
    assert np.array_equal(combine_probabilities(np.asfortranarray(P), method), expected)
    assert np.array_equal(combine_probabilities(P[::-1], method), expected[::-1])


def test_equal_probabilities_stay_what_they_are():
    for p in (0.1, 1.0 / 3.0, 0.7, 1.0):
        assert combine_probabilities(np.full((1, 7), p)) <= p
        assert combine_probabilities(np.full((1, 7), p)) == pytest.approx(p, rel=1e-15)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: combine_probabilities([[0.1, 1.5]]), "column 1, row 0: 1.5 is not a probability"),
        (lambda: combine_probabilities(P, "average"), "method must be one of"),
    ],
)
def test_invalid_probabilities_and_methods_are_rejected(call, message):
    with pytest.raises(ValueError, match=message):
        call()
