"""Split LLVM modules into the text of single functions, and join these texts into the module of an entry."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from llvmlite import ir

#: The text of definitions, and of declarations, both keyed by name.
Texts: TypeAlias = tuple[dict[str, str], dict[str, str]]


def split_definitions(module: Any) -> Texts:
    """Return the text of each function and variable of an llvmlite module."""
    texts: Texts = {}, {}
    for name, value in module.globals.items():
        is_declared = isinstance(value, ir.Function) and value.is_declaration
        if isinstance(value, ir.Function) and not is_declared:
            value.linkage = "linkonce_odr"  # another module may define the same function
        # drop metadata such as branch weights: its numbers mean nothing in another module
        texts[is_declared][name] = re.sub(r", !\w+ !\d+", "", str(value))
    return texts


def join_texts(head: str, texts: list[Texts]) -> str:
    """Return the text of a module that begins with `head` and contains each function once."""
    defined, declared = ({name: text for each in texts for name, text in each[k].items()} for k in (0, 1))
    return "\n".join([head, *defined.values(), *(text for name, text in declared.items() if name not in defined)])
