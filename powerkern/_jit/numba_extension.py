"""Register kernels with numba, so that jitted code can call them (loaded by the entry point ``numba_extensions``)."""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, TypeVar

import numba
from numba import types
from numba.extending import overload, typeof_impl

from powerkern._jit import llvm_intrinsics  # noqa: F401  (importing it registers the lowering functions)
from powerkern._jit.llvm_lanes import FLOAT32_LANES
from powerkern._jit.marks import CHOICES, LISTENERS, get_mark

T = TypeVar("T")

_LOG = logging.getLogger("powerkern")
try:
    from powerkern._jit import fast_lowering
except Exception as error:  # numba's private parts have changed
    _LOG.info("powerkern: kernels are compiled by plain numba, which takes longer: %r", error)
    PIPELINES = None
else:
    PIPELINES = fast_lowering.Pipelines()


def _options(*fastmath: str, **own: Any) -> dict[str, Any]:
    """Return numba's options for kernels, with the given `fastmath` flags.

    ``fastmath=True``, which stands for all flags, must not be used, since it would delete checks for NaN.
    """
    own |= {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "fastmath": set(fastmath)}
    return own if PIPELINES is None else {**own, "pipeline_class": PIPELINES.of_kernels}


OPTIONS = {
    "kernel": _options("contract"),
    "inlined": _options("contract", forceinline=True),
    "reduction": _options("contract", "reassoc"),
}
#: The attribute ``in_entry`` is true while this thread compiles an entry. Kernels are compiled without reference counts
#: in entries, and with them in users' functions.
_THREAD = threading.local()


def compile_entry(compiled: Callable[[dict[str, Any]], T]) -> T:
    """Compile an entry by `fast_lowering` or, if this fails, with plain numba.

    A later release of numba may cause such a failure. This process then compiles everything with plain numba.

    Parameters
    ----------
    compiled : callable
        Compiles the entry, given numba's options for it. Called a second time if the first attempt fails.
    """
    options = {} if PIPELINES is None else {"pipeline_class": PIPELINES.of_entries}
    _THREAD.in_entry = True
    try:
        try:
            return compiled(options)
        except Exception as error:
            if PIPELINES is None or not PIPELINES.are_fast or "NRT required" in str(error):
                raise
            with _plain_numba():
                result = compiled(options)
            PIPELINES.are_fast = False
            _LOG.warning(
                "powerkern: this numba (%s) compiles kernels by its own means only, which takes longer: %r",
                numba.__version__, error,
            )  # fmt: skip
            return result
    finally:
        _THREAD.in_entry = False


@contextlib.contextmanager
def _plain_numba() -> Iterator[None]:
    assert PIPELINES is not None
    PIPELINES.are_fast = False
    try:
        yield
    finally:
        PIPELINES.are_fast = True


def jitted(function: Callable[..., Any]) -> Any:
    """Return the numba dispatcher that jitted code calls in place of a function."""
    is_fast = PIPELINES is not None and PIPELINES.are_fast
    return _jitted(function, getattr(_THREAD, "in_entry", False), is_fast)


@functools.cache
def _jitted(function: Callable[..., Any], in_entry: bool, is_fast: bool) -> Any:
    mark = get_mark(function)
    if mark is not None and mark.function is not function:
        return _jitted(mark.function, in_entry, is_fast)
    kind = "kernel" if mark is None else mark.options
    options = OPTIONS[kind]
    # reductions keep reference counts even in entries: without them, LLVM would associate some sums in another order
    if PIPELINES is not None and in_entry and kind != "reduction":
        options = {**options, "pipeline_class": PIPELINES.of_entries}
    return numba.njit(**options)(function)


def plain(function: Callable[..., Any]) -> Any:
    """Return an entry as an ordinary numba function, compiled when it is called."""
    return numba.njit(nogil=True, error_model="numpy", fastmath={"contract"})(function)


@typeof_impl.register(FunctionType)
def _type_of_function(value, context):  # type: ignore[no-untyped-def]
    mark = get_mark(value)
    if mark is None:
        return getattr(value, "_numba_type_", None)  # as numba does
    return None if mark.is_choice else numba.typeof(jitted(value))


def _register_choice(function: Callable[..., Any]) -> None:
    mark = get_mark(function)
    assert mark is not None

    def chosen(*args: Any, **named: Any) -> Callable[..., Any]:
        first = (*args, *named.values())[0]
        if mark.of_none is not None:
            return mark.of_none if isinstance(first, types.NoneType) else mark.function
        return mark.float32 if first in (types.float32, FLOAT32_LANES) else mark.function  # type: ignore[return-value]

    overload(function, jit_options=OPTIONS[mark.options], strict=False)(chosen)


def register() -> None:
    """Do nothing. numba calls this entry point; importing the module registers the kernels."""


for _function in CHOICES:
    _register_choice(_function)
LISTENERS.append(_register_choice)
