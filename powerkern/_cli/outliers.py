"""Run ``powerkern outliers``."""

from __future__ import annotations

import argparse
import csv
import io
from typing import Any

import numpy as np

import powerkern as pk
from powerkern._cli.fit import fit_table, print_left_out
from powerkern._cli.limits import without_limits
from powerkern._cli.output import finite, plural, print_json, print_table, short
from powerkern._cli.reading import locate_errors_in_file
from powerkern._input.tables import files
from powerkern._input.tables.table import Table, check_folder

#: Largest number of outliers that are printed.
_SHOWN = 30


def run(args: argparse.Namespace) -> None:
    """List the outliers of a table, the most extreme first."""
    check_folder(args.output)
    fit, table = fit_table(args)
    found = _find_outliers(args, fit, table)
    head = list(_make_entry(table, 0, "", 0.0, 0.0))
    if args.output is not None:
        text = io.StringIO()
        writer = csv.DictWriter(text, head, lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
        files.write_text(args.output, text.getvalue())
    if args.json:
        output = {"output": str(args.output)} if args.output is not None else {}
        print_json({"rows": table.n_rows, "columns": fit.n_features, "outliers": found, **output})
        return
    if found:
        shown = [[str(e[head[0]]), e["column"], short(e["value"]), short(e["z"])] for e in found[:_SHOWN]]
        print_table(head, shown, left={1})
    n_columns, n_searched = len(table.layout.names), len(table.layout.positions)
    searched = "" if n_searched == n_columns else f" ({n_searched} of the columns searched)"
    more = f" ({len(found) - _SHOWN} more: see -o or --json)" if len(found) > _SHOWN and args.output is None else ""
    shape = f"{plural(table.n_rows, 'row')} x {plural(n_columns, 'column')}"
    print(f"{plural(len(found), 'outlier')} in {shape}{searched}{more}")
    print_left_out(args, table)
    if args.output is not None:
        print(f"{plural(len(found), 'outlier')} written to {args.output}, one per line")


def _find_outliers(args: argparse.Namespace, fit: pk.PowerFit, table: Table) -> list[dict[str, Any]]:
    """Return a record for each outlier, the most extreme first."""
    matrix = without_limits(table.rows)
    with locate_errors_in_file(args.data, table.layout, lambda: table.rows):
        flagged = fit.outliers(matrix, cutoff=getattr(args, "cutoff", None))
        standardized = fit._with_spec(standardize=True)
        z = standardized.transform(matrix, n_threads=args.n_threads)
    cells = np.argwhere(flagged)
    distance = np.abs(z[flagged])
    names = table.layout.matrix_names
    return [
        _make_entry(table, i, names[j], float(matrix[i, j]), float(z[i, j]))
        for i, j in cells[np.argsort(-distance, kind="stable")].tolist()
    ]


def _make_entry(table: Table, i: int, column: str, value: float, z: float) -> dict[str, Any]:
    """Return the record of one outlier, with its line in a text file or its row in any other file.

    Parameters
    ----------
    table : Table
        The table.
    i : int
        Position of the row.
    column : str
        Name of the column.
    value : float
        The value.
    z : float
        The transformed value, standardized.
    """
    lines = table.rows.lines
    place = {"row": i} if lines is None else {"line": int(lines[i])}
    return {**place, "column": column, "value": value, "z": finite(z)}
