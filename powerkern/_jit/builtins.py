"""Python's ``min``, ``max`` and ``int`` as kernels have them: instructions of the caller, as numba's operators are.

numba compiles a function of its own for each kind of arguments, and of callers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from numba import types
from numba.core import ir
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import lower_builtin


def lowered(function: Any, result: Callable[..., Any]) -> Callable[..., Any]:
    """Make the decorated function write LLVM's code for a call of `function`; `result` gives its signature for types.

    Not an ``@overload`` of an ``@intrinsic``: numba would compile a function for each, and for each kind of caller.
    """

    class Template(AbstractTemplate):  # type: ignore[misc]
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            return result(self.context, *args)

    infer_global(function, types.Function(Template))
    return lower_builtin(function, types.VarArg(types.Any))  # type: ignore[no-any-return]


def _one_of(context: Any, *numbers: Any) -> Any:
    """The signature of a choice among numbers."""
    if len(numbers) < 2 or not all(isinstance(each, types.Number) for each in numbers):
        return None
    common = context.unify_types(*numbers)
    return None if common is None else common(*numbers)


def _of_integer(context: Any, x: Any) -> Any:
    if isinstance(x, types.Integer):
        return x(x)
    return types.intp(x) if isinstance(x, types.Float | types.Boolean) else None


class Twin:
    """What stands for one of Python's functions in a kernel."""

    def __init__(self, name: str) -> None:
        self.__name__ = name


MIN, MAX, INT = Twin("min"), Twin("max"), Twin("int")
_TWINS = {min: MIN, max: MAX, int: INT}


def _lower_choice(twin: Twin, better: Any) -> None:
    @lowered(twin, _one_of)
    def lower(context, builder, signature, args):  # type: ignore[no-untyped-def]
        """As Python does it: a later number is taken if it is better than all before, and NaN never is."""
        kind, numbers = signature.args[0], zip(signature.args[1:], args[1:], strict=True)
        chosen = args[0]
        for given, number in numbers:
            common = context.typing_context.unify_types(kind, given)
            chosen, number = (context.cast(builder, x, t, common) for x, t in ((chosen, kind), (number, given)))
            compare = context.get_function(better, types.boolean(common, common))
            chosen, kind = builder.select(compare(builder, (number, chosen)), number, chosen), common
        return chosen


_lower_choice(MIN, operator.lt)
_lower_choice(MAX, operator.gt)


@lowered(INT, _of_integer)
def _lower_int(context, builder, signature, args):  # type: ignore[no-untyped-def]
    return context.cast(builder, args[0], signature.args[0], signature.return_type)


class TakeTwins:
    """Let the twins stand for Python's functions."""

    def run_pass(self, state: Any) -> bool:
        """Change what the global names mean."""
        for block in state.func_ir.blocks.values():
            for assignment in block.find_insts(ir.Assign):
                named = assignment.value
                if isinstance(named, ir.Global):
                    named.value = _twin(named.value)
        return True


def _twin(value: Any) -> Any:
    return next((twin for function, twin in _TWINS.items() if value is function), value)
