"""The command line as a user sees it: real files, exit codes, and one sentence for invalid input."""

from __future__ import annotations

import gzip
import inspect
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import powerkern as pk
from powerkern._cli.reading import choose_by_name
from powerkern._input.tables import table as table_module
from powerkern._input.tables.table import BadInput, FileLayout, check_distinct

ROWS = 60


@pytest.fixture
def numbers() -> np.ndarray:
    """Two positive columns and one of both signs, with missing cells."""
    rng = np.random.default_rng(7)
    x = np.column_stack([rng.lognormal(size=ROWS), rng.gamma(3, size=ROWS), rng.standard_normal(ROWS) ** 3])
    x[4, 0] = x[7, 2] = np.nan
    return x


@pytest.fixture
def table(tmp_path: Path, numbers: np.ndarray) -> Path:
    """A CSV table with text and number columns, awkward names and every spelling of a missing value."""
    missing = {4: "NA", 7: " nan "}
    lines = ['id,income,"length, cm",note,z']
    for i, (a, b, c) in enumerate(numbers.tolist()):
        cells = [missing[i] if value != value else repr(value) for value in (a, b, c)]
        lines.append(f'007_{i},{cells[0]},{cells[1]},"said ""{i}"", twice",{cells[2]}')
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def fit_to_file(run, data: Path, *options: object) -> Path:
    """Fit `data`; write the fit to fit.json in the same folder."""
    path = data.parent / "fit.json"
    code, _, err = run("fit", data, "-o", path, *options)
    assert (code, err) == (0, "")
    return path


def cells(path: Path) -> list[list[str]]:
    import csv

    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def as_numbers(rows: list[list[str]], *columns: int) -> np.ndarray:
    return np.array([[float(row[c] or "nan") for c in columns] for row in rows[1:]])


# --- round trips -------------------------------------------------------------------------------------


def test_csv_round_trip_restores_the_table(run, table, numbers, tmp_path):
    fit_path = fit_to_file(run, table)
    z_path, back_path = tmp_path / "z.csv", tmp_path / "back.csv"
    assert run("transform", table, "--fit", fit_path, "-o", z_path) == (
        0,
        f"{ROWS} rows x 5 columns written to {z_path} (3 transformed, 2 passed through)\n",
        "",
    )
    assert run("inverse", z_path, "--fit", fit_path, "-o", back_path)[0] == 0

    before, z, back = cells(table), cells(z_path), cells(back_path)
    assert z[0] == before[0]
    for column in (0, 3):  # text passes through untouched
        assert [row[column] for row in z] == [row[column] for row in before]
    expected = pk.fit(numbers)
    np.testing.assert_array_equal(as_numbers(z, 1, 2, 4), expected.transform(numbers))
    np.testing.assert_allclose(as_numbers(back, 1, 2, 4), numbers, rtol=1e-12, atol=1e-14)
    assert z[5][1] == ""  # missing stays missing


def test_fit_json_is_a_powerfit_with_column_names(run, table, numbers):
    fit = pk.PowerFit.from_json(fit_to_file(run, table).read_text())
    np.testing.assert_array_equal(fit.lmbda, pk.fit(numbers).lmbda)
    assert list(fit.column_names) == ["income", "length, cm", "z"]


def test_columns_are_matched_by_name(run, table, numbers, tmp_path):
    fit_path = fit_to_file(run, table)
    other = tmp_path / "other.csv"
    np.savetxt(other, numbers[:, [2, 0, 1, 1]], delimiter=",", header='z,income,"length, cm",extra', comments="")
    code, out, _ = run("transform", other, "--fit", fit_path)
    assert code == 0
    (tmp_path / "z.csv").write_text(out)
    z = as_numbers(cells(tmp_path / "z.csv"), 1, 2, 0)
    np.testing.assert_allclose(z, pk.fit(numbers).transform(numbers), rtol=1e-12, atol=1e-14)
    # a column that is not in the fit is copied digit for digit
    assert [row[3] for row in cells(tmp_path / "z.csv")] == [row[3] for row in cells(other)]


def test_a_column_missing_throughout_can_be_transformed(run, table, tmp_path):
    fit_path = fit_to_file(run, table)
    other = tmp_path / "other.csv"
    other.write_text('z,income,"length, cm"\n1,,2\n-1,NA,3\n')
    code, out, _ = run("transform", other, "--fit", fit_path)
    assert code == 0
    assert [line.split(",")[1] for line in out.splitlines()] == ["income", "", ""]


