"""Fit one column over all sites: choose a common scaling, request moments, and fit the merged moments.

The merged moments are those that `powerkern.fit` computes from the pooled rows, and the same code fits them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._status import Route, Status
from powerkern._typing import FloatArray
from powerkern.kernels.likelihood import partial_moments
from powerkern.kernels.likelihood import score_formulas as lk
from powerkern.kernels.likelihood.logs import Bounds, centered_log, choose_log_unit, offset_log
from powerkern.kernels.likelihood.optimum import write_fit
from powerkern.kernels.likelihood.score import Logs, Score, nll_at, scaling_at
from powerkern.kernels.likelihood.two_pass import build_optimum
from powerkern.kernels.power_sums.ranges import R_COUNT, R_MAX, R_MIN, mean_log
from powerkern.kernels.results import N_RESULTS, write_identity, write_range
from powerkern.kernels.transforms.family import BOX_COX, log_offset

_NONE = np.empty(0)
_LARGEST_LOG = 709.0
#: Bound on the scaled transforms y and their derivatives, and on the variance that rounding gives to equal values.
_REACH, _ROUNDING = 4.1, 1e-26
#: Largest relative difference of two sums of weights that count as equal, since sums are rounded.
_SAME_WEIGHT = 1e-9

# layout of a row of a request: index of the column, bounds of its values, scaling, exponents
_INDEX, _LOW, _HIGH, _SCALING = 0, 1, 2, 3
_AT = _SCALING + partial_moments.N_SCALING

#: Largest number of exponents of a column in one request.
MOST_POINTS = 1024
#: Largest difference of two scalings of the same bounds; two machines may round differently.
_SAME_SCALING = 1e-9


class PooledColumn(NamedTuple):
    """One column over all sites: its range, and the scaling of its logs in requests for moments."""

    base: float
    sign: float
    x_min: float
    x_max: float
    scaling: partial_moments.Scaling
    log_reference: float
    status: int

    @property
    def start(self) -> float:
        """Start of the search for the exponent of the scaled logs (see `exponent`).

        If values have both signs, the search starts at lambda = ``2 neg_high/(high + neg_high)``, where `high` and
        `neg_high` are the largest logs of the positive and of the negative values. The largest transforms of both signs
        are then of equal size, which is close to the optimum if values are huge. Otherwise the search starts at the
        exponent ``min(sigma, 1)``; the exponent of lambda = 1 is `sigma`, the unit of the logs.
        """
        f = self.scaling
        if f.both_signs and f.neg_high > 0.0:
            return 2.0 * f.sigma * f.neg_high / (f.high + f.neg_high)
        return min(f.sigma, 1.0)

    def exponent(self, lmbda: float) -> float:
        """Convert `lmbda` to an exponent of the scaled logs: lambda, or 2 - lambda for negative values, times sigma."""
        return (2.0 - lmbda if self.sign < 0.0 else lmbda) * self.scaling.sigma


def make_column(found: FloatArray, family: int) -> PooledColumn:
    """Make a column from its row, `found`, in the table of the merged `powerkern.sketch.Range` of all sites."""
    base = log_offset(family)
    if found[R_COUNT] == 0.0:
        return _make_unfitted_column(base, math.nan, math.nan, Status.EMPTY)
    x_min, x_max = found[[R_MIN, R_MAX]].tolist()
    log = float(mean_log(found))
    if x_min == x_max:
        return _make_unfitted_column(base, x_min, x_max, Status.CONSTANT)
    sign = 1.0 if x_min >= 0.0 else -1.0 if x_max < 0.0 else 0.0
    reference = math.expm1(min(abs(log), _LARGEST_LOG)) if base else math.exp(min(log, _LARGEST_LOG))
    scaling = make_scaling(base, x_min, x_max, reference)
    log_reference = offset_log(base, scaling.reference) if sign else 0.0
    return PooledColumn(base, sign, x_min, x_max, scaling, log_reference, Status.OK)


def make_scaling(base: float, x_min: float, x_max: float, reference: float) -> partial_moments.Scaling:
    """Return the scaling for the logs of values between two bounds.

    Parameters
    ----------
    base : float
        Offset of the logs: 0 for Box-Cox, 1 for Yeo-Johnson.
    x_min, x_max : float
        Bounds of the values.
    reference : float
        Absolute value whose log is subtracted if all values have one sign; clipped to the bounds.
    """
    both_signs = x_min < 0.0 <= x_max
    if both_signs:
        reference = 0.0
        bounds = Bounds(0.0, offset_log(base, x_max), offset_log(base, -x_min))
    else:
        nearest, farthest = sorted((abs(x_min), abs(x_max)))
        reference = min(max(reference, nearest), farthest)
        log_reference = offset_log(base, reference)
        ends = [centered_log(end, base, reference, log_reference) for end in (nearest, farthest)]
        bounds = Bounds(ends[0], ends[1], 0.0)
    sigma = choose_log_unit(bounds)
    low, high, neg_high = (bound * (1.0 / sigma) for bound in bounds)
    return partial_moments.Scaling(both_signs, reference, low, high, neg_high, sigma)


def _make_unfitted_column(base: float, x_min: float, x_max: float, status: Status) -> PooledColumn:
    """Make a column that cannot be fitted.

    Parameters
    ----------
    base : float
        Offset of the logs: 0 for Box-Cox, 1 for Yeo-Johnson.
    x_min, x_max : float
        Bounds of the values; NaN if there are none.
    status : Status
        The reason.
    """
    scaling = partial_moments.Scaling(True, 0.0, 0.0, 0.0, 0.0, 1.0)
    return PooledColumn(base, 0.0, x_min, x_max, scaling, 0.0, status)


# --- requests for moments -----------------------------------------------------------------------------


class MomentsRequest(NamedTuple):
    """Body of a request for moments: columns, bounds of their values, scalings, and exponents of each column."""

    which: NDArray[np.intp]
    low: FloatArray
    high: FloatArray
    scalings: FloatArray
    at: FloatArray


def write_moments_request(columns: Sequence[tuple[int, PooledColumn]], at: Sequence[Sequence[float]]) -> FloatArray:
    """Write the body of a request for moments.

    `columns` holds the position of each column and the column itself, and `at` holds the exponents of each column.
    """
    rows = [
        [float(j), column.x_min, column.x_max, *map(float, column.scaling), *points]
        for (j, column), points in zip(columns, at, strict=True)
    ]
    return np.array(rows)


def read_moments_request(body: FloatArray, n_columns: int, family: int) -> MomentsRequest:
    """Read the body of a request for moments in a fit of `n_columns` columns; `family` is the code of the family.

    Raises
    ------
    ValueError
        If the body is not a valid request for `n_columns` columns.
    """
    if body.ndim != 2 or body.dtype.kind != "f" or body.shape[0] == 0 or not 0 < body.shape[1] - _AT <= MOST_POINTS:
        raise ValueError("not a table of exponents")
    if not np.isfinite(body).all():
        raise ValueError("NaN or infinite values")
    column = body[:, _INDEX]
    if not np.isin(column, np.arange(n_columns)).all() or np.unique(column).size < column.size:
        raise ValueError(f"columns other than 0 to {n_columns - 1}")
    low, high, scalings = np.array(body[:, _LOW]), np.array(body[:, _HIGH]), np.array(body[:, _SCALING:_AT])
    if not (scalings[:, partial_moments.SIGMA] > 0.0).all():
        raise ValueError("a unit that is not positive")
    if not (low < high).all() or (family == BOX_COX and not (low > 0.0).all()):
        raise ValueError("bounds that no values can have")
    for x_min, x_max, scaling in zip(low.tolist(), high.tolist(), scalings.tolist(), strict=True):
        _check_scaling(family, x_min, x_max, scaling)
    return MomentsRequest(column.astype(np.intp), low, high, scalings, np.array(body[:, _AT:]))


def _check_scaling(family: int, low: float, high: float, given: list[float]) -> None:
    """Raise a ValueError unless a requested scaling is the one that `make_scaling` derives from the bounds.

    Parameters
    ----------
    family : int
        Code of the family.
    low, high : float
        Bounds of the values.
    given : list of float
        The fields of the requested scaling.
    """
    reference, sigma = given[partial_moments.REFERENCE], given[partial_moments.SIGMA]
    expected = make_scaling(log_offset(family), low, high, reference)
    unit = expected.sigma / sigma
    ends = [expected.low * unit, expected.high * unit, expected.neg_high * unit]
    own = given[partial_moments.LOW : partial_moments.NEG_HIGH + 1]
    if not (
        float(expected.both_signs) == given[partial_moments.BOTH_SIGNS]
        and expected.reference == reference
        and 0.5 <= unit <= 2.0
        and all(abs(a - b) <= _SAME_SCALING for a, b in zip(ends, own, strict=True))
    ):
        raise ValueError("a scaling that does not follow from its bounds")


# --- moments ------------------------------------------------------------------------------------------


def reduce_pairwise(merge: Callable[[Any, Any], Any], parts: Sequence[Any]) -> Any:
    """Merge parts pairwise, like a balanced tree, so that the order is fixed and rounding errors stay small."""
    parts = list(parts)
    while len(parts) > 1:
        pairs = [merge(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[len(pairs) * 2 :]
    return parts[0]


def merge_moments(one: FloatArray, other: FloatArray) -> FloatArray:
    """Merge the moments of two sets of rows; both arrays have shape (..., N_PARTIAL)."""
    total, part = one.reshape(-1, partial_moments.N_PARTIAL).T.copy(), other.reshape(-1, partial_moments.N_PARTIAL).T
    some = part[lk.WEIGHT] > 0.0
    seen, new = total[:, some], part[:, some]
    fraction = new[lk.WEIGHT] / (seen[lk.WEIGHT] + new[lk.WEIGHT])
    seen[partial_moments.JACOBIAN] += (new[partial_moments.JACOBIAN] - seen[partial_moments.JACOBIAN]) * fraction
    lk.merge_moments(seen, new)
    total[:, some] = seen
    return np.ascontiguousarray(total.T).reshape(one.shape)


def check_moments(moments: NDArray[Any], shape: tuple[int, ...], which: NDArray[np.intp], error: float) -> None:
    """Raise a ValueError for moments that values within the bounds of the request cannot have.

    Parameters
    ----------
    moments : (k, n_points, N_PARTIAL) ndarray
        Moments of k columns at n_points exponents each.
    shape : tuple of int
        Required shape.
    which : (k,) ndarray of int
        Positions of the columns, for messages.
    error : float
        Bound on the error of each raw sum.
    """
    if moments.shape != shape or moments.dtype.kind != "f":
        raise ValueError(f"the answer holds numbers of shape {moments.shape} instead of {shape}")
    w, yy, y1y1 = (moments[..., k] for k in (lk.WEIGHT, lk.YY, lk.Y1Y1))
    with np.errstate(all="ignore"):
        slack = 100.0 * error + _ROUNDING * w  # e (1 + 2 |y| + y^2) with |y| <= 4.1 is at most 27 e
        room = _REACH**2 * w + slack
        means = moments[..., [lk.Y, lk.Y1, lk.Y2, lk.Y3, partial_moments.JACOBIAN]]
        possible = (w >= 0.0) & (yy >= -slack) & (y1y1 >= -slack) & (yy <= room) & (y1y1 <= room)
        possible &= (np.abs(means) * w[..., None] <= _REACH * w[..., None] + 100.0 * error).all(axis=-1)
        for product, one, other in ((lk.YY1, yy, y1y1), (lk.YY2, yy, room), (lk.YY3, yy, room), (lk.Y1Y2, y1y1, room)):
            most = (np.maximum(one, 0.0) + slack) * (np.maximum(other, 0.0) + slack)
            possible &= np.abs(moments[..., product]) <= 1.0001 * np.sqrt(most)
        possible &= np.ptp(w, axis=-1, keepdims=True) <= _SAME_WEIGHT * w[..., :1]
    wrong = ~(possible.all(axis=1) & np.isfinite(moments).all(axis=(1, 2)))
    if wrong.any():
        raise ValueError(
            f"column {int(which[np.argmax(wrong)])} has moments that are not finite, or that no data can have"
        )


class Weights:
    """The total weight of each column at each site, taken from the first answer; it may not change during a fit."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], float] = {}

    def check(self, who: str, which: NDArray[np.intp], weights: FloatArray) -> None:
        """Record the weights of columns in the first answer of a site; raise a ValueError if later ones differ.

        `who` is the name of the site, and `which` holds the positions of the columns that have these `weights`.
        """
        for j, weight in zip(which.tolist(), weights.tolist(), strict=True):
            known = self._known.setdefault((who, j), weight)
            if not abs(weight - known) <= _SAME_WEIGHT * known:
                raise ValueError(f"column {j} has weight {weight:g}, not {known:g} as announced; did rows change?")


