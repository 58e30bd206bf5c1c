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


# --- helpers of the transforms ------------------------------------------------------------------------


@pytest.mark.parametrize("m", [0.0, 0.3, 0.5, 0.9, 1.0, 1.5, 2.0, -3.0, 1e10, -(2.0**964), 1e290])
def test_the_unit_of_an_exponent_is_a_power_of_two_below_its_inverse(m):
    """The unit is 2^-(1 + j) with the smallest j >= 0 such that |m| < 2^j. Beyond t_min and t_max, b_m is constant."""
    e = b.exponent(m)
    j = max(0, math.frexp(m)[1]) if m else 0
    assert e.unit == 2.0 ** -(1 + j)
    assert e.t_min == pytest.approx((j - 1020) * math.log(2.0), rel=1e-14)
    assert e.t_max == pytest.approx((j + 1024.4) * math.log(2.0), rel=1e-14)
    if m:
        assert b.branch_of_product(e.t_min - 100.0, 0.0, e) == b.branch_of_product(e.t_min, 0.0, e) == -1.0 / m
        with np.errstate(over="ignore"):
            assert b.branch_of_product(e.t_max + 1.0, 0.0, e) == math.copysign(math.inf, m)


@pytest.mark.parametrize("m", [2.0**-101, 2.0**-100, -(2.0**-101), 0.0])
def test_tiny_exponents_are_replaced(m):
    e = b.exponent(m)
    assert (e.m, e.m_lo) == (m if abs(m) >= 2.0**-100 else 2.0**-100, 0.0)
    assert (e.inverse * e.unit, e.inverse_lo) == (2.0**100, 0.0)


@pytest.mark.parametrize("m", [0.25, -0.9, 3.0, -40.0, 1e200])
@pytest.mark.parametrize("steepest", [0.3, 1.0, 2.5, 40.0])
def test_the_largest_ratio_keeps_powers_in_range(m, steepest):
    e = b.exponent(m)
    expected = min(680.0, -1.0 - e.t_min) / max(1.0, steepest)
    found = b.largest_ratio(e, steepest)
    assert math.log(found) == pytest.approx(expected, rel=1e-13)
    assert found < math.exp(expected)


@pytest.mark.parametrize(("m", "expected"), [(4.0, True), (-4.0, True), (4.000001, False), (-5.0, False), (0.0, True)])
def test_the_cheaper_logarithm_suffices_forwards_for_moderate_exponents(m, expected):
    assert b.moderate_forwards(m) is expected


@pytest.mark.parametrize(
    ("m", "expected"),
    [(0.0, 12.0), (0.01, 12.0), (-0.05, 6.8), (0.1, 3.4), (0.1249, 0.34 / 0.1249), (0.125, math.inf), (-1.0, math.inf)],
)
def test_the_cheaper_logarithm_suffices_for_the_inverse_near_zero_or_for_larger_exponents(m, expected):
    assert b.moderate_log(m) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("m", "expected"), [(-2.0, 0.5), (-0.25, 4.0), (0.0, math.inf), (3.0, math.inf)])
def test_limit_of_the_branch(m, expected):
    assert b.psi_limit(m) == expected


@pytest.mark.parametrize("m", [-200.0, -1.5, -0.1, 0.0, 0.1, 1.5, 200.0])
@pytest.mark.parametrize(("low", "high"), [(-700.0, 700.0), (-3.0, 0.01), (-0.02, 5.0)])
def test_the_invertible_interval_has_powers_that_keep_digits(m, low, high):
    """The interval is the range of b_m(a) over low <= a <= high with e^-27 <= e^(m a) <= e^680."""
    if m:
        first, last = sorted((-27.0 / m, 680.0 / m))
        low, high = max(low, first), min(high, last)
    expected = [math.expm1(m * a) / m if m else a for a in (low, high)]
    np.testing.assert_allclose(b.invertible_interval(m, low, high), expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("low", "high", "has_ordinary", "expected"),
    [
        (-2.0, 3.0, True, (-2.0, 3.0)),
        (3.0, 3.0, True, (3.0, 3.0)),
        (-2.0, 3.0, False, (math.inf, -math.inf)),
        (3.0, 2.0, True, (math.inf, -math.inf)),
        (math.nan, 2.0, True, (math.inf, -math.inf)),
        (-math.inf, math.inf, True, (-1e300, 1e300)),
        (-1e301, 1e301, True, (-1e300, 1e300)),
    ],
)
def test_bounds_are_finite_or_leave_nothing_between_them(low, high, has_ordinary, expected):
    c = np.full((4, 3), 7.0)
    b.write_bounds(low, high, has_ordinary, c, 1)
    assert tuple(c[:2, 1]) == expected
    assert (np.delete(c[:2], 1, axis=1) == 7.0).all()
    assert (c[2:] == 7.0).all()


