"""Every container of real numbers is read as an array; other input raises an error of one helpful sentence."""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from powerkern._input.arguments import domain_error
from powerkern._input.arrays import as_matrix, as_weights, check_n_features, column_label
from powerkern._input.reading import as_out

NAN = float("nan")
REAL_DTYPES = ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ">f8", ">f4", ">i4"]


def lazily(module: str, build: Callable[[Any], Any]) -> Callable[[], Any]:
    """Return a function that builds a test case from a library, or skips the test if `module` is not installed."""
    return lambda: build(pytest.importorskip(module))


def pandas_case(build: Callable[[Any], Any]) -> Callable[[], Any]:
    return lazily("pandas", build)


def polars_case(build: Callable[[Any], Any]) -> Callable[[], Any]:
    return lazily("polars", build)


def arrow_case(build: Callable[[Any], Any]) -> Callable[[], Any]:
    return lazily("pyarrow", build)


# --- arrays pass through ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", REAL_DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_real_arrays_are_not_copied(dtype: str, order: Any) -> None:
    X = np.ones((3, 2), dtype=dtype, order=order)
    X.flags.writeable = False
    values, names, was_vector, *_ = as_matrix(X)
    assert values is X
    assert names is None
    assert not was_vector


def test_long_doubles_become_float64() -> None:
    values = as_matrix(np.full((3, 2), 1.5, dtype=np.longdouble)).values
    assert values.dtype == np.float64
    assert (values == 1.5).all()


@pytest.mark.parametrize("rows", [slice(None, None, 2), slice(None, None, -1), slice(1, 2)])
def test_views_are_not_copied(rows: slice) -> None:
    base = np.arange(12.0).reshape(4, 3)
    X = base[rows, ::-1]
    assert as_matrix(X).values is X


def test_read_only_memmap_is_not_copied(tmp_path: Path) -> None:
    np.arange(6.0).reshape(3, 2).tofile(tmp_path / "x")
    X = np.memmap(tmp_path / "x", dtype=np.float64, mode="r", shape=(3, 2))
    values = as_matrix(X).values
    assert type(values) is np.ndarray
    assert np.shares_memory(values, X)


@pytest.mark.parametrize("x", [np.arange(5.0), np.arange(10.0)[::2], np.arange(5.0)[::-1], np.zeros(1)])
def test_vectors_become_one_column_without_copy(x: np.ndarray) -> None:
    values, _, was_vector, *_ = as_matrix(x)
    assert was_vector
    assert values.shape == (x.size, 1)
    assert np.shares_memory(values, x)
    assert_array_equal(values[:, 0], x)


@pytest.mark.parametrize(
    "X, expected",
    [
        ([[1, 2], [3, 4]], [[1, 2], [3, 4]]),
        (((1.5, 2), (3, NAN)), [[1.5, 2], [3, NAN]]),
        ([1, 2.5, True], [[1], [2.5], [1]]),
        (range(3), [[0], [1], [2]]),
        ([np.float32(1.5), np.int8(2)], [[1.5], [2]]),
        ([np.arange(2), np.arange(2)], [[0, 1], [0, 1]]),
        ([2**63, 1], [[2.0**63], [1]]),
        ([2**70, 1], [[2.0**70], [1]]),
        ([[1, None], [2, 3.5]], [[1, NAN], [2, 3.5]]),
        (np.eye(2).view(np.matrix), np.eye(2)),
    ],
)
@pytest.mark.filterwarnings(r"ignore:X holds integers beyond 2\*\*53")
def test_sequences_are_read_as_columns(X: Any, expected: Any) -> None:
    assert_array_equal(as_matrix(X).values, expected)


def test_objects_with_an_array_method_are_read() -> None:
    class Column:
        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return np.array([1.0, 2.0], dtype=dtype)

    assert_array_equal(as_matrix(Column()).values, [[1.0], [2.0]])


@pytest.mark.parametrize("dtype, read_as", [("i8", "f8"), ("bool", "f8"), ("f4", "f4"), ("f8", "f8")])
def test_masked_values_become_nan_in_a_copy(dtype: str, read_as: str) -> None:
    X = np.ma.array(np.ones((2, 2), dtype=dtype), mask=[[False, True], [False, False]])
    values = as_matrix(X).values
    assert values.dtype == read_as
    assert_array_equal(values, [[1, NAN], [1, 1]])
    assert_array_equal(X.data, np.ones((2, 2)))


