"""The command line, as a person meets it: real files, exit codes, one sentence on bad input."""

from __future__ import annotations

import gzip
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
from powerkern.__main__ import main

ROWS = 60


@pytest.fixture
def numbers() -> np.ndarray:
    """Two positive columns and one of mixed sign, with missing cells."""
    rng = np.random.default_rng(7)
    x = np.column_stack([rng.lognormal(size=ROWS), rng.gamma(3, size=ROWS), rng.standard_normal(ROWS) ** 3])
    x[4, 0] = x[7, 2] = np.nan
    return x


@pytest.fixture
def table(tmp_path: Path, numbers: np.ndarray) -> Path:
    """A CSV table with text and number columns, awkward names and every spelling of a missing cell."""
    missing = {4: "NA", 7: " nan "}
    lines = ['id,income,"length, cm",note,z']
    for i, (a, b, c) in enumerate(numbers.tolist()):
        cells = [missing[i] if value != value else repr(value) for value in (a, b, c)]
        lines.append(f'007_{i},{cells[0]},{cells[1]},"said ""{i}"", twice",{cells[2]}')
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    """Run the command line in this process: (exit code, standard output, standard error)."""

    def call(*words: object) -> tuple[int, str, str]:
        try:
            code = main([str(word) for word in words])
        except SystemExit as stop:  # argparse
            code = stop.code
        return code, *capsys.readouterr()

    return call


def fitted(run, data: Path, *options: object) -> Path:
    """Fit `data` into fit.json beside it."""
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


