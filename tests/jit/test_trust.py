"""Folders from which compiled code may be loaded; whoever can write there can run code."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from powerkern._jit import code_cache, files

posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes of files are POSIX's")


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "base" / "folder"
    files.make(made)
    return made


@pytest.fixture
def strangers(monkeypatch):
    """Return a function that makes a file or folder appear to belong to another user."""

    def give(path):
        me = os.geteuid()
        if me == 0:
            os.chown(path, 4242, 4242)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: me + 1)

    return give


def test_a_folder_of_ones_own_is_trusted(folder):
    files.require_trusted(folder)


@posix
def test_a_folder_is_made_for_its_owner_alone(tmp_path):
    before = os.umask(0)
    try:
        files.make(tmp_path / "made")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o755


@posix
def test_roots_folder_is_trusted():
    """Container images are built by root and run by another user."""
    if Path("/usr").stat().st_uid:
        pytest.skip("root owns nothing here")
    files.require_trusted(Path("/usr"))


@posix
def test_a_folder_of_another_user_is_not_trusted(folder, strangers):
    strangers(folder)
    with pytest.raises(PermissionError, match="belongs to another user"):
        files.require_trusted(folder)


@posix
@pytest.mark.parametrize("mode", [0o777, 0o757, 0o1777])
def test_a_folder_that_others_may_write_to_is_not_trusted(folder, mode):
    folder.chmod(mode)
    with pytest.raises(PermissionError, match="others may write"):
        files.require_trusted(folder)


@posix
@pytest.mark.parametrize("group, trusted", [(4242, False), (0, True)])
def test_a_folder_that_a_group_may_write_to_is_trusted_only_for_roots_group(folder, group, trusted):
    if os.geteuid() != 0:
        pytest.skip("only root gives folders to any group")
    os.chown(folder, -1, group)
    folder.chmod(0o775)
    if trusted:
        files.require_trusted(folder)
    else:
        with pytest.raises(PermissionError, match="others may write"):
            files.require_trusted(folder)


@posix
@pytest.mark.parametrize("mode, trusted", [(0o777, False), (0o1777, True)])
def test_a_parent_folder_may_be_open_to_all_if_sticky(folder, mode, trusted):
    """In a sticky folder such as /tmp, other users may add files, but not rename or remove existing ones."""
    folder.parent.chmod(mode)
    if trusted:
        files.require_trusted(folder)
    else:
        with pytest.raises(PermissionError, match=r"everybody may write to .*base and replace"):
            files.require_trusted(folder)


@posix
def test_a_link_is_not_trusted(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(PermissionError, match="not a folder"):
        files.require_trusted(tmp_path / "link")


@pytest.mark.parametrize("check", [files.make, files.require_trusted])
def test_a_relative_path_is_not_trusted(check, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PermissionError, match="not an absolute path"):
        check(Path("folder"))
    assert list(tmp_path.iterdir()) == []


# --- where ---------------------------------------------------------------------------------------------


def test_numba_cache_dir_has_priority(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert code_cache._bases() == [tmp_path]


def test_an_uninstallation_leaves_nothing_that_can_be_imported(monkeypatch):
    """A cache folder inside the package would be left behind as an empty namespace package `powerkern`."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    package = Path(files.__file__).parents[1]
    assert code_cache._bases()[0] == package.parent / "__pycache__"


@pytest.mark.skipif(os.name != "posix" or os.uname().sysname != "Linux", reason="the XDG specification is Linux's")
@pytest.mark.parametrize("xdg", ["", None])
def test_the_users_cache_is_never_in_the_current_folder(xdg, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if xdg is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", xdg)
    assert code_cache._bases()[-1] == tmp_path / ".cache" / "powerkern"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert code_cache._bases()[-1] == tmp_path / "xdg" / "powerkern"


@posix
@pytest.mark.parametrize("xdg", ["", None])
def test_without_a_home_there_is_no_users_cache(xdg, tmp_path, monkeypatch):
    """A container may run under a user id that its system does not know."""

    def unknown(uid):
        raise KeyError(uid)

    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if xdg is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", xdg)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PermissionError, match="not an absolute path"):
        files.make(code_cache._bases()[-1])
    assert list(tmp_path.iterdir()) == []
