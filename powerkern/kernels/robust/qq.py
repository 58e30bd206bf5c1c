"""The robust QQ objective: the mean bisquare distance of a sorted column from normal quantiles.

With normal scores z_i = Phi^-1((i - 1/3)/(n + 1/3)) and Tukey's bisquare rho, the objective is the sum in [1]_, eq.
(5), divided by n::

    Q = 1/n sum_i rho((y_(i) - mu)/sigma - z_i),   rho(t) = 1 - (1 - (t/c)^2)^3 for |t| <= c, and 1 beyond

A value far from its quantile contributes 1, no matter how far it is.

A row of weight w (`powerkern.kernels.location.weights`) stands for w copies, each with its own score::

    z = Phi^-1((r + 1/6)/(n + 1/3)),    r = W + 1/2, W + 3/2, ..., W + w - 1/2

Here n is the sum of all weights, and W the sum of the weights of smaller values. For a weight w between integers k and
k + 1 the objective is a mean of two objectives, with weights w - k and 1 - (w - k). In the first objective the ranks r
are the centers of k + 1 equal parts of the interval from W to W + w; in the second they are the centers of k equal
parts. Integer weights are therefore repetitions, and the objective is continuous in the weights.

Where rho is less than 1 it is a polynomial, so its mean over copies with similar scores is rho at the mean score plus a
term in the variance of the scores. `normal_nodes` divides the copies into such groups, called nodes.

References
----------
.. [1] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning 113, 2024,
   4953-4975.
.. [2] M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics 37,
   1988, 477-484.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from powerkern._jit import (
    READ_COLUMN,
    REAL,
    compiled_as,
    entry,
    inlined,
    kernel,
    reduction,
    specialize_on_none,
    widest_vectors,
)
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp import exp, expm1
from powerkern.kernels.elementary.log import log
from powerkern.kernels.location.huber import sd_within
from powerkern.kernels.location.order_statistics import SLACK
from powerkern.kernels.location.weights import FrequencyWeights, ScoreNodes, weight_at, weight_inside, weight_unit
from powerkern.kernels.plain_arguments import as_real, as_vector, format_argument

#: The constant c of the paper.
C = 0.5

#: Largest difference between scores in a node, as a fraction of c. The error of the objective is then below 1e-6.
CLOSE = 1.0 / 16.0
#: Values of `shift` in the normal scores Phi^-1((r + shift)/(n + 2 shift)), r = i - 1/2 for the i-th copy: in the
#: paper, and for Filliben's medians.
PAPER, FILLIBEN = 1.0 / 6.0, 0.1825
#: Largest number of copies of a value used when two starts are compared, which limits the time for large weights. With
#: 4 and 16 copies the same starts are chosen for 24 simulated columns (report_constants weights).
_COPIES = 8.0
#: Nodes reserved for the row that is being divided when nodes run out.
_SPARE = 8
#: sqrt(2 pi), and ln 2.
_SQRT_2PI, _LN_2 = 2.5066282746310002, 0.6931471805599453

#: [2]_, coefficients of three rational functions, highest power first. For |p - 1/2| <= .425, the numerator.
_CENTER_P = (
    2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
    1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080,
)  # fmt: skip
#: Its denominator.
_CENTER_Q = (
    5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
    5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0,
)  # fmt: skip
#: In the tails, for sqrt(-ln p) up to 5, the numerator.
_TAIL_P = (
    7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258,
    3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734,
)  # fmt: skip
#: Its denominator.
_TAIL_Q = (
    1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
    6.89767334985100004550e-1, 1.67638483018380384940, 2.05319162663775882187, 1.0,
)  # fmt: skip
#: Farther out, the numerator.
_FAR_P = (
    2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
    2.96560571828504891230e-1, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720,
)  # fmt: skip
#: Its denominator.
_FAR_Q = (
    2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
    1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0,
)  # fmt: skip


@kernel
def _ratio(p: tuple[float, ...], q: tuple[float, ...], r: float) -> float:
    above, below = 0.0, 0.0
    for k in range(8):
        above = above * r + p[k]
        below = below * r + q[k]
    return above / below


@kernel
def normal_quantile(p: float) -> float:
    """Return Phi^-1(p) for 0 < p <= 1/2 ([2]_), accurate to about 1e-15."""
    q = p - 0.5
    if abs(q) <= 0.425:
        return q * _ratio(_CENTER_P, _CENTER_Q, 0.180625 - q * q)
    r = math.sqrt(-log(p))
    if r <= 5.0:
        return -_ratio(_TAIL_P, _TAIL_Q, r - 1.6)
    return -_ratio(_FAR_P, _FAR_Q, r - 5.0)


@kernel
def normal_scores(out: FloatArray) -> None:
    """Write the normal scores Phi^-1((i - 1/3)/(n + 1/3)), i = 1..n, to `out`; they are exactly antisymmetric."""
    n = out.size
    for i in range((n + 1) // 2):
        z = normal_quantile((i + 2.0 / 3.0) / (n + 1.0 / 3.0)) if 2 * i + 1 < n else 0.0
        out[i] = z
        out[n - 1 - i] = -z


@kernel
def normal_nodes(counts: FrequencyWeights, shift: float, max_gap: float) -> ScoreNodes:
    """Divide the copies that the weights stand for into nodes: copies of one value with similar normal scores.

    Parameters
    ----------
    counts : FrequencyWeights
        Weights of the sorted values; its arrays receive the nodes.
    shift : float
        PAPER or FILLIBEN, the shift of ranks in the scores.
    max_gap : float
        Largest difference between scores in a node.
    """
    nodes, n_nodes = counts.nodes, 0
    for i in range(counts.w.size):
        w = counts.w[i]
        middle, side = counts.before[i] + 0.5 * w, 1.0
        if counts.before[i] > counts.after[i + 1]:
            middle, side = counts.after[i + 1] + 0.5 * w, -1.0
        copies = _round_to_whole(w / counts.unit)
        score, slope = _score_at(min(middle, 0.5 * counts.total), shift, counts)
        if copies <= 1.0 or slope * w <= max_gap or _is_full(nodes, n_nodes, counts.w.size - i):
            parts = max(float(np.floor(copies)), 1.0)
            more = copies - parts if copies > 1.0 else 0.0
            spread = (1.0 - more) * _parts_variance(parts) + more * _parts_variance(parts + 1.0)
            n_nodes = _add_node(nodes, n_nodes, i, side * score, spread * (slope * w) ** 2, w)
        else:
            n_nodes = _add_copies(nodes, n_nodes, i, copies, shift, max_gap, counts)
    return ScoreNodes(nodes.row[:n_nodes], nodes.score[:n_nodes], nodes.spread[:n_nodes], nodes.weight[:n_nodes])


@kernel
def _round_to_whole(weight: float) -> float:
    """Round a weight to a whole number if the difference is only a rounding error; otherwise return it unchanged."""
    whole = float(np.floor(weight + 0.5))
    return whole if abs(weight - whole) <= SLACK * whole else weight


@kernel
def _score_at(rank: float, shift: float, counts: FrequencyWeights) -> tuple[float, float]:
    """Return the normal score of a rank in the lower half, and the derivative of the score in the rank.

    Ranks are cumulative weights; `shift` is PAPER or FILLIBEN.
    """
    room = counts.total + 2.0 * shift * counts.unit
    z = normal_quantile(min((rank + shift * counts.unit) / room, 0.5))
    return z, _SQRT_2PI * exp(0.5 * z * z) / room


@kernel
def sampled_score(counts: FrequencyWeights, fraction: float) -> float:
    """Return the normal score of the order statistic below which the given fraction of the weight lies."""
    if fraction > 0.5:
        return -_score_at((1.0 - fraction) * counts.total, PAPER, counts)[0]
    return _score_at(fraction * counts.total, PAPER, counts)[0]


@kernel
def _parts_variance(parts: float) -> float:
    """Return the variance of the centers of `parts` equal parts of the unit interval."""
    return (1.0 - 1.0 / (parts * parts)) / 12.0


@kernel
def first_score(counts: FrequencyWeights) -> float:
    """Return the score that Filliben's formula for inner ranks would give to the first copy of the smallest value."""
    return _score_at(min(0.5 * counts.unit, 0.5 * counts.total), FILLIBEN, counts)[0]


