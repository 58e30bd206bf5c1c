"""`variables=` of PowerTransformer: some columns are transformed, the others pass through unchanged."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest

import powerkern as pk

sklearn = pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402

from powerkern.sklearn import PowerTransformer  # noqa: E402

X = np.random.default_rng(0).lognormal(sigma=0.7, size=(60, 3))
WORDS = ["north", "south", "east"] * 20


def pandas_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"price": X[:, 0], "town": WORDS, "rooms": np.arange(60) % 7, "area": X[:, 1]})
    frame.index = np.arange(60) + 100
    return frame


@pytest.mark.parametrize("estimator", ["mle", "robust"])
def test_other_columns_of_pandas_pass_unchanged(estimator):
    frame = pandas_frame()
    transformer = PowerTransformer("box-cox", variables=["area", "price"], estimator=estimator)
    Z = transformer.fit_transform(frame)
    fit = pk.fit(X[:, :2], "box-cox", estimator)
    assert Z.columns.equals(frame.columns)
    assert Z.index.equals(frame.index)
    assert Z[["town", "rooms"]].equals(frame[["town", "rooms"]])
    np.testing.assert_array_equal(Z[["price", "area"]], fit.transform(X[:, :2]))
    np.testing.assert_array_equal(transformer.lambdas_, [fit.lmbda[0], np.nan, np.nan, fit.lmbda[1]])
    assert transformer.power_fit_.column_names == ["price", "area"]
    assert list(transformer.get_feature_names_out()) == list(frame.columns)
    back = transformer.inverse_transform(Z)
    assert back[["town", "rooms"]].equals(frame[["town", "rooms"]])
    np.testing.assert_allclose(back[["price", "area"]], X[:, :2], rtol=1e-9)
    assert pickle.loads(pickle.dumps(transformer)).transform(frame).equals(Z)
    again = clone(transformer).set_output(transform="pandas").fit(frame)
    assert again.transform(frame).equals(Z)


def test_other_columns_of_polars_pass_unchanged():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"price": X[:, 0], "town": WORDS, "area": X[:, 1]})
    transformer = PowerTransformer(variables=["area"], copy=False).fit(frame)
    Z = transformer.transform(frame)
    assert Z.schema == frame.schema
    assert Z.select("price", "town").equals(frame.select("price", "town"))
    assert abs(Z["area"].mean()) < 1e-12
    np.testing.assert_allclose(transformer.inverse_transform(Z)["area"], X[:, 1], rtol=1e-9)
    np.testing.assert_array_equal(frame["area"], X[:, 1])  # a frame is never overwritten


@pytest.mark.parametrize("variables", [[2, 0], [-1, 0], (True, False, True), np.array([0, 2])])
def test_other_columns_of_arrays_pass_unchanged(variables):
    transformer = PowerTransformer(variables=variables).fit(X)
    Z = transformer.transform(X)
    np.testing.assert_array_equal(Z[:, 1], X[:, 1])
    np.testing.assert_array_equal(Z[:, [0, 2]], pk.fit(X[:, [0, 2]]).transform(X[:, [0, 2]]))
    np.testing.assert_allclose(transformer.inverse_transform(Z), X, rtol=1e-9)
    assert np.isnan(transformer.lambdas_).tolist() == [False, True, False]


def test_the_order_of_variables_does_not_matter():
    np.testing.assert_array_equal(PowerTransformer(variables=[2, 0, 1]).fit_transform(X), pk.fit(X).transform(X))


def test_types_of_arrays_are_kept():
    Z = PowerTransformer(variables=[0]).fit_transform(X.astype(np.float32))
    assert Z.dtype == np.float32
    mixed = np.array([[x, word] for x, word in zip(X[:, 0], WORDS, strict=True)], dtype=object)
    transformer = PowerTransformer(variables=[0]).fit(mixed)
    Z = transformer.transform(mixed)
    assert Z[:, 1].tolist() == WORDS
    np.testing.assert_allclose(transformer.inverse_transform(Z)[:, 0].astype(float), X[:, 0], rtol=1e-9)


def test_in_place_and_read_only():
    given, expected = X.copy(), PowerTransformer(variables=[1]).fit_transform(X)
    transformer = PowerTransformer(variables=[1], copy=False).fit(given)
    assert transformer.transform(given) is given
    np.testing.assert_array_equal(given, expected)
    assert transformer.inverse_transform(given) is given
    np.testing.assert_allclose(given, X, rtol=1e-12)
    given = X.copy()
    given.flags.writeable = False
    np.testing.assert_array_equal(transformer.transform(given), expected)


def test_arguments_for_each_feature_are_chosen_too():
    weight = np.arange(60) % 3
    shift, bounds = np.array([0.5, 9.0, 0.25]), (None, [0.1, 9.0, -0.1])
    transformer = PowerTransformer("box-cox", variables=[0, 2], shift=shift, bounds=bounds)
    transformer.fit(X, sample_weight=weight)
    fit = pk.fit(X, "box-cox", shift=shift, bounds=bounds, sample_weight=weight)
    np.testing.assert_array_equal(transformer.lambdas_[[0, 2]], fit.lmbda[[0, 2]])
    streamed = clone(transformer).set_params(bounds=None).partial_fit(X[:30]).partial_fit(X[30:])
    whole = PowerTransformer("box-cox", variables=[0, 2], shift=shift).fit(X)
    np.testing.assert_allclose(streamed.lambdas_, whole.lambdas_, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(streamed.transform(X)[:, 1], X[:, 1])


@pytest.mark.parametrize("standardize", [True, False])
def test_lambdas_may_be_assigned(standardize):
    transformer = PowerTransformer(variables=["price", "area"], standardize=standardize)
    with pytest.raises(ValueError, match="before fit"):
        transformer.lambdas_ = [1.0, 1.0]
    frame = pandas_frame()
    expected = transformer.fit(frame).transform(frame)
    for _ in range(2):  # names stay when lambdas are assigned
        transformer.lambdas_ = transformer.lambdas_
        np.testing.assert_allclose(transformer.transform(frame)["area"], expected["area"], rtol=1e-10, atol=1e-12)
    assert transformer.power_fit_.column_names == ["price", "area"]
    with pytest.raises(ValueError, match="lambdas_ must have 4 entries"):
        transformer.lambdas_ = [1.0, 2.0]


def test_values_beyond_the_range_are_clipped():
    transformer = PowerTransformer("box-cox", variables=[1], out_of_range="clip").fit(X)
    back = transformer.inverse_transform([[5.0, 1e9, -7.0]])
    np.testing.assert_array_equal(back, [[5.0, X[:, 1].max(), -7.0]])
    with pytest.raises(ValueError, match="infinity"):
        transformer.inverse_transform([[5.0, np.inf, -7.0]])


def test_parameters_that_change_after_the_fit():
    transformer = PowerTransformer(variables=[1]).fit(X)
    expected = transformer.transform(X)
    transformer.set_params(variables=None)
    np.testing.assert_array_equal(transformer.transform(X), expected)
    np.testing.assert_array_equal(transformer.fit_transform(X), PowerTransformer().fit_transform(X))


def test_messages_name_the_column():
    given = X.copy()
    given[4, 2] = -1.0
    with pytest.raises(ValueError, match=r"\('x2'\), row 4: the value is -1.0"):
        PowerTransformer("box-cox", variables=[2]).fit(given)
    with pytest.raises(ValueError, match=r"'town'.*is not a real number"):
        PowerTransformer(variables=["town"]).fit(pandas_frame())
    with pytest.raises(ValueError, match="feature names"):
        PowerTransformer(variables=["area"]).fit(pandas_frame()).transform(pandas_frame()[["area", "price"]])


@pytest.mark.parametrize(
    ("variables", "error", "message"),
    [
        (["aera"], ValueError, r"there is no column 'aera'; the columns are .*did you mean 'area'"),
        ([4], ValueError, "there is no column 4; there are 4"),
        (["area", 3], ValueError, "one or more columns, each once"),
        ([], ValueError, "one or more columns, each once"),
        ([True], ValueError, "one or more columns, each once"),
        ([True, 1], TypeError, "variables must be names or positions of columns, got True"),
        ([1.0], TypeError, "variables must be names or positions of columns, got 1.0"),
        ([[0], [1, 2]], TypeError, r"variables must be names or positions of columns, got \[0\]"),
        ("area", ValueError, "The 'variables' parameter"),
        (1, ValueError, "The 'variables' parameter"),
    ],
)
def test_wrong_variables_are_refused(variables, error, message):
    with pytest.raises(error, match=message):
        PowerTransformer(variables=variables).fit(pandas_frame())


def test_there_is_no_such_transformer_of_scikit_learn():
    with pytest.raises(ValueError, match="transforms all features"):
        PowerTransformer(variables=[0]).fit(X).to_sklearn()


def test_two_transformers_in_a_pipeline_treat_two_columns():
    steps = make_pipeline(
        PowerTransformer("box-cox", variables=["price"]),
        PowerTransformer(variables=["area"]),
    )
    frame = pandas_frame()
    Z = steps.fit_transform(frame)
    assert Z["town"].equals(frame["town"])
    np.testing.assert_allclose(Z[["price", "area"]].mean(), 0.0, atol=1e-12)
    np.testing.assert_allclose(steps.inverse_transform(Z)[["price", "area"]], X[:, :2], rtol=1e-9)


def test_results_agree_with_the_wrapper_of_feature_engine():
    wrappers = pytest.importorskip("feature_engine.wrappers")
    frame = pandas_frame()
    wrapper = wrappers.SklearnTransformerWrapper(PowerTransformer(), variables=["price", "area"])
    assert PowerTransformer(variables=["price", "area"]).fit_transform(frame).equals(wrapper.fit_transform(frame))


@pytest.mark.parametrize("shape", [(3,), (2, 3, 1)])
def test_the_inverse_of_some_columns_takes_a_matrix(shape):
    transformer = PowerTransformer(variables=[0, 2]).fit(np.random.default_rng(0).lognormal(size=(20, 3)))
    with pytest.raises(ValueError, match=rf"^X must be a matrix of 3 columns, got shape {re.escape(str(shape))}$"):
        transformer.inverse_transform(np.ones(shape))
