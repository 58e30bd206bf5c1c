"""Machine code on disk: a folder for each CPU, and in it an object file for each entry and state of its sources.

The name of a file has the key of its entry (see `source_keys`): a hash of every module that determines its code. It
depends on no version of Python, NumPy, numba or LLVM. A file starts with a digest of its content; one that does not
match is compiled anew and replaced. Where the disk fails, code is used but not kept.

Code compiled for this very CPU goes before code that a wheel, or another machine, has for all CPUs with the same
instruction set (see `cpus`). Files that have not been used for a long time are removed when new ones are written.
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
#: Only entries of these modules are kept: what is compiled elsewhere may depend on anything.
_COMPILED = "powerkern.kernels."
_DIGEST_SIZE = hashlib.sha256().digest_size

#: Versions of an entry that stay in a folder, for branches and environments that share it.
_N_VERSIONS = 8
#: Seconds since its last use after which the only version of an entry goes: the entry no longer exists.
_UNUSED = 365 * 86_400.0
#: Seconds after which the use of a file is noted again, in its time of modification.
_NOTED = 86_400.0

#: Why compiled code could not be kept, and whether that has been reported.
_not_kept: list[str] = []
_said: list[bool] = []


class _File(Protocol):
    """A path, or a member of a zip file."""

    @property
    def name(self) -> str:
        """The last part of the path."""

    def read_bytes(self) -> bytes:
        """Return the content."""


# --- names --------------------------------------------------------------------------------------------


def folder_name(cpu: cpus.Cpu | None = None) -> str:
    """Return the name of the folder for this CPU or another, and for the layout of Python's objects."""
    name, features = cpu or cpus.this_cpu()
    return f"powerkern-{re.sub('[^A-Za-z0-9_-]', '_', name)}-{_hash(f'{cpus.platform()}{HEADER}{features}')}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def file_name(function: Callable[..., object]) -> str:
    """Return the name of the file with the code of an entry; raise `source_keys.Unknown` if it has no key."""
    key = source_keys.cache_key(function.__module__)
    if not key.text:
        raise source_keys.Unknown(f"{function.__module__} has neither source nor bytecode")
    return f"{_entry_name(function)}-{key.text}.code"


def _entry_name(function: Callable[..., object]) -> str:
    return f"{function.__module__.removeprefix('powerkern.')}.{function.__qualname__}"


# --- where it is kept ---------------------------------------------------------------------------------


def _bases() -> list[Path]:
    """Return the folders searched for compiled code; new code is written to the first writable one.

    If NUMBA_CACHE_DIR is set, it is the only one. Otherwise the ``__pycache__`` of the folder that powerkern is
    installed in comes first, since it is copied with an image or an environment, then the user's cache folder. A frozen
    application has only the latter: its own folder may exist for one run only.
    """
    if os.environ.get("NUMBA_CACHE_DIR"):
        return [Path(os.environ["NUMBA_CACHE_DIR"])]
    if getattr(sys, "frozen", False):
        return [_users_cache()]
    # not inside the package: left behind by an uninstallation, the folder would still be imported as powerkern
    return [PACKAGE.parent / "__pycache__", _users_cache()]


