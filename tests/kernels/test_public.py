"""Every public kernel: documented, typed, importable without compiling, callable from Python and from jitted code."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numba
import numpy as np
import pytest

from powerkern import kernels
from powerkern._jit import JIT_DISABLED
from powerkern.kernels.log_moments import LogNumber
from powerkern.kernels.moments import Moments

LOGS = np.array([1.0, 3.0, -2.0])
SORTED = np.array([-2.0, 1.0, 1.5, 3.0, 40.0])
ONES = np.array([1.0, 1.0, -1.0])
STATE = Moments(3.0, 2.0, 14.0)


@numba.njit
def parabola(x):
    return (x - 2.0) ** 2


@numba.njit
def line(x):
    return 2.0 * (x - 3.0), 2.0, 0.0


#: arguments by position and by name, for every public kernel
CALLS = {
    "bisquare_objective": ((LOGS, LOGS, 0.1, 1.5), {"c": 0.6}),
    "boxcox_nll": ((np.array([0.5, 1.0, 7.0]), -0.4), {}),
    "brent": ((parabola, -4.0, 6.0), {"xtol": 1e-6, "max_eval": 50}),
    "chan_merge": ((STATE, Moments(1.0, 5.0, 0.0)), {}),
    "golden_section": ((parabola, -4.0, 6.0), {"xtol": 1e-6, "max_eval": 50}),
    "huber_location": ((SORTED,), {"scale": 2.0, "k": 1.345}),
    "huber_proposal2": ((SORTED,), {"k": 1.5, "k_location": 1.345}),
    "huber_scale": ((SORTED,), {"center": 0.5, "k": 1.345, "ddof": 1}),
    "inv_rectified_boxcox": ((2.0, 0.5, 0.5, 2.0), {}),
    "inv_rectified_yeojohnson": ((-2.0, 1.5, -0.5, 2.0), {}),
    "log_mean": ((LOGS,), {"signs": ONES}),
    "log_var": ((LOGS,), {"signs": ONES}),
    "logsumexp": ((LOGS,), {"weights": np.array([1.0, 2.0, 0.5])}),
    "newton_root": ((line, 1.0), {"max_step": 2.0, "xtol": 1e-9, "max_eval": 50}),
    "rectified_boxcox": ((3.0, 0.5, 0.5, 2.0), {}),
    "rectified_yeojohnson": ((-3.0, 1.5, -0.5, 2.0), {}),
    "welford_update": ((STATE, 4.0), {"w": 2.0}),
    "yeojohnson_nll": ((SORTED, 0.4), {}),
}
names = pytest.mark.parametrize("name", sorted(CALLS))


def flat(result):
    return list(result) if isinstance(result, tuple) else [result]


def test_every_public_name_is_called_here():
    assert set(kernels.__all__) == set(CALLS)
    assert sorted(kernels.__all__) == list(kernels.__all__)


def call_from_jitted_code(function, positional, named):
    """Call ``function(*positional, **named)`` from the body of a user's @njit function; return the result."""
    parameters = [f"p{i}" for i in range(len(positional))]
    arguments = parameters + [f"{key}={key}" for key in named]
    scope = {"function": function}
    exec(f"def user({', '.join([*parameters, *named])}): return function({', '.join(arguments)})", scope)
    return numba.njit(scope["user"])(*positional, *named.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name.startswith("huber") else ()) for name in sorted(CALLS)],
)
def test_python_and_jitted_calls_agree(name):
    function = getattr(kernels, name)
    positional, named = CALLS[name]
    for options in (named, {}):
        expected = function(*positional, **options)
        result = call_from_jitted_code(function, positional, options)
        assert type(result) is type(expected)
        np.testing.assert_allclose(flat(result), flat(expected), rtol=1e-14)


@pytest.mark.skipif(not JIT_DISABLED, reason="test_python_and_jitted_calls_agree compiles the same kernels")
@names
def test_kernels_that_jitted_code_inlines_agree_with_python_calls(name):
    function = getattr(kernels, name)
    kernel = getattr(sys.modules[function.__module__], f"_{name}", None)
    if kernel is None:
        pytest.skip("one function serves both")
    positional, named = CALLS[name]
    for options in (named, {}, *({key: value} for key, value in named.items())):
        with np.errstate(all="ignore"):
            result = kernel(*positional, **options)
        np.testing.assert_allclose(flat(result), flat(function(*positional, **options)), rtol=1e-14)


@names
def test_results_are_plain_numbers(name):
    positional, named = CALLS[name]
    for value in flat(getattr(kernels, name)(*positional, **named)):
        assert isinstance(value, (float, int))
        assert not isinstance(value, np.generic)


@names
def test_signatures_are_typed(name):
    signature = inspect.signature(getattr(kernels, name))
    assert signature.return_annotation is not inspect.Signature.empty
    assert all(p.annotation is not inspect.Parameter.empty for p in signature.parameters.values())


@names
def test_docstrings_are_complete(name):
    doc = inspect.getdoc(getattr(kernels, name))
    summary, blank = doc.splitlines()[:2]
    assert summary.endswith(".")
    assert not blank
    for section in ("Parameters", "Returns", "See Also", "Examples"):
        assert f"\n{section}\n{'-' * len(section)}\n" in doc
    documented = {word for line in doc.splitlines() if " : " in line for word in line.split(" : ")[0].split(", ")}
    assert documented >= set(inspect.signature(getattr(kernels, name)).parameters)
    assert f"from powerkern.kernels import {name}" in doc


@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")
def test_importing_compiles_nothing():
    code = "import powerkern.kernels.log_moments as m; print(m._logsumexp_entry._compiled)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "None\n", done.stderr


def test_log_number_is_a_number():
    log, sign = kernels.log_mean([0.0, 0.0], [-1, -1])
    assert LogNumber(log, sign) == (0.0, -1.0)
