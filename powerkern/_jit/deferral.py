"""Saves compile time by private parts of numba: tried on import, and left out where numba has changed.

numba optimises every function by itself, makes machine code of it, and does both again with all that its caller has
inlined. Kernels run only inside entries, or users' functions, which LLVM optimises as a whole: their own libraries
collect code, nothing more. The passes for closures, generators, ``with`` and parallel loops, of which kernels have
none, are left out. Without this file results and run time are the same.
"""

from __future__ import annotations

import functools
import types
from typing import Any

import llvmlite.binding as llvm
from numba.core import cgutils, typed_passes, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.ir_utils import build_definitions
from numba.core.rewrites import rewrite_registry
from numba.core.ssa import reconstruct_ssa
from numba.core.transforms import canonicalize_cfg


class _NoMachineCode:
    """The code generator of a kernel, to whose environment no machine code refers."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, *_: Any) -> None: ...


class _Collected(JITCodeLibrary):  # type: ignore[misc]
    """Code that is neither optimised nor translated."""

    @property
    def codegen(self) -> Any:
        return _NoMachineCode(self._codegen)

    def add_ir_module(self, ir_module: Any) -> None:
        self._final_module.link_in(llvm.parse_assembly(cgutils.normalize_ir_text(str(ir_module))))

    def finalize(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_llvm_str(self) -> str:
        return str(self._get_module_for_linking())

    def _get_module_for_linking(self) -> Any:
        """The code with all that it calls, directly or not, each once."""
        self._ensure_finalized()
        callees: dict[Any, None] = {}
        self._find_callees(callees)
        module = self._own().clone()
        for library in reversed(callees):  # callers first: the linker leaves out what nothing that is there refers to
            own = library._own if isinstance(library, _Collected) else library._get_module_for_linking
            module.link_in(own(), preserve=True)
        return module

    def _find_callees(self, found: dict[Any, None]) -> None:
        """Add all that is called, after what it calls itself; numba's functions hold what they call."""
        for library in self._linking_libraries:
            if library not in found:
                if isinstance(library, _Collected):
                    library._find_callees(found)
                found[library] = None

    def _own(self) -> Any:
        return super()._get_module_for_linking()

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0


class _Processing:
    """Statements in the order in which they are run."""

    def run_pass(self, state: Any) -> None:
        state.func_ir.blocks = canonicalize_cfg(state.func_ir.blocks)


class _Rewrites:
    """Constants among indices and operands."""

    def run_pass(self, state: Any) -> None:
        blocks = state.func_ir.blocks
        for rule in (kind(state) for kind in rewrite_registry.rewrites["before-inference"]):
            for key in blocks:
                while rule.match(state.func_ir, blocks[key], state.typemap, state.calltypes):
                    blocks[key] = rule.apply()


class _OneAssignment:
    """A name of its own for everything that is assigned to a variable."""

    def run_pass(self, state: Any) -> None:
        state.func_ir = reconstruct_ssa(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)


#: What kernels go through, in this order.
_PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    _Processing,
    untyped_passes.RewriteSemanticConstants,
    untyped_passes.DeadBranchPrune,
    _Rewrites,
    _OneAssignment,
    typed_passes.NopythonTypeInference,
    typed_passes.PreLowerStripPhis,
    typed_passes.IRLegalization,
    typed_passes.NativeLowering,
    typed_passes.NoPythonBackend,
)


@functools.cache
def _instance(kind: Any) -> Any:
    """A pass, which keeps nothing of what it works on. None of them looks at the analysis."""
    each = kind()
    each.analysis = {other: set() for other in _PASSES}
    return each


class _Passes:
    """Passes without the bookkeeping of numba's."""

    pipeline_name = "powerkern"
    exec_times: Any = types.MappingProxyType({})

    def run(self, state: Any) -> None:
        state.library = _Collected(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        for kind in _PASSES:
            _instance(kind).run_pass(state)


class _KernelCompiler(CompilerBase):  # type: ignore[misc]
    def define_pipelines(self) -> list[Any]:
        return [_Passes()]


OPTIONS = {"pipeline_class": _KernelCompiler}
