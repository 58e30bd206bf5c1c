"""The decorators of everything that is compiled (see the package's docstring for which to take)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import types
from numba.extending import overload

from powerkern._jit.calls import let_jitted_code_call
from powerkern._jit.entries import Entry
from powerkern._jit.lanes import FLOAT32_LANES
from powerkern._jit.settings import JIT_DISABLED, KERNEL_OPTIONS, REDUCTION_OPTIONS

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def kernel(function: F) -> F:
    """Mark a composable numeric function; it stays callable as plain Python."""
    let_jitted_code_call(function, lambda *args: function, KERNEL_OPTIONS)
    return function


def inlined(function: F) -> F:
    """Mark a scalar kernel for hot loops: LLVM must inline it, or the loop around it stays scalar."""
    let_jitted_code_call(function, lambda *args: function, {"forceinline": True, **KERNEL_OPTIONS})
    return function


def reduction(function: F) -> F:
    """Mark a kernel whose floating-point sums may be re-associated (vectorised)."""
    let_jitted_code_call(function, lambda *args: function, REDUCTION_OPTIONS)
    return function


def entry(signature: str | tuple[Any, ...]) -> Callable[[F], F]:
    """Mark an outer function that Python calls with exactly one `signature` (a string, or a tuple of types).

    Compiled, or loaded from the disk cache, at the first call, so that importing powerkern stays cheap.
    """

    def decorate(function: F) -> F:
        if JIT_DISABLED:  # numpy scalars would warn where compiled code silently gives inf or nan
            return np.errstate(all="ignore")(function)
        return Entry(function, signature)  # type: ignore[return-value]

    return decorate


def compiled_as(kernel_function: Callable[..., Any]) -> Callable[[F], F]:
    """Let jitted code that calls the decorated Python function use `kernel_function` instead."""
    return _implemented_by(kernel_function, KERNEL_OPTIONS)


def inlined_as(kernel_function: Callable[..., Any]) -> Callable[[F], F]:
    """`compiled_as` for a function of one value: inlined, so that a user's loop over it is vectorised."""
    return _implemented_by(kernel_function, {"forceinline": True, **KERNEL_OPTIONS})


def _implemented_by(kernel_function: Callable[..., Any], options: dict[str, Any]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        @overload(function, jit_options=options, strict=False)  # type: ignore[untyped-decorator]
        def _implementation(*args: Any, **kwargs: Any) -> Callable[..., Any]:
            return kernel_function

        return function

    return decorate


def by_dtype(float32_kernel: Callable[..., Any]) -> Callable[[F], F]:
    """Make a kernel of one float64 argument, or a vector, hand float32 arguments to its float32 twin."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def dispatch(x: Any) -> Any:
            return (float32_kernel if getattr(x, "dtype", None) == np.float32 else function)(x)

        let_jitted_code_call(
            dispatch,
            lambda x: float32_kernel if x in (types.float32, FLOAT32_LANES) else function,
            {"forceinline": True, **KERNEL_OPTIONS},
        )
        return dispatch  # type: ignore[return-value]

    return decorate


def for_none(none_kernel: Callable[..., Any]) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Make a kernel hand calls whose first argument is None to `none_kernel`: decided by types, when it is compiled."""

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(function)
        def dispatch(first: Any, *rest: Any) -> T:
            chosen = none_kernel if first is None else function
            return cast(T, chosen(first, *rest))

        let_jitted_code_call(
            dispatch, lambda *args: none_kernel if isinstance(args[0], types.NoneType) else function, KERNEL_OPTIONS
        )
        return dispatch

    return decorate
