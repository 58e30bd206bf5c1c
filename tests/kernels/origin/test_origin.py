"""The likelihood of (x - origin)/unit: derivatives compared with mpmath, maxima with brute force."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from counting import count_calls
from scipy import special, stats

from powerkern.kernels.origin import likelihood
from powerkern.kernels.origin import maximum as origin

RNG = np.random.default_rng(0)
X = np.sort(RNG.gamma(2.0, size=12))
WEIGHTS = RNG.integers(1, 4, size=12).astype(float)
#: Three orders of derivatives each, as the kernel has them: the gradient, and the upper triangle of the Hessian.
ORDERS = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (2, 0, 0), (1, 1, 0), (1, 0, 1), (0, 2, 0), (0, 1, 1), (0, 0, 2)]


def exact(box_cox, lmbda, x0, log_unit):
    """Return the profile log-likelihood of (X - x0)/unit, weighted and divided by the total weight, as an mpf.

    Constants are left out. `log_unit` is the log of the unit; `box_cox` chooses Box-Cox instead of Yeo-Johnson.
    """
    y, log_slopes = [], []
    for x in X:
        u = (mpmath.mpf(x) - x0) * mpmath.exp(-log_unit)
        side = -1 if u < 0 and not box_cox else 1
        m = lmbda if side > 0 else 2 - lmbda
        a = mpmath.log(u if box_cox else 1 + abs(u))
        y.append(side * (mpmath.expm1(m * a) / m if m else a))
        log_slopes.append(side * a)
    weights = [mpmath.mpf(w) for w in WEIGHTS]
    mean = mpmath.fdot(weights, y) / mpmath.fsum(weights)
    variance = mpmath.fdot(weights, [(each - mean) ** 2 for each in y]) / mpmath.fsum(weights)
    slope = mpmath.fdot(weights, log_slopes) / mpmath.fsum(weights)
    return -mpmath.log(variance) / 2 - log_unit + (lmbda - 1) * slope


@pytest.mark.parametrize("box_cox", [False, True])
@pytest.mark.parametrize("lmbda", [-0.7, 1e-3, 0.4, 2.0, 2.5])
def test_likelihood_and_derivatives_agree_with_mpmath(lmbda, box_cox):
    theta = np.array([lmbda, X[0] - 0.3 if box_cox else 1.1, 0.0 if box_cox else 0.4])
    at = np.empty(likelihood.N_AT)
    likelihood.evaluate(X, WEIGHTS, box_cox, theta, origin.new_origin_work(), at)
    with mpmath.workdps(40):
        point = tuple(map(mpmath.mpf, theta))
        unit = mpmath.exp(point[2])
        assert at[0] == pytest.approx(float(exact(box_cox, *point)), abs=1e-13)
        for k, order in enumerate(ORDERS):
            if box_cox and order[2]:
                continue  # the unit stays at 1
            oracle = mpmath.diff(lambda *t: exact(box_cox, *t), point, order) * unit ** order[1]
            assert at[1 + k] == pytest.approx(float(oracle), rel=1e-9, abs=1e-9), order


def test_no_spread_is_minus_infinity():
    at = np.empty(likelihood.N_AT)
    likelihood.evaluate(np.ones(5), np.ones(5), False, np.array([1.0, 0.0, 0.0]), origin.new_origin_work(), at)
    assert at[0] == -math.inf


def found(x, box_cox, ranges):
    out = np.empty((1, likelihood.N_FOUND))
    origin.origin_columns(
        x[np.newaxis], np.ones((1, x.size)), box_cox, ranges[np.newaxis], origin.new_origin_work(), out
    )
    return out[0]


@pytest.mark.parametrize("box_cox", [False, True])
def test_maximum_by_brute_force(box_cox):
    x = np.append(np.sort(RNG.gamma(2.0, size=30)), [math.nan, math.nan])
    values = x[:30]
    if box_cox:
        ranges = np.array([[-2.0, 3.0], [values[0] - 1.0, values[0] - 1e-3], [0.0, 0.0]])
        origins, units = np.linspace(*ranges[1], 25), [0.0]
    else:
        ranges = np.array([[-2.0, 3.0], [values[0] - 1.0, values[-1] + 1.0], [-0.7, 0.7]])
        origins, units = np.linspace(*ranges[1], 12), [-0.7, 0.0, 0.7]
    row, at = found(x, box_cox, ranges), np.empty(likelihood.N_AT)
    work, ones, highest = origin.new_origin_work(), np.ones(30), -math.inf
    for lmbda in np.linspace(*ranges[0], 12):
        for x0 in origins:
            for log_unit in units:
                likelihood.evaluate(values, ones, box_cox, np.array([lmbda, x0, log_unit]), work, at)
                highest = max(highest, at[0])
    assert row[likelihood.LIKELIHOOD] >= highest
    assert row[likelihood.CERTIFIED] == 1.0
    likelihood.evaluate(values, ones, box_cox, row[: likelihood.N_PARAMETERS].copy(), work, at)
    assert at[0] == pytest.approx(row[likelihood.LIKELIHOOD], abs=1e-13)
    for k, (low, high) in enumerate(ranges):
        if low < row[k] < high:
            assert abs(at[likelihood.GRADIENT + k]) < 1e-5


def test_long_columns_are_searched_on_a_sample():
    x = np.sort(RNG.gamma(2.0, size=origin.SAMPLE + 80))
    ranges = np.array([[-2.0, 3.0], [x[0] - 1.0, x[0] - 0.05], [0.0, 0.0]])
    row, at = found(x, True, ranges), np.empty(likelihood.N_AT)
    likelihood.evaluate(x, np.ones(x.size), True, row[: likelihood.N_PARAMETERS].copy(), origin.new_origin_work(), at)
    assert at[0] == pytest.approx(row[likelihood.LIKELIHOOD], abs=1e-13)
    assert abs(at[likelihood.GRADIENT]) < 1e-5


@pytest.mark.parametrize("log_unit", [-3.0, 3.0])
def test_the_search_does_not_depend_on_the_unit_of_the_origin(log_unit):
    """A column in another unit has the same lambda, after about as many evaluations."""
    x = np.sort(np.random.default_rng(1).normal(size=15) ** 3)
    ranges = np.array([[-2.0, 4.0], [x[0], x[-1]], [0.0, 0.0]])
    unit = math.exp(log_unit)
    scaled = np.array([ranges[0], unit * ranges[1], [log_unit, log_unit]])
    one, other = found(x, False, ranges), found(unit * x, False, scaled)
    assert one[likelihood.CERTIFIED] == other[likelihood.CERTIFIED] == 1.0
    assert other[likelihood.LMBDA] == pytest.approx(one[likelihood.LMBDA], abs=1e-7)
    assert other[likelihood.ORIGIN] == pytest.approx(unit * one[likelihood.ORIGIN], abs=1e-6 * unit)
    assert other[likelihood.N_EVAL] == pytest.approx(one[likelihood.N_EVAL], rel=0.15)


def test_values_of_several_blocks_count_as_often_as_their_weights_say():
    """Compare derivatives for a weighted column of 12 values with derivatives for the repeated column.

    The repeated column has several blocks.
    """
    repeats = np.arange(12) * 13 + 1  # 870 values, 300 of them below the origin
    for lmbda in (0.3, 2.0):
        theta = np.array([lmbda, X[6] + 1e-6, 0.2])
        one, other = np.empty(likelihood.N_AT), np.empty(likelihood.N_AT)
        likelihood.evaluate(X, repeats.astype(float), False, theta, origin.new_origin_work(), one)
        column = np.repeat(X, repeats)
        likelihood.evaluate(column, np.ones(column.size), False, theta, origin.new_origin_work(), other)
        np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-12)


# --- the parts of the search --------------------------------------------------------------------------

RANGES = np.array([[-2.0, 3.0], [X[0] - 1.0, X[-1] + 1.0], [-0.7, 0.7]])
LOW, MIDDLE, HIGH = RANGES[:, 0], RANGES.mean(axis=1), RANGES[:, 1]
ONES = np.ones(12)


def state_at(theta, x=X, weights=ONES, box_cox=False):
    """Return the scratch of the search, with the parameters `theta` and the likelihood there.

    `theta` is (lambda, origin, log of the unit); `box_cox` chooses Box-Cox instead of Yeo-Johnson.
    """
    work = origin.new_origin_work()
    work.steps[0] = theta
    likelihood.evaluate(x, weights, box_cox, work.steps[0], work, work.at[0])
    return work


@pytest.mark.parametrize("i", range(3))
@pytest.mark.parametrize("slope", [-1.0, 0.0, 1.0])
def test_a_parameter_at_an_end_of_its_range_is_free_if_the_likelihood_increases_inwards(i, slope):
    at = np.zeros(likelihood.N_AT)
    at[likelihood.GRADIENT + i] = slope
    expected = {LOW[i]: slope > 0.0, MIDDLE[i]: True, HIGH[i]: slope < 0.0}
    for value, is_free in expected.items():
        theta = MIDDLE.copy()
        theta[i] = value
        assert origin._is_free(i, theta, RANGES, at) is is_free
    fixed = RANGES.copy()
    fixed[i] = MIDDLE[i]
    assert origin._is_free(i, MIDDLE, fixed, at) is False


@pytest.mark.parametrize("x0", [X[0] - 0.5, X[0], X[3], X[-1], X[-1] + 0.5])
def test_the_unit_is_fixed_while_all_values_are_on_one_side_of_a_free_origin(x0):
    theta = np.array([1.0, x0, 0.0])
    at = np.zeros(likelihood.N_AT)
    assert origin._free(X, theta, RANGES, at) == (True, True, X[0] < x0 < X[-1])
    fixed = RANGES.copy()
    fixed[likelihood.ORIGIN] = x0
    assert origin._free(X, theta, fixed, at) == (True, False, True)


def negative_hessian(at):
    """Return minus the 3 x 3 Hessian, whose upper triangle `at` has from index HESSIAN on."""
    matrix = np.zeros((3, 3))
    matrix[np.triu_indices(3)] = -at[likelihood.HESSIAN :]
    return matrix + np.triu(matrix, 1).T


@pytest.mark.parametrize("free", [(True, True, True), (True, False, True), (False, True, False), (True, True, False)])
@pytest.mark.parametrize("damping", [0.0, 0.5])
def test_the_factor_is_that_of_the_damped_hessian_of_the_free_parameters(free, damping):
    at = np.zeros(likelihood.N_AT)
    at[likelihood.HESSIAN :] = [-3.0, 0.7, -0.4, -2.0, 0.3, -1.5]
    matrix = np.full((3, 3), 9.0)
    assert origin._factor(at, damping, free, matrix) is True
    expected = negative_hessian(at) + damping * np.diag([3.0, 2.0, 1.5])
    fixed = ~np.array(free)
    expected[fixed] = 0.0
    expected[:, fixed] = 0.0
    expected[fixed, fixed] = 1.0
    np.testing.assert_allclose(np.tril(matrix), np.linalg.cholesky(expected), rtol=1e-14, atol=1e-15)


def test_a_hessian_that_is_not_negative_definite_needs_damping():
    at = np.zeros(likelihood.N_AT)
    at[likelihood.HESSIAN :] = [-3.0, 0.0, 0.0, 2.0, 0.0, -1.5]  # the second diagonal element has the wrong sign
    all_free = (True, True, True)
    assert origin._factor(at, 0.0, all_free, np.empty((3, 3))) is False
    assert origin._factor(at, 0.9, all_free, np.empty((3, 3))) is False
    assert origin._factor(at, 1.1, all_free, np.empty((3, 3))) is True
    assert origin._factor(at, 0.0, (True, False, True), np.empty((3, 3))) is True


@pytest.mark.parametrize("n", [origin.SAMPLE - 1, origin.SAMPLE, origin.SAMPLE + 1, 2 * origin.SAMPLE + 77])
def test_the_sample_has_both_tails_and_a_value_of_every_stratum(n):
    x, w = np.arange(n) + 0.5, np.random.default_rng(n).integers(1, 5, n).astype(float)
    work = origin.new_origin_work()
    size = origin._draw(x, w, work)
    assert size == min(n, origin.SAMPLE)
    values, weights = work.sample[:, :size]
    assert weights.sum() == w.sum()
    if n <= origin.SAMPLE:
        assert values.tolist() == x.tolist()
        assert weights.tolist() == w.tolist()
        return
    for tail in (slice(None, 32), slice(-32, None)):
        assert values[tail].tolist() == x[tail].tolist()
        assert weights[tail].tolist() == w[tail].tolist()
    strata = np.array_split(np.arange(32, n - 32), size - 64)  # of sizes that differ by 1 at most, in another order
    sizes = np.bincount([len(stratum) for stratum in strata])
    ends = np.append(np.cumsum(w)[31], np.cumsum(w)[31] + np.cumsum(weights[32:-32]))
    edges = np.searchsorted(np.cumsum(w), ends) + 1
    assert np.bincount(np.diff(edges)).tolist() == sizes.tolist()
    np.testing.assert_array_equal(values[32:-32] - 0.5, (edges[:-1] + edges[1:]) // 2)


def test_origins_of_box_cox_approach_the_smallest_value_geometrically():
    grid = np.zeros((origin._N_GRID, 4))
    low, high = X[0] - 2.0, X[0] - 1e-3
    origin._lay_grid(X, True, low, high, grid)
    np.testing.assert_allclose(X[0] - grid[:, likelihood.ORIGIN], np.geomspace(2.0, 1e-3, origin._N_GRID), rtol=1e-9)


def test_origins_of_yeo_johnson_are_quantiles_and_evenly_spaced_points():
    grid = np.zeros((origin._N_GRID, 4))
    low, high = X[0] - 1.0, X[-1] + 0.5
    origin._lay_grid(X, False, low, high, grid)
    quantiles = np.quantile(X, (np.arange(20) + 0.5) / 20)
    expected = np.sort(np.concatenate([quantiles, np.linspace(low, high, 14)]))
    np.testing.assert_allclose(grid[:, likelihood.ORIGIN], expected, rtol=1e-12)


@pytest.fixture
def n_evaluations(monkeypatch):
    """Count the evaluations of the likelihood by kernels that run as plain Python; return a list with one number."""
    return count_calls(monkeypatch, origin, "evaluate")


@pytest.mark.parametrize(
    ("start", "ranges"),
    [
        ((0.6, X[5], 0.0), RANGES),
        ((0.6, X[0] - 0.5, 0.0), np.array([[-2.0, 3.0], [X[0] - 0.6, X[0] - 0.4], [0.0, 0.0]])),
        ((0.5, X[7], 0.3), np.array([[0.5, 0.5], [X[7], X[7]], [-0.7, 0.7]])),
        ((3.0, X[2], -0.7), np.array([[-2.0, 3.0], [X[2], X[2]], [-0.7, -0.7]])),
    ],
)
def test_a_climb_ends_at_a_constrained_maximum(n_evaluations, start, ranges):
    work = origin.new_origin_work()
    work.steps[0] = start
    before = state_at(start).at[0, 0]
    n = origin._climb(X, ONES, False, ranges, 1e-7, 80, work)
    assert n == n_evaluations[0] > 2
    theta, at = work.steps[0], work.at[0]
    np.testing.assert_allclose(at, state_at(theta).at[0], rtol=1e-12, atol=1e-13)
    assert at[0] >= before
    assert ((ranges[:, 0] <= theta) & (theta <= ranges[:, 1])).all()
    free = origin._free(X, theta, ranges, at)
    for i in np.flatnonzero(free):
        assert abs(at[likelihood.GRADIENT + i]) < 1e-5
    unit = math.exp(theta[2])
    for i in range(3):  # steps sideways do not lead higher
        for step in (-1e-3, 1e-3):
            moved = theta.copy()
            moved[i] = min(max(moved[i] + step * (unit if i == 1 else 1.0), ranges[i, 0]), ranges[i, 1])
            assert state_at(moved).at[0, 0] <= at[0] + 1e-12


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_climb_that_is_cut_off_says_so(n_evaluations, most):
    work = origin.new_origin_work()
    work.steps[0] = (2.9, X[1], 0.6)
    assert origin._climb(X, ONES, False, RANGES, 1e-9, most, work) == -(most + 1) == -n_evaluations[0]


def test_a_climb_needs_a_likelihood_to_start_from(n_evaluations):
    work = origin.new_origin_work()
    work.steps[0] = (1.0, 0.0, 0.0)
    assert origin._climb(ONES, ONES, False, RANGES, 1e-9, 5, work) == -1 == -n_evaluations[0]


def test_a_climb_whose_hessian_is_singular_counts_its_evaluation(n_evaluations):
    """At lambda = 1 the likelihood depends on neither origin nor unit: the climb fails after one evaluation."""
    work = origin.new_origin_work()
    work.steps[0] = (1.0, X[5], 0.0)
    ranges = RANGES.copy()
    ranges[0] = 1.0
    assert origin._climb(X, ONES, False, ranges, 1e-7, 80, work) == -1 == -n_evaluations[0]


@pytest.mark.parametrize("start", [(6.0, X[4], 1.0), (-4.0, X[8], -1.0), (2.0, X[9], -2.0), (0.5, X[4], 2.0)])
def test_a_step_is_newtons_shortened_to_the_longest_change_of_every_parameter(start):
    """A step changes lambda by at most 1, the origin by at most one unit, and the log of the unit by at most 1/2."""
    wide = np.array([[-9.0, 9.0], [-90.0, 90.0], [-4.0, 4.0]])
    work, at = origin.new_origin_work(), state_at(start).at[0]
    work.steps[0] = start
    matrix, damping = np.empty((3, 3)), 0.0
    while not origin._factor(at, damping, (True, True, True), matrix):
        damping = max(4.0 * damping, 0.01)
    hessian = negative_hessian(at)
    hessian += damping * np.diag(np.abs(np.diag(hessian)))
    step = np.linalg.solve(hessian, at[likelihood.GRADIENT : likelihood.GRADIENT + 3])
    step /= max(1.0, (np.abs(step) / [1.0, 1.0, 0.5]).max())
    origin._climb(X, ONES, False, wide, 1e-9, 1, work)
    np.testing.assert_allclose(work.steps[1] - start, step * [1.0, math.exp(start[2]), 1.0], rtol=1e-7, atol=1e-12)


def test_the_scan_finds_the_best_lambda_of_each_origin(n_evaluations):
    work = origin.new_origin_work()
    ranges = np.array([[-2.0, 3.0], [X[0] + 0.2, X[-1] - 0.3], [-0.2, 0.5]])
    assert origin._scan(X, WEIGHTS, False, ranges, work) == n_evaluations[0]
    grid = work.grid
    np.testing.assert_array_equal(grid[:, likelihood.LOG_UNIT], -0.2)
    origins = np.zeros_like(grid)
    origin._lay_grid(X, False, *ranges[1], origins)
    np.testing.assert_array_equal(grid[:, 1], np.clip(origins[:, 1], *ranges[1]))
    for row in grid[::6]:
        at = state_at(row[:3], X, WEIGHTS).at[0]
        assert row[3] == pytest.approx(at[0], abs=1e-13)
        best = max(state_at([lmbda, row[1], row[2]], X, WEIGHTS).at[0, 0] for lmbda in np.linspace(-2.0, 3.0, 41))
        assert row[3] >= best - 1e-3


@pytest.mark.parametrize("box_cox", [False, True])
def test_a_search_counts_its_evaluations_and_gives_the_profiled_information(n_evaluations, box_cox):
    ranges = RANGES.copy()
    if box_cox:
        ranges[1], ranges[2] = [X[0] - 1.0, X[0] - 1e-3], 0.0
    out = np.empty(likelihood.N_FOUND)
    origin._search(X, WEIGHTS, box_cox, ranges, origin.new_origin_work(), out)
    assert out[likelihood.N_EVAL] == n_evaluations[0]
    assert out[likelihood.CERTIFIED] == 1.0
    work = state_at(out[:3], X, WEIGHTS, box_cox)
    assert out[likelihood.LIKELIHOOD] == pytest.approx(work.at[0, 0], abs=1e-14)
    free = [0, *(i for i in (1, 2) if origin._free(X, out[:3], ranges, work.at[0])[i])]
    inverse = np.linalg.inv(negative_hessian(work.at[0])[np.ix_(free, free)])
    assert out[likelihood.INFORMATION] == pytest.approx(1.0 / inverse[0, 0], rel=1e-9)


def test_of_two_equal_maxima_the_smaller_lambda_is_chosen():
    """A column that is symmetric about 0 has maxima at lambda and 2 - lambda."""
    half = np.sort(RNG.gamma(0.4, size=8))
    x = np.concatenate([-half[::-1], half])
    row = found(x / x.std(), False, np.array([[-3.0, 5.0], [-2.0, 2.0], [-0.7, 0.7]]))
    mirrored = found(-x[::-1] / x.std(), False, np.array([[-3.0, 5.0], [-2.0, 2.0], [-0.7, 0.7]]))
    assert row[likelihood.LMBDA] <= 1.0
    np.testing.assert_allclose(mirrored[:4], row[:4], atol=1e-6)


@pytest.mark.parametrize("lmbda", [-0.7, 0.0, 0.4, 2.0, 3.0])
def test_the_constant_that_is_subtracted_is_a_transform(lmbda):
    for u in (-3.0, -0.2, 0.0, 0.3, 0.9, 4.0):
        assert likelihood._psi(u, lmbda, False) == pytest.approx(stats.yeojohnson(np.array([u]), lmbda)[0], rel=1e-13)
        if u > 0.0:
            assert likelihood._psi(u, lmbda, True) == pytest.approx(special.boxcox(u, lmbda), rel=1e-13)


def choose(monkeypatch, n, peaks):
    """Run the search on a grid with given peaks; return the resulting lambda, and the lambdas that the search refines.

    Parameters
    ----------
    monkeypatch : pytest.MonkeyPatch
        Replaces the scan of the grid and the climbs, which need no steps.
    n : int
        Number of values; long columns are searched on a sample first.
    peaks : sequence of (float, float, float, float)
        Lambda, origin, and likelihood on the sample and on all values of each peak.
    """
    by_lambda, refined = {peak[0]: peak for peak in peaks}, []

    def scan(x, w, box_cox, ranges, work):
        work.grid[:, likelihood.LIKELIHOOD] = -99.0
        for k, (lmbda, x0, low, _) in enumerate(peaks):
            work.grid[3 * k + 1] = lmbda, x0, 0.0, low
        return 7

    def climb(x, w, box_cox, ranges, tolerance, most, work):
        _, _, low, high = by_lambda[work.steps[0, 0]]
        is_last = tolerance == origin._CONVERGED
        work.at[0, 0] = high if is_last else low
        refined.extend([work.steps[0, 0]] if is_last else [])
        return 1

    monkeypatch.setattr(origin, "_scan", scan)
    monkeypatch.setattr(origin, "_climb", climb)
    monkeypatch.setattr(origin, "_information", lambda *arguments: 0.5)
    out = np.zeros(likelihood.N_FOUND)
    origin._search(np.arange(float(n)), np.ones(n), False, RANGES, origin.new_origin_work(), out)
    assert out[likelihood.N_EVAL] == 7 + len(peaks) + len(refined)
    return float(out[likelihood.LMBDA]), refined


@pytest.mark.parametrize(
    ("n", "peaks", "expected", "refined"),
    [
        # the highest on all values; nearly the same lambda may have another origin
        (9, [(0.5, 0.0, -1.0, -1.0), (0.505, 1.0, -1.0, -0.9)], 0.505, [0.5, 0.505]),
        (9, [(0.505, 0.0, -1.0, -0.9), (0.5, 1.0, -1.0, -1.0)], 0.505, [0.505, 0.5]),
        # of two equal ones, the one with the smaller lambda
        (9, [(0.5, 0.0, -1.0, -1.0), (1.5, 1.0, -1.0, -1.0 + 4e-10)], 0.5, [0.5, 1.5]),
        (9, [(1.5, 0.0, -1.0, -1.0 + 4e-10), (0.5, 1.0, -1.0, -1.0)], 0.5, [1.5, 0.5]),
        (9, [(0.5, 0.0, -1.0, -1.0), (1.5, 1.0, -1.0, -1.0 + 6e-10)], 1.5, [0.5, 1.5]),
        (9, [(1.5, 0.0, -1.0, -1.0 + 6e-10), (0.5, 1.0, -1.0, -1.0)], 1.5, [1.5, 0.5]),
        # lower ones are not refined: by more than 1e-5, or than 2/320 if the sample has not all values
        (320, [(0.5, 0.0, -1.0, -1.0), (1.5, 1.0, -1.0 - 2e-5, -0.5)], 0.5, [0.5]),
        (320, [(0.5, 0.0, -1.0 - 9e-6, -1.0), (1.5, 1.0, -1.0, -1.1)], 0.5, [0.5, 1.5]),
        (321, [(0.5, 0.0, -1.0, -1.0), (1.5, 1.0, -1.0 - 6e-3, -0.5)], 1.5, [0.5, 1.5]),
        (321, [(0.5, 0.0, -1.0 - 7e-3, -0.5), (1.5, 1.0, -1.0, -1.0)], 1.5, [1.5]),
        # the same maximum from two points of the grid is refined once
        (9, [(0.5, 0.0, -1.0, -1.0), (0.505, 0.005, -1.0, -1.0)], 0.5, [0.5]),
        (9, [(0.5, 0.0, -1.0, -1.0), (0.505, 0.02, -1.0, -1.0)], 0.5, [0.5, 0.505]),
        (9, [(0.5, 0.0, -1.0, -1.0), (0.52, 0.005, -1.0, -1.0)], 0.5, [0.5, 0.52]),
        # at most four, the highest
        (
            9,
            [(0.1 * k, float(k), -1.0 - 1e-6 * k, -1.0 - 1e-3 * k) for k in (5, 2, 4, 3, 1, 6)],
            0.1,
            [0.1, 0.2, 0.4, 0.1 * 3],
        ),
    ],
)
def test_local_maxima_are_refined_and_compared(monkeypatch, n, peaks, expected, refined):
    assert choose(monkeypatch, n, peaks) == (expected, refined)