def _users_cache() -> Path:
    """Return the user's cache folder, or a relative path, which is refused, if the user has none."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", "")) / "powerkern" / "Cache"
    home = Path(os.path.expanduser("~"))
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "powerkern"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "powerkern"


# --- reading and writing ------------------------------------------------------------------------------


def load_or_compile(function: Callable[..., object], compile_entry: Callable[[], bytes]) -> bytes:
    """Read the code of an entry from disk, or compile and keep it; one process compiles while others wait."""
    if not function.__module__.startswith(_COMPILED):
        return compile_entry()
    code = _read(function)
    if code is not None:
        return code
    with contextlib.ExitStack() as stack:
        try:
            name = file_name(function)
            folder, draft = _draft(name, stack)
        except (OSError, source_keys.Unknown) as error:
            _not_kept.append(str(error))
            return compile_entry()
        code = _read(function)  # another process may have kept it meanwhile
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
    """Compile an entry into a folder; return False if the folder already has its code. Raise OSError on failure."""
    name = file_name(function)
    with files.draft(folder / name) as draft:
        if _undamaged(folder / name, files.read) is not None:
            return False
        code = compile_entry()
        draft.publish(_digest(name, code) + code)
    _prune(folder.parent)
    return True


def writable_folder() -> Path:
    """Return the folder in which code compiled now is kept; raise OSError, with the reasons, if there is none."""
    with contextlib.ExitStack() as stack:
        folder, trial = _draft("trial", stack)
        trial.discard()
    return folder


def _read(function: Callable[..., object]) -> bytes | None:
    """Return the undamaged code of an entry for this CPU, or for one whose features it has; None if there is none."""
    key = source_keys.cache_key(function.__module__)
    for cpu in cpus.runnable():
        folder = folder_name(cpu)
        for base in _bases() if key.text else ():
            code = _undamaged(base / folder / file_name(function), files.read)
            if code is not None:
                _note_use(base / folder / file_name(function))
                return code
        # the code that was built with sources belongs to a package that has come without them
        name = file_name(function) if key.from_sources else f"{_entry_name(function)}-"
        for file in _installed(folder):
            code = _undamaged(file, methodcaller("read_bytes")) if file.name.startswith(name) else None
            if code is not None:
                return code
    return None


@functools.cache
def _installed(folder: str) -> tuple[_File, ...]:
    """Return the compiled files that a wheel has installed; they are trusted as much as the package's sources."""
    if PACKAGE.is_dir():
        root: Any = PACKAGE
    else:
        from importlib.resources import files as resources

        root = resources(PACKAGE.name)
    compiled = root.joinpath("_compiled").joinpath(folder)
    return tuple(compiled.iterdir()) if compiled.is_dir() else ()


def _undamaged(file: Any, read: Callable[[Any], bytes]) -> bytes | None:
    """Return the code in a file; None if the file is not there, not to be trusted or damaged."""
    try:
        content = read(file)
    except OSError:
        return None
    code = content[_DIGEST_SIZE:]
    return code if content[:_DIGEST_SIZE] == _digest(file.name, code) else None


def _draft(name: str, stack: contextlib.ExitStack) -> tuple[Path, files.Draft]:
    """Return the first folder that can be written to, and a draft in it; raise OSError if there is none."""
    reasons = []
    for base in _bases():
        folder = base / folder_name()
        try:
            return folder, stack.enter_context(files.draft(folder / name))
        except OSError as error:
            reasons.append(f"{base}: {error.strerror or error}")
    raise OSError("; ".join(reasons))


def _digest(name: str, code: bytes) -> bytes:
    """Return a hash that shows whether a file is intact and belongs to this entry."""
    return hashlib.sha256(name.encode() + b"\0" + code).digest()


# --- pruning ------------------------------------------------------------------------------------------


def _note_use(path: Path) -> None:
    """Set a file's time of modification to now, at most once a day."""
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > _NOTED:
            os.utime(path)


@functools.cache  # once per process
def _prune(base: Path) -> None:
    """Remove obsolete code: old versions of entries, and entries unused for a year.

    Code that a process has loaded stays in its memory. A process that finds a file gone compiles it anew.
    """
    now = time.time()
    for folder in base.glob("powerkern-*"):
        with contextlib.suppress(OSError):
            files.require_trusted(folder)
            versions = defaultdict[str, list[tuple[float, Path]]](list)
            for path in folder.iterdir():
                status = path.lstat()
                if path.name.endswith(".code.draft"):  # nobody compiles for a day
                    _remove(path, now - status.st_mtime > _NOTED)
                elif path.suffix == ".code" and stat.S_ISREG(status.st_mode):
                    versions[re.sub("-[0-9a-f]{16}$", "", path.stem)].append((status.st_mtime, path))
            for one in versions.values():
                for k, (used, path) in enumerate(sorted(one, reverse=True)):
                    _remove(path, k >= _N_VERSIONS or now - used > _UNUSED)
            if now - folder.stat().st_mtime > _UNUSED:
                folder.rmdir()  # which fails if anything is left


def _remove(path: Path, condition: bool) -> None:
    """Remove a file if the condition holds and the system lets us."""
    if condition:
        with contextlib.suppress(OSError):
            path.unlink()


def warn_once_if_not_kept() -> None:
    """Warn, once per process, that every process has to compile anew, and why."""
    if _not_kept and not _said:
        _said.append(True)
        warn(
            f"powerkern cannot store its compiled code, so every process compiles it again ({'; '.join(_not_kept)}). "
            "Set NUMBA_CACHE_DIR to the absolute path of a folder that only you can write to.",
            RuntimeWarning,
        )
