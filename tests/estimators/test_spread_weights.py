"""Fits and likelihood intervals with weights, or drops of the likelihood, that span many decades."""

from __future__ import annotations

import mpmath
import numpy as np
import oracles
import pytest

import powerkern as pk
from powerkern import Status
from powerkern._estimators.routes import LOCKSTEP_MAX

DROP = 1.9207294103470507  # half the chi-square quantile of a 95 % interval

COLUMNS = {
    "one heavy value below": ("box-cox", [1.0, 2.0, 3.0, 5.0], [1e8, 1.0, 1.0, 1e-4]),
    "one heavy value above": ("box-cox", [2.5, 1.6, 1.9], [4e8, 3e-8, 2e-10]),
    "heavy value in the middle": ("box-cox", [0.3, 1.0, 4.0], [1e-12, 1e12, 1e-9]),
    "heavy cluster and one far value": ("box-cox", [1.0, 1.0 + 1e-9, 1.0 + 3e-9, 5.0], [1.0, 2.0, 1.0, 1e-18]),
    "tied counts and rare values": (
        "yeo-johnson",
        [*range(8), 40.0, 70.0],
        [1e9, 1e12, 1e12, 1e9, 1e6, 1e3, 1.0, 1e-3, 1e-6, 1e-12],
    ),
    "negative values": ("yeo-johnson", [-1.0, -2.0, -3.0, -5.0], [1e8, 1.0, 1.0, 1e-4]),
    "heavy positive value": ("yeo-johnson", [5.0, 5.0 + 1e-9, 7.0, -1.0, -2.0], [1e12, 1e-6, 1e-12, 1e-12, 1e-10]),
    "heavy negative value": ("yeo-johnson", [-5.0, -5.0 - 1e-9, -7.0, 1.0, 2.0], [1e12, 1e-6, 1e-12, 1e-12, 1e-10]),
    "heavy value, and nothing above 0": ("yeo-johnson", [-5.0, -3.0, 0.0], [1.0, 3.878001137888941e-07, 1.0]),
    "zeros and one negative value, lambda near 0": (
        "yeo-johnson",
        [-2.0, -2.0, -2.0, -2.0, -0.0, -0.0, -0.0],
        [4.0, 9.0, 8.0, 7.0, 4.0, 5.0, 5.0],
    ),
    "two signs, lambda of 1e19": (
        "yeo-johnson",
        [1.000000031, -1.000000006],
        [14574351879.98051, 9.540401363848716e-10],
    ),
    "hundreds of decades of x": ("box-cox", [1e-300, 3e-7, 2e5, 1e300], [1e-9, 1e10, 1e-3, 1e-12]),
}


def exact(family, lmbda, x, weight):
    """Return g and its derivative in lambda, both times the total weight, as mpmath numbers."""
    with mpmath.workdps(60):
        total = mpmath.fsum(mpmath.mpf(float(w)) for w in weight)
        return [total * v for v in oracles.likelihood(family, lmbda, x, weight, 60)[:2]]


def assert_optimum(family, x, weight, fit):
    lmbda = float(fit.lmbda[0])
    with mpmath.workdps(60):
        # half an ulp of the logs moves lambda by 1e-16 of its natural unit, far less than a standard error
        room = 1e-10 * max(1.0, abs(lmbda)) + 1e-13 * float(np.sqrt(fit.n_obs[0] / fit.information[0]))
        assert exact(family, mpmath.mpf(lmbda) - room, x, weight)[1] < 0
        assert exact(family, mpmath.mpf(lmbda) + room, x, weight)[1] > 0
        nll = exact(family, lmbda, x, weight)[0]
        assert abs(fit.nll[0] - nll) <= 1e-11 * (abs(nll) + fit.n_obs[0])


def assert_interval(family, x, weight, fit, ends):
    """Check that the log-likelihood at both ends of an interval is lower by DROP than at lambda.

    The tolerance includes the effect of the spacing of floats at the ends.

    Parameters
    ----------
    family : str
        The transform.
    x, weight : (n,) ndarray
        The column and its weights.
    fit : PowerFit
        The fit.
    ends
        The result of `confint`.
    """
    lmbda = float(fit.lmbda[0])
    low, high = float(ends.low[0]), float(ends.high[0])
    assert low <= lmbda <= high
    with mpmath.workdps(60):
        best = exact(family, lmbda, x, weight)[0]
        for end in (low, high):
            g, slope = exact(family, end, x, weight)
            room = 1e-7 * DROP + float(abs(slope)) * 4e-16 * abs(end)
            assert abs(g - best - DROP) <= room


@pytest.mark.parametrize("name", COLUMNS)
def test_optimum_and_interval_agree_with_mpmath(name):
    family, x, weight = COLUMNS[name]
    x, weight = np.array(x), np.array(weight)
    fit = pk.fit(x, family, sample_weight=weight)
    assert fit.status[0] == Status.OK
    assert_optimum(family, x, weight, fit)
    assert_interval(family, x, weight, fit, fit.confint())


def test_two_groups_of_which_one_is_at_zero():
    """Regression test: the fit of this column was rejected as unrepresentable."""
    fit = pk.fit([-2.0] * 4 + [-0.0] * 3, sample_weight=[4, 9, 8, 7, 4, 5, 5])
    assert fit.status[0] == Status.OK
    assert fit.lmbda[0] == pytest.approx(0.043781393968813, abs=1e-12)


