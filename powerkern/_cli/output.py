"""Functions that print to standard output and standard error. This module imports nothing slow."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from typing import TextIO


def complain(message: str) -> None:
    """Print a line to standard error, or do nothing if standard error is closed."""
    try:
        print(message, file=sys.stderr, flush=True)
    except OSError:
        abandon(sys.stderr)


def abandon(stream: TextIO) -> None:
    """Redirect a broken stream to the null device, so that flushing it at exit does not raise an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    print(json.dumps(value, indent=2, allow_nan=False, default=str))


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: set[int]) -> None:
    """Print rows of cells below a header and a rule; columns whose positions are in `left` are left-aligned."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, ["-" * width for width in widths], *rows):
        cells = (
            f"{cell:<{width}}" if j in left else f"{cell:>{width}}"
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join(cells).rstrip())


def plural(n: int, noun: str) -> str:
    """Return a count with its noun in the singular or plural: "1 column", "2 columns"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def finite(value: float) -> float | None:
    """Return a finite value unchanged and None for any other, because JSON has no infinities."""
    return float(value) if math.isfinite(value) else None


def short(value: float | None, log_factor: float | None = None) -> str:
    """Format ``value * exp(log_factor)`` to six significant digits; the product may be outside the range of float64."""
    if value is None:
        return ""
    if not log_factor or not value:
        return f"{value:.6g}"
    digits, exponent = f"{value:.15e}".split("e")
    rest, whole = math.modf(log_factor / math.log(10))
    return f"{float(digits) * 10**rest:.6g}e{int(exponent) + int(whole):+}"
