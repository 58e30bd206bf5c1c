"""Scratch of short columns that stand side by side, one in each lane of vectors, and the figures kept of each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powerkern._jit import LANES, ROWS, named_tuple
from powerkern._typing import FloatArray

# fields of a column, a number for each lane: its row, the start and the results of the search there, how it is
# prestandardised, and whether it is rectified on both sides (1 or 0)
ROW, START, VALUE, N_SEARCHED, N_RIVALS, INSIDE, CENTER, DIVISOR, POWER, BOTH_SIDES = range(10)
# results: whether there is a fit, whether the values kept have settled, the optimum, number of evaluations; the
# values kept, location, scale, lambda, transform (1: rectified) and width of the cut-off; whether a far tail was kept
FITTED, SETTLED, EXPONENT, MEAN, VARIANCE, CURVATURE, JACOBIAN, N_REFIT = range(10, 18)
FIRST, LAST, CUT_LOC, CUT_SCALE, CUT_AT, CUT_RECTIFIED, CUT_OFF, TAIL = range(18, 26)
# numbers of values beyond the cut-offs that one is chosen from: there are so many
BEYOND, N_WIDER = 26, 4
_N_FIELDS = BEYOND + N_WIDER


class LaneBatch(NamedTuple):
    """Scratch: columns of up to some number of values side by side, and figures of each."""

    x: FloatArray  #: as prestandardised
    logs: FloatArray
    kept: FloatArray  #: the logs of values kept, 0 for others
    y: FloatArray  #: transforms, (1, LANES n)
    ones: FloatArray  #: (1, n)
    fields: FloatArray  #: (_N_FIELDS, LANES)


LANE_BATCH = named_tuple(LaneBatch, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS)


def new_lane_batch(n: int) -> LaneBatch:
    """The arrays of `LaneBatch` for columns of up to `n` values."""
    x, logs, kept = (np.ones((n, LANES)) for _ in range(3))
    return LaneBatch(x, logs, kept, np.empty((1, LANES * n)), np.ones((1, n)), np.ones((_N_FIELDS, LANES)))
