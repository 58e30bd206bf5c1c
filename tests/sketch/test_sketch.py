"""Sketches: summarised and merged chunks give the fit of all rows."""

from __future__ import annotations

import functools
import pickle
import threading
import warnings

import mpmath
import numpy as np
import pytest
import references as reference
from fits import kernel_rows
from forged import forge, forged
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq

import powerkern as pk
from powerkern import PowerFit, Status
from powerkern.kernels.power_sums.grids import G_REF
from powerkern.kernels.results import LMBDA
from powerkern.sketch import Range, Sketch, extend, finish, fit_chunks, merge, range_of, summarize_chunk
from powerkern.sketch.grids import Grid
from powerkern.sketch.serial import RANGE, pack

FAMILIES = ("yeo-johnson", "box-cox")
rng = np.random.default_rng(20240601)


def columns(family: str, n: int = 3000) -> np.ndarray:
    """Return columns of ordinary and of extreme shapes, some with missing values."""
    rng = np.random.default_rng(1)
    x = [
        rng.lognormal(size=n),
        rng.gamma(3.0, size=n) ** 2,
        1e4 + 1e-3 * rng.normal(size=n),
        rng.integers(1, 4, size=n).astype(float),
        rng.lognormal(sigma=3.0, size=n) * (1e-200 if family == "box-cox" else 1e-2),
        rng.uniform(1900, 2024, size=n).round(),
    ]
    if family == "yeo-johnson":
        x += [rng.normal(size=n), -rng.lognormal(size=n), 1e8 * rng.normal(size=n) + 3, 1e-9 * rng.normal(size=n)]
    X = np.column_stack(x)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def fit_of_chunks(chunks: list[np.ndarray], family: str, **options: object) -> PowerFit:
    grid = functools.reduce(merge, (range_of(chunk, family) for chunk in chunks)).grid()
    return finish(functools.reduce(merge, (summarize_chunk(chunk, grid) for chunk in chunks)), **options)


def resolved(X: np.ndarray, family: str) -> tuple[PowerFit, int]:
    """Refine the grid, at most three times, until no column is UNRESOLVED.

    Return the fit and the number of refinements.
    """
    grid = range_of(X, family).grid()
    refinements = 0
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # constant columns, or columns not yet resolved
            fit = finish(summarize_chunk(X, grid))
        unresolved = fit.status == Status.UNRESOLVED
        if not unresolved.any() or refinements == 3:
            return fit, refinements
        grid, refinements = grid.refined(unresolved), refinements + 1


