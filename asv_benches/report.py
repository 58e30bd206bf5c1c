"""Measure every figure that powerkern is meant to reach, in one run, by the benchmark classes of this folder.

python -m asv_benches.report [--only WORD] [--seconds S] [--write docs/benchmarks/figures.inc]
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from powerkern._engine.threads import default_threads

from . import bench_apply, bench_engine, bench_fit, bench_startup, bench_stats
from ._measure import PEER_COLUMNS, Lap, units

_ROOT = Path(__file__).resolve().parents[1]


class Figure(NamedTuple):
    """A benchmark with its parameters and a target; `method` names one of its track_ methods."""

    name: str
    target: str
    benchmark: type
    method: str
    parameters: tuple[Any, ...] = ()

    def reached(self, value: float) -> bool:
        """Return whether the value meets the target, such as "<= 0.5 s"."""
        relation, limit = self.target.split()[:2]
        return value <= float(limit) if relation == "<=" else value >= float(limit)

    @property
    def unit(self) -> str:
        return " ".join(self.target.split()[2:])


class Result(NamedTuple):
    """The value of a figure, or None if the benchmark cannot run here, and the laps from which it was computed."""

    figure: Figure
    value: float | None
    laps: dict[str, Lap]

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "not measured"
        return "yes" if self.figure.reached(self.value) else "NO"

    def row(self) -> tuple[str, str, str, str, str]:
        """Return the cells of the figure's row in a table."""
        value = "" if self.value is None else f"{self.value:.3g} {self.figure.unit}".strip()
        laps = "; ".join(f"{name} {lap.wall:.3g} s, {lap.cpu / lap.wall:.2f} cores" for name, lap in self.laps.items())
        return self.figure.name, self.figure.target, value, self.verdict, laps

    @property
    def cell(self) -> str:
        """Return the value as text, with the target if the value misses it."""
        if self.value is None:
            return ""
        return f"{self.value:.3g}" + f" (not {self.figure.target})" * (self.verdict == "NO")


HEADINGS = ("figure", "target", "measured", "reached", "fastest lap of each, by the clock, and CPU time over it")


#: The matrix of most figures.
N, P = 10_000, 1_000
FAMILIES = ("box-cox", "yeo-johnson")


def figures() -> Iterator[Figure]:
    """Yield all figures that have a target, at full size."""
    yield from accuracy()
    yield from fitting()
    yield from applying()
    yield from one_column()
    yield from memory()
    yield from startup()
    yield from identity()


def accuracy() -> Iterator[Figure]:
    """Yield figures for lambda, compared with optima known to many digits."""
    errors, library = bench_fit.Accuracy, "powerkern"
    for cases, where in (("shared", "of the reference values beside the repository"), ("tests", "of tests/data")):
        name = f"error of lambda, worst well-conditioned column {where}"
        yield Figure(name, "<= 1e-12", errors, "track_worst", (cases, library))
        name = f"error of lambda over the effect of half an ulp, worst ill-conditioned column {where}"
        yield Figure(name, "<= 10", errors, "track_worst_ill", (cases, library))


def fitting() -> Iterator[Figure]:
    """Yield figures for fits of a matrix."""
    peer = f"scikit-learn, {PEER_COLUMNS} columns scaled"
    for family, target in (("yeo-johnson", ">= 300 x"), ("box-cox", ">= 800 x")):
        name = f"fit {family}, row-major, over {peer}"
        yield Figure(name, target, bench_fit.Peers, "track_speedup", (family, peer, N, P))
    layouts = (("box-cox", "F", "<= 3.5"), ("box-cox", "C", "<= 5"), ("yeo-johnson", "C", "<= 6"))
    for family, order, target in layouts:
        name = f"fit {family}, order {order}, one thread, in passes of np.exp"
        yield Figure(name, target, bench_fit.OneThread, "track_exp_units", (family, order, N, P))
    for family, order, _ in layouts:
        name = f"fit {family}, order {order}, two threads over one"
        yield Figure(name, ">= 1.8 x", bench_fit.OneThread, "track_thread_scaling", (family, order, N, P))


def applying() -> Iterator[Figure]:
    """Yield figures for fits applied to a matrix."""
    for job, target in (("transform", ">= 15 x"), ("inverse_transform", ">= 10 x")):
        for family, output in itertools.product(FAMILIES, bench_apply.OUTPUTS):
            name = f"{job} {family}, {output}, row-major, over scikit-learn"
            parameters = (job, family, output, "scikit-learn", N, P)
            yield Figure(name, target, bench_apply.Peers, "track_speedup", parameters)
    for job, where in itertools.product(bench_apply.JOBS, ("out=", "in place")):
        name = f"{job}, {where}: memory over the matrix's"
        yield Figure(name, "<= 0.05", bench_apply.Memory, "track_share", (job, "yeo-johnson", where, N, P))


def one_column() -> Iterator[Figure]:
    """Yield figures for functions of powerkern.stats."""
    name = "stats.boxcox of 1,000 values over scipy.stats.boxcox"
    yield Figure(name, ">= 100 x", bench_stats.Ratio, "track_speedup", ("boxcox", 1_000))
    yield Figure("stats.boxcox, overhead of a call", "<= 50 us", bench_stats.Overhead, "track_overhead", ("boxcox", 3))


def memory() -> Iterator[Figure]:
    """Yield figures for the memory of a process that fits a large matrix."""
    for family, order in itertools.product(FAMILIES, ("C", "F")):
        name = f"fit {family}, 100000 x 200, order {order}: memory beyond the input"
        yield Figure(name, "<= 64 MB", bench_fit.Memory, "track_resident", (family, order, 100_000, 200))


