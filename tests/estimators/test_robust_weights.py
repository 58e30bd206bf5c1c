"""Weights of rows, and columns with more than half of the values equal, in all estimators except "mle"."""

from __future__ import annotations

import numpy as np
import pytest
from fits import kernel_rows
from samples import contaminated_lognormal

import powerkern as pk
from powerkern import Status
from powerkern._estimators.estimators import ESTIMATORS

FAMILIES = ("box-cox", "yeo-johnson")
RESISTANT = ("robust", "rewml-nr", "carroll", "mtl")
families = pytest.mark.parametrize("family", FAMILIES)
#: "central-mle" needs origin="fit": see test_origin.py.
estimators = pytest.mark.parametrize("estimator", [name for name in ESTIMATORS if name not in ("mle", "central-mle")])
resistant = pytest.mark.parametrize("estimator", RESISTANT)

#: Statuses of a successful search, with or without other minima.
SEARCHED = {Status.OK, Status.SCANNED, Status.MULTIMODAL}


def assert_same_fits(fit, other, *, lmbda=1e-9):
    for one, two in zip(fit.status, other.status, strict=True):
        assert one == two or {Status(one), Status(two)} <= SEARCHED
    np.testing.assert_allclose(fit.lmbda, other.lmbda, atol=lmbda)
    np.testing.assert_allclose(fit.objective, other.objective, atol=2e-6)
    for field in ("loc", "scale", "nll", "x_min", "x_max"):
        np.testing.assert_allclose(
            getattr(fit, field), getattr(other, field), rtol=1e3 * lmbda, atol=1e3 * lmbda, err_msg=field
        )
    np.testing.assert_allclose(fit.n_obs, other.n_obs, rtol=1e-12)


@estimators
@pytest.mark.parametrize("family", [*FAMILIES, "best"])
@pytest.mark.parametrize("n", [25, 70])
def test_whole_weights_repeat_rows(family, estimator, n):
    x = contaminated_lognormal(n, 3, seed=n + 1)
    x[3, 1] = np.nan
    weight = np.random.default_rng(1).integers(0, 4, n)
    fit = pk.fit(x, family, estimator, sample_weight=weight)
    repeated = pk.fit(np.repeat(x, weight, axis=0), family, estimator)
    assert fit.families == repeated.families
    assert_same_fits(fit, repeated, lmbda=1e-9 if estimator != "ppcc" else 1e-7)
    np.testing.assert_allclose(fit.n_kept, repeated.n_kept, rtol=1e-12)
    np.testing.assert_array_equal(fit.weights(x), repeated.weights(x))


@pytest.mark.filterwarnings("ignore:column 0")
@families
@pytest.mark.parametrize("seed", range(5))
def test_trimmed_likelihood_ignores_negligible_weights(family, seed):
    """Weights span 80 powers of 2. Setting those below 1e-18 of the largest to zero does not change lambda."""
    rng = np.random.default_rng(seed)
    x, weight = np.exp(rng.normal(size=150)), 2.0 ** rng.integers(-40, 40, 150)
    fit = pk.fit(x, family, "mtl", sample_weight=weight)
    other = pk.fit(x, family, "mtl", sample_weight=np.where(weight < 1e-18 * weight.max(), 0.0, weight))
    np.testing.assert_allclose(fit.lmbda, other.lmbda, atol=1e-6)


@resistant
@families
def test_whole_weights_repeat_rows_of_long_columns(family, estimator):
    x = contaminated_lognormal(900, 1, seed=4)
    weight = np.random.default_rng(2).integers(0, 4, 900)
    fit = pk.fit(x, family, estimator, sample_weight=weight)
    assert_same_fits(fit, pk.fit(np.repeat(x, weight, axis=0), family, estimator), lmbda=1e-8)


