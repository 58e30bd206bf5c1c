"""The columns of a table, blocks of its rows, and error messages about files."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class BadInput(Exception):
    """Input that cannot be used; the message is one sentence that says why."""


class Selection(NamedTuple):
    """The columns of a table to read as numbers, by position."""

    #: None: every numeric column that does not hold identifiers.
    positions: Sequence[int] | None = None
    #: Columns that are left out.
    excluded: Collection[int] = ()
    #: Columns that are read besides, whatever they hold: the weights of the rows.
    required: Sequence[int] = ()

    def candidates(self, n_columns: int) -> list[int]:
        """Return the positions of the columns to consider in a table of `n_columns` columns."""
        if self.positions is None:
            return [j for j in range(n_columns) if j not in self.excluded or j in self.required]
        return list(dict.fromkeys((*self.positions, *self.required)))

    def is_requested(self, position: int) -> bool:
        """Return whether the user selected a column by name, so that it must hold numbers."""
        return self.positions is not None or position in self.required


#: Picks columns: (names, are they real names) -> their selection.
Choice = Callable[[Sequence[str], bool], Selection]

#: Why a column that counts, or that has no name, is left out.
NAMES_ROWS = "names the rows"


class CensoredCells(NamedTuple):
    """How cells such as ``<0.05`` and ``<LOD`` are read: as limits that the value lies below or above, or not."""

    #: Why they are not read; "" if they are.
    refusal: str = "; write numbers only"
    #: Names of the columns whose lower and upper limits are known, so that ``<LOD`` and ``>LOQ`` need no number.
    below: Collection[str] = ()
    above: Collection[str] = ()
    #: False: ``<LOD`` needs no number in any column.
    needs_number: bool = True


class TextFormat(NamedTuple):
    """The format of a text table; an entry is None if it is to be detected."""

    #: None: found in the first lines.
    delimiter: str | None = None
    decimal: str = "."
    #: The sign between groups of digits; a space and an apostrophe stand for their typographic relatives, too.
    thousands: str | None = None
    #: Signs and words beside numbers, such as "%": all cells of a column have the same one, or none.
    units: tuple[str, ...] = ()
    #: Further cells that count as missing.
    missing: tuple[str, ...] = ()
    #: How lines begin that are skipped.
    comment: str | None = None
    #: None: by the byte-order mark, or else UTF-8.
    encoding: str | None = None
    header: bool = True
    censored: CensoredCells = CensoredCells()

    def without_missing(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return numbers with NaN in place of the values that mean "missing"."""
        for cell in self.missing:
            with suppress(ValueError):  # a word
                numbers[numbers == float(cell)] = np.nan
        return numbers


class Block(NamedTuple):
    """Some rows of a table."""

    #: (n, p) numbers, missing ones NaN.
    matrix: NDArray[Any]
    #: The cells of the other columns by position, if the caller requested them.
    rest: Mapping[int, Sequence[object]]
    #: The line of the file that each row of a text table ends on.
    lines: NDArray[np.int64] | None = None
    #: The first row, where lines are not counted.
    start: int = 0
    #: (n, p) -1 where the number is a limit that the value lies below, 1 where it lies above, else 0; None: no limits.
    marks: NDArray[np.int8] | None = None


def stack_blocks(blocks: Sequence[Block]) -> Block:
    """Return one block with the rows of all blocks, without the cells of other columns."""
    lines = [block.lines for block in blocks if block.lines is not None]
    marks = None
    if any(block.marks is not None for block in blocks):
        parts = (np.zeros(block.matrix.shape, np.int8) if block.marks is None else block.marks for block in blocks)
        marks = np.concatenate(list(parts))
    matrix = np.concatenate([block.matrix for block in blocks])
    return Block(matrix, {}, np.concatenate(lines) if lines else None, marks=marks)


@dataclass(frozen=True)
class FileLayout:
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
    #: The delimiter of a text table.
    delimiter: str = ","
    #: Where the weights of the rows stand in `names`, if they are a column.
    weights: int | None = None

    @property
    def matrix_names(self) -> list[str]:
        """Names of the matrix's columns."""
        return [self.names[position] for position in self.positions]

    @property
    def other_names(self) -> list[str]:
        """Names of the columns that are neither in the matrix nor weights."""
        in_matrix = {*self.positions, self.weights}
        return [name for position, name in enumerate(self.names) if position not in in_matrix]

    def less(self, weights: str | None) -> FileLayout:
        """Return the layout without the column that holds weights."""
        if weights is None:
            return self
        at = self.positions[self.matrix_names.index(weights)]
        return replace(self, positions=tuple(other for other in self.positions if other != at), weights=at)

    def place(self, block: Block, j: int, i: int) -> str:
        """Return the location of row `i`, column `j` of a block for messages; text tables count lines of the file."""
        name = self.names[self.positions[j]]
        column = f"column {name!r}" if self.named else f"column {name}"
        return f"{column}, row {block.start + i}" if block.lines is None else f"{column}, line {block.lines[i]}"


@dataclass(frozen=True)
class Table:
    """The contents of a file."""

    layout: FileLayout
    n_rows: int
    #: Why columns that look like numbers are left out, by name: the line and the cell that is not one, or that they
    #: number the rows.
    odd: Mapping[str, str]
    #: All rows, if the caller requested them.
    block: Block | None = None
    #: Why columns count as identifiers, by name.
    identifiers: Mapping[str, str] = field(default_factory=dict)
    #: How many cells lie below, and how many above, a limit that the cell states, by name of the column.
    n_marked: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def rows(self) -> Block:
        """The values of all rows; only available after reading with ``keep=True``."""
        assert self.block is not None
        return self.block


def check_distinct(names: Sequence[str], label: str) -> None:
    """Raise if two columns have the same name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise BadInput(f"{label} has more than one column named {name!r}: rename one of them")
        seen.add(name)


# --- errors of files ----------------------------------------------------------------------------------


@contextmanager
def one_line_file_errors(verb: str, path: Path | str) -> Iterator[None]:
    """Turn errors about damaged, missing or unreadable files into one-sentence messages."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise BadInput(
            f"cannot {verb} {path}: it is not {error.encoding.upper()} text (--encoding latin-1, say)"
        ) from error
    except UnicodeError as error:
        raise BadInput(f"cannot {verb} {path}: {error}") from error
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        raise BadInput(f"cannot {verb} {path}: the file is damaged ({error})") from error
    except OSError as error:
        raise BadInput(f"cannot {verb} {path}: {error.strerror or error}") from error


def check_folder(path: Path | None) -> None:
    """Raise now, before any work is done, if a file could not be written."""
    if path is None:
        return
    if path.is_dir():
        raise BadInput(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise BadInput(f"cannot write {path}: the folder {path.parent} does not exist")
