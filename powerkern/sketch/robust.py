"""Robust fits of data in chunks.

1. Draw a sample, and count exactly the values between sampled ones (`powerkern.sketch.order`). Represent the counts by
   points, and find the start: the lambda that minimises the estimator's objective for these points.
2. Divide the bins that contain medians, median distances and the ends of the kept interval, and count them again.
3. Reweight. Each step keeps the values inside an interval. It sums their powers in a pass over the data, and fits the
   sums by maximum likelihood, which is exact for the rows in the interval.

The positions of rows within bins are unknown; `powerkern.sketch.certificate` bounds the effect on lambda.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from powerkern._engine.threads import SERIAL_VALUES, for_each
from powerkern._estimators.limits import LambdaLimit, apply_limit
from powerkern._estimators.robust import RobustEstimator
from powerkern._estimators.shift import convert_to_data_units
from powerkern._status import Status
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.kernels.results import N_RESULTS
from powerkern.kernels.transforms.family import FAMILIES
from powerkern.sketch.certificate import error_after_step, search_error, start_error, uncertain_ends
from powerkern.sketch.engine import Passes
from powerkern.sketch.order import ColumnSample, CountedColumn
from powerkern.sketch.passes import BinsPass, Kept, sum_kept_values
from powerkern.sketch.robust_column import RobustChunkColumn
from powerkern.sketch.robust_result import build_result, move_lambda
from powerkern.sketch.robust_steps import Reweighting, choose_step, fit_kept_values

#: Number of divisions of cells.
_N_DIVISIONS = 2


def fit_robust(
    passes: Passes, estimator: RobustEstimator, first: ColumnSample, limit: LambdaLimit, n_threads: int
) -> tuple[FloatArray, FloatArray]:
    """Fit every column robustly, given a sample of all chunks.

    Parameters
    ----------
    passes : Passes
        Reads the chunks again, once for each call.
    estimator : RobustEstimator
        The estimator.
    first : ColumnSample
        The result of the first pass.
    limit : LambdaLimit
        Bounds on lambda.
    n_threads : int
        Maximum number of threads.

    Returns
    -------
    results : (p, N_RESULTS) ndarray
        Results, see `kernels.results`.
    bounds : (p,) ndarray
        Bounds on the difference in lambda from a fit of the same rows in memory.
    """
    family, p = FAMILIES[first.range.family], first.range.n_features
    columns = [RobustChunkColumn(first, j, estimator, family) for j in range(p)]
    reader = Reader(passes, first)
    reader.divide([column for column in columns if column.is_binned])
    inexact = [column for column in columns if not column.is_whole]
    _for_each_column(RobustChunkColumn.find_start, inexact, n_threads)
    for _ in range(_N_DIVISIONS):
        inexact = [column for column in inexact if column.is_started]
        reader.divide(inexact)
        _for_each_column(RobustChunkColumn.find_start, inexact, n_threads)
    inexact = [column for column in inexact if column.is_started and not column.is_whole]
    states = _reweight(reader, inexact, n_threads)
    results, bounds = np.empty((p, N_RESULTS)), np.zeros(p)

    def finish(column: RobustChunkColumn) -> None:
        results[column.j], bounds[column.j] = build_result(column, states.get(column.j))

    _for_each_column(finish, columns, n_threads)

    def refit(at: IntArray, bounded: FloatArray) -> FloatArray:
        each = zip(at.tolist(), bounded, strict=True)
        return np.stack([move_lambda(columns[j], states.get(j), results[j], lmbda) for j, lmbda in each])

    apply_limit(refit, family, results, first.range.column_names, limit, np.full(p, np.nan))
    convert_to_data_units(results, first.range.shift)
    return results, bounds


class Reader(NamedTuple):
    """Reader for the passes after the first one, each of which reads only some of the columns."""

    passes: Passes
    first: ColumnSample

    def divide(self, columns: Sequence[CountedColumn]) -> bool:
        """Divide the cells that each column chooses, and count the values in the parts in one pass over the data.

        Return whether there was a pass: False if no column chooses a cell.
        """
        asked = [(column, edges) for column in columns if (edges := column.choose_edges()).size]
        if asked:
            own = self._mask([column.j for column, _ in asked])
            shift, quantum = self.first.range.shift[own], self.first.quantum[own]
            each = [edges for _, edges in asked]
            found = self.passes(BinsPass, edges=each, quantum=quantum, shift=shift, chosen=own)
            for (column, _), finer in zip(asked, found.cells(), strict=True):
                column.divide(finer)
        return bool(asked)

    def read_kept(self, columns: Sequence[RobustChunkColumn], intervals: FloatArray, zones: FloatArray) -> Kept:
        """Sum the powers of the kept values of k columns in a pass over the data.

        Parameters
        ----------
        columns : sequence of RobustChunkColumn
            The columns.
        intervals : (k, 5) ndarray
            The intervals of kept values, as in `KeptPass`.
        zones : (k, 2, 3) ndarray
            The uncertainty of their ends, as in `KeptPass`.
        """
        own, ranges = self._mask([column.j for column in columns]), self.first.range
        return sum_kept_values(self.passes, ranges, own, ranges.family, intervals, zones, self.first.quantum[own])

    def _mask(self, at: list[int]) -> BoolArray:
        """Return a mask of the columns at these positions."""
        chosen = np.zeros(self.first.range.n_features, dtype=bool)
        chosen[at] = True
        return chosen


def _for_each_column(
    job: Callable[[RobustChunkColumn], object], columns: Sequence[RobustChunkColumn], n_threads: int
) -> None:
    """Call ``job(column)`` for every column, on at most `n_threads` threads."""
    for_each(lambda k: job(columns[k]), len(columns), SERIAL_VALUES, n_threads)


def _reweight(reader: Reader, columns: list[RobustChunkColumn], n_threads: int) -> dict[int, Reweighting]:
    """Run the reweighting steps of the estimator, each in a pass over the columns that have not settled.

    Return the final state of each column in a dictionary whose keys are the positions of the columns in the data.
    """
    states: dict[int, Reweighting] = {}

    def begin(column: RobustChunkColumn) -> None:
        alternatives, lost = column.draw_alternatives(), search_error(column)
        error = start_error(column, alternatives, lost)
        states[column.j] = Reweighting(column.found_start.lmbda, int(Status.OK), alternatives, lost, error)

    def choose(column: RobustChunkColumn) -> bool:
        states[column.j], is_chosen = choose_step(column, states[column.j], step_index)
        return is_chosen

    def bracket(k: int) -> None:
        zones[k] = uncertain_ends(going[k], states[going[k].j], step_index)

    def take(k: int) -> None:
        column, near = going[k], total.near[:, k].astype(np.float64)
        state = fit_kept_values(column, states[column.j], total.part(k), step_index)
        error = error_after_step(column, state, np.ldexp(near, int(reader.first.quantum[column.j])))
        states[column.j] = state._replace(error=error)

    _for_each_column(begin, columns, n_threads)
    step_index, going = 0, columns
    while going := [column for column in going if choose(column)]:
        zones = np.empty((len(going), 2, 3))
        for_each(bracket, len(going), SERIAL_VALUES, n_threads)
        intervals = np.array([states[column.j].last_step.interval for column in going])
        total = reader.read_kept(going, intervals, zones)
        for_each(take, len(going), SERIAL_VALUES, n_threads)
        step_index += 1
    return states
