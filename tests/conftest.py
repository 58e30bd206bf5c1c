"""Hooks and fixtures for all tests."""

from __future__ import annotations

import subprocess
import sys

import hypothesis
import numba  # noqa: F401  (before powerkern, so that it knows kernels in a checkout that is not installed)
import pytest
from reference_files import SHARED

from powerkern._jit import JIT_DISABLED

hypothesis.settings.register_profile("powerkern", deadline=None, max_examples=60)
hypothesis.settings.load_profile("powerkern")


def pytest_configure(config: pytest.Config) -> None:
    """Compile all kernels before the worker processes start, so that no worker waits while another compiles."""
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput") and not JIT_DISABLED:
        subprocess.run([sys.executable, "-m", "powerkern", "compile", "--all"], check=True, stdout=subprocess.DEVNULL)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests marked `needs_shared_data` if the public data sets, which the repository lacks, are not installed."""
    if item.get_closest_marker("needs_shared_data") and not (SHARED / "data").is_dir():
        pytest.skip(f"public data sets are not at {SHARED}")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    """Return a function that runs the command line in this process.

    The function returns the exit code, the standard output and the standard error.
    """

    def call(*words: object) -> tuple[int, str, str]:
        from powerkern.__main__ import main

        try:
            code = main([str(word) for word in words])
        except SystemExit as stop:  # argparse exits on errors and on --help
            code = stop.code
        return code, *capsys.readouterr()

    return call