def test_masked_array_without_masked_values_is_not_copied() -> None:
    X = np.ma.array([[1, 2], [3, 4]])
    assert np.shares_memory(as_matrix(X).values, X.data)


# --- data frames --------------------------------------------------------------------------------------

FRAMES = {
    "pandas floats": (pandas_case(lambda pd: pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})), [[1, 3], [2, 4]]),
    "pandas mixed": (
        pandas_case(lambda pd: pd.DataFrame({"a": [1, 2], "b": np.float32([3, 4]), "c": [True, False]})),
        [[1, 3, 1], [2, 4, 0]],
    ),
    "pandas nullable": (
        pandas_case(
            lambda pd: pd.DataFrame({"a": pd.array([1, None], "Int64"), "b": pd.array([None, True], "boolean")})
        ),
        [[1, NAN], [NAN, 1]],
    ),
    "pandas nullable of one type": (
        pandas_case(lambda pd: pd.DataFrame({c: pd.array([1.5, None], "Float64") for c in "ab"})),
        [[1.5, 1.5], [NAN, NAN]],
    ),
    "pandas sparse": (
        pandas_case(lambda pd: pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.0]), "b": [1, 2]})),
        [[0, 1], [1, 2]],
    ),
    "pandas over pyarrow": (
        pandas_case(
            lambda pd: (
                pytest.importorskip("pyarrow")
                and pd.DataFrame(
                    {"a": pd.array([1, None], "int64[pyarrow]"), "b": pd.array([None, 2.5], "double[pyarrow]")}
                )
            )
        ),
        [[1, NAN], [NAN, 2.5]],
    ),
    "pandas with equal names": (
        pandas_case(lambda pd: pd.DataFrame([[1, 2.5]], columns=["a", "a"])),
        [[1, 2.5]],
    ),
    "polars floats": (polars_case(lambda pl: pl.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})), [[1, 3], [2, 4]]),
    "polars mixed": (
        polars_case(lambda pl: pl.DataFrame({"a": [1, None], "b": [2.5, 3.5], "c": [None, True], "d": [None, None]})),
        [[1, 2.5, NAN, NAN], [NAN, 3.5, 1, NAN]],
    ),
    "polars nulls of one type": (polars_case(lambda pl: pl.DataFrame({"a": [1, None]})), [[1], [NAN]]),
    "polars decimals": (
        polars_case(lambda pl: pl.DataFrame({"a": [decimal.Decimal("1.5"), decimal.Decimal("2.5")]})),
        [[1.5], [2.5]],
    ),
    "polars 128-bit": (
        polars_case(lambda pl: pl.DataFrame({"a": pl.Series([2**100, 1], dtype=pl.Int128)})),
        [[2.0**100], [1]],
    ),
    "pyarrow": (
        arrow_case(lambda pa: pa.table({"a": [1, None], "b": [2.5, 3.5], "c": [None, True]})),
        [[1, 2.5, NAN], [NAN, 3.5, 1]],
    ),
}


@pytest.mark.parametrize("case", FRAMES)
def test_data_frames_are_read_with_their_names(case: str) -> None:
    build, expected = FRAMES[case]
    X = build()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"X holds integers beyond 2\*\*53")
        values, names, was_vector, *_ = as_matrix(X)
    assert values.dtype == np.float64
    assert_array_equal(values, expected)
    assert names == list(getattr(X, "column_names", X.columns))
    assert not was_vector


SERIES = {
    "pandas": (pandas_case(lambda pd: pd.Series([1, 2], name="q")), [[1], [2]], ["q"]),
    "pandas nullable": (pandas_case(lambda pd: pd.Series([1, None], dtype="Int64")), [[1], [NAN]], None),
    "pandas index": (pandas_case(lambda pd: pd.Index([1.5, 2])), [[1.5], [2]], None),
    "pandas array": (pandas_case(lambda pd: pd.array([True, None])), [[1], [NAN]], None),
    "polars": (polars_case(lambda pl: pl.Series("q", [1, None])), [[1], [NAN]], ["q"]),
    "polars without name": (polars_case(lambda pl: pl.Series([True, False])), [[1], [0]], None),
    "pyarrow": (arrow_case(lambda pa: pa.array([1, None])), [[1], [NAN]], None),
    "pyarrow chunks": (arrow_case(lambda pa: pa.chunked_array([[1], [2]])), [[1], [2]], None),
}


