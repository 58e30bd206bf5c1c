"""Logarithms of normal probabilities and their derivatives, compared with mpmath at 60 digits."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from powerkern.kernels.elementary.normal import (
    inverse_mills_ratio,
    log_ndtr,
    log_probability_below,
    log_probability_between,
    log_probability_of,
)

POINTS = [-1e8, -1e4, -100.0, -38.0, *np.linspace(-12.0, 12.0, 49), -1e-300, 1e-300, 30.0, 37.5, 40.0]


def ndtr(t: Any) -> Any:
    return mp.erfc(-mp.mpf(t) / mp.sqrt(2)) / 2


def density(t: Any) -> Any:
    return mp.exp(-(mp.mpf(t) ** 2) / 2) / mp.sqrt(2 * mp.pi)


@pytest.fixture(autouse=True)
def many_digits() -> Any:
    with mp.workdps(60):
        yield


@pytest.mark.parametrize("t", POINTS)
def test_logarithm_and_mills_ratio_have_13_digits(t: float) -> None:
    log_p = mp.log1p(-ndtr(-t)) if t > 0 else mp.log(ndtr(t))
    ratio = density(t) / ndtr(t)
    both = log_probability_below(t)
    for found, exact in ((log_ndtr(t), log_p), (inverse_mills_ratio(t), ratio), (both.log, log_p), (both.d_mid, ratio)):
        assert abs(found - exact) <= 1e-13 * abs(exact) + 1e-307


@pytest.mark.parametrize("half", [1e-9, 1e-4, 0.1, 0.499, 0.501, 2.0, 30.0])
@pytest.mark.parametrize("mid", [-200.0, -12.0, -2.1, -0.3, 0.0, 0.3, 2.1, 12.0, 200.0])
def test_intervals_keep_their_digits(mid: float, half: float) -> None:
    a, b = mp.mpf(mid) - mp.mpf(half), mp.mpf(mid) + mp.mpf(half)
    probability = ndtr(-a) - ndtr(-b) if mid > 0 else ndtr(b) - ndtr(a)
    found = log_probability_between(mid, half)
    assert abs(found.log - mp.log(probability)) <= 1e-13 * max(1, abs(mp.log(probability)))
    in_half = (density(a) + density(b)) / probability
    assert abs(found.d_half - in_half) <= 1e-13 * in_half
    in_mid = (density(b) - density(a)) / probability
    assert abs(found.d_mid - in_mid) <= 1e-13 * max(abs(in_mid), 1e-300)


@pytest.mark.parametrize("high", [-0.5, 0.2, 3.0, 40.0, 1e9, 1e20])
@pytest.mark.parametrize("low", [-1e20, -1e9, -40.0, -2.0])
@pytest.mark.parametrize("is_mirrored", [False, True])
def test_wide_intervals_keep_the_digits_of_the_nearer_end(low: float, high: float, is_mirrored: bool) -> None:
    a, b = (-high, -low) if is_mirrored else (low, high)
    found = log_probability_of(a, b)
    probability = ndtr(-a) - ndtr(-b) if a + b > 0.0 else ndtr(b) - ndtr(a)
    assert abs(found.log - mp.log(probability)) <= 1e-13 * max(1, abs(mp.log(probability)))
    for of_end, end in ((found.at_low, a), (found.at_high, b)):
        exact = density(end) / probability
        assert abs(of_end - exact) <= 1e-13 * exact + 1e-300


def test_the_probability_between_minus_1_and_2() -> None:
    assert abs(log_probability_between(0.5, 1.5).log - math.log(0.8185946141203637)) < 1e-15
