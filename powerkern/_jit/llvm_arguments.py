"""Generate LLVM code that reads arguments from the words packed by `interface`, and from NumPy's array objects.

A record with arrays is not unpacked: kernels pass on the address of its first word, and each field is read when it is
used.
"""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, lower_getattr_generic, models, register_model, type_callable

from powerkern._jit.interface import DATA, SHAPE, STRIDES, Array, Kind, Number, n_words

_WORD = ir.IntType(64)
_NUMBERS = {"int64": types.int64, "float64": types.float64, "bool": types.boolean}


class InMemory(types.NamedTuple):  # type: ignore[misc]
    """The numba type of a record with arrays, represented by the address of its first word."""

    def __init__(self, kind: Any) -> None:
        self.kinds = kind.fields
        super().__init__([numba_type(each) for each in kind.fields], kind.record)
        self.name: str = f"InMemory{kind.record.__qualname__}"


@register_model(InMemory)
class _InMemoryModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: InMemory) -> None:
        super().__init__(dmm, fe_type, _WORD.as_pointer())


@functools.cache
def numba_type(kind: Kind) -> Any:
    """Return numba's type for an argument of this kind."""
    if isinstance(kind, Number):
        return _NUMBERS[kind.dtype]
    if isinstance(kind, Array):
        return types.Array(getattr(types, kind.dtype), kind.ndim, "C" if kind.contiguous else "A")
    if kind.in_memory:
        return InMemory(kind)
    return types.BaseTuple.from_types([numba_type(each) for each in kind.fields], kind.record)


def make_reader(kind: Kind) -> Any:
    """Return a function with which jitted code reads an argument of this kind from the packed words."""

    def read(words: Any, place: int) -> Any:
        raise NotImplementedError

    @type_callable(read)
    def _typed(context):  # type: ignore[no-untyped-def]
        return lambda words, place: numba_type(kind)

    @lower_builtin(read, types.Any, types.Any)
    def _read(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return _argument(context, builder, kind, builder.gep(args[0], [args[1]]))

    return read


@lower_getattr_generic(InMemory)
def _field(context, builder, kind, value, name):  # type: ignore[no-untyped-def]
    k = kind.fields.index(name)
    place = sum(n_words(each) for each in kind.kinds[:k])
    return _argument(context, builder, kind.kinds[k], builder.gep(value, [_WORD(place)]))


def _argument(context: Any, builder: Any, kind: Kind, at: Any) -> Any:
    """Generate code that reads the argument whose words begin at the address `at`."""
    if isinstance(kind, Number):
        if kind.dtype == "float64":
            return builder.load(builder.bitcast(at, ir.DoubleType().as_pointer()))
        word = builder.load(at)
        return builder.icmp_signed("!=", word, _WORD(0)) if kind.dtype == "bool" else word
    if isinstance(kind, Array):
        return _array(context, builder, kind, at)
    if kind.in_memory:
        return at
    fields = []
    for each in kind.fields:
        fields.append(_argument(context, builder, each, at))
        at = builder.gep(at, [_WORD(n_words(each))])
    return context.make_tuple(builder, numba_type(kind), fields)


def _array(context: Any, builder: Any, kind: Array, at: Any) -> Any:
    """Generate code that reads an array; the word at the address `at` holds the address of the array object."""
    kept = numba_type(kind)
    array = context.make_array(kept)(context, builder)
    own = builder.load(builder.bitcast(at, _WORD.as_pointer().as_pointer()))

    def word(position: int, name: str) -> Any:
        return builder.load(builder.gep(own, [_WORD(position)]), name=name)

    def numbers(position: int, name: str) -> list[Any]:
        first = builder.inttoptr(word(position, name), _WORD.as_pointer())
        return [builder.load(builder.gep(first, [_WORD(k)])) for k in range(kind.ndim)]

    size = _WORD(kept.dtype.bitwidth // 8)
    shape = numbers(SHAPE, "shape")
    if kind.contiguous:
        strides = [size]
        for n in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], n))
    else:
        strides = numbers(STRIDES, "strides")
    array.data = builder.inttoptr(word(DATA, "data"), array.data.type)
    array.itemsize, array.nitems = size, functools.reduce(builder.mul, shape)
    array.shape, array.strides = (_tuple(builder, each) for each in (shape, strides))
    array.meminfo, array.parent = (ir.Constant(x.type, None) for x in (array.meminfo, array.parent))
    return array._getvalue()


def _tuple(builder: Any, numbers: list[Any]) -> Any:
    value = ir.Constant(ir.ArrayType(_WORD, len(numbers)), ir.Undefined)
    for k, number in enumerate(numbers):
        value = builder.insert_value(value, number, k)
    return value