@kernel
def filliben_end(counts: FrequencyWeights) -> float:
    """Return Filliben's score of the first copy minus `first_score`, which uses the formula for inner ranks.

    Filliben's score of the first of n copies is the median of the smallest order statistic of n normal values.
    """
    return normal_quantile(-expm1(-_LN_2 * counts.unit / counts.total)) - first_score(counts)


@kernel
def _add_node(nodes: ScoreNodes, k: int, row: int, score: float, spread: float, weight: float) -> int:
    """Write node k for a group of copies of a value, and return k + 1.

    Parameters
    ----------
    nodes : ScoreNodes
        Receives the node.
    k : int
        Index of the node.
    row : int
        Index of the value.
    score : float
        Normal score of the middle of the group; the node gets the mean score, corrected for curvature in the rank.
    spread : float
        Variance of the scores within the group.
    weight : float
        Weight of the group.
    """
    nodes.row[k], nodes.spread[k], nodes.weight[k] = row, spread, weight
    nodes.score[k] = score + 0.5 * score * spread
    return k + 1


@kernel
def _add_copies(
    nodes: ScoreNodes, k: int, row: int, copies: float, shift: float, max_gap: float, counts: FrequencyWeights
) -> int:
    """Write nodes for the copies of a value, first those with ranks in the lower half; return the number of nodes.

    Parameters
    ----------
    nodes : ScoreNodes
        Receives the nodes.
    k : int
        Number of nodes written so far.
    row : int
        Index of the value.
    copies : float
        Number of copies. For a fractional number, nodes for the next smaller and the next larger whole number are
        mixed.
    shift : float
        PAPER or FILLIBEN, the shift of ranks in the scores.
    max_gap : float
        Largest difference between scores in a node.
    counts : FrequencyWeights
        Weights of the sorted values.
    """
    w, before, after = counts.w[row], counts.before[row], counts.after[row + 1]
    whole = float(np.floor(copies))
    for more in range(2):
        parts, factor = whole + more, copies - whole if more else 1.0 - (copies - whole)
        if factor > 0.0:
            size = w / parts
            below = min(max(float(np.ceil((0.5 * counts.total - before) / size - 0.5)), 0.0), parts)
            k = _add_run(nodes, k, row, before, size, below, factor, 1.0, shift, max_gap, counts)
            k = _add_run(nodes, k, row, after, size, parts - below, factor, -1.0, shift, max_gap, counts)
    return k


