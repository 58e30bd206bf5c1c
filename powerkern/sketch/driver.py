"""The one driver of fits from chunks, whatever engine reads them."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from powerkern._engine.threads import progress_bar, thread_count
from powerkern._estimators import NearestNormal, Robust, other_estimator, plain_options
from powerkern._lambda_limit import lambda_limit
from powerkern._power_fit import PowerFit, warn_overflow, warn_unfitted
from powerkern._typing import BoolArray, Bounds
from powerkern._validate import as_choice, as_flag, column_label
from powerkern.fitting import check_together
from powerkern.kernels.family import FAMILIES
from powerkern.kernels.results import STATUS
from powerkern.sketch.merging import finish, merge
from powerkern.sketch.order import Sample, check_unchanged
from powerkern.sketch.passes import MapReduce, Pass, Passed, RangePass, S, SamplePass, SketchPass
from powerkern.sketch.robust import fit_robust
from powerkern.sketch.summaries import Grid, Range, Sketch, resolved


def fit_with(
    map_reduce: MapReduce,
    family: str = "yeo-johnson",
    estimator: str = "mle",
    *,
    standardize: bool = True,
    sample_weight: str | None = None,
    lmbda: ArrayLike | None = None,
    shift: ArrayLike = 0.0,
    ymax: float | None = None,
    bounds: Bounds | None = None,
    column_names: Sequence[str] | None = None,
    n_threads: int | None = None,
    task_threads: int | None = 1,
    progress: bool = False,
    **estimator_options: Any,
) -> PowerFit:
    """Fit of data that some engine holds: `powerkern.fit` in passes of "ask every chunk, and merge the answers".

    Parameters
    ----------
    map_reduce : function
        The engine: ``map_reduce(function, merge)`` calls ``function(chunk)``, or ``function(chunk, weight)`` where rows
        have weights, for every chunk of rows, wherever it is, and returns the results merged by ``merge(a, b)``, two
        at a time, in any order; None if there are no chunks. It is called once for each pass over the data. `function`
        and what it returns, some 10 kB a column, can be pickled; chunks are anything that `powerkern.fit` takes, and
        may have no rows. `function` has a method ``part(columns)``: what to ask of chunks that have only these columns
        (indices), None if nothing; `beside` puts the results of such blocks of columns side by side.
    family, standardize, lmbda, shift, ymax, bounds, column_names
        As for `powerkern.fit`.
    estimator : {"mle", "rewml", "rewml-nr", "mtl", "carroll"}, default "mle"
        As for `powerkern.fit`. Robust estimators take five passes, or some more, see Notes of `fit_chunks`.
    sample_weight : str, optional
        The column that holds the weights of the rows, where chunks are data frames; it is not fitted. Default: those
        that the engine hands over with the chunks, or none.
    n_threads : int, optional
        Threads that fit the sums, here; default: all CPUs of this process.
    task_threads : int or None, default 1
        Threads of each call of `function`; None: all CPUs of the process that calls it. One is right for engines that
        call it side by side.
    progress : bool, default False
        Show a bar (needs tqdm) that counts the passes over the data.
    **estimator_options
        The options of the estimator, as for `powerkern.fit`.

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
    Any map and any reduction will do, such as those of a pool of processes:

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
    as_choice("family", family, FAMILIES)
    meant = inspect.signature(fit_with).parameters if estimator_options else ()
    other = other_estimator(estimator, estimator_options, meant)
    check_together(family, None if other is None else estimator, lmbda, ymax)
    standardize = as_flag("standardize", standardize)
    if isinstance(other, NearestNormal):
        raise ValueError(
            f"estimator={estimator!r} needs every value in its order, which no summary of chunks holds; draw rows at "
            "random and fit these by powerkern.fit, or use 'mle' or a robust estimator"
        )
    names = None if column_names is None else tuple(column_names)
    threads = thread_count(n_threads)
    with progress_bar(2 if other is None else None, " passes", progress) as bar:
        passed = passes_of(map_reduce, bar)
        options: dict[str, Any] = {"weight_name": sample_weight, "n_threads": task_threads}
        ranges = RangePass(family=family, shift=shift, column_names=names, **options)
        if other is not None:
            return _fit_otherwise(
                passed, other, ranges, options, standardize, bounds, estimator, estimator_options, threads
            )

        def read(grid: Grid, chosen: BoolArray) -> Sketch:
            sums: Sketch = passed(SketchPass(grid=grid.part(chosen), chosen=chosen, **options))
            return sums

        found = passed(ranges)
        total = resolved(found.grid(), read)
        _check_unchanged(found, total)
    return finish(total, standardize=standardize, lmbda=lmbda, ymax=ymax, bounds=bounds, n_threads=threads)


def passes_of(map_reduce: MapReduce, bar: Any = None) -> Passed:
    """Passes over the data: sends one to all chunks, and returns what they answer, merged."""

    def passed(function: Pass[S]) -> S:
        total = map_reduce(function, _merged)
        if total is None:
            raise ValueError("there are no chunks: none were given, or they could be read only once")
        if bar is not None:
            bar.update()
        return total

    return passed


def _check_unchanged(found: Range, total: Sketch) -> None:
    """Refuse sums of other rows than those whose ranges were found."""
    for j, (before, after) in enumerate(zip(found.n_obs, total.n_obs, strict=True)):
        check_unchanged(column_label(j, found.column_names), before, after)


def _fit_otherwise(
    passed: Passed,
    other: Robust,
    ranges: RangePass,
    options: dict[str, Any],
    standardize: bool,
    bounds: Bounds | None,
    estimator: str,
    estimator_options: dict[str, Any],
    n_threads: int,
) -> PowerFit:
    """The fit by a robust estimator."""
    first: Sample = passed(SamplePass(ranges=ranges, **options))
    limit = lambda_limit(None, bounds, first.range.n_features, standardize)
    results, error = fit_robust(passed, other, FAMILIES[ranges.family], first, limit, options, n_threads)
    warn_unfitted(results[:, STATUS], first.range.column_names)
    fitted = PowerFit(
        ranges.family,
        results,
        estimator=estimator,
        estimator_options=plain_options(estimator_options),
        quantile=other.quantile,
        standardize=standardize,
        column_names=first.range.column_names,
        was_vector=first.range.was_vector,
        unit_weights=first.unit if first.weighted and (first.unit < 1.0).any() else None,
        lmbda_error=error,
    )
    if not standardize:
        warn_overflow(fitted)
    return fitted


def _merged(a: S, b: S) -> S:
    """`merge`, of summaries of any one kind."""
    both: Any = (a, b)
    whole: S = merge(*both)
    return whole
