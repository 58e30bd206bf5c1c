"""Measures of normality before and after the transform, compared with SciPy and mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import stats

import powerkern as pk
from powerkern._results.normality import dagostino_pearson

COLUMNS = {
    "lognormal": np.random.default_rng(0).lognormal(size=1000),
    "uniform": np.random.default_rng(1).uniform(1.0, 2.0, 301),
    "gamma": np.random.default_rng(2).gamma(0.4, size=77),
    "ties": np.random.default_rng(3).poisson(3.0, 200) + 1.0,
    "short": np.array([1.0, 2.0, 2.5, 4.0, 7.0, 9.0, 11.0, 30.0]),
    "two values": np.repeat([1.0, 2.0], [20, 31]),
    "outlier": np.append(np.random.default_rng(4).normal(10.0, 1.0, 99), 1e3),
}


def by_scipy(x: np.ndarray) -> tuple[float, float, float, float]:
    r = stats.probplot(x)[1][2]
    return float(stats.skew(x)), float(stats.kurtosis(x)), float(r), float(stats.normaltest(x).pvalue)


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_measures_agree_with_scipy(name, family):
    x = COLUMNS[name]
    fit = pk.fit(x, family)
    before, after = fit.normality()
    for figures, values in ((before, x), (after, fit.transform(x))):
        expected = by_scipy(values)
        np.testing.assert_allclose(np.ravel(figures)[:3], expected[:3], rtol=1e-10, atol=1e-10)
        assert figures.pvalue[0] == pytest.approx(expected[3], rel=1e-9, abs=1e-10)


def test_missing_values_are_left_out():
    columns = [COLUMNS["lognormal"], *(np.append(x, np.full(1000 - x.size, np.nan)) for x in COLUMNS.values())]
    together = np.column_stack(columns)
    rng = np.random.default_rng(6)
    for j in range(together.shape[1]):
        rng.shuffle(together[:, j])
    before, after = pk.fit(together).normality()
    for j, x in enumerate([COLUMNS["lognormal"], *COLUMNS.values()]):
        alone = pk.fit(x).normality()
        np.testing.assert_allclose(np.array(before)[:, j], np.ravel(alone.before), rtol=1e-11)
        np.testing.assert_allclose(np.array(after)[:, j], np.ravel(alone.after), rtol=1e-7, atol=1e-9)


def exact(x: np.ndarray) -> list[float]:
    """Return skewness, excess kurtosis and correlation of the QQ plot of the values x, computed with 80 digits."""
    with mpmath.workdps(80):
        values = [mpmath.mpf(v) for v in np.sort(x).tolist()]
        n, mean = len(values), mpmath.fsum(values) / len(values)
        d = [v - mean for v in values]
        m2, m3, m4 = (mpmath.fsum(v**k for v in d) / n for k in (2, 3, 4))
        q = [mpmath.mpf(v) for v in stats.probplot(x, fit=False)[0].tolist()]
        r = mpmath.fdot(d, q) / mpmath.sqrt(n * m2 * mpmath.fdot(q, q))
        return [float(m3 / m2**1.5), float(m4 / m2**2 - 3), float(r)]


NASTY = {
    "years": 2000.0 + np.arange(50.0) % 7,
    "offset": 1e9 + np.random.default_rng(0).lognormal(size=60),
    "adjacent": np.nextafter(1.0, 2.0) ** np.arange(60),
    "huge": 1e308 * np.random.default_rng(1).uniform(0.1, 1.0, 60),
    "both ends": np.array([1e-300, 1e-200, 1.0, 1e200, 1e300, 1e301, 1e302, 1.5e308]),
    "tiny": 1e-300 * np.random.default_rng(2).lognormal(size=60),
    "subnormal": 5e-324 * np.arange(1.0, 40.0) ** 2,
    "far": np.append(np.ones(59), 1e15) + np.arange(60) % 2,
}


@pytest.mark.parametrize("name", NASTY)
def test_measures_of_extreme_columns_agree_with_mpmath(name):
    x = NASTY[name]
    fit = pk.fit(x, "box-cox", lmbda=1.0)
    np.testing.assert_allclose(np.ravel(fit.normality().before)[:3], exact(x), rtol=1e-13, atol=1e-13)


def test_measures_of_negative_values_of_any_size_agree_with_mpmath():
    for scale in (1e-300, 1.0, 1e307):
        x = scale * np.random.default_rng(3).normal(size=60)
        figures = pk.fit(x, lmbda=1.0).normality().before
        np.testing.assert_allclose(np.ravel(figures)[:3], exact(x), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("n", [8, 9, 20, 1000])
def test_pvalues_agree_with_scipy(n):
    rng = np.random.default_rng(n)
    for x in (rng.normal(size=n), rng.lognormal(size=n), rng.uniform(size=n), rng.standard_t(2, size=n)):
        p = dagostino_pearson(stats.skew([x], axis=1), stats.kurtosis([x], axis=1), np.array([n]))
        assert p[0] == pytest.approx(stats.normaltest(x).pvalue, rel=1e-10, abs=1e-300)


def test_symmetric_values_have_no_skewness():
    """SciPy replaces a skewness statistic of 0 by 1."""
    x = np.array([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 5.0, -5.0])
    p = dagostino_pearson(np.array([0.0]), np.array([stats.kurtosis(x)]), np.array([x.size]))
    assert p[0] == pytest.approx(stats.chi2.sf(stats.kurtosistest(x).statistic ** 2, 2), rel=1e-9)


def test_constant_and_empty_columns_have_no_measures():
    x = np.full((9, 3), np.nan)
    x[:, 0], x[:7, 1] = 4.0, np.arange(1.0, 8.0)
    with pytest.warns(UserWarning, match="not fitted"):
        before, after = pk.fit(x, "box-cox").normality()
    for figures in (before, after):
        assert np.isnan(np.array(figures)[:, [0, 2]]).all()
        assert np.isnan(figures.pvalue[1])  # fewer than 8 values
        assert figures.ppcc[1] > 0.98


def test_weights_repeat_rows():
    x = COLUMNS["gamma"]
    weight = np.arange(x.size) % 4
    fit = pk.fit(x, sample_weight=weight)
    repeated = fit.normality(np.repeat(x, weight))
    for remembered in (fit.normality(), fit.normality(x, sample_weight=weight)):
        np.testing.assert_allclose(np.array(remembered), np.array(repeated), rtol=1e-8, atol=1e-12)
    small = [fit.normality(x, sample_weight=c * np.sqrt(weight)) for c in (0.1, 1e-200)]
    np.testing.assert_allclose(np.array(small[0]), np.array(small[1]), rtol=1e-8)


def test_measures_of_other_data_robust_fits_and_shifts_agree():
    x, y = COLUMNS["lognormal"], COLUMNS["gamma"]
    for fit in (pk.fit(x, "box-cox", "robust"), pk.fit(x, "box-cox", shift=0.5), pk.fit(x, estimator="robust")):
        before, after = fit.normality(y)
        np.testing.assert_allclose(np.ravel(before)[:3], by_scipy(y)[:3], rtol=1e-11)
        np.testing.assert_allclose(np.ravel(after)[:3], by_scipy(fit.transform(y))[:3], rtol=1e-9, atol=1e-10)


def test_measures_need_the_data():
    fit = pk.PowerFit.from_json(pk.fit(COLUMNS["gamma"]).to_json())
    with pytest.raises(ValueError, match="no longer has its data"):
        fit.normality()
    assert fit.normality(COLUMNS["gamma"]).before.skewness[0] > 1.0


def test_the_data_are_left_as_they_were():
    x = np.asfortranarray(np.random.default_rng(0).lognormal(size=(50, 3)))
    copy = x.copy()
    pk.fit(x).normality()
    np.testing.assert_array_equal(x, copy)
