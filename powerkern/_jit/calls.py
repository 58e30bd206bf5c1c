"""How jitted code calls kernels: each is compiled once for a kind of arguments, with options of its own.

numba's ``register_jitable``, which serves with releases that `compiler` does not know, compiles a function anew for
every set of options of its callers, and makes a dispatcher, and wrappers that nothing calls, for each.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from numba import types
from numba.core import compiler
from numba.core.errors import TypingError
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack
from numba.core.typing import fold_arguments
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import overload

from powerkern._jit.contexts import target_context, typing_context

#: What a kernel takes from its caller, whatever its own options.
_INHERITED = "nrt", "forceinline"


def let_jitted_code_call(
    function: Callable[..., Any], choose: Callable[..., Callable[..., Any]], options: dict[str, Any]
) -> None:
    """Where jitted code calls `function`, compile what `choose` returns for the types of its arguments."""
    if "pipeline_class" in options:
        infer_global(function, types.Function(_template(function, choose, options)))
    else:
        overload(function, jit_options=options, strict=False)(lambda *args, **named: choose(*args, *named.values()))


def _template(
    function: Callable[..., Any], choose: Callable[..., Callable[..., Any]], options: dict[str, Any]
) -> type[AbstractTemplate]:
    compiled: dict[Any, Any] = {}

    class Template(AbstractTemplate):  # type: ignore[misc]
        key = function
        metadata: ClassVar = {"target": "cpu"}

        def generic(self, args: Any, kws: Any) -> Any:
            chosen = choose(*args, *kws.values())
            parameters = _parameters(chosen)
            given = _in_order(parameters, args, kws)
            key = given, _inherited()
            if key not in compiled:
                compiled[key] = _compiled(chosen, options, given)
            self._compiled = compiled[key]
            return self._compiled.signature.replace(pysig=parameters)

        def get_impl_key(self, sig: Any) -> Any:
            return self._compiled.entry_point

    return Template


_parameters = functools.cache(inspect.signature)


def _in_order(parameters: inspect.Signature, args: Any, kws: Any) -> tuple[Any, ...]:
    """The types of all arguments; `Omitted` where a default stands."""
    try:
        return fold_arguments(  # type: ignore[no-any-return]
            parameters,
            args,
            kws,
            lambda index, parameter, value: value,
            lambda index, parameter, default: types.Omitted(default),
            lambda index, parameter, values: types.StarArgTuple(values),
        )
    except TypeError as error:
        raise TypingError(str(error)) from error


def _inherited() -> tuple[Any, ...]:
    caller = ConfigStack.top_or_none()
    return () if caller is None else tuple(getattr(caller, name) for name in _INHERITED)


def _compiled(function: Callable[..., Any], options: dict[str, Any], args: tuple[Any, ...]) -> Any:
    flags, own = compiler.Flags(), {"nopython": True, "no_cpython_wrapper": True, **options}
    pipeline = own.pop("pipeline_class")
    cpu_target.options.parse_as_flags(flags, own)
    return compiler.compile_extra(
        typing_context(), target_context(), function, args, None, flags, {}, pipeline_class=pipeline
    )
