"""`powerkern compile` and the wheel with compiled code. The tests compile small entries only."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import json
import os
import re
import sys
import sysconfig
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import processes
import pytest
from pages import ROOT

from powerkern.__main__ import main
from powerkern._cli import compiling as _compile
from powerkern._jit import Entry
from powerkern.kernels import compilation

needs_jit = pytest.mark.skipif(compilation.JIT_DISABLED, reason="nothing is compiled")


@pytest.fixture
def small(monkeypatch):
    """Replace the entries compiled by default by one small entry."""
    monkeypatch.setattr(compilation, "USUAL", ("transforms.lambda_bounds",))


def run(capsys, *words):
    return main([str(word) for word in ("compile", *words)]), *capsys.readouterr()


# --- which entries ---------------------------------------------------------------------------------------

#: A script that makes a fit of every usual kind and prints the entries that are compiled or loaded for them.
USED = """
import numpy as np, powerkern as pk
from powerkern._jit import Entry
names, compile = [], Entry.compile
def recording(entry):
    names.append(entry.__wrapped__.__module__.removeprefix("powerkern.kernels.") + "." + entry.__wrapped__.__name__)
    return compile(entry)
Entry.compile = recording
x = np.random.default_rng(0).lognormal(size=(300, 3))
for estimator in ("mle", "robust"):
    for family in ("box-cox", "yeo-johnson"):
        for order in ("C", "F"):
            y = np.asarray(x, order=order)
            fit = pk.fit(y, family, estimator)
            fit.inverse_transform(fit.transform(y))
            pk.fit(y[:50, 0], family, estimator)
        fit.summary(), fit.confint()