@pytest.mark.parametrize("name", ["table.tsv", "table.csv.gz", "semicolon.csv"])
def test_tsv_gzip_and_semicolon_tables_round_trip(run, tmp_path, numbers, name):
    path = tmp_path / name
    delimiter = {"table.tsv": "\t", "semicolon.csv": ";"}.get(name, ",")
    text = "\ufeff" + delimiter.join("abc") + "\r\n"
    text += "".join(delimiter.join(map(repr, row)) + "\r\n" for row in numbers.tolist())
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    options = ["--delimiter", ";"] if delimiter == ";" else []
    fit_path = fit_to_file(run, path, *options)
    assert list(pk.PowerFit.from_json(fit_path.read_text()).column_names) == ["a", "b", "c"]
    out_path = tmp_path / f"out-{name}"
    assert run("transform", path, "--fit", fit_path, "-o", out_path, *options)[0] == 0
    code, report, _ = run("inverse", out_path, "--fit", fit_path, "-o", tmp_path / "back.csv", "--json", *options)
    assert code == 0
    assert json.loads(report) == {"rows": ROWS, "columns": ["a", "b", "c"], "output": str(tmp_path / "back.csv")}


@pytest.mark.parametrize("shape", ["matrix", "vector"])
@pytest.mark.parametrize("dtype", ["f8", "f4", ">f8"])
def test_npy_round_trip_restores_the_array(run, tmp_path, numbers, shape, dtype):
    x = (numbers if shape == "matrix" else numbers[:, 0]).astype(dtype)
    path, z_path, back_path = tmp_path / "x.npy", tmp_path / "z.npy", tmp_path / "back.npy"
    np.save(path, x)
    fit_path = fit_to_file(run, path)
    assert run("transform", path, "--fit", fit_path, "-o", z_path)[0] == 0
    assert run("inverse", z_path, "--fit", fit_path, "-o", back_path)[0] == 0
    z = np.load(z_path)
    assert z.shape == x.shape
    np.testing.assert_array_equal(z, pk.fit(x).transform(x))
    np.testing.assert_allclose(
        np.load(back_path), x, rtol=1e-4 if dtype == "f4" else 1e-12, atol=1e-6 if dtype == "f4" else 1e-14
    )


def test_npy_columns_are_chosen_by_position(run, tmp_path, numbers):
    np.save(tmp_path / "x.npy", numbers)
    code, out, _ = run("fit", tmp_path / "x.npy", "--columns", "2,0", "--json")
    assert code == 0
    assert [(record["column"], record["lmbda"]) for record in json.loads(out)["columns"]] == list(
        zip(["2", "0"], pk.fit(numbers[:, [2, 0]]).lmbda.tolist(), strict=True)
    )


def test_parquet_round_trip_restores_the_table(run, tmp_path, numbers):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    x = pa.table(
        {
            "id": [f"row {i}" for i in range(ROWS)],
            "a": pa.array(numbers[:, 0], from_pandas=True),
            "b": pa.array((100 * numbers[:, 1]).astype("i4")),
            "flag": [i % 2 == 0 for i in range(ROWS)],
        }
    )
    path, z_path, back_path = tmp_path / "x.parquet", tmp_path / "z.parquet", tmp_path / "back.parquet"
    parquet.write_table(x, path)
    fit_path = fit_to_file(run, path)
    assert run("transform", path, "--fit", fit_path, "-o", z_path)[0] == 0
    assert run("inverse", z_path, "--fit", fit_path, "-o", back_path)[0] == 0
    z, back = parquet.read_table(z_path), parquet.read_table(back_path)
    assert z.column_names == x.column_names
    for name in ("id", "flag"):
        assert z[name] == back[name] == x[name]
    assert z["a"].null_count == x["a"].null_count == 1
    both = np.column_stack([numbers[:, 0], x["b"].to_numpy()])
    np.testing.assert_array_equal(np.column_stack([z["a"], z["b"]]), pk.fit(both).transform(both))
    np.testing.assert_allclose(np.column_stack([back["a"], back["b"]]), both, rtol=1e-12, atol=1e-14)


def test_parquet_keeps_the_index_of_pandas(run, tmp_path, numbers):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": numbers[:, 1]}, index=np.arange(ROWS) * 10)
    frame.to_parquet(tmp_path / "x.parquet")
    fit_path = fit_to_file(run, tmp_path / "x.parquet")
    assert run("transform", tmp_path / "x.parquet", "--fit", fit_path, "-o", tmp_path / "z.parquet")[0] == 0
    z = pd.read_parquet(tmp_path / "z.parquet")
    assert z.index.tolist() == frame.index.tolist()
    np.testing.assert_array_equal(z["a"], pk.fit(numbers[:, 1]).transform(numbers[:, 1]))


def test_formats_may_be_mixed(run, table, tmp_path, numbers):
    pytest.importorskip("pyarrow")
    fit_path = fit_to_file(run, table)
    z_path, back_path, npy_path = tmp_path / "z.pq", tmp_path / "back.csv", tmp_path / "x.npy"
    assert run("transform", table, "--fit", fit_path, "-o", z_path)[0] == 0
    assert run("inverse", z_path, "--fit", fit_path, "-o", back_path)[0] == 0
    before, back = cells(table), cells(back_path)
    assert [row[3] for row in back] == [row[3] for row in before]
    np.testing.assert_allclose(as_numbers(back, 1, 2, 4), numbers, rtol=1e-12, atol=1e-14)
    # an array has no names: its columns are matched by position
    np.save(npy_path, numbers)
    code, out, _ = run("transform", npy_path, "--fit", fit_path)
    assert code == 0
    assert out.splitlines()[0] == "0,1,2"


