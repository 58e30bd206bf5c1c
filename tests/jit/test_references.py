"""References to arrays: entries count none that nothing could free, and owe none to anyone."""

from __future__ import annotations

import sys

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

import powerkern as pk
from powerkern._jit import COLUMN, JIT_DISABLED, REAL, entry, kernel
from powerkern.location import location_scale

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")


@kernel
def _parts(x):
    return x[1:], x[:-1]


@kernel
def _total(x):
    total = 0.0
    for part in _parts(x):
        for i in range(part.size):
            total += part[i]
    return total


@entry((COLUMN, COLUMN))
def of_parts(x, out):
    for i in range(out.size):
        out[i] = _total(x[i:])


@entry((COLUMN, COLUMN))
def of_a_copy(x, out):
    own = np.empty(x.size)
    own[:] = x
    out[:] = _total(own)


@entry(COLUMN(COLUMN, REAL))
def without_first(x, number):
    return _parts(x)[0]


@numba.njit
def users_function(x):
    first, second = _parts(x)
    return _total(first), second


def code_of(compiled) -> str:
    (overload,) = compiled.overloads.values()
    return overload.library.get_llvm_str()


def test_nothing_is_counted_where_nothing_is_allocated(monkeypatch):
    monkeypatch.setattr(of_parts, "_compiled", None)
    assert "@NRT_incref(" not in code_of(of_parts.compile())
    assert "NRT_incref" in code_of(without_first.compile())


@pytest.mark.parametrize("function", [of_parts, of_a_copy])
def test_entries_give_back_what_they_are_given(function):
    x, out = np.arange(5.0), np.empty(3)
    before = sys.getrefcount(x), sys.getrefcount(out)
    for _ in range(3):
        function(x, out)
    assert (sys.getrefcount(x), sys.getrefcount(out)) == before
    assert out[0] == 2.0 * x.sum() - x[0] - x[-1]


@pytest.fixture
def allocation_stats():
    """What numba has allocated and freed so far."""
    was_enabled = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    yield rtsys.get_allocation_stats
    if not was_enabled:
        _nrt_python.memsys_disable_stats()


def test_what_is_allocated_is_freed(allocation_stats):
    x, out = np.arange(5.0), np.empty(1)
    of_a_copy(x, out)
    before = allocation_stats()
    of_a_copy(x, out)
    after = allocation_stats()
    assert after.alloc - before.alloc == after.free - before.free > 0
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free > 0


@pytest.mark.parametrize("estimator", ["mle", "rewml", "rewml-nr", "carroll", "mtl", "ks", "ppcc"])
@pytest.mark.parametrize("n", [20, 600])
def test_fits_and_transforms_keep_nothing_of_what_they_are_given(allocation_stats, estimator, n):
    """A function of numba's that returns its argument, in an entry that counts no references, would keep it."""
    x = np.random.default_rng(n).lognormal(size=(n, 3))
    before = allocation_stats()
    for values in (x, x.astype(np.float32), x[::-1, ::2]):
        for family in ("box-cox", "yeo-johnson"):
            fit = pk.fit(values, family, estimator)
            fit.inverse_transform(fit.transform(values))
            location_scale(values)
    after = allocation_stats()
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free > 0


@pytest.mark.parametrize("function", [lambda x: without_first(x, 0.0), users_function])
def test_an_array_that_is_returned_keeps_its_memory(function):
    x = np.arange(5.0)
    before = sys.getrefcount(x)
    returned = function(x)
    assert sys.getrefcount(x) > before
    del returned
    assert sys.getrefcount(x) == before
