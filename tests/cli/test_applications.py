"""The command line in bundled applications: bundlers find modules by import statements only."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from modulefinder import ModuleFinder
from types import CodeType

import numpy as np
import processes
import pytest

from powerkern._cli.parser import parser

#: A script, run in a separate process, that prints the modules imported by the commands.
COMMANDS = """
import json, sys
from powerkern.__main__ import main
for words in (
    ["fit", "x.csv", "-o", "fit.json"], ["fit", "x.csv", "--groups", "g", "-o", "grouped.json"], ["summary", "x.csv"],
    ["fit", "x.csv", "--estimator", "robust"], ["transform", "x.csv", "--fit", "fit.json", "-o", "z.csv"],
    ["inverse", "z.csv", "--fit", "fit.json", "-o", "back.csv"], ["outliers", "x.csv"],
    ["transform", "x.csv", "--fit", "grouped.json", "-o", "z.csv"], ["info"],
):
    assert main(words) == 0, words
print("modules " + json.dumps(sorted(name for name in sys.modules if name.split(".")[0] == "powerkern")))
"""


def imported(code: CodeType) -> Iterator[str]:
    """Return the modules that a code object names in import statements, also inside functions."""
    for kind, what in ModuleFinder().scan_opcodes(code):
        if kind == "absolute_import":
            names, module = what
            yield module
            yield from (f"{module}.{name}" for name in names or ())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from imported(constant)


def reachable(start: str) -> set[str]:
    """Return the modules of the package that can be reached through import statements."""
    found, todo = {"powerkern"}, [start]
    while todo:
        name = todo.pop()
        if name in found or not name.startswith("powerkern."):
            continue
        try:
            spec = importlib.util.find_spec(name)
        except ModuleNotFoundError:  # an attribute of a module
            continue
        if spec is not None and spec.loader is not None:
            found.add(name)
            todo += [name.rpartition(".")[0], *imported(spec.loader.get_code(name))]
    return found


@pytest.mark.slow
def test_import_statements_lead_to_every_command():
    commands = parser()._subparsers._group_actions[0].choices.values()
    modules = {f"powerkern._cli.{each.get_default('run').split(':')[0]}" for each in commands}
    assert len(modules) >= 7
    assert modules <= reachable("powerkern.__main__")


@pytest.mark.slow
def test_import_statements_lead_to_what_commands_import(tmp_path):
    x = np.random.default_rng(0).lognormal(size=(60, 2))
    rows = "".join(f"{'uv'[i % 2]},{a!r},{b!r}\n" for i, (a, b) in enumerate(x.tolist()))
    (tmp_path / "x.csv").write_text("g,a,b\n" + rows)
    out = processes.run(COMMANDS, tmp_path, PYTHONPATH=str(processes.SOURCES))
    (line,) = [line for line in out.splitlines() if line.startswith("modules ")]
    modules = set(json.loads(line.removeprefix("modules ")))
    assert "powerkern._cli.outliers" in modules
    assert modules <= reachable("powerkern.__main__")
