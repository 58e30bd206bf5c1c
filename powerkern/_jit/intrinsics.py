"""What plain numba lacks: bit casts, fused multiply-add, prefetching, vectors of a chosen width, atomic counters.

Each is a plain Python function with a twin in LLVM's terms that jitted code calls in its place.
"""

from __future__ import annotations

import functools
import math
import struct
import threading
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.np.arrayobj import make_array

from powerkern._jit.builtins import lowered
from powerkern._jit.lanes import BIT32_LANES, BIT_LANES, FLOAT32_LANES, FLOAT_LANES, LANES
from powerkern._jit.vectors import prefer_widest_vectors

A = TypeVar("A", bound=npt.NDArray[Any])
Counts = npt.NDArray[np.int64]


def bits_of(x: float) -> int:
    """The bit pattern of a float64, as int64; of each of a vector's lanes."""
    if isinstance(x, np.ndarray):  # type: ignore[unreachable]
        return x.view(np.int64)  # type: ignore[unreachable]
    return struct.unpack("<q", struct.pack("<d", x))[0]  # type: ignore[no-any-return]


def float_of(bits: int) -> float:
    """The float64 with the given int64 bit pattern; one in each lane of a vector of them."""
    if isinstance(bits, np.ndarray):  # type: ignore[unreachable]
        return bits.view(np.float64)  # type: ignore[unreachable]
    return struct.unpack("<d", struct.pack("<Q", int(bits) & 0xFFFFFFFFFFFFFFFF))[0]  # type: ignore[no-any-return]


def bits32_of(x: np.float32) -> int:
    """The bit pattern of a float32, as int32; of each of a vector's lanes."""
    if isinstance(x, np.ndarray):  # type: ignore[unreachable]
        return x.view(np.int32)  # type: ignore[unreachable]
    return struct.unpack("<i", struct.pack("<f", x))[0]  # type: ignore[no-any-return]


def float32_of(bits: int) -> np.float32:
    """The float32 with the given int32 bit pattern; one in each lane of a vector of them."""
    if isinstance(bits, np.ndarray):  # type: ignore[unreachable]
        return bits.view(np.float32)  # type: ignore[unreachable]
    return np.uint32(int(bits) & 0xFFFFFFFF).view(np.float32)


def fma(a: float, b: float, c: float) -> float:
    """``a*b + c`` with one rounding."""
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def widest_vectors() -> None:
    """Ask LLVM for the CPU's widest vectors in the calling function (no effect in plain Python)."""


def prefetch(array: npt.NDArray[np.float64], index: tuple[int, ...]) -> None:
    """Ask the CPU to fetch ``array[index]``, which may lie beyond the array (no effect in plain Python)."""


def borrowed(array: A) -> A:
    """The same array, not counted as a reference: parts of it cost no atomic operations. The caller keeps it alive."""
    return array


def aligned(array: A) -> A:
    """The same array of float64, moved up to where a cache line begins: its last seven numbers must not be used."""
    return array


def pack_eight(x: npt.NDArray[Any], first: int, within: int, out: npt.NDArray[Any], place: int) -> None:
    """``out[place : place + 8]`` = eight values of x that are `within` apart, from ``x[first]`` on, as one vector."""
    out[place : place + LANES] = [x[first + k * within] for k in range(LANES)]


def pack_every_other(x: npt.NDArray[Any], first: int, out: npt.NDArray[Any], place: int) -> None:
    """`pack_eight` for values that are two apart: two vectors are read."""
    pack_eight(x, first, 2, out, place)


def add_powers(sums: npt.NDArray[np.float64], row: int, t: float, weight: float) -> None:
    """``sums[8 row + k] += weight t**k`` for k = 0..7, as one vector."""
    for k in range(8):
        sums[8 * row + k] += weight * t**k


#: In plain Python a counter is looked at and changed by one thread at a time.
_counting = threading.Lock()


