"""Elementary functions of vectors of eight or sixteen lanes, compared with the math module and with mpmath."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from powerkern._jit import COLUMN, COLUMN32, INTEGER, LANES, LANES32, entry, load, store
from powerkern.kernels.elementary.exp import are_moderate, exp2m1_lanes, exp_lanes, expm1_lanes, expm1_minus_x_lanes


@entry((COLUMN, COLUMN))
def _expm1_of(x: np.ndarray, out: np.ndarray) -> None:
    for i in range(0, x.size, LANES):
        store(out, (i,), expm1_lanes(load(x, (i,))))


@entry((COLUMN, COLUMN))
def _exp_of(x: np.ndarray, out: np.ndarray) -> None:
    for i in range(0, x.size, LANES):
        store(out, (i,), exp_lanes(load(x, (i,))))


@entry((COLUMN, COLUMN))
def _excess_of(x: np.ndarray, out: np.ndarray) -> None:
    for i in range(0, x.size, LANES):
        store(out, (i,), expm1_minus_x_lanes(load(x, (i,))))


@entry((COLUMN32, INTEGER, COLUMN32))
def _function32_of(x: np.ndarray, which: int, out: np.ndarray) -> None:
    for i in range(0, x.size, LANES32):
        at = load(x, (i,))
        store(out, (i,), exp_lanes(at) if which else expm1_lanes(at))


@pytest.mark.parametrize(("which", "function"), [(0, math.expm1), (1, math.exp)])
def test_float32_functions_agree_with_math_and_are_clipped(which, function):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=400), 10.0 ** rng.uniform(-15, -1, 300), rng.uniform(-80, 80, 100)])
    x, out = x.astype(np.float32), np.empty(800, dtype=np.float32)
    _function32_of(x, which, out)
    np.testing.assert_allclose(out, [function(v) for v in x.tolist()], rtol=6e-7)
    _function32_of(np.full(16, 1e9, dtype=np.float32), which, out[:16])
    np.testing.assert_allclose(out[:16], math.exp(80.0), rtol=3e-7)


@entry((COLUMN, COLUMN))
def _exp2m1_of(x: np.ndarray, out: np.ndarray) -> None:
    for i in range(0, x.size, LANES):
        store(out, (i,), exp2m1_lanes(load(x, (i,))))


@entry((COLUMN32, COLUMN32))
def _exp2m1_of_float32(x: np.ndarray, out: np.ndarray) -> None:
    for i in range(0, x.size, LANES32):
        store(out, (i,), exp2m1_lanes(load(x, (i,))))


@pytest.mark.parametrize(
    ("function", "dtype", "far", "rtol"),
    [(_exp2m1_of, np.float64, 1022.0, 2.3e-15), (_exp2m1_of_float32, np.float32, 126.0, 8e-7)],
)
def test_exp2m1_agrees_with_mpmath(function, dtype, far, rtol):
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(size=400), 10.0 ** rng.uniform(-15, -1, 200), rng.uniform(-far, far, 184)])
    x = np.append(x, [0.0, -0.0, far, -far, 0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 10.0, -10.0, 0.25, 64.0, 2.0, 3.0])
    x = np.append(x, 0.5 + rng.uniform(0.0, 1e-6, 208)).astype(dtype)  # where it is least accurate
    out = np.empty_like(x)
    function(x, out)
    with mpmath.workdps(40):
        expected = [float(mpmath.expm1(mpmath.mpf(v) * mpmath.log(2))) for v in x.tolist()]
    np.testing.assert_allclose(out, expected, rtol=rtol)


@entry((COLUMN, COLUMN32, COLUMN))
def _are_moderate(x: np.ndarray, single: np.ndarray, out: np.ndarray) -> None:
    out[0], out[1] = are_moderate(load(x, (0,))), are_moderate(load(single, (0,)))


@pytest.mark.parametrize(
    ("value", "expected"),
    [(80.0, (1, 1)), (-80.1, (1, 0)), (700.0, (1, 0)), (-700.1, (0, 0)), (math.nan, (0, 0)), (math.inf, (0, 0))],
)
def test_a_bound_holds_only_if_it_holds_in_every_lane(value, expected):
    x, single, out = np.zeros(LANES), np.zeros(LANES32, dtype=np.float32), np.empty(2)
    x[LANES - 1] = single[3] = value
    _are_moderate(x, single, out)
    assert tuple(out) == expected


def test_exp_agrees_with_math_and_is_clipped():
    x, out = np.linspace(-700.0, 700.0, 800), np.empty(800)
    _exp_of(x, out)
    np.testing.assert_allclose(out, [math.exp(v) for v in x], rtol=1e-15)
    _exp_of(np.full(8, -1e9), out[:8])
    np.testing.assert_allclose(out[:8], math.exp(-700.0), rtol=1e-15)


def test_expm1_excess_agrees_with_mpmath():
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.normal(size=240), 10.0 ** rng.uniform(-150, -1, 80), rng.uniform(-700, 700, 80)])
    out = np.empty_like(x)
    _excess_of(x, out)
    with mpmath.workdps(340):
        expected = [float(mpmath.exp(v) - 1 - mpmath.mpf(v)) for v in x]
    np.testing.assert_allclose(out, expected, rtol=2e-15)


def test_expm1_of_lanes_agrees_with_math():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=400), 10.0 ** rng.uniform(-300, -1, 100), rng.uniform(-700, 700, 100)])
    out = np.empty_like(x)
    _expm1_of(x, out)
    np.testing.assert_allclose(out, [math.expm1(v) for v in x], rtol=1e-15)


def test_expm1_stays_at_its_bounds():
    x, out = np.array([math.inf, -math.inf, 1e9, -1e9, 700.0, -700.0, 0.0, -0.0]), np.empty(8)
    _expm1_of(x, out)
    np.testing.assert_allclose(out, [math.expm1(700.0), -1.0] * 3 + [0.0, 0.0], rtol=1e-14)
