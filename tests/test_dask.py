"""Fits of Dask collections read the data twice and equal fits of the data in memory, however they are chunked."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from fits import kernel_rows
from numpy.testing import assert_allclose, assert_array_equal

import powerkern as pk
from powerkern import PowerFit, Status

da = pytest.importorskip("dask.array")
import dask.bag  # noqa: E402

from powerkern.dask import _transform_chunk, _tree, fit, inverse_transform, transform  # noqa: E402
from powerkern.sketch import fit_chunks  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:FutureWarning")

FAMILIES = ("yeo-johnson", "box-cox")


@pytest.fixture(autouse=True)
def _single_threaded():
    with dask.config.set(scheduler="synchronous"):
        yield


def skewed_and_tight_with_holes(family: str, n: int = 1000) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [rng.lognormal(size=n), rng.gamma(3.0, size=n), 1e4 + 1e-3 * rng.normal(size=n), rng.uniform(1900, 2024, n)]
    )
    if family == "yeo-johnson":
        X = np.column_stack([X, rng.normal(size=n), rng.gumbel(size=n) * 1e5])
    X[rng.random(X.shape) < 0.05] = np.nan
    return X


def assert_same_fit(actual: PowerFit, expected: PowerFit) -> None:
    assert_array_equal(actual.status, expected.status)
    assert_allclose(actual.lmbda, expected.lmbda, rtol=1e-10, atol=1e-10)
    assert_array_equal(actual.n_obs, expected.n_obs)
    assert_array_equal([actual.x_min, actual.x_max], [expected.x_min, expected.x_max])
    assert actual.column_names == expected.column_names


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("chunks", [(1000, -1), (100, -1), (333, 1), ((1, 0, 499, 500), (3, -1)), (1000, 2)])
def test_any_chunks_give_the_fit_of_all_rows(family, chunks):
    X = skewed_and_tight_with_holes(family)
    if chunks[1] == (3, -1):
        chunks = (chunks[0], (3, X.shape[1] - 3))
    D = da.from_array(X, chunks=chunks)
    fitted, expected = fit(D, family), pk.fit(X, family)
    assert_same_fit(fitted, expected)
    Z = transform(D, fitted)
    assert isinstance(Z, da.Array)
    assert Z.chunks == D.chunks
    assert_array_equal(Z.compute(), fitted.transform(X))
    back = inverse_transform(Z, fitted)
    assert back.chunks == D.chunks
    assert_allclose(back.compute(), X, rtol=1e-9)
    assert_allclose(np.array(fitted.confint()), np.array(expected.confint()), rtol=1e-7)


def test_a_one_dimensional_array_is_one_column():
    x = np.random.default_rng(1).normal(size=1000)
    fitted = fit(da.from_array(x, chunks=130))
    assert_same_fit(fitted, pk.fit(x))
    assert transform(da.from_array(x, chunks=130), fitted).compute().shape == (1000,)


def test_float32_stays_float32():
    X = da.from_array(skewed_and_tight_with_holes("box-cox").astype(np.float32), chunks=(300, 2))
    Z = transform(X, fit(X, "box-cox"))
    assert Z.dtype == Z.compute().dtype == np.float32


class Reader:
    """A source of chunks that counts how often each chunk is computed."""

    def __init__(self, X: np.ndarray, rows: int) -> None:
        self.X, self.rows = X, rows
        self.reads = np.zeros(len(X) // rows, dtype=int)
        self.lock = threading.Lock()

    def read(self, block: np.ndarray, block_info: dict | None = None) -> np.ndarray:
        i = block_info[0]["chunk-location"][0]
        with self.lock:
            self.reads[i] += 1
        return self.X[i * self.rows : (i + 1) * self.rows].copy()

    def array(self):
        empty = da.zeros(self.X.shape, chunks=(self.rows, -1))
        return empty.map_blocks(self.read, dtype=self.X.dtype, meta=self.X[:0])


def test_the_data_are_read_twice():
    reader = Reader(skewed_and_tight_with_holes("yeo-johnson"), 100)
    fit(reader.array())
    assert_array_equal(reader.reads, 2)


def test_transforms_read_nothing_until_they_are_computed():
    reader = Reader(skewed_and_tight_with_holes("yeo-johnson"), 100)
    fitted = pk.fit(reader.X)
    Z = inverse_transform(transform(reader.array(), fitted), fitted)
    assert_array_equal(reader.reads, 0)
    Z[:50].compute()
    assert reader.reads.sum() == 1


def test_columns_that_need_a_finer_grid_are_read_again():
    X = np.column_stack([np.random.default_rng(0).normal(size=10_000), np.arange(10_000) == 77])
    D = da.from_array(X, chunks=(2500, 1))
    assert_same_fit(fit(D), pk.fit(X))
    assert_same_fit(fit(D.rechunk((2500, 2))), pk.fit(X))


@pytest.mark.parametrize("kind", ["array in memory", "dask array", "dask array in other chunks"])
def test_weights_in_any_chunks_equal_weights_in_memory(kind):
    X = skewed_and_tight_with_holes("box-cox")
    weight = np.random.default_rng(2).integers(0, 3, size=len(X)).astype(float)
    weight[:100] = 0.0
    given = {
        "array in memory": weight,
        "dask array": da.from_array(weight, chunks=100),
        "dask array in other chunks": da.from_array(weight, chunks=77),
    }[kind]
    fitted = fit(da.from_array(X, chunks=(100, 2)), "box-cox", sample_weight=given)
    assert_allclose(fitted.lmbda, pk.fit(X, "box-cox", sample_weight=weight).lmbda, rtol=1e-10, atol=1e-10)


def test_options_are_those_of_fit():
    X = skewed_and_tight_with_holes("box-cox")
    D = da.from_array(X, chunks=(100, 3))
    options = {"standardize": False, "lmbda": [0.5, np.nan, 1.0, np.nan], "ymax": 1e30, "column_names": list("abcd")}
    fitted, expected = fit(D, "box-cox", **options), pk.fit(X, "box-cox", **options)
    assert_same_fit(fitted, expected)
    assert_allclose(transform(D, fitted).compute(), expected.transform(X), rtol=1e-9)


@pytest.mark.parametrize("options", [{}, {"estimator": "robust", "criterion": "pearson"}])
def test_best_chooses_the_families_chosen_in_memory(options):
    X = skewed_and_tight_with_holes("box-cox")
    X[:, 1] -= 1.0
    fitted, expected = fit(da.from_array(X, chunks=(100, 2)), "best", **options), pk.fit(X, "best", **options)
    assert fitted.families == expected.families
    assert_allclose(fitted.lmbda, expected.lmbda, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_summaries_are_merged_two_at_a_time_in_any_order():
    D = da.from_array(skewed_and_tight_with_holes("yeo-johnson"), chunks=(30, 3))
    fits = []
    for scheduler in ("synchronous", "threads"):
        with dask.config.set(scheduler=scheduler):
            fits.append(fit(D).to_json())
    assert fits[0] == fits[1] == fit(D[:, :]).to_json()


@pytest.mark.parametrize("estimator", [pk.AdaptiveRewML(cutoff=0.95), "mtl", "carroll"])
def test_robust_fits_are_those_of_chunks(estimator):
    X = skewed_and_tight_with_holes("box-cox")
    X[::50] *= 20.0
    expected = fit_chunks(np.split(X, 8), "box-cox", estimator)
    assert fit(da.from_array(X, chunks=(125, -1)), "box-cox", estimator).to_json() == expected.to_json()
    for other in (da.from_array(X, chunks=(125, 3)), [dask.delayed(part) for part in np.split(X, 8)]):
        assert_array_equal(fit(other, "box-cox", estimator).lmbda, expected.lmbda)


def test_progress_counts_passes(monkeypatch):
    tqdm = pytest.importorskip("tqdm")
    counted: list[str] = []

    class Bar(tqdm.tqdm):
        def update(self, n=1):
            counted.append(self.unit)

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    fit(da.from_array(skewed_and_tight_with_holes("yeo-johnson"), chunks=(100, -1)), progress=True)
    assert counted == [" passes"] * 2


def test_columns_without_a_fit():
    X = np.column_stack([np.full(10, np.nan), np.full(10, 3.0), np.arange(10.0)])
    with pytest.warns(UserWarning, match="column 1: .*; column 0: "):
        fitted = fit(da.from_array(X, chunks=(3, 2)))
    assert_array_equal(fitted.status, [Status.EMPTY, Status.CONSTANT, Status.OK])


# --- data frames --------------------------------------------------------------------------------------


@pytest.fixture
def dd():
    return pytest.importorskip("dask.dataframe")


def test_fits_and_transforms_of_data_frames_equal_pandas(dd):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        skewed_and_tight_with_holes("yeo-johnson"), columns=list("uvwxyz"), index=np.arange(1000) * 2
    )
    D = dd.from_pandas(frame, npartitions=7)
    fitted = fit(D)
    assert_same_fit(fitted, pk.fit(frame))
    Z = transform(D, fitted)
    pandas.testing.assert_frame_equal(Z.compute(), fitted.transform(frame))
    pandas.testing.assert_frame_equal(inverse_transform(Z, fitted).compute(), frame, rtol=1e-9)
    weight = pandas.Series(np.arange(1000.0), index=frame.index)
    weighted = fit(D, sample_weight=dd.from_pandas(weight, npartitions=7))
    assert_allclose(weighted.lmbda, pk.fit(frame, sample_weight=weight).lmbda, rtol=1e-10, atol=1e-10)
    one = fit(D["u"])
    assert_same_fit(one, pk.fit(frame["u"]))
    pandas.testing.assert_series_equal(transform(D["u"], one).compute(), one.transform(frame["u"]))


@pytest.mark.parametrize("dtype", [float, np.float32, int])
def test_a_negative_shift_keeps_dtypes_of_data_frames(dd, dtype):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.arange(5, 305).reshape(-1, 2), columns=["u", "v"], dtype=dtype).assign(word="a")
    D = dd.from_pandas(frame, npartitions=3)
    fitted = fit(D[["u", "v"]], "box-cox", shift=-4.5)
    Z = transform(D, fitted)
    assert list(Z.dtypes) == list(Z.compute().dtypes)
    pandas.testing.assert_frame_equal(Z.compute()[["u", "v"]], fitted.transform(frame[["u", "v"]]))
    back = inverse_transform(Z, fitted).compute()
    assert_allclose(back[["u", "v"]], frame[["u", "v"]], rtol=1e-5)


def test_chunks_of_unknown_length_need_weights_that_are_dask_arrays(dd):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(skewed_and_tight_with_holes("yeo-johnson"))
    D = dd.from_pandas(frame, npartitions=5)
    some = D[D[0] > 1.0]  # partitions of unknown length, possibly empty
    D2 = dd.concat([some, D[D[0] > 1e9]])
    expected = pk.fit(frame[frame[0] > 1.0])
    assert_same_fit(fit(D2), expected)
    fitted = fit(D2.values)
    assert_same_fit(fitted, pk.fit(frame[frame[0] > 1.0].to_numpy()))
    assert_array_equal(transform(D2.values, fitted).compute(), fitted.transform(frame[frame[0] > 1.0].to_numpy()))
    with pytest.raises(ValueError, match="sample_weight is in memory and the chunks of X have unknown lengths"):
        fit(some.values, sample_weight=np.ones(5))


@pytest.mark.parametrize("columns", [(4,), (2, 2), (1, 3)])
def test_transforms_of_unknown_length_in_blocks_of_columns(columns):
    X = skewed_and_tight_with_holes("yeo-johnson")
    X = X[:, :4]
    D = da.from_array(X, chunks=((200, len(X) - 200), columns))
    some = D[D[:, 0] > 1.0]
    expected = X[X[:, 0] > 1.0]
    fitted = fit(some)
    assert_same_fit(fitted, pk.fit(expected))
    Z = transform(some, fitted)
    assert_array_equal(Z.compute(), fitted.transform(expected))
    assert_array_equal(inverse_transform(Z, fitted).compute(), fitted.inverse_transform(fitted.transform(expected)))
    assert len(Z.chunks[1]) == len(columns)
    one = pk.fit(expected[:, 1])
    assert_array_equal(transform(some[:, 1], one).compute(), one.transform(expected[:, 1]))


def test_weights_may_be_a_column_of_the_data_frame(dd):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(skewed_and_tight_with_holes("box-cox"), columns=list("abcd"))
    frame.insert(1, "w", np.random.default_rng(2).integers(0, 3, size=len(frame)).astype(float))
    D, rest = dd.from_pandas(frame, npartitions=4), frame.drop(columns="w")
    expected = pk.fit(rest, "box-cox", sample_weight=frame["w"])
    fitted = fit(D, "box-cox", sample_weight="w")
    assert_same_fit(fitted, expected)
    assert_same_fit(fit(D.to_delayed(), "box-cox", sample_weight="w"), expected)
    assert_same_fit(
        fit(D, "box-cox", sample_weight="w", column_names=list("pqrs")),
        pk.fit(rest, "box-cox", sample_weight=frame["w"], column_names=list("pqrs")),
    )
    pandas.testing.assert_frame_equal(
        transform(D.drop(columns="w"), fitted).compute(), expected.transform(rest), rtol=1e-9
    )
    with pytest.raises(ValueError, match=r"in partition \d: sample_weight='v': there is no column of that name"):
        fit(D, sample_weight="v")
    with pytest.raises(TypeError, match=r"sample_weight='w' names a column, but X is a \w+, not a data frame"):
        fit(D.to_dask_array(lengths=True), sample_weight="w")


# --- delayed chunks -----------------------------------------------------------------------------------


def test_delayed_chunks_equal_the_array_in_memory():
    X = skewed_and_tight_with_holes("box-cox")
    weight = np.random.default_rng(2).integers(0, 3, size=len(X)).astype(float)
    cuts = [0, 1, 400]
    chunks = [dask.delayed(part) for part in np.split(X, cuts)]
    fitted = fit(chunks, "box-cox")
    assert_same_fit(fitted, pk.fit(X, "box-cox"))
    options = {"shift": [0.0, 1.0, 2.0, 3.0], "column_names": list("abcd")}
    moved = fit(chunks, "box-cox", **options)
    assert_allclose(moved.lmbda, pk.fit(X, "box-cox", **options).lmbda, rtol=1e-10, atol=1e-10)
    assert moved.column_names == list("abcd")
    for weights in (np.split(weight, cuts), [dask.delayed(part) for part in np.split(weight, cuts)]):
        assert_same_fit(fit(chunks, "box-cox", sample_weight=weights), pk.fit(X, "box-cox", sample_weight=weight))
    Z = transform(chunks, fitted)
    assert_array_equal(np.concatenate(dask.compute(*Z)), fitted.transform(X))
    back = inverse_transform(Z, fitted)
    assert_allclose(np.concatenate(dask.compute(*back)), X, rtol=1e-9)
    with pytest.raises(ValueError, match="sample_weight must be a list of 4 entries, the weights of each chunk"):
        fit(chunks, sample_weight=weight)
    with pytest.raises(ValueError, match=r"in chunk 2: column 0, row 3: the value is -1\.0"):
        fit([*chunks[:2], dask.delayed([[1.0], [2.0], [3.0], [-1.0]])], "box-cox", lmbda=1.0)


# --- wrong use ----------------------------------------------------------------------------------------


def test_wrong_data_are_named():
    X = np.arange(1.0, 21.0).reshape(5, 4)
    X[4, 3] = -1.0
    D = da.from_array(X, chunks=(3, 2))
    with pytest.raises(ValueError, match=r"in the chunk from row 3, column 2: column 1, row 1: the value is -1\.0"):
        fit(D, "box-cox")
    with pytest.raises(ValueError, match=r"column 1, row 1: the value is -1\.0"):
        transform(D, pk.fit(abs(X), "box-cox")).compute()
    with pytest.raises(TypeError, match=r"X is a ndarray, not .* or list of delayed chunks; use powerkern.fit"):
        fit(X)
    with pytest.raises(TypeError, match="X is a Bag, not a Dask array"):
        fit(dask.bag.from_sequence([1.0, 2.0]))
    with pytest.raises(TypeError, match=r"X is a Delayed\w*, not a Dask array"):
        fit(dask.delayed(X))
    with pytest.raises(ValueError, match="X has 3 dimensions"):
        fit(da.ones((2, 2, 2)))
    with pytest.raises(ValueError, match="X has no rows or no columns"):
        fit(da.ones((0, 3)))
    with pytest.raises(ValueError, match="did you mean 'box-cox'"):
        fit(D, "boxcox")
    with pytest.raises(ValueError, match="estimator='ppcc' needs all values in order"):
        fit(D, "box-cox", "ppcc")
    with pytest.raises(ValueError, match="X has 4 columns, the fit has 1"):
        transform(D, pk.fit([1.0, 2.0]))
    with pytest.raises(TypeError, match=r"fit must be a PowerFit, .* got ndarray"):
        transform(D, X)
    with pytest.raises(TypeError, match=r"in the chunk from row 0, column 0: .* is complex"):
        fit(da.ones((4, 2), dtype=complex))
    with pytest.raises(ValueError, match="sample_weight has 2 chunks, X has 5"):
        fit(da.ones((5, 1), chunks=(1, 1)), sample_weight=da.ones(4, chunks=2))
    with pytest.raises(ValueError, match="column_names has 3 names, X has 4 columns"):
        fit(abs(D), column_names=list("abc"))


# --- clusters -----------------------------------------------------------------------------------------


@pytest.fixture
def distributed():
    return pytest.importorskip("distributed")


@pytest.mark.slow
def test_a_cluster_of_threads_gives_the_fit_in_memory(distributed):
    X = skewed_and_tight_with_holes("yeo-johnson")
    with (
        distributed.LocalCluster(1, 2, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
        dask.config.set(scheduler=None),
    ):
        D = da.from_array(X, chunks=(100, 3))
        fitted = fit(D)
        assert_same_fit(fitted, pk.fit(X))
        assert_array_equal(transform(D, fitted).compute(), fitted.transform(X))
        assert fit(client.scatter(np.split(X, 10))).to_json() == fit(da.from_array(X, chunks=(100, -1))).to_json()


def fatal_at_first(block: np.ndarray, mark: Path, block_id: tuple[int, ...] = ()) -> np.ndarray:
    """Return the block, but kill the process when block (5, 0) is computed for the second time.

    `mark` is an existing folder, in which each computation of that block creates a file. Fits compute each block once
    per pass, so the process dies in the second pass; the third computation succeeds.
    """
    if block_id == (5, 0):
        before = len(list(mark.iterdir()))
        (mark / str(before)).touch()
        if before == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    return block


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_killed_worker_does_not_change_the_fit(distributed, tmp_path):
    """A worker is killed in the second pass and restarted. Dask computes the chunks again, and the fit is unchanged."""
    X = skewed_and_tight_with_holes("yeo-johnson")
    D = da.from_array(X, chunks=(100, -1))
    expected = fit(D)
    with (
        dask.config.set({"distributed.logging.distributed": "critical", "scheduler": None}),
        distributed.LocalCluster(1, 1, processes=True, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        before = client.submit(os.getpid, pure=False).result()
        fitted = fit(D.map_blocks(fatal_at_first, tmp_path, dtype=float, meta=X[:0]))
        assert client.submit(os.getpid, pure=False).result() != before
    assert len(list(tmp_path.iterdir())) == 3  # once in the first pass, twice in the second
    assert fitted.to_json() == expected.to_json()


def peak_memory() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="memory is measured as POSIX does")
def test_a_worker_fits_more_data_than_its_memory(distributed):
    """A worker limited to 450 MB fits 480 MB of data; its peak memory grows by less than a fifth of the data.

    The data have 10 or 1,000 columns, in chunks of 6 MB.
    """
    tall, wide = (
        da.random.default_rng(5).random(size=(60_000_000 // p, p), chunks=(750_000 // p, p)) for p in (10, 1000)
    )
    with (
        dask.config.set({"distributed.logging.distributed": "error", "scheduler": None}),
        distributed.LocalCluster(1, 1, processes=True, dashboard_address=":0", memory_limit="450MB") as cluster,
        distributed.Client(cluster) as client,
    ):
        fit(tall[:75_000])  # compiles
        before = client.submit(peak_memory, pure=False).result()
        for D in (tall, wide):
            fitted = fit(D)
            assert D.nbytes > 450e6
            assert client.submit(peak_memory, pure=False).result() - before < D.nbytes / 5
            assert_array_equal(fitted.n_obs, len(D))
        assert len(client.scheduler_info()["workers"]) == 1
    assert np.ptp(fit(tall[:75_000]).lmbda) < 0.1  # all columns have one distribution


def test_groups_of_rows_in_any_partitions_equal_groups_in_memory(dd):
    rng = np.random.default_rng(32)
    frame = pytest.importorskip("pandas").DataFrame({"id": rng.choice(["b", "a"], 600), "u": rng.lognormal(size=600)})
    whole = pk.fit(frame, "box-cox", groups="id")
    for X in (dd.from_pandas(frame, npartitions=4), [dask.delayed(frame[:250]), dask.delayed(frame[250:])]):
        found = fit(X, "box-cox", groups="id")
        assert found.groups == ["a", "b"]
        np.testing.assert_allclose(found.lmbda, whole.lmbda, rtol=0, atol=1e-10)
    with pytest.raises(TypeError, match="X must be a Dask data frame"):
        fit(da.zeros((9, 2)), groups="id")
    with pytest.raises(ValueError, match="weights cannot be combined with groups"):
        fit(dd.from_pandas(frame, npartitions=2), groups="id", sample_weight="u")
    with pytest.raises(ValueError, match="there is no column of that name"):
        fit(dd.from_pandas(frame, npartitions=2), groups="nosuch")


def test_a_misspelled_option_is_refused():
    with pytest.raises(TypeError, match=r"'n_thread' is not an option of .*fit_chunks; did you mean 'n_threads'\?"):
        fit(da.ones((10, 2)), n_thread=2)


@pytest.mark.parametrize("delayed", [False, True])
def test_partitions_with_columns_in_another_order_are_aligned(delayed):
    pandas, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    values = np.random.default_rng(5).lognormal(size=(600, 3)) * [1.0, 30.0, 0.01]
    parts = [pandas.DataFrame(part, columns=["a", "b", "c"]) for part in np.split(values, 3)]
    moved = [parts[0], parts[1][["c", "a", "b"]], parts[2][["b", "a", "c"]]]

    def collection(chunks):
        chunks = [dask.delayed(chunk) for chunk in chunks]
        return chunks if delayed else dd.from_delayed(chunks, meta=parts[0].iloc[:0], verify_meta=False)

    for estimator in ("mle", "rewml"):
        found, expected = (fit(collection(chunks), "box-cox", estimator) for chunks in (moved, parts))
        assert found.column_names == expected.column_names == ["a", "b", "c"]
        assert_array_equal(kernel_rows(found), kernel_rows(expected))
        names = ["x", "y", "z"]
        named = fit(collection(moved), "box-cox", estimator, column_names=names)
        assert named.column_names == names
        assert_array_equal(kernel_rows(named), kernel_rows(expected))
    renamed = [parts[0], moved[1].rename(columns={"c": "other"}), parts[2]]
    for options in ({}, {"column_names": names}):
        with pytest.raises(ValueError, match="'other'"):
            fit(collection(renamed), **options)


@pytest.mark.parametrize("chunks", [(100, -1), (70, 1)])
def test_detection_limits_hold_in_blocks(chunks):
    X = np.random.default_rng(4).lognormal(size=(300, 3))
    X[5, 1] = np.nan
    limits = ([0.4, 0.7, -np.inf], [np.inf, 2.0, np.inf])
    actual = fit(da.from_array(X, chunks=chunks), "box-cox", limits=limits)
    expected = pk.fit(X, "box-cox", limits=limits)
    assert_array_equal(actual.n_censored, expected.n_censored)
    assert_allclose(actual.lmbda, expected.lmbda, rtol=1e-8)
    assert_allclose(actual.transform(X), expected.transform(X), rtol=1e-7)


def test_weights_of_arrays_may_be_a_series(dd):
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).lognormal(size=(60, 2))
    weight = np.arange(60.0) % 3
    D, series = da.from_array(X, chunks=(20, 2)), dd.from_pandas(pandas.Series(weight), npartitions=3)
    expected = pk.fit(X, "box-cox", sample_weight=weight)
    assert_allclose(fit(D, "box-cox", sample_weight=series).lmbda, expected.lmbda, rtol=1e-10)
    with pytest.raises(ValueError, match="sample_weight has 4 chunks, X has 3"):
        fit(D, sample_weight=dd.from_pandas(pandas.Series(weight), npartitions=4))


def test_names_and_shifts_belong_to_the_columns_of_all_blocks():
    X = np.random.default_rng(0).lognormal(size=(60, 3))
    options = {"shift": [0.5, 1.0, 2.0], "column_names": list("abc")}
    for chunks in ((30, 2), (60, 1), (20, 3)):
        found = fit(da.from_array(X, chunks=chunks), "box-cox", **options)
        expected = pk.fit(X, "box-cox", **options)
        assert found.column_names == list("abc")
        assert_array_equal(found.shift, expected.shift)
        assert_allclose(found.lmbda, expected.lmbda, rtol=1e-10)
        assert_allclose(found.transform(X), expected.transform(X), rtol=1e-9, atol=1e-10)


# --- parts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(8))
def test_neighboring_summaries_are_merged_in_a_balanced_tree(n):
    depth = []

    def merge(a, b):
        depth.append((a, b))
        return a + b

    (found,) = dask.compute(_tree([dask.delayed(letter) for letter in "abcdefg"[:n]], merge))
    assert found == ("abcdefg"[:n] or None)
    assert len(depth) == max(n - 1, 0)
    if n == 7:
        assert {len(a) + len(b) for a, b in depth} == {2, 3, 4, 7}
    (found,) = dask.compute(_tree([dask.delayed(part) for part in ("a", None, None, "b", None)], merge))
    assert found == "ab"


def test_chunks_without_rows_have_the_type_of_the_output():
    fitted = pk.fit(np.random.default_rng(0).lognormal(size=(20, 2)))
    for dtype, expected in ((int, np.float64), (np.float32, np.float32)):
        empty = _transform_chunk(np.empty((0, 2), dtype), fitted, "transform")
        assert (empty.shape, empty.dtype) == ((0, 2), expected)
    frame = pytest.importorskip("pandas").DataFrame({"a": [], "b": []})
    assert _transform_chunk(frame, fitted, "transform") is frame


def test_chunks_of_unknown_length_are_named_by_number():
    X = np.arange(1.0, 41.0).reshape(20, 2)
    X[15, 1] = -1.0
    D = da.from_array(X, chunks=(10, 1))
    with pytest.raises(ValueError, match=r"in chunk 1, 1: column 0, row 5: the value is -1\.0"):
        fit(D[D[:, 0] > 0.0], "box-cox")


def test_an_axis_too_many_and_lists_that_are_not_delayed_are_refused():
    with pytest.raises(ValueError, match="X has 0 dimensions; pass a table"):
        fit(da.ones(()))
    for wrong in ([], [np.ones(3)], [dask.delayed(np.ones(3)), np.ones(3)]):
        with pytest.raises(TypeError, match="X is a list, not a Dask array"):
            fit(wrong)
    parts = [dask.delayed(np.ones(3)), dask.delayed(np.arange(3.0))]
    for weights in (np.ones(6), [np.ones(3)], 1.0):
        with pytest.raises(ValueError, match="sample_weight must be a list of 2 entries, the weights of each chunk"):
            fit(parts, sample_weight=weights)
    fit(tuple(parts), sample_weight=(np.ones(3), np.ones(3)))
