"""Box-Cox transform, inverse, derivative and standardised loops, compared with mpmath and scipy.special."""

from __future__ import annotations

import math
import sys

import mpmath
import numba
import numpy as np
import oracles
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import special

from powerkern._jit import JIT_DISABLED
from powerkern.kernels.results import DIVISOR, INTERCEPT, LMBDA, N_RESULTS, REF, SLOPE
from powerkern.kernels.transforms import boxcox as bc
from powerkern.kernels.transforms import elementwise, gather
from powerkern.kernels.transforms.family import BOX_COX, FORWARD_STANDARDIZED, INVERSE_STANDARDIZED

#: points per kind and lambda
N = 3 if JIT_DISABLED else 12
EPS = 2.0**-53
LARGEST = sys.float_info.max
LMBDAS = np.concatenate(
    [
        [0.0, 1.0, 2.0, 0.5, -1.0, -2.0, 3.0, -0.3, 3.9, 4.1, -4.0, 0.125, 0.1249, 1.0 + 1e-15],
        [20.0, -361.0, 1e5, -1e5, 395285.0],
        [5e-324, 1e-310, 1e-300, -1e-100, 1e-32, 1e-20, -1e-20, 1e-17, 1e-12, -1e-8, 1e-3],
        np.random.default_rng(21).normal(size=6) * 3.0,
    ]
)  # fmt: skip


@pytest.fixture(autouse=True)
def many_digits():
    with mpmath.workprec(1300):
        yield


def applied(loop, x, *parameters):
    x = np.array(x, dtype=float)
    out = np.empty_like(x)
    loop(x, *parameters, out)
    return out


def by_column(direction):
    """Return a loop that applies one direction of the columns' transform, with the arguments of loops for vectors."""

    def loop(x, lmbda, ref, a, b, out):
        fit = np.zeros((1, N_RESULTS))
        fit[0, [LMBDA, REF, SLOPE, INTERCEPT, DIVISOR]] = lmbda, ref, a, b, 1.0
        block = np.array([x])
        gather.APPLY[BOX_COX, direction](block, fit, np.zeros(1, np.int64))
        out[:] = block[0]

    return loop


boxcox_standardized = by_column(FORWARD_STANDARDIZED)
boxcox_unstandardized = by_column(INVERSE_STANDARDIZED)


def positives(lmbda):
    """Return positive data: of all magnitudes, near 1, and such that x^lambda is near overflow or underflow."""
    rng = np.random.default_rng(22)
    parts = [
        10.0 ** rng.uniform(-307.0, 308.0, N),
        rng.uniform(0.4, 2.5, N),
        1.0 + rng.choice([-1.0, 1.0], N) * 10.0 ** rng.uniform(-16.0, -1.0, N),
        np.array([5e-324, 1e-310, 1.0, np.nextafter(1.0, 0.0), np.nextafter(1.0, 2.0), math.sqrt(0.5), LARGEST]),
    ]
    if abs(lmbda) > 1e-3:
        overflow = 709.78 + math.log(abs(lmbda))
        products = [
            rng.uniform(-712.0, 712.0, N),
            rng.uniform(-2.0, 2.0, N),
            rng.uniform(overflow - 1.0, overflow + 0.1, N),
        ]
        with np.errstate(over="ignore", under="ignore"):
            parts.extend(np.exp(t / lmbda) for t in products)
    x = np.concatenate(parts)
    return x[(x > 0.0) & (x < math.inf)]


def assert_within_two_ulp(got, exact, peer):
    """Check that errors of `got` are at most 2 ulp, or no larger than those of `peer`, another library's results."""
    for y, value, other in zip(got, exact, peer, strict=True):
        error = oracles.error_in_ulp(y, value)
        assert error <= 2.0 or error <= oracles.error_in_ulp(other, value)


@pytest.mark.parametrize("lmbda", LMBDAS)
def test_boxcox_is_within_two_ulp(lmbda):
    x = positives(lmbda)
    exact = [oracles.power_transform("box-cox", v, lmbda) for v in x]
    errors = [
        oracles.error_in_ulp(y, value)
        for y, value in zip(applied(elementwise.boxcox_array, x, lmbda), exact, strict=True)
    ]
    assert max(errors) < 1.5