@estimators
def test_weighted_objective_curves_and_bounds(estimator):
    x, weight = contaminated_lognormal(40, 2), np.random.default_rng(3).integers(1, 4, 40)
    repeated = np.repeat(x, weight, axis=0)
    fit, other = pk.fit(x, "box-cox", estimator, sample_weight=weight), pk.fit(repeated, "box-cox", estimator)
    grid = [-1.0, 0.0, 0.7, 2.0]
    np.testing.assert_allclose(fit.objective_curve(grid), other.objective_curve(grid), atol=1e-6)
    bounds = (fit.lmbda.max() + 0.2, 4.0)
    fit, other = (
        pk.fit(data, "box-cox", estimator, sample_weight=w, bounds=bounds)
        for data, w in ((x, weight), (repeated, None))
    )
    np.testing.assert_array_equal(fit.status, Status.AT_BOUND)
    np.testing.assert_array_equal(fit.lmbda, other.lmbda)
    np.testing.assert_allclose(fit.scale, other.scale, rtol=1e-9)
    np.testing.assert_allclose(fit.loc, other.loc, rtol=1e-9)


@estimators
@families
@pytest.mark.parametrize("weight", [1.0, 0.3, 1.0 / 60.0, 1e-200])
def test_equal_weights_up_to_one_change_nothing(family, estimator, weight):
    x = contaminated_lognormal(60, 2)
    fit = pk.fit(x, family, estimator, sample_weight=np.full(60, weight))
    plain = pk.fit(x, family, estimator)
    np.testing.assert_allclose(fit.lmbda, plain.lmbda, atol=1e-9 if estimator != "ppcc" else 1e-7)
    np.testing.assert_allclose(fit.scale, plain.scale, rtol=1e-6)
    np.testing.assert_allclose(fit.n_obs, 60 * weight, rtol=1e-12)


@estimators
def test_small_weights_are_relative(estimator):
    x, weight = contaminated_lognormal(60, 2), np.random.default_rng(0).uniform(0.1, 1.0, 60)
    fit, other = (pk.fit(x, "box-cox", estimator, sample_weight=c * weight) for c in (1.0, 1.0 / weight.sum()))
    np.testing.assert_allclose(fit.lmbda, other.lmbda, atol=1e-7)


@estimators
@families
def test_rows_of_weight_0_are_ignored(family, estimator):
    x, weight = contaminated_lognormal(60, 3), np.random.default_rng(0).uniform(0.5, 3.0, 60)
    weight[::7] = 0.0
    x[0], there = -np.inf, weight > 0.0
    fit = pk.fit(x, family, estimator, sample_weight=weight)
    np.testing.assert_array_equal(
        kernel_rows(fit), kernel_rows(pk.fit(x[there], family, estimator, sample_weight=weight[there]))
    )


@estimators
def test_threads_order_and_columns_change_no_bit(estimator):
    x, weight = contaminated_lognormal(200, 12), np.random.default_rng(0).exponential(2.0, 200)
    x[4, 7] = np.nan
    fit = pk.fit(x, "box-cox", estimator, sample_weight=weight, n_threads=1)
    other = pk.fit(np.asfortranarray(x), "box-cox", estimator, sample_weight=weight, n_threads=3)
    np.testing.assert_array_equal(kernel_rows(other), kernel_rows(fit))
    if estimator in RESISTANT:
        other = pk.fit(x[::-1], "box-cox", estimator, sample_weight=weight[::-1])
        np.testing.assert_array_equal(kernel_rows(other), kernel_rows(fit))
    turned = np.random.default_rng(0).permutation(12)
    permuted = pk.fit(x[:, turned], "box-cox", estimator, sample_weight=weight, n_threads=2)
    np.testing.assert_array_equal(kernel_rows(permuted), kernel_rows(fit)[turned])


@estimators
def test_lambda_does_not_depend_on_the_size_of_large_weights(estimator):
    x, weight = contaminated_lognormal(80, 2), np.random.default_rng(0).integers(1, 5, 80)
    fits = [pk.fit(x, "box-cox", estimator, sample_weight=c * weight) for c in (1e4, 1e8, 2.0**40, 1e300)]
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.lmbda, fits[0].lmbda, atol=2e-3)


@pytest.mark.filterwarnings("ignore:column 0. no value was left out on one side")
@resistant
def test_a_row_with_nearly_all_of_the_weight(estimator):
    x, weight = contaminated_lognormal(50, 1), np.ones(50)
    weight[20] = 1e300
    fit = pk.fit(x, "box-cox", estimator, sample_weight=weight)
    assert np.isfinite(fit.lmbda).all()
    assert fit.n_obs[0] == 1e300
    heavy = np.ones(50)
    heavy[20] = 49.0 - 1e-9
    assert np.isfinite(pk.fit(x, "box-cox", estimator, sample_weight=heavy).lmbda).all()


