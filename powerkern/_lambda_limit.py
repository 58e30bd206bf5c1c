"""The bound on lambda that keeps raw transformed values within ``ymax``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from powerkern._status import Status
from powerkern._typing import BoolArray, FloatArray
from powerkern._validate import column_label
from powerkern.kernels import lambda_bounds
from powerkern.kernels.family import is_mirrored
from powerkern.kernels.results import LMBDA, N_EVAL, STATUS, X_MAX, X_MIN


def apply_limit(
    refit: Callable[[NDArray[np.intp], FloatArray], FloatArray],
    family: int,
    results: FloatArray,
    names: list[str] | None,
    ymax: float,
    given: FloatArray,
    *,
    strict: bool,
) -> None:
    """Clip lambda, which is optimal since the likelihood is convex, and recompute the moments where it moved.

    `refit` fits given columns at given lambdas. Data that no lambda keeps within `ymax` are an error if `strict`; else
    they come as close to it as they can.
    """
    at, bounded = bounded_lambdas(family, results, names, ymax, given, strict=strict)
    if at.size:
        results[at] = at_bound(refit(at, bounded), results[at])


def bounded_lambdas(
    family: int, results: FloatArray, names: list[str] | None, ymax: float, given: FloatArray, *, strict: bool
) -> tuple[NDArray[np.intp], FloatArray]:
    """Columns whose lambda must change for ``|psi| <= ymax`` on their data, and where to."""
    found = np.flatnonzero(np.isnan(given) & (results[:, STATUS] == Status.OK))
    found = found[near_limit(family, results[found], ymax)]
    low, high = np.empty((2, found.size))
    lambda_bounds.lambda_ranges(family, results[found, X_MIN], results[found, X_MAX], ymax, low, high)
    impossible = low > high
    if strict and impossible.any():
        j = int(found[np.argmax(impossible)])
        raise ValueError(f"ymax={ymax:g} is too small for {column_label(j, names)}: no lambda satisfies it")
    low, high = np.where(impossible, 0.5 * (low + high), [low, high])
    bounded = np.clip(results[found, LMBDA], low, high)
    moved = bounded != results[found, LMBDA]
    return found[moved], bounded[moved]


def at_bound(again: FloatArray, before: FloatArray) -> FloatArray:
    """Results at the bound of lambda, in place of those before."""
    again[again[:, STATUS] == Status.FIXED, STATUS] = Status.AT_BOUND
    again[:, N_EVAL] += before[:, N_EVAL]
    return again


def near_limit(family: int, results: FloatArray, ymax: float) -> BoolArray:
    """Which columns may exceed `ymax`; ``|psi| = b_m(a) <= a e^max(m a, 0)`` shows at once that most do not."""
    lmbda, x_min, x_max = results[:, [LMBDA, X_MIN, X_MAX]].T
    if is_mirrored(family):
        above, below, other = np.log1p(np.maximum(x_max, 0.0)), np.log1p(np.maximum(-x_min, 0.0)), 2.0 - lmbda
    else:
        above, below, other = np.log(np.maximum(x_max, 1.0)), -np.log(np.minimum(x_min, 1.0)), -lmbda
    with np.errstate(over="ignore", invalid="ignore"):
        steepest = np.exp(np.maximum(0.0, np.maximum(lmbda * above, other * below)))
        return np.asarray(~(2.0 * np.maximum(above, below) * steepest <= ymax))
