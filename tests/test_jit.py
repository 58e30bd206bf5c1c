"""How code is compiled and cached: once, at the first call, in a folder that changes with the sources."""

from __future__ import annotations

import importlib
import os
import pkgutil
import shutil
import sys
from pathlib import Path

import numba
import numpy as np
import processes
import pytest

import powerkern
import powerkern.kernels
from powerkern import _jit
from powerkern.kernels import elementary, mle

PACKAGE = Path(powerkern.__file__).parent

needs_jit = pytest.mark.skipif(_jit.JIT_DISABLED, reason="nothing is compiled")

#: A small entry to compile in a subprocess, so that no test waits for a whole fit.
COMPILE = "from powerkern.kernels import bound; bound.lambda_ranges.compile(); "
FOLDER = "from powerkern import _jit; print(_jit._cache_folder())"


def run(code, sources=PACKAGE.parent, **environment):
    """What a process prints; only what is asked for decides where its cache is."""
    return processes.run(code, sources, **{"NUMBA_CACHE_DIR": "", "NUMBA_DISABLE_JIT": "0", **environment})


@pytest.fixture(scope="module")
def filled_cache(tmp_path_factory):
    """A cache folder that a process has compiled into; to be copied, not changed."""
    folder = tmp_path_factory.mktemp("cache")
    run(COMPILE, NUMBA_CACHE_DIR=str(folder))
    return folder


@pytest.fixture
def package_copy(tmp_path):
    """A folder with a copy of the package that may be edited."""
    shutil.copytree(PACKAGE, tmp_path / "src" / "powerkern", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "src"


def entries():
    """Every entry of the package by name."""
    found = {}
    for info in pkgutil.iter_modules(powerkern.kernels.__path__):
        module = importlib.import_module(f"powerkern.kernels.{info.name}")
        for value in vars(module).values():
            assert not isinstance(value, numba.core.registry.CPUDispatcher), info.name
            if isinstance(value, _jit._Entry):
                found[f"{value.__module__}.{value.__name__}"] = value
    return found


# --- entries ------------------------------------------------------------------------------------------


@needs_jit
def test_there_is_one_kind_of_compiled_function():
    """Only entries compile anything: `entries` checks that no module holds a dispatcher of its own."""
    assert {"powerkern.kernels.mle.fit_columns", "powerkern.kernels.columnwise.gather"} <= set(entries())


@needs_jit
def test_an_entry_has_one_signature():
    compiled = mle.fit_columns.compile()
    assert len(compiled.signatures) == 1
    assert not compiled._can_compile
    assert compiled.targetoptions["nogil"]
    with pytest.raises(TypeError, match="No matching definition"):
        mle.fit_columns(np.zeros((1, 3), dtype=np.float32), 1, 2, 3, 4, 5)
    assert mle.fit_columns.compile() is compiled


@needs_jit
def test_an_entry_says_what_it_is():
    assert mle.fit_columns.__name__ == "fit_columns"
    assert mle.fit_columns.__doc__.startswith("Fit the rows")
    assert callable(mle.fit_columns.__wrapped__)


@needs_jit
@pytest.mark.parametrize("releases", ["('0.', '1.')", "()"])
def test_kernels_without_machine_code_of_their_own(releases, tmp_path):
    """An entry that allocates, and then a user's function that calls the same kernel: in releases known and unknown."""
    code = (
        f"import numba, numpy as np; from powerkern import _jit; _jit._LINKS_KERNELS = {releases}\n"
        "from numba.core.registry import cpu_target; from powerkern.kernels import boxcox\n"
        "x, out, again = np.linspace(1.0, 9.0, 999), np.empty(999), np.empty(999)\n"
        "boxcox.boxcox_array(x, 0.5, out)\n"
        "assert not {'_library_class', 'set_env'} & set(vars(cpu_target.target_context.codegen()))\n"
        "loop = boxcox.boxcox_loop\n"
        "numba.njit(lambda x, y: loop(x, 0.5, y))(x, again)\n"
        "print((out == again).all(), np.allclose(out, 2.0 * (np.sqrt(x) - 1.0)))"
    )
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)) == "True True"


