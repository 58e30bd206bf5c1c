"""On the command line, large files are fitted one block of rows at a time, with the same result."""

from __future__ import annotations

import json

import numpy as np
import pytest

import powerkern as pk
from powerkern._input.tables import files


@pytest.fixture
def in_blocks(monkeypatch):
    """Treat every file as large, and read text and Parquet files in blocks of a few rows."""
    monkeypatch.setattr("powerkern._cli.fit.LARGE", 0)
    monkeypatch.setattr("powerkern._input.tables.text._CELLS_AT_ONCE", 40)
    monkeypatch.setattr("powerkern._input.tables.parquet.CELLS", 40)


def long_table(path, n=200):
    rng = np.random.default_rng(4)
    lines = ["id,width,height,kind,note"]
    for i, (width, height) in enumerate(rng.lognormal(size=(n, 2)).tolist()):
        lines.append(f"{i},{width!r},{'' if i % 9 == 0 else repr(height)},{'ab'[i % 2]},{'x' if i == 150 else i}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--family", "box-cox", "--columns", "width,height"),
        ("--columns", "height,width"),
        ("--bounds=-1,0",),
        ("--family", "best", "--criterion", "ppcc"),
    ],
)
def test_large_files_are_fitted_in_blocks(run, tmp_path, request, options):
    table = long_table(tmp_path / "long.csv")
    code, out, err = run("fit", table, *options, "--json")
    request.getfixturevalue("in_blocks")
    again, blockwise, warned = run("fit", table, *options, "--json")
    assert err == warned
    assert ("line 152: 'x' is not a number" in err) == ("--columns" not in options)
    assert code == again == 0
    whole, parts = json.loads(out), json.loads(blockwise)
    assert (whole["rows"], whole["left_out"]) == (parts["rows"], parts["left_out"])
    for one, other in zip(whole["columns"], parts["columns"], strict=True):
        assert one["lmbda"] == pytest.approx(other["lmbda"], rel=1e-11, abs=1e-11)
        assert (one["column"], one["n_obs"], one["status"]) == (other["column"], other["n_obs"], other["status"])


def test_large_files_are_refused_by_line(run, tmp_path, in_blocks):
    table = long_table(tmp_path / "long.csv")
    text = table.read_text(encoding="utf-8").splitlines()
    text[120] = "119,-1,2,a,3"
    table.write_text("\n".join(text), encoding="utf-8")
    code, _, err = run("fit", table, "--family", "box-cox", "--columns", "width,height")
    assert code == 2
    assert "column 'width', line 121: the value is -1.0" in err
    code, _, err = run("fit", table, "--columns", "kind")
    assert code == 2
    assert "column 'kind', line 2: 'a' is not a number" in err


def test_parquet_is_fitted_in_blocks(run, tmp_path, in_blocks):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    x = np.random.default_rng(0).normal(size=150)
    parquet.write_table(pyarrow.table({"x": x, "name": ["a"] * 150}), tmp_path / "x.parquet")
    code, out, _ = run("fit", tmp_path / "x.parquet", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["rows"] == 150
    assert found["columns"][0]["lmbda"] == pytest.approx(pk.fit(x).lmbda[0], rel=1e-11)


def test_tables_of_many_columns_hold_all_rows(run, tmp_path, in_blocks, monkeypatch):
    table = long_table(tmp_path / "long.csv")
    monkeypatch.setattr("powerkern._cli.fit._MOST_COLUMNS", 1)
    for command in ("fit", "summary"):
        code, out, _ = run(command, table, "--columns", "width,height", "--json")
        assert code == 0
        assert len(json.loads(out)["columns"]) == 2


@pytest.fixture
def not_whole(in_blocks, monkeypatch):
    """Fail if a whole table is read at once."""

    read = files.read

    def refused(*args, **options):
        raise AssertionError("read as a whole")

    def surveyed(path, choose, text, keep=True):
        return refused() if keep else read(path, choose, text, keep)

    monkeypatch.setattr("powerkern._input.tables.files.read", surveyed)
    monkeypatch.setattr("powerkern.fit", refused)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["robust", "mtl"])
def test_robust_fits_in_blocks(run, tmp_path, request, estimator):
    small, long = long_table(tmp_path / "small.csv"), long_table(tmp_path / "long.csv", 6000)
    words = ("--columns", "width,height", "--family", "box-cox", "--estimator", estimator, "--json")
    found = {path: json.loads(run("fit", path, *words)[1])["columns"] for path in (small, long)}
    request.getfixturevalue("not_whole")
    assert json.loads(run("fit", small, *words)[1])["columns"] == found[small]
    for one, other in zip(json.loads(run("fit", long, *words)[1])["columns"], found[long], strict=True):
        assert one["lmbda"] == pytest.approx(other["lmbda"], abs=1e-3)
        assert one["n_obs"] == other["n_obs"]


