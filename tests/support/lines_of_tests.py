"""Pytest plugin that records the lines of the package that each test executes, for `tests/mutation.py`.

``RECORD_LINES_IN=FOLDER pytest -n 2 -p lines_of_tests`` writes ``.coverage.*`` files, which ``coverage combine`` joins,
and the seconds that each test took. Kernels are left out: compiled code cannot be traced.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest


class LineRecorder:
    """Recorder of one pytest-xdist worker: it stores executed lines and seconds under the name of the running test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seconds: dict[str, float] = {}
        self._coverage = coverage.Coverage(
            data_file=str(folder / ".coverage"),
            data_suffix=True,
            source=["powerkern"],
            omit=["*/kernels/*", "*/_jit/*"],
            branch=False,
            config_file=False,
        )
        self._coverage.start()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Record the lines that a test executes, and its duration."""
        self._coverage.switch_context(item.nodeid)
        start = time.perf_counter()
        yield
        self._seconds[item.nodeid] = time.perf_counter() - start
        self._coverage.switch_context("")

    def pytest_sessionfinish(self) -> None:
        """Write the recorded lines and durations."""
        self._coverage.stop()
        self._coverage.save()
        (self._folder / f"seconds.{os.getpid()}.json").write_text(json.dumps(self._seconds), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Start recording in each worker."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        config.pluginmanager.register(LineRecorder(Path(os.environ["RECORD_LINES_IN"])))
