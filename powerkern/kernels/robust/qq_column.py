"""The QQ objective of a prestandardised column at one lambda and, for short columns, at vectors of lambdas.

References
----------
.. [1] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning 113, 2024,
   4953-4975.
"""

from __future__ import annotations

from powerkern._jit import LANES, kernel, specialize_on_none
from powerkern._typing import FloatArray
from powerkern.kernels.location.huber import CELLWISE_BETA, HUBER_K, nonempty_one_step
from powerkern.kernels.location.loc_scale import LocScale
from powerkern.kernels.location.weights import FrequencyWeights, ScoreNodes
from powerkern.kernels.robust.column import Prestandardized
from powerkern.kernels.robust.options import Options
from powerkern.kernels.robust.qq import (
    CLOSE,
    PAPER,
    bisquare_distance,
    normal_nodes,
    normal_scores,
    sampled_score,
)
from powerkern.kernels.robust.qq_lanes import qq_objectives
from powerkern.kernels.robust.qq_search import qq_objective, search_cells
from powerkern.kernels.robust.reweighting import KeptRange, within_cutoff
from powerkern.kernels.robust.scratch import SAMPLE, RobustWork
from powerkern.kernels.robust.search import (
    HIGH,
    LOW,
    GridScan,
    complete_points,
    minima_and_beyond,
    n_steps,
    sample_position,
)
from powerkern.kernels.transforms.rectified import SortedColumn, transform_sorted

#: Number of parts into which each step of the grid is divided if there are weights; parts are 1/8 wide. (Without
#: weights, cells are 0.05 to 0.23 wide.) With 2 and 8 parts, 12 simulated columns take 74 and 189 evaluations instead
#: of 112, and give the same lambdas (report_constants weights).
_WEIGHTED_PARTS = 4
#: Number of points at which the objective of a longer column is evaluated around each minimum of its sample. Without
#: them, 8 of 400 columns of 513 to 1,000 values missed a minimum lower by more than 1e-4 of the objective; with 8 or 16
#: points, 1 did; with 8 points and a sample of 128 values instead of 256, 5 did (`tests.fuzz.starts`).
_N_CLOSE = LANES
#: Distances from a lambda at which the objective of a possible second start is evaluated. With half of these distances,
#: as many second starts are found for 24 simulated columns. With double the distances, fewer are found (74 evaluations
#: instead of 81). All lambdas are the same (report_constants weights).
_ABOUT = (0.125, 0.0, -0.125, -0.25, -0.375, -0.5, -0.75, -1.0)


@kernel
def qq_value(standardized: Prestandardized, lmbda: float, options: Options, work: RobustWork) -> float:
    """Return the mean bisquare distance of a column from normal scores ([1]_, eq. (5)); NaN if it is undefined.

    Parameters
    ----------
    standardized : Prestandardized
        The prestandardised column, with room for its transform.
    lmbda : float
        Lambda of the prestandardised column.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch.
    """
    # the rectified transform of [1]_: linear beyond the change points
    transform_sorted(standardized.column, lmbda, options.rule, standardized.y)
    y = standardized.y[: standardized.column.n]
    # mu and sigma of [1]_
    estimate = one_step(y, standardized.counts)
    # [1]_, eq. (5)
    return bisquare_distance(standardized.counts, y, standardized.target, estimate.loc, estimate.scale, options.c)


@kernel
def one_step(y: FloatArray, counts: FrequencyWeights | None) -> LocScale:
    """Return Huber's location and scale after one step from median and MAD.

    [1]_ uses M-estimates, but the authors' programs take one step. With estimates iterated to convergence, RewML would
    resist fewer outliers.
    """
    return nonempty_one_step(y, counts, HUBER_K, CELLWISE_BETA)


@kernel
def keep_within(
    standardized: Prestandardized, lmbda: float, rule: int, adaptive: bool, options: Options, work: RobustWork
) -> KeptRange:
    """Return the range of values within the cut-off, whose weight in [1]_, eq. (16), is 1.

    Parameters
    ----------
    standardized : Prestandardized
        The prestandardised column, with room for its transform.
    lmbda : float
        Lambda of the prestandardised column.
    rule : int
        The rectification rule of the transform (`kernels.transforms.rectified`).
    adaptive : bool
        Ignored; adaptive cut-offs are in `adaptive_rewml`.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch.
    """
    transform_sorted(standardized.column, lmbda, rule, standardized.y)
    y = standardized.y[: standardized.column.n]
    return within_cutoff(y, one_step(y, standardized.counts), options.cutoff, lmbda, rule)


# --- normal scores ------------------------------------------------------------------------------------


@kernel
def make_scores(
    counts: FrequencyWeights | None, column: SortedColumn, options: Options, work: RobustWork
) -> FloatArray | ScoreNodes:
    """Return the normal scores of a column or, with weights, their nodes.

    Parameters
    ----------
    counts : FrequencyWeights or None
        Weights of the values; None: all one.
    column : SortedColumn
        The prestandardised column.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch.
    """
    return _scores(counts, column.n, options, work)


@kernel
def _plain_scores(counts: None, n: int, options: Options, work: RobustWork) -> FloatArray:
    """Return the normal scores for n values without weights, computed once for all columns of this length."""
    scores = work.scores[:n]
    if work.scores_of[0] != n:
        normal_scores(scores)
        work.scores_of[0] = n
    return scores


@specialize_on_none(_plain_scores)
def _scores(counts: FrequencyWeights, n: int, options: Options, work: RobustWork) -> FloatArray | ScoreNodes:
    return normal_nodes(counts, PAPER, CLOSE * options.c)


