"""PowerTransformedRegressor: lambda given the features, and predictions on the scale of the response."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

pytest.importorskip("sklearn")

from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, PowerTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import powerkern as pk
from powerkern.regression import fit_regression
from powerkern.sklearn import PowerTransformedRegressor

MODELS = [PowerTransformedRegressor(), PowerTransformedRegressor(Ridge(), kind="mean", cv=3)]


@parametrize_with_checks(MODELS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def skewed_features(n=400, seed=0, lmbda=0.5, noise=0.4):
    """Return exponential features, (n, 3), and a response that is linear in them after Box-Cox with `lmbda`.

    The residuals of the transformed response are normal, with standard deviation `noise`/`lmbda`.
    """
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(n, 3))
    eta = 5.0 + X @ [1.0, 0.5, 0.2]
    return X, (eta + noise * rng.normal(size=n)) ** (1.0 / lmbda)


def test_lambda_is_that_of_the_model_not_that_of_the_response():
    X, y = skewed_features(2000)
    given_features = PowerTransformedRegressor(family="box-cox").fit(X, y)
    marginal = TransformedTargetRegressor(LinearRegression(), transformer=PowerTransformer("box-cox")).fit(X, y)
    assert abs(given_features.lambda_ - 0.5) < 0.05
    assert abs(marginal.transformer_.lambdas_[0] - 0.5) > 0.5
    X_new, y_new = skewed_features(2000, seed=1)
    ours, theirs = (np.nanmean((model.predict(X_new) - y_new) ** 2) for model in (given_features, marginal))
    assert ours < 0.1 * theirs


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_linear_regression_predicts_what_the_fit_predicts(family):
    X, y = skewed_features()
    fit = fit_regression(y, X, family)
    for kind in ("median", "mean", "quantile"):
        model = PowerTransformedRegressor(family=family, kind=kind, quantile=0.9).fit(X, y)
        assert model.lambda_ == fit.lmbda[0]
        assert model.residual_scale_ == pytest.approx(1.0, abs=1e-12)
        assert np.allclose(model.predict(X), fit.predict(X, kind, quantile=0.9), rtol=1e-10)


def test_means_are_integrals_and_quantiles_hold_their_share():
    X, y = skewed_features(4000)
    model = PowerTransformedRegressor(family="box-cox", lmbda=0.5, kind="mean").fit(X, y)
    fit, row = model.regression_fit_, X[:1]
    eta, s, lmbda = fit.fitted_values(row)[0], fit.scale[0], fit.lmbda[0]

    def weighted(z):
        return (1.0 + lmbda * (eta + s * z)) ** (1.0 / lmbda) * scipy.stats.norm.pdf(z)

    assert model.predict(row)[0] == pytest.approx(scipy.integrate.quad(weighted, -12, 12)[0], rel=1e-9)
    upper = clone(model).set_params(kind="quantile", quantile=0.9).fit(X, y)
    X_new, y_new = skewed_features(4000, seed=1)
    assert abs(np.mean(y_new <= upper.predict(X_new)) - 0.9) < 0.02


@pytest.mark.slow
def test_scale_of_left_out_rows():
    X, y = skewed_features()
    forest = RandomForestRegressor(20, random_state=0)
    close = PowerTransformedRegressor(forest, family="box-cox", kind="mean").fit(X, y)
    honest = clone(close).set_params(cv=4).fit(X, y)
    assert honest.residual_scale_ > 1.5 * close.residual_scale_
    Z = honest.regression_fit_.power_fit.transform(y)
    left_out = cross_val_predict(clone(forest), X, Z, cv=4)
    assert honest.residual_scale_ == pytest.approx(np.sqrt(np.mean((Z - left_out) ** 2)))


def test_several_responses_have_their_own_lambdas():
    X, y = skewed_features()
    Y = np.column_stack([y, np.log(y)])
    model = PowerTransformedRegressor(family="box-cox").fit(X, Y)
    for j, column in enumerate(Y.T):
        alone = PowerTransformedRegressor(family="box-cox").fit(X, column)
        assert model.lambda_[j] == alone.lambda_
        assert np.allclose(model.predict(X)[:, j], alone.predict(X))
    assert model.residual_scale_.shape == (2,)


def test_weights_are_repetitions():
    X, y = skewed_features(60)
    weight = np.random.default_rng(0).integers(1, 4, size=60)
    weighted = PowerTransformedRegressor(kind="mean").fit(X, y, sample_weight=weight)
    repeated = PowerTransformedRegressor(kind="mean").fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert np.allclose(weighted.predict(X), repeated.predict(X), rtol=1e-8)
    with pytest.raises(ValueError, match="KNeighborsRegressor takes no sample_weight"):
        PowerTransformedRegressor(KNeighborsRegressor()).fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="KNeighborsRegressor takes no sample_weight"):
        PowerTransformedRegressor(make_pipeline(StandardScaler(), KNeighborsRegressor())).fit(X, y, weight)


@pytest.mark.parametrize("cv", [None, 3])
@pytest.mark.parametrize(
    "regressor",
    [
        make_pipeline(PolynomialFeatures(1), Ridge()),
        GridSearchCV(Ridge(), {"alpha": [1.0]}, cv=2),
        GridSearchCV(make_pipeline(PolynomialFeatures(1), Ridge()), {"ridge__alpha": [1.0]}, cv=2),
    ],
)
def test_weights_reach_the_last_step_of_a_pipeline(regressor, cv):
    X, y = skewed_features(60)
    weight = np.random.default_rng(0).exponential(size=60)
    inside = PowerTransformedRegressor(regressor, cv=cv, kind="mean").fit(X, y, sample_weight=weight)
    plain = PowerTransformedRegressor(Ridge(), cv=cv, kind="mean").fit(X, y, sample_weight=weight)
    assert np.allclose(inside.predict(X), plain.predict(X), rtol=1e-10)


def test_weights_are_routed():
    X, y = skewed_features(60)
    weight = np.random.default_rng(0).exponential(size=60)
    plain = PowerTransformedRegressor(Ridge()).fit(X, y, sample_weight=weight)
    with config_context(enable_metadata_routing=True):
        last = Ridge().set_fit_request(sample_weight=True)
        routed = PowerTransformedRegressor(make_pipeline(PolynomialFeatures(1), last)).fit(X, y, sample_weight=weight)
    assert np.allclose(routed.predict(X), plain.predict(X), rtol=1e-10)


def test_kind_may_change_after_the_fit():
    X, y = skewed_features()
    model = PowerTransformedRegressor(family="box-cox").fit(X, y)
    mean = PowerTransformedRegressor(family="box-cox", kind="mean").fit(X, y)
    assert np.array_equal(model.set_params(kind="mean").predict(X), mean.predict(X))
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), mean.predict(X))


@pytest.mark.parametrize("lmbda, end", [(0.5, 0.0), (-1.5, np.inf)])
def test_far_beyond_the_range_medians_are_the_end_of_the_domain_and_means_near_it(lmbda, end):
    x = np.linspace(1.0, 2.0, 50)
    y = (1.0 + lmbda * (x - 1.5 + 0.01 * np.random.default_rng(0).normal(size=50))) ** (1.0 / lmbda)
    model = PowerTransformedRegressor(family="box-cox", lmbda=lmbda, kind="mean").fit(x[:, np.newaxis], y)
    far = [[-1e3 * lmbda]]
    mean = model.predict(far)[0]  # mean over the part of the distribution within the range
    assert 1e4 < mean < np.inf if end else 0.0 < mean < 1e-12
    assert model.set_params(kind="median").predict(far)[0] == end


@pytest.mark.slow
def test_categories_and_grids():
    pd = pytest.importorskip("pandas")
    X, y = skewed_features()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(group=np.where(X[:, 0] > 1.0, "x", "y"))
    coded = make_column_transformer((OneHotEncoder(drop="first"), ["group"]), remainder=StandardScaler())
    model = PowerTransformedRegressor(make_pipeline(coded, Ridge()), family="box-cox", covariates=coded)
    search = GridSearchCV(model, {"regressor__ridge__alpha": [0.1, 1.0]}, cv=3).fit(frame, y)
    assert search.best_score_ > 0.5
    assert list(search.best_estimator_.feature_names_in_) == ["a", "b", "c", "group"]


def test_more_features_than_rows():
    X, y = np.random.default_rng(0).normal(size=(20, 30)), np.arange(1.0, 21.0) ** 2
    with pytest.warns(UserWarning, match="30 features and a constant fit any 20 responses exactly"):
        model = PowerTransformedRegressor(Ridge(), family="box-cox").fit(X, y)
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"family": "box-cox"}, "row 5"),
        ({"family": "logit"}, "'family' parameter"),
        ({"quantile": 1.5}, "'quantile' parameter"),
        ({"kind": "mode"}, "'kind' parameter"),
        ({"regressor": "ridge"}, "'regressor' parameter"),
    ],
)
def test_invalid_parameters_are_rejected(change, message):
    X, y = skewed_features(50)
    y[5] = -1.0
    with pytest.raises(ValueError, match=message):
        PowerTransformedRegressor(**change).fit(X, y)


def test_bad_data():
    X, y = skewed_features(50)
    with pytest.raises(ValueError, match="X has 49 rows, y has 50"):
        PowerTransformedRegressor().fit(X[1:], y)
    X[7, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        PowerTransformedRegressor().fit(X, y)
    y[3] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        PowerTransformedRegressor().fit(np.ones((50, 1)), y)


# --- scales of residuals -----------------------------------------------------------------------------


@pytest.mark.parametrize("cv", [None, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_scale_is_the_root_mean_square_residual(cv, weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.exp(X @ [1.0, -0.5] + 0.3 * rng.normal(size=40))
    weight = rng.integers(1, 4, 40).astype(float) if weighted else None
    model = PowerTransformedRegressor(Ridge(), family="box-cox", cv=cv).fit(X, y, sample_weight=weight)
    z = model.regression_fit_.power_fit.transform(y)
    params = {"sample_weight": weight} if weighted else {}
    predicted = model.regressor_.predict(X) if cv is None else cross_val_predict(Ridge(), X, z, cv=4, params=params)
    expected = np.sqrt(np.average((z - predicted) ** 2, weights=weight))
    assert model.residual_scale_ == pytest.approx(expected, rel=1e-9)
    assert isinstance(model.residual_scale_, float)


def test_as_many_features_as_rows_leave_lambda_to_the_responses():
    rng = np.random.default_rng(0)
    y = rng.lognormal(size=8)
    with pytest.warns(UserWarning, match="7 features and a constant fit any 8 responses exactly"):
        model = PowerTransformedRegressor().fit(rng.normal(size=(8, 7)), y)
    assert model.lambda_ == pytest.approx(pk.fit(y).lmbda[0], abs=1e-8)
    PowerTransformedRegressor().fit(rng.normal(size=(8, 6)), y)  # no warning
    with pytest.raises(ValueError, match="X has 8 rows, y has 7; pass the same rows"):
        PowerTransformedRegressor().fit(rng.normal(size=(8, 2)), y[:7])


def test_covariates_make_the_features_of_the_linear_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.exp(X[:, 0] ** 2 + 0.3 * rng.normal(size=60))
    squares = PolynomialFeatures(2, include_bias=False)
    model = PowerTransformedRegressor(KNeighborsRegressor(), family="box-cox", covariates=squares).fit(X, y)
    expected = fit_regression(y, squares.fit_transform(X), "box-cox")
    assert model.lambda_ == pytest.approx(expected.lmbda[0], abs=1e-9)
    assert model.lambda_ != pytest.approx(fit_regression(y, X, "box-cox").lmbda[0], abs=1e-3)
