"""How wide the vectors are that LLVM makes of loops."""

from __future__ import annotations

from typing import Any


def prefer_widest_vectors(function: Any) -> None:
    """Let a function have the CPU's widest vectors: LLVM prefers 256 bits where there are 512, slower by up to 1.6."""
    # llvmlite knows no string attributes: slip past its whitelist, the printed IR is valid LLVM
    set.add(function.attributes, '"prefer-vector-width"="512"')
