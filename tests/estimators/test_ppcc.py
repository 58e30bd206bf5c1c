"""fit(estimator="ppcc"), which maximises the correlation of the normal QQ plot, compared with SciPy."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

import powerkern as pk
from powerkern import Status

rng = np.random.default_rng(20240601)
X = rng.gamma(2.0, size=(200, 12))
X[::7, 3] = np.nan
X[5:, 4] = np.nan


def objective(x, family, lmbda):
    y = {"box-cox": stats.boxcox, "yeo-johnson": stats.yeojohnson}[family](x, lmbda)
    return 1.0 - stats.probplot(y)[1][2]


@pytest.mark.slow
@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_no_lambda_of_a_grid_is_better(family):
    x = X - 1.5 if family == "yeo-johnson" else X
    fit = pk.fit(x, family, "ppcc")
    for j in (0, 3, 4):
        column = x[~np.isnan(x[:, j]), j]
        best = objective(column, family, fit.lmbda[j])
        assert best <= min(objective(column, family, other) for other in np.linspace(-3.0, 3.0, 121)) + 1e-12


def test_correlation_as_in_scipy():
    fit = pk.fit(X, "box-cox", "ppcc")
    expected = [stats.boxcox_normmax(x[~np.isnan(x)], method="pearsonr") for x in X.T]
    np.testing.assert_allclose(fit.lmbda, expected, atol=1e-6)


def test_threads_order_and_neighbors_change_no_bit():
    x = np.tile(X, (1, 30))
    fit = pk.fit(x, "box-cox", "ppcc", n_threads=2)
    np.testing.assert_array_equal(
        pk.fit(np.asfortranarray(x), "box-cox", "ppcc", n_threads=1).lmbda,
        fit.lmbda,
    )
    np.testing.assert_array_equal(fit.lmbda[:12], fit.lmbda[-12:])
    np.testing.assert_array_equal(pk.fit(X[:, 4], "box-cox", "ppcc").lmbda, fit.lmbda[4:5])
    np.testing.assert_allclose(pk.fit(X[::-1], "box-cox", "ppcc").lmbda, fit.lmbda[:12], rtol=1e-7)


def test_the_rest_of_the_fit_is_as_for_a_given_lambda():
    fit = pk.fit(X, "box-cox", "ppcc")
    given = pk.fit(X, "box-cox", lmbda=fit.lmbda)
    for name in ("loc", "scale", "nll", "n_obs"):
        np.testing.assert_array_equal(getattr(fit, name), getattr(given, name))
    np.testing.assert_array_equal(fit.transform(X), given.transform(X))
    again = pk.PowerFit.from_json(fit.to_json())
    assert again.estimator == fit.estimator
    np.testing.assert_array_equal(again.lmbda, fit.lmbda)
    assert (fit.weights(X)[~np.isnan(X)] == 1.0).all()


def test_columns_that_cannot_be_fitted_do_not_stop_the_others():
    nan = math.nan
    x = np.column_stack([[3.0] * 5, [nan] * 5, [1.0, 2.0, 3.0, 4.0, 50.0], [7.0, nan, nan, nan, nan], [1, 1, 1, 2, 2]])
    with pytest.warns(UserWarning, match=r"column 0, column 3: .* column 1: "):
        fit = pk.fit(x, "box-cox", "ppcc")
    assert fit.status.tolist() == [Status.CONSTANT, Status.EMPTY, Status.SCANNED, Status.CONSTANT, Status.SCANNED]
    assert fit.lmbda[4] == pk.fit(x[:, 4], "box-cox").lmbda[0]  # two distinct values look the same under any


def test_several_minima_are_reported():
    r = np.random.default_rng(0)
    x = np.concatenate([r.lognormal(0.0, 0.1, 8), r.lognormal(2.0, 0.1, 5), r.lognormal(4.0, 0.1, 3)])
    assert pk.fit(x, "box-cox", "ppcc").status[0] == Status.MULTIMODAL


def test_family_best_takes_yeo_johnson_for_columns_with_values_below_0_only():
    x = np.column_stack([X[:, 0], X[:, 0] - 1.0])
    fit = pk.fit(x, "best", "ppcc")
    assert fit.families == ["box-cox", "yeo-johnson"]
    np.testing.assert_array_equal(fit.lmbda[:1], pk.fit(x[:, 0], "box-cox", "ppcc").lmbda)
    np.testing.assert_array_equal(fit.lmbda[1:], pk.fit(x[:, 1], "yeo-johnson", "ppcc").lmbda)


def test_unsupported_options_are_rejected():
    for argument in ({"lmbda": 1.0}, {"ymax": 10.0}):
        with pytest.raises(ValueError, match="cannot be given with estimator='ppcc'"):
            pk.fit(X, "box-cox", "ppcc", **argument)
    bad = X.copy()
    bad[9, 2] = -1.0
    with pytest.raises(ValueError, match=r"column 2, row 9: the value is -1\.0"):
        pk.fit(bad, "box-cox", "ppcc")
    fit = pk.fit(X, "box-cox", "ppcc")
    with pytest.raises(ValueError, match="need estimator='mle'"):
        fit.lr_test(0.0)


def test_columns_of_huge_values_of_both_signs():
    x = np.random.default_rng(1).normal(size=50)
    for far in (x * 1e200, x + 1e9, x * 1e-200):
        fit = pk.fit(far, "yeo-johnson", "ppcc")
        assert fit.status[0] == Status.SCANNED
        assert np.isfinite(fit.transform(far)).all()


# --- ties with weights ----------------------------------------------------------------------------------


def rounded_columns(family):
    r = np.random.default_rng(3)
    x = np.round(r.gamma(2.0, size=(80, 4)) * [10, 10, 1, 50]) / [10, 10, 1, 50] + 0.5
    return x - (2.0 if family == "yeo-johnson" else 0.0), r


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
@pytest.mark.parametrize("draw", [lambda r, n: r.random(n) + 0.05, lambda r, n: r.integers(1, 5, n) + 0.5])
def test_the_order_of_rows_does_not_matter(family, draw):
    x, r = rounded_columns(family)
    weight = draw(r, 80)
    fit = pk.fit(x, family, "ppcc", sample_weight=weight)
    normality = fit.normality()
    for _ in range(5):
        order = r.permutation(80)
        other = pk.fit(x[order], family, "ppcc", sample_weight=weight[order])
        np.testing.assert_allclose(other.lmbda, fit.lmbda, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(other.objective, fit.objective, rtol=1e-10)
        np.testing.assert_allclose(other.normality().after.ppcc, normality.after.ppcc, rtol=1e-12)


def test_splitting_the_weight_of_a_value_among_rows_changes_nothing():
    """Rows of fractional weight w give the same fit as the same rows twice, with weights 0.3 w and 0.7 w."""
    x, r = rounded_columns("box-cox")
    weight = r.integers(4, 9, 80) + r.random(80)
    fit = pk.fit(x, "box-cox", "ppcc", sample_weight=weight)
    parts = pk.fit(np.tile(x, (2, 1)), "box-cox", "ppcc", sample_weight=np.concatenate([0.3 * weight, 0.7 * weight]))
    np.testing.assert_allclose(parts.lmbda, fit.lmbda, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(parts.objective, fit.objective, rtol=1e-10)


def test_ties_of_the_mirror_image():
    x, r = rounded_columns("yeo-johnson")
    weight = r.random(80) + 0.05
    fit = pk.fit(x, "yeo-johnson", "ppcc", sample_weight=weight)
    mirrored = pk.fit(-x, "yeo-johnson", "ppcc", sample_weight=weight)
    np.testing.assert_allclose(2.0 - mirrored.lmbda, fit.lmbda, atol=1e-6)


@pytest.mark.parametrize("estimator, unit", [("mle", None), ("ppcc", None), ("robust", [0.025, 0.025])])
def test_only_robust_fits_store_the_weight_of_one_value(estimator, unit):
    x = np.random.default_rng(0).lognormal(size=(40, 2))
    fit = pk.fit(x, "box-cox", estimator, sample_weight=np.full(40, 0.025))
    stored = json.loads(fit.to_json())["unit_weights"]
    assert stored == (unit if unit is None else pytest.approx(unit))
