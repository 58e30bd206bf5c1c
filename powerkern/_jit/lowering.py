"""How kernels are written down for LLVM: with fewer instructions than numba writes.

numba clears variables where they are not used any more, and notes for each statement where it is and how it reads.
Those that more than one block uses it keeps in memory, and so does this: as values they cost less to compile, but LLVM
then left loops of Yeo-Johnson's raw transforms without vectors (five times the time). What is passed to a function is
taken apart into numbers, which the function puts together again: hundreds, for a tuple of scratch arrays, most of which
it does not use. All of this is made in Python, printed, read and simplified by LLVM.
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
