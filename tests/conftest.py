"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import hypothesis
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
