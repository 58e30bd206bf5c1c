"""Maximum likelihood on the values that are kept of a prestandardised column.

Their logs are there: sums of one pass over them nearly always do (`fit_by_logs`). Values whose sums lose digits are
fitted in two passes (`fit_in_two_passes`). An entry that is often waited for leaves them: most data need no code for
these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from powerkern._jit import for_none, kernel
from powerkern._status import Route, Status
from powerkern._typing import FloatArray
from powerkern.kernels.likelihood.mle import two_pass_column
from powerkern.kernels.likelihood.one_pass_logs import optimum_of_logs
from powerkern.kernels.likelihood.optimum import write_fit
from powerkern.kernels.results import LEFT, N_EVAL, STATUS, write_range
from powerkern.kernels.robust.options import Prestandardized, RobustWork
from powerkern.kernels.robust.prestandardization import Prescaling, units_of
from powerkern.kernels.robust.weights import Counts, part_of
from powerkern.kernels.transforms.family import is_mirrored
from powerkern.kernels.transforms.rectified import NOT_RECTIFIED

_NOT_CERTIFIED = int(Status.NOT_CERTIFIED)
_ONE_PASS = int(Route.ONE_PASS)
#: Fits of so many values start from the optimum of one in _STRIDE.
_LONG, _STRIDE = 2048, 16


class Kept(NamedTuple):
    """The consecutive values kept, the location and scale that set the cut-off, and of which transform.

    Of the first and of the last value a weight may be left out: `below` and `above`.
    """

    start: int
    stop: int
    loc: float
    scale: float
    lmbda: float
    rule: int
    cutoff: float
    below: float
    above: float


#: Fits the values kept into a row, from a lambda of the prestandardised column, or at one given of the data (else NaN);
#: or leaves them, by the row's status: (column, its values, family, prescaling, kept, start, given, work, row).
Fit = Callable[[Prestandardized, FloatArray, int, Prescaling, Kept, float, float, RobustWork, FloatArray], None]


@kernel
def values_kept(start: int, stop: int) -> Kept:
    """These values, without a cut-off."""
    return Kept(start, stop, math.nan, math.nan, math.nan, NOT_RECTIFIED, math.nan, 0.0, 0.0)


@kernel
def fit_by_logs(
    at: Prestandardized,
    x: FloatArray,
    family: int,
    prescaling: Prescaling,
    kept: Kept,
    start: float,
    given: float,
    work: RobustWork,
    row: FloatArray,
) -> None:
    """Fit the values by their logs, or leave them where the sums would lose digits."""
    column, first, last = at.column, kept.start, kept.stop
    mirrored, units = column.below > 0.0, units_of(column.below, prescaling)
    row[STATUS], row[N_EVAL] = LEFT, 0.0
    if mirrored and not first < column.n_negative < last:
        return
    ends = _trimmed(at.counts, kept)
    logs, weight, moments = column.logs[first:last], part_of(at.counts, first, last), work.mle.scratch.moments[0]
    exponent = start / units.unit
    if logs.size >= _LONG and given != given:
        few, own = _thinned(weight, logs, work.mle.spare, work.mle.split)
        rough = optimum_of_logs(few, own, mirrored, units, exponent, given, moments)
        exponent = rough.exponent if rough.status != _NOT_CERTIFIED else exponent
    best = optimum_of_logs(logs, weight, mirrored, units, exponent, given, moments)
    _restore(at.counts, kept, ends)
    if best.status != _NOT_CERTIFIED:
        write_range(row, float(last - first), column.x[first], column.x[last - 1])
        write_fit(row, best, 0.0 if mirrored else 1.0, _ONE_PASS)


@kernel
def _plain_thinned(
    weight: None, logs: FloatArray, out: FloatArray, own: FloatArray
) -> tuple[FloatArray, FloatArray | None]:
    n = logs.size // _STRIDE
    for i in range(n):
        out[i] = logs[i * _STRIDE + _STRIDE // 2]
    return out[:n], None


@for_none(_plain_thinned)
def _thinned(
    weight: FloatArray, logs: FloatArray, out: FloatArray, own: FloatArray
) -> tuple[FloatArray, FloatArray | None]:
    """One in _STRIDE of the ascending logs: their optimum is close to that of all."""
    few, _ = _plain_thinned(None, logs, out, own)
    return few, _plain_thinned(None, weight, own, own)[0]


@kernel
def fit_in_two_passes(
    at: Prestandardized,
    x: FloatArray,
    family: int,
    prescaling: Prescaling,
    kept: Kept,
    start: float,
    given: float,
    work: RobustWork,
    row: FloatArray,
) -> None:
    """`fit_by_logs` where that will do, and two passes where not: those of Box-Cox over the values as they are."""
    fit_by_logs(at, x, family, prescaling, kept, start, given, work, row)
    if row[STATUS] == LEFT:
        ends = _trimmed(at.counts, kept)
        values = at.column.x if is_mirrored(family) else x
        part = values[kept.start : kept.stop]
        weight = _as_vector(part_of(at.counts, kept.start, kept.stop), part)
        two_pass_column(part, weight, family, given, work.mle, row)
        _restore(at.counts, kept, ends)


@kernel
def _empty(weight: None, part: FloatArray) -> FloatArray:
    return part[:0]


@for_none(_empty)
def _as_vector(weight: FloatArray, part: FloatArray) -> FloatArray:
    """Weights, or an empty vector."""
    return weight


@kernel
def _trimmed(counts: Counts | None, kept: Kept) -> tuple[float, float]:
    """Reduce the weights of the first and the last value kept by the parts left out; returns them as they were."""
    if counts is None:
        return 0.0, 0.0
    first, last = counts.w[kept.start], counts.w[kept.stop - 1]
    counts.w[kept.start] -= kept.below
    counts.w[kept.stop - 1] -= kept.above
    return first, last


@kernel
def _restore(counts: Counts | None, kept: Kept, ends: tuple[float, float]) -> None:
    if counts is not None:
        counts.w[kept.start], counts.w[kept.stop - 1] = ends
