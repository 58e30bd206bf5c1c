"""Code for an instruction set is used by every CPU that supports it, and by no other."""

from __future__ import annotations

import inspect
import json
import platform
import shutil
from pathlib import Path

import numpy as np
import processes
import pytest

import powerkern as pk
from powerkern._jit import JIT_DISABLED, cpus

pytestmark = [
    pytest.mark.slow,  # processes that compile for other CPUs
    pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled"),
    pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names x86 CPUs"),
]

V2 = "+" + ",+".join(sorted(cpus.levels()["x86-64-v2"]))
V3 = "+" + ",+".join(sorted(cpus.levels()["x86-64-v3"]))
V4 = "+" + ",+".join(sorted(cpus.levels()["x86-64-v4"]))
#: A CPU without AVX-512, and one with it; neither has compiled code of its own.
WITHOUT_AVX512 = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": V3}
WITH_AVX512 = {"NUMBA_CPU_NAME": "skylake-avx512", "NUMBA_CPU_FEATURES": V4}
#: Neither AVX2 nor fused multiply-add: old CPUs, small ones, and virtual machines that hide the features of their CPU.
WITHOUT_FMA = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": ""}

COMPILE = "from powerkern.kernels.transforms.lambda_bounds import lambda_ranges as f; f.compile(); "
HITS = "import sys; print(int('numba' not in sys.modules)); "


def run(code, **environment):
    return processes.run(code, **{"NUMBA_DISABLE_JIT": "0", **environment})


