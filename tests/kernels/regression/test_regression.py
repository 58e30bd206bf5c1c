"""Kernels of regressions: products of residuals, missing values, and single responses, against least squares."""

from __future__ import annotations

import numpy as np
import oracles
import pytest

from powerkern._status import Status
from powerkern.kernels.regression import fit, likelihood, search
from powerkern.kernels.results import BAD_RANK, CURVATURE, LMBDA, N_EVAL, N_RESULTS, NLL, STATUS
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON

NO_WEIGHTS = np.empty(0)


def design(X, root=NO_WEIGHTS, sample=0):
    """Return the kernels' design matrix for the rows of `X`, and for a sample of `sample` rows, as orthonormal bases.

    `X` includes a constant column; `root` holds the square roots of the weights.
    """
    rows = X if root.size == 0 else root[:, None] * X
    basis = np.ascontiguousarray(np.linalg.qr(rows)[0].T)
    some = np.empty((len(basis), 0)), np.empty(0)
    if sample:
        at = np.arange(sample) * (len(X) // sample)
        some = np.ascontiguousarray(np.linalg.qr(rows[at])[0].T), root[at] if root.size else root
    return likelihood.Design(basis, root, *some, 1.0)


def regress(y, X, family=BOX_COX, lmbda=np.nan, root=NO_WEIGHTS, sample=0):
    """Fit one response; return its row of results, and the two ends of the scan followed by coefficients.

    The arguments `X`, `root` and `sample` are as in `design`, whose orthonormal basis the coefficients refer to.
    """
    one = design(X, root, sample)
    out, extra = np.empty((1, N_RESULTS)), np.empty((1, 2 + X.shape[1]))
    work = likelihood.new_regression_work(one)
    fit.regress_columns(y[None].copy(), one, family, np.array([lmbda]), work, out, extra)
    return out[0], extra[0]


def profile(y, X, lmbdas, family=BOX_COX, root=NO_WEIGHTS):
    one, out = design(X, root), np.empty((1, len(lmbdas)))
    work = likelihood.new_regression_work(one)
    fit.profile_columns(y[None].copy(), one, family, np.array([lmbdas], dtype=np.float64), work, out)
    return out[0]


def covariates(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([np.ones(n), rng.normal(size=(n, 2))]), rng


@pytest.mark.parametrize("family, name", [(BOX_COX, "box-cox"), (YEO_JOHNSON, "yeo-johnson")])
@pytest.mark.parametrize("n", [6, 31])
def test_optimum_agrees_with_mpmath(family, name, n):
    X, rng = covariates(n, n)
    y = rng.lognormal(size=n) if family == BOX_COX else rng.normal(size=n) ** 3
    row, extra = regress(y, X, family)
    assert row[STATUS] == Status.SCANNED
    exact = oracles.regression_lambda(name, y, X, row[LMBDA], digits=40)
    g, _, d2 = oracles.regression_likelihood(name, exact, y, X, digits=40)
    assert abs(row[LMBDA] - exact) < 1e-12
    assert row[NLL] == pytest.approx(float(g), rel=1e-12)
    assert row[CURVATURE] == pytest.approx(float(d2), rel=1e-7)
    assert extra[0] < row[LMBDA] < extra[1]


@pytest.mark.parametrize("lmbda", [-400.0, -3.0, 0.0, 1e-9, 1.0, 2.0, 500.0])
@pytest.mark.parametrize("kind", ["positive", "negative", "both"])
def test_likelihood_at_any_lambda(kind, lmbda):
    X, rng = covariates(20)
    y = {"positive": rng.lognormal(size=20), "negative": -rng.lognormal(size=20), "both": rng.normal(size=20)}[kind]
    family, name = (BOX_COX, "box-cox") if kind == "positive" else (YEO_JOHNSON, "yeo-johnson")
    g = oracles.regression_likelihood(name, lmbda, y, X, digits=400)[0]
    assert profile(y, X, [lmbda], family)[0] == pytest.approx(float(g), rel=1e-11, abs=1e-12)


def test_a_close_fit_is_formed_from_residuals():
    X, rng = covariates(20)
    y = 10.0 + X @ [0.0, 1.0, 0.5] + 1e-7 * rng.normal(size=20)
    row, _ = regress(y, X, lmbda=1.0)
    rest = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    assert row[NLL] == pytest.approx(0.5 * np.log(rest @ rest / 20), rel=1e-8)


def test_missing_responses_are_fitted_as_if_dropped():
    X, rng = covariates(40)
    y = rng.lognormal(size=40)
    kept = rng.random(40) > 0.3
    one, _ = regress(np.where(kept, y, np.nan), X)
    other, _ = regress(y[kept], X[kept])
    assert one[LMBDA] == pytest.approx(other[LMBDA], abs=1e-13)
    assert one[NLL] == pytest.approx(other[NLL], rel=1e-12)


def test_rows_that_missing_values_take_from_a_covariate():
    X, rng = covariates(40)
    X[:, 2] = np.arange(40) < 2
    y = np.where(np.arange(40) < 2, np.nan, rng.lognormal(size=40))
    assert regress(y, X)[0][STATUS] == BAD_RANK


def test_a_sample_leads_to_the_same_optimum():
    X, rng = covariates(800)
    y = np.exp(0.3 * X[:, 1] + rng.normal(size=800))
    y[::9] = np.nan
    root = np.sqrt(rng.uniform(0.5, 2.0, size=800))
    one, other = regress(y, X, root=root, sample=100)[0], regress(y, X, root=root)[0]
    assert one[LMBDA] == pytest.approx(other[LMBDA], abs=1e-12)
    assert one[STATUS] == other[STATUS] == Status.SCANNED


def test_the_likelihood_drops_by_the_requested_amount_at_the_ends():
    X, rng = covariates(25)
    y = rng.lognormal(size=25)
    row, _ = regress(y, X)
    one, ends = design(X), np.empty((1, 2))
    work = likelihood.new_regression_work(one)
    fit.interval_columns(y[None].copy(), one, BOX_COX, np.array([[row[LMBDA], 0.1]]), work, ends)
    np.testing.assert_allclose(profile(y, X, ends[0]) - row[NLL], 0.1, rtol=1e-9)
    assert ends[0, 0] < row[LMBDA] < ends[0, 1]


def test_weights_repeat_rows_in_every_block():
    n = likelihood.BLOCK + 30
    X, rng = covariates(n)
    y, weight = np.exp(0.3 * X[:, 1] + rng.normal(size=n)), rng.integers(1, 3, n)
    weighted = profile(y, X, [0.4], root=np.sqrt(weight))
    np.testing.assert_allclose(weighted, profile(np.repeat(y, weight), np.repeat(X, weight, axis=0), [0.4]), rtol=1e-12)


@pytest.mark.parametrize("power", [0.6, 1.9])
def test_the_search_does_not_depend_on_the_unit_of_the_logs(power):
    """For y^c, the optimum and the ends of the scan are the ones for y, divided by c."""
    X, rng = covariates(20)
    y = np.exp(0.3 * X[:, 1] + 0.7 * rng.normal(size=20))
    (one, ends), (other, other_ends) = regress(y, X), regress(y**power, X)
    np.testing.assert_allclose(power * other[LMBDA], one[LMBDA], rtol=1e-10)
    np.testing.assert_allclose(power * other_ends[:2], ends[:2], rtol=1e-10)
    assert one[N_EVAL] == other[N_EVAL]


@pytest.mark.parametrize(
    "slopes, expected",
    [
        ([-1.0, 1.0], True),
        ([1.0, -1.0], False),
        ([-1.0, -1.0], False),
        ([-1.0, 0.0, 1.0], True),  # the fit at the second point is exact
        ([-1.0, 0.0, -1.0], False),
        ([-1.0, 0.0, 0.0], False),
        ([-1.0, 0.0], False),  # no point follows
        ([0.0, 1.0], False),
        ([-1.0, 1.0, -1.0], True),
    ],
)
def test_a_sign_change_of_the_slope_encloses_a_minimum(slopes, expected):
    grid = np.zeros((3, len(slopes)))
    grid[search._D1] = slopes
    assert search._encloses(grid, 0, len(slopes) - 1) == expected


def test_intervals_and_profiles_of_columns_of_every_sign():
    """Each column has its own lambda and its own drop of the likelihood."""
    X, rng = covariates(25)
    y = np.exp(0.3 * X[:, 1] + rng.normal(size=25))
    columns = np.array([y, -y, rng.normal(size=25) + X[:, 2]])
    best = np.array([regress(each, X, YEO_JOHNSON)[0] for each in columns])
    one, ends, drops = design(X), np.empty((3, 2)), np.array([0.1, 0.02, 0.5])
    work = likelihood.new_regression_work(one)
    fit.interval_columns(columns.copy(), one, YEO_JOHNSON, np.column_stack([best[:, LMBDA], drops]), work, ends)
    assert ((ends[:, 0] < best[:, LMBDA]) & (best[:, LMBDA] < ends[:, 1])).all()
    for each, own, drop, row in zip(columns, ends, drops, best, strict=True):
        np.testing.assert_allclose(profile(each, X, own, YEO_JOHNSON) - row[NLL], drop, rtol=1e-8)
    np.testing.assert_allclose(best[1, [LMBDA, NLL]], [2.0 - best[0, LMBDA], best[0, NLL]], rtol=1e-10)
    together = np.empty((3, 2))
    fit.profile_columns(columns.copy(), one, YEO_JOHNSON, ends, work, together)
    np.testing.assert_allclose(together, (best[:, NLL] + drops)[:, np.newaxis] * np.ones(2), rtol=1e-8)