# --- what is printed ---------------------------------------------------------------------------------


def test_fit_prints_a_table(run, table, numbers):
    code, out, err = run("fit", table, "--family", "yeo-johnson", "--n-threads", 1)
    assert (code, err) == (0, "")
    head, _, *rows, _, left_out = out.splitlines()
    assert head.split() == ["column", "family", "lambda", "mean", "sd", "n", "status"]
    fit = pk.fit(numbers)
    for j, (row, name) in enumerate(zip(rows, ["income", "length, cm", "z"], strict=True)):
        words = row.removeprefix(name).split()
        assert words[:3] == ["yeo-johnson", f"{fit.lmbda[j]:.6g}", f"{fit.loc[j]:.6g}"]
        assert words[4] == str(ROWS - int(np.isnan(numbers[:, j]).sum()))
        assert " ".join(words[5:]) == fit.status_text[j]
    assert left_out == "left out, not numeric: id, note"


def test_fit_json_for_programs(run, table, numbers):
    code, out, _ = run(
        "fit", table, "--json", "--no-standardize", "--columns", 'income,"length, cm"', "--family", "box-cox"
    )
    report = json.loads(out)
    fit = pk.fit(numbers[:, :2], family="box-cox", standardize=False)
    assert code == 0
    assert (report["rows"], report["family"], report["estimator"]) == (ROWS, "box-cox", "mle")
    assert [record["lmbda"] for record in report["columns"]] == fit.lmbda.tolist()
    assert [record["column"] for record in report["columns"]] == ["income", "length, cm"]


def test_fit_takes_the_better_family_robustly(run, table, numbers):
    code, out, _ = run("fit", table, "--json", "--family", "best", "--estimator", "robust")
    records = json.loads(out)["columns"]
    fit = pk.fit(numbers, "best", "robust")
    assert code == 0
    assert [record["family"] for record in records] == fit.families
    assert [record["lmbda"] for record in records] == fit.lmbda.tolist()
    assert [record["n_kept"] for record in records] == fit.n_kept.tolist()


def test_a_constant_column_warns_and_the_others_are_fitted(run, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,5\n2,5\n4,5\n")
    code, out, err = run("fit", tmp_path / "x.csv", "--json")
    first, second = json.loads(out)["columns"]
    assert code == 0
    assert "fewer than two distinct values" in second["status"]
    assert second["status"] != first["status"]
    assert err.startswith("powerkern: warning: ")
    assert err.count("\n") == 1
    assert "'b'" in err


def test_numeric_header_is_noted(run, tmp_path):
    (tmp_path / "x.csv").write_text("400,401\n1,5\n2,7\n4,5\n")
    code, _, err = run("fit", tmp_path / "x.csv")
    assert code == 0
    assert err == (
        "powerkern: warning: the first line of x.csv holds only numbers; it is read as the column names; pass "
        "--no-header if it is data\n"
    )


def test_the_progress_bar_goes_to_standard_error(run, table):
    pytest.importorskip("tqdm")
    code, out, _ = run("fit", table, "--progress", "--json")
    assert code == 0
    json.loads(out)  # the bar goes to standard error


def test_summary_prints_the_summary_of_the_fit(run, table, numbers):
    code, out, err = run("summary", table, "--family", "yeo-johnson", "--level", 0.9)
    assert (code, err) == (0, "")
    names = ["income", "length, cm", "z"]
    fit = pk.fit(numbers, column_names=names)
    assert out.startswith(f"{fit.summary(level=0.9)}\n")
    assert out.endswith("left out, not numeric: id, note\n")
    code, out, _ = run("summary", table, "--json")
    said = json.loads(out)
    assert (code, said["rows"], said["estimator"], said["level"]) == (0, ROWS, "mle", 0.95)
    for name, entry in fit.summary().to_dict().items():
        assert [column[name] for column in said["columns"]] == entry.tolist()


def test_summary_of_an_array_names_columns_by_position(run, tmp_path, numbers):
    np.save(tmp_path / "x.npy", numbers)
    code, out, _ = run("summary", tmp_path / "x.npy", "--columns", "2,0")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[2:5]] == ["column", "2", "0"]
    code, out, _ = run("summary", tmp_path / "x.npy", "--estimator", "robust", "--json")
    assert code == 0
    first = json.loads(out)["columns"][0]
    assert first["low"] < first["lmbda"] < first["high"]


def test_summary_of_many_columns_is_whole(run, tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(12, 50)))
    assert "\n49 " in run("summary", tmp_path / "x.npy")[1]


