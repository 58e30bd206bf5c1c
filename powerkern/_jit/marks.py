"""The decorators of everything that is compiled. They only mark: a marked function stays plain Python.

The package's docstring says which to use; `numba_extension` decides which function jitted code calls instead.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

#: For kernels and their tests, by way of `powerkern._jit`.
__all__ = ["by_dtype", "compiled_as", "inlined", "kernel", "reduction", "specialize_on_none"]

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Mark(NamedTuple):
    """Mark on a function: how jitted code calls it."""

    #: The function compiled in its place.
    function: Callable[..., Any]
    #: "kernel", "inlined" or "reduction": which of numba's options it is compiled with.
    options: str
    #: Those for a first argument of float32, and for one that is None, if there are any.
    float32: Callable[..., Any] | None = None
    of_none: Callable[..., Any] | None = None

    @property
    def is_choice(self) -> bool:
        """Whether the type of the first argument decides."""
        return self.float32 is not None or self.of_none is not None


def get_mark(function: Callable[..., Any]) -> Mark | None:
    """Return the mark of a function, or None."""
    return getattr(function, "_powerkern_mark", None)


#: The functions whose twin is chosen by type, and the callbacks for new ones.
CHOICES: list[Callable[..., Any]] = []
LISTENERS: list[Callable[[Callable[..., Any]], None]] = []


def _marked(function: F, mark: Mark) -> F:
    """Mark a function and return it."""
    function._powerkern_mark = mark  # type: ignore[attr-defined]
    if mark.is_choice:
        CHOICES.append(function)
        for listener in LISTENERS:
            listener(function)
    return function


# --- decorators --------------------------------------------------------------------------------------


def kernel(function: F) -> F:
    """Mark a composable numeric function; it stays callable as plain Python."""
    return _marked(function, Mark(function, "kernel"))


def inlined(function: F) -> F:
    """Mark a scalar kernel for hot loops: LLVM must inline it, or the loop around it stays scalar."""
    return _marked(function, Mark(function, "inlined"))


def reduction(function: F) -> F:
    """Mark a kernel whose floating-point sums may be re-associated (vectorised)."""
    return _marked(function, Mark(function, "reduction"))


def compiled_as(kernel_function: Callable[..., Any]) -> Callable[[F], F]:
    """Let jitted code call `kernel_function`, according to its mark, in place of the decorated Python function."""

    def decorate(function: F) -> F:
        return _marked(function, Mark(kernel_function, "kernel"))

    return decorate


def by_dtype(float32_kernel: Callable[..., Any]) -> Callable[[F], F]:
    """Dispatch at compile time on the type of the only argument: float32 numbers and vectors go to `float32_kernel`."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def dispatch(x: Any) -> Any:
            return (float32_kernel if getattr(x, "dtype", None) == np.float32 else function)(x)

        return _marked(dispatch, Mark(function, "inlined", float32_kernel))  # type: ignore[return-value]

    return decorate


def specialize_on_none(none_kernel: Callable[..., Any] | None = None) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Dispatch at compile time on the first argument: if it is None, call `none_kernel` (or return None).

    Jitted code decides by types, when it is compiled.
    """

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        of_none = none_kernel or _nothing_like(function)

        @functools.wraps(function)
        def dispatch(first: Any, *rest: Any) -> T:
            return cast(T, (of_none if first is None else function)(first, *rest))

        return _marked(dispatch, Mark(function, "kernel", of_none=of_none))

    return decorate


def _nothing_like(function: Callable[..., Any]) -> Callable[..., None]:
    """Return a function of the same arguments that returns None."""
    scope: dict[str, Any] = {}
    exec(f"def nothing({', '.join(inspect.signature(function).parameters)}): return None", scope)
    return scope["nothing"]  # type: ignore[no-any-return]
