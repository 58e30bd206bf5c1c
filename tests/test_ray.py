"""Fits with Ray: datasets, chunks given as objects or functions, small memory, and workers that are killed."""

from __future__ import annotations

import doctest
import functools
import os
import signal
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import processes
import pytest
from engines import assert_same_robust_fit
from numpy.testing import assert_allclose, assert_array_equal
from pages import ROOT, blocks

import powerkern as pk

ray = pytest.importorskip("ray", reason="Ray is not installed")
pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("ray.data", reason="Ray Data is not installed")

import powerkern.ray  # noqa: E402
from powerkern.ray import fit, inverse_transform, transform  # noqa: E402
from powerkern.sketch import fit_chunks  # noqa: E402

pytestmark = [
    pytest.mark.slow,  # time to start processes and to send code to them
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning"),
]

#: Bytes of Ray's object store.
STORE = 100 << 20
N = 3000


@pytest.fixture(scope="module", autouse=True)
def _cluster(tmp_path_factory) -> Iterator[None]:
    """Start Ray with two CPUs, no files in the home directory, and workers of the priority of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "RAY_worker_niceness": "0",
            "RAY_AUTH_MODE": "disabled",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        }.items():
            patch.setenv(name, value)
        ray.init(
            num_cpus=2,
            object_store_memory=STORE,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
            runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}},
        )
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield
        ray.shutdown()


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(14)
    table = pandas.DataFrame(
        {
            "id": [f"row {i}" for i in range(N)],
            "skew": rng.lognormal(size=N),
            "single": rng.gamma(3.0, size=N).astype(np.float32),
            "count": rng.integers(1, 100, N),
            "weight": rng.integers(0, 4, N).astype(float),
        }
    )
    table.loc[::7, "skew"] = np.nan
    return table


NAMES = ["skew", "single", "count"]


@pytest.fixture(scope="module")
def dataset(frame):
    """Return the table in three Arrow blocks, with nulls, and an empty block."""
    table = pyarrow.Table.from_pandas(frame)
    return ray.data.from_arrow([table[:1000], table[1000:1000], table[1000:1001], table[1001:]])


def assert_same(found: pk.PowerFit, expected: pk.PowerFit) -> None:
    assert_allclose(found.lmbda, expected.lmbda, rtol=1e-10, atol=1e-10)
    assert_array_equal(found.status, expected.status)
    assert_array_equal(found.n_obs, expected.n_obs)


class Counted:
    """A function that creates a file in `folder` at each call. It returns its argument or, without one, `rows`."""

    def __init__(self, folder: Path, rows=None) -> None:
        self.folder, self.rows = folder, rows

    def __call__(self, *block):
        (self.folder / str(uuid.uuid4())).touch()
        return block[0] if block else self.rows

    def calls(self) -> list[Path]:
        return list(self.folder.iterdir())


# --- datasets -----------------------------------------------------------------------------------------


def test_detection_limits_agree_with_the_fit_in_memory(frame, dataset):
    limits = ([0.5, -np.inf, 10.0], [np.inf, 4.0, np.inf])
    found = fit(dataset, "box-cox", columns=NAMES, limits=limits)
    expected = pk.fit(frame[NAMES].to_numpy(), "box-cox", limits=limits)
    assert_array_equal(found.n_censored, expected.n_censored)
    assert_allclose(found.lmbda, expected.lmbda, rtol=1e-8)
    assert_allclose(found.expected(frame[NAMES]), expected.expected(frame[NAMES].to_numpy()), rtol=1e-7)


def test_a_dataset_in_two_passes(frame, dataset, tmp_path):
    counted = Counted(tmp_path)
    dataset.schema()
    found = fit(
        dataset.map_batches(counted, batch_format="pyarrow", batch_size=None), "box-cox", sample_weight="weight"
    )
    expected = pk.fit(frame[NAMES].to_numpy(), "box-cox", sample_weight=frame["weight"].to_numpy())
    assert_same(found, expected)
    assert found.column_names == NAMES


@pytest.mark.parametrize("estimator", [pk.AdaptiveRewML(cutoff=0.99), pk.Carroll(cutoff=0.99)])
def test_robust_fits_agree_with_the_fit_in_memory(dataset, frame, estimator):
    found = fit(dataset, "box-cox", estimator, columns=NAMES)
    expected = fit_chunks([frame[NAMES]], "box-cox", estimator)
    assert_same_robust_fit(found, expected)


def test_chosen_columns_and_options_agree_with_the_fit_in_memory(dataset, frame):
    options = {"standardize": False, "lmbda": [0.5, np.nan], "ymax": 1e30}
    found = fit(dataset, columns=["count", "skew"], **options)
    assert_same(found, pk.fit(frame[["count", "skew"]].to_numpy(), **options))
    assert found.column_names == ["count", "skew"]
    assert found.standardize is False


def in_order(dataset, frame):
    """Return the numeric columns of a Ray dataset as an array, with rows in the order of `frame`."""
    found = dataset.to_pandas().set_index("id").loc[frame["id"]]
    return found[[*NAMES, "weight"]].to_numpy(dtype=float, na_value=np.nan)


def test_transforms_are_lazy_and_keep_the_other_columns(dataset, frame, tmp_path):
    fitted = pk.fit(frame[NAMES[::-1]])
    counted = Counted(tmp_path)
    Z = transform(dataset.map_batches(counted, batch_format="pyarrow", batch_size=None), fitted)
    back = inverse_transform(Z, fitted)
    assert counted.calls() == []
    found = in_order(Z, frame)
    assert_array_equal(found, fitted.transform(frame)[[*NAMES, "weight"]])
    assert Z.schema().names == list(frame.columns)
    assert_allclose(in_order(back, frame)[:, :3], frame[NAMES].astype(float), rtol=1e-5)


def test_a_fit_without_names_takes_all_columns_of_numbers(dataset, frame):
    fitted = pk.fit(frame[[*NAMES, "weight"]].to_numpy())
    assert_array_equal(
        in_order(transform(dataset, fitted), frame), fitted.transform(frame[[*NAMES, "weight"]].to_numpy())
    )


# --- chunks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_chunks_and_functions_agree_with_the_fit_in_memory(frame, weighted, tmp_path):
    X, weight = frame[NAMES].to_numpy(), frame["weight"].to_numpy()
    functions = [Counted(tmp_path, part) for part in np.split(X, [100, 100, 1000])]
    chunks = [*functions[:2], *(ray.put(one.rows) for one in functions[2:])]
    weights = [ray.put(part) for part in np.split(weight, [100, 100, 1000])] if weighted else None
    found = fit(chunks, "box-cox", sample_weight=weights, column_names=NAMES)
    assert_same(found, pk.fit(X, "box-cox", sample_weight=weight if weighted else None))
    assert found.column_names == NAMES
    assert len(functions[0].calls()) == 2 * 2


def test_chunks_with_weights_by_name(frame):
    chunks = [ray.put(part) for part in (frame[:50], frame[50:])]
    numbers = [functools.partial(ray.get, chunk) for chunk in chunks]
    found = fit([functools.partial(without_id, one) for one in numbers], sample_weight="weight")
    assert_same(found, pk.fit(frame[NAMES].to_numpy(), sample_weight=frame["weight"].to_numpy()))


def test_the_first_chunk_determines_the_order_of_columns(frame):
    """Summaries merge in order of arrival; here the first chunk arrives last."""
    part = frame[NAMES]
    expected = fit([ray.put(part[i : i + 50]) for i in (0, 50, 100)], "box-cox")
    assert expected.column_names == NAMES
    others = [ray.put(part[i : i + 50][NAMES[::-1]]) for i in (50, 100)]
    found = fit([functools.partial(read_late, part[:50]), *others], "box-cox")
    assert_same(found, expected)
    assert found.column_names == NAMES
    names = [f"new {name}" for name in NAMES]
    named = fit([functools.partial(read_late, part[:50]), *others], "box-cox", column_names=names)
    assert_same(named, expected)
    assert named.column_names == names


def read_late(rows):
    time.sleep(0.5)
    return rows


def without_id(read):
    return read().drop(columns="id")


# --- workers that are small, and workers that die -----------------------------------------------------


class Mortal(Counted):
    """A function that kills its process at the first call and returns `rows` at later calls."""

    def __call__(self):
        first = not self.calls()
        super().__call__()
        if first:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.rows


def test_workers_that_die_change_nothing(frame, tmp_path):
    X = frame[NAMES].to_numpy()
    parts = np.array_split(X, 6)
    chunks = [ray.put(part) for part in parts]
    mortal = Mortal(tmp_path, parts[3])
    found = fit([*chunks[:3], mortal, *chunks[4:]])
    assert len(mortal.calls()) == 3
    assert_array_equal(found.lmbda, fit(chunks).lmbda)


class Made:
    """A function of no argument that returns random rows.

    It writes its process's peak memory to a file in `folder`, which is named after the process.
    """

    rows, columns = 100_000, 20

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed

    def __call__(self):
        line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
        (self.folder / f"{os.getpid()}").write_text(line.split()[1])
        return np.random.default_rng(self.seed).random((self.rows, self.columns))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured as Linux tells it")
def test_more_data_than_memory_are_fitted_in_chunks(tmp_path):
    """Fit 480 MB of data in chunks of 16 MB, with an object store of 100 MB for the summaries.

    The peak memory of each worker grows by less than five chunks.
    """
    chunks = [Made(tmp_path, seed) for seed in range(30)]

    def largest():
        return max(1024 * int(path.read_text()) for path in tmp_path.iterdir())

    fit(chunks[:3])  # compiles
    before, chunk = largest(), 8 * Made.rows * Made.columns
    found = fit(chunks)
    assert len(chunks) * chunk > 4 * STORE
    assert largest() - before < 5 * chunk
    assert_array_equal(found.n_obs, len(chunks) * Made.rows)


# --- wrong use ----------------------------------------------------------------------------------------


def test_values_outside_the_domain_are_named(dataset, frame):
    X = np.ones((4, 2))
    X[3, 1] = -1.0
    with pytest.raises(ValueError, match=r"in chunk 1: column 1, row 3: the value is -1\.0"):
        fit([ray.put(abs(X)), ray.put(X)], "box-cox")
    place = r"in a block of the dataset, from row 0 of it: column 1 \('single'\), row \d+: the value is -"
    wrong = dataset.map_batches(negated, batch_format="pandas")
    with pytest.raises(ValueError, match=place):
        fit(wrong, "box-cox", columns=NAMES)
    with pytest.raises(Exception, match=place):
        transform(wrong, fit(dataset, "box-cox", columns=NAMES)).materialize()


def negated(batch):
    return batch.assign(single=-batch["single"])


def test_wrong_use_is_refused(dataset, frame):
    X = frame[NAMES].to_numpy()
    for wrong in (X, frame, [X]):
        with pytest.raises(TypeError, match=r"X must be a Ray dataset, or a list .* got .*; use powerkern\.fit"):
            fit(wrong)
    for empty in ([], dataset.limit(0)):
        with pytest.raises(ValueError, match="X has no rows"):
            fit(empty)
    with pytest.raises(ValueError, match="sample_weight has 2 chunks, X has 1"):
        fit([ray.put(X)], sample_weight=[ray.put(X[:, 0])] * 2)
    with pytest.raises(TypeError, match="columns= is for datasets; X is a list"):
        fit([ray.put(X)], columns=["a"])
    with pytest.raises(TypeError, match="no column of X holds numbers: 'id'"):
        fit(dataset.select_columns(["id"]))
    with pytest.raises(ValueError, match="there is no column 'v' among 'id', 'skew', 'single', 'count', 'weight'"):
        fit(dataset, sample_weight="v")
    with pytest.raises(TypeError, match="sample_weight must be the name of a column, got list"):
        fit(dataset, sample_weight=[1.0])
    with pytest.raises(TypeError, match=r"column 'id' is of type (large_)?string, which holds no numbers"):
        fit(dataset, columns=["id"])
    with pytest.raises(ValueError, match="did you mean 'box-cox'"):
        fit(dataset, "boxcox")
    with pytest.raises(TypeError, match=r"fit must be a PowerFit, .* got ndarray"):
        transform(dataset, X)
    with pytest.raises(TypeError, match="X is a DataFrame, not a Ray dataset; in a task, call the method transform"):
        transform(frame, pk.fit(X))


def test_examples_of_docstrings_run():
    assert doctest.testmod(powerkern.ray, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).failed == 0


def test_code_of_the_guide_runs(tmp_path):
    table = pandas.DataFrame(np.random.default_rng(0).lognormal(size=(200, 3)), columns=list("uvw"))
    (tmp_path / "measurements").mkdir()
    table.to_parquet(tmp_path / "measurements/part.parquet")
    np.save(tmp_path / "part.npy", table[["u", "v"]])
    files, chunks = blocks(ROOT / "docs/guide/ray.rst", "python")[:2]
    for folder in ("measurements", "transformed"):
        files = files.replace(f'"{folder}"', f'"{tmp_path}/{folder}"')
    names = {"blocks": [table[["u", "v"]]], "paths": [tmp_path / "part.npy"]}
    exec(files, names)
    fitted = pk.fit(table, sample_weight="w")
    assert_allclose(pandas.read_parquet(tmp_path / "transformed"), fitted.transform(table), rtol=1e-10, atol=1e-12)
    exec(chunks, names)
    assert_allclose(names["fit"].lmbda, pk.fit(table[["u", "v"]], "box-cox").lmbda, rtol=1e-10)
    assert_allclose(ray.get(names["transformed"])[0], names["fit"].transform(table[["u", "v"]]))


def test_without_ray_the_import_says_what_to_install():
    _, complaint = processes.start("import sys; sys.modules['ray'] = None; import powerkern.ray").communicate()
    assert "powerkern.ray needs Ray Data: pip install 'ray[data]'" in complaint
