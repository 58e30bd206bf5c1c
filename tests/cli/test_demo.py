"""The demo: simulated data are normal after their transform, and printed statistics equal their definitions."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import special

import powerkern as pk
from powerkern._cli import demo


def transform(x: np.ndarray, lmbda: float, family: str) -> np.ndarray:
    if family == "box-cox":
        return special.boxcox(x, lmbda)
    upper, lower = special.boxcox1p(np.maximum(x, 0.0), lmbda), special.boxcox1p(np.maximum(-x, 0.0), 2.0 - lmbda)
    return np.where(x >= 0.0, upper, -lower)


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_simulated_columns_are_normal_after_their_transform(family: str) -> None:
    lmbda = np.array([-0.9, -0.3, 0.2, 0.8]) if family == "box-cox" else np.array([0.1, 0.7, 1.0, 1.9])
    x = demo._simulate(family, lmbda, 60, np.random.default_rng(5))
    z = np.random.default_rng(5).standard_normal((60, 4))
    assert len(set(np.round(np.log(abs(x)).mean(axis=0), 3))) == 4  # columns differ in location
    for j in range(4):
        np.testing.assert_allclose(np.corrcoef(transform(x[:, j], lmbda[j], family), z[:, j])[0, 1], 1.0, rtol=1e-12)


@pytest.fixture
def simulated(monkeypatch):
    """Record the simulated data and replace the timing of other libraries."""
    found = {}

    def simulate(family, lmbda, rows, rng, original=demo._simulate):
        x = original(family, lmbda, rows, rng)
        if lmbda.size > 2:  # else to warm up
            found[family] = lmbda, x
        return x

    def time_peers(family, x, say):
        say(f", {x.shape[1]} columns of peers", end="")
        return {"peer 1.0": 5e3}

    monkeypatch.setattr(demo, "_simulate", simulate)
    monkeypatch.setattr(demo, "_time_peers", time_peers)
    return found


def test_reported_errors_are_those_of_the_fits_of_the_simulated_data(run, simulated) -> None:
    code, out, err = run("demo", "--rows", 50, "--columns", 80, "--json", "--jobs", 1)
    assert (code, err) == (0, "")
    report = json.loads(out)  # nothing else is printed
    assert (report["rows"], report["columns"], report["n_threads"]) == (50, 80, 1)
    for figures in report["families"]:
        truth, x = simulated[figures["family"]]
        low, high = (-1.0, 1.0) if figures["family"] == "box-cox" else (0.0, 2.0)
        assert low < truth.min() < low + 0.2
        assert high - 0.2 < truth.max() < high
        fit = pk.fit(x, figures["family"])
        error = (fit.lmbda - truth) * np.sqrt(fit.information)
        assert figures["rms_error"] == pytest.approx(math.sqrt(np.mean(error**2)), rel=1e-9)
        assert figures["coverage"] == np.mean(abs(error) < 1.959964)
        back = fit.inverse_transform(fit.transform(x))
        assert figures["round_trip_error"] == pytest.approx(np.max(abs(back - x) / (1.0 + abs(x))), rel=1e-9)
        assert figures["ns_per_value"] == pytest.approx(1e9 * figures["fit_seconds"] / x.size, rel=1e-12)
        assert 0.0 < figures["transform_ns_per_value"] < 1e9
        assert 0.0 < figures["inverse_ns_per_value"] < 1e9
        assert figures["peers"] == {"peer 1.0": 5e3}


def test_progress_and_a_table_are_printed_without_json(run, simulated, tmp_path) -> None:
    code, out, _ = run("demo", "--rows", 20, "--columns", 3, "--save", tmp_path / "new" / "folder")
    assert code == 0
    assert f"powerkern {pk.__version__}: 20 x 3 simulated values each" in out
    assert "timing box-cox: powerkern, 3 columns of peers\ntiming yeo-johnson: powerkern, 3 columns of peers\n" in out
    assert "Peers run on one core and are measured on 3 of the columns." in out
    assert f"Saved in {tmp_path / 'new' / 'folder'}: box-cox.npy, box-cox.json" in out
    for family, (_, x) in simulated.items():
        np.testing.assert_array_equal(np.load(tmp_path / "new" / "folder" / f"{family}.npy"), x)
        assert (
            pk.load(tmp_path / "new" / "folder" / f"{family}.json").lmbda.tolist() == pk.fit(x, family).lmbda.tolist()
        )


def test_cells_of_the_table() -> None:
    results = demo._DemoResults("box-cox", 1.034, 0.9512, 0.25, 2.0, 0.5, 0.75, 3e-12, {"scipy 1.2": 5000.0})
    assert demo._demo_rows([results, results]) == [
        [label, cell, cell]
        for label, cell in (
            ("error of lambda, rms, in standard errors (expected: 1)", "1.03"),
            ("true lambda within 1.96 standard errors (expected: 95 %)", "95.1%"),
            ("error of inverse(transform(x)), relative", "3e-12"),
            ("fit, seconds", "0.250"),
            ("fit, million values/s", "500.0"),
            ("fit, ns/value", "2.00"),
            ("  scipy 1.2", "5,000 (x 2,500)"),
            ("transform, ns/value", "0.50"),
            ("inverse, ns/value", "0.75"),
        )
    ]


def test_the_best_of_three_times_is_reported(monkeypatch) -> None:
    clock = iter([0.0, 5.0, 5.0, 7.0, 7.0, 10.0])
    monkeypatch.setattr(demo.time, "perf_counter", lambda: next(clock))
    results = iter("abc")
    assert demo._time_best(lambda: next(results)) == (2.0, "c")


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_peers_are_timed_per_value(family: str, monkeypatch) -> None:
    said, fitted = [], []
    monkeypatch.setattr(demo, "_fit_scipy", lambda name, x: fitted.append((name, x.shape)))
    monkeypatch.setattr(demo, "_fit_sklearn", lambda name, x: None)
    monkeypatch.setattr(demo, "_time_best", lambda work: (6e-7, work()))
    times = demo._time_peers(family, np.ones((300, 2)), lambda text, **options: said.append(text))
    assert fitted == [(family, (100, 2)), (family, (300, 2))]  # the first is not timed
    assert said == [", scipy", ", scikit-learn"]
    assert [name.split()[0] for name in times] == ["scipy", "scikit-learn"]
    assert list(times.values()) == pytest.approx([1.0, 1.0])
