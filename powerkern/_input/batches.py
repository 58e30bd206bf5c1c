"""Tables of pyarrow, polars, DuckDB and Ibis that this process reads in batches of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from powerkern._input import frames
from powerkern._input.arrays import chunk_errors
from powerkern._input.foreign import is_instance_by_name, library

#: Approximate number of cells of a batch of rows.
CELLS = 2**20


class Batches(NamedTuple):
    """A table that can be read repeatedly in batches, from its start each time."""

    #: A data frame with the table's columns and one row of missing values; None for a single column.
    blank: Any
    #: ``read(names, rows)`` yields the columns `names` (None: all) in batches of `rows` rows.
    read: Callable[[list[str] | None, int], Iterator[Any]]

    def read_small(self, names: list[str] | None) -> Iterator[Any]:
        """Yield batches of the columns `names` (None: all), each of about `CELLS` cells."""
        every = 1 if self.blank is None else len(frames.names_of(self.blank) or [])
        return self.read(names, max(1, CELLS // max(1, every if names is None else len(names))))


def batches_of(X: Any) -> Batches | None:
    """Return a reader of X in batches, or None if X is not such a table or can be read only once."""
    if is_instance_by_name(X, "narwhals", "LazyFrame"):
        return batches_of(X.to_native())
    return next((make(X) for module, names, make in _KINDS if is_instance_by_name(X, module, *names)), None)


def apply_lazily(
    X: Any, function: Callable[[Any], Any], out: object = None, of_blank: Callable[[Any], Any] | None = None
) -> Any:
    """Return a lazy table that applies `function` to each batch of X as it is read, or None if X is in memory.

    For a lazy frame of polars the result is a lazy frame, otherwise a RecordBatchReader of pyarrow.

    Parameters
    ----------
    X : object
        The data.
    function : callable
        Called with each batch, a table in memory.
    out : object
        The argument `out` of the user, which must be None if X is read in batches.
    of_blank : callable, optional
        Called with one row of missing values to determine the types of the result; default: `function`.
    """
    if library(X) not in ("pyarrow", "polars", "duckdb", "ibis", "narwhals"):
        return None
    if is_instance_by_name(X, "narwhals", "LazyFrame"):
        result = apply_lazily(X.to_native(), function, out, of_blank)
        if library(result) != "polars":
            return result
        from powerkern._input.narwhals_frame import rewrapping

        return rewrapping(X)(result)
    source = None if is_instance_by_name(X, "pyarrow", *_IN_MEMORY) else batches_of(X)
    if is_instance_by_name(X, "pyarrow", "RecordBatchReader"):
        source = Batches(_arrow_blank(X.schema), lambda names, rows: X)
    if source is None:
        return None
    if out is not None:
        raise TypeError(
            f"out= is for data in memory, not for a {type(X).__name__}, which is read in batches; leave it out"
        )
    blank = (of_blank or function)(source.blank)
    if is_instance_by_name(X, "polars", "LazyFrame"):
        return X.map_batches(partial(_or_none, function, blank.clear()), schema=blank.schema, streamable=True)
    import pyarrow

    return pyarrow.RecordBatchReader.from_batches(blank.schema, _each(source.read_small(None), function))


def _or_none(function: Callable[[Any], Any], none: Any, batch: Any) -> Any:
    return function(batch) if len(batch) else none


def _each(batches: Iterator[Any], function: Callable[[Any], Any]) -> Iterator[Any]:
    for i, batch in enumerate(batches):
        if len(batch):
            with chunk_errors(f"batch {i}"):
                result = function(batch)
            yield result


# --- kinds of tables ----------------------------------------------------------------------------------


def _table(X: Any) -> Batches:
    def read(names: list[str] | None, rows: int) -> Iterator[Any]:
        part = X if names is None else X.select(names)
        return (part.slice(start, rows) for start in range(0, len(part), rows))

    return Batches(_arrow_blank(X.schema) if hasattr(X, "schema") else None, read)


def _dataset(X: Any) -> Batches:
    def read(names: list[str] | None, rows: int) -> Iterator[Any]:
        options = {"columns": names, "batch_size": rows, "batch_readahead": 1, "fragment_readahead": 1}
        try:
            fragments = X.get_fragments()
        except ValueError:  # some of the rows only
            batches: Iterator[Any] = X.to_batches(**options)
            return batches
        parts = (part for fragment in fragments for part in _groups(fragment))
        return (batch for part in parts for batch in part.to_batches(schema=X.schema, **options))

    return Batches(_arrow_blank(X.schema), read)


def _groups(fragment: Any) -> list[Any]:
    """Return the row groups of a fragment, or the fragment itself if it has none.

    Row groups are read one by one, because pyarrow reads a data set ahead of its consumer and could hold all of it in
    memory.
    """
    groups: list[Any] = fragment.split_by_row_group() if hasattr(fragment, "split_by_row_group") else [fragment]
    return groups


def _scanner(X: Any) -> Batches:
    def read(names: list[str] | None, rows: int) -> Iterator[Any]:
        return (batch if names is None else batch.select(names) for batch in X.to_batches())

    return Batches(_arrow_blank(X.projected_schema), read)


def _file(X: Any) -> Batches:
    return Batches(_arrow_blank(X.schema_arrow), partial(row_groups, X))


def row_groups(file: Any, names: list[str] | None, rows: int) -> Iterator[Any]:
    """Yield the rows of a Parquet file in batches.

    Each row group has an iterator of its own; a common one would keep all groups in memory.

    Parameters
    ----------
    file : pyarrow.parquet.ParquetFile
        The file.
    names : list of str or None
        Columns to read; None: all.
    rows : int
        Largest number of rows of a batch.
    """
    for i in range(file.num_row_groups):
        yield from file.iter_batches(batch_size=rows, row_groups=[i], columns=names)


def _relation(X: Any) -> Batches:
    def read(names: list[str] | None, rows: int) -> Iterator[Any]:
        import duckdb

        part = X if names is None else X.select(*map(duckdb.ColumnExpression, names))
        batches: Iterator[Any] = part.to_arrow_reader(rows)
        return batches

    return Batches(_arrow_blank(X.limit(0).to_arrow_table().schema), read)


def _lazy_frame(X: Any) -> Batches:
    def read(names: list[str] | None, rows: int) -> Iterator[Any]:
        import polars

        part = X if names is None else X.select(polars.selectors.by_name(*names))
        batches: Iterator[Any] = part.collect_batches(chunk_size=rows, engine="streaming")
        return batches

    return Batches(_polars_blank(X.collect_schema()), read)


def _expression(X: Any) -> Batches:
    def read(names: list[str] | None, rows: int) -> Iterator[Any]:
        part = X if names is None else X.select(*names)
        batches: Iterator[Any] = part.to_pyarrow_batches(chunk_size=rows)
        return batches

    return Batches(_arrow_blank(X.schema().to_pyarrow()), read)


def _arrow_blank(schema: Any) -> Any:
    import pyarrow

    return pyarrow.RecordBatch.from_arrays([pyarrow.nulls(1, kind) for kind in schema.types], schema=schema)


def _polars_blank(schema: Any) -> Any:
    import polars

    return polars.DataFrame(schema=schema).clear(1)


_IN_MEMORY = ("Table", "RecordBatch", "ChunkedArray", "Array")

_KINDS: tuple[tuple[str, tuple[str, ...], Callable[[Any], Batches]], ...] = (
    ("pyarrow", _IN_MEMORY, _table),
    ("pyarrow", ("Dataset",), _dataset),
    ("pyarrow", ("Scanner",), _scanner),
    ("pyarrow", ("ParquetFile",), _file),
    ("duckdb", ("DuckDBPyRelation",), _relation),
    ("polars", ("LazyFrame",), _lazy_frame),
    ("ibis", ("Table",), _expression),
)
