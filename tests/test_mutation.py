"""The mutation script: the changes that it makes or avoids, and its list of equivalent mutants."""

from __future__ import annotations

import textwrap

import pytest

from tests import mutation

SOURCE = textwrap.dedent(
    '''
    """A module with 1 docstring."""

    from __future__ import annotations

    Number = int | float


    def clip(x: int | None, low: int = 0, strict: bool = False) -> int:
        """Return at least `low`."""
        if x is None:
            raise ValueError(f"{low + 1}")
        if (x) < (low) and not strict:
            return low
        return x + 2
    '''
).encode()


def _run(source: bytes, *arguments: object) -> object:
    names: dict[str, object] = {}
    exec(source, names)
    return names["clip"](*arguments)


def _mutants(kind: str) -> list[mutation.Mutant]:
    return [mutant for mutant in mutation.find_mutants("clip.py", SOURCE) if mutant.kind == kind]


@pytest.mark.parametrize(
    "kind, replacement, arguments, result, mutated",
    [
        ("arithmetic", "-", (5,), 7, 3),
        ("comparison", "<=", (3, 3), 5, 3),
        ("comparison", ">", (3, 4), 4, 5),
        ("comparison", "is not", (3,), 5, ValueError),
        ("boolean", "or", (3,), 5, 0),
        ("not", "strict", (3, 4), 4, 5),
        ("constant", "1", (-3,), 0, 1),
        ("default", "True", (-3,), 0, -1),
        ("condition", "not ((x) < (low) and not strict)", (3,), 5, 0),
        ("raise", "pass", (None,), ValueError, TypeError),
        ("return", "return None", (-3,), 0, None),
    ],
)
def test_a_mutant_changes_the_result(kind, replacement, arguments, result, mutated):
    mutant = next(mutant for mutant in _mutants(kind) if mutant.replacement == replacement)
    for source, expected in [(SOURCE, result), (mutant.apply(SOURCE), mutated)]:
        if isinstance(expected, type):
            with pytest.raises(expected):
                _run(source, *arguments)
        else:
            assert _run(source, *arguments) == expected


def test_every_kind_is_found_and_types_and_texts_are_left_alone():
    mutants = mutation.find_mutants("clip.py", SOURCE)
    counts = {kind: len(_mutants(kind)) for kind in {mutant.kind for mutant in mutants}}
    assert counts == {
        "arithmetic": 1,
        "boolean": 1,
        "comparison": 3,
        "condition": 1,
        "constant": 1,
        "default": 1,
        "not": 1,
        "raise": 1,
        "return": 2,
    }
    assert all(mutant.scope == "clip" for mutant in mutants)


def test_a_mutant_names_its_line():
    [mutant] = _mutants("arithmetic")
    last = len(SOURCE.splitlines())
    assert str(mutant) == f"clip.py:{last} (arithmetic)\n  - return x + 2\n  + return x - 2"


def test_draws_repeat_and_leave_out_the_compiler():
    assert not any(module.startswith("powerkern/_jit/") for module in mutation.find_modules())
    [module] = mutation.find_modules(["powerkern/_fit/columns.py"])
    drawn = mutation.draw(1, 5, [module])
    assert len(set(drawn)) == 5
    assert mutation.draw(1, 5, [module]) == drawn
    assert mutation.draw(2, 5, [module]) != drawn
    everything = mutation.draw(1, 10**6, [module])
    assert set(everything) == set(mutation.find_mutants(module, (mutation.ROOT / module).read_bytes()))


def test_every_module_has_tests():
    for tests in mutation.TESTS.values():
        assert all((mutation.ROOT / each).exists() for each in tests), tests
    for prefix in mutation.TESTS:
        assert (mutation.ROOT / prefix).exists(), prefix
    mutant = mutation.draw(1, 1, ["powerkern/_results/lost_digits.py"])[0]
    assert mutation.select_tests(mutant)[0].startswith("tests/results/test_")


def test_equivalent_mutants_exist():
    reasons = mutation.read_equivalent(mutation.EQUIVALENT.read_text(encoding="utf-8"))
    for path, before, after in reasons:
        source = (mutation.ROOT / path).read_bytes()
        assert (path, before, after) in {mutant.key for mutant in mutation.find_candidates(path, source)}


