"""Mutation tests: change one expression of the package at a time, and see whether a fast test fails.

``python tests/mutation.py --seed 1 --number 25`` draws mutants of the package without ``_jit``. Each is written into a
temporary copy of the tree, and the tests that `TESTS` lists for its module run there; kernels run as plain Python. A
mutant that no test notices survives: write a test that fails with it, or list it in ``mutation_equivalent.txt`` if no
test can.

Two hundred mutants take hours in this way. It is faster to record once which test executes which line::

    RECORD_LINES_IN=FOLDER pytest -n 2 -p lines_of_tests
    python tests/mutation.py --lines FOLDER --number 200

The shortest tests that execute a changed line then run first, and those of `TESTS` if none of them fails.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[1]
EQUIVALENT = Path(__file__).with_name("mutation_equivalent.txt")

#: The compiler, and modules whose tests are skipped without large libraries.
EXCLUDED = (
    "powerkern/_jit/",
    "powerkern/spark.py",
    "powerkern/ray.py",
    "powerkern/federated/flower.py",
    "powerkern/federated/secagg.py",
)

#: Tests by prefix of a module's path; the longest matching prefix counts.
TESTS: dict[str, tuple[str, ...]] = {
    "powerkern/": ("tests/fit", "tests/results"),
    "powerkern/__main__.py": ("tests/cli",),
    "powerkern/_cli/": ("tests/cli",),
    "powerkern/_engine/": ("tests/engine", "tests/fit", "tests/results"),
    "powerkern/_estimators/": ("tests/estimators", "tests/fit"),
    "powerkern/_fit/": ("tests/fit", "tests/results"),
    "powerkern/_input/": ("tests/input", "tests/borders", "tests/results/test_names.py"),
    "powerkern/_input/tables/": ("tests/cli",),
    "powerkern/_models/": ("tests/models", "tests/test_regression.py", "tests/test_joint.py"),
    "powerkern/_results/": ("tests/results", "tests/fit"),
    "powerkern/_status.py": ("tests/fit/test_status.py", "tests/results"),
    "powerkern/cellwise/": ("tests/cellwise", "tests/sklearn/test_cellwise.py"),
    "powerkern/completion/": ("tests/completion",),
    "powerkern/dask.py": ("tests/test_dask.py",),
    "powerkern/federated/": ("tests/federated",),
    "powerkern/joint.py": ("tests/test_joint.py", "tests/results"),
    "powerkern/kernels/": ("tests/kernels", "tests/fit/test_limits.py", "tests/test_location.py"),
    "powerkern/location.py": ("tests/test_location.py", "tests/outliers", "tests/sklearn"),
    "powerkern/onnx.py": ("tests/test_onnx.py",),
    "powerkern/outliers/": ("tests/outliers", "tests/sklearn/test_outliers.py"),
    "powerkern/plot/": ("tests/plot",),
    "powerkern/regression.py": ("tests/test_regression.py", "tests/models", "tests/results"),
    "powerkern/sketch/": ("tests/sketch", "tests/estimators/test_power_sums.py", "tests/test_dask.py"),
    "powerkern/sklearn/": ("tests/sklearn",),
    "powerkern/sklearn/supervised/": ("tests/sklearn/supervised",),
    "powerkern/stats/": ("tests/stats",),
    "powerkern/xarray.py": ("tests/test_xarray.py",),
}

#: Tests of every public name, which run after those of the module.
PUBLIC = ("tests/input/test_keywords.py",)

#: Kernels run as plain Python here, because numba would recompile them for each mutant.
KERNELS = "powerkern/kernels/"

#: Largest number of recorded tests that run before those of `TESTS`.
N_FIRST = 120

ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
COMPARISONS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
}

Verdict = Literal["killed", "survived", "undecided", "equivalent"]


@dataclass(frozen=True)
class Mutant:
    """One change of one file: the bytes from `start` to `stop` become `replacement`."""

    path: str
    line: int
    kind: str
    start: int
    stop: int
    replacement: str
    scope: str  # name of the innermost function or class
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} ({self.kind})\n  - {self.before}\n  + {self.after}"

    @property
    def key(self) -> tuple[str, str, str]:
        """An identifier of the mutant that does not depend on line numbers."""
        return self.path, self.before, self.after

    def apply(self, source: bytes) -> bytes:
        """Return the changed source."""
        return source[: self.start] + self.replacement.encode() + source[self.stop :]


class Mutator(ast.NodeVisitor):
    """Collect the mutants of one module, in the order of the source."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path = path
        self.source = source
        self.mutants: list[Mutant] = []
        self._line_starts = [0]
        for line in source.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))
        self._scopes: list[str] = []

    # --- positions -----------------------------------------------------------------------------------

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._line_starts[node.lineno - 1] + node.col_offset

    def _stop(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._line_starts[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.expr) -> str:
        return self.source[self._start(node) : self._stop(node)].decode()

    def _add(self, kind: str, start: int, stop: int, replacement: str) -> None:
        """Add a candidate that replaces the bytes from `start` to `stop`; `changes_code` is checked later."""
        first = self.source.rfind(b"\n", 0, start) + 1
        last = self.source.find(b"\n", stop)
        last = len(self.source) if last < 0 else last
        before = self.source[first:last].decode()
        after = (self.source[first:start] + replacement.encode() + self.source[stop:last]).decode()
        line = self.source.count(b"\n", 0, start) + 1
        scope = self._scopes[-1] if self._scopes else ""
        mutant = Mutant(self.path, line, kind, start, stop, replacement, scope, _one_line(before), _one_line(after))
        self.mutants.append(mutant)

    def _swap_operator(self, kind: str, left: ast.expr, right: ast.expr, operator: str, *others: str) -> None:
        """Add a mutant for each of `others` in place of `operator`, between the operands `left` and `right`."""
        begin = self._stop(left)
        gap = self.source[begin : self._start(right)].decode()
        match = re.search(r"\s+".join(map(re.escape, operator.split())), gap)
        if match is None:
            return
        start = begin + len(gap[: match.start()].encode())
        for other in others:
            self._add(kind, start, start + len(match[0].encode()), other)

    # --- what is not mutated -------------------------------------------------------------------------

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Skip f-strings: Python 3.11 has no positions within them."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and not self._flip(node.value):
            self.visit(node.value)

    def visit_arguments(self, node: ast.arguments) -> None:
        """Visit the defaults, not the annotations."""
        for default in (*node.defaults, *node.kw_defaults):
            if default is not None and not self._flip(default):
                self.visit(default)

    def _visit_scope(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        """Visit defaults and body, not decorators, bases and types."""
        if any(isinstance(mark, ast.Name) and mark.id == "overload" for mark in node.decorator_list):
            return
        self._scopes.append(node.name)
        if not isinstance(node, ast.ClassDef):
            self.visit(node.args)
        for statement in node.body:
            self.visit(statement)
        self._scopes.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _visit_scope

    # --- what is -------------------------------------------------------------------------------------

    def _flip(self, default: ast.expr) -> bool:
        """Flip a default that is True or False; return whether it was one."""
        if not isinstance(default, ast.Constant) or not isinstance(default.value, bool):
            return False
        self._add("default", self._start(default), self._stop(default), str(not default.value))
        return True

    def _negate(self, test: ast.expr) -> None:
        """Negate a condition unless it is a `not`, `==`, `in` or `is`, which other mutants replace by the opposite."""
        has_opposite = isinstance(test, ast.Compare) and not isinstance(
            test.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE
        )
        if has_opposite or (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
            return
        self._add("condition", self._start(test), self._stop(test), f"not ({self._text(test)})")

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        operands = (node.left, node.right)
        is_text = any(
            isinstance(operand, ast.JoinedStr) or (isinstance(operand, ast.Constant) and isinstance(operand.value, str))
            for operand in operands
        )
        is_alias = not self._scopes and isinstance(node.op, ast.BitOr)  # a union of types
        if type(node.op) in ARITHMETIC and not is_text and not is_alias:
            self._swap_operator("arithmetic", *operands, *ARITHMETIC[type(node.op)])
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, operator, right in zip((node.left, *node.comparators), node.ops, node.comparators, strict=False):
            word, others = COMPARISONS[type(operator)]
            self._swap_operator("comparison", left, right, word, *others)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        swap = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._swap_operator("boolean", left, right, *swap)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            start = self._start(node)
            self._add("not", start, self._stop(node), self._text(node).removeprefix("not").lstrip())
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, int | float) and not isinstance(node.value, bool) and node.value in (0, 1):
            moved = type(node.value)(1 - node.value)
            self._add("constant", self._start(node), self._stop(node), repr(moved))

    def visit_Raise(self, node: ast.Raise) -> None:
        self._add("raise", self._start(node), self._stop(node), "pass")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is None:
            return
        self._add("return", self._start(node), self._stop(node), "return None")
        self.generic_visit(node)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def find_candidates(path: str, source: bytes) -> list[Mutant]:
    """Return every candidate of a module, including those that are not valid Python or change nothing.

    `changes_code` tells these apart.
    """
    mutator = Mutator(path, source)
    mutator.visit(ast.parse(source))
    return sorted(mutator.mutants, key=lambda mutant: (mutant.start, mutant.replacement))


def changes_code(mutant: Mutant, source: bytes) -> bool:
    """Return whether a mutant is valid Python and its syntax tree differs from the tree of the source."""
    try:
        changed = ast.parse(mutant.apply(source))
    except SyntaxError:
        return False
    return ast.dump(changed) != ast.dump(ast.parse(source))


def find_mutants(path: str, source: bytes) -> list[Mutant]:
    """Return every mutant of a module."""
    return [mutant for mutant in find_candidates(path, source) if changes_code(mutant, source)]


def find_modules(only: Sequence[str] = ()) -> list[str]:
    """Return the paths of the modules to mutate. `only` restricts them to paths that start with one of its entries."""
    paths = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "powerkern").rglob("*.py"))
    return [path for path in paths if not path.startswith(EXCLUDED) and (not only or path.startswith(tuple(only)))]


