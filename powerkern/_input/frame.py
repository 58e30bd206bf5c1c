"""`Frame`: the interface to data frames and series of any library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from powerkern._input.columns import ColumnType, is_number


class Frame(ABC):
    """A data frame or series; each subclass wraps the objects of one library.

    Attributes
    ----------
    native : data frame or series
        The object itself.
    is_series : bool
        Whether `native` is a series: one column without a second dimension.
    names : list or None
        Labels of the columns; None for a series without a name.
    types : list of ColumnType
        Types of the columns.
    """

    native: Any
    is_series: bool
    names: list[Any] | None
    types: list[ColumnType]

    @property
    def plain(self) -> Any:
        """The data as an object of their own library, unwrapped from narwhals and from Arrow batches and streams."""
        return self.native

    @abstractmethod
    def to_array(self) -> NDArray[Any] | None:
        """Return all values as one array, without a copy if possible; None if columns must be converted one by one."""

    @abstractmethod
    def column(self, j: int, dtype: DTypeLike) -> NDArray[Any]:
        """Return column `j` as floats of type `dtype`, with NaN for null entries."""

    @abstractmethod
    def objects(self, j: int) -> Any:
        """Return column `j` as Python objects."""

    def encode(self) -> tuple[NDArray[Any], list[Any] | None]:
        """Return the values of a series and None; or, if it must be encoded, its codes and distinct values.

        Codes are positions among the distinct values, -1 for missing entries.
        """
        raise NotImplementedError

    @abstractmethod
    def series(self, j: int) -> Any:
        """Return column `j` as a series of the same library."""

    @abstractmethod
    def select(self, columns: Sequence[int], rows: NDArray[np.intp] | None = None) -> Frame:
        """Return the columns at the positions `columns`, and the rows at the positions `rows` (None: all)."""

    @abstractmethod
    def replace(self, part: Frame, values: NDArray[Any]) -> Any:
        """Return a copy in which the columns of `part` hold `values`; `part` must have been selected from this frame.

        The copy is an object of the same library. Null entries stay null.
        """

    @abstractmethod
    def label(self, values: NDArray[Any], columns: Sequence[str] | None = None) -> Any:
        """Return `values` as a frame or series with the row labels of this frame and the column names `columns`."""

    def holds_numbers(self, j: int) -> bool:
        """Return whether column `j` holds real numbers, perhaps as Python objects; None and NA are missing values."""
        kind = self.types[j].kind
        return kind == "number" or (kind == "object" and all(map(is_number, self.objects(j))))

    def has_wide_integers(self, j: int) -> bool:
        """Return whether column `j` has an integer type that float64 may round."""
        if self.types[j].kind == "object":
            return any(isinstance(cell, int | np.integer) for cell in self.objects(j))
        return self.types[j].is_wide_integer
