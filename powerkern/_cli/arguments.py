"""Command-line arguments that several commands share, and functions that parse their values.

This module imports nothing slow.
"""

from __future__ import annotations

import argparse
import codecs
import csv
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, get_args

from powerkern._cli.output import complain
from powerkern._estimators.names import class_names, estimators_by_option
from powerkern._input.choices import CRITERIA, LIKELIHOOD, Infinite
from powerkern._input.messages import did_you_mean

#: Names of the estimators, and the estimators that have each option.
ESTIMATORS, OPTIONS = tuple(class_names()), estimators_by_option()

#: The pictures that ``plot`` draws.
PICTURES = ("before-after", "qq", "histogram", "forest", "cells")
#: Smallest number of rows from which scipy and scikit-learn can estimate lambda in ``demo``.
_FEWEST_ROWS = 10
FAMILIES = ("yeo-johnson", "box-cox")
_KINDS = ".csv, .tsv, .txt (also .gz, .bz2, .xz, .zst), .parquet or .npy; - for text from standard input"


#: Options whose values may begin with a minus sign.
_SIGNED = ("--missing", "--units", "--shift", "--bounds", "--search-range")


class Parser(argparse.ArgumentParser):
    """An argument parser with one-line errors that accepts values beginning with a minus sign, such as "-999,?"."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse like argparse, but do not mistake a value such as "-999,?" for an option."""
        words = _join_signed_values(sys.argv[1:] if args is None else args)
        for word in words:
            if word.startswith("--") and word.endswith("=--"):  # argparse would turn it into an empty list
                self.error(f"{word.removesuffix('=--')} cannot be --")
        found, unknown = super().parse_known_args(words, namespace)
        if unknown:  # reported here, because the subparser knows its options
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Print the message to standard error, suggest the most similar valid word, and exit with code 2."""
        wrong = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if wrong is not None:
            message += did_you_mean(wrong[1], [word.strip(" '") for word in wrong[2].split(",")])
        unknown = re.match(r"unrecognized arguments: (--[^ =]*)", message)
        if unknown is not None:
            message += did_you_mean(unknown[1], self._option_string_actions)
        complain(f"{self.prog}: {message} (see {self.prog} --help)")
        self.exit(2)


def _join_signed_values(words: Sequence[str]) -> list[str]:
    """Join each option in _SIGNED with a value that begins with a minus sign, as in ``--shift=-1``."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] in _SIGNED and word.startswith("-") and not word.startswith("--"):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


class Commands:
    """The commands of a parser (subparsers), each with its help text and examples."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._parsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add_parser(self, name: str, examples: str, help: str) -> argparse.ArgumentParser:
        """Add a command with its help text and examples; return its parser."""
        return self._parsers.add_parser(
            name,
            help=help,
            description=f"{help[0].upper()}{help[1:]}.",
            epilog="examples:\n  " + examples.replace("\n", "\n  "),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )


def add_fit(parser: argparse.ArgumentParser, estimator: str = "mle") -> None:
    """Add the arguments of a fit: the table to read and every fitting option; `estimator` is the default estimator."""
    parser.add_argument("data", type=Path, help=_KINDS)
    add_columns(parser, "columns to fit (default: every numeric column that does not hold identifiers)")
    parser.add_argument(
        "--family", choices=(*FAMILIES, "best"), default=FAMILIES[0], help="transform (default: %(default)s)"
    )
    parser.add_argument(
        "--criterion",
        choices=CRITERIA,
        default=LIKELIHOOD,
        help="criterion by which --family best chooses (default: %(default)s)",
    )
    parser.add_argument(
        "--no-standardize", action="store_true", help="do not standardize to mean 0 and standard deviation 1"
    )
    parser.add_argument(
        "--shift",
        type=numbers,
        default=0.0,
        metavar="C[,C...]",
        help="Box-Cox: constant added to all columns, or one for each (default: 0)",
    )
    parser.add_argument("--origin", choices=("fit",), help="fit: also estimate the origin and unit of each column")
    parser.add_argument(
        "--infinite",
        choices=get_args(Infinite),
        default="raise",
        help="treatment of infinite values (default: an error)",
    )
    parser.add_argument("--ymax", type=float, help="bound lambda so that no transformed value exceeds this")
    parser.add_argument(
        "--bounds", type=bounds, metavar="LOW,HIGH", help="smallest and largest lambda; either may be empty, as in 0,"
    )
    parser.add_argument(
        "--progress", action="store_true", help="show a progress bar for long computations (needs tqdm)"
    )
    _add_estimator(parser, estimator)
    add_limits(parser)
    add_text(parser)
    add_common(parser)


#: Options of `powerkern.fit` and of `fit_chunks` that the command line has under the same names.
_PASSED_ON = ("family", "shift", "ymax", "bounds", "criterion", "infinite", "n_threads", "progress")


def fit_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the keyword arguments of `powerkern.fit` that `args` contains, except the estimator and the origin."""
    return {"standardize": not args.no_standardize, **{name: getattr(args, name) for name in _PASSED_ON}}