def test_a_column_that_is_not_fitted_has_no_tests(run, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,3\n2,3\n4,3\n")
    code, out, err = run("summary", tmp_path / "x.csv", "--json")
    assert code == 0
    assert "not fitted" in err
    assert json.loads(out)["columns"][1]["p_0"] is None


def test_help_names_the_commands(run):
    code, out, _ = run("--help")
    assert code == 0
    for command in ("demo", "fit", "summary", "transform", "inverse"):
        assert command in out


def test_version_is_printed(run):
    assert run("--version") == (0, f"powerkern {pk.__version__}\n", "")


# --- bad input ---------------------------------------------------------------------------------------

BAD_TABLES = {
    "empty.csv": ("", "is empty"),
    "header.csv": ("a,b\n", "no rows"),
    "ragged.csv": ("a,b\n1,2\n3\n", "line 3: 1 cell where the header has 2"),
    "twice.csv": ("a,a\n1,2\n3,4\n", "more than one column named 'a'"),
    "text.csv": ("a,b\nx,y\nz,w\n", "no column of numbers"),
    "missing.csv": ("a,b\nNA,\n,nan\n", "no column of numbers"),
    "caret.csv": ("a^b\n1^2\n3^4\n", "--delimiter"),
    "quote.csv": ('a,b\n1,"2\n3,4\n', "line 2: a quotation mark is opened in this row and never closed"),
    "latin.csv": (b"a,b\n1,\xe9\n", "not UTF-8"),
    "damaged.csv.gz": (b"\x1f\x8b\x08rubbish", "cannot read"),
    "inf.csv": ("a,b\n1,2\n3,inf\n5,6\n", "'b'"),
    "binary.npy": (b"not an array", "not a .npy file"),
    "truncated.npy": (
        b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }",
        "not a .npy file",
    ),
    "folder": (None, "is a folder"),
    "folder.csv": (None, "is a folder"),
    "data.xlsx": (b"PK", "is a spreadsheet: save the sheet as .csv"),
    "absent.csv": (..., "No such file"),
    "absent.npy": (..., "No such file"),
}


def one_sentence(err: str, expected: str) -> None:
    assert err.startswith("powerkern")
    assert err.endswith("\n")
    assert err.count("\n") == 1, err
    assert expected in err


@pytest.mark.parametrize("name", BAD_TABLES)
def test_invalid_tables_are_refused(run, tmp_path, name):
    content, expected = BAD_TABLES[name]
    path = tmp_path / name
    if content is None:
        path.mkdir()
    elif content is not ...:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    fit_path = tmp_path / "fit.json"
    code, out, err = run("fit", path, "-o", fit_path)
    assert (code, out) == (2, "")
    one_sentence(err, expected)
    assert not fit_path.exists()


@pytest.mark.parametrize("array", [np.zeros((2, 2, 2)), np.array(["a"]), np.array([1j]), np.array([{}]), np.array(3.0)])
def test_invalid_arrays_are_refused(run, tmp_path, array):
    np.save(tmp_path / "x.npy", array)
    code, out, err = run("fit", tmp_path / "x.npy")
    assert (code, out) == (2, "")
    one_sentence(err, "x.npy")


@pytest.mark.parametrize("name", ["rubbish.parquet", "absent.parquet", "text.parquet", "twice.parquet", "empty.pq"])
def test_invalid_parquet_files_are_refused(run, tmp_path, name):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / name
    if name == "rubbish.parquet":
        path.write_bytes(b"rubbish")
    elif name == "text.parquet":
        parquet.write_table(pa.table({"a": ["x", "y"]}), path)
    elif name == "twice.parquet":
        parquet.write_table(pa.Table.from_arrays([pa.array([1.0, 2.0])] * 2, names=["a", "a"]), path)
    elif name == "empty.pq":
        parquet.write_table(pa.table({"a": pa.array([], pa.float64())}), path)
    code, out, err = run("fit", path)
    assert (code, out) == (2, "")
    one_sentence(err, name)


def test_a_requested_parquet_column_of_text_is_refused(run, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"a": [1.0, 2.0, 4.0], "name": ["x", "y", "z"]}), path)
    assert run("fit", path)[0] == 0
    code, out, err = run("fit", path, "--columns", "a,name")
    assert (code, out) == (2, "")
    one_sentence(err, "x.parquet, column 'name' holds string, not numbers: select others")


