"""Short columns without weights: each gets its start, and goes on with others as long, one in each lane.

The entry is compiled apart, for long columns do not need it. Columns that it leaves (status LEFT) are fitted as long
ones are.
"""

from __future__ import annotations

import math

import numpy as np

from powerkern._jit import INTEGER, LANES, ROWS, entry, kernel, numbers_of
from powerkern._status import Route, Status
from powerkern._typing import FloatArray
from powerkern.kernels.likelihood.optimum import optimum_in, write_fit
from powerkern.kernels.results import LEFT, N_OBS, STATUS, is_identity
from powerkern.kernels.robust import lane_batch as field
from powerkern.kernels.robust.column_results import refusal, write_column, write_kept, write_tail
from powerkern.kernels.robust.huber import sd_within
from powerkern.kernels.robust.options import (
    ALL,
    ROBUST_WORK,
    UNTIL_SETTLED,
    Options,
    Prescaling,
    RobustWork,
    Start,
    change_ranks,
    with_rule,
)
from powerkern.kernels.robust.order_statistics import n_present
from powerkern.kernels.robust.prestandardization import prepared, units_of
from powerkern.kernels.robust.qq_column import scores_of
from powerkern.kernels.robust.reweighting import Kept, fit_by_logs
from powerkern.kernels.robust.reweighting_lanes import Shape, copy_to_lane, refit
from powerkern.kernels.robust.start import started
from powerkern.kernels.transforms.family import is_mirrored
from powerkern.kernels.transforms.rectified import BOTH, NOT_RECTIFIED, QUARTILES

_OK = int(Status.OK)
_NOT_SETTLED = int(Status.NOT_SETTLED)
_ONE_PASS = int(Route.ONE_PASS)


def fit_short_columns(
    columns: FloatArray, weights: FloatArray, family: int, options: Options, work: RobustWork, out: FloatArray
) -> int:
    """Fit the columns of at most ALL values, NaN last, by the options that lanes have; returns how many are left."""
    as_searched = (options.first_rule == NOT_RECTIFIED) == (options.rule == NOT_RECTIFIED)
    any_short = columns.shape[1] <= ALL or np.isnan(columns[:, ALL]).any()
    if any_short and as_searched and options.n_reweight != 0:
        return _fit_in_lanes(columns, family, options, work, out)
    return len(columns)


@entry((ROWS, INTEGER, numbers_of(Options), ROBUST_WORK, ROWS))
def _fit_in_lanes(columns: FloatArray, family: int, options: Options, work: RobustWork, out: FloatArray) -> int:
    """Fit short columns of the same length, LANES at a time, or leave them; returns how many are left."""
    for j in range(columns.shape[0]):
        out[j, N_OBS] = n_present(columns[j])
    n = _next_length(out, ALL + 1)
    while n >= 0:
        n_aside = 0
        for j in range(columns.shape[0]):
            if out[j, STATUS] == LEFT and out[j, N_OBS] == n:
                n_aside += _is_put_aside(columns[j, :n], j, n_aside, family, options, work)
            if n_aside == LANES or (n_aside > 0 and j == columns.shape[0] - 1):
                _fit_aside(columns, n, n_aside, family, options, work, out)
                n_aside = 0
        n = _next_length(out, n)
    n_left = 0
    for j in range(columns.shape[0]):
        n_left += out[j, STATUS] == LEFT
    return n_left


@kernel
def _next_length(out: FloatArray, n: int) -> int:
    """The largest number of values, less than n, of columns that are left; -1 if there are none."""
    longest = -1.0
    for j in range(out.shape[0]):
        if out[j, STATUS] == LEFT and longest < out[j, N_OBS] < n:
            longest = out[j, N_OBS]
    return int(longest)


@kernel
def _is_put_aside(x: FloatArray, j: int, lane: int, family: int, options: Options, work: RobustWork) -> bool:
    """Put column j, prestandardised, and its start in a lane; False if it has none."""
    if refusal(x, family) != _OK:
        return False
    column = prepared(scores_of, x, None, family, options, work)
    prescaling, fields = column.prescaling, work.batch.fields
    if prescaling.status != _OK:
        return False
    found, chosen = started(fit_by_logs, column, options, work)
    if work.trial[STATUS] == LEFT:
        return False
    copy_to_lane(column.at.column, lane, work.batch)
    fields[field.ROW, lane], fields[field.START, lane] = j, found.lmbda
    fields[field.INSIDE, lane], fields[field.N_SEARCHED, lane] = int(found.inside), found.n_eval
    fields[field.N_RIVALS, lane], fields[field.BOTH_SIDES, lane] = found.n_rivals, int(chosen.rule == BOTH)
    fields[field.CENTER, lane], fields[field.DIVISOR, lane] = prescaling.center, prescaling.divisor
    fields[field.POWER, lane] = prescaling.power
    return True


@kernel
def _fit_aside(
    columns: FloatArray, n: int, n_aside: int, family: int, options: Options, work: RobustWork, out: FloatArray
) -> None:
    """Fit the columns put aside, of n values, or leave them."""
    below, batch = 2.0 if is_mirrored(family) else 0.0, work.batch
    lower, upper = change_ranks(None, n, options)
    refit(batch, n_aside, Shape(n, lower, upper, below), work.scores[:n], options)
    for lane in range(n_aside):
        j = int(batch.fields[field.ROW, lane])
        if batch.fields[field.FITTED, lane] > 0.0:
            _write_lane(columns[j, :n], batch.fields[:, lane], below, options, out[j])


@kernel
def _write_lane(x: FloatArray, fields: FloatArray, below: float, options: Options, row: FloatArray) -> None:
    """The row of a column from the fields of its lane; its status is LEFT where these are beyond float64."""
    prescaling = Prescaling(fields[field.CENTER], fields[field.DIVISOR], fields[field.POWER], _OK)
    rule, units = QUARTILES if fields[field.CUT_RECTIFIED] > 0.0 else NOT_RECTIFIED, units_of(below, prescaling)
    first, last = int(fields[field.FIRST]), int(fields[field.LAST])
    loc, scale, lmbda, cutoff = field.CUT_LOC, field.CUT_SCALE, field.CUT_AT, field.CUT_OFF
    kept = Kept(first, last, fields[loc], fields[scale], fields[lmbda], rule, fields[cutoff], 0.0, 0.0)
    exponent, n_eval = fields[field.EXPONENT] / units.unit, int(fields[field.N_SEARCHED] + fields[field.N_REFIT])
    mean, variance, curvature = fields[field.MEAN], fields[field.VARIANCE], fields[field.CURVATURE]
    best = optimum_in(units, exponent, mean, variance, curvature, fields[field.JACOBIAN], n_eval, _OK)
    write_fit(row, best, 0.0 if below > 0.0 else 1.0, _ONE_PASS, math.nan)
    if is_identity(row):
        row[STATUS] = LEFT
        return
    if options.n_reweight == UNTIL_SETTLED and not fields[field.SETTLED] > 0.0:
        row[STATUS] = _NOT_SETTLED
    n_rivals, inside = int(fields[field.N_RIVALS]), fields[field.INSIDE] > 0.0
    found = Start(fields[field.START], n_eval, n_rivals, inside, fields[field.VALUE])
    chosen = options if fields[field.BOTH_SIDES] > 0.0 or options.rule != BOTH else with_rule(options, QUARTILES, True)
    write_column(x, None, below, prescaling, found, row)
    write_tail(fields[field.TAIL] > 0.0, row)
    write_kept(x, None, below, prescaling, kept, 1.0 / sd_within(kept.cutoff), chosen, row)
