"""Machine code on disk: a folder for each state of the sources and each CPU, an object file for each entry.

The folder's name has a hash of everything that determines the code: the sources of kernels, and of their compilation.
It depends on no version of Python, NumPy, numba or LLVM. A file starts with a digest of its content; one that does not
match is compiled anew and replaced. Where the disk fails, code is used but not kept.

Code compiled for this very CPU goes before code that a wheel, or another machine, has for all CPUs with the same
instruction set (see `cpus`).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from powerkern._input.messages import warn
from powerkern._jit import cpus, files
from powerkern._jit.interface import HEADER

PACKAGE = Path(__file__).parents[1]
#: Compiled code that a wheel has installed: trusted as the package is, whose sources are run in any case.
INSTALLED = PACKAGE / "_compiled"
#: Only entries of these modules are kept: all of their sources are in the folder's name.
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
    """The name of the folder for this state of the sources, and this CPU or another."""
    name, features = cpu or cpus.this_cpu()
    state = _hash(f"{_source_hash()}{cpus.platform()}{HEADER}")
    return f"powerkern-{state}-{re.sub('[^A-Za-z0-9_-]', '_', name)}-{_hash(features)[:8]}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def file_name(function: Callable[..., object]) -> str:
    """The name of the file with the code of an entry."""
    return f"{function.__module__.removeprefix('powerkern.')}.{function.__qualname__}.code"


# --- where it is kept ---------------------------------------------------------------------------------


def _bases() -> list[Path]:
    """Where compiled code is looked for; it is kept in the first that allows it.

    NUMBA_CACHE_DIR if it is set. Otherwise the ``__pycache__`` of the folder that powerkern is installed in, which
    travels with an image or an environment, and then the user's cache folder.
    """
    if os.environ.get("NUMBA_CACHE_DIR"):
        return [Path(os.environ["NUMBA_CACHE_DIR"])]
    # not inside the package: left behind by an uninstallation, the folder would still be imported as powerkern
    return [PACKAGE.parent / "__pycache__", _users_cache()]


def _users_cache() -> Path:
    """The user's cache folder; relative, and so refused, if there is none."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", "")) / "powerkern" / "Cache"
    home = Path(os.path.expanduser("~"))
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "powerkern"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "powerkern"


# --- reading and writing ------------------------------------------------------------------------------


def kept_or_compiled(function: Callable[..., object], compiled: Callable[[], bytes]) -> bytes:
    """The code of an entry from disk, or `compiled` and kept; one process compiles, others wait for it."""
    name = file_name(function)
    if not function.__module__.startswith(_COMPILED):
        return compiled()
    code = _read(name)
    if code is not None:
        return code
    with contextlib.ExitStack() as stack:
        try:
            _, draft = _draft(name, stack)
        except OSError as error:
            _not_kept.append(str(error))
            return compiled()
        code = _read(name)  # written by another process meanwhile
        if code is None:
            code = compiled()
            try:
                draft.publish(_digest(name, code) + code)
            except OSError as error:  # the disk is full: the code is still good
                _not_kept.append(f"{name}: {error}")
    return code


def keep_in(folder: Path, function: Callable[..., object], compiled: Callable[[], bytes]) -> bool:
    """Have the code of an entry in one folder, compiled if it is not there; False if it was. OSError on failure."""
    name = file_name(function)
    with files.draft(folder / name) as draft:
        if _code(name, folder, files.read) is not None:
            return False
        code = compiled()
        draft.publish(_digest(name, code) + code)
    return True


def writable_folder() -> Path:
    """Where code compiled now is kept; OSError, with the reasons, where nothing can be."""
    with contextlib.ExitStack() as stack:
        folder, trial = _draft("trial", stack)
        trial.discard()
    return folder


def _read(name: str) -> bytes | None:
    """The code of an entry from the first folder that has it for this CPU, or one that it covers, undamaged."""
    for cpu in cpus.runnable():
        folder = folder_name(cpu)
        readers: tuple[tuple[Path, Callable[[Path], bytes]], ...] = (
            *((base, files.read) for base in _bases()),
            (INSTALLED, Path.read_bytes),
        )
        for base, read in readers:
            code = _code(name, base / folder, read)
            if code is not None:
                return code
    return None


def _code(name: str, folder: Path, read: Callable[[Path], bytes]) -> bytes | None:
    """The code of an entry from one folder; None if it is not there, not to be trusted or damaged."""
    try:
        content = read(folder / name)
    except OSError:
        return None
    code = content[_DIGEST_SIZE:]
    return code if content[:_DIGEST_SIZE] == _digest(name, code) else None


def _draft(name: str, stack: contextlib.ExitStack) -> tuple[Path, files.Draft]:
    """The first folder that can be written to and a draft in it; OSError, with the reasons, where there is none."""
    reasons = []
    for base in _bases():
        folder = base / folder_name()
        try:
            return folder, stack.enter_context(files.draft(folder / name))
        except OSError as error:
            reasons.append(f"{base}: {error.strerror or error}")
    raise OSError("; ".join(reasons))


def _digest(name: str, code: bytes) -> bytes:
    """Shows that a file is intact, and belongs to this entry."""
    return hashlib.sha256(name.encode() + b"\0" + code).digest()


def warn_once_if_not_kept() -> None:
    """Warn, once per process, that every process has to compile anew, and why."""
    if _not_kept and not _said:
        _said.append(True)
        warn(
            f"powerkern cannot keep its compiled code, so every process compiles it anew ({'; '.join(_not_kept)}). "
            "Set NUMBA_CACHE_DIR to the absolute path of a folder that only you can write to.",
            RuntimeWarning,
        )