def startup() -> Iterator[Figure]:
    """Yield figures for the first calls in new processes."""
    method = "track_seconds_beyond_one_and_a_half_numba"
    yield Figure("import powerkern less 1.5 times import numba", "<= 0.15 s", bench_startup.ImportBesideNumba, method)
    for family in FAMILIES:
        name = f"first fit {family} in a new process, compiled code on disk"
        yield Figure(name, "<= 0.5 s", bench_startup.FirstCall, "track_warm", ("fit", family))
    yield Figure("first fit in a new process, nothing on disk", "<= 10 s", bench_startup.Compile, "track_fit")


def identity() -> Iterator[Figure]:
    """Yield figures for the bit-identity of results."""
    for family in FAMILIES:
        differing, parameters = f"fit {family}: lambdas that differ in any bit", (family, N, 100)
        name = f"{differing} by threads (1, 2, 8), order (C, F), permuted columns"
        yield Figure(name, "<= 0", bench_fit.Identity, "track_differences", parameters)
        name = f"{differing} in eight Python threads at once, a forked child, after pickling"
        yield Figure(name, "<= 0", bench_fit.Identity, "track_differences_at_once", parameters)


def measure(figure: Figure, seconds: float) -> Result:
    """Run the benchmark of one figure as asv would; calls that are compared alternate for `seconds`."""
    benchmark = figure.benchmark()
    benchmark.seconds = seconds
    try:
        if hasattr(benchmark, "setup"):
            benchmark.setup(*figure.parameters)
        value = getattr(benchmark, figure.method)(*figure.parameters)
    except NotImplementedError:  # raised by benchmarks that cannot run here
        return Result(figure, None, {})
    return Result(figure, float(value), getattr(benchmark, "laps", {}))


def cores() -> str:
    """Describe the current speedup by a second thread, which is near 2 if both cores are free."""
    benchmark = bench_engine.Cores()
    benchmark.seconds = 3.0
    return f"two threads of np.exp do {benchmark.track_thread_scaling():.2f} times the work of one"


# --- output -------------------------------------------------------------------------------------------


def machine() -> str:
    """Return a sentence that describes the machine, its software, the date, the commit and the units of time."""
    cpu = platform.processor() or platform.machine()
    names = Path("/proc/cpuinfo")
    if names.exists():
        cpu = next((line.split(":")[1].strip() for line in names.read_text().splitlines() if "model name" in line), cpu)
    software = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "scipy", "scikit-learn"))
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=_ROOT, capture_output=True, text=True)
    commit = f", commit {git.stdout.strip()}" if git.returncode == 0 else ""
    today = datetime.datetime.now(datetime.UTC).date()
    return (
        f"{cpu}, {default_threads()} cores; {platform.system()}, Python {platform.python_version()}, {software}; "
        f"{today}{commit}; {units()}"
    )


def as_rst(results: Iterable[Result], conditions: str, command: str) -> str:
    """Return the table of results as reStructuredText, with the conditions and the command in its caption."""
    return list_table(f"Measured by ``{command}`` on: {conditions}", HEADINGS, (result.row() for result in results))


def crossed(results: Iterable[Result], conditions: str, command: str) -> str:
    """Return a two-way table of the results as reStructuredText; the arguments are as in `as_rst`.

    The name of a figure has its row before the colon, and its column after it.
    """
    table: dict[str, dict[str, str]] = {}
    for result in results:
        row, column = result.figure.name.split(": ")
        table.setdefault(row, {})[column] = result.cell
    columns = list(dict.fromkeys(column for cells in table.values() for column in cells))
    rows = ([row, *(cells.get(column, "") for column in columns)] for row, cells in table.items())
    return list_table(f"Measured by ``{command}`` on: {conditions}", ["", *columns], rows)


def list_table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with a caption and headings as reStructuredText."""
    lines = [caption, "", ".. list-table::", "   :header-rows: 1", ""]
    for cells in (headings, *rows):
        texts = [cell.replace("|", r"\|") for cell in cells]
        lines += [f"   {'* -' if i == 0 else '  -'} {text}".rstrip() for i, text in enumerate(texts)]
    return "\n".join(lines) + "\n"


def main(
    wanted: Callable[[], Iterable[Figure]] = figures,
    table: Callable[[Iterable[Result], str, str], str] = as_rst,
    seconds: float = 3.0,
) -> None:
    """Measure figures, print each as soon as it is measured, and write the table that ``--write`` requests.

    Parameters
    ----------
    wanted : callable
        Returns the figures to measure.
    table : callable
        Formats results, conditions and command as reStructuredText, as `as_rst` does.
    seconds : float
        Time for which the calls of one figure alternate; default of ``--seconds``.
    """
    command = f"python -m asv_benches.{Path(sys.argv[0]).stem}"
    parser = argparse.ArgumentParser(prog=command, description=sys.modules["__main__"].__doc__)
    parser.add_argument("--only", default="", help="measure figures whose name has this word")
    parser.add_argument("--seconds", type=float, default=seconds, help="how long the laps of a figure take turns")
    parser.add_argument("--write", type=Path, help="write the table as reStructuredText to this file")
    options = parser.parse_args()
    conditions = f"{machine()}; before the run {cores()}"
    print(conditions, " | ".join(HEADINGS), sep="\n")
    results, begin = [], time.perf_counter()
    for figure in wanted():
        if options.only in figure.name:
            results.append(measure(figure, options.seconds))
            print(" | ".join(results[-1].row()), flush=True)
    conditions += f", after it {cores()}."
    missed = sum(result.verdict == "NO" for result in results)
    print(conditions, f"{len(results)} figures, {missed} missed, in {time.perf_counter() - begin:.0f} s", sep="\n")
    if options.write:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        options.write.write_text(table(results, conditions, command + f' --only "{options.only}"' * bool(options.only)))


if __name__ == "__main__":
    main()
