"""The options that everything is compiled with, and the switches of numba that change the code.

Measured facts behind the choices (numba 0.68, see docs/numerics): ``fastmath=True`` would delete NaN checks; the
default error model raises ZeroDivisionError.
"""

from __future__ import annotations

from numba import config

from powerkern._jit.compiler import compiler_options
from powerkern._jit.linkage import entry_compiler

#: True when numba is switched off (NUMBA_DISABLE_JIT=1) and every kernel runs as plain Python.
JIT_DISABLED = bool(config.DISABLE_JIT)

# nothing here is called from C: wrappers for it would take a seventh of the compile time
KERNEL_OPTIONS = {
    "error_model": "numpy",
    "fastmath": {"contract"},
    "no_cfunc_wrapper": True,
    **compiler_options(),
}
REDUCTION_OPTIONS = {**KERNEL_OPTIONS, "fastmath": {"contract", "reassoc"}}
ENTRY_OPTIONS = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract"},
    "no_cfunc_wrapper": True,
    **entry_compiler(),
}

#: The variables of ``numba.config`` that change the machine code, most of them set by an environment variable of the
#: same name with ``NUMBA_`` before it. The CPU and its features are part of the cache folder's name.
CODE_SWITCHES = (
    "BOUNDSCHECK",
    "DEBUGINFO_DEFAULT",
    "DEBUG_NRT",
    "DISABLE_INTEL_SVML",
    "ENABLE_AVX",
    "ENABLE_PROFILING",
    "EXTEND_VARIABLE_LIFETIMES",
    "LLVM_REFPRUNE_FLAGS",
    "LLVM_REFPRUNE_PASS",
    "LOOP_VECTORIZE",
    "NRT_STATS",
    "OPT",
    "SLP_VECTORIZE",
    "USE_LEGACY_TYPE_SYSTEM",  # gone by numba 0.68
    "USING_SVML",
)


def code_switches() -> dict[str, str]:
    """The present values of the switches that change the machine code."""
    return {name: repr(getattr(config, name, None)) for name in CODE_SWITCHES}
