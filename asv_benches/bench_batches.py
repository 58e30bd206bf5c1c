"""Tables read in batches, compared with the same rows in memory: time, and growth of memory."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

import powerkern as pk
from powerkern.sketch import fit_chunks

from ._measure import FAMILIES, InTurns, in_new_process, matrix

_COLUMNS = 10

#: How each kind of table is made from the path of a Parquet file.
KINDS = {
    "pyarrow data set": "import pyarrow.dataset; table = pyarrow.dataset.dataset(path)",
    "pyarrow ParquetFile": "import pyarrow.parquet; table = pyarrow.parquet.ParquetFile(path)",
    "polars LazyFrame": "import polars; table = polars.scan_parquet(path)",
    "DuckDB relation": "import duckdb; table = duckdb.read_parquet(path)",
    "the command line": "table = None",
}

_CHILD = """
import os, sys
import numpy as np, pyarrow as pa
import powerkern as pk
from asv_benches._measure import peak_memory
from powerkern.__main__ import main
from powerkern.sketch import fit_chunks
path = {path!r}
sys.stdout, shown = open(os.devnull, "w"), sys.stdout
fit_chunks(pa.table({{f"x{{j}}": np.arange(9.0) for j in range(3)}}))
{kind}
before = peak_memory()
main(["fit", path]) if table is None else fit_chunks(table)
print(peak_memory() - before, file=shown)
"""


def write(path: Path, megabytes: float, rows: int) -> None:
    """Write an uncompressed Parquet file of about `megabytes` MB, in groups of `rows` rows."""
    x = matrix("yeo-johnson", rows, _COLUMNS, "F")
    group = pa.table({f"x{j}": column for j, column in enumerate(x.T)})
    with pq.ParquetWriter(path, group.schema, compression="none", use_dictionary=False) as writer:
        for _ in range(max(1, round(megabytes * 1e6 / x.nbytes))):
            writer.write_table(group)


class Memory:
    """Growth, in MB, of a process's peak memory while it fits a file that may be larger than memory."""

    params = (list(KINDS), [70], [100_000])
    param_names = ("kind", "megabytes", "rows")
    timeout = 300

    def track_growth(self, kind: str, megabytes: float, rows: int) -> float:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "data.parquet")
            write(path, megabytes, rows)
            return float(in_new_process(_CHILD.format(path=str(path), kind=KINDS[kind])))


class BesideMemory(InTurns):
    """CPU time with Arrow batches of rows, relative to all rows in one array."""

    params = (FAMILIES, [100_000], [20])
    param_names = ("family", "n", "p")

    def setup(self, family: str, n: int, p: int) -> None:
        self.x = matrix(family, n, p, "F")
        self.table = pa.table({f"x{j}": column for j, column in enumerate(self.x.T)})
        pk.fit(self.x[:100], family)

    def _compare(self, **calls: Any) -> float:
        self.compare(calls)
        return self.laps["batches"].cpu / self.laps["memory"].cpu

    def track_fit_over_memory(self, family: str, n: int, p: int) -> float:
        """CPU time of a fit from Arrow batches, relative to powerkern.fit of the array."""
        return self._compare(
            batches=lambda: fit_chunks(self.table, family), memory=lambda: pk.fit(self.x, family, n_threads=2)
        )

    def track_transform_over_memory(self, family: str, n: int, p: int) -> float:
        """CPU time of a transform of Arrow batches, relative to a transform of the array."""
        fit, data = pk.fit(self.x, family), pa.dataset.dataset(self.table)
        return self._compare(
            batches=lambda: [len(batch) for batch in fit.transform(data)],
            memory=lambda: np.shape(fit.transform(self.x)),
        )
