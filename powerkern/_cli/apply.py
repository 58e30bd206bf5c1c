"""Run ``powerkern transform`` and ``powerkern inverse``."""

from __future__ import annotations

import argparse
from typing import Any

import powerkern as pk
from powerkern._cli.limits import LimitScores
from powerkern._cli.output import complain, plural, print_json
from powerkern._cli.reading import (
    choose_fitted_columns,
    locate_errors_in_file,
    read_any_fit,
    read_labels,
    select_fit_columns,
    text_format,
)
from powerkern._input.tables import files
from powerkern._input.tables.table import BadInput, CensoredCells, FileLayout


def run(args: argparse.Namespace) -> None:
    """Transform or invert a table block by block, so that memory does not grow with the number of rows."""
    files.check_output(args.output)
    to_file = args.output is not None and str(args.output) != "-"
    if args.json and not to_file:
        raise BadInput("--json reports on the output file: name that file with -o")
    is_forward = args.command == "transform"
    censored = CensoredCells("", needs_number=False) if is_forward else CensoredCells()
    fit, text, n = read_any_fit(args.fit), text_format(args, censored), 0
    by_groups = isinstance(fit, pk.GroupedFit)
    if isinstance(fit, pk.GroupedFit) and args.groups is None and fit.group_names is not None:
        args.groups = fit.group_names[0]
    if by_groups and args.groups is None:
        raise BadInput(f"{args.fit} is a fit by groups: name the column of their labels with --groups")
    fit = select_fit_columns(fit, args)
    if args.groups is not None and not by_groups:
        raise BadInput(f"{args.fit} was fitted without groups; leave out --groups")
    options: dict[str, Any] = {"n_threads": args.n_threads}
    options["out_of_range"] = args.out_of_range
    if is_forward:
        options["infinite"] = args.infinite
    with (
        files.stream(args.data, choose_fitted_columns(fit, args), text) as (layout, blocks),
        files.write(args.output, layout, text) as writer,
    ):
        scores = LimitScores(args, fit, layout) if is_forward else None
        for block in blocks:
            groups = read_labels(block, layout, args) if by_groups else None
            with locate_errors_in_file(args.data, layout, lambda: block):  # noqa: B023 - called at once
                if scores is not None:
                    result = scores.transform(block, groups, **options)
                else:
                    of_rows = {} if groups is None else {"groups": groups}
                    result = fit.inverse_transform(block.matrix, **of_rows, **options)
            writer.write(block, result)
            n += len(result)
    about = "" if scores is None else scores.describe()
    if about:
        complain(f"powerkern: {about}")
    if args.json:
        print_json({"rows": n, "columns": layout.matrix_names, "output": str(args.output)})
    elif to_file:
        shape = f"{plural(n, 'row')} x {plural(len(layout.names), 'column')}"
        print(f"{shape} written to {args.output}{_count_phrase(args.command, layout)}")


def _count_phrase(command: str, layout: FileLayout) -> str:
    """Return a phrase that counts the transformed and the untouched columns, or "" if every column was transformed.

    `command` is "transform" or "inverse".
    """
    n_passed = len(layout.names) - len(layout.positions)
    done = "transformed" if command == "transform" else "inverted"
    return f" ({len(layout.positions)} {done}, {n_passed} passed through)" if n_passed else ""
