"""Thousands separators, units, and advice about other number formats; numbers must never be misread."""

from __future__ import annotations

import json
import re
import shlex

import numpy as np
import pytest

import powerkern as pk
from powerkern._input.tables.numbers import CellParser, ColumnParser
from powerkern._input.tables.table import TextFormat

VALUES = [1014.0, 2310.0, 12500.5, 999.25, 1.0, 1234567.0]
OTHER = [1.5, 2.25, 4.0, 8.5, 3.125, 1.0]


def formatted(value: float, thousands: str, decimal: str, digits: str = "{:,.2f}") -> str:
    return digits.format(value).replace(",", "T").replace(".", decimal).replace("T", thousands)


def table(cells: list[str], other: list[str] | None = None, head: str = "a;b") -> str:
    other = list(map(str, range(3, 3 + len(cells)))) if other is None else other
    return head + "\n" + "".join(f'"{cell}";{plain}\n' for cell, plain in zip(cells, other, strict=True))


#: Cells that mean `VALUES`, and the options that read them.
FORMATS = {
    "English": ([formatted(v, ",", ".") for v in VALUES], "--thousands ,"),
    "English, by name": ([formatted(v, ",", ".") for v in VALUES], "--thousands comma"),
    "German": ([formatted(v, ".", ",") for v in VALUES], "--decimal , --thousands ."),
    "French": ([formatted(v, "\u202f", ",") for v in VALUES], "--decimal , --thousands space"),
    "no-break spaces": ([formatted(v, "\xa0", ",") for v in VALUES], "--decimal , --thousands space"),
    "Swiss": ([formatted(v, "\u2019", ".") for v in VALUES], "--thousands apostrophe"),
    "Swiss, typed": ([formatted(v, "'", ".") for v in VALUES], '--thousands "\'"'),
    "dollars": ([f"${v:,.2f}" for v in VALUES], "--thousands , --units '$'"),
    "euros": ([formatted(v, ".", ",") + " \u20ac" for v in VALUES], "--decimal , --thousands . --units '\u20ac'"),
    "a currency's code": ([f"EUR {v}" for v in VALUES], "--units EUR"),
    "percentages": ([f"{v}%" for v in VALUES], "--units %"),
    "percentages with a space": ([f"{v} %" for v in VALUES], "--units %"),
    "kilograms": ([f"{v} kg" for v in VALUES], "--units kg"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_numbers_are_read_and_written_plainly(run, tmp_path, name):
    cells, options = FORMATS[name]
    words = shlex.split(options)
    decimal = "," if "--decimal" in words else "."
    path, fit, z, back = (tmp_path / each for each in ("x.csv", "fit.json", "z.csv", "back.csv"))
    path.write_text(table(cells))
    code, out, err = run("fit", path, *words, "--json", "-o", fit)
    assert (code, err) == (0, "")
    assert [each["column"] for each in json.loads(out)["columns"]] == ["a", "b"]
    assert json.loads(out)["columns"][0]["lmbda"] == pk.fit(np.array(VALUES)).lmbda[0]
    # plain numbers with the table's decimal sign, which the same options can read
    assert run("transform", path, "--fit", fit, "-o", z, *words)[0] == 0
    written = [line.split(";")[0] for line in z.read_text().splitlines()[1:]]
    assert all(re.fullmatch(rf"-?\d+{re.escape(decimal)}\d+(e-\d+)?", cell) for cell in written)
    assert run("inverse", z, "--fit", fit, "-o", back, *words)[0] == 0
    code, out, err = run("transform", back, "--fit", fit, *words)
    assert (code, err) == (0, "")
    again = [float(line.split(";")[0].replace(",", ".")) for line in out.splitlines()[1:]]
    assert again == pytest.approx([float(cell.replace(",", ".")) for cell in written], rel=1e-9)


@pytest.mark.parametrize("name", [name for name in FORMATS if "," not in name])
def test_the_advice_reads_the_numbers_correctly(run, tmp_path, name):
    """Without options, a file causes a warning. With the options suggested there, its numbers are read correctly."""
    cells, _ = FORMATS[name]
    path = tmp_path / "x.csv"
    path.write_text(table(cells))
    code, out, err = run("fit", path)
    assert code == 0
    reason = re.fullmatch(
        r"powerkern: warning: column 'a' of x.csv is left out: line 2: .* is not a number; pass (.*)\n", err
    )
    code, out, err = run("fit", path, *shlex.split(reason[1]), "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["columns"][0]["lmbda"] == pk.fit(np.array(VALUES)).lmbda[0]
    # an error if the column is requested
    code, out, err = run("fit", path, "--columns", "a")
    assert (code, out) == (2, "")
    assert err.endswith(f"is not a number; pass {reason[1]}\n")


#: Cells of a column, cells of a second column, options, and the expected advice.
ADVICE = {
    "both are possible": (
        ["1,014", "2,310"], ["1", "2"], "",
        "'1,014' is not a number; pass --thousands , if '1,014' means 1014, or --decimal , if '1,014' means 1.014",
    ),
    "the other column has points": (["1,014", "2,310"], ["1.5", "2.5"], "", "pass --thousands ,"),
    "a leading zero": (["1,014", "0,310"], ["1", "2"], "", "pass --decimal ,"),
    "too few digits": (["1,014", "2,31"], ["1", "2"], "", "pass --decimal ,"),
    "commas beside points": (
        ["1,5", "2,31"], ["1.5", "2.5"], "",
        "its decimal sign is ',', and other columns have '.': write all with the same decimal sign",
    ),
    "points beside commas": (
        ["1.5", "2.31"], ["1,5", "2,5"], "--decimal ,",
        "its decimal sign is '.', and other columns have ',': write all with the same decimal sign",
    ),
    "points of thousands beside commas": (["1.014", "2.310"], ["1,5", "2,5"], "--decimal ,", "pass --thousands ."),
    "points of either meaning": (
        ["1.014", "2.310"], ["1", "2"], "--decimal ,",
        "no --decimal if '1.014' means 1.014, or --thousands . if '1.014' means 1014",
    ),
    "percentages of either meaning": (
        ["1,014%", "2,310%"], ["1", "2"], "",
        "--thousands , --units % if '1,014%' means 1014, or --decimal , --units % if '1,014%' means 1.014",
    ),
    "a dash": (["1", "2", "-"], ["1", "2", "3"], "", "if it means missing, pass --missing=-"),
    "two marks beside a word": (
        ["1", "2", "-", "?", "4", "5"], ["1", "2", "3", "x", "5", "6"], "--missing x",
        "if it means missing, pass --missing=x,-,'?'",
    ),
    "a dash beside dollars": (
        ["$1", "$2", "-"], ["1", "2", "3"], "", "pass --units '$', and, if '-' means missing, --missing=-",
    ),
    "two units": (
        ["1%", "2%", "0.03"], ["1", "2", "3"], "--units %",
        "line 4: '0.03' has no unit and line 2 has the unit '%'; write all in the same unit",
    ),
    "two currencies": (
        ["1", "$2", "\u20ac3"], ["1", "2", "3"], "--units $,\u20ac",
        "line 3: '$2' has the unit '$' and line 2 has no unit; write all in the same unit",
    ),
    "parentheses": (["1", "2", "($1,000)"], ["1", "2", "3"], "", "write negative numbers with a minus"),
    "words": (["1", "2", "about 3"], ["1", "2", "3"], "", "'about 3' is not a number (see --missing and --units)"),
}  # fmt: skip


@pytest.mark.parametrize("name", ADVICE)
def test_advice_suggests_the_options_for_the_cells(run, tmp_path, name):
    cells, other, options, expected = ADVICE[name]
    if name == "two marks beside a word":
        expected = "if it means missing, pass --missing='x,-,?'"
    (tmp_path / "x.csv").write_text(table(cells, other))
    code, out, err = run("fit", tmp_path / "x.csv", *shlex.split(options))
    assert err.count("\n") == 1, err
    assert "column 'a'" in err
    assert err.endswith(expected + "\n") or expected in err
    code, out, err = run("fit", tmp_path / "x.csv", "--columns", "a", *shlex.split(options))
    assert (code, out) == (2, "")


def test_a_unit_that_is_lost_in_a_later_block_is_noticed(run, tmp_path, monkeypatch):
    monkeypatch.setattr("powerkern._input.tables.text._CELLS_AT_ONCE", 4)
    (tmp_path / "x.csv").write_text(table(["1%", "2%", "3%", "4%", "0.05", "0.06"]))
    code, _, err = run("fit", tmp_path / "x.csv", "--columns", "a", "--units", "%")
    assert code == 2
    assert "line 6: '0.05' has no unit and line 2 has the unit '%'" in err
    (tmp_path / "x.csv").write_text(table(["1", "2", "3", "4", "5%", "6%"]))
    code, _, err = run("fit", tmp_path / "x.csv", "--columns", "a", "--units", "%")
    assert code == 2
    assert "line 6: '5%' has the unit '%' and line 2 has no unit" in err


def test_columns_with_separators_are_no_identifiers(run, tmp_path):
    cells = [f"{7_000_000 + 17 * i:,}" for i in range(9)]
    (tmp_path / "x.csv").write_text(table(cells))
    found = json.loads(run("fit", tmp_path / "x.csv", "--thousands", ",", "--json")[1])
    assert found["left_out"] == []
    (tmp_path / "x.csv").write_text(table([f"{7_000_000 + 17 * i} kg" for i in range(9)]))
    found = json.loads(run("fit", tmp_path / "x.csv", "--units", "kg", "--json")[1])
    assert found["left_out"] == []


@pytest.mark.parametrize(
    "cell", ["1,01", "1,0145", "01,014", "1,014,5", "1.014,5", ",014", "1,,014", "$1", "--5", "1_000", "1 kg %"]
)
def test_wrong_groups_of_digits_are_refused(run, tmp_path, cell):
    (tmp_path / "x.csv").write_text(table(["1,014", cell]))
    code, out, err = run("fit", tmp_path / "x.csv", "--columns", "a", "--thousands", ",", "--units", "kg")
    assert (code, out) == (2, "")
    assert f"line 3: {cell!r} is not a number" in err


@pytest.mark.parametrize(
    "cell, value",
    [("12,34,567.5", 1234567.5), ("-1,014", -1014.0), ("\N{MINUS SIGN}1,014", -1014.0), ("+1,014e2", 101400.0)],
)
def test_numbers_with_thousands_separators_are_read(run, tmp_path, cell, value):
    (tmp_path / "x.csv").write_text(table(["1", "2", cell]))
    out = run("fit", tmp_path / "x.csv", "--columns", "a", "--thousands", ",", "--json")[1]
    assert json.loads(out)["columns"][0]["lmbda"] == pk.fit(np.array([1.0, 2.0, value])).lmbda[0]


@pytest.mark.parametrize("cell, value", [("-$2.5", -2.5), ("$-2.5", -2.5), ("$ 2.5", 2.5), ("2.5$", 2.5), ("+$2", 2.0)])
def test_signs_may_stand_on_either_side_of_units(run, tmp_path, cell, value):
    (tmp_path / "x.csv").write_text(table(["$1", "$20", cell]))
    out = run("fit", tmp_path / "x.csv", "--columns", "a", "--units", "$", "--json")[1]
    assert json.loads(out)["columns"][0]["lmbda"] == pk.fit(np.array([1.0, 20.0, value])).lmbda[0]


@pytest.mark.parametrize(
    "words, message",
    [
        (["--thousands", "."], "--thousands and the decimal sign are both '.'"),
        (["--thousands", ",", "--decimal", ","], "--thousands and the decimal sign are both ','"),
        (["--thousands", ";"], "';' is not comma, point, space or apostrophe"),
        (["--units", "5"], "'5' is not a unit"),
        (["--units", "-"], "'-' is not a unit"),
        (["--units", "%,"], "'' is not a unit"),
    ],
)
def test_wrong_options_are_refused(run, tmp_path, words, message):
    (tmp_path / "x.csv").write_text(table(["1", "2"]))
    code, out, err = run("fit", tmp_path / "x.csv", *words)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    "cells, is_mostly",
    [
        (["<1", "2", "3"], True),
        (["<1", ">2", ""], False),  # only limits
        (["abc", "2", "NA"], True),
        (["abc", "def", "2"], False),
        (["abc", "<1", "2"], True),
    ],
)
def test_a_column_holds_mostly_numbers_if_at_least_half_of_its_known_cells_are(
    cells: list[str], is_mostly: bool
) -> None:
    text = TextFormat()
    parsed = ColumnParser(CellParser(text), text).parse(cells, range(len(cells)))
    assert parsed.problem is not None
    assert parsed.mostly_numbers == is_mostly
