"""Groups of rows copied to padded blocks and back, compared with masks of labels."""

from __future__ import annotations

import numpy as np
import pytest
from fits import fit_from_rows, kernel_rows

import powerkern as pk
from powerkern._engine import ragged
from powerkern._engine.gather import BlockScratch
from powerkern._engine.ragged import Groups, lies_in_runs
from powerkern._input.labels import Runs
from powerkern.kernels.transforms.family import BOX_COX, FORWARD_STANDARDIZED


def encode_runs(labels):
    """Return the run-length code of group labels."""
    labels = np.asarray(labels, dtype=np.int64)
    starts = np.flatnonzero(np.append(True, labels[1:] != labels[:-1]))
    return Runs(labels[starts], starts, np.diff(np.append(starts, labels.size)))


LABELS = {
    "mixed": np.array([2, 0, 0, -1, 4, 2, 2, 0, -1, 4, 2, 0, 5, 2, 2]),
    "single rows": np.array([3, 1, 0, 1, 3, -1, 0, 1]),
    "sorted": np.array([0, 0, 0, 2, 2, 5]),
    "descending": np.array([5, 5, 5, 2, 2, 0]),
    "sorted with gaps": np.array([0, 0, -1, -1, 2, 2, 2, -1, 4]),
    "nothing": np.array([-1, -1, -1]),
    "one": np.array([4]),
}


@pytest.mark.parametrize("name", LABELS)
def test_rows_of_a_group_are_those_with_its_label(name):
    labels = LABELS[name]
    groups = Groups(encode_runs(labels), 7)
    counts = np.bincount(labels[labels >= 0], minlength=7)
    expected = sorted((count, code) for code, count in enumerate(counts) if count)
    assert list(zip(groups.lengths, groups.codes, strict=True)) == expected
    for k, code in enumerate(groups.codes):
        rows = groups.rows(k)
        np.testing.assert_array_equal(np.arange(labels.size)[rows], np.flatnonzero(labels == code))
    assert (groups.order.size == 0) == (name not in ("mixed", "single rows"))  # else rows are slices


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.dtype(">f8"), np.longdouble])
@pytest.mark.parametrize("name", [name for name in LABELS if name != "nothing"])
def test_padded_blocks_have_a_row_for_each_column_of_each_group(name, dtype):
    labels = LABELS[name]
    values = np.arange(labels.size * 3).reshape(-1, 3).astype(dtype)
    groups = Groups(encode_runs(labels), 7)
    for batch in (slice(0, len(groups.codes)), slice(len(groups.codes) - 1, len(groups.codes))):
        block = groups.pad_batch(values, batch, BlockScratch())
        expected = np.full((3 * (batch.stop - batch.start), groups.lengths[batch][-1]), np.nan)
        for k, code in enumerate(groups.codes[batch]):
            part = values[labels == code]
            expected[3 * k : 3 * k + 3, : len(part)] = part.T
        np.testing.assert_array_equal(block, expected)
        if np.dtype(dtype).kind == "f":
            out = np.full(values.shape, -1.0, dtype)
            groups.scatter_batch(-block, batch, out)
            chosen = np.isin(labels, groups.codes[batch])
            np.testing.assert_array_equal(out[chosen], -values[chosen])
            assert (out[~chosen] == -1.0).all()


def test_batches_hold_groups_of_equal_length_and_up_to_262_144_values():
    lengths = np.repeat([1000, 2000, 300_000], [7, 200, 2])
    groups = Groups(Runs(np.arange(lengths.size), np.cumsum(lengths) - lengths, lengths), lengths.size)
    batches = groups.batches(2)
    assert [batch.start for batch in batches] == [0, *(batch.stop for batch in batches[:-1])]
    assert batches[-1].stop == lengths.size
    sizes = [batch.stop - batch.start for batch in batches]
    assert sizes == [7, 65, 65, 65, 5, 1, 1]


def test_short_groups_share_a_batch_with_slightly_longer_groups():
    lengths = np.array([10, 11, 12, 50, 52, 53, 98, 100, 101, 101, 104])
    groups = Groups(Runs(np.arange(lengths.size), np.cumsum(lengths) - lengths, lengths), lengths.size, 100)
    batches = [lengths[batch].tolist() for batch in groups.batches(1)]
    # at least one row and at most 4 % longer, and up to 100 rows
    assert batches == [[10, 11], [12], [50, 52], [53], [98, 100], [101, 101], [104]]
    groups = Groups(Runs(np.arange(lengths.size), np.cumsum(lengths) - lengths, lengths), lengths.size)
    assert [lengths[batch].tolist() for batch in groups.batches(1)] == [
        [length] if length != 101 else [101, 101] for length in np.unique(lengths)
    ]


@pytest.mark.parametrize("n_batches, n_threads, expected", [(4, 2, 1), (3, 2, 2), (1, 1, 1), (5, 2, 1)])
def test_few_batches_use_all_threads_each_and_many_use_one(n_batches, n_threads, expected):
    lengths = np.arange(1, n_batches + 1)
    groups = Groups(Runs(np.arange(n_batches), np.cumsum(lengths) - lengths, lengths), n_batches)
    calls = []
    groups.for_each_batch(lambda batch, threads: calls.append((batch.start, batch.stop, threads)), 3, n_threads)
    assert sorted(calls) == [(k, k + 1, expected) for k in range(n_batches)]


def test_runs_of_16_rows_are_transformed_in_place_if_columns_are_contiguous():
    def runs(n_runs):
        return Runs(np.arange(n_runs), np.arange(n_runs), np.ones(n_runs, dtype=int))

    columns = np.empty((48, 3), order="F")
    assert lies_in_runs(columns, runs(3))
    assert not lies_in_runs(columns, runs(4))
    assert not lies_in_runs(np.empty((48, 3)), runs(1))
    assert not lies_in_runs(np.empty((48, 3), np.float32, order="F"), runs(1))
    assert not lies_in_runs(np.empty((96, 3), order="F")[::2], runs(1))


def test_parts_of_runs_are_transformed_as_all_runs_together(monkeypatch):
    rng = np.random.default_rng(0)
    labels = np.repeat([2, 0, -1, 1, 0, 2], [4, 7, 2, 1, 9, 5])
    x = np.asfortranarray(rng.standard_gamma(2.0, (labels.size, 3)))
    x[3, 1], x[8, 0], x[9, 0], x[27, 2] = -1.0, 0.0, -2.0, -1.0
    fit = pk.fit(rng.standard_gamma(2.0, (40, 9)), "box-cox")
    rows_of_fit = kernel_rows(fit)
    expected = np.full(x.shape, np.nan)
    failures = np.zeros((3, 3), dtype=int)
    for code in range(3):
        rows = np.flatnonzero(labels == code)
        for j in range(3):
            good = rows[x[rows, j] > 0]
            column = 3 * code + j
            single = fit_from_rows(rows_of_fit[column : column + 1], "box-cox")
            expected[good, j] = single.transform(x[good, j])
            failures[code, j] = rows.size - good.size
    for part in (131_072, 10, 1):
        monkeypatch.setattr(ragged, "_PART", part)
        for n_threads in (1, 3):
            out = np.empty_like(x)
            runs = encode_runs(labels)
            counts = ragged.transform_runs(x, runs, BOX_COX, FORWARD_STANDARDIZED, rows_of_fit, out, n_threads)
            good = np.isfinite(expected)
            np.testing.assert_array_equal(out[good], expected[good])
            assert np.isnan(out[labels < 0]).all()
            np.testing.assert_array_equal(counts.reshape(3, 3), failures)
