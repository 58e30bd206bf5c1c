"""Detection limits on the command line: options with limits, and cells such as ``<0.05`` and ``<LOD``."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.testing as npt
import pandas as pd
import pytest

import powerkern as pk

RNG = np.random.default_rng(43)
N_ROWS = 60
LEAD, ZINC = RNG.lognormal(size=(2, N_ROWS))
#: The lower limit of lead alternates between two values; zinc has one upper limit.
LOD = np.where(np.arange(N_ROWS) % 2, 0.4, 0.7)
IS_BELOW, IS_ABOVE = LEAD < LOD, ZINC > 2.0
#: The numbers in the file: limits in place of the censored values.
NUMBERS = np.column_stack([np.fmax(LEAD, LOD), np.fmin(ZINC, 2.0)])
BELOW = np.column_stack([IS_BELOW, np.zeros(N_ROWS, bool)])
ABOVE = np.column_stack([np.zeros(N_ROWS, bool), IS_ABOVE])


def cells_of(numbers: Sequence[float], marks: Sequence[bool], sign: str) -> list[str]:
    """Return numbers as text, with `sign` ("<" or ">") before each number whose entry in `marks` is true."""
    return [f"{sign}{number!r}" if mark else repr(number) for number, mark in zip(numbers, marks, strict=True)]


def write_table(path: Path, **columns: Sequence[str]) -> Path:
    """Write columns of cells as CSV."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def read_scores(path: Path, *names: str) -> np.ndarray:
    """Read columns of numbers; empty cells are NaN."""
    return pd.read_csv(path)[list(names)].to_numpy(float)


