"""Loops of transforms are vectorised by LLVM; scalar loops would take two to five times as long."""

from __future__ import annotations

import re

import pytest

from powerkern._jit import COLUMN, JIT_DISABLED, entry
from powerkern._jit.cpus import this_cpu
from powerkern.kernels.transforms import matrix

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")

#: Number of loops that prepare constants.
CONSTANTS = 1
#: Number of loops of a transform.
TRANSFORM = 2
#: Fewest floating-point operations in these loops; loops with fewer only copy and compare.
FEWEST = 16


def optimised(entry):
    """Return LLVM's final code of an entry, recompiled because cached code cannot be inspected."""
    from powerkern._jit import object_code  # not where numba is switched off

    machine = object_code.target_machine(this_cpu())
    return str(object_code.compile_module(entry.__wrapped__, entry.interface(), "entry", machine))


def straight_loops(ir):
    """Return the basic blocks that end with a jump to themselves, as vectorised loops do."""
    for block in re.split(r'\n(?=[\w.$"-]+:)', ir):
        name = re.match(r'"?([\w.$-]+)"?:', block)
        if name and re.search(rf'^ +br .*label %"?{re.escape(name[1])}"?[,\s]', block + "\n", re.M):
            yield block


def operations(block, width):
    """Return the number of arithmetic operations and calls in a block whose operands are vectors of `width` float64."""
    return len(re.findall(rf"(?:= f(?:add|sub|mul|div)\b|= .*call\b)[^<@\n]*<{width} x double>", block))


@pytest.fixture(scope="module")
def width():
    """Return the number of float64 in the widest vectors."""

    @entry((COLUMN,))
    def double(x):
        for i in range(x.size):
            x[i] = 2.0 * x[i]

    widest = max(map(int, re.findall(r"fmul.* <(\d+) x double>", optimised(double))))
    if widest < 4:
        pytest.skip("without fused multiply-add (SSE2) some loops call the C library for it, and are not vectorised")
    return widest


def vectorised(transform, width):
    """Return the number of loops in `transform` that compute with vectors of `width` float64.

    A loop counts if it has at least FEWEST operations on such vectors.
    """
    return sum(operations(block, width) >= FEWEST for block in straight_loops(optimised(transform)))


@pytest.mark.slow
@pytest.mark.parametrize("family,direction", matrix.APPLY)
def test_loops_of_float64_are_vectorised(family, direction, width):
    assert vectorised(matrix.APPLY[family, direction], width) >= CONSTANTS + TRANSFORM


@pytest.mark.slow
@pytest.mark.parametrize("family,direction", matrix.APPLY_SINGLE)
def test_loops_of_float32_are_vectorised(family, direction, width):
    """Loops over float32 compute in float64."""
    assert vectorised(matrix.APPLY_SINGLE[family, direction], width) >= CONSTANTS + TRANSFORM
