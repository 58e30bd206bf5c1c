"""Rating models, compared with the gradient of the objective and with dense solutions; input formats and errors."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from powerkern.completion import RatingModel, fit_ratings
from powerkern.completion.ratings import _RatingsFold
from powerkern.kernels.multivariate.completion import least_squares_rows

rng = np.random.default_rng(16)
N, P, D, K = 300, 80, 2, 6000
ROW, COLUMN = rng.integers(0, N, K), rng.integers(0, P, K)
BIAS = 0.5 * rng.normal(size=N), 0.4 * rng.normal(size=P)
FACTORS = rng.normal(size=(N, D)), rng.normal(size=(P, D))
SIGNAL = 3.0 + BIAS[0][ROW] + BIAS[1][COLUMN] + (FACTORS[0][ROW] * FACTORS[1][COLUMN]).sum(axis=1)
VALUE = SIGNAL + 0.5 * rng.normal(size=K)
WEIGHT = rng.uniform(0.2, 3.0, K)


@pytest.fixture(scope="module")
def model() -> RatingModel:
    return fit_ratings((ROW, COLUMN, VALUE), rng=0)


def gradients(model: RatingModel, weight: np.ndarray) -> list[np.ndarray]:
    """Return the negative gradients of half the objective.

    They are with respect to row biases (n,), column biases (p,), row factor (n, rank) and column factor (p, rank).
    `weight` has one entry per rating.
    """
    error = weight * (VALUE - model.predict(ROW, COLUMN))
    by = [np.zeros_like(one) for one in (model.row_bias, model.column_bias, model.U, model.V.T)]
    for total, at, share in (
        (by[0], ROW, error),
        (by[1], COLUMN, error),
        (by[2], ROW, error[:, None] * model.V.T[COLUMN]),
        (by[3], COLUMN, error[:, None] * model.U[ROW]),
    ):
        np.add.at(total, at, share)
    own = (model.bias_ridge * model.row_bias, model.bias_ridge * model.column_bias)
    return [g - r for g, r in zip(by, (*own, model.ridge * model.U, model.ridge * model.V.T), strict=True)]


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_a_stationary_point_of_the_objective(weight):
    model = fit_ratings((ROW, COLUMN, VALUE), 2, weight=weight, rng=0)
    given = np.ones(K) if weight is None else weight
    for gradient, per_rating in zip(gradients(model, given), (N, P, N, P), strict=True):
        assert np.abs(gradient).max() < 0.005 * given.sum() / per_rating


def test_estimates_are_nearly_as_good_as_can_be(model):
    assert model.rank in (2, 3)
    rest = np.setdiff1d(np.arange(N * P), ROW * P + COLUMN)
    i, j = rest // P, rest % P
    truth = 3.0 + BIAS[0][i] + BIAS[1][j] + (FACTORS[0][i] * FACTORS[1][j]).sum(axis=1)
    error = np.sqrt(np.mean((model.predict(i, j) - truth) ** 2))
    assert error < 0.35  # with known columns 0.19: noise 0.5, 20 ratings and 3 parameters a row
    biases = fit_ratings((ROW, COLUMN, VALUE), 0, rng=0)
    assert biases.rank == 0
    assert np.sqrt(np.mean((biases.predict(i, j) - truth) ** 2)) > 3.0 * error
    assert abs(model.validation_rmse - np.hypot(error, 0.5)) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("fall", [0.7, 1.0])
def test_ranks_that_gain_less_than_a_standard_error_are_not_tried(monkeypatch, fall):
    """Most components improve the validation error by less than its standard error, so few ranks are tried."""
    rng = np.random.default_rng(16)
    strength = np.arange(1.0, 41.0) ** -fall
    i, j = rng.integers(0, 400, 20_000), rng.integers(0, 120, 20_000)
    u, v = rng.normal(size=(400, 40)) * strength, rng.normal(size=(120, 40))
    value = (u[i] * v[j]).sum(axis=1) + 0.7 * rng.normal(size=i.size)
    model = fit_ratings((i, j, value), rng=0)
    one, more = (fit_ratings((i, j, value), rank, rng=0) for rank in (1, 24))
    standard_error = model.validation_rmse / np.sqrt(2.0 * 2000)  # of the root mean square of normal errors
    assert 1 < model.rank < 24
    assert model.validation_rmse < one.validation_rmse - standard_error
    assert more.validation_rmse > model.validation_rmse - 2.0 * standard_error
    judged = _RatingsFold._evaluate
    monkeypatch.setattr(_RatingsFold, "_evaluate", lambda self, model: judged(self, model)._replace(standard_error=0.0))
    greedy = fit_ratings((i, j, value), rng=0)
    assert greedy.validation_rmse > model.validation_rmse - 1.2 * standard_error
    assert greedy.rank > model.rank or fall == 1.0


@pytest.mark.slow
def test_threads_and_forms_give_the_same_bits(model):
    names = np.array([f"user {i:03}" for i in range(N)])
    for again in (
        fit_ratings((ROW, COLUMN, VALUE), rng=0, n_threads=1),
        fit_ratings((names[ROW], COLUMN, VALUE), rng=0),
    ):
        assert_array_equal(again.U, model.U)
        assert_array_equal(again.V, model.V)
    assert_array_equal(again.rows, names)
    assert_array_equal(again.predict("user 007", [3, 4]), model.predict(7, [3, 4]))


def test_sparse_matrices_agree_with_triplets():
    first = np.unique(ROW * P + COLUMN, return_index=True)[1]
    triplets = ROW[first], COLUMN[first], VALUE[first]
    M = scipy.sparse.coo_array((triplets[2], triplets[:2]), shape=(N + 1, P))
    model = fit_ratings(M, 2, rng=0)
    assert_allclose(model.predict(ROW, COLUMN), fit_ratings(triplets, 2, rng=0).predict(ROW, COLUMN), rtol=0.02)
    assert model.rows.size == N + 1
    assert model.row_bias[N] == 0.0
    assert model.predict(N, 3) == model.mean + model.column_bias[3]


def test_data_frames_give_the_model_of_triplets(model):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"who": ROW, "what": COLUMN, "how": VALUE})
    assert_array_equal(fit_ratings(frame, rng=0).V, model.V)


def test_arrow_tables_give_the_model_of_triplets(model):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"who": ROW, "what": COLUMN, "how": VALUE})
    assert_array_equal(fit_ratings(table, rng=0).V, model.V)


def test_missing_ratings_and_those_without_weight_are_absent():
    value, weight = VALUE.copy(), np.ones(K)
    value[:5], weight[5:9] = np.nan, 0.0
    found = fit_ratings((ROW, COLUMN, value), 1, weight=weight, rng=0)
    expected = fit_ratings((ROW[9:], COLUMN[9:], VALUE[9:]), 1, weight=weight[9:], rng=0)
    assert_array_equal(found.predict(ROW, COLUMN), expected.predict(ROW, COLUMN))


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_a_new_row_is_a_ridge_regression(model, weight):
    own = np.flatnonzero(ROW == 11)
    j, value = COLUMN[own], VALUE[own]
    given = np.ones(own.size) if weight is None else weight[own]
    row = model.fold_in(j, value, None if weight is None else given)
    A = np.vstack([np.column_stack([model.V.T[j], np.ones(j.size)]) * np.sqrt(given)[:, None], np.eye(model.rank + 1)])
    A[j.size :] *= np.sqrt([*[model.ridge] * model.rank, model.bias_ridge])[:, None]
    b = np.append((value - model.mean - model.column_bias[j]) * np.sqrt(given), np.zeros(model.rank + 1))
    solution = np.linalg.lstsq(A, b)[0]
    assert_allclose([*row.u, row.bias], solution, rtol=1e-9)
    assert_allclose(row.predict(j), model.mean + model.column_bias[j] + A[: j.size] @ solution / np.sqrt(given))
    if weight is None:  # a fitted row has the same optimum
        assert_allclose(row.predict(np.arange(P)), model.predict(11, np.arange(P)), rtol=0.01)


def test_unknown_rows_and_columns_get_the_mean_and_biases(model):
    assert_array_equal(model.predict([N + 5, -1], [P + 5, -1]), model.mean)
    assert_allclose(model.predict(N + 5, 3), model.mean + model.column_bias[3])
    assert_allclose(model.predict(2, P + 1), model.mean + model.row_bias[2])
    assert_allclose(model.fold_in([P + 1], [5.0]).predict([P + 1, 0]).shape, (2,))


@pytest.mark.slow
def test_only_ratios_of_weights_matter(model):
    plain, tiny, huge = (
        fit_ratings((ROW, COLUMN, VALUE), weight=scale * WEIGHT, rng=0) for scale in (1.0, 2.0**-20, 2.0**20)
    )
    for scaled, unit in ((tiny, 2.0**-20), (huge, 2.0**20)):
        assert_array_equal(scaled.predict(ROW, COLUMN), plain.predict(ROW, COLUMN))
        assert scaled.ridge == unit * plain.ridge
        assert scaled.shrinkage == plain.shrinkage
        assert_allclose(scaled.fold_in([1, 2], [5.0, 1.0]).u, plain.fold_in([1, 2], [5.0, 1.0]).u)
        given = scaled.fold_in([1, 2], [5.0, 1.0], [unit, 2.0 * unit])
        assert_allclose(given.u, plain.fold_in([1, 2], [5.0, 1.0], [1.0, 2.0]).u)
    equal = fit_ratings((ROW, COLUMN, VALUE), weight=np.full(K, 1e-6), rng=0)
    assert_allclose(equal.predict(ROW, COLUMN), model.predict(ROW, COLUMN), rtol=1e-9)


@pytest.mark.parametrize("exponent", [-500, -265, 265, 508])
def test_units_of_the_ratings_scale_predictions(model, exponent):
    unit = 4.0**exponent
    other = fit_ratings((ROW, COLUMN, VALUE * unit), rng=0)
    assert (other.rank, other.shrinkage) == (model.rank, model.shrinkage)
    assert (other.rmse, other.validation_rmse) == (model.rmse * unit, model.validation_rmse * unit)
    pairs = np.arange(20)[:, None], np.arange(12)
    assert_array_equal(other.predict(*pairs), model.predict(*pairs) * unit)
    new, ratings = model.columns[:5], np.array([3.0, 1.0, 4.0, 1.0, 5.0])
    folded = other.fold_in(new, ratings * unit).predict(other.columns)
    assert_array_equal(folded, model.fold_in(new, ratings).predict(model.columns) * unit)


def test_rows_without_any_value_are_not_there():
    value = np.where(ROW == 3, np.nan, VALUE)
    found = fit_ratings((ROW, COLUMN, value), 0, rng=0)
    assert 3 not in found.rows


def test_errors_computed_in_parts_are_the_same(model, monkeypatch):
    monkeypatch.setattr("powerkern.completion.ratings._AT_A_TIME", 999)
    assert fit_ratings((ROW, COLUMN, VALUE), rng=0).rmse == model.rmse


@pytest.mark.parametrize("constant", [0.0, 7.0])
def test_equal_ratings_are_predicted_exactly(constant):
    model = fit_ratings((ROW, COLUMN, np.full(K, constant)), rng=0)
    assert_allclose(model.predict(ROW, COLUMN), constant, atol=1e-12)


def test_ratings_that_cannot_be_fitted_are_refused():
    with pytest.raises(ValueError, match=r"three arrays of one length .*, got shapes \(3,\), \(2,\)"):
        fit_ratings(([1, 2, 3], [1, 2], [1.0, 2.0, 3.0]))
    with pytest.raises(TypeError, match=r"must be a sparse matrix, or .* got ndarray; uv_decompose and UVImputer"):
        fit_ratings(np.ones((3, 3)))
    with pytest.raises(TypeError, match=r"ratings, row 0: .* is not a real number"):
        fit_ratings((ROW, COLUMN, VALUE.astype(str)))
    bad = VALUE.copy()
    bad[17] = np.inf
    with pytest.raises(ValueError, match=rf"rating 17 \(row {ROW[17]}, column {COLUMN[17]}\) is inf; remove it"):
        fit_ratings((ROW, COLUMN, bad))
    with pytest.raises(ValueError, match="there are 4 ratings; at least 10 are needed"):
        fit_ratings((ROW[:4], COLUMN[:4], VALUE[:4]))
    for rank in (-1, 1.5, "best", True):
        with pytest.raises(ValueError, match="rank must be 'auto' or a whole number of at least 0"):
            fit_ratings((ROW, COLUMN, VALUE), rank)
    with pytest.raises(ValueError, match="rank is 81, but there are 300 rows and 80 columns"):
        fit_ratings((ROW, COLUMN, VALUE), 81)
    with pytest.raises(ValueError, match=r"shrinkage must be a number in \(0, inf\)"):
        fit_ratings((ROW, COLUMN, VALUE), shrinkage=0.0)
    with pytest.raises(ValueError, match=r"three arrays or columns \(row, column, value\), got 50; for a list of trip"):
        fit_ratings(list(zip(ROW[:50], COLUMN[:50], VALUE[:50], strict=True)))
    with pytest.raises(ValueError, match=r"weight has shape \(3,\), and there are 6000 ratings"):
        fit_ratings((ROW, COLUMN, VALUE), weight=np.ones(3))
    with pytest.raises(ValueError, match=r"^weight, row 7: the weight is -1"):
        fit_ratings((ROW, COLUMN, VALUE), weight=np.where(np.arange(VALUE.size) == 7, -1.0, 1.0))
    with pytest.raises(ValueError, match="labels of columns are missing"):
        fit_ratings((ROW, np.where(COLUMN == 3, np.nan, COLUMN), VALUE))
    with pytest.raises(TypeError, match="ratings is complex"):
        fit_ratings(scipy.sparse.coo_array((VALUE + 1j, (ROW, COLUMN))))
    with pytest.raises(ValueError, match="two arrays of one length"):
        fit_ratings((ROW, COLUMN, VALUE), 0).fold_in([1, 2], [1.0])


def test_queries_of_another_type_are_refused(model):
    with pytest.raises(TypeError, match="labels are of type int64, got <U1; pass labels of the fitted type"):
        model.predict("7", 3)


def test_weighted_rows_are_repeated_rows():
    """Integer weights in the kernel give the same result as repeated cells."""
    other, own = rng.normal(size=(7, 3)), rng.normal(size=(1, 3))
    index, value, times = np.array([0, 2, 3, 6], dtype=np.int32), rng.normal(size=4), np.array([2, 1, 3, 1])
    repeated = np.repeat(index, times), np.repeat(value, times)
    a, b, squares = own.copy(), own.copy(), np.empty((2, 1))
    weighted = np.array([0, 4]), index, value, np.sqrt(times.astype(float))
    least_squares_rows(weighted, other, a, 0.3, 1.0, squares[0])
    least_squares_rows((np.array([0, 7]), *repeated, np.empty(0)), other, b, 0.3, 1.0, squares[1])
    assert_allclose(a, b, rtol=1e-12)
    assert_allclose(squares[0], squares[1], rtol=1e-12)


@pytest.mark.parametrize("kind", [np.uint64, np.int64, object])
def test_labels_beyond_2_53_are_exact(kind: type) -> None:
    rng = np.random.default_rng(0)
    users, films = rng.integers(0, 20, 400), rng.integers(0, 8, 400)
    stars = rng.normal(size=20)[users] + 0.1 * rng.normal(size=400)
    ids = np.array([2**60 + int(user) for user in users], dtype=kind)
    right = fit_ratings((users, films, stars), 0, rng=0).predict(users[:9], films[:9])
    model = fit_ratings((ids, films, stars), 0, rng=0)
    for asked in (
        ids[:9],
        ids[:9].astype(np.int64),
        ids[:9].astype(np.uint64),
        [int(one) for one in ids[:9]],
        np.array([int(one) for one in ids[:9]], dtype=object),
    ):
        np.testing.assert_array_equal(model.predict(asked, films[:9]), right)
    assert model.predict(2**60 + int(users[0]), films[0]) == right[0]
    unknown = model.mean + model.column_bias[films[0]]
    for other in (2**60 + 20, np.uint64(2**60 - 1), 0.5):
        np.testing.assert_allclose(model.predict(other, films[0]), unknown)
    with pytest.raises(ValueError, match="may be a rounded integer"):
        model.predict(float(2**60), films[0])


def test_lists_of_labels_from_below_zero_to_beyond_int64_are_exact() -> None:
    """NumPy converts such a list to float64, in which adjacent integers of this size are equal."""
    users = [2**63, 2**63 + 1, -1] * 10
    films, stars = np.repeat(np.arange(10), 3), np.tile([5.0, 1.0, 3.0], 10)
    model = fit_ratings((users, films, stars), 0, rng=0)
    assert model.predict(2**63, 0) > 4.0
    assert model.predict(2**63 + 1, 0) < 2.0


def test_labels_beyond_64_bits_and_text_are_distinguished() -> None:
    films, stars = np.tile([0, 1], 10), np.arange(20.0)
    huge = [2**70 + k // 2 for k in range(20)]
    model = fit_ratings((huge, films, stars), 0, rng=0)
    assert model.rows.size == 10
    assert model.predict(2**70 + 3, 0) != model.predict(2**70 + 4, 0)
    names = pd.Series([f"u{k // 2}" for k in range(20)], dtype=object)
    model = fit_ratings((names, films, stars), 0, rng=0)
    assert model.predict("u3", 0) == model.predict(names[6], 0) != model.predict("u4", 0)


RATINGS_OF_LABELS = np.random.default_rng(4).lognormal(size=60)
MISSING = [Decimal("NaN"), Decimal("sNaN"), None, float("nan"), pd.NA]


@pytest.mark.parametrize("missing", MISSING, ids=repr)
def test_a_missing_label_is_unknown_and_none_is_fitted(missing: Any) -> None:
    users, items, values = np.repeat(np.arange(20), 3), np.tile(np.arange(3), 20), RATINGS_OF_LABELS
    model = fit_ratings((users, items, values), 1, rng=0)
    np.testing.assert_array_equal(model.predict(missing, 0), model.predict(999, 0))
    np.testing.assert_array_equal(model.predict([missing, 3], [0, 0]), model.predict([999, 3], [0, 0]))
    np.testing.assert_array_equal(model.predict([0, 1], missing), model.predict([0, 1], 999))
    others = users.astype(object)
    others[7] = missing
    with pytest.raises(ValueError, match="labels of rows are missing; leave out these ratings"):
        fit_ratings((others, items, values), 1, rng=0)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (np.datetime64("NaT"), TypeError, "labels are of type int64, got datetime64"),
        (["x", None], TypeError, "labels are of type int64, got 'x'"),
        ([{}], TypeError, r"\{\} is a dict, which cannot be a label"),
        ([1, [2]], ValueError, r"labels must be an array, got \[1, \[2\]\], whose parts have different lengths"),
    ],
)
def test_values_that_are_not_labels_are_rejected(rows: Any, error: type[Exception], message: str) -> None:
    users, items = np.repeat(np.arange(20), 3), np.tile(np.arange(3), 20)
    model = fit_ratings((users, items, RATINGS_OF_LABELS), 1, rng=0)
    with pytest.raises(error, match=message):
        model.predict(rows, 0)


def test_a_model_prints_its_size_and_error():
    rows, columns = np.divmod(np.arange(60), 6)
    model = fit_ratings((rows, columns, np.random.default_rng(0).normal(size=60)), 1, rng=0)
    expected = f"RatingModel(10 rows, 6 columns, rank=1, validation_rmse={model.validation_rmse:.6g})"
    assert repr(model) == expected
