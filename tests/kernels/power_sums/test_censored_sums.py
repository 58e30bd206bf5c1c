"""Fits from power sums and counted intervals, compared with 60-digit maxima and with kernels that read all values."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference_files import read_reference

from powerkern._status import Route, Status
from powerkern._typing import FloatArray
from powerkern.kernels.censored import fit as direct
from powerkern.kernels.censored.fit import N_ABOVE, N_BELOW, N_BETWEEN, N_CENSORED_FIELDS
from powerkern.kernels.censored.scratch import new_censored_work
from powerkern.kernels.likelihood.scratch import new_scratch, new_work
from powerkern.kernels.power_sums import censored, gauss, grids, ranges, sample
from powerkern.kernels.power_sums import sums as sum_kernels
from powerkern.kernels.power_sums.fit import TOLERANCE
from powerkern.kernels.results import CURVATURE, LMBDA, LOC, N_OBS, N_RESULTS, NLL, ROUTE, SCALE, STATUS, X_MAX, X_MIN
from powerkern.kernels.transforms.family import BOX_COX, FAMILIES, YEO_JOHNSON

INF, NAN = math.inf, math.nan


class Summed(NamedTuple):
    """A column as its power sums, their grid, and a table of intervals with their weights."""

    sums: FloatArray
    grid: FloatArray
    intervals: FloatArray
    n_values: int


def case_columns(case: dict[str, Any]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return lower ends, upper ends and weights of the cells of a case of limits.json."""
    low = np.array([-INF if end is None else end for end in case["low"]])
    high = np.array([INF if end is None else end for end in case["high"]])
    return low, high, np.array(case["weight"])


def summarize(
    low: FloatArray, high: FloatArray, weight: FloatArray, family: int, coarser: int = 0, stream: bool = False
) -> Summed:
    """Summarize cells as power sums of the values and a table of the intervals.

    Parameters
    ----------
    low, high, weight : (n,) ndarray
        Ends and weights of the cells; equal ends are a value.
    family : int
        Code of the transform.
    coarser : int
        The bins of the grid are wider than usual by a factor of ``2**coarser``.
    stream : bool
        Whether the grid is that of a stream.
    """
    is_value = low == high
    x, w = low[is_value], weight[is_value]
    row = np.zeros((1, ranges.N_RANGE))
    row[0, ranges.R_MIN], row[0, ranges.R_MAX] = INF, -INF
    ranges.range_columns(x.reshape(1, -1), w, family, 0, 1, row)
    ends = np.concatenate([low, high])
    ends = ends[np.isfinite(ends)]
    row[0, ranges.R_MIN], row[0, ranges.R_MAX] = ends.min(), ends.max()
    grid = np.empty((1, grids.N_GRID))
    grids.grid_columns(row, family, 0.0, int(stream), grid)
    grid[0, grids.G_QUANTUM] = -50.0
    if coarser:
        grids.lay_columns(grid, family, grid[:, grids.G_EXPONENT] + coarser, 10**6)
    bins = int(grid[0, grids.G_BINS])
    sums, inside = np.zeros(bins * gauss.N_POWERS), np.ones(1, dtype=np.int64)
    sum_kernels.sketch_columns(
        x.reshape(1, -1), w, family, grid, sum_kernels.new_chunk(), sums, np.array([0, bins]), inside
    )
    assert inside[0]
    pairs, place = np.unique(np.column_stack([low, high])[~is_value], axis=0, return_inverse=True)
    table = np.column_stack([pairs, np.bincount(place.ravel(), weight[~is_value], len(pairs))])
    return Summed(sums.reshape(-1, gauss.N_POWERS), grid[0], table, int(is_value.sum()))


