"""Columns in which one value is frequent, compared with loops over their values."""

from __future__ import annotations

import numpy as np
import pytest

from powerkern import Status
from powerkern._estimators.robust_bounds import _leave_out_ties
from powerkern._estimators.ties import count_ties, sort_with_weights, without_ties
from powerkern.kernels.results import (
    CURVATURE,
    KEPT_HIGH,
    KEPT_LOW,
    N_KEPT,
    N_OBS,
    N_RESULTS,
    NLL,
    STATUS,
)

COLUMNS = np.array(
    [
        [2.0, 2.0, 2.0, 2.0, 1.0, 5.0, 7.0],
        [0.5, 3.0, 3.0, np.nan, 3.0, 9.0, np.nan],
        [4.0, -1.0, 4.0, 4.0, np.nan, np.nan, np.nan],
        [6.0, 6.0, 6.0, 6.0, 6.0, 6.0, 1.0],
    ]
)
WEIGHTS = np.array([1.0, 0.0, 3.0, 0.5, 1.0, 1e-3, 2.0])


@pytest.mark.parametrize("weight", [None, WEIGHTS])
def test_rows_are_sorted_with_their_weights_and_values_without_weight_are_missing(weight: np.ndarray | None) -> None:
    columns, weights = sort_with_weights(COLUMNS.copy(), weight)
    for j, x in enumerate(COLUMNS):
        w = np.ones(x.size) if weight is None else weight
        pairs = sorted((a, b) for a, b in zip(x, w, strict=True) if not np.isnan(a) and b > 0.0)
        seen = ~np.isnan(columns[j])
        assert np.flatnonzero(seen).tolist() == list(range(len(pairs)))
        assert columns[j][seen].tolist() == [a for a, _ in pairs]
        if weights is not None:
            assert sorted(zip(columns[j][seen], weights[j][seen], strict=True)) == pairs


@pytest.mark.parametrize("weight", [None, WEIGHTS, WEIGHTS * 1e-300, WEIGHTS * 1e300])
@pytest.mark.parametrize("rows", [[0, 1, 2, 3], [2, 0]])
def test_the_tied_value_is_the_median_and_is_removed(rows: list[int], weight: np.ndarray | None) -> None:
    columns, weights = sort_with_weights(COLUMNS.copy(), weight)
    others, weights_of_others, ties, tied = without_ties(columns, weights, np.array(rows))
    for k, j in enumerate(rows):
        x = COLUMNS[j]
        w = np.ones(x.size) if weight is None else weight
        seen = ~np.isnan(x) & (w > 0.0)
        value = max(set(x[seen]), key=lambda v: w[seen & (x == v)].sum())
        assert ties[k] == value
        assert tied[k] == pytest.approx(w[seen & (x == value)].sum(), rel=1e-15)
        rest = np.sort(x[seen & (x != value)])
        np.testing.assert_array_equal(others[k][: rest.size], rest)
        assert np.isnan(others[k][rest.size :]).all()
        if weights_of_others is not None:
            expected = [w[seen & (x == v)].sum() for v in rest]
            np.testing.assert_array_equal(weights_of_others[k][: rest.size], expected)


def test_a_median_at_exactly_half_of_the_weight_is_the_lower_value() -> None:
    _, _, ties, tied = without_ties(np.array([[1.0, 1.0, 2.0, 2.0]]), None, np.array([0]))
    assert (ties.tolist(), tied.tolist()) == ([1.0], [2.0])


@pytest.mark.parametrize("weight", [None, np.array([1.0, 1.0, 2.0, 4.0])])
@pytest.mark.parametrize("column", [[1.0, 1.0, 1.0, 2.0], [1.0, 1.0, 2.0, 3.0], [3.0, np.nan, np.nan, 3.0], [1.0] * 4])
def test_values_with_more_than_half_of_the_weight_are_left_out(column: list[float], weight: np.ndarray | None) -> None:
    x = np.array(column)
    w = np.where(np.isnan(x), 0.0, 1.0 if weight is None else weight)
    tied = [v for v in set(x[~np.isnan(x)]) if w[x == v].sum() > 0.5 * w.sum()]
    found = x.copy()
    assert _leave_out_ties(found, weight) == bool(tied)
    np.testing.assert_array_equal(found, np.where(np.isin(x, tied), np.nan, x))


def test_tied_values_within_the_cutoff_count_as_kept() -> None:
    results = np.zeros((6, N_RESULTS))
    results[:, KEPT_LOW], results[:, KEPT_HIGH], results[:, N_KEPT], results[:, N_OBS] = 1.0, 3.0, 4.0, 10.0
    results[:, NLL], results[:, CURVATURE] = 20.0, 40.0
    results[:, STATUS] = [Status.OK, Status.SCANNED, Status.MULTIMODAL, Status.BRACKETED, Status.NOT_CERTIFIED, 99]
    ties = np.array([1.0, 3.0, 0.9, 3.1, 2.0, 2.0])
    tied = np.array([6.0, 4.0, 6.0, 6.0, 6.5, 1.0])
    count_ties(results, ties, tied)
    n_kept = [10.0, 8.0, 4.0, 4.0, 10.0, 5.0]  # at most all
    assert results[:, N_KEPT].tolist() == n_kept
    np.testing.assert_allclose(results[:, NLL], 20.0 * 4.0 / np.array(n_kept), rtol=1e-15)
    np.testing.assert_allclose(results[:, CURVATURE], 40.0 * 4.0 / np.array(n_kept), rtol=1e-15)
    assert results[:, STATUS].tolist() == [*[Status.TIED] * 4, Status.NOT_CERTIFIED, 99]
