"""Where compiled code is kept on disk, and which folders can be trusted with it.

Loading compiled code means running it, so nobody but this user, or root, may have been able to put it there.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

#: Nobody but the owner may write; root's own group, to which some container platforms give the files, counts as root.
_GROUP_OR_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_ROOT = 0

#: What a wheel built with compiled code has put there: trusted as the package is, whose sources are run in any case.
INSTALLED = Path(__file__).parents[1] / "_compiled"


def bases() -> list[Path]:
    """Where compiled code is looked for; it is kept in the first that allows it.

    NUMBA_CACHE_DIR if it is set. Otherwise the ``__pycache__`` of the folder that powerkern is installed in, which
    travels with an image or an environment, and then the user's cache folder.
    """
    if os.environ.get("NUMBA_CACHE_DIR"):
        return [Path(os.environ["NUMBA_CACHE_DIR"])]
    # not inside the package: left behind by an uninstallation, the folder would still be imported as powerkern
    return [Path(__file__).parents[2] / "__pycache__", _users_cache()]


def _users_cache() -> Path:
    """The user's cache folder; relative, and so refused, if there is none."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", "")) / "powerkern" / "Cache"
    home = Path(os.path.expanduser("~"))
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "powerkern"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "powerkern"


def make(folder: Path) -> None:
    """Make a folder that only its owner can write to, if there is none."""
    _require_absolute(folder)
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)


def require_trusted(folder: Path) -> None:
    """Raise PermissionError, with the reason, unless only this user and root can have put files into a folder."""
    _require_absolute(folder)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise PermissionError("it is not a folder")
    require_owned(status)
    for parent in folder.resolve().parents:
        if _is_open_to_all(parent.stat().st_mode):
            raise PermissionError(f"everybody may write to {parent} and replace what is in it")


def require_owned(status: os.stat_result) -> None:
    """Raise PermissionError, with the reason, unless a file or folder is this user's or root's, and no one else's."""
    if not hasattr(os, "geteuid"):
        return  # Windows keeps others out of the user's own folders
    if status.st_uid not in (_ROOT, os.geteuid()):
        raise PermissionError(f"it belongs to another user (uid {status.st_uid})")
    others = stat.S_IWOTH if status.st_gid == _ROOT else _GROUP_OR_OTHERS_WRITE
    if status.st_mode & others:
        raise PermissionError("others may write to it")


def _require_absolute(folder: Path) -> None:
    if not folder.is_absolute():
        raise PermissionError("it is not an absolute path")


def _is_open_to_all(mode: int) -> bool:
    """Whether everybody may write to a folder and rename or remove what others have put there."""
    return hasattr(os, "geteuid") and bool(mode & stat.S_IWOTH) and not mode & stat.S_ISVTX