def add_columns(parser: argparse.ArgumentParser, help: str) -> None:
    """Add the options ``--columns`` and ``--exclude``; `help` is the help text of ``--columns``."""
    parser.add_argument("--columns", type=cells, metavar="A,B,...", help=help)
    parser.add_argument("--exclude", type=cells, default=(), metavar="A,B,...", help="columns to leave out")


def _add_estimator(parser: argparse.ArgumentParser, estimator: str) -> None:
    """Add ``--estimator`` and the options of all estimators; `estimator` is the default."""
    group = parser.add_argument_group("estimator")
    group.add_argument("--estimator", help=f"{', '.join(ESTIMATORS)} (default: {estimator})")
    parser.set_defaults(default_estimator=estimator)
    for name, kinds in OPTIONS.items():
        group.add_argument(
            "--" + name.replace("_", "-"),
            default=argparse.SUPPRESS,
            type=option,
            metavar="VALUE",
            help=f"option of {', '.join(kinds)}",
        )


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the options that set detection limits of columns."""
    group = parser.add_argument_group("detection limits (cells such as <0.05 and >100 state their own)")
    for word, lower in (("below", "lower"), ("above", "upper")):
        sign, cell = ("<", "at or below") if word == "below" else (">", "at or above")
        group.add_argument(
            f"--{word}-limit",
            type=column_limit,
            action="append",
            default=[],
            metavar="COLUMN=LIMIT",
            help=f"{lower} limit of a column: values {cell} it, and cells such as {sign}LOD, are only known to lie "
            f"{word} it (repeat for more columns)",
        )


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options for the number of threads and for JSON output."""
    parser.add_argument(
        "-j", "--jobs", "--n-threads", dest="n_threads", type=positive, metavar="N", help="threads (default: all cores)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON for programs instead of the table")


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add the positional argument that names the table to read."""
    parser.add_argument("data", type=Path, help=_KINDS)


def add_groups(parser: argparse.ArgumentParser, help: str) -> None:
    """Add the option ``--groups``, the name of the column of group labels; `help` is its help text."""
    parser.add_argument("--groups", "--by", metavar="NAME", help=help)


def add_text(parser: argparse.ArgumentParser) -> None:
    """Add the options that describe the format of text tables."""
    text = parser.add_argument_group("text tables")
    text.add_argument(
        "--delimiter", type=delimiter, metavar="C", help="one character, tab or space (default: detected; tab for .tsv)"
    )
    text.add_argument("--decimal", choices=(".", ","), default=".", help="decimal sign (default: a point)")
    text.add_argument(
        "--thousands",
        type=thousands,
        metavar="C",
        help="sign between groups of digits: comma, point, space or apostrophe (default: none)",
    )
    text.add_argument(
        "--units",
        type=units,
        default=(),
        metavar="A,B,...",
        help="signs and words next to numbers, such as %%, $ or kg; they are dropped, so 27%% is read as 27",
    )
    text.add_argument(
        "--missing",
        type=cells,
        default=(),
        metavar="A,B,...",
        help="cells to read as missing values, besides empty ones and NA",
    )
    text.add_argument("--comment", metavar="TEXT", help="skip lines that begin with this text")
    text.add_argument(
        "--encoding", type=encoding, help="encoding of the text (default: by the byte-order mark, or UTF-8)"
    )
    text.add_argument(
        "--no-header", action="store_true", help="the first line holds data; columns are named by their positions"
    )


# --- types --------------------------------------------------------------------------------------------


def positive(text: str) -> int:
    """Parse a positive whole number."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return int(text)


