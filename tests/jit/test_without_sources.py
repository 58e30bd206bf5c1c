"""Fits, transforms, loaded fits and the command line when the package is a zip file or consists of bytecode."""

from __future__ import annotations

import compileall
import importlib.util
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import processes
import pytest

import powerkern
from powerkern._jit import JIT_DISABLED, code_cache

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")

PACKAGE = Path(powerkern.__file__).parent

#: Call a small entry, and print whether its machine code was found: only then is numba not imported.
SMALL = (
    "import sys, numpy as np; from powerkern.kernels.transforms.lambda_bounds import lambda_ranges as f\n"
    "low, high = np.empty((2, 1)); f(1, np.zeros(1), np.zeros(1), 10.0, low, high)\n"
    "print(high[0], int('numba' not in sys.modules))"
)
#: Fit, transform by the saved and loaded fit, and do the same on the command line.
ALL = """
import sys, numpy as np, powerkern as pk
from powerkern.__main__ import main
x = np.random.default_rng(0).lognormal(size=(60, 2))
fit = pk.PowerFit.from_json(pk.fit(x).to_json())
print(fit.transform(x).tobytes().hex(), fit.lmbda.tobytes().hex())
np.savetxt("data.csv", x, delimiter=",", header="a,b", comments="")
assert main(["fit", "data.csv", "-o", "fit.json"]) == 0
assert main(["transform", "--fit", "fit.json", "data.csv", "-o", "out.csv"]) == 0
print(open("out.csv").read())
"""


@pytest.fixture
def zipped(tmp_path):
    """Return a function that writes a zip file with the package and the given machine code, as in a wheel."""

    def write(sources, code=None):
        with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
            for path in (sources / "powerkern").rglob("*.py*"):
                if path.suffix in (".py", ".pyc") and path.parent.name != "__pycache__":
                    archive.write(path, path.relative_to(sources))
            for path in code.rglob("*.code") if code else ():
                archive.write(path, Path("powerkern", "_compiled", path.relative_to(code)))
        return tmp_path / "package.zip"

    return write


@pytest.fixture
def stripped(tmp_path):
    """A copy of the package that consists of bytecode only."""
    copy = tmp_path / "stripped"
    shutil.copytree(PACKAGE, copy / "powerkern", ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(copy, quiet=1, legacy=True)
    for path in copy.rglob("*.py"):
        path.unlink()
    return copy


def run(code, where, folder, cache):
    """Return the output of `code` in a new process.

    Parameters
    ----------
    code : str
        Python code.
    where : Path
        Entry of the import path from which the package is imported.
    folder : Path
        Working directory.
    cache : Path
        Cache folder.
    """
    environment = {"NUMBA_CACHE_DIR": str(cache), "NUMBA_DISABLE_JIT": "0"}
    return processes.run(code, folder, PYTHONPATH=str(where), **environment)


@pytest.mark.slow
def test_a_zip_file_loads_code_cached_for_its_sources(zipped, place, tmp_path):
    assert run(SMALL, zipped(PACKAGE.parent), tmp_path, place) == "inf 1"


@pytest.mark.slow
def test_a_zip_file_with_code_needs_no_numba(zipped, filled, tmp_path):
    """The zip file stands for a compiled wheel on the path."""
    assert run(SMALL, zipped(PACKAGE.parent, filled), tmp_path, tmp_path / "cache") == "inf 1"
    assert not (tmp_path / "cache").exists()


@pytest.mark.slow
def test_code_of_other_sources_in_a_zip_file_is_not_loaded(zipped, filled, tmp_path):
    (path,) = filled.glob("*/*.code")
    stale = tmp_path / "stale" / path.parent.name
    stale.mkdir(parents=True)
    shutil.copy(path, stale / f"{path.name.rpartition('-')[0]}-0123456789abcdef.code")
    assert run(SMALL, zipped(PACKAGE.parent, stale.parent), tmp_path, tmp_path / "cache") == "inf 0"


@pytest.mark.slow
def test_bytecode_is_compiled_once(stripped, tmp_path):
    assert [run(SMALL, stripped, tmp_path, tmp_path / "cache") for _ in range(2)] == ["inf 0", "inf 1"]


@pytest.mark.slow
@pytest.mark.parametrize("as_zip", [False, True])
def test_bytecode_with_code_needs_no_numba(as_zip, stripped, zipped, filled, tmp_path):
    """Machine code is loaded although its cache key cannot be checked without the sources."""
    if as_zip:
        stripped = zipped(stripped, filled)
    else:
        shutil.copytree(filled, stripped / "powerkern" / "_compiled")
    assert run(SMALL, stripped, tmp_path, tmp_path / "cache") == "inf 1"
    assert not (tmp_path / "cache").exists()


def test_an_application_caches_code_in_the_users_cache(monkeypatch):
    """A bundled application may unpack its own folder again for each run."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert code_cache._bases() == [code_cache._user_cache_folder()]


@pytest.mark.slow
def test_warnings_name_the_users_line_where_bytecode_has_moved(tmp_path):
    """Python's frames report the path at which bytecode was compiled, not its present path."""
    built, moved = tmp_path / "built", tmp_path / "moved"
    shutil.copytree(PACKAGE, built / "powerkern", ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(built, quiet=1, legacy=True)
    built.rename(moved)
    for path in moved.rglob("*.py"):
        path.unlink()
    code = (
        "import warnings, numpy as np, powerkern as pk\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always'); pk.fit(np.ones((3, 1)))\n"
        "print(*[(each.filename, each.lineno) for each in said])"
    )
    printed = processes.run(code, tmp_path, PYTHONPATH=str(moved), NUMBA_DISABLE_JIT="1")
    assert printed == "('<string>', 3)"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["zip", "bytecode", "zip of bytecode"])
def test_fits_transforms_and_the_command_line(kind, stripped, zipped, tmp_path):
    expected = run(ALL, PACKAGE.parent, tmp_path, code_cache.writable_folder().parent)
    sources = stripped if "bytecode" in kind else PACKAGE.parent
    where = zipped(sources) if "zip" in kind else sources
    for _ in range(2):
        assert run(ALL, where, tmp_path, tmp_path / "cache") == expected


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("PyInstaller") is None, reason="PyInstaller is not installed")
def test_an_application_of_pyinstaller(tmp_path):
    (tmp_path / "app.py").write_text(ALL)
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--onedir", "--paths", PACKAGE.parent, "app.py"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    expected = run(ALL, PACKAGE.parent, tmp_path, code_cache.writable_folder().parent)
    for _ in range(2):
        done = subprocess.run(
            [tmp_path / "dist" / "app" / "app"], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        assert (done.stdout.strip(), done.stderr) == (expected, "")
