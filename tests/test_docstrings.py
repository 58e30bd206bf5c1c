"""Docstrings describe their arguments, sections match signatures, and texts on shared arguments agree."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import powerkern

ROOT = Path(powerkern.__file__).parent
#: Functions with more arguments than this must describe each of them.
FEW = 3
#: Beginnings of the descriptions of arguments that many functions share. Docstrings are plain text rather than filled
#: templates, so that editors, `help` and grep show them unchanged; these descriptions are compared instead. Any other
#: argument is described in one place, to which other docstrings refer.
SHARED = {
    "n_threads": ["Threads to use; default: all CPUs of this process", "Maximum number of threads."],
    "progress": ["Show a progress bar"],
    "ax": ["The axes to draw on", "Axes to draw on"],
}


class Function(NamedTuple):
    """The declaration of a function or a class in the source: arguments, docstring and base classes."""

    path: str
    name: str
    arguments: list[str]
    doc: str
    bases: tuple[str, ...] = ()  #: of the class; for a method, of its class


def _arguments(node: ast.FunctionDef) -> list[str]:
    declared = node.args
    plain = (*declared.posonlyargs, *declared.args, *declared.kwonlyargs, declared.vararg, declared.kwarg)
    return [one.arg for one in plain if one is not None and one.arg not in ("self", "cls")]


def _is_overload(node: ast.FunctionDef) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "overload" for one in node.decorator_list)


def _declared(body: list[ast.stmt], path: str, prefix: str = "") -> Iterator[Function]:
    """Yield the functions and classes of a module, without those inside functions."""
    for node in body:
        if isinstance(node, ast.If):  # `if TYPE_CHECKING:`
            yield from _declared(node.body + node.orelse, path, prefix)
        if isinstance(node, ast.ClassDef):
            of_class = ast.get_docstring(node) or ""
            bases = tuple(base.id for base in node.bases if isinstance(base, ast.Name))
            for one in _declared(node.body, path, f"{prefix}{node.name}."):
                doc = f"{of_class}\n\n{one.doc}" if one.name.endswith(".__init__") else one.doc
                yield one._replace(doc=doc, bases=one.bases or bases)
            fields = [
                one.target.id
                for one in node.body
                if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
            ]  # fmt: skip
            yield Function(path, prefix + node.name, fields, of_class, bases)
        if isinstance(node, ast.FunctionDef) and not _is_overload(node):
            yield Function(path, prefix + node.name, _arguments(node), ast.get_docstring(node) or "")


def _package() -> list[Function]:
    return [
        one
        for path in sorted(ROOT.rglob("*.py"))
        for one in _declared(ast.parse(path.read_text()).body, str(path.relative_to(ROOT)))
    ]


PACKAGE = _package()
BY_NAME = defaultdict(list)
for _one in PACKAGE:
    BY_NAME[_one.name.rpartition(".")[2]].append(_one)


def _section(doc: str, title: str) -> list[tuple[list[str], str]]:
    """Return the entries of the section called `title`: names, and the text below each."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\S[^\n]*\n-{{3,}}$|\Z)", doc, re.M | re.S)
    entries = re.finditer(r"^(\S[^\n]*)\n((?:(?:[ ]+[^\n]*)?(?:\n|\Z))*)", found[1] + "\n", re.M) if found else ()
    return [(re.split(r",\s*", one[1].partition(" : ")[0]), " ".join(one[2].split())) for one in entries]


def _entries(doc: str, title: str = "Parameters") -> dict[str, str]:
    return {name.strip("`").lstrip("*"): text for names, text in _section(doc, title) for name in names}


def _named(reference: str) -> list[Function]:
    """Return the functions and classes whose name equals the last part of a dotted reference."""
    return BY_NAME[reference.rpartition(".")[2]]


def _described(function: Function, depth: int = 3) -> set[str]:
    """Return the names of arguments described by a docstring or by the functions to which it refers.

    References are followed to a depth of `depth`.
    """
    doc, named = function.doc, set(re.findall(r"`+([A-Za-z_.]+)`+", function.doc))
    here = set(_entries(doc)) | {name for name in function.arguments if name in named}
    last = function.name.rpartition(".")[2]
    if last == "__init__" or last[0].isupper():
        here |= set(_entries(doc, "Attributes"))
    if set(function.arguments) <= here or depth == 0:
        return here
    for base in function.bases:  # a method that overrides another
        here |= {name for one in BY_NAME[last] if one.name == f"{base}.{last}" for name in _described(one, depth - 1)}
    for reference in re.findall(r"(?:[Aa]s (?:in|for|of) |[Ss]ee |those of )`([A-Za-z_.]+)`", " ".join(doc.split())):
        here |= {name for one in _named(reference) for name in _described(one, depth - 1)}
    return here


def _is_public_function(function: Function) -> bool:
    *_, last = parts = function.name.split(".")
    return not last[0].isupper() and not any(part.startswith("_") and part != "__init__" for part in parts)


def test_every_argument_of_a_function_with_several_is_described():
    missing = {
        f"{one.path}: {one.name}": sorted(absent)
        for one in PACKAGE
        if _is_public_function(one)
        and len(one.arguments) > FEW
        and (absent := set(one.arguments) - _described(one))
    }  # fmt: skip
    assert not missing, "\n".join(f"{name} does not describe {', '.join(of)}" for name, of in missing.items())


def _declared_names(function: Function) -> set[str]:
    """Return the argument names of a function. Those of a class include its fields, `__init__` and base classes."""
    names = set(function.arguments)
    for one in PACKAGE:
        if one.path == function.path and one.name == f"{function.name}.__init__":
            names |= set(one.arguments)
    for base in function.bases:
        for one in BY_NAME[base]:
            names |= _declared_names(one)
    return names


def test_sections_name_arguments_that_there_are():
    wrong = [
        f"{one.path}: {one.name} has no argument {', '.join(unknown)}"
        for one in PACKAGE
        if (unknown := sorted(_entries(one.doc).keys() - _declared_names(one)))
    ]
    assert not wrong, "\n".join(wrong)


def test_references_to_other_docstrings_lead_to_a_description():
    wrong = [
        f"{one.path}: {one.name} refers for {name} to {reference[1]}"
        for one in PACKAGE
        for name, text in _entries(one.doc).items()
        if (reference := re.match(r"As (?:in|for) `([A-Za-z_.]+)`[.;]", text))
        and not reference[1].startswith("numpy.")
        and not any(
            name in _described(other) or name == "options" for other in BY_NAME[reference[1].rpartition(".")[2]]
        )
    ]
    assert not wrong, "\n".join(wrong)


def test_sentences_about_common_arguments_are_the_same():
    wrong = [
        f"{one.path}: {one.name}, {name}: {text}"
        for one in PACKAGE
        for name, text in _entries(one.doc).items()
        if name in SHARED and not text.startswith((*SHARED[name], "As in `", "As for `"))
    ]
    assert not wrong, "\n".join(wrong)