def draw(seed: int, number: int, modules: Iterable[str]) -> list[Mutant]:
    """Draw `number` mutants from all of these modules, without replacement.

    Each draw picks a module with probability proportional to its number of lines, and then one mutant of this module.
    Listing the mutants of all modules beforehand would take minutes.
    """
    sources = {path: (ROOT / path).read_bytes() for path in modules}
    paths = list(sources)
    weights = [source.count(b"\n") for source in sources.values()]
    rng = random.Random(seed)
    rest: dict[str, list[Mutant]] = {}
    drawn: list[Mutant] = []
    while paths and len(drawn) < number:
        [path] = rng.choices(paths, weights)
        if path not in rest:
            rest[path] = find_candidates(path, sources[path])  # checked later: parsing all takes minutes
        if rest[path]:
            mutant = rest[path].pop(rng.randrange(len(rest[path])))
            if changes_code(mutant, sources[path]):
                drawn.append(mutant)
        else:
            index = paths.index(path)
            del paths[index], weights[index]
    return drawn


def read_equivalent(text: str) -> dict[tuple[str, str, str], str]:
    """Read the list of equivalent mutants; return, for each mutant, the reason why no test can notice it."""
    reasons: dict[tuple[str, str, str], str] = {}
    blocks = re.split(r"\n\s*\n", "\n".join(line for line in text.splitlines() if not line.startswith("#")).strip())
    for block in filter(None, blocks):
        lines = block.splitlines()
        if len(lines) != 4 or [line[:2] for line in lines[1:]] != ["- ", "+ ", "= "]:
            raise ValueError(f"{EQUIVALENT.name}: expected a path and lines with '-', '+' and '=', got {block!r}")
        reasons[lines[0], lines[1][2:], lines[2][2:]] = lines[3][2:]
    return reasons


