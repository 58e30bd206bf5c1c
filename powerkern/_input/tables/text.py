"""Tables of text: read and written in blocks of rows."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from powerkern._input.messages import warn
from powerkern._input.tables.cells import Parsed, Parser, as_cells
from powerkern._input.tables.delimiters import best_delimiter
from powerkern._input.tables.errors import BadInput
from powerkern._input.tables.table import NAMES_ROWS, Block, Choice, Layout, Survey, Table, TextFormat, check_distinct

#: Rows of text are read and written in blocks of about as many cells.
_CELLS_AT_ONCE = 2**16
#: Lines in which the delimiter is looked for.
_FIRST_LINES = 20
#: Names of a first column that are those of rows: pandas and R write none, pandas reads none as the second; the others
#: are believed if the column counts.
_NO_NAMES = ("", "Unnamed: 0")
_ROW_NAMES = ("index", "rownames", "row.names", "row_names", "rowid")

Rows = tuple[list[int], list[list[str]]]


class TextSource:
    """A table of text that is read from its beginning to its end, once."""

    def __init__(self, file: TextIO, label: str, kind_delimiter: str | None, text: TextFormat) -> None:
        self.label, self._text = label, text
        lines = _lines(file, text.comment)
        head = list(itertools.islice(lines, _FIRST_LINES))
        self.delimiter = text.delimiter or kind_delimiter or best_delimiter(head)
        self._blocks = _blocks(itertools.chain(head, lines), label, self.delimiter)
        first = next(self._blocks, None)
        if first is None:
            raise BadInput(f"{label} is empty")
        self._first = next(self._blocks, None) if text.header else first
        self.names, self._fringe = self._header(first[1][0])
        self._parser = Parser(text)

    def blocks(self) -> Iterator[Rows]:
        """Rows, as wide as the header, with the lines they end on."""
        if self._first is None:
            raise BadInput(f"{self.label} has a header but no rows")
        width = len(self.names)
        for lines, rows in itertools.chain([self._first], self._blocks):
            for line, row in zip(lines, rows, strict=True):
                if self._fringe and len(row) == width + 1 and not row[-1].strip():
                    row.pop()
                if len(row) != width:
                    raise BadInput(f"{self.label}, line {line}: {len(row)} cells where the header has {width}")
            yield lines, rows

    def parsed(self, cells: Sequence[str]) -> Parsed:
        """Numbers of a column's cells."""
        return self._parser(cells)

    def _header(self, row: list[str]) -> tuple[tuple[str, ...], bool]:
        """Names of all columns, and whether each row ends in one delimiter more than the header does."""
        if not self._text.header:
            return tuple(map(str, range(len(row)))), False
        names = tuple(name.strip() for name in row)
        check_distinct(names, self.label)
        if Parser(TextFormat())(names).offence is None and any(names):  # as spectra have them; a trap otherwise
            warn(
                f"the first line of {self.label} holds only numbers; it is taken for the column names (--no-header "
                "where it is data)"
            )
        longer = self._first is not None and len(self._first[1][0]) == len(names) + 1
        if longer and self._first is not None and self._first[1][0][-1].strip():  # R's write.table: rows have names
            return ("", *names), False
        return names, longer


def decoded(file: BinaryIO, encoding: str | None) -> io.TextIOWrapper:
    """The text of a file; without an encoding, by its byte-order mark or else UTF-8."""
    buffered = io.BufferedReader(file) if not isinstance(file, io.BufferedReader) else file  # type: ignore[type-var]
    if encoding is None:
        mark = buffered.peek(4)[:2]
        # utf-8-sig swallows the byte-order mark that spreadsheets write
        encoding = "utf-16" if mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
    return io.TextIOWrapper(buffered, encoding=encoding, newline="")


def _lines(file: TextIO, comment: str | None) -> Iterator[str]:
    """The lines of a file, comments as empty ones, so that they count."""
    if comment is None:
        return iter(file)
    return ("\n" if line.startswith(comment) else line for line in file)


def _blocks(lines: Iterable[str], label: str, delimiter: str) -> Iterator[Rows]:
    """Rows with the lines they end on: first the header alone, then blocks of rows; blank lines are skipped."""
    reader = csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=delimiter == " ")
    numbered = ((reader.line_num, row) for row in reader if row and (len(row) > 1 or row[0].strip()))
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


