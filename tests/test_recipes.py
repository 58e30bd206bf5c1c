"""Recipes of the guide that doctest cannot run."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import powerkern as pk

PAGE = Path(__file__).parents[1] / "docs/guide/beyond.rst"

BEFORE = """
import numpy as np
X = np.random.default_rng(0).lognormal(size=(1000, 3))
rank = __import__("mpi4py.MPI").MPI.COMM_WORLD.Get_rank()
chunks = [X[400 * rank : 400 * rank + 90], X[400 * rank + 90 : 400 * rank + 400]]
"""
AFTER = """
np.save(f"{__file__}.{rank}.npy", fit.lmbda)
"""


def test_mpi_recipe_fits_all_rows_in_each_process(tmp_path):
    """Three processes run the guide's MPI recipe, and each prints the fit of all rows."""
    if subprocess.run([sys.executable, "-c", "import mpi4py.MPI"], check=False, capture_output=True).returncode:
        pytest.skip("no mpi4py, or no MPI library")
    mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
    if mpiexec is None:
        pytest.skip("no mpiexec")
    (recipe,) = re.findall(r"code-block:: python\n\n((?:   .*\n|\n)+)", PAGE.read_text(encoding="utf-8"))
    script = tmp_path / "script.py"
    script.write_text(BEFORE + textwrap.dedent(recipe) + AFTER, encoding="utf-8")
    command = [mpiexec, "-n", "3", sys.executable, str(script)]
    subprocess.run(command, check=True, capture_output=True)
    expected = pk.fit(np.random.default_rng(0).lognormal(size=(1000, 3))).lmbda
    found = [np.load(f"{script}.{rank}.npy") for rank in range(3)]
    assert np.allclose(found[0], expected, rtol=0, atol=1e-11)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
