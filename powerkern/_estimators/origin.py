"""Maximum likelihood estimates of origin and unit, for transforms of ``(x - origin)/unit``.

The likelihood includes all values, all values weighted by rank, or only the values in an interval.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from powerkern._engine.by_column import measure_columns
from powerkern._engine.gather import Columns
from powerkern._estimators.standard_units import replace_unusable_scales, row_moments, row_quantiles
from powerkern._estimators.ties import sort_with_weights
from powerkern._status import Status
from powerkern._typing import FloatArray, IntArray, Weights
from powerkern.kernels.origin import likelihood as origin_likelihood
from powerkern.kernels.origin import maximum as kernels
from powerkern.kernels.results import N_EVAL, STATUS
from powerkern.kernels.transforms.family import is_mirrored

# search ranges in interquartile ranges [1]: units within a factor of _UNIT, origins up to _BEYOND outside the data; for
# Box-Cox, origins from at least _BELOW to at most _NEAREST below the smallest value
_UNIT, _BEYOND, _BELOW, _NEAREST = 2.0, 1.0, 1.0, 0.5
# weights by rank q = |2p - 1| [1]: 1 up to _FLAT, then a cosine to 0 at 1; Box-Cox: 1 up to _CENTRAL, then 0
_FLAT, _CENTRAL = 0.54, 0.80
_N_FIELDS = 7
_LAMBDA, _INFORMATION, _LIKELIHOOD, _EVALUATIONS, _HOW = range(2, _N_FIELDS)
_SETTLED = (Status.OK, Status.SCANNED, Status.MULTIMODAL)


class OriginFit(NamedTuple):
    """Fitted origins (`center`) and units (`divisor`), the lambdas fitted with them, and the outcome of each search."""

    center: FloatArray
    divisor: FloatArray
    lmbda: FloatArray
    #: Information of lambda, per observation, with origin and unit profiled out.
    information: FloatArray
    likelihood: FloatArray
    n_eval: FloatArray
    status: IntArray


class _OriginScratch(threading.local):
    def __init__(self) -> None:
        self.work = kernels.new_origin_work()


def find_origin(
    values: Columns,
    family: int,
    weight: Weights,
    n_threads: int,
    *,
    lmbda: FloatArray | None = None,
    central: bool = False,
    kept: FloatArray | None = None,
    progress: bool = False,
) -> OriginFit:
    """Maximise the likelihood of every column over origin, unit and lambda.

    A column that cannot be fitted gets the unit 1 and the origin 0, or for Box-Cox an origin below its smallest value.

    Parameters
    ----------
    values : (n, p) ndarray or AffineView
        The data.
    family : int
        Code of the transform, see `kernels.transforms.family`.
    weight : (n,) ndarray
        Weight of each row; None: all 1.
    n_threads : int
        Maximum number of threads.
    lmbda : (2, p) ndarray, optional
        Smallest and largest lambda allowed; default: no limits.
    central : bool
        Weight values by rank.
    kept : (2, p) ndarray, optional
        Use only the values of each column in this closed interval.
    progress : bool
        Show a progress bar.
    """
    box_cox, scratch = not is_mirrored(family), _OriginScratch()

    @np.errstate(all="ignore")  # infinite values, which the fit refuses, and columns wider than float64
    def search(block: FloatArray, group: slice) -> FloatArray:
        ordered, weights = sort_with_weights(block, weight)
        lower, median, upper = row_quantiles(ordered, weights, (0.25, 0.5, 0.75))
        unit = np.where(upper > lower, upper - lower, row_moments(ordered, weights)[1])
        median, unit = replace_unusable_scales(median, unit)
        columns = (ordered - median[:, np.newaxis]) / unit[:, np.newaxis]
        columns[~np.isfinite(columns).all(axis=1, where=~np.isnan(columns))] = np.nan
        if central:
            w = central_weights(columns, weights, box_cox)
        else:
            w = np.ones(columns.shape) if weights is None else np.ascontiguousarray(weights)
        if kept is not None:
            low, high = kept[:, group, np.newaxis]
            w = np.where((ordered >= low) & (ordered <= high), w, 0.0)
        ranges = _ranges(columns, box_cox, None if lmbda is None else lmbda[:, group])
        found = np.full((len(columns), origin_likelihood.N_FOUND), np.nan)
        fitted = np.flatnonzero(columns[:, 0] < np.fmax.reduce(columns, axis=1))
        some = np.full((fitted.size, origin_likelihood.N_FOUND), np.nan)
        kernels.origin_columns(columns[fitted], w[fitted], box_cox, ranges[fitted], scratch.work, some)
        found[fitted] = some
        return _in_data_units(found, ranges, median, unit, ordered, box_cox)

    fields = measure_columns(search, values, _N_FIELDS, n_threads, progress).T.copy()
    center, divisor, lmbda, information, likelihood, n_eval, how = fields
    return OriginFit(center, divisor, lmbda, information, likelihood, n_eval, how.astype(np.int64))


def _ranges(columns: FloatArray, box_cox: bool, lmbda: FloatArray | None) -> FloatArray:
    """Return the search ranges of lambda, origin and log unit, (p, 3, 2), for sorted and standardised columns.

    Parameters
    ----------
    columns : (p, n) ndarray
        Sorted columns as rows, NaN last, minus their median, divided by their interquartile range.
    box_cox : bool
        Whether the transform is Box-Cox, whose unit is fixed.
    lmbda : (2, p) ndarray or None
        Smallest and largest lambda allowed; None: no limits.
    """
    ranges = np.zeros((len(columns), origin_likelihood.N_PARAMETERS, 2))
    ranges[:, origin_likelihood.LMBDA] = [-np.inf, np.inf] if lmbda is None else lmbda.T
    low, high = columns[:, 0], np.fmax.reduce(columns, axis=1)
    if not box_cox:
        ranges[:, origin_likelihood.ORIGIN] = np.column_stack([low - _BEYOND, high + _BEYOND])
        ranges[:, origin_likelihood.LOG_UNIT] = np.log(_UNIT) * np.array([-1.0, 1.0])
        return ranges
    gaps = np.diff(columns, axis=1)
    gaps[gaps == 0.0] = np.nan
    gaps.sort(axis=1)
    gap = row_quantiles(gaps, None, (0.5,))[0]
    ranges[:, origin_likelihood.ORIGIN, 0] = low - np.maximum(_BELOW, -low)  # the median is 0
    ranges[:, origin_likelihood.ORIGIN, 1] = low - np.minimum(_NEAREST, gap)
    return ranges


def _in_data_units(
    fitted: FloatArray, ranges: FloatArray, median: FloatArray, unit: FloatArray, x: FloatArray, box_cox: bool
) -> FloatArray:
    """Convert results for standardised columns to the units of the data, and add the status of each search.

    The result has shape (p, _N_FIELDS).

    Parameters
    ----------
    fitted : (p, N_FOUND) ndarray
        Results for ``(x - median)/unit``.
    ranges : (p, 3, 2) ndarray
        The search ranges, see `_ranges`.
    median, unit : (p,) ndarray
        Median that was subtracted from each column, and the scale by which the column was divided.
    x : (p, n) ndarray
        The data: sorted columns as rows, NaN last.
    box_cox : bool
        Whether the transform is Box-Cox.
    """
    fields = np.empty((len(fitted), _N_FIELDS))
    x0, log_unit = fitted[:, origin_likelihood.ORIGIN], fitted[:, origin_likelihood.LOG_UNIT]
    fields[:, 0] = median + unit * x0
    if box_cox:  # below the smallest value, however coarse the spacing of numbers
        fields[:, 0] = np.minimum(fields[:, 0], np.nextafter(x[:, 0], -np.inf))
    fields[:, 1] = 1.0 if box_cox else unit * np.exp(log_unit)
    far = np.maximum(fields[:, 0] - x[:, 0], np.fmax.reduce(x, axis=1) - fields[:, 0]) / fields[:, 1]
    # for columns without a fit; infinite values raise an error later
    least = np.where(np.isfinite(x[:, 0]), x[:, 0], 0.0)
    below = np.nan_to_num(least - np.maximum(1.0, np.abs(least))) if box_cox else 0.0
    fields[:, 0], fields[:, 1] = replace_unusable_scales(
        fields[:, 0], np.where(np.isfinite(far), fields[:, 1], np.nan), (below, 1.0)
    )
    fields[:, _LAMBDA], fields[:, _INFORMATION] = (
        fitted[:, origin_likelihood.LMBDA],
        fitted[:, origin_likelihood.INFORMATION],
    )
    fields[:, _LIKELIHOOD] = fitted[:, origin_likelihood.LIKELIHOOD] - np.log(unit)
    fields[:, _EVALUATIONS] = np.nan_to_num(fitted[:, origin_likelihood.N_EVAL])
    low, high = ranges[:, origin_likelihood.ORIGIN].T
    end = (log_unit <= ranges[:, origin_likelihood.LOG_UNIT, 0]) | (
        log_unit >= ranges[:, origin_likelihood.LOG_UNIT, 1]
    )
    how = np.where(end & (not box_cox), Status.UNIT_AT_END, Status.SCANNED)
    how[(x0 <= low) | (x0 >= high)] = Status.ORIGIN_AT_END
    how[~(fitted[:, origin_likelihood.CERTIFIED] > 0.0)] = Status.NOT_CERTIFIED
    fields[:, _HOW] = how
    return fields


def central_weights(columns: FloatArray, weights: FloatArray | None, box_cox: bool) -> FloatArray:
    """Return the products, (p, n), of the given weights of sorted values and the rank weights of `CentralML`.

    Parameters
    ----------
    columns : (p, n) ndarray
        Sorted columns as rows, NaN last.
    weights : (p, n) ndarray or None
        Weights of the values; None: all 1.
    box_cox : bool
        Whether to use the weights for Box-Cox rather than those for Yeo-Johnson.
    """
    if weights is None and not np.isnan(columns[:, -1]).any():  # one row of weights serves all columns
        one = _by_rank(np.ones((1, columns.shape[1])), box_cox)
        return np.ascontiguousarray(np.broadcast_to(one, columns.shape))
    return _by_rank(np.where(np.isnan(columns), 0.0, 1.0 if weights is None else weights), box_cox)


def _by_rank(w: FloatArray, box_cox: bool) -> FloatArray:
    upper = np.cumsum(w, axis=1)
    total = upper[:, -1:]
    per_rank = 0.5 * (total + 1.0 / 3.0)
    over = [_area(2.0 * (c + 1.0 / 6.0) / (total + 1.0 / 3.0) - 1.0, box_cox) for c in (upper - w, upper)]
    return np.ascontiguousarray(np.maximum(per_rank * (over[1] - over[0]), 0.0))


def _area(q: FloatArray, box_cox: bool) -> FloatArray:
    """Return the integral of the rank weight from 0 to q, for q in [-1, 1]; see `_FLAT` and `_CENTRAL`."""
    size = np.abs(q)
    if box_cox:
        return np.copysign(np.minimum(size, _CENTRAL), q)
    beyond, width = np.maximum(size - _FLAT, 0.0), 1.0 - _FLAT
    area = np.minimum(size, _FLAT) + 0.5 * (beyond + width / np.pi * np.sin(np.pi * beyond / width))
    return np.copysign(area, q)


def mark_origin(results: FloatArray, origin: OriginFit) -> None:
    """Update fits without a doubtful status in place: copy the status of the origin search, and add its evaluations."""
    settled = np.isin(results[:, STATUS], _SETTLED)
    results[settled, STATUS] = origin.status[settled]
    results[settled, N_EVAL] += origin.n_eval[settled]
