"""Fits, profiles and intervals of long columns from power sums, compared with those computed from the values."""

from __future__ import annotations

import numpy as np
import pytest
from fits import kernel_rows
from numpy.testing import assert_allclose, assert_array_equal

import powerkern as pk
from powerkern import Status
from powerkern._engine import threads
from powerkern._estimators import power_sums, ranges, routes
from powerkern.kernels.power_sums import ranges as sketch
from powerkern.kernels.results import BAD_INFINITE, BAD_NOT_POSITIVE, STATUS
from powerkern.kernels.transforms.family import FAMILIES as FAMILY_CODES

FAMILIES = ("yeo-johnson", "box-cox")


@pytest.fixture
def tall(monkeypatch):
    """Treat columns of 1,000 values as long; guess their ranges from samples of 100 values."""
    monkeypatch.setattr(routes, "SKETCHED_FROM", 1000)
    monkeypatch.setattr(routes, "_LONG", 1000)
    for module in (power_sums, ranges):
        monkeypatch.setattr(module, "BLOCK_ROWS", 700)
    monkeypatch.setattr(power_sums, "_GUESSED", 100)


@pytest.fixture
def direct(monkeypatch):
    """Return a function that calls its argument while power sums are switched off, and returns the result."""

    def run(function):
        with monkeypatch.context() as patch:
            patch.setattr(routes, "SKETCHED_FROM", 10**12)
            patch.setattr(routes, "_LONG", 10**12)
            return function()

    return run


