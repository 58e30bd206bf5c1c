"""Data frames that narwhals reads, and objects that export Arrow data: the output is of the same kind."""

from __future__ import annotations

import datetime
import subprocess
import sys

import narwhals
import narwhals.stable.v1
import narwhals.stable.v2
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import powerkern as pk
from powerkern.stats import boxcox

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

RNG = np.random.default_rng(31)
X = RNG.lognormal(size=(60, 2))
EXPECTED = pk.fit(X).transform(X)
INDEX = pd.date_range("2026-01-01", periods=60)
FRAMES = {
    "pandas": lambda: pd.DataFrame(X, INDEX, ["a", "b"]),
    "polars": lambda: pl.DataFrame(X, ["a", "b"]),
    "pyarrow": lambda: pa.table({"a": X[:, 0], "b": X[:, 1]}),
}
frames = pytest.mark.parametrize("kind", FRAMES)


class Stream:
    """An object whose only interface is the export of Arrow data. With `once`, a second export fails."""

    def __init__(self, data, once=False):
        self._data, self._once = data, once

    def __arrow_c_stream__(self, requested_schema=None):
        data = self._data
        if self._once:
            self._data = None
        return data.__arrow_c_stream__(requested_schema)


class Batch:
    """An object that exports one batch of Arrow data."""

    def __init__(self, data):
        self._data = data

    def __arrow_c_array__(self, requested_schema=None):
        return self._data.__arrow_c_array__(requested_schema)


# --- narwhals' own objects ----------------------------------------------------------------------------


@frames
@pytest.mark.parametrize("home", [narwhals, narwhals.stable.v1, narwhals.stable.v2])
def test_frames_of_narwhals_come_back_as_such(kind, home):
    native = FRAMES[kind]()
    frame = home.from_native(native)
    fit = pk.fit(frame)
    assert fit.column_names == ["a", "b"]
    out = fit.transform(frame)
    assert type(out) is type(frame)
    assert type(out.to_native()) is type(native)
    assert_array_equal(out.to_numpy(), EXPECTED)
    assert np.allclose(fit.inverse_transform(out).to_numpy(), X)
    column = frame["a"]
    assert type(pk.fit(column).transform(column)) is type(column)


def test_the_index_of_pandas_is_kept_inside_narwhals():
    frame = narwhals.from_native(FRAMES["pandas"]())
    pd.testing.assert_index_equal(pk.fit(frame).transform(frame).to_native().index, INDEX, exact=False)
    weight = pd.Series(np.arange(60.0), INDEX)
    shuffled = weight.sample(frac=1.0, random_state=0)
    expected = pk.fit(X, sample_weight=weight.to_numpy()).lmbda
    assert_array_equal(pk.fit(frame, sample_weight=shuffled).lmbda, expected)
    assert_array_equal(
        pk.fit(frame.to_native(), sample_weight=narwhals.from_native(shuffled, series_only=True)).lmbda, expected
    )


@frames
def test_columns_of_a_fit_are_found_by_name(kind):
    native = FRAMES[kind]()
    frame = narwhals.from_native(native).with_columns(narwhals.lit("x").alias("c")).select("c", "b", "a")
    fit = pk.fit(native)
    out = fit.transform(frame)
    assert out.columns == ["c", "b", "a"]
    assert_array_equal(out.select("a", "b").to_numpy(), EXPECTED)
    assert out["c"].to_list() == ["x"] * 60


def test_lazy_frames_of_narwhals_are_refused_with_what_to_call():
    with pytest.raises(TypeError, match=r"X is a lazy frame of narwhals; fit it by powerkern\.sketch\.fit_chunks\(X\)"):
        pk.fit(narwhals.from_native(FRAMES["polars"]().lazy()))


# --- objects that export Arrow data -------------------------------------------------------------------


@pytest.mark.parametrize("once", [False, True])
def test_streams_of_arrow_data_become_tables(once):
    def stream():
        return Stream(FRAMES["pyarrow"](), once)

    fit = pk.fit(stream())
    assert fit.column_names == ["a", "b"]
    out = fit.transform(stream())
    assert isinstance(out, pa.Table)
    assert_array_equal(np.column_stack(out.columns), EXPECTED)
    column = Stream(FRAMES["pyarrow"]()["a"], once)
    assert_array_equal(pk.fit(column).lmbda, pk.fit(X[:, 0]).lmbda)