def fetch(counts: Counts, index: int) -> int:
    """``counts[index]``, which other threads may change; all that they wrote before is seen afterwards."""
    return int(counts[index])


def fetch_add(counts: Counts, index: int, number: int) -> int:
    """``counts[index] += number`` at once, whatever other threads do; returns what it was."""
    with _counting:
        before = int(counts[index])
        counts[index] = before + number
    return before


def exchange(counts: Counts, index: int, number: int) -> int:
    """``counts[index] = number`` at once; returns what it was."""
    with _counting:
        before = int(counts[index])
        counts[index] = number
    return before


def pause() -> None:
    """Let the CPU rest for a moment in a loop that waits for another thread."""


# --- the twins: what jitted code has in their place ---------------------------------------------------


@lowered(bits_of, lambda context, x: BIT_LANES(x) if x is FLOAT_LANES else types.int64(types.float64))
@lowered(float_of, lambda context, bits: FLOAT_LANES(bits) if bits is BIT_LANES else types.float64(types.int64))
@lowered(bits32_of, lambda context, x: BIT32_LANES(x) if x is FLOAT32_LANES else types.int32(types.float32))
@lowered(float32_of, lambda context, bits: FLOAT32_LANES(bits) if bits is BIT32_LANES else types.float32(types.int32))
def _recast(context, builder, signature, args):  # type: ignore[no-untyped-def]
    return builder.bitcast(args[0], context.get_value_type(signature.return_type))


@lowered(fma, lambda context, *numbers: types.float64(types.float64, types.float64, types.float64))
def _fma(context, builder, signature, args):  # type: ignore[no-untyped-def]
    return builder.fma(*args)


@lowered(prefetch, lambda context, array, index: types.none(array, types.UniTuple(types.intp, array.ndim)))
def _prefetch(context, builder, signature, args):  # type: ignore[no-untyped-def]
    array = make_array(signature.args[0])(context, builder, args[0])
    strides, index = cgutils.unpack_tuple(builder, array.strides), cgutils.unpack_tuple(builder, args[1])
    offset = functools.reduce(builder.add, map(builder.mul, index, strides))
    pointer, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
    address = builder.gep(builder.bitcast(array.data, pointer), [offset])
    function_type = ir.FunctionType(ir.VoidType(), [pointer, flag, flag, flag])
    function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
    builder.call(function, [address, flag(0), flag(3), flag(1)])  # data, to be read, into the first-level cache
    return context.get_dummy_value()


@lowered(borrowed, lambda context, array: array(array))
def _borrowed(context, builder, signature, args):  # type: ignore[no-untyped-def]
    array = make_array(signature.args[0])(context, builder, args[0])
    array.meminfo, array.parent = (cgutils.get_null_value(x.type) for x in (array.meminfo, array.parent))
    return array._getvalue()


def _values_of(context: Any, builder: Any, array_type: Any, array: Any) -> tuple[Any, Any]:
    """Where the values of an array begin, and the type of a vector of eight."""
    kind = ir.VectorType(context.get_data_type(array_type.dtype), LANES)
    return make_array(array_type)(context, builder, array).data, kind


def _store_eight(builder: Any, vector: Any, data: Any, place: Any) -> None:
    address = builder.bitcast(builder.gep(data, [place]), vector.type.as_pointer())
    builder.store(vector, address).align = 4


_NUMBER = types.int64


@lowered(pack_eight, lambda context, x, first, within, out, place: types.none(x, _NUMBER, _NUMBER, out, _NUMBER))
def _pack_eight(context, builder, signature, args):  # type: ignore[no-untyped-def]
    (x, kind), (out, _) = (_values_of(context, builder, signature.args[k], args[k]) for k in (0, 3))
    vector, index = ir.Constant(kind, ir.Undefined), args[1]
    for k in range(LANES):
        vector = builder.insert_element(vector, builder.load(builder.gep(x, [index])), ir.IntType(32)(k))
        index = builder.add(index, args[2])
    _store_eight(builder, vector, out, args[4])
    return context.get_dummy_value()


