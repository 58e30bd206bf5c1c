"""Reweighted maximum likelihood of short columns, eight at a time, one in each lane of vectors.

After the search of RewML: transform, one step of Huber's estimators from median and MAD, the values within the
cut-off, and their maximum likelihood by the Halley steps of `likelihood.lockstep`; again from there. The columns are
sorted and equally long, so that their order statistics lie side by side. A result depends on its own column only.
Columns that need more care are left to `powerkern.kernels.robust.reweighting`, which fits one in the same way: if
transforms might overflow, if few values or only those of one sign are kept, if sums lose digits, or if the optimum is
not certified.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import (
    LANES,
    Lanes,
    Mask,
    any_lane,
    first_lanes,
    in_all_lanes,
    inlined,
    kernel,
    load,
    select,
    square_root,
    store,
)
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import EPS
from powerkern.kernels.elementary.exp import exp_lanes, expm1_lanes, greater, lesser
from powerkern.kernels.likelihood.lockstep import LaneLogs, LaneWalk, walk
from powerkern.kernels.likelihood.one_pass import ONE_PASS_REACH, ONE_PASS_SD, ONE_PASS_SPREAD
from powerkern.kernels.likelihood.profile import moments_at
from powerkern.kernels.robust import lane_batch as field
from powerkern.kernels.robust.column_results import FAR, FAR_NUMBER, FAR_SHARE
from powerkern.kernels.robust.huber import CELLWISE_BETA, HUBER_K
from powerkern.kernels.robust.lane_batch import N_WIDER, LaneBatch
from powerkern.kernels.robust.loc_scale import MAD_FACTOR
from powerkern.kernels.robust.options import Options
from powerkern.kernels.robust.qq_lanes import huber_step, off_0, plain_mad, plain_nearness, values_at
from powerkern.kernels.robust.reweighting import EXCESS, WIDER, cut_in, excess_beyond, n_fits_of
from powerkern.kernels.transforms.rectified import NOT_RECTIFIED, SortedColumn

#: The optimum of fewer values than this can hardly be certified.
_FEWEST = 3.0
#: The exponentials of `powerkern.kernels.elementary.exp` for lanes are exact in this range.
_LARGEST_LOG = 690.0


class Shape(NamedTuple):
    """Common properties of columns side by side: length, ranks of the change points, and `SortedColumn.below`."""

    n: int
    lower: int
    upper: int
    below: float


@kernel
def copy_to_lane(column: SortedColumn, lane: int, batch: LaneBatch) -> None:
    """Put a column beside others."""
    for i in range(column.n):
        batch.x[i, lane], batch.logs[i, lane] = column.x[i], column.logs[i]


# --- transforms -----------------------------------------------------------------------------------------


@kernel
def _transform(batch: LaneBatch, shape: Shape, lmbda: Lanes, rectified: bool, by_logs: Mask) -> None:
    """Transforms of all values, to `batch.y`; `by_logs`: where tangents to small values are in their logs."""
    y, m, m_below = batch.y[0], off_0(lmbda), off_0(lmbda - shape.below)
    r, r_below = 1.0 / m, 1.0 / m_below
    for i in range(shape.n):
        a = load(batch.logs, (i, 0))
        negative = a < 0.0
        store(y, (LANES * i,), expm1_lanes(select(negative, m_below, m) * a) * select(negative, r_below, r))
    if rectified:
        flattened = (by_logs & (lmbda > 0.0)) | (~by_logs & (lmbda > 1.0))
        _tangents(batch, shape.lower, 0, shape.lower, lmbda, flattened, by_logs)
        _tangents(batch, shape.upper, shape.upper + 1, shape.n, lmbda, lmbda < 1.0, first_lanes(0))


@kernel
def _tangents(batch: LaneBatch, k: int, first: int, stop: int, lmbda: Lanes, flattened: Mask, by_logs: Mask) -> None:
    """Tangents at value number k, in x or in its log, in place of transforms that flatten."""
    y, x, a = batch.y[0], load(batch.x, (k, 0)), load(batch.logs, (k, 0))
    at, from_k = values_at(y, k), select(by_logs, a, x)
    slope = exp_lanes(select(by_logs, lmbda, lmbda - 1.0) * a)
    for i in range(first, stop):
        distance = select(by_logs, load(batch.logs, (i, 0)), load(batch.x, (i, 0))) - from_k
        store(y, (LANES * i,), select(flattened, at + distance * slope, values_at(y, i)))


# --- the cut-off ----------------------------------------------------------------------------------------


@kernel
def _adapted_cutoffs(batch: LaneBatch, shape: Shape, loc: Lanes, scale: Lanes, cutoff: float) -> Lanes:
    """`powerkern.kernels.robust.reweighting.adapted_cutoff` of each lane."""
    y, fields, zero = batch.y[0], batch.fields, in_all_lanes(0.0)
    for k in range(N_WIDER):
        reach, inside = (cutoff + k * WIDER) * scale, zero
        beyond = reach * (1.0 + EPS)
        for i in range(shape.n):
            d = values_at(y, i) - loc
            inside = inside + select(d < beyond, select(d < -reach, 0.0, 1.0), 0.0)
        store(fields, (field.BEYOND + k, 0), float(shape.n) - inside)
    for lane in range(LANES):
        chosen, most = cutoff + N_WIDER * WIDER, EXCESS
        for k in range(N_WIDER):
            trial = cutoff + k * WIDER
            excess = excess_beyond(trial, fields[field.BEYOND + k, lane], float(shape.n))
            if excess > most:
                chosen, most = trial, excess
        fields[field.BEYOND, lane] = chosen
    return load(fields, (field.BEYOND, 0))


# --- the values kept ------------------------------------------------------------------------------------


@kernel
def _huber(y: FloatArray, n: int) -> tuple[Lanes, Lanes]:
    """One step of Huber's location and scale (`powerkern.kernels.robust.huber.one_step_of`)."""
    center = values_at(y, (n - 1) >> 1)
    median = center + 0.5 * (values_at(y, n >> 1) - center)
    reach = (HUBER_K * MAD_FACTOR) * plain_mad(y, n, median)
    loc = median + huber_step(y, None, n, median, reach)
    reach = (HUBER_K * MAD_FACTOR) * plain_mad(y, n, loc)
    squares = in_all_lanes(0.0)
    for i in range(n):
        d = lesser(abs(values_at(y, i) - loc), reach)
        squares = squares + d * d
    return loc, square_root(squares * (1.0 / (n * CELLWISE_BETA)))