# --- all rows -----------------------------------------------------------------------------------------


class _Numbers:
    """The columns that have been numbers so far, in a matrix that grows as rows come."""

    def __init__(self, positions: Sequence[int]) -> None:
        self.positions = list(positions)
        self._place = {position: k for k, position in enumerate(positions)}
        self._matrix = np.empty((0, len(positions)))
        self._n = 0

    def add(self, columns: Mapping[int, NDArray[np.float64]]) -> None:
        """Append the rows of a block; columns that are not in it are dropped."""
        self.positions = list(columns)
        m = len(next(iter(columns.values()))) if columns else 0
        if self._n + m > len(self._matrix):
            self._matrix.resize((max(len(self._matrix) * 5 // 4, self._n + m), self._matrix.shape[1]), refcheck=False)
        for position, numbers in columns.items():
            self._matrix[self._n : self._n + m, self._place[position]] = numbers
        self._n += m

    def of(self, positions: Sequence[int]) -> NDArray[np.float64]:
        """The matrix of these columns; no copy where they are all that there are."""
        places = [self._place[position] for position in positions]
        whole = self._matrix[: self._n]
        return whole if len(places) == whole.shape[1] else whole[:, places]


class _Odd(NamedTuple):
    """The first cell of a column that is no number."""

    line: int
    cell: str
    #: Whether the column looked like one of numbers.
    surprising: bool

    def __str__(self) -> str:
        return f"line {self.line}: {self.cell!r} is not a number"


class _Columns:
    """The columns that were asked for, or those that have been numbers so far, found while blocks of rows are read."""

    def __init__(self, source: TextSource, choose: Choice) -> None:
        self._source = source
        self._chosen = choose(source.names, source._text.header)
        self._positions = list(range(len(source.names)) if self._chosen is None else self._chosen)
        self._odd: dict[int, _Odd] = {}
        self._counted: str | None = None
        self._with_numbers: set[int] = set()

    def blocks(self) -> Iterator[tuple[list[int], dict[int, NDArray[np.float64]]]]:
        """Lines and numbers of the columns that are numbers up to there."""
        source, first = self._source, True
        for lines, rows in source.blocks():
            columns = list(zip(*rows, strict=True))
            if first and self._chosen is None and _names_rows(source, columns[0]):
                self._counted, self._positions = source.names[0], self._positions[1:]
            first = False
            parsed = _parsed_columns(source, columns, lines, self._positions, self._odd)
            if self._chosen is not None and self._odd:
                position, offence = next(iter(self._odd.items()))
                raise BadInput(f"{source.label}, column {source.names[position]!r}, {offence}")
            self._positions = list(parsed)
            bare = set(parsed) - self._with_numbers
            self._with_numbers.update(position for position in bare if not np.isnan(parsed[position]).all())
            yield lines, parsed

    def found(self) -> tuple[Layout, dict[str, str]]:
        """The layout, and why columns were left out that look like numbers; one warning for each that may surprise."""
        source, positions = self._source, self._positions
        if self._chosen is None:  # a column without a single number is not a column of numbers
            positions = [position for position in positions if position in self._with_numbers]
        reasons = {source.names[position]: str(one) for position, one in self._odd.items() if one.surprising}
        if not positions:
            raise BadInput(_no_numbers(source, reasons))
        for name, reason in reasons.items():
            warn(f"column {name!r} of {source.label} is left out: {reason} (see --missing and --decimal)")
        if self._counted is not None:
            reasons[self._counted] = NAMES_ROWS
        return Layout(source.names, source._text.header, tuple(positions), delimiter=source.delimiter), reasons


def read_text(source: TextSource, choose: Choice) -> Table:
    """All rows of the columns that are chosen, or of those that hold numbers."""
    columns, numbers, every_line = _Columns(source, choose), None, []
    for lines, parsed in columns.blocks():
        numbers = numbers or _Numbers(list(parsed))
        numbers.add(parsed)
        every_line.append(np.array(lines))
    assert numbers is not None
    layout, reasons = columns.found()
    return Table(layout, Block(numbers.of(layout.positions), {}, np.concatenate(every_line)), reasons)


def survey_text(source: TextSource, choose: Choice) -> Survey:
    """What `read_text` finds, without keeping the numbers."""
    columns = _Columns(source, choose)
    n_rows = sum(len(lines) for lines, _ in columns.blocks())
    layout, reasons = columns.found()
    return Survey(layout, n_rows, reasons)


def _parsed_columns(
    source: TextSource, columns: Sequence[Sequence[str]], lines: Sequence[int], positions: Sequence[int],
    odd: dict[int, _Odd],
) -> dict[int, NDArray[np.float64]]:  # fmt: skip
    """The numbers of those columns of a block that hold numbers; the others become odd."""
    numbers = {}
    for position in positions:
        parsed = source.parsed(columns[position])
        if parsed.offence is None:
            numbers[position] = parsed.numbers
        else:
            odd[position] = _Odd(lines[parsed.offence], columns[position][parsed.offence], parsed.surprising)
    return numbers


def _names_rows(source: TextSource, cells: Sequence[str]) -> bool:
    """Whether the first column names the rows: it has no name, or a telling one and counts."""
    if len(source.names) == 1 or not source._text.header:
        return False
    if source.names[0] in _NO_NAMES:
        return True
    first = [cell.strip() for cell in cells]
    return source.names[0].casefold() in _ROW_NAMES and any(
        first == list(map(str, range(start, start + len(first)))) for start in (0, 1)
    )


def _no_numbers(source: TextSource, reasons: Mapping[str, str]) -> str:
    if reasons:
        name, reason = next(iter(reasons.items()))
        return f"{source.label} has no column of numbers: column {name!r}, {reason} (see --missing and --decimal)"
    hint = "; is the delimiter right (--delimiter)?" if len(source.names) == 1 else ""
    return (
        f"{source.label} has no column of numbers (delimiter {source.delimiter!r}, {len(source.names)} columns){hint}"
    )


# --- block by block -----------------------------------------------------------------------------------


def stream_text(source: TextSource, choose: Choice) -> tuple[Layout, Iterator[Block]]:
    """Blocks of rows of the columns that are chosen, the others kept as they are."""
    chosen = choose(source.names, source._text.header)
    assert chosen is not None
    layout = Layout(source.names, source._text.header, tuple(chosen), delimiter=source.delimiter)
    return layout, _text_blocks(source, chosen)


def _text_blocks(source: TextSource, chosen: Sequence[int]) -> Iterator[Block]:
    others = sorted(set(range(len(source.names))).difference(chosen))
    start = 0
    for lines, rows in source.blocks():
        columns = list(zip(*rows, strict=True))
        odd: dict[int, _Odd] = {}
        numbers = _parsed_columns(source, columns, lines, chosen, odd)
        for position, offence in odd.items():
            raise BadInput(f"{source.label}, column {source.names[position]!r}, {offence}")
        matrix = np.column_stack([numbers[position] for position in chosen])
        yield Block(matrix, {position: columns[position] for position in others}, np.array(lines), start)
        start += len(rows)


class TextWriter:
    """A table of text that is written block by block."""

    def __init__(self, file: TextIO, layout: Layout, delimiter: str, text: TextFormat) -> None:
        self._layout, self._decimal = layout, text.decimal
        self._writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        self._header: tuple[str, ...] | None = layout.names if layout.named or text.header else None

    def write(self, block: Block, result: NDArray[Any]) -> None:
        """Append rows, `result` in place of the block's numbers."""
        if self._header is not None:  # not before: what is wrong with the first rows is said first
            self._writer.writerow(self._header)
            self._header = None
        where = {position: j for j, position in enumerate(self._layout.positions)}
        size = max(1, _CELLS_AT_ONCE // len(self._layout.names))
        for start in range(0, len(result), size):
            rows = slice(start, start + size)
            columns = (
                as_cells(result[rows, where[position]], self._decimal)
                if position in where
                else _plain(block.rest[position][rows])
                for position in range(len(self._layout.names))
            )
            self._writer.writerows(zip(*columns, strict=True))

    def finish(self) -> None:
        """Nothing is left to do."""


def _plain(cells: Any) -> Any:
    return cells.to_pylist() if hasattr(cells, "to_pylist") else cells
