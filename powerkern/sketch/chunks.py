"""Fit data larger than memory, from chunks of rows that can be read repeatedly."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from typing import Any, Unpack

from numpy.typing import ArrayLike

from powerkern._engine.threads import progress_bar
from powerkern._estimators.base import Estimator
from powerkern._estimators.spec import ChunkOptions
from powerkern._input import frames
from powerkern._input.arrays import chunk_errors
from powerkern._input.batches import batches_of
from powerkern._input.foreign import refuse_foreign
from powerkern._input.messages import Rewording
from powerkern._input.reading import OFFERING_NON_NUMERIC
from powerkern._results.grouped_fit import GroupedFit
from powerkern._results.power_fit import PowerFit
from powerkern.location import LocationScale
from powerkern.sketch.driver import fit_with
from powerkern.sketch.engine import MapReduce, Pass
from powerkern.sketch.grouped import fit_groups_with
from powerkern.sketch.location import location_with
from powerkern.sketch.summary import S

#: Stands for a chunk, or its weights, after the last one.
_NONE_LEFT = object()


def fit_chunks(
    chunks: Any,
    family: str = "yeo-johnson",
    estimator: Estimator | str = "mle",
    *,
    sample_weight: Sequence[ArrayLike] | Callable[[], Iterable[ArrayLike]] | str | None = None,
    non_numeric: frames.NonNumeric = "raise",
    progress: bool = False,
    **options: Unpack[ChunkOptions],
) -> PowerFit:
    """Fit data larger than memory: `powerkern.fit` in two passes over chunks of rows.

    Parameters
    ----------
    chunks : sequence, table that can be read in batches, or function that returns one of these or an iterable
        Chunks of rows, each of a form that `powerkern.fit` accepts. It may be a list, such as slices of a memory map; a
        table, column, data set, scanner or ``ParquetFile`` of pyarrow, a lazy frame of polars, a relation of DuckDB, or
        an expression of Ibis; or a function that starts reading from the beginning whenever it is called, such as
        ``lambda: pandas.read_csv("data.csv", chunksize=100_000)``.
        Data frames with the columns of the first one in another order are read in the order of the first one.
        Tables are read in batches of about a million cells (scanners: in their own).
    family : {"yeo-johnson", "box-cox", "best"}, default "yeo-johnson"
        The transform; "best" is the better of both for each column, see Notes.
    estimator : Estimator or str, default "mle"
        As in `powerkern.fit`, except "ppcc", which needs all values in order.
    sample_weight : sequence of array-like, function that returns an iterable, or str, optional
        Non-negative weights of the rows: an array for each chunk, or the name of the column of data frames that holds
        them.
    non_numeric : {"raise", "warn", "ignore"}, default "raise"
        Treatment of non-numeric columns, as in `powerkern.fit`; the first chunk determines them. They are not read from
        tables.
    progress : bool, default False
        Show a progress bar (needs tqdm) that counts chunks, each time that they are read, if the fit takes more than
        about a second.
    **options
        ``standardize``, ``lmbda``, ``shift``, ``ymax``, ``bounds``, ``criterion``, ``infinite``, ``column_names`` and
        ``n_threads``, as for `powerkern.fit`.

    Returns
    -------
    PowerFit
        Lambda agrees with `powerkern.fit` to about 1e-13. `profile` and `confint` need no data. Columns that the grid
        does not resolve (rare, see `finish`) are read again, up to three times, on finer grids; `Status.UNRESOLVED`
        marks columns that remain unresolved.

    Raises
    ------
    TypeError, ValueError
        As in `powerkern.fit`; the message names the chunk and counts rows from its start. Also if `chunks` is an
        iterator or a RecordBatchReader, which can be read only once.

    See Also
    --------
    fit_with : fit chunks that some other engine reads.

    Notes
    -----
    Robust estimators read the data seven times: for ranges and a sample of 2048 values; for exact counts between
    sampled values; twice for finer counts near medians, median distances and cut-offs and in the tails; and three times
    for the power sums of the kept values, an interval to which lambda is then fitted exactly. With
    ``n_reweight="settled"``, and for "mtl", passes go on until the kept values settle; "carroll" takes five passes.
    Columns of at most 2048 values give the results of the fit in memory.

    In longer columns the order of values within a bin is unknown, and the start differs slightly from the start in
    memory. ``fit.lmbda_error`` bounds the effect on lambda; it is usually 0, because no row is that close to a cut-off.
    The status is `Status.BRACKETED` where the bound exceeds 0.01 standard errors. The bound is simulated, not proved:
    one of 15,700 fuzzed columns, with several minima (`Status.MULTIMODAL`), was further off.

    ``family="best"`` fits both families, one after the other: Box-Cox only to columns whose values are all positive. By
    maximum likelihood that takes four passes. Two more compare robust fits on the values that both keep; two to four
    more count values for another `criterion`: "pearson" from exact counts in its classes, "ppcc" from counts between
    1024 values of the transform. Except for ties, the choice agrees with `powerkern.fit`.

    Examples
    --------
    >>> import numpy as np
    >>> import powerkern as pk
    >>> from powerkern.sketch import fit_chunks
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> fit = fit_chunks([X[:300], X[300:]])
    >>> bool(np.abs(fit.lmbda - pk.fit(X).lmbda).max() < 1e-12)
    True
    """
    with reading(chunks, sample_weight, non_numeric, progress) as map_reduce:
        return fit_with(map_reduce, family, estimator, task_threads=options.get("n_threads"), **options)


def fit_groups(
    chunks: Any,
    groups: str | Sequence[str],
    family: str = "yeo-johnson",
    estimator: Estimator | str = "mle",
    *,
    progress: bool = False,
    **options: Unpack[ChunkOptions],
) -> GroupedFit:
    """Fit groups of rows of data larger than memory: `powerkern.fit` with ``groups=``, in passes over chunks.

    Parameters
    ----------
    chunks
        Data frames, or a table that is read in batches, as for `fit_chunks`.
    groups : str or list of str
        The column, or columns, that hold the labels.
    family, estimator, progress, **options
        As for `fit_chunks`.

    Returns
    -------
    GroupedFit
        As `fit_groups_with`, which fits chunks that some other engine reads.

    Examples
    --------
    >>> import numpy as np, polars as pl, powerkern as pk
    >>> from powerkern.sketch import fit_groups
    >>> rng = np.random.default_rng(0)
    >>> frame = pl.DataFrame({"site": rng.choice(["a", "b"], 1000), "dose": rng.lognormal(size=1000)})
    >>> fit = fit_groups(frame.lazy(), "site", "box-cox")
    >>> bool(np.abs(fit.lmbda - pk.fit(frame, "box-cox", groups="site").lmbda).max() < 1e-10)
    True
    """
    with reading(chunks, None, None, progress) as map_reduce:
        return fit_groups_with(
            map_reduce, groups, family, estimator, task_threads=options.get("n_threads"), **options
        )  # fmt: skip


def location_chunks(
    chunks: Any,
    method: str = "median-mad",
    *,
    sample_weight: Sequence[ArrayLike] | Callable[[], Iterable[ArrayLike]] | str | None = None,
    non_numeric: frames.NonNumeric = "raise",
    n_threads: int | None = None,
    progress: bool = False,
    **constants: Any,
) -> LocationScale:
    """Estimate location and scale of data larger than memory: `powerkern.location.location_scale` over chunks.

    Parameters
    ----------
    chunks, sample_weight, non_numeric, progress
        As for `fit_chunks`.
    method, **constants
        As for `powerkern.location.location_scale`.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.

    Returns
    -------
    LocationScale
        As `location_with`, which also describes accuracy, errors and warnings.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.location import location_scale
    >>> from powerkern.sketch import location_chunks
    >>> X = np.random.default_rng(0).normal(size=(20_000, 2))
    >>> found = location_chunks(np.array_split(X, 7))
    >>> bool((found.loc == location_scale(X).loc).all())
    True
    """
    with reading(chunks, sample_weight, non_numeric, progress) as map_reduce:
        return location_with(map_reduce, method, task_threads=n_threads, **constants)


@contextlib.contextmanager
def reading(
    chunks: Any, sample_weight: Any, non_numeric: frames.NonNumeric | None, progress: bool
) -> Iterator[MapReduce]:
    """Yield the engine that reads chunks in this process, one after the other, each with its weights or their name.

    Parameters
    ----------
    chunks : object
        The chunks; see `fit_chunks`.
    sample_weight : object
        Weights, or the name of their column.
    non_numeric : str or None
        Treatment of non-numeric columns; None for callers without this argument.
    progress : bool
        Show a progress bar.
    """
    by_name = sample_weight if isinstance(sample_weight, str) else None
    if batches_of(chunks) is None:
        _check_rereadable("chunks", chunks)
    elif sample_weight is not None and by_name is None:
        raise TypeError("sample_weight must be the name of a column if chunks is a table that is read in batches")
    if sample_weight is not None and by_name is None:
        _check_rereadable("sample_weight", sample_weight)
    first = _first(chunks) if isinstance(non_numeric, str) and non_numeric != "raise" else None
    columns = None if non_numeric is None else frames.chosen_positions(first, non_numeric, by_name)
    order = _Order()
    words = Rewording() if non_numeric is None else OFFERING_NON_NUMERIC

    def map_reduce(function: Pass[S], merge: Callable[[S, S], S]) -> S | None:
        total = None
        for i, (chunk, weight) in enumerate(_with_weights(_read(chunks, columns, order), sample_weight)):
            with words, chunk_errors(f"chunk {i}"):
                part = function(chunk, weight)
                total = part if total is None else merge(total, part)
            if bar is not None:
                bar.update()
        return total

    with progress_bar(None, " chunks", progress) as bar:
        yield map_reduce


def _check_rereadable(name: str, chunks: object) -> None:
    """Raise unless chunks can be read repeatedly."""
    if callable(chunks):
        return
    if isinstance(chunks, Iterator):
        raise TypeError(
            f"{name} is an iterator, which can be read only once, and a fit reads the data twice; pass a function that "
            "restarts it (lambda: ...) or a list of chunks, or use extend, which needs one pass"
        )
    refuse_foreign(chunks, name)
    if isinstance(chunks, str | PathLike):
        raise TypeError(
            f"{name} is a path; pass a table that is read in batches, such as pyarrow.dataset.dataset(path), or a "
            "function that starts reading, such as lambda: pandas.read_csv(path, chunksize=100_000)"
        )
    if not isinstance(chunks, Sequence) or isinstance(chunks, memoryview):
        instead = (
            "divide it into the same chunks"
            if name == "sample_weight"
            else "pass all rows in one array to powerkern.fit"
        )
        raise TypeError(
            f"{name} must be a list with an array for each chunk, or a function that returns an iterable of them, got "
            f"{type(chunks).__name__}; {instead}"
        )


def _first(chunks: Any) -> Any:
    """Return the first chunk, or a row of missing values with its columns."""
    opened = chunks() if callable(chunks) else chunks
    source = batches_of(opened)
    return next(iter(opened), None) if source is None else source.blank


class _Order:
    """The order of the columns of the first chunk, in which later chunks are read, including weights and groups."""

    labels: list[Any] | None = None

    def apply(self, chunks: Iterable[Any]) -> Iterator[Any]:
        """Yield the chunks, data frames with their columns in this order."""
        for chunk in chunks:
            if self.labels is None:
                self.labels = frames.names_of(chunk)
            yield frames.order_chunk(chunk, self.labels)


def _read(chunks: Any, columns: list[int] | None, order: _Order) -> Iterator[Any]:
    """Return the chunks from the start, with all columns or with the columns at these positions of the first chunk."""
    opened = chunks() if callable(chunks) else chunks
    source = batches_of(opened)
    if source is not None:
        names = frames.names_of(source.blank) or []
        return source.of(None if columns is None else [names[j] for j in columns])
    ordered = order.apply(opened)
    return ordered if columns is None else (frames.select(chunk, None, columns) for chunk in ordered)


def _with_weights(chunks: Iterator[Any], sample_weight: Any) -> Iterator[tuple[object, Any]]:
    """Yield chunks with their weights, or with the name of the column of weights; raise if either ends first."""
    if sample_weight is None or isinstance(sample_weight, str):
        yield from zip(chunks, itertools.repeat(sample_weight), strict=False)
        return
    weights = sample_weight() if callable(sample_weight) else sample_weight
    for i, (chunk, weight) in enumerate(itertools.zip_longest(chunks, weights, fillvalue=_NONE_LEFT)):
        if chunk is _NONE_LEFT or weight is _NONE_LEFT:
            more, fewer = ("sample_weight", "chunks") if chunk is _NONE_LEFT else ("chunks", "sample_weight")
            raise ValueError(
                f"{more} has more entries than the {i} of {fewer}; pass an array of weights for each chunk"
            )
        yield chunk, weight
