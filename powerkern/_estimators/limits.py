"""Limits on lambda: the bounds that the user sets, and the interval that keeps transformed values within ``ymax``."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._input.arguments import column_error
from powerkern._status import Status
from powerkern._typing import BoolArray, FloatArray
from powerkern.kernels.results import LMBDA, N_EVAL, STATUS, X_MAX, X_MIN
from powerkern.kernels.transforms import lambda_bounds
from powerkern.kernels.transforms.family import is_mirrored

#: Statuses of a fitted but doubtful lambda, and of any fitted lambda.
_DOUBTFUL = (Status.NOT_CERTIFIED, Status.UNRESOLVED, Status.FEW_VALUES, Status.TAIL_KEPT, Status.NOT_SETTLED)
ESTIMATED = [status for status in Status if status.is_estimate]


class LambdaLimit(NamedTuple):
    r"""Limits on lambda.

    `ymax` is the largest ``|psi|`` allowed for the data; if `strict` is set, an error is raised when no lambda
    satisfies it. `bounds`, (2, p), are the smallest and the largest lambda allowed in each column.
    """

    ymax: float
    strict: bool
    bounds: FloatArray

    @property
    def is_active(self) -> bool:
        """True if any limit is finite, so that some lambda may be excluded."""
        return self.ymax < np.inf or bool(np.isfinite(self.bounds).any())


def apply_limit(
    refit: Callable[[NDArray[np.intp], FloatArray], FloatArray],
    family: int,
    results: FloatArray,
    names: list[str] | None,
    limit: LambdaLimit,
    given: FloatArray,
) -> None:
    """Clip lambdas to their limits, in place, and recompute the results of the columns whose lambda changed.

    If the negative log-likelihood is convex, the clipped lambda is the optimum within the limits. If no lambda keeps
    the data within `ymax`, this is an error when the limit is strict. Otherwise lambda is chosen so that the
    transformed values come as close to `ymax` as possible.

    Parameters
    ----------
    refit : function
        Takes positions of columns and their new lambdas; returns the results at the new lambdas.
    family : int
        Code of the transform, see `kernels.transforms.family`.
    results : (p, N_RESULTS) ndarray
        The results of the fit; changed in place.
    names : list of str or None
        Names of the columns, for errors.
    limit : LambdaLimit
        The limits on lambda.
    given : (p,) ndarray
        Lambdas that the user fixed, which are not clipped; NaN where lambda was fitted.
    """
    if not limit.is_active:
        return
    at, bounded = find_bounded_lambdas(family, results, names, limit, given)
    if at.size:
        results[at] = mark_at_bound(refit(at, bounded), results[at])


def find_bounded_lambdas(
    family: int, results: FloatArray, names: list[str] | None, limit: LambdaLimit, given: FloatArray
) -> tuple[NDArray[np.intp], FloatArray]:
    """Return the positions of the columns whose lambda violates a limit, and the nearest allowed lambdas.

    The limits are the bounds on lambda, and ``|psi| <= ymax`` on the data.

    Parameters
    ----------
    family, results, names, limit, given
        As in `apply_limit`; `results` is not changed.
    """
    ymax, lmbda = limit.ymax, results[:, LMBDA]
    least, most = limit.bounds
    at = np.flatnonzero((lmbda < least) | (lmbda > most) | may_exceed_limit(family, results, ymax))
    if not at.size:
        return at, lmbda[at]
    at = at[np.isnan(given[at]) & np.isin(results[at, STATUS], ESTIMATED)]
    low, high = np.empty((2, at.size))
    lambda_bounds.lambda_ranges(family, results[at, X_MIN], results[at, X_MAX], ymax, low, high)
    impossible = low > high
    if limit.strict and impossible.any():
        j = int(at[np.argmax(impossible)])
        raise column_error(j, names, f"no lambda satisfies ymax={ymax:g}; pass a larger ymax")
    low[impossible] = high[impossible] = 0.5 * (low[impossible] + high[impossible])
    disjoint = (least[at] > high) | (most[at] < low)
    if limit.strict and disjoint.any():
        j = int(at[np.argmax(disjoint)])
        reason = (
            f"no lambda within bounds, {least[j]:g} to {most[j]:g}, satisfies ymax={ymax:g}; pass a larger ymax, or "
            "widen bounds"
        )
        raise column_error(j, names, reason)
    bounded = np.clip(np.clip(lmbda[at], low, high), least[at], most[at])
    moved = bounded != lmbda[at]
    return at[moved], bounded[moved]


def mark_at_bound(again: FloatArray, before: FloatArray) -> FloatArray:
    """Set the status AT_BOUND, unless the original status was doubtful, and add the original numbers of evaluations.

    Parameters
    ----------
    again : (k, N_RESULTS) ndarray
        Results at the bounds; changed in place and returned.
    before : (k, N_RESULTS) ndarray
        Results before lambda was clipped.
    """
    again[again[:, STATUS] == Status.FIXED, STATUS] = Status.AT_BOUND
    doubtful = np.isin(before[:, STATUS], _DOUBTFUL)
    again[doubtful, STATUS] = before[doubtful, STATUS]
    again[:, N_EVAL] += before[:, N_EVAL]
    return again


def may_exceed_limit(family: int, results: FloatArray, ymax: float) -> BoolArray:
    """Return a mask of the columns that may exceed `ymax`.

    With the signed log a of a value and its exponent m, ``|psi| = |e^(m a) - 1|/|m| <= |a| e^max(m a, 0)``. This bound
    is cheap and rules out most columns.
    """
    lmbda, x_min, x_max = results[:, [LMBDA, X_MIN, X_MAX]].T
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # columns with values outside the domain
        if is_mirrored(family):
            above, below, other = np.log1p(np.maximum(x_max, 0.0)), np.log1p(np.maximum(-x_min, 0.0)), 2.0 - lmbda
        else:
            above, below, other = np.log(np.maximum(x_max, 1.0)), -np.log(np.minimum(x_min, 1.0)), -lmbda
        steepest = np.exp(np.maximum(0.0, np.maximum(lmbda * above, other * below)))
        return np.asarray(~(2.0 * np.maximum(above, below) * steepest <= ymax))
