"""exp, expm1, log, log1p and their extended-precision forms compared with mpmath, compiled and in plain Python."""

from __future__ import annotations

import math
import platform
import re

import mpmath
import numba
import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerkern._jit import JIT_DISABLED, widest_vectors
from powerkern.kernels.elementary import exp, log
from powerkern.kernels.transforms.branch import BLOCK

#: step between the points that plain Python evaluates
STRIDE = 8 if JIT_DISABLED else 1
LARGEST, SMALLEST, SMALLEST_NORMAL = np.finfo(float).max, 5e-324, np.finfo(float).tiny
LN2 = math.log(2.0)
FUNCTIONS = {"exp": exp.exp, "expm1": exp.expm1, "log": log.log, "log1p": log.log1p}


def loop_of(function):
    """Return a compiled loop that applies `function` to each element; LLVM vectorises the loop as in the kernels."""

    @numba.njit(error_model="numpy", fastmath={"contract"})
    def loop(x, out):
        widest_vectors()
        for i in range(x.size):
            out[i] = function(x[i])

    return loop


# numpy scalars would warn in plain Python where compiled code silently gives inf or nan
ARRAYS = {name: np.errstate(all="ignore")(loop_of(function)) for name, function in FUNCTIONS.items()}


@pytest.fixture(autouse=True)
def many_digits():
    with mpmath.workprec(400):
        yield


def applied(name, x):
    out = np.empty_like(x)
    ARRAYS[name](x, out)
    return out


def near_multiples_of_ln2(rng, n):
    return LN2 / 2 * rng.integers(-2100, 2100, n) * (1.0 + rng.integers(-3, 4, n) * 2.0**-53)


