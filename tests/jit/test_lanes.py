"""Eight numbers as one value: compiled code does what plain Python does."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from powerkern._jit import COLUMN, INTEGER, entry, lanes
from powerkern.kernels.elementary import expm1_lanes
from powerkern.kernels.erf import erf_lanes

N_OPERATIONS = 16
X = np.array([0.5, -1.25, 3.0, 0.0, math.inf, -math.inf, math.nan, 1e300])
Y = np.array([2.0, -1.25, -7.0, 1.0, 2.0, 1.0, 1.0, 1e300])


@entry((COLUMN, COLUMN, COLUMN))
def _every_operation(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    x, y = lanes.load_lanes(a, 0), lanes.load_lanes(b, 0)
    total = lanes.lanes_of(1.0)
    total += x
    lanes.store_lanes(out, 0, x + y)
    lanes.store_lanes(out, 8, x - y)
    lanes.store_lanes(out, 16, x * y)
    lanes.store_lanes(out, 24, x / y)
    lanes.store_lanes(out, 32, x + 0.1)
    lanes.store_lanes(out, 40, 0.1 - x)
    lanes.store_lanes(out, 48, 3.0 / y)
    lanes.store_lanes(out, 56, abs(x))
    lanes.store_lanes(out, 64, lanes.choose(x < y, x, y))
    lanes.store_lanes(out, 72, lanes.choose(x > y, x, y))
    lanes.store_lanes(out, 80, lanes.choose(x > 0.25, x, y))
    lanes.store_lanes(out, 88, lanes.sqrt_lanes(abs(x)))
    lanes.store_lanes(out, 96, total)
    some, none = lanes.any_lane(x < -1e9), lanes.any_lane(x < -math.inf)
    lanes.store_lanes(out, 104, lanes.lanes_of((1.0 if some else 0.0) + (2.0 if none else 0.0)))
    lanes.store_lanes(out, 112, lanes.shifted_to_exponent(lanes.lanes_of(6755399441055744.0 + 1023.0) + 5.0))
    lanes.store_lanes(out, 120, x)


def test_compiled_code_does_what_python_does():
    expected, found = np.empty((2, 8 * N_OPERATIONS))
    _every_operation(X, Y, found)
    with np.errstate(all="ignore"):
        getattr(_every_operation, "__wrapped__", _every_operation)(X, Y, expected)
    assert_array_equal(found, expected)
    assert_array_equal(found[8 * 14 : 8 * 15], 32.0)
    assert_array_equal(found[8 * 13 : 8 * 14], 1.0)


@entry((COLUMN, INTEGER, COLUMN))
def _function_of(x: np.ndarray, which: int, out: np.ndarray) -> None:
    for i in range(0, x.size, lanes.N_LANES):
        at = lanes.load_lanes(x, i)
        lanes.store_lanes(out, i, erf_lanes(at) if which else expm1_lanes(at))


@pytest.mark.parametrize(("which", "function"), [(0, math.expm1), (1, math.erf)])
def test_functions_of_lanes(which, function):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=400), 10.0 ** rng.uniform(-300, -1, 100), rng.uniform(-700, 700, 100)])
    out = np.empty_like(x)
    _function_of(x, which, out)
    expected = np.array([function(v) for v in x])
    np.testing.assert_allclose(out, expected, rtol=1e-15, atol=3e-16 * which)


def test_expm1_stays_at_its_bounds():
    x, out = np.array([math.inf, -math.inf, 1e9, -1e9, 700.0, -700.0, 0.0, -0.0]), np.empty(8)
    _function_of(x, 0, out)
    np.testing.assert_allclose(out, [math.expm1(700.0), -1.0] * 3 + [0.0, 0.0], rtol=1e-14)