@kernel
def _is_full(nodes: ScoreNodes, k: int, n_left: int) -> bool:
    """Return whether the nodes that are left, except for a reserve, are needed for the last `n_left` values."""
    return k >= nodes.row.size - n_left - _SPARE


@kernel
def _add_run(
    nodes: ScoreNodes,
    k: int,
    row: int,
    start: float,
    size: float,
    parts: float,
    factor: float,
    side: float,
    shift: float,
    max_gap: float,
    counts: FrequencyWeights,
) -> int:
    """Write nodes for copies of a value with consecutive ranks, counted from one end; return the number of nodes.

    Parameters
    ----------
    nodes : ScoreNodes
        Receives the nodes.
    k : int
        Number of nodes written so far.
    row : int
        Index of the value.
    start : float
        Total weight between the end of the column and the first copy.
    size : float
        Weight of one copy.
    parts : float
        Number of copies.
    factor : float
        Factor that multiplies the weights of the nodes.
    side : float
        1 if ranks are counted from the low end, -1 if from the high end: the sign of the scores.
    shift : float
        PAPER or FILLIBEN, the shift of ranks in the scores.
    max_gap : float
        Largest difference between scores in a node.
    counts : FrequencyWeights
        Weights of the sorted values.
    """
    done = 0.0
    while done < parts:  # write one node per iteration; when nodes run out, one for all remaining copies
        score, slope = _score_at(start + (done + 0.5) * size, shift, counts)
        group = min(max(float(np.floor(max_gap / (slope * size))), 1.0), parts - done)
        if _is_full(nodes, k, counts.w.size - row):
            group = parts - done
        if group > 1.0:
            score, slope = _score_at(start + (done + 0.5 * group) * size, shift, counts)
        spread = _parts_variance(group) * (slope * size * group) ** 2
        k = _add_node(nodes, k, row, side * score, spread, factor * size * group)
        done += group
    return k


