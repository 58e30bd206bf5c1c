"""Yeo-Johnson transform, inverse, derivative and standardised loops, compared with mpmath and scipy.special."""

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
from powerkern.kernels.results import DIVISOR, INTERCEPT, LMBDA, LOG_FACTOR, N_RESULTS, REF, SLOPE
from powerkern.kernels.transforms import elementwise, gather
from powerkern.kernels.transforms import yeojohnson as yj
from powerkern.kernels.transforms.family import FORWARD_STANDARDIZED, INVERSE_STANDARDIZED, YEO_JOHNSON

#: points per kind, sign and lambda
N = 2 if JIT_DISABLED else 8
EPS = 2.0**-53
LARGEST = sys.float_info.max
LMBDAS = np.concatenate(
    [
        [0.0, 1.0, 2.0, 0.5, -1.0, -2.0, 3.0, -0.3, 3.9, 4.1, -1.9, -2.1, 0.125, 0.1249, 1.0 + 1e-15, 2.0 - 1e-15],
        [20.0, -361.0, 1e5, -1e5, 395285.0, 2.0000001],
        [5e-324, 1e-310, 1e-300, -1e-100, 1e-32, 1e-20, -1e-20, 1e-17, 1e-12, -1e-8, 1e-3],
        np.random.default_rng(31).normal(size=6) * 3.0,
    ]
)


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

    def loop(x, lmbda, ref, a, b, log_factor, out):
        fit = np.zeros((1, N_RESULTS))
        fit[0, [LMBDA, REF, SLOPE, INTERCEPT, LOG_FACTOR]] = lmbda, ref, a, b, log_factor
        fit[0, DIVISOR] = 1.0
        block = np.array([x])
        gather.APPLY[YEO_JOHNSON, direction](block, fit, np.zeros(1, np.int64))
        out[:] = block[0]

    return loop


yeojohnson_standardized = by_column(FORWARD_STANDARDIZED)
yeojohnson_unstandardized = by_column(INVERSE_STANDARDIZED)


def numbers(lmbda):
    """Return data of both signs: of all magnitudes, near 0, and such that the power is near overflow or underflow."""
    rng = np.random.default_rng(32)
    parts = [
        rng.choice([-1.0, 1.0], 2 * N) * 10.0 ** rng.uniform(-323.0, 308.0, 2 * N),
        rng.choice([-1.0, 1.0], 2 * N) * 10.0 ** rng.uniform(-20.0, 2.0, 2 * N),
        np.array([0.0, 5e-324, -5e-324, 1e-310, LARGEST, -LARGEST, math.sqrt(2.0) - 1.0, math.sqrt(0.5) - 1.0]),
    ]
    for m, sign in ((lmbda, 1.0), (2.0 - lmbda, -1.0)):
        if abs(m) > 1e-3:
            overflow = 709.78 + math.log(abs(m))
            products = [
                rng.uniform(-712.0, 712.0, N),
                rng.uniform(-2.0, 2.0, N),
                rng.uniform(overflow - 1.0, overflow + 0.1, N),
            ]
            with np.errstate(over="ignore", under="ignore"):
                sizes = np.expm1(np.concatenate(products) / m)
            parts.append(sign * sizes[sizes > 0.0])
    x = np.concatenate(parts)
    return x[np.abs(x) < math.inf]


@pytest.mark.parametrize("lmbda", LMBDAS)
def test_yeojohnson_is_within_two_ulp(lmbda):
    x = numbers(lmbda)
    exact = [oracles.power_transform("yeo-johnson", v, lmbda) for v in x]
    got = applied(elementwise.yeojohnson_array, x, lmbda)
    assert max(oracles.error_in_ulp(y, value) for y, value in zip(got, exact, strict=True)) < 1.5