@pytest.mark.parametrize("lmbda", LMBDAS)
def test_inv_boxcox_is_within_two_ulp_or_as_good_as_scipy(lmbda):
    rng = np.random.default_rng(23)
    y = [float(v) for v in (oracles.power_transform("box-cox", x, lmbda) for x in positives(lmbda)) if abs(v) < LARGEST]
    y.extend(rng.choice([-1.0, 1.0], N) * 10.0 ** rng.uniform(-300.0, 308.0, N))
    if abs(lmbda) > 1e-300:
        y.extend((-1.0 + 10.0 ** rng.uniform(-15.0, 0.0, N)) / lmbda)
    y = np.array([v for v in map(float, y) if float(lmbda) * v != -1.0])  # the end of the range is tested below
    exact = [oracles.inverse_power_transform("box-cox", v, lmbda) for v in y]
    with np.errstate(all="ignore"):
        peer = special.inv_boxcox(y, lmbda)
    assert_within_two_ulp(applied(elementwise.inv_boxcox_array, y, lmbda), exact, peer)


@pytest.mark.parametrize("lmbda", [0.125, 0.126, 0.1275, 0.14, 0.19, -0.125, -0.126, -0.15, 0.5])
def test_inverse_for_exponents_that_magnify_the_error_of_the_logarithm(lmbda):
    """At these lambdas the inverse must use the low part of an extended logarithm; errors are below 1.3 ulp."""
    rng = np.random.default_rng(24)
    u = 2.0 ** rng.integers(-30, 80, 20 * N) * rng.uniform(0.7, 1.42, 20 * N)
    y = (u - 1.0) / lmbda
    exact = [oracles.inverse_power_transform("box-cox", float(v), lmbda) for v in y]
    got = applied(elementwise.inv_boxcox_array, y, lmbda)
    assert max(oracles.error_in_ulp(x, value) for x, value in zip(got, exact, strict=True)) < 1.3


@pytest.mark.parametrize("lmbda", LMBDAS)
def test_boxcox_dx_is_within_two_ulp(lmbda):
    x = positives(lmbda - 1.0)
    exact = [oracles.power_transform_slope("box-cox", v, lmbda) for v in x]
    with np.errstate(all="ignore"):  # plain Python
        slopes = [jitted_boxcox(v, lmbda)[2] for v in x]
    assert max(oracles.error_in_ulp(y, value) for y, value in zip(slopes, exact, strict=True)) < 1.5


@numba.njit
def jitted_boxcox(x, lmbda):
    return bc.boxcox(x, lmbda), bc.inv_boxcox(x, lmbda), bc.boxcox_dx(x, lmbda)


EDGES = [0.0, -0.0, -1.0, -5e-324, -LARGEST, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("lmbda", [2.0, 0.5, 0.0, -0.5, -2.0, 1.0, math.nan])
def test_outside_the_domain_as_scipy(lmbda):
    with np.errstate(all="ignore"):
        expected = special.boxcox(EDGES, lmbda)
    np.testing.assert_allclose(applied(elementwise.boxcox_array, EDGES, lmbda), expected, rtol=1e-15)
    np.testing.assert_array_equal(
        [jitted_boxcox(x, lmbda)[0] for x in EDGES], applied(elementwise.boxcox_array, EDGES, lmbda)
    )


@pytest.mark.parametrize(
    "y, lmbda, expected",
    [
        (-2.0, 0.5, 0.0),
        (2.0, -0.5, math.inf),
        (-10.0, 0.1, 0.0),  # 0.1 is a little more than 1/10: at the end by rounding, as boxcox(0, 0.1) is
        (-2.0000001, 0.5, math.nan),
        (2.0000001, -0.5, math.nan),
        (math.inf, 0.5, math.inf),
        (-math.inf, 0.5, math.nan),
        (math.inf, -0.5, math.nan),
        (-math.inf, -0.5, 0.0),
        (math.inf, 0.0, math.inf),
        (-math.inf, 0.0, 0.0),
        (math.nan, 0.5, math.nan),
        (1.0, math.nan, math.nan),
    ],
)
def test_inverse_at_the_ends(y, lmbda, expected):
    np.testing.assert_array_equal(applied(elementwise.inv_boxcox_array, [y], lmbda), expected)
    np.testing.assert_equal(jitted_boxcox(y, lmbda)[1], expected)


@pytest.mark.parametrize(
    "x, lmbda, expected",
    [
        (0.0, 3.0, 0.0),
        (0.0, 1.0, 1.0),
        (0.0, 0.5, math.inf),
        (math.inf, 3.0, math.inf),
        (math.inf, 1.0, 1.0),
        (math.inf, 0.5, 0.0),
        (-1.0, 2.0, math.nan),
        (math.nan, 1.0, math.nan),
        (2.0, math.nan, math.nan),
    ],
)
def test_derivative_at_the_ends(x, lmbda, expected):
    np.testing.assert_equal(jitted_boxcox(x, lmbda)[2], expected)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 511, 512, 513, 1027])
