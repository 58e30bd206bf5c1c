"""Arrays in .npy files: mapped into memory for reading, written block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from powerkern._input.batches import CELLS
from powerkern._input.tables.identifiers import IdentifierEvidence, no_numbers, warn_about_rounding
from powerkern._input.tables.table import BadInput, Block, Choice, FileLayout, Table


def read_npy(path: Path, choose: Choice) -> Table:
    """Read the columns that `choose` selects; the array stays on disk and is mapped into memory."""
    array = open_npy(path)
    names, matrix = _columns(array)
    selection = choose(names, False)
    candidates, identifiers = selection.candidates(len(names)), {}
    if matrix.dtype.kind in "iu":
        for j in candidates:
            evidence = _gather_evidence(names[j], matrix[:, j])
            reason = None if selection.is_requested(j) else evidence.reason()
            if reason is not None:
                identifiers[names[j]] = reason
            else:
                warn_about_rounding(path.name, names[j], evidence)
    positions = [j for j in candidates if names[j] not in identifiers]
    if not positions:
        raise no_numbers(path.name, identifiers)
    layout = _layout(array, names, positions)
    block = Block(matrix if layout.is_whole else matrix[:, positions], {})
    return Table(layout, len(matrix), {}, block, identifiers)


def stream_npy(path: Path, choose: Choice) -> tuple[FileLayout, Iterator[Block]]:
    """Return the layout of a table and an iterator over its rows in blocks; columns not selected pass unchanged."""
    array = open_npy(path)
    names, matrix = _columns(array)
    positions = choose(names, False).candidates(len(names))
    layout = _layout(array, names, positions)
    for j in positions if matrix.dtype.kind in "iu" else ():
        warn_about_rounding(path.name, names[j], _gather_evidence(names[j], matrix[:, j]))
    return layout, _blocks(matrix, layout)


def _blocks(matrix: NDArray[Any], layout: FileLayout) -> Iterator[Block]:
    size = max(1, CELLS // matrix.shape[1])
    others = sorted(set(range(matrix.shape[1])).difference(layout.positions))
    is_whole = layout.is_whole
    for start in range(0, len(matrix), size):
        rows = matrix[start : start + size]
        numbers = rows if is_whole else rows[:, list(layout.positions)]
        yield Block(numbers, {j: rows[:, j].tolist() for j in others}, None, start)


def _columns(array: NDArray[Any]) -> tuple[tuple[str, ...], NDArray[Any]]:
    """Return the names of the columns, which are their positions as text, and the array as a matrix."""
    matrix = array.reshape(len(array), -1)
    return tuple(map(str, range(matrix.shape[1]))), matrix


def _layout(array: NDArray[Any], names: tuple[str, ...], positions: Sequence[int]) -> FileLayout:
    return FileLayout(names, False, tuple(positions), is_vector=array.ndim == 1)


def _gather_evidence(name: str, column: NDArray[Any]) -> IdentifierEvidence:
    """Return evidence on whether a column of integers holds identifiers."""
    evidence = IdentifierEvidence(name)
    for start in range(0, len(column), CELLS):
        evidence.add_values(column[start : start + CELLS], start)
    return evidence


class NpyWriter:
    """Writer of an array, block by block. The header is completed last, when the number of rows is known."""

    def __init__(self, file: IO[bytes], path: Path, layout: FileLayout) -> None:
        if layout.other_names:
            raise BadInput(
                f"cannot write {path}: .npy has no place for the untouched columns ({_some(layout.other_names)}); "
                "write .csv or .parquet"
            )
        self._file, self._layout, self._rows = file, layout, 0
        self._dtype: np.dtype[Any] = np.dtype(np.float64)

    def write(self, block: Block, result: NDArray[Any]) -> None:
        """Append the rows of a block, with `result` in place of the numbers that were read, in their order."""
        if self._rows == 0:
            self._dtype = result.dtype
            self._write_header()
        self._rows += len(result)
        in_place = result if self._layout.is_whole else result[:, np.argsort(self._layout.positions)]
        self._file.write(np.ascontiguousarray(in_place).data)

    def finish(self) -> None:
        """Rewrite the header with the final number of rows, for which NumPy leaves room."""
        self._file.seek(0)
        self._write_header()

    def _write_header(self) -> None:
        shape = (self._rows,) if self._layout.is_vector else (self._rows, len(self._layout.positions))
        header = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, header)


def _some(names: Sequence[str]) -> str:
    """Return the first few names of a list, for a message."""
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


# --- reading ------------------------------------------------------------------------------------------

#: Exceptions that NumPy raises for files that it cannot read.
_NPY_ERRORS = (ValueError, TypeError, SyntaxError, ArithmeticError, RecursionError, MemoryError, TokenError)


def open_npy(path: Path) -> NDArray[Any]:
    """Map the array of a file into memory."""
    try:
        with np.errstate(over="raise"):  # of the size that a header announces
            array: NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
    except _NPY_ERRORS as error:
        raise BadInput(f"cannot read {path}: it is not a .npy file of numbers ({error})") from error
    if array.dtype.kind not in "biuf":
        raise BadInput(f"{path} holds values of type {array.dtype}, not real numbers: convert them to float64")
    if array.ndim not in (1, 2):
        raise BadInput(f"{path} holds a {array.ndim}-D array: rows and columns are needed")
    if array.size == 0:
        raise BadInput(f"{path} holds an array of shape {array.shape}: it is empty")
    return array
