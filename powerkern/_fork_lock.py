"""The lock that is held while code is imported at first use, loaded from disk or compiled. A fork waits for it.

A child process has only the forking thread, so that a lock held by another thread is never released in the child. One
lock serves all of these operations, and its hook is registered before any of them can start. If a module that is
imported at first use had its own lock, it would register its hook too late for a fork that is already waiting.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Iterator

LOCK = threading.RLock()


@contextlib.contextmanager
def no_fork() -> Iterator[None]:
    """Delay forks, and other threads that enter this context, while code is imported, loaded or compiled."""
    _wait_before_other_hooks()
    with LOCK:
        yield


@functools.cache
def _wait_before_other_hooks() -> None:
    """Import standard modules whose fork hooks take locks, then register our hook again, so that it runs first.

    Otherwise a fork could take their locks and then wait for a thread that imports code and itself waits for these
    locks.
    """
    with LOCK:
        import concurrent.futures.thread  # noqa: F401
        import logging  # noqa: F401

        _register_hook()


def _register_hook() -> None:
    """Register the hook that delays forks. Hooks run in reverse order of registration."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=LOCK.acquire, after_in_parent=_release, after_in_child=_release)


def _release() -> None:
    with contextlib.suppress(RuntimeError):  # not held: registered while a fork waited, or Ctrl-C ended the waiting
        LOCK.release()


_register_hook()
