"""Regressions with a transformed response, compared with R's car and MASS, mpmath and least squares by NumPy."""

from __future__ import annotations

import pickle
import warnings
from typing import NamedTuple

import make_regression_reference
import mpmath
import numpy as np
import oracles
import pytest
from reference_files import make_again, read_reference

import powerkern as pk
from powerkern import Status
from powerkern.regression import RegressionFit, fit_regression

FAMILIES = {"bcPower": "box-cox", "yjPower": "yeo-johnson"}


def with_intercept(X):
    return np.column_stack([np.ones(len(X)), X])


def simulated(seed, n=200, p=3, k=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, k))
    return np.exp(0.3 * X @ rng.normal(size=(k, p)) + 0.5 * rng.normal(size=(n, p))), X


def brute_force(family, lmbda, y, X, weight=None):
    """Return g = 1/2 ln(RSS/n) - (lambda - 1) mean(J) by NumPy's least squares of psi(y) on X.

    RSS is the weighted residual sum of squares, n is the total weight, and J is the log-Jacobian of psi at lambda = 2.
    """
    w = np.ones(len(y)) if weight is None else weight
    psi = np.array([float(oracles.power_transform(family, v, lmbda)) for v in y])
    root = np.sqrt(w)
    rest = root * psi - (root[:, None] * X) @ np.linalg.lstsq(root[:, None] * X, root * psi, rcond=None)[0]
    J = np.log(y) if family == "box-cox" else np.sign(y) * np.log1p(np.abs(y))
    return 0.5 * np.log(rest @ rest / w.sum()) - (lmbda - 1.0) * np.average(J, weights=w)


# --- R ----------------------------------------------------------------------------------------------


def records():
    """Yield car's fits; data sets that the repository lacks carry the mark `needs_shared_data`."""
    for r in read_reference("regression.json")["univariate"]:
        marks = () if "y" in r else pytest.mark.needs_shared_data
        yield pytest.param(r, id=f"{r['name']}-{r['family']}", marks=marks)


def data_of(record):
    """Return the response (n,) and the covariates (n, k) of a record of car's fits."""
    if "y" not in record:
        source = make_regression_reference.read_source()["univariate"]
        (record,) = (r for r in source if (r["name"], r["family"]) == (record["name"], record["family"]))
    return np.array(record["y"], dtype=float), np.array(record["X"], dtype=float)


@pytest.mark.filterwarnings("ignore:covariates. .* left out")
@pytest.mark.parametrize("record", records())
def test_fits_agree_with_car_and_mass(record):
    (y, X), family = data_of(record), FAMILIES[record["family"]]
    fit = fit_regression(y, X, family, intercept=False)
    assert fit.status[0] == Status.SCANNED
    # car's optimiser stops at 2e-4 of a standard error
    assert abs(record["lambda"] - fit.lmbda[0]) <= 2e-4 * fit.standard_error()[0]
    assert fit.standard_error()[0] == pytest.approx(record["se"], rel=2e-5)
    assert fit.rounded()[0] == pytest.approx(record["rounded"], abs=0.0034)  # car writes .33 for 1/3
    assert fit.lr_test(0.0).statistic[0] == pytest.approx(record["lr0"], abs=1e-6)
    assert fit.lr_test(1.0).statistic[0] == pytest.approx(record["lr1"], abs=1e-6)
    at_cars = fit_regression(y, X, family, intercept=False, lmbda=record["lambda"])
    coef = np.array([np.nan if v is None else v for v in np.ravel(record["coef"]).tolist()], dtype=float)
    np.testing.assert_allclose(at_cars.coef[:, 0], coef, rtol=1e-6)
    assert at_cars.rss[0] == pytest.approx(record["rss"], rel=1e-9)
    if record.get("lambda_exact") is not None:
        assert fit.lmbda[0] == pytest.approx(record["lambda_exact"], abs=1e-7)
        assert fit.llf[0] == pytest.approx(record["llf_exact"], rel=1e-9)
    if record.get("mass_llf") is not None:
        offset = -fit.profile(record["mass_lambda"])[0] - np.array(record["mass_llf"])
        assert np.ptp(offset) <= 1e-9 * np.abs(record["mass_llf"]).max()


@pytest.mark.needs_shared_data
def test_the_script_still_writes_its_file():
    kept = make_again(make_regression_reference.keep())
    assert all(kept[key] == read_reference("regression.json")[key] for key in kept)


# --- many digits ------------------------------------------------------------------------------------


class Case(NamedTuple):
    family: str
    y: np.ndarray
    X: np.ndarray
    weight: np.ndarray | None = None


