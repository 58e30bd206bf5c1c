"""Sums over the cells of a censored column, compared with mpmath's derivatives of their log-density or probability."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from powerkern.kernels.censored import likelihood
from powerkern.kernels.censored.likelihood import Scales, Sums

#: Orders of the derivatives in (alpha, delta, exponent) of each field of `Sums`.
ORDERS = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (2, 0, 0), (1, 1, 0), (0, 2, 0), (1, 0, 1), (0, 1, 1), (0, 0, 2)]
#: A point with its first two derivatives in the exponent.
LOW, HIGH = (-0.4, 0.3, -0.7), (0.9, -0.5, 0.4)
WEIGHT = 1.75


def at_exponent(point: tuple[float, float, float], m: mpmath.mpf) -> mpmath.mpf:
    """Return a point at the exponent m, of which its three numbers are the Taylor coefficients at 0."""
    return point[0] + point[1] * m + point[2] * m * m / 2


def minus_log_density(alpha: mpmath.mpf, delta: mpmath.mpf, m: mpmath.mpf) -> mpmath.mpf:
    return (alpha * at_exponent(HIGH, m) - delta) ** 2 / 2


def minus_log_probability_below(alpha: mpmath.mpf, delta: mpmath.mpf, m: mpmath.mpf) -> mpmath.mpf:
    return -mpmath.log(mpmath.ncdf(alpha * at_exponent(HIGH, m) - delta))


def minus_log_probability_above(alpha: mpmath.mpf, delta: mpmath.mpf, m: mpmath.mpf) -> mpmath.mpf:
    return -mpmath.log(mpmath.ncdf(delta - alpha * at_exponent(HIGH, m)))


def minus_log_probability_between(alpha: mpmath.mpf, delta: mpmath.mpf, m: mpmath.mpf) -> mpmath.mpf:
    low, high = (alpha * at_exponent(point, m) - delta for point in (LOW, HIGH))
    return -mpmath.log(mpmath.ncdf(high) - mpmath.ncdf(low))


def limit(side: float, at: Scales) -> Sums:
    """Return the sums over cells below (side 1) or above (side -1) the limit HIGH."""
    return likelihood._sums_of_limits(*(np.array([v]) for v in (side, WEIGHT, *HIGH)), at)


CELLS: dict[str, tuple[Callable[[Scales], Sums], Callable[..., mpmath.mpf]]] = {
    "a value": (lambda at: likelihood._sums_of_value(WEIGHT, *HIGH, at), minus_log_density),
    "below": (lambda at: limit(1.0, at), minus_log_probability_below),
    "above": (lambda at: limit(-1.0, at), minus_log_probability_above),
    "narrow": (
        lambda at: likelihood._sums_of_narrow_interval(WEIGHT, LOW, HIGH, at),
        minus_log_probability_between,
    ),
    "wide": (lambda at: likelihood._sums_of_wide_interval(WEIGHT, LOW, HIGH, at), minus_log_probability_between),
}


@pytest.mark.parametrize("scales", [Scales(0.6, 0.25), Scales(1.5, -2.0), Scales(2.5, 3.0)])
@pytest.mark.parametrize("name", CELLS)
def test_sums_are_derivatives_of_the_log_likelihood(name: str, scales: Scales) -> None:
    sums, function = CELLS[name]
    found = sums(scales)
    with mpmath.workdps(40):
        expected = [
            WEIGHT * (mpmath.diff(function, (*scales, 0), order) if any(order) else function(*scales, mpmath.mpf(0)))
            for order in ORDERS
        ]
    np.testing.assert_allclose(found, np.array(expected, dtype=np.float64), rtol=1e-11, atol=1e-12)
