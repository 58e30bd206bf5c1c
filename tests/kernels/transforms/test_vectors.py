"""The loops of transforms have vectors: one that loses them takes two to five times as long, in every shape alike."""

from __future__ import annotations

import re

import numba
import pytest

from powerkern._jit import JIT_DISABLED, widest_vectors
from powerkern._jit.settings import ENTRY_OPTIONS
from powerkern.kernels.transforms import matrix
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")

#: Loops in which constants are made.
CONSTANTS, CONSTANTS_SINGLE = 1, {BOX_COX: 3, YEO_JOHNSON: 5}
#: Loops of a transform.
TRANSFORM = 2
#: Floating-point operations that such loops have at least; others only copy and compare.
FEWEST = 16


def optimised(function, signature):
    """LLVM's code in the end; code from the disk cannot be looked at."""
    dispatcher = numba.njit(**ENTRY_OPTIONS)(function)
    dispatcher.compile(signature)
    (ir,) = dispatcher.inspect_llvm().values()
    return ir


def straight_loops(ir):
    """The blocks that end with a jump to themselves, as vectorised loops do."""
    for block in re.split(r'\n(?=[\w.$"-]+:)', ir):
        name = re.match(r'"?([\w.$-]+)"?:', block)
        if name and re.search(rf'^ +br .*label %"?{re.escape(name[1])}"?[,\s]', block + "\n", re.M):
            yield block


def operations(block, width):
    """How many operations on this many float64 at once a block has."""
    return len(re.findall(rf"(?:= f(?:add|sub|mul|div)\b|= .*call\b)[^<@\n]*<{width} x double>", block))


@pytest.fixture(scope="module")
def width():
    """How many float64 the widest vectors have."""

    def double(x):
        widest_vectors()
        for i in range(x.size):
            x[i] = 2.0 * x[i]

    widest = max(map(int, re.findall(r"fmul.* <(\d+) x double>", optimised(double, "void(float64[::1])"))))
    if widest < 4:
        pytest.skip("without fused multiply-add (SSE2) some loops call the C library for it, and are not vectorised")
    return widest


def vectorised(entry, width):
    """How many loops that compute work on vectors."""
    ir = optimised(entry.__wrapped__, entry._signature)
    return sum(operations(block, width) >= FEWEST for block in straight_loops(ir))


@pytest.mark.slow
@pytest.mark.parametrize("family,direction", matrix.APPLY)
def test_loops_of_float64(family, direction, width):
    assert vectorised(matrix.APPLY[family, direction], width) >= CONSTANTS + TRANSFORM


@pytest.mark.slow
@pytest.mark.parametrize("family,direction", matrix.APPLY_SINGLE)
def test_loops_of_float32(family, direction, width):
    """They compute in float64."""
    expected = CONSTANTS_SINGLE[family] + TRANSFORM
    assert vectorised(matrix.APPLY_SINGLE[family, direction], width) >= expected
