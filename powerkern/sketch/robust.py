"""Robust fits of data that only passes over chunks can see.

1. A sample, and exact counts between its values (`powerkern.sketch.order`). The start, the lambda that minimises the
   estimator's objective, is found for points that represent the counts.
2. Bins that contain medians, median distances and the ends of the kept interval are divided and counted again.
3. The values kept are those inside an interval: every step of reweighting is a maximum likelihood fit of the power sums
   of that interval, exact for the rows in it.

The order of the rows within bins is unknown; `powerkern.sketch.certificate` bounds its effect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from powerkern._engine.threads import SERIAL_VALUES, for_each
from powerkern._estimators.limits import LambdaLimit, apply_limit
from powerkern._estimators.robust import RobustEstimator
from powerkern._estimators.shift import to_own_units
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.kernels.results import N_RESULTS
from powerkern.kernels.transforms.family import FAMILIES
from powerkern.sketch.certificate import end_error, open_zones, search_error, start_error, step_error
from powerkern.sketch.engine import Passes
from powerkern.sketch.order import CountedColumn, Sample
from powerkern.sketch.passes import BinsPass, Kept, kept_sums
from powerkern.sketch.robust_column import Column

#: How often cells are divided.
_N_DIVISIONS = 2


def fit_robust(
    passes: Passes, estimator: RobustEstimator, first: Sample, limit: LambdaLimit, n_threads: int
) -> tuple[FloatArray, FloatArray]:
    """Results of every column, and bounds on the difference in lambda from a fit of the rows in memory.

    `first` is the sample of all chunks. Columns are shared out to the threads.
    """
    family, p = FAMILIES[first.range.family], first.range.n_features
    columns = [Column(first, j, estimator, family) for j in range(p)]
    reader = Reader(passes, first)
    binned = [column for column in columns if column.is_binned]
    reader.divide(binned)
    inexact = [column for column in columns if not column.is_whole]
    _each(Column.start, inexact, n_threads)
    for _ in range(_N_DIVISIONS):
        inexact = [column for column in inexact if column.is_fitted]
        reader.divide(inexact)
        _each(Column.start, inexact, n_threads)
    inexact = [column for column in inexact if column.is_fitted and not column.is_whole]
    _reweight(reader, inexact, n_threads)
    results = np.empty((p, N_RESULTS))

    def finish(column: Column) -> None:
        results[column.j] = column.result()

    _each(finish, columns, n_threads)

    def refit(at: IntArray, bounded: FloatArray) -> FloatArray:
        return np.stack([columns[j].moved(lmbda) for j, lmbda in zip(at, bounded, strict=True)])

    apply_limit(refit, family, results, first.range.column_names, limit, np.full(p, np.nan))
    to_own_units(results, first.range.shift)
    return results, np.array([column.bound for column in columns])


class Reader(NamedTuple):
    """Passes over some of the columns of the data."""

    passes: Passes
    first: Sample

    def divide(self, columns: Sequence[CountedColumn]) -> bool:
        """Count the values of columns between the edges that they ask for; False if none of them asks for any."""
        asked = [(column, edges) for column in columns if (edges := column.narrow()).size]
        if asked:
            own = self._mask([column.j for column, _ in asked])
            shift, quantum = self.first.range.shift[own], self.first.quantum[own]
            each = [edges for _, edges in asked]
            found = self.passes(BinsPass, edges=each, quantum=quantum, shift=shift, chosen=own)
            for (column, _), finer in zip(asked, found.cells(), strict=True):
                column.divide(finer)
        return bool(asked)

    def kept(self, columns: Sequence[Column]) -> Kept:
        """Power sums of the kept values of each column."""
        own, ranges = self._mask([column.j for column in columns]), self.first.range
        intervals, zones = (np.array([getattr(column, name) for column in columns]) for name in ("interval", "zones"))
        return kept_sums(self.passes, ranges, own, ranges.family, intervals, zones, self.first.quantum[own])

    def _mask(self, at: list[int]) -> BoolArray:
        chosen = np.zeros(self.first.range.n_features, dtype=bool)
        chosen[at] = True
        return chosen


def _each(job: Callable[[Column], object], columns: Sequence[Column], n_threads: int) -> None:
    """Call the job with every column; each is worth a thread."""
    for_each(lambda k: job(columns[k]), len(columns), SERIAL_VALUES, n_threads)


def _reweight(reader: Reader, columns: list[Column], n_threads: int) -> None:
    """Fit the kept values as often as the estimator's options say, or until a column settles."""

    def begin(column: Column) -> None:
        column.compare()
        column.searched = search_error(column)
        column.error = start_error(column)

    _each(begin, columns, n_threads)
    turn, going = 0, columns

    def look(k: int) -> None:
        going[k].zones = open_zones(going[k], turn)

    def take(k: int) -> None:
        column, near = going[k], total.near[:, k].astype(np.float64)
        column.take(total.part(k), turn)
        if column.open_ends.any():
            column.error = start_error(column) + end_error(column)
        if column.has_cut_off and not column.is_given:
            column.error = step_error(column, np.ldexp(near, int(reader.first.quantum[column.j])))

    while going := [column for column in going if column.chooses(turn)]:
        for_each(look, len(going), SERIAL_VALUES, n_threads)
        total = reader.kept(going)
        for_each(take, len(going), SERIAL_VALUES, n_threads)
        turn += 1