@pytest.mark.parametrize("case", SERIES)
def test_series_are_read_as_vectors(case: str) -> None:
    build, expected, expected_names = SERIES[case]
    values, names, was_vector, *_ = as_matrix(build())
    assert_array_equal(values, expected)
    assert names == expected_names
    assert was_vector


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "bool"])
def test_data_frame_of_one_numpy_type_keeps_it(dtype: str) -> None:
    X = pytest.importorskip("pandas").DataFrame(np.ones((3, 2), dtype=dtype), columns=["a", "b"])
    assert as_matrix(X).values.dtype == dtype


def test_data_frame_of_one_block_is_not_copied() -> None:
    X = pytest.importorskip("pandas").DataFrame(np.ones((3, 2)))
    assert np.shares_memory(as_matrix(X).values, X.to_numpy())


@pytest.mark.parametrize(
    "columns, names", [(None, [0, 1]), ([0, 1], [0, 1]), ([1, 0], [1, 0]), ([2000, 2010], [2000, 2010])]
)
def test_column_labels_keep_their_type(columns: Any, names: Any) -> None:
    assert as_matrix(pytest.importorskip("pandas").DataFrame(np.ones((3, 2)), columns=columns)).names == names


def test_column_names_go_before_those_of_the_data_frame() -> None:
    X = pytest.importorskip("pandas").DataFrame({"a": [1.0], "b": [2.0]})
    assert as_matrix(X, ("x", "y")).names == ["x", "y"]


