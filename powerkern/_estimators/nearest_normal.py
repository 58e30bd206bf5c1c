"""Runs estimators that make the transformed values look most normal."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from powerkern._engine.by_column import fit_matrix, measure_columns
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

#: Gives the normal quantiles of so many values, see `normal_quantiles`.
Quantiles: TypeAlias = Callable[[int], FloatArray]
#: Normal quantiles that are kept for columns to come.
_KEPT = 2**20


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
        quantiles = self._quantiles(values.shape[0])

        def search(block: FloatArray, group: slice) -> FloatArray:
            out, work = np.empty((len(block), width)), normality_search.new_search_work(block.shape[1])
            columns, weighed, figures = weighed_with(block, weight, quantiles)
            normality_search.criterion_columns(
                columns, weighed, figures, family, self.criterion, start[group], work, out
            )
            return out

        found = measure_columns(search, values, width, n_threads, progress)
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
        quantiles = self._quantiles(values.shape[0])

        def evaluate(block: FloatArray, group: slice) -> FloatArray:
            out, work = np.empty((len(block), lmbdas.size)), np.empty((2, block.shape[1]))
            columns, weighed, figures = weighed_with(block, weight, quantiles)
            normality_search.criterion_at(columns, weighed, figures, family, self.criterion, lmbdas, work, out)
            return out

        return measure_columns(evaluate, values, lmbdas.size, n_threads)

    def _quantiles(self, n: int) -> Quantiles | None:
        """The quantiles that the criterion needs: the KS distance none."""
        return kept_quantiles(n) if self.criterion == PPCC else None


def weighed_with(
    block: FloatArray, weight: FloatArray, quantiles: Quantiles | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The sorted rows of a block, and their weights and figures as `weighing_of` has them.

    Without weights these are the normal quantiles of the rows: one row where all have equally many values, and none
    where `quantiles` is None.
    """
    columns, weights = sorted_with(block, weight)
    n = block.shape[1]
    if weights is not None:
        weighed, figures = np.zeros((3, *block.shape)), np.zeros((len(block), 2))
        weigh_columns(columns, weights, new_counts_work(n), weighed, figures)
        return columns, weighed, figures
    figures = np.empty((0, 2))
    if quantiles is None:
        return columns, np.empty((1, 1, 0)), figures
    if not np.isnan(columns[:, -1]).any():
        return columns, quantiles(n)[np.newaxis, np.newaxis], figures
    weighed = np.zeros((1, *block.shape))
    for j, count in enumerate(np.count_nonzero(~np.isnan(columns), axis=1)):
        weighed[0, j, :count] = quantiles(count)
    return columns, weighed, figures


def kept_quantiles(n: int) -> Quantiles:
    """`normal_quantiles`, keeping those of the numbers of values that came last: 8 MB, or one column of `n` values."""
    return functools.lru_cache(maxsize=1 + _KEPT // max(n, 1))(normal_quantiles)


def normal_quantiles(n: int) -> FloatArray:
    """Normal quantiles at Filliben's (1975) medians of n uniform order statistics, with a mean square of 1."""
    if n < 2:
        return np.zeros(n)
    medians = (np.arange(1, (n + 1) // 2 + 1) - 0.3175) / (n + 0.365)
    medians[0] = 1.0 - 0.5 ** (1.0 / n)
    lower = special.ndtri(medians)
    q = np.concatenate([lower, -lower[: n // 2][::-1]])
    return np.asarray(q * np.sqrt(n / (q @ q)))