@pytest.mark.parametrize("name", COLUMNS)
def test_output_is_accurate_in_units_of_each_value(name):
    """Relative errors are at most 1e-13 in columns of one sign, even a billion standard deviations from the mean."""
    family, x, weight = COLUMNS[name]
    fit = pk.fit(np.array(x), family, sample_weight=np.array(weight))
    exact = np.array(oracles.standardized(family, mpmath.mpf(float(fit.lmbda[0])), x, weight))
    size = np.maximum(1.0, np.abs(exact)) if min(x) > 0.0 or max(x) < 0.0 else max(1.0, np.abs(exact).max())
    assert (np.abs(fit.transform(x) - exact) <= 1e-13 * size).all()


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
@pytest.mark.parametrize("seed", range(20))
def test_output_far_from_the_heavy_values(family, seed):
    """Compare output with exact values for weights over 24 decades.

    Most values are many standard deviations from the mean.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 30))
    x = 1e6 + rng.normal(size=n) if seed % 2 else np.exp(rng.normal(size=n))
    weight = 10.0 ** rng.uniform(-12.0, 12.0, n)
    fit = pk.fit(x, family, sample_weight=weight)
    exact = np.array(oracles.standardized(family, mpmath.mpf(float(fit.lmbda[0])), x, weight))
    assert (np.abs(fit.transform(x) - exact) <= 1e-13 * np.maximum(1.0, np.abs(exact))).all()


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
@pytest.mark.parametrize("seed", range(15))
def test_weights_with_zeros_over_24_decades(family, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 12))
    x = np.exp(rng.normal(size=n)) * (rng.choice([-1.0, 1.0], n) if family == "yeo-johnson" else 1.0)
    weight = np.where(rng.random(n) < 0.2, 0.0, 10.0 ** rng.uniform(-12.0, 12.0, n))
    weight[:2] = 1e12, 1e-12
    fit = pk.fit(x, family, sample_weight=weight)
    assert fit.status[0] == Status.OK
    seen = weight > 0.0
    assert_optimum(family, x[seen], weight[seen], fit)
    assert_interval(family, x[seen], weight[seen], fit, fit.confint())


@pytest.mark.slow
def test_weights_of_long_columns_with_one_heavy_block():
    """Check the optimum of a long column whose first 700 rows have one value and nearly all of the weight."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=1500) + 3.0
    weight = np.full(1500, 1e-12)
    x[:700], weight[:700] = 4.0, 1e12
    fit = pk.fit(x, "yeo-johnson", sample_weight=weight)
    once = np.append(x[700:], 4.0), np.append(weight[700:], 700e12)
    assert fit.status[0] == Status.OK
    assert_optimum("yeo-johnson", *once, fit)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
@pytest.mark.parametrize("decades", [3.0, 24.0])
def test_long_columns_with_weights_over_decades(family, decades):
    """Fits take one pass if enough values carry the weight, and two passes if few do."""
    rng = np.random.default_rng(int(decades))
    n = LOCKSTEP_MAX + 88
    x = rng.lognormal(size=n) - (family == "yeo-johnson")
    weight = 10.0 ** rng.uniform(-decades / 2.0, decades / 2.0, n)
    fit = pk.fit(x, family, sample_weight=weight)
    assert fit.status[0] == Status.OK
    assert fit.route[0] == ("one pass" if weight.sum() ** 2 >= 32.0 * (weight**2).sum() else "two pass")
    assert_optimum(family, x, weight, fit)


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_weighted_fits_are_bit_identical(family):
    """The fits do not depend on the number of threads, memory order, or positions of columns and missing values."""
    rng = np.random.default_rng(11)
    x = rng.lognormal(size=(600, 40)) - 0.5 * (family == "yeo-johnson")
    x[rng.random(x.shape) < 0.02] = np.nan
    weight = rng.exponential(size=600) * (rng.random(600) < 0.9)
    expected = pk.fit(x, family, sample_weight=weight, n_threads=1)
    shuffled = rng.permutation(40)
    for other, at in ((x, slice(None)), (np.asfortranarray(x), slice(None)), (x[:, shuffled], shuffled)):
        for threads in (1, 2, 5):
            fit = pk.fit(other, family, sample_weight=weight, n_threads=threads)
            for field in ("lmbda", "loc", "scale", "nll", "n_obs"):
                np.testing.assert_array_equal(getattr(fit, field), getattr(expected, field)[at])


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_weights_of_long_columns_are_repetitions(family):
    """Compare a million rows, most of weight 0 and with arbitrary values, with repeated rows."""
    n = 1_000_000
    rng = np.random.default_rng(12)
    x = rng.lognormal(size=n // 100) - 0.5 * (family == "yeo-johnson")
    x[::50] = np.nan
    weight = np.zeros(n)
    weight[: x.size] = rng.integers(0, 4, x.size)
    long = np.concatenate([x, rng.choice([np.nan, np.inf, -np.inf, -1.0, 1e300], n - x.size)])
    fit, direct = pk.fit(long, family, sample_weight=weight), pk.fit(np.repeat(x, weight[: x.size].astype(int)), family)
    assert fit.route[0] == "power sums"
    assert fit.n_obs[0] == direct.n_obs[0]
    assert abs(fit.lmbda[0] - direct.lmbda[0]) <= 1e-11
    assert abs(fit.nll[0] - direct.nll[0]) <= 1e-11 * abs(direct.nll[0])


def test_two_tiny_values_have_lambda_0():
    """Two logs are symmetric about their mean, so lambda = 0 is exact; the likelihood near it is extremely flat."""
    x = 10.0 ** np.random.default_rng(0).uniform(-30.0, -10.0, (2, 200))
    assert (abs(pk.fit(x, "yeo-johnson").lmbda) <= 1e-10).all()
    assert pk.fit([8.2e-22, 4.8e-15], "yeo-johnson").lmbda[0] == 0.0