def skewed_and_tight(family: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.lognormal(size=5000), 1e4 + 1e-3 * rng.normal(size=5000)])
    if family == "yeo-johnson":
        X[:, 0] -= 1.0
    X[::10, 0] = np.nan
    return X


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("weighted", [False, True])
def test_fits_of_long_columns_agree_with_direct_fits(tall, direct, family, weighted):
    X = skewed_and_tight(family)
    weight = np.random.default_rng(1).random(len(X)) if weighted else None
    fit = pk.fit(X, family, sample_weight=weight)
    expected = direct(lambda: pk.fit(X, family, sample_weight=weight))
    assert_array_equal(fit.status, Status.OK)
    assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-11)
    assert_allclose(fit.n_obs, expected.n_obs, rtol=1e-15)
    assert_allclose(fit.nll, expected.nll, rtol=1e-11)
    Z = fit.transform(X)
    w = np.where(np.isnan(X), 0.0, 1.0 if weight is None else weight[:, None])
    mean = np.sum(w * np.nan_to_num(Z), axis=0) / w.sum(axis=0)
    assert_allclose(mean, 0.0, atol=1e-12)
    assert_allclose(np.sum(w * np.nan_to_num(Z - mean) ** 2, axis=0) / w.sum(axis=0), 1.0, rtol=1e-12)
    assert_allclose(fit.profile([0.0, 1.0]), direct(lambda: expected.profile([0.0, 1.0])), rtol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_any_number_of_threads_and_any_order_give_the_same_bits(tall, family):
    X = np.tile(skewed_and_tight(family), (9, 1))  # enough values for several threads
    one = pk.fit(X, family, n_threads=1)
    for other in (pk.fit(X, family, n_threads=3), pk.fit(np.asfortranarray(X), family, n_threads=2)):
        assert_array_equal(kernel_rows(other), kernel_rows(one))
    assert_array_equal(kernel_rows(pk.fit(X[:, ::-1], family))[::-1], kernel_rows(one))


def test_a_column_that_its_grid_does_not_resolve_is_fitted_directly(tall, direct):
    x = np.zeros(10_000)
    x[17] = 1.0
    fit, expected = pk.fit(x), direct(lambda: pk.fit(x))
    assert_array_equal(kernel_rows(fit), kernel_rows(expected))
    assert_allclose(fit.confint(), direct(expected.confint), rtol=1e-9)
    at = fit.lmbda[0] + np.linspace(-1, 1, 5)
    assert_allclose(fit.profile(at), direct(lambda: expected.profile(at)), rtol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_profiles_and_intervals_of_many_columns(tall, direct, family):
    X = np.column_stack([skewed_and_tight(family), skewed_and_tight(family)[:, ::-1]])
    fit = pk.fit(X, family)
    at = np.linspace(-3, 4, 9)
    assert_allclose(fit.profile(at), direct(lambda: fit.profile(at)), rtol=1e-10)
    assert_allclose(np.array(fit.confint()), np.array(direct(fit.confint)), rtol=1e-8)
    assert_allclose(np.array(fit.confint(level=0.5)), np.array(direct(lambda: fit.confint(level=0.5))), rtol=1e-8)


def test_bad_values_are_named_as_in_short_columns(tall):
    X = skewed_and_tight("box-cox")
    X[4321, 1] = -1.0
    with pytest.raises(ValueError, match=r"column 1, row 4321: the value is -1\.0"):
        pk.fit(X, "box-cox")
    X[1234, 1] = np.inf
    with pytest.raises(ValueError, match=r"column 1, row 1234: the value is inf"):
        pk.fit(X)
    with pytest.warns(UserWarning, match="column 0: not fitted: fewer than two distinct values"):
        assert pk.fit(np.full(2000, 3.0)).status[0] == Status.CONSTANT
    with pytest.warns(UserWarning, match="column 0: not fitted: no values"):
        assert pk.fit(np.full(2000, np.nan)).status[0] == Status.EMPTY


def test_bounded_and_given_lambdas(tall, direct):
    X = skewed_and_tight("box-cox")
    for options in ({"lmbda": 0.5}, {"lmbda": [np.nan, 2.0]}, {"ymax": 50.0}, {"standardize": False}):
        fit, expected = pk.fit(X, "box-cox", **options), direct(lambda options=options: pk.fit(X, "box-cox", **options))
        assert_array_equal(fit.status, expected.status)
        assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-11)
        assert_allclose(fit.loc, expected.loc, rtol=1e-9)


def surprises(n: int = 6000) -> np.ndarray:
    """Return six columns, (n, 6), in which a sample of every 60th row is misleading.

    It misses an outlier, or its values are constant, missing, of one sign, or larger than those of other rows.
    """
    rng = np.random.default_rng(3)
    seen = np.arange(n) % 60 == 0
    return np.column_stack(
        [
            np.where(np.arange(n) == 77, 1e9, rng.lognormal(size=n)),  # an outlier
            np.where(seen, 1.0, rng.normal(size=n)),  # constant
            np.where(seen, np.nan, rng.gamma(2.0, size=n)),  # missing
            np.where(seen, 1.0, -1.0) * rng.lognormal(size=n),  # of one sign
            np.where(np.arange(n) % 100 == 7, 5.0, np.where(seen, np.nan, 3.0)),  # two values
            np.where(seen, 1e6, 1.0) * rng.lognormal(size=n),  # of another size
        ]
    )


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_misleading_sample_does_not_change_the_fit(tall, direct, order):
    X = np.asarray(surprises(), order=order)
    fit, expected = pk.fit(X), direct(lambda: pk.fit(X))
    assert_array_equal(fit.status, Status.OK)
    assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-10)
    assert_array_equal([fit.n_obs, fit.x_min, fit.x_max], [expected.n_obs, expected.x_min, expected.x_max])
    assert_allclose(fit.transform(X), expected.transform(X), rtol=1e-8, atol=1e-10)
    positive = X[:, [0, 2, 4, 5]]
    assert_allclose(
        pk.fit(positive, "box-cox").lmbda, direct(lambda: pk.fit(positive, "box-cox")).lmbda, rtol=1e-10, atol=1e-12
    )


