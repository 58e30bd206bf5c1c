"""Few long columns, profiles and intervals of long ones: from power sums, with the results of the direct way."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import powerkern as pk
from powerkern import Status, columns, pieces

FAMILIES = ("yeo-johnson", "box-cox")


@pytest.fixture
def tall(monkeypatch):
    """Take columns of a thousand values for long ones."""
    monkeypatch.setattr(pieces, "_TALL", 1000)
    monkeypatch.setattr(pieces, "_LONG", 1000)
    monkeypatch.setattr(pieces, "PIECE", 700)


@pytest.fixture
def direct(monkeypatch):
    """Let a function run without power sums."""

    def run(function):
        with monkeypatch.context() as patch:
            patch.setattr(pieces, "_TALL", 10**12)
            patch.setattr(pieces, "_LONG", 10**12)
            return function()

    return run


def matrix(family: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.lognormal(size=5000), 1e4 + 1e-3 * rng.normal(size=5000)])
    if family == "yeo-johnson":
        X[:, 0] -= 1.0
    X[::10, 0] = np.nan
    return X


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("weighted", [False, True])
def test_few_long_columns(tall, direct, family, weighted):
    X = matrix(family)
    weight = np.random.default_rng(1).random(len(X)) if weighted else None
    fit = pk.fit(X, family, sample_weight=weight)
    expected = direct(lambda: pk.fit(X, family, sample_weight=weight))
    assert fit._sums is not None
    assert expected._sums is None
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
    X = np.tile(matrix(family), (9, 1))  # enough values for several threads
    one = pk.fit(X, family, n_threads=1)
    for other in (pk.fit(X, family, n_threads=3), pk.fit(np.asfortranarray(X), family, n_threads=2)):
        assert_array_equal(other._results, one._results)
    assert_array_equal(pk.fit(X[:, ::-1], family)._results[::-1], one._results)


def test_a_column_that_its_grid_does_not_resolve_is_fitted_directly(tall, direct):
    x = np.zeros(10_000)
    x[17] = 1.0
    fit, expected = pk.fit(x), direct(lambda: pk.fit(x))
    assert fit._sums is None
    assert_array_equal(fit._results, expected._results)
    assert_allclose(fit.confint(), direct(expected.confint), rtol=1e-9)
    at = fit.lmbda[0] + np.linspace(-1, 1, 5)
    assert_allclose(fit.profile(at), direct(lambda: expected.profile(at)), rtol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_profiles_and_intervals_of_many_columns(tall, direct, family):
    X = np.column_stack([matrix(family), matrix(family)[:, ::-1]])
    fit = pk.fit(X, family)
    assert fit._sums is None  # too many columns
    at = np.linspace(-3, 4, 9)
    assert_allclose(fit.profile(at), direct(lambda: fit.profile(at)), rtol=1e-10)
    assert_allclose(np.array(fit.confint()), np.array(direct(fit.confint)), rtol=1e-8)
    assert_allclose(np.array(fit.confint(0.5)), np.array(direct(lambda: fit.confint(0.5))), rtol=1e-8)


def test_bad_values_are_named_as_in_short_columns(tall):
    X = matrix("box-cox")
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
    X = matrix("box-cox")
    for options in ({"lmbda": 0.5}, {"lmbda": [np.nan, 2.0]}, {"ymax": 50.0}, {"standardize": False}):
        fit, expected = pk.fit(X, "box-cox", **options), direct(lambda options=options: pk.fit(X, "box-cox", **options))
        assert_array_equal(fit.status, expected.status)
        assert_allclose(fit.lmbda, expected.lmbda, rtol=1e-11)
        assert_allclose(fit.loc, expected.loc, rtol=1e-9)


def test_what_counts_as_long_does_not_depend_on_threads():
    values = np.random.default_rng(0).normal(size=(pieces._TALL, 1))
    one, sums = pieces.fit_matrix(values, columns.FAMILIES["yeo-johnson"], np.array([np.nan]), np.empty(0), 1)
    two, _ = pieces.fit_matrix(values, columns.FAMILIES["yeo-johnson"], np.array([np.nan]), np.empty(0), 2)
    assert sums is not None
    assert_array_equal(one, two)
