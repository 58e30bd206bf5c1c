"""Fits from chunks with a user's engine equal the fit of all rows, for any way to map and merge."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from engines import Engine
from numpy.testing import assert_allclose, assert_array_equal

import powerkern as pk
from powerkern import PowerFit
from powerkern.sketch import MapReduce, fit_chunks, location_chunks
from powerkern.sketch.engine import (
    ChunkOutcome,
    TableColumn,
    columns_to_read,
    merge_outcomes,
    summarize_or_catch,
    summarize_tables,
)

rng = np.random.default_rng(14)
N = 1000
X = np.column_stack([rng.lognormal(size=N), rng.gamma(3.0, size=N), rng.normal(size=N)])
X[rng.random(X.shape) < 0.05] = np.nan
WEIGHT = rng.integers(0, 4, N).astype(float)
CUTS = [0, 1, 1, 400, 999]


def assert_same(fit: PowerFit, expected: PowerFit) -> None:
    assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-10, atol=1e-10)
    assert_array_equal(fit.status, expected.status)
    assert_array_equal(fit.n_obs, expected.n_obs)


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_any_engine_gives_the_fit_of_all_rows(weight):
    parts = np.split(X, CUTS)
    pairs = [(part,) for part in parts] if weight is None else zip(parts, np.split(weight, CUTS), strict=True)
    engine = Engine(*pairs)
    assert_same(fit_chunks(MapReduce(engine)), pk.fit(X, sample_weight=weight))
    assert engine.passes == 2


def test_columns_that_need_a_finer_grid_are_asked_for_alone():
    rare = np.column_stack([rng.normal(size=10_000), np.arange(10_000) == 77])
    engine = Engine((rare[:6000],), (rare[6000:],))
    assert_same(fit_chunks(MapReduce(engine)), pk.fit(rare))
    assert 2 < engine.passes <= 5


@pytest.mark.parametrize("make", ["pandas", "polars"])
def test_weights_by_name(make):
    library = pytest.importorskip(make)
    table = dict(zip("abw", [X[:, 0], X[:, 1], WEIGHT], strict=True))
    frames = [
        library.DataFrame({name: column[at] for name, column in table.items()}) for at in (slice(10), slice(10, N))
    ]
    expected = pk.fit(X[:, :2], "box-cox", sample_weight=WEIGHT)
    for fit in (
        fit_chunks(MapReduce(Engine(*((frame,) for frame in frames))), "box-cox", sample_weight="w"),
        fit_chunks(frames, "box-cox", sample_weight="w"),
    ):
        assert_same(fit, expected)
        assert fit.column_names == ["a", "b"]
    with pytest.raises(ValueError, match=r"in chunk 0: sample_weight='v': there is no column .* among 'a', 'b', 'w'"):
        fit_chunks(frames, sample_weight="v")
    with pytest.raises(TypeError, match="names a column, but X is a ndarray, not a data frame"):
        fit_chunks([X], sample_weight="w")


def blocks_of_columns(function, merge):
    """Run `function`, in place of an engine, on chunks that hold some of the rows of some of the columns.

    `merge` merges the results of two chunks of the same columns.
    """
    parts = [(columns, function.part(columns)) for columns in (np.array([0, 1]), np.array([2]))]
    each = [(columns, own) for columns, own in parts if own is not None]
    rows = np.split(X, CUTS)
    return function.join([functools.reduce(merge, [own(part[:, at]) for part in rows]) for at, own in each])


def test_blocks_of_columns_give_the_fit_of_all_rows():
    names, shift = list("abc"), np.array([0.0, 1.0, 5.0])
    assert_same(fit_chunks(MapReduce(blocks_of_columns), column_names=names), pk.fit(X))
    moved = fit_chunks(MapReduce(blocks_of_columns), "box-cox", shift=shift, column_names=names)
    assert_same(moved, pk.fit(X, "box-cox", shift=shift))
    assert moved.column_names == names


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MapReduce([X]), "engine must be a function of two arguments, summarize and merge, got list"),
        (lambda: MapReduce(blocks_of_columns, 0), "task_threads must be "),
        (
            lambda: fit_chunks(MapReduce(Engine((X,))), sample_weight=[WEIGHT]),
            "must be the name of a column .* got list",
        ),
        (
            lambda: location_chunks(MapReduce(Engine((X,))), non_numeric="ignore"),
            "that this process reads",
        ),
    ],
)
def test_arguments_that_an_engine_cannot_take_are_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_threads_of_tasks_are_those_of_the_engine():
    asked = []

    def engine(function, merge):
        asked.append(function.n_threads)
        return function(X)

    for threads in (1, 2, None):
        fit_chunks(MapReduce(engine, threads), n_threads=2)
    location_chunks(MapReduce(engine, 3))
    assert (asked[:6], set(asked[6:])) == ([1, 1, 2, 2, None, None], {3})


def test_an_engine_without_chunks_is_refused():
    with pytest.raises(ValueError, match="there are no chunks; pass at least one, in a form that can be read"):
        fit_chunks(MapReduce(Engine()))


def test_progress_counts_passes_and_chunks(monkeypatch):
    tqdm = pytest.importorskip("tqdm")
    counted: dict[str, int] = {}

    class Bar(tqdm.tqdm):
        def update(self, n=1):
            counted[self.unit] = counted.get(self.unit, 0) + n

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    parts = np.split(X, CUTS)
    fit_chunks(MapReduce(Engine(*((part,) for part in parts))), progress=True)
    fit_chunks(parts, progress=True)
    assert counted == {" passes": 2, " chunks": 2 * len(parts)}


@pytest.mark.parametrize(
    ("columns", "error", "match"),
    [
        ("price", TypeError, r"columns is one string; pass a list of names, such as \['price'\]"),
        ([], ValueError, "at least one column"),
        (["price", "price"], ValueError, "each once"),
        (["price", "w"], ValueError, "and not the weights"),
        (["cost"], ValueError, "there is no column 'cost' among 'price', 'name', 'w'"),
        (["name"], TypeError, "column 'name' is of type string, which holds no numbers"),
    ],
)
def test_columns_that_cannot_be_read_are_refused(columns, error, match):
    table = [
        TableColumn("price", "double", True),
        TableColumn("name", "string", False),
        TableColumn("w", "double", True),
    ]
    assert columns_to_read(table, None, "w") == ["price", "w"]
    with pytest.raises(error, match=match):
        columns_to_read(table, columns, "w")


def test_rows_that_change_between_passes():
    passes = iter([[X[:500], X[500:]], [X[:500]]])
    with pytest.raises(
        ValueError, match=r"column 0: the data changed .* to \d+ values \(or total weight\); every pass"
    ):
        fit_chunks(lambda: next(passes))
    once = iter([X[:500], X[500:]])
    with pytest.raises(ValueError, match="in a form that can be read repeatedly"):
        fit_chunks(lambda: once)


@pytest.mark.parametrize("weight", [1e-280, 1e-9, 1e18])
def test_weights_of_any_size_do_not_seem_to_change(weight):
    w = weight * (1.0 + np.arange(N) % 3)
    fit = fit_chunks([X[:500], X[500:]], sample_weight=[w[:500], w[500:]])
    assert_allclose(fit.n_obs, pk.fit(X, sample_weight=w).n_obs, rtol=1e-5)


# --- the better of two families -------------------------------------------------------------------------


def columns_of_all_kinds(n):
    z = np.random.default_rng(3).normal(size=(n, 6))
    found = np.column_stack([np.exp(z[:, 0]), 5.0 + np.exp(0.3 * z[:, 1]), z[:, 2], z[:, 3] ** 2, np.sinh(z[:, 4])])
    found[::50, 3] *= 20.0
    return np.column_stack([found, 1.0 + abs(z[:, 5]), np.full(n, np.nan), np.ones(n)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:column")
@pytest.mark.parametrize("criterion", ["likelihood", "ppcc", "pearson"])
@pytest.mark.parametrize("estimator", ["mle", "robust"])
@pytest.mark.parametrize("weighted", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_best_chooses_the_families_chosen_in_memory(estimator, criterion, weighted):
    rows = columns_of_all_kinds(6000)
    weight = np.random.default_rng(1).integers(0, 3, len(rows)).astype(float) if weighted else None
    chunks = [(part,) for part in np.array_split(rows, 5)]
    if weight is not None:
        chunks = [(part, own) for (part,), own in zip(chunks, np.array_split(weight, 5), strict=True)]
    fit = fit_chunks(MapReduce(Engine(*chunks)), "best", estimator, criterion=criterion)
    whole = pk.fit(rows, "best", estimator, criterion=criterion, sample_weight=weight)
    assert fit.family == whole.family == "best"
    assert fit.families == whole.families
    assert len(set(fit.families)) == 2
    assert_allclose(fit.lmbda, whole.lmbda, rtol=0, atol=1e-12 if estimator == "mle" else 3e-3)
    assert_allclose(fit.transform(rows)[:, :4], whole.transform(rows)[:, :4], atol=1e-9 if estimator == "mle" else 0.05)


@pytest.mark.filterwarnings("ignore:column")
def test_fits_of_two_families_need_no_data():
    rows = columns_of_all_kinds(2000)
    fit, whole = fit_chunks(np.array_split(rows, 3), "best"), pk.fit(rows, "best")
    assert_allclose(fit.confint(), whole.confint(), rtol=1e-7)
    assert_allclose(fit.profile([0.0, 1.0]), whole.profile([0.0, 1.0]), rtol=1e-9)
    assert_allclose(fit.rounded_fit().lmbda, whole.rounded_fit().lmbda, rtol=1e-9)
    assert_allclose(fit.lr_test(whole.lmbda + 0.1).statistic, whole.lr_test(whole.lmbda + 0.1).statistic, rtol=1e-6)


def test_best_chooses_families_in_blocks_of_columns():
    names = list("abc")
    for bounds in (None, ([-1.0, 0.5, 0.0], [0.1, 2.0, 0.3])):
        fit = fit_chunks(MapReduce(blocks_of_columns), "best", column_names=names, bounds=bounds)
        whole = pk.fit(X, "best", column_names=names, bounds=bounds)
        assert fit.families == whole.families
        assert_same(fit, whole)
        assert fit.column_names == names
    none_positive = fit_chunks([-X[:10], -X[10:]], "best")
    assert set(none_positive.families) == {"yeo-johnson"}


def test_weights_by_name_and_two_families():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": X[:, 0], "w": WEIGHT, "b": X[:, 2]})
    fit = fit_chunks([frame[:300], frame[300:]], "best", sample_weight="w")
    whole = pk.fit(frame, "best", sample_weight="w")
    assert fit.families == whole.families
    assert_same(fit, whole)


def test_options_incompatible_with_best_are_refused():
    for options, match in (
        ({"lmbda": 1.0}, "lmbda cannot be given with family='best'"),
        ({"shift": [1.0, 2.0, 0.0]}, "shift works only with family='box-cox'"),
        ({"criterion": "aic"}, "criterion must be"),
    ):
        with pytest.raises(ValueError, match=match):
            fit_chunks([X], "best", **options)
    with pytest.raises(ValueError, match="criterion works only with family='best'"):
        fit_chunks([X], criterion="ppcc")


@pytest.mark.parametrize("estimator, n_passes", [("mle", 2), ("robust", 5)])
def test_both_families_must_be_fitted_to_the_same_rows(estimator, n_passes):
    x = np.exp(np.random.default_rng(0).normal(size=(3, 3000)))
    passes = itertools.count(1)
    with pytest.raises(ValueError, match="column 0: the data changed between two passes"):
        fit_chunks(lambda: list(x if next(passes) <= n_passes else x[:2]), "best", estimator)


def test_a_misspelled_option_is_refused_before_the_first_pass():
    def chunks():
        raise AssertionError("a pass")

    with pytest.raises(TypeError, match=r"'n_thread' is not an option of .*fit_chunks; did you mean 'n_threads'\?"):
        fit_chunks(chunks, n_thread=2)


# --- outcomes of tasks -------------------------------------------------------------------------------


def test_errors_of_tasks_are_returned_by_name_and_raised_at_the_end():
    def half(x):
        if x < 0:
            raise ValueError("row 1: the value is negative")
        return x / 2

    assert summarize_or_catch("chunk 3", half, 5.0) == ChunkOutcome(2.5, None, 0)
    failed = summarize_or_catch("chunk 3", half, -5.0)
    assert failed.summary is None
    with pytest.raises(ValueError, match="in chunk 3: row 1: the value is negative"):
        failed.value()
    with pytest.raises(ZeroDivisionError):
        summarize_or_catch("chunk 3", lambda: 1 / 0)
    assert isinstance(summarize_or_catch("chunk 3", half, "text").error, TypeError)
    with pytest.raises(ValueError, match="X has no rows; "):
        ChunkOutcome().value()
    assert ChunkOutcome(0.0).value() == 0.0


def test_outcomes_are_merged_in_order_up_to_the_first_error():
    def join(a, b):
        if b == "!":
            raise ValueError("no join")
        return a + b

    nothing, error = ChunkOutcome(), ChunkOutcome(error=ValueError("first"))
    assert (
        merge_outcomes(join, [nothing, ChunkOutcome("a"), nothing, ChunkOutcome("b"), ChunkOutcome("c")]).value()
        == "abc"
    )
    assert merge_outcomes(join, []) == nothing
    assert merge_outcomes(join, [nothing]).summary is None
    assert merge_outcomes(join, [ChunkOutcome("a"), error, ChunkOutcome(error=ValueError("second"))]) is error
    assert str(merge_outcomes(join, [ChunkOutcome("a"), ChunkOutcome("!"), ChunkOutcome("c")]).error) == "no join"


def test_tables_with_rows_are_named_by_their_first_row():
    class Table:
        def __init__(self, n):
            self.num_rows = n

    def count(table):
        if table.num_rows == 3:
            raise ValueError("three")
        return table.num_rows

    found = list(summarize_tables(count, map(Table, [2, 0, 5, 3, 1]), lambda row: f"the part from row {row}"))
    assert [one.summary for one in found] == [2, 5, None, 1]
    assert str(found[2].error) == "in the part from row 7: three"


def test_one_column_may_be_read_with_its_weights():
    table = [TableColumn("a", "double", True), TableColumn("w", "int", True), TableColumn("word", "string", False)]
    assert columns_to_read(table, None, None) == ["a", "w"]
    assert columns_to_read(table, None, "w") == ["a", "w"]
    assert columns_to_read(table, ["w"], None) == ["w"]
    assert columns_to_read(table, ("w",), "a") == ["w", "a"]
    with pytest.raises(ValueError, match="there is more than one column 'a'"):
        columns_to_read([*table, table[0]], ["a"], None)
