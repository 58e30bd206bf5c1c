"""The power-moment sketch: sums compared with brute force, Gauss rules with moments, error bounds with errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from powerkern._estimators.routes import fit_vector
from powerkern._status import Status
from powerkern.kernels.likelihood import mle
from powerkern.kernels.likelihood.scratch import new_scratch, new_work
from powerkern.kernels.power_sums import fit as sketch
from powerkern.kernels.power_sums import gauss, grids, ranges, sample
from powerkern.kernels.power_sums import sums as sum_kernels
from powerkern.kernels.results import (
    BAD_INFINITE,
    BAD_NOT_POSITIVE,
    CURVATURE,
    LMBDA,
    LOC,
    N_RESULTS,
    NLL,
    SCALE,
    STATUS,
)
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON

FAMILIES = [BOX_COX, YEO_JOHNSON]
NOTHING = np.empty(0)


def range_row(x: np.ndarray, family: int, weight: np.ndarray = NOTHING) -> np.ndarray:
    out = np.zeros((1, ranges.N_RANGE))
    out[0, ranges.R_MIN], out[0, ranges.R_MAX] = np.inf, -np.inf
    ranges.range_columns(x.reshape(1, -1), weight, family, 0, max(1, x.size // 256), out)
    return out[0]


def columns_of_every_kind(n: int, family: int) -> np.ndarray:
    """Return a matrix (n, 7) with one column of each kind; for Box-Cox and odd `n`, their exponentials.

    The kinds are: both signs; a third missing; empty; zeros of both signs; one value -inf; negative; positive.
    """
    x = np.random.default_rng(n).normal(size=(n, 7))
    x[::3, 1] = x[:, 2] = np.nan
    x[:, 3] = np.where(np.arange(n) % 2, 0.0, -0.0)
    x[n // 2, 4] = -np.inf
    x[:, 5:] = [[-1.0, 1.0]] * abs(x[:, 5:])
    return np.exp(x) if family == BOX_COX and n % 2 else x


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 2, 700, 701])
@pytest.mark.parametrize("family", FAMILIES)
def test_ranges_along_rows_have_the_bits_of_ranges_by_column(family, n, dtype):
    x = columns_of_every_kind(n, family).astype(dtype)
    step, p, wide = max(1, n // 256), x.shape[1], np.pad(x, ((0, 0), (0, 2)))
    expected = np.array([range_row(column.astype(np.float64), family) for column in x.T])
    entry = ranges.range_lines if dtype == np.float64 else ranges.range_lines32
    bad = expected[:, ranges.R_COUNT] < 0.0
    for flat, stride, rows in ((x.ravel(), p, 1), (x.ravel(), p, 3), (wide.ravel(), p + 2, 1)):
        out = np.zeros((p, ranges.N_RANGE))
        out[:, ranges.R_MIN], out[:, ranges.R_MAX] = np.inf, -np.inf
        entry(flat, rows * stride, family, 0, step * stride, np.empty((3, rows * p)), out)
        assert out[~bad].tobytes() == expected[~bad].tobytes()
        assert_array_equal(out[bad, ranges.R_COUNT], expected[bad, ranges.R_COUNT])


def grid_row(x: np.ndarray, family: int, largest: float = 0.0, stream: bool = False) -> np.ndarray:
    grid = np.empty((1, grids.N_GRID))
    grids.grid_columns(range_row(x, family).reshape(1, -1), family, largest, int(stream), grid)
    grid[0, grids.G_QUANTUM] = math.frexp(x.size)[1] - 59.0
    return grid[0]


def relaid(grid: np.ndarray, family: int, exponent: float, max_bins: int = 10**6) -> np.ndarray:
    cells = grid.reshape(1, -1).copy()
    grids.lay_columns(cells, family, np.array([float(exponent)]), max_bins)
    return cells[0]


def sums_of(x: np.ndarray, family: int, grid: np.ndarray, weight: np.ndarray = NOTHING) -> tuple[np.ndarray, bool]:
    bins = int(grid[grids.G_BINS])
    sums, inside = np.zeros(bins * gauss.N_POWERS), np.ones(1, dtype=np.int64)
    starts = np.array([0, bins])
    sum_kernels.sketch_columns(
        x.reshape(1, -1), weight, family, grid.reshape(1, -1), sum_kernels.new_chunk(), sums, starts, inside
    )
    return sums.reshape(-1, gauss.N_POWERS), bool(inside[0])


def scratch(bins: int) -> tuple:
    return sample.new_nodes(bins), new_scratch()


def fit(x: np.ndarray, family: int, grid: np.ndarray, weight: np.ndarray = NOTHING, lmbda: float = math.nan) -> tuple:
    """Fit a column from its power sums; return the row of results, and the bound on the error of lambda.

    Parameters
    ----------
    x : (n,) ndarray
        The column.
    family : int
        Code of the transform.
    grid : ndarray
        The grid, as `grids` lays it.
    weight : (n,) ndarray
        Weights; empty if there are none.
    lmbda : float
        Lambda; NaN to estimate it.
    """
    sums, inside = sums_of(x, family, grid, weight)
    assert inside
    out, error = np.empty((1, N_RESULTS)), np.empty(1)
    starts = np.array([0, len(sums)])
    rounded = np.array([[1.0, x.size, 0.0, 0.0]])
    given = rounded, np.array([lmbda])
    sketch.fit_sums(sums, starts, family, grid.reshape(1, -1), *given, *scratch(len(sums)), out, error)
    return out[0], error[0]


def logs(x: np.ndarray, family: int, grid: np.ndarray) -> np.ndarray:
    """Return the logs of a column relative to the grid's reference, by the formula of the definition."""
    if family == BOX_COX:
        return np.log(x) - math.log(grid[grids.G_REF])
    a = np.log1p(np.abs(x))
    return np.sign(x) * a if grid[grids.G_SIGN] == 0 else a - math.log1p(grid[grids.G_REF])


