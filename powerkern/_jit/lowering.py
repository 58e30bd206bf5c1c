"""How kernels are written down for LLVM: with half of the instructions that numba writes, to the same machine code.

numba keeps in memory every variable that more than one block uses, clears it where it is not used any more, and notes
for each statement where it is and how it reads. What is passed to a function is taken apart into numbers, which the
function puts together again: hundreds, for a tuple of scratch arrays, most of which it does not use. All of this is
made in Python, printed, read and simplified by LLVM, which took a sixth of the time.
"""

from __future__ import annotations

import functools
from typing import Any

from llvmlite.ir import Instruction, IRBuilder
from llvmlite.ir.instructions import InsertValue
from numba.core import ir
from numba.core.lowering import Lower

#: Instructions that do nothing unless their result is used.
_WITHOUT_EFFECT = frozenset(("alloca", "extractvalue", "getelementptr", "icmp", "insertvalue", "load"))


@functools.cache
def is_counted(models: Any, kind: Any) -> bool:
    """Whether values of a type hold references to memory."""
    return models[kind].contains_nrt_meminfo()  # type: ignore[no-any-return]


class _Builder(IRBuilder):  # type: ignore[misc]
    """Writes instructions; what has been put into a tuple is not taken out of it, but taken as it is."""

    def extract_value(self, agg: Any, idx: Any, name: str = "") -> Any:
        """A part of a tuple."""
        path = list(idx) if isinstance(idx, list | tuple) else [idx]
        while isinstance(agg, InsertValue):
            other = list(agg.indices)
            if path[: len(other)] == other:
                agg, path = agg.value, path[len(other) :]
                if not path:
                    return agg
            elif other[: len(path)] == path:
                break
            else:
                agg = agg.aggregate
        return super().extract_value(agg, path, name)


class KernelLower(Lower):  # type: ignore[misc]
    """Writes LLVM's code of a kernel or an entry."""

    def setup_function(self, fndesc: Any) -> None:
        """Begin."""
        super().setup_function(fndesc)
        self.builder = _Builder(self.entry_block)
        self.call_helper = self.call_conv.init_call_helper(self.builder)

    def _find_singly_assigned_variable(self) -> None:
        """Which variables are values, not memory: assigned once, on every way to where they are used.

        Not those whose references are counted, unless one block has all: what is deleted twice must be cleared.
        """
        lifetime = self.func_ir.variable_lifetime
        where = _assigned_once(self.func_ir.blocks)
        for block, used in lifetime.usedefs.usemap.items():
            for name in used & where.keys():
                comes_before = where[name] < block and where[name] in lifetime.cfg.dominators()[block]
                if not comes_before or self._counts(self.typeof(name)):
                    del where[name]
        self._singly_assigned_vars = set(where)
        self._blk_local_varmap: dict[str, Any] = {}

    def lower_block(self, block: Any) -> None:
        """Statement by statement."""
        self.pre_block(block)
        for statement in block.body:
            self.loc = statement.loc
            self.lower_inst(statement)
        self.post_block(block)

    def lower_inst(self, inst: Any) -> None:
        """The statements that are most of all by themselves: numba writes each out as text, for its log."""
        if isinstance(inst, ir.Del):
            self.delvar(inst.value)
        elif isinstance(inst, ir.Assign) and not isinstance(inst.value, ir.Arg):
            name = inst.target.name
            self.storevar(self.lower_assign(self.typeof(name), inst), name)
        else:
            super().lower_inst(inst)

    def delvar(self, name: str) -> None:
        """Give a variable's references back, if it has any."""
        if self._counts(self.typeof(name)):
            super().delvar(name)

    def incref(self, typ: Any, val: Any) -> None:
        """Count a reference, if it is one."""
        if self._counts(typ):
            super().incref(typ, val)

    def decref(self, typ: Any, val: Any) -> None:
        """Count a reference less, if it is one."""
        if self._counts(typ):
            super().decref(typ, val)

    def _counts(self, kind: Any) -> bool:
        return self.context.enable_nrt and is_counted(self.context.data_model_manager, kind)


def _assigned_once(blocks: dict[int, Any]) -> dict[str, int]:
    """The variables that one statement assigns, and its block."""
    where: dict[str, int] = {}
    again = set()
    for number, block in blocks.items():
        for statement in block.find_insts(ir.Assign):
            name = statement.target.name
            if name in where:
                again.add(name)
            where[name] = number
    return {name: number for name, number in where.items() if name not in again}


def drop_unused(function: Any) -> None:
    """Take out what is computed in vain."""
    needed = {each for block in function.blocks for each in block.instructions if each.opname not in _WITHOUT_EFFECT}
    found = list(needed)
    while found:
        for operand in _operands(found.pop()):
            if isinstance(operand, Instruction) and operand not in needed:
                needed.add(operand)
                found.append(operand)
    for block in function.blocks:
        block.instructions[:] = [each for each in block.instructions if each in needed]


def _operands(instruction: Any) -> Any:
    if instruction.opname == "phi":
        return [value for value, _ in instruction.incomings]
    return (*instruction.operands, instruction.callee) if instruction.opname == "call" else instruction.operands
