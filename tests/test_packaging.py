"""Metadata and files that newcomers, packagers and type checkers rely on."""

from __future__ import annotations

import email
import importlib
import importlib.metadata
import itertools
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import powerkern

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PYPROJECT["project"]["optional-dependencies"]

PUBLIC = {
    "powerkern": ["fit", "load", "PowerFit", "GroupedFit", "Status"],
    "powerkern.stats": [
        "boxcox",
        "boxcox_llf",
        "boxcox_normmax",
        "yeojohnson",
        "yeojohnson_llf",
        "yeojohnson_normmax",
        "inv_boxcox",
        "inv_yeojohnson",
    ],
    "powerkern.sklearn": ["LocationScaler", "PowerTransformer", "SupervisedPowerTransformer"],
    "powerkern.results": ["Interval", "Summary"],
    "powerkern.plot": ["qq_plot", "before_after_plot", "forest_plot", "profile_plot", "cell_map"],
    "powerkern.completion": ["uv_decompose", "UVDecomposition", "rank_profile", "RankProfile"],
    "powerkern.location": ["location_scale", "LocationScale", "LocationStatus"],
    "powerkern.kernels": [
        "huber_location",
        "huber_scale",
        "huber_proposal2",
        "logsumexp",
        "log_mean",
        "log_var",
        "welford_update",
        "chan_merge",
        "golden_section",
        "brent",
        "newton_root",
    ],
}


def name_of(requirement: str) -> str:
    return re.match(r"[A-Za-z0-9_.-]+", requirement).group()


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_there_and_documented(module):
    if module == "powerkern.sklearn":
        pytest.importorskip("sklearn")
    loaded = importlib.import_module(module)
    api = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "api").glob("*.rst")))
    for name in PUBLIC[module]:
        assert name in loaded.__all__
        assert getattr(loaded, name).__doc__
    for name in loaded.__all__:
        assert re.search(rf"\b{name}\b", api), f"{module}.{name} is missing from docs/api"


def test_no_merge_has_left_its_marks():
    for kind in ("docs/**/*.rst", "powerkern/**/*.py", "tests/**/*.py", "asv_benches/*.py", "*.md"):
        for path in ROOT.glob(kind):
            if "generated" in path.parts:  # written by Sphinx
                continue
            lines = ["", *path.read_text(encoding="utf-8").splitlines()]
            for before, line in itertools.pairwise(lines):
                is_underline = line == "=======" and len(before) == 7
                assert is_underline or not re.fullmatch(r"(<{7}|={7}|>{7})( .*)?", line), (path, line)


def test_run_time_needs_three_packages():
    assert sorted(map(name_of, PYPROJECT["project"]["dependencies"])) == ["narwhals", "numba", "numpy", "scipy"]
    for requirement in PYPROJECT["project"]["dependencies"]:
        assert ">=" in requirement
        assert "<" not in requirement


def test_all_has_every_optional_dependency():
    tables = {"pandas", "polars", "parquet", "duckdb", "dask", "xarray"}
    of_the_library = tables | {"progress", "sklearn", "plot", "formula", "onnx"}
    large = {"flower", "spark", "ray"}  # these need many, pinned or large packages
    assert set(EXTRAS) == of_the_library | large | {"all", "test", "peers", "engines", "bench", "docs", "dev"}
    (everything,) = EXTRAS["all"]
    assert set(re.search(r"\[(.*)\]", everything).group(1).split(",")) == of_the_library


@pytest.mark.slow
def test_import_leaves_optional_dependencies_alone():
    code = "import sys, powerkern, powerkern.stats, powerkern.__main__; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "powerkern" in loaded
    optional = {"pandas", "polars", "pyarrow", "duckdb", "sklearn", "tqdm", "dask", "xarray", "matplotlib"}
    assert not optional & set(loaded)


def test_version_is_one():
    version = PYPROJECT["project"]["version"]
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    try:
        installed = importlib.metadata.version("powerkern")
    except importlib.metadata.PackageNotFoundError:
        installed = version = "0+unknown"  # powerkern runs from its sources without being installed
    assert powerkern.__version__ == installed == version


def test_readme_has_two_commands_and_ci_runs_its_test_command():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = [line for line in readme.splitlines() if line.startswith("python3 ")]
    assert len(commands) == 2
    run, test = commands
    assert run.endswith(".venv/bin/python -m powerkern demo")
    assert test.endswith(".venv/bin/python -m pytest -n auto")
    assert test in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


URL = "https://github.com/powerkern/powerkern"
RAW = "https://raw.githubusercontent.com/powerkern/powerkern"


def test_links_of_the_readme_work_on_the_index_page():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)]+)\)", readme)
    assert len(targets) > 10
    for target in targets:
        assert target.startswith("https://"), target
        for base in (f"{URL}/blob/main/", f"{RAW}/main/"):
            if target.startswith(base):
                assert (ROOT / target.removeprefix(base)).exists(), target
                break
        else:
            assert "powerkern/powerkern/" not in target, target


