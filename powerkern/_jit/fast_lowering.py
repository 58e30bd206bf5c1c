"""Save compile time with replacements for private parts of numba.

numba optimises every function separately, emits reference counts, and optimises the code again in every caller. LLVM
optimises an entry, or a user's function, as a whole, so its kernels need none of this. This module lowers each kernel
once, to a short LLVM function. Plain numba lowers a kernel again for each constant argument. The compiled code of both
gives the same results up to rounding.

Nothing depends on this file. If it cannot be imported, or if anything in it fails while an entry is compiled,
`numba_extension` logs the failure and lets plain numba compile the entry.
"""

from __future__ import annotations

from collections import defaultdict
from copy import copy
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any

import llvmlite.binding as llvm
from numba import core, types

from powerkern._jit.llvm_scalars import find_lowering, number_type
from powerkern._jit.llvm_text import join_texts, split_definitions


class _Text(core.codegen.JITCodeLibrary):  # type: ignore[misc]
    """A code library that holds its functions as LLVM text, neither optimised nor translated to machine code."""

    codegen: Any = SimpleNamespace(set_env=lambda *_: None)  # no machine code needs an environment
    get_pointer_to_function: Any = lambda *_: 0
    get_llvm_str: Any = lambda self: str(self._get_module_for_linking())
    add_ir_module: Any = lambda self, module: self.texts.append(split_definitions(module))
    texts: Any = cached_property(lambda _: [])
    finalize: Any = lambda _: None

    def _get_module_for_linking(self) -> Any:
        """Return a module with this code and everything it calls, directly or indirectly, each function once."""
        found: list[Any] = [self]
        for each in found:  # the loop appends to this list
            callees = each._linking_libraries if isinstance(each, _Text) else ()
            found.extend(dict.fromkeys(callee for callee in callees if callee not in found))
        texts = [text for each in found if isinstance(each, _Text) for text in each.texts]
        code = join_texts(str(self._codegen._create_empty_module(self.name)), texts)
        module = llvm.parse_assembly(core.cgutils.normalize_ir_text(code))
        for each in found:
            if not isinstance(each, _Text):
                module.link_in(each._get_module_for_linking(), preserve=True)
        return module


class _Lower(core.lowering.Lower):  # type: ignore[misc]
    """numba's lowering, changed to cache the lowering functions of operators.

    In code without reference counts, new variables are not initialised.
    """

    def lower_binop(self, kind: Any, expression: Any, operation: Any) -> Any:
        wanted, typing = self.fndesc.calltypes[expression], self.context.typing_context
        operands = [self._cast_var(*each) for each in zip((expression.lhs, expression.rhs), wanted.args, strict=True)]
        function = typing.resolve_value_type(operation)
        found = typing.resolve_function_type(function, wanted.args, {})
        result = self.context.get_function(function, found)(self.builder, operands)
        return self.context.cast(self.builder, result, wanted.return_type, kind)

    def alloca_lltype(self, name: str, kind: Any, datamodel: Any = None) -> Any:
        if self.context.enable_nrt:
            return super().alloca_lltype(name, kind, datamodel)
        with self.builder.goto_entry_block():
            return self.builder.alloca(kind)


class _Calls(core.callconv.CPUCallConv):  # type: ignore[misc]
    """A shorter calling convention: a callee that raises stores the exception directly where its caller expects it.

    The status code that a call returns is an odd number if and only if the call raised, so its lowest bit is tested.
    """

    def call_function(self, builder: Any, callee: Any, kind: Any, kinds: Any, args: Any, attrs: Any = None) -> Any:
        with builder.goto_entry_block():
            result = builder.alloca(self.get_return_type(kind).pointee)
        given = self._get_arg_packer(kinds).as_arguments(builder, args)
        code = builder.call(callee, [result, self._get_excinfo_argument(builder.function), *given], attrs=attrs or ())
        status = SimpleNamespace(code=code, is_error=builder.trunc(code, core.cgutils.bool_t))
        return status, self.context.get_returned_value(builder, kind, builder.load(result))

    def return_status_propagate(self, builder: Any, status: Any) -> None:
        builder.ret(status.code)