@kernel
def rho(t: float, c: float = C) -> float:
    """Return Tukey's bisquare of a residual: ``1 - (1 - (t/c)**2)**3`` if abs(t) <= c, and 1 otherwise.

    Parameters
    ----------
    t : float
        The distance of a standardised value from its normal score.
    c : float, default 0.5
        The distance beyond which the loss is 1.
    """
    return 1.0 - (1.0 - (t / c) ** 2) ** 3 if abs(t) <= c else 1.0


@inlined
def nearness(t2: float) -> float:
    """Return 1 - rho, given the squared residual in units of c, which must be at most 1.

    This is the fast form of `rho`, without branch or division. With weights, `_weighted_bisquare_sum` and
    `powerkern.kernels.robust.qq_lanes` add a term with the second derivative of rho.
    """
    u = 1.0 - t2
    return u * u * u


@reduction
def _weighted_bisquare_sum(y: FloatArray, nodes: ScoreNodes, loc: float, per_scale: float, per_c: float) -> float:
    row, score, spread, weight = nodes.row, nodes.score, nodes.spread, nodes.weight
    total = 0.0
    for k in range(row.size):
        t = ((y[row[k]] - loc) * per_scale - score[k]) * per_c
        t2 = t * t
        u = 1.0 - (t2 if t2 < 1.0 else 1.0)  # NaN is treated as infinite
        total += weight[k] * (u * (u * u + 3.0 * per_c * per_c * spread[k] * (4.0 - 5.0 * u)))
    return total


@reduction
def _bisquare_sum(y: FloatArray, scores: FloatArray, loc: float, per_scale: float, per_c: float) -> float:
    """Return the sum of ``1 - rho`` over all values.

    Parameters
    ----------
    y : (n,)
        The transformed values, ascending.
    scores : (n,)
        The normal scores.
    loc : float
        Location of the transformed values.
    per_scale : float
        ``1/scale`` of the transformed values.
    per_c : float
        ``1/c``, with the constant c of the bisquare.
    """
    widest_vectors()
    total = 0.0
    for i in range(y.size):
        t = ((y[i] - loc) * per_scale - scores[i]) * per_c
        t2 = t * t
        total += nearness(t2 if t2 < 1.0 else 1.0)  # NaN is treated as infinite
    return total


@kernel
def near_quantiles(
    y: FloatArray, counts: FrequencyWeights | None, start: int, stop: int, cutoff: float, c: float
) -> float:
    """Return the weighted sum of 1 - rho over y[start:stop], where rho is applied to the distances from quantiles.

    The quantiles are those of N(0, 1) truncated at +-cutoff. The values are scaled to have the mean and standard
    deviation of this distribution. At most _COPIES copies of each value are used.

    Parameters
    ----------
    y : (n,)
        The transformed values, ascending.
    counts : FrequencyWeights or None
        Weights of the values; None: all one.
    start : int
        Index of the first value.
    stop : int
        One more than the index of the last value.
    cutoff : float
        The largest distance of a kept value from the location, in units of the scale.
    c : float
        The constant of the bisquare.
    """
    tail = 0.5 * math.erfc(cutoff / math.sqrt(2.0))
    weight, unit, mean, squares = weight_inside(counts, start, stop), weight_unit(counts), 0.0, 0.0
    for i in range(start, stop):
        mean += y[i] * (weight_at(counts, i) / weight)
    for i in range(start, stop):
        squares += weight_at(counts, i) * ((y[i] - mean) * (y[i] - mean))
    if not 0.0 < squares < math.inf:
        return 0.0
    per_scale, near, rank = sd_within(cutoff) / math.sqrt(squares / weight), 0.0, 0.0
    for i in range(start, stop):
        parts = int(min(max(weight_at(counts, i) / unit + 0.5, 1.0), _COPIES))
        size = weight_at(counts, i) / parts
        for k in range(parts):
            p = (rank + (k + 0.5) * size + unit / 6.0) / (weight + unit / 3.0)
            z = normal_quantile(tail + (1.0 - 2.0 * tail) * min(p, 1.0 - p))
            near += size * (1.0 - rho((y[i] - mean) * per_scale - (z if p < 0.5 else -z), c))
        rank += weight_at(counts, i)
    return near


