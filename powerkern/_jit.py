"""Every setting of numba used by powerkern: the one place where jitted code is configured.

Six decorators and a few bit-level functions are all that the rest of the package knows of numba:

``kernel``
    A composable numeric function. Plain Python that a debugger can step; inlined where jitted code
    (ours, or a user's own ``@njit`` function) calls it.
``inlined``
    A kernel that LLVM must inline at every call, whatever its size: scalar functions of hot loops, which
    vectorise only then.
``reduction``
    A kernel whose sums may be re-associated, so that LLVM vectorises them. Nothing else in the package
    may be re-associated: the rounding tricks of `powerkern.kernels.elementary` would break.
``entry``
    An outer function that Python calls: one explicit signature, GIL released, cached on disk, compiled
    at its first call and never at import.
``by_dtype``
    Gives a kernel of one argument a float32 twin.
``compiled_as``
    Registers the kernel that stands for a public Python function inside jitted code.

Measured facts behind the choices (numba 0.68, see docs/numerics):
``fastmath=True`` would delete NaN checks; the default error model raises ZeroDivisionError; LLVM prefers
256-bit vectors on CPUs with AVX-512, which costs the hot loops a factor of 1.3 to 1.6, hence `widest_vectors`;
numba's cache does not notice an edited callee in another module, hence the hash of all compiled sources in the
cache's location.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import os
import struct
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.extending import intrinsic, overload, register_jitable
from numba.misc.appdirs import AppDirs
from numba.np.arrayobj import make_array

F = TypeVar("F", bound=Callable[..., Any])
A = TypeVar("A", bound=npt.NDArray[Any])

#: True when numba is switched off (NUMBA_DISABLE_JIT=1) and every kernel runs as plain Python.
JIT_DISABLED = bool(config.DISABLE_JIT)

#: Releases of numba with which `_kernels_linked_only` has been tested.
_LINKS_KERNELS = ("0.68.",)

# kernels are called by compiled code only: a wrapper for C callers would be a seventh of the time of compilation
_KERNEL_OPTIONS = {"error_model": "numpy", "fastmath": {"contract"}, "no_cfunc_wrapper": True}
_REDUCTION_OPTIONS = {"error_model": "numpy", "fastmath": {"contract", "reassoc"}, "no_cfunc_wrapper": True}
_ENTRY_OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


def kernel(function: F) -> F:
    """Mark a composable numeric function; it stays callable as plain Python."""
    return cast(F, register_jitable(**_KERNEL_OPTIONS)(function))


def inlined(function: F) -> F:
    """Mark a scalar kernel for hot loops: LLVM must inline it, or the loop around it stays scalar."""
    return cast(F, register_jitable(forceinline=True, **_KERNEL_OPTIONS)(function))


def reduction(function: F) -> F:
    """Mark a kernel whose floating-point sums may be re-associated (vectorised)."""
    return cast(F, register_jitable(**_REDUCTION_OPTIONS)(function))


# Types for signatures that a string cannot say: the first two take any order and strides of native float64
READ_MATRIX = types.Array(types.float64, 2, "A", readonly=True)
WRITE_MATRIX = types.Array(types.float64, 2, "A")
READ_COLUMN = types.Array(types.float64, 1, "C", readonly=True)
ROWS = types.float64[:, ::1]
BLOCKS = types.float64[:, :, ::1]
COLUMN = types.float64[::1]
COUNTS = types.int64[::1]
INTEGER = types.int64
REAL = types.float64
BOOLEAN = types.boolean


def entry(signature: str | tuple[Any, ...]) -> Callable[[F], F]:
    """Mark an outer function that Python calls with exactly one `signature` (a string, or a tuple of types).

    Compiled, or loaded from the disk cache, at the first call, so that importing powerkern stays cheap.
    """

    def decorate(function: F) -> F:
        if JIT_DISABLED:  # numpy scalars would warn where compiled code silently gives inf or nan
            return np.errstate(all="ignore")(function)
        return _Entry(function, signature)  # type: ignore[return-value]

    return decorate


def compiled_as(kernel_function: Callable[..., Any]) -> Callable[[F], F]:
    """Let jitted code that calls the decorated Python function use `kernel_function` instead."""

    def decorate(function: F) -> F:
        @overload(function, jit_options=_KERNEL_OPTIONS, strict=False)  # type: ignore[untyped-decorator]
        def _implementation(*args: Any, **kwargs: Any) -> Callable[..., Any]:
            return kernel_function

        return function

    return decorate


def by_dtype(float32_kernel: Callable[..., Any]) -> Callable[[F], F]:
    """Make a kernel of one float64 argument hand float32 arguments to its float32 twin."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def dispatch(x: Any) -> Any:
            return (float32_kernel if isinstance(x, np.float32) else function)(x)

        @overload(dispatch, jit_options={"forceinline": True, **_KERNEL_OPTIONS}, strict=False)  # type: ignore[untyped-decorator]
        def _implementation(x: Any) -> Callable[..., Any]:
            return float32_kernel if x == types.float32 else function

        return dispatch  # type: ignore[return-value]

    return decorate


