"""Separate Python processes, for tests that cannot run in this one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import powerkern

SOURCES = Path(powerkern.__file__).parents[1]


def start(code: str, sources: Path = SOURCES, stdin: bool = False, **environment: str) -> subprocess.Popen[str]:
    """Start a process that runs `code` in the folder `sources`, from which it imports powerkern.

    With `stdin`, its standard input is a pipe. `environment` has further environment variables.
    """
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=sources,
        env={**os.environ, "PYTHONPATH": str(sources), **environment},
        stdin=subprocess.PIPE if stdin else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(code: str, sources: Path = SOURCES, **environment: str) -> str:
    """Return what a process prints that runs `code`; it must end without an error or a warning.

    The process can import powerkern from the folder `sources`, and has these further environment variables.
    """
    with start(code, sources, **environment) as process:
        try:
            out, err = process.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert process.returncode == 0, err
    assert err == ""
    return out.strip()
