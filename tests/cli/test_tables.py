"""Tables in the formats found in practice: each is fitted correctly, or rejected with its line and cell."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import sys
from pathlib import Path

import numpy as np
import pytest

import powerkern as pk
from powerkern._input.tables.text import best_delimiter

A = np.array([1.5, 2.25, 4.0, 8.5, 3.125, 1.0])
B = np.array([10.0, 30.0, 20.0, 80.0, 50.0, 60.0])


def rows(template: str = "{a},{b}", head: str = "a,b", end: str = "\n", last: str = "\n") -> str:
    lines = [template.format(a=a, b=b, i=i) for i, (a, b) in enumerate(zip(A.tolist(), B.tolist(), strict=True))]
    return end.join([head, *lines]) + last


def expected_lambdas(names: list[str]) -> list[float]:
    return pk.fit(np.column_stack([{"a": A, "b": B}[name] for name in names])).lmbda.tolist()


#: By case: content of the file, options, for each fitted column whether it must have the fit of A or of B, and the text
#: on standard error.
RIGHT: dict[str, tuple[str | bytes, list[str], list[str], str]] = {
    "byte-order mark": ("\ufeff" + rows(), [], ["a", "b"], ""),
    "CRLF": (rows(end="\r\n", last="\r\n"), [], ["a", "b"], ""),
    "CR, as old Macs had it": (rows(end="\r"), [], ["a", "b"], ""),
    "no newline at the end": (rows(last=""), [], ["a", "b"], ""),
    "quoted delimiters": (rows('"said, ""{i}""",{a},{b}', 'note,a,"b"'), [], ["a", "b"], ""),
    "breaks within quotes": (rows('"one\n\ntwo",{a},{b}', "note,a,b"), [], ["a", "b"], ""),
    "semicolons": (rows("{a};{b}", "a;b"), [], ["a", "b"], ""),
    "tabs in .csv": (rows("{a}\t{b}", "a\tb"), [], ["a", "b"], ""),
    "bars": (rows("{a}|{b}", "a|b"), [], ["a", "b"], ""),
    "spaces": (rows("{a}  {b}", "a b"), ["--delimiter", "space"], ["a", "b"], ""),
    "spaces beside commas": (rows(" {a} , {b} ", "a , b"), [], ["a", "b"], ""),
    "decimal commas": (rows("{a};{b}", "a;b").replace(".", ","), ["--decimal", ","], ["a", "b"], ""),
    "trailing delimiters": (rows("{a},{b},"), [], ["a", "b"], ""),
    "trailing delimiters, in the header too": (rows("{a},{b},", "a,b,"), [], ["a", "b"], ""),
    "empty lines": (rows("{a},{b}\n\n", "\n\na,b"), [], ["a", "b"], ""),
    "index of pandas": (rows("{i},{a},{b}", ",a,b"), [], ["a", "b"], ""),
    "index read as a column": (rows("{i},{a},{b}", "Unnamed: 0,a,b"), [], ["a", "b"], ""),
    "row names of write.table": (rows('"{i}",{a},{b}', '"a","b"'), [], ["a", "b"], ""),
    "rows that are counted": (rows("{i},{a},{b}", "index,a,b"), [], ["a", "b"], ""),
    "comments": ("# made by hand\n" + rows() + "# the end\n", ["--comment", "#"], ["a", "b"], ""),
    "no header": (rows(head="").lstrip("\n"), ["--no-header"], ["0", "1"], ""),
    "missing cells of all kinds": (
        rows("{a},{b}\n-999,?\nNA,#N/A\n,None\n<NA>,-999.0\nnull,NaN"), ["--missing", "-999,?"], ["a", "b"], "",
    ),
    "Latin-1": (rows("caf\xe9,{a},{b}", "o\xf9,a,b").encode("latin-1"), ["--encoding", "latin-1"], ["a", "b"], ""),
    "UTF-16": (rows().encode("utf-16"), [], ["a", "b"], ""),
    "dates": (rows("2024-01-0{i},{a},{b}", "day,a,b"), [], ["a", "b"], ""),
    "booleans": (rows("{a},{b},TRUE", "a,b,flag"), [], ["a", "b"], ""),
    "one column": ("a\n" + "\n".join(map(str, A)) + "\n", [], ["a"], ""),
    "percent signs": (rows("{a},{b},{i}%", "a,b,share"), [], ["a", "b"], "'share' of x.csv is left out"),
    "thousands": (rows('{a},{b},"1,00{i}.5"', "a,b,price"), [], ["a", "b"], "'price' of x.csv is left out"),
    "hexadecimal": (rows("{a},{b},0x{i}F", "a,b,address"), [], ["a", "b"], ""),
    "one odd cell": (
        rows("{a},{b},{i}") .replace("a,b\n", "a,b,c\n").replace("80.0,3\n", "80.0,3*\n"), [], ["a", "b"],
        "powerkern: warning: column 'c' of x.csv is left out: line 5: '3*' is not a number",
    ),
    "Excel's empty columns": (rows("{a},{b},,,", "a,b,,,"), [], ["a", "b"], ""),
    "Excel's empty columns, some delimiters left out": (rows("{a},{b}", "a,b,,,", last="\n"), [], ["a", "b"], ""),
    "Excel's separator": ("sep=;\n" + rows("{a};{b}", "a;b"), [], ["a", "b"], ""),
    "Excel's separator, in quotes behind a mark": ('\ufeff"sep=|"\r\n' + rows("{a}|{b}", "a|b"), [], ["a", "b"], ""),
    "UTF-32": (rows().encode("utf-32"), [], ["a", "b"], ""),
    "gzip by another name": (gzip.compress(rows().encode()), [], ["a", "b"], ""),
    "bzip2 by another name": (bz2.compress(rows().encode()), [], ["a", "b"], ""),
    "xz by another name": (lzma.compress(rows().encode()), [], ["a", "b"], ""),
    "numbers in the header": (rows(head="400,401"), [], ["400", "401"], "holds only numbers"),
}  # fmt: skip