def test_parquet_without_pyarrow_says_what_to_install(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    code, _, err = run("fit", tmp_path / "x.parquet")
    assert code == 2
    one_sentence(err, "pip install pyarrow")


def test_box_cox_names_column_and_row(run, tmp_path):
    (tmp_path / "x.csv").write_text("id,income,age\nx,1,3\ny,2,-4\nz,3,5\n")
    code, out, err = run("fit", tmp_path / "x.csv", "--family", "box-cox")
    assert (code, out) == (2, "")
    one_sentence(err, "x.csv, column 'age', line 3: the value is -4.0")


def test_errors_give_line_numbers_of_the_text_file(run, tmp_path):
    """Line numbers include blank lines and the line breaks in quoted cells."""
    (tmp_path / "x.csv").write_text('note,a\n"one\ntwo",1\n\nx,2\n\n\ny,inf\nz,4\n')
    code, out, err = run("fit", tmp_path / "x.csv")
    assert (code, out) == (2, "")
    one_sentence(err, "x.csv, column 'a', line 8: the value is inf")
    (tmp_path / "good.csv").write_text("a\n1\n2\n4\n")
    fit_path = fit_to_file(run, tmp_path / "good.csv", "--family", "box-cox")
    (tmp_path / "z.csv").write_text('a,note\n1,"one\ntwo"\n\n-2,x\n')
    code, out, err = run("transform", tmp_path / "z.csv", "--fit", fit_path)
    assert (code, out) == (2, "")
    one_sentence(err, "z.csv, column 'a', line 5: the value is -2.0")


def test_rows_of_an_array_are_counted_from_0(run, tmp_path):
    np.save(tmp_path / "x.npy", [[1.0, 2.0, 3.0], [4.0, np.inf, 6.0]])
    for words in ([], ["--columns", "2,1"]):
        code, out, err = run("fit", tmp_path / "x.npy", *words)
        assert (code, out) == (2, "")
        one_sentence(err, "x.npy, column 1, row 1: the value is inf")


BAD_WORDS = {
    "no command": ([], "required"),
    "unknown command": (["fitt"], "invalid choice"),
    "no file": (["fit"], "required"),
    "unknown option": (["fit", "TABLE", "--lamda", "1"], "unrecognized"),
    "unknown family": (["fit", "TABLE", "--family", "log"], "invalid choice"),
    "unknown estimator": (["fit", "TABLE", "--estimator", "guess"], "guess"),
    "unknown column": (["fit", "TABLE", "--columns", "income,nope"], "no column 'nope'"),
    "text column": (["fit", "TABLE", "--columns", "id"], "column 'id', line 2: '007_0' is not a number"),
    "no threads": (["fit", "TABLE", "--n-threads", "0"], "positive whole number"),
    "threads in words": (["fit", "TABLE", "--n-threads", "two"], "positive whole number"),
    "long delimiter": (["fit", "TABLE", "--delimiter", ";;"], "one character"),
    "output in no folder": (["fit", "TABLE", "-o", "FOLDER/nowhere/fit.json"], "does not exist"),
    "output is a folder": (["fit", "TABLE", "-o", "FOLDER"], "is a folder"),
    "no fit": (["transform", "TABLE"], "--fit"),
    "absent fit": (["transform", "TABLE", "--fit", "FOLDER/nope.json"], "No such file"),
    "fit is a table": (["transform", "TABLE", "--fit", "TABLE"], "not a fit"),
    "fit is other json": (["inverse", "TABLE", "--fit", "OTHER"], "not a fit"),
    "fit is a list": (["inverse", "TABLE", "--fit", "LIST"], "not a fit"),
    "output of no kind": (["transform", "TABLE", "--fit", "FIT", "-o", "FOLDER/z.doc"], "an unknown file type"),
    "text into npy": (["transform", "TABLE", "--fit", "FIT", "-o", "FOLDER/z.npy"], "no place for the untouched"),
    "json without output": (["transform", "TABLE", "--fit", "FIT", "--json"], "-o"),
    "table lacks a column": (["transform", "SHORT", "--fit", "FIT"], "no column"),
    "text where numbers were": (["transform", "WORDS", "--fit", "FIT"], "column 'z', line 3: 'high' is not a number"),
    "array of another width": (["transform", "ARRAY", "--fit", "FIT"], "5 columns"),
    "out of range": (["inverse", "OUTSIDE", "--fit", "FIT", "--out-of-range", "raise"], "column 'income', line"),
    "its remedy": (["inverse", "OUTSIDE", "--fit", "FIT", "--out-of-range", "raise"], "or --out-of-range nan"),
    "rows of the demo": (["demo", "--rows", "many"], "positive whole number"),
    "few rows of the demo": (["demo", "--rows", "1", "--columns", "1"], "'1' is too few rows; use at least 10"),
    "demo into a file": (["demo", "--rows", "50", "--columns", "2", "--save", "TABLE"], "table.csv"),
}


@pytest.mark.parametrize("case", BAD_WORDS)
def test_invalid_words_are_refused(run, table, tmp_path, case):
    words, expected = BAD_WORDS[case]
    files = {"TABLE": table, "FOLDER": tmp_path}
    if "FIT" in words:
        files["FIT"] = fit_to_file(run, table)
    for key, text in {
        "OTHER": '{"family": "yeo-johnson"}',
        "LIST": "[1, 2]",
        "SHORT": "income,z\n1,2\n3,4\n",
        "WORDS": 'income,"length, cm",z\n1,2,3\n3,4,high\n',
        "OUTSIDE": 'income,"length, cm",z\n1e9,-1e9,1e9\n-1e9,1e9,-1e9\n',
    }.items():
        files[key] = tmp_path / f"{key.lower()}.{'json' if key in ('OTHER', 'LIST') else 'csv'}"
        files[key].write_text(text)
    files["ARRAY"] = tmp_path / "array.npy"
    np.save(files["ARRAY"], np.ones((3, 5)))

    def name(word: str) -> str:
        head, *tail = word.split("/")
        return "/".join([str(files.get(head, head)), *tail])

    code, out, err = run(*map(name, words))
    assert (code, out) == (2, "")
    one_sentence(err, expected)


# --- .npy headers that announce what is not there -----------------------------------------------------


def npy(shape: str, descr: str = "'<f8'", rest: bytes = b"", extra: str = "") -> bytes:
    head = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, {extra}}}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + rest


