"""Scratch space for robust fits, and its sizes."""

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

#: Columns of more than ALL values are first searched on a sample of SAMPLE order statistics.
SAMPLE, ALL = 256, 512
#: Longest column that is evaluated at LANES lambdas at once around each minimum of its sample.
_MOST_IN_LANES = 2048
#: Largest number of local minima that are refined, and number of fields of a cell (`kernels.robust.search`).
_MAX_CELLS, _N_CELL = 16, 8


class RobustWork(NamedTuple):
    """Scratch arrays for robust fits, used for one column after another."""

    mle: Work  #: scratch of maximum likelihood
    values: FloatArray  #: the prestandardised column
    logs: FloatArray  #: the signed logs of `values`
    y: FloatArray  #: transformed values
    scores: FloatArray  #: normal scores
    scores_of: npt.NDArray[np.int64]  #: the length of the column that `scores` is for
    sample: FloatArray  #: (5, SAMPLE + ROOM): values, logs, scores, y, ones
    #: (5, MOST_POINTS): grid points, the objective at these points, and lower bounds near them; in Carroll's search
    #: also location and scale at the points
    grid: FloatArray
    cells: FloatArray  #: (_MAX_CELLS, _N_CELL): cells that contain local minima
    lanes: FloatArray  #: at most LANES * _MOST_IN_LANES: transforms of a column at LANES lambdas, or at another lambda
    trial: FloatArray  #: N_RESULTS: results of a trial fit
    counts: FrequencyWork  #: tables for the weights of the column
    sample_counts: FrequencyWork  #: tables for the weights of its sample
    search: CellWork  #: scratch for columns of up to ALL values


ROBUST_WORK = named_tuple(
    RobustWork, WORK, COLUMN, COLUMN, COLUMN, COLUMN, COUNTS, ROWS, ROWS, ROWS, COLUMN, COLUMN,
    FREQUENCY_WORK, FREQUENCY_WORK, CELL_WORK,
)  # fmt: skip


def new_robust_work(n: int, weighted: bool = False) -> RobustWork:
    """Allocate a `RobustWork` for columns of up to `n` values, with tables for weights if `weighted`."""
    values, logs, y, scores = (np.ones(n + ROOM) for _ in range(4))
    sample, grid, cells = np.ones((5, SAMPLE + ROOM)), np.empty((5, MOST_POINTS)), np.empty((_MAX_CELLS, _N_CELL))
    lanes = np.ones(LANES * min(max(n, ALL), _MOST_IN_LANES))
    counts, sample_counts = new_frequency_work(n if weighted else 0), new_frequency_work(SAMPLE if weighted else 0)
    return RobustWork(
        new_work(n), values, logs, y, scores, np.full(1, -1), sample, grid, cells, lanes,
        np.empty(N_RESULTS), counts, sample_counts, new_cell_work(ALL),
    )  # fmt: skip
