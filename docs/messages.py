"""Write every text that powerkern says to its users to one page, taken from the sources: ``contributing/messages.rst``.

conf.py calls `write` before a build. ``python docs/messages.py`` prints the texts, to be read at a stretch.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1] / "powerkern"
_AREAS = {
    "Fits and results": ("_fit", "_estimators", "_results", "_models", "_status", "joint", "regression", "results"),
    "Reading data": ("_input",),
    "Command line": ("_cli", "__main__"),
    "Chunks, engines and sites": ("sketch", "dask", "ray", "spark", "xarray", "federated"),
    "SciPy's and scikit-learn's interfaces": ("stats", "sklearn", "onnx"),
    "Cells, outliers, location, completion": ("cellwise", "outliers", "location", "completion"),
    "Plots": ("plot",),
    "Compilation and threads": ("_jit", "_engine", "kernels", "__init__"),
}
_WORDS = re.compile(r"[A-Za-z]{2,}")
#: Calls whose texts users do not see.
_SILENT = ("doc", "skip", "TypeVar", "getLogger", "compile", "import_module", "cast", "namedtuple")


class Message(NamedTuple):
    """One text: where it stands, what utters it (an exception, ``warn``, ``help``, else the function), its words."""

    area: str
    file: str
    line: int
    kind: str
    text: str


def messages() -> list[Message]:
    """Return the texts of the package, in the order of areas, files and lines."""
    found = []
    for area, names in _AREAS.items():
        for name in names:
            path = PACKAGE / name
            files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
            for file in files:
                found += [Message(area, str(file.relative_to(PACKAGE)), *text) for text in sorted(_texts(file))]
    return found


def _texts(file: Path) -> Iterator[tuple[int, str, str]]:
    tree = ast.parse(file.read_text())
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr) and not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            continue
        parent = parents[node]
        if isinstance(parent, (ast.Expr, ast.JoinedStr, ast.FormattedValue)):  # a docstring, or a part of a text
            continue
        text = " ".join(_template(node).split())
        kind = _kind(node, parents)
        if kind and _is_sentence(text, kind):
            yield node.lineno, kind, text


def _template(node: ast.expr) -> str:
    """Return the text with expressions in braces."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.JoinedStr)
    return "".join(
        f"{{{ast.unparse(part.value)}}}" if isinstance(part, ast.FormattedValue) else _template(part)
        for part in node.values
    )


def _kind(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    """Return the nearest exception, call or function around a text; empty if users do not see it."""
    while node in parents:
        child, node = node, parents[node]
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).split(".")[-1]
            if name.startswith(_SILENT):
                return ""
            label = next((word.arg for word in node.keywords if word is child and word.arg), None)
            if name == "add_argument" or label in ("help", "description", "epilog"):
                return "help"
            if name.endswith(("Error", "Input", "Refused", "warn", "damaged", "error")):
                return name
        if isinstance(node, ast.Raise):
            return "raise"
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            return node.name
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) in ("TypeAlias",):
            return ""
    return "module"


def _is_sentence(text: str, kind: str) -> bool:
    least = 1 if kind in ("raise", "help", "damaged") or kind.endswith(("Error", "warn", "Input")) else 3
    words = _WORDS.findall(re.sub(r"\{.*?\}", "", text))
    return " " in text and len(words) >= least and not text.startswith((".. ", ">>> ", "http"))


def write(path: Path) -> None:
    """Write the page, unless it says the same already."""
    lines = [
        "Messages",
        "========",
        "",
        "Every error, warning, status and help text of the package, in one list, so that they can be read at a "
        "stretch.",
        "The list is made from the sources when the pages are built (``docs/messages.py``). ``{...}`` is replaced by a",
        "value. Parts of a message stand on lines of their own.",
        "",
        "A message says what is wrong, where, and what to do, in one sentence.",
        "",
    ]
    area = file = ""
    for message in messages():
        if message.area != area:
            area = message.area
            lines += [area, "-" * len(area), ""]
        if message.file != file:
            file = message.file
            lines += [f".. rubric:: {file}", ""]
        lines += [f"* **{message.kind}**: ``{_literal(message.text)}``"]
        lines += [""]
    text = "\n".join(lines)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def _literal(text: str) -> str:
    """Return the text as it can stand between double backquotes."""
    return text.replace("``", "''").replace("\\", "\\\\").strip("`")


if __name__ == "__main__":
    for message in messages():
        if message.area.startswith(sys.argv[1] if sys.argv[1:] else ""):
            print(f"{message.file}:{message.line}: {message.kind}: {message.text}")
