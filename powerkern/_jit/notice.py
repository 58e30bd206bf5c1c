"""Says on a terminal, once, why nothing happens while kernels compile."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator

#: Seconds of compiling that are passed over in silence.
SILENCE = 3.0
#: Whether it has been said in this process.
_said: list[bool] = []


@contextlib.contextmanager
def of_long_compiling(compiles: bool) -> Iterator[None]:
    """Say so if what is done here `compiles` and takes long; in a log, a notebook or a pipe nothing is ever said."""
    if not compiles or _said or not _on_a_terminal():
        yield
        return
    timer = threading.Timer(SILENCE, _say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _on_a_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _say() -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(
            "powerkern: compiling for this computer, which is done once and can take a minute "
            "(beforehand: python -m powerkern compile)\n"
        )
        sys.stderr.flush()
    _said.append(True)