def select_tests(mutant: Mutant) -> list[str]:
    """Return the test files of a mutant's module; files that mention the module or the mutated function come first."""
    prefix = max((prefix for prefix in TESTS if mutant.path.startswith(prefix)), key=len)
    files: list[Path] = []
    for target in TESTS[prefix]:
        path = ROOT / target
        files += [path] if path.suffix == ".py" else sorted(path.rglob("test_*.py"))
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    stem = Path(mutant.path).stem.lstrip("_")
    scope = mutant.scope or stem
    files.sort(key=lambda path: (stem not in path.stem, scope not in texts[path], stem not in texts[path]))
    selected = [path.relative_to(ROOT).as_posix() for path in files]
    return [*selected, *(path for path in PUBLIC if path not in selected)]


@contextlib.contextmanager
def copied_tree() -> Iterator[Path]:
    """Copy the repository, without its history and build products, to a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        tree = Path(folder) / "tree"
        ignored = shutil.ignore_patterns(".*", "__pycache__", "_build", "dist")
        shutil.copytree(ROOT, tree, ignore=ignored)
        yield tree


@contextlib.contextmanager
def mutated(tree: Path, mutant: Mutant) -> Iterator[None]:
    """Apply a mutant to a copy of the tree for the duration of a `with` block."""
    path = tree / mutant.path
    source = path.read_bytes()
    # Python reuses byte code if size and second of the source are unchanged, which holds if `<` replaces `>`.
    byte_code = Path(importlib.util.cache_from_source(str(path)))
    byte_code.unlink(missing_ok=True)
    path.write_bytes(mutant.apply(source))
    try:
        yield
    finally:
        path.write_bytes(source)
        byte_code.unlink(missing_ok=True)


class TestedLines:
    """The tests that execute each line, as recorded by `tests/support/lines_of_tests.py`."""

    def __init__(self, folder: Path) -> None:
        import coverage

        self._data = coverage.CoverageData(basename=str(folder / ".coverage"))
        self._data.read()
        self._files = {name[name.rindex("/powerkern/") + 1 :]: name for name in self._data.measured_files()}
        self._seconds: dict[str, float] = {}
        for path in folder.glob("seconds.*.json"):
            self._seconds |= json.loads(path.read_text(encoding="utf-8"))

    def find_tests(self, mutant: Mutant, source: bytes) -> list[str]:
        """Return the tests that execute a mutant's statement, fastest first (see `_lines_of_statement`)."""
        if mutant.path not in self._files:
            return []
        contexts = self._data.contexts_by_lineno(self._files[mutant.path])
        found = {test for line in _lines_of_statement(mutant, source) for test in contexts.get(line, ())} - {""}
        return sorted(found, key=lambda test: (self._seconds.get(test, 0.0), test))


