"""Likelihood ratio tests, Wald intervals and rounded powers, compared with mpmath, SciPy and R's car."""

from __future__ import annotations

import numpy as np
import pytest
from reference_files import read_reference
from samples import lognormal_columns
from scipy import stats

import powerkern as pk
from powerkern import Status
from powerkern._results.inference import (
    CONVENIENT,
    Interval,
    likelihood_ratio,
    rounded_power,
    standard_error_from,
    wald_interval,
)
from powerkern.sketch import fit_chunks
from tests.support.oracles import likelihood, most_likely_lambda

FAMILIES = ["box-cox", "yeo-johnson"]


def lognormal_with_holes(n: int = 40, p: int = 4, seed: int = 0) -> np.ndarray:
    x = lognormal_columns(n, np.linspace(0.3, 1.0, p), seed=seed)
    x[:7, 1] = np.nan
    return x


def mixed(family: str) -> np.ndarray:
    return lognormal_with_holes() if family == "box-cox" else lognormal_with_holes() - 1.5


# --- the shared pieces --------------------------------------------------------------------------------


@pytest.fixture
def car() -> list[list]:
    """Return [name, lambda, standard error, rounded power, interval ends] of every lambda that car estimated."""
    reference = read_reference("regression.json")
    one = [
        [r[k] for k in ("name", "lambda", "se", "rounded", "wald_low", "wald_high")] for r in reference["univariate"]
    ]
    several = [
        [r["name"], *figures, *ends]
        for r in reference["multivariate"]
        for *figures, ends in zip(r["lambda"], r["se"], r["rounded"], r["wald"], strict=True)
    ]
    lambdas = one + several
    assert len(lambdas) > 40
    return lambdas


def test_rounded_powers_and_intervals_are_those_of_car(car):
    for name, lmbda, se, rounded, low, high in car:
        interval = wald_interval(np.array([lmbda]), np.array([se]))
        quantile = (1.96 - 1.959963984540054) * se  # car uses 1.96
        assert interval.low[0] == pytest.approx(low + quantile, abs=1e-12), name
        assert interval.high[0] == pytest.approx(high - quantile, abs=1e-12), name
        expected = {0.33: 1 / 3, -0.33: -1 / 3}.get(rounded, rounded)
        assert rounded_power([lmbda], interval)[0] == expected, name


def test_likelihood_ratios_agree_with_mass_and_car():
    """Test lambda = 1 against 0 with log-likelihoods of MASS::boxcox.

    The statistic equals the difference between car's statistics for lambda = 1 and lambda = 0.
    """
    checked = 0
    for r in read_reference("regression.json")["univariate"]:
        if "mass_llf" in r:
            at = np.searchsorted(r["mass_lambda"], [-1e-9, 1.0 - 1e-9])
            zero, one = np.array(r["mass_llf"])[at]
            assert likelihood_ratio(-one, -zero).statistic == pytest.approx(r["lr1"] - r["lr0"], abs=1e-6), r["name"]
            checked += 1
    assert checked > 5


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-0.1, 1.1, 1.0),
        (-1.2, 0.3, 0.0),
        (-1.2, -0.4, -1.0),  # car tries -1 before -1/2
        (0.32, 0.7, 0.5),
        (0.3, 0.4, 1 / 3),
        (-0.6, -0.3, -0.5),
        (-0.4, -0.3, -1 / 3),
        (1.5, 2.5, 2.0),
        (-2.5, -1.5, -2.0),
        (0.1, 0.3, 0.2),
        (0.0, 0.2, 0.0),  # ends belong to the interval
        (0.2, 1.0, 1.0),
        (np.nan, np.nan, 0.2),
    ],
)
def test_the_first_convenient_power_inside_is_chosen(low, high, expected):
    assert rounded_power([0.2], Interval(np.array([low]), np.array([high])))[0] == expected


def test_each_power_may_be_found():
    powers = np.array(CONVENIENT)
    assert (rounded_power(powers + 1e-9, Interval(powers - 1e-8, powers + 1e-8)) == powers).all()


@pytest.mark.parametrize("df", [1, 2, 7])
def test_pvalues_are_of_the_chi_squared_distribution(df):
    nll = np.array([0.0, -5.0, 1e6])
    test = likelihood_ratio(nll + np.array([0.0, 0.5, 40.0]), nll, df)
    assert test.statistic.tolist() == [0.0, 1.0, 80.0]
    np.testing.assert_allclose(test.pvalue, stats.chi2.sf(test.statistic, df), rtol=1e-12)
    assert test.df == df


def test_rounding_does_not_make_a_statistic_negative():
    assert likelihood_ratio(1.0, np.nextafter(1.0, 2.0)) == (0.0, 1, 1.0)
    assert np.isnan(likelihood_ratio(np.nan, 1.0).pvalue)