@pytest.fixture
def water(tmp_path: Path) -> Path:
    """A table of sites with lead and zinc concentrations; censored cells state their limits."""
    lead, zinc = NUMBERS.T.tolist()
    return write_table(
        tmp_path / "water.csv",
        lead=cells_of(lead, IS_BELOW.tolist(), "<"),
        zinc=cells_of(zinc, IS_ABOVE.tolist(), ">"),
        site=["north", "south", "south"] * (N_ROWS // 3),
    )


def fit_json(run, *words: object) -> list[dict]:
    """Run ``powerkern fit`` with the arguments `words`; return one dictionary per fitted column."""
    code, out, err = run("fit", *words, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)["columns"]


# --- cells that state their limit ---------------------------------------------------------------------


def test_cells_with_signs_are_limits(run, water: Path, tmp_path: Path) -> None:
    path = tmp_path / "fit.json"
    code, out, err = run("fit", water, "--family", "box-cox", "-o", path)
    assert (code, err) == (0, "")
    n_below, n_above = IS_BELOW.sum(), IS_ABOVE.sum()
    assert f"cells read as limits: 'lead' {n_below} below, 'zinc' {n_above} above\n" in out
    expected = pk.fit(NUMBERS, "box-cox", below=BELOW, above=ABOVE)
    found = pk.load(path)
    npt.assert_array_equal(found.lmbda, expected.lmbda)
    npt.assert_array_equal(found.scale, expected.scale)
    columns = fit_json(run, water, "--family", "box-cox")
    assert [each["n_censored"] for each in columns] == [n_below, n_above]
    said = json.loads(run("fit", water, "--family", "box-cox", "--json")[1])
    assert said["cells_read_as_limits"] == [
        {"column": "lead", "below": n_below, "above": 0},
        {"column": "zinc", "below": 0, "above": n_above},
    ]


@pytest.mark.parametrize(
    "marked, options",
    [
        ("< 0.5", []),
        ("<=0.5", []),
        ("\u22640.5", []),
        ("  <0.5 ", []),
        ("<0.5 mg", ["--units", "mg"]),
        ("<0,5", ["--decimal", ",", "--delimiter", ";"]),
        ("<5e-1", []),
    ],
)
def test_every_spelling_of_a_lower_limit_is_read(run, tmp_path: Path, marked: str, options: list[str]) -> None:
    decimal, unit = ("," if "," in marked else "."), (" mg" if "mg" in marked else "")
    cells = [marked if x < 0.5 else repr(x).replace(".", decimal) + unit for x in LEAD.tolist()]
    path = tmp_path / "x.csv"
    path.write_text("lead;plain\n" + "".join(f"{cell};1\n" for cell in cells))
    (column,) = fit_json(run, path, "--columns", "lead", "--family", "box-cox", *options)
    below = LEAD < 0.5
    assert column["lmbda"] == pk.fit(np.where(below, 0.5, LEAD), "box-cox", below=below).lmbda[0]


def test_upper_limits_are_spelled_alike(run, tmp_path: Path) -> None:
    for sign in (">", "> ", ">=", "\u2265"):
        cells = cells_of(NUMBERS[:, 1].tolist(), IS_ABOVE.tolist(), sign)
        (column,) = fit_json(run, write_table(tmp_path / "x.csv", zinc=cells), "--family", "box-cox")
        assert column["lmbda"] == pk.fit(NUMBERS[:, 1], "box-cox", above=IS_ABOVE).lmbda[0]


def test_groups_and_weights_are_those_of_the_rows(run, water: Path, tmp_path: Path) -> None:
    columns = pd.read_csv(water, dtype=str)
    weights = RNG.integers(1, 4, N_ROWS)
    path = tmp_path / "weighted.csv"
    columns.assign(w=weights).to_csv(path, index=False)
    found = {
        (each["group"], each["column"]): each["lmbda"]
        for each in fit_json(run, path, "--family", "box-cox", "--groups", "site", "--weights", "w")
    }
    for site in ("north", "south"):
        rows = (columns["site"] == site).to_numpy()
        expected = pk.fit(NUMBERS[rows], "box-cox", below=BELOW[rows], above=ABOVE[rows], sample_weight=weights[rows])
        npt.assert_allclose([found[site, "lead"], found[site, "zinc"]], expected.lmbda, rtol=1e-9)


def test_columns_of_classes_are_not_measurements(run, tmp_path: Path) -> None:
    path = write_table(tmp_path / "x.csv", age=["<18", ">=18"] * 20, x=[repr(v) for v in LEAD[:40].tolist()])
    code, out, err = run("fit", path)
    assert (code, err) == (0, "")
    assert "left out, not numeric: age" in out
    assert "limits" not in out


def test_weights_are_numbers(run, tmp_path: Path) -> None:
    path = write_table(tmp_path / "x.csv", x=[repr(v) for v in LEAD.tolist()], w=["1"] * (N_ROWS - 1) + ["<2"])
    code, _, err = run("fit", path, "--weights", "w")
    assert (code, err.count("\n")) == (2, 1)
    assert f"column 'w', line {N_ROWS + 1}: '<2' is a limit, not a number; write numbers only" in err


# --- options with limits ------------------------------------------------------------------------------


def test_options_censor_columns_of_numbers(run, tmp_path: Path) -> None:
    cells = [[repr(v) for v in column.tolist()] for column in (LEAD, ZINC)]
    path, fit = write_table(tmp_path / "x.csv", lead=cells[0], zinc=cells[1]), tmp_path / "fit.json"
    words = ["--below-limit", "lead=0.5", "--below-limit", "zinc=0.2", "--above-limit", "zinc=2"]
    columns = fit_json(run, path, "--family", "box-cox", *words, "-o", fit)
    limits = ([0.5, 0.2], [np.inf, 2.0])
    expected = pk.fit(np.column_stack([LEAD, ZINC]), "box-cox", limits=limits)
    assert [each["lmbda"] for each in columns] == expected.lmbda.tolist()
    # the saved fit keeps the limits
    x = np.array([[0.1, 3.0]])
    npt.assert_allclose(pk.load(fit).expected(x), expected.expected(x))


def test_cells_without_a_number_take_the_limit_of_their_column(run, tmp_path: Path) -> None:
    is_below, is_above = LEAD < 0.5, LEAD > 2.0
    cells = np.where(is_below, "<LOD", np.where(is_above, ">LOQ", [repr(v) for v in LEAD.tolist()])).tolist()
    path = write_table(tmp_path / "x.csv", **{"Pb, total": cells})
    (column,) = fit_json(
        run, path, "--family", "box-cox", "--below-limit", "Pb, total=0.5", "--above-limit", "Pb, total=2"
    )
    assert column["lmbda"] == pk.fit(LEAD, "box-cox", limits=(0.5, 2.0)).lmbda[0]
    assert column["n_censored"] == (is_below | is_above).sum()


def test_a_cell_without_a_number_names_the_option(run, tmp_path: Path) -> None:
    cells = ["<LOD" if x < 0.5 else repr(x) for x in LEAD.tolist()]
    path = write_table(tmp_path / "x.csv", lead=cells, zinc=[repr(v) for v in ZINC.tolist()])
    line = 2 + cells.index("<LOD")
    sentence = f"line {line}: '<LOD' is a limit without a number; pass --below-limit lead=NUMBER"
    code, out, err = run("fit", path)
    assert code == 0
    assert err == f"powerkern: warning: column 'lead' of {path.name} is left out: {sentence}\n"
    assert "zinc" in out
    code, _, err = run("fit", path, "--columns", "lead")
    assert (code, err) == (2, f"powerkern fit: {path.name}, column 'lead', {sentence}\n")


@pytest.mark.parametrize(
    "words, expected",
    [
        (["--below-limit", "lead"], "'lead' is not COLUMN=LIMIT, such as lead=0.05"),
        (["--below-limit", "lead=low"], "'lead=low' is not COLUMN=LIMIT"),
        (["--below-limit", "lead=nan"], "'lead=nan' is not COLUMN=LIMIT"),
        (["--below-limit", "=3"], "'=3' is not COLUMN=LIMIT"),
        (["--below-limit", "leed=1"], "has no column 'leed'; did you mean 'lead'?"),
        (["--below-limit", "site=1"], "column 'site': --below-limit names a column that is not fitted"),
        (["--below-limit", "lead=1", "--below-limit", "lead=2"], "--below-limit names column 'lead' twice"),
        (["--below-limit", "lead=1", "--above-limit", "lead=1"], "--below-limit 1 must be less than --above-limit 1"),
        (["--below-limit", "lead=1", "--estimator", "robust"], "detection limits work only with --estimator mle"),
        (["--below-limit", "lead=1", "--family", "best"], "only with one family, not with --family best"),
        (["--above-limit", "lead=1", "--origin", "fit"], "not with --origin fit"),
    ],
)
def test_wrong_limits_are_one_sentence(run, tmp_path: Path, words: list[str], expected: str) -> None:
    path = write_table(tmp_path / "x.csv", lead=[repr(v) for v in LEAD.tolist()], site=["a"] * N_ROWS)
    code, out, err = run("fit", path, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert expected in err


@pytest.mark.parametrize("command", ["fit", "outliers"])
def test_robust_fits_leave_columns_with_limits_out_and_say_why(run, water: Path, command: str) -> None:
    table = pd.read_csv(water, dtype=str).assign(x=np.linspace(1.0, 2.0, N_ROWS))
    table.to_csv(water, index=False)
    code, out, err = run(command, water, "--estimator", "robust")
    assert code == 0
    assert "cells read as limits" not in out
    assert "columns 'lead', 'zinc' of water.csv are left out" in err
    assert "is a limit, not a number; detection limits work only with --estimator mle" in err
    assert err.count("\n") == 1


# --- applying a fit -----------------------------------------------------------------------------------


def test_transform_puts_expectations_in_the_places_of_limits(run, water: Path, tmp_path: Path) -> None:
    fit, z = tmp_path / "fit.json", tmp_path / "z.csv"
    assert run("fit", water, "--family", "box-cox", "-o", fit)[0] == 0
    code, _, err = run("transform", water, "--fit", fit, "-o", z)
    n_below, n_above = IS_BELOW.sum(), IS_ABOVE.sum()
    said = f"cells beyond a limit, replaced by their expected scores: 'lead' {n_below} below, 'zinc' {n_above} above"
    assert (code, err) == (0, f"powerkern: {said}\n")
    expected = pk.load(fit).expected(NUMBERS, below=BELOW, above=ABOVE)
    npt.assert_allclose(read_scores(z, "lead", "zinc"), expected, rtol=1e-12, atol=1e-14)


def test_transform_takes_the_limits_of_the_fit_or_of_its_options(run, tmp_path: Path) -> None:
    plain = write_table(tmp_path / "x.csv", lead=[repr(v) for v in LEAD.tolist()])
    fit, z = tmp_path / "fit.json", tmp_path / "z.csv"
    assert run("fit", plain, "--family", "box-cox", "--below-limit", "lead=0.5", "-o", fit)[0] == 0
    new = write_table(tmp_path / "new.csv", lead=["<LOD", "0.3", "0.9", "<0.2", "4", "NA"])
    known = pk.load(fit)
    for limit, words in ((0.5, []), (1.0, ["--below-limit", "lead=1"])):
        assert run("transform", new, "--fit", fit, "-o", z, *words)[0] == 0
        numbers = np.array([limit, 0.3, 0.9, 0.2, 4.0, np.nan])
        scores = known.expected(numbers, below=[True, *[False] * 2, True, False, False], limits=(limit, None))
        npt.assert_allclose(read_scores(z, "lead")[:, 0], scores, rtol=1e-12)
    code, _, err = run("transform", new, "--fit", fit, "-o", z, "--below-limit", "leed=1")
    assert (code, err.count("\n")) == (2, 1)


def test_transform_names_the_option_for_a_cell_without_a_number(run, tmp_path: Path) -> None:
    plain = write_table(tmp_path / "x.csv", lead=[repr(v) for v in LEAD.tolist()])
    fit = tmp_path / "fit.json"
    assert run("fit", plain, "--family", "box-cox", "-o", fit)[0] == 0
    new = write_table(tmp_path / "new.csv", lead=["0.3", "<LOD"])
    code, out, err = run("transform", new, "--fit", fit)
    sentence = "column 'lead', line 3: the cell is a limit without a number; pass --below-limit lead=NUMBER"
    assert (code, out, err) == (2, "", f"powerkern transform: new.csv, {sentence}\n")


def test_groups_are_transformed_by_their_own_expectations(run, water: Path, tmp_path: Path) -> None:
    fit, z = tmp_path / "fit.json", tmp_path / "z.csv"
    assert run("fit", water, "--family", "box-cox", "--groups", "site", "-o", fit)[0] == 0
    assert run("transform", water, "--fit", fit, "-o", z)[0] == 0
    site, known = pd.read_csv(water)["site"].to_numpy(), pk.load(fit)
    for label in ("north", "south"):
        rows = site == label
        expected = known[label].expected(NUMBERS[rows], below=BELOW[rows], above=ABOVE[rows])
        npt.assert_allclose(read_scores(z, "lead", "zinc")[rows], expected, rtol=1e-12, atol=1e-14)


def test_scores_cannot_be_limits(run, water: Path, tmp_path: Path) -> None:
    fit = tmp_path / "fit.json"
    assert run("fit", water, "--family", "box-cox", "-o", fit)[0] == 0
    code, _, err = run("inverse", water, "--fit", fit, "-o", tmp_path / "back.csv")
    assert (code, err.count("\n")) == (2, 1)
    assert "is a limit, not a number; write numbers only" in err


def test_a_value_known_only_up_to_a_limit_is_no_outlier(run, water: Path, tmp_path: Path) -> None:
    fit = tmp_path / "fit.json"
    assert run("fit", water, "--family", "box-cox", "-o", fit)[0] == 0
    new = write_table(tmp_path / "new.csv", lead=["1e9", "<1e9", "1"], zinc=["1", "1", ">LOQ"], site=["", "", ""])
    code, out, err = run("outliers", new, "--fit", fit, "--cutoff", "0.99", "--json")
    assert (code, err) == (0, "")
    assert [(each["column"], each["line"]) for each in json.loads(out)["outliers"]] == [("lead", 2)]


@pytest.mark.slow
def test_plots_show_limits_at_their_plotting_positions(
    run, water: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plot = pytest.importorskip("powerkern.plot")
    panels = []

    def record(*arguments: object, **options: object) -> np.ndarray:
        panels.append(draw(*arguments, **options))
        return panels[-1]

    draw = plot.before_after_plot
    monkeypatch.setattr(plot, "before_after_plot", record)
    fit, picture = tmp_path / "fit.json", tmp_path / "qq.png"
    assert run("fit", water, "--family", "box-cox", "-o", fit)[0] == 0
    for words in (["--family", "box-cox"], ["--fit", fit]):
        code, out, err = run("plot", water, "--kind", "qq", "-o", picture, *words)
        assert (code, err) == (0, "")
        assert "cells read as limits: 'lead'" in out
    expected = draw(NUMBERS, pk.load(fit), kinds=["qq"], below=BELOW, above=ABOVE)
    for drawn in panels:
        for ax, other in zip(drawn.flat, expected.flat, strict=True):
            npt.assert_allclose(ax.lines[1].get_xydata(), other.lines[1].get_xydata())
    assert run("plot", water, "--kind", "cells", "--fit", fit, "-o", picture)[0] == 0
    # without a limit in the fit, a cell without a number cannot be drawn
    unknown = write_table(tmp_path / "unknown.csv", lead=["1", "2", "<LOD"], zinc=["1", "2", "3"])
    code, _, err = run("plot", unknown, "--kind", "qq", "--fit", fit, "-o", picture)
    assert (code, err.count("\n")) == (2, 1)
    assert "column 'lead', line 4: '<LOD' is a limit without a number" in err


def test_large_files_with_limits_are_read_whole(run, water: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fit_json(run, water, "--family", "box-cox")
    monkeypatch.setattr("powerkern._cli.fit.LARGE", 10)
    assert fit_json(run, water, "--family", "box-cox") == expected
    code, out, _ = run("summary", water, "--family", "box-cox")
    assert code == 0
    assert "cells read as limits" in out


def test_limits_in_any_block_are_read(run, water: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    expected = fit_json(run, water, "--family", "box-cox")
    whole, parts = tmp_path / "whole.csv", tmp_path / "parts.csv"
    fit = tmp_path / "fit.json"
    assert run("fit", water, "--family", "box-cox", "-o", fit)[0] == 0
    assert run("transform", water, "--fit", fit, "-o", whole)[0] == 0
    monkeypatch.setattr("powerkern._input.tables.text._CELLS_AT_ONCE", 12)
    assert fit_json(run, water, "--family", "box-cox") == expected
    assert run("transform", water, "--fit", fit, "-o", parts)[0] == 0
    assert parts.read_text() == whole.read_text()
