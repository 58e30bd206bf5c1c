"""Columns of identifiers are excluded from fits and copied byte for byte."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import powerkern as pk
from powerkern._input.tables.identifiers import IdentifierEvidence

N = 40
X = np.random.default_rng(0).lognormal(size=N)

#: Cells of a column of identifiers, and the reason that is reported.
IDENTIFIERS = {
    "beyond 2**53": ([str(2**60 + i) for i in range(N)], "beyond 2**53 (line 3: 1152921504606846977)"),
    "beyond 64 bits": ([str(10**25 + i) for i in range(N)], "beyond 2**53 (line 2: 10000000000000000000000000)"),
    "negative ones": ([str(-(2**60) - i) for i in range(N)], "beyond 2**53 (line 3: -1152921504606846977)"),
    "one beyond 2**53": (["5"] * (N - 1) + ["9007199254740993"], "beyond 2**53 (line 41: 9007199254740993)"),
    "leading zeros": ([f"{i:05d}" for i in range(N)], "leading zeros (line 2: 00000)"),
    "one leading zero": (["7"] * (N - 1) + ["007"], "leading zeros (line 41: 007)"),
    "long, all different": ([str(7_000_000 + 17 * i) for i in range(N)], "all different (line 2: 7000000)"),
    "longer, of any length": ([str(37**8 * 7**i)[:14].ljust(12, "1") for i in range(N)], "all different"),
    "with a gap": ([str(7_000_000 + 17 * i) for i in range(N - 1)] + [""], "all different (line 2: 7000000)"),
}
#: Cells of columns that are fitted, because they are not identifiers.
QUANTITIES = {
    "short": [str(100 + i) for i in range(N)],
    "long, of many lengths": [str(7 ** (3 + i % 12) + i) for i in range(N)],
    "long, one repeated": [str(7_000_000 + 17 * i) for i in range(N - 1)] + ["7000000"],
    "zero and decimals": [f"0.{i}5" for i in range(N)],
    "fractions beyond 2**53": [f"{2**60 + i * 10**7}.5" for i in range(N)],
    "exponents": [f"{i}e30" for i in range(1, N + 1)],
    "round numbers beyond 2**53": [str((i % 30 + 1) * 10**20) for i in range(N)],
    "some with points": [str(7_000_000 + 17 * i) for i in range(N - 1)] + ["7000000.25"],
}


def write(path: Path, cells: list[str], name: str = "key") -> Path:
    delimiter = "\t" if path.suffix == ".tsv" else ","
    lines = [f"{name},x", *(f"{cell},{x!r}" for cell, x in zip(cells, X.tolist(), strict=True))]
    path.write_text("".join(line.replace(",", delimiter) + "\n" for line in lines))
    return path


def first_column(path: Path) -> list[str]:
    with path.open(newline="") as file:
        return [row[0] for row in csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",")][1:]


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("kind", IDENTIFIERS)
def test_identifiers_are_left_out_and_pass_through(run, tmp_path, kind, suffix):
    cells, reason = IDENTIFIERS[kind]
    path = write(tmp_path / f"x{suffix}", cells)
    fit, z, back = (tmp_path / name for name in ("fit.json", f"z{suffix}", f"back{suffix}"))
    code, out, err = run("fit", path, "-o", fit)
    assert (code, err) == (0, "")
    (line,) = [line for line in out.splitlines() if line.startswith("left out")]
    assert line.startswith("left out, taken for identifiers (--columns fits them anyway): 'key': ")
    assert reason in line
    assert pk.load(fit).column_names == ["x"]
    assert pk.load(fit).lmbda.tolist() == pk.fit(X).lmbda.tolist()
    code, out, err = run("transform", path, "--fit", fit, "-o", z)
    assert (code, err) == (0, "")
    assert f"{N} rows x 2 columns written to {z} (1 transformed, 1 passed through)" in out
    assert run("inverse", z, "--fit", fit, "-o", back)[0] == 0
    assert first_column(z) == first_column(back) == cells


@pytest.mark.parametrize("kind", QUANTITIES)
def test_quantities_are_fitted(run, tmp_path, kind):
    cells = QUANTITIES[kind]
    code, out, _ = run("fit", write(tmp_path / "x.csv", cells), "--json")
    assert code == 0
    found = json.loads(out)
    assert found["left_out"] == []
    assert found["columns"][0]["lmbda"] == pk.fit(np.array(list(map(float, cells)))).lmbda[0]


@pytest.mark.parametrize("name", ["id", "ID", "user_id", "userId", "customerID", "id.x", "ID number"])
def test_whole_numbers_named_as_identifiers_are_left_out(run, tmp_path, name):
    path = write(tmp_path / "x.csv", [str(i % 7) for i in range(N)], name)
    found = json.loads(run("fit", path, "--json")[1])
    (left_out,) = found["left_out"]
    assert left_out == {"column": name, "reason": "identifiers: whole numbers named as identifiers (line 2: 0)"}
    assert len(found["columns"]) == 1


@pytest.mark.parametrize("name", ["paid", "PAID", "grid", "idle", "x_id_y", "width"])
def test_other_names(run, tmp_path, name):
    path = write(tmp_path / "x.csv", [str(i % 7) for i in range(N)], name)
    assert len(json.loads(run("fit", path, "--json")[1])["columns"]) == 2


def test_numbers_named_as_identifiers_that_are_not_whole(run, tmp_path):
    path = write(tmp_path / "x.csv", [f"{i}.5" for i in range(N)], "id")
    assert len(json.loads(run("fit", path, "--json")[1])["columns"]) == 2


def test_selected_identifiers_are_fitted_with_a_warning_about_rounding(run, tmp_path):
    """Integers beyond 2**53 are rounded, so the fitted numbers differ from those in the file."""
    path = write(tmp_path / "x.csv", IDENTIFIERS["beyond 2**53"][0])
    said = "column 'key' of x.csv: whole numbers beyond 2**53 are rounded to 16 digits (line 3: 1152921504606846977)"
    for words in (["--columns", "key,x"], ["--columns", "x", "--weights", "key"]):
        code, _, err = run("fit", path, *words, "-o", tmp_path / "fit.json")
        assert code == 0
        assert err.count(said) == 1
    run("fit", path, "--columns", "key,x", "-o", tmp_path / "fit.json")
    for words in (["transform", path, "-o", tmp_path / "z.csv"], ["outliers", path]):
        code, _, err = run(*words, "--fit", tmp_path / "fit.json")
        assert code == 0
        assert err.count(said) == 1
    padded = write(tmp_path / "padded.csv", IDENTIFIERS["leading zeros"][0])
    code, out, err = run("fit", padded, "--columns", "key", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["columns"][0]["lmbda"] == pk.fit(np.arange(N, dtype=float)).lmbda[0]


def test_a_table_of_identifiers_alone_is_refused(run, tmp_path):
    (tmp_path / "x.csv").write_text("word,key\n" + "".join(f"a,{i:05d}\n" for i in range(9)))
    code, out, err = run("fit", tmp_path / "x.csv")
    assert (code, out) == (2, "")
    assert err == (
        "powerkern fit: x.csv has no column of numbers: column 'key' holds whole numbers with leading zeros (line 2: "
        "00000), taken for identifiers; --columns fits it anyway\n"
    )


@pytest.mark.parametrize("command", ["fit", "summary", "outliers", "plot"])
def test_every_command_that_fits_says_what_it_leaves_out(run, tmp_path, command):
    path = write(tmp_path / "x.csv", IDENTIFIERS["long, all different"][0])
    if command == "plot":
        pytest.importorskip("matplotlib")
    words = ["-o", tmp_path / "x.png"] if command == "plot" else []
    code, out, err = run(command, path, *words)
    assert (code, err) == (0, "")
    assert out.count("left out, taken for identifiers") == 1
    if command == "fit":
        code, out, err = run("fit", path, "-o", "-")
        assert pk.PowerFit.from_json(out).column_names == ["x"]
        assert "left out, taken for identifiers" in err


def test_large_tables_leave_out_identifiers(run, tmp_path, monkeypatch):
    """A column is recognised as identifiers only after all blocks are read, since a later block may differ."""
    monkeypatch.setattr("powerkern._cli.fit.LARGE", 0)
    monkeypatch.setattr("powerkern._input.tables.text._CELLS_AT_ONCE", 20)
    for cells, is_left_out in (
        (IDENTIFIERS["long, all different"][0], True),
        (IDENTIFIERS["one leading zero"][0], True),
        (QUANTITIES["long, one repeated"], False),
        (QUANTITIES["some with points"], False),
    ):
        found = json.loads(run("fit", write(tmp_path / "x.csv", cells), "--json")[1])
        assert [each["column"] for each in found["left_out"]] == ["key"] * is_left_out


@pytest.mark.parametrize("type_", ["int64", "uint64", "Int64", "decimal"])
def test_identifiers_in_parquet_are_left_out(run, tmp_path, type_, monkeypatch):
    pd = pytest.importorskip("pandas")
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("powerkern._input.tables.parquet.CELLS", 30)
    whole = [2**60 + i for i in range(N)]
    if type_ == "decimal":
        key = pa.array([*whole[:-1], None], pa.decimal128(20, 0))
    elif type_ == "Int64":
        key = pa.array([*whole[:-1], None], pa.int64())
    else:
        key = pa.array(whole, getattr(pa, type_)())
    path, z = tmp_path / "x.parquet", tmp_path / "z.parquet"
    parquet.write_table(pa.table({"key": key, "x": X, "n": list(range(N))}), path)
    code, out, err = run("fit", path, "-o", tmp_path / "fit.json")
    assert (code, err) == (0, "")
    assert "'key': whole numbers beyond 2**53 (row 1: 1152921504606846977)" in out
    assert pk.load(tmp_path / "fit.json").column_names == ["x", "n"]
    assert run("transform", path, "--fit", tmp_path / "fit.json", "-o", z)[0] == 0
    assert parquet.read_table(z)["key"].to_pylist() == key.to_pylist()
    assert pd.read_parquet(z)["x"].tolist() == pk.fit(X).transform(X).tolist()
    code, _, err = run("fit", path, "--columns", "key,x")
    assert "column 'key' of x.parquet: whole numbers beyond 2**53 are rounded to 16 digits (row 1:" in err


def test_long_whole_floats_in_parquet_are_left_out(run, tmp_path):
    """Identifiers are left out even if pandas wrote them as floats because some are missing."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    key = [None, *(7_000_000.0 + 17 * i for i in range(N - 1))]
    parquet.write_table(pa.table({"key": key, "x": X}), tmp_path / "x.parquet")
    out = run("fit", tmp_path / "x.parquet")[1]
    assert "'key': long whole numbers, all different (row 1: 7000000)" in out


