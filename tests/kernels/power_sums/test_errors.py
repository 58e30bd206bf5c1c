"""Bounds on the errors of fits from power sums, compared with the formulas of the bounds in NumPy."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

from powerkern.kernels.censored.fit import N_CENSORED_FIELDS, fit_prepared_column
from powerkern.kernels.censored.likelihood import SMALL_STEP, profile_at
from powerkern.kernels.censored.scratch import CELLS, HIGH, LOW, new_censored_work
from powerkern.kernels.likelihood.scratch import new_scratch
from powerkern.kernels.likelihood.two_pass import two_pass_optimum
from powerkern.kernels.power_sums import censored, errors, gauss, grids, ranges, sample
from powerkern.kernels.power_sums import sums as sum_kernels
from powerkern.kernels.results import N_RESULTS
from powerkern.kernels.status_codes import ROUTE_POWER_SUMS
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON

EPS, INF = 2.0**-52, math.inf
X = np.exp(0.8 * np.random.default_rng(3).normal(size=30))
COLUMNS = {
    "Box-Cox": (BOX_COX, X),
    "wide Box-Cox": (BOX_COX, X**9),
    "positive": (YEO_JOHNSON, X),
    "negative": (YEO_JOHNSON, -X),
    "both signs": (YEO_JOHNSON, X - 1.2),
    "close": (BOX_COX, 100.0 + 0.1 * X),
}
ROUNDINGS = {
    "none": errors.Rounded(2.0**-60, 0.0, 1.0, 0.0, False),
    "some": errors.Rounded(2.0**-30, 4.0, 300.0, 0.0, True),
    "lost": errors.Rounded(2.0**-30, 3.0, 20.0, 5.0, False),
}
columns = pytest.mark.parametrize("name", COLUMNS)
roundings = pytest.mark.parametrize("kind", ROUNDINGS)


class Model(NamedTuple):
    """The fitted normal distribution, as in `errors.FittedNormal`."""

    mu: float
    sd: float
    log_factor: float
    rate: float
    offset: float
    offset_rate: float


def sums_and_grid(x, family, weight, ends=(), coarser=3):
    """Return power sums and grid of a column.

    Parameters
    ----------
    x : (n,) ndarray
        The column.
    family : int
        Code of the transform.
    weight : (n,) ndarray
        Weights, or an empty array.
    ends : sequence of float
        Further values that the grid covers.
    coarser : int
        The bins of the grid are wider than usual by a factor of ``2**coarser``.
    """
    row = np.zeros((1, ranges.N_RANGE))
    row[0, ranges.R_MIN], row[0, ranges.R_MAX] = INF, -INF
    ranges.range_columns(x.reshape(1, -1), weight, family, 0, 1, row)
    row[0, ranges.R_MIN], row[0, ranges.R_MAX] = min([*x, *ends]), max([*x, *ends])
    grid = np.empty((1, grids.N_GRID))
    grids.grid_columns(row, family, 0.0, 0, grid)
    grid[0, grids.G_QUANTUM] = -50.0
    grids.lay_columns(grid, family, grid[:, grids.G_EXPONENT] + coarser, 10**6)
    bins = int(grid[0, grids.G_BINS])
    sums, inside = np.zeros(bins * gauss.N_POWERS), np.ones(1, dtype=np.int64)
    starts = np.array([0, bins])
    sum_kernels.sketch_columns(x.reshape(1, -1), weight, family, grid, sum_kernels.new_chunk(), sums, starts, inside)
    assert inside[0]
    return sums.reshape(-1, gauss.N_POWERS), grid[0]


def reference_rounding(of, moved):
    """Return the error of a log of 0, in units of the standard deviation sigma of the logs.

    If the reference was moved, this is at least one rounding of a log (sigma >= 1/16) or of a distance (smaller sigma).
    """
    sigma = of.centered.logs.sigma
    return max(of.rounding, (2.0**-11 if sigma < 0.0625 else 1.0) * EPS / sigma) if moved else of.rounding


def sum_errors(of, model, nodes, rounded):
    """Return the five bounds of `errors.SumErrors`, computed by array operations.

    Parameters
    ----------
    of
        The column, as in `errors`.
    model : Model
        The fitted normal distribution.
    nodes
        The nodes of the column's Gauss rules.
    rounded
        Rounding of the sums, as in `errors`.
    """
    logs, n, half = of.centered.logs, of.n_bins, of.half
    is_negative = np.arange(n) < of.n_bins_below
    m = np.where(is_negative, 2.0 * logs.sigma - model.mu, model.mu)
    shift = 0.0 if of.sign == 0.0 else logs.high if model.mu > 0.0 else logs.low
    a, weight, remainder = nodes.bin_position[:n] - shift, nodes.bin_weight[:n], nodes.bin_remainder[:n]
    y = np.where(is_negative, -1.0, 1.0) * np.expm1(m * a) / m * math.exp(-model.log_factor)
    mean = weight @ y / of.weight + model.offset
    growth, reach = abs(m) * half, abs(a) + half
    height = half * np.exp(m * a + growth - model.log_factor)
    distance, variance, turn = abs(y - mean) + 2.0 * height, model.sd**2, abs(model.rate)
    if of.whole:
        lever = 2.0 * distance * height * (reach + turn) + variance * half
    else:
        lever = (distance**2 + variance) * (reach + turn)
    lever = lever + distance * abs(model.offset_rate)
    # eighth derivatives of e^(2 m t) and t e^(2 m t), over 8!; the same for e^(m t)
    rule, more = (2.0 * growth) ** 6 / 5040.0 * remainder, 48.0 * half * (2.0 * growth) ** 5 / 40320.0 * remainder
    blur = np.where(weight > 0.0, nodes.bin_blur[:n], 0.0)  # not set at the ends of the grid
    rounding = (4.0 + 0.5 * rounded.rows * blur) * EPS
    squares = np.sum(weight * height**2 * (rule + rounding))
    products = np.sum(weight * height**2 * ((rule + rounding) * reach + more))
    firsts = np.sum(weight * height * (growth**7 / 40320.0 * remainder + rounding))
    slopes = (7.0 * half + growth * reach) * growth**6 / 40320.0 * remainder + rounding * reach
    occupied = weight > 0.0
    lost = 8.0 * rounded.quantum * math.sqrt(rounded.times / 12.0 * np.sum(lever[occupied] ** 2))
    if rounded.lost > 0.0:
        lost += 0.5 * rounded.quantum * rounded.lost * lever[~occupied].max()
    return squares, products, firsts, np.sum(weight * height * slopes), lost


@columns
@roundings
@pytest.mark.parametrize("weighted", [False, True])
def test_bounds_of_a_fit(name, kind, weighted):
    (family, x), rounded = COLUMNS[name], ROUNDINGS[kind]
    weight = np.random.default_rng(1).uniform(0.5, 2.0, x.size) if weighted else np.empty(0)
    sums, grid = sums_and_grid(x, family, weight)
    nodes, base = sample.new_nodes(len(sums)), float(family == YEO_JOHNSON)
    of = sample.make_sample(sums, base, grid, nodes)
    best = two_pass_optimum(of.centered, math.nan, 0, new_scratch())
    found = errors.bound_errors(of, best, nodes, rounded)
    logs = of.centered.logs
    mu, sd = best.exponent * logs.sigma, best.sd / logs.sigma
    shift = 0.0 if of.sign == 0.0 else logs.high if mu > 0.0 else logs.low
    model = Model(mu, sd, best.log_factor, abs(logs.jacobian - shift), 0.0, 0.0)
    squares, products, firsts, slopes, lost = sum_errors(of, model, nodes, rounded)
    np.testing.assert_allclose(
        errors.bound_sums(of, errors.FittedNormal(*model), nodes, rounded),
        (squares, products, firsts, slopes, lost),
        rtol=1e-9,
    )
    assert of.whole != weighted
    rounding = reference_rounding(of, rounded.moved)
    position, w = np.append(logs.pos, -logs.neg), np.append(logs.pos_weight, logs.neg_weight)
    noise = w @ (EPS * abs(position + of.origin) + rounding) ** 2
    noise = 4.0 * math.sqrt(of.weight * noise) / (w @ (position - logs.jacobian) ** 2 * logs.sigma)
    error = (products + model.rate * squares + lost) * logs.sigma / (sd**2 * of.weight * best.curvature)
    np.testing.assert_allclose(found, (error + noise, 0.5 * squares / (sd**2 * of.weight)), rtol=1e-9)
    offset = Model(mu, sd, best.log_factor, -1.3, 0.4, -0.7)
    np.testing.assert_allclose(
        errors.bound_sums(of, errors.FittedNormal(*offset), nodes, rounded),
        sum_errors(of, offset, nodes, rounded),
        rtol=1e-9,
    )


def test_an_exponent_near_0_has_bounds_like_its_neighbors():
    sums, grid = sums_and_grid(X, BOX_COX, np.empty(0))
    nodes = sample.new_nodes(len(sums))
    of = sample.make_sample(sums, 0.0, grid, nodes)
    around = [
        errors.bound_sums(of, errors.FittedNormal(mu, 0.3, 0.2, 0.1, 0.0, 0.0), nodes, ROUNDINGS["lost"])
        for mu in (0.0, -1e-17, -1e-9)  # of one sign, so that the same end is the origin
    ]
    np.testing.assert_allclose(around[1], around[0], rtol=1e-12)
    np.testing.assert_allclose(around[2], around[0], rtol=1e-6)


def test_a_sample_without_spread_has_no_bound():
    sums, grid = sums_and_grid(X, BOX_COX, np.empty(0))
    of = sample.make_sample(sums, 0.0, grid, sample.new_nodes(len(sums)))
    logs = of.centered.logs
    equal = of.centered._replace(logs=logs._replace(pos=np.full_like(logs.pos, logs.jacobian)))
    assert errors._noise(of._replace(centered=equal), False) == INF


@columns
@roundings
def test_bounds_of_a_fit_with_intervals(name, kind):
    (family, x), rounded = COLUMNS[name], ROUNDINGS[kind]
    y = np.sort(x)
    table = np.array([[-INF, y[6], 3.0], [-INF, y[9], 1.0], [y[20], INF, 2.0], [y[4], y[12], 2.0], [y[14], y[17], 1.5]])
    weight = np.ones(x.size)
    sums, grid = sums_and_grid(x, family, weight)
    nodes, scratch, own = sample.new_nodes(len(sums)), new_scratch(), new_censored_work(0, len(table))
    row, fields = np.empty(N_RESULTS), np.empty(N_CENSORED_FIELDS)
    of, column = censored._prepare(sums, float(family == YEO_JOHNSON), grid, table, nodes, own)
    with np.errstate(all="ignore"):
        optimum, best = fit_prepared_column(column, math.nan, ROUTE_POWER_SUMS, False, scratch, own, row, fields)
        profile_at(column, optimum.mu, optimum.profile.scales, SMALL_STEP, scratch, own)
    found = censored._bound_errors(of, column, optimum, best, nodes, rounded, own)
    logs = of.centered.logs
    assert column.total == pytest.approx(x.size + table[:, 2].sum(), rel=1e-13)
    scales, slopes, second = optimum.profile.scales, optimum.profile.slopes, optimum.profile.sums
    alpha, delta, sd = scales.alpha, scales.delta, best.sd / logs.sigma
    shift = 0.0 if of.sign == 0.0 else logs.high if optimum.mu > 0.0 else logs.low
    rate = slopes.alpha / alpha - optimum.profile.at.d1 - (logs.jacobian - shift)
    model = Model(optimum.mu, sd, best.log_factor, rate, delta * sd, sd * (slopes.delta - delta * rate))
    squares, products, firsts, of_slopes, lost = sum_errors(of, model, nodes, rounded)
    score = products + abs(rate) * squares + lost + abs(model.offset) * of_slopes
    score += (abs(model.offset_rate) + 2.0 * abs(model.offset * rate)) * firsts
    # the roundings of the nodes, and of the ends of the intervals
    rounding, terms = reference_rounding(of, rounded.moved), column.terms
    n_pos, points = terms.points.pos.size, np.append(terms.points.pos + of.origin, terms.points.neg)
    lever = (1.0 + abs(alpha * own.y[0, : points.size] - delta)) * (EPS * abs(points) + rounding)
    noise = logs.pos_weight @ (EPS * abs(logs.pos + of.origin) + rounding) ** 2
    noise = max(1.0, (alpha + abs(delta)) ** 2) * (noise + logs.neg_weight @ (EPS * logs.neg + rounding) ** 2)
    is_limit = np.zeros(points.size, dtype=bool)
    is_limit[: terms.n_pos] = is_limit[points.size - terms.n_neg :] = True
    noise += terms.weight[: points.size][is_limit] @ lever[is_limit] ** 2
    ends = terms.intervals[[LOW, HIGH], : terms.n_intervals].astype(int)
    noise += terms.intervals[CELLS, : terms.n_intervals] @ (lever[ends] ** 2).sum(axis=0)
    assert is_limit.sum() + ends.size == points.size
    assert n_pos + terms.points.neg.size == points.size
    information = column.total * optimum.profile.d2
    error = score / (sd**2 * information * logs.sigma)
    error += 4.0 * math.sqrt(column.total * noise) / (information * logs.sigma)
    first, square, det = firsts / (sd * alpha), squares / (sd * alpha) ** 2, second.aa * second.dd - second.ad**2
    of_alpha, of_delta = alpha * square + abs(delta) * first, alpha * first
    scale = (second.dd * of_alpha + abs(second.ad) * of_delta) / (det * alpha)
    loc = (second.aa * of_delta + abs(second.ad) * of_alpha) / det
    np.testing.assert_allclose(found, (error, max(loc, scale)), rtol=1e-8)
    flat = optimum._replace(profile=optimum.profile._replace(d2=0.0))
    assert censored._bound_errors(of, column, flat, best, nodes, rounded, own) == (INF, INF)