def rows(text: str) -> int:
    """Parse a number of rows; reject numbers too small for scipy and scikit-learn to estimate lambda."""
    n = positive(text)
    if n < _FEWEST_ROWS:
        raise argparse.ArgumentTypeError(f"{text!r} is too few rows; use at least {_FEWEST_ROWS}")
    return n


def level(text: str) -> float:
    """Parse a confidence level between 0 and 1."""
    level = numbers(text)
    if isinstance(level, list) or not 0.0 < level < 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0 and 1")
    return level


def numbers(text: str) -> float | list[float]:
    """Parse a number or a comma-separated list of numbers."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number or a comma-separated list of numbers") from None
    return numbers if len(numbers) > 1 else numbers[0]


def option(text: str) -> object:
    """Parse an option of an estimator: a number, a comma-separated list of numbers, or a word."""
    try:
        found = numbers(text)
    except argparse.ArgumentTypeError:
        return text
    return int(found) if isinstance(found, float) and found.is_integer() else found


def bounds(text: str) -> tuple[float | None, float | None]:
    """Parse "low,high" to a pair of numbers; an empty part becomes None."""
    try:
        low, high = [float(part) if part.strip() else None for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not two comma-separated numbers") from None
    return low, high


def column_limit(text: str) -> tuple[str, float]:
    """Parse "column=limit" to the name of the column and its detection limit."""
    name, _, limit = text.rpartition("=")
    try:
        number = float(limit)
    except ValueError:
        number = math.nan
    if not name or not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"{text!r} is not COLUMN=LIMIT, such as lead=0.05")
    return name, number


def delimiter(text: str) -> str:
    """Parse a delimiter: a single character, or the name of one, such as "tab"."""
    text = {r"\t": "\t", "tab": "\t", "space": " ", "comma": ",", "semicolon": ";"}.get(text, text)
    if len(text) != 1 or text in '"\r\n':
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a delimiter; use one character, tab, space, comma or semicolon"
        )
    return text


def thousands(text: str) -> str:
    """Parse a thousands separator: the character itself, or its name, such as "comma"."""
    text = {"comma": ",", "point": ".", "space": " ", "apostrophe": "'"}.get(text, text)
    if text not in {",", ".", " ", "'"}:
        raise argparse.ArgumentTypeError(f"{text!r} is not comma, point, space or apostrophe")
    return text


def units(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list of units that may stand next to numbers, such as "%,kg"."""
    units = tuple(unit.strip() for unit in cells(text))
    for unit in units:
        if not unit or any(c.isdigit() or c in "+-.,'" for c in unit):
            raise argparse.ArgumentTypeError(f"{unit!r} is not a unit; a unit cannot contain digits, signs or points")
    return units


def cells(text: str) -> tuple[str, ...]:
    """Split one line of CSV into its fields; a field that contains a comma must be quoted in `text`."""
    try:
        return tuple(next(csv.reader([text]), []))
    except csv.Error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a line of CSV: {error}") from None


def encoding(text: str) -> str:
    """Parse the name of a text encoding; return Python's name for it."""
    try:
        return codecs.lookup(text).name
    except LookupError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an encoding that Python knows") from None
