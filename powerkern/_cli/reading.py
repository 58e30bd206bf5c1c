"""The columns that commands work on, and whose fault it is when they cannot."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import powerkern as pk
from powerkern._cli.arguments import FAMILIES, OPTIONS
from powerkern._estimators.estimators import Estimator, with_options
from powerkern._input.places import place_of
from powerkern._input.tables import BadInput, Block, Choice, Layout, TextFormat, sentences


def by_name(wanted: Sequence[str] | None, path: Path) -> Choice:
    """The columns of these names, or those that hold numbers."""

    def choose(names: Sequence[str], named: bool) -> Sequence[int] | None:
        if wanted is None:
            return None
        position = {name: j for j, name in enumerate(names)}
        for name in wanted:
            if name not in position:
                raise BadInput(f"{called(path)} has no column {name!r}")
        return [position[name] for name in wanted]

    return choose


def by_fit(fit: pk.PowerFit, args: argparse.Namespace) -> Choice:
    """The columns of a table that a fit applies to: by name where both have names, else by position."""

    def choose(names: Sequence[str], named: bool) -> Sequence[int] | None:
        if named and fit.column_names is not None:
            return by_name(fit.column_names, args.data)(names, named)
        if len(names) != len(fit.lmbda):
            raise BadInput(
                f"{called(args.data)} has {len(names)} columns, {args.fit.name} is a fit of {len(fit.lmbda)}"
            )
        return range(len(names))

    return choose


def read_fit(path: Path) -> pk.PowerFit:
    """The fit in a file from `powerkern fit -o`."""
    with sentences("read", path):
        text = path.read_text(encoding="utf-8")
    try:
        return pk.PowerFit.from_json(text)
    except ValueError as error:
        raise BadInput(f"{path}: {one_line(error)}") from error


def estimator_of(args: argparse.Namespace) -> Estimator:
    """The estimator with its options, from the arguments."""
    name = args.estimator or args.default_estimator
    try:
        return with_options(name, {option: value for option, value in vars(args).items() if option in OPTIONS})
    except (TypeError, ValueError) as error:
        raise BadInput(str(error)) from None


def refuse_options(args: argparse.Namespace, *but: str) -> None:
    """Raise for options of a fit beside a fit that is given, but for those that are used all the same."""
    unset = {"family": FAMILIES[0], "criterion": "likelihood", "no_standardize": False, "shift": 0.0}
    unset |= dict.fromkeys(("columns", "estimator", "ymax", "bounds", *OPTIONS))
    given = [name for name, value in unset.items() if getattr(args, name, value) != value and name not in but]
    if given:
        words = ", ".join("--" + name.replace("_", "-") for name in given)
        raise BadInput(f"{words}: for fitting, and --fit names a fit; leave out one or the other")


def text_format(args: argparse.Namespace) -> TextFormat:
    """How text tables are written, from the arguments."""
    return TextFormat(
        args.delimiter, args.decimal, args.missing, args.comment or None, args.encoding, not args.no_header
    )


@contextmanager
def blamed(path: Path, layout: Layout, block: Callable[[], Block]) -> Iterator[None]:
    """Name the file and the line of values that powerkern rejects; `block` returns the rows that it looked at."""
    try:
        yield
    except ImportError as error:  # tqdm
        raise BadInput(one_line(error)) from error
    except (ValueError, TypeError) as error:
        place = place_of(error)
        if place is not None:
            where = layout.place(block(), place.column or 0, place.row)
            raise BadInput(f"{called(path)}, {where}: {place.reason}") from error
        raise BadInput(f"{called(path)}: {one_line(error).replace('columns=', '--columns')}") from error


def called(path: Path) -> str:
    """The name of a file in messages."""
    return "standard input" if str(path) == "-" else path.name


def one_line(error: Exception) -> str:
    """The message of an exception, on one line."""
    return " ".join(str(error).split())
