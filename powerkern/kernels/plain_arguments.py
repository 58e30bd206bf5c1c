"""Conversion and checks of arguments for kernels called from Python; jitted calls bypass them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

#: Longest representation of an argument in a message.
_LONGEST = 60


def shown(value: object) -> str:
    """Return the representation of an argument for a message, on one line and cut if it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}... ({type(value).__name__})"


def as_real(what: str, value: object) -> float:
    """Return a number, or an array of one, as a float; the error names the argument."""
    if type(value) is float:  # mostly
        return value
    array = as_reals(what, value)
    if array.size != 1:
        raise TypeError(f"{what} must be one number, got {shown(value)}")
    return float(array.item())


def as_vector(what: str, value: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return a contiguous vector of float64; the error names the argument."""
    array = as_reals(what, value)
    if array.ndim != 1:
        raise ValueError(f"{what} must be one-dimensional, got shape {array.shape}")
    return np.ascontiguousarray(array)


def as_reals(what: str, value: object) -> npt.NDArray[np.float64]:
    """Return numbers as an array of float64; the error names the argument."""
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O":  # Python's integers may be of any size
            if not all(isinstance(each, int | float) for each in array.flat):
                raise TypeError(f"{what} must be real numbers, got {shown(value)}")
            return array.astype(np.float64)
    except OverflowError:
        raise ValueError(
            f"{what} has integers beyond the range of float64, 1.8e308; divide all of them first"
        ) from None
    except ValueError:
        raise ValueError(f"{what} must be a number or numbers in rows of one length, got {shown(value)}") from None
    if array.dtype.kind not in "biuf" and array.size > 0:
        raise TypeError(f"{what} must be real numbers, got dtype {array.dtype}")
    with np.errstate(over="ignore"):  # long doubles beyond float64 are infinite
        return array.astype(np.float64, copy=False)