def test_streams_that_can_be_read_once_have_weights_groups_and_other_columns():
    table = (
        FRAMES["pyarrow"]().append_column("g", pa.array(["x", "y"] * 30)).append_column("w", pa.array(np.arange(60.0)))
    )
    assert_array_equal(
        pk.fit(Stream(table, once=True), sample_weight="w", non_numeric="ignore").lmbda,
        pk.fit(X, sample_weight=np.arange(60.0)).lmbda,
    )
    grouped = pk.fit(Stream(table.drop_columns("w"), once=True), groups="g")
    assert_array_equal(grouped.lmbda, pk.fit(X, groups=["x", "y"] * 30).lmbda)
    out = grouped.transform(Stream(table, once=True))
    assert out.column_names == ["a", "b", "g", "w"]
    assert_array_equal(np.asarray(out["a"])[::2], pk.fit(X[::2]).transform(X[::2])[:, 0])


def test_batches_of_arrow_data_are_read():
    batch = FRAMES["pyarrow"]().to_batches()[0]
    fit = pk.fit(Batch(batch))
    assert fit.column_names == ["a", "b"]
    assert_array_equal(np.column_stack(fit.transform(Batch(batch)).columns), EXPECTED)


def test_data_frames_of_arro3_are_read():
    arro3 = pytest.importorskip("arro3.core")
    table = arro3.Table.from_arrow(FRAMES["pyarrow"]())
    assert_array_equal(np.column_stack(pk.fit(table).transform(table).columns), EXPECTED)


# --- pyarrow ------------------------------------------------------------------------------------------


def test_fields_of_arrow_tables_keep_their_notes():
    schema = pa.schema(
        [pa.field("a", pa.float64(), nullable=False, metadata={"unit": "m"}), pa.field("b", pa.int64())],
        metadata={"made": "by hand"},
    )
    table = pa.Table.from_arrays([pa.array(X[:, 0]), pa.array(np.arange(60))], schema=schema)
    out = pk.fit(table).transform(table)
    assert out.schema.equals(schema.set(1, schema.field(1).with_type(pa.float64())), check_metadata=True)


def test_columns_of_one_name_are_refused_in_arrow_tables():
    table = pa.table([pa.array(X[:, 0]), pa.array(X[:, 1])], names=["a", "a"])
    with pytest.raises(
        ValueError, match=r"X has several columns with the same name; give every column its own .*'a' 2 times"
    ):
        pk.fit(table)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_columns_without_a_value_are_missing(library):
    frame = pl.DataFrame({"a": X[:, 0], "n": [None] * 60})
    given = frame if library == "polars" else frame.to_arrow()
    with pytest.warns(UserWarning, match=r"column 1 \('n'\): not fitted: no values"):
        fit = pk.fit(given)
    assert fit.n_obs.tolist() == [60, 0]
    out = fit.transform(given)
    assert [out["a"].null_count() if library == "polars" else out["a"].null_count, len(out["n"])] == [0, 60]


# --- results ------------------------------------------------------------------------------------------


@frames
def test_scipys_functions_take_them(kind):
    frame = narwhals.from_native(FRAMES[kind]())
    out = boxcox(frame, lmbda=0.5)
    assert type(out) is type(frame)
    assert_array_equal(out.to_numpy(), boxcox(X, lmbda=0.5))


@frames
def test_flags_come_as_frames(kind):
    native = FRAMES[kind]()
    flags = pk.fit(native).outliers(native)
    assert type(flags) is type(native)
    assert_array_equal(narwhals.from_native(flags).to_numpy(), pk.fit(X).outliers(X))


# --- scikit-learn -------------------------------------------------------------------------------------


def as_narwhals(native):
    return narwhals.from_native(native)


def as_batch(native):
    return native.to_batches()[0]


@pytest.mark.parametrize("make", [as_narwhals, as_batch, Stream])
def test_estimators_know_the_names_and_give_the_same_kind(make):
    pytest.importorskip("sklearn")
    from powerkern.sklearn import PowerTransformer

    given = make(FRAMES["pyarrow"]())
    transformer = PowerTransformer().fit(given)
    assert transformer.feature_names_in_.tolist() == ["a", "b"]
    assert np.allclose(transformer.transform(given), EXPECTED, rtol=0, atol=1e-12)
    of_polars = transformer.set_output(transform="polars").transform(given)
    assert of_polars.columns == ["a", "b"]
    out = PowerTransformer(variables=["b"]).fit_transform(given)
    assert type(out) is (pa.Table if make is Stream else type(given))
    assert_array_equal(narwhals.from_native(pa.table(out) if make is as_batch else out)["a"].to_numpy(), X[:, 0])


