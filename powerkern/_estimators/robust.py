"""Runs estimators that resist outliers: sorts columns, fits them by `kernels.robust` and evaluates objectives."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.by_column import measure_columns
from powerkern._engine.gather import Columns
from powerkern._estimators.options import CHANGE_POINTS, PRESTANDARDIZE, normal_quantile
from powerkern._estimators.ties import fit_beyond_ties, sorted_with, without_ties
from powerkern._input import special
from powerkern._typing import FloatArray
from powerkern.kernels.results import N_RESULTS
from powerkern.kernels.robust import adaptive_rewml, carroll, cellwise, rewml, trimmed
from powerkern.kernels.robust.fit import Entries
from powerkern.kernels.robust.options import ADAPTIVE_QQ, CARROLL, CELLWISE_QQ, GLOBAL, QQ, TRIMMED, Options
from powerkern.kernels.robust.qq import C
from powerkern.kernels.robust.scratch import new_robust_work
from powerkern.kernels.transforms.rectified import NOT_RECTIFIED

#: How many values count as a degree of freedom of standardised values: found by simulation, see the guide.
_VALUES_PER_DEGREE = 4.0


#: The entries for each criterion.
_ENTRIES = {
    QQ: rewml.ENTRIES,
    ADAPTIVE_QQ: adaptive_rewml.ENTRIES,
    CELLWISE_QQ: cellwise.ENTRIES,
    CARROLL: carroll.ENTRIES,
    TRIMMED: trimmed.ENTRIES,
}


class Robust(NamedTuple):
    """A robust estimator as kernels run it."""

    criterion: int
    options: Options

    @property
    def entries(self) -> Entries:
        """The compiled functions of the estimator."""
        return _ENTRIES[self.criterion]

    @property
    def fits_ties(self) -> bool:
        """Whether columns in which most values are equal are fitted to the others: not by R's conventions."""
        return self.criterion != CELLWISE_QQ

    def fit(
        self, values: Columns, family: int, weight: FloatArray, n_threads: int, progress: bool = False
    ) -> FloatArray:
        """Fit every column; return the results, of shape (p, N_RESULTS)."""
        scratch = _Scratch(values.shape[0], weight.size > 0)

        def fit(block: FloatArray, group: slice) -> FloatArray:
            columns, weights = sorted_with(block, weight)
            out = fit_sorted(columns, weights)
            if self.fits_ties:
                fit_beyond_ties(fit_sorted, columns, weights, out)
            return out

        def fit_sorted(columns: FloatArray, weights: FloatArray | None) -> FloatArray:
            out = np.empty((len(columns), N_RESULTS))
            self.entries.fit(columns, weights, family, self.options, scratch.work, out)
            return out

        return measure_columns(fit, values, N_RESULTS, n_threads, progress)

    def objective(
        self,
        values: Columns,
        family: int,
        lmbdas: FloatArray,
        weight: FloatArray,
        n_threads: int,
        routes: FloatArray,
    ) -> FloatArray:
        """Evaluate the objective of every column, by the route of its fit, at every lambda: shape (p, len(lmbdas))."""
        scratch = _Scratch(values.shape[0], weight.size > 0)

        def evaluate(block: FloatArray, group: slice) -> FloatArray:
            columns, weights = sorted_with(block, weight)
            out = at_sorted(columns, weights, routes[group])
            rows = np.flatnonzero(np.isnan(out).all(axis=1))
            if rows.size and self.fits_ties:
                out[rows] = at_sorted(*without_ties(columns, weights, rows)[:2], routes[group][rows])
            return out

        def at_sorted(columns: FloatArray, weights: FloatArray | None, routes: FloatArray) -> FloatArray:
            out = np.empty((len(columns), lmbdas.size))
            self.entries.at(lmbdas, columns, weights, family, self.options, routes, scratch.work, out)
            return out

        return measure_columns(evaluate, values, lmbdas.size, n_threads)


class _Scratch(threading.local):
    """Arrays of each thread."""

    def __init__(self, n: int, weighted: bool) -> None:
        self.work = new_robust_work(n, weighted)


def robust(criterion: int, cutoff: float, prestandardize: str, search_range: Sequence[float], **changes: Any) -> Robust:
    """Return the solver of an estimator that neither rectifies nor reweights, with changes to its kernel's options."""
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
    return Robust(criterion, options._replace(**changes))


def small_sample_cutoff(quantile: float, n: FloatArray) -> FloatArray:
    """Return the quantile of Student's t with n/4 degrees of freedom, beyond which standardised values are outliers.

    After reweighted maximum likelihood from n values, about ``2 (1 - quantile)`` of clean ones are.
    """
    return np.asarray(special.stdtrit(n / _VALUES_PER_DEGREE, quantile))


def weight_of_one(weight: FloatArray) -> float:
    """Return the weight of one value, see `powerkern.kernels.location.weights`."""
    largest = float(weight.max(initial=0.0))
    if largest == 0.0:
        return 1.0
    share = weight / largest  # the squares of weights might overflow, or vanish
    return min(largest * float(np.sum(share * share) / np.sum(share)), 1.0)


def weights_of_one(values: NDArray[Any], weight: FloatArray) -> FloatArray | None:
    """Return `weight_of_one` for the observed entries of every column; None if all weights are counts."""
    if weight.size == 0:
        return None
    units = np.array([weight_of_one(weight[~np.isnan(column)]) for column in values.T])
    return units if (units < 1.0).any() else None
