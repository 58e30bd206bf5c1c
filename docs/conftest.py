"""Pages are doctests; the gallery runs when the documentation is built."""

import os
import sys

import pytest

collect_ignore_glob = ["*gallery", "images", "_build"]
os.environ.setdefault("MPLBACKEND", "Agg")  # no screen is needed


@pytest.fixture(autouse=True)
def _figures_closed():
    """Earlier pictures are closed before a page: pyplot warns of more than twenty, and warnings are errors."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
