"""Fixtures for tests, for the examples in docstrings, and for the pages."""

from __future__ import annotations

import os
import sys

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")  # no screen is needed


@pytest.fixture(autouse=True)
def _close_figures() -> None:
    """Close figures that are still open: pyplot warns of more than twenty, and warnings are errors."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
