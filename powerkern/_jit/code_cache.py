"""Cache machine code on disk: one folder per CPU type, with one file per entry and version of the entry's sources.

A file is named after its entry and the entry's key (see `source_keys`), a hash of every module that determines the
code. The key does not depend on the versions of Python, NumPy, numba or LLVM. A file starts with a digest of its
content; a damaged file is compiled again and replaced. If writing fails, the code is used but not cached.

Code compiled for exactly this CPU is preferred. Otherwise code for all CPUs with the same instruction set is used, from
a wheel or another machine (see `cpus`). Writing a new file also removes files that have not been used for a long time.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import stat
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from operator import methodcaller
from pathlib import Path
from typing import Any, Protocol

from powerkern._input.messages import warn
from powerkern._jit import cpus, files, source_keys
from powerkern._jit.interface import HEADER

PACKAGE = Path(__file__).parents[1]
#: Only entries of these modules are cached: code compiled elsewhere may depend on files that the key does not cover.
_COMPILED = "powerkern.kernels."
_DIGEST_SIZE = hashlib.sha256().digest_size

#: Versions of an entry that are kept in a folder, for branches and environments that share it.
_N_VERSIONS = 8
#: Seconds without use after which a file is removed, since its entry probably no longer exists.
_UNUSED = 365 * 86_400.0
#: Seconds between updates of a file's modification time, which records its last use.
_NOTED = 86_400.0

#: Reasons why compiled code could not be cached, and a list that is non-empty once they have been reported.
_not_kept: list[str] = []
_said: list[bool] = []


class _File(Protocol):
    """The methods that a path and a member of a zip file share, and that this module uses."""

    @property
    def name(self) -> str:
        """The last part of the path."""

    def read_bytes(self) -> bytes:
        """Return the content of the file."""


# --- names --------------------------------------------------------------------------------------------


def folder_name(cpu: cpus.Cpu | None = None) -> str:
    """Return the name of the cache folder for a CPU type, by default this CPU.

    The name also depends on the platform and on the memory layout of Python's objects.
    """
    name, features = cpu or cpus.this_cpu()
    return f"powerkern-{re.sub('[^A-Za-z0-9_-]', '_', name)}-{_hash(f'{cpus.platform()}{HEADER}{features}')}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def file_name(function: Callable[..., object]) -> str:
    """Return the file name for the code of an entry; raise `source_keys.Unknown` if the entry has no key."""
    key = source_keys.cache_key(function.__module__)
    if not key.text:
        raise source_keys.Unknown(f"{function.__module__} has neither source nor bytecode")
    return f"{_entry_name(function)}-{key.text}.code"


def _entry_name(function: Callable[..., object]) -> str:
    return f"{function.__module__.removeprefix('powerkern.')}.{function.__qualname__}"


# --- folders ------------------------------------------------------------------------------------------


def _bases() -> list[Path]:
    """Return the folders searched for compiled code; new code is written to the first writable one.

    If NUMBA_CACHE_DIR is set, it names the only folder. Otherwise there are two folders. The first is the
    ``__pycache__`` next to the installed package, which is copied with an environment or a container image. The second
    is the user's cache folder. A frozen application uses only the user's folder, because its own folder may be
    temporary.
    """
    if os.environ.get("NUMBA_CACHE_DIR"):
        return [Path(os.environ["NUMBA_CACHE_DIR"])]
    if getattr(sys, "frozen", False):
        return [_user_cache_folder()]
    # not inside the package: a folder left behind by pip uninstall would still be importable as powerkern
    return [PACKAGE.parent / "__pycache__", _user_cache_folder()]


def _user_cache_folder() -> Path:
    """Return the user's cache folder; without a home folder, a relative path, which later checks refuse."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", "")) / "powerkern" / "Cache"
    home = Path(os.path.expanduser("~"))
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "powerkern"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "powerkern"


# --- reading and writing ------------------------------------------------------------------------------


def load_or_compile(function: Callable[..., object], compile_entry: Callable[[], bytes]) -> bytes:
    """Read the code of an entry from disk, or compile and cache it.

    If several processes need the same entry, one compiles it and the others wait. `function` is the entry in Python;
    `compile_entry` returns its code.
    """
    if not function.__module__.startswith(_COMPILED):
        return compile_entry()
    code = _read(function)
    if code is not None:
        return code
    with contextlib.ExitStack() as stack:
        try:
            name = file_name(function)
            folder, draft = _open_draft(name, stack)
        except (OSError, source_keys.Unknown) as error:
            _not_kept.append(str(error))
            return compile_entry()
        code = _read(function)  # another process may have written it meanwhile
        if code is None:
            code = compile_entry()
            try:
                draft.publish(_digest(name, code) + code)
            except OSError as error:  # the disk is full: the code is still good
                _not_kept.append(f"{name}: {error}")
            else:
                _prune(folder.parent)
    return code