SHAPES = {
    "lognormal": lambda rng, n: rng.lognormal(size=n),
    "normal": lambda rng, n: rng.normal(size=n),
    "negative": lambda rng, n: -rng.gamma(2.0, size=n),
    "cluster": lambda rng, n: 1e4 + 1e-3 * rng.normal(size=n),
    "counts": lambda rng, n: rng.integers(1, 6, size=n).astype(float),
    "small": lambda rng, n: 1e-6 * rng.gumbel(size=n),
    "off the reference": lambda rng, n: np.exp(np.linspace(0.055, 0.19, n)),  # that of a stream
}
CASES = [(YEO_JOHNSON, shape) for shape in SHAPES] + [(BOX_COX, s) for s in ("lognormal", "cluster", "counts")]
every_case = pytest.mark.parametrize("family, shape", CASES)


def column_of_shape(shape: str, n: int = 150) -> np.ndarray:
    return SHAPES[shape](np.random.default_rng(7), n)


# --- ranges and grids ---------------------------------------------------------------------------------


@every_case
def test_a_range_agrees_with_numpy(family, shape):
    x = column_of_shape(shape, 1200)
    weight = np.random.default_rng(0).integers(0, 3, size=x.size).astype(float)
    x[::50] = np.nan
    kept = x[~np.isnan(x) & (weight > 0)]
    found = range_row(x, family, weight)
    assert found[ranges.R_COUNT] == kept.size
    assert found[ranges.R_WEIGHT] == weight[~np.isnan(x)].sum()
    assert (found[ranges.R_MIN], found[ranges.R_MAX]) == (kept.min(), kept.max())
    assert 100 < found[ranges.R_SAMPLE] <= kept.size
    a = np.log(kept) if family == BOX_COX else np.sign(kept) * np.log1p(np.abs(kept))
    mean = ranges.mean_log(found)
    assert mean == pytest.approx(a.mean(), abs=0.5 * a.std() + ranges.LOG_UNIT)
    squares = found[ranges.R_SQUARES] * ranges.LIMB + found[ranges.R_SQUARES_LOW]
    spread = math.sqrt(squares / found[ranges.R_SAMPLE] * ranges.LOG_UNIT**2 - mean**2 + 1e-12)
    assert spread == pytest.approx(a.std(), rel=0.5, abs=1e-5)


