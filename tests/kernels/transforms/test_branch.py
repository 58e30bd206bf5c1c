"""The one-branch family b_m(a) = (e^(m a) - 1)/m and its inverse, compared with mpmath."""

from __future__ import annotations

import math

import mpmath
import numba
import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerkern._jit import JIT_DISABLED
from powerkern.kernels.transforms import branch as b

STRIDE = 4 if JIT_DISABLED else 1
MS = [
    0.0,
    5e-324,
    -1e-310,
    1e-300,
    -1e-100,
    1e-32,
    -1e-20,
    1e-9,
    0.1,
    -0.5,
    1.0,
    2.0,
    -3.0,
    17.0,
    -361.0,
    1e5,
    -1e20,
    1e200,
    -1e290,
]


def digits_for(m):
    """Return a context with enough precision for m: 400 bits, or 2,400 if |m| is tiny or huge."""
    return mpmath.workprec(2400 if 0.0 < abs(m) < 1e-20 or abs(m) > 1e20 else 400)


@numba.njit
def jitted_branch(a, m):
    """Return b_m(a) as the transforms compute it: with m scaled up by 2**1000 if |m| < 2**-100."""
    if a != a or m != m:
        return math.nan
    if abs(m * a) < b.LINEAR or m == 0.0:
        return a
    if abs(a) == math.inf:
        return -1.0 / m if m * a < 0.0 else a
    c = 2.0**1000 if abs(m) < 2.0**-100 else 1.0
    e = b.exponent(m * c)
    t, t_lo = b.dd_mul(a / c, 0.0, e.m)
    return b.branch_of_product(t, t_lo, e) * c


def arguments(m, n=60):
    """Return values of `a` as Python floats: all magnitudes, m*a of order 1, and results near overflow."""
    rng = np.random.default_rng(11)
    sign = rng.choice([-1.0, 1.0], n)
    parts = [sign * 10.0 ** rng.uniform(-323.0, 308.0, n), sign * 10.0 ** rng.uniform(-3.0, 3.0, n)]
    if m != 0.0:
        overflow = 709.78 + max(math.log(abs(m)), -600.0)
        products = [
            rng.uniform(-3.0, 3.0, n),
            rng.uniform(-800.0, 800.0, n),
            rng.uniform(overflow - 1.0, overflow + 0.2, n),
        ]
        with np.errstate(over="ignore"):
            parts.extend(t / m for t in products)
    a = np.concatenate(parts)
    with np.errstate(over="ignore"):
        moderate = np.abs(m * a) < 1e5  # beyond, mpmath takes its time, for infinities and -1/m
    return a[np.isfinite(a) & moderate][::STRIDE].tolist()


@pytest.mark.parametrize("m", MS)
def test_branch_is_finite_and_within_two_ulp_wherever_representable(m):
    with digits_for(m):
        for a in arguments(m):
            assert oracles.error_in_ulp(jitted_branch(a, m), oracles.branch(a, m)) < 2.0


@pytest.mark.parametrize(
    "a, m, expected",
    [
        (0.0, 3.0, 0.0),
        (math.inf, 2.0, math.inf),
        (math.inf, 0.0, math.inf),
        (math.inf, -2.0, 0.5),
        (-math.inf, 2.0, -0.5),
        (-math.inf, 0.0, -math.inf),
        (-math.inf, -2.0, -math.inf),
        (math.nan, 1.0, math.nan),
        (math.nan, 0.0, math.nan),
        (1.0, math.nan, math.nan),
    ],
)
def test_branch_at_the_ends(a, m, expected):
    np.testing.assert_equal(jitted_branch(a, m), expected)


@given(st.floats(-700.0, 700.0), st.floats(-700.0, 700.0), st.floats(-20.0, 20.0))
def test_branch_is_monotone(a1, a2, m):
    low, high = sorted((a1, a2))
    y_low, y_high = jitted_branch(low, m), jitted_branch(high, m)
    assert y_low <= y_high or y_low - y_high <= 4e-16 * abs(y_high)


@given(st.floats(-1e5, 1e5))
def test_two_minus_lambda_keeps_what_rounding_loses(lmbda):
    upper, lower = b.exponent_pair(lmbda)
    with mpmath.workprec(2400):
        check_exponents(lmbda, upper, lower)


def check_exponents(lmbda, upper, lower):
    if abs(lmbda) >= 2.0**-100:
        assert (upper.m, upper.m_lo) == (lmbda, 0.0)
    if abs(2.0 - lmbda) >= 2.0**-100:
        assert mpmath.mpf(lower.m) + mpmath.mpf(lower.m_lo) == 2 - mpmath.mpf(lmbda)
    for e in (upper, lower):
        inverse = (mpmath.mpf(e.inverse) + mpmath.mpf(e.inverse_lo)) * mpmath.mpf(e.unit)
        assert abs(float(inverse * (mpmath.mpf(e.m) + mpmath.mpf(e.m_lo)) - 1)) < 2.0**-100
    assert (upper.unit, upper.rounder, upper.t_min, upper.t_max) == (
        lower.unit,
        lower.rounder,
        lower.t_min,
        lower.t_max,
    )


@given(st.floats(-1e5, 1e5))
def test_lambda_minus_one_is_exact(lmbda):
    power, power_lo = b.lambda_minus_one_dd(lmbda)
    with mpmath.workprec(2400):
        # also for |lambda| down to 2**-1074, where the tail is lambda itself
        assert mpmath.mpf(power) + mpmath.mpf(power_lo) == mpmath.mpf(lmbda) - 1
