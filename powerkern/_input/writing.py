"""Write files so that a reader never sees an incomplete one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file next to `path`, which it replaces when the context ends without an error.

    Until then, and after an error (a full disk, Ctrl-C), the old file remains. Permissions are preserved. If `path` is
    a device or a pipe, it is written directly.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        yield path
        return
    part = path.with_name(f".{os.getpid()}-{path.name}")  # the suffix stays: libraries go by it
    try:
        yield part
        if path.exists():
            shutil.copymode(path, part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
