"""Functions that are compiled, or loaded from disk, when Python first calls them."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core.compiler_lock import global_compiler_lock

from powerkern._jit import cache, notice
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
                name = f"{self._function.__module__.removeprefix('powerkern.kernels.')}.{self._function.__name__}"
                with cache.kept_code(self._function) as code, notice.of_long_compiling(not code.is_there, name):
                    self._compiled = self._dispatcher(code)
        cache.warn_once_if_not_kept()
        return self._compiled

    @property
    def name(self) -> str:
        """The name of the function."""
        return self._function.__qualname__

    def keep_in(self, folder: Path) -> bool:
        """Have the code in one folder, compiled if it is not there; False if it was. OSError where it cannot be."""
        with cache.code_kept_in(folder, self._function) as code:
            was_there = code.is_there
            if not was_there:
                self._dispatcher(code)
        if code.failure is not None:
            raise OSError(code.failure)
        return not was_there

    def file_in(self, folder: Path) -> Path:
        """The file that holds the code in a folder."""
        return folder / cache.file_name(self._function)

    @property
    def _function(self) -> Callable[..., Any]:
        return self.__wrapped__  # type: ignore[attr-defined, no-any-return]

    def _dispatcher(self, code: cache.KeptCode) -> Callable[..., Any]:
        dispatcher = numba.njit(**ENTRY_OPTIONS)(self._function)
        dispatcher._cache = code
        with _no_garbage_collection():
            dispatcher.compile(self._signature)
        dispatcher.disable_compile()
        return dispatcher  # type: ignore[no-any-return]


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Leave the compiler's many objects, nearly all of them alive, unsearched: a seventh of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _release() -> None:
    with contextlib.suppress(RuntimeError):  # Ctrl-C while the lock was waited for: there is nothing to release
        global_compiler_lock.release()


# A fork waits until no thread is compiling: its child would have a compiler in the midst of its work, and locks that
# nobody in it could ever release.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=global_compiler_lock.acquire, after_in_parent=_release, after_in_child=_release)
