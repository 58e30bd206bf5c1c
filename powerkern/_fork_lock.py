"""The lock under which code is imported late, loaded or compiled; a fork waits for it.

A child process has the forking thread alone: a lock that another thread holds is never released in it. There is one
lock for all of this, and its hook is registered before anything can be under way: a lock of a module that is imported
late would have its hook registered too late for a fork that is waiting already.
"""

from __future__ import annotations

import contextlib
import os
import threading

LOCK = threading.RLock()


def make_forks_wait() -> None:
    """Register the hook that delays forks. Hooks run last in, first out, so it runs before forks take other locks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=LOCK.acquire, after_in_parent=_release, after_in_child=_release)


def _release() -> None:
    with contextlib.suppress(RuntimeError):  # not held: registered while a fork waited, or Ctrl-C ended the waiting
        LOCK.release()


make_forks_wait()
