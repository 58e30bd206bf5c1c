"""Data frames as input and output."""

from __future__ import annotations

import numpy as np
import pytest

import powerkern as pk

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

RNG = np.random.default_rng(0)
A, B = RNG.lognormal(size=(2, 40))
FAMILIES = pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])


def pandas_frame():
    return pd.DataFrame({"a": A, "b": B}, index=pd.date_range("2026-01-01", periods=40))


# --- pandas -------------------------------------------------------------------------------------------


@FAMILIES
def test_pandas_frames_keep_index_and_names(family):
    frame = pandas_frame()
    fit = pk.fit(frame, family)
    out = fit.transform(frame)
    pd.testing.assert_index_equal(out.index, frame.index)
    assert list(out.columns) == ["a", "b"]
    assert np.array_equal(out.to_numpy(), fit.transform(frame.to_numpy()))
    pd.testing.assert_frame_equal(fit.inverse_transform(out), frame, check_freq=False)


def test_pandas_series_keep_name_and_index():
    series = pandas_frame()["a"]
    out = pk.fit(series).transform(series)
    assert out.name == "a"
    pd.testing.assert_index_equal(out.index, series.index)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("float32", "float32"),
        ("int16", "float64"),
        ("Float64", "Float64"),
        ("Int64", "Float64"),
        ("Float32", "Float32"),
        ("int64[pyarrow]", "double[pyarrow]"),
        ("double[pyarrow]", "double[pyarrow]"),
        ("float[pyarrow]", "float[pyarrow]"),
        ("Sparse[float64]", "float64"),
    ],
)
def test_pandas_types_are_kept_or_become_float64(dtype, expected):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    series = pd.Series(np.arange(1, 30)).astype(dtype)
    if series.dtype.kind in "if" and expected not in ("float32", "float64"):
        series[3] = pd.NA
    for given in (series, pd.DataFrame({"x": series})):
        out = pk.fit(given).transform(given)
        kind = out.dtype if given is series else out["x"].dtype
        assert kind == (pd.Series([1.0], dtype=expected).dtype)
        assert np.array_equal(pd.isna(out).to_numpy().ravel(), pd.isna(series))


def test_pandas_types_side_by_side_are_kept():
    frame = pd.DataFrame(
        {"a": pd.array([1, 2, None, 9], dtype="Int64"), "b": [1.0, np.nan, 3.0, 4.0]}, index=[3, 3, 1, 0]
    )
    out = pk.fit(frame).transform(frame)
    assert [str(dtype) for dtype in out.dtypes] == ["Float64", "float64"]
    assert list(out.index) == [3, 3, 1, 0]
    assert out["a"].isna().tolist() == [False, False, True, False]
    assert out["b"].isna().tolist() == [False, True, False, False]


@pytest.mark.parametrize("dtype", ["Float32", "Float64", "float[pyarrow]", "double[pyarrow]"])
@pytest.mark.parametrize("missing", [True, False])
def test_nullable_types_are_preserved(dtype, missing):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": A, "b": B}).astype(dtype)
    if missing:
        frame.iloc[3, 0] = pd.NA
    fit = pk.fit(frame)
    out = fit.transform(frame)
    back = fit.inverse_transform(out)
    assert list(out.dtypes) == list(back.dtypes) == list(frame.dtypes)
    assert out["a"].isna().tolist() == back["a"].isna().tolist() == frame["a"].isna().tolist()
    single = dtype in ("Float32", "float[pyarrow]")
    numpys = frame.to_numpy(dtype="float32" if single else "float64", na_value=np.nan)
    assert np.array_equal(fit.lmbda, pk.fit(numpys).lmbda)
    assert np.allclose(back.to_numpy(dtype=float, na_value=np.nan), numpys, rtol=1e-5, equal_nan=True)


def test_nullable_types_side_by_side_keep_theirs():
    frame = pd.DataFrame({"a": A, "b": B, "n": np.arange(1, 41)}).astype({"a": "Float32", "b": "Float64", "n": "Int64"})
    out = pk.fit(frame).transform(frame)
    assert [str(dtype) for dtype in out.dtypes] == ["Float32", "Float64", "Float64"]


# --- integers beyond 2**53 ----------------------------------------------------------------------------

