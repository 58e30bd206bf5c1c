"""Joint fits of several columns, compared with R's car, mpmath and SciPy's optimisers, and their invariances."""

from __future__ import annotations

import functools
import json
import pickle
import warnings
from typing import Any

import make_regression_reference
import mpmath
import numpy as np
import oracles
import pandas as pd
import polars as pl
import pytest
import scipy.optimize
import scipy.stats
from reference_files import read_reference

import powerkern as pk
from powerkern._models.joint_likelihood import (
    JointEvaluation,
    JointLikelihood,
    Singular,
    minimize,
    minimize_from_starts,
    profile_ends,
)
from powerkern._status import JointStatus
from powerkern.joint import JointFit, fit_joint
from powerkern.kernels.transforms.family import FAMILIES
from powerkern.outliers import mahalanobis

CAR = {"bcPower": "box-cox", "yjPower": "yeo-johnson"}


def correlated(n: int, p: int, seed: int = 0, r: float = 0.5) -> np.ndarray:
    """Return an (n, p) matrix of lognormal values; the logs of any two columns have correlation r."""
    rng = np.random.default_rng(seed)
    return np.exp(0.5 * (np.sqrt(1.0 - r) * rng.normal(size=(n, p)) + np.sqrt(r) * rng.normal(size=(n, 1))))


def likelihood_of(
    family: str, X: np.ndarray, weight: np.ndarray | None = None, basis: np.ndarray | None = None, n_threads: int = 1
) -> JointLikelihood:
    columns, n = np.ascontiguousarray(X.T), len(X)
    return JointLikelihood(columns, FAMILIES[family], weight, np.empty((0, n)) if basis is None else basis, n_threads)


def evaluation(likelihood: JointLikelihood, lmbda: Any) -> JointEvaluation:
    """Return the likelihood, its gradient and its Hessian at `lmbda`, in the original order of the columns."""
    f, gradient, hessian = likelihood.evaluate(np.asarray(lmbda)[likelihood.order])
    return JointEvaluation(f, likelihood.restore_order(gradient), likelihood.restore_order(hessian))


# --- R's car ------------------------------------------------------------------------------------------


def records() -> Any:
    """Yield car's fits. Fits to data that scikit-learn does not contain are marked `needs_shared_data`."""
    for k, r in enumerate(read_reference("regression.json")["multivariate"]):
        marks = () if r["name"] == "iris" else pytest.mark.needs_shared_data
        yield pytest.param(k, r, id=f"{r['name']}-{r['family']}", marks=marks)


@pytest.mark.parametrize("k, record", records())
def test_agrees_with_car(k: int, record: dict[str, Any]) -> None:
    if record["name"] == "iris":
        Y = pytest.importorskip("sklearn.datasets").load_iris().data
    else:
        Y = np.array(make_regression_reference.read_source()["multivariate"][k]["Y"], dtype=float)
    lmbda, se = np.array(record["lambda"]), np.array(record["se"])
    n, p = Y.shape
    fit = fit_joint(Y, family=CAR[record["family"]])
    assert fit.status == JointStatus.CONVERGED
    # car's optimiser stops at this distance from the optimum and differentiates numerically there
    assert (abs(fit.lmbda - lmbda) < 3e-4 * se).all()
    np.testing.assert_allclose(fit.standard_error(), se, rtol=1e-5)
    np.testing.assert_allclose(fit.lmbda_cov, record["invHess"], rtol=1e-5, atol=1e-5 * (se**2).max())
    # car's determinant has the factor (n - 1)/n once instead of p times
    at = n * evaluation(fit._likelihood(None, None, None, 1).joint, lmbda).f
    assert at + 0.5 * (p - 1) * n * np.log(n / (n - 1)) == pytest.approx(record["llik"], rel=1e-9)
    # car's statistics refer to its own optimum, whose likelihood is slightly too low
    short = 2.0 * (at - fit.nll)
    assert 0.0 <= short < 1e-6
    for at0, expected in ((0.0, record["lr0"]), (1.0, record["lr1"])):
        test = fit.lr_test(at0)
        assert test.statistic == pytest.approx(expected, abs=1e-6)
        assert test.df == p
        assert test.pvalue == pytest.approx(scipy.stats.chi2.sf(expected, p), rel=1e-6)
    rounded = np.where(np.isin(record["rounded"], [0.33, -0.33]), np.sign(record["rounded"]) / 3, record["rounded"])
    assert fit.rounded().tolist() == rounded.tolist()
    low, high = np.array(record["wald"]).T
    np.testing.assert_allclose(fit.confint(method="wald").low, low, atol=1e-3 * se.max())
    np.testing.assert_allclose(fit.confint(method="wald").high, high, atol=1e-3 * se.max())


