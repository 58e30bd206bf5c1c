"""Run ``powerkern info``: print the facts that belong in a bug report."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import sys
from pathlib import Path
from typing import Any

import powerkern as pk
from powerkern._cli.output import print_json
from powerkern._engine.cpus import cpu_quota, usable_cpus
from powerkern._engine.threads import default_threads
from powerkern.kernels.compilation import JIT_DISABLED, runnable_cpus, writable_folder

#: Required and optional dependencies.
_PACKAGES = (
    "numpy", "numba", "llvmlite", "scipy", "scikit-learn", "pandas", "polars", "pyarrow", "dask", "matplotlib",
    "formulaic", "flwr", "tqdm",
)  # fmt: skip
#: Environment variables that affect the code or its speed.
_VARIABLES = ("NUMBA_", "POWERKERN_", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def run(args: argparse.Namespace) -> None:
    """Print versions, CPU, threads and compiled code, as text or as JSON."""
    facts = information()
    if args.json:
        print_json(facts)
        return
    for title, entries in facts.items():
        print(title)
        for name, value in entries.items():
            print(f"  {name:<20}{_text(value)}".rstrip())


def information() -> dict[str, dict[str, Any]]:
    """Return the facts for a bug report, grouped under headings."""
    return {
        "powerkern": {"version": pk.__version__, "folder": str(Path(pk.__file__).parent)},
        "system": {
            "python": f"{platform.python_implementation()} {platform.python_version()}",
            "executable": sys.executable,
            "platform": platform.platform(),
        },
        "packages": {name: _version(name) for name in _PACKAGES},
        "cpu": _cpu(),
        "threads": {
            "default": default_threads(),
            "usable CPUs": usable_cpus(),
            "CPUs": os.cpu_count(),
            "quota": cpu_quota() if cpu_quota() < float("inf") else None,
            "layer": "Python threads that run code without the GIL; numba's threading layer is not used",
        },
        "compiled code": _compiled_code(),
        "environment": {name: os.environ[name] for name in sorted(os.environ) if name.startswith(_VARIABLES)},
    }


def _cpu() -> dict[str, Any]:
    """Return the name of the CPU and its instruction sets."""
    if JIT_DISABLED:
        return {"name": platform.processor() or platform.machine(), "compiler": "switched off by NUMBA_DISABLE_JIT"}
    here, *shared = runnable_cpus()
    features = sorted(feature[1:] for feature in here.features.split(",") if feature.startswith("+"))
    return {"name": here.name, "instruction sets": [cpu.name for cpu in shared], "features": features}


def _compiled_code() -> dict[str, Any]:
    """Return the folder of compiled code, the number of its files and their size in bytes."""
    try:
        folder = writable_folder()
    except OSError as error:
        return {"folder": None, "reason": str(error)}
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return {"folder": str(folder), "files": len(sizes), "bytes": sum(sizes)}


def _version(package: str) -> str | None:
    """Return the version of an installed package, or None if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _text(value: object) -> str:
    """Format a fact as text: lists joined by spaces, None as "-"."""
    if isinstance(value, list):
        return " ".join(value)
    return "-" if value is None else str(value)
