"""Counts of the calls of a kernel that runs as plain Python."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest


def count_calls(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str) -> list[int]:
    """Count the calls of the function `name` of a module from now on; return a list that holds their number."""
    count, function = [0], getattr(module, name)

    def counting(*arguments: Any) -> Any:
        count[0] += 1
        return function(*arguments)

    monkeypatch.setattr(module, name, counting)
    return count
