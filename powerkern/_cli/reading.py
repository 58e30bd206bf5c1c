"""Read the tables, fits and options that commands work with. Errors name the file and the line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import powerkern as pk
from powerkern._cli.arguments import ESTIMATORS, FAMILIES, OPTIONS
from powerkern._estimators.base import Estimator
from powerkern._estimators.estimators import with_options
from powerkern._input.arguments import place_of
from powerkern._input.messages import Rewording, did_you_mean
from powerkern._input.tables.table import (
    BadInput,
    Block,
    CensoredCells,
    Choice,
    FileLayout,
    Selection,
    TextFormat,
    one_line_file_errors,
)


def _as_option(argument: re.Match[str]) -> str:
    """Return the command-line option for a keyword argument, such as ``--origin fit`` for ``origin='fit'``."""
    return " ".join(filter(None, (f"--{argument[1].replace('_', '-')}", argument[2])))


#: Rewording of messages that replaces arguments by command-line options.
AS_OPTIONS = Rewording(
    (r"\blimits=, below=, above= and between= work", "detection limits work"),
    (r"\b(family|estimator|origin|columns|out_of_range|infinite)=(?:'([\w-]+)')?", _as_option),
)
#: Rules for tables whose cells cannot state detection limits, such as tables of scores.
_NO_LIMITS = CensoredCells()


def choose_by_name(
    wanted: Sequence[str] | None, path: Path, excluded: Sequence[str] = (), required: Sequence[str] = ()
) -> Choice:
    """Return a function that selects the columns to read: those called `wanted`, or every numeric column.

    Parameters
    ----------
    wanted : sequence of str or None
        Names of the columns; None for all numeric columns except identifiers.
    path : Path
        The table, for messages.
    excluded : sequence of str
        Columns to leave out.
    required : sequence of str
        Further columns to read as numbers, such as weights.
    """

    def choose(names: Sequence[str], named: bool) -> Selection:
        position = {name: j for j, name in enumerate(names)}

        def positions(of: Sequence[str]) -> list[int]:
            return [position[name] if name in position else find_column(name, names, path) for name in of]

        left_out = set(positions(excluded))
        if wanted is None:
            return Selection(None, left_out, positions(required))
        chosen = [j for j in dict.fromkeys(positions(wanted)) if j not in left_out]
        return Selection([j for j in chosen if names[j] not in required], left_out, positions(required))

    return choose


def choose_columns(args: argparse.Namespace) -> Choice:
    """Return a function that selects the columns to fit and the column of weights, and leaves out the group labels."""
    weights = [] if args.weights is None else [args.weights]
    _check_columns(args)
    labels = [] if getattr(args, "groups", None) is None else [args.groups]
    return choose_by_name(args.columns or None, args.data, [*args.exclude, *labels], weights)


def _check_columns(args: argparse.Namespace) -> None:
    """Raise if a column is both selected and excluded."""
    for name in args.exclude:
        if name in (args.columns or ()):
            raise BadInput(f"--columns and --exclude both name {name!r}; leave it out of one of them")


def select_fit_columns(fit: pk.PowerFit | pk.GroupedFit, args: argparse.Namespace) -> Any:
    """Return the fit restricted to the columns that ``--columns`` and ``--exclude`` select."""
    if args.columns is None and not args.exclude:
        return fit
    if isinstance(fit, pk.GroupedFit):
        raise BadInput("--columns and --exclude: a fit by groups applies to all of its columns; leave them out")
    _check_columns(args)
    names = [str(j) for j in range(fit.n_features)] if fit.column_names is None else list(map(str, fit.column_names))
    for name in (*(args.columns or ()), *args.exclude):
        if name not in names:
            raise BadInput(f"{args.fit.name} has no column {name!r}{did_you_mean(name, names)}")
    wanted = [name for name in dict.fromkeys(args.columns or names) if name not in args.exclude]
    if not wanted:
        raise BadInput("--exclude names every column of the fit; keep at least one")
    part = fit[[names.index(name) for name in wanted]]
    return part._with_names(wanted)


def find_column(name: str, names: Sequence[str], path: Path) -> int:
    """Return the position of a column; if no column has this name, raise an error that suggests a similar one."""
    if name not in names:
        raise BadInput(f"{display_name(path)} has no column {name!r}{did_you_mean(name, names)}")
    return names.index(name)


def read_labels(block: Block, layout: FileLayout, args: argparse.Namespace) -> list[object]:
    """Return the group label of each row of a block, from the column that ``--groups`` names."""
    at = find_column(args.groups, layout.names, args.data)
    if at not in block.rest:
        raise BadInput(f"{display_name(args.data)}, column {args.groups!r}: --groups names a column that is fitted")
    cells = block.rest[at]
    labels = cells.to_pylist() if hasattr(cells, "to_pylist") else list(cells)
    for i, label in enumerate(labels):
        if label is None or (isinstance(label, str) and (not label.strip() or label.strip() in args.missing)):
            row = f"row {block.start + i}" if block.lines is None else f"line {block.lines[i]}"
            raise BadInput(
                f"{display_name(args.data)}, column {args.groups!r}, {row}: the label is missing; drop the row"
            )
    return labels


def choose_fitted_columns(fit: pk.PowerFit | pk.GroupedFit, args: argparse.Namespace) -> Choice:
    """Return a function that finds the fitted columns in a table.

    Columns are matched by name if the fit and the table have names, otherwise by position.
    """

    def choose(names: Sequence[str], named: bool) -> Selection:
        known = None if fit.column_names is None else list(map(str, fit.column_names))
        # a fit of some columns of a table without names stores their positions as names
        if known is not None and (named or set(known) <= set(names)):
            return choose_by_name(known, args.data)(names, named)
        if len(names) != fit.n_features:
            raise BadInput(
                f"{display_name(args.data)} has {len(names)} columns, but {args.fit.name} was fitted to "
                f"{fit.n_features}; keep the columns that were fitted"
            )
        return Selection(range(len(names)))

    return choose


def read_fit(path: Path) -> pk.PowerFit:
    """Read a fit that ``powerkern fit -o`` wrote; raise if it is a fit by groups."""
    fit = read_any_fit(path)
    if isinstance(fit, pk.GroupedFit):
        raise BadInput(f"{path} is a fit by groups, which only transform and inverse accept")
    return fit


def read_any_fit(path: Path) -> pk.PowerFit | pk.GroupedFit:
    """Read a fit, with or without groups, that ``powerkern fit -o`` wrote."""
    try:
        with one_line_file_errors("read", path):
            fit = pk.load(path)
    except ValueError as error:
        raise BadInput(f"{path}: {one_line(error)}; --fit takes a file written by `powerkern fit -o`") from error
    if not isinstance(fit, pk.PowerFit | pk.GroupedFit):
        raise BadInput(f"{path} is a {type(fit).__name__}; --fit takes a file written by `powerkern fit -o`")
    return fit


def make_estimator(args: argparse.Namespace) -> Estimator:
    """Build the estimator that the arguments name, with its options."""
    name = args.estimator or args.default_estimator
    options = {option: value for option, value in vars(args).items() if option in OPTIONS}
    for option in options:
        if name in ESTIMATORS and name not in OPTIONS[option]:
            word = option.replace("_", "-")
            raise BadInput(f"--{word} is an option of --estimator {', '.join(OPTIONS[option])}, not of {name}")
    try:
        return with_options(name, options)
    except (TypeError, ValueError) as error:
        raise BadInput(str(error)) from None


def refuse_options(args: argparse.Namespace, *but: str) -> None:
    """Raise if fitting options accompany ``--fit``; options named in `but` apply to saved fits and are allowed."""
    unset = {
        "family": FAMILIES[0],
        "criterion": "likelihood",
        "no_standardize": False,
        "shift": 0.0,
        "infinite": "raise",
    }
    unset |= dict.fromkeys(("estimator", "ymax", "bounds", *OPTIONS))
    unset |= {"below_limit": [], "above_limit": []}
    given = [name for name, value in unset.items() if getattr(args, name, value) != value and name not in but]
    if given:
        words = ", ".join("--" + name.replace("_", "-") for name in given)
        raise BadInput(f"{words}: only for fitting, but --fit names a saved fit; leave out one or the other")


def text_format(args: argparse.Namespace, censored: CensoredCells = _NO_LIMITS) -> TextFormat:
    """Return the format of text tables that the arguments describe.

    Parameters
    ----------
    args : Namespace
        The arguments of the command.
    censored : CensoredCells
        Rules for reading cells that hold detection limits.
    """
    if args.thousands == args.decimal:
        raise BadInput(f"--thousands and the decimal sign are both {args.decimal!r}: pass another --decimal, too")
    return TextFormat(
        delimiter=args.delimiter,
        decimal=args.decimal,
        thousands=args.thousands,
        units=args.units,
        missing=args.missing,
        comment=args.comment or None,
        encoding=args.encoding,
        header=not args.no_header,
        censored=censored,
    )


@contextmanager
def locate_errors_in_file(path: Path, layout: FileLayout, block: Callable[[], Block]) -> Iterator[None]:
    """Add the file and the line of the rejected value to errors raised in this context.

    Parameters
    ----------
    path : Path
        The file.
    layout : FileLayout
        The columns of the table.
    block : callable
        Returns the block of rows that is being processed.
    """
    try:
        with AS_OPTIONS:
            yield
    except ImportError as error:  # tqdm
        raise BadInput(one_line(error)) from error
    except (ValueError, TypeError) as error:
        place = place_of(error)
        if place is not None and place.row is not None:
            where = layout.place(block(), place.column or 0, place.row)
            raise BadInput(f"{display_name(path)}, {where}: {place.reason}") from error
        raise BadInput(f"{display_name(path)}: {one_line(error)}") from error


def display_name(path: Path) -> str:
    """Return the name of a file for messages: without its folder, or "standard input"."""
    return "standard input" if str(path) == "-" else path.name


def one_line(error: Exception) -> str:
    """Return the message of an exception, joined to one line."""
    return " ".join(str(error).split())