@kernel
def contiguous_bisquare_objective(y: FloatArray, scores: FloatArray, loc: float, scale: float, c: float = C) -> float:
    """Evaluate `bisquare_objective` for contiguous vectors.

    Parameters
    ----------
    y : ndarray of float64, shape (n,)
        The values, ascending.
    scores : ndarray of float64, shape (n,)
        The normal scores.
    loc : float
        Location of the values.
    scale : float
        Scale of the values.
    c : float
        The constant of the bisquare.
    """
    if y.size == 0 or not scale > 0.0:
        return math.nan
    return 1.0 - _bisquare_sum(y, scores, loc, 1.0 / scale, 1.0 / c) / y.size


@kernel
def _plain_distance(counts: None, y: FloatArray, scores: FloatArray, loc: float, scale: float, c: float) -> float:
    return contiguous_bisquare_objective(y, scores, loc, scale, c)


@specialize_on_none(_plain_distance)
def bisquare_distance(
    counts: FrequencyWeights, y: FloatArray, nodes: ScoreNodes, loc: float, scale: float, c: float
) -> float:
    """Return the bisquare objective of a column with weights, computed from the nodes of its normal scores.

    The result is NaN if the scale is not positive.

    Parameters
    ----------
    counts : FrequencyWeights or None
        Weights of the values; None: all one, and `nodes` is an array of normal scores.
    y : (n,)
        The transformed values, ascending.
    nodes : ScoreNodes
        Nodes of the normal scores.
    loc : float
        Location of the transformed values.
    scale : float
        Scale of the transformed values.
    c : float
        The constant of the bisquare.
    """
    if not scale > 0.0:
        return math.nan
    return 1.0 - _weighted_bisquare_sum(y, nodes, loc, 1.0 / scale, 1.0 / c) / counts.total


@entry((READ_COLUMN, READ_COLUMN, REAL, REAL, REAL))
def _bisquare_entry(y: FloatArray, scores: FloatArray, loc: float, scale: float, c: float) -> float:
    return contiguous_bisquare_objective(y, scores, loc, scale, c)


@compiled_as(contiguous_bisquare_objective)
def bisquare_objective(y: npt.ArrayLike, scores: npt.ArrayLike, loc: float, scale: float, c: float = C) -> float:
    r"""Return the mean bisquare distance between standardised order statistics and normal scores ([1]_, eq. (5)).

    .. math:: \frac{1}{n} \sum_i \rho\Bigl(\frac{y_i - \text{loc}}{\text{scale}} - z_i\Bigr), \qquad
              \rho(t) = 1 - (1 - (t/c)^2)^3 \ (|t| \le c), \quad 1 \ (|t| > c)

    Parameters
    ----------
    y : array_like, shape (n,)
        The values, ascending.
    scores : array_like, shape (n,)
        The normal scores: Phi^-1((i - 1/3)/(n + 1/3)), i = 1..n, in the paper [1]_.
    loc, scale : float
        Robust location and scale of y.
    c : float, default 0.5
        Distance, in units of the scale, beyond which a value contributes 1.

    Returns
    -------
    float
        The objective, between 0 (every value is at its quantile) and 1. A NaN in y contributes 1. The objective is NaN
        if there are no values or the scale is not positive.

    Raises
    ------
    ValueError
        If y and scores are not vectors of one length, or c is not positive.

    See Also
    --------
    rectified_boxcox, rectified_yeojohnson : the transforms whose lambda minimises the objective.

    Notes
    -----
    The result is accurate to a few 1e-16. Jitted code must pass contiguous float64 vectors of one length, which are not
    checked.

    References
    ----------
    .. [1] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning 113, 2024,
       4953-4975.

    Examples
    --------
    >>> from powerkern.kernels import bisquare_objective
    >>> bisquare_objective([-1.0, 0.0, 1000.0], [-1.0, 0.0, 1.0], loc=0.0, scale=1.0)
    0.33333333333333337
    """
    values, at = as_vector("y", y), as_vector("scores", scores)
    if values.shape != at.shape:
        raise ValueError(f"y and scores must be of one length, got shapes {values.shape} and {at.shape}")
    constant = as_real("c", c)
    if not constant > 0.0:
        raise ValueError(f"c must be positive, got {format_argument(c)}")
    return float(_bisquare_entry(values, at, as_real("loc", loc), as_real("scale", scale), constant))
