"""Compiled code on disk: a folder for each state of the sources, numba and CPU, a file for each entry.

numba's own cache does not notice that a callee in another module was edited, or that one of numba's switches changes
the code; it trusts whatever file it finds, and unpickling a damaged one can end the process. So the folder's name
has a hash of all that the code depends on, and a file starts with a digest of its content: one that does not match
is compiled anew and replaced, never unpickled. Where the disk fails, the compiled code is used but not kept.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import pickle
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.serialize import dumps

from powerkern._jit import files, folders
from powerkern._jit.settings import ENTRY_OPTIONS, KERNEL_OPTIONS, REDUCTION_OPTIONS, code_switches

PACKAGE = Path(__file__).parents[1]
#: The modules whose entries are kept: those of which every source is in the folder's name.
_COMPILED = "powerkern.kernels."
_DIGEST_SIZE = hashlib.sha256().digest_size

#: Why compiled code could not be kept, and whether that has been reported.
_not_kept: list[str] = []
_said: list[bool] = []


# --- what the code depends on -------------------------------------------------------------------------


def compiled_sources() -> list[Path]:
    """Every source file that is compiled, or determines how."""
    compiled = [*PACKAGE.glob("kernels/**/*.py"), *PACKAGE.glob("_jit/**/*.py"), PACKAGE / "_status.py"]
    return sorted(compiled)


@functools.cache
def _source_hash() -> str:
    digest = hashlib.sha256()
    for path in compiled_sources():
        content = path.read_bytes()
        digest.update(f"{path.relative_to(PACKAGE).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def folder_name() -> str:
    """The name of the folder for this state of the sources, numba and its switches, Python and the CPU."""
    triple, cpu, features = cpu_target.target_context.codegen().magic_tuple()
    versions = numba.__version__, llvmlite.__version__, np.__version__, sys.implementation.cache_tag
    options = [sorted(map(str, _flat(options))) for options in (KERNEL_OPTIONS, REDUCTION_OPTIONS, ENTRY_OPTIONS)]
    state = _hash(f"{_source_hash()}{versions}{options}{code_switches()}{triple}")
    return f"powerkern-{state}-{re.sub('[^A-Za-z0-9_-]', '_', cpu)}-{_hash(features)[:8]}"


def _flat(options: dict[str, Any]) -> list[tuple[str, Any]]:
    """Options without sets, whose order changes from process to process."""
    return [(name, sorted(value) if isinstance(value, set) else value) for name, value in options.items()]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# --- reading and writing ------------------------------------------------------------------------------


class KeptCode:
    """The code of one entry on disk, in the form in which numba's dispatchers ask for it."""

    def __init__(self, name: str, payload: bytes | None, draft: files.Draft | None) -> None:
        self._name = name
        self._payload = payload
        self._draft = draft

    @property
    def cache_path(self) -> str:
        """The folder's name, for numba's statistics."""
        return folder_name()

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """What was kept, ready to run, or None."""
        if self._payload is None:
            return None
        target_context.refresh()
        try:
            return CompileResult._rebuild(target_context, *pickle.loads(self._payload))
        except Exception:  # numba's internals are not what they were: compile
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep what was compiled, if that can be done."""
        if self._draft is None:
            return
        try:
            payload = dumps(result._reduce())
            self._draft.publish(_digest(self._name, payload) + payload)
        except RuntimeError:  # Ctrl-C in the compiler, whose callbacks swallow it: there is nothing to keep
            return
        except Exception as error:  # the disk is full, or numba's internals have moved: the code is still good
            _not_kept.append(f"{self._name}: {error}")


@contextlib.contextmanager
def kept_code(function: Callable[..., Any]) -> Iterator[KeptCode]:
    """The code of an entry on disk; if there is none, the sole right to write it, once no other process holds that."""
    name = f"{function.__module__.removeprefix('powerkern.')}.{function.__qualname__}.code"
    if not function.__module__.startswith(_COMPILED):
        yield KeptCode(name, None, None)
        return
    payload = _read(name)
    with contextlib.ExitStack() as stack:
        draft = None
        if payload is None:
            draft = _draft(name, stack)
            payload = _read(name)  # written by another process meanwhile
        yield KeptCode(name, payload, draft)


def _places() -> list[Path]:
    return [base / folder_name() for base in folders.bases()]


def _read(name: str) -> bytes | None:
    """The pickled code of an entry from the first folder that has it, undamaged."""
    for folder in _places():
        try:
            content = files.read(folder / name)
        except OSError:
            continue
        payload = content[_DIGEST_SIZE:]
        if content[:_DIGEST_SIZE] == _digest(name, payload):
            return payload
    return None


def _draft(name: str, stack: contextlib.ExitStack) -> files.Draft | None:
    """A draft in the first folder that can be written to, or None."""
    reasons = []
    for folder in _places():
        try:
            return stack.enter_context(files.draft(folder / name))
        except OSError as error:
            reasons.append(f"{folder.parent}: {error.strerror or error}")
    _not_kept.extend(reasons)
    return None


def _digest(name: str, payload: bytes) -> bytes:
    """Shows that a file is intact, and belongs to this entry."""
    return hashlib.sha256(name.encode() + b"\0" + payload).digest()


def warn_once_if_not_kept() -> None:
    """Warn, once per process, that every process has to compile anew, and why."""
    if _not_kept and not _said:
        _said.append(True)
        warnings.warn(
            f"powerkern cannot keep its compiled code, so every process compiles it anew ({'; '.join(_not_kept)}). "
            "Set NUMBA_CACHE_DIR to the absolute path of a folder that only you can write to.",
            RuntimeWarning,
            stacklevel=2,
        )
