"""The test of central normality, compared with a plain implementation, published quantiles and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import powerkern as pk
from powerkern import Status
from powerkern._results.central_null import LEVELS, SIZES, TABLE

FIXED = {"lmbda": 1.0, "family": "yeo-johnson"}


def plainly(x: np.ndarray) -> float:
    """Return the statistic of central normality of the values x, with mean and scale iterated in a plain loop."""
    x, k = np.sort(x), stats.norm.ppf(0.9)
    n, beta = x.size, stats.norm.expect(lambda t: min(t * t, k * k), lb=-12, ub=12, points=[-k, k], limit=200)
    mu, sigma = np.median(x), stats.median_abs_deviation(x, scale="normal") or x.std()
    for _ in range(1000):
        clipped = np.clip(x, mu - k * sigma, mu + k * sigma)
        mu = clipped.mean()
        sigma = np.sqrt(((np.clip(x, mu - k * sigma, mu + k * sigma) - mu) ** 2).sum() / ((n - 1) * beta))
    p = (stats.rankdata(x) - 1.0 / 3.0) / (n + 1.0 / 3.0)
    inside = (p >= 0.1) & (p <= 0.9)
    return float(np.mean(np.abs((x[inside] - mu) / sigma - stats.norm.ppf(p[inside]))))


@pytest.mark.parametrize("n", [6, 20, 57, 300])
@pytest.mark.parametrize("kind", ["normal", "skewed", "tied", "heavy"])
def test_statistics_agree_with_a_plain_implementation(kind, n):
    rng = np.random.default_rng(n)
    x = {
        "normal": rng.normal(size=n),
        "skewed": rng.lognormal(size=n),
        "tied": np.round(rng.normal(scale=3.0, size=n)),
        "heavy": rng.standard_t(2, size=n),
    }[kind]
    found = pk.fit(x, **FIXED).central_normality().statistic[0]
    assert found == pytest.approx(plainly(x), rel=1e-7)


def test_weights_repeat_rows_and_missing_values_are_ignored():
    rng = np.random.default_rng(1)
    x, w = np.round(rng.normal(size=100), 1), rng.integers(0, 4, size=100)
    repeated = pk.fit(np.repeat(x, w), **FIXED).central_normality()
    weighted = pk.fit(x, **FIXED, sample_weight=w).central_normality()
    holes = pk.fit(np.append(np.repeat(x, w), [np.nan] * 9), **FIXED).central_normality()
    for other in (weighted, holes):
        np.testing.assert_allclose(other.statistic, repeated.statistic, rtol=1e-9)
        np.testing.assert_allclose(other.pvalue, repeated.pvalue, rtol=1e-9)


def test_columns_that_cannot_be_tested_have_no_pvalue():
    X = np.full((8, 3), np.nan)
    X[:, 1], X[:5, 2] = 3.0, np.arange(5.0)
    with pytest.warns(UserWarning, match="not fitted"):
        found = pk.fit(X).central_normality()
    assert np.isnan(found.statistic[:2]).all()
    assert np.isfinite(found.statistic[2])
    assert np.isnan(found.pvalue).all()


@pytest.mark.parametrize(
    ("n", "five_percent"), [(20, 0.1801), (50, 0.1155), (100, 0.0821), (200, 0.0580), (500, 0.0369), (1000, 0.0260)]
)
def test_pvalues_agree_with_published_quantiles(n, five_percent):
    from powerkern._results.central_normality import central_pvalue

    assert central_pvalue(np.array([five_percent]), np.array([float(n)]))[0] == pytest.approx(0.05, abs=0.012)


@pytest.mark.parametrize("n", [6, 13, 33, 90, 800])
def test_pvalues_are_uniform_in_normal_samples(n):
    X = np.random.default_rng(n).normal(size=(n, 2000))
    p = pk.fit(X, **FIXED).central_normality().pvalue
    for level in (0.01, 0.05, 0.2, 0.5, 0.9):
        assert np.mean(p <= level) == pytest.approx(
            level, abs=4.0 * np.sqrt(level * (1.0 - level) / 2000) + 0.1 * level
        )


def test_the_tails_do_not_count_and_two_peaks_do():
    rng = np.random.default_rng(0)
    tails = np.append(rng.normal(size=95), [30.0, 40.0, 50.0, -45.0, 60.0])
    peaks = np.append(rng.normal(-4.0, 1.0, 100), rng.normal(4.0, 1.0, 100))
    assert pk.fit(tails, **FIXED).central_normality().pvalue > 0.05
    assert pk.fit(peaks, **FIXED).central_normality().pvalue == pytest.approx(0.001)


def test_the_table_is_monotone_and_in_the_summary():
    assert TABLE.shape == (len(SIZES), len(LEVELS))
    assert (np.diff(TABLE, axis=1) > 0.0).all()
    summary = pk.fit(np.random.default_rng(0).lognormal(size=50)).summary()
    assert summary.to_dict()["p_central"][0] > 0.05


@pytest.mark.parametrize("estimator", ["mle", "robust", "ppcc"])
def test_criterion_leaves_columns_that_no_transform_makes_normal(estimator):
    rng = np.random.default_rng(4)
    peaks = np.append(rng.normal(4.0, 0.5, 100), rng.normal(12.0, 0.5, 100))
    normal_quantiles = 20.0 + stats.norm.ppf((np.arange(200) + 2.0 / 3.0) / (200 + 1.0 / 3.0))
    X = np.column_stack([np.exp(0.7 * normal_quantiles - 14.0), peaks, normal_quantiles, np.full(200, 2.0)])
    with pytest.warns(UserWarning, match="not fitted"):
        fit = pk.fit(X, "best", estimator, criterion="central")
    left = fit.status == Status.LEFT_AS_IT_IS
    assert left[[0, 1, 3]].tolist() == [False, True, False]
    assert left[2] or estimator != "mle"
    assert fit.families[0] == "box-cox"
    np.testing.assert_array_equal(fit.lmbda[left], 1.0)
    Z = fit.transform(X)
    np.testing.assert_allclose(np.corrcoef(Z[:, 1], peaks)[0, 1], 1.0, rtol=1e-12)
    np.testing.assert_array_equal(pk.PowerFit.from_json(fit.to_json()).transform(X), Z)
    raw = pk.fit(X[:, :3], "best", estimator, criterion="central", standardize=False)
    np.testing.assert_allclose(raw.transform(X[:, :3])[:, 1], peaks, rtol=1e-14)


def test_criterion_is_rejected_where_it_does_not_apply():
    from powerkern.sketch import fit_chunks

    x = np.arange(1.0, 30.0)
    with pytest.raises(ValueError, match="family='best'"):
        pk.fit(x, criterion="central")
    with pytest.raises(ValueError, match="criterion"):
        fit_chunks([x], family="best", criterion="central")
    with pytest.raises(ValueError, match="criterion"):
        pk.fit(x, "best", criterion="centre")
