"""Functions that benchmarks share: timing, alternating calls, random matrices, and measurements in new processes."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from powerkern._jit.cpus import Cpu

FloatArray = npt.NDArray[np.float64]

FAMILIES = ["box-cox", "yeo-johnson"]
ORDERS = ["C", "F"]
#: Columns on which peers are measured; their time is scaled to all columns of the matrix.
PEER_COLUMNS = 8

_SEED = 20240601
_ROOT = Path(__file__).resolve().parents[1]


def best_of(call: Callable[[], Any], seconds: float = 0.05, at_least: int = 5) -> float:
    """After one warm-up, call for `seconds`, and at least `at_least` times; return the shortest time in seconds."""
    call()
    best, calls = np.inf, 0
    end = time.perf_counter() + seconds
    while calls < at_least or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
        calls += 1
    return best


def exp_units(call: Callable[[], Any], n: int) -> float:
    """Return the time of `call` in passes of np.exp over n values in [-1, 1], which are timed right after it."""
    x, out = np.linspace(-1.0, 1.0, n), np.empty(n)
    return best_of(call) / best_of(lambda: np.exp(x, out=out))


@functools.cache
def own_exp() -> Callable[[FloatArray, FloatArray], object]:
    """Compile a loop of the package's own exp over an array: a unit of time that is comparable between CPUs.

    np.exp is vectorised only on CPUs with AVX-512, so its time is a poor unit for comparing CPUs.
    """
    import numba

    from powerkern._jit import widest_vectors
    from powerkern.kernels.elementary.exp import exp

    @numba.njit(error_model="numpy", fastmath={"contract"})
    def loop(x: FloatArray, out: FloatArray) -> None:
        widest_vectors()
        for i in range(x.size):
            out[i] = exp(x[i])

    return loop  # type: ignore[no-any-return]


#: Values of a block in cache.
_BLOCK = 2_000


class Units(NamedTuple):
    """Time per value, in ns, of np.exp (`numpys`) and of the package's own exp (`ours`)."""

    numpys: float
    ours: float


def exp_passes() -> Units:
    """Measure both `Units` over a block that fits in cache."""
    x, out, own = np.linspace(-1.0, 1.0, _BLOCK), np.empty(_BLOCK), own_exp()
    passes = best_of(lambda: np.exp(x, out=out)), best_of(lambda: own(x, out))
    return Units(*(seconds / _BLOCK * 1e9 for seconds in passes))


def units() -> str:
    """Describe on one line both `Units` and the instruction set."""
    numpys, ours = exp_passes()
    return (
        f"a pass of np.exp {numpys:.2f} ns a value, of powerkern's exp {ours:.2f} ns; compiled for {instruction_set()}"
    )


def instruction_set() -> str:
    """Return the instruction set of compiled code (SSE2, AVX2, AVX-512, or the architecture), and the CPU."""
    from powerkern._jit.cpus import platform, runnable

    names = [cpu.name for cpu in runnable()]
    vectors = {"x86-64-v4": "AVX-512", "x86-64-v3": "AVX2", "x86-64-v2": "SSE4.2", "x86-64": "SSE2"}
    best = next((vectors[name] for name in names if name in vectors), platform().split("-")[0])
    return f"{best} ({names[0]})"


class Lap(NamedTuple):
    """Seconds of the fastest of several calls: elapsed time, and CPU time of all threads."""

    wall: float
    cpu: float


class InTurns:
    """A benchmark that alternates the calls it compares, so that a slow phase of the machine affects all alike."""

    #: Seconds for which calls alternate; results of longer runs are more reliable.
    seconds = 0.1
    #: The fastest laps of the last comparison.
    laps: dict[str, Lap] = {}

    def compare(
        self, calls: Mapping[str, Callable[[], Any]], before: Callable[[], Any] = lambda: None
    ) -> dict[str, Lap]:
        """Time the calls alternately, at least three times each; return the fastest lap of each.

        `before` runs before each call and is not timed.
        """
        self.laps = dict.fromkeys(calls, Lap(np.inf, np.inf))
        self._go_on(calls, before)
        return self.laps

    def _go_on(self, calls: Mapping[str, Callable[[], Any]], before: Callable[[], Any] = lambda: None) -> None:
        end, rounds = time.perf_counter() + self.seconds, 0
        while rounds < 3 or time.perf_counter() < end:
            rounds += 1
            for name, call in calls.items():
                before()
                self.laps[name] = min(self.laps[name], lap_of(call))

    def compare_on_free_cores(self, calls: Mapping[str, Callable[[], Any]]) -> dict[str, Lap]:
        """Time calls on one and two threads, alternating with np.exp, until two cores were free at the same time.

        If other processes use the cores, two threads do 1.2 to 1.97 times the work of one, varying by the minute. Calls
        are repeated until two threads of np.exp have done 1.9 times the work of one, or until ten times the usual time
        has passed.
        """
        with ThreadPoolExecutor(2) as pool:
            every = {**calls, **passes_of_np_exp(pool)}
            self.compare(every)
            for _ in range(9):
                if self.ratio(*NP_EXP) >= 1.9:
                    break
                self._go_on(every)
        return self.laps

    def ratio(self, slower: str, faster: str) -> float:
        """Return the elapsed time of the lap `slower` over that of `faster`."""
        return self.laps[slower].wall / self.laps[faster].wall


