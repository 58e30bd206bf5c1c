"""The work arrays of robust fits, and the sizes that they are made for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from powerkern._jit import COLUMN, COUNTS, LANES, ROWS, named_tuple
from powerkern._typing import FloatArray
from powerkern.kernels.likelihood.scratch import WORK, Work, new_work
from powerkern.kernels.location.weights import FREQUENCY_WORK, FrequencyWork, new_frequency_work
from powerkern.kernels.results import N_RESULTS
from powerkern.kernels.robust.qq_search import CELL_WORK, MOST_POINTS, CellWork, new_cell_work
from powerkern.kernels.transforms.rectified import ROOM

#: Order statistics used by the scan; columns longer than ALL are first searched on them.
SAMPLE, ALL = 256, 512
#: Columns of at most this many values are evaluated at LANES lambdas at once around each minimum of their sample.
_MOST_IN_LANES = 2048
#: Local minima that are followed up, and the number of fields of a cell (`kernels.robust.search`).
_MAX_CELLS, _N_CELL = 16, 8


class RobustWork(NamedTuple):
    """Scratch: of `mle`, four arrays of the column's length, small ones, and the sizes that the scores are for."""

    mle: Work
    values: FloatArray
    logs: FloatArray
    y: FloatArray
    scores: FloatArray
    scores_of: npt.NDArray[np.int64]  #: the length of the column that the scores are for
    sample: FloatArray  #: (5, SAMPLE + ROOM): values, logs, scores, y, ones
    #: (5, MOST_POINTS): points of the scan, values there, and likely lower bounds near them; in Carroll's search also
    #: location and scale there
    grid: FloatArray
    cells: FloatArray  #: (_MAX_CELLS, _N_CELL): where local minima are
    lanes: FloatArray  #: LANES * _MOST_IN_LANES at most: transforms of a column at LANES lambdas, or at another one
    trial: FloatArray  #: N_RESULTS: a trial fit of the column
    counts: FrequencyWork  #: of a column with weights
    sample_counts: FrequencyWork
    search: CellWork  #: for columns of up to ALL values


ROBUST_WORK = named_tuple(
    RobustWork, WORK, COLUMN, COLUMN, COLUMN, COLUMN, COUNTS, ROWS, ROWS, ROWS, COLUMN, COLUMN,
    FREQUENCY_WORK, FREQUENCY_WORK, CELL_WORK,
)  # fmt: skip


def new_robust_work(n: int, weighted: bool = False) -> RobustWork:
    """Allocate `RobustWork` for columns of up to `n` values, with weights or without."""
    values, logs, y, scores = (np.ones(n + ROOM) for _ in range(4))
    sample, grid, cells = np.ones((5, SAMPLE + ROOM)), np.empty((5, MOST_POINTS)), np.empty((_MAX_CELLS, _N_CELL))
    lanes = np.ones(LANES * min(max(n, ALL), _MOST_IN_LANES))
    counts, sample_counts = new_frequency_work(n if weighted else 0), new_frequency_work(SAMPLE if weighted else 0)
    return RobustWork(
        new_work(n), values, logs, y, scores, np.full(1, -1), sample, grid, cells, lanes,
        np.empty(N_RESULTS), counts, sample_counts, new_cell_work(ALL),
    )  # fmt: skip