REFUSED: dict[str, tuple[str | bytes, list[str], str]] = {
    "empty file": ("", [], "x.csv is empty"),
    "only blank lines": ("\n\n \n", [], "x.csv is empty"),
    "only a header": ("a,b\n", [], "x.csv has a header but no rows"),
    "rows too short": (rows() + "1\n", [], "x.csv, line 8: 1 cell where the header has 2"),
    "rows too long": (rows() + "1,2,3\n", [], "x.csv, line 8: 3 cells where the header has 2"),
    "trailing delimiters here and there": (rows() + "1,2,,\n", [], "x.csv, line 8: 4 cells"),
    "duplicate headers": (rows(head="a,a"), [], "x.csv has more than one column named 'a'"),
    "units under the header": (rows(head="a,b\nkg,cm"), [], "columns 'a', 'b', line 2: 'kg' is not a number"),
    "decimal commas unsaid": (
        rows("{a};{b}", "a;b").replace(".", ","), [], "line 2: '1,5' is not a number; pass --decimal ,",
    ),
    "decimal points unsaid": (
        rows("{a};{b}", "a;b"), ["--decimal", ",", "--columns", "a"], "column 'a', line 2: '1.5' is not a number",
    ),
    "1e400": (
        rows() + "1e400,3\n", [],
        "x.csv, column 'a', line 8: '1e400' is too large for float64, which ends at 1.8e308; rescale",
    ),
    "1e-400": (rows() + "1e-400,3\n", [], "column 'a', line 8: '1e-400' is too small for float64"),
    "inf": (rows() + "inf,3\n", [], "x.csv, column 'a', line 8: the value is inf"),
    "Latin-1 unsaid": (rows("caf\xe9,{a},{b}", "x,a,b").encode("latin-1"), [], "not UTF-8 text (--encoding"),
    "a quote that is not closed": (
        rows() + '"1,2\n' + rows(), [], "x.csv, line 8: a quotation mark is opened in this row and never closed",
    ),
    "a quote that is closed within a cell": (
        rows() + '"1,2\n3,"4"\n', [], "line 8: a quotation mark is opened in this row and closed within a cell on",
    ),
    "text behind a quote": (rows() + '"1"x,2\n', [], "x.csv, line 8: the row is not well formed"),
    "a nameless column that holds something": (
        rows("{a},{b},,", "a,b,,") + "1,2,,7\n", [], "line 8: cell 4 holds '7', and the header has no name for it",
    ),
    "UTF-16 without a mark": (rows().encode("utf-16-le"), [], "pass --encoding utf-16-le"),
    "a web page": ("<!DOCTYPE html>\n<html>\n", [], "x.csv is a web page, not a table of text"),
    "JSON": ('[{"a": 1}, {"a": 2}]', [], "x.csv is JSON, not a table of text"),
    "a comment that is not named": (
        "# made by hand\n" + rows(), [], "x.csv: the first line is a comment; pass --comment '#' to skip",
    ),
    "only weights": (rows(), ["--columns", "a", "--weights", "a"], "no column to fit besides the weights, 'a'"),
    "values that Box-Cox cannot transform": (
        rows() + "0,3\n", ["--family", "box-cox"], "column 'a', line 8: the value is 0.0, and the Box-Cox",
    ),
    "an option in a message": (rows() + "0,3\n", ["--family", "box-cox"], "or fit with --family yeo-johnson\n"),
    "an old spreadsheet": (b"\xd0\xcf\x11\xe0" + bytes(20), [], "x.csv is an old spreadsheet (.xls): save the sheet"),
    "Parquet by another name": (b"PAR1" + bytes(20), [], "x.csv is a Parquet file: name it .parquet"),
    "an array by another name": (b"\x93NUMPY\x01\x00", [], "x.csv is a NumPy file: name it .npy"),
    "negative numbers in parentheses": (
        rows() + "(5.5),3\n", ["--columns", "a"], "'(5.5)' is not a number; write negative numbers with a minus",
    ),
    "zero bytes": (rows().encode() + b"1,\x002\n", ["--columns", "b"], "column 'b', line 8: '\\x002' is not a number"),
    "percent signs that were asked for": (
        rows("{a},{i}%", "a,share"), ["--columns", "share"], "column 'share', line 2: '0%' is not a number",
    ),
    "thousands that were asked for": (
        rows('{a},"1,00{i}"', "a,b"), ["--columns", "b"], "column 'b', line 2: '1,000' is not a number",
    ),
    "spaces unsaid": (rows("{a} {b}", "a b"), [], "is the delimiter right (--delimiter)?"),
    "another encoding than is said": (rows(), ["--encoding", "utf-16"], "cannot read"),
}  # fmt: skip