@kernel
def _cut(batch: LaneBatch, shape: Shape, loc: Lanes, reach: Lanes, start: Lanes) -> tuple[Lanes, Lanes, LaneLogs, Mask]:
    """The values with ``|psi - loc| <= reach``: how many come before them, and up to the last of them.

    Then their logs, which are written to `batch.kept`, to be fitted from a start; and in which lanes they can be.
    """
    y, beyond = batch.y[0], reach * (1.0 + EPS)  # those at the cut-off itself are kept
    first = last = total = squares = farthest = n_negative = in_all_lanes(0.0)
    for i in range(shape.n):
        d, a = values_at(y, i) - loc, load(batch.logs, (i, 0))
        before, up_to = d < -reach, d < beyond
        first, last = first + select(before, 1.0, 0.0), last + select(up_to, 1.0, 0.0)
        a = select(up_to & ~before, a, 0.0)
        store(batch.kept, (i, 0), a)
        total, squares, farthest = total + a, squares + a * a, greater(abs(a), farthest)
        n_negative = n_negative + select(a < 0.0, 1.0, 0.0)
    number, both = last - first, in_all_lanes(shape.below) > 0.0
    mean = total / number
    spread = square_root(squares / number - select(both, 0.0, mean * mean))
    usable = (number >= _FEWEST) & (spread >= ONE_PASS_SPREAD) & (farthest <= ONE_PASS_REACH)
    usable = usable & ((n_negative > 0.0) & (n_negative < number) | ~both) & (reach > 0.0) & (reach < math.inf)
    return first, last, LaneLogs(number, both, in_all_lanes(0.0), mean, spread, farthest, start), usable


@kernel
def _is_tame(batch: LaneBatch, shape: Shape, lmbda: Lanes) -> Mask:
    """Whether no transform or slope comes near the ends of float64."""
    farthest = greater(-load(batch.logs, (0, 0)), load(batch.logs, (shape.n - 1, 0)))
    return (greater(abs(lmbda), abs(lmbda - shape.below)) + 1.0) * farthest <= _LARGEST_LOG


@kernel
def _keeps_far_tail(y: FloatArray, n: int, loc: Lanes, scale: Lanes, first: Lanes, last: Lanes) -> Mask:
    """Whether all values on one side were kept, and many of them are far out: see `kernels.robust.rewml`."""
    reach = FAR * scale
    low = high = in_all_lanes(0.0)
    for i in range(n):
        d = values_at(y, i) - loc
        low, high = low + select(d < -reach, 1.0, 0.0), high + select(d < reach, 0.0, 1.0)
    number = greater(select(first > 0.0, 0.0, low), select(last < n, 0.0, high))
    return (number >= max(FAR_NUMBER, FAR_SHARE * n)) & (reach > 0.0) & (reach < math.inf)


