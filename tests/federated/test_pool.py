"""Columns over all sites: scalings, checks of requests and answers, and merging, compared with their definitions."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

import powerkern as pk
from powerkern import Status
from powerkern.federated import pool
from powerkern.federated.integers import check_quantum, score_error
from powerkern.federated.messages import ProtocolError
from powerkern.federated.protocol import _choose_status, _ColumnTask
from powerkern.federated.search import ColumnOptimum, EvaluatedPoint, evaluate_once
from powerkern.kernels.likelihood import partial_moments
from powerkern.kernels.likelihood import score_formulas as lk
from powerkern.kernels.likelihood.score import Score
from powerkern.kernels.results import LMBDA, N_OBS, STATUS
from powerkern.kernels.transforms.family import FAMILIES
from powerkern.sketch import range_of

N = partial_moments.N_PARTIAL
EPS = float(np.finfo(float).eps)


def column_of(x: list[float], family: str = "yeo-johnson") -> pool.PooledColumn:
    return pool.make_column(range_of(np.array(x), family)._table[0], FAMILIES[family])


def log_of(x: float, family: str) -> float:
    return math.log(x) if family == "box-cox" else math.log1p(abs(x))


@pytest.mark.parametrize(
    ("x", "family", "sign"),
    [
        ([1.0, 2.0, 8.0], "yeo-johnson", 1.0),
        ([0.0, 2.0, 8.0], "yeo-johnson", 1.0),
        ([-1.0, -2.0, -8.0], "yeo-johnson", -1.0),
        ([-1.0, 0.0], "yeo-johnson", 0.0),
        ([-1.0, 3.0, 8.0], "yeo-johnson", 0.0),
        ([0.25, 2.0, 8.0], "box-cox", 1.0),
    ],
)
def test_logs_are_scaled_by_their_range(x, family, sign):
    column = column_of(x, family)
    scaling = column.scaling
    assert (column.sign, column.x_min, column.x_max) == (sign, min(x), max(x))
    assert column.base == (0.0 if family == "box-cox" else 1.0)
    assert bool(scaling.both_signs) == (sign == 0.0)
    logs = [log_of(one, family) for one in x]
    if sign == 0.0:
        ends = [0.0, log_of(max(x), family), log_of(min(x), family)]
        assert (scaling.reference, column.log_reference) == (0.0, 0.0)
    else:
        reference = log_of(scaling.reference, family)
        assert min(logs) <= reference <= max(logs)
        assert column.log_reference == pytest.approx(reference)
        assert reference == pytest.approx(np.mean(logs), abs=1e-3)
        ends = [min(logs) - reference, max(logs) - reference, 0.0]
    scaled = [scaling.low, scaling.high, scaling.neg_high]
    np.testing.assert_allclose(np.array(scaled) * scaling.sigma, ends, atol=1e-12)
    assert math.log2(scaling.sigma) == round(math.log2(scaling.sigma))
    for lmbda in (-1.0, 0.0, 0.5, 3.0):
        own = 2.0 - lmbda if sign < 0.0 else lmbda
        assert column.exponent(lmbda) == own * scaling.sigma


@pytest.mark.parametrize("x", [[-3.0, 7.0], [-1e9, 1e9], [-0.5, 1e6], [-1e300, 2.0]])
def test_the_search_over_both_signs_starts_where_both_ends_are_of_one_size(x):
    """Let p = ln(1 + max x) and n = ln(1 - min x). At lambda = 2 n/(p + n), the powers of both extremes are equal.

    The powers are (1 + x)**lambda for x > 0 and (1 - x)**(2 - lambda) for x < 0.
    """
    column = column_of(x)
    positive, negative = math.log1p(x[1]), math.log1p(-x[0])
    assert column.start / column.scaling.sigma == pytest.approx(2.0 * negative / (positive + negative))


@pytest.mark.parametrize("x", [[1.0, 1.001], [1.0, 1e9], [0.0, 0.1]])
def test_the_search_over_one_sign_starts_at_the_lesser_of_one_and_the_unit(x):
    column = column_of(x)
    assert column.start == min(1.0, column.scaling.sigma)
    assert column.exponent(1.0) == column.scaling.sigma


def test_columns_without_a_likelihood():
    empty, constant = column_of([np.nan, np.nan]), column_of([2.5, 2.5])
    assert (empty.status, constant.status) == (Status.EMPTY, Status.CONSTANT)
    assert math.isnan(empty.x_min)
    assert math.isnan(empty.x_max)
    assert (constant.x_min, constant.x_max) == (2.5, 2.5)
    for column in (empty, constant):
        row = pool.make_identity_row(column, 3.0, column.status)
        assert row[[LMBDA, N_OBS, STATUS]].tolist() == [1.0, 3.0, column.status]
        assert column.sign == 0.0


# --- requests ----------------------------------------------------------------------------------------


def body_of(**changes: float) -> np.ndarray:
    """Return the body of a moments request: column 1 at exponents 0.5 and 0.25, column 0 at exponents 0.125 and 0.

    A keyword argument ``at_K=value`` replaces entry K of the first row.
    """
    columns = [column_of([1.0, 4.0], "box-cox"), column_of([2.0, 9.0], "box-cox")]
    body = pool.write_moments_request([(1, columns[0]), (0, columns[1])], [[0.5, 0.25], [0.125, 0.0]])
    for name, value in changes.items():
        body[0, int(name.removeprefix("at_"))] = value
    return body


def test_a_request_holds_bounds_scaling_and_exponents():
    asked = pool.read_moments_request(body_of(), 2, FAMILIES["box-cox"])
    assert asked.which.tolist() == [1, 0]
    assert (asked.low.tolist(), asked.high.tolist()) == ([1.0, 2.0], [4.0, 9.0])
    assert asked.at.tolist() == [[0.5, 0.25], [0.125, 0.0]]
    assert asked.scalings[0].tolist() == [float(one) for one in column_of([1.0, 4.0], "box-cox").scaling]


SCALING = 3
REFERENCE = SCALING + partial_moments.REFERENCE
LOW, HIGH = SCALING + partial_moments.LOW, SCALING + partial_moments.HIGH
SIGMA = SCALING + partial_moments.SIGMA


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b[0], "not a table of exponents"),
        (lambda b: b[:0], "not a table of exponents"),
        (lambda b: b.astype(int), "not a table of exponents"),
        (lambda b: b[:, :-2], "not a table of exponents"),
        (lambda b: np.hstack([b, np.zeros((2, 1023))]), "not a table of exponents"),
        (lambda b: _with(b, 9, np.nan), "NaN or infinite values"),
        (lambda b: _with(b, 0, 2.0), "columns other than 0 to 1"),
        (lambda b: _with(b, 0, 0.0), "columns other than 0 to 1"),  # twice
        (lambda b: _with(b, 0, 0.5), "columns other than 0 to 1"),
        (lambda b: _with(b, SIGMA, 0.0), "a unit that is not positive"),
        (lambda b: _with(b, 1, 4.0), "bounds that no values can have"),
        (lambda b: _with(b, 1, 0.0), "bounds that no values can have"),
        (lambda b: _with(b, SCALING + partial_moments.BOTH_SIGNS, 1.0), "a scaling that does not follow"),
        (lambda b: _with(b, REFERENCE, 4.5), "a scaling that does not follow"),
        (lambda b: _with(b, LOW, b[0, LOW] + 2e-9), "a scaling that does not follow"),
        (lambda b: _with(b, HIGH, b[0, HIGH] - 2e-9), "a scaling that does not follow"),
        (lambda b: _with(b, SCALING + partial_moments.NEG_HIGH, 1.0), "a scaling that does not follow"),
        (lambda b: _rescaled(b, 2.1), "a scaling that does not follow"),
        (lambda b: _rescaled(b, 0.45), "a scaling that does not follow"),
    ],
)
def test_requests_that_no_server_sends_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        pool.read_moments_request(change(body_of()), 2, FAMILIES["box-cox"])


@pytest.mark.parametrize(
    "change",
    [
        lambda b: np.hstack([b, np.zeros((2, 1022))]),  # 1024 exponents
        lambda b: _with(b, LOW, b[0, LOW] + 0.5e-9),
        lambda b: _rescaled(b, 2.0),
        lambda b: _rescaled(b, 0.5),
    ],
)
def test_requests_of_machines_that_round_differently_are_accepted(change):
    pool.read_moments_request(change(body_of()), 2, FAMILIES["box-cox"])


def _with(body: np.ndarray, at: int, value: float) -> np.ndarray:
    body[0, at] = value
    return body


def _rescaled(body: np.ndarray, factor: float) -> np.ndarray:
    body[0, SIGMA] *= factor
    body[0, [LOW, HIGH]] /= factor
    return body


# --- answers -----------------------------------------------------------------------------------------

GOOD = {lk.WEIGHT: 10.0, lk.Y: 1.0, lk.Y1: -1.0, lk.YY: 20.0, lk.Y1Y1: 30.0, lk.YY1: 20.0, lk.YY2: 30.0, lk.YY3: 30.0}


def moments_with(changes: dict[int, float]) -> np.ndarray:
    moments = np.zeros((2, 3, N))
    for k, value in GOOD.items():
        moments[..., k] = value
    for k, value in changes.items():
        moments[1, 2, k] = value
    return moments


def check(moments: Any, error: float = 0.0) -> None:
    pool.check_moments(moments, (2, 3, N), np.array([4, 7]), error)


ROOM = 4.1**2 * 10.0


@pytest.mark.parametrize(
    ("changes", "error", "is_possible"),
    [
        ({}, 0.0, True),
        ({lk.YY: -1e-24}, 0.0, False),
        ({lk.YY: -0.5, lk.YY1: 0.0, lk.YY2: 0.0, lk.YY3: 0.0}, 0.01, True),
        ({lk.Y1Y1: -1e-20}, 0.0, False),
        ({lk.YY: 0.0, lk.YY1: 0.0, lk.YY2: 0.0, lk.YY3: 0.0}, 0.0, True),
        ({lk.YY: 1.001 * ROOM}, 0.0, False),
        ({lk.YY: 0.999 * ROOM}, 0.0, True),
        ({lk.YY: 1.001 * ROOM}, 0.01, True),
        ({lk.Y1Y1: 1.001 * ROOM}, 0.0, False),
        ({lk.Y: 4.2}, 0.0, False),
        ({lk.Y: -4.2}, 0.0, False),
        ({lk.Y: 4.05}, 0.0, True),
        ({lk.Y: 4.15}, 0.01, True),
        ({lk.Y3: 4.2}, 0.0, False),
        ({partial_moments.JACOBIAN: 4.2}, 0.0, False),
        ({lk.YY1: 1.01 * math.sqrt(600.0)}, 0.0, False),
        ({lk.YY1: -0.99 * math.sqrt(600.0)}, 0.0, True),
        ({lk.YY1: -1.01 * math.sqrt(600.0)}, 0.0, False),
        ({lk.YY2: 1.01 * math.sqrt(20.0 * ROOM)}, 0.0, False),
        ({lk.YY2: 0.99 * math.sqrt(20.0 * ROOM)}, 0.0, True),
        ({lk.YY3: 1.01 * math.sqrt(20.0 * ROOM)}, 0.0, False),
        ({lk.Y1Y2: 1.01 * math.sqrt(30.0 * ROOM)}, 0.0, False),
        ({lk.Y1Y2: 0.99 * math.sqrt(30.0 * ROOM)}, 0.0, True),
        ({lk.WEIGHT: 10.0 * (1.0 + 2e-9)}, 0.0, False),
        ({lk.WEIGHT: 10.0 * (1.0 + 0.5e-9)}, 0.0, True),
        ({lk.Y2: np.nan}, 0.0, False),
        ({lk.Y2: np.inf}, 0.0, False),
    ],
)
def test_moments_that_no_values_have_are_refused(changes, error, is_possible):
    if is_possible:
        check(moments_with(changes), error)
    else:
        with pytest.raises(ValueError, match="column 7 has moments that are not finite, or that no data can have"):
            check(moments_with(changes), error)


def test_negative_weights_and_other_arrays_are_refused():
    moments = moments_with({})
    moments[0, :, lk.WEIGHT] = -1.0
    with pytest.raises(ValueError, match="column 4 has moments"):
        check(moments)
    with pytest.raises(ValueError, match=r"the answer holds numbers of shape \(2, 2, "):
        check(moments_with({})[:, :2])
    with pytest.raises(ValueError, match="the answer holds numbers of shape"):
        check(moments_with({}).astype(int))
    check(np.zeros((2, 3, N)))  # sites without rows


def test_parts_are_merged_like_a_balanced_tree():
    def merge(a, b):
        return f"({a}{b})"

    assert pool.reduce_pairwise(merge, "a") == "a"
    assert pool.reduce_pairwise(merge, "abcde") == "(((ab)(cd))e)"
    assert pool.reduce_pairwise(merge, "abcdefg") == "(((ab)(cd))((ef)g))"


def test_merged_moments_are_those_of_all_rows():
    rng = np.random.default_rng(0)
    products = {lk.YY: (0, 0), lk.YY1: (0, 1), lk.Y1Y1: (1, 1), lk.YY2: (0, 2), lk.YY3: (0, 3), lk.Y1Y2: (1, 2)}

    def moments(y, jacobian, w):
        row = np.zeros(N)
        if w.sum() > 0.0:
            means = np.average(y, axis=1, weights=w)
            row[lk.WEIGHT] = w.sum()
            row[[lk.Y, lk.Y1, lk.Y2, lk.Y3]] = means
            row[partial_moments.JACOBIAN] = np.average(jacobian, weights=w)
            for k, (i, j) in products.items():
                row[k] = (w * (y[i] - means[i]) * (y[j] - means[j])).sum()
        return row

    y, jacobian, w = rng.normal(size=(4, 12)), rng.normal(size=12), rng.random(12)
    w[9:] = 0.0
    parts = [np.array([[moments(y[:, s], jacobian[s], w[s])] * 2]) for s in (slice(0, 4), slice(4, 9), slice(9, 12))]
    whole = moments(y, jacobian, w)
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
        found = pool.reduce_pairwise(pool.merge_moments, [parts[i] for i in order])
        np.testing.assert_allclose(found, np.broadcast_to(whole, (1, 2, N)), rtol=1e-12, atol=1e-13)


def test_weights_may_not_change_beyond_rounding():
    weights = pool.Weights()
    weights.check("a", np.array([0, 1]), np.array([5.0, 0.0]))
    weights.check("b", np.array([0]), np.array([7.0]))
    weights.check("a", np.array([1, 0]), np.array([0.0, 5.0 * (1.0 + 0.9e-9)]))
    for who, j, weight in (("a", 0, 5.0 * (1.0 + 1.1e-9)), ("a", 1, 1e-9), ("b", 0, 5.0), ("a", 0, np.nan)):
        with pytest.raises(ValueError, match=rf"column {j} has weight .*, not .* as announced; did rows change\?"):
            weights.check(who, np.array([j]), np.array([weight]))


# --- bounds on errors, statuses ----------------------------------------------------------------------


@pytest.mark.parametrize("e", [0.0, 1e-6, 0.01])
def test_the_bound_on_the_error_of_the_score_is_the_documented_one(e):
    rng = np.random.default_rng(3)
    n, eta = 50.0, 16.0 * EPS
    y, y1, jacobian = rng.normal(0.7, 0.3, 50), rng.normal(-0.4, 0.2, 50), 0.3
    s, s1 = abs(y.sum()), abs(y1.sum())
    row = np.zeros(N)
    c00, c11, c01 = 50.0 * y.var(), 50.0 * y1.var(), float(((y - y.mean()) * (y1 - y1.mean())).sum())
    row[[lk.WEIGHT, lk.Y, lk.Y1, lk.YY, lk.Y1Y1, lk.YY1]] = n, y.mean(), y1.mean(), c00, c11, c01
    row[partial_moments.JACOBIAN] = -jacobian
    s00, s11 = c00 + s * s / n + e, c11 + s1 * s1 / n + e
    e00 = e + (s + e) ** 2 / (n - e) - s * s / n
    e00 += 2.0 * eta * math.sqrt(c00 * s00) + eta**2 * s00
    e01 = e + (s + e) * (s1 + e) / (n - e) - s * s1 / n
    e01 += eta * (math.sqrt(c00 * s11) + math.sqrt((c11 + e) * s00)) + eta**2 * math.sqrt(s00 * s11)
    ratio = abs(c01) / c00
    expected = (e01 + ratio * e00) / (c00 - e00) + eta * ratio + e * (1.0 + jacobian) / (n - e) + 2.0 * eta
    assert score_error(row, e).item() == pytest.approx(expected, rel=1e-6)
    assert score_error(row, e).item() > 0.0


def test_the_score_has_no_bound_where_the_spread_or_the_weight_may_vanish():
    row = np.zeros(N)
    row[[lk.WEIGHT, lk.YY, lk.Y1Y1]] = 4.0, 1.0, 1.0
    assert score_error(row, 0.1).item() < np.inf
    assert score_error(row, 1.5).item() == np.inf
    row[lk.YY], row[lk.WEIGHT] = 1e9, 1.0
    assert score_error(row, 1.5).item() == np.inf


@pytest.mark.parametrize("quantum", [1.0, 1, 0.5, 2.0**-200])
def test_powers_of_two_are_quanta(quantum):
    assert check_quantum(quantum) == quantum
    assert isinstance(check_quantum(quantum), float)


@pytest.mark.parametrize(
    ("error", "d2", "certified", "status"),
    [
        (0.0, 4.0, True, Status.FIXED),
        (0.0, 0.0, True, Status.FIXED),
        (1e-9, 0.0, True, Status.BRACKETED),
        (0.009 / 20.0, 4.0, True, Status.FIXED),  # the standard error is 1/sqrt(100 * 4) = 1/20
        (0.011 / 20.0, 4.0, True, Status.BRACKETED),
        (0.009 / 5.0, 0.25, True, Status.FIXED),
        (0.011 / 5.0, 0.25, True, Status.BRACKETED),
        (0.0, 4.0, False, Status.NOT_CERTIFIED),
        (np.inf, 4.0, False, Status.UNRESOLVED),
    ],
)
def test_statuses_of_optima_follow_from_certificate_and_error(error, d2, certified, status):
    point = EvaluatedPoint(0.0, 0.0, Score(0.0, d2, 0.0, 0.0, 1.0, 0.0, 0.0), 0.0)
    best = ColumnOptimum(point, certified, 3, error)
    assert _choose_status(best, _ColumnTask(evaluate_once(0.0), Status.FIXED), 100.0) == status


def test_a_single_evaluation_returns_its_point():
    task = evaluate_once(0.75)
    assert next(task) == [0.75]
    point = EvaluatedPoint(0.75, 1.0, Score(0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0), 0.0)
    with pytest.raises(StopIteration) as end:
        task.send([point])
    assert end.value.value == ColumnOptimum(point, True, 1, 0.0)


def test_details_of_errors_stay_at_the_site():
    error = ProtocolError("column 0", "column 0, row 7")
    assert (str(error), error.detail) == ("column 0", "column 0, row 7")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.detail) == ("column 0", "column 0")
    assert ProtocolError("text").detail == "text"


def test_evaluations_of_a_fit_count_its_rounds():
    from powerkern.federated import fit_federated

    x = np.random.default_rng(0).lognormal(size=(60, 2))
    fit = fit_federated([x[:20], x[20:]], "box-cox", lmbda=[0.5, np.nan])
    assert fit.n_iter[0] == 1
    assert fit.n_iter[1] > 2
    assert fit.status.tolist() == [Status.FIXED, Status.OK]
    np.testing.assert_allclose(fit.nll, pk.fit(x, "box-cox", lmbda=[0.5, np.nan]).nll, rtol=1e-12)
