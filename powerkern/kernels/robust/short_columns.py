"""Short columns that are put aside and fitted with others as long, one in each lane."""

from __future__ import annotations

from powerkern._jit import kernel
from powerkern._status import Route, Status
from powerkern._typing import FloatArray
from powerkern.kernels.likelihood.one_pass_logs import optimum_in
from powerkern.kernels.likelihood.optimum import write_fit
from powerkern.kernels.results import LEFT, STATUS, is_identity
from powerkern.kernels.robust import reweighting_lanes as refits
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
    column: SortedColumn, prescaling: Prescaling, found: Start, options: Options, lane: int, batch: refits.LaneBatch
) -> None:
    """Keep the column, its prestandardisation and its start for the refit in lanes."""
    refits.copy_to_lane(column, lane, batch)
    fields = batch.fields
    fields[refits.START, lane], fields[refits.VALUE, lane] = found.lmbda, found.value
    fields[refits.INSIDE, lane] = int(found.inside)
    fields[refits.N_SEARCHED, lane], fields[refits.N_RIVALS, lane] = found.n_eval, found.n_rivals
    fields[refits.CENTER, lane], fields[refits.DIVISOR, lane] = prescaling.center, prescaling.divisor
    fields[refits.POWER, lane], fields[refits.BOTH_SIDES, lane] = prescaling.power, int(options.rule == BOTH)


@kernel
def fit_aside(
    columns: FloatArray,
    n: int,
    n_aside: int,
    family: int,
    options: Options,
    scores: FloatArray,
    batch: refits.LaneBatch,
    out: FloatArray,
) -> None:
    """Fit the columns put aside, of n values, or leave them."""
    below = 2.0 if is_mirrored(family) else 0.0
    lower, upper = change_ranks(None, n, options)
    n_turns = MAX_TURNS if options.n_reweight == UNTIL_SETTLED else options.n_reweight
    rectified = options.first_rule != NOT_RECTIFIED
    refits.refit(
        batch,
        n_aside,
        refits.Shape(n, lower, upper, below),
        scores[:n],
        HUBER_K,
        options.c,
        options.cutoff,
        n_turns,
        rectified,
        options.adaptive,
    )
    for lane in range(n_aside):
        j = int(batch.fields[refits.ROW, lane])
        if batch.fields[refits.FITTED, lane] > 0.0:
            _write_lane(columns[j, :n], batch.fields[:, lane], below, options, out[j])


@kernel
def _write_lane(x: FloatArray, fields: FloatArray, below: float, options: Options, row: FloatArray) -> None:
    """The row of a column from the fields of its lane; its status is LEFT where these are beyond float64."""
    prescaling = Prescaling(fields[refits.CENTER], fields[refits.DIVISOR], fields[refits.POWER], _OK)
    start = Start(
        fields[refits.START],
        int(fields[refits.N_SEARCHED]),
        int(fields[refits.N_RIVALS]),
        fields[refits.INSIDE] > 0.0,
        fields[refits.VALUE],
    )
    rule, units = QUARTILES if fields[refits.CUT_RECTIFIED] > 0.0 else NOT_RECTIFIED, units_of(below, prescaling)
    first, last = int(fields[refits.FIRST]), int(fields[refits.LAST])
    loc, scale, lmbda, cutoff = refits.CUT_LOC, refits.CUT_SCALE, refits.CUT_AT, refits.CUT_OFF
    kept = Kept(first, last, fields[loc], fields[scale], fields[lmbda], rule, fields[cutoff], 0.0, 0.0)
    exponent, n_eval = fields[refits.EXPONENT] / units.unit, int(fields[refits.N_SEARCHED] + fields[refits.N_REFIT])
    mean, variance, curvature = fields[refits.MEAN], fields[refits.VARIANCE], fields[refits.CURVATURE]
    best = optimum_in(units, exponent, mean, variance, curvature, fields[refits.JACOBIAN], n_eval, _OK)
    write_fit(row, best, 0.0 if below > 0.0 else 1.0, _ONE_PASS)
    if is_identity(row):
        row[STATUS] = LEFT
        return
    if options.n_reweight == UNTIL_SETTLED and not fields[refits.SETTLED] > 0.0:
        row[STATUS] = _NOT_SETTLED
    elif not start.inside:
        row[STATUS] = _NOT_CERTIFIED
    chosen = options if fields[refits.BOTH_SIDES] > 0.0 or options.rule != BOTH else with_rule(options, QUARTILES)
    correction = 1.0 / sd_within(kept.cutoff)
    finish(x, None, None, below, prescaling, start, kept, fields[refits.TAIL] > 0.0, correction, chosen, row)