def nasty_cases():
    rng = np.random.default_rng(5)
    n = 30
    x, group = rng.normal(size=n), (np.arange(n) % 3).astype(float)
    D = np.column_stack([x, group])
    noise = rng.normal(size=n)
    cases = {}
    for spread in (0.3, 1e-2, 3e-5, 1e-6):  # R^2 down to 1 - 1e-12
        eta = 3.0 + 0.3 * x + 0.1 * group + 0.3 * spread * noise
        for lmbda, y in ((-1.0, 1.0 / eta), (0.0, np.exp(eta)), (0.5, (0.5 * eta + 1.0) ** 2), (2.0, eta**0.5)):
            cases[f"spread {spread} lambda {lmbda}"] = Case("box-cox", y, D)
    skewed, mixed = rng.lognormal(size=n), rng.normal(size=n) ** 3
    years = np.sort(rng.integers(1900, 2021, size=n)).astype(float)
    holes = np.where(np.arange(n) % 7 == 0, np.nan, skewed)
    cases |= {
        "n = q + 2": Case("box-cox", skewed[:5], D[:5]),
        "years": Case("box-cox", years, D),
        "years given years": Case("box-cox", 1900.0 + np.arange(n) + noise, 1950.0 + np.arange(n)[:, None]),
        "years, Yeo-Johnson": Case("yeo-johnson", years, D),
        "negative years": Case("yeo-johnson", -years, D),
        "huge": Case("box-cox", 1e300 * skewed, D),
        "tiny": Case("box-cox", 1e-300 * skewed, D),
        "1e-300 to 1e300": Case("box-cox", 10.0 ** np.linspace(-300, 300, n) * skewed, D),
        "1e-300 to 1e300, trend": Case("box-cox", 10.0 ** np.linspace(-300, 300, n) * skewed, np.arange(float(n))),
        "tight": Case("box-cox", 1e4 + 1e-3 * mixed, D),
        "tighter": Case("box-cox", 1.0 + 1e-10 * mixed, D),
        "huge, both signs": Case("yeo-johnson", 1e300 * noise, D),
        "tiny, both signs": Case("yeo-johnson", 1e-100 * mixed, D),
        "both signs": Case("yeo-johnson", mixed + x, D),
        "large, both signs": Case("yeo-johnson", 1e6 * mixed, D),
        "counts": Case("box-cox", rng.poisson(3, size=n) + 1.0, D),
        "huge covariates": Case("box-cox", skewed, D * 1e300),
        "tiny covariates": Case("box-cox", skewed, D * 1e-300),
        "covariates far from 0": Case("box-cox", skewed, D + 1e8),
        "weights": Case("box-cox", skewed, D, rng.integers(1, 5, size=n).astype(float)),
        "wild weights": Case("box-cox", skewed, D, 10.0 ** rng.uniform(-10, 10, size=n)),
        "weights, both signs": Case("yeo-johnson", 3.0 * noise, D, rng.uniform(0.5, 2.0, size=n)),
        "outlier": Case("box-cox", np.append(skewed[1:], 1e9), D),
        "missing": Case("box-cox", holes, D),
        "missing, both signs": Case("yeo-johnson", np.where(np.isnan(holes), np.nan, mixed), D),
        "missing and weights": Case("box-cox", holes, D, rng.uniform(0.5, 2.0, size=n)),
        "most missing": Case("box-cox", np.where(np.arange(n) < 5, skewed, np.nan), D),
        "a group missing": Case("box-cox", np.where(group == 2, np.nan, skewed), np.column_stack([D, group == 2])),
    }  # fmt: skip
    return cases


NASTY = nasty_cases()


@pytest.mark.parametrize("name", NASTY)
def test_extreme_cases_agree_with_mpmath(name):
    case = NASTY[name]
    fit = fit_regression(case.y, case.X, case.family, sample_weight=case.weight)
    assert fit.status[0] == Status.SCANNED
    present, used = ~np.isnan(case.y), ~np.isnan(fit.coef[:, 0])
    X, y = with_intercept(case.X)[present][:, used], case.y[present]
    weight = None if case.weight is None else case.weight[present]
    exact = oracles.regression_lambda(case.family, y, X, fit.lmbda[0], weight, digits=80)
    g, _, d2 = oracles.regression_likelihood(case.family, exact, y, X, weight, digits=80)
    n = len(y) if weight is None else weight.sum()
    assert abs(fit.lmbda[0] - exact) <= 1e-10 * max(1, abs(exact))
    assert abs(fit.lmbda[0] - exact) <= 1e-8 * fit.standard_error()[0]
    assert fit.n_obs[0] == pytest.approx(n, rel=1e-14)
    assert abs(fit.nll[0] / n - g) <= 1e-9 * max(1, abs(g))
    assert fit.information[0] / n == pytest.approx(float(d2), rel=1e-7)