# --- more than half of the values equal ----------------------------------------------------------------


def zero_inflated(n, p, share=0.6, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, p)) < share, 0.0, rng.lognormal(size=(n, p)))


@resistant
def test_other_values_are_fitted_if_most_are_equal(estimator):
    x = zero_inflated(200, 4)
    fit = pk.fit(x, estimator=estimator)
    assert (fit.status == Status.TIED).all()
    np.testing.assert_array_equal(fit.n_obs, 200.0)
    np.testing.assert_array_equal(fit.x_min, 0.0)
    for j in range(4):
        alone = pk.fit(x[x[:, j] > 0.0, j], estimator=estimator)
        assert fit.lmbda[j] == alone.lmbda[0]
        assert fit.scale[j] == alone.scale[0]
        np.testing.assert_allclose([fit.nll[j], fit.information[j]], [alone.nll[0], alone.information[0]], rtol=1e-12)
        assert np.isfinite(fit.objective_curve([fit.lmbda0[j]])[j, 0])
    z = fit.transform(x)
    np.testing.assert_array_equal(np.argsort(z, axis=0, kind="stable"), np.argsort(x, axis=0, kind="stable"))
    np.testing.assert_allclose(fit.inverse_transform(z), x, atol=1e-12)


def test_outliers_among_many_zeros_are_flagged():
    x = zero_inflated(400, 3, seed=1)
    x[:6] = 1e4
    fit = pk.fit(x, estimator="robust")
    flagged = fit.outliers(x)
    assert flagged[:6].all()
    assert flagged[6:].mean() < 0.05
    assert not fit.outliers(np.zeros((1, 3))).any()
    np.testing.assert_array_equal(fit.weights(x).sum(axis=0), fit.n_kept)


def test_tied_columns_are_scale_equivariant_and_weights_repeat_ties():
    x = 1.0 + zero_inflated(300, 2, seed=2)
    fit = pk.fit(x, "box-cox", "robust")
    np.testing.assert_allclose(pk.fit(1024.0 * x, "box-cox", "robust").lmbda, fit.lmbda, atol=1e-9)
    np.testing.assert_array_equal(kernel_rows(pk.fit(x[::-1], "box-cox", "robust", n_threads=2)), kernel_rows(fit))
    values, counts = np.unique(x[:, 0], return_counts=True)
    weighted = pk.fit(values, "box-cox", "robust", sample_weight=counts)
    assert_same_fits(weighted, pk.fit(x[:, 0], "box-cox", "robust"), lmbda=1e-8)
    assert weighted.status[0] == Status.TIED
    assert weighted.n_kept[0] == fit.n_kept[0]


@resistant
@families
@pytest.mark.parametrize(
    "x",
    [
        [2.0, 2.0, 2.0, 5.0],
        [2.0, 2.0, 2.0, 2.0, 5.0, 5.0],
        [2.0] * 9 + [3.0] * 5 + [4.0],  # the others have no spread, either
    ],
)
def test_columns_without_spread_beyond_ties_pass_through(family, estimator, x):
    with pytest.warns(UserWarning, match="not fitted robustly"):
        fit = pk.fit(x, family, estimator)
    assert fit.status[0] == Status.NO_SPREAD
    np.testing.assert_array_equal(fit.transform(x), x)


def test_the_cellwise_convention_does_not_fit_tied_columns():
    with pytest.warns(UserWarning, match="not fitted robustly"):
        fit = pk.fit(zero_inflated(100, 1), estimator=pk.RewML(convention="cellwise"))
    assert fit.status[0] == Status.NO_SPREAD


@pytest.mark.parametrize("seed", [49, 77, 291])
def test_sums_of_kept_weights_do_not_exceed_the_total(seed):
    """Regression test: a sum in two parts exceeded the total by rounding, and the JSON of the fit was rejected."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 500))
    weight = rng.uniform(0.5, 2.0, n)
    fit = pk.fit(np.round(rng.normal(size=(n, 3))), estimator="robust", sample_weight=weight)
    assert (fit.n_kept <= fit.n_obs).all()
    pk.PowerFit.from_json(fit.to_json())
