"""Fits of columns with censored cells from power sums of the observed values and counted intervals.

Columns without intervals are fitted from their power sums alone (`PowerSums`). A column with fewer than two distinct
observed values is fitted as a small weighted matrix of its intervals and that value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powerkern._engine.by_column import for_each_group
from powerkern._engine.censored import fit_censored_matrix, interval_censored_matrix, profile_censored_matrix
from powerkern._estimators.power_sums import MixedSums, PowerSums, bin_starts
from powerkern._status import Status
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.censored.fit import N_CENSORED_FIELDS
from powerkern.kernels.censored.scratch import CensoredWork, new_censored_work
from powerkern.kernels.likelihood.score import Scratch
from powerkern.kernels.power_sums import censored as kernels
from powerkern.kernels.power_sums.censored import SEARCH_ERROR
from powerkern.kernels.power_sums.grids import G_QUANTUM
from powerkern.kernels.power_sums.sample import Nodes
from powerkern.kernels.results import CURVATURE, N_OBS, N_RESULTS, STATUS


class IntervalTable(NamedTuple):
    """The distinct intervals of the censored cells, by column, and the range of the observed values.

    The intervals of column j are ``rows[starts[j]:starts[j + 1]]``, each with lower end, upper end (infinite for an
    open interval) and weight. `observed`, (2, p), holds the smallest and the largest observed value; inf and -inf if
    there is none.
    """

    starts: IntArray
    rows: FloatArray
    observed: FloatArray

    def part(self, at: IntArray) -> IntervalTable:
        """Return the table restricted to the columns `at`."""
        rows = [self.rows[self.starts[j] : self.starts[j + 1]] for j in at]
        starts = np.concatenate([[0], np.cumsum([len(own) for own in rows])]).astype(np.int64)
        return IntervalTable(starts, np.concatenate([self.rows[:0], *rows]), self.observed[:, at])


def censored_sums(
    totals: IntArray, roundings: IntArray, family: int, cells: FloatArray, intervals: IntervalTable
) -> PowerSums | MixedSums:
    """Return the power sums of columns that may have censored cells, as an object with the method `fit_censored`.

    Parameters
    ----------
    totals, roundings, family, cells
        As for `PowerSums`.
    intervals : IntervalTable
        The intervals of the censored cells.
    """
    has_intervals = np.diff(intervals.starts) > 0
    if not has_intervals.any():
        return PowerSums(totals, roundings, family, cells)
    is_summed = intervals.observed[0] < intervals.observed[1]
    starts = bin_starts(cells)

    def sums_of(at: IntArray) -> tuple[IntArray, IntArray, int, FloatArray]:
        own = [totals[starts[j] : starts[j + 1]] for j in at]
        return np.concatenate([totals[:0], *own]), roundings[at], family, cells[at]

    plain = np.flatnonzero(~has_intervals)
    summed, few = np.flatnonzero(has_intervals & is_summed), np.flatnonzero(has_intervals & ~is_summed)
    parts: list[tuple[IntArray, PowerSums]] = []
    if plain.size:
        parts.append((plain, PowerSums(*sums_of(plain))))
    if summed.size:
        parts.append((summed, CensoredSums(*sums_of(summed), intervals.part(summed))))
    parts += [
        (few[k : k + 1], FewValues(*sums_of(few[k : k + 1]), intervals.part(few[k : k + 1]))) for k in range(few.size)
    ]
    return MixedSums(parts)


class CensoredSums(PowerSums):
    """Power sums of columns that have counted intervals and at least two distinct observed values.

    Parameters
    ----------
    totals, roundings, family, cells
        As for `PowerSums`.
    intervals : IntervalTable
        The intervals of the columns.
    """

    def __init__(
        self, totals: IntArray, roundings: IntArray, family: int, cells: FloatArray, intervals: IntervalTable
    ) -> None:
        super().__init__(totals, roundings, family, cells)
        self._intervals = intervals

    def fit_censored(self, lmbda: FloatArray, n_threads: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Fit all columns; return the results, the results on censored cells, and bounds on the error of lambda.

        The arguments are as for `PowerSums.fit`.
        """
        p = len(self.cells)
        out, censored, error = np.empty((p, N_RESULTS)), np.empty((p, N_CENSORED_FIELDS)), np.empty(p)

        def job(group: slice) -> None:
            found = (out[group], censored[group], error[group])
            columns, roundings = self._columns(group), self._roundings[group]
            table = self._table(group)
            nodes, scratch, work = self._work(group)
            kernels.fit_censored_sums(*columns, roundings, *table, lmbda[group], nodes, scratch, work, *found)

        for_each_group(job, self._shape, n_threads)
        return out, censored, error

    def _write_profile(self, group: slice, lmbdas: FloatArray, out: FloatArray) -> None:
        nodes, scratch, work = self._work(group)
        kernels.profile_censored_sums(*self._columns(group), *self._table(group), lmbdas, nodes, scratch, work, out)

    def _write_interval(self, group: slice, at: FloatArray, out: FloatArray) -> None:
        nodes, scratch, work = self._work(group)
        kernels.interval_censored_sums(*self._columns(group), *self._table(group), at, nodes, scratch, work, out)

    def _table(self, group: slice) -> tuple[FloatArray, IntArray]:
        """Return the intervals of the columns in `group`, and the position of the first interval of each column."""
        starts = self._intervals.starts[group.start : group.stop + 1]
        return self._intervals.rows[starts[0] : starts[-1]], starts - starts[0]

    def _work(self, group: slice) -> tuple[Nodes, Scratch, CensoredWork]:
        most = int(np.diff(self._intervals.starts[group.start : group.stop + 1]).max())
        return *self._scratch(group), new_censored_work(0, most)


