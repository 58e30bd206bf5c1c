"""Conversion of transformers to and from scikit-learn's PowerTransformer."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import powerkern as pk

preprocessing = pytest.importorskip("sklearn.preprocessing")

from sklearn.exceptions import NotFittedError  # noqa: E402

from powerkern.sklearn import PowerTransformer  # noqa: E402

X = np.random.default_rng(0).lognormal(size=(120, 3)) * [1.0, 20.0, 0.1]
KINDS = [(method, standardize) for method in ("box-cox", "yeo-johnson") for standardize in (True, False)]


@pytest.mark.parametrize(("method", "standardize"), KINDS)
def test_to_sklearn_gives_an_equal_transformer(method: str, standardize: bool) -> None:
    data = X.copy()
    data[::9, 1] = np.nan
    ours = PowerTransformer(method, standardize=standardize, n_threads=1).fit(data)
    theirs = ours.to_sklearn()
    assert_allclose(theirs.transform(data), ours.transform(data), rtol=0, atol=1e-12)
    assert_allclose(theirs.inverse_transform(ours.transform(data)), data, rtol=1e-10)
    assert_array_equal(theirs.lambdas_, ours.lambdas_)
    refit = preprocessing.PowerTransformer(method=method, standardize=standardize).fit(data)
    assert vars(refit).keys() == vars(theirs).keys()
    if standardize:
        assert vars(refit._scaler).keys() == vars(theirs._scaler).keys()
        assert_array_equal(np.broadcast_to(refit._scaler.n_samples_seen_, 3), theirs._scaler.n_samples_seen_)
    assert_allclose(refit.transform(data), theirs.transform(data), atol=1e-5)


@pytest.mark.parametrize(("method", "standardize"), KINDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_converted_transformers_agree_with_scikit_learn(method: str, standardize: bool, dtype: type) -> None:
    data = X.astype(dtype)
    theirs = preprocessing.PowerTransformer(method=method, standardize=standardize).fit(data)
    ours = PowerTransformer.from_sklearn(theirs)
    assert_allclose(ours.transform(X), theirs.transform(X), rtol=0, atol=1e-12)
    assert_allclose(ours.inverse_transform(theirs.transform(X)), X, rtol=1e-10)
    assert set(ours.power_fit_.status_text) == {"lambda as given"}
    again = pk.PowerFit.from_json(ours.power_fit_.to_json())
    assert_array_equal(again.transform(X), ours.power_fit_.transform(X))
    back = ours.to_sklearn()
    assert_allclose(back.transform(X), theirs.transform(X), rtol=0, atol=1e-12)


def test_columns_that_are_not_fitted() -> None:
    data = np.column_stack([X[:, 0], np.full(120, 3.5)])
    for method in ("box-cox", "yeo-johnson"):  # scikit-learn refuses a constant feature under Box-Cox only
        with pytest.warns(UserWarning, match="not fitted") if method == "box-cox" else contextlib.nullcontext():
            ours = PowerTransformer(method).fit(data)
        assert_allclose(ours.to_sklearn().transform(data), ours.transform(data), rtol=0, atol=1e-12)
    missing = np.column_stack([X[:, 0], np.full(120, np.nan)])
    with pytest.warns(UserWarning, match="not fitted"):
        ours = PowerTransformer().fit(missing)
    other = np.column_stack([X[:, 0], X[:, 1]])
    assert_allclose(ours.to_sklearn().transform(other), ours.transform(other), rtol=0, atol=1e-12)


def test_names_travel() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    theirs = PowerTransformer().fit(frame).to_sklearn()
    assert theirs.feature_names_in_.tolist() == ["a", "b", "c"]
    ours = PowerTransformer.from_sklearn(theirs)
    assert ours.get_feature_names_out().tolist() == ["a", "b", "c"]
    assert_allclose(ours.transform(frame), theirs.transform(frame), rtol=0, atol=1e-12)


YEARS = np.array([[1950.0], [1997.0], [2000.0], [2003.0], [2007.0], [2009.0]])
REFUSED = {
    "shift": (lambda: PowerTransformer("box-cox", shift=1.0).fit(X), "column 0 has a shift"),
    "rescaled": (lambda: PowerTransformer(estimator="robust").fit(X), "is rescaled before it is transformed"),
    "cluster": (lambda: PowerTransformer("box-cox").fit(1e12 + YEARS), "overflow or lose"),
    "large lambda": (lambda: PowerTransformer("box-cox").fit(np.array([[10.0], [10.0], [10.0], [9.9]])), "overflow"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_fits_that_scikit_learn_cannot_represent(case: str) -> None:
    make, match = REFUSED[case]
    with pytest.raises(ValueError, match=match):
        make().to_sklearn()


def test_only_fitted_transformers_are_converted() -> None:
    with pytest.raises(TypeError, match=r"takes a sklearn\.preprocessing\.PowerTransformer, got StandardScaler"):
        PowerTransformer.from_sklearn(preprocessing.StandardScaler().fit(X))
    with pytest.raises(NotFittedError):
        PowerTransformer.from_sklearn(preprocessing.PowerTransformer())
    with pytest.raises(NotFittedError):
        PowerTransformer().to_sklearn()
