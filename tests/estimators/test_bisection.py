"""Bisection over all floats."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powerkern._estimators.bisection import largest_float

ENDS = [-math.inf, -1.7976931348623157e308, -2.5, -1.0, -5e-324, 0.0, 5e-324, 1e-310, 1.0, math.pi, 1.7e308]


def test_the_largest_float_up_to_a_number_is_the_number() -> None:
    ends = np.array(ENDS)
    np.testing.assert_array_equal(largest_float(lambda x: x <= ends, -math.inf, ends.size), ends)


def test_the_search_begins_at_its_start() -> None:
    limits = np.array([2.0, 1e200, 5e-324])
    with np.errstate(over="ignore", under="ignore"):
        found = largest_float(lambda x: x * x <= limits, 0.0, 3)
        above = np.nextafter(found, np.inf)
        assert (found * found <= limits).all()
        assert (above * above > limits).all()


@pytest.mark.parametrize("start", [-math.inf, -3.0, 0.0, 7.0])
def test_the_start_is_returned_where_nothing_holds(start: float) -> None:
    np.testing.assert_array_equal(largest_float(lambda x: np.zeros(x.size, bool), start, 2), [start, start])
