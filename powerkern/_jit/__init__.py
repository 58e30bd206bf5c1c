"""Every setting of numba used by powerkern: the one place where jitted code is configured.

Eight decorators and a few bit-level functions are all that the rest of the package knows of numba:

``kernel``
    A composable numeric function. Plain Python that a debugger can step; inlined where jitted code
    (ours, or a user's own ``@njit`` function) calls it.
``inlined``
    A kernel that LLVM must inline at every call, whatever its size: scalar functions of hot loops, which
    vectorise only then.
``reduction``
    A kernel whose sums may be re-associated, so that LLVM vectorises them. Nothing else in the package
    may be re-associated: the rounding tricks of `powerkern.kernels.elementary.exp_log` would break.
``entry``
    An outer function that Python calls: one explicit signature, GIL released, kept on disk, compiled
    at its first call and never at import.
``by_dtype``
    Gives a kernel of one argument a float32 twin.
``for_none``
    Gives a kernel a twin for calls whose first argument is None.
``compiled_as``
    Registers the kernel that stands for a public Python function inside jitted code.
``inlined_as``
    The same for a function of one value, inlined in the caller's loop.

``settings`` holds numba's options, ``compiler`` what of numba's compiler kernels go through, ``lowering`` how they are
written down for LLVM, ``contexts`` what is remembered meanwhile, ``builtins`` Python's own functions in them,
``vectors`` how wide theirs are, ``calls`` how jitted code calls them, ``linkage`` what makes them their entry's own,
``decorators`` what is listed above, ``entries`` the compilation, ``notice`` what is said of it meanwhile, ``cache``
what of it is kept on disk (in ``folders`` that can be trusted, as ``files`` that one process writes at a time, for one
of ``cpus`` or all that cover it), and ``intrinsics`` and ``lanes`` what plain numba lacks.
"""

try:
    from powerkern._jit.cache import writable_folder
    from powerkern._jit.cpus import levels as cpu_levels
    from powerkern._jit.cpus import runnable as runnable_cpus
    from powerkern._jit.decorators import by_dtype, compiled_as, entry, for_none, inlined, inlined_as, kernel, reduction
    from powerkern._jit.entries import Entry
    from powerkern._jit.intrinsics import (
        add_powers,
        aligned,
        bits32_of,
        bits_of,
        borrowed,
        exchange,
        fetch,
        fetch_add,
        float32_of,
        float_of,
        fma,
        pack_eight,
        pack_every_other,
        pause,
        prefetch,
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
    from powerkern._jit.settings import JIT_DISABLED
    from powerkern._jit.signatures import (
        BLOCKS,
        BOOLEAN,
        COLUMN,
        COLUMN32,
        COUNTS,
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
except ImportError as error:  # some of it comes from numba's private modules, which a release may move
    if error.name == "numba":
        raise
    import numba

    raise ImportError(
        f"numba {numba.__version__} has moved what this powerkern uses ({error}): install a newer powerkern, or pip "
        "install 'numba<0.69'"
    ) from error

__all__ = [
    "BLOCKS",
    "BOOLEAN",
    "COLUMN",
    "COLUMN32",
    "COUNTS",
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
    "any_lane",
    "bits32_of",
    "bits_of",
    "borrowed",
    "by_dtype",
    "compiled_as",
    "cpu_levels",
    "entry",
    "exchange",
    "fetch",
    "fetch_add",
    "first_lanes",
    "float32_of",
    "float_of",
    "fma",
    "for_none",
    "in_all_lanes",
    "in_lanes_of",
    "inlined",
    "inlined_as",
    "kernel",
    "load",
    "named_tuple",
    "numbers_of",
    "pack_eight",
    "pack_every_other",
    "pause",
    "prefetch",
    "reduction",
    "runnable_cpus",
    "select",
    "square_root",
    "store",
    "sum_of_lanes",
    "widest_vectors",
    "width_of",
    "writable_folder",
]
