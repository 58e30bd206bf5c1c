"""Fit columns with censored cells; compute their profile likelihoods and likelihood intervals."""

from __future__ import annotations

import math

from powerkern._jit import COLUMN, INTEGER, ROWS, entry, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.censored.column import CensoredColumn, prepare_column, split_cells, status_of
from powerkern.kernels.censored.likelihood import SMALL_STEP, Profile, Scales, profile_at
from powerkern.kernels.censored.scratch import CENSORED_WORK, CensoredWork
from powerkern.kernels.censored.search import SearchResult, find_optimum, get_largest_exponent
from powerkern.kernels.elementary.exp import exp
from powerkern.kernels.likelihood.logs import merge_summaries
from powerkern.kernels.likelihood.optimum import Optimum, exponent_of, write_fit
from powerkern.kernels.likelihood.score import Score, Scratch, b
from powerkern.kernels.likelihood.score_formulas import SERIES_REACH, phis
from powerkern.kernels.likelihood.scratch import WORK, Work
from powerkern.kernels.likelihood.two_pass import MAX_EVAL, optimum_from_score
from powerkern.kernels.optimize.newton import NewtonState, newton_step
from powerkern.kernels.optimize.status import CONVERGED, RUNNING
from powerkern.kernels.results import write_identity, write_range
from powerkern.kernels.status_codes import OK, ROUTE_CENSORED

#: Fields that only columns with censored cells have: the weight of the cells below, above and between limits, and the
#: standard errors of loc and scale in units of the scale.
N_BELOW, N_ABOVE, N_BETWEEN, LOC_ERROR, SCALE_ERROR = range(5)
#: Number of these fields.
N_CENSORED_FIELDS = 5
#: Tolerance of the ends of likelihood intervals, relative to their distance from the optimum.
_END_ERROR = 1e-11
_STANDARD = Scales(1.0, 0.0)


@entry((ROWS, ROWS, COLUMN, INTEGER, COLUMN, WORK, CENSORED_WORK, ROWS, ROWS))
def fit_censored_columns(
    columns: FloatArray,
    other: FloatArray,
    weight: FloatArray,
    family: int,
    lmbda: FloatArray,
    work: Work,
    censored_work: CensoredWork,
    out: FloatArray,
    out_censored: FloatArray,
) -> None:
    """Fit columns with censored cells by maximum likelihood, or evaluate them at given lambdas.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows: values, or one end of the interval of each cell; NaN if missing.
    other : (p, n)
        The other ends of the intervals: NaN for observed values, -inf for cells below and inf for cells above the end
        in `columns`.
    weight : (n,)
        Weights of the rows of the matrix; empty if all are one.
    family : int
        BOX_COX or YEO_JOHNSON.
    lmbda : (p,)
        The lambda at which to evaluate each column; NaN to search for the optimum.
    work : Work
        Scratch.
    censored_work : CensoredWork
        Scratch.
    out : (p, N_RESULTS)
        Receives the results.
    out_censored : (p, N_CENSORED_FIELDS)
        Receives the weights of the censored cells and the standard errors of loc and scale.
    """
    for j in range(columns.shape[0]):
        _fit_column(columns[j], other[j], weight, family, lmbda[j], work, censored_work, out[j], out_censored[j])


