"""Lower the scalar and memory functions of `intrinsics` to LLVM instructions, for jitted code."""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import ir
from numba import types

from powerkern._jit import intrinsics
from powerkern._jit.intrinsics import LANES
from powerkern._jit.llvm_lanes import (
    BIT32_LANES,
    BIT_LANES,
    FLOAT32_LANES,
    FLOAT_LANES,
    declare_function,
    register_lowering,
    unpack_array,
    unpack_tuple,
)


@register_lowering(intrinsics.bits_of, lambda x: BIT_LANES(x) if x is FLOAT_LANES else types.int64(types.float64))
@register_lowering(
    intrinsics.float_of, lambda bits: FLOAT_LANES(bits) if bits is BIT_LANES else types.float64(types.int64)
)
@register_lowering(intrinsics.bits32_of, lambda x: BIT32_LANES(x) if x is FLOAT32_LANES else types.int32(types.float32))
@register_lowering(
    intrinsics.float32_of, lambda bits: FLOAT32_LANES(bits) if bits is BIT32_LANES else types.float32(types.int32)
)
def _recast(context, builder, signature, args):  # type: ignore[no-untyped-def]
    return builder.bitcast(args[0], context.get_value_type(signature.return_type))


@register_lowering(intrinsics.fma, lambda a, b, c: types.float64(types.float64, types.float64, types.float64))
def _fma(context, builder, signature, args):  # type: ignore[no-untyped-def]
    return builder.fma(*args)


@register_lowering(intrinsics.prefetch, lambda array, index: types.none(array, types.UniTuple(types.intp, array.ndim)))
def _prefetch(context, builder, signature, args):  # type: ignore[no-untyped-def]
    array = unpack_array(context, builder, signature.args[0], args[0])
    strides, index = unpack_tuple(builder, array.strides), unpack_tuple(builder, args[1])
    offset = functools.reduce(builder.add, map(builder.mul, index, strides))
    pointer, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
    address = builder.gep(builder.bitcast(array.data, pointer), [offset])
    function_type = ir.FunctionType(ir.VoidType(), [pointer, flag, flag, flag])
    builder.call(
        declare_function(builder, "llvm.prefetch.p0", function_type), [address, flag(0), flag(3), flag(1)]
    )  # read access, data, first-level cache
    return context.get_dummy_value()


def _unpack_vector(context: Any, builder: Any, array_type: Any, array: Any) -> tuple[Any, Any]:
    """Return the address of an array's data, and the LLVM type of a vector of eight of its elements."""
    kind = ir.VectorType(context.get_data_type(array_type.dtype), LANES)
    return unpack_array(context, builder, array_type, array).data, kind


def _store_eight(builder: Any, vector: Any, data: Any, place: Any) -> None:
    address = builder.bitcast(builder.gep(data, [place]), vector.type.as_pointer())
    builder.store(vector, address).align = 4


_NUMBER = types.int64


@register_lowering(
    intrinsics.pack_eight, lambda x, first, within, out, place: types.none(x, _NUMBER, _NUMBER, out, _NUMBER)
)
def _pack_eight(context, builder, signature, args):  # type: ignore[no-untyped-def]
    (x, kind), (out, _) = (_unpack_vector(context, builder, signature.args[k], args[k]) for k in (0, 3))
    vector, index = ir.Constant(kind, ir.Undefined), args[1]
    for k in range(LANES):
        vector = builder.insert_element(vector, builder.load(builder.gep(x, [index])), ir.IntType(32)(k))
        index = builder.add(index, args[2])
    _store_eight(builder, vector, out, args[4])
    return context.get_dummy_value()


