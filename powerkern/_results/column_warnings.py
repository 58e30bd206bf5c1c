"""Warnings about columns of a new fit: unreliable lambdas, columns far from zero, raw output that overflows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from powerkern._input.messages import warn
from powerkern._results.column_table import ColumnTable
from powerkern._results.inversion import transformed_ends
from powerkern._status import Status
from powerkern._typing import IntArray

#: Values of |lambda| above this reflect the distance from the origin rather than the shape of the column, if the data
#: are far from the origin relative to their range.
_LARGE = 20.0
_NO_COLUMNS = np.empty(0, dtype=np.intp)
#: Warning text for columns whose |lambda| is large for this reason.
FAR_FROM_ZERO = (
    "|lambda| is large because the data lie far from zero relative to their spread; powerkern.fit with "
    "origin='fit' (or, under Yeo-Johnson, estimator=ML(prestandardize='mad')) gives a lambda without this dependence"
)
#: Statuses that cause a warning, in the order in which the warning lists them.
_WARNED = (
    Status.CONSTANT,
    Status.EMPTY,
    Status.UNREPRESENTABLE,
    Status.NO_SPREAD,
    Status.OUTSIDE_DOMAIN,
    Status.FEW_DISTINCT,
    Status.TOO_FEW,
    Status.FEW_OBSERVED,
    Status.EXACT,
    Status.AT_END,
    Status.NOT_CERTIFIED,
    Status.UNRESOLVED,
    Status.FEW_VALUES,
    Status.TAIL_KEPT,
    Status.NOT_SETTLED,
)


def warn_about_columns(table: ColumnTable, labels: Callable[[IntArray], str], may_overflow: bool) -> None:
    """Issue one warning that lists the columns without a reliable fit and the columns far from zero.

    Parameters
    ----------
    table : ColumnTable
        The results.
    labels : function
        Takes an array of column positions and returns their labels as text for the message.
    may_overflow : bool
        If True, issue a second warning that lists the columns whose raw output overflows.
    """
    parts = []
    if np.count_nonzero(table.status_codes):
        suspects = np.flatnonzero(table.status)
        doubts = table.status[suspects]
        known = set(doubts.tolist())
        parts = [f"{labels(suspects[doubts == code])}: {code.sentence}" for code in _WARNED if code in known]
    far = find_far_from_zero(table)
    if far.size:
        parts.append(f"{labels(far)}: {FAR_FROM_ZERO}")
    if parts:
        warn("; ".join(parts))
    if may_overflow:
        warn_about_overflow(table, labels)


def warn_about_overflow(table: ColumnTable, labels: Callable[[IntArray], str]) -> None:
    """Warn about columns whose raw output overflows, as it may without bounds on lambda; see `warn_about_columns`."""
    overflows = np.flatnonzero(np.isinf(transformed_ends(table, standardize=False)).any(axis=0))
    if overflows.size:
        warn(f"{labels(overflows)}: transformed values overflow; with standardize=True they stay finite")


def find_far_from_zero(table: ColumnTable) -> NDArray[np.intp]:
    """Return the positions of columns whose |lambda| is large only because the data are far from the pole of psi.

    A column is listed if ``|lambda| > 20`` and its distance from the pole exceeds its range. The pole is x = 0 for
    Box-Cox. For Yeo-Johnson, the distance is 1 plus the distance of the data from 0.
    """
    is_large = np.abs(table.lmbda) > _LARGE
    if not np.count_nonzero(is_large):  # ten times as fast as `flatnonzero`
        return _NO_COLUMNS
    large: NDArray[np.intp] = np.flatnonzero(is_large)
    center, divisor, mirrored = table.center[large], table.divisor[large], table.mirrored[large]
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = (table.x_min[large] - center) / divisor, (table.x_max[large] - center) / divisor
        is_far = np.where(mirrored, 1.0 + np.maximum(np.maximum(low, -high), 0.0), low) > high - low
    return np.asarray(large[is_far & (table.status[large] != Status.FIXED)])