#: The names of the laps of np.exp on one thread and on two.
NP_EXP = ("np.exp, 1", "np.exp, 2")


def passes_of_np_exp(pool: ThreadPoolExecutor) -> dict[str, Callable[[], Any]]:
    """Return two functions, by name, that do equal work of np.exp: on one thread, and on the pool's two threads."""
    x = np.linspace(-1.0, 1.0, 20_000)
    outs = np.empty((2, x.size))

    def work(out: np.ndarray) -> None:
        for _ in range(500):
            np.exp(x, out=out)

    one, two = NP_EXP
    return {one: lambda: [*map(work, outs)], two: lambda: [*pool.map(work, outs)]}


#: The name of the laps of the package's own exp.
OWN_EXP = "powerkern's exp"


def passes_of_own_exp() -> Callable[[], None]:
    """Return a function that computes the package's own exp of a million values, in blocks that stay in cache."""
    x, out, own = np.linspace(-1.0, 1.0, _BLOCK), np.empty(_BLOCK), own_exp()
    own(x, out)  # compiles

    def work() -> None:
        for _ in range(1_000_000 // _BLOCK):
            own(x, out)

    return work


def lap_of(call: Callable[[], Any]) -> Lap:
    """Time one call: elapsed time, and CPU time of all threads."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    lap = Lap(time.perf_counter() - wall, time.process_time() - cpu)
    del result  # releasing the memory of the result is not part of the call
    return lap


def matrix(family: str, n: int, p: int, order: str = "C", dtype: str = "float64") -> np.ndarray:
    """Return skewed columns: powers of gamma variables, or for Yeo-Johnson centered and scaled gamma variables.

    Powers and scales have either sign.

    Parameters
    ----------
    family : str
        The transform for which the columns are made.
    n, p : int
        Shape.
    order : {"C", "F"}
        Memory order.
    dtype : str
        Type of the values.
    """
    rng = np.random.default_rng(_SEED)
    shape, sign = rng.uniform(3.0, 10.0, p), rng.choice([-1.0, 1.0], p)
    x = rng.standard_gamma(shape, (n, p))
    if family == "box-cox":
        x **= sign * rng.uniform(0.5, 1.0, p)
    else:
        x -= shape
        x *= sign * rng.uniform(0.3, 1.0, p)
    return np.asarray(x, dtype=dtype, order=order)


# --- new processes ------------------------------------------------------------------------------------


def in_new_process(code: str, **environment: str) -> str:
    """Run `code` in a new interpreter with the import path of this one; return its output."""
    path = os.pathsep.join([*filter(None, sys.path), str(_ROOT)])
    env = {**os.environ, "PYTHONPATH": path, **environment}
    return subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True).stdout


def in_new_process_for(cpu: Cpu, code: str) -> str:
    """Run `code` in a new interpreter whose kernels are compiled for this CPU; return the last line of its output.

    Code for other CPUs is cached in separate folders. In a shared folder, a process for one CPU might load and measure
    code for an older CPU.
    """
    from powerkern._jit.cpus import this_cpu
    from powerkern.kernels.compilation import writable_folder

    target = {
        "NUMBA_CPU_NAME": cpu.name,
        "NUMBA_CPU_FEATURES": cpu.features,
        "NUMBA_CACHE_DIR": str(writable_folder().parent / cpu.name),
    }
    return in_new_process(code, **({} if cpu == this_cpu() else target)).splitlines()[-1]


def lap_in_new_process(statement: str, preparation: str = "", **environment: str) -> Lap:
    """Time one statement in a new interpreter; its start and the `preparation` are not timed."""
    code = (
        f"import time\n{preparation}\nwall, cpu = time.perf_counter(), time.process_time()\n{statement}\n"
        "print(time.perf_counter() - wall, time.process_time() - cpu)"
    )
    wall, cpu = in_new_process(code, **environment).split()
    return Lap(float(wall), float(cpu))


def peak_memory() -> float:
    """Return the largest resident set size of this process so far, in MB.

    The benchmark is skipped if the system does not report it.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        raise NotImplementedError from None
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6
