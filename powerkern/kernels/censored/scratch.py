"""Scratch space for fits of censored columns, and functions that allocate it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powerkern._jit import COLUMN, ROWS, named_tuple
from powerkern._typing import FloatArray

#: Rows of `cells`: at first, the end of the interval in the data, its other end, and the weight of the cell; later, for
#: each distinct limit, the limit, the side on which its cells lie, and their total weight.
END, OTHER, WEIGHT = LIMIT, SIDE, COUNT = range(3)
#: Rows of `intervals`: the total weight of the cells, and the positions of both ends among the points.
CELLS, LOW, HIGH = range(3)


class TermWork(NamedTuple):
    """Scratch for the terms of k censored cells, which have at most 2 k + 1 points (ends of intervals).

    `logs` receives the logs of the points. For each point that is a limit, `side` and `weight` receive the side on
    which its cells lie and their total weight. `intervals` has a column for each distinct interval between two points.
    """

    logs: FloatArray
    side: FloatArray
    weight: FloatArray
    intervals: FloatArray


class CensoredWork(NamedTuple):
    """Scratch for a column of n cells, at most k of them censored, and for a sample of it.

    `cells` has a column for each censored cell, and one more. `y` has three rows of 2 k + 1 points. `sample_logs`, (2,
    n + 1), receives the logs and weights of a sample, and `sample` its terms.
    """

    cells: FloatArray
    y: FloatArray
    terms: TermWork
    sample_logs: FloatArray
    sample: TermWork


_TERM_WORK = named_tuple(TermWork, COLUMN, COLUMN, COLUMN, ROWS)
CENSORED_WORK = named_tuple(CensoredWork, ROWS, ROWS, _TERM_WORK, ROWS, _TERM_WORK)


def _new_term_work(n_points: int, n_terms: int) -> TermWork:
    return TermWork(np.empty(n_points), np.empty(n_points), np.empty(n_points), np.empty((3, n_terms)))


def new_censored_work(n: int, most_censored: int) -> CensoredWork:
    """Allocate a `CensoredWork` for columns of `n` cells, at most `most_censored` of them censored."""
    n_terms, n_points = most_censored + 1, 2 * most_censored + 1
    return CensoredWork(
        np.empty((3, n_terms)),
        np.empty((3, n_points)),
        _new_term_work(n_points, n_terms),
        np.empty((2, n + 1)),
        _new_term_work(n_points, n_terms),
    )
