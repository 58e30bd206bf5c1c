"""The cache of compiled code on disk: code is loaded again, is never stale, and failures to write it are harmless."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import processes
import pytest

import powerkern
from powerkern._jit import JIT_DISABLED, code_cache, cpus, files
from powerkern.kernels.transforms import lambda_bounds

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")

PACKAGE = Path(powerkern.__file__).parent
ENTRY = "kernels.transforms.lambda_bounds.lambda_ranges"
FUNCTION = lambda_bounds.lambda_ranges.__wrapped__

#: Code for new processes that calls a small entry, so that no test waits for a whole fit.
COMPILE = "from powerkern.kernels.transforms.lambda_bounds import lambda_ranges as f; f.compile(); "
#: Print whether the machine code was on disk: only then is numba not imported.
HITS = "import sys; print(int('numba' not in sys.modules)); "


def run(code, sources=PACKAGE.parent, **environment):
    """Return the output of `code` in a new process, which takes its cache folder from the arguments alone.

    Parameters
    ----------
    code : str
        Python code.
    sources : Path
        Folder from which powerkern is imported.
    **environment
        Environment variables, such as NUMBA_CACHE_DIR.
    """
    return processes.run(code, sources, **{"NUMBA_CACHE_DIR": "", "NUMBA_DISABLE_JIT": "0", **environment})


def name():
    """Return the name of the file with the entry's code."""
    return code_cache.file_name(FUNCTION)


def file_in(place):
    """Return the path of the file with the entry's code."""
    return place / code_cache.folder_name() / name()


def whole(path):
    """Return whether a file agrees with its digest."""
    content = path.read_bytes()
    return content[:32] == code_cache._digest(path.name, content[32:])


