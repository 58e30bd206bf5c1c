"""Conditional means of a standard normal variable that is known to lie in an interval."""

from __future__ import annotations

import math

from powerkern._jit import COLUMN, entry
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.normal import inverse_mills_ratio, log_probability_between


@entry((COLUMN, COLUMN, COLUMN))
def interval_means(low: FloatArray, high: FloatArray, out: FloatArray) -> None:
    """Write, for each of n intervals, the mean of a standard normal variable given that it lies in the interval.

    With the normal density phi and distribution function Phi, the mean is ``-phi(b)/Phi(b)`` for an interval below b,
    ``phi(a)/Phi(-a)`` above a, and ``(phi(a) - phi(b))/(Phi(b) - Phi(a))`` between a and b.

    Parameters
    ----------
    low, high : (n,)
        The ends of the intervals, which may be infinite; the mean is NaN if either is NaN.
    out : (n,)
        Receives the means.
    """
    for i in range(low.size):
        a, b = low[i], high[i]
        if not (a == a and b == b):
            out[i] = math.nan
        elif a == b:
            out[i] = a
        elif a == -math.inf:
            out[i] = 0.0 if b == math.inf else -inverse_mills_ratio(b)
        elif b == math.inf:
            out[i] = inverse_mills_ratio(-a)
        else:
            out[i] = -log_probability_between(0.5 * (a + b), 0.5 * (b - a)).d_mid
