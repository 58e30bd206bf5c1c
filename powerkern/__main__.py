"""The command line: ``python -m powerkern demo | fit | summary | transform | inverse | outliers | plot | ...``.

Arguments are checked before anything slow is imported.
"""

from __future__ import annotations

import _thread
import functools
import importlib
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from powerkern._cli.output import abandon, complain
from powerkern._cli.parser import parser

if TYPE_CHECKING:  # PyInstaller and its like find the modules of commands here
    from powerkern._cli import apply, compiling, demo, fit, info, outliers, plot  # noqa: F401


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    The code is 0 after success. It is 1 if standard output cannot be written to (without a message if the program that
    reads it, such as head or less, has exited). It is 2 for bad input or a file that cannot be written, 130 after
    Ctrl-C, 143 after SIGTERM and 129 after SIGHUP.
    """
    if getattr(sys, "frozen", False):  # an application that carries its own Python: `compile` starts it as a worker
        import multiprocessing

        multiprocessing.freeze_support()
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
    """Run the command and return the exit code; the caller handles errors of standard output."""
    try:
        args = parser().parse_args(argv)
    except SystemExit as stop:  # --help and --version, or a command that does not exist
        return int(stop.code or 0)
    module, name = args.run.split(":")
    from powerkern._input.tables.table import BadInput

    with warnings.catch_warnings(), _ctrl_c_while_compiling(), _interrupts_by_signal() as received:
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
            complain(f"powerkern {args.command}: {'terminated' if received else 'interrupted'}")
            # if the last call of exec or eval was interrupted, CPython exits by the signal and ignores our exit code
            exec("")
            return 128 + (received[0] if received else signal.SIGINT)
    return 0


@contextmanager
def _interrupts_by_signal() -> Iterator[list[int]]:
    """Raise KeyboardInterrupt on SIGTERM and SIGHUP in this context, so that unfinished files are removed.

    Schedulers and closed terminals send these signals. Yield the list of the signals received. Handlers that other code
    has installed are not replaced.
    """
    received: list[int] = []

    def interrupt(number: int, _: Any) -> None:
        received.append(number)
        raise KeyboardInterrupt

    handled = []
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):  # Windows has no SIGHUP
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, interrupt)
                handled.append(number)
    try:
        yield received
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def _ctrl_c_while_compiling() -> Iterator[None]:
    """Raise KeyboardInterrupt again, in this context, if it was raised and lost inside one of LLVM's callbacks."""
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
    """Return a `showwarning` function that prints each message once, even if reading a file twice issues it twice."""
    once = functools.cache(complain)

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        from powerkern._cli.reading import AS_OPTIONS

        once(f"powerkern: warning: {AS_OPTIONS.reword(str(message))}")

    return show


if __name__ == "__main__":
    sys.exit(main())
