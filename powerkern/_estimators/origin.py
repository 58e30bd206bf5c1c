"""Fits of ``(x - origin)/unit``, all three parameters by maximum likelihood, perhaps of weighted or of kept values."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from powerkern._engine.by_column import measure_columns
from powerkern._engine.gather import AffineView, Columns, shift_and_scale
from powerkern._estimators.adaptive_rewml import AdaptiveRewML
from powerkern._estimators.options import CUTOFF, CheckedOptions
from powerkern._estimators.power_sums import fit_matrix
from powerkern._estimators.rewml import RewML, RewMLNR
from powerkern._estimators.robust import Robust
from powerkern._estimators.robust_bounds import restandardize
from powerkern._estimators.shift import to_own_units
from powerkern._estimators.standard_units import moments_of, quantiles_of, usable
from powerkern._estimators.ties import sorted_with
from powerkern._status import Status
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.origin import likelihood as origin_likelihood
from powerkern.kernels.origin import maximum as kernels
from powerkern.kernels.results import (
    CURVATURE,
    KEPT_HIGH,
    KEPT_LOW,
    N_EVAL,
    OBJECTIVE,
    STATUS,
)
from powerkern.kernels.robust.options import RAW
from powerkern.kernels.transforms.family import FORWARD_STANDARDIZED, is_mirrored
from powerkern.kernels.transforms.gather import APPLY

#: The one value of ``origin=`` beside None.
FITTED = "fit"

# ranges of the origin and the unit, in interquartile ranges [1]
_UNIT, _BEYOND, _BELOW, _NEAREST = 2.0, 1.0, 1.0, 0.5
# weights by rank q = |2p - 1| [1]: 1 up to _FLAT, then a cosine to 0 at 1; Box-Cox: 1 up to _CENTRAL, then 0
_FLAT, _CENTRAL = 0.54, 0.80
#: Standard deviation of a normal variable with these weights: of Yeo-Johnson's, and of Box-Cox's.
_SPREAD_OF_NORMAL = 0.663089054088512, 0.661607583771256
#: How often the values that a robust fit keeps are chosen anew.
_ROUNDS = 2
_N_FIELDS = 7
_LAMBDA, _INFORMATION, _LIKELIHOOD, _EVALUATIONS, _HOW = range(2, _N_FIELDS)
_SETTLED = (Status.OK, Status.SCANNED, Status.MULTIMODAL)


@dataclass(frozen=True, kw_only=True, repr=False)
class CentralML(CheckedOptions):
    r"""Maximum likelihood of the central values, ``estimator="central-mle"``; only with ``origin="fit"``.

    Values count by their rank [1]_: with :math:`q = |2p - 1|`, p from 0 (smallest) to 1, Yeo-Johnson's weights are 1 up
    to q = 0.54 and :math:`\tfrac12 + \tfrac12 \cos(\pi (q - 0.54)/0.46)` beyond, Box-Cox's are 1 up to q = 0.8 and 0
    beyond. A value of rank i of n has the mean weight of :math:`p = (c + 1/6)/(n + 1/3)`, :math:`i - 1 \le c \le i`,
    so that a row of weight w counts as w rows. `loc` is the weighted mean; `scale` is the weighted standard
    deviation over that of a normal distribution with the same weights.

    Parameters
    ----------
    cutoff : float, default 0.995
        Values beyond this quantile of the fitted normal distribution, on either side, are outliers.

    References
    ----------
    .. [1] A. Zwanenburg and S. Löck, "Location and scale-invariant power transformations", Machine Learning 115, 2026.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> x = np.append(1000.0 + np.random.default_rng(0).gamma(3.0, size=195), [1030.0] * 5)
    >>> fit = pk.fit(x, estimator=pk.CentralML(), origin="fit")
    >>> fit.outliers(x)[-5:].sum()
    np.int64(5)
    """

    cutoff: float = CUTOFF

    name: ClassVar[str] = "central-mle"
    fits_origin: ClassVar[bool] = True
    needs_origin: ClassVar[bool] = True

    def solver(self) -> None:
        """There is none without an origin."""


class Found(NamedTuple):
    """Origins and units, the lambdas that go with them, and how they were found."""

    center: FloatArray
    divisor: FloatArray
    lmbda: FloatArray
    #: of lambda, per observation, where the others follow it
    information: FloatArray
    likelihood: FloatArray
    n_eval: FloatArray
    status: IntArray


class _Scratch(threading.local):
    def __init__(self) -> None:
        self.work = kernels.new_origin_work()


def find_origin(
    values: Columns,
    family: int,
    weight: FloatArray,
    n_threads: int,
    *,
    lmbda: FloatArray | None = None,
    central: bool = False,
    kept: FloatArray | None = None,
    progress: bool = False,
) -> Found:
    """The likeliest origin, unit and lambda of every column; `lmbda` are its least and largest lambdas, (2, p).

    `central`: of values weighted by rank; `kept`: of those between the two rows of it. Columns without a fit have the
    origin 0 and the unit 1.
    """
    box_cox, scratch = not is_mirrored(family), _Scratch()

    @np.errstate(all="ignore")  # infinite values, which the fit refuses, and columns wider than float64
    def search(block: FloatArray, group: slice) -> FloatArray:
        ordered, weights = sorted_with(block, weight)
        lower, median, upper = quantiles_of(ordered, weights, (0.25, 0.5, 0.75))
        unit = np.where(upper > lower, upper - lower, moments_of(ordered, weights)[1])
        median, unit = usable(median, unit)
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
        return _in_own_units(found, ranges, median, unit, ordered, box_cox)

    fields = measure_columns(search, values, _N_FIELDS, n_threads, progress).T.copy()
    center, divisor, lmbda, information, likelihood, n_eval, how = fields
    return Found(center, divisor, lmbda, information, likelihood, n_eval, how.astype(np.int64))


def _ranges(columns: FloatArray, box_cox: bool, lmbda: FloatArray | None) -> FloatArray:
    """Ranges of lambda, the origin and the log of the unit, of standardised and sorted columns: (p, 3, 2)."""
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
    gap = quantiles_of(gaps, None, (0.5,))[0]
    ranges[:, origin_likelihood.ORIGIN, 0] = low - np.maximum(_BELOW, -low)  # the median is 0
    ranges[:, origin_likelihood.ORIGIN, 1] = low - np.minimum(_NEAREST, gap)
    return ranges


def _in_own_units(
    found: FloatArray, ranges: FloatArray, median: FloatArray, unit: FloatArray, x: FloatArray, box_cox: bool
) -> FloatArray:
    """What was found of standardised columns, in the units of the data: (p, _N_FIELDS)."""
    fields = np.empty((len(found), _N_FIELDS))
    x0, log_unit = found[:, origin_likelihood.ORIGIN], found[:, origin_likelihood.LOG_UNIT]
    fields[:, 0] = median + unit * x0
    if box_cox:  # below the smallest value, however coarse numbers are there
        fields[:, 0] = np.minimum(fields[:, 0], np.nextafter(x[:, 0], -np.inf))
    fields[:, 1] = 1.0 if box_cox else unit * np.exp(log_unit)
    far = np.maximum(fields[:, 0] - x[:, 0], np.fmax.reduce(x, axis=1) - fields[:, 0]) / fields[:, 1]
    # where there is no fit; infinite values are refused later
    least = np.where(np.isfinite(x[:, 0]), x[:, 0], 0.0)
    below = np.nan_to_num(least - np.maximum(1.0, np.abs(least))) if box_cox else 0.0
    fields[:, 0], fields[:, 1] = usable(fields[:, 0], np.where(np.isfinite(far), fields[:, 1], np.nan), (below, 1.0))
    fields[:, _LAMBDA], fields[:, _INFORMATION] = (
        found[:, origin_likelihood.LMBDA],
        found[:, origin_likelihood.INFORMATION],
    )
    fields[:, _LIKELIHOOD] = found[:, origin_likelihood.LIKELIHOOD] - np.log(unit)
    fields[:, _EVALUATIONS] = np.nan_to_num(found[:, origin_likelihood.N_EVAL])
    low, high = ranges[:, origin_likelihood.ORIGIN].T
    end = (log_unit <= ranges[:, origin_likelihood.LOG_UNIT, 0]) | (
        log_unit >= ranges[:, origin_likelihood.LOG_UNIT, 1]
    )
    how = np.where(end & (not box_cox), Status.UNIT_AT_END, Status.SCANNED)
    how[(x0 <= low) | (x0 >= high)] = Status.ORIGIN_AT_END
    how[~(found[:, origin_likelihood.CERTIFIED] > 0.0)] = Status.NOT_CERTIFIED
    fields[:, _HOW] = how
    return fields


def central_weights(columns: FloatArray, weights: FloatArray | None, box_cox: bool) -> FloatArray:
    """Weights of sorted rows, NaN last, times the mean weight of the ranks that each value takes, see `CentralML`."""
    if weights is None and not np.isnan(columns[:, -1]).any():  # one row stands for all
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
    """The integral of the weight by rank from 0 to q, -1 <= q <= 1."""
    size = np.abs(q)
    if box_cox:
        return np.copysign(np.minimum(size, _CENTRAL), q)
    beyond, width = np.maximum(size - _FLAT, 0.0), 1.0 - _FLAT
    area = np.minimum(size, _FLAT) + 0.5 * (beyond + width / np.pi * np.sin(np.pi * beyond / width))
    return np.copysign(area, q)


def in_units(
    fit: Callable[[Columns], FloatArray], values: Columns, center: FloatArray, divisor: FloatArray
) -> FloatArray:
    """The results of a fit of ``(x - center)/divisor``, in the units of the data."""
    results = fit(rescaled(values, center, divisor))
    to_own_units(results, 0.0 - center, divisor)
    return results


def rescaled(values: Columns, center: FloatArray, divisor: FloatArray) -> Columns:
    """``(x - center)/divisor`` of columns that are in their own units."""
    assert not isinstance(values, AffineView)
    return shift_and_scale(values, 0.0 - center, divisor)


def mark(results: FloatArray, found: Found) -> None:
    """Say of fits whose lambda is not in doubt how their origins were found; add evaluations."""
    settled = np.isin(results[:, STATUS], _SETTLED)
    results[settled, STATUS] = found.status[settled]
    results[settled, N_EVAL] += found.n_eval[settled]


class WithOrigin(NamedTuple):
    """An estimator that resists outliers, and fits the origin and the unit, too: a solver as `Robust` is.

    Values count by their rank; if there is a robust estimator, origins are then fitted to the values that it keeps.
    """

    kept_by: Robust | None

    def fit(
        self, values: Columns, family: int, weight: FloatArray, n_threads: int, progress: bool = False
    ) -> FloatArray:
        """Results of every column, in the units of the data: (p, N_RESULTS)."""
        found = find_origin(values, family, weight, n_threads, central=True, progress=progress)
        if self.kept_by is None:
            results = in_units(
                lambda u: _centrally(u, family, found.lmbda, weight, n_threads), values, found.center, found.divisor
            )
            results[:, OBJECTIVE] = np.where(np.isnan(found.lmbda), results[:, OBJECTIVE], -found.likelihood)
            mark(results, found)
            return results
        solver = self._robust(self.kept_by, family)
        for _ in range(_ROUNDS):
            u = rescaled(values, found.center, found.divisor)
            fitted = solver.fit(u, family, weight, n_threads)
            kept = np.ascontiguousarray(fitted[:, [KEPT_LOW, KEPT_HIGH]].T)
            again = find_origin(u, family, weight, n_threads, kept=kept)
            center, divisor = found.center + found.divisor * again.center, found.divisor * again.divisor
            center, divisor = usable(center, divisor, (found.center, found.divisor))  # units of subnormals underflow
            found = again._replace(center=center, divisor=divisor)
        results = in_units(lambda u: solver.fit(u, family, weight, n_threads), values, found.center, found.divisor)
        mark(results, found)
        return results

    def objective(
        self, values: Columns, family: int, lmbdas: FloatArray, weight: FloatArray, n_threads: int, routes: FloatArray
    ) -> FloatArray:
        """What the robust estimator minimises, of columns that are rescaled already."""
        if self.kept_by is None:
            raise ValueError("estimator='central-mle' has no objective curve: its origin moves with lambda")
        return self._robust(self.kept_by, family).objective(values, family, lmbdas, weight, n_threads, routes)

    @staticmethod
    def _robust(solver: Robust, family: int) -> Robust:
        """The estimator of rescaled columns, which it does not standardise again."""
        if not is_mirrored(family):
            return solver
        return solver._replace(options=solver.options._replace(prestandardize=RAW))


def _centrally(u: Columns, family: int, lmbda: FloatArray, weight: FloatArray, n_threads: int) -> FloatArray:
    """Results of rescaled columns at given lambdas, standardised by weights by rank."""
    results = fit_matrix(u, family, lmbda, weight, n_threads)
    fitted, box_cox = results[:, STATUS] == Status.FIXED, not is_mirrored(family)

    @np.errstate(all="ignore")
    def measure(block: FloatArray, group: slice) -> FloatArray:
        columns, weights = sorted_with(block, weight)
        w = central_weights(columns, weights, box_cox)
        APPLY[family, FORWARD_STANDARDIZED](columns, results[group], np.zeros(len(columns), dtype=np.int64))
        center, spread = moments_of(columns, w)
        return np.column_stack([center, spread / _SPREAD_OF_NORMAL[box_cox]])

    mean, sd = measure_columns(measure, u, 2, n_threads).T
    fine = fitted & np.isfinite(mean) & (sd > 0.0) & np.isfinite(sd)
    mean, sd = np.where(fine, mean, 0.0), np.where(fine, sd, 1.0)
    restandardize(results, mean, sd)
    results[fitted, STATUS] = Status.SCANNED
    return results


def with_origin(estimator: object) -> WithOrigin | None:
    """The solver of an estimator and the origin; None for maximum likelihood."""
    if isinstance(estimator, AdaptiveRewML | RewML | RewMLNR):
        return WithOrigin(estimator.solver())
    return WithOrigin(None) if isinstance(estimator, CentralML) else None


def likeliest_with_origin(
    values: Columns,
    family: int,
    given: FloatArray,
    bounds: FloatArray,
    weight: FloatArray,
    n_threads: int,
    progress: bool,
    fit: Callable[[Columns], FloatArray],
) -> FloatArray:
    """Maximum likelihood over lambda, origin and unit; `fit` fits lambda to rescaled columns.

    The information of lambda is that where the others follow it.
    """
    lmbda = np.where(np.isnan(given), bounds, given)
    found = find_origin(values, family, weight, n_threads, lmbda=lmbda, progress=progress)
    results = in_units(fit, values, found.center, found.divisor)
    optimal = (results[:, STATUS] == Status.OK) & np.isfinite(found.information)
    results[optimal, CURVATURE] = found.information[optimal]
    mark(results, found)
    return results