def test_ranges_report_values_outside_the_domain():
    assert range_row(np.array([1.0, np.inf]), YEO_JOHNSON)[ranges.R_COUNT] == BAD_INFINITE
    assert range_row(np.array([1.0, 0.0]), BOX_COX)[ranges.R_COUNT] == BAD_NOT_POSITIVE
    assert range_row(np.full(700, np.nan), BOX_COX)[ranges.R_COUNT] == 0


@every_case
def test_a_grid_covers_its_range_and_is_fine_enough(family, shape):
    x = column_of_shape(shape)
    grid = grid_row(x, family)
    a = logs(x, family, grid) if shape != "negative" else np.log1p(-x) - math.log1p(grid[grids.G_REF])
    width = 2.0 ** grid[grids.G_EXPONENT]
    first, bins = grid[grids.G_FIRST], grid[grids.G_BINS]
    assert first * width <= a.min() + 1e-12
    assert a.max() - 1e-12 <= (first + bins) * width
    assert width <= 0.08 * max(a.std(), np.ptp(a) / 400) * 1.5
    assert 1 <= bins <= grids.MAX_BINS
    narrow = grid_row(x, family, largest=20.0 / a.std())
    assert 2.0 ** narrow[grids.G_EXPONENT] <= 0.008 * a.std()


def test_a_grid_of_no_values_has_no_bins_and_of_one_value_one_bin():
    assert not grid_row(np.full(3, np.nan), YEO_JOHNSON)[: grids.G_QUANTUM].any()
    for value in (0.0, 3.0, -1e300, 5e-324):
        assert grid_row(np.full(3, value), YEO_JOHNSON)[grids.G_BINS] == 1
        assert relaid(grid_row(np.full(3, value), YEO_JOHNSON, stream=True), YEO_JOHNSON, -2000)[grids.G_BINS] == 1


@pytest.mark.parametrize("exponent", [-9.0, -4.0, -3.0, 0.0])
@pytest.mark.parametrize("max_bins", [1, 2, 7, 40, 5000])
def test_bins_are_as_narrow_as_their_number_allows(exponent, max_bins):
    x = np.array([0.03, 0.4, 2.0, 17.0])
    for family, values in ((BOX_COX, x), (YEO_JOHNSON, x - 3.0)):
        grid = relaid(grid_row(values, family), family, exponent, max_bins)
        a = logs(values, family, grid)
        expected = exponent
        while (
            math.floor(a.max() / 2.0**expected) - math.floor(a.min() / 2.0**expected) + 1 > max_bins and expected < 11
        ):
            expected += 1.0
        assert grid[grids.G_EXPONENT] == expected
        assert grid[grids.G_FIRST] == math.floor(a.min() / 2.0**expected)
        assert grid[grids.G_FIRST] + grid[grids.G_BINS] == math.floor(a.max() / 2.0**expected) + 1


@pytest.mark.parametrize(
    "low, high",
    [
        (1.0, 1.0),
        (1.0, 2.0),
        (1e-3, 1e5),
        (1e-300, 1e300),
        (5e-324, 5e-322),
        (7.3, 7.3000001),
        (2e-310, 3.0),
        (0.2, 0.9),
    ],
)
def test_references_of_streams_are_coarse_and_near_the_middle_of_the_logs(low, high):
    """The log of a reference is a multiple of a power of two that is at least the range of the logs.

    References therefore change rarely as a stream grows.
    """
    cells = np.array([grid_row(np.array([low, high]), BOX_COX, stream=True), grid_row(np.full(2, np.nan), BOX_COX)])
    cells[1, grids.G_MIN : grids.G_MAX + 1] = 0.5, 3.0  # not read
    found, references = np.full(2, 7.0), np.full(2, 7.0)
    grids.write_stream_references(cells, found, references)
    assert (found[1], references[1]) == (0.0, 1.0)
    middle, reach = 0.5 * (math.log(low) + math.log(high)), math.log(high) - math.log(low)
    step = 2.0 ** max(-42, math.ceil(math.log2(reach)) if reach > 0.0 else -42)
    assert found[0] % step == 0.0
    assert abs(found[0] - max(middle, -708.0)) <= (0.5 if middle > -700.0 else 1.0) * step + 1e-12
    assert references[0] == pytest.approx(math.exp(found[0]), rel=1e-14)
    assert references[0] == cells[0, grids.G_REF] >= 2.0**-1022


