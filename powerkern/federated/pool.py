"""What the server knows of a column: the frame that all sites share, and how their answers become a fit.

The moments of all sites, merged, are those that `powerkern.fit` would form of the pooled rows; what follows is the
same code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._status import Route, Status
from powerkern.federated.search import Interval
from powerkern.kernels.likelihood import partial_moments
from powerkern.kernels.likelihood import score as lk
from powerkern.kernels.likelihood.logs import Bounds, centered_log, offset_log, unit_of
from powerkern.kernels.likelihood.optimum import write_fit
from powerkern.kernels.likelihood.two_pass import optimum
from powerkern.kernels.power_sums.fit import R_COUNT, R_MAX, R_MIN, mean_log
from powerkern.kernels.results import N_RESULTS, write_identity, write_range
from powerkern.kernels.transforms.family import log_offset

FloatArray = NDArray[np.float64]

_NONE = np.empty(0)
#: Rounding of lambda on its way to a site and back, relative to 2 + |lambda|.
_INSIDE = 1e-14
_LARGEST_LOG = 709.0
#: Where the range is not known exactly, a standard deviation below this part of the mean is rounding.
_ROUNDING = 64.0 * np.finfo(np.float64).eps


class PooledColumn(NamedTuple):
    """One column of all sites: its range, and the frame of its logs."""

    base: float
    sign: float
    x_min: float
    x_max: float
    frame: partial_moments.Scaling
    log_reference: float
    #: What x_min and x_max are: extremes of the data, or bounds known beforehand.
    exact: bool
    status: int

    @property
    def start(self) -> float:
        """Where the search begins, in units of the frame.

        With both signs, where the two branches grow equally large, at ``2 neg_high/(high + neg_high)``, which the
        optimum is near when values are huge; else at lambda = 1, or nearer to 0.
        """
        f = self.frame
        if f.both_signs and f.neg_high > 0.0:
            return 2.0 * f.sigma * f.neg_high / (f.high + f.neg_high)
        return min(f.sigma, 1.0)

    def exponent(self, lmbda: float) -> float:
        """Where `lmbda` is, in units of the frame."""
        return (2.0 - lmbda if self.sign < 0.0 else lmbda) * self.frame.sigma

    def exponents_within(self, largest: float) -> Interval:
        """Where ``|lambda| <= largest``, in units of the frame; a little less, for the way back is rounded."""
        inside = largest - _INSIDE * (2.0 + largest)
        return Interval(*sorted((self.exponent(-inside), self.exponent(inside))))


def column_of_range(found: FloatArray, family: int, exact: bool) -> PooledColumn:
    """A column from its row of a `powerkern.sketch.Range` of all sites; not `exact`: its extremes are bounds."""
    base = log_offset(family)
    if found[R_COUNT] == 0.0:
        return _without_fit(base, math.nan, math.nan, Status.EMPTY)
    x_min, x_max = found[[R_MIN, R_MAX]].tolist()
    log = float(mean_log(found))
    if x_min == x_max:
        return _without_fit(base, x_min, x_max, Status.CONSTANT)
    sign = 1.0 if x_min >= 0.0 else -1.0 if x_max < 0.0 else 0.0
    reference = math.expm1(min(abs(log), _LARGEST_LOG)) if base else math.exp(min(log, _LARGEST_LOG))
    frame = frame_between(base, x_min, x_max, reference)
    log_reference = offset_log(base, frame.reference) if sign else 0.0
    return PooledColumn(base, sign, x_min, x_max, frame, log_reference, exact, Status.OK)


def frame_between(base: float, x_min: float, x_max: float, reference: float) -> partial_moments.Scaling:
    """The frame of the logs of values between these ends; with one sign, relative to a reference among them."""
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
    sigma = unit_of(bounds)
    low, high, neg_high = (bound * (1.0 / sigma) for bound in bounds)
    return partial_moments.Scaling(both_signs, reference, low, high, neg_high, sigma)


def _without_fit(base: float, x_min: float, x_max: float, status: Status) -> PooledColumn:
    frame = partial_moments.Scaling(True, 0.0, 0.0, 0.0, 0.0, 1.0)
    return PooledColumn(base, 0.0, x_min, x_max, frame, 0.0, True, status)


# --- merging ------------------------------------------------------------------------------------------


def tree(merge: Callable[[Any, Any], Any], parts: Sequence[Any]) -> Any:
    """Merge neighbors, then neighbors of the results, until one is left: in a fixed order, with small errors."""
    parts = list(parts)
    while len(parts) > 1:
        pairs = [merge(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[len(pairs) * 2 :]
    return parts[0]


def merge_moments(one: FloatArray, other: FloatArray) -> FloatArray:
    """Moments of two sites' rows together; both of shape (..., N_PARTIAL)."""
    total, part = one.reshape(-1, partial_moments.N_PARTIAL).T.copy(), other.reshape(-1, partial_moments.N_PARTIAL).T
    some = part[lk.WEIGHT] > 0.0
    seen, new = total[:, some], part[:, some]
    fraction = new[lk.WEIGHT] / (seen[lk.WEIGHT] + new[lk.WEIGHT])
    seen[partial_moments.JACOBIAN] += (new[partial_moments.JACOBIAN] - seen[partial_moments.JACOBIAN]) * fraction
    lk.merge_moments(seen, new)
    total[:, some] = seen
    return np.ascontiguousarray(total.T).reshape(one.shape)


