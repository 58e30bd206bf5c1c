"""Medians by selection, one-step scales, and the correlations and slopes of pairs of columns, compared with NumPy."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import plain_ddc as plain
import pytest

from powerkern.kernels.multivariate import cells


def median(x):
    x = np.array(x, dtype=float)
    return cells.median_of_values(x, x.size)


def one_step(x):
    column, out = np.array([x], dtype=float), np.empty((1, 2))
    cells.one_step_columns(column, np.empty(column.shape[1]), out)
    return out[0]


def with_holes(n, seed=0, share=0.1):
    rng = np.random.default_rng(seed)
    x = rng.standard_t(3, size=n)
    x[rng.random(n) < share] = np.nan
    return x


def test_the_factor_of_the_scale():
    with mp.workdps(30):
        k = mp.mpf("2.5") * mp.sqrt(2) * mp.erfinv(mp.mpf("0.5"))
        inside = mp.erf(k / mp.sqrt(2))
        assert float(inside - 2 * k * mp.npdf(k) + k * k * (1 - inside)) == pytest.approx(cells.SCALE_FACTOR, rel=1e-15)
    assert f"{cells.SCALE_FACTOR:.3f}" in ("0.844", "0.845")


@pytest.mark.parametrize("n", [1, 2, 3, 47, 48, 49, 50, 99, 100, 500, 501])
@pytest.mark.parametrize("kind", ["normal", "sorted", "falling", "tied", "two values", "equal", "wide", "one far"])
def test_medians_are_those_of_sorted_values(n, kind):
    rng = np.random.default_rng(n)
    x = rng.normal(size=n)
    values = {
        "normal": x,
        "sorted": np.sort(x),
        "falling": -np.sort(x),
        "tied": np.round(x),
        "two values": (x > 0.0).astype(float),
        "equal": np.full(n, 2.0),
        "wide": np.sign(x) * 10.0 ** rng.uniform(-300.0, 300.0, n),
        "one far": np.where(np.arange(n) == n // 2, 1e300, x),
    }[kind]
    y = np.sort(values)
    low, high = y[(n - 1) // 2], y[n // 2]
    assert median(values) == low + 0.5 * (high - low)


@pytest.mark.parametrize("n", [50, 100, 300])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("n_equal", [0, 1])
def test_median_between_equal_values_and_the_next(n, sign, n_equal):
    values = sign * np.append(np.zeros(n // 2 + n_equal), np.arange(1.0, n // 2 + 1 - n_equal))
    for seed in range(4):
        assert median(np.random.default_rng(seed).permutation(values)) == (0.0 if n_equal else 0.5 * sign)


def test_the_median_of_nothing():
    assert math.isnan(median([]))


@pytest.mark.parametrize("n", [2, 3, 10, 101, 400])
@pytest.mark.parametrize("seed", [0, 1])
def test_location_and_scale_in_one_step(n, seed):
    x = with_holes(n, seed)
    loc = plain.location(x)
    np.testing.assert_allclose(one_step(x), [loc, plain.scale(x - loc)], rtol=1e-12)


def test_one_step_without_spread_or_values():
    np.testing.assert_array_equal(one_step([1.0, 1.0, 1.0, 5.0]), [1.0, 0.0])
    assert np.isnan(one_step([np.nan, np.nan])).all()


def test_scale_of_mostly_infinite_values_is_infinite():
    x = np.array([math.inf, -math.inf, 1.0])
    assert cells.one_step_scale(x, np.empty(3)) == math.inf


@pytest.mark.parametrize("rho", [-0.995, -0.6, 0.0, 0.4, 0.9, 1.0])
def test_correlations_agree_with_plain_ddc(rho):
    y, e = with_holes(150, 1), with_holes(150, 2)
    z = rho * y + math.sqrt(1.0 - rho * rho) * e
    u = np.array([y, z])
    u[~(np.abs(u) < 2.576)] = np.nan
    out = np.zeros((2, 2))
    cells.pair_correlations(u, 0, 2, 9.21034, np.empty((3, 150)), out)
    assert out[1, 0] == pytest.approx(plain.correlation(u[0], u[1], 9.21034), abs=1e-12)
    other = cells.pair_correlation(u[0], u[1], 9.21034, np.empty((3, 150)))
    assert other == cells.pair_correlation(u[1], u[0], 9.21034, np.empty((3, 150)))


@pytest.mark.parametrize(
    "u",
    [
        [[np.nan] * 4, [1.0, 2.0, 0.0, 1.0]],
        [[0.0] * 4, [1.0, -1.0, 0.5, 0.2]],
        [[1.0, -1.0, 0.5, 0.2], [0.0] * 4],
        [[1.0], [2.0]],
        [[1.0, 2.0], [2.0, 1.0]],
    ],
)
def test_correlation_without_spread_is_0(u):
    u = np.array(u)
    assert cells.pair_correlation(u[0], u[1], 9.2, np.empty((3, u.shape[1]))) == 0.0


@pytest.mark.parametrize("limit", [24.99, 25.0])
def test_points_on_the_ellipse_are_inside(limit):
    y, z = np.array([3.0, -4.0, 1.0, 2.0, 0.0]), np.array([4.0, 3.0, -1.0, 1.5, 2.0])
    inside = y**2 + z**2 <= limit
    found = cells._correlation_inside(y, z, y + z, y - z, 0.5, 0.5, limit)
    assert found == pytest.approx(np.corrcoef(y[inside], z[inside])[0, 1], rel=1e-14)


@pytest.mark.parametrize("unit", [1e-5, 1e5])
def test_correlations_inside_an_ellipse_do_not_depend_on_units(unit):
    y, z = np.array([0.3, -0.4, 0.1, 0.2, 0.0]), np.array([0.4, 0.3, -0.1, 0.1, 0.2])
    for v, w in ((unit * y, z), (y, unit * z)):
        found = cells._correlation_inside(v, w, v + w, v - w, 0.5, 0.5, math.inf)
        assert found == pytest.approx(np.corrcoef(y, z)[0, 1], rel=1e-12)


@pytest.mark.parametrize("cutoff", [1.0, 0.99])
def test_points_with_the_largest_residual_count_in_slopes(cutoff):
    y, z, residuals = np.array([2.0, 5.0, 3.0]), np.array([1.0, 2.0, -4.0]), np.array([0.5, -1.0, 1.0])
    inside = abs(residuals) <= cutoff
    found = cells._products_inside(y, z, residuals, cutoff)
    assert found == (np.sum(y[inside] * z[inside]), np.sum(z[inside] ** 2))


@pytest.mark.parametrize("n", [3, 20, 150])
def test_slopes_agree_with_plain_ddc(n):
    z = with_holes(n, 3)
    y = 0.7 * z + 0.2 * with_holes(n, 4)
    y[: n // 10], z[n // 2] = 30.0, 0.0
    u, out = np.array([y, z]), np.empty(2)
    first, neighbors = np.array([0, 1, 2]), np.array([1, 0])
    cells.neighbor_slopes(u, 0, 2, first, neighbors, 2.576, np.empty((2, n)), out)
    np.testing.assert_allclose(out, [plain.slope(y, z, 2.576), plain.slope(z, y, 2.576)], rtol=1e-11)


def test_slopes_of_nothing_and_exact_ones():
    z = np.array([1.0, -2.0, 4.0, 0.0])
    work = np.empty((2, 4))
    assert cells.slope(z, np.zeros(4), 2.5, work) == 0.0
    assert cells.slope(4.0 * z, z, 2.5, work) == 4.0


def test_predictions_are_weighted_means_of_neighbors():
    u = np.array([with_holes(40, seed, 0.3) for seed in range(3)])
    first, neighbors = np.array([0, 3, 3, 4]), np.array([0, 2, 1, 0])
    weights, slopes = np.array([1.0, 0.8, 0.6, 0.9]), np.array([1.0, -0.7, 0.5, 0.4])
    out = np.empty((3, 40))
    cells.predict_columns(u, 0, 3, first, neighbors, weights, slopes, np.empty(40), out)
    for i in range(40):
        for j in range(3):
            terms = [(weights[t], slopes[t] * u[neighbors[t], i]) for t in range(first[j], first[j + 1])]
            terms = [(w, value) for w, value in terms if not math.isnan(value)]
            expected = sum(w * value for w, value in terms) / sum(w for w, _ in terms) if terms else 0.0
            assert out[j, i] == pytest.approx(expected, rel=1e-13)


def test_deshrinkage_factors_agree_with_plain_ddc():
    z = np.array([with_holes(60, 5), with_holes(60, 6)])
    predicted = np.array([0.4 * np.nan_to_num(z[0]) + 0.1 * np.nan_to_num(with_holes(60, 7)), np.zeros(60)])
    out = np.empty((2, 2))
    cells.deshrink_columns(z, predicted, 2.576, np.empty((2, 60)), out)
    factor = plain.slope(z[0], predicted[0], 2.576)
    np.testing.assert_allclose(out[0], [factor, plain.scale(z[0] - factor * predicted[0])], rtol=1e-11)
    np.testing.assert_allclose(out[1], [1.0, plain.scale(z[1])], rtol=1e-11)
    cells.deshrink_columns(z, np.nan_to_num(z), 2.576, np.empty((2, 60)), out)
    assert (out[:, 1] == 1e-12).all()