def test_lambda_of_data_near_zero_is_found_beside_underflow():
    y = 1e-300 * np.random.default_rng(0).normal(size=30) ** 3
    X = np.arange(30.0)[:, None]
    fit = fit_regression(y, X, "yeo-johnson")
    exact = oracles.regression_lambda("yeo-johnson", y, with_intercept(X), fit.lmbda[0], digits=80)
    assert abs(fit.lmbda[0] / exact - 1) < 1e-12


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_without_a_constant_psi_is_not_shifted(family):
    rng = np.random.default_rng(2)
    X = rng.uniform(1.0, 2.0, size=(40, 2))
    y = X @ [1.0, 2.0] * np.exp(0.1 * rng.normal(size=40))
    fit = fit_regression(y, X, family, intercept=False)
    exact = oracles.regression_lambda(family, y, X, fit.lmbda[0], shifts=False)
    assert abs(fit.lmbda[0] - exact) < 1e-12
    psi = [float(oracles.power_transform(family, v, fit.lmbda[0])) for v in y]
    np.testing.assert_allclose(fit.coef[:, 0], np.linalg.lstsq(X, psi, rcond=None)[0], rtol=1e-10)
    np.testing.assert_allclose(fit.transform(y), psi, rtol=1e-12)
    np.testing.assert_allclose(fit.residuals() + fit.fitted_values(), psi, rtol=1e-11)


def test_a_constant_among_dummies_is_an_intercept():
    y, _ = simulated(3, n=60, p=1)
    groups = np.eye(3)[np.arange(60) % 3]
    dummies = fit_regression(y, groups, intercept=False)
    contrasts = fit_regression(y, groups[:, 1:])
    assert dummies.lmbda[0] == pytest.approx(contrasts.lmbda[0], abs=1e-12)
    coef = contrasts.coef[:, 0]
    np.testing.assert_allclose(dummies.coef[:, 0], coef[0] + np.array([0.0, coef[1], coef[2]]), atol=1e-12)


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_an_intercept_alone_is_the_fit_of_a_column(family):
    y, _ = simulated(4, n=300)
    fit, plain = fit_regression(y, np.ones((300, 1)), family, intercept=False), pk.fit(y, family)
    np.testing.assert_allclose(fit.lmbda, plain.lmbda, atol=1e-11)
    np.testing.assert_allclose(fit.nll, plain.nll, rtol=1e-12)
    np.testing.assert_allclose(fit.information, plain.information, rtol=1e-7)
    np.testing.assert_allclose(fit.scale, plain.scale, rtol=1e-10)
    np.testing.assert_allclose(fit.coef[0], plain.loc, atol=1e-11)
    for got, expected in zip(fit.confint(), plain.confint(), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-9)


# --- the scan ---------------------------------------------------------------------------------------


def two_minima():
    """Return a response y, whose criterion has two minima, and the two covariates y**2 and 1/y with a little noise."""
    y, rng = np.linspace(1.0, 9.0, 60), np.random.default_rng(0)
    X = np.column_stack([y**2 + 0.02 * rng.normal(size=60), 1.0 / y + 0.001 * rng.normal(size=60)])
    return y, X


@pytest.mark.slow
def test_the_lowest_of_several_minima_is_found():
    y, X = two_minima()
    fit = fit_regression(y, X)
    assert fit.status[0] == Status.MULTIMODAL
    lmbdas = np.linspace(-4.0, 4.0, 401)
    values = [brute_force("box-cox", lmbda, y, with_intercept(X)) for lmbda in lmbdas]
    assert abs(fit.lmbda[0] - lmbdas[np.argmin(values)]) < 0.02
    assert fit.nll[0] <= 60 * min(values) + 1e-6
    low, high = fit.scanned
    assert low[0] < -1.0 < 2.0 < high[0]


def test_several_minima_in_long_columns_are_found_in_all_rows():
    rng = np.random.default_rng(0)
    y = rng.uniform(1.0, 9.0, size=6000)
    X = np.column_stack([y**2 + 0.02 * rng.normal(size=6000), 1.0 / y + 0.001 * rng.normal(size=6000)])
    fit = fit_regression(y, X)
    assert fit.status[0] == Status.MULTIMODAL
    assert abs(fit.lmbda[0] - 2.0) < 0.01


