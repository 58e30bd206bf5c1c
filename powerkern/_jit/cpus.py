"""Name the CPU types that code is compiled for, and find those whose code this machine can run.

Code is compiled for this machine's CPU, or for an instruction set that many CPUs have (set by
``NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES=``). A wheel or a shared disk may hold code for several instruction sets;
every machine uses the best one that it can run.
"""

from __future__ import annotations

import functools
import os
import re
from typing import NamedTuple

import llvmlite.binding as llvm

_V2 = frozenset(["cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"])
_V3 = _V2 | frozenset(["avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"])
_V4 = _V3 | frozenset(["avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"])
#: The levels of the x86-64 psABI, best first: LLVM's name for each, and for the features that it requires.
_X86_LEVELS = {"x86-64-v4": _V4, "x86-64-v3": _V3, "x86-64-v2": _V2, "x86-64": frozenset[str]()}


class Cpu(NamedTuple):
    """A compilation target: LLVM's name for a CPU type, and features required beyond those that the name implies."""

    name: str
    features: str = ""


def this_cpu() -> Cpu:
    """Return the compilation target: this machine's CPU, unless NUMBA_CPU_NAME and NUMBA_CPU_FEATURES override it."""
    here = _host()
    return Cpu(os.environ.get("NUMBA_CPU_NAME", here.name), os.environ.get("NUMBA_CPU_FEATURES", here.features))


@functools.cache
def _host() -> Cpu:
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM cannot detect them
        features = ""
    return Cpu(llvm.get_host_cpu_name(), features)


def platform() -> str:
    """Return LLVM's name for the architecture and operating system, without the version of the system."""
    return re.sub(r"(darwin|macosx)[\d.]+$", r"\1", llvm.get_process_triple())


def levels() -> dict[str, frozenset[str]]:
    """Return the instruction sets for which machines can share code, best first, and the CPU features of each."""
    return _X86_LEVELS if platform().startswith("x86_64") else {"generic": frozenset()}


def runnable() -> list[Cpu]:
    """Return the targets whose code this CPU can run, best first: the CPU itself, then its x86-64 levels."""
    here = this_cpu()
    has = {feature[1:] for feature in here.features.split(",") if feature.startswith("+")}
    shared = [Cpu(level) for level, needs in levels().items() if needs <= has]
    return [here, *(cpu for cpu in shared if cpu != here)]
