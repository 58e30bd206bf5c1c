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

`marks` has the decorators, and `entries` the entries. These are called through an `interface`, which declares the types
of their arguments; their machine code is an object file that `disk` has for one of `cpus`, or for all that cover it, in
`files` that can be trusted. None of these imports numba. Where something must be compiled, `object_code` does it (a
`notice` says so): `numba_extension` shows kernels to numba, and `llvm_arguments`, `llvm_intrinsics` and `llvm_lanes`
lower arguments and `intrinsics`, which plain numba lacks. `deferral` alone uses private parts of numba, to save time;
`llvm_numbers` and `llvm_text` serve it.
"""

import sys

from powerkern._jit.entries import *  # noqa: F403
from powerkern._jit.interface import *  # noqa: F403
from powerkern._jit.intrinsics import *  # noqa: F403
from powerkern._jit.marks import *  # noqa: F403

if "numba" in sys.modules:  # where powerkern is installed, numba's entry point does this
    from powerkern._jit import numba_extension  # noqa: F401
