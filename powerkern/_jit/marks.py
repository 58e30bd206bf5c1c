"""Decorators for functions that jitted code may call. A decorated function stays plain Python and only gets a mark.

The docstring of `powerkern._jit` says which decorator to use; `numba_extension` reads the marks.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

#: Re-exported by `powerkern._jit`, for kernels and their tests.
__all__ = ["by_dtype", "compiled_as", "inlined", "kernel", "reduction", "specialize_on_none"]

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Mark(NamedTuple):
    """The record that a decorator attaches to a function: the functions to compile in its place, and the options."""

    #: The function that is compiled in its place.
    function: Callable[..., Any]
    #: "kernel", "inlined" or "reduction": a key of `numba_extension.OPTIONS`.
    options: str
    #: Alternatives for a first argument of type float32, and of type None.
    float32: Callable[..., Any] | None = None
    of_none: Callable[..., Any] | None = None

    @property
    def is_choice(self) -> bool:
        """Whether there are alternatives that are chosen by the type of the first argument."""
        return self.float32 is not None or self.of_none is not None


def get_mark(function: Callable[..., Any]) -> Mark | None:
    """Return the mark of a function, or None if it has none."""
    return getattr(function, "_powerkern_mark", None)


#: Functions with alternatives chosen by type, and callbacks to be called for each new one.
CHOICES: list[Callable[..., Any]] = []
LISTENERS: list[Callable[[Callable[..., Any]], None]] = []


def _attach_mark(function: F, mark: Mark) -> F:
    """Attach a mark to a function and return the function."""
    function._powerkern_mark = mark  # type: ignore[attr-defined]
    if mark.is_choice:
        CHOICES.append(function)
        for listener in LISTENERS:
            listener(function)
    return function


# --- decorators --------------------------------------------------------------------------------------


def kernel(function: F) -> F:
    """Mark a numeric function that jitted code may call; it stays callable as plain Python."""
    return _attach_mark(function, Mark(function, "kernel"))


def inlined(function: F) -> F:
    """Mark a scalar kernel for hot loops, which LLVM must inline so that the loop around it vectorises."""
    return _attach_mark(function, Mark(function, "inlined"))


def reduction(function: F) -> F:
    """Mark a kernel whose floating-point sums may be re-associated, so that they vectorise."""
    return _attach_mark(function, Mark(function, "reduction"))


def compiled_as(kernel_function: Callable[..., Any]) -> Callable[[F], F]:
    """Let jitted code call `kernel_function`, compiled by its own mark, in place of the decorated Python function."""

    def decorate(function: F) -> F:
        return _attach_mark(function, Mark(kernel_function, "kernel"))

    return decorate


def by_dtype(float32_kernel: Callable[..., Any]) -> Callable[[F], F]:
    """Give a kernel of one argument another version for float32 numbers and vectors, chosen at compile time."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def dispatch(x: Any) -> Any:
            return (float32_kernel if getattr(x, "dtype", None) == np.float32 else function)(x)

        return _attach_mark(dispatch, Mark(function, "inlined", float32_kernel))  # type: ignore[return-value]

    return decorate


def specialize_on_none(none_kernel: Callable[..., Any] | None = None) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Give a kernel another version for calls whose first argument is None, chosen at compile time.

    This version is `none_kernel` or, by default, returns None. The type of None is known when a caller is compiled, so
    the choice costs nothing at run time.
    """

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        of_none = none_kernel or _nothing_like(function)

        @functools.wraps(function)
        def dispatch(first: Any, *rest: Any) -> T:
            return cast(T, (of_none if first is None else function)(first, *rest))

        return _attach_mark(dispatch, Mark(function, "kernel", of_none=of_none))

    return decorate


def _nothing_like(function: Callable[..., Any]) -> Callable[..., None]:
    """Return a function with the same parameters as `function` that returns None."""
    scope: dict[str, Any] = {}
    exec(f"def nothing({', '.join(inspect.signature(function).parameters)}): return None", scope)
    return scope["nothing"]  # type: ignore[no-any-return]
