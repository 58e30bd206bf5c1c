"""What separates the cells of a table of text."""

from __future__ import annotations

import csv
from collections.abc import Sequence

#: In the order of preference.
_CANDIDATES = (",", ";", "\t", "|")


def best_delimiter(lines: Sequence[str]) -> str:
    """The candidate that cuts the first lines into most cells, as many in each line; a comma where none does."""
    return max(_CANDIDATES, key=lambda delimiter: (*_fitness(lines, delimiter), -_CANDIDATES.index(delimiter)))


def _fitness(lines: Sequence[str], delimiter: str) -> tuple[bool, int]:
    """Whether lines have as many cells as the header, or one more (names of rows, a last delimiter); and how many."""
    try:
        widths = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row] or [1]
    except csv.Error:  # an uncut line is longer than a cell may be
        return False, 0
    return widths[0] > 1 and all(width - widths[0] in (0, 1) for width in widths[1:]), widths[0]
