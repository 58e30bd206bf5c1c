"""Lower the vectors of `intrinsics` to LLVM vectors (types, operators and functions), for jitted code."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, models, register_model, type_callable

from powerkern._jit import intrinsics
from powerkern._jit.intrinsics import LANES, LANES32

# --- types ------------------------------------------------------------------------------------------


class LanesType(types.Type):  # type: ignore[misc]
    """The numba type of a vector of floats, of integers (bit patterns), or of booleans (a mask)."""

    def __init__(self, dtype: types.Type, width: int) -> None:
        self.dtype, self.width = dtype, width
        super().__init__(name=f"Lanes({dtype}, {width})")


FLOAT_LANES, BIT_LANES, MASK_LANES = (LanesType(dtype, LANES) for dtype in (types.float64, types.int64, types.boolean))
FLOAT32_LANES, BIT32_LANES, MASK32_LANES = (
    LanesType(dtype, LANES32) for dtype in (types.float32, types.int32, types.boolean)
)
_ELEMENTS = {
    types.float64: ir.DoubleType(), types.int64: ir.IntType(64), types.boolean: ir.IntType(1),
    types.float32: ir.FloatType(), types.int32: ir.IntType(32),
}  # fmt: skip
_LANES_OF = {types.float64: FLOAT_LANES, types.float32: FLOAT32_LANES}
_MASKS = {FLOAT_LANES: MASK_LANES, FLOAT32_LANES: MASK32_LANES}


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: LanesType) -> None:
        super().__init__(dmm, fe_type, _vector(fe_type))


def register_lowering(function: Any, result: Callable[..., Any]) -> Callable[..., Any]:
    """Return a decorator for the function that generates LLVM code for calls of `function` in jitted code.

    `result` maps the argument types of a call to its return type or signature, or to None if `function` does not accept
    these types.
    """

    @type_callable(function)
    def _typed(context):  # type: ignore[no-untyped-def]
        return result

    return lower_builtin(function, types.VarArg(types.Any))  # type: ignore[no-any-return]


def unpack_array(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return numba's structure for an array, with attributes such as data, shape and strides.

    Parameters
    ----------
    context : object
        numba's target context.
    builder : object
        llvmlite's builder.
    kind : numba.types.Array
        The type of the array.
    value : llvmlite.ir.Value
        The array.
    """
    return context.make_array(kind)(context, builder, value)


def unpack_tuple(builder: Any, value: Any) -> list[Any]:
    """Return the elements of a tuple of numbers, given as an LLVM value."""
    return [builder.extract_value(value, k) for k in range(value.type.count)]


def declare_function(builder: Any, name: str, function_type: Any) -> Any:
    """Return the LLVM function of this name, after declaring it if necessary."""
    return builder.module.globals.get(name) or ir.Function(builder.module, function_type, name)


def _vector(kind: LanesType) -> Any:
    return ir.VectorType(_ELEMENTS[kind.dtype], kind.width)


def _broadcast(context: Any, builder: Any, value: Any, given: Any, kind: LanesType) -> Any:
    """Broadcast a number to all lanes of a vector; return a vector unchanged.

    Parameters
    ----------
    context : object
        numba's target context.
    builder : object
        llvmlite's builder.
    value : llvmlite.ir.Value
        The number or vector.
    given : numba.types.Type
        The type of `value`.
    kind : LanesType
        The type of the result.
    """
    if isinstance(given, LanesType):
        return value
    value = context.cast(builder, value, given, kind.dtype)
    undefined = ir.Constant(_vector(kind), ir.Undefined)
    first, index = (
        builder.insert_element(undefined, value, ir.IntType(32)(0)),
        ir.VectorType(ir.IntType(32), kind.width),
    )
    return builder.shuffle_vector(first, undefined, ir.Constant(index, [0] * kind.width))


def _broadcast_all(context: Any, builder: Any, args: Any, given: Any) -> list[Any]:
    kind = next(t for t in given if isinstance(t, LanesType))
    return [_broadcast(context, builder, value, t, kind) for value, t in zip(args, given, strict=True)]


# --- operators --------------------------------------------------------------------------------------

