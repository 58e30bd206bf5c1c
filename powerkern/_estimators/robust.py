"""`RobustEstimator`: base of the robust estimators, which sorts columns and passes them to `kernels.robust`."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.by_column import measure_columns
from powerkern._engine.gather import Columns, shift_and_scale
from powerkern._estimators.base import ColumnSpec, Estimator, Run
from powerkern._estimators.options import CHANGE_POINTS, PRESTANDARDIZE, normal_quantile
from powerkern._estimators.origin import OriginFit, find_origin
from powerkern._estimators.robust_bounds import move_lambda, rescale_by_ratio
from powerkern._estimators.standard_units import replace_unusable_scales
from powerkern._estimators.ties import fit_beyond_ties, sort_with_weights, without_ties
from powerkern._input import lazy_scipy_special as special
from powerkern._input.arrays import Matrix
from powerkern._typing import FloatArray, Weights
from powerkern.kernels.results import KEPT_HIGH, KEPT_LOW, N_RESULTS
from powerkern.kernels.robust.fit import EstimatorEntries
from powerkern.kernels.robust.options import CELLWISE_QQ, GLOBAL, Options
from powerkern.kernels.robust.qq import C
from powerkern.kernels.robust.scratch import new_robust_work
from powerkern.kernels.transforms.family import is_mirrored
from powerkern.kernels.transforms.rectified import NOT_RECTIFIED

#: Number of times that a fit of the origin is repeated, each time on the values that the preceding robust fit kept.
_ROUNDS = 2
#: Number of values per degree of freedom in `small_sample_cutoff`; found by simulation, see the guide.
_VALUES_PER_DEGREE = 4.0


class RobustEstimator(Estimator):
    """An estimator implemented in `kernels.robust`; `criterion` selects kernels that receive `kernel_options`."""

    cutoff: float
    prestandardize: Any

    @property
    @abstractmethod
    def criterion(self) -> int:
        """Code in `kernels.robust.options` that selects the kernels."""

    @property
    @abstractmethod
    def entries(self) -> EstimatorEntries:
        """The compiled entry points of the estimator."""

    @property
    @abstractmethod
    def kernel_options(self) -> Options:
        """The options in the form that the kernels expect."""

    @property
    def fits_ties(self) -> bool:
        """True if a column in which most values are equal is fitted without the tied value; R does not do so."""
        return self.criterion != CELLWISE_QQ

    def fit_values(self, values: Columns, family: int, weight: Weights, run: Run) -> FloatArray:
        """Fit lambda of every column; see `Estimator.fit_values`."""
        scratch, options = _RobustScratch(values.shape[0], weight), self.kernel_options
        entries, fits_ties = self.entries, self.fits_ties

        def fit(block: FloatArray, group: slice) -> FloatArray:
            columns, weights = sort_with_weights(block, weight)
            out = fit_sorted(columns, weights)
            if fits_ties:
                fit_beyond_ties(fit_sorted, columns, weights, out)
            return out

        def fit_sorted(columns: FloatArray, weights: FloatArray | None) -> FloatArray:
            out = np.empty((len(columns), N_RESULTS))
            entries.fit(columns, weights, family, options, scratch.work, out)
            return out

        return measure_columns(fit, values, N_RESULTS, run.n_threads, run.progress)

    def objective(
        self, values: Columns, family: int, lmbdas: FloatArray, weight: Weights, n_threads: int, routes: FloatArray
    ) -> FloatArray:
        """Evaluate the objective for the route of each column's fit at every lambda; see `Estimator.objective`."""
        scratch, options = _RobustScratch(values.shape[0], weight), self.kernel_options

        def evaluate(block: FloatArray, group: slice) -> FloatArray:
            columns, weights = sort_with_weights(block, weight)
            out = at_sorted(columns, weights, routes[group])
            rows = np.flatnonzero(np.isnan(out).all(axis=1))
            if rows.size and self.fits_ties:
                out[rows] = at_sorted(*without_ties(columns, weights, rows)[:2], routes[group][rows])
            return out

        def at_sorted(columns: FloatArray, weights: FloatArray | None, routes: FloatArray) -> FloatArray:
            out = np.empty((len(columns), lmbdas.size))
            self.entries.at(lmbdas, columns, weights, family, options, routes, scratch.work, out)
            return out

        return measure_columns(evaluate, values, lmbdas.size, n_threads)

    def recompute_at(
        self, lmbda: FloatArray, columns: Columns, family: int, results: FloatArray, weight: Weights, n_threads: int
    ) -> FloatArray:
        """Recompute the results at the lambdas `lmbda` from the values that were kept; see `Estimator.recompute_at`."""
        return move_lambda(
            lmbda, columns, family, results, weight, n_threads, leaves_out_ties=True, rescale=self.rescale
        )

    def rescale(self, again: FloatArray, kept: FloatArray, before: FloatArray, family: int, weight: Weights) -> None:
        """Multiply the scales in `again`, in place, by the original fit's ratio of scale to standard deviation.

        The arguments are as for `rescale_by_ratio`.
        """
        rescale_by_ratio(again, kept, before, family, weight)

    # --- with origin="fit" --------------------------------------------------------------------------------

    def for_rescaled(self, family: int) -> RobustEstimator:
        """Return the estimator for rescaled columns, which does not prestandardise them."""
        return replace(self, prestandardize="none") if is_mirrored(family) else self  # type: ignore[type-var]

    def fit_origin(self, values: Columns, family: int, weight: Weights, requested: ColumnSpec, run: Run) -> OriginFit:
        """Estimate origins from values weighted by rank, then refine them in `_ROUNDS` rounds.

        Each round fits lambda robustly at the current origins, and then estimates the origins again from the values
        that this fit keeps. The arguments are as for `Estimator.fit_origin`.
        """
        threads, estimator = Run(run.n_threads), self.for_rescaled(family)
        assert isinstance(values, np.ndarray)  # shift and origin exclude each other
        origin = find_origin(values, family, weight, run.n_threads, central=True, progress=run.progress)
        for _ in range(_ROUNDS):
            rescaled = shift_and_scale(values, 0.0 - origin.center, origin.divisor)
            fitted = estimator.fit_values(rescaled, family, weight, threads)
            kept = np.ascontiguousarray(fitted[:, [KEPT_LOW, KEPT_HIGH]].T)
            again = find_origin(rescaled, family, weight, run.n_threads, kept=kept)
            center, divisor = origin.center + origin.divisor * again.center, origin.divisor * again.divisor
            center, divisor = replace_unusable_scales(
                center, divisor, (origin.center, origin.divisor)
            )  # units of subnormals underflow
            origin = again._replace(center=center, divisor=divisor)
        return origin

    def fit_at_origin(
        self, rescaled: Columns, family: int, origin: OriginFit, matrix: Matrix, requested: ColumnSpec, run: Run
    ) -> FloatArray:
        """Fit columns minus their origin, divided by their unit; see `Estimator.fit_at_origin`."""
        return self.for_rescaled(family).fit_values(rescaled, family, matrix.weight, Run(run.n_threads))


