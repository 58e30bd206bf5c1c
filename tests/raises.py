"""List the `raise` statements that no test executed, according to a data file written by coverage.

``coverage run --source=powerkern -m pytest`` writes the file ``.coverage``; ``python tests/raises.py .coverage`` reads
it. Kernels and the compiler are left out: compiled code is not traced.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Set
from pathlib import Path

EXCLUDED = ("kernels", "_jit")


def unexecuted_raises(source: str, executed: Set[int]) -> Iterator[tuple[int, str]]:
    """Yield line number and text of each `raise` statement in `source` none of whose lines is in `executed`.

    Abstract methods, which only raise NotImplementedError, are left out.
    """
    tree = ast.parse(source)
    abstract = {
        id(node.body[-1])
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and ast.unparse(node.body[-1]).startswith("raise NotImplementedError")
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and id(node) not in abstract:
            assert node.end_lineno is not None
            if executed.isdisjoint(range(node.lineno, node.end_lineno + 1)):
                yield node.lineno, ast.unparse(node)


def main(data_file: str) -> int:
    """Print the `raise` statements that no test executed; return 1 if there are any, else 0."""
    import coverage

    data = coverage.CoverageData(data_file)
    data.read()
    found = 0
    for name in sorted(data.measured_files()):
        if set(EXCLUDED).isdisjoint(Path(name).parts):
            for line, text in unexecuted_raises(Path(name).read_text(encoding="utf-8"), set(data.lines(name) or [])):
                print(f"{name}:{line}: {text}")
                found += 1
    print(f"{found} raise statements that no test executed")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