@kernel
def _fit_column(
    x: FloatArray,
    other: FloatArray,
    weight: FloatArray,
    family: int,
    lmbda: float,
    work: Work,
    censored_work: CensoredWork,
    row: FloatArray,
    censored: FloatArray,
) -> None:
    """Fit one column with censored cells, or evaluate it at a given lambda.

    Parameters
    ----------
    x : (n,)
        The values, or one end of the interval of each cell; NaN if missing.
    other : (n,)
        The other ends of the intervals; NaN for observed values.
    weight : (n,)
        Weights of the cells; empty if all are one.
    family : int
        BOX_COX or YEO_JOHNSON.
    lmbda : float
        The lambda at which to evaluate; NaN to search for the optimum.
    work : Work
        Scratch.
    censored_work : CensoredWork
        Scratch.
    row : (N_RESULTS,)
        Receives the results.
    censored : (N_CENSORED_FIELDS,)
        Receives the weights of the censored cells and the standard errors of loc and scale.
    """
    split = split_cells(x, other, weight, family, work, censored_work)
    counts, union = split.counts, merge_summaries(split.values, split.ends)
    total = counts.observed + counts.below + counts.above + counts.between
    write_range(row, total, union.low, union.high)
    censored[N_BELOW], censored[N_ABOVE], censored[N_BETWEEN] = counts.below, counts.above, counts.between
    censored[LOC_ERROR] = censored[SCALE_ERROR] = math.nan
    status = status_of(split, family, censored_work)
    if status != OK:
        write_identity(row, status)
        return
    column = prepare_column(split, weight.size > 0, family, work, censored_work)
    fit_prepared_column(column, lmbda, ROUTE_CENSORED, True, work.scratch, censored_work, row, censored)


@kernel
def fit_prepared_column(
    column: CensoredColumn,
    lmbda: float,
    route: int,
    may_sample: bool,
    scratch: Scratch,
    censored_work: CensoredWork,
    row: FloatArray,
    censored: FloatArray,
) -> tuple[SearchResult, Optimum]:
    """Fit a prepared column, or evaluate it at a given lambda; write its results and return its optimum.

    Parameters
    ----------
    column : CensoredColumn
        The column.
    lmbda : float
        The lambda at which to evaluate; NaN to search for the optimum.
    route : int
        The `powerkern.Route` to record.
    may_sample : bool
        Whether a long column may first be searched on a sample.
    scratch : Scratch
        Scratch of `kernels.likelihood.score`.
    censored_work : CensoredWork
        Scratch.
    row : (N_RESULTS,)
        Receives the results.
    censored : (N_CENSORED_FIELDS,)
        Receives the standard errors of loc and scale.
    """
    centered, sigma = column.centered, column.centered.logs.sigma
    result = find_optimum(column, exponent_of(lmbda, column.sign) * sigma, may_sample, scratch, censored_work)
    at, scales = result.profile.at, result.profile.scales
    sd = math.sqrt(at.variance)
    mean = at.mean + sd * scales.delta / scales.alpha
    normal = Score(at.d1, result.profile.d2, 0.0, mean, at.variance / (scales.alpha * scales.alpha), at.log_factor, 0.0)
    best = optimum_from_score(
        centered, column.sign == 0.0, result.mu, normal, result.profile.nll, result.n_eval, result.status
    )
    write_fit(row, best, column.sign, route, lmbda)
    if lmbda != lmbda:
        _write_errors(column, result.mu, result.profile, normal, censored)
    return result, best


@kernel
def _write_errors(column: CensoredColumn, mu: float, profile: Profile, normal: Score, censored: FloatArray) -> None:
    """Write standard errors of loc and scale, from the inverse of the information on lambda, alpha and delta.

    For the transform of the centered logs, ``loc = mean + s delta/alpha`` and ``scale = s/alpha``, where mean and s are
    the moments in `normal`. The value of psi at the reference is then added to loc. The standard errors are in units of
    scale.

    Parameters
    ----------
    column : CensoredColumn
        The column.
    mu : float
        The exponent at the optimum, in units of the logs.
    profile : Profile
        The profile likelihood at `mu`.
    normal : Score
        The score at `mu`, with the mean and variance of the fitted normal distribution.
    censored : (N_CENSORED_FIELDS,)
        Receives the standard errors.
    """
    sums, scales, slopes = profile.sums, profile.scales, profile.slopes
    det = sums.aa * sums.dd - sums.ad * sums.ad
    if not (profile.d2 > 0.0 and det > 0.0):
        return
    variance = 1.0 / (column.total * profile.d2)  # of the exponent
    scale = math.sqrt(normal.variance)
    shift, growth = _slopes_of_reference(column, mu, normal)
    slope = profile.sd_slope + growth
    # derivatives of loc and scale, divided by scale: in the exponent, with alpha and delta at their maximum (_l), then
    # in alpha (_a); in delta they are 1 and 0
    of_mean = profile.mean_slope / scale + shift + profile.sd_slope * scales.delta
    loc_l = of_mean + slopes.delta - scales.delta * slopes.alpha / scales.alpha
    scale_l = slope - slopes.alpha / scales.alpha
    loc_a, scale_a = -scales.delta / scales.alpha, -1.0 / scales.alpha
    aa, ad, dd = sums.dd / det, -sums.ad / det, sums.aa / det
    loc = loc_a * loc_a * aa + 2.0 * loc_a * ad + dd + loc_l * loc_l * variance
    censored[LOC_ERROR] = math.sqrt(loc)
    censored[SCALE_ERROR] = math.sqrt(scale_a * scale_a * aa + scale_l * scale_l * variance)


