"""A matrix with a shift for each column, added to its values as they are gathered, so that no sum is stored."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from powerkern._typing import FloatArray


class Shifted:
    """The columns of `values` plus a shift each; it can be sliced by rows and columns as a matrix can."""

    def __init__(self, values: NDArray[Any], shift: FloatArray) -> None:
        self.values = values
        self.shift = shift

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        n, p = self.values.shape
        return n, p

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides of the values before the shift."""
        return self.values.strides

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: Any) -> Shifted:
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        return Shifted(self.values[rows, columns], self.shift[columns])


#: A matrix as read by fits.
Columns = NDArray[Any] | Shifted


def shifted(values: NDArray[Any], shift: FloatArray) -> Columns:
    """`values` plus a shift for each column; `values` itself if all shifts are 0."""
    return Shifted(values, shift) if shift.any() else values
