"""The identity transform, for columns outside the domain or with too few distinct values to determine lambda."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._status import Route, Status, is_failed
from powerkern._typing import FloatArray, Weights
from powerkern.kernels.results import BAD_NOT_POSITIVE, STATUS, ColumnFit

#: Two values have the same shape under every lambda, three do not. R's caret uses the same threshold, recipes five.
_FEWEST_DISTINCT = 3
#: Number of rows that are searched for distinct values before the whole column is searched.
_FIRST_ROWS = 50


def pass_unfitted(results: FloatArray, values: NDArray[Any], weight: Weights) -> None:
    """Replace the results of columns outside the domain, or with too few distinct values, by the identity transform.

    Parameters
    ----------
    results : (p, N_RESULTS) ndarray
        The results of the fit; changed in place.
    values : (n, p) ndarray
        The data.
    weight : (n,) ndarray or None
        Weights of the rows; a row of weight 0 counts as absent.
    """
    status = results[:, STATUS].copy()
    fitted = (status >= 0) & ~is_failed(status)
    rows = slice(None) if weight is None else weight > 0.0
    for j in np.flatnonzero(fitted | (status == BAD_NOT_POSITIVE)).tolist():
        column = values[rows, j].astype(np.float64)
        if status[j] == BAD_NOT_POSITIVE:
            results[j] = _identity_row(column, weight, Status.OUTSIDE_DOMAIN)
        elif not _has_distinct(column[:_FIRST_ROWS]) and not _has_distinct(column):
            results[j] = _identity_row(column, weight, Status.FEW_DISTINCT)


def _has_distinct(x: FloatArray) -> bool:
    """Return whether x has at least `_FEWEST_DISTINCT` distinct values, not counting NaN."""
    return np.unique(x[~np.isnan(x)]).size >= _FEWEST_DISTINCT


def _identity_row(x: FloatArray, weight: Weights, status: Status) -> ColumnFit:
    """Return the results of a column that passes unchanged, with a given status.

    Parameters
    ----------
    x : (m,) ndarray
        The values of positive weight.
    weight : (n,) ndarray or None
        Weights of all rows.
    status : Status
        The reason why the column is not transformed.
    """
    known = ~np.isnan(x)
    n_obs = float(np.count_nonzero(known)) if weight is None else float(weight[weight > 0.0][known].sum())
    low, high = float(np.min(x[known])), float(np.max(x[known]))
    return ColumnFit(
        lmbda=1.0,
        loc=0.0,
        scale=1.0,
        log_factor=0.0,
        ref=0.0,
        slope=1.0,
        intercept=0.0,
        nll=math.nan,
        curvature=math.nan,
        n_obs=n_obs,
        n_eval=0,
        status=int(status),
        x_min=low,
        x_max=high,
        lmbda0=1.0,
        n_kept=n_obs,
        kept_low=low,
        kept_high=high,
        center=0.0,
        divisor=1.0,
        route=int(Route.NONE),
        objective=math.nan,
    )
