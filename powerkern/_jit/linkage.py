"""How entries are compiled: as numba compiles any function, but with kernels that are theirs alone.

What numba links may be called from elsewhere, and LLVM then keeps the signature of every function that it does not put
in its caller's place. A tuple of scratch arrays is passed as some hundred numbers: of short columns, copying these at
every call took half of the time of robust fits. Code that is private to its entry loses arguments that are not used,
and functions with one call site. It must be private, not merely internal: the loader would find internal code by name,
and run it in place of the code, of the same name but with all arguments, that a user's jitted function brings along.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as ll
import numba
from llvmlite.binding import Linkage
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase

from powerkern._jit.compiler import KNOWN, MANGLED, Passes, parsed
from powerkern._jit.lowering import is_counted
from powerkern._jit.references import count_no_more, counters


class EntryLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of an entry and of all that it calls, which nothing else does."""

    returns_memory = False

    def add_ir_module(self, ir_module: Any) -> None:
        """Take in the code of the entry, or of what Python calls it by, which alone owns references."""
        if ir_module.name == "wrapper":
            self._final_module.link_in(ll.parse_assembly(cgutils.normalize_ir_text(str(ir_module))))
        else:
            self.add_llvm_module(parsed(ir_module))
            self._final_module.link_in(counters())

    def _optimize_final_module(self) -> None:
        if not self.returns_memory:
            count_no_more(self._final_module)
        for each in self._final_module.functions:
            if not each.is_declaration and each.linkage == Linkage.linkonce_odr and each.name.startswith(MANGLED):
                each.linkage = Linkage.private
        super()._optimize_final_module()


class _Returning:
    """The library is told whether the entry returns memory."""

    def run_pass(self, state: Any) -> None:
        state.library.returns_memory = is_counted(state.targetctx.data_model_manager, state.return_type)


class EntryCompiler(CompilerBase):  # type: ignore[misc]
    """numba's compiler, with the passes of kernels, for another library."""

    def define_pipelines(self) -> list[Any]:
        """The one pipeline, without Python objects."""
        return [Passes(EntryLibrary, _Returning)]


def entry_compiler() -> dict[str, Any]:
    """The option that makes numba compile a function as an entry."""
    return {"pipeline_class": EntryCompiler} if numba.__version__.startswith(KNOWN) else {}
