"""Operations on bit patterns and sorted arrays, compared with NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powerkern.kernels.elementary.constants import EPS, LARGEST, SMALLEST_NORMAL, SQRT_EPS, copy, count_below, insert
from powerkern.kernels.elementary.constants import ordered as ordered_bits


def test_constants_are_those_of_float64():
    limits = np.finfo(np.float64)
    assert (limits.eps, math.sqrt(limits.eps), limits.tiny, limits.max) == (EPS, SQRT_EPS, SMALLEST_NORMAL, LARGEST)


def test_integers_have_the_order_of_the_floats():
    x = np.array([-math.inf, -1e300, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.0 + EPS, 1e300, math.inf])
    keys = [int(ordered_bits(bits)) for bits in x.view(np.int64).tolist()]
    assert keys == sorted(set(keys))
    assert [ordered_bits(key) for key in keys] == x.view(np.int64).tolist()


def test_copies_every_element():
    out = np.zeros(4)
    copy(np.array([3.0, 1.0, 2.0]), out)
    assert out.tolist() == [3.0, 1.0, 2.0, 0.0]


@pytest.mark.parametrize("value", [-1.0, 0.0, 1.0, 2.0, 2.5, 9.0])
@pytest.mark.parametrize("n", [0, 1, 4])
def test_inserted_values_leave_the_front_sorted(n, value):
    x = np.array([0.0, 1.0, 2.0, 2.0, -7.0, -8.0])
    expected = [*sorted([*x[:n].tolist(), value]), *x[n + 1 :].tolist()]
    insert(value, n, x)
    assert x.tolist() == expected


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_counts_values_below_a_bound(n):
    x = np.array([-2.0, -2.0, 0.0, 1.0, 1.0, 1.0, 5.0])[:n]
    for bound in (-3.0, -2.0, -1.0, 0.0, 0.5, 1.0, 4.0, 5.0, 6.0, math.inf):
        assert count_below(x, bound) == np.searchsorted(x, bound)
