"""Power transforms of Spark data frames, of which no more than summaries leaves the executors.

`fit` reads the data twice, partition by partition, as Arrow batches: once for the ranges of the columns, once for the
sketches (see `powerkern.sketch`) that add up to the fit and are merged on the executors. `transform` and
`inverse_transform` are lazy columns of the data frame. Spark Connect is served as classic sessions are.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from powerkern._estimators.estimators import Estimator
from powerkern._input.arrays import check_n_features, naming
from powerkern._results.power_fit import OutOfRange, PowerFit, as_power_fit
from powerkern.sketch import fit_with
from powerkern.sketch.engine import Column, MapReduce, Outcome, Pass, columns_to_read, merged_outcome, outcome_of

try:
    import pandas
    import pyarrow
    from pyspark import TaskContext
    from pyspark.sql import DataFrame
    from pyspark.sql.functions import coalesce, col, lit, pandas_udf, struct, when
    from pyspark.sql.types import BooleanType, DoubleType, FloatType, NumericType, StructField, StructType
except ImportError:
    raise ImportError("powerkern.spark needs PySpark, pandas and PyArrow: pip install 'powerkern[spark]'") from None

#: How many summaries a task of a merging stage takes, on average.
_FAN_IN = 8
_OUTCOME = "part int, partitions int, outcome binary"


def fit(
    X: Any,
    family: str = "yeo-johnson",
    estimator: Estimator | str = "mle",
    *,
    columns: Sequence[str] | None = None,
    sample_weight: str | None = None,
    **options: Any,
) -> PowerFit:
    """Fit a power transform to columns of a Spark data frame: `powerkern.fit` in two passes over its partitions.

    Each pass is one Spark job. A task turns the Arrow batches of its partition, one after the other, into one summary
    of some 10 kB a column; further stages, whose tasks take about eight each, merge these, and one comes back.

    Parameters
    ----------
    X : pyspark.sql.DataFrame
        Classic or of Spark Connect. Nulls and NaN are missing.
    family, estimator
        As for `powerkern.sketch.fit_with`.
    columns : sequence of str, optional
        The columns to fit, in this order; default: all that hold numbers or booleans, but the weights.
    sample_weight : str, optional
        The column that holds non-negative weights of the rows.
    **options
        ``standardize``, ``lmbda``, ``shift``, ``ymax``, ``bounds``, ``n_threads`` (of the driver), ``progress``,
        as for `powerkern.sketch.fit_with`.

    Returns
    -------
    PowerFit
        As `powerkern.sketch.fit_chunks`.

    Raises
    ------
    TypeError
        X is no Spark data frame, or a column holds no numbers.
    ValueError
        As `powerkern.fit`; the message names the partition, and the row of it from which rows are counted.

    Notes
    -----
    Executors need powerkern, pandas and PyArrow. Each compiles what it runs unless it finds that on disk: run
    ``python -m powerkern compile`` where their environment is made.

    X must be the same in every pass: columns of random numbers need a seed, and what is expensive to make should be
    persisted. A batch has ``spark.sql.execution.arrow.maxRecordsPerBatch`` rows, which bounds the memory of a worker.

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
    names = columns_to_read(_table(X), columns, sample_weight)
    return fit_with(_map_reduce(X, names), family, estimator, sample_weight=sample_weight, **options)


def transform(X: Any, fit: PowerFit) -> Any:
    """Transform the fitted columns of a Spark data frame, lazily; all others stay as they are.

    Parameters
    ----------
    X : pyspark.sql.DataFrame
        With the columns that were fitted, by name, in any order; for a fit without names: with as many columns of
        numbers.
    fit : PowerFit
        From `fit`, or from `powerkern.fit` of data in memory.

    Returns
    -------
    pyspark.sql.DataFrame
        The columns in the order of `X`, the fitted ones as doubles (floats where they were floats). Nulls stay nulls,
        and NaN stays NaN. Values outside the domain raise when it is computed.
    """
    return _applied(X, fit, "transform")


def inverse_transform(Z: Any, fit: PowerFit, *, out_of_range: OutOfRange = "nan") -> Any:
    """Undo `transform`, lazily.

    Parameters
    ----------
    Z : pyspark.sql.DataFrame
        With transformed columns.
    fit : PowerFit
        The fit that transformed them.
    out_of_range : {"nan", "raise", "clip"}, default "nan"
        What to do with values that have no inverse, see `PowerFit.inverse_transform`. Warnings appear in the logs of
        the executors.

    Returns
    -------
    pyspark.sql.DataFrame
        As from `transform`.
    """
    return _applied(Z, fit, "inverse_transform", out_of_range=out_of_range)


# --- passes -------------------------------------------------------------------------------------------


def _map_reduce(X: Any, names: list[str]) -> MapReduce:
    """The engine: one job for each pass, over some of the columns."""
    table = X.select(_doubles(names))
    partitions: int | None = None

    def run(function: Pass[Any], merge: Callable[[Any, Any], Any]) -> Any:
        nonlocal partitions
        parts = table.mapInArrow(functools.partial(_summarised, function, merge, names), _OUTCOME)
        for level in _levels(partitions):
            parts = parts.repartition(*level, "part").mapInArrow(functools.partial(_merged, merge), _OUTCOME)
        rows = parts.collect()
        if not rows:
            raise ValueError("X has no rows; there is nothing to do")
        partitions = sum(row.partitions for row in rows)
        return _total(merge, (row.outcome for row in rows)).value()

    return run


