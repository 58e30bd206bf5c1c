"""Find the optimum of any column from moments computed in two passes over each block (`likelihood.score`).

This is slower than the raw sums of `one_pass`, but remains accurate where raw sums lose digits: in columns that are
short, tightly clustered or of enormous range, and in columns in which a few values carry nearly all of the weight.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import kernel
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import EPS, insert
from powerkern.kernels.elementary.exp import exp
from powerkern.kernels.likelihood.logs import (
    Magnitudes,
    PreparedColumn,
    logs_about,
    magnitude_range,
    magnitudes_by_sign,
    offset_log,
)
from powerkern.kernels.likelihood.optimum import Optimum, exponent_of
from powerkern.kernels.likelihood.score import Logs, Score, Scratch, b, log_power_of_reference, nll_at, score
from powerkern.kernels.likelihood.score_formulas import has_root_near
from powerkern.kernels.likelihood.scratch import Work
from powerkern.kernels.moments import sum_of
from powerkern.kernels.optimize.newton import NewtonState, newton_start, newton_step
from powerkern.kernels.optimize.status import CONVERGED, RUNNING
from powerkern.kernels.status_codes import FIXED, NOT_CERTIFIED, OK

#: Largest number of evaluations, a safeguard. 234 simulated columns take 5.0 evaluations on average, and all of them
#: fewer than 15 (report_constants two-pass).
MAX_EVAL = 100

#: A column is a tight cluster if the unit of its logs is below this. In that unit lambda = 1 is within 1e-6 of 0.
_TIGHT = 2.0**-20
#: Largest number of values whose median is the reference, which need only be typical. With 7 and 127 the errors of 234
#: simulated columns are the same (report_constants two-pass).
MOST_TYPICAL = 63
#: Largest |log| of powers that must be squared: e^(2 * 300) is less than the largest float64, e^709.
_MODERATE = 300.0


class Centered(NamedTuple):
    """Logs of a column relative to the log of a reference, and the numbers needed to convert results back."""

    logs: Logs
    log_reference: float  #: ln(offset + |reference|)
    offset: float  #: 0 (Box-Cox) or 1 (Yeo-Johnson)
    smallest: float  #: smallest magnitude of a value
    largest: float  #: largest magnitude of a value
    heavy: float  #: magnitude of the reference in a weighted column of one sign; otherwise NaN
    reference: float  #: negative if the column has both signs and the reference is a negative value


@kernel
def centered_column(column: PreparedColumn, work: Work) -> Centered:
    """Return the logs of a column relative to the log of one of its values; the arrays are in `work.spare`."""
    summary, offset = column.summary, column.offset
    magnitudes = magnitudes_by_sign(column.x, column.weight, column.sign, work)
    weighted, both_signs = column.weight.size > 0, column.sign == 0.0
    reference = _reference(magnitudes, both_signs, weighted, work.spare)
    logs = logs_about(magnitudes, both_signs, offset, reference, work.spare)
    smallest, largest = magnitude_range(summary)
    heavy = reference if weighted and not both_signs else math.nan
    return Centered(logs, offset_log(offset, abs(reference)), offset, smallest, largest, heavy, reference)


@kernel
def _reference(magnitudes: Magnitudes, both_signs: bool, weighted: bool, scratch: FloatArray) -> float:
    """Choose the reference, a value close to most of the values or, with weights, to most of the weight.

    The reference is a magnitude if all values have one sign, and a signed value otherwise. For a column of both signs
    without weights it is 0, which lies between the negative and the positive values.
    """
    if not weighted:
        return 0.0 if both_signs else subsample_median(magnitudes.pos, MOST_TYPICAL, scratch)
    if not both_signs or sum_of(magnitudes.pos_weight) >= sum_of(magnitudes.neg_weight):
        return weighted_subsample_median(magnitudes.pos, magnitudes.pos_weight, scratch)
    return -weighted_subsample_median(magnitudes.neg, magnitudes.neg_weight, scratch)


@kernel
def subsample_median(x: FloatArray, max_size: int, scratch: FloatArray) -> float:
    """Return the median of at most `max_size` evenly spaced values, leaving out NaN; NaN if all of them are NaN."""
    few, n = min(x.size, max_size), 0
    for k in range(few):
        value = x[(2 * k + 1) * x.size // (2 * few)]
        if value == value:
            insert(value, n, scratch)
            n += 1
    return float(scratch[n // 2]) if n > 0 else math.nan


@kernel
def weighted_subsample_median(x: FloatArray, weight: FloatArray, scratch: FloatArray) -> float:
    """Return the median of at most MOST_TYPICAL values, drawn at even steps of the cumulative weight.

    A value whose weight exceeds the step may be drawn several times.
    """
    spacing = sum_of(weight) / min(x.size, MOST_TYPICAL)
    seen, n = 0.0, 0
    for i in range(x.size):
        seen += weight[i]
        while n < MOST_TYPICAL and (n + 0.5) * spacing < seen:
            insert(x[i], n, scratch)
            n += 1
    return float(scratch[n // 2])


@kernel
def two_pass_optimum(centered: Centered, exponent: float, n_eval: int, scratch: Scratch) -> Optimum:
    """Find the optimum of a column, or evaluate at a given exponent; the status says whether the optimum is certified.

    Parameters
    ----------
    centered : Centered
        The logs of the column.
    exponent : float
        The exponent at which to evaluate; NaN to search for the optimum.
    n_eval : int
        The number of evaluations made so far.
    scratch : Scratch
        Scratch of `kernels.likelihood.score`.
    """
    logs = centered.logs
    mu, converged = exponent * logs.sigma, False
    is_given = exponent == exponent
    if not is_given:
        root = _root_of_score(logs, scratch)
        mu, n_eval, converged = root.x, n_eval + root.n_eval, root.status == CONVERGED
    at = score(logs, mu, scratch)
    n_eval += 1
    certified = converged and has_root_near(at.d1, at.d2, at.d3)
    status = FIXED if is_given else OK if certified else NOT_CERTIFIED
    nll = nll_at(logs, mu, at, centered.log_reference)
    return optimum_from_score(centered, logs.neg.size > 0, mu, at, nll, n_eval, status)


@kernel
def optimum_from_score(
    centered: Centered, both_signs: bool, mu: float, at: Score, nll: float, n_eval: int, status: int
) -> Optimum:
    """Convert the score at the exponent `mu` to an `Optimum`, in units of the column.

    Parameters
    ----------
    centered : Centered
        The logs of the column.
    both_signs : bool
        Whether there are values of both signs.
    mu : float
        The exponent, in units of the logs.
    at : Score
        The score at `mu`, with mean, variance and curvature.
    nll : float
        The negative log-likelihood at `mu`.
    n_eval : int
        The number of evaluations made so far.
    status : int
        The status to record.
    """
    logs = centered.logs
    if centered.heavy == centered.heavy and _is_moderate(centered, mu):
        return build_optimum(logs, mu, _at_reference(at), nll, centered.offset, centered.heavy, n_eval, status)
    extreme = 0.0
    if not both_signs:
        extreme = centered.largest if mu > 0.0 else centered.smallest
    at = _at_extreme(logs, both_signs, mu, at)
    return build_optimum(logs, mu, at, nll, centered.offset, extreme, n_eval, status)


@kernel
def _root_of_score(logs: Logs, scratch: Scratch) -> NewtonState:
    """Find the minimum of the negative log-likelihood, the only root of its derivative, by Halley's iteration."""
    state = newton_start(_start(logs), 4.0, 1e-8, MAX_EVAL)
    while state.status == RUNNING:
        at = score(logs, state.x, scratch)
        # treat g' below its rounding error as 0, or Newton's steps would follow the noise
        d1 = at.d1 if abs(at.d1) > 2.0 * EPS * abs(logs.jacobian) else 0.0
        state = newton_step(state, d1, at.d2, at.d3)
    return state


