"""Functions that plain numba lacks: compiled and plain Python versions agree, and the machine code is as intended."""

from __future__ import annotations

import platform

import numba
import numpy as np
import processes
import pytest

from powerkern import _jit

needs_jit = pytest.mark.skipif(_jit.JIT_DISABLED, reason="nothing is compiled")
needs_x86 = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names x86 CPUs")


@numba.njit
def bits(x, y, z):
    return _jit.float_of(_jit.bits_of(x)), _jit.bits_of(x), _jit.fma(x, y, z)


@pytest.mark.slow
@pytest.mark.parametrize("x", [0.0, -0.0, 1.5, -5e-324, np.inf, 1.7976931348623157e308])
def test_bit_level_functions_equal_their_python_versions(x):
    """Compiled intrinsics return the same bits as their plain-Python versions."""
    compiled = bits(x, 1.0 + 2.0**-52, 1e-300)
    plain = _jit.float_of(_jit.bits_of(x)), _jit.bits_of(x), _jit.fma(x, 1.0 + 2.0**-52, 1e-300)
    assert compiled == plain
    assert np.signbit(compiled[0]) == np.signbit(x)


def test_fused_multiply_add_rounds_once():
    a = 1.0 + 2.0**-30
    assert _jit.fma(a, a, -(1.0 + 2.0**-29)) == 2.0**-60
    assert bits(a, a, -(1.0 + 2.0**-29))[2] == 2.0**-60


@numba.njit
def pack(x, first, within, out, place):
    _jit.pack_eight(x, first, within, out, place)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_eight_values_are_packed(dtype):
    """Copy eight array elements that are `within` elements apart, and check that nothing else is written.

    In some cases the last of the eight is the first or last element of the array.
    """
    x = np.arange(40.0).astype(dtype)
    for first, within in ((0, 1), (3, 5), (39, -5), (7, 0), (25, 2)):
        out = np.full(13, -1.0, dtype)
        pack(x, first, within, out, 2)
        np.testing.assert_array_equal(out, [-1.0, -1.0, *(first + within * np.arange(8.0)), -1.0, -1.0, -1.0])


FUSED = """
import numba
from powerkern import _jit

@numba.njit
def fused(a, b, c):
    return _jit.fma(a, b, c)

a = 1.0 + 2.0**-30
print(fused(a, a, -(1.0 + 2.0**-29)) == 2.0**-60)
"""


@pytest.mark.slow
@needs_jit
@needs_x86
def test_fused_multiply_add_rounds_once_where_the_cpu_has_none():
    """CPUs without the instruction call the C library's function."""
    plain = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "", "NUMBA_DISABLE_JIT": "0"}
    assert processes.run(FUSED, **plain) == "True"


# --- the widest vectors -------------------------------------------------------------------------------

#: Two loops, without and with `widest_vectors`; they are compiled but not run, so code for any CPU can be inspected.
LOOPS = """
import numba
from powerkern._jit import widest_vectors

@numba.njit("void(float64[::1])")
def plain(x):
    for i in range(x.size):
        x[i] = 2.0 * x[i] + 1.0

@numba.njit("void(float64[::1])")
def widest(x):
    widest_vectors()
    for i in range(x.size):
        x[i] = 2.0 * x[i] + 1.0

for function in (plain, widest):
    (code,) = function.inspect_asm().values()
    (ir,) = function.inspect_llvm().values()
    print("ymm" in code, "zmm" in code, '"prefer-vector-width"="512"' in ir)
"""


#: The instruction set of wheels, and a CPU that has it.
WITH_AVX512 = {
    "x86-64-v4": "",
    "skylake-avx512": "+avx,+avx2,+fma,+avx512f,+avx512vl,+avx512dq,+avx512bw",
}


@pytest.mark.slow
@needs_jit
@needs_x86
@pytest.mark.parametrize("cpu", WITH_AVX512)
def test_the_widest_vectors_are_used(cpu):
    """On CPUs with AVX-512, LLVM uses 256 bits by default, and 512 bits in loops that call `widest_vectors`."""
    environment = {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": WITH_AVX512[cpu], "NUMBA_DISABLE_JIT": "0"}
    plain, widest = processes.run(LOOPS, **environment).splitlines()
    assert plain == "True False False"
    assert widest.split()[1:] == ["True", "True"]


#: A loop of a kernel that is inlined into an entry; neither calls `widest_vectors`.
UNASKED = """
from powerkern._jit import COLUMN, entry, kernel

@kernel
def doubled(x):
    for i in range(x.size):
        x[i] = 2.0 * x[i] + 1.0

@entry((COLUMN,))
def loop(x):
    doubled(x)

from powerkern._jit.cpus import this_cpu
from powerkern._jit.object_code import compile_module, target_machine
machine = target_machine(this_cpu())
print("zmm" in machine.emit_assembly(compile_module(loop.__wrapped__, loop.interface(), "loop", machine)))
"""


@pytest.mark.slow
@needs_jit
@needs_x86
@pytest.mark.parametrize("cpu", WITH_AVX512)
def test_kernels_and_entries_use_the_widest_vectors_by_default(cpu):
    """Loops use 512 bits, whether or not their function is inlined before it is vectorised."""
    environment = {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": WITH_AVX512[cpu], "NUMBA_DISABLE_JIT": "0"}
    assert processes.run(UNASKED, **environment) == "True"


def test_widest_vectors_does_nothing_in_plain_python():
    assert _jit.widest_vectors() is None
