"""Find the lambda that maximises the likelihood of a column with censored cells.

The profile likelihood had a single maximum in each of thousands of simulated columns (asv_benches/report_limits.py),
but is not known to be concave. A root of the score is found by bracketed Halley steps. The score is then evaluated at
points on both sides of the root. If the maximum is unique, the score is positive at all lambdas below the root and
negative at all lambdas above it. The status SCANNED says that uniqueness was checked, not proved.

Long columns are first searched on a sample. From its optimum, three or four evaluations of the whole column suffice.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import kernel, reduction
from powerkern._typing import FloatArray
from powerkern.kernels.censored.column import CensoredColumn, sample_column
from powerkern.kernels.censored.likelihood import SMALL_STEP, Profile, Scales, profile_at, taylor_profile
from powerkern.kernels.censored.scratch import CensoredWork
from powerkern.kernels.likelihood.score import Scratch
from powerkern.kernels.optimize.newton import newton_start, newton_step
from powerkern.kernels.optimize.status import CONVERGED, RUNNING
from powerkern.kernels.status_codes import AT_END, FIXED, MULTIMODAL, NOT_CERTIFIED, SCANNED

#: Newton's method in alpha and delta ends before a relative step shorter than these tolerances. The first applies while
#: lambda is still off by a standard error or more, the second on a sample. The error of the score is about the square
#: of the step.
_COARSE_STEP, _COARSE_STEP_ON_SAMPLE = 1e-3, 3e-2
#: Shortest and longest step from which the third derivative is estimated, in the unit of `_Tolerances.last_step`.
_SHORTEST, _LONGEST = 1e-5, 0.3
#: A guard against endless searches.
_MOST_EVALUATIONS = 100
#: Largest exponent searched, in units of one over the standard deviation of the logs. A likelihood that still increases
#: there counts as having no maximum. In 400 simulated columns with a maximum, the maximum lies within 12.
_REACH = 64.0
#: Distances from the optimum at which the score is evaluated, on both sides and in standard errors of lambda: the
#: smallest, the ratio of successive distances, and the largest.
_NEAREST, _GROWTH, _FARTHEST = 3.0, 3.0, 27.0
#: Fewest cells of a column that is searched on a sample first, fewest values of the sample, and its largest stride.
_LONG, _SAMPLE, _STRIDE = 2048, 512, 16
#: Largest score accepted at the optimum, in units of its standard deviation.
_RESIDUAL = 1e-3


class SearchResult(NamedTuple):
    """Result of a search: the exponent in units of the logs, the likelihood there, and a `powerkern.Status`.

    `d3` is an estimate of the third derivative of the profile likelihood.
    """

    mu: float
    profile: Profile
    d3: float
    n_eval: int
    status: int


class _Tolerances(NamedTuple):
    """Step lengths at which the search for lambda and the maximisation over alpha and delta end.

    The search ends with the first step of lambda shorter than `last_step`, which is taken by Taylor expansion. The unit
    of `last_step` is one over the square root of the information per unit of weight, that is, one standard error of
    lambda for a column of one value. Newton's method in alpha and delta ends before a step shorter than `coarse` while
    lambda is far from the optimum, and before a step shorter than `fine` near the optimum.
    """

    last_step: float
    coarse: float
    fine: float


#: With a last step of 1e-7 the standard errors have a relative error of 1e-7, and a further step would be shorter than
#: 1e-9 standard errors. On a sample an error of 0.01 standard errors of the whole column would be good enough.
_EXACT = _Tolerances(1e-7, _COARSE_STEP, SMALL_STEP)
_ON_SAMPLE = _Tolerances(2e-3, _COARSE_STEP_ON_SAMPLE, _COARSE_STEP_ON_SAMPLE)


class Start(NamedTuple):
    """Start of a search: exponent `mu`, initial alpha and delta (`scales`), and the largest exponent allowed.

    `d3` is an estimate of the third derivative of the profile likelihood at `mu`; 0 if there is none.
    """

    mu: float
    scales: Scales
    d3: float
    largest_exponent: float


#: Alpha and delta of a column without censored cells.
_STANDARD = Scales(1.0, 0.0)
#: Logs with a smaller unit form a tight cluster, in which lambda = 1 is close to 0 in units of the logs. The search
#: then starts from 0, as in `two_pass`.
_TIGHT = 2.0**-20


@kernel
def find_optimum(
    column: CensoredColumn, given: float, may_sample: bool, scratch: Scratch, censored_work: CensoredWork
) -> SearchResult:
    """Find the exponent that maximises the likelihood, or evaluate the likelihood at a `given` exponent.

    Parameters
    ----------
    column : CensoredColumn
        The column.
    given : float
        The exponent at which to evaluate, in units of the logs; NaN to search for the optimum.
    may_sample : bool
        Whether a long column may first be searched on a sample.
    scratch : Scratch
        Scratch of `kernels.likelihood.score`.
    censored_work : CensoredWork
        Scratch.
    """
    logs = column.centered.logs
    if given == given:
        return SearchResult(
            given, profile_at(column, given, _STANDARD, SMALL_STEP, scratch, censored_work), 0.0, 1, FIXED
        )
    largest_exponent, n = get_largest_exponent(column), logs.pos.size + logs.neg.size
    start = Start(0.0 if logs.sigma < _TIGHT else min(logs.sigma, 1.0), _STANDARD, 0.0, largest_exponent)
    n_eval, stride, status = 0, min(_STRIDE, n // _SAMPLE), SCANNED
    n_cells = n + column.terms.points.pos.size + column.terms.points.neg.size
    if may_sample and column.are_standard and n_cells >= _LONG and stride > 1:
        sample = sample_column(column, stride, censored_work)
        optimum = _check_uniqueness(
            sample,
            _search(sample, start, _ON_SAMPLE, scratch, censored_work),
            largest_exponent,
            _ON_SAMPLE,
            scratch,
            censored_work,
        )
        n_eval = optimum.n_eval
        if optimum.status == SCANNED or optimum.status == MULTIMODAL:
            start, status = Start(optimum.mu, optimum.profile.scales, optimum.d3, largest_exponent), optimum.status
        optimum = _search(column, start, _EXACT, scratch, censored_work)
    else:
        optimum = _check_uniqueness(
            column,
            _search(column, start, _EXACT, scratch, censored_work),
            largest_exponent,
            _EXACT,
            scratch,
            censored_work,
        )
    if optimum.status == SCANNED:
        return SearchResult(optimum.mu, optimum.profile, optimum.d3, n_eval + optimum.n_eval, status)
    return SearchResult(optimum.mu, optimum.profile, optimum.d3, n_eval + optimum.n_eval, optimum.status)


@kernel
def get_largest_exponent(column: CensoredColumn) -> float:
    """Return the largest exponent that a search may try, in units of the logs."""
    logs = column.centered.logs
    return _REACH / _sd_of_logs(logs.pos, logs.pos_weight, logs.neg, logs.neg_weight)


@reduction
def _sd_of_logs(pos: FloatArray, pos_weight: FloatArray, neg: FloatArray, neg_weight: FloatArray) -> float:
    """Return the weighted standard deviation of a column's logs, or their root mean square if there are both signs.

    The result is in the unit of the logs, and at least 1e-15.

    Parameters
    ----------
    pos : (k,)
        Logs of the magnitudes, relative to the reference: of all values of a column of one sign, otherwise of the
        non-negative values (`Logs.pos`).
    pos_weight : (k,)
        Weights of these values; ones if the column has no weights.
    neg : (m,)
        Logs of the magnitudes of the negative values of a column of both signs (`Logs.neg`); otherwise empty.
    neg_weight : (m,)
        Weights of these values.
    """
    n = total = squares = 0.0
    for i in range(pos.size):
        n += pos_weight[i]
        total += pos_weight[i] * pos[i]
        squares += pos_weight[i] * pos[i] * pos[i]
    for i in range(neg.size):
        n += neg_weight[i]
        squares += neg_weight[i] * neg[i] * neg[i]
    mean = total / n if neg.size == 0 else 0.0
    return math.sqrt(max(squares / n - mean * mean, 1e-30))


@kernel
def _search(
    column: CensoredColumn, start: Start, tolerances: _Tolerances, scratch: Scratch, censored_work: CensoredWork
) -> SearchResult:
    """Find a root of the score by bracketed Halley steps; return the likelihood there.

    The third derivative is estimated as the difference of the last two second derivatives, divided by the step.

    Parameters
    ----------
    column : CensoredColumn
        The column, or a sample of it.
    start : Start
        The initial values, and the largest exponent allowed.
    tolerances : _Tolerances
        Step lengths at which the iterations end.
    scratch : Scratch
        Scratch of `kernels.likelihood.score`.
    censored_work : CensoredWork
        Scratch.
    """
    state = newton_start(start.mu, 4.0, 0.0, _MOST_EVALUATIONS)
    x, scales, small_step, d3 = state.x, start.scales, tolerances.coarse, start.d3
    step = size = last_d2 = 0.0
    n_eval = 1
    one_error = 1.0 / math.sqrt(column.total)
    has_arrived = is_last = False
    at = profile_at(column, x, scales, small_step, scratch, censored_work)
    while True:
        if size >= _SHORTEST:
            d3 = (at.d2 - last_d2) / step if size <= _LONGEST else 0.0
        state = newton_step(state, at.d1, at.d2, d3)
        x_next = min(max(state.x, -start.largest_exponent), start.largest_exponent)
        step = x_next - x
        size = abs(step) * math.sqrt(at.d2) if at.d2 > 0.0 else math.inf
        has_arrived = size <= tolerances.last_step and small_step <= tolerances.fine and at.is_maximum
        if has_arrived and column.centered.logs.center == 0.0:
            at, x = taylor_profile(column, x, at, step, d3, scratch), x_next
            break
        is_last = has_arrived or state.status != RUNNING or x_next != state.x
        scales, last_d2, x = _predict(at, step), at.d2, x_next
        small_step = tolerances.fine if size <= one_error or is_last else tolerances.coarse
        at, n_eval = profile_at(column, x, scales, small_step, scratch, censored_work), n_eval + 1
        if is_last:
            break
    if x != state.x:
        return SearchResult(x, at, d3, n_eval, AT_END if at.d1 * state.x < 0.0 else NOT_CERTIFIED)
    has_arrived = has_arrived or (state.status == CONVERGED and at.is_maximum)
    certified = has_arrived and at.d2 > 0.0 and abs(at.d1) <= _RESIDUAL * math.sqrt(abs(at.d2) / column.total)
    return SearchResult(x, at, d3, n_eval, SCANNED if certified else NOT_CERTIFIED)


@kernel
def _predict(at: Profile, step: float) -> Scales:
    """Return the maximising alpha and delta after a `step` of the exponent, to first order.

    Both are returned unchanged if alpha would change by more than a factor of 2.
    """
    alpha = at.scales.alpha + step * at.slopes.alpha
    if 0.5 * at.scales.alpha < alpha < 2.0 * at.scales.alpha:
        return Scales(alpha, at.scales.delta + step * at.slopes.delta)
    return at.scales


@kernel
def _check_uniqueness(
    column: CensoredColumn,
    optimum: SearchResult,
    largest_exponent: float,
    tolerances: _Tolerances,
    scratch: Scratch,
    censored_work: CensoredWork,
) -> SearchResult:
    """Check the sign of the score on both sides of an optimum, and search for any other maximum that it indicates.

    Parameters
    ----------
    column : CensoredColumn
        The column, or a sample of it.
    optimum : SearchResult
        The optimum to check.
    largest_exponent : float
        The largest exponent allowed, in units of the logs.
    tolerances : _Tolerances
        Step lengths at which Newton's method in alpha and delta ends.
    scratch : Scratch
        Scratch of `kernels.likelihood.score`.
    censored_work : CensoredWork
        Scratch.
    """
    if optimum.status != SCANNED:
        return optimum
    best, n_eval, status = optimum, optimum.n_eval, SCANNED
    unit = 1.0 / math.sqrt(column.total * optimum.profile.d2)
    distance = _NEAREST
    while abs(distance) <= _FARTHEST:
        scales = _predict(optimum.profile, distance * unit)
        at = profile_at(column, optimum.mu + distance * unit, scales, tolerances.fine, scratch, censored_work)
        n_eval += 1
        if at.is_maximum and at.d1 * distance < 0.0:
            other = _search(
                column,
                Start(optimum.mu + distance * unit, at.scales, 0.0, largest_exponent),
                _EXACT,
                scratch,
                censored_work,
            )
            n_eval += other.n_eval
            if (other.status == SCANNED and abs(other.mu - optimum.mu) > unit) or other.status == AT_END:
                status = MULTIMODAL
                if other.profile.nll < best.profile.nll:
                    best = other
        distance = -distance if distance > 0.0 else -_GROWTH * distance
    if best.status == AT_END:
        return SearchResult(best.mu, best.profile, best.d3, n_eval, AT_END)
    return SearchResult(best.mu, best.profile, best.d3, n_eval, status)