# --- derivatives and optimum against mpmath -------------------------------------------------------------


def nasty() -> dict[str, tuple[str, np.ndarray]]:
    """Return (family, columns) by name, for columns on which textbook formulas fail and for ordinary columns."""
    rng = np.random.default_rng(7)
    z = rng.normal(size=(24, 3))
    close = z[:, [0, 0]] + 1e-4 * z[:, [1, 2]]  # r = 1 - 1e-8
    return {
        "lognormal": ("box-cox", np.exp(z)),
        "normal": ("yeo-johnson", z),
        "all signs": ("yeo-johnson", np.column_stack([np.exp(z[:, 0]), -np.exp(z[:, 1]), z[:, 2]])),
        "years": ("box-cox", np.round(1990.0 + 10.0 * z)),
        "tight": ("box-cox", 1e4 + 1e-3 * z),
        "scales": ("box-cox", np.exp(z) * [1e-300, 1.0, 1e300]),
        "strongly correlated": ("box-cox", np.exp(close)),
        "strongly correlated of both signs": ("yeo-johnson", close),
        "few rows": ("box-cox", np.exp(z[:5])),
    }


@pytest.mark.parametrize("name", nasty())
def test_derivatives_at_the_column_fits(name: str) -> None:
    family, X = nasty()[name]
    check_derivatives(family, pk.fit(X, family).lmbda, X)


@pytest.mark.slow
@pytest.mark.parametrize("lmbda", [(-1.0, 0.0, 0.5), (2.0, 1.0, 3.0)])
def test_derivatives_far_from_the_optimum_agree_with_mpmath(lmbda: tuple[float, ...]) -> None:
    for name in ("lognormal", "normal", "all signs"):
        family, X = nasty()[name]
        check_derivatives(family, np.array(lmbda), X)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_derivatives_given_covariates_agree_with_mpmath(family: str, weighted: bool) -> None:
    rng = np.random.default_rng(3)
    covariates = rng.normal(size=(20, 2)) + np.array([1.0, 1990.0])
    X = np.exp(0.3 * rng.normal(size=(20, 2)) + covariates - [1.0, 1990.0])
    weight = rng.exponential(size=20) if weighted else None
    check_derivatives(family, np.array([0.2, -0.1]), X, covariates, weight)


def check_derivatives(
    family: str,
    lmbda: np.ndarray,
    X: np.ndarray,
    covariates: np.ndarray | None = None,
    weight: np.ndarray | None = None,
) -> None:
    basis = None
    if covariates is not None:
        root = np.ones(len(X)) if weight is None else np.sqrt(weight)
        basis = np.ascontiguousarray(np.linalg.qr(np.column_stack([np.ones(len(X)), covariates]) * root[:, None])[0].T)
    at = evaluation(likelihood_of(family, X, weight, basis), lmbda)
    f, gradient, hessian = oracles.joint_derivatives(family, lmbda, X, covariates, weight)
    assert at.f == pytest.approx(f, rel=1e-12, abs=1e-12)
    unit = np.sqrt(abs(np.diag(hessian)))
    assert (abs(at.gradient - gradient) <= 1e-10 * np.maximum(abs(gradient), unit)).all()
    assert (abs(at.hessian - hessian) <= 1e-10 * np.outer(unit, unit)).all()


@pytest.mark.parametrize("name", [name for name in nasty() if name != "few rows"])
def test_lambda_is_where_the_gradient_is_0_at_120_digits(name: str) -> None:
    family, X = nasty()[name]
    fit = fit_joint(X, family=family)
    f, gradient, hessian = oracles.joint_derivatives(family, fit.lmbda, X)
    step = np.linalg.solve(hessian, gradient)
    assert fit.status == JointStatus.CONVERGED
    assert (np.linalg.eigvalsh(hessian) > 0.0).all()
    assert (abs(step) <= 1e-10 * np.maximum(abs(fit.lmbda), fit.standard_error())).all()
    assert fit.nll == pytest.approx(len(X) * f, rel=1e-12)
    np.testing.assert_allclose(fit.lmbda_cov, np.linalg.inv(hessian) / len(X), rtol=1e-6)


