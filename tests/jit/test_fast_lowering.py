"""Failures of the code that uses private parts of numba, as after a new release: numba compiles entries by itself."""

from __future__ import annotations

import inspect
import itertools
import logging

import numpy as np
import pytest

from powerkern._jit import COLUMN, INTEGER, JIT_DISABLED, Entry, kernel, llvm_scalars

if JIT_DISABLED:
    pytest.skip("nothing is compiled", allow_module_level=True)

from powerkern._jit import fast_lowering, numba_extension

#: Classes and modules whose functions may fail.
PARTS = (
    fast_lowering, fast_lowering._Text, fast_lowering._Lower, fast_lowering._Calls, fast_lowering._Target,
    fast_lowering._Typing, fast_lowering._Compiler, llvm_scalars,
)  # fmt: skip
#: Functions that are replaced where they are imported, not where they are defined.
IMPORTED = {"number_type", "find_lowering"}


def breakable():
    """Yield (part, name) of every function of the modules and classes in PARTS; two of three are marked as slow."""
    number = itertools.count()
    for part in PARTS:
        for name, value in vars(part).items():
            is_own = getattr(value, "__module__", "").startswith("powerkern._jit") or isinstance(part, type)
            is_own &= part is not llvm_scalars or name not in IMPORTED
            if is_own and (inspect.isfunction(value) or isinstance(value, property)):
                marks = [pytest.mark.slow] if next(number) % 3 else []
                yield pytest.param(part, name, id=f"{part.__name__.rpartition('.')[2]}.{name}", marks=marks)


@kernel
def _largest(x, start, stop):
    found = x[start]
    for value in x[start:stop]:
        found = max(found, value)
    return found


@pytest.fixture
def anew(monkeypatch):
    """Forget all compiled code and caches, as in a new process."""

    def forget():
        numba_extension._jitted.cache_clear()
        monkeypatch.setattr(numba_extension.PIPELINES, "are_fast", True)
        monkeypatch.setattr(fast_lowering._Typing, "found", {})

    forget()
    yield forget
    monkeypatch.undo()
    forget()


def result(n=3):
    """Compile the test's entry, call it with an array and `n`, and return its result."""
    return Entry(_job, (COLUMN, INTEGER))(np.array([1.0, 4.0, 2.0]), n)


def _job(x: np.ndarray, n: int) -> float:
    return _largest(x, 0, n) + int(x[n - 1]) + min(x[0], 2.0)


@pytest.mark.slow
@pytest.mark.parametrize("part, name", list(breakable()))
def test_plain_numba_compiles_if_any_of_our_functions_fails(part, name, anew, monkeypatch, caplog):
    failed = []

    def fail(*args, **named):
        failed.append(True)
        raise TypeError(f"{name} has other arguments")

    expected = result()
    assert caplog.records == []
    anew()
    broken = property(fail) if isinstance(vars(part)[name], property) else fail
    monkeypatch.setattr(part, name, broken)
    with caplog.at_level(logging.WARNING, "powerkern"):
        assert result() == expected
        assert result() == expected  # by plain numba from the start
    assert failed
    assert not numba_extension.PIPELINES.are_fast
    (record,) = caplog.records
    assert "compiles kernels by its own means only" in record.getMessage()
    assert f"{name} has other arguments" in record.getMessage()
