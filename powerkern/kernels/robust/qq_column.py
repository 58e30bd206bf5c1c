"""The QQ objective of a prestandardised column at one lambda, with Huber's location and scale by one step."""

from __future__ import annotations

import math

from powerkern._jit import for_none, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.robust.huber import CELLWISE_BETA, HUBER_K, one_step_of
from powerkern.kernels.robust.loc_scale import LocScale
from powerkern.kernels.robust.options import SAMPLE, Options, Prestandardized, RobustWork
from powerkern.kernels.robust.qq import (
    CLOSE,
    PAPER,
    bisquare_objective_of,
    normal_nodes,
    normal_scores,
    sampled_score,
    weighted_bisquare_of,
)
from powerkern.kernels.robust.search import sample_position
from powerkern.kernels.robust.weights import Counts, Nodes
from powerkern.kernels.transforms.rectified import SortedColumn, transform_sorted


@kernel
def qq_value(at: Prestandardized, lmbda: float, options: Options, work: RobustWork) -> float:
    """The bisquare distance from normal scores; NaN where it is not defined."""
    transform_sorted(at.column, lmbda, options.rule, at.y)
    y = at.y[: at.column.n]
    estimate = one_step(y, at.counts)
    if not estimate.scale > 0.0:
        return math.nan
    return _distance(at.counts, y, at.target, estimate, options.c)


@kernel
def one_step(y: FloatArray, counts: Counts | None) -> LocScale:
    """One step from median and MAD: iterated to the end, RewML resists fewer outliers."""
    return one_step_of(y, counts, HUBER_K, CELLWISE_BETA)


@kernel
def _plain_distance(counts: None, y: FloatArray, scores: FloatArray, estimate: LocScale, c: float) -> float:
    return bisquare_objective_of(y, scores, estimate.loc, estimate.scale, c)


@for_none(_plain_distance)
def _distance(counts: Counts, y: FloatArray, nodes: Nodes, estimate: LocScale, c: float) -> float:
    return weighted_bisquare_of(y, nodes, counts.total, estimate.loc, estimate.scale, c)


# --- normal scores ------------------------------------------------------------------------------------


@kernel
def scores_of(counts: Counts | None, column: SortedColumn, options: Options, work: RobustWork) -> FloatArray | Nodes:
    """The normal scores of a column, with weights their nodes."""
    return _scores(counts, column.n, options, work)


@kernel
def _plain_scores(counts: None, n: int, options: Options, work: RobustWork) -> FloatArray:
    """One table serves all columns of a length."""
    scores = work.scores[:n]
    if work.scores_of[0] != n:
        normal_scores(scores)
        work.scores_of[0] = n
    return scores


@for_none(_plain_scores)
def _scores(counts: Counts, n: int, options: Options, work: RobustWork) -> FloatArray | Nodes:
    return normal_nodes(counts, PAPER, CLOSE * options.c)


@kernel
def sample_scores(
    every: Prestandardized, column: SortedColumn, counts: Counts | None, work: RobustWork
) -> FloatArray | Nodes:
    """The scores, in all of the column, of the values of its sample."""
    return _sample_scores(counts, every, work)


@kernel
def _plain_sample_scores(counts: None, every: Prestandardized, work: RobustWork) -> FloatArray:
    scores: FloatArray = work.sample[2, :SAMPLE]
    for k in range(SAMPLE):
        scores[k] = every.target[sample_position(None, every.column.n, k)]
    return scores


@for_none(_plain_sample_scores)
def _sample_scores(counts: Counts, every: Prestandardized, work: RobustWork) -> FloatArray | Nodes:
    nodes = work.sample_counts.nodes
    row, score, spread, weight = nodes.row, nodes.score, nodes.spread, nodes.weight
    for k in range(SAMPLE):
        row[k], spread[k], weight[k] = k, 0.0, counts.w[k]
        score[k] = sampled_score(every.counts, (k + 0.5) / SAMPLE)  # type: ignore[arg-type]
    return Nodes(row[:SAMPLE], score[:SAMPLE], spread[:SAMPLE], weight[:SAMPLE])