def relative(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.abs(a - b) / np.maximum(1.0, np.abs(b))


# --- the same fit -------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_a_fit_from_chunks_is_the_fit_of_all_rows(family):
    X = columns(family)
    expected = pk.fit(X, family)
    fit = fit_of_chunks(np.array_split(X, 7), family)
    assert_array_equal(fit.status, Status.OK)
    assert relative(fit.lmbda, expected.lmbda).max() < 1e-11
    assert_array_equal(fit.n_obs, expected.n_obs)
    assert_allclose(fit.nll, expected.nll, rtol=1e-11)
    assert_allclose(fit.information, expected.information, rtol=1e-8)
    assert_array_equal([fit.x_min, fit.x_max], [expected.x_min, expected.x_max])
    Z = fit.transform(X)
    assert_allclose([np.nanmean(Z, axis=0), np.nanstd(Z, axis=0)], np.outer([0, 1], np.ones(len(Z.T))), atol=1e-9)
    at = np.linspace(-2, 3, 7)
    assert_allclose(fit.profile(at), expected.profile(at), rtol=1e-9)
    assert_allclose(np.array(fit.confint()), np.array(expected.confint()), rtol=1e-7)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_stream_of_unknown_range_gives_the_fit_of_all_rows(family):
    X = columns(family)[:, [0, 1, 3, *range(6, 10)]] if family == "yeo-johnson" else columns(family)[:, [0, 1, 3, 5]]
    total = None
    for chunk in [X[:1], X[1:2], X[2:10], *np.array_split(X[10:], 9)]:
        total = extend(total, chunk, family)
    fit, expected = finish(total), pk.fit(X, family)
    assert_array_equal(fit.n_obs, expected.n_obs)
    assert_array_equal([fit.x_min, fit.x_max], [expected.x_min, expected.x_max])
    assert_array_equal(fit.status, Status.OK)
    assert relative(fit.lmbda, expected.lmbda).max() < 1e-10


def test_a_stream_may_change_its_sign_and_start_without_values():
    x = np.concatenate([np.full(5, np.nan), [7.0, 7.0], rng.lognormal(size=50), rng.normal(size=500) * 1e3])
    total = None
    for value in x[:60]:
        total = extend(total, [value])
    total = extend(total, x[60:])
    assert_allclose(finish(total).lmbda, pk.fit(x).lmbda, rtol=0, atol=1e-11)


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_count_as_repetition(family):
    X = columns(family)
    weight = rng.integers(0, 4, size=len(X))
    weight[:1000] = 0  # the first chunk has no weight
    chunks = list(zip(np.array_split(X, 3), np.array_split(weight, 3), strict=True))
    grid = functools.reduce(merge, (range_of(x, family, sample_weight=w) for x, w in chunks)).grid()
    fit = finish(functools.reduce(merge, (summarize_chunk(x, grid, sample_weight=w) for x, w in chunks)))
    repeated = fit_of_chunks([np.repeat(X, weight, axis=0)], family)
    assert_array_equal(fit.n_obs, repeated.n_obs)
    assert relative(fit.lmbda, repeated.lmbda).max() < 5e-12
    assert relative(fit.lmbda, pk.fit(X, family, sample_weight=weight).lmbda).max() < 1e-11


@pytest.mark.parametrize("family", FAMILIES)
def test_profiles_far_from_the_optimum_need_a_wider_grid(family):
    """A profile far from the optimum is accurate to 1e-7 on the grid of the fit, and to 1e-13 on a wider grid."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.lognormal(size=3000), rng.gamma(3.0, size=3000)])
    at = np.array([-32.0, -8.0, 0.0, 8.0, 32.0])
    expected = pk.fit(X, family).profile(at) / len(X)
    found = range_of(X, family)
    assert_allclose(finish(summarize_chunk(X, found.grid())).profile(at) / len(X), expected, rtol=1e-10, atol=1e-7)
    fine = finish(summarize_chunk(X, found.grid(largest_exponent=34.0)))
    assert_allclose(fine.profile(at) / len(X), expected, rtol=1e-13, atol=1e-13)


def test_given_lambdas_are_used_unchanged():
    X = columns("box-cox")
    lmbda = [0.5, np.nan, 1.0, -2.0, 0.0, np.nan]
    fit = fit_of_chunks([X], "box-cox", lmbda=lmbda, standardize=False)
    expected = pk.fit(X, "box-cox", lmbda=lmbda, standardize=False)
    assert_array_equal(fit.status, expected.status)
    assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-11)
    assert_allclose(fit.scale, expected.scale, rtol=1e-9)
    assert_allclose(fit.transform(X[:5]), expected.transform(X[:5]), rtol=1e-9)


def test_values_of_many_orders_of_magnitude_are_fitted():
    """Fits stay accurate although most logs of 1 + x are close to 0, where rounding may move a node out of its bin."""
    rng = np.random.default_rng(5)
    for _ in range(10):
        x = np.exp(50.0 * rng.normal(size=int(rng.integers(5, 120))))
        for one in (x, -x):
            assert relative(finish(extend(None, one)).lmbda, pk.fit(one).lmbda).max() < 1e-12


def test_columns_without_a_fit():
    X = np.column_stack([np.full(10, np.nan), np.full(10, 3.0), np.arange(10.0)])
    with pytest.warns(UserWarning, match="column 1: .*; column 0: "):
        fit = fit_of_chunks([X[:4], X[4:]], "yeo-johnson")
    assert_array_equal(fit.status, [Status.EMPTY, Status.CONSTANT, Status.OK])
    assert_array_equal(fit.transform(X)[:, :2], X[:, :2])


#: Unweighted reference columns of any length, with values down to the smallest float64.
REFERENCES = [case for case in reference.FITTED if case.weight is None and case.kind != "flat"]


@reference.each_case(REFERENCES)
def test_lambdas_agree_with_multiprecision_references(case):
    fit, refinements = resolved(case.x, case.family)
    assert fit.status[0] == Status.OK
    assert refinements <= 2
    assert reference.relative_error(fit.lmbda[0], case.lmbda) <= reference.lambda_tolerance(case)


def test_most_reference_values_need_no_finer_grid():
    assert sum(resolved(case.x, case.family)[1] > 0 for case in REFERENCES) <= len(REFERENCES) // 10


def test_a_grid_that_is_too_coarse_is_reported():
    """The lambda of a rare binary column is about -1e4/ln 2, beyond the exponents that the initial grid can resolve."""
    x = np.zeros(10_000)
    x[5] = 1.0
    grid = range_of(x).grid()
    with pytest.warns(UserWarning, match="column 0: the summaries are too coarse for this column"):
        coarse = finish(summarize_chunk(x, grid))
    assert coarse.status[0] == Status.UNRESOLVED
    fit, refinements = resolved(x, "yeo-johnson")
    assert refinements > 0
    assert fit.status[0] == Status.OK
    assert_allclose(fit.lmbda, pk.fit(x).lmbda, rtol=1e-10)


# --- merging ------------------------------------------------------------------------------------------

values = st.lists(st.floats(-1e6, 1e6) | st.just(np.nan), min_size=1, max_size=20)


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(values, min_size=3, max_size=5), st.randoms())
def test_merging_is_associative_and_commutative_to_the_last_bit(lists, random):
    chunks = [np.array(one) for one in lists]
    whole = functools.reduce(merge, map(range_of, chunks))
    grid = whole.grid()
    parts = [summarize_chunk(chunk, grid) for chunk in chunks]
    total = functools.reduce(merge, parts)
    random.shuffle(parts)
    assert merge(parts[0], functools.reduce(merge, parts[1:])) == total
    random.shuffle(chunks)
    again = functools.reduce(merge, map(range_of, chunks))
    assert_array_equal([again.x_min, again.x_max, again.n_obs], [whole.x_min, whole.x_max, whole.n_obs])


def test_streams_merge():
    X = columns("yeo-johnson")[:, [0, 1, 6, 7]]
    a = extend(extend(None, X[:10]), X[10:1000])
    b = extend(extend(None, X[1000:1500] * 1.5), X[1500:])
    assert merge(a, b) == merge(b, a)
    expected = pk.fit(np.concatenate([X[:1000], X[1000:1500] * 1.5, X[1500:]]))
    assert_allclose(finish(merge(a, b)).lmbda, expected.lmbda, rtol=0, atol=1e-11)


def streams(*chunks: np.ndarray) -> list[Sketch]:
    """Return one stream per chunk."""
    return [extend(None, chunk) for chunk in chunks]


NARROW, WIDE = rng.normal(size=(300, 2)), 1e6 * rng.normal(size=(300, 2)) + 5.0
MISSING = np.full((4, 2), np.nan)


@pytest.mark.parametrize(
    "chunks",
    [
        [NARROW, WIDE],
        [WIDE, NARROW],
        [MISSING, NARROW[:1], MISSING, WIDE, NARROW[1:]],
        [NARROW[:0], NARROW, NARROW[:0], -np.abs(WIDE), np.abs(WIDE)],
    ],
)
def test_a_stream_may_grow_its_range_a_millionfold(chunks):
    expected = pk.fit(np.concatenate(chunks))
    grown = functools.reduce(extend, chunks, None)
    for total in (grown, functools.reduce(merge, streams(*chunks))):
        fit = finish(total)
        assert_array_equal(fit.status, Status.OK)
        assert_array_equal(fit.n_obs, expected.n_obs)
        assert_array_equal([fit.x_min, fit.x_max], [expected.x_min, expected.x_max])
        assert relative(fit.lmbda, expected.lmbda).max() < 1e-11


def test_growing_streams_merge_in_any_order_and_grouping():
    parts = streams(NARROW, WIDE, MISSING, 1e-3 * NARROW[:7], NARROW[:0])
    expected = pk.fit(np.concatenate([NARROW, WIDE, 1e-3 * NARROW[:7]])).lmbda
    a, b, c, d, e = parts
    totals = [
        functools.reduce(merge, parts),
        functools.reduce(merge, parts[::-1]),
        merge(merge(a, b), merge(c, merge(d, e))),
        merge(e, merge(merge(d, b), merge(a, c))),
    ]
    for total in totals:
        assert total.grid == totals[0].grid
        assert_array_equal(total.n_obs, totals[0].n_obs)
        assert relative(finish(total).lmbda, expected).max() < 1e-13
    assert merge(a, b) == merge(b, a)


def test_weighted_streams_ignore_rows_of_weight_0():
    x = np.concatenate([NARROW, WIDE])
    weight = np.tile([0.0, 0.5, 2.0], 200)
    weight[:300] *= 1e-3
    x[weight == 0.0] = np.inf  # rows of weight 0 are not read
    total = None
    for chunk, w in zip(np.array_split(x, 7), np.array_split(weight, 7), strict=True):
        total = extend(total, chunk, sample_weight=w)
    total = extend(total, x[:3], sample_weight=np.zeros(3))
    fit, expected = finish(total), pk.fit(x, sample_weight=weight)
    assert_allclose(fit.n_obs, expected.n_obs, rtol=1e-15)
    assert relative(fit.lmbda, expected.lmbda).max() < 1e-11


def test_a_stream_with_too_few_digits_is_reported():
    """A Yeo-Johnson stream stores logs of 1 + x relative to 0, but these logs agree in six digits (9.21044)."""
    x = 1e4 + 1e-3 * rng.normal(size=(1000, 1))
    with pytest.warns(UserWarning, match="column 0: the summaries are too coarse for this column"):
        assert finish(functools.reduce(extend, [x[:500], x[500:]], None)).status[0] == Status.UNRESOLVED
    assert relative(fit_chunks([x[:500], x[500:]]).lmbda, pk.fit(x).lmbda).max() < 1e-9


#: A skewed sample, in units of the distance between adjacent floating-point numbers.
STEPS = np.array([0, 1, 1, 2, 3, 5, 9, 16])


def slope_of_steps() -> float:
    """Return the maximum likelihood estimate of m in the model that exp(m STEPS) is normally distributed.

    If the log of a value grows by h per step, then lambda = m/h.
    """

    def score(m: float) -> float:
        y = np.exp(m * STEPS)
        return np.cov(y, STEPS * y)[0, 1] / np.var(y, ddof=1) - 1.0 / m - STEPS.mean()

    return brentq(score, -5.0, -1e-3, xtol=1e-15, rtol=1e-15)


def streams_of_steps(low: float, seed: int, family: str) -> list[Sketch]:
    """Return two sketches of the values ``low + spacing(low)*STEPS``, read in shuffled chunks.

    The first extends one stream by each chunk. The second merges one stream per chunk.
    """
    order = np.random.default_rng(seed).permutation(STEPS.size)
    chunks = [low + np.spacing(low) * STEPS[at] for at in np.split(order, [1, 3, 5])]
    grown = functools.reduce(lambda total, chunk: extend(total, chunk, family), chunks, None)
    return [grown, functools.reduce(merge, [extend(None, chunk, family) for chunk in chunks])]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("low", [2.0, 1e-300, 1e300, 1.0, 0.3])
def test_box_cox_streams_a_few_ulps_wide_are_resolved(low, seed):
    expected = slope_of_steps() * low / np.spacing(low)
    for total in streams_of_steps(low, seed, "box-cox"):
        assert Sketch.from_bytes(total.to_bytes()) == total
        fit = finish(total)
        assert_array_equal(fit.status, Status.OK)
        assert_allclose(fit.lmbda, expected, rtol=2e-11)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("near", [2.0, 1e-300, 1e300, 0.3])
def test_box_cox_streams_between_two_references_keep_the_bound(near, seed):
    """The values lie on both sides of a number at which the reference of the logs changes.

    Chunks then have different references, whose rounding errors exceed the width of many bins; the error of lambda must
    stay within its bound.
    """

    def reference_of(x: float) -> float:
        return extend(None, [x], "box-cox").grid._table[0, G_REF]

    low, high = near, near * (1.0 + 2.0**-41)
    while high - low > np.spacing(low):
        middle = low + 0.5 * (high - low)
        low, high = (middle, high) if reference_of(middle) == reference_of(near) else (low, middle)
    low -= 4.0 * np.spacing(low)
    expected = slope_of_steps() * low / np.spacing(low)
    totals = streams_of_steps(low, seed, "box-cox")
    assert any(total._roundings[0, 3] for total in totals)
    for total in totals:
        row, error = total._power_sums().fit(np.array([np.nan]), 1)
        assert error[0] < 1e-2 * abs(expected)
        assert abs(row[0, LMBDA] - expected) <= error[0]


def test_a_box_cox_stream_whose_chunks_are_at_different_places():
    chunks = [1.9999999999999865, 1.9999999999999878], [2.0000000000000573, 2.0000000000000067]
    for parts in (chunks, chunks[::-1]):
        total = extend(extend(None, parts[0], "box-cox"), parts[1])
        assert relative(finish(total).lmbda, pk.fit(np.concatenate(parts), "box-cox").lmbda).max() < 1e-11


def test_yeo_johnson_streams_a_few_ulps_wide_are_reported():
    for total in streams_of_steps(2.0, 0, "yeo-johnson"):
        with pytest.warns(UserWarning, match="column 0: the summaries are too coarse for this column"):
            assert finish(total).status[0] == Status.UNRESOLVED


def test_box_cox_streams_of_the_smallest_numbers_are_fitted():
    x = np.array([5e-324, 1e-268, 3e-300, 2e-290])
    total = extend(extend(None, x[:2], "box-cox"), x[2:])
    assert relative(finish(total).lmbda, pk.fit(x, "box-cox").lmbda).max() < 1e-11


def test_chunks_without_rows_change_nothing():
    X = NARROW
    assert merge(range_of(X), range_of(X[:0])) == range_of(X)
    grid = range_of(X).grid()
    assert merge(summarize_chunk(X[:0], grid), summarize_chunk(X, grid)) == summarize_chunk(X, grid)
    assert_array_equal(kernel_rows(fit_chunks([X[:0], X, X[:0]])), kernel_rows(fit_chunks([X])))
    with pytest.warns(UserWarning, match="no values"):
        assert_array_equal(fit_chunks([X[:0]]).status, Status.EMPTY)


@pytest.mark.parametrize("n_threads", [2, 5])
def test_any_number_of_threads_gives_the_same_bits(n_threads):
    x = rng.normal(size=(300_000, 2))
    grid = range_of(x, n_threads=n_threads).grid()
    assert grid == range_of(x, n_threads=1).grid()
    assert summarize_chunk(x, grid, n_threads=n_threads) == summarize_chunk(x, grid, n_threads=1)
    assert summarize_chunk(np.asfortranarray(x), grid, n_threads=n_threads) == summarize_chunk(x, grid, n_threads=1)


# --- bytes --------------------------------------------------------------------------------------------


def summaries() -> list[Range | Grid | Sketch]:
    import pandas

    frame = pandas.DataFrame(columns("box-cox", 100)[:, :3], columns=list("abc"))
    found = range_of(frame, "box-cox")
    return [found, found.grid(), summarize_chunk(frame, found.grid())]


def test_bytes_and_pickles_restore_summaries():
    for one in summaries():
        assert type(one).from_bytes(one.to_bytes()) == one
        assert pickle.loads(pickle.dumps(one)) == one
    fit = finish(Sketch.from_bytes(summaries()[2].to_bytes()))
    assert fit.column_names == ["a", "b", "c"]


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_changed_bytes_are_refused(kind):
    data = summaries()[kind].to_bytes()
    read = (Range, Grid, Sketch)[kind].from_bytes
    for cut in (0, 3, 10, 30, len(data) // 2, len(data) - 1):
        with pytest.raises(ValueError, match=r"not a (range|grid|sketch): (these \d+ bytes were|the bytes were cut)"):
            read(data[:cut])
    for at in range(34, len(data), max(1, len(data) // 50)):
        with pytest.raises(ValueError, match="the bytes are damaged"):
            read(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    with pytest.raises(ValueError, match="in version 258; this powerkern reads version 5: update powerkern"):
        read(forged(data, lambda description, _: description.update(version=258)))
    with pytest.raises(ValueError, match="cut or joined"):
        read(data + b"\0")
    with pytest.raises(ValueError, match=r"not a (range|grid|sketch): its format is 'powerkern.sketch.\w+', not"):
        read(summaries()[(kind + 1) % 3].to_bytes())


def test_text_nested_beyond_all_reason_is_damage():
    text = b"[" * 100_000
    with pytest.raises(ValueError, match="not a range: the bytes are damaged"):
        Range.from_bytes(forge(text))


# --- wrong use ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "low, high, family, match",
    [
        (-1.0, 2.0, "box-cox", "must be positive"),
        (2.0, 1.0, "yeo-johnson", "low < high"),
        ([0.0, np.nan], 1.0, "yeo-johnson", "finite"),
        (0.0, 1.0, "boxcox", "did you mean 'box-cox'"),
    ],
)
def test_impossible_bounds_are_refused(low, high, family, match):
    with pytest.raises(ValueError, match=match):
        Range.from_bounds(low, high, family, 100.0)


def test_wrong_data_are_named():
    with pytest.raises(ValueError, match=r"column 1, row 2: the value is inf"):
        range_of([[1, 2], [3, 4], [5, np.inf]])
    with pytest.raises(ValueError, match=r"column 0, row 1: the value is -3\.0"):
        range_of([[1, 2], [-3, 4]], "box-cox")
    with pytest.raises(ValueError, match="did you mean 'box-cox'"):
        range_of([1.0], "boxcox")
    grid = range_of([[1.0, 5.0], [2.0, 6.0]]).grid()
    with pytest.raises(
        ValueError, match=r"column 1: the chunk has values beyond those the grid was made for, 5.0 to 6.0"
    ):
        summarize_chunk([[1.0, 7.0]], grid)
    with pytest.raises(ValueError, match="column 0: the chunk has values beyond"):
        summarize_chunk([[np.inf, 5.0]], grid)
    with pytest.raises(ValueError, match="X has 3 columns, the fit has 2"):
        summarize_chunk(np.ones((2, 3)), grid)
    with pytest.raises(TypeError, match="grid must be a Grid"):
        summarize_chunk([1.0], range_of([1.0]))
    with pytest.raises(TypeError, match="finish takes a Sketch, got Grid"):
        finish(grid)
    with pytest.raises(TypeError, match="extend takes a Sketch"):
        extend(grid, [1.0])
    with pytest.raises(
        ValueError, match="column 0: the chunk has more rows, or more total weight, than the grid was made for"
    ):
        summarize_chunk(np.ones((100, 2)) * [1, 5], grid)
    with pytest.raises(ValueError, match="largest_exponent must be"):
        range_of([1.0, 2.0]).grid(largest_exponent=-1.0)


def test_incompatible_summaries_are_not_merged():
    a, b = range_of([1.0, 2.0]), range_of([1.0, 2.0], "box-cox")
    with pytest.raises(ValueError, match="one summary is of family 'yeo-johnson', another of 'box-cox'; use one"):
        merge(a, b)
    with pytest.raises(ValueError, match="one chunk has 1 columns, another 2"):
        merge(a, range_of([[1.0, 2.0]]))
    with pytest.raises(ValueError, match="column 0 is 'a' in one chunk and 'b' in another"):
        merge(range_of([1.0], column_names=["a"]), range_of([1.0], column_names=["b"]))
    with pytest.raises(TypeError, match="merge takes two ranges or two sketches, got Range and Grid"):
        merge(a, a.grid())
    with pytest.raises(ValueError, match="column 0: the grids of the sketches cannot be merged"):
        merge(summarize_chunk([1.0, 2.0], a.grid()), summarize_chunk([5.0, 6.0], range_of([5.0, 6.0]).grid()))


# --- chunks that can be read again --------------------------------------------------------------------


class Passes:
    """Chunks that are generated for every pass; passes are counted."""

    def __init__(self, *chunks: object) -> None:
        self.chunks, self.n_passes = chunks, 0

    def __call__(self):
        self.n_passes += 1
        yield from self.chunks


@pytest.mark.parametrize("family", FAMILIES)
def test_chunks_are_read_twice(family):
    X = columns(family)
    chunks = Passes(*np.array_split(X, 5), X[:1])
    fit, expected = fit_chunks(chunks, family), pk.fit(np.concatenate([X, X[:1]]), family)
    assert chunks.n_passes == 2
    assert_array_equal(fit.n_obs, expected.n_obs)
    assert relative(fit.lmbda, expected.lmbda).max() < 1e-11
    assert_array_equal(kernel_rows(fit_chunks(list(chunks.chunks), family, n_threads=1)), kernel_rows(fit))


def test_columns_that_are_not_resolved_are_read_again():
    X = np.column_stack([rng.normal(size=10_000), np.arange(10_000) == 77])
    chunks = Passes(X[:6000], X[6000:])
    fit = fit_chunks(chunks)
    assert 2 < chunks.n_passes <= 5
    assert_array_equal(fit.status, Status.OK)
    assert relative(fit.lmbda, pk.fit(X).lmbda).max() < 1e-10


def test_options_agree_with_the_fit_in_memory():
    X = columns("box-cox")[:, :3]
    weight = rng.integers(0, 3, size=len(X)).astype(float)
    chunks, weights = np.array_split(X, 4), np.array_split(weight, 4)
    options = {"lmbda": [0.5, np.nan, np.nan], "standardize": False, "ymax": 1e30, "column_names": ["a", "b", "c"]}
    fit = fit_chunks(chunks, "box-cox", sample_weight=weights, **options)
    expected = pk.fit(X, "box-cox", sample_weight=weight, **options)
    assert_array_equal(fit.status, expected.status)
    assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-11)
    assert fit.column_names == expected.column_names


def test_names_replace_those_of_data_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(columns("yeo-johnson")[:, :2], columns=["a", "b"])
    expected = pk.fit(frame, column_names=["x", "y"])
    fit = fit_chunks([frame[:300], frame[300:]], column_names=["x", "y"])
    assert fit.column_names == expected.column_names == ["x", "y"]
    assert relative(fit.lmbda, expected.lmbda).max() < 1e-11
    stream = extend(None, frame[:300], column_names=["x", "y"])
    assert finish(extend(stream, frame[300:], column_names=["x", "y"])).column_names == ["x", "y"]
    assert extend(stream, frame[300:]) == extend(stream, frame[300:], column_names=["x", "y"])
    with pytest.raises(ValueError, match="X lacks 'b' of the columns that were fitted; it also has 'c'"):
        extend(stream, frame[300:].rename(columns={"b": "c"}), column_names=["x", "y"])


def test_raw_values_that_overflow_at_a_given_lambda():
    x = np.arange(1.0, 200.0)
    for fit in pk.fit, lambda x, **options: fit_chunks([x], **options):
        with pytest.warns(UserWarning, match="column 0: transformed values overflow"):
            fit(x, lmbda=300.0, standardize=False)


def test_chunks_that_cannot_be_fitted_are_refused():
    X = np.arange(1.0, 9.0).reshape(4, 2)
    for view in (memoryview(np.ones((4, 2))), memoryview(np.ones(4))):
        with pytest.raises(TypeError, match=r"chunks must be a list with an array for each chunk, .* got memoryview"):
            fit_chunks(view)
    with pytest.raises(TypeError, match="chunks is an iterator, which can be read only once"):
        fit_chunks(iter([X]))
    with pytest.raises(TypeError, match=r"chunks must be a list .*, got ndarray; pass all rows in one array"):
        fit_chunks(X)
    with pytest.raises(ValueError, match="there are no chunks"):
        fit_chunks([])
    with pytest.raises(ValueError, match=r"in chunk 1: column 1, row 0: the value is -1\.0"):
        fit_chunks([X, [[2.0, -1.0]]], "box-cox")
    with pytest.raises(ValueError, match="in chunk 1: one chunk has 2 columns, another 1"):
        fit_chunks([X, X[:, :1]])
    with pytest.raises(ValueError, match="in chunk 0: sample_weight"):
        fit_chunks([X, X], sample_weight=[[1.0], [1.0]])
    with pytest.raises(
        ValueError, match="chunks has more entries than the 1 of sample_weight; pass an array of weights"
    ):
        fit_chunks([X, X], sample_weight=[np.ones(4)])
    with pytest.raises(ValueError, match="sample_weight has more entries than the 1 of chunks"):
        fit_chunks([X], sample_weight=[np.ones(4), np.ones(4)])
    with pytest.raises(
        TypeError, match=r"sample_weight must be a list .*, got ndarray; divide it into the same chunks"
    ):
        fit_chunks([X, X], sample_weight=np.ones(8))
    with pytest.raises(
        ValueError, match=r"estimator='ppcc' needs all values in order.* fit a random sample of the rows"
    ):
        fit_chunks([X], estimator="ppcc")
    with pytest.raises(ValueError, match="did you mean 'rewml'"):
        fit_chunks([X], estimator="rewm")


@pytest.mark.parametrize("columns", [True, 1.0, "1", None])
def test_an_invalid_number_of_columns_is_refused(columns):
    made = range_of(np.arange(5.0))
    described = {**made._describe(), "columns": columns}
    with pytest.raises(ValueError, match="the bytes are damaged"):
        Range.from_bytes(pack(RANGE, described, made._table))


@pytest.mark.parametrize(
    "family, low",
    [("box-cox", low) for low in (1.0102355670074506e16, 1.35921880488e-16, 7.3, 3e-200, 1e300)]
    + [("yeo-johnson", low) for low in (1.0102355670074506e16, 7.3, 1e300)],
)
def test_two_adjacent_numbers_solve_the_score_equation(family, low):
    """The lambda of two adjacent numbers solves coth(u) - 1/u = 2p - 1.

    Here u is lambda/2 times the difference of the logs, and p is the weight fraction of the larger number.
    """
    high = np.nextafter(low, np.inf)
    offset = 1.0 if family == "yeo-johnson" and low < 1e16 else 0.0
    half = (high - low) / (offset + low) / 2.0

    def nll(lmbda: float) -> float:
        u = lmbda * half
        return np.log(np.sinh(u) / u) - 0.75 * u

    fit = fit_chunks([[[high], [low]]], family, sample_weight=[[7.0, 1.0]])
    u = fit.lmbda[0] * half
    assert_allclose(1.0 / np.tanh(u) - 1.0 / u, 0.75, rtol=1e-12)
    ends = np.ravel(fit.confint())
    assert_allclose([8.0 * (nll(end) - nll(fit.lmbda[0])) for end in ends], 1.920729410347062, rtol=1e-9)
    assert_allclose(fit.nll, pk.fit([high, low], family, sample_weight=[7.0, 1.0]).nll, rtol=1e-10)
    assert_allclose(fit.transform([[high], [low]])[:, 0], [7.0**-0.5, -(7.0**0.5)], rtol=1e-10)


@pytest.mark.parametrize("seed", [4, 5, 6, 7])
def test_standardised_values_of_logs_over_hundreds_are_exact(seed):
    x = 1e285 * np.random.default_rng(seed).normal(size=60)
    fit = fit_chunks([x[:, None]])
    with mpmath.workdps(60):
        lmbda = mpmath.mpf(float(fit.lmbda[0]))
        y = [((1 + mpmath.mpf(v)) ** lmbda - 1) / lmbda if v >= 0.0 else
             ((1 - mpmath.mpf(v)) ** (2 - lmbda) - 1) / (lmbda - 2) for v in x.tolist()]  # fmt: skip
        mean = mpmath.fsum(y) / 60
        sd = mpmath.sqrt(mpmath.fsum((v - mean) ** 2 for v in y) / 60)
        expected = [float((v - mean) / sd) for v in y]
    assert_allclose(fit.transform(x[:, None])[:, 0], expected, rtol=0, atol=5e-11)


def test_threads_compute_the_starts_of_bins_without_a_lock(monkeypatch):
    """Two threads compute starts at the same time. With a lock, a child forked meanwhile could wait for it for ever."""
    grids = [range_of(np.arange(1.0, 9.0) + k).grid() for k in range(2)]
    both, found = threading.Barrier(2, timeout=5), []
    monkeypatch.setattr("powerkern.sketch.grids.bin_starts", lambda cells: both.wait())
    lookers = [threading.Thread(target=lambda grid: found.append(grid._starts), args=(grid,)) for grid in grids]
    for thread in lookers:
        thread.start()
    for thread in lookers:
        thread.join()
    assert sorted(found) == [0, 1]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_columns_are_fitted_as_they_are_alone(n_threads):
    """Columns are summed in groups. Three of 500 columns nevertheless have the lambdas of fits of one column."""
    X = np.random.default_rng(3).lognormal(size=(40, 500))
    fit = pk.sketch.fit_chunks([X[:15], X[15:]], "box-cox", n_threads=n_threads)
    for j in (0, 250, 499):
        alone = pk.sketch.fit_chunks([X[:15, [j]], X[15:, [j]]], "box-cox")
        assert fit.lmbda[j] == alone.lmbda[0]


@pytest.mark.filterwarnings("ignore:.*not fitted:UserWarning")
def test_sums_that_outgrow_their_units_are_kept_in_larger_ones():
    """After merging 300 sketches, the sums no longer fit in their units.

    A constant column has one bin and an all-NaN column has none.
    """
    chunk = np.column_stack([np.full(10, 2.0), np.arange(1.0, 11.0), np.full(10, np.nan)])
    part = summarize_chunk(chunk, range_of(chunk, "box-cox").grid())
    assert part.grid.n_bins.tolist()[::2] == [1, 0]
    whole = functools.reduce(merge, [part] * 300)
    assert whole.n_obs.tolist() == [3000.0, 3000.0, 0.0]
    assert_allclose(finish(whole).lmbda[1], pk.fit(chunk[:, 1], "box-cox").lmbda[0], rtol=1e-9)
