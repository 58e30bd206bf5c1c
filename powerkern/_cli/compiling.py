"""``powerkern compile``: beforehand, for images, clusters and CI."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

from powerkern._cli import compilation
from powerkern._cli.output import print_json
from powerkern._cli.streams import complain
from powerkern._engine.threads import default_threads
from powerkern._input.messages import did_you_mean
from powerkern._input.tables.table import BadInput


def run(args: argparse.Namespace) -> None:
    if compilation.JIT_DISABLED:
        raise BadInput("numba is switched off: unset NUMBA_DISABLE_JIT")
    if args.cpu is not None:
        _check_cpu(args.cpu)
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


def _check_cpu(name: str) -> None:
    known = compilation.instruction_sets()
    if name not in known:
        hint = did_you_mean(name, known)
        raise BadInput(f"argument --cpu: invalid choice: {name!r} (choose from {', '.join(known)}){hint}")


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
