"""Fit columns in passes over chunks; the same code drives every engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np

from powerkern._engine.threads import progress_bar, thread_count
from powerkern._estimators.base import Estimator
from powerkern._estimators.power_sums import MixedSums, PowerSums
from powerkern._estimators.robust import RobustEstimator
from powerkern._estimators.spec import BEST, ChunkOptions, FitSpec
from powerkern._input.arrays import column_label, to_list
from powerkern._input.censoring import NO_MARKS, Marks
from powerkern._input.messages import did_you_mean
from powerkern._results.column_labels import ColumnLabels
from powerkern._results.column_table import ColumnTable
from powerkern._results.power_fit import PowerFit, build_power_fit
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.kernels.transforms.family import FAMILIES
from powerkern.sketch.engine import Engine, MapReduce, Passes
from powerkern.sketch.families import box_cox_is_better
from powerkern.sketch.grids import Grid, Range
from powerkern.sketch.order import check_unchanged
from powerkern.sketch.passes import RangePass, SamplePass, SketchPass, sketch_until_resolved
from powerkern.sketch.robust import fit_robust
from powerkern.sketch.sketches import Sketch
from powerkern.sketch.steps import finish_results


def fit_columns(
    map_reduce: MapReduce,
    family: str,
    estimator: Estimator | str,
    *,
    sample_weight: str | None,
    progress: bool,
    options: Mapping[str, Any],
    marks: Marks = NO_MARKS,
) -> PowerFit:
    """Fit the columns of data that an engine reads, in passes over its chunks.

    Parameters
    ----------
    map_reduce : MapReduce
        The engine.
    family, estimator
        As for `fit_chunks`.
    sample_weight : str or None
        Name of the column of weights, if chunks are data frames. None: the engine passes weights with the chunks, or
        there are none.
    progress : bool
        Show a progress bar that counts the passes over the data.
    options : mapping
        Options named in `ChunkOptions`; any other name raises TypeError.
    marks : Marks
        Marks of censored cells: the names of columns that mark them, or marks in any other form, which the engine must
        pass with the chunks.
    """
    job = ChunkJob.checked(family, estimator, map_reduce.task_threads, progress, marks=marks, **options)
    fit = job.fit(map_reduce.engine, sample_weight)
    return build_power_fit(fit._spec, fit._labels, fit._table, fit._data)


@dataclass(frozen=True)
class ChunkJob:
    """The checked options of a fit from chunks.

    Attributes
    ----------
    spec : FitSpec
        The arguments of the fit.
    column_names : tuple or None
        Names of the columns in results.
    n_threads : int
        Threads that fit the sums.
    task_threads : int or None
        Threads that summarise a chunk; see `MapReduce`.
    progress : bool
        Show a progress bar that counts the passes over the data.
    flags : Marks
        Names of the columns that mark censored cells.
    """

    spec: FitSpec
    column_names: tuple[Any, ...] | None
    n_threads: int
    task_threads: int | None
    progress: bool
    flags: Marks

    @classmethod
    def checked(
        cls,
        family: str,
        estimator: Estimator | str,
        task_threads: int | None,
        progress: bool,
        *,
        grouped: bool = False,
        marks: Marks = NO_MARKS,
        **options: Any,
    ) -> ChunkJob:
        """Check the options of a fit from chunks, and return them as a job.

        Parameters
        ----------
        family, estimator, progress, **options
            As in `fit_chunks`; options that are not in `ChunkOptions` raise TypeError.
        task_threads : int or None
            As in `MapReduce`.
        grouped : bool
            Whether groups of rows are fitted.
        marks : Marks
            The censored cells, as in `fit_columns`.
        """
        known = ChunkOptions.__annotations__
        for name in options:
            if name not in known:
                raise TypeError(f"{name!r} is not an option of powerkern.sketch.fit_chunks{did_you_mean(name, known)}")
        names, n_threads = options.pop("column_names", None), thread_count(options.pop("n_threads", None))
        options["censored"] = marks.are_given or options.get("limits") is not None
        spec = FitSpec.checked(grouped=grouped, in_chunks=True, family=family, estimator=estimator, **options)
        flags = Marks(*(each if isinstance(each, dict) else None for each in marks))
        return cls(spec, None if names is None else tuple(to_list(names)), n_threads, task_threads, progress, flags)

    def fit(self, engine: Engine, sample_weight: str | None = None) -> PowerFit:
        """Fit all chunks, without emitting warnings.

        Parameters
        ----------
        engine : function
            As in `MapReduce`.
        sample_weight : str, optional
            Name of the column of weights.
        """
        spec = self.spec
        n_passes = 2 if spec.estimator.has_likelihood and spec.family != BEST else None
        with progress_bar(n_passes, " passes", self.progress) as bar:
            passes = Passes(engine, sample_weight, self.task_threads, bar, infinite=spec.infinite, flags=self.flags)
            fitter = _ChunkFitter(passes, spec, self.n_threads)
            found = (
                fitter.fit_better_family(self.column_names)
                if spec.family == BEST
                else fitter.fit_family(self.column_names)
            )
        p, names = found.range.n_features, found.range.column_names
        columns = ColumnTable(
            found.results,
            found.families,
            unit_weights=found.unit_weights,
            lmbda_error=found.error,
            censored=found.censored,
        )
        labels = ColumnLabels(names, was_vector=found.range._was_vector)
        return PowerFit(spec.match_columns(p, names)[0], labels, columns, found.sums)


class _ChunkFit(NamedTuple):
    """The results of a fit from chunks, for p columns.

    Attributes
    ----------
    range : Range
        The ranges of the columns.
    results : (p, N_RESULTS) ndarray
        Results, see `kernels.results`.
    families : (p,) ndarray of int
        Code of the family of each column.
    total : Sketch, optional
        The sketch of all rows; maximum likelihood only.
    sums : PowerSums or MixedSums, optional
        The sums that the likelihood needs; maximum likelihood only.
    error : (p,) ndarray, optional
        Bounds on the error of lambda; robust estimators and censored columns only.
    unit_weights : (p,) ndarray, optional
        The weight that counts as one value; see `ColumnSample.unit`.
    censored : ndarray, optional
        Results on censored cells; see `FinishedSums`.
    """

    range: Range
    results: FloatArray
    families: IntArray
    total: Sketch | None = None
    sums: PowerSums | MixedSums | None = None
    error: FloatArray | None = None
    unit_weights: FloatArray | None = None
    censored: FloatArray | None = None


class _ChunkFitter(NamedTuple):
    """Fitter of the columns of chunks, with one family or with the better of the two."""

    passes: Passes
    spec: FitSpec
    n_threads: int

    def fit_family(self, names: tuple[str, ...] | None) -> _ChunkFit:
        """Fit every column with the family in `spec`; `names` are the names of the columns in results, or None."""
        spec = self.spec
        if not spec.estimator.has_likelihood:
            return self._fit_robustly(names)

        found = self.passes(RangePass, family=spec.family, shift=spec.shift, limits=spec.limits, column_names=names)
        passes = self.passes.with_labels(found.labels)

        def read(grid: Grid, chosen: BoolArray) -> Sketch:
            return passes(SketchPass, grid=grid, chosen=chosen)

        total = sketch_until_resolved(found.grid(), read)
        _check_unchanged(found, np.arange(found.n_features), total.n_obs)
        fit = finish_results(total, spec, self.n_threads)
        families = np.full(len(fit.results), FAMILIES[spec.family])
        return _ChunkFit(found, fit.results, families, total, fit.sums, fit.error, censored=fit.censored)

    def _fit_robustly(self, names: tuple[str, ...] | None) -> _ChunkFit:
        spec = self.spec
        first = self.passes(SamplePass, family=spec.family, shift=spec.shift, column_names=names)
        asked = spec.per_column(first.range.n_features, first.range.column_names)
        passes = self.passes.with_labels(first.range.labels)
        limit = asked.limit._replace(ymax=np.inf)
        results, error = fit_robust(passes, cast(RobustEstimator, spec.estimator), first, limit, self.n_threads)
        unit = first.unit if first.weighted and (first.unit < 1.0).any() else None
        families = np.full(len(results), FAMILIES[spec.family])
        return _ChunkFit(first.range, results, families, error=error, unit_weights=unit)

    def fit_better_family(self, names: tuple[str, ...] | None) -> _ChunkFit:
        """Fit every column with the better of the two families; `names` are as in `fit_family`.

        Box-Cox is tried only for columns of positive values.
        """
        found = self._replace(spec=replace(self.spec, family="yeo-johnson")).fit_family(names)
        positive = np.asarray((found.range.x_min > 0.0) & (found.range.count > 0.0))
        if not positive.any():
            return found
        at, p = np.flatnonzero(positive), positive.size
        passes = self.passes.with_labels(found.range.labels)
        names = tuple(found.range.column_names or list[Any](range(p)))
        part = replace(self.spec.match_columns(p, found.range.column_names)[0].part(at), family="box-cox")
        other = _ChunkFitter(replace(passes, columns=positive), part, self.n_threads).fit_family(names)
        _check_unchanged(found.range, at, other.range.n_obs)
        better = box_cox_is_better(
            passes,
            found.range,
            positive,
            other.results,
            found.results[positive],
            self.spec.criterion,
            self.spec.estimator.has_likelihood,
            self.n_threads,
        )
        return _mix_families(found, other, at, better)


def _mix_families(fits: _ChunkFit, other: _ChunkFit, at: IntArray, better: BoolArray) -> _ChunkFit:
    """Combine the fits by two families: replace results where the other family is better.

    Parameters
    ----------
    fits : _ChunkFit
        The fits of all columns by the first family; arrays are modified in place.
    other : _ChunkFit
        The fits of k columns by the other family.
    at : (k,) ndarray of int
        Positions of these columns.
    better : (k,) ndarray of bool
        Whether the other family is better.
    """
    chosen = at[better]
    fits.results[chosen], fits.families[chosen] = other.results[better], other.families[better]
    if fits.error is not None and other.error is not None:
        fits.error[chosen] = other.error[better]
    if fits.total is None or other.total is None:
        return fits
    rest = np.setdiff1d(np.arange(len(fits.results)), chosen)
    parts = ((rest, fits.total, rest), (chosen, other.total, np.flatnonzero(better)))
    return fits._replace(sums=MixedSums([(to, total.part(own)._power_sums()) for to, total, own in parts if to.size]))


def _check_unchanged(ranges: Range, at: IntArray, after: FloatArray) -> None:
    """Raise if a later pass did not read the same rows as the first.

    Parameters
    ----------
    ranges : Range
        The ranges of all columns from the first pass.
    at : (k,) ndarray of int
        Positions of the columns to compare.
    after : (k,) ndarray
        Total weights of these columns in the later pass.
    """
    for j, first, later in zip(at.tolist(), ranges.n_obs[at].tolist(), after.tolist(), strict=True):
        check_unchanged(column_label(j, ranges.column_names), first, later)