HOSTILE = {
    "no rows of many columns": npy("(0, 1000000000000)"),
    "many rows of no columns": npy("(1000000000000, 0)"),
    "negative rows": npy("(-5, 2)", rest=bytes(80)),
    "negative columns": npy("(5, -2)", rest=bytes(80)),
    "both negative": npy("(-5, -2)", rest=bytes(80)),
    "23 digits": npy("(10000000000000000000000, 2)", rest=bytes(80)),
    "23 digits by 0": npy("(10000000000000000000000, 0)"),
    "product beyond 64 bits": npy("(4294967296, 4294967296)", rest=bytes(80)),
    "product that wraps to 0": npy("(9223372036854775808, 2)", rest=bytes(80)),
    "more than there is": npy("(3, 2)", rest=bytes(47)),
    "a vector of more than there is": npy("(7,)", rest=bytes(48)),
    "a cube": npy("(1, 2, 3)", rest=bytes(48)),
    "shape in words": npy("'many'", rest=bytes(48)),
    "fractional shape": npy("(1.5, 2)", rest=bytes(48)),
    "unknown type": npy("(3, 2)", descr="'<q9'", rest=bytes(48)),
    "type of a million": npy("(3, 2)", descr="('<f8', (1000000,))", rest=bytes(48)),
    "objects": npy("(3, 2)", descr="'|O'", rest=bytes(48)),
    "void": npy("(3, 2)", descr="'|V8'", rest=bytes(48)),
    "extra key": npy("(3, 2)", rest=bytes(48), extra="'more': 1"),
    "brackets": npy("(" * 3000, rest=bytes(48)),
    "unfinished": npy("(3, 2", rest=bytes(48)),
    "code": npy("__import__('os').getcwd()", rest=bytes(48)),
    "True for 1": npy("(True, 2)", rest=bytes(16)),
    "an empty archive": b"PK\x05\x06" + bytes(18),
    "version 9": npy("(3, 2)", rest=bytes(48)).replace(b"\x01\x00", b"\x09\x00", 1),
    "only the magic": b"\x93NUMPY\x01\x00",
    "length beyond the end": b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}",
    "an archive": b"PK\x03\x04" + bytes(60),
    "empty": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_false_npy_headers_are_refused(run, tmp_path, name):
    path = tmp_path / "x.npy"
    path.write_bytes(HOSTILE[name])
    code, out, err = run("fit", path)
    assert (code, out) == (2, "")
    one_sentence(err, "x.npy")


@pytest.mark.parametrize("order", ["C", "F"])
def test_trailing_bytes_of_npy_files_are_ignored(run, tmp_path, numbers, order):
    np.save(tmp_path / "x.npy", np.asarray(numbers, order=order))
    with (tmp_path / "x.npy").open("ab") as file:
        file.write(bytes(24))
    code, out, _ = run("fit", tmp_path / "x.npy", "--json")
    assert code == 0
    assert [record["lmbda"] for record in json.loads(out)["columns"]] == pk.fit(numbers).lmbda.tolist()


# --- many columns -------------------------------------------------------------------------------------


class Counted(str):
    """A name whose class counts how often its instances are compared or hashed."""

    count = 0

    def __eq__(self, other: object) -> bool:
        Counted.count += 1
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        Counted.count += 1
        return str.__hash__(self)


def operations(work, p: int) -> int:
    names = [Counted(f"column {j}") for j in range(p)]
    Counted.count = 0
    work(names)
    return Counted.count


def layout_of(names):
    return FileLayout(tuple(names), True, tuple(range(0, len(names), 2)))


def refused(work):
    with pytest.raises(BadInput):
        work()


NAME_WORK = {
    "header": lambda names: check_distinct(names, "x.csv"),
    "columns by name": lambda names: choose_by_name(names[::-1], Path("x.csv"))(names, True),
    "twice the same name": lambda names: refused(lambda: check_distinct([*names, names[-1]], "x.csv")),
    "missing name": lambda names: refused(lambda: choose_by_name([*names, "no"], Path("x.csv"))(names, True)),
}


@pytest.mark.parametrize("name", NAME_WORK)
def test_names_take_work_linear_in_their_number(name):
    few, many = (operations(NAME_WORK[name], p) for p in (100, 800))
    assert 0 < many <= 9 * few


def test_listing_untouched_columns_takes_linear_time(monkeypatch):
    """`other_names` builds one set of positions, not one for each column."""
    sets = []
    monkeypatch.setattr(table_module, "set", lambda *of: sets.append(of) or set(*of), raising=False)
    layout = layout_of([f"column {j}" for j in range(50)])
    assert layout.other_names == [f"column {j}" for j in range(1, 50, 2)]
    assert len(sets) <= 1