def joined(columns: list[Summed]) -> tuple[tuple[FloatArray, Any, Any, FloatArray], tuple[FloatArray, Any], Any, Any]:
    """Return the kernels' arguments for several columns.

    They are the sums with the first bin of each column, the grids, the tables with the first interval of each column,
    and scratch arrays.
    """
    starts = np.cumsum([0, *(len(column.sums) for column in columns)])
    interval_starts = np.cumsum([0, *(len(column.intervals) for column in columns)])
    own = new_censored_work(0, max(len(column.intervals) for column in columns))
    scratch = sample.new_nodes(max(len(column.sums) for column in columns)), new_scratch()
    sums = np.concatenate([column.sums for column in columns])
    table = np.concatenate([column.intervals for column in columns]), interval_starts
    return (sums, starts), np.array([column.grid for column in columns]), table, (*scratch, own)


def fit_sums(columns: list[Summed], family: int, lmbda: float = NAN) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Fit columns from their sums; return rows of results, rows on censored cells, and error bounds on lambda.

    With `lmbda`, all columns are evaluated at this lambda.
    """
    sums, cells, table, scratch = joined(columns)
    p = len(columns)
    out, out_censored, error = np.full((p, N_RESULTS), 7.0), np.full((p, N_CENSORED_FIELDS), 7.0), np.full(p, 7.0)
    roundings = np.array([[1.0, column.n_values, 0.0, 0.0] for column in columns])
    censored.fit_censored_sums(
        *sums, family, cells, roundings, *table, np.full(p, lmbda), *scratch, out, out_censored, error
    )
    return out, out_censored, error


def fit_cells(
    low: FloatArray, high: FloatArray, weight: FloatArray, family: int, lmbda: float = NAN
) -> tuple[FloatArray, FloatArray]:
    """Fit cells with the kernel that reads all values; return its row of results and its row on censored cells.

    Parameters
    ----------
    low, high, weight : (n,) ndarray
        Ends and weights of the cells.
    family : int
        Code of the transform.
    lmbda : float
        Lambda; NaN to estimate it.
    """
    row, out_censored = np.empty((1, N_RESULTS)), np.empty((1, N_CENSORED_FIELDS))
    cells, scratch = as_cells(low, high)
    direct.fit_censored_columns(*cells, weight, family, np.array([lmbda]), *scratch, row, out_censored)
    return row[0], out_censored[0]


def as_cells(low: FloatArray, high: FloatArray) -> tuple[tuple[FloatArray, FloatArray], tuple[Any, Any]]:
    """Return arguments of the kernel that reads all values, for cells from `low` to `high`, and scratch arrays."""
    x = np.where(np.isinf(low), high, low)
    other = np.where(np.isinf(low), -INF, np.where(np.isinf(high), INF, np.where(low < high, high, NAN)))
    return (x[np.newaxis], other[np.newaxis]), (new_work(x.size), new_censored_work(x.size, x.size))


CASES = [
    case
    for case in read_reference("limits.json")["cases"]
    if len({low for low, high in zip(case["low"], case["high"], strict=True) if low == high}) > 1
][::3]
SKEWED = np.exp(np.random.default_rng(3).normal(size=20))
BOTH = np.random.default_rng(4).normal(0.5, 2.0, 20)


def limited(x: FloatArray, family: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Censor 20 % of a column below, 15 % above, and three values by intervals; return both ends, and weights."""
    bottom, top = np.quantile(x, [0.2, 0.85])
    low, high = np.where(x < bottom, -INF, x), np.where(x < bottom, bottom, x)
    high[x > top], low[x > top] = INF, top
    low[:3], high[:3] = np.floor(x[:3]) if family == YEO_JOHNSON else 0.5 * x[:3], np.ceil(x[:3])
    return low, high, np.random.default_rng(5).uniform(0.5, 2.0, x.size)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_maxima_are_those_of_the_reference(number: int) -> None:
    case = CASES[number]
    family = FAMILIES[case["family"]]
    cells = case_columns(case)
    [row], [found], [error] = fit_sums([summarize(*cells, family)], family)
    assert (row[STATUS], row[ROUTE]) == (Status.SCANNED, Route.POWER_SUMS)
    assert abs(row[LMBDA] - case["lmbda"]) <= error
    assert error <= TOLERANCE * max(1.0, abs(row[LMBDA])) + 2e-9 * case["se"]
    assert abs(row[LMBDA] - case["lmbda"]) <= 1e-9 * case["se"]
    assert abs(row[LOC] - case["loc"]) <= 1e-8 * case["loc_se"]
    assert abs(row[SCALE] - case["scale"]) <= 1e-8 * case["scale_se"]
    assert_allclose(1.0 / np.sqrt(row[CURVATURE] * row[N_OBS]), case["se"], rtol=1e-7)
    expected, counts = fit_cells(*cells, family)
    assert_allclose(found, counts, rtol=1e-6)
    assert_array_equal(row[[X_MIN, X_MAX]], expected[[X_MIN, X_MAX]])
    assert_allclose(row[N_OBS], cells[2].sum(), rtol=1e-14)
    assert_allclose(row[NLL], expected[NLL], rtol=1e-11, atol=1e-12)


