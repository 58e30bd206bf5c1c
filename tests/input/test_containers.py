"""Results have the container of the input; columns of Python numbers are read; other objects raise one sentence."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pytest
import scipy.special
import xarray as xr

import powerkern as pk
from powerkern.location import location_scale
from powerkern.outliers import zscore
from powerkern.sketch import extend, finish, fit_chunks
from powerkern.stats import boxcox, boxcox1p, inv_boxcox, inv_boxcox1p, inv_yeojohnson, yeojohnson

RNG = np.random.default_rng(5)
VALUES = RNG.lognormal(size=(30, 3))
Z = pk.fit(VALUES).transform(VALUES)


class Ledger(pd.DataFrame):
    """A subclass with metadata, as described in the documentation of pandas."""

    _metadata: ClassVar = ["owner"]

    @property
    def _constructor(self) -> Any:
        return Ledger


# --- frames -----------------------------------------------------------------------------------------------

LABELS = {
    "range": pd.RangeIndex(3),
    "categories": pd.CategoricalIndex(list("abc"), name="kind"),
    "levels": pd.MultiIndex.from_tuples([(1, "u"), (1, "v"), (2, "u")], names=["site", "unit"]),
    "name": pd.Index(list("abc"), name="kind"),
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "Float64", "Float32", "double[pyarrow]", "Int64"])
@pytest.mark.parametrize("labels", LABELS)
def test_labels_and_types_are_preserved(labels: str, dtype: str) -> None:
    values = np.rint(10 * VALUES) if dtype == "Int64" else VALUES
    X = pd.DataFrame(values, columns=LABELS[labels], index=pd.Index(RNG.permutation(30), name="id")).astype(dtype)
    if dtype not in ("float64", "float32"):
        X.iloc[3, 1] = pd.NA
    z = pk.fit(X).transform(X)
    assert type(z.columns) is type(X.columns)
    assert z.columns.equals(X.columns)
    assert z.columns.names == X.columns.names
    assert z.index.equals(X.index)
    assert z.index.name == "id"
    assert z.isna().equals(X.isna())
    expected = {"Int64": "Float64"}.get(dtype, dtype)
    assert {str(kind) for kind in z.dtypes} == {str(pd.Series(dtype=expected).dtype)}


@pytest.mark.parametrize("fitted", [["a", "b", "c"], ["c", "a"]])
def test_subclass_attrs_and_metadata_are_preserved(fitted: list[str]) -> None:
    X = Ledger(VALUES, columns=["a", "b", "c"])
    X.attrs["unit"], X.owner = "mg", "lab"
    z = pk.fit(X[fitted]).transform(X)
    assert (type(z), z.attrs, z.owner) == (Ledger, {"unit": "mg"}, "lab")
    np.testing.assert_array_equal(z[fitted[0]], Z[:, "abc".index(fitted[0])])
    series = X["a"]
    series.attrs["unit"] = "mg"
    one = pk.fit(series).transform(series)
    assert (one.attrs, one.name) == ({"unit": "mg"}, "a")


def test_other_columns_stay_beside_fitted_ones_of_every_label() -> None:
    X = pd.DataFrame(VALUES, columns=LABELS["levels"])
    fit = pk.fit(X.iloc[:, [2, 0]])
    z = fit.transform(X)
    np.testing.assert_array_equal(z.iloc[:, 1], X.iloc[:, 1])
    np.testing.assert_array_equal(z.iloc[:, [0, 2]], Z[:, [0, 2]])
    assert z.columns.equals(X.columns)


def with_both(kind: str) -> Any:
    """Return a column of six values, NaN in row 2 and null in row 3, in a table of the library that `kind` names."""
    values, null = np.array([1.0, 2.0, np.nan, 0.0, 5.0, 7.0]), np.arange(6) == 3
    if kind == "polars":
        return pl.DataFrame({"a": [1.0, 2.0, float("nan"), None, 5.0, 7.0]})
    if kind == "arrow":
        return pa.table({"a": pa.array(values, mask=null)})
    if kind == "nullable":
        return pd.DataFrame({"a": pd.arrays.FloatingArray(values, null)})
    return pd.DataFrame({"a": pd.arrays.ArrowExtensionArray(pa.array(values, mask=null))})


@pytest.mark.parametrize("kind", ["polars", "arrow", "nullable", "pandas arrow"])
def test_nan_and_null_are_both_preserved(kind: str) -> None:
    X = with_both(kind)
    z = pk.fit(X).transform(X)
    if kind == "polars":
        cells = z["a"].to_list()
    elif kind == "arrow":
        cells = z.column("a").to_pylist()
    elif kind == "nullable":
        array = z["a"].array
        cells = [None if null else value for value, null in zip(array._data, array._mask, strict=True)]
    else:
        cells = z["a"].array.__arrow_array__().to_pylist()
    assert np.isnan(cells[2])
    assert cells[3] is None
    right = pk.fit(np.array([1.0, 2.0, 5.0, 7.0])).transform(np.array([1.0, 2.0, 5.0, 7.0]))
    np.testing.assert_array_equal([cells[k] for k in (0, 1, 4, 5)], right)


# --- functions of powerkern.stats --------------------------------------------------------------------------

INDEX = RNG.permutation(30)
CONTAINERS: dict[str, Any] = {
    "array": VALUES,
    "series": pd.Series(VALUES[:, 0], index=INDEX, name="x"),
    "frame": pd.DataFrame(VALUES, index=INDEX, columns=LABELS["categories"]),
    "masked": np.ma.array(VALUES, mask=VALUES > 2.0),
    "labelled": xr.DataArray(VALUES, dims=("t", "k"), coords={"t": INDEX}, attrs={"unit": "mg"}),
    "polars": pl.Series("x", VALUES[:, 0]),
}


UFUNCS = [
    (boxcox, scipy.special.boxcox),
    (inv_boxcox, scipy.special.inv_boxcox),
    (boxcox1p, scipy.special.boxcox1p),
    (inv_boxcox1p, scipy.special.inv_boxcox1p),
]


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("ours, theirs", UFUNCS)
def test_functions_keep_what_ufuncs_keep(ours: Callable[..., Any], theirs: Callable[..., Any], container: str) -> None:
    x = CONTAINERS[container]
    found, right = ours(x, 0.3), theirs(x, 0.3)
    assert type(found) is type(right)
    if container == "series":
        pd.testing.assert_series_equal(found, right)
    elif container == "frame":
        pd.testing.assert_frame_equal(found, right)
    elif container == "masked":
        np.testing.assert_array_equal(found.mask, right.mask)
    elif container == "labelled":
        xr.testing.assert_allclose(found, right)
        assert found.attrs == x.attrs
    np.testing.assert_allclose(np.ma.filled(found, 0.0), np.ma.filled(right, 0.0), rtol=1e-12)


@pytest.mark.parametrize("container", CONTAINERS)
def test_yeojohnson_and_its_inverse_keep_containers(container: str) -> None:
    x = CONTAINERS[container]
    back = inv_yeojohnson(yeojohnson(x, 0.3), 0.3)
    assert type(back) is type(x)
    np.testing.assert_allclose(np.ma.filled(back, 0.0), np.ma.filled(x, 0.0), rtol=1e-12)


def test_sorted_rows_go_back_to_their_rows() -> None:
    frame = pd.DataFrame({"x": VALUES[:, 0]})
    frame["back"] = inv_boxcox(boxcox(frame["x"], 0.0).sort_values(), 0.0)
    np.testing.assert_allclose(frame["back"], frame["x"])
    lambdas = pd.Series(np.linspace(-1.0, 1.0, 30), index=frame.index)
    pd.testing.assert_series_equal(boxcox(frame["x"], lambdas[::-1]), boxcox(frame["x"], lambdas))
    assert isinstance(boxcox(frame["x"])[0], np.ndarray)  # like scipy.stats.boxcox


# --- Python numbers ------------------------------------------------------------------------------------------

OBJECTS = {
    "decimals": [Decimal(1), Decimal(3), Decimal("2.5"), Decimal(9)],
    "integers with None": [1, None, 3, 9],
    "integers with NA": [1, pd.NA, 3, 9],
    "fractions": [Fraction(1, 3), 2, 3.5, Fraction(9)],
    "only None": [None] * 4,
}


def number_record_type(cells: list[Any]) -> list[float]:
    return [np.nan if cell is None or cell is pd.NA else float(cell) for cell in cells]


@pytest.mark.filterwarnings("ignore:column .*(no values|too few)")
@pytest.mark.parametrize("cells", OBJECTS)
class TestPythonNumbers:
    def test_columns_of_objects_are_read_as_lists_are(self, cells: str) -> None:
        column = pd.Series(OBJECTS[cells], dtype=object)
        frame = pd.DataFrame({"x": column, "y": [1.0, 2.0, 4.0, 3.0], "t": list("abcd")})
        plain = np.column_stack([number_record_type(OBJECTS[cells]), frame["y"]])
        right = pk.fit(plain)
        for fit in (pk.fit(frame[["x", "y"]]), pk.fit(frame, non_numeric="ignore")):
            np.testing.assert_array_equal(fit.lmbda, right.lmbda)
            assert fit.column_names == ["x", "y"]
            np.testing.assert_array_equal(fit.transform(frame)[["x", "y"]], right.transform(plain))
        np.testing.assert_array_equal(pk.fit(column).lmbda, right.lmbda[:1])
        np.testing.assert_array_equal(pk.fit(frame[["x"]], non_numeric="ignore").lmbda, right.lmbda[:1])

    @pytest.mark.filterwarnings("ignore:.*(scale|values)")
    def test_other_readers_accept_these_containers(self, cells: str) -> None:
        frame = pd.DataFrame({"x": pd.Series(OBJECTS[cells], dtype=object)})
        plain = np.array(number_record_type(OBJECTS[cells]))[:, np.newaxis]
        np.testing.assert_array_equal(location_scale(frame).loc, location_scale(plain).loc)
        np.testing.assert_array_equal(zscore(frame), zscore(plain))
        later = pd.DataFrame({"x": [2.0, 5.0, 4.0, 1.0]})
        right = pk.fit(np.vstack([plain, later])).lmbda
        for found in (fit_chunks([frame, later], non_numeric="ignore"), finish(extend(extend(None, frame), later))):
            np.testing.assert_allclose(found.lmbda, right, atol=1e-9)


def test_objects_beyond_float64_are_refused_and_rounded_ones_are_told() -> None:
    with pytest.raises(ValueError, match=r"integers beyond the range of float64"):
        pk.fit(pd.DataFrame({"x": pd.Series([1, 10**400, 3], dtype=object)}))
    with pytest.warns(UserWarning, match=r"integers beyond 2\*\*53 \(column 0 \('x'\)\)"):
        pk.fit(pd.DataFrame({"x": pd.Series([1, 2**60, 3, None], dtype=object)}), standardize=True)
    with pytest.raises(TypeError, match=r"column 0 \('x'\), row 1: 'two' is not a real number"):
        pk.fit(pd.DataFrame({"x": pd.Series([1, "two", 3], dtype=object)}))


# --- one sentence each --------------------------------------------------------------------------------------

FRAME = pd.DataFrame(VALUES, columns=["a", "b", "c"])
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "one row": (lambda: pk.fit(FRAME).transform(FRAME.iloc[0]), ValueError, r"X is one row of a data frame; .*iloc"),
    "groupby": (lambda: pk.fit(FRAME.groupby("a")), TypeError, "X is a GroupBy object; pass the data frame"),
    "series": (
        lambda: pk.fit(FRAME.groupby("a")["b"]),
        TypeError,
        "X is a GroupBy object; pass the series",
    ),
    "groups": (lambda: pk.fit(FRAME, groups=FRAME.groupby("a")), TypeError, "groups is a GroupBy object"),
    "polars": (lambda: pk.fit(pl.DataFrame(FRAME).group_by("a")), TypeError, "X is a GroupBy object"),
    "runs": (
        lambda: pk.fit(pa.table({"a": pa.compute.run_end_encode(pa.array([1.0, 1.0, 2.0]))})),
        TypeError,
        r"column 0 \('a'\) is run-end encoded .*run_end_decode",
    ),
    "intervals": (lambda: pk.fit(FRAME, groups=pd.cut(FRAME["a"], 3)), TypeError, r"a Interval; .*\.astype\(str\)"),
    "periods": (
        lambda: pk.fit(FRAME, groups=pd.Series(pd.period_range("2024", periods=30))),
        TypeError,
        r"a Period; .*\.astype\(str\)",
    ),
    "decimals": (lambda: pk.fit(FRAME, groups=[Decimal(1)] * 30), TypeError, r"a Decimal; .*\.astype\(str\)"),
    "times": (lambda: pk.fit(FRAME, groups=[datetime.time(1)] * 30), TypeError, r"a time; .*\.astype\(str\)"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_the_remedy(case: str) -> None:
    call, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        call()


def test_the_remedy_for_labels_works() -> None:
    assert len(pk.fit(FRAME, groups=pd.qcut(FRAME["a"], 3).astype(str))) == 3