# --- likelihood and fit -------------------------------------------------------------------------------


def evaluate_score(column: PooledColumn, mu: float, moments: FloatArray) -> tuple[float, Score]:
    """Return the negative log-likelihood g per observation, and its derivatives with respect to the exponent.

    `moments`, (N_PARTIAL,), are the merged moments at the exponent `mu` of the scaled logs.
    """
    f = column.scaling
    with np.errstate(all="ignore"):
        shift, _, log_factor = scaling_at(f.low, f.high, f.neg_high, f.sigma, f.both_signs, mu)
        d1, d2, d3 = (float(d) for d in lk.score_from_moments(moments, moments[partial_moments.JACOBIAN] - shift))
        variance = float(moments[lk.YY] / moments[lk.WEIGHT])
        at = Score(d1, d2, d3, float(moments[lk.Y]), variance, log_factor, shift)
        return float(nll_at(_logs(column, moments), mu, at, column.log_reference)), at


def _logs(column: PooledColumn, moments: FloatArray) -> Logs:
    """Return the constants that describe the logs of a column, with empty arrays for the logs themselves."""
    f = column.scaling
    jacobian = float(moments[partial_moments.JACOBIAN])
    return Logs(_NONE, _NONE, _NONE, _NONE, f.low, f.high, f.neg_high, jacobian, f.sigma, 0.0)


