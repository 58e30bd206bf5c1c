"""Cache keys of compiled code: an edit changes the keys of all entries that can reach that code, and no others."""

from __future__ import annotations

import ast
import compileall
import functools
import importlib
import pkgutil
import shutil
import sys
import types
import zipfile
from pathlib import Path

import processes
import pytest

import powerkern
from powerkern._jit import Entry, source_keys
from powerkern.kernels.compilation import entries

PACKAGE = Path(powerkern.__file__).parent
#: A module with an entry that imports few modules, and one that imports many.
SMALL, LARGE = "powerkern.kernels.transforms.lambda_bounds", "powerkern.kernels.robust.rewml"


@pytest.fixture
def package_copy(tmp_path):
    """A folder with a copy of the package that may be edited."""
    shutil.copytree(PACKAGE, tmp_path / "src" / "powerkern", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "src"


def keys(sources, *modules):
    """Import `modules` from `sources` in a new process; return (cache key, is the key of source text) for each."""
    code = (
        f"import importlib; from powerkern._jit import source_keys\nfor name in {modules}:\n"
        "    importlib.import_module(name); print(*source_keys.cache_key(name))"
    )
    return [tuple(line.split()) for line in processes.run(code, sources).splitlines()]


# --- what decides on the code ---------------------------------------------------------------------------


def imported_by(name):
    """Return the modules of the package that the module `name` imports, within functions, too."""
    found = set()
    for node in ast.walk(ast.parse(Path(importlib.import_module(name).__file__).read_bytes())):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names if each.name.startswith("powerkern.")}
        elif isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "powerkern":
            inner = {f"{node.module}.{each.name}" for each in node.names}
            modules = {each for each in inner if isinstance(sys.modules.get(each), types.ModuleType)}
            found |= modules | ({node.module} if inner - modules else set())
    return found - {"powerkern._jit"}


@pytest.mark.parametrize("module", sorted({entry.__module__ for entry in entries().values()})[::2])
def test_every_imported_module_is_in_the_key(module):
    found, waiting = set(), [module, "powerkern._jit.object_code"]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(imported_by(name))
    assert source_keys.import_closure(module) == found


def functions_of(value, seen):
    """Yield the functions in a value (also in tuples and closures), and those that their code refers to by name.

    `seen` has the ids of the values that were visited; it is updated in place.
    """
    if isinstance(value, Entry):
        value = value.__wrapped__
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, tuple):
        for each in value:
            yield from functions_of(each, seen)
    elif isinstance(value, types.FunctionType):
        yield value
        for cell in value.__closure__ or ():
            yield from functions_of(cell.cell_contents, seen)
        for name in value.__code__.co_names:
            yield from functions_of(value.__globals__.get(name), seen)


@pytest.mark.parametrize("name, entry", entries().items())
def test_every_function_that_an_entry_can_call_is_in_its_key(name, entry):
    """The import closure contains the modules of these functions, also of those passed to the entry's factory."""
    called = {str(each.__module__) for each in functions_of(entry, set())}
    assert {module for module in called if module.startswith("powerkern.kernels")} <= source_keys.import_closure(
        entry.__module__
    )


def test_modules_that_affect_compilation_are_in_every_key():
    names = {f"powerkern._jit.{info.name}" for info in pkgutil.iter_modules([str(PACKAGE / "_jit")])}
    beside = {f"powerkern._jit.{name}" for name in ("code_cache", "compile_notice", "entries", "files", "source_keys")}
    assert {each for each in source_keys.import_closure(SMALL) if "._jit." in each} == names - beside


# --- edits ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "file, changed",
    [
        ("kernels/robust/rewml.py", [False, True]),
        ("kernels/elementary/log.py", [True, True]),
        ("kernels/multivariate/cells.py", [False, False]),
        ("kernels/__init__.py", [False, False]),
        ("_jit/object_code.py", [True, True]),
        ("_jit/marks.py", [True, True]),
        ("_jit/code_cache.py", [False, False]),
        ("_status.py", [False, True]),
        ("__main__.py", [False, False]),
    ],
)
def test_an_edit_changes_the_keys_that_depend_on_it(file, changed, package_copy):
    before = keys(package_copy, SMALL, LARGE)
    with (package_copy / "powerkern" / file).open("a") as edited:
        edited.write("# edited\n")
    after = keys(package_copy, SMALL, LARGE)
    assert [old != new for old, new in zip(before, after, strict=True)] == changed


