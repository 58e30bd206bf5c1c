"""One site's share of a column that lies at several sites: its moments at given exponents.

A site knows its own rows only. What it has to agree on with the others comes as a frame: bounds, reference and unit of
the logs of all sites' rows (`powerkern.federated`). With one frame for all, the moments of the shares merge pairwise
(Chan, Golub, LeVeque 1982) into those that `powerkern.kernels.mle` would form of the whole column.
"""

from __future__ import annotations

from typing import NamedTuple

from powerkern._jit import COLUMN, INTEGER, ROWS, entry, kernel
from powerkern.kernels.family import log_offset
from powerkern.kernels.likelihood import N_MOMENTS, FloatArray, Logs, add_moments
from powerkern.kernels.logs import Bounds, Sides, centerd_logs, logs_in_units, prepare, sides_of
from powerkern.kernels.scratch import WORK, Work, borrowed_work

# one row a column: what all sites agree on; logs are in units of SIGMA
BOTH_SIGNS, REFERENCE, LOW, HIGH, NEG_HIGH, SIGMA = range(6)
N_FRAME = 6

#: Moments at one exponent, and the mean of the logs with their signs.
JACOBIAN = N_MOMENTS
N_SHARE = N_MOMENTS + 1


class Frame(NamedTuple):
    """A row of frames, by name."""

    both_signs: bool
    reference: float
    low: float
    high: float
    neg_high: float
    sigma: float


@kernel
def _framed_sides(x: FloatArray, weight: FloatArray, n_negative: int, both_signs: bool, work: Work) -> Sides:
    """Magnitudes by sign; a share without positive values may belong to a column that has some."""
    sides = sides_of(x, weight, n_negative, work)
    if both_signs and n_negative == x.size:
        return Sides(sides.neg, sides.pos, sides.neg_weight, sides.pos_weight)
    return sides


@kernel
def share_of_column(
    x: FloatArray, weight: FloatArray, family: int, frame: Frame, at: FloatArray, work: Work, out: FloatArray
) -> None:
    """Moments at the exponents `at`, in units of the frame; zeros for a share without values, or at NaN."""
    column = prepare(x, weight, family, work)
    out[:] = 0.0
    if column.x.size == 0 or at[0] != at[0]:
        return
    base = log_offset(family)
    sides = _framed_sides(column.x, column.weight, column.found.n_negative, frame.both_signs, work)
    spare = work.spare[: column.x.size]
    centerd_logs(sides, base, frame.reference, spare)
    own = logs_in_units(sides, Bounds(0.0, 0.0, 0.0), frame.sigma, 0.0, spare)
    logs = Logs(
        own.pos,
        own.pos_weight,
        own.neg,
        own.neg_weight,
        frame.low,
        frame.high,
        frame.neg_high,
        own.jacobian,
        frame.sigma,
        0.0,
    )
    for k in range(at.size):
        if at[k] == at[k]:
            add_moments(logs, frame.both_signs, at[k], work.scratch)
            row = out[k * N_SHARE : (k + 1) * N_SHARE]
            row[:N_MOMENTS] = work.scratch.moments[0]
            row[JACOBIAN] = logs.jacobian


@entry((ROWS, COLUMN, INTEGER, ROWS, ROWS, WORK, ROWS))
def share_columns(
    columns: FloatArray,
    weight: FloatArray,
    family: int,
    frames: FloatArray,
    at: FloatArray,
    work: Work,
    out: FloatArray,
) -> None:
    """Shares of the rows of `columns` at the exponents in the rows of `at`."""
    each = borrowed_work(work)
    for j in range(columns.shape[0]):
        f = frames[j]
        frame = Frame(f[BOTH_SIGNS] != 0.0, f[REFERENCE], f[LOW], f[HIGH], f[NEG_HIGH], f[SIGMA])
        share_of_column(columns[j], weight, family, frame, at[j], each, out[j])
