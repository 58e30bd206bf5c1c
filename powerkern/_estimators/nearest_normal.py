"""Runs estimators that make the transformed values look most normal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powerkern._engine.by_column import column_figures, fit_matrix
from powerkern._engine.gather import Columns
from powerkern._estimators.ties import sorted_with
from powerkern._input import special
from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.normality import search as normality_search
from powerkern.kernels.normality.criteria import weigh_columns
from powerkern.kernels.normality.criterion import PPCC
from powerkern.kernels.results import LMBDA, N_EVAL, OBJECTIVE, STATUS
from powerkern.kernels.robust.weights import new_counts_work


class NearestNormal(NamedTuple):
    """A criterion of normality in place of the likelihood."""

    criterion: int

    def fit(
        self, values: Columns, family: int, weight: FloatArray, n_threads: int, progress: bool = False
    ) -> FloatArray:
        """Results of every column, with the lambda that minimises the criterion, searched for from the likeliest."""
        likely = fit_matrix(values, family, np.full(values.shape[1], np.nan), weight, n_threads)
        usable = np.isin(likely[:, STATUS], (Status.OK, Status.NOT_CERTIFIED))
        if not usable.any():
            return likely
        start = np.where(usable, likely[:, LMBDA], np.nan)
        width = normality_search.N_FOUND
        room = normality_search.room_of_lanes(values.shape[0])

        def search(block: FloatArray, group: slice) -> FloatArray:
            out, lanes, work = np.empty((len(block), width)), np.empty(room), np.empty((4, block.shape[1]))
            columns, weighed, figures = weighed_with(block, weight, self.criterion == PPCC)
            normality_search.criterion_columns(
                columns, weighed, figures, family, self.criterion, start[group], work, lanes, out
            )
            return out

        found = column_figures(search, values, width, n_threads, progress)
        results = fit_matrix(values, family, found[:, normality_search.FOUND_LMBDA].copy(), weight, n_threads)
        results[~usable] = likely[~usable]
        done = results[:, STATUS] == Status.FIXED
        results[done, STATUS] = found[done, normality_search.FOUND_STATUS]
        results[usable, N_EVAL] = likely[usable, N_EVAL] + found[usable, normality_search.FOUND_N_EVAL]
        results[usable, OBJECTIVE] = found[usable, normality_search.FOUND_VALUE]
        return results

    def objective(
        self,
        values: Columns,
        family: int,
        lmbdas: FloatArray,
        weight: FloatArray,
        n_threads: int,
        routes: FloatArray,
    ) -> FloatArray:
        """The objective of every column at every lambda, (p, len(lmbdas)); routes do not matter here."""

        def evaluate(block: FloatArray, group: slice) -> FloatArray:
            out, work = np.full((block.shape[0], lmbdas.size), np.nan), np.empty((2, block.shape[1]))
            columns, weighed, figures = weighed_with(block, weight, self.criterion == PPCC)
            for j, n in enumerate(np.count_nonzero(~np.isnan(columns), axis=1)):
                x, k = columns[j, :n], min(j, len(figures) - 1)
                if n > 1 and x[0] < x[-1]:
                    own = np.ascontiguousarray(weighed[:, k : k + 1, :n]), figures[k : k + 1]
                    normality_search.criterion_at(x, *own, family, self.criterion, lmbdas, work, out[j])
            return out

        return column_figures(evaluate, values, lmbdas.size, n_threads)


def weighed_with(
    block: FloatArray, weight: FloatArray, has_quantiles: bool = True
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The sorted rows of a block, and the weights and figures that `weigh_columns` writes, equal without `weight`.

    Without weights, and with equally many values per row, one row of weights serves all. The KS distance needs no
    normal quantiles: without `has_quantiles` those of equal weights, a tenth of the time of a long column, are left 0.
    """
    columns, weights = sorted_with(block, weight)
    counts = np.count_nonzero(~np.isnan(columns), axis=1)
    n_rows = len(block) if weights is not None or counts.min() < counts.max() else 1
    weighed, figures = np.zeros((3, n_rows, block.shape[1])), np.zeros((n_rows, 2))
    if weights is not None:
        weigh_columns(columns, weights, new_counts_work(block.shape[1]), weighed, figures)
        return columns, weighed, figures
    figures[:, 0] = counts[:n_rows]
    for n in np.unique(counts[counts > 0]):
        rows = figures[:, 0] == n
        weighed[0, rows, :n], weighed[2, rows, :n] = 1.0 / n, (np.arange(n) + 0.5) / n
        if has_quantiles:
            weighed[1, rows, :n] = np.sqrt(n) * normal_quantiles(n)
    return columns, weighed, figures


def normal_quantiles(n: int) -> FloatArray:
    """Normal quantiles at Filliben's (1975) medians of n uniform order statistics, as a vector of length 1."""
    medians = (np.arange(1, n + 1) - 0.3175) / (n + 0.365)
    medians[-1] = 0.5 ** (1.0 / n)
    medians[0] = 1.0 - medians[-1]
    q = special.ndtri(medians)
    return np.asarray(q / np.sqrt(q @ q)) if n > 1 else np.zeros(1)
