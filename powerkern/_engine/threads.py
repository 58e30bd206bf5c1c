"""Threads: their number, and the processing of parts of a matrix, with progress and prompt interruption.

Entry points release the GIL, so plain Python threads run in parallel: no threading layer of numba, no crash in a
forked child, no conflict between several calling Python threads. The same code processes a part of a matrix whatever
the number of threads, so results are bit-identical.

Helper threads are kept for a second after their work, since waking one costs a fraction of starting it. All end before
the process forks: a child has only the thread that forked, and Python warns of others.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from powerkern._engine.cpus import usable_cpus
from powerkern._input.arrays import is_integer
from powerkern._input.messages import shown

#: Fewer values than this are processed on one thread.
SERIAL_VALUES = 32_768
#: Seconds of work after which a progress bar appears.
_PROGRESS_DELAY = 1.0
#: Largest number of threads that a call uses, whatever `n_threads` is: more than any machine has CPUs.
_MOST_THREADS = 4096
#: Seconds between checks of the pool.
_POLL = 0.2

_Part = TypeVar("_Part")


def default_threads() -> int:
    """Return the number of CPUs this process may use (see `usable_cpus`), at most ``NUMBA_NUM_THREADS``.

    joblib sets the variable in its worker processes, so that they share the CPUs.
    """
    cpus, limit = usable_cpus(), os.environ.get("NUMBA_NUM_THREADS", "")
    return max(1, min(cpus, int(limit))) if limit.isdecimal() else cpus


def thread_count(n_threads: int | None, n_values: float = math.inf) -> int:
    """Check the argument ``n_threads``; return its default if it is None: all CPUs, but one for few values."""
    if n_threads is None:
        return default_threads() if n_values >= SERIAL_VALUES else 1
    if not is_integer(n_threads):
        raise TypeError(f"n_threads must be a whole number of at least 1, or None, got {shown(n_threads)}")
    if n_threads < 1:
        raise ValueError(f"n_threads must be at least 1 (None: all CPUs), got {shown(n_threads)}")
    return min(int(n_threads), _MOST_THREADS)


def run_parallel(
    job: Callable[..., None],
    parts: Iterable[tuple[slice, ...]],
    shape: tuple[int, int],
    n_threads: int,
    bar: Any = None,
    *,
    use_calling_thread: bool = False,
) -> None:
    """Call ``job(*part)`` for all parts of a matrix; the first exception stops the rest.

    Parameters
    ----------
    job : callable
        Called with the slices of one part, on any thread.
    parts : iterable of tuple of slice
        The parts. A progress bar counts columns, which are the last slice of a part.
    shape : (int, int)
        Rows and columns of the matrix. Fewer than SERIAL_VALUES values are processed on the calling thread.
    n_threads : int
        Largest number of threads at work.
    bar : object with a method ``update``, optional
        Progress bar.
    use_calling_thread : bool
        Process parts on the calling thread, too, which suits parts of a few milliseconds: Ctrl-C waits for the current
        part (and, the first time, for the compiler). Otherwise the calling thread only waits, so that Ctrl-C takes
        effect at once. A thread that Ctrl-C does not reach, such as a Dask worker's, does the work itself if one
        thread is to do it.
    """
    waiting, done, completions = deque(parts), deque[slice](), Completions()

    def work() -> None:  # called once per thread: handing over each part separately would cost four times as much
        try:
            for part in _pop_each(waiting):
                job(*part)
                if bar is not None:
                    done.append(part[-1])
        except BaseException:
            waiting.clear()
            raise

    n_threads = min(n_threads, len(waiting))
    alone = n_threads == 1 and bar is None and threading.current_thread() is not threading.main_thread()
    if alone or shape[0] * shape[1] < SERIAL_VALUES:
        work()
        return
    at_work = 0
    try:
        tasks = submit(n_threads - use_calling_thread, work, completions)
        if use_calling_thread or not tasks:
            work()
        at_work = cancel(tasks) if use_calling_thread else len(tasks)
        while at_work:
            failures: list[BaseException] = []
            # with a timeout: without one, Windows could not be interrupted, and a bar would not move
            with suppress(Empty):
                failures = _await_failures(completions, 1, _POLL)
                at_work -= 1
            if failures:
                raise failures.pop()
            while done:
                columns = done.popleft()
                bar.update(columns.stop - columns.start)
    except KeyboardInterrupt:
        waiting.clear()  # running parts end by themselves, without being waited for
        raise
    except BaseException:
        waiting.clear()
        _await_failures(completions, at_work)
        raise


def for_each(job: Callable[[int], object], n: int, values: int, n_threads: int) -> None:
    """Call ``job(k)`` for k = 0, ..., n - 1.

    Parameters
    ----------
    job : callable
        Called with an index, on any thread.
    n : int
        Number of calls.
    values : int
        Cost of a call, as the number of values whose fit takes as long.
    n_threads : int
        Largest number of threads at work.
    """

    def of(part: slice) -> None:
        for k in range(part.start, part.stop):
            job(k)

    run_parallel(of, ((slice(k, k + 1),) for k in range(n)), (values, n), n_threads)


def _await_failures(completions: Completions, n: int, timeout: float | None = None) -> list[BaseException]:
    """Wait for n tasks and return the exceptions they raised; raise `Empty` after `timeout` seconds.

    A caller that raises one of them must remove it from the list, since its traceback refers to variables.
    """
    return [error for error in (completions.get(timeout=timeout) for _ in range(n)) if error is not None]


def _pop_each(waiting: deque[_Part]) -> Iterator[_Part]:
    """Remove and yield waiting parts one by one; safe for several threads at once."""
    with suppress(IndexError):
        while True:
            yield waiting.popleft()


def progress_bar(total: int | None, unit: str, wanted: bool) -> AbstractContextManager[Any]:
    """Return a context manager that gives a progress bar if `wanted`, otherwise None; a total of None is unknown."""
    if not wanted:
        return nullcontext()
    try:
        from tqdm import tqdm
    except ImportError:
        raise ImportError("progress=True needs tqdm: pip install tqdm") from None
    return closing(tqdm(total=total, unit=unit, delay=_PROGRESS_DELAY))


# --- helpers ------------------------------------------------------------------------------------------

#: Seconds after which an idle thread ends.
_PATIENCE = 1.0

#: Queue to which a helper reports the end of a task: an exception, or None.
Completions = SimpleQueue[BaseException | None]


class Task:
    """A function for a helper to call, until the helper begins it or the caller cancels it."""

    def __init__(self, helper: Helper, function: Callable[[], object], completions: Completions) -> None:
        self.helper = helper
        self._claim = [(function, completions)]  # list.pop is atomic: one thread alone gets it

    def claim(self) -> list[tuple[Callable[[], object], Completions]]:
        """Return the function and its queue in a list, to one caller only; an empty list to every later one."""
        try:
            return [self._claim.pop()]
        except IndexError:
            return []


#: Idle helpers. A thread that removes one gives it a task. It has no lock, so that signal handlers, which run
#: anywhere, may use helpers too.
_idle: list[Helper] = []


class Helper(threading.Thread):
    """A thread that runs tasks; None ends it."""

    def __init__(self) -> None:
        super().__init__(name="powerkern", daemon=True)
        self.tasks: SimpleQueue[Task | None] = SimpleQueue()

    def run(self) -> None:
        while True:
            try:
                task = self.tasks.get(timeout=_PATIENCE)
            except Empty:
                if _remove_idle(self):
                    return
                continue  # a task is on its way
            if task is None:
                return
            for function, completions in task.claim():
                self._call(function, completions)
                del function  # it refers to arrays

    def _call(self, function: Callable[[], object], completions: Completions) -> None:
        error = None
        try:
            function()
        except BaseException as raised:  # for the thread that submitted the task
            error = raised
        _idle.append(self)  # first, so that a caller who sees the completion finds this thread idle
        completions.put(error)
        del error  # its traceback refers to this frame


def _remove_idle(helper: Helper) -> bool:
    """Remove a helper from the idle ones; return whether it was idle."""
    try:
        _idle.remove(helper)
    except ValueError:
        return False
    return True


def submit(n: int, function: Callable[[], object], completions: Completions) -> list[Task]:
    """Call a function once on each of n other threads.

    Parameters
    ----------
    n : int
        Number of threads.
    function : callable
        Called without arguments.
    completions : Completions
        Receives the exception that a call raised, or None, when the call ends.

    Returns
    -------
    list of Task
        One per thread. Fewer than n if the system grants no more threads; none while the interpreter shuts down, when
        no other thread runs.
    """
    tasks: list[Task] = []
    if sys.is_finalizing():
        return tasks
    for _ in range(n):
        try:
            tasks.append(_submit_to_one(function, completions))
        except RuntimeError:  # a limit on processes or on memory
            break
    return tasks


def _submit_to_one(function: Callable[[], object], completions: Completions) -> Task:
    """Give a task to an idle helper, or to a new one."""
    try:
        helper, is_new = _idle.pop(), False
    except IndexError:
        helper, is_new = Helper(), True
    task = Task(helper, function, completions)
    helper.tasks.put(task)
    if is_new:
        helper.start()
    return task


def cancel(tasks: list[Task]) -> int:
    """Cancel tasks that have not started; return the number of the others, whose ends will be reported."""
    waiting = [task.helper for task in tasks if task.claim()]
    _idle.extend(waiting)
    return len(tasks) - len(waiting)


def shutdown() -> None:
    """End idle helpers and wait until they have ended."""
    leaving = [helper for helper in _idle.copy() if _remove_idle(helper)]
    for helper in leaving:
        helper.tasks.put(None)
    for helper in leaving:
        helper.join()


if hasattr(os, "register_at_fork"):
    # a child has no helpers, not even those that became idle after `shutdown`
    os.register_at_fork(before=shutdown, after_in_child=_idle.clear)
