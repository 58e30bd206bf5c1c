"""The one driver of fits from chunks, whatever engine reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powerkern._engine.threads import progress_bar
from powerkern._estimators import ESTIMATORS
from powerkern._power_fit import PowerFit
from powerkern._typing import BoolArray, Bounds
from powerkern._validate import as_choice
from powerkern.kernels.family import FAMILIES
from powerkern.sketch.merging import finish, merge
from powerkern.sketch.passes import MapReduce, Pass, RangePass, S, SketchPass
from powerkern.sketch.summaries import Grid, Sketch, replaced, unresolved

#: How often columns that their grid does not resolve are read again, on a finer one.
_REREADINGS = 3


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
    estimator : {"mle"}
        Maximum likelihood.
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

    Returns
    -------
    PowerFit
        As `fit_chunks`.

    Raises
    ------
    TypeError, ValueError
        As `powerkern.fit`; rows are counted from the start of the chunk. There are no chunks, or no rows.

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
    check_estimator(estimator)
    names = None if column_names is None else tuple(column_names)
    with progress_bar(2, " passes", progress) as bar:

        def passed(function: Pass[S]) -> S:
            total = map_reduce(function, _merged)
            if total is None:
                raise ValueError("there are no chunks; there is nothing to do")
            if bar is not None:
                bar.update()
            return total

        options: dict[str, Any] = {"weight_name": sample_weight, "n_threads": task_threads}
        ranges = passed(RangePass(family=family, shift=shift, column_names=names, **options))

        def read(grid: Grid, chosen: BoolArray) -> Sketch:
            return passed(SketchPass(grid=grid.part(chosen), chosen=chosen, **options))

        total = resolved(ranges.grid(), read)
    return finish(total, standardize=standardize, lmbda=lmbda, ymax=ymax, bounds=bounds, n_threads=n_threads)


def _merged(a: S, b: S) -> S:
    """`merge`, of summaries of any one kind."""
    both: Any = (a, b)
    whole: S = merge(*both)
    return whole


def resolved(grid: Grid, read: Callable[[Grid, BoolArray], Sketch]) -> Sketch:
    """The sketch of all data, columns that their grid does not resolve on finer ones.

    Parameters
    ----------
    grid : Grid
        For the range of the data.
    read : function
        ``read(grid, chosen)`` passes over the data and returns the sketch of the columns of the mask `chosen`; the
        grid has all columns.

    Returns
    -------
    Sketch
    """
    total = read(grid, np.ones(grid.n_features, dtype=bool))
    for _ in range(_REREADINGS):
        coarse = unresolved(total)
        if not coarse.any():
            break
        total = replaced(total, read(total.grid.refined(coarse), coarse), coarse)
    return total


def check_estimator(estimator: str) -> None:
    """Refuse estimators that need more than sums."""
    if as_choice("estimator", estimator, ("mle", *ESTIMATORS)) != "mle":
        raise ValueError(
            f"estimator={estimator!r} needs the order of all values, which sums over chunks do not hold; draw rows at "
            "random and fit these by powerkern.fit, or use 'mle'"
        )
