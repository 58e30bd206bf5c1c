"""Lets jitted code call kernels: registered with numba when it first compiles (entry point ``numba_extensions``)."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numba
from numba import types
from numba.extending import overload, typeof_impl

from powerkern._jit import llvm_intrinsics  # noqa: F401  (the twins register themselves)
from powerkern._jit.llvm_lanes import FLOAT32_LANES
from powerkern._jit.marks import CHOICES, LISTENERS, mark_of

try:
    from powerkern._jit import fast_lowering
except Exception:  # numba's private parts have changed
    DEFERRING: dict[str, Any] = {}
    _OF_ENTRIES: dict[str, Any] = {}
else:
    DEFERRING, _OF_ENTRIES = fast_lowering.OPTIONS, fast_lowering.OPTIONS_OF_ENTRIES

_COMMON = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True, **DEFERRING}
#: numba's options: never ``fastmath=True``, which deletes NaN checks.
OPTIONS: dict[str, dict[str, Any]] = {
    "kernel": {"fastmath": {"contract"}, **_COMMON},
    "inlined": {"fastmath": {"contract"}, "forceinline": True, **_COMMON},
    "reduction": {"fastmath": {"contract", "reassoc"}, **_COMMON},
}
#: Whether this thread compiles an entry: its kernels count no references, and users' functions have others, which do.
_THREAD = threading.local()


@contextlib.contextmanager
def compiling_an_entry() -> Iterator[dict[str, Any]]:
    """Compile kernels for an entry; gives the options of the entry itself."""
    _THREAD.in_entry = True
    try:
        yield _OF_ENTRIES
    finally:
        _THREAD.in_entry = False


def jitted(function: Callable[..., Any]) -> Any:
    """The dispatcher that jitted code calls in place of a function."""
    return _jitted(function, getattr(_THREAD, "in_entry", False))


@functools.cache
def _jitted(function: Callable[..., Any], in_entry: bool) -> Any:
    mark = mark_of(function)
    if mark is not None and mark.function is not function:
        return _jitted(mark.function, in_entry)
    kind = "kernel" if mark is None else mark.options
    # without reference counts in their functions, LLVM would associate some sums in another order
    own = _OF_ENTRIES if in_entry and kind != "reduction" else {}
    return numba.njit(**{**OPTIONS[kind], **own})(function)


def plain(function: Callable[..., Any]) -> Any:
    """An entry as a function of plain numba, compiled when it is called."""
    return numba.njit(nogil=True, error_model="numpy", fastmath={"contract"})(function)


@typeof_impl.register(FunctionType)
def _type_of_function(value, context):  # type: ignore[no-untyped-def]
    mark = mark_of(value)
    if mark is None:
        return getattr(value, "_numba_type_", None)  # as numba does
    return None if mark.is_choice else numba.typeof(jitted(value))


def _register_choice(function: Callable[..., Any]) -> None:
    mark = mark_of(function)
    assert mark is not None

    def chosen(*args: Any, **named: Any) -> Callable[..., Any]:
        first = (*args, *named.values())[0]
        if mark.of_none is not None:
            return mark.of_none if isinstance(first, types.NoneType) else mark.function
        return mark.float32 if first in (types.float32, FLOAT32_LANES) else mark.function  # type: ignore[return-value]

    overload(function, jit_options=OPTIONS[mark.options], strict=False)(chosen)


def register() -> None:
    """Do nothing more: importing this module is enough."""


for _function in CHOICES:
    _register_choice(_function)
LISTENERS.append(_register_choice)
