"""Lower indexing, slicing, int, max and min to fewer LLVM instructions than numba does.

`fast_lowering` uses this module to save compile time. In addition, max and min of numba 0.63 prevent vectorisation.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir
from numba import types

from powerkern._jit.llvm_lanes import declare_function

#: A lowering function, which generates the code of an operation: called with numba's context, the signature, LLVM's
#: builder, the arguments, and the source location.
Writer = Callable[..., Any]
#: Positions in numba's structure for a one-dimensional array: number of items, data address, shape[0].
_SIZE, _DATA, _LENGTH = 2, 4, [5, 0]


def number_type(operation: Any, kinds: tuple[Any, ...], unified: Callable[..., Any]) -> Any:
    """Return the result type of an operation on numbers of these types, or None if this module does not lower it.

    `unified` is numba's function that finds a common type.
    """
    kinds = tuple(map(types.unliteral, kinds))
    if operation is int and isinstance(kinds[0], types.Integer | types.Boolean | types.Float):
        return kinds[0] if isinstance(kinds[0], types.Integer) else types.intp
    return unified(*kinds) if operation in (max, min) and all(map(_is_signed, kinds)) else None


def find_lowering(operation: Any, signature: Any, checks_bounds: bool) -> Writer | None:
    """Return a lowering function for an operation, or None if numba's own is to be used.

    For an element access the result is None if numba checks bounds.
    """
    if operation is int:
        return _converted
    if operation in (max, min) and all(map(_is_signed, signature.args)):
        return partial(_extreme, operation)
    if operation not in (operator.getitem, operator.setitem):
        return None
    kind, index = signature.args[:2]
    if not (isinstance(kind, types.Array) and kind.ndim == 1 and kind.layout == "C" and _is_signed(kind.dtype)):
        return None
    if isinstance(index, types.Integer):
        return None if checks_bounds else _element
    return _part if operation is operator.getitem and index is types.slice2_type else None


def _is_signed(kind: Any) -> bool:
    return isinstance(kind, types.Float) or (isinstance(kind, types.Integer) and kind.signed)


def _converted(context, signature, builder, args, _=None):  # type: ignore[no-untyped-def]
    return context.cast(builder, args[0], signature.args[0], signature.return_type)


def _extreme(operation, context, signature, builder, args, _=None):  # type: ignore[no-untyped-def]
    """Lower max or min to a separate LLVM function, so that more loops vectorise.

    The function compares each argument with the best one so far, as Python does, so that NaN is treated alike.

    Parameters
    ----------
    operation : callable
        ``max`` or ``min``.
    context, signature, builder, args, _
        As for any `Writer`.
    """
    kind = context.get_value_type(signature.return_type)
    name = f"{operation.__name__}.{len(args)}.{signature.return_type}"
    function = declare_function(builder, name, ir.FunctionType(kind, [kind] * len(args)))
    if not function.blocks:
        inner = ir.IRBuilder(function.append_basic_block())
        compared = inner.icmp_signed if isinstance(signature.return_type, types.Integer) else inner.fcmp_ordered
        found, *others = function.args
        for each in others:
            found = inner.select(compared(">" if operation is max else "<", each, found), each, found)
        inner.ret(found)
        function.attributes.add("alwaysinline")
    given = zip(args, signature.args, strict=True)
    return builder.call(function, [context.cast(builder, x, each, signature.return_type) for x, each in given])


def _element(context, signature, builder, args, _=None):  # type: ignore[no-untyped-def]
    """Lower ``array[index]`` or, given a third argument, ``array[index] = value`` (a `Writer`)."""
    array, place = args[0], context.cast(builder, args[1], signature.args[1], types.intp)
    if not isinstance(place, ir.Constant) or place.constant < 0:
        from_end = builder.add(place, builder.extract_value(array, _LENGTH))
        place = builder.select(builder.icmp_signed("<", place, place.type(0)), from_end, place)
    address = builder.gep(builder.extract_value(array, _DATA), [place], inbounds=True)
    if len(args) == 2:
        return builder.load(address)
    builder.store(context.cast(builder, args[2], signature.args[2], signature.args[0].dtype), address)
    return context.get_dummy_value()


def _part(context, signature, builder, args, _=None):  # type: ignore[no-untyped-def]
    """Lower ``array[start:stop]`` (a `Writer`)."""
    array, bounds = args
    n = builder.extract_value(array, _LENGTH)
    zero = n.type(0)

    def not_below_zero(x: Any, otherwise: Any) -> Any:
        return builder.select(builder.icmp_signed("<", x, zero), otherwise, x)

    ends = []
    for end in (builder.extract_value(bounds, k) for k in (0, 1)):
        end = not_below_zero(not_below_zero(end, builder.add(end, n)), zero)
        ends.append(builder.select(builder.icmp_signed(">", end, n), n, end))
    size = builder.sub(ends[1], ends[0])
    size = not_below_zero(size, zero)
    data = builder.gep(builder.extract_value(array, _DATA), [ends[0]])
    for value, place in ((data, _DATA), (size, _SIZE), (size, _LENGTH)):
        array = builder.insert_value(array, value, place)
    if context.enable_nrt:
        context.nrt.incref(builder, signature.return_type, array)
    return array