def test_identifiers_in_arrays_are_left_out(run, tmp_path):
    a = np.column_stack([2**60 + np.arange(N), np.arange(N) ** 2, np.arange(N) % 7])
    path, fit, z = tmp_path / "x.npy", tmp_path / "fit.json", tmp_path / "z.csv"
    np.save(path, a)
    code, out, err = run("fit", path, "-o", fit)
    assert (code, err) == (0, "")
    assert "'0': whole numbers beyond 2**53 (row 1: 1152921504606846977)" in out
    assert pk.load(fit).column_names == ["1", "2"]
    assert run("transform", path, "--fit", fit, "-o", z)[0] == 0
    assert first_column(z) == [str(value) for value in a[:, 0].tolist()]
    numbers = np.loadtxt(z, delimiter=",", skiprows=1, usecols=(1, 2))
    assert np.array_equal(numbers, pk.fit(a[:, 1:].astype(float)).transform(a[:, 1:].astype(float)))
    code, _, err = run("transform", path, "--fit", fit, "-o", tmp_path / "z.npy")
    assert code == 2
    assert ".npy has no place for the untouched columns (0); write .csv or .parquet" in err
    code, _, err = run("fit", path, "--columns", "0,1")
    assert "column '0' of x.npy: whole numbers beyond 2**53 are rounded to 16 digits (row 1:" in err
    np.save(path, a[:, :1])
    code, _, err = run("fit", path)
    assert code == 2
    assert "x.npy has no column of numbers: column '0' holds whole numbers beyond 2**53" in err


