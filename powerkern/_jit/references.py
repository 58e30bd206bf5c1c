"""References to memory: counted by numba's functions, or, inside entries that allocate nothing, not at all.

numba counts a reference more and a reference less for every array that is taken out of a tuple, and for every part of
one. In code that works on many small arrays the calls took a third of the time, though what entries are given is kept
alive by whoever calls them. Kernels and entries therefore count by functions of ours, which call numba's; an entry
whose code allocates nothing, and returns no array, has empty ones in their place. What Python calls an entry by counts
as ever: it owns a reference to each argument.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as ll
from llvmlite.binding import Linkage
from numba import config
from numba.core import cgutils

#: Our functions, and those of numba that they call; none where numba reports what it counts, by other arguments.
_COUNTERS = {} if config.DEBUG_NRT else {"powerkern_incref": "NRT_incref", "powerkern_decref": "NRT_decref"}
#: How the functions of numba's run time begin that allocate memory.
_ALLOCATORS = ("NRT_MemInfo_alloc", "NRT_MemInfo_new", "NRT_Allocate", "NRT_Reallocate")


def counting(ir_module: Any) -> Any:
    """The code of a function, which counts references by our functions."""
    text = cgutils.normalize_ir_text(str(ir_module))
    for ours, numbas in _COUNTERS.items():
        text = text.replace(numbas, ours)
    return ll.parse_assembly(text)


def counters() -> Any:
    """The code of our functions, for callers of any kind."""
    return ll.parse_assembly(
        "".join(
            f"declare void @{numbas}(ptr)\n"
            f"define linkonce_odr void @{ours}(ptr %p) alwaysinline {{ call void @{numbas}(ptr %p)\n ret void }}\n"
            for ours, numbas in _COUNTERS.items()
        )
    )


def count_no_more(module: Any) -> None:
    """Empty functions in place of ours, unless some of the code allocates."""
    if any(each.name.startswith(_ALLOCATORS) for each in module.functions):
        return
    module.link_in(
        ll.parse_assembly("".join(f"define void @{ours}(ptr %p) alwaysinline {{ ret void }}\n" for ours in _COUNTERS))
    )
    for each in module.functions:
        if each.name in _COUNTERS:
            each.linkage = Linkage.private
