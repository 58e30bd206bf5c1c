"""The optimum of any column by two passes within a block: moments about means, joined pairwise.

Columns that are short, weighted, tightly clustered, of enormous range, or for which the sums of one pass lose digits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import float_of, kernel
from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.floats import EPS
from powerkern.kernels.likelihood import Logs, Score, Scratch, b, growth_at_center, has_root_near, nll_at, score
from powerkern.kernels.logs import Prepared, Sides, logs_about, offset_log, sides_of, total_weight
from powerkern.kernels.minimize import CONVERGED, RUNNING, newton_start, newton_step
from powerkern.kernels.results import Optimum
from powerkern.kernels.scratch import Work

_OK, _FIXED, _NOT_CERTIFIED = int(Status.OK), int(Status.FIXED), int(Status.NOT_CERTIFIED)

MAX_EVAL = 100

#: Logs in units below this are those of a tight cluster.
_TIGHT = 2.0**-20
#: Values among which a reference is chosen.
_MOST_TYPICAL = 63


class Centered(NamedTuple):
    """Logs of a column and the log that they are relative to; the smallest and the largest magnitude in it."""

    logs: Logs
    log_reference: float
    offset: float
    smallest: float
    largest: float


@kernel
def centered_column(column: Prepared, work: Work) -> Centered:
    """The logs of a column about a reference in it, in `work.spare`."""
    found, offset = column.found, column.offset
    sides = sides_of(column.x, column.weight, found.n_negative, work)
    reference = _reference(sides, column.weight.size > 0, work.spare)
    logs = logs_about(sides, offset, reference, work.spare)
    largest = max(float_of(found.high), float_of(found.negative_high))
    return Centered(logs, offset_log(offset, abs(reference)), offset, float_of(found.low), largest)


@kernel
def _reference(sides: Sides, weighted: bool, scratch: FloatArray) -> float:
    """A value near the bulk of the weight; negative if it is a negative one in a column of both signs.

    Without weights 0 will do for both signs: there is a value on either side of it.
    """
    if sides.neg.size == 0:
        return _typical(sides.pos, sides.pos_weight, scratch)
    if not weighted:
        return 0.0
    if total_weight(sides.pos_weight) >= total_weight(sides.neg_weight):
        return _typical(sides.pos, sides.pos_weight, scratch)
    return -_typical(sides.neg, sides.neg_weight, scratch)


@kernel
def _typical(x: FloatArray, weight: FloatArray, scratch: FloatArray) -> float:
    """The median of at most 63 values, evenly spaced in weight: a reference inside the bulk of the data.

    A value with more than half of the weight is the median.
    """
    spacing = total_weight(weight) / min(x.size, _MOST_TYPICAL)
    seen, n = 0.0, 0
    for i in range(x.size):
        seen += weight[i]
        while n < _MOST_TYPICAL and (n + 0.5) * spacing < seen:
            value, k = x[i], n  # sorted as they come in
            while k > 0 and scratch[k - 1] > value:
                scratch[k] = scratch[k - 1]
                k -= 1
            scratch[k] = value
            n += 1
    return float(scratch[n // 2])


@kernel
def two_pass_optimum(centered: Centered, exponent: float, n_eval: int, scratch: Scratch) -> Optimum:
    """Certified optimum, or the moments at a given `exponent` (NaN: none given)."""
    logs = centered.logs
    given = exponent == exponent
    state = newton_start(exponent * logs.sigma if given else _start(logs), 4.0, 1e-8, MAX_EVAL)
    searching = not given
    while True:  # one call of score, not two, which would double the compiled code
        mu = state.x
        at = score(logs, mu, scratch)
        n_eval += 1
        if not searching:
            break
        # a difference below its own rounding counts as 0: Newton's steps would follow the noise
        d1 = at.d1 if abs(at.d1) > 2.0 * EPS * abs(logs.jacobian) else 0.0
        state = newton_step(state, d1, at.d2, at.d3)
        searching = state.status == RUNNING
    certified = state.status == CONVERGED and has_root_near(at.d1, at.d2, at.d3)
    status = _FIXED if given else _OK if certified else _NOT_CERTIFIED
    extreme = 0.0
    if logs.neg.size == 0:
        extreme = centered.largest if mu > 0.0 else centered.smallest
    nll = nll_at(logs, mu, at, centered.log_reference)
    return optimum(logs, mu, _at_extreme(logs, mu, at), nll, centered.offset, extreme, n_eval, status)


@kernel
def _start(logs: Logs) -> float:
    """lambda = 1, or 0 for a tight cluster, whose unit of lambda is large.

    Two values, and logs that are as good as symmetric, have their optimum at 0, where no step is taken any more.
    """
    if logs.neg.size == 0 and logs.sigma < _TIGHT:
        return 0.0
    return min(logs.sigma, 1.0)


@kernel
def _at_extreme(logs: Logs, mu: float, at: Score) -> Score:
    """The same score with mean and log-factor as standardising needs them.

    One branch: relative to the largest log for mu > 0, the smallest for mu < 0, where nothing overflows.
    """
    if logs.neg.size > 0:
        log_factor = at.log_factor + growth_at_center(logs, mu)
        return Score(at.d1, at.d2, at.d3, at.mean, at.variance, log_factor, 0.0)
    shift = logs.high if mu > 0.0 else logs.low
    return Score(at.d1, at.d2, at.d3, at.mean - b(-mu, shift), at.variance, 0.0, shift)


@kernel
def optimum(
    logs: Logs, mu: float, at: Score, nll: float, offset: float, extreme: float, n_eval: int, status: int
) -> Optimum:
    """The optimum `mu` in the column's own units; `extreme` is the value at ``at.shift`` (0 with both signs)."""
    return Optimum(
        mu / logs.sigma,
        at.mean * logs.sigma,
        math.sqrt(at.variance) * logs.sigma,
        at.log_factor,
        extreme,
        offset_log(offset, extreme),
        nll,
        at.d2 * logs.sigma * logs.sigma,
        n_eval,
        status,
    )


@kernel
def profile_of(centered: Centered, sign: float, lmbdas: FloatArray, scratch: Scratch, out: FloatArray) -> None:
    """out = g(lambda) for every lambda; `sign` is 1, -1, or 0 for both signs."""
    for k in range(lmbdas.size):
        mu = (lmbdas[k] if sign >= 0.0 else 2.0 - lmbdas[k]) * centered.logs.sigma
        at = score(centered.logs, mu, scratch)
        out[k] = nll_at(centered.logs, mu, at, centered.log_reference)
