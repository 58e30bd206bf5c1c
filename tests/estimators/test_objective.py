"""The objectives of the estimators, as curves and at the fitted lambda, compared with slow definitions."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from fits import fit_quietly
from scipy import stats

import powerkern as pk
from powerkern import PowerFit

FAMILIES = ("yeo-johnson", "box-cox")
#: Estimators and options that the objective depends on.
ROBUST = [
    ("robust", {}),
    ("robust", {"c": 0.9, "change_points": (0.1, 0.6)}),
    ("rewml", {"convention": "cellwise"}),
    ("rewml-nr", {"c": 0.3, "prestandardize": "none"}),
    ("carroll", {}),
    ("mtl", {"h": 0.85}),
]
LMBDAS = np.array([-2.5, -0.3, 0.0, 0.4, 1.0, 1.9, 3.0])
families = pytest.mark.parametrize("family", FAMILIES)
robust = pytest.mark.parametrize(("estimator", "options"), ROBUST)
every = pytest.mark.parametrize("estimator", ["mle", "robust", "rewml-nr", "carroll", "mtl", "ppcc"])


def data(n: int = 60, p: int = 3, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.lognormal(sigma=0.6, size=(n, p))
    X[: n // 12] *= 20.0
    X[5, 1] = np.nan
    return rng.permutation(X)


def slowly(x: np.ndarray, family: str, lmbda: float, estimator: str, options: dict[str, object]) -> float:
    """Evaluate an estimator's objective with the oracles.

    Parameters
    ----------
    x : (n,) ndarray
        The column.
    family : str
        The transform.
    lmbda : float
        Lambda, in the units of the data.
    estimator : str
        Name of the estimator.
    options : dict
        Its options.
    """
    x = np.sort(x[~np.isnan(x)])
    cellwise = options.get("convention") == "cellwise"
    how = options.get("prestandardize", "median" if cellwise and family == "box-cox" else "mad")
    u, _, _, power = oracles.prestandardized(family, x, how)
    at = lmbda * power
    if estimator == "carroll":
        return oracles.carroll_objective(family, u.astype(float), at)
    if estimator == "mtl":
        return oracles.trimmed_objective(family, u, at, math.ceil(options["h"] * x.size))[0]
    rule = "none" if estimator == "rewml-nr" else "cellwise" if cellwise else "paper"
    more = options.get("c", 0.5), options.get("change_points", (0.25, 0.75))
    return oracles.qq_objective(family, u, at, rule, oracles.normal_scores(x.size), *more)


@families
@robust
def test_curve_is_that_of_the_oracle(family, estimator, options):
    X = data(n=30, p=2)
    curve = fit_quietly(X, family, estimator, **options).objective_curve(LMBDAS)
    expected = [[slowly(x, family, lmbda, estimator, options) for lmbda in LMBDAS] for x in X.T]
    np.testing.assert_allclose(curve, np.array(expected, dtype=float), atol=1e-10)


@families
@pytest.mark.parametrize("estimator", ["ppcc", "mle"])
def test_curve_is_that_of_scipy(family, estimator):
    X = data()
    curve = fit_quietly(X, family, estimator).objective_curve(LMBDAS)
    transform, likelihood = (
        (stats.boxcox, stats.boxcox_llf) if family == "box-cox" else (stats.yeojohnson, stats.yeojohnson_llf)
    )
    for x, found in zip(X.T, curve, strict=True):
        x = np.sort(x[~np.isnan(x)])
        for lmbda, value in zip(LMBDAS, found, strict=True):
            y = transform(x, lmbda)
            expected = 1.0 - stats.probplot(y)[1][2] if estimator == "ppcc" else -likelihood(lmbda, x) / x.size
            assert value == pytest.approx(expected, abs=1e-10)


@every
@pytest.mark.parametrize("family", [*FAMILIES, "best"])
def test_objective_is_the_curve_at_the_start_and_none_is_lower(family, estimator):
    X = data(n=120, seed=4)
    fit = fit_quietly(X, family, estimator)
    at_start = [fit.objective_curve(lmbda)[j] for j, lmbda in enumerate(fit.lmbda0)]
    np.testing.assert_allclose(fit.objective, at_start, rtol=1e-12, atol=1e-14)
    grid = fit.objective_curve(np.linspace(-3.0, 4.0, 141))
    assert (grid.min(axis=1) >= fit.objective - 1e-9).all()


def test_search_result_is_no_higher_than_any_lambda_it_tried():
    """Fit a column whose objective has a narrow minimum next to a kink.

    At -0.24, a point of the grid, the objective must not be lower than at the result.
    """
    x = np.random.default_rng(0).random((50, 300))[:, 181] ** 4
    fit = fit_quietly(x[:, None], "yeo-johnson", "robust")
    assert fit.objective[0] <= fit.objective_curve(-0.24)[0]


@every
def test_a_loaded_fit_computes_the_curves_from_data_passed_again(estimator):
    X = data() + 1.0
    fit = fit_quietly(X, "box-cox", estimator, shift=0.5)
    copy = PowerFit.from_json(fit.to_json())
    np.testing.assert_array_equal(copy.objective, fit.objective)
    np.testing.assert_array_equal(copy.objective_curve(LMBDAS, X), fit.objective_curve(LMBDAS))
    np.testing.assert_array_equal(copy.profile(LMBDAS, X), fit.profile(LMBDAS))
    with pytest.raises(ValueError, match="pass X"):
        copy.objective_curve(LMBDAS)
    moved = fit_quietly(X + 0.5, "box-cox", estimator)
    np.testing.assert_array_equal(moved.objective_curve(LMBDAS), fit.objective_curve(LMBDAS))


@families
@every
def test_columns_without_a_fit_have_no_objective(family, estimator):
    X = np.column_stack([data()[:, 0], np.full(60, 2.0), np.full(60, np.nan)])
    fit = fit_quietly(X, family, estimator)
    curve = fit.objective_curve(LMBDAS)
    assert np.isfinite(curve[0]).all()
    assert np.isnan(curve[1:]).all()
    np.testing.assert_array_equal(np.isnan(fit.objective), [False, True, True])
    assert np.isnan(PowerFit.from_json(fit.to_json()).objective[1:]).all()


@every
def test_whole_weights_repeat_rows(estimator):
    X = data()
    weight = np.random.default_rng(0).integers(0, 4, 60)
    fit = fit_quietly(X, "yeo-johnson", estimator, sample_weight=weight)
    repeated = fit_quietly(np.repeat(X, weight, axis=0), "yeo-johnson", estimator)
    np.testing.assert_allclose(fit.objective_curve(LMBDAS), repeated.objective_curve(LMBDAS), rtol=1e-10)


def test_no_bit_depends_on_threads_or_order():
    X = np.tile(data(n=300), (1, 10))
    fit = fit_quietly(X, "box-cox")
    expected = fit.objective_curve(LMBDAS, n_threads=1)
    np.testing.assert_array_equal(fit.objective_curve(LMBDAS, n_threads=2), expected)
    np.testing.assert_array_equal(fit.objective_curve(LMBDAS, np.asfortranarray(X[::-1])), expected)
    np.testing.assert_array_equal(fit.objective_curve(LMBDAS[3]), expected[:, 3])


def test_lambdas_are_finite_numbers():
    fit = fit_quietly(data(), "box-cox")
    for bad in (np.nan, [0.0, np.inf], [[0.0]]):
        with pytest.raises(ValueError, match="lmbdas must be"):
            fit.objective_curve(bad)


@families
@pytest.mark.parametrize("estimator", ["robust", "rewml-nr", "carroll", "mtl", "ppcc"])
def test_profile_is_that_of_the_values_kept(family, estimator):
    X = data()
    fit = fit_quietly(X, family, estimator)
    profile, kept = fit.profile(LMBDAS), fit.weights(X) > 0.0
    for j, x in enumerate(X.T):
        assert profile[j].min() >= fit.nll[j] - 1e-9 or estimator in ("carroll", "ppcc")
        assert fit.profile(fit.lmbda[j])[j] == pytest.approx(fit.nll[j], rel=1e-12)
        u = (x[kept[:, j]] - fit.center[j]) / fit.divisor[j]
        expected = pk.fit(u, family).profile(LMBDAS)[0] + u.size * math.log(fit.divisor[j])
        np.testing.assert_allclose(profile[j], expected, rtol=1e-12)