def test_no_data_frame_library_is_imported() -> None:
    code = (
        "import sys; import numpy as np; from powerkern._input.arrays import as_matrix; as_matrix(np.ones((2, 2)));"
        "sys.exit(any(name in sys.modules for name in ('pandas', 'polars', 'pyarrow', 'dask', 'xarray')))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[1], check=False).returncode == 0


# --- refusals -----------------------------------------------------------------------------------------


class FromElsewhere:
    """An object that claims to be of another library's type. It must not be converted to an array."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise AssertionError("materialised")


class FromDask(FromElsewhere):
    __module__ = "dask.array.core"


class FromSparse(FromElsewhere):
    __module__ = "sparse._coo"

    def todense(self) -> None: ...


class FromXarray(FromElsewhere):
    __module__ = "xarray.core.dataarray"
    data = FromDask()


class Frame(FromDask):
    """A user's subclass of a library's data frame."""

    __module__ = "myproject"


def object_array(*cells: Any) -> np.ndarray:
    X = np.empty(len(cells), dtype=object)
    X[:] = cells
    return X


DATE = dt.date(2020, 1, 1)
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    # not data at all
    "None": (None, TypeError, r"X is a NoneType; pass a table of shape \(n, p\)"),
    "str": ("1, 2, 3", TypeError, "X is a str; pass"),
    "dict": ({"a": [1.0]}, TypeError, "X is a dict; pass"),
    "set": ({1.0, 2.0}, TypeError, "X is a set; pass"),
    "generator": ((i for i in range(3)), TypeError, "X is a generator; pass"),
    "number": (3.0, ValueError, "X is a float; pass"),
    "0-D": (np.array(3.0), ValueError, "X is a ndarray; pass"),
    "3-D": (np.zeros((2, 2, 2)), ValueError, "X has 3 dimensions; pass"),
    # shape
    "empty list": ([], ValueError, "X has no rows"),
    "no rows": (np.zeros((0, 3)), ValueError, r"X has no rows \(shape \(0, 3\)\)"),
    "no columns": (np.zeros((3, 0)), ValueError, r"X has no columns \(shape \(3, 0\)\)"),
    "ragged": (
        [[1, 2], [3, 4], [5]],
        ValueError,
        "row 0 has 2 values, row 2 has 1 value; all rows need the same number of values",
    ),
    "ragged vector": ([1.0, [2.0, 3.0]], ValueError, "row 0 has a single value, row 1 has 2 values"),
    "ragged inside": ([[[1, 2], [3]], [[1], [2]]], ValueError, "lists inside its rows differ in length; pass"),
    "ragged with arrays": ([np.array(1.0), np.ones(2)], ValueError, "row 0 has a single value, row 1 has 2 values"),
    # text
    "text in a list": ([[1, 2.0], [3, "b"]], TypeError, r"column 1, row 1: 'b' is not a real number; convert"),
    "numbers as text": (np.array([["1", "2"]]), TypeError, "column 0, row 0: '1' is not a real number"),
    "bytes": (np.array([b"1"]), TypeError, "X, row 0: b'1' is not a real number"),
    "long text": (["x" * 1000], TypeError, r"X, row 0: 'x{36}\.\.\. is not a real number"),
    # objects
    "object numbers": (
        np.array([[1, None]], dtype=object),
        TypeError,
        r"type object.*convert it with \.astype\(float\)",
    ),
    "object fractions": (object_array(fractions.Fraction(1, 3), decimal.Decimal(2)), TypeError, r"\.astype\(float\)"),
    "object date": (
        np.array([[1, 2], [3, DATE]], dtype=object),
        TypeError,
        r"column 1, row 1: .*\(date\) is not a real",
    ),
    "object complex": (object_array(1, 2j), TypeError, "row 1: 2j is not a real number; fit real and imaginary parts"),
    "object lists": (object_array([1], [2, 3]), TypeError, r"row 0: \[1\] \(list\) is not a real number"),
    "integers beyond float64": ([10**400, 1], ValueError, "X has integers beyond the range of float64"),
    "numpy text objects": (object_array(1, np.str_("a")), TypeError, "row 1: .*'a'.* is not a real number"),
    # other types
    "complex": (np.ones((2, 2), dtype=complex), TypeError, r"X is complex \(complex128\); fit its real and imaginary"),
    "complex list": ([[1, 2j]], TypeError, "X is complex"),
    "complex masked": (np.ma.array([1j, 2], mask=[True, False]), TypeError, "X is complex"),
    "dates": (np.array(["2020-01-01"], dtype="M8[D]"), TypeError, r"dates or times \(datetime64\[D\]\); convert it to"),
    "durations": (np.array([1], dtype="m8[s]"), TypeError, r"dates or times \(timedelta64\[s\]\)"),
    "structured": (np.zeros(2, dtype=[("a", float)]), TypeError, "structured_to_unstructured"),
    "void": (np.zeros(2, dtype="V8"), TypeError, r"is of type \|V8; convert it to numbers"),
    # conversion would make data dense, or load them, without the user's consent
    "sparse matrix": (scipy.sparse.csr_matrix(np.eye(2)), TypeError, r"X is sparse, .*; pass X\.toarray\(\)"),
    "sparse array": (scipy.sparse.coo_array(np.eye(2)), TypeError, r"X is sparse, .*; pass X\.toarray\(\)"),
    "pydata sparse": (FromSparse(), TypeError, r"X is sparse, .*; pass X\.todense\(\)"),
    "dask": (
        FromDask(),
        TypeError,
        r"X is a Dask collection; use powerkern\.dask\.fit and \.transform, or load it with X\.compute\(\)",
    ),
    "dask subclass": (Frame(), TypeError, "Dask collection"),
    "dask inside xarray": (
        FromXarray(),
        TypeError,
        r"X holds a Dask collection; use powerkern\.xarray\.fit and \.transform, or load",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_input_other_than_real_numbers_is_rejected(case: str) -> None:
    X, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        as_matrix(X)


REFUSED_FRAMES: dict[str, tuple[Callable[[], Any], str]] = {
    "pandas text": (
        pandas_case(lambda pd: pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})),
        r"column 1 \('b'\), row 0: 'x' is not a real number; convert the column .*, or leave it out$",
    ),
    "pandas decimal commas": (
        pandas_case(lambda pd: pd.DataFrame({"b": ["8268,83", "1.234,5"]})),
        r"column 0 \('b'\), row 0: '8268,83' is not a real number; .* decimal=','",
    ),
    "pandas text after gaps": (
        pandas_case(lambda pd: pd.DataFrame({"b": np.array([None, 1.5, "x"], dtype=object)})),
        r"column 0 \('b'\), row 2: 'x' is not",
    ),
    "pandas categories": (
        pandas_case(lambda pd: pd.DataFrame({"a": pd.Categorical([1, 2])})),
        r"column 0 \('a'\) is categorical \(category\); convert the categories",
    ),
    "pandas dates": (
        pandas_case(lambda pd: pd.DataFrame({"t": pd.to_datetime(["2020-01-01"])})),
        r"column 0 \('t'\) holds dates or times \(datetime64",
    ),
    "pandas zoned dates": (
        pandas_case(lambda pd: pd.Series(pd.to_datetime(["2020-01-01"]).tz_localize("UTC"))),
        r"X holds dates or times \(datetime64\[.*UTC\]\)",
    ),
    "pandas durations": (
        pandas_case(lambda pd: pd.DataFrame({"t": pd.to_timedelta([1], unit="s")})),
        r"column 0 \('t'\) holds dates or times \(timedelta64",
    ),
    "pandas periods": (
        pandas_case(lambda pd: pd.DataFrame({"t": pd.period_range("2020", periods=2)})),
        r"column 0 \('t'\) holds dates or times \(period",
    ),
    "pandas intervals": (
        pandas_case(lambda pd: pd.DataFrame({"t": pd.interval_range(0, 2)})),
        r"column 0 \('t'\), row 0: .*\(Interval\) is not a real number",
    ),
    "pandas complex": (
        pandas_case(lambda pd: pd.DataFrame({"a": [1.0], "z": [1j]})),
        r"column 1 \('z'\) is complex",
    ),
    "pandas text series": (pandas_case(lambda pd: pd.Series(["1", "b"])), "X, row 0: '1' is not a real number"),
    "polars text": (
        polars_case(lambda pl: pl.DataFrame({"a": [1.0, 2.0], "b": [None, "y"]})),
        r"column 1 \('b'\), row 1: 'y' is not a real number",
    ),
    "polars dates": (
        polars_case(lambda pl: pl.DataFrame({"t": [DATE]})),
        r"column 0 \('t'\) holds dates or times \(Date\)",
    ),
    "polars categories": (
        polars_case(lambda pl: pl.DataFrame({"a": pl.Series(["x"], dtype=pl.Categorical)})),
        r"column 0 \('a'\) is categorical",
    ),
    "polars lists": (
        polars_case(lambda pl: pl.DataFrame({"a": [[1.0]]})),
        r"column 0 \('a'\), row 0: \[1\.0\] \(list\) is not a real number",
    ),
    "polars lazy": (
        polars_case(lambda pl: pl.DataFrame({"a": [1.0]}).lazy()),
        r"LazyFrame; fit it by powerkern\.sketch\.fit_chunks\(X\), .* or load it with X\.collect\(\)",
    ),
    "pyarrow text": (
        arrow_case(lambda pa: pa.table({"a": ["x"]})),
        r"column 0 \('a'\), row 0: 'x' is not a real number",
    ),
    "pyarrow dictionary": (
        arrow_case(lambda pa: pa.table({"a": pa.array(["x"]).dictionary_encode()})),
        r"column 0 \('a'\) is categorical",
    ),
    "pyarrow dates": (
        arrow_case(lambda pa: pa.table({"t": [DATE]})),
        r"column 0 \('t'\) holds dates or times",
    ),
}


@pytest.mark.parametrize("case", REFUSED_FRAMES)
def test_data_frames_of_other_than_numbers_are_refused(case: str) -> None:
    build, message = REFUSED_FRAMES[case]
    X = build()
    with pytest.raises(TypeError, match=message):
        as_matrix(X)


def test_empty_data_frames_are_refused() -> None:
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="X has no columns"):
        as_matrix(pd.DataFrame())
    with pytest.raises(ValueError, match="X has no rows"):
        as_matrix(pd.DataFrame({"a": []}, dtype=float))


def test_the_argument_is_called_by_its_name() -> None:
    with pytest.raises(TypeError, match=r"^Z is complex"):
        as_matrix([1j], what="Z")


# --- names and places ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names, error, message",
    [
        (["a"], ValueError, "column_names has 1 name, X has 2 columns"),
        (["a", "b", "c"], ValueError, "column_names has 3 names, X has 2 columns"),
        (["a", "a"], ValueError, "column_names has 'a' more than once"),
        (["a", None], TypeError, r"column_names\[1\] is None, a NoneType; labels are text, numbers or tuples"),
        (["a", ["b"]], TypeError, r"column_names\[1\] is \['b'\], a list; labels are text, numbers or tuples"),
        ("ab", TypeError, "column_names is one string; pass a list of 2 names"),
    ],
)
def test_invalid_column_names_are_refused(names: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        as_matrix([[1.0, 2.0]], names)


def test_column_names_are_used_for_bad_cells() -> None:
    X = np.array([[1, 2], [3, "x"]], dtype=object)
    with pytest.raises(TypeError, match=r"column 1 \('b'\), row 1"):
        as_matrix(X, ["a", "b"])
    with pytest.raises(TypeError, match=r"column 1, row 1"):
        as_matrix(X, ["only one"])


def test_column_labels_have_position_and_name() -> None:
    assert column_label(3, None) == "column 3"
    assert column_label(1, ["a", "price"]) == "column 1 ('price')"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("infinite", 1, 17, np.inf, ["a", "price"]), "column 1 ('price'), row 17: the value is inf; replace"),
        (("infinite", 1, 17, -np.inf, None), "column 1, row 17: the value is -inf; replace infinite values, or mark"),
        (("infinite", None, 17, np.float32(np.inf), ["price"]), "row 17: the value is inf; replace"),
        (("not positive", 0, 2, np.int64(-3), None), "column 0, row 2: the value is -3.0, and the Box-Cox"),
    ],
)
def test_domain_errors_name_column_row_and_value(arguments: tuple[Any, ...], message: str) -> None:
    error = domain_error(*arguments)
    assert type(error) is ValueError
    assert str(error).startswith(message)


def test_domain_error_contains_the_words_of_scikit_learn() -> None:
    text = str(domain_error("not positive", 0, 0, 0.0, None))
    assert "strictly positive" in text
    assert "family='yeo-johnson'" in text


@pytest.mark.parametrize(
    "p, p_fitted, names, fitted, message",
    [
        (3, 5, None, None, "X has 3 columns, the fit has 5"),
        (1, 2, None, None, "X has 1 column, the fit has 2"),
        (2, 2, ["b", "a"], ["a", "b"], r"another order: column 0 \('b'\) of X is 'a' in the fit; reorder"),
        (
            3,
            3,
            ["a", "b", "x"],
            ["a", "b", "c"],
            "X lacks 'c' of the columns that were fitted; it also has 'x'",
        ),
    ],
)
def test_other_columns_than_fitted_are_refused(p: int, p_fitted: int, names: Any, fitted: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_n_features(np.ones((4, p)), p_fitted, names, fitted)


@pytest.mark.parametrize(
    "p, names, fitted",
    [
        (2, None, None),
        (2, ["a", "b"], ["a", "b"]),
        (2, ["a", "b"], None),
        (2, None, ["a", "b"]),
        (2, ["a", "a"], ["a", "a"]),
        (1, ["price"], ["price_eur"]),
    ],
)
def test_columns_as_fitted(p: int, names: Any, fitted: Any) -> None:
    check_n_features(np.ones((4, p)), p, names, fitted)


# --- weights ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "weights",
    [
        [1, 0, 2],
        (True, False, True),
        np.array([1.0, 9, 2, 9, 3])[::2],
        np.array([1, 2, 3], dtype=">f4"),
        np.array([1, 2, 3], dtype="f2"),
        np.array([1e-280, 0, 0]),
        np.full(3, 1e300),
        np.array([1, 2**60 + 1, 3]),  # rounding of weights does not warn
        [1, 2**60 + 1, 3],
    ],
)
def test_weights_become_contiguous_float64(weights: Any) -> None:
    result = as_weights(weights, 3)
    assert result.dtype == np.float64
    assert result.dtype.isnative
    assert result.flags.c_contiguous
    assert_array_equal(result, np.array(weights, dtype=np.float64))


def test_weights_in_a_series_are_read() -> None:
    pd = pytest.importorskip("pandas")
    for dtype in ("Int64", "int64"):
        assert_array_equal(as_weights(pd.Series([1, 2**60 + 1], dtype=dtype, name="w"), 2), [1.0, 2.0**60])


@pytest.mark.parametrize(
    "weights, error, message",
    [
        ([1, 2], ValueError, r"sample_weight has shape \(2,\), X has 3 rows; pass one weight per row"),
        ([], ValueError, r"shape \(0,\), X has 3 rows"),
        ([[1], [2], [3]], ValueError, r"sample_weight has shape \(3, 1\), X has 3 rows"),
        (2.0, ValueError, "sample_weight is a float; pass"),
        (
            [1, 2, -1e-9],
            ValueError,
            "sample_weight, row 2: the weight is -1e-09; weights must be finite and not negative",
        ),
        ([1, NAN, 1], ValueError, "sample_weight, row 1: the weight is nan"),
        ([np.inf, 1, 1], ValueError, "sample_weight, row 0: the weight is inf"),
        (np.ma.array([1, 2, 3], mask=[0, 0, 1]), ValueError, "sample_weight, row 2: the weight is nan"),
        ([0, 0, 0], ValueError, "sample_weight is zero in every row; give"),
        ([5e-324, 0, 0], ValueError, r"sample_weight sums to 4.94e-324, .*; divide it by its largest"),
        (np.full(3, 1e308), ValueError, r"sample_weight sums to inf, .*; divide it by its largest"),
        (["a", "b", "c"], TypeError, "sample_weight, row 0: 'a' is not a real number"),
        ([1j, 1, 1], TypeError, "sample_weight is complex"),
        ("balanced", TypeError, "sample_weight is a str; pass"),
        (scipy.sparse.csr_array(np.ones((1, 3))), TypeError, r"sample_weight is sparse.*sample_weight\.toarray\(\)"),
    ],
)
def test_invalid_weights_are_refused(weights: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        as_weights(weights, 3)


# --- output arrays ------------------------------------------------------------------------------------


def test_out_apart_from_the_input_is_accepted() -> None:
    X = np.ones((4, 3))
    for out in (np.empty((4, 3)), np.empty((4, 3), order="F"), np.empty((8, 3))[::-2], X.copy()):
        assert as_out(out, (4, 3), np.float64, X) is out


def test_out_may_be_the_input() -> None:
    X = np.ones((4, 3))
    assert as_out(X, (4, 3), np.float64, X) is X
    assert as_out(X[:], (4, 3), np.float64, X) is not None
    x = np.arange(6.0)[::2]
    assert as_out(x, (3,), np.float64, x[:, np.newaxis]) is x
    one_row = np.ones((1, 3))
    assert as_out(one_row, (1, 3), np.float64, one_row[:, :]) is one_row


def test_out_beside_the_input_in_one_buffer_is_accepted() -> None:
    buffer = np.ones((4, 6))
    out = buffer[:, 1::2]
    assert as_out(out, (4, 3), np.float64, buffer[:, ::2]) is out


@pytest.mark.parametrize(
    "out, message",
    [
        (np.empty((3, 4)), r"out has shape \(3, 4\), the result has \(4, 3\); pass np.empty\(\(4, 3\)\)"),
        (np.empty((4, 3), dtype="f4"), "out has dtype float32, the result has float64"),
        (np.empty((4, 3), dtype=">f8"), "out has dtype >f8, the result has float64"),
        (np.broadcast_to(0.0, (4, 3)), "out is read-only"),
    ],
)
def test_invalid_out_is_refused(out: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_out(out, (4, 3), np.float64)


@pytest.mark.parametrize("out", [[[0.0] * 3] * 4, None, np.ma.zeros((4, 3)), 0.0])
def test_out_that_is_not_an_array_is_refused(out: Any) -> None:
    with pytest.raises(TypeError, match=rf"out is a {type(out).__name__}; pass a plain NumPy array"):
        as_out(out, (4, 3), np.float64)


@pytest.mark.parametrize(
    "shift",
    [
        lambda b: (b[1:], b[:-1]),
        lambda b: (b[:-1], b[1:]),
        lambda b: (b[1:4], b[3:0:-1]),
        lambda b: (b[:3, :3], b[:3, :3].T),
        lambda b: (b.view("i8"), b),
    ],
)
def test_out_that_overlaps_the_input_is_refused(shift: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]) -> None:
    X, out = shift(np.ones((5, 3)))
    with pytest.raises(ValueError, match="out overlaps X in memory; pass X itself"):
        as_out(out, out.shape, np.float64, X)
