"""How kernels are compiled: to intermediate code that their callers link, with the passes of numba that they need.

numba optimises every function by itself, translates it for the CPU, and does both again with all that its caller has
inlined. A kernel of ours is only ever run inside an entry (or a user's jitted function), so the optimisation and the
translation are the entry's: once, over everything that it calls. Kernels have no closures, generators, ``with``
blocks, parallel loops or Python objects either, and the passes that handle them are left out; so are numba's notes of
where each pass and each statement is, which would take as long as some of the passes.

The libraries of numba 0.63 to 0.68 have what `KernelLibrary` builds on; with any other, kernels are compiled as any
function is.
"""

from __future__ import annotations

import functools
from typing import Any

import numba
from numba import types
from numba.core import ir, typed_passes, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.ir_utils import build_definitions
from numba.core.rewrites import rewrite_registry
from numba.core.ssa import reconstruct_ssa
from numba.core.transforms import canonicalize_cfg
from numba.core.typed_passes import BaseNativeLowering

from powerkern._jit.builtins import TakeTwins
from powerkern._jit.lowering import KernelLower, drop_unused, is_counted
from powerkern._jit.references import counters, counting
from powerkern._jit.vectors import prefer_widest_vectors

#: Releases of numba whose libraries are known.
KNOWN = tuple(f"0.{minor}." for minor in range(63, 69))

#: How the names of functions that numba compiles begin; those of LLVM, libm and numba's run time do not.
MANGLED = "_ZN"


class _NoMachineCode:
    """The code generator of a kernel, whose environment no machine code refers to."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        """Nothing to set."""


class KernelLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel, simplified function by function; to optimise and translate it is left to whoever calls it.

    Without being simplified first, what is inlined keeps the loop around it from being vectorised.
    """

    @property
    def codegen(self) -> Any:
        """The code generator, for all but machine code."""
        return _NoMachineCode(self._codegen)

    def add_ir_module(self, ir_module: Any) -> None:
        """Take in the code of the kernel's one function."""
        module = parsed(ir_module)
        _simplify(module, self._codegen)
        self._final_module.link_in(module)
        self._final_module.link_in(counters())

    def finalize(self) -> None:
        """Take in nothing more."""
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """There is no machine code."""
        self._ensure_finalized()
        return 0

    def _get_module_for_linking(self) -> Any:
        """The code of the kernel and of all that it calls, directly or not, each once."""
        self._ensure_finalized()
        callees: dict[int, Any] = {}
        self._find_callees(callees)
        module = self._own_module().clone()
        # callers first: the linker leaves out what nothing that is there refers to
        for library in reversed(callees.values()):
            own = library._own_module if isinstance(library, KernelLibrary) else library._get_module_for_linking
            module.link_in(own(), preserve=True)
        _check_complete(module)
        return module

    def _find_callees(self, found: dict[int, Any]) -> None:
        """Add all that is called, after what it calls itself; numba's own functions hold what they call already."""
        for library in self._linking_libraries:
            if id(library) not in found:
                if isinstance(library, KernelLibrary):
                    library._find_callees(found)
                found[id(library)] = library

    def _own_module(self) -> Any:
        return super()._get_module_for_linking()


def parsed(ir_module: Any) -> Any:
    """The code of a kernel or an entry, as it is taken in: how it counts references, and how wide its vectors are."""
    for function in ir_module.functions:
        prefer_widest_vectors(function)
        drop_unused(function)
    module = counting(ir_module)
    _clear(ir_module)
    return module


def _clear(ir_module: Any) -> None:
    """Give back what was written down: functions and instructions refer to each other, for a collector to find."""
    for function in ir_module.functions:
        for block in function.blocks:
            block.instructions.clear()
            block.terminator = block.scope = None
        function.blocks.clear()
        function.args, function.scope = (), None
    ir_module.globals.clear()


def _simplify(module: Any, codegen: Any) -> None:
    """Optimise each function by itself, as numba does."""
    passes, builder = codegen._function_pass_manager()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)