class FewValues(PowerSums):
    """A column with intervals and at most one distinct observed value, stored as a small weighted matrix.

    Parameters
    ----------
    totals, roundings, family, cells
        As for `PowerSums`, of one column.
    intervals : IntervalTable
        The intervals and the observed value of the column.
    """

    def __init__(
        self, totals: IntArray, roundings: IntArray, family: int, cells: FloatArray, intervals: IntervalTable
    ) -> None:
        super().__init__(totals, roundings, family, cells)
        low, high, weight = intervals.rows.T
        ends = np.where(np.isinf(low), low, high)
        values = np.where(np.isinf(low), high, low)
        if np.isfinite(intervals.observed[0, 0]):
            total = np.ldexp(float(totals[:, 0].sum()), int(cells[0, G_QUANTUM]))
            values, ends = np.append(values, intervals.observed[0, 0]), np.append(ends, np.nan)
            weight = np.append(weight, total)
        self._data = values[:, None], ends[:, None]
        self._weight = np.ascontiguousarray(weight)

    def fit_censored(self, lmbda: FloatArray, n_threads: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Fit the column; return the results, the results on censored cells, and the error bound of lambda.

        The arguments are as for `PowerSums.fit`.
        """
        results, censored = fit_censored_matrix(*self._data, self.family, lmbda, self._weight, n_threads)
        if not np.isnan(lmbda[0]):
            return results, censored, np.zeros(1)
        if results[0, STATUS] not in (Status.SCANNED, Status.MULTIMODAL):
            return results, censored, np.full(1, np.inf)
        return results, censored, SEARCH_ERROR / np.sqrt(results[:, N_OBS] * results[:, CURVATURE])

    def profile(self, lmbdas: FloatArray, n_threads: int) -> FloatArray:
        """Return the negative profile log-likelihood of the column at every lambda; see `PowerSums.profile`."""
        return profile_censored_matrix(*self._data, self.family, lmbdas, self._weight, n_threads)

    def likelihood(self, lmbda: FloatArray, n_threads: int) -> FloatArray:
        """Return the negative profile log-likelihood of the column at its lambda; see `PowerSums.likelihood`."""
        return self.profile(lmbda, n_threads)[:, 0]

    def interval(self, lmbda: FloatArray, drop: FloatArray, n_threads: int) -> FloatArray:
        """Return the ends of the likelihood interval of the column; see `PowerSums.interval`."""
        return interval_censored_matrix(*self._data, self.family, lmbda, drop, self._weight, n_threads)