def test_importing_compiles_nothing():
    modules = sorted(f"powerkern.kernels.{info.name}" for info in pkgutil.iter_modules(powerkern.kernels.__path__))
    code = (
        f"import importlib, powerkern, powerkern.stats; modules = [importlib.import_module(m) for m in {modules}]\n"
        "from powerkern._jit import _Entry\n"
        "found = [v for m in modules for v in vars(m).values() if isinstance(v, _Entry)]\n"
        "print(len(found) > 5, [v.__name__ for v in found if v._compiled is not None])"
    )
    assert run(code) == "True []"


def test_importing_does_not_import_optional_dependencies():
    code = "import sys, powerkern; print({'sklearn', 'pandas', 'tqdm', 'polars', 'pyarrow', 'dask'} & set(sys.modules))"
    assert run(code) == "set()"


# --- the cache ----------------------------------------------------------------------------------------


@needs_jit
def test_cache_is_where_numba_is_told(filled_cache):
    (folder,) = filled_cache.iterdir()
    assert folder.name.startswith("powerkern-")
    names = [path.name for path in folder.rglob("*") if path.is_file()]
    assert any(name.endswith(".nbi") for name in names)
    assert any(name.endswith(".nbc") for name in names)
    assert all("lambda_ranges" in name for name in names)


@needs_jit
def test_cache_is_used_by_the_next_process(filled_cache):
    before = {path: path.stat().st_mtime_ns for path in filled_cache.rglob("*.nb?")}
    hits = "print(sum(bound.lambda_ranges._compiled.stats.cache_hits.values()))"
    assert run(COMPILE + hits, NUMBA_CACHE_DIR=str(filled_cache)) == "1"
    assert {path: path.stat().st_mtime_ns for path in filled_cache.rglob("*.nb?")} == before


@needs_jit
def test_cache_changes_with_any_compiled_source(package_copy, tmp_path):
    """numba does not see that a callee in another file was edited: the folder's name does."""
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    first = run(FOLDER, package_copy, **environment)
    assert run(FOLDER, package_copy, **environment) == first
    for edited in ("kernels/elementary.py", "_status.py"):
        with (package_copy / "powerkern" / edited).open("a") as file:
            file.write("# edited\n")
        second = run(FOLDER, package_copy, **environment)
        assert second != first
        first = second
    (package_copy / "powerkern" / "kernels" / "new.py").touch()
    last = run(FOLDER, package_copy, **environment)
    assert last != first
    with (package_copy / "powerkern" / "__main__.py").open("a") as file:  # compiles nothing
        file.write("# edited\n")
    assert run(FOLDER, package_copy, **environment) == last


@needs_jit
def test_an_edited_callee_is_compiled_afresh(package_copy, tmp_path):
    """The caller's file is unchanged, the callee's is not: the result must be the new one."""
    code = (
        "import numpy as np\nfrom powerkern.kernels import bound\nlow, high = np.empty((2, 1))\n"
        "bound.lambda_ranges(1, np.zeros(1), np.zeros(1), 10.0, low, high)\nprint(high[0])"
    )
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert run(code, package_copy, **environment) == "inf"
    path = package_copy / "powerkern" / "kernels" / "elementary.py"
    path.write_text(
        path.read_text() + "\n\nimport powerkern._jit\n@powerkern._jit.kernel\ndef log1p(x): return x + 1.0\n"
    )
    assert run(code, package_copy, **environment) != "inf"


@needs_jit
def test_default_cache_is_beside_the_sources(package_copy):
    folder = Path(run(COMPILE + FOLDER, package_copy))
    assert folder.parent == package_copy / "powerkern" / "__pycache__"
    assert list(folder.rglob("*.nbi"))


