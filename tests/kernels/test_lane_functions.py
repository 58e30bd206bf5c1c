"""expm1 and erf of vectors of eight, beside the standard library's."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powerkern._jit import COLUMN, INTEGER, LANES, entry, load, store
from powerkern.kernels.elementary import expm1_lanes
from powerkern.kernels.erf import erf_lanes


@entry((COLUMN, INTEGER, COLUMN))
def _function_of(x: np.ndarray, which: int, out: np.ndarray) -> None:
    for i in range(0, x.size, LANES):
        at = load(x, (i,))
        store(out, (i,), erf_lanes(at) if which else expm1_lanes(at))


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
