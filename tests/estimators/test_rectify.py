"""Outliers on either side: the better of two starts is used, and far tails that are kept are reported."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from fits import fit_quietly

import powerkern as pk
from powerkern import Status


def low_outliers(n, share, p, at=-12.0, seed=3):
    """Draw lognormal columns, (n, p), in which a fraction `share` of the values is exp(at)."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, p))
    z[: round(n * share)] = at
    return np.exp(z)


def issue(seed):
    z = np.random.default_rng(seed).normal(size=400)
    z[:60] = -12
    return np.exp(z)


def test_small_outliers_are_excluded():
    """Exclude all 60 values at exp(-12) among 400, in each of 20 columns.

    With rectification on one side and fixed cut-offs, fits of more than 10 columns keep all 60.
    """
    X = np.column_stack([issue(seed) for seed in range(3, 23)])
    fit = fit_quietly(X)
    assert not fit.weights(X)[:60].any()
    assert np.abs(fit.lmbda).max() < 0.2
    one = fit_quietly(X, n_reweight=2, adaptive_cutoff=False, rectify="one")
    assert (one.weights(X)[:60].all(axis=0)).sum() > 10
    assert one.lmbda[0] > 0.25


def few_of(u):
    """Return at most 256 evenly spaced values of the sorted column `u`, and their normal scores.

    The fit compares its two starting lambdas on these values.
    """
    n = u.size
    chosen = np.arange(n) if n <= 256 else ((2 * np.arange(256) + 1) * n) // 512
    return u[chosen], oracles.normal_scores(n)[chosen]


def start_of(u, scores, rule):
    """Return the lambda with the lowest QQ objective on a grid, for values `u` and their normal scores.

    `rule` is the rectification rule, as in `oracles.qq_objective`.
    """
    grid = np.arange(-2.0, 3.0, 0.02)
    return grid[np.argmin([oracles.qq_objective("box-cox", u, v, rule, scores) for v in grid])]


@pytest.mark.slow
@pytest.mark.parametrize("n", [60, pytest.param(257, marks=pytest.mark.slow)])
@pytest.mark.parametrize("share", [0.0, 0.15])
def test_the_start_is_the_one_that_leaves_more_values_at_their_quantiles(n, share):
    X = low_outliers(n, share, 3, seed=n)
    X[:, 1] = 1.0 + np.clip(np.log(X[:, 1]), -2.97, 2.97) / 3.0
    both, one = fit_quietly(X), fit_quietly(X, rectify="one")
    for j, x in enumerate(X.T):
        u, _, _, power = oracles.prestandardized("box-cox", np.sort(x), "mad")
        at, (few, scores) = one.lmbda0[j] * power, few_of(u)
        rival = both.lmbda0[j] * power if "both" in both.route[j] else start_of(few, scores, "both")
        share_of_rival = oracles.share_at_quantiles("box-cox", few, rival, "both")
        gain = share_of_rival - oracles.share_at_quantiles("box-cox", few, at, "paper")
        if at > 0.0 and rival < at - 0.03 and abs(gain - 0.02) > 0.004:  # the two starts differ clearly
            assert both.route[j] == ("refit both sides" if gain > 0.02 else "refit")
        if both.route[j] == "refit":
            assert (both.lmbda[j], both.lmbda0[j], both.n_kept[j]) == (one.lmbda[j], one.lmbda0[j], one.n_kept[j])
        else:
            assert rival < at
            assert at > 0.0


def test_both_starts_are_used_by_these_columns():
    """Some columns of the previous test use the first start, and some the second."""
    routes = {r for share in (0.0, 0.15) for r in fit_quietly(low_outliers(60, share, 8, seed=60)).route}
    assert routes == {"refit", "refit both sides"}