@pytest.mark.parametrize("lmbda", [0.7, 9.0])
@pytest.mark.parametrize("loop", [elementwise.boxcox_array, elementwise.inv_boxcox_array])
def test_loops_agree_with_kernels_at_any_length_and_in_place(loop, lmbda, size):
    x = np.random.default_rng(24).lognormal(size=size)
    which = [elementwise.boxcox_array, elementwise.inv_boxcox_array].index(loop)
    one_by_one = [jitted_boxcox(v, lmbda)[which] for v in x]
    y = applied(loop, x, lmbda)
    np.testing.assert_allclose(y, one_by_one, rtol=4 * EPS, atol=4 * EPS)
    np.testing.assert_array_equal(y[-3:], applied(loop, x[-3:], lmbda))  # whatever the position
    loop(x, lmbda, x)
    np.testing.assert_array_equal(x, y)


@given(st.floats(1e-300, 1e300), st.floats(-5.0, 5.0))
def test_inverse_returns_the_values(x, lmbda):
    y = jitted_boxcox(x, lmbda)[0]
    assume(math.isfinite(y))
    # effect of an ulp of y on ln x: d psi/d ln x = x**lambda
    worth = abs(y) * math.exp(min(-lmbda * math.log(x), 700.0))
    assume(worth * EPS < 1e-3)
    back = jitted_boxcox(y, lmbda)[1]
    assert abs(back - x) <= 4.0 * EPS * x * (1.0 + worth)


@given(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300), st.floats(-5.0, 5.0))
def test_transform_is_monotone(x1, x2, lmbda):
    low, high = sorted((x1, x2))
    y_low, y_high = jitted_boxcox(low, lmbda)[0], jitted_boxcox(high, lmbda)[0]
    assert y_low <= y_high or y_low - y_high <= 4.0 * EPS * abs(y_high)


# --- standardised -------------------------------------------------------------------------------------


def columns(n=25):
    """Yield positive columns by name: tight, extreme, and spanning the range of float64."""
    rng = np.random.default_rng(25)
    yield "years", rng.integers(1990, 2020, n).astype(float)
    yield "tight at 1e4", 1e4 + rng.uniform(-1e-3, 1e-3, n)
    yield "tight at 1", 1.0 + rng.uniform(-1e-10, 1e-10, n)
    yield "lognormal", rng.lognormal(sigma=2.0, size=n)
    yield "huge", 10.0 ** rng.uniform(290.0, 307.0, n)
    yield "subnormal", 10.0 ** rng.uniform(-320.0, -300.0, n)
    yield "all magnitudes", 10.0 ** rng.uniform(-300.0, 300.0, n)
    yield "up to the largest", np.append(10.0 ** rng.uniform(-300.0, 300.0, n), [1e307, 1.7e308])


STANDARDIZED_LMBDAS = [-361.0, 395285.0, -14426.0, 0.5, -0.5, 0.0, 1.0, 2.0, 1e-20, 1e-9, -20.0, 50.0, 1e5]


def centered(x, lmbda, ref):
    return [oracles.branch(mpmath.log(mpmath.mpf(float(v)) / mpmath.mpf(ref)), lmbda) for v in x]


def slope_and_intercept(values):
    """Return float64 a and b such that a v + b has mean 0 and variance 1 for the transformed values v."""
    mean = mpmath.fsum(values) / len(values)
    sd = mpmath.sqrt(mpmath.fsum((v - mean) ** 2 for v in values) / len(values))
    return float(1 / sd), float(-mean / sd)


def distances(z, a, b, values):
    """Return |z - (a v + b)| for each standardised value in `z` and its exact transformed value v in `values`."""
    return np.array([float(abs(mpmath.mpf(float(v)) - (a * y + b))) for v, y in zip(z, values, strict=True)])


@pytest.mark.parametrize("lmbda", STANDARDIZED_LMBDAS)
@pytest.mark.parametrize("name, x", list(columns()))
def test_standardized_is_finite_and_exact_and_comes_back(name, x, lmbda):
    ref = float(x.max() if lmbda > 0.0 else x.min())
    values = centered(x, lmbda, ref)
    a, b = slope_and_intercept(values)
    z = applied(boxcox_standardized, x, lmbda, ref, a, b)
    unit = EPS * (np.abs(z).max() + abs(b))
    assert distances(z, a, b, values).max() < 16.0 * unit
    back = applied(boxcox_unstandardized, z, lmbda, ref, a, b)
    assert (back > 0.0).all()
    known = (back < math.inf) & (back > 1e-307)  # elsewhere the effect of rounding z exceeds the range of float64
    again = centered(back[known], lmbda, ref)
    # the rounding of x itself, by dz/d ln x = a (x/ref)**lambda
    slopes = np.array([float(a * (1 + mpmath.mpf(lmbda) * y)) for y in again])
    assert (distances(z[known], a, b, again) < 16.0 * unit + 2.0 * EPS * slopes).all()
    if "tight" in name:
        np.testing.assert_allclose(back, x, rtol=4 * EPS)


