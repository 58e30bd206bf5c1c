"""The labels of the columns of a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ColumnLabels:
    """The labels of the columns that were fitted."""

    names: list[Any] | None = None
    #: Names of the levels of the labels, of a data frame of pandas whose levels have names.
    level_names: list[Any] | None = None
    was_vector: bool = False

    def texts(self, n: int) -> list[str]:
        """Return the labels of n columns as text, or their positions."""
        return [str(label) for label in self.names or range(n)]
