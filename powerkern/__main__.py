"""The command line: ``python -m powerkern demo | fit | summary | transform | inverse | compile``."""

from __future__ import annotations

import _thread
import argparse
import csv
import importlib.metadata
import json
import math
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TextIO

import numpy as np
from numpy.typing import NDArray

import powerkern as pk
from powerkern import _compile, _tables
from powerkern._engine.threads import default_threads
from powerkern._tables import BadInput, Table
from powerkern._validate import place_of

FAMILIES = ("yeo-johnson", "box-cox")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code.

    0: done. 1: standard output could not be written to; without a word where its reader (head, less) has gone.
    2: bad input, or a file that could not be written. 130: interrupted.
    """
    try:
        code = _run(argv)
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        _abandon(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            _complain(f"powerkern: cannot write to standard output: {error.strerror or error}")
        return 1
    return code


def _run(argv: Sequence[str] | None) -> int:
    """Carry out the command; the caller handles output that cannot be written."""
    try:
        args = _parser().parse_args(argv)
    except SystemExit as stop:  # --help and --version, or words that are no command
        return int(stop.code or 0)
    with warnings.catch_warnings(), _ctrl_c_while_compiling():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _warn
        try:
            args.run(args)
        except BadInput as error:
            _complain(f"powerkern {args.command}: {error}")
            return 2
        except MemoryError:
            _complain(f"powerkern {args.command}: the data do not fit into memory; use fewer rows or --columns")
            return 2
        except KeyboardInterrupt:
            _complain(f"powerkern {args.command}: interrupted")
            return 130
    return 0


def _complain(message: str) -> None:
    """A line on standard error, unless that cannot be written to either."""
    try:
        print(message, file=sys.stderr, flush=True)
    except OSError:
        _abandon(sys.stderr)


def _abandon(stream: TextIO) -> None:
    """Lead a stream that cannot be written to nowhere: the interpreter would complain of what is left in its buffer."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def _ctrl_c_while_compiling() -> Iterator[None]:
    """Repeat a KeyboardInterrupt that was raised inside one of LLVM's callbacks and lost there."""
    previous = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            threading.Timer(0.05, _thread.interrupt_main).start()
        else:
            previous(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = previous


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    _complain(f"powerkern: warning: {message}")


# --- arguments --------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """An argument parser that complains in one line."""

    def error(self, message: str) -> NoReturn:
        _complain(f"{self.prog}: {message} (see {self.prog} --help)")
        self.exit(2)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="powerkern", description="Fit and apply Box-Cox and Yeo-Johnson transforms, column by column."
    )
    parser.add_argument("--version", action="version", version=f"powerkern {pk.__version__}")
    names = "{demo,fit,summary,transform,inverse,compile}"
    commands = parser.add_subparsers(dest="command", required=True, metavar=names)

    demo = commands.add_parser("demo", help="fit simulated data with known lambdas; show error and speed")
    demo.set_defaults(run=_run_demo)
    demo.add_argument("--rows", type=_positive, default=20_000, help="rows to simulate (default: %(default)s)")
    demo.add_argument("--columns", type=_positive, default=500, help="columns to simulate (default: %(default)s)")
    demo.add_argument("--seed", type=int, default=1, help="seed of the simulation (default: %(default)s)")
    demo.add_argument("--save", type=Path, metavar="FOLDER", help="write the simulated matrices and their fits there")
    _add_common(demo)

    fit = commands.add_parser("fit", help="fit the numeric columns of a table")
    fit.set_defaults(run=_run_fit)
    fit.add_argument("-o", "--output", type=Path, metavar="FIT.json", help="where to write the fit")
    _add_fit(fit)

    summary = commands.add_parser(
        "summary", help="fit a table; show intervals, tests and how normal its columns become"
    )
    summary.set_defaults(run=_run_summary)
    summary.add_argument("--level", type=_level, default=0.95, help="of the intervals (default: %(default)s)")
    _add_fit(summary)

    for command, run, what in (
        ("transform", _run_transform, "apply a fit to a table"),
        ("inverse", _run_inverse, "take a transformed table back to the original values"),
    ):
        apply = commands.add_parser(command, help=what)
        apply.set_defaults(run=run)
        apply.add_argument("data", type=Path, help=".csv, .tsv (also gzipped), .parquet or .npy")
        apply.add_argument("--fit", type=Path, required=True, metavar="FIT.json", help="what `powerkern fit -o` wrote")
        apply.add_argument("-o", "--output", type=Path, help="where to write (default: CSV to standard output)")
        if command == "inverse":
            apply.add_argument(
                "--out-of-range",
                choices=("nan", "raise", "clip"),
                default="nan",
                help="what to do with values outside the transform's range (default: missing, with a warning)",
            )
        _add_delimiter(apply)
        _add_common(apply)

    compiling = commands.add_parser("compile", help="compile beforehand, for images, clusters and CI")
    compiling.set_defaults(run=_run_compile)
    compiling.add_argument(
        "--all", action="store_true", help="every kernel (default: those of fit, transform, inverse)"
    )
    compiling.add_argument(
        "--to", type=Path, metavar="FOLDER", help="what NUMBA_CACHE_DIR will be (default: where code is kept anyway)"
    )
    compiling.add_argument(
        "--cpu", choices=_compile.instruction_sets(), help="the instruction set (default: of this computer)"
    )
    compiling.add_argument("--processes", type=_positive, metavar="N", help="processes (default: all cores)")
    compiling.add_argument("--json", action="store_true", help="print JSON for programs in place of a sentence")
    return parser