def test_equivalent_mutants_are_read():
    text = "# a comment\na.py\n- x < 0\n+ x <= 0\n= x is never 0\n\nb.py\n- 1\n+ 0\n= unused\n"
    assert mutation.read_equivalent(text) == {
        ("a.py", "x < 0", "x <= 0"): "x is never 0",
        ("b.py", "1", "0"): "unused",
    }
    assert mutation.read_equivalent("# nothing yet\n") == {}
    with pytest.raises(ValueError, match="expected a path and lines"):
        mutation.read_equivalent("a.py\n- x < 0\n")


def test_a_file_is_restored(tmp_path):
    path = tmp_path / "clip.py"
    path.write_bytes(SOURCE)
    [mutant] = _mutants("arithmetic")
    with mutation.mutated(tmp_path, mutant):
        assert path.read_bytes() == mutant.apply(SOURCE)
    assert path.read_bytes() == SOURCE


TEST = "tests/test_clip.py"
FAILED = f"{TEST}::test_clip"


@pytest.mark.parametrize(
    "example, runs, verdict, detail",
    [
        ("", [(0, "")], "survived", ""),
        ("", [(1, FAILED), (0, "")], "killed", FAILED),
        ("", [(1, FAILED), (4, "not found"), (0, "")], "killed", FAILED),
        ("", [(2, TEST), (0, "")], "killed", TEST),
        ("", [(1, FAILED), (1, FAILED), (1, FAILED)], "undecided", f"{FAILED} fails without the mutant, too"),
        ("", [(1, "tests/conftest.py")], "undecided", "no test is to blame: tests/conftest.py"),
        ("", [(None, "")], "undecided", "no end within 60 s"),
        ("", [(4, "not found")], "undecided", "pytest ended with 4: not found"),
        (">>> clip(-3)\n0", [(0, ""), (0, "")], "survived", ""),
        (">>> clip(-3)\n0", [(0, ""), (1, "clip.py::clip"), (0, "")], "killed", "clip.py::clip"),
    ],
)
def test_a_mutant_is_killed_only_by_a_test_that_passes_without_it(
    tmp_path, monkeypatch, example, runs, verdict, detail
):
    source = SOURCE.replace(b"docstring.", f"docstring.\n\n{example}\n".encode())
    path = tmp_path / "clip.py"
    path.write_bytes(source)
    (tmp_path / "tests").mkdir()
    (tmp_path / TEST).touch()
    [mutant] = [each for each in mutation.find_mutants("clip.py", source) if each.kind == "arithmetic"]
    seen = []

    def run_tests(tree, mutant, tests, limit):
        assert (tree, limit) == (tmp_path, 60.0)
        seen.append((list(tests), path.read_bytes() != source))
        return runs[len(seen) - 1]

    monkeypatch.setattr(mutation, "run_tests", run_tests)
    monkeypatch.setattr(mutation, "select_tests", lambda mutant: [TEST, "tests/test_other.py"])
    assert mutation.judge(tmp_path, mutant, 60.0, None) == (verdict, detail)
    assert len(seen) == len(runs)
    assert path.read_bytes() == source
    last_tests, was_mutated = seen[-1]
    if verdict == "killed":
        assert last_tests in ([detail], [detail.split("::")[0]])
        assert not was_mutated


def test_tests_that_execute_a_line_come_first(tmp_path):
    coverage = pytest.importorskip("coverage")
    module = tmp_path / "powerkern" / "clip.py"
    data = coverage.CoverageData(basename=str(tmp_path / ".coverage"))
    first = SOURCE[: SOURCE.index(b"    if x is None")].count(b"\n") + 1
    for test, lines in {"slow": [first, first + 4], "fast": [first, first + 4], "other": [first, first + 1]}.items():
        data.set_context(test)
        data.add_lines({str(module): lines})
    data.write()
    (tmp_path / "seconds.1.json").write_text('{"slow": 2.0, "fast": 0.1, "other": 0.1}')
    lines = mutation.TestedLines(tmp_path)
    mutants = mutation.find_mutants("powerkern/clip.py", SOURCE)
    found = {mutant.kind: lines.find_tests(mutant, SOURCE) for mutant in mutants}
    assert found["arithmetic"] == ["fast", "slow"]
    assert found["raise"] == ["other"]
    assert found["default"] == ["fast", "other", "slow"]
    [elsewhere] = _mutants("arithmetic")
    assert lines.find_tests(elsewhere, SOURCE) == []
