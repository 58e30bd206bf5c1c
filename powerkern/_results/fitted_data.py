"""The data that a fit remembers: a copy of small data, or a reference and fingerprints that detect changes."""

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

#: Data of at most this size are copied, so that later results are right even if the original changes. Copying 128 KB
#: takes about 6 of the 170 us of the fit, as long as computing the fingerprints. Larger copies cost memory and page
#: faults.
COPIED_BYTES = 131_072

_CHANGED = "changed after the fit, which does not copy large data"


class FittedData:
    """The values and weights from which a fit was made, for all or some of its columns.

    Small data are copied. For larger data, the object keeps a reference and fingerprints of the columns. `checked`
    compares the fingerprints with the present data. For pandas, the object also keeps a shallow copy of the data frame.
    With copy-on-write, later writes by the user then go to other memory.

    Attributes
    ----------
    values : (n, p) ndarray
        The data.
    weight : (n,) ndarray or None
        Weights of the rows; None: all one.
    ends : (n, p) ndarray or None
        The other ends of the intervals of censored cells, see `Matrix`; None if no cell is censored.
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
        """Make the data of a new fit from `matrix`; `sources` are the user's objects that it was read from.

        Call `take_fingerprints` afterwards.
        """
        values, weight = matrix.values, matrix.weight
        if values.nbytes + (0 if weight is None else weight.nbytes) <= COPIED_BYTES:
            return cls(np.array(values), None if weight is None else np.array(weight), matrix.ends)
        data = cls(values, weight, matrix.ends)
        data._is_shared = True
        if not (
            values.flags.writeable and (weight is None or weight.flags.writeable)
        ):  # pandas returns its memory as read-only arrays
            data._frames = tuple(_shallow_copy(each) for each in sources)
        return data

    def take_fingerprints(self, n_threads: int) -> FittedData:
        """Compute the fingerprints of the columns unless the data were copied; return this object."""
        if self._is_shared:
            self._prints = fingerprint_columns(self.values, n_threads)
            self._weight_print = _fingerprint_weights(self.weight)
        return self

    @property
    def is_copy(self) -> bool:
        """True if values and weights were copied."""
        return not self._is_shared

    def without_values(self) -> FittedData:
        """Return a copy with fingerprints and weights but no values; `with_values` adds values again."""
        return self.with_values(np.empty((0, self.values.shape[1])))

    def with_values(self, values: NDArray[Any]) -> FittedData:
        """Return a copy with these values, (n, p), which `checked` will compare with the fingerprints."""
        other = copy.copy(self)
        other.values, other._frames = values, ()
        return other

    def part(self, columns: NDArray[np.intp]) -> FittedData:
        """Return the data of the columns at these positions."""
        part = copy.copy(self)
        part._columns = columns if self._columns is None else self._columns[columns]
        part._prints = None if self._prints is None else self._prints[columns]
        return part

    def grouped(self, n_groups: int) -> GroupedData:
        """Return the data for a fit of groups, with room for the fingerprints of `n_groups` groups."""
        return GroupedData(self.values, self.weight, n_groups if self._is_shared else 0, self._frames, self.ends)

    def checked(
        self,
        names: list[str] | None,
        n_threads: int | None = None,
        *,
        what: str = "X",
        remedy: str = "pass the original data as X, with their weights",
    ) -> tuple[NDArray[Any], Weights]:
        """Return values and weights after checking that they are unchanged since the fit.

        Parameters
        ----------
        names : list of str or None
            Names of the columns, for the message.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.
        what : str
            Name of the argument that held the values, for the message.
        remedy : str
            Advice at the end of the message.

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
        """Return the second end of each censored cell's interval, (n, p); `checked` returns the first end."""
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
        """Make the data of one group of rows from copies of its rows and from fingerprints taken at the fit.

        Parameters
        ----------
        values : (n, p) ndarray
            The rows.
        weight : (n,) ndarray
            Weights of the rows; None: all one.
        prints : (p,) ndarray of int64
            Fingerprints of the columns.
        weight_print : int
            Fingerprint of the weights; 0 if there are none.
        ends : (n, p) ndarray, optional
            The other ends of the intervals of censored cells, see `Matrix.ends`.
        """
        data = cls(values, weight, ends)
        data._prints, data._weight_print = prints, weight_print
        return data


class GroupedData:
    """The data of all groups of a fit, with fingerprints by group and column unless the data were copied.

    Parameters
    ----------
    values : (n, p) ndarray
        The data of all groups.
    weight : (n,) ndarray
        Weights of the rows; None: all one.
    n_recorded : int
        Number of groups whose fingerprints will be recorded; 0 if the data were copied.
    frames : tuple
        Shallow copies of the user's data frames and series, which keep the memory of the data alive.
    ends : (n, p) ndarray, optional
        The other ends of the intervals of censored cells, see `Matrix.ends`.
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
        """Record the fingerprints of a batch of groups.

        `groups` holds the codes of the groups and `lengths` their numbers of rows. Each row of `block` is one column of
        one group, padded at the end; the columns of a group are adjacent.
        """
        if self._prints.size:
            p = self._prints.shape[1]
            prints = np.zeros(len(block), dtype=np.int64)
            add_prints(block, 0, prints, np.repeat(lengths, p))
            self._prints[groups] = prints.reshape(-1, p)

    def record_group(self, group: int, part: Matrix) -> None:
        """Record the fingerprints of the columns and weights of the group with code `group`, whose rows are `part`."""
        if self._prints.size:
            self._prints[group] = fingerprint_columns(part.values, 1)
            self._weight_prints[group] = _fingerprint_weights(part.weight)

    def group(self, group: int, rows: IntArray) -> FittedData:
        """Return a copy of the data of one group, with the fingerprints that were recorded for the group.

        `FittedData.checked` verifies that the copy has these fingerprints.

        Parameters
        ----------
        group : int
            Code of the group.
        rows : ndarray of int
            Positions of the rows of the group.
        """
        values, weight = self.values[rows], None if self.weight is None else self.weight[rows]
        ends = None if self._ends is None else self._ends[rows]
        if not self._prints.size:
            return FittedData(values, weight, ends)
        return FittedData.of_group(values, weight, self._prints[group], int(self._weight_prints[group]), ends)


def _fingerprint_weights(weight: Weights) -> int:
    """Return the fingerprint of the weights; 0 if there are none."""
    return 0 if weight is None else fingerprint_vector(weight)


def _shallow_copy(X: Any) -> Any:
    """Return a copy of a pandas data frame or series that shares its memory; None if `X` is anything else."""
    return X.copy(deep=False) if library(X) == "pandas" and hasattr(X, "index") else None