@kernel
def _start(logs: Logs) -> float:
    """Return the exponent mu, in units of the logs, at which the search starts.

    The start is sigma, which corresponds to lambda = 1, but at most 1. For a tight cluster the start is 0. This is the
    optimum of two values, and nearly the optimum of a cluster with symmetric logs, so that no step is needed.
    """
    if logs.neg.size == 0 and logs.sigma < _TIGHT:
        return 0.0
    return min(logs.sigma, 1.0)


@kernel
def _is_moderate(centered: Centered, mu: float) -> bool:
    """Return whether the unscaled mean and variance (`_at_reference`) are in the range of float64 at the exponent `mu`.

    The largest power of a value must be less than e^300 times the power of the reference, and the standard deviation
    must not underflow. Small powers do no harm, since the transform is then constant up to rounding.
    """
    logs = centered.logs
    growth = mu * (logs.high if mu > 0.0 else logs.low)
    t = mu / logs.sigma * centered.log_reference
    return growth < _MODERATE and (t > -_MODERATE or t < -4.0 * _MODERATE)


@kernel
def _at_reference(at: Score) -> Score:
    """Undo the scaling of `score`: return the score with mean and variance of the unscaled transform b_mu(a).

    a is the log relative to the reference, so the transform is 0 at the reference. `score` divides the transform by a
    factor e^log_factor. Here the mean is multiplied by this factor, and the variance by its square.

    In a weighted column the values near the reference determine mean and standard deviation. Relative to an extreme
    value, 1e10 standard deviations away, say, the mean would lose ten digits.
    """
    growth = exp(at.log_factor)
    return Score(at.d1, at.d2, at.d3, at.mean * growth, at.variance * growth * growth, 0.0, 0.0)


