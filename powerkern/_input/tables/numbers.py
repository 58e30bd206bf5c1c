"""Cells of text as numbers: decimal signs, thousands separators, units, and numbers that float64 cannot hold."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._input.tables.table import TextFormat

#: Cells (stripped, in lower case) that stand for a missing number.
_MISSING = frozenset({"", "na", "n/a", "nan", "-nan", "null", "none", "#n/a", "<na>"})
#: The minus of typesetters, which float() does not know.
_MINUS = "\N{MINUS SIGN}"
#: The characters that each thousands separator stands for: spaces may be no-break, narrow or thin, apostrophes curly.
_SEPARATORS = {" ": " \u00a0\u202f\u2009", "'": "'\u2019"}


class BadCell(NamedTuple):
    """The first cell of a block that cannot be read as a number of its column: its index and the reason."""

    at: int
    #: The end of a sentence about the cell.
    reason: str
    #: True for a number that float64 cannot hold: an error even where other odd cells make a column be left out.
    is_fatal: bool = False
    #: True for a number with another unit than the first one of the column.
    is_unit: bool = False


class Parsed(NamedTuple):
    """The numbers of some of a column's cells."""

    #: NaN where a cell is missing or not a number.
    numbers: NDArray[np.float64]
    problem: BadCell | None = None
    #: Whether at least half of the known cells are numbers.
    mostly_numbers: bool = True


class CellParser:
    """Reads the cells of tables of one format."""

    def __init__(self, text: TextFormat) -> None:
        self._text = text
        self._missing = _MISSING.union(cell.strip().casefold() for cell in text.missing)
        self._separators = _SEPARATORS.get(text.thousands or "", text.thousands or "")
        group = f"(?:{'|'.join(map(re.escape, self._separators))})"
        self._grouped = re.compile(
            # the last group has three digits, the others two in India
            rf"[+-]?[1-9]\d{{0,2}}(?:{group}\d{{2,3}})*{group}\d{{3}}(?:{re.escape(text.decimal)}\d*)?(?:[eE][+-]?\d+)?"
        )
        units = "|".join(re.escape(unit) for unit in sorted(text.units, key=len, reverse=True))
        self._with_unit = re.compile(
            rf"(?P<sign>[+\-{_MINUS}]?)\s*(?P<before>{units})?\s*(?P<number>\S.*?)\s*(?P<after>{units})?", re.DOTALL
        )

    def is_missing(self, cell: str) -> bool:
        """Return whether a cell denotes a missing number."""
        return cell.strip().casefold() in self._missing

    def value(self, cell: str) -> tuple[float, str]:
        """Return the number in a cell that is not missing, and its unit; raise ValueError if there is none."""
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
    """Reads the cells of one column, block by block; all have the same unit, or none has one."""

    def __init__(self, cells: CellParser, text: TextFormat) -> None:
        self._cells, self._text = cells, text
        #: The unit of the first known cell and the line of that cell; None before it.
        self._unit: tuple[str, int] | None = None

    def has_unit(self) -> bool:
        """Return whether the numbers have a unit."""
        return self._unit is not None and self._unit[0] != ""

    def parse(self, cells: Sequence[str], lines: Sequence[int]) -> Parsed:
        """Return the numbers in the cells of these lines."""
        numbers = self._plain_numbers(cells)
        if numbers is None:
            numbers, problem, n_wrong = self._parse_each(cells, lines)
            if problem is not None:
                n_known = int(np.count_nonzero(~np.isnan(numbers)))
                return Parsed(self._text.without_missing(numbers), problem, n_known >= n_wrong)
        elif self._unit is None and not (missing := np.isnan(numbers)).all():
            self._unit = "", lines[int(np.argmin(missing))]
        numbers = self._text.without_missing(numbers)
        return Parsed(numbers, _out_of_range(numbers, cells))

    def _plain_numbers(self, cells: Sequence[str]) -> NDArray[np.float64] | None:
        """Return the numbers if float() reads all cells as this format defines them; None otherwise."""
        if self._text.decimal == "." and not self.has_unit() and "_" not in "".join(cells):
            with contextlib.suppress(ValueError):  # a cell is missing or not a number
                return np.fromiter(map(float, cells), np.float64, len(cells))
        return None

    def _parse_each(
        self, cells: Sequence[str], lines: Sequence[int]
    ) -> tuple[NDArray[np.float64], BadCell | None, int]:
        """Return the numbers, the first problem, and the number of cells that have one."""
        numbers, problem, n_wrong = np.full(len(cells), math.nan), None, 0
        for index, cell in enumerate(cells):
            if self._cells.is_missing(cell):
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
                numbers[index] = value
            else:
                n_wrong += 1
                reason = f"{cell!r} has {_quoted(unit)} and line {self._unit[1]} has {_quoted(self._unit[0])}"
                problem = problem or BadCell(index, reason, is_unit=True)
        return numbers, problem, n_wrong


def _quoted(unit: str) -> str:
    return f"the unit {unit!r}" if unit else "no unit"


def _out_of_range(numbers: NDArray[np.float64], cells: Sequence[str]) -> BadCell | None:
    """Return the first cell whose digits became infinite or zero."""
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
    """Return whether all cells are plain numbers or missing, and one is a number."""
    parsed = ColumnParser(CellParser(TextFormat()), TextFormat()).parse(cells, range(len(cells)))
    return parsed.problem is None and any(cell.strip() for cell in cells)
