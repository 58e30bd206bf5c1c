"""Convert and check the arguments of kernels called from Python; jitted code calls kernels without these checks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

#: Largest number of characters of an argument's repr in an error message.
_LONGEST = 60


def format_argument(value: object) -> str:
    """Return the repr of an argument for an error message, on one line and truncated if it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}... ({type(value).__name__})"


def as_real(what: str, value: object) -> float:
    """Convert a number, or an array of one element, to a float; `what` names the argument in errors."""
    if type(value) is float:  # fast path for the usual case
        return value
    array = as_reals(what, value)
    if array.size != 1:
        raise TypeError(f"{what} must be one number, got {format_argument(value)}")
    return float(array.item())


def as_vector(what: str, value: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Convert an argument to a contiguous float64 vector; `what` names it in errors."""
    array = as_reals(what, value)
    if array.ndim != 1:
        raise ValueError(f"{what} must be one-dimensional, got shape {array.shape}")
    return np.ascontiguousarray(array)


def as_reals(what: str, value: object) -> npt.NDArray[np.float64]:
    """Convert an argument to a float64 array of any shape; `what` names it in errors."""
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O":  # Python's integers may be of any size
            if not all(isinstance(each, int | float) for each in array.flat):
                raise TypeError(f"{what} must be real numbers, got {format_argument(value)}")
            return array.astype(np.float64)
    except OverflowError:
        raise ValueError(
            f"{what} has integers beyond the range of float64, 1.8e308; divide all of them first"
        ) from None
    except ValueError:
        raise ValueError(
            f"{what} must be a number or numbers in rows of one length, got {format_argument(value)}"
        ) from None
    if array.dtype.kind not in "biuf" and array.size > 0:
        raise TypeError(f"{what} must be real numbers, got dtype {array.dtype}")
    with np.errstate(over="ignore"):  # long doubles beyond float64 are infinite
        return array.astype(np.float64, copy=False)
