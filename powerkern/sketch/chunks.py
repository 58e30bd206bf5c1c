"""Fit data larger than memory, from chunks of rows that can be read repeatedly."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from typing import Any, NamedTuple, Unpack, overload

from numpy.typing import ArrayLike

from powerkern._engine.threads import progress_bar, thread_count
from powerkern._estimators.base import Estimator
from powerkern._estimators.spec import ChunkOptions
from powerkern._input import frames
from powerkern._input.arrays import chunk_errors
from powerkern._input.batches import batches_of
from powerkern._input.censoring import NO_MARKS, Marks, as_ends
from powerkern._input.foreign import refuse_foreign
from powerkern._input.reading import OFFERING_NON_NUMERIC
from powerkern._results.grouped_fit import GroupedFit
from powerkern._results.power_fit import PowerFit
from powerkern.location import LocationScale
from powerkern.sketch.driver import fit_columns
from powerkern.sketch.engine import MapReduce, Pass
from powerkern.sketch.grouped import columns_of_groups, fit_groups
from powerkern.sketch.location import locate_columns
from powerkern.sketch.summary import S

#: Weights of the rows: for each chunk, or the name of their column.
ChunkWeights = Sequence[ArrayLike] | Callable[[], Iterable[ArrayLike]] | str | None

#: Marks of cells, or ends of intervals: an array of its shape for each chunk, or None.
ChunkMarks = Sequence[Any] | Callable[[], Iterable[Any]] | dict[Any, Any] | None

#: Stands for a chunk, or its weights, after the last one.
_NONE_LEFT = object()


@overload
def fit_chunks(
    chunks: Any,
    family: str = ...,
    estimator: Estimator | str = ...,
    *,
    groups: None = None,
    sample_weight: ChunkWeights = ...,
    below: ChunkMarks = ...,
    above: ChunkMarks = ...,
    between: tuple[ChunkMarks, ChunkMarks] | None = ...,
    non_numeric: frames.NonNumeric = ...,
    progress: bool = ...,
    **options: Unpack[ChunkOptions],
) -> PowerFit: ...


@overload
def fit_chunks(
    chunks: Any,
    family: str = ...,
    estimator: Estimator | str = ...,
    *,
    groups: str | Sequence[str],
    progress: bool = ...,
    **options: Unpack[ChunkOptions],
) -> GroupedFit: ...


def fit_chunks(
    chunks: Any,
    family: str = "yeo-johnson",
    estimator: Estimator | str = "mle",
    *,
    groups: str | Sequence[str] | None = None,
    sample_weight: ChunkWeights = None,
    below: ChunkMarks = None,
    above: ChunkMarks = None,
    between: tuple[ChunkMarks, ChunkMarks] | None = None,
    non_numeric: frames.NonNumeric = "raise",
    progress: bool = False,
    **options: Unpack[ChunkOptions],
) -> PowerFit | GroupedFit:
    """Fit data larger than memory: `powerkern.fit` in two passes over chunks of rows.

    Parameters
    ----------
    chunks : sequence, table that can be read in batches, function that returns one or an iterable, or MapReduce
        Chunks of rows, each of a form that `powerkern.fit` accepts. It may be a list, such as slices of a memory map; a
        table, column, data set, scanner or ``ParquetFile`` of pyarrow, a lazy frame of polars, a relation of DuckDB, or
        an expression of Ibis; or a function that starts reading from the beginning whenever it is called, such as
        ``lambda: pandas.read_csv("data.csv", chunksize=100_000)``.
        Data frames with the columns of the first one in another order are read in the order of the first one.
        Tables are read in batches of about a million cells (scanners: in their own). A `MapReduce` holds an engine of
        yours that reads chunks wherever they are.
    family : {"yeo-johnson", "box-cox", "best"}, default "yeo-johnson"
        The transform; "best" is the better of both for each column, see Notes.
    estimator : Estimator or str, default "mle"
        As in `powerkern.fit`, except "ppcc", which needs all values in order.
    groups : str or list of str, optional
        The column, or columns, of data frames that hold the labels of groups of rows. Every group is fitted separately,
        as by `powerkern.fit`; its rows may be in any chunks. A missing label is an error.
    sample_weight : sequence of array-like, function that returns an iterable, or str, optional
        Non-negative weights of the rows: an array for each chunk, or the name of the column of data frames that holds
        them. Not with `groups`. A `MapReduce` passes weights with its chunks, or they are a column.
    below, above : sequence of array-like of bool, function that returns an iterable, or dict, optional
        Marks of cells that are only known to lie below (above) the number in the cell, as for `powerkern.fit`: an array
        or a data frame for each chunk, or None for a chunk without such cells. If columns of the chunks hold the flags,
        name them, as in ``{"lead": "lead_flag"}``, which also works for tables that are read in batches and for a
        `MapReduce`. Not with `groups`, which can have ``limits=``.
    between : (lower, upper), optional
        The ends of intervals, as for `powerkern.fit`: a pair of such sequences, or of functions that return an
        iterable.
    non_numeric : {"raise", "warn", "ignore"}, default "raise"
        Treatment of non-numeric columns, as in `powerkern.fit`; the first chunk determines them. They are not read from
        tables. Only "raise" with a `MapReduce`.
    progress : bool, default False
        Show a progress bar (needs tqdm) that counts chunks, each time that they are read, or the passes of a
        `MapReduce`, if the fit takes more than about a second.
    **options
        ``standardize``, ``lmbda``, ``shift``, ``ymax``, ``bounds``, ``limits``, ``criterion``, ``infinite``,
        ``column_names`` and ``n_threads``, as for `powerkern.fit`. The threads of a `MapReduce` are its own;
        ``n_threads`` of this process fit the sums.

    Returns
    -------
    PowerFit, or GroupedFit with `groups`
        Lambda agrees with `powerkern.fit` to about 1e-13. `profile` and `confint` need no data. Columns that the grid
        does not resolve (rare, see `finish`) are read again, up to three times, on finer grids; `Status.UNRESOLVED`
        marks columns that remain unresolved.

    Raises
    ------
    TypeError, ValueError
        As in `powerkern.fit`; the message names the chunk and counts rows from its start. Also if `chunks` is an
        iterator or a RecordBatchReader, which can be read only once.

    Notes
    -----
    With `groups`, a first pass finds the groups. Then each column of each group counts as a column: the summary of a
    chunk has some 10 kB for each of them.

    Censored cells are counted by their limits, exactly: a column may have up to 4096 distinct limits or intervals. The
    fit is that of `powerkern.fit`, `expected` and `draw` included. ``fit.lmbda_error`` bounds the error of lambda in
    columns with censored cells; it is infinite if the status is neither `Status.SCANNED` nor `Status.MULTIMODAL`, for
    example if the likelihood has no maximum.

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
    >>> import polars as pl
    >>> rng = np.random.default_rng(0)
    >>> frame = pl.DataFrame({"site": rng.choice(["a", "b"], 1000), "dose": rng.lognormal(size=1000)})
    >>> fit = fit_chunks(frame.lazy(), "box-cox", groups="site")
    >>> bool(np.abs(fit.lmbda - pk.fit(frame, "box-cox", groups="site").lmbda).max() < 1e-10)
    True
    """
    marks = Marks(below, above, between)
    labels = [] if groups is None else columns_of_groups(groups, sample_weight)
    if groups is not None and marks.are_given:
        raise ValueError(
            "below=, above= and between= cannot be combined with groups in chunks; pass limits=, or fit the rows in "
            "memory by powerkern.fit"
        )
    with reading(chunks, sample_weight, non_numeric, progress, options.get("n_threads"), labels, marks) as source:
        counts = source.counts_passes
        if groups is not None:
            return fit_groups(source.map_reduce, groups, family, estimator, progress=counts, options=options)
        weight = source.sample_weight
        return fit_columns(
            source.map_reduce,
            family,
            estimator,
            sample_weight=weight,
            progress=counts,
            options=options,
            marks=marks,
        )


def location_chunks(
    chunks: Any,
    method: str = "median-mad",
    *,
    sample_weight: ChunkWeights = None,
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

    Raises
    ------
    TypeError, ValueError
        As in `powerkern.location.location_scale`; rows are counted from the start of the chunk.

    Warns
    -----
    UserWarning
        As in `powerkern.location.location_scale`.

    Notes
    -----
    Mean and standard deviation take two passes, order statistics up to eight; summaries take some 50 kB per column.
    Median, nMAD, quartiles and trimmed means are exact to rounding. M-estimators are exact where psi is linear or
    constant within every bin; bins at its corners are divided. For a polynomial psi, bins are divided until they hardly
    matter: errors were within 1e-11 of the scale for "bisquare" and "bisquare-proposal2", and 1e-7 for "biweight".

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
    with reading(chunks, sample_weight, non_numeric, progress, n_threads) as source:
        return locate_columns(
            source.map_reduce, method, constants, sample_weight=source.sample_weight, progress=source.counts_passes
        )


class _Source(NamedTuple):
    """The engine that reads the chunks, with its options for the fit."""

    map_reduce: MapReduce
    sample_weight: str | None  #: the column of weights, if the engine does not pass it with the chunks
    counts_passes: bool  #: the fit shows a progress bar, of passes


@contextlib.contextmanager
def reading(
    chunks: Any,
    sample_weight: Any,
    non_numeric: frames.NonNumeric,
    progress: bool,
    n_threads: int | None,
    labels: Sequence[str] = (),
    marks: Marks = NO_MARKS,
) -> Iterator[_Source]:
    """Yield an engine that reads chunks in this process, one after the other, or `chunks` itself if it is an engine.

    Parameters
    ----------
    chunks : object
        The chunks; see `fit_chunks`.
    sample_weight : object
        Weights, or the name of their column.
    non_numeric : str
        Treatment of non-numeric columns.
    progress : bool
        Show a progress bar.
    n_threads : int or None
        Threads to use; default: all CPUs of this process. They have no effect on an engine that is passed as `chunks`.
    labels : sequence of str
        Columns with the labels of groups, which need not be numeric.
    marks : Marks
        Marks of censored cells, for each chunk.
    """
    if isinstance(chunks, MapReduce):
        if name := next(iter(_side_arguments(None, marks)), None):
            raise TypeError(
                f"{name} must name columns of flags if chunks is a MapReduce, as in {{'lead': 'lead_flag'}}; or pass "
                "limits="
            )
        if sample_weight is not None and not isinstance(sample_weight, str):
            raise TypeError(
                "sample_weight must be the name of a column if chunks is a MapReduce, whose engine passes other "
                f"weights with the chunks; got {type(sample_weight).__name__}"
            )
        if non_numeric != "raise":
            raise ValueError("non_numeric works only for chunks that this process reads, not for a MapReduce")
        yield _Source(chunks, sample_weight, progress)
        return
    task_threads = None if n_threads is None else thread_count(n_threads)
    by_name = sample_weight if isinstance(sample_weight, str) else None
    if batches_of(chunks) is None:
        _check_rereadable("chunks", chunks)
    elif sample_weight is not None and by_name is None:
        raise TypeError("sample_weight must be the name of a column if chunks is a table that is read in batches")
    if sample_weight is not None and by_name is None:
        _check_rereadable("sample_weight", sample_weight)
    sides = _side_arguments(sample_weight, marks)
    for name, each in sides.items():
        if name != "sample_weight":
            if batches_of(chunks) is not None:
                raise TypeError(
                    f"{name} must name columns of flags if chunks is a table that is read in batches, as in "
                    "{'lead': 'lead_flag'}; or pass limits="
                )
            _check_rereadable(name, each)
    first = _first(chunks) if isinstance(non_numeric, str) and non_numeric != "raise" else None
    others = [flag for each in (marks.below, marks.above) if isinstance(each, dict) for flag in each.values()]
    others += labels if by_name is None else [*labels, by_name]
    columns = frames.chosen_positions(first, non_numeric, others)
    order = _Order()

    def engine(function: Pass[S], merge: Callable[[S, S], S]) -> S | None:
        total = None
        read = _with_arguments(_read(chunks, columns, order), sides, by_name)
        for i, (chunk, weight, own) in enumerate(read):
            with OFFERING_NON_NUMERIC, chunk_errors(f"chunk {i}"):
                order.check(own)
                part = function(chunk, weight, own) if own.are_given else function(chunk, weight)
                total = part if total is None else merge(total, part)
            if bar is not None:
                bar.update()
        return total

    with progress_bar(None, " chunks", progress) as bar:
        yield _Source(MapReduce(engine, task_threads), None, False)


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
            "divide it into the same chunks" if name != "chunks" else "pass all rows in one array to powerkern.fit"
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
    #: Whether the columns of the last chunk had another order.
    has_reordered = False

    def apply(self, chunks: Iterable[Any]) -> Iterator[Any]:
        """Yield the chunks, data frames with their columns in this order."""
        for chunk in chunks:
            own = frames.names_of(chunk)
            if self.labels is None:
                self.labels = own
            self.has_reordered = own != self.labels
            yield frames.order_chunk(chunk, self.labels)

    def check(self, marks: Marks) -> None:
        """Raise if the last chunk was reordered, and its marks have no labels by which they could be."""
        if self.has_reordered:
            for each in (marks.below, marks.above, *(marks.between or ())):
                if each is not None and frames.names_of(each) is None:
                    raise ValueError(
                        "the columns are in another order than in the first chunk; pass the marks of censored cells as "
                        "data frames with the same labels"
                    )


def _read(chunks: Any, columns: list[int] | None, order: _Order) -> Iterator[Any]:
    """Return the chunks from the start, with all columns or with the columns at these positions of the first chunk."""
    opened = chunks() if callable(chunks) else chunks
    source = batches_of(opened)
    if source is not None:
        names = frames.names_of(source.blank) or []
        return source.read_small(None if columns is None else [names[j] for j in columns])
    ordered = order.apply(opened)
    return ordered if columns is None else (frames.select(chunk, None, columns) for chunk in ordered)


def _side_arguments(sample_weight: Any, marks: Marks) -> dict[str, Any]:
    """Return the arguments with an entry for each chunk, by the names that messages give them."""
    between = (None, None) if marks.between is None else as_ends("between", marks.between)
    given = {
        "sample_weight": None if isinstance(sample_weight, str) else sample_weight,
        "below": marks.below,
        "above": marks.above,
        "the lower ends of between": between[0],
        "the upper ends of between": between[1],
    }
    return {name: each for name, each in given.items() if not (each is None or isinstance(each, dict))}


def _with_arguments(
    chunks: Iterator[Any], given: dict[str, Any], weight_column: str | None
) -> Iterator[tuple[object, Any, Marks]]:
    """Yield chunks with their weights, or the name of their column, and their marks of censored cells.

    Parameters
    ----------
    chunks : iterator
        The chunks.
    given : dict
        The result of `_side_arguments`.
    weight_column : str or None
        The name of the column of weights.

    Raises
    ------
    ValueError
        If an argument has fewer or more entries than there are chunks.
    """
    opened = [each() if callable(each) else each for each in given.values()]
    for i, (chunk, *own) in enumerate(itertools.zip_longest(chunks, *opened, fillvalue=_NONE_LEFT)):
        for name, each in zip(given, own, strict=True):
            if (chunk is _NONE_LEFT) != (each is _NONE_LEFT):
                more, fewer = (name, "chunks") if chunk is _NONE_LEFT else ("chunks", name)
                what = "an array of weights" if name == "sample_weight" else "an array"
                raise ValueError(f"{more} has more entries than the {i} of {fewer}; pass {what} for each chunk")
        entry = dict(zip(given, own, strict=True))
        lower, upper = entry.get("the lower ends of between"), entry.get("the upper ends of between")
        between = None if lower is None and upper is None else (lower, upper)
        marks = Marks(entry.get("below"), entry.get("above"), between)
        yield chunk, entry.get("sample_weight", weight_column), marks
