"""Tables in files, for the command line: CSV (also .tsv, also gzipped), Parquet and .npy.

A table is read as a float64 matrix of the columns to work on, beside the other columns, which are kept as they are.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import math
import os
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, TextIO

import numpy as np
from numpy.typing import NDArray

#: Cells (stripped, in lower case) that stand for a missing number in a text table.
MISSING = frozenset({"", "na", "n/a", "nan", "null"})

#: Rows of text are read and written in blocks of about as many cells.
_CELLS_AT_ONCE = 2**18
_DELIMITERS = {".csv": ",", ".tsv": "\t"}

#: Picks columns by position: (names, are they real names) -> positions, or None for every numeric column.
Choice = Callable[[Sequence[str], bool], Sequence[int] | None]


class BadInput(Exception):
    """Input that cannot be used; the message is one sentence that says why."""


@dataclass(frozen=True)
class Table:
    """The contents of one file."""

    #: Names of all columns; their positions as text where the file has no names.
    names: tuple[str, ...]
    #: False when `names` are mere positions.
    named: bool
    #: Where the columns of `matrix` stand in `names`.
    positions: tuple[int, ...]
    #: (n, p) numbers, missing ones NaN.
    matrix: NDArray[Any]
    #: The cells of the other columns by position, where they were asked for.
    rest: Mapping[int, Sequence[object]] = field(default_factory=dict)
    #: Parquet's own notes (pandas keeps its index there).
    metadata: Mapping[bytes, bytes] | None = None
    #: True when the file holds a vector rather than a matrix.
    is_vector: bool = False
    #: The line of the file that each row of a text table ends on.
    lines: NDArray[np.int64] | None = None

    @property
    def matrix_names(self) -> list[str]:
        """Names of the matrix's columns."""
        return [self.names[position] for position in self.positions]

    @property
    def other_names(self) -> list[str]:
        """Names of the columns that are not in the matrix."""
        in_matrix = set(self.positions)
        return [name for position, name in enumerate(self.names) if position not in in_matrix]

    def place(self, j: int, i: int) -> str:
        """What messages call row i of the matrix's column j: rows of text go by the line of the file."""
        name = self.names[self.positions[j]]
        column = f"column {name!r}" if self.named else f"column {name}"
        return f"{column}, row {i}" if self.lines is None else f"{column}, line {self.lines[i]}"


def read(path: Path, choose: Choice, *, keep_rest: bool, delimiter: str | None = None) -> Table:
    """Read the columns that `choose` picks, and with `keep_rest` the others untouched."""
    kind = _kind(path)
    with sentences("read", path):
        if kind == ".npy":
            return _read_npy(path, choose)
        if kind == ".parquet":
            return _read_parquet(path, choose, keep_rest)
        with _open_text(path, "r") as file:
            return _read_text(file, path.name, choose, keep_rest, delimiter or _DELIMITERS[kind])


def write(path: Path | None, table: Table, matrix: NDArray[Any], *, delimiter: str | None = None) -> None:
    """Write `table` with `matrix` in place of its own; to standard output, as CSV, without a path."""
    if path is None:
        if sys.stdout is None:
            raise BadInput("standard output is closed: name a file with -o")
        _write_text(sys.stdout, table, matrix, delimiter or ",")
        return
    kind = _kind(path)
    with sentences("write", path):
        if kind == ".npy":
            _write_npy(path, table, matrix)
        elif kind == ".parquet":
            _write_parquet(path, table, matrix)
        else:
            with _open_text(path, "w") as file:
                _write_text(file, table, matrix, delimiter or _DELIMITERS[kind])


