"""Constants in the kernels: each has a comment that says what it is and where it comes from."""

import ast
from pathlib import Path

import pytest

import powerkern.kernels

FOLDER = Path(powerkern.kernels.__file__).parent


def is_number(node):
    """Return whether an expression consists of literal numbers: one, a product or power of them, or a tuple."""
    match node:
        case ast.Constant():
            return type(node.value) in (int, float)
        case ast.UnaryOp():
            return is_number(node.operand)
        case ast.BinOp():
            return is_number(node.left) and is_number(node.right)
        case ast.Tuple():
            return len(node.elts) > 0 and all(map(is_number, node.elts))
    return False


def undocumented(source):
    """Return the names of a module's numeric constants without a ``#:`` comment on the line above."""
    lines = source.splitlines()
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            above = lines[statement.lineno - 2] if statement.lineno > 1 else ""
            if is_number(statement.value) and not above.startswith("#: "):
                yield ", ".join(map(ast.unparse, targets))


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: str(path.relative_to(FOLDER)))
def test_constants_say_where_they_come_from(path):
    assert list(undocumented(path.read_text(encoding="utf-8"))) == []


def test_what_counts_as_a_constant():
    source = (
        "#: Half.\nA = 0.5\nB = 2.0**-10\nC, D = 1, -2.5\nE: float = 3e8\nF, G = range(2)\nH = (1.0,\n  2.0)\nI = 'x'\n"
    )
    assert list(undocumented(source + "J = A\nK = ()\nL = True\n")) == ["B", "(C, D)", "E", "H"]
