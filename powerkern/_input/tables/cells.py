"""Cells of text as numbers, and numbers as cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._input.tables.table import TextFormat

#: Cells (stripped, in lower case) that stand for a missing number in a text table.
MISSING = frozenset({"", "na", "n/a", "nan", "-nan", "null", "none", "#n/a", "<na>"})


class Parsed(NamedTuple):
    """The numbers of a column's cells."""

    numbers: NDArray[np.float64]
    #: Index of the first cell that is none.
    offence: int | None
    #: Whether that cell surprises: at least half of the column are numbers, or it is one by the other decimal sign.
    surprising: bool = False


class Parser:
    """Reads cells as numbers."""

    def __init__(self, text: TextFormat) -> None:
        self._decimal = text.decimal
        self._missing = MISSING.union(cell.strip().casefold() for cell in text.missing)
        self._missing_numbers = text.missing_numbers()

    def __call__(self, cells: Sequence[str]) -> Parsed:
        """NaN for missing cells, and for those that are no numbers."""
        try:
            if "_" not in "".join(cells) and self._decimal == ".":
                return Parsed(self._without_missing(np.fromiter(map(float, cells), np.float64, len(cells))), None)
        except ValueError:  # something is missing, or is no number: look at each
            pass
        return self._one_by_one(cells)

    def _one_by_one(self, cells: Sequence[str]) -> Parsed:
        numbers = np.full(len(cells), math.nan)
        offences = []
        for index, cell in enumerate(cells):
            if cell.strip().casefold() not in self._missing:
                try:
                    numbers[index] = float(self._in_python(cell))
                except ValueError:
                    offences.append(index)
        known = int(np.count_nonzero(~np.isnan(numbers)))
        numbers = self._without_missing(numbers)
        if not offences:
            return Parsed(numbers, None)
        first = offences[0]
        return Parsed(numbers, first, known >= len(offences) or self._has_other_sign(cells[first]))

    def _has_other_sign(self, cell: str) -> bool:
        other = "," if self._decimal == "." else "."
        return cell.count(other) == 1 and cell.strip().replace(other, "").lstrip("+-").isdecimal()

    def _in_python(self, cell: str) -> str:
        """A cell as float() takes it: that would take 1_000, and a point where the decimal comma is."""
        cell = cell.replace("_", "?")
        return cell if self._decimal == "." else cell.replace(".", "?").replace(self._decimal, ".")

    def _without_missing(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        if self._missing_numbers:
            numbers[np.isin(numbers, self._missing_numbers)] = math.nan
        return numbers


def as_cells(values: NDArray[Any], decimal: str) -> list[Any]:
    """Numbers as csv writes them: shortest exact form, missing ones empty."""
    plain = values.tolist()
    if decimal != ".":
        return [None if math.isnan(value) else repr(value).replace(".", decimal) for value in plain]
    return [None if math.isnan(value) else value for value in plain]