def _add_fit(parser: argparse.ArgumentParser) -> None:
    """The table to fit, and how."""
    parser.add_argument("data", type=Path, help=".csv, .tsv (also gzipped), .parquet or .npy")
    parser.add_argument("--columns", metavar="A,B,...", help="columns to fit (default: every numeric column)")
    parser.add_argument("--family", choices=(*FAMILIES, "best"), default=FAMILIES[0], help="default: %(default)s")
    parser.add_argument("--estimator", default="mle", help="default: %(default)s")
    parser.add_argument(
        "--no-standardize", action="store_true", help="do not standardise to mean 0 and standard deviation 1"
    )
    parser.add_argument(
        "--shift",
        type=_numbers,
        default=0.0,
        metavar="C[,C...]",
        help="of Box-Cox: what is added to all columns, or to each (default: 0); --shift=-1,2 where a minus leads",
    )
    parser.add_argument("--ymax", type=float, help="bound lambda so that no transformed value exceeds this")
    parser.add_argument(
        "--bounds", type=_bounds, metavar="LOW,HIGH", help="smallest and largest lambda; nothing for none, as in 0,"
    )
    parser.add_argument("--progress", action="store_true", help="show a progress bar where it takes long (needs tqdm)")
    _add_delimiter(parser)
    _add_common(parser)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--n-threads", type=_positive, metavar="N", help="threads (default: all cores)")
    parser.add_argument("--json", action="store_true", help="print JSON for programs in place of the table")


