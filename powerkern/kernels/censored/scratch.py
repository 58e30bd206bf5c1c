"""Scratch space of fits of censored columns: declared, made and handed to entries in one place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powerkern._jit import COLUMN, ROWS, named_tuple
from powerkern._typing import FloatArray

#: Rows of `terms`: the kind (BELOW, ABOVE, BETWEEN or EXACTLY), the count of cells, and the positions of the lower and
#: the upper end among the points.
KIND, COUNT, LOW, HIGH = range(4)
#: Rows of `standardized`: the middle of each interval and half its length on the standardised scale, or its only end
#: and 0, with two derivatives in the exponent.
MID, MID1, MID2, HALF, HALF1, HALF2 = range(6)


class CensoredWork(NamedTuple):
    """Scratch for a column of n cells, at most k of them censored, and for a sample of it.

    `ends` and `logs` have room for 2 k + 1 points, the ends of intervals, and `y` for three rows of them. `terms` and
    `standardized` have k + 1 columns, one for each term. `sample_logs` holds the logs and weights of a sample,
    (2, n + 2 k + 1); `sample_points` and `sample_terms` hold its points and terms.
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
    """Allocate `CensoredWork` for columns of `n` cells, at most `most_censored` of them censored."""
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
