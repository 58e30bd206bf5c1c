"""Parquet files, read and written in groups of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from powerkern._input.batches import CELLS, row_groups
from powerkern._input.tables.identifiers import IdentifierEvidence, no_numbers, warn_about_rounding
from powerkern._input.tables.table import BadInput, Block, Choice, FileLayout, Selection, Table, check_distinct


def pyarrow() -> Any:
    """Import and return pyarrow; if it is not installed, raise an error that says how to install it."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise BadInput("Parquet files need pyarrow: pip install pyarrow") from error
    return pyarrow


def read_parquet(file: IO[bytes], path: Path, choose: Choice, keep: bool = True) -> Table:
    """Read the columns that `choose` selects.

    Parameters
    ----------
    file : file
        The open file.
    path : Path
        Its path, for messages.
    choose, keep
        As in `read`.
    """
    data = _opened(file, path)
    names, selection, candidates = _select(data, path, choose)
    evidence = _gather_evidence(data, path, [names[j] for j in candidates])
    identifiers = {}
    for j in candidates:
        reason = None if selection.is_requested(j) else evidence[names[j]].reason()
        if reason is not None:
            identifiers[names[j]] = reason
        else:
            warn_about_rounding(path.name, names[j], evidence[names[j]])
    positions = tuple(j for j in candidates if names[j] not in identifiers)
    if not positions:
        raise no_numbers(path.name, identifiers)
    layout = FileLayout(names, True, positions, data.schema_arrow.metadata)
    n_rows, start = data.metadata.num_rows, 0
    table = Table(layout, n_rows, {}, None, identifiers)
    if not keep:
        return table
    matrix = np.empty((n_rows, len(layout.positions)), order="F")
    for batch in _batches(data, path, layout.matrix_names):
        _fill(matrix[start : start + batch.num_rows], batch, layout.matrix_names)
        start += batch.num_rows
    return replace(table, block=Block(matrix, {}))


def stream_parquet(file: IO[bytes], path: Path, choose: Choice) -> tuple[FileLayout, Iterator[Block]]:
    """Return the layout of a table and an iterator over its rows in blocks; columns not selected pass unchanged."""
    data = _opened(file, path)
    names, _, positions = _select(data, path, choose)
    layout = FileLayout(names, True, tuple(positions), data.schema_arrow.metadata)
    return layout, _blocks(data, path, layout)


def _blocks(data: Any, path: Path, layout: FileLayout) -> Iterator[Block]:
    others = sorted(set(range(len(layout.names))).difference(layout.positions))
    evidence = {name: IdentifierEvidence(name) for name in layout.matrix_names}
    start = 0
    for batch in _batches(data, path, list(layout.names)):
        matrix = np.empty((batch.num_rows, len(layout.positions)), order="F")
        _fill(matrix, batch, layout.matrix_names)
        for name, each in evidence.items():
            if each.may_be_identifiers:
                each.add_values(_whole_values(batch.column(name)), start)
        yield Block(matrix, {i: batch.column(layout.names[i]) for i in others}, None, start)
        start += batch.num_rows
    for name, each in evidence.items():
        warn_about_rounding(path.name, name, each)


def _gather_evidence(data: Any, path: Path, names: Sequence[str]) -> dict[str, IdentifierEvidence]:
    """Return the evidence on each column, by name; read a column only as long as it may hold identifiers."""
    evidence, start = {name: IdentifierEvidence(name) for name in names}, 0
    for batch in _batches(data, path, list(names)):
        for name in names:
            evidence[name].add_values(_whole_values(batch.column(name)), start)
        start = batch.num_rows
        break
    whole = [name for name in names if evidence[name].may_be_identifiers]
    if whole and start < data.metadata.num_rows:
        row = 0
        for batch in _batches(data, path, whole):
            skipped = min(max(0, start - row), batch.num_rows)
            for name in whole:
                if evidence[name].may_be_identifiers:
                    evidence[name].add_values(_whole_values(batch.column(name)[skipped:]), row + skipped)
            row += batch.num_rows
    return evidence


def _whole_values(column: Any) -> NDArray[Any]:
    """Return the values of a column without rounding integers, as Python integers if necessary."""
    pa = pyarrow()
    if column.null_count or pa.types.is_decimal(column.type):
        if pa.types.is_floating(column.type):
            return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False))
        values = [math.nan if value is None else value for value in column.to_pylist()]
        return np.array(values, dtype=object)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _batches(data: Any, path: Path, names: list[str]) -> Iterator[Any]:
    size = max(1, CELLS // len(names))
    with _arrow_sentences(path):
        yield from row_groups(data, names, size)


def _fill(matrix: NDArray[np.float64], batch: Any, names: Sequence[str]) -> None:
    pa = pyarrow()
    for j, name in enumerate(names):
        matrix[:, j] = batch.column(name).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _opened(file: IO[bytes], path: Path) -> Any:
    with _arrow_sentences(path):
        return pyarrow().parquet.ParquetFile(file)


@contextmanager
def _arrow_sentences(path: Path) -> Iterator[None]:
    try:
        yield
    except pyarrow().ArrowException as error:
        raise BadInput(f"cannot read {path}: it is not a Parquet file ({str(error).splitlines()[0]})") from error


def _select(data: Any, path: Path, choose: Choice) -> tuple[tuple[str, ...], Selection, list[int]]:
    """Return the names of all columns, the selection of `choose`, and the positions of the selected columns."""
    schema = data.schema_arrow
    names = tuple(schema.names)
    check_distinct(names, path.name)
    selection = choose(names, True)
    is_numeric = [_is_numeric(one) for one in schema]
    candidates = selection.candidates(len(names))
    for j in candidates:
        if selection.is_requested(j) and not is_numeric[j]:
            raise BadInput(f"{path.name}, column {names[j]!r} holds {schema.field(j).type}, not numbers: select others")
    positions = [j for j in candidates if is_numeric[j]]
    if not positions or not data.metadata.num_rows:
        raise BadInput(f"{path.name} has no {'rows' if positions else 'column of numbers'}")
    return names, selection, positions


def _is_numeric(one: Any) -> bool:
    """Return whether a field of the schema has a type of real numbers."""
    types, kind = pyarrow().types, one.type
    is_index = one.name.startswith("__index_level_")  # pandas' own
    return not is_index and bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


class ParquetWriter:
    """Writer of a Parquet file, one group of rows per block."""

    def __init__(self, file: IO[bytes], layout: FileLayout) -> None:
        self._file, self._layout = file, layout
        self._writer: Any = None

    def write(self, block: Block, result: NDArray[Any]) -> None:
        """Append the rows of a block, with `result` in place of the numbers that were read."""
        from powerkern._input.narwhals_frame import without_types

        pa = pyarrow()
        where = {position: j for j, position in enumerate(self._layout.positions)}
        columns = [
            pa.array(result[:, where[position]], from_pandas=True) if position in where else block.rest[position]
            for position in range(len(self._layout.names))
        ]
        notes = without_types(self._layout.metadata, self._layout.matrix_names)
        data = pa.table(columns, names=list(self._layout.names)).replace_schema_metadata(notes)
        if self._writer is None:
            self._writer = pa.parquet.ParquetWriter(self._file, data.schema)
        self._writer.write_table(data)

    def finish(self) -> None:
        """Write the footer and close the file."""
        if self._writer is not None:
            self._writer.close()
