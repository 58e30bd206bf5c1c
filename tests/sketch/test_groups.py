"""Fits of groups from chunks equal the fits by `powerkern.fit` with ``groups=``, however the rows are divided."""

from __future__ import annotations

import functools
import inspect
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import powerkern as pk
from powerkern._estimators.base import Run
from powerkern._input.alignment import ColumnNames
from powerkern._input.arrays import Matrix
from powerkern.sketch import MapReduce, fit_chunks, location_chunks
from powerkern.sketch.grouped import _Labels, _place_side_by_side

RNG = np.random.default_rng(322)


def table(n=900, n_groups=5):
    codes = RNG.integers(0, n_groups, n)
    return pd.DataFrame(
        {"id": np.array(list("edcba"))[codes], "u": RNG.lognormal(size=n) * (1 + codes), "v": RNG.gamma(3.0, size=n)}
    )


def cut(frame, n=130):
    return [frame[i : i + n] for i in range(0, len(frame), n)]


@pytest.mark.parametrize("family", ["yeo-johnson", "box-cox", "best"])
@pytest.mark.parametrize("estimator", ["mle", "robust"])
def test_groups_are_those_in_memory(family, estimator):
    frame = table()
    frame.loc[::17, "v"] = np.nan
    whole = pk.fit(frame, family, estimator, groups="id")
    fit = fit_chunks(cut(frame), family, groups="id", estimator=estimator)
    assert fit.groups == whole.groups
    assert fit.column_names == ["u", "v"]
    np.testing.assert_allclose(fit.lmbda, whole.lmbda, rtol=0, atol=1e-9)
    np.testing.assert_allclose(fit.transform(frame)[["u", "v"]], whole.transform(frame)[["u", "v"]], atol=1e-8)


@pytest.mark.parametrize("order", ["sorted", "one group in a chunk", "shuffled"])
def test_the_order_of_the_rows_does_not_matter(order, monkeypatch):
    monkeypatch.setattr("powerkern.sketch.grouped._CELLS", 300)  # several steps for each chunk
    frame = table()
    frame = frame if order == "shuffled" else frame.sort_values("id")
    chunks = cut(frame) if order != "one group in a chunk" else [part for _, part in frame.groupby("id")]
    whole = pk.fit(frame, groups="id")
    np.testing.assert_allclose(fit_chunks(chunks, groups="id").lmbda, whole.lmbda, rtol=0, atol=1e-10)


def test_several_keys_agree_with_the_fit_in_memory():
    frame = table().assign(plate=lambda frame: np.arange(len(frame)) % 2)
    options = {"bounds": ([0.0, -1.0], [0.2, 0.1])}
    whole = pk.fit(frame, "box-cox", groups=["id", "plate"], **options)
    fit = fit_chunks(cut(frame), "box-cox", groups=["id", "plate"], **options)
    assert fit.groups == whole.groups
    np.testing.assert_allclose(fit.lmbda, whole.lmbda, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(fit.status, whole.status)


def test_tables_that_are_read_in_batches():
    frame = table()
    expected = pk.fit(frame, groups="id").lmbda
    for source in (pl.from_pandas(frame).lazy(), pa.Table.from_pandas(frame)):
        np.testing.assert_allclose(fit_chunks(source, groups="id").lmbda, expected, rtol=0, atol=1e-10)


def test_engines_may_pickle_functions():
    frame = table()

    def map_reduce(function, merge):
        return functools.reduce(merge, (pickle.loads(pickle.dumps(function))(chunk) for chunk in cut(frame)))

    fit = fit_chunks(MapReduce(map_reduce), groups="id")
    np.testing.assert_allclose(fit.lmbda, pk.fit(frame, groups="id").lmbda, rtol=0, atol=1e-10)


def test_chunks_without_rows_and_groups_without_a_fit():
    frame = pd.concat([table(), pd.DataFrame({"id": ["z"], "u": [1.0], "v": [2.0]})])
    with pytest.warns(UserWarning, match="group 'z', column u; group 'z', column v: not fitted"):
        fit = fit_chunks([frame[:0], *cut(frame), frame[:0]], groups="id")
    assert fit.groups == ["a", "b", "c", "d", "e", "z"]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda frame: frame.assign(u=np.where(np.arange(len(frame)) == 137, np.inf, 1.0)), {}, r"column 0 .*, row 7"),
        (lambda frame: frame.assign(id=frame["id"].where(frame.index != 137)), {}, r"row 7: the label is missing"),
        (lambda frame: frame.drop(columns="id"), {}, r"there is no column of that name"),
        (lambda frame: frame[["u", "v"]].to_numpy(), {}, r"groups need chunks that are data frames, got ndarray"),
        (lambda frame: frame, {"sample_weight": "v"}, r"weights cannot be combined with groups in chunks"),
        (lambda frame: frame, {"lmbda": [1.0, 2.0, 3.0]}, r"lmbda must be one number or one per column"),
    ],
)
def test_wrong_input_is_refused(change, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fit_chunks(cut(change(table())), groups="id", **options)
    with pytest.raises(TypeError, match="groups must name"):
        fit_chunks(cut(table()), groups=[1, 2])


@pytest.mark.parametrize("groups", ["id", ["id", "plate"]])
@pytest.mark.parametrize(
    "make", [cut, lambda frame: pl.from_pandas(frame).to_arrow(), lambda frame: pl.from_pandas(frame).lazy()]
)
def test_columns_that_hold_no_numbers_are_left_out_beside_the_labels(groups, make):
    frame = table().assign(note="x", plate=lambda frame: np.where(frame.index % 2, "p", "q"))
    whole = pk.fit(frame, groups=groups, non_numeric="ignore")
    fit = fit_chunks(make(frame), groups=groups, non_numeric="ignore")
    assert (fit.column_names, fit.groups) == (whole.column_names, whole.groups) == (["u", "v"], fit.groups)
    np.testing.assert_allclose(fit.lmbda, whole.lmbda, rtol=0, atol=1e-10)
    with pytest.raises(TypeError, match=r"no column of X holds numbers: 'note'"):
        fit_chunks(cut(frame[["id", "plate", "note"]]), groups=["id", "plate"], non_numeric="ignore")


def test_a_misspelled_option_is_refused_before_the_first_pass():
    def chunks():
        raise AssertionError("a pass")

    with pytest.raises(TypeError, match=r"'n_thread' is not an option of .*fit_chunks; did you mean 'n_threads'\?"):
        fit_chunks(chunks, groups="id", n_thread=2)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (["a", "c"], "column 1 is 'b' in one chunk and 'c' in another"),
        (["a", "b", "c"], "one chunk has 2 columns, another 3"),
    ],
)
def test_chunks_with_other_columns_are_refused(other: list[str], message: str) -> None:
    labels, others = (_Labels(None, ColumnNames(each, each), len(each)) for each in (["a", "b"], other))
    with pytest.raises(ValueError, match=message):
        labels._merge(others)
    assert labels._merge(labels).naming.names == ["a", "b"]


