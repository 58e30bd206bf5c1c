"""Power transforms of Spark data frames, fitted without gathering rows.

`fit` makes two passes over the partitions, which are read in Arrow batches: the first computes the ranges of the
columns, the second the sketches (see `powerkern.sketch`). The executors merge them. `transform` and `inverse_transform`
are lazy. Spark Connect is supported.
"""

from __future__ import annotations

import functools
import itertools
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Unpack, get_args, overload

import numpy as np

from powerkern._estimators.base import Estimator
from powerkern._estimators.spec import ChunkOptions
from powerkern._input.arrays import as_choice, check_n_features, chunk_errors
from powerkern._input.choices import Infinite, OutOfRange
from powerkern._input.infinite import as_infinite
from powerkern._input.messages import suggest_keywords
from powerkern._results.grouped_fit import GroupedFit
from powerkern._results.power_fit import PowerFit, as_power_fit
from powerkern.sketch import MapReduce, fit_chunks
from powerkern.sketch.engine import (
    ChunkOutcome,
    Engine,
    Pass,
    TableColumn,
    columns_to_read,
    merge_outcomes,
    summarize_tables,
)
from powerkern.sketch.grouped import label_columns

try:
    import pandas
    import pyarrow
    from pyspark import TaskContext
    from pyspark.sql import DataFrame
    from pyspark.sql.functions import coalesce, col, lit, pandas_udf, struct, when
    from pyspark.sql.types import BooleanType, DoubleType, FloatType, NumericType, StructField, StructType
except ImportError:
    raise ImportError("powerkern.spark needs PySpark, pandas and PyArrow: pip install pyspark pandas pyarrow") from None

__all__ = ["fit", "inverse_transform", "transform"]

#: Average number of summaries that a task of a merging stage receives.
_FAN_IN = 8
_OUTCOME = "part int, partitions int, outcome binary"


@overload
def fit(
    X: Any,
    family: str = ...,
    estimator: Estimator | str = ...,
    *,
    groups: None = None,
    columns: Sequence[str] | None = ...,
    sample_weight: str | None = ...,
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
    columns: Sequence[str] | None = ...,
    progress: bool = ...,
    **options: Unpack[ChunkOptions],
) -> GroupedFit: ...


def fit(
    X: Any,
    family: str = "yeo-johnson",
    estimator: Estimator | str = "mle",
    *,
    groups: str | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    sample_weight: str | None = None,
    progress: bool = False,
    **options: Unpack[ChunkOptions],
) -> PowerFit | GroupedFit:
    """Fit a power transform to columns of a Spark data frame: `powerkern.fit` in two passes over its partitions.

    Each pass is one Spark job. A task reduces the Arrow batches of its partition, one after the other, to one summary
    of about 10 kB per column. Further stages merge about eight summaries per task, until one is left for the driver.

    Parameters
    ----------
    X : pyspark.sql.DataFrame
        The data, a classic data frame or one of Spark Connect. Null and NaN are missing.
    family, estimator, progress, **options
        As in `powerkern.sketch.fit_chunks`; ``n_threads`` is the number of local threads for fits of the sums.
    groups : str or list of str, optional
        The column, or columns, that hold the labels of groups of rows, as in `powerkern.sketch.fit_chunks`. Rows of a
        group may be in any partitions; they are not shuffled.
    columns : sequence of str, optional
        The columns to fit, in this order; default: all numeric and boolean columns except weights and labels.
    sample_weight : str, optional
        The column of non-negative row weights.

    Returns
    -------
    PowerFit, or GroupedFit with `groups`
        As for `powerkern.sketch.fit_chunks`.

    Raises
    ------
    TypeError
        If `X` is not a Spark data frame, or a column is not numeric.
    ValueError
        As in `powerkern.fit`. The message names the partition and the first row of a batch, and counts rows from it.

    Notes
    -----
    Executors need powerkern, pandas and PyArrow, and compile the kernels unless they find them on disk: run
    ``python -m powerkern compile`` when building their environment.

    X must be the same in every pass: random columns need a seed, and X should be persisted if it is expensive to
    compute. A batch has ``spark.sql.execution.arrow.maxRecordsPerBatch`` rows, which bounds the memory of a worker.

    Examples
    --------
    >>> from pyspark.sql import SparkSession
    >>> from pyspark.sql.functions import randn
    >>> from powerkern.spark import fit, transform
    >>> spark = SparkSession.builder.getOrCreate()
    >>> df = spark.range(10_000).withColumn("x", randn(1)).selectExpr("id", "exp(x) as x")
    >>> fitted = fit(df, "box-cox", columns=["x"])
    >>> bool(abs(fitted.lmbda[0]) < 0.03)
    True
    >>> transform(df, fitted)
    DataFrame[id: bigint, x: double]
    """
    if groups is None:
        names = columns_to_read(_table(X), columns, sample_weight)
        map_reduce = MapReduce(_engine(X, names))
        return fit_chunks(map_reduce, family, estimator, sample_weight=sample_weight, progress=progress, **options)

    keys = label_columns(groups, sample_weight)
    table = _table(X)
    for key in keys:
        if key not in [one.name for one in table]:
            known = ", ".join(repr(one.name) for one in table)
            raise ValueError(f"groups={key!r}: there is no column of that name among {known}")
    names = columns_to_read([one for one in table if one.name not in keys], columns, None)
    map_reduce = MapReduce(_engine(X, names, keys))
    return fit_chunks(map_reduce, family, estimator, groups=groups, progress=progress, **options)


