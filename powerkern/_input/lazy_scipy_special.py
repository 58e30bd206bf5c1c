"""Functions of `scipy.special`, imported at first use because that takes a third of powerkern's import time."""

from __future__ import annotations

import functools
from typing import Any

from powerkern._fork_lock import make_forks_wait
from powerkern._input.importing import import_late

_make_forks_wait = functools.cache(make_forks_wait)


def __getattr__(name: str) -> Any:
    _make_forks_wait()
    return getattr(import_late("scipy.special"), name)
