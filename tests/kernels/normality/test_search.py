"""Lambdas by the Kolmogorov-Smirnov distance and by the correlation of a QQ plot, against scipy and fine grids."""

from __future__ import annotations

import json
import math

import numpy as np
import oracles
import pytest
from scipy import stats

from powerkern._estimators.nearest_normal import normal_quantiles, weighed_with
from powerkern._jit import JIT_DISABLED
from powerkern._status import Status
from powerkern.kernels.normality.criterion import KS, PPCC
from powerkern.kernels.normality.search import criterion_columns, new_search_work
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


def found(x, family, which, start=1.0):
    """Lambda, the criterion, evaluations, status."""
    x = np.sort(np.asarray(x, dtype=float))
    columns, weighed, figures = weighed_with(x[None], np.empty(0), normal_quantiles)
    n = np.count_nonzero(~np.isnan(x))
    np.testing.assert_allclose(weighed[0, 0, :n], np.sqrt(n) * oracles.filliben_quantiles(n), rtol=1e-9, atol=1e-12)
    out, work = np.empty((1, 4)), new_search_work(x.size)
    criterion_columns(columns, weighed, figures, family, which, np.array([start]), work, out)
    return out[0]


def criterion(x, family, which, lmbda):
    y = np.sort(TRANSFORMS[family](x, lmbda))
    if which == KS:
        return stats.ks_1samp(y, stats.norm(y.mean(), y.std(ddof=1)).cdf).statistic
    return 1.0 - stats.probplot(y)[1][2]


@pytest.mark.parametrize("which", [KS, PPCC])
@pytest.mark.parametrize("name", COLUMNS)
def test_criterion_is_that_of_the_transformed_values(name, which):
    family, x = COLUMNS[name]
    lmbda, value, *_ = found(x, family, which)
    if name != "far from 0":  # where scipy's transform loses digits
        assert value == pytest.approx(criterion(x, family, which, lmbda), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("which", [KS, PPCC])
@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "far from 0"])
def test_no_lambda_of_a_fine_grid_is_better(name, which):
    family, x = COLUMNS[name]
    lmbda, value, *_ = found(x, family, which)
    grid = np.concatenate([np.linspace(-4.0, 6.0, 21 if JIT_DISABLED else 201), lmbda + np.linspace(-0.1, 0.1, 21)])
    assert value <= min(criterion(x, family, which, other) for other in [*grid, lmbda - 1e-5, lmbda + 1e-5]) + 1e-12


def test_columns_of_the_reference(shared):
    record = json.loads((shared / "refs/outlier_basics_reference.json").read_text())["boxcox_ks"]
    for name, case in record.items():
        lmbda, value, *_ = found(case["x"], BOX_COX, KS, case["lambda_mle"])
        assert lmbda == pytest.approx(case["lambda_ks"], abs=2e-6), name  # the reference's grid has steps of 1e-6
        assert case["ks_min"] - 1e-6 < value <= case["ks_min"] + 1e-12, name


@pytest.mark.parametrize("name", ["lognormal", "gamma"])
def test_correlation_as_in_scipy(name):
    family, x = COLUMNS[name]
    assert found(x, family, PPCC)[0] == pytest.approx(stats.boxcox_normmax(x, method="pearsonr"), abs=1e-6)


@pytest.mark.parametrize("which", [KS, PPCC])
def test_mirror_image_mirrors_lambda(which):
    _, x = COLUMNS["both signs"]
    assert found(-x, YEO_JOHNSON, which)[0] == pytest.approx(2.0 - found(x, YEO_JOHNSON, which)[0], abs=1e-6)


