"""Power transforms of Ray datasets, and of chunks that are objects or tasks of Ray.

`fit` makes two passes. In each, tasks reduce blocks of rows to summaries: first to ranges of the columns, then to
sketches (see `powerkern.sketch`). Further tasks merge the summaries in pairs as they arrive. `transform` and
`inverse_transform` are lazy steps of a dataset.
"""

from __future__ import annotations

import dataclasses
import functools
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Unpack, get_args

from powerkern._estimators.base import Estimator
from powerkern._estimators.spec import ChunkOptions
from powerkern._input.arrays import as_choice, chunk_errors
from powerkern._input.batches import CELLS
from powerkern._input.choices import Infinite, OutOfRange
from powerkern._input.infinite import as_infinite
from powerkern._input.messages import suggest_keywords
from powerkern._input.narwhals_frame import is_numeric_arrow_type
from powerkern._results.power_fit import PowerFit, as_power_fit
from powerkern.sketch import MapReduce, fit_chunks
from powerkern.sketch.engine import (
    NO_ROWS,
    ChunkOutcome,
    Engine,
    Pass,
    TableColumn,
    columns_to_read,
    merge_outcomes,
    summarize_or_catch,
    summarize_tables,
)

try:
    import pyarrow
    import ray
    import ray.data
except ImportError:
    raise ImportError("powerkern.ray needs Ray Data: pip install 'ray[data]'") from None

__all__ = ["fit", "inverse_transform", "transform"]

#: Number of running tasks per CPU of the cluster.
_AHEAD = 2


def fit(
    X: Any,
    family: str = "yeo-johnson",
    estimator: Estimator | str = "mle",
    *,
    columns: Sequence[str] | None = None,
    sample_weight: str | Sequence[Any] | None = None,
    progress: bool = False,
    **options: Unpack[ChunkOptions],
) -> PowerFit:
    """Fit a power transform to every column of data in Ray: `powerkern.fit` in two passes over its blocks.

    A task returns a summary of about 10 kB per column; only the last summary goes to the driver. At most two chunks per
    CPU are processed at any time.

    Parameters
    ----------
    X : ray.data.Dataset, or sequence of ObjectRef or of functions
        A dataset, in which null and NaN are missing, or chunks of rows. A chunk is an object that `powerkern.fit`
        accepts, or a function without arguments that returns such an object; it is called in a task once per pass.
    family, estimator, progress, **options
        As in `powerkern.sketch.fit_chunks`; ``n_threads`` is the number of local threads for fits of the sums.
    columns : sequence of str, optional
        The columns of a dataset to fit, in this order; default: all numeric and boolean columns except the weights.
    sample_weight : str, or sequence of ObjectRef or of functions, optional
        Non-negative row weights: the name of their column, or one object or function per chunk.

    Returns
    -------
    PowerFit
        As for `powerkern.sketch.fit_chunks`.

    Raises
    ------
    TypeError
        If `X` is of another type, or a column is not numeric.
    ValueError
        As in `powerkern.fit`. The message names the chunk. For a dataset, it gives the first row of the part of a block
        that was read, and counts rows from there.

    Notes
    -----
    Workers need powerkern, and compile the kernels unless they find them on disk: run ``python -m powerkern compile``
    when building their environment.

    A dataset must be the same in every pass: random data need a seed, and data that are expensive to compute should be
    materialized.

    Examples
    --------
    >>> import numpy as np
    >>> import powerkern as pk
    >>> import ray
    >>> from powerkern.ray import fit, transform
    >>> rng = np.random.default_rng(0)
    >>> X = rng.lognormal(size=(1000, 2))
    >>> fitted = fit([ray.put(X[:300]), ray.put(X[300:])], "box-cox")
    >>> bool(abs(fitted.lmbda - pk.fit(X, "box-cox").lmbda).max() < 1e-12)
    True
    >>> import pandas as pd
    >>> data = ray.data.from_pandas(pd.DataFrame({"u": X[:, 0], "name": "anything"}))
    >>> transform(data, fit(data, "box-cox")).schema().names
    ['u', 'name']
    """
    by_name = sample_weight if isinstance(sample_weight, str) else None
    if isinstance(X, ray.data.Dataset):
        engine = _over_blocks(X, columns_to_read(_table(X.schema()), columns, sample_weight))
    elif columns is not None:
        raise TypeError(f"columns= is for datasets; X is a {type(X).__name__}: leave columns= out")
    else:
        engine = _over_chunks(_chunks(X, None if by_name else sample_weight))
    return fit_chunks(MapReduce(engine), family, estimator, sample_weight=by_name, progress=progress, **options)