class _Target(core.cpu.CPUContext):  # type: ignore[misc]
    """numba's target with the shorter calling convention and a cache of lowering functions."""

    call_conv = property(_Calls)
    known: Any = cached_property(lambda _: {})

    def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Any:
        if (fn, sig) not in self.known:
            writer = find_lowering(getattr(fn, "typing_key", None), sig, self.enable_boundscheck)
            self.known[fn, sig] = partial(writer, self, sig) if writer else super().get_function(fn, sig, _firstcall)
        return self.known[fn, sig]

    def get_constant_generic(self, builder: Any, ty: Any, val: Any) -> Any:
        if isinstance(ty, types.Dispatcher):  # its address in this process would make the code uncacheable
            return self.get_dummy_value()
        return super().get_constant_generic(builder, ty, val)


class _Typing(core.typing.Context):  # type: ignore[misc]
    """numba's typing context with a cache of the result types of calls."""

    found: dict[Any, Any] = {}  # noqa: RUF012

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        if isinstance(func, str) or kws:  # an index, which may be a slice
            return super().resolve_function_type(func, args, kws)
        if isinstance(func, types.Dispatcher):
            args = [types.intp if isinstance(each, types.IntegerLiteral) else each for each in args]
        key = func, tuple(args)
        if key not in self.found:
            result = number_type(getattr(func, "typing_key", None), args, self.unify_types)
            self.found[key] = result(*args) if result else super().resolve_function_type(*key, kws)
        return self.found[key]


_Lowering: Any = type("_Lowering", (core.typed_passes.NativeLowering,), {"lowering_class": _Lower})


class _Compiler(core.compiler.CompilerBase):  # type: ignore[misc]
    """numba's compiler reduced to the passes that kernels need."""

    def _compile_core(self) -> Any:
        state, typed, untyped = self.state, core.typed_passes, core.untyped_passes
        state.library = _Text(state.targetctx.codegen(), state.func_id.func_qualname)
        state.targetctx.__class__ = _Target if state.flags.no_cfunc_wrapper else core.cpu.CPUContext  # C calls as usual
        state.typingctx = state.targetctx.typing_context = copy(state.typingctx)
        state.typingctx.__class__ = _Typing
        with core.compiler.ConfigStack().enter(state.flags.copy()):
            self._apply(untyped.TranslateByteCode, untyped.DeadBranchPrune)
            blocks = state.func_ir.blocks
            for rewrite in (kind(state) for kind in core.rewrites.rewrite_registry.rewrites["before-inference"]):
                for label in list(blocks):
                    while rewrite.match(state.func_ir, blocks[label], None, None):
                        blocks[label] = rewrite.apply()
            state.func_ir = core.ssa.reconstruct_ssa(state.func_ir)
            self._apply(typed.NopythonTypeInference)
            state.func_ir = typed.PreLowerStripPhis()._strip_phi_nodes(state.func_ir)
            state.targetctx.enable_nrt = type(self) is _Compiler
            self._apply(*[typed.IRLegalization] * state.targetctx.enable_nrt, _Lowering, typed.NoPythonBackend)
        return state.cr

    def _apply(self, *kinds: Any) -> None:
        for each in (kind() for kind in kinds):
            each.analysis = defaultdict(set)
            each.run_pass(self.state)


_EntryCompiler: Any = type("_EntryCompiler", (_Compiler,), {})


class Pipelines:
    """Compilers for kernels and entries: those of this module or, once `are_fast` is false, numba's own."""

    def __init__(self) -> None:
        self.are_fast = True

    def of_kernels(self, *args: Any) -> Any:
        """Return a compiler for kernels that are called from users' functions."""
        return (_Compiler if self.are_fast else core.compiler.Compiler)(*args)

    def of_entries(self, *args: Any) -> Any:
        """Return a compiler without reference counts for entries and their kernels, which allocate nothing."""
        return (_EntryCompiler if self.are_fast else core.compiler.Compiler)(*args)
