"""``powerkern compile``: beforehand, for images, clusters and CI."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

from powerkern._cli import compilation
from powerkern._cli.arguments import Commands, positive
from powerkern._cli.output import complain, print_json
from powerkern._engine.threads import default_threads
from powerkern._input.tables import BadInput

_EXAMPLES = """\
powerkern compile
powerkern compile --all --cpu x86-64-v3 --to /shared/powerkern"""


def add(commands: Commands) -> None:
    """Its arguments."""
    parser = commands.add_parser("compile", _EXAMPLES, "compile beforehand, for images, clusters and CI")
    parser.set_defaults(run=run)
    parser.add_argument("--all", action="store_true", help="every kernel (default: those of fit, transform, inverse)")
    parser.add_argument(
        "--to", type=Path, metavar="FOLDER", help="what NUMBA_CACHE_DIR will be (default: where code is kept anyway)"
    )
    parser.add_argument(
        "--cpu", choices=compilation.instruction_sets(), help="the instruction set (default: of this computer)"
    )
    parser.add_argument(
        "--processes", "--jobs", "-j", type=positive, metavar="N", help="processes (default: all cores)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON for programs in place of a sentence")


def run(args: argparse.Namespace) -> None:
    if compilation.JIT_DISABLED:
        raise BadInput("numba is switched off: unset NUMBA_DISABLE_JIT")
    work = compilation.Compilation(args.all, args.to, args.cpu, args.processes or default_threads())
    started = time.perf_counter()
    try:
        kept = list(_with_progress(work))
    except OSError as error:
        raise BadInput(f"compiled code cannot be kept: {error}") from error
    seconds, size = time.perf_counter() - started, sum(one.size for one in kept)
    if args.json:
        entries = {one.name: {"seconds": one.seconds, "bytes": one.size} for one in kept}
        print_json({"folder": str(work.folder), "seconds": seconds, "bytes": size, "entries": entries})
        return
    there = sum(not one.seconds for one in kept)
    print(f"{len(kept)} entries, {there} of them there before: {seconds:.1f} s, {size / 1e6:.1f} MB in {work.folder}")


def _with_progress(work: compilation.Compilation) -> Iterator[compilation.Kept]:
    """Each entry as it is done, with a bar (where there is tqdm) or a line on standard error."""
    try:
        from tqdm import tqdm
    except ImportError:
        for done, one in enumerate(work, 1):
            complain(f"[{done}/{len(work.names)}] {one.name}: {one.seconds:.1f} s")
            yield one
    else:
        yield from tqdm(work, total=len(work.names), desc="compiling", unit="entry")
