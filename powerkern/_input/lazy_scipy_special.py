"""Functions of `scipy.special`, imported at first use, because the import takes a third of powerkern's import time."""

from __future__ import annotations

from typing import Any

from powerkern._input.importing import import_late


def __getattr__(name: str) -> Any:
    return getattr(import_late("scipy.special"), name)
