"""The data that a fit remembers: a copy of small data, or a reference and fingerprints that show changes."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.fingerprints import add_prints, fingerprint_columns, fingerprint_vector
from powerkern._engine.threads import thread_count
from powerkern._input.arrays import Matrix, column_labels
from powerkern._input.foreign import library
from powerkern._typing import FloatArray, IntArray, Weights

#: Data of at most this size are copied, which takes some 6 us of the 170 us of a fit of 128 KB, as fingerprints do,
#: and later results are right whatever happens to the original. Larger copies cost memory and new pages.
COPIED_BYTES = 131_072

_CHANGED = "changed after the fit, which does not copy large data"


class FittedData:
    """The values and weights from which a fit was made, for all columns or some of them.

    Small data are copied. For larger data, a reference is kept with fingerprints of the columns, which `checked`
    compares with the present data. A shallow copy of a data frame of pandas is kept, too: with copy-on-write, later
    writes of the user go to other memory.

    Attributes
    ----------
    values, weight, ends : ndarray
        The data; weights are None if there are none, and `ends`, see `Matrix`, if every cell is a number.
    """

    def __init__(self, values: NDArray[Any], weight: Weights, ends: FloatArray | None = None) -> None:
        self.values, self.weight, self.ends = values, weight, ends
        self._columns: NDArray[np.intp] | None = None
        self._prints: IntArray | None = None
        self._weight_print = 0
        self._is_shared = False
        self._frames: tuple[Any, ...] = ()

    @classmethod
    def remember(cls, matrix: Matrix, *sources: object) -> FittedData:
        """Make the data of a new fit from `matrix`, which was read from the `sources`.

        `take_fingerprints` completes them.
        """
        values, weight = matrix.values, matrix.weight
        if values.nbytes + (0 if weight is None else weight.nbytes) <= COPIED_BYTES:
            return cls(np.array(values), None if weight is None else np.array(weight), matrix.ends)
        data = cls(values, weight, matrix.ends)
        data._is_shared = True
        if not (
            values.flags.writeable and (weight is None or weight.flags.writeable)
        ):  # pandas gives its memory away read-only
            data._frames = tuple(_shallow_copy(each) for each in sources)
        return data

    def take_fingerprints(self, n_threads: int) -> FittedData:
        """Take the fingerprints of data that were not copied, and return the data."""
        if self._is_shared:
            self._prints = fingerprint_columns(self.values, n_threads)
            self._weight_print = _fingerprint_weights(self.weight)
        return self

    @property
    def is_copy(self) -> bool:
        """True if values and weights were copied."""
        return not self._is_shared

    def without_values(self) -> FittedData:
        """Return the data without values: only fingerprints and weights; `with_values` adds values again."""
        return self.with_values(np.empty((0, self.values.shape[1])))

    def with_values(self, values: NDArray[Any]) -> FittedData:
        """Return data with these values, which `checked` compares with the fingerprints."""
        other = copy.copy(self)
        other.values, other._frames = values, ()
        return other

    def part(self, columns: NDArray[np.intp]) -> FittedData:
        """Return the data of some of the columns."""
        part = copy.copy(self)
        part._columns = columns if self._columns is None else self._columns[columns]
        part._prints = None if self._prints is None else self._prints[columns]
        return part

    def grouped(self, n_groups: int) -> GroupedData:
        """Return the data for a fit of groups; the fingerprints of the groups must still be recorded."""
        return GroupedData(self.values, self.weight, n_groups if self._is_shared else 0, self._frames, self.ends)

    def checked(
        self,
        names: list[str] | None,
        n_threads: int | None = None,
        *,
        what: str = "X",
        remedy: str = "pass the original data as X, with their weights",
    ) -> tuple[NDArray[Any], Weights]:
        """Return values and weights as they were fitted.

        Parameters
        ----------
        names : list of str or None
            Names of the columns, for the message.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.
        what, remedy : str
            The argument that held the values, and the advice at the end of the message.

        Raises
        ------
        ValueError
            Values or weights were changed after the fit.
        """
        values = self.values if self._columns is None else self.values[:, self._columns]
        if self._prints is not None:
            threads = thread_count(n_threads, values.size)
            changed = np.flatnonzero(fingerprint_columns(values, threads) != self._prints)
            if changed.size:
                raise ValueError(f"{what}, {column_labels(changed, names)}: {_CHANGED}; {remedy}")
            if _fingerprint_weights(self.weight) != self._weight_print:
                raise ValueError(f"sample_weight: {_CHANGED}; {remedy}")
        return values, self.weight

    def read_unchanged_ends(self) -> FloatArray:
        """Return the second end of the interval of each cell; `checked` returns the first."""
        assert self.ends is not None
        return self.ends if self._columns is None else self.ends[:, self._columns]

    @classmethod
    def of_group(
        cls,
        values: NDArray[Any],
        weight: Weights,
        prints: IntArray,
        weight_print: int,
        ends: FloatArray | None = None,
    ) -> FittedData:
        """Return the data of one group of rows, with the fingerprints that they should have.

        Parameters
        ----------
        values : (n, p) ndarray
            The rows.
        weight : (n,) ndarray
            Their weights; None: all one.
        prints : (p,) ndarray of int64
            Fingerprints of the columns.
        weight_print : int
            Fingerprint of the weights; 0 if there are none.
        ends : (n, p) ndarray, optional
            The other ends of the intervals of the cells, see `Matrix.ends`.
        """
        data = cls(values, weight, ends)
        data._prints, data._weight_print = prints, weight_print
        return data


class GroupedData:
    """The values and weights of all groups; fingerprints of each column of each group unless the data were copied.

    Parameters
    ----------
    values : (n, p) ndarray
        The data of all groups.
    weight : (n,) ndarray
        One weight a row; None: all one.
    n_recorded : int
        Number of groups whose fingerprints will be recorded; 0 if the data were copied.
    frames : tuple
        The data frames and series of the user, which keep the data alive.
    ends : (n, p) ndarray, optional
        The other ends of the intervals of the cells, see `Matrix.ends`.
    """

    def __init__(
        self,
        values: NDArray[Any],
        weight: Weights,
        n_recorded: int,
        frames: tuple[Any, ...],
        ends: FloatArray | None = None,
    ) -> None:
        self.values, self.weight, self._frames, self._ends = values, weight, frames, ends
        self._prints = np.zeros((n_recorded, values.shape[1]), dtype=np.int64)
        self._weight_prints = np.zeros(n_recorded, dtype=np.int64)

    def record_batch(self, groups: IntArray, block: FloatArray, lengths: IntArray) -> None:
        """Take fingerprints of groups whose columns are the rows of a block, group by group."""
        if self._prints.size:
            p = self._prints.shape[1]
            prints = np.zeros(len(block), dtype=np.int64)
            add_prints(block, 0, prints, np.repeat(lengths, p))
            self._prints[groups] = prints.reshape(-1, p)

    def record_group(self, group: int, part: Matrix) -> None:
        """Take fingerprints of the columns of one group, and of its weights."""
        if self._prints.size:
            self._prints[group] = fingerprint_columns(part.values, 1)
            self._weight_prints[group] = _fingerprint_weights(part.weight)

    def group(self, group: int, rows: IntArray) -> FittedData:
        """Return a copy of the rows of a group; when the copy is used, it is compared with the fingerprints."""
        values, weight = self.values[rows], None if self.weight is None else self.weight[rows]
        ends = None if self._ends is None else self._ends[rows]
        if not self._prints.size:
            return FittedData(values, weight, ends)
        return FittedData.of_group(values, weight, self._prints[group], int(self._weight_prints[group]), ends)


def _fingerprint_weights(weight: Weights) -> int:
    """Return the fingerprint of the weights; 0 if there are none."""
    return 0 if weight is None else fingerprint_vector(weight)


def _shallow_copy(X: Any) -> Any:
    """Return a data frame or series of pandas that shares the memory of `X`; None if `X` is anything else."""
    return X.copy(deep=False) if library(X) == "pandas" and hasattr(X, "index") else None