LARGE = 2**53 + 1 + np.arange(40)
TOO_LARGE = r"X holds integers beyond 2\*\*53 \(%s\): float64"


def large_frame(library):
    return library.DataFrame({"x": A, "id": LARGE, "n": np.arange(40), "tiny": -LARGE})


@pytest.mark.parametrize("library", [pd, pl])
def test_large_integers_warn_once_and_name_their_columns(library):
    frame = large_frame(library)
    with pytest.warns(UserWarning, match=TOO_LARGE % r"column 1 \('id'\), column 3 \('tiny'\)") as caught:
        fit = pk.fit(frame)
    of_size = [w for w in caught if "integers beyond" in str(w.message)]  # another is about the distance from zero
    assert len(of_size) == 1
    assert of_size[0].filename == __file__
    with pytest.warns(UserWarning, match=TOO_LARGE % r"column 1 \('id'\), column 3 \('tiny'\)"):
        fit.transform(frame)


@pytest.mark.parametrize("dtype", ["Int64", "UInt64", "int64[pyarrow]"])
def test_large_nullable_integers_warn(dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    with pytest.warns(UserWarning, match=TOO_LARGE % r"column 0 \('id'\)"):
        pk.fit(pd.DataFrame({"id": pd.Series([*LARGE, None], dtype=dtype), "x": [*A, None]}))


def test_large_integers_of_objects_warn():
    frame = pd.DataFrame({"id": pd.Series([*LARGE.tolist(), 2**70, None], dtype=object), "x": [*A, 1.0, 2.0]})
    with pytest.warns(UserWarning, match=TOO_LARGE % r"column 0 \('id'\)"):
        pk.fit(frame)


@pytest.mark.parametrize(
    "values",
    [LARGE, LARGE.astype(">i8"), LARGE.astype("u8"), -LARGE, LARGE.tolist(), [*LARGE.tolist(), 2**70]],
    ids=["int64", "big-endian", "uint64", "negative", "list", "beyond 64 bits"],
)
def test_large_integers_of_arrays_warn(values):
    with pytest.warns(UserWarning, match=TOO_LARGE % "column 0"):
        pk.fit(values)


@pytest.mark.parametrize(
    "values",
    [2**53 - np.arange(40), np.arange(40) - 2**53, np.arange(40, dtype="u8"), A * 1e20, np.arange(9, dtype="i2")],
)
def test_other_numbers_do_not_warn(values):
    pk.fit(np.append(values, values[0]))


def test_columns_are_found_by_name():
    frame = pandas_frame()
    fit = pk.fit(frame)
    expected = fit.transform(frame)
    pd.testing.assert_frame_equal(fit.transform(frame[["b", "a"]]), expected[["b", "a"]])
    wider = frame.assign(maker="Alfa", c=1.0)[["maker", "b", "c", "a"]]
    out = fit.transform(wider)
    assert list(out.columns) == ["maker", "b", "c", "a"]
    pd.testing.assert_frame_equal(out[["a", "b"]], expected)
    pd.testing.assert_frame_equal(out[["maker", "c"]], wider[["maker", "c"]])
    assert np.array_equal(wider["a"], A), "the input was changed"
    pd.testing.assert_frame_equal(fit.inverse_transform(out), wider)
    assert np.array_equal(fit.profile([0.5], wider), fit.profile([0.5], frame))


def test_columns_that_are_missing_are_an_error():
    frame = pandas_frame()
    with pytest.raises(ValueError, match="X lacks 'b' of the columns that were fitted; it also has 'c'"):
        pk.fit(frame).transform(frame.rename(columns={"b": "c"}))
    with pytest.raises(ValueError, match="X lacks 'b' of the columns that were fitted"):
        pk.fit(frame).transform(frame[["a"]])


def test_names_that_are_not_unique_go_by_position():
    frame = pandas_frame().set_axis(["a", "a"], axis=1)
    out = pk.fit(frame).transform(frame)
    assert list(out.columns) == ["a", "a"]
    assert np.array_equal(out.to_numpy(), pk.fit(frame.to_numpy()).transform(frame.to_numpy()))


def test_out_takes_an_array():
    frame = pandas_frame()
    out = np.empty((40, 2))
    assert pk.fit(frame).transform(frame, out=out) is out


# --- polars -------------------------------------------------------------------------------------------


@FAMILIES
def test_polars_frames_keep_names_and_nulls(family):
    frame = pl.DataFrame({"b": B, "a": [None, *A[1:]], "n": range(1, 41), "maker": ["Alfa"] * 40})
    fit = pk.fit(frame, family, non_numeric="ignore")
    out = fit.transform(frame)
    assert out.columns == ["b", "a", "n", "maker"]
    assert out["a"].null_count() == 1
    assert out["maker"].equals(frame["maker"])
    assert np.array_equal(out["b"].to_numpy(), fit.transform(frame["b", "a", "n"].to_numpy())[:, 0])
    back = fit.inverse_transform(out)
    assert np.allclose(back["a"].to_numpy(), frame["a"].to_numpy(), equal_nan=True)
    assert out.select(["n", "b", "a"]).equals(fit.transform(frame.select(["n", "b", "a"])))


def test_polars_series_keep_name_and_nulls():
    series = pl.Series("a", [None, *A[1:]])
    out = pk.fit(series).transform(series)
    assert isinstance(out, pl.Series)
    assert out.name == "a"
    assert out.null_count() == 1


# --- columns that hold no numbers ---------------------------------------------------------------------

MIXED = {"maker": ["Alfa", "Audi", "BMW"], "price": [1.0, 2.0, 5.0], "sold": [True, False, True]}


@pytest.mark.parametrize("library", [pd, pl])
def test_columns_that_hold_no_numbers(library):
    frame = library.DataFrame(MIXED)
    with pytest.raises(TypeError, match=r"column 0 \('maker'\)"):
        pk.fit(frame)
    with pytest.warns(UserWarning, match="hold no numbers are left out of the fit: 'maker'"):
        warned = pk.fit(frame, non_numeric="warn")
    ignored = pk.fit(frame, non_numeric="ignore")
    assert warned.column_names == ignored.column_names == ["price", "sold"]
    assert np.array_equal(warned.lmbda, ignored.lmbda)
    out = ignored.transform(frame)
    assert list(out["maker"]) == MIXED["maker"]
    with pytest.raises(TypeError, match="no column of X holds numbers: 'maker'"):
        pk.fit(frame[["maker"]], non_numeric="ignore")


def test_the_choice_is_one_of_three():
    with pytest.raises(ValueError, match="non_numeric must be one of 'raise', 'warn', 'ignore', got 'keep'"):
        pk.fit(pd.DataFrame(MIXED), non_numeric="keep")
    assert pk.fit([[1.0], [2.0], [4.0]], non_numeric="ignore").n_features == 1


# --- pyarrow ------------------------------------------------------------------------------------------


def arrow_table(pa, kind):
    table = pa.table({"name": ["x"] * 40, "b": B, "a": pa.array(A, mask=A < 0.5), "n": np.arange(40)})
    table = table.replace_schema_metadata({"note": "kept"})
    return table if kind == "Table" else table.combine_chunks().to_batches()[0]


@pytest.mark.parametrize("kind", ["Table", "RecordBatch"])
def test_arrow_tables_are_preserved(kind):
    pa = pytest.importorskip("pyarrow")
    table = arrow_table(pa, kind)
    fit = pk.fit(table.select(["a", "b"]))
    out = fit.transform(table)
    assert type(out) is type(table)
    assert out.column_names == table.column_names
    assert out.schema.metadata == {b"note": b"kept"}
    expected = fit.transform(np.column_stack([np.where(A < 0.5, np.nan, A), B]))
    for name, column in zip("ab", expected.T, strict=True):
        assert out[name].null_count == table[name].null_count
        assert np.array_equal(out[name].to_numpy(zero_copy_only=False), column, equal_nan=True)
    assert out.select(["name", "n"]).equals(table.select(["name", "n"]))
    back = fit.inverse_transform(out)
    assert np.allclose(
        back["a"].to_numpy(zero_copy_only=False), table["a"].to_numpy(zero_copy_only=False), equal_nan=True
    )


def test_arrow_columns_keep_type_and_precision():
    pa = pytest.importorskip("pyarrow")
    for one in (pa.array(A), pa.chunked_array([A[:9], A[9:]])):
        out = pk.fit(one).transform(one)
        assert type(out) is type(pa.chunked_array([A]) if isinstance(one, pa.ChunkedArray) else one)
        assert np.array_equal(np.asarray(out), pk.fit(A).transform(A))
    single = pa.table({"a": A.astype("f4"), "b": B.astype("f4")})
    assert pk.fit(single).transform(single).schema == single.schema


def test_arrow_tables_of_pandas_can_go_back_to_pandas():
    pa = pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"n": pd.array([1, 2, None, 9], dtype="Int64"), "s": list("wxyz")}, index=list("abcd"))
    table = pa.Table.from_pandas(frame)
    out = pk.fit(table.select(["n"])).transform(table).to_pandas()
    assert list(out.index) == list("abcd")
    assert np.allclose(
        out["n"], pk.fit(frame["n"]).transform(frame["n"]).to_numpy(float, na_value=np.nan), equal_nan=True
    )


