"""Options of the command line for values that have no transform: ``--infinite`` and ``--out-of-range``."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import numpy.testing as npt
import pytest

import powerkern as pk

X = np.random.default_rng(0).lognormal(size=(40, 2))


def write_table(path: Path, values: np.ndarray) -> Path:
    """Write columns a and b as CSV."""
    path.write_text("a,b\n" + "".join(f"{a!r},{b!r}\n" for a, b in values.tolist()))
    return path


def read_numbers(path: Path) -> np.ndarray:
    """Read all cells of a CSV table; empty cells are NaN."""
    with path.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return np.array([[float(cell or "nan") for cell in row] for row in rows])


@pytest.fixture
def infinite_table(tmp_path: Path) -> Path:
    """A table with one infinite value in each column."""
    values = X.copy()
    values[3, 0], values[5, 1] = np.inf, np.inf
    return write_table(tmp_path / "infinite.csv", values)


def test_infinite_values_are_refused_by_default(run, infinite_table: Path) -> None:
    code, out, err = run("fit", infinite_table, "--family", "box-cox")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "column 'a', line 5" in err
    assert "--infinite missing" in err


@pytest.mark.parametrize("treatment", ["missing", "keep"])
def test_infinite_values_are_left_out_of_a_fit(run, infinite_table: Path, tmp_path: Path, treatment: str) -> None:
    left_out = np.delete(X[:, 0], 3), np.delete(X[:, 1], 5)
    expected = [pk.fit(column, "box-cox").lmbda[0] for column in left_out]
    fit, z = tmp_path / "fit.json", tmp_path / "z.csv"
    code, out, err = run("fit", infinite_table, "--family", "box-cox", "--infinite", treatment, "--json", "-o", fit)
    assert code == 0
    assert [each["lmbda"] for each in json.loads(out)["columns"]] == expected
    assert err.count("infinite") == (treatment == "missing"), err
    # the saved fit treats later tables in the same way, unless --infinite is passed
    assert run("transform", infinite_table, "--fit", fit, "-o", z)[0] == 0
    scores = read_numbers(z)
    assert np.isnan(scores).sum() == (2 if treatment == "missing" else 0)
    assert np.isinf(scores).sum() == (0 if treatment == "missing" else 2)
    npt.assert_array_equal(np.isfinite(scores).sum(axis=0), [39, 39])
    code, _, err = run("transform", infinite_table, "--fit", fit, "-o", z, "--infinite", "raise")
    assert (code, err.count("\n")) == (2, 1)
    assert "column 'a', line 5" in err


@pytest.fixture
def fit_path(run, tmp_path: Path) -> Path:
    """A Box-Cox fit of `X`."""
    path = tmp_path / "fit.json"
    assert run("fit", write_table(tmp_path / "x.csv", X), "--family", "box-cox", "-o", path)[0] == 0
    return path


def test_values_without_a_transform_are_treated_as_requested(run, fit_path: Path, tmp_path: Path) -> None:
    outside = write_table(tmp_path / "outside.csv", np.array([[-1.0, 2.0], [1.0, 1e9]]))
    z = tmp_path / "z.csv"
    code, _, err = run("transform", outside, "--fit", fit_path, "-o", z)
    assert (code, err.count("\n"), z.exists()) == (2, 1, False)
    assert "column 'a', line 2" in err
    assert "--out-of-range clip" in err
    known = pk.load(fit_path)
    inside = known.transform(np.clip([[-1.0, 2.0], [1.0, 1e9]], X.min(axis=0), X.max(axis=0)))
    for treatment in ("nan", "clip"):
        code, _, err = run("transform", outside, "--fit", fit_path, "-o", z, "--out-of-range", treatment)
        assert (code, err.count("warning")) == (0, 1)
        scores = read_numbers(z)
        assert np.isnan(scores[0, 0]) == (treatment == "nan")
        npt.assert_allclose(scores[1, 0], inside[1, 0])
        if treatment == "clip":
            npt.assert_allclose(scores, inside)


def test_scores_without_an_inverse_are_treated_as_requested(run, tmp_path: Path) -> None:
    path, z, back = (tmp_path / each for each in ("fit.json", "z.csv", "back.csv"))
    fit = pk.fit(X, "box-cox", lmbda=[-1.0, -1.0])  # psi < 1: scores are bounded above
    fit = fit._with_names(["a", "b"])
    fit.save(path)
    write_table(z, np.array([[0.0, 0.5], [1e6, 0.25]]))
    code, _, err = run("inverse", z, "--fit", path, "-o", back, "--out-of-range", "raise")
    assert (code, err.count("\n")) == (2, 1)
    assert "column 'a', line 3" in err
    for words in ([], ["--out-of-range", "nan"]):
        code, _, err = run("inverse", z, "--fit", path, "-o", back, *words)
        assert (code, err.count("warning")) == (0, 1)
        assert np.isnan(read_numbers(back)).tolist() == [[False, False], [True, False]]
    assert run("inverse", z, "--fit", path, "-o", back, "--out-of-range", "clip")[0] == 0
    npt.assert_allclose(read_numbers(back)[1, 0], X[:, 0].max())
