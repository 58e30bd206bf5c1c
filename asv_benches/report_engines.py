"""Rows per second of fits of one Parquet file on every engine, compared with the engine's own sums.

python -m asv_benches.report_engines [--rows 2000000] [--only WORD] [--write docs/benchmarks/engines.inc]
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import powerkern as pk
from powerkern.sketch import fit_chunks

from ._measure import InTurns, matrix
from .report import cores, list_table, machine

_COLUMNS = 10
_CPUS = 2
#: Rows of a group of the file: what an engine reads at once.
_GROUP = 100_000


class Jobs(NamedTuple):
    """Functions that read the file from disk with an engine and compute a fit, the sum of one column, or all sums."""

    fit: Callable[[], pk.PowerFit]
    one_sum: Callable[[], Any]
    all_sums: Callable[[], Any]


@contextlib.contextmanager
def in_memory(path: Path) -> Iterator[Jobs]:
    import pandas

    def read(columns: list[str] | None = None) -> pandas.DataFrame:
        return pandas.read_parquet(path, columns=columns)

    yield Jobs(lambda: pk.fit(read()), lambda: read(["x0"]).sum(), lambda: read().sum())


@contextlib.contextmanager
def arrow(path: Path) -> Iterator[Jobs]:
    import pyarrow.compute
    import pyarrow.dataset

    data = pyarrow.dataset.dataset(path)

    def sums(columns: list[str]) -> list[float]:
        total = np.zeros(len(columns))
        for batch in data.to_batches(columns=columns):
            total += [pyarrow.compute.sum(column).as_py() or 0.0 for column in batch.columns]
        return total.tolist()

    yield Jobs(lambda: fit_chunks(data), lambda: sums(["x0"]), lambda: sums(data.schema.names))


@contextlib.contextmanager
def polars(path: Path) -> Iterator[Jobs]:
    import polars

    frame = polars.scan_parquet(path)
    yield Jobs(lambda: fit_chunks(frame), lambda: frame.select("x0").sum().collect(), lambda: frame.sum().collect())


@contextlib.contextmanager
def duckdb(path: Path) -> Iterator[Jobs]:
    import duckdb

    with duckdb.connect() as connection:
        relation = connection.read_parquet(str(path))
        every = ", ".join(f"sum({name})" for name in relation.columns)
        yield Jobs(
            lambda: fit_chunks(relation), relation.sum("x0").fetchall, lambda: relation.aggregate(every).fetchall()
        )


@contextlib.contextmanager
def dask(path: Path) -> Iterator[Jobs]:
    import dask
    import dask.dataframe

    import powerkern.dask

    frame = dask.dataframe.read_parquet(path, split_row_groups=True)
    with dask.config.set(scheduler="threads", num_workers=_CPUS):
        yield Jobs(lambda: powerkern.dask.fit(frame), frame["x0"].sum().compute, frame.sum().compute)


@contextlib.contextmanager
def spark(path: Path) -> Iterator[Jobs]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession, functions

    import powerkern.spark

    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    session = SparkSession.builder.master(f"local[{_CPUS}]").config(map=settings).getOrCreate()
    frame = session.read.parquet(str(path))
    every = [functions.sum(name) for name in frame.columns]
    yield Jobs(lambda: powerkern.spark.fit(frame), frame.agg(every[0]).collect, frame.agg(*every).collect)
    session.stop()


@contextlib.contextmanager
def ray(path: Path) -> Iterator[Jobs]:
    # otherwise workers that are idle for a second end, and each step of a plan waits until new ones have started
    kept = {"RAY_idle_worker_killing_time_threshold_ms": "600000", "RAY_num_workers_soft_limit": str(4 * _CPUS)}
    os.environ.update(RAY_worker_niceness="0", RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0", **kept)
    import ray
    import ray.data

    import powerkern.ray

    logging.getLogger("ray.data").setLevel("ERROR")
    ray.init(num_cpus=_CPUS, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    data = ray.data.read_parquet(str(path))
    names = data.schema().names
    yield Jobs(lambda: powerkern.ray.fit(data), lambda: data.sum("x0"), lambda: data.sum(names))
    ray.shutdown()


#: By engine: the module it needs, and the function that returns its jobs.
ENGINES: dict[str, tuple[str, Callable[[Path], AbstractContextManager[Jobs]]]] = {
    "pandas, in memory": ("pandas", in_memory),
    "pyarrow.dataset": ("pyarrow", arrow),
    "polars, lazy": ("polars", polars),
    "DuckDB": ("duckdb", duckdb),
    "Dask, threads": ("dask", dask),
    "Spark, local": ("pyspark", spark),
    "Ray Data": ("ray", ray),
}


def written(folder: str, rows: int) -> Path:
    """Write a Parquet file of `rows` rows with skewed numeric columns to `folder`, in row groups; return its path."""
    import pyarrow
    import pyarrow.parquet

    columns = {f"x{j}": column for j, column in enumerate(matrix("yeo-johnson", rows, _COLUMNS, "F").T)}
    path = Path(folder, "data.parquet")
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=_GROUP, use_dictionary=False)
    return path


HEADINGS = (
    "engine",
    "fit, million rows a second",
    "sum of a column, million rows a second",
    "sums of all columns, million rows a second",
    "a fit in sums of all columns",
)


def row(name: str, jobs: Jobs, rows: int) -> tuple[str, ...]:
    """Return an engine's row of the table.

    It has the name, millions of rows per second of each job, and the time of the fit relative to the sums of all
    columns.
    """
    turns = InTurns()
    turns.seconds = 5.0
    for job in jobs:
        job()  # compiles, and starts workers
    laps = turns.compare(jobs._asdict())
    speeds = (f"{rows / laps[job].wall / 1e6:.2f}" for job in Jobs._fields)
    return name, *speeds, f"{turns.ratio('fit', 'all_sums'):.1f}"


def measured(rows: int, only: str) -> Iterator[tuple[str, ...]]:
    """Yield a row for each installed engine whose name contains `only`, measured on a file of `rows` rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder, rows)
        for name, (module, engine) in ENGINES.items():
            if only in name and importlib.util.find_spec(module):
                with engine(path) as jobs:
                    yield row(name, jobs, rows)


def main() -> None:
    """Measure the engines, print a line for each, write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000, help="length of the file")
    parser.add_argument("--only", default="", help="measure engines whose name has this word")
    parser.add_argument("--write", type=Path, help="write the table as reStructuredText to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    conditions = f"{machine()}; before the run {cores()}"
    print(conditions, " | ".join(HEADINGS), sep="\n", flush=True)
    rows = []
    for cells in measured(options.rows, options.only):
        print(" | ".join(cells), flush=True)
        rows.append(cells)
    conditions += f", after it {cores()}."
    command = "python -m asv_benches.report_engines" + f' --only "{options.only}"' * bool(options.only)
    caption = f"Measured by ``{command}`` with {options.rows:,} rows of {_COLUMNS} columns on: {conditions}"
    if options.write:
        options.write.write_text(list_table(caption, HEADINGS, rows))


if __name__ == "__main__":
    main()
