"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import hypothesis
import numba  # noqa: F401  (before powerkern, so that it knows kernels in a checkout that is not installed)
import pytest

hypothesis.settings.register_profile("powerkern", deadline=None, max_examples=60)
hypothesis.settings.load_profile("powerkern")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of reference values and public data beside the repository; not part of it."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not (folder / "refs").is_dir():
        pytest.skip(f"reference values are not at {folder}")
    return folder


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    """Run the command line in this process: (exit code, standard output, standard error)."""

    def call(*words: object) -> tuple[int, str, str]:
        from powerkern.__main__ import main

        try:
            code = main([str(word) for word in words])
        except SystemExit as stop:  # argparse
            code = stop.code
        return code, *capsys.readouterr()

    return call
