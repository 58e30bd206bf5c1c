"""The largest exponent m with b_m(a) <= ymax, compared with multiprecision roots."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from powerkern.kernels.transforms import lambda_bounds
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON

DIGITS = 60


@pytest.mark.parametrize("a", [1e-9, 0.3, 1.0, 7.6, 700.0])
@pytest.mark.parametrize("ymax", [0.2, 1.0, 25.0, 1e10, 1.7e304])
def test_largest_exponent_just_reaches_the_bound(a: float, ymax: float) -> None:
    m = lambda_bounds.largest_exponent(a, ymax)
    assert math.isfinite(m)
    with mpmath.workdps(DIGITS):
        t = mpmath.mpf(m) * mpmath.mpf(a)
        reached = mpmath.expm1(t) / mpmath.mpf(m) if m != 0.0 else mpmath.mpf(a)
        # a little inside; rounding of t = m a, and of the logs, is felt by the factor e^t
        assert 1.0 - 1e-12 <= reached / mpmath.mpf(ymax) <= 1.0


def test_zero_or_no_bound_allows_every_exponent() -> None:
    assert lambda_bounds.largest_exponent(0.0, 5.0) == math.inf
    assert lambda_bounds.largest_exponent(3.0, math.inf) == math.inf


def test_ranges_of_both_families() -> None:
    low, high = np.empty((2, 2))
    lambda_bounds.lambda_ranges(BOX_COX, np.array([0.5, 2.0]), np.array([8.0, 8.0]), 10.0, low, high)
    assert low[1] == -math.inf
    np.testing.assert_allclose((8.0 ** high[0] - 1.0) / high[0], 10.0, rtol=1e-12)
    np.testing.assert_allclose((0.5 ** low[0] - 1.0) / low[0], -10.0, rtol=1e-12)
    lambda_bounds.lambda_ranges(YEO_JOHNSON, np.array([-4.0, 0.0]), np.array([8.0, 8.0]), 10.0, low, high)
    assert low[1] == -math.inf
    np.testing.assert_allclose((9.0 ** high[0] - 1.0) / high[0], 10.0, rtol=1e-12)
    np.testing.assert_allclose((5.0 ** (2.0 - low[0]) - 1.0) / (2.0 - low[0]), 10.0, rtol=1e-12)


@pytest.mark.parametrize("t", [-50.0, -1.0, -2e-3, -5e-4, -2e-5, -5e-6, 0.0, 5e-6, 2e-5, 5e-4, 2e-3, 1.0, 50.0, 700.0])
def test_growth_and_its_slope(t: float) -> None:
    with mpmath.workdps(DIGITS):
        k = mpmath.log(mpmath.expm1(t) / mpmath.mpf(t)) if t else mpmath.mpf(0)
        slope = 1 / (1 - mpmath.exp(-mpmath.mpf(t))) - 1 / mpmath.mpf(t) if t else mpmath.mpf(0.5)
        assert lambda_bounds._growth(t) == pytest.approx(float(k), rel=1e-10, abs=0.0)
        assert lambda_bounds._growth_slope(t) == pytest.approx(float(slope), rel=1e-9)


@pytest.mark.parametrize("a", [1e-300, 0.3, 1.0, 700.0])
def test_ymax_close_to_the_log_or_far_below_it(a: float) -> None:
    """The largest exponent is 0, less a margin for rounding, at ymax = a; -1/ymax at 1e-6 a; and -inf at e^-701 a."""
    assert -1e-12 * (1.0 + abs(math.log(a))) <= lambda_bounds.largest_exponent(a, a) * a < 0.0
    assert lambda_bounds.largest_exponent(a, a * math.exp(-701.0)) == -math.inf
    ymax = a * 1e-6
    assert lambda_bounds.largest_exponent(a, ymax) == pytest.approx(-1.0 / ymax, rel=1e-9)


@pytest.mark.parametrize("ratio", [1e-3, 0.5, 0.998, 0.99999, 1.00001, 1.5, 1e6, 1e290])
def test_the_largest_exponent_takes_few_steps(ratio: float, monkeypatch: pytest.MonkeyPatch) -> None:
    points, growth = [], lambda_bounds._growth
    monkeypatch.setattr(lambda_bounds, "_growth", lambda t: points.append(t) or growth(t))
    lambda_bounds.largest_exponent(3.0, 3.0 * ratio)
    assert len(points) <= 9


def test_ranges_of_data_on_one_side_of_the_fixed_point_are_open() -> None:
    """Data on one side of the value that every lambda maps to 0 (1 for Box-Cox, 0 for Yeo-Johnson) have one bound."""
    assert lambda_bounds.lambda_range(BOX_COX, 1.0, 1.0, 5.0) == (-math.inf, math.inf)
    assert lambda_bounds.lambda_range(YEO_JOHNSON, 0.0, 0.0, 5.0) == (-math.inf, math.inf)
    low, high = lambda_bounds.lambda_range(BOX_COX, 0.2, 0.9, 5.0)
    assert (low > -math.inf, high) == (True, math.inf)
    low, high = lambda_bounds.lambda_range(YEO_JOHNSON, -4.0, -1.0, 5.0)
    assert (low > -math.inf, high) == (True, math.inf)
