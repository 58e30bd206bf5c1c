"""Threads that help others, kept for a second after their work: waking one costs a fraction of starting it.

None is there when the process forks: a child has only the thread that forked, and Python warns of others.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

#: Seconds after which an idle thread ends.
_PATIENCE = 1.0

#: Where helpers put what ended their work: what it raised, or None.
Endings = SimpleQueue[BaseException | None]
_Order = tuple[Callable[[], object], Endings]

# taken to change _idle, and to give an order to one of those in it or to find that there is none
_lock = threading.Lock()
_idle: list[_Helper] = []


class _Helper(threading.Thread):
    """A thread that carries out orders; None ends it."""

    def __init__(self) -> None:
        super().__init__(name="powerkern", daemon=True)
        self.orders: SimpleQueue[_Order | None] = SimpleQueue()

    def run(self) -> None:
        while True:
            try:
                order = self.orders.get(timeout=_PATIENCE)
            except Empty:
                if self._ends():
                    return
                continue
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
        with _lock:
            _idle.append(self)  # first, so that whoever was told of the end finds this thread again
        endings.put(error)

    def _ends(self) -> bool:
        """Whether no order is there: then none will come."""
        with _lock:
            if self.orders.empty():
                with suppress(ValueError):
                    _idle.remove(self)
                return True
        return False


def ask(n: int, work: Callable[[], object], endings: Endings) -> int:
    """Call `work` on n other threads; returns on how many, which is fewer where the system grants no more."""
    for k in range(n):
        if not _asked_idle((work, endings)):
            helper = _Helper()
            helper.orders.put((work, endings))
            try:
                helper.start()
            except RuntimeError:  # a limit on processes or on memory
                return k
    return n


def _asked_idle(order: _Order) -> bool:
    """Give the order to an idle helper, if there is one."""
    with _lock:
        if _idle:
            _idle.pop().orders.put(order)
            return True
    return False


def dismiss() -> None:
    """End idle helpers."""
    with _lock:
        leaving = _idle.copy()
        _idle.clear()
        for helper in leaving:
            helper.orders.put(None)
    for helper in leaving:
        helper.join()


def _before_fork() -> None:
    dismiss()
    _lock.acquire()


def _in_child() -> None:
    _idle.clear()  # of what became idle in between
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_lock.release, after_in_child=_in_child)