@pytest.mark.parametrize("lmbda", [0.125, 0.126, 0.1275, 0.14, -0.126, -0.15, 1.87, 2.126])
def test_inverse_for_exponents_that_magnify_the_error_of_the_logarithm(lmbda):
    """At these lambdas the inverse must use the low part of an extended logarithm."""
    rng = np.random.default_rng(34)
    m, sign = (lmbda, 1.0) if abs(lmbda) < 1.0 else (2.0 - lmbda, -1.0)
    u = 2.0 ** (math.copysign(1.0, m) * rng.integers(0, 80, 20 * N)) * rng.uniform(0.7, 1.42, 20 * N)
    y = sign * abs((u - 1.0) / m)
    y = y[(m > 0.0) | (abs(m * y) < 1.0)]
    exact = [oracles.inverse_power_transform("yeo-johnson", float(v), lmbda) for v in y]
    got = applied(elementwise.inv_yeojohnson_array, y, lmbda)
    assert max(oracles.error_in_ulp(x, value) for x, value in zip(got, exact, strict=True)) < 1.5


@pytest.mark.parametrize("lmbda", LMBDAS)
def test_yeojohnson_dx_is_within_two_ulp(lmbda):
    x = numbers(lmbda)
    exact = [oracles.power_transform_slope("yeo-johnson", v, lmbda) for v in x]
    with np.errstate(all="ignore"):  # plain Python
        got = [jitted_yeojohnson(v, lmbda)[2] for v in x]
    assert max(oracles.error_in_ulp(y, value) for y, value in zip(got, exact, strict=True)) < 1.5


def peer_inverse(y, lmbda):
    m = np.where(y < 0.0, 2.0 - lmbda, lmbda)
    with np.errstate(all="ignore"):
        x = special.inv_boxcox1p(np.abs(y), m)
    return np.where(y < 0.0, -x, x)


@pytest.mark.parametrize("lmbda", LMBDAS)
def test_inv_yeojohnson_is_within_two_ulp_or_as_good_as_scipy(lmbda):
    """Errors are at most 2 ulp, or else no larger than those of an inverse composed of SciPy's functions."""
    rng = np.random.default_rng(33)
    y = [
        float(v) for v in (oracles.power_transform("yeo-johnson", x, lmbda) for x in numbers(lmbda)) if abs(v) < LARGEST
    ]
    y.extend(rng.choice([-1.0, 1.0], N) * 10.0 ** rng.uniform(-300.0, 308.0, N))
    for m, sign in ((lmbda, 1.0), (2.0 - lmbda, -1.0)):
        if m < -1e-300:
            y.extend(sign * (-1.0 + 10.0 ** rng.uniform(-15.0, 0.0, N)) / m)
    lmbda = float(lmbda)
    y = np.array([v for v in map(float, y) if (2.0 - lmbda if v < 0.0 else lmbda) * abs(v) != -1.0])  # see below
    got, peer = applied(elementwise.inv_yeojohnson_array, y, lmbda), peer_inverse(y, lmbda)
    for v, x, other in zip(y, got, peer, strict=True):
        exact = oracles.inverse_power_transform("yeo-johnson", v, lmbda)
        error = oracles.error_in_ulp(x, exact)
        assert error <= 2.0 or error <= oracles.error_in_ulp(other, exact)


@numba.njit
def jitted_yeojohnson(x, lmbda):
    return yj.yeojohnson(x, lmbda), yj.inv_yeojohnson(x, lmbda), yj.yeojohnson_dx(x, lmbda)


@pytest.mark.parametrize(
    "x, lmbda, y, slope",
    [
        (0.0, 0.7, 0.0, 1.0),
        (-0.0, 0.7, -0.0, 1.0),
        (math.inf, 0.5, math.inf, 0.0),
        (math.inf, 0.0, math.inf, 0.0),
        (math.inf, -0.5, 2.0, 0.0),
        (math.inf, 1.0, math.inf, 1.0),
        (math.inf, 3.0, math.inf, math.inf),
        (-math.inf, 0.5, -math.inf, math.inf),
        (-math.inf, 2.0, -math.inf, 0.0),
        (-math.inf, 2.5, -2.0, 0.0),
        (math.nan, 0.5, math.nan, math.nan),
        (1.0, math.nan, math.nan, math.nan),
    ],
)
def test_ends_of_the_domain(x, lmbda, y, slope):
    for got in (applied(elementwise.yeojohnson_array, [x], lmbda)[0], jitted_yeojohnson(x, lmbda)[0]):
        np.testing.assert_equal(got, y)  # tells -0 from 0
    np.testing.assert_equal(jitted_yeojohnson(x, lmbda)[2], slope)


