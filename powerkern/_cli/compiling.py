"""Run ``powerkern compile``, which compiles kernels ahead of time for container images, clusters and wheels."""

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
    """The compiled code of one entry point, as stored on disk."""

    name: str
    #: Seconds that the compilation took; 0 if the code was there already.
    seconds: float
    #: Size of the file, in bytes.
    size: int


def run(args: argparse.Namespace) -> None:
    """Compile the default or all entry points into a folder; print the time taken and the size of the code."""
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
        why = "a compiling process was killed, perhaps because memory ran out; use fewer --processes"
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
    """Raise an error that suggests the most similar CPU level unless `name` is a CPU level."""
    known = list(cpu_levels())
    if name not in known:
        hint = did_you_mean(name, known)
        raise BadInput(f"argument --cpu: invalid choice: {name!r} (choose from {', '.join(known)}){hint}")


def _with_progress(compiled: Iterator[CompiledEntry], n: int) -> Iterator[CompiledEntry]:
    """Yield the compiled entries and show progress: a tqdm bar if tqdm is installed, else a line per entry on stderr.

    Parameters
    ----------
    compiled : iterator of CompiledEntry
        Yields each entry once it is compiled.
    n : int
        Number of entries.
    """
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
    """Start n worker processes, each an executor of its own, so that a task can be assigned to a particular worker.

    numba reads its environment variables when a process imports it. They are therefore set while the workers start.

    Parameters
    ----------
    to : Path or None
        The folder for compiled code; None: the usual one.
    cpu : str or None
        CPU level to compile for; None: this CPU.
    n : int
        Number of processes.
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
    """Compile the named entries into `folder` with the worker processes; yield each one once it is compiled.

    Entries of a module share kernels, so each worker compiles neighboring entries. A worker without work takes entries
    from the longest queue.
    """
    size = -(-len(names) // len(workers))
    queues = [deque(names[k * size : (k + 1) * size]) for k in range(len(workers))]
    running: dict[Future[CompiledEntry], int] = {}

    def give_work_to(k: int) -> None:
        longest = max(queues, key=len)
        if longest:
            name = queues[k].popleft() if queues[k] else longest.pop()
            running[workers[k].submit(_compile_entry, name, folder)] = k

    for k in range(len(workers)):
        give_work_to(k)
    while running:
        for task in wait(running, return_when=FIRST_COMPLETED).done:
            give_work_to(running.pop(task))
            yield task.result()


def _prepare() -> None:
    """Initialize a worker process: let Ctrl-C end it, and collect garbage rarely."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(_COLLECTED)


def _compile_entry(name: str, folder: Path) -> CompiledEntry:
    """Compile one entry in this process, unless the folder already holds its code; return its name, time and size."""
    entry = entries()[name]
    started = time.perf_counter()
    compiled = entry.keep_in(folder)
    seconds = time.perf_counter() - started if compiled else 0.0
    return CompiledEntry(name, seconds, entry.file_in(folder).stat().st_size)