def test_standard_errors_need_a_positive_curvature():
    assert standard_error_from([4.0, 0.0, -1.0, np.nan]).tolist()[0] == 0.5
    assert np.isnan(standard_error_from([4.0, 0.0, -1.0, np.nan])[1:]).all()


@pytest.mark.parametrize("level", [0.5, 0.95, 1 - 1e-12])
def test_wald_intervals_have_normal_quantiles(level):
    low, high = wald_interval(1.0, 0.25, level)
    assert (1.0 - low) / 0.25 == pytest.approx(stats.norm.isf((1.0 - level) / 2), rel=1e-12)
    assert high - 1.0 == 1.0 - low


# --- of fits ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("weighted", [pytest.param(False, marks=pytest.mark.slow), True])
def test_lr_tests_agree_with_mpmath(family, weighted):
    x = mixed(family)
    weight = np.random.default_rng(3).uniform(0.5, 2.0, len(x)) if weighted else None
    fit = pk.fit(x, family, sample_weight=weight)
    own = [0.0, -0.7, 1.0, 2.3]
    common, each = fit.lr_test(1.0), fit.lr_test(own)
    for j in range(x.shape[1]):
        there = ~np.isnan(x[:, j])
        column = x[there, j].tolist()
        w = None if weight is None else weight[there].tolist()
        total = len(column) if w is None else sum(w)
        best = most_likely_lambda(family, column, fit.lmbda[j], w)
        lowest = likelihood(family, best, column, w)[0]
        for test, lmbda0 in ((common, 1.0), (each, own[j])):
            exact = float(2 * total * (likelihood(family, lmbda0, column, w)[0] - lowest))
            assert test.statistic[j] == pytest.approx(exact, abs=1e-10, rel=1e-10)
            assert test.pvalue[j] == pytest.approx(stats.chi2.sf(exact, 1), rel=1e-9)


@pytest.mark.parametrize(
    "column",
    [
        [2003, 1950, 1997, 2000, 2009, 2009, 1980, 1999, 2007, 1991],
        [1e-300, 1e-150, 1e-3, 1.0, 7.0, 1e100, 1e300],
        [1.0, 1.0, 1.0, 1.0, 1.0, 2.0],
        [5e-324, 1e-323, 3e-323, 4e-322],
        (1e9 + np.arange(30.0) ** 2).tolist(),
    ],
    ids=["years", "wide", "rare", "subnormal", "offset"],
)
def test_lr_tests_of_extreme_columns_agree_with_mpmath(column):
    fit = pk.fit(np.column_stack([column, column]), "box-cox")
    assert (fit.status == Status.OK).all()
    lowest = likelihood("box-cox", most_likely_lambda("box-cox", column, fit.lmbda[0]), column)[0]
    for lmbda0 in (0.0, 1.0, -3.0):
        exact = float(2 * len(column) * (likelihood("box-cox", lmbda0, column)[0] - lowest))
        for test in (fit.lr_test(lmbda0), fit.lr_test([lmbda0]), fit.lr_test([lmbda0, lmbda0])):
            assert test.statistic.tolist() == pytest.approx([exact] * 2, rel=1e-10, abs=1e-12 * (1 + abs(fit.nll[0])))


def test_lr_tests_agree_with_scipy():
    x = np.random.default_rng(5).gamma(2.0, size=1000)
    fit = pk.fit(x, "box-cox")
    exact = 2 * (stats.boxcox_llf(fit.lmbda[0], x) - stats.boxcox_llf(0.5, x))
    assert fit.lr_test(0.5).statistic[0] == pytest.approx(exact, abs=1e-8)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_test_rejects_outside_the_interval(family):
    fit = pk.fit(mixed(family), family)
    for end in fit.confint(level=0.9):
        np.testing.assert_allclose(fit.lr_test(end).pvalue, 0.1, rtol=1e-6)
    assert (fit.lr_test(fit.lmbda).statistic < 1e-10).all()


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_wald_intervals_of_a_fit_use_its_standard_errors(family):
    x = mixed(family)
    low, high = pk.fit(x, family).confint(level=0.8, method="wald")
    for j in range(x.shape[1]):
        column = x[~np.isnan(x[:, j]), j].tolist()
        best = most_likely_lambda(family, column, 0.5 * (low[j] + high[j]))
        se = float((len(column) * likelihood(family, best, column)[2]) ** -0.5)
        assert high[j] - low[j] == pytest.approx(2 * stats.norm.ppf(0.9) * se, rel=1e-9)


