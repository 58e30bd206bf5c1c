"""Loads object files into this process by LLVM."""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

import llvmlite.binding as llvm

#: The three views of the one pointer that is passed (see `interface`); the call releases Python's lock.
_NATIVE = ctypes.CFUNCTYPE(ctypes.c_int64, *(ctypes.c_char_p,) * 3)
#: All that was loaded: machine code lives as long as this.
_LOADED: list[Any] = []

#: Functions of the C library that machine code may call; LLVM finds them in the process.
LIBRARY = frozenset(
    ("ceil", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "floor", "fma", "free", "frexp", "hypot", "ldexp", "log",
     "log10", "log1p", "log2", "malloc", "memcpy", "memmove", "memset", "pow", "rint", "sinh", "trunc")
)  # fmt: skip


@functools.cache
def _linker() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # the code of a file and its constants are at most 2 GB apart: JITLink lays them side by side, LLVM's older linker
    # wherever there is room, and aborts the process (Windows has the older one: JITLink is young there)
    return llvm.create_lljit_compiler(use_jit_link=sys.platform != "win32")


def load(code: bytes, symbol: str) -> Any:
    """The function of an object file, which takes the words of its arguments (see `interface`)."""
    library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(symbol)
    _LOADED.append(library.link(_linker(), f"{symbol} {len(_LOADED)}"))
    return _NATIVE(_LOADED[-1][symbol])
