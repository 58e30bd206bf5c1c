"""Copy columns of a matrix to contiguous float64 vectors in scratch space, optionally shifted and scaled, and back."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._input.arrays import output_type
from powerkern._typing import FloatArray
from powerkern.kernels.likelihood.lockstep import LockstepWork, new_lockstep_work
from powerkern.kernels.likelihood.scratch import N_LONG, Work, new_work
from powerkern.kernels.transforms import gather as columnwise


class AffineView:
    """A lazy view of ``(values + shift)/divisor``, evaluated when columns are gathered.

    It can be sliced by rows and columns like a matrix.
    """

    def __init__(self, values: NDArray[Any], shift: FloatArray, divisor: FloatArray | None = None) -> None:
        self.values = values
        self.shift = shift
        self.divisor = divisor

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and the number of columns."""
        n, p = self.values.shape
        return n, p

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides of the underlying values."""
        return self.values.strides

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: Any) -> AffineView:
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        divisor = None if self.divisor is None else self.divisor[columns]
        return AffineView(self.values[rows, columns], self.shift[columns], divisor)


#: Passed to likelihood kernels instead of None if there are no weights.
NO_WEIGHTS: FloatArray = np.empty(0)
#: Up to this many values NumPy copies as fast as our kernel, so the kernel need not be compiled.
_FEW = 10_000

#: A matrix that fits can read.
Columns = NDArray[Any] | AffineView


def shift_and_scale(values: NDArray[Any], shift: FloatArray, divisor: FloatArray | None = None) -> Columns:
    """Return a view of ``(values + shift)/divisor``, with one shift and divisor per column.

    Return `values` itself if all shifts are 0 and all divisors 1.
    """
    if divisor is not None and not (divisor != 1.0).any():
        divisor = None
    return AffineView(values, shift, divisor) if shift.any() or divisor is not None else values


class BlockScratch(threading.local):
    """Scratch memory for a block of gathered columns, separate for each thread."""

    _memory: FloatArray = np.empty(0)
    _n_beside = 0

    def block(self, n_columns: int, n_rows: int) -> FloatArray:
        """Return a contiguous block of shape (n_columns, n_rows); the next call reuses its memory."""
        size, beside = n_columns * n_rows, self._n_beside
        if self._memory.size < beside + size:
            self._memory = np.empty(beside + size)
        return self._memory[beside : beside + size].reshape(n_columns, n_rows)


class FitScratch(BlockScratch):
    """Scratch for fits of columns of `n` values, separate for each thread: a block, and work arrays created on demand.

    The work arrays share one allocation with the block if the block is requested first. With several allocations,
    malloc would return some memory to the system, and fits of long columns would spend half their time on new pages.

    `functools.cached_property` is not used: Python 3.11 has one lock for all instances, and a child process forked
    while the lock is held would wait forever.
    """

    def __init__(self, n: int) -> None:
        self._n, self._n_beside = n, N_LONG * n
        self._work: Work | None = None
        self._lockstep: LockstepWork | None = None

    @property
    def work(self) -> Work:
        """Work arrays for fitting columns one by one."""
        if self._work is None:
            self.block(0, 0)
            self._work = new_work(self._n, self._memory[: self._n_beside])
        return self._work

    @property
    def lockstep(self) -> LockstepWork:
        """Work arrays for fitting columns in lockstep."""
        if self._lockstep is None:
            self._lockstep = new_lockstep_work(self._n)
        return self._lockstep


def is_native(values: NDArray[Any], dtype: type[np.floating[Any]] = np.float64) -> bool:
    """Return whether kernels can read a matrix in place: it has this dtype, in native byte order, and is aligned."""
    return values.dtype == dtype and values.dtype.isnative and values.flags.aligned


def _gather(part: NDArray[Any], block: FloatArray) -> None:
    """Set ``block = part.T``, converted to float64."""
    if is_native(part) and part.size > _FEW:
        columnwise.gather(part, block)
    elif is_native(part, np.float32) and part.size > _FEW and not is_column_major(part):
        columnwise.gather_widened(part, block)
    else:
        with np.errstate(over="ignore"):  # long doubles beyond float64 are infinite
            np.copyto(block, part.T, casting="unsafe")


def scatter(block: FloatArray, part: NDArray[Any]) -> None:
    """Set ``part = block.T``, rounded to the dtype of `part`."""
    if is_native(part):
        columnwise.scatter(block, part)
    else:
        with np.errstate(over="ignore"):
            np.copyto(part, block.T, casting="same_kind")


def gather_columns(part: Columns, scratch: BlockScratch) -> FloatArray:
    """Copy the columns of a part of a matrix to the rows of a scratch block, which the caller may overwrite."""
    block = scratch.block(part.shape[1], part.shape[0])
    if isinstance(part, AffineView):
        _gather(part.values, block)
        with np.errstate(over="ignore"):
            block += part.shift[:, np.newaxis]
            if part.divisor is not None:
                block /= part.divisor[:, np.newaxis]
    else:
        _gather(part, block)
    return block


def has_contiguous_columns(part: Columns) -> bool:
    """Return whether the columns of a part of a matrix are contiguous in memory."""
    return not isinstance(part, AffineView) and part.T.flags.c_contiguous


def contiguous_columns(values: Columns, group: slice, scratch: BlockScratch) -> FloatArray:
    """Return the columns of a group as contiguous float64 rows, copied only if necessary.

    The caller must not modify them.
    """
    part = values[:, group]
    # the type of entries demands writable arrays, although no entry writes to these columns
    if not isinstance(part, AffineView) and has_contiguous_columns(part) and is_native(part) and part.flags.writeable:
        return part.T
    return gather_columns(part, scratch)


def as_float64(part: Columns, scratch: BlockScratch) -> FloatArray:
    """Return a part of a matrix as native float64 with any strides, copied only if necessary.

    The caller must not modify it.
    """
    if not isinstance(part, AffineView) and is_native(part):
        return part
    return gather_columns(part, scratch).T


def copy_rows(part: NDArray[Any], scratch: BlockScratch) -> NDArray[Any]:
    """Copy a part of a matrix to contiguous rows in scratch space.

    float32 stays float32, everything else becomes float64.
    """
    n, p = part.shape
    block: NDArray[Any] = scratch.block(n, p)
    if output_type(part.dtype) is np.float32:
        block = block.reshape(-1).view(np.float32)[: n * p].reshape(n, p)
    if is_column_major(part) and is_native(part):
        columnwise.gather(part.T, block)
    else:
        with np.errstate(over="ignore"):
            np.copyto(block, part, casting="unsafe")
    return block


def write_rows(block: NDArray[Any], part: NDArray[Any]) -> None:
    """Set ``part = block``, rounded to the dtype of `part`; the rows of `block` are contiguous."""
    if is_column_major(part) and is_native(part):
        columnwise.scatter(block, part.T)
    else:
        with np.errstate(over="ignore"):
            np.copyto(part, block, casting="same_kind")


def is_column_major(part: NDArray[Any]) -> bool:
    """Return whether values of a column are closer together in memory than values of a row.

    Return False for a dtype other than float64 and float32.
    """
    return abs(part.strides[0]) < abs(part.strides[1]) and part.dtype in (np.float64, np.float32)
