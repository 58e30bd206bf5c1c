"""Number of Python calls between a public function and its kernels; unlike times, it does not depend on the machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

_COUNT = """
import json, os, sys
import numpy as np
import powerkern as pk

package = os.path.dirname(pk.__file__) + os.sep
below = (package + "kernels" + os.sep, package + "_jit" + os.sep)

def calls_before_kernels(function):
    function()  # modules that are imported late, and what is cached
    calls = []
    def trace(frame, event, argument):
        name = frame.f_code.co_filename
        if event == "call" and not (calls and calls[-1] == "kernel"):
            if name.startswith(below):
                calls.append("kernel")
            elif name.startswith(package):
                calls.append(name[len(package):] + ":" + frame.f_code.co_name)
    sys.setprofile(trace)
    try:
        function()
    finally:
        sys.setprofile(None)
    assert calls.pop() == "kernel"
    return calls

X, groups = np.random.default_rng(0).lognormal(size=(200, 3)), np.arange(200) % 4
fit = pk.fit(X)
print(json.dumps({
    "fit": calls_before_kernels(lambda: pk.fit(X)),
    "rewml": calls_before_kernels(lambda: pk.fit(X, estimator="rewml")),
    "groups": calls_before_kernels(lambda: pk.fit(X, groups=groups)),
    "transform": calls_before_kernels(lambda: fit.transform(X)),
}))
"""
#: Largest number of calls within the package before the first function of `powerkern.kernels` or `powerkern._jit`.
MOST = {"fit": 20, "rewml": 26, "groups": 34, "transform": 12}


@pytest.fixture(scope="module")
def calls() -> dict[str, list[str]]:
    """Return the Python calls of each public operation before its first kernel, keyed by a description.

    They are recorded in a process without JIT compilation.
    """
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run([sys.executable, "-c", _COUNT], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found: dict[str, list[str]] = json.loads(run.stdout)
    return found


@pytest.mark.parametrize("what", MOST)
def test_few_python_calls_precede_the_first_kernel(what: str, calls: dict[str, list[str]]) -> None:
    found = calls[what]
    print(f"{what}: {len(found)} calls, {len({call.split(':')[0] for call in found})} files")
    assert len(found) <= MOST[what], "\n".join(found)
    assert len(found) > 3  # the hook has recorded calls