def test_cases_are_of_every_kind() -> None:
    assert len({(case["family"], case["kind"]) for case in CASES}) >= 10


def test_each_column_has_its_own_sums_and_intervals() -> None:
    columns = [summarize(*limited(x, YEO_JOHNSON), YEO_JOHNSON) for x in (BOTH, SKEWED, -SKEWED)]
    together = fit_sums(columns, YEO_JOHNSON)
    for j, column in enumerate(columns):
        for of_all, alone in zip(together, fit_sums([column], YEO_JOHNSON), strict=True):
            assert_array_equal(of_all[j], alone[0])
    at = np.column_stack([together[0][:, LMBDA], [0.02, 0.05, 0.1]])
    sums, cells, table, scratch = joined(columns)
    profile, ends = np.empty((3, 2)), np.empty((3, 2))
    censored.profile_censored_sums(*sums, YEO_JOHNSON, cells, *table, np.array([0.3, 1.2]), *scratch, profile)
    censored.interval_censored_sums(*sums, YEO_JOHNSON, cells, *table, at, *scratch, ends)
    for j, x in enumerate((BOTH, SKEWED, -SKEWED)):
        low, high, weight = limited(x, YEO_JOHNSON)
        of_cells, work = as_cells(low, high)
        expected = np.empty((2, 1, 2))
        direct.profile_censored_columns(*of_cells, weight, YEO_JOHNSON, np.array([0.3, 1.2]), *work, expected[0])
        direct.interval_censored_columns(*of_cells, weight, YEO_JOHNSON, at[j : j + 1], *work, expected[1])
        assert_allclose(profile[j], expected[0, 0], rtol=1e-10, atol=1e-12)
        assert_allclose(ends[j], expected[1, 0], rtol=1e-8)


@pytest.mark.parametrize("family, x", [(BOX_COX, SKEWED), (YEO_JOHNSON, BOTH), (YEO_JOHNSON, -SKEWED)])
def test_a_given_lambda_is_evaluated(family: int, x: FloatArray) -> None:
    cells = limited(x, family)
    [row], [found], [error] = fit_sums([summarize(*cells, family)], family, 0.4)
    expected, counts = fit_cells(*cells, family, 0.4)
    assert (row[STATUS], row[LMBDA], error) == (Status.FIXED, 0.4, 0.0)
    assert_allclose(row[[LOC, SCALE, NLL]], expected[[LOC, SCALE, NLL]], rtol=1e-9)
    assert_allclose(found[[N_BELOW, N_ABOVE, N_BETWEEN]], counts[[N_BELOW, N_ABOVE, N_BETWEEN]], rtol=1e-14)
    assert (found[[N_BELOW, N_ABOVE, N_BETWEEN]] > 0.0).all()
    assert np.isnan(found[[direct.LOC_ERROR, direct.SCALE_ERROR]]).all()


