"""Compile an entry to an object file, using only public interfaces of numba and LLVM."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import llvmlite.binding as llvm
import numba
from numba import types

from powerkern._jit.cpus import Cpu, this_cpu
from powerkern._jit.interface import Interface, wrong_array
from powerkern._jit.llvm_arguments import make_reader
from powerkern._jit.numba_extension import compile_entry, jitted

#: Pointer types of the three arguments of an entry's machine code (see `interface.wrong_array`).
_INTEGERS = types.CPointer(types.int64)
_VIEWS = (_INTEGERS, types.CPointer(_INTEGERS), types.CPointer(types.CPointer(_INTEGERS)))

#: Functions of the C library that machine code may call; LLVM's linker finds them in the process.
_LIBRARY = frozenset(
    ("ceil", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "floor", "fma", "free", "frexp", "hypot", "ldexp", "log",
     "log10", "log1p", "log2", "malloc", "memcpy", "memmove", "memset", "pow", "rint", "sinh", "trunc")
)  # fmt: skip
#: numba's names for functions of the C library.
_RENAMED = {"@numba_ldexp(": "@ldexp(", "@numba_frexp(": "@frexp("}
#: Replacements for functions that numba calls: references need no counting, and a square root is one instruction.
_REPLACED = {
    "NRT_incref": "define private void @NRT_incref(ptr %p) alwaysinline { ret void }\n",
    "NRT_decref": "define private void @NRT_decref(ptr %p) alwaysinline { ret void }\n",
    "sqrt": """define private double @sqrt(double %x) alwaysinline {
  %root = call double @llvm.sqrt.f64(double %x)
  ret double %root
}
""",
}
#: By default LLVM uses 256-bit vectors on CPUs with 512 bits, which is slower by a factor of up to 1.6.
_WIDEST_VECTORS = '"prefer-vector-width"="512"'


class Refused(Exception):
    """Raised for an entry that allocates memory or may raise, so that its code would need numba's runtime."""


def object_code(function: Callable[..., Any], interface: Interface, symbol: str, cpu: Cpu | None = None) -> bytes:
    """Compile an entry and return the content of its object file.

    Parameters
    ----------
    function : callable
        The entry in Python.
    interface : Interface
        The calling convention of the entry.
    symbol : str
        The name of the entry in the object file.
    cpu : Cpu, optional
        The target CPU; by default this machine's.
    """
    machine = target_machine(cpu or this_cpu())
    return machine.emit_object(compile_module(function, interface, symbol, machine))  # type: ignore[no-any-return]


def compile_module(function: Callable[..., Any], interface: Interface, symbol: str, machine: Any) -> Any:
    """Compile an entry and return its optimised LLVM module; raise `Refused` if the code needs numba's runtime.

    Parameters
    ----------
    function : callable
        The entry in Python.
    interface : Interface
        The calling convention of the entry.
    symbol : str
        The name of the entry in the module.
    machine : TargetMachine
        LLVM's target machine.
    """
    try:
        return compile_entry(partial(_module, function, interface, symbol, machine))
    except Refused:
        raise
    except Exception as error:
        if "NRT required" in str(error):  # numba's error for an allocation in code that may not allocate
            raise Refused(
                f"the entry {symbol} allocates, or may raise: its machine code needs NRT_ functions"
            ) from error
        raise


def _module(
    function: Callable[..., Any], interface: Interface, symbol: str, machine: Any, options: dict[str, Any]
) -> Any:
    """Compile an entry, optimise its module, and check that the code does not need numba's runtime.

    The other arguments are those of `compile_module`.

    Parameters
    ----------
    options : dict
        Options for numba's compiler.
    """
    text, name = _llvm_text(function, interface, options)
    module = llvm.parse_assembly(_replace_functions(text))
    for each in (*module.functions, *module.global_variables):
        if each.name == name:
            each.name, each.linkage = symbol, llvm.Linkage.external
        elif not each.is_declaration:
            each.linkage = llvm.Linkage.private  # so that LLVM may drop unused arguments and inline single calls
    _optimise(module, machine)
    outside = {each.name for each in module.functions if each.is_declaration and not each.name.startswith("llvm.")}
    if outside - _LIBRARY:
        needed = ", ".join(sorted(outside - _LIBRARY))
        raise Refused(f"the entry {symbol} allocates, or may raise: its machine code needs {needed}")
    return module


def _llvm_text(function: Callable[..., Any], interface: Interface, options: dict[str, Any]) -> tuple[str, str]:
    """Return the LLVM code of an entry and of everything it calls, and the name of the entry in that code."""
    scope: dict[str, Any] = {"inner": jitted(function), "wrong_array": jitted(wrong_array)}
    scope.update((name, make_reader(kind)) for name, kind in interface.kinds().items())
    exec(interface.callee(), scope)
    compiled = numba.cfunc(types.int64(*_VIEWS), error_model="numpy", **options)(scope["entry"])
    return compiled.inspect_llvm(), compiled.native_name


def _replace_functions(text: str) -> str:
    """Replace the functions in `_RENAMED` and `_REPLACED` in LLVM text, and request the CPU's widest vectors."""
    for name, library in _RENAMED.items():
        text = text.replace(name, library)
    replaced = [name for name in _REPLACED if f"@{name}(" in text]
    lines, leaves_out = [], False
    for line in text.split("\n"):
        if line.startswith(("define ", "declare ")):
            leaves_out = any(f"@{name}(" in line for name in replaced)
        if line.startswith("define ") and "#" not in line:  # it has no attributes yet
            line = f"{line[:-1]}{_WIDEST_VECTORS} {{"
        elif line.startswith("attributes #"):
            line = line.replace("{", f"{{ {_WIDEST_VECTORS}", 1)
        if not leaves_out:
            lines.append(line)
        leaves_out &= line != "}" and not line.startswith("declare ")
    lines += [_REPLACED[name] for name in replaced]
    if "sqrt" in replaced and "declare double @llvm.sqrt.f64(" not in text:
        lines.append("declare double @llvm.sqrt.f64(double)\n")
    return "\n".join(lines)


def _optimise(module: Any, machine: Any) -> None:
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    # turn branches that choose between two numbers into selects before inlining, so that callers' loops vectorise
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, builder)
    builder.getModulePassManager().run(module, builder)
    # remove the handling of errors that no function returns; each round may enable the next
    passes = llvm.create_new_module_pass_manager()
    for _ in range(3):
        passes.add_ipsccp_pass()
        passes.add_simplify_cfg_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_strip_dead_prototype_pass()
    passes.run(module, builder)


def target_machine(cpu: Cpu) -> Any:
    """Return LLVM's target machine for a CPU."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu.name, features=cpu.features, opt=3, reloc="pic", codemodel="small"
    )
