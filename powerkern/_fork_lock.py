"""The lock under which code is imported late, loaded or compiled; a fork waits for it.

A child process has the forking thread alone: a lock that another thread holds is never released in it. There is one
lock for all of this, and its hook is registered before anything can be under way: a lock of a module that is imported
late would have its hook registered too late for a fork that is waiting already.
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
    """Let forks wait while code is imported, loaded or compiled, and other threads that want to do the same."""
    _wait_before_other_hooks()
    with LOCK:
        yield


@functools.cache
def _wait_before_other_hooks() -> None:
    """Import modules of the standard library whose hooks take locks, and register ours once more, to run first.

    Otherwise a fork would take their locks, and then wait for a thread that imports code, and that waits for theirs.
    """
    with LOCK:
        import concurrent.futures.thread  # noqa: F401
        import logging  # noqa: F401

        _register_hook()


def _register_hook() -> None:
    """Register the hook that delays forks. Hooks run last in, first out."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=LOCK.acquire, after_in_parent=_release, after_in_child=_release)


def _release() -> None:
    with contextlib.suppress(RuntimeError):  # not held: registered while a fork waited, or Ctrl-C ended the waiting
        LOCK.release()


_register_hook()
