"""Warnings, attributed to the line that called the package."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings

#: Frames of these files are passed over: those of the package, and those that enter its context managers.
_OWN = (os.path.dirname(os.path.dirname(__file__)) + os.sep, contextlib.__file__)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as of the innermost line outside the package, however deep inside the trouble was noticed."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