class _Entry:
    """A function compiled for one signature at its first call."""

    def __init__(self, function: Callable[..., Any], signature: str | tuple[Any, ...]) -> None:
        functools.update_wrapper(self, function)
        self._signature = signature
        self._lock = threading.Lock()
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        return (self._compiled or self.compile())(*args)

    def compile(self) -> Callable[..., Any]:
        """Compile (or load) now; returns the compiled function."""
        with self._lock:
            if self._compiled is None:
                dispatcher = numba.njit(**_ENTRY_OPTIONS)(self.__wrapped__)  # type: ignore[attr-defined]
                cache = _SourceHashCache.for_function(dispatcher.py_func)
                if cache is not None:
                    dispatcher._cache = cache
                with _kernels_linked_only(self.__wrapped__.__qualname__):  # type: ignore[attr-defined]
                    dispatcher.compile(self._signature)
                dispatcher.disable_compile()
                self._compiled = dispatcher
            return self._compiled


# --- no machine code that is never run ----------------------------------------------------------------


class _KernelLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel, which is linked into its callers and translated for the CPU and run there only."""

    #: What is called from Python, and does get machine code.
    entry = ""

    def _finalize_final_module(self) -> None:
        if self.name == self.entry:
            super()._finalize_final_module()
        else:
            self._finalize_dynamic_globals()
            self._finalized = True


@contextlib.contextmanager
def _kernels_linked_only(entry_name: str) -> Iterator[None]:
    """Compile an entry without machine code for each kernel by itself: a sixth of the time, the same code.

    This leans on the inside of numba: releases that it has not been tested with do the needless work.
    """
    if not numba.__version__.startswith(_LINKS_KERNELS):
        yield
        return
    with global_compiler_lock:  # another thread's own functions are compiled as ever
        cpu_target.target_context.refresh()  # compiles numba's own run-time system, which is called through pointers
        codegen = cpu_target.target_context.codegen()
        set_env = codegen.set_env

        def set_env_of_machine_code(name: str, environment: object) -> None:
            if codegen._engine.get_global_value_address(name):
                set_env(name, environment)

        codegen._library_class = type("_EntryLibrary", (_KernelLibrary,), {"entry": entry_name})
        codegen.set_env = set_env_of_machine_code
        try:
            yield
        finally:
            del codegen._library_class, codegen.set_env


# --- the disk cache ---------------------------------------------------------------------------------


@functools.cache
def _source_hash() -> str:
    """Hash of every source file that is compiled, numba's version and the options above."""
    digest = hashlib.sha256(f"{numba.__version__}{_KERNEL_OPTIONS}{_ENTRY_OPTIONS}".encode())
    package = Path(__file__).parent
    for path in [package / "_jit.py", package / "_status.py", *sorted(package.glob("kernels/*.py"))]:
        digest.update(path.relative_to(package).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _cache_folders() -> list[Path]:
    """Where the cache may live, best first."""
    if config.CACHE_DIR:
        return [Path(config.CACHE_DIR)]
    return [
        Path(__file__).parent / "__pycache__",
        Path(AppDirs(appname="powerkern", appauthor=False).user_cache_dir),
    ]


@functools.cache
def _cache_folder() -> Path | None:
    """The first writable cache folder of this source state, or None."""
    for base in _cache_folders():
        folder = base / f"powerkern-{_source_hash()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    return None


class _SourceHashLocator(_CacheLocator):  # type: ignore[misc]
    """Names a cache folder that changes with any source file of the package."""

    def __init__(self, module: str, folder: Path) -> None:
        self._module = module
        self._folder = folder

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _SourceHashLocator | None:
        folder = _cache_folder()
        return None if folder is None else cls(py_func.__module__, folder)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return _source_hash()

    def get_disambiguator(self) -> str:
        return self._module


class _SourceHashCacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes: ClassVar[list[type]] = [_SourceHashLocator]


class _SourceHashCache(FunctionCache):  # type: ignore[misc]
    """numba's function cache at our own place; any failure of the disk means compiling afresh."""

    _impl_class = _SourceHashCacheImpl

    @classmethod
    def for_function(cls, py_func: Callable[..., Any]) -> _SourceHashCache | None:
        try:
            return cls(py_func)
        except Exception:  # numba's internals moved, or nothing is writable: run uncached
            return None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # unreadable or damaged: compile afresh
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception:  # disk full, read-only: the compiled code is still good
            return


# --- what plain numba lacks: bit casts, fused multiply-add, prefetching, vectors ----------------------------------


def bits_of(x: float) -> int:
    """The bit pattern of a float64, as int64."""
    return struct.unpack("<q", struct.pack("<d", x))[0]  # type: ignore[no-any-return]


def float_of(bits: int) -> float:
    """The float64 with the given int64 bit pattern."""
    return struct.unpack("<d", struct.pack("<Q", int(bits) & 0xFFFFFFFFFFFFFFFF))[0]  # type: ignore[no-any-return]


def bits32_of(x: np.float32) -> int:
    """The bit pattern of a float32, as int32."""
    return struct.unpack("<i", struct.pack("<f", x))[0]  # type: ignore[no-any-return]


def float32_of(bits: int) -> np.float32:
    """The float32 with the given int32 bit pattern."""
    return np.uint32(int(bits) & 0xFFFFFFFF).view(np.float32)


def fma(a: float, b: float, c: float) -> float:
    """``a*b + c`` with one rounding."""
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def widest_vectors() -> None:
    """Ask LLVM for the CPU's widest vectors in the calling function (no effect in plain Python)."""


def prefetch(array: npt.NDArray[np.float64], index: tuple[int, ...]) -> None:
    """Ask the CPU to fetch ``array[index]``, which may lie beyond the array (no effect in plain Python)."""


def borrowed(array: A) -> A:
    """The same array, not counted as a reference: parts of it cost no atomic operations. The caller keeps it alive."""
    return array


def add_powers(sums: npt.NDArray[np.float64], row: int, t: float, weight: float) -> None:
    """``sums[8 row + k] += weight t**k`` for k = 0..7, as one vector."""
    for k in range(8):
        sums[8 * row + k] += weight * t**k


@intrinsic
def _bits_of(typing_context, x):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def _float_of(typing_context, bits):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@intrinsic
def _bits32_of(typing_context, x):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), codegen


