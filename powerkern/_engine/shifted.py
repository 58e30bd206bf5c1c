"""A matrix whose columns are shifted, and perhaps divided, as they are gathered, so that no result is stored."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from powerkern._typing import FloatArray


class Shifted:
    """The columns of `values` plus a shift each, over a divisor each; sliced by rows and columns as a matrix is."""

    def __init__(self, values: NDArray[Any], shift: FloatArray, divisor: FloatArray | None = None) -> None:
        self.values = values
        self.shift = shift
        self.divisor = divisor

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
        divisor = None if self.divisor is None else self.divisor[columns]
        return Shifted(self.values[rows, columns], self.shift[columns], divisor)


#: A matrix as read by fits.
Columns = NDArray[Any] | Shifted


def shifted(values: NDArray[Any], shift: FloatArray, divisor: FloatArray | None = None) -> Columns:
    """`values` plus a shift for each column, over a divisor for each; `values` itself if nothing changes."""
    if divisor is not None and not (divisor != 1.0).any():
        divisor = None
    return Shifted(values, shift, divisor) if shift.any() or divisor is not None else values