class _RobustScratch(threading.local):
    """Scratch arrays, one set per thread."""

    def __init__(self, n: int, weight: Weights) -> None:
        self.work = new_robust_work(n, weight is not None)


def kernel_options(cutoff: float, prestandardize: str, search_range: Sequence[float], **changes: Any) -> Options:
    """Return options for the kernels: without rectification and reweighting, unless `changes` says otherwise.

    Parameters
    ----------
    cutoff, prestandardize, search_range
        Options of the estimator; see `AdaptiveRewML`.
    **changes
        Fields of `Options` to replace.
    """
    low, high = search_range
    options = Options(
        rule=NOT_RECTIFIED,
        prestandardize=PRESTANDARDIZE[prestandardize],
        search=GLOBAL,
        low=low,
        high=high,
        cutoff=normal_quantile(cutoff),
        n_reweight=0,
        adaptive=False,
        fraction=1.0,
        c=C,
        lower_tail=CHANGE_POINTS[0],
        upper_tail=1.0 - CHANGE_POINTS[1],
        first_rule=NOT_RECTIFIED,
    )
    return options._replace(**changes)


def small_sample_cutoff(quantile: float, n: FloatArray) -> FloatArray:
    """Return the cut-off for outliers in short columns: a quantile of Student's t with n/4 degrees of freedom.

    When lambda, location and scale come from reweighted maximum likelihood on n values, about a fraction
    ``2 (1 - quantile)`` of clean values lies beyond this cut-off.

    Parameters
    ----------
    quantile : float
        The quantile, between 0.5 and 1.
    n : ndarray
        Number of observed values in each column.
    """
    return np.asarray(special.stdtrit(n / _VALUES_PER_DEGREE, quantile))


def weight_of_one(weight: FloatArray) -> float:
    """Return the weight that counts as one observation: min(1, sum(w**2)/sum(w)), see `kernels.location.weights`."""
    largest = float(weight.max(initial=0.0))
    if largest == 0.0:
        return 1.0
    share = weight / largest  # the squares of weights might overflow, or vanish
    return min(largest * float(np.sum(share * share) / np.sum(share)), 1.0)


def weights_of_one(values: NDArray[Any], weight: Weights) -> FloatArray | None:
    """Return `weight_of_one` for the observed values of every column, (p,), or None if it is 1 for all columns."""
    if weight is None:
        return None
    units = np.array([weight_of_one(weight[~np.isnan(column)]) for column in values.T])
    return units if (units < 1.0).any() else None