def test_text_columns_of_arrow_tables_raise_or_are_left_out():
    pa = pytest.importorskip("pyarrow")
    table = arrow_table(pa, "Table")
    with pytest.raises(TypeError, match=r"column 0 \('name'\), row 0: 'x' is not a real number"):
        pk.fit(table)
    with pytest.warns(UserWarning, match="left out of the fit: 'name'"):
        assert pk.fit(table, non_numeric="warn").column_names == ["b", "a", "n"]


# --- weights by name ----------------------------------------------------------------------------------


def weighted(library):
    table = {"a": A, "w": np.arange(40.0), "b": B}
    return (
        pytest.importorskip("pyarrow").table(table)
        if library == "pyarrow"
        else {"pandas": pd, "polars": pl}[library].DataFrame(table)
    )


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("estimator", ["mle", "robust"])
def test_weights_are_a_column(library, estimator):
    frame, weight = weighted(library), np.arange(40.0)
    fit = pk.fit(frame, estimator=estimator, sample_weight="w")
    expected = pk.fit(np.column_stack([A, B]), estimator=estimator, sample_weight=weight)
    assert fit.column_names == ["a", "b"]
    assert np.array_equal(fit.lmbda, expected.lmbda)
    assert np.array_equal(np.asarray(fit.transform(frame)["w"]), weight), "weights are passed through"
    assert np.array_equal(
        fit.normality(frame, sample_weight="w").after.ppcc, expected.normality().after.ppcc, equal_nan=True
    )