# --- eight columns --------------------------------------------------------------------------------------


@kernel
def refit(batch: LaneBatch, n_columns: int, shape: Shape, scores: FloatArray, options: Options) -> None:
    """Fit the columns put aside from their starts, as often as the options say unless the values kept settle before.

    The first values are cut off on the transform of the search, rectified or not: its residuals give the objective at
    the start.
    """
    fields, y, none, zero = batch.fields, batch.y[0], in_all_lanes(math.nan), in_all_lanes(0.0)
    lmbda, by_logs, n_eval = load(fields, (field.START, 0)), load(fields, (field.BOTH_SIDES, 0)) > 0.0, zero
    first, last, turn, n_turns = zero - 1.0, zero - 1.0, 0, n_fits_of(options)
    open_, fitted, settled = first_lanes(n_columns), first_lanes(0), first_lanes(0)
    while True:
        tame = _is_tame(batch, shape, lmbda)
        open_, fitted = open_ & tame, fitted & tame
        at_end = turn == n_turns or not any_lane(open_)
        rule, adaptive = cut_in(turn, options)
        if at_end:
            by_logs = first_lanes(LANES if shape.below == 0.0 else 0)
        _transform(batch, shape, lmbda, at_end or rule != NOT_RECTIFIED, by_logs)
        loc, scale = _huber(y, shape.n)
        if at_end:
            break
        cutoff = in_all_lanes(options.cutoff)
        if adaptive:
            cutoff = _adapted_cutoffs(batch, shape, loc, scale, options.cutoff)
        new_first, new_last, logs, usable = _cut(batch, shape, loc, cutoff * scale, lmbda)
        _keep(fields, field.CUT_OFF, open_, cutoff)
        _keep(fields, field.CUT_LOC, open_, loc)
        _keep(fields, field.CUT_SCALE, open_, scale)
        _keep(fields, field.CUT_AT, open_, lmbda)
        _keep(fields, field.CUT_RECTIFIED, open_, in_all_lanes(0.0 if rule == NOT_RECTIFIED else 1.0))
        if turn == 0:
            near = plain_nearness(None, y, scores, options.c, loc, 1.0 / (options.c * scale))
            store(fields, (field.VALUE, 0), 1.0 - near * (1.0 / shape.n))
        settled = settled | (open_ & (new_first == first) & (new_last == last))
        open_ = open_ & ~settled
        if any_lane(open_):
            first, last = select(open_, new_first, first), select(open_, new_last, last)
            best = walk(batch.kept, batch.ones[0, : shape.n], logs, none, open_ & usable)
            open_ = _keep_fit(fields, best, logs.jacobian, open_ & usable)
            lmbda, n_eval = select(open_, best.x, lmbda), n_eval + select(open_, best.n_eval - 1.0, 0.0)
            fitted = settled | open_
        turn += 1
    tail = fitted & _keeps_far_tail(y, shape.n, loc, scale, first, last)
    store(fields, (field.FITTED, 0), select(fitted, 1.0, 0.0))
    store(fields, (field.SETTLED, 0), select(settled, 1.0, 0.0))
    store(fields, (field.N_REFIT, 0), n_eval)
    store(fields, (field.FIRST, 0), first)
    store(fields, (field.LAST, 0), last)
    store(fields, (field.TAIL, 0), select(tail, 1.0, 0.0))


@inlined
def _keep(fields: FloatArray, field: int, where: Mask, value: Lanes) -> None:
    """Write a field in some lanes."""
    store(fields, (field, 0), select(where, value, load(fields, (field, 0))))


@kernel
def _keep_fit(fields: FloatArray, best: LaneWalk, jacobian: Lanes, where: Mask) -> Mask:
    """Write the optima of some lanes, where they are certified; returns where they are."""
    mean, variance, curvature = moments_at(best.moments, best.x - best.evaluated_at)
    where = where & best.certified & (variance >= ONE_PASS_SD * ONE_PASS_SD)
    _keep(fields, field.EXPONENT, where, best.x)
    _keep(fields, field.MEAN, where, mean)
    _keep(fields, field.VARIANCE, where, variance)
    _keep(fields, field.CURVATURE, where, curvature)
    _keep(fields, field.JACOBIAN, where, jacobian)
    return where