@pytest.mark.parametrize(
    "y, lmbda, expected",
    [
        (0.0, 0.7, 0.0),
        (-0.0, 0.7, -0.0),
        (2.0, -0.5, math.inf),
        (-2.0, 2.5, -math.inf),
        (2.0000001, -0.5, math.nan),
        (-2.0000001, 2.5, math.nan),
        (10.0, -0.1, math.inf),  # 0.1 is a little more than 1/10: at the end by rounding
        (math.inf, 0.5, math.inf),
        (math.inf, 0.0, math.inf),
        (math.inf, -0.5, math.nan),
        (-math.inf, 0.5, -math.inf),
        (-math.inf, 2.0, -math.inf),
        (-math.inf, 2.5, math.nan),
        (math.nan, 0.5, math.nan),
        (1.0, math.nan, math.nan),
    ],
)
def test_ends_of_the_range(y, lmbda, expected):
    for got in (applied(elementwise.inv_yeojohnson_array, [y], lmbda)[0], jitted_yeojohnson(y, lmbda)[1]):
        np.testing.assert_equal(got, expected)


LOOPS = [elementwise.yeojohnson_array, elementwise.inv_yeojohnson_array]


@pytest.mark.parametrize("size", [0, 1, 7, 8, 511, 512, 513, 1027])
@pytest.mark.parametrize("lmbda", [0.7, 9.0])
@pytest.mark.parametrize("which", range(2))
def test_loops_agree_with_kernels_at_any_length_and_in_place(which, lmbda, size):
    loop, x = LOOPS[which], np.random.default_rng(34).normal(size=size)
    one_by_one = [jitted_yeojohnson(v, lmbda)[which] for v in x]
    y = applied(loop, x, lmbda)
    np.testing.assert_allclose(y, one_by_one, rtol=4 * EPS)
    np.testing.assert_array_equal(y[-3:], applied(loop, x[-3:], lmbda))  # whatever the position
    loop(x, lmbda, x)
    np.testing.assert_array_equal(x, y)


@given(st.floats(-1e300, 1e300), st.integers(-64, 96))
def test_transform_of_mirrored_values_is_mirrored(x, sixteenths):
    lmbda = sixteenths / 16.0
    y, _, slope = jitted_yeojohnson(x, lmbda)
    mirrored, _, mirrored_slope = jitted_yeojohnson(-x, 2.0 - lmbda)
    assert y == -mirrored
    assert slope == mirrored_slope


@given(st.floats(-1e300, 1e300), st.floats(-3.0, 5.0))
def test_inverse_returns_the_values(x, lmbda):
    y = jitted_yeojohnson(x, lmbda)[0]
    assume(math.isfinite(y))
    # effect of an ulp of y on x: d psi/dx = (1 + |x|)**(m - 1)
    m = 2.0 - lmbda if x < 0.0 else lmbda
    exponent = (1.0 - m) * math.log1p(abs(x))
    assume(exponent < 700.0)
    worth = abs(y) * math.exp(exponent)
    assume(worth * EPS < 1e-3 * (1.0 + abs(x)))
    smallest = 5e-324
    assert abs(jitted_yeojohnson(y, lmbda)[1] - x) <= 4.0 * EPS * (abs(x) + worth) + smallest


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300), st.floats(-3.0, 5.0))
def test_transform_is_monotone(x1, x2, lmbda):
    low, high = sorted((x1, x2))
    y_low, y_high = jitted_yeojohnson(low, lmbda)[0], jitted_yeojohnson(high, lmbda)[0]
    assert y_low <= y_high or y_low - y_high <= 4.0 * EPS * abs(y_high)


# --- standardised -------------------------------------------------------------------------------------


def columns(n=25):
    """Yield columns by name, of one sign and of both: tight, extreme, and spanning the range of float64."""
    rng = np.random.default_rng(35)
    yield "zeros and ones", np.arange(n) % 2.0
    yield "years", rng.integers(1990, 2020, n).astype(float)
    yield "tight at 1e4", 1e4 + rng.uniform(-1e-3, 1e-3, n)
    yield "tight at -1", -1.0 + rng.uniform(-1e-10, 1e-10, n)
    yield "lognormal", rng.lognormal(sigma=2.0, size=n)
    yield "negative", -rng.lognormal(sigma=2.0, size=n)
    yield "huge", 10.0 ** rng.uniform(290.0, 307.0, n)
    yield "up to the largest", np.append(10.0 ** rng.uniform(-20.0, 300.0, n), [1e307, 1.7e308])
    yield "tiny of both signs", rng.normal(size=n) * 1e-300
    yield "normal", rng.normal(size=n)
    yield "both signs, wide", rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-5.0, 300.0, n)


