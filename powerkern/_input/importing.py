"""Late imports, during which forks wait: a child process would inherit locks that are never released."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
from types import ModuleType

_COMPILER = "powerkern._jit.entries"
_lock = threading.RLock()


def import_late(name: str) -> ModuleType:
    """Import a module while no fork is under way, and return it."""
    with _lock:
        return importlib.import_module(name)


def make_forks_wait() -> None:
    """Register the hook that delays forks. Hooks run last in, first out, so it runs before forks take other locks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_wait, after_in_parent=_go_on, after_in_child=_go_on)


def _wait() -> None:
    """Wait for imports and, if they loaded the compiler, for its lock: its own hook was registered too late."""
    without_compiler = _COMPILER not in sys.modules
    _lock.acquire()
    if without_compiler and _COMPILER in sys.modules:
        sys.modules[_COMPILER].LOCK.acquire()


def _go_on() -> None:
    with contextlib.suppress(RuntimeError):  # registered while the fork waited: there is nothing to release
        _lock.release()


make_forks_wait()