def compile_for(level, folder):
    run(COMPILE, NUMBA_CPU_NAME=level, NUMBA_CPU_FEATURES="", NUMBA_CACHE_DIR=str(folder))


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A folder with code for x86-64-v3 and x86-64-v4, the levels in a wheel."""
    folder = tmp_path_factory.mktemp("shared")
    for level in ("x86-64-v3", "x86-64-v4"):
        compile_for(level, folder)
    return folder


def copy_of(shared, tmp_path, *levels):
    """Copy the code for these levels to a cache folder; return the environment that selects it."""
    for level in levels:
        (folder,) = shared.glob(f"powerkern-{level}-*")
        shutil.copytree(folder, tmp_path / "cache" / folder.name)
    return {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}


@pytest.mark.parametrize(
    "level, cpu", [("x86-64-v3", WITHOUT_AVX512), ("x86-64-v3", WITH_AVX512), ("x86-64-v4", WITH_AVX512)]
)
def test_code_for_an_instruction_set_is_loaded_by_cpus_that_support_it(level, cpu, shared, tmp_path):
    assert run(COMPILE + HITS, **cpu, **copy_of(shared, tmp_path, level)) == "1"


def test_code_for_avx512_is_not_loaded_without_avx512(shared, tmp_path):
    assert run(COMPILE + HITS, **WITHOUT_AVX512, **copy_of(shared, tmp_path, "x86-64-v4")) == "0"


@pytest.mark.parametrize("missing", sorted(cpus.levels()["x86-64-v4"]))
def test_every_feature_of_a_level_is_required(missing, monkeypatch):
    def runnable(features):
        monkeypatch.setattr(cpus, "this_cpu", lambda: cpus.Cpu("some-cpu", features))
        return [cpu.name for cpu in cpus.runnable()]

    assert runnable(V4) == ["some-cpu", "x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64"]
    assert "x86-64-v4" not in runnable(V4.replace(f"+{missing}", f"-{missing}"))


def test_llvm_knows_the_features_of_each_level():
    """LLVM has a feature with each name that `cpus.levels` lists for an instruction set level."""
    from llvmlite import binding

    known = set(binding.get_host_cpu_features())
    assert set().union(*cpus.levels().values()) <= known


def test_the_best_code_is_loaded(shared, tmp_path):
    """Code for the CPU itself has priority, then code for the highest level."""
    names = "from powerkern._jit import cpus; print(*[c.name for c in cpus.runnable()])"
    assert run(names, **WITH_AVX512).split() == ["skylake-avx512", "x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64"]
    assert run(names, **WITHOUT_AVX512).split() == ["haswell", "x86-64-v3", "x86-64-v2", "x86-64"]
    assert run(names, NUMBA_CPU_NAME="x86-64-v3", NUMBA_CPU_FEATURES="").split()[0] == "x86-64-v3"


def test_shared_code_gives_the_bits_of_the_restricted_cpu(tmp_path):
    """A CPU of another name that loads code for x86-64-v3 computes the same bits as the CPU that compiled it."""
    code = (
        "import numpy as np; from powerkern.kernels.transforms.elementwise import yeojohnson_each as f\n"
        "x = np.random.default_rng(0).standard_cauchy(1001); out = np.empty(1001)\n"
        "f(x, np.linspace(-3, 5, 1001), out); print(out.tobytes().hex())\n" + HITS
    )
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    first = run(code, NUMBA_CPU_NAME="x86-64-v3", NUMBA_CPU_FEATURES="", **cache).split()
    then = run(code, **WITHOUT_AVX512, **cache).split()
    assert (first[1], then[1]) == ("0", "1")
    assert first[0] == then[0]


def fits():
    """Yield lambdas, likelihoods and transforms of ordinary columns, for each family."""
    rng = np.random.default_rng(0)
    x = rng.standard_gamma(rng.uniform(1.0, 9.0, 16), (60, 16))
    for family, values in (("box-cox", x), ("yeo-johnson", x - 3.0)):
        fit = pk.fit(values, family, n_threads=1)
        yield fit.lmbda, fit.nll / fit.n_obs, fit.transform(values, n_threads=1)


FITS = f"""
import json, numpy as np, powerkern as pk
from powerkern._jit.cpus import this_cpu
{inspect.getsource(fits)}
print(json.dumps([this_cpu().name, [[array.tolist() for array in fit] for fit in fits()]]))
"""


def test_code_without_fused_multiply_add_differs_in_the_last_bits_only(tmp_path):
    """Results of plain x86-64 code agree to 2e-14 with those of this CPU.

    Exact products need no fused multiply-add, but sums are divided among lanes in another order.
    """
    name, theirs = json.loads(run(FITS, **WITHOUT_FMA, NUMBA_CACHE_DIR=str(tmp_path)))
    assert name == "x86-64"
    for found, expected in zip(theirs, fits(), strict=True):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-14, atol=2e-14)


# --- code that a wheel has installed ---------------------------------------------------------------------


@pytest.fixture
def installed(shared, tmp_path):
    """A copy of the package with compiled code, like an installed wheel."""
    sources = tmp_path / "site"
    package = Path(pk.__file__).parent
    shutil.copytree(package, sources / "powerkern", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(shared, sources / "powerkern" / "_compiled")
    return sources


def test_installed_code_is_loaded(installed, tmp_path):
    environment = {"NUMBA_DISABLE_JIT": "0", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert processes.run(COMPILE + HITS, installed, **environment, **WITH_AVX512) == "1"
    assert not (tmp_path / "cache").exists()


def test_installed_code_is_trusted_as_the_package_is(installed, tmp_path):
    """Group-writable code is loaded if the files of the package are group-writable, too."""
    for path in [installed, *installed.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o020)
    environment = {"NUMBA_DISABLE_JIT": "0", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert processes.run(COMPILE + HITS, installed, **environment, **WITH_AVX512) == "1"


def test_installed_code_that_is_damaged_or_outdated_is_skipped(installed, tmp_path):
    """Compile instead of loading such code, without a message."""
    for path in (installed / "powerkern" / "_compiled").glob("powerkern-x86-64-v4-*/*.code"):
        path.write_bytes(path.read_bytes()[:-1])
    environment = {"NUMBA_DISABLE_JIT": "0", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    (v3,) = (installed / "powerkern" / "_compiled").glob("powerkern-x86-64-v3-*")
    assert processes.run(COMPILE + HITS, installed, **environment, **WITH_AVX512) == "1"
    shutil.rmtree(v3)
    assert processes.run(COMPILE + HITS, installed, **environment, **WITH_AVX512) == "0"


def test_a_cpu_without_avx2_compiles_unless_a_wheel_has_code_for_it(installed, tmp_path):
    """Wheels contain no code for CPUs without AVX2; once code for plain x86-64 is added, these CPUs load it."""
    cache = tmp_path / "cache"
    environment = {"NUMBA_DISABLE_JIT": "0", "NUMBA_CACHE_DIR": str(cache)}
    assert processes.run(COMPILE + HITS, installed, **environment, **WITHOUT_FMA) == "0"
    (compiled,) = cache.iterdir()
    compiled.rename(installed / "powerkern" / "_compiled" / compiled.name)
    nehalem = {"NUMBA_CPU_NAME": "nehalem", "NUMBA_CPU_FEATURES": V2}
    for cpu in (WITHOUT_FMA, nehalem):
        assert processes.run(COMPILE + HITS, installed, **environment, **cpu) == "1"
    assert not list(cache.iterdir())
