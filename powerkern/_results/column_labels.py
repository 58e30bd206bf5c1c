"""The labels of the columns of a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ColumnLabels:
    """The labels of the columns that were fitted."""

    names: list[Any] | None = None
    #: Names of the levels of the labels, for a pandas data frame whose column levels have names.
    level_names: list[Any] | None = None
    was_vector: bool = False

    def texts(self, n: int) -> list[str]:
        """Return the labels of the `n` columns as strings; the positions 0, 1, ... if columns have no labels."""
        return [str(label) for label in self.names or range(n)]