# --- choosing columns ---------------------------------------------------------------------------------


@pytest.fixture
def wide(tmp_path):
    path = tmp_path / "wide.csv"
    numbers = np.random.default_rng(1).lognormal(size=(N, 3))
    path.write_text("a,word,b,c\n" + "".join(f"{a!r},w,{b!r},{c!r}\n" for a, b, c in numbers.tolist()))
    return path, numbers


def test_columns_are_excluded_from_fits(run, wide):
    path, numbers = wide
    code, out, err = run("fit", path, "--exclude", "b,word", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert [each["column"] for each in found["columns"]] == ["a", "c"]
    assert [each["lmbda"] for each in found["columns"]] == pk.fit(numbers[:, [0, 2]]).lmbda.tolist()
    for words, message in [
        (["--exclude", "B"], "wide.csv has no column 'B'; did you mean 'b'?"),
        (["--exclude", "b", "--columns", "a,b"], "--columns and --exclude both name 'b'"),
        (["--exclude", "a,b,c"], "wide.csv has no column of numbers"),
    ]:
        code, out, err = run("fit", path, *words)
        assert (code, out) == (2, "")
        assert message in err


def test_a_fit_is_applied_to_chosen_columns(run, wide, tmp_path):
    path, numbers = wide
    fit = tmp_path / "fit.json"
    run("fit", path, "-o", fit)
    expected = pk.fit(numbers).transform(numbers)
    for words, positions in ((["--columns", "c,a"], [0, 2]), (["--exclude", "b"], [0, 2]), (["--columns", "b"], [1])):
        code, out, _ = run("transform", path, "--fit", fit, *words)
        assert code == 0
        rows = list(csv.reader(out.splitlines()))
        assert rows[0] == ["a", "word", "b", "c"]
        z = np.array([[float(row[j]) for j in (0, 2, 3)] for row in rows[1:]])
        for j in range(3):
            assert np.array_equal(z[:, j], (expected if j in positions else numbers)[:, j])
        outliers = json.loads(run("outliers", path, "--fit", fit, *words, "--json")[1])
        assert outliers["columns"] == len(positions)
    for words, message in [
        (["--columns", "d"], "fit.json has no column 'd'"),
        (["--exclude", "a,b,c"], "--exclude names every column of the fit; keep at least one"),
        (["--exclude", "a", "--columns", "a"], "--columns and --exclude both name 'a'"),
    ]:
        code, _, err = run("transform", path, "--fit", fit, *words)
        assert code == 2
        assert message in err


@pytest.mark.parametrize("kind", ["npy", "csv"])
def test_some_columns_of_a_table_without_names(run, tmp_path, kind):
    numbers = np.random.default_rng(1).lognormal(size=(N, 3))
    path, fit, header = tmp_path / f"x.{kind}", tmp_path / "fit.json", ["--no-header"] if kind == "csv" else []
    np.save(path, numbers) if kind == "npy" else np.savetxt(path, numbers, delimiter=",", fmt="%.17g")
    assert run("fit", path, *header, "--columns", "2,0", "-o", fit)[0] == 0
    code, out, err = run("transform", path, *header, "--fit", fit)
    assert (code, err) == (0, "")
    z = np.loadtxt(out.splitlines()[kind == "npy" :], delimiter=",")
    expected = numbers.copy()
    expected[:, [2, 0]] = pk.fit(numbers[:, [2, 0]]).transform(numbers[:, [2, 0]])
    assert np.array_equal(z, expected)
    run("fit", path, *header, "-o", fit)
    code, out, _ = run("transform", path, *header, "--fit", fit, "--exclude", "1")
    z = np.loadtxt(out.splitlines()[kind == "npy" :], delimiter=",")
    expected[:, [0, 2]] = pk.fit(numbers).transform(numbers)[:, [0, 2]]
    assert np.array_equal(z, expected)


def test_identifiers_may_be_labels_of_groups(run, tmp_path):
    cells = [str(2**60 + i % 4) for i in range(N)]
    path, fit, z = write(tmp_path / "x.csv", cells), tmp_path / "fit.json", tmp_path / "z.csv"
    code, out, err = run("fit", path, "--groups", "key", "-o", fit)
    assert (code, err) == (0, "")
    assert "left out" not in out
    assert list(pk.load(fit).groups) == sorted(set(cells))
    assert run("transform", path, "--fit", fit, "--groups", "key", "-o", z)[0] == 0
    assert first_column(z) == cells
    assert "leave them out" in run("transform", path, "--fit", fit, "--groups", "key", "--exclude", "x")[2]


@pytest.mark.parametrize("n", [1, 2, 100, 3000])
@pytest.mark.parametrize("repeats", [False, True])
def test_long_whole_numbers_are_identifiers_while_all_differ(n: int, repeats: bool) -> None:
    evidence = IdentifierEvidence("key")
    values = 5_000_000 + 7 * np.arange(n)
    evidence.add_values(values, 0)
    if repeats:
        evidence.add_values(values[n // 2 : n // 2 + 1], n)
    expected = f"long whole numbers, all different (row 0: {values[0]})" if n > 1 and not repeats else None
    assert evidence.reason() == expected
