"""Standard output and error where they cannot be written to."""

from __future__ import annotations

import os
import sys
from typing import TextIO


def complain(message: str) -> None:
    """A line on standard error, unless that cannot be written to either."""
    try:
        print(message, file=sys.stderr, flush=True)
    except OSError:
        abandon(sys.stderr)


def abandon(stream: TextIO) -> None:
    """Lead a stream that cannot be written to nowhere: the interpreter would complain of what is left in its buffer."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
