"""Estimate robust location and scale of columns by MCD, by one M-step, or by a method of `powerkern.location`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from powerkern._engine.by_column import measure_columns
from powerkern._input.alignment import align_columns
from powerkern._input.arguments import refuse_infinite
from powerkern._input.arrays import Matrix, as_choice, as_reals, warn_of_columns
from powerkern._status import LocationStatus
from powerkern._typing import BoolArray, FloatArray
from powerkern.cellwise.constants import WrapConstants, moments
from powerkern.kernels.location.loc_scale import BAD_INFINITE
from powerkern.kernels.multivariate.wrapping import KEPT, mcd_columns, step_columns
from powerkern.location import METHODS, LocationScale, measure_location

_N_RESULTS = 4


def estimate_standardization(matrix: Matrix, method: str, constants: WrapConstants, n_threads: int) -> LocationScale:
    """Estimate location and scale of each column; raise for infinite values.

    Parameters
    ----------
    matrix : Matrix
        The data, (n, p); NaN is missing.
    method : str
        "wrapping", "mcd", or a method of `powerkern.location.location_scale`.
    constants : WrapConstants
        Constants of psi, for "wrapping".
    n_threads : int
        Maximum number of threads.
    """
    as_choice("method", method, ("wrapping", "mcd", *METHODS))
    if method in METHODS:
        return measure_location(matrix, method, n_threads=n_threads)
    results = mcd(matrix.values, n_threads, step=constants if method == "wrapping" else None)
    n_iter, status = results[:, 2:].T.astype(np.int64)
    if (status == BAD_INFINITE).any():
        refuse_infinite(matrix)
    return LocationScale(results[:, 0].copy(), results[:, 1].copy(), n_iter, status)


def check_standardization(
    loc: ArrayLike, scale: ArrayLike, p: int, names: Sequence[Any] | None = None
) -> LocationScale:
    """Check locations and scales that the user passes, and broadcast them to all columns.

    Parameters
    ----------
    loc, scale : float or (p,) array-like
        Location and scale, in the units of the columns. A series is aligned with `names`.
    p : int
        Number of columns.
    names : sequence, optional
        Labels of the columns.
    """
    both = [as_reals(what, align_columns(value, names, what)) for what, value in (("loc", loc), ("scale", scale))]
    for what, value in zip(("loc", "scale"), both, strict=True):
        if value.shape not in ((), (p,)) or not np.isfinite(value).all():
            raise ValueError(f"{what} must be a finite number, or one for each of {p} columns, got shape {value.shape}")
    if (both[1] <= 0.0).any():
        raise ValueError(f"scale must be positive, got {both[1].min():g}")
    loc, scale = (np.full(p, value) for value in both)
    return LocationScale(loc, scale, np.zeros(p, dtype=np.int64), np.full(p, int(LocationStatus.CONVERGED)))


def is_usable(scale: FloatArray) -> BoolArray:
    """Return a mask of the scales that are positive and finite."""
    return (scale > 0.0) & (scale < np.inf)


def warn_of_scales(scale: FloatArray, names: list[str] | None, consequence: str) -> None:
    """Issue one warning that names the columns without a positive, finite scale, and states the `consequence`."""
    warn_of_columns([(~is_usable(scale), f"no positive, finite scale; {consequence}")], names)


def mcd(values: NDArray[Any], n_threads: int = 1, *, step: WrapConstants | None = None) -> FloatArray:
    """Estimate location and scale of every column by the reweighted MCD.

    The result has shape (p, 4); its columns are location, scale, 0 and status. With `step`, the constants of a psi, one
    M-step with this psi follows.
    """
    n = values.shape[0]
    factors = np.array(_mcd_factors(n))
    step_factors = None if step is None else np.array(_step_factors(step, n))

    def measure(block: FloatArray, group: slice) -> FloatArray:
        out = np.empty((block.shape[0], _N_RESULTS))
        block.sort(axis=1)
        mcd_columns(block, factors, np.empty((2, n)), out)
        if step is not None and step_factors is not None:
            step_columns(block, step.array, step_factors, out)
        return out

    return measure_columns(measure, values, _N_RESULTS, n_threads)


# --- consistency factors ----------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _mcd_factors(n_max: int) -> FloatArray:
    """Return the consistency factors of the raw and of the final MCD scale for n = 0, ..., n_max, (2, n_max + 1).

    The factor of the final scale also removes the small-sample bias. It is a curve fitted to the means of 200,000
    samples at each of 21 sizes.
    """
    n = np.maximum(np.arange(n_max + 1), 1)
    share = np.minimum((n // 2 + 1) / n, 1.0)
    final = _central_part_factor(np.array([2.0 * ndtr(KEPT) - 1.0]))[0]
    small = 1.0 + (2.0 + 0.5 * np.log(n) + np.where(n % 2, 8.5 / n, 0.0)) / n
    return _read_only(np.vstack([_central_part_factor(share), final * small]))


@lru_cache(maxsize=16)
def _step_factors(constants: WrapConstants, n_max: int) -> FloatArray:
    """Return the consistency factor of the weighted standard deviation for n = 0, ..., n_max, (n_max + 1,).

    The factor also removes the small-sample bias for b = 1.5 and c = 4. It is a curve fitted to the means of 26,000 to
    400,000 samples at each of 18 sizes.
    """
    n = np.maximum(np.arange(n_max + 1), 1)
    weight, _, square = moments(constants)
    small = np.minimum(0.8 + 9.0 / (n + 2), 1.83) + np.where(n % 2, 2.6 / n, 0.0)
    return _read_only(math.sqrt(weight / square) * (1.0 + small / n))


def _central_part_factor(share: FloatArray) -> FloatArray:
    """Return the factor that makes the standard deviation of the central part of normal values consistent.

    `share` is the fraction of the values in the central part.
    """
    q = ndtri(0.5 * (1.0 + share))
    with np.errstate(invalid="ignore"):
        density = np.where(np.isinf(q), 0.0, q * np.exp(-0.5 * q * q) / math.sqrt(2.0 * math.pi))
    return np.asarray(1.0 / np.sqrt(1.0 - 2.0 * density / share))


def _read_only(factors: FloatArray) -> FloatArray:
    """Make an array that will be cached read-only, and return it."""
    factors.flags.writeable = False
    return factors
