"""Functions that are compiled, or loaded from disk, when Python first calls them."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from typing import Any

import numba
from numba.core.compiler_lock import global_compiler_lock

from powerkern._jit import cache
from powerkern._jit.settings import ENTRY_OPTIONS


class Entry:
    """A function compiled for one signature at its first call."""

    def __init__(self, function: Callable[..., Any], signature: str | tuple[Any, ...]) -> None:
        functools.update_wrapper(self, function)
        self._signature = signature
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        return (self._compiled or self.compile())(*args)

    def compile(self) -> Callable[..., Any]:
        """Compile (or load) now; returns the compiled function."""
        with global_compiler_lock:  # numba compiles one function at a time in any case
            if self._compiled is None:
                self._compiled = self._dispatcher()
        cache.warn_once_if_not_kept()
        return self._compiled

    def _dispatcher(self) -> Callable[..., Any]:
        function = self.__wrapped__  # type: ignore[attr-defined]
        dispatcher = numba.njit(**ENTRY_OPTIONS)(function)
        with cache.kept_code(function) as dispatcher._cache:
            dispatcher.compile(self._signature)
        dispatcher.disable_compile()
        return dispatcher  # type: ignore[no-any-return]


def _release() -> None:
    with contextlib.suppress(RuntimeError):  # Ctrl-C while the lock was waited for: there is nothing to release
        global_compiler_lock.release()


# A fork waits until no thread is compiling: its child would have a compiler in the midst of its work, and locks that
# nobody in it could ever release.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=global_compiler_lock.acquire, after_in_parent=_release, after_in_child=_release)
