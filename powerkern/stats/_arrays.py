"""Convert arguments and results: element types, broadcasting, missing values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from powerkern._input.alignment import align_columns, align_rows
from powerkern._input.array_libraries import is_foreign_array
from powerkern._input.arrays import as_reals, filled, is_masked_array, is_real, numbers
from powerkern._input.foreign import library, refuse_foreign
from powerkern._input.frames import names_of, replace_columns
from powerkern._input.wrapping import as_frame
from powerkern._typing import FloatArray
from powerkern.kernels.transforms.elementwise import (
    boxcox_array,
    boxcox_each,
    inv_boxcox_array,
    inv_boxcox_each,
    inv_yeojohnson_array,
    inv_yeojohnson_each,
    yeojohnson_array,
    yeojohnson_each,
)

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
#: Default treatment of NaN in fits. SciPy propagates NaN from 1.18 on, and raises in earlier versions (None).
NAN_POLICY = "propagate" if tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 18) else None


class Elementwise(NamedTuple):
    """The two kernels of a transform of a contiguous vector: for one lambda, and for one lambda per element."""

    by_one: Callable[[FloatArray, float, FloatArray], None]
    by_each: Callable[[FloatArray, FloatArray, FloatArray], None]


def transform_array(
    kernel: Elementwise, x: NDArray[Any], lmbda: ArrayLike, out: NDArray[np.floating] | None = None
) -> Any:
    """Apply a transform with NumPy's broadcasting and type promotion; masked elements become NaN.

    Parameters
    ----------
    kernel : Elementwise
        The transform.
    x : ndarray
        The data.
    lmbda : array-like
        Lambdas; they broadcast against `x`.
    out : ndarray, optional
        Array for the result.
    """
    x = filled(x)
    values = as_float64(x)
    if is_real(lmbda):
        dtype, shape = float_dtype(x.dtype, lmbda), x.shape
        result = np.empty(values.size)
        kernel.by_one(values.reshape(-1), float(lmbda), result)
    else:
        lambdas = numbers(lmbda, "lmbda")
        dtype, shape = float_dtype(x.dtype, lambdas), _common_shape(x.shape, lambdas.shape)
        result = np.empty(math.prod(shape))
        # as_float64 makes a scalar a vector of one element, hence the reshape
        every_x = np.broadcast_to(values.reshape(x.shape), shape).flatten()
        every_lmbda = np.broadcast_to(as_float64(lambdas).reshape(lambdas.shape), shape).flatten()
        kernel.by_each(every_x, every_lmbda, result)
    result = result.reshape(shape).astype(dtype, copy=False)
    if out is None:
        return result[()]
    np.copyto(out, result, casting="same_kind")
    return out


def _common_shape(x: tuple[int, ...], lmbda: tuple[int, ...]) -> tuple[int, ...]:
    """Broadcast the shapes of data and lambdas; raise a ValueError if they are incompatible."""
    try:
        return np.broadcast_shapes(x, lmbda)
    except ValueError:
        raise ValueError(
            f"x has shape {x} and lmbda {lmbda}; pass one lambda, one for each value, or shapes that broadcast"
        ) from None


def transform_like_input(kernel: Elementwise, x: Any, lmbda: Any, out: NDArray[np.floating] | None = None) -> Any:
    """Apply `transform_array` to data of any type and return the same type, as NumPy's and SciPy's ufuncs do.

    Series, data frames and labelled arrays keep index, names, coordinates and attributes. A masked array keeps its
    mask, and its masked elements become NaN.

    Parameters
    ----------
    kernel : Elementwise
        The transform.
    x : array-like
        The data.
    lmbda : array-like
        Lambdas; they broadcast against `x`, and labels are aligned with the labels of `x`.
    out : ndarray, optional
        Array for the result.
    """
    if type(x) is np.ndarray:
        return transform_array(kernel, x, lmbda, out)
    names = names_of(x)
    lmbda = align_rows(lmbda, x, "lmbda", "x") if names is None else align_columns(lmbda, names, "lmbda")
    values = read_data(x)
    result = transform_array(kernel, values, lmbda, out)
    if out is not None or np.shape(result) != np.shape(values):
        return result
    if library(x) == "xarray":
        return x.copy(data=result)
    return np.ma.array(result, mask=np.ma.getmaskarray(x)) if is_masked_array(x) else replace_columns(x, x, result)


BOXCOX = Elementwise(boxcox_array, boxcox_each)
INV_BOXCOX = Elementwise(inv_boxcox_array, inv_boxcox_each)
YEOJOHNSON = Elementwise(yeojohnson_array, yeojohnson_each)
INV_YEOJOHNSON = Elementwise(inv_yeojohnson_array, inv_yeojohnson_each)


def read_data(x: Any) -> NDArray[Any]:
    """Return the data as an array or masked array; raise an error if a data frame or series is not numeric."""
    if type(x) is np.ndarray:
        return x
    refuse_foreign(x, "x")
    return numbers(x, "x") if library(x) or is_foreign_array(x) or as_frame(x) is not None else np.asanyarray(x)


def float_dtype(*operands: Any) -> np.dtype[Any]:
    """Return the type of a result: float32 if promotion of the operands gives float32 or float16, otherwise float64."""
    promoted = np.result_type(*operands)
    return FLOAT32 if promoted.kind == "f" and promoted.itemsize <= 4 else FLOAT64


def as_float64(x: NDArray[Any]) -> FloatArray:
    """Return `x` as a contiguous, writable float64 array, as compiled entries require; they do not write to it."""
    if x.dtype.kind not in "fiub":
        raise TypeError(f"cannot transform data of type {x.dtype}: convert it to real numbers")
    with np.errstate(over="ignore"):  # long doubles beyond float64 are infinite
        values = np.ascontiguousarray(x, dtype=np.float64)
    return values if values.flags.writeable else values.copy()


def read_column(x: NDArray[Any]) -> tuple[FloatArray, float, float]:
    """Return one-dimensional data in float64, with minimum and maximum, which are NaN if the data contain NaN.

    Raise a ValueError if the data are not one-dimensional, are empty or are masked.
    """
    if x.ndim != 1:
        raise ValueError("Data must be 1-dimensional.")
    if x.size == 0:
        raise ValueError("Data must not be empty.")
    if is_masked_array(x) and np.ma.is_masked(x):
        raise ValueError("Data must not be masked: leave the masked elements out with `.compressed()`.")
    column = as_float64(x)
    return column, np.minimum.reduce(column), np.maximum.reduce(column)


def as_scalar(value: Any, name: str = "lmbda") -> float:
    """Return a number as a float; accept arrays of length one, which some optimizers pass.

    `name` is the name of the argument for the message.
    """
    return value if isinstance(value, float) else float(as_reals(name, value).item())


def reject_complex(x: NDArray[Any]) -> None:
    """Raise a ValueError if the data are complex."""
    if x.dtype.kind == "c":
        raise ValueError("Yeo-Johnson transformation is not defined for complex numbers.")


def check_nan_policy(nan_policy: str | None) -> None:
    """Raise a ValueError unless `nan_policy` is None or one of SciPy's values."""
    if nan_policy not in ("propagate", "raise", "omit"):
        raise ValueError("nan_policy must be one of {'propagate', 'raise', 'omit'}.")


def contains_nan(x: NDArray[Any], nan_policy: str | None) -> bool:
    """Return whether the data contain NaN that need treatment; under "raise", raise a ValueError for any NaN.

    Return False if `nan_policy` is None, because later checks then raise for NaN.
    """
    if nan_policy is None:
        return False
    check_nan_policy(nan_policy)
    contains = x.dtype.kind == "f" and x.size > 0 and bool(np.isnan(np.max(x)))
    if contains and nan_policy == "raise":
        raise ValueError("The input contains nan values")
    return contains


def drop_nan(x: NDArray[Any]) -> NDArray[Any]:
    """Return the elements of an array that are not NaN."""
    return np.asarray(x[~np.isnan(x)])


def nan_like(x: NDArray[Any]) -> Any:
    """Return a scalar NaN of the floating-point type of the data."""
    return x.dtype.type(math.nan)
