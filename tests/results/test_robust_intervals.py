"""Standard errors and intervals of robust and other non-ML estimators, compared with a bootstrap in a plain loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fits import fit_quietly
from numpy.testing import assert_allclose, assert_array_equal
from samples import lognormal_columns
from scipy.special import ndtr, ndtri

from powerkern import PowerFit
from powerkern._estimators.estimators import ESTIMATORS
from powerkern._results import robust_intervals as intervals

FAMILIES = ("yeo-johnson", "box-cox")
families = pytest.mark.parametrize("family", FAMILIES)
estimators = pytest.mark.parametrize("estimator", [name for name in ESTIMATORS if name not in ("mle", "central-mle")])


def lognormal(n: int, p: int = 3, seed: int = 0) -> np.ndarray:
    return lognormal_columns(n, [0.5] * p, seed=seed)


def slow_error(x: np.ndarray, family: str, estimator: str, replicates: int, **options: object) -> float:
    """Return the bootstrap standard error of lambda by its definition, one replicate at a time.

    `replicates` is their number, and `options` are options of the fits.
    """
    m = min(x.size, intervals._MOST_ROWS)
    uniform = np.random.default_rng(intervals._SEED).random((replicates, intervals._MOST_ROWS))[:, :m]
    rows = np.floor(uniform * x.size).astype(int)
    lmbda = np.sort([fit_quietly(x[row], family, estimator, **options).lmbda[0] for row in rows])
    low, high = (np.interp(ndtr(z) * (replicates - 1), np.arange(replicates), lmbda) for z in (-1.0, 1.0))
    return float(0.5 * (high - low) * math.sqrt(m / x.size))


@families
@estimators
def test_standard_errors_agree_with_a_plain_bootstrap(family, estimator):
    X = lognormal(40)
    fit = fit_quietly(X, family, estimator)
    expected = [slow_error(x, family, estimator, 20) for x in X.T]
    assert_allclose(fit.standard_error(replicates=20), expected, rtol=1e-9)


def test_replicates_use_the_options_of_the_fit():
    """Replicates of a long column are shorter than the column."""
    X = lognormal(700, 1)
    options = {"n_reweight": 0, "prestandardize": "none"}
    fit = fit_quietly(X, **options)
    expected = slow_error(X[:, 0], "box-cox", "robust", 25, **options)
    assert fit.standard_error(replicates=25)[0] == pytest.approx(expected, rel=1e-9)
    read = PowerFit.from_json(fit.to_json())
    assert_array_equal(read.standard_error(X, replicates=25), fit.standard_error(replicates=25))


@families
def test_threads_and_other_columns_do_not_matter(family, monkeypatch):
    X = lognormal(60, 7)
    X[::9, 3] = np.nan
    fit = fit_quietly(X, family)
    errors = fit.standard_error(replicates=20, n_threads=1)
    assert_array_equal(fit.standard_error(replicates=20, n_threads=2), errors)
    assert_array_equal(fit_quietly(X[:, ::-1], family).standard_error(replicates=20), errors[::-1])
    assert_array_equal(fit_quietly(X[:, 2], family).standard_error(replicates=20), errors[2:3])
    seen = X[~np.isnan(X[:, 3]), 3]
    assert_array_equal(fit_quietly(seen, family).standard_error(replicates=20), errors[3:4])
    monkeypatch.setattr(intervals, "_ROOM", 2000)  # room for one column at a time
    assert_array_equal(fit.standard_error(replicates=20), errors)


def test_weights_are_repetitions():
    x, weight = lognormal(30, 1), np.random.default_rng(1).integers(0, 4, 30)
    fit, repeated = fit_quietly(x, sample_weight=weight), fit_quietly(np.repeat(x, weight, axis=0))
    assert_array_equal(fit.standard_error(replicates=20), repeated.standard_error(replicates=20))


def test_a_shift_does_not_change_standard_errors():
    X = lognormal(50)
    shifted, plain = fit_quietly(X - 0.5, shift=0.5), fit_quietly(X)
    assert_allclose(shifted.standard_error(replicates=20), plain.standard_error(replicates=20), rtol=1e-6)


def test_errors_of_the_best_family_are_those_of_that_family():
    X = np.column_stack([lognormal(60, 1), np.random.default_rng(0).normal(size=60)])
    fit = fit_quietly(X, "best")
    assert fit.families == ["box-cox", "yeo-johnson"]
    for j, family in enumerate(fit.families):
        assert_array_equal(
            fit.standard_error(replicates=20)[j], fit_quietly(X[:, j], family).standard_error(replicates=20)[0]
        )


@pytest.mark.slow
@families
@estimators
def test_errors_are_as_large_as_the_spread_over_samples(family, estimator):
    y = np.random.default_rng(2).normal(size=(60, 150))
    X = np.exp(y) if family == "box-cox" else y
    fit = fit_quietly(X, family, estimator)
    low, high = np.quantile(fit.lmbda, ndtr([-1.0, 1.0]))
    assert np.median(fit.standard_error(replicates=60)) == pytest.approx(0.5 * (high - low), rel=0.3)


@pytest.mark.slow
@families
def test_intervals_have_nearly_nominal_coverage(family):
    """Intervals cover the lambda of a long column nearly as often as the nominal level.

    There are 300 columns of 50 normal values. The long column consists of 20,001 normal quantiles.
    """
    y = np.random.default_rng(3).normal(size=(50, 300))
    X, long = y, ndtri((np.arange(20_001) + 0.5) / 20_001)
    if family == "box-cox":
        X, long = np.exp(y), np.exp(long)
    target = fit_quietly(long, family).lmbda[0]
    for level in (0.5, 0.95):
        low, high = fit_quietly(X, family).confint(level=level, replicates=100)
        covers = np.mean((low <= target) & (target <= high))
        assert abs(covers - level) < 4.0 * math.sqrt(level * (1.0 - level) / 300) + 0.02


def test_intervals_are_normal():
    fit = fit_quietly(lognormal(50))
    low, high = fit.confint(level=0.9, replicates=30)
    se = fit.standard_error(replicates=30)
    assert_allclose(high - fit.lmbda, ndtri(0.95) * se, rtol=1e-12)
    assert_allclose(fit.lmbda - low, ndtri(0.95) * se, rtol=1e-12)
    assert_array_equal(fit.confint(method="bootstrap", replicates=30), fit.confint(replicates=30))


def test_columns_without_an_estimate_have_no_interval():
    X = np.column_stack(
        [lognormal(30, 1), np.full(30, 2.0), np.full(30, np.nan), np.repeat([1.0, 2.0, 3.0], [20, 5, 5])]
    )
    fit = fit_quietly(X)
    assert_array_equal(np.isnan(fit.standard_error(replicates=20)), [False, True, True, True])
    bounded = fit_quietly(lognormal(30), bounds=(5.0, 6.0))
    assert np.isnan(bounded.standard_error(replicates=20)).all()


def test_maximum_likelihood_needs_no_bootstrap():
    fit = fit_quietly(lognormal(30), estimator="mle")
    assert_allclose(fit.standard_error(), fit.information**-0.5, rtol=1e-15)
    with pytest.raises(ValueError, match="intervals of estimator='mle' need method='profile' or 'wald'"):
        fit.confint(method="bootstrap")


def test_invalid_arguments_are_refused():
    fit = fit_quietly(lognormal(30))
    for method in ("profile", "wald"):
        with pytest.raises(ValueError, match="intervals of estimator='robust' need method='bootstrap'"):
            fit.confint(method=method)
    with pytest.raises(ValueError, match="method must be"):
        fit.confint(method="jackknife")
    for replicates in (19, 20.5, True):
        with pytest.raises(ValueError if replicates == 19 else TypeError, match="replicates must be"):
            fit.confint(replicates=replicates)
    with pytest.raises(ValueError, match="tests and rounded powers of lambda need estimator='mle'"):
        fit.rounded()
    with pytest.raises(ValueError, match="no longer has its data"):
        PowerFit.from_json(fit.to_json()).confint()


def test_summary_has_errors_and_intervals():
    X = lognormal(40)
    fit = fit_quietly(X)
    entries = fit.summary(level=0.8).to_dict()
    assert list(entries)[:7] == ["column", "family", "lmbda", "se", "low", "high", "n_kept"]
    assert_array_equal(entries["se"], fit.standard_error())
    assert_array_equal(entries["low"], fit.confint(level=0.8).low)
    assert "se: by a bootstrap" in str(fit.summary(level=0.8))
    without = PowerFit.from_json(fit.to_json())
    assert "no intervals: the fit no longer has its data; pass X" in str(without.summary())
    assert_array_equal(without.summary(X, level=0.8).to_dict()["high"], entries["high"])


def test_equal_weights_below_one_do_not_change_standard_errors():
    """Weights of 0.1 are relative: they count as one observation per value, and errors equal those without weights."""
    X = lognormal(40, 1)
    plain, weighted = fit_quietly(X), fit_quietly(X, sample_weight=np.full(40, 0.1))
    assert_allclose(weighted.standard_error(replicates=20), plain.standard_error(replicates=20), rtol=1e-9)


def test_half_of_the_replicates_suffice():
    lmbda = np.array([[0.0, 0.5, 1.0, *[np.nan] * 3], [0.0, 1.0, *[np.nan] * 4]])
    half, fewer = intervals._scale_from_quantiles(lmbda)
    assert half == pytest.approx(0.5 * (ndtr(1.0) - ndtr(-1.0)))
    assert np.isnan(fewer)


def test_replicates_are_scaled_by_the_effective_number_of_rows() -> None:
    """Replicates of six rows give errors that are scaled by sqrt(6/n), where n is the effective number of rows."""
    x, weight = np.arange(1.0, 25.0), np.full(24, 0.25)
    uniform, out = np.random.default_rng(0).random((2, 6)), np.empty((2, 6))
    assert intervals._draw(x, weight, uniform, out) == 0.5  # 24 rows of weight 1/4 are 24 rows
    assert_array_equal(out, x[(uniform * 24).astype(int)])
    assert intervals._draw(x, np.full(24, 2.0), uniform, out) == math.sqrt(6.0 / 48.0)  # these are frequencies
