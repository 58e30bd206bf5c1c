"""Run a peer's own tests in a process in which its functions are replaced by ours.

A test module that uses it calls `outcome` in its tests, and `run` if it is executed as a script.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import powerkern


class Recorder:
    """Pytest plugin that counts outcomes, and calls of selected functions."""

    def __init__(self) -> None:
        self.record = {"calls": 0, "passed": 0, "failed": 0, "skipped": 0}

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome == "skipped":
            self.record[report.outcome] += 1

    def counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a wrapper of the function that counts its calls."""

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self.record["calls"] += 1
            return function(*args, **kwargs)

        return wrapper


def outcome(script: str, *arguments: str) -> dict[str, int]:
    """Run a script that calls `run`; return the numbers of tests by outcome, and of calls of our functions.

    Fail with the script's output if a test failed, or if our functions were never called.
    """
    same_package = [
        str(Path(powerkern.__file__).parents[1]),
        str(Path(__file__).parent),
        os.environ.get("PYTHONPATH", ""),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(same_package)}
    process = subprocess.run(
        [sys.executable, script, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment,
    )
    assert process.returncode == 0, process.stdout[-5000:] + process.stderr[-5000:]
    record: dict[str, int] = json.loads(process.stdout.splitlines()[-1])
    assert record["failed"] == 0
    assert record["passed"] > 0
    assert record["calls"] > 0, "ours were never called"
    return record


def run(plugin: Recorder, module: str, selection: str) -> int:
    """Run the tests of an installed module, print the counts of the recorder `plugin`, and return pytest's exit code.

    Only tests that match the -k expression `selection` are run. As in SciPy's configuration, which is not installed,
    every unexpected warning is an error.
    """
    root = str(Path(sys.modules[module.partition(".")[0]].__file__ or "").parent)
    nothing_of_ours = ["-c", "/dev/null", "--rootdir", root, "-p", "no:cacheprovider"]
    of_pytest = ["-W", "ignore::pytest.PytestWarning"]  # about marks, and the form of their parameters
    options = ["-q", "-W", "error", *of_pytest, "--pyargs", module]
    code = pytest.main([*nothing_of_ours, *options, *(["-k", selection] if selection else [])], plugins=[plugin])
    print(json.dumps(plugin.record))
    return int(code)
