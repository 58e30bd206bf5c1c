"""The driver of fits from chunks: any engine that maps and merges gets the fit of all rows."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from engines import Engine
from numpy.testing import assert_allclose, assert_array_equal

import powerkern as pk
from powerkern import PowerFit
from powerkern.sketch import Column, beside, columns_to_read, fit_chunks, fit_with

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
def test_any_engine(weight):
    parts = np.split(X, CUTS)
    pairs = [(part,) for part in parts] if weight is None else zip(parts, np.split(weight, CUTS), strict=True)
    engine = Engine(*pairs)
    assert_same(fit_with(engine), pk.fit(X, sample_weight=weight))
    assert engine.passes == 2


def test_columns_that_need_a_finer_grid_are_asked_for_alone():
    rare = np.column_stack([rng.normal(size=10_000), np.arange(10_000) == 77])
    engine = Engine((rare[:6000],), (rare[6000:],))
    assert_same(fit_with(engine), pk.fit(rare))
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
        fit_with(Engine(*((frame,) for frame in frames)), "box-cox", sample_weight="w"),
        fit_chunks(frames, "box-cox", sample_weight="w"),
    ):
        assert_same(fit, expected)
        assert fit.column_names == ["a", "b"]
    with pytest.raises(ValueError, match=r"in chunk 0: sample_weight='v': there is no column .* among 'a', 'b', 'w'"):
        fit_chunks(frames, sample_weight="v")
    with pytest.raises(TypeError, match="names a column, and the rows are no data frame but a ndarray"):
        fit_chunks([X], sample_weight="w")


def blocks_of_columns(function, merge):
    """An engine whose chunks are blocks of rows and of columns."""
    each = [(columns, function.part(columns)) for columns in (np.array([0, 1]), np.array([2]))]
    rows = np.split(X, CUTS)
    return beside([functools.reduce(merge, [own(part[:, at]) for part in rows]) for at, own in each])


def test_blocks_of_columns():
    names, shift = list("abc"), np.array([0.0, 1.0, 5.0])
    assert_same(fit_with(blocks_of_columns, column_names=names), pk.fit(X))
    moved = fit_with(blocks_of_columns, "box-cox", shift=shift, column_names=names)
    assert_same(moved, pk.fit(X, "box-cox", shift=shift))
    assert moved.column_names == names


def test_no_chunks():
    with pytest.raises(ValueError, match="there are no chunks: none were given, or they could be read only once"):
        fit_with(Engine())


def test_progress_counts_passes_and_chunks(monkeypatch):
    tqdm = pytest.importorskip("tqdm")
    counted: dict[str, int] = {}

    class Bar(tqdm.tqdm):
        def update(self, n=1):
            counted[self.unit] = counted.get(self.unit, 0) + n

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    parts = np.split(X, CUTS)
    fit_with(Engine(*((part,) for part in parts)), progress=True)
    fit_chunks(parts, progress=True)
    assert counted == {" passes": 2, " chunks": 2 * len(parts)}


@pytest.mark.parametrize(
    ("columns", "error", "match"),
    [
        ("price", TypeError, r"columns is one string; pass a list of names, such as \['price'\]"),
        ([], ValueError, "at least one column"),
        (["price", "price"], ValueError, "each once"),
        (["price", "w"], ValueError, "not that of the weights"),
        (["cost"], ValueError, "there is no column 'cost' among 'price', 'name', 'w'"),
        (["name"], TypeError, "column 'name' is of type string, which holds no numbers"),
    ],
)
def test_columns_that_cannot_be_read(columns, error, match):
    table = [Column("price", "double", True), Column("name", "string", False), Column("w", "double", True)]
    assert columns_to_read(table, None, "w") == ["price", "w"]
    with pytest.raises(error, match=match):
        columns_to_read(table, columns, "w")


def test_rows_that_change_between_passes():
    passes = iter([[X[:500], X[500:]], [X[:500]]])
    with pytest.raises(
        ValueError, match=r"column 0: the data changed .* values \(or weight\), and then \d+; every pass"
    ):
        fit_chunks(lambda: next(passes))
    once = iter([X[:500], X[500:]])
    with pytest.raises(ValueError, match="they could be read only once"):
        fit_chunks(lambda: once)


@pytest.mark.parametrize("weight", [1e-280, 1e-9, 1e18])
def test_weights_of_any_size_do_not_seem_to_change(weight):
    w = weight * (1.0 + np.arange(N) % 3)
    fit = fit_chunks([X[:500], X[500:]], sample_weight=[w[:500], w[500:]])
    assert_allclose(fit.n_obs, pk.fit(X, sample_weight=w).n_obs, rtol=1e-5)
