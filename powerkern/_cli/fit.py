"""Run ``powerkern fit`` and ``powerkern summary``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import powerkern as pk
from powerkern._cli.arguments import fit_options
from powerkern._cli.limits import (
    as_masks,
    censored_cells_of,
    censored_cells_to_fit,
    describe_limits,
    given_column_limits,
)
from powerkern._cli.output import complain, finite, plural, print_json, print_table, short
from powerkern._cli.reading import (
    choose_columns,
    choose_fitted_columns,
    display_name,
    locate_errors_in_file,
    make_estimator,
    read_fit,
    read_labels,
    refuse_options,
    select_fit_columns,
    text_format,
)
from powerkern._input.tables import files
from powerkern._input.tables.table import (
    NAMES_ROWS,
    BadInput,
    Block,
    FileLayout,
    Selection,
    Table,
    check_folder,
    stack_blocks,
)
from powerkern._typing import FloatArray
from powerkern.sketch import fit_chunks

#: Files of more than LARGE bytes and at most _MOST_COLUMNS columns are fitted block by block. With more columns the
#: sums would take too much memory.
LARGE, _MOST_COLUMNS = 64_000_000, 500

#: Number of random rows of a large file on which `summary` tests normality.
_ROWS_DRAWN = 20_000


def run_fit(args: argparse.Namespace) -> None:
    """Fit a table; print the results, or write the fit to a file or to standard output."""
    check_folder(args.output)
    to_output = str(args.output) == "-"
    if args.json and to_output:
        raise BadInput("--json and -o - both write to standard output: name a file with -o")
    fit: pk.PowerFit | pk.GroupedFit
    if args.groups is not None:
        fit, table = _fit_groups(args)
    else:
        fit, table = _fit_by_size(args)
    if to_output:
        print(fit.to_json())
        print_left_out(args, table, complain)
        return
    if args.output:
        files.write_text(args.output, fit.to_json() + "\n")
    if isinstance(fit, pk.GroupedFit):
        records = [{"group": label, **record} for label in fit for record in _make_records(fit[label], table)]
    else:
        records = _make_records(fit, table)
    if args.json:
        print_json(
            {
                "rows": table.n_rows,
                "family": fit.family,
                "estimator": fit.estimator.name,
                "columns": records,
                **_list_left_out(table),
                **_list_limits(table),
                **({"output": str(args.output)} if args.output else {}),
            }
        )
        return
    _print_fit(records)
    print_left_out(args, table)
    if args.output:
        print(f"\nfit of {plural(len(table.layout.positions), 'column')} written to {args.output}")


def run_summary(args: argparse.Namespace) -> None:
    """Fit a table; print confidence intervals and tests of normality."""
    options: dict[str, Any] = {"level": args.level, "n_threads": args.n_threads}
    fit, table = _fit_by_size(args)
    if table.block is None:
        options["sample"], options["sample_weight"] = _draw_rows(args)
    summary = fit.summary(**options)
    summary.names = np.array(table.layout.matrix_names)
    if args.json:
        entries = {
            name: [finite(value) if isinstance(value, float) else value for value in entry.tolist()]
            for name, entry in summary.to_dict().items()
        }
        columns = [dict(zip(entries, values, strict=True)) for values in zip(*entries.values(), strict=True)]
        about = {"rows": table.n_rows, "family": fit.family, "estimator": fit.estimator.name, "level": args.level}
        print_json({**about, "columns": columns, **_list_left_out(table), **_list_limits(table)})
        return
    print(summary.to_text(None))
    print_left_out(args, table)


def fit_table(args: argparse.Namespace) -> tuple[pk.PowerFit, Table]:
    """Read a table and fit it, or read it and the saved fit that ``--fit`` names; return the fit and the table."""
    if getattr(args, "fit", None) is not None:
        refuse_options(args, "cutoff")
        fit = select_fit_columns(read_fit(args.fit), args)
        needs_number = args.command != "outliers"  # `outliers` ignores detection limits
        text = text_format(args, censored_cells_of(fit)._replace(needs_number=needs_number))
        return fit, files.read(args.data, choose_fitted_columns(fit, args), text)
    found = _read_table(args)
    rows, weight = _split_weights(args, found.layout, found.rows)
    table = replace(found, layout=found.layout.without_weights(args.weights), block=rows)
    return _fit_rows(args, table, weight), table


def _fit_rows(args: argparse.Namespace, table: Table, weight: FloatArray | None, **groups: Any) -> Any:
    """Fit all rows of a table with the options of the command line.

    Parameters
    ----------
    args : Namespace
        The arguments of the command.
    table : Table
        The table, with all of its rows.
    weight : (n,) ndarray or None
        Weights of the rows.
    **groups
        ``groups=labels`` to fit each group separately.
    """
    with locate_errors_in_file(args.data, table.layout, lambda: table.rows):
        return pk.fit(
            table.rows.matrix,
            estimator=make_estimator(args),
            sample_weight=weight,
            origin=args.origin,
            **fit_options(args),
            limits=given_column_limits(args, table.layout),
            **as_masks(table.rows),
            column_names=_column_names(table.layout),
            **groups,
        )


def _column_names(layout: FileLayout) -> list[str] | None:
    """Return the names of the fitted columns, or None if they need no names.

    Without a header, columns are named by their positions in the table, unless every column is fitted in its place.
    """
    return layout.matrix_names if layout.named or not layout.is_whole else None


def _fit_groups(args: argparse.Namespace) -> tuple[pk.GroupedFit, Table]:
    """Read a table and fit each group of rows separately; return the fit and the table."""
    found = _read_table(args, keep=False)
    layout = found.layout
    blocks, weights, labels = [], [], []
    for block in _stream_blocks(args, layout):
        rows, weight = _split_weights(args, layout, block)
        blocks.append(rows)
        weights += [] if weight is None else [weight]
        labels += read_labels(block, layout, args)
    table = replace(found, layout=layout.without_weights(args.weights), block=stack_blocks(blocks))
    weight = np.concatenate(weights) if weights else None
    fit = _fit_rows(args, table, weight, groups=labels)
    if layout.named:  # the file then records which column holds the labels
        fit = fit._with_group_names([args.groups])
    return fit, table


def _fit_by_size(args: argparse.Namespace) -> tuple[pk.PowerFit, Table]:
    """Read and fit a table; large files are fitted in blocks with `fit_chunks` if the options allow it."""
    estimator = make_estimator(args)
    whole = not estimator.fits_chunks or args.origin is not None or args.criterion == "central"
    whole = whole or bool(args.below_limit or args.above_limit)
    if whole or not files.is_longer(args.data, LARGE):
        return fit_table(args)
    found = _read_table(args, keep=False)
    if len(found.layout.positions) > _MOST_COLUMNS or found.n_marked:
        return fit_table(args)
    table = replace(found, layout=found.layout.without_weights(args.weights))
    layout = table.layout
    blocks = _Blocks(args, found.layout)
    with locate_errors_in_file(args.data, layout, blocks.last):
        fit = fit_chunks(
            blocks,
            estimator=estimator,
            sample_weight=None if args.weights is None else blocks.weights,
            column_names=_column_names(layout),
            **fit_options(args),
        )
    return fit, table


class _Blocks:
    """Reader of a table, whose calls return iterators over the fitted columns in blocks of rows, from the first row on.

    `weights` yields the row weights of the block that was read last.
    """

    def __init__(self, args: argparse.Namespace, layout: FileLayout) -> None:
        self._args, self._layout = args, layout
        self._last = Block(np.empty((0, len(layout.positions))), {})
        self._weight: FloatArray | None = None

    def __call__(self) -> Iterator[FloatArray]:
        for block in _stream_blocks(self._args, self._layout):
            self._last = block
            rows, self._weight = _split_weights(self._args, self._layout, block)
            yield rows.matrix
        self._weight = None

    def weights(self) -> Iterator[FloatArray]:
        """Yield the weights of the block that was read last, once per iteration; stop after the end of the table."""
        while self._weight is not None:
            yield self._weight

    def last(self) -> Block:
        """Return the block that was read last, which is being fitted."""
        return self._last


def _stream_blocks(args: argparse.Namespace, layout: FileLayout) -> Iterator[Block]:
    """Yield the columns of `layout` from the start of the table, in blocks of rows."""
    text = text_format(args, censored_cells_to_fit(args))
    with files.stream(args.data, lambda names, named: Selection(layout.positions), text) as (_, blocks):
        yield from blocks


def _draw_rows(args: argparse.Namespace) -> tuple[FloatArray, FloatArray | None]:
    """Draw up to _ROWS_DRAWN random rows of the table, with a fixed seed; return them and their weights, if any."""
    layout = _read_table(args, keep=False).layout
    rng, keys, rows = np.random.default_rng(0), np.empty(0), np.empty((0, len(layout.positions)))
    for block in _stream_blocks(args, layout):
        keys = np.append(keys, rng.random(len(block.matrix)))
        rows = np.concatenate([rows, block.matrix])
        chosen = np.sort(np.argsort(keys)[:_ROWS_DRAWN])
        keys, rows = keys[chosen], rows[chosen]
    drawn, weight = _split_weights(args, layout, Block(rows, {}))
    return drawn.matrix, weight


def _read_table(args: argparse.Namespace, keep: bool = True) -> Table:
    """Read the columns to fit and the column of weights; store the rows only if `keep` is set."""
    table = files.read(args.data, choose_columns(args), text_format(args, censored_cells_to_fit(args)), keep)
    if table.layout.matrix_names == [args.weights]:
        raise BadInput(f"{display_name(args.data)} has no column to fit besides the weights, {args.weights!r}")
    return table


def _split_weights(args: argparse.Namespace, layout: FileLayout, block: Block) -> tuple[Block, FloatArray | None]:
    """Separate the column of weights from a block; return the other columns and the weights, which may be None."""
    if args.weights is None:
        return block, None
    at = layout.matrix_names.index(args.weights)
    weight = block.matrix[:, at].astype(np.float64)
    wrong = np.flatnonzero(~((weight >= 0.0) & (weight < np.inf)))
    if wrong.size:
        place = layout.place(block, at, int(wrong[0]))
        raise BadInput(
            f"{display_name(args.data)}, {place}: the weight is {weight[wrong[0]]}; "
            "weights must be finite and not negative"
        )
    marks = None if block.marks is None else np.delete(block.marks, at, axis=1)
    return block._replace(matrix=np.delete(block.matrix, at, axis=1), marks=marks), weight


def print_left_out(args: argparse.Namespace, table: Table, say: Callable[[str], None] = print) -> None:
    """Print the numbers of cells read as detection limits, and the columns that were not fitted, with reasons.

    The columns are omitted if the user chose the columns or a saved fit.
    """
    limits = describe_limits(table.n_marked)
    if limits:
        say(f"\n{limits}")
    if args.columns is not None or getattr(args, "fit", None) is not None:
        return
    unsaid = {*table.odd, *table.identifiers, *args.exclude, getattr(args, "groups", None), ""}
    plain = [name for name in table.layout.other_names if name not in unsaid]
    if plain:
        say(f"\nleft out, not numeric: {', '.join(plain)}")
    for name, reason in table.odd.items():
        say(f"left out, {reason}: {name!r}" if reason == NAMES_ROWS else f"left out: {name!r}, {reason}")
    if table.identifiers:
        reasons = "; ".join(f"{name!r}: {reason}" for name, reason in table.identifiers.items())
        say(f"left out, taken for identifiers (--columns fits them anyway): {reasons}")


def _print_fit(records: Sequence[dict[str, Any]]) -> None:
    """Print a table of the results, one line per column.

    Shift, center, divisor and the error of lambda are shown only if one of them differs from its default.
    """
    cells: dict[str, Callable[[dict[str, Any]], str]] = {
        "group": lambda r: str(r["group"]),
        "column": lambda r: str(r["column"]),
        "family": lambda r: str(r["family"]),
        "shift": lambda r: short(r["shift"]),
        "center": lambda r: short(r["center"]),
        "divisor": lambda r: short(r["divisor"]),
        "lambda": lambda r: short(r["lmbda"]),
        "lmbda_error": lambda r: short(r["lmbda_error"]),
        "mean": lambda r: short(r["loc"], r["log_factor"]),
        "sd": lambda r: short(r["scale"], r["log_factor"]),
        "n": lambda r: str(r["n_obs"]),
        "censored": lambda r: short(r["n_censored"]),
        "status": lambda r: str(r["status"]),
    }
    if not any(r["n_censored"] for r in records):
        del cells["censored"]
    if "group" not in records[0]:
        del cells["group"]
    if not any(r["shift"] for r in records):
        del cells["shift"]
    if all(r["lmbda_error"] == 0.0 for r in records):
        del cells["lmbda_error"]
    if all(r["family"] == "box-cox" or (r["center"], r["divisor"]) == (0.0, 1.0) for r in records):
        del cells["center"], cells["divisor"]
    left = {j for j, name in enumerate(cells) if name in {"group", "column", "family", "status"}}
    print_table(list(cells), [[cell(r) for cell in cells.values()] for r in records], left=left)


def _list_left_out(table: Table) -> dict[str, Any]:
    """Return the columns that were not fitted, with reasons; the reason is None if a column is simply not numeric."""
    reasons = {**table.odd, **{name: f"identifiers: {reason}" for name, reason in table.identifiers.items()}}
    names = [name for name in table.layout.other_names if name or name in reasons]
    return {"left_out": [{"column": name, "reason": reasons.get(name)} for name in names]}


def _list_limits(table: Table) -> dict[str, Any]:
    """Return the numbers of cells of each column that were read as lower and upper detection limits."""
    counts = [{"column": name, "below": low, "above": high} for name, (low, high) in table.n_marked.items()]
    return {"cells_read_as_limits": counts}


def _make_records(fit: pk.PowerFit, table: Table) -> list[dict[str, Any]]:
    """Return a dict of results for each fitted column."""
    columns = {
        "column": table.layout.matrix_names,
        "family": fit.families,
        **{
            name: map(finite, getattr(fit, name).tolist())
            for name in ("lmbda", "lmbda_error", "shift", "center", "divisor", "loc", "scale", "log_factor", "nll")
        },
        **{name: map(int, getattr(fit, name).tolist()) for name in ("n_obs", "n_kept", "n_iter")},
        "n_censored": fit.n_censored.tolist(),
        "status": fit.status_text,
    }
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
