"""Parquet files, a group of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from powerkern._input import frames
from powerkern._input.batches import CELLS, row_groups
from powerkern._input.tables.table import BadInput, Block, Choice, Layout, Table, check_distinct


def pyarrow() -> Any:
    """The package; an error that says how to install it if it is absent."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise BadInput("Parquet files need pyarrow: pip install pyarrow") from error
    return pyarrow


def read_parquet(file: IO[bytes], path: Path, choose: Choice, keep: bool = True) -> Table:
    """The chosen columns, or the numeric ones: all rows, or none if `keep` is False."""
    data = _opened(file, path)
    layout, n_rows, start = _layout(data, path, choose), data.metadata.num_rows, 0
    if not keep:
        return Table(layout, n_rows, {})
    matrix = np.empty((n_rows, len(layout.positions)), order="F")
    for batch in _batches(data, path, layout.matrix_names):
        _fill(matrix[start : start + batch.num_rows], batch, layout.matrix_names)
        start += batch.num_rows
    return Table(layout, n_rows, {}, Block(matrix, {}))


def stream_parquet(file: IO[bytes], path: Path, choose: Choice) -> tuple[Layout, Iterator[Block]]:
    """Blocks of rows, the other columns kept as they are."""
    data = _opened(file, path)
    layout = _layout(data, path, choose)
    return layout, _blocks(data, path, layout)


def _blocks(data: Any, path: Path, layout: Layout) -> Iterator[Block]:
    others = sorted(set(range(len(layout.names))).difference(layout.positions))
    start = 0
    for batch in _batches(data, path, list(layout.names)):
        matrix = np.empty((batch.num_rows, len(layout.positions)), order="F")
        _fill(matrix, batch, layout.matrix_names)
        yield Block(matrix, {i: batch.column(layout.names[i]) for i in others}, None, start)
        start += batch.num_rows


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


def _layout(data: Any, path: Path, choose: Choice) -> Layout:
    schema = data.schema_arrow
    names = tuple(schema.names)
    check_distinct(names, path.name)
    chosen = choose(names, True)
    is_numeric = [_is_numeric(one) for one in schema]
    positions = [i for i in range(len(names)) if is_numeric[i]] if chosen is None else list(chosen)
    if not positions or not data.metadata.num_rows:
        raise BadInput(f"{path.name} has no {'rows' if positions else 'column of numbers'}")
    for position in positions:
        if not is_numeric[position]:
            kind = schema.field(position).type
            raise BadInput(f"{path.name}, column {names[position]!r} holds {kind}, not numbers")
    return Layout(names, True, tuple(positions), schema.metadata)


def _is_numeric(one: Any) -> bool:
    """Whether a field of the schema holds real numbers."""
    types, kind = pyarrow().types, one.type
    is_index = one.name.startswith("__index_level_")  # pandas' own
    return not is_index and bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


class ParquetWriter:
    """A Parquet file that is written a group of rows at a time."""

    def __init__(self, file: IO[bytes], layout: Layout) -> None:
        self._file, self._layout = file, layout
        self._writer: Any = None

    def write(self, block: Block, result: NDArray[Any]) -> None:
        """Append a group of rows."""
        pa = pyarrow()
        where = {position: j for j, position in enumerate(self._layout.positions)}
        columns = [
            pa.array(result[:, where[position]], from_pandas=True) if position in where else block.rest[position]
            for position in range(len(self._layout.names))
        ]
        notes = frames.without_types(self._layout.metadata, self._layout.matrix_names)
        data = pa.table(columns, names=list(self._layout.names)).replace_schema_metadata(notes)
        if self._writer is None:
            self._writer = pa.parquet.ParquetWriter(self._file, data.schema)
        self._writer.write_table(data)

    def finish(self) -> None:
        """Write the footer."""
        if self._writer is not None:
            self._writer.close()