_FLOATS, _BITS, _TRUTHS = (types.float64, types.float32), (types.int64, types.int32), (types.boolean,)
_ARITHMETIC = {
    operator.add: {_FLOATS: "fadd", _BITS: "add"},
    operator.iadd: {_FLOATS: "fadd", _BITS: "add"},
    operator.sub: {_FLOATS: "fsub", _BITS: "sub"},
    operator.mul: {_FLOATS: "fmul"},
    operator.truediv: {_FLOATS: "fdiv"},
    operator.and_: {_BITS: "and_", _TRUTHS: "and_"},
    operator.or_: {_BITS: "or_", _TRUTHS: "or_"},
    operator.lshift: {_BITS: "shl"},
    operator.rshift: {_BITS: "ashr"},
}
_COMPARISONS = {operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=", operator.eq: "=="}


def _register(function: Any, result: Any, lower: Any) -> None:
    """Let jitted code apply a binary operator to vectors, or to a vector and a number.

    Parameters
    ----------
    function : callable
        The operator, such as `operator.add`.
    result : callable
        Maps the `LanesType` of the vector to the type of the result, or to None if vectors of this type do not support
        the operator.
    lower : callable
        Called as ``lower(context, builder, sig, args)``; generates the code and returns the LLVM value of the result.
    """

    @type_callable(function)
    def _typed(context):  # type: ignore[no-untyped-def]
        def typer(left, right):  # type: ignore[no-untyped-def]
            kinds = {t for t in (left, right) if isinstance(t, LanesType)}
            numbers = all(isinstance(t, types.Number | types.Boolean) for t in (left, right) if t not in kinds)
            made = result(*kinds) if len(kinds) == 1 and numbers else None
            return None if made is None else made(left, right)

        return typer

    for operands in ((LanesType, LanesType), (LanesType, types.Any), (types.Any, LanesType)):
        lower_builtin(function, *operands)(lower)


def _register_arithmetic(function: Any, named: dict[tuple[types.Type, ...], str]) -> None:
    names = {dtype: name for dtypes, name in named.items() for dtype in dtypes}

    def lower(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return getattr(builder, names[sig.return_type.dtype])(*_broadcast_all(context, builder, args, sig.args))

    _register(function, lambda kind: kind if kind.dtype in names else None, lower)


def _register_comparison(function: Any, symbol: str) -> None:
    def lower(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return builder.fcmp_ordered(symbol, *_broadcast_all(context, builder, args, sig.args))

    _register(function, _MASKS.get, lower)


for _operator, _names in _ARITHMETIC.items():
    _register_arithmetic(_operator, _names)
for _operator, _symbol in _COMPARISONS.items():
    _register_comparison(_operator, _symbol)


def _call(builder: Any, name: str, x: Any) -> Any:
    kind = f"v{x.type.count}f{32 if x.type.element == ir.FloatType() else 64}"
    function = declare_function(builder, f"{name}.{kind}", ir.FunctionType(x.type, [x.type]))
    return builder.call(function, [x])


def _register_unary(function: Any, dtypes: tuple[types.Type, ...], lower: Any) -> None:
    @type_callable(function)
    def _typed(context):  # type: ignore[no-untyped-def]
        return lambda x: x(x) if isinstance(x, LanesType) and x.dtype in dtypes else None

    lower_builtin(function, LanesType)(lambda context, builder, sig, args: lower(builder, args[0]))


_register_unary(abs, _FLOATS, lambda builder, x: _call(builder, "llvm.fabs", x))
_register_unary(intrinsics.square_root, _FLOATS, lambda builder, x: _call(builder, "llvm.sqrt", x))
_register_unary(operator.neg, _FLOATS, lambda builder, x: builder.fneg(x))
_register_unary(operator.invert, _TRUTHS, lambda builder, x: builder.not_(x))


# --- functions --------------------------------------------------------------------------------------


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    array = unpack_array(context, builder, array_type, array)
    strides, index = unpack_tuple(builder, array.strides), unpack_tuple(builder, index)
    address = builder.bitcast(array.data, ir.IntType(8).as_pointer())
    for position, stride in zip(index, strides, strict=True):
        address = builder.gep(address, [builder.mul(position, stride)])
    return builder.bitcast(address, _vector(_LANES_OF[array_type.dtype]).as_pointer())


@register_lowering(intrinsics.load, lambda array, index: _LANES_OF.get(getattr(array, "dtype", None)))
def _load(context, builder, sig, args):  # type: ignore[no-untyped-def]
    return builder.load(_address(context, builder, sig.args[0], *args), align=sig.return_type.dtype.bitwidth // 8)


@register_lowering(
    intrinsics.store, lambda array, index, lanes: types.none if lanes is _LANES_OF.get(array.dtype) else None
)
def _store(context, builder, sig, args):  # type: ignore[no-untyped-def]
    align = sig.args[2].dtype.bitwidth // 8
    builder.store(args[2], _address(context, builder, sig.args[0], *args[:2]), align=align)
    return context.get_dummy_value()


@register_lowering(intrinsics.lane_width, lambda array: types.int64)
def _lower_lane_width(context, builder, sig, args):  # type: ignore[no-untyped-def]
    return ir.IntType(64)(_LANES_OF[sig.args[0].dtype].width)


@register_lowering(intrinsics.in_all_lanes, lambda x: FLOAT_LANES)
@register_lowering(intrinsics.broadcast_like, lambda lanes, x: lanes)
def _in_lanes(context, builder, sig, args):  # type: ignore[no-untyped-def]
    return _broadcast(context, builder, args[-1], sig.args[-1], sig.return_type)


def _type_of_choice(mask, yes, no):  # type: ignore[no-untyped-def]
    kinds = {t for t in (yes, no) if isinstance(t, LanesType)} or {FLOAT_LANES}
    kind = kinds.pop()
    return kind if not kinds and mask is _MASKS.get(kind) else None


@register_lowering(intrinsics.select, _type_of_choice)
def _select(context, builder, sig, args):  # type: ignore[no-untyped-def]
    sides = (_broadcast(context, builder, args[k], sig.args[k], sig.return_type) for k in (1, 2))
    return builder.select(args[0], *sides)


@register_lowering(intrinsics.first_lanes, lambda n: MASK_LANES)
def _first_lanes(context, builder, sig, args):  # type: ignore[no-untyped-def]
    numbers = ir.Constant(_vector(BIT_LANES), list(range(LANES)))
    return builder.icmp_signed("<", numbers, _broadcast(context, builder, args[0], sig.args[0], BIT_LANES))


@register_lowering(intrinsics.any_lane, lambda mask: types.boolean if mask in _MASKS.values() else None)
def _any_lane(context, builder, sig, args):  # type: ignore[no-untyped-def]
    width = ir.IntType(sig.args[0].width)
    return builder.icmp_unsigned("!=", builder.bitcast(args[0], width), width(0))