def test_a_likelihood_that_is_monotone_has_no_optimum():
    """A dummy covariate fits the outlier exactly, so the outlier affects only the Jacobian, which is monotone."""
    y, X = np.array([1.0, 1.1, 1.25, 1.3, 1.02, 1e6]), np.eye(6)[:, 5]
    with pytest.warns(UserWarning, match="column 0: no optimum: the likelihood still grows at the end"):
        fit = fit_regression(y, X)
    assert fit.status[0] == Status.AT_END
    assert np.isnan([fit.standard_error()[0], *np.ravel(fit.confint()), fit.lr_test(1.0).statistic[0]]).all()


@pytest.mark.parametrize("lmbda", [0.0, 0.37, -1.0])
def test_an_exact_fit_is_reported(lmbda):
    x = np.arange(1.0, 13.0)
    y = np.exp(0.1 * x) if lmbda == 0.0 else x ** (1.0 / lmbda)
    with pytest.warns(UserWarning, match="exact fit"):
        fit = fit_regression(y, x)
    assert fit.status[0] == Status.EXACT
    assert fit.lmbda[0] == pytest.approx(lmbda, abs=1e-10)
    assert fit.scale[0] < 1e-10
    np.testing.assert_allclose(fit.predict(x), y, rtol=1e-10)
    np.testing.assert_allclose(fit.predict(x, "mean"), y, rtol=1e-10)


def test_a_saturated_design_is_exact_under_every_lambda():
    with pytest.warns(UserWarning, match="exact fit"):
        fit = fit_regression(np.repeat([1.0, 2.0, 5.0], 4), np.repeat(np.eye(3), 4, axis=0), intercept=False)
    assert (fit.status[0], fit.lmbda[0]) == (Status.EXACT, 1.0)


# --- equivalences -----------------------------------------------------------------------------------


