"""Entries are compiled at their first call, and nothing else is compiled."""

from __future__ import annotations

import importlib
import os
import pkgutil
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import processes
import pytest

import powerkern
import powerkern.kernels
from powerkern._jit import COLUMN, JIT_DISABLED, REAL
from powerkern._jit.entries import Entry
from powerkern.kernels.elementary import log
from powerkern.kernels.likelihood import mle
from powerkern.kernels.likelihood.score_formulas import has_root_near
from powerkern.kernels.transforms import gather, lambda_bounds

needs_jit = pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")


def run(code, **environment):
    """Return the output of `code` in a new process; only the given environment determines its cache folder."""
    return processes.run(code, **{"NUMBA_CACHE_DIR": "", "NUMBA_DISABLE_JIT": "0", **environment})


def entries():
    """Return every entry of the package by name."""
    found = {}
    for info in pkgutil.walk_packages(powerkern.kernels.__path__, "powerkern.kernels."):
        module = importlib.import_module(info.name)
        for value in vars(module).values():
            assert not isinstance(value, numba.core.registry.CPUDispatcher), info.name
            if isinstance(value, Entry):
                found[f"{value.__module__}.{value.__name__}"] = value
    return found


# --- entries ------------------------------------------------------------------------------------------


@needs_jit
def test_only_entries_are_compiled():
    """`entries` finds two known entries, and no module of kernels has a jitted function that is not an entry."""
    assert {"powerkern.kernels.likelihood.mle.two_pass_columns", "powerkern.kernels.transforms.gather.gather"} <= set(
        entries()
    )


@needs_jit
@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros(3, dtype=np.float32),
        np.zeros(3, dtype=np.int64),
        np.zeros(3, dtype=">f8"),
        np.zeros((3, 1)),
        np.zeros(6)[::2],
        np.frombuffer(bytes(24)),
        np.ma.zeros(3),
        np.frombuffer(bytes(25), dtype=np.uint8)[1:].view(np.float64),
        [0.0, 0.0, 0.0],
        None,
    ],
)
def test_an_entry_rejects_arrays_of_other_types(wrong):
    """Arrays of another dtype, dimension or layout, read-only or masked arrays, lists and None raise TypeError."""
    good = np.zeros(3), np.zeros(3), 10.0, np.empty(3), np.empty(3)
    lambda_bounds.lambda_ranges(1, *good)
    for k in (0, 1, 3, 4):
        bad = [*good[:k], wrong, *good[k + 1 :]]
        with pytest.raises(TypeError, match="lambda_ranges takes Array"):
            lambda_bounds.lambda_ranges(1, *bad)
    with pytest.raises(TypeError):
        lambda_bounds.lambda_ranges(1, *good[:2], "ten", *good[3:])
    with pytest.raises(TypeError):
        lambda_bounds.lambda_ranges(1, *good[:-1])


@needs_jit
def test_an_entry_accepts_memmaps(tmp_path):
    """joblib passes large arrays to its processes as memmaps."""
    arrays = [np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 9.0]), np.empty(3), np.empty(3)]
    lambda_bounds.lambda_ranges(1, *arrays[:2], 10.0, *arrays[2:])
    mapped = [np.memmap(tmp_path / str(k), np.float64, "w+", shape=3) for k in range(4)]
    mapped[0][:], mapped[1][:] = arrays[:2]
    lambda_bounds.lambda_ranges(1, *mapped[:2], 10.0, *mapped[2:])
    np.testing.assert_array_equal(mapped, arrays)


@needs_jit
def test_an_entry_declared_for_any_strides_accepts_them():
    x = np.arange(24.0).reshape(4, 6)
    for view in (x, np.asfortranarray(x), x[::2, ::-3], x.T, x[:0], x[:, :0], np.broadcast_to(x[0], (3, 6))):
        block = np.empty((view.shape[1], view.shape[0]))
        gather.gather(view, block)
        np.testing.assert_array_equal(block, view.T)


@needs_jit
def test_entries_return_numbers():
    x = np.linspace(0.0, 1.0, 9)
    ours = Entry(_last_of, (COLUMN, REAL))
    assert ours(x, 2.0) == 2.0
    assert type(ours(x, 2.0)) is float


def _last_of(x: np.ndarray, factor: float) -> float:
    return factor * x[-1]


def _allocates(x: np.ndarray) -> None:
    x[:] = np.sort(x)


def _raises(x: np.ndarray) -> None:
    if x[0] < 0.0:
        raise ValueError("negative")
    x[0] = 1.0


@needs_jit
@pytest.mark.parametrize(
    "function, needed", [pytest.param(_allocates, "NRT_", marks=pytest.mark.slow), (_raises, "numba_unpickle")]
)
def test_an_entry_that_allocates_or_raises_is_refused(function, needed):
    from powerkern._jit.object_code import Refused

    with pytest.raises(
        Refused, match=f"{function.__name__} allocates, or may raise: its machine code needs .*{needed}"
    ):
        Entry(function, (COLUMN,)).compile()


