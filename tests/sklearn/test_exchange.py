"""Conversion of transformers to and from scikit-learn's PowerTransformer."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import powerkern as pk
from powerkern import Status

preprocessing = pytest.importorskip("sklearn.preprocessing")

from sklearn.exceptions import NotFittedError  # noqa: E402

from powerkern.sklearn import PowerTransformer, exchange  # noqa: E402

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


# --- what scikit-learn can represent ------------------------------------------------------------------


def fit_with(family: str = "yeo-johnson", standardize: bool = True, **fields: object) -> SimpleNamespace:
    """Return a stand-in for a fit of two columns; `fields` replace attributes of the second column."""
    plain = {"status": Status.OK, "shift": 0.0, "center": 0.0, "divisor": 1.0, "log_factor": 0.0, "loc": 0.5,
             "scale": 2.0, "x_min": 3.0}  # fmt: skip
    columns = {name: np.array([value, fields.get(name, value)]) for name, value in plain.items()}
    return SimpleNamespace(family=family, standardize=standardize, column_names=None, **columns)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"shift": 1e-300}, "has a shift or an origin"),
        ({"shift": -2.0, "center": 1.0}, "has a shift or an origin"),
        ({"center": 1e-300}, "is rescaled before it is transformed"),
        ({"divisor": 2.0}, "is rescaled before it is transformed"),
        ({"scale": 0.0}, "has a lambda with which raw values overflow or lose their digits"),
        ({"scale": 1.4e154}, "has a lambda with which"),
        ({"loc": np.inf}, "has a lambda with which"),
        ({"loc": -2.0000001e8}, "has a lambda with which"),
        ({"log_factor": 800.0}, "has a lambda with which"),
        ({"scale": np.nan}, "has a lambda with which"),
        ({"loc": 2e8}, None),
        ({"loc": -2e8}, None),
        ({"scale": 1.3e154}, None),
        ({"status": Status.CONSTANT, "center": 5.0, "divisor": 9.0, "scale": 0.0}, None),
    ],
)
def test_fits_are_converted_up_to_the_loss_of_half_the_digits(fields: dict[str, float], why: str | None) -> None:
    fit = fit_with(**fields)
    if why is None:
        loc, scale = exchange._moments(fit)
        if "status" in fields:
            assert (loc[1], scale[1]) == (3.0, 1.0)
        else:
            assert (loc.tolist(), scale.tolist()) == (fit.loc.tolist(), fit.scale.tolist())
    else:
        with pytest.raises(ValueError, match=f"column 1 {why}"):
            exchange._moments(fit)


def test_moments_of_columns_that_pass_unchanged_undo_the_transform_of_lambda_1() -> None:
    for family, one in (("box-cox", 1.0), ("yeo-johnson", 0.0)):
        for status, start in ((Status.CONSTANT, 3.0), (Status.EMPTY, 0.0)):
            loc, scale = exchange._moments(fit_with(family, status=status))
            assert (loc.tolist(), scale.tolist()) == ([0.5, start - one], [2.0, 1.0])
    raw = fit_with("box-cox", standardize=False, status=Status.EMPTY)
    with pytest.raises(ValueError, match="column 1 passes unchanged, which no Box-Cox transform does"):
        exchange._moments(raw)
    loc, scale = exchange._moments(fit_with(standardize=False, log_factor=np.log(2.0)))
    assert_allclose([loc, scale], [[0.5, 1.0], [2.0, 4.0]])


@pytest.mark.parametrize("method", ["box-cox", "yeo-johnson"])
@pytest.mark.parametrize("field", ["lambdas_", "mean_"])
def test_columns_that_scikit_learn_did_not_fit_pass_unchanged(method: str, field: str) -> None:
    theirs = preprocessing.PowerTransformer(method=method).fit(X)
    (theirs if field == "lambdas_" else theirs._scaler).__dict__[field][1] = np.nan
    fit = PowerTransformer.from_sklearn(theirs).power_fit_
    assert fit.status.tolist() == [Status.FIXED, Status.EMPTY, Status.FIXED]
    assert_allclose(fit.transform(X)[:, 1], X[:, 1])
    assert_allclose(fit.transform(X)[:, [0, 2]], theirs.transform(X)[:, [0, 2]], atol=1e-12)
    assert fit.n_obs.tolist() == [120.0] * 3
    assert_allclose(fit.loc[[0, 2]], theirs._scaler.mean_[[0, 2]])


@pytest.mark.parametrize("method", ["box-cox", "yeo-johnson"])
def test_lambdas_may_be_assigned_to_a_transformer_that_saw_no_data(method: str) -> None:
    shift = 0.5 if method == "box-cox" else 0.0
    ours = PowerTransformer(method, standardize=False, shift=shift)
    ours.lambdas_ = [0.5, -1.0, 2.0]
    theirs = preprocessing.PowerTransformer(method=method, standardize=False)
    theirs.lambdas_ = np.array([0.5, -1.0, 2.0])
    theirs.n_features_in_ = 3
    assert_allclose(ours.power_fit_.transform(X), theirs.transform(X + shift), rtol=1e-12)
    assert_array_equal([ours.power_fit_.x_min, ours.power_fit_.x_max], np.array([[1.0] * 3, [2.0] * 3]) - shift)
