"""Location, scale and maps of outlier scores from chunks equal those of the rows in memory."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from engines import Engine
from numpy.testing import assert_allclose, assert_array_equal

from powerkern.location import METHODS, LocationScale, LocationStatus, location_scale, points_estimator
from powerkern.outliers import ScoreScaling, fit_scaling
from powerkern.sketch import MapReduce, location_chunks
from powerkern.sketch.engine import Passes
from powerkern.sketch.location import LocatedChunks, _at_rank, _Estimate, _LocationColumn, _values_at
from powerkern.sketch.order import CellMoments, moment_points

rng = np.random.default_rng(140)
N = 20_000
X = np.column_stack(
    [
        rng.lognormal(size=N),
        1e6 + 1e-3 * rng.normal(size=N),
        np.round(rng.gamma(3.0, size=N), 1),
        rng.standard_cauchy(size=N),
        np.where(rng.uniform(size=N) < 0.9, np.nan, rng.normal(size=N)),
        np.where(rng.uniform(size=N) < 0.7, 0.0, rng.normal(size=N)),
    ]
)
X[: N // 10, 0] += 30.0
rng.shuffle(X)
WEIGHT = rng.integers(0, 4, N).astype(float)
CUTS = [0, 1, 1, 5000, 14_000]
#: Largest difference from results in memory, in units of the scale. Methods not listed differ by rounding only (1e-12).
LOOSE = {"bisquare": 1e-9, "bisquare-proposal2": 1e-9, "biweight": 2e-6}


def assert_close(found: LocationScale, expected: LocationScale, tolerance: float) -> None:
    scale = np.where(expected.scale > 0.0, expected.scale, 1.0)
    with np.errstate(invalid="ignore"):
        assert_allclose(
            (found.loc - expected.loc) / scale, np.where(np.isnan(expected.loc), np.nan, 0.0), atol=tolerance
        )
    assert_allclose(found.scale, expected.scale, rtol=tolerance)
    assert_array_equal(found.status, expected.status)


@pytest.mark.parametrize("method", [method for method in METHODS if not method.endswith("-qn")])
def test_every_method_agrees_with_the_result_in_memory(method):
    size = np.abs(X[:, 1]).max() / 1e-3 * 1e-15  # rounding errors in sums over a cluster far from 0
    tolerance = LOOSE.get(method, 1e-12) + size
    engine = Engine(*((part,) for part in np.split(X, CUTS)))
    assert_close(location_chunks(MapReduce(engine), method), location_scale(X, method), tolerance)
    assert engine.passes <= 8
    weighted = location_chunks(np.split(X, CUTS), method, sample_weight=np.split(WEIGHT, CUTS))
    assert_close(weighted, location_scale(X, method, sample_weight=WEIGHT), tolerance)


def test_a_scale_of_all_pairs_is_refused():
    with pytest.raises(ValueError, match="method='median-qn' compares all pairs of values, which summaries of chunks"):
        location_chunks(np.split(X, CUTS), "median-qn")


def test_the_median_is_found_in_four_passes_to_the_last_bit():
    engine = Engine(*((part,) for part in np.split(X, CUTS)))
    found, expected = location_chunks(MapReduce(engine)), location_scale(X)
    assert engine.passes <= 4
    assert_array_equal(found.loc, expected.loc)
    assert_allclose(found.scale, expected.scale, rtol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["median-niqr", "huber-proposal2", "biweight"])
def test_any_order_of_merging_gives_the_same_bits(method):
    chunks = [(part,) for part in np.split(X, CUTS)]
    found = [location_chunks(MapReduce(Engine(*chunks, seed=seed)), method) for seed in (0, 1)]
    assert_array_equal(*(np.array([one.loc, one.scale]) for one in found))


@pytest.mark.parametrize("sides", ["upper", "both"])
def test_trimmed_methods_agree_with_the_result_in_memory(sides):
    options = {"fraction": 0.07, "sides": sides}
    found = location_chunks(np.split(X, CUTS), "trimmed-sd", **options)
    assert_close(found, location_scale(X, "trimmed-sd", **options), 1e-8)


def test_short_and_empty_columns_agree_with_the_result_in_memory():
    short = np.column_stack([np.arange(5.0), np.full(5, np.nan), np.full(5, 3.0)])
    with pytest.warns(UserWarning, match="column 1"):
        found = location_chunks([short[:2], short[2:]], "huber")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = location_scale(short, "huber")
    assert_close(found, expected, 1e-15)
    assert found.status[1] == LocationStatus.EMPTY


def test_wrong_use_is_refused():
    with pytest.raises(ValueError, match="in chunk 1: row 1: the value is inf"):
        location_chunks([X[:, 0], np.array([1.0, np.inf])])
    with pytest.raises(TypeError, match="method 'median-mad' has no constant 'k'; it has: none"):
        location_chunks([X], k=2.0)
    with pytest.raises(ValueError, match="there are no chunks"):
        location_chunks([])


# --- maps of outlier scores -------------------------------------------------------------------------------


@pytest.mark.parametrize(("center", "scale"), [("mean", "nmad"), ("median", "niqr"), ("mean", "sd")])
def test_score_maps_from_chunks_agree_with_those_in_memory(center, scale):
    scores = np.column_stack([rng.gamma(2.0, size=N), rng.lognormal(size=N)])
    scores[50:90, 0] = np.nan
    chunks = np.split(scores, CUTS)
    method = {"nmad": "mad"}.get(scale, scale)
    found = ScoreScaling("gaussian", center, scale, *location_chunks(chunks, f"{center}-{method}"))
    expected = fit_scaling(scores, center, scale)
    assert_allclose(found.probability(chunks[-1]), expected.probability(chunks[-1]), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("n", [6001, 6002, 6003, 6004])
def test_quartiles_are_exact_at_every_fraction_of_a_rank(n):
    X = np.random.default_rng(n).standard_t(3, size=(n, 12))
    found, whole = location_chunks(np.array_split(X, 2), "median-niqr"), location_scale(X, "median-niqr")
    np.testing.assert_allclose([found.loc, found.scale], [whole.loc, whole.scale], rtol=1e-14)


def test_several_estimates_share_the_counts_of_one_reading():
    engine = Engine(*((part,) for part in np.split(X[:, :2], CUTS)))
    chunks = LocatedChunks(Passes(engine))
    for method, constants in (("median-mad", {}), ("huber", {"k": 1.2}), ("mean-sd", {})):
        expected = location_scale(X[:, :2], method, **constants)
        assert_close(chunks.locate(method, **constants), expected, 1e-11 + np.abs(X[:, 1]).max() / 1e-3 * 1e-15)


# --- cells to divide ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [0.0, 0.5, 2.0, 2.5, 4.0, 4.25, 8.0])
def test_cells_at_a_rank_hold_its_order_statistics(rank):
    weight = np.array([3.0, 1.0, 1.0, 4.0])
    owner = np.repeat(np.arange(4), weight.astype(int))
    expected = {owner[int(np.floor(rank))], owner[int(np.ceil(rank))]}
    assert set(np.flatnonzero(_at_rank(weight, rank))) == set(range(min(expected), max(expected) + 1))
    values = np.array([0.5, -2.0, 7.0, 3.0])
    rows = np.sort(np.repeat(values, weight.astype(int)))
    assert _values_at(values, weight, rank) == (rows[int(np.floor(rank))], rows[int(np.ceil(rank))])


@pytest.mark.parametrize(
    ("method", "constants", "fractions", "trimmed", "mad", "corners", "reach"),
    [
        ("mean-sd", {}, (), (0.0, 0.0), False, (), 0.0),
        ("median-mad", {}, (0.5,), (0.0, 0.0), True, (), 0.0),
        ("mean-mad", {}, (0.5,), (0.0, 0.0), True, (), 0.0),
        ("median-sd", {}, (0.5,), (0.0, 0.0), False, (), 0.0),
        ("median-niqr", {}, (0.5, 0.25, 0.75), (0.0, 0.0), False, (), 0.0),
        ("mean-niqr", {}, (0.25, 0.75), (0.0, 0.0), False, (), 0.0),
        ("trimmed-sd", {"fraction": 0.1, "sides": "upper"}, (), (0.0, 0.1), False, (), 0.0),
        ("trimmed-sd", {"fraction": 0.1, "sides": "both"}, (), (0.1, 0.1), False, (), 0.0),
        ("huber", {"k": 1.25}, (0.5,), (0.0, 0.0), True, (1.25,), 0.0),
    ],
)
def test_estimates_depend_on_order_statistics_and_corners(method, constants, fractions, trimmed, mad, corners, reach):
    found = _Estimate.from_method(method, constants)
    assert found[1:] == (fractions, trimmed, mad, corners, reach)


def some_cells():
    rng = np.random.default_rng(0)
    low = np.arange(12.0) + rng.random(12) * 0.3
    high = low + rng.random(12) * 0.6
    mean = (low + high) / 2.0
    weight = np.arange(1.0, 13.0)
    return CellMoments(weight, weight, low, high, mean, (high - low) / 4.0, np.full(12, 0.5))


def masks_of(cells, estimate, loc=5.0, scale=2.0):
    column = _LocationColumn.__new__(_LocationColumn)
    column.cells, column.row = cells, lambda: np.array([loc, scale])
    return list(column._inexact_cells(estimate))


def test_cells_at_corners_of_psi_are_divided_and_wide_heavy_ones_of_a_polynomial():
    cells = some_cells()
    corner = (cells.low[7] - 5.0) / 2.0  # the lower end of a cell is in it
    function = _Estimate.from_method("mean-sd", {}).function
    below, above, wide = masks_of(cells, _Estimate(function, (), (0.0, 0.0), False, (corner,), 1.5))
    assert np.flatnonzero(above).tolist() == [7]
    at = 5.0 - 2.0 * corner
    assert below.tolist() == ((cells.low <= at) & (at <= cells.high)).tolist()
    width = cells.high - cells.low
    uneven = cells.weight / 78.0 * (width / 2.0) ** 3 > 1e-10
    assert wide.tolist() == (uneven & (abs(cells.mean - 5.0) < 1.5 * 2.0 + width)).tolist()
    assert 0 < wide.sum() < 12
    point = cells._replace(high=cells.low, mean=cells.low)
    assert not masks_of(point, _Estimate(function, (), (0.0, 0.0), False, (), 1.5))[0].any()


def test_cells_at_trimming_points_are_divided():
    cells = some_cells()
    function = _Estimate.from_method("mean-sd", {}).function
    owner = np.repeat(np.arange(12), np.arange(1, 13))
    below, above = masks_of(cells, _Estimate(function, (), (0.1, 0.2), False, (), 0.0))
    for mask, cut in ((below, np.floor(7.8)), (above, 78 - np.floor(15.6))):
        expected = {owner[int(cut) - 1], owner[int(cut)]}  # the last row left out, and the first that is kept
        assert set(np.flatnonzero(mask)) == expected
    assert masks_of(cells, _Estimate(function, (), (0.0, 0.0), False, (), 0.0)) == []


def test_cells_that_may_hold_the_median_distance_are_divided():
    """The row at the median distance is in one of the chosen cells, wherever the rows lie within their cells."""
    cells = some_cells()
    column = _LocationColumn.__new__(_LocationColumn)
    column.cells = cells
    mask = column._at_median_distance(cells.weight.sum())
    x, w, _ = moment_points(cells)
    median = location_scale(np.repeat(cells.mean, cells.weight.astype(int))).loc[0]
    assert abs(median - 8.0) < 1.0
    rng = np.random.default_rng(1)
    owner = np.repeat(np.arange(12), cells.weight.astype(int))
    center = points_estimator("median-mad", {})(x, w)[0]
    for _ in range(50):
        rows = cells.low[owner] + (cells.high - cells.low)[owner] * rng.random(owner.size)
        order = np.argsort(abs(rows - center))
        assert mask[owner[order[[38, 39]]]].all()
    assert 0 < mask.sum() < 9
