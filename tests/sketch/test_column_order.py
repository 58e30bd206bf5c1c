"""Chunks whose columns are in another order than those of the first chunk are aligned; unknown labels are rejected."""

from __future__ import annotations

import pickle
from functools import reduce
from typing import Any

import numpy as np
import pytest
from fits import kernel_rows

from powerkern.sketch import (
    MapReduce,
    extend,
    finish,
    fit_chunks,
    location_chunks,
    merge,
    range_of,
    summarize_chunk,
)

pandas = pytest.importorskip("pandas")

TEXT, WHOLE, TUPLES = ["a", "b", "c"], [2, 0, 1], [("x", 1), ("x", 2), ("y", 1)]
ORDERS = [[0, 1, 2], [2, 0, 1], [1, 0, 2], [2, 1, 0]]


def chunks_in_order(labels: list[Any], n: int = 700) -> list[Any]:
    """Return four data frames of `n` rows each, with columns of different scales in the order of `labels`."""
    values = np.random.default_rng(3).lognormal(size=(4 * n, 3)) * [1.0, 30.0, 0.01]
    columns = pandas.MultiIndex.from_tuples(labels) if isinstance(labels[0], tuple) else labels
    return [pandas.DataFrame(part, columns=columns) for part in np.array_split(values, 4)]


def permuted(chunks: list[Any]) -> list[Any]:
    return [chunk.iloc[:, order] for chunk, order in zip(chunks, ORDERS, strict=True)]


def engine(chunks: list[Any]) -> Any:
    def map_reduce(function: Any, merge: Any) -> Any:
        return reduce(merge, map(function, chunks))

    return map_reduce


def assert_same_fit(found: Any, expected: Any) -> None:
    assert found.column_names == expected.column_names
    np.testing.assert_array_equal(kernel_rows(found), kernel_rows(expected))


@pytest.mark.slow
@pytest.mark.parametrize("labels", [TEXT, WHOLE, TUPLES])
@pytest.mark.parametrize(("family", "estimator"), [("box-cox", "mle"), ("yeo-johnson", "rewml"), ("best", "mle")])
def test_fits_of_permuted_columns_are_aligned(labels, family, estimator):
    chunks = chunks_in_order(labels)
    options: dict[str, Any] = {"bounds": ([-1.0, -2.0, -3.0], [0.01, 2.0, 3.0])}
    expected = fit_chunks(chunks, family, estimator, **options)
    assert expected.column_names == labels
    assert_same_fit(fit_chunks(permuted(chunks), family, estimator, **options), expected)
    assert_same_fit(fit_chunks(MapReduce(engine(permuted(chunks))), family, estimator, **options), expected)


def test_chunks_of_polars_are_aligned():
    polars = pytest.importorskip("polars")
    chunks = chunks_in_order(TEXT)
    changed = [polars.DataFrame({name: chunk[name].to_numpy() for name in chunk}) for chunk in permuted(chunks)]
    assert_same_fit(fit_chunks(changed, "box-cox"), fit_chunks(chunks, "box-cox"))


def test_names_weights_shifts_and_text_go_by_the_first_chunk():
    chunks = chunks_in_order(TEXT)
    weighed = [chunk.assign(w=np.arange(len(chunk)) % 3, t="text") for chunk in chunks]
    moved = [weighed[0], *(chunk[["t", "c", "w", "a", "b"]] for chunk in weighed[1:])]
    options: dict[str, Any] = {
        "sample_weight": "w",
        "non_numeric": "ignore",
        "shift": [1.0, 2.0, 3.0],
        "column_names": ["c", "b", "a"],
    }
    assert_same_fit(fit_chunks(moved, "box-cox", **options), fit_chunks(weighed, "box-cox", **options))


@pytest.mark.parametrize("labels", [TEXT, WHOLE, TUPLES])
@pytest.mark.parametrize("method", ["mean-sd", "huber"])
def test_locations_of_permuted_columns_are_aligned(labels, method):
    chunks = chunks_in_order(labels)
    expected = location_chunks(chunks, method)
    for found in (
        location_chunks(permuted(chunks), method),
        location_chunks(MapReduce(engine(permuted(chunks))), method),
    ):
        np.testing.assert_array_equal(found.loc, expected.loc)
        np.testing.assert_array_equal(found.scale, expected.scale)


