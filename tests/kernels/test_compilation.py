"""The registry of entries, for a small package in place of `powerkern.kernels`."""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace

import pytest

from powerkern._jit import Entry
from powerkern.kernels import compilation

FIRST = """
from powerkern._jit import Entry
from PACKAGE.sub.second import shared


def one(): ...
def two(): ...
def three(): ...


one, TABLE, CONSTANT = Entry(one, ()), {0: Entry(two, ()), 1: (Entry(three, ()), "text")}, 1.0
"""
SECOND = """
from powerkern._jit import Entry


def shared(): ...
def other(): ...


shared, other = Entry(shared, ()), Entry(other, ())
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Make a package with two modules, one of them in a subpackage, and let `compilation` list its entries."""
    name = f"package_of_{tmp_path.name}"
    (tmp_path / name / "sub").mkdir(parents=True)
    for path, text in {"__init__": "", "sub/__init__": "", "first": FIRST, "sub/second": SECOND}.items():
        (tmp_path / name / f"{path}.py").write_text(text.replace("PACKAGE", name))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(compilation, "powerkern", SimpleNamespace(kernels=importlib.import_module(name)))
    yield name
    for module in [each for each in sys.modules if each.split(".")[0] == name]:
        del sys.modules[module]


ALL = {"first.one", "first.two", "first.three", "sub.second.shared", "sub.second.other"}


@pytest.mark.parametrize(
    ("usual", "expected"),
    [
        (("first",), {"first.one", "first.two", "first.three"}),
        (("sub.second.other",), {"sub.second.other"}),
        (("sub.second", "first.two"), {"sub.second.shared", "sub.second.other", "first.two"}),
    ],
)
def test_entries_are_listed_once_under_the_module_that_defines_them(package, monkeypatch, usual, expected):
    monkeypatch.setattr(compilation, "USUAL", usual)
    assert set(compilation.entries(everything=False)) == expected
    listed = compilation.entries()
    assert set(listed) == ALL
    assert list(listed)[: len(expected)] == list(compilation.entries(False))
    for name, entry in listed.items():
        assert isinstance(entry, Entry)
        assert f"{entry.__module__}.{entry.name}" == f"{package}.{name}"