@pytest.mark.parametrize(
    "family, x",
    [
        (BOX_COX, np.exp(np.random.default_rng(2).permutation(np.linspace(0.0, 0.19, 20)))),
        (YEO_JOHNSON, SKEWED),
        (YEO_JOHNSON, -SKEWED),
    ],
)
def test_fits_on_the_grids_of_streams(family: int, x: FloatArray) -> None:
    """Such a grid has signed logs for Yeo-Johnson, and for Box-Cox a reference that may lie outside of the data."""
    low, high, weight = limited(x, family)
    low[:3], high[:3] = x[:3] - 0.01, x[:3] + 0.01
    low, high = np.maximum(low, -INF), np.minimum(high, INF)
    column = summarize(low, high, weight, family, 0, True)
    if family == BOX_COX:
        assert column.grid[grids.G_REF] < column.grid[grids.G_MIN]
    [row], [found], [error] = fit_sums([column], family)
    expected, counts = fit_cells(low, high, weight, family)
    assert abs(row[LMBDA] - expected[LMBDA]) <= error
    assert_allclose(row[[LMBDA, LOC, SCALE, NLL]], expected[[LMBDA, LOC, SCALE, NLL]], rtol=1e-6, atol=1e-9)
    assert_allclose(found, counts, rtol=1e-5)