# --- sums ---------------------------------------------------------------------------------------------


@every_case
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_those_of_brute_force(family, shape, weighted):
    x = column_of_shape(shape)
    x[::9] = np.nan
    weight = np.random.default_rng(0).random(x.size) if weighted else NOTHING
    grid = grid_row(x[~np.isnan(x)], family)
    sums, inside = sums_of(x, family, grid, weight)
    assert inside
    w = weight[~np.isnan(x)] if weighted else np.ones(np.count_nonzero(~np.isnan(x)))
    x = x[~np.isnan(x)]
    if shape == "cluster":
        ref = grid[grids.G_REF]
        a = np.log1p((x - ref) / (ref + (family == YEO_JOHNSON)))
    else:
        a = logs(x if shape != "negative" else -x, family, grid)
    s = a / 2.0 ** grid[grids.G_EXPONENT] - grid[grids.G_FIRST]
    expected = np.zeros_like(sums)
    for at, each in zip(s, w, strict=True):
        t = 2.0 * (at - math.floor(at)) - 1.0
        expected[math.floor(at)] += each * t ** np.arange(gauss.N_POWERS)
    assert_allclose(sums, expected, atol=1e-9)
    assert sums[:, 0].sum() == pytest.approx(w.sum())


@pytest.mark.parametrize("value", [0.5, 9.0, np.inf, -np.inf, -1.0])
def test_values_beyond_the_range_are_refused(value):
    grid = grid_row(np.array([1.0, 2.0, 8.0]), YEO_JOHNSON)
    assert not sums_of(np.array([1.5, value]), YEO_JOHNSON, grid)[1]


def test_a_grid_without_bins_takes_missing_values_only():
    grid = grid_row(np.full(3, np.nan), YEO_JOHNSON)
    some = np.array([np.nan, 1.0])
    assert sums_of(some[:1], YEO_JOHNSON, grid)[1]
    assert sums_of(some, YEO_JOHNSON, grid, np.array([1.0, 0.0]))[1]
    assert not sums_of(some, YEO_JOHNSON, grid)[1]
    assert not sums_of(some, YEO_JOHNSON, grid, np.ones(2))[1]


# --- Gauss rules --------------------------------------------------------------------------------------


def rule(t: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    small = np.empty((7, gauss.N_POWERS))
    sums = np.array([np.sum(weight * t**k) for k in range(gauss.N_POWERS)])
    n, remainder = gauss.gauss_rule(sums, small)
    return small[0, :n].copy(), small[1, :n].copy(), remainder


@settings(max_examples=100)
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40), st.integers(0, 2**32 - 1))
def test_a_rule_has_the_moments_of_its_bin(values, seed):
    t = np.array(values)
    weight = np.random.default_rng(seed).uniform(0.1, 2.0, t.size)
    nodes, weights, remainder = rule(t, weight)
    assert (np.abs(nodes) <= 1.0 + 1e-6).all()
    assert (weights >= 0.0).all()
    assert 0.0 <= remainder <= 1 / 64
    for k in range(gauss.N_POWERS):
        # an error of the k-th one counts by (2 |m| h)^k/k!, and 2 |m| h is at most 0.16
        tolerance = 1e-14 if k <= 2 else 1e-14 * math.factorial(k) / 0.16**k
        assert abs(np.sum(weights * nodes**k) - np.sum(weight * t**k)) <= tolerance * weight.sum()


@pytest.mark.parametrize("values", [[0.3], [-1.0, 1.0], [-0.9, 0.1, 0.2], [-1.0, -0.3, 0.4, 0.9]])
def test_up_to_four_distinct_values_are_their_own_rule(values):
    weight = np.arange(1.0, len(values) + 1.0)
    nodes, weights, remainder = rule(np.array(values), weight)
    order = np.argsort(nodes)
    assert_allclose(nodes[order], values, atol=1e-11)
    assert_allclose(weights[order], weight, rtol=1e-9)
    assert remainder <= 0.015625


