"""Power transforms of Dask arrays, data frames and delayed chunks, which are never gathered in one place.

`fit` makes two passes over the chunks, one for the ranges of the columns and one for the sketches (see
`powerkern.sketch`). `transform` and `inverse_transform` are lazy, chunk by chunk. Chunks may be blocks of rows, of
columns, or of both; nothing is rechunked.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Unpack, get_args, overload

import numpy as np

from powerkern._estimators.base import Estimator
from powerkern._estimators.shift import given_shift
from powerkern._estimators.spec import ChunkOptions
from powerkern._input import frames
from powerkern._input.arrays import as_choice, as_names, as_weights, check_n_features, chunk_errors, output_type
from powerkern._input.choices import Infinite, OutOfRange
from powerkern._input.infinite import as_infinite
from powerkern._input.messages import muted, suggest_keywords
from powerkern._results.column_table import ColumnTable
from powerkern._results.grouped_fit import GroupedFit
from powerkern._results.power_fit import PowerFit, as_power_fit
from powerkern.sketch import MapReduce, fit_chunks
from powerkern.sketch.engine import Engine, Pass, S
from powerkern.sketch.grouped import label_columns

try:
    import dask
    import dask.array as da
    from dask.delayed import Delayed
except ImportError:
    raise ImportError("powerkern.dask needs Dask: pip install 'dask[array]'") from None


__all__ = ["fit", "inverse_transform", "transform"]


class _DaskChunk(NamedTuple):
    """A block of the data that is not yet computed, the weights of its rows, and its name for error messages."""

    data: Any
    weight: Any
    name: str


class _ColumnBlock(NamedTuple):
    """A block of columns: their number (None if unknown), and the chunks that hold them, from top to bottom."""

    width: int | None
    chunks: list[_DaskChunk]


@overload
def fit(
    X: Any,
    family: str = ...,
    estimator: Estimator | str = ...,
    *,
    groups: None = None,
    sample_weight: Any = ...,
    progress: bool = ...,
    **options: Unpack[ChunkOptions],
) -> PowerFit: ...


@overload
def fit(
    X: Any,
    family: str = ...,
    estimator: Estimator | str = ...,
    *,
    groups: str | Sequence[str],
    progress: bool = ...,
    **options: Unpack[ChunkOptions],
) -> GroupedFit: ...


def fit(
    X: Any,
    family: str = "yeo-johnson",
    estimator: Estimator | str = "mle",
    *,
    groups: str | Sequence[str] | None = None,
    sample_weight: Any = None,
    progress: bool = False,
    **options: Unpack[ChunkOptions],
) -> PowerFit | GroupedFit:
    """Fit a power transform to every column of a Dask collection: `powerkern.fit` in two passes over its chunks.

    The fit runs on the current scheduler (threads, processes, a `distributed.Client`), with one thread per task. A
    chunk is reduced to a summary of about 10 kB per column and released. Summaries are merged in pairs as they arrive.
    The number of summaries in memory is therefore about the number of threads plus the logarithm of the number of
    chunks. If a worker dies, Dask recomputes the summaries that it held, and the fit is the same, bit for bit. Robust
    estimators take more passes; see `powerkern.sketch.fit_chunks`.

    Parameters
    ----------
    X : dask array of shape (n, p) or (n,), dask data frame or series, or list of delayed chunks
        Data of any real dtype; NaN is missing. Chunk sizes may be unknown. Delayed chunks are blocks of rows in any
        form that `powerkern.fit` accepts.
    family, estimator, progress, **options
        As in `powerkern.sketch.fit_chunks`; ``n_threads`` is the number of local threads for fits of the sums.
    groups : str or list of str, optional
        The column, or columns, of a data frame that hold the labels of groups of rows, as in
        `powerkern.sketch.fit_chunks`. The rows of a group may be spread over partitions; they are not shuffled.
    sample_weight : (n,) dask array or series, (n,) array-like, list, or str, optional
        Non-negative row weights. For a data frame with partitions of unknown lengths, pass a Dask series or array with
        the same partitions. For delayed chunks, pass a list with one array per chunk. For data frames, delayed or not,
        the name of the weight column is also accepted; this column is then not fitted.

    Returns
    -------
    PowerFit, or GroupedFit with `groups`
        As for `powerkern.sketch.fit_chunks`.

    Raises
    ------
    TypeError
        If `X` is not a Dask collection, or is not numeric.
    ValueError
        As in `powerkern.fit`; the message names the chunk.

    Examples
    --------
    >>> import dask.array as da
    >>> import powerkern as pk
    >>> from powerkern.dask import fit, transform
    >>> X = da.random.default_rng(0).lognormal(size=(10_000, 4), chunks=(1_000, 2))
    >>> fitted = fit(X, "box-cox")
    >>> abs(fitted.lmbda - pk.fit(X.compute(), "box-cox").lmbda).max() < 1e-12
    np.True_
    >>> transform(X, fitted)
    dask.array<...shape=(10000, 4), dtype=float64, chunksize=(1000, 2)...>
    """
    if groups is not None:
        label_columns(groups, sample_weight)
        if not (_is_list(X) or _is_frame(X)):
            raise TypeError(f"X must be a Dask data frame with the columns that groups= names, got {type(X).__name__}")
    blocks = _blocks(X, sample_weight)
    if len(blocks) > 1:
        p = sum(block.width for block in blocks if block.width)
        names = options.get("column_names")
        options["column_names"] = None if names is None else as_names(names, p)
        options["shift"] = given_shift(options.get("shift", 0.0), family, p)
    makes_chunks = isinstance(X, da.Array) and not _is_in_memory(X)
    map_reduce = MapReduce(_engine(blocks, makes_chunks, _labels(X)))
    if groups is not None:
        return fit_chunks(map_reduce, family, estimator, groups=groups, progress=progress, **options)
    return fit_chunks(map_reduce, family, estimator, progress=progress, **options)


def transform(X: Any, fit: PowerFit, *, out_of_range: OutOfRange = "raise", infinite: Infinite | None = None) -> Any:
    """Transform every column of a Dask collection, lazily: `PowerFit.transform` of each chunk.

    Parameters
    ----------
    X : dask array, data frame or series, or list of delayed chunks
        Data with the fitted columns; the chunks may differ from those of the fitted data.
    fit : PowerFit
        From `fit`, or from `powerkern.fit` of data in memory.
    out_of_range, infinite
        As in `PowerFit.transform`; every chunk warns about its own values.

    Returns
    -------
    dask array, data frame or series, or list of delayed chunks
        Chunks as in `X`. Values outside the domain raise an error when the result is computed.
    """
    as_choice("out_of_range", out_of_range, get_args(OutOfRange))
    options: dict[str, Any] = {
        "out_of_range": out_of_range,
        "infinite": None if infinite is None else as_infinite(infinite),
    }
    return _apply(X, fit, functools.partial(_transform_chunk, method="transform", **options))


def inverse_transform(Z: Any, fit: PowerFit, *, out_of_range: OutOfRange = "nan") -> Any:
    """Undo `transform`, lazily: `PowerFit.inverse_transform` of each chunk.

    `out_of_range` is as in `PowerFit.inverse_transform`. Warnings are issued where the chunk is computed.
    """
    as_choice("out_of_range", out_of_range, get_args(OutOfRange))
    return _apply(Z, fit, functools.partial(_transform_chunk, method="inverse_transform", out_of_range=out_of_range))


# --- passes -------------------------------------------------------------------------------------------


def _engine(blocks: list[_ColumnBlock], makes_chunks: bool = False, labels: list[Any] | None = None) -> Engine:
    """Return a function that runs one pass over all blocks as one Dask graph, and merges the summaries.

    Parameters
    ----------
    blocks : list of _ColumnBlock
        The blocks of columns.
    makes_chunks : bool
        Whether chunks are computed by separate tasks, which are then fused with the tasks that summarise them.
    labels : list or None
        The column labels of a data frame; its partitions are read in this order of columns.
    """
    edges = np.cumsum([0, *(block.width or 0 for block in blocks)])

    def engine(function: Pass[S], merge: Callable[[S, S], S]) -> S:
        own: list[Pass[S] | None] = [function]
        if len(blocks) > 1:
            own = [function.part(np.arange(a, b)) for a, b in itertools.pairwise(edges)]
        trees = [
            _tree(_summaries(each, labels, block.chunks), merge)
            for each, block in zip(own, blocks, strict=True)
            if each is not None
        ]
        parts = dask.compute(*(_fuse(trees) if makes_chunks else trees))
        if not parts or parts[0] is None:
            raise ValueError("X has no rows or no columns; pass at least one of each")
        whole: S = parts[0] if len(blocks) == 1 else function.join(parts)
        return whole

    return engine


def _on_chunk(function: Pass[S], labels: list[Any] | None, data: Any, weight: Any, name: str) -> S | None:
    """Apply a pass to a chunk and return the summary, or None if the chunk has no rows.

    Errors name the chunk and count rows from its start.

    Parameters
    ----------
    function : Pass
        The pass.
    labels : list or None
        Order of the columns.
    data : array-like
        The chunk.
    weight : array-like or None
        Weights of its rows.
    name : str
        Name of the chunk, for messages.
    """
    if len(data) == 0:
        return None
    with chunk_errors(name):
        return function(frames.order_chunk(data, labels), weight)


def _merge(merge: Callable[[S, S], S], a: S | None, b: S | None) -> S | None:
    """Merge two summaries with `merge`; None stands for the summary of no rows."""
    if a is None or b is None:
        return b if a is None else a
    return merge(a, b)


def _summaries(function: Pass[S], labels: list[Any] | None, chunks: list[_DaskChunk]) -> list[Any]:
    """Apply a pass to chunks and return the delayed summaries; columns are read in the order of `labels`."""
    ask = dask.delayed(functools.partial(_on_chunk, function, labels), pure=False, traverse=False)
    return [ask(*chunk) for chunk in chunks]


def _tree(parts: list[Any], merge: Callable[[S, S], S]) -> Any:
    """Merge delayed summaries pairwise in a tree of neighbors, so that few are in memory at once."""
    join = dask.delayed(functools.partial(_merge, merge), pure=False, traverse=False)
    while len(parts) > 1:
        odd = parts[len(parts) // 2 * 2 :]
        parts = [join(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)] + odd
    return parts[0] if parts else dask.delayed(None)


def _fuse(trees: list[Any]) -> Any:
    """Fuse the task that computes each chunk with the task that summarises it, so that chunks do not wait in memory.

    Graphs are optimised here because a distributed scheduler ignores the setting for fusion. This is done only for
    arrays, because graphs of data frames may contain tasks in Dask's old notation, which this optimisation does not
    support.
    """
    with dask.config.set({"optimization.fuse.delayed": True}):
        return dask.optimize(*trees)


# --- transforms ---------------------------------------------------------------------------------------


def _transform_chunk(block: Any, fit: PowerFit, method: str, **options: Any) -> Any:
    """Apply a method of a fit to a chunk; an empty chunk is returned with the output type."""
    if len(block) == 0:
        return block.astype(output_type(block.dtype)) if isinstance(block, np.ndarray) else block
    return getattr(fit, method)(block, n_threads=1, **options)


def _apply(X: Any, fit: PowerFit, function: Callable[..., Any]) -> Any:
    """Apply a function, which receives a chunk and the fit, to every chunk of a collection, lazily."""
    as_power_fit(fit)
    if _is_list(X):
        return [dask.delayed(function, pure=False, traverse=False)(chunk, fit) for chunk in X]
    if _is_frame(X):
        everywhere = fit._with_table(
            ColumnTable(fit._table.kernel_rows, "yeo-johnson")
        )  # dummy values are in its domain
        with muted():
            meta = _transform_chunk(X._meta_nonempty, everywhere, "transform", out_of_range="nan").iloc[:0]
        return X.map_partitions(function, fit, meta=meta)
    _check_array(X)
    p = 1 if X.ndim == 1 else X.shape[1]
    check_n_features(np.empty((0, p)), fit.n_features, None, fit.column_names)
    dtype = output_type(X.dtype)
    if X.ndim == 1:
        return X.map_blocks(function, fit, dtype=dtype, meta=np.empty(0, dtype))
    edges = np.cumsum([0, *X.chunks[1]])
    parts = [
        X[:, a:b].map_blocks(function, fit._take(slice(a, b)), dtype=dtype, meta=np.empty((0, 0), dtype))
        for a, b in itertools.pairwise(edges.tolist())
    ]
    return parts[0] if len(parts) == 1 else da.concatenate(parts, axis=1, allow_unknown_chunksizes=True)


# --- input --------------------------------------------------------------------------------------------


def _is_in_memory(X: Any) -> bool:
    """Return whether the chunks of a Dask array are already in the memory of this process."""
    first = next(dask.core.flatten(X.__dask_keys__()))
    return isinstance(X.__dask_graph__()[first], np.ndarray)


def _is_frame(X: Any) -> bool:
    """Return whether X is a Dask data frame or series."""
    kind = type(X)  # an instance of Delayed has every attribute
    return dask.is_dask_collection(X) and hasattr(kind, "map_partitions") and hasattr(kind, "ndim")


def _labels(X: Any) -> list[Any] | None:
    """Return the column labels of a Dask data frame, or None for any other collection."""
    return frames.names_of(X._meta) if _is_frame(X) else None


def _is_list(X: Any) -> bool:
    """Return whether X is a list of delayed chunks or of futures."""
    return isinstance(X, list | tuple) and len(X) > 0 and all(map(_is_delayed, X))


def _is_delayed(chunk: Any) -> bool:
    """Return whether a chunk is delayed or a future."""
    return isinstance(chunk, Delayed) or type(chunk).__module__.startswith("distributed.")


def _check_array(X: Any) -> None:
    """Raise unless X is a Dask array with one or two dimensions."""
    if not isinstance(X, da.Array):
        raise TypeError(
            f"X is a {type(X).__name__}, not a Dask array, data frame, series or list of delayed chunks; "
            "use powerkern.fit"
        )
    if X.ndim not in (1, 2):
        raise ValueError(f"X has {X.ndim} dimensions; pass a table of shape (n, p) or one column of shape (n,)")


def _blocks(X: Any, sample_weight: Any) -> list[_ColumnBlock]:
    """Return the blocks of columns of a collection, each with its chunks and the weights of their rows."""
    if _is_list(X):
        weights = sample_weight
        if sample_weight is None or isinstance(sample_weight, str):
            weights = [sample_weight] * len(X)
        elif not isinstance(sample_weight, list | tuple) or len(sample_weight) != len(X):
            raise ValueError(f"sample_weight must be a list of {len(X)} entries, the weights of each chunk")
        return [
            _ColumnBlock(None, [_DaskChunk(*one, f"chunk {i}") for i, one in enumerate(zip(X, weights, strict=True))])
        ]
    if _is_frame(X):
        parts = X.to_delayed()
        weights = _weights(sample_weight, None, len(parts))
        chunks = [_DaskChunk(*one, f"partition {i}") for i, one in enumerate(zip(parts, weights, strict=True))]
        return [_ColumnBlock(1 if X.ndim == 1 else len(X.columns), chunks)]
    _check_array(X)
    rows, widths = X.chunks[0], X.chunks[1] if X.ndim == 2 else (1,)
    weights = _weights(sample_weight, rows, len(rows))
    parts = X.to_delayed().reshape(len(rows), len(widths))
    top, left = np.cumsum([0, *rows]), np.cumsum([0, *widths])
    known = not np.isnan(top).any()
    return [
        _ColumnBlock(
            width,
            [
                _DaskChunk(
                    part, weight, f"the chunk from row {top[i]:.0f}, column {left[j]}" if known else f"chunk {i}, {j}"
                )
                for i, (part, weight) in enumerate(zip(parts[:, j], weights, strict=True))
            ],
        )
        for j, width in enumerate(widths)
    ]


def _weights(sample_weight: Any, rows: tuple[float, ...] | None, n_chunks: int) -> list[Any]:
    """Return the weights of the rows of each chunk.

    Parameters
    ----------
    sample_weight : object
        The argument of the user.
    rows : tuple of float or None
        Number of rows of each chunk, NaN if unknown; None for data frames, whose partitions have unknown lengths.
    n_chunks : int
        Number of chunks from top to bottom.
    """
    if sample_weight is None or isinstance(sample_weight, str):
        return [sample_weight] * n_chunks
    n = math.nan if rows is None else sum(rows)
    if not dask.is_dask_collection(sample_weight):
        if rows is None or math.isnan(n):
            raise ValueError(
                "sample_weight is in memory and the chunks of X have unknown lengths; pass it as a Dask array or "
                "series with the partitions of X"
            )
        return np.split(as_weights(sample_weight, int(n)), np.cumsum(rows)[:-1].astype(int))
    if rows is not None and not isinstance(sample_weight, da.Array):
        sample_weight = sample_weight.to_dask_array()
    if isinstance(sample_weight, da.Array) and sample_weight.shape == (n,):
        sample_weight = sample_weight.rechunk((rows,))
    parts: list[Any] = np.ravel(sample_weight.to_delayed()).tolist()
    if len(parts) != n_chunks:
        raise ValueError(
            f"sample_weight has {len(parts)} chunks, X has {n_chunks}; pass one weight per row, in the chunks of X"
        )
    return parts


suggest_keywords(globals(), __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
