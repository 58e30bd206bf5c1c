"""What numba knows of types and of their code, as kernels are compiled with it: what it has found once, it remembers.

numba asks for the type of an operator, its operands and their constants, each time anew; it tries NumPy's rules for
arrays first, and reloads its registries whenever a constant has no code of its own. That was a fifth of the time.
Both contexts share all that they hold with numba's own.
"""

from __future__ import annotations

import functools
import operator
from types import BuiltinFunctionType, FunctionType
from typing import Any

from numba import types
from numba.core import typing
from numba.core.cpu import CPUContext
from numba.core.errors import TypingError
from numba.core.registry import cpu_target

_OPERATORS = frozenset(value for name, value in vars(operator).items() if not name.startswith("_"))


class _Operator(types.Function):  # type: ignore[misc]
    """The type of an operator, which remembers what it gives, and for which operands it is not defined."""

    def __init__(self, known: Any) -> None:
        super().__init__(known.templates)
        self._signatures: dict[Any, Any] = {}
        self._errors: dict[Any, TypingError] = {}

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """The signature for these operands."""
        args = tuple(args)
        if args in self._errors:
            raise self._errors[args].with_traceback(None)
        if args not in self._signatures:
            try:
                self._signatures[args] = super().get_call_type(context, args, kws)
            except TypingError as error:
                self._errors[args] = error
                raise
        return self._signatures[args]


class _Typing(typing.Context):  # type: ignore[misc]
    """numba's knowledge of types."""

    def __init__(self, known: Any) -> None:
        self.__dict__ = known.__dict__

    def refresh(self) -> None:
        """Done already, by the compiler of whoever calls kernels."""

    def resolve_value_type(self, val: Any) -> Any:
        """The type of a constant; of functions without asking first whether they are data."""
        known = self._lookup_global(val) if isinstance(val, FunctionType | BuiltinFunctionType) else None
        if known is None:
            return super().resolve_value_type(val)
        return _operator(known) if val in _OPERATORS else known


_operator = functools.cache(_Operator)


class _Target(CPUContext):  # type: ignore[misc]
    """numba's knowledge of code."""

    def __init__(self, known: Any) -> None:
        self.__dict__ = known.__dict__

    @property
    def typing_context(self) -> _Typing:
        """What goes with it."""
        return typing_context()

    def refresh(self) -> None:
        """Done already, by the compiler of whoever calls kernels."""

    def get_abi_sizeof(self, ty: Any) -> int:
        """The size of a type of LLVM's, in bytes."""
        return _size(ty, self.target_data)


@functools.cache
def _size(ty: Any, data: Any) -> int:
    return ty.get_abi_size(data)  # type: ignore[no-any-return]


@functools.cache
def typing_context() -> _Typing:
    """Types, for compiling kernels."""
    return _Typing(cpu_target.typing_context)


@functools.cache
def target_context() -> _Target:
    """Code, for compiling kernels."""
    return _Target(cpu_target.target_context)
