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