@kernel
def sample_scores(
    full_column: Prestandardized, column: SortedColumn, counts: FrequencyWeights | None, work: RobustWork
) -> FloatArray | ScoreNodes:
    """Return the normal scores of the sampled values, by their ranks in the full column.

    Parameters
    ----------
    full_column : Prestandardized
        The prestandardised column with all its values.
    column : SortedColumn
        The sample.
    counts : FrequencyWeights or None
        Weights of the sample; None: all one.
    work : RobustWork
        Scratch.
    """
    return _sample_scores(counts, full_column, work)


@kernel
def _plain_sample_scores(counts: None, full_column: Prestandardized, work: RobustWork) -> FloatArray:
    scores: FloatArray = work.sample[2, :SAMPLE]
    for k in range(SAMPLE):
        scores[k] = full_column.target[sample_position(None, full_column.column.n, k)]
    return scores


@specialize_on_none(_plain_sample_scores)
def _sample_scores(counts: FrequencyWeights, full_column: Prestandardized, work: RobustWork) -> FloatArray | ScoreNodes:
    nodes = work.sample_counts.nodes
    row, score, spread, weight = nodes.row, nodes.score, nodes.spread, nodes.weight
    for k in range(SAMPLE):
        row[k], spread[k], weight[k] = k, 0.0, counts.w[k]
        score[k] = sampled_score(full_column.counts, (k + 0.5) / SAMPLE)  # type: ignore[arg-type]
    return ScoreNodes(row[:SAMPLE], score[:SAMPLE], spread[:SAMPLE], weight[:SAMPLE])


# --- scans of a short column, or of a sample ------------------------------------------------------------


@kernel
def scan_qq(standardized: Prestandardized, low: float, high: float, options: Options, work: RobustWork) -> GridScan:
    """Find cells with local minima of the QQ objective.

    Parameters
    ----------
    standardized : Prestandardized
        The prestandardised column, with room for its transform.
    low : float
        Lower end of the range of lambda.
    high : float
        Upper end of the range.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch; receives the cells.
    """
    n_points = _scan_points(standardized.counts, standardized.target, standardized, low, high, options, work)
    return minima_and_beyond(evaluate, standardized, n_points, low, high, options, work)


@kernel
def _in_cells(
    counts: None,
    scores: FloatArray,
    standardized: Prestandardized,
    low: float,
    high: float,
    options: Options,
    work: RobustWork,
) -> int:
    qq = qq_objective(standardized.column, scores, options.rule, HUBER_K, options.c, work.search)
    return search_cells(qq, low, high, work.grid, work.search)


@specialize_on_none(_in_cells)
def _scan_points(
    counts: FrequencyWeights,
    scores: ScoreNodes,
    standardized: Prestandardized,
    low: float,
    high: float,
    options: Options,
    work: RobustWork,
) -> int:
    """Evaluate the objective on a grid of lambda in ``work.grid``, and return the number of its points.

    With weights the grid is evenly spaced. Without weights, `_in_cells` refines the grid where the objective may be
    lowest.

    Parameters
    ----------
    counts : FrequencyWeights
        The weights of the column.
    scores : ScoreNodes
        The nodes of the normal scores.
    standardized : Prestandardized
        The prestandardised column, with room for its transform.
    low : float
        Lower end of the range of lambda.
    high : float
        Upper end of the range.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch; receives the grid.
    """
    last = n_steps(low, high) * _WEIGHTED_PARTS
    n_points = (last // LANES + 1) * LANES
    for k in range(n_points):
        work.grid[0, k] = low + (high - low) / last * min(k, last)
    evaluate(standardized, n_points, options, work)
    return last + 1


@kernel
def evaluate(standardized: Prestandardized, n: int, options: Options, work: RobustWork) -> int:
    """Evaluate the objective at the first n points of `work.grid`; return the index of the lowest one.

    Parameters
    ----------
    standardized : Prestandardized
        The prestandardised column, with room for its transform.
    n : int
        The number of points, a multiple of LANES.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch.
    """
    points, values = work.grid[0, :n], work.grid[1, :n]
    log_units = 0.0, 0.0
    qq_objectives(
        standardized.column,
        log_units,
        standardized.counts,
        standardized.target,
        options.rule,
        HUBER_K,
        options.c,
        points,
        work.lanes,
        values,
    )
    return complete_points(values, work.grid[2, :n])


@kernel
def is_lower_below(standardized: Prestandardized, lmbda: float, options: Options, work: RobustWork) -> bool:
    """Return whether the objective is lower at some point below `lmbda` than it is at `lmbda` and just above it.

    The objective is evaluated at LANES points.

    Parameters
    ----------
    standardized : Prestandardized
        The prestandardised column, with room for its transform.
    lmbda : float
        Lambda of the prestandardised column.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch.
    """
    for k in range(LANES):
        work.grid[0, k] = lmbda + _ABOUT[k]
    return evaluate(standardized, LANES, options, work) > 1


@kernel
def shrink_cell(standardized: Prestandardized, cell: FloatArray, options: Options, work: RobustWork) -> int:
    """Shrink a cell to the neighbors of the lowest of _N_CLOSE evenly spaced points; return the number of evaluations.

    Parameters
    ----------
    standardized : Prestandardized
        The prestandardised column, with room for its transform.
    cell : (8,)
        The cell, with the fields LOW, HIGH, ... of `kernels.robust.search`; updated in place.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch.
    """
    low, high, points = cell[LOW], cell[HIGH], work.grid[0]
    for k in range(_N_CLOSE):
        points[k] = low + (high - low) * (k / (_N_CLOSE - 1.0))
    best = evaluate(standardized, _N_CLOSE, options, work)
    cell[LOW], cell[HIGH] = points[max(best - 1, 0)], points[min(best + 1, _N_CLOSE - 1)]
    return _N_CLOSE
