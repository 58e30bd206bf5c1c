"""Every route through the kernels of robust fits, on arrays small enough for plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from fits import fit_quietly

import powerkern as pk
from powerkern import Status
from powerkern._status import Route

ESTIMATORS = ("robust", "rewml-nr", "carroll", "mtl", "ppcc")
FAMILIES = ("box-cox", "yeo-johnson")


def column_with_two_outliers(family, n=26):
    x = np.random.default_rng(n).lognormal(sigma=0.6, size=n)
    x[:2] = 40.0, 55.0
    return x if family == "box-cox" else x - 1.5


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("family", FAMILIES)
def test_whole_weights_are_repeated_rows(estimator, family):
    x, weight = column_with_two_outliers(family), np.arange(26) % 3
    fit, repeated = (
        fit_quietly(x, family, estimator, sample_weight=weight),
        fit_quietly(np.repeat(x, weight), family, estimator),
    )
    assert fit.lmbda[0] == pytest.approx(repeated.lmbda[0], abs=1e-6)
    assert fit.objective[0] == pytest.approx(repeated.objective[0], abs=1e-5)
    assert fit.n_obs[0] == repeated.n_obs[0]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("family", FAMILIES)
def test_weights_a_little_off_whole_ones_move_lambda_little(estimator, family):
    x, weight = column_with_two_outliers(family), 1.0 + np.arange(26) % 3
    fit = fit_quietly(x, family, estimator, sample_weight=weight * (1.0 + 1e-7))
    assert fit.lmbda[0] == pytest.approx(fit_quietly(x, family, estimator, sample_weight=weight).lmbda[0], abs=0.02)


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_in_columns_too_long_for_lanes(family):
    x, weight = column_with_two_outliers(family, 530), np.arange(530) % 2 + 0.5
    fit = fit_quietly(x, family, pk.AdaptiveRewML(n_reweight=1), sample_weight=weight)
    assert abs(fit.lmbda[0] - fit_quietly(x, family, pk.AdaptiveRewML(n_reweight=1)).lmbda[0]) < 0.5


@pytest.mark.parametrize("estimator", ["robust", "carroll", "mtl"])
@pytest.mark.parametrize("weight", [None, np.arange(26) % 2 + 1.0])
def test_ties_are_left_to_a_fit_of_the_others(estimator, weight):
    x = np.where(np.arange(26) < 15, 1.0, column_with_two_outliers("box-cox"))
    fit = fit_quietly(x, "box-cox", estimator, sample_weight=weight)
    rest = fit_quietly(x[15:], "box-cox", estimator, sample_weight=None if weight is None else weight[15:])
    assert fit.status[0] == Status.TIED
    assert fit.lmbda[0] == pytest.approx(rest.lmbda[0], abs=1e-9)


@pytest.mark.parametrize("weight", [None, np.ones(40), np.arange(40) % 2 + 1.0])
def test_small_outliers_are_found_by_the_second_start(weight):
    z = np.random.default_rng(3).normal(size=40)
    z[:6] = -12.0
    fit = fit_quietly(np.exp(z), "box-cox", "robust", sample_weight=weight)
    assert fit.outliers(np.exp(z))[:6].all()
    assert fit.route[0] == Route.REFIT_BOTH_SIDES.label


@pytest.mark.parametrize("estimator", ["robust", "carroll", "mtl"])
def test_bounds_and_iteration_to_the_end(estimator):
    x = column_with_two_outliers("box-cox")
    fit = fit_quietly(x, "box-cox", estimator, bounds=(1.5, 2.0))
    assert (fit.lmbda[0], fit.status[0]) == (1.5, Status.AT_BOUND)
    if estimator == "robust":
        settled = pk.AdaptiveRewML(n_reweight="settled", first_weights="plain")
        assert np.isfinite(fit_quietly(x, "box-cox", settled).lmbda[0])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_curve_is_lowest_where_the_search_ended(estimator):
    x, weight = column_with_two_outliers("yeo-johnson"), np.arange(26) % 2 + 1.0
    for given in (None, weight):
        fit = fit_quietly(x, "yeo-johnson", estimator, sample_weight=given)
        curve = fit.objective_curve([fit.lmbda0[0] - 0.3, fit.lmbda0[0], fit.lmbda0[0] + 0.3], x, sample_weight=given)
        assert np.argmin(curve[0]) == 1


def test_normality_takes_weights():
    x, weight = column_with_two_outliers("box-cox"), np.arange(26) % 3
    fit = fit_quietly(x, "box-cox", "mle", sample_weight=weight)
    found = fit.normality(x, sample_weight=weight).after.ppcc[0]
    assert found == pytest.approx(fit.normality(np.repeat(x, weight)).after.ppcc[0], abs=1e-6)