def transform(X: Any, fit: PowerFit, *, out_of_range: OutOfRange = "raise", infinite: Infinite | None = None) -> Any:
    """Transform the fitted columns of a dataset, lazily; other columns are passed through.

    Parameters
    ----------
    X : ray.data.Dataset
        Data with the fitted columns, by name, in any order; for a fit without names, with the same number of numeric
        columns.
    fit : PowerFit
        From `fit`, or from `powerkern.fit` of data in memory.
    out_of_range, infinite
        As in `PowerFit.transform`; every chunk warns about its own values.

    Returns
    -------
    ray.data.Dataset
        Columns in the order of `X`. Values outside the domain raise an error when the result is computed.
    """
    as_choice("out_of_range", out_of_range, get_args(OutOfRange))
    treatment = None if infinite is None else as_infinite(infinite)
    return _apply(X, fit, "transform", out_of_range=out_of_range, infinite=treatment)


def inverse_transform(Z: Any, fit: PowerFit, *, out_of_range: OutOfRange = "nan") -> Any:
    """Undo `transform`, lazily.

    `out_of_range` is as in `PowerFit.inverse_transform`. Warnings appear in the logs of the workers.
    """
    return _apply(Z, fit, "inverse_transform", out_of_range=out_of_range)


# --- passes -------------------------------------------------------------------------------------------


def _over_blocks(X: Any, names: list[str]) -> Engine:
    """Return a function that runs one pass over the columns `names` of a dataset and merges the outcomes.

    The task that produces a block also reduces it to an outcome, if possible.
    """
    table = X.select_columns(names)

    def run(function: Pass[Any], merge: Callable[[Any, Any], Any]) -> Any:
        parts = table.map_batches(
            functools.partial(_summarise_block, function, merge, names),
            batch_size=None,
            batch_format="pyarrow",
            zero_copy_batch=True,
        )
        bundles = parts.iter_internal_ref_bundles()
        return _merge_all((ref for bundle in bundles for ref in bundle.block_refs), merge)

    return run


def _over_chunks(chunks: list[tuple[Any, ...]]) -> Engine:
    """Return a function that runs one pass over the chunks, each in a task, and merges their outcomes."""

    def run(function: Pass[Any], merge: Callable[[Any, Any], Any]) -> Any:
        shared = ray.put(function)
        tasks = (_SUMMARISE.remote(shared, i, *chunk) for i, chunk in enumerate(chunks))
        return _merge_all(tasks, merge)

    return run


