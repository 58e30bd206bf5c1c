"""Entries: functions that are loaded from disk, or compiled, when Python first calls them."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from powerkern._fork_lock import no_fork
from powerkern._jit import code_cache, compile_notice
from powerkern._jit.interface import Interface, Kind
from powerkern._jit.marks import F

#: Re-exported by `powerkern._jit`, for kernels and their tests.
__all__ = ["JIT_DISABLED", "Entry", "entry"]

#: True when numba is switched off (NUMBA_DISABLE_JIT=1) and every kernel runs as plain Python.
JIT_DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")

#: Switches that make numba check indices or emit debug information. With one of them set, entries are plain numba
#: functions, and are not cached.
_PLAIN = ("NUMBA_BOUNDSCHECK", "NUMBA_DEBUGINFO")
#: An entry's machine code: one pointer passed three times, as three types (see `interface`); the call releases the GIL.
_NATIVE = ctypes.CFUNCTYPE(ctypes.c_int64, *(ctypes.c_char_p,) * 3)
#: Keeps loaded libraries alive, and with them their machine code.
_LOADED: list[Any] = []


def entry(signature: tuple[Kind, ...]) -> Callable[[F], F]:
    """Turn a function into an entry, which Python calls with arguments of exactly the types in `signature`.

    The first call compiles the entry or loads it from the disk cache, so that importing powerkern stays cheap.
    """

    def decorate(function: F) -> F:
        if JIT_DISABLED:  # NumPy scalars would warn where compiled code silently returns inf or NaN
            return np.errstate(all="ignore")(function)
        return Entry(function, signature)  # type: ignore[return-value]

    return decorate


class Entry:
    """A callable that compiles or loads its machine code, for one signature, at its first call."""

    def __init__(self, function: Callable[..., Any], signature: tuple[Kind, ...]) -> None:
        functools.update_wrapper(self, function)
        self._signature = signature
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        return (self._compiled or self.compile())(*args)

    def compile(self) -> Callable[..., Any]:
        """Load or compile the entry; return a Python function that calls the machine code."""
        with no_fork():  # one thread compiles or loads at a time
            if self._compiled is None:
                self._compiled = self._plain() if _is_plain() else self._loaded()
        code_cache.warn_once_if_not_kept()
        return self._compiled

    @property
    def name(self) -> str:
        """The qualified name of the function."""
        return self._function.__qualname__

    def keep_in(self, folder: Path) -> bool:
        """Compile the entry into a cache folder; return False if its code is there already.

        Raise OSError if writing fails.
        """
        with no_fork():
            return code_cache.keep_in(folder, self._function, self.object_code)

    def file_in(self, folder: Path) -> Path:
        """Return the path of the entry's code in a cache folder."""
        return folder / code_cache.file_name(self._function)

    def object_code(self) -> bytes:
        """Compile the entry and return the content of its object file."""
        name = self._symbol().removeprefix("powerkern.kernels.")
        with compile_notice.announce_if_slow(name), _no_garbage_collection():
            from powerkern._jit.object_code import object_code

            return object_code(self._function, self.interface(), self._symbol())

    @property
    def _function(self) -> Callable[..., Any]:
        return self.__wrapped__  # type: ignore[attr-defined, no-any-return]

    def interface(self) -> Interface:
        """Return the calling convention between Python and the machine code of the entry."""
        return Interface.of(self._function, self._signature)

    def _symbol(self) -> str:
        return f"{self._function.__module__}.{self._function.__qualname__}"

    def _loaded(self) -> Callable[..., Any]:
        code = code_cache.load_or_compile(self._function, self.object_code)
        return self.interface().caller(_native(code, self._symbol()), self._symbol())

    def _plain(self) -> Callable[..., Any]:
        from powerkern._jit.numba_extension import plain

        return plain(self._function)  # type: ignore[no-any-return]


def _is_plain() -> bool:
    return any(os.environ.get(name, "0") not in ("", "0") for name in _PLAIN)


def _native(code: bytes, symbol: str) -> Any:
    """Load an object file into this process; return its function `symbol`.

    The function takes the address of the packed arguments as three pointers of different types, and returns an integer
    (see `_NATIVE`).
    """
    library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(symbol)
    _LOADED.append(library.link(_linker(), f"{symbol} {len(_LOADED)}"))
    return _NATIVE(_LOADED[-1][symbol])


@functools.cache
def _linker() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # Code and its constants must be at most 2 GB apart. JITLink places them side by side; LLVM's older linker places
    # them anywhere and aborts the process if they are too far apart. JITLink is not mature on Windows.
    return llvm.create_lljit_compiler(use_jit_link=sys.platform != "win32")


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Switch off garbage collection within the context.

    Scanning the live objects of the compiler would take a seventh of compile time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