STANDARDIZED_LMBDAS = [-361.0, 395285.0, -14426.0, 0.5, -0.5, 0.0, 1.0, 2.0, 1e-20, 1e-9, -20.0, 50.0, 5.5]


def exponent(x, lmbda):
    return mpmath.mpf(lmbda) if x >= 0 else 2 - mpmath.mpf(lmbda)


def reference(x, lmbda):
    """Return `ref` and `log_factor` for a column, chosen as the docstring of the loops prescribes."""
    if (x >= 0.0).all() or (x <= 0.0).all():
        sign = 1.0 if (x >= 0.0).all() else -1.0
        sizes = np.abs(x)
        ref = sign * float(sizes.max() if exponent(sign, lmbda) > 0 else sizes.min())
        return (ref, 0.0)
    return 0.0, float(max(0, *(exponent(v, lmbda) * mpmath.log1p(abs(mpmath.mpf(float(v)))) for v in x)))


def scaled_differences(x, lmbda, ref, log_factor):
    """Return e^-S (psi(x) - psi(ref)) for each x, and the log-scale S.

    S is ln(1 + |ref|) times the exponent for the sign of `ref`, or `log_factor` if `ref` is 0.
    """
    size, m = abs(mpmath.mpf(ref)), exponent(ref, lmbda)
    shift = m * mpmath.log1p(size) if ref else mpmath.mpf(log_factor)
    factor = mpmath.exp(-shift)
    origin = oracles.power_transform("yeo-johnson", ref, lmbda)
    values = []
    for v in x:
        if ref and (v < 0.0) == (ref < 0.0):  # the same, for a moderate number of digits
            d = mpmath.log((1 + abs(mpmath.mpf(float(v)))) / (1 + size))
            values.append(math.copysign(1.0, ref) * oracles.branch(d, m))
        else:
            values.append(factor * (oracles.power_transform("yeo-johnson", v, lmbda) - origin))
    return values, shift


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
    ref, log_factor = reference(x, lmbda)
    values, shift = scaled_differences(x, lmbda, ref, log_factor)
    a, b = slope_and_intercept(values)
    z = applied(yeojohnson_standardized, x, lmbda, ref, a, b, log_factor)
    unit = EPS * (np.abs(z).max() + abs(b)) * (1.0 if ref else 1.0 + log_factor)
    assert distances(z, a, b, values).max() < 16.0 * unit
    back = applied(yeojohnson_unstandardized, z, lmbda, ref, a, b, log_factor)
    assert not np.isnan(back).any()
    known = np.abs(back) < 1e307  # elsewhere the effect of rounding z exceeds the range of float64
    again, _ = scaled_differences(back[known], lmbda, ref, log_factor)
    # the rounding of x and of ln(1 + |x|), by dz/d ln(1 + |x|)
    logs = [mpmath.log1p(abs(mpmath.mpf(v))) for v in map(float, back[known])]
    steps = [
        float(
            min(a * (size + mpmath.log1p(abs(mpmath.mpf(ref)))) * mpmath.exp(exponent(v, lmbda) * size - shift), 1e300)
        )
        for v, size in zip(back[known], logs, strict=True)
    ]
    assert (distances(z[known], a, b, again) < 16.0 * unit + 4.0 * EPS * np.array(steps)).all()
    if "tight" in name:
        np.testing.assert_allclose(back, x, rtol=4 * EPS)


