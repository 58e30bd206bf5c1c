"""The objective of a robust estimator: bisquare QQ distance, Carroll's likelihood or trimmed likelihood.

References
----------
.. [1] R. J. Carroll, "A robust method for testing transformations to achieve approximate normality", JRSS B 42, 1980.
"""

from __future__ import annotations

import math

from powerkern._jit import for_none, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.log import log
from powerkern.kernels.robust.huber import CELLWISE_BETA, HUBER_K, huber_likelihood_of, one_step_of
from powerkern.kernels.robust.loc_scale import LocScale
from powerkern.kernels.robust.options import CARROLL, TRIMMED, Options, Prestandardized
from powerkern.kernels.robust.qq import bisquare_objective_of, weighted_bisquare_of
from powerkern.kernels.robust.trimmed import best_window
from powerkern.kernels.robust.weights import Counts, Nodes
from powerkern.kernels.transforms.rectified import transform_sorted


@kernel
def huber_of(y: FloatArray, counts: Counts | None, criterion: int) -> LocScale:
    """One step from median and MAD: iterated to the end, RewML resists fewer outliers.

    Carroll's likelihood [1]_ has the density that is normal in the center and falls off more slowly beyond.
    """
    if criterion == CARROLL:
        return huber_likelihood_of(y, counts, HUBER_K)
    return one_step_of(y, counts, HUBER_K, CELLWISE_BETA)


@kernel
def objective(at: Prestandardized, lmbda: float, options: Options) -> float:
    """The estimator's objective, which it minimises over lambda; NaN where it is not defined."""
    transform_sorted(at.column, lmbda, options.rule, at.y)
    y = at.y[: at.column.n]
    if options.criterion == TRIMMED:
        return best_window(at.counts, at, lmbda, options.fraction).value
    estimate = huber_of(y, at.counts, options.criterion)
    if options.criterion == CARROLL:
        return carroll_value(at, lmbda, estimate.scale)
    if not estimate.scale > 0.0:
        return math.nan
    return _distance(at.counts, y, at.scores, estimate, options.c)


@kernel
def carroll_value(at: Prestandardized, lmbda: float, scale: float) -> float:
    """Carroll's objective from the robust scale; NaN where that is 0."""
    return log(scale) - (lmbda - 1.0) * at.jacobian if scale > 0.0 else math.nan


@kernel
def _plain_distance(counts: None, y: FloatArray, scores: FloatArray, estimate: LocScale, c: float) -> float:
    return bisquare_objective_of(y, scores, estimate.loc, estimate.scale, c)


@for_none(_plain_distance)
def _distance(counts: Counts, y: FloatArray, nodes: Nodes, estimate: LocScale, c: float) -> float:
    """The bisquare distance from normal scores."""
    return weighted_bisquare_of(y, nodes, counts.total, estimate.loc, estimate.scale, c)
