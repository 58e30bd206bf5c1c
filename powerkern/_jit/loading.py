"""Loads object files into this process by LLVM."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import llvmlite.binding as llvm

#: The three views of the one pointer that is passed (see `interface`); the call releases Python's lock.
_NATIVE = ctypes.CFUNCTYPE(ctypes.c_int64, *(ctypes.c_char_p,) * 3)

#: Functions of the C library that machine code may call; LLVM finds them in the process.
LIBRARY = frozenset(
    ("ceil", "erf", "erfc", "exp", "exp2", "expm1", "floor", "fma", "free", "frexp", "hypot", "ldexp", "log", "log10",
     "log1p", "log2", "malloc", "memcpy", "memmove", "memset", "pow", "rint", "trunc")
)  # fmt: skip


@functools.cache
def _engine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic", codemodel="jitdefault", jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


def load(code: bytes, symbol: str) -> Any:
    """The function of an object file, which takes the words of its arguments (see `interface`)."""
    _engine().add_object_file(llvm.ObjectFileRef.from_data(code))
    _engine().finalize_object()
    return _NATIVE(_engine().get_function_address(symbol))