@pytest.mark.slow
def test_the_error_of_lambda_is_printed(run, tmp_path, in_blocks):
    table = long_table(tmp_path / "long.csv", 6000)
    words = ("fit", table, "--columns", "width", "--estimator")
    _, out, _ = run(*words, "robust", "--json", "-o", tmp_path / "fit.json")
    error = pk.PowerFit.from_json((tmp_path / "fit.json").read_text(encoding="utf-8")).lmbda_error[0]
    assert json.loads(out)["columns"][0]["lmbda_error"] == error > 0.0
    assert "lmbda_error" in run(*words, "robust")[1].splitlines()[0]
    assert "lmbda_error" not in run(*words, "mle")[1]


@pytest.mark.parametrize("command", ["fit", "summary"])
def test_a_warning_of_every_pass_is_printed_once(run, tmp_path, in_blocks, command):
    table = tmp_path / "spectra.csv"
    table.write_text("1,2\n" + "".join(f"{i},{i * i}\n" for i in range(20)), encoding="utf-8")
    _, _, err = run(command, table, "--estimator", "robust")
    assert err.count("the first line of spectra.csv holds only numbers") == 1


def test_estimators_that_need_all_values_read_the_whole(run, tmp_path, in_blocks):
    table = long_table(tmp_path / "long.csv")
    code, out, _ = run("fit", table, "--columns", "width", "--estimator", "ppcc", "--json")
    assert code == 0
    assert json.loads(out)["estimator"] == "ppcc"


def test_a_summary_in_blocks_draws_rows(run, tmp_path, request, monkeypatch):
    table = long_table(tmp_path / "long.csv")
    code, out, _ = run("summary", table, "--columns", "height,width", "--json")
    request.getfixturevalue("not_whole")
    again, blockwise, _ = run("summary", table, "--columns", "height,width", "--json")
    assert code == again == 0
    whole, parts = json.loads(out), json.loads(blockwise)
    for one, other in zip(whole["columns"], parts["columns"], strict=True):
        assert one.keys() == other.keys()
        for name, value in one.items():
            assert other[name] == (pytest.approx(value, rel=1e-6, abs=1e-12) if isinstance(value, float) else value)
    monkeypatch.setattr("powerkern._cli.fit._ROWS_DRAWN", 50)
    code, out, _ = run("summary", table, "--columns", "height,width")
    assert code == 0
    assert "measures of normality are for 50 rows, drawn at random" in out


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_weights_are_a_column(run, tmp_path, request, kind):
    """Any numeric column can hold the weights, even one that counts rows and would otherwise be taken for row names."""
    pandas = pytest.importorskip("pandas")
    rng, n = np.random.default_rng(4), 200
    x, y = rng.lognormal(size=(2, n))
    frame = pandas.DataFrame({"index": np.arange(n), "x": x, "kind": "a", "w": rng.integers(0, 4, n), "y": y})
    path = tmp_path / f"t.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    expected = {name: pk.fit(frame[["x", "y"]], sample_weight=frame[name]) for name in ("index", "w")}
    for block_wise in (False, True):
        if block_wise:
            request.getfixturevalue("in_blocks")
        for columns in ((), ("--columns", "y,x")):
            for name, fit in expected.items():
                code, out, _ = run("fit", path, "--weights", name, "--json", *columns)
                assert code == 0
                found = json.loads(out)
                fitted = {one["column"]: one for one in found["columns"]}
                for j, column in enumerate("xy"):
                    assert fitted[column]["lmbda"] == pytest.approx(fit.lmbda[j], rel=1e-11, abs=1e-11)
                    assert fitted[column]["n_obs"] == fit.n_obs[j]
                assert name not in fitted
                assert name not in [one["column"] for one in found["left_out"]]
        bad = frame.assign(w=np.where(np.arange(n) == 70, -1, 1))
        bad.to_csv(path, index=False) if kind == "csv" else bad.to_parquet(path)
        code, _, err = run("fit", path, "--weights", "w")
        assert code == 2
        place = "line 72" if kind == "csv" else "row 70"
        assert f"column 'w', {place}: the weight is -1.0; weights must be finite and not negative" in err
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    assert run("fit", path, "--weights", "v")[2].strip().endswith("has no column 'v'")
    assert "column 'kind'" in run("fit", path, "--weights", "kind")[2]
    code, out, _ = run("summary", path, "--columns", "x,y", "--weights", "w", "--json")
    assert json.loads(out)["columns"][0]["lmbda"] == pytest.approx(expected["w"].lmbda[0])