def _add_delimiter(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--delimiter", type=_character, help="of text tables (default: comma; tab for .tsv)")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return int(text)


def _level(text: str) -> float:
    level = _numbers(text)
    if isinstance(level, list) or not 0.0 < level < 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0 and 1")
    return level


def _numbers(text: str) -> float | list[float]:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number, nor numbers with commas between them") from None
    return numbers if len(numbers) > 1 else numbers[0]


def _bounds(text: str) -> tuple[float | None, float | None]:
    try:
        low, high = [float(part) if part.strip() else None for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not two numbers with a comma between them") from None
    return low, high


def _character(text: str) -> str:
    text = {r"\t": "\t"}.get(text, text)
    if len(text) != 1 or text in '"\r\n':
        raise argparse.ArgumentTypeError(f"{text!r} is not one character")
    return text


# --- fit, transform, inverse ------------------------------------------------------------------------


def _run_fit(args: argparse.Namespace) -> None:
    _tables.check_folder(args.output)
    fit, table = _fitted(args)
    if args.output:
        _write_text(args.output, fit.to_json() + "\n")
    records = _records(fit, table)
    if args.json:
        _print_json({"rows": len(table.matrix), "family": fit.family, "estimator": args.estimator, "columns": records})
        return
    _print_fit(records)
    _print_left_out(args, table)


def _run_summary(args: argparse.Namespace) -> None:
    fit, table = _fitted(args)
    summary = fit.summary(level=args.level, n_threads=args.n_threads)
    summary.names = np.array(table.matrix_names)
    if args.json:
        entries = {name: [_plain(value) for value in entry.tolist()] for name, entry in summary.to_dict().items()}
        columns = [dict(zip(entries, figures, strict=True)) for figures in zip(*entries.values(), strict=True)]
        about = {"rows": len(table.matrix), "family": fit.family, "estimator": args.estimator, "level": args.level}
        _print_json({**about, "columns": columns})
        return
    print(summary.to_text(None))
    _print_left_out(args, table)


def _fitted(args: argparse.Namespace) -> tuple[pk.PowerFit, Table]:
    """The table that was asked for, or its columns, and their fit."""
    wanted = list(dict.fromkeys(next(csv.reader([args.columns])))) if args.columns else None
    table = _tables.read(args.data, _by_name(wanted, args.data), keep_rest=False, delimiter=args.delimiter)
    with _blame(args.data, table):
        fit = pk.fit(
            table.matrix,
            family=args.family,
            estimator=args.estimator,
            standardize=not args.no_standardize,
            shift=args.shift,
            ymax=args.ymax,
            bounds=args.bounds,
            n_threads=args.n_threads,
            progress=args.progress,
            column_names=table.matrix_names if table.named else None,
        )
    return fit, table


def _print_left_out(args: argparse.Namespace, table: Table) -> None:
    if table.other_names and args.columns is None:
        print(f"\nleft out, not numeric: {', '.join(table.other_names)}")


def _print_fit(records: Sequence[dict[str, Any]]) -> None:
    """A line for each column, with its shift where there are any."""
    cells: dict[str, Callable[[dict[str, Any]], str]] = {
        "column": lambda r: str(r["column"]),
        "family": lambda r: str(r["family"]),
        "shift": lambda r: _short(r["shift"]),
        "lambda": lambda r: _short(r["lmbda"]),
        "mean": lambda r: _short(r["loc"], r["log_factor"]),
        "sd": lambda r: _short(r["scale"], r["log_factor"]),
        "n": lambda r: str(r["n_obs"]),
        "status": lambda r: str(r["status"]),
    }
    if not any(r["shift"] for r in records):
        del cells["shift"]
    _print_table(list(cells), [[cell(r) for cell in cells.values()] for r in records], left={0, 1, len(cells) - 1})


def _run_transform(args: argparse.Namespace) -> None:
    _apply(args, lambda fit, matrix: fit.transform(matrix, n_threads=args.n_threads))


def _run_inverse(args: argparse.Namespace) -> None:
    _apply(
        args,
        lambda fit, matrix: fit.inverse_transform(matrix, out_of_range=args.out_of_range, n_threads=args.n_threads),
    )


def _apply(args: argparse.Namespace, work: Callable[[pk.PowerFit, NDArray[Any]], NDArray[Any]]) -> None:
    _tables.check_output(args.output)
    if args.json and args.output is None:
        raise BadInput("--json describes the file written: name it with -o")
    fit = _read_fit(args.fit)
    table = _tables.read(args.data, _by_fit(fit, args), keep_rest=True, delimiter=args.delimiter)
    with _blame(args.data, table):
        result = work(fit, table.matrix)
    _tables.write(args.output, table, result, delimiter=args.delimiter)
    if args.json:
        _print_json({"rows": len(result), "columns": table.matrix_names, "output": str(args.output)})
    elif args.output:
        print(f"{len(result)} rows x {len(table.positions)} columns written to {args.output}")


def _by_name(wanted: Sequence[str] | None, path: Path) -> _tables.Choice:
    def choose(names: Sequence[str], named: bool) -> Sequence[int] | None:
        if wanted is None:
            return None
        position = {name: j for j, name in enumerate(names)}
        for name in wanted:
            if name not in position:
                raise BadInput(f"{path.name} has no column {name!r}")
        return [position[name] for name in wanted]

    return choose


def _by_fit(fit: pk.PowerFit, args: argparse.Namespace) -> _tables.Choice:
    """The columns of a table that a fit applies to: by name where both have names, else by position."""

    def choose(names: Sequence[str], named: bool) -> Sequence[int] | None:
        if named and fit.column_names is not None:
            return _by_name(fit.column_names, args.data)(names, named)
        if len(names) != len(fit.lmbda):
            raise BadInput(f"{args.data.name} has {len(names)} columns, {args.fit.name} is a fit of {len(fit.lmbda)}")
        return range(len(names))

    return choose


def _read_fit(path: Path) -> pk.PowerFit:
    with _tables.sentences("read", path):
        text = path.read_text(encoding="utf-8")
    try:
        return pk.PowerFit.from_json(text)
    except ValueError as error:
        raise BadInput(f"{path}: {_one_line(error)}") from error


@contextmanager
def _blame(path: Path, table: Table) -> Iterator[None]:
    """Say which file holds the values that powerkern rejects, and where."""
    try:
        yield
    except ImportError as error:  # tqdm
        raise BadInput(_one_line(error)) from error
    except (ValueError, TypeError) as error:
        place = place_of(error)
        if place is not None:
            where = table.place(place.column or 0, place.row)
            raise BadInput(f"{path.name}, {where}: {place.reason}") from error
        raise BadInput(f"{path.name}: {_one_line(error)}") from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _records(fit: pk.PowerFit, table: Table) -> list[dict[str, Any]]:
    """What is printed of each column; every attribute of the fit, a list of all columns, is taken once."""
    columns = {
        "column": table.matrix_names,
        "family": fit.families,
        **{
            name: map(_finite, getattr(fit, name).tolist())
            for name in ("lmbda", "shift", "loc", "scale", "log_factor", "nll")
        },
        **{name: map(int, getattr(fit, name).tolist()) for name in ("n_obs", "n_kept", "n_iter")},
        "status": fit.status_text,
    }
    return [dict(zip(columns, figures, strict=True)) for figures in zip(*columns.values(), strict=True)]


# --- compile ----------------------------------------------------------------------------------------


def _run_compile(args: argparse.Namespace) -> None:
    if _compile.JIT_DISABLED:
        raise BadInput("numba is switched off: unset NUMBA_DISABLE_JIT")
    work = _compile.Compilation(args.all, args.to, args.cpu, args.processes or default_threads())
    started = time.perf_counter()
    try:
        kept = list(_with_progress(work))
    except OSError as error:
        raise BadInput(f"compiled code cannot be kept: {error}") from error
    seconds, size = time.perf_counter() - started, sum(one.size for one in kept)
    if args.json:
        entries = {one.name: {"seconds": one.seconds, "bytes": one.size} for one in kept}
        _print_json({"folder": str(work.folder), "seconds": seconds, "bytes": size, "entries": entries})
        return
    there = sum(not one.seconds for one in kept)
    print(f"{len(kept)} entries, {there} of them there before: {seconds:.1f} s, {size / 1e6:.1f} MB in {work.folder}")


def _with_progress(work: _compile.Compilation) -> Iterator[_compile.Kept]:
    """Each entry as it is done, with a bar (where there is tqdm) or a line on standard error."""
    try:
        from tqdm import tqdm
    except ImportError:
        for done, one in enumerate(work, 1):
            _complain(f"[{done}/{len(work.names)}] {one.name}: {one.seconds:.1f} s")
            yield one
    else:
        yield from tqdm(work, total=len(work.names), desc="compiling", unit="entry")


# --- demo -------------------------------------------------------------------------------------------

_PEER_COLUMNS = 3
_REPEATS = 3


class _Figures(NamedTuple):
    """What the demo finds out about one family."""

    family: str
    #: Root mean square of (estimate - truth) / standard error; 1 for an efficient estimator.
    rms_error: float
    #: Fraction of columns whose true lambda lies within 1.96 standard errors of the estimate.
    coverage: float
    fit_seconds: float
    ns_per_value: float
    transform_ns_per_value: float
    inverse_ns_per_value: float
    #: Largest error of inverse(transform(x)), relative to 1 + |x|.
    round_trip_error: float
    #: Nanoseconds per value by peer.
    peers: dict[str, float]


def _run_demo(args: argparse.Namespace) -> None:
    if args.save:
        with _tables.sentences("write", args.save):
            args.save.mkdir(parents=True, exist_ok=True)
    say = (lambda *_: None) if args.json else print
    n_threads = args.n_threads or default_threads()
    say(f"powerkern {pk.__version__}: {args.rows:,} x {args.columns:,} simulated values each, {n_threads} threads")
    started = time.perf_counter()
    _warm_up(args)
    say(f"compiled, or loaded from the cache, in {time.perf_counter() - started:.1f} s\n")
    figures = [_demo(family, args) for family in ("box-cox", "yeo-johnson")]
    if args.json:
        _print_json(
            {
                "rows": args.rows,
                "columns": args.columns,
                "n_threads": n_threads,
                "families": [f._asdict() for f in figures],
            }
        )
        return
    _print_table(["", *(f.family for f in figures)], _demo_rows(figures), left={0})
    measured = min(_PEER_COLUMNS, args.columns)
    print(
        f"\nTimes are the best of {_REPEATS} runs. Peers run on one core and are measured on {measured} of the columns."
    )
    if args.save:
        print(f"Saved in {args.save}: box-cox.npy, box-cox.json, yeo-johnson.npy, yeo-johnson.json.")


def _demo_rows(figures: Sequence[_Figures]) -> list[list[str]]:
    def row(label: str, cell: Callable[[_Figures], str]) -> list[str]:
        return [label, *map(cell, figures)]

    return [
        row("error of lambda, rms, in standard errors (1 is exact)", lambda f: f"{f.rms_error:.2f}"),
        row("true lambda within 1.96 standard errors (95 % is exact)", lambda f: f"{f.coverage:.1%}"),
        row("error of inverse(transform(x)), relative", lambda f: f"{f.round_trip_error:.0e}"),
        row("fit, seconds", lambda f: f"{f.fit_seconds:.3f}"),
        row("fit, million values/s", lambda f: f"{1e3 / f.ns_per_value:,.1f}"),
        row("fit, ns/value", lambda f: f"{f.ns_per_value:.2f}"),
        *(
            row(f"  {peer}", lambda f: f"{f.peers[peer]:,.0f} (x {f.peers[peer] / f.ns_per_value:,.0f})")  # noqa: B023 - called at once
            for peer in figures[0].peers
        ),
        row("transform, ns/value", lambda f: f"{f.transform_ns_per_value:.2f}"),
        row("inverse, ns/value", lambda f: f"{f.inverse_ns_per_value:.2f}"),
    ]


def _warm_up(args: argparse.Namespace) -> None:
    """Compile everything that is timed later."""
    for family in FAMILIES:
        x = _simulate(family, np.ones(2), 50, np.random.default_rng(0))
        fit = pk.fit(x, family=family, n_threads=args.n_threads)
        fit.inverse_transform(fit.transform(x))


def _demo(family: str, args: argparse.Namespace) -> _Figures:
    rng = np.random.default_rng([args.seed, FAMILIES.index(family)])
    # Yeo-Johnson reaches every real number, so that the truth can be exactly normal, for 0 <= lambda <= 2
    truth = rng.uniform(*((-1, 1) if family == "box-cox" else (0, 2)), args.columns)
    x = _simulate(family, truth, args.rows, rng)
    seconds, fit = _best(lambda: pk.fit(x, family=family, n_threads=args.n_threads))
    transform_seconds, z = _best(lambda: fit.transform(x, n_threads=args.n_threads))
    inverse_seconds, back = _best(lambda: fit.inverse_transform(z, n_threads=args.n_threads))
    error = (fit.lmbda - truth) * np.sqrt(fit.information)
    if args.save:
        with _tables.sentences("write", args.save / f"{family}.npy"):
            np.save(args.save / f"{family}.npy", x)
        _write_text(args.save / f"{family}.json", fit.to_json() + "\n")
    per_value = 1e9 / x.size
    return _Figures(
        family=family,
        rms_error=math.sqrt(np.mean(error**2)),
        coverage=float(np.mean(np.abs(error) < 1.959964)),
        fit_seconds=seconds,
        ns_per_value=seconds * per_value,
        transform_ns_per_value=transform_seconds * per_value,
        inverse_ns_per_value=inverse_seconds * per_value,
        round_trip_error=float(np.max(np.abs(back - x) / (1 + np.abs(x)))),
        peers=_peers(family, np.ascontiguousarray(x[:, :_PEER_COLUMNS])),
    )


def _simulate(family: str, lmbda: NDArray[np.float64], rows: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """A (rows, p) matrix whose column j is exactly normal after the transform with lmbda[j]."""
    z = rng.standard_normal((rows, lmbda.size))
    if family == "box-cox":  # unchanged by scale: lambda y > -1 is what the spread of 0.15 is for
        x: NDArray[np.float64] = np.exp(rng.uniform(-3, 7, lmbda.size) + np.log1p(lmbda * (0.15 * z)) / lmbda)
        return x
    y = z + rng.uniform(-1, 1, lmbda.size)
    exponent = np.where(y >= 0, lmbda, 2 - lmbda)
    x = np.copysign(np.expm1(np.log1p(exponent * np.abs(y)) / exponent), y)
    return x


def _best(work: Callable[[], Any]) -> tuple[float, Any]:
    """The shortest of a few runs, in seconds, and the last result."""
    seconds = math.inf
    for _ in range(_REPEATS):
        started = time.perf_counter()
        result = work()
        seconds = min(seconds, time.perf_counter() - started)
    return seconds, result


def _peers(family: str, x: NDArray[np.float64]) -> dict[str, float]:
    """Nanoseconds a value that the installed peers take to find lambda."""
    figures = {}
    for package, peer in (("scipy", _fit_scipy), ("scikit-learn", _fit_sklearn)):
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        peer(family, x[:100])  # its imports are not what is timed
        seconds, _ = _best(lambda: peer(family, x))  # noqa: B023 - called at once
        figures[f"{package} {version}"] = seconds * 1e9 / x.size
    return figures


def _fit_scipy(family: str, x: NDArray[np.float64]) -> None:
    from scipy import stats

    for column in np.ascontiguousarray(x.T):
        if family == "box-cox":
            stats.boxcox_normmax(column, method="mle")
        else:
            stats.yeojohnson_normmax(column)


def _fit_sklearn(family: str, x: NDArray[np.float64]) -> None:
    from sklearn.preprocessing import PowerTransformer

    PowerTransformer(family, standardize=False).fit(x)


# --- output -----------------------------------------------------------------------------------------


def _write_text(path: Path, text: str) -> None:
    with _tables.sentences("write", path):
        path.write_text(text, encoding="utf-8")


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2, allow_nan=False))


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: set[int]) -> None:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, ["-" * width for width in widths], *rows):
        cells = (
            f"{cell:<{width}}" if j in left else f"{cell:>{width}}"
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join(cells).rstrip())


def _plain(value: Any) -> Any:
    """A cell as JSON has it."""
    return _finite(value) if isinstance(value, float) else value


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _short(value: float | None, log_factor: float | None = None) -> str:
    """``value * exp(log_factor)`` in six digits, also where float64 could not hold it."""
    if value is None:
        return ""
    if not log_factor or not value:
        return f"{value:.6g}"
    digits, exponent = f"{value:.15e}".split("e")
    rest, whole = math.modf(log_factor / math.log(10))
    return f"{float(digits) * 10**rest:.6g}e{int(exponent) + int(whole):+}"


if __name__ == "__main__":
    sys.exit(main())