def keep_in(folder: Path, function: Callable[..., object], compile_entry: Callable[[], bytes]) -> bool:
    """Compile an entry into a folder; return False if its code is there already. Raise OSError if writing fails."""
    name = file_name(function)
    with files.draft(folder / name) as draft:
        if _read_intact(folder / name, files.read) is not None:
            return False
        code = compile_entry()
        draft.publish(_digest(name, code) + code)
    _prune(folder.parent)
    return True


def writable_folder() -> Path:
    """Return the folder to which newly compiled code is written; raise OSError with the reasons if there is none."""
    with contextlib.ExitStack() as stack:
        folder, trial = _open_draft("trial", stack)
        trial.discard()
    return folder


def _read(function: Callable[..., object]) -> bytes | None:
    """Return the intact code of an entry for this CPU or a more general CPU type; None if there is none."""
    key = source_keys.cache_key(function.__module__)
    for cpu in cpus.runnable():
        folder = folder_name(cpu)
        for base in _bases() if key.text else ():
            code = _read_intact(base / folder / file_name(function), files.read)
            if code is not None:
                _note_use(base / folder / file_name(function))
                return code
        # a package distributed without sources has no key: accept the installed code whatever its key
        name = file_name(function) if key.from_sources else f"{_entry_name(function)}-"
        for file in _list_installed(folder):
            code = _read_intact(file, methodcaller("read_bytes")) if file.name.startswith(name) else None
            if code is not None:
                return code
    return None


@functools.cache
def _list_installed(folder: str) -> tuple[_File, ...]:
    """List the files of compiled code that were installed from a wheel.

    These files are trusted as much as the package's sources.
    """
    if PACKAGE.is_dir():
        root: Any = PACKAGE
    else:
        from importlib.resources import files as resources

        root = resources(PACKAGE.name)
    compiled = root.joinpath("_compiled").joinpath(folder)
    return tuple(compiled.iterdir()) if compiled.is_dir() else ()


def _read_intact(file: Any, read: Callable[[Any], bytes]) -> bytes | None:
    """Return the code in a file; None if the file is missing, untrusted or damaged."""
    try:
        content = read(file)
    except OSError:
        return None
    code = content[_DIGEST_SIZE:]
    return code if content[:_DIGEST_SIZE] == _digest(file.name, code) else None


def _open_draft(name: str, stack: contextlib.ExitStack) -> tuple[Path, files.Draft]:
    """Open a draft of a file in the first writable folder; return the folder and the draft.

    Raise OSError if no folder is writable.
    """
    reasons = []
    for base in _bases():
        folder = base / folder_name()
        try:
            return folder, stack.enter_context(files.draft(folder / name))
        except OSError as error:
            reasons.append(f"{base}: {error.strerror or error}")
    raise OSError("; ".join(reasons))


def _digest(name: str, code: bytes) -> bytes:
    """Return a hash of an entry's file name and code, which detects damaged and renamed files."""
    return hashlib.sha256(name.encode() + b"\0" + code).digest()


# --- pruning ------------------------------------------------------------------------------------------


def _note_use(path: Path) -> None:
    """Set a file's modification time to now, at most once a day."""
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > _NOTED:
            os.utime(path)


@functools.cache  # once per process
def _prune(base: Path) -> None:
    """Remove obsolete code: old versions of entries, and entries unused for a year.

    This is safe at any time: processes keep loaded code in memory, and compile again if a file is gone.
    """
    now = time.time()
    for folder in base.glob("powerkern-*"):
        with contextlib.suppress(OSError):
            files.require_trusted(folder)
            versions = defaultdict[str, list[tuple[float, Path]]](list)
            for path in folder.iterdir():
                status = path.lstat()
                if path.name.endswith(".code.draft"):  # no compilation takes a day
                    _remove(path, now - status.st_mtime > _NOTED)
                elif path.suffix == ".code" and stat.S_ISREG(status.st_mode):
                    versions[re.sub("-[0-9a-f]{16}$", "", path.stem)].append((status.st_mtime, path))
            for one in versions.values():
                for k, (used, path) in enumerate(sorted(one, reverse=True)):
                    _remove(path, k >= _N_VERSIONS or now - used > _UNUSED)
            if now - folder.stat().st_mtime > _UNUSED:
                folder.rmdir()  # which fails if anything is left


def _remove(path: Path, condition: bool) -> None:
    """Remove a file if the condition holds; ignore errors of the operating system."""
    if condition:
        with contextlib.suppress(OSError):
            path.unlink()


def warn_once_if_not_kept() -> None:
    """Warn, once per process, if compiled code could not be cached and must be compiled by every process."""
    if _not_kept and not _said:
        _said.append(True)
        warn(
            f"powerkern cannot store its compiled code, so every process compiles it again ({'; '.join(_not_kept)}). "
            "Set NUMBA_CACHE_DIR to the absolute path of a folder that only you can write to.",
            RuntimeWarning,
        )
