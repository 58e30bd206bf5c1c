"""Bounds of ordinary values, which need no range checks, compared with the limits of exponents that they guarantee."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powerkern.kernels.transforms.branch import Fit
from powerkern.kernels.transforms.columns import TRANSFORMS
from powerkern.kernels.transforms.family import (
    BOX_COX,
    FORWARD,
    FORWARD_STANDARDIZED,
    INVERSE,
    INVERSE_STANDARDIZED,
    YEO_JOHNSON,
)

LOG_SMALL, LOG_LARGE = math.log(1e-290), math.log(1e300)
LMBDAS = [-300.0, -4.0, -0.6, -0.05, 0.0, 0.1, 0.5, 1.0, 1.7, 2.0, 2.02, 3.9, 5.0, 300.0]
NOTHING = (math.inf, -math.inf)


def bounds_of(family, direction, fit):
    """Return the lower and the upper bound of ordinary values for the fit of one column, computed by plain Python."""
    transform = TRANSFORMS[family, direction]
    c = np.full((transform.n_constants, 1), np.nan)
    with np.errstate(all="ignore"):
        transform.prepare(fit, c, 0)
    assert not np.isnan(c).any()
    return tuple(c[:2, 0].tolist())


def largest_log_ratio(m, *exponents):
    """Return the largest d for which e^d and e^(|m| d) are at most e^680 and at most 2^(1020 - s)/e.

    Here s is the largest binary exponent of the numbers `exponents`, or 0 if this is negative.
    """
    scale = max(max(0, math.frexp(each)[1]) if each else 0 for each in exponents)
    return min(680.0, (1020 - scale) * math.log(2.0) - 1.0) / max(1.0, abs(m))


def branch(m, a):
    return math.expm1(min(m * a, 709.0)) / m if m else a


def image_of(m, low, high):
    """Return b_m(a) = (e^(m a) - 1)/m for both ends of the interval low <= a <= high, narrowed to -27 <= m a <= 680."""
    if m:
        first, last = sorted((-27.0 / m, 680.0 / m))
        low, high = max(low, first), min(high, last)
    return branch(m, low), branch(m, high)


def moderate(m):
    """Return the largest |a| at which the inverse of b_m(a) = (e^(m a) - 1)/m may use `short_log1p`."""
    return math.inf if abs(m) >= 0.125 else min(12.0, 0.34 / abs(m) if m else math.inf)


def check(found, expected):
    expected = tuple(float(np.clip(end, -1e300, 1e300)) for end in expected) if expected[0] <= expected[1] else NOTHING
    np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize("lmbda", LMBDAS)
def test_raw_box_cox(lmbda):
    fit, d = Fit(lmbda, 0.0, 1.0, 0.0, 0.0), largest_log_ratio(lmbda, lmbda)
    check(
        bounds_of(BOX_COX, FORWARD, fit), (math.exp(max(-d, LOG_SMALL)), math.exp(d)) if abs(lmbda) <= 4.0 else NOTHING
    )
    most = moderate(lmbda)
    check(bounds_of(BOX_COX, INVERSE, fit), image_of(lmbda, max(-most, LOG_SMALL), min(most, LOG_LARGE)))


@pytest.mark.parametrize("lmbda", LMBDAS)
@pytest.mark.parametrize("ref", [1e-280, 1e-3, 5.0, 1e250])
def test_standardized_box_cox(lmbda, ref):
    fit, d = Fit(lmbda, ref, 0.7, 0.1, 0.0), largest_log_ratio(lmbda, lmbda)
    low = math.exp(max(math.log(ref) - d, LOG_SMALL))
    check(bounds_of(BOX_COX, FORWARD_STANDARDIZED, fit), (low, math.exp(min(math.log(ref) + d, 709.0))))
    ends = image_of(lmbda, LOG_SMALL - math.log(ref), LOG_LARGE - math.log(ref))
    check(bounds_of(BOX_COX, INVERSE_STANDARDIZED, fit), tuple(0.7 * end + 0.1 for end in ends))


@pytest.mark.parametrize(
    ("change", "direction"),
    [
        ({"ref": 1e-291}, FORWARD_STANDARDIZED),
        ({"ref": 1e301}, FORWARD_STANDARDIZED),
        ({"lmbda": 2.0, "intercept": 520.0}, INVERSE_STANDARDIZED),
        ({"lmbda": -2.0, "intercept": -520.0}, INVERSE_STANDARDIZED),
        ({"slope": 1.0 / 1100.0}, INVERSE_STANDARDIZED),
    ],
)
def test_box_cox_has_no_ordinary_values_with_an_extreme_reference_or_intercept(change, direction):
    fit = Fit(1.0, 1.0, 1.0, 1.0, 0.0)
    low, high = bounds_of(BOX_COX, direction, fit)
    assert low < high
    assert bounds_of(BOX_COX, direction, fit._replace(**change)) == NOTHING


def test_box_cox_intercepts_of_up_to_1024_slopes_are_harmless():
    for lmbda, intercept in ((2.0, 512.0), (-2.0, -512.0)):
        low, high = bounds_of(BOX_COX, INVERSE_STANDARDIZED, Fit(lmbda, 1.0, 1.0, intercept, 0.0))
        assert low < high


@pytest.mark.parametrize("lmbda", LMBDAS)
def test_raw_yeo_johnson(lmbda):
    fit, other = Fit(lmbda, 0.0, 1.0, 0.0, 0.0), 2.0 - lmbda
    steepest = max(abs(lmbda), abs(other))
    size = math.expm1(largest_log_ratio(steepest, lmbda, other))
    check(bounds_of(YEO_JOHNSON, FORWARD, fit), (-size, size) if steepest <= 4.0 else NOTHING)
    ends = (image_of(m, 0.0, min(moderate(m), LOG_LARGE))[1] for m in (other, lmbda))
    lower, upper = ends
    check(bounds_of(YEO_JOHNSON, INVERSE, fit), (-lower, upper))


@pytest.mark.parametrize("lmbda", LMBDAS)
@pytest.mark.parametrize("ref", [-1e250, -30.0, -1e-9, 0.0, 0.5, 40.0, 1e250])
def test_standardized_yeo_johnson(lmbda, ref):
    fit, m = Fit(lmbda, ref, 0.7, 0.1, 0.0), 2.0 - lmbda if ref < 0.0 else lmbda
    if ref == 0.0:
        size = math.expm1(largest_log_ratio(max(abs(lmbda), abs(2.0 - lmbda)), lmbda, 2.0 - lmbda))
        check(bounds_of(YEO_JOHNSON, FORWARD_STANDARDIZED, fit), (-size, size))
        assert bounds_of(YEO_JOHNSON, FORWARD_STANDARDIZED, fit._replace(log_factor=0.5)) == NOTHING
        return
    d, log_base = largest_log_ratio(m, lmbda, 2.0 - lmbda), math.log1p(abs(ref))
    low, high = max(math.expm1(log_base - d), 5e-324 if ref < 0.0 else 0.0), math.expm1(min(log_base + d, 709.0))
    check(bounds_of(YEO_JOHNSON, FORWARD_STANDARDIZED, fit), (low, high) if ref > 0.0 else (-high, -low))


@pytest.mark.parametrize("lmbda", LMBDAS)
@pytest.mark.parametrize(
    ("ref", "log_factor"), [(-30.0, 0.0), (-1e-3, 0.0), (0.0, 0.0), (0.0, 3.0), (0.5, 0.0), (40.0, 0.0)]
)
def test_inverse_of_standardized_yeo_johnson(lmbda, ref, log_factor):
    """Compare with bounds relative to the reference on its side of 0, and relative to 0 on the other side."""
    slope, intercept = 0.7, 1e-3
    m, other = (2.0 - lmbda, lmbda) if ref < 0.0 else (lmbda, 2.0 - lmbda)
    log_base = math.log1p(abs(ref))
    shift = max(m * log_base if ref else log_factor, -700.0)
    zero = -math.exp(-shift) * branch(m, log_base) if ref else 0.0
    near_growth, far_growth = (1.0 if ref else math.exp(shift)), math.exp(min(shift, 700.0))
    end = image_of(m, -log_base, LOG_LARGE - log_base)[1]
    beyond = zero - image_of(other, 0.0, LOG_LARGE)[1] / far_growth
    expected = (-end, -beyond) if ref < 0.0 else (beyond, end)
    steepness = max(abs(m) * near_growth, abs(other) * far_growth)
    is_ordinary = shift <= 27.0 and steepness * intercept <= 1024.0 * slope
    ends = tuple(slope * end + intercept for end in expected)
    check(
        bounds_of(YEO_JOHNSON, INVERSE_STANDARDIZED, Fit(lmbda, ref, slope, intercept, log_factor)),
        ends if is_ordinary else NOTHING,
    )


@pytest.mark.parametrize(
    ("inside", "outside", "direction"),
    [
        ({"ref": 0.99e300}, {"ref": 1.01e300}, FORWARD_STANDARDIZED),
        ({"ref": -0.99e300}, {"ref": -1.01e300}, FORWARD_STANDARDIZED),
        ({"ref": 0.0, "log_factor": 27.0}, {"ref": 0.0, "log_factor": 27.1}, INVERSE_STANDARDIZED),
        ({"ref": 0.0, "intercept": 1023.0}, {"ref": 0.0, "intercept": 1025.0}, INVERSE_STANDARDIZED),
        (
            {"lmbda": -1.0, "ref": -0.001, "intercept": -341.0},
            {"lmbda": -1.0, "ref": -0.001, "intercept": -342.0},
            INVERSE_STANDARDIZED,
        ),
    ],
)
def test_yeo_johnson_has_no_ordinary_values_with_an_extreme_reference_or_intercept(inside, outside, direction):
    fit = Fit(1.0, 1.0, 1.0, 0.0, 0.0)
    low, high = bounds_of(YEO_JOHNSON, direction, fit._replace(**inside))
    assert low < high
    low, high = bounds_of(YEO_JOHNSON, direction, fit._replace(**outside))
    assert low > high
