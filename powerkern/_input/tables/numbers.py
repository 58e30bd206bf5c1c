"""Parse cells of text as numbers, with decimal signs, thousands separators and units."""

from __future__ import annotations

import contextlib
import math
import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._input.tables.table import TextFormat

#: Cells, stripped and in lower case, that stand for a missing value.
_MISSING = frozenset({"", "na", "n/a", "nan", "-nan", "null", "none", "#n/a", "<na>"})
#: The typographic minus sign, which float() does not accept.
_MINUS = "\N{MINUS SIGN}"
#: The characters that each thousands separator stands for: spaces may be no-break, narrow or thin, apostrophes curly.
_SEPARATORS = {" ": " \u00a0\u202f\u2009", "'": "'\u2019"}


class BadCell(NamedTuple):
    """The first cell of a block that cannot be read as a number of its column."""

    at: int
    #: The problem, worded as the end of a sentence about the cell.
    reason: str
    #: True for a number outside the range of float64, which is an error even where other bad cells only lead to the
    #: column being left out.
    is_fatal: bool = False
    #: True for a number with another unit than the first one of the column.
    is_unit: bool = False
    #: Advice on a cell such as ``<0.05`` that cannot be read as a limit; "" for other cells.
    limit_remedy: str = ""


class Parsed(NamedTuple):
    """The result of parsing some cells of a column."""

    #: NaN where a cell is missing or not a number.
    numbers: NDArray[np.float64]
    problem: BadCell | None = None
    #: Whether at least half of the known cells are numbers.
    mostly_numbers: bool = True
    #: -1 where the value lies below the number (``<0.05``), 1 where it lies above (``>100``), else 0. None: no limits.
    marks: NDArray[np.int8] | None = None


#: The beginning of a cell that holds a limit, and the mark of each sign.
_LIMIT = re.compile(r"\s*(?:([<\N{LESS-THAN OR EQUAL TO}])|[>\N{GREATER-THAN OR EQUAL TO}])=?\s*")


def split_limit(cell: str) -> tuple[int, str]:
    """Split a cell into a mark (-1 for ``<0.05``, 1 for ``>100``, 0 for neither) and the rest of its text."""
    found = _LIMIT.match(cell)
    if found is None:
        return 0, cell
    return -1 if found[1] else 1, cell[found.end() :]


def limit_without_number(what: str, column: str, mark: int) -> tuple[str, str]:
    """Return the reason why a cell such as ``<LOD`` cannot be read, and advice on the option that sets its limit.

    Parameters
    ----------
    what : str
        Name of the cell in the message.
    column : str
        Name of the column.
    mark : int
        -1 for ``<``, 1 for ``>``.
    """
    option = "--below-limit" if mark < 0 else "--above-limit"
    return f"{what} is a limit without a number", f"; pass {option} {shlex.quote(f'{column}=NUMBER')}"


class CellParser:
    """Parses single cells of tables of one format."""

    def __init__(self, text: TextFormat) -> None:
        self._text = text
        self._missing = _MISSING.union(cell.strip().casefold() for cell in text.missing)
        self._separators = _SEPARATORS.get(text.thousands or "", text.thousands or "")
        group = f"(?:{'|'.join(map(re.escape, self._separators))})"
        self._grouped = re.compile(
            # the last group has three digits; in India, all other groups have two
            rf"[+-]?[1-9]\d{{0,2}}(?:{group}\d{{2,3}})*{group}\d{{3}}(?:{re.escape(text.decimal)}\d*)?(?:[eE][+-]?\d+)?"
        )
        units = "|".join(re.escape(unit) for unit in sorted(text.units, key=len, reverse=True))
        self._with_unit = re.compile(
            rf"(?P<sign>[+\-{_MINUS}]?)\s*(?P<before>{units})?\s*(?P<number>\S.*?)\s*(?P<after>{units})?", re.DOTALL
        )

    def is_missing(self, cell: str) -> bool:
        """Return whether a cell stands for a missing value."""
        return cell.strip().casefold() in self._missing

    def value(self, cell: str) -> tuple[float, str]:
        """Return the number and the unit in a cell that is not missing; raise ValueError if it holds no number.

        If limits are read, ``<0.05`` counts as the number 0.05.
        """
        if not self._text.censored.refusal:
            cell = split_limit(cell)[1]
        cell, unit = cell.strip(), ""
        if self._text.units and (parts := self._with_unit.fullmatch(cell)) is not None:
            before, after = parts["before"] or "", parts["after"] or ""
            if before and after:
                raise ValueError(cell)
            unit, cell = before or after, parts["sign"] + parts["number"]
        cell = cell.replace(_MINUS, "-")
        if any(separator in cell for separator in self._separators):
            if self._grouped.fullmatch(cell) is None:
                raise ValueError(cell)
            for separator in self._separators:
                cell = cell.replace(separator, "")
        if self._text.decimal == ",":
            cell = cell.replace(".", "?").replace(",", ".")
        return float(cell.replace("_", "?")), unit  # float() would take 1_000


