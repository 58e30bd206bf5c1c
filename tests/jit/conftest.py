"""Fixtures: an entry to compile or load as in a new process, and cache folders with its code that tests may damage."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from powerkern._jit import JIT_DISABLED, code_cache
from powerkern.kernels.transforms import lambda_bounds

#: User id of an ordinary user without files.
NOBODY = 65534


def fresh():
    """Return a new `Entry` of `lambda_ranges`, which has neither been compiled nor loaded in this process."""
    return type(lambda_bounds.lambda_ranges)(
        lambda_bounds.lambda_ranges.__wrapped__, lambda_bounds.lambda_ranges._signature
    )


@pytest.fixture
def loads():
    """Return a function that compiles or loads `fresh()` and returns whether its code was loaded from disk."""

    def from_disk():
        entry, compiled = fresh(), []
        made = entry.object_code
        entry.object_code = lambda: compiled.append(True) or made()
        entry.compile()
        return not compiled

    return from_disk


@pytest.fixture
def compiled():
    """Return a function that compiles or loads the entry, as a new process does."""
    return lambda: fresh().compile()


@pytest.fixture
def told(monkeypatch):
    """Reset the warning about code that cannot be cached."""
    monkeypatch.setattr(code_cache, "_said", [])
    monkeypatch.setattr(code_cache, "_not_kept", [])


@pytest.fixture(scope="session")
def filled():
    """A cache folder with the compiled entry; tests copy it and do not change it."""
    if JIT_DISABLED:
        pytest.skip("nothing is compiled")
    folder = Path(tempfile.mkdtemp())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_CACHE_DIR", str(folder))
        fresh().compile()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def place(filled, told, monkeypatch):
    """A copy of `filled` that serves as the cache folder; other users may read it."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    shutil.copytree(filled, folder, dirs_exist_ok=True)
    folder.chmod(0o755)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def empty(told, monkeypatch):
    """An empty folder that serves as the cache folder."""
    if JIT_DISABLED:
        pytest.skip("nothing is compiled")
    folder = Path(tempfile.mkdtemp())
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def unprivileged():
    """Run the test as an ordinary user, because root can open any file."""
    if not hasattr(os, "geteuid"):
        pytest.skip("modes of files are POSIX's")
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(NOBODY)
    yield
    if was_root:
        os.seteuid(0)
