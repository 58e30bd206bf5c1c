"""Scratch space of fits of censored columns: declared, made and handed to entries in one place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powerkern._jit import COLUMN, ROWS, named_tuple
from powerkern._typing import FloatArray

#: Rows of `Terms`: what is known of the cells (BELOW, ABOVE, BETWEEN or EXACTLY), how many there are, and the positions
#: of the lower and the upper end among the points.
KIND, COUNT, LOW, HIGH = range(4)
#: Rows of `standardized`: the middle of each interval and half its length on the standardised scale, or its only end
#: and 0, with two derivatives in the exponent.
MID, MID1, MID2, HALF, HALF1, HALF2 = range(6)


class CensoredWork(NamedTuple):
    """Scratch for one censored column of n cells, of which k are censored, and for a sample of it.

    `ends` and `logs` are those of 2 k + 1 points, the ends of intervals; `y` has three rows for them. `terms` and
    `standardized` have a column for each of k + 1 terms; `sample_logs` has three rows of n values, 2 k + 1 points
    and k + 1 terms: logs, and weights, of a sample.
    """

    ends: FloatArray
    logs: FloatArray
    y: FloatArray
    terms: FloatArray
    standardized: FloatArray
    sample_logs: FloatArray
    sample_points: FloatArray
    sample_terms: FloatArray


CENSORED_WORK = named_tuple(CensoredWork, COLUMN, COLUMN, ROWS, ROWS, ROWS, ROWS, COLUMN, ROWS)


def new_censored_work(n: int, most_censored: int) -> CensoredWork:
    """Return the arrays of `CensoredWork` for columns of `n` cells, of which at most `most_censored` are censored."""
    n_terms, n_points = most_censored + 1, 2 * most_censored + 1
    return CensoredWork(
        np.empty(n_points),
        np.empty(n_points),
        np.empty((3, n_points)),
        np.empty((4, n_terms)),
        np.empty((6, n_terms)),
        np.empty((2, n + n_points)),
        np.empty(n_points),
        np.empty((4, n_terms)),
    )