def transform(X: Any, fit: PowerFit, *, out_of_range: OutOfRange = "raise", infinite: Infinite | None = None) -> Any:
    """Transform the fitted columns of a Spark data frame, lazily; other columns are passed through.

    Parameters
    ----------
    X : pyspark.sql.DataFrame
        Data with the fitted columns, by name, in any order; for a fit without names, with the same number of numeric
        columns.
    fit : PowerFit
        From `fit`, or from `powerkern.fit` of data in memory.
    out_of_range, infinite
        As in `PowerFit.transform`; every chunk warns about its own values.

    Returns
    -------
    pyspark.sql.DataFrame
        Columns in the order of `X`, the fitted ones as doubles (floats stay floats). Null stays null,
        and NaN stays NaN. Values outside the domain raise an error when the result is computed.
    """
    as_choice("out_of_range", out_of_range, get_args(OutOfRange))
    treatment = None if infinite is None else as_infinite(infinite)
    return _apply(X, fit, "transform", out_of_range=out_of_range, infinite=treatment)


def inverse_transform(Z: Any, fit: PowerFit, *, out_of_range: OutOfRange = "nan") -> Any:
    """Undo `transform`, lazily.

    `out_of_range` is as in `PowerFit.inverse_transform`. Warnings appear in the logs of the executors.
    """
    return _apply(Z, fit, "inverse_transform", out_of_range=out_of_range)


# --- passes -------------------------------------------------------------------------------------------


def _engine(X: Any, names: list[str], keys: Sequence[str] = ()) -> Engine:
    """Return a function that runs one pass over the data as a Spark job, and merges the outcomes of its partitions.

    Parameters
    ----------
    X : pyspark.sql.DataFrame
        The data.
    names : list of str
        The numeric columns to fit, and the column of weights.
    keys : sequence of str
        The columns of group labels.
    """
    fields = _fields([*names, *keys])[len(names) :]
    labels = [_column(key).alias(field) for key, field in zip(keys, fields, strict=True)]
    table = X.select([*_doubles(names), *labels])
    names = [*names, *keys]
    partitions: int | None = None

    def run(function: Pass[Any], merge: Callable[[Any, Any], Any]) -> Any:
        nonlocal partitions
        parts = table.mapInArrow(functools.partial(_summarise, function, merge, names), _OUTCOME)
        for level in _levels(partitions):
            parts = parts.repartition(*level, "part").mapInArrow(functools.partial(_merge, merge), _OUTCOME)
        rows = parts.collect()
        partitions = sum(row.partitions for row in rows)
        return merge_outcomes(merge, (pickle.loads(row.outcome) for row in rows)).value()

    return run