def test_weights_are_repeated_rows():
    y, X = simulated(6, n=80)
    weight = np.random.default_rng(1).integers(0, 4, size=80)
    fit = fit_regression(y, X, sample_weight=weight)
    repeated = fit_regression(np.repeat(y, weight, axis=0), np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(fit.lmbda, repeated.lmbda, atol=1e-12)
    np.testing.assert_allclose(fit.coef, repeated.coef, atol=1e-12)
    np.testing.assert_allclose(fit.scale_unbiased, repeated.scale_unbiased, rtol=1e-12)
    np.testing.assert_allclose(fit.nll, repeated.nll, rtol=1e-12)
    assert fit.n_obs.tolist() == [weight.sum()] * 3


def test_missing_values_are_rows_left_out():
    rng = np.random.default_rng(7)
    y, X = simulated(7, n=500, p=6)
    y[rng.random(y.shape) < 0.3] = np.nan
    X = np.column_stack([X, np.arange(500) < 3])  # only three rows determine its coefficient
    y[:3, :3] = np.nan
    fit = fit_regression(y, X)
    assert fit.rank.tolist() == [3, 3, 3, 4, 4, 4]
    for j in range(6):
        rows = ~np.isnan(y[:, j])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            alone = fit_regression(y[rows, j], X[rows])
        assert fit.lmbda[j] == pytest.approx(alone.lmbda[0], abs=1e-12)
        np.testing.assert_allclose(fit.coef[:, j], alone.coef[:, 0], atol=1e-11)
        assert fit.profile(0.3)[j] == pytest.approx(alone.profile(0.3)[0], rel=1e-12)
        assert fit.confint().low[j] == pytest.approx(alone.confint().low[0], abs=1e-9)
        np.testing.assert_allclose(fit.residuals()[rows, j], alone.residuals(), atol=1e-11)


def test_rows_that_dominate_the_design_are_missing_in_one_response():
    """Rows 0 and 1 have a huge covariate and no response; results equal those of a fit without these rows.

    The basis of the design must then be computed from the remaining rows, as the common basis would lose digits.
    """
    y, X = simulated(8, n=400, p=2)
    X = np.column_stack([X, np.where(np.arange(400) < 2, 1e3, np.arange(400) % 2)])
    y[:2, 0] = np.nan
    fit = fit_regression(y, X)
    alone = fit_regression(y[2:, 0], X[2:])
    assert fit.rank.tolist() == [4, 4]
    assert fit.lmbda[0] == pytest.approx(alone.lmbda[0], abs=1e-12)
    assert fit.profile(0.3)[0] == pytest.approx(alone.profile(0.3)[0], rel=1e-11)
    np.testing.assert_allclose(fit.predict(X[:2])[:, 0], alone.predict(X[:2]), rtol=1e-10)


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson", "best"])
def test_bits_do_not_depend_on_threads_order_or_neighbors(family):
    y, X = simulated(9, n=3000, p=23, k=4)
    y[::17, ::3] = np.nan
    y[:, 5] -= 1.0 if family != "box-cox" else 0.0
    order = np.random.default_rng(0).permutation(23)
    fit = fit_regression(y, X, family, n_threads=1)
    others = [
        (fit_regression(np.asfortranarray(y), X, family, n_threads=3), slice(None)),
        (fit_regression(y[:, order], X, family, n_threads=2), order),
        (fit_regression(y[:, :5], X, family), slice(0, 5)),
    ]
    for other, columns in others:
        for name in ("lmbda", "nll", "scale", "information"):
            np.testing.assert_array_equal(getattr(other, name), getattr(fit, name)[columns])
        np.testing.assert_array_equal(other.coef, fit.coef[:, columns])
        np.testing.assert_array_equal(other.predict(X[:7], "mean"), fit.predict(X[:7], "mean")[:, columns])
        np.testing.assert_array_equal(other.confint().high, fit.confint().high[columns])


def test_units_of_response_and_covariates_do_not_matter():
    y, X = simulated(10)
    fit, other = fit_regression(y, X), fit_regression(1e5 * y, X * [1e-3, 1e4] + [7.0, -1e5])
    np.testing.assert_allclose(other.lmbda, fit.lmbda, atol=1e-12)
    np.testing.assert_allclose(other.predict(X[:5] * [1e-3, 1e4] + [7.0, -1e5]), 1e5 * fit.predict(X[:5]), rtol=1e-10)


def test_a_shifted_fit_equals_the_fit_of_shifted_data():
    y, X = simulated(11)
    fit, shifted = fit_regression(y, X), fit_regression(y - 2.0, X, shift=2.0)
    np.testing.assert_allclose(shifted.lmbda, fit.lmbda, atol=1e-11)
    np.testing.assert_allclose(shifted.predict(X[:5]), fit.predict(X[:5]) - 2.0, atol=1e-11)
    np.testing.assert_allclose(shifted.profile([0.0, 0.5]), fit.profile([0.0, 0.5]), rtol=1e-11)
    np.testing.assert_allclose(shifted.residuals(), fit.residuals(), atol=1e-11)
    assert shifted.shift.tolist() == [2.0] * 3


def test_best_family_is_the_likelier():
    y, X = simulated(12, p=4)
    y[:, 3] -= 1.0
    fit = fit_regression(y, X, "best")
    one, other = fit_regression(y, X, "yeo-johnson"), fit_regression(y[:, :3], X)
    assert fit.families[3] == "yeo-johnson"
    for j in range(3):
        expected = "box-cox" if other.nll[j] < one.nll[j] else "yeo-johnson"
        assert fit.families[j] == expected
        np.testing.assert_array_equal(fit.coef[:, j], (other if expected == "box-cox" else one).coef[:, j])
    np.testing.assert_array_equal(fit.profile(0.5)[3:], one.profile(0.5)[3:])


def test_given_lambdas_have_least_squares_coefficients():
    y, X = simulated(13)
    fit = fit_regression(y, X, lmbda=[0.0, np.nan, 1.0])
    assert fit.status.tolist() == [Status.FIXED, Status.SCANNED, Status.FIXED]
    assert fit.lmbda[1] == fit_regression(y, X).lmbda[1]
    coef = np.linalg.lstsq(with_intercept(X), np.column_stack([np.log(y[:, 0]), y[:, 2] - 1.0]), rcond=None)[0]
    np.testing.assert_allclose(fit.coef[:, [0, 2]], coef, atol=1e-12)


# --- likelihood -------------------------------------------------------------------------------------


def test_intervals_end_where_the_profile_has_grown():
    y, X = simulated(14)
    fit = fit_regression(y, X, "yeo-johnson")
    for end in fit.confint(level=0.9):
        for j in range(3):
            growth = fit.profile(end[j])[j] - fit.nll[j]
            assert growth == pytest.approx(0.5 * 2.705543454095404, rel=1e-9)
    low, high = fit.confint(method="wald")
    np.testing.assert_allclose(0.5 * (low + high), fit.lmbda)
    np.testing.assert_allclose(high - low, 2 * 1.959963984540054 * fit.standard_error())


def test_the_information_is_the_curvature_of_the_profile():
    y, X = simulated(15)
    fit = fit_regression(y, X)
    h = 1e-3
    for j in range(3):
        left, middle, right = fit.profile([fit.lmbda[j] - h, fit.lmbda[j], fit.lmbda[j] + h])[j]
        assert (left - 2.0 * middle + right) / h**2 == pytest.approx(fit.information[j], rel=1e-4)
        assert middle == pytest.approx(fit.nll[j], rel=1e-13)


def test_profile_is_that_of_least_squares():
    y, X = simulated(16, n=50)
    y[4, 1] = np.nan
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=50)
    got = fit_regression(y, X, sample_weight=weight).profile([-1.0, 0.5])
    rows = ~np.isnan(y[:, 1])
    expected = [brute_force("box-cox", at, y[rows, 1], with_intercept(X)[rows], weight[rows]) for at in (-1.0, 0.5)]
    np.testing.assert_allclose(got[1] / weight[rows].sum(), expected, rtol=1e-12)