def _merge_all(parts: Iterable[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """Merge the outcomes of `parts` in order of arrival, with a bounded number of running tasks; return the summary."""
    most = max(2, _AHEAD * int(ray.cluster_resources().get("CPU", 1)))
    running: list[Any] = []
    single: list[Any] = []

    def step() -> None:
        nonlocal running
        (ready,), running = ray.wait(running, fetch_local=False)
        single.append(ready)
        if len(single) == 2:
            running.append(_MERGE.remote(merge, single.pop(), single.pop()))

    for part in parts:
        running.append(part)
        while len(running) >= most:
            step()
    while running:
        step()
    return _merge(merge, *map(ray.get, single)).value()


def _summarise(function: Pass[Any], position: int, *given: Any) -> ChunkOutcome:
    """Return the outcome of applying a pass to one chunk.

    Parameters
    ----------
    function : Pass
        The pass.
    position : int
        Position of the chunk among all chunks.
    *given
        The chunk and its weights, each as data or as a function that returns data.
    """
    name = f"chunk {position}"
    outcome = summarize_or_catch(name, lambda: function(*(one() if callable(one) else one for one in given)))
    return dataclasses.replace(outcome, position=position)


def _summarise_block(
    function: Pass[Any], merge: Callable[[Any, Any], Any], names: list[str], block: pyarrow.Table
) -> pyarrow.Table:
    """Return the outcome of applying a pass to a block, which is read a few rows at a time.

    Parameters
    ----------
    function : Pass
        The pass.
    merge : callable
        Merges two summaries.
    names : list of str
        Names of the columns.
    block : pyarrow.Table
        The rows.
    """
    total = merge_outcomes(merge, summarize_tables(function, _parts(block.select(names)), _place))
    return pyarrow.table({"outcome": [pickle.dumps(total)]})


def _merge(merge: Callable[[Any, Any], Any], *parts: Any) -> ChunkOutcome:
    """Merge outcomes and tables of outcomes into one outcome.

    The chunk that comes first in the data is merged first, because it determines the order of the columns.
    """
    outcomes = sorted((outcome for part in parts for outcome in _outcomes(part)), key=lambda outcome: outcome.position)
    total = merge_outcomes(merge, outcomes)
    return dataclasses.replace(total, position=outcomes[0].position) if outcomes else total


def _outcomes(part: ChunkOutcome | pyarrow.Table) -> Iterator[ChunkOutcome]:
    """Yield the outcomes in a part, which is an outcome itself or a table of outcomes."""
    if isinstance(part, ChunkOutcome):
        yield part
    elif part.num_rows:
        yield from (pickle.loads(outcome.as_buffer()) for outcome in part.column("outcome"))


_SUMMARISE, _MERGE = ray.remote(_summarise), ray.remote(_merge)


# --- transforms ---------------------------------------------------------------------------------------


def _apply(X: Any, fit: PowerFit, method: str, **options: Any) -> Any:
    """Apply a method of a fit to every block of a dataset, lazily."""
    if not isinstance(X, ray.data.Dataset):
        raise TypeError(f"X is a {type(X).__name__}, not a Ray dataset; in a task, call the method {method} of the fit")
    as_power_fit(fit)
    function = functools.partial(_transform_chunk, fit, method, options)
    return X.map_batches(function, batch_size=None, batch_format="pyarrow", zero_copy_batch=True)


def _transform_chunk(fit: PowerFit, method: str, options: dict[str, Any], block: pyarrow.Table) -> pyarrow.Table:
    """Transform the fitted columns of a block, a few rows at a time.

    Parameters
    ----------
    fit : PowerFit
        The fit.
    method : str
        Name of the method.
    options : dict
        Its options.
    block : pyarrow.Table
        The rows.
    """
    if not block.num_rows:
        return block
    names = columns_to_read(_table(block.schema), fit.column_names, None)
    parts, rows = [], 0
    for part in _parts(block.select(names)):
        with chunk_errors(_place(rows)):
            parts.append(getattr(fit, method)(part, n_threads=1, **options))
        rows += part.num_rows
    done = pyarrow.concat_tables(parts)
    return pyarrow.table({name: (done if name in names else block).column(name) for name in block.column_names})


def _parts(block: pyarrow.Table) -> Iterator[pyarrow.Table]:
    """Yield a block in parts of a few rows each."""
    rows = max(1, CELLS // block.num_columns)
    return (block.slice(start, rows) for start in range(0, block.num_rows, rows))


def _place(rows: int) -> str:
    """Return the description for error messages of the part of a block that starts at row `rows`."""
    return f"a block of the dataset, from row {rows} of it"


# --- input --------------------------------------------------------------------------------------------


def _table(schema: Any) -> list[TableColumn]:
    """Return, for each column of a dataset or of a block, its name, its type and whether it is numeric."""
    if schema is None:
        raise ValueError(NO_ROWS)
    return [
        TableColumn(name, str(kind), is_numeric_arrow_type(kind))
        for name, kind in zip(schema.names, schema.types, strict=True)
    ]


def _chunks(X: Any, sample_weight: Any) -> list[tuple[Any, ...]]:
    """Return a tuple for each chunk: the chunk, followed by its weights if there are any."""
    chunks = _one_each("X", X)
    if sample_weight is None:
        return [(chunk,) for chunk in chunks]
    weights = _one_each("sample_weight", sample_weight)
    if len(weights) != len(chunks):
        raise ValueError(f"sample_weight has {len(weights)} chunks, X has {len(chunks)}; pass one for each")
    return list(zip(chunks, weights, strict=True))


def _one_each(name: str, each: Any) -> list[Any]:
    """Return the argument called `name` as a list; raise unless each entry is an object of Ray or a function."""
    if isinstance(each, list | tuple) and all(isinstance(one, ray.ObjectRef) or callable(one) for one in each):
        return list(each)
    raise TypeError(
        f"{name} must be a Ray dataset, or a list of ObjectRefs or of functions that return chunks of rows, got "
        f"{type(each).__name__}; use powerkern.fit for data in memory"
    )


suggest_keywords(globals(), __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
