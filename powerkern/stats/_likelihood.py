"""Log-likelihoods along axes of an array."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.exceptions import AxisError
from numpy.typing import ArrayLike, NDArray

from powerkern._input.arrays import is_masked_array
from powerkern._input.messages import warn
from powerkern._typing import FloatArray
from powerkern.kernels.transforms.family import domain_lower_bound
from powerkern.stats._arrays import as_float64, as_scalar, check_nan_policy, float_dtype, read_data
from powerkern.stats._optima import negative_llf


def log_likelihood(
    family: int,
    lmb: float,
    data: ArrayLike,
    axis: int | tuple[int, ...] | None,
    keepdims: bool,
    nan_policy: str,
) -> Any:
    """Return the log-likelihood of every slice of `data` along `axis`.

    Parameters
    ----------
    family : int
        A code of `kernels.transforms.family`.
    lmb, data, axis, keepdims, nan_policy
        As in `powerkern.stats.boxcox_llf`.
    """
    check_nan_policy(nan_policy)
    data = np.atleast_1d(read_data(data))
    values = as_float64(np.asarray(data))
    axes = _reduced_axes(axis, data.ndim)
    rows, shape = _flatten_slices(values, axes)
    masked = np.ma.getmaskarray(data) if is_masked_array(data) else np.zeros(data.shape, dtype=np.bool_)
    ignored = _flatten_slices(masked, axes)[0]
    missing = np.isnan(rows) & ~ignored
    if nan_policy == "raise" and missing.any():
        raise ValueError("The input contains nan values")
    if nan_policy == "omit":
        ignored = ignored | missing
    columns = [row[~out] for row, out in zip(rows, ignored, strict=True)] if ignored.any() else list(rows)
    _warn_about_empty(columns, rows.shape[1], nan_policy, several=bool(shape))
    each = [_column_llf(family, as_scalar(lmb), column) for column in columns]
    llf = np.array(each, dtype=float_dtype(data.dtype, lmb)).reshape(shape)
    return np.expand_dims(llf, axes) if keepdims else llf[()]


def _column_llf(family: int, lmb: float, column: FloatArray) -> float:
    """Return the log-likelihood of lambda `lmb` for one column; NaN if it is empty or a value is outside the domain."""
    if column.size == 0:
        return math.nan
    low, high = column.min(), column.max()
    floor = domain_lower_bound(family)
    if not floor < low <= high < math.inf:
        return math.nan
    if low == high:
        return math.inf
    return -negative_llf(column, family)(lmb)


def _flatten_slices(data: NDArray[Any], axes: tuple[int, ...]) -> tuple[NDArray[Any], tuple[int, ...]]:
    """Return a matrix whose rows are the slices of `data` along `axes`, and the shape of the other axes."""
    last = np.moveaxis(data, axes, range(-len(axes), 0))
    shape = last.shape[: data.ndim - len(axes)]
    return np.ascontiguousarray(last.reshape(math.prod(shape), math.prod(last.shape[len(shape) :]))), shape


def _reduced_axes(axis: int | tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """Return `axis` as a tuple of non-negative axes of an array with `ndim` dimensions; raise the errors of SciPy."""
    if axis is None:
        return tuple(range(ndim))
    given = np.atleast_1d(axis)
    if given.dtype.kind not in "iuf" or not np.isfinite(given).all() or np.any(given != np.floor(given)):
        raise AxisError("`axis` must be an integer, a tuple of integers, or `None`.")
    axes = tuple(int(one) % ndim for one in given)
    if np.any((given < -ndim) | (given >= ndim)):
        raise AxisError(f"`axis` is out of bounds for array of dimension {ndim}")
    if len(set(axes)) < len(axes):
        raise AxisError("`axis` must contain only distinct elements")
    return axes


def _warn_about_empty(columns: list[FloatArray], length: int, nan_policy: str, several: bool) -> None:
    """Issue SciPy's warning about slices without data.

    Parameters
    ----------
    columns : list of ndarray
        The values of each slice without masked values and omitted NaN.
    length : int
        Number of values of a slice, including masked values and NaN.
    nan_policy : str
        Treatment of NaN.
    several : bool
        True if there is more than one slice.
    """
    if all(column.size for column in columns):
        return
    omitted = nan_policy == "omit" and length > 0
    if several and not omitted and length > 0:
        return  # SciPy does not warn about fully masked slices
    if not several:
        subject, outcome = "one or more sample arguments is too small; ", "all returned values will be NaN. "
    elif omitted:
        subject = "one or more axis-slices of one or more sample arguments is too small; "
        outcome = "corresponding elements of returned arrays will be NaN. "
    else:
        subject = "all axis-slices of one or more sample arguments are too small; "
        outcome = "all elements of returned arrays will be NaN. "
    message = "After omitting NaNs, " + subject if omitted else subject[0].upper() + subject[1:]
    warn(message + outcome + "See documentation for sample size requirements.", _small_sample_warning())


def _small_sample_warning() -> type[Warning]:
    """Return SciPy's category of warnings about small samples, so that filters for it apply.

    If the installed SciPy does not have it, return its base class RuntimeWarning.
    """
    try:
        from scipy.stats._axis_nan_policy import SmallSampleWarning
    except ImportError:
        return RuntimeWarning
    return SmallSampleWarning  # type: ignore[no-any-return]
