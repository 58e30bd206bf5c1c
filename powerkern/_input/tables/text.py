"""Tables of text, read and written in blocks of rows. Errors name the line and the cell."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, BinaryIO, TextIO

import numpy as np
from numpy.typing import NDArray

from powerkern._input.messages import warn
from powerkern._input.tables.identifiers import IdentifierEvidence, no_numbers, warn_about_rounding
from powerkern._input.tables.numbers import BadCell, CellParser, ColumnParser, Parsed, holds_only_numbers
from powerkern._input.tables.remedies import are_nearly_numbers, find_remedy
from powerkern._input.tables.table import (
    NAMES_ROWS,
    BadInput,
    Block,
    CensoredCells,
    Choice,
    FileLayout,
    Selection,
    Table,
    TextFormat,
    check_distinct,
)

#: Approximate number of cells of a block in which rows are read and written.
_CELLS_AT_ONCE = 2**16
#: Delimiters in order of preference, and the number of lines in which they are counted.
_DELIMITERS, _FIRST_LINES = (",", ";", "\t", "|"), 20
#: A first line that declares the delimiter for Excel.
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
#: First characters of text files that are not tables, and their description for the message.
_OTHER_TEXTS = {"<!doctype": "a web page", "<html": "a web page", "<?xml": "XML", "[{": "JSON", '{"': "JSON"}
#: Names of a first column of row labels. pandas and R write no name, and pandas reads that back as "Unnamed: 0". A
#: column with one of the other names must also count the rows.
_NO_NAMES, _ROW_NAMES = ("", "Unnamed: 0"), ("index", "rownames", "row.names", "row_names", "rowid")


#: Byte-order marks and their encodings; UTF-32 first, as its marks begin with the marks of UTF-16.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def decode_text(file: BinaryIO, encoding: str | None) -> io.TextIOWrapper:
    """Open a binary file as text, in the given encoding; None: the encoding of its byte-order mark, or else UTF-8."""
    buffered = io.BufferedReader(file) if not isinstance(file, io.BufferedReader) else file  # type: ignore[type-var]
    if encoding is None:
        begin = buffered.peek(4)
        # utf-8-sig swallows the byte-order mark of spreadsheets
        encoding = next((name for mark, name in _MARKS.items() if begin.startswith(mark)), "utf-8-sig")
    return io.TextIOWrapper(buffered, encoding=encoding, newline="")


def best_delimiter(lines: Sequence[str]) -> str:
    """Return the delimiter that splits the first lines into the most cells, equally many per line; default: a comma."""

    def fitness(delimiter: str) -> tuple[bool, int]:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row] or [1]
        except csv.Error:  # an uncut line is longer than a cell may be
            return False, 0
        # one more cell than the header: names of rows, or a last delimiter
        return widths[0] > 1 and all(width - widths[0] in (0, 1) for width in widths[1:]), widths[0]

    return max(_DELIMITERS, key=fitness)


#: A row of cells, and the line on which it ends.
_Row = tuple[int, list[str]]


def _is_blank(row: _Row) -> bool:
    """Return whether a row is a blank line, or a single cell without text."""
    return len(row[1]) == 1 and not row[1][0].strip()


def _find_text(rows: Iterator[_Row]) -> tuple[list[_Row], _Row | None]:
    """Return the blank rows before the next row with text, and that row, or None at the end of the table."""
    blank: list[_Row] = []
    for row in rows:
        if not _is_blank(row):
            return blank, row
        blank.append(row)
    return blank, None


class TextSource:
    """A text table that is read once, from beginning to end.

    Blank lines are skipped, except in a table of one column: there, each blank line below the header is a missing
    value.

    Parameters
    ----------
    file : file
        The open text file.
    label : str
        Its name in messages.
    kind_delimiter : str or None
        The delimiter that the file's name suggests.
    text : TextFormat
        The format of numbers and cells. A delimiter in `text` takes precedence.
    """

    def __init__(self, file: TextIO, label: str, kind_delimiter: str | None, text: TextFormat) -> None:
        self.label, self.text = label, text
        self._comments = set[int]()  # lines that are no rows, not even blank ones
        lines: Iterator[str] = iter(file) if text.comment is None else self._blank_comments(file, text.comment)
        head = list(itertools.islice(lines, _FIRST_LINES))
        _check_text(head[0] if head else "", label)
        separator = _SEPARATOR_LINE.fullmatch(head[0]) if head else None
        if separator is not None:
            head[0] = "\n"
            self._comments.add(1)
        self.delimiter = text.delimiter or (separator and separator[1]) or kind_delimiter or best_delimiter(head)
        rows = self._numbered(itertools.chain(head, lines))
        blank, first = _find_text(rows)
        if first is None:
            raise BadInput(f"{label} is empty")
        self._second: _Row | None = first
        if text.header:
            blank, self._second = _find_text(rows)
        self.names, self._ends_in_delimiter = self._header(first[1])
        one_column = len(self.names) == 1 and self._second is not None and len(self._second[1]) == 1
        if not one_column:
            blank, rows = [], (row for row in rows if not _is_blank(row))
        self._rows = itertools.chain(blank, () if self._second is None else (self._second,), rows)

    def _blank_comments(self, lines: Iterable[str], comment: str) -> Iterator[str]:
        """Yield the lines, with blank lines in place of comments; record the line numbers of comments."""
        for number, line in enumerate(lines, 1):
            if line.startswith(comment):
                self._comments.add(number)
                yield "\n"
            else:
                yield line

    def _numbered(self, lines: Iterator[str]) -> Iterator[_Row]:
        """Yield all rows, including blank ones, each with the number of its last line."""
        reader = csv.reader(lines, delimiter=self.delimiter, strict=True, skipinitialspace=self.delimiter == " ")
        last = 0
        try:
            for row in reader:
                if row or reader.line_num not in self._comments:
                    yield reader.line_num, row or [""]
                last = reader.line_num
        except csv.Error as error:
            raise BadInput(f"{self.label}, {_csv_problem(str(error), last + 1, reader.line_num)}") from error

    def _header(self, row: list[str]) -> tuple[tuple[str, ...], bool]:
        """Return the names of all columns, and whether rows end in one more delimiter than the header."""
        if not self.text.header:
            return tuple(map(str, range(len(row)))), False
        names = tuple(name.strip() for name in row)
        check_distinct([name for name in names if name], self.label)  # spreadsheets write empty columns without names
        if holds_only_numbers(names):  # as spectra have them; a trap otherwise
            warn(
                f"the first line of {self.label} holds only numbers; it is read as the column names; "
                "pass --no-header if it is data"
            )
        if row[0].startswith("#") and self._second is not None and len(self._second[1]) != len(names):
            raise BadInput(f"{self.label}: the first line is a comment; pass --comment '#' to skip comment lines")
        if self._second is None or len(self._second[1]) != len(names) + 1:
            return names, False
        named_rows = bool(self._second[1][-1].strip())  # R's write.table
        return ("", *names) if named_rows else names, not named_rows

    def blocks(self) -> Iterator[tuple[list[int], list[tuple[str, ...]]]]:
        """Yield blocks of rows: the lines of the rows, and the cells of each column in the header."""
        if self._second is None:
            raise BadInput(f"{self.label} has a header but no rows")
        rows, width = self._rows, len(self.names)
        # spreadsheets leave out some delimiters behind the last column that has a name
        named = max((j + 1 for j, name in enumerate(self.names) if name), default=width)
        while block := list(itertools.islice(rows, max(1, _CELLS_AT_ONCE // width))):
            for line, row in block:
                if len(row) == width:
                    continue
                if self._ends_in_delimiter and len(row) == width + 1 and not row[-1].strip():
                    row.pop()
                elif named <= len(row) < width:
                    row.extend([""] * (width - len(row)))
                elif len(row) != width:
                    cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
                    raise BadInput(f"{self.label}, line {line}: {cells} where the header has {width}")
            lines, columns = [line for line, _ in block], list(zip(*(row for _, row in block), strict=True))
            self._check_unnamed(lines, columns)
            yield lines, columns

    def _check_unnamed(self, lines: Sequence[int], columns: Sequence[Sequence[str]]) -> None:
        """Raise if several columns without a name contain values, because names could not tell them apart."""
        unnamed = [j for j, name in enumerate(self.names) if not name]
        for j in unnamed[1:]:
            for line, cell in zip(lines, columns[j], strict=True):
                if cell.strip():
                    raise BadInput(
                        f"{self.label}, line {line}: cell {j + 1} holds {cell!r}, and the header has no name for it"
                    )

    def names_rows(self, cells: Sequence[str]) -> bool:
        """Return whether the first column labels the rows: it has no name, or a name like "index" and row numbers."""
        if len(self.names) == 1 or not self.text.header or self.names[0] in _NO_NAMES:
            return len(self.names) > 1 and self.text.header
        first = [cell.strip() for cell in cells]
        counts = any(first == list(map(str, range(start, start + len(first)))) for start in (0, 1))
        return self.names[0].casefold() in _ROW_NAMES and counts

    def refuse(self, position: int, line: int, reason: str) -> BadInput:
        """Return the error about a cell.

        Parameters
        ----------
        position : int
            Position of the column.
        line : int
            Line of the file.
        reason : str
            The problem, for the message.
        """
        return BadInput(f"{self.label}, column {self.names[position]!r}, line {line}: {reason}")


def read_text(source: TextSource, choose: Choice, keep: bool = True) -> Table:
    """Read the columns that `choose` selects; store the rows only if `keep` is set."""
    selection = choose(source.names, source.text.header)
    reading = _Reading(source, selection)
    blocks: dict[int, list[Parsed]] = {position: [] for position in reading.columns}
    every_line, n_rows = [], 0
    for lines, cells in source.blocks():
        if n_rows == 0 and not selection.is_requested(0) and source.names_rows(cells[0]):
            reading.leave_out(0, NAMES_ROWS)
        for position, parsed in reading.parse(lines, cells):
            if keep:
                blocks[position].append(parsed)
        n_rows += len(lines)
        if keep:
            every_line.append(np.array(lines))
    positions = reading.finish()
    layout = FileLayout(source.names, source.text.header, positions, delimiter=source.delimiter)
    n_marked = {source.names[j]: counts for j in positions if any(counts := reading.n_marked[j])}
    table = Table(layout, n_rows, reading.reasons, None, reading.identifiers, n_marked)
    if not keep:
        return table
    matrix = np.empty((n_rows, len(positions)), order="F")
    marks = np.zeros((n_rows, len(positions)), np.int8, order="F") if n_marked else None
    for j, position in enumerate(positions):  # a column at a time, so that the numbers are not there twice
        column = blocks.pop(position)
        np.concatenate([parsed.numbers for parsed in column], out=matrix[:, j])
        if marks is not None:
            np.concatenate([_marks_of(parsed) for parsed in column], out=marks[:, j])
    return replace(table, block=Block(matrix, {}, np.concatenate(every_line), marks=marks))


def _marks_of(parsed: Parsed) -> NDArray[np.int8]:
    """Return the marks of the cells: -1 for a cell such as ``<0.05``, 1 for one such as ``>100``, else 0."""
    return np.zeros(parsed.numbers.size, np.int8) if parsed.marks is None else parsed.marks


class _Reading:
    """State of reading a text table: columns that may hold numbers, and reasons why others are left out."""

    def __init__(self, source: TextSource, selection: Selection) -> None:
        self._source, self._selection = source, selection
        cells = CellParser(source.text)
        without_limits = source.text._replace(censored=CensoredCells())
        #: Parsers of the columns that have not been left out, by position.
        self.columns = {
            j: ColumnParser(cells, without_limits if j in selection.required else source.text, source.names[j])
            for j in selection.candidates(len(source.names))
        }
        #: Numbers of cells such as ``<0.05`` and of cells such as ``>100``, by position of the column.
        self.n_marked = dict.fromkeys(self.columns, (0, 0))
        self._evidence = {j: IdentifierEvidence(source.names[j]) for j in self.columns}
        self._has_numbers = {j for j in self.columns if selection.is_requested(j)}
        #: Reasons why columns were left out, by name. `_odd`: for each remedy, the columns that look numeric but are
        #: not, with the reason for each.
        self.reasons: dict[str, str] = {}
        self.identifiers: dict[str, str] = {}
        self._odd: dict[str, list[tuple[str, str]]] = {}

    def leave_out(self, position: int, reason: str | None = None) -> None:
        """Stop reading a column, and record the reason if there is one."""
        if self.columns.pop(position, None) is not None and reason is not None:
            self.reasons[self._source.names[position]] = reason

    def parse(self, lines: Sequence[int], cells: Sequence[Sequence[str]]) -> Iterator[tuple[int, Parsed]]:
        """Yield position and parsed cells of each numeric column of a block; leave out columns that are not numeric."""
        wrong = []
        for position, column in self.columns.items():
            parsed = column.parse(cells[position], lines)
            if parsed.problem is None:
                # a column that holds only limits, such as <18 and >=18, holds classes
                if not np.isnan(parsed.numbers if parsed.marks is None else parsed.numbers[parsed.marks == 0]).all():
                    self._has_numbers.add(position)
                if parsed.marks is None:
                    self._add_evidence(position, cells[position], parsed.numbers, lines)
                else:
                    self._evidence[position].mark_as_measurements()
                    self._count_marks(position, parsed.marks)
                yield position, parsed
            else:
                wrong.append((position, parsed))
        for position, parsed in wrong:
            self._refuse_or_leave_out(position, parsed, lines, cells)

    def _count_marks(self, position: int, marks: NDArray[np.int8]) -> None:
        """Add the cells that hold a limit to the counts of the column."""
        n_below, n_above = self.n_marked[position]
        self.n_marked[position] = (
            n_below + int(np.count_nonzero(marks < 0)),
            n_above + int(np.count_nonzero(marks > 0)),
        )

    def _add_evidence(
        self, position: int, cells: Sequence[str], numbers: NDArray[np.float64], lines: Sequence[int]
    ) -> None:
        """Add cells to the evidence on whether the column holds identifiers.

        Parameters
        ----------
        position : int
            Position of the column.
        cells : sequence of str
            The cells.
        numbers : (n,) ndarray
            The numbers read from them.
        lines : sequence of int
            Their lines in the file.
        """
        evidence = self._evidence[position]
        if not evidence.may_be_identifiers:
            return
        separator = self._source.text.thousands
        if self.columns[position].has_unit() or (separator is not None and separator in "".join(cells)):
            evidence.mark_as_measurements()
        else:
            evidence.add_cells(cells, numbers, lines)

    def _refuse_or_leave_out(
        self, position: int, parsed: Parsed, lines: Sequence[int], cells: Sequence[Sequence[str]]
    ) -> None:
        """Raise if a column was requested or holds a number outside the range of float64; otherwise leave it out.

        Parameters
        ----------
        position : int
            Position of the column.
        parsed : Parsed
            Its parsed cells, with the problem.
        lines : sequence of int
            Lines of the rows in the file.
        cells : sequence of sequence of str
            The cells of all columns.
        """
        problem, source = parsed.problem, self._source
        assert problem is not None
        is_requested = self._selection.is_requested(position)
        if is_requested or problem.is_fatal:
            raise source.refuse(position, lines[problem.at], problem.reason + self._remedy(problem, position, cells))
        self.leave_out(position)
        if parsed.mostly_numbers or are_nearly_numbers(cells[position], problem.at, source.text):
            reason = f"line {lines[problem.at]}: {problem.reason}"
            self.reasons[source.names[position]] = reason
            remedy = self._remedy(problem, position, cells)
            self._odd.setdefault(remedy, []).append((source.names[position], reason))

    def _remedy(self, problem: BadCell, position: int, cells: Sequence[Sequence[str]]) -> str:
        """Return the advice that ends the message about a cell that is not a number.

        Parameters
        ----------
        problem : BadCell
            The cell, and the reason why it is not a number.
        position : int
            Position of the column.
        cells : sequence of sequence of str
            The cells of all columns in the block.
        """
        if problem.is_fatal:
            return f"; rescale the column, or pass --missing={cells[position][problem.at].strip()}"
        if problem.limit_remedy:
            return problem.limit_remedy
        if problem.is_unit:
            return "; write all in the same unit"
        text = self._source.text
        others = (j for j in self.columns if j != position)
        uses_decimal = any(
            text.decimal in "".join(cells[j]) and self.columns[j].parse(cells[j], range(len(cells[j]))).problem is None
            for j in others
        )
        return find_remedy(cells[position], text, uses_decimal)

    def finish(self) -> tuple[int, ...]:
        """Return the positions of the numeric columns; warn about columns left out and about rounded numbers."""
        for position in [j for j in self.columns if not self._selection.is_requested(j)]:
            reason = self._evidence[position].reason()
            if reason is not None and position in self._has_numbers:
                self.identifiers[self._source.names[position]] = reason
                del self.columns[position]
        positions = tuple(j for j in self.columns if j in self._has_numbers)
        if not positions:
            raise self._no_numbers()
        for remedy, columns in self._odd.items():
            warn(_left_out(self._source.label, columns, remedy))
        for position in positions:
            warn_about_rounding(self._source.label, self._source.names[position], self._evidence[position])
        return positions

    def _no_numbers(self) -> BadInput:
        """Return the error about a table without numeric columns."""
        source = self._source
        for remedy, columns in self._odd.items():
            places = _in_a_list([name for name, _ in columns])
            return BadInput(f"{source.label} has no column of numbers: {places}, {columns[0][1]}{remedy}")
        if self.identifiers:
            return no_numbers(source.label, self.identifiers)
        hint = "; is the delimiter right (--delimiter)?" if len(source.names) == 1 else ""
        about = f"(delimiter {source.delimiter!r}, {len(source.names)} columns)"
        return BadInput(f"{source.label} has no column of numbers {about}{hint}")


def _left_out(label: str, columns: Sequence[tuple[str, str]], remedy: str) -> str:
    """Return the message about columns that are left out and share a remedy.

    Parameters
    ----------
    label : str
        Name of the file.
    columns : sequence of (str, str)
        The columns, and the reason for each.
    remedy : str
        The remedy, which ends the message.
    """
    verb = "is" if len(columns) == 1 else "are"
    return f"{_in_a_list([name for name, _ in columns])} of {label} {verb} left out: {columns[0][1]}{remedy}"


def _in_a_list(names: Sequence[str]) -> str:
    """Return the first few names of a list, for a message."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"column{'' if len(names) == 1 else 's'} {', '.join(map(repr, names[:3]))}{more}"


