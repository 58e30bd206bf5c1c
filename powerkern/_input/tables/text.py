"""Tables of text: strings in, numbers out, refusals by line and cell; read and written in blocks of rows."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from powerkern._input.messages import warn
from powerkern._input.tables.table import NAMES_ROWS, BadInput, Block, Choice, Layout, Table, TextFormat, check_distinct

#: Rows of text are read and written in blocks of about as many cells.
_CELLS_AT_ONCE = 2**16
#: Delimiters in the order of preference, and the number of lines in which they are looked for.
_DELIMITERS, _FIRST_LINES = (",", ";", "\t", "|"), 20
#: A number with either decimal sign, thousands separated by any sign, a unit of money, or a percent sign.
_MARKED = re.compile(r"\s*[$€£]?\s*[+-]?(\d{1,3}([,.' ]?\d{3})*([.,]\d*)?|[.,]\d+)\s*[%$€£]?\s*")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+")
#: Cells (stripped, in lower case) that stand for a missing number.
_MISSING = frozenset({"", "na", "n/a", "nan", "-nan", "null", "none", "#n/a", "<na>"})
#: Names of a first column that names the rows: pandas and R write none, pandas reads none as the second; the others are
#: believed if the column counts.
_NO_NAMES, _ROW_NAMES = ("", "Unnamed: 0"), ("index", "rownames", "row.names", "row_names", "rowid")


def decoded(file: BinaryIO, encoding: str | None) -> io.TextIOWrapper:
    """The text of a file; without an encoding, by its byte-order mark or else UTF-8."""
    buffered = io.BufferedReader(file) if not isinstance(file, io.BufferedReader) else file  # type: ignore[type-var]
    if encoding is None:
        is_wide = buffered.peek(4)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        encoding = "utf-16" if is_wide else "utf-8-sig"  # which swallows the byte-order mark of spreadsheets
    return io.TextIOWrapper(buffered, encoding=encoding, newline="")


def best_delimiter(lines: Sequence[str]) -> str:
    """The delimiter that cuts the first lines into most cells, equally many in each; a comma if none does."""

    def fitness(delimiter: str) -> tuple[bool, int]:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row] or [1]
        except csv.Error:  # an uncut line is longer than a cell may be
            return False, 0
        # one more cell than the header: names of rows, or a last delimiter
        return widths[0] > 1 and all(width - widths[0] in (0, 1) for width in widths[1:]), widths[0]

    return max(_DELIMITERS, key=fitness)


class Parsed(NamedTuple):
    """The numbers of a column's cells."""

    numbers: NDArray[np.float64]
    #: Index of the first cell that is not a number.
    offence: int | None
    #: Whether that cell surprises: at least half of the cells are numbers, or it is one with marks.
    surprising: bool = False


def parsed(cells: Sequence[str], text: TextFormat) -> Parsed:
    """Cells as numbers, NaN where they are missing or not numbers."""
    if text.decimal == "." and "_" not in "".join(cells):
        with contextlib.suppress(ValueError):  # a cell is missing or not a number: parse each
            return Parsed(text.without_missing(np.fromiter(map(float, cells), np.float64, len(cells))), None)
    missing = _MISSING.union(cell.strip().casefold() for cell in text.missing)
    numbers, offences = np.full(len(cells), math.nan), []
    for index, cell in enumerate(cells):
        if cell.strip().casefold() not in missing:
            try:  # float() would take 1_000, and a point where the decimal comma is
                plain = cell.replace("_", "?")
                numbers[index] = float(plain if text.decimal == "." else plain.replace(".", "?").replace(",", "."))
            except ValueError:
                offences.append(index)
    n_known = int(np.count_nonzero(~np.isnan(numbers)))
    numbers = text.without_missing(numbers)
    if not offences:
        return Parsed(numbers, None)
    at = offences[0]
    return Parsed(numbers, at, n_known >= len(offences) or _MARKED.fullmatch(cells[at]) is not None)


