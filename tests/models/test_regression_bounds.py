"""Bounds on lambda of regressions, compared with profiles on fine grids."""

from __future__ import annotations

import numpy as np
import pytest

import powerkern as pk
from powerkern import Status
from powerkern._models.regression_bounds import find_outside, mark_bounded, minimize_within
from powerkern.kernels.results import LMBDA, N_RESULTS, STATUS
from powerkern.regression import fit_regression


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    eta = 2.0 + X @ [0.4, -0.2] + 0.2 * rng.normal(size=60)
    Y = np.column_stack([np.exp(eta), np.abs(eta) ** 2 + 0.1, 1.0 / np.abs(eta)])
    Y[3, 1] = np.nan
    return X, Y


@pytest.mark.parametrize("bounds", [(-0.25, 0.25), (0.7, 1.5), (None, -1.5), (1.2, None), ([-1, 0, 1], [0, 0.2, 3])])
@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_lambda_is_the_best_within_bounds(data, bounds, family):
    X, Y = data
    free, fit = fit_regression(Y, X, family), fit_regression(Y, X, family, bounds=bounds)
    low = np.broadcast_to(-np.inf if bounds[0] is None else bounds[0], 3).astype(float)
    high = np.broadcast_to(np.inf if bounds[1] is None else bounds[1], 3).astype(float)
    assert ((low <= fit.lmbda) & (fit.lmbda <= high)).all()
    inside = (low <= free.lmbda) & (free.lmbda <= high)
    np.testing.assert_array_equal(fit.lmbda[inside], free.lmbda[inside])
    for j in np.flatnonzero(~inside):
        grid = np.linspace(max(low[j], -8.0), min(high[j], 8.0), 4001)
        values = free.profile(grid)[j]
        assert fit.nll[j] <= values.min() + 1e-9 * abs(values.min())
        assert fit.status[j] == (pk.Status.AT_BOUND if fit.lmbda[j] in (low[j], high[j]) else pk.Status.SCANNED)
        fixed = fit_regression(Y, X, family, lmbda=fit.lmbda)
        np.testing.assert_array_equal(fit.coef[:, j], fixed.coef[:, j])


def test_the_lower_of_two_minima_outside_leaves_the_other():
    y, rng = np.linspace(1.0, 9.0, 60), np.random.default_rng(0)  # y**2 is nearly the first covariate, and
    X = np.column_stack(
        [y**2 + 0.02 * rng.normal(size=60), 1.0 / y + 0.001 * rng.normal(size=60)]
    )  # 1/y is nearly the second
    free = fit_regression(y, X)
    assert free.status[0] == pk.Status.MULTIMODAL
    grid = np.linspace(free.scanned[0][0], free.scanned[1][0], 4001)
    values = free.profile(grid)[0]
    minima = grid[1:-1][(values[1:-1] < values[:-2]) & (values[1:-1] < values[2:])]
    other = minima[np.argmax(abs(minima - free.lmbda[0]))]
    fit = fit_regression(y, X, bounds=(other - 0.5, other + 0.5))
    assert fit.lmbda[0] == pytest.approx(other, abs=2e-3)
    assert fit.status[0] == pk.Status.SCANNED
    assert fit.nll[0] > free.nll[0]


def test_bits_do_not_depend_on_threads_or_order(data):
    X, Y = data
    one = fit_regression(Y, X, bounds=(0.7, 1.5), n_threads=1)
    two = fit_regression(np.asfortranarray(Y[:, ::-1]), X, bounds=(0.7, 1.5), n_threads=2)
    np.testing.assert_array_equal(one.lmbda, two.lmbda[::-1])
    np.testing.assert_array_equal(one.coef, two.coef[:, ::-1])


def test_given_lambdas_stay_and_wrong_bounds_are_refused(data):
    X, Y = data
    assert fit_regression(Y, X, lmbda=2.0, bounds=(0, 1)).lmbda.tolist() == [2.0] * 3
    with pytest.raises(ValueError, match="interval"):
        fit_regression(Y, X, bounds=(1, 0))
    with pytest.raises(TypeError, match="pair"):
        fit_regression(Y, X, bounds=1.0)


def test_the_regressor_takes_them(data):
    pytest.importorskip("sklearn")
    from powerkern.sklearn import PowerTransformedRegressor

    X, Y = data
    model = PowerTransformedRegressor(family="box-cox", bounds=(0.7, 1.5)).fit(X, Y[:, 0])
    assert model.lambda_ == fit_regression(Y[:, 0], X, bounds=(0.7, 1.5)).lmbda[0]


def test_minima_within_bounds_are_found_on_finer_and_finer_grids():
    minima = np.array([0.3, -2.0, 5.0, 0.7, 1.0])
    bounds = np.array([[-1.0, -1.0, -np.inf, 0.9, -np.inf], [1.0, 1.0, np.inf, np.inf, 0.2]])
    scanned = np.array([[-4.0, 4.0], [-4.0, 4.0], [4.0, 9.0], [-4.0, 4.0], [3.0, 4.0]])
    found = minimize_within(lambda lmbda: np.abs(lmbda - minima[:, np.newaxis]) ** 1.5, bounds, scanned)
    np.testing.assert_allclose(found, [0.3, -1.0, 5.0, 0.9, 0.2], rtol=0, atol=1e-8)


def test_lambdas_without_a_likelihood_are_passed_over():
    def g(lmbda):
        return np.where(lmbda < 0.5, np.nan, (lmbda - 0.2) ** 2)

    found = minimize_within(g, np.array([[-1.0], [1.0]]), np.array([[-3.0, 3.0]]))
    assert found[0] == pytest.approx(0.5, abs=1e-7)


def test_only_fitted_lambdas_outside_their_bounds_are_refitted():
    results = np.zeros((6, N_RESULTS))
    results[:, LMBDA] = [0.5, 1.5, -0.5, 1.0, 2.0, 2.0]
    results[:, STATUS] = [Status.OK, Status.SCANNED, Status.AT_END, Status.OK, Status.CONSTANT, Status.SCANNED]
    bounds = np.repeat([[0.0], [1.0]], 6, axis=1)
    given = np.array([np.nan, np.nan, np.nan, np.nan, np.nan, 2.0])
    assert find_outside(results, bounds, given).tolist() == [1, 2]


def test_refitted_lambdas_are_at_a_bound_or_inside():
    results = np.zeros((4, N_RESULTS))
    results[:, LMBDA], results[:, STATUS] = [0.0, 1.0, 0.5, 1.0], [*[Status.FIXED] * 3, Status.TOO_FEW]
    mark_bounded(results, np.repeat([[0.0], [1.0]], 4, axis=1))
    assert results[:, STATUS].tolist() == [Status.AT_BOUND, Status.AT_BOUND, Status.SCANNED, Status.TOO_FEW]


@pytest.mark.parametrize("n, is_enough", [(3, False), (4, True)])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_regression_needs_one_row_more_than_coefficients(n, is_enough, is_weighted):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n + 2, 2)), rng.lognormal(size=n + 2)
    weight = np.append(np.ones(n), [0.0, 0.0]) if is_weighted else None
    rows = slice(None) if is_weighted else slice(n)
    if is_enough:
        assert fit_regression(y[rows], X[rows], sample_weight=weight).rank.tolist() == [3]
    else:
        with pytest.raises(ValueError, match=r"there are 3 rows .* and 3 coefficients; a regression needs more rows"):
            fit_regression(y[rows], X[rows], sample_weight=weight)
