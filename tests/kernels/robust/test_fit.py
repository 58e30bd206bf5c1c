"""The kernel for one sorted column, compared with slow procedures and R's Huber estimates; edge cases of its input."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from jitted import jitted
from reference_files import cellwise_steps

from powerkern import Status
from powerkern._estimators.estimators import ESTIMATORS
from powerkern.kernels.location import huber
from powerkern.kernels.results import (
    BAD_INFINITE,
    BAD_NOT_POSITIVE,
    KEPT_HIGH,
    KEPT_LOW,
    LMBDA,
    LMBDA0,
    LOC,
    N_KEPT,
    N_OBS,
    N_RESULTS,
    SCALE,
    STATUS,
)
from powerkern.kernels.robust import search
from powerkern.kernels.robust.scratch import ALL, new_robust_work
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON

CODES = {"box-cox": BOX_COX, "yeo-johnson": YEO_JOHNSON}
families = pytest.mark.parametrize("family", CODES)


@jitted
def one_step(y):
    return huber.sorted_one_step(y, y[:0], 1.5, huber.CELLWISE_BETA)


def fit_sorted_column(x, family, estimator="robust", **options):
    """Sort a column, missing values last, and fit it by the kernel of an estimator; return the row of results."""
    x = np.sort(np.asarray(x, dtype=float))[None, :]
    work = new_robust_work(x.size)
    out = np.full((1, N_RESULTS), np.nan)
    chosen = ESTIMATORS[estimator](**options)
    chosen.entries.fit(x.copy(), None, CODES[family], chosen.kernel_options, work, out)
    return out[0]


def sample(family, n=40, seed=0):
    rng = np.random.default_rng(seed)
    y = np.append(rng.normal(size=n - 4), [9.0, 9.5, 10.0, 10.0])
    return np.exp(0.5 * y) if family == "box-cox" else y


@families
@pytest.mark.parametrize(
    "estimator, options",
    [
        ("robust", {}),
        ("rewml", {}),
        ("rewml", {"convention": "cellwise"}),
        ("robust", {"rectify": "none"}),
        ("rewml-nr", {}),
    ],
)
def test_reweighting_matches_the_slow_version(family, estimator, options):
    x = np.sort(sample(family))
    row = fit_sorted_column(x, family, estimator, **options)
    as_r = options.get("convention") == "cellwise"
    plain = estimator == "rewml-nr" or options.get("rectify") == "none"
    plain = plain or (estimator == "rewml" and not as_r)  # its first weights, too, are from the plain transform
    rule = "none" if plain else "cellwise" if as_r else "paper"
    how = "median" if rule == "cellwise" and family == "box-cox" else "mad"
    u, _, _, power = oracles.prestandardized(family, x, how)
    adaptive = estimator == "robust"
    steps = 3 if adaptive else 2
    expected = oracles.reweighted(family, u, row[LMBDA0] * power, rule, steps, ddof=int(as_r), adaptive=adaptive)
    kept = (row[KEPT_LOW] <= x) & (x <= row[KEPT_HIGH])
    np.testing.assert_array_equal(kept, expected.kept[-1])
    assert row[LMBDA] * power == pytest.approx(expected.lmbdas[-1], abs=1e-9)
    if family == "yeo-johnson":
        assert row[LOC] == pytest.approx(expected.loc, abs=1e-9)
        assert row[SCALE] == pytest.approx(expected.scale, rel=1e-8)


@families
def test_longer_columns_are_searched_on_a_sample_first(family):
    x = sample(family, n=ALL + 88, seed=3)
    row = fit_sorted_column(x, family)
    u, _, _, power = oracles.prestandardized(family, np.sort(x), "mad")
    scores = oracles.normal_scores(x.size)

    def objective(lmbda):
        return oracles.qq_objective(family, u, lmbda, "paper", scores)

    assert objective(row[LMBDA0] * power) <= oracles.lowest(objective, step=0.1) + 1e-6


@pytest.mark.parametrize("n", [45, 91])
def test_an_objective_that_is_undefined_everywhere_ends_the_search(n):
    """Columns of 495 and 1,001 values near 1e-30 have status UNREPRESENTABLE: 1/lambda cancels all their digits."""
    x = np.tile(np.arange(1.0, 12.0), n) * 1e-30
    row = fit_sorted_column(x, "box-cox", prestandardize="none", c=0.1)
    assert row[STATUS] == Status.UNREPRESENTABLE


def test_an_interval_is_widened_a_few_times_only():
    evaluated = []

    def falling(at, lmbda, options, work):
        evaluated.append(lmbda)
        return lmbda

    stop = search.Stop(1e-5, math.inf, math.inf)
    found = search.brents_minimum(falling, None, np.array([0.0, 1.0]), stop, None, None)
    assert found.n_eval == len(evaluated) <= 5 * search.MAX_EVAL
    assert -150.0 < found.lmbda < -30.0


@families
@pytest.mark.parametrize("estimator", ["robust", "carroll", "mtl"])
@pytest.mark.parametrize(
    "x, status",
    [
        ([], Status.EMPTY),
        ([np.nan, np.nan], Status.EMPTY),
        ([2.0], Status.CONSTANT),
        ([2.0, 2.0, np.nan], Status.CONSTANT),
        ([2.0, 2.0, 2.0, 5.0], Status.NO_SPREAD),
    ],
)
def test_columns_that_have_no_fit(family, estimator, x, status):
    row = fit_sorted_column(x, family, estimator)
    assert row[STATUS] == status
    assert row[LMBDA] == 1.0
    assert row[N_OBS] == np.sum(~np.isnan(x))


def test_values_outside_the_domain():
    assert fit_sorted_column([1.0, 2.0, np.inf], "yeo-johnson")[STATUS] == BAD_INFINITE
    assert fit_sorted_column([-np.inf, 2.0, 3.0], "box-cox")[STATUS] == BAD_INFINITE
    assert fit_sorted_column([0.0, 2.0, 3.0], "box-cox")[STATUS] == BAD_NOT_POSITIVE


def test_scratch_space_serves_columns_of_any_length():
    """Columns of 30, 30, 12 and 31 values, fitted with the same scratch arrays, give the bits of separate fits."""
    xs = [sample("yeo-johnson", n, seed=n) for n in (30, 30, 12, 31)]
    columns = np.full((4, 31), np.nan)
    for row, x in zip(columns, xs, strict=True):
        row[: x.size] = np.sort(x)
    work = new_robust_work(31)
    out = np.full((4, N_RESULTS), np.nan)
    chosen = ESTIMATORS["robust"]()
    chosen.entries.fit(columns, None, YEO_JOHNSON, chosen.kernel_options, work, out)
    for row, x in zip(out, xs, strict=True):
        np.testing.assert_array_equal(row, fit_sorted_column(x, "yeo-johnson"))


def test_huber_estimates_of_transformed_columns_are_those_of_cellwise():
    seen = 0
    for step in cellwise_steps():
        for rule, figures in (("none", step.huber_plain), ("cellwise", step.huber_rectified)):
            y = oracles.rectified_by_rule(step.family, step.u, step.lmbda, rule).astype(float)
            assert one_step(y)[:2] == pytest.approx(figures, rel=1e-10, abs=1e-10)
            seen += 1
    assert seen >= 100


# --- other options and routes -------------------------------------------------------------------------


@families
@pytest.mark.parametrize("how", ["mad", "none", "median"])
def test_carroll_is_a_minimum(family, how):
    if how == "median" and family == "yeo-johnson":
        pytest.skip("a rule for Box-Cox")
    x = np.sort(sample(family))
    row = fit_sorted_column(x, family, "carroll", prestandardize=how)
    u, _, _, power = oracles.prestandardized(family, x, how)

    def objective(lmbda):
        return oracles.carroll_objective(family, u, lmbda)

    assert objective(row[LMBDA] * power) <= oracles.lowest(objective, step=0.1) + 1e-8
    assert row[N_KEPT] == x.size


@families
@pytest.mark.parametrize("h", [0.6, 0.9, 1.0])
def test_trimmed_likelihood_keeps_the_best_stretch(family, h):
    x = np.sort(sample(family))
    row = fit_sorted_column(x, family, "mtl", h=h)
    u, _, _, power = oracles.prestandardized(family, x, "mad")
    size = max(math.ceil(h * x.size), x.size // 2 + 1)
    kept = (row[KEPT_LOW] <= x) & (x <= row[KEPT_HIGH])
    start = oracles.trimmed_objective(family, u, row[LMBDA] * power, size)[1]
    np.testing.assert_array_equal(np.flatnonzero(kept), np.arange(start, start + size))
    assert row[LMBDA] * power == pytest.approx(oracles.likeliest_lambda(family, u[kept], 1.0), abs=1e-9)


@families
def test_the_path_of_r_is_brents_from_end_to_end(family):
    x = np.sort(sample(family, seed=1))
    u, _, _, _ = oracles.prestandardized(family, x, "median" if family == "box-cox" else "mad")
    scores = oracles.normal_scores(x.size)

    def objective(lmbda):
        return oracles.qq_objective(family, u, lmbda, "cellwise", scores)

    best = min(oracles.netlib_fmin(objective, -4.0, 6.0, search.CELLWISE_XTOL), key=objective)
    assert fit_sorted_column(x, family, "rewml", convention="cellwise")[LMBDA0] == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("mirror", [False, True])
def test_r_widens_the_interval_where_lambda_ends_near_its_end(mirror):
    x = np.random.default_rng(0).beta(30.0, 1.0, 60)
    row = fit_sorted_column(1.0 / x if mirror else x, "box-cox", "rewml", convention="cellwise")
    assert abs(row[LMBDA]) > 6.0
    assert np.sign(row[LMBDA0]) == np.sign(row[LMBDA])
    assert row[STATUS] in (Status.SCANNED, Status.MULTIMODAL)


@pytest.mark.parametrize("n_reweight", [0, 1, 5])
def test_n_reweight_is_the_number_of_reweighting_steps(n_reweight):
    x = np.sort(sample("yeo-johnson", seed=2))
    row = fit_sorted_column(x, "yeo-johnson", n_reweight=n_reweight)
    u, _, _, _ = oracles.prestandardized("yeo-johnson", x, "mad")
    expected = oracles.reweighted("yeo-johnson", u, row[LMBDA0], "paper", n_reweight)
    assert row[LMBDA] == pytest.approx(expected.lmbdas[-1], abs=1e-9)
    assert row[N_KEPT] == expected.kept[-1].sum()
    assert row[LOC] == pytest.approx(expected.loc, abs=1e-9)


@families
@pytest.mark.parametrize("estimator", ["robust", "rewml-nr", "carroll", "mtl"])
def test_long_columns_of_counts_have_a_moderate_lambda(family, estimator):
    """Long columns of counts have a moderate lambda, although the search starts on a sample with many ties."""
    rng = np.random.default_rng(1)
    x = rng.poisson(6.0, ALL + 40) + 1.0
    row = fit_sorted_column(x, family, estimator)
    assert row[STATUS] in (Status.SCANNED, Status.MULTIMODAL, Status.NOT_CERTIFIED)
    assert abs(row[LMBDA]) < 5.0
