"""Run every benchmark once, with the first parameters that it does not skip.

With all parameters asv takes hours; ``python -m asv_benches.once`` shows in minutes that no benchmark is broken.
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Any

import asv_benches
from asv_benches._measure import InTurns

#: Methods that asv runs begin with one of these.
KINDS = ("time_", "track_", "peakmem_")


def benchmarks() -> Iterator[type]:
    """Yield the classes of all benchmark files."""
    for module in pkgutil.iter_modules(asv_benches.__path__, "asv_benches."):
        if module.name.startswith("asv_benches.bench_"):
            for thing in list(vars(importlib.import_module(module.name)).values()):
                if isinstance(thing, type) and thing.__module__ == module.name and methods(thing):
                    yield thing


def methods(kind: type) -> list[str]:
    """Return the names of the measurements of a class."""
    return [name for name in dir(kind) if name.startswith(KINDS)]


def combinations(kind: Any) -> Iterator[tuple[Any, ...]]:
    """Return the combinations of parameters, in the order in which asv takes them."""
    params = getattr(kind, "params", ())
    return itertools.product(*(params if all(isinstance(each, list | tuple) for each in params) else [params]))


def run(kind: type) -> bool:
    """Run all measurements of a class with the first parameters that none of them skips; return whether any exist."""
    for values in combinations(kind):
        benchmark = kind()
        try:
            getattr(benchmark, "setup", lambda *_: None)(*values)
            for name in methods(kind):
                getattr(benchmark, name)(*values)
        except NotImplementedError:  # asv skips these parameters
            continue
        return True
    return False


def main() -> int:
    """Run all benchmarks; return the number of failures."""
    InTurns.seconds = 0.0
    failed = 0
    for kind in benchmarks():
        start = time.perf_counter()
        try:
            done = "" if run(kind) else " (skipped)"
        except Exception:
            traceback.print_exc()
            failed, done = failed + 1, " FAILED"
        print(f"{time.perf_counter() - start:6.1f} s  {kind.__module__}.{kind.__name__}{done}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