def _check_complete(module: Any) -> None:
    """Every compiled function that is called must be there: one that is not would end the process when it is run."""
    missing = [each.name for each in module.functions if each.is_declaration and each.name.startswith(MANGLED)]
    if missing:
        raise RuntimeError(f"numba {numba.__version__} left out of the compiled code: {', '.join(sorted(missing))}")


class _Lowering(BaseNativeLowering):  # type: ignore[misc]
    _name = "powerkern_lowering"
    lowering_class = KernelLower


class _Processing:
    """Statements in the order in which they are run."""

    def run_pass(self, state: Any) -> None:
        state.func_ir.blocks = canonicalize_cfg(state.func_ir.blocks)


class _Rewrites:
    """What reads better in another way: constants among indices and operands."""

    def run_pass(self, state: Any) -> None:
        for rule in rewrite_registry.rewrites["before-inference"]:
            _rewrite(rule(state), state)


def _rewrite(rule: Any, state: Any) -> None:
    """As long as there is something to rewrite."""
    blocks = state.func_ir.blocks
    for key in blocks:
        while rule.match(state.func_ir, blocks[key], state.typemap, state.calltypes):
            blocks[key] = rule.apply()


class _OneAssignment:
    """A name of its own for everything that is assigned to a variable."""

    def run_pass(self, state: Any) -> None:
        state.func_ir = reconstruct_ssa(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)


class _NoPhis(typed_passes.PreLowerStripPhis):  # type: ignore[misc]
    """One name again where ways meet."""

    def run_pass(self, state: Any) -> None:
        state.func_ir = self._strip_phi_nodes(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)


class _Counting:
    """References are written down only where arrays come into being, or are handed on: there is less to compile.

    Whoever calls a kernel holds its arguments, and parts of arrays live as long as these. Reductions are left as they
    are, or LLVM would associate some sums in another way. What entries then do without is said in `references`.
    """

    def run_pass(self, state: Any) -> None:
        if "reassoc" not in state.flags.fastmath.flags:
            models = state.targetctx.data_model_manager
            kinds = state.return_type, *(_made(each, signature) for each, signature in state.calltypes.items())
            state.targetctx.enable_nrt = any(is_counted(models, kind) for kind in kinds)


def _made(each: Any, signature: Any) -> Any:
    """The type of what a statement or an expression makes of its operands; none if it only takes a part of them."""
    is_expression = isinstance(each, ir.Expr)
    if signature is None or (is_expression and each.op in ("getitem", "static_getitem")):
        return types.none
    return signature.return_type if is_expression else signature.args[-1]


#: What kernels go through, in this order. Where variables are alive is looked for once, by the third from the end.
_PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    TakeTwins,
    _Processing,
    untyped_passes.RewriteSemanticConstants,
    untyped_passes.DeadBranchPrune,
    _Rewrites,
    _OneAssignment,
    typed_passes.NopythonTypeInference,
    _Counting,
    _NoPhis,
    typed_passes.IRLegalization,
    _Lowering,
    typed_passes.NoPythonBackend,
)


class Passes:
    """Passes without the bookkeeping of numba's, to a library of one kind; `counting` is the one for references."""

    pipeline_name = "powerkern"

    def __init__(self, library: type[JITCodeLibrary], counting: type = _Counting) -> None:
        self.exec_times: dict[str, Any] = {}
        self._library = library
        self._passes = [_instance(counting if kind is _Counting else kind) for kind in _PASSES]

    def run(self, state: Any) -> None:
        """Compile."""
        state.library = self._library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        for each in self._passes:
            each.run_pass(state)


@functools.cache
def _instance(kind: Any) -> Any:
    """A pass, which keeps nothing of what it works on. None of them looks at the analysis."""
    each = kind()
    each.analysis = {other: set() for other in _PASSES}
    return each


class KernelCompiler(CompilerBase):  # type: ignore[misc]
    """numba's compiler, less the passes that a kernel does not need and the machine code that it does not run."""

    def define_pipelines(self) -> list[Any]:
        """The one pipeline, without Python objects."""
        return [Passes(KernelLibrary)]


def compiler_options() -> dict[str, Any]:
    """The options that make numba compile a function as a kernel."""
    return {"pipeline_class": KernelCompiler} if numba.__version__.startswith(KNOWN) else {}
