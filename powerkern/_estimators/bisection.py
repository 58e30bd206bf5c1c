"""Exact bisection over all float64 numbers, to find the last number at which a condition holds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from powerkern._typing import BoolArray, FloatArray, IntArray


def largest_float(holds: Callable[[FloatArray], BoolArray], start: float, n: int) -> FloatArray:
    """Return, for each of n columns, the largest float64 from `start` on at which a condition holds.

    Parameters
    ----------
    holds : function
        Takes one number per column; returns a mask of the columns where the condition holds. If it fails at a number,
        it must fail at all larger ones.
    start : float
        The smallest candidate, also the result for a column in which the condition holds nowhere.
    n : int
        Number of columns.
    """
    low, high = (np.full(n, _ordered(np.array(end).view(np.int64))) for end in (start, np.inf))
    for _ in range(64):
        middle = (low & high) + ((low ^ high) >> 1)  # their mean, without overflow
        held = holds(_ordered(middle).view(np.float64))
        low, high = np.where(held, middle, low), np.where(held, high, middle)
    return np.asarray(_ordered(low).view(np.float64))


def _ordered(bits: IntArray) -> IntArray:
    """Map float64 bit patterns to integers that sort like the numbers, or back: the map is its own inverse."""
    return bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))
