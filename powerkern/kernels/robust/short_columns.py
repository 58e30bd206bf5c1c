"""Short columns without weights: their starts one by one, and the rest with others as long, one in each lane.

Entries of their own: long columns need neither. What they leave (status LEFT) is fitted as long columns are.
"""

from __future__ import annotations

import math

import numpy as np

from powerkern._jit import INTEGER, LANES, ROWS, entry, kernel, numbers_of
from powerkern._status import Route, Status
from powerkern._typing import FloatArray
from powerkern.kernels.likelihood.one_pass_logs import optimum_in
from powerkern.kernels.likelihood.optimum import write_fit
from powerkern.kernels.results import LEFT, STATUS, is_identity
from powerkern.kernels.robust import reweighting_lanes as lanes
from powerkern.kernels.robust.column_results import (
    refusal,
    write_column,
    write_kept,
    write_limits,
    write_tail,
)
from powerkern.kernels.robust.huber import HUBER_K, sd_within
from powerkern.kernels.robust.options import (
    ALL,
    ROBUST_WORK,
    UNTIL_SETTLED,
    Options,
    Prestandardized,
    RobustWork,
    Start,
    change_ranks,
    with_rule,
)
from powerkern.kernels.robust.order_statistics import n_present
from powerkern.kernels.robust.prestandardization import Prescaling, prestandardized, units_of
from powerkern.kernels.robust.qq_column import scores_of
from powerkern.kernels.robust.refit import Kept, fit_by_logs
from powerkern.kernels.robust.reweighting import n_fits_of
from powerkern.kernels.robust.start import started
from powerkern.kernels.transforms.family import is_mirrored
from powerkern.kernels.transforms.rectified import BOTH, NOT_RECTIFIED, QUARTILES

_OK = int(Status.OK)
_NOT_SETTLED = int(Status.NOT_SETTLED)
_ONE_PASS = int(Route.ONE_PASS)

# a start: the number of values, lambda of the prestandardised column (NaN: none), and what the search found
N_VALUES, LAMBDA, N_SEARCHED, N_RIVALS, INSIDE, BOTH_SIDES = range(6)
_N_START = 6


def fit_short_columns(columns: FloatArray, family: int, options: Options, work: RobustWork, out: FloatArray) -> None:
    """Fit the columns of at most ALL values, NaN last, by the options that lanes have; leave others."""
    as_searched = (options.first_rule == NOT_RECTIFIED) == (options.rule == NOT_RECTIFIED)
    if options.n_reweight == 0 or not as_searched:
        return
    if columns.shape[1] > ALL and not np.isnan(columns[:, ALL]).any():
        return
    starts = np.empty((len(columns), _N_START))
    start_columns(columns, family, options, work, starts)
    if not np.isnan(starts[:, LAMBDA]).all():
        batch = lanes.new_lane_batch(min(columns.shape[1], ALL))
        fit_started_columns(columns, starts, family, options, work, batch, out)


@kernel
def _prepared(x: FloatArray, family: int, options: Options, work: RobustWork) -> tuple[Prescaling, Prestandardized]:
    prescaling, column = prestandardized(x, None, family, options, work)
    return prescaling, Prestandardized(column, None, scores_of(None, column, options, work), work.y[: column.x.size])


@entry((ROWS, INTEGER, numbers_of(Options), ROBUST_WORK, ROWS))
def start_columns(columns: FloatArray, family: int, options: Options, work: RobustWork, starts: FloatArray) -> None:
    """The starts of short columns; lambda is NaN for others, and for those that must be left."""
    for j in range(columns.shape[0]):
        x, start = columns[j, : n_present(columns[j])], starts[j]
        start[N_VALUES], start[LAMBDA] = x.size, math.nan
        if x.size <= ALL and refusal(x, family) == _OK:
            prescaling, every = _prepared(x, family, options, work)
            if prescaling.status == _OK:
                found, chosen = started(fit_by_logs, every, family, options, work)
                if work.trial[STATUS] != LEFT:
                    start[LAMBDA], start[N_SEARCHED], start[N_RIVALS] = found.lmbda, found.n_eval, found.n_rivals
                    start[INSIDE], start[BOTH_SIDES] = int(found.inside), int(chosen.rule == BOTH)


@entry((ROWS, ROWS, INTEGER, numbers_of(Options), ROBUST_WORK, lanes.LANE_BATCH, ROWS))
def fit_started_columns(
    columns: FloatArray,
    starts: FloatArray,
    family: int,
    options: Options,
    work: RobustWork,
    batch: lanes.LaneBatch,
    out: FloatArray,
) -> None:
    """Fit the columns that have a start, LANES of the same length at a time, or leave them."""
    n = _next_length(starts, ALL + 1)
    while n >= 0:
        n_aside = 0
        for j in range(columns.shape[0]):
            if starts[j, N_VALUES] == n and starts[j, LAMBDA] == starts[j, LAMBDA]:
                _put_aside(columns[j, :n], starts[j], j, n_aside, family, options, work, batch)
                n_aside += 1
            if n_aside == LANES or (n_aside > 0 and j == columns.shape[0] - 1):
                _fit_aside(columns, n, n_aside, family, options, work, batch, out)
                n_aside = 0
        n = _next_length(starts, n)