def test_every_attribute_of_a_fit_is_read_once(run, tmp_path, monkeypatch):
    """Attributes are computed for all columns at once. Reading one for each column would take quadratic time."""
    taken = {}

    def counted(name, attribute):
        def wrapper(fit):
            taken[name] = taken.get(name, 0) + 1
            return attribute.__get__(fit, pk.PowerFit)

        return wrapper

    for name in ("families", "status_text", "nll", "n_iter"):  # other attributes are arrays, which are computed once
        monkeypatch.setattr(pk.PowerFit, name, property(counted(name, inspect.getattr_static(pk.PowerFit, name))))
    counts = []
    for p in (3, 30):
        np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(5, p)))
        taken.clear()
        assert run("fit", tmp_path / "x.npy")[0] == 0
        counts.append(dict(taken))
    assert counts[0] == counts[1]


# --- output that cannot be written --------------------------------------------------------------------

needs_dev_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")


@needs_dev_full
@pytest.mark.parametrize("name", ["z.csv", "z.tsv", "z.csv.gz", "z.npy", "z.parquet"])
def test_a_full_disk_is_an_error(run, tmp_path, numbers, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow.parquet")
    data = tmp_path / "x.npy"
    np.save(data, numbers)
    fit_path = fit_to_file(run, data)
    (tmp_path / name).symlink_to("/dev/full")
    code, out, err = run("transform", data, "--fit", fit_path, "-o", tmp_path / name)
    assert (code, out) == (2, "")
    one_sentence(err, f"cannot write {tmp_path / name}: ")


@needs_dev_full
def test_a_full_disk_is_an_error_for_a_fit(run, table):
    code, out, err = run("fit", table, "-o", "/dev/full")
    assert (code, out) == (2, "")
    one_sentence(err, "cannot write /dev/full: No space left on device")


def process(*words: object, **streams) -> subprocess.CompletedProcess:
    """Run the command as a process with buffered output, Python's default."""
    command = [sys.executable, "-m", "powerkern", *map(str, words)]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    streams = {"stderr": subprocess.PIPE, **streams}
    return subprocess.run(command, text=True, check=False, timeout=120, env=environment, **streams)


@needs_dev_full
@pytest.mark.parametrize(
    "words",
    [
        "--help",
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("fit", "fit --json", "transform", "--version")),
    ],
)
def test_a_full_disk_behind_standard_output_is_an_error(run, table, words):
    command, *options = words.split()
    if command == "transform":
        options += ["--fit", fit_to_file(run, table)]
    files = [] if command.startswith("-") else [table]
    with open("/dev/full", "w") as full:
        ended = process(command, *files, *options, stdout=full)
    assert ended.returncode == 1
    one_sentence(ended.stderr, "powerkern: cannot write to standard output: No space left on device")


@needs_dev_full
def test_a_full_disk_behind_standard_error_keeps_the_exit_code(tmp_path):
    with open("/dev/full", "w") as full:
        assert process("fit", tmp_path / "absent.csv", stdout=subprocess.DEVNULL, stderr=full).returncode == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", ["fit", *(pytest.param(each, marks=pytest.mark.slow) for each in ("transform", "--help"))]
)
def test_a_closed_pipe_is_exit_code_1_without_traceback(run, table, words):
    """The reading end of the pipe is closed before the first byte is written."""
    options = ["--fit", fit_to_file(run, table)] if words == "transform" else []
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as gone:
        ended = process(words, *([] if words == "--help" else [table]), *options, stdout=gone)
    assert (ended.returncode, ended.stderr) == (1, "")


# --- as processes ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_module_and_script_give_the_same_output(table, tmp_path):
    by_module = subprocess.run(
        [sys.executable, "-m", "powerkern", "fit", table, "--json"], capture_output=True, text=True, check=True
    )
    assert json.loads(by_module.stdout)["rows"] == ROWS
    script = Path(sys.executable).with_name("powerkern")
    if script.exists():  # absent if the package is not installed
        by_script = subprocess.run([script, "fit", table, "--json"], capture_output=True, text=True, check=True)
        assert by_script.stdout == by_module.stdout
    failed = subprocess.run(
        [sys.executable, "-m", "powerkern", "fit", tmp_path / "no.csv"], capture_output=True, text=True, check=False
    )
    assert failed.returncode == 2
    one_sentence(failed.stderr, "No such file")


def test_a_closed_reader_is_not_an_error(table, tmp_path):
    wide = tmp_path / "wide.csv"
    np.savetxt(
        wide,
        np.random.default_rng(1).normal(size=(9, 3000)),
        delimiter=",",
        header=",".join(map(str, range(3000))),
        comments="x",
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "powerkern", "fit", wide], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == 1


