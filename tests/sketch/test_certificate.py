"""Error bounds and statuses of robust fits from chunks, compared with their definitions for stand-in columns."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import powerkern as pk
from powerkern import Status
from powerkern.kernels.results import CURVATURE, LMBDA, LMBDA0, N_OBS, N_RESULTS, ROUTE, STATUS
from powerkern.kernels.robust.fit import (
    CUTOFF_HIGH,
    CUTOFF_LOW,
    KEEPS_FAR_TAIL,
    N_CUTOFF_FIELDS,
    PRESCALING_CENTER,
    PRESCALING_DIVISOR,
)
from powerkern.kernels.robust.options import ADAPTIVE_QQ
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON
from powerkern.kernels.transforms.rectified import NOT_RECTIFIED
from powerkern.sketch import certificate, robust_column, robust_result, robust_steps
from powerkern.sketch.order import CellMoments

EXACT = 1e-11
ANY_RULE = robust_column.CutRule(NOT_RECTIFIED, False)


def points_of(lmbda0: float, lmbda: float = np.nan, low: float = np.nan, high: float = np.nan) -> Any:
    row = np.zeros(N_RESULTS)
    row[[LMBDA0, LMBDA]] = lmbda0, lmbda
    return SimpleNamespace(row=row, low=low, high=high, center=0.0, divisor=1.0)


def column_of(has_cut_off: bool = True, family: int = BOX_COX, **others: Any) -> Any:
    """Return a stand-in for a column whose cut-offs are ``points.low - lambda`` and ``points.high + 2 lambda``.

    `others` are its other attributes.
    """

    def cut(points, lmbda, rule):
        fields = np.zeros(N_CUTOFF_FIELDS)
        fields[[CUTOFF_LOW, CUTOFF_HIGH]] = points.low - lmbda, points.high + 2.0 * lmbda
        fields[[PRESCALING_CENTER, PRESCALING_DIVISOR]] = points.center, points.divisor
        fields[KEEPS_FAR_TAIL] = rule.adaptive and lmbda > 5.0
        return fields, points.low

    return SimpleNamespace(has_cut_off=has_cut_off, family=family, cut=cut, unit=2.0, weighted=False, **others)


@pytest.mark.parametrize(("has_cut_off", "spread"), [(True, 0.4), (False, 3.0)])
def test_the_start_is_uncertain_by_twice_the_spread_of_other_starts(has_cut_off, spread):
    column = column_of(has_cut_off, found_start=SimpleNamespace(points=points_of(1.0, 2.0)))
    others = [points_of(1.1, 2.5), points_of(0.6, 5.0), points_of(1.0, 2.0)]
    assert certificate.start_error(column, others, 0.05) == pytest.approx(2.0 * spread + 0.05)
    assert certificate.start_error(column, [], 0.05) == 0.05


def test_without_a_cut_off_the_search_is_uncertain_by_its_tolerance():
    start = SimpleNamespace(points=points_of(1.0))
    cells = SimpleNamespace(is_one_value=np.array([True]), rows=np.array([5.0]))
    column = column_of(False, found_start=start, cells=cells, prestandardizing_factor=lambda points: 4.0)
    assert certificate.search_error(column) == pytest.approx(2e-5 / 4.0)


@pytest.mark.parametrize(("weighted", "rows", "tolerance"), [(False, 5.0, 2e-5), (True, 5.0, 2e-4), (True, 1.0, 2e-5)])
def test_searches_of_an_objective_end_at_its_minimum(weighted, rows, tolerance):
    """The search starts at lambda = 2, where the scaled lambda (factor 0.5) is 1. The minimum is at 1.02."""
    start = SimpleNamespace(points=points_of(2.0), lmbda=2.0)
    cells = SimpleNamespace(is_one_value=np.array([False, True]), rows=np.array([9.0, rows]))
    column = column_of(True, found_start=start, cells=cells, prestandardizing_factor=lambda points: 0.5)
    column.weighted = weighted
    column.objective = lambda lmbdas: (0.5 * lmbdas - 1.02) ** 2
    assert certificate.search_error(column) == pytest.approx((0.02 + tolerance) / 0.5, abs=1e-4)


def state_of(**changes: Any) -> Any:
    step = SimpleNamespace(rule=ANY_RULE, interval=np.array([1.0, 9.0, 0.0, 1.0, np.nan]), uncertain=np.zeros(2))
    values = {
        "last_step": step, "lmbda": 1.0, "search_error": 0.125, "error": 0.25, "fit": None, "status": int(Status.OK),
        "is_settled": True,
        "alternatives": [points_of(1.5, low=2.0, high=8.0), points_of(0.5, low=2.25, high=8.0)],
    }  # fmt: skip
    return SimpleNamespace(**(values | changes))


@pytest.mark.parametrize("step_index", [0, 1])
def test_ends_of_kept_intervals_move_with_the_points_and_with_lambda(step_index):
    points = points_of(1.0, low=2.0, high=8.0)
    column = column_of(found_start=SimpleNamespace(points=points), ends=np.array([-100.0, 100.0]))
    state = state_of()
    here = np.array([2.0 - 1.0, 8.0 + 2.0])
    others = [(1.5, 2.0), (0.5, 2.25)] if step_index == 0 else [(1.0, 2.0), (1.0, 2.25)]
    moved = np.array([[low - lmbda, 8.0 + 2.0 * lmbda] for lmbda, low in others])
    error = 0.125 if step_index == 0 else 0.25
    distance = 2.0 * np.abs(moved - here).max(axis=0) + np.array([error, 2.0 * error])
    found = certificate.uncertain_ends(column, state, step_index)
    np.testing.assert_allclose(found[:, 0], here - distance)
    np.testing.assert_array_equal(found[:, 1], here)
    np.testing.assert_allclose(found[:, 2], here + distance)
    assert (found[:, 2] > here + distance).all()  # half-open intervals contain the largest end


def test_ends_of_kept_intervals_lie_just_beyond_the_data_at_most():
    column = column_of(ends=np.array([0.0, 4.0]))
    beyond = [np.nextafter(0.0, -1.0), np.nextafter(4.0, 5.0)]
    cut = np.zeros(N_CUTOFF_FIELDS)
    for ends, expected in (((np.nan, np.nan), beyond), ((-3.0, 7.0), beyond), ((1.0, 2.0), [1.0, 2.0])):
        cut[[CUTOFF_LOW, CUTOFF_HIGH]] = ends
        assert certificate._ends(column, cut).tolist() == expected


INFLUENCES = np.array([0.5, -2.0])


@pytest.fixture
def _influences(monkeypatch):
    monkeypatch.setattr(certificate, "_influences", lambda column, interval: INFLUENCES)


@pytest.mark.usefixtures("_influences")
def test_the_error_after_a_cut_is_the_influence_of_the_rows_that_may_cross_it():
    column = column_of(found_start=SimpleNamespace(points=points_of(1.0)))
    near = np.array([3.0, 4.0, 6.0, 5.0])
    expected = 1.25 * (0.5 * 4.0 + 2.0 * 6.0) / 2.0
    for lmbda in (0.5, -40.0):
        state = state_of(lmbda=lmbda, fit=SimpleNamespace(is_given=False))
        floor = EXACT * max(1.0, abs(lmbda))
        assert certificate.error_after_step(column, state, near) == pytest.approx(expected + floor, rel=1e-12)
        assert certificate.error_after_step(column, state, np.zeros(4)) == floor
    assert certificate.error_after_step(column, state_of(fit=SimpleNamespace(is_given=True)), near) == 0.25
    assert certificate.error_after_step(column, state_of(), np.array([0.0, np.inf, 0.0, 0.0])) == np.inf


@pytest.mark.usefixtures("_influences")
def test_the_error_of_a_trimmed_window_is_the_influence_of_its_uncertain_ends():
    column = column_of(False, found_start=SimpleNamespace(points=points_of(1.0, 2.0)))
    state = state_of(alternatives=[points_of(1.0, 2.5)])
    assert certificate.error_after_step(column, state, np.ones(4)) == 0.25
    state.last_step.uncertain = np.array([2.0, 3.0])
    expected = 2.0 * 0.5 + 0.125 + 1.25 * (0.5 * 2.0 + 2.0 * 3.0) / 2.0
    assert certificate.error_after_step(column, state, np.ones(4)) == pytest.approx(expected)


class StartPoints(NamedTuple):
    """Points x with weights w of a start. `row` and `options` are unused placeholders."""

    x: np.ndarray
    w: np.ndarray
    row: None = None
    options: None = None


def weighted_column(family: int) -> Any:
    x = np.sort(np.random.default_rng(0).lognormal(size=40))
    points = StartPoints(x, np.arange(1.0, 41.0) / 10.0)
    return column_of(family=family, found_start=SimpleNamespace(points=points)), points


def fitted(x, w, family="yeo-johnson") -> float:
    return float(pk.fit(x, family, sample_weight=w).lmbda[0])


def test_influences_are_changes_of_lambda_by_weight_at_the_ends():
    column, points = weighted_column(YEO_JOHNSON)
    interval = np.array([points.x[3], points.x[30], 0.5, 2.0, np.nan])
    x, w = (points.x[3:31] - 0.5) / 2.0, points.w[3:31]
    some = 1e-3 * w.sum()
    changed = [fitted(np.append(x, x[end]), np.append(w, some)) for end in (0, -1)]
    expected = (np.array(changed) - fitted(x, w)) / some
    np.testing.assert_allclose(certificate._influences(column, interval), expected, rtol=1e-6)


def test_uncertain_prescaling_moves_lambda_of_yeo_johnson_only():
    column, points = weighted_column(YEO_JOHNSON)
    step = SimpleNamespace(rule=ANY_RULE, interval=np.array([0.0, 9e9, 0.5, 2.0, np.nan]), uncertain=np.zeros(2))
    other, same = (SimpleNamespace(low=0.0, high=0.0, center=c, divisor=d) for c, d in ((0.6, 2.2), (0.5, 2.0)))
    further = SimpleNamespace(low=0.0, high=0.0, center=0.45, divisor=1.9)
    state = state_of(last_step=step, alternatives=[same, other, further])
    z = (points.x - 0.5) / 2.0
    here, shifted, scaled = (fitted(one, points.w) for one in (z, z - 0.05, z / 1.1))
    expected = 2.0 * (abs(shifted - here) + abs(scaled - here))
    assert certificate._error_of_scaling(column, state) == pytest.approx(expected, rel=1e-6)
    assert certificate._error_of_scaling(column, state_of(last_step=step, alternatives=[same])) == 0.0
    only_center = SimpleNamespace(low=0.0, high=0.0, center=0.6, divisor=2.0)
    moved = certificate._error_of_scaling(column, state_of(last_step=step, alternatives=[only_center]))
    assert moved == pytest.approx(2.0 * abs(shifted - here), rel=1e-6)
    assert certificate._error_of_scaling(weighted_column(BOX_COX)[0], state) == 0.0


# --- medians and neighbors ---------------------------------------------------------------------------


def test_medians_and_the_points_at_the_median_distance():
    x, w = np.array([0.0, 1.0, 4.0, 6.0, 20.0]), np.array([1.0, 1.0, 2.0, 1.0, 1.0])
    assert robust_column._median_distance(x, w, 4.0) == 2.0
    assert robust_column._median_distance(x, w, 0.0) == 4.0
    assert robust_column._medians(x, w).tolist() == [4.0, 2.0, 6.0]
    assert robust_column._medians(x, w, 0.0).tolist() == [4.0, 2.0, 6.0, -4.0, 4.0]


def test_neighbors_are_two_points_on_either_side():
    y = np.arange(10.0)
    found = robust_column._neighbors(y, np.array([4.5, np.nan, 7.0, -3.0, 99.0, np.inf]))
    assert sorted(set(found.tolist())) == [0, 1, 3, 4, 5, 6, 7, 8, 9]
    assert sorted(robust_column._neighbors(y, np.array([4.5])).tolist()) == [3, 4, 5, 6]
    assert sorted(robust_column._neighbors(y, np.array([4.0])).tolist()) == [2, 3, 4, 5]


# --- windows, statuses -------------------------------------------------------------------------------


def cells_with(rows, low, high, weight) -> CellMoments:
    rows, low, high, weight = (np.asarray(part, dtype=float) for part in (rows, low, high, weight))
    return CellMoments(rows, weight, low, high, 0.5 * (low + high), high - low, np.full(rows.size, 0.5))


CELLS = cells_with([2, 4, 3, 1], [0.0, 1.0, 3.0, 5.0], [0.0, 2.0, 3.0, 6.0], [4.0, 8.0, 6.0, 2.0])


@pytest.mark.parametrize(
    ("outside", "direction", "expected"),
    [
        (0.0, 1, (0.0, 0.0, 0.0)),
        (1.0, 1, (0.0, 2.0, 0.0)),  # half of a cell of one value, whose weight is 4
        (2.0, 1, (1.0, 0.0, 8.0)),
        (3.0, 1, (1.25, 0.0, 8.0)),
        (7.5, 1, (3.0, 3.0, 0.0)),
        (0.0, -1, (6.0, 0.0, 2.0)),
        (0.25, -1, (5.75, 0.0, 2.0)),
        (1.0, -1, (3.0, 0.0, 0.0)),
        (2.5, -1, (3.0, 3.0, 0.0)),
        (5.0, -1, (1.75, 0.0, 8.0)),
        (99.0, -1, (0.0, 182.0, 0.0)),
    ],
)
def test_ends_of_a_trimmed_window_divide_their_cells(outside, direction, expected):
    """The weights of the cells are 4, 8, 6 and 2 in multiples of the unit 2."""
    column = SimpleNamespace(untied_cells=CELLS, unit=2.0)
    found = robust_steps._end_of_window(column, outside, direction)
    assert found == pytest.approx(expected)


def test_counts_that_contradict_the_cells_are_refused():
    first = SimpleNamespace(total=np.array([20.0]), slack=np.array([0.0]))
    column = SimpleNamespace(label="column 0", first=first, j=0, untied_cells=CELLS, weight=20.0)

    def check(weight: float, kept: float, low: float, high: float) -> None:
        step = SimpleNamespace(interval=np.array([low, high]))
        sketch = SimpleNamespace(n_obs=np.array([kept]))
        robust_steps._check_unchanged(column, step, SimpleNamespace(weight=np.array([weight]), sketch=sketch))

    for kept in (6.0, 10.0, 14.0):  # the cell from 1 to 2 may lie inside or outside
        check(20.0, kept, 1.5, 3.0)
    check(20.0, 14.0, 1.0, 3.0)
    check(20.0, 8.0, 1.0, 2.0)
    check(20.0, 2.0, 5.0, 6.0)
    for weight, kept, low, high in (
        (20.0, 5.9, 1.5, 3.0),
        (20.0, 14.1, 1.5, 3.0),
        (20.0, 13.9, 1.0, 3.0),
        (20.1, 14.0, 1.0, 3.0),
        (20.0, 7.9, 1.0, 2.0),
    ):
        with pytest.raises(ValueError, match="column 0: the data changed between two passes"):
            check(weight, kept, low, high)


@pytest.mark.parametrize(
    ("curvature", "expected"), [(0.5, 1.0 / np.sqrt(0.5 * 8.0 / 2.0)), (0.0, np.inf), (-1.0, np.inf)]
)
def test_standard_errors_follow_from_the_curvature_per_value(curvature, expected):
    row = np.zeros(N_RESULTS)
    row[[CURVATURE, N_OBS]] = curvature, 8.0
    assert robust_steps.standard_error(SimpleNamespace(unit=2.0), SimpleNamespace(row=row)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, Status.SCANNED),
        ({"error": 0.2}, Status.BRACKETED),
        ({"error": 0.1}, Status.SCANNED),  # a hundredth of the standard error is negligible
        ({"fit_status": Status.UNRESOLVED}, Status.UNRESOLVED),
        ({"last": Status.AT_END, "fit_status": Status.AT_END}, Status.AT_END),
        ({"last": Status.FIXED}, Status.SCANNED),
        ({"start": Status.NOT_CERTIFIED}, Status.NOT_CERTIFIED),
        ({"start": Status.MULTIMODAL}, Status.MULTIMODAL),
        ({"is_settled": False}, Status.NOT_SETTLED),
        ({"is_settled": False, "n_reweight": 2}, Status.SCANNED),
        ({"lmbda": 6.0}, Status.TAIL_KEPT),
        ({"lmbda": 6.0, "start": Status.NOT_CERTIFIED}, Status.NOT_CERTIFIED),
        ({"lmbda": 6.0, "is_settled": False, "start": Status.MULTIMODAL}, Status.TAIL_KEPT),
        ({"is_settled": False, "start": Status.MULTIMODAL}, Status.NOT_SETTLED),
        ({"lmbda": 6.0, "criterion": -1}, Status.SCANNED),
    ],
)
def test_the_gravest_status_is_reported(changes, status, monkeypatch):
    n_reweight = changes.get("n_reweight", robust_result.MAX_STEPS)
    monkeypatch.setattr(robust_result, "max_fits", lambda options: n_reweight)
    points = points_of(1.0, low=0.0, high=1.0)
    points.options = None
    points.row[STATUS], points.row[ROUTE] = changes.get("start", Status.OK), 0.0
    column = column_of(
        found_start=SimpleNamespace(points=points),
        estimator=SimpleNamespace(criterion=changes.get("criterion", ADAPTIVE_QQ)),
    )
    row = np.zeros(N_RESULTS)
    row[[STATUS, CURVATURE, N_OBS]] = changes.get("fit_status", Status.OK), 0.01, 2.0  # standard error 10
    rule = robust_column.CutRule(NOT_RECTIFIED, True)
    state = state_of(
        fit=SimpleNamespace(row=row), lmbda=changes.get("lmbda", 1.0), error=changes.get("error", 0.01),
        is_settled=changes.get("is_settled", True), status=int(changes.get("last", Status.OK)),
        last_step=SimpleNamespace(rule=rule),
    )  # fmt: skip
    assert robust_result._status(column, state, state.fit) == status
    bound = 4.0 * state.error if state.error > 0.1 else state.error
    assert robust_result._error_bound(column, state) == bound
    assert robust_result._error_bound(column, None) == 0.0
