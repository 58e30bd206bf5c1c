"""Short columns that are put aside and fitted with others as long, one in each lane."""

from __future__ import annotations

from powerkern._jit import kernel
from powerkern._status import Route, Status
from powerkern._typing import FloatArray
from powerkern.kernels.likelihood.optimum import optimum_in, write_fit
from powerkern.kernels.results import LEFT, STATUS, is_identity
from powerkern.kernels.robust import reweighting_lanes as lanes
from powerkern.kernels.robust.column_results import finish
from powerkern.kernels.robust.huber import HUBER_K, sd_within
from powerkern.kernels.robust.options import ALL, QQ, UNTIL_SETTLED, Options, Start, change_ranks, with_rule
from powerkern.kernels.robust.prestandardization import Prescaling, units_of
from powerkern.kernels.robust.reweighting import MAX_TURNS, Kept
from powerkern.kernels.transforms.family import is_mirrored
from powerkern.kernels.transforms.rectified import BOTH, NOT_RECTIFIED, QUARTILES, SortedColumn

_OK = int(Status.OK)
_NOT_CERTIFIED = int(Status.NOT_CERTIFIED)
_NOT_SETTLED = int(Status.NOT_SETTLED)
_ONE_PASS = int(Route.ONE_PASS)


@kernel
def suits_lanes(n: int, options: Options) -> bool:
    """Whether columns of n values are fitted side by side."""
    suited = n <= ALL and options.criterion == QQ and not options.cellwise and options.n_reweight != 0
    return suited and (options.first_rule == NOT_RECTIFIED) == (options.rule == NOT_RECTIFIED)


@kernel
def put_aside(
    column: SortedColumn, prescaling: Prescaling, found: Start, options: Options, lane: int, batch: lanes.LaneBatch
) -> None:
    """Keep the column, its prestandardisation and its start for the refit in lanes."""
    lanes.copy_to_lane(column, lane, batch)
    fields = batch.fields
    fields[lanes.START, lane], fields[lanes.VALUE, lane] = found.lmbda, found.value
    fields[lanes.INSIDE, lane] = int(found.inside)
    fields[lanes.N_SEARCHED, lane], fields[lanes.N_RIVALS, lane] = found.n_eval, found.n_rivals
    fields[lanes.CENTER, lane], fields[lanes.DIVISOR, lane] = prescaling.center, prescaling.divisor
    fields[lanes.POWER, lane], fields[lanes.BOTH_SIDES, lane] = prescaling.power, int(options.rule == BOTH)


@kernel
def fit_aside(
    columns: FloatArray,
    n: int,
    n_aside: int,
    family: int,
    options: Options,
    scores: FloatArray,
    batch: lanes.LaneBatch,
    out: FloatArray,
) -> None:
    """Fit the columns put aside, of n values, or leave them."""
    below = 2.0 if is_mirrored(family) else 0.0
    lower, upper = change_ranks(None, n, options)
    n_turns = MAX_TURNS if options.n_reweight == UNTIL_SETTLED else options.n_reweight
    rectified = options.first_rule != NOT_RECTIFIED
    lanes.refit(
        batch,
        n_aside,
        lanes.Shape(n, lower, upper, below),
        scores[:n],
        HUBER_K,
        options.c,
        options.cutoff,
        n_turns,
        rectified,
        options.adaptive,
    )
    for lane in range(n_aside):
        j = int(batch.fields[lanes.ROW, lane])
        if batch.fields[lanes.FITTED, lane] > 0.0:
            _write_lane(columns[j, :n], batch.fields[:, lane], below, options, out[j])


@kernel
def _write_lane(x: FloatArray, fields: FloatArray, below: float, options: Options, row: FloatArray) -> None:
    """The row of a column from the fields of its lane; its status is LEFT where these are beyond float64."""
    prescaling = Prescaling(fields[lanes.CENTER], fields[lanes.DIVISOR], fields[lanes.POWER], _OK)
    start = Start(
        fields[lanes.START],
        int(fields[lanes.N_SEARCHED]),
        int(fields[lanes.N_RIVALS]),
        fields[lanes.INSIDE] > 0.0,
        fields[lanes.VALUE],
    )
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
    elif not start.inside:
        row[STATUS] = _NOT_CERTIFIED
    chosen = options if fields[lanes.BOTH_SIDES] > 0.0 or options.rule != BOTH else with_rule(options, QUARTILES)
    correction = 1.0 / sd_within(kept.cutoff)
    finish(x, None, None, below, prescaling, start, kept, fields[lanes.TAIL] > 0.0, correction, chosen, row)
