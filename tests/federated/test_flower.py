"""The adapter to Flower; the whole example, with a superlink and three supernodes, where flwr is installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from powerkern.federated import flower

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "flower" / "run.py"


def test_without_flower_the_error_says_what_to_install() -> None:
    if importlib.util.find_spec("flwr") is not None:
        pytest.skip("flwr is installed")
    with pytest.raises(ImportError, match=r"needs flwr: pip install 'powerkern\[flower\]'"):
        flower.client_app(lambda context: None)  # type: ignore[arg-type, return-value]


def test_the_example_runs_on_loopback() -> None:
    pytest.importorskip("flwr")
    command = [sys.executable, str(EXAMPLE), "--timeout", "900"]  # minutes, where others use the CPUs
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    difference = float(done.stdout.rpartition("largest difference:")[2])
    assert difference < 1e-10