def test_urls_of_the_project_are_complete():
    urls = PYPROJECT["project"]["urls"]
    assert set(urls) >= {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    assert all(url.startswith("https://") for url in urls.values())
    assert urls["Source"] == URL


def yaml_of(path: Path) -> dict:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_citation_has_this_version_and_follows_the_format():
    """Fields and types follow version 1.2.0 of the Citation File Format."""
    cff = yaml_of(ROOT / "CITATION.cff")
    assert cff["cff-version"] == "1.2.0"
    assert cff["version"] == PYPROJECT["project"]["version"]
    assert cff["license"] == PYPROJECT["project"]["license"]
    assert cff["repository-code"] == PYPROJECT["project"]["urls"]["Source"]
    for entry in (cff, *cff["references"]):
        assert entry["title"]
        assert entry["type"] in ("software", "article")
        for author in entry["authors"]:
            assert set(author) in ({"name"}, {"family-names", "given-names"})
    for reference in cff["references"]:
        assert {"journal", "volume", "year", "start", "end"} <= set(reference)


CLASSIFIED = [c.split(" :: ")[-1] for c in PYPROJECT["project"]["classifiers"] if "Python :: 3." in c]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_are_whole(path):
    workflow = yaml_of(path)
    assert set(workflow) <= {"name", True, "permissions", "concurrency", "jobs"}  # YAML reads "on" as a truth value
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert set(job.get("needs", [])) <= set(workflow["jobs"]), name
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), step
            if "uses" in step:
                assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"]), step  # a tag can be moved
    text = path.read_text(encoding="utf-8")
    for file in re.findall(r"(?<![\w/-])(tests/[\w/]+(?:\.py)?)", text):
        assert (ROOT / file).exists(), file


def test_actions_are_pinned_alike_with_their_versions_and_kept_up_to_date():
    pins: dict[str, set[str]] = {}
    for path in WORKFLOWS:
        for line in re.findall(r"uses: (.*)", path.read_text(encoding="utf-8")):
            action, _, pin = line.partition("@")
            assert re.fullmatch(r"[0-9a-f]{40} # v\d+\.\d+\.\d+", pin), line
            pins.setdefault(action, set()).add(pin)
    assert all(len(versions) == 1 for versions in pins.values()), pins
    updates = yaml_of(ROOT / ".github" / "dependabot.yml")["updates"]
    assert "github-actions" in [update["package-ecosystem"] for update in updates]


def test_every_supported_python_is_tested():
    jobs = yaml_of(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
    oldest = jobs["everything"]["steps"][1]["with"]["python-version"]
    assert [oldest, *jobs["pythons"]["strategy"]["matrix"]["python"]] == CLASSIFIED


def test_read_the_docs_builds_with_the_extra_of_the_documentation():
    settings = yaml_of(ROOT / ".readthedocs.yaml")
    (install,) = settings["python"]["install"]
    assert install == {"method": "pip", "path": ".", "extra_requirements": ["docs"]}
    assert settings["sphinx"] == {"configuration": "docs/conf.py", "fail_on_warning": True}
    assert settings["build"]["tools"]["python"] in CLASSIFIED


def test_a_release_is_tested_before_it_is_published_with_attestations():
    jobs = yaml_of(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    publish = jobs["publish"]
    assert set(publish["needs"]) == set(jobs) - {"publish"}
    assert publish["permissions"]["id-token"] == "write"
    uploads = [step for step in publish["steps"] if "gh-action-pypi-publish" in step.get("uses", "")]
    assert uploads[0]["with"]["attestations"] is True
    assert "password" not in uploads[0]["with"]
    assert jobs["tested"]["strategy"]["matrix"] == {**jobs["compiled"]["strategy"]["matrix"], "python": CLASSIFIED}


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem
)
def test_issue_forms_are_whole(path):
    form = yaml_of(path)
    if path.stem == "config":
        assert all(set(link) == {"name", "url", "about"} for link in form["contact_links"])
        return
    assert {"name", "description", "body"} <= set(form)
    assert len({field["id"] for field in form["body"]}) == len(form["body"])
    for field in form["body"]:
        assert field["type"] in ("textarea", "input", "dropdown", "checkboxes")
        assert field["attributes"]["label"]


def test_conda_recipe_needs_what_the_package_needs():
    recipe = yaml_of(ROOT / "conda" / "recipe.yaml")
    assert recipe["context"]["version"] == PYPROJECT["project"]["version"]
    run = {line.split()[0]: line.split()[1] for line in recipe["requirements"]["run"] if not line.startswith("python")}
    assert run == {name_of(line): line.removeprefix(name_of(line)) for line in PYPROJECT["project"]["dependencies"]}
    assert recipe["build"]["python"]["entry_points"] == ["powerkern = powerkern.__main__:main"]
    assert recipe["about"]["license"] == PYPROJECT["project"]["license"]


@pytest.mark.slow
def test_what_a_release_of_scikit_learn_moved_is_said():
    pytest.importorskip("sklearn")
    code = (
        "import sklearn.preprocessing, sklearn.utils._param_validation as moved; del moved.StrOptions\n"
        "import powerkern.sklearn._compat"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    last = ended.stderr.strip().splitlines()[-1]
    for part in ("ImportError: scikit-learn ", "does not have names that this powerkern imports", "scikit-learn<"):
        assert part in last


def test_private_modules_of_scikit_learn_are_imported_in_one_place():
    private = re.compile(r"from sklearn[\w.]*\._|import [^#\n]*\b_(?:fit_context|check_sample_weight)")
    for path in (ROOT / "powerkern").rglob("*.py"):
        if path.parts[-2:] != ("sklearn", "_compat.py"):
            assert not private.search(path.read_text(encoding="utf-8")), path


def test_wheel_has_the_package_and_nothing_else(tmp_path):
    pytest.importorskip("hatchling")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path], cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "powerkern").rglob("*.py")} | {
        "powerkern/py.typed"
    }
    assert {name for name in names if ".dist-info/" not in name} == sources
    assert any(name.endswith("licenses/LICENSE") for name in names)
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(path))
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert len(metadata.get_all("Project-URL")) == len(PYPROJECT["project"]["urls"])
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert "](docs/" not in metadata.get_payload()