@needs_jit
def test_read_only_sources_use_the_users_cache(package_copy, tmp_path):
    """A file where the folder should be stands for read-only sources: tests may run as root."""
    (package_copy / "powerkern" / "__pycache__").write_text("")
    environment = {"XDG_CACHE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    folder = Path(run(COMPILE + FOLDER, package_copy, **environment))
    assert folder.name.startswith("powerkern-")
    if sys.platform == "linux":
        assert folder.parent == tmp_path / "home" / "powerkern"


@needs_jit
def test_runs_without_any_cache(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    code = COMPILE + FOLDER + "; print(bound.lambda_ranges._compiled.stats.cache_path)"
    assert run(code, NUMBA_CACHE_DIR=str(blocked)) == "None\nNone"


@needs_jit
@pytest.mark.parametrize("damage", ["cut", "noise"])
def test_damaged_cache_is_ignored(filled_cache, tmp_path, damage):
    shutil.copytree(filled_cache, tmp_path, dirs_exist_ok=True)
    for path in [p for p in tmp_path.rglob("*") if p.is_file()]:
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2] if damage == "cut" else bytes(len(data)))
    assert run(COMPILE + "print('compiled')", NUMBA_CACHE_DIR=str(tmp_path)) == "compiled"


@needs_jit
def test_internals_of_numba_that_moved_mean_no_cache(monkeypatch):
    def broken(py_func):
        raise AttributeError("numba's internals moved")

    monkeypatch.setattr(_jit._SourceHashCache, "_impl_class", broken)
    assert _jit._SourceHashCache.for_function(mle.fit_columns.__wrapped__) is None


# --- without numba, and in users' code ----------------------------------------------------------------


def test_the_same_without_compiling():
    """NUMBA_DISABLE_JIT=1 runs the same source as plain Python: rounding differs, in vectorised sums, nothing else."""
    code = (
        "import numpy as np, powerkern as pk\n"
        "rng = np.random.default_rng(0)\n"
        "for family, x in (('box-cox', rng.lognormal(size=(30, 2))), ('yeo-johnson', rng.normal(size=(300, 1)))):\n"
        "    fit = pk.fit(x, family)\n"
        "    print(*fit.lmbda, *fit.nll, *fit.transform(x)[:3, 0], *fit.confint().low)"
    )
    plain = [float(v) for v in run(code, NUMBA_DISABLE_JIT="1").split()]
    compiled = [float(v) for v in run(code, NUMBA_CACHE_DIR=os.environ.get("NUMBA_CACHE_DIR", "")).split()]
    np.testing.assert_allclose(plain, compiled, rtol=1e-11)


@numba.njit
def users_function(x):
    total = 0.0
    for i in range(x.size):
        total += elementary.log1p(x[i])
    return mle.has_root_near(total, 1.0, 0.0), total


def test_kernels_in_a_users_jitted_function():
    x = np.array([0.0, 1.0, 3.0])
    certified, total = users_function(x)
    assert certified
    assert total == pytest.approx(np.log1p(x).sum(), rel=1e-15)


def test_kernels_as_plain_python():
    assert elementary.log1p(1.0) == pytest.approx(np.log(2.0), rel=1e-15)
    assert mle.has_root_near(0.0, 1.0, 1.0)


@numba.njit
def bits(x, y, z):
    return _jit.float_of(_jit.bits_of(x)), _jit.bits_of(x), _jit.fma(x, y, z)


@pytest.mark.parametrize("x", [0.0, -0.0, 1.5, -5e-324, np.inf, 1.7976931348623157e308])
def test_bit_level_functions_have_equal_twins(x):
    """Compiled intrinsics and their plain-Python stand-ins."""
    compiled = bits(x, 1.0 + 2.0**-52, 1e-300)
    plain = _jit.float_of(_jit.bits_of(x)), _jit.bits_of(x), _jit.fma(x, 1.0 + 2.0**-52, 1e-300)
    assert compiled == plain
    assert np.signbit(compiled[0]) == np.signbit(x)


def test_fused_multiply_add_rounds_once():
    a = 1.0 + 2.0**-30
    assert _jit.fma(a, a, -(1.0 + 2.0**-29)) == 2.0**-60
    assert bits(a, a, -(1.0 + 2.0**-29))[2] == 2.0**-60
