"""Arrays in .npy files: mapped into memory, written block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from powerkern._input.batches import CELLS
from powerkern._input.tables.table import BadInput, Block, Choice, Layout, Table


def read_npy(path: Path, choose: Choice) -> Table:
    """All rows, as they lie in the file."""
    layout, matrix = _layout(open_npy(path), choose)
    return Table(layout, len(matrix), {}, Block(matrix, {}))


def stream_npy(path: Path, choose: Choice) -> tuple[Layout, Iterator[Block]]:
    """Blocks of rows."""
    layout, matrix = _layout(open_npy(path), choose)
    size = max(1, CELLS // matrix.shape[1])
    starts = range(0, len(matrix), size)
    return layout, (Block(matrix[start : start + size], {}, None, start) for start in starts)


def _layout(array: NDArray[Any], choose: Choice) -> tuple[Layout, NDArray[Any]]:
    matrix = array.reshape(len(array), -1)
    names = tuple(map(str, range(matrix.shape[1])))
    chosen = choose(names, False)
    if chosen is None or len(chosen) == len(names):
        return Layout(names, False, tuple(range(len(names))), is_vector=array.ndim == 1), matrix
    return Layout(names, False, tuple(chosen)), matrix[:, list(chosen)]


class NpyWriter:
    """An array that is written block by block; the header last, when the number of rows is known."""

    def __init__(self, file: IO[bytes], path: Path, layout: Layout) -> None:
        if layout.other_names:
            raise BadInput(
                f"cannot write {path}: .npy has no place for the untouched columns ({_some(layout.other_names)})"
            )
        self._file, self._layout, self._rows = file, layout, 0
        self._dtype: np.dtype[Any] = np.dtype(np.float64)

    def write(self, block: Block, result: NDArray[Any]) -> None:
        """Append rows."""
        if self._rows == 0:
            self._dtype = result.dtype
            self._write_header()
        self._rows += len(result)
        self._file.write(np.ascontiguousarray(result).data)

    def finish(self) -> None:
        """Write the header again: NumPy leaves room in it for the number of rows."""
        self._file.seek(0)
        self._write_header()

    def _write_header(self) -> None:
        shape = (self._rows,) if self._layout.is_vector else (self._rows, len(self._layout.positions))
        header = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, header)


def _some(names: Sequence[str]) -> str:
    """The first few of many names."""
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


# --- reading ------------------------------------------------------------------------------------------

#: Errors of NumPy on files that it cannot read.
_NPY_ERRORS = (ValueError, TypeError, SyntaxError, ArithmeticError, RecursionError, MemoryError, TokenError)


def open_npy(path: Path) -> NDArray[Any]:
    """The array of a file, mapped into memory."""
    try:
        with np.errstate(over="raise"):  # of the size that a header announces
            array: NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
    except _NPY_ERRORS as error:
        raise BadInput(f"cannot read {path}: it is not a .npy file of numbers ({error})") from error
    if array.dtype.kind not in "biuf":
        raise BadInput(f"{path} holds values of type {array.dtype}, not real numbers")
    if array.ndim not in (1, 2):
        raise BadInput(f"{path} holds a {array.ndim}-D array: rows and columns are needed")
    if array.size == 0:
        raise BadInput(f"{path} holds an array of shape {array.shape}: there is nothing in it")
    return array
