"""Read tables, whole or in blocks of rows, and write them in blocks. The name of a file determines its format."""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from numpy.typing import NDArray

from powerkern._input.tables.npy import NpyWriter, read_npy, stream_npy
from powerkern._input.tables.parquet import ParquetWriter, pyarrow, read_parquet, stream_parquet
from powerkern._input.tables.table import (
    BadInput,
    Block,
    Choice,
    FileLayout,
    Table,
    TextFormat,
    check_folder,
    one_line_file_errors,
)
from powerkern._input.tables.text import TextSource, TextWriter, decode_text, read_text, stream_text
from powerkern._input.writing import replacing

#: The delimiter of each kind of text table; None: detected in the first lines.
_DELIMITERS = {".csv": None, ".tsv": "\t", ".txt": None}


def _open_zstandard(file: Any, mode: str) -> Any:
    """Open a .zst path for writing, or an open file for reading, with the standard library (Python 3.14) or pyarrow."""
    if sys.version_info >= (3, 14):
        return importlib.import_module("compression.zstd").open(file, mode)
    try:
        import pyarrow as pa
    except ImportError as error:
        raise BadInput(".zst files need Python 3.14 or pyarrow: pip install pyarrow") from error
    if mode == "rb":
        return pa.CompressedInputStream(file, "zstd")
    return pa.CompressedOutputStream(file.open(mode), "zstd")