class TextSource:
    """A table of text that is read from its beginning to its end, once."""

    def __init__(self, file: TextIO, label: str, kind_delimiter: str | None, text: TextFormat) -> None:
        self.label, self.text = label, text
        lines: Iterator[str] = iter(file)
        if text.comment is not None:  # as empty lines, so that they count
            lines = ("\n" if line.startswith(text.comment) else line for line in file)
        head = list(itertools.islice(lines, _FIRST_LINES))
        if head and "\0" in head[0]:
            raise BadInput(f"{label} is not text; save a spreadsheet as CSV, and name other files by their kind")
        self.delimiter = text.delimiter or kind_delimiter or best_delimiter(head)
        self._rows = self._numbered(itertools.chain(head, lines))
        first = next(self._rows, None)
        if first is None:
            raise BadInput(f"{label} is empty")
        if not text.header:
            self._rows = itertools.chain([first], self._rows)
        self._second = next(self._rows, None)
        self.names, self._ends_in_delimiter = self._header(first[1])

    def _numbered(self, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
        """Rows with the lines they end on, without blank lines."""
        reader = csv.reader(lines, delimiter=self.delimiter, strict=True, skipinitialspace=self.delimiter == " ")
        try:
            for row in reader:
                if len(row) > 1 or (row and row[0].strip()):
                    yield reader.line_num, row
        except csv.Error as error:
            raise BadInput(f"{self.label}, line {reader.line_num}: not a well-formed table ({error})") from error

    def _header(self, row: list[str]) -> tuple[tuple[str, ...], bool]:
        """Names of all columns, and whether each row ends in one delimiter more than the header does."""
        if not self.text.header:
            return tuple(map(str, range(len(row)))), False
        names = tuple(name.strip() for name in row)
        check_distinct(names, self.label)
        if parsed(names, TextFormat()).offence is None and any(names):  # as spectra have them; a trap otherwise
            warn(
                f"the first line of {self.label} holds only numbers; it is taken for the column names (--no-header "
                "where it is data)"
            )
        if self._second is None or len(self._second[1]) != len(names) + 1:
            return names, False
        named_rows = bool(self._second[1][-1].strip())  # R's write.table
        return ("", *names) if named_rows else names, not named_rows

    def blocks(self) -> Iterator[tuple[list[int], list[tuple[str, ...]]]]:
        """Lines and columns of cells, as many as the header has."""
        if self._second is None:
            raise BadInput(f"{self.label} has a header but no rows")
        rows, width = itertools.chain([self._second], self._rows), len(self.names)
        while block := list(itertools.islice(rows, max(1, _CELLS_AT_ONCE // width))):
            for line, row in block:
                if self._ends_in_delimiter and len(row) == width + 1 and not row[-1].strip():
                    row.pop()
                if len(row) != width:
                    raise BadInput(f"{self.label}, line {line}: {len(row)} cells where the header has {width}")
            yield [line for line, _ in block], list(zip(*(row for _, row in block), strict=True))

    def names_rows(self, cells: Sequence[str]) -> bool:
        """Whether the first column, which begins so, names the rows: it has no name, or a telling one and counts."""
        if len(self.names) == 1 or not self.text.header or self.names[0] in _NO_NAMES:
            return len(self.names) > 1 and self.text.header
        first = [cell.strip() for cell in cells]
        counts = any(first == list(map(str, range(start, start + len(first)))) for start in (0, 1))
        return self.names[0].casefold() in _ROW_NAMES and counts

    def refuse(self, position: int, line: int, cell: str) -> BadInput:
        """The error for a cell of a column that was asked for."""
        return BadInput(f"{self.label}, column {self.names[position]!r}, line {line}: {cell!r} is not a number")


def read_text(source: TextSource, choose: Choice, keep: bool = True) -> Table:
    """The chosen columns, or the numeric ones: all rows, or none if `keep` is False."""
    chosen = choose(source.names, source.text.header)
    columns: dict[int, list[NDArray[np.float64]]] = {
        position: [] for position in (range(len(source.names)) if chosen is None else chosen)
    }
    has_numbers, reasons, odd, commas = set(chosen or ()), {}, {}, []
    every_line, n_rows = [], 0
    for lines, cells in source.blocks():
        if n_rows == 0 and chosen is None and source.names_rows(cells[0]):
            del columns[0]
            reasons[source.names[0]] = NAMES_ROWS
        for position in list(columns):
            numbers, at, surprising = parsed(cells[position], source.text)
            if at is not None and chosen is not None:
                raise source.refuse(position, lines[at], cells[position][at])
            if at is not None:
                del columns[position]
                if surprising:
                    name, cell = source.names[position], cells[position][at]
                    odd[name] = reasons[name] = f"line {lines[at]}: {cell!r} is not a number"
                    if _DECIMAL_COMMA.fullmatch(cell):
                        commas.append(name)
                continue
            if position not in has_numbers and not np.isnan(numbers).all():
                has_numbers.add(position)
            if keep:
                columns[position].append(numbers)
        n_rows += len(lines)
        if keep:
            every_line.append(np.array(lines))
    positions = tuple(position for position in columns if position in has_numbers)
    if not positions:
        raise BadInput(_no_numbers(source, odd, commas))
    if commas:
        warn(f"columns of {source.label} are left out: {_with_commas(odd, commas)}")
    for name, reason in odd.items():
        if name not in commas:
            warn(f"column {name!r} of {source.label} is left out: {reason} (see --missing and --decimal)")
    layout = Layout(source.names, source.text.header, positions, delimiter=source.delimiter)
    if not keep:
        return Table(layout, n_rows, reasons)
    matrix = np.empty((n_rows, len(positions)), order="F")
    for j, position in enumerate(positions):  # a column at a time, so that the numbers are not there twice
        np.concatenate(columns.pop(position), out=matrix[:, j])
    return Table(layout, n_rows, reasons, Block(matrix, {}, np.concatenate(every_line)))


def _with_commas(odd: Mapping[str, str], commas: Sequence[str]) -> str:
    """The columns whose numbers have decimal commas, and the remedy."""
    more = f" and {len(commas) - 3} more" if len(commas) > 3 else ""
    return f"{', '.join(map(repr, commas[:3]))}{more} have decimal commas ({odd[commas[0]]}); pass --decimal ,"


def _no_numbers(source: TextSource, odd: Mapping[str, str], commas: Sequence[str]) -> str:
    if commas and len(commas) == len(odd):
        return f"{source.label} has no column of numbers: {_with_commas(odd, commas)}"
    for name, reason in odd.items():
        return f"{source.label} has no column of numbers: column {name!r}, {reason} (see --missing and --decimal)"
    hint = "; is the delimiter right (--delimiter)?" if len(source.names) == 1 else ""
    return (
        f"{source.label} has no column of numbers (delimiter {source.delimiter!r}, {len(source.names)} columns){hint}"
    )


def stream_text(source: TextSource, choose: Choice) -> tuple[Layout, Iterator[Block]]:
    """Blocks of rows of the columns that are chosen, the others kept as they are."""
    chosen = choose(source.names, source.text.header)
    assert chosen is not None
    layout = Layout(source.names, source.text.header, tuple(chosen), delimiter=source.delimiter)
    return layout, _text_blocks(source, layout.positions)


def _text_blocks(source: TextSource, chosen: Sequence[int]) -> Iterator[Block]:
    others, start = sorted(set(range(len(source.names))).difference(chosen)), 0
    for lines, cells in source.blocks():
        matrix = np.empty((len(lines), len(chosen)))
        for j, position in enumerate(chosen):
            matrix[:, j], at, _ = parsed(cells[position], source.text)
            if at is not None:
                raise source.refuse(position, lines[at], cells[position][at])
        yield Block(matrix, {position: cells[position] for position in others}, np.array(lines), start)
        start += len(lines)


class TextWriter:
    """A table of text that is written block by block."""

    def __init__(self, file: TextIO, layout: Layout, delimiter: str, text: TextFormat) -> None:
        self._layout, self._decimal = layout, text.decimal
        self._writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        self._header: tuple[str, ...] | None = layout.names if layout.named or text.header else None

    def write(self, block: Block, result: NDArray[Any]) -> None:
        """Append rows, `result` in place of the block's numbers."""
        if self._header is not None:  # not before: errors in the first rows come first
            self._writer.writerow(self._header)
            self._header = None
        where = {position: j for j, position in enumerate(self._layout.positions)}
        size = max(1, _CELLS_AT_ONCE // len(self._layout.names))
        for start in range(0, len(result), size):
            rows = slice(start, start + size)
            columns = (
                _as_cells(result[rows, where[position]], self._decimal)
                if position in where
                else _plain(block.rest[position][rows])
                for position in range(len(self._layout.names))
            )
            self._writer.writerows(zip(*columns, strict=True))

    def finish(self) -> None:
        """Nothing is left to do."""


def _as_cells(values: NDArray[Any], decimal: str) -> list[Any]:
    """Numbers as csv writes them: shortest exact form, missing ones empty."""
    cells = [None if math.isnan(value) else value for value in values.tolist()]
    return cells if decimal == "." else [cell if cell is None else repr(cell).replace(".", decimal) for cell in cells]


def _plain(cells: Any) -> Any:
    return cells.to_pylist() if hasattr(cells, "to_pylist") else cells
