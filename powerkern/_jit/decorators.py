"""The decorators of everything that is compiled (see the package's docstring for which to take). They only mark.

A function that is marked stays plain Python; `numba_extension` has what jitted code calls in its place.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from powerkern._jit.entries import Entry
from powerkern._jit.marks import Mark, marked
from powerkern._jit.signatures import Kind

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

#: True when numba is switched off (NUMBA_DISABLE_JIT=1) and every kernel runs as plain Python.
JIT_DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def kernel(function: F) -> F:
    """Mark a composable numeric function; it stays callable as plain Python."""
    return marked(function, Mark(function, "kernel"))


def inlined(function: F) -> F:
    """Mark a scalar kernel for hot loops: LLVM must inline it, or the loop around it stays scalar."""
    return marked(function, Mark(function, "inlined"))


def reduction(function: F) -> F:
    """Mark a kernel whose floating-point sums may be re-associated (vectorised)."""
    return marked(function, Mark(function, "reduction"))


def entry(signature: tuple[Kind, ...]) -> Callable[[F], F]:
    """Mark an outer function that Python calls with arguments of exactly these types.

    Compiled, or loaded from the disk cache, at the first call, so that importing powerkern stays cheap.
    """

    def decorate(function: F) -> F:
        if JIT_DISABLED:  # numpy scalars would warn where compiled code silently gives inf or nan
            return np.errstate(all="ignore")(function)
        return Entry(function, signature)  # type: ignore[return-value]

    return decorate


def compiled_as(kernel_function: Callable[..., Any]) -> Callable[[F], F]:
    """Let jitted code that calls the decorated Python function use `kernel_function`, as that is marked, instead."""

    def decorate(function: F) -> F:
        return marked(function, Mark(kernel_function, "kernel"))

    return decorate


def by_dtype(float32_kernel: Callable[..., Any]) -> Callable[[F], F]:
    """Make a kernel of one float64 argument, or a vector, hand float32 arguments to its float32 twin."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def dispatch(x: Any) -> Any:
            return (float32_kernel if getattr(x, "dtype", None) == np.float32 else function)(x)

        return marked(dispatch, Mark(function, "inlined", float32_kernel))  # type: ignore[return-value]

    return decorate


def for_none(none_kernel: Callable[..., Any] | None = None) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Make a kernel hand calls whose first argument is None to `none_kernel`, or return None for them.

    Jitted code decides by types, when it is compiled.
    """

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        of_none = none_kernel or _nothing_like(function)

        @functools.wraps(function)
        def dispatch(first: Any, *rest: Any) -> T:
            return cast(T, (of_none if first is None else function)(first, *rest))

        return marked(dispatch, Mark(function, "kernel", of_none=of_none))

    return decorate


def _nothing_like(function: Callable[..., Any]) -> Callable[..., None]:
    """A function of the same arguments that returns None."""
    scope: dict[str, Any] = {}
    exec(f"def nothing({', '.join(inspect.signature(function).parameters)}): return None", scope)
    return scope["nothing"]  # type: ignore[no-any-return]