@kernel
def _slopes_of_reference(column: CensoredColumn, mu: float, normal: Score) -> tuple[float, float]:
    """Return the contributions of the logs' reference r to d loc/d mu and d scale/d mu, divided by scale.

    Let y be the transform of the centered logs, m the exponent, a the log of r, and ``t = m a``. Then ``psi(x) =
    psi(r) + e^t y``. The derivative of loc therefore contains ``e^-t psi'(r)`` and a times the mean of y; the
    derivative of scale contains a times scale.
    """
    logs, scale = column.centered.logs, math.sqrt(normal.variance)
    sigma, sign = logs.sigma, -1.0 if logs.center < 0.0 else 1.0
    a = column.centered.log_reference if column.sign != 0.0 else abs(logs.center) * sigma
    m = (mu if sign > 0.0 else 2.0 * sigma - mu) / sigma
    t = m * a
    of_psi = a * a * exp(-t) * phis(t, exp(t), 1.0)[1] if abs(t) <= SERIES_REACH else (a - b(-m, a)) / m
    unit = exp(-normal.log_factor) / sigma
    mean = normal.mean
    if column.sign == 0.0:
        mean -= sign * b(-m, a) * unit  # with both signs the mean is relative to 0, not to r
    return (of_psi * unit + sign * a * mean) / (scale * sigma), sign * a / sigma


@entry((ROWS, ROWS, COLUMN, INTEGER, COLUMN, WORK, CENSORED_WORK, ROWS))
def profile_censored_columns(
    columns: FloatArray,
    other: FloatArray,
    weight: FloatArray,
    family: int,
    lmbdas: FloatArray,
    work: Work,
    censored_work: CensoredWork,
    out: FloatArray,
) -> None:
    """Evaluate minus the profile log-likelihood of each column, per unit of weight, at every lambda.

    At each lambda, Newton's method in alpha and delta starts from their optimum at the preceding lambda. The result is
    NaN if the method does not converge, which happens tens of standard errors away from the best lambda, or if the
    column cannot be fitted.

    Parameters
    ----------
    columns, other, weight, family, work, censored_work
        As for `fit_censored_columns`.
    lmbdas : (k,)
        The lambdas at which to evaluate.
    out : (p, k)
        Receives the results.
    """
    out[:] = math.nan
    for j in range(columns.shape[0]):
        split = split_cells(columns[j], other[j], weight, family, work, censored_work)
        if status_of(split, family, censored_work) == OK:
            column = prepare_column(split, weight.size > 0, family, work, censored_work)
            profile_prepared_column(column, lmbdas, work.scratch, censored_work, out[j])


@kernel
def profile_prepared_column(
    column: CensoredColumn, lmbdas: FloatArray, scratch: Scratch, censored_work: CensoredWork, out: FloatArray
) -> None:
    """Write minus the profile log-likelihood per unit of weight of a prepared column at every lambda.

    The result is NaN where Newton's method does not converge.

    Parameters
    ----------
    column : CensoredColumn
        The column.
    lmbdas : (k,)
        The lambdas at which to evaluate.
    scratch : Scratch
        Scratch of `kernels.likelihood.score`.
    censored_work : CensoredWork
        Scratch.
    out : (k,)
        Receives the results.
    """
    scales = _STANDARD
    for k in range(lmbdas.size):
        mu = exponent_of(lmbdas[k], column.sign) * column.centered.logs.sigma
        at = profile_at(column, mu, scales, SMALL_STEP, scratch, censored_work)
        out[k] = at.nll if at.is_maximum else math.nan
        scales = at.scales if at.is_maximum else _STANDARD