def test_ranges_guessed_from_a_sample_contain_ordinary_columns():
    """Guessed ranges contain the values of lognormal, gamma and uniform columns, which are then read only once."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.lognormal(size=50_000), rng.gamma(2.0, size=50_000), rng.uniform(1900, 2000, 50_000)])
    for family in FAMILIES:
        code = FAMILY_CODES[family]
        found = ranges.range_matrix(X[::10], code, None, 1)
        wide = power_sums.widen_ranges(found, code)
        assert (wide[:, sketch.R_MIN] <= X.min(axis=0)).all()
        assert (X.max(axis=0) <= wide[:, sketch.R_MAX]).all()
        assert (wide[:, sketch.R_MIN] >= 0.0).all()
    negative = power_sums.widen_ranges(ranges.range_matrix(-X[::10], FAMILY_CODES["yeo-johnson"], None, 1), 1)
    assert (negative[:, sketch.R_MAX] < 0.0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
@pytest.mark.parametrize("p", [1, 3, 70, 200])
def test_ranges_do_not_depend_on_how_a_matrix_lies_in_memory(monkeypatch, p, dtype):
    for module in (power_sums, ranges):
        monkeypatch.setattr(module, "BLOCK_ROWS", 400)
    X = np.random.default_rng(p).normal(scale=99.0, size=(1000, p + 1)).astype(dtype)
    for family, values in (("yeo-johnson", X), ("box-cox", abs(X) + dtype(1))):
        x = values[:, :p]
        layouts = x.copy(), x, np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2]
        every = [(layout, n_threads) for layout in layouts for n_threads in (1, 2)]
        first, *others = (ranges.range_matrix(y, FAMILY_CODES[family], None, n) for y, n in every)
        assert all(first.tobytes() == other.tobytes() for other in others)
        assert_array_equal(first[:, [sketch.R_MIN, sketch.R_MAX]], np.column_stack([x.min(axis=0), x.max(axis=0)]))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_threads", [1, 2, 7])
@pytest.mark.parametrize(("infinite", "zero"), [(10, 4990), (4990, 10), (10, 11), (2000, 2500), (2500, 2000)])
def test_infinity_is_reported_first_if_a_column_is_invalid_in_several_ways(tall, infinite, zero, n_threads, order):
    """The error names the infinite value, wherever the zero is and whichever thread reads it."""
    X = np.asarray(np.random.default_rng(0).lognormal(size=(5000, 300)), order=order)
    X[infinite, :3], X[zero, 1:4] = np.inf, 0.0
    for values, weight in ((X, ()), (X.astype(np.float32, order="K"), ()), (X, np.ones(len(X)))):
        found = ranges.range_matrix(values, FAMILY_CODES["box-cox"], np.asarray(weight, float), n_threads)
        assert_array_equal(found[:5, sketch.R_COUNT], [BAD_INFINITE] * 3 + [BAD_NOT_POSITIVE, 5000])
    some = np.asarray(X[:, :4], order=order)
    found = routes.maximize_likelihood(some, FAMILY_CODES["box-cox"], np.full(4, np.nan), None, n_threads)
    assert_array_equal(found[:, STATUS], [BAD_INFINITE] * 3 + [BAD_NOT_POSITIVE])


def test_values_outside_the_domain_do_not_stop_other_columns(tall, direct):
    X = surprises()[:, [0, 1, 2]] + [0.0, 0.0, 1.0]
    fit, expected = pk.fit(X, "best"), direct(lambda: pk.fit(X, "best"))
    assert fit.families == expected.families
    assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-10)


def test_long_columns_show_their_progress(tall, capsys, monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(threads, "_PROGRESS_DELAY", 0.0)
    pk.fit(np.tile(skewed_and_tight("box-cox"), (9, 1)), "box-cox", progress=True)
    assert "130/130" in capsys.readouterr().err


def test_the_length_that_counts_as_long_does_not_depend_on_threads(direct):
    x = np.random.default_rng(0).normal(size=routes.SKETCHED_FROM)
    one = pk.fit(x, n_threads=1)
    assert_array_equal(kernel_rows(pk.fit(x, n_threads=2)), kernel_rows(one))
    assert not np.array_equal(kernel_rows(direct(lambda: pk.fit(x))), kernel_rows(one))  # another route
    assert_allclose(direct(lambda: pk.fit(x)).lmbda, one.lmbda, rtol=1e-12)