@pytest.mark.parametrize("fit", [pk.fit, fit_chunks, location_chunks, Run])
def test_no_progress_is_shown_unless_it_is_asked_for(fit: object) -> None:
    assert inspect.signature(fit).parameters["progress"].default is False  # type: ignore[arg-type]


def test_errors_without_a_place_pass_through_the_grouping_unchanged(monkeypatch):
    """An error that names a cell is reworded for the group of that cell. Other errors are unchanged."""

    def broken(*_):
        raise ValueError("the pass is broken")

    monkeypatch.setattr("powerkern.sketch.engine.Pass.summarize_matrix", broken)
    with pytest.raises(ValueError, match=r"^in chunk 0: the pass is broken$"):
        fit_chunks(cut(table()), groups="id")


@pytest.mark.parametrize("cells", [1, 12, 30, 10**6])
@pytest.mark.parametrize("n", [0, 1, 17])
def test_groups_stand_side_by_side_in_blocks(cells, n, monkeypatch):
    monkeypatch.setattr("powerkern.sketch.grouped._CELLS", cells)
    rng = np.random.default_rng(n)
    values, codes = rng.normal(size=(n, 2)), rng.integers(0, 3, n)
    blocks = list(_place_side_by_side(Matrix(values, None, False), codes, 3))
    found = {g: [] for g in range(3)}
    for wide, rows in blocks:
        assert wide.shape == (len(rows), 6)
        assert len(rows) == 1 or wide.size <= cells
        for block_row, row_of in zip(wide.reshape(-1, 3, 2), rows, strict=True):
            for g in range(3):
                if row_of[g] < 0:
                    assert np.isnan(block_row[g]).all()
                else:
                    assert block_row[g].tolist() == values[row_of[g]].tolist()
                    found[g].append(int(row_of[g]))
    assert found == {g: np.flatnonzero(codes == g).tolist() for g in range(3)}
    if cells == 10**6:
        assert len(blocks) == 1
        assert len(blocks[0][1]) == max(1, max(map(len, found.values())))


def test_values_outside_the_domain_are_named_by_column_and_row():
    rows = pd.DataFrame({"g": list("abcab"), "u": [1.0, 2.0, 3.0, 4.0, -5.0], "v": np.arange(1.0, 6.0)})
    with pytest.raises(ValueError, match=r"in chunk 1: column 0 \('u'\), row 2: the value is -5\.0"):
        fit_chunks([rows[:2], rows[2:]], "box-cox", groups="g")
    with pytest.raises(TypeError, match="groups must name the column, or the columns"):
        fit_chunks([rows], groups=[])