@intrinsic
def _float32_of(typing_context, bits):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), codegen


@intrinsic
def _fma(typing_context, a, b, c):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), codegen


@intrinsic
def _prefetch(typing_context, array, index):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        array = make_array(signature.args[0])(context, builder, args[0])
        strides, index = cgutils.unpack_tuple(builder, array.strides), cgutils.unpack_tuple(builder, args[1])
        offset = functools.reduce(builder.add, map(builder.mul, index, strides))
        pointer, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.gep(builder.bitcast(array.data, pointer), [offset])
        function_type = ir.FunctionType(ir.VoidType(), [pointer, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        builder.call(function, [address, flag(0), flag(3), flag(1)])  # data, to be read, into the first-level cache
        return context.get_dummy_value()

    return types.none(array, types.UniTuple(types.intp, array.ndim)), codegen


@intrinsic
def _borrowed(typing_context, array):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        array = make_array(signature.args[0])(context, builder, args[0])
        array.meminfo, array.parent = (cgutils.get_null_value(x.type) for x in (array.meminfo, array.parent))
        return array._getvalue()

    return array(array), codegen


@intrinsic
def _add_powers(typing_context, sums, row, t, weight):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        index, eight = ir.IntType(32), ir.VectorType(ir.DoubleType(), 8)
        array = make_array(signature.args[0])(context, builder, args[0])
        first_of_eight = ir.Constant(ir.VectorType(index, 8), [0] * 8)
        mask = [ir.Constant(ir.VectorType(ir.IntType(1), 8), [k >> bit & 1 for k in range(8)]) for bit in range(3)]
        one, undefined = ir.Constant(eight, [1.0] * 8), ir.Constant(eight, ir.Undefined)
        t, weight = args[2:]
        square = builder.fmul(t, t)
        t, square, weight, fourth = (
            builder.shuffle_vector(builder.insert_element(undefined, x, index(0)), undefined, first_of_eight)
            for x in (t, square, weight, builder.fmul(builder.fmul(square, square), weight))
        )
        powers = builder.fmul(builder.select(mask[0], t, one), builder.select(mask[1], square, one))
        powers = builder.fmul(powers, builder.select(mask[2], fourth, weight))
        target = builder.gep(array.data, [builder.shl(args[1], ir.IntType(64)(3))])
        target = builder.bitcast(target, eight.as_pointer())
        before = builder.load(target)
        before.align = 8
        builder.store(builder.fadd(before, powers), target).align = 8
        return context.get_dummy_value()

    return types.none(sums, types.int64, types.float64, types.float64), codegen


@intrinsic
def _widest_vectors(typing_context):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        # llvmlite knows no string attributes: slip past its whitelist, the printed IR is valid LLVM
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), codegen


@overload(bits_of)
def _overload_bits_of(x):  # type: ignore[no-untyped-def]
    return lambda x: _bits_of(x)


@overload(float_of)
def _overload_float_of(bits):  # type: ignore[no-untyped-def]
    return lambda bits: _float_of(bits)


@overload(bits32_of)
def _overload_bits32_of(x):  # type: ignore[no-untyped-def]
    return lambda x: _bits32_of(x)


@overload(float32_of)
def _overload_float32_of(bits):  # type: ignore[no-untyped-def]
    return lambda bits: _float32_of(bits)


@overload(fma)
def _overload_fma(a, b, c):  # type: ignore[no-untyped-def]
    return lambda a, b, c: _fma(a, b, c)


@overload(prefetch)
def _overload_prefetch(array, index):  # type: ignore[no-untyped-def]
    return lambda array, index: _prefetch(array, index)


@overload(borrowed, inline="always")
def _overload_borrowed(array):  # type: ignore[no-untyped-def]
    return lambda array: _borrowed(array)


@overload(add_powers)
def _overload_add_powers(sums, row, t, weight):  # type: ignore[no-untyped-def]
    return lambda sums, row, t, weight: _add_powers(sums, row, t, weight)


@overload(widest_vectors, inline="always")
def _overload_widest_vectors():  # type: ignore[no-untyped-def]
    return lambda: _widest_vectors()
