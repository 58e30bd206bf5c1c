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
from powerkern.sketch.grouped import fit_groups, label_columns
from powerkern.sketch.location import locate_columns
from powerkern.sketch.summary import S

#: Weights of the rows: an array for each chunk, or the name of a column.
ChunkWeights = Sequence[ArrayLike] | Callable[[], Iterable[ArrayLike]] | str | None

#: Marks of censored cells, or ends of their intervals: for each chunk, an array of the shape of the chunk, or None.
ChunkMarks = Sequence[Any] | Callable[[], Iterable[Any]] | dict[Any, Any] | None

#: Fill value for the shorter of two iterables.
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
    chunks : sequence, table, function or MapReduce
        Chunks of rows, each in a form that `powerkern.fit` accepts. They may be

        * a list, such as slices of a memory map;
        * a table, column, data set, scanner or ``ParquetFile`` of pyarrow, a lazy frame of polars, a relation of DuckDB
          or an expression of Ibis, which are read in batches of about a million cells (scanners: in their own batches);
        * a function that returns one of these or an iterator over the chunks, and starts from the beginning at every
          call, such as ``lambda: pandas.read_csv("data.csv", chunksize=100_000)``;
        * a `MapReduce`, which holds an engine of yours that reads chunks on any machine.

        The columns of all data frames are read in the order of the first data frame.
    family : {"yeo-johnson", "box-cox", "best"}, default "yeo-johnson"
        The transform; "best" chooses the better one for each column, see Notes.
    estimator : Estimator or str, default "mle"
        As in `powerkern.fit`, except "ppcc", which needs all values in order.
    groups : str or list of str, optional
        The column, or columns, of data frames that hold the labels of groups of rows. Every group is fitted separately,
        as by `powerkern.fit`; its rows may be in any chunks. A missing label is an error.
    sample_weight : sequence of array-like, function that returns an iterable, or str, optional
        Non-negative weights of the rows: an array for each chunk, or the name of a column of the data frames. Not with
        `groups`. With a `MapReduce`, weights are a column, or the engine passes them with the chunks.
    below, above : sequence of array-like of bool, function that returns an iterable, or dict, optional
        Marks of cells that are only known to lie below (above) the number in the cell, as for `powerkern.fit`: an array
        or a data frame for each chunk, or None for a chunk without such cells. If columns of the chunks hold the marks,
        name these columns, as in ``{"lead": "lead_flag"}``. Tables that are read in batches and a `MapReduce` need this
        form. Not with `groups`, where you can use ``limits=``.
    between : (lower, upper), optional
        Lower and upper ends of the intervals of censored cells, as for `powerkern.fit`: each a sequence with an entry
        for each chunk, or a function that returns an iterable of such entries.
    non_numeric : {"raise", "warn", "ignore"}, default "raise"
        Treatment of non-numeric columns, as in `powerkern.fit`; the first chunk determines which columns these are.
        Only "raise" with a `MapReduce`.
    progress : bool, default False
        Show a progress bar (needs tqdm) if the fit takes more than about a second. It counts the chunks read in all
        passes, or the passes of a `MapReduce`.
    **options
        ``standardize``, ``lmbda``, ``shift``, ``ymax``, ``bounds``, ``limits``, ``criterion``, ``infinite``,
        ``column_names`` and ``n_threads``, as for `powerkern.fit`. With a `MapReduce`, ``n_threads`` is the number of
        threads of this process that fit the sums; the engine controls all other threads.

    Returns
    -------
    PowerFit, or GroupedFit with `groups`
        Lambda agrees with `powerkern.fit` to about 1e-13. `profile` and `confint` need no data. If the grid is too
        coarse for a column (rare, see `finish`), the column is read again, up to three times, on finer grids. If these
        do not suffice, the status is `Status.UNRESOLVED`.

    Raises
    ------
    TypeError, ValueError
        As in `powerkern.fit`; the message names the chunk and counts rows from its start. Also if `chunks` is an
        iterator or a RecordBatchReader, which can be read only once.

    Notes
    -----
    With `groups`, a first pass collects the labels. In later passes, each column of each group counts as a column, and
    the summary of a chunk takes some 10 kB for each such column.

    Censored cells are counted exactly for each distinct limit or interval, of which a column may have up to 4096. The
    fit is that of `powerkern.fit`, including `expected` and `draw`. ``fit.lmbda_error`` bounds the error of lambda in
    columns with censored cells; it is infinite if the status is neither `Status.SCANNED` nor `Status.MULTIMODAL`, for
    example if the likelihood has no maximum.

    Robust estimators read the data seven times: once for ranges and a sample of 2048 values; once for exact counts
    between sampled values; twice for finer counts near medians, median distances and cut-offs and in the tails; and
    three times for the power sums of the kept values. These form an interval, and lambda is fitted to them exactly.
    With ``n_reweight="settled"``, and for "mtl", passes continue until the kept values no longer change. "carroll"
    takes five passes. For columns of at most 2048 values, the results are those of the fit in memory.

    In longer columns the order of values within a bin is unknown, so lambda before reweighting differs slightly from
    its value in memory. ``fit.lmbda_error`` bounds the effect on lambda. It is usually 0, because no row is so close to
    a cut-off that it matters. The status is `Status.BRACKETED` if the bound exceeds 0.01 standard errors. The bound is
    simulated, not proved: the error of one of 15,700 fuzzed columns, with several minima (`Status.MULTIMODAL`),
    exceeded it.

    ``family="best"`` fits one family after the other, Box-Cox only to columns of positive values. With maximum
    likelihood this takes four passes. For robust fits, two further passes compare the families on the values that both
    fits keep. Two to four further passes count values for another `criterion`: exact counts in the classes of
    "pearson", or counts between 1024 values of the transform for "ppcc". Except for ties, the choice agrees with
    `powerkern.fit`.

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
    labels = [] if groups is None else label_columns(groups, sample_weight)
    if groups is not None and marks.are_given:
        raise ValueError(
            "below=, above= and between= cannot be combined with groups in chunks; pass limits=, or fit the rows in "
            "memory by powerkern.fit"
        )
    with open_engine(chunks, sample_weight, non_numeric, progress, options.get("n_threads"), labels, marks) as source:
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
    Median, nMAD, quartiles and trimmed means are exact to rounding. M-estimators are exact if psi is linear or constant
    within every bin, so bins that contain a corner of psi are divided. For a polynomial psi, bins are divided until
    they hardly matter: errors were at most 1e-11 scales for "bisquare" and "bisquare-proposal2", and 1e-7 scales for
    "biweight".

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
    with open_engine(chunks, sample_weight, non_numeric, progress, n_threads) as source:
        return locate_columns(
            source.map_reduce, method, constants, sample_weight=source.sample_weight, progress=source.counts_passes
        )