print(*set(names))
"""


@pytest.mark.slow
@needs_jit
def test_the_usual_entries_are_those_of_fit_transform_inverse_and_summary():
    assert set(processes.run(USED).split()) <= set(compilation.entries(everything=False))


def test_registry_lists_every_live_entry():
    """Entries that factories create are also registered."""
    known = compilation.entries()
    alive = [
        each for each in gc.get_objects() if type(each) is Entry and each.__module__.startswith("powerkern.kernels.")
    ]
    assert len(known) == len(alive)


# --- the command -----------------------------------------------------------------------------------------


@pytest.mark.slow
@needs_jit
def test_code_is_there_for_the_next_process(small, tmp_path, capsys):
    code, out, _ = run(capsys, "--to", tmp_path / "cache", "--processes", 1)
    assert code == 0
    (folder,) = (tmp_path / "cache").iterdir()
    (path,) = folder.iterdir()
    assert re.fullmatch(r"kernels\.transforms\.lambda_bounds\.lambda_ranges-[0-9a-f]{16}\.code", path.name)
    assert str(folder) in out
    assert out.startswith("1 entries, 0 of which were compiled before")
    hits = "import sys; print(int('numba' not in sys.modules))"
    load = f"from powerkern.kernels.transforms.lambda_bounds import lambda_ranges as f; f.compile(); {hits}"
    assert processes.run(load, NUMBA_CACHE_DIR=str(tmp_path / "cache")) == "1"
    code, out, _ = run(capsys, "--to", tmp_path / "cache", "--json")
    summary = json.loads(out)
    assert summary["folder"] == str(folder)
    assert summary["entries"]["transforms.lambda_bounds.lambda_ranges"] == {"seconds": 0.0, "bytes": summary["bytes"]}


@pytest.mark.slow
@needs_jit
def test_without_tqdm_each_entry_is_a_line(small, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    _, _, err = run(capsys, "--to", tmp_path)
    assert err.startswith("[1/1] transforms.lambda_bounds.lambda_ranges: ")
    assert err.count("\n") == 1


@pytest.mark.slow
@needs_jit
def test_another_instruction_set_has_its_own_folder(small, tmp_path, capsys):
    level = next(iter(compilation.cpu_levels()))
    before = dict(os.environ)
    assert run(capsys, "--to", tmp_path, "--cpu", level)[0] == 0
    (folder,) = tmp_path.iterdir()
    assert f"-{level}-" in folder.name
    assert dict(os.environ) == before


@pytest.mark.slow
@needs_jit
def test_a_folder_that_cannot_be_written_to_is_an_error(small, tmp_path, capsys):
    (tmp_path / "file").touch()
    code, out, err = run(capsys, "--to", tmp_path / "file")
    assert (code, out) == (2, "")
    assert "powerkern compile: compiled code cannot be stored:" in err
    assert f"{tmp_path / 'file'}: Not a directory" in err


@needs_jit
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes of files are POSIX's")
def test_a_folder_that_cannot_be_trusted_is_an_error(small, tmp_path, capsys):
    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "open").chmod(0o777)
    code, _, err = run(capsys, "--to", tmp_path / "open")
    assert code == 2
    assert "everybody may write to" in err


def test_numba_switched_off_is_an_error(capsys, monkeypatch):
    monkeypatch.setattr(_compile, "JIT_DISABLED", True)
    code, _, err = run(capsys)
    assert (code, err) == (2, "powerkern compile: numba is switched off: unset NUMBA_DISABLE_JIT\n")


# --- the wheel -------------------------------------------------------------------------------------------


@pytest.fixture
def built(tmp_path, monkeypatch):
    """Build a wheel with the build hook; a stub replaces the compilation, which would take minutes."""
    builders = pytest.importorskip("hatchling.builders.wheel")
    specification = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    hook = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(hook)

    def compile_for(self, cpu):
        folder = Path(self._folder.name) / f"powerkern-state-{cpu}-features"
        folder.mkdir()
        (folder / "kernels.some.code").write_bytes(b"code")

    monkeypatch.setattr(hook.CompiledCode, "_compile", compile_for)
    builder = builders.WheelBuilder(str(ROOT))
    monkeypatch.setattr(
        builder, "get_build_hooks", lambda folder: {"custom": _hook(hook.CompiledCode, builder, folder)}
    )

    def build():
        (wheel,) = builder.build(directory=str(tmp_path), versions=["standard"])
        return Path(wheel)

    return build


def _hook(kind, builder, folder):
    return kind(str(ROOT), {}, builder.config, builder.metadata, folder, "wheel", builder.app)


@pytest.mark.slow
def test_a_wheel_with_code_names_its_platform(built, monkeypatch):
    monkeypatch.setenv("POWERKERN_COMPILE", "1")
    wheel = built()
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert wheel.name.endswith(f"-py3-none-{platform}.whl")
    code = [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".code")]
    assert code
    assert all(name.startswith("powerkern/_compiled/powerkern-state-") for name in code)


def test_a_wheel_has_no_code_unless_asked_for(built, monkeypatch):
    monkeypatch.delenv("POWERKERN_COMPILE", raising=False)
    wheel = built()
    assert wheel.name.endswith("-py3-none-any.whl")
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if "_compiled" in name]


# --- who compiles what ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_workers", [1, 2, 3, 30])
def test_each_entry_is_compiled_once_and_the_first_of_a_share_by_its_worker(monkeypatch, n_workers):
    monkeypatch.setattr(_compile, "_compile_entry", lambda name, folder: (name, threading.current_thread().name))
    names = [str(k) for k in range(20)]
    with contextlib.ExitStack() as stack:
        pools = (ThreadPoolExecutor(1, thread_name_prefix=f"worker {k}") for k in range(n_workers))
        workers = [stack.enter_context(pool) for pool in pools]
        kept = list(_compile._compile_each(names, Path(), workers))
    assert sorted(name for name, _ in kept) == sorted(names)
    size, by_name = -(-len(names) // n_workers), dict(kept)
    for k, first in enumerate(names[::size]):
        assert by_name[first] == f"worker {k}_0"
