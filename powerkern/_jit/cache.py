"""Compiled code on disk: a folder for each state of the sources and numba and each CPU, a file for each entry.

numba's own cache does not notice that a callee in another module was edited, or that one of numba's switches changes
the code; it trusts whatever file it finds, and unpickling a damaged one can end the process. So the folder's name
has a hash of all that the code depends on, and a file starts with a digest of its content: one that does not match
is compiled anew and replaced, never unpickled. Where the disk fails, the compiled code is used but not kept.

What a CPU has compiled for itself goes before what a wheel, or another machine, has compiled for all that have the
same instruction set (see `cpus`).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import pickle
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from powerkern._input.messages import warn
from powerkern._jit import cpus, files, folders
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


def folder_name(cpu: cpus.Cpu | None = None) -> str:
    """The name of the folder for this state of the sources, numba and its switches, and Python; for this CPU or one."""
    name, features = cpu or cpus.this_cpu()
    return f"powerkern-{_state()}-{re.sub('[^A-Za-z0-9_-]', '_', name)}-{_hash(features)[:8]}"


def _state() -> str:
    versions = numba.__version__, llvmlite.__version__, np.__version__, sys.implementation.cache_tag
    options = [sorted(map(str, _flat(options))) for options in (KERNEL_OPTIONS, REDUCTION_OPTIONS, ENTRY_OPTIONS)]
    return _hash(f"{_source_hash()}{versions}{options}{code_switches()}{cpus.platform()}")


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
        #: Why what was compiled could not be kept.
        self.failure: str | None = None

    @property
    def is_there(self) -> bool:
        """Whether there is something to load."""
        return self._payload is not None

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
            self.failure = f"{self._name}: {error}"
            _not_kept.append(self.failure)


def file_name(function: Callable[..., Any]) -> str:
    """The name of the file with the code of an entry."""
    return f"{function.__module__.removeprefix('powerkern.')}.{function.__qualname__}.code"


@contextlib.contextmanager
def kept_code(function: Callable[..., Any]) -> Iterator[KeptCode]:
    """The code of an entry on disk; if there is none, the sole right to write it, once no other process holds that."""
    name = file_name(function)
    if not function.__module__.startswith(_COMPILED):
        yield KeptCode(name, None, None)
        return
    payload = _read(name)
    with contextlib.ExitStack() as stack:
        draft = None
        if payload is None:
            try:
                _, draft = _draft(name, stack)
            except OSError as error:
                _not_kept.append(str(error))
            payload = _read(name)  # written by another process meanwhile
        yield KeptCode(name, payload, draft)


@contextlib.contextmanager
def code_kept_in(folder: Path, function: Callable[..., Any]) -> Iterator[KeptCode]:
    """The code of an entry in one folder, there or to be written; OSError where it cannot be."""
    name = file_name(function)
    with files.draft(folder / name) as draft:
        yield KeptCode(name, _payload(name, folder, files.read), draft)


def writable_folder() -> Path:
    """Where code compiled now is kept; OSError, with the reasons, where nothing can be."""
    with contextlib.ExitStack() as stack:
        folder, trial = _draft("trial", stack)
        trial.discard()
    return folder


def _places() -> list[Path]:
    """The folders for code compiled here."""
    return [base / folder_name() for base in folders.bases()]


def _read(name: str) -> bytes | None:
    """The pickled code of an entry from the first folder that has it for this CPU, or one that it covers, undamaged."""
    for cpu in cpus.runnable():
        folder = folder_name(cpu)
        for base in folders.bases():
            payload = _payload(name, base / folder, files.read)
            if payload is not None:
                return payload
        payload = _payload(name, folders.INSTALLED / folder, Path.read_bytes)
        if payload is not None:
            return payload
    return None


def _payload(name: str, folder: Path, read: Callable[[Path], bytes]) -> bytes | None:
    """The pickled code of an entry from one folder; None if it is not there, not to be trusted or damaged."""
    try:
        content = read(folder / name)
    except OSError:
        return None
    payload = content[_DIGEST_SIZE:]
    return payload if content[:_DIGEST_SIZE] == _digest(name, payload) else None


def _draft(name: str, stack: contextlib.ExitStack) -> tuple[Path, files.Draft]:
    """The first folder that can be written to and a draft in it; OSError, with the reasons, where there is none."""
    reasons = []
    for folder in _places():
        try:
            return folder, stack.enter_context(files.draft(folder / name))
        except OSError as error:
            reasons.append(f"{folder.parent}: {error.strerror or error}")
    raise OSError("; ".join(reasons))


def _digest(name: str, payload: bytes) -> bytes:
    """Shows that a file is intact, and belongs to this entry."""
    return hashlib.sha256(name.encode() + b"\0" + payload).digest()


def warn_once_if_not_kept() -> None:
    """Warn, once per process, that every process has to compile anew, and why."""
    if _not_kept and not _said:
        _said.append(True)
        warn(
            f"powerkern cannot keep its compiled code, so every process compiles it anew ({'; '.join(_not_kept)}). "
            "Set NUMBA_CACHE_DIR to the absolute path of a folder that only you can write to.",
            RuntimeWarning,
        )