def test_summary_has_tests_only_if_the_fit_has_data():
    y, X = simulated(17)
    fit = fit_regression(y, X)
    table = fit.summary().to_dict()
    np.testing.assert_array_equal(table["lmbda"], fit.lmbda)
    np.testing.assert_array_equal(table["p_0"], fit.lr_test(0.0).pvalue)
    assert "a scan of lambda found no lower one" in str(fit.summary())
    assert "no likelihood ratio tests" in str(pickle.loads(pickle.dumps(fit)).summary())


# --- predictions ------------------------------------------------------------------------------------


def test_predictions_of_the_lognormal_agree_with_formulas():
    y, X = simulated(18)
    fit = fit_regression(y, X, lmbda=0.0)
    new = X[:6] + 0.1
    eta, s = with_intercept(new) @ fit.coef, fit.scale
    np.testing.assert_allclose(fit.predict(new), np.exp(eta), rtol=1e-12)
    np.testing.assert_allclose(fit.predict(new, "mean"), np.exp(eta + s**2 / 2.0), rtol=1e-12)
    np.testing.assert_allclose(fit.predict(new, "quantile", quantile=0.975), np.exp(eta + 1.959963984540054 * s))


@pytest.mark.parametrize("lmbda", [-0.3, 0.5, 1.7])
def test_means_are_integrals(lmbda):
    y, X = simulated(19, p=1)
    y = 20.0 + y  # far from the end of the range
    fit = fit_regression(y, X, lmbda=lmbda)
    eta = float(fit.coef[0, 0])
    s = float(fit.scale[0])

    def integrand(z):
        return (1.0 + lmbda * (eta + s * z)) ** (1.0 / lmbda) * mpmath.npdf(z)

    expected = float(mpmath.quad(integrand, [-8, -3, 0, 3, 8]))
    assert fit.predict(np.zeros((1, 2)), "mean")[0, 0] == pytest.approx(expected, rel=1e-9)


def test_predictions_beyond_the_range_are_its_ends():
    rng = np.random.default_rng(20)
    x = rng.normal(size=100)
    y = np.exp(0.5 * x + 0.5 * rng.normal(size=100))
    far = np.array([[-40.0], [40.0]])
    assert fit_regression(y, x, lmbda=1.0).predict(far)[0] == 0.0
    assert fit_regression(y - 2.0, x, lmbda=1.0, shift=2.0).predict(far)[0] == -2.0
    assert fit_regression(y, x, lmbda=-1.0).predict(far)[1] == np.inf
    assert fit_regression(y, x, "yeo-johnson", lmbda=3.0).predict(far)[0] == -np.inf
    # the mean of the normal distribution about 1, truncated to values above 0
    fit = fit_regression(y, x, lmbda=1.0)
    at = np.array([[-2.0]])
    eta, s = fit.predict(at)[0], fit.scale[0]
    a = -eta / s
    truncated = eta + s * float(mpmath.npdf(a) / (1 - mpmath.ncdf(a)))
    assert fit.predict(at, "mean")[0] == pytest.approx(truncated, rel=1e-10)


def test_residuals_agree_with_least_squares():
    y, X = simulated(21)
    fit = fit_regression(y, X)
    psi = fit.transform(y)
    np.testing.assert_allclose(fit.residuals(), psi - with_intercept(X) @ fit.coef, atol=1e-12)
    np.testing.assert_allclose((fit.residuals(standardized=True) ** 2).mean(axis=0), 1.0)
    np.testing.assert_allclose((fit.residuals() ** 2).sum(axis=0), fit.rss)
    np.testing.assert_array_equal(fit.residuals(y[:9], X[:9]), fit.residuals()[:9])
    np.testing.assert_allclose(fit.inverse_transform(psi), y)
    np.testing.assert_allclose(fit.scale_unbiased, np.sqrt(fit.rss / (200 - 3)))


