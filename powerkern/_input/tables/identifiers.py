"""Detect columns of integers that are identifiers, not measurements: customer keys, postcodes, article numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._input.messages import warn
from powerkern._input.tables.table import BadInput

#: Integers beyond this are rounded in float64.
_EXACT = 2**53
#: Distinct integers count as identifiers if all have the same number of digits, at least the first number, or if all
#: have at least the second. Both are our choices: house prices, populations and counts of bytes have fewer digits, or
#: different numbers of digits.
_LONG, _VERY_LONG = 7, 12
#: Number of rows that are searched for repetitions; they take 8 MB per column.
_ROWS_COMPARED = 2**20

_PADDED = re.compile(r"^\s*[+-]?0\d+\s*$", re.MULTILINE)
_DIGITS = re.compile(r"\s*[+-]?\d+\s*")


class IdentifierEvidence:
    """Evidence, collected block by block, on whether the values of a column are identifiers.

    Parameters
    ----------
    name : str
        The name of the column.
    """

    def __init__(self, name: str) -> None:
        self._is_named_id = _is_named_id(name)
        self._is_whole = True
        self._padded: str | None = None
        self._rounded: str | None = None
        self._first: str | None = None
        self._lowest, self._highest, self._n = np.inf, -np.inf, 0
        self._may_repeat, self._values = False, np.empty(0)

    @property
    def may_be_identifiers(self) -> bool:
        """True if all values so far are integers and nothing else marks the column as measurements."""
        return self._is_whole

    def mark_as_measurements(self) -> None:
        """Record that the column holds measurements, because its cells have units, thousands separators or limits."""
        self._is_whole = False

    @property
    def rounded(self) -> str | None:
        """The first integer that float64 rounds, and its position; None if there is none."""
        return self._rounded

    def add_cells(self, cells: Sequence[str], numbers: NDArray[np.float64], lines: Sequence[int]) -> None:
        """Add cells of a text column, the numbers that were read from them, and their lines in the file."""
        large = np.flatnonzero(np.abs(numbers) >= _EXACT).tolist()
        if not all(_DIGITS.fullmatch(cells[i]) for i in large):  # 1e30, whole in float64 as all large numbers are
            self.mark_as_measurements()
        if not self._add_numbers(numbers, lambda i: f"line {lines[i]}: {cells[i].strip()}"):
            return
        if self._padded is None and _PADDED.search("\n".join(cells)):
            at = next(i for i, cell in enumerate(cells) if _PADDED.fullmatch(cell))
            self._padded = f"line {lines[at]}: {cells[at].strip()}"
        if self._rounded is None:
            rounded = (i for i in large if int(cells[i]) != int(numbers[i]))
            self._rounded = next((f"line {lines[i]}: {cells[i].strip()}" for i in rounded), None)

    def add_values(self, values: NDArray[Any], start: int) -> None:
        """Add numbers of a column: integers, floats or Python integers; `start` is the number of rows before them."""
        numbers = values.astype(np.float64)
        large = np.flatnonzero(np.abs(numbers) >= _EXACT).tolist()
        if large and values.dtype.kind == "f":
            self.mark_as_measurements()
        if self._add_numbers(numbers, lambda i: f"row {start + i}: {int(numbers[i])}") and self._rounded is None:
            rounded = (i for i in large if int(values[i]) != int(numbers[i]))
            self._rounded = next((f"row {start + i}: {values[i]}" for i in rounded), None)

    def _add_numbers(self, numbers: NDArray[np.float64], example: Callable[[int], str]) -> bool:
        """Add numbers; return whether all numbers of the column so far are integers.

        Parameters
        ----------
        numbers : (n,) ndarray
            The numbers.
        example : function
            Takes a position in `numbers`; returns the value and its place in the file as text.
        """
        known = numbers[~np.isnan(numbers)]
        self._is_whole = self._is_whole and bool(np.isfinite(known).all()) and bool((known == np.rint(known)).all())
        if not self._is_whole or known.size == 0:
            return self._is_whole
        if self._first is None:
            self._first = example(int(np.argmax(~np.isnan(numbers))))
        self._lowest, self._highest = min(self._lowest, known.min()), max(self._highest, known.max())
        self._n += known.size
        if not self._may_repeat:
            self._values = np.append(self._values, known[: _ROWS_COMPARED - self._values.size])
            if not self._is_long() or np.unique(self._values).size < self._values.size:
                self._may_repeat, self._values = True, np.empty(0)
        return True

    def _is_long(self) -> bool:
        """Return whether all numbers have as many digits as identifiers have; see `_LONG`."""
        if self._lowest < 1.0:
            return False
        shortest, longest = len(str(int(self._lowest))), len(str(int(self._highest)))
        return shortest >= _VERY_LONG or (shortest == longest and shortest >= _LONG)

    def reason(self) -> str | None:
        """Return the reason to believe that the column holds identifiers, with an example; None if there is none."""
        if not self._is_whole or self._n == 0:
            return None
        if self._padded is not None:
            return f"whole numbers with leading zeros ({self._padded})"
        if self._rounded is not None:
            return f"whole numbers beyond 2**53 ({self._rounded})"
        if self._is_named_id:
            return f"whole numbers named as identifiers ({self._first})"
        if self._n > 1 and not self._may_repeat and self._is_long():
            return f"long whole numbers, all different ({self._first})"
        return None


def warn_about_rounding(label: str, name: str, evidence: IdentifierEvidence) -> None:
    """Warn if a column that is read as numbers contains integers that float64 rounds.

    Parameters
    ----------
    label : str
        Name of the file in messages.
    name : str
        Name of the column.
    evidence : IdentifierEvidence
        The evidence on the column.
    """
    if evidence.rounded is not None:
        warn(f"column {name!r} of {label}: whole numbers beyond 2**53 are rounded to 16 digits ({evidence.rounded})")


def no_numbers(label: str, identifiers: Mapping[str, str]) -> BadInput:
    """Return the error for a table without numeric columns, or whose numeric columns are all identifiers.

    Parameters
    ----------
    label : str
        Name of the file in messages.
    identifiers : mapping of str to str
        For each column of identifiers, by name, the reason why it is taken for one.
    """
    message = f"{label} has no column of numbers"
    for name, reason in identifiers.items():
        message += f": column {name!r} holds {reason}, taken for identifiers; --columns fits it anyway"
        break
    return BadInput(message)


def _is_named_id(name: str) -> bool:
    """Return whether a name begins or ends with the word "id", as "user_id", "ID number" and "customerId" do."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)
    return bool(words) and "id" in (words[0].lower(), words[-1].lower())