ONE_KERNEL = (
    "from powerkern.kernels.transforms.elementwise import yeojohnson_each as f\n"
    "x = np.random.default_rng(0).standard_cauchy(1001); found = np.empty(1001)\n"
    "f(x, np.linspace(-3, 5, 1001), found)"
)
A_FIT = (
    "import powerkern as pk\n"
    "fit = pk.fit(np.random.default_rng(0).standard_cauchy((100, 2)))\n"
    "found = np.vstack([fit.lmbda, fit.loc, fit.scale])"
)


@pytest.mark.slow
@needs_jit
@pytest.mark.parametrize("job", [ONE_KERNEL, pytest.param(A_FIT, marks=pytest.mark.slow)])
def test_an_unknown_release_of_numba_changes_nothing(job, tmp_path):
    """If the private parts used by `fast_lowering` have moved, numba compiles the kernels, with the same results."""
    code = (
        "if {moved}: import numba.core.codegen; del numba.core.codegen.JITCodeLibrary\n"
        f"import numpy as np\n{job}\nprint(found.tobytes().hex())\n"
        "from powerkern._jit.numba_extension import PIPELINES; print(PIPELINES is not None)"
    )
    known, unknown = (
        run(code.format(moved=moved), NUMBA_CACHE_DIR=str(tmp_path / str(moved))).split() for moved in (False, True)
    )
    assert (known[1], unknown[1]) == ("True", "False")
    assert known[0] == unknown[0]


@pytest.mark.slow
@needs_jit
def test_nothing_imports_numba_where_code_is_kept(tmp_path):
    code = (
        "import sys, numpy as np, powerkern as pk\n"
        "X = np.random.default_rng(0).lognormal(size=(100, 3))\n"
        "pk.fit(X).transform(X)\n"
        "print('numba' in sys.modules)"
    )
    assert [run(code, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2)] == ["True", "False"]


@needs_jit
def test_an_entry_has_the_name_and_docstring_of_its_function():
    assert mle.two_pass_columns.__name__ == "two_pass_columns"
    assert mle.two_pass_columns.__doc__ == mle.two_pass_columns.__wrapped__.__doc__
    assert callable(mle.two_pass_columns.__wrapped__)


@pytest.mark.slow
@needs_jit
def test_a_users_function_runs_the_same_code(tmp_path):
    """A user's function that calls the kernel `boxcox` returns the same bits as the entry that was called before."""
    code = (
        "import numba, numpy as np; from powerkern.kernels.transforms import boxcox, elementwise\n"
        "x, out, again = np.linspace(1.0, 9.0, 999), np.empty(999), np.empty(999)\n"
        "elementwise.boxcox_each(x, np.full(999, 0.5), out)\n"
        "@numba.njit\ndef by_value(x, y):\n    for i in range(x.size):\n        y[i] = boxcox.boxcox(x[i], 0.5)\n"
        "by_value(x, again)\n"
        "print((out == again).all(), np.allclose(out, 2.0 * (np.sqrt(x) - 1.0)))"
    )
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)) == "True True"


@pytest.mark.slow
@needs_jit
def test_a_users_function_does_not_run_the_kernels_of_an_entry(tmp_path):
    """LLVM may drop unused arguments of an entry's kernels, so code loaded later must not link to them."""
    code = (
        "import numba, numpy as np\n"
        "from powerkern.kernels.likelihood import joint_derivatives, score, score_formulas\n"
        "from powerkern.kernels.likelihood.logs import Magnitudes, logs_about\n"
        "joint_derivatives.derivative_columns.compile()\n"
        "@numba.njit\n"
        "def slope(sides, spare, scratch):\n"
        "    logs = logs_about(sides, False, 0.0, 1.0, spare)\n"
        "    return score.score(logs, 0.5 * logs.sigma, scratch).d1\n"
        "x, none = np.array([0.5, 1.0, 2.0, 4.0]), np.empty(0)\n"
        "scratch = score.Scratch(np.empty((4, score.BLOCK)), np.empty((3, score_formulas.N_MOMENTS)))\n"
        "sides = Magnitudes(x, none, np.ones(4), none)\n"
        "print(np.isclose(slope(sides, np.empty(4), scratch), slope.py_func(sides, np.empty(4), scratch), rtol=1e-12))"
    )
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)) == "True"


