"""Methods of a fit that apply it, to data and to normal distributions on the transformed scale."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.apply import Repair
from powerkern._engine.threads import thread_count
from powerkern._input import batches as _batches
from powerkern._input.arguments import domain_error_in
from powerkern._input.arrays import Matrix, as_choice, column_labels, output_type
from powerkern._input.messages import warn
from powerkern._input.outputs import as_out
from powerkern._input.reading import read_fitted, restored
from powerkern._results.back import mean_of, quantile_of
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.transforms import gather

if TYPE_CHECKING:
    from powerkern._results.power_fit import PowerFit

OutOfRange = Literal["nan", "raise", "clip"]


def transform(fit: PowerFit, X: object, *, out: NDArray[Any] | None = None, n_threads: int | None = None) -> Any:
    """Transform every column of `X`.

    Parameters
    ----------
    X : (n, n_features) array-like, or (n,) where the fit was to one column
        NaN stays NaN. Columns that could not be fitted are passed through unchanged. In a data
        frame the fitted columns are found by name, and others are passed through.
    out : ndarray, optional
        Where to write; may be `X` itself, which is then overwritten only if every value is in the domain.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.

    Returns
    -------
    ndarray, or the kind of `X`: a data frame or series of pandas or polars, a table, record batch or array of pyarrow
        float32 for float32 input, else float64; same shape as `X`, and the order of its memory, by rows or by
        columns, where it is an array. Data frames keep their index, names and order
        of columns; of nullable columns, missing values are null. Tables that are read in batches are transformed
        in batches, when they are read: a lazy frame of polars comes back as one, a data set, scanner, file or
        RecordBatchReader of pyarrow and a relation of DuckDB as a `pyarrow.RecordBatchReader`, which can be read
        once.

    Raises
    ------
    TypeError
        `out` for a table that is read in batches.
    ValueError
        Infinite values, values not above -shift under Box-Cox (naming column and row), or a wrong shape.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> X = np.random.default_rng(0).lognormal(size=(1000, 2))
    >>> Z = pk.fit(X, family="box-cox").transform(X)
    >>> bool(np.allclose(Z.mean(axis=0), 0)), bool(np.allclose(Z.std(axis=0), 1))
    (True, True)
    """
    lazily = _batches.applied(X, functools.partial(fit.transform, n_threads=n_threads), out)
    if lazily is not None:
        return lazily
    matrix = read_fitted(X, fit.column_names, fit.n_features)
    direction = gather.FORWARD_STANDARDIZED if fit.standardize else gather.FORWARD
    result, target = _target(matrix, out)
    n_threads = thread_count(n_threads, matrix.values.size)
    if out is not None:
        if np.shares_memory(target, matrix.values):  # all or nothing: check before overwriting
            counts = fit.columns.count_outside(matrix.values, n_threads)
            _refuse(fit, matrix, counts)
        fit.source = fit.source.without(target)
    counts = fit.columns.transform(matrix.values, target, direction, n_threads)
    _refuse(fit, matrix, counts)
    return result if out is not None else restored(matrix, result)


def inverse_transform(
    fit: PowerFit,
    Z: object,
    *,
    out: NDArray[Any] | None = None,
    n_threads: int | None = None,
    out_of_range: OutOfRange = "nan",
) -> Any:
    """Undo `transform`.

    Parameters
    ----------
    Z : (n, n_features) array-like, or (n,) where the fit was to one column
        Transformed values; NaN stays NaN. Data frames are treated as by `transform`.
    out : ndarray, optional
        Where to write; may be `Z` itself.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.
    out_of_range : {"nan", "raise", "clip"}, default "nan"
        A power transform maps onto a half line unless lambda = 0 (Box-Cox) or 0 <= lambda <= 2 (Yeo-Johnson).
        A value beyond its end has no inverse: it becomes NaN, with one warning; or a ValueError is raised; or
        the value becomes the nearest end of the fitted data (`x_min` or `x_max`).

    Returns
    -------
    ndarray, or the kind of `Z`: a data frame or series of pandas or polars, a table, record batch or array of pyarrow
        float32 for float32 input, else float64; same shape as `Z`.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> fit = pk.fit(X)
    >>> bool(np.allclose(fit.inverse_transform(fit.transform(X)), X))
    True
    """
    as_choice("out_of_range", out_of_range, get_args(OutOfRange))
    again = functools.partial(fit.inverse_transform, n_threads=n_threads, out_of_range=out_of_range)
    lazily = _batches.applied(Z, again, out)
    if lazily is not None:
        return lazily
    matrix = read_fitted(Z, fit.column_names, fit.n_features)
    result, target = _target(matrix, out)
    direction = gather.INVERSE_STANDARDIZED if fit.standardize else gather.INVERSE
    repair = repair_of(fit, out_of_range == "clip", np.finfo(target.dtype).eps)
    threads = thread_count(n_threads, matrix.values.size)

    def apply(to: NDArray[Any] | None) -> NDArray[np.intp]:
        return np.flatnonzero(fit.columns.transform(matrix.values, to, direction, threads, repair))

    if out is not None:
        if out_of_range == "raise" and np.shares_memory(target, matrix.values):
            _report_lost(fit, apply(None), out_of_range)  # all or nothing: check before overwriting
        fit.source = fit.source.without(target)
    _report_lost(fit, apply(target), out_of_range)
    return result if out is not None else restored(matrix, result)


def inverse_mean(fit: PowerFit, mean: ArrayLike, sd: ArrayLike, *, n_threads: int | None = None) -> FloatArray:
    """Mean of values whose transforms are normal: the bias-corrected inverse of a predicted mean.

    The plain inverse of a mean on the transformed scale is a median, ``psi^-1(mean)``. This is the integral of
    ``psi^-1(mean + sd t) phi(t)``, phi the standard normal density.

    Parameters
    ----------
    mean, sd : float or array-like
        Mean and standard deviation (0: nothing is spread) on the scale of `transform`: standardised, or raw where
        ``standardize=False``. They broadcast; the last axis stands for the columns of the fit, unless that is of
        one vector: then arrays have any shape.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.

    Returns
    -------
    ndarray
        Of the shape that `mean` and `sd` broadcast to; `mean` itself for columns that could not be fitted.

    Raises
    ------
    TypeError
        `mean` or `sd` are not real numbers.
    ValueError
        `sd` is negative or infinite, or the shapes do not go with each other or with the columns.

    Notes
    -----
    The range of psi has an end unless lambda = 0 (Box-Cox) or 0 <= lambda <= 2 (Yeo-Johnson). Probability beyond it
    has no inverse: means are conditional on values in the range. For -1 <= lambda < 0 (the lower
    branch of Yeo-Johnson: 2 < lambda <= 3) that integral diverges at the end, however little probability is near
    it. It is then cut at the valley between the bulk and the end, where value times density is least; where there
    is no valley (the end is closer than ``2/sqrt(-lambda)`` standard deviations) the mean is infinite.

    Accurate to about 1e-12 by double exponential quadrature between the points where the integrand is not
    analytic. R's ``forecast::InvBoxCox(biasadj=TRUE)`` has the first two terms of a series in `sd`.

    See Also
    --------
    PowerFit.inverse_quantile : medians and other quantiles.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> x = np.random.default_rng(0).lognormal(size=200)
    >>> fit = pk.fit(x, family="box-cox", lmbda=0.0, standardize=False)
    >>> fit.inverse_mean([0.0, 1.0], 0.5) / np.exp([0.125, 1.125])
    array([1., 1.])
    """
    return mean_of(fit, mean, sd, thread_count(n_threads))


def inverse_quantile(
    fit: PowerFit, mean: ArrayLike, sd: ArrayLike, quantile: ArrayLike, *, n_threads: int | None = None
) -> FloatArray:
    """Quantiles of values whose transforms are normal: ``psi^-1(mean + sd Phi^-1(quantile))``.

    Parameters
    ----------
    mean, sd : float or array-like
        As in `inverse_mean`.
    quantile : float or array-like
        Between 0 and 1; broadcasts with `mean` and `sd`.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.

    Returns
    -------
    ndarray
        Of the shape that the arguments broadcast to. A quantile beyond the range of psi is the end of the domain:
        -shift (Box-Cox, lambda > 0), inf (lambda < 0), -inf (Yeo-Johnson, lambda > 2).

    Raises
    ------
    TypeError, ValueError
        As `inverse_mean`; or `quantile` is not between 0 and 1.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> x = np.random.default_rng(0).lognormal(size=200)
    >>> fit = pk.fit(x, family="box-cox", lmbda=0.0, standardize=False)
    >>> fit.inverse_quantile(1.0, 0.5, [0.025, 0.5, 0.975]).round(3)
    array([1.02 , 2.718, 7.243])
    """
    return quantile_of(fit, mean, sd, quantile, thread_count(n_threads))


def repair_of(fit: PowerFit, clip: bool, eps: float) -> Repair:
    """The treatment of values that have no inverse: NaN, or the nearest end of the fitted data.

    Where psi is flat, the image of an end of the data may round to the end of the range: that is not lost.
    """
    ends: list[NDArray[np.floating]] = []

    def repair(j: int, z: NDArray[Any], x: FloatArray) -> int:
        if not ends:
            ends.append(fit.transform(np.array([fit.x_min, fit.x_max]), n_threads=1))
        low, high = ends[0][:, j]
        rounding = 16.0 * eps * max(abs(low), abs(high), abs(fit.columns.intercept[j]))
        lost = np.flatnonzero(~np.isfinite(x) & ~np.isnan(z))
        at = z[lost].astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):  # images of outliers, or of the ends, may be infinite
            inside = (low - rounding <= at) & (at <= high + rounding)
            nearest = np.where((at >= high) | (at - low > high - at), fit.x_max[j], fit.x_min[j])
        x[lost] = np.where(inside | clip, nearest, np.nan)
        return 0 if clip else int(np.count_nonzero(~inside))

    return repair


def _report_lost(fit: PowerFit, lost: NDArray[np.intp], out_of_range: OutOfRange) -> None:
    if lost.size == 0:
        return
    where = column_labels(lost, fit.column_names)
    text = f"Some values in {where} are beyond the range of the transform and have no inverse"
    if out_of_range == "raise":
        raise ValueError(f"{text}; use out_of_range='nan' or 'clip', or keep values inside the range")
    warn(f"{text} and became NaN; out_of_range='clip' or 'raise' handles them otherwise")


def _target(matrix: Matrix, out: NDArray[Any] | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """The array to return, and it as a matrix."""
    dtype = output_type(matrix.values.dtype)
    shape = matrix.values.shape[:1] if matrix.was_vector else matrix.values.shape
    if out is None:
        between, within = map(abs, matrix.values.strides)
        by_column = matrix.values.flags.f_contiguous or between < within
        out = np.empty(shape, dtype=dtype, order="F" if by_column else "C")
    else:
        out = as_out(out, shape, dtype, matrix.values)
    return out, out.reshape(matrix.values.shape) if matrix.was_vector else out


def _refuse(fit: PowerFit, matrix: Matrix, counts: IntArray) -> None:
    if counts.any():
        j = int(np.argmax(counts > 0))
        raise domain_error_in(matrix, j, matrix.names or fit.column_names, shift=fit.shift[j])


def overflowing(fit: PowerFit) -> NDArray[np.intp]:
    """Columns of which raw output, which a given lambda does not bound, overflows."""
    ends = fit.transform(np.array([fit.x_min, fit.x_max]), n_threads=1)
    return np.flatnonzero(np.isinf(ends).any(axis=0))


def warn_overflow(fit: PowerFit) -> None:
    """Warn of the columns of which raw output overflows."""
    overflows = overflowing(fit)
    if overflows.size:
        text = f"{column_labels(overflows, fit.column_names)}: raw values overflow"
        warn(f"{text}; standardize=True stays finite")