def exponents(n, seed=1):
    """Return arguments of exp and expm1, (about 5 n,).

    They cover the whole range, [-1, 1], all magnitudes, the ends of the range reduction, underflow and overflow.
    """
    rng = np.random.default_rng(seed)
    parts = [
        rng.uniform(-745.5, 709.9, n),
        rng.uniform(-1.0, 1.0, n),
        rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-323.0, 2.8, n),
        near_multiples_of_ln2(rng, n),
        rng.uniform(-745.2, -700.0, n // 4),
        rng.uniform(709.0, 709.79, n // 4),
        rng.uniform(-40.0, -30.0, n // 4),
    ]
    x = np.concatenate(parts)[::STRIDE]
    return x[(x > -745.5) & (x < 709.9)]


def positives(n, seed=2):
    """Return positive numbers of five kinds, (about 4.5 n,).

    The kinds are numbers of all magnitudes, subnormal numbers, numbers near 1 and near powers of sqrt(2), and powers of
    2.
    """
    rng = np.random.default_rng(seed)
    parts = [
        10.0 ** rng.uniform(-323.5, 308.2, n),
        rng.uniform(0.5, 2.0, n),
        1.0 + rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-16.0, -1.0, n),
        2.0 ** (0.5 * rng.integers(-2000, 2000, n)) * (1.0 + rng.uniform(-1e-6, 1e-6, n)),
        2.0 ** rng.integers(-1074, 1024, n // 4).astype(float),
        SMALLEST * rng.integers(1, 2**52, n // 4),
        np.array([SMALLEST, SMALLEST_NORMAL, np.nextafter(1.0, 0.0), 1.0, np.nextafter(1.0, 2.0), LARGEST]),
    ]
    x = np.concatenate(parts)
    return x[x > 0.0][::STRIDE]


def above_minus_one(n, seed=3):
    """Return numbers > -1, the domain of log1p: positive numbers, numbers near -1, and both signs in (-1, 1)."""
    rng = np.random.default_rng(seed)
    parts = [
        positives(n, seed),
        -1.0 + 10.0 ** rng.uniform(-16.0, 0.0, n)[::STRIDE],
        rng.choice([-1.0, 1.0], n)[::STRIDE] * 10.0 ** rng.uniform(-323.0, -0.001, n)[::STRIDE],
    ]
    x = np.concatenate(parts)
    return x[x > -1.0]


POINTS = {"exp": exponents, "expm1": exponents, "log": positives, "log1p": above_minus_one}


@pytest.mark.parametrize("name", ARRAYS)
def test_array_functions_are_within_one_ulp(name):
    x = POINTS[name](1500)
    exact = getattr(mpmath, name)
    errors = [oracles.error_in_ulp(y, exact(mpmath.mpf(v))) for v, y in zip(x, applied(name, x), strict=True)]
    assert max(errors) < 1.0


SPECIAL = {
    "exp": [
        (0.0, 1.0), (-0.0, 1.0), (math.inf, math.inf), (-math.inf, 0.0), (SMALLEST, 1.0), (-SMALLEST, 1.0),
        (709.7827128933841, math.inf), (1e300, math.inf), (LARGEST, math.inf),
        (-745.1332191019411, SMALLEST), (-745.1332191019412, 0.0), (-746.0, 0.0), (-1e300, 0.0),
    ],
    "expm1": [
        (0.0, 0.0), (-0.0, -0.0), (math.inf, math.inf), (-math.inf, -1.0), (SMALLEST, SMALLEST), (-SMALLEST, -SMALLEST),
        (-3e-308, -3e-308), (709.7827128933841, math.inf), (LARGEST, math.inf),
        (-37.5, -1.0), (-1e300, -1.0),
    ],
    "log": [
        (1.0, 0.0), (0.0, -math.inf), (-0.0, -math.inf), (-1.0, math.nan), (-SMALLEST, math.nan), (-LARGEST, math.nan),
        (math.inf, math.inf), (-math.inf, math.nan), (SMALLEST, -744.4400719213812), (LARGEST, 709.782712893384),
    ],
    "log1p": [
        (0.0, 0.0), (-0.0, -0.0), (-1.0, -math.inf), (np.nextafter(-1.0, -2.0), math.nan), (-LARGEST, math.nan),
        (math.inf, math.inf), (-math.inf, math.nan), (SMALLEST, SMALLEST), (-SMALLEST, -SMALLEST),
        (LARGEST, 709.782712893384), (np.nextafter(-1.0, 0.0), -36.7368005696771),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIAL)
def test_array_functions_at_special_values(name):
    x, expected = map(np.array, zip(*SPECIAL[name], (math.nan, math.nan), strict=True))
    y = applied(name, x)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(np.signbit(y[~np.isnan(y)]), np.signbit(expected[~np.isnan(expected)]))


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 17, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3])
def test_any_length_and_in_place(name, size):
    x = POINTS[name](200)
    x = np.resize(x, size)
    one_by_one = np.array([applied(name, x[i : i + 1])[0] for i in range(size)])
    np.testing.assert_array_equal(applied(name, x), one_by_one)
    ARRAYS[name](x, x)
    np.testing.assert_array_equal(x, one_by_one)


# --- extended and unguarded forms ---------------------------------------------------------------------


@numba.njit
def jitted_extended_log(x):
    k, m = log.split(x)
    return log.extended_log(k, m - 1.0, 0.0)


@numba.njit
def jitted_extended_log1p(x):
    k, f, f_lo = log.split_one_plus(x)
    return log.extended_log(k, f, f_lo)


def relative_error(parts, exact):
    if exact == 0:
        return float(abs(mpmath.mpf(parts[0])) + abs(mpmath.mpf(parts[1])))
    return float(abs((mpmath.mpf(parts[0]) + mpmath.mpf(parts[1])) / exact - 1))


def test_extended_log_has_63_bits():
    for x in positives(300):
        hi, lo = jitted_extended_log(x)
        assert relative_error((hi, lo), mpmath.log(mpmath.mpf(x))) < 2.0**-63


def test_extended_log1p_has_63_bits():
    points = above_minus_one(300)
    for x in points[np.abs(points) > 1e-290]:
        hi, lo = jitted_extended_log1p(x)
        assert relative_error((hi, lo), mpmath.log1p(mpmath.mpf(x))) < 2.0**-63


@numba.njit
def jitted_exp_parts(hi, lo):
    return exp.exp_parts(hi, lo), exp.exp_parts_unchecked(hi, lo)


def test_exp_of_a_double_double_is_within_one_ulp():
    rng = np.random.default_rng(4)
    for x in exponents(200):
        lo = rng.uniform(-0.5, 0.5) * math.ulp(x)
        exact = mpmath.exp(mpmath.mpf(x) + mpmath.mpf(lo))
        value, ordinary = jitted_exp_parts(x, lo)
        assert oracles.error_in_ulp(value, exact) < 1.0
        assert value == ordinary or abs(x) > 700.0
    # beyond the range the tail does not count, whatever it is
    assert jitted_exp_parts(1e30, -math.inf)[0] == math.inf
    assert jitted_exp_parts(-1e30, math.nan)[0] == 0.0
    assert jitted_exp_parts(-math.inf, math.nan)[0] == 0.0
    assert math.isnan(jitted_exp_parts(math.nan, 0.0)[0])


@numba.njit
def jitted_exp_scaled(x, number):
    k, m = log.split(number)
    return exp.exp_scaled(x, k, m)


def test_exp_scaled_is_finite_where_the_result_is():
    rng = np.random.default_rng(5)
    for _ in range(300):
        number = min(max(10.0 ** rng.uniform(-324.0, 308.25), SMALLEST), LARGEST)
        x = rng.uniform(-745.0, 709.7) - math.log(number)
        exact = mpmath.exp(mpmath.mpf(x)) * mpmath.mpf(number)
        assert oracles.error_in_ulp(jitted_exp_scaled(x, number), exact) < 2.0
    assert jitted_exp_scaled(1452.0, SMALLEST) == pytest.approx(
        float(mpmath.exp(1452) * mpmath.mpf(SMALLEST)), rel=1e-15
    )
    assert jitted_exp_scaled(1500.0, SMALLEST) == math.inf
    assert jitted_exp_scaled(-1500.0, LARGEST) == 0.0
    assert jitted_exp_scaled(math.inf, 1.0) == math.inf
    assert jitted_exp_scaled(-math.inf, 1.0) == 0.0
    assert math.isnan(jitted_exp_scaled(math.nan, 1.0))


@numba.njit
def jitted_exp_less(t, j, subtrahend):
    return exp.scaled_expm1(t, exp.make_rounder(j), subtrahend)


@pytest.mark.parametrize("j", [0.0, -1.0, -20.0])
def test_exp_less_is_within_two_ulp(j):
    for t in (*np.linspace(-690.0, 690.0, 200), *np.geomspace(1e-300, 1.0, 200), *-np.geomspace(1e-300, 1.0, 200)):
        exact = mpmath.mpf(2.0**j) * mpmath.expm1(mpmath.mpf(float(t)))
        assert oracles.error_in_ulp(jitted_exp_less(t, j, 2.0**j), exact) < 2.0


@numba.njit
def jitted_exp_minus(hi, j, subtrahend):
    return exp.scaled_expm1_dd(hi, 0.0, exp.make_rounder(j), subtrahend)


@pytest.mark.parametrize("j", [-800.0, -40.0, -1.0, 0.0, 3.0])
def test_exp_minus_has_a_relative_error_below_2_to_the_minus_53(j):
    rng = np.random.default_rng(6)
    for x in np.concatenate([rng.uniform(-50.0, (1023.0 - j) * LN2, 100), 10.0 ** rng.uniform(-30.0, 0.0, 50)])[
        ::STRIDE
    ]:
        exact = mpmath.expm1(mpmath.mpf(x)) * mpmath.mpf(2) ** j
        head, tail = jitted_exp_minus(x, j, 2.0**j)
        assert abs(float((mpmath.mpf(head) + mpmath.mpf(tail)) / exact - 1)) < 2.0**-53


@numba.njit
def jitted_excess(t):
    return exp.expm1_minus_x(t)


def worst_excess_error(points):
    return max(
        float(
            abs(mpmath.mpf(float(jitted_excess(t))) / (mpmath.expm1(mpmath.mpf(float(t))) - mpmath.mpf(float(t))) - 1)
        )
        for t in points
    )


def excess_points(reach, smallest):
    rng = np.random.default_rng(7)
    tiny = rng.choice([-1.0, 1.0], 300) * 10.0 ** rng.uniform(smallest, 0.0, 300)
    return np.concatenate([rng.uniform(-reach, reach, 300), rng.uniform(-2.0, 2.0, 300), tiny])[::STRIDE]


def test_expm1_excess_agrees_with_mpmath():
    assert worst_excess_error(excess_points(700.0, -100.0)) < 1e-15
    assert jitted_excess(0.0) == 0.0


def test_expm1_excess_of_float32_agrees_with_mpmath():
    points = excess_points(80.0, -15.0).astype(np.float32)
    assert worst_excess_error(points) < 1e-6
    assert isinstance(exp.expm1_minus_x(np.float32(0.5)), np.float32)
    if not JIT_DISABLED:
        jitted_excess(np.float32(0.5))
        assert numba.float32 in [signature.return_type for signature in jitted_excess.nopython_signatures]


@numba.njit
def jitted_log_normal(x):
    return log.log_normal(x)


def test_log_of_normal_numbers_is_within_one_ulp():
    points = positives(300)
    for x in points[points >= SMALLEST_NORMAL]:
        assert oracles.error_in_ulp(jitted_log_normal(x), mpmath.log(mpmath.mpf(x))) < 1.0


# --- properties ---------------------------------------------------------------------------------------


@numba.njit
def jitted_all(x):
    return exp.exp(x), exp.expm1(x), log.log(x), log.log1p(x)


def test_the_largest_results_are_finite():
    x = np.array([709.782712893384, 709.7827128933839])
    assert np.isfinite(applied("exp", x)).all()
    assert np.isfinite(applied("expm1", x)).all()


@given(st.floats(allow_nan=False))
def test_kernels_agree_with_libm_in_user_code(x):
    ours = jitted_all(x)
    with np.errstate(all="ignore"):
        theirs = np.exp(x), np.expm1(x), np.log(x), np.log1p(x)
    np.testing.assert_allclose(ours, theirs, rtol=1e-15, atol=SMALLEST)


@given(st.floats(-700.0, 700.0), st.floats(-700.0, 700.0))
def test_functions_are_monotone(a, b):
    low, high = sorted((a, b))
    low_values, high_values = jitted_all(low), jitted_all(high)
    for f_low, f_high in zip(low_values, high_values, strict=True):
        assert not f_low > f_high * (1.0 + math.copysign(2e-16, f_high))


@pytest.mark.skipif(JIT_DISABLED, reason="looks at machine code")
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="knows the names of x86 instructions only")
@pytest.mark.parametrize("kernel", ["exp", "expm1", "log", "log1p", "log_normal", "expm1_minus_x"])
def test_loops_become_packed_code(kernel):
    function = getattr(log if kernel.startswith("log") else exp, kernel)

    @numba.njit(error_model="numpy", fastmath={"contract"})
    def loop(x):
        widest_vectors()
        for i in range(x.size):
            x[i] = function(x[i])

    loop.compile("void(float64[::1])")
    (code,) = loop.inspect_asm().values()
    assert re.search(r"v?(mul|fn?m(add|sub)\d+)pd", code)


# --- parts of logarithms, called as plain Python ------------------------------------------------------


def test_numbers_are_split_into_a_power_of_two_and_a_mantissa_near_1():
    for x in map(float, positives(60)):
        k, m = log.split(x)
        assert math.ldexp(m, int(k)) == x or abs(math.ldexp(m, int(k)) / x - 1.0) < 1e-15
        assert math.sqrt(0.5) - 1e-16 <= m < math.sqrt(2.0)
        if x >= SMALLEST_NORMAL:
            assert log.split_normal(x) == (k, m)


def test_short_logs_have_57_bits_after_the_point():
    for x in map(float, positives(100)):
        k, m = log.split(x)
        hi, lo = log.short_log(k, m - 1.0)
        exact = mpmath.log(mpmath.mpf(x))
        assert abs(mpmath.mpf(hi) + lo - exact) <= 2.0**-57 * (1 + abs(exact))
        assert abs(lo) <= abs(hi) / 16


def test_short_logs_of_one_plus_x():
    points = above_minus_one(100)
    for x in map(float, points[abs(points) > 1e-290]):
        hi, lo = log.short_log1p(*log.split_one_plus(x))
        exact = mpmath.log1p(mpmath.mpf(x))
        assert abs(mpmath.mpf(hi) + lo - exact) <= 2.0**-57 * min(1 + abs(exact), 16 * abs(exact))


def test_sums_with_one_are_split_without_an_error():
    """Check that 2^k (1 + f + f_lo), the result of a split, equals 1 + x + x_lo to 2^-104, even if 1 + x cancels."""
    rng = np.random.default_rng(8)
    for x in map(float, np.append(above_minus_one(60), [-1.0 + 2.0**-53, -1.0 + 2.0**-40, -0.9999])):
        k, f, f_lo = log.split_one_plus(x)
        exact = 1 + mpmath.mpf(x)
        assert abs(mpmath.ldexp(1 + mpmath.mpf(f) + f_lo, int(k)) - exact) <= 2.0**-104 * exact
        x_lo = float(rng.uniform(-0.5, 0.5)) * math.ulp(x)
        k, f, f_lo = log.split_one_plus_parts(x, x_lo)
        exact += mpmath.mpf(x_lo)
        if 0 < exact < 1e307:  # beyond, the tail would be too small for float64
            assert abs(mpmath.ldexp(1 + mpmath.mpf(f) + f_lo, int(k)) - exact) <= 2.0**-104 * exact
            assert math.sqrt(0.5) - 1e-15 <= 1.0 + f < math.sqrt(2.0) + 1e-15


@pytest.mark.parametrize("center", [0.0, 1e-9, 0.3, 1.0, 40.0, 1e15, 1e300])
def test_logs_of_ratios_of_one_plus_x(center):
    """Logs of (1 + x)/(1 + center) are relatively accurate near the center; at center 0 they have log1p's bits."""
    k, m = log.split(1.0 + center)
    rng = np.random.default_rng(9)
    near = center + (1.0 + center) * rng.choice([-1.0, 1.0], 40) * 10.0 ** rng.uniform(-12.0, -0.7, 40)
    far = 10.0 ** rng.uniform(-20.0, 300.0, 40)
    for x in map(float, np.abs(np.concatenate([near, far, [center, 0.0]]))):
        found = log.log1p_ratio(x, center, 1.0 / (1.0 + center), k, 0.5 / m)
        exact = mpmath.log((1 + mpmath.mpf(x)) / (1 + mpmath.mpf(center)))
        # the rounding of x - center and of 1 + center are relative errors of the ratio minus 1
        assert abs(found - exact) <= 4e-16 * (abs(exact) + (1 if abs(exact) > 0.3 else 0)) + 2.3e-16 * abs(exact)
        if x > 1e-300 * center:
            assert log.log1p_ratio(x, center, 1.0 / (1.0 + center), 1.0, 1.0 / (1.0 + center)) == pytest.approx(
                found, rel=1e-14, abs=1e-300
            )
        if center == 0.0:
            assert found == log.log1p_finite(x)


def test_logs_of_ratios_to_one_have_the_bits_of_log1p():
    """Where 1 + x is rounded by as much as the result, the correction for its rounding decides the last bit."""
    x = np.random.default_rng(10).uniform(0.3, 20.0, 500)
    found = [log.log1p_ratio(v, 0.0, 1.0, 1.0, 1.0) for v in x.tolist()]
    np.testing.assert_array_equal(found, [log.log1p_finite(v) for v in x.tolist()])
    np.testing.assert_allclose(found, np.log1p(x), rtol=2.3e-16)


@pytest.mark.parametrize("j", [0.0, -1.0, -700.0])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.36, 1.0])
def test_scaled_exponentials_minus_a_smaller_number(j, share):
    """Compare s e^t - b with mpmath, where b is s (share 1) or the fraction `share` of s e^t."""
    rng = np.random.default_rng(10)
    scale = 2.0**j
    for t in map(float, np.concatenate([rng.uniform(-40.0, 600.0, 60), 10.0 ** rng.uniform(-12.0, 0.0, 20)])):
        subtrahend = scale if share == 1.0 else share * scale * math.exp(t)
        lo = float(rng.uniform(-0.5, 0.5)) * math.ulp(t)
        rounder = exp.make_rounder(j)
        exact = scale * mpmath.exp(mpmath.mpf(t) + lo) - subtrahend
        head, tail = exp.scaled_expm1_dd(t, lo, rounder, subtrahend)
        assert abs(mpmath.mpf(head) + tail - exact) <= 2.0**-52 * abs(exact)
        exact = scale * mpmath.exp(mpmath.mpf(t)) - subtrahend
        assert oracles.error_in_ulp(exp.scaled_expm1(t, rounder, subtrahend), exact) < 2.5


def test_extrema_of_lanes_prefer_the_second_argument_to_nan():
    x, y = np.array([1.0, 3.0, math.nan, 2.0, -0.5]), np.array([2.0, -1.0, 5.0, math.nan, -0.5])
    np.testing.assert_array_equal(exp.minimum(x, y), [1.0, -1.0, 5.0, math.nan, -0.5])
    np.testing.assert_array_equal(exp.maximum(x, y), [2.0, 3.0, 5.0, math.nan, -0.5])