class ColumnParser:
    """Parses the cells of one column, block by block; either all of them have the same unit or none has a unit.

    Parameters
    ----------
    cells : CellParser
        Reads single cells.
    text : TextFormat
        The format of the table.
    name : str
        The name of the column.
    """

    def __init__(self, cells: CellParser, text: TextFormat, name: str = "") -> None:
        self._cells, self._text, self._name = cells, text, name
        #: The unit of the first known cell and the line of that cell; None before this cell is read.
        self._unit: tuple[str, int] | None = None

    def has_unit(self) -> bool:
        """Return whether the numbers have a unit."""
        return self._unit is not None and self._unit[0] != ""

    def parse(self, cells: Sequence[str], lines: Sequence[int]) -> Parsed:
        """Parse the cells in these lines of the file."""
        numbers, marks = self._plain_numbers(cells), None
        if numbers is None:
            numbers, marks, problem, n_wrong = self._parse_each(cells, lines)
            if problem is not None:
                n_known = int(np.count_nonzero(~np.isnan(numbers)))
                is_mostly = n_known >= max(n_wrong, 1) if problem.limit_remedy else n_known >= n_wrong
                return Parsed(self._text.without_missing(numbers), problem, is_mostly)
        elif self._unit is None and not (missing := np.isnan(numbers)).all():
            self._unit = "", lines[int(np.argmin(missing))]
        is_known = ~np.isnan(numbers)
        numbers = self._text.without_missing(numbers)
        if marks is not None:
            marks[is_known & np.isnan(numbers)] = 0  # <-999, where -999 means missing
        return Parsed(numbers, _out_of_range(numbers, cells), marks=marks)

    def _plain_numbers(self, cells: Sequence[str]) -> NDArray[np.float64] | None:
        """Return the numbers if ``float()`` reads every cell as this format defines it, otherwise None."""
        if self._text.decimal == "." and not self.has_unit() and "_" not in "".join(cells):
            with contextlib.suppress(ValueError):  # a cell is missing or not a number
                return np.fromiter(map(float, cells), np.float64, len(cells))
        return None

    def _parse_each(
        self, cells: Sequence[str], lines: Sequence[int]
    ) -> tuple[NDArray[np.float64], NDArray[np.int8] | None, BadCell | None, int]:
        """Parse the cells one by one.

        A limit that cannot be read is reported only if the column has no other problem.

        Parameters
        ----------
        cells : sequence of str
            The cells.
        lines : sequence of int
            Their lines in the file.

        Returns
        -------
        ndarray, ndarray or None, BadCell or None, int
            The numbers, the marks of limits, the first problem, and the number of cells that hold no number.
        """
        numbers, marks, problem, n_wrong = np.full(len(cells), math.nan), np.zeros(len(cells), np.int8), None, 0
        limit_problem: BadCell | None = None
        limits_are_read = not self._text.censored.refusal
        for index, cell in enumerate(cells):
            if self._cells.is_missing(cell):
                continue
            mark, rest = split_limit(cell)
            if mark and not (limits_are_read and re.search(r"\d", rest)):
                marks[index] = mark
                limit_problem = limit_problem or self._limit_problem(index, cell, mark)
                continue
            try:
                value, unit = self._cells.value(cell)
            except ValueError:
                n_wrong += 1
                problem = problem or BadCell(index, f"{cell!r} is not a number")
                continue
            if self._unit is None:
                self._unit = unit, lines[index]
            if unit == self._unit[0]:
                numbers[index], marks[index] = value, mark
            else:
                n_wrong += 1
                reason = f"{cell!r} has {_quoted(unit)} and line {self._unit[1]} has {_quoted(self._unit[0])}"
                problem = problem or BadCell(index, reason, is_unit=True)
        return numbers, marks if marks.any() else None, problem or limit_problem, n_wrong

    def _limit_problem(self, index: int, cell: str, mark: int) -> BadCell | None:
        """Return the problem if a cell with a limit cannot be read; None if it can be read.

        A limit cannot be read if this format does not read limits, or if the cell has no number and the column has no
        limit that replaces it. `index` is the position of the cell in its block, and `mark` is -1 for ``<``, 1 for
        ``>``.
        """
        censored = self._text.censored
        if censored.refusal:
            return BadCell(index, f"{cell!r} is a limit, not a number", limit_remedy=censored.refusal)
        if self._name in (censored.below if mark < 0 else censored.above):
            return None
        if not censored.needs_number:
            return None
        reason, remedy = limit_without_number(repr(cell), self._name, mark)
        return BadCell(index, reason, limit_remedy=remedy)


def _quoted(unit: str) -> str:
    return f"the unit {unit!r}" if unit else "no unit"


def _out_of_range(numbers: NDArray[np.float64], cells: Sequence[str]) -> BadCell | None:
    """Return the first cell whose number overflows to infinity or underflows to zero in float64; None if none does."""
    for index in np.flatnonzero(np.isinf(numbers)).tolist():
        if re.search(r"\d", cells[index]):  # not the word inf
            return BadCell(index, f"{cells[index]!r} is too large for float64, which ends at 1.8e308", True)
    zeros = np.flatnonzero(numbers == 0.0)
    if zeros.size and "e-" in "".join(cells).casefold():
        for index in zeros.tolist():
            if re.search("[1-9]", cells[index].casefold().split("e")[0]):
                return BadCell(index, f"{cells[index]!r} is too small for float64, which would make it 0", True)
    return None


def holds_only_numbers(cells: Sequence[str]) -> bool:
    """Return whether all cells are plain numbers or missing, and at least one is a number."""
    parsed = ColumnParser(CellParser(TextFormat()), TextFormat()).parse(cells, range(len(cells)))
    return parsed.problem is None and any(cell.strip() for cell in cells)
