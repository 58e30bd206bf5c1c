"""Run ``powerkern plot``."""

from __future__ import annotations

import argparse
from typing import Any

import powerkern as pk
from powerkern._cli.fit import fit_table, print_left_out
from powerkern._cli.limits import as_masks, without_limits
from powerkern._cli.output import plural
from powerkern._cli.reading import locate_errors_in_file
from powerkern._input.tables import files
from powerkern._input.tables.table import BadInput, Table, check_folder

#: Resolution of pictures, in pixels per inch.
_DPI = 150


def run(args: argparse.Namespace) -> None:
    """Fit a table, draw the requested plot and write it to a file."""
    try:
        import matplotlib as mpl
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise BadInput("plots need matplotlib: pip install matplotlib") from error
    _check(args, plt)
    fit, table = fit_table(args)
    previous = mpl.get_backend(auto_select=False)
    plt.switch_backend("Agg")  # works without a display
    try:
        with plt.style.context(args.style), locate_errors_in_file(args.data, table.layout, lambda: table.rows):
            figure = _KINDS[args.kind](fit, table)
            with files.replaced(args.output) as part:
                figure.savefig(part, dpi=_DPI)
        plt.close(figure)
    finally:
        if previous is not None:
            plt.switch_backend(previous)
    print_left_out(args, table)
    print(f"{args.kind} of {plural(fit.n_features, 'column')} drawn in {args.output}")


def _check(args: argparse.Namespace, plt: Any) -> None:
    """Raise an error, before any slow work, if the file type or the matplotlib style is unknown."""
    check_folder(args.output)
    kinds = plt.matplotlib.backend_bases.FigureCanvasBase.get_supported_filetypes()
    if args.output.suffix.lower().lstrip(".") not in kinds:
        raise BadInput(f"{args.output} has an unknown file type: use .{', .'.join(sorted(kinds))}")
    if args.style != "default" and args.style not in plt.style.available:
        raise BadInput(f"unknown style {args.style!r}; choose one of {', '.join(plt.style.available)}")


def _before_after(*kinds: str) -> Any:
    """Return a function that draws the plots `kinds` of each column, before and after the transform."""

    def draw(fit: pk.PowerFit, table: Table) -> Any:
        from powerkern.plot import before_after_plot

        return before_after_plot(table.rows.matrix, fit, kinds=kinds, **as_masks(table.rows))[0, 0].figure

    return draw


def _forest(fit: pk.PowerFit, table: Table) -> Any:
    """Draw the lambdas and their intervals as a forest plot."""
    from powerkern.plot import forest_plot

    return forest_plot(None, fit).figure


def _cells(fit: pk.PowerFit, table: Table) -> Any:
    """Draw a map of the cells of the table, colored by how outlying they are."""
    from powerkern.plot import cell_map

    return cell_map(without_limits(table.rows), fit).figure


_KINDS = {
    "before-after": _before_after("histogram", "qq"),
    "qq": _before_after("qq"),
    "histogram": _before_after("histogram"),
    "forest": _forest,
    "cells": _cells,
}
