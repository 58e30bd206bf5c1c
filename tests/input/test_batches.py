"""Tables of pyarrow, polars and DuckDB that are read in batches; results equal results for the tables in memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import powerkern as pk
from powerkern.sketch import fit_chunks

pa = pytest.importorskip("pyarrow")
dataset = pytest.importorskip("pyarrow.dataset")
parquet = pytest.importorskip("pyarrow.parquet")

N = 1000
rng = np.random.default_rng(14)
TABLE = pa.table(
    {
        "size": pa.array(rng.lognormal(size=N), mask=rng.random(N) < 0.1),
        "kind": ["x", "y"] * (N // 2),
        'an "odd", name.': rng.normal(size=N),
        "w": rng.integers(0, 4, N),
        "count": rng.integers(0, 9, N).astype("i2"),
    }
)
NUMERIC = ["size", 'an "odd", name.', "count"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the table in three files, each of two row groups; one ends with an empty group."""
    path = tmp_path_factory.mktemp("tables")
    for i in range(3):
        part = TABLE.slice(i * 400, 400)
        parquet.write_table(part, path / f"{i}.parquet", row_group_size=300)
    return path


def relation(folder):
    return pytest.importorskip("duckdb").connect().sql(f"select * from '{folder}/*.parquet'")


def expression(folder):
    ibis = pytest.importorskip("ibis")
    return ibis.polars.connect().read_parquet(folder / "*.parquet")


def wrapped(make):
    return lambda folder: pytest.importorskip("narwhals").from_native(make(folder))


SOURCES = {
    "table": lambda folder: TABLE,
    "record batch": lambda folder: TABLE.combine_chunks().to_batches()[0],
    "data set": dataset.dataset,
    "data set in memory": lambda folder: dataset.dataset(TABLE),
    "rows of a data set": lambda folder: dataset.dataset(folder).filter(dataset.field("count") >= 0),
    "scanner": lambda folder: dataset.dataset(folder).scanner(batch_size=70),
    "lazy frame": lambda folder: pytest.importorskip("polars").scan_parquet(folder / "*.parquet"),
    "relation": relation,
    "expression of Ibis": expression,
    "lazy frame of narwhals": wrapped(lambda folder: pytest.importorskip("polars").scan_parquet(folder / "*.parquet")),
    "relation in narwhals": wrapped(relation),
}
sources = pytest.mark.parametrize("source", SOURCES)


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    monkeypatch.setattr("powerkern._input.batches.CELLS", 400)


def as_table(result):
    """Return the result of a transform as a table in memory."""
    if hasattr(result, "read_all"):
        return result.read_all()
    return pa.table(result.collect().to_arrow()) if hasattr(result, "collect") else pa.table(result)


def assert_same(one, other):
    assert_allclose(one.lmbda, other.lmbda, rtol=1e-11, atol=1e-11)
    assert_array_equal(one.n_obs, other.n_obs)
    assert_array_equal(one.status, other.status)
    assert one.column_names == other.column_names


@sources
def test_fits_are_those_of_memory(source, folder):
    table = SOURCES[source](folder)
    expected = pk.fit(TABLE, sample_weight="w", non_numeric="ignore")
    assert expected.column_names == NUMERIC
    assert_same(fit_chunks(table, sample_weight="w", non_numeric="ignore"), expected)
    assert_same(fit_chunks(lambda: table, sample_weight="w", non_numeric="ignore"), expected)
    with pytest.warns(UserWarning, match="^columns that hold no numbers are left out of the fit: 'kind'$") as caught:
        fit = fit_chunks(table, non_numeric="warn")
    assert [warning.filename for warning in caught] == [__file__]
    assert_same(fit, pk.fit(TABLE, non_numeric="ignore"))
    with pytest.raises(TypeError, match=r"in chunk 0: column 1 \('kind'\), row 0: 'x' is not a real number"):
        fit_chunks(table, sample_weight="w")


@sources
def test_transforms_are_those_of_memory(source, folder):
    table = SOURCES[source](folder)
    fit = pk.fit(TABLE.select(NUMERIC))
    expected = fit.transform(TABLE)
    out = fit.transform(table)
    found = as_table(out)
    assert found.column_names == expected.column_names
    for name in expected.column_names:
        assert found[name].to_pylist() == expected[name].to_pylist()
    back = as_table(fit.inverse_transform(fit.transform(table)))
    assert back["size"].null_count == TABLE["size"].null_count
    assert_allclose(back["size"].to_numpy(), TABLE["size"].to_numpy(), rtol=1e-12)


def test_results_are_lazy_as_the_input(folder):
    polars = pytest.importorskip("polars")
    fit = pk.fit(TABLE.select(NUMERIC))
    lazily = fit.transform(SOURCES["lazy frame"](folder))
    assert isinstance(lazily, polars.LazyFrame)
    again = fit.transform(SOURCES["lazy frame of narwhals"](folder))
    assert isinstance(again, pytest.importorskip("narwhals").LazyFrame)
    assert again.to_native().collect().equals(lazily.collect())
    assert lazily.collect_schema()["count"] == polars.Float64
    assert lazily.filter(polars.col("kind") == "z").collect().shape == (0, 5)
    stream = fit.transform(dataset.dataset(folder))
    assert isinstance(stream, pa.RecordBatchReader)
    assert max(batch.num_rows for batch in stream) <= 400 // 5


@pytest.mark.slow
def test_results_of_any_batches_are_the_same(monkeypatch):
    fits = []
    for cells in (5, 400, 2**20):
        monkeypatch.setattr("powerkern._input.batches.CELLS", cells)
        fits.append(fit_chunks(TABLE, non_numeric="ignore"))
    assert_same(fits[0], fits[1])
    assert_same(fits[0], fits[2])


