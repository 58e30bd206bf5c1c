"""Tables of results as text and as HTML: short enough for a terminal, narrow enough for a cell of a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Entries of a table by their names, each an array with a row for each column.
Entries = Mapping[str, "NDArray[Any]"]

#: Columns, or groups, that a fit shows of itself.
SHOWN = 8
#: Characters of a label that are shown: two labels and five numbers fit into a line of 120.
_LABEL = 40
#: Numbers of an array that a result shows in full; of more numbers, the first and last three.
_NUMBERS = 16


def label_cells(labels: Iterable[Any]) -> NDArray[np.str_]:
    """Return labels as cells of a table: text on one line, the middle of long labels replaced by an ellipsis."""
    return np.array([_shorten(" ".join(str(label).split())) for label in labels], dtype=np.str_)


def _shorten(text: str) -> str:
    tail = _LABEL // 3
    return text if len(text) <= _LABEL else f"{text[: _LABEL - tail - 3]}...{text[-tail:]}"


def format_entry(entry: NDArray[Any]) -> list[str]:
    """Return the cells of an entry as text on one line each: numbers in five digits, empty for NaN."""
    if entry.dtype.kind != "f":
        return [" ".join(str(value).splitlines()) for value in entry.tolist()]
    return ["" if value != value else f"{value + 0.0:.5g}" for value in entry.tolist()]


def format_table(entries: Entries) -> str:
    """Format entries below their names, words to the left and numbers to the right."""
    columns = []
    for name, entry in entries.items():
        cells = [name, *format_entry(entry)]
        width = max(map(len, cells))
        columns.append([cell.ljust(width) if entry.dtype.kind == "U" else cell.rjust(width) for cell in cells])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def html_table(entries: Iterable[tuple[str, NDArray[Any]]]) -> str:
    """Return entries as an HTML table, with their names above; a table that is too wide for its cell scrolls."""
    names, columns = zip(*entries, strict=True)
    rows = [("th", names), *(("td", row) for row in zip(*map(format_entry, columns), strict=True))]
    lines = (f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in row)}</tr>" for tag, row in rows)
    return f'<div style="overflow-x: auto; overflow-wrap: normal"><table>{"".join(lines)}</table></div>'


def html_page(title: str, tables: Iterable[Iterable[tuple[str, NDArray[Any]]]] = (), notes: Iterable[str] = ()) -> str:
    """Return a title, tables and notes as HTML, for notebooks."""
    parts = [f"<p>{escape(title)}</p>", *map(html_table, tables), *(f"<p>{escape(note)}</p>" for note in notes)]
    return f'<div style="overflow-wrap: anywhere">{"".join(parts)}</div>'


def short_repr(result: tuple[Any, ...]) -> str:
    """Return the representation of a named tuple of arrays, with the first and last numbers of long arrays."""
    with np.printoptions(threshold=_NUMBERS):
        fields = zip(type(result)._fields, result, strict=True)  # type: ignore[attr-defined]
        return f"{type(result).__name__}({', '.join(f'{name}={value!r}' for name, value in fields)})"
