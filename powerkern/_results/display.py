"""Format tables of results as text and as HTML, short enough for a terminal and narrow enough for a notebook cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Columns of a printed table: name of each entry, and an array with one value per fitted column.
Entries = Mapping[str, "NDArray[Any]"]

#: Number of columns, or groups, in the representation of a fit.
SHOWN = 8
#: Length to which labels are shortened: two labels and five numbers fit on a line of 120 characters.
_LABEL = 40
#: Longest array that a representation shows in full; of longer ones it shows the first and last three numbers.
_NUMBERS = 16


def label_cells(labels: Iterable[Any]) -> NDArray[np.str_]:
    """Convert labels to one-line text for table cells; replace the middle of long labels by an ellipsis."""
    return np.array([_shorten(" ".join(str(label).split())) for label in labels], dtype=np.str_)


def _shorten(text: str) -> str:
    tail = _LABEL // 3
    return text if len(text) <= _LABEL else f"{text[: _LABEL - tail - 3]}...{text[-tail:]}"


def format_entry(entry: NDArray[Any]) -> list[str]:
    """Convert the values of an entry to one-line text: floats with five significant digits, NaN as empty text."""
    if entry.dtype.kind != "f":
        return [" ".join(str(value).splitlines()) for value in entry.tolist()]
    return ["" if value != value else f"{value + 0.0:.5g}" for value in entry.tolist()]


def format_table(entries: Entries) -> str:
    """Format entries as a text table with their names as header; words are left-aligned, numbers right-aligned."""
    columns = []
    for name, entry in entries.items():
        cells = [name, *format_entry(entry)]
        width = max(map(len, cells))
        columns.append([cell.ljust(width) if entry.dtype.kind == "U" else cell.rjust(width) for cell in cells])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def html_table(entries: Iterable[tuple[str, NDArray[Any]]]) -> str:
    """Format named entries as an HTML table with a header; a table wider than its notebook cell scrolls."""
    names, columns = zip(*entries, strict=True)
    rows = [("th", names), *(("td", row) for row in zip(*map(format_entry, columns), strict=True))]
    lines = (f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in row)}</tr>" for tag, row in rows)
    return f'<div style="overflow-x: auto; overflow-wrap: normal"><table>{"".join(lines)}</table></div>'


def html_page(title: str, tables: Iterable[Iterable[tuple[str, NDArray[Any]]]] = (), notes: Iterable[str] = ()) -> str:
    """Combine a title, tables of named entries, and notes into one HTML fragment for notebooks."""
    parts = [f"<p>{escape(title)}</p>", *map(html_table, tables), *(f"<p>{escape(note)}</p>" for note in notes)]
    return f'<div style="overflow-wrap: anywhere">{"".join(parts)}</div>'


def short_repr(result: tuple[Any, ...]) -> str:
    """Return the representation of a named tuple of arrays; long arrays show their first and last three numbers."""
    with np.printoptions(threshold=_NUMBERS):
        fields = zip(type(result)._fields, result, strict=True)  # type: ignore[attr-defined]
        return f"{type(result).__name__}({', '.join(f'{name}={value!r}' for name, value in fields)})"