def test_one_column_is_the_plain_fit() -> None:
    x = correlated(300, 1)
    plain, fit = pk.fit(x, "box-cox"), fit_joint(x, family="box-cox")
    assert fit.lmbda[0] == pytest.approx(plain.lmbda[0], abs=1e-12)
    assert fit.nll == pytest.approx(plain.nll[0], rel=1e-13)
    assert fit.standard_error()[0] == pytest.approx(plain.information[0] ** -0.5, rel=1e-10)
    np.testing.assert_allclose(np.ravel(fit.confint()), np.ravel(plain.confint()), rtol=1e-7)
    assert fit.lr_test(1.0).df == 1


def test_independent_of_the_single_fits_where_columns_are_correlated() -> None:
    X = correlated(500, 3, r=0.95)
    fit, single = fit_joint(X, family="box-cox"), pk.fit(X, "box-cox")
    assert fit.nll < evaluation(likelihood_of("box-cox", X), single.lmbda).f * 500
    # correlated columns carry information on each other's lambda
    assert (fit.standard_error() < single.information**-0.5).all()


# --- intervals ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_profile_ends_against_a_nested_search() -> None:
    X, drop = correlated(40, 3, seed=5), 0.5 * scipy.stats.chi2.ppf(0.9, 1) / 40
    fit = fit_joint(X, family="box-cox")
    likelihood = likelihood_of("box-cox", X)

    def excess(value: float, j: int) -> float:
        def of_others(others: np.ndarray) -> tuple[float, np.ndarray]:
            at = evaluation(likelihood, np.insert(others, j, value))
            return at.f, np.delete(at.gradient, j)

        found = scipy.optimize.minimize(of_others, np.delete(fit.lmbda, j), jac=True, tol=1e-12)
        return float(found.fun - fit.nll / 40 - drop)

    low, high = fit.confint(level=0.9)
    for j in range(3):
        for end, away in ((low[j], -1.0), (high[j], 1.0)):
            far = fit.lmbda[j] + away * 4.0 * fit.standard_error()[j]
            assert end == pytest.approx(
                scipy.optimize.brentq(excess, fit.lmbda[j], far, args=(j,), xtol=1e-12), abs=1e-7
            )


def test_wald_intervals_are_what_profile_intervals_tend_to() -> None:
    fit = fit_joint(correlated(20_000, 2), family="box-cox")
    wald, profile = fit.confint(method="wald"), fit.confint()
    np.testing.assert_allclose(profile.low, wald.low, atol=0.02 * fit.standard_error().min())
    np.testing.assert_allclose(profile.high, wald.high, atol=0.02 * fit.standard_error().min())


@pytest.mark.parametrize("level", [1e-3, 1e-6, 1e-9])
def test_narrow_intervals_hold_the_estimate_and_are_as_wide_as_rounding_lets_them(level: float) -> None:
    fit = fit_joint(correlated(20_000, 2), family="box-cox")
    low, high = fit.confint(level=level)
    assert (low <= fit.lmbda).all()
    assert (fit.lmbda <= high).all()
    assert (
        abs(high - low - 2.0 * 1.2533141 * level * fit.standard_error())
        <= 2e-7 * np.sqrt(20_000) * fit.standard_error()
    ).all()


def test_an_interval_without_an_end_is_nan_and_says_so() -> None:
    fit = fit_joint(np.random.default_rng(3).lognormal(size=(4, 2)), family="box-cox")
    with pytest.warns(UserWarning, match="an end of the profile interval was not found"):
        low, high = fit.confint(level=0.999)
    assert np.isnan([low, high]).any()


def test_profile_ends_need_a_positive_definite_hessian(monkeypatch: pytest.MonkeyPatch) -> None:
    likelihood = likelihood_of("box-cox", correlated(30, 2))
    saddle = JointEvaluation(0.0, np.zeros(2), np.diag([1.0, -1.0]))
    monkeypatch.setattr(likelihood, "evaluate", lambda lmbda: saddle)
    assert np.isnan(profile_ends(likelihood, np.zeros(2), 0.1)).all()


# --- what must not change a result ----------------------------------------------------------------------


