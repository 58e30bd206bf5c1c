"""Fits of Spark data frames equal fits of all rows in memory, in two passes, even if executors are small or die."""

from __future__ import annotations

import doctest
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import processes
import pytest
from engines import assert_same_robust_fit
from numpy.testing import assert_allclose, assert_array_equal
from pages import ROOT, blocks

import powerkern as pk
from powerkern import Status

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed")
pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")
if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
    pytest.skip("Spark needs Java", allow_module_level=True)

from pyspark import TaskContext  # noqa: E402
from pyspark.errors import PythonException  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402

import powerkern.spark  # noqa: E402
from powerkern.sketch import fit_chunks  # noqa: E402
from powerkern.spark import fit, inverse_transform, transform  # noqa: E402

pytestmark = [
    pytest.mark.slow,  # time to start processes and to send code to them
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning"),
]

#: Memory of the JVM, which is both driver and executor in these tests.
MEMORY = 512 << 20


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """Return a session with two threads, three attempts per task, small batches and few partitions."""
    settings = {
        "spark.driver.memory": f"{MEMORY >> 20}m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",  # failures of workers and errors about data are intended here
        "spark.sql.session.timeZone": "UTC",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        session = SparkSession.builder.master("local[2,4]").config(map=settings).getOrCreate()
        yield session
        session.stop()


N = 3000


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(14)
    table = pandas.DataFrame(
        {
            "id": [f"row {i}" for i in range(N)],
            "a b": rng.lognormal(size=N),
            "single": rng.gamma(3.0, size=N).astype(np.float32),
            "count": rng.integers(1, 100, N),
            "weight": rng.integers(0, 4, N).astype(float),
        }
    )
    table.loc[::7, "a b"] = np.nan
    return table


@pytest.fixture(scope="module")
def df(spark, frame):
    """Return the table in two partitions and an empty third; missing values are NaN in even rows, null in odd rows."""
    whole = spark.createDataFrame(frame).repartition(2, F.col("id"))
    b = F.col("a b")
    missing = b.isNull() | F.isnan(b)
    even = F.substring_index("id", " ", -1).cast("int") % 2 == 0
    whole = whole.withColumn("a b", F.when(missing & even, np.nan).when(missing, None).otherwise(b))
    whole = whole.withColumn("single", F.col("single").cast("float"))
    return whole.unionByName(whole.filter("count > 1000").coalesce(1)).persist()


def assert_same(found: pk.PowerFit, expected: pk.PowerFit) -> None:
    assert_allclose(found.lmbda, expected.lmbda, rtol=1e-10, atol=1e-10)
    assert_array_equal(found.status, expected.status)
    assert_array_equal(found.n_obs, expected.n_obs)


NAMES = ["a b", "single", "count"]


class Counted:
    """A data frame that counts how often its partitions are read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, batches):
        partition = TaskContext.get().partitionId()
        with (self.folder / f"{partition}").open("a") as file:
            file.write("r")
        yield from batches

    def reads(self) -> list[int]:
        return [len(path.read_text()) for path in self.folder.iterdir()]


def test_weights_by_name_nulls_and_empty_partitions_in_two_passes(df, frame, tmp_path):
    counted = Counted(tmp_path)
    found = fit(df.mapInArrow(counted, df.schema), "box-cox", sample_weight="weight")
    expected = pk.fit(frame[NAMES].to_numpy(), "box-cox", sample_weight=frame["weight"].to_numpy())
    assert_same(found, expected)
    assert found.column_names == NAMES
    assert counted.reads() == [2] * df.rdd.getNumPartitions()


@pytest.mark.parametrize("estimator", [pk.AdaptiveRewML(cutoff=0.99), pk.Carroll(cutoff=0.99)])
def test_robust_fits_agree_with_the_fit_in_memory(df, frame, estimator):
    found = fit(df, "box-cox", estimator, columns=NAMES)
    expected = fit_chunks([frame[NAMES]], "box-cox", estimator)
    assert_same_robust_fit(found, expected)


def test_detection_limits_agree_with_the_fit_in_memory(df, frame):
    limits = ([0.5, -np.inf, 10.0], [np.inf, 4.0, np.inf])
    found = fit(df, "box-cox", columns=NAMES, limits=limits)
    expected = pk.fit(frame[NAMES].to_numpy(), "box-cox", limits=limits)
    assert_array_equal(found.n_censored, expected.n_censored)
    assert_allclose(found.lmbda, expected.lmbda, rtol=1e-8)
    assert_allclose(found.expected(frame[NAMES]), expected.expected(frame[NAMES].to_numpy()), rtol=1e-7)


def test_chosen_columns_and_options_agree_with_the_fit_in_memory(df, frame):
    options = {"standardize": False, "lmbda": [0.5, np.nan], "ymax": 1e30}
    names = ["count", "a `quoted` name with a ."]
    renamed = df.withColumnRenamed("a b", names[1])
    found = fit(renamed, columns=names, **options)
    expected = pk.fit(frame[["count", "a b"]].to_numpy(), **options)
    assert_same(found, expected)
    assert found.column_names == names
    assert transform(renamed, found).columns == renamed.columns
    assert found.standardize is False


def in_order(df, frame):
    return df.toPandas().set_index("id").loc[frame["id"]]


def test_transforms_are_lazy_and_keep_the_other_columns(df, frame, tmp_path):
    fitted = pk.fit(frame[NAMES[::-1]])
    counted = Counted(tmp_path)
    Z = transform(df.mapInArrow(counted, df.schema), fitted)
    back = inverse_transform(Z, fitted)
    assert counted.reads() == []
    assert [(field.name, field.dataType.simpleString()) for field in Z.schema] == [
        ("id", "string"),
        ("a b", "double"),
        ("single", "float"),
        ("count", "double"),
        ("weight", "double"),
    ]
    found = in_order(Z.withColumn("null", F.col("a b").isNull()), frame)
    expected = fitted.transform(frame)
    assert_array_equal(found["a b"], expected["a b"])
    assert_array_equal(found["single"], expected["single"].astype(np.float32))
    assert_array_equal(found["count"], expected["count"])
    assert_array_equal(found["weight"], frame["weight"])
    assert_array_equal(found["null"], (np.arange(N) % 14 == 7))
    assert set(counted.reads()) == {1}
    assert_allclose(in_order(back, frame)[NAMES], frame[NAMES].astype(float), rtol=1e-5)


def test_a_fit_without_names_takes_all_columns_of_numbers(df, frame):
    numbers = df.drop("weight")
    fitted = pk.fit(frame[NAMES].to_numpy())
    found = in_order(transform(numbers, fitted), frame)
    assert_array_equal(found["count"], fitted.transform(frame[NAMES].to_numpy())[:, 2])
    with pytest.raises(ValueError, match="X has 4 columns, the fit has 3"):
        transform(df, fitted)


# --- workers that are small, and workers that die -----------------------------------------------------


def siblings() -> list[int]:
    """Return the other worker processes of this worker's daemon."""
    processes = [path for path in Path("/proc").iterdir() if path.name.isdigit() and int(path.name) != os.getpid()]
    found = []
    for process in processes:
        try:
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:  # the process has ended already
            continue
        if int(parent) == os.getppid():
            found.append(int(process.name))
    return found


def killing(batches):
    """Yield the batches of a partition; at the first attempt, kill all other workers midway."""
    context = TaskContext.get()
    for i, batch in enumerate(batches):
        if i == 2 and context.partitionId() == 1 and context.attemptNumber() == 0:
            for worker in siblings():
                os.kill(worker, signal.SIGKILL)
        yield batch


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="workers are found as Linux lists them")
def test_workers_that_die_change_nothing(spark, tmp_path):
    X = spark.range(0, 60_000, 1, 2).select(*(F.rand(j).alias(f"x{j}") for j in range(3)))
    counted = Counted(tmp_path)
    found = fit(X.mapInArrow(counted, X.schema).mapInArrow(killing, X.schema))
    assert sum(counted.reads()) > 2 * 2  # some tasks ran again
    assert_array_equal(found.lmbda, fit(X).lmbda)