def _levels(partitions: int | None) -> Iterator[tuple[int, ...]]:
    """Yield the number of parts that each merging stage produces, down to one.

    In the first pass, the number of partitions is unknown. There is a single merging stage then, and Spark chooses its
    number of parts. The summaries of this pass are small: ranges of the columns, and samples for robust estimators.
    """
    if partitions is None:
        yield ()
        return
    while partitions > 1:
        partitions = -(-partitions // _FAN_IN)
        yield (partitions,)


def _summarise(
    function: Pass[Any], merge: Callable[[Any, Any], Any], names: list[str], batches: Iterator[pyarrow.RecordBatch]
) -> Iterator[pyarrow.RecordBatch]:
    """Reduce a partition to one row that holds its outcome, or to no row if the partition is empty.

    Parameters
    ----------
    function : Pass
        The pass.
    merge : callable
        Merges two summaries.
    names : list of str
        Names of the columns.
    batches : iterator of pyarrow.RecordBatch
        The rows of the partition.
    """
    parts = (batch.rename_columns(names) for batch in batches)
    total = merge_outcomes(merge, summarize_tables(function, parts, _place))
    if total.summary is not None or total.error is not None:
        yield _row(1, total)


def _merge(merge: Callable[[Any, Any], Any], batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Merge the outcomes that were sent to this task, and yield the result as one row."""
    total, partitions = ChunkOutcome(), 0
    for batch in batches:
        some = (pickle.loads(outcome.as_buffer()) for outcome in batch.column("outcome"))
        total = merge_outcomes(merge, itertools.chain([total], some))
        partitions += sum(batch.column("partitions").to_pylist())
    if partitions:
        yield _row(partitions, total)


def _row(partitions: int, outcome: ChunkOutcome) -> pyarrow.RecordBatch:
    """Return an outcome, and the number of partitions it covers, as a row of Arrow data."""
    arrays = [
        pyarrow.array([_partition()], pyarrow.int32()),
        pyarrow.array([partitions], pyarrow.int32()),
        pyarrow.array([pickle.dumps(outcome)], pyarrow.binary()),
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, ["part", "partitions", "outcome"])


def _place(rows: int) -> str:
    """Return the description for error messages of the batch that starts at row `rows` of this partition."""
    return f"partition {_partition()}, from row {rows} of it"


def _partition() -> int:
    """Return the number of the partition that this task processes."""
    return int(TaskContext.get().partitionId())


# --- transforms ---------------------------------------------------------------------------------------

#: Temporary column that holds the results of a transform.
_COMPUTED = "computed by powerkern"


def _apply(X: Any, fit: PowerFit, method: str, **options: Any) -> Any:
    """Apply a method of a fit by a Python function that receives only the fitted columns; others stay in the JVM."""
    as_power_fit(fit)
    names = columns_to_read(_table(X), fit.column_names, None)
    check_n_features(np.empty((0, len(names))), fit.n_features, None, None)
    fields = _fields(names)

    def computed(batches: Iterator[pandas.DataFrame]) -> Iterator[pandas.DataFrame]:
        return _compute(fit, method, options, names, batches)

    schema = StructType([StructField(field, DoubleType()) for field in fields])
    results = {
        name: _missing_as_in(_column(name), _column(_COMPUTED)[field]).cast(_result_type(X.schema[name].dataType))
        for name, field in zip(names, fields, strict=True)
    }
    whole = pandas_udf(computed, schema)(struct(_doubles(names)))
    return X.withColumn(_COMPUTED, whole).withColumns(results).drop(_COMPUTED)


def _compute(
    fit: PowerFit, method: str, options: dict[str, Any], names: list[str], batches: Iterator[pandas.DataFrame]
) -> Iterator[pandas.DataFrame]:
    """Yield the results of a method of a fit for batches of rows.

    Parameters
    ----------
    fit : PowerFit
        The fit.
    method : str
        Name of the method.
    options : dict
        Its options.
    names : list of str
        Names of the columns.
    batches : iterator of pandas.DataFrame
        The rows.
    """
    rows = 0
    for batch in batches:
        with chunk_errors(_place(rows)):
            values = getattr(fit, method)(batch.set_axis(names, axis=1), n_threads=1, **options)
        yield values.set_axis(_fields(names), axis=1)
        rows += len(batch)


def _missing_as_in(given: Any, computed: Any) -> Any:
    """Return `computed` with null only where `given` is null; other nulls, which pandas made from NaN, become NaN."""
    return when(given.isNotNull(), coalesce(computed, lit(np.nan)))


def _result_type(given: Any) -> Any:
    """Return the type of a transformed column: float for float columns, otherwise double."""
    return FloatType() if isinstance(given, FloatType) else DoubleType()


# --- columns ------------------------------------------------------------------------------------------


def _table(X: Any) -> list[TableColumn]:
    """Return, for each column of a Spark data frame, its name, its type and whether it is numeric."""
    if not isinstance(X, DataFrame):
        raise TypeError(f"X is a {type(X).__name__}, not a Spark data frame; use powerkern.fit for data in memory")
    return [
        TableColumn(field.name, field.dataType.simpleString(), isinstance(field.dataType, NumericType | BooleanType))
        for field in X.schema
    ]


def _fields(names: Sequence[str]) -> list[str]:
    """Return field names x0, x1, ... for columns, whose own names may contain any characters."""
    return [f"x{j}" for j in range(len(names))]


def _doubles(names: Sequence[str]) -> list[Any]:
    """Return expressions that cast the columns to double."""
    return [_column(name).cast("double").alias(field) for name, field in zip(names, _fields(names), strict=True)]


def _column(name: str) -> Any:
    """Return the expression for a column by name; the name may contain dots and quotes."""
    return col("`" + name.replace("`", "``") + "`")


suggest_keywords(globals(), __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
