"""The array that a user gives for results, ``out=``, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from powerkern._input.arrays import is_masked_array


def as_out(out: object, shape: tuple[int, ...], dtype: DTypeLike, values: NDArray[Any] | None = None) -> NDArray[Any]:
    """A user's ``out=`` array, checked.

    Parameters
    ----------
    out : ndarray
        The array to check.
    shape, dtype
        Its required shape and type.
    values : ndarray, optional
        The input. Writing over it is fine cell by cell, not where cells lie elsewhere in the same memory.

    Raises
    ------
    TypeError
        If `out` is not an array.
    ValueError
        If it has another shape or dtype, is read-only, or overlaps the input without being the same array.
    """
    if not isinstance(out, np.ndarray) or is_masked_array(out):
        raise TypeError(f"out is a {type(out).__name__}; pass a plain NumPy array")
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}, the result has {shape}; pass np.empty({shape})")
    if out.dtype != np.dtype(dtype):
        raise ValueError(f"out has dtype {out.dtype}, the result has {np.dtype(dtype)}; pass an array of that dtype")
    if not out.flags.writeable:
        raise ValueError("out is read-only; pass an array that can be written to")
    if values is not None and _overlap_shifted(out, values):
        raise ValueError("out overlaps X in memory; pass X itself to work in place, or an array apart from it")
    return out


def _overlap_shifted(out: NDArray[Any], values: NDArray[Any]) -> bool:
    """Whether a cell of `out` lies on another cell of the input, or on the same with another type."""
    if _layout(out) == _layout(values):
        return False
    try:
        return np.shares_memory(out, values, max_work=100_000)  # type: ignore[arg-type]  # the stub is too narrow
    except np.exceptions.TooHardError:
        return True


def _layout(a: NDArray[Any]) -> tuple[int, np.dtype[Any], list[tuple[int, int]]]:
    """Where an array lies in memory; axes of length 1 do not matter."""
    axes = [(length, stride) for length, stride in zip(a.shape, a.strides, strict=True) if length != 1]
    return a.__array_interface__["data"][0], a.dtype, axes
