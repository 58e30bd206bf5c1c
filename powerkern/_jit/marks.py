"""Marks on functions: what jitted code calls in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Mark(NamedTuple):
    """How jitted code calls a function."""

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


def mark_of(function: Callable[..., Any]) -> Mark | None:
    """The mark of a function, if it has one."""
    return getattr(function, "_powerkern_mark", None)


#: The functions whose twin is chosen by type, and who is told of new ones.
CHOICES: list[Callable[..., Any]] = []
LISTENERS: list[Callable[[Callable[..., Any]], None]] = []


def marked(function: F, mark: Mark) -> F:
    """The function, with a mark."""
    function._powerkern_mark = mark  # type: ignore[attr-defined]
    if mark.is_choice:
        CHOICES.append(function)
        for listener in LISTENERS:
            listener(function)
    return function
