"""Robust fits of data that can only be read in passes over chunks.

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
from powerkern._estimators.shift import convert_to_data_units
from powerkern._status import Status
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.kernels.results import N_RESULTS
from powerkern.kernels.transforms.family import FAMILIES
from powerkern.sketch.certificate import error_after_step, search_error, start_error, uncertain_ends
from powerkern.sketch.engine import Passes
from powerkern.sketch.order import ColumnSample, CountedColumn
from powerkern.sketch.passes import BinsPass, Kept, kept_sums
from powerkern.sketch.robust_column import RobustChunkColumn
from powerkern.sketch.robust_result import build_result, move_lambda
from powerkern.sketch.robust_steps import Reweighting, choose_step, fit_kept_values

#: Number of divisions of cells.
_N_DIVISIONS = 2


def fit_robust(
    passes: Passes, estimator: RobustEstimator, first: ColumnSample, limit: LambdaLimit, n_threads: int
) -> tuple[FloatArray, FloatArray]:
    """Return the results of every column, and bounds on the difference in lambda from a fit of the rows in memory.

    Parameters
    ----------
    passes : Passes
        Reads the chunks again, once for each call.
    estimator : RobustEstimator
        The estimator.
    first : ColumnSample
        The sample of all chunks, of the first pass.
    limit : LambdaLimit
        Bounds on lambda.
    n_threads : int
        Largest number of threads at work.
    """
    family, p = FAMILIES[first.range.family], first.range.n_features
    columns = [RobustChunkColumn(first, j, estimator, family) for j in range(p)]
    reader = Reader(passes, first)
    reader.divide([column for column in columns if column.is_binned])
    inexact = [column for column in columns if not column.is_whole]
    _each(RobustChunkColumn.find_start, inexact, n_threads)
    for _ in range(_N_DIVISIONS):
        inexact = [column for column in inexact if column.is_started]
        reader.divide(inexact)
        _each(RobustChunkColumn.find_start, inexact, n_threads)
    inexact = [column for column in inexact if column.is_started and not column.is_whole]
    states = _reweight(reader, inexact, n_threads)
    results, bounds = np.empty((p, N_RESULTS)), np.zeros(p)

    def finish(column: RobustChunkColumn) -> None:
        results[column.j], bounds[column.j] = build_result(column, states.get(column.j))

    _each(finish, columns, n_threads)

    def refit(at: IntArray, bounded: FloatArray) -> FloatArray:
        each = zip(at.tolist(), bounded, strict=True)
        return np.stack([move_lambda(columns[j], states.get(j), results[j], lmbda) for j, lmbda in each])

    apply_limit(refit, family, results, first.range.column_names, limit, np.full(p, np.nan))
    convert_to_data_units(results, first.range.shift)
    return results, bounds


class Reader(NamedTuple):
    """Passes over some of the columns of the data."""

    passes: Passes
    first: ColumnSample

    def divide(self, columns: Sequence[CountedColumn]) -> bool:
        """Count the values of each column between its requested edges; return False if no column requests any."""
        asked = [(column, edges) for column in columns if (edges := column.narrow()).size]
        if asked:
            own = self._mask([column.j for column, _ in asked])
            shift, quantum = self.first.range.shift[own], self.first.quantum[own]
            each = [edges for _, edges in asked]
            found = self.passes(BinsPass, edges=each, quantum=quantum, shift=shift, chosen=own)
            for (column, _), finer in zip(asked, found.cells(), strict=True):
                column.divide(finer)
        return bool(asked)

    def read_kept(self, columns: Sequence[RobustChunkColumn], intervals: FloatArray, zones: FloatArray) -> Kept:
        """Return the power sums of the values of each column inside its interval, see `KeptPass`."""
        own, ranges = self._mask([column.j for column in columns]), self.first.range
        return kept_sums(self.passes, ranges, own, ranges.family, intervals, zones, self.first.quantum[own])

    def _mask(self, at: list[int]) -> BoolArray:
        """Return a mask of the columns at these positions."""
        chosen = np.zeros(self.first.range.n_features, dtype=bool)
        chosen[at] = True
        return chosen


def _each(job: Callable[[RobustChunkColumn], object], columns: Sequence[RobustChunkColumn], n_threads: int) -> None:
    """Call the job with every column, on several threads."""
    for_each(lambda k: job(columns[k]), len(columns), SERIAL_VALUES, n_threads)


def _reweight(reader: Reader, columns: list[RobustChunkColumn], n_threads: int) -> dict[int, Reweighting]:
    """Run the reweighting steps of the estimator; a column that has settled takes no further steps.

    Return the state of each column, by its position in the data.
    """
    states: dict[int, Reweighting] = {}

    def begin(column: RobustChunkColumn) -> None:
        alternatives, lost = column.draw_alternatives(), search_error(column)
        error = start_error(column, alternatives, lost)
        states[column.j] = Reweighting(column.found_start.lmbda, int(Status.OK), alternatives, lost, error)

    def choose(column: RobustChunkColumn) -> bool:
        states[column.j], is_chosen = choose_step(column, states[column.j], turn)
        return is_chosen

    def bracket(k: int) -> None:
        zones[k] = uncertain_ends(going[k], states[going[k].j], turn)

    def take(k: int) -> None:
        column, near = going[k], total.near[:, k].astype(np.float64)
        state = fit_kept_values(column, states[column.j], total.part(k), turn)
        error = error_after_step(column, state, np.ldexp(near, int(reader.first.quantum[column.j])))
        states[column.j] = state._replace(error=error)

    _each(begin, columns, n_threads)
    turn, going = 0, columns
    while going := [column for column in going if choose(column)]:
        zones = np.empty((len(going), 2, 3))
        for_each(bracket, len(going), SERIAL_VALUES, n_threads)
        intervals = np.array([states[column.j].last_step.interval for column in going])
        total = reader.read_kept(going, intervals, zones)
        for_each(take, len(going), SERIAL_VALUES, n_threads)
        turn += 1
    return states