def test_weights_that_are_not_a_column_are_refused():
    with pytest.raises(ValueError, match=r"sample_weight='v': there is no column of that name among 'a', 'w', 'b'"):
        pk.fit(weighted("pandas"), sample_weight="v")
    with pytest.raises(TypeError, match=r"sample_weight='w' names a column, but X is a ndarray, not a data fr"):
        pk.fit(A, sample_weight="w")
    with pytest.raises(ValueError, match="more than one column"):
        pk.fit(pd.DataFrame(np.ones((3, 3)), columns=["a", "w", "w"]), sample_weight="w")
    with pytest.raises(ValueError, match=r"row 2: the weight is -1\.0"):
        pk.fit(pd.DataFrame({"a": A, "w": np.where(np.arange(40) == 2, -1.0, 1.0)}), sample_weight="w")


def test_weights_are_a_column_wherever_rows_have_weights():
    from powerkern.federated import Client, fit_federated
    from powerkern.location import location_scale
    from powerkern.sketch import extend, finish, range_of, summarize_chunk

    frame, weight, X = weighted("pandas"), np.arange(40.0), np.column_stack([A, B])
    expected = pk.fit(X, sample_weight=weight)
    assert np.array_equal(location_scale(frame, sample_weight="w").loc, location_scale(X, sample_weight=weight).loc)
    total = summarize_chunk(frame, range_of(frame, sample_weight="w").grid(), sample_weight="w")
    for fit in (finish(total), finish(extend(None, frame, sample_weight="w"))):
        assert np.allclose(fit.lmbda, expected.lmbda, rtol=0, atol=1e-11)
        assert fit.column_names == ["a", "b"]
    sites = [Client(part, name=name, sample_weight="w") for name, part in (("a", frame), ("b", frame))]
    assert np.allclose(fit_federated(sites).lmbda, expected.lmbda, rtol=0, atol=1e-8)
