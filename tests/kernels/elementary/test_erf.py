"""The error function and Gaussian probabilities, compared with multiprecision arithmetic."""

from __future__ import annotations

import math

import mpmath
import numba
import numpy as np
import pytest

from powerkern.kernels.elementary import erf as kernels

rng = np.random.default_rng(20240601)
ENDS = [0.0, 5e-324, 1e-300, 1.0 - 2**-53, 1.0, 1.0 + 2**-52, 5.92, 5.93, 6.0, 6.0 + 1e-15, 27.0, 1e300]
POINTS = np.concatenate([ENDS, rng.uniform(0.0, 6.1, 150), rng.uniform(0.9, 1.1, 50), 10.0 ** rng.uniform(-300, 0, 50)])


@numba.njit
def jitted_erf(x):
    return kernels.erf(x)


def probabilities(scores, center, scale):
    block = np.array([scores], dtype=float)
    kernels.gaussian_probabilities(block, np.array([center], dtype=float), np.array([scale], dtype=float))
    return block[0]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_erf_is_within_an_ulp(sign):
    with mpmath.workdps(40):
        for x in map(float, POINTS):
            exact = mpmath.erf(mpmath.mpf(x))
            assert abs(sign * jitted_erf(sign * x) - exact) <= np.spacing(float(exact)), x


def test_erf_at_special_values():
    out = np.array([jitted_erf(x) for x in (0.0, -0.0, math.inf, -math.inf, math.nan)])
    assert np.array_equal(out, [0.0, -0.0, 1.0, -1.0, math.nan], equal_nan=True)
    assert np.signbit(out).tolist()[:2] == [False, True]


def test_in_jitted_code_and_in_plain_python():
    assert jitted_erf(0.3) == pytest.approx(math.erf(0.3), rel=2e-16)
    assert kernels.erf(0.3) == pytest.approx(math.erf(0.3), rel=2e-16)


def test_probabilities_agree_with_mpmath():
    scores = rng.normal(3.0, 2.0, 40)
    with mpmath.workdps(40):
        exact = [max(0.0, float(mpmath.erf((mpmath.mpf(float(s)) - 3) / (2 * mpmath.sqrt(2))))) for s in scores]
    np.testing.assert_allclose(probabilities(scores, 3.0, 2.0), exact, rtol=1e-15, atol=0.0)


def test_probabilities_without_scale_are_a_step():
    assert probabilities([0.0, 1.0, 2.0, math.inf, -math.inf], 1.0, 0.0).tolist() == [0.0, 0.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize("scale", [0.0, 1.0])
def test_missing_scores_stay_missing(scale):
    assert np.isnan(probabilities([math.nan, 2.0], 1.0, scale)).tolist() == [True, False]


def test_no_center_or_no_scale_no_probability():
    assert np.isnan(probabilities([0.0, 1.0], math.nan, 1.0)).all()
    assert np.isnan(probabilities([0.0, 1.0], 0.5, math.nan)).all()


def test_probabilities_of_extreme_scores():
    assert probabilities([1e308, -1e308, math.inf], -1e308, 1e-300).tolist() == [1.0, 0.0, 1.0]
    assert probabilities([1e308, 0.0], 0.0, 1e308) == pytest.approx([math.erf(math.sqrt(0.5)), 0.0])
    assert probabilities([5e-324, 0.0], 0.0, 5e-324) == pytest.approx([math.erf(math.sqrt(0.5)), 0.0])