@entry((ROWS, ROWS, COLUMN, INTEGER, ROWS, WORK, CENSORED_WORK, ROWS))
def interval_censored_columns(
    columns: FloatArray,
    other: FloatArray,
    weight: FloatArray,
    family: int,
    at: FloatArray,
    work: Work,
    censored_work: CensoredWork,
    out: FloatArray,
) -> None:
    """Write the two lambdas at which the profile log-likelihood of each column is a given amount below its maximum.

    Parameters
    ----------
    columns, other, weight, family, work, censored_work
        As for `fit_censored_columns`.
    at : (p, 2)
        The optimal lambda of each column, and the drop of the profile log-likelihood from its maximum, per unit of
        weight.
    out : (p, 2)
        Receives the lower and the upper end: NaN for columns that cannot be fitted, infinite if the log-likelihood
        never drops by that much.
    """
    out[:] = math.nan
    for j in range(columns.shape[0]):
        split = split_cells(columns[j], other[j], weight, family, work, censored_work)
        if status_of(split, family, censored_work) == OK:
            column = prepare_column(split, weight.size > 0, family, work, censored_work)
            out[j, 0], out[j, 1] = interval_of_prepared_column(column, at[j, 0], at[j, 1], work.scratch, censored_work)


@kernel
def interval_of_prepared_column(
    column: CensoredColumn, lmbda: float, drop: float, scratch: Scratch, censored_work: CensoredWork
) -> tuple[float, float]:
    """Return the two lambdas at which the profile log-likelihood of a prepared column is `drop` below its maximum.

    Parameters
    ----------
    column : CensoredColumn
        The column.
    lmbda : float
        The lambda that maximises the likelihood.
    drop : float
        The drop of the log-likelihood from its maximum, per unit of weight.
    scratch : Scratch
        Scratch of `kernels.likelihood.score`.
    censored_work : CensoredWork
        Scratch.
    """
    sigma = column.centered.logs.sigma
    best = exponent_of(lmbda, column.sign) * sigma
    below = _drop_point(column, best, drop, -1.0, scratch, censored_work) / sigma
    above = _drop_point(column, best, drop, 1.0, scratch, censored_work) / sigma
    if column.sign < 0.0:
        return 2.0 - above, 2.0 - below
    return below, above


@kernel
def _drop_point(
    column: CensoredColumn, best: float, drop: float, side: float, scratch: Scratch, censored_work: CensoredWork
) -> float:
    """Return the exponent on one side of `best` at which the profile log-likelihood is `drop` below its maximum.

    Parameters
    ----------
    column : CensoredColumn
        The column.
    best : float
        The exponent that maximises the likelihood, in units of the logs.
    drop : float
        The drop of the log-likelihood from its maximum, per unit of weight.
    side : float
        1 to search above `best`, -1 to search below it.
    scratch : Scratch
        Scratch of `kernels.likelihood.score`.
    censored_work : CensoredWork
        Scratch.
    """
    lowest = profile_at(column, best, _STANDARD, SMALL_STEP, scratch, censored_work)
    first, scales = math.sqrt(2.0 * drop / abs(lowest.d2)), lowest.scales
    farthest = get_largest_exponent(column)
    state = NewtonState(
        first, math.nan, 0.0, math.inf, math.inf, math.nan, 4.0 * first, _END_ERROR * first, 0, MAX_EVAL, RUNNING
    )
    while state.status == RUNNING:
        distance = state.x
        if distance > farthest:
            return side * math.inf
        at = profile_at(column, best + side * distance, scales, SMALL_STEP, scratch, censored_work)
        scales = at.scales
        state = newton_step(state, at.nll - lowest.nll - drop, side * at.d1, at.d2)
    return best + side * state.x if state.status == CONVERGED else math.nan
