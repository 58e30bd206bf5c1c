"""The options of a robust fit, and its work arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from powerkern._jit import COLUMN, COUNTS, LANES, ROWS, kernel, named_tuple
from powerkern._typing import FloatArray
from powerkern.kernels.likelihood.scratch import WORK, Work, new_work
from powerkern.kernels.results import N_RESULTS
from powerkern.kernels.robust.qq_search import CELL_WORK, MOST_POINTS, CellWork, new_cell_work
from powerkern.kernels.robust.weights import (
    COUNTS_WORK,
    Counts,
    CountsWork,
    new_counts_work,
    position_at,
    position_from_above,
)
from powerkern.kernels.transforms.rectified import NOT_RECTIFIED, ROOM, SortedColumn, rank_of

# objectives, minimised over lambda: the bisquare QQ distance, the same by R's conventions, Carroll's likelihood, and
# the trimmed likelihood
QQ, CELLWISE_QQ, CARROLL, TRIMMED = range(4)
# prestandardisation: none, by the median, by the MAD
RAW, MEDIAN, MAD = range(3)
# searches for lambda: a scan of all local minima, or Brent's method once
GLOBAL, BRENT = range(2)
#: Number of reweighting steps: as many as it takes until the values kept no longer change.
UNTIL_SETTLED = -1
#: Order statistics used by the scan; longer columns than ALL are searched on them, too, before all values are.
SAMPLE, ALL = 256, 512
#: Columns of at most so many values are evaluated at LANES lambdas at once around each minimum of their sample.
_MOST_IN_LANES = 2048
#: Local minima that are followed up, and the number of fields of a cell (`kernels.robust.search`).
_MAX_CELLS, _N_CELL = 16, 8


class Options(NamedTuple):
    """Options of a fit; `low`, `high` bound the search in lambda of the prestandardised column.

    `with_rule` copies the fields by position.
    """

    rule: int  #: change points of `kernels.transforms.rectified`; BOTH: those, or the quartile that lambda flattens
    prestandardize: int
    search: int
    low: float
    high: float
    cutoff: float  #: values further from the center, in scales, are left out: the normal quantile of users' `cutoff`
    n_reweight: int
    adaptive: bool  #: steps after the first cut off where there are more values than of a normal sample, or far out
    fraction: float  #: of the values that the trimmed likelihood keeps
    c: float  #: constant of the bisquare distance
    lower_tail: float  #: shares of the values beyond the change points
    upper_tail: float
    first_rule: int  #: change points where the first weights are set, users' `first_weights`


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
    trial: FloatArray  #: N_RESULTS: a fit beside that of the column
    counts: CountsWork  #: of a column with weights
    sample_counts: CountsWork
    search: CellWork  #: for columns of up to ALL values


ROBUST_WORK = named_tuple(
    RobustWork, WORK, COLUMN, COLUMN, COLUMN, COLUMN, COUNTS, ROWS, ROWS, ROWS, COLUMN, COLUMN,
    COUNTS_WORK, COUNTS_WORK, CELL_WORK,
)  # fmt: skip


class Prestandardized(NamedTuple):
    """A prestandardised column, the target of the objective, and room for the transform.

    The type of `counts`, weights or None, says which code is compiled.
    """

    column: SortedColumn
    counts: Counts | None
    target: Any  #: normal scores, with weights their nodes; for Carroll's objective the mean log
    y: FloatArray  #: as long as the arrays of `column`


class Prescaling(NamedTuple):
    """Prestandardisation: ``(x - center)/divisor`` (Yeo-Johnson), ``(x/divisor)**(1/power)`` (Box-Cox)."""

    center: float
    divisor: float
    power: float
    status: int


class Column(NamedTuple):
    """A sorted column that is fitted: in its own units, and as it is searched."""

    x: FloatArray
    family: int
    prescaling: Prescaling
    at: Prestandardized


class Start(NamedTuple):
    """Result of a search."""

    lmbda: float
    n_eval: int
    n_rivals: int
    inside: bool
    value: float  #: of the objective


def new_robust_work(n: int, weighted: bool = False) -> RobustWork:
    """The arrays of `RobustWork` for columns of up to `n` values, and for weights."""
    values, logs, y, scores = (np.ones(n + ROOM) for _ in range(4))
    sample, grid, cells = np.ones((5, SAMPLE + ROOM)), np.empty((5, MOST_POINTS)), np.empty((_MAX_CELLS, _N_CELL))
    lanes = np.ones(LANES * min(max(n, ALL), _MOST_IN_LANES))
    counts, sample_counts = new_counts_work(n if weighted else 0), new_counts_work(SAMPLE if weighted else 0)
    return RobustWork(
        new_work(n), values, logs, y, scores, np.full(1, -1), sample, grid, cells, lanes,
        np.empty(N_RESULTS), counts, sample_counts, new_cell_work(ALL),
    )  # fmt: skip


@kernel
def with_rule(o: Options, rule: int, adaptive: bool) -> Options:
    """The same with other change points, and with adaptive cut-offs or without."""
    first_rule = o.first_rule if o.first_rule == NOT_RECTIFIED else rule
    return Options(
        rule, o.prestandardize, o.search, o.low, o.high, o.cutoff, o.n_reweight, adaptive, o.fraction, o.c,
        o.lower_tail, o.upper_tail, first_rule,
    )  # fmt: skip


@kernel
def change_ranks(counts: Counts | None, n: int, options: Options) -> tuple[int, int]:
    """Which of n order statistics, from 0, the change points are, or are found from."""
    if counts is not None:
        return position_at(counts, options.lower_tail), position_from_above(counts, options.upper_tail)
    return rank_of(n, options.lower_tail), n - 1 - rank_of(n, options.upper_tail)
