"""Lambdas that maximise the correlation of the normal QQ plot, compared with SciPy and with fine grids."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from scipy import stats

from powerkern._estimators.plotting_positions import normal_quantiles, sort_and_weigh
from powerkern._jit import JIT_DISABLED
from powerkern._status import Status
from powerkern.kernels.normality.ppcc import N_OPTIMUM, maximize_ppcc_columns, new_search_work, second_minimum
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON

rng = np.random.default_rng(20240601)
N = 40 if JIT_DISABLED else 300
COLUMNS = {
    "lognormal": (BOX_COX, rng.lognormal(0.0, 0.7, N)),
    "gamma": (BOX_COX, rng.gamma(2.0, size=N)),
    "far from 0": (BOX_COX, 1e4 + rng.normal(size=N)),
    "positive": (YEO_JOHNSON, rng.gamma(2.0, size=N)),
    "negative": (YEO_JOHNSON, -rng.gamma(2.0, size=N)),
    "both signs": (YEO_JOHNSON, rng.gamma(2.0, size=N) - 1.5),
}
TRANSFORMS = {BOX_COX: stats.boxcox, YEO_JOHNSON: stats.yeojohnson}


def found(x, family, start=1.0):
    """Fit a column from `start`; return lambda, 1 minus the correlation, the number of evaluations, and the status."""
    x = np.sort(np.asarray(x, dtype=float))
    columns, positions, totals = sort_and_weigh(x[None], None, normal_quantiles)
    n = np.count_nonzero(~np.isnan(x))
    np.testing.assert_allclose(positions[0, 0, :n], np.sqrt(n) * oracles.filliben_quantiles(n), rtol=1e-9, atol=1e-12)
    out, work = np.empty((1, N_OPTIMUM)), new_search_work(x.size)
    maximize_ppcc_columns(columns, positions, totals, family, np.array([start]), work, out)
    return out[0]


def objective(x, family, lmbda):
    y = np.sort(TRANSFORMS[family](x, lmbda))
    return 1.0 - stats.probplot(y)[1][2]


@pytest.mark.parametrize("name", COLUMNS)
def test_objective_is_that_of_the_transformed_values(name):
    family, x = COLUMNS[name]
    lmbda, value, *_ = found(x, family)
    if name != "far from 0":  # where scipy's transform loses digits
        assert value == pytest.approx(objective(x, family, lmbda), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "far from 0"])
def test_no_lambda_of_a_fine_grid_is_better(name):
    family, x = COLUMNS[name]
    lmbda, value, *_ = found(x, family)
    grid = np.concatenate([np.linspace(-4.0, 6.0, 21 if JIT_DISABLED else 201), lmbda + np.linspace(-0.1, 0.1, 21)])
    assert value <= min(objective(x, family, other) for other in [*grid, lmbda - 1e-5, lmbda + 1e-5]) + 1e-12


@pytest.mark.parametrize("name", ["lognormal", "gamma"])
def test_correlation_as_in_scipy(name):
    family, x = COLUMNS[name]
    assert found(x, family)[0] == pytest.approx(stats.boxcox_normmax(x, method="pearsonr"), abs=1e-6)


def test_mirror_image_mirrors_lambda():
    _, x = COLUMNS["both signs"]
    assert found(-x, YEO_JOHNSON)[0] == pytest.approx(2.0 - found(x, YEO_JOHNSON)[0], abs=1e-6)


def test_units_do_not_matter_to_box_cox():
    _, x = COLUMNS["gamma"]
    expected = found(x, BOX_COX)[0]
    for factor in (1e-290, 1e-3, 1e290):
        assert found(factor * x, BOX_COX)[0] == pytest.approx(expected, abs=1e-6)


def test_tiny_values_of_both_signs():
    """For tiny x, psi is close to expm1(lambda x)/lambda, so lambda must be proportional to 1/x."""
    _, x = COLUMNS["both signs"]
    expected = 1e-9 * found(1e-9 * x, YEO_JOHNSON)[0]
    for factor in (1e-12, 1e-200):
        assert factor * found(factor * x, YEO_JOHNSON)[0] == pytest.approx(expected, rel=1e-6)


def test_a_far_start_ends_at_the_same_lambda():
    _, x = COLUMNS["lognormal"]
    lmbda = found(x, BOX_COX)[0]
    for start in (-9.0, 9.0):
        assert found(x, BOX_COX, start)[0] == pytest.approx(lmbda, abs=1e-6)


def test_scan_of_the_mirrored_column_is_mirrored():
    """Lambda of -x is 2 minus lambda of x: the scan has equal steps up and down, and is extended at either end."""
    x = np.array([0.19, 0.31, 1.14, 3.42, 3.52, 3.55, 3.58])
    up, down = found(x, YEO_JOHNSON, 1.03), found(-x, YEO_JOHNSON, 0.97)
    assert down[0] == pytest.approx(2.0 - up[0], rel=1e-6)
    assert down[1] == pytest.approx(up[1], rel=1e-9)
    assert down[3] == up[3]


def test_an_objective_that_falls_as_far_as_is_looked_is_not_certified():
    x = np.array([1e-16, 1.07991068, 1.12794007])  # the least is near 16, 280/sd(logs) away
    lmbda, value, _, status = found(x, BOX_COX, 0.116)
    assert status == Status.NOT_CERTIFIED
    assert objective(x, BOX_COX, lmbda + 1.0) < value


def test_missing_values_and_rows_without_a_start():
    _, x = COLUMNS["gamma"]
    holes = np.append(x, [math.nan, math.nan])
    assert np.array_equal(found(holes, BOX_COX), found(x, BOX_COX))
    assert np.isnan(found(x, BOX_COX, math.nan)).all()


@pytest.mark.parametrize("x", [[1e-300, 1.0, 1e300], [5e-324, 1e-300, 1.0], [1.0, 1.5, 2.0, 2.0]])
def test_searches_of_extreme_columns_end(x):
    lmbda, value, n_eval, status = found(x, BOX_COX)
    assert math.isfinite(lmbda)
    assert 0.0 <= value <= 0.5
    assert n_eval < 10_000
    assert status in (Status.SCANNED, Status.MULTIMODAL)


@pytest.mark.parametrize("x", [[1.0, 2.0], [1.0, 1.0, 2.0, 2.0], [3.0] * 9 + [5.0], [1e-300, 1e300]])
def test_lambda_stays_at_the_start_where_all_are_equally_good(x):
    lmbda, value, n_eval, status = found(x, BOX_COX, 0.25)
    assert lmbda == 0.25
    assert n_eval == 17  # a grid with steps of 0.5 up to a distance of 4
    assert value == pytest.approx(objective(np.array(x), BOX_COX, 0.25), rel=1e-9, abs=1e-13)
    assert status == Status.SCANNED


def test_large_values_of_both_signs():
    lmbda, value, *_ = found([-1e250, -1.0, 0.0, 2.0, 1e300], YEO_JOHNSON)
    assert math.isfinite(lmbda)
    assert value < 1.0


def test_several_minima_have_status_multimodal():
    r = np.random.default_rng(0)
    x = np.concatenate([r.lognormal(0.0, 0.1, 8), r.lognormal(2.0, 0.1, 5), r.lognormal(4.0, 0.1, 3)])
    _, value, _, status = found(x, BOX_COX, 0.0)
    assert status == Status.MULTIMODAL
    assert value <= min(objective(x, BOX_COX, other) for other in np.linspace(-3.0, 3.0, 121)) + 1e-12
    assert found(COLUMNS["gamma"][1], BOX_COX)[3] == Status.SCANNED


def test_a_scan_that_falls_to_its_end_finds_no_optimum():
    x = np.array([1.0, 1.000001, 2.0, 3.999996, 4.0])
    assert found(x, BOX_COX, -1000.0)[3] == Status.NOT_CERTIFIED
    assert found(x, BOX_COX, 0.0)[3] == Status.SCANNED


def test_the_scan_goes_on_while_the_objective_falls():
    """The first 17 lambdas do not include the minimum; the scan must add steps, up or down, until it does."""
    _, x = COLUMNS["lognormal"]
    sd = np.log(x).std()
    center = found(x, BOX_COX)
    for direction in (-1.0, 1.0):
        lmbda, value, n_eval, status = found(x, BOX_COX, center[0] + direction * 12.0 / sd)
        assert lmbda == pytest.approx(center[0], abs=1e-6)
        assert value == pytest.approx(center[1], rel=1e-9)
        assert status == Status.SCANNED
        # 16 steps of 0.5 lead to the minimum; Brent's evaluations depend on rounding: 9 more as plain Python
        assert 16 <= n_eval - center[2] <= (40 if JIT_DISABLED else 30)


@pytest.mark.parametrize(
    "values, second",
    [
        ([3.0, 2.0, 1.0, 2.0], math.inf),
        ([3.0, 1.0, 2.0, 1.5, 4.0], 1.5),
        ([3.0, 1.5, 2.0, 1.0, 4.0], 1.5),
        ([1.0, 2.0, 1.5, 3.0], 1.5),  # the first value is a minimum, too
        ([4.0, 1.0, 2.0, 1.75, 2.0, 1.5, 2.0], 1.5),
        ([4.0, 1.5, 2.0, 1.0, 2.0, 1.75, 2.0], 1.5),
        ([4.0, 1.0, 2.0, 1.0, 2.0], 1.0),
        ([4.0, 3.0, 2.0, 3.0, 2.5], math.inf),  # the last one is not
        ([4.0, 2.0, 2.0, 3.0], math.inf),
        ([4.0, 1.0, 4.0, 2.0, 2.0, 3.0], math.inf),
    ],
)
def test_second_minimum_is_the_second_lowest_local_one(values, second):
    assert second_minimum(np.array(values)) == second
