"""A child forked during another thread's first fit can fit: no module is imported for the first time during a fit."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import powerkern as pk

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

FORKED_WHILE_FITTING = """
import os, signal, sys, threading, time
import numpy as np
import powerkern as pk

x = np.random.default_rng(0).lognormal(size=(50, 2))
fit = lambda: pk.fit(x, estimator=sys.argv[2])
thread = threading.Thread(target=fit)
thread.start()
time.sleep(float(sys.argv[1]))
child = os.fork()
if child == 0:
    signal.alarm(60)  # ends it if it hangs
    fit()
    os._exit(0)
thread.join()
sys.exit(os.waitpid(child, 0)[1])
"""

FORKED_WHILE_LOGGING = """
import os, signal, threading, time
from powerkern._fork_lock import no_fork

signal.alarm(60)  # ends it if it hangs
started = threading.Event()

def work():
    with no_fork():
        import logging
        started.set()
        time.sleep(0.2)
        logging.getLogger("new")

thread = threading.Thread(target=work)
thread.start()
started.wait()
if os.fork() == 0:
    os._exit(0)
thread.join()
"""

FORKED_AFTER_THE_IMPORT = """
import os, sys
from powerkern import _fork_lock
from powerkern._input import lazy_scipy_special

assert lazy_scipy_special.ndtri(0.5) == 0.0
child = os.fork()
if child == 0:
    os._exit(0 if _fork_lock.LOCK.acquire(timeout=1.0) else 1)
sys.exit(os.waitpid(child, 0)[1] != 0)
"""

READING_ALONE = """
import sys
import numpy as np
from powerkern._input.arrays import as_matrix, as_weights

before = set(sys.modules)
as_matrix(np.ones((3, 2))), as_matrix([[1.0, 2.0]]), as_weights([1.0, 2.0], 2)
print(*(set(sys.modules) - before))
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("estimator", ["mle", "robust"])
@pytest.mark.parametrize(
    "delay", [0.001, *(pytest.param(d, marks=pytest.mark.slow) for d in (0, 0.0002, 0.003, 0.01, 0.05))]
)
def test_fork_while_another_thread_fits(delay, estimator):
    pk.fit(np.random.default_rng(0).lognormal(size=(50, 2)), estimator=estimator)  # fills the cache of compiled code
    code = ["-W", "ignore", "-c", FORKED_WHILE_FITTING, str(delay), estimator]
    assert subprocess.run([sys.executable, *code], timeout=300, check=False).returncode == 0


def test_a_fork_does_not_wait_with_the_lock_of_a_module_that_is_in_use():
    code = ["-W", "ignore", "-c", FORKED_WHILE_LOGGING]
    assert subprocess.run([sys.executable, *code], timeout=300, check=False).returncode == 0


def test_reading_imports_nothing():
    """Reading an array imports no module that is needed only for other input, such as `numpy.ma`."""
    command = [sys.executable, "-c", READING_ALONE]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert found.stdout.split() == []


def test_a_fork_waits_for_the_import():
    """The parent process holds the lock only during the import, so the child process can acquire it.

    The test forks in a separate process, because Python warns about a fork of pytest's process, which has other
    threads.
    """
    code = ["-W", "ignore", "-c", FORKED_AFTER_THE_IMPORT]
    assert subprocess.run([sys.executable, *code], timeout=300, check=False).returncode == 0