def _check_text(first: str, label: str) -> None:
    """Raise if `first`, the first line of the file called `label`, shows that the file is not a table of text."""
    if "\0" in first:
        raise BadInput(
            f"{label} is not text: give it the extension of its type, or, if it is UTF-16 without a byte-order mark, "
            "pass "
            "--encoding utf-16-le"
        )
    for begin, what in _OTHER_TEXTS.items():
        if first.lstrip().casefold().startswith(begin):
            raise BadInput(f"{label} is {what}, not a table of text")


def _csv_problem(error: str, first: int, last: int) -> str:
    """Return location and cause of the parser's message `error` about a row that spans the lines `first` to `last`."""
    if "unexpected end" in error:
        return f"line {first}: a quotation mark is opened in this row and never closed"
    if first < last:
        return f"line {first}: a quotation mark is opened in this row and closed within a cell on line {last} ({error})"
    return f"line {last}: the row is not well formed ({error})"


def stream_text(source: TextSource, choose: Choice) -> tuple[FileLayout, Iterator[Block]]:
    """Return the layout of a table and an iterator over its rows in blocks; columns not selected pass unchanged."""
    selection = choose(source.names, source.text.header)
    assert selection.positions is not None
    positions = tuple(selection.candidates(len(source.names)))
    layout = FileLayout(source.names, source.text.header, positions, delimiter=source.delimiter)
    return layout, _text_blocks(source, selection, layout)


