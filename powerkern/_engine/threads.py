"""Process parts of a matrix on several threads, with progress and prompt interruption.

Entries release the GIL, so plain Python threads run in parallel. This avoids numba's threading layer, crashes in forked
children, and conflicts between Python threads that call us concurrently. The same code processes a part of a matrix
whatever the number of threads, so results are bit-identical.

Helper threads stay alive for a second after their work, since waking a thread is much cheaper than starting one. All of
them end before the process forks, because only the thread that forks survives in the child, and Python warns if there
are other threads.
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

#: Number of values below which one thread does the work.
SERIAL_VALUES = 32_768
#: Seconds of work after which a progress bar appears.
_PROGRESS_DELAY = 1.0
#: Largest number of threads that a call uses, whatever `n_threads` is: more than any machine has CPUs.
_MOST_THREADS = 4096
#: Seconds between checks of the pool.
_POLL = 0.2

_Part = TypeVar("_Part")


def default_threads() -> int:
    """Return the number of CPUs that this process may use (see `usable_cpus`), but at most ``NUMBA_NUM_THREADS``.

    joblib sets this environment variable in its worker processes, so that they share the CPUs.
    """
    cpus, limit = usable_cpus(), os.environ.get("NUMBA_NUM_THREADS", "")
    return max(1, min(cpus, int(limit))) if limit.isdecimal() else cpus


def thread_count(n_threads: int | None, n_values: float = math.inf) -> int:
    """Return the number of threads for the argument ``n_threads``, after checking it.

    None becomes the number of CPUs or, if there are few values, 1.
    """
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
    """Call ``job(*part)`` for all parts of a matrix. After an exception, start no further part and raise the exception.

    Parameters
    ----------
    job : callable
        Called with the slices of one part, on any thread.
    parts : iterable of tuple of slice
        The parts. A progress bar counts columns, which are the last slice of a part.
    shape : (int, int)
        Rows and columns of the matrix. Fewer than SERIAL_VALUES values are processed on the calling thread.
    n_threads : int
        Maximum number of threads.
    bar : object with a method ``update``, optional
        Progress bar.
    use_calling_thread : bool
        Process parts on the calling thread, too. This suits parts of a few milliseconds, since Ctrl-C waits for the
        current part (and, the first time, for the compiler). Otherwise the calling thread only waits, so that Ctrl-C
        takes effect at once. With one thread, a caller other than the main thread (a Dask worker, say) always does the
        work itself, since Ctrl-C does not reach it.
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
            # without a timeout, Windows could not be interrupted, and the bar would not move
            with suppress(Empty):
                failures = _await_failures(completions, 1, _POLL)
                at_work -= 1
            if failures:
                raise failures.pop()
            while done:
                columns = done.popleft()
                bar.update(columns.stop - columns.start)
    except KeyboardInterrupt:
        waiting.clear()  # running parts end by themselves; do not wait for them
        raise
    except BaseException:
        waiting.clear()
        _await_failures(completions, at_work)
        raise


def for_each(job: Callable[[int], object], n: int, values: int, n_threads: int) -> None:
    """Call ``job(k)`` for k = 0, ..., n - 1, on several threads.

    Parameters
    ----------
    job : callable
        Called with an index, on any thread.
    n : int
        Number of calls.
    values : int
        Cost of a call, as the number of values whose fit takes as long.
    n_threads : int
        Maximum number of threads.
    """

    def of(part: slice) -> None:
        for k in range(part.start, part.stop):
            job(k)

    run_parallel(of, ((slice(k, k + 1),) for k in range(n)), (values, n), n_threads)


def _await_failures(completions: Completions, n: int, timeout: float | None = None) -> list[BaseException]:
    """Wait for n tasks and return the exceptions they raised; raise `Empty` after `timeout` seconds.

    A caller that raises one of the exceptions must remove it from the list. Otherwise its traceback, which refers to
    the list, would keep arrays alive.
    """
    return [error for error in (completions.get(timeout=timeout) for _ in range(n)) if error is not None]


def _pop_each(waiting: deque[_Part]) -> Iterator[_Part]:
    """Take the waiting parts from the queue and yield them one by one; several threads may share the queue."""
    with suppress(IndexError):
        while True:
            yield waiting.popleft()


def progress_bar(total: int | None, unit: str, wanted: bool) -> AbstractContextManager[Any]:
    """Return a context manager that yields a tqdm progress bar, or None unless a bar is `wanted`.

    A `total` of None means that the number of units is unknown.
    """
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
    """A function that a helper thread will call once, unless the caller cancels the task first."""

    def __init__(self, helper: Helper, function: Callable[[], object], completions: Completions) -> None:
        self.helper = helper
        self._claim = [(function, completions)]  # list.pop is atomic: one thread alone gets it

    def claim(self) -> list[tuple[Callable[[], object], Completions]]:
        """Return [(function, completions)] to the first caller, and an empty list to later callers."""
        try:
            return [self._claim.pop()]
        except IndexError:
            return []


#: Idle helpers. Whoever removes one gives it a task. There is no lock, since signal handlers, which may interrupt any
#: line, use helpers too; append, pop and remove are atomic.
_idle: list[Helper] = []


class Helper(threading.Thread):
    """A thread that runs the tasks in its queue; None in the queue ends it."""

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
                del function  # the function refers to arrays

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
    """Remove a helper from the list of idle helpers; return whether it was in the list."""
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
        Receives the outcome of each call when it ends: the exception raised, or None.

    Returns
    -------
    list of Task
        One task per thread. There are fewer than n if the system grants no more threads, and none while the interpreter
        shuts down, since other threads no longer run then.
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
    """Give a task to an idle helper, or to a new one; return the task."""
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
    """Cancel tasks that have not started; return the number of the other tasks, which still report to their queue."""
    waiting = [task.helper for task in tasks if task.claim()]
    _idle.extend(waiting)
    return len(tasks) - len(waiting)


def shutdown() -> None:
    """End all idle helpers, and wait until they have ended."""
    leaving = [helper for helper in _idle.copy() if _remove_idle(helper)]
    for helper in leaving:
        helper.tasks.put(None)
    for helper in leaving:
        helper.join()


if hasattr(os, "register_at_fork"):
    # a child has no helpers, not even those that became idle after `shutdown`
    os.register_at_fork(before=shutdown, after_in_child=_idle.clear)
