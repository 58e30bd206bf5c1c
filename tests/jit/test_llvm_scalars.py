"""Our replacements for operations of numba behave as in Python, in kernels called by a user's function."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from powerkern._jit import JIT_DISABLED, kernel
from powerkern.kernels import huber_location, huber_proposal2, huber_scale

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="plain Python")

N = 5


@kernel
def part(x, start, stop, out):
    for k, values in enumerate((x[start:stop], x[start:], x[:stop], x[start:stop][1:])):
        out[k, 0] = values.size
        for i in range(len(values)):
            out[k, 1 + i] = values[i]


@kernel
def elements(x, i, out):
    out[0], out[-1], out[1] = x[i], x[-1], x[i] + x[0]
    x[i] = 7


@kernel
def extremes(a, b, n, out):
    out[0], out[1], out[2], out[3] = max(a, b), min(a, b), max(a, b, 0.5), min(n, 2, a)
    out[4], out[5], out[6] = int(n > 1), int(2.9 * n), max(n, -1)


@kernel
def refusing(x):
    if x < 0.0:
        raise ValueError("negative")
    return math.sqrt(x)


@kernel
def allocating(n):
    return np.arange(n)[1:3]


def test_the_replacements_are_in_use():
    """Otherwise, as with an unknown release of numba, this file would test numba's own operations."""
    from powerkern._jit.numba_extension import PIPELINES

    assert PIPELINES.are_fast


def compiled(function):
    """Return a user's jitted function that calls `function`."""
    scope = {"function": function, "numba": numba}
    names = ", ".join(function.__code__.co_varnames[: function.__code__.co_argcount])
    exec(f"@numba.njit\ndef users({names}): return function({names})", scope)
    return scope["users"]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_parts_and_elements_of_vectors(dtype):
    x, users, users_elements = np.arange(1, N + 1, dtype=dtype), compiled(part), compiled(elements)
    for start, stop in itertools.product(range(-N - 2, N + 3), repeat=2):
        found, wanted = np.zeros((2, 4, N + 1))
        users(x, start, stop, found)
        part(x, start, stop, wanted)
        np.testing.assert_array_equal(found, wanted)
    for i in range(-N, N):
        (x1, x2), (found, wanted) = (x.copy(), x.copy()), np.zeros((2, 3))
        users_elements(x1, i, found)
        elements(x2, i, wanted)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(x1, x2)


def test_extremes_and_integers_are_those_of_python():
    users, numbers = compiled(extremes), [-math.inf, -1.5, -0.0, 0.0, 2.5, math.inf, math.nan]
    for a, b, n in itertools.product(numbers, numbers, range(-2, 4)):
        found, wanted = np.zeros((2, 7))
        users(a, b, n, found)
        extremes(a, b, n, wanted)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(np.signbit(found[:4]), np.signbit(wanted[:4]))


@pytest.mark.slow
def test_exceptions_and_memory_of_kernels():
    users = compiled(refusing)
    assert users(4.0) == 2.0
    with pytest.raises(ValueError, match="negative"):
        users(-1.0)
    assert compiled(allocating)(9).tolist() == [1, 2]


@pytest.mark.slow
def test_bounds_are_checked_where_numba_is_asked_to():
    code = (
        "import numba, numpy as np\n"
        "from powerkern._jit import kernel\n"
        "@kernel\n"
        "def element(x, i): return x[i]\n"
        "@numba.njit\n"
        "def users(x, i): return element(x, i)\n"
        "try: users(np.arange(3.0), 5)\n"
        "except IndexError: print('refused')\n"
    )
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert done.stdout == "refused\n"


@pytest.mark.slow
def test_users_functions_can_be_cached():
    """Their code contains no addresses of this process. numba does not cache code with such addresses."""

    @numba.njit
    def users(x):
        return huber_location(x).loc, huber_scale(x).scale, huber_proposal2(x).loc

    users(np.arange(5.0))
    (found,) = users.overloads.values()
    assert not found.library.has_dynamic_globals