@pytest.fixture
def package_copy(tmp_path):
    """A folder with a copy of the package that may be edited."""
    shutil.copytree(PACKAGE, tmp_path / "src" / "powerkern", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "src"


# --- found again --------------------------------------------------------------------------------------


def test_cache_is_where_numba_is_told(place):
    (folder,) = place.iterdir()
    assert folder.name == code_cache.folder_name()
    assert [path.name for path in folder.iterdir()] == [name()]


def test_the_next_process_compiles_nothing(place):
    before = file_in(place).stat().st_mtime_ns
    assert run(COMPILE + HITS, NUMBA_CACHE_DIR=str(place)) == "1"
    assert file_in(place).stat().st_mtime_ns == before


@pytest.mark.slow
def test_default_cache_is_next_to_the_package_and_harmless_after_uninstalling(package_copy, tmp_path):
    """After an installer has removed the files that it knows, nothing is left that can be imported as powerkern."""
    assert run(COMPILE, package_copy, HOME=str(tmp_path / "home"), XDG_CACHE_HOME="") == ""
    assert [path.name for path in (package_copy / "__pycache__").glob("powerkern-*/*")] == [name()]
    installed = [path for path in (package_copy / "powerkern").rglob("*") if path.suffix in (".py", ".pyc", ".typed")]
    for path in installed:
        path.unlink()
    for path in sorted([package_copy / "powerkern", *(package_copy / "powerkern").rglob("*")], reverse=True):
        path.rmdir()
    code = "import importlib.util, sys; sys.path = [sys.path[0]]; print(importlib.util.find_spec('powerkern'))"
    assert run(code, package_copy, PYTHONPATH="") == "None"


def test_a_filled_folder_that_cannot_be_written_to_is_read(place, unprivileged, loads):
    """Load code from a read-only folder, as in container images built by root."""
    with pytest.raises(PermissionError):
        (place / code_cache.folder_name() / "new").touch()
    assert loads()


@pytest.mark.slow
def test_read_only_sources_use_the_users_cache(package_copy, tmp_path):
    """A file in place of the cache folder simulates read-only sources, because tests may run as root."""
    (package_copy / "__pycache__").write_text("")
    home = {"XDG_CACHE_HOME": str(tmp_path / "xdg"), "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    run(COMPILE, package_copy, **home)
    if sys.platform == "linux":
        assert [path.name for path in (tmp_path / "xdg" / "powerkern").glob("powerkern-*/*")] == [name()]
    assert run(COMPILE + HITS, package_copy, **home) == "1"


def test_code_missing_from_a_folder_is_cached_in_the_next(place, tmp_path, monkeypatch, compiled, loads):
    """Code is loaded from any folder that has it; new code is written to the first folder that can be written to."""
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(code_cache, "_bases", lambda: [tmp_path / "file", tmp_path / "second", place])
    assert loads()
    monkeypatch.setattr(code_cache, "_bases", lambda: [tmp_path / "file", tmp_path / "second"])
    compiled()
    assert [path.name for path in (tmp_path / "second").glob("powerkern-*/*")] == [name()]


@pytest.mark.slow
def test_two_cold_processes_compile_once(tmp_path):
    """Both processes report that they are ready, and start compiling at a signal."""
    code = "import sys; from powerkern.kernels.transforms.lambda_bounds import lambda_ranges as f\n"
    code += "print('ready', flush=True); sys.stdin.readline(); f.compile()\n" + HITS
    environment = {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    both = [processes.start(code, stdin=True, **environment) for _ in range(2)]
    assert [process.stdout.readline() for process in both] == ["ready\n"] * 2
    for process in both:
        process.stdin.write("\n")
        process.stdin.flush()
    printed = [process.communicate(timeout=300) for process in both]
    assert sorted(printed) == [("0\n", ""), ("1\n", "")]
    assert [path.name for path in tmp_path.glob("*/*")] == [name()]


def test_an_entry_outside_the_package_is_not_cached(empty, monkeypatch, compiled):
    """Its code could become stale unnoticed, because cache keys cover the sources of powerkern only."""
    function = sys.modules["powerkern.kernels.transforms.lambda_bounds"].lambda_ranges.__wrapped__
    monkeypatch.setattr(function, "__module__", "somewhere.else")
    compiled()
    assert list(empty.iterdir()) == []


# --- never wrong: sources -----------------------------------------------------------------------------


@pytest.mark.slow
def test_an_entry_is_recompiled_after_an_edit_of_its_callee(package_copy, tmp_path):
    """Edit the file of a called kernel, but not that of the entry; the next process must return another result."""
    code = (
        "import numpy as np\nfrom powerkern.kernels.transforms import lambda_bounds\nlow, high = np.empty((2, 1))\n"
        "lambda_bounds.lambda_ranges(1, np.zeros(1), np.zeros(1), 10.0, low, high)\nprint(high[0])"
    )
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert run(code, package_copy, **environment) == "inf"
    path = package_copy / "powerkern" / "kernels" / "elementary" / "log.py"
    path.write_text(
        path.read_text() + "\n\nimport powerkern._jit\n@powerkern._jit.kernel\ndef log1p(x): return x + 1.0\n"
    )
    assert run(code, package_copy, **environment) != "inf"


# --- never wrong: numba's switches and the CPU --------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("switch", ["NUMBA_BOUNDSCHECK", pytest.param("NUMBA_DEBUGINFO", marks=pytest.mark.slow)])
def test_code_of_plain_numba_is_not_cached(switch, tmp_path):
    """Code compiled with numba's checks is neither stored nor loaded."""
    for _ in range(2):
        assert run(COMPILE + HITS, NUMBA_CACHE_DIR=str(tmp_path), **{switch: "1"}) == "0"
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_bounds_are_checked_where_numba_is_told_to():
    code = (
        "import numpy as np; from powerkern.kernels.transforms.lambda_bounds import lambda_ranges as f\n"
        "try: f(1, np.zeros(3), np.zeros(1), 10.0, np.empty(3), np.empty(3))\n"
        "except IndexError as error: print(error)"
    )
    assert "out of bounds" in run(code, NUMBA_BOUNDSCHECK="1")


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names x86 CPUs")
def test_different_cpus_share_a_cache_without_sharing_code(tmp_path):
    """Two CPUs take turns; each loads its own code in its second turn."""
    unlike = [("x86-64", "+sse2"), ("x86-64", "+sse2,+sse3")]
    call = "import numpy as np; low, high = np.empty((2, 1)); f(0, np.ones(1), np.full(1, 9.0), 1e3, low, high)"
    hits = []
    for name, features in 2 * unlike:
        environment = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features, "NUMBA_CACHE_DIR": str(tmp_path)}
        hits.append(run(COMPILE + HITS + call, **environment))
    assert hits == ["0", "0", "1", "1"]
    assert len(list(tmp_path.iterdir())) == 2


def test_the_cpus_name_and_features_are_in_the_folders():
    unlike = [("haswell", "+avx2"), ("znver3", "+avx2"), ("znver3", "+avx2,+fma"), ("../../elsewhere", "")]
    names = [code_cache.folder_name(cpus.Cpu(*cpu)) for cpu in unlike]
    assert len(set(names)) == len(names)
    assert names[0].startswith("powerkern-haswell-")
    assert Path(names[-1]).name == names[-1]


def test_the_layout_of_python_objects_is_in_the_folders_name(monkeypatch):
    """Machine code reads Python objects, which are longer in builds without a global lock."""
    before = code_cache.folder_name()
    monkeypatch.setattr(code_cache, "HEADER", code_cache.HEADER + 2)
    assert code_cache.folder_name() != before


# --- never wrong: damage and strangers ----------------------------------------------------------------


def damaged_copies(content, rng):
    """Yield damaged versions of the bytes `content` of a file.

    Bits or bytes are changed (also in the digest), or the file is truncated, extended or filled with zeros.
    """
    for position in [*rng.integers(0, len(content), 60).tolist(), 0, 31, 32, len(content) - 1]:
        one = content[position]
        for other in (one ^ 1 << rng.integers(8), 255 - one):
            yield content[:position] + bytes([int(other)]) + content[position + 1 :]
        yield content[:position] + bytes(64) + content[position + 64 :]
        yield content[:position]
    yield content + b"\0"
    yield bytes(len(content))


@pytest.mark.slow
def test_damaged_code_is_never_loaded(place):
    content = file_in(place).read_bytes()
    rng, tried = np.random.default_rng(0), 0
    assert code_cache._read(FUNCTION) == content[32:]
    for damaged in damaged_copies(content, rng):
        if damaged != content:
            file_in(place).write_bytes(damaged)
            assert code_cache._read(FUNCTION) is None
            tried += 1
    assert tried > 200


def test_code_of_another_entry_is_never_loaded(place, monkeypatch):
    path = file_in(place)
    monkeypatch.setattr(FUNCTION, "__qualname__", "other")
    path.rename(path.with_name(code_cache.file_name(FUNCTION)))
    assert code_cache._read(FUNCTION) is None


@pytest.mark.slow
def test_damaged_code_is_replaced(place, loads):
    content = file_in(place).read_bytes()
    file_in(place).write_bytes(content[:500] + bytes(64) + content[564:])
    assert not loads()
    assert whole(file_in(place))
    assert loads()


def test_code_from_a_stranger_is_never_read(place):
    (place / code_cache.folder_name()).chmod(0o777)
    assert code_cache._read(FUNCTION) is None
    (place / code_cache.folder_name()).chmod(0o755)
    file_in(place).chmod(0o666)
    assert code_cache._read(FUNCTION) is None


# --- pruned -------------------------------------------------------------------------------------------


@pytest.fixture
def other_versions(place, monkeypatch):
    """Write code files of twelve other versions of the sources, most recently used first, and yield their paths.

    Pruning, which happens once per process, is enabled again.
    """
    code_cache._prune.cache_clear()
    made = [file_in(place).with_name(f"{ENTRY}-{k:016x}.code") for k in range(12)]
    for k, path in enumerate(made):
        path.touch()
        os.utime(path, (0.0, time.time() - 60.0 * (k + 1)))
    yield made
    code_cache._prune.cache_clear()


def test_the_versions_used_last_stay(place, other_versions):
    code_cache._prune(place)
    there = sorted(path.name for path in file_in(place).parent.iterdir())
    assert there == sorted([name(), *(path.name for path in other_versions[:7])])


def test_compiling_prunes_old_folders(other_versions, place, compiled):
    file_in(place).unlink()
    compiled()
    assert file_in(place).exists()
    assert sum(path.exists() for path in other_versions) == 7


def test_an_entry_that_is_not_used_goes_after_a_year_and_its_folder_too(place):
    code_cache._prune.cache_clear()
    long_ago, old = time.time() - 400 * 86_400.0, place / "powerkern-old-00000000"
    old.mkdir()
    strangers = [old / "kernels.gone.f-0123456789abcdef.code", old / "kernels.of.an.older.layout.code"]
    others = [place / "powerkern-notes.txt", place / "elsewhere" / "x.code"]
    others[1].parent.mkdir()
    for path in [*strangers, *others]:
        path.touch()
        os.utime(path, (long_ago, long_ago))
    os.utime(old, (long_ago, long_ago))
    code_cache._prune(place)
    assert not any(path.exists() for path in strangers)
    assert all(path.exists() for path in [*others, file_in(place)])
    code_cache._prune.cache_clear()
    os.utime(old, (long_ago, long_ago))
    code_cache._prune(place)
    assert not old.exists()
    code_cache._prune.cache_clear()


def test_the_draft_of_a_process_that_died_goes_after_a_day(place):
    code_cache._prune.cache_clear()
    drafts = [file_in(place).with_name(f"{ENTRY}-{k:016x}.code.draft") for k in range(2)]
    for path, age in zip(drafts, (60.0, 2 * 86_400.0), strict=True):
        path.touch()
        os.utime(path, (0.0, time.time() - age))
    code_cache._prune(place)
    assert [path.exists() for path in drafts] == [True, False]
    code_cache._prune.cache_clear()


def test_a_folder_of_others_is_not_pruned(place, other_versions):
    file_in(place).parent.chmod(0o777)
    code_cache._prune(place)
    assert all(path.exists() for path in other_versions)


def test_a_use_is_noted_once_a_day(place, loads):
    for age, is_noted in ((3600.0, False), (2 * 86_400.0, True)):
        then = time.time() - age
        os.utime(file_in(place), (then, then))
        assert loads()
        assert (time.time() - file_in(place).stat().st_mtime < 600.0) == is_noted


# --- never in the way ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_missing_cache_folder_is_reported_once(empty, monkeypatch, compiled):
    (empty / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(empty / "file"))
    with pytest.warns(RuntimeWarning, match=r"every process compiles it again \(.*file: .*NUMBA_CACHE_DIR") as said:
        compiled()
    assert len(said) == 1
    compiled()  # warnings are errors


def test_a_warning_that_is_an_error_breaks_nothing(empty, monkeypatch):
    (empty / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(empty / "file"))
    entry = sys.modules["powerkern.kernels.transforms.lambda_bounds"].lambda_ranges
    again = type(entry)(entry.__wrapped__, entry._signature)
    with pytest.raises(RuntimeWarning):
        again.compile()
    assert again.compile() is again.compile()


def test_a_relative_folder_is_not_used(empty, monkeypatch, compiled):
    monkeypatch.chdir(empty)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "cache")
    with pytest.warns(RuntimeWarning, match="not an absolute path"):
        compiled()
    assert list(empty.iterdir()) == []


def test_a_full_disk_means_no_cache(empty, compiled):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, before[1]))
    try:
        with pytest.warns(RuntimeWarning, match="File too large"):
            function = compiled()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    low, high = np.empty((2, 1))
    function(1, np.zeros(1), np.zeros(1), 10.0, low, high)
    assert high[0] == np.inf
    assert list(empty.glob("*/*")) == []


def test_a_process_that_never_ends_is_not_waited_for(empty, monkeypatch, compiled):
    monkeypatch.setattr(files, "PATIENCE", 0.0)
    with files.draft(file_in(empty)), pytest.warns(RuntimeWarning, match="another process"):
        assert callable(compiled())