@lowered(pack_every_other, lambda context, x, first, out, place: types.none(x, _NUMBER, out, _NUMBER))
def _pack_every_other(context, builder, signature, args):  # type: ignore[no-untyped-def]
    (x, kind), (out, _) = (_values_of(context, builder, signature.args[k], args[k]) for k in (0, 2))
    halves = []
    for offset in (0, LANES - 1):  # one less than LANES: nothing beyond the last value is read
        index = builder.add(args[1], ir.IntType(64)(offset))
        halves.append(builder.load(builder.bitcast(builder.gep(x, [index]), kind.as_pointer())))
        halves[-1].align = 4
    order = [*range(0, LANES, 2), *range(LANES + 1, 2 * LANES, 2)]
    vector = builder.shuffle_vector(*halves, ir.Constant(ir.VectorType(ir.IntType(32), LANES), order))
    _store_eight(builder, vector, out, args[3])
    return context.get_dummy_value()


@lowered(add_powers, lambda context, sums, row, t, weight: types.none(sums, types.int64, types.float64, types.float64))
def _add_powers(context, builder, signature, args):  # type: ignore[no-untyped-def]
    index, eight = ir.IntType(32), ir.VectorType(ir.DoubleType(), 8)
    array = make_array(signature.args[0])(context, builder, args[0])
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


@lowered(widest_vectors, lambda context: types.none())
def _widest_vectors(context, builder, signature, args):  # type: ignore[no-untyped-def]
    prefer_widest_vectors(builder.function)
    return context.get_dummy_value()


@lowered(aligned, lambda context, array: array(array))
def _aligned(context, builder, signature, args):  # type: ignore[no-untyped-def]
    array, integer = make_array(signature.args[0])(context, builder, args[0]), ir.IntType(64)
    beyond = builder.neg(builder.ptrtoint(array.data, integer))
    numbers = builder.and_(builder.lshr(beyond, integer(3)), integer(LANES - 1))
    array.data = builder.gep(array.data, [numbers])
    return impl_ret_borrowed(context, builder, signature.return_type, array._getvalue())


@lowered(fetch, lambda context, counts, index: types.int64(counts, types.intp))
def _fetch(context, builder, signature, args):  # type: ignore[no-untyped-def]
    return builder.load_atomic(_place(context, builder, signature, args), "seq_cst", 8)


@lowered(fetch_add, lambda context, counts, index, number: types.int64(counts, types.intp, types.int64))
def _fetch_add(context, builder, signature, args):  # type: ignore[no-untyped-def]
    return builder.atomic_rmw("add", _place(context, builder, signature, args), args[2], "seq_cst")


@lowered(exchange, lambda context, counts, index, number: types.int64(counts, types.intp, types.int64))
def _exchange(context, builder, signature, args):  # type: ignore[no-untyped-def]
    return builder.atomic_rmw("xchg", _place(context, builder, signature, args), args[2], "seq_cst")


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """The address of ``args[0][args[1]]``."""
    return builder.gep(make_array(signature.args[0])(context, builder, args[0]).data, [args[1]])


#: What makes a CPU rest for some ten cycles, by architecture, and its argument.
_barrier = ("llvm.aarch64.isb", [ir.IntType(32)(15)])
_PAUSES = {"x86_64": ("llvm.x86.sse2.pause", []), "aarch64": _barrier, "arm64": _barrier}


@lowered(pause, lambda context: types.none())
def _pause(context, builder, signature, args):  # type: ignore[no-untyped-def]
    architecture = builder.module.triple.split("-")[0]
    if architecture in _PAUSES:
        name, numbers = _PAUSES[architecture]
        function_type = ir.FunctionType(ir.VoidType(), [number.type for number in numbers])
        builder.call(cgutils.get_or_insert_function(builder.module, function_type, name), numbers)
    return context.get_dummy_value()
