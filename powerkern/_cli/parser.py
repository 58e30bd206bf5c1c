"""The argument parser of the command line.

This module imports nothing slow, so that a wrong option is reported at once.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, get_args

from powerkern._cli.arguments import (
    PICTURES,
    Commands,
    Parser,
    add_columns,
    add_common,
    add_data,
    add_fit,
    add_groups,
    add_limits,
    add_text,
    level,
    positive,
    rows,
)
from powerkern._input.choices import Infinite, OutOfRange


def parser() -> argparse.ArgumentParser:
    """Build the parser of the command line.

    The parsed arguments contain ``run``, the function that executes the command, as "module:name".
    """
    whole = Parser(
        prog="powerkern",
        description="Fit and apply Box-Cox and Yeo-Johnson transforms, column by column.",
        epilog="powerkern COMMAND --help shows the arguments of a command, and examples",
    )
    whole.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = Commands(whole)
    for add in (_add_demo, _add_fit, _add_apply, _add_outliers, _add_plot, _add_compile, _add_info):
        add(commands)
    return whole


class _Version(argparse.Action):
    """Action of ``--version``. It imports the package, which is slow, only when the version is printed."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        import powerkern

        print(f"powerkern {powerkern.__version__}")
        parser.exit()


_DEMO_EXAMPLES = """\
powerkern demo
powerkern demo --rows 1000 --columns 10000 --jobs 1 --save simulated"""


def _add_demo(commands: Commands) -> None:
    """Add the command ``demo``."""
    demo = commands.add_parser("demo", _DEMO_EXAMPLES, "fit simulated data with known lambdas; show error and speed")
    demo.set_defaults(run="demo:run")
    demo.add_argument("--rows", type=rows, default=20_000, help="rows to simulate (default: %(default)s)")
    demo.add_argument("--columns", type=positive, default=500, help="columns to simulate (default: %(default)s)")
    demo.add_argument("--seed", type=int, default=1, help="seed of the simulation (default: %(default)s)")
    demo.add_argument("--save", type=Path, metavar="FOLDER", help="folder for the simulated matrices and their fits")
    add_common(demo)


_FIT_EXAMPLES = """\
powerkern fit data.csv -o fit.json
powerkern fit data.csv --columns "price,length, cm" --family box-cox --estimator robust --cutoff 0.999
powerkern fit survey.parquet --weights households
powerkern fit panel.csv --groups firm -o firms.json
powerkern fit water.csv --family box-cox --below-limit lead=0.05 --below-limit zinc=1
powerkern fit export.csv --decimal , --missing "-999,?" --json
xzcat data.csv.xz | powerkern fit -"""
_SUMMARY_EXAMPLES = """\
powerkern summary data.csv --family box-cox --level 0.9"""


def _add_fit(commands: Commands) -> None:
    """Add the commands ``fit`` and ``summary``."""
    fit = commands.add_parser("fit", _FIT_EXAMPLES, "fit the numeric columns of a table")
    fit.set_defaults(run="fit:run_fit")
    fit.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FIT.json",
        help="output file for the fit (-: standard output, without the table of results)",
    )
    _add_weights(fit)
    add_groups(fit, "the column of group labels; each group is fitted separately")
    add_fit(fit)
    summary = commands.add_parser(
        "summary", _SUMMARY_EXAMPLES, "fit a table; show intervals, tests, and normality before and after"
    )
    summary.set_defaults(run="fit:run_summary")
    summary.add_argument(
        "--level", type=level, default=0.95, help="confidence level of the intervals (default: %(default)s)"
    )
    _add_weights(summary)
    add_fit(summary)


