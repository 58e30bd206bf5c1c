"""Code in README and pages that is not a doctest runs as printed; links and references exist.

Pytest collects the doctests of every page of docs/ and of every docstring; the gallery's examples run when the
documentation is built.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from pages import ROOT, blocks

import powerkern
from powerkern.__main__ import main

FOLDERS = (".", "api", "contributing", "guide", "project", "research")
WRITTEN = (page for folder in FOLDERS for page in sorted((ROOT / "docs" / folder).glob("*.rst")))
#: Pages that a build of the documentation writes.
BUILT = ("messages", "sg_execution_times")
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(page for page in WRITTEN if page.stem not in BUILT)]
IDS = [page.relative_to(ROOT).as_posix() for page in PAGES]

#: Chunks that a page does not define, and a stand-in for mpi4py in a single process.
CHUNK = np.random.default_rng(0).lognormal(size=(100, 2))
ALONE = SimpleNamespace(MPI=SimpleNamespace(COMM_WORLD=SimpleNamespace(allreduce=lambda value, op: value)))


#: Pages whose Python is run by tests/test_peers.py and the tests of Ray and of Spark.
ELSEWHERE = ("libraries.rst", "ray.rst", "spark.rst")


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if blocks(page, "python") and page.name not in ELSEWHERE],
    ids=lambda page: page.name,
)
def test_python_runs(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    names: dict[str, object] = {"chunks": [CHUNK]}
    monkeypatch.setitem(sys.modules, "mpi4py", ALONE)
    monkeypatch.chdir(tmp_path)
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "bash", "console")], ids=lambda page: page.name
)
def test_commands_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).lognormal(size=(20, 2))
    np.savetxt(tmp_path / "data.csv", rows, delimiter=",", header="a,b", comments="")
    monkeypatch.chdir(tmp_path)
    for block in blocks(page, "bash", "console"):
        for line in block.splitlines():
            command, *arguments = shlex.split(line, comments=True) or [""]
            if command == "powerkern" and arguments != ["demo"]:  # tests/cli runs the demo
                assert main(arguments) == 0, line


def test_every_block_is_of_a_kind_that_runs() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        languages = set(re.findall(r"^ *(?:```|\.\. code-block:: )(\w+)", text, re.MULTILINE))
        assert languages <= {"python", "bash", "console"}, page
        assert not re.search(r"[^.:]::\n\n +(import|from) ", text), page  # a block without a directive is not run


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_files_and_names_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (page.parent / target).exists(), target
    for command, argument in re.findall(r"python (-m )?((?:asv_benches|examples|docs)[\w./]*\w)", text):
        path = argument.replace(".", "/") + ".py" if command else argument
        assert (ROOT / path).exists(), argument
    for dotted in re.findall(r"`(powerkern(?:\.\w+)+)", text):
        assert exists(dotted), dotted


def exists(dotted: str) -> bool:
    """Return whether a module, or an object in one, has this name."""
    thing: object = powerkern
    parts = dotted.split(".")
    for k, part in enumerate(parts[1:], start=1):
        try:
            thing = getattr(thing, part, None) or importlib.import_module(".".join(parts[: k + 1]))
        except ImportError:
            return is_module(".".join(parts[: k + 1]))
    return True


def is_module(dotted: str) -> bool:
    """Return whether a module has this name, even if it needs packages that are not installed."""
    try:
        return importlib.util.find_spec(dotted) is not None
    except ModuleNotFoundError:  # the parent is not a package
        return False


#: Modules with public names, besides powerkern itself; of the engines, only the functions are public.
MODULES = [
    "cellwise", "completion", "federated", "joint", "kernels", "location", "onnx", "outliers", "plot", "regression",
    "results", "sketch", "sklearn", "stats",
]  # fmt: skip


def test_the_page_of_names_has_every_public_name_once() -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    pytest.importorskip("skl2onnx")
    page = (ROOT / "docs" / "api" / "names.rst").read_text(encoding="utf-8")
    listed = re.findall(r"`(powerkern[.\w]+)`", page)
    assert len(set(listed)) == len(listed)
    found: dict[int, set[str]] = {}
    for module in ("powerkern", *(f"powerkern.{name}" for name in MODULES)):
        space = importlib.import_module(module)
        for name in space.__all__:
            found.setdefault(id(getattr(space, name)), set()).add(f"{module}.{name}")  # some are in two
    for homes in found.values():
        assert len(homes & set(listed)) == 1 or homes == {"powerkern.__version__"}, homes
    assert "``powerkern.__version__``" in page


def test_every_method_of_a_fit_is_under_a_task() -> None:
    page = (ROOT / "docs" / "_templates" / "autosummary" / "powerfit.rst").read_text(encoding="utf-8")
    shown = set(re.findall(r":: PowerFit\.(\w+)", page))
    attributes = re.findall(r"^    (\w[\w, ]*) : ", powerkern.PowerFit.__doc__ or "", re.MULTILINE)
    described = {name for line in attributes for name in line.split(", ")}
    public = {name for name in dir(powerkern.PowerFit) if not name.startswith("_")}
    assert public - described - {"n_features", "status_text"} <= shown <= public


@pytest.mark.parametrize("word", ["groupby", "pandas", "save", "bias correction"])
def test_search_terms_occur_in_titles(word: str) -> None:
    """The search of the documentation ranks titles of sections first."""
    titles = [
        title.lower()
        for page in PAGES[2:]
        for title in re.findall(r"^(.+)\n[-=~]{4,}$", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert any(word in title for title in titles)


def test_every_benchmark_and_report_is_on_the_page() -> None:
    page = (ROOT / "docs" / "benchmarks.rst").read_text(encoding="utf-8")
    for path in sorted((ROOT / "asv_benches").glob("bench_*.py")):
        assert f"``{path.name}``" in page, path
    for path in sorted((ROOT / "asv_benches").glob("report_*.py")):
        assert f"python -m asv_benches.{path.stem}" in page, path


def test_tables_of_benchmarks_name_no_path_of_a_machine() -> None:
    for table in sorted((ROOT / "docs" / "benchmarks").glob("*.inc")):
        assert not re.search(r"[ `]/\w+/", table.read_text(encoding="utf-8")), table


def test_every_table_of_benchmarks_is_on_a_page() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.rst"))
    tables = {path.name for path in (ROOT / "docs" / "benchmarks").glob("*.inc")}
    assert tables == set(re.findall(r"include:: (?:\.\./)?benchmarks/(\w+\.inc)", pages))


def test_the_site_knows_this_version_and_fetches_nothing():
    versions = json.loads((ROOT / "docs" / "_static" / "versions.json").read_text(encoding="utf-8"))
    assert powerkern.__version__ in [entry["version"] for entry in versions]
    settings = (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
    for name in re.findall(r'"(inventories/\w+\.inv)"', settings):
        first, *_, last = (ROOT / "docs" / name).read_text(encoding="utf-8").splitlines()
        assert first == "# Sphinx inventory version 1"
        assert re.fullmatch(r"[\w.]+ (class|function|data|mod) \S+\.html", last)
    assert "mathjax_path" not in settings  # MathJax is bundled


def test_pictures_have_a_text_and_a_variant_for_dark_pages():
    for path in PAGES[2:]:
        text = path.read_text(encoding="utf-8")
        for options in re.findall(r"^ *\.\. image:: .*\n((?: +:.*\n(?: {8,}.*\n)*)*)", text, re.MULTILINE):
            assert ":alt:" in options, path
        for name in re.findall(r"images/(\w+)_light\.(?:png|svg)", text):
            for mode in ("light", "dark"):
                assert list((ROOT / "docs" / "images").glob(f"{name}_{mode}.*")), name
            assert f"images/{name}_dark" in text


#: Turns of phrase that no native speaker uses in a message.
STILTED = re.compile(
    r"\b(goes? with|go together|for want of|lest|anew|so many|as mostly|(is|are|holds?) no (data|list|table|label)s?)\b"
)


def test_the_page_of_messages_is_complete_and_plain():
    """The page has messages of every area, and no message contains a stilted phrase."""
    spec = importlib.util.spec_from_file_location("messages", ROOT / "docs" / "messages.py")
    assert spec is not None
    assert spec.loader is not None
    messages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(messages)
    listed = messages.messages()
    texts = {message.text for message in listed}
    assert {message.area for message in listed} == set(messages._AREAS)
    assert {code.sentence for code in powerkern.Status} <= texts
    assert any(text.startswith("{what} has shape") or "pass one weight per row" in text for text in texts)
    assert [text for text in sorted(texts) if STILTED.search(text)] == []