def test_columns_without_an_optimum_have_no_tests():
    x = lognormal_with_holes()
    x[:, 3] = 2.0
    with pytest.warns(UserWarning, match="fewer than two distinct"):
        fit = pk.fit(x, "box-cox", lmbda=[np.nan, np.nan, 0.3, np.nan])
    assert fit.status.tolist() == [Status.OK, Status.OK, Status.FIXED, Status.CONSTANT]
    for figures in (fit.lr_test(0.0).statistic, fit.lr_test(0.0).pvalue, *fit.confint(method="wald")):
        assert np.isnan(figures).tolist() == [False, False, True, True]
    assert fit.rounded()[2:].tolist() == [0.3, 1.0]
    bounded = pk.fit([1950.0, 1997.0, 2000.0, 2003.0, 2007.0], "box-cox", ymax=10.0)
    assert bounded.status == [Status.AT_BOUND]
    assert np.isnan(bounded.lr_test(1.0).statistic).all()
    assert bounded.rounded() == bounded.lmbda


def test_likelihood_ratios_of_mixed_families_are_those_of_each_column():
    x = np.column_stack([lognormal_with_holes()[:, 0], lognormal_with_holes()[:, 2] - 3.0])
    best = pk.fit(x, "best")
    assert best.families == ["box-cox", "yeo-johnson"] or best.families == ["yeo-johnson", "yeo-johnson"]
    for j, family in enumerate(best.families):
        alone = pk.fit(x[:, j], family)
        assert best.lr_test([0.3, 1.2]).statistic[j] == alone.lr_test([0.3, 1.2][j]).statistic[0]


def test_likelihood_ratios_of_shifted_columns_are_those_of_the_sums():
    x = lognormal_with_holes()
    shift = np.array([0.5, 1.0, 0.25, 2.0])
    moved, plain = pk.fit(x - shift, "box-cox", shift=shift), pk.fit((x - shift) + shift, "box-cox")
    for given in (0.0, [0.0, 0.5, 1.0, 2.0]):
        np.testing.assert_array_equal(moved.lr_test(given).statistic, plain.lr_test(given).statistic)
    a, b = moved.rounded_fit(), plain.rounded_fit()
    np.testing.assert_allclose(a.transform(x - shift), b.transform((x - shift) + shift), rtol=1e-14)
    np.testing.assert_array_equal(a.x_min, moved.x_min)


def test_likelihood_ratios_need_the_data_and_wald_intervals_do_not():
    x = lognormal_with_holes()
    fit = pk.fit(x, "box-cox")
    read = pk.PowerFit.from_json(fit.to_json())
    for call in (lambda: read.lr_test(0.0), lambda: read.lr_test([0.0] * 4), read.rounded_fit):
        with pytest.raises(ValueError, match=r"no longer has its data .* pass X"):
            call()
    np.testing.assert_array_equal(read.lr_test(0.0, x).statistic, fit.lr_test(0.0).statistic)
    np.testing.assert_array_equal(read.confint(method="wald"), fit.confint(method="wald"))
    np.testing.assert_array_equal(read.rounded(), fit.rounded())
    assert read.rounded_fit(X=x).to_json() == fit.rounded_fit().to_json()


def test_inference_from_power_sums_agrees_with_inference_from_rows():
    x = lognormal_with_holes(500)
    fit, sketched = pk.fit(x, "box-cox"), fit_chunks(lambda: iter([x[:300], x[300:]]), "box-cox")
    for given in (0.5, [0.0, 0.5, 1.0, 0.3]):
        np.testing.assert_allclose(sketched.lr_test(given).statistic, fit.lr_test(given).statistic, rtol=1e-6)
    np.testing.assert_allclose(sketched.confint(method="wald"), fit.confint(method="wald"), rtol=1e-9)
    np.testing.assert_array_equal(sketched.rounded(), fit.rounded())
    a, b = sketched.rounded_fit(), fit.rounded_fit()
    np.testing.assert_array_equal(a.status, b.status)
    np.testing.assert_allclose(a.transform(x), b.transform(x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("estimator", ["robust", "mtl", "ppcc"])
def test_tests_need_maximum_likelihood(estimator):
    fit = pk.fit(lognormal_with_holes(), "box-cox", estimator)
    for call in (lambda: fit.lr_test(0.0), fit.rounded, fit.rounded_fit):
        with pytest.raises(ValueError, match=f"need estimator='mle', not '{estimator}'"):
            call()
    with pytest.raises(ValueError, match=f"'{estimator}' need method='bootstrap', not 'wald'"):
        fit.confint(method="wald")


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda f: f.lr_test([0.0, 1.0]), ValueError, r"one finite number, or one per column \(4\)"),
        (lambda f: f.lr_test(np.inf), ValueError, "one finite number"),
        (lambda f: f.lr_test([[0.0] * 4]), ValueError, "one finite number"),
        (lambda f: f.lr_test("0"), TypeError, "lmbda0 must be a real number"),
        (lambda f: f.confint(method="score"), ValueError, "method must be one of 'profile', 'wald'"),
        (lambda f: f.confint(level=95, method="wald"), ValueError, "level must be between 0 and 1, got 95"),
        (lambda f: f.rounded(level=1.0), ValueError, "level must be between 0 and 1"),
        (lambda f: f.rounded_fit(level=0.0), ValueError, "level must be between 0 and 1"),
        (lambda f: f.summary(level=2), ValueError, "level must be between 0 and 1"),
        (lambda f: f.lr_test(0.0, -lognormal_with_holes()), ValueError, "column 0, row 0: the value is -1.03"),
        (lambda f: f.lr_test(0.0, sample_weight=np.ones(40)), ValueError, "sample_weight needs X"),
        (lambda f: f.normality(-lognormal_with_holes()), ValueError, "column 0, row 0: the value is -1.03"),
        (lambda f: f.normality(lognormal_with_holes()[:, :2]), ValueError, "2"),
    ],
)
def test_invalid_arguments_are_refused(call, error, match):
    with pytest.raises(error, match=match):
        call(pk.fit(lognormal_with_holes(), "box-cox"))


