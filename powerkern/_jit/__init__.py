"""How kernels are compiled: decorators that mark functions, and machine code of entries as plain object files.

``kernel``
    A composable numeric function. Plain Python that a debugger can step; inlined where jitted code
    (ours, or a user's own ``@njit`` function) calls it.
``inlined``
    A kernel that LLVM must inline at every call, whatever its size: scalar functions of hot loops, which
    vectorise only then.
``reduction``
    A kernel whose sums may be re-associated, so that LLVM vectorises them. Nothing else in the package
    may be re-associated: the rounding tricks of `powerkern.kernels.elementary.exp` would break.
``entry``
    An outer function that Python calls: one explicit signature, GIL released, kept on disk, loaded or compiled
    at its first call and never at import.
``by_dtype``
    Gives a kernel of one argument a float32 twin.
``for_none``
    Gives a kernel a twin for calls whose first argument is None.
``compiled_as``
    Says which kernel stands for a public Python function inside jitted code.

An entry is called through its `interface`; its machine code is an object file, `loading` and `disk` have it from disk,
in `folders` that can be trusted, as `files` that one process writes at a time, for one of `cpus` or all that cover it.
None of these imports numba. Where something must be compiled, `object_code` does it (a `notice` says so),
with kernels as `numba_extension` shows them to numba, and what plain numba lacks, `intrinsics` and `lanes`, in LLVM's
terms (`llvm_arguments`, `llvm_intrinsics`, `llvm_lanes`). `deferral` alone uses private parts of numba, to save time.
"""

import sys

from powerkern._jit.cpus import levels as cpu_levels
from powerkern._jit.cpus import runnable as runnable_cpus
from powerkern._jit.decorators import JIT_DISABLED, by_dtype, compiled_as, entry, for_none, inlined, kernel, reduction
from powerkern._jit.disk import writable_folder
from powerkern._jit.entries import Entry
from powerkern._jit.intrinsics import (
    add_powers,
    aligned,
    allocated,
    allocated_integers,
    bits32_of,
    bits_of,
    borrowed,
    fetch_add,
    float32_of,
    float_of,
    fma,
    pack_eight,
    pack_every_other,
    prefetch,
    release,
    widest_vectors,
)
from powerkern._jit.lanes import (
    LANES,
    LANES32,
    Lanes,
    Mask,
    any_lane,
    first_lanes,
    in_all_lanes,
    in_lanes_of,
    load,
    select,
    square_root,
    store,
    sum_of_lanes,
    width_of,
)
from powerkern._jit.signatures import (
    BLOCKS,
    BOOLEAN,
    COLUMN,
    COLUMN32,
    COUNT_ROWS,
    COUNTS,
    INDEX32,
    INTEGER,
    READ_COLUMN,
    READ_COLUMN32,
    READ_MATRIX,
    READ_MATRIX32,
    REAL,
    ROWS,
    ROWS32,
    WRITE_MATRIX,
    WRITE_MATRIX32,
    named_tuple,
    numbers_of,
)

__all__ = [
    "BLOCKS",
    "BOOLEAN",
    "COLUMN",
    "COLUMN32",
    "COUNTS",
    "COUNT_ROWS",
    "INDEX32",
    "INTEGER",
    "JIT_DISABLED",
    "LANES",
    "LANES32",
    "READ_COLUMN",
    "READ_COLUMN32",
    "READ_MATRIX",
    "READ_MATRIX32",
    "REAL",
    "ROWS",
    "ROWS32",
    "WRITE_MATRIX",
    "WRITE_MATRIX32",
    "Entry",
    "Lanes",
    "Mask",
    "add_powers",
    "aligned",
    "allocated",
    "allocated_integers",
    "any_lane",
    "bits32_of",
    "bits_of",
    "borrowed",
    "by_dtype",
    "compiled_as",
    "cpu_levels",
    "entry",
    "fetch_add",
    "first_lanes",
    "float32_of",
    "float_of",
    "fma",
    "for_none",
    "in_all_lanes",
    "in_lanes_of",
    "inlined",
    "kernel",
    "load",
    "named_tuple",
    "numbers_of",
    "pack_eight",
    "pack_every_other",
    "prefetch",
    "reduction",
    "release",
    "runnable_cpus",
    "select",
    "square_root",
    "store",
    "sum_of_lanes",
    "widest_vectors",
    "width_of",
    "writable_folder",
]

if "numba" in sys.modules:  # what numba's entry point does for packages that are installed, and imported after it
    from powerkern._jit import numba_extension  # noqa: F401