def _levels(partitions: int | None) -> Iterator[tuple[int, ...]]:
    """How many parts each stage merges into, down to one; in the first pass, where nobody knows, one that Spark sizes.

    What it asks for is small: ranges of the columns, and for robust estimators samples.
    """
    if partitions is None:
        yield ()
        return
    while partitions > 1:
        partitions = -(-partitions // _FAN_IN)
        yield (partitions,)


def _total(merge: Callable[[Any, Any], Any], outcomes: Iterable[Any]) -> Outcome[Any]:
    """Pickled outcomes, merged one by one."""
    return functools.reduce(functools.partial(merged_outcome, merge), map(pickle.loads, outcomes), Outcome[Any]())


def _summarised(
    function: Pass[Any], merge: Callable[[Any, Any], Any], names: list[str], batches: Iterator[pyarrow.RecordBatch]
) -> Iterator[pyarrow.RecordBatch]:
    """One row: the outcome of a partition. None if it has no rows."""
    total, rows = Outcome[Any](), 0
    for batch in batches:
        outcome = outcome_of(_place(rows), function, batch.rename_columns(names))
        total = merged_outcome(merge, total, outcome)
        rows += batch.num_rows
        if total.error is not None:
            break
    if rows:
        yield _row(1, total)


def _merged(merge: Callable[[Any, Any], Any], batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """One row: the outcomes that came to this task, merged one by one."""
    total, partitions = Outcome[Any](), 0
    for batch in batches:
        some = _total(merge, (outcome.as_buffer() for outcome in batch.column("outcome")))
        total = merged_outcome(merge, total, some)
        partitions += sum(batch.column("partitions").to_pylist())
    if partitions:
        yield _row(partitions, total)


def _row(partitions: int, outcome: Outcome[Any]) -> pyarrow.RecordBatch:
    arrays = [
        pyarrow.array([_partition()], pyarrow.int32()),
        pyarrow.array([partitions], pyarrow.int32()),
        pyarrow.array([pickle.dumps(outcome)], pyarrow.binary()),
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, ["part", "partitions", "outcome"])


def _place(rows: int) -> str:
    """Where the batch is that comes after so many rows."""
    return f"partition {_partition()}, from row {rows} of it"


def _partition() -> int:
    return int(TaskContext.get().partitionId())


# --- transforms ---------------------------------------------------------------------------------------

#: A column that exists while a transform is put together.
_COMPUTED = "computed by powerkern"


def _applied(X: Any, fit: PowerFit, method: str, **options: Any) -> Any:
    """The fitted columns through one Python function, as a struct; the others never leave the JVM."""
    as_power_fit(fit)
    names = columns_to_read(_table(X), fit.column_names, None)
    check_n_features(np.empty((0, len(names))), fit.n_features, None, None)
    fields = _fields(names)

    def computed(batches: Iterator[pandas.DataFrame]) -> Iterator[pandas.DataFrame]:
        return _computed(fit, method, options, names, batches)

    schema = StructType([StructField(field, DoubleType()) for field in fields])
    results = {
        name: _missing_as_in(_column(name), _column(_COMPUTED)[field]).cast(_result_type(X.schema[name].dataType))
        for name, field in zip(names, fields, strict=True)
    }
    whole = pandas_udf(computed, schema)(struct(_doubles(names)))
    return X.withColumn(_COMPUTED, whole).withColumns(results).drop(_COMPUTED)


def _computed(
    fit: PowerFit, method: str, options: dict[str, Any], names: list[str], batches: Iterator[pandas.DataFrame]
) -> Iterator[pandas.DataFrame]:
    rows = 0
    for batch in batches:
        with naming(_place(rows)):
            values = getattr(fit, method)(batch.set_axis(names, axis=1), n_threads=1, **options)
        yield values.set_axis(_fields(names), axis=1)
        rows += len(batch)


def _missing_as_in(given: Any, computed: Any) -> Any:
    """Null where it was null, and NaN where pandas' null came out of other values."""
    return when(given.isNotNull(), coalesce(computed, lit(np.nan)))


def _result_type(given: Any) -> Any:
    return FloatType() if isinstance(given, FloatType) else DoubleType()


# --- columns ------------------------------------------------------------------------------------------


def _table(X: Any) -> list[Column]:
    """The columns of a data frame."""
    if not isinstance(X, DataFrame):
        raise TypeError(f"X is a {type(X).__name__}, not a Spark data frame; use powerkern.fit for data in memory")
    return [
        Column(field.name, field.dataType.simpleString(), isinstance(field.dataType, NumericType | BooleanType))
        for field in X.schema
    ]


def _fields(names: Sequence[str]) -> list[str]:
    return [f"x{j}" for j in range(len(names))]


def _doubles(names: Sequence[str]) -> list[Any]:
    return [_column(name).cast("double").alias(field) for name, field in zip(names, _fields(names), strict=True)]


def _column(name: str) -> Any:
    return col("`" + name.replace("`", "``") + "`")