class _Source(NamedTuple):
    """An engine, and the options of the fit that depend on it.

    Attributes
    ----------
    map_reduce : MapReduce
        The engine.
    sample_weight : str or None
        Name of the column of weights, if the engine does not pass weights with the chunks.
    counts_passes : bool
        Whether to show a progress bar that counts passes. It is False if this process reads the chunks, because the
        bar then counts chunks.
    """

    map_reduce: MapReduce
    sample_weight: str | None
    counts_passes: bool


@contextlib.contextmanager
def open_engine(
    chunks: Any,
    sample_weight: Any,
    non_numeric: frames.NonNumeric,
    progress: bool,
    n_threads: int | None,
    labels: Sequence[str] = (),
    marks: Marks = NO_MARKS,
) -> Iterator[_Source]:
    """Check the arguments of a fit, and yield an engine that reads the chunks in this process, one after the other.

    If `chunks` is a `MapReduce`, it is the engine.

    Parameters
    ----------
    chunks : object
        The chunks; see `fit_chunks`.
    sample_weight : object
        Weights for each chunk, or the name of the column of weights.
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
        if name := next(iter(_arguments_per_chunk(None, marks)), None):
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
    sides = _arguments_per_chunk(sample_weight, marks)
    for name, each in sides.items():
        if name != "sample_weight":
            if batches_of(chunks) is not None:
                raise TypeError(
                    f"{name} must name columns of flags if chunks is a table that is read in batches, as in "
                    "{'lead': 'lead_flag'}; or pass limits="
                )
            _check_rereadable(name, each)
    first = _first_chunk(chunks) if isinstance(non_numeric, str) and non_numeric != "raise" else None
    others = [flag for each in (marks.below, marks.above) if isinstance(each, dict) for flag in each.values()]
    others += labels if by_name is None else [*labels, by_name]
    columns = frames.chosen_positions(first, non_numeric, others)
    order = _Order()

    def engine(function: Pass[S], merge: Callable[[S, S], S]) -> S | None:
        total = None
        read = _zip_arguments(_open_chunks(chunks, columns, order), sides, by_name)
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
    """Raise TypeError unless the argument `name`, with value `chunks`, can be read repeatedly."""
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


def _first_chunk(chunks: Any) -> Any:
    """Return the first chunk; for a table that is read in batches, a row of missing values with the same columns."""
    opened = chunks() if callable(chunks) else chunks
    source = batches_of(opened)
    return next(iter(opened), None) if source is None else source.blank


class _Order:
    """The order of the columns of the first chunk, in which later chunks are read.

    Attributes
    ----------
    labels : list or None
        The labels of all columns of the first chunk, including the columns of weights and of groups.
    has_reordered : bool
        Whether the columns of the last chunk had another order.
    """

    labels: list[Any] | None = None
    has_reordered = False

    def apply(self, chunks: Iterable[Any]) -> Iterator[Any]:
        """Yield the chunks, with the columns of data frames in the order of the first chunk."""
        for chunk in chunks:
            own = frames.names_of(chunk)
            if self.labels is None:
                self.labels = own
            self.has_reordered = own != self.labels
            yield frames.order_chunk(chunk, self.labels)

    def check(self, marks: Marks) -> None:
        """Raise ValueError if the columns of the last chunk were reordered but its marks have no column labels."""
        if self.has_reordered:
            for each in (marks.below, marks.above, *(marks.between or ())):
                if each is not None and frames.names_of(each) is None:
                    raise ValueError(
                        "the columns are in another order than in the first chunk; pass the marks of censored cells as "
                        "data frames with the same labels"
                    )


def _open_chunks(chunks: Any, columns: list[int] | None, order: _Order) -> Iterator[Any]:
    """Start reading the chunks from the beginning.

    Parameters
    ----------
    chunks : object
        The chunks; see `fit_chunks`.
    columns : list of int or None
        The columns to read, given by their positions in the first chunk; None: all.
    order : _Order
        The order of the columns.
    """
    opened = chunks() if callable(chunks) else chunks
    source = batches_of(opened)
    if source is not None:
        names = frames.names_of(source.blank) or []
        return source.read_small(None if columns is None else [names[j] for j in columns])
    ordered = order.apply(opened)
    return ordered if columns is None else (frames.select(chunk, None, columns) for chunk in ordered)


def _arguments_per_chunk(sample_weight: Any, marks: Marks) -> dict[str, Any]:
    """Return a dictionary of the arguments with an entry for each chunk; its keys are the names used in messages."""
    between = (None, None) if marks.between is None else as_ends("between", marks.between)
    given = {
        "sample_weight": None if isinstance(sample_weight, str) else sample_weight,
        "below": marks.below,
        "above": marks.above,
        "the lower ends of between": between[0],
        "the upper ends of between": between[1],
    }
    return {name: each for name, each in given.items() if not (each is None or isinstance(each, dict))}


def _zip_arguments(
    chunks: Iterator[Any], given: dict[str, Any], weight_column: str | None
) -> Iterator[tuple[object, Any, Marks]]:
    """Yield each chunk with its weights, or the name of the column of weights, and its marks of censored cells.

    Parameters
    ----------
    chunks : iterator
        The chunks.
    given : dict
        The result of `_arguments_per_chunk`.
    weight_column : str or None
        Name of the column of weights.

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
