"""What a table is: which columns are numbers, blocks of its rows, all of its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._input.tables.errors import BadInput

#: Picks columns by position: (names, are they real names) -> positions, or None for every numeric column.
Choice = Callable[[Sequence[str], bool], Sequence[int] | None]

#: Why a column that counts, or that has no name, is left out.
NAMES_ROWS = "names the rows"


class TextFormat(NamedTuple):
    """How text tables are written, where the user says so."""

    #: None: found in the first lines.
    delimiter: str | None = None
    decimal: str = "."
    #: Cells that are missing, beside those that always are.
    missing: tuple[str, ...] = ()
    #: How lines begin that are skipped.
    comment: str | None = None
    #: None: by the byte-order mark, or else UTF-8.
    encoding: str | None = None
    header: bool = True

    def missing_numbers(self) -> list[float]:
        """Those missing cells that are numbers: they are missing however they are written."""
        return [number for number in map(_number, self.missing) if number is not None]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


class Block(NamedTuple):
    """Some rows of a table."""

    #: (n, p) numbers, missing ones NaN.
    matrix: NDArray[Any]
    #: The cells of the other columns by position, where they were asked for.
    rest: Mapping[int, Sequence[object]]
    #: The line of the file that each row of a text table ends on.
    lines: NDArray[np.int64] | None = None
    #: The first row.
    start: int = 0


@dataclass(frozen=True)
class Layout:
    """The columns of a file."""

    #: Names of all columns; their positions as text where the file has no names.
    names: tuple[str, ...]
    #: False when `names` are mere positions.
    named: bool
    #: Where the columns of numbers stand in `names`.
    positions: tuple[int, ...]
    #: Parquet's own notes (pandas keeps its index there).
    metadata: Mapping[bytes, bytes] | None = None
    #: True when the file holds a vector rather than a matrix.
    is_vector: bool = False
    #: What separates the cells of a text table.
    delimiter: str = ","
    #: Where the weights of the rows stand in `names`, if they are a column.
    weights: int | None = None

    @property
    def matrix_names(self) -> list[str]:
        """Names of the matrix's columns."""
        return [self.names[position] for position in self.positions]

    @property
    def other_names(self) -> list[str]:
        """Names of the columns that are not in the matrix, and are no weights."""
        in_matrix = {*self.positions, self.weights}
        return [name for position, name in enumerate(self.names) if position not in in_matrix]

    def less(self, weights: str | None) -> Layout:
        """The same, where a column of the matrix holds weights instead."""
        if weights is None:
            return self
        at = self.positions[self.matrix_names.index(weights)]
        return replace(self, positions=tuple(other for other in self.positions if other != at), weights=at)

    def place(self, block: Block, j: int, i: int) -> str:
        """What messages call row i of a block's column j: rows of text go by the line of the file."""
        name = self.names[self.positions[j]]
        column = f"column {name!r}" if self.named else f"column {name}"
        return f"{column}, row {block.start + i}" if block.lines is None else f"{column}, line {block.lines[i]}"


@dataclass(frozen=True)
class Survey:
    """What a file holds, without its numbers."""

    layout: Layout
    n_rows: int
    #: Why columns are left out that look like numbers, by name: the line and the cell that is none, or that they count.
    odd: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """All rows of a file."""

    layout: Layout
    block: Block
    #: Why columns are left out that look like numbers, by name: the line and the cell that is none, or that they count.
    odd: Mapping[str, str] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.block.matrix)

    @property
    def matrix(self) -> NDArray[Any]:
        """(n, p) numbers, missing ones NaN."""
        return self.block.matrix


def check_distinct(names: Sequence[str], label: str) -> None:
    """Raise if two columns have the same name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise BadInput(f"{label} has more than one column named {name!r}")
        seen.add(name)
