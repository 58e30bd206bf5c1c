"""Saves compile time by private parts of numba: tried on import, and left out where numba has changed.

numba optimises every function by itself and translates it to machine code, and does both again with all that its
caller has inlined; it counts references, deletes variables after their last use, and compiles a function for each
constant argument. Kernels run only inside entries, or users' functions, which LLVM optimises as a whole: they are
lowered once, to text. Without this file results and run time are the same.
"""

from __future__ import annotations

import collections
import operator
import re
from functools import cached_property
from types import MappingProxyType, SimpleNamespace
from typing import Any

import llvmlite.binding as llvm
from llvmlite.ir import Function
from numba.core import cgutils, ir, typed_passes, types, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.lowering import Lower
from numba.core.typing import Context


class _Text(JITCodeLibrary):  # type: ignore[misc]
    """Functions as text, neither optimised nor translated."""

    #: There is no machine code, and so no environment to set.
    codegen: Any = SimpleNamespace(set_env=lambda *_: None)
    get_pointer_to_function: Any = lambda *_: 0
    get_llvm_str: Any = lambda self: str(self._get_module_for_linking())
    #: Definitions, and declarations, by name.
    texts: Any = cached_property(lambda _: ({}, {}))

    def add_ir_module(self, ir_module: Any) -> None:
        for name, value in ir_module.globals.items():
            is_declared = isinstance(value, Function) and value.is_declaration
            if isinstance(value, Function) and not is_declared:
                value.linkage = "linkonce_odr"  # others may hold the same function
            # without notes of how likely branches are, by numbers that mean nothing in another module
            self.texts[is_declared][name] = re.sub(r", !\w+ !\d+", "", str(value))

    def finalize(self) -> None:
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """The code with all that it calls, directly or not, each once."""
        self._ensure_finalized()
        found: list[Any] = [self]
        for each in found:  # which grows meanwhile
            callees = each._linking_libraries if isinstance(each, _Text) else ()
            found.extend(dict.fromkeys(callee for callee in callees if callee not in found))
        texts = [each.texts for each in found if isinstance(each, _Text)]
        defined, declared = ({name: text for each in texts for name, text in each[k].items()} for k in (0, 1))
        code = [str(self._codegen._create_empty_module(self.name)), *defined.values()]
        code += [text for name, text in declared.items() if name not in defined]
        module = llvm.parse_assembly(cgutils.normalize_ir_text("\n".join(code)))
        for each in found:
            if not isinstance(each, _Text):
                module.link_in(each._get_module_for_linking(), preserve=True)
        return module


class _Lower(Lower):  # type: ignore[misc]
    """Writes a function down, without notes of where statements are, and without references if none are counted."""

    def lower_block(self, block: Any) -> None:
        for statement in block.body:
            self.loc = statement.loc
            if isinstance(statement, ir.Assign):
                name = statement.target.name
                self.storevar(self.lower_assign(self.typeof(name), statement), name)
            else:
                self.lower_inst(statement)

    def lower_binop(self, kind: Any, expression: Any, operation: Any) -> Any:
        if operation in (operator.pow, operator.ipow):  # some powers are known when compiled
            return super().lower_binop(kind, expression, operation)
        wanted = self.fndesc.calltypes[expression]
        operands = [self._cast_var(*each) for each in zip((expression.lhs, expression.rhs), wanted.args, strict=True)]
        function = self.context.typing_context.resolve_value_type(operation)
        found = _Typing(self.context.typing_context).resolve_function_type(function, wanted.args, {})
        result = self.context.get_function(function, found)(self.builder, operands)
        return self.context.cast(self.builder, result, wanted.return_type, kind)

    def storevar(self, value: Any, name: str, argidx: Any = None) -> None:
        if self.context.enable_nrt:
            super().storevar(value, name)
        elif name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))


class _Lowering(typed_passes.BaseNativeLowering):  # type: ignore[misc]
    _name, lowering_class = "powerkern_lowering", _Lower


class _Typing(Context):  # type: ignore[misc]
    """numba's typing context, with a memory for the types of calls."""

    found: collections.abc.MutableMapping[Any, Any] = {}  # noqa: RUF012

    def __init__(self, known: Any) -> None:
        self.__dict__ = known.__dict__

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        if isinstance(func, str) or kws:  # a position, which may be a slice
            return super().resolve_function_type(func, args, kws)
        if isinstance(func, types.Dispatcher):
            args = [types.intp if isinstance(each, types.IntegerLiteral) else each for each in args]
        key = func, tuple(args)
        if key not in self.found:
            self.found[key] = super().resolve_function_type(*key, kws)
        return self.found[key]


class _Compiler(CompilerBase):  # type: ignore[misc]
    """Compiles by the passes that kernels need; it is its own pipeline."""

    counting, pipeline_name = True, "powerkern"
    exec_times: Any = MappingProxyType({})
    define_pipelines: Any = lambda self: [self]

    def run(self, state: Any) -> None:
        state.library = _Text(state.targetctx.codegen(), state.func_id.func_qualname)
        state.typingctx = _Typing(state.typingctx)
        for each in _PASSES:
            if isinstance(each, _Lowering):
                state.targetctx.enable_nrt = self.counting
            if self.counting or not isinstance(each, typed_passes.IRLegalization):  # which deletes unused variables
                each.analysis = collections.defaultdict(set)  # passes keep nothing of what they work on
                each.run_pass(state)


class _EntryCompiler(_Compiler):
    counting = False


#: The passes for kernels, in their order.
_PASSES = [kind() for kind in (
    untyped_passes.TranslateByteCode, untyped_passes.FixupArgs, untyped_passes.RewriteSemanticConstants,
    untyped_passes.DeadBranchPrune, untyped_passes.GenericRewrites, untyped_passes.ReconstructSSA,
    typed_passes.NopythonTypeInference, typed_passes.PreLowerStripPhis, typed_passes.IRLegalization, _Lowering,
    typed_passes.NoPythonBackend,
)]  # fmt: skip
#: For functions of users, and for entries: these are given all their memory, and no references are counted.
OPTIONS, OPTIONS_OF_ENTRIES = {"pipeline_class": _Compiler}, {"pipeline_class": _EntryCompiler}