def _add_weights(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the column of row weights."""
    parser.add_argument(
        "--weights", metavar="NAME", help="the column that holds the weights of the rows; it is not fitted"
    )


_TRANSFORM_EXAMPLES = """\
powerkern transform data.csv --fit fit.json -o z.csv
powerkern transform data.parquet --fit fit.json -o z.parquet
powerkern transform new.csv --fit fit.json -o z.csv --out-of-range clip --infinite missing
powerkern transform panel.csv --fit firms.json --groups firm -o z.csv
zcat data.csv.gz | powerkern transform - --fit fit.json | head"""
_INVERSE_EXAMPLES = """\
powerkern inverse z.csv --fit fit.json -o back.csv --out-of-range clip"""


def _add_apply(commands: Commands) -> None:
    """Add the commands ``transform`` and ``inverse``."""
    transform = commands.add_parser("transform", _TRANSFORM_EXAMPLES, "apply a fit to a table")
    transform.set_defaults(run="apply:run")
    transform.add_argument(
        "--out-of-range",
        choices=get_args(OutOfRange),
        default="raise",
        help="treatment of values without a transform; clip: to the range of the fitted data (default: an error)",
    )
    transform.add_argument(
        "--infinite", choices=get_args(Infinite), help="treatment of infinite values (default: as in the fit)"
    )
    add_limits(transform)
    _add_applied(transform)
    inverse = commands.add_parser("inverse", _INVERSE_EXAMPLES, "transform a table back to its original values")
    inverse.set_defaults(run="apply:run")
    inverse.add_argument(
        "--out-of-range",
        choices=get_args(OutOfRange),
        default="nan",
        help="treatment of values outside the transform's range (default: missing, with a warning)",
    )
    _add_applied(inverse)


def _add_applied(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that ``transform`` and ``inverse`` have in common."""
    add_data(parser)
    parser.add_argument("--fit", type=Path, required=True, metavar="FIT.json", help="a fit from `powerkern fit -o`")
    parser.add_argument("-o", "--output", type=Path, help="output file (default, or -: CSV to standard output)")
    add_groups(parser, "the column of group labels, for a fit by groups")
    add_columns(parser, "columns to apply the fit to (default: all of the fit); the others pass through")
    add_text(parser)
    add_common(parser)


_OUTLIERS_EXAMPLES = """\
powerkern outliers data.csv
powerkern outliers data.csv --family box-cox --cutoff 0.999 -o outliers.csv
powerkern outliers new.csv --fit fit.json --json"""


def _add_outliers(commands: Commands) -> None:
    """Add the command ``outliers``."""
    outliers = commands.add_parser(
        "outliers", _OUTLIERS_EXAMPLES, "list the values beyond the cut-off of a robust fit, farthest first"
    )
    outliers.set_defaults(run="outliers:run", weights=None)
    outliers.add_argument(
        "-o", "--output", type=Path, metavar="FILE.csv", help="file to which all outliers are written"
    )
    _add_given_fit(outliers)
    add_fit(outliers, estimator="robust")


def _add_given_fit(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--fit``, which names a saved fit."""
    parser.add_argument(
        "--fit", type=Path, metavar="FIT.json", help="a fit from `powerkern fit -o` (default: fit the table)"
    )


_PLOT_EXAMPLES = """\
powerkern plot data.csv -o before_after.png
powerkern plot data.csv --kind forest --family box-cox -o lambdas.pdf
powerkern plot data.csv --kind cells --estimator robust -o cells.png --style dark_background
powerkern plot data.csv --fit fit.json -o before_after.png"""


def _add_plot(commands: Commands) -> None:
    """Add the command ``plot``."""
    plot = commands.add_parser("plot", _PLOT_EXAMPLES, "fit a table and draw it, before and after (needs matplotlib)")
    plot.set_defaults(run="plot:run", weights=None)
    plot.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="output file: .png, .pdf, .svg, ..."
    )
    plot.add_argument("--kind", choices=PICTURES, default="before-after", help="kind of plot (default: %(default)s)")
    plot.add_argument(
        "--style", default="default", help="matplotlib style, such as dark_background (default: %(default)s)"
    )
    _add_given_fit(plot)
    add_fit(plot)


_COMPILE_EXAMPLES = """\
powerkern compile
powerkern compile --all --cpu x86-64-v3 --to /shared/powerkern"""


def _add_compile(commands: Commands) -> None:
    """Add the command ``compile``."""
    parser = commands.add_parser(
        "compile", _COMPILE_EXAMPLES, "compile the kernels in advance, for container images, clusters and CI"
    )
    parser.set_defaults(run="compiling:run")
    parser.add_argument(
        "--all", action="store_true", help="compile every kernel (default: kernels for fit, transform and inverse)"
    )
    parser.add_argument(
        "--to",
        type=Path,
        metavar="FOLDER",
        help="folder for the compiled code; set NUMBA_CACHE_DIR to it (default: the usual cache)",
    )
    parser.add_argument(
        "--cpu", metavar="NAME", help="the instruction set; see `powerkern info` (default: this computer's)"
    )
    parser.add_argument(
        "--processes", "--jobs", "-j", type=positive, metavar="N", help="processes (default: all cores)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON for programs instead of a sentence")


_INFO_EXAMPLES = """\
powerkern info
powerkern info --json"""


def _add_info(commands: Commands) -> None:
    """Add the command ``info``."""
    info = commands.add_parser(
        "info", _INFO_EXAMPLES, "print versions, CPU, threads and compiled code, for bug reports"
    )
    info.set_defaults(run="info:run")
    info.add_argument("--json", action="store_true", help="print JSON for programs instead of a list")
