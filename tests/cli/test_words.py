"""Options and messages of the command line: accepted values, and errors for wrong values before NumPy is imported."""

import csv
import json
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest

import powerkern as pk
from powerkern._cli import arguments
from powerkern._cli.parser import parser
from powerkern._estimators.estimators import ESTIMATORS


@pytest.fixture
def table(tmp_path):
    """Write a table with one outlier each in rows 10 (column a), 20 (b) and 30 (a). The first is the largest."""
    rng = np.random.default_rng(0)
    numbers = rng.lognormal(size=(80, 2))
    numbers[[10, 20, 30], [0, 1, 0]] = [1e9, 1e6, 1e4]
    path = tmp_path / "table.csv"
    rows = "".join(f"x,{a!r},{b!r}\n" for a, b in numbers.tolist())
    path.write_text("word,a,b\n" + rows)
    return path


def test_options_are_those_of_the_estimators():
    assert tuple(ESTIMATORS) == arguments.ESTIMATORS
    for option, names in arguments.OPTIONS.items():
        assert names == [kind.name for kind in ESTIMATORS.values() if option in {field.name for field in fields(kind)}]
    assert {field.name for kind in ESTIMATORS.values() for field in fields(kind)} == set(arguments.OPTIONS)


@pytest.mark.parametrize("command", ["fit", "summary", "outliers", "plot"])
def test_help_names_every_estimator(run, command):
    text = " ".join(run(command, "--help")[1].split())
    assert f"{', '.join(ESTIMATORS)}" in text


@pytest.mark.parametrize("words", [["fit"], ["fit", "--groups", "word"], ["outliers"], ["transform"], ["inverse"]])
def test_every_command_says_what_it_wrote_and_where(run, table, tmp_path, words):
    """The last line counts the columns or rows in the file and names the file."""
    fit, out = tmp_path / "fit.json", tmp_path / "out.csv"
    run("fit", table, "-o", fit)
    given = ["--fit", fit] if words[0] in ("transform", "inverse") else []
    code, said, _ = run(words[0], table, *words[1:], *given, "-o", out)
    assert code == 0
    last = said.splitlines()[-1]
    if words[0] == "fit":
        assert last == f"fit of 2 columns written to {out}"
    elif words[0] == "outliers":
        n = len(out.read_text().splitlines()) - 1
        assert last == f"{n} outliers written to {out}, one per line"
        assert f"{n} outliers in 80 rows x 3 columns (2 of the columns searched)" in said
    else:
        done = "transformed" if words[0] == "transform" else "inverted"
        assert last == f"80 rows x 3 columns written to {out} (2 {done}, 1 passed through)"
        assert all(line.count(",") == 2 for line in out.read_text().splitlines())
    if words[0] != "inverse":
        said = json.loads(run(words[0], table, *words[1:], *given, "-o", out, "--json")[1])
        assert said["output"] == str(out)


def test_kinds_of_plots_match_the_plot_functions():
    from powerkern._cli.plot import _KINDS

    assert tuple(_KINDS) == arguments.PICTURES


