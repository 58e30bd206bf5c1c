"""Kernels compiled without optimisation or machine code of their own: the same code once they are linked."""

from __future__ import annotations

import itertools
import math

import numba
import numpy as np
import processes
import pytest
from numba.core.registry import cpu_target

from powerkern._jit import JIT_DISABLED, calls, compiler, fma, for_none, kernel, reduction
from powerkern._jit.settings import KERNEL_OPTIONS

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")


@kernel
def inner(x):
    return fma(x, x, 1.0)


@kernel
def outer(x):
    return inner(x) + inner(-x)


@numba.njit
def user(x):
    return outer(x) + inner(x)


@numba.njit
def users_user(x):
    return user(x) + outer(x)


def test_a_users_function_links_kernels_and_what_they_call():
    assert user(2.0) == 15.0
    assert users_user(2.0) == 25.0


def test_a_kernel_is_inlined_into_its_caller():
    user(2.0)
    (ir,) = user.inspect_llvm().values()
    assert "call" not in "".join(line for line in ir.splitlines() if "powerkern" in line and "define" not in line)


def test_installed_numba_is_known():
    """Otherwise kernels take half as long again to compile: see whether `KernelLibrary` fits, and add the release."""
    assert compiler.compiler_options()


def test_an_unknown_numba_compiles_as_ever(monkeypatch):
    monkeypatch.setattr(numba, "__version__", "99.0")
    assert compiler.compiler_options() == {}


@pytest.mark.slow
def test_both_ways_compute_alike(tmp_path):
    """The kernels as numba compiles any function give the same to the last bits."""
    code = (
        "{before}\n"
        "import numpy as np; from powerkern.kernels.transforms.elementwise import yeojohnson_each as f\n"
        "x = np.random.default_rng(0).standard_cauchy(1001); out = np.empty(1001)\n"
        "f(x, np.linspace(-3, 5, 1001), out); print(*out.tolist())"
    )
    ways = {"own": "", "numbas": "import numba; numba.__version__ = '99.0'"}
    results = []
    for way, before in ways.items():
        environment = {"NUMBA_DISABLE_JIT": "0", "NUMBA_CACHE_DIR": str(tmp_path / way)}
        results.append(np.array(processes.run(code.format(before=before), **environment).split(), float))
    np.testing.assert_allclose(*results, rtol=4e-16, atol=0.0)


def test_what_is_not_linked_is_an_error_not_a_crash(monkeypatch):
    """A linker that leaves a callee out is noticed before the code can run."""
    monkeypatch.setattr(compiler.KernelLibrary, "_find_callees", lambda library, found: None)

    @kernel
    def callee(x):
        return x + 1.0

    @kernel
    def caller(x):
        return callee(x)

    with pytest.raises(RuntimeError, match=r"left out of the compiled code: _ZN\S*callee"):
        numba.njit(lambda x: caller(x))(1.0)


def test_a_kernel_that_its_first_caller_no_longer_calls_is_linked():
    """It follows all of its callers: not the first alone, which may have lost the call when it was simplified."""

    @kernel
    def base(x):
        return x + 1.0

    @kernel
    def first(x):
        two = 2
        if two * two > 5:
            return base(x)
        return x

    @kernel
    def last(x):
        return base(-x)

    @kernel
    def top(x):
        return first(x) + last(x)

    assert numba.njit(lambda x: top(x))(1.0) == 1.0


def test_a_kernel_is_compiled_once_whatever_its_callers_options(monkeypatch):
    compiled = []
    whole = calls._compiled
    monkeypatch.setattr(calls, "_compiled", lambda function, *rest: compiled.append(function) or whole(function, *rest))

    @kernel
    def base(x, y=2.0):
        return x * y

    @reduction
    def summing(x):
        return base(x)

    @kernel
    def plain(x):
        return base(x, y=2.0)

    @numba.njit(nogil=True)
    def top(x):
        return summing(x) + plain(x) + base(x, 2.0)

    assert top(1.5) == 9.0
    assert compiled.count(base) == 2  # with y given, and without


def test_a_call_that_does_not_fit_is_a_typing_error():
    with pytest.raises(numba.TypingError, match="missing a required argument"):
        numba.njit(lambda: inner())()


@kernel
def least(x, y, z):
    return min(x, y, z)


@kernel
def greatest(x, y, z):
    return max(x, y, z)


@kernel
def whole(x):
    return int(x)


jitted_least = numba.njit(lambda x, y, z: least(x, y, z))
jitted_greatest = numba.njit(lambda x, y, z: greatest(x, y, z))


@pytest.mark.parametrize("numbers", list(itertools.permutations([1.5, math.nan, -0.0, 0.0, 2.0, -math.inf], 3)))
def test_extremes_are_those_of_python(numbers):
    for function, python in ((jitted_least, min), (jitted_greatest, max)):
        ours = function(*numbers)
        np.testing.assert_array_equal(
            [ours, math.copysign(1.0, ours)], [python(numbers), math.copysign(1.0, python(numbers))]
        )


def test_extremes_of_unlike_numbers_are_of_the_common_type():
    assert repr(numba.njit(lambda: least(3, 2.5, 4))()) == "2.5"
    assert repr(numba.njit(lambda: greatest(3, 2.5, 1))()) == "3.0"
    assert repr(numba.njit(lambda: greatest(3, 2, 1))()) == "3"


def test_whole_numbers_are_those_of_python():
    for x in (2.75, -2.75, 7, True):
        assert numba.njit(lambda x: whole(x))(x) == int(x)


def test_a_twin_for_none_has_defaults_of_its_own():
    @kernel
    def without(none, x):
        return -x

    @for_none(without)
    @kernel
    def product(weight, x, y=2.0):
        return weight * x * y

    @numba.njit
    def top(x):
        return product(None, x) + product(x, x)

    assert top(3.0) == 15.0


@kernel
def total(x):
    part, s = x[1:], x[0]
    for i in range(part.size):
        s += part[i]
    return s


@kernel
def tail(x):
    return x[1:]


@kernel
def copy(x):
    out = np.empty(x.size)
    out[:] = x
    return out


@kernel
def copied_total(x):
    return total(copy(x)) + total(tail(x))


@pytest.mark.slow
def test_references_are_counted_where_arrays_come_into_being_or_are_handed_on():
    cpu_target.target_context.refresh()
    for function, counted in ((total, False), (tail, True), (copy, True), (copied_total, True)):
        code = calls._compiled(function, dict(KERNEL_OPTIONS), (numba.float64[::1],)).library
        assert ("NRT_" in str(code._own_module())) == counted, function


def test_no_memory_is_lost_or_freed_too_soon():
    from numba.core.runtime import _nrt_python, rtsys

    _nrt_python.memsys_enable_stats()
    top = numba.njit(lambda x: copied_total(copy(tail(x))) + total(x))
    x = np.arange(1000.0)
    expected = 2 * x.sum() - 1.0 + x.sum()
    assert top(x) == expected
    before = rtsys.get_allocation_stats()
    for _ in range(50):
        assert top(x) == expected
    after = rtsys.get_allocation_stats()
    assert after.alloc - before.alloc == after.free - before.free
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free > 0
