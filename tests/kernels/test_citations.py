"""Citations in the kernels: equations are cited in one form, and every cited work is listed in the references."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import powerkern.kernels

FOLDER = Path(powerkern.kernels.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))
#: An equation by its number.
EQUATION = re.compile(r"\beqs?\.\s+(?:#\s*)?\(\d")
#: The form: ``[1]_, eq. (8)``, at most a line's end between its parts.
CITATION = re.compile(r"\[(\d)\]_,\s+(?:#\s*)?eq\.\s+(?:#\s*)?\(\d+\)")


def docstrings(tree):
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, kinds)]


def references(docstring):
    return set(re.findall(r"^\.\. \[(\d)\] ", docstring, re.MULTILINE))


def citations(text):
    return set(re.findall(r"\[(\d)\]_", text))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_equations_are_cited_in_one_form(path):
    text = path.read_text(encoding="utf-8")
    assert len(EQUATION.findall(text)) == len(CITATION.findall(text))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_every_citation_has_its_reference(path):
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    of_module = references(ast.get_docstring(tree) or "")
    for docstring in docstrings(tree):  # one with references of its own cites these
        assert citations(docstring) <= (references(docstring) or of_module)
    comments = "\n".join(line for line in text.splitlines() if "# " in line)
    assert citations(comments) <= of_module


@pytest.mark.parametrize("name", powerkern.kernels.__all__)
def test_pages_of_public_kernels_list_what_they_cite(name):
    docstring = inspect.getdoc(getattr(powerkern.kernels, name))
    assert citations(docstring) <= references(docstring)


def test_the_steps_of_rewml_cite_the_paper():
    cited = {
        path.stem: set(re.findall(r"\[1\]_,\s+(?:#\s*)?eq\.\s+(?:#\s*)?\((\d+)\)", path.read_text(encoding="utf-8")))
        for path in (FOLDER / "robust").glob("*.py")
    }
    assert cited["rewml"] == {"1", "2", "5", "16"}
    assert cited["paper"] == {"1", "2", "5", "16"}
    assert cited["qq"] == {"5"}
    assert cited["qq_column"] == {"5", "16"}
    assert cited["reweighting"] == cited["adaptive_rewml"] == {"16"}