# --- rounded fits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("weighted", [False, True])
def test_rounded_fit_is_the_fit_with_these_lambdas(family, weighted):
    x = mixed(family)
    # a column whose lambda is far from convenient powers
    even = np.linspace(0.05, 1.0, len(x))
    x[:, 3] = even ** (1.0 / 15.0) if family == "box-cox" else even**0.125 - 1.0
    weight = np.arange(len(x)) % 3 if weighted else None
    fit = pk.fit(x, family, sample_weight=weight)
    rounded = fit.rounded_fit()
    given = pk.fit(x, family, lmbda=fit.rounded(), sample_weight=weight)
    changed = rounded.lmbda != fit.lmbda
    assert changed.sum() >= 2
    assert (~changed).any()
    assert (rounded.status[changed] == Status.ROUNDED).all()
    assert (rounded.status[~changed] == fit.status[~changed]).all()
    for name in ("lmbda", "loc", "scale", "log_factor", "nll", "information", "n_obs", "x_min", "x_max"):
        np.testing.assert_array_equal(getattr(rounded, name)[changed], getattr(given, name)[changed])
        np.testing.assert_array_equal(getattr(rounded, name)[~changed], getattr(fit, name)[~changed])
    np.testing.assert_array_equal(rounded.transform(x)[:, changed], given.transform(x)[:, changed])
    assert rounded.rounded_fit().to_json() == rounded.to_json()
    assert pk.PowerFit.from_json(rounded.to_json()).status_text == rounded.status_text
    np.testing.assert_array_equal(rounded.profile(0.3), fit.profile(0.3))  # the rounded fit still has the data


def test_lambdas_that_cannot_be_rounded_are_unchanged():
    x = lognormal_with_holes()
    x[:, 3] = 2.0
    with pytest.warns(UserWarning, match="fewer than two distinct"):
        fit = pk.fit(x, "box-cox", lmbda=[0.2, np.nan, np.nan, np.nan])
    rounded = fit.rounded_fit()
    assert rounded.status[[0, 3]].tolist() == [Status.FIXED, Status.CONSTANT]
    assert rounded.lmbda[0] == 0.2


def test_rounded_raw_output_that_overflows_is_reported():
    normal = 4.0 + stats.norm.ppf((np.arange(200) + 0.5) / 200)
    x = 1e160 * normal ** (1 / 1.85)
    fit = pk.fit(x, "box-cox", standardize=False)
    assert 1.8 < fit.lmbda < 1.9  # x**2 overflows
    with pytest.warns(UserWarning, match="transformed values overflow"):
        assert fit.rounded_fit().lmbda == 2.0
    assert np.isfinite(pk.fit(x, "box-cox").rounded_fit().transform(x)).all()


# --- bits ---------------------------------------------------------------------------------------------


def test_bits_do_not_depend_on_threads_or_order():
    x = lognormal_with_holes(300, 24)
    fit = pk.fit(x, "box-cox", n_threads=1)
    given = np.linspace(-1.0, 2.0, 24)
    order = np.random.default_rng(1).permutation(24)
    other = pk.fit(np.asfortranarray(x[:, order]), "box-cox", n_threads=3)
    for one, two in ((given, given[order]), (1.0, 1.0)):
        a, b = fit.lr_test(one, n_threads=1).statistic, other.lr_test(two, n_threads=3).statistic
        np.testing.assert_array_equal(a[order], b)
    np.testing.assert_array_equal(fit.rounded_fit().transform(x)[:, order], other.rounded_fit().transform(x[:, order]))
    for a, b in zip(fit.normality(n_threads=1), other.normality(n_threads=3), strict=True):
        np.testing.assert_array_equal(np.array(a)[:, order], np.array(b))