def _text_blocks(source: TextSource, selection: Selection, layout: FileLayout) -> Iterator[Block]:
    others = sorted(set(range(len(source.names))).difference(layout.positions))
    reading = _Reading(source, selection)
    for lines, cells in source.blocks():
        matrix = np.empty((len(lines), len(layout.positions)))
        marks = None
        for j, (_, parsed) in enumerate(reading.parse(lines, cells)):
            matrix[:, j] = parsed.numbers
            if parsed.marks is not None:
                marks = np.zeros(matrix.shape, np.int8) if marks is None else marks
                marks[:, j] = parsed.marks
        yield Block(matrix, {position: cells[position] for position in others}, np.array(lines), marks=marks)
    reading.finish()


class TextWriter:
    """Writer of a text table, block by block.

    Parameters
    ----------
    file : file
        The open text file.
    layout : FileLayout
        The columns of the table.
    delimiter : str
        The delimiter.
    text : TextFormat
        The format of numbers, and whether there is a header.
    """

    def __init__(self, file: TextIO, layout: FileLayout, delimiter: str, text: TextFormat) -> None:
        self._layout, self._decimal = layout, text.decimal
        self._writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        self._header: tuple[str, ...] | None = layout.names if layout.named or text.header else None

    def write(self, block: Block, result: NDArray[Any]) -> None:
        """Append the rows of a block, with `result` in place of the numbers that were read."""
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
        """Do nothing, because all rows have been written."""


def _as_cells(values: NDArray[Any], decimal: str) -> list[Any]:
    """Format numbers as cells, in the shortest exact form; missing numbers become empty cells."""
    cells = [None if math.isnan(value) else value for value in values.tolist()]
    return cells if decimal == "." else [cell if cell is None else repr(cell).replace(".", decimal) for cell in cells]


def _plain(cells: Any) -> Any:
    return cells.to_pylist() if hasattr(cells, "to_pylist") else cells