def check_folder(path: Path | None) -> None:
    """Raise now, before any work is done, if a file could not be written."""
    if path is None:
        return
    if path.is_dir():
        raise BadInput(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise BadInput(f"cannot write {path}: the folder {path.parent} does not exist")


def check_output(path: Path | None) -> None:
    """Raise now if a table could not be written."""
    if path is not None:
        _kind(path)
        check_folder(path)


def _kind(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"] and suffixes[-2:-1] and suffixes[-2] in _DELIMITERS:
        return suffixes[-2]
    last = ".parquet" if suffixes[-1:] == [".pq"] else "".join(suffixes[-1:])
    if last not in {*_DELIMITERS, ".npy", ".parquet"}:
        raise BadInput(f"{path} is of no known kind: use .csv, .tsv, .csv.gz, .parquet or .npy")
    if last == ".parquet":
        _pyarrow()
    return last


@contextmanager
def sentences(verb: str, path: Path) -> Iterator[None]:
    """Turn the error of a damaged, missing or forbidden file into one sentence."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise BadInput(f"cannot {verb} {path}: it is not UTF-8 text") from error
    except (EOFError, zlib.error) as error:
        raise BadInput(f"cannot {verb} {path}: the file is damaged ({error})") from error
    except OSError as error:
        raise BadInput(f"cannot {verb} {path}: {error.strerror or error}") from error


# --- text -------------------------------------------------------------------------------------------


def _open_text(path: Path, mode: str) -> TextIO:
    # utf-8-sig swallows the byte-order mark that spreadsheets write
    encoding = "utf-8-sig" if mode == "r" else "utf-8"
    is_gzip = path.suffix.lower() == ".gz"
    file: Any = (gzip.open if is_gzip else open)(path, f"{mode}b")
    return io.TextIOWrapper(file, encoding=encoding, newline="")


def _read_text(file: TextIO, label: str, choose: Choice, keep_rest: bool, delimiter: str) -> Table:
    blocks = _text_blocks(file, label, delimiter)
    names = _header(next(blocks, None), label)
    if _parse(names)[1] is None:  # legitimate for spectra (wavelengths), a trap otherwise
        warnings.warn(f"the first line of {label} holds only numbers; it is taken for the column names", stacklevel=2)
    chosen = choose(names, True)
    candidates: dict[int, list[NDArray[np.float64]]] = {
        position: [] for position in (range(len(names)) if chosen is None else chosen)
    }
    rest: dict[int, list[object]] = (
        {position: [] for position in range(len(names)) if position not in candidates} if keep_rest else {}
    )
    every_line: list[int] = []
    for lines, rows in blocks:
        every_line += lines
        _check_widths(lines, rows, len(names), label)
        columns = list(zip(*rows, strict=True))
        for position in list(candidates):
            numbers, offence = _parse(columns[position])
            if offence is None:
                candidates[position].append(numbers)
            elif chosen is None:
                del candidates[position]
            else:
                raise BadInput(
                    f"{label}, column {names[position]!r}, line {lines[offence]}: "
                    f"{columns[position][offence]!r} is not a number"
                )
        for position, cells in rest.items():
            cells.extend(columns[position])
    if not every_line:
        raise BadInput(f"{label} has a header but no rows")
    parsed = {position: np.concatenate(parts) for position, parts in candidates.items()}
    if chosen is None:  # a column without a single number is not a column of numbers
        parsed = {position: values for position, values in parsed.items() if not np.isnan(values).all()}
    if not parsed:
        hint = "; is the delimiter right (--delimiter)?" if len(names) == 1 else ""
        raise BadInput(f"{label} has no column of numbers (delimiter {delimiter!r}, {len(names)} columns){hint}")
    matrix = _columns_to_matrix(list(parsed.values()))
    return Table(names, True, tuple(parsed), matrix, rest, lines=np.array(every_line))


def _text_blocks(file: TextIO, label: str, delimiter: str) -> Iterator[tuple[list[int], list[list[str]]]]:
    """Rows with the lines they end on: first the header alone, then blocks of rows; blank lines are skipped."""
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    numbered = ((reader.line_num, row) for row in reader if row)
    size = 1
    while True:
        try:
            block = list(itertools.islice(numbered, size))
        except csv.Error as error:
            raise BadInput(f"{label}, line {reader.line_num}: not a well-formed table ({error})") from error
        if not block:
            return
        yield [line for line, _ in block], [row for _, row in block]
        size = max(1, _CELLS_AT_ONCE // len(block[0][1]))


def _header(block: tuple[list[int], list[list[str]]] | None, label: str) -> tuple[str, ...]:
    if block is None:
        raise BadInput(f"{label} is empty")
    names = tuple(block[1][0])
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise BadInput(f"{label} has more than one column named {name!r}")
        seen.add(name)
    return names


def _check_widths(lines: list[int], rows: list[list[str]], width: int, label: str) -> None:
    for line, row in zip(lines, rows, strict=True):
        if len(row) != width:
            raise BadInput(f"{label}, line {line}: {len(row)} cells where the header has {width}")


def _parse(cells: Sequence[str]) -> tuple[NDArray[np.float64], int | None]:
    """Numbers of one column's cells, and the index of the first cell that is none."""
    try:
        if "_" not in "".join(cells):
            return np.fromiter(map(float, cells), np.float64, len(cells)), None
    except ValueError:  # something is missing, or is no number: look at each
        pass
    numbers = np.full(len(cells), math.nan)
    for index, cell in enumerate(cells):
        if cell.strip().casefold() not in MISSING:
            try:
                numbers[index] = float(cell.replace("_", "?"))  # float() itself would take 1_000
            except ValueError:
                return numbers, index
    return numbers, None


def _write_text(file: TextIO, table: Table, matrix: NDArray[Any], delimiter: str) -> None:
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(table.names)
    where = {position: j for j, position in enumerate(table.positions)}
    size = max(1, _CELLS_AT_ONCE // len(table.names))
    for start in range(0, len(matrix), size):
        block = slice(start, start + size)
        columns = (
            _cells(matrix[block, where[position]]) if position in where else _plain(table.rest[position][block])
            for position in range(len(table.names))
        )
        writer.writerows(zip(*columns, strict=True))


def _cells(values: NDArray[Any]) -> list[float | None]:
    """Numbers as csv writes them: shortest exact form, missing ones empty."""
    return [None if math.isnan(value) else value for value in values.tolist()]


def _plain(cells: Any) -> list[object]:
    return cells.to_pylist() if hasattr(cells, "to_pylist") else cells  # type: ignore[no-any-return]


def _columns_to_matrix(columns: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    matrix = np.empty((len(columns[0]), len(columns)), order="F")
    for j, column in enumerate(columns):
        matrix[:, j] = column
    return matrix


# --- .npy -------------------------------------------------------------------------------------------


def _read_npy(path: Path, choose: Choice) -> Table:
    with path.open("rb") as file:
        try:
            header = _npy_header(file)
        except _NPY_ERRORS as error:
            raise BadInput(f"cannot read {path}: it is not a .npy file of numbers ({error})") from error
        offset, size = file.tell(), os.fstat(file.fileno()).st_size
    shape, _, dtype = header
    if dtype.kind not in "biuf":
        raise BadInput(f"{path} holds values of type {dtype}, not real numbers")
    if len(shape) not in (1, 2):
        raise BadInput(f"{path} holds a {len(shape)}-D array: rows and columns are needed")
    if 0 in shape:
        raise BadInput(f"{path} holds an array of shape {shape}: there is nothing in it")
    # before allocating what the header announces
    if min(shape) < 0 or math.prod(shape) * dtype.itemsize > size - offset:
        raise BadInput(
            f"cannot read {path}: its header announces an array of shape {shape}, which the file does not hold"
        )
    return _npy_table(_mapped(path, header, offset), choose)


#: Shape, whether in Fortran's order, type.
_Header = tuple[tuple[int, ...], bool, np.dtype[Any]]
#: What NumPy raises on headers that it cannot read.
_NPY_ERRORS = (ValueError, TypeError, SyntaxError, RecursionError, MemoryError, TokenError)


def _npy_header(file: IO[bytes]) -> _Header:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(file)
    raise ValueError("it is of version {}.{}".format(*version))  # 3.0 is for names of structured types


def _mapped(path: Path, header: _Header, offset: int) -> NDArray[Any]:
    shape, is_fortran, dtype = header
    return np.memmap(path, dtype, "r", offset, shape, "F" if is_fortran else "C")


def _npy_table(array: NDArray[Any], choose: Choice) -> Table:
    matrix = array.reshape(len(array), -1)
    names = tuple(map(str, range(matrix.shape[1])))
    chosen = choose(names, False)
    if chosen is None or len(chosen) == len(names):
        return Table(names, False, tuple(range(len(names))), matrix, is_vector=array.ndim == 1)
    return Table(names, False, tuple(chosen), matrix[:, list(chosen)])


def _write_npy(path: Path, table: Table, matrix: NDArray[Any]) -> None:
    if table.rest:
        raise BadInput(f"cannot write {path}: .npy has no place for the untouched columns ({_some(table.other_names)})")
    with path.open("wb") as file:  # np.save itself would append .npy to other spellings
        np.save(file, matrix[:, 0] if table.is_vector else matrix)


def _some(names: Sequence[str]) -> str:
    """The first few of many names."""
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


# --- Parquet ----------------------------------------------------------------------------------------


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise BadInput("Parquet files need pyarrow: pip install 'powerkern[parquet]'") from error
    return pyarrow


def _read_parquet(path: Path, choose: Choice, keep_rest: bool) -> Table:
    pa = _pyarrow()
    try:
        with path.open("rb") as file:  # its own opening errors say less
            data = pa.parquet.read_table(file)
    except pa.ArrowException as error:
        raise BadInput(f"cannot read {path}: it is not a Parquet file ({str(error).splitlines()[0]})") from error
    names = tuple(data.column_names)
    chosen = choose(names, True)
    is_numeric = [_is_numeric(pa, one) for one in data.schema]
    positions = [i for i in range(len(names)) if is_numeric[i]] if chosen is None else list(chosen)
    if not positions or not data.num_rows:
        raise BadInput(f"{path.name} has no {'rows' if positions else 'column of numbers'}")
    for position in positions:
        if not is_numeric[position]:
            kind = data.schema.field(position).type
            raise BadInput(f"{path.name}, column {names[position]!r} holds {kind}, not numbers")
    matrix = _columns_to_matrix([data.column(i).cast(pa.float64(), safe=False).to_numpy() for i in positions])
    others = set(range(len(names))).difference(positions) if keep_rest else set()
    rest = {i: data.column(i) for i in sorted(others)}
    return Table(names, True, tuple(positions), matrix, rest, data.schema.metadata)


def _is_numeric(pa: Any, one: Any) -> bool:
    """Whether a field of the schema holds real numbers."""
    kind = one.type
    is_index = one.name.startswith("__index_level_")  # pandas' own
    return not is_index and bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _write_parquet(path: Path, table: Table, matrix: NDArray[Any]) -> None:
    pa = _pyarrow()
    where = {position: j for j, position in enumerate(table.positions)}
    columns = [
        pa.array(matrix[:, where[position]], from_pandas=True) if position in where else table.rest[position]
        for position in range(len(table.names))
    ]
    data = pa.table(columns, names=list(table.names)).replace_schema_metadata(table.metadata)
    pa.parquet.write_table(data, path)