def test_values_closer_than_rounding_are_one_node():
    nodes, weights, remainder = rule(0.5 + 1e-10 * np.arange(5.0), np.ones(5))
    assert (len(nodes), weights[0], remainder) == (1, 5.0, 0.0)


# --- fits ---------------------------------------------------------------------------------------------


@every_case
def test_a_fit_from_sums_is_the_direct_fit(family, shape):
    x = column_of_shape(shape)
    row, error = fit(x, family, grid_row(x, family))
    expected = fit_vector(x, family)
    assert row[STATUS] == Status.OK
    assert error <= sketch.TOLERANCE * max(1.0, abs(expected.lmbda))
    assert row[LMBDA] == pytest.approx(expected.lmbda, rel=1e-11, abs=1e-12)
    assert row[NLL] == pytest.approx(expected.nll, rel=1e-11, abs=1e-12)
    assert row[CURVATURE] == pytest.approx(expected.curvature, rel=1e-8)
    given, _ = fit(x, family, grid_row(x, family), lmbda=0.5)
    assert (given[LMBDA], given[STATUS]) == (0.5, Status.FIXED)
    at_half = fit_vector(x, family, 0.5)
    assert_allclose([given[LOC], given[SCALE]], [at_half.loc, at_half.scale], rtol=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_fit_on_the_grid_of_a_stream_is_the_direct_fit(family, shape):
    """Such a grid has signed logs for Yeo-Johnson, and for Box-Cox a coarse reference."""
    x = column_of_shape(shape, 60)
    if family == BOX_COX:
        x = abs(x) if shape != "small" else 2e-5 + x
    grid = grid_row(x, family, stream=True)
    sign = {BOX_COX: 1.0, YEO_JOHNSON: 0.0}[family]
    assert grid[grids.G_SIGN] == sign
    row, error = fit(x, family, grid)
    expected = fit_vector(x, family)
    scale = 1.0 / math.sqrt(expected.curvature * x.size)
    assert abs(row[LMBDA] - expected.lmbda) <= min(error, 1e-6 * scale) + 1e-12 * abs(expected.lmbda)
    assert row[NLL] == pytest.approx(expected.nll, rel=1e-9, abs=1e-9)
    assert row[SCALE] == pytest.approx(expected.scale, rel=1e-6)


@pytest.mark.parametrize(
    "x", [5e-324 * np.array([1, 2, 3, 10]), 5e-324 * np.arange(1.0, 90.0), 1.7e308 * np.array([1e-3, 0.4, 0.7, 1])]
)
def test_lambda_of_subnormal_and_huge_values_is_that_of_rescaled_ones(x):
    """Lambda of multiples of the smallest float, or of values near the largest, equals that of the rescaled column."""
    row, error = fit(x, BOX_COX, grid_row(x, BOX_COX))
    expected = fit_vector(x / x[0] if x[0] < 1.0 else x * 2.0**-1000, BOX_COX)  # lambda ignores scale
    assert row[STATUS] == Status.OK
    assert error <= 1e-11
    assert row[LMBDA] == pytest.approx(expected.lmbda, rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("coarser", [0, 1, 2, 3, 4])
@pytest.mark.parametrize(
    "family, shape",
    [(BOX_COX, "lognormal"), (YEO_JOHNSON, "normal"), (YEO_JOHNSON, "lognormal"), (YEO_JOHNSON, "negative")],
)
def test_the_error_stays_below_its_bound(family, shape, coarser):
    """Compare the error of lambda with its bound, on grids whose bins are wider by a factor of 2**coarser."""
    x = column_of_shape(shape) ** (3.0 if family == BOX_COX else 1.0) + (0.3 if family == BOX_COX else 0.0)
    grid = grid_row(x, family)
    row, error = fit(x, family, relaid(grid, family, grid[grids.G_EXPONENT] + coarser))
    actual = abs(row[LMBDA] - fit_vector(x, family).lmbda)
    assert actual <= error + 1e-14
    assert (row[STATUS] == Status.UNRESOLVED) == (error > sketch.TOLERANCE * max(1.0, abs(row[LMBDA])))


@pytest.mark.parametrize("spread", [0.3, 1.0, 3.0])
def test_the_bound_is_equal_for_the_mirrored_column(spread):
    """Yeo-Johnson of -x at 2 - lambda is minus that of x at lambda. Coarse bins dominate the bound."""
    x = np.sinh(spread * np.random.default_rng(3).normal(0.7, 1.0, size=4000))
    found = []
    for values in (x, -x):
        grid = grid_row(values, YEO_JOHNSON)
        found.append(fit(values, YEO_JOHNSON, relaid(grid, YEO_JOHNSON, grid[grids.G_EXPONENT] + 4)))
    (row, error), (mirrored, mirrored_error) = found
    assert error > 1e-12
    assert row[LMBDA] == pytest.approx(2.0 - mirrored[LMBDA], abs=error + mirrored_error)
    assert mirrored_error == pytest.approx(error, rel=0.02)


def test_a_grid_that_is_too_coarse_is_unresolved():
    x = column_of_shape("lognormal")
    grid = grid_row(x, YEO_JOHNSON)
    row, error = fit(x, YEO_JOHNSON, relaid(grid, YEO_JOHNSON, grid[grids.G_EXPONENT] + 5))
    assert row[STATUS] == Status.UNRESOLVED
    assert sketch.TOLERANCE < error < 10.0
    row, error = fit(x, YEO_JOHNSON, grid)
    assert error < 1e-13


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_a_common_factor_of_the_weights_does_not_matter(factor):
    x = column_of_shape("lognormal", 40)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 40)
    grid = grid_row(x, BOX_COX)
    grid[grids.G_QUANTUM] = -80.0
    (one, _), (other, _) = (fit(x, BOX_COX, grid, f * weight) for f in (1.0, factor))
    assert one[STATUS] == other[STATUS] == Status.OK
    assert_allclose(other[[LMBDA, LOC, SCALE, NLL]], one[[LMBDA, LOC, SCALE, NLL]], rtol=1e-11)


def test_records_of_rounding():
    grid = np.zeros(grids.N_GRID)
    grid[grids.G_QUANTUM] = -20.0
    assert sketch.rounded_sums(grid, np.array([5.0, 300.0, 2.0, 1.0])) == (2.0**-20, 5.0, 300.0, 2.0, True)
    assert sketch.rounded_sums(grid, np.array([1.0, 7.0, 0.0, 0.0])) == (2.0**-20, 1.0, 7.0, 0.0, False)


def test_a_range_without_finite_logs_gets_no_bins_and_one_bin_may_become_many():
    grid = grid_row(np.array([1.0, 2.0]), BOX_COX)
    grid[grids.G_MAX] = np.inf
    assert_array_equal(relaid(grid, BOX_COX, -3.0)[[grids.G_FIRST, grids.G_BINS, grids.G_EXPONENT]], 0.0)
    one = relaid(grid_row(np.array([1.0, 1.1]), YEO_JOHNSON, stream=True), YEO_JOHNSON, 2.0)
    assert one[grids.G_BINS] == 1.0
    assert relaid(one, YEO_JOHNSON, -10.0)[grids.G_BINS] > 10.0


def test_columns_that_have_no_fit():
    x = np.array([np.nan, np.nan])  # a part of a column, without values
    row, error = fit(x, BOX_COX, grid_row(np.array([1.0, 5.0]), BOX_COX))
    assert (row[STATUS], error) == (Status.EMPTY, 0.0)
    x = np.full(4, 2.0)
    assert fit(x, BOX_COX, grid_row(x, BOX_COX))[0][STATUS] == Status.CONSTANT
    nothing = np.full(4, np.nan)
    assert fit(nothing, BOX_COX, grid_row(nothing, BOX_COX))[0][STATUS] == Status.EMPTY
    spread = grid_row(np.array([1.0, 5.0]), BOX_COX)
    row, error = fit(np.full(3, 2.0), BOX_COX, spread)  # a part of a column, with one value
    assert (row[STATUS], error) == (Status.UNRESOLVED, math.inf)


@every_case
def test_profiles_and_intervals_agree_with_those_of_values(family, shape):
    x = column_of_shape(shape, 100)
    grid = grid_row(x, family)
    sums, _ = sums_of(x, family, grid)
    starts, each = np.array([0, len(sums)]), scratch(len(sums))
    best = fit_vector(x, family)
    work = new_work(x.size)
    at = best.lmbda + np.array([-1.0, 0.0, 0.5]) / math.sqrt(best.curvature)
    found, expected = np.empty((2, 1, at.size))
    sketch.profile_sums(sums, starts, family, grid.reshape(1, -1), at, *each, found)
    mle.profile_columns(x.reshape(1, -1), NOTHING, family, at, work, expected)
    assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    ask = np.array([[best.lmbda, 0.02]])
    found, expected = np.empty((2, 1, 2))
    sketch.interval_sums(sums, starts, family, grid.reshape(1, -1), ask, *each, found)
    mle.interval_columns(x.reshape(1, -1), NOTHING, family, ask, work, expected)
    assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("family", FAMILIES)
def test_columns_of_equal_values_have_no_profile(family):
    x = np.full(3, 2.0)
    grid = grid_row(x, family)
    sums, out = sums_of(x, family, grid)[0], np.zeros((2, 1, 2))
    given = sums, np.array([0, len(sums)]), family, grid.reshape(1, -1)
    sketch.profile_sums(*given, np.zeros(2), *scratch(len(sums)), out[0])
    sketch.interval_sums(*given, np.array([[0.3, 0.1]]), *scratch(len(sums)), out[1])
    assert np.isnan(out).all()
    row, error = fit(x, family, grid)
    assert (row[STATUS], error) == (Status.CONSTANT, 0.0)
    row, error = fit(np.append(x, 3.0), family, grid_row(np.append(x, 3.0), family), lmbda=0.5)
    assert (row[STATUS], error) == (Status.FIXED, 0.0)


def test_a_single_value_has_a_grid_and_a_mean_log():
    for family in FAMILIES:
        x = np.array([3.0])
        data_range = range_row(x, family)
        assert ranges.mean_log(data_range) == pytest.approx(
            math.log(3.0 + (family == YEO_JOHNSON)), abs=ranges.LOG_UNIT
        )
        assert grid_row(x, family)[grids.G_BINS] == 1.0
    nothing = range_row(np.full(2, np.nan), BOX_COX)
    assert ranges.mean_log(nothing) == 0.0


def test_columns_without_two_values_have_no_profile():
    grid = grid_row(np.full(2, np.nan), YEO_JOHNSON)
    empty, starts = np.empty((0, gauss.N_POWERS)), np.array([0, 0])
    out = np.zeros((1, 2))
    sketch.profile_sums(empty, starts, YEO_JOHNSON, grid.reshape(1, -1), np.zeros(2), *scratch(1), out)
    assert np.isnan(out).all()
    out = np.zeros((1, 2))
    sketch.interval_sums(empty, starts, YEO_JOHNSON, grid.reshape(1, -1), np.zeros((1, 2)), *scratch(1), out)
    assert_array_equal(np.isnan(out), True)


def test_each_column_has_its_own_sums():
    """Compare the results of three columns whose sums are in one array with the results of each column alone."""
    x = [column_of_shape("normal"), column_of_shape("lognormal", 60), column_of_shape("negative", 90)]
    cells = np.array([grid_row(each, YEO_JOHNSON) for each in x])
    every = [sums_of(each, YEO_JOHNSON, grid)[0] for each, grid in zip(x, cells, strict=True)]
    sums, starts = np.concatenate(every), np.cumsum([0, *map(len, every)])
    rounded, nodes = np.array([[1.0, each.size, 0.0, 0.0] for each in x]), scratch(max(map(len, every)))
    rows, error = np.empty((3, N_RESULTS)), np.empty(3)
    sketch.fit_sums(sums, starts, YEO_JOHNSON, cells, rounded, np.full(3, math.nan), *nodes, rows, error)
    at, ask = np.array([0.2, 1.1]), np.column_stack([rows[:, LMBDA], [0.02, 0.05, 0.1]])
    profiles, ends = np.empty((2, 3, 2))
    sketch.profile_sums(sums, starts, YEO_JOHNSON, cells, at, *nodes, profiles)
    sketch.interval_sums(sums, starts, YEO_JOHNSON, cells, ask, *nodes, ends)
    for j, (each, grid) in enumerate(zip(x, cells, strict=True)):
        row, bound = fit(each, YEO_JOHNSON, grid)
        assert_array_equal(rows[j], row)
        assert error[j] == bound
        work, expected = new_work(each.size), np.empty((2, 1, 2))
        mle.profile_columns(each.reshape(1, -1), NOTHING, YEO_JOHNSON, at, work, expected[0])
        mle.interval_columns(each.reshape(1, -1), NOTHING, YEO_JOHNSON, ask[j : j + 1], work, expected[1])
        assert_allclose(profiles[j], expected[0, 0], rtol=1e-10, atol=1e-12)
        assert_allclose(ends[j], expected[1, 0], rtol=1e-8)


@pytest.mark.parametrize(
    "unit, delicate",
    [(2.0**-1023, True), (2.0**-1022, False), (2.0**1022, False), (np.nextafter(2.0**1022, np.inf), True)],
)
def test_logs_of_ratios_need_a_normal_reference_with_a_normal_reciprocal(unit, delicate):
    grid = np.zeros(grids.N_GRID)
    grid[grids.G_SIGN], grid[grids.G_REF] = 1.0, unit
    grid[grids.G_MIN], grid[grids.G_MAX] = unit / (1.0 if unit < 1.0 else 2.0), 1.75 * unit
    assert sum_kernels.is_delicate(0.0, grid) == delicate


@pytest.mark.parametrize(
    "family, ends, part",
    [
        (YEO_JOHNSON, (-5.0, 5.0), (-0.3, 0.4)),
        (YEO_JOHNSON, (-0.5, 9.0), (-0.1, 7.0)),
        (YEO_JOHNSON, (0.0, 50.0), (2.0, 3.0)),
        (YEO_JOHNSON, (-50.0, -0.1), (-3.0, -2.0)),
        (BOX_COX, (0.01, 50.0), (2.0, 3.0)),
    ],
)
def test_bounds_of_the_logs_are_those_of_the_occupied_bins(family, ends, part):
    """Compare the bounds with the ends of the occupied bins; with wider bounds, sums could lose all their digits."""
    x = np.linspace(*part, 40)
    grid = grid_row(np.append(x, ends), family)
    of = sample.make_sample(sums_of(x, family, grid)[0], float(family == YEO_JOHNSON), grid, scratch(10**4)[0])
    logs, bin_width = of.centered.logs, 2.0 * of.half
    rounding = 1e-12
    assert logs.pos.max() - rounding <= logs.high <= logs.pos.max() + bin_width
    if of.sign == 0.0:
        assert logs.neg.max() - rounding <= logs.neg_high <= logs.neg.max() + bin_width
        assert logs.low == 0.0
    else:
        assert logs.pos.min() - bin_width <= logs.low <= logs.pos.min() + rounding
        assert logs.neg.size == 0


@pytest.mark.parametrize("mirrored", [False, True])
def test_logs_of_one_sign_are_relative_to_the_bin_of_their_mean(mirrored):
    sums = np.zeros((9, gauss.N_POWERS))
    sums[2:7, 0], sums[2:7, 1] = [1.0, 0.0, 2.0, 5.0, 3.0], [0.9, 0.0, -1.0, 2.0, 0.5]
    at = 40 + math.floor((2 * 1.0 + 4 * 2.0 + 5 * 5.0 + 6 * 3.0) / 11.0)
    assert sample._middle(sums, 40, 2, 7, mirrored) == (-at if mirrored else at)
