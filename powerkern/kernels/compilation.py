"""Registry of compiled entry points, the subset compiled by default, and the cache folder."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator

import powerkern.kernels
from powerkern._jit import JIT_DISABLED, Entry
from powerkern._jit.code_cache import writable_folder
from powerkern._jit.cpus import levels as cpu_levels
from powerkern._jit.cpus import runnable as runnable_cpus

__all__ = ["JIT_DISABLED", "USUAL", "cpu_levels", "entries", "runnable_cpus", "writable_folder"]

#: Modules and single entries compiled by default: for fit (mle and robust), transform, inverse transform and summary.
USUAL = (
    "fingerprint",
    "likelihood.lockstep",
    "likelihood.mle",
    "robust.adaptive_rewml",
    "transforms.gather",
    "transforms.matrix",
    "transforms.lambda_bounds",
    # summary()
    "normality.moments",
    "normality.plotting_positions",
    "location.location.proposal2_columns",
)


def entries(everything: bool = True) -> dict[str, Entry]:
    """Return the compiled entries by full name: all entries if `everything`, otherwise those compiled by default."""
    prefix = f"{powerkern.kernels.__name__}."
    walked = pkgutil.walk_packages(powerkern.kernels.__path__, prefix)
    names = (module.name.removeprefix(prefix) for module in walked if not module.ispkg)
    modules = list(names)
    usual = {name: entry for each in USUAL for name, entry in _find_entries(each, modules).items()}
    if not everything:
        return usual
    return usual | {name: entry for module in modules for name, entry in _find_entries(module, modules).items()}


def _find_entries(name: str, modules: list[str]) -> dict[str, Entry]:
    """Return the entries of a module, or a single entry, by full name.

    `name` is the name of the module or of the entry, without the prefix ``powerkern.kernels.``; `modules` lists the
    names of all modules with kernels.
    """
    if name not in modules:
        return {name: _find_entries(name.rpartition(".")[0], modules)[name]}
    module, path = name, f"{powerkern.kernels.__name__}.{name}"
    walked = [
        each for each in _iterate_entries(vars(importlib.import_module(path)).values()) if each.__module__ == path
    ]
    return {f"{module}.{entry.name}": entry for entry in walked}


def _iterate_entries(values: Iterable[object]) -> Iterator[Entry]:
    """Yield the entries among the given objects, including those inside dictionaries and tuples."""
    for each in values:
        if isinstance(each, Entry):
            yield each
        elif isinstance(each, (dict, tuple)):
            yield from _iterate_entries(each.values() if isinstance(each, dict) else each)
