"""Mahalanobis and Kolmogorov-Smirnov distances, compared with references and SciPy, and mathematical identities."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.spatial import distance as scipy_distance
from sklearn.covariance import MinCovDet

from powerkern.outliers import distances, ks_distance, mahalanobis

rng = np.random.default_rng(20240601)
CLOUD = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 3)) + [1.0, -5.0, 20.0]


# --- Mahalanobis ---------------------------------------------------------------------------------------


def test_mahalanobis_agrees_with_multiprecision():
    """Distances agree with distances by the exact inverse covariance, and their squares sum to (n - 1) p."""
    with mpmath.workdps(40):
        rows = mpmath.matrix(CLOUD.tolist())
        n, p = CLOUD.shape
        centered = rows - mpmath.ones(n, 1) * (mpmath.ones(1, n) * rows / n)
        inverse = (centered.T * centered / (n - 1)) ** -1
        squares = [(centered[i, :] * inverse * centered[i, :].T)[0] for i in range(n)]
        expected = [float(mpmath.sqrt(square)) for square in squares]
    found = mahalanobis(CLOUD)
    assert found == pytest.approx(expected, rel=1e-11)
    assert (found**2).sum() == pytest.approx((n - 1) * p, rel=1e-13)


def test_mahalanobis_agrees_with_scipy():
    loc, cov = CLOUD.mean(axis=0), np.cov(CLOUD.T)
    inverse = np.linalg.inv(cov)
    expected = [scipy_distance.mahalanobis(row, loc, inverse) for row in CLOUD]
    assert mahalanobis(CLOUD) == pytest.approx(expected, rel=1e-10)
    assert mahalanobis(CLOUD, loc, cov) == pytest.approx(expected, rel=1e-10)
    about_zero = [scipy_distance.mahalanobis(row, np.zeros(3), inverse) for row in CLOUD]
    assert mahalanobis(CLOUD, loc=np.zeros(3)) == pytest.approx(about_zero, rel=1e-10)


def test_mahalanobis_does_not_depend_on_affine_maps():
    mapped = CLOUD @ np.array([[1.0, 2.0, 0.0], [0.0, -1e-3, 5.0], [3.0, 0.0, 1e3]]) - 50.0
    assert mahalanobis(mapped) == pytest.approx(mahalanobis(CLOUD), rel=1e-9)
    scaled = CLOUD * [1e150, 1e-150, 1.0] + [0.0, 0.0, 1e6]
    assert mahalanobis(scaled) == pytest.approx(mahalanobis(CLOUD), rel=1e-8)


@pytest.mark.parametrize("factor", [1e300, 1e-300, 1e-305])
def test_distances_do_not_depend_on_the_unit(factor):
    assert mahalanobis(factor * CLOUD) == pytest.approx(mahalanobis(CLOUD), rel=1e-8)
    center = CLOUD[0]
    assert mahalanobis(factor * CLOUD, loc=factor * center) == pytest.approx(mahalanobis(CLOUD, loc=center), rel=1e-8)
    assert ks_distance(factor * CLOUD) == pytest.approx(ks_distance(CLOUD), rel=1e-8)
    assert ks_distance(factor * CLOUD, loc=factor) == pytest.approx(ks_distance(CLOUD, loc=1.0), rel=1e-8)


def test_mahalanobis_of_one_column_is_a_z_score():
    x = CLOUD[:, 0]
    assert mahalanobis(x) == pytest.approx(abs(x - x.mean()) / x.std(ddof=1), rel=1e-12)


def test_rows_with_missing_values_have_no_distance():
    holes = CLOUD.copy()
    holes[3, 1] = holes[7, 0] = math.nan
    found = mahalanobis(holes)
    assert np.flatnonzero(np.isnan(found)).tolist() == [3, 7]
    assert np.delete(found, [3, 7]) == pytest.approx(mahalanobis(np.delete(CLOUD, [3, 7], axis=0)), rel=1e-12)


@pytest.mark.parametrize(
    "points, message",
    [
        (CLOUD[:3], "3 rows without missing values for 3 columns"),
        (np.column_stack([CLOUD[:, :2], np.full(40, 7.0)]), "column 2 has no variance"),
        (np.column_stack([CLOUD[:, :2], CLOUD[:, 0] - 2 * CLOUD[:, 1]]), "column 2 depends linearly"),
        (np.where(np.arange(40)[:, None] == 5, np.inf, CLOUD), "column 0, row 5: the value is inf"),
    ],
)
def test_mahalanobis_refuses_invalid_data(points, message):
    with pytest.raises(ValueError, match=message):
        mahalanobis(points)


def test_mahalanobis_names_columns():
    frame = pd.DataFrame({"a": CLOUD[:, 0], "b": 2.0 * CLOUD[:, 0]})
    with pytest.raises(ValueError, match=r"column 1 \('b'\) depends linearly"):
        mahalanobis(frame)


def test_mahalanobis_refuses_arguments_that_do_not_fit():
    with pytest.raises(ValueError, match=r"loc must be finite numbers of shape \(3,\)"):
        mahalanobis(CLOUD, loc=[0.0])
    with pytest.raises(ValueError, match=r"cov must be finite numbers of shape \(3, 3\)"):
        mahalanobis(CLOUD, cov=np.full((3, 3), math.nan))
    with pytest.raises(ValueError, match="not symmetric"):
        mahalanobis(CLOUD[:, :2], cov=[[1.0, 0.5], [0.0, 1.0]])
    with pytest.raises(ValueError, match="column 1 depends linearly"):
        mahalanobis(CLOUD[:, :2], cov=[[1.0, 2.0], [2.0, 1.0]])


def test_robust_location_and_covariance_show_outliers_that_mask_each_other():
    points = CLOUD.copy()
    points[:8] += 1e4
    found = MinCovDet(random_state=0).fit(points)
    distances = mahalanobis(points, found.location_, found.covariance_)
    assert distances[:8].min() > 100.0 > distances[8:].max()


@pytest.mark.parametrize("given", [False, True])
def test_mahalanobis_is_the_same_in_any_memory_order(given):
    points = np.random.default_rng(0).normal(size=(200, 5))
    options = {"loc": points.mean(axis=0), "cov": np.cov(points.T)} if given else {}
    expected = mahalanobis(points, **options)
    wide = np.repeat(points, 2, axis=1)
    for other in (np.asfortranarray(points), wide[:, ::2], points[::-1][::-1]):
        assert np.array_equal(mahalanobis(other, **options), expected)


# --- Kolmogorov-Smirnov --------------------------------------------------------------------------------


def lilliefors(x):
    return stats.kstest(x, stats.norm(x.mean(), x.std(ddof=1)).cdf).statistic


def test_ks_distance_agrees_with_scipy():
    assert ks_distance(CLOUD) == pytest.approx([lilliefors(x) for x in CLOUD.T], rel=1e-12)
    assert ks_distance(CLOUD[:, 0]) == ks_distance(CLOUD)[0]
    given = [stats.kstest(x, stats.norm(1.0, s).cdf).statistic for x, s in zip(CLOUD.T, (1.0, 2.0, 3.0), strict=True)]
    assert ks_distance(CLOUD, 1.0, [1.0, 2.0, 3.0]) == pytest.approx(given, rel=1e-12)


def test_ks_distance_of_uniform_and_normal_is_exact():
    """The distributions are the uniform one on (-2, 2), represented by a fine grid of its quantiles, and N(0, 1).

    Their distribution functions differ most where the densities are equal: phi(x) = 1/4.
    """
    n = 20_000
    grid = -2.0 + 4.0 * (np.arange(n) + 0.5) / n
    x = math.sqrt(-2.0 * math.log(math.sqrt(2.0 * math.pi) / 4.0))
    assert ks_distance(grid, 0.0, 1.0) == pytest.approx(stats.norm.cdf(x) - (x + 2.0) / 4.0, abs=0.6 / n)


def test_ks_distance_leaves_missing_values_out_and_its_argument_alone():
    holes = np.asfortranarray(CLOUD)
    holes[2, 0] = math.nan
    before = holes.copy()
    assert ks_distance(holes)[0] == pytest.approx(lilliefors(np.delete(CLOUD[:, 0], 2)), rel=1e-12)
    assert np.array_equal(holes, before, equal_nan=True)


def test_ks_distance_without_a_fit_is_nan():
    table = np.array([[1.0, 2.0, math.nan], [1.0, math.nan, math.nan], [1.0, math.nan, math.nan]])
    assert np.isnan(ks_distance(table)).all()
    assert ks_distance(table, 1.0, 1.0)[0] == pytest.approx(0.5)


def test_ks_distance_holds_for_subnormal_values():
    x = np.random.default_rng(2).normal(size=50)
    small = ks_distance(x * 2.0**-1040, loc=0.0, scale=2.0**-1040)
    assert small == pytest.approx(ks_distance(x, loc=0.0, scale=1.0), rel=1e-6)


def test_ks_distance_is_the_same_for_any_threads_and_order():
    wide = rng.normal(size=(500, 120))
    expected = ks_distance(wide, n_threads=1)
    assert np.array_equal(expected, ks_distance(wide, n_threads=3))
    assert np.array_equal(expected, ks_distance(np.asfortranarray(wide)))
    assert np.array_equal(expected[::-1], ks_distance(wide[:, ::-1]))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: ks_distance([1.0, math.inf]), "row 1: the value is inf"),
        (lambda: ks_distance([1.0, 2.0], scale=0.0), "scale must be positive"),
        (lambda: ks_distance([1.0, 2.0], loc=math.nan), "loc must be finite"),
        (lambda: ks_distance(CLOUD, loc=[1.0, 2.0]), "loc must be finite numbers of shape"),
    ],
)
def test_ks_distance_refuses_invalid_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("given", [False, True])
def test_mahalanobis_in_blocks_of_rows_is_the_same(monkeypatch, given):
    """Computations are divided into blocks, so that they can be interrupted. Results equal those of one block."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 3)) + 10.0
    X[[3, 250], 1] = np.nan
    whole = X[~np.isnan(X).any(axis=1)]
    arguments = {"loc": whole.mean(axis=0), "cov": np.cov(whole.T)} if given else {}
    deviations = X - whole.mean(axis=0)
    expected = np.sqrt(np.einsum("ij,ij->i", deviations @ np.linalg.inv(np.cov(whole.T)), deviations))
    one = mahalanobis(X, **arguments)
    monkeypatch.setattr(distances, "_BLOCK_PRODUCTS", 9 * 17)
    assert [len(block) for _, block in distances._row_blocks(X)] == [17] * 29 + [7]
    for result in (one, mahalanobis(X, **arguments), mahalanobis(np.asfortranarray(X), **arguments)):
        np.testing.assert_allclose(result, expected, rtol=1e-10)


def test_blocks_of_rows_are_bounded_in_values_and_products():
    for shape in ((10, 3), (100_000, 100), (3000, 4000), (2, 60_000)):
        X = np.broadcast_to(np.float64(0.0), shape)
        rows, blocks = zip(*distances._row_blocks(X), strict=True)
        assert sum(map(len, blocks)) == shape[0] == rows[-1].stop
        assert max(block.size for block in blocks) <= max(1 << 22, shape[1])
        assert max(len(block) for block in blocks) * shape[1] ** 2 <= max(1 << 31, shape[1] ** 2)
