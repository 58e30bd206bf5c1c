"""fit(estimator="ks") and fit(estimator="ppcc"), against scipy: least KS distance, and straightest QQ plot."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import powerkern as pk
from powerkern import Status
from powerkern.outliers import ks_distance

ESTIMATORS = ["ks", "ppcc"]
rng = np.random.default_rng(20240601)
X = rng.gamma(2.0, size=(200, 12))
X[::7, 3] = np.nan
X[5:, 4] = np.nan


def criterion(x, family, estimator, lmbda):
    y = {"box-cox": stats.boxcox, "yeo-johnson": stats.yeojohnson}[family](x, lmbda)
    if estimator == "ks":
        return stats.ks_1samp(y, stats.norm(y.mean(), y.std(ddof=1)).cdf).statistic
    return 1.0 - stats.probplot(y)[1][2]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_no_lambda_of_a_grid_is_better(family, estimator):
    x = X - 1.5 if family == "yeo-johnson" else X
    fit = pk.fit(x, family, estimator)
    for j in (0, 3, 4):
        column = x[~np.isnan(x[:, j]), j]
        best = criterion(column, family, estimator, fit.lmbda[j])
        assert best <= min(criterion(column, family, estimator, other) for other in np.linspace(-3.0, 3.0, 121)) + 1e-12


def test_correlation_as_in_scipy():
    fit = pk.fit(X, "box-cox", "ppcc")
    expected = [stats.boxcox_normmax(x[~np.isnan(x)], method="pearsonr") for x in X.T]
    np.testing.assert_allclose(fit.lmbda, expected, atol=1e-6)


def test_distance_is_that_of_the_transformed_data_and_none_is_less():
    fit = pk.fit(X, "box-cox", "ks")
    distance = ks_distance(fit.transform(X))
    assert (distance <= ks_distance(pk.fit(X, "box-cox").transform(X))).all()
    assert (distance <= ks_distance(pk.fit(X, "box-cox", "ppcc").transform(X))).all()
    assert distance[0] == pytest.approx(criterion(X[:, 0], "box-cox", "ks", fit.lmbda[0]), abs=1e-12)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_threads_order_and_neighbors_change_no_bit(estimator):
    x = np.tile(X, (1, 30))
    fit = pk.fit(x, "box-cox", estimator, n_threads=2)
    np.testing.assert_array_equal(
        pk.fit(np.asfortranarray(x), "box-cox", estimator, n_threads=1).lmbda,
        fit.lmbda,
    )
    np.testing.assert_array_equal(fit.lmbda[:12], fit.lmbda[-12:])
    np.testing.assert_array_equal(pk.fit(X[:, 4], "box-cox", estimator).lmbda, fit.lmbda[4:5])
    np.testing.assert_allclose(pk.fit(X[::-1], "box-cox", estimator).lmbda, fit.lmbda[:12], rtol=1e-7)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_rest_of_the_fit_is_as_for_a_given_lambda(estimator):
    fit = pk.fit(X, "box-cox", estimator)
    given = pk.fit(X, "box-cox", lmbda=fit.lmbda)
    for name in ("loc", "scale", "nll", "n_obs"):
        np.testing.assert_array_equal(getattr(fit, name), getattr(given, name))
    np.testing.assert_array_equal(fit.transform(X), given.transform(X))
    again = pk.PowerFit.from_json(fit.to_json())
    assert again.estimator == fit.estimator
    np.testing.assert_array_equal(again.lmbda, fit.lmbda)
    assert (fit.weights(X)[~np.isnan(X)] == 1.0).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_columns_that_cannot_be_fitted_do_not_stop_the_others(estimator):
    nan = math.nan
    x = np.column_stack([[3.0] * 5, [nan] * 5, [1.0, 2.0, 3.0, 4.0, 50.0], [7.0, nan, nan, nan, nan], [1, 1, 1, 2, 2]])
    with pytest.warns(UserWarning, match=r"column 0, column 3: .* column 1: "):
        fit = pk.fit(x, "box-cox", estimator)
    assert fit.status.tolist() == [Status.CONSTANT, Status.EMPTY, Status.SCANNED, Status.CONSTANT, Status.SCANNED]
    assert fit.lmbda[4] == pk.fit(x[:, 4], "box-cox").lmbda[0]  # two distinct values look the same under any


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_several_minima_are_told(estimator):
    r = np.random.default_rng(0)
    x = np.concatenate([r.lognormal(0.0, 0.1, 8), r.lognormal(2.0, 0.1, 5), r.lognormal(4.0, 0.1, 3)])
    assert pk.fit(x, "box-cox", estimator).status[0] == Status.MULTIMODAL


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_family_best_takes_yeo_johnson_for_columns_with_values_below_0_only(estimator):
    x = np.column_stack([X[:, 0], X[:, 0] - 1.0])
    fit = pk.fit(x, "best", estimator)
    assert fit.families == ["box-cox", "yeo-johnson"]
    np.testing.assert_array_equal(fit.lmbda[:1], pk.fit(x[:, 0], "box-cox", estimator).lmbda)
    np.testing.assert_array_equal(fit.lmbda[1:], pk.fit(x[:, 1], "yeo-johnson", estimator).lmbda)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_refusals(estimator):
    for argument in ({"lmbda": 1.0}, {"ymax": 10.0}):
        with pytest.raises(ValueError, match=f"cannot be given with estimator='{estimator}'"):
            pk.fit(X, "box-cox", estimator, **argument)
    bad = X.copy()
    bad[9, 2] = -1.0
    with pytest.raises(ValueError, match=r"column 2, row 9: the value is -1\.0"):
        pk.fit(bad, "box-cox", estimator)
    fit = pk.fit(X, "box-cox", estimator)
    with pytest.raises(ValueError, match="for estimator='mle' only"):
        fit.lr_test(0.0)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_far_data_of_both_signs(estimator):
    x = np.random.default_rng(1).normal(size=50)
    for far in (x * 1e200, x + 1e9, x * 1e-200):
        fit = pk.fit(far, "yeo-johnson", estimator)
        assert fit.status[0] == Status.SCANNED
        assert np.isfinite(fit.transform(far)).all()