@kernel
def _at_extreme(logs: Logs, both_signs: bool, mu: float, at: Score) -> Score:
    """Return the score with the mean relative to an extreme value, so that standardising cannot overflow.

    For values of one sign the extreme value is the one with the largest log if mu > 0, and the one with the smallest
    log otherwise. With both signs the mean is left unchanged, and `log_power_of_reference` is added to the log factor.
    """
    if both_signs:
        log_factor = at.log_factor + log_power_of_reference(logs, mu)
        return Score(at.d1, at.d2, at.d3, at.mean, at.variance, log_factor, 0.0)
    shift = logs.high if mu > 0.0 else logs.low
    return Score(at.d1, at.d2, at.d3, at.mean - b(-mu, shift), at.variance, 0.0, shift)


@kernel
def build_optimum(
    logs: Logs, mu: float, at: Score, nll: float, offset: float, origin: float, n_eval: int, status: int
) -> Optimum:
    """Build the `Optimum` in units of the column from the score in units of the logs.

    Parameters
    ----------
    logs : Logs
        The column's logs.
    mu : float
        The exponent, in units of the logs.
    at : Score
        The score at `mu`.
    nll : float
        The negative log-likelihood at `mu`.
    offset : float
        0 (Box-Cox) or 1 (Yeo-Johnson), added to magnitudes.
    origin : float
        The value whose log is ``at.shift``; 0 if there are both signs.
    n_eval : int
        The number of evaluations made so far.
    status : int
        The status to record.
    """
    return Optimum(
        mu / logs.sigma,
        at.mean * logs.sigma,
        math.sqrt(at.variance) * logs.sigma,
        at.log_factor,
        origin,
        offset_log(offset, origin),
        nll,
        at.d2 * logs.sigma * logs.sigma,
        n_eval,
        status,
    )


@kernel
def write_profile(centered: Centered, sign: float, lmbdas: FloatArray, scratch: Scratch, out: FloatArray) -> None:
    """Write the negative log-likelihood g per observation at every lambda.

    Parameters
    ----------
    centered : Centered
        The logs of the column.
    sign : float
        The sign of the values; 0 for both signs.
    lmbdas : (k,)
        The lambdas.
    scratch : Scratch
        Scratch of `kernels.likelihood.score`.
    out : (k,)
        Receives g.
    """
    for k in range(lmbdas.size):
        mu = exponent_of(lmbdas[k], sign) * centered.logs.sigma
        at = score(centered.logs, mu, scratch)
        out[k] = nll_at(centered.logs, mu, at, centered.log_reference)