def test_there_are_many_shapes():
    assert len(RIGHT) + len(REFUSED) >= 20


@pytest.mark.parametrize("shape", RIGHT)
def test_tables_that_are_read_correctly(run, tmp_path, shape):
    content, words, names, said = RIGHT[shape]
    (tmp_path / "x.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    code, out, err = run("fit", tmp_path / "x.csv", "--json", "-o", tmp_path / "fit.json", *words)
    assert code == 0, err
    assert said in err
    assert (err == "") == (said == "")
    records = json.loads(out)["columns"]
    assert [record["column"] for record in records] == names
    assert [record["lmbda"] for record in records] == expected_lambdas(["a", "b"][: len(names)])
    assert all(record["n_obs"] == len(A) for record in records)
    # a transformed table is read and inverted with the same options
    again = run("transform", tmp_path / "x.csv", "--fit", tmp_path / "fit.json", "-o", tmp_path / "z.csv", *words)
    if shape in ("no header", "one odd cell"):
        return
    assert again[0] == 0, again[2]
    read_again = [word for word in words if word not in ("--encoding", "latin-1")]
    code, out, err = run(
        "inverse", tmp_path / "z.csv", "--fit", tmp_path / "fit.json", "-o", tmp_path / "b.csv", *read_again
    )
    assert code == 0, err
    code, out, _ = run("fit", tmp_path / "b.csv", "--json", *read_again)
    assert [r["lmbda"] for r in json.loads(out)["columns"]] == pytest.approx([r["lmbda"] for r in records], rel=1e-6)


@pytest.mark.parametrize("shape", REFUSED)
def test_tables_that_are_refused(run, tmp_path, shape):
    content, words, said = REFUSED[shape]
    (tmp_path / "x.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    code, out, err = run("fit", tmp_path / "x.csv", "-o", tmp_path / "fit.json", *words)
    assert (code, out) == (2, ""), err
    assert said in err
    assert err.count("\n") == 1
    assert not (tmp_path / "fit.json").exists()


def test_skipped_columns_are_reported_with_the_reason(run, tmp_path):
    (tmp_path / "x.csv").write_text(RIGHT["one odd cell"][0].replace("a,b,c", ",b,c"))
    code, out, _ = run("fit", tmp_path / "x.csv")
    assert code == 0
    assert "left out: 'c', line 5: '3*' is not a number" in out
    assert "left out, names the rows: ''" in out
    said = json.loads(run("fit", tmp_path / "x.csv", "--json")[1])["left_out"]
    assert said == [
        {"column": "", "reason": "names the rows"},
        {"column": "c", "reason": "line 5: '3*' is not a number"},
    ]


def test_an_odd_cell_far_down_is_reported_with_its_line(run, tmp_path):
    n = 40_000
    lines = [f"{i % 97},{i % 89}" for i in range(n)]
    lines[35_000] = f"{35_000 % 97},about 7"
    (tmp_path / "x.csv").write_text("a,b\n" + "\n".join(lines) + "\n")
    code, out, err = run("fit", tmp_path / "x.csv", "--json")
    assert code == 0
    assert "column 'b' of x.csv is left out: line 35002: 'about 7' is not a number" in err
    (record,) = json.loads(out)["columns"]
    assert record["n_obs"] == n
    assert record["lmbda"] == pk.fit(np.arange(n, dtype=float) % 97).lmbda[0]


def test_center_and_divisor_are_shown(run, tmp_path):
    (tmp_path / "x.csv").write_text(rows())
    code, out, _ = run("fit", tmp_path / "x.csv", "--estimator", "robust")
    fit = pk.fit(np.column_stack([A, B]), estimator="robust")
    assert code == 0
    assert out.split("\n")[0].split()[2:4] == ["center", "divisor"]
    assert out.split("\n")[2].split()[2:4] == [f"{fit.center[0]:.6g}", f"{fit.divisor[0]:.6g}"]
    records = json.loads(run("fit", tmp_path / "x.csv", "--estimator", "robust", "--json")[1])["columns"]
    assert [(r["center"], r["divisor"]) for r in records] == list(zip(fit.center, fit.divisor, strict=True))
    assert "divisor" not in run("fit", tmp_path / "x.csv")[1]


# --- streams and compression --------------------------------------------------------------------------


def zstd(text: bytes) -> bytes:
    if sys.version_info >= (3, 14):
        from compression import zstd as module

        return module.compress(text)
    pa = pytest.importorskip("pyarrow")
    return pa.compress(text, codec="zstd", asbytes=True)


COMPRESS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd}


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compressed_tables_round_trip_and_cut_ones_are_refused(run, tmp_path, suffix):
    path, out_path = tmp_path / f"x.csv{suffix}", tmp_path / f"z.csv{suffix}"
    path.write_bytes(COMPRESS[suffix](rows().encode()))
    assert run("fit", path, "-o", tmp_path / "fit.json")[0] == 0
    assert run("transform", path, "--fit", tmp_path / "fit.json", "-o", out_path)[0] == 0
    code, out, err = run("inverse", out_path, "--fit", tmp_path / "fit.json")
    assert code == 0, err
    back = np.loadtxt(io.StringIO(out), delimiter=",", skiprows=1)
    assert np.allclose(back, np.column_stack([A, B]), rtol=1e-12)
    path.write_bytes(path.read_bytes()[:20])
    code, _, err = run("fit", path)
    assert code == 2
    assert f"cannot read {path}" in err


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compression_is_detected_from_the_first_bytes(run, tmp_path, monkeypatch, suffix):
    """The cases are plain text with a compressed suffix, compressed text without one, and compressed standard input."""
    plain, packed = tmp_path / f"plain.csv{suffix}", tmp_path / "packed.txt"
    plain.write_bytes(rows().encode())
    packed.write_bytes(COMPRESS[suffix](rows().encode()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed.read_bytes())))
    for path in (plain, packed, "-"):
        code, out, err = run("fit", path, "--json")
        assert (code, err) == (0, "")
        assert [record["lmbda"] for record in json.loads(out)["columns"]] == expected_lambdas(["a", "b"])


