"""Code as it is written down for LLVM: no more than is needed, and what Python would do."""

from __future__ import annotations

import math
from typing import NamedTuple

import llvmlite.ir as llvm
import numba
import numpy as np
import pytest

from powerkern._jit import JIT_DISABLED, compiler, kernel
from powerkern._jit.lowering import _Builder, drop_unused

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")


class Pair(NamedTuple):
    first: float
    last: float


class Nest(NamedTuple):
    pair: Pair
    middle: float


@pytest.fixture
def written(monkeypatch):
    """The code of each kernel by its name, as LLVM gets it."""
    codes, whole = {}, compiler.counting

    def noted(module):
        codes[module.name.split("$")[0].split(".")[-1]] = str(module)
        return whole(module)

    monkeypatch.setattr(compiler, "counting", noted)
    return codes


def test_a_part_of_a_tuple_is_taken_as_it_was_passed(written):
    @kernel
    def last_of(nest):
        return nest.pair.last

    @kernel
    def through(nest):
        return last_of(nest) + last_of(Nest(nest.pair, 1.0))

    nest = Nest(Pair(2.0, 3.0), -2.0)
    assert numba.njit(lambda nest: through(nest))(nest) == 6.0
    for name in ("last_of", "through"):
        assert "extractvalue" not in written[name]
        assert "insertvalue" not in written[name]


@pytest.mark.parametrize("kind", [tuple, list])
def test_a_part_of_a_part_is_found_however_it_was_put_there(kind):
    real = llvm.DoubleType()
    function = _function(real)
    nest = llvm.LiteralStructType((llvm.LiteralStructType((real, real)), real))
    builder = _Builder(function.append_basic_block())
    made = builder.insert_value(llvm.Constant(nest, llvm.Undefined), function.args[0], kind((0, 1)))
    made = builder.insert_value(made, real(2.0), kind((1,)))
    assert builder.extract_value(made, (0, 1)) is function.args[0]
    assert builder.extract_value(made, 1) == real(2.0)
    assert builder.extract_value(made, 0).aggregate is made.aggregate


@kernel
def perhaps_assigned(x):
    for i in range(x.size):
        if x[i] > 0.0:
            found = x[i]
    if x[0] > 0.0:
        return found
    return -1.0


@kernel
def swapped(x):
    a, b = 0.0, 1.0
    for i in range(x.size):
        a, b = b, a + x[i]
    return a - 2.0 * b


@kernel
def last_of_loops(x):
    total, last = 0.0, 0.0
    for i in range(x.size):
        row = x[i:]
        for j in range(row.size):
            last = row[j] * (i + 1)
            if last < 0.0:
                break
            total += last
        while total > 3.0:
            total -= last + 4.0
    return total + last


@kernel
def parts(x):
    """Parts of an array, one of which dies in a loop and one at its end."""
    rest, total = x, 0.0
    while rest.size > 1:
        half = rest[: rest.size // 2]
        rest = rest[1:] if half[0] < rest[-1] else half
        total += half[half.size - 1]
    return total + rest[0]


@pytest.mark.parametrize("function", [perhaps_assigned, swapped, last_of_loops, parts])
def test_variables_are_those_of_python(function):
    compiled, rng = numba.njit(lambda x: function(x)), np.random.default_rng(0)
    for n in (1, 2, 3, 8):
        for x in (rng.normal(size=n), np.abs(rng.normal(size=n)), np.arange(1.0, n + 1)):
            assert math.isclose(compiled(x), function(x), rel_tol=1e-14), x


def _function(result):
    module = llvm.Module()
    kind = llvm.FunctionType(result, (llvm.DoubleType(), llvm.IntType(1)))
    return llvm.Function(module, kind, "f")


def test_what_is_used_by_way_of_something_else_stays():
    real = llvm.DoubleType()
    function = _function(real)
    x, which = function.args
    entry, yes, end = (function.append_basic_block(name) for name in ("entry", "yes", "end"))
    builder = llvm.IRBuilder(entry)
    slot, unused = builder.alloca(real), builder.alloca(real)
    builder.store(x, slot)
    wasted = builder.load(builder.gep(unused, [llvm.IntType(32)(0)]))
    pair = builder.insert_value(llvm.Constant(llvm.LiteralStructType((real, real)), llvm.Undefined), x, 0)
    pointer = builder.load(builder.inttoptr(llvm.IntType(64)(64), kind_of(function)))
    builder.cbranch(which, yes, end)
    builder = llvm.IRBuilder(yes)
    called = builder.call(pointer, [builder.load(slot), which])
    builder.branch(end)
    builder = llvm.IRBuilder(end)
    chosen = builder.phi(real)
    first = llvm.IRBuilder(entry)
    first.position_before(entry.terminator)
    chosen.add_incoming(first.extract_value(pair, 0), entry)
    chosen.add_incoming(called, yes)
    builder.ret(chosen)
    before = sum(len(block.instructions) for block in function.blocks)
    drop_unused(function)
    after = [each for block in function.blocks for each in block.instructions]
    assert before - len(after) == 3
    assert not {wasted, unused} & set(after)


def kind_of(function):
    """Where a pointer to a function like this one is."""
    return function.type.as_pointer()
