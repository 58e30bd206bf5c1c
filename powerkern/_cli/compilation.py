"""Compiling beforehand, in several processes: for images, clusters and wheels."""

from __future__ import annotations

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

from powerkern.kernels import compilation
from powerkern.kernels.compilation import JIT_DISABLED, runnable_cpus, writable_folder

__all__ = ["JIT_DISABLED", "Compilation", "Kept", "instruction_sets", "runnable_cpus", "writable_folder"]


#: Objects after which a compiling process looks for garbage, some GB: a search takes seconds and frees little.
_COLLECTED = 8_000_000


class Kept(NamedTuple):
    """The code of one entry on disk."""

    name: str
    #: Seconds that compiling it took; 0 if it was there.
    seconds: float
    #: Of its file, in bytes.
    size: int


class Compilation:
    """The work of compiling entries into one folder, begun when it is iterated over.

    Parameters
    ----------
    everything : bool
        Every entry; otherwise those of fit (maximum likelihood and robust), transform and inverse.
    to : Path, optional
        The folder that NUMBA_CACHE_DIR will name where the code is used; by default the one that is used now.
    cpu : str, optional
        The instruction set to compile for, one of `instruction_sets`; by default this computer's CPU.
    processes : int
        How many compile at a time.
    """

    def __init__(self, everything: bool, to: Path | None, cpu: str | None, processes: int) -> None:
        self.names = list(compilation.entries(everything))
        self._processes = processes
        self._environment = _environment(to, cpu)
        #: Where the code is kept; known once the iteration has begun.
        self.folder: Path | None = None

    def __iter__(self) -> Iterator[Kept]:
        """Compile, and yield each entry as it is done; OSError where its code cannot be kept."""
        with self._workers() as workers:
            try:
                self.folder = workers[0].submit(compilation.writable_folder).result()
                yield from _each(self.names, self.folder, workers)
            except BrokenProcessPool:
                raise OSError("a compiling process was ended, perhaps for want of memory") from None
            finally:
                for worker in workers:
                    worker.shutdown(wait=False, cancel_futures=True)

    @contextmanager
    def _workers(self) -> Iterator[list[ProcessPoolExecutor]]:
        """New processes, one for each worker, which read numba's variables from the environment when they import it."""
        spawn = multiprocessing.get_context("spawn")
        before = dict(os.environ)
        os.environ.update(self._environment)
        try:
            with ExitStack() as stack:
                workers = (ProcessPoolExecutor(1, spawn, _prepare) for _ in range(self._processes))
                yield [stack.enter_context(worker) for worker in workers]
        finally:
            os.environ.clear()
            os.environ.update(before)


def _each(names: list[str], folder: Path, workers: list[ProcessPoolExecutor]) -> Iterator[Kept]:
    """Each entry as it is done; entries of a module share kernels, so that a worker compiles neighbors if it can."""
    size = -(-len(names) // len(workers))
    shares = [deque(names[k * size : (k + 1) * size]) for k in range(len(workers))]
    running: dict[Future[Kept], int] = {}

    def give_work_to(k: int) -> None:
        longest = max(shares, key=len)
        if longest:
            name = shares[k].popleft() if shares[k] else longest.pop()
            running[workers[k].submit(_keep, name, folder)] = k

    for k in range(len(workers)):
        give_work_to(k)
    while running:
        for task in wait(running, return_when=FIRST_COMPLETED).done:
            give_work_to(running.pop(task))
            yield task.result()


def instruction_sets() -> list[str]:
    """Further CPUs to compile for, by LLVM's names; the most demanding first."""
    return list(compilation.cpu_levels())


def _environment(to: Path | None, cpu: str | None) -> dict[str, str]:
    folder = {} if to is None else {"NUMBA_CACHE_DIR": str(to.absolute())}
    target = {} if cpu is None else {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": ""}
    return folder | target


def _prepare() -> None:
    """Make a new process one that compiles: it ends at Ctrl-C, and mostly before garbage is worth collecting."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(_COLLECTED)


def _keep(name: str, folder: Path) -> Kept:
    entry = compilation.entries()[name]
    started = time.perf_counter()
    compiled = entry.keep_in(folder)
    seconds = time.perf_counter() - started if compiled else 0.0
    return Kept(name, seconds, entry.file_in(folder).stat().st_size)
