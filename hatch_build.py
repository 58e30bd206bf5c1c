"""A wheel with compiled code in it: ``POWERKERN_COMPILE=1 python -m build --wheel`` (docs/guide/installing).

Without that variable the wheel holds sources only and fits every platform.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: The instruction sets whose code a wheel holds; elsewhere than on x86-64 the one that all CPUs have.
X86_64 = ("x86-64-v2", "x86-64-v3", "x86-64-v4")


class CompiledCode(BuildHookInterface):
    """Compiles every entry for the instruction sets of this platform, and puts the code into the wheel."""

    def dependencies(self) -> list[str]:
        """Return what compiling needs: all dependencies of the package."""
        return list(self.metadata.core.dependencies) if _is_asked_for() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; the wheel's tag then names the platform."""
        if version == "editable" or not _is_asked_for():
            return
        self._folder = tempfile.TemporaryDirectory()
        for cpu in _instruction_sets():
            self._compile(cpu)
        build_data["force_include"][self._folder.name] = "powerkern/_compiled"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform_tag()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing behind."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()

    def _compile(self, cpu: str) -> None:
        command = [sys.executable, "-m", "powerkern", "compile", "--all", "--cpu", cpu, "--to", self._folder.name]
        subprocess.run(command, cwd=self.root, env={**os.environ, "PYTHONPATH": self.root}, check=True)


def _is_asked_for() -> bool:
    return os.environ.get("POWERKERN_COMPILE", "") not in ("", "0")


def _instruction_sets() -> tuple[str, ...]:
    return X86_64 if platform.machine().lower() in ("x86_64", "amd64") else ("generic",)


def _platform_tag() -> str:
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
