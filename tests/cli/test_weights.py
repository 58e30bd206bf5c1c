"""Weights of rows in a column of the table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import powerkern as pk
from powerkern._cli import fit as fitting


def write(path: Path, x: np.ndarray, weight: list[object]) -> Path:
    path.write_text("x,w\n" + "".join(f"{a!r},{b}\n" for a, b in zip(x.tolist(), weight, strict=True)))
    return path


@pytest.mark.parametrize("wrong", [-1.0, np.inf, np.nan])
def test_a_wrong_weight_is_named_by_its_line(run, tmp_path: Path, wrong: float) -> None:
    path = write(tmp_path / "t.csv", np.arange(1.5, 8.0), [1, 2, wrong if wrong == wrong else "", 1, 0, 1, 3])
    code, _, err = run("fit", path, "--weights", "w")
    assert code == 2
    assert f"t.csv, column 'w', line 4: the weight is {wrong}; weights must be finite and not negative" in err


@pytest.mark.parametrize("large", [0, 10**9])
def test_weights_count_rows_in_whole_tables_and_in_blocks(run, tmp_path: Path, monkeypatch, large: int) -> None:
    rng = np.random.default_rng(0)
    x, weight = rng.lognormal(size=60), rng.integers(0, 4, 60)
    path = write(tmp_path / "t.csv", x, weight.tolist())
    monkeypatch.setattr(fitting, "LARGE", large)
    code, out, _ = run("fit", path, "--weights", "w", "--family", "box-cox", "--json")
    (column,) = json.loads(out)["columns"]
    expected = pk.fit(np.repeat(x, weight), "box-cox")
    assert code == 0
    assert (column["column"], column["n_obs"]) == ("x", expected.n_obs[0])
    assert column["lmbda"] == pytest.approx(expected.lmbda[0], abs=1e-6)
