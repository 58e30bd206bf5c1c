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
_Order = tuple[Callable[[], object], Endings]

#: Helpers without an order. Whoever takes one off gives it one; there is no lock, so that signal handlers, which run
#: anywhere, may ask for help too.
_idle: list[Helper] = []


class Helper(threading.Thread):
    """A thread that carries out orders; None ends it."""

    def __init__(self) -> None:
        super().__init__(name="powerkern", daemon=True)
        self.orders: SimpleQueue[_Order | None] = SimpleQueue()

    def run(self) -> None:
        while True:
            try:
                order = self.orders.get(timeout=_PATIENCE)
            except Empty:
                if _taken_off(self):
                    return
                continue  # an order is on its way
            if order is None:
                return
            self._carry_out(*order)
            del order  # it refers to arrays

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


def ask(n: int, work: Callable[[], object], endings: Endings) -> list[Helper]:
    """Call `work` on n other threads, these; they are fewer where the system grants no more.

    None where the interpreter ends: no other thread runs any more.
    """
    asked: list[Helper] = []
    if sys.is_finalizing():
        return asked
    for _ in range(n):
        try:
            asked.append(_asked((work, endings)))
        except RuntimeError:  # a limit on processes or on memory
            break
    return asked


def _asked(order: _Order) -> Helper:
    """An idle helper that has been given the order, or a new one if there is none."""
    try:
        helper = _idle.pop()
    except IndexError:
        helper = Helper()
        helper.orders.put(order)
        helper.start()
    else:
        helper.orders.put(order)
    return helper


def called_off(asked: list[Helper], endings: Endings) -> int:
    """Take back what the asked have not begun; returns how many of them have, and will tell their end."""
    return sum(not _called_off(helper, endings) for helper in asked)


def _called_off(helper: Helper, endings: Endings) -> bool:
    try:
        order = helper.orders.get_nowait()
    except Empty:
        return False
    if order is None or order[1] is not endings:  # of somebody else, who found the helper idle
        helper.orders.put(order)
        return False
    _idle.append(helper)
    return True


def dismiss() -> None:
    """End idle helpers."""
    leaving = [helper for helper in _idle.copy() if _taken_off(helper)]
    for helper in leaving:
        helper.orders.put(None)
    for helper in leaving:
        helper.join()


if hasattr(os, "register_at_fork"):
    # in the child none is idle, even those that became so in between
    os.register_at_fork(before=dismiss, after_in_child=_idle.clear)
