"""Compute cache keys: hashes of the module of an entry and of every module that it imports, directly or indirectly.

Editing a kernel therefore changes the keys of the entries that may call the kernel, and no other keys. Modules are read
through their loaders, so they may lie in a folder, a zip file or an executable. For modules without sources the
bytecode, which is what numba compiles, is hashed instead.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import NamedTuple

#: The package whose imports are followed, and the package that compiles.
_PACKAGE, _JIT = "powerkern", "powerkern._jit"
#: Kernels import marks and types from _JIT. This module of it imports everything that determines their code.
_COMPILER = "powerkern._jit.object_code"
#: Matches ``from a.b import c, d``, with or without parentheses around the names, and ``import a.b``.
_IMPORT = re.compile(
    rf"^[ \t]*(?:from[ \t]+({_PACKAGE}[\w.]*)[ \t]+import\b[ \t]*(\([^)]*\)|[^\n]*)|import[ \t]([^\n]*))", re.MULTILINE
)


class Unknown(Exception):
    """Raised if neither the source nor the bytecode of a module can be read."""


class Key(NamedTuple):
    """The key of an entry (empty if nothing could be hashed), and whether it was made from sources alone."""

    text: str
    from_sources: bool


class _Module(NamedTuple):
    digest: bytes
    imported: frozenset[str]
    has_source: bool


@functools.cache
def cache_key(module: str) -> Key:
    """Return the key of the entries that are defined in a module."""
    try:
        modules = {name: _read(name) for name in import_closure(module)}
    except Unknown:
        return Key("", False)
    digest = hashlib.sha256()
    for name in sorted(modules):
        digest.update(name.encode() + b"\0" + modules[name].digest)
    return Key(digest.hexdigest()[:16], all(each.has_source for each in modules.values()))


def import_closure(module: str) -> frozenset[str]:
    """Return the names of all modules that determine the code of a module's entries."""
    found, waiting = set[str](), [module, _COMPILER]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(_read(name).imported)
    return frozenset(found)


@functools.cache
def _read(name: str) -> _Module:
    """Hash one module, and find the modules of the package that it imports."""
    spec = find_spec(name)
    loader = None if spec is None else spec.loader
    try:
        source = loader.get_source(name)  # type: ignore[union-attr]
    except (AttributeError, ImportError, OSError):
        source = None
    if source is not None:
        return _Module(hashlib.sha256(source.encode()).digest(), _imports_of_source(source), True)
    try:
        code = loader.get_code(name)  # type: ignore[union-attr]
    except (AttributeError, ImportError, OSError):
        code = None
    if code is None:
        raise Unknown(f"{name} has neither source nor bytecode")
    return _Module(_digest_of_code(code), _imports_of_code(code), False)


# --- imports ------------------------------------------------------------------------------------------


def _imports_of_source(source: str) -> frozenset[str]:
    found = set[str]()
    for package, names, modules in _IMPORT.findall(source):
        if package:
            names = re.sub(r"#[^\n]*|[ \t]as[ \t]+\w+", "", names)
            found.update(_resolve_imports(package, re.findall(r"\w+", names)))
        found.update(re.findall(rf"\b{_PACKAGE}\.[\w.]*", modules))
    return frozenset(found)


def _imports_of_code(code: CodeType) -> frozenset[str]:
    imported: list[tuple[str, list[str]]] = []
    for each in _codes_in(code):
        if any(name.split(".")[0] == _PACKAGE for name in each.co_names):
            for instruction in dis.get_instructions(each):
                if instruction.opname == "IMPORT_NAME":
                    imported.append((instruction.argval, []))
                elif instruction.opname == "IMPORT_FROM":
                    imported[-1][1].append(instruction.argval)
    ours = (each for each in imported if each[0].split(".")[0] == _PACKAGE)
    return frozenset(name for module, names in ours for name in _resolve_imports(module, names))


def _resolve_imports(module: str, names: list[str]) -> Iterator[str]:
    """Yield the modules loaded by ``from module import names``, unless they cannot affect compiled code."""
    inner = [f"{module}.{name}" for name in names if _is_module(module, name)]
    yield from inner
    if module != _JIT and (len(inner) < len(names) or not names):  # _COMPILER stands for _JIT
        yield module


def _is_module(package: str, name: str) -> bool:
    """Return whether ``from package import name`` imports a submodule rather than an attribute."""
    imported = sys.modules.get(package)
    if imported is not None and (not hasattr(imported, "__path__") or name in vars(imported)):
        return isinstance(vars(imported).get(name), ModuleType)
    spec = find_spec(package)
    is_package = spec is not None and spec.submodule_search_locations is not None
    return is_package and find_spec(f"{package}.{name}") is not None


# --- bytecode -----------------------------------------------------------------------------------------


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes_in(constant)


def _digest_of_code(code: CodeType) -> bytes:
    """Hash a code object and the code objects nested in it, ignoring file names and line numbers."""
    parts = [
        code.co_code, getattr(code, "co_exceptiontable", b""), code.co_names, code.co_varnames, code.co_freevars,
        code.co_cellvars, code.co_flags, code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount,
    ]  # fmt: skip
    digest = hashlib.sha256()
    for part in [*parts, *map(_described, code.co_consts)]:
        content = repr(part).encode()
        digest.update(b"%d\0" % len(content) + content)
    return digest.digest()


def _described(constant: object) -> object:
    """Describe a constant by type and value: 1, 1.0 and True differ, but the order within sets does not matter."""
    if isinstance(constant, CodeType):
        return _digest_of_code(constant)
    if isinstance(constant, tuple | frozenset):
        each = [repr(_described(element)) for element in constant]
        return type(constant).__name__, each if isinstance(constant, tuple) else sorted(each)
    return type(constant).__name__, repr(constant)
