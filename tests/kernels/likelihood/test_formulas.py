"""Formulas of the profile likelihood: moments compared with NumPy, derivatives with mpmath."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import oracles
import pytest

from powerkern.kernels.likelihood import score_formulas as f

RNG = np.random.default_rng(8)
N = 9
VALUES = RNG.normal(size=(4, N))  # y, y', y'', y'''
WEIGHTS = RNG.integers(1, 5, N).astype(float)
PAIRS = {f.YY: (0, 0), f.YY1: (0, 1), f.Y1Y1: (1, 1), f.YY2: (0, 2), f.YY3: (0, 3), f.Y1Y2: (1, 2)}


def moments(values, weights):
    """Return the total weight, the weighted means of the rows of `values`, and the centered products of `PAIRS`."""
    means = values @ weights / weights.sum()
    centered = values - means[:, np.newaxis]
    return np.array([weights.sum(), *means, *((weights * centered[i] * centered[j]).sum() for i, j in PAIRS.values())])


def raw_sums(values, weights):
    """Return a total weight of 0, the weighted sums of the rows of `values`, and those of the products of `PAIRS`."""
    products = [(weights * values[i] * values[j]).sum() for i, j in PAIRS.values()]
    return np.array([0.0, *(values @ weights), *products])


def test_indices_of_moments():
    assert list(PAIRS) == list(range(5, 11))
    assert (f.WEIGHT, f.Y, f.Y1, f.Y2, f.Y3, f.N_MOMENTS) == (0, 1, 2, 3, 4, 11)


def scaled(t, factor):
    """Return Y_0 = e^t - 1 and Y_j = t^j e^t - j Y_(j-1) for j = 1, 2, 3, each times `factor`, with 60 digits."""
    with mpmath.workdps(60):
        t = mpmath.mpf(t)
        y = [mpmath.expm1(t)]
        for j in (1, 2, 3):
            y.append(t**j * mpmath.exp(t) - j * y[-1])
        return [float(each * factor) for each in y]


@pytest.mark.parametrize("t", [-30.0, -3.0, -1.0, -0.999, -0.5, 0.2, 0.999, 1.0, 1.001, 3.0, 30.0])
@pytest.mark.parametrize("factor", [1.0, 2.0**-40])
def test_derivatives_of_the_transform(t, factor):
    """Compare Y_0 to Y_3 with `scaled`; as t tends to 0, Y_2 and Y_3 may lose digits in proportion to t^-2 and t^-3."""
    expected = scaled(t, factor)
    size = factor * math.exp(max(t, 0.0)) * max(1.0, abs(t)) ** 3
    found = f.scaled_derivatives(t, factor * math.exp(t), factor)
    for y, exact, tolerance in zip(
        found, expected, (4e-16 * abs(expected[0]), 1e-15 * size, 3e-15 * size, 1e-14 * size), strict=True
    ):
        assert y == pytest.approx(exact, rel=1e-13, abs=tolerance)
    if factor == 1.0:
        np.testing.assert_allclose(f.derivatives(t, math.exp(t) - 1.0 - t, 1.0), expected, rtol=1e-11)


def test_small_derivatives_keep_digits():
    """Compare Y_0 = e^t - 1 and Y_1 with `scaled` for |t| < 1, where neither may lose digits by cancellation."""
    for t in (1e-12, -1e-6, 1e-3, -0.3):
        np.testing.assert_allclose(f.scaled_derivatives(t, math.exp(t), 1.0)[:2], scaled(t, 1.0)[:2], rtol=1e-14)


@pytest.mark.parametrize("t", [-0.5, -0.01, 0.0, 1e-9, 0.3, 0.5])
@pytest.mark.parametrize("factor", [1.0, 0.125])
def test_power_series(t, factor):
    expected = [factor * sum(t**k / (math.factorial(k) * (k + j + 1)) for k in range(30)) for j in range(4)]
    np.testing.assert_allclose(f.phis(t, factor * math.exp(t), factor), expected, rtol=1e-14)


def test_sums_of_observations_become_central_moments():
    sums = f.zero_sums(0.0)
    for value, weight in zip(VALUES.T, WEIGHTS, strict=True):
        sums = f.add_observation(sums, *value, weight)
    np.testing.assert_allclose(sums, raw_sums(VALUES, WEIGHTS), rtol=1e-13)
    found, kept = f.central_moments(sums, WEIGHTS.sum())
    np.testing.assert_allclose(found, moments(VALUES, WEIGHTS), rtol=1e-13)
    assert kept


@pytest.mark.parametrize(("mean", "expected"), [(9.9, True), (10.0, False), (-9.9, True), (-10.0, False)])
def test_digits_are_kept_if_the_mean_square_is_at_most_100_variances(mean, expected):
    """Test means on both sides of the limit; for a variance of 1, the mean square is 1 + mean^2."""
    values = np.array([[mean - 1.0, mean + 1.0], [1.0, 2.0], [0.0, 1.0], [3.0, 1.0]])
    assert bool(f.central_moments(raw_sums(values, np.ones(2)), 2.0)[1]) is expected


@pytest.mark.parametrize(("index", "bad"), [(f.YY3, math.nan), (f.YY3, math.inf), (f.YY3, -math.inf), (f.YY, math.nan)])
def test_sums_that_are_not_finite_lose_digits(index, bad):
    sums = raw_sums(VALUES, WEIGHTS)
    sums[index] = bad
    assert not f.central_moments(sums, WEIGHTS.sum())[1]


def test_moments_of_a_block_and_their_merger():
    whole = np.zeros(f.N_MOMENTS)
    for columns in (slice(0, 4), slice(4, 5), slice(5, N)):
        part = np.full(f.N_MOMENTS, np.nan)
        f.moments_of_block(VALUES[:, columns], WEIGHTS[columns], part)
        np.testing.assert_allclose(part, moments(VALUES[:, columns], WEIGHTS[columns]), rtol=1e-12, atol=1e-14)
        f.merge_moments(whole, part)
    np.testing.assert_allclose(whole, moments(VALUES, WEIGHTS), rtol=1e-12)


def test_moments_relative_to_a_reference_of_the_other_sign():
    """Compare the moments of e^(c m) psi(m) + y_0(m) at m = 0 with derivatives by Leibniz' rule.

    Here -c is the log of the reference, and y_0 the transform of the value 0, given with its derivatives by `Origin`.
    """
    c, origin = -0.7, f.Origin(0.3, -0.2, 0.5, 0.1)
    y, y1, y2, y3 = VALUES
    product = [y, y1 + c * y, y2 + 2 * c * y1 + c**2 * y, y3 + 3 * c * y2 + 3 * c**2 * y1 + c**3 * y]
    expected = np.array([row + shift for row, shift in zip(product, origin, strict=True)])
    found = moments(VALUES, WEIGHTS)
    f.relative_to(origin, -c, found)
    np.testing.assert_allclose(found, moments(expected, WEIGHTS), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_sums_over_negative_values_change_signs(sign):
    """Compare sums for psi = -b_m with m = 2 - lambda: psi and its second derivative are minus those of b_m in m."""
    signs = np.array([[sign], [1.0], [sign], [1.0]])
    first = raw_sums(VALUES, WEIGHTS)
    part = raw_sums(2.0 * VALUES + 1.0, WEIGHTS)
    expected = first + raw_sums(signs * (2.0 * VALUES + 1.0), WEIGHTS)
    np.testing.assert_allclose(f.add_signed_sums(first, part, sign), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("m", "both_signs", "expected"),
    [
        (0.5, True, 0.5),
        (0.05, True, 0.1),
        (-0.05, True, -0.1),
        (0.0, False, 0.1),
        (0.1, False, 0.1),
        (1.95, True, 1.9),
        (2.05, True, 2.1),
        (2.0, True, 1.9),
        (1.9, True, 1.9),
        (1.95, False, 1.95),
        (2.1, True, 2.1),
    ],
)
def test_exponents_stay_away_from_0_and_2(m, both_signs, expected):
    assert f.exponents_off_zero(m, both_signs, 2.0, 0.1) == pytest.approx(expected, rel=1e-15)
    assert f.exponents_off_zero(m / 4.0, both_signs, 0.5, 0.025) == pytest.approx(expected / 4.0, rel=1e-15)


X = RNG.gamma(2.0, size=N)


def moments_at(lmbda):
    """Return the moments of the Box-Cox transform, and the mean log, in float64."""
    with mpmath.workdps(40):
        values = np.array([oracles.power_derivatives("box-cox", lmbda, x) for x in X]).T.astype(float)
    return moments(values, WEIGHTS), float(np.average(np.log(X), weights=WEIGHTS))


@pytest.mark.parametrize("lmbda", [-0.8, 0.3, 1.9])
def test_the_score_is_the_derivative_of_the_likelihood(lmbda):
    t, jacobian = moments_at(lmbda)
    g, d1, d2, d3 = map(float, oracles.likelihood("box-cox", lmbda, X, WEIGHTS))
    np.testing.assert_allclose(f.score_from_moments(t, jacobian), (d1, d2, d3), rtol=1e-10)
    assert f.profile_nll(math.log(t[f.YY] / t[f.WEIGHT]), 0.0, lmbda, jacobian) == pytest.approx(g, rel=1e-12)
    # logs relative to a reference: the transform is divided by ref^lambda
    log_ref = 0.9
    relative = math.log(t[f.YY] / t[f.WEIGHT]) - 2.0 * lmbda * log_ref
    assert f.profile_nll(relative, log_ref, lmbda, jacobian - log_ref) == pytest.approx(g, rel=1e-12)
    variance = t[f.YY]
    expected = (t[f.YY1], t[f.Y1Y1] + t[f.YY2], 3.0 * t[f.Y1Y2] + t[f.YY3])
    np.testing.assert_allclose(f.ratios(t), np.array(expected) / variance, rtol=1e-14)
    assert f.moment_rate_squared(t) == pytest.approx(abs(expected[1]) / variance, rel=1e-14)
    assert f.moment_rate_squared(-np.abs(t) * np.where(np.arange(11) == f.YY, -1.0, 1.0)) > 0.0


@pytest.mark.parametrize("lmbda", [-0.8, 0.3, 1.9])
@pytest.mark.parametrize("step", [0.0, 1e-3, -2e-3])
def test_moments_at_a_small_distance_by_taylor_expansion(lmbda, step):
    """The error is of the order of the first term left out: step^2 for g''', step^3 for g', step^4 for moments."""
    t, jacobian = moments_at(lmbda)
    beyond, _ = moments_at(lmbda + step)
    _, d1, d2, _ = map(float, oracles.likelihood("box-cox", lmbda + step, X, WEIGHTS))
    rate = 1.0 + f.moment_rate_squared(t) ** 0.5
    error = 10.0 * (rate * abs(step)) ** 3 * rate + 1e-11
    found = f.shifted_score(t, jacobian, step)
    assert found[0] == pytest.approx(d1, abs=error)
    assert found[1] == pytest.approx(d2, abs=error * rate / (abs(step) + 1e-3))
    assert found[2] == f.score_from_moments(t, jacobian)[2]
    assert f.taylor_sum_of_squares(t, step) == pytest.approx(beyond[f.YY], rel=error * abs(step) * rate + 1e-12)
    mean, variance, curvature = f.taylor_moments(t, step)
    assert mean == pytest.approx(beyond[f.Y], rel=error * abs(step) * rate + 1e-11)
    assert variance == pytest.approx(beyond[f.YY] / beyond[f.WEIGHT], rel=error * abs(step) * rate + 1e-12)
    assert curvature == found[1]


@pytest.mark.parametrize(
    ("d1", "d2", "d3", "expected"),
    [
        (0.0, 1.0, 5.0, True),
        (0.5, 1.0, 1.0, True),
        (-0.5, 1.0, 1.0, True),
        (0.51, 1.0, 1.0, False),
        (0.51, 1.0, -1.0, False),
        (1.0, 0.5, 0.125, True),
        (1.0, 0.5, 0.126, False),
        (0.0, 0.0, 0.0, False),
        (0.0, -1.0, 0.0, False),
        (math.nan, 1.0, 1.0, False),
    ],
)
def test_a_minimum_is_certain_if_the_third_derivative_is_small(d1, d2, d3, expected):
    """Test both sides of Kantorovich's condition |d1 d3| <= d2^2/2, which also requires d2 > 0."""
    assert bool(f.has_root_near(d1, d2, d3)) is expected