@pytest.mark.slow
def test_text_that_moves_from_one_file_to_the_next_changes_the_key(package_copy):
    first, second = (package_copy / "powerkern" / "kernels" / "elementary" / name for name in ("exp.py", "log.py"))
    before = keys(package_copy, SMALL)
    second.write_bytes(first.read_bytes()[-1:] + second.read_bytes())
    first.write_bytes(first.read_bytes()[:-1])
    assert keys(package_copy, SMALL) != before


# --- without sources in a folder ------------------------------------------------------------------------


def strip_sources(sources):
    """Compile all sources to bytecode and delete the sources, as application bundlers do."""
    compileall.compile_dir(sources, quiet=1, legacy=True)
    for path in sources.rglob("*.py"):
        path.unlink()


@pytest.mark.slow
def test_a_zip_file_has_the_keys_of_its_sources(package_copy, tmp_path):
    with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
        for path in (package_copy / "powerkern").rglob("*.py"):
            archive.write(path, path.relative_to(package_copy))
    code = f"import {SMALL}; from powerkern._jit import source_keys; print(*source_keys.cache_key({SMALL!r}))"
    printed = processes.run(code, tmp_path, PYTHONPATH=str(tmp_path / "package.zip"))
    assert tuple(printed.split()) == keys(package_copy, SMALL)[0]


@pytest.mark.slow
def test_bytecode_has_keys_that_do_not_depend_on_its_place_and_lines(package_copy, tmp_path):
    edited = package_copy / "powerkern" / "kernels" / "elementary" / "log.py"
    found = []
    for k, before in enumerate(("", "# moved\n\n", "MOVED = 1\n")):
        copy = tmp_path / f"copy{k}"
        shutil.copytree(package_copy, copy)
        path = copy / edited.relative_to(package_copy)
        future = "from __future__ import annotations\n"
        path.write_text(path.read_text().replace(future, future + before))
        strip_sources(copy)
        found += keys(copy, SMALL)
    assert found[0] == found[1] != found[2]
    assert {origin for _, origin in found} == {"False"}


@pytest.mark.slow
def test_bytecode_has_the_imports_of_its_sources(package_copy):
    code = f"from powerkern._jit.source_keys import import_closure; print(*sorted(import_closure({LARGE!r})))"
    from_sources = processes.run(code, package_copy)
    strip_sources(package_copy)
    assert processes.run(code, package_copy) == from_sources


@pytest.mark.parametrize(
    "one, other", [("1", "True"), ("1", "1.0"), ("0.0", "-0.0"), ("(1, 2)", "(1, 2.0)"), ("x + 1", "x - 1"), ("x", "y")]
)
def test_bytecode_that_differs_has_different_keys(one, other):
    digests = [
        source_keys._digest_of_code(compile(f"def f(x, y): return {text}", "f", "exec")) for text in (one, other)
    ]
    assert digests[0] != digests[1]


@pytest.mark.slow
def test_keys_do_not_depend_on_the_order_of_sets():
    """The order of a set of constants in memory changes from one process to the next."""
    code = (
        "from powerkern._jit import source_keys as s\n"
        'print(s._digest_of_code(compile(\'x in {"a", "b", "c", "d"}\', \'\', \'eval\')).hex())'
    )
    assert len({processes.run(code, PYTHONHASHSEED=str(seed)) for seed in range(3)}) == 1


def test_a_module_without_source_and_bytecode_has_no_key(monkeypatch):
    monkeypatch.setattr(source_keys, "find_spec", lambda name: None)
    for each in (source_keys._read, source_keys.cache_key):
        monkeypatch.setattr(source_keys, each.__name__, functools.cache(each.__wrapped__))  # empty caches
    assert source_keys.cache_key(SMALL).text == ""
