"""Robust fits from chunks with samples of 256 values, fewer than a chunk has, compared with fits in memory."""

from __future__ import annotations

import functools
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import powerkern as pk
from powerkern import Status
from powerkern._results.normality import pearson_normality
from powerkern.kernels.results import N_OBS, N_RESULTS
from powerkern.sketch import MapReduce, driver, families, fit_chunks, merge, order

N = 1500


@pytest.fixture(autouse=True)
def _small_samples(monkeypatch):
    monkeypatch.setattr(order, "SAMPLE", 256)
    monkeypatch.setattr(order, "EDGES", 512)
    monkeypatch.setattr(order, "_FEWEST", 512)


def contaminated(family: str, n: int = N, seed: int = 0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    x[: n // 10] = rng.normal(6.0, 0.3, n // 10)
    rng.shuffle(x)
    return np.exp(0.5 * x) if family == "box-cox" else np.sinh(0.5 * x)


def assert_agrees(fit, whole, tolerance: float = 2e-3) -> None:
    np.testing.assert_allclose(fit.lmbda, whole.lmbda, rtol=0, atol=tolerance)
    np.testing.assert_allclose(fit.n_obs, whole.n_obs, rtol=1e-12)
    np.testing.assert_allclose(fit.loc, whole.loc, rtol=30 * tolerance, atol=30 * tolerance)
    np.testing.assert_allclose(fit.scale, whole.scale, rtol=30 * tolerance)
    np.testing.assert_array_equal([fit.x_min, fit.x_max], [whole.x_min, whole.x_max])
    np.testing.assert_allclose(fit.n_kept, whole.n_kept, rtol=0.01)
    beyond = abs(fit.lmbda - whole.lmbda) > fit.lmbda_error + 1e-9
    assert not beyond.any() or (fit.lmbda_error[beyond] == np.inf).all()


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
@pytest.mark.parametrize("estimator", ["robust", "rewml-nr", "mtl", "carroll", pk.AdaptiveRewML(n_reweight="settled")])
def test_a_column_longer_than_its_sample(family, estimator):
    x = contaminated(family)
    fit, whole = fit_chunks(np.array_split(x, 3), family, estimator), pk.fit(x, family, estimator)
    assert_agrees(fit, whole)
    np.testing.assert_allclose(fit.nll, whole.nll, rtol=0.02, atol=0.5)
    assert fit.status[0] in (Status.SCANNED, Status.BRACKETED, whole.status[0])
    assert fit.center == pytest.approx(whole.center, abs=0.01)
    assert fit.divisor == pytest.approx(whole.divisor, rel=0.01)


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_weights_missing_values_and_shifts(scale):
    x = contaminated("box-cox")
    x[::7] = np.nan
    weight = scale * np.random.default_rng(1).integers(0, 4, N)
    options = {"family": "box-cox", "estimator": "robust", "shift": 2.0}
    parts = {"sample_weight": np.array_split(weight, 3)}
    fit = fit_chunks(np.array_split(x - 2.0, 3), **options, **parts)
    whole = pk.fit(x - 2.0, **options, sample_weight=weight)
    np.testing.assert_allclose(fit.lmbda, whole.lmbda, atol=3e-3)
    np.testing.assert_allclose(fit.n_obs, whole.n_obs)
    np.testing.assert_allclose(fit.scale, whole.scale, rtol=0.05)


def test_bounds_move_lambda_of_short_and_of_long_columns():
    rng = np.random.default_rng(2)
    short = np.where(np.arange(N) < 200, rng.lognormal(size=N), np.nan)
    X = np.column_stack([contaminated("box-cox"), short, np.round(rng.lognormal(size=N), 1) + 0.5])
    free = pk.fit(X, "box-cox", "robust").lmbda
    for bounds in ((free + 0.05, None), (None, free - 0.05), (free - 0.01, free + 0.01)):
        fit = fit_chunks(np.array_split(X, 3), "box-cox", "robust", bounds=bounds)
        whole = pk.fit(X, "box-cox", "robust", bounds=bounds)
        np.testing.assert_allclose(fit.lmbda, whole.lmbda, atol=3e-3)
        np.testing.assert_allclose(fit.scale, whole.scale, rtol=0.02)
        np.testing.assert_allclose(fit.loc, whole.loc, atol=0.02)
        assert (fit.status[1:] == whole.status[1:]).all()
        assert (fit.status == Status.AT_BOUND).tolist() == (whole.status == Status.AT_BOUND).tolist()


def test_columns_without_a_robust_fit_have_the_reasons_of_the_fit_in_memory():
    x = contaminated("yeo-johnson")
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [
            x,
            np.full(N, np.nan),
            np.ones(N),
            np.where(rng.random(N) < 0.6, 1.0, x),
            np.where(rng.random(N) < 0.6, 2.0, 3.0),
        ]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for estimator in ("robust", "mtl"):
            fit, whole = fit_chunks(np.array_split(X, 3), estimator=estimator), pk.fit(X, estimator=estimator)
            assert fit.status[1:].tolist() == whole.status[1:].tolist()
            np.testing.assert_allclose(fit.lmbda, whole.lmbda, atol=2e-3)
            np.testing.assert_array_equal([fit.x_min, fit.x_max], [whole.x_min, whole.x_max])
            np.testing.assert_array_equal(fit.n_obs, whole.n_obs)


def test_any_order_of_merging_gives_the_same_bits():
    x = contaminated("box-cox")
    chunks = np.array_split(x, 5)

    def engine_of(places):
        def engine(summarize, add):
            parts = [summarize(chunks[i]) for i in places]
            return functools.reduce(lambda a, b: add(b, a), parts) if places[0] else functools.reduce(add, parts)

        return engine

    fits = [
        fit_chunks(MapReduce(engine_of(places)), "box-cox", "robust") for places in ([0, 1, 2, 3, 4], [3, 1, 4, 0, 2])
    ]
    assert fits[0].to_json() == fits[1].to_json()


def kinds_of_columns(n: int = 900):
    z = np.random.default_rng(3).normal(size=(n, 4))
    return np.column_stack([np.exp(z[:, 0]), 5.0 + np.exp(0.3 * z[:, 1]), z[:, 2], 1.0 + abs(z[:, 3])])


@pytest.mark.parametrize("criterion", ["likelihood", "ppcc", "pearson"])
@pytest.mark.parametrize("estimator", ["mle", "robust"])
def test_the_better_family_of_values_in_chunks(estimator, criterion):
    X = kinds_of_columns()
    fit = fit_chunks(np.array_split(X, 3), "best", estimator, criterion=criterion)
    whole = pk.fit(X, "best", estimator, criterion=criterion)
    assert fit.families == whole.families
    np.testing.assert_allclose(fit.lmbda, whole.lmbda, rtol=0, atol=1e-10 if estimator == "mle" else 5e-3)
    np.testing.assert_allclose(fit.transform(X), whole.transform(X), atol=1e-9 if estimator == "mle" else 0.1)


def test_representations_name_family_and_columns():
    from powerkern.sketch import extend, range_of

    X = np.exp(kinds_of_columns())
    found = range_of(X, "box-cox")
    assert repr(found) == "Range(family='box-cox', 4 columns)"
    grid = found.grid()
    assert repr(grid) == f"Grid(family='box-cox', 4 columns, {grid.n_bins.sum()} bins)"
    total = extend(None, X, "box-cox")
    assert repr(total) == f"Sketch({total.grid!r})"
    assert merge(found, found).n_obs.tolist() == (2 * found.n_obs).tolist()


@pytest.mark.parametrize(("options", "n_passes"), [({}, 2), ({"family": "best"}, None), ({"estimator": "mtl"}, None)])
def test_the_number_of_passes_is_known_for_one_family_by_maximum_likelihood(options, n_passes, monkeypatch):
    totals = []
    bar_of = driver.progress_bar
    monkeypatch.setattr(driver, "progress_bar", lambda total, *rest: totals.append(total) or bar_of(total, *rest))
    x = np.random.default_rng(0).lognormal(size=40)
    fit_chunks(MapReduce(lambda summarize, add: add(summarize(x[:20]), summarize(x[20:]))), **options)
    assert totals == [n_passes]


def test_the_statistic_of_counts_in_classes_is_that_of_the_values(monkeypatch):
    rng = np.random.default_rng(0)
    columns = [rng.normal(size=200), rng.exponential(size=37), rng.normal(size=2)]
    standardized = [(x - x.mean()) / x.std() for x in columns]
    counts = lambda of, ends: SimpleNamespace(  # noqa: E731
        weights=lambda: [np.histogram(z, [-np.inf, *e, np.inf])[0] for z, e in zip(standardized, ends, strict=True)]
    )
    monkeypatch.setattr(families, "_count_in_bins", counts)
    rows = np.zeros((3, N_RESULTS))
    rows[:, N_OBS] = [200.0, 37.0, 2.0]
    found = families._pearson(families._Compared(None, None, None, None, 0, rows))
    expected = [pearson_normality(x, None) for x in columns]
    assert np.isnan(expected[2])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
