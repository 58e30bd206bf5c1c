"""Run ``powerkern compile``: compile in several processes beforehand, for images, clusters and wheels."""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from powerkern._cli.output import complain, print_json
from powerkern._engine.threads import default_threads
from powerkern._input.messages import did_you_mean
from powerkern._input.tables.table import BadInput
from powerkern.kernels.compilation import JIT_DISABLED, cpu_levels, entries, writable_folder

#: Number of new objects (some GB) after which a compiling process collects garbage. A collection takes seconds and
#: frees little.
_COLLECTED = 8_000_000


class CompiledEntry(NamedTuple):
    """Compiled code of one entry on disk."""

    name: str
    #: Seconds that the compilation took; 0 if the code was there already.
    seconds: float
    #: Size of the file, in bytes.
    size: int


def run(args: argparse.Namespace) -> None:
    """Compile the usual entries, or all entries, into a folder, and print how long it took."""
    if JIT_DISABLED:
        raise BadInput("numba is switched off: unset NUMBA_DISABLE_JIT")
    if args.cpu is not None:
        _check_cpu(args.cpu)
    names, started = list(entries(args.all)), time.perf_counter()
    try:
        with _start_workers(args.to, args.cpu, args.processes or default_threads()) as workers:
            folder = workers[0].submit(writable_folder).result()
            kept = list(_with_progress(_compile_each(names, folder, workers), len(names)))
    except BrokenProcessPool:
        why = "a compiling process was killed, perhaps because memory ran out"
        raise BadInput(f"compiled code cannot be stored: {why}") from None
    except OSError as error:
        raise BadInput(f"compiled code cannot be stored: {error}") from error
    seconds, size = time.perf_counter() - started, sum(one.size for one in kept)
    if args.json:
        each = {one.name: {"seconds": one.seconds, "bytes": one.size} for one in kept}
        print_json({"folder": str(folder), "seconds": seconds, "bytes": size, "entries": each})
        return
    there = sum(not one.seconds for one in kept)
    print(
        f"{len(kept)} entries, {there} of which were compiled before: {seconds:.1f} s, {size / 1e6:.1f} MB in {folder}"
    )


def _check_cpu(name: str) -> None:
    """Raise unless `name` is a known CPU level; suggest a similar name."""
    known = list(cpu_levels())
    if name not in known:
        hint = did_you_mean(name, known)
        raise BadInput(f"argument --cpu: invalid choice: {name!r} (choose from {', '.join(known)}){hint}")


def _with_progress(compiled: Iterator[CompiledEntry], n: int) -> Iterator[CompiledEntry]:
    """Yield each entry once it is compiled; show a progress bar if tqdm is installed, otherwise lines on stderr."""
    try:
        from tqdm import tqdm
    except ImportError:
        for done, one in enumerate(compiled, 1):
            complain(f"[{done}/{n}] {one.name}: {one.seconds:.1f} s")
            yield one
    else:
        yield from tqdm(compiled, total=n, desc="compiling", unit="entry")


@contextmanager
def _start_workers(to: Path | None, cpu: str | None, n: int) -> Iterator[list[ProcessPoolExecutor]]:
    """Start n processes; numba reads its variables from their environment when they import it.

    Each process is an executor of its own, so that entries can be assigned to processes.
    """
    spawn, before = multiprocessing.get_context("spawn"), dict(os.environ)
    os.environ.update({} if to is None else {"NUMBA_CACHE_DIR": str(to.absolute())})
    os.environ.update({} if cpu is None else {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": ""})
    try:
        with ExitStack() as stack:
            workers = [stack.enter_context(ProcessPoolExecutor(1, spawn, _prepare)) for _ in range(n)]
            try:
                yield workers
            finally:
                for worker in workers:
                    worker.shutdown(wait=False, cancel_futures=True)
    finally:
        os.environ.clear()
        os.environ.update(before)


def _compile_each(names: list[str], folder: Path, workers: list[ProcessPoolExecutor]) -> Iterator[CompiledEntry]:
    """Compile the entries in worker processes; yield each one once it is compiled.

    Entries of a module share kernels, so each worker compiles neighboring entries. A worker without work takes entries
    from the longest queue.
    """
    size = -(-len(names) // len(workers))
    shares = [deque(names[k * size : (k + 1) * size]) for k in range(len(workers))]
    running: dict[Future[CompiledEntry], int] = {}

    def give_work_to(k: int) -> None:
        longest = max(shares, key=len)
        if longest:
            name = shares[k].popleft() if shares[k] else longest.pop()
            running[workers[k].submit(_compile_entry, name, folder)] = k

    for k in range(len(workers)):
        give_work_to(k)
    while running:
        for task in wait(running, return_when=FIRST_COMPLETED).done:
            give_work_to(running.pop(task))
            yield task.result()


def _prepare() -> None:
    """Prepare a new process for compiling: let Ctrl-C end it, and collect garbage rarely."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(_COLLECTED)


def _compile_entry(name: str, folder: Path) -> CompiledEntry:
    """Compile one entry in this process, unless the folder has its code."""
    entry = entries()[name]
    started = time.perf_counter()
    compiled = entry.keep_in(folder)
    seconds = time.perf_counter() - started if compiled else 0.0
    return CompiledEntry(name, seconds, entry.file_in(folder).stat().st_size)
