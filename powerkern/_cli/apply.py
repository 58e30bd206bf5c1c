"""``powerkern transform`` and ``powerkern inverse``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

import powerkern as pk
from powerkern._cli.arguments import Commands, add_common, add_data, add_text, text_format
from powerkern._cli.output import print_json
from powerkern._cli.reading import blamed, by_fit, read_fit
from powerkern._input import tables as _tables
from powerkern._input.tables import BadInput, Block, Layout

_Work = Callable[[pk.PowerFit, NDArray[Any]], NDArray[Any]]

_TRANSFORM_EXAMPLES = """\
powerkern transform data.csv --fit fit.json -o z.csv
powerkern transform data.parquet --fit fit.json -o z.parquet
zcat data.csv.gz | powerkern transform - --fit fit.json | head"""
_INVERSE_EXAMPLES = """\
powerkern inverse z.csv --fit fit.json -o back.csv --out-of-range clip"""


def add(commands: Commands) -> None:
    """Their arguments."""
    transform = commands.add_parser("transform", _TRANSFORM_EXAMPLES, "apply a fit to a table")
    transform.set_defaults(run=run_transform)
    _add_apply(transform)
    inverse = commands.add_parser("inverse", _INVERSE_EXAMPLES, "take a transformed table back to the original values")
    inverse.set_defaults(run=run_inverse)
    inverse.add_argument(
        "--out-of-range",
        choices=("nan", "raise", "clip"),
        default="nan",
        help="what to do with values outside the transform's range (default: missing, with a warning)",
    )
    _add_apply(inverse)


def _add_apply(parser: argparse.ArgumentParser) -> None:
    add_data(parser)
    parser.add_argument("--fit", type=Path, required=True, metavar="FIT.json", help="what `powerkern fit -o` wrote")
    parser.add_argument("-o", "--output", type=Path, help="where to write (default, and -: CSV to standard output)")
    add_text(parser)
    add_common(parser)


def run_transform(args: argparse.Namespace) -> None:
    """Carry out ``transform``."""
    _apply(args, lambda fit, matrix: fit.transform(matrix, n_threads=args.n_threads))


def run_inverse(args: argparse.Namespace) -> None:
    """Carry out ``inverse``."""
    _apply(
        args,
        lambda fit, matrix: fit.inverse_transform(matrix, out_of_range=args.out_of_range, n_threads=args.n_threads),
    )


def _apply(args: argparse.Namespace, work: _Work) -> None:
    """Read, transform and write block by block, so that tables of any length take little memory."""
    _tables.check_output(args.output)
    to_file = args.output is not None and str(args.output) != "-"
    if args.json and not to_file:
        raise BadInput("--json describes the file written: name it with -o")
    fit, text, n = read_fit(args.fit), text_format(args), 0
    with (
        _tables.stream(args.data, by_fit(fit, args), text) as (layout, blocks),
        _tables.write(args.output, layout, text) as writer,
    ):
        for block in blocks:
            result = _result(work, fit, block, args.data, layout)
            writer.write(block, result)
            n += len(result)
    if args.json:
        print_json({"rows": n, "columns": layout.matrix_names, "output": str(args.output)})
    elif to_file:
        print(f"{n} rows x {len(layout.positions)} columns written to {args.output}")


def _result(work: _Work, fit: pk.PowerFit, block: Block, path: Path, layout: Layout) -> NDArray[Any]:
    with blamed(path, layout, lambda: block):
        return work(fit, block.matrix)
