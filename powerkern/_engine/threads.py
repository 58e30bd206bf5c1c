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
from powerkern._input.arrays import is_whole

#: Fewer values than this are processed on one thread.
SERIAL_VALUES = 32_768
#: Seconds of work after which a progress bar appears.
_PROGRESS_DELAY = 1.0
#: Seconds between checks of the pool.
_POLL = 0.2

_Part = TypeVar("_Part")


def default_threads() -> int:
    """Number of CPUs this process may use (see `usable_cpus`), or ``NUMBA_NUM_THREADS`` if that is fewer.

    joblib sets the variable in its worker processes, so that they share the CPUs.
    """
    cpus, limit = usable_cpus(), os.environ.get("NUMBA_NUM_THREADS", "")
    return max(1, min(cpus, int(limit))) if limit.isdecimal() else cpus


def thread_count(n_threads: int | None, n_values: float = math.inf) -> int:
    """The checked argument ``n_threads``; None: all CPUs of this process, or one for few values."""
    if n_threads is None:
        return default_threads() if n_values >= SERIAL_VALUES else 1
    if not is_whole(n_threads):
        raise TypeError(f"n_threads must be a whole number of at least 1, or None, got {n_threads!r}")
    if n_threads < 1:
        raise ValueError(f"n_threads must be at least 1 (None: all CPUs), got {n_threads}")
    return int(n_threads)


def work_off(
    job: Callable[..., None],
    parts: Iterable[tuple[slice, ...]],
    shape: tuple[int, int],
    n_threads: int,
    bar: Any = None,
    *,
    takes_part: bool = False,
) -> None:
    """Call ``job(*part)`` for all parts of a (n, p) matrix; the first exception stops the rest.

    The calling thread `takes_part` where parts take a few milliseconds each: Ctrl-C waits for its part (and, the first
    time, for the compiler). Otherwise it only waits, so that Ctrl-C takes effect at once; but a thread that Ctrl-C does
    not reach, such as a Dask worker's, does the work itself if one thread is to do it. A progress bar counts columns,
    which are the last slice of a part.
    """
    waiting, done, endings = deque(parts), deque[slice](), Endings()

    def work() -> None:  # called once per thread: handing over each part separately would cost four times as much
        try:
            for part in _taken(waiting):
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
        tickets = ask(n_threads - takes_part, work, endings)
        if takes_part or not tickets:
            work()
        at_work = called_off(tickets) if takes_part else len(tickets)
        while at_work:
            failures: list[BaseException] = []
            # with a timeout: without one, Windows could not be interrupted, and a bar would not move
            with suppress(Empty):
                failures = _failures(endings, 1, _POLL)
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
        _failures(endings, at_work)
        raise


def for_each(job: Callable[[int], object], n: int, values: int, n_threads: int) -> None:
    """Call ``job(k)`` for k = 0, ..., n - 1; each call costs as much as `values` values of a fit."""

    def of(part: slice) -> None:
        for k in range(part.start, part.stop):
            job(k)

    work_off(of, ((slice(k, k + 1),) for k in range(n)), (values, n), n_threads)


def _failures(endings: Endings, n: int, timeout: float | None = None) -> list[BaseException]:
    """The exceptions raised by n helpers, once they have ended; `Empty` if that takes longer than `timeout`.

    The caller that raises one must remove it from the list, since its traceback refers to variables.
    """
    return [error for error in (endings.get(timeout=timeout) for _ in range(n)) if error is not None]


def _taken(waiting: deque[_Part]) -> Iterator[_Part]:
    """Waiting parts, removed one by one; safe for several threads at once."""
    with suppress(IndexError):
        while True:
            yield waiting.popleft()


def progress_bar(total: int | None, unit: str, wanted: bool) -> AbstractContextManager[Any]:
    """A progress bar if `wanted`, otherwise None; a total of None is unknown."""
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

#: Queue to which a helper reports its end: an exception, or None.
Endings = SimpleQueue[BaseException | None]
_Order = tuple["Helper", Callable[[], object], Endings]
#: An order to a helper, who removes it on beginning; the caller removes it to call it off.
Ticket = list[_Order]

#: Idle helpers. A thread that removes one gives it an order; there is no lock, so that signal handlers, which run
#: anywhere, may use helpers too.
_idle: list[Helper] = []


class Helper(threading.Thread):
    """A thread that carries out orders; None ends it."""

    def __init__(self) -> None:
        super().__init__(name="powerkern", daemon=True)
        self.tickets: SimpleQueue[Ticket | None] = SimpleQueue()

    def run(self) -> None:
        while True:
            try:
                ticket = self.tickets.get(timeout=_PATIENCE)
            except Empty:
                if _taken_off(self):
                    return
                continue  # an order is on its way
            if ticket is None:
                return
            for _, work, endings in _taken_out(ticket):
                self._carry_out(work, endings)
                del work  # it refers to arrays

    def _carry_out(self, work: Callable[[], object], endings: Endings) -> None:
        error = None
        try:
            work()
        except BaseException as raised:  # for the thread that asked for it
            error = raised
        _idle.append(self)  # first, so that whoever was told of the end finds this thread again
        endings.put(error)
        del error  # its traceback refers to this frame


def _taken_off(helper: Helper) -> bool:
    """Remove a helper from the idle ones; returns whether it was idle."""
    try:
        _idle.remove(helper)
    except ValueError:
        return False
    return True


def _taken_out(ticket: Ticket) -> list[_Order]:
    """Remove the order from a ticket, if it is still there."""
    try:
        return [ticket.pop()]
    except IndexError:
        return []


def ask(n: int, work: Callable[[], object], endings: Endings) -> list[Ticket]:
    """Call `work` on n other threads; returns their tickets, fewer if the system grants no more threads.

    Returns no tickets while the interpreter shuts down, when no other thread runs.
    """
    tickets: list[Ticket] = []
    if sys.is_finalizing():
        return tickets
    for _ in range(n):
        try:
            tickets.append(_asked(work, endings))
        except RuntimeError:  # a limit on processes or on memory
            break
    return tickets


def _asked(work: Callable[[], object], endings: Endings) -> Ticket:
    """Give an order to an idle helper, or to a new one, and return its ticket."""
    try:
        helper, is_new = _idle.pop(), False
    except IndexError:
        helper, is_new = Helper(), True
    ticket: Ticket = [(helper, work, endings)]
    helper.tickets.put(ticket)
    if is_new:
        helper.start()
    return ticket


def called_off(tickets: list[Ticket]) -> int:
    """Call off orders that have not begun; returns the number of those that have, whose ends will be reported."""
    waiting = [helper for ticket in tickets for helper, _, _ in _taken_out(ticket)]
    _idle.extend(waiting)
    return len(tickets) - len(waiting)


def dismiss() -> None:
    """End idle helpers."""
    leaving = [helper for helper in _idle.copy() if _taken_off(helper)]
    for helper in leaving:
        helper.tickets.put(None)
    for helper in leaving:
        helper.join()


if hasattr(os, "register_at_fork"):
    # a child has no helpers, not even those that became idle after `dismiss`
    os.register_at_fork(before=dismiss, after_in_child=_idle.clear)