@pytest.mark.slow
@pytest.mark.parametrize("cache", ["warm", "cold"])
def test_ctrl_c_ends_with_exit_code_130(tmp_path, cache):
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    if cache == "cold":  # interrupts the compiler, which swallows exceptions in its callbacks
        environment["NUMBA_CACHE_DIR"] = str(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-m", "powerkern", "demo", "--rows", "200000", "--columns", "200"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    process.stdout.readline()  # wait until the command has started
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "powerkern demo: interrupted\n"


def test_ctrl_c_in_a_text_that_is_executed(tmp_path):
    # numba and dataclasses `exec` generated code; CPython keeps the interruption pending until the next `exec`
    (tmp_path / "interrupted.py").write_text("""
import sys
import powerkern.__main__, powerkern._cli.info
def interrupt(args):
    exec("raise KeyboardInterrupt")
powerkern._cli.info.run = interrupt
sys.exit(powerkern.__main__.main(["info"]))
""")
    # CPython checks for a pending interruption only at the end of a module that is run by -m
    done = subprocess.run([sys.executable, "-m", "interrupted"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "powerkern info: interrupted\n")


# --- demo --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_demo_reports_both_families_and_writes_nothing(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("demo", "--rows", 2000, "--columns", 60, "--json")
    assert (code, err) == (0, "")
    assert list(tmp_path.iterdir()) == []  # writes nothing unless asked
    report = json.loads(out)
    assert [f["family"] for f in report["families"]] == ["box-cox", "yeo-johnson"]
    for figures in report["families"]:
        # the root mean square of 60 standard normal values (60 columns) lies outside these bounds once in 10,000 runs
        assert 0.65 < figures["rms_error"] < 1.4
        assert figures["coverage"] > 0.8
        assert figures["round_trip_error"] < 1e-9
        assert any(peer.startswith("scipy") for peer in figures["peers"])


@pytest.mark.slow
def test_demo_saves_when_asked(run, tmp_path):
    folder = tmp_path / "new" / "folder"
    code, out, _ = run("demo", "--rows", 300, "--columns", 4, "--save", folder)
    assert code == 0
    assert "scipy" in out
    for family in ("box-cox", "yeo-johnson"):
        fit = pk.PowerFit.from_json((folder / f"{family}.json").read_text())
        np.testing.assert_array_equal(fit.lmbda, pk.fit(np.load(folder / f"{family}.npy"), family=family).lmbda)


def test_demo_simulates_the_same_data_unless_asked(run, tmp_path):
    """The seed is 1 by default, as the help says."""
    for name, words in {"plain": [], "one": ["--seed", "1"], "two": ["--seed", "2"]}.items():
        assert run("demo", "--rows", 20, "--columns", 1, "--json", *words, "--save", tmp_path / name)[0] == 0
    plain, one, two = (np.load(tmp_path / name / "box-cox.npy") for name in ("plain", "one", "two"))
    assert np.array_equal(plain, one)
    assert not np.array_equal(plain, two)


@pytest.mark.parametrize("level", ["0", "1", "-0.1", "0.9,0.95", "x"])
def test_levels_that_are_no_probabilities_are_refused(run, table, level):
    code, _, err = run("summary", table, f"--level={level}")
    assert code == 2
    assert "is not between 0 and 1" in err or "is not a number" in err


def test_the_version_is_printed(run):
    assert run("--version") == (0, f"powerkern {pk.__version__}\n", "")


@pytest.mark.parametrize("ending", [".npy", ".csv", ".parquet"])
@pytest.mark.parametrize("p", [2, 3])
@pytest.mark.parametrize("in_blocks", [False, True], ids=["whole", "in blocks"])
def test_columns_fitted_in_another_order_are_transformed_in_their_places(
    run, tmp_path, monkeypatch, ending, p, in_blocks
):
    """A fit of all columns in another order transforms each column with its own lambda, also without a header."""
    X = np.random.default_rng(0).lognormal(sigma=np.array([0.5, 1.5, 1.0])[:p], size=(40, p))
    path, words = tmp_path / f"x{ending}", ()
    if in_blocks:
        monkeypatch.setattr("powerkern._cli.fit.LARGE", 0)
    if ending == ".npy":
        np.save(path, X)
    elif ending == ".csv":
        np.savetxt(path, X, delimiter=",", fmt="%.17g")
        words = ("--no-header",)
    else:
        pytest.importorskip("pyarrow")
        pd = pytest.importorskip("pandas")
        pd.DataFrame(X, columns=[str(j) for j in range(p)]).to_parquet(path)
    order = "1,0" if p == 2 else "2,0,1"
    assert run("fit", path, *words, "--columns", order, "-o", tmp_path / "fit.json")[0] == 0
    z, back = tmp_path / f"z{ending}", tmp_path / f"back{ending}"
    for command, source, target in (("transform", path, z), ("inverse", z, back)):
        code, _, err = run(command, source, *words, "--fit", tmp_path / "fit.json", "-o", target)
        assert (code, err) == (0, "")
    np.testing.assert_allclose(read_matrix(z), pk.fit(X).transform(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(read_matrix(back), X, rtol=1e-9)


def read_matrix(path):
    """Return the numbers in a file that `powerkern transform` wrote."""
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".parquet":
        return pytest.importorskip("pandas").read_parquet(path).to_numpy()
    return np.loadtxt(path, delimiter=",", ndmin=2)
