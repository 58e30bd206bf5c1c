"""Recognise objects of other libraries by the names of their classes, without importing the libraries."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np


class _Kind(NamedTuple):
    """A kind of object that is rejected, because its numbers are not in an array or not in memory."""

    #: The module of the class, or the beginning of the name of the module.
    module: str
    #: Name of the class; "" for every class of the module.
    name: str
    #: Description of the objects, for messages.
    what: str
    #: The remedy; {X} stands for the object.
    remedy: str


_IN_BATCHES = "fit it by powerkern.sketch.fit_chunks({X}), which reads it in batches, or load it with {X}"

#: Objects that `fit` rejects, and the function to use instead. The first row that matches the class, or one of its
#: bases, applies.
_KINDS = (
    _Kind("dask", "", "a Dask collection", "use powerkern.dask.fit and .transform, or load it with {X}.compute()"),
    _Kind("dask_expr", "", "a Dask collection", "use powerkern.dask.fit and .transform, or load it with {X}.compute()"),
    _Kind("xarray", "Dataset", "an xarray Dataset", "use powerkern.xarray.fit and .transform"),
    _Kind(
        "pyspark.pandas", "", "pandas on Spark", "use powerkern.spark.fit({X}.to_spark()), or load it with to_pandas()"
    ),
    _Kind(
        "pyspark",
        "DataFrame",
        "a Spark DataFrame",
        "use powerkern.spark.fit and .transform, or load it with {X}.toPandas()",
    ),
    _Kind(
        "ray.data", "Dataset", "a Ray Dataset", "use powerkern.ray.fit and .transform, or load it with {X}.to_pandas()"
    ),
    _Kind("polars", "LazyFrame", "a polars LazyFrame", _IN_BATCHES + ".collect()"),
    _Kind("duckdb", "DuckDBPyRelation", "a DuckDB relation", _IN_BATCHES + ".df()"),
    _Kind("duckdb", "DuckDBPyConnection", "a DuckDB connection", "pass a relation, connection.sql('select ...')"),
    _Kind("pyarrow", "Dataset", "a pyarrow Dataset", _IN_BATCHES + ".to_table()"),
    _Kind("pyarrow", "Scanner", "a pyarrow Scanner", _IN_BATCHES + ".to_table()"),
    _Kind("pyarrow", "ParquetFile", "a pyarrow ParquetFile", _IN_BATCHES + ".read()"),
    _Kind("pyarrow", "RecordBatchReader", "a pyarrow RecordBatchReader", "load it with {X}.read_all()"),
    _Kind("pyarrow", "ParquetDataset", "a pyarrow ParquetDataset", "pass pyarrow.dataset.dataset(path)"),
    _Kind(
        "pandas",
        "DataFrameGroupBy",
        "a GroupBy object",
        "pass the data frame, and the name of the grouping column as groups=",
    ),
    _Kind("pandas", "SeriesGroupBy", "a GroupBy object", "pass the series, and the labels of its rows as groups="),
    _Kind(
        "polars", "GroupBy", "a GroupBy object", "pass the data frame, and the name of the grouping column as groups="
    ),
    _Kind("vaex", "", "held by vaex", "use powerkern.sketch.fit_chunks with a function that reads it in chunks"),
    _Kind("ibis", "", "an Ibis expression", _IN_BATCHES + ".to_pyarrow()"),
    _Kind("narwhals", "LazyFrame", "a lazy frame of narwhals", _IN_BATCHES + ".collect()"),
)

_LIBRARIES = {"pandas", "modin", "cudf", "scipy", "sparse", *(kind.module.partition(".")[0] for kind in _KINDS)}


def library(X: object) -> str:
    """Return the name of the library that defines the type of X, or "", without importing it."""
    return "" if type(X) is np.ndarray else _library_of(type(X).__mro__)


@functools.lru_cache(maxsize=256)
def _library_of(classes: tuple[type, ...]) -> str:
    roots = (cls.__module__.partition(".")[0].lstrip("_") for cls in classes)
    return next((root for root in roots if root in _LIBRARIES), "")


def is_instance_by_name(X: object, module: str, *names: str) -> bool:
    """Return whether X is an instance of one of the classes `names` of a library, or of a class derived from one."""
    return any(_belongs(cls, module) and cls.__name__ in names for cls in type(X).__mro__)


def _belongs(cls: type, module: str) -> bool:
    return f"{cls.__module__.lstrip('_')}.".startswith(f"{module}.")


def find_refusal(X: object) -> _Kind | None:
    """Return the row of `_KINDS` that describes X, or None if X is accepted."""
    return _find_refusal(type(X).__mro__) if library(X) else None


@functools.lru_cache(maxsize=256)
def _find_refusal(classes: tuple[type, ...]) -> _Kind | None:
    matches = (
        kind for cls in classes for kind in _KINDS if _belongs(cls, kind.module) and kind.name in ("", cls.__name__)
    )
    return next(matches, None)


def refuse_foreign(X: object, what: str = "X") -> None:
    """Raise for objects that ``np.asarray`` would silently load, densify or misread.

    `what` is the name of the argument in messages.
    """
    refuse_remote(X, what)
    if hasattr(X, "toarray") or (library(X) == "sparse" and hasattr(X, "todense")):
        method = "toarray" if hasattr(X, "toarray") else "todense"
        raise TypeError(f"{what} is sparse, and its transform would be dense; pass {what}.{method}()")


def refuse_remote(X: object, what: str = "X") -> None:
    """Raise for tables that are not in the memory of this process.

    `what` is the name of the argument in messages.
    """
    kind = find_refusal(X)
    if kind is not None:
        raise TypeError(f"{what} is {kind.what}; {kind.remedy.format(X=what)}")
    inside = find_refusal(getattr(X, "data", None)) if library(X) == "xarray" else None
    if inside is not None:
        raise TypeError(
            f"{what} holds {inside.what}; use powerkern.xarray.fit and .transform, or load it with {what}.compute()"
        )
