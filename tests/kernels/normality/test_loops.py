"""Loops over long columns are vectorised by LLVM, without masked loads."""

from __future__ import annotations

import platform
import re

import pytest

from powerkern._jit import JIT_DISABLED
from powerkern._jit.cpus import Cpu
from powerkern.kernels.normality.ppcc import ppcc_objective_columns

#: Logs, transforms, departures, moments and correlations, of columns with equal weights or any.
LOOPS, FEWEST_OPERATIONS = 12, 8


@pytest.mark.slow
@pytest.mark.skipif(JIT_DISABLED or platform.machine() not in ("x86_64", "AMD64"), reason="not compiled for x86")
@pytest.mark.parametrize("cpu,width", [("x86-64-v3", 4), ("x86-64-v4", 8)])
def test_loops_of_the_objective(cpu, width):
    from powerkern._jit import object_code  # not where numba is switched off

    machine = object_code.target_machine(Cpu(cpu, ""))
    ir = str(
        object_code.compile_module(
            ppcc_objective_columns.__wrapped__, ppcc_objective_columns.interface(), "entry", machine
        )
    )
    assert "masked.load" not in ir  # of equal weights, which have no arrays: a fault that is suppressed takes 100 ns
    operation = rf"(?:= f(?:add|sub|mul|div)\b|= .*call\b)[^<@\n]*<{width} x double>"
    blocks = re.split(r'\n(?=[\w.$"-]+:)', ir)
    assert sum(len(re.findall(operation, block)) >= FEWEST_OPERATIONS for block in blocks if _repeats(block)) >= LOOPS


def _repeats(block):
    """Return whether a block ends with a jump to itself, as vectorised loops do."""
    name = re.match(r'"?([\w.$-]+)"?:', block)
    return name and re.search(rf'^ +br .*label %"?{re.escape(name[1])}"?[,\s]', block + "\n", re.M)
