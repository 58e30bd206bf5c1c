"""Eight numbers as one value: for loops over a column that follow eight lambdas at once.

LLVM vectorises an inner loop over a column; where the column is short, most of the time goes into starting such loops.
A loop whose body works on `Lanes` instead has its vectors, and keeps its sums in registers, whatever the length.
In plain Python the eight numbers are an array.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import lower_builtin, register_model
from numba.np.arrayobj import make_array

#: How many numbers there are in one value.
N_LANES = 8

_VECTOR = ir.VectorType(ir.DoubleType(), N_LANES)
_BITS = ir.VectorType(ir.IntType(64), N_LANES)
_CONTRACT = ("contract",)

# arrays in plain Python, vectors of LLVM in compiled code
Lanes = Any
Mask = Any


# --- in plain Python ----------------------------------------------------------------------------------


def lanes_of(x: float) -> Lanes:
    """The same number eight times."""
    return np.full(N_LANES, x)


def load_lanes(array: npt.NDArray[np.float64], start: int) -> Lanes:
    """``array[start : start + 8]`` of a contiguous vector."""
    return array[start : start + N_LANES].copy()


def store_lanes(array: npt.NDArray[np.float64], start: int, x: Lanes) -> None:
    """``array[start : start + 8] = x`` of a contiguous vector."""
    array[start : start + N_LANES] = x


def choose(mask: Mask, x: Lanes, y: Lanes) -> Lanes:
    """x where the mask is true, else y."""
    return np.where(mask, x, y)


def any_lane(mask: Mask) -> bool:
    """Whether the mask is true somewhere."""
    return bool(mask.any())


def sqrt_lanes(x: Lanes) -> Lanes:
    """The square roots."""
    return np.sqrt(x)


def shifted_to_exponent(x: Lanes) -> Lanes:
    """The numbers whose bit patterns are those of x, shifted left by 52."""
    return (x.view(np.int64) << 52).view(np.float64)


# --- in compiled code ---------------------------------------------------------------------------------


class _LanesType(types.Type):  # type: ignore[misc]
    pass


class _MaskType(types.Type):  # type: ignore[misc]
    pass


_LANES, _MASK = _LanesType("Lanes"), _MaskType("Mask")


@register_model(_LanesType)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, fe_type: Any) -> None:
        super().__init__(manager, fe_type, _VECTOR)


@register_model(_MaskType)
class _MaskModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, fe_type: Any) -> None:
        super().__init__(manager, fe_type, ir.VectorType(ir.IntType(1), N_LANES))


Build = Callable[[Any, list[Any]], Any]


def _implement(function: Callable[..., Any], result: Any, *arguments: Any) -> Callable[[Build], Build]:
    """Let jitted code that calls a function with arguments of these types run what is built here."""
    template = type("Template", (ConcreteTemplate,), {"cases": [signature(result, *arguments)]})
    infer_global(function, typing_key=function)(template)

    def register(build: Build) -> Build:
        @lower_builtin(function, *arguments)  # type: ignore[untyped-decorator]
        def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return build(builder, [_pointer(context, builder, a, t) for a, t in zip(args, arguments, strict=True)])

        return build

    return register


def _pointer(context: Any, builder: Any, value: Any, kind: Any) -> Any:
    """The address of an array's data; other arguments as they are."""
    return make_array(kind)(context, builder, value).data if kind == _COLUMN else value


_COLUMN = types.Array(types.float64, 1, "C")


@_implement(lanes_of, _LANES, types.float64)
def _build_lanes_of(builder: Any, args: list[Any]) -> Any:
    return _spread(builder, args[0])


def _spread(builder: Any, x: Any) -> Any:
    undefined, index = ir.Constant(_VECTOR, ir.Undefined), ir.IntType(32)
    first = builder.insert_element(undefined, x, index(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(index, N_LANES), [0] * N_LANES))


@_implement(load_lanes, _LANES, _COLUMN, types.int64)
def _build_load(builder: Any, args: list[Any]) -> Any:
    loaded = builder.load(_address(builder, *args))
    loaded.align = 8
    return loaded


@_implement(store_lanes, types.none, _COLUMN, types.int64, _LANES)
def _build_store(builder: Any, args: list[Any]) -> Any:
    builder.store(args[2], _address(builder, *args[:2])).align = 8
    return ir.Constant(ir.IntType(8).as_pointer(), None)


def _address(builder: Any, data: Any, start: Any) -> Any:
    return builder.bitcast(builder.gep(data, [start]), _VECTOR.as_pointer())


@_implement(choose, _LANES, _MASK, _LANES, _LANES)
def _build_choose(builder: Any, args: list[Any]) -> Any:
    return builder.select(*args)


@_implement(any_lane, types.boolean, _MASK)
def _build_any(builder: Any, args: list[Any]) -> Any:
    bits = ir.IntType(N_LANES)
    return builder.icmp_unsigned("!=", builder.bitcast(args[0], bits), bits(0))


@_implement(sqrt_lanes, _LANES, _LANES)
def _build_sqrt(builder: Any, args: list[Any]) -> Any:
    return _call(builder, "llvm.sqrt.v8f64", args)


@_implement(abs, _LANES, _LANES)
def _build_abs(builder: Any, args: list[Any]) -> Any:
    return _call(builder, "llvm.fabs.v8f64", args)


def _call(builder: Any, name: str, args: list[Any]) -> Any:
    """Call one of LLVM's functions of a vector."""
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_VECTOR, [_VECTOR]), name)
    return builder.call(function, args)


@_implement(shifted_to_exponent, _LANES, _LANES)
def _build_shifted_to_exponent(builder: Any, args: list[Any]) -> Any:
    bits = builder.bitcast(args[0], _BITS)
    return builder.bitcast(builder.shl(bits, ir.Constant(_BITS, [52] * N_LANES)), _VECTOR)


def _implement_operator(function: Callable[..., Any], instruction: str) -> None:
    """Of two `Lanes`, or of one and a number."""
    for pair in ((_LANES, _LANES), (_LANES, types.float64), (types.float64, _LANES)):

        @_implement(function, _LANES, *pair)
        def _build(builder: Any, args: list[Any]) -> Any:
            vectors = [x if x.type == _VECTOR else _spread(builder, x) for x in args]
            return getattr(builder, instruction)(*vectors, flags=_CONTRACT)


def _implement_comparison(function: Callable[..., Any], sign: str) -> None:
    for pair in ((_LANES, _LANES), (_LANES, types.float64)):

        @_implement(function, _MASK, *pair)
        def _build(builder: Any, args: list[Any]) -> Any:
            vectors = [x if x.type == _VECTOR else _spread(builder, x) for x in args]
            return builder.fcmp_ordered(sign, *vectors)


for _function, _instruction in (
    (operator.add, "fadd"),
    (operator.iadd, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _implement_operator(_function, _instruction)
for _function, _sign in ((operator.lt, "<"), (operator.gt, ">")):
    _implement_comparison(_function, _sign)