def test_predictions_are_finite_where_psi_underflows():
    """lambda is about -361: all values of psi are equal in float64, but the standardised values differ."""
    rng = np.random.default_rng(22)
    x = rng.normal(size=50)
    y = 2000.0 * (1.0 - 0.2 * (x + 0.3 * rng.normal(size=50))) ** (-1.0 / 361.0)
    fit = fit_regression(y, x)
    assert -700.0 < fit.lmbda[0] < -100.0
    assert np.corrcoef(fit.predict(x), y)[0, 1] > 0.9
    np.testing.assert_allclose((fit.residuals(standardized=True) ** 2).mean(), 1.0)


# --- covariates -------------------------------------------------------------------------------------


def test_collinear_covariates_are_left_out_by_name():
    pandas = pytest.importorskip("pandas")
    y, X = simulated(23)
    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "sum": X.sum(axis=1), "one": 3.0})
    with pytest.warns(UserWarning, match="covariates: 'sum', 'one' left out"):
        fit = fit_regression(y, frame)
    assert fit.covariate_names == ["Intercept", "a", "b", "sum", "one"]
    assert np.isnan(fit.coef[3:]).all()
    np.testing.assert_allclose(fit.coef[:3], fit_regression(y, X).coef, atol=1e-12)
    np.testing.assert_allclose(fit.predict(frame.iloc[:4]), fit_regression(y, X).predict(X[:4]), rtol=1e-12)
    reordered = frame[["one", "sum", "b", "a"]].iloc[:4]
    np.testing.assert_array_equal(fit.predict(reordered), fit.predict(frame.iloc[:4]))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_formula_equals_columns_of_dummies(library):
    frames = pytest.importorskip(library)
    pytest.importorskip("formulaic")
    y, X = simulated(24)
    kinds = np.array(["low", "mid", "top"])[np.arange(200) % 3]
    frame = frames.DataFrame({"weight": X[:, 0], "kind": kinds})
    fit = fit_regression(y, frame, formula="~ weight + C(kind)")
    by_hand = fit_regression(y, np.column_stack([X[:, 0], kinds == "mid", kinds == "top"]))
    assert fit.covariate_names == ["Intercept", "weight", "C(kind)[T.mid]", "C(kind)[T.top]"]
    np.testing.assert_allclose(fit.coef, by_hand.coef, atol=1e-12)
    new = frames.DataFrame({"weight": [0.5, 0.5], "kind": ["top", "mid"]})
    np.testing.assert_allclose(fit.predict(new), by_hand.predict([[0.5, 0, 1], [0.5, 1, 0]]), rtol=1e-12)
    with pytest.raises(ValueError, match="categories that were not in the fitted data"):
        fit.predict(frames.DataFrame({"weight": [0.5], "kind": ["unheard of"]}))
    without = fit_regression(y, frame, formula="~ 0 + C(kind)")
    assert without.covariate_names[0] == "C(kind)[low]"
    with pytest.raises(ValueError, match="does not keep how the formula"):
        RegressionFit.from_json(fit.to_json()).predict(new)


# --- storing ----------------------------------------------------------------------------------------


def test_json_and_pickle_restore_all_but_the_data():
    y, X = simulated(25)
    y[:, 1] = 1.0
    with pytest.warns(UserWarning, match="column 1: not fitted"):
        fit = fit_regression(y, X, "best")
    for again in (RegressionFit.from_json(fit.to_json()), pickle.loads(pickle.dumps(fit))):
        for name in ("lmbda", "coef", "scale", "nll", "rank", "status", "n_obs"):
            np.testing.assert_array_equal(getattr(again, name), getattr(fit, name))
        np.testing.assert_array_equal(again.predict(X[:4], "mean"), fit.predict(X[:4], "mean"))
        np.testing.assert_array_equal(again.confint(method="wald").low, fit.confint(method="wald").low)
        with pytest.raises(ValueError, match="no longer has its data"):
            again.profile(0.0)
    assert "2 of 3 responses fitted to 3 covariates" in repr(fit)


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "not JSON"),
        ("{}", "its format is None, not 'powerkern.RegressionFit'"),
        ('{"format": "powerkern.RegressionFit", "version": 9}', "version 9"),
        ('{"format": "powerkern.RegressionFit", "version": 1}', "damaged"),
    ],
)
def test_damaged_json_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        RegressionFit.from_json(text, check=False)


# --- bad input --------------------------------------------------------------------------------------

GOOD = np.arange(1.0, 9.0)
NAN_AT_3 = np.where(np.arange(8) == 3, np.nan, GOOD)


