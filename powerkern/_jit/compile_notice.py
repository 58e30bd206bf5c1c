"""Tell the user that kernels are being compiled: on a terminal, in a notebook, and in the log."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Iterator

#: Seconds of compiling without a message.
SILENCE = 2.0
#: Seconds of compiling since the last message.
_silent = 0.0
#: Whether the long message has been shown; later messages are short.
_explained = False


@contextlib.contextmanager
def announce_if_slow(kernel: str) -> Iterator[None]:
    """Tell the user that this kernel is being compiled, if compiling within the context takes long."""
    global _silent
    said = threading.Event()
    timer = threading.Timer(max(SILENCE - _silent, 0.0), _say, (kernel, said))
    timer.daemon = True
    start = time.monotonic()
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        _silent = 0.0 if said.is_set() else _silent + time.monotonic() - start


def _say(kernel: str, said: threading.Event) -> None:
    global _explained
    said.set()
    text = f"powerkern: compiling {kernel}"
    if not _explained:
        text += (
            " for this computer, once, which takes 2 to 20 seconds; "
            "python -m powerkern compile, or a wheel with compiled code, does so in advance"
        )
    _explained = True
    logging.getLogger("powerkern").info(text)
    with contextlib.suppress(Exception):  # a failing message must not stop a fit
        if _in_a_notebook():
            from IPython.display import display

            display({"text/plain": text}, raw=True)
        elif sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write(text + "\n")
            sys.stderr.flush()


def _in_a_notebook() -> bool:
    """Return whether this process is a Jupyter kernel; False if IPython has not been imported."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return hasattr(shell, "kernel")