@pytest.mark.parametrize("estimator", ["mle", "rewml"])
def test_groups_of_permuted_columns_are_aligned(estimator):
    chunks = [chunk.assign(id=np.arange(len(chunk)) // 350) for chunk in chunks_in_order(TEXT)]
    changed = [chunks[0], *(chunk[["c", "id", "b", "a"]] for chunk in chunks[1:])]
    expected = fit_chunks(chunks, "box-cox", estimator, groups="id")
    for found in (
        fit_chunks(changed, "box-cox", estimator, groups="id"),
        fit_chunks(MapReduce(engine(changed)), "box-cox", estimator, groups="id"),
    ):
        assert_same_fit(found, expected)


def test_chunks_without_rows_do_not_change_the_order_of_groups():
    chunks = [chunk.assign(id=1) for chunk in chunks_in_order(TEXT)]
    empty = chunks[0].iloc[:0]
    expected = fit_chunks(MapReduce(engine([empty, *chunks])), "box-cox", groups="id")
    changed = [chunk[["c", "id", "b", "a"]] for chunk in chunks]
    assert_same_fit(fit_chunks(MapReduce(engine([empty, *changed])), "box-cox", groups="id"), expected)


@pytest.mark.parametrize("labels", [TEXT, WHOLE, TUPLES])
def test_streams_ranges_and_sketches_are_aligned(labels):
    chunks = chunks_in_order(labels)
    assert reduce(extend, permuted(chunks), None) == reduce(extend, chunks, None)
    total = reduce(merge, map(range_of, chunks))
    assert reduce(merge, map(range_of, permuted(chunks))) == total
    grid = total.grid()
    expected = [summarize_chunk(chunk, grid) for chunk in chunks]
    assert [summarize_chunk(chunk, grid) for chunk in permuted(chunks)] == expected
    reordered = [each.part(order) for each, order in zip(expected, ORDERS, strict=True)]
    assert reduce(merge, reordered) == reduce(merge, expected)
    streams = [extend(None, chunk) for chunk in chunks]
    assert reduce(merge, [extend(None, chunk) for chunk in permuted(chunks)]) == reduce(merge, streams)
    assert finish(reduce(merge, reordered)).column_names == labels


@pytest.mark.parametrize("labels", [TEXT, WHOLE, TUPLES])
def test_other_labels_are_refused_by_name(labels):
    chunks = permuted(chunks_in_order(labels))
    other = "other" if labels is TEXT else 7 if labels is WHOLE else ("z", 3)
    chunks[2] = chunks[2].set_axis([other, *chunks[2].columns[1:]], axis=1)
    with_ids = [chunk.set_axis(map(str, chunk.columns), axis=1).assign(id=1) for chunk in chunks]
    with pytest.raises(ValueError, match=r"chunk 2.*'other'|chunk 2.* 7 |chunk 2.*'z', 3"):
        fit_chunks(chunks)
    with pytest.raises(ValueError, match=r"chunk 2.*'other'|chunk 2.* 7 |chunk 2.*'z', 3"):
        location_chunks(chunks)
    with pytest.raises(ValueError, match=r"'other'| 7 |'z', 3"):
        fit_chunks(MapReduce(engine(chunks)), estimator="rewml")
    with pytest.raises(ValueError, match=r"other|7|z"):
        fit_chunks(with_ids, groups="id")
    with pytest.raises(ValueError, match=r"it also has 'other'|it also has 7|it also has .'z', 3"):
        reduce(extend, chunks, None)
    with pytest.raises(ValueError, match=r"one chunk has 3 columns, another 4"):
        fit_chunks([chunks_in_order(TEXT)[0], chunks_in_order(TEXT)[1].assign(more=1.0)])


def test_arrays_go_by_position():
    chunks = chunks_in_order(TEXT)
    assert_same_fit(fit_chunks([chunks[0], *(chunk.to_numpy() for chunk in chunks[1:])]), fit_chunks(chunks))


# --- with column_names=, which rename the columns of the first chunk -----------------------------------

NAMES = ["third", "first", "second"]
FITS: dict[str, Any] = {
    "fit_chunks": lambda chunks, **options: fit_chunks(chunks, "box-cox", **options),
    "fit_chunks, robust": lambda chunks, **options: fit_chunks(chunks, "box-cox", "rewml", **options),
    "fit_chunks, best": lambda chunks, **options: fit_chunks(chunks, "best", **options),
    "engine": lambda chunks, **options: fit_chunks(MapReduce(engine(chunks)), "box-cox", **options),
    "engine, robust": lambda chunks, **options: fit_chunks(MapReduce(engine(chunks)), "box-cox", "rewml", **options),
    "engine, best": lambda chunks, **options: fit_chunks(MapReduce(engine(chunks)), "best", **options),
    "extend": lambda chunks, **options: finish(
        reduce(lambda total, chunk: extend(total, chunk, "box-cox", **options), chunks, None)
    ),
    "merged streams": lambda chunks, **options: finish(
        reduce(merge, [extend(None, chunk, "box-cox", **options) for chunk in chunks])
    ),
    "merged sketches": lambda chunks, **options: finish(
        reduce(merge, sketches(chunks, reduce(merge, ranges(chunks, **options)).grid(), **options))
    ),
    "pickled": lambda chunks, **options: finish(
        reduce(merge, map(copied, sketches(chunks, pickled_grid(chunks, **options))))
    ),
}


def pickled_grid(chunks: list[Any], **options: Any) -> Any:
    return copied(reduce(merge, map(copied, ranges(chunks, **options))).grid())


def ranges(chunks: list[Any], **options: Any) -> list[Any]:
    return [range_of(chunk, "box-cox", **options) for chunk in chunks]


def sketches(chunks: list[Any], grid: Any, **options: Any) -> list[Any]:
    return [summarize_chunk(chunk, grid, **options) for chunk in chunks]


def copied(summary: Any) -> Any:
    """Return a copy of a range, grid or sketch, written to bytes, read back and pickled."""
    return pickle.loads(pickle.dumps(type(summary).from_bytes(summary.to_bytes())))


def as_xarray(chunk: Any) -> Any:
    xarray = pytest.importorskip("xarray")
    return xarray.DataArray(chunk.to_numpy(), dims=["row", "column"], coords={"column": chunk.columns.to_numpy()})


@pytest.mark.parametrize("form", [lambda chunk: chunk, as_xarray], ids=["pandas", "xarray"])
@pytest.mark.parametrize("fit", FITS)
def test_new_names_belong_to_the_columns_of_the_first_chunk(fit, form):
    chunks = chunks_in_order(TEXT)
    expected = FITS[fit]([chunk.to_numpy() for chunk in chunks], column_names=NAMES)
    found = FITS[fit](list(map(form, permuted(chunks))), column_names=NAMES)
    assert found.column_names == NAMES
    assert_same_fit(found, expected)


@pytest.mark.parametrize("fit", FITS)
def test_new_names_do_not_hide_other_labels(fit):
    chunks = permuted(chunks_in_order(TEXT))
    chunks[1] = chunks[1].rename(columns={"b": "other"})
    with pytest.raises(ValueError, match="'other'"):
        FITS[fit](chunks, column_names=NAMES)


@pytest.mark.parametrize("estimator", ["mle", "rewml"])
def test_new_names_of_groups_are_kept(estimator):
    chunks = [chunk.assign(id=np.arange(len(chunk)) // 350) for chunk in chunks_in_order(TEXT)]
    changed = [chunks[0], *(chunk[["c", "id", "b", "a"]] for chunk in chunks[1:])]
    expected = fit_chunks(chunks, "box-cox", estimator, groups="id", column_names=NAMES)
    for found in (
        fit_chunks(changed, "box-cox", estimator, groups="id", column_names=NAMES),
        fit_chunks(MapReduce(engine(changed)), "box-cox", estimator, groups="id", column_names=NAMES),
    ):
        assert found.column_names == NAMES
        assert_same_fit(found, expected)
    changed[2] = changed[2].rename(columns={"b": "other"})
    with pytest.raises(ValueError, match="'other'"):
        fit_chunks(MapReduce(engine(changed)), "box-cox", estimator, groups="id", column_names=NAMES)


def test_names_that_contradict_each_other_are_refused():
    one, other = chunks_in_order(TEXT)[:2]
    first = extend(None, one, column_names=NAMES)
    with pytest.raises(ValueError, match="column 'a' is called 'third' in one chunk and 'first' in another"):
        extend(first, other, column_names=["first", "third", "second"])
    with pytest.raises(ValueError, match="column 'a' is called 'third' in one chunk and 'first' in another"):
        merge(first, extend(None, other, column_names=["first", "third", "second"]))
    # names in another order, each for the same column as before
    expected = extend(first, other, column_names=NAMES)
    assert extend(first, other[["b", "c", "a"]], column_names=["first", "second", "third"]) == expected
    assert extend(first, other) == expected


def test_errors_name_the_column_by_its_label_in_the_chunk():
    chunks = permuted(chunks_in_order(TEXT))
    chunks[1].loc[chunks[1].index[3], "b"] = -1.0
    with pytest.raises(ValueError, match=r"in chunk 1: column 1 \('b'\), row 3: "):
        fit_chunks(chunks, "box-cox", column_names=NAMES)