def figures(fit: JointFit) -> list[np.ndarray]:
    return [fit.lmbda, fit.lmbda_cov, np.array(fit.llf), fit.coef, fit.cov]


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_threads_and_memory_order_do_not_change_a_bit(family: str) -> None:
    X = correlated(3000, 18) if family == "box-cox" else np.log(correlated(3000, 18))
    Z = np.random.default_rng(0).normal(size=(3000, 2))
    one = fit_joint(X, Z, family, n_threads=1)
    for Y in (X, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
        for n_threads in (2, 3, 8):
            other = fit_joint(Y, Z, family, n_threads=n_threads)
            assert all(np.array_equal(a, b) for a, b in zip(figures(one), figures(other), strict=True))


@pytest.mark.parametrize("n_starts", [1, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_order_of_columns_does_not_change_a_bit(family: str, n_starts: int) -> None:
    X = correlated(300, 7) - (0.0 if family == "box-cox" else 1.0)
    Z = np.random.default_rng(0).normal(size=(300, 1))
    order = np.random.default_rng(1).permutation(7)
    fit, other = (fit_joint(Y, Z, family, n_starts=n_starts) for Y in (X, X[:, order]))
    assert np.array_equal(fit.lmbda[order], other.lmbda)
    assert np.array_equal(fit.lmbda_cov[np.ix_(order, order)], other.lmbda_cov)
    assert fit.llf == other.llf
    low, high = fit.confint()
    assert np.array_equal(np.array([low, high])[:, order], np.array(other.confint()))


def test_weights_are_repetitions() -> None:
    X, Z = correlated(60, 3), np.random.default_rng(1).normal(size=60)
    counts = np.random.default_rng(2).integers(0, 4, size=60)
    repeated = fit_joint(np.repeat(X, counts, axis=0), np.repeat(Z, counts), "box-cox")
    weighted = fit_joint(X, Z, "box-cox", sample_weight=counts)
    assert weighted.n_obs == counts.sum()
    for a, b in zip(figures(weighted), figures(repeated), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_scales_of_box_cox_columns_do_not_matter() -> None:
    X = correlated(80, 3)
    fit, scaled = (fit_joint(Y, family="box-cox") for Y in (X, X * [1e-300, 1.0, 1e300]))
    np.testing.assert_allclose(scaled.lmbda, fit.lmbda, atol=1e-12)
    np.testing.assert_allclose(scaled.cov, fit.cov, atol=1e-12)


def test_a_shifted_fit_equals_the_fit_of_shifted_data() -> None:
    X = correlated(80, 2)
    fit, moved = fit_joint(X, family="box-cox"), fit_joint(X - [2.0, 0.0], family="box-cox", shift=[2.0, 0.0])
    np.testing.assert_allclose(moved.lmbda, fit.lmbda, atol=1e-9)
    np.testing.assert_allclose(moved.transform(X - [2.0, 0.0]), fit.transform(X), atol=1e-9)
    np.testing.assert_allclose(moved.lr_test(1.0).statistic, fit.lr_test(1.0).statistic, rtol=1e-9)


def test_one_column_with_covariates_is_a_regression() -> None:
    """With one column, f is the profile likelihood of Box and Cox (1964) with a linear model."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(100, 2))
    x = np.exp(0.2 * (z @ [1.0, -2.0] + rng.normal(size=100)))
    fit = fit_joint(x, z, "box-cox")
    design = np.column_stack([np.ones(100), z])

    def nll(lmbda: float) -> float:
        y = scipy.stats.boxcox(x, lmbda)
        rss = ((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2).sum()
        return 50.0 * np.log(rss / 100) - 100 * (lmbda - 1.0) * np.log(x).mean()

    assert fit.nll == pytest.approx(nll(float(fit.lmbda[0])), rel=1e-12)
    assert fit.nll < min(nll(float(fit.lmbda[0]) + d) for d in (-1e-3, 1e-3))
    y = fit.transform(x)
    np.testing.assert_allclose(fit.coef[:, 0], np.linalg.lstsq(design, y, rcond=None)[0], atol=1e-12)
    assert fit.cov[0, 0] == pytest.approx(np.mean((y - design @ fit.coef[:, 0]) ** 2), rel=1e-12)
    assert fit.coef_names == ["Intercept", "x0", "x1"]


# --- the fitted distribution ------------------------------------------------------------------------------


def test_transform_mean_covariance_and_distances() -> None:
    X = correlated(200, 3)
    fit = fit_joint(X, family="box-cox")
    Z = fit.transform(X)
    np.testing.assert_allclose(fit.coef, 0.0, atol=1e-13)
    np.testing.assert_allclose(fit.cov, np.corrcoef(Z.T), atol=1e-13)
    np.testing.assert_allclose(fit.inverse_transform(Z), X, rtol=1e-12)
    distance = fit.mahalanobis(X)
    assert (distance**2).sum() == pytest.approx(600.0, rel=1e-12)
    np.testing.assert_allclose(distance, mahalanobis(Z, Z.mean(axis=0), np.cov(Z.T, bias=True)), rtol=1e-10)
    X[3, 1] = np.nan
    assert np.flatnonzero(np.isnan(fit.mahalanobis(X))).tolist() == [3]
    assert fit.power_fit.lmbda.tolist() == fit.lmbda.tolist()


def test_distances_need_the_covariates_of_the_fit() -> None:
    Z = np.random.default_rng(1).normal(size=(200, 2))
    X = correlated(200, 3) * np.exp(Z[:, :1])
    fit = fit_joint(X, Z, "box-cox")
    assert (fit.mahalanobis(X, Z) ** 2).sum() == pytest.approx(600.0, rel=1e-12)
    with pytest.raises(ValueError, match="covariates has 0 columns, the fit has 2; pass the covariates of the fit"):
        fit.mahalanobis(X)
    with pytest.raises(ValueError, match="covariates has 100 rows, the data have 200"):
        fit.mahalanobis(X, Z[:100])


def test_names_of_data_frames_and_covariates_are_kept() -> None:
    X = correlated(50, 2)
    frame = pd.DataFrame(X, columns=["a", "b"], index=range(1, 51))
    age = np.random.default_rng(1).normal(size=50)
    fit = fit_joint(frame, pd.DataFrame({"age": age}, index=frame.index), "box-cox")
    assert fit.column_names == ["a", "b"]
    assert fit.coef_names == ["Intercept", "age"]
    assert list(fit.transform(frame[["b", "a"]]).columns) == ["b", "a"]
    polars = fit_joint(pl.DataFrame(X, schema=["a", "b"]), age, "box-cox")
    assert np.array_equal(polars.lmbda, fit.lmbda)
    assert "a " in str(fit.summary())


# --- data that are missing or few ---------------------------------------------------------------------------


def test_rows_with_missing_values_are_left_out_with_one_warning() -> None:
    X, Z = correlated(60, 3), np.random.default_rng(0).normal(size=60)
    X[[3, 7], [0, 1]] = np.nan
    complete = ~np.isnan(X).any(axis=1)
    with pytest.warns(UserWarning, match="^2 of 60 rows have missing values and are left out; impute them") as caught:
        fit = fit_joint(X, Z, "box-cox")
    assert len(caught) == 1
    assert caught[0].filename == __file__
    same = fit_joint(X[complete], Z[complete], "box-cox")
    assert np.array_equal(fit.lmbda, same.lmbda)
    assert fit.n_obs == 58
    assert np.isnan(fit.transform(X)).sum() == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weight = np.where(complete, 1.0, 0.0)  # neither counted nor reported
        np.testing.assert_allclose(fit_joint(X, Z, "box-cox", sample_weight=weight).lmbda, fit.lmbda, atol=1e-12)


def test_the_fitted_data_given_again() -> None:
    X = correlated(60, 2)
    X[3, 0] = np.nan
    with pytest.warns(UserWarning, match="1 of 60 rows"):
        fit = fit_joint(X, family="box-cox")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # rows with missing values were reported when the model was fitted
        assert fit.summary(X).tests == fit.summary().tests
    for data, weight in ((X[:50], None), (X, np.full(60, 2.0))):
        with pytest.raises(ValueError, match=r"complete rows .*, the fit had 59; pass the fitted data"):
            fit.lr_test(0.0, data, sample_weight=weight)


@pytest.mark.parametrize("p", [2, 5])
def test_as_few_rows_as_it_takes(p: int) -> None:
    X = correlated(p + 1, p, seed=p)
    with pytest.raises(
        ValueError, match=f"^X has {p} complete rows for {p} columns and their means: .* pass at least {p + 1} rows"
    ):
        fit_joint(X[:-1], family="box-cox")
    with pytest.raises(ValueError, match=f"{p} columns and the 2 coefficients of their means"):
        fit_joint(X, np.arange(p + 1.0), "box-cox")
    more = correlated(p + 4, p, seed=p)
    assert np.isfinite(fit_joint(more, family="box-cox").lmbda).all()


BAD: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "text": ({"X": [["a", "b"]]}, TypeError, "not a real number"),
    "family": ({"family": "boxcox"}, ValueError, "did you mean 'box-cox'"),
    "infinite": ({"X": np.array([[1.0, 2.0], [3.0, np.inf], [1.0, 5.0]])}, ValueError, "column 1, row 1: .* infinite"),
    "not positive": ({"X": correlated(9, 2) - 5.0}, ValueError, "column 0, row 0: .* strictly positive"),
    "shift": ({"X": correlated(9, 2) - 5.0, "shift": 1.0}, ValueError, "column 0, row 0: .* not above -shift"),
    "shift of yeo-johnson": ({"family": "yeo-johnson", "shift": 1.0}, ValueError, "shift works only with family"),
    "constant": ({"X": np.column_stack([correlated(9, 2), np.ones(9)])}, ValueError, "column 2: fewer than two"),
    "none complete": ({"X": [[1.0, np.nan], [np.nan, 2.0]]}, ValueError, "no row without missing values"),
    "missing covariate": ({"covariates": [1.0] * 8 + [np.nan]}, ValueError, "'x0', row 8: the value is missing"),
    "infinite covariate": ({"covariates": [1.0] * 8 + [np.inf]}, ValueError, "'x0', row 8: the value is infinite"),
    "rows of covariates": ({"covariates": np.ones((4, 1))}, ValueError, "covariates has 4 rows, the data have 9"),
    "weights": ({"sample_weight": [1.0]}, ValueError, "sample_weight has shape"),
    "n_starts": ({"n_starts": 0}, ValueError, "n_starts must be at least 1, got 0"),
    "underflow": ({"X": 1e-200 * correlated(9, 2), "family": "yeo-johnson"}, ValueError, "values are so close to 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_invalid_input_is_refused(name: str) -> None:
    options, error, text = BAD[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(error, match=text):
            fit_joint(**({"X": correlated(9, 2), "family": "box-cox"} | options))


def test_linearly_dependent_columns_are_named() -> None:
    X = correlated(50, 4)
    X[:, 2] = 3.0 * X[:, 0]
    frame = pd.DataFrame(X, columns=list("abcd"))
    with pytest.raises(
        ValueError, match=r"^column 0 \('a'\), column 2 \('c'\): once transformed, they are linearly dep"
    ):
        fit_joint(frame, family="box-cox")
    with pytest.raises(ValueError, match=r"column 0, column 2: once transformed, .* given the covariates"):
        fit_joint(X, np.random.default_rng(0).normal(size=50), "box-cox")
    x, y = correlated(50, 2).T
    with pytest.raises(
        ValueError, match=r"^column 0, column 1, column 2: once transformed, they are linearly dependent, "
    ):
        fit_joint(np.column_stack([x, y, x + y]), family="box-cox")
    fit = fit_joint(np.column_stack([x, y, np.cbrt(x**3 + y**3)]), family="box-cox")
    with pytest.raises(
        ValueError, match=r"^column 0, column 1, column 2: linearly dependent once transformed with lmbda0"
    ):
        fit.lr_test(3.0)


def test_columns_that_covariates_explain_altogether() -> None:
    X = correlated(50, 2)
    with pytest.raises(ValueError, match=r"^column 1: once transformed, it has no variance left given the covariates"):
        fit_joint(X, scipy.stats.boxcox(X[:, 1], pk.fit(X, "box-cox").lmbda[1]), "box-cox")


def test_collinear_covariates_are_left_out_by_name() -> None:
    X, z = correlated(50, 2), np.random.default_rng(0).normal(size=50)
    frame = pd.DataFrame({"a": z, "ones": 1.0, "b": z**2, "twice": 2.0 * z - 1.0})
    with pytest.warns(UserWarning, match="^covariates: 'ones', 'twice' left out: constant, or linear") as caught:
        fit = fit_joint(X, frame, "box-cox")
    assert caught[0].filename == __file__
    assert fit.coef_names == ["Intercept", "a", "b"]
    assert np.array_equal(fit.lmbda, fit_joint(X, frame[["a", "b"]], "box-cox").lmbda)
    np.testing.assert_allclose(fit.mahalanobis(X, frame) ** 2 @ np.ones(50), 100.0)
    assert fit.lr_test(fit.lmbda).statistic == 0.0


# --- the search ---------------------------------------------------------------------------------------------


def test_more_starts_never_end_higher() -> None:
    X = np.random.default_rng(4).lognormal(size=(8, 3))
    one, many = (fit_joint(X, family="box-cox", n_starts=k) for k in (1, 12))
    assert many.nll <= one.nll + 1e-9
    assert many.n_iter > one.n_iter


def test_a_search_from_far_away_finds_the_optimum() -> None:
    X = correlated(200, 3)
    likelihood, fit = likelihood_of("box-cox", X), fit_joint(X, family="box-cox")
    found = minimize(likelihood, np.array([4.0, -4.0, 3.0]))
    assert found.status == JointStatus.CONVERGED
    np.testing.assert_allclose(likelihood.restore_order(found.lmbda), fit.lmbda, atol=1e-10)


def test_a_transform_beyond_float64_is_infinitely_unlikely() -> None:
    fit = fit_joint(correlated(50, 2), family="box-cox")
    assert fit.lr_test(1e200).statistic == np.inf
    assert fit.lr_test(1e200).pvalue == 0.0


# --- after the fit --------------------------------------------------------------------------------------------


def test_summary_has_tests_only_if_the_fit_has_data() -> None:
    fit = fit_joint(correlated(200, 2), family="box-cox", column_names=["a", "b"])
    summary = fit.summary()
    assert summary.to_dict()["column"].tolist() == ["a", "b"]
    assert summary.tests["rounded"] == fit.lr_test(fit.rounded())
    assert "likelihood ratio test" in str(summary)
    read = JointFit.from_json(fit.to_json())
    assert read.summary().tests == {}
    assert "no likelihood ratio tests" in str(read.summary())
    assert "no likelihood ratio tests" not in str(summary)
    assert read.summary(correlated(200, 2)).tests == summary.tests


@pytest.mark.parametrize("with_covariates", [False, True])
def test_json_and_pickle_restore_all_but_the_data(with_covariates: bool) -> None:
    X = correlated(60, 3)
    Z = np.random.default_rng(0).normal(size=(60, 2)) if with_covariates else None
    fit = fit_joint(X, Z, "box-cox")
    for other in (JointFit.from_json(fit.to_json()), pickle.loads(pickle.dumps(fit))):
        assert all(np.array_equal(a, b) for a, b in zip(figures(fit), figures(other), strict=True))
        assert (other.coef_names, other.status, other.n_iter, other.n_obs) == (
            fit.coef_names, fit.status, fit.n_iter, fit.n_obs,
        )  # fmt: skip
        assert np.array_equal(other.mahalanobis(X, Z), fit.mahalanobis(X, Z))
        with pytest.raises(ValueError, match="no longer has its data"):
            other.confint()
        assert np.array_equal(other.confint(X=X, covariates=Z), fit.confint())
        assert other.lr_test(0.0, X, Z) == fit.lr_test(0.0)
        wrong = None if with_covariates else X[:, :2]
        for method in (functools.partial(other.lr_test, 0.0), other.confint):
            with pytest.raises(
                ValueError, match=r"covariates has \d columns, the fit has \d; pass the covariates of the fit"
            ):
                method(X, wrong)
    fit.coef.flags.writeable = False  # as in joblib's workers
    assert np.array_equal(fit.mahalanobis(X, Z), other.mahalanobis(X, Z))
    assert repr(fit) == f"JointFit(family='box-cox', 3 columns{', 2 covariates' * with_covariates}, converged)"


DAMAGE: dict[str, Any] = {
    "format": "other",
    "version": 99,
    "columns": None,
    "lmbda_cov": [[1.0]],
    "llf": "x",
    "coef": [[0.0, 1e400]],
    "cov": [[1.0, 0.5], [0.2, 1.0]],
    "covariates": {"names": ["Intercept"]},
    "kept": [5],
    "n_iter": 0.5,
    "status": 77,
}


@pytest.mark.parametrize("key", DAMAGE)
def test_damaged_json_is_refused(key: str) -> None:
    record = json.loads(fit_joint(correlated(30, 2), family="box-cox").to_json())
    with pytest.raises(ValueError, match=r"^(a fit in version|not a fit)"):
        JointFit.from_json(json.dumps(record | {key: DAMAGE[key]}), check=False)
    del record[key]
    with pytest.raises(ValueError, match=r"^(a fit in version|not a fit)"):
        JointFit.from_json(json.dumps(record), check=False)


@pytest.mark.parametrize("text", ["", "[]", "{", "null"])
def test_text_that_is_not_a_fit(text: str) -> None:
    with pytest.raises(ValueError, match="not a fit"):
        JointFit.from_json(text)


def test_invalid_arguments_of_methods_are_refused() -> None:
    X = correlated(30, 2)
    fit = fit_joint(X, family="box-cox")
    with pytest.raises(ValueError, match="lmbda0 must be one finite number, or one per column"):
        fit.lr_test([0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="lmbda0 must be one finite number"):
        fit.lr_test(np.nan)
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        fit.confint(level=1.5)
    with pytest.raises(ValueError, match="method must be one of"):
        fit.confint(method="walt")
    with pytest.raises(ValueError, match="need X"):
        fit.confint(sample_weight=np.ones(30))
    with pytest.raises(ValueError, match="X has 3 columns, the fit has 2"):
        fit.mahalanobis(correlated(30, 3))


def test_the_data_are_not_changed() -> None:
    X, Z = correlated(50, 2), np.random.default_rng(0).normal(size=(50, 1))
    before = X.copy(), Z.copy()
    fit_joint(X, Z, "box-cox").confint()
    assert np.array_equal(X, before[0])
    assert np.array_equal(Z, before[1])


def test_oracle_of_one_column_is_that_of_the_plain_likelihood() -> None:
    x = correlated(12, 1)
    with mpmath.workdps(60):
        joint = oracles.joint_nll("box-cox", [mpmath.mpf(0.5)], x)
        assert abs(joint - oracles.likelihood("box-cox", 0.5, x[:, 0].tolist())[0]) < mpmath.mpf(10) ** -50


def test_a_formula_equals_columns_of_dummies() -> None:
    X, z = correlated(60, 2), np.random.default_rng(0).normal(size=60)
    frame = pd.DataFrame({"z": z, "kind": np.tile(list("abc"), 20)})
    fit = fit_joint(X, frame, "box-cox", formula="~ z + C(kind)")
    assert fit.coef_names == ["Intercept", "z", "C(kind)[T.b]", "C(kind)[T.c]"]
    dummies = np.column_stack([z, frame["kind"] == "b", frame["kind"] == "c"]).astype(np.float64)
    assert np.array_equal(fit.lmbda, fit_joint(X, dummies, "box-cox").lmbda)
    assert np.array_equal(fit.mahalanobis(X[:5], frame[:5]), fit.mahalanobis(X, frame)[:5])
    with pytest.raises(ValueError, match="fit again, or pickle the fit"):
        JointFit.from_json(fit.to_json()).mahalanobis(X, frame)
    with pytest.raises(ValueError, match="formula '~ 0 \\+ z' has no intercept"):
        fit_joint(X, frame, "box-cox", formula="~ 0 + z")


class Plain:
    """A stand-in for the likelihood; ``f(lmbda)`` returns value, gradient and Hessian at the first lambda."""

    def __init__(self, f: Any) -> None:
        self._f = f

    def evaluate(self, lmbda: np.ndarray, tolerance: float = 0.0) -> JointEvaluation:
        return JointEvaluation(*self._f(float(lmbda[0])))


def test_a_search_drawn_to_singular_columns_names_them() -> None:
    def f(lmbda: float) -> tuple[float, np.ndarray, np.ndarray]:
        if lmbda != 0.0:
            raise Singular(np.array([2, 3]))
        return 1.0, np.array([1.0]), np.array([[1.0]])

    with pytest.raises(Singular) as caught:
        minimize(Plain(f), np.zeros(1))  # type: ignore[arg-type]
    assert caught.value.columns.tolist() == [2, 3]


def test_a_search_that_finds_nothing_lower_stays() -> None:
    def f(lmbda: float) -> tuple[float, np.ndarray, np.ndarray]:
        return 1.0 + float(lmbda != 0.0), np.array([1.0]), np.array([[1.0]])

    found = minimize(Plain(f), np.zeros(1))  # type: ignore[arg-type]
    assert (found.lmbda[0], found.at.f, found.status) == (0.0, 1.0, JointStatus.NOT_CONVERGED)


def test_evaluations_of_all_starts_are_counted_once() -> None:
    likelihood = likelihood_of("box-cox", correlated(60, 2))
    starts = [np.zeros(2), np.array([1.0, -1.0]), np.array([2.0, 0.5])]
    each = [minimize(likelihood, start).n_eval for start in starts]
    for k in (1, 2, 3):
        assert minimize_from_starts(likelihood, starts[:k]).n_eval == sum(each[:k])
