"""The lambda of largest likelihood of a column with censored cells.

The profile likelihood had a single maximum in each of thousands of simulated columns (asv_benches/report_limits.py),
but is not known to be concave. A root of the score is found by bracketed Newton steps. The score is then evaluated on
both sides, where a single maximum implies its sign. The status SCANNED says that uniqueness was checked, not proved.

Long columns are searched on a sample first. From its optimum, three or four evaluations of the whole column suffice.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import kernel, reduction
from powerkern._typing import FloatArray
from powerkern.kernels.censored.column import CensoredColumn, sample_column
from powerkern.kernels.censored.likelihood import SMALL_STEP, Profile, Scales, profile_at
from powerkern.kernels.censored.scratch import CensoredWork
from powerkern.kernels.likelihood.score import Scratch
from powerkern.kernels.optimize.newton import newton_start, newton_step
from powerkern.kernels.optimize.status import RUNNING
from powerkern.kernels.status_codes import AT_END, FIXED, MULTIMODAL, NOT_CERTIFIED, SCANNED

#: The search ends with a Newton step of at most this many standard errors of lambda: convergence is quadratic, so the
#: next step would be below 1e-9. On a sample an error of 0.01 standard errors of the whole column would be good enough.
_LAST_STEP, _LAST_STEP_ON_SAMPLE = 1e-5, 0.05
#: Newton's method in the scales ends before a step this small while lambda is off by a standard error or more: the
#: error of the score is about its square.
_COARSE_STEP = 1e-3
#: The third derivative is not estimated from shorter steps, in standard errors of lambda.
_SMALL_CHANGE = 1e-3
#: A guard against endless searches.
_MOST_EVALUATIONS = 100
#: Largest exponent searched, in units of one over the standard deviation of the logs. A likelihood that still rises
#: there counts as having no maximum. In 400 simulated columns that have a maximum it lies within 12.
_REACH = 64.0
#: The score is evaluated at these distances on both sides of the optimum, in standard errors of lambda: the nearest,
#: the factor from one distance to the next, and the farthest.
_NEAREST, _GROWTH, _FARTHEST = 3.0, 3.0, 27.0
#: Fewest cells of a column that is searched on a sample first, fewest values of the sample, and its largest stride.
_LONG, _SAMPLE, _STRIDE = 2048, 512, 16
#: Largest score accepted at the optimum, in units of its standard deviation.
_RESIDUAL = 1e-3


class Found(NamedTuple):
    """Result of a search: the exponent in units of the logs, the likelihood there, and a `powerkern.Status`.

    `d3` is an estimate of the likelihood's third derivative.
    """

    mu: float
    profile: Profile
    d3: float
    n_eval: int
    status: int


class Start(NamedTuple):
    """Start of a search: the exponent, the scales and the third derivative there, and the largest exponent allowed."""

    mu: float
    scales: Scales
    d3: float
    reach: float


#: Scales of a column without censored cells.
_STANDARD = Scales(1.0, 0.0)
#: Logs with a smaller unit form a tight cluster, whose unit of lambda is large: the search starts from 0, as in
#: `two_pass`.
_TIGHT = 2.0**-20


@kernel
def find_optimum(column: CensoredColumn, given: float, scratch: Scratch, own: CensoredWork) -> Found:
    """Find the exponent of largest likelihood, or evaluate the likelihood at a `given` exponent.

    Parameters
    ----------
    column : CensoredColumn
        The column.
    given : float
        The exponent at which to evaluate, in units of the logs, or NaN.
    scratch : Scratch
        Scratch of `score`.
    own : CensoredWork
        Scratch.
    """
    logs = column.centered.logs
    if given == given:
        return Found(given, profile_at(column, given, _STANDARD, SMALL_STEP, scratch, own), 0.0, 1, FIXED)
    reach, n = reach_of(column), logs.pos.size + logs.neg.size
    start = Start(0.0 if logs.sigma < _TIGHT else min(logs.sigma, 1.0), _STANDARD, 0.0, reach)
    n_eval, stride, status = 0, min(_STRIDE, n // _SAMPLE), SCANNED
    if column.are_standard and n + column.terms.points.pos.size + column.terms.points.neg.size >= _LONG and stride > 1:
        sample = sample_column(column, stride, own)
        found = _scan(sample, _search(sample, start, _LAST_STEP_ON_SAMPLE, scratch, own), reach, scratch, own)
        n_eval = found.n_eval
        if found.status == SCANNED or found.status == MULTIMODAL:
            start, status = Start(found.mu, found.profile.scales, found.d3, reach), found.status
        found = _search(column, start, _LAST_STEP, scratch, own)
    else:
        found = _scan(column, _search(column, start, _LAST_STEP, scratch, own), reach, scratch, own)
    if found.status == SCANNED:
        return Found(found.mu, found.profile, found.d3, n_eval + found.n_eval, status)
    return Found(found.mu, found.profile, found.d3, n_eval + found.n_eval, found.status)


@kernel
def reach_of(column: CensoredColumn) -> float:
    """Return the largest exponent that a search may try."""
    return _REACH / _spread(column.centered.logs.pos, column.centered.logs.neg)


@reduction
def _spread(pos: FloatArray, neg: FloatArray) -> float:
    """Return the standard deviation of the logs, taken about 0 in columns of both signs."""
    total = squares = 0.0
    for i in range(pos.size):
        total += pos[i]
        squares += pos[i] * pos[i]
    for i in range(neg.size):
        squares += neg[i] * neg[i]
    n = pos.size + neg.size
    mean = total / n if neg.size == 0 else 0.0
    return math.sqrt(max(squares / n - mean * mean, 1e-30))


@kernel
def _search(column: CensoredColumn, start: Start, last_step: float, scratch: Scratch, own: CensoredWork) -> Found:
    """Find a root of the score by bracketed Halley steps, and evaluate the likelihood there.

    The third derivative is the difference of the last two second derivatives over the step between them.

    Parameters
    ----------
    column : CensoredColumn
        The column, or a sample of it.
    start : Start
        Where to start, and the largest exponent allowed.
    last_step : float
        Length of a step that ends the search, in standard errors of lambda.
    scratch : Scratch
        Scratch of `score`.
    own : CensoredWork
        Scratch.
    """
    state, d3 = newton_start(start.mu, 4.0, 0.0, _MOST_EVALUATIONS), start.d3
    at = profile_at(column, state.x, start.scales, _COARSE_STEP, scratch, own)
    while state.status == RUNNING:
        x, before = state.x, at
        state = newton_step(state, at.d1, at.d2, d3)
        x_next = min(max(state.x, -start.reach), start.reach)
        step = x_next - x
        size = abs(step) * math.sqrt(column.total * at.d2) if at.d2 > 0.0 else math.inf
        at = profile_at(column, x_next, _predict(at, step), SMALL_STEP if size <= 1.0 else _COARSE_STEP, scratch, own)
        if x_next != state.x:
            if at.d1 * state.x < 0.0:
                return Found(x_next, at, d3, state.n_eval + 1, AT_END)
            return Found(x_next, at, d3, state.n_eval + 1, NOT_CERTIFIED)
        if size <= last_step and at.is_maximum:
            residual = abs(at.d1) <= _RESIDUAL * math.sqrt(abs(at.d2) / column.total)
            certified = at.d2 > 0.0 and residual
            return Found(x_next, at, d3, state.n_eval + 1, SCANNED if certified else NOT_CERTIFIED)
        if size > _SMALL_CHANGE:
            d3 = (at.d2 - before.d2) / step
    return Found(state.x, at, d3, state.n_eval + 1, NOT_CERTIFIED)


@kernel
def _predict(at: Profile, step: float) -> Scales:
    """Return the maximising scales after `step`, to first order; unchanged if alpha would change by a factor of 2."""
    alpha = at.scales.alpha + step * at.slopes.alpha
    if 0.5 * at.scales.alpha < alpha < 2.0 * at.scales.alpha:
        return Scales(alpha, at.scales.delta + step * at.slopes.delta)
    return at.scales


@kernel
def _scan(column: CensoredColumn, found: Found, reach: float, scratch: Scratch, own: CensoredWork) -> Found:
    """Check the sign of the score on both sides of an optimum; search again where it points to another maximum.

    Parameters
    ----------
    column : CensoredColumn
        The column, or a sample of it.
    found : Found
        The optimum.
    reach : float
        The largest exponent allowed.
    scratch : Scratch
        Scratch of `score`.
    own : CensoredWork
        Scratch.
    """
    if found.status != SCANNED:
        return found
    best, n_eval, status = found, found.n_eval, SCANNED
    unit = 1.0 / math.sqrt(column.total * found.profile.d2)
    distance = _NEAREST
    while abs(distance) <= _FARTHEST:
        scales = _predict(found.profile, distance * unit)
        at = profile_at(column, found.mu + distance * unit, scales, _COARSE_STEP, scratch, own)
        n_eval += 1
        if at.is_maximum and at.d1 * distance < 0.0:
            other = _search(column, Start(found.mu + distance * unit, at.scales, 0.0, reach), _LAST_STEP, scratch, own)
            n_eval += other.n_eval
            if abs(other.mu - found.mu) > unit or other.status == AT_END:
                status = MULTIMODAL
                if other.profile.nll < best.profile.nll:
                    best = other
        distance = -distance if distance > 0.0 else -_GROWTH * distance
    if best.status == AT_END:
        return Found(best.mu, best.profile, best.d3, n_eval, AT_END)
    return Found(best.mu, best.profile, best.d3, n_eval, status)
