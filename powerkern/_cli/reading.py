"""The columns, fits and options that commands work with; errors that name the file and the line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import powerkern as pk
from powerkern._cli.arguments import ESTIMATORS, FAMILIES, OPTIONS
from powerkern._estimators.estimators import Estimator, with_options
from powerkern._input.arguments import place_of
from powerkern._input.messages import did_you_mean
from powerkern._input.tables.table import BadInput, Block, Choice, Layout, TextFormat, sentences


def by_name(wanted: Sequence[str] | None, path: Path) -> Choice:
    """The columns of these names, or those that hold numbers."""

    def choose(names: Sequence[str], named: bool) -> Sequence[int] | None:
        if wanted is None:
            return None
        position = {name: j for j, name in enumerate(names)}
        return [position[name] if name in position else position_of(name, names, path) for name in wanted]

    return choose


def position_of(name: str, names: Sequence[str], path: Path) -> int:
    """The position of a column."""
    if name not in names:
        raise BadInput(f"{called(path)} has no column {name!r}{did_you_mean(name, names)}")
    return names.index(name)


def labels_in(block: Block, layout: Layout, args: argparse.Namespace) -> list[object]:
    """The labels of a block's rows, in the column that --groups names."""
    at = position_of(args.groups, layout.names, args.data)
    if at not in block.rest:
        raise BadInput(f"{called(args.data)}, column {args.groups!r}: --groups names a column that is fitted")
    cells = block.rest[at]
    labels = cells.to_pylist() if hasattr(cells, "to_pylist") else list(cells)
    for i, label in enumerate(labels):
        if label is None or (isinstance(label, str) and (not label.strip() or label.strip() in args.missing)):
            row = f"row {block.start + i}" if block.lines is None else f"line {block.lines[i]}"
            raise BadInput(f"{called(args.data)}, column {args.groups!r}, {row}: the label is missing; drop the row")
    return labels


def by_fit(fit: pk.PowerFit | pk.GroupedFit, args: argparse.Namespace) -> Choice:
    """The columns of a table that a fit applies to: by name where both have names, else by position."""

    def choose(names: Sequence[str], named: bool) -> Sequence[int] | None:
        if named and fit.column_names is not None:
            return by_name(fit.column_names, args.data)(names, named)
        if len(names) != fit.n_features:
            raise BadInput(
                f"{called(args.data)} has {len(names)} columns, {args.fit.name} is a fit of {fit.n_features}"
            )
        return range(len(names))

    return choose


def read_fit(path: Path) -> pk.PowerFit:
    """The fit in a file from `powerkern fit -o`."""
    fit = read_any_fit(path)
    if isinstance(fit, pk.GroupedFit):
        raise BadInput(f"{path} is a fit by groups, which only transform and inverse take")
    return fit


def read_any_fit(path: Path) -> pk.PowerFit | pk.GroupedFit:
    """The fit in a file from `powerkern fit -o`, of a table or of its groups."""
    try:
        with sentences("read", path):
            fit = pk.load(path)
    except ValueError as error:
        raise BadInput(f"{path}: {one_line(error)}; --fit takes what `powerkern fit -o` wrote") from error
    if not isinstance(fit, pk.PowerFit | pk.GroupedFit):
        raise BadInput(f"{path} is a {type(fit).__name__}; --fit takes what `powerkern fit -o` wrote")
    return fit


def estimator_of(args: argparse.Namespace) -> Estimator:
    """The estimator with its options, from the arguments."""
    name = args.estimator or args.default_estimator
    options = {option: value for option, value in vars(args).items() if option in OPTIONS}
    for option in options:
        if name in ESTIMATORS and name not in OPTIONS[option]:
            word = option.replace("_", "-")
            raise BadInput(f"--{word} is an option of --estimator {', '.join(OPTIONS[option])}; not of {name}")
    try:
        return with_options(name, options)
    except (TypeError, ValueError) as error:
        raise BadInput(str(error)) from None


def refuse_options(args: argparse.Namespace, *but: str) -> None:
    """Refuse options for fitting where a fit is given, except those that apply to it."""
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
