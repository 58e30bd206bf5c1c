"""Threads that help others, kept for a second after their work: waking one costs a fraction of starting it.

None is there when the process forks: a child has only the thread that forked, and Python warns of others.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

#: Seconds after which an idle thread ends.
_PATIENCE = 1.0

#: Where helpers put what ended their work: what it raised, or None.
Endings = SimpleQueue[BaseException | None]
_Order = tuple["Helper", Callable[[], object], Endings]
#: What a helper was asked to do, which it takes out as it begins; whoever asked takes it out to call it off.
Ticket = list[_Order]

#: Helpers without an order. Whoever takes one off gives it one; there is no lock, so that signal handlers, which run
#: anywhere, may ask for help too.
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
    """Take a helper off those that are idle, if it is."""
    try:
        _idle.remove(helper)
    except ValueError:
        return False
    return True


def _taken_out(ticket: Ticket) -> list[_Order]:
    """Take the order out, if it is still there."""
    try:
        return [ticket.pop()]
    except IndexError:
        return []


def ask(n: int, work: Callable[[], object], endings: Endings) -> list[Ticket]:
    """Call `work` on n other threads; returns their tickets, fewer where the system grants no more threads.

    None where the interpreter ends: no other thread runs any more.
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
    """The ticket of an idle helper that has been given the order, or of a new one if there is none."""
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
    """Call off what helpers have not begun; returns how many of them have, and will tell their end."""
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
    # in the child none is idle, even those that became so in between
    os.register_at_fork(before=dismiss, after_in_child=_idle.clear)