@kernel
def _next_length(starts: FloatArray, n: int) -> int:
    """The largest number of values, less than n, of a column that has a start; -1 if there is none."""
    longest = -1.0
    for j in range(starts.shape[0]):
        if starts[j, LAMBDA] == starts[j, LAMBDA] and longest < starts[j, N_VALUES] < n:
            longest = starts[j, N_VALUES]
    return int(longest)


@kernel
def _put_aside(
    x: FloatArray,
    start: FloatArray,
    j: int,
    lane: int,
    family: int,
    options: Options,
    work: RobustWork,
    batch: lanes.LaneBatch,
) -> None:
    """Prestandardise column j for a lane."""
    prescaling, every = _prepared(x, family, options, work)
    fields = batch.fields
    lanes.copy_to_lane(every.column, lane, batch)
    fields[lanes.ROW, lane], fields[lanes.START, lane] = j, start[LAMBDA]
    fields[lanes.N_SEARCHED, lane], fields[lanes.N_RIVALS, lane] = start[N_SEARCHED], start[N_RIVALS]
    fields[lanes.INSIDE, lane], fields[lanes.BOTH_SIDES, lane] = start[INSIDE], start[BOTH_SIDES]
    fields[lanes.CENTER, lane], fields[lanes.DIVISOR, lane] = prescaling.center, prescaling.divisor
    fields[lanes.POWER, lane] = prescaling.power


@kernel
def _fit_aside(
    columns: FloatArray,
    n: int,
    n_aside: int,
    family: int,
    options: Options,
    work: RobustWork,
    batch: lanes.LaneBatch,
    out: FloatArray,
) -> None:
    """Fit the columns put aside, of n values, or leave them."""
    below = 2.0 if is_mirrored(family) else 0.0
    lower, upper = change_ranks(None, n, options)
    shape, rectified = lanes.Shape(n, lower, upper, below), options.first_rule != NOT_RECTIFIED
    lanes.refit(
        batch, n_aside, shape, work.scores[:n], HUBER_K, options.c, options.cutoff, n_fits_of(options), rectified,
        options.adaptive,
    )  # fmt: skip
    for lane in range(n_aside):
        j = int(batch.fields[lanes.ROW, lane])
        if batch.fields[lanes.FITTED, lane] > 0.0:
            _write_lane(columns[j, :n], batch.fields[:, lane], below, options, out[j])


@kernel
def _write_lane(x: FloatArray, fields: FloatArray, below: float, options: Options, row: FloatArray) -> None:
    """The row of a column from the fields of its lane; its status is LEFT where these are beyond float64."""
    prescaling = Prescaling(fields[lanes.CENTER], fields[lanes.DIVISOR], fields[lanes.POWER], _OK)
    rule, units = QUARTILES if fields[lanes.CUT_RECTIFIED] > 0.0 else NOT_RECTIFIED, units_of(below, prescaling)
    first, last = int(fields[lanes.FIRST]), int(fields[lanes.LAST])
    loc, scale, lmbda, cutoff = lanes.CUT_LOC, lanes.CUT_SCALE, lanes.CUT_AT, lanes.CUT_OFF
    kept = Kept(first, last, fields[loc], fields[scale], fields[lmbda], rule, fields[cutoff], 0.0, 0.0)
    exponent, n_eval = fields[lanes.EXPONENT] / units.unit, int(fields[lanes.N_SEARCHED] + fields[lanes.N_REFIT])
    mean, variance, curvature = fields[lanes.MEAN], fields[lanes.VARIANCE], fields[lanes.CURVATURE]
    best = optimum_in(units, exponent, mean, variance, curvature, fields[lanes.JACOBIAN], n_eval, _OK)
    write_fit(row, best, 0.0 if below > 0.0 else 1.0, _ONE_PASS)
    if is_identity(row):
        row[STATUS] = LEFT
        return
    if options.n_reweight == UNTIL_SETTLED and not fields[lanes.SETTLED] > 0.0:
        row[STATUS] = _NOT_SETTLED
    n_rivals, inside = int(fields[lanes.N_RIVALS]), fields[lanes.INSIDE] > 0.0
    found = Start(fields[lanes.START], n_eval, n_rivals, inside, fields[lanes.VALUE])
    chosen = options if fields[lanes.BOTH_SIDES] > 0.0 or options.rule != BOTH else with_rule(options, QUARTILES)
    write_column(x, None, None, below, prescaling, found, row)
    write_tail(fields[lanes.TAIL] > 0.0, row)
    write_kept(x, None, kept, 1.0 / sd_within(kept.cutoff), chosen, row)
    write_limits(x, below, prescaling, kept, row)