@pytest.mark.parametrize("which", [KS, PPCC])
def test_units_do_not_matter_to_box_cox(which):
    _, x = COLUMNS["gamma"]
    expected = found(x, BOX_COX, which)[0]
    for factor in (1e-290, 1e-3, 1e290):
        assert found(factor * x, BOX_COX, which)[0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("which", [KS, PPCC])
def test_tiny_values_of_both_signs(which):
    """There, psi is expm1(lambda x)/lambda: lambda goes with 1/x."""
    _, x = COLUMNS["both signs"]
    expected = 1e-9 * found(1e-9 * x, YEO_JOHNSON, which)[0]
    for factor in (1e-12, 1e-200):
        assert factor * found(factor * x, YEO_JOHNSON, which)[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("which", [KS, PPCC])
def test_far_start_finds_the_way(which):
    _, x = COLUMNS["lognormal"]
    lmbda = found(x, BOX_COX, which)[0]
    for start in (-9.0, 9.0):
        assert found(x, BOX_COX, which, start)[0] == pytest.approx(lmbda, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 12, 50, 300])
def test_no_kink_is_lower(n):
    """Neither beside lambda nor in any other part of the scan, whose points are close enough to see every kink."""
    n = min(n, N)
    r = np.random.default_rng(n)
    for x in (
        r.lognormal(size=n),
        np.round(r.gamma(2.0, size=n) + 0.5, 1),
        r.lognormal(size=n) ** 4 + (r.random(n) < 0.1),
    ):
        lmbda, value, *_ = found(x, BOX_COX, KS, 0.5)
        assert value == pytest.approx(criterion(x, BOX_COX, KS, lmbda), rel=1e-9)
        beside = lmbda + np.array([-1e-9, 1e-9, -1e-7, 1e-7])
        grid = 0.5 + np.linspace(-4.0, 4.0, 65 if JIT_DISABLED else 1025) / np.log(x).std()
        assert value <= min(criterion(x, BOX_COX, KS, other) for other in [*beside, *grid]) + 1e-12


def test_minimum_of_one_departure():
    """Where one departure is the largest on both sides of its minimum, there is no kink."""
    x = np.array([0.11, 0.2, 0.38, 0.47, 0.61, 0.62, 1.18, 1.67, 2.06, 2.13, 2.22, 250.31])
    lmbda, _, _, status = found(x, BOX_COX, KS)
    steps = np.linspace(-1e-3, 1e-3, 11)
    values = np.array([criterion(x, BOX_COX, KS, lmbda + step) for step in steps])
    assert values.argmin() == 5
    np.testing.assert_allclose(values, np.polyval(np.polyfit(steps, values, 2), steps), atol=1e-9)
    assert status == Status.SCANNED


@pytest.mark.parametrize("which", [KS, PPCC])
def test_scan_is_that_of_the_mirror_image(which):
    """It reaches as far down as up, and goes on where the criterion falls at either end."""
    x = np.array([0.19, 0.31, 1.14, 3.42, 3.52, 3.55, 3.58])
    up, down = found(x, YEO_JOHNSON, which, 1.03), found(-x, YEO_JOHNSON, which, 0.97)
    assert down[0] == pytest.approx(2.0 - up[0], rel=1e-6)
    assert down[1] == pytest.approx(up[1], rel=1e-9)
    assert down[3] == up[3]


@pytest.mark.parametrize("which", [KS, PPCC])
def test_a_criterion_that_falls_as_far_as_is_looked_is_not_certified(which):
    x = np.array([1e-8, 1.07991068, 1.12794007])  # the least is near 16, 140/sd(logs) away
    lmbda, value, _, status = found(x, BOX_COX, which, 0.116)
    assert status == Status.NOT_CERTIFIED
    assert criterion(x, BOX_COX, which, lmbda + 1.0) < value


def test_missing_values_and_rows_without_a_start():
    _, x = COLUMNS["gamma"]
    holes = np.append(x, [math.nan, math.nan])
    assert np.array_equal(found(holes, BOX_COX, KS), found(x, BOX_COX, KS))
    assert np.isnan(found(x, BOX_COX, KS, math.nan)).all()


@pytest.mark.parametrize("which", [KS, PPCC])
@pytest.mark.parametrize("x", [[1e-300, 1.0, 1e300], [5e-324, 1e-300, 1.0], [1.0, 1.5, 2.0, 2.0]])
def test_nasty_columns_end(which, x):
    lmbda, value, n_eval, status = found(x, BOX_COX, which)
    assert math.isfinite(lmbda)
    assert 0.0 <= value <= 0.5
    assert n_eval < 10_000
    assert status in (Status.SCANNED, Status.MULTIMODAL)


@pytest.mark.parametrize("which", [KS, PPCC])
@pytest.mark.parametrize("x", [[1.0, 2.0], [1.0, 1.0, 2.0, 2.0], [3.0] * 9 + [5.0], [1e-300, 1e300]])
def test_lambda_stays_at_the_start_where_all_are_equally_good(which, x):
    lmbda, value, _, status = found(x, BOX_COX, which, 0.25)
    assert lmbda == 0.25
    if which == PPCC or max(x) < 1e200:  # where scipy's transform overflows
        assert value == pytest.approx(criterion(np.array(x), BOX_COX, which, 0.25), rel=1e-9, abs=1e-13)
    assert status == Status.SCANNED


@pytest.mark.parametrize("which", [KS, PPCC])
def test_large_values_of_both_signs(which):
    lmbda, value, *_ = found([-1e250, -1.0, 0.0, 2.0, 1e300], YEO_JOHNSON, which)
    assert math.isfinite(lmbda)
    assert value < 1.0


def test_several_minima_are_told():
    r = np.random.default_rng(0)
    x = np.concatenate([r.lognormal(0.0, 0.1, 8), r.lognormal(2.0, 0.1, 5), r.lognormal(4.0, 0.1, 3)])
    _, value, _, status = found(x, BOX_COX, KS, 0.0)
    assert status == Status.MULTIMODAL
    assert value <= min(criterion(x, BOX_COX, KS, other) for other in np.linspace(-3.0, 3.0, 121)) + 1e-12
    assert found(COLUMNS["gamma"][1], BOX_COX, PPCC)[3] == Status.SCANNED


def test_a_scan_that_falls_to_its_end_finds_no_optimum():
    x = np.array([1.0, 1.000001, 2.0, 3.999996, 4.0])
    assert found(x, BOX_COX, PPCC, -1000.0)[3] == Status.NOT_CERTIFIED
    assert found(x, BOX_COX, PPCC, 0.0)[3] == Status.SCANNED
