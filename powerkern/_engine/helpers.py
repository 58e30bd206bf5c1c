"""Helper threads, kept for a second after their work, since waking one costs a fraction of starting it.

All end before the process forks: a child has only the thread that forked, and Python warns of others.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

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