def _lines_of_statement(mutant: Mutant, source: bytes) -> range:
    """Return the lines whose execution reaches a mutant.

    They begin with the innermost statement that contains the mutant and end with the mutant's line. For a mutant in a
    function's defaults, they are the function's body.
    """
    around = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.stmt) and node.lineno <= mutant.line <= (node.end_lineno or node.lineno)
    ]
    innermost = max(around, key=lambda node: node.lineno)
    if isinstance(innermost, ast.FunctionDef):
        return range(innermost.body[0].lineno, (innermost.end_lineno or innermost.lineno) + 1)
    return range(innermost.lineno, mutant.line + 1)


def run_tests(tree: Path, mutant: Mutant, tests: Sequence[str], limit: float) -> tuple[int | None, str]:
    """Run tests with a mutant in place.

    Parameters
    ----------
    tree : Path
        Copy of the repository that contains the mutant.
    mutant : Mutant
        The mutant. Kernels run as plain Python if it is in a kernel.
    tests : sequence of str
        Test files or identifiers of tests, as pytest takes them.
    limit : float
        Time limit in seconds.

    Returns
    -------
    code : int or None
        pytest's exit code; None after `limit` seconds.
    failure : str
        Identifier of the first test that failed, or the end of the output.
    """
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider", "--tb=no", *tests]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    if mutant.path.startswith(KERNELS):
        environment["NUMBA_DISABLE_JIT"] = "1"
    process = subprocess.Popen(
        command,
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the whole process group, as tests start processes
        process.communicate()
        return None, ""
    failure = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - |$)", output, re.MULTILINE)
    return process.returncode, failure[1] if failure else output.strip()[-200:]


