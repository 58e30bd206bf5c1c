"""GroupedPowerTransformer: scikit-learn's conventions, and groups given by a column name or by metadata routing."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import powerkern as pk

sklearn = pytest.importorskip("sklearn")

from sklearn import config_context  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.linear_model import LinearRegression  # noqa: E402
from sklearn.model_selection import GroupKFold, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from powerkern.sklearn import GroupedPowerTransformer  # noqa: E402

RNG = np.random.default_rng(32)


def table(n=240):
    codes = RNG.integers(0, 4, n)
    return pd.DataFrame(
        {"u": RNG.lognormal(size=n) * (1 + codes), "id": np.array(list("abcd"))[codes], "v": RNG.gamma(3.0, size=n)}
    )


@parametrize_with_checks([GroupedPowerTransformer(), GroupedPowerTransformer(shrink=True)])
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


def test_labels_may_be_in_a_column():
    X = table()
    transformer = GroupedPowerTransformer(groups="id")
    Z = transformer.fit_transform(X)
    fit = pk.fit(X, groups="id")
    np.testing.assert_array_equal(Z, fit.transform(X)[["u", "v"]])
    np.testing.assert_array_equal(transformer.lambdas_, fit.lmbda)
    assert transformer.grouped_fit_.groups == ["a", "b", "c", "d"]
    assert transformer.get_feature_names_out().tolist() == ["u", "v"]
    assert transformer.feature_names_in_.tolist() == ["u", "id", "v"]
    again = pickle.loads(pickle.dumps(transformer))
    np.testing.assert_array_equal(again.transform(X), Z)
    np.testing.assert_allclose(transformer.inverse_transform(Z, groups=X["id"]), X[["u", "v"]], rtol=1e-10)
    frame = clone(transformer).set_output(transform="pandas").fit_transform(X)
    assert frame.columns.tolist() == ["u", "v"]
    assert frame.index.equals(X.index)
    with pytest.raises(TypeError, match="pass the labels of the samples as groups="):
        transformer.inverse_transform(Z)
    with pytest.raises(TypeError, match="can be passed only if the parameter groups is None"):
        transformer.fit(X, groups=X["id"])
    with pytest.raises(ValueError, match="names columns that X, a ndarray, does not have"):
        transformer.fit(X[["u", "v"]].to_numpy())
    with pytest.raises(ValueError):
        transformer.transform(X[["u", "v"]])


def test_labels_may_be_in_several_columns():
    X = table().assign(plate=lambda frame: np.arange(len(frame)) % 2)
    transformer = GroupedPowerTransformer(groups=["id", "plate"]).fit(X)
    assert len(transformer.grouped_fit_) == 8
    Z = transformer.transform(X)
    np.testing.assert_allclose(transformer.inverse_transform(Z, groups=X[["id", "plate"]]), X[["u", "v"]], rtol=1e-10)


def test_labels_are_routed():
    X, y = table(), RNG.normal(size=240)
    numbers, labels = X[["u", "v"]].to_numpy(), X["id"].to_numpy()
    plain = GroupedPowerTransformer().fit(numbers, groups=labels)
    expected = LinearRegression().fit(plain.transform(numbers, groups=labels), y)
    with config_context(enable_metadata_routing=True):
        grouped = (
            GroupedPowerTransformer(unknown="pooled")
            .set_fit_request(groups=True, sample_weight=False)
            .set_transform_request(groups=True)
        )
        model = make_pipeline(grouped, LinearRegression().set_fit_request(sample_weight=False))
        model.fit(numbers, y, groups=labels)
        np.testing.assert_allclose(
            model.predict(numbers, groups=labels), expected.predict(plain.transform(numbers, groups=labels))
        )


def test_new_groups_in_a_fold_use_the_pooled_fit():
    X, y = table(), RNG.normal(size=240)
    model = make_pipeline(GroupedPowerTransformer(groups="id", unknown="pooled"), LinearRegression())
    assert np.isfinite(cross_val_score(model, X, y, groups=X["id"], cv=GroupKFold(4))).all()


def test_weights_repeat_rows():
    X = table()
    w = RNG.integers(1, 4, len(X)).astype(float)
    numbers, labels = X[["u", "v"]].to_numpy(), X["id"].to_numpy()
    found = GroupedPowerTransformer("box-cox").fit(numbers, groups=labels, sample_weight=w)
    repeated = np.repeat(np.arange(len(X)), w.astype(int))
    expected = GroupedPowerTransformer("box-cox").fit(numbers[repeated], groups=labels[repeated])
    np.testing.assert_allclose(found.lambdas_, expected.lambdas_, rtol=1e-9)
