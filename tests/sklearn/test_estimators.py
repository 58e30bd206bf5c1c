"""Every scikit-learn estimator rejects input that is no table of numbers, in one sentence with place and remedy."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")
pandas = pytest.importorskip("pandas")

import scipy.sparse  # noqa: E402
from sklearn.ensemble import HistGradientBoostingClassifier, IsolationForest  # noqa: E402
from sklearn.naive_bayes import GaussianNB  # noqa: E402

from powerkern.sklearn import (  # noqa: E402
    LocationScaler,
    OutlierProbability,
    PowerTransformer,
    SupervisedPowerTransformer,
    UVImputer,
)

N = 20
Y = np.arange(N) % 2
A, B = np.random.default_rng(0).lognormal(size=(2, N))
TUNED = SupervisedPowerTransformer(GaussianNB(), cv=2, max_epochs=1)
ESTIMATORS = {"power": PowerTransformer(), "location": LocationScaler(), "imputer": UVImputer(1), "supervised": TUNED}


@pytest.fixture(params=ESTIMATORS.values(), ids=ESTIMATORS)
def estimator(request):
    return request.param


def frame(b):
    return pandas.DataFrame({"a": A, "b": b})


@pytest.mark.parametrize(
    ("b", "error", "message"),
    [
        (["x"] * N, ValueError, "'x' is not a real number; convert the column to numbers"),
        (np.array([1.0, "x"] * (N // 2), dtype=object), ValueError, "row 1: 'x' is not a real number"),
        (pandas.date_range("2026-01-01", periods=N), TypeError, "holds dates or times"),
        (pandas.to_timedelta(np.arange(N), unit="D"), TypeError, "holds dates or times"),
        (pandas.Categorical(["u", "v"] * (N // 2)), ValueError, "is categorical"),
        (np.where(np.arange(N) == 3, np.inf, B), ValueError, "row 3: the value is inf; replace infinite values"),
    ],
)
def test_the_column_is_named(estimator, b, error, message):
    with pytest.raises(error, match=rf"^column 1 \('b'\).*{message}"):
        estimator.fit(frame(b), Y)


def test_new_data_are_rejected_alike(estimator):
    fitted = estimator.fit(frame(B), Y)
    with pytest.raises(ValueError, match=r"^column 1 \('b'\), row 0: 'x' is not a real number"):
        fitted.transform(frame(["x"] * N))
    with pytest.raises(ValueError, match=r"^column 1 \('b'\), row 0: the value is -inf"):
        fitted.transform(frame(np.full(N, -np.inf)))


def test_names_that_are_not_unique(estimator):
    repeated = pandas.DataFrame({"a": A, "b": B}).set_axis(["a", "a"], axis=1)
    with pytest.raises(
        (TypeError, ValueError), match="the name 'a' belongs to more than one column; give every column its own"
    ):
        estimator.fit(repeated, Y)


@pytest.mark.parametrize("b", [pandas.array([None, *range(1, N)], dtype=t) for t in ("Int64", "Float64")])
def test_null_entries_are_missing(b):
    X = np.column_stack([A, np.r_[np.nan, 1.0:N]])
    for estimator in (PowerTransformer(), LocationScaler()):
        assert np.array_equal(estimator.fit_transform(frame(b)), estimator.fit_transform(X), equal_nan=True)
    assert not np.isnan(UVImputer(1).fit_transform(frame(b))).any()


def test_missing_values_are_for_the_classifier_to_take():
    X = frame(np.where(np.arange(N) == 4, np.nan, B))
    with pytest.raises(ValueError, match=r"^column 1 \('b'\), row 4: the value is NaN, which GaussianNB does not take"):
        TUNED.fit(X, Y)
    takes = SupervisedPowerTransformer(HistGradientBoostingClassifier(max_iter=1), cv=2, max_epochs=0).fit(X, Y)
    assert np.isnan(takes.transform(X)[4, 1])


def test_null_entries_of_polars_are_missing():
    polars = pytest.importorskip("polars")
    X = polars.DataFrame({"a": A, "b": [None, *range(1, N)]})
    expected = PowerTransformer().fit_transform(np.column_stack([A, np.r_[np.nan, 1.0:N]]))
    assert np.array_equal(PowerTransformer().fit_transform(X), expected, equal_nan=True)
    with pytest.raises(ValueError, match=r"^column 1 \('b'\), row 0: 'x' is not a real number"):
        PowerTransformer().fit(polars.DataFrame({"a": A, "b": ["x"] * N}))


def test_lazy_frames_are_to_be_collected(estimator):
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"X is a polars LazyFrame; .*X.collect\(\)"):
        estimator.fit(polars.DataFrame({"a": A}).lazy(), Y)


def test_sparse_data_are_refused(estimator):
    with pytest.raises(TypeError, match=r"X is sparse.*pass X.toarray\(\)"):
        estimator.fit(scipy.sparse.csr_array(np.column_stack([A, B])), Y)
    with pytest.raises((TypeError, ValueError), match=r"X is sparse; pass X.sparse.to_dense\(\)"):
        estimator.fit(frame(B).astype(pandas.SparseDtype(float)), Y)


def test_dask_collections_are_not_loaded_by_accident(estimator):
    array = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match=r"X is a Dask collection; use powerkern.dask"):
        estimator.fit(array.from_array(np.column_stack([A, B])), Y)


def test_masked_values_are_missing():
    X = np.ma.masked_array(np.column_stack([A, B]), mask=np.column_stack([A > 2.0, B > 2.0]))
    for one in (PowerTransformer(), LocationScaler()):
        assert np.array_equal(one.fit_transform(X), one.fit_transform(X.filled(np.nan)), equal_nan=True)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble, ">f8", np.uint8, bool])
def test_output_is_float32_for_float32_else_float64(estimator, dtype):
    X = (np.column_stack([A, B]) * 3.0).astype(dtype)
    X[::5, 0], X[::7, 1] = 0, 0  # so that columns of booleans vary in each class and fold
    out = estimator.fit(X, Y).transform(X)
    assert out.dtype == (np.float32 if dtype is np.float32 else np.float64)


@pytest.mark.parametrize(
    "estimator",
    [SupervisedPowerTransformer(GaussianNB(), variables=[0]), OutlierProbability(IsolationForest())],
    ids=["supervised", "outliers"],
)
def test_tables_whose_columns_something_else_reads(estimator):
    twice = frame(B).set_axis(["a", "a"], axis=1)
    with pytest.raises(ValueError, match="the name 'a' belongs to more than one column; give every column its own"):
        estimator.fit(twice, Y)
    lazy = pytest.importorskip("dask.array").from_array(np.column_stack([A, B]))
    with pytest.raises(TypeError, match=r"X is a Dask collection; use powerkern.dask"):
        estimator.fit(lazy, Y)


def test_some_variables_of_a_sparse_matrix_are_refused():
    with pytest.raises(TypeError, match=r"X is sparse.*pass X.toarray\(\)"):
        SupervisedPowerTransformer(GaussianNB(), variables=[0]).fit(scipy.sparse.csr_array(np.column_stack([A, B])), Y)
