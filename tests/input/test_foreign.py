"""Objects of other libraries are recognised, and the message says which function to call."""

from __future__ import annotations

import numpy as np
import pytest

import powerkern as pk
from powerkern._input.foreign import is_instance_by_name, library


def fake(module: str, *names: str):
    """Return an instance of a class called names[0] that derives from names[1], and so on; all are in `module`."""
    base: type = object
    for name in reversed(names):
        base = type(name, (base,), {"__module__": module})
    return base()


ELSEWHERE = {
    "Dask array": (
        ("dask.array.core", "Array"),
        r"a Dask collection; use powerkern\.dask\.fit and \.transform, or .* X\.compute\(\)",
    ),
    "Dask frame": (("dask_expr._collection", "DataFrame", "FrameBase"), r"use powerkern\.dask\.fit"),
    "xarray": (("xarray.core.dataset", "Dataset"), r"an xarray Dataset; use powerkern\.xarray\.fit"),
    "Spark": (("pyspark.sql.classic.dataframe", "DataFrame"), r"a Spark DataFrame; use powerkern\.spark\.fit"),
    "Spark Connect": (("pyspark.sql.connect.dataframe", "DataFrame"), r"a Spark DataFrame; use powerkern\.spark\.fit"),
    "pandas on Spark": (("pyspark.pandas.frame", "DataFrame"), r"use powerkern\.spark\.fit\(X\.to_spark\(\)\)"),
    "Ray": (("ray.data.dataset", "MaterializedDataset", "Dataset"), r"a Ray Dataset; use powerkern\.ray\.fit"),
    "DuckDB": (("_duckdb", "DuckDBPyRelation"), r"a DuckDB relation; fit it by powerkern\.sketch\.fit_chunks\(X\)"),
    "DuckDB query": (("duckdb.duckdb", "DuckDBPyConnection"), r"pass a relation, connection\.sql"),
    "Arrow data set": (("pyarrow._dataset", "FileSystemDataset", "Dataset"), r"fit_chunks\(X\), .* X\.to_table\(\)"),
    "Arrow stream": (("pyarrow.lib", "RecordBatchReader"), r"load it with X\.read_all\(\)"),
    "vaex": (("vaex.dataframe", "DataFrameLocal"), r"fit_chunks with a function"),
    "ibis": (("ibis.expr.types.relations", "Table"), r"fit_chunks\(X\), .* X\.to_pyarrow\(\)"),
}


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_data_outside_memory_are_rejected_with_advice(kind):
    names, message = ELSEWHERE[kind]
    with pytest.raises(TypeError, match=f"^X is .*{message}"):
        pk.fit(fake(*names))


@pytest.mark.parametrize("module", ["daskless", "arrow.pyarrow", "myproject.dask", "rays"])
def test_names_that_only_look_alike(module):
    one = fake(module, "Dataset")
    assert library(one) == ""
    assert not is_instance_by_name(one, "pyarrow", "Dataset")
    with pytest.raises(TypeError, match=r"X is a Dataset; pass a table"):
        pk.fit(one)


def test_classes_of_the_libraries_are_where_they_are_looked_for():
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    arrow, dataset = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.dataset")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = arrow.table({"a": [1.0, 2.0]})
    sink = arrow.BufferOutputStream()
    parquet.write_table(table, sink)
    for one in (
        duckdb.connect().sql("select 1.0 as a"),
        duckdb.connect(),
        polars.LazyFrame({"a": [1.0]}),
        dataset.dataset(table),
        dataset.dataset(table).scanner(),
        table.to_reader(),
        parquet.ParquetFile(arrow.BufferReader(sink.getvalue())),
    ):
        with pytest.raises(TypeError, match=r"^X is a (DuckDB|polars|pyarrow) "):
            pk.fit(one)


def test_arrays_of_xarray_in_memory_are_read():
    xarray = pytest.importorskip("xarray")
    values = np.arange(1.0, 9.0)
    assert pk.fit(xarray.DataArray(values)).lmbda == pk.fit(values).lmbda