@pytest.mark.parametrize("words", [["--bogus"], ["fit", "x.csv", "--famly", "best"], ["--help"], ["fit", "--help"]])
def test_words_are_checked_before_numpy_is_imported(words):
    code = f"""
import sys
from powerkern.__main__ import main
code = main({words!r})
slow = {{"numpy", "numba", "scipy"}} & set(sys.modules)
assert not slow, slow
sys.exit(code)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == (0 if "--help" in words else 2), done.stderr
    assert "--help" in words or "unrecognized arguments" in done.stderr or "required" in done.stderr


def test_every_command_is_there():
    fit = ["x", "--fit", "f"]
    lines = (["demo"], ["fit", "x"], ["summary", "x"], ["transform", *fit], ["inverse", *fit], ["outliers", "x"])
    for words in (*lines, ["plot", "x", "-o", "y"], ["compile"], ["info"]):
        module, name = parser().parse_args(words).run.split(":")
        assert callable(getattr(__import__(f"powerkern._cli.{module}", fromlist=[name]), name))


@pytest.mark.parametrize(
    "words, meant",
    [
        (["fit", "x", "--family", "yeojohnson"], "yeo-johnson"),
        (["fit", "x", "--family", "yj"], "yeo-johnson"),
        (["fit", "x", "--family", "box_cox"], "box-cox"),
        (["outlier", "x"], "outliers"),
        (["plot", "x", "-o", "y.png", "--kind", "forrest"], "forest"),
    ],
)
def test_near_misses_are_suggested(run, words, meant):
    code, _, err = run(*words)
    assert code == 2
    assert f"did you mean {meant!r}?" in err


def test_the_nearest_estimator_is_suggested(run, table):
    assert "did you mean 'rewml'?" in run("fit", table, "--estimator", "rewlm")[2]
    assert "did you mean 'x86-64-v3'?" in run("compile", "--cpu", "x86-64-v33")[2]


# --- decimal commas -----------------------------------------------------------------------------------


def test_decimal_commas_give_one_hint(run, tmp_path):
    path = tmp_path / "commas.csv"
    head = ";".join([*(f"c{j}" for j in range(12)), "n"])
    lines = [";".join([*(f"{i + j},5" for j in range(12)), str(i * i)]) for i in range(9)]
    path.write_text("\n".join([head, *lines]) + "\n")
    code, out, err = run("fit", path)
    assert code == 0
    assert "n " in out
    assert err.count("warning") == 1
    assert "columns 'c0', 'c1', 'c2' and 9 more of commas.csv are left out: line 2: '0,5' is not a number; pass" in err
    assert err.endswith("pass --decimal ,\n")
    assert run("fit", path, "--decimal", ",")[2] == ""


def test_a_table_of_decimal_commas_alone_is_refused_with_the_hint(run, tmp_path):
    path = tmp_path / "commas.csv"
    path.write_text("a;b\n1,5;2,5\n2,5;7,25\n")
    code, out, err = run("fit", path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "columns 'a', 'b', line 2: '1,5' is not a number; pass --decimal ," in err


def test_other_odd_cells_are_named_one_by_one(run, tmp_path):
    path = tmp_path / "mixed.csv"
    rows = "".join(f"{i},5;{i};{i * i}\n" for i in range(1, 30))
    path.write_text("a;b;c\n" + rows + "3,5;?;1\n")
    err = run("fit", path)[2]
    assert err.count("warning") == 2
    assert "column 'b' of mixed.csv is left out: line 31: '?' is not a number" in err


# --- outliers -----------------------------------------------------------------------------------------


def test_outliers_lists_values_by_line_the_farthest_first(run, table):
    code, out, err = run("outliers", table, "--family", "box-cox")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["line", "column", "value", "z"]
    assert lines[2][:3] == ["12", "a", "1e+09"]
    assert "outliers in 80 rows x 3 columns (2 of the columns searched)\n" in out
    assert out.endswith("\n\nleft out, not numeric: word\n")

    data = np.loadtxt(table, delimiter=",", skiprows=1, usecols=(1, 2))
    fit = pk.fit(data, "box-cox", "robust")
    found = json.loads(run("outliers", table, "--family", "box-cox", "--json")[1])["outliers"]
    assert {(each["line"] - 2, "ab".index(each["column"])) for each in found} == set(
        zip(*np.nonzero(fit.outliers(data)), strict=True)
    )
    for each in found:
        assert each["z"] == fit.transform(data)[each["line"] - 2, "ab".index(each["column"])]
    assert [abs(each["z"]) for each in found] == sorted((abs(each["z"]) for each in found), reverse=True)


def test_outliers_of_a_given_fit_and_cutoff(run, table, tmp_path):
    fit, out = tmp_path / "fit.json", tmp_path / "outliers.csv"
    run("fit", table, "--family", "box-cox", "--estimator", "robust", "--no-standardize", "-o", fit)
    code, text, err = run("outliers", table, "--fit", fit, "--cutoff", "0.9999999", "-o", out)
    assert (code, err) == (0, "")
    with out.open() as file:
        found = list(csv.DictReader(file))
    assert [(each["line"], each["column"]) for each in found[:3]] == [("12", "a"), ("22", "b"), ("32", "a")]
    assert len(found) == int(text.splitlines()[-1].split()[0])
    assert float(found[0]["z"]) > 5.0  # standardized even if the fit's transform is not


def test_options_of_fitting_are_rejected_with_a_saved_fit(run, table, tmp_path):
    fit = tmp_path / "fit.json"
    run("fit", table, "-o", fit)
    code, out, err = run("outliers", table, "--fit", fit, "--family", "box-cox", "--h", "0.7")
    assert (code, out) == (2, "")
    assert "--family, --h: only for fitting, but --fit names a saved fit" in err


@pytest.mark.slow
def test_plot_draws_a_given_fit(run, table, tmp_path):
    pytest.importorskip("matplotlib")
    fit, picture = tmp_path / "fit.json", tmp_path / "cells.png"
    pk.fit(np.random.default_rng(0).lognormal(size=(30, 1)), column_names=["b"]).save(fit)
    code, out, err = run("plot", table, "--fit", fit, "--kind", "cells", "-o", picture)
    assert (code, err) == (0, "")
    assert "cells of 1 column drawn" in out
    assert picture.stat().st_size > 1000
    code, _, err = run("plot", table, "--fit", fit, "--estimator", "robust", "-o", picture)
    assert code == 2
    assert "leave out one or the other" in err


def test_large_files_are_fitted_with_the_options_of_the_estimator(run, table, monkeypatch, tmp_path):
    whole, blocks = tmp_path / "whole.json", tmp_path / "blocks.json"
    words = ["fit", table, "--estimator", "robust", "--cutoff", "0.9", "-o"]
    run(*words, whole)
    monkeypatch.setattr("powerkern._cli.fit.LARGE", 0)
    run(*words, blocks)
    assert pk.load(blocks).estimator == pk.load(whole).estimator == pk.AdaptiveRewML(cutoff=0.9)


# --- groups, and further near misses ------------------------------------------------------------------


@pytest.fixture
def panel(tmp_path):
    rng = np.random.default_rng(3)
    rows = zip(["b", "a", "c"] * 30, rng.lognormal(size=90).tolist(), rng.lognormal(size=90).tolist(), strict=True)
    path = tmp_path / "panel.csv"
    path.write_text("firm,x,y\n" + "".join(f"{firm},{x!r},{y!r}\n" for firm, x, y in rows))
    return path


def _columns(path):
    """Return the first column of a printed summary in CSV as a list, and the other columns as a matrix of numbers."""
    with path.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [row[0] for row in rows], np.array([row[1:] for row in rows], dtype=float)


def test_groups_are_fitted_each_by_itself(panel, tmp_path, run):
    fit, z, back = tmp_path / "fit.json", tmp_path / "z.csv", tmp_path / "back.csv"
    code, out, _ = run("fit", panel, "--groups", "firm", "-o", fit, "--json")
    assert code == 0
    names, matrix = _columns(panel)
    expected = pk.fit(matrix, groups=names, column_names=["x", "y"])
    found = json.loads(out)["columns"]
    assert pk.load(fit).group_names == ["firm"]
    assert [(each["group"], each["column"]) for each in found] == [(g, c) for g in "abc" for c in "xy"]
    assert [each["lmbda"] for each in found] == expected.lmbda.ravel().tolist()
    assert run("transform", panel, "--fit", fit, "--groups", "firm", "-o", z)[0] == 0
    assert np.array_equal(_columns(z)[1], expected.transform(matrix, groups=names))
    assert run("transform", panel, "--fit", fit)[1] == z.read_text()  # the fit keeps the name of the column of labels
    assert run("inverse", z, "--fit", fit, "--by", "firm", "-o", back)[0] == 0
    assert np.allclose(_columns(back)[1], matrix, rtol=1e-12)


@pytest.mark.parametrize("label", ["", " ", "?"])
def test_a_label_that_is_missing_is_named_by_its_line(label, panel, tmp_path, run):
    fit, z, gap = tmp_path / "fit.json", tmp_path / "z.csv", tmp_path / "gap.csv"
    assert run("fit", panel, "--groups", "firm", "-o", fit)[0] == 0
    gap.write_text(panel.read_text() + f"{label},1.5,2.5\n")
    for words in (["fit", gap], ["transform", gap, "--fit", fit, "-o", z]):
        code, _, err = run(*words, "--groups", "firm", "--missing", "?")
        assert code == 2
        assert "gap.csv, column 'firm', line 92: the label is missing" in err


def test_groups_belong_to_a_fit_by_groups(panel, tmp_path, run):
    grouped, plain, nameless = (tmp_path / f"{name}.json" for name in ("grouped", "plain", "nameless"))
    assert run("fit", panel, "--groups", "firm", "-o", grouped)[0] == 0
    assert run("fit", panel, "-o", plain)[0] == 0
    names, matrix = _columns(panel)
    pk.fit(matrix, groups=names, column_names=["x", "y"]).save(nameless)
    for words, message in [
        (("transform", panel, "--fit", nameless), "name the column of their labels with --groups"),
        (("transform", panel, "--fit", plain, "--groups", "firm"), "leave out --groups"),
        (("transform", panel, "--fit", grouped, "--groups", "frim"), "no column 'frim'; did you mean 'firm'?"),
        (("transform", panel, "--fit", grouped, "--groups", "x"), "--groups names a column that is fitted"),
        (("outliers", panel, "--fit", grouped), "which only transform and inverse accept"),
        (("transform", panel, "--fit", panel), "--fit takes a file written by `powerkern fit -o`"),
    ]:
        code, _, err = run(*words)
        assert code == 2
        assert message in err
        assert err.count("\n") == 1


@pytest.mark.parametrize(
    "words, message",
    [
        (["--colums", "a"], "powerkern fit: unrecognized arguments: --colums a; did you mean '--columns'?"),
        (["--columns", "A"], "no column 'A'; did you mean 'a'?"),
        (["--cutoff", "0.9"], "--cutoff is an option of --estimator central-mle, robust"),
        (["--estimator", "ml"], "did you mean 'mle'?"),
        (["--delimiter", "komma"], "one character, tab, space, comma or semicolon"),
    ],
)
def test_the_nearest_word_is_suggested(table, words, message, run):
    code, _, err = run("fit", table, *words)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("cell", ["1,234.5", "1'234.5", "12%", "$12", "€ 1.234,50", "12 €"])
def test_marked_numbers_are_not_left_out_in_silence(tmp_path, cell, run):
    path = tmp_path / "marked.csv"
    path.write_text(f'a,b\n"{cell}",1\n"{cell}",2\n"{cell}",4\n')
    assert f"column 'a' of marked.csv is left out: line 2: {cell!r} is not a number" in run("fit", path)[2]


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("x.xlsx", b"PK\3\4", "x.xlsx is a spreadsheet: save the sheet as .csv"),
        ("x.csv", b"PK\3\4\0\0\0", "x.csv is a ZIP archive or a spreadsheet (.xlsx, .ods): unpack it, or save"),
        ("x.zip", b"PK\3\4\0\0\0", "x.zip is a ZIP archive: unpack it"),
        ("folder", None, "folder is a folder: name a file in it"),
    ],
)
def test_files_that_are_not_tables_are_refused(tmp_path, name, content, message, run):
    path = tmp_path / name
    path.mkdir() if content is None else path.write_bytes(content)
    code, _, err = run("fit", path)
    assert code == 2
    assert message in err
