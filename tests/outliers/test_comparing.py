"""Mean ranks and their tests against scipy, brute force and hand-made cases."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from powerkern.outliers import RankComparison, compare_ranks

ERRORS = np.random.default_rng(2).uniform(size=(25, 6)) + np.linspace(0.0, 0.8, 6)


def plain_holm(p):
    """Step by step, as Holm has it."""
    left, adjusted, floor = dict(enumerate(p)), {}, 0.0
    while left:
        i = min(left, key=left.get)
        floor = max(floor, min(1.0, left[i] * len(left)))
        adjusted[i] = floor
        del left[i]
    return [adjusted[i] for i in range(len(p))]


def test_ranks_and_tests():
    found = compare_ranks(ERRORS)
    assert found.mean_ranks == pytest.approx(stats.rankdata(ERRORS, axis=1).mean(axis=0))
    pairs = list(combinations(range(6), 2))
    expected = plain_holm([stats.wilcoxon(ERRORS[:, i], ERRORS[:, j]).pvalue for i, j in pairs])
    assert [found.p_values[i, j] for i, j in pairs] == pytest.approx(expected)
    assert np.array_equal(found.p_values, found.p_values.T)
    assert found.friedman == pytest.approx(stats.friedmanchisquare(*ERRORS.T).pvalue)


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.5])
def test_groups_are_the_largest_that_do_not_differ(alpha):
    found = compare_ranks(ERRORS)
    order = np.argsort(found.mean_ranks)
    alike = [
        tuple(order[i:j].tolist())
        for i in range(6)
        for j in range(i + 2, 7)
        if all(found.p_values[a, b] >= alpha for a, b in combinations(order[i:j], 2))
    ]
    largest = [group for group in alike if not any(set(group) < set(other) for other in alike)]
    assert found.groups(alpha) == largest


def test_groups_that_overlap():
    p = np.ones((4, 4))
    p[0, 2] = p[2, 0] = p[0, 3] = p[3, 0] = p[1, 3] = p[3, 1] = 0.01
    assert RankComparison(np.array([1.0, 2.0, 3.0, 4.0]), p, 0.0).groups() == [(0, 1), (1, 2), (2, 3)]
    assert RankComparison(np.array([4.0, 3.0, 2.0, 1.0]), np.ones((4, 4)), 1.0).groups() == [(3, 2, 1, 0)]
    assert RankComparison(np.arange(4.0), np.eye(4), 0.0).groups() == []


def test_methods_that_are_equal():
    table = np.repeat(ERRORS[:, :1], 3, axis=1)
    found = compare_ranks(table)
    assert found.mean_ranks.tolist() == [2.0, 2.0, 2.0]
    assert (found.p_values == 1.0).all()
    assert found.friedman == 1.0


def test_infinite_skills_and_two_methods():
    skills = -ERRORS[:, :2]
    skills[0] = np.inf, 0.0
    skills[1] = np.inf
    found = compare_ranks(-skills)
    assert found.friedman == found.p_values[0, 1]
    rest = np.delete(ERRORS[:, :2], 1, axis=0)
    rest[0] = -1e9, 0.0
    assert found.friedman == pytest.approx(stats.wilcoxon(*rest.T).pvalue)


@pytest.mark.parametrize("errors", [[1.0, 2.0], [[1.0, 2.0]], [[1.0], [2.0]], [[1.0, np.nan], [2.0, 3.0]]])
def test_refuses(errors):
    with pytest.raises(ValueError, match="at least two rows"):
        compare_ranks(errors)
