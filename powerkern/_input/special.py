"""Functions of `scipy.special`, which is imported when the first is called: that takes a third as long as powerkern.

A fork waits while a thread imports it. Otherwise its child would inherit the lock of an import that nobody finishes.
"""

from __future__ import annotations

import functools
import os
import threading
from typing import Any

_importing = threading.RLock()


def __getattr__(name: str) -> Any:
    _make_forks_wait()
    with _importing:
        import scipy.special
    return getattr(scipy.special, name)


@functools.cache
def _make_forks_wait() -> None:
    """Before a fork takes any other lock, which the import may need: the hook that is registered last runs first."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=_importing.acquire, after_in_parent=_importing.release, after_in_child=_importing.release
        )
