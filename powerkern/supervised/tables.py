"""Tables of which some columns are transformed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._input.arrays import filled, listed, position_of
from powerkern._input.foreign import frame_library, refuse_foreign
from powerkern._input.frames import restored, taken


def is_frame(X: Any) -> bool:
    """Whether X is a data frame of pandas or polars."""
    return frame_library(X) != "" and hasattr(X, "columns")


def as_table(X: Any) -> Any:
    """A data frame unchanged, anything else as an array, with NaN for masked entries."""
    refuse_foreign(X)
    X = filled(X)
    return X if is_frame(X) else np.asarray(X)


class Table(NamedTuple):
    """An array, or a data frame, and the positions of its columns that are transformed."""

    whole: Any
    chosen: NDArray[np.intp]

    @property
    def part(self) -> Any:
        """The chosen columns."""
        return taken(self.whole, None, self.chosen) if is_frame(self.whole) else self.whole[:, self.chosen]

    @property
    def takes_all(self) -> bool:
        """Whether all columns are chosen."""
        return bool(self.chosen.size == self.whole.shape[1])

    def rows(self, at: NDArray[np.intp]) -> Table:
        """These rows."""
        columns = np.arange(self.whole.shape[1])
        return Table(taken(self.whole, at, columns) if is_frame(self.whole) else self.whole[at], self.chosen)

    def holding(self, values: NDArray[Any]) -> Any:
        """The table, of its own kind, with `values` in the chosen columns."""
        if is_frame(self.whole):
            part = self.whole if self.takes_all else self.part
            return restored(self.whole, part, values)
        if self.takes_all:
            return values
        filled = self.whole.astype(values.dtype)
        filled[:, self.chosen] = values
        return filled


def positions(variables: Sequence[Any] | None, names: Sequence[str] | None, p: int) -> NDArray[np.intp]:
    """Positions of the columns given by name, position or mask; None: of all p columns."""
    if variables is None:
        return np.arange(p)
    given = np.asarray(variables)
    if given.dtype != np.bool_:
        at = np.array([position_of(one, names, p) for one in listed(variables)], dtype=np.intp)
    else:
        at = np.flatnonzero(given) if given.shape == (p,) else np.empty(0, dtype=np.intp)
    if at.size == 0 or np.unique(at).size < at.size:
        raise ValueError(f"variables must be one or more columns, each once, got {variables!r}")
    return at
