"""The options of a robust fit, and its work arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from powerkern._jit import LANES, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.likelihood.scratch import Work, new_work
from powerkern.kernels.results import N_RESULTS
from powerkern.kernels.robust.qq_search import MOST_POINTS, CellWork, new_cell_work
from powerkern.kernels.robust.reweighting_lanes import LaneBatch, new_lane_batch
from powerkern.kernels.robust.weights import (
    Counts,
    CountsWork,
    Nodes,
    new_counts_work,
    position_at,
    position_from_above,
)
from powerkern.kernels.transforms.rectified import NOT_RECTIFIED, ROOM, SortedColumn, rank_of

# objectives, minimised over lambda: the bisquare QQ distance, Carroll's likelihood, the trimmed likelihood
QQ, CARROLL, TRIMMED = range(3)
# how a column is brought to a common scale
RAW, MEDIAN, MAD = range(3)
# how lambda is searched for
GLOBAL, BRENT = range(2)
#: Number of reweighting steps: as many as it takes until the values kept no longer change.
UNTIL_SETTLED = -1
#: R's default tolerance of optimize(): the fourth root of the rounding unit.
CELLWISE_XTOL = 0.0001220703125
#: Order statistics used by the scan; longer columns than ALL are searched on them, too, before all values are.
SAMPLE, ALL = 128, 512
#: Local minima that are followed up.
_MAX_CELLS = 16
# a cell: its ends and the objective there (inf: unknown), its lowest point known and the objective there, where its
# minimum was found (NaN: not searched), and what that is at least
LOW, HIGH, AT_LOW, AT_HIGH, LOWEST, VALUE, MINIMISER, FLOOR = range(8)


class Options(NamedTuple):
    """Options of `fit_sorted`; `low`, `high` bound the search in lambda of the prestandardised column.

    `with_rule` copies the fields by position.
    """

    criterion: int
    rule: int  #: change points of `kernels.transforms.rectified`; BOTH: those, or the quartile that lambda flattens
    prestandardize: int
    search: int
    cellwise: bool  #: R's conventions: the interval is searched as it is and widened afterwards; n - 1
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
    #: (5, MOST_POINTS): points of the scan, values there, and what they are likely near them at least; Carroll's
    #: search: location and scale there
    grid: FloatArray
    cells: FloatArray  #: (_MAX_CELLS, 8): where local minima are, see LOW ...
    lanes: FloatArray  #: LANES * ALL: transforms of a short column at LANES lambdas
    trial: FloatArray  #: N_RESULTS: a fit beside that of the column
    counts: CountsWork  #: of a column with weights
    sample_counts: CountsWork
    search: CellWork  #: for columns of up to ALL values
    batch: LaneBatch  #: the same


class Prestandardized(NamedTuple):
    """A prestandardised column with its normal scores, its mean log, and room for its transform.

    The type of `counts`, weights or None, says which code is compiled; with weights, the scores have nodes.
    """

    column: SortedColumn
    counts: Counts | None
    scores: FloatArray | Nodes
    jacobian: float
    y: FloatArray  #: as long as the arrays of `column`
    lanes: FloatArray  #: see `RobustWork`
    outward: tuple[FloatArray, FloatArray, FloatArray]


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
    sample, grid, cells = (
        np.ones((5, SAMPLE + ROOM)),
        np.empty((5, MOST_POINTS)),
        np.empty((_MAX_CELLS, 8)),
    )
    counts, sample_counts = new_counts_work(n if weighted else 0), new_counts_work(SAMPLE if weighted else 0)
    return RobustWork(
        new_work(n), values, logs, y, scores, np.full(1, -1), sample, grid, cells, np.ones(LANES * ALL),
        np.empty(N_RESULTS), counts, sample_counts, new_cell_work(ALL), new_lane_batch(min(n, ALL)),
    )  # fmt: skip


@kernel
def with_rule(o: Options, rule: int) -> Options:
    """The same with other change points."""
    first_rule = o.first_rule if o.first_rule == NOT_RECTIFIED else rule
    return Options(
        o.criterion, rule, o.prestandardize, o.search, o.cellwise, o.low, o.high, o.cutoff, o.n_reweight, o.adaptive,
        o.fraction, o.c, o.lower_tail, o.upper_tail, first_rule,
    )  # fmt: skip


@kernel
def change_ranks(counts: Counts | None, n: int, options: Options) -> tuple[int, int]:
    """Which of n order statistics, from 0, the change points are, or are found from."""
    if counts is not None:
        return position_at(counts, options.lower_tail), position_from_above(counts, options.upper_tail)
    return rank_of(n, options.lower_tail), n - 1 - rank_of(n, options.upper_tail)