@register_lowering(
    intrinsics.add_powers, lambda sums, row, t, weight: types.none(sums, types.int64, types.float64, types.float64)
)
def _add_powers(context, builder, signature, args):  # type: ignore[no-untyped-def]
    index, eight = ir.IntType(32), ir.VectorType(ir.DoubleType(), 8)
    array = unpack_array(context, builder, signature.args[0], args[0])
    first_of_eight = ir.Constant(ir.VectorType(index, 8), [0] * 8)
    mask = [ir.Constant(ir.VectorType(ir.IntType(1), 8), [k >> bit & 1 for k in range(8)]) for bit in range(3)]
    one, undefined = ir.Constant(eight, [1.0] * 8), ir.Constant(eight, ir.Undefined)
    t, weight = args[2:]
    square = builder.fmul(t, t)
    t, square, weight, fourth = (
        builder.shuffle_vector(builder.insert_element(undefined, x, index(0)), undefined, first_of_eight)
        for x in (t, square, weight, builder.fmul(builder.fmul(square, square), weight))
    )
    powers = builder.fmul(builder.select(mask[0], t, one), builder.select(mask[1], square, one))
    powers = builder.fmul(powers, builder.select(mask[2], fourth, weight))
    target = builder.gep(array.data, [builder.shl(args[1], ir.IntType(64)(3))])
    target = builder.bitcast(target, eight.as_pointer())
    before = builder.load(target)
    before.align = 8
    builder.store(builder.fadd(before, powers), target).align = 8
    return context.get_dummy_value()


@register_lowering(intrinsics.widest_vectors, lambda: types.none())
def _widest_vectors(context, builder, signature, args):  # type: ignore[no-untyped-def]
    # llvmlite's whitelist has no string attributes; bypass it, since the printed IR is valid LLVM
    set.add(builder.function.attributes, '"prefer-vector-width"="512"')
    return context.get_dummy_value()


def _allocate(dtype: Any) -> Any:
    def typed(shape: Any) -> Any:
        if not isinstance(shape, types.BaseTuple) or not all(isinstance(n, types.Integer) for n in shape):
            return None
        return types.Array(dtype, len(shape), "C")(types.UniTuple(types.intp, len(shape)))

    return typed


@register_lowering(intrinsics.allocated, _allocate(types.float64))
@register_lowering(intrinsics.allocated_integers, _allocate(types.int64))
def _allocated(context, builder, signature, args):  # type: ignore[no-untyped-def]
    """Generate a call of malloc for an array that begins on a cache line.

    The address that malloc returned is stored in the word before the first value, for `_release`.
    """
    integer, pointer = ir.IntType(64), ir.IntType(8).as_pointer()
    strides: list[Any] = []
    sizes, size = unpack_tuple(builder, args[0]), integer(8)
    for n in reversed(sizes):
        strides, size = [size, *strides], builder.mul(size, n)
    malloc = declare_function(builder, "malloc", ir.FunctionType(pointer, [integer]))
    given = builder.call(malloc, [builder.add(size, integer(72))])
    beyond = builder.and_(builder.sub(integer(-8), builder.ptrtoint(given, integer)), integer(63))
    builder.store(given, builder.bitcast(builder.gep(given, [beyond]), pointer.as_pointer()))
    array = context.make_array(signature.return_type)(context, builder)
    array.data = builder.bitcast(builder.gep(given, [builder.add(beyond, integer(8))]), array.data.type)
    array.itemsize, array.nitems = integer(8), builder.sdiv(size, integer(8))
    array.meminfo, array.parent = (ir.Constant(x.type, None) for x in (array.meminfo, array.parent))
    array.shape, array.strides = (_build_tuple(builder, numbers) for numbers in (sizes, strides))
    return array._getvalue()


def _build_tuple(builder: Any, numbers: list[Any]) -> Any:
    value = ir.Constant(ir.ArrayType(numbers[0].type, len(numbers)), ir.Undefined)
    for k, number in enumerate(numbers):
        value = builder.insert_value(value, number, k)
    return value


@register_lowering(intrinsics.release, lambda array: types.none(array) if isinstance(array, types.Array) else None)
def _release(context, builder, signature, args):  # type: ignore[no-untyped-def]
    integer, pointer = ir.IntType(64), ir.IntType(8).as_pointer()
    data = builder.bitcast(unpack_array(context, builder, signature.args[0], args[0]).data, pointer)
    given = builder.load(builder.bitcast(builder.gep(data, [integer(-8)]), pointer.as_pointer()))
    builder.call(declare_function(builder, "free", ir.FunctionType(ir.VoidType(), [pointer])), [given])
    return context.get_dummy_value()