_COMPRESSED: dict[str, Callable[[Any, Any], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _open_zstandard,
}
#: First bytes of compressed files, which determine how a file is read, whatever its name.
_MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
#: First bytes of files that are not text tables, and their description for the message.
_OTHERS = {
    b"PK\x03\x04": "a ZIP archive or a spreadsheet (.xlsx, .ods): unpack it, or save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet (.xls): save the sheet as CSV",
    b"PAR1": "a Parquet file: name it .parquet",
    b"\x93NUMPY": "a NumPy file: name it .npy",
    b"SQLite format 3": "a database: export the table as CSV",
    b"%PDF": "a PDF: save the table as CSV",
}


def _is_standard(path: Path | None) -> bool:
    """Return whether a path stands for standard input or output."""
    return path is None or str(path) == "-"


def _open_to_write(path: Path) -> BinaryIO:
    """Open a file for writing, compressed if its name ends in the suffix of a compressed format."""
    opener: Callable[[Path, Any], Any] = _COMPRESSED.get(path.suffix.lower(), Path.open)
    opened: BinaryIO = opener(path, "wb")
    return opened


def _decompressed(file: Any, label: str) -> Any:
    """Return a reader of a text file, decompressed if its first bytes say so; raise for other kinds of files.

    Parameters
    ----------
    file : binary file
        The open file.
    label : str
        Its name in messages.
    """
    if not isinstance(file, io.BufferedReader):  # whose beginning can be read without being lost
        file = io.BufferedReader(file)
    begin: bytes = file.peek(16)
    for magic, what in _OTHERS.items():
        if begin.startswith(magic):
            raise BadInput(f"{label} is {what}")
    for magic, kind in _MAGIC.items():
        if begin.startswith(magic):
            return io.BufferedReader(_COMPRESSED[kind](file, "rb"))
    return file


class Writer(Protocol):
    """Interface of the writers of tables, which write block by block."""

    def write(self, block: Block, result: NDArray[Any]) -> None:
        """Append the rows of a block, with `result` in place of the numbers that were read."""

    def finish(self) -> None:
        """Complete the file."""


def read(path: Path, choose: Choice, text: TextFormat, keep: bool = True) -> Table:
    """Read the columns of a table that `choose` selects.

    Parameters
    ----------
    path : Path
        The file.
    choose : callable
        Takes the names of all columns, and whether the file contains them; returns the `Selection` of columns.
    text : TextFormat
        The format of numbers and cells in text tables.
    keep : bool
        Store the rows; if False, only the description of the columns is returned.
    """
    kind = _kind(path)
    with one_line_file_errors("read", _label(path)), ExitStack() as stack:
        if kind == ".npy":
            return read_npy(path, choose)
        if kind == ".parquet":
            return read_parquet(stack.enter_context(path.open("rb")), path, choose, keep)
        return read_text(_text_source(stack, path, kind, text), choose, keep)


def is_longer(path: Path, size: int) -> bool:
    """Return whether a text or Parquet file has more than `size` bytes; False for standard input and other files."""
    return not _is_standard(path) and _kind(path) != ".npy" and path.is_file() and path.stat().st_size > size


@contextmanager
def stream(path: Path, choose: Choice, text: TextFormat) -> Iterator[tuple[FileLayout, Iterator[Block]]]:
    """Yield the layout of a table, and an iterator over its rows in blocks; columns not selected pass unchanged.

    Parameters
    ----------
    path : Path
        The file.
    choose : callable
        Selects the columns to read as numbers, as in `read`.
    text : TextFormat
        The format of numbers and cells in text tables.
    """
    kind = _kind(path)
    with ExitStack() as stack:
        with one_line_file_errors("read", _label(path)):
            if kind == ".npy":
                layout, blocks = stream_npy(path, choose)
            elif kind == ".parquet":
                layout, blocks = stream_parquet(stack.enter_context(path.open("rb")), path, choose)
            else:
                layout, blocks = stream_text(_text_source(stack, path, kind, text), choose)
        yield layout, _in_sentences(blocks, path)


def _in_sentences(blocks: Iterator[Block], path: Path) -> Iterator[Block]:
    with one_line_file_errors("read", _label(path)):
        yield from blocks


def _text_source(stack: ExitStack, path: Path, kind: str, text: TextFormat) -> TextSource:
    if _is_standard(path):
        if sys.stdin is None:
            raise BadInput("standard input is closed: name a file")
        file = decode_text(_decompressed(sys.stdin.buffer, "standard input"), text.encoding)
        stack.callback(file.detach)  # standard input stays open
        return TextSource(file, "standard input", None, text)
    binary = stack.enter_context(path.open("rb"))
    file = stack.enter_context(decode_text(_decompressed(binary, path.name), text.encoding))
    return TextSource(file, path.name, _DELIMITERS[kind], text)


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Write a file safely, as `replacing` does, and turn I/O errors into one-line messages."""
    with one_line_file_errors("write", path), replacing(path) as part:
        yield part


def write_text(path: Path, text: str) -> None:
    """Write a text file; an old file of this name is replaced only when the new one is complete."""
    with replaced(path) as part:
        part.write_text(text, encoding="utf-8")


@contextmanager
def write(path: Path | None, layout: FileLayout, text: TextFormat) -> Iterator[Writer]:
    """Yield a writer of a table, in the format that the name determines; without a path, of CSV to standard output.

    An old file, which may be the table that is being read, is replaced only when the new one is complete.

    Parameters
    ----------
    path : Path or None
        The file; None or "-": standard output.
    layout : FileLayout
        The columns of the table that is read.
    text : TextFormat
        The format of numbers and cells in text tables.
    """
    if path is None or _is_standard(path):
        if sys.stdout is None:
            raise BadInput("standard output is closed: name a file with -o")
        yield TextWriter(sys.stdout, layout, text.delimiter or layout.delimiter, text)
        return
    with replaced(path) as part, ExitStack() as stack:
        writer = _writer(stack, path, part, layout, text)
        yield writer
        writer.finish()


def _writer(stack: ExitStack, path: Path, part: Path, layout: FileLayout, text: TextFormat) -> Writer:
    kind = _kind(path)
    file: Any = stack.enter_context(_open_to_write(part))
    if kind == ".npy":
        return NpyWriter(file, path, layout)
    if kind == ".parquet":
        return ParquetWriter(file, layout)
    delimiter = _DELIMITERS[kind] or text.delimiter or layout.delimiter
    file = stack.enter_context(io.TextIOWrapper(file, encoding="utf-8", newline=""))
    return TextWriter(file, layout, delimiter, text)


def check_output(path: Path | None) -> None:
    """Raise, before any work is done, if a table cannot be written to this path."""
    if path is not None and not _is_standard(path):
        _kind(path)
        check_folder(path)


def _label(path: Path) -> str:
    return "standard input" if _is_standard(path) else str(path)


def _kind(path: Path) -> str:
    """Return the format of a file, determined by its name."""
    if _is_standard(path):
        return ".csv"
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] and suffixes[-1] in _COMPRESSED and suffixes[-2:-1] and suffixes[-2] in _DELIMITERS:
        return suffixes[-2]
    last = ".parquet" if suffixes[-1:] == [".pq"] else "".join(suffixes[-1:])
    if last == ".zip":
        raise BadInput(f"{path} is a ZIP archive: unpack it")
    if last in {".xls", ".xlsx", ".xlsm", ".ods"}:
        raise BadInput(f"{path} is a spreadsheet: save the sheet as .csv")
    if path.is_dir():
        raise BadInput(f"{path} is a folder: name a file in it")
    if last not in {*_DELIMITERS, ".npy", ".parquet"}:
        raise BadInput(
            f"{path} has an unknown file type: use .csv, .tsv or .txt (also with .gz, .bz2, .xz or .zst), .parquet "
            "or .npy"
        )
    if last == ".parquet":
        pyarrow()
    return last