def peak_memory(batches):
    for _ in batches:
        pass
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    yield pyarrow.RecordBatch.from_pydict({"bytes": [int(line.split()[1]) * 1024]})


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured as Linux tells it")
def test_more_data_than_memory_are_fitted(spark):
    """A JVM of 512 MB fits 640 MB of data; its Python workers grow by less than a tenth of the data."""
    rows, columns = 4_000_000, 20

    def data(rows):
        return spark.range(0, rows, 1, 8).select(*(F.rand(j).alias(f"x{j}") for j in range(columns)))

    def largest():
        return max(row.bytes for row in spark.range(8).mapInArrow(peak_memory, "bytes long").collect())

    fit(data(100_000))  # compiles
    before = largest()
    found = fit(data(rows))
    assert rows * columns * 8 > MEMORY
    assert largest() - before < rows * columns * 8 / 10
    assert_array_equal(found.n_obs, rows)
    assert np.ptp(found.lmbda) < 0.01  # all columns have one distribution


# --- wrong use ----------------------------------------------------------------------------------------


def test_values_outside_the_domain_are_named(df):
    wrong = df.withColumn("count", F.when(F.col("id") == "row 77", -1).otherwise(F.col("count")))
    place = r"in partition \d, from row 0 of it: column 2 \('count'\), row \d+: the value is -1\.0"
    with pytest.raises(ValueError, match=place):
        fit(wrong, "box-cox", columns=NAMES)
    with pytest.raises(PythonException, match=place):
        transform(wrong, fit(df, "box-cox", columns=NAMES)).collect()