def test_constants_that_depend_on_the_sign_are_in_pairs_of_rows():
    c = np.full((5, 2), 7.0)
    b.write_pair(2, 1.5, -2.5, c, 1)
    assert c[:, 1].tolist() == [7.0, 7.0, 1.5, -2.5, 7.0]
    assert (c[:, 0] == 7.0).all()
    assert (b.select_by_sign(c, 2, 1, False), b.select_by_sign(c, 2, 1, True)) == (1.5, -2.5)


def test_the_fields_of_a_fit_are_read_in_order():
    fields = np.arange(10.0).reshape(5, 2)
    assert b.read_fields(fields, 1) == b.Fit(lmbda=1.0, ref=3.0, slope=5.0, intercept=7.0, log_factor=9.0)


@pytest.mark.parametrize("m", [0.0, 1e-40, -1e-25, 0.05, -0.5, 1.0, -3.0, 361.0, -1e5, 1e5])
def test_inverses_are_double_double_numbers(m):
    """Inverses, the sums of two float64, are accurate to 62 bits; this includes products m y that overflow."""
    e = b.exponent(m)
    ys = [0.0, 1e-300, -1e-300, 0.3, -0.3, 5.0, -5.0, 1e10, -1e10, 1e305]
    with mpmath.workprec(400):
        for y in ys:
            if m * y <= -1.0 or (abs(m) < 2.0**-100 and abs(y) > 1500.0):  # beyond the logs of float64
                continue
            a, a_lo = b.inverse_branch(y, m, 0.0, e)
            exact = mpmath.log1p(mpmath.mpf(m) * y) / mpmath.mpf(m) if m else mpmath.mpf(y)
            assert abs(mpmath.mpf(a) + mpmath.mpf(a_lo) - exact) <= 2.0**-62 * abs(exact)
            if abs(m * y) < 1e300:
                quick, quick_lo = b.inverse_branch_unchecked(y, m, 0.0, e)
                # the error 2^-57 (1 + |ln u|) of the cheaper logarithm is divided by m
                tolerance = 2.0**-56 * (1 + abs(exact * m)) / abs(m) if abs(m * y) > b.LINEAR else 0.0
                assert abs(mpmath.mpf(quick) + mpmath.mpf(quick_lo) - exact) <= tolerance + 2.0**-62 * abs(exact)


def test_the_tail_of_an_exponent_counts():
    m, m_lo = 2.0**-30 - 2.0**-52, 2.0**-90
    e = b._make_exponent(m, m_lo, 0.0)
    with mpmath.workprec(400):
        exponent = mpmath.mpf(m) + m_lo
        for y in (3.0, -2.0, 1e9):
            exact = mpmath.log1p(exponent * y) / exponent
            a, a_lo = b.inverse_branch(y, m, m_lo, e)
            assert abs(mpmath.mpf(a) + mpmath.mpf(a_lo) - exact) <= 2.0**-62 * abs(exact)
        t, t_lo = b.dd_mul_dd(1.3, 2.0**-60, m, m_lo)
        assert abs(mpmath.mpf(t) + t_lo - (mpmath.mpf(1.3) + 2.0**-60) * exponent) <= 2.0**-104 * abs(t)
        t, t_lo = b.dd_mul(1.3, 2.0**-60, m)
        assert abs(mpmath.mpf(t) + t_lo - (mpmath.mpf(1.3) + 2.0**-60) * m) <= 2.0**-104 * abs(t)


@pytest.mark.parametrize(
    ("y", "m", "expected"),
    [
        (-1.0, 1.0, -math.inf),
        (-0.5, 2.0, -math.inf),
        (0.5, -2.0, math.inf),
        (-1.0, 2.0, math.nan),
        (1.0, -2.0, math.nan),
        (math.inf, 2.0, math.inf),
        (-math.inf, -2.0, -math.inf),
        (math.inf, 0.0, math.inf),
        (-math.inf, 0.0, -math.inf),
        (math.nan, 1.0, math.nan),
        (2.5, 0.0, 2.5),
    ],
)
def test_inverses_at_the_ends(y, m, expected):
    with np.errstate(all="ignore"):
        found = b.inverse_branch(np.float64(y), m, 0.0, b.exponent(m))[0]
    np.testing.assert_equal(float(found), expected)