def test_csv_round_trip(run, table, numbers, tmp_path):
    fit_path = fitted(run, table)
    z_path, back_path = tmp_path / "z.csv", tmp_path / "back.csv"
    assert run("transform", table, "--fit", fit_path, "-o", z_path) == (
        0,
        f"{ROWS} rows x 3 columns written to {z_path}\n",
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
    fit = pk.PowerFit.from_json(fitted(run, table).read_text())
    np.testing.assert_array_equal(fit.lmbda, pk.fit(numbers).lmbda)
    assert list(fit.column_names) == ["income", "length, cm", "z"]


def test_columns_are_matched_by_name(run, table, numbers, tmp_path):
    fit_path = fitted(run, table)
    other = tmp_path / "other.csv"
    np.savetxt(other, numbers[:, [2, 0, 1, 1]], delimiter=",", header='z,income,"length, cm",extra', comments="")
    code, out, _ = run("transform", other, "--fit", fit_path)
    assert code == 0
    (tmp_path / "z.csv").write_text(out)
    z = as_numbers(cells(tmp_path / "z.csv"), 1, 2, 0)
    np.testing.assert_allclose(z, pk.fit(numbers).transform(numbers), rtol=1e-12, atol=1e-14)
    # a column that the fit does not know is not touched, digits and all
    assert [row[3] for row in cells(tmp_path / "z.csv")] == [row[3] for row in cells(other)]


def test_a_column_missing_throughout_can_be_transformed(run, table, tmp_path):
    fit_path = fitted(run, table)
    other = tmp_path / "other.csv"
    other.write_text('z,income,"length, cm"\n1,,2\n-1,NA,3\n')
    code, out, _ = run("transform", other, "--fit", fit_path)
    assert code == 0
    assert [line.split(",")[1] for line in out.splitlines()] == ["income", "", ""]


@pytest.mark.parametrize("name", ["table.tsv", "table.csv.gz", "semicolon.csv"])
def test_other_text_tables(run, tmp_path, numbers, name):
    path = tmp_path / name
    delimiter = {"table.tsv": "\t", "semicolon.csv": ";"}.get(name, ",")
    text = "\ufeff" + delimiter.join("abc") + "\r\n"
    text += "".join(delimiter.join(map(repr, row)) + "\r\n" for row in numbers.tolist())
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    options = ["--delimiter", ";"] if delimiter == ";" else []
    fit_path = fitted(run, path, *options)
    assert list(pk.PowerFit.from_json(fit_path.read_text()).column_names) == ["a", "b", "c"]
    out_path = tmp_path / f"out-{name}"
    assert run("transform", path, "--fit", fit_path, "-o", out_path, *options)[0] == 0
    code, report, _ = run("inverse", out_path, "--fit", fit_path, "-o", tmp_path / "back.csv", "--json", *options)
    assert code == 0
    assert json.loads(report) == {"rows": ROWS, "columns": ["a", "b", "c"], "output": str(tmp_path / "back.csv")}


@pytest.mark.parametrize("shape", ["matrix", "vector"])
@pytest.mark.parametrize("dtype", ["f8", "f4", ">f8"])
def test_npy_round_trip(run, tmp_path, numbers, shape, dtype):
    x = (numbers if shape == "matrix" else numbers[:, 0]).astype(dtype)
    path, z_path, back_path = tmp_path / "x.npy", tmp_path / "z.npy", tmp_path / "back.npy"
    np.save(path, x)
    fit_path = fitted(run, path)
    assert run("transform", path, "--fit", fit_path, "-o", z_path)[0] == 0
    assert run("inverse", z_path, "--fit", fit_path, "-o", back_path)[0] == 0
    z = np.load(z_path)
    assert z.shape == x.shape
    np.testing.assert_array_equal(z, pk.fit(x).transform(x))
    np.testing.assert_allclose(
        np.load(back_path), x, rtol=1e-4 if dtype == "f4" else 1e-12, atol=1e-6 if dtype == "f4" else 1e-14
    )


def test_npy_columns_by_position(run, tmp_path, numbers):
    np.save(tmp_path / "x.npy", numbers)
    code, out, _ = run("fit", tmp_path / "x.npy", "--columns", "2,0", "--json")
    assert code == 0
    assert [(record["column"], record["lmbda"]) for record in json.loads(out)["columns"]] == list(
        zip(["2", "0"], pk.fit(numbers[:, [2, 0]]).lmbda.tolist(), strict=True)
    )


def test_parquet_round_trip(run, tmp_path, numbers):
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
    fit_path = fitted(run, path)
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
    fit_path = fitted(run, tmp_path / "x.parquet")
    assert run("transform", tmp_path / "x.parquet", "--fit", fit_path, "-o", tmp_path / "z.parquet")[0] == 0
    z = pd.read_parquet(tmp_path / "z.parquet")
    assert z.index.tolist() == frame.index.tolist()
    np.testing.assert_array_equal(z["a"], pk.fit(numbers[:, 1]).transform(numbers[:, 1]))


def test_formats_mix(run, table, tmp_path, numbers):
    pytest.importorskip("pyarrow")
    fit_path = fitted(run, table)
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
    code, out, _ = run("fit", table, "--json", "--family", "best", "--estimator", "rewml")
    records = json.loads(out)["columns"]
    fit = pk.fit(numbers, "best", "rewml")
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
    assert err == "powerkern: warning: the first line of x.csv holds only numbers; it is taken for the column names\n"


def test_progress(run, table):
    pytest.importorskip("tqdm")
    code, out, _ = run("fit", table, "--progress", "--json")
    assert code == 0
    json.loads(out)  # the bar goes to standard error


def test_help_names_the_commands(run):
    code, out, _ = run("--help")
    assert code == 0
    for command in ("demo", "fit", "transform", "inverse"):
        assert command in out


def test_version(run):
    assert run("--version") == (0, f"powerkern {pk.__version__}\n", "")


# --- bad input ---------------------------------------------------------------------------------------

BAD_TABLES = {
    "empty.csv": ("", "is empty"),
    "header.csv": ("a,b\n", "no rows"),
    "ragged.csv": ("a,b\n1,2\n3\n", "line 3: 1 cells where the header has 2"),
    "twice.csv": ("a,a\n1,2\n3,4\n", "more than one column named 'a'"),
    "text.csv": ("a,b\nx,y\nz,w\n", "no column of numbers"),
    "missing.csv": ("a,b\nNA,\n,nan\n", "no column of numbers"),
    "semicolon.csv": ("a;b\n1;2\n3;4\n", "--delimiter"),
    "quote.csv": ('a,b\n1,"2\n3,4\n', "not a well-formed table"),
    "latin.csv": (b"a,b\n1,\xe9\n", "not UTF-8"),
    "damaged.csv.gz": (b"\x1f\x8b\x08rubbish", "cannot read"),
    "plain.csv.gz": (b"a,b\n1,2\n", "cannot read"),
    "inf.csv": ("a,b\n1,2\n3,inf\n5,6\n", "'b'"),
    "binary.npy": (b"not an array", "not a .npy file"),
    "truncated.npy": (
        b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }",
        "not a .npy file",
    ),
    "folder": (None, "no known kind"),
    "folder.csv": (None, "directory"),
    "data.xlsx": (b"PK", "no known kind"),
    "absent.csv": (..., "No such file"),
    "absent.npy": (..., "No such file"),
}


def one_sentence(err: str, expected: str) -> None:
    assert err.startswith("powerkern")
    assert err.endswith("\n")
    assert err.count("\n") == 1, err
    assert expected in err


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_table(run, tmp_path, name):
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
def test_bad_array(run, tmp_path, array):
    np.save(tmp_path / "x.npy", array)
    code, out, err = run("fit", tmp_path / "x.npy")
    assert (code, out) == (2, "")
    one_sentence(err, "x.npy")