@pytest.mark.parametrize("status", [Status.SCANNED, Status.MULTIMODAL, Status.NOT_CERTIFIED, Status.AT_END])
def test_lambda_is_resolved_if_its_error_and_those_of_the_moments_are_small(
    status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    column, fitted = summarize(*limited(SKEWED**0.1, BOX_COX), BOX_COX), censored.fit_prepared_column
    sums, cells, (table, _), (nodes, scratch, own) = joined([column])
    bounds, row, found = [0.0, 0.0], np.empty(N_RESULTS), np.empty(N_CENSORED_FIELDS)

    def fit_prepared(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            result = fitted(*arguments)
        row[STATUS] = status
        return result

    monkeypatch.setattr(censored, "fit_prepared_column", fit_prepared)
    monkeypatch.setattr(censored, "_bound_errors", lambda *_: tuple(bounds))
    rounded = censored.rounded_sums(cells[0], np.array([1.0, 20.0, 0.0, 0.0]))

    def fit() -> float:
        with np.errstate(all="ignore"):
            error: float = censored._fit_column(
                sums[0], 0.0, cells[0], rounded, table, NAN, nodes, scratch, own, row, found
            )
        return error

    searched = fit()
    if status not in (Status.SCANNED, Status.MULTIMODAL):
        assert (searched, row[STATUS]) == (INF, status)
        return
    assert 0.0 < searched < 1e-8 / math.sqrt(row[CURVATURE] * row[N_OBS])
    assert abs(row[LMBDA]) > 2.0
    limit = max(TOLERANCE * abs(row[LMBDA]), searched)
    for error, of_moments, is_good in (
        (0.99 * limit, 0.0, True),
        (1.01 * limit, 0.0, False),
        (0.0, 0.99 * censored.SD_TOLERANCE, True),
        (0.0, 1.01 * censored.SD_TOLERANCE, False),
    ):
        bounds[:] = error, of_moments
        assert fit() == error + searched
        assert row[STATUS] == (status if is_good else Status.UNRESOLVED)


@pytest.mark.parametrize("coarser", [2, 4, 6])
@pytest.mark.parametrize("family, x", [(BOX_COX, SKEWED), (YEO_JOHNSON, BOTH), (YEO_JOHNSON, -SKEWED)])
def test_the_error_stays_below_its_bound(family: int, x: FloatArray, coarser: int) -> None:
    """On grids of wide bins, the bound exceeds the error of lambda, by a factor of at most 1,000."""
    x = np.concatenate([x, 1.01 * x, 0.98 * x, 1.03 * x, 0.95 * x])
    cells = limited(x, family)
    [row], _, [error] = fit_sums([summarize(*cells, family, coarser)], family)
    actual = abs(row[LMBDA] - fit_cells(*cells, family)[0][LMBDA])
    standard_error = 1.0 / math.sqrt(row[CURVATURE] * row[N_OBS])
    assert actual <= error
    assert error <= 1000.0 * actual + 2e-9 * standard_error
    assert (row[STATUS] == Status.UNRESOLVED) == (error > 2e-9 * standard_error) == (coarser > 2)


def test_the_bound_is_equal_for_the_mirrored_column() -> None:
    """Yeo-Johnson of -x at 2 - lambda is minus that of x at lambda. Wide bins dominate the bound."""
    low, high, weight = limited(np.repeat(BOTH, 5) * np.tile([1.0, 1.01, 0.98, 1.03, 0.95], 20), YEO_JOHNSON)
    [row], [found], [error] = fit_sums([summarize(low, high, weight, YEO_JOHNSON, 4)], YEO_JOHNSON)
    [mirrored], [other], [other_error] = fit_sums([summarize(-high, -low, weight, YEO_JOHNSON, 4)], YEO_JOHNSON)
    assert mirrored[LMBDA] == pytest.approx(2.0 - row[LMBDA], abs=error + other_error)
    assert other_error == pytest.approx(error, rel=0.05)
    assert_allclose(other[[N_ABOVE, N_BELOW]], found[[N_BELOW, N_ABOVE]], rtol=1e-12)


@pytest.mark.parametrize("kind", ["below", "above", "between"])
def test_a_column_with_intervals_of_one_kind(kind: str) -> None:
    """Compare fits of columns with intervals of one kind; the weights of the other kinds must be 0."""
    low, high, weight = limited(SKEWED, BOX_COX)
    is_of_kind = {"below": np.isinf(low), "above": np.isinf(high), "between": np.isfinite(low + high) & (low < high)}
    kept = is_of_kind[kind] | (low == high)
    cells = low[kept], high[kept], weight[kept]
    [row], [found], [error] = fit_sums([summarize(*cells, BOX_COX)], BOX_COX)
    expected, counts = fit_cells(*cells, BOX_COX)
    counted = weight[is_of_kind[kind]].sum()
    position = {"below": N_BELOW, "above": N_ABOVE, "between": N_BETWEEN}[kind]
    assert [found[k] for k in (N_BELOW, N_ABOVE, N_BETWEEN)] == [
        pytest.approx(counted if k == position else 0.0, rel=1e-14) for k in (N_BELOW, N_ABOVE, N_BETWEEN)
    ]
    assert abs(row[LMBDA] - expected[LMBDA]) <= error
    assert_allclose(row[[LOC, SCALE, NLL]], expected[[LOC, SCALE, NLL]], rtol=1e-9)
    assert_allclose(found, counts, rtol=1e-6)


def test_values_in_one_place_are_not_resolved() -> None:
    """Two equal values have a single node, and a fit needs two: the status is UNRESOLVED."""
    low, high = np.array([2.0, 2.0, 1.0, -INF]), np.array([2.0, 2.0, 3.0, 4.0])
    column = summarize(low, high, np.ones(4), BOX_COX)
    [row], [found], [error] = fit_sums([column], BOX_COX)
    assert (row[STATUS], error) == (Status.UNRESOLVED, INF)
    assert_array_equal(found[[N_BELOW, N_ABOVE, N_BETWEEN]], [1.0, 0.0, 1.0])
    sums, cells, table, scratch = joined([column])
    out = np.zeros((2, 1, 2))
    censored.profile_censored_sums(*sums, BOX_COX, cells, *table, np.array([0.3, 1.2]), *scratch, out[0])
    censored.interval_censored_sums(*sums, BOX_COX, cells, *table, np.array([[1.0, 0.1]]), *scratch, out[1])
    assert np.isnan(out).all()