def test_wrong_use_is_refused(df, frame):
    with pytest.raises(
        TypeError, match=r"X is a DataFrame, not a Spark data frame; use powerkern\.fit for data in memory"
    ):
        fit(frame)
    with pytest.raises(ValueError, match="X has no rows; pass at least one row"):
        fit(df.filter("count > 1000"))
    with pytest.raises(TypeError, match="no column of X holds numbers: 'id'"):
        fit(df.select("id"))
    with pytest.raises(ValueError, match=r"there is no column 'v' among 'id', 'a b', 'single', 'count', 'weight'"):
        fit(df, sample_weight="v")
    with pytest.raises(TypeError, match="sample_weight must be the name of a column, got ndarray"):
        fit(df, sample_weight=np.ones(3))
    with pytest.raises(TypeError, match="column 'id' is of type string, which holds no numbers"):
        fit(df, columns=["id"])
    with pytest.raises(ValueError, match="there is more than one column 'id'"):
        fit(df.select("id", "id", "count"), columns=["id"])
    with pytest.raises(ValueError, match="did you mean 'box-cox'"):
        fit(df, "boxcox")
    with pytest.raises(TypeError, match=r"fit must be a PowerFit, .* got Series"):
        transform(df, frame["count"])
    with pytest.raises(ValueError, match="there is no column 'count' among 'id', 'single'"):
        transform(df.select("id", "single"), pk.fit(frame[["count"]]))


def test_columns_without_a_fit(spark):
    table = spark.createDataFrame([(float(i), 3, None) for i in range(10)], "x double, constant int, empty double")
    with pytest.warns(UserWarning, match="constant"):
        found = fit(table)
    assert_array_equal(found.status, [Status.OK, Status.CONSTANT, Status.EMPTY])


CONNECT = """
import warnings
warnings.simplefilter("ignore")
import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
import powerkern as pk
from powerkern.sketch import fit_chunks  # noqa: E402
from powerkern.spark import fit, transform
session = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
df = session.range(0, 1000, 1, 2).select(F.lit("x").alias("name"), F.exp(F.randn(2)).alias("a"), F.rand(4).alias("w"))
fitted, table = fit(df, "box-cox", sample_weight="w"), df.toPandas()
difference = fitted.lmbda - pk.fit(table["a"], "box-cox", sample_weight=table["w"]).lmbda
moved = transform(df, fitted).toPandas()
print(type(df).__module__, abs(difference).max() < 1e-12, np.array_equal(moved["a"], fitted.transform(table["a"])))
session.stop()
"""


def test_spark_connect_fits_and_transforms():
    pytest.importorskip("grpc", reason="the client of Spark Connect is not installed: pip install 'pyspark[connect]'")
    pytest.importorskip("grpc_status", reason="the client of Spark Connect is not installed")
    workers = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    found, complaint = processes.start(CONNECT, **workers).communicate()
    assert found.split() == ["pyspark.sql.connect.dataframe", "True", "True"], complaint


def test_examples_of_docstrings_run(spark):
    assert doctest.testmod(powerkern.spark).failed == 0


def test_code_of_the_guide_runs(spark, tmp_path):
    table = pandas.DataFrame(np.random.default_rng(0).lognormal(size=(200, 3)), columns=list("uvw"))
    (tmp_path / "measurements").mkdir()
    table.to_parquet(tmp_path / "measurements/part.parquet")
    code = blocks(ROOT / "docs/guide/spark.rst", "python")[0]
    for folder in ("measurements", "transformed"):  # the JVM runs in another working directory
        code = code.replace(f'"{folder}"', f'"{tmp_path}/{folder}"')
    exec(code, {})
    fitted = pk.fit(table, sample_weight="w")
    assert_allclose(pandas.read_parquet(tmp_path / "transformed"), fitted.transform(table), rtol=1e-10, atol=1e-12)


def test_without_pyspark_the_import_says_what_to_install():
    _, complaint = processes.start("import sys; sys.modules['pyspark'] = None; import powerkern.spark").communicate()
    assert "powerkern.spark needs PySpark, pandas and PyArrow: pip install pyspark pandas pyarrow" in complaint


def test_groups_of_rows_in_any_partitions_equal_groups_in_memory(spark):
    rng = np.random.default_rng(32)
    frame = pandas.DataFrame(
        {"id": rng.choice(["b", "a"], 600), "u": rng.lognormal(size=600), "k": rng.integers(0, 2, 600)}
    )
    table = spark.createDataFrame(frame).repartition(3)
    found = powerkern.spark.fit(table, "box-cox", groups=["id", "k"])
    whole = pk.fit(frame, "box-cox", groups=["id", "k"])
    assert found.groups == whole.groups
    assert found.column_names == ["u"]
    assert_allclose(found.lmbda, whole.lmbda, rtol=0, atol=1e-10)
    with pytest.raises(ValueError, match="there is no column of that name"):
        powerkern.spark.fit(table, groups="nosuch")
