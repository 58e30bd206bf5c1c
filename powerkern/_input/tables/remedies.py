"""Advice on cells that are not numbers: the option that would read them, or how to change the file."""

from __future__ import annotations

import csv
import io
import itertools
import re
import shlex
import unicodedata
from collections.abc import Sequence

from powerkern._input.tables.numbers import CellParser
from powerkern._input.tables.table import TextFormat

_THOUSANDS = (None, ",", ".", " ", "'")
#: Names of separators that are awkward to type.
_SPOKEN = {" ": "space", "'": "apostrophe"}
#: Units in addition to currency signs, which Unicode classifies.
_UNITS = ("%", "\N{PER MILLE SIGN}", "\N{DEGREE SIGN}")
_CURRENCIES = (
    "AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HKD", "INR", "JPY", "KRW", "MXN", "NOK", "NZD",
    "PLN", "SEK", "SGD", "USD", "ZAR",
)  # fmt: skip
_IN_PARENTHESES = re.compile(r"\(\s*\D?\s*[\d.,' ]+\s*\D?\s*\)")
_LAST_WORD = re.compile(r"\d\s*([^\W\d_]+)\s*$")
#: Largest number of distinct cells that are taken for marks of missing values.
_MOST_MARKS = 3


def find_remedy(cells: Sequence[str], text: TextFormat, uses_decimal: bool) -> str:
    """Return advice on reading these cells, as the end of an error message, or "" if no remedy is known.

    An option is proposed only if it turns all cells into numbers. If several equally simple options do so with
    different numbers, the message names each of them with its number.

    Parameters
    ----------
    cells : sequence of str
        Some cells of the column.
    text : TextFormat
        The format in which the table is read.
    uses_decimal : bool
        Whether other columns use the decimal sign of `text`, so that another decimal sign would misread them.
    """
    parser = CellParser(text)
    known = [cell for cell in cells if not parser.is_missing(cell)]
    marks = _marks_in(known)
    numbers = [cell for cell in known if cell.strip() not in marks]
    if numbers and _reads(text, numbers):
        return f"; if it means missing, pass {_missing_option(text, marks)}"
    formats = _formats_that_read(numbers, text)
    if formats and uses_decimal:
        same = [each for each in formats if each.decimal == text.decimal]
        if not same:
            return (
                f"; its decimal sign is {formats[0].decimal!r}, and other columns have {text.decimal!r}: "
                "write all with the same decimal sign"
            )
        formats = same
    if not formats:
        if any(_IN_PARENTHESES.fullmatch(cell.strip()) for cell in known):
            return "; write negative numbers with a minus, not in parentheses"
        return " (see --missing and --units)"
    fewest = min(_n_changes(each, text) for each in formats)
    by_values: dict[tuple[float, ...], TextFormat] = {}
    for each in formats:
        if _n_changes(each, text) == fewest:
            by_values.setdefault(tuple(CellParser(each).value(cell)[0] for cell in numbers), each)
    rest = f", and, if {marks[0]!r} means missing, {_missing_option(text, marks)}" if marks else ""
    if len(by_values) == 1:
        (only,) = by_values.values()
        return f"; pass {_options(only, text)}{rest}"
    at = next(i for i, values in enumerate(zip(*by_values, strict=True)) if len(set(values)) > 1)
    meanings = (f"{_options(each, text)} if {numbers[at]!r} means {v[at]:.10g}" for v, each in by_values.items())
    return f"; pass {', or '.join(meanings)}{rest}"


def are_nearly_numbers(cells: Sequence[str], at: int, text: TextFormat) -> bool:
    """Return whether cell number `at`, or every non-missing cell, is a number in some format other than `text`."""
    parser = CellParser(text)
    known = [cell for cell in cells if not parser.is_missing(cell)]
    return bool(_formats_that_read([cells[at]], text) or _formats_that_read(known, text))


def _marks_in(known: Sequence[str]) -> list[str]:
    """Return the distinct cells without letters and digits, which may stand for missing values; [] if they are many."""
    marks = [cell.strip() for cell in known if not any(map(str.isalnum, cell))]
    different = list(dict.fromkeys(marks))
    return different if len(different) <= _MOST_MARKS and len(marks) <= len(known) / 2 else []


def _missing_option(text: TextFormat, marks: Sequence[str]) -> str:
    """Return the command-line option that adds the cells `marks` to the missing values of the format `text`."""
    return f"--missing={_as_argument((*text.missing, *marks))}"


def _formats_that_read(known: Sequence[str], text: TextFormat) -> list[TextFormat]:
    """Return the formats, other than `text`, in which all cells in `known` are numbers of the same unit."""
    units = {text.units: None, tuple(dict.fromkeys((*text.units, *_units_in(known)))): None}
    formats = (
        text._replace(decimal=decimal, thousands=thousands, units=units)
        for decimal, thousands, units in itertools.product((".", ","), _THOUSANDS, units)
        if decimal != thousands and (text.thousands is None or thousands == text.thousands)
    )
    return [each for each in formats if each != text and known and _reads(each, known)]


def _reads(text: TextFormat, known: Sequence[str]) -> bool:
    """Return whether all cells in `known` are numbers of the same unit in the format `text`."""
    parser, units = CellParser(text), set()
    try:
        for cell in known:
            units.add(parser.value(cell)[1])
    except ValueError:
        return False
    return len(units) == 1


def _units_in(cells: Sequence[str]) -> list[str]:
    """Return percent and currency signs in the cells, and words that end several of the cells."""
    characters = set("".join(cells))
    signs = [c for c in sorted(characters) if c in _UNITS or unicodedata.category(c) == "Sc"]
    words = {word for cell in cells for word in re.findall("[A-Z]{3}", cell)}
    last = {match[1] if (match := _LAST_WORD.search(cell)) else "" for cell in cells}
    common = last - {""} if len(last) == 1 and len(cells) > 1 else set()
    return [*signs, *sorted(words.intersection(_CURRENCIES) | common)]


def _n_changes(other: TextFormat, text: TextFormat) -> int:
    return sum(a != b for a, b in zip(other, text, strict=True))


def _options(other: TextFormat, text: TextFormat) -> str:
    """Return the command-line options that turn the format `text` into the format `other`."""
    words = []
    if other.decimal != text.decimal:
        words.append("--decimal ," if other.decimal == "," else "no --decimal")
    if other.thousands != text.thousands:
        sign = other.thousands or ""
        words.append(f"--thousands {_SPOKEN.get(sign, sign)}")
    if other.units != text.units:
        words.append(f"--units {_as_argument(other.units)}")
    return " ".join(words)


def _as_argument(cells: Sequence[str]) -> str:
    """Return cells as one shell word: a line of CSV, quoted if necessary."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return shlex.quote(line.getvalue())
