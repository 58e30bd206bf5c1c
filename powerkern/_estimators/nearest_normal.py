"""Runs estimators that make the transformed values look most normal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powerkern._engine.by_column import column_figures, fit_matrix
from powerkern._engine.shifted import Columns
from powerkern._estimators.ties import sorted_with
from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.normality import criterion as normality_criterion
from powerkern.kernels.normality import search as normality_search
from powerkern.kernels.normality.criteria import weigh_columns
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
            if weight.size:
                columns, weighed, figures = weighed_with(block, weight)
                normality_search.weighted_criterion_columns(
                    columns, weighed, figures, family, self.criterion, start[group], work, lanes, out
                )
                return out
            block.sort(axis=1)  # NaN last
            quantiles = normal_quantiles_of(block) if self.criterion == normality_criterion.PPCC else block
            normality_search.criterion_columns(block, family, self.criterion, start[group], quantiles, work, lanes, out)
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
            if weight.size:
                block, weighed, figures = weighed_with(block, weight)
            else:
                block.sort(axis=1)
                quantiles = normal_quantiles_of(block)
            counts = block.shape[1] - np.isnan(block).sum(axis=1)
            for j in range(len(block)):
                x, one = block[j, : counts[j]], slice(j, j + 1)
                if x.size < 2 or not x[0] < x[-1]:
                    continue
                if weight.size:
                    own = np.ascontiguousarray(weighed[:, one, : x.size])
                    normality_search.weighted_criterion_at(
                        x, own, figures[one], family, self.criterion, lmbdas, work, out[j]
                    )
                else:
                    q = quantiles[j, : x.size]
                    normality_search.criterion_at(x, family, self.criterion, lmbdas, q, work, out[j])
            return out

        return column_figures(evaluate, values, lmbdas.size, n_threads)


def weighed_with(block: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The sorted rows of a block, with the weights and figures from `weigh_columns`."""
    columns, weights = sorted_with(block, weight)
    assert weights is not None
    weighed, figures = np.zeros((3, *block.shape)), np.zeros((len(block), 2))
    weigh_columns(columns, weights, new_counts_work(block.shape[1]), weighed, figures)
    return columns, weighed, figures


def normal_quantiles_of(block: FloatArray) -> FloatArray:
    """`normality_search.normal_quantiles` for the values of each row, NaN last."""
    quantiles = np.zeros_like(block)
    counts = block.shape[1] - np.isnan(block).sum(axis=1)
    for n in np.unique(counts[counts > 1]):
        quantiles[counts == n, :n] = normality_search.normal_quantiles(n)
    return quantiles