def make_fit_row(
    column: PooledColumn, mu: float, at: Score, moments: FloatArray, n_eval: int, status: Status
) -> FloatArray:
    """Return the results of a column with an optimum, as a row of `kernels.results.ColumnFit`.

    Parameters
    ----------
    column : PooledColumn
        The column.
    mu : float
        The optimal exponent of the scaled logs.
    at : Score
        The score at `mu`.
    moments : (N_PARTIAL,) ndarray
        The merged moments at `mu`.
    n_eval : int
        Number of evaluations of the likelihood.
    status : Status
        Status of the column.
    """
    row = np.zeros(N_RESULTS)
    n_obs = float(moments[lk.WEIGHT])
    write_range(row, n_obs, column.x_min, column.x_max)
    extreme = 0.0
    if column.sign != 0.0:
        extreme = (max if mu > 0.0 else min)(abs(column.x_min), abs(column.x_max))
    with np.errstate(all="ignore"):
        logs = _logs(column, moments)
        nll = float(nll_at(logs, mu, at, column.log_reference))
        best = build_optimum(logs, mu, at, nll, column.base, extreme, n_eval, int(status))
        best = best._replace(sd=np.float64(best.sd))  # 0 of subnormal values: 1/sd is infinite, not an error
        write_fit(row, best, column.sign, int(Route.MOMENTS), math.nan)
    return row


def make_identity_row(column: PooledColumn, n_obs: float, status: int) -> FloatArray:
    """Return the results of a column without an optimum, as a row of `kernels.results.ColumnFit`.

    `n_obs` is the total weight of the column, and `status` gives the reason.
    """
    row = np.zeros(N_RESULTS)
    write_range(row, n_obs, column.x_min, column.x_max)
    write_identity(row, status)
    return row