def test_standard_input_and_output_are_read_and_written(run, tmp_path, monkeypatch):
    def pipe(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    pipe(rows())
    code, out, err = run("fit", "-", "-o", tmp_path / "fit.json", "--json")
    assert (code, err) == (0, "")
    assert [record["lmbda"] for record in json.loads(out)["columns"]] == expected_lambdas(["a", "b"])
    pipe(rows("{a};{b}", "a;b"))
    code, out, err = run("transform", "-", "--fit", tmp_path / "fit.json", "-o", "-")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "a;b"
    pipe(out)
    code, out, _ = run("inverse", "-", "--fit", tmp_path / "fit.json")
    assert np.allclose(np.loadtxt(io.StringIO(out), delimiter=";", skiprows=1), np.column_stack([A, B]), rtol=1e-12)
    pipe("a,b\n1,x\n2,y\n")
    code, out, err = run("transform", "-", "--fit", tmp_path / "fit.json")
    assert (code, out) == (2, "")
    assert "standard input, column 'b', line 2: 'x' is not a number" in err


@pytest.mark.parametrize("kind", ["csv", "npy", "parquet"])
def test_blocks_give_the_results_of_the_whole_table(run, tmp_path, monkeypatch, kind):
    from powerkern._input.tables import npy, parquet, text

    X = np.random.default_rng(0).lognormal(size=(500, 3))
    fit = pk.fit(X, column_names=["a", "b", "c"])
    (tmp_path / "fit.json").write_text(fit.to_json())
    path = tmp_path / f"x.{kind}"
    if kind == "npy":
        np.save(path, X)
    elif kind == "csv":
        np.savetxt(path, X, delimiter=",", header="a,b,c", comments="", fmt="%.17g")
    else:
        pd = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(note=[f"row {i}" for i in range(500)])
        frame.to_parquet(path, row_group_size=90)
    for module, cells in ((npy, "CELLS"), (parquet, "CELLS"), (text, "_CELLS_AT_ONCE")):
        monkeypatch.setattr(module, cells, 300)
    out_path = tmp_path / f"z.{kind}"
    code, out, err = run("transform", path, "--fit", tmp_path / "fit.json", "-o", out_path, "--json", "--jobs", 1)
    assert (code, err, json.loads(out)["rows"]) == (0, "", 500)
    if kind == "npy":
        z = np.load(out_path)
    elif kind == "csv":
        z = np.loadtxt(out_path, delimiter=",", skiprows=1)
    else:
        frame = pd.read_parquet(out_path)
        assert frame["note"].tolist() == [f"row {i}" for i in range(500)]
        z = frame[["a", "b", "c"]].to_numpy()
    assert np.array_equal(z, fit.transform(X))
    code, out, _ = run("fit", path, "--json", "-j", 1)
    assert [record["lmbda"] for record in json.loads(out)["columns"]] == fit.lmbda.tolist()


#: Tables of one column, and the values read: NaN for a row without text. Comments and `sep=` do not count as rows.
ONE_COLUMN = {
    "blank lines, as polars and Excel write missing values": ("a\n1\n\n2\n4\n\n", [], [1, None, 2, 4, None]),
    "empty quotes, as pandas writes them": ('a\n""\n1\n""\n2\n4\n', [], [None, 1, None, 2, 4]),
    "spaces": ("a\n1\n  \n2\n4", [], [1, None, 2, 4]),
    "CRLF below blank lines": ("\r\n\r\na\r\n1\r\n\r\n2\r\n4\r\n", [], [1, None, 2, 4]),
    "no header": ('\n1\n2\n""\n4\n', ["--no-header"], [None, 1, 2, None, 4]),
    "comments": ("#\na\n1\n# x\n\n2\n#\n4\n# end\n", ["--comment", "#"], [1, None, 2, 4]),
    "a separator": ("sep=;\n\n1\n2\n4\n", ["--no-header"], [None, 1, 2, 4]),
    "row names: two columns": ("a\nr,1\n\ns,2\nt,4\n\n", [], [1, 2, 4]),
    "trailing delimiters: two columns": ("a\n1,\n\n2,\n,\n4,\n", [], [1, 2, None, 4]),
}


@pytest.mark.parametrize("shape", ONE_COLUMN)
def test_rows_without_text_are_missing_values_of_a_single_column(run, tmp_path, shape):
    content, words, values = ONE_COLUMN[shape]
    x = np.array(values, dtype=np.float64).reshape(-1, 1)
    (tmp_path / "x.csv").write_text(content, newline="")
    code, out, err = run("fit", tmp_path / "x.csv", *words, "-o", tmp_path / "fit.json", "--json")
    assert (code, err, json.loads(out)["rows"]) == (0, "", len(x))
    fit = pk.fit(x)
    assert [record["lmbda"] for record in json.loads(out)["columns"]] == fit.lmbda.tolist()
    code, _, err = run(
        "transform", tmp_path / "x.csv", *words, "--fit", tmp_path / "fit.json", "-o", tmp_path / "z.csv"
    )
    assert (code, err) == (0, "")
    cells = [row[-1] for row in csv.reader(io.StringIO((tmp_path / "z.csv").read_text()))]
    cells = cells if "--no-header" in words else cells[1:]
    assert np.array_equal([float(cell or "nan") for cell in cells], fit.transform(x)[:, 0], equal_nan=True)
    code, out, _ = run("inverse", tmp_path / "z.csv", *words, "--fit", tmp_path / "fit.json")
    assert len(list(csv.reader(io.StringIO(out)))) == len(cells) + ("--no-header" not in words)


def test_a_first_column_that_counts_is_fitted_unless_its_name_is_one_of_row_numbers(run, tmp_path):
    for name, fitted in {"dose": ["dose", "b"], "index": ["b"]}.items():
        (tmp_path / "x.csv").write_text(rows("{i},{b}", f"{name},b"))
        code, out, err = run("fit", tmp_path / "x.csv", "--json")
        assert (code, err) == (0, "")
        assert [record["column"] for record in json.loads(out)["columns"]] == fitted


def test_an_error_in_a_single_column_names_the_line(run, tmp_path):
    (tmp_path / "x.csv").write_text("# by hand\na\n1\n\n# 2\n2\n4\noops\n")
    code, _, err = run("fit", tmp_path / "x.csv", "--comment", "#", "--columns", "a")
    assert code == 2
    assert "column 'a', line 8: 'oops' is not a number" in err


def test_a_table_may_be_written_over_itself_and_stays_where_that_fails(run, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(rows())
    run("fit", path, "-o", tmp_path / "fit.json")
    assert run("transform", path, "--fit", tmp_path / "fit.json", "-o", path)[0] == 0
    z = np.loadtxt(path, delimiter=",", skiprows=1)
    assert np.array_equal(z, pk.fit(np.column_stack([A, B])).transform(np.column_stack([A, B])))
    path.write_text(rows() + "1,oops\n")
    assert run("transform", path, "--fit", tmp_path / "fit.json", "-o", path)[0] == 2
    assert path.read_text().endswith("1,oops\n")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["fit.json", "x.csv"]


@pytest.mark.parametrize(
    ("lines", "delimiter"),
    [
        (["a,b\n", "1,2\n"], ","),
        (["a;b\n", "1,5;2,5\n"], ";"),
        (["a\tb,c\n", "1\t2\n"], "\t"),
        (["a\n", "1\n"], ","),
        (['"x;y",b\n', '"1;2",3\n'], ","),
        (["a,b\n", "1,2\n", "3\n"], ","),
        ([], ","),
        # without a delimiter, the line would be one cell longer than csv accepts
        (["a," * 70000, "1," * 70000], ","),
        (["a;" * 70000, "1;" * 70000], ";"),
    ],
)
def test_delimiters_are_found(lines, delimiter):
    assert best_delimiter(lines) == delimiter


def test_a_fit_is_written_to_standard_output(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text(rows())
    code, out, err = run("fit", "x.csv", "-o", "-")
    assert (code, err) == (0, "")
    assert pk.PowerFit.from_json(out).column_names == ["a", "b"]
    assert not (tmp_path / "-").exists()
    code, out, err = run("fit", "x.csv", "-o", "-", "--json")
    assert (code, out) == (2, "")
    assert "both write to standard output" in err


def test_a_cell_that_is_too_long_is_refused(run, tmp_path):
    (tmp_path / "x.csv").write_text(f"a,b\n1,{'x' * 200_000}\n")
    code, out, err = run("fit", tmp_path / "x.csv")
    assert (code, out) == (2, "")
    assert "x.csv, line 2: the row is not well formed (field larger than field limit" in err


@pytest.mark.parametrize("command", ["demo", "fit", "summary", "transform", "inverse", "plot", "compile", "info"])
def test_help_has_examples_that_parse(run, capsys, command):
    from powerkern._cli.parser import parser

    code, out, _ = run(command, "--help")
    assert code == 0
    examples = out.split("examples:\n")[1].splitlines()
    assert examples
    for line in examples:
        words = next(csv_words(line))
        args = parser().parse_args(words)
        assert args.command == command


def csv_words(line: str):
    import shlex

    for part in line.split("|"):
        words = shlex.split(part)
        if words[0] == "powerkern":
            yield words[1:]


# --- info and pictures --------------------------------------------------------------------------------


def test_info_lists_versions_and_folders(run):
    code, out, err = run("info", "--json")
    assert (code, err) == (0, "")
    facts = json.loads(out)
    assert facts["powerkern"]["version"] == pk.__version__
    assert facts["packages"]["numpy"] == np.__version__
    assert facts["threads"]["default"] >= 1
    assert set(facts) >= {"system", "cpu", "compiled code", "environment"}
    folder = facts["compiled code"]["folder"]
    assert folder is None or Path(folder).is_dir()
    text = run("info")[1]
    for heading in facts:
        assert f"{heading}\n" in text
    assert pk.__version__ in text


@pytest.mark.parametrize("kind", ["before-after", "qq", "histogram", "forest", "cells"])
def test_plot_writes_a_picture_of_every_kind(run, tmp_path, kind):
    pytest.importorskip("matplotlib")
    (tmp_path / "x.csv").write_text(rows())
    code, out, err = run("plot", tmp_path / "x.csv", "--kind", kind, "-o", tmp_path / "x.png")
    assert (code, err) == (0, "")
    assert out == f"{kind} of 2 columns drawn in {tmp_path / 'x.png'}\n"
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("estimator", ["mle", "robust"])
def test_forest_plots_have_intervals_whatever_the_estimator(run, tmp_path, monkeypatch, estimator):
    plot = pytest.importorskip("powerkern.plot")
    drawn = []
    original = plot.forest_plot
    monkeypatch.setattr(
        plot, "forest_plot", lambda *args, **options: drawn.append(original(*args, **options)) or drawn[0]
    )
    (tmp_path / "x.csv").write_text(rows())
    words = ("--kind", "forest", "--estimator", estimator, "-o", tmp_path / "x.png")
    assert run("plot", tmp_path / "x.csv", *words)[0] == 0
    segments = drawn[0].collections[0].get_segments()
    assert len(segments) == 2
    assert all(np.ptp(segment[:, 0]) > 0.0 for segment in segments)


def test_plots_of_too_many_columns_name_the_option(run, tmp_path, monkeypatch):
    columns = pytest.importorskip("powerkern.plot._histograms")
    monkeypatch.setattr(columns, "_MOST_PANELS", 3)
    (tmp_path / "x.csv").write_text(rows())
    code, _, err = run("plot", tmp_path / "x.csv", "-o", tmp_path / "x.png")
    assert code == 2
    assert "select fewer with --columns" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-o", "x.doc"], "x.doc has an unknown file type: use ."),
        (["-o", "x.png", "--style", "nice"], "unknown style 'nice'"),
        (["-o", "nowhere/x.png"], "the folder nowhere does not exist"),
    ],
)
def test_plots_that_cannot_be_drawn(run, tmp_path, words, said):
    pytest.importorskip("matplotlib")
    (tmp_path / "x.csv").write_text(rows())
    code, _, err = run("plot", tmp_path / "x.csv", *words)
    assert code == 2
    assert said in err
