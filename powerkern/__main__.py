"""The command line: ``python -m powerkern demo | fit | summary | transform | inverse | outliers | plot | ...``.

Words are checked before anything slow is imported.
"""

from __future__ import annotations

import _thread
import functools
import importlib
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from powerkern._cli.output import abandon, complain
from powerkern._cli.parser import parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code.

    0: done. 1: standard output could not be written to; silently if its reader (head, less) has gone.
    2: bad input, or a file that could not be written. 130: interrupted.
    """
    try:
        code = _run(argv)
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        abandon(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            complain(f"powerkern: cannot write to standard output: {error.strerror or error}")
        return 1
    return code


def _run(argv: Sequence[str] | None) -> int:
    """Carry out the command; the caller handles output that cannot be written."""
    try:
        args = parser().parse_args(argv)
    except SystemExit as stop:  # --help and --version, or a command that does not exist
        return int(stop.code or 0)
    module, name = args.run.split(":")
    from powerkern._input.tables.table import BadInput

    with warnings.catch_warnings(), _ctrl_c_while_compiling():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _warned_once()
        try:
            getattr(importlib.import_module(f"powerkern._cli.{module}"), name)(args)
        except BadInput as error:
            complain(f"powerkern {args.command}: {error}")
            return 2
        except MemoryError:
            complain(f"powerkern {args.command}: the data do not fit into memory; use fewer rows or --columns")
            return 2
        except KeyboardInterrupt:
            complain(f"powerkern {args.command}: interrupted")
            return 130
    return 0


@contextmanager
def _ctrl_c_while_compiling() -> Iterator[None]:
    """Repeat a KeyboardInterrupt that was raised inside one of LLVM's callbacks and lost there."""
    previous = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            threading.Timer(0.05, _thread.interrupt_main).start()
        else:
            previous(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = previous


def _warned_once() -> Callable[..., None]:
    """A `showwarning` that prints each warning once: a file that is read several times repeats its warnings."""
    once = functools.cache(complain)

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        once(f"powerkern: warning: {message}")

    return show


if __name__ == "__main__":
    sys.exit(main())