@pytest.mark.parametrize("ref", [2.0, -2.0])
@pytest.mark.parametrize("lmbda", [-0.5, 0.0, 0.5, 1.0, 2.0, 2.5, 6.0, 1e-20])
def test_values_of_the_other_sign_than_the_reference(ref, lmbda):
    x = np.array([-50.0, -3.0, -1.0, -0.1, -1e-8, 0.0, 1e-8, 0.1, 1.0, 3.0, 50.0])
    a, b = 0.8, 0.3
    values, _ = scaled_differences(x, lmbda, ref, 0.0)
    z = applied(yeojohnson_standardized, x, lmbda, ref, a, b, 0.0)
    # 50 is beyond the reference, t = m ln((1 + |x|)/(1 + |ref|)) > 0: there e^t is off by eps*t
    unit = EPS * np.array([1.0 + float(abs(v)) for v in values]) * (1.0 + 3.0 * abs(lmbda))
    assert (distances(z, a, b, values) < 16.0 * unit).all()
    back = applied(yeojohnson_unstandardized, z, lmbda, ref, a, b, 0.0)
    again, _ = scaled_differences(back, lmbda, ref, 0.0)
    assert (distances(z, a, b, again) < 32.0 * unit).all()


def test_standardized_values_at_the_ends():
    x = [-math.inf, math.inf, math.nan]
    inf, nan = math.inf, math.nan
    for ref, log_factor in ((0.0, 0.0), (2.0, 0.0), (-2.0, 0.0)):
        z = applied(yeojohnson_standardized, x, 0.5, ref, 3.0, 1.0, log_factor)
        np.testing.assert_array_equal(z, [-inf, inf, nan])
        back = applied(yeojohnson_unstandardized, z, 0.5, ref, 3.0, 1.0, log_factor)
        np.testing.assert_array_equal(back, [-inf, inf, nan])
    # bounded above by 1/0.5, below by -1/0.5
    np.testing.assert_allclose(applied(yeojohnson_standardized, x, -0.5, 0.0, 3.0, 1.0, 0.0), [-inf, 7.0, nan])
    np.testing.assert_allclose(applied(yeojohnson_standardized, x, 2.5, 0.0, 3.0, 1.0, 0.0), [-5.0, inf, nan])
    z = [-5.1, 7.1, inf, -inf, nan]
    upper = applied(yeojohnson_unstandardized, z, -0.5, 0.0, 3.0, 1.0, 0.0)
    np.testing.assert_array_equal(np.isnan(upper), [False, True, True, False, True])
    lower = applied(yeojohnson_unstandardized, z, 2.5, 0.0, 3.0, 1.0, 0.0)
    np.testing.assert_array_equal(np.isnan(lower), [True, False, False, True, True])


@pytest.mark.parametrize("ref", [0.0, 3.0, -3.0])
def test_standardized_in_place_has_the_same_bits(ref):
    x = np.random.default_rng(36).normal(size=1027)
    z = applied(yeojohnson_standardized, x, 0.3, ref, 1.5, 0.25, 1.0)
    yeojohnson_standardized(x, 0.3, ref, 1.5, 0.25, 1.0, x)
    np.testing.assert_array_equal(x, z)
    back = applied(yeojohnson_unstandardized, z, 0.3, ref, 1.5, 0.25, 1.0)
    yeojohnson_unstandardized(x, 0.3, ref, 1.5, 0.25, 1.0, x)
    np.testing.assert_array_equal(x, back)


@pytest.mark.parametrize("lmbda", STANDARDIZED_LMBDAS)
@pytest.mark.parametrize("name, x", list(columns()))
def test_standardized_does_not_depend_on_neighboring_values(name, x, lmbda):
    """NaN, an infinite value or -ref changes the code path of its block, but not the bits of other values."""
    for ref in (0.0, float(np.median(x))):
        z = applied(yeojohnson_standardized, x, lmbda, ref, 1.5, 0.25, 0.0)
        for stranger in (math.nan, math.inf, -math.inf, -ref):
            beside = applied(yeojohnson_standardized, [*x, stranger], lmbda, ref, 1.5, 0.25, 0.0)
            np.testing.assert_array_equal(beside[:-1], z)


@pytest.mark.parametrize("lmbda", LMBDAS)
def test_raw_values_do_not_depend_on_what_stands_beside(lmbda):
    x = np.random.default_rng(37).normal(size=100) * 10.0
    for loop in (elementwise.yeojohnson_array, elementwise.inv_yeojohnson_array):
        y = applied(loop, x, lmbda)
        for stranger in (math.nan, math.inf, -math.inf, 1e305):
            np.testing.assert_array_equal(applied(loop, [*x, stranger], lmbda)[:-1], y)
        x = y
