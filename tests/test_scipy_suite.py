"""SciPy's own tests of these functions, run against ours: ``python tests/test_scipy_suite.py`` does it by hand.

They run in a process of their own, in which the names that SciPy's test modules use are rebound to our functions
after collection (SciPy looks its own functions up while it collects). `scipy.special` itself stays as it is: some
tests compare with it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import scipy
import scipy.special
import scipy.stats

from powerkern import stats as ours

#: Test module, pytest's -k expression, and how many tests it selects in SciPy 1.17 (matplotlib or not).
SUITES = {
    "transforms": ("scipy.stats.tests.test_morestats", "oxcox or eojohnson or oxCox or eoJohnson", 123),
    "axis and nan_policy": ("scipy.stats.tests.test_axis_nan_policy", "boxcox_llf or yeojohnson_llf", 46),
    "inverse": ("scipy.special.tests.test_boxcox", "not 1p", 5),
}


@pytest.mark.parametrize("suite", SUITES)
def test_scipys_own_tests_pass(suite: str) -> None:
    module, _, expected = SUITES[suite]
    if importlib.util.find_spec(module) is None:
        pytest.skip("this SciPy is installed without its tests")
    command = [sys.executable, __file__, suite]
    same_package = os.pathsep.join([str(Path(ours.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": same_package}
    process = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert process.returncode == 0, process.stdout[-5000:] + process.stderr[-5000:]
    record = json.loads(process.stdout.splitlines()[-1])
    assert record["failed"] == 0
    assert record["passed"] > 0
    assert record["calls"] > 0, "our functions were never called"
    if scipy.__version__.startswith("1.17."):
        assert record["passed"] >= expected


class _Replace:
    """A pytest plugin that puts our functions in SciPy's places and counts calls and outcomes."""

    def __init__(self) -> None:
        self.record = {"calls": 0, "passed": 0, "failed": 0, "skipped": 0}

    def pytest_collection_finish(self, session: Any) -> None:
        modules = {scipy.stats, scipy.stats._morestats} | {item.module for item in session.items}
        for name in ours.__all__:
            scipys = {getattr(library, name, None) for library in (scipy.stats, scipy.special)} - {None}
            counted = self._counted(getattr(ours, name))
            for module in modules:
                if getattr(module, name, None) in scipys:
                    setattr(module, name, counted)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome == "skipped":
            self.record[report.outcome] += 1

    def _counted(self, function: Any) -> Any:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self.record["calls"] += 1
            return function(*args, **kwargs)

        return wrapper


def _main(suite: str) -> int:
    module, selection, _ = SUITES[suite]
    plugin = _Replace()
    nothing_of_ours = ["-c", "/dev/null", "--rootdir", str(Path(scipy.__file__).parent), "-p", "no:cacheprovider"]
    code = pytest.main([*nothing_of_ours, "-q", "--pyargs", module, "-k", selection], plugins=[plugin])
    print(json.dumps(plugin.record))
    return int(code)


if __name__ == "__main__":
    sys.exit(max(_main(suite) for suite in sys.argv[1:] or SUITES))