@pytest.mark.parametrize("n", [50, 400])
def test_yeo_johnson_is_its_own_mirror_image(n):
    X = np.random.default_rng(n).normal(size=(n, 6))
    X[: n // 8] = -9.0
    both, one = fit_quietly(X, "yeo-johnson"), fit_quietly(X, "yeo-johnson", rectify="one")
    assert both.lmbda.tobytes() == one.lmbda.tobytes()
    assert both.route == ["refit"] * 6


def test_threads_order_and_columns_change_no_bit():
    X = low_outliers(300, 0.15, 9)
    fit = fit_quietly(X, n_threads=1)
    assert "refit both sides" in fit.route
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(300), rng.permutation(9)
    for other in (fit_quietly(X, n_threads=2), fit_quietly(np.asfortranarray(X), n_threads=3), fit_quietly(X[rows])):
        np.testing.assert_array_equal(other.lmbda, fit.lmbda)
        np.testing.assert_array_equal(other.loc, fit.loc)
    np.testing.assert_array_equal(fit_quietly(X[:, columns]).lmbda, fit.lmbda[columns])


def test_objective_is_that_of_the_start_taken():
    X = np.column_stack([low_outliers(100, 0.15, 4), low_outliers(100, 0.0, 2)])
    fit = fit_quietly(X)
    assert set(fit.route) == {"refit", "refit both sides"}
    curve = fit.objective_curve(np.linspace(-2.0, 3.0, 101))
    at_start = [fit.objective_curve(v)[j] for j, v in enumerate(fit.lmbda0)]
    np.testing.assert_allclose(at_start, fit.objective, rtol=1e-12)
    assert (curve.min(axis=1) >= fit.objective - 1e-9).all()


# --- tails kept ---------------------------------------------------------------------------------------


def test_status_says_that_a_far_tail_was_kept():
    """The status is TAIL_KEPT if and only if the fit keeps all 60 values at exp(-12).

    Some fits that rectify one side keep these values; no fit that rectifies both sides does.
    """
    X = np.column_stack([issue(seed) for seed in range(3, 23)])
    one = fit_quietly(X, rectify="one")
    kept_all = one.weights(X)[:60].all(axis=0)
    assert (one.status[kept_all] == Status.TAIL_KEPT).all()
    assert (one.status[~kept_all] != Status.TAIL_KEPT).all()
    assert (fit_quietly(X).status != Status.TAIL_KEPT).all()
    with pytest.warns(UserWarning, match="no value was left out on one side"):
        pk.fit(X[:, kept_all], "box-cox", pk.AdaptiveRewML(rectify="one"))


@pytest.mark.parametrize("family, at", [("box-cox", 10.0), ("yeo-johnson", 10.0), ("yeo-johnson", -10.0)])
def test_far_tails_are_reported_without_rectification(family, at):
    """The status is TAIL_KEPT if and only if the fit keeps all 34 outliers.

    The outliers are on the side that lambda flattens.
    """
    rng = np.random.default_rng(8)
    z = rng.normal(size=(200, 12))
    z[:34] = at
    X = np.exp(z)
    if family == "yeo-johnson":  # lambda 0, or 2 of the mirror image
        m = np.where(z * np.sign(at) < 0, 2.0, 1e-12)
        X = np.sign(z) * np.expm1(np.log1p(m * np.abs(z)) / m)
    fit = fit_quietly(X, family, rectify="none")
    all_kept = fit.weights(X)[:34].all(axis=0)
    assert all_kept.sum() >= 3
    assert (fit.status[all_kept] == Status.TAIL_KEPT).all()
    assert (fit.status[~all_kept] != Status.TAIL_KEPT).all()


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
@pytest.mark.parametrize("n", [30, 100, 400])
def test_few_clean_columns_are_reported_to_keep_a_far_tail(family, n):
    z = np.random.default_rng(n).normal(size=(n, 300))
    fit = fit_quietly(np.exp(z) if family == "box-cox" else z, family)
    assert (fit.status == Status.TAIL_KEPT).mean() < 0.01


def test_reported_tails_have_a_tenth_of_the_values_and_at_least_five():
    """Compare the status with the numbers of values in the tails, by the documented definition."""
    rng = np.random.default_rng(1)
    told = []
    for n, n_out in ((20, 3), (30, 4), (40, 5), (60, 9), (200, 18), (200, 30)):
        z = rng.normal(size=(n, 40))
        z[:n_out] = -8.0
        X = np.exp(z)
        fit = fit_quietly(X, rectify="one")
        weights = fit.weights(X).astype(bool)
        for j, x in enumerate(X.T):
            if fit.status[j] == Status.NOT_CERTIFIED:
                continue
            u, _, _, power = oracles.prestandardized("box-cox", np.sort(x), "mad")
            y = oracles.rectified_by_rule("box-cox", u, fit.lmbda[j] * power, "both").astype(float)
            loc, scale = oracles.huber_one_step(y, oracles.HUBER_K, oracles.HUBER_BETA)
            low = np.sum(y < loc - 3 * scale) if weights[np.argmin(x), j] else 0
            high = np.sum(y > loc + 3 * scale) if weights[np.argmax(x), j] else 0
            told.append(max(low, high) >= max(5, 0.1 * n))
            assert (fit.status[j] == Status.TAIL_KEPT) == told[-1]
    assert 5 < sum(told) < len(told) - 5


def test_cellwise_convention_does_not_report_tails():
    """R's cellWise has no such status."""
    fit = fit_quietly(np.column_stack([issue(seed) for seed in range(3, 9)]), estimator="rewml", convention="cellwise")
    assert (fit.status != Status.TAIL_KEPT).all()
