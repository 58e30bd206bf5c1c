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
``specialize_on_none``
    Gives a kernel a twin for calls whose first argument is None.
``compiled_as``
    Says which kernel stands for a public Python function inside jitted code.

The modules, from the call of an entry downwards:

* `entries`: an entry finds its machine code, or has it compiled, when Python first calls it;
* `interface`: the types of an entry's arguments, and how Python hands them to machine code;
* `code_cache`: object files on disk, in a folder for the sources and for one of `cpus`; `files` reads and writes them;
* `marks`: the decorators. None of the modules above imports numba;
* `object_code`: compiles an entry with numba and LLVM, and `compile_notice` tells the user;
* `numba_extension`: shows marked functions to numba;
* `llvm_arguments`: reads arguments in machine code; `llvm_intrinsics` and `llvm_lanes` lower `intrinsics`;
* `fast_lowering`: saves compile time with private parts of numba; `llvm_scalars` and `llvm_text` serve it.
"""

import sys

from powerkern._jit.entries import *  # noqa: F403
from powerkern._jit.interface import *  # noqa: F403
from powerkern._jit.intrinsics import *  # noqa: F403
from powerkern._jit.marks import *  # noqa: F403

if "numba" in sys.modules:  # where powerkern is installed, numba's entry point does this
    from powerkern._jit import numba_extension  # noqa: F401
