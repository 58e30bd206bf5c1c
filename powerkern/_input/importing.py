"""Imports at first use, during which forks wait."""

from __future__ import annotations

import importlib
from types import ModuleType

from powerkern._fork_lock import no_fork


def import_late(name: str) -> ModuleType:
    """Import and return a module, while no fork is in progress."""
    with no_fork():
        return importlib.import_module(name)