def test_a_parquet_file_is_read_in_batches(folder):
    file = parquet.ParquetFile(folder / "0.parquet")
    expected = pk.fit(TABLE[:400], non_numeric="ignore")
    assert_same(fit_chunks(file, non_numeric="ignore"), expected)
    assert as_table(expected.transform(file)).equals(expected.transform(TABLE[:400]))


@pytest.mark.parametrize("column", [TABLE["size"], TABLE["size"].combine_chunks()])
def test_a_column_is_fitted_as_in_memory(column):
    assert_same(fit_chunks(column, "box-cox"), pk.fit(column, "box-cox"))


def test_a_stream_is_read_once(folder):
    fit = pk.fit(TABLE.select(NUMERIC))
    out = fit.transform(TABLE.to_reader(max_chunksize=90))
    assert isinstance(out, pa.RecordBatchReader)
    assert out.read_all().equals(fit.transform(TABLE))
    with pytest.raises(
        TypeError, match=r"an iterator, which can be read only once, .* pass a function that restarts it"
    ):
        fit_chunks(TABLE.to_reader())
    assert_same(fit_chunks(TABLE.to_reader, non_numeric="ignore"), pk.fit(TABLE, non_numeric="ignore"))


@pytest.mark.parametrize("path", ["large.parquet", Path("large.csv")])
def test_a_path_is_not_a_table(path):
    with pytest.raises(TypeError, match=r"chunks is a path; pass .*, such as pyarrow\.dataset\.dataset\(path\), or"):
        fit_chunks(path)


def test_chunks_of_data_frames_leave_out_what_is_no_number_in_the_first():
    pandas = pytest.importorskip("pandas")
    frame = TABLE.to_pandas()
    chunks = [frame[:300], frame[300:]]
    expected = pk.fit(TABLE, sample_weight="w", non_numeric="ignore")
    assert_same(fit_chunks(chunks, sample_weight="w", non_numeric="ignore"), expected)
    chunks[1] = frame[300:].assign(size="?")
    with pytest.raises(TypeError, match=r"in chunk 1: column 0 \('size'\), row 0: '\?' is not a real number"):
        fit_chunks(chunks, non_numeric="ignore")
    with pytest.raises(TypeError, match="no column of X holds numbers: 'kind'"):
        fit_chunks([pandas.DataFrame({"kind": ["x"], "w": [1.0]})], sample_weight="w", non_numeric="ignore")


def test_bad_values_are_named_with_their_batch():
    fit = pk.fit(TABLE.select(["size"]), "box-cox")
    bad = pa.table({"size": np.where(np.arange(N) == 215, -1.0, 1.0), "b": 1.0 + np.arange(N)})
    with pytest.raises(ValueError, match=r"in chunk 1: column 0 \('size'\), row 15: the value is -1\.0"):
        fit_chunks(bad, "box-cox")
    with pytest.raises(ValueError, match=r"in batch 1: column 0 \('size'\), row 15: the value is -1\.0"):
        fit.transform(dataset.dataset(bad)).read_all()
    polars = pytest.importorskip("polars")
    with pytest.raises(ValueError, match=r"column 0 \('size'\), row \d+: the value is -1\.0"):
        fit.transform(polars.from_arrow(bad).lazy()).collect()


@pytest.mark.parametrize(
    "source", ["data set", "lazy frame", "relation", "expression of Ibis", "lazy frame of narwhals"]
)
def test_wrong_columns_are_an_error_at_once(source, folder):
    table = SOURCES[source](folder)
    with pytest.raises(TypeError, match=r"column 1 \('kind'\) holds text"):
        pk.fit(np.column_stack([TABLE["w"], TABLE["count"]])).transform(table)
    with pytest.raises(TypeError, match=r"out= is for data in memory, not for a .*, which is read in batches"):
        pk.fit(TABLE.select(NUMERIC)).transform(table, out=np.empty((N, 3)))
    with pytest.raises(TypeError, match="sample_weight must be the name of a column if"):
        fit_chunks(table, sample_weight=[np.ones(N)])


MEMORY = """
import sys, numpy as np
import pyarrow as pa, pyarrow.dataset, pyarrow.parquet
import powerkern as pk
from powerkern.sketch import fit_chunks
from pathlib import Path

def peak():
    return next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)

path, kind = sys.argv[1:]
table = pa.dataset.dataset(path) if kind == "data set" else pa.parquet.ParquetFile(path)
warm = pa.table({"a": np.arange(9.0), "b": np.arange(9.0)})
pk.fit(warm).transform(warm)
fit_chunks(warm)
before = peak()
fit = fit_chunks(table)
for batch in fit.transform(table):
    pass
print((peak() - before) / 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say how much memory was used")
@pytest.mark.parametrize("kind", ["data set", "file"])
def test_memory_is_that_of_some_groups_of_rows(kind, tmp_path):
    path, rows = tmp_path / "large.parquet", 250_000
    with parquet.ParquetWriter(
        path, pa.schema([("a", "f8"), ("b", "f8")]), compression="none", use_dictionary=False
    ) as w:
        for seed in range(40):  # 160 MB in groups of 4 MB
            w.write_table(pa.table(dict(zip("ab", np.random.default_rng(seed).normal(size=(2, rows)), strict=True))))
    words = [sys.executable, "-c", MEMORY, str(path), kind]
    found = subprocess.run(
        words, check=True, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert float(found.stdout) < 80
