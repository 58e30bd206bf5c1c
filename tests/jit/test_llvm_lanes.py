"""Vectors of eight float64 or sixteen float32: jitted code computes in each lane the same bits as NumPy for arrays."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from powerkern._jit import (
    JIT_DISABLED,
    LANES,
    LANES32,
    any_lane,
    bits32_of,
    bits_of,
    broadcast_like,
    first_lanes,
    float32_of,
    float_of,
    in_all_lanes,
    lane_width,
    load,
    select,
    square_root,
    store,
)
from powerkern.kernels.elementary.exp import expm1_minus_x, make_rounder, scaled_expm1
from powerkern.kernels.elementary.log import log_normal

ROWS = 4
VALUES = np.array([-2.5, -1.0, -0.0, 0.0, 0.5, 3.0, np.inf, np.nan])


def arithmetic(x, y, out):
    total = in_all_lanes(1.5)
    total += 0.0 * y
    store(out, (0, 0), x + y)
    store(out, (1, 0), 2.0 - x)
    store(out, (2, 0), x * y * 3)
    store(out, (3, 0), x / y)
    store(out, (4, 0), -x)
    store(out, (5, 0), abs(x))
    store(out, (6, 0), square_root(x))
    store(out, (7, 0), total + select(abs(y) < 9.0, y, 4.0))


def comparisons(x, y, out):
    store(out, (0, 0), select(x < y, 1.0, 0.0))
    store(out, (1, 0), select(x <= 0.0, x, 7.0))
    store(out, (2, 0), select(x > y, x, y))
    store(out, (3, 0), select(x >= 0.5, 1.0, y))
    store(out, (4, 0), select(x == x, x, 0.0))
    store(out, (5, 0), select((x < 0.0) & (y > 0.0), 1.0, 2.0))
    store(out, (6, 0), select(~(x < 0.0) | (y < 0.0), 1.0, 2.0))
    store(out, (7, 0), select((x < 0.0) & any_lane(y > 1e300), 1.0, 2.0))


def bits(x, y, out):
    store(out, (0, 0), float_of(bits_of(x) & 0x7FFFFFFFFFFFFFFF))
    store(out, (1, 0), float_of((bits_of(x) >> 52) << 52))
    store(out, (2, 0), float_of((bits_of(x) + 1) - 2))
    store(out, (3, 0), float_of(bits_of(x) | 1))
    store(out, (4, 0), select(first_lanes(3), x, y))
    store(out, (5, 0), select(first_lanes(-1) | ~first_lanes(9), x, y))


def alike(x, y, out):
    """Apply every operation to the vectors x and y, and store the results in the rows of `out`.

    The function works for both vector widths.
    """
    total = broadcast_like(x, 1.5)
    total += y
    store(out, (0, 0), total - x * 3)
    store(out, (1, 0), 2.0 / x)
    store(out, (2, 0), -abs(y))
    store(out, (3, 0), square_root(x))
    store(out, (4, 0), select((x < y) & ~(x <= 0.0) | (y >= 3.0), x, 7.0))
    store(out, (5, 0), select(x > y, -1.0, y))
    store(out, (6, 0), select(any_lane(x > 1e30) & (x == x), x, 0.0))
    store(out, (7, 0), broadcast_like(y, lane_width(out)))


def bits32(x, y, out):
    store(out, (0, 0), float32_of(bits32_of(x) & 0x7FFFFFFF))
    store(out, (1, 0), float32_of((bits32_of(x) >> 23) << 23))
    store(out, (2, 0), float32_of((bits32_of(x) + 1) - 2))
    store(out, (3, 0), float32_of(bits32_of(y) | 1))


def elementary(x, y, out):
    store(out, (0, 0), expm1_minus_x(x))
    store(out, (1, 0), log_normal(abs(x) + 1.0))
    store(out, (2, 0), scaled_expm1(x, make_rounder(0.0), 0.0))


JITTED = [arithmetic, comparisons, bits, elementary]


def results(function, x, y):
    out = np.zeros((8, x.shape[1]), dtype=x.dtype)
    if JIT_DISABLED:
        with np.errstate(all="ignore"):
            function(load(x, (1, 0)), load(y, (0, 0)), out)
        return out
    compiled = numba.njit(error_model="numpy")(function)
    numba.njit(lambda x, y, out: compiled(load(x, (1, 0)), load(y, (0, 0)), out))(x, y, out)
    return out


@pytest.mark.parametrize("function", JITTED[:3])
def test_each_lane_agrees_with_numpy(function):
    x, y = np.tile(VALUES, (2, 1)), VALUES[np.newaxis, ::-1].copy()
    expected = np.zeros((8, LANES))
    with np.errstate(all="ignore"):
        function(x[1], y[0], expected)
    np.testing.assert_array_equal(results(function, x, y), expected)


@pytest.mark.parametrize(
    ("function", "dtype"),
    [(alike, np.float64), (alike, np.float32), (bits32, np.float32)],
    ids=lambda value: value.__name__,
)
def test_lanes_of_either_width_agree_with_numpy(function, dtype):
    values = np.tile(VALUES, LANES32 // LANES)[: LANES if dtype is np.float64 else LANES32].astype(dtype)
    x, y = np.tile(values, (2, 1)), np.roll(values, 3)[np.newaxis]
    expected = np.zeros((8, values.size), dtype=dtype)
    with np.errstate(all="ignore"):
        function(x[1], y[0], expected)
    np.testing.assert_array_equal(results(function, x, y), expected)


@pytest.mark.slow
def test_elementary_functions_of_lanes_agree_with_numpy():
    x = np.tile(np.linspace(-600.0, 600.0, LANES), (2, 1))
    found = results(elementary, x, x)
    exact = [np.expm1(x[1]) - x[1], np.log1p(abs(x[1])), np.exp(x[1])]
    np.testing.assert_allclose(found[:3], exact, rtol=2e-15)


def test_lanes_are_loaded_from_strided_rows():
    """Load lanes from rows of any stride, starting at any column, and store them."""
    x = np.arange(200.0).reshape(10, 20)[::3, 1:]
    out = np.zeros((8, LANES))

    def copy(x, out):
        for i in range(x.shape[0]):
            store(out, (2 * i, 0), load(x, (i, 5)))

    (copy if JIT_DISABLED else numba.njit(copy))(x, out)
    np.testing.assert_array_equal(out[::2], x[:, 5:13])


@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")
@pytest.mark.parametrize("function", [lambda x: x + (x < 0.0), lambda x: bits_of(x) * 2, lambda x: (x < 0.0) - 1.0])
def test_invalid_operations_do_not_compile(function):
    compiled = numba.njit(function)
    with pytest.raises(numba.TypingError):
        numba.njit(lambda x: any_lane(compiled(load(x, (0,))) == 0.0))(np.zeros(8))
