"""LLVM's code as text, one function at a time, as `fast_lowering` keeps kernels and joins them for an entry."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from llvmlite import ir

#: Definitions, and declarations, by name.
Texts: TypeAlias = tuple[dict[str, str], dict[str, str]]


def split_definitions(module: Any) -> Texts:
    """Return the functions and variables of an llvmlite module."""
    texts: Texts = {}, {}
    for name, value in module.globals.items():
        is_declared = isinstance(value, ir.Function) and value.is_declaration
        if isinstance(value, ir.Function) and not is_declared:
            value.linkage = "linkonce_odr"  # others may hold the same function
        # without notes of how likely branches are, by numbers that mean nothing in another module
        texts[is_declared][name] = re.sub(r", !\w+ !\d+", "", str(value))
    return texts


def joined(head: str, texts: list[Texts]) -> str:
    """Return the code of a module that has each function once."""
    defined, declared = ({name: text for each in texts for name, text in each[k].items()} for k in (0, 1))
    return "\n".join([head, *defined.values(), *(text for name, text in declared.items() if name not in defined)])