# --- likelihood and fit -------------------------------------------------------------------------------


def score_at(column: PooledColumn, mu: float, moments: FloatArray) -> tuple[float, lk.Score]:
    """g and its derivatives at `mu`, from the merged moments there."""
    f = column.frame
    with np.errstate(all="ignore"):
        shift, _, log_factor = lk.scaling_at(f.low, f.high, f.neg_high, f.sigma, f.both_signs, mu)
        d1, d2, d3 = (float(d) for d in lk.score_from_moments(moments, moments[partial_moments.JACOBIAN] - shift))
        variance = float(moments[lk.YY] / moments[lk.WEIGHT])
        at = lk.Score(d1, d2, d3, float(moments[lk.Y]), variance, log_factor, shift)
        return float(lk.nll_at(_logs(column, moments), mu, at, column.log_reference)), at


def _logs(column: PooledColumn, moments: FloatArray) -> lk.Logs:
    f = column.frame
    jacobian = float(moments[partial_moments.JACOBIAN])
    return lk.Logs(_NONE, _NONE, _NONE, _NONE, f.low, f.high, f.neg_high, jacobian, f.sigma, 0.0)


def is_constant(column: PooledColumn, moments: FloatArray, slack: float = 0.0) -> bool:
    """Whether the values are equal, as far as the frame tells and the rounding of sums, at most `slack`, allows."""
    sd = math.sqrt(max(moments[lk.YY], 0.0) / moments[lk.WEIGHT])
    return not column.exact and bool(sd <= _ROUNDING * abs(moments[lk.Y]) or moments[lk.YY] <= slack)


def results_row(
    column: PooledColumn, mu: float, at: lk.Score, moments: FloatArray, n_eval: int, status: Status
) -> FloatArray:
    """The row of `PowerFit` for a column with an optimum."""
    row = np.zeros(N_RESULTS)
    n_obs = float(moments[lk.WEIGHT])
    write_range(row, n_obs, column.x_min, column.x_max)
    extreme = 0.0
    if column.sign != 0.0:
        extreme = (max if mu > 0.0 else min)(abs(column.x_min), abs(column.x_max))
    with np.errstate(all="ignore"):
        logs = _logs(column, moments)
        nll = float(lk.nll_at(logs, mu, at, column.log_reference))
        best = optimum(logs, mu, at, nll, column.base, extreme, n_eval, int(status))
        write_fit(row, best, column.sign, int(Route.MOMENTS))
    return row


def identity_row(column: PooledColumn, n_obs: float, status: int) -> FloatArray:
    """The row of `PowerFit` for a column without an optimum."""
    row = np.zeros(N_RESULTS)
    write_range(row, n_obs, column.x_min, column.x_max)
    write_identity(row, status)
    return row
