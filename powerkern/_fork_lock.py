"""The lock under which code is imported late, loaded or compiled; a fork waits for it.

A forked child has only the forking thread, so a lock that another thread held would never be released in it. One lock
serves all three purposes, and its hook is registered before any of them can begin: a hook registered by a module that
is imported late would come too late for a fork that is already waiting.
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
