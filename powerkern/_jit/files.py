"""Read and write cache files atomically, and refuse files that another user could have modified.

Loading compiled code means running it. So files and folders are trusted only if they belong to this user or root, and
no other user can write to them.

A file is first written under another name, as a draft, and then renamed. Only the process that holds the lock on the
draft may write. The operating system releases the lock when that process ends, even by a crash, and the next writer
takes over the draft.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

#: Seconds to wait for another process that compiles the same function, and seconds between attempts to get its lock.
PATIENCE = 120.0
_POLL = 0.05
#: Error codes for a lock that another process holds; a file system without locks raises other errors.
_HELD = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}

# refuse symbolic links, and do not block on a pipe without a writer
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
#: Write permissions that files must not have. Root's group is exempt: some container platforms give it the files.
_GROUP_OR_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_ROOT = 0


# --- folders ------------------------------------------------------------------------------------------


def make(folder: Path) -> None:
    """Create a folder that only its owner can write to, unless the folder exists."""
    _require_absolute(folder)
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)


def require_trusted(folder: Path) -> None:
    """Raise PermissionError, with the reason, if a user other than this one and root can write to a folder."""
    _require_absolute(folder)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise PermissionError("it is not a folder")
    require_owned(status)
    for parent in folder.resolve().parents:
        if _is_open_to_all(parent.stat().st_mode):
            raise PermissionError(f"everybody may write to {parent} and replace what is in it")


def require_owned(status: os.stat_result) -> None:
    """Raise PermissionError, with the reason, if a user other than this one and root owns or can write to a file.

    The same check applies to folders.
    """
    if not hasattr(os, "geteuid"):
        return  # Windows: the permissions of the user's folders keep others out
    if status.st_uid not in (_ROOT, os.geteuid()):
        raise PermissionError(f"it belongs to another user (uid {status.st_uid})")
    others = stat.S_IWOTH if status.st_gid == _ROOT else _GROUP_OR_OTHERS_WRITE
    if status.st_mode & others:
        raise PermissionError("others may write to it")


def _require_absolute(folder: Path) -> None:
    if not folder.is_absolute():
        raise PermissionError("it is not an absolute path")


def _is_open_to_all(mode: int) -> bool:
    """Return whether everybody may create files in a folder, and rename or remove the files of others."""
    return hasattr(os, "geteuid") and bool(mode & stat.S_IWOTH) and not mode & stat.S_ISVTX


# --- files --------------------------------------------------------------------------------------------


def read(path: Path) -> bytes:
    """Return the content of a file; raise OSError if another user could have modified it."""
    require_trusted(path.parent)
    with open(os.open(path, os.O_RDONLY | _FLAGS), "rb") as file:
        require_owned(os.fstat(file.fileno()))
        return file.read()


class Draft:
    """A file that is being written under a temporary name, while its lock is held."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._open = True

    def publish(self, content: bytes) -> None:
        """Write this content to the draft and rename the draft to the final name, atomically."""
        try:
            with open(self._descriptor, "wb", closefd=False) as file:
                file.truncate()
                file.write(content)
            if sys.platform == "win32":  # Windows cannot rename open files
                self._close()
            _draft_path(self._path).replace(self._path)
        except OSError:
            self.discard()
            raise
        self._close()

    def discard(self) -> None:
        """Remove the draft unless it has been published."""
        if self._open:
            with contextlib.suppress(OSError):
                _draft_path(self._path).unlink()
        self._close()

    def _close(self) -> None:
        if self._open:
            self._open = False
            os.close(self._descriptor)  # which releases the lock


@contextlib.contextmanager
def draft(path: Path) -> Iterator[Draft]:
    """Wait for the lock on the draft of a file, and yield the draft; raise OSError if this fails or takes too long."""
    make(path.parent)
    require_trusted(path.parent)
    claimed = Draft(path, _claim(_draft_path(path)))
    try:
        yield claimed
    finally:
        claimed.discard()


def _draft_path(path: Path) -> Path:
    return path.with_name(path.name + ".draft")


def _claim(path: Path) -> int:
    """Open and lock a draft. Start over if the draft was published or discarded while waiting for the lock."""
    give_up = time.monotonic() + PATIENCE
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o644)
        if _lock(descriptor) and _is_the_file(descriptor, path):
            return descriptor
        os.close(descriptor)
        if time.monotonic() > give_up:
            raise TimeoutError("another process has been writing to it for too long")
        time.sleep(_POLL)


def _lock(descriptor: int) -> bool:
    """Try to lock a draft; return False if another process holds the lock, and True otherwise.

    True means that the draft is locked, or that the file system does not support locking.
    """
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _HELD
    return True


def _is_the_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