def test_standardized_values_outside_the_domain_and_the_range():
    x = [0.0, -1.0, math.inf, math.nan]
    inf, nan = math.inf, math.nan
    np.testing.assert_array_equal(applied(boxcox_standardized, x, 0.5, 2.0, 3.0, 1.0), [-5.0, nan, inf, nan])
    np.testing.assert_array_equal(applied(boxcox_standardized, x, -0.5, 2.0, 3.0, 1.0), [-inf, nan, 7.0, nan])
    np.testing.assert_array_equal(applied(boxcox_standardized, x, 0.0, 2.0, 3.0, 1.0), [-inf, nan, inf, nan])
    z = [-5.1, 7.1, inf, -inf, nan]
    np.testing.assert_array_equal(
        applied(boxcox_unstandardized, z, 0.5, 2.0, 3.0, 1.0)[[0, 2, 3, 4]], [nan, inf, nan, nan]
    )
    np.testing.assert_array_equal(
        applied(boxcox_unstandardized, z, -0.5, 2.0, 3.0, 1.0)[[1, 2, 3, 4]], [nan, nan, 0.0, nan]
    )
    np.testing.assert_array_equal(applied(boxcox_unstandardized, z, 0.0, 2.0, 3.0, 1.0)[2:], [inf, 0.0, nan])


def test_the_end_of_the_range_comes_back_nearest_to_the_reference():
    # every year but the last is at the end: -1/lambda to rounding
    x = np.array([1990.0, 2018.0, 2019.0])
    z = applied(boxcox_standardized, x, 395285.0, 2019.0, 2.0, 0.25)
    assert z[0] == z[1]
    back = applied(boxcox_unstandardized, z, 395285.0, 2019.0, 2.0, 0.25)
    assert back[2] == 2019.0
    assert 2018.0 < back[1] < 2019.0


def test_standardized_in_place_has_the_same_bits():
    x = np.random.default_rng(26).lognormal(size=1027)
    z = applied(boxcox_standardized, x, 0.3, 2.0, 1.5, 0.25)
    boxcox_standardized(x, 0.3, 2.0, 1.5, 0.25, x)
    np.testing.assert_array_equal(x, z)
    back = applied(boxcox_unstandardized, z, 0.3, 2.0, 1.5, 0.25)
    boxcox_unstandardized(x, 0.3, 2.0, 1.5, 0.25, x)
    np.testing.assert_array_equal(x, back)


@pytest.mark.parametrize("lmbda", STANDARDIZED_LMBDAS)
@pytest.mark.parametrize("name, x", list(columns()))
def test_standardized_does_not_depend_on_neighboring_values(name, x, lmbda):
    """An invalid or subnormal value changes the code path of its block, but not the bits of other values."""
    ref = float(np.median(x))
    z = applied(boxcox_standardized, x, lmbda, ref, 1.5, 0.25)
    for stranger in (math.nan, math.inf, -1.0, 5e-324):
        beside = applied(boxcox_standardized, [*x, stranger], lmbda, ref, 1.5, 0.25)
        np.testing.assert_array_equal(beside[:-1], z)


@pytest.mark.parametrize("lmbda", LMBDAS)
def test_raw_values_do_not_depend_on_what_stands_beside(lmbda):
    x = np.random.default_rng(27).lognormal(sigma=2.0, size=100)
    for loop in (elementwise.boxcox_array, elementwise.inv_boxcox_array):
        y = applied(loop, x, lmbda)
        for stranger in (math.nan, math.inf, -1.0, 5e-324):
            np.testing.assert_array_equal(applied(loop, [*x, stranger], lmbda)[:-1], y)
        x = y


def test_standardized_is_finite_at_the_end_of_the_unchecked_range():
    """With lambda = -7e17, all values have the same finite image, although some are at the limit for unchecked code."""
    lmbda, ref = -7.455277881850583e17, 5.145969572690363e16
    x = [5.145969572690364e16, 5.145969572690365e16, 5.145969572690368e16]
    end = 1.88069e19 / abs(lmbda) - 0.0397
    np.testing.assert_allclose(applied(boxcox_standardized, x, lmbda, ref, 1.88069e19, -0.0397), end, rtol=1e-14)
