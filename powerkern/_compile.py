"""Compiling beforehand, in several processes: for images, clusters and wheels."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from powerkern.kernels import compilation
from powerkern.kernels.compilation import JIT_DISABLED, runnable_cpus, writable_folder

__all__ = ["JIT_DISABLED", "Compilation", "Kept", "instruction_sets", "runnable_cpus", "writable_folder"]


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
        with self._pool() as pool:
            self.folder = pool.submit(compilation.writable_folder).result()
            tasks = [pool.submit(_keep, name, self.folder) for name in self.names]
            try:
                for task in as_completed(tasks):
                    yield task.result()
            except BrokenProcessPool:
                raise OSError("a compiling process was ended, perhaps for want of memory") from None
            finally:
                pool.shutdown(cancel_futures=True)

    @contextmanager
    def _pool(self) -> Iterator[ProcessPoolExecutor]:
        """New processes, which read numba's variables from the environment when they import it."""
        spawn = multiprocessing.get_context("spawn")
        before = dict(os.environ)
        os.environ.update(self._environment)
        try:
            with ProcessPoolExecutor(self._processes, mp_context=spawn, initializer=_end_at_ctrl_c) as pool:
                yield pool
        finally:
            os.environ.clear()
            os.environ.update(before)


def instruction_sets() -> list[str]:
    """What code can be compiled for besides this computer's CPU, by LLVM's names; the most demanding first."""
    return list(compilation.cpu_levels())


def _environment(to: Path | None, cpu: str | None) -> dict[str, str]:
    folder = {} if to is None else {"NUMBA_CACHE_DIR": str(to.absolute())}
    target = {} if cpu is None else {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": ""}
    return folder | target


def _end_at_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _keep(name: str, folder: Path) -> Kept:
    entry = compilation.entries()[name]
    started = time.perf_counter()
    compiled = entry.keep_in(folder)
    seconds = time.perf_counter() - started if compiled else 0.0
    return Kept(name, seconds, entry.file_in(folder).stat().st_size)
