"""What the compiler remembers of operators is what numba finds, for every pair of operands."""

from __future__ import annotations

import itertools
import operator

import pytest
from numba import types
from numba.core.errors import TypingError
from numba.core.registry import cpu_target
from numba.extending import models, overload, register_model

from powerkern._jit import JIT_DISABLED, contexts

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")

OPERATORS = operator.add, operator.truediv, operator.floordiv, operator.lshift, operator.lt, operator.pow, operator.and_
OPERANDS = (
    types.int64,
    types.float64,
    types.float32,
    types.boolean,
    types.literal(2),
    types.Omitted(2.0),
    types.UniTuple(types.float64, 2),
    types.none,
)


def found(context, function, args):
    try:
        return context.resolve_value_type(function).get_call_type(context, args, {})
    except TypingError:
        return TypingError


@pytest.mark.parametrize("function", OPERATORS)
def test_operators_give_what_numba_finds(function):
    cpu_target.target_context.refresh()
    for args in itertools.product(OPERANDS, repeat=2):
        expected = found(cpu_target.typing_context, function, args)
        for _ in range(2):  # looked for, and remembered
            assert found(contexts.typing_context(), function, args) == expected, args


def test_an_operator_that_is_taught_another_type_is_asked_again():
    """A user's extension comes after kernels have been compiled."""

    class Kind(types.Type):
        def __init__(self):
            super().__init__("KindOfATest")

    register_model(Kind)(models.OpaqueModel)
    kind = Kind()
    context = contexts.typing_context()
    assert found(context, operator.matmul, (kind, kind)) is TypingError

    @overload(operator.matmul)
    def _matmul(x, y):
        if isinstance(x, Kind):
            return lambda x, y: 1.0
        return None

    cpu_target.target_context.refresh()
    assert found(context, operator.matmul, (kind, kind)).return_type == types.float64


def test_sizes_are_llvms():
    target = contexts.target_context()
    for kind in (types.float64, types.int32, types.UniTuple(types.float64, 3)):
        known = target.get_value_type(kind)
        for _ in range(2):
            assert target.get_abi_sizeof(known) == cpu_target.target_context.get_abi_sizeof(known)