@pytest.mark.slow
@needs_jit
@pytest.mark.parametrize("first", ["numba", pytest.param("powerkern", marks=pytest.mark.slow)])
def test_numba_finds_kernels_by_the_entry_point(first, tmp_path):
    """Import numba and powerkern in either order; a metadata folder makes powerkern look installed."""
    metadata = tmp_path / "powerkern-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: powerkern\nVersion: 0\n")
    (metadata / "entry_points.txt").write_text("[numba_extensions]\ninit = powerkern._jit.numba_extension:register\n")
    imports = ["import numba, numpy as np", "from powerkern.kernels import logsumexp"]
    code = "\n".join(imports if first == "numba" else imports[::-1]) + (
        "\nprint(numba.njit(lambda x: logsumexp(x))(np.zeros(4)) == np.log(4.0))"
    )
    with processes.start(code, NUMBA_DISABLE_JIT="0", PYTHONPATH=f"{processes.SOURCES}{os.pathsep}{tmp_path}") as one:
        assert one.communicate(timeout=300) == ("True\n", "")


@pytest.mark.slow
def test_importing_compiles_nothing():
    modules = sorted(info.name for info in pkgutil.walk_packages(powerkern.kernels.__path__, "powerkern.kernels."))
    code = (
        f"import importlib, powerkern, powerkern.stats; modules = [importlib.import_module(m) for m in {modules}]\n"
        "from powerkern._jit.entries import Entry\n"
        "found = [v for m in modules for v in vars(m).values() if isinstance(v, Entry)]\n"
        "print(len(found) > 5, [v.__name__ for v in found if v._compiled is not None])"
    )
    assert run(code) == "True []"


def test_importing_does_not_import_optional_dependencies():
    code = "import sys, powerkern; print({'sklearn', 'pandas', 'tqdm', 'polars', 'pyarrow', 'dask'} & set(sys.modules))"
    assert run(code) == "set()"


# --- threads and forks --------------------------------------------------------------------------------


@needs_jit
def test_many_threads_compile_once(empty):
    entry = Entry(lambda_bounds.lambda_ranges.__wrapped__, lambda_bounds.lambda_ranges._signature)
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: id(entry.compile()), range(16)))) == 1


@pytest.mark.slow
@needs_jit
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("call", ["entry", "users"])
def test_a_child_forked_during_a_compilation_can_compile(call, tmp_path):
    """The child can compile and call entries: no lock is held by a thread that it does not have."""
    code = (
        "import os, signal, threading, warnings\n"
        "import numba, numpy as np\n"
        "from numba.core import event\n"
        "from powerkern.kernels.transforms.lambda_bounds import lambda_ranges\n"
        "warnings.simplefilter('ignore', DeprecationWarning)  # of forking a process that has threads\n"
        "def entry():\n"
        "    low, high = np.empty((2, 1))\n"
        "    lambda_ranges(1, np.zeros(1), np.zeros(1), 10.0, low, high)\n"
        "    return high[0] == np.inf\n"
        "def users():\n"
        "    return numba.njit(lambda x: x + 1)(1) == 2\n"
        "compiling = threading.Event()\n"
        "class Listener(event.Listener):\n"
        "    def on_start(self, event): compiling.set()\n"
        "    def on_end(self, event): pass\n"
        "event.register('numba:compile', Listener())\n"
        "thread = threading.Thread(target=entry); thread.start(); compiling.wait()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        f"    signal.alarm(120); os._exit(0 if {call}() else 3)\n"
        "_, status = os.waitpid(child, 0); thread.join(); print(os.waitstatus_to_exitcode(status), entry())"
    )
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)) == "0 True"


# --- without numba, and in users' code ----------------------------------------------------------------


@pytest.mark.slow
def test_results_without_compilation():
    """With NUMBA_DISABLE_JIT=1 the same source runs as plain Python; only the rounding of vectorised sums differs."""
    code = (
        "import numpy as np, powerkern as pk\n"
        "rng = np.random.default_rng(0)\n"
        "for family, x in (('box-cox', rng.lognormal(size=(30, 2))), ('yeo-johnson', rng.normal(size=(300, 1)))):\n"
        "    fit = pk.fit(x, family)\n"
        "    print(*fit.lmbda, *fit.nll, *fit.transform(x)[:3, 0], *fit.confint().low)"
    )
    plain = [float(v) for v in run(code, NUMBA_DISABLE_JIT="1").split()]
    compiled = [float(v) for v in run(code, NUMBA_CACHE_DIR=os.environ.get("NUMBA_CACHE_DIR", "")).split()]
    np.testing.assert_allclose(plain, compiled, rtol=1e-11)


@numba.njit
def users_function(x):
    total = 0.0
    for i in range(x.size):
        total += log.log1p(x[i])
    return has_root_near(total, 1.0, 0.0), total


def test_kernels_in_a_users_jitted_function():
    x = np.array([0.0, 1.0, 3.0])
    certified, total = users_function(x)
    assert certified
    assert total == pytest.approx(np.log1p(x).sum(), rel=1e-15)


def test_kernels_as_plain_python():
    assert log.log1p(1.0) == pytest.approx(np.log(2.0), rel=1e-15)
    assert has_root_near(0.0, 1.0, 1.0)
