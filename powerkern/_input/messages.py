"""Warnings, attributed to the line that called the package, and suggestions for words that are misspelled."""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextvars import ContextVar

#: Frames to skip: the package's own, and contextlib's, which enter its context managers.
_OWN = (os.path.dirname(os.path.dirname(__file__)) + os.sep, contextlib.__file__)


_muted: ContextVar[bool] = ContextVar("muted", default=False)


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """Suppress the package's own warnings; unlike `warnings.catch_warnings`, in this thread only."""
    token = _muted.set(True)
    try:
        yield
    finally:
        _muted.reset(token)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as of the innermost line outside the package, however deep inside the trouble was noticed."""
    if _muted.get():
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: the nearest known one, also by its initials; "" if none is near."""
    plain = {_plain(each): each for each in known}
    initials = {"".join(part[0] for part in each.split() if part): each for each in plain}
    asked = _plain(str(word))
    near = difflib.get_close_matches(asked, plain, n=3, cutoff=0.65)
    near.sort(key=lambda each: not each.startswith(asked))
    found = asked if asked in plain else initials.get(asked, near[0] if near else None)
    return "" if found is None else f"; did you mean {plain[found]!r}?"


def _plain(word: str) -> str:
    """A word without capitals and marks."""
    return " ".join(word.lower().replace("_", " ").replace("-", " ").split())
