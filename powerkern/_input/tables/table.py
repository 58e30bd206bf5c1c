"""Data structures for tables (columns, blocks of rows, text format), and error messages about files."""

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
    """Error about input that cannot be used; the message is one sentence for the user of the command line."""


class Selection(NamedTuple):
    """The columns of a table that are to be read as numbers, by position."""

    #: Positions of these columns; None: every numeric column that does not hold identifiers.
    positions: Sequence[int] | None = None
    #: Columns that are left out.
    excluded: Collection[int] = ()
    #: Columns to read in addition, whatever they contain: the weights of the rows.
    required: Sequence[int] = ()

    def candidates(self, n_columns: int) -> list[int]:
        """Return the positions of the columns that may be read, in a table of `n_columns` columns."""
        if self.positions is None:
            return [j for j in range(n_columns) if j not in self.excluded or j in self.required]
        return list(dict.fromkeys((*self.positions, *self.required)))

    def is_requested(self, position: int) -> bool:
        """Return whether the user named the column, so that it must hold numbers."""
        return self.positions is not None or position in self.required


#: Function that selects columns. Arguments: the names of all columns, and whether the file contains them.
Choice = Callable[[Sequence[str], bool], Selection]

#: Reason for leaving out a column of row numbers, or a first column without a name.
NAMES_ROWS = "names the rows"


class CensoredCells(NamedTuple):
    """Rules for reading cells such as ``<0.05`` and ``<LOD``: as detection limits of the value, or as an error."""

    #: The reason why limits are not read, as the end of an error message; "" if they are read.
    refusal: str = "; write numbers only"
    #: Names of the columns whose lower and upper limits are known, so that ``<LOD`` and ``>LOQ`` need no number.
    below: Collection[str] = ()
    above: Collection[str] = ()
    #: Whether a limit must be a number or known; if False, ``<LOD`` needs no number in any column.
    needs_number: bool = True


class TextFormat(NamedTuple):
    """The format of a text table; fields that are None are detected."""

    #: The delimiter of the cells; None: detected in the first lines.
    delimiter: str | None = None
    decimal: str = "."
    #: The sign between groups of digits; a space and an apostrophe also stand for their typographic variants.
    thousands: str | None = None
    #: Signs and words next to numbers, such as "%". All cells of a column must have the same unit, or none.
    units: tuple[str, ...] = ()
    #: Further cells that count as missing.
    missing: tuple[str, ...] = ()
    #: Prefix of lines to skip.
    comment: str | None = None
    #: The encoding of the file; None: given by the byte-order mark, or else UTF-8.
    encoding: str | None = None
    header: bool = True
    censored: CensoredCells = CensoredCells()

    def without_missing(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return numbers with NaN in place of the numbers that the format declares missing."""
        for cell in self.missing:
            with suppress(ValueError):  # a word
                numbers[numbers == float(cell)] = np.nan
        return numbers


class Block(NamedTuple):
    """Some consecutive rows of a table."""

    #: The numbers, (n, p); NaN where missing.
    matrix: NDArray[Any]
    #: The cells of the other columns by position, if the caller requested them.
    rest: Mapping[int, Sequence[object]]
    #: For text tables, the line of the file on which each row ends.
    lines: NDArray[np.int64] | None = None
    #: Number of the first row, in files without lines.
    start: int = 0
    #: (n, p): -1 where the value lies below the number, 1 where it lies above the number, else 0. None: no limits.
    marks: NDArray[np.int8] | None = None


def stack_blocks(blocks: Sequence[Block]) -> Block:
    """Concatenate blocks of rows; cells of columns that are not numbers are dropped."""
    lines = [block.lines for block in blocks if block.lines is not None]
    marks = None
    if any(block.marks is not None for block in blocks):
        parts = (np.zeros(block.matrix.shape, np.int8) if block.marks is None else block.marks for block in blocks)
        marks = np.concatenate(list(parts))
    matrix = np.concatenate([block.matrix for block in blocks])
    return Block(matrix, {}, np.concatenate(lines) if lines else None, marks=marks)


@dataclass(frozen=True)
class FileLayout:
    """The columns of a file: all names, the positions of the columns read as numbers, and details of the format."""

    #: Names of all columns; their positions as text where the file has no names.
    names: tuple[str, ...]
    #: False if `names` are just positions.
    named: bool
    #: Positions of the numeric columns in `names`.
    positions: tuple[int, ...]
    #: Metadata of a Parquet file, in which pandas stores its index.
    metadata: Mapping[bytes, bytes] | None = None
    #: True if the file holds a vector rather than a matrix.
    is_vector: bool = False
    #: The delimiter of a text table.
    delimiter: str = ","
    #: Position of the column of weights in `names`, if there is one.
    weights: int | None = None

    @property
    def is_whole(self) -> bool:
        """True if all columns are read as numbers, in their order in the file."""
        return self.positions == tuple(range(len(self.names)))

    @property
    def matrix_names(self) -> list[str]:
        """Names of the columns that are read as numbers."""
        return [self.names[position] for position in self.positions]

    @property
    def other_names(self) -> list[str]:
        """Names of the columns that are neither read as numbers nor weights."""
        in_matrix = {*self.positions, self.weights}
        return [name for position, name in enumerate(self.names) if position not in in_matrix]

    def without_weights(self, weights: str | None) -> FileLayout:
        """Return the layout without the column called `weights`."""
        if weights is None:
            return self
        at = self.positions[self.matrix_names.index(weights)]
        return replace(self, positions=tuple(other for other in self.positions if other != at), weights=at)

    def place(self, block: Block, j: int, i: int) -> str:
        """Return the place of row `i`, column `j` of a block, for messages; in text tables, the line of the file."""
        name = self.names[self.positions[j]]
        column = f"column {name!r}" if self.named else f"column {name}"
        return f"{column}, row {block.start + i}" if block.lines is None else f"{column}, line {block.lines[i]}"


@dataclass(frozen=True)
class Table:
    """The contents of a file: its layout, its rows if they were kept, and notes on columns that were left out."""

    layout: FileLayout
    n_rows: int
    #: Reasons why columns that look numeric were left out, by name: line and cell that is not a number, or NAMES_ROWS.
    odd: Mapping[str, str]
    #: All rows, if the caller requested them.
    block: Block | None = None
    #: Reasons why columns were taken for identifiers, by name.
    identifiers: Mapping[str, str] = field(default_factory=dict)
    #: Numbers of cells such as ``<0.05`` and of cells such as ``>100``, by name of the column.
    n_marked: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def rows(self) -> Block:
        """The values of all rows. Only available after reading with ``keep=True``."""
        assert self.block is not None
        return self.block


def check_distinct(names: Sequence[str], label: str) -> None:
    """Raise if two columns have the same name; `label` is the name of the file."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise BadInput(f"{label} has more than one column named {name!r}: rename one of them")
        seen.add(name)


# --- errors of files ----------------------------------------------------------------------------------


@contextmanager
def one_line_file_errors(verb: str, path: Path | str) -> Iterator[None]:
    """Turn errors about damaged, missing or unreadable files into one-sentence messages.

    Parameters
    ----------
    verb : str
        The verb of the message, such as "read" or "write".
    path : Path or str
        The file.
    """
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
    """Raise, before any work is done, if the folder of a file does not exist or cannot be written to."""
    if path is None:
        return
    if path.is_dir():
        raise BadInput(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise BadInput(f"cannot write {path}: the folder {path.parent} does not exist")