@pytest.mark.parametrize(
    "args, options, message",
    [
        ((GOOD, NAN_AT_3), {}, r"covariates, 'x0', row 3: the value is missing"),
        ((GOOD, np.where(np.isnan(NAN_AT_3), np.inf, GOOD)), {}, r"covariates, 'x0', row 3: the value is infinite"),
        ((GOOD - 1.0, GOOD), {}, r"row 0: the value is 0.0, and the Box-Cox"),
        ((np.column_stack([GOOD, GOOD - 3.0]), GOOD), {}, r"column 1, row 0: the value is -2.0"),
        ((np.append(GOOD[1:], np.inf), GOOD), {}, r"row 7: the value is inf; replace infinite"),
        ((GOOD[:5], GOOD), {}, r"covariates has 8 rows, the data have 5; pass the same rows"),
        ((GOOD[:2], GOOD[:2]), {}, r"2 rows \(of positive weight\) and 2 coefficients"),
        (
            (GOOD, np.random.default_rng(0).normal(size=(8, 12))),
            {},
            r"8 rows \(of positive weight\) and 8 coefficients",
        ),
        ((GOOD, GOOD), {"sample_weight": [1, 1, 0, 0, 0, 0, 0, 0]}, r"2 rows \(of positive weight\)"),
        ((GOOD, GOOD), {"family": "boxcox"}, r"family must be one of .* did you mean 'box-cox'"),
        ((GOOD, GOOD), {"family": "best", "lmbda": 0.0}, r"lmbda cannot be given with family='best'"),
        ((GOOD, GOOD), {"family": "yeo-johnson", "shift": 1.0}, r"shift works only with family='box-cox'"),
        ((GOOD, GOOD), {"formula": "~ a", "intercept": False}, r"intercept=False cannot be combined with a formula"),
    ],
)
def test_invalid_input_is_refused(args, options, message):
    with pytest.raises(ValueError, match=message):
        fit_regression(*args, **options)


@pytest.mark.parametrize(
    "formula, message",
    [
        ("~ weigth", "'weigth' is not a column of covariates, which has 'kind', 'weight'"),
        ("~ weight +* kind", "cannot be read"),
        ("kind ~ weight", "has two sides|more than one side"),
        ("~ log(weight, 1, 2, 3)", "cannot be evaluated"),
    ],
)
def test_invalid_formulas_are_refused(formula, message):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("formulaic")
    frame = pandas.DataFrame({"weight": GOOD, "kind": list("abababab")})
    with pytest.raises(ValueError, match=message):
        fit_regression(GOOD, frame, formula=formula)
    with pytest.raises(TypeError, match="needs a data frame"):
        fit_regression(GOOD, GOOD, formula="~ weight")


def test_missing_covariates_in_a_formula_name_the_row():
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("formulaic")
    with pytest.raises(ValueError, match="covariates, 'weight', row 3: the value is missing"):
        fit_regression(GOOD, pandas.DataFrame({"weight": NAN_AT_3}), formula="~ weight")


def test_invalid_calls_of_a_fit_are_refused():
    y, X = simulated(26)
    fit = fit_regression(y, X)
    for call, message in (
        (lambda: fit.predict(X[:, :1]), "covariates has 1 columns, the fit has 2; pass the covariates of the fit"),
        (lambda: fit.predict(X, "modal"), "kind must be one of"),
        (lambda: fit.predict(X, "quantile", quantile=1.0), "quantile must be a number in .0, 1."),
        (lambda: fit.residuals(y), "pass Y and covariates together"),
        (lambda: fit.residuals(y[:3], X), "pass matching rows"),
        (lambda: fit.lr_test([0.0, 1.0]), "lmbda0 must be one finite number, or one per response"),
        (lambda: fit.profile([[0.0]]), "lmbdas must be a finite number"),
        (lambda: fit.confint(level=95), "level must be between 0 and 1"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_responses_without_a_fit_do_not_stop_the_others():
    y, X = simulated(27, n=20, p=4)
    y[:, 0], y[:, 1], y[3:, 2] = 2.0, np.nan, np.nan
    with pytest.warns(UserWarning, match="column 0: .*column 1: .*column 2: not fitted: no more values"):
        fit = fit_regression(y, X)
    assert fit.status.tolist() == [Status.CONSTANT, Status.EMPTY, Status.TOO_FEW, Status.SCANNED]
    assert np.isnan(fit.coef[:, :3]).all()
    assert np.isnan(fit.predict(X)[:, :3]).all()
    assert np.isnan(fit.profile(0.0)[:3]).all()
    assert np.isfinite(fit.predict(X)[:, 3]).all()
