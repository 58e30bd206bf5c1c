"""Ranges of columns, compared with exact arithmetic and NumPy: weights in three digits, merges, parts of rows."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from powerkern._estimators import ranges
from powerkern._estimators.power_sums import is_on_reference_grid, quantum_exponents, references_for
from powerkern._estimators.ranges import merge_ranges, range_matrix, split_weights, total_weights
from powerkern.kernels.power_sums import ranges as fields
from powerkern.kernels.results import BAD_INFINITE, BAD_NOT_POSITIVE
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON


def of_weights(*weights: float) -> np.ndarray:
    """Return the ranges of k empty columns, (k, N_RANGE), with these k total weights."""
    parts = np.zeros((len(weights), fields.N_RANGE))
    parts[:, fields.R_WEIGHT] = weights
    parts[:, fields.R_MIN], parts[:, fields.R_MAX] = np.inf, -np.inf
    return parts


@pytest.mark.parametrize(
    "weight", [0.0, 1.0, 5.0, 0.3, np.pi, 2.0**26 - 1, 2.0**26, 2.0**26 + 0.5, 1e-300, 1e300, 2.0**52 + 1, 5e-324]
)
def test_three_digits_hold_a_weight_exactly(weight: float) -> None:
    parts = of_weights(weight, 3.0, 0.1)
    found = split_weights(parts)
    assert total_weights(found)[0] == weight
    digits = found[:, [fields.R_WEIGHT, fields.R_WEIGHT_1, fields.R_WEIGHT_2]]
    assert ((digits >= 0.0) & (digits < fields.LIMB) & (digits == np.floor(digits))).all()
    np.testing.assert_array_equal(parts, of_weights(weight, 3.0, 0.1))  # the argument is unchanged


def test_numbers_of_values_are_one_digit() -> None:
    found = split_weights(of_weights(0.0, 7.0, 2.0**26 - 1))
    assert found[:, fields.R_WEIGHT].tolist() == [0.0, 7.0, 2.0**26 - 1]
    assert not found[:, [fields.R_WEIGHT_1, fields.R_WEIGHT_2, fields.R_LEVEL]].any()


@pytest.mark.parametrize("decades", [0.0, 3.0, 30.0, 300.0])
def test_merged_weights_are_sums_in_any_order(decades: float) -> None:
    rng = np.random.default_rng(int(decades))
    weights = 10.0 ** rng.uniform(-decades, decades / 2, 9)
    exact = float(sum(map(Fraction, weights)))
    totals = set()
    for order in itertools.islice(itertools.permutations(range(9)), 0, 40_000, 4001):
        merged = merge_ranges(split_weights(of_weights(*weights[list(order)])[:, np.newaxis]))
        totals.add(float(total_weights(merged)[0]))
    assert len(totals) == 1
    assert totals.pop() == pytest.approx(exact, rel=2.0**-50)


def test_weights_two_digits_below_the_largest_are_added_and_smaller_ones_are_dropped() -> None:
    limb = fields.LIMB
    for small, expected in ((1.0, 1.0), (1.0 / limb, 1.0 / limb), (limb**-2, 0.0), (limb**-3, 0.0)):
        merged = merge_ranges(split_weights(of_weights(limb, small, limb * 3.0)[:, np.newaxis]))
        total = Fraction(0)
        for k, digit in enumerate((fields.R_WEIGHT, fields.R_WEIGHT_1, fields.R_WEIGHT_2)):
            total += Fraction(merged[0, digit]) * Fraction(limb) ** (int(merged[0, fields.R_LEVEL]) - k)
        assert total == Fraction(limb) * 4 + Fraction(expected)


def test_a_weight_of_0_has_no_level() -> None:
    merged = merge_ranges(split_weights(of_weights(0.0, 1e-200)[:, np.newaxis]))
    assert total_weights(merged)[0] == 1e-200
    empty = merge_ranges(np.stack([split_weights(of_weights(0.0, 0.5)), split_weights(of_weights(0.0, 2.0**30))]))
    np.testing.assert_array_equal(total_weights(empty), [0.0, 0.5 + 2.0**30])


@pytest.mark.parametrize(
    "counts, expected",
    [
        ([3.0, 4.0], 7.0),
        ([BAD_NOT_POSITIVE, 4.0], BAD_NOT_POSITIVE),
        ([4.0, BAD_INFINITE], BAD_INFINITE),
        ([BAD_NOT_POSITIVE, BAD_INFINITE], BAD_INFINITE),
        ([BAD_INFINITE, BAD_NOT_POSITIVE], BAD_INFINITE),
        ([0.0, 0.0], 0.0),
    ],
)
def test_merged_ranges_keep_extremes_counts_and_the_worst_code(counts: list[float], expected: float) -> None:
    parts = np.stack([of_weights(1.0, 1.0), of_weights(1.0, 1.0)])
    parts[:, 0, fields.R_COUNT], parts[:, 1, fields.R_COUNT] = counts, [5.0, 6.0]
    parts[:, 0, fields.R_MIN], parts[:, 0, fields.R_MAX] = [2.0, -1.0], [3.0, 9.0]
    merged = merge_ranges(parts)
    assert merged[:, fields.R_COUNT].tolist() == [expected, 11.0]
    assert merged[0, [fields.R_MIN, fields.R_MAX]].tolist() == [-1.0, 9.0]
    assert merged[1, [fields.R_MIN, fields.R_MAX]].tolist() == [np.inf, -np.inf]
    only = parts[:1]
    np.testing.assert_array_equal(merge_ranges(only), parts[0])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("family", [BOX_COX, YEO_JOHNSON])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_ranges_of_many_blocks_are_numpys_extremes(
    family: int, dtype: type, order: str, is_weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    x = np.asarray(rng.lognormal(size=(2500, 70)) - (family == YEO_JOHNSON), dtype=dtype, order=order)
    x[rng.random(x.shape) < 0.1] = np.nan
    x[:, 4] = np.nan
    weight = rng.integers(0, 3, len(x)).astype(float) if is_weighted else None
    monkeypatch.setattr(ranges, "BLOCK_ROWS", 1000)
    found = range_matrix(x, family, weight, 2)
    seen = np.where(np.reshape(np.ones(len(x)) if weight is None else weight, (-1, 1)) > 0.0, x, np.nan)
    some = ~np.isnan(seen).all(axis=0)
    np.testing.assert_array_equal(found[some, fields.R_MIN], np.nanmin(seen[:, some], axis=0))
    np.testing.assert_array_equal(found[some, fields.R_MAX], np.nanmax(seen[:, some], axis=0))
    np.testing.assert_array_equal(found[:, fields.R_COUNT], np.count_nonzero(~np.isnan(seen), axis=0))
    total = np.count_nonzero(~np.isnan(seen), axis=0) if weight is None else weight @ ~np.isnan(seen)
    np.testing.assert_array_equal(total_weights(found), total)


@pytest.mark.parametrize(
    "shape, n_threads, n_rows",
    [
        ((10**6, 4), 1, 131_072),
        ((10**6, 4), 2, 65_536),
        ((500_000, 4), 1, 131_072),
        ((500_000, 4), 2, 32_768),
        ((1_048_575, 4), 2, 65_536),
        ((1_048_576, 4), 2, 131_072),
        ((100_000, 1), 8, 131_072),  # a part keeps 131,072 values
        ((100_000, 2), 8, 65_536),
        ((100_000, 100), 4, 4096),
    ],
)
def test_blocks_are_halved_until_all_threads_have_parts(shape: tuple[int, int], n_threads: int, n_rows: int) -> None:
    assert ranges._rows_of_ranges(shape, n_threads) == n_rows


def test_a_total_weight_of_2_to_59_quanta_fits() -> None:
    weight = np.array([1.0, 1.5, 1e6, 3e-280, 0.0])
    exponents = quantum_exponents(weight)
    quanta = weight / 2.0**exponents
    assert ((quanta[:4] >= 2.0**58) & (quanta[:4] <= 2.0**59)).all()
    for quantum in (1.0, -1.0):  # both fit in float64, however small the weight
        factor = np.ldexp(1.0, (quantum * quantum_exponents(np.array([5e-324, 0.0, 1e300]))).astype(int))
        assert (np.isfinite(factor) & (factor > 0.0)).all()


def test_references_of_streams_are_on_their_own_grid() -> None:
    from powerkern._estimators.power_sums import make_grids
    from powerkern.kernels.power_sums import grids

    x = np.exp(np.linspace(-3.0, 4.0, 400)).reshape(-1, 1) * [1.0, 1e5, 1e-7]
    cells = make_grids(range_matrix(x, BOX_COX, None, 1), BOX_COX, stream=True)
    logs, references = references_for(cells)
    np.testing.assert_allclose(np.exp(logs), references, rtol=1e-13)
    assert is_on_reference_grid(cells).all()
    off = cells.copy()
    off[:, grids.G_REF] *= [1.0 + 1e-12, 1.0 - 1e-12, 1.0]
    assert is_on_reference_grid(off).tolist() == [False, False, True]
