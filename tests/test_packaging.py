"""What a newcomer, a packager and a type checker rely on."""

from __future__ import annotations

import importlib
import importlib.metadata
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
    "powerkern": ["fit", "transform", "inverse_transform", "PowerFit", "Status"],
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
    "powerkern.sklearn": ["LocationScaler", "PowerTransformer"],
    "powerkern.supervised": ["SupervisedPowerTransformer", "SearchHistory"],
    "powerkern.plot": ["qq_plot", "profile_plot", "cell_map"],
    "powerkern.completion": ["uv_decompose", "UVDecomposition", "rank_profile", "RankProfile", "UVImputer"],
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


def test_run_time_needs_three_packages():
    assert sorted(map(name_of, PYPROJECT["project"]["dependencies"])) == ["numba", "numpy", "scipy"]
    for requirement in PYPROJECT["project"]["dependencies"]:
        assert ">=" in requirement
        assert "<" not in requirement


def test_all_has_every_optional_dependency():
    of_the_library = {"progress", "parquet", "pandas", "sklearn", "dask", "plot", "formula", "keys"}
    assert set(EXTRAS) == of_the_library | {"flower", "all", "test", "bench", "docs", "dev"}
    (everything,) = EXTRAS["all"]
    assert set(re.search(r"\[(.*)\]", everything).group(1).split(",")) == of_the_library


def test_import_leaves_optional_dependencies_alone():
    code = "import sys, powerkern, powerkern.stats, powerkern.__main__; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "powerkern" in loaded
    assert not {"pandas", "pyarrow", "sklearn", "tqdm", "dask", "matplotlib"} & set(loaded)


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
    assert test.endswith(".venv/bin/python -m pytest")
    assert test in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


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