@pytest.mark.parametrize("name", ["rubbish.parquet", "absent.parquet", "text.parquet", "empty.pq"])
def test_bad_parquet(run, tmp_path, name):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / name
    if name == "rubbish.parquet":
        path.write_bytes(b"rubbish")
    elif name == "text.parquet":
        parquet.write_table(pa.table({"a": ["x", "y"]}), path)
    elif name == "empty.pq":
        parquet.write_table(pa.table({"a": pa.array([], pa.float64())}), path)
    code, out, err = run("fit", path)
    assert (code, out) == (2, "")
    one_sentence(err, name)


def test_parquet_without_pyarrow(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    code, _, err = run("fit", tmp_path / "x.parquet")
    assert code == 2
    one_sentence(err, "pip install 'powerkern[parquet]'")


def test_box_cox_names_column_and_row(run, tmp_path):
    (tmp_path / "x.csv").write_text("id,income,age\nx,1,3\ny,2,-4\nz,3,5\n")
    code, out, err = run("fit", tmp_path / "x.csv", "--family", "box-cox")
    assert (code, out) == (2, "")
    one_sentence(err, "'age'")
    assert "row 1" in err


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
    "output of no kind": (["transform", "TABLE", "--fit", "FIT", "-o", "FOLDER/z.xls"], "no known kind"),
    "text into npy": (["transform", "TABLE", "--fit", "FIT", "-o", "FOLDER/z.npy"], "no place for the untouched"),
    "json without output": (["transform", "TABLE", "--fit", "FIT", "--json"], "-o"),
    "table lacks a column": (["transform", "SHORT", "--fit", "FIT"], "no column"),
    "text where numbers were": (["transform", "WORDS", "--fit", "FIT"], "column 'z', line 3: 'high' is not a number"),
    "array of another width": (["transform", "ARRAY", "--fit", "FIT"], "5 columns"),
    "out of range": (["inverse", "OUTSIDE", "--fit", "FIT", "--out-of-range", "raise"], "income"),
    "rows of the demo": (["demo", "--rows", "many"], "positive whole number"),
    "demo into a file": (["demo", "--rows", "50", "--columns", "2", "--save", "TABLE"], "table.csv"),
}


@pytest.mark.parametrize("case", BAD_WORDS)
def test_bad_words(run, table, tmp_path, case):
    words, expected = BAD_WORDS[case]
    files = {"TABLE": table, "FOLDER": tmp_path}
    if "FIT" in words:
        files["FIT"] = fitted(run, table)
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


# --- as processes ------------------------------------------------------------------------------------


def test_module_and_script(table, tmp_path):
    by_module = subprocess.run(
        [sys.executable, "-m", "powerkern", "fit", table, "--json"], capture_output=True, text=True, check=True
    )
    assert json.loads(by_module.stdout)["rows"] == ROWS
    script = Path(sys.executable).with_name("powerkern")
    if script.exists():  # absent where the package runs from its sources without being installed
        by_script = subprocess.run([script, "fit", table, "--json"], capture_output=True, text=True, check=True)
        assert by_script.stdout == by_module.stdout
    failed = subprocess.run(
        [sys.executable, "-m", "powerkern", "fit", tmp_path / "no.csv"], capture_output=True, text=True, check=False
    )
    assert failed.returncode == 2
    one_sentence(failed.stderr, "No such file")


def test_a_reader_that_leaves_is_no_error(table, tmp_path):
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
    process.wait(60)


@pytest.mark.parametrize("cache", ["warm", "cold"])
def test_ctrl_c(tmp_path, cache):
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
    process.stdout.readline()  # it has begun
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "powerkern demo: interrupted\n"


# --- demo --------------------------------------------------------------------------------------------


def test_demo(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("demo", "--rows", 2000, "--columns", 60, "--json")
    assert (code, err) == (0, "")
    assert list(tmp_path.iterdir()) == []  # writes nothing unless asked
    report = json.loads(out)
    assert [f["family"] for f in report["families"]] == ["box-cox", "yeo-johnson"]
    for figures in report["families"]:
        # 60 columns: the root mean square of 60 standard normals lies within these bounds but for once in 10,000
        assert 0.65 < figures["rms_error"] < 1.4
        assert figures["coverage"] > 0.8
        assert figures["round_trip_error"] < 1e-9
        assert any(peer.startswith("scipy") for peer in figures["peers"])


def test_demo_saves_when_asked(run, tmp_path):
    folder = tmp_path / "new" / "folder"
    code, out, _ = run("demo", "--rows", 300, "--columns", 4, "--save", folder)
    assert code == 0
    assert "scipy" in out
    for family in ("box-cox", "yeo-johnson"):
        fit = pk.PowerFit.from_json((folder / f"{family}.json").read_text())
        np.testing.assert_array_equal(fit.lmbda, pk.fit(np.load(folder / f"{family}.npy"), family=family).lmbda)
