"""Sums over chunks with extreme weights, missing values, bounds and orders are accurate, or reported as inaccurate."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from fits import kernel_rows, quietly
from numpy.testing import assert_allclose, assert_array_equal

import powerkern as pk
from powerkern import Status
from powerkern.federated import Client, fit_federated
from powerkern.sketch import Range, Sketch, extend, finish, fit_chunks, merge, range_of, summarize_chunk

FAMILIES = ("yeo-johnson", "box-cox")
ROWS = 3000


def relative(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.abs(a - b) / np.maximum(1.0, np.abs(b))


def certified(fit: pk.PowerFit) -> np.ndarray:
    return fit.status == Status.OK


# --- weights ------------------------------------------------------------------------------------------


def two_columns() -> np.ndarray:
    """Return two lognormal columns; row 7 is missing in the first column only."""
    X = np.random.default_rng(0).lognormal(size=(ROWS, 2))
    X[7, 0] = np.nan
    return X


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("heavy", [1e6, 1e9, 1e12, 1e18])
def test_the_weight_of_a_missing_row_does_not_affect_its_column(family, heavy):
    X, weight = two_columns(), np.ones(ROWS)
    weight[7] = heavy
    expected = pk.fit(X, family, sample_weight=weight)
    fit = quietly(fit_chunks, np.array_split(X, 3), family, sample_weight=np.array_split(weight, 3))
    assert fit.status[0] == Status.OK
    error = relative(fit.lmbda, expected.lmbda)
    assert error[0] < 1e-12
    assert error[1] < 1e-11 or fit.status[1] == Status.UNRESOLVED
    assert_array_equal(fit.n_obs[0], ROWS - 1.0)


@pytest.mark.parametrize("decades", [3.0, 6.0, 12.0])
def test_weights_over_many_decades_are_accurate_or_reported(decades):
    rng = np.random.default_rng(1)
    X = rng.gamma(2.0, size=(ROWS, 12))
    weight = 10.0 ** rng.uniform(-decades, decades, ROWS)
    X[rng.random(X.shape) < 0.3] = np.nan
    fit = quietly(fit_chunks, np.array_split(X, 50), sample_weight=np.array_split(weight, 50))
    expected = pk.fit(X, sample_weight=weight)
    assert relative(fit.lmbda, expected.lmbda)[certified(fit)].max(initial=0.0) < 1e-11
    assert certified(fit).any() or decades > 6.0


def test_rows_that_weigh_less_than_a_quantum_count_or_are_reported():
    rng = np.random.default_rng(2)
    x, weight = rng.lognormal(size=ROWS), np.ones(ROWS)
    x[:10], weight[:10] = np.linspace(0.9, 1.1, 10), 1e19  # other weights may be rounded to 0
    fit = quietly(fit_chunks, np.array_split(x, 4), sample_weight=np.array_split(weight, 4))
    expected = pk.fit(x, sample_weight=weight)
    assert fit.status[0] == Status.UNRESOLVED or relative(fit.lmbda, expected.lmbda)[0] < 1e-11


def test_a_far_too_large_announced_weight_makes_the_fit_unresolved():
    x = np.random.default_rng(3).normal(size=ROWS)
    expected = pk.fit(x).lmbda
    seen = set()
    for weight in (ROWS, 1e9, 1e12, 1e15, 1e18):
        fit = quietly(finish, summarize_chunk(x, Range.from_bounds(-9.0, 9.0, "yeo-johnson", weight).grid()))
        seen.add(int(fit.status[0]))
        assert not certified(fit)[0] or relative(fit.lmbda, expected)[0] < 1e-11
    assert seen == {Status.OK, Status.UNRESOLVED}


# --- missing values -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.75, 0.9, 0.99])
def test_columns_with_few_values_among_others_with_many(share):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(ROWS, 2))
    X[rng.random(ROWS) < share, 0] = np.nan
    for columns in ([0], [0, 1]):
        for n_chunks in (1, 7, 500):
            fit = fit_chunks(np.array_split(X[:, columns], n_chunks))
            assert_array_equal(fit.status, Status.OK)
            assert relative(fit.lmbda, pk.fit(X[:, columns]).lmbda).max() < 1e-12


# --- bounds -------------------------------------------------------------------------------------------

SHAPES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "gamma": lambda rng, n: rng.gamma(2.0, size=n),
    "counts": lambda rng, n: rng.poisson(3.0, size=n) + 0.0,
    "large": lambda rng, n: 1e6 * rng.gamma(2.0, size=n),
    "far": lambda rng, n: 1e4 + rng.normal(size=n),
    "negative": lambda rng, n: -1e3 * rng.gamma(2.0, size=n),
    "small": lambda rng, n: 1e-3 * rng.gamma(2.0, size=n),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("family", FAMILIES)
def test_wide_bounds_give_the_fit_or_say_that_they_do_not(family, shape):
    x = SHAPES[shape](np.random.default_rng(5), 1000)
    if family == "box-cox":
        x = x[x > 0.0]
    if x.size == 0:
        return
    expected = pk.fit(x, family).lmbda
    for size in (1e7, 1e9, 1e20, 1e50, 1e100, 1e300):
        for low in (1.0 / size,) if family == "box-cox" else (-size, 0.0):
            if x.min() < low:
                continue
            fit = quietly(finish, summarize_chunk(x, Range.from_bounds(low, size, family, 1e4).grid()))
            assert not certified(fit)[0] or relative(fit.lmbda, expected)[0] < 1e-10, (low, size)
            if shape in ("normal", "gamma", "counts") and size <= 1e20:
                assert certified(fit)[0], (low, size)
                assert_allclose(fit.transform(x), pk.fit(x, family).transform(x), atol=1e-9)


# --- streams ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_any_two_streams_merge(family):
    rng = np.random.default_rng(6)
    x = np.concatenate([rng.lognormal(size=700), rng.lognormal(3.0, 2.0, size=900), 50.0 + rng.gamma(2.0, size=400)])
    parts = [x[:3], x[3:50], x[50:700], x[700:701], x[701:1600], x[1600:]]
    streams = [
        functools.reduce(lambda s, c: extend(s, c, family), np.array_split(p, min(4, p.size)), None) for p in parts
    ]
    expected = pk.fit(x, family)
    for order in (range(6), [5, 3, 1, 0, 2, 4], [2, 0, 4, 1, 5, 3]):
        total = functools.reduce(merge, [streams[k] for k in order])
        fit = finish(total)
        assert fit.status[0] == Status.OK
        assert relative(fit.lmbda, expected.lmbda)[0] < 1e-11
        assert_array_equal([fit.n_obs, fit.x_min, fit.x_max], [expected.n_obs, expected.x_min, expected.x_max])
        assert Sketch.from_bytes(total.to_bytes()) == total
    assert merge(streams[0], streams[4]) == merge(streams[4], streams[0])


def test_streams_of_one_sort_of_rows_never_run_out_of_room():
    x = np.random.default_rng(7).lognormal(size=200)
    stream = extend(None, x, "box-cox")
    total = functools.reduce(merge, [stream] * 40)
    assert_array_equal(total.n_obs, 40.0 * x.size)
    assert relative(finish(total).lmbda, pk.fit(x, "box-cox").lmbda)[0] < 1e-12


def test_narrow_box_cox_streams_report_lost_digits():
    """Two merged streams share a reference and may lose digits, which the status reports. One stream does not."""
    rng = np.random.default_rng(8)
    x = 1e4 + rng.normal(size=1000)
    one = finish(extend(None, x, "box-cox"))
    assert one.status[0] == Status.OK
    expected = pk.fit(x, "box-cox").lmbda
    assert relative(one.lmbda, expected)[0] < 1e-10
    both = quietly(finish, merge(extend(None, x[:300], "box-cox"), extend(None, x[300:], "box-cox")))
    assert relative(both.lmbda, expected)[0] < 1e-8
    assert both.status[0] == Status.UNRESOLVED or relative(both.lmbda, expected)[0] < 1e-11


# --- orders -------------------------------------------------------------------------------------------


def test_ranges_and_with_them_fits_have_the_same_bits_in_any_order_and_grouping():
    rng = np.random.default_rng(9)
    X = np.column_stack([rng.lognormal(size=ROWS), rng.normal(size=ROWS), 1e-200 * rng.gamma(1.0, size=ROWS)])
    X[rng.random(X.shape) < 0.4] = np.nan
    weight = 10.0 ** rng.uniform(-9.0, 9.0, ROWS)
    cuts = np.sort(rng.integers(1, ROWS, 60))
    chunks = list(zip(np.split(X, cuts), np.split(weight, cuts), strict=True))
    ranges = [range_of(x, sample_weight=w) for x, w in chunks]
    whole = functools.reduce(merge, ranges)
    assert_allclose(whole.n_obs, np.where(np.isnan(X), 0.0, weight[:, None]).sum(axis=0), rtol=1e-14)
    sketches = [summarize_chunk(x, whole.grid(), sample_weight=w) for x, w in chunks]
    results = kernel_rows(quietly(finish, functools.reduce(merge, sketches)))
    for _ in range(5):
        assert in_some_tree(rng, ranges) == whole
        total = in_some_tree(rng, sketches)
        assert_array_equal(kernel_rows(quietly(finish, total)), results)


def in_some_tree(rng: np.random.Generator, parts: list) -> object:
    """Merge the parts two at a time, in random order."""
    left = list(parts)
    while len(left) > 1:
        a, b = (left.pop(int(rng.integers(len(left)))) for _ in range(2))
        left.append(merge(a, b))
    return left[0]


def test_weights_of_a_range_are_exact_sums():
    x = np.ones(4)
    for weight in ([2.0**60, 1.0, 2.0**30, 3.0], [0.1, 0.2, 0.3, 1e-30], [5e-290, 1e-285, 2e-285, 1e-280]):
        parts = [range_of(x[k : k + 1], sample_weight=[w]) for k, w in enumerate(weight)]
        assert functools.reduce(merge, parts) == functools.reduce(merge, parts[::-1])
        assert_allclose(functools.reduce(merge, parts).n_obs, sum(sorted(weight)), rtol=2.0**-50)


def test_ranges_of_the_largest_numbers_merge_without_a_warning():
    x = np.array([1.7e308, 1.6e308])
    assert merge(range_of(x), range_of(x[::-1])).x_max[0] == 1.7e308


# --- weights that are all zero ------------------------------------------------------------------------


def test_chunks_and_sites_without_weight_count_as_empty():
    rng = np.random.default_rng(10)
    X, weight = rng.normal(size=(300, 2)), rng.random(300)
    weight[:100] = 0.0
    X[:100] = 1e300
    expected = pk.fit(X[100:], sample_weight=weight[100:])
    found = range_of(X[:100], sample_weight=weight[:100])
    assert merge(found, range_of(X[100:])) == range_of(X[100:])
    fit = fit_chunks([X[:100], X[100:]], sample_weight=[weight[:100], weight[100:]])
    assert relative(fit.lmbda, expected.lmbda).max() < 1e-12
    grid = range_of(X[100:]).grid()
    absent, present = summarize_chunk(X[:100], grid, sample_weight=np.zeros(100)), summarize_chunk(X[100:], grid)
    assert merge(absent, present) == present
    sites = [
        Client(X[rows], name=name, sample_weight=weight[rows])
        for name, rows in (("a", slice(0, 100)), ("b", slice(100, 200)), ("c", slice(200, 300)))
    ]
    assert relative(fit_federated(sites).lmbda, expected.lmbda).max() < 1e-11