def test_cells_of_a_record_batch_come_back_as_one():
    from powerkern.cellwise import ddc

    batch = as_batch(FRAMES["pyarrow"]())
    cells = ddc(batch, n_threads=1)
    assert isinstance(cells.imputed, pa.RecordBatch)
    assert isinstance(cells.flagged_rows, pa.BooleanArray)


# --- labels of groups ---------------------------------------------------------------------------------

DAYS = np.array(["2026-01-02", "2026-01-01", "2026-01-02", "NaT"] * 5, dtype="M8[D]")
MOMENTS = DAYS.astype("M8[ns]") + np.arange(20) % 2
LABELS = {
    "text": ["b", "a", "b", None] * 5,
    "whole numbers beyond 2**53": [2**60 + 1, 2**60, 2**60 + 1, None] * 5,
    "booleans": [True, False, True, None] * 5,
    "numbers": [1.5, -2.0, 1.5, None] * 5,
    "days": DAYS,
    "nanoseconds": MOMENTS,
    "durations": (DAYS - np.datetime64("2026-01-01")).astype("m8[ns]") + np.arange(20) % 2,
}


@pytest.mark.parametrize("kind", ["polars", "pyarrow", "categories", "narwhals"])
@pytest.mark.parametrize("labels", LABELS)
def test_labels_of_groups_agree_with_pandas(kind, labels):
    values = LABELS[labels]
    column = pa.chunked_array([pa.array(values)])
    if kind != "pyarrow":
        column = pl.Series(values=column)
    if kind == "categories":
        column = pa.array(values).dictionary_encode()
    if kind == "narwhals":
        column = narwhals.from_native(column, series_only=True)
    column_of_pandas = pd.Series(values, dtype="Int64" if "beyond" in labels else None)
    expected = pk.fit(X[:20], groups=column_of_pandas, dropna=True)
    fit = pk.fit(X[:20], groups=column, dropna=True)
    assert_array_equal(np.asarray(list(fit)), np.asarray(list(expected)))
    assert_array_equal(fit.lmbda, expected.lmbda)


def test_times_of_day_are_no_labels():
    times = pl.Series([datetime.time(hour) for hour in range(20)])
    with pytest.raises(
        TypeError, match=r"groups has the label datetime\.time\(\d+, 0\), a time; labels are numbers, text"
    ):
        pk.fit(X[:20], groups=times)


# --- Modin --------------------------------------------------------------------------------------------


def test_modin_keeps_index_and_names():
    modin = pytest.importorskip("modin.pandas")
    frame = modin.DataFrame(X, INDEX, ["a", 3])
    fit = pk.fit(frame)
    assert fit.column_names == ["a", 3]
    out = fit.transform(frame)
    assert type(out) is type(frame)
    assert list(out.columns) == ["a", 3]
    assert out.index.equals(INDEX)
    assert_array_equal(out.to_numpy(), EXPECTED)
    weight = modin.Series(np.arange(60.0), INDEX)
    expected = pk.fit(X, sample_weight=np.arange(60.0)).lmbda
    assert_array_equal(pk.fit(frame, sample_weight=weight.sample(frac=1.0, random_state=0)).lmbda, expected)


# --- imports ------------------------------------------------------------------------------------------

IMPORTS = """
import sys, numpy as np, powerkern as pk
X = np.random.default_rng(0).lognormal(size=(30, 2))
for data in (X, X.tolist(), X.astype(np.float32), np.ma.masked_less(X, 0.5), memoryview(X)):
    pk.fit(data).transform(data)
pk.fit(X, groups=np.arange(30) % 2, sample_weight=np.ones(30)).transform(X, np.arange(30) % 2)
assert "narwhals" not in sys.modules, "arrays"
import pandas
frame = pandas.DataFrame(X, columns=["a", "b"])
pk.fit(frame).inverse_transform(pk.fit(frame).transform(frame))
assert "narwhals" not in sys.modules, "pandas"
"""


@pytest.mark.slow
def test_arrays_and_pandas_do_not_import_narwhals():
    subprocess.run([sys.executable, "-c", IMPORTS], check=True)
