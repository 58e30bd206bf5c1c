"""Compile kernels: decorators that mark functions, and a disk cache of machine code as plain object files.

``kernel``
    A numeric function that jitted code (ours, or a user's ``@njit`` function) may call, and that is then inlined.
    Called from Python it is a plain function, which a debugger can step through.
``inlined``
    A kernel that LLVM must inline at every call, whatever its size: for scalar functions in hot loops, which
    vectorise only then.
``reduction``
    A kernel whose sums may be re-associated, so that LLVM vectorises them. Nothing else in the package
    may be re-associated: the rounding tricks of `powerkern.kernels.elementary.exp` would break.
``entry``
    An outer function that Python calls. It has one explicit signature, releases the GIL, and is cached on disk. Its
    first call loads or compiles it; importing it does not.
``by_dtype``
    Give a kernel of one argument a float32 version.
``specialize_on_none``
    Give a kernel another version for calls whose first argument is None.
``compiled_as``
    Name the kernel that replaces a public Python function inside jitted code.

The modules, from the call of an entry downwards:

* `entries`: find the machine code of an entry, or compile it, when Python first calls it;
* `interface`: the types of an entry's arguments, and how Python passes them to machine code;
* `code_cache`: object files on disk, one folder per CPU type (`cpus`), named by a hash of the sources (`source_keys`);
  `files` reads and writes them;
* `marks`: the decorators. None of the modules above imports numba;
* `object_code`: compiles an entry with numba and LLVM, and `compile_notice` tells the user;
* `numba_extension`: registers marked functions with numba;
* `llvm_arguments`: reads arguments in machine code; `llvm_intrinsics` and `llvm_lanes` lower `intrinsics`;
* `fast_lowering`: saves compile time by replacing private parts of numba; it uses `llvm_scalars` and `llvm_text`.
"""

import sys

from powerkern._jit.entries import *  # noqa: F403
from powerkern._jit.interface import *  # noqa: F403
from powerkern._jit.intrinsics import *  # noqa: F403
from powerkern._jit.marks import *  # noqa: F403

if "numba" in sys.modules:  # where powerkern is installed, numba's entry point does this
    from powerkern._jit import numba_extension  # noqa: F401
