"""The one driver of fits from chunks, whatever engine reads them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from powerkern._engine.threads import progress_bar, thread_count
from powerkern._estimators.estimators import Estimator, as_estimator
from powerkern._estimators.likelihood import ML
from powerkern._estimators.limits import LambdaLimit
from powerkern._estimators.nearest_normal import NearestNormal
from powerkern._estimators.power_sums import MixedSums, PowerSums
from powerkern._estimators.robust import Robust
from powerkern._estimators.shift import given_shift
from powerkern._fit.best_family import CRITERIA, LIKELIHOOD
from powerkern._fit.fit import check_together
from powerkern._input.arguments import given_bounds
from powerkern._input.arrays import as_choice, as_flag, column_label, listed
from powerkern._input.messages import did_you_mean
from powerkern._results.columns import ColumnResults, FitInfo, Source
from powerkern._results.power_fit import BEST, FIT_FAMILIES, PowerFit, finished
from powerkern._typing import BoolArray, Bounds, FloatArray, IntArray
from powerkern.kernels.transforms.family import FAMILIES
from powerkern.sketch.engine import MapReduce, Passes
from powerkern.sketch.families import box_cox_is_better
from powerkern.sketch.grids import Grid, Range
from powerkern.sketch.order import check_unchanged
from powerkern.sketch.passes import RangePass, SamplePass, SketchPass, resolved
from powerkern.sketch.robust import fit_robust
from powerkern.sketch.sketches import Sketch
from powerkern.sketch.steps import finish_results


class FitOptions(TypedDict, total=False):
    """The arguments of `powerkern.fit` that every fit from chunks has, whatever reads them."""

    standardize: bool
    lmbda: ArrayLike | None
    shift: ArrayLike
    ymax: float | None
    bounds: Bounds | None
    criterion: str
    column_names: Sequence[str] | None
    n_threads: int | None


def fit_with(
    map_reduce: MapReduce,
    family: str = "yeo-johnson",
    estimator: Estimator | str = "mle",
    *,
    sample_weight: str | None = None,
    task_threads: int | None = 1,
    progress: bool = False,
    **options: Unpack[FitOptions],
) -> PowerFit:
    """Fit of data that some engine holds: `powerkern.fit` in passes of "ask every chunk, and merge the answers".

    Parameters
    ----------
    map_reduce : function
        The engine: ``map_reduce(function, merge)`` calls ``function(chunk)``, or ``function(chunk, sample_weight)``
        where rows have weights, for every chunk of rows, wherever it is, and returns the results merged by
        ``merge(a, b)``, two at a time, in any order; None if there are no chunks. It is called once for each pass over
        the data. `function` and its results, some 10 kB per column, can be pickled; chunks are anything that
        `powerkern.fit` takes, and may have no rows. See `powerkern.sketch.engine` for chunks of some of the columns.
    family, estimator
        As for `fit_chunks`.
    sample_weight : str, optional
        The column that holds the weights of the rows, where chunks are data frames; it is not fitted. Default: the
        weights that the engine passes with the chunks, or none.
    task_threads : int or None, default 1
        Threads of each call of `function`; None: all CPUs of the process that calls it. One is right for engines that
        call it side by side.
    progress : bool, default False
        Show a bar (needs tqdm) that counts the passes over the data.
    **options
        As for `fit_chunks`; ``n_threads`` are the threads that fit the sums, here.

    Returns
    -------
    PowerFit
        As `fit_chunks`.

    Raises
    ------
    TypeError, ValueError
        As `powerkern.fit`; rows are counted from the start of the chunk. There are no chunks, or a pass finds other
        rows than the one before.

    See Also
    --------
    fit_chunks : the same for chunks that this process reads.

    Examples
    --------
    Any map and any reduction will do, such as a pool's:

    >>> import functools
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> import numpy as np
    >>> import powerkern as pk
    >>> from powerkern.sketch import fit_with
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> with ThreadPoolExecutor(2) as pool:
    ...     def map_reduce(function, merge):
    ...         return functools.reduce(merge, pool.map(function, np.array_split(X, 10)))
    ...     fit = fit_with(map_reduce)
    >>> bool(np.abs(fit.lmbda - pk.fit(X).lmbda).max() < 1e-12)
    True
    """
    check_options(options)
    fit, unbounded = fit_columns(map_reduce, family, estimator, sample_weight, task_threads, progress, **options)
    return finished(fit.info, fit.columns, fit.source, unbounded=unbounded)


def check_options(options: Iterable[str]) -> None:
    """Raise before the first pass if an option does not exist."""
    known = FitOptions.__annotations__
    for name in options:
        if name not in known:
            raise TypeError(f"{name!r} is not an option of powerkern.sketch.fit_chunks{did_you_mean(name, known)}")


def fit_columns(
    map_reduce: MapReduce,
    family: str,
    estimator: Estimator | str,
    sample_weight: str | None,
    task_threads: int | None,
    progress: bool,
    *,
    standardize: bool = True,
    lmbda: ArrayLike | None = None,
    shift: ArrayLike = 0.0,
    ymax: float | None = None,
    bounds: Bounds | None = None,
    criterion: str = LIKELIHOOD,
    column_names: Sequence[str] | None = None,
    n_threads: int | None = None,
) -> tuple[PowerFit, bool]:
    """The fit of `fit_with`, without its warnings; and whether nothing kept raw values from overflowing."""
    as_choice("family", family, FIT_FAMILIES)
    as_choice("criterion", criterion, (LIKELIHOOD, *CRITERIA))
    estimator = as_estimator(estimator)
    check_together(family, estimator, lmbda, ymax, criterion)
    if isinstance(estimator, ML) and estimator.prestandardize != "none":
        raise ValueError("ML(prestandardize=...) needs the rows in memory: pk.fit(X, ...), not chunks of them")
    solver = estimator.solver()
    if isinstance(solver, NearestNormal):
        raise ValueError(
            f"estimator={estimator.name!r} needs every value in its order, which no summary of chunks holds; draw rows "
            "at random and fit these by powerkern.fit, or use 'mle' or a robust estimator"
        )
    standardize = as_flag("standardize", standardize)
    names = None if column_names is None else tuple(listed(column_names))
    with progress_bar(2 if solver is None and family != BEST else None, " passes", progress) as bar:
        passes = Passes(map_reduce, sample_weight, task_threads, bar)
        fits = _Fits(passes, solver, standardize, lmbda, ymax, thread_count(n_threads))
        if family == BEST:
            given_shift(shift, BEST, np.size(shift))
            found = fits.better(names, bounds, criterion)
        else:
            found = fits.by(family, shift, names, bounds)
    info = FitInfo(family, estimator, standardize, found.range.column_names, found.range.was_vector)
    columns = ColumnResults(found.results, found.families, unit_weights=found.unit_weights, lmbda_error=found.error)
    return PowerFit(info, columns, Source(sums=found.sums)), lmbda is not None or solver is not None


class _Found(NamedTuple):
    """The results of every column."""

    range: Range
    results: FloatArray
    families: IntArray
    total: Sketch | None = None  #: by maximum likelihood
    sums: PowerSums | MixedSums | None = None
    error: FloatArray | None = None
    unit_weights: FloatArray | None = None


class _Fits(NamedTuple):
    """Fits by one family, or by the better of both."""

    passes: Passes
    solver: Robust | None
    standardize: bool
    lmbda: ArrayLike | None
    ymax: float | None
    n_threads: int

    def by(self, family: str, shift: ArrayLike, names: tuple[str, ...] | None, bounds: Bounds | None) -> _Found:
        """The fit of every column by one family."""
        if self.solver is not None:
            return self._robustly(self.solver, family, shift, names, bounds)

        found = self.passes(RangePass, family=family, shift=shift, column_names=names)
        passes = self._passes_after(found, names)

        def read(grid: Grid, chosen: BoolArray) -> Sketch:
            return passes(SketchPass, grid=grid, chosen=chosen)

        total = resolved(found.grid(), read)
        _check_unchanged(found, np.arange(found.n_features), total.n_obs)
        results, sums = finish_results(total, self.standardize, self.lmbda, self.ymax, bounds, self.n_threads)
        return _Found(found, results, np.full(len(results), FAMILIES[family]), total, sums)

    def _robustly(
        self, solver: Robust, family: str, shift: ArrayLike, names: tuple[str, ...] | None, bounds: Bounds | None
    ) -> _Found:
        first = self.passes(SamplePass, family=family, shift=shift, column_names=names)
        limit = LambdaLimit(np.inf, False, given_bounds(bounds, first.range.n_features, first.range.column_names))
        passes = self._passes_after(first.range, names)
        results, error = fit_robust(passes, solver, first, limit, self.n_threads)
        unit = first.unit if first.weighted and (first.unit < 1.0).any() else None
        families = np.full(len(results), FAMILIES[family])
        return _Found(first.range, results, families, error=error, unit_weights=unit)

    def _passes_after(self, found: Range, names: tuple[str, ...] | None) -> Passes:
        """Return the passes after the first, which found the labels of the columns unless `names` replaced them."""
        return self.passes if names is not None else self.passes.with_labels(found.column_names)

    def better(self, names: tuple[str, ...] | None, bounds: Bounds | None, criterion: str) -> _Found:
        """The fit of every column by the better of the two families, of which Box-Cox is for positive columns only."""
        found = self.by("yeo-johnson", 0.0, names, bounds)
        positive = np.asarray((found.range.x_min > 0.0) & (found.range.count > 0.0))
        if not positive.any():
            return found
        at, p = np.flatnonzero(positive), positive.size
        passes = self._passes_after(found.range, names)
        names = tuple(found.range.column_names or list[Any](range(p)))
        low, high = given_bounds(bounds, p, found.range.column_names)[:, positive]
        own = self._replace(passes=dataclasses.replace(passes, columns=positive))
        other = own.by("box-cox", 0.0, names, (low, high))
        _check_unchanged(found.range, at, other.range.n_obs)
        better = box_cox_is_better(
            passes,
            found.range,
            positive,
            other.results,
            found.results[positive],
            criterion,
            self.solver is None,
            self.n_threads,
        )
        return _mixed(found, other, at, better)


def _mixed(found: _Found, other: _Found, at: IntArray, better: BoolArray) -> _Found:
    """The results of every column, from the other family where that is better; it fitted the columns `at`."""
    chosen = at[better]
    found.results[chosen], found.families[chosen] = other.results[better], other.families[better]
    if found.error is not None and other.error is not None:
        found.error[chosen] = other.error[better]
    if found.total is None or other.total is None:
        return found
    rest = np.setdiff1d(np.arange(len(found.results)), chosen)
    parts = ((rest, found.total, rest), (chosen, other.total, np.flatnonzero(better)))
    return found._replace(sums=MixedSums([(to, total.part(own).power_sums()) for to, total, own in parts if to.size]))


def _check_unchanged(found: Range, at: IntArray, after: FloatArray) -> None:
    """Raise if a later pass read other rows, in the columns `at`, than the first."""
    for j, first, later in zip(at.tolist(), found.n_obs[at].tolist(), after.tolist(), strict=True):
        check_unchanged(column_label(j, found.column_names), first, later)