def judge(tree: Path, mutant: Mutant, limit: float, lines: TestedLines | None) -> tuple[Verdict, str]:
    """Run the tests of a mutant.

    Parameters
    ----------
    tree : Path
        Copy of the repository without the mutant.
    mutant : Mutant
        The mutant.
    limit : float
        Time limit of one run of pytest, in seconds.
    lines : TestedLines or None
        Tests by line. If given, those that execute the mutant run first.

    Returns
    -------
    verdict : Verdict
        "killed", "survived" or "undecided".
    detail : str
        The test that failed, the reason why the verdict is undecided, or "".
    """
    source = (tree / mutant.path).read_bytes()
    stages = [lines.find_tests(mutant, source)[:N_FIRST]] if lines else []
    stages.append(select_tests(mutant))
    if b">>> " in source:
        # In a separate process: for doctests pytest imports the module again, so other tests see different classes.
        stages.append([mutant.path])
    for tests in filter(None, stages):
        with mutated(tree, mutant):
            code, failure = run_tests(tree, mutant, tests, limit)
        if code is None:
            return "undecided", f"no end within {limit:g} s"
        if code == 4 and tests is not stages[-1]:  # a recorded test was moved or deleted
            continue
        if code not in (0, 1, 2):  # 1: a test failed; 2: a test file cannot be imported
            return "undecided", f"pytest ended with {code}: {failure}"
        if code != 0:
            return confirm(tree, mutant, failure, limit)
    return "survived", ""


def confirm(tree: Path, mutant: Mutant, failure: str, limit: float) -> tuple[Verdict, str]:
    """Run the test that failed, and then its file, without the mutant.

    If either run passes, the verdict is "killed", otherwise "undecided". Arguments and results are as in `judge`;
    `failure` is the identifier of the test.
    """
    file = failure.split("::")[0]
    if not (tree / file).is_file():
        return "undecided", f"no test is to blame: {failure}"
    for test in (failure, file):  # a test name with spaces may be truncated
        code, failure_without = run_tests(tree, mutant, [test], limit)
        if code == 0:
            return "killed", failure
    return "undecided", f"{failure_without or file} fails without the mutant, too"


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return 1 if a mutant survived, else 0."""
    parser = argparse.ArgumentParser(prog="python tests/mutation.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw (default: %(default)s)")
    parser.add_argument("--number", type=int, default=25, help="number of mutants (default: %(default)s)")
    parser.add_argument("--only", metavar="PATH", action="append", default=[], help="mutate modules that start so")
    parser.add_argument("--list", action="store_true", help="show the mutants, and run nothing")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one mutant (default: %(default)s)")
    parser.add_argument("--lines", metavar="FOLDER", type=Path, help="which test executes which line (see above)")
    options = parser.parse_args(arguments)
    lines = TestedLines(options.lines) if options.lines else None
    mutants = draw(options.seed, options.number, find_modules(options.only))
    if options.list:
        print(*mutants, sep="\n")
        return 0
    reasons = read_equivalent(EQUIVALENT.read_text(encoding="utf-8"))
    verdicts: list[Verdict] = []
    with copied_tree() as tree:
        for mutant in mutants:
            begin = time.monotonic()
            verdict, detail = judge_known(tree, mutant, options.limit, lines, reasons)
            verdicts.append(verdict)
            print(f"{verdict:<11}{time.monotonic() - begin:4.0f} s  {mutant}\n  {detail}".rstrip(), flush=True)
    n_equivalent, n_undecided = verdicts.count("equivalent"), verdicts.count("undecided")
    n_killed, n_judged = verdicts.count("killed"), len(verdicts) - n_equivalent
    print(f"{n_killed} of {n_judged} killed, {n_undecided} undecided; {n_equivalent} equivalent mutants left out")
    return int("survived" in verdicts)


def judge_known(
    tree: Path, mutant: Mutant, limit: float, lines: TestedLines | None, reasons: dict[tuple[str, str, str], str]
) -> tuple[Verdict, str]:
    """Return "equivalent" and the reason if the mutant is in `reasons`; otherwise run its tests, as `judge` does.

    `reasons` is a result of `read_equivalent`.
    """
    if mutant.key in reasons:
        return "equivalent", reasons[mutant.key]
    return judge(tree, mutant, limit, lines)


if __name__ == "__main__":
    sys.exit(main())
